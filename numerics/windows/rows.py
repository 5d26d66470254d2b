"""Biases that depend on the row: the sharp error of one row (ours).

A row of i keys has logits `x + p_i(n)`, content `|x| <= beta` free. Keeping its j nearest keys, the
worst error is exactly (a maximum over inputs)

    2 V T / (T + e^{-2 beta} B),    B = sum_{n<j} e^{p_i(n)},    T = sum_{j<=n<i} e^{p_i(n)}.

Windowable is such an encoding exactly if the supremum over rows `i > j` of `e^{2 beta} T/B` tends
to 0; it is not where the biases of all rows lie in one bounded interval.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from farfield.numerics.windows.question import read_bounds
from farfield.theory.answers.answer import InputError
from farfield.theory.answers.number import natural


def row_window_error(
    bias: Any, width: Any, logit_bound: Any, value_bound: Any, *, sink: float | None = None
) -> float:
    """The worst error of one row, from its own biases, in float64.

    Args:
        bias: `p_i(n)` at distances 0 .. i - 1, finite or -inf; shape (i,).
        width: nearest keys that are kept, at least 1.
        logit_bound: bound beta of the content logits.
        value_bound: bound V of the values.
        sink: the logit of a learned constant in the denominator, whose value is 0; None without.

    Raises:
        InputError: a misshapen bias, one that masks the whole window, numbers out of range.

    >>> row_window_error([0.0, 0.0, 0.0, 0.0], 2, 0, 1)
    1.0
    """
    row = np.asarray(bias, dtype=np.float64)
    if row.ndim != 1 or not row.size or np.isnan(row).any() or (row == np.inf).any():
        raise InputError(f"bias has shape {row.shape}; accepted: finite or -inf, shape (keys,)")
    w = natural(width, "width")
    beta, value = map(float, read_bounds(logit_bound, value_bound))
    top = row.max() if sink is None else max(row.max(), sink)
    if not np.isfinite(row[:w].max()):
        raise InputError(f"the bias masks all of the {w} nearest keys")
    weights = np.exp(row - top)
    inside, outside = float(weights[:w].sum()), float(weights[w:].sum())
    if sink is None:
        return 2 * value * outside / (outside + math.exp(-2 * beta) * inside)
    return _with_sink(outside * math.exp(beta), inside, beta, value, math.exp(sink - top))


def _with_sink(outside: float, inside: float, beta: float, value: float, sink: float) -> float:
    """V O (2I + S)/((O + I + S)(I + S)) at the worst inner mass I in [e^-beta B, e^beta B]."""
    if outside == 0:
        return 0.0
    worst = (math.sqrt(sink * sink + 2 * sink * outside) - sink) / 2
    kept = min(max(worst, math.exp(-beta) * inside), math.exp(beta) * inside)
    return value * outside * (2 * kept + sink) / ((outside + kept + sink) * (kept + sink))
