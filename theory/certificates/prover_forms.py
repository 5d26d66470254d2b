"""Formulas as printed terms of Rocq: one form a node, brackets, names, conditions.

A `Form` mirrors a SymPy expression node by node, so that printing it, and proving something of each
of its parts, walk the same tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sympy
from sympy import Basic, Expr, S, Symbol

from farfield.theory.algebra import door
from farfield.theory.answers.errors import InputError
from farfield.theory.answers.notation import beginning
from farfield.theory.functions.nodes import Lookup, Root, n
from farfield.theory.relations import BY_KIND


class NoCertificate(InputError):
    """No certificate is written for this form; one line names the part that is not covered."""

    def __init__(self, why: str) -> None:
        super().__init__(f"no certificate for this form: {why}")


def without_roots(e: Expr) -> Expr:
    """The expression with its kept powers as powers."""
    return e.replace(lambda a: isinstance(a, Root), lambda a: a.plain)


Notation = tuple[str, int, Sequence[int]]
"""A text with places for the parts and for `n`, its level in the prover's grammar, and the levels
up to which its parts need no brackets."""


@dataclass(frozen=True)
class Form:
    """A node: its operation, its parts, its expression; its notation where that is not the one of
    the operation."""

    op: str
    args: tuple[Form, ...] = ()
    expr: Basic = S.NaN
    notation: Notation | None = None

    @property
    def constant(self) -> bool:
        """Whether it does not change with the distance, and needs no distinction of cases."""
        return not self.expr.has(n, *CHOICES)

    def show(self) -> str:
        """The term in the prover's notation."""
        return _shown(self)[0]


CHOICES = (sympy.Max, sympy.Min, sympy.Abs, sympy.Piecewise, Lookup)
"""What has one value or another; its parts are expanded, and their differences compared."""

APPLIED, WHOLE = 10, 200
"""The prover's levels of a function with its arguments, and of all terms."""

_NOTATION: dict[str, Notation] = {
    "index": ("INR n", APPLIED, ()),
    "pi": ("PI", 0, ()),
    "true": ("true", 0, ()),
    "false": ("false", 0, ()),
    "plus": ("{} + {}", 50, (50, 49)),
    "minus": ("{} - {}", 50, (50, 49)),
    "mult": ("{} * {}", 40, (40, 39)),
    "div": ("{} / {}", 40, (40, 39)),
    "opp": ("- {}", 35, (35,)),
    "inv": ("/ {}", 35, (35,)),
    "ln": ("ln {}", APPLIED, (9,)),
    "exp": ("exp {}", APPLIED, (9,)),
    "cos": ("cos {}", APPLIED, (9,)),
    "sin": ("sin {}", APPLIED, (9,)),
    "abs": ("Rabs {}", APPLIED, (9,)),
    "floor": ("IZR (Int_part {})", APPLIED, (9,)),
    "rpower": ("Rpower {} {}", APPLIED, (9, 9)),
    "power0": ("power {} {}", APPLIED, (9, 9)),
    "max": ("Rmax {} {}", APPLIED, (9, 9)),
    "min": ("Rmin {} {}", APPLIED, (9, 9)),
    "lt": ("Rltb {} {}", APPLIED, (9, 9)),
    "le": ("Rleb {} {}", APPLIED, (9, 9)),
    "eq": ("Reqb {} {}", APPLIED, (9, 9)),
    "not": ("negb {}", APPLIED, (9,)),
    "and": ("andb {} {}", APPLIED, (9, 9)),
    "or": ("orb {} {}", APPLIED, (9, 9)),
    "finite": ("Finite {}", APPLIED, (9,)),
    "if": ("if {} then {} else {}", WHOLE, (WHOLE, WHOLE, WHOLE)),
}


def _shown(f: Form) -> tuple[str, int]:
    """The text of a form and its level in the prover's grammar."""
    notation, level, allowed = f.notation or _NOTATION[f.op]
    return notation.format(*map(_bracketed, f.args, allowed)), level


