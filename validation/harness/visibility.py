"""Which of the earlier keys a query sees. The model's file needs it: it is Python alone."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Visibility:
    """Which of the earlier keys a query sees at inference.

    Args:
        bca: `half` of blockwise causal attention [S, 3.3] in tokens, or None. Positions count
            from 0; key `j` is visible to query `i` when `floor(j/half) >= floor(i/half) - 1`.
        window: width of a sliding window in tokens, the query's own included, or None.

    >>> Visibility(bca=2).sees(5, 1), Visibility(bca=2).sees(5, 2), Visibility(window=3).sees(5, 2)
    (False, True, False)
    """

    bca: int | None = None
    window: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("bca", self.bca), ("window", self.window)):
            if value is not None and (not isinstance(value, int) or value < 1):
                raise refused(f"{name} {value!r}: accepted is a whole number of tokens from 1")

    def sees(self, query: Any, key: Any) -> Any:
        """Whether the query at a position sees the key at another; arrays broadcast."""
        seen = key <= query
        if self.bca is not None:
            seen = seen & (key // self.bca >= query // self.bca - 1)
        if self.window is not None:
            seen = seen & (query - key < self.window)
        return seen

    def within(self, window: int | None) -> Visibility:
        """The same, with a sliding window; None for none.

        >>> Visibility(window=8).within(4), Visibility(bca=2).within(None)
        (Visibility(bca=None, window=4), Visibility(bca=2, window=None))
        """
        if window is None or (self.window is not None and self.window <= window):
            return self
        return dataclasses.replace(self, window=window)

    def first(self, query: int) -> int:
        """The first position that the query at this position sees."""
        from_block = 0 if self.bca is None else (query // self.bca - 1) * self.bca
        from_window = 0 if self.window is None else query - self.window + 1
        return max(0, from_block, from_window)

    def sink_tokens(self) -> int:
        """How many of the first keys every query sees."""
        return 0

    def __str__(self) -> str:
        parts = [f"{f.name} {v}" for f in dataclasses.fields(self) if (v := getattr(self, f.name))]
        return ", ".join(parts) or "causal"


@dataclass(frozen=True)
class WithSinks(Visibility):
    """A sliding window and the first keys.

    Args:
        sinks: how many of the first keys, at most as many as the window.
        reach: keys that a query sees at most, first keys included, as a layer has it; None for
            all before it.

    >>> view = WithSinks(window=3, sinks=1)
    >>> view.sees(9, 0), view.sees(9, 6), view.within(5).sees(9, 0)
    (True, False, False)
    """

    sinks: int = 0
    reach: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window is None or not 0 <= self.sinks <= self.window:
            raise refused(
                f"sinks {self.sinks} with a window of {self.window} keys; accepted are at most as "
                "many as the window"
            )

    def sees(self, query: Any, key: Any) -> Any:
        """Whether the query at a position sees the key at another; arrays broadcast."""
        seen = super().sees(query, key) | ((key <= query) & (key < self.sinks))
        return seen if self.reach is None else seen & (query - key < self.reach)

    def within(self, window: int | None) -> Visibility:
        """The same, as a layer with a sliding window of its own sees it."""
        if window is None:
            return self
        assert self.window is not None
        if window <= self.window:
            return Visibility(self.bca, window)
        return dataclasses.replace(self, reach=window)

    def sink_tokens(self) -> int:
        """How many of the first keys every query sees."""
        return self.sinks


CAUSAL = Visibility()


def refused(message: str) -> ValueError:
    """An InputError; a ValueError where the files of the model are used without farfield."""
    try:
        from farfield.theory.answers.errors import InputError
    except ImportError:
        return ValueError(message)
    return InputError(message)
