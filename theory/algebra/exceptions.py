"""Exceptions raised when the engine cannot answer. Any other exception is a bug."""

from __future__ import annotations

from typing import Any


class Undecided(Exception):
    """No rule decides the question. The message names the obstacle; `steps` lists the rules
    tried."""

    steps: tuple[Any, ...] = ()


class Unreachable(Exception):
    """An answer that is beyond the bounds on work or time; the message says which."""


class OutOfTime(Unreachable):
    """The time budget of the question is spent."""

    def __init__(self) -> None:
        super().__init__("the time budget was spent (budget_s, --budget)")


class NotReal(Exception):
    """The formula is not real, or not finite, for all large n; the message names the part."""


class OrderTooLow(Exception):
    """An expansion must be carried further before the question can be answered."""


class SignNeeded(Exception):
    """The sign of the argument, a polynomial in parameters, must be known."""
