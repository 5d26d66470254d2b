"""The gamma function and its relatives: log gamma, polygamma, factorial, binomial, harmonic.

Expansions at infinity: Stirling's series and its derivatives, DLMF 5.11(ii), 5.15(i).
"""

from __future__ import annotations

import math
from typing import Any

import sympy
from flint import acb, arb, arb_series, ctx, fmpq
from sympy import Expr, S

from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.functions.balls import NAN, Ball, Undefined, Undetermined, finite, to_arb
from farfield.theory.functions.elementary import (
    NO_REAL_RULE,
    auxiliary,
    by_more_bits,
    remainder,
)
from farfield.theory.functions.nodes import evaluated_if_small, opaque
from farfield.theory.functions.record import Function, Refused, Spelling

EXACT_TERMS = 1_000
HALF = fmpq(1, 2)
MAX_ORDER = 20
MOST_FACTORS = 10_000
MOST_BITS = 1 << 20  # of all factors: nothing ends their multiplication


psi_slope = auxiliary("psi_slope", "trigamma(z) - 1/z")
psi_rest = auxiliary("psi_rest", "digamma(z) - log z", lambda f, z: psi_slope(z))
binet = auxiliary(
    "binet",
    "what loggamma(z) has beyond Stirling's elementary terms",
    lambda f, z: psi_rest(z) + 1 / (2 * z),
)


# -- nodes ----------------------------------------------------------------------------------------


def _polygamma(order: Expr, x: Expr) -> Expr:
    """Of numbers unevaluated: SymPy would sum the terms."""
    if not (order.is_Integer and 0 <= order <= MAX_ORDER):
        raise Refused(f"needs an order from 0 to {MAX_ORDER}")
    return sympy.polygamma(order, opaque(x), evaluate=False)


def _upper_share(a: Expr, x: Expr) -> Expr:
    """Gamma(a, x)/Gamma(a), as SciPy and torch call gammaincc(a, x), in elementary terms."""
    if a == S.Half:
        return sympy.erfc(sympy.sqrt(x))
    if not (a.is_Integer and 1 <= a <= MAX_ORDER):
        raise Refused(f"needs an order that is 1/2 or an integer from 1 to {MAX_ORDER}")
    return sympy.exp(-x) * sympy.Add(*(x**k / math.factorial(k) for k in range(int(a))))


# -- Stirling -------------------------------------------------------------------------------------


def _stirling(z: Expr) -> Expr:
    return (z - S.Half) * sympy.log(z) - z + sympy.log(2 * sympy.pi) / 2 + binet(z)


def _log_gamma(z: Expr) -> Expr:
    """log gamma(z) where z is positive."""
    return sympy.loggamma(z, evaluate=False)


def _digamma(z: Expr) -> Expr:
    return sympy.log(z) + psi_rest(z)


def _polygamma_by_rest(order: Expr, z: Expr) -> Expr | None:
    return _digamma(z) if order == 0 else None


def _complex_binet(analytic: bool, z: acb) -> acb:
    """|binet(z)| <= 1/(6 |z|), and 0 <= 1/(e^t - 1) - 1/t + 1/2 <= t/12 bounds its slope by
    1/(12 R^2), R = Re z > 0."""

    def value(z: acb) -> acb:
        return z.lgamma() - ((z - HALF) * z.log() - z + (arb.pi() * 2).log() / 2)

    if not z.real > 0:
        return NAN
    return by_more_bits(z, value, 1 / (6 * z.abs_lower()), 1 / (12 * z.real.lower() ** 2))


def _complex_psi_rest(analytic: bool, z: acb) -> acb:
    """|digamma(z) - log z| <= 1/|z| where |z| >= 1, and t/2 <= t/(1 - e^{-t}) - 1 <= t/2 + t^2/12
    bounds its slope by 1/(2 R^2) + 1/(6 R^3), R = Re z > 0."""
    if not z.real > 0:
        return NAN
    inverse = 1 / z.real.lower()
    slope = inverse**2 / 2 + inverse**3 / 6
    return by_more_bits(z, lambda z: z.digamma() - z.log(), 1 / z.abs_lower(), slope)


