"""The first terms of an exp-series that have no value and are skipped; tables without them."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import sympy
from flint import arb, fmpq
from sympy import Expr

from farfield.theory.algebra import door
from farfield.theory.algebra.door import check_time
from farfield.theory.formula.bounded_nodes import primitive
from farfield.theory.functions.balls import NoValue, Undefined, Undetermined, precision, to_arb
from farfield.theory.functions.nodes import Lookup, n
from farfield.theory.functions.record import kinds, symbols, unproved_needs
from farfield.theory.values import compile_ball, tabulate_all

if TYPE_CHECKING:
    import numpy as np

MOST_TERMS, FINE = 4096, 64
MOST_BALLS = 64  # before the distances are taken one by one
FIRST = 4  # distances at which most formulas that are undefined anywhere are so
APART = 61  # distances of the sample beyond them: a prime, from which no short period hides


def skipped_terms(p: Expr, needs: list[tuple[Expr, str]] | None = None) -> tuple[int, ...]:
    """The distances below 4096 whose bias is undefined or +oo.

    They are read off what the formula needs, where balls show that it holds from some distance on.
    Else few balls of the bias tell them, or they are searched until 64 in a row are fine, and every
    61st after them. A row of them that lasts to the end of the search is taken for overflow, but
    for its beginning at 0. Once 64 in a row are not fine, every 64th shows whether it lasts.

    Args:
        p: the bias.
        needs: its `unproved_needs`, where they were asked already.

    Raises:
        OutOfTime: the budget of the question is spent.

    >>> from sympy import log
    >>> skipped_terms(-log(log(n)))
    (0, 1)
    """
    if symbols(p) - {n}:
        return ()
    if needs is None:
        needs = door.supervised(unproved_needs, p)
    failing, is_all = ((), False) if needs is None else _failing(needs)
    return failing if is_all else tuple(sorted({*failing, *_skipped(primitive(p)[1])}))


@lru_cache(maxsize=64)
def _skipped(p: Expr) -> tuple[int, ...]:
    """The heads of a family, positive multiples of one bias, share it."""
    with precision(256):
        if _has_value(p, _between(0, MOST_TERMS), False):
            return ()
        first = [t for t in range(FIRST) if not _has_value(p, fmpq(t))]
        halved = _halved(p, FIRST, MOST_TERMS - 1, [MOST_BALLS])
        skipped, last = _searched(p) if halved is None else first + halved, MOST_TERMS
    while skipped and skipped[-1] == last - 1:
        last = skipped.pop()
    return tuple(skipped) if last > 0 else tuple(range(MOST_TERMS))


def _failing(needs: list[tuple[Expr, str]]) -> tuple[tuple[int, ...], bool]:
    """The distances below FIRST at which a need fails, and whether there are no others below
    MOST_TERMS."""
    with precision(64):
        near = [{_holds(x, fact, fmpq(t)) for x, fact in needs} for t in range(FIRST)]
        is_all = all(_holds(x, fact, _between(FIRST, MOST_TERMS)) for x, fact in needs)
    failing = tuple(t for t, held in enumerate(near) if False in held)
    return failing, is_all and all(False in held or None not in held for held in near)


def _holds(quantity: Expr, fact: str, distance: fmpq | arb) -> bool | None:
    """Whether a need holds at a distance, or on a ball of them; None where no ball tells it."""
    with suppress(Undefined, ZeroDivisionError, OverflowError):
        size = compile_ball(quantity)({n: distance})
        holds, fails = _FACTS[fact]
        return True if holds(size, 0) else False if fails(size, 0) else None
    return None


_FACTS = {
    "positive": (operator.gt, operator.le),
    "nonnegative": (operator.ge, operator.lt),
    "nonzero": (operator.ne, operator.eq),
}
"""How a fact is seen to hold of a ball, and how it is seen to fail."""


def _between(low: int, high: int) -> arb:
    """A ball that contains the distances from one to another."""
    return arb(low).union(arb(high))


def _searched(p: Expr) -> list[int]:
    """The distances without a value, one by one until 64 in a row are fine."""
    skipped, fine = list[int](), 0
    apart = None  # whether the distances beyond the search are fine, as far as a sample tells
    for t in range(MOST_TERMS):
        check_time()
        good = _has_value(p, fmpq(t))
        if not good:
            skipped.append(t)
        fine = max(fine, 0) + 1 if good else min(fine, 0) - 1
        if fine >= FINE:
            if apart is None:
                apart = all(_has_value(p, fmpq(k)) for k in range(t, MOST_TERMS, APART))
            if apart:
                break
        elif fine % FINE == 0 and not any(
            _has_value(p, fmpq(k)) for k in range(t, MOST_TERMS, FINE)
        ):
            skipped += range(t + 1, MOST_TERMS)
            break
    return skipped


def _halved(p: Expr, low: int, high: int, left: list[int]) -> list[int] | None:
    """The distances from low to high without a value, by halves of what one ball does not show to
    have one; None where more balls are wanted than are left."""
    left[0] -= 1
    if left[0] < 0:
        return None
    if _has_value(p, fmpq(low) if low == high else _between(low, high), low == high):
        return []
    if low == high:
        return [low]
    middle = math.isqrt((low + 1) * (high + 1)) - 1
    first = _halved(p, low, middle, left)
    second = None if first is None else _halved(p, middle + 1, high, left)
    return None if first is None or second is None else first + second


def _has_value(p: Expr, distance: fmpq | arb, undetermined: bool = True) -> bool:
    """Whether a bias is a number or -oo at a distance, or on a ball of them; what to say where no
    ball determines it. It is -oo where its weight is 0, as in log(exp(-oo) + exp(-oo))."""
    for bits in (256, 2048) if isinstance(distance, fmpq) else (256,):
        try:
            with precision(bits):
                ball = to_arb(compile_ball(p)({n: distance}))
            return ball.is_finite() or bool(ball < 0)
        except Undetermined:
            return undetermined
        except NoValue:
            break
        except (Undefined, ZeroDivisionError, OverflowError):
            continue  # near an end of a domain more bits may tell
    return is_masked(p, distance)


def is_masked(p: Expr, distance: fmpq | arb) -> bool:
    """Whether a bias with masks has a weight of exactly 0: all terms of its sum are masked."""
    if type(sympy.S.NegativeInfinity) not in kinds(p):
        return False
    with suppress(Undefined, ZeroDivisionError, OverflowError):
        return bool(compile_ball(sympy.exp(p))({n: distance}) == 0)
    return False


def defined(formulas: Sequence[Expr], distances: Any) -> np.ndarray:
    """Several biases as `tabulate_all` gives them, without the values that float64 finds where a
    formula has none: nan there, or +inf.

    >>> from sympy import log
    >>> defined([-n / log(n)], [0, 1, 2]).round(3).tolist()
    [[nan, nan, -2.885]]
    """
    import numpy as np

    table = tabulate_all(formulas, distances)
    for row, p in zip(table, formulas, strict=True):
        if not isinstance(p, Lookup) and p.has(sympy.log, sympy.Pow):
            row[np.isin(distances, skipped_terms(p)) & (row < np.inf)] = np.nan
    return table
