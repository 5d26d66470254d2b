"""Re-check the computed steps of a theorem, by balls at random points.

An identity must hold to 2^-80 at every point, an inequality must not fail, a limit must come
within 2^-10 of its value and closer as the growing value goes from 2^40 to 2^80. Nothing of the
algebra that wrote the steps is used, so a slip of the pen fails here; the points make no proof of
their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

import sympy
from flint import arb, fmpq

from farfield.theory.answers.blocks import Block, sentence
from farfield.theory.functions.balls import precision, to_arb
from farfield.theory.results import Result
from farfield.theory.theorems import Line, Theorem
from farfield.theory.values import compile_ball

POINTS = 24
BITS = 192


@dataclass(frozen=True)
class Verification(Result):
    """Which steps of a theorem were re-checked, and how that went.

    Fields:
        name: of the theorem.
        checked: 1-based numbers of the steps with a relation.
        failed: those whose relation fails at some point, with that point.
        points: points tried a step.
    """

    name: str
    checked: tuple[int, ...]
    failed: tuple[tuple[int, str], ...]
    points: int = POINTS
    label: str = "certified"

    @property
    def passed(self) -> bool:
        """No relation failed."""
        return not self.failed

    def blocks(self) -> Sequence[Block]:
        if self.failed:
            said = "; ".join(f"step {k} fails at {where}" for k, where in self.failed)
            return (sentence("{said}.", said=said),)
        steps = ", ".join(map(str, self.checked)) or "none"
        said = "Re-checked in balls at {points} points each: steps {steps}."
        return (sentence(said, self.label, points=self.points, steps=steps),)


def verify(theorem: Theorem, seed: int = 0) -> Verification:
    """Re-check every relation of a theorem.

    >>> from farfield.theory.theorems import theorem
    >>> verify(theorem("resolution-identity")).passed
    True
    """
    checked, failed = [], []
    for number, step in enumerate(theorem.proof.steps, 1):
        if step.rule == "sentence":
            continue
        assert isinstance(step, Line)
        checked.append(number)
        where = counterexample(step, seed)
        if where is not None:
            failed.append((number, where))
    return Verification(theorem.name, tuple(checked), tuple(failed))


def counterexample(step: Line, seed: int = 0) -> str | None:
    """A point at which the relation of a step fails, as text; None if none was found."""
    left, right = step.values["left"], step.values["right"]
    symbols = sorted(left.free_symbols | right.free_symbols, key=str)
    random = Random(seed)
    for _ in range(POINTS):
        most = 6 if step.rule == "limit" else 60
        point = {s: _draw(s, random, most) for s in symbols}
        if not _holds(step, point):
            return ", ".join(f"{s} = {v}" for s, v in point.items())
    return None


def _draw(symbol: sympy.Symbol, random: Random, most: int) -> Fraction:
    value = Fraction(random.randint(1, 420), 7 * random.choice((60 // most, 10, 60)))
    return value if symbol.is_positive or random.random() < 0.5 else -value


def _value(e: Any, point: dict[Any, Fraction]) -> arb:
    with precision(BITS):
        return to_arb(
            compile_ball(e)({s: fmpq(v.numerator, v.denominator) for s, v in point.items()})
        )


def _holds(step: Line, point: dict[Any, Fraction]) -> bool:
    left, right = step.values["left"], step.values["right"]
    if step.rule != "limit":
        a, b = _value(left, point), _value(right, point)
        with precision(BITS):
            if step.rule == "inequality":
                return not a > b
            size = abs(a) + abs(b) + 1
            return bool(a.overlaps(b) and (a - b).rad() < size.upper() * arb(2) ** -80)
    growing = sorted(step.values["at"].free_symbols, key=str)[0]
    gaps = []
    for power in (40, 80):
        at = {**point, growing: Fraction(2**power)}
        a, b = _value(left, at), _value(right, at)
        with precision(BITS):
            gaps.append(abs(a - b))
    return bool(gaps[1] < gaps[0] or gaps[1] == 0) and bool(gaps[1] < arb(2) ** -10)
