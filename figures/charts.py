"""Charts: panels of lines as data, drawn in the house style, each name beside its line.

A figure is a sequence of panels; a panel holds its lines and what its axes show. No figure has a
legend: the names are in a column right of the frame, each as near to the end of its line as fits.
Where lines end at one place, their names follow the order of the lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.figure import Figure

from farfield.figures.style import COLUMN, INK, house, new_figure, plain_ticks, round_numbers

ROW = 1.25
"""Least distance of two names in a column, in sizes of their type."""


Values = Sequence[float] | np.ndarray
Area = tuple[float, float, str]
"""Left and right end of a stretch of a frame, and its colour."""
RULE: Any = {"color": "#888888", "linewidth": 0.8, "zorder": 0}
"""The look of what is drawn across a panel for comparison."""


@dataclass(frozen=True, eq=False)
class Named:
    """A line that is to carry its name: its points in data coordinates, in order.

    Fields:
        name: as it is read; empty for a line without one.
        x, y: its points.
        colour: of the line and its name.
        look: further options of matplotlib, such as its marker.
        band: the least and the greatest y at each x.
        told: whether its name is written.
    """

    name: str
    x: Values
    y: Values
    colour: str = INK
    look: Mapping[str, Any] = field(default_factory=dict)
    band: tuple[Values, Values] | None = None
    told: bool = True


def through(name: str, points: Any, colour: str = INK, **look: Any) -> Named:
    """A line through points, shape (points, 2); further options as its look."""
    x, y = np.asarray(points, float).reshape(-1, 2).T
    return Named(name, x, y, colour, look)


@dataclass(frozen=True)
class Panel:
    """Lines in one frame.

    Fields:
        lines: in the order of drawing.
        axes: what `Axes.set` takes: labels, scales, limits.
        x, y: plain ticks of a logarithmic axis; empty for round numbers, None for the usual ones.
        upright, level: values that are drawn through the frame for comparison.
        columns: points with their names in a column, by the column's place in the frame's width.
        areas: filled behind all lines, in place of a grid.
    """

    lines: Sequence[Named]
    axes: Mapping[str, Any]
    x: Sequence[float] | None = None
    y: Sequence[float] | None = None
    upright: Sequence[float] = ()
    level: Sequence[float] = ()
    columns: Mapping[float, Sequence[Named]] = field(default_factory=dict)
    areas: Sequence[Area] = ()


def charted(height: float, *panels: Panel, width: float = COLUMN) -> Figure:
    """Panels one above the other.

    Args:
        height: of the figure in inches.
        panels: from the top.
        width: in inches; a column of a paper has type of its size.
    """
    with house(column=width == COLUMN):
        figure, frames = new_figure(height, width, rows=len(panels))
        shown = list(zip(np.atleast_1d(frames), panels, strict=True))
        for axes, panel in shown:
            for line in panel.lines:
                axes.plot(line.x, line.y, label=line.name, color=line.colour, **line.look)
                if line.band:
                    shade = {"color": line.colour, "alpha": 0.18, "linewidth": 0}
                    axes.fill_between(line.x, *line.band, **shade)
            for at in panel.upright:
                axes.axvline(at, **RULE)
            for at in panel.level:
                axes.axhline(at, **RULE)
            axes.set(**panel.axes)
            for left, right, colour in panel.areas:
                axes.axvspan(left, right, color=colour, alpha=0.14, linewidth=0, zorder=0)
                axes.grid(False)
            for axis, ticks in ((axes.xaxis, panel.x), (axes.yaxis, panel.y)):
                if ticks is not None:
                    plain_ticks(axis, ticks or round_numbers(*axis.get_view_interval()))
        named = [(axes, [line for line in p.lines if line.told and line.name]) for axes, p in shown]
        name_lines(figure, *named)
        for axes, panel in shown:
            for at, points in panel.columns.items():
                name_points(axes, points, at)
    return figure


End = tuple[float, float, Named]
"""Where the visible part of a line ends, in the coordinates of the frame."""


def name_lines(figure: Any, *panels: tuple[Any, Sequence[Named]]) -> None:
    """Write the name of each line in a column right of its frame, at the height where it ends.

    Args:
        figure: the whole.
        panels: axes, with final scales and limits, and their lines.
    """
    layout = figure.get_layout_engine()
    layout.execute(figure)
    for axes, lines in panels:
        column(axes, [end for line in lines if (end := _end(axes, line))])
    layout.execute(figure)  # names beside the frames take room from them
    figure.set_layout_engine("none")  # all has its place


def name_points(axes: Any, points: Sequence[Named], at: float) -> None:
    """Write the names of single points in a column at a place of the frame's width."""
    placed = [_frame(axes).transform((p.x[0], p.y[0])) for p in points]
    column(axes, [(x, y, p) for (x, y), p in zip(placed, points, strict=True)], at)


def column(axes: Any, ends: Sequence[End], at: float = 1.03) -> list[Any]:
    """Names one above the other, as near to their lines as they fit; returns the artists."""
    gap = ROW * _size(axes) / axes.get_window_extent().height
    ends = sorted(ends, key=lambda end: (round(end[1] / gap), _height(axes, end[2])))
    heights = [end[1] for end in ends]
    for _ in range(200):  # neighbours that are too close push each other away
        for k in range(1, len(heights)):
            short = max(0.0, gap - (heights[k] - heights[k - 1]))
            heights[k - 1] -= short / 2
            heights[k] += short / 2
    heights = [max(height, gap * (k + 0.4)) for k, height in enumerate(heights)]
    drawn = []
    for (x, y, line), height in zip(ends, heights, strict=True):
        if abs(height - y) > gap / 2 or at - x > 0.05:
            leader = {"transform": axes.transAxes, "color": line.colour, "clip_on": False}
            drawn += axes.plot([x, at - 0.005], [y, height], linewidth=0.5, gid="leader", **leader)
        drawn.append(_write(axes, at, height, line))
    return drawn


def _frame(axes: Any) -> Any:
    return axes.transData + axes.transAxes.inverted()


def _end(axes: Any, line: Named) -> End | None:
    """The last visible point of a line; None where it is out of sight."""
    points = _frame(axes).transform(np.column_stack([line.x, line.y]))
    inside = points[((points >= -1e-9) & (points <= 1 + 1e-9)).all(axis=1)]
    return (float(inside[-1][0]), float(inside[-1][1]), line) if len(inside) else None


def _height(axes: Any, line: Named) -> float:
    """The mean height of a line in its frame."""
    points = _frame(axes).transform(np.column_stack([line.x, line.y]))
    return float(np.clip(points[:, 1], 0, 1).mean())


def _size(axes: Any) -> float:
    """The type of names in pixels."""
    return float(rcParams["legend.fontsize"] * axes.figure.dpi / 72)


def _write(axes: Any, x: float, y: float, line: Named) -> Any:
    size = rcParams["legend.fontsize"]
    look = {"transform": axes.transAxes, "color": line.colour, "fontsize": size, "va": "center"}
    return axes.text(x, y, line.name, clip_on=False, **look)
