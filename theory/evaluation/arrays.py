"""The float64 view of a formula: its values at many distances in one vectorised pass.

Elementary functions go through NumPy; a special function that NumPy lacks is evaluated by balls,
distance by distance, and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sympy
from flint import arb, fmpq
from sympy import Expr, S, Symbol

from farfield.theory.evaluation.balls import Undefined, compile_ball, precision, to_arb
from farfield.theory.formula.grammar import Lookup, n
from farfield.theory.results import InputError

_NUMPY: dict[Any, Callable[..., Any]] = {
    sympy.exp: np.exp, sympy.log: np.log, sympy.Abs: np.abs, sympy.sign: np.sign,
    sympy.sin: np.sin, sympy.cos: np.cos, sympy.tan: np.tan,
    sympy.asin: np.arcsin, sympy.acos: np.arccos, sympy.atan: np.arctan,
    sympy.sinh: np.sinh, sympy.cosh: np.cosh, sympy.tanh: np.tanh,
    sympy.asinh: np.arcsinh, sympy.acosh: np.arccosh, sympy.atanh: np.arctanh,
    sympy.Min: lambda *a: _fold(np.minimum, a), sympy.Max: lambda *a: _fold(np.maximum, a),
}  # fmt: skip
_RELATIONS: dict[Any, Callable[..., Any]] = {
    sympy.StrictLessThan: np.less, sympy.LessThan: np.less_equal,
    sympy.StrictGreaterThan: np.greater, sympy.GreaterThan: np.greater_equal,
    sympy.Equality: np.equal, sympy.Unequality: np.not_equal,
    sympy.And: lambda *a: _fold(np.logical_and, a), sympy.Or: lambda *a: _fold(np.logical_or, a),
    sympy.Not: np.logical_not,
}  # fmt: skip


def _fold(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    total = args[0]
    for a in args[1:]:
        total = function(total, a)
    return total


def tabulate(formula: Expr, distances: Any) -> np.ndarray:
    """The bias at each distance as float64, shape `(len(distances),)`.

    Args:
        formula: a bias in `n` without other symbols.
        distances: integers >= 0, one-dimensional.

    Raises:
        InputError: when the formula has free parameters or a distance is no natural number.

    >>> tabulate(-2 * sympy.log(1 + n), [0, 1, 3]).round(4).tolist()
    [0.0, -1.3863, -2.7726]
    """
    at = np.asarray(distances)
    if at.ndim != 1 or (at.size and (at.dtype.kind not in "iu" or at.min() < 0)):
        raise InputError("distances must be a one-dimensional list of integers >= 0")
    free = sorted(s.name for s in formula.free_symbols - {n})
    if free:
        raise InputError(f"the bias has free parameters: {', '.join(free)}; give their values")
    with np.errstate(all="ignore"):
        values = _walk(formula, {n: at.astype(np.float64)}, {})
    return np.broadcast_to(values, at.shape) + 0.0  # a copy, without negative zeros


def _walk(e: Any, env: dict[Symbol, np.ndarray], memo: dict[Any, Any]) -> Any:
    if e in memo:
        return memo[e]
    if e in env:
        value: Any = env[e]
    elif e in (S.true, S.false):
        value = bool(e)
    elif e.is_number and isinstance(e, Expr):
        value = _constant(e)
    elif e.is_Add:
        value = sum(_walk(a, env, memo) for a in e.args)
    elif e.is_Mul:
        value = 1.0
        for a in e.args:
            value = value * _walk(a, env, memo)
    elif e.is_Pow:
        value = np.power(_walk(e.base, env, memo), _walk(e.exp, env, memo))
    elif isinstance(e, sympy.Piecewise):
        shape = env[n].shape
        conditions = [np.broadcast_to(_walk(c, env, memo), shape) for _, c in e.args]
        values = [np.broadcast_to(_walk(v, env, memo), shape) for v, _ in e.args]
        value = np.select(conditions, values, np.nan)
    elif e.func in _RELATIONS:
        value = _RELATIONS[e.func](*(_walk(a, env, memo) for a in e.args))
    elif isinstance(e, Lookup) and e.args[0] == n:
        table = np.array([_constant(v) for v in e.args[1].args] + [_constant(e.args[2])])
        value = table[np.minimum(env[n], len(table) - 1).astype(np.int64)]
    elif e.func in _NUMPY:
        value = _NUMPY[e.func](*(_walk(a, env, memo) for a in e.args))
    else:
        value = _by_balls(e, env[n])
    memo[e] = value
    return value


def _constant(e: Expr) -> float:
    if e in (S.Infinity, S.NegativeInfinity):
        return float("inf") if e is S.Infinity else float("-inf")
    return float(_by_balls(e, np.zeros(1))[0])


def _by_balls(e: Expr, at: np.ndarray) -> np.ndarray:
    """Each value from a ball, at a precision that leaves no doubt about 50 bits of it."""
    function = compile_ball(e)
    values = np.empty(at.shape)
    for index, distance in enumerate(at):
        values[index] = np.nan
        for bits in (80, 200, 800, 3200):
            with precision(bits):
                try:
                    ball = to_arb(function({n: fmpq(int(distance))}))
                except Undefined:
                    continue
            if ball.rel_accuracy_bits() >= 60 or _tiny(ball):
                values[index] = float(ball.mid())
                break
    return values


def _tiny(ball: arb) -> bool:
    return bool(abs(ball) < arb(2) ** -1080)
