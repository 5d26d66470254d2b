"""Blocks of an answer: sentence, formula, facts, steps, table, curve, note; a terminal's text.

An answer yields blocks; the first is the answer in one plain sentence. A block holds values and
words and no markup. `written` turns blocks into lines for a terminal, in Unicode or in ASCII alone:
proofs, and the attempts, with `details` only; curves and ladders never. Lines are as wide as the
terminal, from 60 to 100 columns; in a pipe they have 100. Pages and notebooks have writers of their
own (`farfield.theory.answers.writers`).
"""

from __future__ import annotations

import enum
import itertools
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sympy import Basic

from farfield.theory.answers.notation import (
    StyledWord,
    Text,
    as_text,
    expression_line,
    shortened,
    terminal,
    words,
)


@dataclass(frozen=True)
class Sentence:
    """One sentence, with the weight of what it says where it makes a claim."""

    text: Text
    label: str | None = None


@dataclass(frozen=True)
class Formula:
    """An expression that has a name, as `p(n)`."""

    name: Text
    expression: Basic


@dataclass(frozen=True)
class Facts:
    """Named values, a line each."""

    rows: tuple[tuple[Text, Text], ...]


class Worded(Protocol):
    """A value that is put into words where it is shown."""

    def words(self) -> Text:
        """What it says."""


@dataclass(frozen=True)
class Steps:
    """A proof, or the attempts: numbered steps and what follows.

    Args:
        title: of the whole.
        steps: in order.
        conclusion: what they establish; empty where there is none.
        deciding: index of the step that decides, -1 where none does more than the others.
    """

    title: Text
    steps: tuple[Worded, ...]
    conclusion: Text = ()
    deciding: int = -1


@dataclass(frozen=True)
class Table:
    """Rows under a header.

    Args:
        header: of each column; empty for none.
        rows: as many cells each.
        title: of the whole.
        numeric: the columns that hold numbers, which align to the right.
    """

    header: tuple[Text, ...]
    rows: tuple[tuple[Text, ...], ...]
    title: Text = ()
    numeric: tuple[int, ...] = ()


class Weight(enum.StrEnum):
    """How much of the reader's eye a line takes."""

    STRONG = "strong"
    PLAIN = "plain"
    CONTEXT = "context"


