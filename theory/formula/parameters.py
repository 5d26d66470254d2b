"""Parameters of a formula: their names, and the domains they may lie in."""

from __future__ import annotations

import re

import sympy
from sympy import S, Symbol

from farfield.theory.answers.errors import InputError
from farfield.theory.answers.number import exact
from farfield.theory.formula.reading import GREEK
from farfield.theory.formula.vocabulary import RESERVED
from farfield.theory.functions.record import SPELLINGS

DOMAINS = {
    "positive": sympy.Interval.open(0, S.Infinity),
    "nonnegative": sympy.Interval(0, S.Infinity),
    "negative": sympy.Interval.open(S.NegativeInfinity, 0),
    "nonpositive": sympy.Interval(S.NegativeInfinity, 0),
    "real": sympy.Interval(S.NegativeInfinity, S.Infinity),
}


def parameter(name: str, domain: str = "positive") -> Symbol:
    """The symbol of a parameter; domain: positive, nonnegative, negative, nonpositive, real, or
    an interval such as `[0, 2)`.

    >>> parameter("r1").is_positive, parameter("q", "[0, 2)").is_nonnegative
    (True, True)
    """
    check_name(name)
    return Symbol(name, **{sign_domain(domain): True})


def sign_domain(domain: str) -> str:
    """The widest of the five sign domains that holds an interval; itself for a sign domain."""
    if str(domain) in DOMAINS:
        return str(domain)
    return next(name for name, reals in DOMAINS.items() if interval(domain).is_subset(reals))


def domain_of(symbol: Symbol) -> str:
    """The narrowest sign domain that a symbol's assumptions say; positive where they say none.

    Raises:
        InputError: for a symbol that may not be real, or not positive, as far as they say.

    >>> domain_of(Symbol("a", integer=True)), domain_of(Symbol("a"))
    ('real', 'positive')
    """
    facts = symbol.assumptions0
    domain = next((d for d in DOMAINS if facts.get(d) or facts.get(f"extended_{d}")), None)
    if domain is None and (facts.get("complex") or facts.get("positive") is False):
        raise InputError(
            f"SymPy may take {symbol.name} for complex, or says only what it is not; accepted: "
            "a symbol without assumptions, or one that is real, positive, negative or the like"
        )
    return domain or "positive"


def interval(domain: str) -> sympy.Set:
    """The real numbers of a domain: an interval, or a single number.

    >>> interval("[0, 2)"), 2 in interval("[0, 2)"), interval("positive").sup
    (Interval.Ropen(0, 2), False, oo)
    """
    if str(domain) in DOMAINS:
        return DOMAINS[str(domain)]
    match = re.fullmatch(r"\s*([\[(])\s*([^,\s]+)\s*,\s*([^,\s]+)\s*([\])])\s*", str(domain))
    if match is None:
        raise InputError(
            f"assumption {str(domain)[:40]!r} is not known; accepted: {', '.join(DOMAINS)}, "
            "or an interval such as [0, 2)"
        )
    ends = {"oo": S.Infinity, "+oo": S.Infinity, "-oo": S.NegativeInfinity}
    low, high = (ends.get(t) or exact(t, "end of the interval") for t in match.group(2, 3))
    whole = sympy.Interval(low, high, match.group(1) == "(", match.group(4) == ")")
    if whole.is_empty:
        raise InputError(f"assumption {domain!r} is an empty interval")
    return whole


def check_name(name: str) -> None:
    """Raise InputError unless a parameter may be called so."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*", name) or len(name) > 32:
        raise InputError(
            f"{name[:40]!r} is not a name for a parameter; accepted: letters, digits and single "
            "underscores, beginning with a letter, 32 characters at most"
        )
    if name == "n":
        raise InputError("n is the distance and cannot be a parameter; choose another name")
    if (name in SPELLINGS and name not in GREEK) or name in RESERVED:
        raise InputError(f"{name!r} is the name of a function or constant, not of a parameter")
