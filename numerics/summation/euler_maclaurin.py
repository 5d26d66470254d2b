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

from flint import arb, arb_series, ctx, fmpq


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
