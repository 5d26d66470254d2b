"""The decision at hand: where the parameters lie, how far expansions go, how much work was done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import sympy
from sympy import Expr, Symbol

from farfield.theory.algebra.budget import check_time
from farfield.theory.algebra.outcomes import Undecided

MAX_WORK = 60_000


@dataclass
class Context:
    """What one decision carries along: where the parameters lie, and how much work was done.

    `signs` holds the signs of parameter expressions on the branch at hand; `order` how many terms
    an expansion keeps; `named` whether its remainders are named; `ranges` and `meaning` the
    bounds of each bounded atom and what it stands for; `tails` the named remainders; `trace` the
    decisions about constants that a proof must show.
    """

    signs: dict[Expr, int] = field(default_factory=dict)
    order: int = 4
    named: bool = False
    ranges: dict[Symbol, tuple[Expr, Expr]] = field(default_factory=dict)
    meaning: dict[Symbol, Expr] = field(default_factory=dict)
    tails: dict[Any, Symbol] = field(default_factory=dict)
    tail_symbols: set[Symbol] = field(default_factory=set)
    memo: dict[Expr, Any] = field(default_factory=dict)
    constants: dict[Expr, Any] = field(default_factory=dict)
    trace: dict[Expr, tuple[int, str]] = field(default_factory=dict)
    work: int = 0

    def spend(self, amount: int) -> None:
        """Count work; the limits keep a decision from swelling without end."""
        self.work += amount
        if self.work > MAX_WORK:
            raise Undecided("the work budget was spent")
        check_time()


_CONTEXT: ContextVar[Context] = ContextVar("context")


def context() -> Context:
    """The decision being made in this thread."""
    try:
        return _CONTEXT.get()
    except LookupError:
        fresh = Context()
        _CONTEXT.set(fresh)
        return fresh


@contextmanager
def deciding(current: Context) -> Iterator[Context]:
    """Decide within `current`, then return to the decision before."""
    token = _CONTEXT.set(current)
    try:
        yield current
    finally:
        _CONTEXT.reset(token)


def named_tail(key: Any) -> Symbol:
    """The name of the bounded remainder with this key; equal keys mean equal remainders."""
    current = context()
    if key not in current.tails:
        symbol = sympy.Dummy("t", real=True)
        current.tails[key] = symbol
        current.tail_symbols.add(symbol)
    return current.tails[key]
