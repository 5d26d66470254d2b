"""Refused with both of their meanings: exponents without brackets, glued names, `a/b c`, `1% n`.

People write `x^1/2` for a root, `e^-n/8` for `exp(-n/8)`, `0x10` for 16; the grammar would read
something else. Typeset or programmed text has one meaning: LaTeX shows where an exponent ends,
and `**` binds as in Python. Even there `x**1/2` is refused: nobody writes a first power.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from sympy import Expr, S

from farfield.theory.answers.notation import shortened
from farfield.theory.formula.reading import GREEK, Reading, Token
from farfield.theory.formula.vocabulary import CONSTANTS
from farfield.theory.functions.nodes import n
from farfield.theory.functions.record import SPELLINGS

_LITERALS = {"x": (16, "a hexadecimal"), "o": (8, "an octal"), "b": (2, "a binary")}
_OPEN = ("+", "-", "^", "**", "!")
_FRACTION = 5  # the greatest denominator of an exponent as people write it: x^3/4, hardly x^2/9


def require_closed(p: Reading, base: Expr, column: int, begin: int) -> None:
    """Refuse an exponent without brackets, read from `begin` on, that may go on behind its end."""
    exponent = p.tokens[begin : p.position]
    follows, after = p.token, p.tokens[min(p.position + 1, len(p.tokens) - 1)]
    if any(kind == "op" and value not in _OPEN for kind, value, _ in exponent):
        return
    sign, place = p.tokens[begin - 1][1:]
    typeset = sign == "**" or p.latex
    if follows[:2] in (("op", "/"), ("op", "//")):
        wide = _is_first(exponent) or (not typeset and _divides(p, base, exponent, after))
    elif follows[:2] == ("op", "*"):
        wide = not typeset and base == S.Exp1 and _is_single(p, after)
    else:
        wide = not typeset and _goes_on(p, base, exponent)
    if not wide:
        return
    what = shortened(p.text[column:place].strip(), 30)
    power = "".join(value for _, value, _ in exponent)
    joined = follows[1] if follows[0] == "op" and follows[1] != "(" else ""
    rest = after if joined else follows
    called = rest[1] in SPELLINGS
    last = rest[1] + ("(...)" if called else "...)" if rest[1] == "(" else "")
    product = f"{joined or '*'}{last}"
    p.fail(
        column,
        f"{what}{sign}{power}{joined}{last} may mean {what}{sign}({power}{product}) or "
        f"({what}{sign}{power}){product}; write it with brackets",
    )


def _is_first(exponent: list[Token]) -> bool:
    """A first power, which nobody writes but before a root: `x^1/2`, `x^-1/2`."""
    kind, value, _ = exponent[-1]
    return kind == "number" and float(value) == 1 and not _beyond_signs(exponent)


def _beyond_signs(exponent: list[Token]) -> bool:
    return any(value not in ("+", "-") for _, value, _ in exponent[:-1])


def _divides(p: Reading, base: Expr, exponent: list[Token], after: Token) -> bool:
    """Whether a quotient behind an exponent may belong to it."""
    if any(value == p.distance for _, value, _ in exponent) and not base.has(n):
        return not base.is_negative  # (-1)^(n/2) is not real
    if _beyond_signs(exponent):
        return False
    kind, value, _ = exponent[-1]
    if kind == "name" and after[0] == "name":
        return after[1] != p.distance and _is_single(p, after)
    if after[0] != "number" or not float(after[1]).is_integer():
        return False
    below = int(float(after[1]))
    small = 2 <= below <= _FRACTION
    odd = value.isdigit() and int(value) != 2 and math.gcd(int(value), below) == 1
    return small and (kind == "name" or odd)


def _is_single(p: Reading, after: Token) -> bool:
    """Whether a number or a name follows that is no function with its argument."""
    return after[0] == "number" or (after[0] == "name" and after[1] not in SPELLINGS)


def _goes_on(p: Reading, base: Expr, exponent: list[Token]) -> bool:
    """Whether a factor without a sign follows that may belong to the exponent."""
    kind, word, column = p.token
    named = kind == "name" and word not in ("if", "else", "and", "or", "not", "for")
    if not named and (kind, word) != ("op", "("):
        return False
    if p.text[column - 1].isspace():
        return base == S.Exp1 and _is_single(p, p.token)
    return named or exponent[-1][0] == "name" or not base.has(n)


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
    if glued and word in ("k", "K") and word not in p.domains:
        p.fail(
            begin,
            f"{shown} may mean {digits} thousand, or {digits}*{word}; write the number, or * for a "
            "product",
        )
    if glued and word in ("e", "E") and p.ahead(2)[1:] not in (["^"], ["**"]):
        p.fail(
            begin, f"{shown} may mean {digits}*e, or a power of ten, as {digits}e-3; write which"
        )
    if glued and (word in ("j", "J") or (word in ("f", "F") and not digits.isdigit())):
        means = "an imaginary number" if word in ("j", "J") else "a number in single precision"
        p.fail(begin, f"{shown} may mean {means}, or {digits}*{word}; write * for a product")


def require_apart(p: Reading, column: int, op: str) -> None:
    """Refuse `a/b c`, which has two meanings, but for numbers that are set apart: `1/2 n`."""
    kinds = [kind for kind, _, _ in p.tokens[p.position - 3 : p.position]]
    if kinds == ["number", "op", "number"] and p.text[column - 1].isspace():
        return
    shown = p.text[max(0, column - 12) : column + 12].strip()
    p.fail(
        column,
        f"{shown!r} may mean (a{op}b)*c or a{op}(b*c); write the product with * and brackets",
    )


def require_remainder(p: Reading, begin: int, op: str) -> None:
    """Refuse `1% n` and, behind the product that begins at a symbol, `-n % 2` and `-n // 2`.

    Python takes the sign into the remainder, C and writing on paper do not.
    """
    factors, place = p.tokens[begin : p.position - 1], p.tokens[p.position - 1][2]
    kind, number, column = factors[-1]
    if op == "%" and kind == "number":
        p.fail(
            column,
            f"{p.text[column : place + 1]} may mean {number}/100, or the remainder of {number}; "
            f"write {number}/100, or Mod({number}, ...)",
        )
    if p.token[0] == "end":
        what = "a remainder" if op == "%" else "a rounded quotient"
        p.fail(place, f"nothing stands behind {op}; expected the divisor of {what}")
    if factors[0][1] == "-":
        inner = shortened(p.text[factors[1][2] : place].strip(), 30)
        last = p.token[1]
        p.fail(
            factors[0][2],
            f"-{inner} {op} {last} may mean (-{inner}) {op} {last}, or -({inner} {op} {last}); "
            "write it with brackets",
        )


def require_base(p: Reading, column: int, args: Sequence[Expr]) -> None:
    """Refuse `log(2, n + 1)`: Mathematica writes the base first, Python and SymPy write it last."""
    if n in args[1].free_symbols and n not in args[0].free_symbols:
        text = p.text[column : p.tokens[p.position - 1][2] + 1]
        p.fail(
            column,
            f"{text} may mean log({args[1]})/log({args[0]}) or log({args[0]})/log({args[1]}); "
            "write the quotient",
        )


def require_end(p: Reading, value: str, column: int, argument: str) -> None:
    """Refuse `log n+1`, whose spaces say something else than its signs."""
    _, sign, place = p.token
    after = p.tokens[min(p.position + 1, len(p.tokens) - 1)]
    closed_up = not p.text[place - 1].isspace() and not p.text[place + 1 : place + 2].isspace()
    if sign in ("+", "-") and closed_up and not p.latex:
        rest = f"{sign}{after[1]}"
        p.fail(
            column,
            f"{value} {argument}{rest} may mean {value}({argument}{rest}) or "
            f"{value}({argument}){rest}; write it with brackets",
        )


def require_factor(p: Reading, value: str, column: int) -> None:
    """Refuse `a(n)`, a name before the distance alone in brackets: who writes it means a function.

    Capital letters are functions before any bracket: W of Lambert, J and K of Bessel.
    """
    alone = p.ahead(3) == ["(", p.distance, ")"]
    capital = len(value) == 1 and value.isupper()
    if capital or (alone and (len(value) == 1 or value in GREEK or value in CONSTANTS)):
        inner = p.distance if alone else "..."
        p.fail(
            column,
            f"{value}({inner}) may mean a function {value} of {inner}, or a product; write "
            f"{value}*({inner}) for a product",
        )


def require_group(p: Reading) -> None:
    """Refuse braces outside of LaTeX that are no exponent and no argument, as in `-{n/2}`."""
    if not p.latex and p.tokens[p.position - 1][1] not in SPELLINGS:
        p.fail(p.column, _BRACES)


def require_bracket(p: Reading, column: int) -> None:
    r"""Refuse braces that LaTeX prints, as in `-\{n\}`, but for those of a function's arguments."""
    if p.text.startswith(("\\{", "\\lbrace"), column):
        p.fail(column, _BRACES)


_BRACES = "{...} may mean brackets, or the fractional part; write (...), or x - floor(x)"
