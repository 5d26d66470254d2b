"""Numbers and lists as a reader expects them: of sensible length, singular and plural.

>>> tokens(1), tokens(61), tokens(10**70)
('1 token', '61 tokens', '1000000000000000…0000000000000000 tokens (71 digits)')
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import sympy

from farfield.theory.answers.notation import shortened

DIGITS = 60


def integer(value: int) -> str:
    """An integer; its ends and the number of its digits where it has more than sixty.

    >>> integer(10**4)
    '10000'
    """
    digits = str(sympy.Integer(value))  # Python limits the length of its own
    if len(digits) <= DIGITS:
        return digits
    return f"{shortened(digits, 33)} ({len(digits)} digits)"


def tokens(value: float | None) -> str:
    """A count of tokens."""
    if value is None:
        return "unknown"
    if value == math.inf:
        return "infinitely many tokens"
    if value == 1:
        return "1 token"
    digits, _, more = integer(int(value)).partition(" ")
    return f"{digits} tokens {more}".rstrip()


def count(value: float | None) -> str:
    """A count in a few characters, as a cell of a table takes.

    >>> count(2890), count(20019671872824926), count(math.inf), count(3**9000)
    ('2890', '2.00e+16', 'infinite', '> 2^14264')
    """
    if value is None:
        return "unknown"
    if value == math.inf:
        return "infinite"
    number = int(value)
    if number < 10**7:
        return str(number)
    if number.bit_length() >= 10_000:
        return f"> 2^{number.bit_length() - 1}"
    exponent = len(str(number)) - 1
    return f"{number // 10 ** (exponent - 2) / 100:.2f}e+{exponent}"


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "head"), plural(8, "head")
    ('1 head', '8 heads')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def decimal(value: float | None, digits: int = 6) -> str:
    """A number to so many digits; the distance from 1 where that is what counts.

    >>> decimal(0.25), decimal(1 - 1e-9), decimal(None), decimal(math.inf)
    ('0.25', '1 - 1e-09', 'unknown', 'infinite')
    """
    if value is None:
        return "unknown"
    if math.isinf(value):
        return "infinite" if value > 0 else "minus infinity"
    shown = f"{value:.{digits}g}"
    if shown == "1" and value < 1:
        return f"1 - {1 - value:.2g}"
    return shown


def share(value: sympy.Rational | float) -> str:
    """A share as per cent where that is short, else as it is.

    >>> share(sympy.Rational(1, 100)), share(sympy.Rational(1, 3)), share(sympy.Rational(1, 10**6))
    ('1 %', '1/3', '1/1000000')
    """
    percent = sympy.nsimplify(value) * 100
    if (
        percent.is_Rational
        and percent.q in (1, 2, 5, 10, 20, 100)
        and percent >= sympy.Rational(1, 100)
    ):
        return f"{float(percent):g} %"
    return shortened(str(value), 40)


def listed(items: Sequence[Any], most: int = 12) -> str:
    """Items with commas, those in the middle left out where they are many.

    >>> listed(range(3)), listed(range(100), 4)
    ('0, 1, 2', '0, 1, …, 98, 99')
    """
    shown = [str(item) for item in items]
    if len(shown) > most:
        half = most // 2
        shown = [*shown[:half], "…", *shown[-half:]]
    return ", ".join(shown)


def runs(numbers: Sequence[int]) -> str:
    """Integers in order, neighbours as a range.

    >>> runs([0, 1, 2, 5])
    '0 to 2, 5'
    """
    found: list[list[int]] = []
    for k in numbers:
        if found and found[-1][1] == k - 1:
            found[-1][1] = k
        else:
            found.append([k, k])
    return ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in found)
