"""Statistics of measurements: rank correlations, intervals, proportions.

Thin views of SciPy that carry the sample size and the method along with every number. SciPy's
statistics take most of a second to load, so they are imported where they are called.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farfield.theory.answers.answer import InputError

_EXACT = 8  # pairs to which all permutations are tried


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's and Kendall's rank correlation of two lists.

    Fields:
        n: pairs.
        rho, rho_low, rho_high: Spearman's, with its 95 % percentile bootstrap interval over pairs.
        tau: Kendall's tau-b.
        p: two-sided, of rho; over all permutations to 8 pairs, else by the t approximation.
    """

    n: int
    rho: float
    rho_low: float
    rho_high: float
    tau: float
    p: float

    @property
    def spearman(self) -> tuple[float, float, float]:
        """Spearman's rho and its interval."""
        return self.rho, self.rho_low, self.rho_high

    def rho_text(self) -> str:
        """Spearman's rho with its interval.

        >>> RankCorrelation(5, 0.73, 0.438, 0.854, 0.5, 0.1).rho_text()
        '0.73 (0.44 to 0.85)'
        """
        return f"{self.rho:.2f} ({self.rho_low:.2f} to {self.rho_high:.2f})"


def rank_correlation(
    first: Sequence[float], second: Sequence[float], *, resamples: int = 2000, seed: int = 0
) -> RankCorrelation:
    """Rank correlations of two lists, Spearman's with a bootstrap interval.

    Args:
        first: at least three finite numbers, not all equal; infinite ones are allowed, since only
            the order counts.
        second: as many.
        resamples: of the pairs; those where one list is constant are left out.
        seed: of the draws.

    Raises:
        InputError: lists of different lengths, fewer than three pairs, or a constant list.

    >>> found = rank_correlation([1, 2, 3, 4, 5], [1, 2, 3, 5, 4])
    >>> round(found.rho, 2), round(found.tau, 2), round(found.p, 3)
    (0.9, 0.8, 0.083)
    """
    from scipy import stats

    a, b = (np.asarray(x, dtype=np.float64) for x in (first, second))
    if a.ndim != 1 or a.shape != b.shape or len(a) < 3:
        raise InputError(
            f"samples of shapes {a.shape} and {b.shape}; accepted: lists of the same length, at "
            "least 3"
        )
    if np.isnan([a, b]).any():
        raise InputError("a sample value is no number; accepted are numbers, infinite ones too")
    a, b, n = stats.rankdata(a), stats.rankdata(b), len(a)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        raise InputError("a constant list has no rank correlation; accepted: values that differ")
    rho, tau = float(stats.spearmanr(a, b).statistic), float(stats.kendalltau(a, b).statistic)
    if n <= _EXACT:
        p = stats.permutation_test(
            (a,),
            lambda x: np.corrcoef(x, b)[0, 1],
            permutation_type="pairings",
            n_resamples=np.inf,
            alternative="two-sided",
            vectorized=False,
        ).pvalue
    else:
        p = stats.spearmanr(a, b).pvalue
    low, high = interval(_rho, a, b, resamples=resamples, seed=seed)
    return RankCorrelation(n, rho, low, high, tau, float(p))


def rank_gain(
    first: Sequence[float], second: Sequence[float], target: Sequence[float]
) -> tuple[float, float, float]:
    """By how much the first list ranks a target better than the second: the difference of
    Spearman's rho, and its 95 % percentile bootstrap interval over the triples.

    >>> rank_gain([1, 2, 3, 4], [4, 3, 2, 1], [1, 2, 3, 4])
    (2.0, 2.0, 2.0)
    """

    def gain(a: np.ndarray, b: np.ndarray, c: np.ndarray, axis: int = -1) -> Any:
        return _rho(a, c, axis) - _rho(b, c, axis)

    a, b, c = (np.asarray(values, dtype=float) for values in (first, second, target))
    return float(gain(a, b, c)), *interval(gain, a, b, c, resamples=1000)


def interval(
    statistic: Callable[..., Any], *lists: np.ndarray, resamples: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """The 95 % percentile bootstrap interval of a statistic of lists that are drawn together.

    Args:
        statistic: of the lists, along `axis` where it has this argument.
        lists: of one length.
        resamples: how many draws; those where the statistic is no number are left out.
        seed: of the draws.
    """
    from scipy import stats

    with np.errstate(invalid="ignore"), warnings.catch_warnings(action="ignore"):
        drawn = stats.bootstrap(
            lists, statistic, paired=True, n_resamples=resamples, method="percentile", rng=seed
        ).bootstrap_distribution
    low, high = np.nanquantile(drawn, (0.025, 0.975))
    return float(low), float(high)


def _rho(a: np.ndarray, b: np.ndarray, axis: int = -1) -> Any:
    """Spearman's rank correlation along an axis: sums of half integers, which floats hold."""
    from scipy import stats

    middle = (a.shape[axis] + 1) / 2
    x, y = (stats.rankdata(values, axis=axis) - middle for values in (a, b))
    return (x * y).sum(axis) / np.sqrt((x * x).sum(axis) * (y * y).sum(axis))


def area_under_curve(score: Sequence[float], failing: Sequence[bool]) -> float:
    """The chance that one that fails has the higher score than one that does not; a tie is half.

    >>> area_under_curve([0.1, 0.4, 0.4], [False, True, False])
    0.75
    """
    from scipy import stats

    bad, good = ([s for s, f in zip(score, failing, strict=True) if f == kind] for kind in (1, 0))
    if not bad or not good:
        return math.nan
    return float(stats.mannwhitneyu(bad, good).statistic) / (len(bad) * len(good))


def proportion(right: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a proportion.

    >>> low, high = proportion(17, 25)
    >>> round(low, 2), round(high, 2)
    (0.48, 0.83)
    """
    from scipy import stats

    found = stats.binomtest(right, n).proportion_ci(method="wilson")
    return float(found.low), float(found.high)
