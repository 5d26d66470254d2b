"""How a certified sum ends where there is none: the exceptions that are meant."""

from __future__ import annotations


class Unrecognised(Exception):
    """The bias is not of the form at hand; the message says which part.

    `later` is an integer from which on it would be, where that is all that is wrong.
    """

    later: int | None = None


class Unreachable(Exception):
    """A sum that is beyond the bounds on work; the message says which."""
