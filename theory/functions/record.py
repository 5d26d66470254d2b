"""The record of a function: all its properties, in one place; and the register of all records.

See the package's description for what each rule is handed and has to return.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sympy import Basic, Expr

Rule = Callable[..., Any]
ARITHMETICS = ("ball", "complex_ball", "series", "tail", "expansion", "array")
REDUCIBLE = ("complex_ball", "series", "tail", "expansion")


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
        positive: of a constant that is not proved positive nothing is said.
        elementary: an identity on the real domain, in exp, log, powers, sin, cos, atan and others.
        asymptotic: the same with remainder functions, for enclosures at large arguments.
        scaled: the form for arguments that are large or small (see `enclosures.logarithm`).
        logarithm: the logarithm of a value that is positive, in simpler terms.
        complement: of an odd function that tends to 1, the rest of 1, in other terms.
        branch: what it is where the signs of some quantities are known (`decide`).
        range: the bounds of its values; None for values that are not bounded.
        period: (inside, modulus): it depends on `inside` modulo `modulus` alone.
        rounds: it has the period of a fractional part, of use where nothing else decides.
        jumps: it jumps where `inside`/`modulus` is an integer.
        odd: it is odd and increases, so that it has the sign of its argument.
        residue: its value modulo m, from an integer x and m.
        ball, complex_ball, series, tail, expansion, array: its rules in the arithmetics.
        lacks: for each arithmetic without a rule, why.
    """

    node: type[Basic]
    names: tuple[str, ...] = ()
    arity: tuple[int, int] = (1, 1)
    build: Callable[..., Expr] | None = None
    domain: Callable[..., tuple[Expr, int]] | None = None
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
    residue: Callable[[int, int], int] | None = None
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
_SPELLINGS: dict[str, Spelling] = {}


def register(*entries: Function | Spelling) -> None:
    """Make functions, and further spellings of what others say, known everywhere."""
    for entry in entries:
        spelled: tuple[Spelling, ...] = (entry,) if isinstance(entry, Spelling) else entry.spellings
        for spelling in spelled:
            if spelling.name in _SPELLINGS:
                raise TypeError(f"two functions are spelled {spelling.name!r}")
            _SPELLINGS[spelling.name] = spelling
        if isinstance(entry, Function):
            _RECORDS[entry.node] = entry


def record_of(node: object) -> Function | None:
    """The record of a class of nodes, None for other nodes."""
    return _RECORDS.get(node)


def records() -> tuple[Function, ...]:
    """All records."""
    return tuple(_RECORDS.values())


def spellings() -> Mapping[str, Spelling]:
    """All that the reader can build, by name."""
    return _SPELLINGS
