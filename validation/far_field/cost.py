"""What is cheaper: to read long rows, or to foresee them? Seconds of each, by tokens and pairs.

Seconds follow from the speed of one short row. Rows that do not fit into memory are not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from farfield.validation.far_field.long_rows import Sampling
from farfield.validation.far_field.model_on_text import ModelOnText
from farfield.validation.far_field.recall import BLOCK, MOST, part_of, roomy
from farfield.validation.models import speed
from farfield.validation.models.network import scores_at
from farfield.validation.models.repairs import Repair
from farfield.validation.models.speed import Work

ROWS = 8
"""Long rows, whose time a search takes where nothing else is asked."""


class SearchSeconds(NamedTuple):
    """Seconds of a search: of a row under a change, of one under the base, of a row's further ends,
    and of what is read before the first round."""

    row: float
    base: float
    end: float = 0.0
    before: float = 0.0

    def of(self, rows: int, first: int, rounds: int) -> float:
        """Of some rows, where the first round reads so many changes beside the base, and each
        later one reads one."""
        each = (self.row + self.end) * (first + rounds - 1) + (self.base + self.end) * rounds
        return self.before + each * rows / rounds - self.end * (first + 1)  # the first has one end


def real(work: Work, repair: Repair, to: int) -> float:
    """Seconds of a real row under a change."""
    n = min(repair.cut or to, to)
    return work.of(n, n * repair.keys(to) / (1 if repair.window else 2))


def further(work: Work, row: int, to: int) -> float:
    """Seconds of a further end of a real row, 0 where there is no room for one."""
    size = 3 * BLOCK // 2 if roomy(row, to) else 0
    return work.of(size, size * to)


def probed(work: Work, row: int) -> float:
    """Seconds of needles by the probe, and of the loss of one short row."""
    places = _places(row)
    return work.of(places + row, places**2 / 2 + row**2 / 2)


def foreseen(work: Work, row: int, rows: int, samples: int) -> float:
    """Seconds of a group of rows in one stage, with the needles of one row."""
    places, far = _places(row), row + samples
    plain, stage = rows * row * row / 2, rows * row * (row * 3 / 2 + far)
    return work.of(2 * rows * row + places, plain + stage + places * (places / 2 + far))


def staged(subject: ModelOnText, lengths: Sequence[int], sampling: Sampling) -> tuple[int, int]:
    """Tokens of a target row, and its queries times keys, in all stages to some lengths."""
    row, waiting = subject.length, {*lengths}
    most = min(sampling.samples, row * (subject.settings.rows - 1))
    tokens, pairs = row, row * row
    while waiting:
        ends = sampling.ends(row, max(waiting))
        tokens += row * (len(ends) - 1)
        pairs += sum(row * (3 * row + s * most) for s in range(1, len(ends)))
        waiting -= {*ends}
    return tokens, pairs


def _places(row: int) -> int:
    """Tokens of a row with needles that are read by the probe."""
    return 2 * min(row, BLOCK) + MOST * part_of(min(row, BLOCK))


def timed(subject: ModelOnText) -> Work:
    """A model's work, its speed by one short row on its device."""
    row = subject.groups[0, :1, :-1]

    def read(tokens: int) -> None:
        scores_at(subject.network, row[:, :tokens], torch.arange(tokens), 1).cpu()

    return speed.timed(subject.outline, subject.live, read, row.shape[1])
