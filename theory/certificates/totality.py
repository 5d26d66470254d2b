"""Where the prover's total functions are ours: a printed formula has its own value at every n.

In the prover `ln 0 = 0`, `Rpower 0 y = 1` and `/ 0 = 0`; the other functions and operators that
`prover_forms` prints agree with ours wherever ours have a value. So for every n >= 0 a logarithm is
printed only of a positive term, a real power only of a positive base, a denominator only if it is
not 0. Where that begins later, the first terms are written out: `if n < 1 then 0 else ...`. A term
without a value is left out of the series; its bias is written as -oo.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy
from sympy import Expr, Integer, S, Symbol

from farfield.theory.algebra import door
from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.certificates.prover_forms import Form, NoCertificate, bias_form
from farfield.theory.coefficients.exact import to_sympy
from farfield.theory.functions.nodes import n
from farfield.theory.skipped import skipped_terms
from farfield.theory.values import enclose

FIRST = 64  # terms that may be written out
LATEST = 10**9  # where a formula may begin to have values

Bounds = tuple[Expr, Expr]
Begins = Mapping[Symbol, int]  # where an index begins: n, and the counters of sums
EVERYWHERE: Bounds = (S.NegativeInfinity, S.Infinity)


def total(formula: Expr) -> Expr:
    """The formula, its first terms written out where the prover's functions have other values.

    Raises:
        NoCertificate: they have other values later, too, or that cannot be excluded.

    >>> total(-sympy.sqrt(n)), total(-sympy.log(n)), total(-sympy.log(n + 1))
    (Piecewise((0, n < 1), (-sqrt(n), True)), Piecewise((-oo, n < 1), (-log(n), True)), -log(n + 1))
    """
    try:
        return _written_out(formula)
    except NoCertificate:
        powers = {a: _guarded(a) for a in formula.atoms(sympy.Pow) if _may_be_zero(a.base)}
        if not powers:
            raise
        return _written_out(formula.xreplace(powers))


def _may_be_zero(base: Expr) -> bool:
    """Whether a part with a period is seen to be at least 0 and no more."""
    return bool(base.has(n)) and _bounds(base)[0] == 0


def _guarded(power: Expr) -> Expr:
    """A real power, 0 where its base is."""
    if power.exp.is_integer or not power.exp.is_positive:
        return power
    at_zero = sympy.Eq(power.base, 0, evaluate=False)
    return sympy.Piecewise((S.Zero, at_zero), (power, True), evaluate=False)


def _written_out(formula: Expr) -> Expr:
    """The formula with the first terms, from which on the prover's functions have our values."""
    f = bias_form(formula)
    start, pieces = _beginning(formula), list[tuple[Expr, Any]]()
    if start > FIRST:
        pieces.append((S.NegativeInfinity, sympy.Lt(n, start, evaluate=False)))
        _check(f, {n: start})
        start = 0
    else:
        start = _first_total(f)
    for k in range(start):
        value = _term(formula, k)
        if pieces and pieces[-1][0] == value:
            pieces.pop()
        pieces.append((value, sympy.Lt(n, k + 1, evaluate=False)))
    rest = formula.args if isinstance(formula, sympy.Piecewise) else ((formula, S.true),)
    return sympy.Piecewise(*pieces, *rest, evaluate=False) if pieces else formula


def check_total(e: Any) -> None:
    """NoCertificate unless the prover's value is ours at every n >= 0."""
    _check(bias_form(e), {n: 0})


def _beginning(formula: Expr) -> int:
    """The n before which no term has a value, as the logarithm of an iterated logarithm has none:
    these increase; 0 where that is not known."""
    inner = [a.args[0] for a in formula.atoms(sympy.log) if _is_iterated(a.args[0])]
    deepest = max(inner, key=sympy.count_ops, default=n)
    low, high = -1, 1
    while high < LATEST and not _has_logarithm(deepest, high):
        low, high = high, 2 * high
    if deepest == n or high >= LATEST:
        return 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _has_logarithm(deepest, middle) else (middle, high)
    return high


def _is_iterated(e: Expr) -> bool:
    return bool(e == n) or (isinstance(e, sympy.log) and _is_iterated(e.args[0]))


