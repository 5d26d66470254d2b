"""The exponential and the logarithm, roots, and what they have beyond their first terms."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from operator import methodcaller
from typing import Any

import sympy
from flint import acb, arb, arb_series, ctx, fmpq
from sympy import Basic, Expr

from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.functions.balls import (
    Ball,
    BeyondBalls,
    NoValue,
    finite,
    precision,
    real_part,
    to_arb,
)
from farfield.theory.functions.record import Function

SMALL = fmpq(1, 8)  # below it a remainder function is summed, so that nothing cancels


def auxiliary(
    name: str, what: str, slope: Callable[[Expr, Expr], Expr] | None = None
) -> type[Basic]:
    """A function of our own that formulas do not contain.

    Args:
        name: in `srepr`, and as the module has it.
        what: it is at z.
        slope: its derivative there, from its value and z.
    """
    module = sys._getframe(1).f_globals["__name__"]
    body: dict[str, object] = {"__doc__": what, "__module__": module}
    if slope is not None:
        body["fdiff"] = lambda self, argindex=1: slope(self, self.args[0])
    return type(sympy.Function)(name, (sympy.Function,), body)


log1p = auxiliary("log1p", "log(1 + z)", lambda f, z: 1 / (1 + z))
expm1 = auxiliary("expm1", "exp(z) - 1", lambda f, z: sympy.exp(z))
log1p_rest = auxiliary("log1p_rest", "log(1 + z) - z", lambda f, z: -z / (1 + z))
expm1_rest = auxiliary("expm1_rest", "exp(z) - 1 - z", lambda f, z: expm1(z))
REMAINDER = "a remainder function: formulas do not contain it"
NO_EXPANSION = {"expansion": REMAINDER}
NO_REAL_RULE = {**NO_EXPANSION, "array": REMAINDER}


def remainder(
    complex_ball: Callable[..., acb],
    series: Callable[[arb_series], arb_series],
    lacks: Mapping[str, str] = NO_REAL_RULE,
) -> dict[str, Any]:
    """The rules of a remainder function: its power series takes the constant term, which would
    cancel there, from the ball."""

    def jet(z: arb | arb_series) -> arb | arb_series:
        if isinstance(z, arb):
            return real_part(complex_ball(False, acb(z)))
        return arb_series([real_part(complex_ball(False, acb(z[0]))), *series(z).coeffs()[1:]])

    return {"complex_ball": complex_ball, "series": jet, "lacks": lacks}


def by_more_bits(z: acb, value: Callable[[acb], acb], bound: arb, slope: arb) -> acb:
    """A value whose terms cancel: at the middle of z with the bits that they cancel, around it by
    its slope. Beyond |z| = 2^bits its bound is enough."""
    if z.abs_lower() > arb(2) ** ctx.prec:
        middle, spread = acb(0), bound.upper()
    else:
        more = 2 * max(0, math.ceil(float(z.abs_upper().log()) / math.log(2))) + 16
        with precision(ctx.prec + more):
            middle = value(z.mid())
        spread = (z.rad() * slope).upper()
    around = acb(arb(0, spread), arb(0) if z.imag == 0 else arb(0, spread))
    return +middle + around


def small_sum(z: acb, c: Callable[[int], fmpq]) -> acb:
    """sum_{k>=2} c_k z^k for |z| < 1/8, |c_k| <= 1."""
    size = z.abs_upper()
    smallness = max(2.0, -float(size.log()) - 1) if size > 0 else math.inf
    last, total = int(ctx.prec / smallness) + 3, acb(0)
    for k in range(last, 1, -1):
        total = (total + c(k)) * z
    error = (2 * size ** (last + 1)).upper()
    return total * z + acb(arb(0, error), arb(0, error))


def _exp(x: Ball) -> Ball:
    """exp(-oo) = 0 and exp(0) = 1 exactly; an overflow is no bound, and said so."""
    if isinstance(x, arb) and not x.is_finite() and x < 0:
        return fmpq(0)
    if isinstance(x, fmpq) and x == 0:
        return fmpq(1)
    value = to_arb(x).exp()
    if to_arb(x).is_finite() and not value.is_finite():
        raise BeyondBalls("a number too large to be enclosed")
    return finite(value)


def _log(x: Ball) -> Ball:
    if x <= 0:
        raise NoValue("the logarithm of a number that is not positive")
    return fmpq(0) if isinstance(x, fmpq) and x == 1 else finite(to_arb(x).log())


def _complex_log1p(analytic: bool, z: acb) -> acb:
    """log1p right of -1, else the logarithm, which tells where it is not analytic."""
    one = 1 + z
    if one.real > 0:
        return z.log1p()
    return one.log(analytic=analytic)


def _complex_log1p_rest(analytic: bool, z: acb) -> acb:
    """log(1 + z) - z, by its series near 0 where the difference cancels."""
    if not z.abs_upper() < SMALL:
        return _complex_log1p(analytic, z) - z
    return small_sum(z, lambda k: fmpq((-1) ** (k + 1), k))


def _complex_expm1_rest(analytic: bool, z: acb) -> acb:
    """exp(z) - 1 - z, by its series near 0 where the difference cancels."""
    if not z.abs_upper() < SMALL:
        return z.expm1() - z
    return small_sum(z, lambda k: fmpq(1, math.factorial(k)))


def _log_of(a: Expr, base: Expr | None = None) -> Expr:
    return sympy.log(a) if base is None else sympy.log(a) / sympy.log(base)


def _expand_log(t: Any, e: Expr, a: Expr) -> Any:
    """Of a product factor by factor where that helps: an exponential's logarithm is known."""
    if isinstance(a, sympy.exp):
        return t.transseries(a.args[0])
    if a.is_Mul and a.has(sympy.exp):  # an exponential may have no expansion; its logarithm has
        inside, rest = sympy.sift(a.args, lambda f: isinstance(f, sympy.exp), binary=True)
        return t.add(
            t.transseries(sympy.Mul(*rest)).log(),
            *(t.transseries(f.args[0]) for f in inside),
        )
    if a.is_Pow and a.base.is_positive:
        return t.transseries(a.exp) * t.transseries(sympy.log(a.base))
    try:
        return t.transseries(a).log()
    except Undecided:
        if not a.is_Mul or not all(t.stays_positive(f) for f in a.args):
            raise
    return t.add(*(t.transseries(sympy.log(f)) for f in a.args))