def _digamma_jet(z: arb_series) -> arb_series:
    """digamma(z), from the jet of lgamma at the constant term."""
    order = ctx.cap
    try:
        ctx.cap = order + 1
        outer = arb_series([z[0], 1]).lgamma().derivative()
    finally:
        ctx.cap = order
    return outer(arb_series([0, *z.coeffs()[1:]]))


def _binet_beyond(t: Any, g: Any) -> Any:
    """|binet(z)| <= sec^2(arg/2)/(12 |z|), at most 1/(6 |z|) for |arg z| <= pi/2."""
    t.in_right_half_plane(g)
    return t.power(g, fmpq(-1)).scaled(t.ball_of(0.17, g))


def _psi_rest_beyond(t: Any, g: Any) -> Any:
    """|digamma(z) - log z| <= 1/|z| for Re z > 0, |z| >= 1."""
    t.in_right_half_plane(g)
    return t.power(g, fmpq(-1)).scaled(t.ball_of(1, g))


def _psi_slope_beyond(t: Any, g: Any) -> Any:
    """|trigamma(z) - 1/z| = |int (t/(1-e^{-t}) - 1) e^{-zt} dt| <= 1/(Re z)^2 <= 2/|z|^2 (ours)."""
    t.in_right_half_plane(g)
    return t.power(g, fmpq(-2)).scaled(t.ball_of(2, g))


# -- real balls -----------------------------------------------------------------------------------


def _gamma_ball(x: Ball) -> Ball:
    return finite(to_arb(x).gamma())


def _loggamma_ball(x: Ball) -> Ball:
    x = to_arb(x)
    if not x > 0:
        raise Undefined("loggamma of a number that is not positive")
    return finite(x.lgamma())


def _polygamma_ball(order: Ball, x: Ball) -> Ball:
    if order == 0:
        return finite(to_arb(x).digamma())
    return finite(acb.polygamma(acb(to_arb(x)), acb(to_arb(order))).real)


def _binomial_ball(a: Ball, b: Ball) -> Ball:
    """By reciprocal gammas, which are entire; 0 below a negative integer."""
    if isinstance(b, fmpq) and b.q == 1 and b < 0:
        return fmpq(0)
    reciprocal = to_arb(b + 1).rgamma() * to_arb(a - b + 1).rgamma()
    return finite(to_arb(a + 1).gamma() * reciprocal)


def _harmonic_ball(x: Ball) -> Ball:
    """Exactly where it is a sum of few terms: a root of it has a value where it is 0."""
    if isinstance(x, fmpq) and x.q == 1 and 0 <= x <= EXACT_TERMS:
        return fmpq.harmonic(int(x))
    return finite(to_arb(x + 1).digamma()) + arb.const_euler()


def _factorial_residue(x: int, modulus: int) -> int:
    """0 from the modulus on."""
    if x < 0 or min(x, modulus) > MOST_FACTORS:
        raise Undetermined("a factorial of too many factors")
    return 0 if x >= modulus else math.factorial(x) % modulus


def _binomial_residue(a: int, b: int, modulus: int) -> int:
    """From the integer itself."""
    if b < 0:
        return 0
    factors = min(b, a - b)
    if a < 0 or factors > MOST_FACTORS or factors * a.bit_length() > MOST_BITS:
        raise Undetermined("a binomial of too many factors")
    return math.comb(a, b) % modulus


# -- expansions at infinity -----------------------------------------------------------------------


