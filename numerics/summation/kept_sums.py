"""The cache of sums: what one object has computed, for as long as it lives.

Sums, series and biases are immutable, so their computed results stay valid.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

Value = TypeVar("Value")
Result = TypeVar("Result")
Given = ParamSpec("Given")
Method = Callable[Concatenate[Value, Given], Result]
_KEPT: dict[int, dict[object, Any]] = {}


def memory(of: object) -> dict[object, Any]:
    """The cache of one object, not of equal ones; it ends with the object."""
    place = id(of)
    if place not in _KEPT:
        weakref.finalize(of, _KEPT.pop, place, None).atexit = False
        _KEPT[place] = {}
    return _KEPT[place]


def remembered(method: Method[Value, Given, Result]) -> Method[Value, Given, Result]:
    """A method of a value that is computed once for the same arguments."""

    @functools.wraps(method)
    def asked(self: Value, /, *args: Given.args, **named: Given.kwargs) -> Result:
        results, key = memory(self), (method.__name__, *args)
        if key not in results:
            results[key] = method(self, *args, **named)
        result: Result = results[key]
        return result

    return asked
