"""The error functions: expansions of DLMF 7.12(i), each error at most the first omitted term."""

from __future__ import annotations

import math
from operator import methodcaller
from typing import Any

import sympy
from flint import fmpq
from sympy import Expr, S

from farfield.theory.algebra.outcomes import Undecided
from farfield.theory.functions.balls import real
from farfield.theory.functions.record import Function

NO_TAIL = {"tail": "no bound of what it has beyond its leading term is written down yet"}


def _double_factorial(k: int) -> int:
    """(2 k - 1)!!"""
    return math.prod(range(1, 2 * k, 2))


def _erfc_at_infinity(t: Any, g: Any) -> Any:
    """exp(-x^2)/(x sqrt(pi)) sum (-1)^k (2k-1)!!/(2 x^2)^k."""
    square = t.multiply(g, g)
    series = t.taylor(
        lambda k: fmpq((-1) ** k * _double_factorial(k)), t.reciprocal(t.scale(square, fmpq(2)))
    )
    front = t.multiply(t.exponential(t.negate(square)), t.reciprocal(g))
    return t.scale(t.multiply(front, series), t.coefficient(1 / sympy.sqrt(sympy.pi)))


def _erf_of(t: Any, g: Any) -> Any:
    way = t.direction(g)
    if way == 0:
        return t.increasing_or_taylor(sympy.erf, g)
    if way is None:
        return t.number(t.bounded_atom(S.NegativeOne, S.One))
    if way == 1:
        return t.subtract(t.ONE, _erfc_at_infinity(t, g))
    return t.subtract(_erfc_at_infinity(t, t.negate(g)), t.ONE)


def _expand_erfc(t: Any, e: Expr, a: Expr) -> Any:
    g = t.transseries(a)
    return _erfc_at_infinity(t, g) if t.direction(g) == 1 else t.subtract(t.ONE, _erf_of(t, g))


def _expand_erfi(t: Any, e: Expr, a: Expr) -> Any:
    """exp(x^2)/(x sqrt(pi)) sum (2k-1)!!/(2 x^2)^k."""
    g = t.transseries(a)
    way = t.direction(g)
    if way == 0:
        return t.at_finite(sympy.erfi, g, "erfi")
    if way is None:
        raise Undecided("erfi of an unbounded oscillation")
    square = t.multiply(g, g)
    series = t.taylor(lambda k: fmpq(_double_factorial(k)), t.reciprocal(t.scale(square, fmpq(2))))
    front = t.multiply(t.exponential(square), t.reciprocal(g))
    return t.scale(t.multiply(front, series), t.coefficient(1 / sympy.sqrt(sympy.pi)))


FUNCTIONS = (
    Function(
        node=sympy.erf,
        names=("erf",),
        latex=r"\operatorname{erf}",
        increasing=True,
        ball=real("erf"),
        complex_ball=lambda analytic, z: z.erf(),
        series=methodcaller("erf"),
        expansion=lambda t, e, a: _erf_of(t, t.transseries(a)),
        array=lambda xp, x: xp.special("erf")(x),
        lacks=NO_TAIL,
    ),
    Function(
        node=sympy.erfc,
        names=("erfc",),
        latex=r"\operatorname{erfc}",
        elementary=lambda x: 1 - sympy.erf(x),
        ball=real("erfc"),
        complex_ball=lambda analytic, z: z.erfc(),
        series=methodcaller("erfc"),
        expansion=_expand_erfc,
        array=lambda xp, x: xp.special("erfc")(x),
    ),
    Function(
        node=sympy.erfi,
        names=("erfi",),
        latex=r"\operatorname{erfi}",
        ball=real("erfi"),
        complex_ball=lambda analytic, z: z.erfi(),
        series=methodcaller("erfi"),
        expansion=_expand_erfi,
        array=lambda xp, x: xp.special("erfi")(x),
        lacks=NO_TAIL,
    ),
)
