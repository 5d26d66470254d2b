r"""The search for a receptive field, by ball comparisons of T_j with eps B.

`T_j` falls as j grows, so an integer j is the answer as soon as balls prove `T_j < eps B` and
`T_{j-1} >= eps B`. The search between is free to guess: Newton's method on `log T` against j and
against `log j`, in turns, with bisection. It begins at a low precision, which tells magnitudes
apart. An answer beyond 10^18 is a magnitude, not a count: its logarithm is enclosed by the same
comparisons, unless all digits are asked for. An exact tie `T_j = eps B` cannot be seen by balls. It
is settled exactly for rational terms and for geometric series, otherwise the answer is a bracket.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

import sympy
from flint import arb, ctx

from farfield.numerics.search import (
    Bracket,
    Enclosure,
    Exact,
    Unrecognised,
    Value,
    decide,
    doubled,
    narrowed,
)
from farfield.numerics.summation.kernel import Geometric, decided_sign
from farfield.numerics.summation.series import Series
from farfield.theory.algebra.door import check_time
from farfield.theory.algebra.exceptions import OutOfTime, Unreachable
from farfield.theory.answers.answer import Code, Reason
from farfield.theory.functions.balls import Ball, Undefined, precision, rational, to_arb

EXTRA_BITS = 256  # beyond those that j asks for, before a comparison counts as a tie
COUNTED = 10**18  # the largest answer that is counted exactly without being asked to
FINE = 10**9  # one part in so many is how finely a larger answer is enclosed
LOG_BITS = 64  # of log TRF behind the point
MAX_LOG_BITS = 128  # before the point, beyond which a lower bound is all that is told
MAX_STEPS = 80  # doublings, and halvings, of a bracket


class _Tie(Exception):
    """Balls do not decide T_j < eps B; the argument tells how near they are."""


def bits_for(j: int) -> int:
    """A precision that decides T_j < eps B but for an unlucky eps: terms are about T_j/j."""
    return 64 * (1 + (j.bit_length() + 32) // 64)


@dataclass
class TailComparison:
    """T_j against eps B, last at `at`, where they were `seen`; totals are kept by precision."""

    series: Series
    totals: dict[int, Ball] = field(default_factory=dict)
    at: int = 0
    seen: tuple[Ball, Ball] = (None, None)

    def total(self, bits: int) -> Ball:
        """B at the precision `bits`, which must be at work."""
        if bits not in self.totals:
            self.totals[bits] = self.series.total()
        return self.totals[bits]

    def below(self, j: int, eps: sympy.Rational, coarse: bool = False) -> bool:
        """Whether T_j < eps B, proved; `seen` is then T_j and eps B as they decided it.

        `coarse` tries the first precision alone, or for magnitudes the first two.
        """
        bits = max(bits_for(j), 0 if self.series.last else self.series.first_bits)
        last, near, tail = bits + EXTRA_BITS, "", None
        if coarse:
            bits = min(bits, self.series.first_bits)
            last = bits if j <= COUNTED else 2 * bits

        def decided() -> bool | None:
            nonlocal near, tail
            try:
                goal = rational(eps) * self.total(ctx.prec)
                if not near or not to_arb(goal).contains(to_arb(tail)):
                    tail = self.series.tail(j)  # else a sharper one would decide no more
            except Unreachable as why:
                if not near:
                    raise
                raise _Tie(f"{near}; {why}") from None
            self.seen = tail, goal
            if tail < goal or tail >= goal:
                return bool(tail < goal)
            gap = (abs(to_arb(tail - goal)) / to_arb(goal)).upper().mid()
            near = f"eps B differ by at most {gap.str(2, radius=False)} of them"
            return self._geometric_tie(j, eps)

        self.at = j
        proved = decide(decided, doubled(bits, last))
        if proved is None:
            raise _Tie(f"{near or 'eps B are not enclosed'}, as far as known")
        return proved

    def _geometric_tie(self, j: int, eps: sympy.Rational) -> bool | None:
        """T_j/B = e^{alpha j} exactly, for a geometric series from 0."""
        kernel = self.series.kernel
        if len(self.series.stretches) > 1 or not isinstance(kernel, Geometric):
            return None
        try:
            return decided_sign(kernel.alpha * j - sympy.log(eps)) < 0
        except Unrecognised:
            return None


def searched(
    compare: TailComparison, eps: sympy.Rational, *, every_digit: bool
) -> tuple[Value, Reason | None]:
    """The least j with T_j < eps B; T_0 = B is never below, as eps < 1."""
    s, most, coarse = compare.series, compare.series.max_bits, True
    guesses, low, high = _foreseen(compare, eps), 0, s.support

    def proved(j: int) -> bool:
        nonlocal coarse
        try:
            below = compare.below(j, eps, coarse)
        except _Tie:
            if not coarse:
                raise
            coarse = False
            return proved(j)
        guesses[:] = _newton(compare)
        return below

    cap = None if every_digit else COUNTED
    brackets = narrowed(proved, low, high, guesses, first=(guesses or [1])[0], cap=cap)
    try:
        for low, high in brackets:
            check_time()
            vast = high is None and low >= COUNTED
            if vast and (answer := _enclosure(s, eps)) is not None:
                return answer, _beyond_reason(most)
            if low >= COUNTED and not every_digit:
                return _magnitude(compare, eps, low, high, guesses)
            if high is None and low.bit_length() > most:
                return Bracket(low + 1, None), _beyond_reason(most)
    except _Tie as near:
        return _tied(compare, eps, low, high, str(near))
    except Unreachable as why:
        if not low:
            raise
        code = Code.BUDGET if isinstance(why, OutOfTime) else Code.NO_ENCLOSURE
        return Bracket(low + 1, high), Reason(code, str(why))
    assert high is not None
    return Exact(high), None


def _magnitude(
    compare: TailComparison, eps: sympy.Rational, low: int, high: int | None, guesses: list[int]
) -> tuple[Value, Reason | None]:
    """log TRF for an answer in (low, high], as fine as a low precision and the time allow."""
    most, near = compare.series.max_bits, list[int]()
    reason = Reason(Code.TOO_LARGE, "the answer is beyond 10^18; exact=True (--exact) counts it")

    def proved(j: int) -> bool:
        below = compare.below(j, eps, coarse=True)
        guesses[:] = _newton(compare)
        return below

    brackets = narrowed(proved, low, high, near)
    try:
        for low, high in brackets:
            if high is not None and (high - low) * FINE <= low:
                break
            check_time()
            if high is None and low.bit_length() > most:
                return Bracket(low + 1, None), _beyond_reason(most)
            near[:] = [g + (1 if g >= low else -1) * (g // (4 * FINE)) for g in guesses]
            if high is not None and guesses and 2 * guesses[-1] > low + high:
                near[:] = [g - g // (2 * FINE) for g in near]
    except OutOfTime as why:
        reason = Reason(Code.BUDGET, str(why))
    except (_Tie, Unreachable):
        pass  # as fine as this precision tells
    if high is None:
        return Bracket(low + 1, None), reason
    down, up = math.log(low), math.log(high)
    return Enclosure(math.nextafter(down, 0), math.nextafter(up, math.inf)), reason


def _foreseen(compare: TailComparison, eps: sympy.Rational) -> list[int]:
    """The kernel's own guess of the answer."""
    kernel = compare.series.kernel
    with precision(64):
        try:
            goal = to_arb(rational(eps) * compare.total(64))
            guess = None if kernel is None else kernel.guess(goal)
        except (Undefined, ZeroDivisionError, Unreachable):
            guess = None
    return [] if guess is None else [guess]


