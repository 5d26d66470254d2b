"""The parameters of a family that meet targets, along the line of one parameter.

Where the family orders its tails, they are an exact interval; elsewhere points are certified. Each
end is a threshold between two rationals at which the targets themselves were decided, one
outside and one inside. A root of the gauges only says where to look.

Where a monotone likelihood ratio is proved (`farfield.numerics.design.order`), the parameters with
Q <= k are a half-line, and targets are met on an interval. The sums depend continuously on the
parameter (dominated convergence), so the strict T_k < eps B holds on an open half-line, a bound
with <= on a closed one: that tells which end belongs to the interval. Where no threshold is found,
the bound is decided at the last parameter tried, and so at every one before it.

Elsewhere a scan goes from place to place, towards the least *violation*: the largest gauge of what
should not be, negative where all targets are met. Several intervals may meet the targets; the scan
returns the first that it finds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import sympy
from scipy.optimize import brentq, minimize_scalar
from sympy import Expr, Rational, S

from farfield.numerics.design.designs import Pair
from farfield.numerics.design.family import Family
from farfield.numerics.design.rationals import decimals_around, simplest
from farfield.numerics.design.targets import BITS, Quantity, Target
from farfield.numerics.questions import Diverging
from farfield.numerics.search import least
from farfield.theory.algebra.door import check_time, share_of_time
from farfield.theory.algebra.exceptions import Undecided, Unreachable
from farfield.theory.answers.answer import InputError
from farfield.theory.answers.notation import listed
from farfield.theory.answers.number import decimal
from farfield.theory.functions.balls import Undefined, precision

DIGITS = 11
"""Of the decimals around a threshold, unless more are needed to tell two thresholds apart."""
MORE_DIGITS = 5
"""Of a threshold, beyond those of the limit."""
WIDEST = 8**11
"""Decimals on each side of a root among which a threshold is sought."""
REACH, REACH_OF_EXPONENT = 64.0, 12.0
"""Parameters are sought up to 2^64, and down to 2^-64 from an end; exponents up to 2^12."""
STEEP = 64.0
PLACES = (-16.0, -12.0, -10.0, -8.0, *map(float, range(-6, 7)), 8.0, 10.0, 12.0, 16.0)
"""Coordinates that are looked at: the parameter's distance from an end is 2 to their power."""
WALK = (-15.0, -7.0, -3.0, -1.0, 0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 63.0)
"""Those that are looked at in turn where the tails are ordered."""
PLACE_SHARE, EDGE_SHARE = 1 / 8, 1 / 3
"""Of the time that is left, for one parameter and for one threshold of a scan."""
UNKNOWN = (Unreachable, Undecided, InputError, Undefined, ArithmeticError)
"""Raised where a quantity is not known."""


