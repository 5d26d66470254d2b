"""The gap probe: what far positions alone cost a model, from short rows.

A row of `T` tokens keeps its text. Its first half stands at positions `0 .. T/2 - 1`, its second
half at the end of a row of `N` tokens, at `N - T/2 .. N - 1`. The loss at its end, less the loss
where the first half is left out, is the price of positions alone: a far text that cannot be read
should cost nothing. The probe sees neither dilution nor the worth of a longer text.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from scipy.stats import t as student
from torch import Tensor
from torch.nn.functional import cross_entropy

from farfield.theory.answers.answer import Answer, Label
from farfield.theory.answers.blocks import Block, note, sentence, table
from farfield.theory.answers.errors import refuse
from farfield.theory.answers.number import natural, plural
from farfield.validation.far_field.stages import Sampling
from farfield.validation.models.folder import describe
from farfield.validation.models.layers import RUN
from farfield.validation.models.opened import open_model
from farfield.validation.models.text import text_of, tokenizer_of
from farfield.validation.progress import Progress, silent

COST = 0.05
"""Nats by which positions cost something."""
_STEP = 1.1  # how near the two lengths lie between which a model breaks


ROW = 1024
"""Tokens of a row of the probe."""

Encode = Callable[[str], Sequence[int]]
"""A text in tokens, without a first token."""


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
        label: `forecast`.
    """

    VALUE: ClassVar[str] = "breaks"

    gaps: tuple[Gap, ...]
    holds: int
    breaks: int | None
    row: int
    rows: int
    loss: float

    def blocks(self) -> Sequence[Block]:
        dear = [g for g in self.gaps if self.breaks is not None and g.length >= self.breaks]
        return (
            sentence(
                "Positions alone cost nothing up to {holds} tokens{dear}.",
                self.label,
                holds=f"{self.holds:,}",
                dear="".join(f"; {g.cost:+.2f} nats at {g.length:,}" for g in dear),
            ),
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
    rows: int = 4,
    progress: Progress = silent,
) -> GapProbe:
    """What positions alone cost a model of the library transformers, up to `to` tokens.

    Args:
        model: a folder, a GGUF file, a name in the hub's cache, or a model of the library.
        text: a file or a folder; None takes the source code of the standard library.
        to: the longest row; each doubling up to it is asked, and lengths where costs begin.
        rows: rows of 1,024 tokens that are read, spread over the text.
        progress: called as `progress(stage, done, total)`.

    Raises:
        InputError: `read_model`, `probe`; a text that is too short; `to` below 2,048.
    """
    far = natural(to, "to")
    refuse(far < 2 * ROW, f"to = {far}; accepted: {2 * ROW} or more")
    reading = read_model(model, text)
    found = probe(
        reading.network,
        spread_rows(reading.tokens, rows),
        Sampling().ends(ROW, far)[1:],
        lambda done, total: progress("positions", done, total),
    )
    return replace(found, subject=reading.name)


def spread_rows(tokens: Tensor, rows: int) -> Tensor:
    """Evenly spaced rows of a text, (rows, ROW + 1)."""
    refuse(
        len(tokens) <= rows * ROW,
        f"the text has {len(tokens)} tokens; {rows} rows of {ROW} need {rows * ROW + 1}",
    )
    starts = torch.linspace(0, len(tokens) - ROW - 1, rows).long().tolist()
    return torch.stack([tokens[start : start + ROW + 1] for start in starts])


def probe(
    network: Any,
    rows: Tensor,
    lengths: Sequence[int],
    report: Callable[[int, int], None] = lambda done, total: None,
) -> GapProbe:
    """What positions alone cost a model of the library at some lengths.

    Args:
        network: a causal language model of the library transformers, in evaluation mode.
        rows: (rows, T + 1) tokens, with the last target; `T` a multiple of 4, at least 2 rows.
        lengths: each at least `T`. Where one costs more than `COST`, lengths between it and the one
            before it are asked as well, until two lie within a tenth; a cost that rises with the
            length is supposed.
        report: told how many lengths are done, of how many.

    Raises:
        InputError: `require_positions`; one row; lengths below `T`.
    """
    row = rows.shape[1] - 1
    refuse(
        row % 4 or len(rows) < 2,
        f"the probe takes two rows or more of a multiple of 4 tokens, not {len(rows)} of {row}",
    )
    refuse(min(lengths, default=0) < row, f"lengths must be at least those of the rows, {row}")
    require_positions(network, max(lengths))
    half, last = row // 2, row // 4
    base = losses_at(network, rows[:, half:], torch.arange(half), last)
    gaps = dict[int, Gap]()

    def ask(length: int) -> Gap:
        if length not in gaps:
            gaps[length] = _gap(length, (gap_losses(network, rows, length) - base).mean(1))
            report(len(gaps), max(len(lengths), len(gaps)))
        return gaps[length]

    asked = sorted({*lengths})
    holds, breaks = row, None
    for length in asked:
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


