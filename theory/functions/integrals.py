"""The exponential, logarithmic, sine and cosine integrals: DLMF 6.12, by repeated integration by
parts."""

from __future__ import annotations

import math
from operator import methodcaller
from typing import Any

import sympy
from flint import acb, arb, ctx, fmpq
from sympy import Expr

from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.functions.balls import NAN, real
from farfield.theory.functions.elementary import auxiliary, remainder
from farfield.theory.functions.nodes import evaluated_if_small
from farfield.theory.functions.record import Function, Refused, Spelling

MAX_TERMS = 400  # of a divergent series, which ends where its terms are least
NO_TAIL = {"tail": "no bound of its wave at large arguments is written down yet"}


ei_rest = auxiliary("ei_rest", "s e^{-s} Ei(s)", lambda f, s: f * (1 / s - 1) + 1)


def _complex_ei_rest(analytic: bool, s: acb) -> acb:
    """sum k!/s^k on wide balls and for large s: K integrations by parts of e^{-s} Ei(s) =
    int e^{-(s-u)}/u du, from Re u = Re s / 2 on, leave K! (2 sqrt 2)^{K+1} |s|^{-K} and what is
    below e^{-|s|/4}, s >= 100."""
    if not s.real > 1:
        return NAN
    size = s.abs_lower()
    if not (size > 2**24 or (size > 100 and s.rad() > fmpq(1, 1024))):
        return acb(s.ei()) * (-s).exp() * s
    if not s.real > abs(s.imag):
        return NAN
    total, term, goal, rest = acb(0), acb(1), arb(2) ** -ctx.prec, (-size / 4).exp()
    error, factor = arb.pos_inf(), 3 / size
    for k in range(1, MAX_TERMS):
        total += term
        term = term * k / s
        error = (error * factor * k if k > 1 else 3 * factor).upper()
        if error < goal or not factor * k < fmpq(1, 2):
            break
    error = (error + rest).upper()
    return total + acb(arb(0, error), arb(0, error))


def _ei_rest_beyond(t: Any, g: Any) -> Any:
    """|s e^{-s} Ei(s) - 1| <= 6/|s| for Re s >= 10, |Im s| <= 0.7 (ours, by Gronwall)."""
    t.in_right_half_plane(g, 10)
    t.near_axis(g, 0.7)
    return t.constant(g, fmpq(1)) + t.power(g, fmpq(-1)).scaled(t.ball_of(6, g))


def li_of(t: Any, g: Any) -> Any:
    """The logarithmic integral of a transseries."""
    if t.direction(g) != 1:
        limit = t.finite(g)[0]
        if t.oscillates(limit) or t.sign(limit) <= 0 or t.sign(t.plus(limit, fmpq(-1))) == 0:
            raise Undecided("li at a singular point")
        return t.at_finite(sympy.li, g, "li")
    small = 1 / g.log()
    series = t.taylor(lambda k: fmpq(math.factorial(k)), small)
    return g * small * series


def _expand_ei(t: Any, e: Expr, a: Expr) -> Any:
    """exp(x)/x sum k!/x^k at +oo and at -oo."""
    g = t.transseries(a)
    if t.direction(g) in (1, -1):
        small = 1 / g
        series = t.taylor(lambda k: fmpq(math.factorial(k)), small)
        return g.exp() * small * series
    limit = t.finite(g)[0]
    if t.oscillates(limit) or t.sign(limit) == 0:
        raise Undecided("Ei at a singular point")
    return t.at_finite(sympy.Ei, g, "Ei")


def _sine_integral_at_zero(k: int) -> fmpq:
    """Coefficient of x^k in Si: (-1)^((k-1)/2)/(k k!) for odd k."""
    return fmpq((-1) ** (k // 2), k * math.factorial(k)) if k % 2 else fmpq(0)


def _expand_si_ci(t: Any, e: Expr, a: Expr) -> Any:
    """Si x = pi/2 - cos x/x + O(1/x^2), Ci x = sin x/x + O(1/x^2)."""
    g, name = t.transseries(a), e.func.__name__
    way = t.direction(g)
    if way == 0:
        limit = t.finite(g)[0]
        if e.func is sympy.Ci and (t.oscillates(limit) or t.sign(limit) <= 0):
            raise Undecided("Ci at a singular point")
        if e.func is sympy.Si and not t.oscillates(limit) and t.sign(limit) == 0:
            return t.taylor(_sine_integral_at_zero, g)
        return t.at_finite(e.func, g, name)
    if way is None or (way < 0 and e.func is sympy.Ci):
        raise Undecided(f"{name} of what is not positive")
    small = 1 / g
    error = t.error((small * small).top())
    if e.func is sympy.Ci:
        return t.transseries(sympy.sin(a)) * small + error
    wave = t.transseries(sympy.cos(a)) * small
    return way * sympy.pi / 2 - wave + error


def _expint(*args: Expr) -> Expr:
    """E_1(x), or E_k(x) of an order k that is 0 or 1."""
    order, x = args if len(args) == 2 else (1, *args)
    if order not in (0, 1):
        raise Refused("needs the order 0 or 1")
    return -evaluated_if_small(sympy.Ei)(-x) if order == 1 else sympy.exp(-x) / x


FUNCTIONS = (
    Spelling("expint", _expint, 1, 2),
    Function(
        node=sympy.li,
        names=("li",),
        build=evaluated_if_small(sympy.li),
        domain=lambda x: (x, 0),
        asymptotic=lambda z: z * ei_rest(sympy.log(z)) / sympy.log(z),
        ball=real("li"),
        expansion=lambda t, e, a: li_of(t, t.transseries(a)),
        array=lambda xp, x: xp.where(x == 0, 0.0, xp.special("expi")(xp.log(x))),
    ),
    Function(
        node=sympy.Ei,
        names=("Ei",),
        build=evaluated_if_small(sympy.Ei),
        asymptotic=lambda z: sympy.exp(z) * ei_rest(z) / z,
        ball=real("ei"),
        expansion=_expand_ei,
        array=lambda xp, x: xp.special("expi")(x),
    ),
    Function(
        node=sympy.Si,
        names=("Si",),
        build=evaluated_if_small(sympy.Si),
        ball=real("si"),
        complex_ball=lambda analytic, z: z.si(),
        series=methodcaller("si"),
        expansion=_expand_si_ci,
        array=lambda xp, x: xp.special("sici")(x)[0],
        lacks=NO_TAIL,
    ),
    Function(
        node=sympy.Ci,
        names=("Ci",),
        build=evaluated_if_small(sympy.Ci),
        domain=lambda x: (x, 1),
        ball=real("ci"),
        complex_ball=lambda analytic, z: z.ci() if not analytic or z.real > 0 else NAN,
        series=methodcaller("ci"),
        expansion=_expand_si_ci,
        array=lambda xp, x: xp.special("sici")(x)[1],
        lacks=NO_TAIL,
    ),
    Function(
        node=ei_rest,
        tail=_ei_rest_beyond,
        **remainder(_complex_ei_rest, lambda s: s * (-s).exp() * s.ei()),
    ),
)
