"""Statistics of repeated measurements: paired tests, effect sizes, rank correlations.

Thin views of SciPy that carry the sample size and the method along with every number. SciPy's
statistics take most of a second to load, so they are imported where they are called.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farfield.theory.answers.answer import InputError, Label, Result
from farfield.theory.answers.blocks import Block, note, sentence

_EXACT = 8  # pairs to which all permutations are tried
_BLOCK = 1 << 18  # numbers of the resamples held at a time


@dataclass(frozen=True, repr=False)
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

    def blocks(self) -> Sequence[Block]:
        said = "significant" if self.significant else "not significant"
        effect = "" if self.effect is None else f", effect {self.effect:.2f}"
        return (
            sentence(
                "The difference is {difference} ({low} to {high}, 95 %), {said} at {alpha}.",
                Label.MEASURED,
                difference=f"{self.difference:.4g}",
                low=f"{self.low:.4g}",
                high=f"{self.high:.4g}",
                said=said,
                alpha=f"{self.alpha:g}",
            ),
            note(
                "t({freedom}) = {t}, p = {p}{effect}, n = {n} pairs.",
                freedom=self.n - 1,
                t=f"{self.t:.2f}",
                p=f"{self.p:.2g}",
                effect=effect,
                n=self.n,
            ),
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
    The difference is 0.1333 (-0.01009 to 0.2768, 95 %), not significant at 0.05.  [measured]
      t(2) = 4.00, p = 0.057, effect 1.32, n = 3 pairs.
    """
    from scipy import stats

    a, b = _pairs(first, second, 2)
    d, rounding = a - b, 1e-12 * float(np.abs(a).max())
    mean, spread, n = float(d.mean()), float(d.std(ddof=1)), len(d)
    if spread <= max(1e-12 * abs(mean), rounding):
        same = abs(mean) <= rounding
        t, p = (0.0, 1.0) if same else (math.copysign(math.inf, mean), 0.0)
        return PairedTest(n, mean, mean, mean, t, p, None, alpha)
    found = stats.ttest_rel(a, b)
    low, high = map(float, found.confidence_interval(0.95))
    effect = (1 - 3 / (4 * (n - 1) - 1)) * mean / spread
    return PairedTest(
        n, mean, low, high, float(found.statistic), float(found.pvalue), effect, alpha
    )


@dataclass(frozen=True, repr=False)
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

    def blocks(self) -> Sequence[Block]:
        tau = interval_text((self.tau, self.tau_low, self.tau_high))
        return (
            sentence(
                "Spearman's rho is {rho}, Kendall's tau {tau}, p = {p}, n = {n}.",
                Label.MEASURED,
                rho=self.rho_text(),
                tau=tau,
                p=f"{self.p:.2g}",
                n=self.n,
            ),
        )

    def rho_text(self) -> str:
        """Spearman's rho with its interval."""
        return interval_text((self.rho, self.rho_low, self.rho_high))


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
    from scipy import stats

    a, b = _pairs(first, second, 3, infinite=True)
    a, b = stats.rankdata(a), stats.rankdata(b)
    n = len(a)
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
    random = np.random.default_rng(seed)
    drawn: list[np.ndarray] = []
    for picks in np.array_split(
        random.integers(n, size=(resamples, n)), -(-resamples * n // _BLOCK)
    ):
        x, y = (stats.rankdata(values[picks], axis=1) for values in (a, b))
        kept = (np.ptp(x, axis=1) > 0) & (np.ptp(y, axis=1) > 0)
        drawn.append(np.array([_rho(x[kept], y[kept]), _tau(x[kept], y[kept])]))
    bounds = np.quantile(np.concatenate(drawn, axis=1), (0.025, 0.975), axis=1)
    (rho_low, tau_low), (rho_high, tau_high) = bounds.tolist()
    return RankCorrelation(n, rho, rho_low, rho_high, tau, tau_low, tau_high, float(p), n <= _EXACT)


def rank_gain(
    first: Sequence[float],
    second: Sequence[float],
    target: Sequence[float],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> tuple[float, float, float]:
    """By how much the first list ranks a target better than the second: the difference of
    Spearman's rho, and its 95 % percentile bootstrap interval over the triples.

    >>> rank_gain([1, 2, 3, 4], [4, 3, 2, 1], [1, 2, 3, 4])
    (2.0, 2.0, 2.0)
    """
    from scipy import stats

    a, b, c = (np.asarray(x, dtype=float) for x in (first, second, target))
    random = np.random.default_rng(seed)

    def gap(pick: np.ndarray) -> float:
        x, y, z = a[pick], b[pick], c[pick]
        if min(len(set(x)), len(set(y)), len(set(z))) < 2:
            return math.nan
        return float(stats.spearmanr(x, z).statistic - stats.spearmanr(y, z).statistic)

    drawn = [gap(random.integers(len(a), size=len(a))) for _ in range(resamples)]
    low, high = np.nanquantile(drawn, (0.025, 0.975))
    return gap(np.arange(len(a))), float(low), float(high)


def area_under_curve(score: Sequence[float], failing: Sequence[bool]) -> float:
    """The chance that one that fails has the higher score than one that does not; a tie is half.

    >>> area_under_curve([0.1, 0.4, 0.4], [False, True, False])
    0.75
    """
    bad = np.array([s for s, f in zip(score, failing, strict=True) if f])
    good = np.array([s for s, f in zip(score, failing, strict=True) if not f])
    if not len(bad) or not len(good):
        return math.nan
    gaps = np.subtract.outer(bad, good)
    return float((gaps > 0).mean() + (gaps == 0).mean() / 2)


def proportion(right: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a proportion.

    >>> low, high = proportion(17, 25)
    >>> round(low, 2), round(high, 2)
    (0.48, 0.83)
    """
    from scipy import stats

    found = stats.binomtest(right, n).proportion_ci(method="wilson")
    return float(found.low), float(found.high)


def interval_text(value: tuple[float, float, float]) -> str:
    """A number with its interval.

    >>> interval_text((0.73, 0.438, 0.854))
    '0.73 (0.44 to 0.85)'
    """
    return f"{value[0]:.2f} ({value[1]:.2f} to {value[2]:.2f})"


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
