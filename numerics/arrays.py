"""Arrays that a caller hands in, read as float64 without a loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from farfield.theory.answers.answer import InputError

ROUNDOFF = 2.0**-53  # of float64, to nearest
TINY = 2.0**-1000  # above what underflow takes from a product of numbers below 1
MAX_EXACT = 2**53  # up to which every integer is a float64
_KINDS = {"U": "text", "S": "text", "O": "no numbers of a float64"}


def floats(given: Any, what: str, wanted: str) -> np.ndarray:
    """The numbers of a list, a NumPy array or a torch tensor, each exactly, as float64.

    Args:
        given: real numbers of at most 64 bits.
        what: their name in an error.
        wanted: the accepted values, for an error.

    Raises:
        InputError: a masked array; text, dates, complex or wider numbers; integers beyond 2^53.

    >>> floats([[1, 2]], "keys", "an array").tolist()
    [[1.0, 2.0]]
    """
    if isinstance(given, np.ma.MaskedArray):
        raise InputError(f"{what} is a masked array; accepted: {wanted}, without a mask")
    try:
        if hasattr(given, "detach"):
            given = given.detach().to("cpu")
            given = (given.double() if given.is_floating_point() else given).numpy()
        values = np.asarray(given)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise InputError(f"{what} holds no numbers; accepted: {wanted}") from None
    if values.size == 0:
        values = values.astype(np.float64)
    if values.dtype.kind not in "iuf" or values.dtype.itemsize > 8:
        kind = _KINDS.get(values.dtype.kind, f"numbers of type {values.dtype}")
        raise InputError(f"{what} holds {kind}; accepted: {wanted}")
    if values.dtype.kind in "iu" and ((values > MAX_EXACT) | (values < -MAX_EXACT)).any():
        raise InputError(f"{what} holds integers beyond 2^53; accepted: {wanted}")
    return values.astype(np.float64)
