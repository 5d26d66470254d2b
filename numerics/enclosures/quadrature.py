"""Rigorous quadrature of exp(h), h analytic around the interval of integration."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from flint import acb, arb, ctx, fmpq
from sympy import Expr, Symbol

from farfield.numerics.enclosures.compiled import compile_complex, compile_real
from farfield.theory.algebra.budget import check_time
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.functions.balls import precision

POINTS = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384)  # so that rules are shared by precisions
NARROWEST = fmpq(1, 512)  # of an interval that is halved: no bias is that rough in log n
STEEPEST = 60  # sup h on the ellipse over h in the middle: e^60 costs 90 bits of the rule


@lru_cache(maxsize=256)
def _nodes(points: int, bits: int) -> list[tuple[arb, arb]]:
    """Nodes and weights of the Gauss-Legendre rule."""
    half = [arb.legendre_p_root(points, k, weight=True) for k in range((points + 1) // 2)]
    mirror = [(-x, w) for x, w in half[: points // 2]]
    return half + mirror


def integral(exponent: Expr, x: Symbol, a: arb, b: arb) -> arb:
    """int_a^b of e^h dx, h an expression in x, by the Gauss-Legendre rule of K points: with
    |e^h| <= M on the ellipse of foci a, b and semi-axes summing to rho (b-a)/2, its error is at
    most (b-a)/2 (64/15) M rho^{2-2K} / (1 - rho^{-2}). Intervals are halved as needed.

    Raises:
        Unreachable: where no ellipse is found on which h is analytic.

    >>> import sympy
    >>> x = sympy.Symbol("x")
    >>> print(integral(-x, x, arb(0), arb(1)).str(6))
    [0.632121 +/- 4.42e-7]
    """
    check_time()
    parts, total = [(a, b)], arb(0)
    programs = compile_complex(exponent, x), compile_real(exponent, x)
    while parts:
        low, high = parts.pop()
        found = _gauss(*programs, low, high)
        if found is None:
            middle = ((low + high) / 2).mid()
            if high - low < NARROWEST:
                raise Unreachable("the integrand is not analytic near the half-line")
            parts += [(low, middle), (middle, high)]
        else:
            total += found
    return total


def _gauss(program: Any, real: Any, a: arb, b: arb) -> arb | None:
    """The rule on one interval; None where h is not analytic or too large around it."""
    bits = ctx.prec
    half, centre = (b - a) / 2, (a + b) / 2
    height = real(centre)
    for rho in (4, 2):
        sup = _sup_on_ellipse(program, centre, half, rho)
        if sup - height < STEEPEST:
            break
    else:
        return None
    loss = max(0.0, float(sup - height)) / math.log(2)
    need = (bits + 8 + loss) / (2 * math.log2(rho)) + 1
    points = next((p for p in POINTS if p >= need), 64 * math.ceil(need / 64))
    total = arb(0)
    for node, weight in _nodes(points, bits):
        value = real(centre + half * node)
        if not value.is_finite():
            return None
        total += weight * value.exp()
    error = sup.exp() * arb(rho) ** (2 - 2 * points) * 64 / 15 / (1 - arb(rho) ** -2)
    return half * total + arb(0, (half * error).upper())


def _sup_on_ellipse(program: Any, centre: arb, half: arb, rho: int) -> arb:
    """sup h on a rectangle around the ellipse; h is conjugate at conjugate points."""
    across, up = 6, 2
    with precision(64):
        wide = (half * (rho + fmpq(1, rho)) / 2).upper() / across
        tall = (half * (rho - fmpq(1, rho)) / 2).upper() / up / 2
        best = arb.neg_inf()
        for i in range(across):
            for k in range(up):
                middle = centre + wide * (2 * i + 1 - across)
                box = acb(middle + arb(0, wide.upper()), tall * (2 * k + 1) + arb(0, tall.upper()))
                value = program(box, True).real
                if not value.is_finite():
                    return arb.pos_inf()
                best = best.max(value.upper())
        return best.upper()
