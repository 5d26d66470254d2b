"""What a far passage is worth: targets whose last tokens stood before, far back.

A target is *marked* where the tokens just before it, `BYTES` or `WORDS` of them, stood before in
the text, and nearest so beyond the short row. No model decides that. Marked targets are read four
times:

    near       their short row alone
    placed     the short row at the end of N positions, behind the first row of the text
    diluted    with far keys at all other positions, none of a row that holds the passage
    whole      with the passage in its place as well

    positions = placed - near     dilution = diluted - placed     text = diluted - whole

What marked targets lose in rows of N tokens is positions + dilution - text.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from farfield.theory.answers.blocks import Block, sentence, table
from farfield.theory.answers.number import plural
from farfield.validation.far_field.intervals import mean_and_half
from farfield.validation.far_field.long_rows import Stages
from farfield.validation.far_field.model_on_text import ModelOnText
from farfield.validation.harness.measure import nats_of

BYTES, WORDS = 8, 4
"""Tokens that have to stand before a target and farther back: of bytes, of longer tokens."""
MOST = 16
"""Passages of a group that are read."""


class Passage(NamedTuple):
    """A passage far back, and targets of one row whose last tokens stood there.

    Fields:
        group, row: which row.
        begin, end: of the passage, places in the text.
        targets: their places among the last targets of the row.
    """

    group: int
    row: int
    begin: int
    end: int
    targets: tuple[int, ...]


@dataclass(frozen=True)
class Worth:
    """Three parts of the loss at marked targets in rows of some length, in nats.

    Fields:
        length: tokens of the row.
        marked, targets: how many marked targets were read, of how many targets.
        positions: what positions alone cost; the mean, and half of its 95 % interval over groups.
        dilution: what far keys at all other positions cost.
        text: what the passage in its place gives.
        others: what the targets that are not marked lose, by one stage.
    """

    length: int
    marked: int
    targets: int
    positions: tuple[float, float]
    dilution: tuple[float, float]
    text: tuple[float, float]
    others: float

    def table(self) -> Iterator[Block]:
        """The answer in a sentence, and the parts."""
        mean, half = self.text
        known = f"{'gives' if mean > 0 else 'costs'} {abs(mean):.2g} nats"
        yield sentence(
            "{marked}, of {targets}, repeat a passage far back, which {worth}.",
            marked=plural(self.marked, "target"),
            targets=self.targets,
            worth=known if abs(mean) > half else "is not shown to be worth anything",
        )
        parts = {
            "what positions cost": self.positions,
            "what dilution costs": self.dilution,
            "what far text gives": (-mean, half),
        }
        rows = [(name, f"{x:+.3f} ± {half:.3f}") for name, (x, half) in parts.items()]
        total = self.positions[0] + self.dilution[0] - mean
        rows += [("marked targets lose", f"{total:+.3f}"), ("others lose", f"{self.others:+.3f}")]
        yield table(("at marked targets", "nats"), rows, numeric=(1,))


def passages(
    text: np.ndarray, starts: Sequence[int], rows: int, row: int, last: int, to: int
) -> list[Passage]:
    """Marked targets of each row but the first of its group, with the passage of each.

    The nearest occurrence counts, if the half row around it lies before the target's row and behind
    the first row.

    Args:
        text: one-dimensional.
        starts: where groups begin.
        rows: of a group.
        row: tokens of a row.
        last: targets at the end of each.
        to: tokens of the long row, which ends with the row of the target.

    >>> text = np.arange(80)
    >>> text[54:66] = text[20:32]
    >>> passages(text, [0], 4, 16, 4, 64)
    [Passage(group=0, row=3, begin=24, end=34, targets=(1, 2, 3))]
    """
    context, around = BYTES if int(text.max()) < 256 else WORDS, row // 4
    found = list[Passage]()
    for group, r in itertools.product(range(len(starts)), range(1, rows)):
        end = int(starts[group]) + (r + 1) * row
        first = max(0, end - to + row)
        windows = np.lib.stride_tricks.sliding_window_view(text[first:end], context)
        places = dict[int, list[int]]()
        for place, target in enumerate(range(end - last + 1, end + 1)):
            before = windows[: target - context - first]
            at = np.nonzero((before == text[target - context : target]).all(1))[0]
            if len(at):
                places.setdefault(target - context - first - int(at[-1]), []).append(place)
        for distance, each in places.items():
            begin, stop = (end - last + 1 + x - distance for x in (each[0], each[-1]))
            if first <= begin - around and begin + around <= end - row:
                last_one = min(stop + around, end - row)
                found.append(Passage(group, r, begin - around, last_one, tuple(each)))
    return found


class WorthReadings(NamedTuple):
    """Nats of the marked targets of a group by each reading, and nats of all last targets of its
    rows by one stage, (rows, last)."""

    near: Tensor
    placed: Tensor
    diluted: Tensor
    whole: Tensor
    stage: Tensor


def readings(
    stages: Stages, text: np.ndarray, start: int, found: Sequence[Passage], to: int
) -> WorthReadings:
    """The four readings of the marked targets of one group.

    Args:
        stages: of the group, with no stage done.
        text: that the group stands in.
        start: where the group begins.
        found: its passages, at least one.
        to: tokens of the long row.
    """
    row, ends = stages.row, [stages.row, to]

    def read(passage: Passage, *, placed: bool) -> Tensor:
        end = start + (passage.row + 1) * row
        tokens, positions = stages.tokens[passage.row], torch.arange(to - row, to)
        if placed:
            far = torch.from_numpy(text[passage.begin : passage.end].astype(np.int64))
            tokens = torch.cat([far, tokens])
            positions = torch.cat([to - end + torch.arange(passage.begin, passage.end), positions])
        asked = len(positions) - stages.last + torch.tensor(passage.targets)
        rows = range((passage.begin - start) // row, (passage.end - 1 - start) // row + 1)
        hidden = torch.tensor([[passage.row, *rows]])
        scores = stages.blocks(tokens[None, :-1], positions, asked, ends, hidden)
        return nats_of(scores, tokens[None, asked + 1].to(scores.device))[0].cpu()

    alone = [read(x, placed=False) for x in found]
    stage = stages.stage(1, ends)
    return WorthReadings(
        near=torch.cat([stages.plain()[x.row][list(x.targets)] for x in found]),
        placed=torch.cat(alone),
        diluted=torch.cat([read(x, placed=False) for x in found]),
        whole=torch.cat([read(x, placed=True) for x in found]),
        stage=stage,
    )


def worth(subject: ModelOnText, to: int) -> Worth | None:
    """What far text gives to a model in rows of `to` tokens; None where fewer than two groups have
    a marked target."""
    how, row, text = subject.settings, subject.length, subject.text
    found = passages(text, subject.starts, how.rows, row, how.last, to)
    means, others, count = list[list[float]](), list[Tensor](), 0
    for g, start in enumerate(subject.starts):
        marked = [x for x in found if x.group == g]
        if not marked:
            continue
        marked = marked[:: math.ceil(len(marked) / MOST)]
        sampling, tokens = replace(how.check, seed=how.check.seed + g), subject.groups[g]
        stages = Stages(
            subject.network, tokens, how.last, sampling, bos=subject.bos, begun=subject.begun[g]
        )
        each = readings(stages, text, start, marked, to)
        near, placed, diluted, whole = (float(x.mean()) for x in each[:4])
        means.append([placed - near, diluted - placed, diluted - whole])
        count += len(each.near)
        plain = torch.ones_like(each.stage, dtype=torch.bool)
        for x in marked:
            plain[x.row, list(x.targets)] = False
        others.append((each.stage - stages.plain())[1:][plain[1:]])
    if len(means) < 2:
        return None
    positions, dilution, given = (mean_and_half(x) for x in np.transpose(means))
    return Worth(
        length=to,
        marked=count,
        targets=subject.base.numel(),
        positions=positions,
        dilution=dilution,
        text=given,
        others=float(torch.cat(others).mean()),
    )
