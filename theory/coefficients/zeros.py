"""Proofs that a constant is 0: expansion until every term cancels, an algebraic separation bound
(for the coefficient of each transcendental product), or one of two lemmas on linear forms.

**Separation bound** (Burnikel, Funke, Mehlhorn, Schirra, Schmitt 2001). Let E be an expression
over the integers with `+ - * /` and k-th roots. The rules in `_bfmss` compute u and l. D is the
product of the indices of its distinct radicals, times the degree of the roots of unity. Its sines
and cosines of rational multiples of pi need these. If E is not 0 then |E| >= 1/(u^(D-1) l).
So a ball below that bound proves E = 0.

**Logs.** For positive algebraic a_i and integers k_i: sum k_i log a_i = 0 iff prod a_i^k_i = 1.
**Arctangents.** For real algebraic a_i and integers k_i, k: if the imaginary part of
prod (1 + i a_i)^k_i is 0 then sum k_i atan a_i is a multiple of pi; hence if in addition
|sum k_i atan a_i + k pi| < 1, that sum is 0.
"""

from __future__ import annotations

import math

import sympy
from flint import arb
from sympy import Expr, S

from farfield.theory.algebra import door
from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.coefficients.exact import expand
from farfield.theory.evaluation.real_balls import PLAIN
from farfield.theory.functions.balls import precision
from farfield.theory.functions.record import Function, record_of, records

MAX_SEPARATION = 50_000  # bits


def proved_zero(c: Expr) -> str | None:
    """The identity that proves a constant to be 0, or None.

    >>> proved_zero(4*sympy.atan(sympy.Rational(1, 5)) - sympy.atan(sympy.Rational(1, 239))
    ...             - sympy.pi/4)
    'linear form in logarithms and arctangents'
    """
    if sympy.count_ops(c) > 200 or any(_swells(x) for x in c.atoms(sympy.Pow)):
        return None
    if _special(c) and any(abs(i) > 100 for i in c.atoms(sympy.Integer)):
        return None  # SymPy would evaluate zeta(10**6)
    c = _special_values(c)
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
    if _coefficients_vanish(numerator):
        return "separation bounds of its coefficients"
    if _linear_form_zero(expanded) or _linear_form_zero(expand(numerator)):
        return "linear form in logarithms and arctangents"
    exponential = expand(door.powsimp(expand(door.rewritten(numerator, sympy.exp))))
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
    """Whether the separation bound of algebraic numbers applies."""
    try:
        _bfmss(c, {})
    except Undecided:
        return False
    return True


def _special(c: Expr) -> list[Function]:
    """The special functions in a constant, of which some values are known."""
    nodes = {f.func for f in c.atoms(sympy.Function)}
    return [r for r in records() if r.node in nodes and r.exact is not None]


def _special_values(c: Expr) -> Expr:
    """Known values of special functions at small rational points; Gamma reflected and shifted."""
    special = _special(c)
    if not special:
        return c
    for record in special:
        c = door.supervised(c.replace, record.node, record.exact)
    c = door.expand_func(c)
    if c.has(sympy.gamma):
        c = sympy.Add(*map(door.gammasimp, sympy.Add.make_args(expand(c))))
    return c


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
        elif base.is_positive and exponent.is_real and base != a:
            total += exponent * sympy.log(base)
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


def _bfmss(e: Expr, radicals: dict[tuple[object, ...], int]) -> tuple[float, float]:
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
    """An upper bound of log2."""
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
    ball = PLAIN.enclose(angle, 256)
    return ball is not None and bool(abs(ball) < 1)
