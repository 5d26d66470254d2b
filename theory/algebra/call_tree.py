"""The calls of the engine as a tree, printed to stderr where FARFIELD_TRACE=1 is set at the start.

Each line is a call with its arguments and its value, or the exception it raised. What it called
stands below it, indented.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

TRACED = os.environ.get("FARFIELD_TRACE") == "1"
WIDTH = 100  # of an argument or a value
_ABOVE: ContextVar[list[str] | None] = ContextVar("above", default=None)


def traced(arguments: int, value: Callable[[Any], object] = str) -> Callable[[F], F]:
    """A decorator: the calls of a function are in the tree.

    Args:
        arguments: how many of its arguments are shown.
        value: what is shown of its value.
    """
    return (lambda function: _shown(function, arguments, value)) if TRACED else lambda f: f


def _shown(function: F, arguments: int, value: Callable[[Any], object]) -> F:
    @functools.wraps(function)
    def shown(*args: object, **options: object) -> object:
        above, below, end = _ABOVE.get(), list[str](), ""
        token = _ABOVE.set(below)
        try:
            returned = function(*args, **options)
            end = f"= {value(returned)}"
            return returned
        except Exception as why:
            end = f"raises {type(why).__name__}: {why}"
            raise
        finally:
            _ABOVE.reset(token)
            asked = ", ".join(f"{a}"[:WIDTH] for a in args[:arguments])
            lines = [f"{function.__name__}({asked}) {end}"[: 2 * WIDTH]]
            lines += [f"  {line}" for line in below]
            if above is None:
                print(*lines, sep="\n", file=sys.stderr)
            else:
                above += lines

    return shown  # type: ignore[return-value]
