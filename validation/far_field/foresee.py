"""What does a trained model lose on longer rows? Foreseen from short ones.

    log ratio at N = mean loss of targets in rows of N less that of the same targets in rows of T

Two settings are asked. The main one doubles the length stage by stage, the check jumps to it at
once. Where they differ by more than the interval over the groups of a text, nothing is said.
`blame` takes the loss apart: which layer's far keys, positions alone, keys of another text.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from farfield.theory.answers.answer import Answer, Code, Label, Reason, Status
from farfield.theory.answers.blocks import Block, Curve, Line, facts, note, sentence, table
from farfield.theory.answers.errors import refuse
from farfield.theory.answers.number import natural
from farfield.validation.far_field.network import Network, TrainedNetwork, nats, scores_at
from farfield.validation.far_field.probe import GapProbe, mean_and_half, probe
from farfield.validation.far_field.recall import Encode
from farfield.validation.far_field.repairs import Repair, Repaired
from farfield.validation.far_field.stages import Sampling, far_losses
from farfield.validation.harness.data import samples
from farfield.validation.harness.runs import asked_of
from farfield.validation.models.layers import ModelOutline
from farfield.validation.progress import Progress, silent

LEAST = 16  # tokens of a row
CLOSE = 0.02  # a difference of log ratios that is none
LONG = 512  # tokens of rows that are dear
DOUBLING, ONE_STAGE = Sampling(1024, 2), Sampling(1024, math.inf)


@dataclass(frozen=True)
class Settings:
    """How much of a text is read, and how.

    Args:
        groups: evenly spaced in the text; intervals are over them.
        rows: of a group, which share their far keys.
        last: targets at the end of a row.
        main, check: the two samplings. Group `g` adds `g` to their seeds.
    """

    groups: int = 12
    rows: int = 16
    last: int = 16
    main: Sampling = DOUBLING
    check: Sampling = ONE_STAGE


USUAL = Settings()
DEAR = Settings(groups=4, rows=5, last=128)
"""Of rows of 512 tokens or more."""
QUICK = Settings(groups=4, rows=1)
"""Of the gap probe."""


@dataclass(frozen=True)
class ModelOnText:
    """A model and the rows that are read.

    Args:
        outline: what its folder says.
        network: its layers.
        live: the model itself, whose rotations can be changed.
        groups: (groups, rows, length + 1).
        text: what they are taken from, one-dimensional.
        source: the text, in words.
        bos: the token that a text begins with, None for none.
        encode: its tokenizer; None without one.
        settings: how much is read.
    """

    outline: ModelOutline
    network: Network
    live: Any
    groups: Tensor
    text: np.ndarray
    source: str
    bos: int | None
    encode: Encode | None
    settings: Settings

    @property
    def length(self) -> int:
        """Tokens of a row."""
        return self.groups.shape[2] - 1

    @functools.cached_property
    def base(self) -> Tensor:
        """Losses of each group in rows of its own, (groups, rows - 1, last)."""
        last, bos = self.settings.last, self.bos
        each = [far_losses(self.network, rows, [], last=last, bos=bos) for rows in self.groups]
        return torch.stack([losses[self.length] for losses in each])

    def turns(self) -> bool:
        """Whether its positions are rotations."""
        return any(layer.rotation is not None for layer in self.outline.layers)

    def ratios(
        self,
        lengths: Sequence[int],
        sampling: Sampling,
        network: Network | None = None,
        *,
        strange: bool = False,
        step: Callable[[], None] = lambda: None,
    ) -> dict[int, np.ndarray]:
        """Log ratios to the unchanged model in rows of its own, one a group, by length."""
        each: dict[int, list[float]] = {n: [] for n in (self.length, *lengths)}
        for g, rows in enumerate(self.groups):
            drawn = replace(sampling, seed=sampling.seed + g)
            others = self.groups[(g + 1) % len(self.groups)] if strange else None
            asked, last = network or self.network, self.settings.last
            losses = far_losses(asked, rows, lengths, drawn, last, others, self.bos)
            for n, at in losses.items():
                each[n].append(float((at - self.base[g]).mean()))
            step()
        return {n: np.array(x) for n, x in each.items()}


@dataclass(frozen=True)
class Ratio:
    """The forecast at a length.

    Fields:
        length: tokens.
        log_ratio: of perplexities, to rows of the short length; None where the settings disagree.
        interval: 95 %, over the groups of the text.
        main, check: what each setting says.
        agree: whether they differ by less than half the interval, or by .02.
    """

    length: int
    log_ratio: float | None
    interval: tuple[float, float]
    main: float
    check: float
    agree: bool


def ratio_of(length: int, main: np.ndarray, check: np.ndarray) -> Ratio:
    """From the log ratios of each group by both settings.

    >>> ratio_of(64, np.array([0.1, 0.2]), np.array([0.1, 0.9])).agree
    True
    """
    (mean, half), other = mean_and_half(main), float(check.mean())
    agree = abs(mean - other) <= half + CLOSE
    return Ratio(length, mean if agree else None, (mean - half, mean + half), mean, other, agree)


@dataclass(frozen=True, repr=False, kw_only=True)
class Foresight(Answer):
    """What a model loses on longer rows.

    Fields:
        to: the longest length, in tokens.
        length: of the rows that were read.
        log_ratio: at `to`; None where the settings disagree.
        ratios: at each doubling.
        seconds: processor time a target row, of main setting and check.
        pairs: of queries and keys a target row: by main setting, by check, in a real row.
        positions: what positions alone cost a model that turns its queries; None for another.
        blame: what causes it; none where it was not asked.
        source: the text.
    """

    VALUE: ClassVar[str] = "log_ratio"

    to: int
    length: int
    log_ratio: float | None
    ratios: tuple[Ratio, ...]
    seconds: tuple[float, float]
    pairs: tuple[int, int, int]
    positions: GapProbe | None = None
    blame: Blame | None = None
    source: str = ""

    def span(self) -> tuple[float, float] | None:
        return None if self.log_ratio is None else self.ratios[-1].interval

    def _blocks(self) -> Iterator[Block]:
        last = self.ratios[-1]
        if self.log_ratio is None:
            yield sentence(
                "{model}: no forecast at {to} tokens, since {why}.",
                model=self.subject,
                to=self.to,
                why=str(self.reason),
            )
        else:
            low, high = last.interval
            yield sentence(
                "{model}: perplexity at {to} tokens is {ratio} times that in rows of {length} "
                "({low} to {high}).",
                self.label,
                model=self.subject,
                to=self.to,
                ratio=f"{math.exp(self.log_ratio):.3g}",
                length=self.length,
                low=f"{math.exp(low):.3g}",
                high=f"{math.exp(high):.3g}",
            )
        alone = {} if self.positions is None else {g.length: g.cost for g in self.positions.gaps}
        more = ("positions alone", "the rest") if alone else ()
        yield table(
            ("tokens", "log ratio", "95 %", "doubling", "one stage", "agree", *more),
            [
                (
                    r.length,
                    "unknown" if r.log_ratio is None else f"{r.log_ratio:.3f}",
                    "{:.3f} to {:.3f}".format(*r.interval),
                    f"{r.main:.3f}",
                    f"{r.check:.3f}",
                    "yes" if r.agree else "no",
                    *(_parts(r.main, alone[r.length]) if alone else ()),
                )
                for r in self.ratios
            ],
            numeric=(0, 1, 3, 4, 6, 7),
        )
        if self.positions is not None:
            yield self.positions.blocks()[0]
        if self.blame is not None:
            yield from self.blame.table()
        yield Curve(
            "What the model loses, by length, as both settings say.",
            "tokens",
            "log ratio",
            tuple(
                Line(name, tuple(float(r.length) for r in self.ratios), tuple(values))
                for name, values in (
                    ("doubling", [r.main for r in self.ratios]),
                    ("one stage", [r.check for r in self.ratios]),
                )
            ),
            log_x=True,
        )
        yield facts(
            text=self.source,
            processor_time="{:.3g} s a target row by doubling, {:.3g} s in one stage".format(
                *self.seconds
            ),
            queries_times_keys="{:,} by doubling, {:,} in one stage, {:,} in a real row".format(
                *self.pairs
            ),
        )
        yield note("No row longer than {length} tokens passed the model.", length=self.length)


@dataclass(frozen=True)
class Blame:
    """Causes of the loss at a length, log ratios of one stage.

    Fields:
        layers: the far keys of one layer alone, the others behind a window of the row.
        worst: the layer, from 1, whose far keys cost most.
        positions: rows moved to the end of the text, no far keys.
        document: what far keys of the own text are worth over those of another.
        everything: the loss with all far keys.
    """

    layers: tuple[float, ...]
    worst: int
    positions: float
    document: float
    everything: float

    def table(self) -> Iterator[Block]:
        """A table of the causes, and damage by layer."""
        rows = [("everything", f"{self.everything:.3f}")]
        rows += [("positions moved alone, no far keys", f"{self.positions:.3f}")]
        rows += [(f"far keys in layer {k} alone", f"{x:.3f}") for k, x in enumerate(self.layers, 1)]
        rows += [("far keys of the own text, over those of another", f"{-self.document:.3f}")]
        yield table(("cause", "log ratio"), rows, numeric=(1,))
        yield Curve(
            "Damage by the far keys of one layer alone.",
            "layer",
            "log ratio",
            (Line("far keys", tuple(map(float, range(1, len(self.layers) + 1))), self.layers),),
            marks=(("all layers", self.everything),),
        )


def foresee(
    model: Any,
    text: Any = None,
    *,
    to: Any,
    length: Any = None,
    settings: Settings | None = None,
    causes: bool = False,
    progress: Progress = silent,
) -> Foresight:
    """The log ratio of perplexity on rows up to `to` tokens, from short rows.

    Args:
        model: a folder of a finished run, or of the library transformers.
        text: a file or a folder; None takes the text of the run, or the standard library's code.
        to: tokens of the longest row.
        length: tokens of the rows that are read; None takes the training length, at most 1,024.
        settings: how much is read, and how; None reads less of a model with long rows.
        causes: whether to add `blame`.
        progress: called as `progress(stage, done, total)`.

    Raises:
        InputError: a model without keys to be had, rows below 16 tokens, a text that is too short,
            `to` below the length or beyond the positions that there are.
    """
    subject = subject_of(model, text, length, settings)
    far, how = reach_of(subject, to), subject.settings
    lengths = Sampling().ends(subject.length, far)[1:]
    results, seconds = [], []
    rows = len(subject.groups) * (how.rows - 1)
    done, total = 0, 2 * len(subject.groups)

    def step() -> None:
        nonlocal done
        done += 1
        progress("far field", done, total)

    for sampling in (how.main, how.check):
        begun = time.process_time()
        results.append(subject.ratios(lengths, sampling, step=step))
        seconds.append((time.process_time() - begun) / rows)
    ratios = tuple(ratio_of(n, results[0][n], results[1][n]) for n in lengths)
    gaps = probe(subject.network, subject.groups[:, 0], lengths) if subject.turns() else None
    last = ratios[-1]
    known = last.log_ratio is not None
    why = (
        f"doubling says {last.main:.3f} and one stage {last.check:.3f}, further apart than the "
        f"interval of {last.interval[0]:.3f} to {last.interval[1]:.3f}"
    )
    main, check = (_pairs(subject, far, s) for s in (how.main, how.check))
    return Foresight(
        status=Status.ENCLOSED if known else Status.UNKNOWN,
        label=Label.FORECAST if known else None,
        reason=None if known else Reason(Code.SETTINGS_DISAGREE, why),
        subject=subject.outline.name,
        to=far,
        length=subject.length,
        log_ratio=last.log_ratio,
        ratios=ratios,
        seconds=(seconds[0], seconds[1]),
        pairs=(main, check, far * (far + 1) // 2),
        positions=gaps,
        blame=blame(subject, to=far) if causes else None,
        source=subject.source,
    )


def gap_probe(
    model: Any, text: Any = None, *, to: Any, length: Any = None, progress: Progress = silent
) -> GapProbe:
    """What positions alone cost a model, up to `to` tokens: the first answer, within seconds.

    Args:
        model: a folder, a GGUF file, a name in the hub's cache, or a model of the library.
        text: a file or a folder, as of `foresee`.
        to: the longest row; each doubling up to it is asked, and lengths where costs begin.
        length: tokens of the rows that are read, as of `foresee`.
        progress: called as `progress(stage, done, total)`.

    Raises:
        InputError: as `foresee`.
    """
    subject = subject_of(model, text, length, QUICK)
    lengths = Sampling().ends(subject.length, reach_of(subject, to))[1:]
    gaps = probe(
        subject.network,
        subject.groups[:, 0],
        lengths,
        lambda done, total: progress("positions", done, total),
    )
    return replace(gaps, subject=subject.outline.name)


def _parts(whole: float, positions: float) -> tuple[str, str]:
    """A loss in the cost of positions alone, and the rest."""
    return f"{positions:+.3f}", f"{whole - positions:+.3f}"


def _pairs(subject: ModelOnText, to: int, sampling: Sampling) -> int:
    """Queries times keys of a target row, in all its stages."""
    row, total = subject.length, 0
    most = min(sampling.samples, row * (subject.settings.rows - 1))
    for s in range(len(sampling.ends(row, to))):
        total += row * (row + (s > 0) * 2 * row + s * most)
    return total


def blame(
    model: Any,
    text: Any = None,
    *,
    to: Any,
    length: Any = None,
    settings: Settings | None = None,
) -> Blame:
    """What causes the loss at a length, by one stage; the arguments are those of `foresee`."""
    subject = model if isinstance(model, ModelOnText) else subject_of(model, text, length, settings)
    far, network, one = reach_of(subject, to), subject.network, subject.settings.check

    def mean(**how: Any) -> float:
        return float(subject.ratios([far], one, **how)[far].mean())

    every = range(1, network.depth + 1)
    layers = []
    for layer in every:
        others = tuple(k for k in every if k != layer)
        alone = Repair(window=subject.length, layers=others) if others else Repair()
        layers.append(mean(network=Repaired(network, alone)))
    whole, at = mean(), torch.arange(far - subject.length, far)
    moved = [
        nats(scores_at(network, rows[:, :-1], at, subject.settings.last), rows)[1:] - base
        for rows, base in zip(subject.groups, subject.base, strict=True)
    ]
    return Blame(
        layers=tuple(layers),
        worst=1 + int(np.argmax(layers)),
        positions=float(torch.stack(moved).mean()),
        document=mean(strange=True) - whole,
        everything=whole,
    )


# -- models and rows ------------------------------------------------------------------------------


def reach_of(subject: ModelOnText, to: Any) -> int:
    """The length that is asked for, checked."""
    far, longest = natural(to, "to"), subject.network.longest
    refuse(
        far < 2 * subject.length,
        f"to = {far} with rows of {subject.length} tokens; accepted is twice as much or more",
    )
    refuse(
        longest is not None and far > longest,
        f"{subject.outline.name} has vectors for {longest} positions, {far} are asked for; "
        "accepted: to that length",
    )
    return far


def subject_of(model: Any, text: Any, length: Any, settings: Settings | None = None) -> ModelOnText:
    """The model and the rows of a text: of the held-out part for a run, else of all of it.

    Raises:
        InputError: as `foresee`.
    """
    from farfield.validation.far_field.library import LibraryNetwork
    from farfield.validation.models.folder import describe
    from farfield.validation.models.opened import OpenedRun, open_model
    from farfield.validation.models.text import encoder_of, text_of

    outline = describe(model)
    size = min(outline.trained or 1024, 1024) if length is None else natural(length, "length")
    settings = settings or (USUAL if size < LONG else DEAR)
    opened = open_model(outline, tokens=settings.rows * size)
    network: Network
    if isinstance(opened, OpenedRun):
        network = TrainedNetwork(opened.network)
        read = text_of(outline, asked_of(outline.path).text if text is None else text)
        tokens, encode = read.held_out, None
    else:
        network, read = LibraryNetwork(opened), text_of(outline, text)
        tokens, encode = np.concatenate([read.train, read.held_out]), encoder_of(outline)
    return ModelOnText(
        outline=outline,
        network=network,
        live=opened.network,
        groups=_groups(tokens, read.source, size, settings),
        text=tokens,
        source=read.source,
        bos=read.bos,
        encode=encode,
        settings=settings,
    )


def _groups(text: np.ndarray, source: str, length: int, settings: Settings) -> Tensor:
    """Rows of each group, (groups, rows, length + 1)."""
    refuse(length < LEAST, f"rows of {length} tokens; accepted are rows of {LEAST} or more")
    most = settings.rows * length
    refuse(
        len(text) <= most,
        f"{source} has {len(text)} tokens to read, {settings.rows} rows of {length} take "
        f"{most + 1}; accepted: a longer text, or a shorter length",
    )
    long = torch.from_numpy(samples(text, settings.groups, most))
    refuse(len(long) < 2, f"{source} has one group of rows; accepted: a longer text")
    return long.unfold(1, length + 1, length)
