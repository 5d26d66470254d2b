"""The coordinate in which thresholds are sought: parameters near an end are far from each other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from flint import arb, fmpq
from sympy import Expr, Rational, S

from farfield.theory.coefficients.exact import to_sympy
from farfield.theory.functions.balls import precision, rational, to_arb
from farfield.theory.values import compile_ball

REACH = 64
"""Parameters are sought up to 2^64, and down to 2^-64 from an end."""


@dataclass(frozen=True)
class Chart:
    """The coordinate u of an open interval: its logarithm to base 2 beside a finite end, that of
    the quotient of the distances between two, the inverse hyperbolic sine on the whole line.

    Args:
        low, high: the ends of the interval, exact.
        far: the largest coordinate, and minus the least, towards an infinite end.
    """

    low: Expr
    high: Expr
    far: int = REACH

    @cached_property
    def ends(self) -> tuple[fmpq | None, fmpq | None]:
        """Rationals at the ends, or just inside."""
        return _rational(self.low, up=True), _rational(self.high, up=False)

    @property
    def reach(self) -> tuple[int, int]:
        """The least and the largest coordinate."""
        return -self.far if self.low is S.NegativeInfinity else -REACH, (
            self.far if self.high is S.Infinity else REACH
        )

    def at(self, u: arb) -> Rational:
        """The parameter of a coordinate, a rational."""
        low, high = self.ends
        size = arb(2) ** u
        if low is not None and high is not None:
            value = arb(low) + arb(high - low) * size / (1 + size)
        elif low is not None:
            value = low + size
        elif high is not None:
            value = high - 1 / size
        else:
            value = (size - 1 / size) / 2
        return to_sympy(value.mid().fmpq())

    def of(self, a: Rational) -> arb:
        """The coordinate of a parameter."""
        low, high = self.ends
        x, two = rational(a), arb(2).log()
        if low is not None and high is not None:
            return ((arb(x - low) / (high - x)).log() / two).mid()
        if low is not None:
            return (arb(x - low).log() / two).mid()
        if high is not None:
            return (-arb(high - x).log() / two).mid()
        return (arb(x).asinh() / two).mid()

    def scale(self, a: Rational) -> Rational:
        """What counts as large near a parameter: its size, its distance from the ends."""
        ends = [to_sympy(e) for e in self.ends if e is not None]
        return min((abs(x) for x in (a, *(a - e for e in ends)) if x), default=S.One)


def _rational(end: Expr, up: bool) -> fmpq | None:
    """A rational at a finite end, or within 2^-512 on the inner side of an irrational one."""
    if not end.is_finite:
        return None
    if end.is_Rational:
        return rational(end)
    with precision(512):
        ball = to_arb(compile_ball(end)({}))
        return (ball.upper() if up else ball.lower()).fmpq()
