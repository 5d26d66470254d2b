"""How the words of the papers are read, the same way in every check.

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
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

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


def drift(values: Mapping[int, float], trained: int) -> float:
    """The largest relative change beyond the training length, in either direction."""
    return max(abs(v / values[trained] - 1) for n, v in values.items() if n > trained)


def falls(values: Mapping[int, float]) -> bool:
    """Whether every longer row has a lower value."""
    row = [values[n] for n in sorted(values)]
    return all(b < a for a, b in itertools.pairwise(row))


def stays(values: Mapping[int, float], tolerance: float) -> bool:
    """Whether all values lie within the tolerance of the least."""
    return max(values.values()) / min(values.values()) - 1 < tolerance


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's rank correlation; 0 where all of one are equal.

    >>> round(rank_correlation([1, 2, 3, 4], [1, 2, 4, 3]), 2)
    0.8
    """
    from scipy.stats import spearmanr

    if min(len(set(first)), len(set(second))) < 2:
        return 0.0
    return float(spearmanr(first, second).statistic)


def by_chance(first: Sequence[float], second: Sequence[float], draws: int = 2000) -> float:
    """The share of orders of `second` whose rank correlation with `first` is at least as large;
    of all orders of up to six values, else of seeded draws with the order itself among them."""
    from scipy import stats

    ranks = stats.rankdata(first)
    return float(
        stats.permutation_test(
            (stats.rankdata(second),),
            lambda order, axis: (order * ranks).sum(axis=axis),
            permutation_type="pairings",
            alternative="greater",
            n_resamples=draws if len(ranks) > 6 else math.inf,
            rng=0,
        ).pvalue
    )
