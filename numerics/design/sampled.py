"""Parameters that meet targets where no order of the tails is proved: some, perhaps not all."""

from __future__ import annotations

import itertools
import math
import operator
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from flint import arb
from sympy import Rational

from farfield.numerics.design.rationals import simplest
from farfield.numerics.design.region import DIGITS, Event, ParameterLine, Region
from farfield.numerics.design.targets import Target
from farfield.theory.algebra.budget import budget, check_time, until
from farfield.theory.algebra.outcomes import OutOfTime, Unreachable
from farfield.theory.answers.answer import InputError
from farfield.theory.answers.wording import listed

PLACES = (-16, -12, -10, -8, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
"""Coordinates that are looked at: the parameter's distance from an end is 2 to their power."""
HALVINGS, NARROW = 40, 2.0**-36
SHARE = 1 / 8
EDGE_SHARE = 1 / 3


def sampled(line: ParameterLine, targets: Sequence[Target]) -> tuple[Region, str]:
    """An interval around a parameter that meets all targets: its ends were decided, the parameters
    between them were not. With it, where it was not decided, in words.

    Raises:
        Unreachable: none was found.
    """
    look = _Look(line, [Event(t, *event) for t in targets for event in t.events()])
    places = sorted(map(float, PLACES), key=abs)
    good = _first_met(look, places)
    if good is None:
        good = _summit(look)
    if good is None:
        raise Unreachable(
            f"no {line.family.parameter} that meets it was found among the {len(look.known)} tried"
            + look.open_words(", ")
        )
    ends: list[tuple[Rational, Rational] | None] = []
    for way in (-1, 1):
        seen = {*places, *look.known}
        beyond = sorted((u for u in seen if (u - good) * way > 0), key=lambda u: abs(u - good))
        near = next(filter(look.misses, beyond), None)
        ends.append(None if near is None else _edge(look, near, good))
    low, high = (None if end is None else end[1] for end in ends)
    chosen = line.chart.at(arb(good))
    if low is not None and high is not None:
        short = simplest(low, high, True, True)
        if short is not None and all(look.decided(short)):
            chosen = short
    found = Region(ends[0], ends[1], (low is not None, high is not None), chosen)
    return found, look.open_words()


def _first_met(look: _Look, places: Sequence[float]) -> float | None:
    """A coordinate that meets all: one of the places, or between two of them that were decided; the
    nearest places come first, as far ones may take long."""
    tried: set[tuple[float, float]] = set()
    for u in places:
        if look.met(u):
            return u
        known = sorted(x for x in look.known if x in places and None not in look.at(x))
        for pair in itertools.pairwise(known):
            if pair not in tried:
                tried.add(pair)
                if (good := _between(look, *pair)) is not None:
                    return good
    return None


@dataclass
class _Look:
    """Which events hold at parameters of a line: True, False, or None where it is not decided.

    One parameter takes `SHARE` of what is left of the time at most, so that none takes all.
    """

    line: ParameterLine
    events: Sequence[Event]
    known: dict[float, tuple[bool | None, ...]] = field(default_factory=dict)

    def at(self, u: float) -> tuple[bool | None, ...]:
        """Of the parameter of a coordinate."""
        if u not in self.known:
            self.known[u] = self.decided(self.line.chart.at(arb(u)))
        return self.known[u]

    def decided(self, a: Rational) -> tuple[bool | None, ...]:
        """Of a parameter."""
        check_time()
        now = time.monotonic()
        with until(now + SHARE * (budget().deadline - now)):
            found = tuple(self._holds(event, a) for event in self.events)
        check_time()
        return found

    def _holds(self, event: Event, a: Rational) -> bool | None:
        try:
            return self.line.holds(event, a)
        except (Unreachable, InputError):
            return None

    def crossing(self, low: float, high: float) -> float:
        """Where the events that differ at two coordinates are guessed to change, on average."""
        guesses = []
        for k, event in enumerate(self.events):
            if self.at(low)[k] != self.at(high)[k]:
                try:
                    one, other = (float(self.line.gauged(event, arb(u))[1]) for u in (low, high))
                except (Unreachable, InputError):
                    check_time()
                    continue
                if one * other < 0 and math.isfinite(one - other):
                    guesses.append(low + (high - low) * min(max(one / (one - other), 0.01), 0.99))
        return sum(guesses) / len(guesses) if guesses else (low + high) / 2

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


def _between(look: _Look, low: float, high: float) -> float | None:
    """A coordinate that meets all, between two of which one or the other meets each: by secants of
    what crosses there, and halves."""
    at_low, at_high = look.at(low), look.at(high)
    for step in range(HALVINGS):
        if not all(map(operator.or_, at_low, at_high)):
            return None
        middle = (low + high) / 2 if step % 3 == 2 else look.crossing(low, high)
        here = look.at(middle)
        if None in here:
            return None
        if all(here):
            return middle
        if all(map(operator.or_, at_low, here)):
            high, at_high = middle, here
        else:
            low, at_low = middle, here
    return None


def _summit(look: _Look) -> float | None:
    """A coordinate that meets all, by thirds towards the least violation between the places that
    were tried, where the violation has one valley there."""

    def violation(u: float) -> float:
        worst = -math.inf
        for event in look.events:
            try:
                gauge = float(look.line.gauged(event, arb(u))[1].mid())
            except (Unreachable, InputError):
                return math.inf
            worst = max(worst, gauge if event.wanted else -gauge)
        return worst

    known = sorted(look.known)
    best = min(range(len(known)), key=lambda k: violation(known[k]))
    low, high = known[max(best - 1, 0)], known[min(best + 1, len(known) - 1)]
    for _ in range(HALVINGS):
        thirds = (2 * low + high) / 3, (low + 2 * high) / 3
        if (good := next(filter(look.met, thirds), None)) is not None:
            return good
        if violation(thirds[0]) < violation(thirds[1]):
            high = thirds[1]
        else:
            low = thirds[0]
    return None


def _edge(look: _Look, bad: float, good: float) -> tuple[Rational, Rational]:
    """Two parameters of which the second meets all and the first does not: neighbours, where all
    between them is decided in a share of the time that is left."""
    now = time.monotonic()
    pair = [bad, good]
    try:
        with until(now + EDGE_SHARE * (budget().deadline - now)):
            return _sharp_edge(look, pair)
    except OutOfTime:
        check_time()
    return look.line.chart.at(arb(pair[0])), look.line.chart.at(arb(pair[1]))


def _sharp_edge(look: _Look, pair: list[float]) -> tuple[Rational, Rational]:
    """The same without a time; the pair holds the nearest that were decided."""
    line, (bad, good) = look.line, pair
    failing = [e for e, holds in zip(look.events, look.at(bad), strict=True) if holds is False]
    places = sorted((arb(bad), arb(good)), key=float)
    try:
        low, high = (line.gauged(failing[0], u) for u in places)
        edge = line.sharp(failing[0], low, high, DIGITS, bad < good)
        if all(look.decided(edge.inside)):
            return edge.outside, edge.inside
    except Unreachable:
        check_time()
    while abs(pair[1] - pair[0]) > NARROW:
        middle = (pair[0] + pair[1]) / 2
        if look.met(middle):
            pair[1] = middle
        elif look.misses(middle):
            pair[0] = middle
        else:
            break
    return line.chart.at(arb(pair[0])), line.chart.at(arb(pair[1]))
