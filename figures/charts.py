"""Charts: panels of lines as data, drawn in the house style, each name beside its line.

A figure is a sequence of panels; a panel holds its lines and what its axes show. No figure has a
legend. Where lines end apart, their names are in a column right of the frame. Elsewhere a name
stands along its line and touches no line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from farfield.figures.style import COLUMN, INK, house, new_figure, plain_ticks, round_numbers

ROW = 1.25
"""Least distance of two names in a column, in sizes of their type."""
LETTER = 0.62
"""Width of a letter, in sizes of the type."""
APART = 0.015
"""Lines whose ends are nearer than that, in heights of the frame, are named where they part."""
MANY = 1000
"""Points of a line that lie close enough as they are."""
CLEAR = 1.5
"""Pixels between a name and the nearest line."""


Values = Sequence[float] | np.ndarray
Area = tuple[float, float, float, float, str]
"""Left, right, bottom and top of a rectangle, and its colour."""
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
        columns: points whose names stand one above the other, by the place in the frame's width.
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
            for ink in dict.fromkeys(colour for *_, colour in panel.areas):
                own = [
                    ((a, c), (b, c), (b, d), (a, d)) for a, b, c, d, k in panel.areas if k == ink
                ]
                axes.grid(False)
                axes.add_collection(
                    PolyCollection(own, facecolor=ink, alpha=0.14, linewidth=0, zorder=0),
                    autolim=False,
                )
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
    """Write each name beside its line: in a column right of the frame where the lines that reach
    its right side end apart, else along the line where no line goes through it.

    Args:
        figure: the whole.
        panels: axes, with final scales and limits, and their lines.
    """
    layout = figure.get_layout_engine()
    layout.execute(figure)
    ends = {axes: [e for line in lines if (e := _end(axes, line))] for axes, lines in panels}
    beside = [e for found in ends.values() for e in found if e[0] > 0.98 and _alone(e, found)]
    while True:
        written = []
        for axes, found in ends.items():
            written += column(axes, [end for end in found if end in beside])
        layout.execute(figure)  # names beside the frames take room from them
        along = {
            axes: _along(axes, [e for e in found if e not in beside])
            for axes, found in ends.items()
        }
        lost = [
            e for axes, found in ends.items() for e in found if e not in (*beside, *along[axes])
        ]
        if not lost:
            break
        beside += lost
        for artist in written:
            artist.remove()
    for axes, places in along.items():
        for (*_, line), place in places.items():
            _write(axes, *place, line)
    figure.set_layout_engine("none")  # all has its place


def name_points(axes: Any, points: Sequence[Named], at: float) -> None:
    """Write the names of single points in a column at a place of the frame's width."""
    placed = [_frame(axes).transform((p.x[0], p.y[0])) for p in points]
    column(axes, [(x, y, p) for (x, y), p in zip(placed, points, strict=True)], at)


def column(axes: Any, ends: Sequence[End], at: float = 1.03) -> list[Any]:
    """Names one above the other, as near to their lines as they fit; returns what was drawn."""
    gap = ROW * _size(axes) / axes.get_window_extent().height
    ends = sorted(ends, key=lambda end: end[1])
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


def _along(axes: Any, ends: Sequence[End]) -> dict[End, tuple[float, float]]:
    """The place along each line that is nearest to it and farthest from others, and where no line
    is; of the lines that have one."""
    paths = {end: _path(axes, end[2]) for end in ends}
    ink = (
        np.concatenate([_dense(axes, shown) for shown in axes.lines]) if ends else np.empty((0, 2))
    )
    taken: list[Bbox] = []
    found: dict[End, tuple[float, float]] = {}
    for end, path in paths.items():
        others = [p for other, p in paths.items() if other is not end]
        rest = np.concatenate(others) if others else np.full((1, 2), np.inf)
        size, free = _size(axes), list[tuple[float, Bbox]]()
        for box in _places(axes, end[2], path):
            if any(map(box.overlaps, taken)) or _inside(box, ink):
                continue
            corners = np.array([box.min, box.max, (box.x0, box.y1), (box.x1, box.y0)])
            own, other = _distance(corners, path), _distance(corners, rest)
            if own < 0.8 * other:
                free.append((own - min(other, 3 * size) / 4, box))
        if free:
            _, box = min(free, key=lambda place: place[0])
            taken.append(box)
            middle = axes.transAxes.inverted().transform((box.x0, (box.y0 + box.y1) / 2))
            found[end] = (float(middle[0]), float(middle[1]))
    return found


