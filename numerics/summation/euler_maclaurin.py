r"""The Euler-Maclaurin formula: with f(x) = exp(p(x)),

    sum_{n>=N} f(n) = int_N^oo f + f(N)/2 - sum_{k<=m} B_{2k}/(2k)! f^{(2k-1)}(N) + R_m,
    |R_m| <= |B_{2m}|/(2m)! int_N^oo |f^{(2m)}|.

`taylor` and `at_end` give what stands at N, `remainder` the ball of R_m from a bound of the last
integral over (2m)!, which the caller has to prove: if f is completely monotone it is
|f^{(2m-1)}(N)|/(2m)!; otherwise Cauchy's estimate on circles of radius theta u around u bounds it,
|f^{(2m)}| <= (2m)! (theta u)^{-2m} sup |f|. Where f decreases, also sum_{n>=N} f(n) - int_N^oo f
lies in [0, f(N)]. All bounds are (ours).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flint import arb, arb_series, ctx, fmpq
from sympy import Expr

from farfield.numerics.summation.kernel import Kernel, number
from farfield.theory.algebra.budget import check_time
from farfield.theory.functions.balls import precision

MAX_SHIFT = 1 << 16  # terms before the formula is applied


def taylor(f: Callable[[Any], Any], at: arb, m: int) -> list[arb]:
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
class Smooth(Kernel):
    """A kernel in u = n + h summed by Euler-Maclaurin, the integral in closed form."""

    h: Expr

    @property
    def completely_monotone(self) -> bool:
        return False

    def exponent(self, u: object) -> Any:
        """p as a function of u, a ball or a power series of balls, u > 0."""
        raise NotImplementedError

    def area(self, u: arb) -> arb:
        """int_u^oo of exp(p) in the variable u."""
        raise NotImplementedError

    def cauchy(self, u: arb, m: int) -> arb:
        """An upper bound of int_u^oo |f^{(2m)}| / (2m)!."""
        raise NotImplementedError

    def decreasing(self, u: arb) -> bool:
        """Whether p is proved to decrease on [u, oo)."""
        raise NotImplementedError

    def term(self, j: int) -> arb:
        """exp(p(j)) for an integer j >= start."""
        return self.exponent(j + number(self.h)).exp()

    def integral(self, x: arb) -> arb:
        return self.area(x + number(self.h))

    def density(self, x: arb) -> arb:
        return self.exponent(x + number(self.h)).exp()

    def tail(self, j: int) -> arb:
        """Direct terms up to where the Euler-Maclaurin remainder is below the precision."""
        bits = ctx.prec
        with precision(bits + 32):
            u = j + number(self.h)
            head, at, best, stalls = arb(0), j, arb(0, arb.pos_inf()), 0
            upto = j if u > bits // 2 + 8 else j + bits // 2 + 8 - min(0, int(float(u)))
            while True:
                check_time()
                for i in range(at, upto):
                    head += self.term(i)
                at, before = upto, best.rel_accuracy_bits()
                if at + number(self.h) > 0:
                    value = head + self._euler_maclaurin(at, bits // 8 + 2)
                    best = value if value.rad() < best.rad() else best
                stalls += best.is_finite() and best.rel_accuracy_bits() <= before + 2
                if best.rel_accuracy_bits() >= bits - 8 or stalls > 4 or at - j > MAX_SHIFT:
                    return best
                upto = at + max(64, at - j)

    def _euler_maclaurin(self, at: int, m: int) -> arb:
        """The sum from `at` on; of decreasing terms also by the integral alone: the narrower."""
        u = at + number(self.h)
        c, area = taylor(lambda x: self.exponent(x).exp(), u, m), self.area(u)
        size = abs(c[-1]) / (2 * m) if self.completely_monotone else self.cauchy(u, m)
        candidates = [area + at_end(c) + remainder(m, size)]
        if self.decreasing(u):
            candidates.append(area + c[0] / 2 + arb(0, (c[0] / 2).abs_upper()))
        finite = [value for value in candidates if value.is_finite()]
        return min(finite, key=arb.rad, default=arb(0, arb.pos_inf()))
