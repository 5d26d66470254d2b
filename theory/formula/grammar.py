"""Formulas: from a user's text to a SymPy expression in the distance `n`, safely.

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
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import sympy
from sympy import Expr, Integer, Rational, S, Symbol

from farfield.theory.results import InputError

n = Symbol("n", integer=True, nonnegative=True)
"""The distance: query position minus key position."""

MAX_LENGTH = 10_000
MAX_DEPTH = 60
MAX_TOKENS = 4_000
MAX_DIGITS = 1_000
MAX_BITS = 12_000  # Python refuses to print integers of more than 4300 digits
MAX_SUM_TERMS = 1_000
MAX_EXPONENT = 10**4
MAX_DEGREE = 100


class Lookup(sympy.Function):
    """A bias given by a table: `Lookup(n, Tuple(v0, v1, ...), tail)` is `v_n`, then `tail`."""

    nargs = 3

    @classmethod
    def eval(cls, at: Expr, table: sympy.Tuple, tail: Expr) -> Expr | None:
        if at.is_Integer and at.is_nonnegative:
            return table[int(at)] if int(at) < len(table) else tail
        return None

    def _latex(self, printer: Any, exp: Any = None) -> str:
        return rf"T\left[{printer.doprint(self.args[0])}\right]"

    def _sympystr(self, printer: Any) -> str:
        at, table, tail = self.args
        return f"table[{printer.doprint(at)}; {len(table.args)} values, then {tail}]"


_DOMAINS = {
    "positive": {"positive": True},
    "nonnegative": {"nonnegative": True},
    "negative": {"negative": True},
    "nonpositive": {"nonpositive": True},
    "real": {"real": True},
}


def parameter(name: str, domain: str = "positive") -> Symbol:
    """The symbol of a parameter; domain: positive, nonnegative, negative, nonpositive, real, or
    an interval such as `[0, 2)`.

    >>> parameter("r1").is_positive, parameter("q", "[0, 2)").is_nonnegative
    (True, True)
    """
    check_name(name)
    return Symbol(name, **_DOMAINS[sign_domain(domain)])


def sign_domain(domain: str) -> str:
    """The widest of the five sign domains that holds an interval; itself for a sign domain."""
    if domain in _DOMAINS:
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
    from farfield.theory.results import exact

    named = {
        "positive": (S.Zero, S.Infinity, False, False),
        "nonnegative": (S.Zero, S.Infinity, True, False),
        "negative": (S.NegativeInfinity, S.Zero, False, False),
        "nonpositive": (S.NegativeInfinity, S.Zero, False, True),
        "real": (S.NegativeInfinity, S.Infinity, False, False),
    }
    if domain in named:
        return named[domain]
    match = re.fullmatch(r"\s*([\[(])\s*([^,\s]+)\s*,\s*([^,\s]+)\s*([\])])\s*", str(domain))
    if match is None:
        raise InputError(
            f"assumption {str(domain)[:40]!r} is not known; accepted: {', '.join(_DOMAINS)}, "
            "or an interval such as [0, 2)"
        )
    ends = {"oo": S.Infinity, "+oo": S.Infinity, "-oo": S.NegativeInfinity}
    low, high = (ends.get(t) or exact(t, "end of the interval") for t in match.group(2, 3))
    closed_low, closed_high = match.group(1) == "[", match.group(4) == "]"
    if low > high or (low == high and not (closed_low and closed_high)):
        raise InputError(f"assumption {domain!r} is an empty interval")
    return low, high, closed_low and low.is_finite, closed_high and high.is_finite


def check_name(name: str) -> None:
    """Raise InputError unless a parameter may be called so."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*", name) or len(name) > 32:
        raise InputError(
            f"{name[:40]!r} is not a name for a parameter; accepted: letters, digits and single "
            "underscores, beginning with a letter, 32 characters at most"
        )
    if name == "n":
        raise InputError("n is the distance and cannot be a parameter; choose another name")
    if name == "e":
        raise InputError("e is ambiguous; write E or exp(...), or name the parameter otherwise")
    if name in FUNCTIONS or name in CONSTANTS or name in _WORDS or name == "I":
        raise InputError(f"{name!r} is the name of a function or constant, not of a parameter")


