"""The one evaluator: a formula is walked node by node in an arithmetic that is a parameter.

An `Arithmetic` says what a node does with the values of its parts (`operation`). What sums,
products and functions do is the same for all of them: add, multiply, take the rule of the
function's record that bears the arithmetic's name, or the function's reduction to others. An
arithmetic adds its constants, its powers, and how it treats comparisons, tables and finite sums.

`value` walks once, each distinct part once; `Program` keeps the walk as a straight line that is run
with many values of the symbols.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any, ClassVar

from flint import ctx
from sympy import Basic, Expr, Symbol

from farfield.theory.algebra.budget import check_time
from farfield.theory.functions.record import Function, record_of

LOOK = 64
"""Values between two looks at the clock."""

Operation = tuple[
    Callable[..., Any], Sequence[Any]
]  # what to do, and with the values of which parts


class Arithmetic:
    """A number system for formulas; `rule` names the field of a record with its rules.

    A part in which `symbols` do not occur is a constant.
    """

    rule: ClassVar[str]

    def operation(self, e: Basic) -> Operation:
        """What a node does, and the parts it does it with."""
        if e.is_Add:
            return _of_many(operator.add, e.args), e.args
        if e.is_Mul:
            return _of_many(operator.mul, e.args), e.args
        if e.is_Pow:
            return self.power(e)
        record = record_of(e.func)
        return self.structure(e) if record is None else self.function(record, e)

    def power(self, e: Expr) -> Operation:
        """A power."""
        raise NotImplementedError

    def function(self, record: Function, e: Expr) -> Operation:
        """A function, by its rule here or else by its reduction to others."""
        rule = getattr(record, self.rule)
        if rule is not None:
            return self.applied(rule), e.args
        reduced = None if record.reduced is None else record.reduced(*e.args)
        if reduced is None:
            raise self.lacking(record.name, record.lacks.get(self.rule, "not for these arguments"))
        return lambda x: x, (reduced,)

    def applied(self, rule: Callable[..., object]) -> Callable[..., Any]:
        """A rule as a function of values alone."""
        return rule

    def structure(self, e: object) -> Operation:
        """A node that is no function: a symbol, a number, a comparison, a table, a finite sum."""
        raise self.lacking(type(e).__name__, "no rule")

    def lacking(self, name: str, why: str) -> Exception:
        """What is raised where there is no rule."""
        raise NotImplementedError

    def constant(self, e: Expr) -> Any:
        """The value of a part without symbols."""
        return value(e, self, {})


def _of_many(
    operation: Callable[[object, object], object], args: Sequence[object]
) -> Callable[..., Any]:
    """A binary operation on all the arguments, from the left."""
    if len(args) == 2:
        return operation
    return lambda *values: functools.reduce(operation, values)


def value(e: object, arithmetic: Arithmetic, memo: MutableMapping[object, object]) -> Any:
    """The value of a formula; `memo` has those of its symbols, and receives those of its parts."""
    if e not in memo:
        operation, parts = arithmetic.operation(e)
        memo[e] = operation(*[value(part, arithmetic, memo) for part in parts])
    return memo[e]


class Program:
    """A formula as a straight line of operations on the values of its symbols, each distinct part
    once; constants are kept for each precision.

    Call it with one value for each symbol.
    """

    def __init__(self, e: object, arithmetic: Arithmetic, symbols: tuple[Symbol, ...]) -> None:
        self.arithmetic, self.symbols = arithmetic, frozenset(symbols)
        self.places: dict[Any, int] = {s: i for i, s in enumerate(symbols)}
        self.constants: list[tuple[int, Any]] = []
        self.steps: list[tuple[int, Callable[..., Any], Any, bool]] = []
        self.out = self._place(e)
        self.memories: dict[int, list[Any]] = {}
        self.given, self.calls = len(symbols), 0

    def _place(self, e: Basic) -> int:
        """The place of a node's value: equal nodes share one, parts come before the whole."""
        if e not in self.places:
            if not e.free_symbols & self.symbols:
                place = len(self.places)
                self.constants.append((place, e))
            else:
                operation, parts = self.arithmetic.operation(e)
                inputs = tuple(map(self._place, parts))
                place = len(self.places)
                single = len(inputs) == 1
                taken = inputs[0] if single else operator.itemgetter(*inputs)
                self.steps.append((place, operation, taken, single))
            self.places[e] = place
        return self.places[e]

    def _memory(self) -> list[Any]:
        """The values that do not depend on the symbols, in their places."""
        if len(self.memories) > 8:
            self.memories.clear()
        memory: list[Any] = [None] * len(self.places)
        for place, e in self.constants:
            memory[place] = self.arithmetic.constant(e)
        self.memories[ctx.prec] = memory
        return memory

    def __call__(self, *values: object) -> Any:
        """The value of the formula."""
        self.calls += 1
        if not self.calls % LOOK:
            check_time()
        memory = (self.memories.get(ctx.prec) or self._memory()).copy()
        memory[: self.given] = values
        for place, operation, taken, single in self.steps:
            memory[place] = operation(memory[taken]) if single else operation(*taken(memory))
        return memory[self.out]
