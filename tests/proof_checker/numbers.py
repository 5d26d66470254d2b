"""The numbers that a check relies on: balls and float tables of what the steps of a proof say.

They come from `theory.evaluation`, which knows formulas and nothing of proofs. One thing is left to
the caller: an exact test of zero, for a constant whose ball straddles a jump, such as
log(8)/log(2) in a floor. Without such a test only balls decide, and a question that they leave open
stays open.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from flint import arb, fmpq
from sympy import Expr, Symbol

from farfield.theory.answers.errors import InputError
from farfield.theory.evaluation import vectorised
from farfield.theory.evaluation.real_balls import RealBalls, ZeroTest
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import Undefined, Undetermined, precision, to_arb
from farfield.theory.functions.nodes import n

BITS = 4000  # a value at 10^90 is known to 3700 bits and more, so that errors of 10^-1000 show


class ProofError(Exception):
    """A step of a proof is false; the message names the step and what disagrees."""


class Open(Exception):
    """The checker cannot tell; the step counts as cited."""


def expression(text: str, domains: Mapping[str, str]) -> Expr:
    """What a step says, read again."""
    words = re.findall(r"[A-Za-z]\w*", text)
    try:
        return read(text, {k: d for k, d in domains.items() if k in words})
    except InputError as error:
        raise ProofError(f"a step is unreadable: {error}") from None


class Numbers:
    """Values of formulas, with one exact test whether a constant is 0, or none."""

    def __init__(self, is_zero: ZeroTest | None = None) -> None:
        self._balls = RealBalls(is_zero)
        self._floats = vectorised.Floats(self._balls)
        self.compiled: Callable[[Any], Callable[..., Any]] = self._balls.compiled
        """A function of the values of the symbols of a formula, or of a condition."""

    def value(self, e: Expr, env: Mapping[Symbol, object]) -> arb:
        """A value that there must be; `Open` where a jump leaves it undetermined."""
        with precision(BITS):
            try:
                return to_arb(self.compiled(e)(env))
            except Undetermined as why:
                raise Open(str(why)) from None
            except (Undefined, ZeroDivisionError):
                raise ProofError(f"{e} has no value") from None

    def holds(self, condition: object, values: Mapping[Symbol, Expr]) -> bool | None:
        """Whether a condition holds at values of the parameters; None where it has no value."""
        with precision(128):
            try:
                env = {s: self.compiled(v)({}) for s, v in values.items()}
                return bool(self.compiled(condition)(env))
            except (Undefined, ZeroDivisionError, KeyError):
                return None

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
        x, y = (None, None) if a == b else (self.ball(a, at), self.ball(b, at))
        if x is None or y is None or not (x.is_finite() and y.is_finite()):
            return 0
        with precision(BITS):
            return int(bool(x > y)) - int(bool(x < y))

    def is_near(self, value: Expr | None, wanted: int) -> bool:
        """Whether a constant's ball contains an integer."""
        ball = None if value is None or value.is_infinite else self.ball(value, 1)
        return ball is not None and bool(ball.contains(wanted))

    def table(self, distances: np.ndarray, *formulas: Expr) -> np.ndarray:
        """A row of values for each formula as float64, nan where there is none."""
        return np.stack([vectorised.tabulate([e], distances, self._floats)[0] for e in formulas])
