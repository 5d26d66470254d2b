"""Masks and biases drawn as the cells of a matrix: query rows, key columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from farfield.figures.style import INK
from farfield.theory.answers.writers.svg import COLOURS

SEEN, NEAR = "#888888", COLOURS[0]


def cells(
    axes: Any,
    seen: np.ndarray,
    label: Callable[[int, int], str] | None = None,
    colour: str = SEEN,
    accent: np.ndarray | None = None,
) -> None:
    """Draw a boolean matrix, row 0 on top: seen keys filled, others empty.

    Args:
        axes: where.
        seen: shape (queries, keys).
        label: the text of a seen cell.
        colour: of the seen cells.
        accent: cells to fill in another colour.
    """
    queries, keys = seen.shape
    for i in range(queries):
        for j in range(keys):
            if seen[i, j]:
                strong = accent is not None and accent[i, j]
                axes.add_patch(_square(i, j, NEAR if strong else colour, 0.65 if strong else 0.4))
                if label is not None:
                    axes.text(j, i, label(i, j), ha="center", va="center")
    for k in range(max(queries, keys) + 1):
        line = {"color": INK, "alpha": 0.25, "linewidth": 0.4}
        if k <= queries:
            axes.plot([-0.5, keys - 0.5], [k - 0.5] * 2, **line)
        if k <= keys:
            axes.plot([k - 0.5] * 2, [-0.5, queries - 0.5], **line)
    axes.set(xlim=(-0.6, keys - 0.4), ylim=(queries - 0.4, -0.6), aspect="equal")
    axes.grid(False)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def _square(i: int, j: int, colour: str, alpha: float) -> Any:
    return Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor=colour, alpha=alpha, linewidth=0)


def positions(queries: int, keys: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Query positions as a column and key positions as a row, from 0."""
    i, j = np.ogrid[:queries, : keys or queries]
    return i, j
