"""Where a formula has a value, as conditions for the prover; -oo elsewhere.

In the prover `ln 0 = 0` and `/ 0 = 0`, and `power x y` is 0 or 1 for `x = 0`; the other functions
and operators that `prover_forms` prints agree with ours wherever ours have a value. So a logarithm
needs a positive argument, a real power a base that is not negative, a denominator that is not 0.
What SymPy does not see to hold at every n >= 0 is asked by the printed bias itself: a term without
a value is left out of the series, and is written as -oo, as is what a window or a mask leaves out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace

import sympy
from sympy import Basic, Expr, S
from sympy.functions.elementary.piecewise import ExprCondPair

from farfield.theory.algebra import door
from farfield.theory.answers.notation import beginning
from farfield.theory.certificates.prover_forms import NoCertificate
from farfield.theory.functions.nodes import Lookup, n
from farfield.theory.functions.record import needs_of, record_of

MASKED = S.NegativeInfinity
_MAY_BE_MASKED = (sympy.Add, sympy.Mul, Lookup, sympy.Tuple, sympy.Piecewise, ExprCondPair)
"""What is -oo, or has no value, where one of its parts is -oo."""


_RELATIONS = {"positive": sympy.Gt, "nonnegative": sympy.Ge, "nonzero": sympy.Ne}
_FLOORS = SimpleNamespace(floor=partial(sympy.floor, evaluate=False))


def total(formula: Expr) -> tuple[Expr, Basic]:
    """A formula that is finite, and the condition under which it is the bias, which is -oo
    elsewhere.

    Raises:
        NoCertificate: a real power may have a negative base, a part that is asked for has no
            value itself, or -oo occurs elsewhere than as a value of a Piecewise or a table, or in
            a sum of such.

    >>> total(-sympy.sqrt(n)), total(-sympy.log(n)), total(-sympy.log(n + 1))
    ((-sqrt(n), True), (-log(n), n > 0), (-log(n + 1), True))
    >>> total(sympy.Piecewise((-n, n < 3), (-sympy.oo, True)))
    (-n, n < 3)
    """
    for part in sympy.preorder_traversal(formula):
        if part.has(MASKED) and not isinstance(part, (type(MASKED), *_MAY_BE_MASKED)):
            raise NoCertificate(f"-oo within {beginning(part)}")
    formula = formula.replace(lambda e: isinstance(e, sympy.Function), _elementary)
    value = formula.replace(lambda e: isinstance(e, (sympy.Piecewise, Lookup)), _unmasked)
    return value, sympy.And(*dict.fromkeys(_needed(formula)))


def _elementary(e: Expr) -> Expr:
    """A function of n by its identity in exponentials, logarithms and powers, in floors, or by its
    pieces, if it has one."""
    record = record_of(e.func) if e.has(n) else None
    if record is not None and record.rounds and record.branch is not None:
        return record.branch(_FLOORS, *e.args)
    if isinstance(e, (sympy.Heaviside, sympy.sign)):
        return e.rewrite(sympy.Piecewise)
    identity = None if record is None else record.elementary
    return e if identity is None else identity(*e.args)


def _unmasked(e: Expr) -> Expr:
    """A Piecewise or a table without the value -oo."""
    if not e.has(MASKED):
        return e
    if isinstance(e, Lookup):
        index, entries, tail = (a.xreplace({MASKED: S.Zero}) for a in e.args)
        return Lookup(index, entries, tail)
    *pieces, (last, _) = (piece for piece in e.args if piece[0] != MASKED)
    if not pieces:
        return last
    return sympy.Piecewise(*pieces, (last, e.args[-1][1]), evaluate=False)


def has_values(e: Basic) -> Basic:
    """An expression, or a condition, that has a value wherever it may be asked for.

    Raises:
        NoCertificate: that is not known.
    """
    for unknown in _needed(e):
        raise NoCertificate(f"{beginning(e)} has no value unless {beginning(unknown)}")
    return e


def _needed(e: Basic) -> Iterator[Basic]:
    """Conditions that hold exactly where an expression has a value, but for those seen to hold."""
    if e == MASKED:
        yield S.false
    if isinstance(e, sympy.Piecewise):
        before: list[Basic] = []
        for value, condition in e.args:
            for needed in _needed(value):
                yield sympy.Or(*before, sympy.Not(has_values(condition)), needed)
            before.append(has_values(condition))
        return
    if isinstance(e, sympy.Sum):
        index, low, _ = e.limits[0]
        counter = sympy.Dummy(nonnegative=True)
        has_values(e.function.xreplace({index: counter + low}))
        return
    if isinstance(e, Lookup):
        index, entries, tail = e.args
        for k, entry in enumerate(entries):
            yield from (sympy.Or(sympy.Ne(index, k), needed) for needed in _needed(entry))
        yield from (sympy.Or(index < len(entries), needed) for needed in _needed(tail))
        return
    for part in e.args:
        yield from _needed(part)
    if e.is_Pow and not e.exp.is_Rational:
        yield from _of_real_power(e.base, e.exp)
        return
    for quantity, fact in needs_of(e):
        if not _is_assumed(quantity, fact):
            if not quantity.has(n):
                raise NoCertificate(f"the constant {beginning(quantity)} is not known to be {fact}")
            yield _relation(_RELATIONS[fact], quantity)


def _of_real_power(base: Expr, exponent: Expr) -> Iterator[Basic]:
    """Conditions under which a power whose exponent is no rational number has a value."""
    if not _is_assumed(base, "nonnegative"):
        raise NoCertificate(f"{beginning(base)}, the base of a power, is not known to be positive")
    if not (_is_assumed(base, "positive") or _is_assumed(exponent, "nonnegative")):
        yield _relation(sympy.Gt, base) | _relation(sympy.Ge, exponent)


def _is_assumed(e: Expr, what: str) -> bool:
    """Whether SymPy sees the sign of an expression; one with log(n) has values for n >= 1 only."""
    if e.has(sympy.log(n)) and not e.has(sympy.Piecewise):
        e = e.xreplace({n: sympy.Symbol("n", integer=True, positive=True)})
    return bool(door.assumed(e, what))


def _relation(relation: type[Basic], e: Expr) -> Basic:
    return relation(e, 0, evaluate=False)
