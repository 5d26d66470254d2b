r"""A certificate at run time from a sample of the keys that are dropped, beside the worst case.

`row_bound` bounds every dropped key by the largest, `N e^M`. Most are far below it. Draw `m` of
the `N` dropped keys without replacement. Their weights over the kept weight `Z` have the mean `a`
and the standard deviation `s`, and `b = e^M / Z` bounds each. By the empirical Bernstein-Serfling
inequality (Bardenet and Maillard 2015, Theorem 4.3), the dropped keys weigh at most

    U = N (a + s sqrt(2 r log(5/delta) / m) + (7/3 + 3/sqrt 2) b log(5/delta) / m)

over `Z`, with probability `1 - delta` over the draw; `r` is `1 - (m - 1)/N` up to `m = N/2`, and
`(1 - m/N)(1 + 1/m)` beyond. So the output moves by at most `2 V U / (1 + U)`. If all are drawn, `U`
is their weight. Selecting keys by the sample's variance is vAttention's idea (2510.05688); its
bound comes from a normal distribution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from farfield.numerics.arrays import floats
from farfield.numerics.windows.row_bound import window_certificate
from farfield.theory.answers.answer import Label, Result
from farfield.theory.answers.blocks import Block, facts, note, sentence
from farfield.theory.answers.number import decimal, inside, natural, plural

RANGE = 7 / 3 + 3 / math.sqrt(2)
"""The inequality's factor of the range."""


@dataclass(frozen=True, repr=False)
class SampledCertificates(Result):
    """Bounds for each row of one head, from a sample of its dropped keys.

    Fields:
        window, sinks, error: as of `RowCertificates`.
        samples: keys that are drawn a row, at most.
        delta: the probability, a row, that a bound does not hold.
        bound: of the change of the output, a row; float64, shape (rows,); 0 where nothing is
            dropped, never above the worst case.
        share: of the rows that drop keys, how many are within the error.
        worst: the same share by the worst case alone, which always holds.
        label: `approximate`: computed in float64, true with probability `1 - delta`.
    """

    window: int
    sinks: int
    error: float
    samples: int
    delta: float
    bound: np.ndarray = field(compare=False)
    share: float
    worst: float
    label: Label = Label.APPROXIMATE

    def blocks(self) -> Sequence[Block]:
        return (
            sentence(
                "With {samples} drawn a row, a window of {window} with {sinks} holds for {share} "
                "of the rows that drop keys at an error of {error}, by the worst case for {worst}.",
                self.label,
                samples=plural(self.samples, "dropped key"),
                window=plural(self.window, "token"),
                sinks=plural(self.sinks, "sink"),
                share=f"{self.share:.1%}",
                error=decimal(self.error),
                worst=f"{self.worst:.1%}",
            ),
            facts(rows=len(self.bound), probability_a_row=f"{1 - self.delta:.6g}"),
            note("One head, one layer, before the output projection, in float64."),
        )


def sampled_certificate(
    query: object,
    keys: object,
    *,
    window: object,
    error: object,
    samples: object = 256,
    delta: object = "1/100",
    sinks: object = 0,
    value_bound: object = 1,
    scale: object = None,
    seed: int = 0,
) -> SampledCertificates:
    """Bound what a window changes in single rows of a head, from a sample of what it drops.

    Args:
        query: of one causal head, after any rotation; shape (rows, size).
        keys: as many, at the same positions.
        window: nearest keys that are kept, the row's own included, at least 1.
        error: the budget for the change of the output, positive.
        samples: dropped keys that are drawn a row, without replacement, at least 2.
        delta: the probability, a row, that its bound does not hold, between 0 and 1.
        sinks: first keys that are also kept.
        value_bound: a bound V of ||v||, positive.
        scale: of the logits; 1/sqrt(size) where nothing is said.
        seed: of the draws.

    Raises:
        InputError: as `window_certificate`; samples or delta out of range.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> q, k = rng.normal(size=(2, 2048, 8))
    >>> found = sampled_certificate(q, k, window=256, error="3/2", samples=128)
    >>> found.worst < found.share
    True
    """
    count, chance = natural(samples, "samples", 2), float(inside(delta, "delta", "(0, 1)"))
    certain = window_certificate(
        query,
        keys,
        window=window,
        sinks=sinks,
        error=error,
        value_bound=value_bound,
        scale=scale,
    )
    q, k = (floats(x, what, "an array") for x, what in ((query, "query"), (keys, "keys")))
    factor = (
        1 / math.sqrt(q.shape[1]) if scale is None else float(inside(scale, "scale", "(0, oo)"))
    )
    most = 2 * float(inside(value_bound, "value_bound", "(0, oo)"))
    order = np.random.default_rng(seed).permutation(len(k))
    bound = certain.bound.copy()
    first, width = certain.sinks, certain.window
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(k, axis=1)
        for row in range(first + width, len(q)):
            begin = row - width + 1  # the first key of the window; sinks .. begin - 1 are dropped
            drawn = order[(order >= first) & (order < begin)][:count]
            kept = np.concatenate([k[:first], k[begin : row + 1]]) @ q[row] * factor
            total = np.logaddexp.reduce(kept)
            weights = np.exp(k[drawn] @ q[row] * factor - total)
            largest = np.exp(norms[first:begin].max() * np.linalg.norm(q[row]) * factor - total)
            if np.isfinite([total, largest]).all():
                outside = dropped_weight(weights, begin - first, largest, chance)
                bound[row] = np.fmin(bound[row], most * outside / (1 + outside))  # oo/oo is nan
    dropping = np.arange(len(q)) >= first + width
    share = float((bound[dropping] <= certain.error).mean()) if dropping.any() else 1.0
    return SampledCertificates(
        width, first, certain.error, count, chance, bound, share, certain.share
    )


def dropped_weight(sample: np.ndarray, population: int, largest: float, delta: float) -> float:
    """What a population weighs at most, with probability `1 - delta` over the draw of a sample.

    Args:
        sample: weights drawn without replacement, from 0 to `largest`.
        population: how many there are.
        largest: a bound of each.
        delta: the probability that this fails.

    >>> dropped_weight(np.array([1.0, 2.0]), 2, 5.0, 0.1)
    3.0
    """
    m, n = len(sample), population
    if m == n:
        return float(sample.sum())
    ratio = 1 - (m - 1) / n if 2 * m <= n else (1 - m / n) * (1 + 1 / m)
    log = math.log(5 / delta)
    spread = float(sample.std()) * math.sqrt(2 * ratio * log / m)
    return n * (float(sample.mean()) + spread + RANGE * largest * log / m)
