"""Matrices of query rows and key columns: masks and biases as cells, biases as heat maps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from farfield.figures.style import COLOURS, INK, house, new_figure

SEEN, NEAR = "#888888", COLOURS[0]


def cells(
    axes: Any,
    seen: np.ndarray,
    label: Callable[[int, int], str] | None = None,
    accent: np.ndarray | None = None,
) -> None:
    """Draw a boolean matrix, row 0 on top: seen keys filled, others empty.

    Args:
        axes: where.
        seen: shape (queries, keys).
        label: the text of a seen cell.
        accent: cells to fill in another colour.
    """
    shades = ListedColormap([(0, 0, 0, 0), (SEEN, 0.4), (NEAR, 0.65)])
    kinds = seen * (1 if accent is None else 1 + accent)
    places = (np.arange(size + 1) - 0.5 for size in seen.T.shape)
    look = {"edgecolors": [(INK, 0.25)], "linewidth": 0.4, "vmin": 0, "vmax": 2}
    axes.pcolormesh(*places, kinds, cmap=shades, **look)
    if label is not None:
        for i, j in np.argwhere(seen):
            axes.text(j, i, label(i, j), ha="center", va="center")
    queries, keys = seen.shape
    axes.set(xlim=(-0.6, keys - 0.4), ylim=(queries - 0.4, -0.6), aspect="equal")
    axes.grid(False)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def mask_panels(
    height: float,
    masks: Mapping[str, np.ndarray],
    rows: str = "query position",
    accent: np.ndarray | None = None,
) -> tuple[Figure, Any]:
    """Masks side by side, each below its title; the figure and its frames."""
    with house(column=True):
        figure, frames = new_figure(height, columns=len(masks))
        for axes, (title, seen) in zip(frames, masks.items(), strict=True):
            cells(axes, seen, accent=accent)
            axes.set(title=title, xlabel="key position")
        frames[0].set_ylabel(rows)
    return figure, frames


def spans(masks: Mapping[str, np.ndarray], start: int = 0) -> Iterator[tuple[str, int, int, int]]:
    """Mask, query, first and last key of each row, with positions from `start`."""
    for name, seen in masks.items():
        for query, row in enumerate(seen, start):
            yield name, query, int(np.argmax(row)) + start, query


def heat_map(axes: Any, values: np.ndarray, **look: Any) -> Any:
    """The image of a bias by distance, keys after the query left out; further options of
    matplotlib."""
    i, j = positions(len(values))
    axes.grid(False)
    image = np.ma.masked_where(j > i, values[np.abs(i - j)])
    return axes.imshow(image, cmap="cividis", **look)


def positions(queries: int, keys: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Query positions as a column and key positions as a row, from 0."""
    i, j = np.ogrid[:queries, : keys or queries]
    return i, j
