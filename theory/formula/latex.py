"""The grammar of LaTeX as input: groups in braces, fractions, roots, cases."""

from __future__ import annotations

from sympy import Expr, Integer, Rational, S

from farfield.theory.formula import conditions, finite_sums
from farfield.theory.formula.bounded_nodes import power
from farfield.theory.formula.reading import Reading, Token

_HELD = ("if", "for", "when", "otherwise", "else")


def group(p: Reading) -> Expr:
    """`{...}`."""
    p.expect("{")
    inner = p.choice()
    p.expect("}")
    return inner


def command(p: Reading, value: str, column: int) -> Expr | None:
    r"""`\frac{a}{b}`, `\\sqrt[k]{x}`, `\\sum_{k=0}^{9}`, after their name; else None."""
    if value in ("Sum", "Product"):
        return finite_sums.typeset_sum(p, column, value)
    if value == "frac":
        above = _part(p)
        return p.build(column, lambda a, b: a * power(b, S.NegativeOne), above, _part(p))
    if value == "sqrt" and not p.begins("("):
        root = Integer(2)
        if p.accept("["):
            _, digits, place = p.next()
            if not digits.isdigit() or int(digits) < 2:
                p.fail(place, "the index of a root is a whole number from 2")
            root = Integer(int(digits))
            p.expect("]")
        return p.build(column, power, _part(p), Rational(1, root))
    return None


def _part(p: Reading) -> Expr:
    """A group, or the single digit that TeX takes for one."""
    if p.begins("{"):
        return group(p)
    _, digits, column = p.token
    if digits.isdigit():
        rest: list[Token] = [("number", digits[1:], column + 1)] if digits[1:] else []
        p.tokens[p.position : p.position + 1] = rest
        return Integer(int(digits[0]))
    p.fail(column, "expected a group in braces")


def cases(p: Reading, value: str, column: int) -> Expr:
    r"""`\begin{cases} a & c \\ b & \\text{otherwise} \\end{cases}`, after its beginning."""
    if value != "begin cases":
        p.fail(column, "expected a number, a name, a function or a bracket")
    pieces = []
    while True:
        piece = p.choice()
        p.accept(",")
        p.accept("&")
        parts = []
        while p.token[1] in _HELD:
            parts.append(p.next()[1])
        other = "otherwise" in parts or "else" in parts
        pieces.append((piece, S.true if other else conditions.condition(p)))
        kind, word, place = p.next()
        if (kind, word) == ("tex", "row"):
            if p.token[1] != "end cases":
                continue
            _, word, place = p.next()
        if word == "end cases":
            return conditions.pieced(p, column, pieces)
        p.fail(place, "expected the next case or the end of the cases")
