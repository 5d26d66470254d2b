"""What a call of a user's code gives: a `Sample`, rows of queries, float64 values; its time limit.

A call ends after `CALL_S`, and gets arrays of its own, since a function may write into them.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from sympy import Expr

from farfield.theory.algebra.door import Interrupted, after, watched
from farfield.theory.answers.errors import InputError
from farfield.theory.encodings.branches import PROBED, powers
from farfield.theory.encodings.layouts import floats

CALL_S, PATIENCE = 10.0, 3
LONG, MIDDLE, SHORT, LEAST = 4096, 512, 64, 16
FAR = np.array(sorted(k for k in set(powers(PROBED)) if k > LONG))
"""Distances beyond the table, and positions of queries, at which a function is asked too."""
MAX_HEADS = 128
FACTOR = "a bounded factor of the content logit"
GROWING = "a factor of the content logit that grows with the row"
CAPPED = "a bounded function of the content logit"
NOISE = 1.01  # times, of a factor of the content that is the same in short and long rows
_HEADS = ("heads", "num_heads", "n_heads", "n_head", "num_attention_heads", "H", "nheads")
T = TypeVar("T")
Subject = Callable[..., object]


@dataclass(frozen=True)
class QueryRow:
    """The keys of one query: their distances, negative after the query, and the biases there, of
    shape (heads, distances)."""

    query: int
    distances: np.ndarray
    values: np.ndarray

    @property
    def is_dense(self) -> bool:
        """Whether every key up to the query was asked."""
        return int((self.distances >= 0).sum()) == self.query + 1

    def at(self, distance: int) -> np.ndarray:
        """The biases of a key, one a head."""
        return self.values[:, self.distances == distance][:, 0]


@dataclass(frozen=True)
class Sample:
    """Values of a bias where it was asked.

    Fields:
        distances: ascending from 0.
        values: of the longest row there, float64, shape (heads, distances).
        how: the call, in words.
        kind: the type of the values, as `float32`.
        formulas: of each head, where every path was followed.
        content: what of the content the result depends on; empty where on nothing.
        why: why it was not followed.
        ends: what happens beyond the last position, where something does.
        rows: those of all queries that were asked; none of a function of the distance.
        twice: whether a second call has to show that it gives the same.
    """

    distances: np.ndarray
    values: np.ndarray
    how: str
    kind: str = "float64"
    formulas: tuple[Expr, ...] = ()
    content: str = ""
    why: str = ""
    ends: str = ""
    rows: tuple[QueryRow, ...] = ()
    twice: bool = True

    @property
    def all_values(self) -> np.ndarray:
        """What was seen of each head."""
        return np.concatenate([self.values, *(row.values for row in self.rows)], axis=1)


class Unfit(Exception):
    """A way of calling that an object does not take, and why."""


class OtherKind(Unfit):
    """It was called, and it is something else than a bias."""


def first_fitting(attempts: Iterable[Callable[[], T]]) -> T:
    """What the first attempt gives that fits; else why the first and the last do not."""
    why, named = list[str](), None
    for attempt in attempts:
        try:
            return attempt()
        except Unfit as error:
            why.append(str(error))
            named = error if isinstance(error, OtherKind) else named
    if named is not None:
        raise named
    raise Unfit("; ".join(dict.fromkeys((why[0], why[-1]))) if why else "nothing fits")


def called(f: Subject, how: str, *args: object) -> object:
    """What a call gives; Unfit with what it raised."""
    arguments = [_own(a) for a in args]
    try:
        return watched(after(CALL_S, PATIENCE), lambda: f(*arguments))
    except Interrupted:
        raise InputError(f"a call with {how} did not end within {CALL_S:g} s") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever a function raises on what it is given
        reason = str(error).splitlines()[0][:80] if str(error) else type(error).__name__
        raise Unfit(f"called with {how}: {reason}") from None


def _own(given: object) -> object:
    copied = getattr(given, "clone", getattr(given, "copy", lambda: given))
    return copied()


def values_of(result: object, how: str) -> tuple[np.ndarray, str]:
    """Values and their type; truth is a mask."""
    if isinstance(result, (list, tuple)) and result:
        if len(result) > 2 * LONG:  # more than there are positions; each is read for itself
            raise Unfit(f"called with {how}: it gives {len(result)} items in a list")
        each = [values_of(one, how) for one in result]
        if len({one.shape for one, _ in each}) == 1:
            return np.stack([one for one, _ in each]), each[0][1]
    kind = str(getattr(result, "dtype", type(result).__name__)).rpartition(".")[2]
    try:
        values = floats([] if result is None else result)
    except (ValueError, OverflowError):  # of whole numbers beyond all floats
        values = np.array([])
    if not values.size:
        raise Unfit(f"called with {how}: it gives {kind}, no real numbers")
    return (np.where(values != 0, 0.0, -np.inf) if kind == "bool" else values), kind


def sample_of_rows(rows: list[QueryRow], how: str, kind: str, **seen: Any) -> Sample:
    """Rows of several lengths, the longest of which is compared with the others."""
    longest = max(rows, key=lambda row: row.query)
    order = np.argsort(longest.distances)[np.sort(longest.distances) >= 0]
    distances, values = longest.distances[order], longest.values[:, order]
    several = tuple(rows) if len(rows) > 1 else ()
    return Sample(distances, values, how, kind, rows=several, **seen)


def rows_of_matrix(queries: np.ndarray, values: np.ndarray) -> list[QueryRow]:
    """Rows of queries, all with the keys 0, 1, ...; values of shape (heads, queries, keys)."""
    keys = np.arange(values.shape[2])
    return [QueryRow(int(q), q - keys, values[:, place]) for place, q in enumerate(queries)]


def last_rows(matrix: np.ndarray) -> list[QueryRow]:
    """A matrix as rows of the last queries."""
    _, queries, size = matrix.shape
    return rows_of_matrix(np.arange(size - queries, size), matrix)


def head_count(f: Subject) -> int | None:
    """The number of heads that an object says: an attribute, or a number that it closes over."""
    counts = [getattr(f, name, None) for name in _HEADS]
    with contextlib.suppress(TypeError):
        outer = inspect.getclosurevars(f)
        counts += [{**outer.globals, **outer.nonlocals}.get(name) for name in _HEADS]
    return next((x for x in counts if isinstance(x, int) and 0 < x <= 1024 and x is not True), None)
