r"""In which direction a parameter moves the weight: a monotone likelihood ratio, proved (ours).

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

Signs come from one rule a node on symbols t, s > 0 that run through (0, oo), the interval of the
parameter being mapped onto s in (0, oo). Every sign that is returned is strict there.
"""

from __future__ import annotations

from collections.abc import Iterator

import sympy
from flint import fmpq
from sympy import Expr, S, Symbol
from sympy.core.relational import Relational

from farfield.numerics.outcomes import Unrecognised
from farfield.numerics.summation.analytic_bias import sign_from
from farfield.numerics.summation.normal_form import sign as constant_sign
from farfield.theory.algebra.door import diff, expand, fraction, together
from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.functions.balls import Undefined, precision, to_arb
from farfield.theory.functions.nodes import Lookup, n
from farfield.theory.functions.record import record_of
from farfield.theory.values import compile_ball

FIRST = 4
"""Differences that are looked at one by one before a derivative is asked for its sign."""
LATER = (16, 64, 256, 1_024)
MAX_OPERATIONS = 120

_STEPS = (
    sympy.floor,
    sympy.ceiling,
    sympy.frac,
    sympy.Mod,
    sympy.sign,
    sympy.Heaviside,
    sympy.Piecewise,
    Relational,
    Lookup,
)
_T, _S = Symbol("t", positive=True), Symbol("s", positive=True)


def tail_order(p: Expr, a: Symbol, low: Expr, high: Expr) -> int | None:
    """1 if tails grow with the parameter on (low, high), -1 if they shrink, 0 if nothing moves;
    None where nothing is proved.

    >>> a = Symbol("a", positive=True)
    >>> tail_order(-a * n, a, S.Zero, S.Infinity), tail_order(-(n**2) / a, a, S.Zero, S.Infinity)
    (-1, 1)
    """
    found: set[int | None] = set()
    for value, way in _onto(low, high):
        order = _order(_unmasked(p, a).xreplace({a: value}))
        found.add(None if order is None else way * order)
    found.discard(0 if len(found) > 1 else None)
    return found.pop() if len(found) == 1 else None


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
    if outside is not S.NegativeInfinity or inside.has(a) or not isinstance(where, Relational):
        return None
    if isinstance(where, (sympy.Eq, sympy.Ne)) or (where.lts, where.gts) != (n, a):
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


def _unmasked(p: Expr, a: Symbol) -> Expr:
    """The one finite piece of a bias that masks where the parameter has no say: only ratios of
    weights that are there count."""
    if isinstance(p, sympy.Piecewise) and not any(where.has(a) for _, where in p.args):
        finite = [value for value, _ in p.args if value is not S.NegativeInfinity]
        return finite[0] if len(finite) == 1 else p
    return p


def _order(p: Expr) -> int | None:
    moving = [term for term in sympy.Add.make_args(p) if term.has(_S) and term.has(n)]
    try:
        if not moving:
            return 0
        u, f = sympy.Add(*moving).as_independent(n, as_Add=False)
        if not f.has(_S):
            rate = sign(diff(u, _S)) if not u.has(*_STEPS) else None
            way = rises(f)
            return None if rate is None or way is None else rate * way
        return _joint(sympy.Add(*moving))
    except (Unrecognised, Undecided, Undefined):
        return None


def _joint(p: Expr) -> int | None:
    if p.has(*_STEPS):
        return None
    known: list[int | None] = []
    for first in range(FIRST + 1):
        later = sign(diff(p.xreplace({n: first + _T}), _S, _T))
        if later is not None and _finite(diff(p.subs(n, first), _S)):
            return _agreed([*known, later])
        known.append(_difference(p, first))
        if known[-1] is None:
            return None
    return None


def _finite(e: Expr) -> bool:
    """Whether an elementary expression is defined, and so continuous from the side of t > 0."""
    return not e.has(S.NaN, S.ComplexInfinity, S.Infinity, S.NegativeInfinity)


def _difference(p: Expr, at: int) -> int | None:
    """The sign of D_n at one n."""
    here, after = (p.subs(n, k) for k in (at, at + 1))
    return sign(diff(after - here, _S))


def _agreed(signs: list[int | None]) -> int | None:
    known = {s for s in signs if s != 0}
    return 0 if not known else known.pop() if len(known) == 1 else None


