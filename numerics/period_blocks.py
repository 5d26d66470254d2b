"""Which of two normalised tails is the smaller one in the end, by blocks of one period.

Let a and b have formulas of their own in the residue classes modulo m; m = 1 is one formula. For
j = m k + i their tails are sums over k' >= k of the blocks

    a_i(k') = sum_{0 <= d < m} exp(p_a(m k' + i + d)),    b_i(k') likewise.

So a_i(k')/A <= b_i(k')/B for all k' >= k gives T_j/A <= T_j/B for these tails of a and b (ours; for
m = 1 it is [Q, Theorem 0.5]). Whichever classes are the heavy ones, one block holds a term of each.
The terms of a block are taken relative to one formula that none of them outgrows, the pivot: the
quotient of two blocks tends to a quotient of sums of exponentials of limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from flint import acb, arb, fmpq
from sympy import Expr, S

from farfield.numerics.enclosures.tails import UNIT, TailEnclosure
from farfield.numerics.search import decide
from farfield.numerics.summation.analytic_bias import Bias, read_bias
from farfield.numerics.summation.kernel import number
from farfield.numerics.summation.series import Series
from farfield.theory.algebra import door
from farfield.theory.decision.differences import limit_of_difference
from farfield.theory.functions.balls import to_arb
from farfield.theory.functions.nodes import n

Terms = tuple[tuple[Expr, Expr], ...]
Limit = Callable[[Expr, Expr], Expr]


class NoLimit(Exception):
    """A difference of two biases has no limit, or none that is decided."""


@dataclass(frozen=True)
class PeriodBlock:
    """The terms of two series, a and b, at period k + residue + d, 0 <= d < period.

    `terms` holds for each series the formulas in k that have weight, and the limits of their
    differences from the pivot, -oo or finite.
    """

    period: int
    residue: int
    pivot: Expr
    terms: tuple[Terms, Terms]

    @property
    def proportional(self) -> bool:
        """Whether the quotient of the two sums is proved to be the same at every k."""
        gaps = (door.expand(f - self.pivot) for each in self.terms for f, _ in each)
        return not any(gap.has(n) for gap in gaps)

    def quotient(self, a: Series, b: Series) -> arb:
        """lim a_i(k)/A over b_i(k)/B: 0 where a_i vanishes beside b_i, infinite where b_i does."""
        above, below = map(_weight, self.terms)
        if below == 0:
            return arb.pos_inf()
        return arb(0) if above == 0 else above / below * _ratio(b, a)

    def lighter(self, a: Series, b: Series) -> str | None:
        """The series whose normalised tail is the smaller one at all large j of this residue;
        "neither" where they are equal, None where that is not decided."""

        def proved() -> str | None:
            quotient = self.quotient(a, b)
            return "a" if quotient < 1 else "b" if quotient > 1 else None

        side = decide(proved, (128, 512))
        if side is None and self.residue == 0 and _whole(a, b) and self.proportional:
            return "neither"  # the quotient of the totals is that of the blocks, as k = 0 is one
        return side

    def dominated(self, light: int, ratio: arb, k: int) -> bool:
        """Whether the normalised block of a (`light` 0) or b (1) is proved to be at most the other
        one from k on; `ratio` is the total of the light series over that of the other."""
        small, great = self.terms[light], self.terms[1 - light]
        room = ratio * sum((self._value(f, k).lower() for f, x in great if x.is_finite), arb(0))
        room -= sum((self._value(f, k).upper() for f, x in small if x.is_finite), arb(0))
        vanishing = [f for f, x in small if not x.is_finite]
        if not room > 0:
            return False
        least = acb((room.lower() / max(1, len(vanishing))).log())
        each = (_difference(f, self.pivot).real(arb(k).log()) for f in vanishing)
        return all((g + TailEnclosure(g.where, {UNIT: -least})).negative() for g in each)

    def _value(self, f: Expr, k: int) -> arb:
        """exp(f - pivot) from k on, where that has a finite limit."""
        g = _difference(f, self.pivot).real(arb(k).log())
        rest = TailEnclosure(g.where, {m: c for m, c in g.terms.items() if m is not UNIT})
        constant = g.terms.get(UNIT, fmpq(0))
        limit = constant.real if isinstance(constant, acb) else arb(constant)
        return (limit + rest.small().real).exp()


def _weight(terms: Terms) -> arb:
    """The limit of a sum of terms relative to the pivot; an exact 0 where all of them vanish."""
    return sum((number(x).exp() for _, x in terms if x.is_finite), arb(0))


def _ratio(a: Series, b: Series) -> arb:
    """A/B."""
    return to_arb(a.total()) / to_arb(b.total())


@lru_cache(maxsize=512)
def _difference(f: Expr, pivot: Expr) -> Bias:
    return read_bias(f - pivot)


def proportion(a: Series, b: Series) -> Expr | None:
    """p_a - p_b, where that is one constant on all residue classes; None where it is not."""
    period, gaps = math.lcm(a.period, b.period), set[Expr]()
    for r in range(period if _whole(a, b) else 0):
        p, q = a.eventual(period, r), b.eventual(period, r)
        if p != q or p is not S.NegativeInfinity:
            gaps.add(door.expand(p - q))
    gap = gaps.pop() if len(gaps) == 1 else n
    return None if gap.has(n, S.Infinity, S.NegativeInfinity) else gap


def _whole(a: Series, b: Series) -> bool:
    """Whether the formulas of large distances hold from 0 on."""
    return all(s.start == 0 for each in (a, b) for s in each.stretches)


def period_blocks(a: Series, b: Series) -> Iterator[PeriodBlock]:
    """The blocks of two series that do not end, one a residue.

    Raises:
        NoLimit: two formulas have no limit of their difference, or none that is decided.
    """
    period, limit_of = math.lcm(a.period, b.period), cache(limit_of_difference)
    each = [[s.eventual(period, r) for r in range(2 * period)] for s in (b, a)]
    pivot = next(f for f in each[0] if f is not S.NegativeInfinity)

    def limit(f: Expr, pivot: Expr) -> Expr:
        value = S.Zero if f == pivot else limit_of(f, pivot)
        if value is None:
            at = f" on the blocks from {i} modulo {period}" if period > 1 else ""
            raise NoLimit(f"p_a - p_b has no limit, or none that is decided{at}")
        return value

    for i in range(period):
        theirs, ours = (
            [f for f in formulas[i : i + period] if f is not S.NegativeInfinity]
            for formulas in each
        )
        pivot = _heaviest([*theirs, *ours], pivot, limit)
        terms = (tuple((f, limit(f, pivot)) for f in part) for part in (ours, theirs))
        yield PeriodBlock(period, i, pivot, (next(terms), next(terms)))


def _heaviest(formulas: Sequence[Expr], pivot: Expr, limit: Limit) -> Expr:
    """A formula that none of these outgrows, and that not all of them fall behind."""
    heaviest = pivot
    for f in formulas:
        if limit(f, heaviest) is S.Infinity:
            heaviest = f
    if all(limit(f, heaviest) is S.NegativeInfinity for f in formulas):
        return _heaviest(formulas, formulas[0], limit)
    return heaviest
