"""The known name nearest to what was typed: "did you mean ...?". It imports little."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from farfield.theory.answers.errors import InputError

FEW = 8
"""Names that an error lists in full."""


def bare_name(name: str) -> str:
    """A name without what people vary in writing it: case, spaces, hyphens, underscores.

    >>> bare_name("KERPLE-log") == bare_name("kerple_log")
    True
    """
    return "".join(c for c in name.lower() if c.isalnum())


def _alike(name: str, names: Iterable[str], count: int, least: float) -> list[str]:
    """Those of the names that are written most alike, as far as they are."""
    import difflib  # of use where a name is wrong alone; the command line starts without it

    by_plain = {bare_name(k): str(k) for k in names}
    return [by_plain[k] for k in difflib.get_close_matches(bare_name(name), by_plain, count, least)]


def nearest(name: str, names: Iterable[str], least: float = 0.7) -> str | None:
    """The known name that a user may have meant by one that is not known.

    >>> nearest("kerple-lgo", ["kerple_log", "alibi"]), nearest("relu", ["rope"])
    ('kerple_log', None)
    """
    return next(iter(_alike(name, names, 1, least)), None)


def closest(name: str, names: Collection[str]) -> str:
    """The accepted names for an error: all where they are few, else the three nearest.

    >>> closest("bce", ["a", "b"]), closest("x12", [f"x{k}" for k in range(40)])
    ('accepted: a, b', 'the nearest of 40: x12, x2, x1')
    """
    if len(names) <= FEW:
        return f"accepted: {', '.join(names)}"
    return f"the nearest of {len(names)}: {', '.join(_alike(name, names, 3, 0.0))}"


def one_of(value: object, what: str, accepted: Collection[str]) -> str:
    """A name that is accepted.

    Raises:
        InputError: another, or no text; the message tells the nearest.

    >>> one_of("cpu", "device", ("auto", "cpu"))
    'cpu'
    """
    if isinstance(value, str) and value in accepted:
        return value
    close = nearest(value, accepted) if isinstance(value, str) else None
    hint = f"did you mean {str(close)!r}? " if close else ""
    raise InputError(
        f"{what} {repr(value)[:40]} is not known; {hint}{closest(str(value), accepted)}"
    )
