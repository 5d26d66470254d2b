"""Parameters that meet targets where no order of the tails is proved: some, perhaps not all."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence

from flint import arb
from sympy import Rational

from farfield.numerics.design.rationals import simplest
from farfield.numerics.design.region import DIGITS, Event, Line, Region
from farfield.numerics.design.targets import Target
from farfield.theory.algebra.budget import check_time
from farfield.theory.algebra.outcomes import Unreachable
from farfield.theory.answers.answer import InputError

PLACES = (-16, -12, -10, -8, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
"""Coordinates that are looked at: the parameter's distance from an end is 2 to their power."""
HALVINGS, NARROW = 40, 2.0**-36


def sampled(line: Line, targets: Sequence[Target]) -> Region:
    """An interval around a parameter that meets all targets: its ends were decided, the parameters
    between them were not.

    Raises:
        Unreachable: none was found.
    """
    events = [Event(t, *event) for t in targets for event in t.events()]

    def met(u: float) -> tuple[bool, ...]:
        return tuple(_holds(line, event, line.at(arb(u))) for event in events)

    known = {float(u): met(u) for u in PLACES}
    good = min((u for u, each in known.items() if all(each)), key=abs, default=None)
    if good is None:
        good = next(
            filter(
                None.__ne__,
                (_between(met, known, *pair) for pair in itertools.pairwise(sorted(known))),
            ),
            None,
        )
    if good is None:
        raise Unreachable(f"no {line.family.parameter} that meets it was found among those tried")
    ends: list[tuple[Rational, Rational] | None] = []
    for way in (-1, 1):
        bad = [u for u, each in known.items() if (u - good) * way > 0 and not all(each)]
        near = min(bad, key=lambda u: abs(u - good), default=None)
        ends.append(None if near is None else _edge(line, events, met, near, good))
    low, high = (None if end is None else end[1] for end in ends)
    chosen = line.at(arb(good))
    if low is not None and high is not None:
        short = simplest(low, high, True, True)
        if short is not None and all(_holds(line, event, short) for event in events):
            chosen = short
    return Region(ends[0], ends[1], (low is not None, high is not None), chosen)


Met = Callable[[float], tuple[bool, ...]]


def _holds(line: Line, event: Event, a: Rational) -> bool:
    check_time()
    try:
        return line.holds(event, a)
    except (Unreachable, InputError):
        return False


def _between(
    met: Met, known: dict[float, tuple[bool, ...]], low: float, high: float
) -> float | None:
    """A coordinate that meets all, by halves between two of which one or the other meets each."""
    at_low, at_high = known[low], known[high]
    for _ in range(HALVINGS):
        if not all(map(operator.or_, at_low, at_high)):
            return None
        middle = (low + high) / 2
        here = known[middle] = met(middle)
        if all(here):
            return middle
        if all(map(operator.or_, at_low, here)):
            high, at_high = middle, here
        else:
            low, at_low = middle, here
    return None


def _edge(
    line: Line, events: Sequence[Event], met: Met, bad: float, good: float
) -> tuple[Rational, Rational]:
    """Neighbouring parameters of which the second meets all and the first does not."""
    failing = [e for e, holds in zip(events, met(bad), strict=True) if not holds]
    places = sorted((arb(bad), arb(good)), key=float)
    try:
        low, high = (line.gauged(failing[0], u) for u in places)
        edge = line.sharp(failing[0], low, high, DIGITS, bad < good)
        if all(_holds(line, event, edge.inside) for event in events):
            return edge.outside, edge.inside
    except Unreachable:
        check_time()
    while abs(good - bad) > NARROW:
        middle = (good + bad) / 2
        good, bad = (middle, bad) if all(met(middle)) else (good, middle)
    return line.at(arb(bad)), line.at(arb(good))