FUNCTIONS = (
    Function(
        node=sympy.exp,
        names=("exp",),
        total=True,
        logarithm=lambda x: x,
        ball=_exp,
        complex_ball=lambda analytic, z: z.exp(),
        series=methodcaller("exp"),
        tail=lambda t, g: t.exp(g),
        expansion=lambda t, e, a: t.transseries(a).exp(),
        array=lambda xp, x: xp.exp(x),
    ),
    Function(
        node=sympy.log,
        names=("log",),
        arity=(1, 2),
        build=_log_of,
        domain=lambda x: (x, 1),
        ball=_log,
        complex_ball=lambda analytic, z: z.log(analytic=analytic),
        series=methodcaller("log"),
        tail=lambda t, g: t.log(g),
        expansion=_expand_log,
        array=lambda xp, x: xp.log(x),
    ),
    Function(
        node=log1p,
        tail=lambda t, g: t.log1p(g),
        array=lambda xp, x: xp.log1p(x),
        **remainder(_complex_log1p, lambda z: (1 + z).log(), NO_EXPANSION),
    ),
    Function(
        node=expm1,
        tail=lambda t, g: t.expm1(g),
        array=lambda xp, x: xp.expm1(x),
        **remainder(lambda analytic, z: z.expm1(), methodcaller("exp"), NO_EXPANSION),
    ),
    Function(
        node=log1p_rest,
        tail=lambda t, g: t.taylor([0, 0, *t.LOG1P[2:]], "log1p", g),
        **remainder(_complex_log1p_rest, lambda z: (1 + z).log() - z),
    ),
    Function(
        node=expm1_rest,
        tail=lambda t, g: t.taylor([0, 0, *t.EXP[2:]], "exp", g),
        **remainder(_complex_expm1_rest, lambda z: z.exp() - z),
    ),
)