# -- building nodes -------------------------------------------------------------------------------


def _is_number(e: Expr) -> bool:
    return not e.free_symbols


def _small(e: Expr, bound: int = 100) -> bool:
    return e.is_Rational and abs(e.p) <= bound and e.q <= bound


def _bounded(e: Expr) -> Expr:
    """Reject constants that SymPy or a reader could not handle: not real, or beyond 2**100000."""
    if e.has(S.ImaginaryUnit):
        raise _Wrong("is not a real number")
    if e.has(S.ComplexInfinity, S.NaN):
        raise _Wrong("is undefined (a division by zero, or a singular point)")
    coefficient = e.as_coeff_Mul()[0] if isinstance(e, Expr) else S.One
    if coefficient.is_Rational and max(abs(coefficient.p), coefficient.q).bit_length() > MAX_BITS:
        raise _Wrong(f"is a number of more than {MAX_BITS} bits")
    if e.is_Rational or not _is_number(e) or e in (S.Infinity, S.NegativeInfinity):
        return e
    from farfield.theory.evaluation.balls import enclose

    ball = enclose(e, 64)
    if ball is None:
        raise _Wrong("is not a finite real number that can be evaluated")
    if abs(ball).upper() > 2**100_000:
        raise _Wrong("is a constant beyond 2**100000")
    return e


def _degree(e: Expr, sums_alone: bool = False) -> int:
    """The degree of an expression as a polynomial; `sums_alone`: only powers of sums count above
    1."""

    def degree(e: Expr) -> int:
        if e.is_Add:
            return max(map(degree, e.args))
        if e.is_Mul:
            return sum(map(degree, e.args))
        if e.is_Pow and e.exp.is_Integer and (e.base.is_Add or not sums_alone):
            return degree(e.base) * abs(int(e.exp))
        return int(bool(e.free_symbols))

    return degree(e)


def steep(e: Expr) -> bool:
    """Whether e, as a polynomial in whatever occurs in it, has a degree that SymPy hangs on."""
    powers = (x.exp.as_coeff_Mul()[0] for x in e.atoms(sympy.Pow, sympy.exp))
    return _degree(e) > 40 or any(max(abs(c.p), c.q) > 40 for c in powers if c.is_Rational)


def _power(base: Expr, exponent: Expr) -> Expr:
    if base.is_Rational and exponent.is_Rational:
        if base == 0 and exponent < 0:
            raise _Wrong("is undefined (a division by zero)")
        size = max(abs(base.p), base.q).bit_length() * abs(exponent)
        if size > MAX_BITS or exponent.q > 10_000:
            raise _Wrong(f"is a number of more than {MAX_BITS} bits")
    elif exponent.is_Rational:
        if abs(exponent) > MAX_EXPONENT:
            raise _Wrong(f"has an exponent beyond {MAX_EXPONENT}")
        if (
            base.is_Add
            and base.has(sympy.Pow)
            and _degree(base, sums_alone=True) * abs(exponent) > MAX_DEGREE
        ):
            raise _Wrong(f"is a nested power of a degree beyond {MAX_DEGREE}")
        coefficient = base.as_coeff_Mul()[0]
        if coefficient.is_Rational:
            size = max(abs(coefficient.p), coefficient.q).bit_length() * abs(exponent)
            if size > MAX_BITS:
                return sympy.Pow(base, exponent, evaluate=False)
    return sympy.Pow(base, exponent)


