"""Certified numbers in a few characters, as the cells of tables take them."""

from __future__ import annotations

import math

from farfield.numerics.price import Reach
from farfield.numerics.receptive_field import ReceptiveField
from farfield.numerics.search import Bracket, Enclosure, Exact, Value
from farfield.theory.answers.answer import Status
from farfield.theory.answers.number import LEAST, count

DTYPES = ("fp16", "bf16", "fp32")
"""Floating-point types whose horizon is a row."""
MOST = 700
"""Logarithms below are of numbers that float64 holds."""


def field_text(field: ReceptiveField) -> str:
    """A receptive field, in tokens.

    >>> from farfield.numerics.receptive_field import theoretical_receptive_field
    >>> field_text(theoretical_receptive_field("-1.2*log(1+n)", "1e-6"))
    '5.71e+29'
    """
    return size_text(field.answer, field.status is Status.INFINITE)


def size_text(answer: Value | None, infinite: bool) -> str:
    """The answer of a receptive field; without one, whether it is infinite or unknown."""
    match answer:
        case Exact(tokens):
            return count(tokens)
        case Enclosure(low, _):
            return count(int(math.exp(low))) if low < MOST else f"exp({low:.4g})"
        case Bracket(low, _):
            return f"at least {count(low)}"
    return "infinite" if infinite else "unknown"


def reach_text(reach: Reach) -> str:
    """The farthest distance within reach, in tokens.

    >>> from farfield.numerics.price import reach
    >>> reach_text(reach("-n/4", 7)), reach_text(reach("-log(1+n)", 7))
    ('21 back', 'none')
    """
    if reach.tokens is None:
        return "unknown" if reach.answer is None else reach.answer.text()
    return "none" if reach.farthest is None else f"{count(reach.farthest)} back"


def share_text(x: float | None) -> str:
    """A share.

    >>> share_text(0.25), share_text(5e-324), share_text(1 - 1e-9), share_text(None)
    ('0.25', '< 1e-300', '> 0.999', 'unknown')
    """
    if x is None:
        return "unknown"
    if 0 < x < LEAST:
        return f"< {LEAST:g}"
    return "> 0.999" if 0.9995 <= x < 1 else f"{x:.3g}"


def sampled(segments: int, length: int) -> str:
    """What a number was measured on.

    >>> sampled(1, 64), sampled(8, 64)
    ('1 segment of 64 tokens, no interval', '8 segments of 64 tokens, 95 %')
    """
    if segments == 1:
        return f"1 segment of {length} tokens, no interval"
    return f"{segments} segments of {length} tokens, 95 %"
