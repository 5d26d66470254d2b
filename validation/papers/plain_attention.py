"""Attention on plain arrays, and verdicts with checked proofs, as several claims compute them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from farfield.numerics.masks import Mask
from farfield.theory.convergence import Convergence, check_convergence
from farfield.theory.encodings import Encoding


def softmax(scores: np.ndarray) -> np.ndarray:
    """The weights of rows of scores, shape (..., keys)."""
    with np.errstate(invalid="ignore"):
        w = np.exp(scores - scores.max(-1, keepdims=True))
    weights: np.ndarray = w / w.sum(-1, keepdims=True)
    return weights


def seen_by(visible: Mask, length: int) -> np.ndarray:
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


def turned(x: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Pairs of coordinates rotated by their position.

    Args:
        x: rows of vectors, shape (T, d); the coordinates i and i + d/2 are a pair.
        place: the position of each row, shape (T,).
    """
    half = x.shape[-1] // 2
    angle = place[:, None] * 10_000.0 ** (-np.arange(half) / half)
    a, b, c, s = x[:, :half], x[:, half:], np.cos(angle), np.sin(angle)
    return np.concatenate([a * c - b * s, a * s + b * c], axis=1)


@lru_cache(maxsize=64)
def decided(bias: str | Encoding, **options: Any) -> Convergence:
    """The verdict on a bias."""
    return check_convergence(bias, **options)


def by_head(bias: str | Encoding, **options: Any) -> list[str]:
    """The verdict on each head of a bias."""
    found = decided(bias, **options)
    return [str(h.verdict) for h in found.heads or (found,)]


def of_layer(bias: str | Encoding, **options: Any) -> str:
    """The verdict on a layer: it diverges as soon as one head does.

    >>> of_layer("alibi", heads=8)
    'converges'
    """
    heads, order = by_head(bias, **options), ("diverges", "undecided", "conditional", "converges")
    return next((v for v in order if v in heads), "undecided")