def _places(axes: Any, line: Named, path: np.ndarray) -> Iterator[Bbox]:
    """Boxes of a name, from near to far and from the last quarter of its line to its beginning."""
    size, frame = _size(axes), axes.get_window_extent()
    width = LETTER * size * len(line.name)
    steps = path[np.linspace(0.97 * (len(path) - 1), 0, 60).astype(int)]
    for rise, (x, y), shift in product((0.9, -0.9, 1.5, -1.5, 2.4, -2.4), steps, (0.5, 1, 0)):
        low, left = y + rise * size - size / 2, x - shift * width
        box = Bbox.from_bounds(left, low, width, size)
        if frame.x0 + 2 < left and box.x1 < frame.x1 and frame.y0 + 2 < low and box.y1 < frame.y1:
            yield box


def _inside(box: Bbox, ink: np.ndarray) -> bool:
    """Whether a line goes through a box."""
    (x0, y0), (x1, y1), (x, y) = np.array(box.min) - CLEAR, np.array(box.max) + CLEAR, ink.T
    return bool(((x > x0) & (x < x1) & (y > y0) & (y < y1)).any())


def _distance(points: np.ndarray, path: np.ndarray) -> float:
    """The least of the distances from points to a path."""
    return float(np.hypot(*(points[:, None] - path[None]).transpose(2, 0, 1)).min())


def _path(axes: Any, line: Named) -> np.ndarray:
    """The visible points of a line in pixels, a few pixels apart."""
    return _sampled(axes, axes.transData.transform(np.column_stack([line.x, line.y])))


def _dense(axes: Any, shown: Any) -> np.ndarray:
    """The same of a line that is drawn."""
    points = shown.get_transform().transform(shown.get_xydata())
    return _sampled(axes, points, joined=shown.get_linestyle() != "None")


def _sampled(axes: Any, points: np.ndarray, joined: bool = True) -> np.ndarray:
    known = np.isfinite(points).all(axis=1)
    found = [points[known]]
    for a, b in pairwise(points) if joined and len(points) <= MANY else ():
        if np.isfinite([a, b]).all():  # no line goes over a gap
            parts = np.linspace(0, 1, 2 + int(min(4000, np.hypot(*(b - a)) / 2)))[1:-1, None]
            found.append(a + parts * (b - a))
    every = np.concatenate(found)
    frame = axes.get_window_extent()
    seen = every[((every > frame.min - 1) & (every < frame.max + 1)).all(axis=1)]
    return seen if len(seen) else every[-1:]


def _frame(axes: Any) -> Any:
    return axes.transData + axes.transAxes.inverted()


def _end(axes: Any, line: Named) -> End | None:
    """The last visible point of a line; None where it is out of sight."""
    points = _frame(axes).transform(np.column_stack([line.x, line.y]))
    inside = points[((points >= -1e-9) & (points <= 1 + 1e-9)).all(axis=1)]
    return (float(inside[-1][0]), float(inside[-1][1]), line) if len(inside) else None


def _alone(end: End, ends: Sequence[End]) -> bool:
    """Whether no other line ends at the same place."""
    return all(
        other is end or abs(other[0] - end[0]) > 0.02 or abs(other[1] - end[1]) > APART
        for other in ends
    )


def _size(axes: Any) -> float:
    """The type of names in pixels."""
    return float(rcParams["legend.fontsize"] * axes.figure.dpi / 72)


def _write(axes: Any, x: float, y: float, line: Named) -> Any:
    size = rcParams["legend.fontsize"]
    look = {"transform": axes.transAxes, "color": line.colour, "fontsize": size, "va": "center"}
    return axes.text(x, y, line.name, clip_on=False, **look)
