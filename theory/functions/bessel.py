"""Bessel functions: DLMF 10.17, 10.40, and I_0 through the logarithm of its value."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import methodcaller
from typing import Any

import sympy
from flint import acb, arb, arb_series, ctx, fmpq
from sympy import Basic, Expr

from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.functions.balls import NAN, Ball, Undefined, finite, to_arb
from farfield.theory.functions.elementary import (
    NO_REAL_RULE,
    REMAINDER,
    auxiliary,
    by_more_bits,
    remainder,
)
from farfield.theory.functions.record import Function, Refused

HALF = fmpq(1, 2)
MAX_ORDER = 20


bessel_slope = auxiliary("bessel_slope", "the derivative of bessel_rest")
bessel_rest = auxiliary(
    "bessel_rest", "log I_0(z) - z + log(2 pi z)/2", lambda f, z: bessel_slope(z)
)
besseli_scaled = auxiliary("besseli_scaled", "exp(-z) I_v(z), z > 0")
besselk_scaled = auxiliary("besselk_scaled", "exp(z) K_v(z), z > 0")
bessel_small = auxiliary("bessel_small", "I_0(z) - 1")


def _of_order(node: Basic) -> Callable[[Expr, Expr], Expr]:
    """A Bessel function whose order is a small rational; others are refused by name."""

    def build(order: Expr, x: Expr) -> Expr:
        if not (order.is_Rational and abs(order) <= MAX_ORDER and order.q <= 100):
            raise Refused(f"needs a rational order from -{MAX_ORDER} to {MAX_ORDER}")
        return node(order, x, evaluate=False)

    return build


def _ball(name: str) -> Callable[[Ball, Ball], Ball]:
    return lambda order, x: finite(getattr(to_arb(x), name)(to_arb(order)))


def _complex(name: str, entire: bool) -> Callable[..., acb]:
    """Analytic off the negative axis; for an integer order everywhere if `entire`."""

    def value(analytic: bool, order: acb, z: acb) -> acb:
        whole = entire and order.unique_fmpz() is not None
        off_cut = whole or z.real > 0 or z.imag > 0 or z.imag < 0
        return methodcaller(name, order)(z) if not analytic or off_cut else NAN

    return value


def _complex_rest(analytic: bool, z: acb) -> acb:
    """By |d/dz| <= 1/|z| on wide balls, 4/|z| for Re z < 1 where |I_1/I_0| < 4/3; where I_0 is far
    from its zeros (see `_rest_beyond`)."""

    def value(z: acb) -> acb:
        return z.bessel_i(acb(0), scaled=True).log() + (2 * acb.pi() * z).log() / 2

    far = z.real > 7 and z.abs_upper() < z.real * fmpq(3, 2)
    if not (far or (z.real > 0 and abs(z.imag) < fmpq(3, 4))):
        return NAN
    bound = 1 / z.abs_lower()
    return by_more_bits(z, value, bound, bound * (1 if z.real > 1 else 4))


def bessel_row(x: arb, most: int) -> list[arb]:
    """I_0(x), ..., I_most(x) for x > 0, from r_k = I_k/I_{k-1} = 1/(2k/x + r_{k+1}),
    0 < r_k < x/(2k).

    >>> from farfield.theory.functions.balls import precision
    >>> with precision(53):
    ...     bessel_row(arb(1), 2)[2].overlaps(arb(1).bessel_i(arb(2)))
    True
    """
    if not x > 0:
        raise Undefined("a Bessel function of a number that is not proved positive")
    first = most + ctx.prec // 4 + 16
    ratio, ratios = arb(0).union((x / (2 * first + 2)).upper()), []
    for k in range(first, 0, -1):
        ratio = 1 / (2 * k / x + ratio)
        if k <= most:
            ratios.append(ratio)
    row = [x.bessel_i(arb(0))]
    for ratio in reversed(ratios):
        row.append(row[-1] * ratio)
    return row


def _jet(z: arb_series) -> arb_series:
    """I_0(z): the k-th derivative at the constant term from I_k' = (I_{k-1} + I_{k+1})/2."""
    row, c = bessel_row(z[0], ctx.cap), []
    for k in range(ctx.cap):
        c.append(row[0] / math.factorial(k))
        row = [row[1], *((a + b) / 2 for a, b in zip(row, row[2:], strict=False))]
    return arb_series(c)(arb_series([0, *z.coeffs()[1:]]))


def _rest_beyond(t: Any, g: Any) -> Any:
    """|bessel_rest(z)|, |bessel_slope(z)| <= 1/|z| for Re z >= 1, |Im z| <= 3/4, and for Re z >= 7,
    |z| <= 3/2 Re z. Where R = Re z >= 6, |z| <= 2 R, int_0^2 e^{-zv} (v (2 - v))^{-1/2} dv gives
    |e^{-z} I_0(z) sqrt(2 pi z) - 1| < 0.73/|z|, so |bessel_rest| < 0.83/|z|, and the slope by
    Cauchy's estimate on discs of radius 1; on [1, 7] x [-3/4, 3/4] by balls, in a test (ours)."""
    try:
        t.in_right_half_plane(g, 7)
    except t.Unproved:
        t.in_right_half_plane(g)
        t.near_axis(g, 0.75)
    return t.power(g, fmpq(-1)).scaled(t.ball_of(1, g))


