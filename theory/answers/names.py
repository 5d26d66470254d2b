"""Names as people write them: which known one is meant. Imports little, for errors at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from farfield.theory.answers.errors import InputError


def bare_name(name: str) -> str:
    """A name without what people vary in writing it: case, spaces, hyphens, underscores.

    >>> plain("KERPLE-log") == plain("kerple_log")
    True
    """
    return "".join(c for c in name.lower() if c.isalnum())


def nearest(name: str, names: Iterable[str], least: float = 0.7) -> str | None:
    """The known name that a user may have meant by one that is not known.

    >>> nearest("kerple-lgo", ["kerple_log", "alibi"]), nearest("relu", ["rope"])
    ('kerple_log', None)
    """
    import difflib  # of use where a name is wrong alone; the command line starts without it

    by_plain = {bare_name(k): k for k in names}
    close = difflib.get_close_matches(bare_name(name), by_plain, 1, least)
    return by_plain[close[0]] if close else None


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
    choices = f"{hint}accepted: {', '.join(accepted)}"
    raise InputError(f"{what} {repr(value)[:40]} is not known; {choices}")
