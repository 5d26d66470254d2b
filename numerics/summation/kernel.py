"""The protocol of summation: what every way to sum exp(p(n)) on a stretch n >= start answers.

A kernel gives `tail(j) = sum_{n>=j} exp(p(n))` and `between(a, b) = sum_{a<=n<b} exp(p(n))` as
balls at the precision at work, and facts on p. It is a value; what its sums remember
is in `memory`.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from flint import arb, ctx, fmpq
from sympy import Expr

from farfield.numerics.summation.kept_sums import memory
from farfield.theory.algebra.budget import check_time
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.functions.balls import precision, to_arb
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

    @property
    def converges(self) -> bool:
        return True

    @property
    def monotone_from(self) -> int:
        return self.start

    @property
    def direction(self) -> int:
        return -1

    @property
    def checked(self) -> bool:
        """Whether the kernel's structure proves that every term is defined and finite."""
        return True

    def guess_index(self, goal: Callable[[int], arb], most: int) -> int | None:
        """A guess of the least j with T_j < goal(bits), a ball at that precision; None for none.

        It is rough where j has more than `most` bits.
        """
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

    def asymptotics(self) -> str | None:
        """TRF(eps) as eps -> 0, in LaTeX; None where no formula is known."""
        return None


class ComposedKernel(Kernel):
    """A kernel that proves neither monotony nor that its terms are defined."""

    @property
    def monotone_from(self) -> int:
        raise Unreachable("the bias is not proved to be monotone")

    @property
    def checked(self) -> bool:
        return False


def terms(p: Expr) -> Callable[[int], arb]:
    """i -> exp(p(i)), a ball at the precision at work."""
    run = compile_ball(p)
    return lambda i: to_arb(run({n: fmpq(i)})).exp()


def suffix_sums(value: object, term: Callable[[int], Any], at: int, start: int) -> list[Any]:
    """T_start, ..., T_at from T_at = value and the terms before it."""
    sums = [value]
    for i in range(at - 1, start - 1, -1):
        if i % CLOCKED == 0:
            check_time()
        value = value + term(i)
        sums.append(value)
    return sums[::-1]


def first_below(sums: list[object], goal: arb) -> int:
    """The place of the first of falling balls that is below the goal, as far as balls tell."""
    return bisect.bisect_left(sums, True, key=lambda value: bool(value < goal))


@dataclass(frozen=True)
class Direct(ComposedKernel):
    """The terms of `terms_of` one by one up to an N, not before `first`; T_j from N on is enclosed
    by `_beyond`.

    Sums by one precision are made once. N is where `_beyond` has that precision, at most `farthest`
    terms from the start.
    """

    terms_of: Expr
    first: int

    farthest: ClassVar[int] = 1 << 17

    def _beyond(self, j: int) -> arb:
        """T_j, j >= N."""
        raise NotImplementedError

    def _begin(self, bits: int) -> int:
        """The least N for sums of `bits` bits."""
        return self.first

    def _end(self, bits: int) -> tuple[int, arb]:
        """N and T_N, for sums of `bits` bits."""
        return reached(self._beyond, self._begin(bits), bits, self.start + self.farthest)

    def _base(self, bits: int) -> tuple[int, list[arb]]:
        """N and the sums from each i <= N."""
        kept, bits = memory(self).setdefault("base", {}), STEP * -(-bits // STEP)
        if bits not in kept:
            with precision(bits + 32):
                at, value = self._end(bits)
                sums = suffix_sums(value, terms(self.terms_of), at, self.start)
            if len(kept) > MAX_BASES:
                kept.clear()
            kept[bits] = at, sums
        return kept[bits]

    def tail(self, j: int) -> arb:
        at, sums = self._base(ctx.prec)
        if j <= at:
            return sums[j - self.start]
        with precision(ctx.prec + 16):
            return self._beyond(j)

    def _guess_in_sums(self, goal: Callable[[int], arb]) -> int | None:
        """The least j with T_j < goal(64), where it is at most N."""
        with precision(64):
            small, (_, sums) = goal(64), self._base(64)
            if to_arb(sums[-1]) < small:
                return self.start + first_below(sums, small)
        return None


def reached(value: Callable[[int], arb], at: int, bits: int, most: int) -> tuple[int, arb]:
    """The first of the places at, 2 at, 4 at, ... whose value has so many bits, and the value.

    Raises:
        Unreachable: no place up to `most` has.
    """
    while True:
        check_time()
        height = value(at)
        if height.is_finite() and height.rel_accuracy_bits() >= bits:
            return at, height
        at *= 2
        if at > most:
            raise Unreachable(f"no bound of a tail reaches {bits} bits within {most} terms")
