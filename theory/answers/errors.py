"""A question that cannot be answered."""

from __future__ import annotations

from collections.abc import Sequence


class InputError(ValueError):
    """A question that farfield cannot read.

    The message is one line for a user: the text that was given, its defect, and what is accepted.
    """


def refuse(wrong: object, why: str) -> None:
    """Raise InputError where something is wrong: `why` says what, and what is accepted."""
    if wrong:
        raise InputError(why)


class MissingValues(InputError):
    """A question about numbers, of a formula whose parameters have none.

    Args:
        what: the formula or encoding.
        names: of its free parameters.
    """

    def __init__(self, what: str, names: Sequence[str]) -> None:
        many = [*names[:4], "…", *names[-2:]] if len(names) > 8 else names
        super().__init__(
            f"{what} has free parameters: give values for {', '.join(many)}, or write its "
            "formula with numbers"
        )
        self.names = tuple(names)
