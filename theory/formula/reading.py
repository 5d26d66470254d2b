"""A text being read: its symbols, the nodes built so far, how deep they are nested."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sympy import Expr

from farfield.theory.algebra.door import supervised
from farfield.theory.algebra.outcomes import Undecided
from farfield.theory.formula.limits import MAX_DEPTH, bounded
from farfield.theory.formula.tokens import Tokens
from farfield.theory.functions.record import Refused


class Reading(Tokens):
    """What the rules of the grammar share; what raises here is the grammar's own."""

    def __init__(self, text: str, domains: Mapping[str, str]) -> None:
        super().__init__(text, domains)
        self.bound: dict[str, Expr] = {}  # the indices of the sums around
        self.depth = 0
        self.bars = 0
        self.sum_terms = 0

    def sum(self) -> Expr:
        """A sum of products, as the grammar has it."""
        raise NotImplementedError

    def choice(self) -> Expr:
        """A sum, or `value if condition else value`."""
        raise NotImplementedError

    def bare(self) -> Expr:
        """An operand without sign and power."""
        raise NotImplementedError

    def exponent(self) -> Expr:
        """What follows `^`."""
        raise NotImplementedError

    def parameter(self, name: str, column: int) -> Expr:
        """A name that is no function, as a symbol of its domain."""
        raise NotImplementedError

    def build(self, column: int, make: Callable[..., Expr], *args: Any) -> Expr:
        """A node, or an error with its place."""
        try:
            return bounded(supervised(make, *args))
        except Refused as wrong:
            self.fail(column, str(wrong))
        except Undecided:
            self.fail(column, "this part cannot be evaluated")

    def within_bars(self, part: Callable[[], Any]) -> Any:
        """A part in which `|` ends something, so that it begins no factor."""
        self.bars += 1
        value = part()
        self.bars -= 1
        return value

    def apart(self, part: Callable[[], Any]) -> Any:
        """A part in brackets, in which `|` may begin a factor again."""
        bars, self.bars = self.bars, 0
        value = part()
        self.bars = bars
        return value

    def nested(self, part: Callable[[], Any]) -> Any:
        """A part one level deeper."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(self.column, f"the formula is nested deeper than {MAX_DEPTH}")
        value = part()
        self.depth -= 1
        return value
