"""Which setting a rotary model should have on rows beyond its training length, from short rows.

Each setting is asked by the gap probe: the loss at the end of the long row, what it costs at the
training length and on short texts, and what it recalls over which distance. The text that is cut
to the training length is a setting like any other, the one that the others have to beat. A window
is not asked: the probe's rows are shorter than it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from farfield.theory.answers.answer import Answer, Label
from farfield.theory.answers.blocks import Block, note, sentence, table
from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.answers.number import natural, plural
from farfield.validation.far_field.needles import (
    AROUND,
    BLOCK,
    NeedleRow,
    NeedleScore,
    blocks_of,
    needle_row,
    recalled,
)
from farfield.validation.far_field.probe import (
    ROW,
    Encode,
    gap_losses,
    losses_at,
    mean_and_half,
    read_model,
    require_positions,
    spread_rows,
)
from farfield.validation.far_field.rotary import (
    UNCHANGED,
    Paste,
    Setting,
    applied,
    candidates,
    pastes,
)
from farfield.validation.models.cache import Serving, row_cache
from farfield.validation.models.folder import describe
from farfield.validation.progress import Progress, silent

BUDGET = 0.1
"""Nats above the best loss within which a setting is asked what it recalls."""
_SHARES = (1 / 16, 3 / 16, 3 / 8, 9 / 16, 3 / 4, 15 / 16)  # of the long row, where needles stand


@dataclass(frozen=True)
class Choice:
    """What a setting gives and costs.

    Fields:
        setting: its name.
        loss: at the end of the long row, in nats; None for a window.
        trained, short: nats by which the loss rises at the training length and on rows of 512; None
            where recall is not asked.
        keys: of a long row in the cache.
        mib: MiB that they take, at 16 bits a number.
        recall: one entry a needle, rows one after the other; empty for a window, and for a loss
            further than `BUDGET` from the best.
        pastes: what transformers, vLLM and llama.cpp take.
    """

    setting: str
    loss: float | None
    trained: float | None
    short: float | None
    keys: int
    mib: float
    recall: tuple[NeedleScore, ...]
    pastes: tuple[Paste, ...]

    @property
    def right(self) -> int:
        """Needles recalled."""
        return sum(needle.right for needle in self.recall)

    def order(self) -> tuple[float, float, float]:
        """Settings that were asked for needles come first, by what they recall; then by loss."""
        nats = sum(needle.log_probability for needle in self.recall)
        loss = math.inf if self.loss is None else self.loss
        return (not self.recall, -self.right, -nats) if self.recall else (1, loss, 0)


@dataclass(frozen=True, repr=False)
class Extension(Answer):
    """Settings for a longer row, the best first; see `extend`.

    Fields:
        best: the setting to take; the cut text unless another one is shown to recall more.
        to, trained: tokens of the long row, and of the rows that the model is trained on.
        choices: one entry a setting, in the order of `Choice.order`.
        cut: the entry of the text cut to the training length.
        rows: rows of the text that were read.
        label: `forecast`.
    """

    VALUE: ClassVar[str] = "best"

    best: str
    to: int
    trained: int
    choices: tuple[Choice, ...]
    cut: Choice
    rows: int

    def blocks(self) -> Sequence[Block]:
        distances = sorted({needle.distance for needle in self.cut.recall})
        losses = (f"loss at {self.to}", f"at {self.trained}", f"at {BLOCK}")
        heads = ("setting", *losses, "keys", "MiB", *(f"recall {d}" for d in distances))
        (best,) = (c for c in self.choices if c.setting == self.best)
        return (
            sentence("{gain}.", self.label, gain=_gain(best, self.cut, self.trained)),
            table(heads, [_row(c, distances) for c in self.choices], numeric=range(1, 6)),
            *(_pasted(paste) for paste in best.pastes),
            note(
                "Said by the gap probe, from {rows} of {row} tokens: positions alone, without the "
                "dilution of a long row, and without what its text is worth. At {trained} and "
                "{short}: the change to the model as it is. Recall: needles whose answer is the "
                "likeliest, of those asked.",
                rows=plural(self.rows, "row"),
                row=ROW,
                trained=self.trained,
                short=BLOCK,
            ),
        )


def extend(
    model: Any,
    text: Any = None,
    *,
    to: Any,
    trained: Any = None,
    rows: int = 3,
    needle_rows: int = 2,
    progress: Progress = silent,
) -> Extension:
    """The settings of a rotary model of the library for a longer row, each with gain and cost.

    Args:
        model: a folder, a GGUF file, a name in the hub's cache, or a model of the library.
        text: a file or a folder; None takes the source code of the standard library.
        to: tokens of the long row.
        trained: training length in tokens; None takes the configuration's.
        rows: rows of 1,024 tokens that are read, spread over the text.
        needle_rows: rows with six needles each.
        progress: called as `progress(stage, done, total)`.

    Raises:
        InputError: `read_model`, `weigh`; a training length or a tokenizer is missing.
    """
    reading, far = read_model(model, text), natural(to, "to")
    length = reading.trained if trained is None else natural(trained, "trained")
    if length is None or reading.encode is None:
        what = "training length; accepted: trained" if length is None else "tokenizer.json"
        raise InputError(f"model {reading.name!r} has no {what}")
    found = weigh(
        reading.network,
        reading.encode,
        reading.tokens,
        length,
        far,
        rows=rows,
        needle_rows=needle_rows,
        report=lambda done, total: progress("settings", done, total),
    )
    return replace(found, subject=reading.name)


def weigh(
    network: Any,
    encode: Encode,
    text: Tensor,
    trained: int,
    to: int,
    *,
    rows: int = 3,
    needle_rows: int = 2,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Extension:
    """The settings of a rotary model for a longer row, each with its gain and its cost.

    Args:
        network: a causal language model of the library transformers, in evaluation mode.
        encode: its tokenizer.
        text: (tokens,), longer than the long row.
        trained: training length in tokens.
        to: tokens of the long row.
        rows: rows of 1,024 tokens, spread over the text; at least 2.
        needle_rows: rows with six needles each; kinds of needle take turns.
        report: told how many settings are done, of how many.

    Raises:
        InputError: `candidates`, `require_positions`; a text that is too short.
    """
    settings = candidates(network.config, trained, to)
    require_positions(network, to)
    refuse(
        trained < ROW,
        f"the model is trained on {trained} tokens; the probe reads rows of {ROW}",
    )
    refuse(len(text) <= to, f"the text has {len(text)} tokens; more than {to} are needed")
    distances = [max(BLOCK, round(share * to / AROUND) * AROUND) for share in _SHARES]
    begins = torch.linspace(0, len(text) - to, needle_rows).long().tolist()
    needles = [needle_row(encode, text[b:], to, distances, k) for k, b in enumerate(begins)]
    asked = _Asked(network, spread_rows(text, rows), needles)
    own = asked.loss(UNCHANGED, trained), asked.loss(UNCHANGED, BLOCK)
    layers = describe(network).layers
    ends = [None if s.window else asked.loss(s, s.cut or to) for s in settings]
    best, choices = min(loss for loss in ends if loss is not None), []
    for setting, loss in zip(settings, ends, strict=True):
        near = loss is not None and (loss <= best + BUDGET or setting.cut is not None)
        change, short = asked.changes(setting, trained, own) if near else (None, None)
        recall = tuple(asked.recall(setting)) if near else ()
        keys, lines = setting.keys(to), pastes(setting, network.config, to)
        mib = row_cache(layers, keys, Serving()).least / (1 << 20)
        choices.append(Choice(setting.name, loss, change, short, keys, mib, recall, lines))
        report(len(choices), len(settings))
    (cut,) = (c for c, s in zip(choices, settings, strict=True) if s.cut is not None)
    choices.sort(key=Choice.order)
    first = choices[0] if _gains(choices[0], cut) else cut
    each = tuple(choices)
    return Extension(first.setting, to, trained, each, cut, rows, label=Label.FORECAST)


class _Asked(NamedTuple):
    """A model with the rows that it is asked about."""

    network: Any
    rows: Tensor
    needles: Sequence[NeedleRow]

    def loss(self, setting: Setting, length: int) -> float:
        """Mean loss at the end of rows whose second half is moved; of short rows by themselves."""
        with applied(self.network, setting):
            if length > BLOCK:
                return float(gap_losses(self.network, self.rows, length).mean())
            short, at = self.rows[:, -BLOCK - 1 :], torch.arange(BLOCK)
            return float(losses_at(self.network, short, at, BLOCK // 2).mean())

    def changes(
        self, setting: Setting, trained: int, own: tuple[float, float]
    ) -> tuple[float, float]:
        """What a setting costs at the training length and on short rows."""
        if not setting.rope:
            return 0.0, 0.0
        return self.loss(setting, trained) - own[0], self.loss(setting, BLOCK) - own[1]

    def recall(self, setting: Setting) -> Iterator[NeedleScore]:
        """Each needle, rows one after the other."""
        with applied(self.network, setting):
            for row in self.needles:
                yield from recalled(self.network, row, blocks_of(row), setting.cut)


def _gains(choice: Choice, cut: Choice) -> bool:
    """Whether a setting is shown to recall more than the cut text: more needles, and a paired 95 %
    interval of the mean log probability above zero."""
    pairs = zip(choice.recall, cut.recall, strict=True)
    more = np.array([a.log_probability - b.log_probability for a, b in pairs])
    mean, half = mean_and_half(more)
    return choice.right > cut.right and mean > half


def _gain(best: Choice, cut: Choice, trained: int) -> str:
    """What is gained over cutting the text, in words."""
    asked = f"{cut.right} of {len(cut.recall)} needles"
    if best is cut:
        return (
            f"Cut the text to {trained:,} tokens: it recalls {asked}, and no setting within "
            f"{BUDGET} nats of the best is shown to recall more"
        )
    assert best.loss is not None and cut.loss is not None and best.short is not None
    half = [d for d, right, of in _shares(best.recall) if 2 * right >= of]
    reach = f", half of them or more up to {max(half):,} tokens back" if half else ""
    return (
        f"{best.setting} recalls {best.right} of {len(best.recall)} needles{reach}, where the text "
        f"cut to {trained:,} tokens recalls {cut.right}; its loss is {best.loss - cut.loss:+.2f} "
        f"nats to that of the cut text, and rows of {BLOCK} tokens pay {best.short:+.2f}"
    )


def _shares(recall: Sequence[NeedleScore]) -> list[tuple[int, int, int]]:
    """Distances with the needles recalled there, and how many were asked."""
    distances = sorted({needle.distance for needle in recall})
    at = {d: [needle.right for needle in recall if needle.distance == d] for d in distances}
    return [(d, sum(right), len(right)) for d, right in at.items()]


def _row(choice: Choice, distances: Sequence[int]) -> tuple[Any, ...]:
    """A line of the table."""

    def nats(value: float | None, form: str) -> str | None:
        return None if value is None else format(value, form)

    shares = {d: f"{right}/{of}" for d, right, of in _shares(choice.recall)}
    return (
        choice.setting,
        nats(choice.loss, ".3f"),
        nats(choice.trained, "+.3f"),
        nats(choice.short, "+.3f"),
        choice.keys,
        f"{choice.mib:.0f}",
        *(shares.get(d) for d in distances),
    )


def _pasted(paste: Paste) -> Block:
    if paste.text is None:
        return note("{library}: nothing to paste, {why}.", library=paste.library, why=paste.where)
    return note("{library}, {where}: {text}", **paste._asdict())
