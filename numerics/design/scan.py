"""Parameters that meet targets where no order of the tails is proved: some, perhaps not all.

The *violation* of a parameter is the largest gauge of what it should not be: negative where all
targets are met. The scan goes from place to place, towards the least violation seen. Between two
neighbours it looks beside each threshold that lies there, at last for the least violation. Several
intervals may meet the targets; the scan returns the first that it finds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from sympy import Rational

from farfield.numerics.design.line import FeasibleInterval, Pair, ParameterLine
from farfield.numerics.design.rationals import simplest
from farfield.numerics.design.targets import Event, Target
from farfield.theory.algebra.budget import budget, check_time, until
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.answers.answer import InputError
from farfield.theory.answers.number import listed

PLACES = (-16, -12, -10, -8, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
"""Coordinates that are looked at: the parameter's distance from an end is 2 to their power."""
THIRDS = 40
PLACE_SHARE, EDGE_SHARE = 1 / 8, 1 / 3
"""Of the time that is left, for one parameter and for one threshold."""


def scanned(line: ParameterLine, targets: Sequence[Target]) -> tuple[FeasibleInterval, str]:
    """An interval around a parameter that meets all targets, and where nothing was decided, in
    words. Its ends were decided; the parameters between them were not.

    Raises:
        Unreachable: none was found.
    """
    scan = _Scan(line, [event for t in targets for event in t.events()])
    good = scan.good()
    if good is None:
        raise Unreachable(
            f"no {line.family.parameter} that meets it was found among the {len(scan.known)} tried"
            + scan.open_words(", ")
        )
    low, high = scan.end(good, -1), scan.end(good, 1)
    if low is not None and high is not None:
        short = simplest(low[1], high[1], True, True)
        if short is not None and all(scan.decided(short)):
            good = short
    closed = [end is not None and (line.step is None or end[1].is_Integer) for end in (low, high)]
    return FeasibleInterval(low, high, (closed[0], closed[1]), good), scan.open_words()


@dataclass
class _Scan:
    """Which events hold at parameters of a line: True, False, or None where it is not decided."""

    line: ParameterLine
    events: Sequence[Event]
    known: dict[float, tuple[bool | None, ...]] = field(default_factory=dict)

    def at(self, u: float) -> tuple[bool | None, ...]:
        """Of the parameter of a coordinate."""
        if u not in self.known:
            self.known[u] = self.decided(self.line.at(u))
        return self.known[u]

    def decided(self, a: Rational) -> tuple[bool | None, ...]:
        """Of a parameter, within a share of the time that is left."""
        with _share(PLACE_SHARE):
            return tuple(self._holds(event, a) for event in self.events)

    def _holds(self, event: Event, a: Rational) -> bool | None:
        try:
            return self.line.holds(event, a)
        except (Unreachable, InputError):
            return None

    def violation(self, u: float) -> float:
        """The largest gauge, signed so that it is negative where its event is as wanted."""
        try:
            with _share(PLACE_SHARE):
                gauges = ((self.line.gauge(e, u), e.wanted) for e in self.events)
                return max(g if wanted else -g for g, wanted in gauges)
        except Unreachable:
            return math.inf

    def open_words(self, before: str = "") -> str:
        """Where it was not decided; nothing if it was everywhere."""
        open_ = (u for u, held in sorted(self.known.items()) if None in held and False not in held)
        missing = [self.line.at(u) for u in open_]
        if not missing:
            return ""
        said = listed([f"{float(a):.6g}" for a in missing], 6)
        return f"{before}not decided at {self.line.family.parameter} = {said}"

    def good(self) -> Rational | None:
        """A parameter that meets all targets: a place, one beside a threshold between two, or one
        near the least violation."""
        left, violations = set(map(float, PLACES)), dict[float, float]()
        while left:
            best = min(violations, key=lambda u: (violations[u], abs(u)), default=0.0)
            u = min(left, key=lambda x: (abs(x - best), abs(x)))
            left.remove(u)
            if all(self.at(u)):
                return self.line.at(u)
            violations[u] = self.violation(u)
            below = max((x for x in violations if x < u), default=None)
            above = min((x for x in violations if x > u), default=None)
            for v in (below, above):
                if v is not None and (found := self._beside(u, v)) is not None:
                    return found
        tried = sorted(violations)
        k = tried.index(min(tried, key=lambda u: violations[u]))
        return self._summit(tried[max(k - 1, 0)], tried[min(k + 1, len(tried) - 1)])

    def _beside(self, u: float, v: float) -> Rational | None:
        """A parameter beside a threshold between two coordinates.

        Each target must hold at one of the two.
        """
        states = list(zip(self.events, self.at(u), self.at(v), strict=True))
        if all(True in held and None not in held for _, *held in states):
            for event, *held in states:
                found = self._threshold(event, u, v) if False in held else None
                if found is not None and all(self.decided(found[1])):
                    return found[1]
        return None

    def _threshold(self, event: Event, u: float, v: float) -> Pair | None:
        """A parameter at which an event fails and one at which it holds, between two coordinates;
        None where they were not found in time."""
        try:
            with _share(EDGE_SHARE):
                edge = self.line.sharp(event, u, v)
        except Unreachable:
            check_time()
            return None
        return edge.outside, edge.inside

    def _summit(self, low: float, high: float) -> Rational | None:
        """A parameter that meets all, by thirds towards the least violation of one valley."""
        for _ in range(THIRDS):
            thirds = (2 * low + high) / 3, (low + 2 * high) / 3
            heights = [self.violation(u) for u in thirds]
            for u, height in zip(thirds, heights, strict=True):
                if height < 0 and all(self.at(u)):
                    return self.line.at(u)
            if heights[0] < heights[1]:
                high = thirds[1]
            else:
                low = thirds[0]
        return None

    def end(self, good: Rational, way: int) -> Pair | None:
        """A parameter that misses the targets and the next that meets them, on one side of a good
        one; None where no parameter tried misses them for certain."""
        places = sorted({*map(float, PLACES), *self.known}, key=lambda u: way * u)
        beyond = [u for u in places if (self.line.at(u) - good) * way > 0]
        bad = next((u for u in beyond if False in self.at(u)), None)
        if bad is None:
            return None
        pair = self.line.at(bad), good
        for k, event in enumerate(self.events):
            holding = [u for u in self.known if (bad - u) * way > 0 and self.known[u][k]]
            if self.known[bad][k] is not False or not holding:
                continue
            found = self._threshold(event, max(holding, key=lambda u: way * u), bad)
            if found is None or not 0 <= (found[1] - good) * way < (pair[0] - good) * way:
                continue
            if all(self.decided(found[1])):
                pair = found
        return pair


@contextmanager
def _share(part: float) -> Iterator[None]:
    """A share of the time that is left."""
    check_time()
    now = time.monotonic()
    with until(now + part * (budget().deadline - now)):
        yield
    check_time()
