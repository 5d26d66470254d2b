"""Charts of answers: their first curve, and the biases that an inspection saw."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from farfield.figures.charts import Named, Panel, charted
from farfield.figures.exhibit import Data, saved
from farfield.figures.style import COLOURS, INK, NO, YES
from farfield.theory.answers.answer import InputError, Result
from farfield.theory.answers.blocks import Curve, Line
from farfield.theory.encodings.families import visible
from farfield.theory.encodings.inspection import DRAWN, BiasInspection

WIDTH = 6.4
"""Of a figure, in inches."""


def curve_of(answer: Result) -> Figure:
    """The first curve among the blocks of an answer.

    Raises:
        InputError: it has none.
    """
    curve = next((block for block in answer.blocks() if isinstance(block, Curve)), None)
    if curve is None:
        kind = type(answer).__name__
        raise InputError(f"a {kind} has no curve; accepted: farfield.plot(FORMULA, what=...)")
    lines = [
        Named(line.name, line.x, line.y, _ink(line, place), told=line.told)
        for place, line in enumerate(curve.lines)
    ]
    axes: dict[str, Any] = {"xlabel": curve.x_name, "ylabel": curve.y_name, "title": curve.title}
    axes |= {f"{axis}scale": "log" for axis in "xy" if getattr(curve, f"log_{axis}")}
    if curve.frame is not None:
        axes["ylim"] = curve.frame
    posts, marks = ([at for _, at in named] for named in (curve.posts, curve.marks))
    return charted(4.2, Panel(lines, axes, upright=posts, level=marks), width=WIDTH)


def _ink(line: Line, place: int) -> str:
    """The colour of a line: its verdict's, its place's in the palette, or the next one's."""
    if isinstance(line.colour, str):
        return {"converges": YES, "diverges": NO}.get(line.colour, INK)
    return COLOURS[(place if line.colour is None else line.colour) % len(COLOURS)]


def save_inspection(found: BiasInspection, path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Draw the biases that an inspection saw, where they mask nothing, with their data as CSV.

    Raises:
        InputError: as `saved`.
    """
    rows = (
        (head, distance, float(value))
        for head, values in enumerate(found.table[:, :DRAWN], 1)
        for distance, value in enumerate(values)
        if visible(value)
    )
    data = Data(("head", "distance", "bias"), tuple(rows))
    return saved(curve_of(found), path, data, "bias", f"{found.subject}: {found.findings[0]}.")