class Held(sympy.NumberSymbol):
    """A rational number within a special function, that SymPy does not see as one: it would sum
    the 10^6 terms of digamma(10^6) whenever it builds the function anew."""

    is_real = True

    def __new__(cls, value: sympy.Rational) -> Held:
        self = super().__new__(cls)
        self.value = value
        return self

    def __getnewargs__(self) -> tuple[sympy.Rational]:
        return (self.value,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and self.value == other.value

    __hash__ = sympy.NumberSymbol.__hash__

    def _hashable_content(self) -> tuple[sympy.Rational]:
        return (self.value,)

    def _eval_is_positive(self) -> bool:
        return bool(self.value > 0)

    def _as_mpf_val(self, prec: int) -> Any:
        return self.value._as_mpf_val(prec)

    def _sympystr(self, printer: Any) -> str:
        return str(printer._print(self.value))

    _latex = _sympystr


def _held(a: Expr) -> Expr:
    return Held(a) if a.is_Rational and not _small(a) else a


def _exact_only(function: Callable[..., Expr]) -> Callable[..., Expr]:
    """Evaluate only on small rational or on symbolic arguments; SymPy may hang on the rest."""

    def build(*args: Expr) -> Expr:
        easy = all(_small(a) for a in args) or not any(_is_number(a) for a in args)
        if function is sympy.loggamma and all(_is_number(a) for a in args):
            easy = False
        if easy:
            return function(*args)
        args = tuple(map(_held, args)) if function in _SUMMED else args
        return function(*args, evaluate=False)

    return build


_SUMMED = (sympy.gamma, sympy.loggamma, sympy.factorial, sympy.harmonic)


def polygamma(order: Expr, at: Expr) -> Expr:
    """The polygamma function, of numbers unevaluated."""
    if not (order.is_Integer and 0 <= order <= 20):
        raise _Wrong("needs an order from 0 to 20")
    return sympy.polygamma(order, _held(at), evaluate=False)


def _digamma(at: Expr) -> Expr:
    return polygamma(S.Zero, at)


def _extreme(function: Any) -> Callable[..., Expr]:
    return lambda *args: function(*args, evaluate=all(a.is_Rational for a in args))


def _unevaluated(function: Any) -> Callable[..., Expr]:
    return lambda *args: function(*args, evaluate=False)


def _log(a: Expr, base: Expr | None = None) -> Expr:
    return sympy.log(a) if base is None else sympy.log(a) / sympy.log(base)


def _harmonic(at: Expr, order: Expr = S.One) -> Expr:
    """H_n, or sum_{k<=n} k^-m as zeta(m) - (-1)^m polygamma(m - 1, n + 1)/(m - 1)!."""
    if order == 1:
        return _exact_only(sympy.harmonic)(at)
    if not (order.is_Integer and 2 <= order <= 20):
        raise _Wrong("needs an order from 1 to 20")
    rest = sympy.polygamma(order - 1, at + 1, evaluate=False)
    return sympy.zeta(order) - (-1) ** order * rest / sympy.factorial(order - 1)


def _bessel(function: Any) -> Callable[..., Expr]:
    def build(order: Expr, at: Expr) -> Expr:
        if not (order.is_Rational and abs(order) <= 20 and order.q <= 100):
            raise _Wrong("needs a rational order from -20 to 20")
        return function(order, at, evaluate=False)

    return build


def _mod(a: Expr, b: Expr) -> Expr:
    if b == 0:
        raise _Wrong("has modulus 0")
    return (
        sympy.Mod(a, b)
        if _small(b, 10**6) and (a.is_Rational or not _is_number(a))
        else (sympy.Mod(a, b, evaluate=False))
    )


def _heaviside(a: Expr, at_zero: Expr = S.Half) -> Expr:
    return sympy.Heaviside(a, at_zero, evaluate=bool(a.is_Rational))


FUNCTIONS: dict[str, tuple[Callable[..., Expr], int, int]] = {
    **{
        f.__name__: (f, 1, 1)
        for f in (
            sympy.exp, sympy.sqrt, sympy.cbrt, sympy.erf, sympy.erfc, sympy.erfi,
            sympy.sin, sympy.cos, sympy.tan, sympy.cot, sympy.sec, sympy.csc,
            sympy.asin, sympy.acos, sympy.atan, sympy.acot,
            sympy.sinh, sympy.cosh, sympy.tanh, sympy.coth,
            sympy.asinh, sympy.acosh, sympy.atanh,
        )
    },
    "log": (_log, 1, 2), "ln": (sympy.log, 1, 1),
    "sech": (lambda x: 1 / sympy.cosh(x), 1, 1), "csch": (lambda x: 1 / sympy.sinh(x), 1, 1),
    "acoth": (lambda x: sympy.atanh(1 / x), 1, 1),
    "arcsin": (sympy.asin, 1, 1), "arccos": (sympy.acos, 1, 1), "arctan": (sympy.atan, 1, 1),
    "arcsinh": (sympy.asinh, 1, 1), "arccosh": (sympy.acosh, 1, 1),
    "arctanh": (sympy.atanh, 1, 1),
    "Abs": (_exact_only(sympy.Abs), 1, 1), "abs": (_exact_only(sympy.Abs), 1, 1),
    "sign": (_exact_only(sympy.sign), 1, 1),
    "floor": (_exact_only(sympy.floor), 1, 1), "ceiling": (_exact_only(sympy.ceiling), 1, 1),
    "ceil": (_exact_only(sympy.ceiling), 1, 1), "frac": (_exact_only(sympy.frac), 1, 1),
    "Min": (_extreme(sympy.Min), 1, 100), "min": (_extreme(sympy.Min), 1, 100),
    "Max": (_extreme(sympy.Max), 1, 100), "max": (_extreme(sympy.Max), 1, 100),
    "Mod": (_mod, 2, 2),
    "Heaviside": (_heaviside, 1, 2),
    "gamma": (_exact_only(sympy.gamma), 1, 1),
    "loggamma": (_exact_only(sympy.loggamma), 1, 1),
    "digamma": (_digamma, 1, 1),
    "polygamma": (polygamma, 2, 2),
    "factorial": (_exact_only(sympy.factorial), 1, 1),
    "binomial": (_exact_only(sympy.binomial), 2, 2),
    "harmonic": (_harmonic, 1, 2),
    "zeta": (_exact_only(sympy.zeta), 1, 1),
    "li": (_exact_only(sympy.li), 1, 1),
    "LambertW": (_exact_only(sympy.LambertW), 1, 1),
    **{f.__name__: (_exact_only(f), 1, 1) for f in (sympy.Ei, sympy.Si, sympy.Ci)},
    **{
        f.__name__: (_bessel(f), 2, 2)
        for f in (sympy.besselj, sympy.besseli, sympy.besselk)
    },
}  # fmt: skip
CONSTANTS: dict[str, Expr] = {
    "pi": S.Pi, "E": S.Exp1, "EulerGamma": S.EulerGamma, "GoldenRatio": S.GoldenRatio,
    "Catalan": S.Catalan, "oo": S.Infinity,
}  # fmt: skip
_RELATIONS: dict[str, Any] = {
    "<": sympy.Lt, "<=": sympy.Le, ">": sympy.Gt, ">=": sympy.Ge, "==": sympy.Eq, "!=": sympy.Ne,
}  # fmt: skip
_CONDITIONS: dict[str, Any] = {
    "Eq": sympy.Eq, "Ne": sympy.Ne, "Lt": sympy.Lt, "Le": sympy.Le, "Gt": sympy.Gt,
    "Ge": sympy.Ge, "And": sympy.And, "Or": sympy.Or, "Not": sympy.Not,
}  # fmt: skip
_WORDS = {"Piecewise", "Sum", "Product", "True", "False", "and", "or", "not", *_CONDITIONS}


# -- the parser -----------------------------------------------------------------------------------


class TooLarge(ArithmeticError):
    """A power that cannot be written down."""


class _Wrong(Exception):
    """What is wrong with the node being built, without the place: the parser adds it."""


_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<op>\*\*|<=|>=|==|!=|[-+*/^(),|<>&~]))"
)
_REPLACED = str.maketrans({"\u2212": "-", "\u00d7": "*", "\u00b7": "*", "\u03c0": " pi "})


