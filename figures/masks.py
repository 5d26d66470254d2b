"""Masks and biases drawn as the cells of a matrix: query rows, key columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap

from farfield.figures.style import INK
from farfield.theory.answers.writers.svg import COLOURS

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


def positions(queries: int, keys: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Query positions as a column and key positions as a row, from 0."""
    i, j = np.ogrid[:queries, : keys or queries]
    return i, j
