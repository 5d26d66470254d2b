"""Circular functions and their inverses: sine, cosine, tangent, cotangent, their arcs."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import methodcaller
from typing import Any

import sympy
from flint import acb, arb, fmpq
from sympy import Expr, S

from farfield.theory.algebra.exceptions import OrderTooLow
from farfield.theory.functions.balls import NAN, power_of, real
from farfield.theory.functions.elementary import SMALL, auxiliary, remainder, small_sum
from farfield.theory.functions.record import Function

WAVE = (S.NegativeOne, S.One)


cos_rest = auxiliary("cos_rest", "cos(z) - 1", lambda f, z: -sympy.sin(z))
sin_rest = auxiliary("sin_rest", "sin(z) - z", lambda f, z: cos_rest(z))


def _complex_sin_rest(analytic: bool, z: acb) -> acb:
    """sin z - z, by its series near 0 where the difference cancels."""
    if not z.abs_upper() < SMALL:
        return z.sin() - z
    sign = (0, 1, 0, -1)
    return small_sum(z, lambda k: fmpq(sign[k % 4] if k > 1 else 0, math.factorial(k)))


def _complex_cos_rest(analytic: bool, z: acb) -> acb:
    """cos z - 1 = -2 sin(z/2)^2, which does not cancel near 0."""
    half = (z / 2).sin()
    return -2 * half * half


def _complex_atan(analytic: bool, z: acb) -> acb:
    """Not a number where an analytic value is asked for across the cuts from i and -i."""
    off_cuts = z.real > 0 or z.real < 0 or abs(z.imag) < 1
    return z.atan() if not analytic or off_cuts else NAN


def _complex_arc(name: str) -> Callable[[bool, acb], acb]:
    """asin or acos: the cuts are [1, oo) and (-oo, -1]."""
    method = methodcaller(name)
    return lambda analytic, z: method(z) if not analytic or abs(z.real) < 1 or z.imag != 0 else NAN


# -- expansions at infinity -----------------------------------------------------------------------


def sine_coefficient(k: int) -> fmpq:
    """The coefficient of x^k in sin x."""
    return fmpq((-1) ** (k // 2), math.factorial(k)) if k % 2 else fmpq(0)


def cosine_coefficient(k: int) -> fmpq:
    """The coefficient of x^k in cos x."""
    return fmpq(0) if k % 2 else fmpq((-1) ** (k // 2), math.factorial(k))


def _expand_wave(t: Any, e: Expr, a: Expr) -> Any:
    """At a finite limit by the addition theorem, else a coefficient of its own."""
    g = t.transseries(a)
    try:
        bounded = t.direction(g) == 0 and not t.oscillates(t.split(g)[1])
    except OrderTooLow:
        bounded = False
        if g.remainder is not None and t.size(g.remainder) <= 0:
            raise
    if not bounded:
        return t.of_constant(t.bounded_atom(*WAVE) if t.has_bounded_atom(a) else e)
    limit, delta = t.finite(g)
    point = t.to_sympy(limit)
    sine, cosine = (
        t.taylor(sine_coefficient, delta),
        t.taylor(cosine_coefficient, delta),
    )
    value, slope = t.coefficient(e.func(point)), t.coefficient(e.func(point + sympy.pi / 2))
    return cosine * value + sine * slope


def _atan_of(t: Any, g: Any) -> Any:
    """pi/2 - 1/g + ... where the argument grows, Taylor's series where it has a limit."""
    way = t.direction(g)
    if way == 0:
        return t.increasing_or_taylor(sympy.atan, g)
    if way is None:
        return t.of_constant(t.bounded_atom(-sympy.pi / 2, sympy.pi / 2))
    small = t.taylor(lambda k: fmpq((-1) ** (k // 2), k) if k % 2 else fmpq(0), 1 / g)
    return way * sympy.pi / 2 - small


# -- bounds on a half-line ------------------------------------------------------------------------


def _wave_beyond(name: str) -> Callable[[Any, Any], Any]:
    """sin, cos or atan of g. Where g is log x on a sector, |sin z|, |cos z| <= cosh Im z. Where
    Re z > 0, |z| > 2, atan z = pi/2 - atan(1/z), and |atan(1/z)| <= artanh(1/2) < 0.6."""

    def bound(t: Any, g: Any) -> Any:
        if g.grows:
            if g.real():
                return t.constant(g, acb(arb(0, 1 if name != "atan" else 1.6)))
            if name == "atan":
                t.in_right_half_plane(g, 2)
                return t.constant(g, acb(arb(1.6, 0.7), arb(0, 0.6)))
            size = arb(0, abs(t.imaginary(g).small()).upper().cosh().upper())
            return t.constant(g, acb(size, size))
        if g.has_constant:
            return t.constant(g, getattr(g.small(), name)())
        return t.taylor(t.AT_ZERO[name], name, g)

    return bound


def _small_sine(form: Any, z: Expr) -> Expr | None:
    """sin z as z and a rest that does not cancel, where z is small on the whole half-line."""
    return z + sin_rest(z) if form.size(z) < form.SMALL else None


def _small_cosine(form: Any, z: Expr) -> Expr | None:
    """cos z as 1 and a rest, where z is small on the whole half-line."""
    return 1 + cos_rest(z) if form.size(z) < form.SMALL else None


def _large_arctangent(form: Any, z: Expr) -> Expr | None:
    """+-(pi/2 - atan(1/|z|)), where z is large on the whole half-line."""
    if form.size(z) < 1:
        return None
    side = form.sign(z)
    return side * (sympy.pi / 2 - sympy.atan(form.spread(sympy.exp(-form.log(side * z)))))


def _half_turns(a: Expr) -> tuple[Expr, Expr]:
    return a / sympy.pi, sympy.Integer(2)


def _unit_interval(x: Expr) -> tuple[Expr, int]:
    return 1 - x**2, 0


FUNCTIONS = (
    Function(
        node=sympy.sin,
        names=("sin",),
        total=True,
        scaled=_small_sine,
        range=lambda a: WAVE,
        period=_half_turns,
        ball=real("sin"),
        complex_ball=lambda analytic, z: z.sin(),
        series=methodcaller("sin"),
        tail=_wave_beyond("sin"),
        expansion=_expand_wave,
        array=lambda xp, x: xp.sin(x),
    ),
    Function(
        node=sympy.cos,
        names=("cos",),
        total=True,
        scaled=_small_cosine,
        range=lambda a: WAVE,
        period=_half_turns,
        ball=real("cos"),
        complex_ball=lambda analytic, z: z.cos(),
        series=methodcaller("cos"),
        tail=_wave_beyond("cos"),
        expansion=_expand_wave,
        array=lambda xp, x: xp.cos(x),
    ),
    Function(
        node=sympy.tan,
        names=("tan",),
        elementary=lambda x: sympy.sin(x) / sympy.cos(x),
        period=_half_turns,
        ball=real("tan"),
        array=lambda xp, x: xp.tan(x),
    ),
    Function(
        node=sympy.cot,
        names=("cot",),
        elementary=lambda x: sympy.cos(x) / sympy.sin(x),
        period=_half_turns,
        ball=real("cot"),
        array=lambda xp, x: 1 / xp.tan(x),
    ),
    Function(
        node=sympy.sec,
        names=("sec",),
        elementary=lambda x: 1 / sympy.cos(x),
        ball=real("sec"),
        array=lambda xp, x: 1 / xp.cos(x),
    ),
    Function(
        node=sympy.csc,
        names=("csc",),
        elementary=lambda x: 1 / sympy.sin(x),
        ball=real("csc"),
        array=lambda xp, x: 1 / xp.sin(x),
    ),
    Function(
        node=sympy.asin,
        names=("asin", "arcsin"),
        domain=_unit_interval,
        elementary=lambda x: sympy.atan(x / sympy.sqrt(1 - x**2)),
        ball=real("asin"),
        complex_ball=_complex_arc("asin"),
        series=methodcaller("asin"),
        array=lambda xp, x: xp.asin(x),
    ),
    Function(
        node=sympy.acos,
        names=("acos", "arccos"),
        domain=_unit_interval,
        elementary=lambda x: sympy.pi / 2 - sympy.atan(x / sympy.sqrt(1 - x**2)),
        ball=real("acos"),
        complex_ball=_complex_arc("acos"),
        series=methodcaller("acos"),
        array=lambda xp, x: xp.acos(x),
    ),
    Function(
        node=sympy.atan,
        names=("atan", "arctan"),
        total=True,
        odd=True,
        scaled=_large_arctangent,
        ball=real("atan"),
        complex_ball=_complex_atan,
        series=methodcaller("atan"),
        tail=_wave_beyond("atan"),
        expansion=lambda t, e, a: _atan_of(t, t.transseries(a)),
        array=lambda xp, x: xp.atan(x),
    ),
    Function(
        node=sympy.acot,
        names=("acot",),
        elementary=lambda x: sympy.atan(1 / x),
        ball=lambda x: real("atan")(power_of(x, fmpq(-1))),
        array=lambda xp, x: xp.atan(1 / x),
    ),
    Function(
        node=sin_rest,
        tail=lambda t, g: t.taylor([0, 0, *t.AT_ZERO["sin"][2:]], "sin", g),
        **remainder(_complex_sin_rest, lambda z: z.sin() - z),
    ),
    Function(
        node=cos_rest,
        tail=lambda t, g: t.taylor([0, *t.AT_ZERO["cos"][1:]], "cos", g),
        **remainder(_complex_cos_rest, methodcaller("cos")),
    ),
)
