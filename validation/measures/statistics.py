"""Statistics of repeated measurements: paired tests, effect sizes, bootstrap, rank correlations.

Thin views of SciPy that carry the sample size and the method along with every number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from farfield.theory.results import InputError, Result

_EXACT = 8  # pairs to which all permutations are tried
_BLOCK = 1 << 18  # numbers of the resamples held at a time


@dataclass(frozen=True)
class PairedTest(Result):
    """A two-sided paired t-test, as [C, Table 3] over five seeds.

    Fields:
        n: pairs.
        difference: mean of the first less the second, with its 95 % interval `low` to `high`.
        t, p: the statistic and the two-sided p-value.
        effect: Cohen's d of the differences, with Hedges' correction for few pairs; None where
            they do not vary.
        alpha: level of `significant`.
    """

    n: int
    difference: float
    low: float
    high: float
    t: float
    p: float
    effect: float | None
    alpha: float = 0.05

    @property
    def significant(self) -> bool:
        """Whether `p` is below `alpha`."""
        return self.p < self.alpha

    def text(self) -> str:
        said = "significant" if self.significant else "not significant"
        effect = "" if self.effect is None else f", effect {self.effect:.2f}"
        return (
            f"difference {self.difference:.4g} ({self.low:.4g} to {self.high:.4g}, 95 %), "
            f"t({self.n - 1}) = {self.t:.2f}, p = {self.p:.2g}{effect}: {said} at {self.alpha:g} "
            f"[measured, n = {self.n} pairs]"
        )


def paired_test(first: Sequence[float], second: Sequence[float], alpha: float = 0.05) -> PairedTest:
    """A two-sided paired t-test of two lists of measurements, pair by pair (the same seeds).

    Args:
        first: at least two finite numbers.
        second: as many.
        alpha: level, between 0 and 1.

    Raises:
        InputError: lists of different lengths, fewer than two pairs, or numbers that are none.

    >>> print(paired_test([3.1, 3.3, 3.2], [3.0, 3.1, 3.1]))
    difference 0.1333 (-0.01009 to 0.2768, 95 %), t(2) = 4.00, p = 0.057, effect 1.32: not ...
    """
    a, b = _pairs(first, second, 2)
    d = a - b
    mean, spread, n = float(d.mean()), float(d.std(ddof=1)), len(d)
    if spread <= 1e-12 * max(abs(mean), float(np.abs(a).max())):
        same = abs(mean) <= 1e-12 * float(np.abs(a).max())
        return PairedTest(
            n, mean, mean, mean, 0.0 if same else math.copysign(math.inf, mean),
            1.0 if same else 0.0, None, alpha,
        )  # fmt: skip
    found = stats.ttest_rel(a, b)
    interval = found.confidence_interval(0.95)
    hedges = 1 - 3 / (4 * (n - 1) - 1)
    return PairedTest(
        n, mean, float(interval.low), float(interval.high), float(found.statistic),
        float(found.pvalue), hedges * mean / spread, alpha,
    )  # fmt: skip


@dataclass(frozen=True)
class Interval(Result):
    """A statistic of a sample with its bootstrap interval.

    Fields:
        value: of the sample.
        low, high: bounds at `level`, bias-corrected and accelerated.
        n: sample size.
        level: coverage meant.
    """

    value: float
    low: float
    high: float
    n: int
    level: float

    def text(self) -> str:
        return (
            f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g}, {self.level:.0%}) "
            f"[measured, n = {self.n}]"
        )


def bootstrap(
    sample: Sequence[float],
    statistic: Callable[..., float] = np.mean,
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """The bias-corrected and accelerated bootstrap interval of a statistic.

    Args:
        sample: at least two finite numbers.
        statistic: of an array along `axis`.
        level: coverage, between 0 and 1.
        resamples: how many.
        seed: of the draws.

    Raises:
        InputError: fewer than two numbers, or numbers that are none.

    >>> print(bootstrap([1.0, 2.0, 3.0, 4.0]))
    2.5 (1.5 to 3.5, 95%) [measured, n = 4]
    """
    x, _ = _pairs(sample, sample, 2)
    value = float(statistic(x, axis=-1))
    if np.ptp(x) == 0:
        return Interval(value, value, value, len(x), level)
    found = stats.bootstrap(
        (x,), statistic, n_resamples=resamples, confidence_level=level, method="BCa",
        rng=np.random.default_rng(seed),
    ).confidence_interval  # fmt: skip
    return Interval(value, float(found.low), float(found.high), len(x), level)


@dataclass(frozen=True)
class RankCorrelation(Result):
    """Spearman's and Kendall's rank correlation of two lists.

    Fields:
        n: pairs.
        rho, rho_low, rho_high: Spearman's, with its 95 % percentile bootstrap interval over pairs.
        tau, tau_low, tau_high: Kendall's tau-b, likewise.
        p: two-sided, of rho; over all permutations to 8 pairs, else by the t approximation.
        exact: whether `p` is over all permutations.
    """

    n: int
    rho: float
    rho_low: float
    rho_high: float
    tau: float
    tau_low: float
    tau_high: float
    p: float
    exact: bool

    def text(self) -> str:
        return (
            f"Spearman's rho = {self.rho:.2f} ({self.rho_low:.2f} to {self.rho_high:.2f}), "
            f"Kendall's tau = {self.tau:.2f} ({self.tau_low:.2f} to {self.tau_high:.2f}), "
            f"p = {self.p:.2g} [measured, n = {self.n}, 95 %]"
        )


def rank_correlation(
    first: Sequence[float], second: Sequence[float], *, resamples: int = 2000, seed: int = 0
) -> RankCorrelation:
    """Rank correlations of two lists with bootstrap intervals.

    Args:
        first: at least three finite numbers, not all equal; infinite ones are allowed, since only
            the order counts.
        second: as many.
        resamples: of the pairs; those where one list is constant are left out.
        seed: of the draws.

    Raises:
        InputError: lists of different lengths, fewer than three pairs, or a constant list.

    >>> found = rank_correlation([1, 2, 3, 4, 5], [1, 2, 3, 5, 4])
    >>> round(found.rho, 2), round(found.tau, 2), round(found.p, 3), found.exact
    (0.9, 0.8, 0.083, True)
    """
    a, b = _pairs(first, second, 3, infinite=True)
    a, b = stats.rankdata(a), stats.rankdata(b)
    n = len(a)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        raise InputError("a constant list has no rank correlation; accepted: values that differ")
    rho, tau = float(stats.spearmanr(a, b).statistic), float(stats.kendalltau(a, b).statistic)
    if n <= _EXACT:
        p = stats.permutation_test(
            (a,), lambda x: np.corrcoef(x, b)[0, 1], permutation_type="pairings",
            n_resamples=np.inf, alternative="two-sided", vectorized=False,
        ).pvalue  # fmt: skip
    else:
        p = stats.spearmanr(a, b).pvalue
    random = np.random.default_rng(seed)
    drawn: list[np.ndarray] = []
    for picks in np.array_split(
        random.integers(n, size=(resamples, n)), -(-resamples * n // _BLOCK)
    ):
        x, y = (stats.rankdata(values[picks], axis=1) for values in (a, b))
        kept = (np.ptp(x, axis=1) > 0) & (np.ptp(y, axis=1) > 0)
        drawn.append(np.array([_rho(x[kept], y[kept]), _tau(x[kept], y[kept])]))
    low, high = np.quantile(np.concatenate(drawn, axis=1), (0.025, 0.975), axis=1)
    return RankCorrelation(
        n, rho, float(low[0]), float(high[0]), tau, float(low[1]), float(high[1]), float(p),
        n <= _EXACT,
    )  # fmt: skip


def _rho(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Pearson's correlation of each row."""
    x, y = (v - v.mean(1, keepdims=True) for v in (x, y))
    return np.asarray((x * y).sum(1) / np.sqrt((x * x).sum(1) * (y * y).sum(1)))


def _tau(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Kendall's tau-b of each row, over the pairs at each offset in turn."""
    both = first = second = np.zeros(len(x))
    for offset in range(1, x.shape[1]):
        s = np.sign(x[:, offset:] - x[:, :-offset])
        t = np.sign(y[:, offset:] - y[:, :-offset])
        both, first, second = both + (s * t).sum(1), first + (s * s).sum(1), second + (t * t).sum(1)
    return np.asarray(both / np.sqrt(first * second))


def _pairs(
    first: Sequence[float], second: Sequence[float], least: int, *, infinite: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    a, b = (np.asarray(x, dtype=np.float64) for x in (first, second))
    if a.ndim != 1 or a.shape != b.shape or len(a) < least:
        raise InputError(
            f"samples of shapes {a.shape} and {b.shape}; accepted: lists of the same length, at "
            f"least {least}"
        )
    for x in (a, b):
        bad = np.isnan(x) if infinite else ~np.isfinite(x)
        if bad.any():
            raise InputError(f"sample value {x[bad][0]}; accepted are finite numbers")
    return a, b