def gap_losses(network: Any, rows: Tensor, length: int) -> Tensor:
    """Nats at the end of rows whose second half is moved to the end of this many positions.

    Args:
        network: a causal language model of the library.
        rows: (rows, T + 1).
        length: at least `T`; at `T` nothing moves.

    Returns:
        Of the last quarter of each row, shape (rows, T / 4), in float64.
    """
    row = rows.shape[1] - 1
    half = row // 2
    near, far = torch.arange(half), torch.arange(length - half, length)
    return losses_at(network, rows, torch.cat([near, far]), row // 4)


def losses_at(network: Any, rows: Tensor, positions: Tensor, last: int) -> Tensor:
    """Nats of the last targets of rows whose tokens stand at some positions.

    Args:
        network: a causal language model of the library.
        rows: (rows, T + 1).
        positions: (T,), ascending.
        last: targets of each row.

    Returns:
        Shape (rows, last), in float64.
    """
    each = [scores_at(network, row[:-1], positions, last) for row in rows]
    return cross_entropy(torch.stack(each).mT, rows[:, -last:], reduction="none")


@torch.no_grad()
def scores_at(network: Any, tokens: Tensor, positions: Tensor, keep: int | Tensor) -> Tensor:
    """Scores of the token after some tokens that stand at some positions.

    Args:
        network: a causal language model of the library.
        tokens: (T,).
        positions: (T,), ascending.
        keep: how many of the last tokens are followed, or their places.

    Returns:
        Shape (kept, vocabulary), in float64.
    """
    device = network.device
    scores = network(
        input_ids=tokens[None].to(device),
        position_ids=positions[None].to(device),
        attention_mask=mask_at(network.config, positions),
        use_cache=False,
        logits_to_keep=keep,
    ).logits
    return scores[0].double().cpu()


def mask_at(config: Any, positions: Tensor) -> Any:
    """Which keys are seen at some positions, as a model of the library takes it.

    A window of a layer is one of positions, not of places in the row. Without windows the mask says
    that all tokens are one text, since the library takes a skipped position for another text.
    """
    window = getattr(config, "sliding_window", None)
    kinds = {*(getattr(config, "layer_types", None) or ())}
    if not window or kinds == {"full_attention"}:
        return torch.ones(1, len(positions), dtype=torch.long)
    distances = positions[:, None] - positions
    near = ((distances >= 0) & (distances < window))[None, None]
    if not kinds:
        return near
    return {"full_attention": (distances >= 0)[None, None], "sliding_attention": near}


def require_positions(network: Any, length: int) -> None:
    """Raise InputError unless a model takes positions below `length` that are handed to it."""
    config = network.config
    takes = {*inspect.signature(network.forward).parameters}
    refuse(
        not {"position_ids", "logits_to_keep"} <= takes or getattr(config, "alibi", False),
        f"a model of type {config.model_type!r} counts its distances itself, so they cannot be "
        "moved; accepted: models that are handed their positions, as those with rotations are",
    )
    longest = getattr(config, "max_position_embeddings", None)
    rotary = getattr(config, "rope_parameters", None)
    refuse(
        not rotary and longest is not None and length > longest,
        f"a model of type {config.model_type!r} has a table of {longest} positions, {length} are "
        "asked for; accepted: lengths within it",
    )


class ModelText(NamedTuple):
    """A model of the library with a text in its tokens.

    Fields:
        name: of the model.
        network: in evaluation mode.
        trained: its training length; None where none is named.
        tokens: of both parts of the text, one after the other, (tokens,).
        encode: its tokenizer; None without one.
    """

    name: str
    network: Any
    trained: int | None
    tokens: Tensor
    encode: Encode | None


def read_model(model: Any, text: Any) -> ModelText:
    """A model of the library, opened, and a text in its tokens.

    Raises:
        InputError: it cannot be opened or read; it is a run of the harness.
    """
    outline = describe(model)
    refuse(
        outline.kind == RUN,
        f"run {outline.name!r} is no model of the library transformers, whose positions are moved "
        "here; accepted: a folder, a GGUF file or a name of one",
    )
    opened, read = open_model(outline), text_of(outline, text, "no")
    tokens = torch.from_numpy(np.concatenate([read.train, read.held_out]).astype(np.int64))
    worded = outline.path.suffix == ".gguf" or (outline.path / "tokenizer.json").is_file()
    encode = functools.partial(_ids, tokenizer_of(outline)) if worded else None
    return ModelText(outline.name, opened.network, outline.trained, tokens, encode)


def _ids(coder: Any, words: str) -> list[int]:
    ids: list[int] = coder.encode(words, add_special_tokens=False).ids
    return ids


def _gap(length: int, costs: Tensor) -> Gap:
    """The mean of the costs of rows, with its interval by Student's distribution."""
    mean, half = mean_and_half(costs.numpy())
    return Gap(length, mean, mean - half, mean + half)


def mean_and_half(values: np.ndarray) -> tuple[float, float]:
    """The mean of values, and half of its 95 % interval by Student's distribution.

    >>> mean_and_half(np.array([1.0, 1.0, 1.0]))
    (1.0, 0.0)
    """
    error = values.std(ddof=1) / math.sqrt(len(values))
    return float(values.mean()), float(error * student.ppf(0.975, len(values) - 1))
