"""A number of tokens as far as it is known: the integer, bounds of its logarithm, or bounds."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from farfield.theory.answers.number import integer
from farfield.theory.answers.number import tokens as tokens_text


@dataclass(frozen=True)
class Exact:
    """The integer itself, certified by two ball comparisons."""

    tokens: int

    def text(self) -> str:
        """As a reader sees it."""
        return tokens_text(self.tokens)

    def logs(self) -> tuple[float, float]:
        """Lower and upper bound of log(1 + tokens), to order the heads."""
        return (math.log(1 + self.tokens),) * 2


@dataclass(frozen=True)
class Enclosure:
    """The logarithm of an integer beyond counting lies in [low, high]."""

    low: float
    high: float

    def text(self) -> str:
        """As a reader sees it."""
        return f"between exp({self.low!r}) and exp({self.high!r}) tokens"

    def logs(self) -> tuple[float, float]:
        """Lower and upper bound of log(1 + tokens)."""
        return self.low, self.high

    def span(self) -> tuple[float, float]:
        """Floats around it."""
        return min(_exp(self.low), sys.float_info.max), _exp(self.high)


@dataclass(frozen=True)
class Bracket:
    """The integer lies in [low, high]; `high` is None where no upper bound was reached."""

    low: int
    high: int | None

    def text(self) -> str:
        """As a reader sees it."""
        if self.high is None:
            return f"at least {tokens_text(self.low)}"
        return f"between {integer(self.low)} and {tokens_text(self.high)}"

    def span(self) -> tuple[float, float]:
        """Its ends."""
        return self.low, math.inf if self.high is None else self.high

    def logs(self) -> tuple[float, float]:
        """Lower and upper bound of log(1 + tokens)."""
        return math.log(1 + self.low), math.inf if self.high is None else math.log(1 + self.high)


Value = Exact | Enclosure | Bracket


def _exp(power: float) -> float:
    """exp in floats, infinite where it overflows."""
    return math.exp(power) if power < 700 else math.inf
