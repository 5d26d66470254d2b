"""What a row says of a change at inference: its loss and its needles.

A row is read whole, or foreseen by the far field in one stage, or by the gap probe alone. Every
number is written down as it is made.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
import torch
from torch import Tensor

from farfield.validation.far_field.gap_probe import gap_losses
from farfield.validation.far_field.long_rows import Stages
from farfield.validation.far_field.model_on_text import ModelOnText
from farfield.validation.far_field.recall import (
    BLOCK,
    KINDS,
    MOST,
    NeedleRow,
    NeedleScore,
    Told,
    distances,
    drawn,
    needle_row,
    part_of,
    recalled,
    roomy,
)
from farfield.validation.far_field.rotary import applied
from farfield.validation.harness.measure import led
from farfield.validation.json_files import Book
from farfield.validation.models.network import losses, scores_at
from farfield.validation.models.repairs import Repair, Repaired

TARGETS = 256  # of a real row
ENDS = 2
"""Of real rows but the first, each of which asks for as many needles."""
_APART = 48  # tokens from one needle of a real row to the next at least
_GOLDEN = (math.sqrt(5) - 1) / 2


class Way(StrEnum):
    """How a row is read."""

    REAL = "real rows"
    FAR = "far field"
    PROBE = "gap probe"


@dataclass(frozen=True)
class RowReading:
    """What one row says of a change: log ratio to the unchanged model on the short row of the same
    targets, and its needles."""

    loss: float
    needles: tuple[NeedleScore, ...]


@dataclass
class RowReadings:
    """What rows of a text say of changes of a model.

    Args:
        subject: the model and its text.
        to: tokens of a row.
        way: how rows are read.
        book: where numbers are kept.
        told: needles of the user's own; none given takes those of `recall`.
    """

    subject: ModelOnText
    to: int
    way: Way
    book: Book
    told: tuple[Told[str], ...] = ()
    rows: dict[int, NeedleRow] = field(default_factory=dict)
    plain: dict[tuple[int, int], Tensor] = field(default_factory=dict)

    @property
    def trained(self) -> int:
        """The training length."""
        return self.subject.outline.trained or self.subject.length

    def of(self, repair: Repair, row: int) -> RowReading:
        """What a row says, from the book where it stands there."""
        ask = {Way.REAL: self._real, Way.FAR: self._foreseen, Way.PROBE: self._near}[self.way]

        def made() -> list[float]:
            own = self._own(row)  # by the unchanged model
            with self._changed(repair) as network:
                loss, scores = ask(repair, network, row)
            return [
                loss - own,
                *(n.log_probability for n in scores),
                *(float(n.right) for n in scores),
            ]

        flat = self.book.of(f"{self.way}, row {row}: {repair.name}", made)
        loss, (logs, right) = flat[0], np.reshape(flat[1:], (2, -1)).tolist()
        each = zip(self._needles(row).needles, logs, right, strict=True)
        scores = (NeedleScore(n.kind, n.distance, p, bool(r), n.chance, row) for n, p, r in each)
        return RowReading(loss, tuple(scores))

    def gaps(self, repair: Repair) -> np.ndarray:
        """Log ratios by the gap probe at the length, (groups, targets); one group for real rows."""
        groups = len(self.subject.groups) if self.way is Way.PROBE else 1
        length = self.subject.length if repair.window else repair.cut or self.to

        flat = self.book.of(
            f"gap probe, {groups} rows: {repair.name}",
            lambda: self._over_plain(repair, groups, length, self.subject.length).ravel().tolist(),
        )
        return np.reshape(flat, (groups, -1))

    def within(self, repair: Repair, length: int) -> float:
        """The log ratio to the unchanged model at a length within the training length."""
        return self.book.of(
            f"at {length}: {repair.name}",
            lambda: [float(self._over_plain(repair, 1, length, length).mean())],
        )[0]

    def _needles(self, row: int) -> NeedleRow:
        """A row of the text with needles."""
        if row not in self.rows:
            self.rows[row] = self._needle_row(row)
        return self.rows[row]

    def _needle_row(self, row: int) -> NeedleRow:
        block, most, ends, part = min(self.subject.length, BLOCK), MOST, 1, None
        encode = self.subject.encode if block == BLOCK else None  # else no room for words
        if self.way is Way.REAL and roomy(block, self.to):
            # needles of a row that is read whole cost nothing, and all settings read the first one
            block, most, ends = 2 * block, 2 * most, ENDS if row else 1
        if encode is not None:
            told = self.told or drawn(len(KINDS), 0)
            asks = max(len(encode(f"{n.question} {n.answer}")) + 1 for n in told)
            most = min(most, 3 * block // (4 * asks))
            if block > BLOCK:
                stands = max(len(encode(f"\n{n.context}\n")) for n in told)
                part = min(part_of(block), max(_APART, 2 * stands))
        most = min(most * ends, (encode and len(self.told)) or most * ends)
        text = torch.from_numpy(self.subject.text.astype(np.int64))
        places = distances(block, self.to, self.trained, most, part)
        begin = begins(len(text) - self.to, row)
        return needle_row(encode, text[begin:], self.to, places, row, block, self.told, ends, part)

    @contextmanager
    def _changed(self, repair: Repair) -> Iterator[Repaired]:
        """The network under a change."""
        with applied(self.subject.live, repair):
            yield Repaired(self.subject.network, repair)

    def _own(self, row: int) -> float:
        """What a loss is compared with: of the same targets, in their short row."""
        if self.way is Way.FAR:
            return float(self.subject.base[row].mean())
        if self.way is Way.PROBE:  # which compares by itself
            return 0.0
        needles = self._needles(row)
        short = needles.tokens[needles.asks - self.subject.length - 1 : needles.asks][None]
        return self.book.of(
            f"short row {row}",
            lambda: [
                float(losses(self.subject.network, led(short, self.subject.bos), self._last).mean())
            ],
        )[0]

    @property
    def _last(self) -> int:
        """Targets of a real row."""
        return min(TARGETS, self.subject.length // 2)

    def _real(self, repair: Repair, network: Repaired, row: int) -> tuple[float, list[NeedleScore]]:
        """A real row, in one pass."""

        def read(tokens: Tensor, positions: Tensor, keep: Tensor) -> Tensor:
            return scores_at(network, led(tokens, self.subject.bos), positions, keep)

        needles = self._needles(row)
        nats, scores = recalled(needles, read, repair.cut, whole=True, last=self._last)
        return float(nats.mean()), scores

    def _near(self, repair: Repair, network: Repaired, row: int) -> tuple[float, list[NeedleScore]]:
        """A row by the gap probe."""
        _, scores = recalled(self._needles(row), functools.partial(scores_at, network), repair.cut)
        return float(self.gaps(repair)[row].mean()), scores

    def _foreseen(
        self, repair: Repair, network: Repaired, row: int
    ) -> tuple[float, list[NeedleScore]]:
        """A group of rows by the far field in one stage, with the needles of one row."""
        subject, ends = self.subject, [self.subject.length, repair.cut or self.to]
        rows, sampling = subject.groups[row], subject.settings.check
        drawn = replace(sampling, seed=sampling.seed + row)
        stages = Stages(network, rows, subject.settings.last, drawn, bos=subject.bos)
        near = stages.plain()[1:]
        loss = stages.stage(1, ends)[1:] if ends[1] > ends[0] else near
        read = functools.partial(stages.blocks, ends=ends)
        _, scores = recalled(self._needles(row), read, repair.cut)
        return float(loss.mean()), scores

    def _over_plain(self, repair: Repair, groups: int, length: int, own: int) -> Tensor:
        """Losses by the gap probe at a length, over those of the unchanged model at another one,
        which are computed once; (groups, targets)."""
        rows = self.subject.groups[:groups, 0]
        if (groups, own) not in self.plain:
            self.plain[groups, own] = gap_losses(self.subject.network, rows, own)
        with self._changed(repair) as network:
            return gap_losses(network, rows, length) - self.plain[groups, own]


def begins(free: int, row: int) -> int:
    """Where a row begins in a text with so many tokens more than a row: spread over it however many
    rows there are, so that a search with more time goes on with the same ones.

    >>> [begins(1000, row) for row in range(4)]
    [0, 618, 236, 854]
    """
    return int(row * _GOLDEN % 1 * max(0, free))
