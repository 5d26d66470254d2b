"""The sign of a coefficient: the one place where the engine decides what a number is.

`sign` answers -1, 0 or 1 for all of them, or raises:

* `Undecided`  a constant that balls cannot separate from 0 and no identity proves to be 0;
* `OrderTooLow`   the answer hides in the remainder of an expansion: expand further;
* `SignNeeded`       it depends on the parameters: the caller splits the parameter space.

A constant is non-zero when a ball excludes 0. It is zero only by proof (module `zeros`), and only
if a small ball agrees.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache

import sympy
from flint import arb, fmpq
from sympy import Expr

from farfield.theory.algebra import door
from farfield.theory.algebra.exceptions import OrderTooLow, SignNeeded, Undecided
from farfield.theory.answers.notation import beginning, expression_line
from farfield.theory.coefficients.exact import (
    MAX_ATOMS,
    Coefficient,
    Context,
    coefficient,
    context,
    deciding,
    expand,
    has_tail,
    linear,
    oscillates,
    remembered,
    symbols,
    to_sympy,
)
from farfield.theory.coefficients.zeros import proved_zero
from farfield.theory.evaluation.real_balls import RealBalls
from farfield.theory.formula.bounded_nodes import steep
from farfield.theory.functions.balls import precision
from farfield.theory.functions.record import record_of

MAX_BITS = 4096


def sign(c: Coefficient) -> int:
    """-1, 0 or 1; see the module's description for what it raises.

    >>> with deciding(Context()):
    ...     sign(sympy.pi - sympy.Rational(22, 7))
    ...     sign(sympy.sqrt(2) + sympy.sqrt(3) - sympy.sqrt(5 + 2*sympy.sqrt(6)))
    -1
    0
    """
    if type(c) is fmpq:
        return (c > 0) - (c < 0)
    if c.is_Rational:
        return int(sympy.sign(c))
    if symbols(c):
        answer, how = _sign_with_symbols(c), ""
    else:
        decided, how = _number_sign(c)
        if decided is None:
            raise Undecided(how)
        answer = decided
    context().trace[c] = (answer, how)
    return answer


def _sign_with_symbols(c: Expr) -> int:
    """The product of the factors' signs; SignNeeded where a factor's sign is not assumed yet."""
    if has_tail(c):
        if expand(c) == 0:
            return 0
        raise OrderTooLow
    if oscillates(c):
        raise Undecided("the sign of an oscillating coefficient")
    known = _assumed_sign(c)
    if known is not None:
        return known
    answer = 1
    signs = context().signs
    for factor in sign_factors(c):
        if not factor.free_symbols:
            s = sign(coefficient(factor))
        else:
            key, flip = sign_key(factor)
            assumed = _assumed_sign(key)
            if assumed is None and key not in signs:
                raise SignNeeded(key)
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
    return door.known_sign(c)


@remembered(maxsize=4096)
def sign_key(factor: Expr) -> tuple[Expr, int]:
    """(key, s) with the sign of `factor` equal to s times that of `key`; a factor linear in its
    only parameter becomes `parameter - root`."""
    if len(symbols(factor)) == 1 and factor.is_Add:
        (x,) = symbols(factor)
        if line := linear(expand(factor), x):
            slope, rest = line
            return x + expand(rest / slope), sign(coefficient(slope))
    return (-factor, -1) if factor.could_extract_minus_sign() else (factor, 1)


@lru_cache(maxsize=4096)
def sign_factors(c: Expr) -> tuple[Expr, ...]:
    """Factors whose signs multiply to the sign of c (where its denominator is not 0: `germ` has
    asked that of every denominator)."""
    if sympy.count_ops(c) > MAX_ATOMS:
        raise Undecided("a condition on the parameters is too large")
    numerator, denominator = door.fraction(door.together(c))
    if not denominator.is_positive:
        numerator = numerator * denominator
    numerator = expand(numerator)
    factors: list[Expr] = []
    if numerator.is_Add and steep(numerator):
        raise Undecided("a condition of high degree on the parameters")
    for f in sympy.Mul.make_args(door.factor(numerator)):
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
    if len(symbols(f)) == 1 and f.is_polynomial(*symbols(f)):
        poly = door.polynomial(f, *symbols(f))
        if poly.degree() == 2 and all(c.is_Rational for c in poly.all_coeffs()):
            a, b, c = poly.all_coeffs()
            discriminant = b**2 - 4 * a * c
            (s,) = symbols(f)
            if discriminant < 0:
                return [a]
            root = sympy.sqrt(discriminant)
            return [a, s - (-b - root) / (2 * a), s - (-b + root) / (2 * a)]
    return [f]


def proved_rational(c: Expr) -> Coefficient:
    """The rational number that a constant is proved to be, if it is one of small denominator.

    >>> with deciding(Context()):
    ...     proved_rational(sympy.sin(1)**2 + sympy.cos(1)**2 + sympy.Rational(1, 2))
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


