"""Pieces of attention on plain arrays, as several claims compute them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from farfield.validation.harness.mechanism import Visibility


def softmax(scores: np.ndarray) -> np.ndarray:
    """The weights of rows of scores, shape (..., keys)."""
    with np.errstate(invalid="ignore"):
        w = np.exp(scores - scores.max(-1, keepdims=True))
    weights: np.ndarray = w / w.sum(-1, keepdims=True)
    return weights


def seen_by(visible: Visibility, length: int) -> np.ndarray:
    """Which keys each query of a row sees, shape (length, length)."""
    place = np.arange(length)
    seen: np.ndarray = np.asarray(visible.sees(place[:, None], place[None, :]))
    return seen


def reached(seen: np.ndarray, layers: int) -> int:
    """How many tokens the last query reaches through some layers, which all see alike.

    Args:
        seen: which keys each query sees, shape (T, T).
        layers: one or more.
    """
    return int((np.linalg.matrix_power(seen.astype(int), layers)[-1] > 0).sum())


def resolution(weights: Iterable[Any]) -> Any:
    """R [S, Eq. 4] of weights x_0 .. x_{N+1}: balls, fractions or floats."""
    x = list(weights)
    return sum(a * (a - b) for a, b in itertools.pairwise(x)) / sum(x[:-1]) ** 2


def turned(x: np.ndarray, place: np.ndarray, decay: float = 0.0) -> np.ndarray:
    """Pairs of coordinates rotated by their position, times zeta^(decay place) [S, Eq. 8].

    Args:
        x: rows of vectors, shape (T, d); the coordinates i and i + d/2 are a pair.
        place: the position of each row, shape (T,).
        decay: 0 is the rotation alone.
    """
    half = x.shape[-1] // 2
    angle = place[:, None] * 10_000.0 ** (-np.arange(half) / half)
    zeta = ((np.arange(half) / half + 0.4) / 1.4) ** (decay * place[:, None] / 512)
    a, b = x[:, :half], x[:, half:]
    c, s = np.cos(angle), np.sin(angle)
    return np.concatenate([(a * c - b * s) * zeta, (a * s + b * c) * zeta], axis=1)