def polygamma_of(t: Any, order: int, g: Any) -> Any:
    """polygamma(order, .) of a transseries that stays positive; loggamma for order -1."""
    name = "loggamma" if order < 0 else "polygamma"
    way = t.direction(g)
    if way == 1:
        return _at_infinity(t, order, g)
    if way != 0:
        raise Undecided(f"{name} of what does not stay positive")
    limit, delta = t.finite(g)
    if t.oscillates(limit):
        raise Undecided(f"{name} of an oscillation")
    if t.sign(limit) < 0:
        raise Undecided(f"{name} of what does not stay positive")
    if t.sign(limit) == 0:  # psi_m(x) = psi_m(x + 1) + (-1)^(m+1) m!/x^(m+1)
        if order < 0:
            return polygamma_of(t, order, g + 1) - g.log()
        size = fmpq((-1) ** (order + 1) * math.factorial(order))
        return polygamma_of(t, order, g + 1) + g ** fmpq(-order - 1) * size
    point = t.to_sympy(limit)

    def coef(k: int) -> Any:
        m = order + k
        function, args = (sympy.loggamma, ()) if m < 0 else (sympy.polygamma, (S(m),))
        return t.coefficient(t.function_value(function, *args, point) / math.factorial(k))

    return t.taylor(coef, delta)


def loggamma_of(t: object, g: object) -> Any:
    """loggamma of a transseries that stays positive."""
    return polygamma_of(t, -1, g)


def _at_infinity(t: Any, order: int, g: Any) -> Any:
    """DLMF 5.11.1, 5.11.2 and 5.15.8: Bernoulli numbers over powers of the argument."""
    small = 1 / g

    def of_loggamma(k: int) -> fmpq:
        return fmpq.bernoulli(k + 1) / ((k + 1) * k) if k else fmpq(0)

    def of_digamma(k: int) -> fmpq:
        if k < 2:
            return fmpq(-k, 2)
        return -fmpq.bernoulli(k) / k

    def of_derivative(k: int) -> fmpq:  # of x^-(order + k), but for the sign (-1)^(order+1)
        if k < 2:
            return fmpq(math.factorial(order - 1 + k), 1 + k)
        factor = fmpq(math.factorial(k + order - 1), math.factorial(k))
        return fmpq.bernoulli(k) * factor

    if order < 0:
        main = (g - HALF) * g.log() - g + sympy.log(2 * sympy.pi) / 2
        return main + t.taylor(of_loggamma, small)
    if order == 0:
        return g.log() + t.taylor(of_digamma, small)
    tail = t.taylor(of_derivative, small)
    series = small ** fmpq(order) * tail
    return series if order % 2 else -series


def gamma_of(t: Any, g: Any) -> Any:
    """gamma of what stays positive, or tends to a number > -20 (then by recurrence)."""
    if t.direction(g) != 0:
        return loggamma_of(t, g).exp()
    limit = t.finite(g)[0]
    if t.oscillates(limit) or t.sign(limit) > 0:
        return loggamma_of(t, g).exp()
    if t.sign(t.plus(limit, fmpq(20))) <= 0:
        raise Undecided("gamma far below 0")
    return gamma_of(t, g + 1) / g


def _expand_polygamma(t: Any, e: Expr, order: Expr, a: Expr) -> Any:
    return polygamma_of(t, int(order), t.transseries(a))


def _expand_harmonic(t: Any, e: Expr, a: Expr) -> Any:
    return polygamma_of(t, 0, t.transseries(a) + 1) + S.EulerGamma


def _expand_binomial(t: Any, e: Expr, top: Expr, bottom: Expr) -> Any:
    """By three loggammas and an exponential."""
    parts = [t.transseries(x) for x in (top + 1, bottom + 1, top - bottom + 1)]
    a, b, c = (loggamma_of(t, g) for g in parts)
    return (a - (b + c)).exp()


# -- tables ---------------------------------------------------------------------------------------


def _polygamma_array(xp: Any, order: Any, x: Any) -> Any:
    return xp.special("digamma")(x) if order == 0 else xp.special("polygamma")(int(order), x)


