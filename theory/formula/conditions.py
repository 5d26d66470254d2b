"""Conditions and pieces: comparisons, possibly chained, and what `Piecewise` makes of them."""

from __future__ import annotations

import re
from collections.abc import Iterable

import sympy
from sympy import Basic, Expr, S

from farfield.theory.formula.reading import Reading
from farfield.theory.formula.vocabulary import CONDITIONS
from farfield.theory.functions.nodes import n, unevaluated
from farfield.theory.relations import BY_SYMBOL

_FAR = 10**12  # a distance beyond all pieces that people write
ENDED = (
    f"no value is given for large n, as n = {_FAR}; end the pieces with one for all the "
    "rest: (value, True)"
)


def piecewise(p: Reading, column: int) -> Expr:
    """`Piecewise((value, condition), ...)`, after its name."""
    p.expect("(")
    pieces = [_piece(p)]
    while p.accept(","):
        pieces.append(_piece(p))
    p.expect(")")
    return pieced(p, column, pieces)


def chosen(p: Reading, column: int) -> Expr:
    """`where(condition, value, other)`, after its name, as NumPy and torch have it."""
    p.expect("(")
    held = condition(p)
    p.expect(",")
    value = p.choice()
    p.expect(",")
    other = p.choice()
    p.expect(")")
    return where(p, column, held, value, other)


def where(p: Reading, column: int, held: object, value: Expr, other: Expr) -> Expr:
    """One value where a condition holds, another where it does not."""
    return pieced(p, column, [(value, held), (other, S.true)])


def reprinted(text: str) -> str:
    """What farfield prints, in the words of the grammar: `{a for c; b otherwise}`, `(n mod 5)`.

    >>> reprinted("{-n/8 for n < 64; 0 for (n mod 5) = 0; -oo otherwise}")
    'Piecewise((-n/8, n < 64), (0, Mod(n , 5) == 0), (-oo, True))'
    """
    if "\\" in text:  # LaTeX has cases of its own
        return text
    while match := re.search(r"\bmod\b(?!\s*\()", text):
        begin, end = _around(text, match.start(), "(", ")")
        if begin < 0:
            return text
        inner = f"{text[begin + 1 : match.start()]}, {text[match.end() : end].strip()}"
        called = text[:begin][-1:].isalnum()  # the brackets of a function stay
        before, after = (begin + 1, end) if called else (begin, end + 1)
        text = f"{text[:before]}Mod({inner}){text[after:]}"
    while match := re.search(r"\botherwise\s*\}", text):
        begin, end = _around(text, match.start(), "{", "}")
        if begin < 0:
            return text
        pieces = [part.strip() for part in text[begin + 1 : end].split(";")]
        cases = [part.rpartition(" for ") for part in pieces[:-1]]
        last = pieces[-1].removesuffix("otherwise").strip()
        conditions = [re.sub(r"(?<![<>=!])=(?!=)", "==", condition) for _, _, condition in cases]
        shown = [f"({v}, {c})" for (v, _, _), c in zip(cases, conditions, strict=True)]
        text = f"{text[:begin]}Piecewise({', '.join([*shown, f'({last}, True)'])}){text[end + 1 :]}"
    return text


def _around(text: str, place: int, opening: str, closing: str) -> tuple[int, int]:
    """The brackets around a place; -1 where there are none."""
    begin, depth = place, 1
    while begin >= 0 and depth:
        begin -= 1
        depth += (text[begin] == closing) - (text[begin] == opening) if begin >= 0 else 0
    end, depth = place, 1
    while end < len(text) and depth:
        depth += (text[end] == opening) - (text[end] == closing)
        end += 1
    return (begin, end - 1) if not depth else (-1, -1)


def indicator(p: Reading, column: int) -> Expr:
    """`1[n < w]`, 1 where a condition holds and 0 elsewhere, after its sign."""
    p.accept_name("_")
    closing = {"[": "]", "(": ")", "{": "}"}
    opening = p.accept(*closing)
    if opening is None:
        p.fail(p.column, "expected the condition of the indicator in brackets: [n < w]")
    held = condition(p)
    p.expect(closing[opening])
    return where(p, column, held, S.One, S.Zero)


