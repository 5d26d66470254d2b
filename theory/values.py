"""The functions `compile_ball`, `enclose`, `tabulate`: a formula as balls, or as float64 tables.

Both decide a jump by the exact zero tests of `coefficients.signs` where a ball does not. NumPy is
loaded with the first table: a verdict needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from flint import arb
from sympy import Basic, Expr, Symbol

from farfield.theory.coefficients.signs import BALLS
from farfield.theory.evaluation.real_balls import Environment
from farfield.theory.functions.balls import Ball

if TYPE_CHECKING:
    import numpy as np

    from farfield.theory.evaluation.vectorised import Floats


def compile_ball(e: Basic) -> Callable[[Environment], Ball]:
    """A function of the values of the symbols of `e`: fmpq (exact) or arb, in; the same out.

    Of a condition, its truth; `Undefined` where the balls do not decide.

    >>> import sympy
    >>> from flint import fmpq
    >>> from farfield.theory.functions.balls import precision
    >>> from farfield.theory.functions.nodes import n
    >>> with precision(53):
    ...     print(compile_ball(-sympy.log(1 + n))({n: fmpq(1)}))
    [-0.69314718055994... +/- ...]
    """
    return BALLS.compiled(e)


def enclose(e: Expr, bits: int = 64, values: Mapping[Symbol, object] | None = None) -> arb | None:
    """A ball that contains `e` at the given rational values, or None where it is undefined.

    >>> from farfield.theory.formula.grammar import read
    >>> from farfield.theory.functions.nodes import n
    >>> print(enclose(read("-2*log(1+n)"), 64, {n: 1}))
    [-1.38629436111989 +/- ...]
    """
    return BALLS.enclose(e, bits, values)


def tabulate(formula: Expr, distances: object) -> np.ndarray:
    """The bias at each distance as float64, shape `(len(distances),)`.

    Args:
        formula: a bias in `n` without other symbols.
        distances: integers >= 0, one-dimensional.

    Raises:
        InputError: when the formula has free parameters or a distance is no natural number.

    >>> import sympy
    >>> from farfield.theory.functions.nodes import n
    >>> tabulate(-2 * sympy.log(1 + n), [0, 1, 3]).round(4).tolist()
    [0.0, -1.3863, -2.7726]
    """
    return tabulate_all([formula], distances)[0]


def tabulate_all(formulas: Sequence[Expr], distances: object) -> np.ndarray:
    """Several biases at each distance, shape `(len(formulas), len(distances))`; what they share is
    evaluated once."""
    from farfield.theory.evaluation import vectorised

    return vectorised.tabulate(formulas, distances, _floats())


@cache
def _floats() -> Floats:
    from farfield.theory.evaluation.vectorised import Floats

    return Floats(BALLS)