def _bracketed(f: Form, allowed: int) -> str:
    """A term in brackets where it binds less tightly than its place allows."""
    text, level = _shown(f)
    return text if level <= allowed else f"({text})"


_PLAIN_NAME = re.compile(r"[a-z]{1,2}[0-9]*|alpha|beta|gamma|delta|theta|eps|slope|scale")
_TAKEN = {"n", "p", "as", "at", "by", "if", "in", "le", "lg", "ln", "lt"}


def coq_name(name: str) -> str:
    """A parameter's name for the prover; a prime keeps it apart from the prover's own names.

    >>> coq_name("r1"), coq_name("sum")
    ('r1', "sum'")
    """
    return name if _PLAIN_NAME.fullmatch(name) and name not in _TAKEN else name + "'"


# -- from expressions -----------------------------------------------------------------------------


def form(e: Expr) -> Form:
    """The form of a real expression.

    Raises:
        NoCertificate: the expression has a part without a form.

    >>> form(-2*sympy.log(1 + n)).show()
    '-2 * ln (INR n + 1)'
    """
    build = _BUILDERS.get(e.func)
    if e.is_Rational:
        level = 40 if not e.is_Integer else 0 if e >= 0 else 35
        return Form("number", (), e, (f"{e.p} / {e.q}" if level == 40 else str(e), level, ()))
    if e == n:
        return Form("index", (), e)
    if e.is_Symbol:
        return Form(
            "symbol", (), e, (f"INR {e}", 10, ()) if e.is_integer else (coq_name(e.name), 0, ())
        )
    if build is None:
        raise NoCertificate(f"{beginning(e)} has none of the functions covered")
    return build(e)


def _sum(e: Expr) -> Form:
    """Terms from left to right, minus where a term is written with it."""
    total: Form | None = None
    for t in e.as_ordered_terms():
        if total is None:
            total, so_far = form(t), t
            continue
        so_far = so_far + t
        negative = t.could_extract_minus_sign()
        part = form(-t if negative else t)
        total = Form("minus" if negative else "plus", (total, part), so_far)
    assert total is not None
    return total


def _product(e: Expr) -> Form:
    """The constant factor, the factors above the line, those below."""
    fixed, rest = sympy.sift(sympy.Mul.make_args(e), lambda a: not a.has(n), binary=True)
    if not rest:
        coefficient, others = e.as_coeff_Mul()
        fixed, rest = [coefficient], list(sympy.Mul.make_args(others))
    factor = sympy.Mul(*fixed)
    above = [a for a in rest if not _below_the_line(a)]
    below = [1 / a for a in rest if _below_the_line(a)]
    negated = factor == -1 and bool(above)
    parts = [form(factor)] if factor != 1 and not negated else []
    parts += map(form, above)
    result: Form | None = None
    for part in parts:
        result = part if result is None else _pair("mult", result, part)
    for a in below:
        part = form(a)
        result = Form("inv", (part,), 1 / a) if result is None else _pair("div", result, part)
    assert result is not None
    return Form("opp", (result,), -result.expr) if negated else result


def _below_the_line(a: Expr) -> bool:
    """Whether the factor is printed in a denominator."""
    return bool(a.is_Pow and a.exp.could_extract_minus_sign() and not a.exp.has(n))


def _pair(op: str, a: Form, b: Form) -> Form:
    return Form(op, (a, b), a.expr * b.expr if op == "mult" else a.expr / b.expr)


def _power(e: Expr) -> Form:
    """A reciprocal, a natural power, or a power by the logarithm of its base, which may be 0
    somewhere: each a form of its own."""
    base, exponent = e.base, e.exp
    if _below_the_line(e):
        return Form("inv", (form(1 / e),), e)
    if exponent.is_Integer:
        return Form("power", (form(base),), e, (f"{{}} ^ {exponent}", 30, (29,)))
    positive = not base.has(n) or door.assumed(base, "positive")
    return Form("rpower" if positive else "power0", (form(base), form(exponent)), e)