def _small_beyond(t: Any, g: Any) -> Any:
    """I_0(z) - 1 = z^2/4 (1 + delta), |delta| <= |z|^2/8 for |z| <= 1."""
    size = abs(g.small()).upper()
    if not size < 1:
        raise t.Unproved("an argument is not proved small")
    spread = arb(0, (size * size / 8).upper())
    ball = 1 + (acb(spread) if g.real() else acb(spread, spread))
    return t.power(g, fmpq(2)).scaled(ball / 4)


def _scaled(form: Any, order: Expr, z: Expr) -> Expr | None:
    """I_0 by its logarithm, or near 0 by what it has beyond 1."""
    if order != 0:
        return None
    if form.size(z) < form.SMALL:
        return 1 + bessel_small(z)
    return sympy.exp(z - form.log(2 * sympy.pi * z) / 2 + bessel_rest(z))


def _expand(t: Any, e: Expr, order: Expr, a: Expr) -> Any:
    """I, K: exp(+-x)/sqrt(2 pi x) sum of the terms of DLMF 10.40; J: a damped wave."""
    name = e.func.__name__
    if order.free_symbols:
        raise Undecided(f"{name} of a variable order")
    g = t.transseries(a)
    way = t.direction(g)
    if way == 0:
        limit = t.finite(g)[0]
        integral = order.is_Integer and e.func is not sympy.besselk
        if t.oscillates(limit) or (t.sign(limit) <= 0 and not integral):
            raise Undecided(f"{name} at a singular point")
        return t.at_finite(lambda x: e.func(order, x), g, name)
    if way != 1:
        raise Undecided(f"{name} of what is not positive")
    small = 1 / g
    root = small**HALF
    if e.func is sympy.besselj:
        wave = t.transseries(sympy.cos(t.expand(a - order * sympy.pi / 2 - sympy.pi / 4)))
        damped = wave * sympy.sqrt(2 / sympy.pi) * root
        return damped + t.error((root * small).top())
    s = 1 if e.func is sympy.besselk else -1
    square = 4 * fmpq(int(order.p), int(order.q)) ** 2

    def coef(k: int) -> fmpq:
        product = fmpq(1)
        for j in range(1, k + 1):
            product *= s * (square - (2 * j - 1) ** 2) / (8 * j)
        return product

    series = t.taylor(coef, small)
    front = 1 / sympy.sqrt(2 * sympy.pi) if s < 0 else sympy.sqrt(sympy.pi / 2)
    grown = (g if s < 0 else -g).exp()
    return grown * root * series * front


NOT_YET = {
    "series": "its Taylor coefficients are not derived from the recurrence in the order yet",
    "tail": "no bound at large arguments is written down yet",
}


def _scaled_array(xp: Any, order: Any, x: Any) -> Any:
    return xp.special("i0e")(x) if order == 0 else xp.special("ive")(order, x)


def _complex_scaled(name: str) -> Callable[..., acb]:
    return lambda analytic, order, z: (
        methodcaller(name, order, scaled=True)(z) if z.real > 0 else NAN
    )


FUNCTIONS = (
    Function(
        node=sympy.besselj,
        names=("besselj", "jv"),
        arity=(2, 2),
        build=_of_order(sympy.besselj),
        ball=_ball("bessel_j"),
        complex_ball=_complex("bessel_j", True),
        expansion=_expand,
        array=lambda xp, order, x: xp.special("jv")(order, x),
        lacks=NOT_YET,
    ),
    Function(
        node=sympy.besseli,
        names=("besseli", "iv"),
        arity=(2, 2),
        build=_of_order(sympy.besseli),
        scaled=_scaled,
        logarithm=lambda order, x: sympy.log(besseli_scaled(order, x)) + x,
        ball=_ball("bessel_i"),
        complex_ball=_complex("bessel_i", True),
        expansion=_expand,
        array=lambda xp, order, x: xp.special("iv")(order, x),
        lacks=NOT_YET,
    ),
    Function(
        node=sympy.besselk,
        names=("besselk", "kv"),
        arity=(2, 2),
        build=_of_order(sympy.besselk),
        logarithm=lambda order, x: sympy.log(besselk_scaled(order, x)) - x,
        ball=_ball("bessel_k"),
        complex_ball=_complex("bessel_k", False),
        expansion=_expand,
        array=lambda xp, order, x: xp.special("kv")(order, x),
        lacks=NOT_YET,
    ),
    Function(
        node=besseli_scaled,
        complex_ball=_complex_scaled("bessel_i"),
        array=_scaled_array,
        lacks=NOT_YET | {"expansion": REMAINDER},
    ),
    Function(
        node=besselk_scaled,
        complex_ball=_complex_scaled("bessel_k"),
        array=lambda xp, order, x: xp.special("kve")(order, x),
        lacks=NOT_YET | {"expansion": REMAINDER},
    ),
    Function(
        node=bessel_rest,
        tail=_rest_beyond,
        **remainder(_complex_rest, lambda z: _jet(z).log() - z + z.log() / 2),
    ),
    Function(
        node=bessel_slope,
        tail=_rest_beyond,
        complex_ball=lambda analytic, z: z.bessel_i(acb(1)) / z.bessel_i(acb(0)) - 1 + 1 / (2 * z),
        lacks=NO_REAL_RULE | {"series": "only its values are used"},
    ),
    Function(
        node=bessel_small,
        tail=_small_beyond,
        **remainder(lambda analytic, z: z.bessel_i(acb(0)) - 1, lambda z: _jet(z) - 1),
    ),
)
