"""What an answer says, before any medium: sentence, formula, facts, steps, table, curve,
ladder, note.

An answer yields blocks; the first is the answer in one plain sentence. A writer of each
medium (`farfield.theory.answers.writers`) turns blocks into what a reader sees; a block holds
values and words and no markup.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from farfield.theory.answers.notation import Text, as_text, words


@dataclass(frozen=True)
class Sentence:
    """One sentence, with the weight of what it says where it makes a claim."""

    text: Text
    label: str | None = None


@dataclass(frozen=True)
class Formula:
    """An expression that has a name, as `p(n)`."""

    name: Text
    expression: Any


@dataclass(frozen=True)
class Facts:
    """Named values, a line each."""

    rows: tuple[tuple[Text, Text], ...]


@dataclass(frozen=True)
class Steps:
    """A proof, or what was tried: numbered steps and what follows.

    Args:
        title: of the whole.
        steps: in order.
        conclusion: what they establish; empty where there is none.
        deciding: index of the step that decides, -1 where none does more than the others.
    """

    title: Text
    steps: tuple[Text, ...]
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
    POINTS = "points"


@dataclass(frozen=True)
class Line:
    """One line of a curve.

    Args:
        name: as it is read; a line without one is not named.
        x, y: its points.
        colour: a place in the palette, or a verdict; None: the next free place.
        dash: a place among the styles of lines.
        weight: points are not joined, context stands behind what the curve is about.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    colour: int | str | None = None
    dash: int = 0
    weight: Weight = Weight.PLAIN


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


@dataclass(frozen=True)
class Rung:
    """One rung of a ladder: a ratio of the proof, by its name, and its limit."""

    ratio: Text
    limit: float
    said: Text


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


def sentence(template: str, label: str | None = None, **values: Any) -> Sentence:
    """A sentence from a template of `words`."""
    return Sentence(words(template, **values), label)


def note(template: str, **values: Any) -> Note:
    """A note from a template of `words`."""
    return Note(words(template, **values))


def facts(**named: Any) -> Facts:
    """Named values; an underscore in a name is a space, None leaves the row out.

    >>> len(facts(total="1.64", reason=None).rows)
    1
    """
    rows = ((name.replace("_", " "), value) for name, value in named.items() if value is not None)
    return Facts(tuple((words(name), as_text(value)) for name, value in rows))


def table(
    header: Sequence[Any], rows: Sequence[Sequence[Any]], title: str = "", **options: Any
) -> Table:
    """A table from words and values; None is an empty cell, a name of a column is a template."""
    cells = tuple(tuple(as_text("" if c is None else c) for c in row) for row in rows)
    names = tuple(words(h) if isinstance(h, str) else as_text(h) for h in header)
    return Table(names, cells, words(title), **options)