class _Parser:
    def __init__(self, text: str, domains: Mapping[str, str]) -> None:
        self.text, self.domains = text, domains
        self.bound: dict[str, Expr] = {}
        self.depth = 0
        self.position = 0
        self.sum_terms = 0
        self.tokens: list[tuple[str, str, int]] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None:
                at += len(text[at:]) - len(text[at:].lstrip())
                raise self.wrong(at, f"{text[at]!r} is not part of a formula")
            kind = match.lastgroup or ""
            self.tokens.append((kind, match.group(kind), match.start(kind)))
            at = match.end()
            if len(self.tokens) > MAX_TOKENS:
                raise InputError(f"the formula has more than {MAX_TOKENS} symbols")
        self.tokens.append(("end", "", end))

    def wrong(self, column: int, what: str) -> InputError:
        begin = max(0, column - 30)
        shown = self.text[begin : column + 30]
        shown = ("..." if begin else "") + shown + ("..." if column + 30 < len(self.text) else "")
        return InputError(f"formula {shown!r}, column {column + 1}: {what}")

    def fail(self, column: int, what: str) -> NoReturn:
        raise self.wrong(column, what)

    @property
    def token(self) -> tuple[str, str, int]:
        return self.tokens[self.position]

    def accept(self, *ops: str) -> str | None:
        kind, value, _ = self.token
        if kind == "op" and value in ops:
            self.position += 1
            return value
        return None

    def expect(self, op: str) -> None:
        if self.accept(op) is None:
            kind, value, column = self.token
            found = "the end of the formula" if kind == "end" else repr(value)
            self.fail(column, f"expected {op!r}, found {found}")

    def build(self, column: int, make: Callable[..., Expr], *args: Expr) -> Expr:
        try:
            return _bounded(make(*args))
        except _Wrong as wrong:
            self.fail(column, str(wrong))
        except (
            AttributeError,
            TypeError,
            ValueError,
            LookupError,
            ArithmeticError,
            RecursionError,
        ):
            self.fail(column, "this part cannot be evaluated")

    def formula(self) -> Expr:
        value = self.sum()
        kind, found, column = self.token
        if kind != "end":
            hint = "; write * for a product" if kind != "op" or found == "(" else ""
            self.fail(column, f"unexpected {found!r}{hint}")
        return value

    def sum(self) -> Expr:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(self.token[2], f"the formula is nested deeper than {MAX_DEPTH}")
        column = self.token[2]
        terms = [self.product()]
        while op := self.accept("+", "-"):
            term = self.product()
            terms.append(-term if op == "-" else term)
        self.depth -= 1
        return terms[0] if len(terms) == 1 else self.build(column, sympy.Add, *terms)

    def product(self) -> Expr:
        column = self.token[2]
        factors = [self.unary()]
        while op := self.accept("*", "/"):
            at = self.token[2]
            factor = self.unary()
            factors.append(self.build(at, _power, factor, S.NegativeOne) if op == "/" else factor)
        return factors[0] if len(factors) == 1 else self.build(column, sympy.Mul, *factors)

    def unary(self) -> Expr:
        sign = 1
        while op := self.accept("+", "-"):
            sign = -sign if op == "-" else sign
        value = self.power()
        return -value if sign < 0 else value

    def power(self) -> Expr:
        column = self.token[2]
        base = self.atom()
        if self.accept("**", "^") is None:
            return base
        return self.build(column, _power, base, self.nested(self.unary))

    def atom(self) -> Expr:
        kind, value, column = self.token
        self.position += 1
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
            return self.build(column, _exact_only(sympy.Abs), inner)
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
        called = self.token[:2] == ("op", "(")
        if value == "Piecewise" and called:
            return self.piecewise(column)
        if value in ("Sum", "Product") and called:
            return self.finite_sum(column, value)
        if called:
            if value not in FUNCTIONS:
                self.fail(column, f"unknown function {value!r}{_meant(value, FUNCTIONS)}")
            return self.call(value, column)
        if value in self.bound:
            return self.bound[value]
        if value == "n":
            return n
        if value in CONSTANTS:
            return CONSTANTS[value]
        if value in FUNCTIONS or value in _WORDS:
            self.fail(column, f"{value} is a function here; write {value}(...)")
        try:
            return parameter(value, self.domains.get(value, "positive"))
        except InputError as error:
            self.fail(column, str(error))

    def call(self, value: str, column: int) -> Expr:
        make, least, most = FUNCTIONS[value]
        self.expect("(")
        args = [] if self.token[:2] == ("op", ")") else [self.sum()]
        while args and self.accept(","):
            args.append(self.sum())
        self.expect(")")
        if not least <= len(args) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            self.fail(column, f"{value} takes {wanted} argument(s), {len(args)} given")
        if any(a in (S.Infinity, S.NegativeInfinity) for a in args):
            self.fail(column, f"{value} of infinity")
        return self.build(column, make, *args)

    def piecewise(self, column: int) -> Expr:
        self.expect("(")
        pieces = []
        while True:
            self.expect("(")
            value = self.sum()
            self.expect(",")
            pieces.append((value, self.condition()))
            self.expect(")")
            if not self.accept(","):
                break
        self.expect(")")
        for _, c in pieces:  # SymPy takes a Piecewise out of a condition, and evaluates on the way
            around = c.atoms(sympy.Function, sympy.Pow) - c.atoms(sympy.Piecewise)
            if any(e.has(sympy.Piecewise) for e in around):
                self.fail(column, "a condition on a function of a Piecewise; take the pieces apart")
        live = [(value, c) for value, c in pieces if c != S.false]
        if live and live[0][1] == S.true:
            return live[0][0]
        return self.build(column, _unevaluated(sympy.Piecewise), *(live or pieces))

    def condition(self) -> Any:
        """A comparison (possibly chained), True, Eq(...) and the like; & binds closer than |."""
        parts = [self.conjunction()]
        while self.accept("|") or (self.token[:2] == ("name", "or") and self.step()):
            parts.append(self.conjunction())
        return parts[0] if len(parts) == 1 else sympy.Or(*parts, evaluate=False)

    def conjunction(self) -> Any:
        parts = [self.comparison()]
        while self.accept("&") or (self.token[:2] == ("name", "and") and self.step()):
            parts.append(self.comparison())
        return parts[0] if len(parts) == 1 else sympy.And(*parts, evaluate=False)

    def step(self) -> bool:
        self.position += 1
        return True

    def nested(self, part: Callable[[], Any]) -> Any:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(self.token[2], f"the formula is nested deeper than {MAX_DEPTH}")
        value = part()
        self.depth -= 1
        return value

    def bracketed_condition(self) -> bool:
        """Whether a bracket opens here that holds a comparison, not a number."""
        depth = 0
        for kind, value, _ in self.tokens[self.position :]:
            depth += (value == "(") - (value == ")")
            if depth == 0:
                return False
            if depth == 1 and (value in _RELATIONS or (kind == "name" and value in _CONDITIONS)):
                return True
        return False

    def comparison(self) -> Any:
        kind, value, column = self.token
        if kind == "name" and value in ("True", "False"):
            self.position += 1
            return S.true if value == "True" else S.false
        if kind == "name" and value in _CONDITIONS:
            self.position += 1
            self.expect("(")
            logical = value in ("And", "Or", "Not")
            part = self.condition if logical else self.sum
            args = [self.nested(part)]
            while self.accept(","):
                args.append(self.nested(part))
            self.expect(")")
            if (value == "Not" and len(args) != 1) or (not logical and len(args) != 2):
                self.fail(column, f"{value} takes {1 if value == 'Not' else 2} argument(s)")
            return _CONDITIONS[value](*args, evaluate=False)
        if self.accept("~") or ((kind, value) == ("name", "not") and self.step()):
            return sympy.Not(self.nested(self.comparison), evaluate=False)
        if self.bracketed_condition():
            self.expect("(")
            inner = self.nested(self.condition)
            self.expect(")")
            return inner
        left = self.sum()
        relations = []
        while op := self.accept(*_RELATIONS):
            right = self.sum()
            easy = left.is_Rational and right.is_Rational
            relations.append(_RELATIONS[op](left, right, evaluate=bool(easy)))
            left = right
        if not relations:
            self.fail(column, "expected a condition such as n < 16 or True")
        return relations[0] if len(relations) == 1 else sympy.And(*relations, evaluate=False)

    def finite_sum(self, column: int, kind: str) -> Expr:
        """Sum(f, (k, a, b)) or Product: the body is read again for each k, so that every guard
        applies; a product whose end is no number becomes exp(Sum(log(f)))."""
        self.expect("(")
        begin, depth, at = self.position, 0, self.position
        while True:  # find the comma that ends the body
            token, value, where = self.tokens[at]
            if token == "end" or (depth == 0 and value == ")"):
                self.fail(where, f"expected {kind}(f, (k, a, b))")
            if depth == 0 and value == ",":
                break
            depth += (value == "(") - (value == ")")
            at += 1
        self.position = at + 1
        self.expect("(")
        token, index, where = self.token
        self.position += 1
        if token != "name" or index == "n" or index in FUNCTIONS or index in CONSTANTS:
            self.fail(where, "expected the name of the summation index")
        if index in self.bound:
            self.fail(where, f"{index} is the index of a sum around this one; take another name")
        self.expect(",")
        low = self.sum()
        self.expect(",")
        high = self.sum()
        self.expect(")")
        self.expect(")")
        end = self.position
        outer = self.bound
        if low.is_Integer and high.is_Integer:
            count = int(high - low) + 1
            self.sum_terms += max(count, 0)
            if self.sum_terms > MAX_SUM_TERMS:
                self.fail(column, f"sums of more than {MAX_SUM_TERMS} terms")
            terms = []
            for value_of_index in range(int(low), int(low) + max(count, 0)):
                terms.append(self.body(begin, at, outer | {index: Integer(value_of_index)}))
            result = self.build(column, sympy.Add if kind == "Sum" else sympy.Mul, *terms)
        else:
            positive = bool((low - 1).is_nonnegative)
            k = Symbol(index, integer=True, positive=True if positive else None)
            body = self.body(begin, at, outer | {index: k})
            if not (low.is_integer and high.is_integer):
                self.fail(column, "the bounds of a sum must be integers for every n")
            if kind == "Sum":
                result = sympy.Sum(body, (k, low, high))
            else:
                body = body if steep(body) else sympy.factor(body)
                logs = sympy.expand_log(sympy.log(body), force=True)
                result = sympy.exp(sympy.Sum(logs, (k, low, high)))
        self.bound, self.position = outer, end
        return result

    def body(self, begin: int, end: int, bound: dict[str, Expr]) -> Expr:
        self.position, self.bound = begin, bound
        value = self.sum()
        if self.position != end:
            self.fail(self.token[2], f"unexpected {self.token[1]!r}")
        return value