@dataclass
class ParameterLine:
    """An open interval of a parameter.

    A coordinate u of the interval keeps parameters near an end far from each other: the logarithm
    to base 2 of the distance from a finite end, or of the quotient of the distances from two; on
    the whole line 2^u - 2^-u = 2a.

    Args:
        family: the biases.
        part: the interval, a part of the family's domain.
        order: 1 if tails grow with the parameter, -1 if they shrink, 0 if nothing moves; None where
            nothing is proved.
        step: `ceiling` or `floor` if the bias depends on this integer of the parameter alone.
    """

    family: Family
    part: sympy.Interval
    order: int | None = None
    step: str | None = None

    @cached_property
    def ends(self) -> tuple[Rational | None, Rational | None]:
        """Rationals at the ends, or just inside; None at infinity."""
        return _inside(self.part.start, 1), _inside(self.part.end, -1)

    @property
    def at_domain(self) -> list[bool]:
        """Whether each end is one of the family's domain, not of its convergence."""
        whole = self.family.interval
        return [self.part.start == whole.inf, self.part.end == whole.sup]

    @property
    def closed(self) -> list[bool]:
        """Whether each end is one of the domain and belongs to it."""
        ends = (self.part.start, self.part.end)
        return [whole and end in self.part for whole, end in zip(self.at_domain, ends, strict=True)]

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

    def around(self, a: Rational, digits: int = DIGITS) -> Pair:
        """Decimals around a parameter, near to it beside its size and its distance from an end."""
        sizes = (abs(x) for x in (a, *(a - e for e in self.ends if e is not None)) if x)
        return decimals_around(a, min(sizes, default=S.One), digits)

    def bias(self, a: Rational) -> Expr:
        """The bias at a parameter; the same expression for all that share an integer."""
        return self.family.at(self.rounded(a))

    def rounded(self, a: Rational) -> Rational:
        """The integer of a parameter on which alone the bias depends, or itself."""
        return a if self.step is None else getattr(sympy, self.step)(a)

    def holds(self, bound: Target, a: Rational) -> bool:
        """Whether a bound is as wanted at a parameter, proved."""
        check_time()
        if bound.trivial:
            return not bound.wanted
        return bound.quantity.within(self.bias(a), bound.limit, bound.strict) == bound.wanted

    def violation(self, bound: Target, u: float) -> float:
        """Negative where a bound is as wanted, as floats tell, within STEEP; nan where the quantity
        is not known."""
        if bound.trivial:
            return STEEP if bound.wanted else -STEEP
        try:
            check_time()
            with precision(BITS[0]):
                gauge = float(bound.quantity.measured(self.bias(self.at(u)), bound.limit))
        except Diverging:
            gauge = STEEP
        except UNKNOWN:
            return math.nan
        return float(np.clip(gauge if bound.wanted else -gauge, -STEEP, STEEP))

    def worst(self, bounds: Sequence[Target], u: float) -> float:
        """The largest violation of some bounds."""
        return float(np.max([self.violation(bound, u) for bound in bounds]))

    def sharp(self, bounds: Sequence[Target], u: float, v: float) -> Pair:
        """A parameter that misses bounds and a neighbouring decimal that meets them, from
        coordinates with a violation of either sign.

        Raises:
            Unreachable: none was found.
        """
        try:
            root = brentq(partial(self.worst, bounds), u, v, xtol=1e-14, maxiter=200)
        except ValueError:
            check_time()
            raise Unreachable(f"the threshold of {bounds[0]} was not found") from None
        digits = max(DIGITS, *(MORE_DIGITS + len(str(int(b.limit))) for b in bounds))
        down, up = self.around(self.at(float(root)), digits)
        upwards, tried = self.worst(bounds, max(u, v)) < 0, dict[int, Rational]()

        def above(k: int) -> bool:
            a = down + (k - WIDEST) * (up - down)
            try:
                held = all(self.holds(bound, a) for bound in bounds)
            except Unreachable:
                a += (up - down) / 3  # just beside a tie
                held = all(self.holds(bound, a) for bound in bounds)
            tried[k] = a
            return held is upwards

        k = least(above, 0, 2 * WIDEST, (WIDEST, WIDEST + 1))
        if not {k - 1, k} <= tried.keys():
            raise Unreachable(f"the threshold of {bounds[0]} is not near {float(down):.6g}")
        return (tried[k - 1], tried[k]) if upwards else (tried[k], tried[k - 1])

    # where the tails are ordered

    def upwards(self, bound: Target) -> bool:
        """Whether a bound comes to hold for large parameters."""
        return (self.order == -bound.quantity.grows) == bound.wanted

    def edge(self, bounds: Sequence[Target], upwards: bool) -> Pair | None:
        """The threshold beyond which bounds hold, for larger parameters or for smaller ones: one
        outside and one inside. None where they hold as far as parameters are tried.

        Raises:
            InputError: one holds at none of them; the message tells what is reached.
        """
        if not bounds:
            return None
        values = ((u, self.worst(bounds, u)) for u in sorted(PLACES, key=abs))
        u, value = next(((u, x) for u, x in values if x == x), (0.0, math.nan))
        way = 1 if (value < 0) is not upwards else -1
        for v in (w * way for w in WALK if w > u * way and self.order):
            inside = self.reach[0] <= v <= self.reach[1]
            other = self.worst(bounds, v) if inside else math.nan
            if (other < 0) is not (value < 0) and other == other:
                return self.sharp(bounds, u, v)
            u, value = (u, value) if math.isnan(other) else (v, other)
        for bound in bounds:
            if not self.holds(bound, self.at(u)):
                raise InputError(
                    f"{bound} is met by no {self.family.parameter} of {self.family.name} that was "
                    f"tried: {self.reached(bound.quantity)}"
                )
        return None

    def binding(self, bounds: Sequence[Target], edge: Pair) -> list[Target]:
        """The bounds that fail just outside an edge."""

        def fails(bound: Target) -> bool:
            try:
                return not self.holds(bound, edge[0])
            except Unreachable:
                return True

        return [bound for bound in bounds if len(bounds) == 1 or fails(bound)]

    def contains(self, bounds: Sequence[Target], edge: Pair) -> bool:
        """Whether the threshold itself meets the bounds."""
        if self.step is not None:  # an integer belongs to those below it, or above
            return (edge[1] < edge[0]) == (self.step == "ceiling")
        return all(
            (b.quantity.closed(b.quantity.options) and not b.strict) == b.wanted
            for b in self.binding(bounds, edge)
        )

    def convergent(self, k: int) -> Pair | None:
        """Around an end of the interval where the series ceases to converge; None at the domain's
        own end."""
        end = self.ends[k]
        if self.at_domain[k] or end is None:
            return None
        down, up = self.around(end)
        outside = end if end in (self.part.start, self.part.end) else (down, up)[k]
        return outside, end + (up - down) * (1 - 2 * k)

    def reached(self, quantity: Quantity) -> str:
        """The range of a quantity over the parameters that are tried, in words."""
        try:
            spans = [quantity.answer(self.bias(self.at(u))).span() for u in self.reach]
            (low, _), (_, high) = sorted(ends for ends in spans if ends is not None)
        except (*UNKNOWN, ValueError):
            return f"its {quantity.words()} is not known near the ends"
        shown = [_count(x) if quantity.integer else decimal(x, 4) for x in (low, high)]
        text = f"{shown[0]} throughout" if low == high else f"from {shown[0]} to {shown[1]}"
        return f"its {quantity.words()} is {text}"