def with_proved_rationals(e: Expr) -> Expr:
    """The expression with its numerical parts replaced by the rationals they are proved to be."""
    if not e.free_symbols:
        value = to_sympy(proved_rational(e))
        if value.is_Rational or not (e.is_Add or e.is_Mul):
            return value
        return to_sympy(proved_rational(e.func(*(to_sympy(proved_rational(a)) for a in e.args))))
    if not (e.is_Add or e.is_Mul):
        return e
    fixed, rest = sympy.sift(e.args, lambda a: not a.free_symbols, binary=True)
    return e.func(with_proved_rationals(e.func(*fixed)), *map(with_proved_rationals, rest))


@lru_cache(maxsize=20_000)
def _nearby_rational(c: Expr) -> fmpq | None:
    """A multiple of 1/5040 within 2^-60, as a candidate for an exact zero test."""
    ball = BALLS.enclose(c, 128)
    if ball is None or not ball.rad() < arb(2) ** -80 or not abs(ball) < 10**9:
        return None
    with precision(128):
        scaled = (ball * 5040).mid()
        whole = (scaled + arb(0.5)).floor().unique_fmpz()
        if whole is None or not abs(scaled - whole) < arb(2) ** -60:
            return None
    return fmpq(int(whole), 5040)


@remembered(maxsize=20_000)
def _number_sign(c: Expr) -> tuple[int | None, str]:
    """The sign of a real constant with the reason, or (None, why not)."""
    for part in sympy.postorder_traversal(c):
        _decide_jump(part)
    for bits in (64, 256):
        s = _ball_sign(c, bits)
        if s:
            return s, f"ball of {bits} bits"
    ball = BALLS.enclose(c, 256)
    if ball is None:
        return None, f"whether the constant {beginning(expression_line(c))} is a real number"
    how = proved_zero(c) if ball.rad() < arb(2) ** -64 else None
    if how:
        return 0, how
    for bits in (1024, MAX_BITS):
        s = _ball_sign(c, bits)
        if s:
            return s, f"ball of {bits} bits"
    return None, f"whether the constant {beginning(expression_line(c))} is 0"


def _ball_sign(c: Expr, bits: int) -> int | None:
    """The sign where a ball of so many bits shows it."""
    ball = BALLS.enclose(c, bits)
    return None if ball is None else 1 if ball > 0 else -1 if ball < 0 else None


def _decide_jump(e: Expr) -> None:
    """Where a function with jumps stands at one, prove that: a proof shows what it rests on."""
    record = record_of(e.func)
    if record is None or not record.jumps:
        return
    assert record.period is not None
    inside, modulus = record.period(*e.args)
    turns = inside / modulus
    near = _nearby_rational(turns)
    if near is not None and near.q == 1:
        with suppress(Undecided):
            sign(coefficient(turns - to_sympy(near)))


def is_zero(c: Expr) -> bool:
    """Whether a constant is proved to be 0. A ball asks it once, and its value is kept, so the
    decision at hand does not note the answer: `_decide_jump` does."""
    with deciding(Context()), suppress(Undecided):
        return sign(coefficient(c)) == 0
    return False


BALLS = RealBalls(is_zero)
"""Real balls that believe the proofs of this module where a jump depends on one."""
