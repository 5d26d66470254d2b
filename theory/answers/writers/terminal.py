"""Blocks for a terminal: lines of text, in Unicode or in ASCII alone.

Proofs, and what was tried, are shown with `details` only; curves and ladders never. Lines are as
wide as the terminal, from 60 to 100 columns; in a pipe they have 100.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence

from farfield.theory.answers.blocks import (
    Block,
    Facts,
    Formula,
    Note,
    Sentence,
    Steps,
    Table,
)
from farfield.theory.answers.notation import (
    Term,
    Text,
    as_text,
    expression_line,
    shortened,
    terminal,
)

WIDTH, LEAST_WIDTH = 100, 60
NARROW = 16
COLOURS = {
    **dict.fromkeys(("converges", "confirmed"), "32"),
    **dict.fromkeys(("diverges", "refuted"), "33"),
    **dict.fromkeys(("conditional", "corrected", "undecided"), "35"),
}
"""The colour of a verdict, as a terminal names it."""
_ASCII = {"…": "...", "−": "-", "·": "*", "—": "-", "’": "'", "×": "x", "∞": "oo", "ε": "eps"}


def columns() -> int:
    """How wide a line may be on standard output."""
    if not sys.stdout.isatty():
        return WIDTH
    return min(WIDTH, max(LEAST_WIDTH, shutil.get_terminal_size().columns))


def in_colour() -> bool:
    """Whether verdicts are coloured: on a terminal, unless `NO_COLOR` is set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def written(
    blocks: Sequence[Block],
    *,
    details: bool = False,
    unicode: bool = True,
    width: int = WIDTH,
    colour: bool = False,
) -> str:
    """Blocks as text.

    Args:
        blocks: in order.
        details: proofs as well.
        unicode: False for a terminal that shows ASCII alone.
        width: of a line, in columns.
        colour: verdicts in their colour, as terminals show it.

    >>> from farfield.theory.answers.blocks import sentence
    >>> written([sentence("`n -> oo`")], unicode=False)
    'n -> oo'
    """
    lines = [line for block in blocks for line in _lines(block, details, unicode, width)]
    text = "\n".join(lines)
    if not unicode:
        for sign, ascii in _ASCII.items():
            text = text.replace(sign, ascii)
        text = text.encode("ascii", "replace").decode()
    return _coloured(text, blocks[0]) if colour and blocks else text


def _coloured(text: str, first: Block) -> str:
    """The text with the verdict of its first sentence in colour."""
    if isinstance(first, Sentence):
        for part in as_text(first.text):
            if isinstance(part, Term) and part.kind == "verdict" and part.word in COLOURS:
                shown = f"\033[1;{COLOURS[part.word]}m{part.word}\033[0m"
                text = re.sub(rf"\b{part.word}\b", shown, text, count=1)
    return text


def _lines(block: Block, details: bool, unicode: bool, width: int) -> Iterator[str]:
    """A block line by line; steps of a proof are shown on demand alone."""

    def line(text: Text) -> str:
        return terminal(text, unicode=unicode)

    match block:
        case Sentence(text, label):
            yield from _wrapped(line(text) + (f"  [{label}]" if label else ""), width=width)
        case Formula(name, expression):
            shown = shortened(expression_line(expression, unicode=unicode), width - 12)
            yield f"  {line(name)} = {shown}"
        case Facts(rows):
            for name, value in rows:
                yield from _wrapped(f"  {line(name)}: {line(value)}", "    ", width=width)
        case Steps(title, steps, conclusion):
            if details:
                yield f"{line(title)}:"
                for k, step in enumerate(steps, 1):
                    yield from _wrapped(f"  {k}. {line(step)}", "     ", width=width)
                if conclusion:
                    yield from _wrapped(f"  Hence: {line(conclusion)}.", "     ", width=width)
        case Table():
            yield from _table(block, unicode, width)
        case Note(text):
            yield from _wrapped("  " + line(text), "  ", width=width)


def _wrapped(line: str, indent: str = "", *, width: int) -> list[str]:
    """A line as several of the terminal's width; words and formulas stay whole."""
    if len(line) <= width:
        return [line]
    return textwrap.wrap(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _table(block: Table, unicode: bool, width: int) -> Iterator[str]:
    """Columns side by side; while they are too wide the widest gives way, down to NARROW."""

    def shown(row: Sequence[Text]) -> list[str]:
        return [terminal(as_text(cell), unicode=unicode) for cell in row]

    rows = [shown(block.header)] * bool(block.header) + [shown(row) for row in block.rows]
    if block.title:
        yield terminal(block.title, unicode=unicode)
    if not rows:
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    while sum(widths) + 2 * len(widths) > width and max(widths) > NARROW:
        widths[widths.index(max(widths))] -= 1  # the widest cells take several lines
    for row in rows:
        parts = [textwrap.wrap(cell, w) or [""] for cell, w in zip(row, widths, strict=True)]
        for line in itertools.zip_longest(*parts, fillvalue=""):
            cells = (
                cell.rjust(w) if k in block.numeric else cell.ljust(w)
                for k, (cell, w) in enumerate(zip(line, widths, strict=True))
            )
            yield ("  " + "  ".join(cells)).rstrip()
