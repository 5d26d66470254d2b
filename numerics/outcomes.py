"""Exceptions raised when a series cannot be summed rigorously."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.functions.balls import Undefined


class Unrecognised(Exception):
    """The bias is not of the form at hand; the message says which part."""


class Divergent(Unrecognised):
    """The series is proved to diverge: no method sums it."""


@contextmanager
def recognising() -> Iterator[None]:
    """What algebra and balls do not decide inside is Unrecognised."""
    try:
        yield
    except (Undecided, Undefined) as why:
        raise Unrecognised(str(why) or "a formula that balls do not enclose") from None