def _meant(word: str, known: Any) -> str:
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
    farfield.theory.results.InputError: formula '-log(1+x)' has no n, the distance; ...
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
    parser = _Parser(text.translate(_REPLACED), domains)
    expr = parser.formula()
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


def substituted(e: Any, swap: Mapping[Expr, Expr]) -> Any:
    """e with some parts replaced.

    >>> x = parameter("x")
    >>> substituted(sympy.Piecewise((x, x < 3), (n, True)), {x: n + 1})
    Piecewise((n + 1, n + 1 < 3), (n, True))
    """
    if e in swap:
        return swap[e]
    args = tuple(substituted(a, swap) for a in e.args)
    return e if args == e.args else rebuilt(e.func, args)


def rebuilt(func: Any, args: tuple[Any, ...]) -> Any:
    """A node with new arguments, built as the reader would: unevaluated where SymPy might hang.

    Raises:
        TooLarge: for a power that the reader would refuse.
    """
    if func is sympy.Piecewise or issubclass(func, sympy.core.relational.Relational):
        return func(*args, evaluate=False)
    make = _power if func is sympy.Pow else FUNCTIONS.get(func.__name__, (func,))[0]
    try:
        return make(*args)
    except _Wrong as wrong:
        if func is sympy.Pow and args[0] != 0:
            raise TooLarge(str(wrong)) from None
        return func(*args, evaluate=func is sympy.Pow)


