"""Which keys a query sees: everything before it, a window, first keys, or blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from farfield.theory.answers.errors import refuse


@dataclass(frozen=True)
class Mask:
    """Which keys a query sees: causal, and within all that is set.

    Args:
        window: keys of a sliding window, the query's own included.
        bca: `half` of blockwise causal attention [S, 3.3]: query `i` sees the keys of its own block
            of this many tokens, and of the block before.
        sinks: first keys that every query sees although a window ends before them.
        reach: keys that a query sees at most, the `sinks` included: a layer's own window.

    >>> Mask(window=3).sees(5, 2), Mask(window=3, sinks=1).sees(5, 0), Mask(bca=2).sees(5, 2)
    (False, True, True)
    """

    window: int | None = None
    bca: int | None = None
    sinks: int = 0
    reach: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("window", self.window), ("bca", self.bca)):
            refuse(
                value is not None and value < 1,
                f"{name} {value}: accepted is a whole number of tokens from 1",
            )
        refuse(
            self.sinks < 0 or (self.sinks > 0 and self.window is None),
            f"sinks {self.sinks} with window {self.window}: accepted are 0 or more beside a window",
        )

    def __str__(self) -> str:
        parts = [f"window {self.window}"] * (self.window is not None)
        parts += [f"{self.sinks} first keys"] * (self.sinks > 0)
        return ", ".join(parts + [f"bca {self.bca}"] * (self.bca is not None))

    def sees(self, i: Any, j: Any) -> Any:
        """Whether the query at `i` sees the key at `j`; arrays and tensors broadcast."""
        near = j <= i
        if self.window is not None:
            near = near & (i - j < self.window)
        if self.sinks:
            near = near | ((j <= i) & (j < self.sinks))
        if self.reach is not None:
            near = near & (i - j < self.reach)
        return near if self.bca is None else near & (j // self.bca >= i // self.bca - 1)

    def first(self, i: int) -> int:
        """The first key that the query at `i` sees, the `sinks` apart."""
        by_block = 0 if self.bca is None else (i // self.bca - 1) * self.bca
        by_window = 0 if self.window is None else i - self.window + 1
        return max(0, by_block, by_window)

    def within(self, window: int | None) -> Mask:
        """The same in a layer whose own window is so wide.

        >>> Mask(bca=4).within(3) == Mask(window=3, bca=4), Mask(window=2).within(3).window
        (True, 2)
        """
        if window is None or window >= (self.window or math.inf):
            return replace(self, reach=window) if self.sinks else self
        return Mask(window, self.bca)


CAUSAL = Mask()