@dataclass(frozen=True)
class Line:
    """One line of a curve.

    Args:
        name: as it is read; a line without one is not named.
        x, y: its points.
        colour: a place in the palette, or a verdict; None: the next free place.
        dash: a place among the styles of lines.
        weight: points are not joined, context stands behind what the curve is about.
        told: whether the name is beside the line; a page with scripts tells it under the
            pointer in any case.
        verdict: on the series: points are filled where it converges, open where it diverges,
            crosses where there is no such verdict; empty for a line without a series.
        bars: least and greatest y of each point, drawn upwards; empty for points without any.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    colour: int | str | None = None
    dash: int = 0
    weight: Weight = Weight.PLAIN
    told: bool = True
    verdict: str = ""
    bars: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Curve:
    """Lines in one frame.

    Args:
        title: what the plot shows, a full sentence.
        x_name, y_name: with units.
        lines: at least one.
        log_x, log_y: logarithmic axes.
        marks: values of y drawn across, each with its name.
        posts: values of x drawn upwards, each with its name.
        frame: least and greatest y that are drawn; None: those of the lines.
        falls: whether x decreases to the right.
        at: values of x that have a tick, in ascending order; empty for round ones.
    """

    title: str
    x_name: str
    y_name: str
    lines: tuple[Line, ...]
    log_x: bool = False
    log_y: bool = False
    marks: tuple[tuple[str, float], ...] = field(default=())
    posts: tuple[tuple[str, float], ...] = field(default=())
    frame: tuple[float, float] | None = None
    falls: bool = False
    at: tuple[float, ...] = ()


@dataclass(frozen=True)
class Rung:
    """One rung of a ladder: the text on a ratio of the proof, and its limit."""

    said: Text
    limit: float


@dataclass(frozen=True)
class Ladder:
    """The rungs that a proof climbs: a limit of exactly 1 leads to the next, any other decides.

    Args:
        title: what it shows, a full sentence.
        rungs: in order; the last decides.
        verdict: what it decides.
    """

    title: str
    rungs: tuple[Rung, ...]
    verdict: str


@dataclass(frozen=True)
class Note:
    """Further facts for a reader."""

    text: Text


Block = Sentence | Formula | Facts | Steps | Table | Curve | Ladder | Note


def sentence(template: str, label: str | None = None, **values: object) -> Sentence:
    """A sentence from a template of `words`."""
    return Sentence(words(template, **values), label)


def note(template: str, **values: object) -> Note:
    """A note from a template of `words`."""
    return Note(words(template, **values))


def facts(**named: object) -> Facts:
    """Named values; an underscore in a name is a space, None leaves the row out.

    >>> len(facts(total="1.64", reason=None).rows)
    1
    """
    rows = ((name.replace("_", " "), value) for name, value in named.items() if value is not None)
    return Facts(tuple((words(name), as_text(value)) for name, value in rows))


def table(
    header: Sequence[object], rows: Sequence[Sequence[object]], title: str = "", **options: Any
) -> Table:
    """A table from words and values; None is an empty cell, a name of a column is a template."""
    cells = tuple(tuple(as_text("" if c is None else c) for c in row) for row in rows)
    names = tuple(words(h) if isinstance(h, str) else as_text(h) for h in header)
    return Table(names, cells, words(title), **options)


# -- lines for a terminal -------------------------------------------------------------------------

WIDTH, LEAST_WIDTH = 100, 60
COLOURS = {
    **dict.fromkeys(("converges", "holds as printed"), "32"),
    **dict.fromkeys(("diverges", "wrong"), "33"),
    **dict.fromkeys(("conditional", "needs a correction", "undecided"), "35"),
}
"""The colour of a verdict, as a terminal names it."""
_ASCII = {
    "…": "...",
    "−": "-",
    "·": "*",
    "—": "-",
    "’": "'",
    "×": "x",
    "±": "+/-",
    "∞": "oo",
    "ε": "eps",
}


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
            if isinstance(part, StyledWord) and part.kind == "verdict" and part.word in COLOURS:
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
                    yield from _wrapped(f"  {k}. {line(step.words())}", "     ", width=width)
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
    """Columns side by side; where whole words do not fit so, a row is a list of its cells."""

    def shown(row: Sequence[Text]) -> list[str]:
        return [terminal(as_text(cell), unicode=unicode) for cell in row]

    rows = [shown(block.header)] * bool(block.header) + [shown(row) for row in block.rows]
    if block.title:
        yield from _wrapped(terminal(block.title, unicode=unicode), width=width)
    if not rows:
        return
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    longest = [max(map(len, " ".join(column).split()), default=0) for column in columns]
    least = [min(word, width // 3) for word in longest]
    while sum(widths) + 2 * len(widths) > width:
        wide = [k for k, (w, end) in enumerate(zip(widths, least, strict=True)) if w > end]
        if not wide:
            yield from _listed(rows, bool(block.header), width)
            return
        widths[max(wide, key=widths.__getitem__)] -= 1  # the widest cells take several lines
    for row in rows:
        parts = [
            [cell]
            if len(cell) <= w and cell.isprintable()
            else textwrap.wrap(cell, w, break_on_hyphens=False)
            for cell, w in zip(row, widths, strict=True)
        ]
        for line in itertools.zip_longest(*parts, fillvalue=""):
            cells = (
                cell.rjust(w) if k in block.numeric else cell.ljust(w)
                for k, (cell, w) in enumerate(zip(line, widths, strict=True))
            )
            yield ("  " + "  ".join(cells)).rstrip()


def _listed(rows: Sequence[Sequence[str]], headed: bool, width: int) -> Iterator[str]:
    """A row as its first cell, and a line for each other cell under the name of its column."""
    names = rows[0] if headed else [""] * len(rows[0])
    for first, *others in rows[headed:]:
        yield from _wrapped("  " + first, "    ", width=width)
        for name, cell in zip(names[1:], others, strict=True):
            if cell:
                text = f"    {name}: {cell}" if name else f"    {cell}"
                yield from _wrapped(text, "      ", width=width)
