"""Modules that make the matrix of a row: from its length, scores, hidden states, queries and keys.

Each is run on a short row. What its matrix depends on beside positions is told by identities: it
adds to scores, multiplies or caps them, or sums gates of the content.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from farfield.theory.encodings.families import MASKED
from farfield.theory.encodings.layouts import floats
from farfield.theory.encodings.samples import (
    CAPPED,
    FACTOR,
    GROWING,
    LEAST,
    MIDDLE,
    NOISE,
    SHORT,
    OtherKind,
    Sample,
    Subject,
    Unfit,
    called,
    first_fitting,
    head_count,
    last_rows,
    sample_of_rows,
    values_of,
)

GATES = "gates of the content"
OWN = "queries, keys and positions"
VECTORS = "vectors of positions i and j"
HIDDEN = "hidden states"


def of_row(f: Subject, heads: int | None, how: str) -> Sample:
    """A module that gives the matrix of a row, from its length, its scores or its hidden states."""
    if sys.modules.get("torch") is None and "length" not in how:
        raise Unfit(f"called with {how}: no torch is loaded")
    count = heads or head_count(f) or (8 if how in ("heads and a length", OWN) else 1)
    if how != HIDDEN:
        rows = [_RowModule(f, how, count, size) for size in (MIDDLE, SHORT, LEAST)]
    else:
        weights = f.parameters() if hasattr(f, "parameters") else ()
        widths = dict.fromkeys(s for p in weights for s in tuple(p.shape)[::-1]) or (SHORT,)
        rows = [_RowModule(f, how, count, SHORT, width) for width in widths]
    return first_fitting(row.sample for row in rows)


@dataclass(frozen=True)
class _RowModule:
    """A module that gives the matrix of a row of `size` tokens, and how it is called.

    Fields:
        count: its heads.
        width: of hidden states.
    """

    f: Subject
    how: str
    count: int
    size: int
    width: int = 0

    def arguments(self, seed: int) -> tuple[Any, ...]:
        """Arguments; scores are 0 with seed 0, hidden states never."""
        if self.how == "heads and a length":
            return self.count, self.size
        if "length" in self.how:
            return (self.size,) * (1 if self.how == "a length" else 2)
        torch: Any = sys.modules["torch"]
        at = torch.arange(self.size)
        if self.how == VECTORS:
            return at, at
        random = torch.Generator().manual_seed(1 + seed)
        if self.how == OWN:
            return *torch.randn(2, 1, self.count, self.size, SHORT, generator=random), at, at
        if self.how == HIDDEN:
            return (torch.randn((1, self.size, self.width), generator=random),)
        scores = torch.randn((1, self.count, self.size, self.size), generator=random)
        return (scores * float(seed > 0),)

    def matrix(self, seed: int = 0, factor: float = 1.0) -> tuple[np.ndarray, str]:
        """The values, shape (heads, queries, keys), and their type; arguments times a factor."""
        how = self.how
        args = [a * factor if hasattr(a, "shape") else a for a in self.arguments(seed)]
        values, kind = values_of(called(self.f, how, *args), how)
        if how == HIDDEN and values.shape == tuple(args[0].shape):
            longer = np.linalg.norm(values, axis=-1) / np.linalg.norm(floats(args[0]), axis=-1)
            kept = _near(longer - 1, 1e-4)
            turns = "a rotation of queries and keys" if kept else "a map of the features"
            raise OtherKind(
                f"it is {turns}: this is not a bias of logits; see farfield encodings rope, or "
                "give what is added to the logits"
            )
        return _square(values, how, self.size), kind

    def sample(self) -> Sample:
        """What the matrix depends on, or its values in this row and in one half as long."""
        first, kind = self.matrix()
        rows = last_rows(first)
        is_bare = "length" in self.how or self.how == VECTORS  # no content is handed over
        if not is_bare and (content := self.content(first)):
            return sample_of_rows(rows, self.how, kind, content=content)
        half, _ = replace(self, size=self.size // 2).matrix()
        if len(half) != len(first):
            raise Unfit(f"called with {self.how}: the number of heads follows the length")
        return sample_of_rows([*rows, *last_rows(half)], self.how, kind)

    def content(self, zero: np.ndarray) -> str:
        """What a matrix depends on beside positions, by its defining identity; empty for a bias."""
        how = self.how
        seen = np.isfinite(zero) & (zero > MASKED)
        base = np.where(seen, zero, 0)

        def moved(seed: int, factor: float = 1.0) -> np.ndarray:
            return np.where(seen, self.matrix(seed, factor)[0], 0) - base

        a = moved(1)
        if not a.any():
            return ""
        if how == OWN or (how == HIDDEN and not _adds_gates(base, a + base, seen)):
            return f"the {how}"
        if how == HIDDEN:
            return GATES
        given = (floats(self.arguments(seed)[0])[0, :, -zero.shape[1] :] for seed in (1, 2))
        one, two = (np.where(seen, scores, 0) for scores in given)
        norms, kept = np.linalg.norm(a, axis=-1), np.linalg.norm(one, axis=-1)
        if _near(norms - kept, 2e-3) and not _near(np.abs(a) - np.abs(one), 1e-3):
            raise Unfit(f"called with {how}: it turns them")
        large = moved(1, 1024.0)  # of large scores, which a clamp changes alone
        if _near(a - one, 1e-4) and _near(large - 1024 * one, 0.1):
            return ""
        if np.abs(large).max() <= 50 * np.abs(a).max():
            return CAPPED
        past, size = seen & (np.abs(one) > 0.1), self.size
        factor = np.where(past, a / np.where(past, one, 1), 0)
        alone = _near(np.where(past, moved(2) - factor * two, 0), 0.1)  # of each score by itself
        if zero.shape[1] == 1 or not (alone and _near(large - 1024 * a, 0.5)):
            return f"the {how}"
        largest = np.abs(factor).max(axis=(0, 2))
        near, *far = [largest[q // 2 : q + 1].max() for q in (size // 8, size // 2, size)]
        return FACTOR if max(far) <= NOISE * near else GROWING


def _near(gap: np.ndarray, slack: float) -> bool:
    """Whether a difference is rounding everywhere."""
    return bool((np.abs(gap) <= slack).all())


def _adds_gates(zero: np.ndarray, other: np.ndarray, seen: np.ndarray) -> bool:
    """Whether each step to a nearer key adds what is the same for all queries, and never less than
    0, in a matrix of each of two contents."""
    past = np.tril(np.ones(zero.shape[1:], bool), -1)[:, :-1]
    for values in (zero, other):
        steps = np.diff(values)
        alike = _near(np.where(past, steps - steps[:, -1:], 0), 1e-4)
        if not (alike and (steps[:, past] >= -1e-6).all() and steps[:, past].any()):
            return False
    return True


def _square(values: np.ndarray, how: str, size: int) -> np.ndarray:
    """Heads of square matrices, or of one row."""
    shape = values.shape
    while values.ndim > 3 and values.shape[0] == 1:
        values = values[0]
    values = values[None] if values.ndim == 2 and values.shape[0] in (1, size) else values
    values = values[:, None] if values.ndim == 2 else values
    values = values[:, 0] if values.ndim == 4 and values.shape[1] == 1 else values
    rows = (size,) if how in (OWN, VECTORS) else (size, 1)  # with positions a query is a row
    if values.ndim != 3 or values.shape[2] != size or values.shape[1] not in rows:
        raise Unfit(f"called with {how}, {size}: it gives shape {shape}")
    return values
