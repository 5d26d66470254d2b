"""Proofs by rising precision; searches for a least integer, how they end; biases `Unrecognised`.

A search is free to guess: what it returns rests on the proofs at its two ends alone. It ends with a
number of tokens as far as it is known, or with an exception that names the obstacle.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from flint import arb, fmpq

from farfield.theory.algebra.exceptions import Undecided, Unreachable
from farfield.theory.answers.number import integer
from farfield.theory.answers.number import tokens as tokens_text
from farfield.theory.functions.balls import Ball, Undefined, precision

Fields = TypeVar("Fields")


def doubled(bits: int, last: int) -> Iterator[int]:
    """Precisions from `bits` on, each twice the one before, up to `last`."""
    while bits <= last:
        yield bits
        bits *= 2


def decide(predicate: Callable[[], Fields | None], bits: Iterable[int]) -> Fields | None:
    """The first answer of a predicate, asked at each precision in turn.

    Args:
        predicate: proves an answer with balls at the precision at work, None where they are too
            wide to tell. A ball that is undefined or divided by 0 tells as little.
        bits: the precisions, in rising order.

    Returns:
        The answer, or None where no precision gives one.

    >>> from flint import arb
    >>> decide(lambda: True if arb(2).sqrt() < 1.5 else None, (8, 64))
    True
    """
    for each in bits:
        with precision(each):
            try:
                answer = predicate()
            except (Undefined, ZeroDivisionError):
                continue
        if answer is not None:
            return answer
    return None


def settled(predicate: Callable[[], Fields | None], bits: Iterable[int], why: str) -> Fields:
    """The first answer of a predicate, as `decide` asks for it; Unreachable, and why, if none."""
    answer = decide(predicate, bits)
    if answer is None:
        raise Unreachable(why)
    return answer


def at_precision(value: Callable[[], Ball], bits: int) -> Ball:
    """The value at `bits` bits or, where that is too few to define it, at up to 16 times more."""
    return _settled_sum(value, bits, lambda ball: ball.is_finite())


def to_digits(value: Callable[[], Ball], bits: int) -> Ball:
    """The same, where that is too few for the digits of a float too: a difference may cancel."""
    try:
        return _settled_sum(value, bits, lambda ball: ball.rel_accuracy_bits() > 60 or ball == 0)
    except Unreachable:
        return at_precision(value, bits)


def _settled_sum(value: Callable[[], Ball], bits: int, enough: Callable[[arb], bool]) -> Ball:
    def finite() -> Ball | None:
        result = value()
        return result if isinstance(result, fmpq) or enough(result) else None

    precisions = bits, 4 * bits, 16 * bits
    return settled(finite, precisions, f"a sum is not enclosed at {16 * bits} bits")


def least(
    proved: Callable[[int], bool],
    low: int,
    high: int | None = None,
    guesses: Sequence[int] = (),
    *,
    first: int | None = None,
) -> int:
    """The least integer above `low` with a proven property; the arguments are those of `narrowed`.

    >>> least(lambda j: j * j >= 2000, 0)
    45
    """
    for _, top in narrowed(proved, low, high, guesses, first=first):
        high = top
    assert high is not None
    return high


def narrowed(
    proved: Callable[[int], bool],
    low: int,
    high: int | None = None,
    guesses: Sequence[int] = (),
    *,
    first: int | None = None,
    cap: int | None = None,
) -> Iterator[tuple[int, int | None]]:
    """Narrow (low, high] down to the least integer with a proven property; yield each bracket.

    Args:
        proved: whether an integer has the property, proved either way. The property must hold for
            all integers beyond one that has it.
        low: an integer without it.
        high: an integer with it, None where none is known.
        guesses: integers to try; the caller may renew them whenever a bracket is yielded.
        first: the integer to try first.
        cap: no integer beyond it is tried; the caller stops where `low` reaches it.

    Yields:
        The brackets (low, high); in the last one `high` is the answer and `low` is `high` - 1.
    """
    yield low, high
    step = 0
    while high is None or high - low > 1:
        j = _choose(guesses, low, high, step)
        if step == 0 and first is not None and low < first and (high is None or first < high):
            j = first
        if cap is not None:
            j = min(j, cap)
        low, high = (low, j) if proved(j) else (j, high)
        yield low, high
        step += 1


def _choose(guesses: Sequence[int], low: int, high: int | None, step: int) -> int:
    """A guess inside the bracket; every fifth step, or without one, the middle."""
    if high is None:
        far = max(16, low * low)
        fit = [g for g in guesses if g > low]
        return min(max(fit), far) if fit else far
    fit = [g for g in guesses if low < g < high]
    if not fit:
        fit = [low + 1] if low in guesses else [high - 1] if high in guesses else []
    if fit and step % 5 != 4:
        return fit[step % len(fit)]
    return math.isqrt(low * high) if low and high > 4 * low else (low + high) // 2


# -- a number of tokens: the integer, bounds of its logarithm, or bounds ---------------------------


@dataclass(frozen=True)
class Exact:
    """The integer itself, certified by two ball comparisons."""

    tokens: int

    def text(self) -> str:
        """As a reader sees it."""
        return tokens_text(self.tokens)

    def logs(self) -> tuple[float, float]:
        """Lower and upper bound of log(1 + tokens), to order the heads."""
        return (math.log(1 + self.tokens),) * 2


@dataclass(frozen=True)
class Enclosure:
    """The logarithm of an integer beyond counting lies in [low, high]."""

    low: float
    high: float

    def text(self) -> str:
        """As a reader sees it."""
        return f"between exp({self.low!r}) and exp({self.high!r}) tokens"

    def logs(self) -> tuple[float, float]:
        """Lower and upper bound of log(1 + tokens)."""
        return self.low, self.high

    def span(self) -> tuple[float, float]:
        """Floats around it."""
        return min(_exp(self.low), sys.float_info.max), _exp(self.high)


@dataclass(frozen=True)
class Bracket:
    """The integer lies in [low, high]; `high` is None where no upper bound was reached."""

    low: int
    high: int | None

    def text(self) -> str:
        """As a reader sees it."""
        if self.high is None:
            return f"at least {tokens_text(self.low)}"
        return f"between {integer(self.low)} and {tokens_text(self.high)}"

    def span(self) -> tuple[float, float]:
        """Its ends."""
        return self.low, math.inf if self.high is None else self.high

    def logs(self) -> tuple[float, float]:
        """Lower and upper bound of log(1 + tokens)."""
        return math.log(1 + self.low), math.inf if self.high is None else math.log(1 + self.high)


Value = Exact | Enclosure | Bracket


def _exp(power: float) -> float:
    """exp in floats, infinite where it overflows."""
    try:
        return math.exp(power)
    except OverflowError:
        return math.inf


# -- where no sum is proved ------------------------------------------------------------------------


class Unrecognised(Exception):
    """The bias is not of the form at hand; the message says which part."""


class Divergent(Unrecognised):
    """The series is proved to diverge: no method sums it."""


@contextmanager
def recognising() -> Iterator[None]:
    """What algebra and balls do not decide inside is Unrecognised."""
    try:
        yield
    except (Undecided, Undefined) as why:
        raise Unrecognised(str(why)) from None