def _has_logarithm(e: Expr, k: int) -> bool:
    """Whether an iterated logarithm is not seen to be negative, or without a value, at k."""
    ball = enclose(e, 128, {n: k})
    return ball is not None and not bool(ball <= 0)


def _first_total(f: Form) -> int:
    """The first n from which on the printed values are the formula's."""
    for start in range(FIRST):
        try:
            _check(f, {n: start})
        except NoCertificate:
            continue
        return start
    _check(f, {n: FIRST})
    return FIRST


def _term(formula: Expr, k: int) -> Expr:
    """The bias at n = k, -oo where it has no value."""
    at, parts = {n: Integer(k)}, _outside_pieces(formula).atoms(sympy.log, sympy.Pow)
    try:
        value = door.replaced(formula, at)
        if any(
            door.replaced(a, at).has(S.NaN, S.ComplexInfinity) for a in parts
        ):  # SymPy multiplies by 0 whatever it is
            return S.NegativeInfinity
    except Undecided:  # SymPy compares nothing with what has no value
        value = S.NaN
    if value is S.NaN and not formula.free_symbols - {n} and k not in skipped_terms(formula):
        raise NoCertificate(f"the value at n = {k}")
    if value.has(S.NaN, S.ComplexInfinity, S.Infinity, S.ImaginaryUnit):
        return S.NegativeInfinity
    value = _power_of_zero(value)
    try:
        check_total(value)
    except NoCertificate:
        if k not in skipped_terms(formula) and not _without_value(value):
            raise
        return S.NegativeInfinity
    return value


def _power_of_zero(e: Expr) -> Expr:
    """The expression with 0^q as 0 for q > 0, 1 for q = 0, and without a value for other q."""
    powers = {a for a in e.atoms(sympy.Pow) if a.base == 0}
    if len(powers) != 1:
        return e
    [power] = powers
    q = power.exp
    pieces = [
        (door.replaced(e, {power: S.Zero}), q > 0),
        (door.replaced(e, {power: S.One}), sympy.Eq(q, 0)),
    ]
    return sympy.Piecewise(*pieces, (S.NegativeInfinity, True), evaluate=False)


def _outside_pieces(e: Expr) -> Expr:
    """The expression with a symbol for each Piecewise, whose parts may not be the ones taken."""
    return e.replace(lambda a: isinstance(a, sympy.Piecewise), lambda a: sympy.Dummy())


def _without_value(e: Expr) -> bool:
    """Whether an expression holds the logarithm or the root of a negative number."""
    e = _outside_pieces(e)
    inner = [a.args[0] for a in e.atoms(sympy.log)]
    inner += [a.base for a in e.atoms(sympy.Pow) if a.exp.is_Rational and not a.exp.is_Integer]
    return any(a.is_number and _bounds(a)[1] < 0 for a in inner)


def _check(f: Form, begins: Begins, nonzero: frozenset[Expr] = frozenset()) -> None:
    """NoCertificate unless the prover's value is ours wherever each index begins, where some
    expressions are not 0."""
    if f.op in ("ln", "rpower") and not _positive(f.args[0].expr, begins):
        inside = f.args[0].expr
        if inside not in nonzero or not _bounds(inside)[0] >= 0:
            raise NoCertificate(
                f"{str(inside)[:60]}, within a logarithm or power, is not known to be positive"
            )
    if f.op in ("inv", "div"):
        divisor = f.args[-1].expr
        if not (_positive(divisor, begins) or _positive(-divisor, begins)):
            raise NoCertificate(
                f"the denominator {str(divisor)[:60]} is not known to differ from 0"
            )
    if f.op == "sum":
        begins = {**begins, f.value[0]: f.value[1]}
    if f.op == "if":
        condition, *branches = f.args
        _check(condition, begins, nonzero)
        at_zero = condition.op == "eq" and condition.args[1].expr == 0
        unequal = nonzero | {condition.args[0].expr} if at_zero else nonzero
        starts = _starts(condition, begins[n])
        for branch, start, known in zip(branches, starts, (nonzero, unequal), strict=True):
            if start is not None:
                _check(branch, {**begins, n: start}, known)
        return
    for a in f.args:
        _check(a, begins, nonzero)