Fields = tuple[tuple[Pair | None, Pair | None], tuple[bool, bool], Rational | None, str]
"""Both ends of an interval of parameters, each outside and inside, or None at the domain's own end;
whether each belongs to it; the simplest one inside; what is not proved."""


def scanned(line: ParameterLine, bounds: Sequence[Target]) -> Fields:
    """An interval around a parameter that meets all bounds. Its ends were decided; the parameters
    between them were not.

    Raises:
        Unreachable: none was found.
    """
    scan = _Scan(line, bounds, {})
    u, a = scan.good(), line.family.parameter
    if u is None:
        reason = f"no {a} that meets it was found among the {len(scan.seen)} tried"
        raise Unreachable(", ".join(filter(None, (reason, scan.undecided()))))
    good, low, high = line.at(u), scan.end(u, -1), scan.end(u, 1)
    if low is not None and high is not None:
        short = simplest(low[1], high[1], True, True)
        good = short if short is not None and scan.decided(short) else good
    closed = [end is not None and (line.step is None or end[1].is_Integer) for end in (low, high)]
    return (low, high), (closed[0], closed[1]), good, scan.undecided()


@dataclass(frozen=True)
class _Scan:
    """Whether all bounds hold at coordinates of a line: None where it is not decided."""

    line: ParameterLine
    bounds: Sequence[Target]
    seen: dict[float, bool | None]

    def decided(self, a: Rational) -> bool | None:
        """Of a parameter, within a share of the time that is left."""
        answers = list[bool | None]()
        with share_of_time(PLACE_SHARE):
            for bound in self.bounds:
                try:
                    answers.append(self.line.holds(bound, a))
                except (Unreachable, InputError):
                    answers.append(None)
        return False if False in answers else None if None in answers else True

    def at(self, u: float) -> bool | None:
        """Of the parameter of a coordinate."""
        if u not in self.seen:
            self.seen[u] = self.decided(self.line.at(u))
        return self.seen[u]

    def undecided(self) -> str:
        """Where it was not decided, in words; nothing if it was everywhere."""
        open_ = [f"{float(self.line.at(u)):.6g}" for u in sorted(self.seen) if self.seen[u] is None]
        return f"not decided at {self.line.family.parameter} = {listed(open_, 6)}" if open_ else ""

    def violations(self, u: float) -> list[float]:
        """Of each bound; above STEEP where it is not known."""
        with share_of_time(PLACE_SHARE):
            each = [self.line.violation(bound, u) for bound in self.bounds]
        return [2 * STEEP if math.isnan(x) else x for x in each]

    def good(self) -> float | None:
        """A coordinate that meets all bounds: a place, one where two bounds are equally near
        between two places, or one near the least violation."""
        left, gauges = set(PLACES), dict[float, list[float]]()
        while left:
            best = min(gauges, key=lambda u: (max(gauges[u]), abs(u)), default=0.0)
            u = min(left, key=lambda x: (abs(x - best), abs(x)))
            left.remove(u)
            if self.at(u):
                return u
            gauges[u] = self.violations(u)
            for v in _beside(u, gauges):
                i, j = (gauges[x].index(max(gauges[x])) for x in (u, v))
                place = self.balanced(self.bounds[i], self.bounds[j], u, v) if i != j else None
                if place is not None and self.at(place):
                    return place
        around = _beside(min(sorted(gauges), key=lambda u: max(gauges[u])), gauges)
        u = minimize_scalar(
            lambda u: max(self.violations(float(u))),
            bounds=(min(around), max(around)),
            method="bounded",
            options={"xatol": 1e-9, "maxiter": 60},
        ).x
        return float(u) if self.at(float(u)) else None

    def balanced(self, first: Target, second: Target, u: float, v: float) -> float | None:
        """Between two coordinates, each violating another bound most: where both violate alike."""

        def gap(x: float) -> float:
            return self.line.violation(first, x) - self.line.violation(second, x)

        with share_of_time(EDGE_SHARE), suppress(ValueError):
            return float(brentq(gap, u, v, xtol=1e-14, maxiter=200))
        return None

    def end(self, good: float, way: int) -> Pair | None:
        """A parameter that misses the bounds and the next that meets them, on one side of a good
        one; None where no place is known to miss them."""
        for u in sorted({*PLACES, *self.seen}, key=lambda u: u * way):
            if (u - good) * way <= 0 or self.at(u) is None:
                continue
            if self.at(u) is False:
                with share_of_time(EDGE_SHARE), suppress(Unreachable):
                    return self.line.sharp(self.bounds, u, good)
                return self.line.at(u), self.line.at(good)
            good = u
        return None


def _beside(u: float, places: Iterable[float]) -> list[float]:
    """The nearest places on both sides of one, itself where there is none."""
    return [
        max((x for x in places if x < u), default=u),
        min((x for x in places if x > u), default=u),
    ]


def _inside(end: Expr, way: int) -> Rational | None:
    """A rational at a finite end, or just inside an irrational one."""
    if not end.is_finite:
        return None
    return end if end.is_Rational else Rational(end.evalf(60)) + way * Rational(1, 10**40)


def _count(value: float) -> str:
    return "infinity" if value == math.inf else f"{value:.3g}" if value > 1e15 else str(int(value))
