"""How a change scores beside another: shares of needles, sign tests, losses; their order.

Right answers decide. A change is advised over another one on two conditions. A sign test over the
needles that only one of them recalls prefers it. By the same test, no band within the training
length is lost. Log probabilities of wrong answers decide nothing: below chance they count as
chance, and they order changes that recall as many needles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest, norm

from farfield.validation.far_field.recall import Band, NeedleScore, bands

COST = 0.05
"""Nats up to which a loss counts as nothing."""
LEVEL = 0.05
"""Of the sign test, two sides."""
BUDGET = 0.1
"""Nats above the best loss at which a change is given up."""


@dataclass(frozen=True)
class Share:
    """Right answers among some needles.

    Fields:
        right, asked: needles.
        low, high: the 95 % interval of their share, by Wilson, with as many needles as they are
            worth where rows differ by more than needles within a row do.
    """

    right: int
    asked: int
    low: float
    high: float


def share(scores: Sequence[NeedleScore]) -> Share | None:
    """The share of right answers; None without needles.

    >>> share([NeedleScore("city", 9, -1.0, k < 5, row=k % 2) for k in range(10)]).high
    0.763...
    """
    if not scores:
        return None
    asked, right = len(scores), sum(score.right for score in scores)
    p, z = right / asked, float(norm.ppf(0.975))
    rows = [np.array([s.right for s in scores if s.row == r]) for r in {s.row for s in scores}]
    chance = p * (1 - p) / asked
    apart = float(sum(((x - p).sum() / asked) ** 2 for x in rows))
    between = apart * len(rows) / max(1, len(rows) - 1)
    worth = asked / max(1.0, between / chance) if chance else asked
    middle, width = p + z * z / (2 * worth), p * (1 - p) / worth + z * z / (4 * worth * worth)
    low, high = ((middle + side * z * math.sqrt(width)) / (1 + z * z / worth) for side in (-1, 1))
    return Share(right, asked, max(0.0, low), min(1.0, high))


@dataclass(frozen=True)
class Pairs:
    """Needles that only one of two changes recalls.

    Fields:
        first, second: how many.
        p: of the sign test, two sides.
    """

    first: int
    second: int

    @property
    def p(self) -> float:
        each = self.first + self.second
        return float(binomtest(self.first, each).pvalue) if each else 1.0

    @property
    def better(self) -> bool:
        """Whether the first is shown to recall more."""
        return self.first > self.second and self.p < LEVEL


def pairs(first: Sequence[NeedleScore], second: Sequence[NeedleScore]) -> Pairs:
    """The needles of two changes, compared one by one.

    >>> some = [NeedleScore("city", 9, -1.0, True)] * 6
    >>> pairs(some, [score._replace(right=False) for score in some]).p
    0.03125
    """
    each = [(a.right, b.right) for a, b in zip(first, second, strict=True)]
    return Pairs(sum(a and not b for a, b in each), sum(b and not a for a, b in each))


def lost(
    first: Sequence[NeedleScore], second: Sequence[NeedleScore], trained: int, to: int
) -> Band | None:
    """A band within the training length in which the first is shown to recall less; None if there
    is none. All that lies within the training length is such a band too."""
    near = [band for band in bands(trained, to) if band.trained]
    whole = Band(0, min(trained, to), True)
    return next((b for b in (*near, whole) if pairs(b.of(second), b.of(first)).better), None)


def advised(
    first: Sequence[NeedleScore], second: Sequence[NeedleScore], trained: int, to: int
) -> bool:
    """Whether the first change is advised over the second by the same needles."""
    return pairs(first, second).better and lost(first, second, trained, to) is None


def order(scores: Sequence[NeedleScore]) -> tuple[int, float]:
    """What changes are put in order by: right answers, then log probabilities over chance."""
    return sum(score.right for score in scores), sum(score.gain for score in scores)


# -- lines of a table ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mended:
    """A change and its readings.

    Fields:
        repair: in words.
        log_ratio: forecast at `to`, to the unchanged model on short rows; None where it was not
            asked, as a window by the gap probe.
        short: log ratio on short rows themselves, what the change costs there; None where it was
            not asked.
        trained: log ratio at the training length to the unchanged model there, by the gap probe;
            None where no setting changes, or it was not asked.
        keys: that a query sees at most.
        mib: MiB that they take in the cache, at 16 bits a number.
        recall: needles by forecast, one entry a needle; empty where they were not asked.
        measured: log ratio on real rows with half its 95 % interval; None where none was read.
        real: needles of real rows.
        difference: loss less that of the cut text, or of no change where no text is cut, on the
            same rows, with half its 95 % interval, which one row has not.
        rows: how many were read.
    """

    repair: str
    log_ratio: float | None
    short: float | None
    trained: float | None
    keys: int
    mib: float
    recall: tuple[NeedleScore, ...] = ()
    measured: tuple[float, float | None] | None = None
    real: tuple[NeedleScore, ...] = ()
    difference: tuple[float, float | None] | None = None
    rows: int = 0

    @property
    def cuts(self) -> bool:
        """Whether it cuts the text."""
        return self.repair.startswith("text cut")

    @property
    def dear(self) -> bool:
        """Whether its loss on the same rows lies more than `BUDGET` above the base."""
        return self.difference is not None and self.difference[0] > BUDGET

    @property
    def needles(self) -> tuple[NeedleScore, ...]:
        """Measured where they are."""
        return self.real or self.recall

    @property
    def loss(self) -> float | None:
        """Log ratio, measured where it is."""
        return self.log_ratio if self.measured is None else self.measured[0]


def same(one: Mended, other: Mended) -> tuple[list[NeedleScore], list[NeedleScore]]:
    """The needles of rows that both were read with."""
    rows = {n.row for n in one.needles} & {n.row for n in other.needles}
    first, second = ([n for n in x.needles if n.row in rows] for x in (one, other))
    return first, second


def paired(one: Mended, other: Mended) -> Pairs:
    """The needles of the same rows, compared one by one."""
    return pairs(*same(one, other))


def rank(row: Mended, by_recall: bool) -> tuple[float, ...]:
    """What changes are put in order by: those that were read first, by the share of right answers
    where a text can be cut and the loss is within the budget, else by loss."""
    loss = row.difference[0] if row.difference else 0.0 if row.rows else row.loss
    least = math.inf if loss is None else loss
    if not by_recall or not row.needles:
        return 2.0 * (not row.rows), least, 0.0
    right, gain = order(row.needles)
    return float(row.dear), -right / len(row.needles), -gain


def shown_below(difference: tuple[float, float | None] | None) -> bool:
    """Whether a paired interval lies below 0."""
    mean, half = difference or (0.0, None)
    return half is not None and mean + half < 0


def holds(own: Mended, cut: Mended, trained: int, to: int) -> bool:
    """Whether the unchanged model does not break: by loss, and by needles of every band."""
    mine, theirs = same(own, cut)
    loss = own.difference[0] if own.difference else math.inf
    return loss <= COST and not pairs(theirs, mine).better and not lost(mine, theirs, trained, to)
