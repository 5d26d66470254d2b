r"""In which direction a parameter moves the weight; functions that rise or fall with `n`, proved.

Let `D_n(a) = d/da (p(n+1; a) - p(n; a))`. If `D_n(a) >= 0` for all n >= 0 and all a of an interval,
then for a < a' the ratio `b'_n / b_n` does not decrease with n. Every distance that holds mass
moves outwards. By Chebyshev's inequality T'_j / B' >= T_j / B for every j, in every row as in the
whole series; b'_n / b'_0 >= b_n / b_0; a series that converges at a' converges at a; and sums of
independent steps grow stochastically. So receptive fields, leaks, certified windows, layered fields
and horizons are monotone in the parameter, and so is the direction with `<=`.

The sign of `D_n` is proved

* where p = u(a) f(n) + g(n) + h(a): by the sign of u' and the monotony of f on the integers;
* else for n < N one by one, and from N on by the sign of `d^2 p / da dn` at n = N + t. There
  `dp/da` is finite at N, hence continuous up to it.

Signs are what SymPy derives for symbols t, s > 0 that run through (0, oo), the interval of the
parameter being mapped onto s in (0, oo). Every sign that is returned is strict there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

import sympy
from sympy import Expr, S, Symbol
from sympy.core.relational import Relational

from farfield.numerics.search import Unrecognised
from farfield.numerics.summation.analytic_bias import sign_from
from farfield.numerics.summation.kernel import decided_sign as constant_sign
from farfield.theory.algebra.door import assumed, diff, expand, fraction, together
from farfield.theory.algebra.exceptions import Undecided, Unreachable
from farfield.theory.functions.balls import Undefined
from farfield.theory.functions.nodes import Lookup, n
from farfield.theory.functions.record import record_of

FIRST = 4
"""Differences that are looked at one by one before a derivative is asked for its sign."""
LATER = (1, 16, 64)
MAX_OPERATIONS = 120

_ROUNDED = (sympy.floor, sympy.ceiling)
_JUMPS = (sympy.frac, sympy.Mod, sympy.sign, sympy.Heaviside, sympy.Piecewise, Relational, Lookup)
_STEPS = (*_ROUNDED, *_JUMPS)
_T, _S = Symbol("t", positive=True), Symbol("s", positive=True)


def tail_order(p: Expr, a: Symbol, low: Expr, high: Expr) -> int | None:
    """1 if tails grow with the parameter on (low, high), -1 if they shrink, 0 if nothing moves;
    None where nothing is proved.

    >>> a = Symbol("a", positive=True)
    >>> tail_order(-a * n, a, S.Zero, S.Infinity), tail_order(-(n**2) / a, a, S.Zero, S.Infinity)
    (-1, 1)
    """
    if isinstance(p, sympy.Piecewise) and not any(where.has(a) for _, where in p.args):
        finite = [value for value, _ in p.args if value is not S.NegativeInfinity]
        p = finite[0] if len(finite) == 1 else p  # only ratios of weights that are there count
    try:
        return _agreed(_times(way, _order(p.xreplace({a: to}))) for to, way in _onto(low, high))
    except (Unrecognised, Undecided, Unreachable, Undefined):
        return None


def support_step(p: Expr, a: Symbol) -> str | None:
    """`ceiling` or `floor` of the parameter, where the bias depends on it by its support alone, the
    distances below (or up to) it: tails grow with it, in steps. None for any other bias.

    >>> w = Symbol("w", positive=True)
    >>> support_step(sympy.Piecewise((-n, n <= w), (S.NegativeInfinity, True)), w)
    'floor'
    """
    if not isinstance(p, sympy.Piecewise) or len(p.args) != 2:
        return None
    (inside, where), (outside, _) = p.args
    if (
        outside is not S.NegativeInfinity
        or inside.has(a)
        or not isinstance(where, (sympy.Lt, sympy.Le, sympy.Gt, sympy.Ge))
        or (where.lts, where.gts) != (n, a)
    ):
        return None
    return "ceiling" if where.func in (sympy.StrictLessThan, sympy.StrictGreaterThan) else "floor"


def _onto(low: Expr, high: Expr) -> Iterator[tuple[Expr, int]]:
    """The parameter as a function of s in (0, oo), and whether it rises."""
    if low.is_finite and high.is_finite:
        yield (low + high * _S) / (1 + _S), 1
    elif low.is_finite:
        yield low + _S, 1
    elif high.is_finite:
        yield high - _S, -1
    else:
        yield _S, 1
        yield -_S, -1


def _agreed(signs: Iterable[int | None]) -> int | None:
    ways = {s for s in signs if s != 0}
    return 0 if not ways else ways.pop() if len(ways) == 1 else None


def _times(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a * b


def _order(p: Expr) -> int | None:
    """The sign of every D_n, in s."""
    moving = sympy.Add(*(t for t in sympy.Add.make_args(p) if t.has(_S) and t.has(n)))
    u, f = moving.as_independent(n)
    if not f.has(_S):
        rate = None if u.has(*_STEPS) else sign(diff(u, _S))
        return _times(rate, rises(f))
    ways: list[int | None] = []
    while len(ways) <= FIRST and None not in ways and not moving.has(*_STEPS):
        first = len(ways)
        later = sign(diff(moving.xreplace({n: first + _T}), _S, _T))
        rate = diff(moving.subs(n, first), _S)
        if later is not None and not rate.has(S.NaN, S.ComplexInfinity, *(S.Infinity, -S.Infinity)):
            return _agreed([*ways, later])
        ways.append(sign(diff(moving.subs(n, first + 1) - moving.subs(n, first), _S)))
    return None


def rises(f: Expr) -> int | None:
    """The direction of a function of n alone on the integers from 0 on: 1, -1, 0 for a constant,
    None where it has none or none is proved.

    >>> rises(sympy.floor(n / 8)), rises(n * sympy.log(1 + n)), rises(sympy.cos(n)) is None
    (1, 1, True)
    """
    way = _composed(f)
    if way is not None or f.has(*_STEPS) or f.count_ops() > MAX_OPERATIONS:
        return way
    ways: list[int | None] = []
    for first in LATER:
        gaps = (f.subs(n, k + 1) - f.subs(n, k) for k in range(len(ways), first))
        ways += map(constant_sign, gaps)
        if _agreed(ways) is None:
            return None
        later = sign(diff(f.xreplace({n: 1 + _T}), _T)) if first == 1 else None
        with suppress(Unrecognised, Undecided, Undefined):
            return _agreed([*ways, later or sign_from(diff(f, n), first)])
    return None


def _composed(f: Expr) -> int | None:
    """The direction by rules that keep it: sums, positive factors, rounding, Min and Max."""
    if not f.has(n) or f == n:
        return int(f == n)
    if f.is_Add or isinstance(f, (sympy.Min, sympy.Max)):
        return _agreed(map(_composed, f.args))
    if f.is_Mul:
        factor, rest = f.as_independent(n)
        return None if rest.is_Mul else _times(constant_sign(factor), _composed(rest))
    record, inner = record_of(f.func), f.args[0]
    if isinstance(f, (*_ROUNDED, sympy.exp)) or (record is not None and record.odd):
        return _composed(inner)
    if not (isinstance(f, (sympy.log, sympy.Abs)) or (f.is_Pow and not f.exp.has(n))):
        return None
    if _composed(inner) != 1 or constant_sign(inner.subs(n, 0)) < 0:
        return None
    return constant_sign(f.exp) if f.is_Pow else 1


def sign(e: Expr) -> int | None:
    """The strict sign of an expression in t and s on all of t, s > 0; None where none is proved.

    >>> sign(sympy.log(1 + _T) - 2 * _S * sympy.log(1 + _T)) is None, sign(-_S / (2 + _T))
    (True, -1)
    """
    strict = _sign(e)
    if strict is None:
        above, below = fraction(together(e))
        strict = _times(_sign(expand(above)), _sign(below))
    return strict


def _sign(e: Expr) -> int | None:
    if e.has(S.NaN, S.ComplexInfinity):
        return None
    if not e.free_symbols:
        return constant_sign(e)
    return 1 if assumed(e, "positive") else -1 if assumed(e, "negative") else None
