"""A text being read: its symbols, the nodes built so far, how deep they are nested."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sympy import Expr

from farfield.theory.formula.limits import MAX_DEPTH, bounded
from farfield.theory.formula.tokens import Tokens
from farfield.theory.functions.record import Refused

_SYMPY_FAILS = (
    AttributeError,
    TypeError,
    ValueError,
    LookupError,
    ArithmeticError,
    RecursionError,
)


class Reading(Tokens):
    """What the rules of the grammar share; `sum` is the grammar's own."""

    def __init__(self, text: str, domains: Mapping[str, str]) -> None:
        super().__init__(text)
        self.domains = domains
        self.bound: dict[str, Expr] = {}  # the indices of the sums around
        self.depth = 0
        self.sum_terms = 0

    def sum(self) -> Expr:
        """A sum of products, as the grammar has it."""
        raise NotImplementedError

    def build(self, column: int, make: Callable[..., Expr], *args: Any) -> Expr:
        """A node, or what is wrong with it and where."""
        try:
            return bounded(make(*args))
        except Refused as wrong:
            self.fail(column, str(wrong))
        except _SYMPY_FAILS:
            self.fail(column, "this part cannot be evaluated")

    def nested(self, part: Callable[[], Any]) -> Any:
        """A part one level deeper."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(self.column, f"the formula is nested deeper than {MAX_DEPTH}")
        value = part()
        self.depth -= 1
        return value
