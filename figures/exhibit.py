"""An exhibit: a figure or a table of a paper, with the data it shows and what it says of them.

A paper's module lists its exhibits; drawing one returns a `Drawing`, whose data are written as
CSV beside the figure. An exhibit that shows measurements and has no results cannot be drawn: it
names the command that makes them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import Any

import sympy
from matplotlib.figure import Figure

from farfield.figures.style import svg
from farfield.theory.answers.answer import InputError

KINDS = ("theory", "schematic", "published", "measured")


@dataclass(frozen=True)
class Data:
    """What a drawing shows: named columns of numbers and words.

    >>> print(Data(("n", "b"), ((0, 1.0), (1, None))).csv(), end="")
    n,b
    0,1
    1,
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{len(row)} cells in a table of {len(self.columns)} columns")

    def csv(self) -> str:
        """The data as CSV; floats with 10 digits, the same text on every machine."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_cell(v) for v in row] for row in self.rows)
        return buffer.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (int, str, Fraction, sympy.Rational)):
        return str(value)
    return format(float(value), ".10g")


def in_html(text: str) -> str:
    """Plain text as HTML, with code where it stands between backticks.

    >>> in_html("run `a < b`")
    'run <code>a &lt; b</code>'
    """
    parts = escape(text).split("`")
    return "".join(f"<code>{p}</code>" if k % 2 else p for k, p in enumerate(parts))


@dataclass(frozen=True)
class Drawing:
    """A drawn exhibit: its data, its caption and, unless it is a table, the figure.

    A table whose data are one line a cell has `shown`: the same laid out for reading.
    """

    data: Data
    caption: str
    figure: Figure | None = None
    shown: Data | None = None

    @property
    def table(self) -> Data:
        """What to show of a table."""
        return self.shown or self.data

    def _repr_html_(self) -> str:
        if self.figure is not None:
            caption = f"<figcaption>{in_html(self.caption)}</figcaption>"
            return f"<figure>{svg(self.figure, 'drawing')}{caption}</figure>"
        lines = [[_cell(v) for v in row] for row in (self.table.columns, *self.table.rows)]
        head, *body = ["".join(f"<td>{escape(c)}</td>" for c in line) for line in lines]
        rows = "".join(f"<tr>{line}</tr>" for line in body)
        return (
            f"<table><thead><tr>{head.replace('td>', 'th>')}</tr></thead><tbody>{rows}</tbody>"
            f"</table><p>{in_html(self.caption)}</p>"
        )


@dataclass(frozen=True)
class Exhibit:
    """A figure or table of a paper.

    Fields:
        id: `paper.figN` or `paper.tableN`.
        title: what it shows, in a few words.
        kind: one of `KINDS`; a table whose printed numbers stand beside ours is `published`.
        draw: makes the drawing; of a measured one from the results it is given.
    """

    id: str
    title: str
    kind: str
    draw: Callable[..., Drawing]


class Missing(InputError):
    """An exhibit has no results to show; the message names the command that makes them."""


def rows(*columns: Any) -> tuple[tuple[Any, ...], ...]:
    """The rows of a table that is given by its columns."""
    return tuple(zip(*columns, strict=True))
