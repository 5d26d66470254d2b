"""How one layer treats positions, its bias apart; Python alone, as the model's file needs."""

from __future__ import annotations

import math
from dataclasses import dataclass


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

    def at(self, keys: int, trained: int) -> float:
        """The factor at inference for a query that sees so many keys; `trained` is the training
        length.

        >>> Scale().at(4096, 64), Scale(when="training").at(4096, 64)
        (2.0, 1.0)
        """
        length = self.length or trained
        if self.when == "training":
            return 1.0
        if self.form == "log":
            found = math.log(keys) / math.log(length)
            return max(1.0, found) if self.when == "inference" else found
        return 1 + self.a * math.log(1 + keys // length)


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
