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
from farfield.numerics.summation.kept_sums import remembered
from farfield.numerics.summation.kernel import Direct, suffix_sums
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.functions.balls import Undefined, precision, to_arb
from farfield.theory.functions.nodes import n

MAX_TERMS = 1 << 17  # terms of a sum one by one
SHARES = (1 - 2.0**-20, 1 - 2.0**-10, 0.95, 0.75, 0.5, 0.25)
"""Of the exponent that holds at a place: smaller ones are easier to prove from there on. Far out a
share of the exponent is many orders of magnitude."""


@dataclass(frozen=True)
class SuperpolynomialSum(Direct):
    """Terms one by one up to `first`, and a bound of the rest."""

    source: Bias
    first: int

    checked: ClassVar[bool] = False
    near: ClassVar[int] = 1 << 13

    @remembered
    def rest(self, y: int) -> arb:
        """A bound of sum_{i>=y} exp(p(i)): a power x^-a, a > 2, that lies above the terms from y
        on, integrated; oo without one."""
        with precision(128):
            log_x = arb(y - 1).log()
            try:
                size = to_arb(self.source.direct({n: fmpq(y - 1)}))
            except Undefined:
                return arb.pos_inf()
            for share in SHARES:
                a = (-size / log_x * arb(share)).mid()
                if a > 2 and self.source.is_steep(a, log_x):
                    return ((1 - a) * log_x).exp() / (a - 1)
        return arb.pos_inf()

    def term(self, j: int) -> arb:
        return self.source.term(j)

    def _begin(self, bits: int) -> int:
        return self.first

    def _beyond(self, j: int) -> arb:
        """Terms up to where the rest is below the precision, relative to T_j."""
        bits, count = ctx.prec, 64
        goal = self.term(j) * arb(2) ** -(bits + 8)
        if not goal > 0:  # a term too small for balls
            return arb(0).union(self.rest(j).upper())
        while not self.rest(j + count) < goal:
            count *= 2
            if count > MAX_TERMS:
                raise Unreachable("too many terms would have to be summed one by one")
        with precision(bits + 32):
            rest = arb(0).union(self.rest(j + count).upper())
            return suffix_sums(rest, self.term, j + count, j)[0]

    def guess(self, goal: arb) -> int | None:
        """From the sums: terms far out, where the search might look, are dear."""
        _, sums = self._base(ctx.prec)
        return self.start + bisect.bisect_left(sums, True, key=lambda value: bool(value < goal))

    def between(self, a: int, b: int) -> arb:
        """A far b by the bound of the rest, where that is precise enough."""
        bits, total = ctx.prec, self.tail(a)
        with precision(bits + 32):
            value = total - arb(0).union(self.rest(b).upper())
        return value if value.rel_accuracy_bits() >= bits + 4 else total - self.tail(b)


def superpolynomial_kernel(source: Bias, start: int, most: int) -> SuperpolynomialSum | None:
    """The kernel that sums one by one, where at most `most` terms give 128 bits."""
    y = 4
    while y <= most:
        with precision(128):
            size = to_arb(source.direct({n: fmpq(start + y)}))
            if not size < -120:
                y *= 2
                continue
            trial = SuperpolynomialSum(start, S.Zero, source, start + y)
            bound = trial.rest(start + y)
            if bound.is_finite() and bound < arb(2) ** -150 * source.term(start):
                return trial
        y *= 2
    return None