_BUILT = (
    sympy.Add, sympy.Mul, sympy.Pow, sympy.Symbol, sympy.Rational, sympy.Piecewise, sympy.Tuple,
    sympy.log, sympy.exp, sympy.sin, sympy.cos, sympy.tan, sympy.cot, sympy.sec, sympy.csc,
    sympy.asin, sympy.acos, sympy.atan, sympy.acot, sympy.sinh, sympy.cosh, sympy.tanh,
    sympy.coth, sympy.asinh, sympy.acosh, sympy.atanh, sympy.Abs, sympy.sign, sympy.floor,
    sympy.ceiling, sympy.frac, sympy.Min, sympy.Max, sympy.Mod, sympy.Heaviside, sympy.gamma,
    sympy.loggamma, sympy.polygamma, sympy.factorial, sympy.binomial, sympy.harmonic, sympy.zeta,
    sympy.li, sympy.LambertW, sympy.erf, sympy.erfc, sympy.erfi, sympy.Ei, sympy.Si, sympy.Ci,
    sympy.besselj, sympy.besseli, sympy.besselk, sympy.Sum, sympy.NumberSymbol, Lookup,
    sympy.core.relational.Relational, sympy.logic.boolalg.Boolean,
    type(S.Infinity), type(S.NegativeInfinity),
)  # fmt: skip


