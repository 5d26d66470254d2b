"""How claims read words such as falls, stays, explodes, about x: as tests of numbers, always alike.

* *stays*, *stable*, *keeps*, *extrapolates*: perplexity rises by less than the tolerance at every
  tested length beyond the training length ([Q, Definition 0.1], an increase alone counts).
* *about x*: rounds to `x` at its last digit that is not a trailing zero of an integer.
* *falls*, *grows*, *lower*: strictly, at every step that was printed or measured.
* *very large*, *explodes*, *rapidly*: by 1 and more, relative to the training length. [Q] measures
  the same for what does not extrapolate (`>> 1` after Eq. 6).
* *trend*: rank correlation that chance gives in less than one of twenty orders.

A statement about an encoding, without a scale, is judged by any model with that encoding, and the
entry names the scale; a number of particular models is judged at their scale alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import numpy as np

EXPLODES = 1.0
BY_CHANCE = 0.05


def about(value: float | Fraction, printed: str) -> bool:
    """Whether a number is about a printed one.

    >>> about(39.1, "40"), about(1.76, "1.5"), about(0.66, "0.3")
    (True, False, False)
    """
    whole, _, digits = printed.partition(".")
    zeros = 0 if digits else len(whole) - len(whole.rstrip("0"))
    unit = Fraction(10) ** (zeros - len(digits))
    return bool(abs(Fraction(value) - Fraction(printed)) <= unit / 2)


def increase(values: Mapping[int, float], trained: int) -> float:
    """The largest relative increase beyond the training length; negative where all are lower."""
    return max(v for n, v in values.items() if n > trained) / values[trained] - 1


def increases(columns: Mapping[str, Mapping[int, float]], trained: int) -> dict[str, float]:
    """The increase of each column."""
    return {name: increase(curve, trained) for name, curve in columns.items()}


def falls(values: Iterable[float]) -> bool:
    """Whether every value is below the one before.

    >>> falls([3, 2, 1]), falls([3, 2, 2])
    (True, False)
    """
    return all(b < a for a, b in itertools.pairwise(values))


def rises(values: Iterable[float]) -> bool:
    """Whether every value is above the one before."""
    return falls(-v for v in values)


def stays(values: Iterable[float], tolerance: float) -> bool:
    """Whether all values lie within the tolerance of the least."""
    row = list(values)
    return max(row) / min(row) - 1 < tolerance


def crosses(values: Iterable[float], limit: float) -> bool:
    """Below the limit at first, and from some place on not any more.

    >>> crosses([0, 1, 5], 1), crosses([0, 1, 0], 1)
    (True, False)
    """
    lost = [v >= limit for v in values]
    return lost == sorted(lost) and not lost[0] and lost[-1]


def opposed(first: Mapping[str, float], second: Mapping[str, float]) -> list[str]:
    """The pairs of names that two quantities put in opposite order.

    >>> opposed({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 3, "c": 2})
    ['b, c']
    """
    pairs = itertools.combinations(first, 2)
    return [f"{a}, {b}" for a, b in pairs if (first[a] - first[b]) * (second[a] - second[b]) < 0]


def _ranks(values: Sequence[float]) -> np.ndarray:
    """From 1; equal values share the mean of theirs."""
    order = np.sort(values)
    below, up_to = (np.searchsorted(order, values, side) for side in ("left", "right"))
    ranks: np.ndarray = (below + up_to + 1) / 2
    return ranks


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's rank correlation; 0 where all of one are equal.

    >>> round(rank_correlation([1, 2, 3, 4], [1, 2, 4, 3]), 2)
    0.8
    """
    if min(len(set(first)), len(set(second))) < 2:
        return 0.0
    return float(np.corrcoef(_ranks(first), _ranks(second))[0, 1])


def by_chance(first: Sequence[float], second: Sequence[float], draws: int = 2000) -> float:
    """The share of orders of `second` whose rank correlation with `first` is at least as large;
    of all orders of up to six values, else of seeded draws with the order itself among them.

    >>> round(1 / by_chance([1, 2, 3, 4], [1, 2, 3, 4]))
    24
    """
    a, b = _ranks(first), _ranks(second)
    if len(a) <= 6:
        orders = np.array([*itertools.permutations(b)])
    else:
        random = np.random.default_rng(0)
        orders = np.vstack([b, random.permuted(np.tile(b, (draws, 1)), axis=1)])
    return float((orders @ a >= a @ b - 1e-9).mean())
