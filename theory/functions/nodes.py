"""The symbol `n`, `Lookup` tables, rationals and roots that SymPy does not evaluate."""

from __future__ import annotations

from collections.abc import Callable

import sympy
from sympy import Basic, Expr, Symbol

n = Symbol("n", integer=True, nonnegative=True)
"""The distance: query position minus key position."""


class Lookup(sympy.Function):
    """A bias given by a table: `Lookup(n, Tuple(v0, v1, ...), tail)` is `v_n`, then `tail`."""

    nargs = 3

    @classmethod
    def eval(cls, index: Expr, table: sympy.Tuple, tail: Expr) -> Expr | None:
        if index.is_Integer and index.is_nonnegative:
            return table[int(index)] if int(index) < len(table) else tail
        return None

    def _latex(self, printer: sympy.printing.Printer, exp: object = None) -> str:
        return rf"T\left[{printer.doprint(self.args[0])}\right]"

    def _sympystr(self, printer: sympy.printing.Printer) -> str:
        index, table, tail = self.args
        return f"table[{printer.doprint(index)}; {len(table.args)} values, then {tail}]"


class OpaqueRational(sympy.NumberSymbol):
    """A rational number within a special function, that SymPy does not see as one: it would sum
    the 10^6 terms of digamma(10^6) whenever it builds the function anew."""

    is_real = True

    def __new__(cls, value: sympy.Rational) -> OpaqueRational:
        self = super().__new__(cls)
        self.value = value
        return self

    def __getnewargs__(self) -> tuple[sympy.Rational]:
        return (self.value,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueRational) and self.value == other.value

    __hash__ = sympy.NumberSymbol.__hash__

    def _hashable_content(self) -> tuple[sympy.Rational]:
        return (self.value,)

    def _eval_is_positive(self) -> bool:
        return bool(self.value > 0)

    def _as_mpf_val(self, prec: int) -> object:
        return self.value._as_mpf_val(prec)

    def _sympystr(self, printer: sympy.printing.Printer) -> str:
        return str(printer._print(self.value))

    _latex = _sympystr


class Root(sympy.Function):
    """A power of constants that SymPy does not touch."""

    nargs = 2
    is_positive = True
    is_real = True

    def _eval_evalf(self, prec: int) -> Expr:
        return self.plain._eval_evalf(prec)

    @property
    def plain(self) -> Expr:
        """The power itself."""
        return sympy.Pow(*self.args)

    def _sympystr(self, printer: sympy.printing.Printer) -> str:
        return str(printer._print(self.plain))


def is_small(e: Expr, bound: int = 100) -> bool:
    """Whether an expression is a rational number of small numerator and denominator."""
    return bool(e.is_Rational and abs(e.p) <= bound and e.q <= bound)


def opaque(a: Expr) -> Expr:
    """The argument of a function that SymPy would sum term by term at a large rational."""
    return OpaqueRational(a) if a.is_Rational and not is_small(a) else a


def evaluated_if_small(
    node: type[Basic], *, of_numbers: bool = True, large_opaque: bool = False
) -> Callable[..., Expr]:
    """A builder that lets SymPy evaluate small rationals (`of_numbers`) and arguments with symbols.

    SymPy may hang on others. With `large_opaque` it does not see large
    rationals at all.
    """

    def build(*args: Expr) -> Expr:
        numbers = [not a.free_symbols for a in args]
        if not any(numbers) or (all(map(is_small, args)) and (of_numbers or not all(numbers))):
            return node(*args)
        return node(*(map(opaque, args) if large_opaque else args), evaluate=False)

    return build


def unevaluated(node: Basic) -> Callable[..., Expr]:
    """A builder that leaves the node as it is."""
    return lambda *args: node(*args, evaluate=False)
