r"""Attention resolution: closed forms of its limit, and of long rows.

    R(s) = sum_{i=0}^{N} x_i (x_i - x_{i+1}) / (sum_{i=0}^{N} x_i)^2,  x_i = e^{s_i}    [S, Eq. 4]

`s_{N+1}` must exist: T tokens give `s_0 .. s_{T-1}` [S, Eq. 13], so `N = T - 2`. As N grows, with
`B = sum x_i`, `Q = sum x_i^2` and `C = sum x_i x_{i+1}`,

    R -> (Q - C) / B^2  if the exp-series converges, and 0 if it diverges with s bounded above

(ours; `farfield.theory.theorems` proves it). For the biases of this module B, Q and C are
elementary or zeta values. The shape of the bias decides, never its name.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy
from sympy import Expr, Integer, Rational, S, Symbol

from farfield.theory.functions.nodes import n

MAX_SHIFT = 1_000
MAX_POWER = 16
ROWS = Symbol("N", integer=True, nonnegative=True)
"""The last summed index N of the closed forms for finite rows."""


@dataclass(frozen=True)
class Linear:
    """p = constant - slope n."""

    slope: Expr


@dataclass(frozen=True)
class PowerLaw:
    """p = constant - exponent log(n + shift)."""

    exponent: Expr
    shift: Expr


@dataclass(frozen=True)
class Box:
    """p constant on `width` distances, -oo beyond."""

    width: Expr


def shape(bias: Expr) -> Linear | PowerLaw | Box | None:
    """The family of a bias that has a closed form here, constants aside; None for the rest.

    >>> shape(-2 * sympy.log(3 * (n + 1)))
    PowerLaw(exponent=2, shift=1)
    """
    if isinstance(bias, sympy.Piecewise):
        return _box(bias)
    powers = (e.exp for e in bias.atoms(sympy.Pow) if e.base.has(n) and e.exp.is_Integer)
    if any(abs(k) > MAX_POWER for k in powers):
        return None  # no line, and long to write out
    moving = sympy.expand(bias).as_independent(n, as_Add=True)[1]
    factor, core = moving.as_independent(n, as_Add=False)
    if core == n:
        return Linear(-factor)
    if isinstance(core, sympy.log):
        inner = sympy.expand(core.args[0])
        slope = inner.coeff(n, 1)
        rest = sympy.expand(inner - slope * n)
        if slope.is_positive and not rest.has(n):
            return PowerLaw(-factor, sympy.cancel(rest / slope))
    return None


def _box(bias: Expr) -> Box | None:
    """A bias that is constant up to a length and masked behind it."""
    (value, condition), *others = bias.args
    if value.has(n) or len(others) != 1 or others[0][0] is not S.NegativeInfinity:
        return None
    if isinstance(condition, (sympy.StrictLessThan, sympy.LessThan)) and condition.lhs == n:
        return Box(condition.rhs + (0 if isinstance(condition, sympy.StrictLessThan) else 1))
    return None


def limit_closed_form(bias: Expr) -> Expr | None:
    """The limit of R as the row grows, in closed form, where this module knows one.

    A power law with an exponent in (0, 1], where the exp-series diverges, has the limit 0.

    Args:
        bias: `p(n)`, with or without free parameters; constants and positive factors inside a
            logarithm do not change R.

    Returns:
        An expression, or None for other biases.

    >>> limit_closed_form(-2 * sympy.log(1 + n))
    36*(-pi**2/3 + pi**4/90 + 3)/pi**4
    >>> limit_closed_form(sympy.Symbol("m", positive=True) * -n)
    (1 - exp(-m))**2/(1 + exp(-m))
    """
    form = shape(bias)
    if isinstance(form, Linear) and form.slope.is_positive:
        q = sympy.exp(-form.slope)
        return (1 - q) ** 2 / (1 + q)
    if isinstance(form, Box):
        return 1 / form.width**2
    if isinstance(form, PowerLaw) and any(
        (x - MAX_SHIFT).is_positive for x in (form.shift, form.exponent)
    ):
        return None  # the zeta value of a large integer is written out, as a sum or a fraction
    if isinstance(form, PowerLaw) and (form.exponent - 1).is_positive:
        r, h = form.exponent, form.shift
        squares, products = sympy.zeta(2 * r, h), neighbour_sum(r, h)
        return (squares - products) / sympy.zeta(r, h) ** 2
    if isinstance(form, PowerLaw) and (1 - form.exponent).is_nonnegative:
        return S.Zero if form.exponent.is_nonnegative else None
    return None


def neighbour_sum(r: Expr, h: Expr) -> Expr:
    r"""`sum_{i>=0} (i + h)^{-r} (i + 1 + h)^{-r}` for r > 1/2, h > 0, through zeta values.

    For a whole r by partial fractions; otherwise, with `a = h + 1/2`, from
    `(i + h)(i + h + 1) = (i + a)^2 - 1/4` and the binomial series, whose terms are all positive.

    >>> neighbour_sum(sympy.Integer(2), sympy.Integer(1))
    -3 + pi**2/3
    """
    if r.is_Integer and 1 <= r <= 40:
        k = int(r)
        total = (-1) ** (k - 1) * sympy.binomial(2 * k - 2, k - 1) / h
        for j in range(2, k + 1):
            weight = sympy.binomial(2 * k - j - 1, k - j)
            pair = (-1) ** (k - j) * sympy.zeta(j, h) + (-1) ** k * sympy.zeta(j, h + 1)
            total += weight * pair
        return sympy.expand(total)
    j = Symbol("j", integer=True, nonnegative=True)
    term = sympy.RisingFactorial(r, j) / sympy.factorial(j) / Integer(4) ** j
    return sympy.Sum(term * sympy.zeta(2 * r + 2 * j, h + Rational(1, 2)), (j, 0, S.Infinity))


def finite_closed_form(bias: Expr) -> Expr | None:
    """R of the row with indices 0 to N as an expression in `ROWS`, where it is elementary.

    >>> finite_closed_form(-n * sympy.log(2)).subs(ROWS, 1)
    5/18
    """
    form = shape(bias)
    if isinstance(form, Linear):
        q = sympy.exp(-form.slope)
        power = q ** (ROWS + 1)
        return (1 - q) ** 2 * (1 + power) / ((1 + q) * (1 - power))
    if isinstance(form, Box):
        return sympy.Piecewise((1 / form.width**2, form.width - 1 <= ROWS), (S.Zero, S.true))
    return None