def as_expression(f: Any, domains: Mapping[str, str] | None = None) -> Expr:
    """A formula given as text or as a SymPy expression, in the project's own symbols.

    In a SymPy expression the symbol called n, or else the only symbol, becomes the distance; other
    symbols become parameters of the domain said (else of what they assume; else positive), floats
    the decimals they print as.

    Raises:
        InputError: for anything that the reader of formulas would not have built; several symbols
            of which none is called n; a distance that SymPy took for negative, even or the like.

    >>> as_expression(-sympy.log(1 + sympy.Symbol("x")))
    -log(n + 1)
    """
    if isinstance(f, str):
        return read(f, domains)
    if not isinstance(f, (sympy.Basic, int, float)) or isinstance(f, bool):
        raise InputError(f"a formula is text or a SymPy expression, not {type(f).__name__}")
    expr = sympy.sympify(f)
    said = dict(domains or {})
    from farfield.theory.results import exact

    swap: dict[Any, Expr] = {x: exact(x) for x in expr.atoms(sympy.Float)}
    distance = _distance(expr, f)
    for symbol in expr.free_symbols:
        if symbol == distance:
            swap[symbol] = n
        else:
            assumed = next((d for d, a in _DOMAINS.items() if _assumes(symbol, a)), "positive")
            swap[symbol] = parameter(symbol.name, said.get(symbol.name, assumed))
    expr = expr.xreplace({k: v for k, v in swap.items() if k != v})
    for node in sympy.preorder_traversal(expr):
        if not isinstance(node, _BUILT):
            raise InputError(f"{type(node).__name__} in {str(f)[:40]!r} is not part of a formula")
    if expr.has(S.NaN, S.ComplexInfinity, S.ImaginaryUnit):
        raise InputError(f"formula {str(f)[:40]!r} is not real or undefined")
    return expr


def _distance(expr: Expr, f: Any) -> Symbol | None:
    """The symbol that stands for the distance."""
    symbols = sorted(expr.free_symbols, key=lambda s: str(s.name))
    named = [s for s in symbols if s.name == "n"] or symbols
    if len(named) > 1:
        names = ", ".join(str(s.name) for s in named)
        raise InputError(
            f"formula {str(f)[:40]!r} has several symbols that may be the distance: {names}; "
            "accepted: one called n, or a single symbol"
        )
    for symbol in named:
        for name, value in symbol.assumptions0.items():
            if value not in (_ALMOST_N.get(name), n.assumptions0.get(name)):
                raise InputError(
                    f"formula {str(f)[:40]!r}: SymPy took {symbol.name} for "
                    f"{'' if value else 'not '}{name.replace('_', ' ')}; accepted: a symbol "
                    "without assumptions, integer, real, positive or nonnegative"
                )
    return named[0] if named else None


_ALMOST_N = Symbol("n", integer=True, positive=True).assumptions0  # true of all distances but 0


def _assumes(symbol: Symbol, wanted: Mapping[str, bool]) -> bool:
    return all(symbol.assumptions0.get(k) == v for k, v in wanted.items())
