"""Exact coefficients, `fmpq` or expressions: plus, times, inverse, bounds on size, linear parts.

An expression is a real constant, a polynomial in parameters, or an oscillating quantity, which
contains the distance `n` or a bounded atom. A coefficient is false where it is the number 0 itself,
without any test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import sympy
from flint import fmpq
from sympy import Expr, S, Symbol

from farfield.theory.algebra import door
from farfield.theory.algebra.door import check_time
from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.functions.nodes import n
from farfield.theory.functions.record import UNDEFINED, kinds, symbols


class Atom(sympy.Dummy):
    """A quantity that stays in [low, high] for all large n (ends may be infinite), and what it
    represents where that has a formula."""

    __slots__ = ("high", "low", "meaning")


Coefficient: TypeAlias = fmpq | Expr
ZERO, ONE = fmpq(0), fmpq(1)
MAX_TERMS = 3000
MAX_ATOMS = 150
MAX_EXPONENT = 10**4
_INFINITE = {type(S.Infinity), type(S.NegativeInfinity)}
_NO_REAL_NUMBERS = UNDEFINED | _INFINITE | {type(S.ImaginaryUnit), sympy.Float}


# -- coefficients ---------------------------------------------------------------------------------


def expand(e: Expr) -> Expr:
    """The expression multiplied out; Undecided where that would be too long."""
    if not e.args:
        return e
    if _length(e) > MAX_TERMS:
        raise Undecided("an expression is too long to be multiplied out")
    return door.expand(e)


def linear(e: Expr, x: Symbol) -> tuple[Expr, Expr] | None:
    """(slope, rest) with e = slope x + rest, for an e multiplied out; None unless it is linear.

    >>> x, y = sympy.symbols("x y")
    >>> linear(2 * x + y - 1, x), linear(x * y - x, x), linear(x * sympy.log(x), x)
    ((2, y - 1), (y - 1, 0), None)
    """
    slopes: list[Expr] = []
    rest: list[Expr] = []
    for term in sympy.Add.make_args(e):
        factor, power = term.as_independent(x)
        if power != x and power is not S.One:
            return None
        (rest if power is S.One else slopes).append(factor)
    slope = sympy.Add(*slopes)
    return None if slope == 0 else (slope, sympy.Add(*rest))


def _length(e: Expr) -> int:
    """A bound of the number of terms of an expression multiplied out."""
    if not e.args:
        return 1
    sizes = [min(_length(a), MAX_TERMS + 1) for a in e.args]
    if e.is_Add:
        return sum(sizes)
    if e.is_Mul:
        return math.prod(sizes)
    if e.is_Pow and e.exp.is_Integer:
        k = min(abs(int(e.exp)), MAX_TERMS)
        return math.comb(sizes[0] + k - 1, k) if sizes[0] > 1 else 1
    return 1 if max(sizes) <= MAX_TERMS else MAX_TERMS + 1


def to_sympy(c: Coefficient) -> Expr:
    """The coefficient as a SymPy expression."""
    return sympy.Rational(int(c.p), int(c.q)) if type(c) is fmpq else c


def coefficient(e: Expr) -> Coefficient:
    """An expression as a coefficient; rationals become exact, values that are not finite are
    refused."""
    if e.is_Rational:
        return fmpq(int(e.p), int(e.q))
    if not _NO_REAL_NUMBERS.isdisjoint(kinds(e)):
        raise Undecided("a coefficient is not a finite real number")
    return e


def _checked_size(c: Coefficient) -> Coefficient:
    """The coefficient; Undecided where it has far more than MAX_ATOMS atoms."""
    if type(c) is not fmpq and len(c.args) > 8:
        check_time()
        if sum(1 for _ in sympy.preorder_traversal(c)) > MAX_ATOMS * 4:
            raise Undecided("a coefficient grew too large")
    return c


def plus(a: Coefficient, b: Coefficient) -> Coefficient:
    """The sum of two coefficients."""
    if type(a) is fmpq and type(b) is fmpq:
        return a + b
    return _checked_size(coefficient(to_sympy(a) + to_sympy(b)))


def total(parts: Sequence[Coefficient]) -> Coefficient:
    """The sum of several coefficients, at once: one by one, SymPy sorts the sum anew each time."""
    if len(parts) == 2:
        return plus(*parts)
    numbers = sum((c for c in parts if type(c) is fmpq), ZERO)
    others = [c for c in parts if type(c) is not fmpq]
    if not others:
        return numbers
    return _checked_size(coefficient(sympy.Add(to_sympy(numbers), *others)))


def times(a: Coefficient, b: Coefficient) -> Coefficient:
    """The product of two coefficients."""
    if type(a) is fmpq:
        if type(b) is fmpq:
            return a * b
        if a == 0:
            return ZERO
        if a == 1:
            return b
    elif type(b) is fmpq:
        if b == 0:
            return ZERO
        if b == 1:
            return a
    return _checked_size(coefficient(to_sympy(a) * to_sympy(b)))


def minus(a: Coefficient) -> Coefficient:
    """The negative of a coefficient."""
    return -a if type(a) is fmpq else coefficient(-a)


def inverse(a: Coefficient) -> Coefficient:
    """One over a coefficient known not to be 0."""
    return 1 / a if type(a) is fmpq else coefficient(1 / a)


def power(a: Coefficient, r: Coefficient) -> Coefficient:
    """a^r for a positive coefficient that does not oscillate, or an integer r."""
    if type(a) is fmpq and type(r) is fmpq and r.q == 1 and abs(r.p) < 1000:
        return a ** int(r.p)
    if is_huge(r) and a != 1 and (type(a) is fmpq or a.has(sympy.Rational)):
        raise Undecided("a constant is too large")
    return coefficient(door.raised(to_sympy(a), to_sympy(r)))


def is_huge(r: Coefficient) -> bool:
    """Whether a power with this exponent is a number that cannot be written."""
    return type(r) is fmpq and abs(r) > MAX_EXPONENT


def logarithm(a: Coefficient) -> Coefficient:
    """The logarithm of a positive coefficient that does not oscillate."""
    return ZERO if a == 1 else coefficient(door.supervised(sympy.log, to_sympy(a)))


def oscillates(c: Coefficient) -> bool:
    """Whether the coefficient changes with the distance: it contains n or a bounded atom."""
    return type(c) is not fmpq and any(s is n or type(s) is Atom for s in symbols(c))
