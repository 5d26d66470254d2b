"""What may mean two things, and is refused with both: exponents without brackets, glued names.

People write `x^1/2` for a root, `e^-n/8` for `exp(-n/8)`, `0x10` for 16; the grammar would read
something else. What is typeset or programmed has one meaning: LaTeX shows where an exponent ends,
and `**` binds as in Python. Even there `x**1/2` is refused: nobody writes a first power.
"""

from __future__ import annotations

import math
import re

from sympy import Expr, S

from farfield.theory.formula.reading import Reading
from farfield.theory.formula.spelling import Token
from farfield.theory.functions.nodes import n
from farfield.theory.functions.record import spellings

_LITERALS = {"x": (16, "a hexadecimal"), "o": (8, "an octal"), "b": (2, "a binary")}
_FRACTION = 5  # the greatest denominator of an exponent as people write it: x^3/4, hardly x^2/9


def require_closed(p: Reading, base: Expr, column: int, begin: int) -> None:
    """Refuse an exponent without brackets, read from `begin` on, that may go on behind its end."""
    exponent = p.tokens[begin : p.position]
    sign = [value for _, value, _ in exponent if value in ("+", "-")]
    kind, value, _ = exponent[-1]
    if len(exponent) != len(sign) + 1 or kind not in ("number", "name"):
        return
    raised = p.tokens[begin - 1]
    follows, after = p.token, p.tokens[min(p.position + 1, len(p.tokens) - 1)]
    if follows[:2] == ("op", "/"):
        wide = _divides(p, raised[1], value, after, base)
    elif follows[:2] == ("op", "*"):
        wide = raised[1] == "^" and not p.latex and _of_e(p, base, value) and after[1] != "("
    else:
        wide = raised[1] == "^" and not p.latex and _goes_on(p, base, kind, value)
    if not wide:
        return
    what = p.text[column : raised[2]].strip()
    what = what if len(what) <= 30 else what[:14] + "..." + what[-13:]
    power = f"{what}{raised[1]}{''.join(sign)}{value}"
    joined = follows[1] if follows[1] in ("/", "*") else ""
    rest = after if joined else follows
    called = rest[1] in spellings()
    with_it = rest[1] + ("(...)" if called else "...)" if rest[1] == "(" else "")
    p.fail(
        column,
        f"{power}{joined}{with_it} may mean {what}{raised[1]}({''.join(sign)}{value}"
        f"{joined or '*'}{with_it}) or ({power}){joined or '*'}{with_it}; write it with brackets",
    )


def _divides(p: Reading, sign: str, value: str, after: Token, base: Expr) -> bool:
    """Whether a quotient behind an exponent may belong to it."""
    if value.isdigit() and int(value) == 1:
        return True
    if sign == "**" or p.latex:
        return False
    if value == p.distance and not base.has(n):
        return not base.is_negative  # (-1)^(n/2) is not real
    if not after[1].isdigit() or not 2 <= int(after[1][:9]) <= _FRACTION:
        return False
    return value.isidentifier() or (value.isdigit() and math.gcd(int(value), int(after[1])) == 1)


def _of_e(p: Reading, base: Expr, value: str) -> bool:
    """`e^-2*n`, `e^-a*n`: the distance is wanted in the exponent."""
    return base == S.Exp1 and value != p.distance


def _goes_on(p: Reading, base: Expr, kind: str, value: str) -> bool:
    """Whether a factor without a sign follows that may belong to the exponent."""
    follows, word, column = p.token
    named = follows == "name" and word not in ("if", "else", "and", "or", "not", "for")
    if not named and (follows, word) != ("op", "("):
        return False
    if p.text[column - 1].isspace():
        return named and _of_e(p, base, value)
    return named or kind == "name" or not base.has(n)


def require_product(p: Reading) -> None:
    """Refuse a number and a name side by side that are no product, or may be none."""
    kind, digits, begin = p.tokens[p.position - 1]
    _, word, column = p.token
    if kind != "number":
        return
    glued = column == begin + len(digits)
    shown = p.text[begin : column + len(word)]
    radix = re.fullmatch(r"([xob])([0-9A-Fa-f]+)", word, re.IGNORECASE)
    if glued and digits == "0" and radix:
        base, name = _LITERALS[radix[1].lower()]
        try:
            means = str(int(radix[2], base))
        except ValueError:
            means = "no such number"
        p.fail(
            begin,
            f"{shown} may mean {name} number ({means}), or 0*{word}, which is 0; write which",
        )
    if not digits.strip("0."):
        p.fail(
            begin,
            f"{shown} may mean heads of a list, as in [-n/4; 0 x7], or a product, which is 0; "
            "write brackets around the list, or 0",
        )
    if glued and (word in ("j", "J") or (word in ("f", "F") and "." in digits)):
        means = "an imaginary number" if word in ("j", "J") else "a number in single precision"
        p.fail(begin, f"{shown} may mean {means}, or {digits}*{word}; write * for a product")


def require_name(p: Reading, name: str, column: int) -> None:
    """Refuse a parameter whose name reads as something else, unless its domain is given."""
    if name in p.domains:
        return
    if re.fullmatch(r"[eE]\d+", name):
        digits = name[1:]
        p.fail(
            column,
            f"{name} may mean 1e{digits}, or e^{digits}, or a parameter; write which, or say that "
            f"it is a parameter: --assume {name}=positive",
        )
    function = name.removesuffix("n")
    if function != name and len(function) > 1 and function in spellings():
        p.fail(
            column,
            f"{name} may mean {function}(n), or a parameter; write {function}(n), or say that it "
            f"is a parameter: --assume {name}=positive",
        )
