"""Rows in float64, where balls do not sum them: tails, prices, resolutions, without a bound.

A row is the biases `p(0) .. p(N-1)` of one head; `-inf` masks a key.
"""

from __future__ import annotations

import numpy as np
from sympy import Expr

from farfield.numerics.questions import Fields
from farfield.theory.algebra.exceptions import OutOfTime, Unreachable
from farfield.theory.answers.answer import Code, InputError, Label, Reason
from farfield.theory.values import tabulate

MAX_KEYS = 2 * 10**7  # of a row that is summed in floats


def checked(row: np.ndarray) -> np.ndarray:
    """A row; InputError where it is no number or `+inf`."""
    bad = np.isnan(row) | (row == np.inf)
    if bad.any():
        raise InputError(f"the bias is undefined or infinite at n = {int(np.argmax(bad))}")
    return row


def bias_row(bias: Expr, count: int) -> np.ndarray:
    """`p(0) .. p(count - 1)`, shape (count,); InputError where it is no number or `+inf`."""
    return checked(tabulate(bias, np.arange(count)))


def row_instead(bias: Expr, length: int | None, why: Unreachable) -> np.ndarray:
    """The row of a head that balls do not sum; `why` again where it is none, or too long."""
    if length is None or length > MAX_KEYS or isinstance(why, OutOfTime):
        raise why
    return bias_row(bias, length)


def in_floats(why: Unreachable) -> Fields:
    """The weight of what float64 sums tell, and why they do."""
    return {
        "label": Label.APPROXIMATE,
        "reason": Reason(Code.NO_ENCLOSURE, f"{why}; float64 sums"),
    }


def tail_sums(row: np.ndarray) -> np.ndarray:
    """T_0, ..., T_N = 0 over e^max as long doubles, shape (N + 1,)."""
    weights = np.exp(row.astype(np.longdouble) - row.max())
    return np.append(np.cumsum(weights[::-1])[::-1], 0)


def head_prices(bias: np.ndarray) -> np.ndarray:
    """The price of each distance in a row, in float64; shape (heads, N) as the bias.

    A key that is masked costs `inf`, the only key that is not `-inf`.

    Raises:
        InputError: a bias that is no number or `+inf`.

    >>> head_prices(np.array([[0.0, 0.0, 0.0], [0.0, -np.inf, -np.inf]])).round(3)
    array([[0.693, 0.693, 0.693],
           [ -inf,   inf,   inf]])
    """
    row = np.atleast_2d(np.asarray(bias, dtype=np.float64))
    for each in row:
        checked(each)
    edge = np.full((len(row), 1), -np.inf)
    near = np.hstack([edge, np.logaddexp.accumulate(row, axis=1)[:, :-1]])
    far = np.logaddexp.accumulate(row[:, ::-1], axis=1)[:, ::-1]
    others = np.logaddexp(near, np.hstack([far[:, 1:], edge]))
    masked = np.isneginf(row)
    return np.where(masked, np.inf, others - np.where(masked, 0, row))


def resolution_curve(scores: object) -> np.ndarray:
    """R of every row that ends within the scores: N = 0, 1, ..., T - 2, in one vectorised pass.

    By the identity `R = W - P_N P_{N+1}` (ours) with
    `2 W = P_0^2 + P_N^2 + sum_{i<N} (P_i - P_{i+1})^2`, in logarithms: no score overflows, and one
    difference alone cancels.

    Args:
        scores: `s_0 .. s_{T-1}`, shape (T,), T >= 2; -inf means masked.

    Returns:
        float64, shape (T - 1,).

    >>> resolution_curve(np.zeros(3)).tolist()
    [0.0, 0.0]
    """
    s = np.asarray(scores, dtype=np.float64)
    s = s - s.max()
    total = np.logaddexp.accumulate(s[:-1])
    with np.errstate(over="ignore"):
        curve: np.ndarray = windowed_curve(s[:-1]) - np.exp(s[:-1] + s[1:] - 2 * total)
    return curve


def windowed_curve(scores: np.ndarray) -> np.ndarray:
    """R of the windows of 1, 2, ..., T tokens, shape (T,): the score after each is -oo."""
    s = scores - scores.max()
    total = np.logaddexp.accumulate(s)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.where(s[:-1] == s[1:], 0.0, np.abs(s[:-1] - s[1:]))
        steps = 2 * (np.maximum(s[:-1], s[1:]) + np.log(-np.expm1(-gap)))
    steps = np.where(np.isnan(steps), -np.inf, steps)
    before = np.concatenate([[-np.inf], np.logaddexp.accumulate(steps)])
    first, last = 2 * (s[0] - total), 2 * (s - total)
    windows: np.ndarray = (np.exp(first) + np.exp(before - 2 * total) + np.exp(last)) / 2
    return windows
