"""Finite sums whose ends grow: Euler-Maclaurin, geometric and alternating sums, integrals.

A summand is split into terms that one of the methods knows. Sums of powers and of logarithms come
through the zeta, polygamma and loggamma functions, with their constants.
"""

from __future__ import annotations

from typing import Any

import sympy
from flint import fmpq
from sympy import Expr, S, Symbol

from farfield.theory.algebra import door
from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.coefficients.exact import coefficient, context, expand
from farfield.theory.coefficients.signs import sign
from farfield.theory.formula.bounded_nodes import steep
from farfield.theory.functions.gamma import loggamma_of, polygamma_of
from farfield.theory.functions.integrals import li_of
from farfield.theory.functions.nodes import n
from farfield.theory.transseries.arithmetic import UNIT, Transseries, add, number

HALF = fmpq(1, 2)


def finite_sum(t: Any, body: Expr, *limits: Any) -> Transseries:
    """A sum whose upper bound grows, of the terms that `_indefinite` knows."""
    if len(limits) != 1:
        raise Undecided("a multiple sum")
    k, low, high = limits[0]
    if low.has(n):  # both ends move: the difference of two sums
        if t.direction(t.transseries(low)) != 1:
            raise Undecided("a sum with these bounds")
        first = sympy.Integer(2)
        both = (finite_sum(t, body, (k, first, high)), finite_sum(t, body, (k, first, low - 1)))
        return both[0] - both[1]
    top = t.transseries(high)
    if t.direction(top) != 1 or not (low.is_Integer and abs(low) <= 1000):
        raise Undecided("a sum with these bounds")
    total = []
    for term in sympy.Add.make_args(_separated(body, k)):
        factor, rest = term.as_independent(k, as_Add=False)
        total.append(t.transseries(factor) * _indefinite(t, rest, k, int(low), top))
    return add(*total)


def _separated(body: Expr, k: Symbol) -> Expr:
    """The summand with logarithms of products split and quotients in partial fractions."""
    if steep(body):
        raise Undecided("a sum of high degree")
    body = body.replace(sympy.log, lambda a: door.expand_log(sympy.log(door.factor(a)), force=True))
    if body.is_polynomial(k):
        return expand(body)
    if body.is_rational_function(k) and body.free_symbols == {k}:
        return door.apart(body, k)
    return door.expand_mul(body)


def _linear(e: Expr, k: Symbol) -> tuple[Expr, Expr] | None:
    """(c, a) with e = c (k + a), c > 0 and a rational numbers."""
    slope = expand(e).coeff(k)
    if not (slope.is_Rational and slope > 0):
        return None
    offset = expand(e / slope - k)
    return (slope, offset) if offset.is_Rational else None


def _indefinite(t: Any, rest: Expr, k: Symbol, low: int, top: Transseries) -> Transseries:
    """The sum of `rest` for k from `low` to the top."""
    if not rest.has(k):
        return (top + (1 - low)) * t.constant(rest)
    base, exponent = rest.as_base_exp()
    inside = _linear(rest.args[0] if isinstance(rest, sympy.log) else base, k)
    if inside is not None and not exponent.has(k):
        slope, offset = inside
        head = S.Zero
        while low + offset <= 0:
            head, low = head + rest.xreplace({k: sympy.Integer(low)}), low + 1
        if head != 0:
            return number(t.constant(head)) + _indefinite(t, rest, k, low, top)
        last = top + offset
        if isinstance(rest, sympy.log):
            logs = (top + (1 - low)) * coefficient(sympy.log(slope))
            begin = number(coefficient(_loggamma_value(low + offset)))
            return logs + loggamma_of(t, last + 1) - begin
        return _power_sum(t, exponent, low + offset, last) * coefficient(slope**exponent)
    for method in (_geometric, _alternating, _by_integral):
        found = method(t, rest, k, low, top)
        if found is not None:
            return found
    raise Undecided(f"the sum of {rest}")


def _loggamma_value(x: Expr) -> Expr:
    return sympy.log(sympy.factorial(x - 1)) if x.is_Integer else sympy.log(sympy.gamma(x))


def _power_sum(t: Any, r: Expr, first: Expr, last: Transseries) -> Transseries:
    """sum of x^r for x = first, first + 1, ..., last: Euler-Maclaurin, with Hurwitz' zeta."""
    if r == -1:
        start = number(coefficient(sympy.polygamma(0, first)))
        return polygamma_of(t, 0, last + 1) - start
    if r.is_Integer and r >= 0 and first.is_Integer:
        x = sympy.Dummy("x")
        primitive = sympy.bernoulli(r + 1, x) / (r + 1)
        faulhaber = door.polynomial(expand(primitive.subs(x, x + 1) - primitive.subs(x, first)), x)
        return add(*(last ** fmpq(k[0]) * coefficient(c) for k, c in faulhaber.terms()))
    if r.free_symbols:
        way = sign(coefficient(expand(r + 1)))
        main = last ** coefficient(expand(r + 1)) * coefficient(1 / (r + 1))
        error = Transseries([], (last ** coefficient(r)).top())
        if way < 0:
            return number(coefficient(sympy.zeta(-r, first))) + main + error
        return main + error + Transseries([], UNIT)
    out = [
        number(coefficient(sympy.zeta(-r, first))),
        last ** coefficient(r + 1) * coefficient(1 / (r + 1)),
        last ** coefficient(r) * HALF,
    ]
    order = context().order
    for j in range(1, order + 1):
        factor = sympy.bernoulli(2 * j) / sympy.factorial(2 * j) * sympy.ff(r, 2 * j - 1)
        out.append(last ** coefficient(r - 2 * j + 1) * coefficient(expand(factor)))
    rest = (last ** coefficient(r - 2 * order - 1)).top()
    return add(*out, Transseries([], rest))


