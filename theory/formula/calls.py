"""Functions with their arguments: `log(n)`, `log n`, `log^2(n)`, `x.log()`, `clip(x, 0, 1)`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from sympy import Expr, Integer, S

from farfield.theory.formula import ambiguities, conditions, finite_sums
from farfield.theory.formula.limits import power
from farfield.theory.formula.reading import Reading
from farfield.theory.formula.spelling import GREEK
from farfield.theory.formula.words import AMBIGUOUS, CALLED
from farfield.theory.functions.record import records, spellings

_CASTS = ("float", "double", "to", "astype", "float64", "float32", "half", "asarray", "array")
_BOUNDS = ("clip", "clamp")


def call(p: Reading, value: str, column: int) -> Expr:
    """A name with the bracket that follows it."""
    if value == "Piecewise":
        return conditions.piecewise(p, column)
    if value in ("Sum", "Product"):
        return finite_sums.finite_sum(p, column, value)
    if value == "where":
        return conditions.chosen(p, column)
    if value in _CASTS:
        p.expect("(")
        inner = p.sum()
        p.expect(")")
        return inner
    return _applied(p, value, column, [])


def method(p: Reading, value: Expr) -> Expr:
    """`.log()`, `.clamp(min=1)`, `.float()` after a value, as of a tensor."""
    p.expect(".")
    kind, name, column = p.next()
    if kind != "name" or not p.begins("("):
        p.fail(column, f"expected a method such as .log(), found {name!r}")
    if name in _CASTS:
        while p.next()[1] != ")":
            if p.token[0] == "end":
                p.fail(column, f"the bracket of .{name}( is not closed")
        return value
    return _applied(p, name, column, [value])


def to_the(p: Reading, column: int) -> Expr:
    """`exp^...`."""
    p.next()
    begin = p.position
    exponent = p.nested(p.exponent)
    ambiguities.require_closed(p, S.Exp1, column, begin)
    return p.build(column, spellings()["exp"].build, exponent)


def power_of(p: Reading, value: str, column: int) -> Expr:
    """`log^2(1 + n)`, the square of the logarithm."""
    p.next()
    if value in GREEK and not (p.token[0] == "number" and p.ahead(2)[1:] == ["("]):
        p.position -= 1
        return p.parameter(value, column)
    grouped = p.accept("{") or p.accept("(")
    at = p.column
    if not grouped:
        kind, digits, _ = p.next()
        exponent = Integer(int(digits)) if kind == "number" and digits.isdigit() else None
    elif grouped == "{" and p.begins("("):
        p.fail(at, f"{value}^{{(...)}} may mean a power or a function applied again; write which")
    else:
        exponent = p.choice()
        p.expect("}" if grouped == "{" else ")")
    if exponent is None or not exponent.is_Rational or not 0 < exponent < 100:
        p.fail(at, f"{value}^... takes a positive power, as {value}^2(n); write another outside")
    if p.begins("/"):
        shown = "".join(p.ahead(2))
        p.fail(
            at,
            f"{value}^{exponent}{shown}(...) may mean {value}^({exponent}{shown})(...) or a "
            "quotient; write it with brackets",
        )
    if not p.begins("(") and not names_argument(p):
        p.fail(p.column, f"expected the argument of {value} in brackets")
    base = _applied(p, value, column, []) if p.begins("(") else of_argument(p, value, column)
    return p.build(column, power, base, exponent)


def names_argument(p: Reading) -> bool:
    """Whether a function is followed by its argument without brackets."""
    kind, value, _ = p.token
    plain = value not in ("if", "else", "and", "or", "not") and value not in CALLED
    return (kind == "name" and plain) or (p.braces and p.begins("{"))


def of_argument(p: Reading, value: str, column: int) -> Expr:
    """`log n`."""
    spelling = spellings()[value]
    if spelling.least > 1:
        p.fail(column, f"{value} takes {spelling.least} arguments; write {value}(...)")
    return p.build(column, spelling.build, _argument(p, value, column))


def _argument(p: Reading, value: str, column: int) -> Expr:
    """The one name, group or function that a function is applied to without brackets."""
    grouped, argument = p.begins("{"), p.bare()
    if grouped:
        return argument
    follows = p.token[1]
    open_ended = ("^", "**", "!", "(", "/", "//", "%", *(() if p.latex else ("*",)))
    if follows in open_ended or names_argument(p):
        said = p.tokens[p.position - 1][1]
        next_one = p.ahead(2)[1:]
        after = next_one[0] if next_one and next_one[0].isalnum() else "..."
        rest = f" {follows}" if follows.isalnum() else f"{follows}{after}"
        p.fail(
            column,
            f"{value} {said}{rest} may mean {value}({said}{rest}) or {value}({said}){rest}; write "
            "it with brackets",
        )
    ambiguities.require_end(p, value, column, p.tokens[p.position - 1][1])
    return argument


def _applied(p: Reading, value: str, column: int, args: list[Expr]) -> Expr:
    """A function with the arguments in the bracket that opens here, after those given."""
    if value not in spellings() and value not in _BOUNDS:
        if base := re.fullmatch(r"(?:log)?_(\w+)", value):
            p.fail(column, f"a logarithm to base {base[1]} is written log(...)/log({base[1]})")
        if len(value) == 1:
            p.fail(column, f"{value} is no function; write a product as {value}*(...)")
        if value in AMBIGUOUS:
            p.fail(column, f"{value} may mean {AMBIGUOUS[value]}; write which")
        p.fail(column, f"unknown function {value!r}{_meant(value, spellings())}")
    p.expect("(")
    named: dict[str, Expr] = {}
    while not p.accept(")"):
        if args or named:
            p.accept(",")
        if p.ahead(2)[1:] == ["="] and p.token[0] == "name":
            key = p.next()[1]
            p.expect("=")
            named[key] = p.choice()
        else:
            args.append(p.choice())
        if not p.begins(",") and not p.begins(")"):
            p.expect(")")
    if value in _BOUNDS:
        return _clipped(p, value, column, args, named)
    if named:
        p.fail(column, f"{value} takes no argument {next(iter(named))!r} by name")
    spelling = spellings()[value]
    least, most = spelling.least, spelling.most
    if not least <= len(args) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        p.fail(column, f"{value} takes {wanted} argument(s), {len(args)} given")
    if any(a in (S.Infinity, S.NegativeInfinity) for a in args):
        p.fail(column, f"{value} of infinity")
    return p.build(column, spelling.build, *args)


def _clipped(p: Reading, value: str, column: int, args: list[Expr], named: dict[str, Expr]) -> Expr:
    """`clip(x, low, high)`, either end left out or given by name."""
    keys = {
        "min": "min",
        "a_min": "min",
        "low": "min",
        "max": "max",
        "a_max": "max",
        "high": "max",
    }
    ends = {keys[k]: v for k, v in named.items() if k in keys}
    if not args or len(ends) < len(named) or len(args) > 3:
        p.fail(column, f"{value} takes a value, a least and a greatest one")
    for key, end in zip(("min", "max"), args[1:], strict=False):
        ends.setdefault(key, end)
    found = args[0]
    if ends.get("min", S.NegativeInfinity) != S.NegativeInfinity:
        found = p.build(column, spellings()["Max"].build, found, ends["min"])
    if ends.get("max", S.Infinity) != S.Infinity:
        found = p.build(column, spellings()["Min"].build, found, ends["max"])
    return found


def _meant(word: str, known: Iterable[str]) -> str:
    """What a user may have meant by a word that is misspelt, never another function."""
    alike = [k for k in known if k.lower() == word.lower()]
    letters = word.rstrip("0123456789")
    if not alike and letters == word and len(word) > 3:
        alike = [k for k in difflib.get_close_matches(word, list(known), 1, 0.8) if k.isalpha()]
    if alike:
        return f"; did you mean {alike[0]!r}?"
    accepted = sorted(record.names[0] for record in records() if record.names)
    return f"; accepted, among others: {', '.join(accepted)}"
