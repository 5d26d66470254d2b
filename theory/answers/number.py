"""Numbers: read exactly as users write them, written as readers expect them; counts, shares.

>>> tokens(1), tokens(61), tokens(10**70)
('1 token', '61 tokens', '1000000000000000…0000000000000000 tokens (71 digits)')
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import ROUND_FLOOR, Context
from fractions import Fraction
from typing import Any

import sympy

from farfield.theory.answers.answer import InputError
from farfield.theory.answers.notation import beginning, shortened

DIGITS = 60
LEAST = 1e-300  # smaller ones are near the end of the range of floats
SHARES = ("1/10", "1/100", "1/1000")
"""Shares of the mass that are left out of a receptive field where none is named."""
MAX_BITS = 12_000  # of an integer: Python writes none of more than 4300 digits


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


def without_noun(count: str) -> str:
    """A count of tokens, as it is written, without the word.

    >>> without_noun("between 4 and 9 tokens"), without_noun("1 token")
    ('between 4 and 9', '1')
    """
    return re.sub(r" tokens?\b", "", count)


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
    """A number to this many digits; the distance from 1 where that is what counts.

    >>> decimal(0.25), decimal(1 - 1e-9), decimal(None), decimal(math.inf), decimal(5e-324)
    ('0.25', '1 - 1e-09', 'unknown', 'infinite', 'below 1e-300')
    """
    if value is None:
        return "unknown"
    if math.isinf(value):
        return "infinite" if value > 0 else "minus infinity"
    if 0 < value < LEAST:
        return f"below {LEAST:g}"
    shown = f"{value:.{digits}g}"
    if shown == "1" and value < 1:
        return f"1 - {1 - value:.2g}"
    return shown


def at_most(value: float, digits: int = 3) -> str:
    """A positive number rounded down to this many digits: a bound that holds up to it.

    >>> at_most(0.134548), at_most(0.000291782), at_most(0.5)
    ('0.134', '0.000291', '0.5')
    """
    context = Context(prec=digits, rounding=ROUND_FLOOR)
    return f"{float(context.create_decimal_from_float(value)):.{digits}g}"


def share(value: sympy.Rational | float) -> str:
    """A share as per cent where that is short, a small power of ten as one, else as it is.

    >>> share(sympy.Rational(1, 100)), share(sympy.Rational(1, 3)), share(sympy.Rational(1, 10**6))
    ('1 %', '1/3', '1e-6')
    """
    percent = exact(value) * 100
    tens = len(str(percent.q)) - 1
    if percent.p == 1 and tens > 2 and percent.q == 10**tens:
        return f"1e-{tens + 2}"
    if percent.q in (1, 2, 5, 10, 20, 100) and percent >= sympy.Rational(1, 100):
        return f"{float(percent):g} %"
    return shortened(str(value), 40)


def runs(numbers: Sequence[int]) -> str:
    """Integers in order, neighbours as a range.

    >>> runs([0, 1, 2, 5])
    '0 to 2, 5'
    """
    rows: list[list[int]] = []
    for k in numbers:
        if rows and rows[-1][1] == k - 1:
            rows[-1][1] = k
        else:
            rows.append([k, k])
    return ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in rows)


MAX_INTEGER = 10**15


def exact(value: object, what: str = "number") -> sympy.Rational:
    """The rational number a user wrote: `"1/2"`, `"0.01"`, `"1 %"`, `Fraction`, an int, a SymPy
    rational, a NumPy or torch scalar.

    A float is read as the decimal the user sees (its shortest text), never as its binary value.

    Raises:
        InputError: when it is no finite rational number; for a text of more than 1000 digits, an
            integer of more than 12,000 bits.

    >>> exact(0.1), exact("1e-3"), exact("6/5"), exact("0.5 %")
    (1/10, 1/1000, 6/5, 1/200)
    """
    wanted = "accepted: a rational number such as 1/2, 0.01, 1 %, 1e-3, Fraction(1, 2)"
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = _scalar(value)
    if isinstance(value, bool) or value is None:
        raise InputError(f"{what} {value!r} is not a number; {wanted}")
    if isinstance(value, sympy.Float):
        value = float(value)
    if isinstance(value, (int, Fraction, sympy.Rational)):
        rational = sympy.Rational(value)
        if max(abs(rational.p), rational.q).bit_length() > MAX_BITS:
            raise InputError(f"{what} has more than {MAX_BITS} bits; {wanted}")
        return rational
    text = str(value).strip().replace("\N{MINUS SIGN}", "-")
    shown = beginning(text, 40)
    mantissa, _, exponent = text.lower().partition("e")
    digits = sum(c.isdigit() for c in mantissa)
    if digits > 1000 or (exponent.lstrip("+-").isdigit() and abs(int(exponent[:8])) > 1000):
        raise InputError(f"{what} {shown} has more than 1000 digits; {wanted}")
    number = text.removesuffix("%")
    try:
        fraction = Fraction(number.replace(" ", "")) / (1 if number == text else 100)
    except (ValueError, ZeroDivisionError):
        raise InputError(f"{what} {shown!r} is not a rational number; {wanted}") from None
    return sympy.Rational(fraction.numerator, fraction.denominator)


def inside(value: object, what: str, domain: str) -> sympy.Rational:
    """A rational number of an interval, as `exact` reads it.

    Args:
        value: the number.
        what: its name.
        domain: the interval, such as `(0, 1]` or `(0, oo)`.

    Raises:
        InputError: it is none.

    >>> inside("1/100", "eps", "(0, 1)"), inside(1, "mixing", "(0, 1]")
    (1/100, 1)
    """
    number = exact(value, what)
    ends = domain[1:-1].split(", ")
    low, high = (math.inf if end == "oo" else sympy.Rational(end) for end in ends)
    closed = {low: domain[0] == "[", high: domain[-1] == "]"}
    if low < number < high or closed.get(number):
        return number
    wanted = _DOMAINS.get(domain, f"a number in {domain}")
    raise InputError(f"{what} {beginning(str(number), 40)} is out of range; accepted: {wanted}")


_DOMAINS = {"(0, oo)": "a positive number", "[0, oo)": "a number, at least 0"}


def _scalar(value: Any) -> Any:
    """A scalar of NumPy or torch as Python prints it: 0.1 in float32 is 0.1."""
    item = value.item()
    if isinstance(item, float):
        shortest = getattr(value, "numpy", lambda: value)()
        return str(shortest)
    return item


def natural(value: object, what: str, least: int = 1, most: int = MAX_INTEGER) -> int:
    """An integer from `least` to `most`, as a number or text; `4k` is 4096, `1M` 1024 times 1024.

    Raises:
        InputError: anything else.

    >>> natural("512", "length"), natural("4k", "length"), natural("1.5 K", "length")
    (512, 4096, 1536)
    """
    limit = "10^15" if most == MAX_INTEGER else most
    wanted = f"accepted: a whole number from {least} to {limit}, such as 512 or 4k (4096)"
    shown = f"{what} {str(value)[:40]!r}"
    scaled = _SCALED.fullmatch(value) if isinstance(value, str) else None
    try:
        number = exact(value if scaled is None else scaled[1], what)
    except InputError:
        raise InputError(f"{shown} is not a number; {wanted}") from None
    number *= 1 if scaled is None else _SCALES[scaled[2]]
    if not number.is_Integer or "%" in shown:
        raise InputError(f"{shown} is no whole number; {wanted}")
    if not least <= number <= most:
        raise InputError(f"{shown} is out of range; {wanted}")
    return int(number)


_SCALES = {"k": 1024, "K": 1024, "M": 1024**2}
_SCALED = re.compile(r"\s*([\d.]+)\s*([kKM])\s*")