def pieced(p: Reading, column: int, pieces: list[tuple[Expr, Basic]]) -> Expr:
    """The pieces as one node; a single one that always holds is itself."""
    for _, c in pieces:  # SymPy takes a Piecewise out of a condition, and evaluates on the way
        around = c.atoms(sympy.Function, sympy.Pow) - c.atoms(sympy.Piecewise)
        if any(e.has(sympy.Piecewise) for e in around):
            p.fail(column, "a condition on a function of a Piecewise; take the pieces apart")
    live = [(value, c) for value, c in pieces if c != S.false]
    if live and live[0][1] == S.true:
        return live[0][0]
    if ended(pieces):
        p.fail(column, ENDED)
    return p.build(column, unevaluated(sympy.Piecewise), *(live or pieces))


def ended(pieces: Iterable[tuple[Expr, Basic]]) -> bool:
    """Whether plain conditions give no value at a distance beyond what people write."""
    conditions = [c for _, c in pieces]
    plain = not any(c.atoms(sympy.Function, sympy.Pow) for c in conditions)
    return plain and all(c.subs(n, _FAR) == S.false for c in conditions)


def _piece(p: Reading) -> tuple[Expr, Basic]:
    p.expect("(")
    value = p.sum()
    p.expect(",")
    piece = value, condition(p)
    p.expect(")")
    return piece


def condition(p: Reading) -> Basic:
    """A comparison, True, Eq(...) and the like; & binds closer than |."""
    parts = [p.within_bars(lambda: _conjunction(p))]
    while p.accept("|") or p.accept_name("or"):
        parts.append(p.within_bars(lambda: _conjunction(p)))
    return parts[0] if len(parts) == 1 else sympy.Or(*parts, evaluate=False)


def _conjunction(p: Reading) -> Basic:
    """And binds more tightly than or."""
    parts = [_comparison(p)]
    while p.accept("&") or p.accept_name("and"):
        parts.append(_comparison(p))
    return parts[0] if len(parts) == 1 else sympy.And(*parts, evaluate=False)


def _comparison(p: Reading) -> Basic:
    """One condition: a truth value, a negation, a bracket, or a comparison, possibly chained."""
    kind, value, column = p.token
    if kind == "name" and value in ("True", "False"):
        p.next()
        return S.true if value == "True" else S.false
    if kind == "name" and value in CONDITIONS:
        return _called(p, value, column)
    if p.accept("~") or p.accept_name("not"):
        return sympy.Not(p.nested(lambda: _comparison(p)), evaluate=False)
    if _in_brackets(p):
        p.expect("(")
        inner = p.nested(lambda: condition(p))
        p.expect(")")
        return inner
    left = p.sum()
    relations = []
    while op := p.accept(*BY_SYMBOL):
        right = p.sum()
        easy = left.is_Rational and right.is_Rational
        relations.append(BY_SYMBOL[op].kind(left, right, evaluate=bool(easy)))
        left = right
    if not relations:
        p.fail(column, "expected a condition such as n < 16 or True")
    return relations[0] if len(relations) == 1 else sympy.And(*relations, evaluate=False)


def _called(p: Reading, value: str, column: int) -> Basic:
    """A condition written as a function: Eq(a, b), And(...)."""
    p.next()
    p.expect("(")
    logical = value in ("And", "Or", "Not")
    part = (lambda: condition(p)) if logical else p.sum
    args = [p.nested(part)]
    while p.accept(","):
        args.append(p.nested(part))
    p.expect(")")
    if (value == "Not" and len(args) != 1) or (not logical and len(args) != 2):
        p.fail(column, f"{value} takes {1 if value == 'Not' else 2} argument(s)")
    return CONDITIONS[value](*args, evaluate=False)


def _in_brackets(p: Reading) -> bool:
    """Whether the bracket here holds a condition rather than a number."""
    return p.begins("(") and opened(p, p.position + 1)


def opened(p: Reading, start: int | None = None) -> bool:
    """Whether the bracket that was opened before here, or before `start`, holds a comparison."""
    depth, compared, before = 1, False, ""
    for kind, value, _ in p.tokens[p.position if start is None else start :]:
        depth += (value == "(") - (value == ")")
        compared |= value in BY_SYMBOL
        if depth == 1 and (
            value in ("&", "~", "and", "or", "not") or (value == "|" and before == ")" and compared)
        ):
            return True
        before = value
        if depth == 0 or (depth == 1 and value in (",", "if")):
            return False
        if depth == 1 and (value in BY_SYMBOL or (kind == "name" and value in CONDITIONS)):
            return True
    return False
