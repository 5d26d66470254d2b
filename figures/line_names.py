"""Names at the ends of lines, in place of a legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib import rcParams

GAP = 0.055
"""Least distance of two names in a column, in heights of the frame."""
LEAST = 0.02
"""The lowest height of a name, so that it keeps clear of an axis."""


@dataclass(frozen=True)
class Named:
    """A line that is to carry its name: its points in data coordinates, in order."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str


End = tuple[float, float, Named]
"""Where the visible part of a line ends, in the coordinates of the frame."""


def name_lines(axes: Any, lines: Sequence[Named]) -> None:
    """Write each name where its line ends: beside the frame where it reaches its right side, in a
    row within it where the line leaves through the top or the bottom. Scales and limits of the axes
    are final."""
    to_frame = axes.transData + axes.transAxes.inverted()
    beside: list[End] = []
    crossing: list[End] = []
    for line in lines:
        points = to_frame.transform([*zip(line.x, line.y, strict=True)])
        inside = [(x, y) for x, y in points if -1e-9 <= x <= 1 + 1e-9 and -1e-9 <= y <= 1 + 1e-9]
        if not inside:
            continue
        last = inside[-1]
        (beside if last[0] > 0.98 else crossing).append((*last, line))
    column(axes, beside)
    for above in (False, True):
        _rows(axes, [end for end in crossing if (end[1] > 0.5) == above], above)


def _text(axes: Any, x: float, y: float, line: Named, **options: Any) -> None:
    axes.text(
        x,
        y,
        line.name,
        transform=axes.transAxes,
        color=line.colour,
        fontsize=rcParams["legend.fontsize"],
        clip_on=False,
        **options,
    )


def name_points(axes: Any, points: Sequence[Named], at: float) -> None:
    """Write the names of single points in a column at a place of the frame's width."""
    to_frame = axes.transData + axes.transAxes.inverted()
    placed = [to_frame.transform((p.x[0], p.y[0])) for p in points]
    column(axes, [(x, y, p) for (x, y), p in zip(placed, points, strict=True)], at)


def column(axes: Any, ends: list[End], at: float = 1.03) -> None:
    """Names one above the other, as near to their lines as they fit."""
    ends.sort(key=lambda end: end[1])
    heights = [end[1] for end in ends]
    for _ in range(200):  # neighbours that are too close push each other away
        moved = False
        for k in range(1, len(heights)):
            short = GAP - (heights[k] - heights[k - 1])
            if short > 1e-6:
                heights[k - 1] -= short / 2
                heights[k] += short / 2
                moved = True
        if not moved:
            break
    heights = [max(height, LEAST + GAP * k) for k, height in enumerate(heights)]
    for (x, y, line), height in zip(ends, heights, strict=True):
        if abs(height - y) > GAP / 2 or at - x > GAP:
            axes.plot(
                [x, at - 0.005],
                [y, height],
                transform=axes.transAxes,
                color=line.colour,
                linewidth=0.5,
                clip_on=False,
            )
        _text(axes, at, height, line, va="center")


def _rows(axes: Any, ends: list[End], above: bool) -> None:
    """Names within the frame, in as few rows as keep them apart."""
    full: list[float] = []  # where the last name of each row ends
    for k, (x, _, line) in enumerate(sorted(ends, key=lambda end: end[0])):
        width = 0.0165 * len(line.name) + 0.02
        free = k == 0 and x > width  # nothing lies before the first
        start = x - 0.012 if free else min(x + 0.012, 1.0)
        row = next((r for r, end in enumerate(full) if end <= start), len(full))
        full[row : row + 1] = [x if free else start + width]
        height = 0.03 + row * GAP
        _text(
            axes,
            start,
            1 - height if above else height,
            line,
            va="center",
            ha="right" if free else "left",
        )
