"""An array as biases: are its axes slopes of heads, queries and keys, or distances; its masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from farfield.theory.answers.errors import InputError
from farfield.theory.encodings.catalogue_formulas import alibi_slope

LEAST = (-65504.0, -3.3e38)
"""The least number of float16, and what lies below those of bfloat16 and float32."""
_CLOSE = 1e-3  # by which slopes in bf16 differ from the rule


def floats(value: Any) -> np.ndarray:
    """Numbers of NumPy, torch or JAX as float64; InputError for anything else, complex ones too."""
    what = str(getattr(value, "dtype", type(value).__name__))
    try:
        if "complex" not in what:
            for name in ("detach", "cpu", "double"):
                value = getattr(value, name, lambda value=value: value)()
            return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, NotImplementedError):
        # text, an object, a number too large, a tensor without numbers
        pass
    raise InputError(f"{what} is no array of real numbers; accepted: {_ACCEPTED}")


def masked(array: Any) -> np.ndarray:
    """An array as a bias: of truth, a mask; the least number of a type means minus infinity.

    >>> masked(np.array([True, False])).tolist(), masked([0.0, -3.4028234663852886e38]).tolist()
    ([0.0, -inf], [0.0, -inf])
    """
    values = floats(array)
    if "bool" in str(getattr(array, "dtype", "")):
        return np.where(values != 0, 0.0, -np.inf)
    return np.where((values < LEAST[1]) | (values == LEAST[0]), -np.inf, values)


def layout(array: object) -> tuple[str, np.ndarray]:
    """The kind of an array, `slopes`, `matrix` or `table`, and its values.

    A single column a head is its slope, and so is a falling geometric list of positive numbers. Two
    axes that are constant along diagonals are queries, the last ones, and keys; others with fewer
    rows than columns are a table of heads and distances. Truth is a mask.

    Raises:
        InputError: axes that may be two things, with what to type for each.

    >>> layout([0.5, 0.25, 0.125])[0], layout([0, -1, -2])[0]
    ('slopes', 'table')
    >>> layout(-np.subtract.outer(np.arange(4), np.arange(4)))[0]
    'matrix'
    """
    values = masked(array)
    while values.ndim > 3 and values.shape[0] == 1:
        values = values[0]
    shape = values.shape
    if values.ndim == 0 or values.size == 0 or values.ndim > 3:
        raise InputError(f"an array of shape {shape}; accepted: {_ACCEPTED}")
    if values.ndim == 3:
        if shape[1:] == (1, 1):
            return "slopes", values.ravel()
        return "matrix", values
    if (values.ndim == 1 or 1 in shape) and values.size > 1 and _are_slopes(values.ravel()):
        return "slopes", values.ravel()
    if values.ndim == 1 or shape[0] == 1 or values.size <= 4:
        return "table", values
    if shape[0] <= shape[1] and _constant_along_diagonals(values):
        return "matrix", values[None]
    if shape[0] < shape[1]:
        return "table", values
    heads, size = shape
    raise InputError(
        f"an array of shape {shape} may be a table of {heads} heads at {size} distances, written "
        f"values=array; or {size} heads at {heads} distances or buckets, values=array.T; or biases "
        f"of queries and keys, which are not constant along diagonals; accepted: {_ACCEPTED}"
    )


_ACCEPTED = (
    "(heads, queries, keys), (queries, keys), (heads, distances), (distances,), slopes (heads,)"
)


def _are_slopes(values: np.ndarray) -> bool:
    """Whether positive numbers fall like a geometric sequence, or like the rule of ALiBi."""
    if not (np.isfinite(values).all() and (values > 0).all() and len(values) <= 256):
        return False
    ratio = values[1:] / values[:-1]
    rule = [float(alibi_slope(h, len(values))) for h in range(1, len(values) + 1)]
    geometric = len(values) > 2 and ratio.max() < 1 and np.ptp(ratio) <= _CLOSE * ratio.max()
    return bool(geometric or np.abs(values / rule - 1).max() <= _CLOSE)


def _constant_along_diagonals(values: np.ndarray) -> bool:
    """Whether rows are a function of query less key, for keys that are not behind the query, and
    not the same for all keys."""
    queries, size = values.shape
    if (values == values[:1, :1]).all():
        return queries == size
    past = [values[q - size, : q + 1][::-1] for q in range(size - queries, size)]
    gaps = [row - past[-1][: len(row)] for row in past if np.isfinite(row).all()]
    masked = [np.isfinite(row) == np.isfinite(past[-1][: len(row)]) for row in past]
    slack = 1e-2 * float(np.abs(values[np.isfinite(values)]).max(initial=0))
    return all(m.all() for m in masked) and all(np.ptp(gap) <= slack for gap in gaps)
