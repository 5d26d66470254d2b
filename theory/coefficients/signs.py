"""The sign of a coefficient: the one place where the engine decides what a number is.

`sign` answers -1, 0 or 1 for all of them, with the reason, or raises:

* `Undecided`  a constant that balls cannot separate from 0 and no identity proves to be 0;
* `SignNeeded`       it depends on the parameters: the caller splits the parameter space.

A constant is non-zero when a ball excludes 0. It is zero only by proof (module `zeros`), and only
if a small ball agrees.

A `Context` is what one decision carries along. It is handed from function to function, and ends
with the decision: no answer depends on earlier questions.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import sympy
from flint import arb, fmpq
from sympy import Expr

from farfield.theory.algebra import door
from farfield.theory.algebra.call_tree import traced
from farfield.theory.algebra.door import check_time
from farfield.theory.algebra.exceptions import SignNeeded, Undecided
from farfield.theory.answers.notation import beginning, expression_line
from farfield.theory.coefficients.exact import (
    MAX_ATOMS,
    Coefficient,
    coefficient,
    expand,
    linear,
    oscillates,
    to_sympy,
)
from farfield.theory.coefficients.zeros import proved_zero
from farfield.theory.evaluation.real_balls import RealBalls
from farfield.theory.formula.bounded_nodes import steep
from farfield.theory.functions.balls import precision
from farfield.theory.functions.record import record_of, symbols

MAX_BITS = 4096
EMPTY: Mapping[Expr, int] = MappingProxyType({})
MAX_WORK = 60_000


class Sign(NamedTuple):
    """The sign of a coefficient, how it is proved (of a constant), and what else that rests on."""

    value: int
    why: str = ""
    evidence: tuple[tuple[Expr, Sign], ...] = ()


@dataclass
class Context:
    """What one decision carries along: where the parameters lie, and how much work was done.

    Fields:
        signs: the signs of parameter expressions on the branch at hand.
        order: how many terms an expansion keeps.
        memo: the expansions so far.
        constants: the parts without n that are proved to be real, with their values.
        evidence: the signs so far; a proof must show the zeros among them.
        work: spent so far.
    """

    signs: Mapping[Expr, int] = field(default_factory=dict)
    order: int = 4
    memo: dict[Expr, Any] = field(default_factory=dict)
    constants: dict[Expr, Coefficient] = field(default_factory=dict)
    evidence: dict[Expr, Sign] = field(default_factory=dict)
    work: int = 0

    def spend(self, amount: int) -> None:
        """Count work; the limits keep a decision from swelling without end."""
        self.work += amount
        if self.work > MAX_WORK:
            raise Undecided("the work budget was spent")
        check_time()

    def sign(self, c: Coefficient) -> int:
        """The value of `sign`, its reasons kept as evidence.

        >>> Context().sign(sympy.sqrt(2) + sympy.sqrt(3) - sympy.sqrt(5 + 2*sympy.sqrt(6)))
        0
        """
        if type(c) is fmpq or c.is_Rational:
            return bool(c > 0) - bool(c < 0)
        answer = sign(c, self.signs)
        self.evidence |= answer.evidence
        self.evidence[c] = answer
        return answer.value


@traced(1, lambda s: f"{s.value} {s.why}".strip())
def sign(c: Coefficient, signs: Mapping[Expr, int] = EMPTY) -> Sign:
    """-1, 0 or 1 with the reason; see the module's description for what it raises.

    Args:
        c: a coefficient.
        signs: those of expressions in parameters that are assumed, by their `sign_key`.

    >>> sign(sympy.pi - sympy.Rational(22, 7))
    Sign(value=-1, why='ball of 64 bits', evidence=())
    """
    if type(c) is fmpq or c.is_Rational:
        return Sign(bool(c > 0) - bool(c < 0))
    if symbols(c):
        return _sign_with_symbols(c, signs)
    answer = _number_sign(c)
    if isinstance(answer, str):
        raise Undecided(answer)
    return answer


def _sign_with_symbols(c: Expr, signs: Mapping[Expr, int]) -> Sign:
    """The product of the factors' signs; SignNeeded where a factor's sign is not assumed yet."""
    if oscillates(c):
        raise Undecided("the sign of an oscillating coefficient")
    by_domains = _assumed_sign(c)
    if by_domains is not None:
        return Sign(by_domains)
    answer, evidence = 1, dict[Expr, Sign]()
    for factor in sign_factors(c):
        if not factor.free_symbols:
            number = sign(coefficient(factor))
            evidence |= {**dict(number.evidence), factor: number}
            s = number.value
        else:
            key, flip = sign_key(factor)
            assumed = _assumed_sign(key)
            if assumed is None and key not in signs:
                raise SignNeeded(key)
            s = flip * (signs[key] if assumed is None else assumed)
        if s == 0:
            return Sign(0, "", tuple(evidence.items()))
        answer *= s
    return Sign(answer, "", tuple(evidence.items()))


def _assumed_sign(c: Expr) -> int | None:
    """The sign that the domains of the parameters alone give."""
    if c.is_Add and steep(c):  # SymPy would isolate the roots of the whole
        signs = {_assumed_sign(term) for term in c.args} - {0}
        return signs.pop() if len(signs) == 1 else None
    return door.known_sign(c)


@lru_cache(maxsize=4096)
def sign_key(factor: Expr) -> tuple[Expr, int]:
    """(key, s): the sign of `factor` is s times the sign of `key`; a factor linear in its
    only parameter becomes `parameter - root`."""
    if len(symbols(factor)) == 1 and factor.is_Add:
        (x,) = symbols(factor)
        if line := linear(expand(factor), x):
            slope, rest = line
            return x + expand(rest / slope), sign(coefficient(slope)).value
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
        if f.is_Pow:  # defined only for a base >= 0, unless the exponent is an integer
            factors += _linear_factors(f.base) * (2 if f.exp % 2 == 0 else 1)
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


def proved_rational(c: Expr, context: Context) -> Coefficient:
    """The rational number that a constant is proved to be, if it is one of small denominator.

    >>> proved_rational(sympy.sin(1)**2 + sympy.cos(1)**2 + sympy.Rational(1, 2), Context())
    3/2
    """
    if c.is_Rational:
        return coefficient(c)
    guess = _nearby_rational(c)
    if guess is None:
        return c
    try:
        return c if context.sign(coefficient(c - to_sympy(guess))) else guess
    except Undecided:
        return c


def with_proved_rationals(e: Expr, context: Context) -> Expr:
    """The expression with its numerical parts replaced by the rationals they are proved to be."""
    if not e.free_symbols:
        value = to_sympy(proved_rational(e, context))
        if value.is_Rational or not (e.is_Add or e.is_Mul):
            return value
        parts = (to_sympy(proved_rational(a, context)) for a in e.args)
        return to_sympy(proved_rational(e.func(*parts), context))
    if not (e.is_Add or e.is_Mul):
        return e
    fixed, rest = sympy.sift(e.args, lambda a: not a.free_symbols, binary=True)
    moving = (with_proved_rationals(a, context) for a in rest)
    return e.func(with_proved_rationals(e.func(*fixed), context), *moving)


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


@lru_cache(maxsize=20_000)
def _number_sign(c: Expr) -> Sign | str:
    """The sign of a real constant with the reason, or why it is not decided."""
    jumps = dict[Expr, Sign]()
    for part in sympy.postorder_traversal(c):
        jumps |= _jump(part)
    evidence = tuple(jumps.items())
    for bits in (64, 256):
        s = _ball_sign(c, bits)
        if s:
            return Sign(s, f"ball of {bits} bits", evidence)
    ball = BALLS.enclose(c, 256)
    how = proved_zero(c) if ball is not None and ball.rad() < arb(2) ** -64 else None
    if how:
        return Sign(0, how, evidence)
    for bits in (1024, MAX_BITS):
        s = _ball_sign(c, bits)
        if s:
            return Sign(s, f"ball of {bits} bits", evidence)
    what = "is a real number" if BALLS.enclose(c, MAX_BITS) is None else "is 0"
    return f"whether the constant {beginning(expression_line(c))} {what}"


def _ball_sign(c: Expr, bits: int) -> int | None:
    """The sign where a ball of this many bits shows it."""
    ball = BALLS.enclose(c, bits)
    return None if ball is None else 1 if ball > 0 else -1 if ball < 0 else None


def _jump(e: Expr) -> dict[Expr, Sign]:
    """Where a function with jumps stands at one, the proof of that: the value rests on it."""
    record = record_of(e.func)
    if record is None or not record.jumps:
        return {}
    assert record.period is not None
    inside, modulus = record.period(*e.args)
    near = _nearby_rational(inside / modulus)
    if near is not None and near.q == 1:
        with suppress(Undecided):
            distance = coefficient(inside / modulus - to_sympy(near))
            answer = sign(distance)
            return {**dict(answer.evidence), distance: answer}
    return {}


def is_zero(c: Expr) -> bool:
    """Whether a constant is proved to be 0."""
    with suppress(Undecided):
        return sign(coefficient(c)).value == 0
    return False


BALLS = RealBalls(is_zero)
"""Real balls that believe the proofs of this module where a jump depends on one."""
