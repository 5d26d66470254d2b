"""Lambert's W: the iteration w -> log x - log w, each round gains a factor 1/log x."""

from __future__ import annotations

import math
from typing import Any

import sympy
from flint import acb, arb, ctx, fmpq
from sympy import Expr, S

from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.functions.balls import NAN, real
from farfield.theory.functions.elementary import auxiliary, remainder
from farfield.theory.functions.nodes import evaluated_if_small
from farfield.theory.functions.record import Function

omega_rest = auxiliary(
    "omega_rest",
    "LambertW(e^s) - s + log s",
    lambda f, s: 1 / s - 1 / (1 + s - sympy.log(s) + f),
)


def _complex_omega_rest(analytic: bool, s: acb) -> acb:
    """v with v = -log1p((v - log s)/s), a contraction for |omega| >= 2; for small s LambertW, which
    is another branch where |Im s| > pi."""
    if not s.real > 0:
        return NAN
    if not s.abs_lower() > 64:
        w = s.exp().lambertw()
        return w - s + s.log() if abs(s.imag) < 3 else NAN
    log, centre = s.log(), s.mid()
    guess, centre_log = acb(0), centre.log()
    for _ in range(ctx.prec.bit_length()):
        inner = guess - centre_log
        omega = centre + inner
        step = guess + (inner / centre).log1p()
        guess = (guess - step / (1 + 1 / omega)).mid()
    radius = arb(2) ** -ctx.prec + 4 * (s.rad() * (1 + abs(log).upper()) / s.abs_lower()).upper()
    trial = guess + acb(arb(0, radius.upper()), arb(0, radius.upper()))
    image = -((trial - log) / s).log1p()
    return image if trial.contains(image) and (s - log + trial).abs_lower() > 2 else NAN


def _omega_rest_beyond(t: Any, g: Any) -> Any:
    """|omega_rest(s)| <= (8/3) |log s / s| for |s| >= 8 near the positive axis (ours)."""
    t.in_right_half_plane(g, 8)
    return (t.log(g) * t.power(g, fmpq(-1))).scaled(t.ball_of(2.7, g))


def _in_logarithm(z: Expr) -> Expr:
    """W(z) = s - log s + omega_rest(s) with s = log z, for z too large to be enclosed."""
    s = sympy.log(z)
    return s - sympy.log(s) + omega_rest(s)


def _known_value(x: Expr) -> Expr:
    """W(x e^x) = x for x >= -1."""
    factor, power = x.as_independent(sympy.exp, S.Exp1, as_Add=False)
    if power == sympy.exp(factor) and factor.is_Rational and factor >= -1:
        return factor
    return _built(x) if x.is_Rational else sympy.LambertW(x, evaluate=False)


def _expand(t: Any, e: Expr, a: Expr) -> Any:
    """At the leading monomial, then Taylor's series of W around it in the smaller rest."""
    g = t.transseries(a)
    way = t.direction(g)
    if way == 0:
        limit, delta = t.finite(g)
        if not t.oscillates(limit) and t.sign(limit) == 0:
            return t.taylor(_at_zero, delta)
        return t.at_finite(sympy.LambertW, g, "LambertW")
    if way != 1:
        raise Undecided("LambertW of what is not positive")
    g = t.with_proved_lead(g)
    m, c = g.terms[0]
    if t.oscillates(c):
        raise Undecided("LambertW of an oscillation")
    rest = t.drop_lead(g)
    w = _of_monomial(t, m, c)
    if rest.literally_zero:
        return w
    small = rest * m ** fmpq(-1) * t.inverse(c)  # g = c m (1 + small)
    t.context.spend(1 + len(w.terms) ** 2)
    after = 1 / (w + 1)
    total, numerator, power_of_small = w, [0, 1], t.of_constant(fmpq(1))
    order = t.context.order
    for j in range(1, order + 1):  # x^j W^(j) = numerator(w)/(1 + w)^(2 j - 1) at x = c m
        power_of_small = power_of_small * small * fmpq(1, j)
        polynomial = t.of_constant(fmpq(0))
        for k in reversed(numerator):
            polynomial = polynomial * w + k
        derivative = polynomial * after ** fmpq(2 * j - 1)
        total = total + derivative * power_of_small
        if not power_of_small.terms:
            return total
        numerator = _next_numerator(numerator, j)
    return total + t.error(power_of_small.top().times(small.top(), t.context))


def _at_zero(k: int) -> fmpq:
    """Coefficient of x^k in W: (-k)^(k-1)/k!."""
    return fmpq((-k) ** (k - 1), math.factorial(k)) if k else fmpq(0)


def _next_numerator(p: list[int], j: int) -> list[int]:
    """w (p' (1 + w) - (2 j - 1) p) - j p (1 + w)^2, from x d/dx = w/(1 + w) d/dw."""
    out = [0] * (len(p) + 2)
    for i, c in enumerate(p):
        for shift, factor in ((0, i - j), (1, i - (2 * j - 1) - 2 * j), (2, -j)):
            out[i + shift] += c * factor
    return out


def _of_monomial(t: Any, m: Any, c: Any) -> Any:
    """W(c m), each round in powers of the last."""
    log_x = t.log_of_monomial(m) + sympy.log(t.to_sympy(c))
    log_x = t.with_proved_lead(log_x)  # the gain of each round is that of a proved leading term
    gain = log_x.top() ** fmpq(-1)
    error = log_x.log().top()
    w = log_x
    for _ in range(t.context.order + 1):
        error = error.times(gain, t.context)
        w = log_x - w.log() + t.error(error)
    return w


def _real_branch(xp: Any, x: Any) -> Any:
    w = xp.special("lambertw")(x)
    return xp.where(w.imag == 0, w.real, math.nan)


_built = evaluated_if_small(sympy.LambertW)

FUNCTIONS = (
    Function(
        node=sympy.LambertW,
        names=("LambertW", "lambertw"),
        build=lambda x: _built(x) if x.free_symbols else _known_value(x),
        domain=lambda x: (x + sympy.exp(-1), 0),
        asymptotic=_in_logarithm,
        logarithm=lambda x: sympy.log(x) - sympy.LambertW(x) if x.is_positive else None,
        ball=real("lambertw"),
        expansion=_expand,
        array=_real_branch,
    ),
    Function(
        node=omega_rest,
        tail=_omega_rest_beyond,
        **remainder(_complex_omega_rest, lambda s: s.exp().lambertw() - s + s.log()),
    ),
)
