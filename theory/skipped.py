"""The first terms of an exp-series: which are undefined or infinite; tables without them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import sympy
from flint import fmpq
from sympy import Expr

from farfield.theory.algebra.budget import unhurried
from farfield.theory.formula.bounded_nodes import primitive
from farfield.theory.functions.balls import Undefined, Undetermined, precision, to_arb
from farfield.theory.functions.nodes import Lookup, n
from farfield.theory.values import compile_ball, tabulate_all

if TYPE_CHECKING:
    import numpy as np

MOST_TERMS = 4096


def skipped_terms(p: Expr) -> tuple[int, ...]:
    """The distances below 4096 whose bias is undefined or +oo, searched until 64 in a row are
    fine. A row of them that lasts to the end of the search is taken for overflow, but for its
    beginning at 0.

    >>> from sympy import log
    >>> skipped_terms(-log(log(n)))
    (0, 1)
    """
    return () if p.free_symbols - {n} else _skipped(primitive(p)[1])


@lru_cache(maxsize=64)
def _skipped(p: Expr) -> tuple[int, ...]:
    """The heads of a family, positive multiples of one bias, share it."""
    value = compile_ball(p)
    skipped, fine = [], 0
    for t in range(MOST_TERMS):
        with unhurried(), precision(256):
            try:
                ball = to_arb(value({n: fmpq(t)}))
                good = ball.is_finite() or bool(ball < 0)
            except Undetermined:
                good = True
            except (Undefined, ZeroDivisionError, OverflowError):
                good = False
        if not good:
            skipped.append(t)
        fine = fine + 1 if good else 0
        if fine >= 64:
            return tuple(skipped)
    last = MOST_TERMS
    while skipped and skipped[-1] == last - 1:
        last = skipped.pop()
    return tuple(skipped) if last > 0 else tuple(range(MOST_TERMS))


def defined(formulas: Sequence[Expr], distances: Any) -> np.ndarray:
    """Several biases as `tabulate_all` gives them, without the values that float64 finds where a
    formula has none: nan there, or +inf.

    >>> from sympy import log
    >>> defined([-n / log(n)], [0, 1, 2]).round(3).tolist()
    [[nan, nan, -2.885]]
    """
    import numpy as np

    table = tabulate_all(formulas, distances)
    for row, p in zip(table, formulas, strict=True):
        if not isinstance(p, Lookup) and p.has(sympy.log, sympy.Pow):
            row[np.isin(distances, skipped_terms(p)) & (row < np.inf)] = np.nan
    return table
