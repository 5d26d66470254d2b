"""From a user's text to a SymPy expression in the distance `n`, safely.

A formula is untrusted text. It is read by the small grammar below, never by `eval` or `sympify`,
and each node is built so that SymPy cannot hang on it: numbers are bounded before they are
formed, special functions of numbers stay unevaluated, comparisons are never decided here.

    formula   := sum [comparison sum]*            comparisons only inside Piecewise
    sum       := product (("+" | "-") product)*
    product   := unary (("*" | "/") unary)*
    unary     := ("+" | "-") unary | power
    power     := atom [("**" | "^") unary]
    atom      := number | name | name "(" arguments ")" | "(" sum ")" | "|" sum "|"

Numbers are exact: `0.1` is 1/10. Every name that is no function and no constant is a parameter.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

import sympy
from sympy import Expr, Integer, Rational, S

from farfield.theory.formula import conditions, finite_sums
from farfield.theory.formula.limits import MAX_DIGITS, MAX_LENGTH, power
from farfield.theory.formula.parameters import parameter
from farfield.theory.formula.reading import Reading
from farfield.theory.formula.words import CALLED, CONSTANTS
from farfield.theory.functions.nodes import n
from farfield.theory.functions.record import spellings
from farfield.theory.results import InputError


class Parser(Reading):
    """The grammar, one method a rule; conditions and finite sums are in modules of their own."""

    def formula(self) -> Expr:
        value = self.sum()
        kind, found, column = self.token
        if kind != "end":
            hint = "; write * for a product" if kind != "op" or found == "(" else ""
            self.fail(column, f"unexpected {found!r}{hint}")
        return value

    def sum(self) -> Expr:
        return self.nested(self._sum)

    def _sum(self) -> Expr:
        column = self.column
        terms = [self.product()]
        while op := self.accept("+", "-"):
            term = self.product()
            terms.append(-term if op == "-" else term)
        return terms[0] if len(terms) == 1 else self.build(column, sympy.Add, *terms)

    def product(self) -> Expr:
        column = self.column
        factors = [self.unary()]
        while op := self.accept("*", "/"):
            at = self.column
            factor = self.unary()
            factors.append(self.build(at, power, factor, S.NegativeOne) if op == "/" else factor)
        return factors[0] if len(factors) == 1 else self.build(column, sympy.Mul, *factors)

    def unary(self) -> Expr:
        sign = 1
        while op := self.accept("+", "-"):
            sign = -sign if op == "-" else sign
        value = self.power()
        return -value if sign < 0 else value

    def power(self) -> Expr:
        column = self.column
        base = self.atom()
        if self.accept("**", "^") is None:
            return base
        return self.build(column, power, base, self.nested(self.unary))

    def atom(self) -> Expr:
        kind, value, column = self.next()
        if kind == "number":
            return self.number(value, column)
        if kind == "name":
            return self.name(value, column)
        if value == "(":
            inner = self.sum()
            self.expect(")")
            return inner
        if value == "|":
            inner = self.sum()
            self.expect("|")
            return self.build(column, spellings()["Abs"].build, inner)
        found = "the formula ends here" if kind == "end" else f"{value!r} cannot stand here"
        self.fail(column, f"{found}; expected a number, a name, a function or a bracket")

    def number(self, value: str, column: int) -> Expr:
        mantissa, _, exponent = value.lower().partition("e")
        if len(mantissa) > MAX_DIGITS or len(exponent) > 5 or abs(int(exponent or 0)) > MAX_DIGITS:
            self.fail(column, f"a number of more than {MAX_DIGITS} digits")
        whole, _, fraction = mantissa.partition(".")
        scale = int(exponent or 0) - len(fraction)
        digits = int((whole + fraction) or "0")
        return Integer(digits * 10**scale) if scale >= 0 else Rational(digits, 10**-scale)

    def name(self, value: str, column: int) -> Expr:
        if self.begins("("):
            if value == "Piecewise":
                return conditions.piecewise(self, column)
            if value in ("Sum", "Product"):
                return finite_sums.finite_sum(self, column, value)
            if value not in spellings():
                self.fail(column, f"unknown function {value!r}{_meant(value, spellings())}")
            return self.call(value, column)
        if value in self.bound:
            return self.bound[value]
        if value == "n":
            return n
        if value in CONSTANTS:
            return CONSTANTS[value]
        if value in spellings() or value in CALLED:
            self.fail(column, f"{value} is a function here; write {value}(...)")
        try:
            return parameter(value, self.domains.get(value, "positive"))
        except InputError as error:
            self.fail(column, str(error))

    def call(self, value: str, column: int) -> Expr:
        spelling = spellings()[value]
        self.expect("(")
        args = [] if self.begins(")") else [self.sum()]
        while args and self.accept(","):
            args.append(self.sum())
        self.expect(")")
        least, most = spelling.least, spelling.most
        if not least <= len(args) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            self.fail(column, f"{value} takes {wanted} argument(s), {len(args)} given")
        if any(a in (S.Infinity, S.NegativeInfinity) for a in args):
            self.fail(column, f"{value} of infinity")
        return self.build(column, spelling.build, *args)


def _meant(word: str, known: Iterable[str]) -> str:
    """What a user may have meant by a word, or all that is accepted."""
    close = difflib.get_close_matches(word, list(known), 1, 0.6) or [
        k for k in known if k.lower() == word.lower()
    ]
    return f"; did you mean {close[0]!r}?" if close else f"; accepted: {', '.join(sorted(known))}"


def read(text: str, domains: Mapping[str, str] | None = None) -> Expr:
    """The SymPy expression of a formula in the distance `n` and named parameters.

    Args:
        text: the formula, at most 10,000 characters.
        domains: the domain of each parameter (see `parameter`); positive where nothing is said.

    Raises:
        InputError: one line with the column and what is accepted.

    >>> read("-r1*log(1 + r2*n)")
    -r1*log(n*r2 + 1)
    >>> read("-0.1*|n|")
    -n/10
    >>> read("-log(1+x)")
    Traceback (most recent call last):
        ...
    farfield.theory.answers.answer.InputError: formula '-log(1+x)' has no n, the distance; ...
    """
    if not isinstance(text, str):
        raise InputError(f"a formula is text, not {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise InputError(f"the formula has {len(text)} characters; at most {MAX_LENGTH} are read")
    if not text.strip():
        raise InputError("the formula is empty; expected a bias in the distance n, as -log(1+n)")
    domains = dict(domains or {})
    for name, domain in domains.items():
        parameter(name, domain)
    expr = Parser(text, domains).formula()
    if expr in (S.Infinity, S.NegativeInfinity) or expr.has(S.NaN):
        raise InputError(f"formula {text[:40]!r} is infinite or undefined for all n")
    names = sorted(s.name for s in expr.free_symbols if s != n)
    if names and not expr.has(n) and not set(names) <= set(domains):
        hint = f"did you mean n for {names[0]}?" if len(names) == 1 else "write n for the distance"
        raise InputError(f"formula {text[:40]!r} has no n, the distance; {hint}")
    unused = sorted(set(domains) - set(names))
    if unused:
        has = ", ".join(names) or "none"
        raise InputError(
            f"assumption about {unused[0]!r}, which formula {text[:40]!r} does not contain; "
            f"its parameters: {has}"
        )
    return expr
