"""The time a question may take, and a look at the clock."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from farfield.theory.algebra.exceptions import OutOfTime


@dataclass(frozen=True)
class Budget:
    """What a question may take.

    Fields:
        deadline: of `time.monotonic`.
        withdrawn: whether every caller has gone; None where that cannot be.
    """

    deadline: float = math.inf
    withdrawn: Callable[[], bool] | None = None

    def spent(self) -> bool:
        """Whether the question must end now; any thread may ask."""
        late = time.monotonic() > self.deadline
        return late or (self.withdrawn is not None and self.withdrawn())


UNLIMITED = Budget()
_BUDGET: ContextVar[Budget] = ContextVar("budget", default=UNLIMITED)


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """The computation inside gives up with `OutOfTime` at that time of `time.monotonic`."""
    with _within(replace(budget(), deadline=min(deadline, budget().deadline))):
        yield


@contextmanager
def unless(withdrawn: Callable[[], bool]) -> Iterator[None]:
    """The computation inside gives up with `OutOfTime` once another thread makes that true."""
    with _within(replace(budget(), withdrawn=withdrawn)):
        yield


@contextmanager
def unhurried() -> Iterator[None]:
    """The computation inside is short, and has its own bounds: a spent budget does not end it."""
    with _within(UNLIMITED):
        yield


@contextmanager
def _within(limits: Budget) -> Iterator[None]:
    token = _BUDGET.set(limits)
    try:
        yield
    finally:
        _BUDGET.reset(token)


def budget() -> Budget:
    """The deadline of the question at hand."""
    return _BUDGET.get()


def check_time() -> None:
    """OutOfTime once the time budget is spent."""
    if _BUDGET.get().spent():
        raise OutOfTime
