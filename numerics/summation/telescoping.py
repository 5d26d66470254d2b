r"""Exact shares T_j/B of hypergeometric series that telescope, by Gosper's algorithm.

Let `b_{n+1}/b_n = r(n)`, and let R have `r(n) R(n+1) - R(n) = 1`, both rational functions of n.
Then `b_n = R(n+1) b_{n+1} - R(n) b_n`, and where R(n) b_n -> L the tail is T_j = L - R(j) b_j. For
L = 0

    T_j / B = (R(j)/R(0)) r(0) r(1) ... r(j-1),

a rational number, as it is for rational terms and any L. It settles ties T_j = eps B that no
enclosure decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import sympy
from flint import fmpq, fmpq_poly
from sympy import Expr

from farfield.theory.algebra import door
from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.functions.nodes import n

MAX_FACTORS = 20_000  # factors of an exact share, whose digits grow with each
MAX_OPERATIONS = 60  # of a bias that Gosper is tried on


@lru_cache(maxsize=64)
def share(bias: Expr) -> Callable[[int], fmpq | None] | None:
    """j -> T_j/B, exact, None for a j out of reach; None where the series does not telescope.

    >>> share(-sympy.log(n + 1) - sympy.log(n + 2))(4)
    1/5
    """
    if bias.free_symbols != {n} or bias.count_ops() > MAX_OPERATIONS:
        return None
    logs = door.expand(door.rewritten(bias, sympy.gamma))
    k = sympy.Symbol("k", integer=True, nonnegative=True)
    term = sympy.Mul(*map(_power, sympy.Add.make_args(logs))).xreplace({n: k})
    try:
        ratio = door.hypersimp(term, k)
        factor = None if ratio is None else door.gosper_term(term, k)
    except Undecided:
        return None
    if factor is None or not _rational(ratio, k) or not _rational(factor, k):
        return None
    ratio, factor = door.cancel(ratio), door.cancel(factor)
    if door.cancel(ratio * factor.subs(k, k + 1) - factor - 1) != 0:
        return None
    if _rational(term, k):
        return _of_rational(door.cancel(term * factor), k)
    if not _vanishes(ratio, factor, k) or factor.subs(k, 0) == 0:
        return None
    step, scale = _function(ratio, k), _function(factor, k)

    def at(j: int) -> fmpq | None:
        if j > MAX_FACTORS:
            return None
        return math.prod(map(step, range(j)), start=scale(j) / scale(0))

    return at


def _power(t: Expr) -> Expr:
    """exp(t), with exp(c log m) as m^c."""
    number, rest = t.as_independent(sympy.log, as_Add=False)
    return rest.args[0] ** number if isinstance(rest, sympy.log) else sympy.exp(t)


def _of_rational(g: Expr, k: sympy.Symbol) -> Callable[[int], fmpq | None] | None:
    """With b = g(n+1) - g(n), g rational: T_j = lim g - g(j)."""
    top, bottom = (door.polynomial(part, k) for part in door.fraction(g))
    if top.degree() > bottom.degree():
        return None
    limit = top.LC() / bottom.LC() if top.degree() == bottom.degree() else sympy.S.Zero
    tail = _function(door.cancel(limit - g), k)
    return lambda j: tail(j) / tail(0)


def _rational(e: Expr, k: sympy.Symbol) -> bool:
    """Whether e is a rational function of k with rational coefficients."""
    top, bottom = door.fraction(door.together(e))
    return all(
        part.is_polynomial(k) and all(c.is_Rational for c in door.polynomial(part, k).all_coeffs())
        for part in (top, bottom)
    )


def _vanishes(ratio: Expr, factor: Expr, k: sympy.Symbol) -> bool:
    """Whether R(n) b_n -> 0: b_n falls geometrically, or as n^a with a + deg R < 0."""
    top, bottom = (door.polynomial(part, k) for part in door.fraction(ratio))
    if top.degree() != bottom.degree():
        return bool(top.degree() < bottom.degree())
    limit = abs(top.LC() / bottom.LC())
    if limit != 1:
        return bool(limit < 1)
    degree = top.degree()
    a = (top.nth(degree - 1) - bottom.nth(degree - 1)) / bottom.LC() if degree else sympy.S.Zero
    over, under = (door.polynomial(part, k) for part in door.fraction(factor))
    return bool(top.LC() == bottom.LC() and a + over.degree() - under.degree() < 0)


def _function(e: Expr, k: sympy.Symbol) -> Callable[[int], fmpq]:
    """A rational function as an exact function of integers."""
    top, bottom = (
        fmpq_poly([fmpq(int(c.p), int(c.q)) for c in door.polynomial(part, k).all_coeffs()[::-1]])
        for part in door.fraction(e)
    )
    return lambda i: top(fmpq(i)) / bottom(fmpq(i))
