"""Remainders of integers too large for balls: 2^n modulo 3 at n = 10^9, by powers modulo 3.

Sums, products and powers are reduced at each step. An exponent, and whatever else has no rule
here, is evaluated exactly by the arithmetic of the caller.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from typing import ClassVar

import sympy
from flint import fmpq
from sympy import Basic, Expr, Symbol

from farfield.theory.functions.balls import Undetermined
from farfield.theory.functions.record import Arithmetic, Function, Operation, Program, record_of


class Residues(Arithmetic):
    """Integers modulo m, from integers for the symbols.

    Args:
        modulus: m, at least 1.
        exact: the arithmetic of exponents.
        symbols: the symbols of the formula, in the order of their values.
    """

    rule: ClassVar[str] = "residue"

    def __init__(self, modulus: int, exact: Arithmetic, symbols: tuple[Symbol, ...]) -> None:
        self.modulus, self.exact, self.symbols = modulus, exact, symbols

    def operation(self, e: Basic) -> Operation:
        if e.is_integer and (e.is_Add or e.is_Mul or (e.is_Pow and e.exp.is_nonnegative)):
            return super().operation(e)
        record = record_of(e.func)
        if record is not None and record.residue is not None:
            return self.function(record, e)
        return self._whole(e), self.symbols

    def power(self, e: Expr) -> Operation:
        exponent = self._whole(e.exp)
        return (
            lambda base, *values: pow(base, exponent(*values), self.modulus),
            (e.base, *self.symbols),
        )

    def function(self, record: Function, e: Expr) -> Operation:
        assert record.residue is not None
        rule, parts = record.residue, [self._whole(a) for a in e.args]
        return lambda *values: rule(*(x(*values) for x in parts), self.modulus), self.symbols

    def constant(self, e: Expr) -> int:
        return _integer(self.exact.constant(e))

    def _whole(self, e: Expr) -> Callable[..., int]:
        """The integer itself."""
        program = Program(e, self.exact, self.symbols)
        return lambda *values: _integer(program(*map(fmpq, values)))


def _integer(value: object) -> int:
    """An exact integer; Undetermined of what is too large to be exact."""
    if not isinstance(value, fmpq) or value.q != 1:
        raise Undetermined("an integer is not decided at this precision")
    return int(value.p)


@functools.lru_cache(maxsize=1024)
def quotient(e: Expr) -> tuple[Expr, Fraction]:
    """(x, r) with e = r x, r a positive rational; x is an integer wherever that can be."""
    factor, whole = sympy.expand(e).primitive()
    return whole, Fraction(int(factor.p), int(factor.q))


def residue(
    e: Expr, modulus: int, exact: Arithmetic, symbols: tuple[Symbol, ...]
) -> Callable[..., int]:
    """The remainder of an integer expression: a function of the integer values of its symbols.

    >>> import sympy
    >>> from farfield.theory.evaluation.real_balls import PLAIN
    >>> from farfield.theory.functions.nodes import n
    >>> residue(2**n + n, 3, PLAIN, (n,))(10**9)
    2
    """
    program = Program(e, Residues(modulus, exact, symbols), symbols)
    return lambda *values: program(*values) % modulus
