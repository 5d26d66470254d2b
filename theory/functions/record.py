"""The record of a function, the registry, what a value needs, the walk that takes a record's rules.

See the package's description for what each rule is handed and has to return. A formula is walked
node by node in an arithmetic that is a parameter. An `Arithmetic` says what a node does with the
values of its parts (`operation`). What sums, products and functions do is the same for all of them:
add, multiply, take the rule of the function's record that bears the arithmetic's name, or the
function's reduction to others. An arithmetic adds its constants, its powers, and how it treats
comparisons, tables and finite sums.

`value` walks once, each distinct part once; `Program` keeps the walk as a straight line that is run
with many values of the symbols.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import sympy
from flint import ctx
from sympy import Basic, Expr, S, Symbol

from farfield.theory.algebra.door import check_time

Rule = Callable[..., Any]
ARITHMETICS = ("ball", "complex_ball", "series", "tail", "expansion", "array")
REDUCIBLE = ("complex_ball", "series", "tail", "expansion")
LOOK = 64
"""Values between two looks at the clock."""


class Refused(Exception):
    """The defect of the node being built, without the place: the reader adds it."""


@dataclass(frozen=True)
class Spelling:
    """The node that the parser builds from a name and its `least` to `most` arguments."""

    name: str
    build: Callable[..., Expr]
    least: int = 1
    most: int = 1


@dataclass(frozen=True, kw_only=True)
class Function:
    """The rules of one function, with a reason for each missing rule.

    Fields:
        node: the SymPy class whose nodes it governs.
        names: how the reader of formulas spells it; none for a remainder function of our own.
        arity: the least and the largest number of arguments that are written.
        build: the node of given arguments, as the reader builds it; `node` itself where absent.
        domain: (quantity, least): real where the sign of `quantity(*args)` is at least `least`.
        total: it has a real value at every real argument.
        positive: of a constant that is not proved positive nothing is said.
        elementary: an identity on the real domain, in exp, log, powers, sin, cos, atan and others.
        asymptotic: the same with remainder functions, for enclosures at large arguments.
        scaled: the form for large or small arguments (see `enclosures.change_of_variable`).
        logarithm: the logarithm of a value that is positive, in simpler terms.
        complement: of an odd function that tends to 1, the rest of 1, in other terms.
        branch: what it is where the signs of some quantities are known (`decide`).
        range: the bounds of its values; None for values that are not bounded.
        period: (inside, modulus): it depends on `inside` modulo `modulus` alone.
        rounds: it has the period of a fractional part, of use where nothing else decides.
        jumps: it jumps where `inside`/`modulus` is an integer.
        odd: it is odd and increases, so that it has the sign of its argument.
        residue: its value modulo m, from integers as arguments and m.
        ball, complex_ball, series, tail, expansion, array: its rules in the arithmetics.
        lacks: for each arithmetic without a rule, why.
    """

    node: type[Basic]
    names: tuple[str, ...] = ()
    arity: tuple[int, int] = (1, 1)
    build: Callable[..., Expr] | None = None
    domain: Callable[..., tuple[Expr, int]] | None = None
    total: bool = False
    positive: bool = False
    elementary: Callable[..., Expr] | None = None
    asymptotic: Callable[..., Expr] | None = None
    scaled: Rule | None = None
    logarithm: Callable[..., Expr] | None = None
    complement: Callable[..., Expr] | None = None
    branch: Rule | None = None
    range: Callable[..., tuple[Expr, Expr]] | None = None
    period: Callable[..., tuple[Expr, Expr]] | None = None
    rounds: bool = False
    jumps: bool = False
    odd: bool = False
    residue: Callable[..., int] | None = None
    ball: Rule | None = None
    complex_ball: Rule | None = None
    series: Rule | None = None
    tail: Rule | None = None
    expansion: Rule | None = None
    array: Rule | None = None
    lacks: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ARITHMETICS:
            here = getattr(self, name) is not None
            derived = name in REDUCIBLE and self.reduced is not None
            derived |= name == "ball" and self.complex_ball is not None
            if here + (name in self.lacks) + (derived and not here) != 1:
                what = "two of a rule, a reason and a reduction" if here or derived else "neither"
                raise TypeError(f"{self.name}: for {name} there is {what}")

    @property
    def name(self) -> str:
        """What it is called in a message."""
        return self.names[0] if self.names else str(self.node.__name__)

    @property
    def reduced(self) -> Callable[..., Expr] | None:
        """The function in terms of others, for arithmetics in which it has no rule of its own."""
        return self.asymptotic or self.elementary

    @property
    def spellings(self) -> tuple[Spelling, ...]:
        """How the reader builds it."""
        return tuple(Spelling(name, self.build or self.node, *self.arity) for name in self.names)


_RECORDS: dict[object, Function] = {}
SPELLINGS: dict[str, Spelling] = {}
"""All that the reader can build, by name."""


def register(*entries: Function | Spelling) -> None:
    """Make functions, and further spellings of what others say, known everywhere."""
    for entry in entries:
        spelled: tuple[Spelling, ...] = (entry,) if isinstance(entry, Spelling) else entry.spellings
        for spelling in spelled:
            if spelling.name in SPELLINGS:
                raise TypeError(f"two functions are spelled {spelling.name!r}")
            SPELLINGS[spelling.name] = spelling
        if isinstance(entry, Function):
            _RECORDS[entry.node] = entry


def record_of(node: object) -> Function | None:
    """The record of a class of nodes, None for other nodes."""
    return _RECORDS.get(node)


def records() -> tuple[Function, ...]:
    """All records."""
    return tuple(_RECORDS.values())


# -- what a formula contains -----------------------------------------------------------------------


@functools.lru_cache(maxsize=20_000)
def symbols(e: Basic) -> frozenset[Symbol]:
    """The free symbols of an expression, kept: SymPy walks through the whole expression each
    time."""
    return frozenset(e.free_symbols)


@functools.lru_cache(maxsize=20_000)
def kinds(e: Basic) -> frozenset[type[Basic]]:
    """The classes of the parts of an expression, kept; infinities and NaN have a class each.

    >>> from sympy.abc import x
    >>> sympy.log in kinds(x * sympy.log(x)), UNDEFINED.isdisjoint(kinds(x + S.NaN))
    (True, False)
    """
    return frozenset((type(e),)).union(*map(kinds, e.args))


UNDEFINED = frozenset({type(S.NaN), type(S.ComplexInfinity)})


# -- where a formula has a value -------------------------------------------------------------------


def needs_of(e: Expr) -> Iterator[tuple[Expr, str]]:
    """What one node needs for a real value, beside values of its parts: quantities, each with the
    fact that it must satisfy, as SymPy calls it.

    >>> from sympy.abc import x
    >>> [*needs_of(1 / x)], [*needs_of(sympy.sqrt(x))], [*needs_of(sympy.cos(x))]
    ([(x, 'nonzero')], [(x, 'nonnegative')], [])
    """
    record = record_of(e.func)
    if e.is_Pow and e.exp.is_Integer:
        if e.exp < 0:
            yield e.base, "nonzero"
    elif e.is_Pow:
        yield e.base, "nonnegative" if e.exp.is_nonnegative else "positive"
    elif record is not None and record.domain is not None:
        quantity, least = record.domain(*e.args)
        yield quantity, "positive" if least else "nonnegative"


def unproved_needs(e: Expr) -> list[tuple[Expr, str]] | None:
    """What a formula needs for a real value, beside what SymPy sees to hold whatever its symbols
    are; None where a part has no rule for that. Asked through the door.

    >>> from farfield.theory.functions.nodes import n
    >>> unproved_needs(-sympy.log(1 + n)), unproved_needs(-sympy.log(n))
    ([], [(n, 'positive')])
    """
    needs: list[tuple[Expr, str]] = []
    for part in sympy.preorder_traversal(e):
        if part.is_Add or part.is_Mul or part.is_Symbol or part.is_Rational:
            continue
        record = record_of(part.func)
        if record is not None and not (record.total or record.domain):
            return None
        if record is None and not part.is_Pow and (part.args or not part.is_real):
            return None
        unproved = [(x, fact) for x, fact in needs_of(part) if not getattr(x, f"is_{fact}")]
        if unproved and part.is_Pow and not part.exp.is_Rational:
            return None  # (n - 2)^n has a value at 0
        needs += unproved
    return needs


# -- the walk over a formula -----------------------------------------------------------------------

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
        """The error where there is no rule."""
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
            if self.symbols.isdisjoint(symbols(e)):
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
