"""Rationals near a real number: the simplest one of an interval, and short decimals around a point.

The simplest rational has the least denominator, and of those the least numerator in size. It is
found along the Stern-Brocot tree, by the continued fractions of the ends.
"""

from __future__ import annotations

import math

from sympy import Expr, Integer, Rational, S


def simplest(
    low: Expr, high: Expr, closed_low: bool = False, closed_high: bool = False
) -> Rational | None:
    """The simplest rational of an interval, whose ends may be infinite; None if it is empty.

    >>> simplest(Rational(3, 10), Rational(2, 5)), simplest(S.Zero, Rational(1, 4))
    (1/3, 1/5)
    >>> simplest(S.Zero, Rational(1, 4), closed_high=True), simplest(Integer(2), S.Infinity)
    (1/4, 3)
    """
    if not (low < high or (low == high and closed_low and closed_high)):
        return None
    if low < 0 < high or (low == 0 and closed_low) or (high == 0 and closed_high):
        return S.Zero
    if high <= 0:
        mirrored = simplest(-high, -low, closed_high, closed_low)
        return None if mirrored is None else -mirrored
    whole = Integer(math.floor(low))
    least = whole if whole == low and closed_low else whole + 1
    if least < high or (least == high and closed_high):
        return least
    # both ends lie in [whole, whole + 1]: go on with the reciprocals of what is beyond
    above = S.Infinity if low == whole else 1 / (low - whole)
    rest = simplest(1 / (high - whole), above, closed_high, closed_low)
    assert rest is not None
    return whole + 1 / rest


def decimals_around(x: Rational, scale: Rational, digits: int) -> tuple[Rational, Rational]:
    """Neighbouring decimals with x in [low, high), `high - low` at most 10^(1-digits) `scale`.

    >>> decimals_around(Rational(1, 3), Rational(1, 3), 3)
    (333/1000, 167/500)
    """
    exponent = len(str(int(scale))) - 1 if scale >= 1 else -len(str(int(1 / scale)))
    unit = Integer(10) ** (exponent - digits + 1)
    low = math.floor(x / unit) * unit
    return low, low + unit
