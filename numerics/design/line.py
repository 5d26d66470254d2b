"""The exact set of parameters that meets targets, where the family orders its tails.

By a monotone likelihood ratio (`farfield.numerics.design.order`) the parameters with Q <= k are a
half-line, and a set of targets is met on an interval. Each end is a threshold between two rationals
at which the quantity itself was computed, one outside and one inside. A root of the gauge only
says where to look. The sums depend continuously on the parameter (dominated convergence), so the
strict T_k < eps B holds on an open half-line, a bound with <= on a closed one: that tells which end
belongs to the interval. Where no threshold is found, the limit of the family at the end of its
domain proves that there is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import sympy
from scipy.optimize import brentq
from sympy import Expr, Integer, Rational, S

from farfield.numerics.design.family import Family
from farfield.numerics.design.rationals import decimals_around, simplest
from farfield.numerics.design.targets import BITS, Diverges, Event, Quantity, Target
from farfield.numerics.search import least
from farfield.theory.algebra.budget import check_time
from farfield.theory.algebra.door import expand, replaced
from farfield.theory.algebra.exceptions import Undecided, Unreachable
from farfield.theory.answers.answer import InputError
from farfield.theory.answers.number import decimal
from farfield.theory.functions.balls import Undefined, precision
from farfield.theory.functions.nodes import n

DIGITS = 11
"""Of the decimals around a threshold, unless more are needed to tell two thresholds apart."""
FINER, MAX_FINER = 2**36, 12
MAX_WIDER = 12
REACH, REACH_OF_EXPONENT = 64.0, 12.0
"""Parameters are sought up to 2^64, and down to 2^-64 from an end; exponents up to 2^12."""
MOST_STEPS = 2**49
FROZEN = 8
STEEP = 64.0
UNKNOWN = (Unreachable, Undecided, InputError, Undefined, ArithmeticError)
"""Raised where a quantity is not known."""

Pair = tuple[Rational, Rational]


@dataclass(frozen=True)
class Endpoint:
    """A threshold of an event between two rationals at which it was decided.

    Args:
        event: that changes there.
        outside, inside: a parameter at which the event is not as wanted, one at which it is.
        contained: whether the threshold itself is as wanted.
    """

    event: Event
    outside: Rational
    inside: Rational
    contained: bool

    @property
    def below(self) -> bool:
        """Whether it bounds the wanted parameters from below."""
        return bool(self.outside < self.inside)


@dataclass(frozen=True)
class FeasibleInterval:
    """An interval of parameters, each end between an outer and an inner rational; None: the end of
    the domain."""

    low: Pair | None
    high: Pair | None
    closed: tuple[bool, bool]
    value: Rational | None


class Infeasible(Exception):
    """No parameter meets the targets; between the two edges the wanted half-lines miss each other.

    `proved` is False where they could only not be told from each other.
    """

    def __init__(self, low: Endpoint, high: Endpoint, proved: bool) -> None:
        super().__init__(f"{low.event.target} and {high.event.target}")
        self.low, self.high, self.proved = low, high, proved


@dataclass
class ParameterLine:
    """An open interval of a continuous parameter, on which the family orders its tails.

    A coordinate u of the interval keeps parameters near an end far from each other: the logarithm
    to base 2 of the distance from a finite end, or of the quotient of the distances from two; on
    the whole line 2^u - 2^-u = 2a.

    Args:
        family: the biases.
        order: 1 if tails grow with the parameter, -1 if they shrink, 0 if nothing moves; None where
            nothing is proved, so that no threshold can be asked for.
        low, high: its ends, exact.
        outer: whether each end is one of the family's domain, not of its convergence.
        closed: whether each end belongs to the domain.
        step: `ceiling` or `floor` if the bias depends on this integer of the parameter alone.
    """

    family: Family
    order: int | None
    low: Expr
    high: Expr
    outer: tuple[bool, bool] = (True, True)
    closed: tuple[bool, bool] = (False, False)
    step: str | None = None
    open_ends: set[bool] = field(default_factory=set)

    @cached_property
    def ends(self) -> tuple[Rational | None, Rational | None]:
        """Rationals at the ends, or just inside; None at infinity."""
        return _inside(self.low, 1), _inside(self.high, -1)

    @cached_property
    def reach(self) -> tuple[float, float]:
        """The least and the largest coordinate."""
        powers = self.family.formula.atoms(sympy.Pow, sympy.exp)
        steep = any(e.exp.has(self.family.parameter) for e in powers)
        far = REACH_OF_EXPONENT if steep else REACH
        return -far if self.ends[0] is None else -REACH, far if self.ends[1] is None else REACH

    def at(self, u: float) -> Rational:
        """The parameter of a coordinate."""
        low, high = self.ends
        size = Rational(*(2.0**u).as_integer_ratio())
        if low is not None and high is not None:
            return low + (high - low) * size / (1 + size)
        if low is not None:
            return low + size
        return (size - 1 / size) / 2 if high is None else high - 1 / size

    def around(self, a: Rational) -> Pair:
        """Decimals around a parameter, near to it beside its size and its distance from an end."""
        sizes = (abs(x) for x in (a, *(a - e for e in self.ends if e is not None)) if x)
        return decimals_around(a, min(sizes, default=S.One), DIGITS)

    def bias(self, a: Rational) -> Expr:
        """The bias at a parameter; the same expression for all that share an integer."""
        if self.step is not None:
            a = sympy.ceiling(a) if self.step == "ceiling" else sympy.floor(a)
        return self.family.at(a)

    def holds(self, event: Event, a: Rational) -> bool:
        """Whether an event is as wanted at a parameter, proved."""
        check_time()
        within = event.quantity.within(self.bias(a), event.limit, event.strict)
        return within == event.wanted

    def gauge(self, event: Event, u: float) -> float:
        """Negative exactly where Q is within the limit, as floats tell.

        Raises:
            Unreachable: the quantity is not known there.
        """
        check_time()
        a = self.at(u)
        try:
            with precision(BITS[0]):
                value = float(event.quantity.gauge(self.bias(a), event.limit))
        except Diverges:
            return math.inf
        except UNKNOWN:
            value = math.nan
        if math.isnan(value):
            raise Unreachable(f"{event.quantity.words()} is not known at {float(a):.6g}")
        return value

    # where an event changes

    def edge(self, event: Event) -> Endpoint | bool:
        """The threshold of an event; True if it is as wanted everywhere, False if nowhere."""
        if event.quantity.integer and event.limit < 1:
            return not event.wanted
        if self.order == 0:
            return self.holds(event, self.at(0))
        if self.step is not None:
            return self._integer_edge(event)
        found = self._bracket(event)
        return self._nowhere(event, found) if isinstance(found, bool) else self.sharp(event, *found)

    def _rising(self, event: Event) -> bool:
        """Whether Q comes within the limit for large parameters."""
        assert self.order is not None
        return self.order * event.quantity.grows < 0

    def _nowhere(self, event: Event, within: bool) -> bool:
        """Whether an event is as wanted, of which no threshold was found."""
        if not self._proved(event, within):
            self.open_ends.add(within is self._rising(event))
        return within == event.wanted

    def _integer_edge(self, event: Event) -> Endpoint | bool:
        """The threshold of a family that moves at integers."""
        up_to = self.step == "ceiling"  # m stands for (m - 1, m], else for [m, m + 1)
        low = first = int(sympy.floor(self.low)) + up_to
        last = int(sympy.Min(sympy.ceiling(self.high), MOST_STEPS)) - (not up_to)
        before = self.holds(event, Integer(first))
        high = min(low + 1, last)
        while self.holds(event, Integer(high)) is before:
            if high == last:
                return self._nowhere(event, before == event.wanted)
            low, high = high, min(first + 4 * (high - first), last)
        found = least(lambda m: self.holds(event, Integer(m)) is not before, low, high)
        at = Integer(found - up_to)
        beside = max(at, S.One) * Rational(1, 10**10)
        pair = (at, at + beside) if up_to else (at - beside, at)
        outside, inside = pair[::-1] if before else pair
        return Endpoint(event, outside, inside, inside == at)

    def _bracket(self, event: Event) -> tuple[float, float] | bool:
        """Two coordinates between which the gauge changes its sign; whether Q is within the limit
        as far as was sought if there are none."""
        u, within = self._first(event)
        way, step = 1 if within != self._rising(event) else -1, 1.0
        least_u, most = self.reach
        while least_u < u < most:
            beyond = min(max(u + way * step, least_u), most)
            for _ in range(6):
                try:
                    other = self.gauge(event, beyond) < 0
                    break
                except Unreachable:
                    beyond = (u + beyond) / 2
            else:
                raise Unreachable(
                    f"{event.quantity.words()} is not known beyond {self.family.parameter} = "
                    f"{float(self.at(u)):.6g}"
                )
            if other is not within:
                return u, beyond
            u, step = beyond, 2 * step
        return within

    def _first(self, event: Event) -> tuple[float, bool]:
        """A coordinate at which Q is known, and whether it is within the limit there."""
        for u in (0, -1, 1, -3, 3, -8, 8, -20, 20):
            try:
                return u, self.gauge(event, u) < 0
            except Unreachable:
                continue
        raise Unreachable(f"{event.quantity.words()} is known at no {self.family.parameter} tried")

    def sharp(self, event: Event, u: float, v: float) -> Endpoint:
        """A threshold between neighbouring decimals, from coordinates with a gauge of either sign.

        Raises:
            Unreachable: none was found.
        """

        def bounded(x: float) -> float:
            return min(max(self.gauge(event, x), -STEEP), STEEP)

        try:
            guess = self.at(float(brentq(bounded, u, v, xtol=1e-14, maxiter=200)))
        except ValueError:
            raise Unreachable(f"the threshold of {event.target} was not found") from None
        down, up = self.around(guess)
        unit, upwards = up - down, self._upwards(event, u, v)
        for widen in range(MAX_WIDER):
            (down, first), (up, second) = (self._decided(event, a, unit) for a in (down, up))
            if first is not second:
                outside, inside = (up, down) if first else (down, up)
                contained = event.quantity.closed and not event.strict
                edge = Endpoint(event, outside, inside, contained == event.wanted)
                return self.narrowed(edge, unit)
            if first is upwards:
                down, up = down - unit * 8**widen, down
            else:
                down, up = up, up + unit * 8**widen
        raise Unreachable(f"the threshold of {event.target} was not found near {float(guess):.6g}")

    def _upwards(self, event: Event, u: float, v: float) -> bool:
        """Whether an event is as wanted at the larger of two coordinates."""
        return (self.gauge(event, max(u, v)) < 0) == event.wanted

    def _decided(self, event: Event, a: Rational, unit: Rational) -> tuple[Rational, bool]:
        """A parameter at which the event is decided, and how: a, or one just beside it."""
        for aside in (Rational(1, 3), Rational(-1, 7)):
            try:
                return a, self.holds(event, a)
            except Unreachable:
                a += aside * unit
        return a, self.holds(event, a)

    def narrowed(self, edge: Endpoint, unit: Rational) -> Endpoint:
        """The same threshold between rationals at most a unit apart."""
        while abs(edge.inside - edge.outside) > unit:
            middle = (edge.inside + edge.outside) / 2
            side = "inside" if self.holds(edge.event, middle) else "outside"
            edge = replace(edge, **{side: middle})
        return edge

    # where nothing changes

    def _limit(self, upper: bool) -> Expr | None:
        """The bias at an end of the line, where the formula has one."""
        end, t = (self.high if upper else self.low), sympy.Dummy("t", positive=True)
        if end.is_finite:
            bias = self.family.at(end)
        else:
            bias = replaced(expand(self.family.at(1 / t if upper else -1 / t)), {t: S.Zero})
        bad = (S.NaN, S.ComplexInfinity, S.Infinity)
        masked = isinstance(bias, sympy.Piecewise) or not bias.has(S.NegativeInfinity)
        return bias if masked and not bias.has(*bad) and bias.free_symbols <= {n} else None

    def _proved(self, event: Event, within: bool) -> bool:
        """Whether the limit at an end proves that an event holds at every parameter, or at none:
        the quantity of the whole family lies on one side of that of its limit."""
        limit = self._limit(self._rising(event) != within)
        k = int(event.limit) if event.quantity.integer else FROZEN
        if limit is None and not within and k < FROZEN:
            # the first k + 1 terms do not move: what they hold beyond k is there at every parameter
            p = self.family.formula
            fixed = (p.subs(n, j) - p.subs(n, 0) for j in range(1, k + 1))
            if not any(e.has(self.family.parameter) for e in fixed):
                row = (self.bias(self.at(0)), n <= k)
                limit = sympy.Piecewise(row, (S.NegativeInfinity, True))
        try:
            return limit is not None and within == event.quantity.within(
                limit, event.limit, event.strict
            )
        except UNKNOWN:
            return False

    def reached(self, quantity: Quantity) -> str:
        """The range of a quantity over the line, in words."""
        known = []
        for upper in (False, True):
            try:
                bias = self._limit(upper) or self.bias(self.at(self.reach[upper]))
                found = quantity.answer(bias).span()
            except UNKNOWN:
                found = None
            if found is not None:
                known.append(found[0])
        if len(known) < 2:
            return f"its {quantity.words()} is not known near the ends"
        low, high = (_count(v) if quantity.integer else decimal(v, 4) for v in sorted(known))
        said = f"{low} throughout" if low == high else f"from {low} to {high}"
        return f"its {quantity.words()} is {said}"

    # where all targets are met

    def region(self, targets: Sequence[Target]) -> FeasibleInterval:
        """The parameters that meet all targets.

        Raises:
            Empty: there is none; the exception names the two edges that miss each other.
            InputError: a target that no parameter meets, with the range that can be met.
            Unreachable: what could not be decided.
        """
        events = [event for t in targets for event in t.events()]
        sides: dict[bool, list[Endpoint]] = {True: [], False: []}
        for event in events:
            found = self.edge(event)
            if found is False:
                raise InputError(
                    f"{event.target} is met by no {self.family.parameter} of "
                    f"{self.family.name}: {self.reached(event.quantity)}"
                )
            if isinstance(found, Endpoint):
                sides[found.below].append(found)
        for finer in range(MAX_FINER, -1, -1):
            sides[True].sort(key=lambda e: -e.outside)
            sides[False].sort(key=lambda e: e.outside)
            low, high = (next(iter(sides[below]), None) for below in (True, False))
            inner = (
                max((e.inside for e in sides[True]), default=S.NegativeInfinity),
                min((e.inside for e in sides[False]), default=S.Infinity),
            )
            if low is None or high is None or inner[0] <= inner[1]:
                return self._between((low, high), inner, events)
            if low.outside >= high.outside or self.step is not None:
                raise Infeasible(low, high, True)
            if not finer:
                raise Infeasible(low, high, False)
            for side in sides.values():
                side[0] = self.narrowed(side[0], abs(side[0].inside - side[0].outside) / FINER)
        raise AssertionError("the last step returns or raises")

    def _between(
        self, edges: Sequence[Endpoint | None], inner: Sequence[Expr], events: Sequence[Event]
    ) -> FeasibleInterval:
        """The interval between two edges, or up to the ends of the line."""
        ends = [None if e is None else (e.outside, x) for e, x in zip(edges, inner, strict=True)]
        closed = [e.contained if e else c for e, c in zip(edges, self.closed, strict=True)]
        for k, (end, exact) in enumerate(zip(self.ends, (self.low, self.high), strict=True)):
            if ends[k] is None and not self.outer[k]:
                assert end is not None, "convergence ends at a finite parameter"
                down, up = self.around(end)
                outside = end if end == exact else (up if k else down)
                ends[k], closed[k] = (outside, end + (down - up if k else up - down)), False
        return FeasibleInterval(
            ends[0], ends[1], (closed[0], closed[1]), self._simplest(ends, closed, events)
        )

    def _simplest(
        self, ends: Sequence[Pair | None], closed: Sequence[bool], events: Sequence[Event]
    ) -> Rational | None:
        """The simplest rational inside; one that falls between an outer and an inner rational is
        decided by itself."""
        outer = [e[0] if e else x for e, x in zip(ends, (self.low, self.high), strict=True)]
        inner = [e[1] if e else x for e, x in zip(ends, outer, strict=True)]
        held = [e is None and c for e, c in zip(ends, closed, strict=True)]
        for _ in range(MAX_WIDER):
            found = simplest(outer[0], outer[1], *held)
            if found is None or inner[0] <= found <= inner[1]:
                return found
            try:
                if all(self.holds(event, found) for event in events):
                    return found
            except Unreachable:
                break
            outer[bool(found > inner[1])] = found
        return simplest(inner[0], inner[1], True, True)


def _inside(end: Expr, way: int) -> Rational | None:
    """A rational at a finite end, or just inside an irrational one."""
    if not end.is_finite:
        return None
    return end if end.is_Rational else Rational(end.evalf(60)) + way * Rational(1, 10**40)


def _count(value: float) -> str:
    return "infinity" if value == math.inf else f"{value:.3g}" if value > 1e15 else str(int(value))
