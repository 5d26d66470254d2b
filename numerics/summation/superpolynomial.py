r"""Terms that fall faster than every power within the reach of a direct sum.

They are summed one by one up to a Y with a proved bound of the rest: where p(x) <= -A log x on
[Y, oo) (a `TailEnclosure` proves it), sum_{n>Y} e^{p(n)} <= Y^{1-A}/(A-1) (ours).
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import ClassVar

from flint import arb, ctx, fmpq
from sympy import S

from farfield.numerics.summation.analytic_bias import Bias
from farfield.numerics.summation.kept_sums import memory, remembered
from farfield.numerics.summation.kernel import Kernel, suffix_sums
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.functions.balls import Undefined, precision, to_arb
from farfield.theory.functions.nodes import n

MAX_TERMS = 1 << 17  # terms of a sum one by one
NEAR = 1 << 13  # terms from a tail far out to the one that was asked for before
SHARES = (0.95, 0.75, 0.5, 0.25)
"""Of the exponent that holds at a place: smaller ones are easier to prove from there on."""
FAR_SHARES = (0.999999, 0.999, *SHARES)
"""The same far out, where a share of the exponent is many orders of magnitude."""


@dataclass(frozen=True)
class SuperpolynomialSum(Kernel):
    """The sums, and a bound of the rest."""

    source: Bias
    first: int

    checked: ClassVar[bool] = False

    @remembered
    def rest(self, y: int, shares: tuple[float, ...] = SHARES) -> arb:
        """A bound of sum_{i>=y} exp(p(i)): a power x^-a, a > 2, that lies above the terms from
        y on, integrated; oo without one, as for y < 3, where log(y - 1) is not positive."""
        with precision(128):
            log_x = arb(y - 1).log()
            try:
                size = to_arb(self.source.direct({n: fmpq(y - 1)}))
            except Undefined:
                return arb.pos_inf()
            for share in shares:
                a = (-size / log_x * arb(share)).mid()
                if a > 2 and self.source.is_steep(a, log_x):
                    return ((1 - a) * log_x).exp() / (a - 1)
        return arb.pos_inf()

    def _sums(self) -> dict[int, tuple[int, list[arb]]]:
        """The last tail that was asked for and the tails from the start on, by precision."""
        return memory(self).setdefault("sums", {})

    def tail(self, j: int) -> arb:
        if j - self.start > MAX_TERMS // 2:
            return self._far_tail(j)
        bits = ctx.prec
        if j > self._sums().get(bits, (self.start - 1, []))[0]:
            self._extend(j, bits)
        return self._sums()[bits][1][j - self.start]

    def _far_tail(self, j: int) -> arb:
        """The terms from j on alone, up to where the rest is below the precision; or up to the tail
        that was asked for before, where that is near."""
        bits, far = ctx.prec, memory(self).setdefault("far", {})
        place, rest = far.get(bits, (0, arb(0)))
        if not 0 <= place - j <= NEAR:
            place, rest = self._end(j, j + 64, bits, FAR_SHARES)
        with precision(bits + 32):
            tail = suffix_sums(rest, self.source.term, place, j)[0]
        far[bits] = j, tail
        return +tail

    def _end(
        self, j: int, upto: int, bits: int, shares: tuple[float, ...] = SHARES
    ) -> tuple[int, arb]:
        """A place from `upto` on where the rest is below the precision, relative to T_j; the
        rest."""
        goal = to_arb(self.source.term(j)) * arb(2) ** -(bits + 8)
        while not (rest := self.rest(upto, shares)) < goal:
            upto = j + 2 * (upto - j)
            if upto - j > MAX_TERMS:
                raise Unreachable("too many terms would have to be summed one by one")
        return upto, arb(0).union(rest.upper())

    def between(self, a: int, b: int) -> arb:
        """A far b by the bound of the rest, where that is precise enough."""
        bits, total = ctx.prec, self.tail(a)
        with precision(bits + 32):
            value = total - arb(0).union(self.rest(b).upper())
        return value if value.rel_accuracy_bits() >= bits else total - self.tail(b)

    def guess(self, goal: arb) -> int | None:
        """From the sums: terms far out, where the search might look, are dear."""
        bits, size = ctx.prec, 1
        while not self.tail(self.start + size - 1) < goal:
            size *= 2
        sums = self._sums()[bits][1][:size]
        return self.start + bisect.bisect_left(sums, True, key=lambda value: bool(value < goal))

    def _extend(self, j: int, bits: int) -> None:
        """Suffix sums up to where the rest is below the precision, relative to T_j; the terms are
        kept, as they are dear."""
        upto, rest = self._end(j, max(self.first, j + 64), bits)
        kept = memory(self).setdefault("terms", {})
        if len(kept) > 4:
            kept.clear()
            self._sums().clear()
        terms = kept.setdefault(bits, [])
        with precision(bits + 32):
            terms += (self.source.term(i) for i in range(self.start + len(terms), upto))
            sums = suffix_sums(rest, lambda i: terms[i - self.start], upto, self.start)
        self._sums()[bits] = j, sums


def superpolynomial_kernel(source: Bias, start: int, most: int) -> SuperpolynomialSum | None:
    """The kernel that sums one by one, where at most `most` terms give 128 bits."""
    for first in (start + (1 << k) for k in range(2, most.bit_length())):
        with precision(128):
            if to_arb(source.direct({n: fmpq(first)})) < -120:
                trial = SuperpolynomialSum(start, S.Zero, source, first)
                if trial.rest(first) < arb(2) ** -150 * source.term(start):
                    return trial
    return None
