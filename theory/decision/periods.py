"""Periodic parts of a formula, and its residue classes: `(-1)^n`, `cos(pi n/3)`, `Mod(n, 7)`."""

from __future__ import annotations

import math

import sympy
from sympy import Expr

from farfield.theory.algebra import door
from farfield.theory.algebra.budget import check_time
from farfield.theory.algebra.outcomes import Undecided
from farfield.theory.coefficients.arithmetic import expand
from farfield.theory.formula.building import substituted
from farfield.theory.functions.nodes import n
from farfield.theory.functions.record import record_of

MAX_POWER = 12  # of n in what is periodic


def common_period(p: Expr, rounding: bool = False) -> int:
    """A common period of what is periodic in p; with `rounding`, of fractional parts too."""
    periods = (_cycle(x, rounding) for x in sympy.preorder_traversal(p) if x.has(n))
    return math.lcm(*(k for k in periods if k))


def _cycle(x: Expr, rounding: bool) -> int:
    """The period of `(-1)^P`, `Mod(P, b)`, `cos(pi P)`, `frac(P)` for a polynomial P with rational
    coefficients, its constant aside; 0 for anything else. If D is their common denominator,
    P(n + T) - P(n) is a multiple of T/D."""
    check_time()
    record = record_of(x.func)
    if x.is_Pow and x.base == -1:
        inside, modulus = x.exp, sympy.Integer(2)
    elif record is None or record.period is None or (record.rounds and not rounding):
        return 0
    else:
        inside, modulus = record.period(*x.args)
    powers = (e.exp for e in inside.atoms(sympy.Pow) if e.has(n))
    if not modulus.is_Rational or not all(k.is_Rational and abs(k) <= MAX_POWER for k in powers):
        return 0
    k, rest = inside.as_independent(n, as_Add=False)
    if rest == n and k.is_algebraic is False:  # so not rational either
        return 0
    try:
        inside = expand(inside)
    except Undecided:
        return 0
    if not inside.is_polynomial(n):
        return 0
    slopes = door.polynomial(inside, n).all_coeffs()[:-1]
    if not slopes or not all(c.is_Rational for c in slopes):
        return 0
    if len(slopes) == 1:
        return int((modulus / abs(slopes[0])).p)
    return int(modulus.p) * math.lcm(*(int(c.q) for c in slopes))


def residue_class(p: Expr, period: int, residue: int) -> Expr:
    """p at n = period k + residue, as an expression in k (called n again).

    >>> residue_class(sympy.floor(n / 2, evaluate=False), 2, 1)
    n
    """
    swap = {}
    for x in sympy.preorder_traversal(p):
        cycle = _cycle(x, True) if x.has(n) else 0
        if cycle and period % cycle == 0:
            value = sympy.frac(x.args[0]) if isinstance(x, (sympy.floor, sympy.ceiling)) else x
            value = value.xreplace({n: sympy.Integer(residue)})
            if isinstance(x, sympy.floor):
                value = x.args[0] - value
            elif isinstance(x, sympy.ceiling):  # -floor(-y) = y + frac(-y)
                value = x.args[0] + sympy.frac(-x.args[0]).xreplace({n: sympy.Integer(residue)})
            swap[x] = value
    return substituted(substituted(p, swap), {n: period * n + residue})