def rises(f: Expr) -> int | None:
    """The direction of a function of n alone on the integers from 0 on: 1, -1, 0 for a constant,
    None where it has none or none is proved.

    >>> rises(sympy.floor(n / 8)), rises(n * sympy.log(1 + n)), rises(sympy.cos(n)) is None
    (1, 1, True)
    """
    way = _structure(f)
    if way is not None or f.has(*_STEPS) or f.count_ops() > MAX_OPERATIONS:
        return way
    known: list[int | None] = []
    for first in (1, *LATER):
        for k in range(len(known), first):
            known.append(_step(f, k))
            if _agreed(known) is None:
                return None
        try:
            later = sign(diff(f.xreplace({n: 1 + _T}), _T)) if first == 1 else None
            later = later or sign_from(diff(f, n), first)
        except (Unrecognised, Undecided, Undefined):
            continue
        return _agreed([*known, later])
    return None


def _step(f: Expr, k: int) -> int:
    """The sign of f(k + 1) - f(k)."""
    value = compile_ball(f)
    with precision(128):
        gap = to_arb(value({n: fmpq(k + 1)})) - to_arb(value({n: fmpq(k)}))
        if gap > 0 or gap < 0:
            return 1 if gap > 0 else -1
    return constant_sign(f.subs(n, k + 1) - f.subs(n, k))


def _structure(f: Expr) -> int | None:
    """The direction from rules that keep it: sums, positive factors, rounding, Min and Max."""
    if not f.has(n):
        return 0
    if f == n:
        return 1
    if f.is_Add or isinstance(f, (sympy.Min, sympy.Max)):
        return _agreed([_structure(arg) for arg in f.args])
    if f.is_Mul:
        factor, rest = f.as_independent(n, as_Add=False)
        if rest.is_Mul:
            return None
        way = _structure(rest)
        return None if way is None else constant_sign(factor) * way
    if isinstance(f, (sympy.floor, sympy.ceiling, sympy.exp)) or _keeps_signs(f):
        return _structure(f.args[0])
    inner = f.args[0]
    if isinstance(f, (sympy.log, sympy.Abs)) or (f.is_Pow and not f.exp.has(n)):
        if _structure(inner) != 1 or constant_sign(inner.subs(n, 0)) < 0:
            return None
        return constant_sign(f.exp) if f.is_Pow else 1
    return None


# -- signs ----------------------------------------------------------------------------------------


def sign(e: Expr) -> int | None:
    """The strict sign of an expression in t and s on all of t, s > 0; None where none is proved.

    >>> sign(sympy.log(1 + _T) - 2 * _S * sympy.log(1 + _T)) is None, sign(-_S / (2 + _T))
    (True, -1)
    """
    found = _sign(e)
    if found is None and (e.is_Add or e.is_Mul):
        above, below = fraction(together(e))
        found = _times(_sign(expand(above)), _sign(below))
    return found


def _sign(e: Expr) -> int | None:
    if not e.free_symbols:
        return None if e.has(S.NaN, S.ComplexInfinity) else _of_constant(e)
    if e.is_Symbol or isinstance(e, sympy.exp):
        return 1
    if e.is_Add:
        signs = {_sign(arg) for arg in e.args}
        return signs.pop() if len(signs) == 1 else None
    if e.is_Mul:
        found: int | None = 1
        for arg in e.args:
            found = _times(found, _sign(arg))
        return found
    if e.is_Pow:
        base = _sign(e.base)
        if base == 1:
            return 1
        if base == -1 and e.exp.is_Integer:
            return -1 if e.exp.is_odd else 1
        return None
    if isinstance(e, sympy.log):
        return sign(expand(e.args[0] - 1)) if _sign(e.args[0]) == 1 else None
    if isinstance(e, sympy.Abs):
        return None if _sign(e.args[0]) is None else 1
    return sign(e.args[0]) if _keeps_signs(e) else None


def _keeps_signs(e: Expr) -> bool:
    """Whether e is an odd increasing function of its argument."""
    record = record_of(e.func)
    return record is not None and record.odd


def _of_constant(e: Expr) -> int | None:
    try:
        return constant_sign(e)
    except Unrecognised:
        return None


def _times(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a * b
