r"""Sums by the Euler-Maclaurin formula.

With f(x) = exp(p(x)),

    sum_{n>=N} f(n) = int_N^oo f + f(N)/2 - sum_{k<=m} B_{2k}/(2k)! f^{(2k-1)}(N) + R_m,
    |R_m| <= |B_{2m}|/(2m)! int_N^oo |f^{(2m)}|.

`taylor` and `at_end` give what stands at N, `remainder` the ball of R_m from a bound of the last
integral over (2m)!, which the caller has to prove: Cauchy's estimate on circles of radius theta u
around u bounds it, |f^{(2m)}| <= (2m)! (theta u)^{-2m} sup |f|. All bounds are (ours).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from flint import arb, arb_series, ctx, fmpq

from farfield.numerics.summation.kernel import Direct
from farfield.theory.algebra.door import check_time
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.functions.balls import precision

Point = TypeVar("Point", arb, arb_series)
FARTHEST = 1 << 16  # terms before the formula is given up


def taylor(f: Callable[[arb_series], arb_series], at: arb, m: int) -> list[arb]:
    """The Taylor coefficients c_0, ..., c_{2m-1} at a point of a function of power series."""
    before = ctx.cap
    try:
        ctx.cap = 2 * m + 1
        series = f(arb_series([at, 1]))
        return [series[k] for k in range(2 * m)]
    finally:
        ctx.cap = before


def at_end(c: list[arb]) -> arb:
    """f(N)/2 - sum_{k<=m} B_{2k}/(2k)! f^{(2k-1)}(N), from the 2m Taylor coefficients at N."""
    total = c[0] / 2
    for k in range(1, len(c) // 2 + 1):
        total -= arb(fmpq.bernoulli(2 * k)) / (2 * k) * c[2 * k - 1]
    return total


def remainder(m: int, size: arb) -> arb:
    """The ball of R_m, for a bound of int |f^{(2m)}| / (2m)!; not finite where that is not."""
    return arb(0, (abs(arb(fmpq.bernoulli(2 * m))) * size).abs_upper())


@dataclass(frozen=True)
class EulerMaclaurin(Direct):
    """Sums by terms up to a place from which on the formula has the precision."""

    def order(self, at: int, bits: int) -> int:
        """m for sums of so many bits from a place on; 0 where none serves."""
        return bits // 8 + 2

    def coefficients(self, at: int, m: int) -> list[arb]:
        """The first 2m Taylor coefficients of f at a place."""
        raise NotImplementedError

    def area_between(self, at: int, end: int | None) -> arb:
        """int_at^end f, to infinity without an end."""
        raise NotImplementedError

    def derivative_bound(self, at: int, m: int, end: int | None) -> arb:
        """An upper bound of int_at^end |f^{(2m)}| / (2m)!."""
        raise NotImplementedError

    def _formula(self, at: int, bits: int, end: int | None) -> arb:
        """The sum between two places."""
        m = self.order(at, bits)
        if not m:
            return arb.nan()
        size = self.derivative_bound(at, m, end)
        value = self.area_between(at, end) + at_end(self.coefficients(at, m)) + remainder(m, size)
        return value if end is None else value - at_end(self.coefficients(end, m))

    def _beyond(self, j: int, end: int | None = None) -> arb:
        """sum_{j<=n<end} f(n), to infinity without an end: terms, then the formula."""
        bits = ctx.prec
        with precision(bits + 32):
            head, at, best = arb(0), j, arb(0, arb.pos_inf())
            upto = max(j, self._begin(bits))
            while True:
                check_time()
                upto = upto if end is None else min(upto, end)
                head, at = sum(map(self.term, range(at, upto)), head), upto
                if at == end:
                    return head
                value = head + self._formula(at, bits, end)
                best = value if value.is_finite() and value.rad() < best.rad() else best
                if best.rel_accuracy_bits() >= bits - 8:
                    return best
                if end is None and j > self._begin(bits) and best.is_finite():
                    return best  # more terms help no more
                if at - j > FARTHEST:
                    if best.is_finite():
                        return best
                    raise Unreachable("no bound of a sum is found")
                upto = at + max(64, at)
