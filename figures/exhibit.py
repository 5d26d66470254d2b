"""A drawn exhibit of a paper: its `Data`, its caption, its files, its lines in words for the blind.

Drawing an exhibit returns a `Drawing`, whose data are written as CSV beside the figure. An exhibit
that shows measurements and has no results cannot be drawn: it names the command that makes them.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import sympy
from matplotlib.figure import Figure

from farfield.figures.document import Fold, Item, Picture, piece
from farfield.figures.style import FORMATS, rendered, svg
from farfield.theory.answers.answer import InputError, Result, plain
from farfield.theory.answers.blocks import Block, Note, Sentence, Table, table
from farfield.theory.answers.notation import code, words
from farfield.theory.files import write


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

    def table(self, title: str = "") -> Table:
        """The data as a block; columns of numbers align right, columns of words left, and empty
        ones are left out."""
        cells = [list(map(_cell, column)) for column in zip(*self.rows, strict=True)]
        used = [k for k, column in enumerate(cells) if any(column)]
        numeric = tuple(j for j, k in enumerate(used) if all(_numeric(r[k]) for r in self.rows))
        rows = [[_unbroken(cells[k][j]) for k in used] for j in range(len(self.rows))]
        return table([self.columns[k] for k in used], rows, title, numeric=numeric)


def _numeric(cell: Any) -> bool:
    """Whether a cell holds a number, or a text that begins with one, or nothing."""
    return not isinstance(cell, str) or not cell or cell.lstrip("-−<>≤≥~ ")[:1].isdigit()


def _unbroken(cell: str) -> str:
    """A cell, which keeps to its line where it is short."""
    return cell if len(cell) > SHORT else cell.replace(" ", "\u00a0")


SHORT = 14
"""Letters of a cell that is not broken."""


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (int, str, Fraction, sympy.Rational)):
        return str(value)
    return format(float(value), ".10g")


@dataclass(frozen=True, repr=False)
class Drawing(Result):
    """A drawn exhibit: its data, its caption and, unless it is a table, the figure.

    A table whose data are one line a cell has `shown`: the same laid out for reading. A caption
    begins with what there is to see; `made` tells how it was made. In both, code is between
    backticks. `beside` has the numbers that the paper prints of a figure, and ours.
    """

    data: Data
    caption: str
    figure: Figure | None = None
    shown: Data | None = None
    made: str = ""
    beside: Table | None = None

    @property
    def table(self) -> Data:
        """What to show of a table."""
        return self.shown or self.data

    def blocks(self) -> Sequence[Block]:
        told: list[Block] = [Sentence(code(self.caption))]
        told += [] if self.figure is not None else [self.table.table()]
        told += [self.beside] if self.beside else []
        return [*told, *([Note(code(self.made))] * bool(self.made))]

    def fields(self) -> dict[str, Any]:
        return {
            "caption": self.caption,
            "made": self.made,
            "columns": self.data.columns,
            "rows": plain(self.data.rows),
        }

    def items(self, title: str = "", drawn: str = "", kind: str | None = None) -> list[Item]:
        """The drawing with its caption, for a page.

        Args:
            title: what it shows, in a few words.
            drawn: the figure as inline SVG, where it was rendered before.
            kind: of the exhibit, which the caption ends with.
        """
        caption = code(self.caption)
        made: list[Item] = [Fold(words("How it was made"), [Note(code(self.made))])]
        if self.figure is None:
            return [Sentence(caption, kind), self.table.table(), *made * bool(self.made)]
        alt = f"{title or 'A figure'}. {seen(self.figure)}".strip()
        picture = Picture(drawn or svg(self.figure, title or "drawing"), caption, alt, kind)
        return [picture, *([self.beside] if self.beside else []), *made * bool(self.made)]

    def _repr_html_(self) -> str:
        return piece(self.items()[: None if self.figure is None else 1])


def saved(
    figure: Figure, path: str | os.PathLike[str], data: Data, name: str, description: str
) -> tuple[Path, Path]:
    """A figure as a file of the kind that its ending names, with its data as CSV beside it.

    Raises:
        InputError: another ending, or a file that cannot be written.
    """
    place = Path(path)
    kind = place.suffix.lower().lstrip(".")
    if kind not in FORMATS:
        raise InputError(f"{str(path)!r}: accepted are names that end with .{', .'.join(FORMATS)}")
    write(place, rendered(figure, kind, name, description))
    write(place.with_suffix(".csv"), data.csv().encode())
    return place, place.with_suffix(".csv")


def seen(figure: Figure) -> str:
    """The named lines of a figure with their ends, for those who cannot see it."""
    parts = []
    across = [axes.get_xlabel() for axes in figure.axes if axes.get_xlabel()]
    for axes in figure.axes:
        lines = [
            f"{line.get_label()} from {y[0]:.3g} at {x[0]:.3g} to {y[-1]:.3g} at {x[-1]:.3g}"
            for line in axes.lines
            if not str(line.get_label()).startswith("_")
            and len(x := np.asarray(line.get_xdata(), float)) > 1
            and len(y := np.asarray(line.get_ydata(), float)) > 1
        ]
        if lines:
            named = f"{axes.get_ylabel()} by {(axes.get_xlabel() or (across or ['x'])[-1])}"
            parts.append(f"{named}: {'; '.join(lines)}.")
    return " ".join(parts)


class NoResults(InputError):
    """An exhibit has no results to show; the message names the command that makes them."""


def told(*parts: str) -> str:
    """Sentences in a row, those that are empty left out."""
    return " ".join(part for part in parts if part)


def rows(*columns: Any) -> tuple[tuple[Any, ...], ...]:
    """The rows of a table that is given by its columns."""
    return tuple(zip(*columns, strict=True))
