"""Choices by sign: absolute value, sign, step, least and greatest."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import sympy
from flint import fmpq
from sympy import Basic, Expr, S

from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.functions.balls import Ball, ball_sign, to_arb
from farfield.theory.functions.nodes import evaluated_if_small
from farfield.theory.functions.record import Function

NOT_ANALYTIC = dict.fromkeys(
    ("complex_ball", "series", "tail"), "a choice is not analytic: its branches are taken first"
)


def _abs(a: Expr) -> Expr:
    """As SymPy simplifies it, where it needs no real part for that."""
    value = evaluated_if_small(sympy.Abs)(a)
    return sympy.Abs(a, evaluate=False) if value.has(sympy.re, sympy.im) else value


def _extreme(node: Basic) -> Callable[..., Expr]:
    return lambda *args: node(*args, evaluate=all(a.is_Rational for a in args))


def _heaviside(a: Expr, at_zero: Expr = S.Half) -> Expr:
    return sympy.Heaviside(a, at_zero, evaluate=bool(a.is_Rational))


def _min_ball(*args: Ball) -> Ball:
    """Exact while both are rational, so that equality stays decidable."""
    best = args[0]
    for x in args[1:]:
        exact = isinstance(best, fmpq) and isinstance(x, fmpq)
        best = min(best, x) if exact else to_arb(best).min(to_arb(x))
    return best


def _heaviside_ball(x: Ball, at_zero: Ball) -> Ball:
    sign = ball_sign(x)
    return at_zero if sign == 0 else fmpq(max(sign, 0))


def _heaviside_branch(decide: Any, a: Expr, at_zero: Expr = S.Half) -> Expr:
    s = decide.sign(a)
    return at_zero if s == 0 else S(max(s, 0))


def _best(want: int) -> Callable[..., Expr]:
    """The greatest (`want` 1) or the least (-1) of the arguments."""

    def branch(decide: Any, *args: Expr) -> Expr:
        best = args[0]
        for x in args[1:]:
            best = x if decide.difference(x, best) == want else best
        return best

    return branch


def _expand_min_max(t: Any, e: Expr, *args: Expr) -> Any:
    """The least or greatest of oscillating constants (of growing quantities: by `eventual`)."""
    values = []
    for limit, delta in (t.finite(t.transseries(a)) for a in args):
        if not delta.literally_zero:
            raise Undecided(f"{e.func.__name__} of quantities that change places for ever")
        values.append(t.bounds(limit))
    better = t.below if isinstance(e, sympy.Min) else lambda a, b: t.below(b, a)
    low, high = values[0]
    for a, b in values[1:]:
        low, high = (a if better(a, low) else low), (b if better(b, high) else high)
    return t.of_constant(t.bounded_atom(low, high, e))


def _expand_heaviside(t: Any, e: Expr, a: Expr, at_zero: Expr = S.Half) -> Any:
    """Only reached where the sign changes for ever: a bounded oscillation in [0, 1]."""
    if not (at_zero.is_Rational and 0 <= at_zero <= 1):
        raise Undecided("a step that changes for ever")
    return t.of_constant(t.bounded_atom(S.Zero, S.One, e))


def _expand_abs(t: Any, e: Expr, a: Expr) -> Any:
    """By the sign in the end; where it changes for ever, a term whose coefficient is an |.|."""
    g = t.transseries(a)
    try:
        return g * t.eventual_sign_of(g)
    except Undecided:
        if len(g.terms) != 1 or not g.exact:
            raise
    m, c = g.terms[0]
    if t.low_sign(c) >= 0:
        return g
    low, high = t.bounds(c)
    top = -low if t.below(high, -low) else high
    return t.term(m, t.bounded_atom(S.Zero, top, sympy.Abs(t.to_sympy(c))))


def _heaviside_array(xp: Any, x: Any, at_zero: Any) -> Any:
    side = xp.sign(x)
    return (1 + side) / 2 + (at_zero - 0.5) * (1 - xp.abs(side))


FUNCTIONS = (
    Function(
        node=sympy.Abs,
        names=("Abs", "abs", "fabs", "absolute"),
        build=_abs,
        total=True,
        branch=lambda decide, a: decide.sign(a) * a,
        ball=abs,
        expansion=_expand_abs,
        array=lambda xp, x: xp.abs(x),
        lacks=NOT_ANALYTIC,
    ),
    Function(
        node=sympy.sign,
        names=("sign", "sgn"),
        build=evaluated_if_small(sympy.sign),
        total=True,
        branch=lambda decide, a: S(decide.sign(a)),
        ball=lambda x: fmpq(ball_sign(x)),
        expansion=lambda t, e, a: t.of_constant(t.bounded_atom(S.NegativeOne, S.One, e)),
        array=lambda xp, x: xp.sign(x),
        lacks=NOT_ANALYTIC,
    ),
    Function(
        node=sympy.Heaviside,
        names=("Heaviside", "heaviside"),
        arity=(1, 2),
        build=_heaviside,
        total=True,
        branch=_heaviside_branch,
        ball=_heaviside_ball,
        expansion=_expand_heaviside,
        array=_heaviside_array,
        lacks=NOT_ANALYTIC,
    ),
    Function(
        node=sympy.Min,
        names=("Min", "min", "minimum", "fmin"),
        arity=(2, 100),
        build=_extreme(sympy.Min),
        total=True,
        branch=_best(-1),
        ball=_min_ball,
        expansion=_expand_min_max,
        array=lambda xp, *args: functools.reduce(xp.minimum, args),
        lacks=NOT_ANALYTIC,
    ),
    Function(
        node=sympy.Max,
        names=("Max", "max", "maximum", "fmax"),
        arity=(2, 100),
        build=_extreme(sympy.Max),
        total=True,
        branch=_best(1),
        ball=lambda *args: -_min_ball(*(-x for x in args)),
        expansion=_expand_min_max,
        array=lambda xp, *args: functools.reduce(xp.maximum, args),
        lacks=NOT_ANALYTIC,
    ),
)
