"""Blocks for a terminal: lines of text, in Unicode or in ASCII alone.

Proofs, and what was tried, are shown with `details` only; curves and ladders never.
"""

from __future__ import annotations

import itertools
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
    Text,
    as_text,
    expression_line,
    shortened,
    terminal,
)

WIDTH = 100
NARROW = 16
_ASCII = {"…": "...", "−": "-", "·": "*", "—": "-", "’": "'", "×": "x", "∞": "oo", "ε": "eps"}


def written(blocks: Sequence[Block], *, details: bool = False, unicode: bool = True) -> str:
    """Blocks as text.

    Args:
        blocks: in order.
        details: proofs as well.
        unicode: False for a terminal that shows ASCII alone.

    >>> from farfield.theory.answers.blocks import sentence
    >>> written([sentence("`n -> oo`")], unicode=False)
    'n -> oo'
    """
    lines = [line for block in blocks for line in _lines(block, details, unicode)]
    text = "\n".join(lines)
    if not unicode:
        for sign, ascii in _ASCII.items():
            text = text.replace(sign, ascii)
        text = text.encode("ascii", "replace").decode()
    return text


def _lines(block: Block, details: bool, unicode: bool) -> Iterator[str]:
    """A block line by line; steps of a proof are shown on demand alone."""

    def line(text: Text) -> str:
        return terminal(text, unicode=unicode)

    match block:
        case Sentence(text, label):
            yield from _wrapped(line(text) + (f"  [{label}]" if label else ""))
        case Formula(name, expression):
            shown = shortened(expression_line(expression, unicode=unicode), WIDTH - 12)
            yield f"  {line(name)} = {shown}"
        case Facts(rows):
            for name, value in rows:
                yield from _wrapped(f"  {line(name)}: {line(value)}", "    ")
        case Steps(title, steps, conclusion):
            if details:
                yield f"{line(title)}:"
                for k, step in enumerate(steps, 1):
                    yield from _wrapped(f"  {k}. {line(step)}", "     ")
                if conclusion:
                    yield from _wrapped(f"  Hence: {line(conclusion)}.", "     ")
        case Table():
            yield from _table(block, unicode)
        case Note(text):
            yield from _wrapped("  " + line(text), "  ")


def _wrapped(line: str, indent: str = "") -> list[str]:
    """A line as several of the terminal's width; words and formulas stay whole."""
    if len(line) <= WIDTH:
        return [line]
    return textwrap.wrap(
        line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _table(block: Table, unicode: bool) -> Iterator[str]:
    """Columns side by side; while they are too wide the widest gives way, down to NARROW."""

    def shown(row: Sequence[Text]) -> list[str]:
        return [terminal(as_text(cell), unicode=unicode) for cell in row]

    rows = [shown(block.header)] * bool(block.header) + [shown(row) for row in block.rows]
    if block.title:
        yield terminal(block.title, unicode=unicode)
    if not rows:
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    while sum(widths) + 2 * len(widths) > WIDTH and max(widths) > NARROW:
        widths[widths.index(max(widths))] -= 1  # the widest cells take several lines
    for row in rows:
        parts = [textwrap.wrap(cell, w) or [""] for cell, w in zip(row, widths, strict=True)]
        for line in itertools.zip_longest(*parts, fillvalue=""):
            cells = (
                cell.rjust(w) if k in block.numeric else cell.ljust(w)
                for k, (cell, w) in enumerate(zip(line, widths, strict=True))
            )
            yield ("  " + "  ".join(cells)).rstrip()
