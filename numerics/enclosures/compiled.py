"""Formulas in one variable on complex balls, on real balls and on power series of real balls.

On complex balls, with `analytic`, a value is finite only if the formula is analytic on the whole
input ball: logarithms and powers refuse to touch a branch cut, special functions to leave the right
half plane.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import ClassVar, TypeVar

import sympy
from flint import acb, arb, arb_series
from sympy import Expr, Symbol

from farfield.numerics.search import Unrecognised
from farfield.theory.functions.balls import to_arb
from farfield.theory.functions.record import Arithmetic, Operation, Program
from farfield.theory.values import compile_ball

Point = TypeVar("Point", arb, acb, arb_series)
MAX_EXPONENT = 2**20  # of a power by multiplication


class _OfOneVariable(Arithmetic):
    """A constant is a real ball; integer powers by multiplication, roots as roots."""

    def constant(self, e: Expr) -> arb:
        return to_arb(compile_ball(e)({}))

    def power(self, e: Expr) -> Operation:
        if e.exp.is_Integer and abs(e.exp) < MAX_EXPONENT:
            k = int(e.exp)
            return lambda z: z**k, (e.base,)
        if e.exp == sympy.S.Half:
            return self.root, (e.base,)
        return self.general_power, e.args

    def root(self, z: Point) -> Point:
        """The square root."""
        return z.sqrt()

    def general_power(self, z: Point, q: Point) -> Point:
        """exp(q log z)."""
        return (z.log() * q).exp()

    def lacking(self, name: str, why: str) -> Exception:
        return Unrecognised(f"{name} has no enclosure off the real line: {why}")


class ComplexBalls(_OfOneVariable):
    """Complex balls; with `analytic`, finite only where the formula is analytic."""

    rule: ClassVar[str] = "complex_ball"

    def __init__(self, analytic: bool) -> None:
        self.analytic = analytic

    def applied(self, rule: Callable[..., object]) -> Callable[..., object]:
        return partial(rule, self.analytic)

    def root(self, z: Point) -> Point:
        return acb(z).sqrt(analytic=self.analytic)

    def general_power(self, z: Point, q: Point) -> Point:
        return (acb(z).log(analytic=self.analytic) * q).exp()


class PowerSeries(_OfOneVariable):
    """Real balls, and power series of real balls, not finite off the domain of the formula."""

    rule: ClassVar[str] = "series"


_COMPLEX = {analytic: ComplexBalls(analytic) for analytic in (False, True)}
_SERIES = PowerSeries()


@lru_cache(maxsize=1024)
def compile_complex(e: Expr, x: Symbol) -> Callable[[acb, bool], acb]:
    """(z, analytic) -> e at x = z, at the precision at work.

    >>> x = sympy.Symbol("x")
    >>> compile_complex(sympy.log(x), x)(acb(1), False)
    0
    """
    programs = {analytic: Program(e, a, (x,)) for analytic, a in _COMPLEX.items()}
    return lambda z, analytic: acb(programs[analytic](z))


@lru_cache(maxsize=1024)
def compile_real(e: Expr, x: Symbol) -> Callable[[Point], Point]:
    """z -> e at x = z, a real ball or a power series of real balls; not finite off its domain.

    >>> x = sympy.Symbol("x")
    >>> compile_real(x**2, x)(arb(3))
    9.00000000000000
    """
    return Program(e, _SERIES, (x,))