def _exponential_factor(rest: Expr, k: Symbol) -> tuple[Expr, Expr, Expr] | None:
    """(q, c, f) with rest = c q^k f, q a constant."""
    factor, q, others = S.One, S.One, S.One
    for f in sympy.Mul.make_args(rest):
        base, exponent = f.as_base_exp()
        slope = expand(exponent).coeff(k)
        offset = expand(exponent - slope * k)
        if base.has(k) or not exponent.has(k):
            others *= f
        elif offset.has(k) or not slope.is_number:
            return None
        else:
            q, factor = q * base**slope, factor * base**offset
    return (q, factor, others) if q != 1 else None


def _geometric(t: Any, rest: Expr, k: Symbol, low: int, top: Transseries) -> Transseries | None:
    """sum P(k) q^k = Q(N + 1) q^(N+1) - Q(low) q^low with q Q(k + 1) - Q(k) = P(k)."""
    split_off = _exponential_factor(rest, k)
    if split_off is None:
        return None
    q, factor, others = split_off
    if not others.is_polynomial(k) or sign(coefficient(q)) <= 0 or sign(coefficient(q - 1)) == 0:
        return None
    degree = int(door.degree(others, k)) if others.has(k) else 0
    if degree > 8:
        raise Undecided("a sum of high degree")
    unknown = sympy.symbols(f"c:{degree + 1}", cls=sympy.Dummy)
    primitive = sum(c * k**i for i, c in enumerate(unknown))
    equation = door.polynomial(expand(q * primitive.subs(k, k + 1) - primitive - others), k)
    solved = door.solve(equation.all_coeffs(), unknown, dict=True)[0]
    primitive = primitive.xreplace(solved)
    after = top + 1
    polynomial = [after ** fmpq(i) * coefficient(expand(solved[c])) for i, c in enumerate(unknown)]
    grown = (after * coefficient(sympy.log(q))).exp()
    begin = primitive.subs(k, low) * q**low
    whole = add(*polynomial) * grown - expand(begin)
    return whole * coefficient(factor)


def _alternating(t: Any, rest: Expr, k: Symbol, low: int, top: Transseries) -> Transseries | None:
    """sum (-1)^k (k + a)^-m, m > 0: a constant and O(N^-m)."""
    split_off = _exponential_factor(rest, k)
    if split_off is None or split_off[0] != -1:
        return None
    _, factor, others = split_off
    base, exponent = others.as_base_exp()
    inside = _linear(base, k)
    if inside is None or not exponent.is_Rational or exponent >= 0:
        return None
    slope, offset = inside
    start, m = low + offset, -exponent
    if start <= 0:
        return None
    if m == 1:
        total = (sympy.digamma((start + 1) / 2) - sympy.digamma(start / 2)) / 2
    else:
        total = (sympy.zeta(m, start / 2) - sympy.zeta(m, (start + 1) / 2)) / 2**m
    value = number(coefficient((-1) ** low * factor * slope**exponent * total))
    return value + Transseries([], (top ** coefficient(exponent)).top())


def _by_integral(t: Any, rest: Expr, k: Symbol, low: int, top: Transseries) -> Transseries | None:
    """sum k^r (log k)^j (log log k)^i = F(N) + O(1 + f(N)), F a primitive of f: the summand is
    monotone from some k on."""
    powers: dict[Expr, Expr] = {}
    for f in sympy.Mul.make_args(rest):
        base, exponent = f.as_base_exp()
        if exponent.has(k) or not exponent.is_Rational:
            return None
        powers[base] = exponent
    chain = [k, sympy.log(k), sympy.log(sympy.log(k))]
    if not set(powers) <= set(chain):
        return None
    r, j, i = (powers.get(x, S.Zero) for x in chain)
    if low < 2 or (i and low < 3):
        return None
    levels = [top]
    for _ in range(3):
        levels.append(levels[-1].log())
    error = Transseries([], UNIT)
    for a, level in zip((r, j, i), levels, strict=False):
        error = error * level ** coefficient(a)

    def primitive(level: Transseries, exponent: Expr) -> Transseries:
        return level ** coefficient(exponent + 1) * coefficient(1 / (exponent + 1))

    if r == -1 and j == -1:
        main = levels[3] if i == -1 else primitive(levels[2], i)
    elif r == -1 and not i:
        main = primitive(levels[1], j)
    elif j == -1 and not i and r > -1:
        main = li_of(t, top ** coefficient(r + 1))
    elif j.is_Integer and j > 0 and not i:
        terms = [
            levels[1] ** coefficient(j - t)
            * coefficient((-1) ** t * sympy.ff(j, t) / (r + 1) ** (t + 1))
            for t in range(int(j) + 1)
        ]
        main = top ** coefficient(r + 1) * add(*terms)
    else:
        return None
    return main + error + Transseries([], UNIT)