def _newton(compare: TailComparison) -> list[int]:
    """Where log T, taken as linear in j and as linear in log j, meets the goal."""
    s, j, (tail, goal) = compare.series, compare.at, compare.seen
    with precision(128 + j.bit_length()):
        try:
            density = sum((to_arb(s.term(j + i)) for i in range(s.period)), arb(0)) / s.period
        except Undefined:
            return []
        move = (to_arb(tail) / to_arb(goal)).log() * to_arb(tail) / density
        guesses = []
        for x in (arb(j) + move, arb(j) * (move / max(j, 1)).exp()):
            if x.is_finite() and x > 0 and x < arb(2) ** (2 * s.max_bits):
                guesses.append(int(x.mid().ceil().unique_fmpz()))
        return guesses


def _tied(
    compare: TailComparison, eps: sympy.Rational, low: int, high: int | None, near: str
) -> tuple[Value, Reason | None]:
    """T_j and eps B agree to all digits: the nearest proved ones on both sides."""
    j = compare.at
    below = _decided(compare, eps, low, j, want=False) or 0
    above = _decided(compare, eps, j, high, want=True)
    which = f"T_{j} and {near}: {j} if T_{j} is less, otherwise {j + 1}"
    reason = which if (below, above) == (j - 1, j + 1) else f"at {j} T_j and {near}"
    return Bracket(below + 1, above), Reason(Code.TIE, reason)


def _decided(
    compare: TailComparison, eps: sympy.Rational, low: int, high: int | None, *, want: bool
) -> int | None:
    """By the neighbour and by halves, the nearest end of what balls decide: the largest j seen with
    T_j >= eps B (`want` False, from the decided `low` up), or the least with T_j < eps B."""

    def beyond(j: int) -> bool:
        try:
            return compare.below(j, eps)
        except (_Tie, Unreachable):
            return not want

    near = low + 1 if want else (high or 0) - 1
    brackets = narrowed(beyond, low, high, first=near)
    for low, high in islice(brackets, MAX_STEPS):
        if high is None and low.bit_length() > compare.series.max_bits:
            return None
    return high if want else low


def _beyond_reason(bits: int) -> Reason:
    return Reason(Code.TOO_LARGE, f"the answer has more than {bits} bits")


def _enclosure(s: Series, eps: sympy.Rational) -> Value | None:
    """log TRF for an answer beyond 2^max_bits, from int_j^oo <= T_j <= int_j^oo + b_j; None where
    it is not proved to lie there. It is sought as an integer times 2^-LOG_BITS, as far as balls
    tell both sides apart."""
    kernel, low, unit = s.kernel, 1 << s.max_bits, arb(2) ** -LOG_BITS
    if kernel is None:
        return None
    with precision(256):
        try:
            goal = rational(eps) * s.total()
            if not kernel.integral(arb(low)) >= goal:
                return None
        except Unreachable:
            return None

        def proved(k: int) -> bool:
            """True: TRF <= e^at + 1 is proved; False: TRF > e^at."""
            x = (k * unit).exp()
            if kernel.integral(x) + kernel.density(x) < goal:
                return True
            if kernel.integral(x + 1) >= goal:
                return False
            raise _Tie

        most = 1 << MAX_LOG_BITS + LOG_BITS
        with suppress(_Tie, Unreachable):
            for ends in narrowed(proved, int(math.log(low)) << LOG_BITS, cap=most):
                if ends[0] >= most:
                    break
        down, up = ends
        if up is None:
            return Bracket(low + 1, None)
        high = math.nextafter(float(up * unit), math.inf)
        return Enclosure(math.nextafter(float(down * unit), 0), math.nextafter(high, math.inf))
