"""The six relations of two real numbers: how each is written, and when it holds."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import sympy


class OrderRelation(NamedTuple):
    """One of the six.

    Args:
        symbol: as Python writes it.
        name: as SymPy's function and Python's method have it, as `Lt` and `__lt__`.
        ufunc: NumPy's function.
        kind: SymPy's class.
        holds: for two numbers, intervals, balls or arrays.
        signs: of the difference left less right for which it holds.
        mirrored: the symbol of the relation that holds with both sides swapped.
        shown: as a reader sees it; `tex` in LaTeX; `prover` in a theorem of Rocq.
    """

    symbol: str
    name: str
    ufunc: str
    kind: type[sympy.Rel]
    holds: Callable[[Any, Any], Any]
    signs: tuple[int, ...]
    mirrored: str
    shown: str
    tex: str
    prover: str


SIX = (
    OrderRelation("<", "Lt", "less", sympy.Lt, operator.lt, (-1,), ">", "<", "<", "<"),
    OrderRelation(
        "<=", "Le", "less_equal", sympy.Le, operator.le, (0, -1), ">=", "≤", r"\le", "<="
    ),
    OrderRelation(">", "Gt", "greater", sympy.Gt, operator.gt, (1,), "<", ">", ">", ">"),
    OrderRelation(
        ">=", "Ge", "greater_equal", sympy.Ge, operator.ge, (1, 0), "<=", "≥", r"\ge", ">="
    ),
    OrderRelation("==", "Eq", "equal", sympy.Eq, operator.eq, (0,), "==", "=", "=", "="),
    OrderRelation("!=", "Ne", "not_equal", sympy.Ne, operator.ne, (1, -1), "!=", "≠", r"\ne", "<>"),
)
BY_SYMBOL = {relation.symbol: relation for relation in SIX}
BY_KIND: dict[type[sympy.Basic], OrderRelation] = {relation.kind: relation for relation in SIX}
BY_SIGNS = {relation.signs: relation for relation in SIX}
