"""Parameters that meet targets where no order of the tails is proved: some, perhaps not all.

The *violation* of a parameter is the largest gauge of what it should not be: negative where all
targets are met. The scan goes from place to place, towards the least violation seen, and looks
between two neighbours of which one or the other meets each target. Several intervals may meet the
targets; the scan returns the first that it finds.
"""

from __future__ import annotations

import math
import operator
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from flint import arb
from sympy import Rational

from farfield.numerics.design.rationals import simplest
from farfield.numerics.design.region import DIGITS, Edge, Event, ParameterLine, Region
from farfield.numerics.design.targets import BITS, Target
from farfield.theory.algebra.budget import budget, check_time, until
from farfield.theory.algebra.outcomes import OutOfTime, Unreachable
from farfield.theory.answers.answer import InputError
from farfield.theory.answers.number import listed
from farfield.theory.functions.balls import precision

PLACES = (-16, -12, -10, -8, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
"""Coordinates that are looked at: the parameter's distance from an end is 2 to their power."""
HALVINGS, NARROW = 40, 2.0**-36
PLACE_SHARE, EDGE_SHARE = 1 / 8, 1 / 3
"""Of the time that is left, for one parameter and for one end."""


def sampled(line: ParameterLine, targets: Sequence[Target]) -> tuple[Region, str]:
    """An interval around a parameter that meets all targets, and where nothing was decided, in
    words. Its ends were decided; the parameters between them were not.

    Raises:
        Unreachable: none was found.
    """
    look = _Look(line, [Event(t, *event) for t in targets for event in t.events()])
    with precision(BITS[0]):
        good = _found(look)
    if good is None:
        raise Unreachable(
            f"no {line.family.parameter} that meets it was found among the {len(look.known)} tried"
            + look.open_words(", ")
        )
    low, high = _end(look, good, -1), _end(look, good, 1)
    chosen = line.chart.at(arb(good))
    if low is not None and high is not None:
        short = simplest(low[1], high[1], True, True)
        if short is not None and all(look.decided(short)):
            chosen = short
    closed = [end is not None and (line.step is None or end[1].is_Integer) for end in (low, high)]
    return Region(low, high, (closed[0], closed[1]), chosen), look.open_words()


@dataclass
class _Look:
    """Which events hold at parameters of a line: True, False, or None where it is not decided."""

    line: ParameterLine
    events: Sequence[Event]
    known: dict[float, tuple[bool | None, ...]] = field(default_factory=dict)
    violations: dict[float, float] = field(default_factory=dict)

    def at(self, u: float) -> tuple[bool | None, ...]:
        """Of the parameter of a coordinate."""
        if u not in self.known:
            self.known[u] = self.decided(self.line.chart.at(arb(u)))
        return self.known[u]

    def decided(self, a: Rational) -> tuple[bool | None, ...]:
        """Of a parameter, within a share of the time that is left."""
        with _share():
            return tuple(self._holds(event, a) for event in self.events)

    def _holds(self, event: Event, a: Rational) -> bool | None:
        try:
            return self.line.holds(event, a)
        except (Unreachable, InputError):
            return None

    def gauges(self, u: float) -> list[float]:
        """A gauge of each event, negative where it is as wanted; infinite where it is not known."""
        with _share():
            return [self._gauge(event, u) * (1 if event.wanted else -1) for event in self.events]

    def _gauge(self, event: Event, u: float) -> float:
        try:
            return float(self.line.gauged(event, arb(u))[1])
        except (Unreachable, InputError):
            return math.inf if event.wanted else -math.inf

    def violation(self, u: float) -> float:
        """The largest gauge."""
        if u not in self.violations:
            self.violations[u] = max(self.gauges(u))
        return self.violations[u]

    def met(self, u: float) -> bool:
        """Whether all events are as wanted."""
        return all(self.at(u))

    def misses(self, u: float) -> bool:
        """Whether one of them is not, for certain."""
        return False in self.at(u)

    def open_words(self, before: str = "") -> str:
        """Where it was not decided; nothing if it was everywhere."""
        missing = [u for u in sorted(self.known) if not (self.met(u) or self.misses(u))]
        if not missing:
            return ""
        a = self.line.family.parameter
        said = listed([f"{float(self.line.chart.at(arb(u))):.6g}" for u in missing], 6)
        return f"{before}not decided at {a} = {said}"


@contextmanager
def _share() -> Iterator[None]:
    """A share of the time that is left."""
    check_time()
    now = time.monotonic()
    with until(now + PLACE_SHARE * (budget().deadline - now)):
        yield
    check_time()


def _found(look: _Look) -> float | None:
    """A coordinate that meets all targets: a place, a point between two, or the least violation."""
    left = set(map(float, PLACES))
    tried: list[float] = []
    while left:
        best = min(tried, key=look.violation, default=0.0)
        u = min(left, key=lambda x: (abs(x - best), abs(x)))
        left.remove(u)
        if look.met(u):
            return u
        tried = sorted([*tried, u])
        k = tried.index(u)
        for pair in (tried[max(k - 1, 0) : k + 1], tried[k : k + 2]):
            if len(pair) == 2 and (good := _between(look, *pair)) is not None:
                return good
    best = min(range(len(tried)), key=lambda k: look.violation(tried[k]))
    return _summit(look, tried[max(best - 1, 0)], tried[min(best + 1, len(tried) - 1)])


def _between(look: _Look, low: float, high: float) -> float | None:
    """A coordinate that meets all, between two of which one or the other meets each."""
    for step in range(HALVINGS):
        ends = look.at(low), look.at(high)
        if None in (*ends[0], *ends[1]) or not all(map(operator.or_, *ends)):
            return None
        middle = (low + high) / 2 if step % 5 == 4 else _crossing(look, low, high)
        here = look.at(middle)
        if None in here:
            return None
        if all(here):
            return middle
        if all(map(operator.or_, ends[0], here)):
            high = middle
        else:
            low = middle
    return None


def _crossing(look: _Look, low: float, high: float) -> float:
    """Where the gauges change their signs on a straight line, on average."""
    pairs = zip(look.gauges(low), look.gauges(high), strict=True)
    parts = [one / (one - two) for one, two in pairs if one * two < 0 and math.isfinite(one - two)]
    part = sum(parts) / len(parts) if parts else 1 / 2
    return low + (high - low) * min(max(part, 0.01), 0.99)


def _summit(look: _Look, low: float, high: float) -> float | None:
    """A coordinate that meets all, by thirds towards the least violation of one valley."""
    for _ in range(HALVINGS):
        thirds = (2 * low + high) / 3, (low + 2 * high) / 3
        if (good := next(filter(look.met, thirds), None)) is not None:
            return good
        if look.violation(thirds[0]) < look.violation(thirds[1]):
            high = thirds[1]
        else:
            low = thirds[0]
    return None


def _end(look: _Look, good: float, way: int) -> tuple[Rational, Rational] | None:
    """A parameter that misses the targets and the next that meets them, on one side of a good one;
    None where no parameter tried misses them for certain."""
    beyond = {u for u in {*map(float, PLACES), *look.known} if (u - good) * way > 0}
    bad = next(filter(look.misses, sorted(beyond, key=lambda u: abs(u - good))), None)
    if bad is None:
        return None
    now, chart, pair = time.monotonic(), look.line.chart, [bad, good]
    try:
        with until(now + EDGE_SHARE * (budget().deadline - now)):
            edge = _sharp(look, bad, good)
            if all(look.decided(edge.inside)):
                return edge.outside, edge.inside
            _halved(look, pair)
    except OutOfTime:
        check_time()
    except Unreachable:
        check_time()
        _halved(look, pair)
    return chart.at(arb(pair[0])), chart.at(arb(pair[1]))


def _sharp(look: _Look, bad: float, good: float) -> Edge:
    """The threshold of the first event that fails."""
    failing = next(e for e, holds in zip(look.events, look.at(bad), strict=True) if holds is False)
    with precision(BITS[0]):
        low, high = (look.line.gauged(failing, arb(u)) for u in sorted((bad, good)))
    return look.line.sharp(failing, low, high, DIGITS, bad < good)


def _halved(look: _Look, pair: list[float]) -> None:
    """Bring a coordinate that misses the targets and one that meets them together."""
    while abs(pair[1] - pair[0]) > NARROW:
        middle = (pair[0] + pair[1]) / 2
        if look.met(middle):
            pair[1] = middle
        elif look.misses(middle):
            pair[0] = middle
        else:
            return
