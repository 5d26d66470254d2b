"""Oscillating coefficients, sines and cosines of the distance: harmonics, amplitudes, bounds.

A coefficient oscillates when it contains `n` inside a sine or cosine whose argument has no finite
limit, or a *bounded atom*: a symbol for a quantity known only through its bounds
(`floor(x) = x - u` with u in [0, 1]). `bounds` encloses such a coefficient for all large n:

* sums of sinusoids of one argument are first combined, `x sin g + y cos g` has the exact range
  `+- sqrt(x^2 + y^2)`; products and powers are turned into sums, so that identities such as
  `sin 2g = 2 sin g cos g` vanish;
* the rest is enclosed term by term, each term a product of powers of bounded factors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import sympy
from flint import fmpq
from sympy import Expr, S, Symbol

from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.coefficients.exact import (
    Atom,
    Coefficient,
    coefficient,
    expand,
    is_huge,
    oscillates,
    to_sympy,
)
from farfield.theory.coefficients.signs import BALLS, Context
from farfield.theory.functions.nodes import n
from farfield.theory.functions.record import symbols

Bounds = tuple[Expr, Expr]


def bounded_atom(low: Expr, high: Expr, meaning: Expr | None = None) -> Atom:
    """A symbol for a quantity that stays in [low, high] for all large n (ends may be infinite)."""
    atom = Atom("u", real=True)
    atom.low, atom.high, atom.meaning = sympy.sympify(low), sympy.sympify(high), meaning
    return atom


@lru_cache(maxsize=4096)
def harmonics(e: Expr) -> Expr:
    """The expression with products and powers of sines and cosines turned into sums.

    >>> harmonics(sympy.sin(n) * sympy.cos(n) + sympy.sin(n) ** 2)
    sin(2*n)/2 - cos(2*n)/2 + 1/2
    """
    e = expand(e)
    terms = sympy.Add.make_args(e)
    if all(len(_waves(term)[0]) <= 1 for term in terms):
        return e
    sums: list[Expr] = []
    for term in terms:
        waves, rest = _waves(term)
        if len(waves) > 12 or len(sums) > 4000:
            raise Undecided("an oscillating coefficient is too large")
        sums += [rest * part for part in _product_to_sum(waves)]
    return expand(sympy.Add(*sums))


def _waves(term: Expr) -> tuple[list[Expr], Expr]:
    """The sines and cosines that are factors of a term, once for each power, and the rest."""
    waves, rest = [], S.One
    for f in sympy.Mul.make_args(term):
        base, power = f.as_base_exp()
        if isinstance(base, (sympy.sin, sympy.cos)) and power.is_Integer and 0 < power < 50:
            waves += [base] * int(power)
        else:
            rest = rest * f
    return waves, rest


def _product_to_sum(waves: list[Expr]) -> list[Expr]:
    """A product of sines and cosines as sines and cosines of sums of their arguments."""
    if len(waves) < 2:
        return waves or [S.One]
    *others, last = waves
    y = last.args[0]
    out = []
    for part in _product_to_sum(others):
        factor, wave = part.as_coeff_Mul()
        if wave is S.One:
            out.append(factor * last)
            continue
        x = wave.args[0]
        sine, second = isinstance(wave, sympy.sin), isinstance(last, sympy.sin)
        minus, plus = expand(x - y), expand(x + y)
        if sine and second:  # 2 sin x sin y = cos(x - y) - cos(x + y)
            pair = sympy.cos(minus), -sympy.cos(plus)
        elif sine:  # 2 sin x cos y = sin(x + y) + sin(x - y)
            pair = sympy.sin(plus), sympy.sin(minus)
        elif second:  # 2 cos x sin y = sin(x + y) - sin(x - y)
            pair = sympy.sin(plus), -sympy.sin(minus)
        else:  # 2 cos x cos y = cos(x - y) + cos(x + y)
            pair = sympy.cos(minus), sympy.cos(plus)
        out += [factor * p / 2 for p in pair]
    return out


def in_harmonics(c: Expr) -> Coefficient:
    """The coefficient in harmonics, so that sin^2 + cos^2 is the constant it is."""
    if not c.is_Add:
        return c
    try:
        simpler = coefficient(harmonics(c))
    except Undecided:
        return c
    return c if oscillates(simpler) else simpler


def vanishes(c: Coefficient) -> bool:
    """Whether an oscillating coefficient is 0 by a trigonometric identity."""
    return bool(harmonics(to_sympy(c)) == 0)


def below(a: Expr, b: Expr, context: Context) -> bool:
    """a < b for constants, infinite ones included."""
    if a == S.NegativeInfinity or b == S.Infinity:
        return bool(a != b)
    if a == S.Infinity or b == S.NegativeInfinity:
        return False
    return context.sign(coefficient(a - b)) < 0


def decompose(
    e: Expr, variable: Symbol = n
) -> tuple[Expr, dict[Expr, tuple[Expr, Expr]], list[tuple[Expr, Expr]]]:
    """A constant, sinusoids by argument as (sine, cosine) amplitudes, and (factor, rest) terms."""
    atoms = tuple(s for s in symbols(e) if type(s) is Atom)
    constant: Expr = S.Zero
    waves: dict[Expr, tuple[Expr, Expr]] = {}
    others: list[tuple[Expr, Expr]] = []
    for term in sympy.Add.make_args(harmonics(e)):
        factor, rest = term.as_independent(variable, *atoms)
        if rest == 1:
            constant += factor
        elif isinstance(rest, (sympy.sin, sympy.cos)) and not rest.has(*atoms):
            phase, argument = rest.args[0].as_independent(variable, as_Add=True)
            x, y = waves.get(argument, (S.Zero, S.Zero))
            c, s = factor * sympy.cos(phase), factor * sympy.sin(phase)
            waves[argument] = (x + c, y + s) if isinstance(rest, sympy.sin) else (x - s, y + c)
        else:
            others.append((factor, rest))
    return constant, waves, others


def amplitude(x: Expr, y: Expr) -> Expr:
    """The amplitude of `x sin g + y cos g`."""
    if x == 0 or y == 0:
        return sympy.Abs(x + y)
    return sympy.sqrt(expand(x**2 + y**2))


def bounds(c: Coefficient, context: Context) -> Bounds:
    """(low, high) with low <= c <= high for all large n; exact for one sinusoid."""
    e = to_sympy(c)
    if not oscillates(c):
        return e, e
    if not (e.is_Add or e.is_Pow) and not (e.is_Mul and any(f.is_Add or f.is_Pow for f in e.args)):
        return _bounds_of_terms(e, context)
    ranges = []
    for method in (_bounds_of_terms, _bounds_as_written):
        try:
            ranges.append(method(e, context))
        except Undecided as why:
            reason = why
    if not ranges:
        raise reason
    low, high = ranges[0]
    for a, b in ranges[1:]:
        low, high = (a if below(low, a, context) else low), (b if below(b, high, context) else high)
    return low, high


def _bounds_as_written(e: Expr, context: Context) -> Bounds:
    """Interval arithmetic on the expression as it stands: `(sin n + 1/4)^2` is not negative, and a
    product has the ranges of its factors, each for itself."""
    if not oscillates(e):
        return e, e
    if type(e) is Atom:
        return e.low, e.high
    if e.is_Add:
        parts = [_bounds_as_written(a, context) for a in e.args]
        return sympy.Add(*(a for a, _ in parts)), sympy.Add(*(b for _, b in parts))
    if e.is_Mul:
        low = high = S.One
        for factor in e.args:
            low, high = _product(low, high, *_bounds_as_written(factor, context), context)
        return low, high
    if isinstance(e, (sympy.sin, sympy.cos)) or (e.is_Pow and e.base is S.NegativeOne):
        return S.NegativeOne, S.One  # SymPy writes sin(pi n + x) as (-1)^n sin x
    if e.is_Pow:
        return _power_bounds(*_bounds_as_written(e.base, context), e.exp, context)
    raise Undecided(f"the range of {e}")


def _bounds_of_terms(e: Expr, context: Context) -> Bounds:
    """Waves of one frequency together by their amplitude, the other terms one by one."""
    low, waves, others = decompose(e)
    high = low
    for x, y in waves.values():
        a = amplitude(x, y)
        low, high = low - a, high + a
    for factor, rest in others:
        a, b = _bounds_as_written(rest, context)
        if context.sign(coefficient(factor)) < 0:
            a, b = b, a
        low, high = low + factor * a, high + factor * b
    return low, high


def _product(low: Expr, high: Expr, a: Expr, b: Expr, context: Context) -> Bounds:
    """The product of the intervals [low, high] and [a, b]."""
    if any(x.is_infinite for x in (a, b, low, high)):
        raise Undecided("the product of unbounded oscillations")
    corners = [x * y for x in (low, high) for y in (a, b)]
    low = high = corners[0]
    for x in corners[1:]:
        low = x if below(x, low, context) else low
        high = x if below(high, x, context) else high
    return low, high


def _power_bounds(a: Expr, b: Expr, power: Expr, context: Context) -> Bounds:
    """The range of a natural power on [a, b]; an even one is least at 0."""
    if not (power.is_Integer and power > 0):
        raise Undecided("a power of an oscillation")
    if power % 2:
        return a**power, b**power
    ends = (abs(a) ** power, abs(b) ** power)
    smaller, larger = ends if below(ends[0], ends[1], context) else (ends[1], ends[0])
    crosses = not below(S.Zero, a, context) and not below(b, S.Zero, context)
    return (S.Zero if crosses else smaller), larger


def low_sign(c: Coefficient, context: Context) -> int:
    """1 if c stays above a positive constant, 0 if it stays >= 0, else -1."""
    if not oscillates(c):
        return context.sign(c)
    low = bounds(c, context)[0]
    return 1 if below(S.Zero, low, context) else -1 if below(low, S.Zero, context) else 0


def eventual_sign(c: Coefficient, context: Context) -> int:
    """The sign that c has for all large n, bounded away from 0."""
    if not oscillates(c):
        return context.sign(c)
    low, high = bounds(c, context)
    if below(S.Zero, low, context):
        return 1
    if below(high, S.Zero, context):
        return -1
    raise Undecided("the sign of an oscillation that meets 0")


def stays_negative(c: Coefficient, context: Context) -> bool:
    """Whether c is proved to stay below a negative constant."""
    if not oscillates(c):
        return context.sign(c) < 0
    return below(bounds(c, context)[1], S.Zero, context)


def unbounded(c: Coefficient) -> bool:
    """Whether c contains an atom with an infinite bound: it must never be dropped."""
    return type(c) is not fmpq and any(
        type(s) is Atom and (s.low.is_infinite or s.high.is_infinite) for s in symbols(c)
    )


def monotone(f: Callable[[Expr], Expr], c: Coefficient, context: Context) -> Coefficient:
    """An increasing function of a coefficient."""
    e = to_sympy(c)
    ends = bounds(c, context)
    if any(not _moderate(x) for x in ends if x.is_finite and not x.free_symbols):
        raise Undecided("a constant is too large")
    if not oscillates(c):
        return coefficient(f(e))
    return bounded_atom(f(ends[0]), f(ends[1]), f(e))


def _moderate(x: Expr) -> bool:
    """Whether |x| <= 10^5, so that exp x is a number one can write."""
    ball = BALLS.enclose(x, 64)
    return ball is not None and bool(abs(ball) <= 10**5)


def log_of(c: Coefficient, context: Context) -> Coefficient:
    """The logarithm of an oscillation that is >= 0 with isolated zeros."""
    low, high = bounds(c, context)
    floor = sympy.log(low) if low != 0 else S.NegativeInfinity
    return bounded_atom(floor, sympy.log(high), sympy.log(to_sympy(c)))


def inverse_of(c: Coefficient, context: Context) -> Coefficient:
    """1/c, for an oscillation that is bounded away from 0."""
    eventual_sign(c, context)
    low, high = bounds(c, context)
    return bounded_atom(1 / high, 1 / low, 1 / to_sympy(c))


def power_of(c: Coefficient, r: Coefficient, context: Context) -> Coefficient:
    """c**r, for an oscillation that is positive and bounded away from 0 (or r = -1)."""
    if r == -1:
        return inverse_of(c, context)
    if eventual_sign(c, context) == -1:
        raise Undecided("a real power of a negative oscillation")
    if is_huge(r):
        raise Undecided("a constant is too large")
    low, high = (b ** to_sympy(r) for b in bounds(c, context))
    if context.sign(r) < 0:
        low, high = high, low
    return bounded_atom(low, high, to_sympy(c) ** to_sympy(r))
