"""Hyperbolic functions and their inverses."""

from __future__ import annotations

from typing import Any

import sympy
from flint import fmpq
from sympy import Expr

from farfield.theory.algebra.outcomes import Undecided
from farfield.theory.functions.balls import real
from farfield.theory.functions.record import Function

HALF = fmpq(1, 2)


def _expand_sinh_cosh(t: Any, e: Expr, a: Expr) -> Any:
    g = t.transseries(a)
    up, down = t.exponential(g), t.exponential(t.negate(g))
    sum_or_difference = t.subtract if e.func is sympy.sinh else t.add
    return t.scale(sum_or_difference(up, down), HALF)


def _expand_tanh(t: Any, e: Expr, a: Expr) -> Any:
    """Where it saturates by powers of exp(-2|x|), so that no term cancels."""
    g = t.transseries(a)
    way = t.direction(g)
    if way in (1, -1):  # tanh = 1 - 2 E/(1 + E), E = exp(-2|x|)
        small = t.exponential(t.scale(g, fmpq(-2 * way)))
        ratio = t.multiply(small, t.reciprocal(t.add(t.ONE, small)))
        value = t.subtract(t.ONE, t.scale(ratio, fmpq(2)))
        value = value if way == 1 else t.negate(value)
    else:
        up, down = t.exponential(g), t.exponential(t.negate(g))
        value = t.multiply(t.subtract(up, down), t.reciprocal(t.add(up, down)))
    return t.reciprocal(value) if e.func is sympy.coth else value


def _expand_asinh(t: Any, e: Expr, a: Expr) -> Any:
    """log(x + sqrt(x^2 + 1)) of the positive argument, odd."""
    g = t.transseries(a)
    way = t.direction(g)
    if way == 0:
        return t.at_finite(sympy.asinh, g, "asinh")
    if way is None:
        raise Undecided("asinh of an unbounded oscillation")
    g = g if way == 1 else t.negate(g)
    value = t.logarithm(t.add(g, t.power(t.add(t.multiply(g, g), t.ONE), HALF)))
    return value if way == 1 else t.negate(value)


def _expand_acosh(t: Any, e: Expr, a: Expr) -> Any:
    g = t.transseries(a)
    return t.logarithm(t.add(g, t.power(t.subtract(t.multiply(g, g), t.ONE), HALF)))


def _expand_atanh(t: Any, e: Expr, a: Expr) -> Any:
    g = t.transseries(a)
    up, down = t.logarithm(t.add(t.ONE, g)), t.logarithm(t.subtract(t.ONE, g))
    return t.scale(t.subtract(up, down), HALF)


FUNCTIONS = (
    Function(
        node=sympy.sinh,
        names=("sinh",),
        latex=r"\sinh",
        odd=True,
        elementary=lambda z: (sympy.exp(z) - sympy.exp(-z)) / 2,
        ball=real("sinh"),
        expansion=_expand_sinh_cosh,
        array=lambda xp, x: xp.sinh(x),
    ),
    Function(
        node=sympy.cosh,
        names=("cosh",),
        latex=r"\cosh",
        elementary=lambda z: (sympy.exp(z) + sympy.exp(-z)) / 2,
        ball=real("cosh"),
        expansion=_expand_sinh_cosh,
        array=lambda xp, x: xp.cosh(x),
    ),
    Function(
        node=sympy.tanh,
        names=("tanh",),
        latex=r"\tanh",
        odd=True,
        elementary=lambda z: (1 - sympy.exp(-2 * z)) / (1 + sympy.exp(-2 * z)),
        ball=real("tanh"),
        expansion=_expand_tanh,
        array=lambda xp, x: xp.tanh(x),
    ),
    Function(
        node=sympy.coth,
        names=("coth",),
        latex=r"\coth",
        elementary=lambda z: (1 + sympy.exp(-2 * z)) / (1 - sympy.exp(-2 * z)),
        continuous=False,
        ball=real("coth"),
        expansion=_expand_tanh,
        array=lambda xp, x: 1 / xp.tanh(x),
    ),
    Function(
        node=sympy.asinh,
        names=("asinh", "arcsinh"),
        latex=r"\operatorname{asinh}",
        odd=True,
        elementary=lambda z: sympy.log(z + sympy.sqrt(z**2 + 1)),
        ball=real("asinh"),
        expansion=_expand_asinh,
        array=lambda xp, x: xp.asinh(x),
    ),
    Function(
        node=sympy.acosh,
        names=("acosh", "arccosh"),
        latex=r"\operatorname{acosh}",
        domain=lambda x: (x - 1, 0),
        elementary=lambda z: sympy.log(z + sympy.sqrt(z**2 - 1)),
        ball=real("acosh"),
        expansion=_expand_acosh,
        array=lambda xp, x: xp.acosh(x),
    ),
    Function(
        node=sympy.atanh,
        names=("atanh", "arctanh"),
        latex=r"\operatorname{atanh}",
        domain=lambda x: (1 - x**2, 1),
        elementary=lambda z: (sympy.log(1 + z) - sympy.log(1 - z)) / 2,
        ball=real("atanh"),
        expansion=_expand_atanh,
        array=lambda xp, x: xp.atanh(x),
    ),
)
