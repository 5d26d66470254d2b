"""Proofs that a constant is 0: a separation bound of algebraic numbers, or expansion.

**Separation bound** (Burnikel, Funke, Mehlhorn, Schirra, Schmitt 2001). Let E be an expression
over the integers with `+ - * /` and k-th roots. The rules in `_bfmss` compute u and l. D is the
product of the indices of its distinct radicals, times the degree of the roots of unity. Its sines
and cosines of rational multiples of pi need these. If E is not 0 then |E| >= 1/(u^(D-1) l).
So a ball below that bound proves E = 0.
"""

from __future__ import annotations

import math
from functools import reduce

import sympy
from flint import arb
from sympy import Expr, S

from farfield.theory.algebra import door
from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.coefficients.exact import expand
from farfield.theory.evaluation.real_balls import PLAIN
from farfield.theory.functions.balls import precision
from farfield.theory.functions.record import record_of, records

MAX_SEPARATION = 50_000  # bits


def proved_zero(c: Expr) -> str | None:
    """The identity that proves a constant to be 0, or None.

    >>> proved_zero(sympy.sqrt(2) + sympy.sqrt(3) - sympy.sqrt(5 + 2 * sympy.sqrt(6)))
    'separation bound'
    >>> proved_zero(sympy.log(6) - sympy.log(2) - sympy.log(3))
    'expansion'
    """
    if sympy.count_ops(c) > 200 or any(_swells(x) for x in c.atoms(sympy.Pow)):
        return None
    if _special(c) and any(abs(i) > 100 for i in c.atoms(sympy.Integer)):
        return None  # SymPy would evaluate harmonic(10**6)
    if _algebraic_zero(c):
        return "separation bound"
    expanded = expand(_elementary(c))
    if expanded == 0:
        return "expansion"
    numerator = door.fraction(door.together(expanded))[0]
    if sympy.count_ops(numerator) > 400:
        return None
    if expand(door.powsimp(expand(numerator))) == 0:
        return "expansion"
    exponential = expand(door.powsimp(expand(door.rewritten(numerator, sympy.exp))))
    if exponential == 0:
        return "expansion in exponentials"
    return None


def _swells(power: Expr) -> bool:
    """Whether a power of a sum is too high to be expanded."""
    return bool(power.base.is_Add and power.exp.is_Integer and abs(power.exp) > 12)


def _special(c: Expr) -> bool:
    """Whether a constant has functions, such as gamma, that are more than elementary."""
    found = (record_of(f.func) for f in c.atoms(sympy.Function))
    return any(record is not None and record.asymptotic is not None for record in found)


def _elementary(c: Expr) -> Expr:
    """Functions by their identities in exp, log, sin, cos and atan; logs by those of primes."""
    nodes = {f.func for f in c.atoms(sympy.Function)}
    for record in records():
        if record.node in nodes and record.elementary is not None:
            c = door.supervised(c.replace, record.node, record.elementary)
    return door.supervised(c.replace, sympy.log, _log_of_primes) if c.has(sympy.log) else c


def _log_of_primes(a: Expr) -> Expr:
    """log of a positive product as a sum of logs of primes and of irrational factors."""
    total = S.Zero
    for f in sympy.Mul.make_args(a):
        base, exponent = f.as_base_exp()
        if base.is_Rational and base > 0 and exponent.is_real and max(base.p, base.q) < 10**15:
            for p, k in door.factorrat(base).items():
                total += k * exponent * sympy.log(p)
        elif base is S.Exp1 and exponent.is_real:
            total += exponent
        elif (logarithm := _known_logarithm(base)) is not None:
            total += exponent * logarithm
        elif base.is_positive and exponent.is_real:
            total += exponent * sympy.log(base, evaluate=False)
        else:
            return sympy.log(a)
    return total


def _known_logarithm(base: Expr) -> Expr | None:
    """The logarithm of a function's value, where its record has it without the value."""
    record = record_of(base.func)
    return record.logarithm(*base.args) if record and record.logarithm else None


def _algebraic_zero(c: Expr) -> bool:
    """Whether a ball below the separation bound proves that an algebraic constant is 0."""
    radicals: dict[tuple[object, ...], int] = {}
    try:
        u, low = _bfmss(c, radicals)
    except Undecided:
        return False
    unity = math.lcm(*(k for node, k in radicals.items() if node[0] is _UNITY))
    degree = math.prod(k for node, k in radicals.items() if node[0] is not _UNITY)
    degree *= int(sympy.totient(unity))
    bits = (degree - 1) * u + low + 2
    if bits > MAX_SEPARATION:
        return False
    ball = PLAIN.enclose(c, int(bits) + 64)
    if ball is None or not ball.contains(0):
        return False
    with precision(64):
        return bool(abs(ball).upper() < arb(2) ** (-math.ceil(bits)))


_UNITY = object()  # the key of roots of unity among the radicals


Bounds = tuple[float, float]
"""Of log2 u(E) and log2 l(E) of the separation bound, from above."""


def _bfmss(e: Expr, radicals: dict[tuple[object, ...], int]) -> Bounds:
    """The bounds of an expression; its radicals are noted with their indices."""

    def bounds(part: Expr) -> Bounds:
        return _bfmss(part, radicals)

    if e.is_Rational:
        return _log2(abs(int(e.p))), _log2(int(e.q))
    if e is S.GoldenRatio:
        return bounds((1 + sympy.sqrt(5)) / 2)
    if e.is_Add:
        return reduce(_of_sum, map(bounds, e.args))
    if e.is_Mul:
        each = [*map(bounds, e.args)]
        return sum(u for u, _ in each), sum(low for _, low in each)
    if e.is_Pow and e.exp.is_Rational and abs(e.exp.p) <= 64 and e.exp.q <= 64:
        root = bounds(e.base)
        if e.exp.q > 1:
            radicals[(sympy.Pow(e.base, sympy.Rational(1, e.exp.q)),)] = int(e.exp.q)
            root = _of_root(*root, int(e.exp.q))
        u, low = root if e.exp > 0 else root[::-1]
        return u * abs(int(e.exp.p)), low * abs(int(e.exp.p))
    if isinstance(e, sympy.tan):
        return bounds(sympy.sin(e.args[0]) / sympy.cos(e.args[0]))
    turn = e.args[0] / S.Pi if isinstance(e, (sympy.sin, sympy.cos)) else S.Pi
    if turn.is_Rational and turn.q <= 1000:
        order = 4 * int(turn.q)  # 2 cos and 2 sin are algebraic integers with conjugates <= 2
        radicals[_UNITY, order] = order
        return 1.0, 1.0
    raise Undecided("not algebraic")


def _of_sum(a: Bounds, b: Bounds) -> Bounds:
    """u l' + l u' and l l'."""
    return max(a[0] + b[1], a[1] + b[0]) + 1, a[1] + b[1]


def _of_root(u: float, low: float, k: int) -> Bounds:
    """Of the k-th root: (u l^{k-1})^{1/k} over l, or u over (u^{k-1} l)^{1/k}."""
    return ((u + (k - 1) * low) / k, low) if u >= low else (u, ((k - 1) * u + low) / k)


def _log2(a: int) -> float:
    """An upper bound of log2."""
    return 0.0 if a <= 1 else float(a.bit_length())
