"""One question about each head of an encoding, within a time, and one answer for all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from flint import arb
from sympy import Expr

from farfield.numerics.outcomes import Unrecognised
from farfield.theory.algebra.budget import until
from farfield.theory.algebra.exceptions import OutOfTime, Undecided, Unreachable
from farfield.theory.answers.answer import A, Code, Reason, Status, folded
from farfield.theory.answers.errors import MissingValues
from farfield.theory.answers.number import plural, seconds
from farfield.theory.encodings import Encoding, encoding

BLOCKWISE = Reason(
    Code.BOUNDED_SUPPORT, "blockwise causal attention is not a function of the distance alone"
)
BUDGET_S = 60.0
"""Seconds that a question may take where nothing is said."""

Blank = Callable[..., A]
"""`blank(bias, status=..., label=None, reason=...)`: the answer that holds no value."""


def resolve(f: Any, values: dict[str, Any]) -> Encoding:
    """The encoding that is meant, with a value for every parameter."""
    subject = encoding(f, **values)
    if subject.free:
        raise MissingValues(subject.name[:60], [p.name for p in subject.free])
    return subject


def out_of_reach(subject: Encoding) -> Reason | None:
    """Why no mass by distance belongs to an encoding; None where one does."""
    if subject.bca is not None:
        seen = f"every row sees at most {plural(2 * subject.bca, 'key')}"
        return Reason(BLOCKWISE.code, f"{BLOCKWISE}; {seen}")
    return None if subject.biases else subject.out_of_scope


@contextmanager
def within(budget_s: Any) -> Iterator[None]:
    """A time in which a question is answered.

    Raises:
        InputError: a budget that is no number of seconds, or a negative one.
    """
    with until(time.monotonic() + seconds(budget_s)):
        yield


def reason_of(why: Unreachable) -> Reason:
    """Why a number is not known: the time was spent, or no sum encloses it."""
    code = Code.BUDGET if isinstance(why, OutOfTime) else Code.NO_ENCLOSURE
    return Reason(code, str(why))


def answered(bias: Expr, ask: Callable[[Expr], A], blank: Blank[A]) -> A:
    """The answer about one bias; unknown where it is out of reach."""
    try:
        return ask(bias)
    except Unreachable as why:
        reason = reason_of(why)
    except (Undecided, Unrecognised) as why:
        reason = Reason(Code.UNDECIDED, str(why))
    return blank(bias, status=Status.UNKNOWN, label=None, reason=reason)


def each_head(subject: Encoding, ask: Callable[[Expr], A], blank: Blank[A]) -> tuple[A, ...]:
    """The answers about the heads of an encoding; equal heads are asked once."""
    known = {b: answered(b, ask, blank) for b in dict.fromkeys(subject.biases)}
    return tuple(known[b] for b in subject.biases)


def per_head(
    subject: Encoding,
    ask: Callable[[Expr], A],
    blank: Blank[A],
    size: Callable[[A], Any],
    settles: Callable[[A], bool] = lambda head: head.status is Status.INFINITE,
    outside: Callable[[Encoding], Reason | None] = out_of_reach,
) -> A:
    """The answer about an encoding: its only head's, else the decisive one's, with all heads.

    Args:
        subject: with a value for every parameter.
        ask: the question about one bias; equal heads are asked once. It may raise Unreachable.
        blank: the answer that holds no value, of a bias or, out of scope, of None.
        size: what the heads' answers are ordered by.
        settles: whether a head decides for all.
        outside: why the question does not concern the encoding.
    """
    if reason := outside(subject):
        found = blank(None, status=Status.OUT_OF_SCOPE, label=None, reason=reason)
        return replace(found, subject=subject.name)
    heads = each_head(subject, ask, blank)
    return replace(folded(heads, size, settles), subject=subject.name)


def sharp(ball: arb) -> bool:
    """Whether a ball is narrow enough to be told as a number."""
    return bool(ball.rel_accuracy_bits() > 20 or ball.rad() < 1e-12)
