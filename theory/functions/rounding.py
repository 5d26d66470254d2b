"""Rounding: floor, ceiling, the fractional part, the remainder of a division.

At infinity each is a bounded shift of its argument, unless the argument settles on one step.
"""

from __future__ import annotations

import math
from typing import Any

import sympy
from sympy import Expr, S

from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.functions.balls import floor_of
from farfield.theory.functions.nodes import evaluated_if_small, is_small, n
from farfield.theory.functions.record import Function, Refused

STEPS = "a step is not analytic"
NOT_ANALYTIC = dict.fromkeys(("complex_ball", "series", "tail"), STEPS)


def _mod(a: Expr, b: Expr) -> Expr:
    """SymPy's remainder where it is cheap, else the node unevaluated."""
    if b == 0:
        raise Refused("has modulus 0")
    if is_small(b, 10**6) and (a.is_Rational or a.free_symbols):
        return sympy.Mod(a, b)
    return sympy.Mod(a, b, evaluate=False)


def _expand_floor(t: Any, e: Expr, a: Expr) -> Any:
    """An integer in the end, else a - frac(a), the fraction a bounded oscillation."""
    whole = _eventual_integer(t, e)
    if whole is not None:
        return t.of_constant(whole)
    down = e.func is sympy.floor
    atom = t.bounded_atom(S.Zero, S.One, sympy.frac(a if down else -a))
    return t.transseries(a) + (-atom if down else atom)


def _expand_frac(t: Any, e: Expr, a: Expr) -> Any:
    """a minus its eventual floor, else a bounded oscillation in [0, 1]."""
    whole = _eventual_integer(t, sympy.floor(a, evaluate=False))
    if whole is not None:
        return t.transseries(a) - whole
    return t.of_constant(t.bounded_atom(S.Zero, S.One, e))


def _eventual_integer(t: Any, e: Expr) -> Any:
    """floor or ceiling of an argument with a finite limit, where it is constant for large n."""
    g = t.transseries(e.args[0])
    if t.direction(g) != 0:
        return None
    limit, delta = t.finite(g)
    if t.oscillates(limit):
        return None
    limit = t.to_sympy(limit)
    if limit.free_symbols:
        return None
    near = sympy.floor(limit) if limit.is_Rational else math.floor(sympy.N(limit, 30))
    for k in (near - 1, near, near + 1):
        above, below_next = t.sign(t.coefficient(limit - k)), t.sign(t.coefficient(k + 1 - limit))
        if above >= 0 and below_next > 0:
            rest = 1 if above else 0 if delta.literally_zero else t.eventual_sign_of(delta)
            floor = k if rest >= 0 else k - 1
            if e.func is sympy.floor:
                return t.coefficient(S(floor))
            return t.coefficient(S(floor if rest == 0 else floor + 1))
    return None


def _expand_mod(t: Any, e: Expr, a: Expr, b: Expr) -> Any:
    """b frac(a/b) for a constant positive modulus."""
    if b.has(n) or t.sign(t.coefficient(b)) <= 0:
        raise Undecided("Mod with this modulus")
    return t.of_constant(t.bounded_atom(S.Zero, b, b * sympy.frac(a / b)))


def _unit_steps(a: Expr) -> tuple[Expr, Expr]:
    return a, S.One


FUNCTIONS = (
    Function(
        node=sympy.floor,
        names=("floor",),
        build=evaluated_if_small(sympy.floor),
        total=True,
        period=_unit_steps,
        rounds=True,
        jumps=True,
        branch=lambda decide, a: decide.floor(a),
        ball=floor_of,
        expansion=_expand_floor,
        array=lambda xp, x: xp.floor(x),
        lacks=NOT_ANALYTIC,
    ),
    Function(
        node=sympy.ceiling,
        names=("ceiling", "ceil"),
        build=evaluated_if_small(sympy.ceiling),
        total=True,
        period=_unit_steps,
        rounds=True,
        jumps=True,
        branch=lambda decide, a: -decide.floor(-a),
        ball=lambda x: -floor_of(-x),
        expansion=_expand_floor,
        array=lambda xp, x: xp.ceil(x),
        lacks=NOT_ANALYTIC,
    ),
    Function(
        node=sympy.frac,
        names=("frac",),
        build=evaluated_if_small(sympy.frac),
        total=True,
        range=lambda a: (S.Zero, S.One),
        period=_unit_steps,
        rounds=True,
        jumps=True,
        branch=lambda decide, a: a - decide.floor(a),
        ball=lambda x: x - floor_of(x),
        expansion=_expand_frac,
        array=lambda xp, x: x - xp.floor(x),
        lacks=NOT_ANALYTIC,
    ),
    Function(
        node=sympy.Mod,
        names=("Mod", "mod", "remainder"),
        arity=(2, 2),
        build=_mod,
        range=lambda a, b: (S.Zero, b),
        period=lambda a, b: (a, b),
        jumps=True,
        branch=lambda decide, a, b: a - b * decide.floor(a / b),
        ball=lambda a, b: a - b * floor_of(a / b),
        expansion=_expand_mod,
        array=lambda xp, a, b: a - b * xp.floor(a / b),
        lacks=NOT_ANALYTIC,
    ),
)
