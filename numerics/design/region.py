"""The exact set of parameters that meets targets, where the family orders its tails.

By a monotone likelihood ratio (`farfield.numerics.design.order`) the parameters with Q <= k are a
half-line, and a set of targets is met on an interval. Each end is a threshold between two rationals
at which the quantity itself was computed, one outside and one inside; a root of the gauge only
says where to look. The sums depend continuously on the parameter (dominated convergence), so the
strict T_k < eps B holds on an open half-line, a bound with <= on a closed one: that tells which end
belongs to the interval. Where no threshold is found, the limit of the family at the end of its
domain proves that there is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import sympy
from flint import arb, fmpq
from sympy import Expr, Integer, Rational, S

from farfield.numerics.design.chart import REACH, Chart
from farfield.numerics.design.family import Family
from farfield.numerics.design.rationals import decimals_around, simplest
from farfield.numerics.design.targets import BITS, Diverges, Quantity, Target
from farfield.theory.algebra.budget import check_time
from farfield.theory.algebra.door import expand, replaced
from farfield.theory.algebra.outcomes import Undecided, Unreachable
from farfield.theory.answers.answer import InputError
from farfield.theory.answers.number import decimal
from farfield.theory.functions.balls import Undefined, precision
from farfield.theory.functions.nodes import n

DIGITS = 11
"""Of the decimals around a threshold, unless more are needed to tell two thresholds apart."""
MAX_DIGITS = 352
MAX_WIDER = 12
MAX_STEPS = 120
REACH_OF_EXPONENT, REACH_OF_STEPS = 12, 49
"""Exponents are sought up to 2^12, integers up to 2^49, other parameters up to 2^REACH."""
FROZEN = 8

Coordinate = tuple[arb, arb]
"""A coordinate of a parameter, and a gauge there."""


@dataclass(frozen=True)
class Event:
    """Q <= limit, or Q < limit, that a target wants to hold or not to hold."""

    target: Target
    limit: Rational
    strict: bool
    wanted: bool

    @property
    def quantity(self) -> Quantity:
        """Q."""
        return self.target.quantity


@dataclass(frozen=True)
class Edge:
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
    digits: int = DIGITS

    @property
    def below(self) -> bool:
        """Whether it bounds the wanted parameters from below."""
        return bool(self.outside < self.inside)


@dataclass(frozen=True)
class Region:
    """An interval of parameters, each end between an outer and an inner rational; None: the end of
    the domain."""

    low: tuple[Rational, Rational] | None
    high: tuple[Rational, Rational] | None
    closed: tuple[bool, bool]
    value: Rational | None


class Empty(Exception):
    """No parameter meets the targets; between the two edges the wanted half-lines miss each other.

    `proved` is False where they could only not be told from each other.
    """

    def __init__(self, low: Edge, high: Edge, proved: bool) -> None:
        super().__init__(f"{low.event.target} and {high.event.target}")
        self.low, self.high, self.proved = low, high, proved


def region(axis: ParameterLine, targets: Sequence[Target]) -> Region:
    """The parameters of an axis that meet all targets.

    Raises:
        Empty: there is none; the exception names the two edges that miss each other.
        InputError: a target that no parameter meets, with the range that can be met.
        Unreachable: what could not be decided.
    """
    events = [Event(t, *event) for t in targets for event in t.events()]
    edges: list[Edge] = []
    for event in events:
        found = axis.edge(event)
        if found is False:
            raise InputError(
                f"{event.target} is met by no {axis.family.parameter} of {axis.family.name}: "
                f"{axis.reached(event.quantity)}"
            )
        if isinstance(found, Edge):
            edges.append(found)
    while True:
        sides = [[e for e in edges if e.below is below] for below in (True, False)]
        low = max(sides[0], key=lambda e: e.outside, default=None)
        high = min(sides[1], key=lambda e: e.outside, default=None)
        inner = (
            max((e.inside for e in sides[0]), default=S.NegativeInfinity),
            min((e.inside for e in sides[1]), default=S.Infinity),
        )
        if low is None or high is None or inner[0] <= inner[1]:
            return axis.region((low, high), inner, events)
        if low.outside >= high.outside or axis.step is not None:
            raise Empty(low, high, True)
        if min(low.digits, high.digits) >= MAX_DIGITS:
            raise Empty(low, high, False)
        edges = [axis.refined(e) if e in (low, high) else e for e in edges]


@dataclass
class ParameterLine:
    """An open interval of a continuous parameter, on which the family orders its tails.

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
    def chart(self) -> Chart:
        """The coordinate in which thresholds are sought."""
        a = self.family.parameter
        powers = (e.exp for e in self.family.formula.atoms(sympy.Pow, sympy.exp))
        exponent = REACH_OF_EXPONENT if any(e.has(a) for e in powers) else REACH
        return Chart(self.low, self.high, exponent if self.step is None else REACH_OF_STEPS)

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

    # where an event changes

    def edge(self, event: Event) -> Edge | bool:
        """The threshold of an event; True if it is as wanted everywhere, False if nowhere."""
        if event.quantity.integer and event.limit < 1:
            return not event.wanted
        if self.order == 0:
            return self.holds(event, self.chart.at(arb(0)))
        with precision(BITS[0]):
            u, value = self._first(event)
            low, high = self._bracketed(event, u, value)
            if high is None:
                inside = bool(low[1] < 0)
                if not self._proved(event, inside):
                    self.open_ends.add(inside is self._rising(event))
                return inside == event.wanted
        if self.step is not None:
            return self._between_integers(event, low[0], high[0])
        return self.sharp(event, low, high, DIGITS, self._rising(event) == event.wanted)

    def _between_integers(self, event: Event, u: arb, v: arb) -> Edge:
        """The threshold of a family that moves at integers, between two coordinates."""
        counted = sympy.ceiling if self.step == "ceiling" else sympy.floor
        low, high = sorted(int(counted(self.chart.at(x))) for x in (u, v))
        first = self.holds(event, Integer(low))
        if self.holds(event, Integer(high)) is first:  # a gauge of 0 shows a wrong sign
            low, high = max(low - 1, 1), high + 1
            first = self.holds(event, Integer(low))
        while high - low > 1:
            middle = math.isqrt(low * high) if 0 < 4 * low < high else (low + high) // 2
            if self.holds(event, Integer(middle)) is first:
                low = middle
            else:
                high = middle
        if self.holds(event, Integer(high)) is first:
            raise Unreachable(f"the threshold of {event.target} was not found near {high}")
        up_to = self.step == "ceiling"  # m stands for (m - 1, m], else for [m, m + 1)
        at = Integer(low if up_to else high)
        beside = max(at, S.One) * Rational(1, 10**10)
        pair = (at, at + beside) if up_to else (at - beside, at)
        outside, inside = pair[::-1] if first else pair
        return Edge(event, outside, inside, inside == at)

    def refined(self, edge: Edge) -> Edge:
        """The same threshold with twice the digits."""
        event, bits = edge.event, 8 * edge.digits + 20
        with precision(bits):
            ends = sorted((edge.outside, edge.inside))
            low, high = (self.gauged(event, u) for u in map(self.chart.of, ends))
        return self.sharp(event, low, high, 2 * edge.digits, edge.below)

    def _rising(self, event: Event) -> bool:
        """Whether the event holds for large parameters."""
        assert self.order is not None
        return self.order * event.quantity.grows < 0

    def _gauge(self, event: Event, u: arb) -> arb | None:
        check_time()
        try:
            value = event.quantity.gauge(self.bias(self.chart.at(u)), event.limit)
        except Diverges:
            return arb.pos_inf()
        except (Unreachable, Undecided, Undefined, ZeroDivisionError, OverflowError, InputError):
            return None
        return None if value.is_nan() else value.mid()

    def gauged(self, event: Event, u: arb) -> Coordinate:
        """A coordinate with the gauge there."""
        value = self._gauge(event, u)
        if value is None:
            raise Unreachable(
                f"{event.quantity.words()} is not known at {float(self.chart.at(u)):.6g}"
            )
        return u, value

    def _first(self, event: Event) -> tuple[arb, arb]:
        for u in (0, -1, 1, -3, 3, -8, 8, -20, 20):
            value = self._gauge(event, arb(u))
            if value is not None:
                return arb(u), value
        raise Unreachable(f"{event.quantity.words()} is known at no {self.family.parameter} tried")

    def _bracketed(self, event: Event, u: arb, value: arb) -> tuple[Coordinate, Coordinate | None]:
        """Two coordinates between which the gauge changes its sign; only the farthest if none."""
        way = 1 if (value < 0) != self._rising(event) else -1
        step, least, most = 1, *self.chart.reach
        while least < u < most:
            beyond = (u + way * step).min(arb(most)).max(arb(least))
            other = self._gauge(event, beyond)
            for _ in range(6):
                if other is not None:
                    break
                beyond = ((u + beyond) / 2).mid()
                other = self._gauge(event, beyond)
            if other is None:
                raise Unreachable(
                    f"{event.quantity.words()} is not known beyond {self.family.parameter} = "
                    f"{float(self.chart.at(u)):.6g}"
                )
            if bool(other < 0) != bool(value < 0):
                return (u, value), (beyond, other)
            u, value, step = beyond, other, 2 * step
        return (u, value), None

    def sharp(
        self, event: Event, low: Coordinate, high: Coordinate, digits: int, rising: bool
    ) -> Edge:
        """A threshold between decimals of so many digits, beyond which the event is as wanted, or,
        if not `rising`, before which; from two coordinates with a gauge of either sign."""
        with precision(max(BITS[0], 4 * digits + 20)):
            tolerance = arb(10) ** -(digits + 3)
            guess = self.chart.at(_root(lambda u: self._gauge(event, u), low, high, tolerance))
        down, up = decimals_around(guess, self.chart.scale(guess), digits)
        unit = up - down
        for widen in range(MAX_WIDER):
            (down, first), (up, second) = (self._decided(event, a, unit) for a in (down, up))
            if first is not second:
                outside, inside = (down, up) if rising else (up, down)
                contained = event.quantity.closed and not event.strict
                edge = Edge(event, outside, inside, contained == event.wanted, digits)
                return self._narrowed(edge, unit) if widen else edge
            if first is rising:
                down, up = down - unit * 8**widen, down
            else:
                down, up = up, up + unit * 8**widen
        raise Unreachable(f"the threshold of {event.target} was not found near {float(guess):.6g}")

    def _decided(self, event: Event, a: Rational, unit: Rational) -> tuple[Rational, bool]:
        """A parameter at which the event is decided, and how: a, or one just beside it."""
        for aside in (Rational(1, 3), Rational(-1, 7)):
            try:
                return a, self.holds(event, a)
            except Unreachable:
                a += aside * unit
        return a, self.holds(event, a)

    def _narrowed(self, edge: Edge, unit: Rational) -> Edge:
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
        upper = self._rising(event) != within
        limit, k = self._limit(upper), int(event.limit) if event.quantity.integer else FROZEN
        if limit is None and not within and k < FROZEN:
            # the first k + 1 terms do not move: what they hold beyond k is there at every parameter
            p = self.family.formula
            fixed = (p.subs(n, j) - p.subs(n, 0) for j in range(1, k + 1))
            if not any(e.has(self.family.parameter) for e in fixed):
                row = (self.bias(self.chart.at(arb(0))), n <= k)
                limit = sympy.Piecewise(row, (S.NegativeInfinity, True))
        try:
            return limit is not None and within == event.quantity.within(
                limit, event.limit, event.strict
            )
        except (Unreachable, Undecided, InputError, Undefined, ArithmeticError):
            return False

    def reached(self, quantity: Quantity) -> str:
        """The range of a quantity over the line, in words."""
        values = []
        for upper in (False, True):
            bias = self._limit(upper)
            try:
                if bias is None:
                    bias = self.bias(self.chart.at(arb(self.chart.reach[upper])))
                found = quantity.answer(bias).span()
            except (Unreachable, Undecided, InputError, Undefined, ArithmeticError):
                found = None
            values.append(None if found is None else found[0])
        return _range_text(quantity, values)

    def region(
        self,
        edges: Sequence[Edge | None],
        inner: Sequence[Rational],
        events: Sequence[Event],
    ) -> Region:
        """The interval between two edges, or up to the ends of the line."""
        ends = [None if e is None else (e.outside, x) for e, x in zip(edges, inner, strict=True)]
        closed = [e.contained if e else c for e, c in zip(edges, self.closed, strict=True)]
        for k, end in enumerate(self.chart.ends):
            if ends[k] is None and not self.outer[k]:
                assert end is not None, "convergence ends at a finite parameter"
                ends[k], closed[k] = self._boundary(end, k == 0), False
        value = self._simplest(ends, closed, events)
        return Region(ends[0], ends[1], (closed[0], closed[1]), value)

    def _boundary(self, end: fmpq, lower: bool) -> tuple[Rational, Rational]:
        """Rationals on both sides of the end of convergence, or at it."""
        at = Rational(int(end.p), int(end.q))
        exact = at == (self.low if lower else self.high)
        down, up = decimals_around(at, self.chart.scale(at), DIGITS)
        if lower:
            return (at if exact else down), at + (up - down)
        return (at if exact else up), at - (up - down)

    def _simplest(
        self,
        ends: Sequence[tuple[Rational, Rational] | None],
        closed: Sequence[bool],
        events: Sequence[Event],
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


def _root(g: Callable[[arb], arb | None], low: Coordinate, high: Coordinate, tolerance: arb) -> arb:
    """A guess of where a monotone function changes its sign, by false position (Anderson and
    Bjorck) with halving where that stalls."""
    (a, fa), (b, fb) = low, high
    last = None
    for step in range(MAX_STEPS):
        if abs(b - a) < tolerance * (1 + abs(a)):
            break
        straight = fa.is_finite() and fb.is_finite() and step % 6 != 5
        x = (b - fb * (b - a) / (fb - fa)) if straight else (a + b) / 2
        x = x.mid()
        fx = g(x)
        if fx is None:
            raise Unreachable("a quantity is not known between two parameters where it is")
        if last is not None and abs(x - last) < tolerance * (1 + abs(x)):
            return x
        last = x
        if bool(fx < 0) != bool(fb < 0):
            a, fa = b, fb
        elif fb.is_finite() and fa.is_finite():
            scale = 1 - fx / fb
            fa = (fa * (scale if scale > 0 else arb(0.5))).mid()
        b, fb = x, fx
    return ((a + b) / 2).mid()


def _range_text(quantity: Quantity, values: Sequence[Any]) -> str:
    known = sorted(v for v in values if v is not None)
    said = [decimal(v, 4) if not quantity.integer else _count(v) for v in known]
    if len(said) < 2:
        return f"its {quantity.words()} is not known near the ends"
    if said[0] == said[1]:
        return f"its {quantity.words()} is {said[0]} throughout"
    return f"its {quantity.words()} is from {said[0]} to {said[1]}"


def _count(value: float) -> str:
    return "infinity" if value == math.inf else f"{value:.3g}" if value > 1e15 else str(int(value))
