"""Balls: values that are exact rationals (`fmpq`) or real balls (`arb`), and their precision.

Rational values stay exact, so that floors and comparisons are decided wherever the arithmetic is
rational; everything else is a ball that contains the true value. A value that is undefined, not
real, or open at the working precision raises `Undefined` instead of returning a wide ball.

python-flint's precision is global to the process: evaluate only inside `precision(bits)`, which
holds a lock, so that calls from several threads do not disturb each other.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import sympy
from flint import acb, arb, ctx, fmpq

from farfield.theory.algebra.door import check_time, inside

Ball: TypeAlias = fmpq | arb
NAN = acb(arb.nan())


class Undefined(ArithmeticError):
    """The value is undefined, not real, or not decided at the working precision."""


class Undetermined(Undefined):
    """The value exists, or may exist, but a comparison is not decided at the precision."""


class NoValue(Undefined):
    """There is no real value, or none that balls hold, whatever the precision."""


class BeyondBalls(Undefined):
    """The value is a real number beyond what balls hold."""


_LOCK = threading.RLock()
WAIT_S = 0.1  # for another thread's balls, before a look at the clock


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work with balls of `bits` bits, alone in the process, and restore the precision after.

    Raises:
        OutOfTime: the time of the question is spent, also while another thread is at work.
    """
    assert not inside(), "balls are not evaluated inside the algebra"
    check_time()
    while not _LOCK.acquire(timeout=WAIT_S):
        check_time()
    before = ctx.prec
    try:
        ctx.prec = max(2, int(bits))
        yield
    finally:
        ctx.prec = before
        _LOCK.release()


def rational(value: sympy.Rational | int) -> fmpq:
    """The flint rational of a SymPy rational."""
    return fmpq(int(value.p), int(value.q)) if isinstance(value, sympy.Rational) else fmpq(value)


def outward(ball: arb) -> tuple[float, float]:
    """Floats no greater and no less than any point of a ball.

    >>> low, high = outward(arb(1) / 3)
    >>> outward(arb(1) / 4), low < 1 / 3 < high
    ((0.25, 0.25), True)
    """
    low, high = float(ball.lower()), float(ball.upper())
    return (
        low if arb(low) <= ball else math.nextafter(low, -math.inf),
        high if arb(high) >= ball else math.nextafter(high, math.inf),
    )


def to_arb(value: Ball) -> arb:
    """A ball, also of an exact value."""
    return value if isinstance(value, arb) else arb(value)


def finite(value: arb) -> arb:
    """The ball, if it is one of real numbers."""
    if not value.is_finite():
        raise Undefined("not a finite real number")
    return value


def finite_at(value: arb, *arguments: Ball) -> arb:
    """The ball, if it is one of real numbers; at arguments that balls hold exactly no precision
    makes it one."""
    if not value.is_finite() and all(isinstance(x, fmpq) and arb(x).is_exact() for x in arguments):
        raise NoValue("no real number")
    return finite(value)


def real_part(value: acb) -> arb:
    """What a complex rule says at a real point; not a number where the function is not real."""
    return value.real if value.imag.contains(0) else arb.nan()


def real(name: str) -> Callable[[Ball], Ball]:
    """The real ball of python-flint's method of this name."""
    return lambda x: finite_at(getattr(to_arb(x), name)(), x)


def ball_sign(x: Ball) -> int:
    """-1, 0 or 1, where the ball decides."""
    if x > 0:
        return 1
    if x < 0:
        return -1
    if x == 0:
        return 0
    raise Undetermined("a sign is not decided at this precision")


def floor_of(x: Ball) -> fmpq:
    """The floor, where the ball decides."""
    if isinstance(x, fmpq):
        return fmpq(x.floor())
    whole = finite(x).floor().unique_fmpz()
    if whole is None:
        raise Undetermined("a floor is not decided at this precision")
    return fmpq(whole)


def power_of(base: Ball, exponent: Ball) -> Ball:
    """A real power: of any base for an integer exponent, else of a base from 0."""
    if isinstance(exponent, fmpq) and exponent.q == 1 and abs(exponent.p) < 2**31:
        k = int(exponent.p)
        if k < 0 and not base != 0:
            raise (NoValue if base == 0 else Undefined)("a division by zero")
        if isinstance(base, fmpq):
            return base**k if abs(k) < 4096 else finite(arb(base) ** k)
        return finite(base**k)
    if base == 0:
        if exponent > 0 or exponent == 0:
            return fmpq(exponent == 0)
        raise (NoValue if exponent < 0 else Undefined)("zero to a power that is not positive")
    base = to_arb(base)
    if base < 0 and isinstance(exponent, fmpq) and exponent.q == 1:
        size = power_of(-base, exponent)
        return -size if int(exponent.p) % 2 else size
    if not base > 0:
        settled = base < 0 and isinstance(exponent, fmpq)
        raise (NoValue if settled else Undefined)("a real power of a number that is not positive")
    if isinstance(exponent, fmpq) and exponent.q == 2:
        root = base.sqrt()
        return finite(root ** int(exponent.p))
    return finite((to_arb(exponent) * base.log()).exp())
