"""Parameters of a formula: their names, and the domains they may lie in."""

from __future__ import annotations

import re

from sympy import Expr, S, Symbol

from farfield.theory.answers.errors import InputError
from farfield.theory.answers.number import exact
from farfield.theory.formula.reading import GREEK
from farfield.theory.formula.vocabulary import RESERVED
from farfield.theory.functions.record import spellings

DOMAINS = {
    "positive": {"positive": True},
    "nonnegative": {"nonnegative": True},
    "negative": {"negative": True},
    "nonpositive": {"nonpositive": True},
    "real": {"real": True},
}
_ENDS = {
    "positive": (S.Zero, S.Infinity, False, False),
    "nonnegative": (S.Zero, S.Infinity, True, False),
    "negative": (S.NegativeInfinity, S.Zero, False, False),
    "nonpositive": (S.NegativeInfinity, S.Zero, False, True),
    "real": (S.NegativeInfinity, S.Infinity, False, False),
}


def parameter(name: str, domain: str = "positive") -> Symbol:
    """The symbol of a parameter; domain: positive, nonnegative, negative, nonpositive, real, or
    an interval such as `[0, 2)`.

    >>> parameter("r1").is_positive, parameter("q", "[0, 2)").is_nonnegative
    (True, True)
    """
    check_name(name)
    return Symbol(name, **DOMAINS[sign_domain(domain)])


def sign_domain(domain: str) -> str:
    """The widest of the five sign domains that holds an interval; itself for a sign domain."""
    if domain in DOMAINS:
        return domain
    low, high, closed_low, closed_high = interval(domain)
    if low > 0 or (low == 0 and not closed_low):
        return "positive"
    if low == 0:
        return "nonnegative"
    if high < 0 or (high == 0 and not closed_high):
        return "negative"
    return "nonpositive" if high == 0 else "real"


def interval(domain: str) -> tuple[Expr, Expr, bool, bool]:
    """The ends of a domain and whether each belongs to it.

    >>> interval("[0, 2)")
    (0, 2, True, False)
    """
    if domain in _ENDS:
        return _ENDS[domain]
    match = re.fullmatch(r"\s*([\[(])\s*([^,\s]+)\s*,\s*([^,\s]+)\s*([\])])\s*", str(domain))
    if match is None:
        raise InputError(
            f"assumption {str(domain)[:40]!r} is not known; accepted: {', '.join(DOMAINS)}, "
            "or an interval such as [0, 2)"
        )
    ends = {"oo": S.Infinity, "+oo": S.Infinity, "-oo": S.NegativeInfinity}
    low, high = (ends.get(t) or exact(t, "end of the interval") for t in match.group(2, 3))
    closed_low, closed_high = match.group(1) == "[", match.group(4) == "]"
    if low > high or (low == high and not (closed_low and closed_high)):
        raise InputError(f"assumption {domain!r} is an empty interval")
    return low, high, closed_low and low.is_finite, closed_high and high.is_finite


def belongs(number: Expr, domain: str) -> bool:
    """Whether a real number lies in a domain.

    >>> belongs(S(2), "[0, 2)"), belongs(S(0), "[0, 2)"), belongs(S(0), "positive")
    (False, True, False)
    """
    low, high, closed_low, closed_high = interval(domain)
    above = number >= low if closed_low else number > low
    below = number <= high if closed_high else number < high
    return bool(above) and bool(below)


def check_name(name: str) -> None:
    """Raise InputError unless a parameter may be called so."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*", name) or len(name) > 32:
        raise InputError(
            f"{name[:40]!r} is not a name for a parameter; accepted: letters, digits and single "
            "underscores, beginning with a letter, 32 characters at most"
        )
    if name == "n":
        raise InputError("n is the distance and cannot be a parameter; choose another name")
    if (name in spellings() and name not in GREEK) or name in RESERVED:
        raise InputError(f"{name!r} is the name of a function or constant, not of a parameter")
