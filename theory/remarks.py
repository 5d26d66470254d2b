"""What a formula may mean besides what it says: a weight for a logit, a number for minus infinity.

The verdict is on the formula as it is written. A remark is a sentence beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sympy
from sympy import Expr, Rational, S

from farfield.theory.algebra import door
from farfield.theory.answers.notation import expression_line
from farfield.theory.decision.engine import decide_series
from farfield.theory.functions.nodes import Lookup, n
from farfield.theory.functions.record import kinds
from farfield.theory.values import enclose

MASKED = -(10**4)
"""A number from here down stands for minus infinity in masks of models."""
ROW_NAMES = ("L", "N", "T", "seq_len", "seqlen", "seq_length", "length", "max_len", "n_ctx", "ctx")
PAST = (sympy.Ge(n, 0, evaluate=False), sympy.Le(0, n, evaluate=False))
FUTURE = (sympy.Lt(n, 0, evaluate=False), sympy.Gt(0, n, evaluate=False))
"""Conditions on which side of the query a key is."""


def remarks(formula: Expr) -> Iterator[str]:
    """Sentences about one bias.

    >>> from farfield.theory.formula.grammar import read
    >>> list(remarks(read("exp(-n/64)")))
    ['p(n) is the bias of a logit. If exp(-n/64) is the weight itself, write -n/64.']
    """
    if slope := _slope_where_positive(formula):
        line = expression_line(formula, unicode=False)
        if slope > 0:
            yield f"This bias grows with the distance. If a sign is lost, write -({line})."
        else:
            logit = door.expand_log(sympy.log(formula))
            shown = expression_line(logit, unicode=False)
            yield f"p(n) is the bias of a logit. If {line} is the weight itself, write {shown}."
    for name in sorted({s.name for s in formula.free_symbols} & {*ROW_NAMES}):
        yield (
            f"{name} is read as a constant. If it is the row's length, the bias is normalised by "
            "the row, and no fixed window is ever enough (farfield papers normalised-bias)."
        )
    masked = with_infinity(formula)
    if masked != formula:
        truth = decide_series(masked, {}).condition if masked.free_symbols == {n} else None
        outcome = {S.true: "its series converges", S.false: "its series diverges too"}.get(truth)
        yield (
            f"A number of {MASKED} or less may stand for minus infinity. With -inf in its place "
            f"the bias is {str(masked)[:200]}"
            f"{f', and {outcome}' if outcome else ''}."
        )
    for condition in (c for p in formula.atoms(sympy.Piecewise) for e, c in p.args if e.is_finite):
        if condition in FUTURE or _is_past(condition, formula):
            yield (
                "This reads keys in the past, n >= 0, alone. Values for n < 0 are no part of a "
                "causal bias."
            )
            return


def _is_past(condition: sympy.Basic, formula: Expr) -> bool:
    """Whether a condition says that the key is in the past, and elsewhere the bias is finite."""
    others = [e for p in formula.atoms(sympy.Piecewise) for e, c in p.args if c != condition]
    return condition in PAST and all(e.is_finite is not False for e in others)


def _slope_where_positive(formula: Expr) -> int:
    """-1 for a bias that is positive and falls, as a weight does, 1 for one that is positive and
    grows, 0 for all others."""
    if not kinds(formula).isdisjoint((Lookup, sympy.Piecewise)):
        return 0
    halves = dict.fromkeys(formula.free_symbols, Rational(1, 2))
    near, far = (enclose(formula, values=halves | {n: distance}) for distance in (1, 16))
    if near is None or far is None or not (near > 0 and far > 0):
        return 0
    if formula.could_extract_minus_sign():
        return 0
    slope = -1 if bool(far < near) else int(bool(near < far))
    return slope if slope and door.assumed(formula, "nonnegative") else 0  # the slowest comes last


def with_infinity(formula: Expr) -> Expr:
    """The bias with minus infinity for numbers that represent it.

    >>> from farfield.theory.formula.grammar import read
    >>> with_infinity(read("where(n < 64, 0, -1e9)"))
    Piecewise((0, n < 64), (-oo, True))
    """

    def masks(e: Expr) -> bool:
        return bool(e.is_Rational and e <= MASKED)

    pieces: dict[Expr, Sequence[Any]] = {e: e.args for e in formula.atoms(sympy.Piecewise)}
    for e in formula.atoms(sympy.Mul):
        factor, rest = e.as_coeff_Mul()
        if masks(factor) and isinstance(rest, sympy.Piecewise):
            pieces[e] = [(factor * v, c) for v, c in rest.args]
    return formula.xreplace(
        {
            e: sympy.Piecewise(
                *((S.NegativeInfinity if masks(v) else v, c) for v, c in values), evaluate=False
            )
            for e, values in pieces.items()
        }
    )
