"""How a layer treats positions, its bias apart: rotation, scale, window, and the keys that it sees.

The model's file needs this one: it is Python alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any


@dataclass(frozen=True)
class Visibility:
    """Which of the earlier keys a query sees at inference.

    Args:
        bca: `half` of blockwise causal attention [S, 3.3] in tokens, or None. Positions count
            from 0; key `j` is visible to query `i` when `floor(j/half) >= floor(i/half) - 1`.
        window: width of a sliding window in tokens, the query's own included, or None.
        sinks: how many of the first keys every query sees besides, at most as many as the window.
        reach: keys that a query sees at most, first keys included, as a layer has it; None for
            all before it.

    >>> Visibility(bca=2).sees(5, 1), Visibility(bca=2).sees(5, 2), Visibility(window=3).sees(5, 2)
    (False, True, False)
    >>> view = Visibility(window=3, sinks=1)
    >>> view.sees(9, 0), view.sees(9, 6), view.within(5).sees(9, 0)
    (True, False, False)
    """

    bca: int | None = None
    window: int | None = None
    sinks: int = field(default=0, repr=False)
    reach: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, value in (("bca", self.bca), ("window", self.window)):
            if value is not None and (not isinstance(value, int) or value < 1):
                raise refused(f"{name} {value!r}: accepted is a whole number of tokens from 1")
        if not 0 <= self.sinks <= (self.window or 0):
            raise refused(
                f"sinks {self.sinks} with a window of {self.window} keys; accepted are at most as "
                "many as the window"
            )

    def sees(self, query: Any, key: Any) -> Any:
        """Whether the query at a position sees the key at another; arrays broadcast."""
        seen = key <= query
        if self.bca is not None:
            seen = seen & (key // self.bca >= query // self.bca - 1)
        if self.window is not None:
            seen = seen & (query - key < self.window)
        if self.sinks:
            seen = seen | ((key <= query) & (key < self.sinks))
        return seen if self.reach is None else seen & (query - key < self.reach)

    def within(self, window: int | None) -> Visibility:
        """The same, as a layer with a sliding window of its own sees it; None for no window.

        >>> Visibility(window=8).within(4), Visibility(bca=2).within(None)
        (Visibility(bca=None, window=4), Visibility(bca=2, window=None))
        """
        if window is None:
            return self
        if self.window is not None and window > self.window:
            return replace(self, reach=window) if self.sinks else self
        return Visibility(self.bca, window)

    def first(self, query: int) -> int:
        """The first position that the query at this position sees, the first keys apart."""
        from_block = 0 if self.bca is None else (query // self.bca - 1) * self.bca
        from_window = 0 if self.window is None else query - self.window + 1
        return max(0, from_block, from_window)

    def described(self) -> dict[str, int | None]:
        """In JSON form: block and window, and the others where there are any."""
        said = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: v for name, v in said.items() if v or name in ("bca", "window")}

    def __str__(self) -> str:
        parts = [f"{name} {value}" for name, value in self.described().items() if value]
        return ", ".join(parts) or "causal"


CAUSAL = Visibility()


@dataclass(frozen=True)
class Turn:
    """A rotation of queries and keys.

    Args:
        share: of the head size that turns, above 0 to 1; the first dimensions do.
        base: pair `i` of `r/2` turns by `base^(-2i/r)` a token, `r` the dimensions that turn.
        scaling: positions are divided by it, from 1.
        decay: xPos's scaling of queries and keys as well [S, Algorithm 1].
    """

    share: float = 1.0
    base: float = 10000.0
    scaling: float = 1.0
    decay: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1 or not 1 < self.base < math.inf or not self.scaling >= 1:
            raise ValueError(
                f"share {self.share:g}, base {self.base:g}, scaling {self.scaling:g}: accepted are "
                "a share above 0 to 1, a base above 1, a scaling from 1"
            )


@dataclass(frozen=True)
class Scale:
    """A factor of the content logits that grows with the keys `N` of a row up to the query.

    Args:
        form: `log` for `log N / log L`, `1 + a log` for `1 + a log(1 + floor(N / L))`.
        a: of the second form, above 0.
        length: `L` in tokens, from 2; None for the training length.
        when: `both`, `training` or `inference`; the factor is 1 otherwise. At inference alone,
            rows to `L` keep the logits that they were trained with: the factor is at least 1.
        heads: those that are scaled, counted from 1; none given takes all.
    """

    form: str = "log"
    a: float = 0.1
    length: int | None = None
    when: str = "both"
    heads: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name, accepted in (
            ("form", ("log", "1 + a log")),
            ("when", ("both", "training", "inference")),
        ):
            if getattr(self, name) not in accepted:
                given = getattr(self, name)
                raise ValueError(f"{name} {given!r}: accepted: {', '.join(accepted)}")
        if not 0 < self.a < math.inf or (self.length is not None and self.length < 2):
            raise ValueError(
                f"a {self.a:g}, length {self.length}: accepted are an a above 0, a length from 2"
            )

    def at(
        self,
        keys: Any,
        trained: int = 0,
        training: bool = False,
        log: Callable[[Any], Any] = math.log,
        least: Callable[[float, Any], Any] = max,
    ) -> Any:
        """The factor for a query that sees so many keys.

        Args:
            keys: a number, or what `log` and `least` take.
            trained: the training length, where the scale has no length of its own.
            training: whether the model is in training, else at inference.
            log: of the keys.
            least: called with a bound and a factor, the larger of both.

        >>> Scale().at(4096, 64), Scale(when="training").at(4096, 64)
        (2.0, 1.0)
        """
        length = self.length or trained
        if self.when not in ("both", "training" if training else "inference"):
            return 1.0
        if self.form != "log":
            return 1 + self.a * log(1 + keys // length)
        found = log(keys) / math.log(length)
        return least(1.0, found) if self.when == "inference" else found


@dataclass(frozen=True)
class LayerMechanism:
    """How one layer attends.

    Args:
        biased: whether the layer has a bias; without one, queries and keys alone decide.
        turn: the rotation of queries and keys, None for none.
        window: keys that a query sees in training and at inference, its own included; None for
            all.
        sinks: whether each head learns a logit in the denominator, a key of value 0.
        scale: of the content logits, None for none.
    """

    biased: bool = False
    turn: Turn | None = None
    window: int | None = None
    sinks: bool = False
    scale: Scale | None = None


def refused(message: str) -> ValueError:
    """An InputError; a ValueError where the files of the model are used without farfield."""
    try:
        from farfield.theory.answers.errors import InputError
    except ImportError:
        return ValueError(message)
    return InputError(message)
