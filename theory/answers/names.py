"""Names as people write them: which known one is meant. Imports nothing, for errors at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def plain(name: str) -> str:
    """A name without what people vary in writing it: case, spaces, hyphens, underscores.

    >>> plain("KERPLE-log") == plain("kerple_log")
    True
    """
    return "".join(c for c in name.lower() if c.isalnum())


def nearest(name: str, known: Iterable[str], least: float = 0.7) -> str | None:
    """The known name that a user may have meant by one that is not known.

    >>> nearest("kerple-lgo", ["kerple_log", "alibi"]), nearest("relu", ["rope"])
    ('kerple_log', None)
    """
    by_plain = {plain(k): k for k in known}
    close = difflib.get_close_matches(plain(name), by_plain, 1, least)
    return by_plain[close[0]] if close else None
