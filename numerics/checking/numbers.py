"""The numbers that a check relies on: balls and float tables of what the steps of a proof say.

They come from `theory.evaluation`, which knows formulas and nothing of proofs. One thing is left to
the caller: an exact test of zero, for a constant whose ball straddles a jump, such as
log(8)/log(2) in a floor. Without such a test only balls decide, and a question that they leave open
stays open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from flint import arb, fmpq
from sympy import Expr

from farfield.theory.evaluation import vectorised
from farfield.theory.evaluation.real_balls import RealBalls, ZeroTest
from farfield.theory.functions.balls import Undefined, precision, to_arb
from farfield.theory.functions.nodes import n

BITS = 4000  # a value at 10^90 is known to 3700 bits and more, so that errors of 10^-1000 show


class Numbers:
    """Values of formulas, with one exact test whether a constant is 0, or none."""

    def __init__(self, is_zero: ZeroTest | None = None) -> None:
        self._balls = RealBalls(is_zero)
        self._floats = vectorised.Floats(self._balls)

    def compiled(self, e: Any) -> Callable[..., Any]:
        """A function of the values of the symbols of a formula, or of a condition."""
        return self._balls.compiled(e)

    def ball(self, e: Expr, at: int) -> arb | None:
        """The value at a distance, None where it has none or balls do not reach it."""
        for bits in (256, BITS):
            with precision(bits):
                try:
                    ball = to_arb(self.compiled(e)({n: fmpq(at)}))
                except (Undefined, ZeroDivisionError, OverflowError, KeyError):
                    continue
                if ball.rel_accuracy_bits() > 60 or bits == BITS or not ball.is_finite():
                    return ball
        return None

    def compare(self, a: Expr, b: Expr, at: int) -> int:
        """The sign of a - b at a distance; 0 where balls do not tell them apart."""
        if a == b:
            return 0
        x, y = self.ball(a, at), self.ball(b, at)
        if x is None or y is None or not (x.is_finite() and y.is_finite()):
            return 0
        with precision(BITS):
            return 1 if x > y else -1 if x < y else 0

    def is_near(self, value: Expr | None, wanted: int) -> bool:
        """Whether a constant's ball contains an integer."""
        if value is None or value.is_infinite:
            return False
        ball = self.ball(value, 1)
        return ball is not None and bool(ball.contains(wanted))

    def table(self, e: Expr, distances: np.ndarray) -> np.ndarray:
        """The values at many distances as float64, nan where there is none."""
        return vectorised.tabulate([e], distances, self._floats)[0]
