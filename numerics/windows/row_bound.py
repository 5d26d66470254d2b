r"""A certificate at run time from the largest key that is dropped, for any softmax mechanism.

`Z` is the kept weight of a row: its window, its sinks, a learned constant. The row drops `N` keys
whose logits are at most `M`. With `G = log Z - M`, the output moves by at most

    2 V N / (N + e^G).

That is attained where there is no learned constant. `log Z` is the log-sum-exp that a kernel
returns, `M <= |q| max |k_dropped| / sqrt(d)` takes one running number. A row is certified at error
eta if `N <= eta' e^G`, `eta' = eta/(2 V - eta)`. No hypothesis on the encoding: rotations, absolute
vectors, gates and biases are all in the logits of the keys that are kept.

The bounds hold for the exact sums, whatever the order in which float64 adds them. Rows and keys are
scaled by powers of 2, which is exact, so that no product overflows. With unit roundoff `u`, a dot
product of size d and the product of two norms are off by at most `(d + 8) u |q| |k|` each (Higham,
Accuracy and Stability, 3.1). The log-sum-exp of m logits adds at most `(m + 1600) u`. `_margin`
takes three times that off the gap `G - log N`. A row that this leaves open is decided in balls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
from flint import arb, fmpq

from farfield.numerics.arrays import ROUNDOFF, TINY, floats
from farfield.theory.answers.answer import InputError, Label, Result
from farfield.theory.answers.blocks import Block, facts, note, sentence
from farfield.theory.answers.number import decimal, exact, natural, plural
from farfield.theory.functions.balls import outward, precision, rational

CHUNK = 256  # query rows at a time, which bounds the memory
LEAST_POWER = -1074  # of 2, of a float64
LARGEST = 10**300  # of budgets, bounds and scales, and the inverse of the least
BITS = (128, 1024, 16384)  # of the balls that decide an open row; the last hold every product
MAX_PRODUCTS = 10**6  # in balls, for all open rows of a call


@dataclass(frozen=True, repr=False)
class RowCertificates(Result):
    """Certified bounds for each row of one head.

    Fields:
        window, sinks: keys that are kept: the nearest, and the first.
        error: the budget.
        bound: of the change of the output, a row; float64, shape (rows,), 0 where nothing is
            dropped. At most 2 V, which holds for every row.
        certified: whether it is within the budget, shape (rows,).
        share: of the rows that drop keys, how many are certified; 1 where none drops any.
        label: `certified`: an inequality for this row's own numbers, true under every rounding.
    """

    window: int
    sinks: int
    error: float
    bound: np.ndarray = field(compare=False)
    certified: np.ndarray = field(compare=False)
    share: float
    label: Label = Label.CERTIFIED

    def blocks(self) -> Sequence[Block]:
        dropping = self.bound[self.bound > 0]
        middle = None if not len(dropping) else decimal(float(np.median(dropping)), 3)
        return (
            sentence(
                "A window of {window} with {sinks} is certified for {share} of the rows that drop "
                "keys, at an error of {error}.",
                self.label,
                window=plural(self.window, "token"),
                sinks=plural(self.sinks, "sink"),
                share=f"{self.share:.1%}",
                error=decimal(self.error),
            ),
            facts(rows=len(self.bound), rows_that_drop_keys=len(dropping), median_bound=middle),
            note("One head, one layer, before the output projection; rounding is accounted for."),
        )


def window_certificate(
    query: object,
    keys: object,
    *,
    window: object,
    sinks: object = 0,
    error: object,
    value_bound: object = 1,
    scale: object = None,
) -> RowCertificates:
    """Certify a window for single rows of a head, from its queries and keys alone (ours).

    Args:
        query: of one causal head, after any rotation; shape (rows, size), NumPy or torch, any real
            dtype of at most 64 bits. Its numbers are taken to be exact.
        keys: as many, at the same positions, shape (rows, size).
        window: nearest keys that are kept, the row's own included, at least 1.
        sinks: first keys that are also kept.
        error: the budget eta for the change of the output, positive.
        value_bound: a bound V of ||v||, positive.
        scale: of the logits; 1/sqrt(size) where nothing is said.

    Raises:
        InputError: arrays that are misshapen, masked, complex, not finite, or hold no numbers;
            numbers out of range.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> answer = window_certificate(rng.normal(size=(64, 8)), rng.normal(size=(64, 8)), window=32,
    ...                            sinks=4, error="1/2")
    >>> bool(answer.certified[:36].all()), bool(answer.bound[:36].max() == 0)
    (True, True)
    """
    q, k = _array(query, "query"), _array(keys, "keys")
    if q.shape != k.shape:
        raise InputError(
            f"query has shape {q.shape}, keys {k.shape}; accepted: the same shape (rows, size)"
        )
    w, first = natural(window, "window"), natural(sinks, "sinks", 0)
    eta, value = _in_range(error, "error"), _in_range(value_bound, "value_bound")
    factor = fmpq(1, q.shape[1]) if scale is None else _in_range(scale, "scale") ** 2
    asked = _HeadRows(q, k, w, first, factor, 2 * value)
    moved, least = asked.bounds()
    budget = outward(arb(eta))[0]
    left = MAX_PRODUCTS
    for row in np.flatnonzero((least <= budget) & (moved > budget)).tolist():
        longest = asked.longest(row)
        left -= q.shape[1] * (w + first + len(longest) + row // 16)
        if left < 0:
            break
        moved[row] = min(moved[row], asked.in_balls(row, longest, eta))
    certified = (moved <= budget) | (2 * value <= eta)
    dropping = np.arange(len(q)) >= w + first
    share = float(certified[dropping].mean()) if dropping.any() else 1.0
    return RowCertificates(w, first, float(exact(error)), moved, certified, share)


def _in_range(given: object, what: str) -> fmpq:
    """A positive rational number that float64 holds with room."""
    number = exact(given, what)
    if number > LARGEST or number * LARGEST < 1:
        raise InputError(
            f"{what} {str(given)[:40]}: accepted are positive numbers from 1e-300 to 1e300"
        )
    return rational(number)


@dataclass(frozen=True)
class _HeadRows:
    """The rows of one head: the kept keys, and bounds of the change by the others.

    Args:
        q, k: queries and keys, shape (rows, size).
        window, sinks: keys that are kept.
        factor: the square of the factor of the logits.
        most: 2 V.
    """

    q: np.ndarray
    k: np.ndarray
    window: int
    sinks: int
    factor: fmpq
    most: fmpq

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """An upper bound of 2 V N / (N + e^G) of each row, and an estimate from below."""
        rows, size = self.q.shape
        q, of_q = _scaled(self.q)
        k, of_k = _scaled(self.k)
        norms = np.ldexp(np.sqrt((k * k).sum(axis=1)), of_k - of_k.max())
        k = np.ldexp(k, (of_k - of_k.max())[:, None])
        lengths = np.sqrt((q * q).sum(axis=1))
        with precision(64):
            scale = float(arb(self.factor).sqrt().mid())
        with np.errstate(over="ignore"):
            scales = np.ldexp(scale, of_q + of_k.max())
        # the greatest norm among dropped keys: positions sinks .. i - window, a running maximum
        farthest = np.maximum.accumulate(norms[self.sinks :])
        largest = np.maximum.accumulate(norms)
        upper, lower = np.zeros(rows), np.zeros(rows)
        for start in range(self.window + self.sinks, rows, CHUNK):
            at = np.arange(start, min(start + CHUNK, rows))
            dropped = at - self.window + 1 - self.sinks  # positions sinks .. at - window
            with np.errstate(over="ignore", invalid="ignore"):
                log_z = self._log_kept(q, k, at, scales)
                reach = scales[at] * lengths[at]
                gap = log_z - reach * farthest[dropped - 1] - np.log(dropped)
                kept = self.window + self.sinks
                margin = _margin(size, kept, reach * largest[at]) + TINY * size * (1 + scales[at])
                upper[at] = self._moved(gap - margin, 1 + 32 * ROUNDOFF)
                lower[at] = self._moved(gap + margin, 1 - 32 * ROUNDOFF)
        most = outward(arb(self.most))[1]
        return np.where(upper <= most, upper, most), np.nan_to_num(lower)

    def _log_kept(
        self, q: np.ndarray, k: np.ndarray, at: np.ndarray, scales: np.ndarray
    ) -> np.ndarray:
        """log Z of rows that drop keys."""
        low = at[0] - self.window + 1
        position = np.arange(low, at[-1] + 1)
        seen = (position <= at[:, None]) & (position > at[:, None] - self.window)
        near = (q[at] @ k[low : at[-1] + 1].T) * scales[at, None]
        early = (q[at] @ k[: self.sinks].T) * scales[at, None]
        kept = np.concatenate([np.where(seen, near, -np.inf), early], axis=1)
        top = kept.max(axis=1)
        logs: np.ndarray = top + np.log(np.exp(kept - top[:, None]).sum(axis=1))
        return logs

    def _moved(self, gap: np.ndarray, slack: float) -> np.ndarray:
        """2 V / (1 + e^gap), with that much slack, and a smallest number more where it is above."""
        most = outward(arb(self.most))[slack > 1]
        bound = most / (1 + np.exp(np.clip(gap, -700, 700))) * slack
        return np.nextafter(bound, np.inf) if slack > 1 else bound

    def longest(self, row: int) -> np.ndarray:
        """Dropped keys among which the longest is, each once."""
        k = self.k[self.sinks : row - self.window + 1]
        norms = np.linalg.norm(k / np.abs(k).max(initial=TINY), axis=1)
        places: np.ndarray = np.unique(np.abs(k[norms >= norms.max() * (1 - 1e-6)]), axis=0)
        return places

    def in_balls(self, row: int, longest: np.ndarray, eta: fmpq) -> float:
        """The upper bound of one row, in balls whose precision grows until it is decided."""
        first, last = self.sinks, row - self.window
        kept = [*range(first), *range(last + 1, row + 1)]
        moved = self.most
        for bits in BITS:
            with precision(bits):
                q = [arb(float(x)) for x in self.q[row]]
                length, scale = _dot(q, q), arb(self.factor).sqrt()
                squares = (_dot(v, v) for v in ([arb(float(x)) for x in key] for key in longest))
                most = (length * reduce(arb.max, squares)).sqrt()
                logits = (_dot(q, [arb(float(x)) for x in self.k[j]]) - most for j in kept)
                weight = sum(((scale * x).exp() for x in logits), arb(0))
                count = last + 1 - first
                moved = self.most * count / (count + weight)
                if moved <= eta or moved > eta:
                    break
        return outward(arb(moved))[1]


def _dot(a: Sequence[arb], b: Sequence[arb]) -> arb:
    return sum((x * y for x, y in zip(a, b, strict=True)), arb(0))


def _scaled(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of numbers below 1, and the powers of 2 that they were divided by."""
    largest = np.abs(x).max(axis=1)
    powers = np.where(largest > 0, np.frexp(largest)[1], LEAST_POWER)
    return np.ldexp(x, -powers[:, None]), powers


def _margin(size: int, kept: int, reach: np.ndarray) -> np.ndarray:
    """Three times what rounding can take from the gap of rows whose logits are at most `reach`."""
    return 3 * ROUNDOFF * (2 * (size + 8) * reach + kept + 1600)


def _array(given: object, what: str) -> np.ndarray:
    """A float64 array of shape (rows, size) from NumPy or torch."""
    wanted = "finite real numbers of shape (rows, size)"
    values = floats(given, what, wanted)
    if values.ndim != 2 or not values.size:
        raise InputError(f"{what} has shape {values.shape}; accepted: {wanted}")
    if not np.isfinite(values).all():
        raise InputError(f"{what} holds numbers that are not finite; accepted: {wanted}")
    return values