FUNCTIONS = (
    Function(
        node=sympy.gamma,
        names=("gamma", "Gamma"),
        build=evaluated_if_small(sympy.gamma, large_opaque=True),
        positive=True,
        asymptotic=lambda z: sympy.exp(_stirling(z)),
        logarithm=_log_gamma,
        ball=_gamma_ball,
        expansion=lambda t, e, a: gamma_of(t, t.transseries(a)),
        array=lambda xp, x: xp.special("gamma")(x),
    ),
    Function(
        node=sympy.loggamma,
        names=("loggamma", "lgamma", "gammaln"),
        build=evaluated_if_small(sympy.loggamma, of_numbers=False, large_opaque=True),
        domain=lambda x: (x, 1),
        asymptotic=_stirling,
        ball=_loggamma_ball,
        expansion=lambda t, e, a: loggamma_of(t, t.transseries(a)),
        array=lambda xp, x: xp.where(x > 0, xp.special("gammaln")(x), math.nan),
    ),
    *(Spelling(name, lambda x: _polygamma(S.Zero, x)) for name in ("digamma", "psi")),
    Spelling("gammaincc", _upper_share, 2, 2),
    Spelling("gammainc", lambda a, x: 1 - _upper_share(a, x), 2, 2),
    Function(
        node=sympy.polygamma,
        names=("polygamma",),
        arity=(2, 2),
        build=_polygamma,
        positive=True,
        asymptotic=_polygamma_by_rest,
        ball=_polygamma_ball,
        expansion=_expand_polygamma,
        array=_polygamma_array,
    ),
    Function(
        node=sympy.factorial,
        names=("factorial",),
        build=evaluated_if_small(sympy.factorial, large_opaque=True),
        positive=True,
        asymptotic=lambda z: sympy.exp(_stirling(z + 1)),
        logarithm=lambda x: _log_gamma(x + 1),
        residue=_factorial_residue,
        ball=lambda x: _gamma_ball(x + 1),
        expansion=lambda t, e, a: gamma_of(t, t.transseries(a) + 1),
        array=lambda xp, x: xp.special("gamma")(x + 1),
    ),
    Function(
        node=sympy.binomial,
        names=("binomial", "binom", "comb"),
        arity=(2, 2),
        build=evaluated_if_small(sympy.binomial),
        positive=True,
        asymptotic=lambda a, b: sympy.exp(
            _stirling(a + 1) - _stirling(b + 1) - _stirling(a - b + 1)
        ),
        logarithm=lambda a, b: _log_gamma(a + 1) - _log_gamma(b + 1) - _log_gamma(a - b + 1),
        residue=_binomial_residue,
        ball=_binomial_ball,
        expansion=_expand_binomial,
        array=lambda xp, a, b: xp.special("binom")(a, b),
    ),
    Function(
        node=sympy.harmonic,
        names=("harmonic",),
        build=evaluated_if_small(sympy.harmonic, large_opaque=True),
        positive=True,
        asymptotic=lambda z: _digamma(z + 1) + S.EulerGamma,
        ball=_harmonic_ball,
        expansion=_expand_harmonic,
        array=lambda xp, x: xp.special("digamma")(x + 1) + float(S.EulerGamma),
    ),
    Function(
        node=binet,
        tail=_binet_beyond,
        **remainder(_complex_binet, lambda z: z.lgamma() - (z - HALF) * z.log() + z),
    ),
    Function(
        node=psi_rest,
        tail=_psi_rest_beyond,
        **remainder(_complex_psi_rest, lambda z: _digamma_jet(z) - z.log()),
    ),
    Function(
        node=psi_slope,
        tail=_psi_slope_beyond,
        complex_ball=lambda analytic, z: acb.polygamma(z, acb(1)) - 1 / z if z.real > 0 else NAN,
        lacks=NO_REAL_RULE | {"series": "only its values are used"},
    ),
)