def _call(op: str, *, choice: bool = False) -> Callable[[Expr], Form]:
    """A function as the prover has it; no alternative of a choice is a choice itself, and their
    order does not depend on hashes."""

    def build(e: Expr) -> Form:
        if len(e.args) > 2:
            raise NoCertificate(f"{beginning(e)}: only two are compared")
        args = sorted(map(_plain, e.args), key=sympy.default_sort_key) if choice else e.args
        return Form(op, tuple(map(form, args)), e)

    return build


def _plain(e: Expr) -> Expr:
    """An expression whose comparison with another distinguishes no further cases."""
    if e.has(*CHOICES):
        raise NoCertificate(f"cases within cases: {beginning(e)}")
    return e


def _finite_sum(e: Expr) -> Form:
    """Only between natural numbers; the bounds are written into the term."""
    index, low, high = e.limits[0]
    if len(e.limits) > 1 or not (low.is_Integer and high.is_Integer and low >= 0):
        raise NoCertificate(f"{beginning(e)}: only sums between natural numbers are covered")
    if e.function.has(sympy.Sum):
        raise NoCertificate(f"{beginning(e)}: a sum within a sum")
    counter = Symbol("i'", integer=True, nonnegative=True)  # no parameter is called so
    body = form(e.function.xreplace({index: counter}))
    return Form(
        "sum", (body,), e, (f"sum_n_m (fun {counter} => {{}}) {low} {high}", APPLIED, (WHOLE,))
    )


def _pieces(e: Expr) -> Form:
    """Piecewise as nested if; the last piece must be what remains."""
    *pieces, (last, condition) = e.args
    if condition != S.true:
        raise NoCertificate("a Piecewise whose last condition is not True")
    result = form(last)
    for value, condition in reversed(pieces):
        result = Form("if", (condition_form(condition), form(value), result), e)
    return result


def _entries(e: Expr) -> Form:
    """A lookup as its entries and its tail."""
    index, table, tail = e.args
    if index != n:
        raise NoCertificate(f"a table at {beginning(index)} instead of n")
    listed, levels = "; ".join(["{}"] * len(table)), (*[200] * len(table), 9)
    return Form("table", (*map(form, table), form(tail)), e, (f"nth n [{listed}] {{}}", 10, levels))


_BUILDERS: dict[type[Basic], Callable[[Expr], Form]] = {
    sympy.Add: _sum,
    sympy.Mul: _product,
    sympy.Pow: _power,
    Root: _call("rpower"),
    sympy.log: _call("ln"),
    sympy.exp: _call("exp"),
    sympy.cos: _call("cos"),
    sympy.sin: _call("sin"),
    sympy.floor: _call("floor"),
    sympy.Abs: _call("abs", choice=True),
    sympy.Max: _call("max", choice=True),
    sympy.Min: _call("min", choice=True),
    sympy.Sum: _finite_sum,
    sympy.Piecewise: _pieces,
    Lookup: _entries,
    type(S.Pi): lambda e: Form("pi", (), e),
    type(S.Exp1): lambda e: Form("exp", (form(S.One),), e),
}


def condition_form(c: Basic) -> Form:
    """A condition in the prover's relations, > and >= by swapped sides, != as the negation."""
    if c in (S.true, S.false):
        return Form("true" if c == S.true else "false", (), c)
    if isinstance(c, sympy.Not):
        return Form("not", (condition_form(c.args[0]),), c)
    if isinstance(c, (sympy.And, sympy.Or)):
        first, *others = sorted(c.args, key=sympy.default_sort_key)
        result = condition_form(first)
        for other in others:
            op = "and" if isinstance(c, sympy.And) else "or"
            result = Form(op, (result, condition_form(other)), c)
        return result
    relation = BY_KIND.get(c.func)
    if relation is None:
        raise NoCertificate(f"the condition {beginning(c)}")
    _plain(c.lhs - c.rhs)
    if isinstance(c, sympy.Ne):
        return Form("not", (condition_form(c.negated),), c)
    if 1 in relation.signs:
        c = c.reversed
    return Form(BY_KIND[c.func].name.lower(), (form(c.lhs), form(c.rhs)), c)
