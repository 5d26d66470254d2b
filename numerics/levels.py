"""The distances at which a bias is at or above a level: runs of them, or the end of the last one.

One ball of p over a whole stretch of distances decides the stretch; where it does not, each half is
tried. A single distance whose ball meets the level is left to the caller. Beyond a distance where p
falls below the level, or where a whole tail is less than one such weight, there are none. Each
residue class has runs and an end of its own: a run is a `range`, whose step is the modulus.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from flint import arb, fmpq

from farfield.numerics.search import at_precision
from farfield.numerics.summation.series import Series, Stretch
from farfield.theory.algebra.door import check_time
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.evaluation.real_balls import Environment
from farfield.theory.functions.balls import Ball, Undefined, precision, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.values import compile_ball


class BeyondCounting(Exception):
    """Distances beyond counting are at or above the level, at least `low` of them if that is
    known."""

    def __init__(self, low: int | None) -> None:
        self.low = low


@dataclass
class SuperlevelSet:
    """The distances of a row at or above a level.

    Args:
        row: the stretches of the bias.
        level: the level as a ball at the precision at work.
        meets: whether distances that meet the level, to all that balls tell, are above; their
            weights are equal.
        most_bits: of a distance that is counted.
        most_balls: of the bias.
    """

    row: Series
    level: Callable[[], arb]
    meets: Callable[[range], bool]
    most_bits: int
    most_balls: int
    balls: int = 0
    levels: dict[int, arb] = field(default_factory=dict)

    def _level(self, bits: int) -> arb:
        """The level, to this many bits."""
        if bits not in self.levels:
            self.levels[bits] = at_precision(self.level, bits)
        return self.levels[bits]

    def runs(self) -> list[range]:
        """The runs of every stretch."""
        return [run for s in self.row.stretches for run in self._of_stretch(s)]

    def end(self) -> int:
        """One more than the last distance; 0 where there is none."""
        end = 0
        for s in reversed(self.row.stretches):
            if s.end is None or s.distances(s.start, s.end)[-1] >= end:
                end = max(end, next((run[-1] + 1 for run in self._of_stretch(s, True)), 0))
        return end

    def _of_stretch(self, s: Stretch, far: bool = False) -> Iterator[range]:
        """The runs of a stretch, the farthest first with `far`."""
        end = self._end(s) if s.end is None else s.end
        height, open_ = compile_ball(s.bias), [(s.start, end)] if s.start < end else []
        while open_:
            a, b = open_.pop()
            above = self._decided(height, a, b)
            if above is None and (b - a == 1 or not s.bias.has(n)):
                above = self.meets(s.distances(a, b))
            if above is None:
                middle = (a + b) // 2 if b <= 4 * a + 4 else max(a + 1, math.isqrt((a + 1) * b))
                parts = [(middle, b), (a, middle)]
                open_ += parts[::-1] if far else parts
            elif above:
                yield s.distances(a, b)

    def _decided(self, height: Callable[[Environment], Ball], a: int, b: int) -> bool | None:
        """Whether all of a <= n < b is above, or none; None where one ball does not tell."""
        self.balls += 1
        if self.balls > self.most_balls:
            raise Unreachable(
                f"the bias crosses the threshold too often for {self.most_balls} balls"
            )
        if self.balls % 1024 == 0:
            check_time()
        bits = 64 << ((b.bit_length() - (b - a).bit_length()) // 24).bit_length()
        level = self._level(bits)
        with precision(bits):
            place = fmpq(a) if b - a == 1 else arb(a).union(arb(b - 1))
            try:
                value = to_arb(height({n: place}))
            except (Undefined, ZeroDivisionError):
                return None
            return True if value > level else False if value < level else None

    def _end(self, s: Stretch) -> int:
        """A distance from which on none is above, as p falls or as a whole tail is too light."""
        falls = s.falls_from()
        if falls is None and s.kernel is not None and not s.kernel.converges:
            raise Unreachable("the bias is not proved to fall, and its series has no sum")
        j = max(s.start + 16, falls or 0)
        height = compile_ball(s.bias)
        while True:
            with precision(64 + j.bit_length()), suppress(Undefined, ZeroDivisionError):
                if falls is not None:
                    if to_arb(height({n: fmpq(j)})) < self._level(64):
                        return j
                elif to_arb(s.tail(j)) < self._level(64).exp():
                    return j
            if j.bit_length() >= self.most_bits:
                above = falls is not None and self._decided(height, j, j + 1)
                raise BeyondCounting(j - (falls or 0) if above else None)
            j = min(j * j, 1 << self.most_bits)


def merged(runs: Sequence[range], most: int) -> list[tuple[int, int]]:
    """The first distances that are in a run, as intervals (first, last), at most this many.

    >>> merged([range(0, 40, 2), range(1, 9, 2), range(40, 50)], 3)
    [(0, 8), (10, 10), (12, 12)]
    """
    stretches: list[tuple[int, int]] = []
    nexts, step = [r.start for r in runs], math.lcm(*(r.step for r in runs))
    while nexts and len(stretches) <= most:
        first = at = min(nexts)
        covering: list[range] = []  # the runs that hold the distances just before `at`, one each
        while held := next((r for r in runs if at in r), None):
            covering = [*covering, held] if held.step > 1 else []
            at = at + 1 if held.step > 1 else held.stop
            if len(covering) == step > 1:  # every residue is held as far as all of these reach
                at, covering = max(at, 1 + min(r[-1] for r in covering)), []
        stretches.append((first, at - 1))
        nexts = [r[max(0, -((r.start - at) // r.step))] for r in runs if r[-1] >= at]
    return stretches[:most]
