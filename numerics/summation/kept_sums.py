"""The cache of sums.

Sums, series and biases are immutable, so their computed results stay valid. The cache keeps these
results for as long as the object lives.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from flint import ctx

_KEPT: dict[int, dict[Any, Any]] = {}


def memory(of: object) -> dict[Any, Any]:
    """The cache of one object, not of equal ones; it ends with the object."""
    place = id(of)
    if place not in _KEPT:
        weakref.finalize(of, _KEPT.pop, place, None).atexit = False
        _KEPT[place] = {}
    return _KEPT[place]


def remembered(method: Callable[..., object]) -> Callable[..., Any]:
    """A method of a value that is computed once for the same arguments."""
    return _kept(method, lambda: None)


def remembered_by_precision(method: Callable[..., object]) -> Callable[..., Any]:
    """The same, once for each precision of balls at work."""
    return _kept(method, lambda: ctx.prec)


def _kept(method: Callable[..., object], apart: Callable[[], object]) -> Callable[..., Any]:
    """A method whose results are kept, those of what is apart for themselves."""

    @functools.wraps(method)
    def asked(self: object, *given: object) -> Any:
        results, key = memory(self), (method.__name__, apart(), *given)
        if key not in results:
            results[key] = method(self, *given)
        return results[key]

    return asked
