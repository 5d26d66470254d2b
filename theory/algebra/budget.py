"""The time a question may take, and a look at the clock."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from farfield.theory.algebra.outcomes import Unreachable

_DEADLINE: ContextVar[float] = ContextVar("deadline", default=math.inf)


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """What is computed inside gives up with `Unreachable` at that time of `time.monotonic`."""
    token = _DEADLINE.set(min(deadline, _DEADLINE.get()))
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def deadline() -> float:
    """When the time of this question is spent."""
    return _DEADLINE.get()


def check_time() -> None:
    """Unreachable once the time budget is spent."""
    if time.monotonic() > _DEADLINE.get():
        raise Unreachable("the time budget was spent (budget_s, --budget)")
