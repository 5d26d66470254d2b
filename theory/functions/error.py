"""The error functions: expansions of DLMF 7.12(i), each error at most the first omitted term."""

from __future__ import annotations

import math
from operator import methodcaller
from typing import Any

import sympy
from flint import acb, arb, arb_series, ctx, fmpq
from sympy import Expr, S

from farfield.theory.functions.balls import Ball, finite, real, to_arb
from farfield.theory.functions.record import Function, Refused

MOST, FAR = 10**6, 10**150  # arguments of erfcx and of erfc that SymPy evaluates
NO_TAIL = {"tail": "no bound of what it has beyond its leading term is written down yet"}


def _double_factorial(k: int) -> int:
    """(2 k - 1)!!"""
    return math.prod(range(1, 2 * k, 2))


class erfcx(sympy.Function):
    """exp(z^2) erfc(z)."""

    def fdiff(self, argindex: int = 1) -> Expr:
        return 2 * self.args[0] * self - 2 / sympy.sqrt(sympy.pi)

    def _eval_evalf(self, prec: int) -> Expr:
        (x,) = self.args
        if abs(x.evalf(15)) > MOST:  # there mpmath overflows, or takes seconds
            return self
        return (sympy.exp(x**2) * sympy.erfc(x))._evalf(prec)


def _scaled_integral(k: int, z: arb | acb) -> arb | acb:
    """2^k e^{z^2} i^k erfc(z) = U((k + 1)/2, 1/2, z^2)/sqrt(pi), Re z > 0 (DLMF 7.18.10): (-1)^k
    times the k-th Taylor coefficient of erfcx at z, at most 1/(sqrt(pi) R^{k+1}), R = Re z."""
    return (z * z).hypgeom_u(fmpq(k + 1, 2), fmpq(1, 2)) / arb.pi().sqrt()


def _complex_erfcx(analytic: bool, z: acb) -> acb:
    """In the right half plane, where the product would be 0 times oo, around the middle of z."""
    if not z.real > 1:
        return (z * z).exp() * z.erfc()
    spread = (z.rad() / (arb.pi().sqrt() * z.real.lower() ** 2)).upper()
    around = acb(arb(0, spread), arb(0) if z.imag == 0 else arb(0, spread))
    return _scaled_integral(0, z.mid()) + around


def _erfc_ball(x: Ball) -> arb:
    """FLINT's, or exp(-x^2) erfcx(x) at a large inexact argument, where FLINT's reaches 0."""
    z, value = to_arb(x), finite(to_arb(x).erfc())
    return value if value > 0 or not z > 1 else (-(z * z)).exp() * _erfcx_series(z)


def _erfcx_series(z: arb | arb_series) -> arb | arb_series:
    """Scaled repeated integrals of erfc: small where exp(z^2) and erfc(z) over- and underflow."""
    if isinstance(z, arb):
        return _complex_erfcx(False, acb(z)).real
    centre = z[0]
    if not centre > 1:
        return (z * z).exp() * z.erfc()
    step, total = arb_series([0, *z.coeffs()[1:]]), arb_series([0])
    for k in reversed(range(ctx.cap)):
        spread = (k + 1) * centre.rad() / (arb.pi().sqrt() * centre.lower() ** (k + 2))
        c = (-1) ** k * _scaled_integral(k, centre.mid()) + arb(0, spread.upper())
        total = total * step + c
    return total


def _erfcx_at_infinity(t: Any, g: Any) -> Any:
    """1/(x sqrt(pi)) sum (-1)^k (2k-1)!!/(2 x^2)^k."""
    half = 1 / (g * g * 2)
    series = t.taylor(lambda k: fmpq((-1) ** k * _double_factorial(k)), half)
    front = 1 / g * (1 / sympy.sqrt(sympy.pi))
    return front * series


def _erfc_at_infinity(t: Any, g: Any) -> Any:
    return (-(g * g)).exp() * _erfcx_at_infinity(t, g)


def _erfcx_beyond(t: Any, g: Any) -> Any:
    """|sqrt(pi) z erfcx(z) - 1| = |int_0^oo 2 u e^{-u^2 - 2 z u} du| <= 1/(2 R^2), R = Re z > 0,
    which is at most 1/|z|^2 where |arg z| < pi/4 (ours)."""
    t.in_right_half_plane(g)
    rest = t.power(g, fmpq(-2)).scaled(t.ball_of(1, g))
    return (t.constant(g, fmpq(1)) + rest) * t.power(g, fmpq(-1)).scaled(acb(1 / arb.pi().sqrt()))


def _expand_erfcx(t: Any, e: Expr, a: Expr) -> Any:
    """Right of 0 its asymptotic series, else exp(x^2) (1 - erf x)."""
    g = t.transseries(a)
    if t.direction(g) == 1:
        return _erfcx_at_infinity(t, g)
    return (g * g).exp() * (1 - _erf_of(t, g))


def _erf_of(t: Any, g: Any) -> Any:
    """By where the argument goes: to 1, to -1, to erf of a limit, or between them for ever."""
    way = t.direction(g)
    if way == 0:
        return t.increasing_or_taylor(sympy.erf, g)
    if way is None:
        return t.of_constant(t.bounded_atom(S.NegativeOne, S.One))
    if way == 1:
        return 1 - _erfc_at_infinity(t, g)
    return _erfc_at_infinity(t, -g) - 1


def _erfc(x: Expr) -> Expr:
    """Of a number as far as SymPy can evaluate it."""
    if not x.free_symbols and abs(x.evalf(15)) > FAR:
        raise Refused("needs a number up to 10**150 in size")
    return sympy.erfc(x)


FUNCTIONS = (
    Function(
        node=sympy.erf,
        names=("erf",),
        total=True,
        odd=True,
        complement=lambda x: sympy.erfc(x),
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
        build=_erfc,
        total=True,
        elementary=lambda x: 1 - sympy.erf(x),
        logarithm=lambda x: sympy.log(erfcx(x)) - x**2,
        ball=_erfc_ball,
        complex_ball=lambda analytic, z: z.erfc(),
        series=methodcaller("erfc"),
        array=lambda xp, x: xp.special("erfc")(x),
    ),
    Function(
        node=erfcx,
        names=("erfcx",),
        total=True,
        complex_ball=_complex_erfcx,
        tail=_erfcx_beyond,
        series=_erfcx_series,
        expansion=_expand_erfcx,
        array=lambda xp, x: xp.special("erfcx")(x),
    ),
)
