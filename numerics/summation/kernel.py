"""The protocol of summation: what every way to sum exp(p(n)) on a stretch n >= start answers.

A kernel gives `tail(j) = sum_{n>=j} exp(p(n))` and `between(a, b) = sum_{a<=n<b} exp(p(n))` as
balls at the precision at work, and facts on p. It is a value; what its sums remember
is in `memory`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from flint import arb, ctx, fmpq
from sympy import Expr

from farfield.numerics.summation.kept_sums import memory
from farfield.theory.algebra.door import check_time
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.functions.balls import Ball, precision, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.values import compile_ball

CLOCKED = 64  # terms of a sum between two looks at the clock: each may take a millisecond
MAX_BASES = 8  # precisions whose sums are remembered
STEP = 64  # bits between two of them


def number(e: Expr) -> arb:
    """A constant as a ball at the precision at work."""
    return to_arb(compile_ball(e)({}))


@dataclass(frozen=True)
class Kernel:
    """exp(p) on `n >= start`; `gamma` is the constant of p.

    `converges` tells whether the series does; p is monotone from the integer `monotone_from` on,
    and `direction` is the sign of its slope there. Sums begin at the precision `first_bits`;
    receptive fields are sought as integers of up to `max_bits`.
    """

    start: int
    gamma: Expr

    first_bits: ClassVar[int] = 128
    max_bits: ClassVar[int] = 3_400
    checked: ClassVar[bool] = True
    """Whether the kernel's structure proves that every term is defined and finite."""

    @property
    def converges(self) -> bool:
        return True

    @property
    def monotone_from(self) -> int:
        if not self.checked:
            raise Unreachable("the bias is not proved to be monotone")
        return self.start

    @property
    def direction(self) -> int:
        return -1

    def guess(self, goal: arb) -> int | None:
        """A guess of the least j with T_j below the goal, where the kernel has one of its own."""
        return None

    def tail(self, j: int) -> arb:
        """sum_{n>=j} exp(p(n)), j >= start; the series must converge."""
        raise NotImplementedError

    def between(self, a: int, b: int) -> arb:
        """sum_{a<=n<b} exp(p(n)), a >= start."""
        if not self.converges:
            raise Unreachable("no closed form for the partial sums of this divergent series")
        return self.tail(a) - self.tail(b)

    def integral(self, x: arb) -> arb:
        """int_x^oo exp(p), for real x where p is decreasing."""
        raise Unreachable("no closed form for the integral")

    def density(self, x: arb) -> arb:
        """exp(p(x)) for real x."""
        raise Unreachable("no extension to real distances")


def terms(p: Expr) -> Callable[[int], arb]:
    """i -> exp(p(i)), a ball at the precision at work."""
    run = compile_ball(p)
    return lambda i: to_arb(run({n: fmpq(i)})).exp()


def suffix_sums(value: Ball, term: Callable[[int], Ball], at: int, start: int) -> list[Ball]:
    """T_start, ..., T_at from T_at = value and the terms before it."""
    sums = [value]
    for i in range(at - 1, start - 1, -1):
        if i % CLOCKED == 0:
            check_time()
        value = value + term(i)
        sums.append(value)
    return sums[::-1]


@dataclass(frozen=True)
class Direct(Kernel):
    """Terms one by one up to an N; T_j from N on is enclosed by `_beyond`.

    Sums by one precision are made once.
    """

    def term(self, j: int) -> arb:
        """exp(p(j)) for an integer j >= start."""
        raise NotImplementedError

    def _begin(self, bits: int) -> int:
        """N, for sums of `bits` bits."""
        raise NotImplementedError

    def _beyond(self, j: int) -> arb:
        """T_j, j >= N."""
        raise NotImplementedError

    def _base(self, bits: int) -> tuple[int, list[arb]]:
        """N and the sums from each i <= N."""
        kept, bits = memory(self).setdefault("base", {}), STEP * -(-bits // STEP)
        if bits not in kept:
            with precision(bits):
                at = max(self.start, self._begin(bits))
                value = self._beyond(at)
            with precision(bits + 32):
                sums = suffix_sums(value, self.term, at, self.start)
            if len(kept) > MAX_BASES:
                kept.clear()
            kept[bits] = at, sums
        return kept[bits]

    def tail(self, j: int) -> arb:
        """From the sums; beyond them from that of the next place, where it was the last one."""
        bits = ctx.prec
        at, sums = self._base(bits)
        if j <= at:
            return sums[j - self.start]
        last, value = memory(self).get(("last", bits), (0, arb(0)))
        if j == last - 1:
            with precision(bits + 32):
                value += self.term(j)
        elif j != last:
            value = self._beyond(j)
        memory(self)["last", bits] = j, value
        return value
