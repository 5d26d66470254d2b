"""Families of exp-series whose sums have closed forms, by the form of p on a stretch `n >= start`.

They are `Constant`, `Geometric` and `Power`, the last by the Hurwitz zeta function.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy
from flint import arb, ctx, fmpq
from sympy import Expr, S

from farfield.numerics.outcomes import Unrecognised
from farfield.numerics.summation.kept_sums import remembered
from farfield.numerics.summation.kernel import Kernel, number
from farfield.numerics.summation.normal_form import NormalForm, normal_form, sign
from farfield.theory.algebra.call_tree import traced
from farfield.theory.functions.balls import Ball, rational
from farfield.theory.values import compile_ball

MAX_EXACT = 1_024  # distance up to which a rational geometric tail stays rational


@dataclass(frozen=True)
class Constant(Kernel):
    """p = gamma."""

    @property
    def converges(self) -> bool:
        return False

    @property
    def direction(self) -> int:
        return 0

    def between(self, a: int, b: int) -> Ball:
        return (b - a) * compile_ball(sympy.exp(self.gamma))({})


@dataclass(frozen=True)
class Geometric(Kernel):
    """p = gamma + alpha n: tail e^gamma e^{alpha j} / (1 - e^alpha)."""

    alpha: Expr

    @property
    def converges(self) -> bool:
        return sign(self.alpha) < 0

    @property
    def direction(self) -> int:
        return sign(self.alpha)

    @remembered
    def _exact(self) -> tuple[fmpq, fmpq] | None:
        """e^gamma and e^alpha, where they are rational."""
        first, ratio = sympy.exp(self.gamma), sympy.exp(self.alpha)
        if first.is_Rational and ratio.is_Rational:
            return rational(first), rational(ratio)
        return None

    def tail(self, j: int) -> Ball:
        exact = self._exact() if j <= MAX_EXACT else None
        if exact is not None:
            first, ratio = exact
            return first * ratio**j / (1 - ratio)
        a = number(self.alpha)
        return (number(self.gamma) + a * j).exp() / -a.expm1()

    def between(self, a: int, b: int) -> arb:
        slope = number(self.alpha)
        first = (number(self.gamma) + slope * a).exp()
        return first * (slope * (b - a)).expm1() / slope.expm1()


@dataclass(frozen=True)
class Power(Kernel):
    """p = gamma - r log(n + h): tail e^gamma zeta(r, j + h), Hurwitz.

    The difference of two Hurwitz zeta values is the partial sum for every r != 1 by analytic
    continuation; at r = 1 the digamma function takes its place.
    """

    h: Expr
    r: Expr

    @property
    def converges(self) -> bool:
        return sign(self.r - 1) > 0

    @property
    def direction(self) -> int:
        return -sign(self.r)

    def tail(self, j: int) -> arb:
        return number(self.gamma).exp() * hurwitz(number(self.r), j + number(self.h))

    def between(self, a: int, b: int) -> arb:
        h, scale = number(self.h), number(self.gamma).exp()
        if sign(self.r - 1) == 0:
            return scale * ((b + h).digamma() - (a + h).digamma())
        r = number(self.r)
        return scale * (hurwitz(r, a + h) - hurwitz(r, b + h))

    def integral(self, x: arb) -> arb:
        r = number(self.r)
        u = x + number(self.h)
        return (number(self.gamma) + (1 - r) * u.log()).exp() / (r - 1)

    def density(self, x: arb) -> arb:
        return (number(self.gamma) - number(self.r) * (x + number(self.h)).log()).exp()


def hurwitz(r: arb, x: arb) -> arb:
    """Hurwitz's zeta, the sum of (x + k)^-r; of a great r by its first term.

    The other terms are at most (x + 1)^-r (1 + (x + 1)/(r - 1)), by the integral of u^-r.

    >>> hurwitz(arb(10) ** 30, arb(2)).overlaps(arb(2) ** -(arb(10) ** 30))
    True
    """
    if x > 0 and r > 4 * ctx.prec * (x + 1):
        others = (-r * (1 + 1 / x).log()).exp() * (1 + (x + 1) / (r - 1))
        return (-r * x.log()).exp() * (1 + others.union(0))
    return r.zeta(x)


@traced(2)
def family(p: Expr, start: int) -> Kernel:
    """The family of a bias by its normal form on n >= start; Unrecognised where it has none."""
    kernel = _from_form(normal_form(p, start), start)
    _ = kernel.converges, kernel.direction  # signs, Unrecognised where they are not decided
    return kernel


def _from_form(form: NormalForm, start: int) -> Kernel:
    """The family by which terms the form has; other combinations have none."""
    gamma, alpha = (form.get(("n", k), S.Zero) for k in (0, 1))
    logs = [(h, r) for (kind, h), r in form.items() if kind == "log"]
    if not logs:
        return Geometric(start, gamma, alpha) if alpha != 0 else Constant(start, gamma)
    if len(logs) > 1 or alpha != 0:
        raise Unrecognised("several logarithms, or one beside a linear term, have no closed sum")
    [(h, r)] = logs
    return Power(start, gamma, h, -r)
