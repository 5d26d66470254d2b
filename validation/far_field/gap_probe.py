"""The gap probe: what far positions alone cost a model, from short rows.

A row of `T` tokens keeps its text. Its first half stands at positions `0 .. T/2 - 1`, its second
half at the end of a row of `N` tokens, at `N - T/2 .. N - 1`. The loss at its end, less the loss
where the first half is left out, is the price of positions alone: a far text that cannot be read
should cost nothing. The probe sees neither dilution nor the worth of a longer text.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from farfield.theory.answers.answer import Answer, Label
from farfield.theory.answers.blocks import Block, note, sentence, table
from farfield.theory.answers.errors import refuse
from farfield.theory.answers.number import plural
from farfield.validation.far_field.change_scores import COST
from farfield.validation.far_field.cost import timed
from farfield.validation.far_field.intervals import mean_and_half
from farfield.validation.far_field.long_rows import Sampling
from farfield.validation.far_field.model_on_text import QUICK, reach_of, subject_of
from farfield.validation.models.network import Network, nats, scores_at
from farfield.validation.models.speed import lasting
from farfield.validation.progress import Progress, silent
from farfield.validation.uniform_guess import warned

_STEP = 1.1  # how near the two lengths lie between which a model breaks


@dataclass(frozen=True)
class Gap:
    """What positions cost at one length.

    Fields:
        length: of the row that positions are those of, in tokens.
        cost: nats by which the loss rises, mean over rows.
        low, high: its 95 % interval over rows.
    """

    length: int
    cost: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class GapProbe(Answer):
    """What positions alone cost at each length; see `probe`.

    Fields:
        gaps: one entry a length.
        holds: the longest length at which positions cost at most `COST`.
        breaks: the shortest at which they cost more; None if none does.
        row, rows: tokens of a row, and how many.
        loss: at the end of the rows without their first half, in nats.
        guess: what is said of a model that has not learned.
        label: `forecast`.
    """

    VALUE: ClassVar[str] = "breaks"

    gaps: tuple[Gap, ...]
    holds: int
    breaks: int | None
    row: int
    rows: int
    loss: float
    guess: str = ""

    def blocks(self) -> Sequence[Block]:
        dear = [g for g in self.gaps if self.breaks is not None and g.length >= self.breaks]
        return (
            sentence(
                "Positions alone cost nothing up to {holds} tokens{dear}.",
                self.label,
                holds=f"{self.holds:,}",
                dear="".join(f"; {g.cost:+.2f} nats at {g.length:,}" for g in dear),
            ),
            *warned(self.guess),
            table(
                ("positions of a row of", "cost in nats", "95 %"),
                [(g.length, f"{g.cost:+.3f}", f"{g.low:+.3f} to {g.high:+.3f}") for g in self.gaps],
                numeric=(0, 1),
            ),
            note(
                "{rows} of {row} tokens, the second half of each moved to the end; by itself "
                "its loss is {loss} nats. Costs up to {cost} count as nothing.",
                rows=plural(self.rows, "row"),
                row=self.row,
                loss=f"{self.loss:.3f}",
                cost=COST,
            ),
        )


def gap_probe(
    model: Any,
    text: Any = None,
    *,
    to: Any,
    length: Any = None,
    device: Any = None,
    dtype: Any = None,
    progress: Progress = silent,
) -> GapProbe:
    """What positions alone cost a model, up to `to` tokens: the first answer, within seconds.

    Args:
        model: a folder, a GGUF file, a name in the hub's cache, or a model of the library.
        text: a file or a folder, as of `foresee`.
        to: the longest row; each doubling up to it is asked, and lengths where costs begin.
        length: tokens of the rows that are read, as of `foresee`.
        device: of torch, as of `mend`.
        dtype: of the weights, as of `mend`.
        progress: called as `progress(stage, done, total, note)`; the note is the newest number.

    Raises:
        InputError: as `foresee`.
    """
    subject = subject_of(model, text, length, QUICK, device, dtype)
    lengths = Sampling().ends(subject.length, reach_of(subject, to))[1:]
    row, rows = subject.length, len(subject.groups)
    lasts = rows * (len(lengths) + 1) * timed(subject).of(row, row**2 / 2)
    said = f"{rows} rows of {row} tokens at each of {len(lengths)} lengths, more where costs begin"
    progress(subject.first(f"about {lasting(lasts)}: {said}"), 0, 0)
    report = functools.partial(progress, "positions")
    gaps = probe(subject.network, subject.groups[:, 0], lengths, report)
    return replace(gaps, subject=subject.outline.name, guess=subject.guess)


def probe(
    network: Network,
    rows: Tensor,
    lengths: Sequence[int],
    report: Callable[[int, int, str], None] = lambda done, total, note: None,
) -> GapProbe:
    """What positions alone cost at some lengths.

    Args:
        network: whose queries and keys can be had at positions of one's own choice.
        rows: (rows, T + 1) tokens, with the last target; at least 2 rows.
        lengths: each at least `T`. Where one costs more than `COST`, lengths between it and the one
            before it are asked as well, until two lie within a tenth; a cost that rises with the
            length is supposed.
        report: told how many lengths are done, of how many, and the newest cost in words.

    Raises:
        InputError: one row; lengths below `T`.
    """
    row = rows.shape[1] - 1
    refuse(len(rows) < 2, "the probe takes two rows or more, not one")
    refuse(min(lengths, default=0) < row, f"lengths must be at least those of the rows, {row}")
    second, gaps = rows[:, row // 2 :], dict[int, Gap]()
    alone = scores_at(network, second[:, :-1], torch.arange(row - row // 2), row // 4)
    base = nats(alone, second)

    def ask(length: int) -> Gap:
        if length not in gaps:
            costs = (gap_losses(network, rows, length) - base).mean(1)
            mean, half = mean_and_half(costs.numpy())
            gaps[length] = Gap(length, mean, mean - half, mean + half)
            report(len(gaps), max(len(lengths), len(gaps)), f"{mean:+.3f} nats at {length:,}")
        return gaps[length]

    holds, breaks = row, None
    for length in sorted({*lengths}):
        if ask(length).cost > COST and breaks is None:
            breaks = length
        holds = length if breaks is None else holds
    while breaks is not None and breaks > _STEP * holds:
        middle = round(math.sqrt(holds * breaks) / 64) * 64
        if not holds < middle < breaks:
            break
        holds, breaks = (holds, middle) if ask(middle).cost > COST else (middle, breaks)
    each = tuple(gaps[n] for n in sorted(gaps))
    loss = float(base.mean())
    return GapProbe(each, holds, breaks, row, len(rows), loss, label=Label.FORECAST)


def gap_losses(network: Network, rows: Tensor, length: int) -> Tensor:
    """Nats at the end of rows whose second half is moved to the end of this many positions.

    Args:
        network: whose positions are moved.
        rows: (rows, T + 1).
        length: at least `T`; at `T` nothing moves.

    Returns:
        Of the last quarter of each row, shape (rows, T / 4), in float64.
    """
    row = rows.shape[1] - 1
    near, far = torch.arange(row // 2), torch.arange(length - row + row // 2, length)
    return nats(scores_at(network, rows[:, :-1], torch.cat([near, far]), row // 4), rows)