def _starts(c: Form, start: int) -> tuple[int | None, int | None]:
    """From which n >= start on a comparison with n may hold, and from which on it may not; None
    where that is nowhere."""
    if c.op not in ("lt", "le"):
        return start, start
    low, high = (a.expr for a in c.args)
    if low == n and high.is_Rational:  # n < high, n <= high
        end = int(sympy.ceiling(high) if c.op == "lt" else sympy.floor(high) + 1)
        return (start if start < end else None), max(start, end)
    if high == n and low.is_Rational:  # low < n, low <= n
        first = int(sympy.floor(low) + 1 if c.op == "lt" else sympy.ceiling(low))
        return max(start, first), (start if start < first else None)
    return start, start


def _positive(e: Expr, begins: Begins) -> bool:
    """Whether an expression is proved to be positive from where its indices begin."""
    moved = door.replaced(e, {i: i + start for i, start in begins.items()})
    if door.assumed(moved, "positive") or _bounds(moved)[0] > 0:
        return True
    for term in moved.args if moved.is_Add else ():  # log v <= v - 1
        v = (-term).args[0] if isinstance(-term, sympy.log) else S.Zero
        if v != 0 and _positive(v, {}) and _positive(door.expand(moved - term - v + 1), {}):
            return True
    above, below = door.fraction(door.together(moved))
    if below != 1 and _positive(below, {}):
        return _positive(door.expand(above), {})
    if moved.is_Add and len(moved.args) == 2 and (increase := _increase(*moved.args)) is not None:
        return _positive(increase, {})
    return bool(door.assumed(door.expand(moved), "positive"))


def _increase(a: Expr, b: Expr) -> Expr | None:
    """x - y with g(x) - g(y) the sum of a and b, g an increasing function: both are positive or
    neither is."""
    if a.could_extract_minus_sign():
        a, b = b, a
    x, y = a, -b
    if isinstance(x, sympy.log) and isinstance(y, sympy.log):
        return x.args[0] - y.args[0]
    (u, r), (v, s) = x.as_base_exp(), y.as_base_exp()
    if r == s and r != 1 and r.is_positive and u.is_nonnegative and v.is_nonnegative:
        return u - v
    return None


# -- bounds ---------------------------------------------------------------------------------------


def _bounds(e: Expr) -> Bounds:
    """Bounds of an expression from those of its parts; indices begin at 0."""
    if e.is_Rational:
        return e, e
    if e.is_number:
        ball = enclose(e, 64)
        if ball is None or not ball.is_finite():
            return EVERYWHERE
        return to_sympy(ball.lower().fmpq()), to_sympy(ball.upper().fmpq())
    if e.is_Symbol:
        low = S.Zero if e.is_nonnegative else S.NegativeInfinity
        return low, S.Zero if e.is_nonpositive else S.Infinity
    if isinstance(e, (sympy.cos, sympy.sin)):
        return S.NegativeOne, S.One
    if isinstance(e, sympy.Mod) and e.args[1].is_Integer and e.args[1] > 0:
        return S.Zero, e.args[1] - 1
    parts = [_bounds(a) for a in e.args]
    if isinstance(e, (sympy.Add, sympy.Max, sympy.Min)):
        lows, highs = zip(*parts, strict=True)
        return e.func(*lows), e.func(*highs)
    if e.is_Mul:
        low, high = parts[0]
        for other in parts[1:]:
            ends = [S.Zero if S.Zero in (x, y) else x * y for x in (low, high) for y in other]
            low, high = sympy.Min(*ends), sympy.Max(*ends)
        return low, high
    if isinstance(e, sympy.Abs):
        return _magnitude(*parts[0])
    if isinstance(e, sympy.exp):
        return S.Zero, S.Infinity
    if e.is_Pow and e.base == -1 and e.exp.is_integer:
        return S.NegativeOne, S.One
    if isinstance(e, sympy.log) and parts[0][0] > 0:
        return _bounds(sympy.log(parts[0][0]))[0], S.Infinity
    if e.is_Pow and e.exp.is_Integer and e.exp > 0:
        low, high = _magnitude(*parts[0]) if e.exp % 2 == 0 else parts[0]
        return low**e.exp, high**e.exp
    return EVERYWHERE


def _magnitude(low: Expr, high: Expr) -> Bounds:
    """Bounds of an absolute value."""
    least = sympy.Max(low, -high, S.Zero)
    return least, sympy.Max(-low, high)
