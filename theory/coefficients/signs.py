"""Coefficients and their signs: the one place where the engine decides what a number is.

A coefficient is an exact rational (`fmpq`) or a SymPy expression: a real constant, a polynomial
in parameters, an oscillating quantity (it contains the distance `n` or a bounded atom), or it
contains a *named tail* (a bounded remainder of unknown size).

`sign` answers -1, 0 or 1 for all of them, or raises:

* `Undecided`  a constant that balls cannot separate from 0 and no identity proves to be 0;
* `NeedMore`   the answer hides in the remainder of an expansion: expand further;
* `Fork`       it depends on the parameters: the caller splits the parameter space.

A constant is non-zero when a ball excludes 0. It is zero only by proof: expansion until every
term cancels, an algebraic separation bound (for the coefficient of each transcendental product),
or one of the two linear-form lemmas; and only if a small ball agrees.

**Separation bound** (Burnikel, Funke, Mehlhorn, Schirra, Schmitt 2001). For an expression E over
the integers with + - * / and k-th roots let u and l be computed by the rules in `_bfmss` and D be
the product of the indices of its distinct radicals, times the degree of the roots of unity that
its sines and cosines of rational multiples of pi need. If E is not 0 then |E| >= 1/(u^(D-1) l).
So a ball below that bound proves E = 0.

**Logs.** For positive algebraic a_i and integers k_i: sum k_i log a_i = 0 iff prod a_i^k_i = 1.
**Arctangents.** For real algebraic a_i and integers k_i, k: if the imaginary part of
prod (1 + i a_i)^k_i is 0 then sum k_i atan a_i is a multiple of pi; hence if besides
|sum k_i atan a_i + k pi| < 1, that sum is 0.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import sympy
from flint import arb, fmpq
from sympy import Expr, S, Symbol

from farfield.theory.evaluation.balls import Undefined, compile_ball, precision, to_arb
from farfield.theory.formula.grammar import n, steep

Coefficient = Any  # fmpq or a SymPy Expr
ZERO, ONE = fmpq(0), fmpq(1)


class Undecided(Exception):
    """The engine cannot decide; the message says what it could not decide, `steps` (of a proof)
    what was tried before."""

    steps: tuple[Any, ...] = ()


class NotReal(Exception):
    """The formula is not real, or not finite, for all large n; the message names the part."""


class NeedMore(Exception):
    """An expansion must be carried further before the question can be answered."""


class Fork(Exception):
    """The sign of `expression`, a polynomial in parameters, must be known."""

    def __init__(self, expression: Expr) -> None:
        super().__init__(str(expression))
        self.expression = expression


@dataclass
class Case:
    """What one decision carries along: where the parameters lie, and how much work was done.

    `signs` holds the signs of parameter expressions on the branch at hand; `order` how many terms
    an expansion keeps; `named` whether its remainders are named; `ranges` and `meaning` the
    bounds of each bounded atom and what it stands for; `tails` the named remainders; `trace` the
    decisions about constants that a proof must show.
    """

    signs: dict[Expr, int] = field(default_factory=dict)
    order: int = 4
    named: bool = False
    ranges: dict[Symbol, tuple[Expr, Expr]] = field(default_factory=dict)
    meaning: dict[Symbol, Expr] = field(default_factory=dict)
    tails: dict[Any, Symbol] = field(default_factory=dict)
    tail_symbols: set[Symbol] = field(default_factory=set)
    memo: dict[Expr, Any] = field(default_factory=dict)
    constants: dict[Expr, Any] = field(default_factory=dict)
    trace: dict[Expr, tuple[int, str]] = field(default_factory=dict)
    work: int = 0
    deadline: float = math.inf

    def spend(self, amount: int) -> None:
        """Count work; the limits keep a decision from swelling without end."""
        self.work += amount
        if self.work > MAX_WORK:
            raise Undecided("the work budget was spent")
        if time.monotonic() > self.deadline:
            raise Undecided("the time budget was spent")


MAX_WORK = 60_000
MAX_BITS = 4096
MAX_ATOMS = 150
MAX_TERMS = 3000
_CASE: ContextVar[Case] = ContextVar("case")


def case() -> Case:
    """The case being decided in this thread."""
    try:
        return _CASE.get()
    except LookupError:
        fresh = Case()
        _CASE.set(fresh)
        return fresh


@contextmanager
def deciding(current: Case) -> Iterator[Case]:
    """Decide within `current`, then return to the case before."""
    token = _CASE.set(current)
    try:
        yield current
    finally:
        _CASE.reset(token)


# -- arithmetic -----------------------------------------------------------------------------------


def expand(e: Expr) -> Expr:
    """The expression multiplied out; Undecided where that would be too long."""
    if _length(e) > MAX_TERMS:
        raise Undecided("an expression is too long to be multiplied out")
    return sympy.expand(e)


def _length(e: Expr) -> int:
    """A bound of the number of terms of an expression multiplied out."""
    if not e.args:
        return 1
    sizes = [min(_length(a), MAX_TERMS + 1) for a in e.args]
    if e.is_Add:
        return sum(sizes)
    if e.is_Mul:
        return math.prod(sizes)
    if e.is_Pow and e.exp.is_Integer:
        k = min(abs(int(e.exp)), MAX_TERMS)
        return math.comb(sizes[0] + k - 1, k) if sizes[0] > 1 else 1
    return 1 if max(sizes) <= MAX_TERMS else MAX_TERMS + 1


def to_sympy(c: Coefficient) -> Expr:
    """The coefficient as a SymPy expression."""
    return sympy.Rational(int(c.p), int(c.q)) if type(c) is fmpq else c


def coefficient(e: Expr) -> Coefficient:
    """An expression as a coefficient; rationals become exact, what is not finite is refused."""
    if e.is_Rational:
        return fmpq(int(e.p), int(e.q))
    if e.has(
        S.ImaginaryUnit, S.ComplexInfinity, S.NaN, S.Infinity, S.NegativeInfinity, sympy.Float
    ):
        raise Undecided("a coefficient is not a finite real number")
    return e


def _checked_size(c: Coefficient) -> Coefficient:
    if type(c) is not fmpq and len(c.args) > 8:
        size = sum(1 for _ in sympy.preorder_traversal(c))
        case().spend(size // 10)
        if size > MAX_ATOMS * 4:
            raise Undecided("a coefficient grew too large")
    return c


def plus(a: Coefficient, b: Coefficient) -> Coefficient:
    """The sum of two coefficients."""
    if type(a) is fmpq and type(b) is fmpq:
        return a + b
    return _checked_size(coefficient(to_sympy(a) + to_sympy(b)))


def times(a: Coefficient, b: Coefficient) -> Coefficient:
    """The product of two coefficients."""
    if type(a) is fmpq:
        if type(b) is fmpq:
            return a * b
        if a == 0:
            return ZERO
        if a == 1:
            return b
    elif type(b) is fmpq:
        if b == 0:
            return ZERO
        if b == 1:
            return a
    return _checked_size(coefficient(to_sympy(a) * to_sympy(b)))


def minus(a: Coefficient) -> Coefficient:
    """The negative of a coefficient."""
    return -a if type(a) is fmpq else coefficient(-a)


def inverse(a: Coefficient) -> Coefficient:
    """One over a coefficient known not to be 0."""
    return 1 / a if type(a) is fmpq else coefficient(1 / a)


def is_zero_literally(c: Coefficient) -> bool:
    """Whether the coefficient is the number 0 itself, without any test."""
    return type(c) is fmpq and c == 0


def oscillates(c: Coefficient) -> bool:
    """Whether the coefficient changes with the distance: it contains n or a bounded atom."""
    if type(c) is fmpq:
        return False
    ranges = case().ranges
    return any(s is n or s == n or s in ranges for s in c.free_symbols)


def has_tail(c: Coefficient) -> bool:
    """Whether the coefficient contains a named remainder."""
    return type(c) is not fmpq and bool(c.free_symbols & case().tail_symbols)


def named_tail(key: Any) -> Symbol:
    """The name of the bounded remainder with this key; equal keys mean equal remainders."""
    current = case()
    if key not in current.tails:
        symbol = sympy.Dummy("t", real=True)
        current.tails[key] = symbol
        current.tail_symbols.add(symbol)
    return current.tails[key]


# -- signs ----------------------------------------------------------------------------------------


def sign(c: Coefficient) -> int:
    """-1, 0 or 1; see the module's description for what it raises.

    >>> sign(sympy.pi - sympy.Rational(22, 7))
    -1
    >>> sign(sympy.sqrt(2) + sympy.sqrt(3) - sympy.sqrt(5 + 2*sympy.sqrt(6)))
    0
    """
    if type(c) is fmpq:
        return (c > 0) - (c < 0)
    if c.is_Rational:
        return int(sympy.sign(c))
    if c.free_symbols:
        return _sign_with_symbols(c)
    answer, how = _number_sign(c)
    if answer is None:
        raise Undecided(how)
    case().trace[c] = (answer, how)
    return answer


def _sign_with_symbols(c: Expr) -> int:
    if has_tail(c):
        if expand(c) == 0:
            return 0
        raise NeedMore
    if oscillates(c):
        raise Undecided("the sign of an oscillating coefficient")
    known = _assumed_sign(c)
    if known is not None:
        return known
    answer = 1
    signs = case().signs
    for factor in sign_factors(c):
        if not factor.free_symbols:
            s = sign(coefficient(factor))
        else:
            key, flip = canonical(factor)
            assumed = _assumed_sign(key)
            if assumed is None and key not in signs:
                raise Fork(key)
            s = flip * (signs[key] if assumed is None else assumed)
        if s == 0:
            return 0
        answer *= s
    return answer


def _assumed_sign(c: Expr) -> int | None:
    """The sign that the domains of the parameters alone give."""
    if c.is_Add and steep(c):  # SymPy would isolate the roots of the whole
        signs = {_assumed_sign(term) for term in c.args} - {0}
        return signs.pop() if len(signs) == 1 else None
    return 1 if c.is_positive else -1 if c.is_negative else 0 if c.is_zero else None


@lru_cache(maxsize=4096)
def canonical(factor: Expr) -> tuple[Expr, int]:
    """(key, s) with the sign of `factor` equal to s times that of `key`; a factor linear in its
    only parameter becomes `parameter - root`."""
    symbols = factor.free_symbols
    if len(symbols) == 1 and factor.is_Add:
        (x,) = symbols
        if factor.is_polynomial(x) and sympy.degree(factor, x) == 1:
            slope = expand(factor).coeff(x)
            return expand(factor / slope), sign(coefficient(slope))
    return (-factor, -1) if factor.could_extract_minus_sign() else (factor, 1)


@lru_cache(maxsize=4096)
def sign_factors(c: Expr) -> tuple[Expr, ...]:
    """Factors whose signs multiply to the sign of c (where its denominator is not 0: `germ` has
    asked that of every denominator)."""
    if sympy.count_ops(c) > MAX_ATOMS:
        raise Undecided("a condition on the parameters is too large")
    numerator, denominator = sympy.fraction(sympy.together(c))
    if not denominator.is_positive:
        numerator = numerator * denominator
    numerator = expand(numerator)
    factors: list[Expr] = []
    if numerator.is_Add and steep(numerator):
        raise Undecided("a condition of high degree on the parameters")
    for f in sympy.Mul.make_args(sympy.factor(numerator)):
        if f.is_positive:
            continue
        if f.is_Pow and f.exp.is_Integer and f.exp > 0:
            factors += _linear_factors(f.base) * (1 if f.exp % 2 else 2)
        elif f.is_Pow and not f.exp.is_Integer:  # defined only for a base >= 0
            factors += _linear_factors(f.base)
        else:
            factors += _linear_factors(f)
    return tuple(factors)


def _linear_factors(f: Expr) -> list[Expr]:
    """A quadratic in one parameter split at its real roots, so that `= 0` can be solved."""
    symbols = f.free_symbols
    if len(symbols) == 1 and f.is_polynomial(*symbols):
        poly = sympy.Poly(f, *symbols)
        if poly.degree() == 2 and all(c.is_Rational for c in poly.all_coeffs()):
            a, b, c = poly.all_coeffs()
            discriminant = b**2 - 4 * a * c
            (s,) = symbols
            if discriminant < 0:
                return [a]
            root = sympy.sqrt(discriminant)
            return [a, s - (-b - root) / (2 * a), s - (-b + root) / (2 * a)]
    return [f]


def simplest(c: Expr) -> Coefficient:
    """The rational number that a constant is proved to be, if it is one of small denominator.

    >>> simplest(sympy.sin(1)**2 + sympy.cos(1)**2 + sympy.Rational(1, 2))
    3/2
    """
    if c.is_Rational or not c.args:
        return coefficient(c)
    guess = _nearby_rational(c)
    if guess is None:
        return c
    try:
        return c if sign(coefficient(c - to_sympy(guess))) else guess
    except Undecided:
        return c


def tidied(e: Expr) -> Expr:
    """The expression with its numerical parts replaced by the rationals they are proved to be."""
    if not e.free_symbols:
        value = to_sympy(simplest(e))
        if value.is_Rational or not (e.is_Add or e.is_Mul):
            return value
        return to_sympy(simplest(e.func(*(to_sympy(simplest(a)) for a in e.args))))
    if not (e.is_Add or e.is_Mul):
        return e
    fixed, rest = sympy.sift(e.args, lambda a: not a.free_symbols, binary=True)
    return e.func(tidied(e.func(*fixed)), *map(tidied, rest))


@lru_cache(maxsize=20_000)
def _nearby_rational(c: Expr) -> fmpq | None:
    ball = _ball(c, 128)
    if ball is None or not ball.rad() < arb(2) ** -80 or not abs(ball) < 10**9:
        return None
    with precision(128):
        scaled = (ball * 5040).mid()
        whole = (scaled + arb(0.5)).floor().unique_fmpz()
        if whole is None or not abs(scaled - whole) < arb(2) ** -60:
            return None
    return fmpq(int(whole), 5040)


@lru_cache(maxsize=20_000)
def _number_sign(c: Expr) -> tuple[int | None, str]:
    """The sign of a real constant with the reason, or (None, why not)."""
    shown = str(c)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    for bits in (64, 256):
        s = _ball_sign(c, bits)
        if s:
            return s, f"ball of {bits} bits"
    ball = _ball(c, 256)
    if ball is None:
        return None, f"whether the constant {shown} is a real number"
    how = proved_zero(c) if ball.rad() < arb(2) ** -64 else None
    if how:
        return 0, how
    for bits in (1024, MAX_BITS):
        s = _ball_sign(c, bits)
        if s:
            return s, f"ball of {bits} bits"
    return None, f"whether the constant {shown} is 0"


def _ball_sign(c: Expr, bits: int) -> int | None:
    ball = _ball(c, bits)
    return None if ball is None else 1 if ball > 0 else -1 if ball < 0 else None


def _ball(c: Expr, bits: int) -> arb | None:
    with precision(bits):
        try:
            return to_arb(compile_ball(c)({}))
        except (Undefined, ZeroDivisionError, OverflowError, KeyError):
            return None


# -- proofs of zero -------------------------------------------------------------------------------


def proved_zero(c: Expr) -> str | None:
    """The identity that proves a constant to be 0, or None.

    >>> proved_zero(4*sympy.atan(sympy.Rational(1, 5)) - sympy.atan(sympy.Rational(1, 239))
    ...             - sympy.pi/4)
    'linear form in logarithms and arctangents'
    """
    if sympy.count_ops(c) > 200 or any(_swells(x) for x in c.atoms(sympy.Pow)):
        return None
    if c.has(sympy.gamma, *_SPECIAL) and any(abs(i) > 100 for i in c.atoms(sympy.Integer)):
        return None  # SymPy would evaluate zeta(10**6)
    c = _special_values(c)
    if _algebraic_zero(c):
        return "separation bound"
    expanded = expand(_elementary(c))
    if expanded == 0:
        return "expansion"
    numerator = sympy.numer(sympy.together(expanded))
    if sympy.count_ops(numerator) > 400:
        return None
    if expand(sympy.powsimp(expand(numerator))) == 0:
        return "expansion"
    if _coefficients_vanish(numerator):
        return "separation bounds of its coefficients"
    if _linear_form_zero(expanded) or _linear_form_zero(expand(numerator)):
        return "linear form in logarithms and arctangents"
    exponential = expand(sympy.powsimp(expand(numerator.rewrite(sympy.exp))))
    if exponential == 0:
        return "expansion in exponentials"
    return None


def _swells(power: Expr) -> bool:
    """Whether a power of a sum is too high to be expanded."""
    return bool(power.base.is_Add and power.exp.is_Integer and abs(power.exp) > 12)


def _coefficients_vanish(c: Expr) -> bool:
    """Whether the algebraic coefficient of each product of other numbers is 0."""
    sums: dict[Expr, Expr] = {}
    for term in sympy.Add.make_args(expand(_without_cosine_squares(expand(c)))):
        algebraic, rest = sympy.sift(sympy.Mul.make_args(term), _is_algebraic, binary=True)
        product = sympy.Mul(*rest)
        sums[product] = sums.get(product, S.Zero) + sympy.Mul(*algebraic)
    return len(sums) <= 20 and all(_algebraic_zero(a) for a in sums.values())


def _without_cosine_squares(c: Expr) -> Expr:
    """cos^2 = 1 - sin^2, so that sines and cosines have one normal form."""
    return c.replace(
        lambda e: e.is_Pow and isinstance(e.base, sympy.cos) and e.exp.is_Integer and e.exp > 1,
        lambda e: (1 - sympy.sin(e.base.args[0]) ** 2) ** (e.exp // 2) * e.base ** (e.exp % 2),
    )


def _is_algebraic(c: Expr) -> bool:
    try:
        _bfmss(c, {})
    except Undecided:
        return False
    return True


_SPECIAL = (
    sympy.polygamma, sympy.harmonic, sympy.zeta, sympy.factorial, sympy.binomial, sympy.LambertW,
    sympy.loggamma,
)  # fmt: skip


def _special_values(c: Expr) -> Expr:
    """Known values of special functions at small rational points; Gamma reflected and shifted."""
    if not c.has(sympy.gamma, *_SPECIAL):
        return c
    for f in _SPECIAL:
        if c.has(f):
            c = c.replace(f, _rebuilt(f))
    c = sympy.expand_func(c)
    if c.has(sympy.gamma):
        c = sympy.Add(*map(sympy.gammasimp, sympy.Add.make_args(expand(c))))
    return c


def _rebuilt(f: Any) -> Any:
    def build(*args: Expr) -> Expr:
        if f is sympy.LambertW:  # W(x e^x) = x for x >= -1
            x, power = args[0].as_independent(sympy.exp, S.Exp1, as_Add=False)
            if power == sympy.exp(x) and x.is_Rational and x >= -1:
                return x
        if not all(a.is_Rational and abs(a.p) <= 100 and a.q <= 100 for a in args):
            return f(*args, evaluate=False)
        return sympy.log(sympy.gamma(args[0])) if f is sympy.loggamma else f(*args)

    return build


def _elementary(c: Expr) -> Expr:
    """Hyperbolic functions as exponentials, inverse ones as logs and arctangents, prime logs."""
    for f in (sympy.sinh, sympy.cosh, sympy.tanh, sympy.coth):
        if c.has(f):
            c = c.rewrite(sympy.exp)
            break
    rules = {
        sympy.tan: lambda x: sympy.sin(x) / sympy.cos(x),
        sympy.cot: lambda x: sympy.cos(x) / sympy.sin(x),
        sympy.sec: lambda x: 1 / sympy.cos(x),
        sympy.csc: lambda x: 1 / sympy.sin(x),
        sympy.asinh: lambda x: sympy.log(x + sympy.sqrt(x**2 + 1)),
        sympy.acosh: lambda x: sympy.log(x + sympy.sqrt(x**2 - 1)),
        sympy.atanh: lambda x: (sympy.log(1 + x) - sympy.log(1 - x)) / 2,
        sympy.asin: lambda x: sympy.atan(x / sympy.sqrt(1 - x**2)),
        sympy.acos: lambda x: sympy.pi / 2 - sympy.atan(x / sympy.sqrt(1 - x**2)),
        sympy.acot: lambda x: sympy.atan(1 / x),
        sympy.erfc: lambda x: 1 - sympy.erf(x),
    }
    for function, rule in rules.items():
        if c.has(function):
            c = c.replace(function, rule)
    return c.replace(sympy.log, _log_of_primes) if c.has(sympy.log) else c


def _log_of_primes(a: Expr) -> Expr:
    """log of a positive product as a sum of logs of primes and of what is no rational."""
    total = S.Zero
    for f in sympy.Mul.make_args(a):
        base, exponent = f.as_base_exp()
        if base.is_Rational and base > 0 and exponent.is_real and max(base.p, base.q) < 10**15:
            for p, k in sympy.factorrat(base).items():
                total += k * exponent * sympy.log(p)
        elif base is S.Exp1 and exponent.is_real:
            total += exponent
        elif isinstance(base, sympy.LambertW) and base.args[0].is_positive:
            total += exponent * (sympy.log(base.args[0]) - base)  # W e^W = x
        elif base.is_positive and exponent.is_real and base != a:
            total += exponent * sympy.log(base)
        elif base.is_positive and exponent.is_real:
            total += exponent * sympy.log(base, evaluate=False)
        else:
            return sympy.log(a)
    return total


def _algebraic_zero(c: Expr) -> bool:
    """Whether a ball below the separation bound proves that an algebraic constant is 0."""
    radicals: dict[Any, int] = {}
    try:
        u, low = _bfmss(c, radicals)
    except Undecided:
        return False
    unity = math.lcm(*(k for node, k in radicals.items() if node[0] is _UNITY))
    degree = math.prod(k for node, k in radicals.items() if node[0] is not _UNITY)
    degree *= int(sympy.totient(unity))
    bits = (degree - 1) * u + low + 2
    if bits > 50_000:
        return False
    ball = _ball(c, int(bits) + 64)
    if ball is None or not ball.contains(0):
        return False
    with precision(64):
        return bool(abs(ball).upper() < arb(2) ** (-math.ceil(bits)))


_UNITY = object()  # the key of roots of unity among the radicals


def _bfmss(e: Expr, radicals: dict[Any, int]) -> tuple[float, float]:
    """Upper bounds of log2 u(E) and log2 l(E) of the separation bound."""
    if e.is_Rational:
        return _log2(abs(int(e.p))), _log2(int(e.q))
    if e is S.GoldenRatio:
        return _bfmss((1 + sympy.sqrt(5)) / 2, radicals)
    if e.is_Add:
        u, low = _bfmss(e.args[0], radicals)
        for a in e.args[1:]:
            u2, low2 = _bfmss(a, radicals)
            u, low = max(u + low2, low + u2) + 1, low + low2
        return u, low
    if e.is_Mul:
        parts = [_bfmss(a, radicals) for a in e.args]
        return sum(p[0] for p in parts), sum(p[1] for p in parts)
    if e.is_Pow and e.exp.is_Rational and abs(e.exp.p) <= 64 and e.exp.q <= 64:
        u, low = _bfmss(e.base, radicals)
        k = int(e.exp.q)
        if k > 1:
            radicals[(sympy.Pow(e.base, sympy.Rational(1, k)),)] = k
            u, low = ((u + (k - 1) * low) / k, low) if u >= low else (u, ((k - 1) * u + low) / k)
        p = int(e.exp.p)
        if p < 0:
            u, low, p = low, u, -p
        return u * p, low * p
    turn = e.args[0] / S.Pi if e.args and isinstance(e, (sympy.sin, sympy.cos)) else None
    if turn is not None and turn.is_Rational and turn.q <= 1000:
        order = 4 * int(turn.q)  # 2 cos and 2 sin are algebraic integers with conjugates <= 2
        radicals[_UNITY, order] = order
        return 1.0, 1.0
    if turn is None and isinstance(e, sympy.tan):
        return _bfmss(sympy.sin(e.args[0]) / sympy.cos(e.args[0]), radicals)
    raise Undecided("not algebraic")


def _log2(a: int) -> float:
    return 0.0 if a <= 1 else float(a.bit_length())


def _linear_form_zero(c: Expr) -> bool:
    """The two lemmas of the module's description, on a sum of rational multiples."""
    logs: list[tuple[Expr, sympy.Rational]] = []
    arctangents: list[tuple[Expr, sympy.Rational]] = []
    turns = S.Zero
    for term in sympy.Add.make_args(c):
        factor, rest = term.as_coeff_Mul()
        if not factor.is_Rational:
            return False
        if rest is S.Pi:
            turns += factor
        elif isinstance(rest, sympy.log):
            logs.append((rest.args[0], factor))
        elif isinstance(rest, sympy.atan):
            arctangents.append((rest.args[0], factor))
        else:
            return False
    scale = math.lcm(*(int(k.q) for _, k in [*logs, *arctangents, (S.One, turns)]))
    if any(abs(k * scale) > 64 for _, k in [*logs, *arctangents]):
        return False
    product = sympy.Mul(*(a ** (k * scale) for a, k in logs))
    if logs and not _algebraic_zero(expand(product) - 1):
        return False
    if not arctangents:
        return turns == 0
    real, imaginary = S.One, S.Zero
    for a, k in arctangents:
        step = a if k > 0 else -a
        for _ in range(abs(int(k * scale))):
            real, imaginary = (
                expand(real - imaginary * step),
                expand(imaginary + real * step),
            )
    if imaginary != 0 and not _algebraic_zero(imaginary):
        return False
    angle = scale * sympy.Add(turns * S.Pi, *(k * sympy.atan(a) for a, k in arctangents))
    ball = _ball(angle, 256)
    return ball is not None and bool(abs(ball) < 1)
