"""Which change at inference helps a trained model on long rows, and what does it cost?

Each change has its forecast at the length, what it costs on short rows, the keys that it keeps, and
what it recalls over which distance. The forecast is the far field's, in one stage; or that of the
gap probe, within minutes, which says nothing of windows. The best few may be measured on real rows.
Every number is written down as it is made, so that a stopped search goes on.

The text that is cut to the training length is a change like any other, the one that settings of a
rotary model have to beat. On loss little beats it, and only a longer row can be *used*. So settings
whose loss is within `BUDGET` of the best are put in order by what they recall.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from farfield.theory.answers.answer import Answer, Label, Status
from farfield.theory.answers.blocks import Block, facts, note, sentence, table
from farfield.theory.answers.errors import refuse
from farfield.theory.answers.number import natural
from farfield.theory.encodings import Encoding, encoding
from farfield.validation.far_field.network import Network, losses, scores_at
from farfield.validation.far_field.probe import gap_losses, mean_and_half
from farfield.validation.far_field.recall import (
    BLOCK,
    NeedleRow,
    NeedleScore,
    distances,
    needle_row,
    recalled,
)
from farfield.validation.far_field.repairs import FIRST_KEYS, Repair, Repaired, candidates
from farfield.validation.far_field.rotary import Paste, applied, pastes, settings_of
from farfield.validation.far_field.stages import Stages
from farfield.validation.far_field.subject import (
    QUICK,
    ModelOnText,
    Settings,
    reach_of,
    subject_of,
)
from farfield.validation.harness.data import samples
from farfield.validation.json_files import Book
from farfield.validation.models.cache import Serving, row_cache
from farfield.validation.models.weights import stamped
from farfield.validation.progress import Progress, silent

BEST = 3  # that are measured, beside no change and the cut text
BUDGET = 0.1
"""Nats above the best loss within which a setting is put in order by what it recalls."""


@dataclass(frozen=True)
class Mended:
    """A change and what is said of it.

    Fields:
        repair: in words.
        log_ratio: forecast at `to`, to the unchanged model on short rows; None where it is not
            asked, as a window by the gap probe.
        short: log ratio on short rows themselves: what the change costs there.
        trained: log ratio at the training length to the unchanged model there, by the gap probe;
            None where no setting changes.
        keys: that a query sees at most.
        mib: MiB that they take in the cache, at 16 bits a number.
        recall: one entry a needle; empty where it is not asked.
        measured: log ratio on real rows with half its 95 % interval; None where it was not asked.
        real: the same needles on real rows.
    """

    repair: str
    log_ratio: float | None
    short: float
    trained: float | None
    keys: int
    mib: float
    recall: tuple[NeedleScore, ...]
    measured: tuple[float, float] | None = None
    real: tuple[NeedleScore, ...] = ()

    @property
    def cuts(self) -> bool:
        """Whether it cuts the text."""
        return self.repair.startswith("text cut")

    @property
    def seen(self) -> tuple[float, tuple[NeedleScore, ...]]:
        """Loss and recall, measured where they are."""
        if self.measured is not None:
            return self.measured[0], self.real
        return math.inf if self.log_ratio is None else self.log_ratio, self.recall


@dataclass(frozen=True, repr=False, kw_only=True)
class Mending(Answer):
    """Changes of a model at inference, the best first.

    Fields:
        to, length: tokens of the row that is asked about, and of the rows that were read.
        rows: each change, no change among them.
        best: the one to take, by forecast, or by measurement where there is one.
        encoding: of each layer under it, as text; None for a layer without a bias.
        window: keys that it leaves, None for all.
        pastes: what transformers, vLLM and llama.cpp take for it; none where nothing turns.
        pasted: the change that this is; another than `best` where no library has that one.
        source: the text.
        quick: whether the gap probe said it, not the far field.
    """

    VALUE: ClassVar[str] = "log_ratio"

    to: int
    length: int
    log_ratio: float
    rows: tuple[Mended, ...]
    best: str
    encoding: tuple[str | None, ...]
    window: int | None
    pastes: tuple[Paste, ...] = ()
    pasted: str = ""
    source: str = ""
    quick: bool = False

    def _blocks(self) -> Iterator[Block]:
        plain = next(row for row in self.rows if row.repair == "none")
        best = next(row for row in self.rows if row.repair == self.best)
        cut = next((row for row in self.rows if row.cuts), None)
        yield sentence(
            "{model} at {to} tokens: {best} changes the log ratio from {plain} to {value}.",
            self.label,
            model=self.subject,
            to=self.to,
            best=self.best if self.best != "none" else "no change is best; it",
            plain=f"{plain.seen[0]:.3f}",
            value=f"{self.log_ratio:.3f}",
        )
        if cut is not None:
            yield sentence("{gain}.", self.label, gain=_gain(best, cut))
        if self.pastes and self.pasted != self.best:
            other = next(row for row in self.rows if row.repair == self.pasted)
            yield sentence(
                "No library has {best}; of what can be pasted, take {pasted}.",
                self.label,
                best=self.best,
                pasted=self.pasted,
            )
            if cut is not None:
                yield sentence("{gain}.", self.label, gain=_gain(other, cut))
        columns = _columns(self.rows, self.length)
        yield table(tuple(columns), [*zip(*columns.values(), strict=True)], numeric=range(1, 6))
        for paste in self.pastes:
            text = paste.text or "nothing to paste"
            yield note("{library}, {where}: {text}", **{**paste._asdict(), "text": text})
        yield facts(text=self.source)
        yield note(
            "Recall: needles whose answer is the likeliest, of those asked at that distance; on "
            "real rows where there are two. A graft or a window gives up what is far: the loss "
            "does not show it."
        )
        if self.quick:
            yield note(
                "Said by the gap probe: positions alone, without the dilution of a long row, and "
                "without what its text is worth."
            )


def _columns(rows: Sequence[Mended], length: int) -> dict[str, list[str]]:
    """The columns of the table that are not empty."""

    def shares(row: Mended, distance: int) -> str:
        each = ([n.right for n in x if n.distance == distance] for x in (row.recall, row.real))
        return " ".join(f"{sum(right)}/{len(right)}" for right in each if right)

    columns = {
        "change": [row.repair for row in rows],
        "log ratio": ["" if row.log_ratio is None else f"{row.log_ratio:.3f}" for row in rows],
        "measured": ["{:.3f} ± {:.3f}".format(*x.measured) if x.measured else "" for x in rows],
        f"at {length}": [f"{row.short:.3f}" for row in rows],
        "at training length": [
            "" if row.trained is None else f"{row.trained:+.3f}" for row in rows
        ],
        "keys": [str(row.keys) for row in rows],
        "MiB": [f"{row.mib:.3g}" for row in rows],
    }
    for distance in sorted({needle.distance for row in rows for needle in row.recall}):
        columns[f"recall {distance}"] = [shares(row, distance) for row in rows]
    return {head: cells for head, cells in columns.items() if any(cells)}


def _gain(best: Mended, cut: Mended) -> str:
    """What is gained over cutting the text, in words."""
    (loss, recall), (short, of_cut) = best.seen, cut.seen
    asked = f"{sum(n.right for n in of_cut)} of {len(of_cut)} needles"
    if best is cut:
        return (
            f"Cut the text: it recalls {asked}, and no setting within {BUDGET} nats of the best is "
            "shown to recall more"
        )
    far = [n.distance for n in recall]
    half = [d for d in far if 2 * sum(n.right for n in recall if n.distance == d) >= far.count(d)]
    reach = f", half of them or more up to {max(half):,} tokens back" if half else ""
    return (
        f"{best.repair} recalls {sum(n.right for n in recall)} of {len(recall)} needles{reach}, "
        f"where the cut text recalls {asked}; its loss is {loss - short:+.2f} nats to that of the "
        f"cut text, and short rows pay {best.short:+.2f}"
    )


def mend(
    model: Any,
    text: Any = None,
    *,
    to: Any,
    keys: Any = None,
    length: Any = None,
    settings: Settings | None = None,
    measure: bool = False,
    quick: bool = False,
    folder: str | os.PathLike[str] = "out/mend",
    progress: Progress = silent,
) -> Mending:
    """Changes at inference for rows of `to` tokens, each with its forecast and its cost.

    Args:
        model: a folder of a finished run, or a model of the library transformers.
        text: a file or a folder; None takes the text of the run, or the standard library's code.
        to: tokens of the row.
        length: of the rows that are read, as of `foresee`.
        settings: how much is read, and how.
        keys: that a query may see at most; None for no limit.
        measure: whether the best three are measured on real rows, beside no change.
        quick: whether to ask the gap probe in place of the far field.
        folder: where numbers are written down; a search that was stopped goes on from there.
        progress: called as `progress(stage, done, total)`.

    Raises:
        InputError: as `foresee`; no candidate keeps so few keys; a model that turns its queries,
            and `to` within its training length.
    """
    subject = subject_of(model, text, length, settings or (QUICK if quick else None))
    far = reach_of(subject, to)
    most = far if keys is None else natural(keys, "keys")
    found = _changes(subject, far)
    asked = [Repair(), *(repair for repair in found if repair.keys(far) <= most)]
    refuse(
        len(asked) == 1,
        f"no change keeps at most {most} keys; the least keeps {min(r.keys(far) for r in found)}",
    )
    asks = str((far, quick, subject.settings, subject.bos)).encode()
    place = Path(folder) / stamped(subject.outline, asks, subject.groups.numpy().tobytes())
    search = _Readings(subject, far, quick, Book(place))
    lines: dict[Repair, Mended] = {}
    for done, repair in enumerate(asked, 1):
        lines[repair] = search.forecast(repair)
        progress("repairs", done, len(asked))
    if quick:
        least = min(row.seen[0] for row in lines.values())
        for repair, row in lines.items():
            if row.seen[0] <= least + BUDGET or repair.cut:
                lines[repair] = replace(row, recall=search.recall(repair))
    if measure:
        first = _ranked([*lines.values()])[:BEST]
        chosen = [r for r, row in lines.items() if row in first or row.cuts or r == Repair()]
        for done, repair in enumerate(chosen, 1):
            lines[repair] = search.measured(repair, lines[repair])
            progress("real rows", done, len(chosen))
    best = _best([row for r, row in lines.items() if r.keys(far) <= most])
    repair = next(repair for repair, row in lines.items() if row is best)
    pasted, texts = _to_paste(subject, lines, best, far)
    return Mending(
        status=Status.ENCLOSED,
        label=Label.MEASURED if measure else Label.FORECAST,
        subject=subject.outline.name,
        to=far,
        length=subject.length,
        log_ratio=best.seen[0],
        rows=tuple(_ranked([*lines.values()])),
        best=best.repair,
        encoding=tuple(
            _formula(repair, at, layer.encoding)
            for at, layer in enumerate(subject.outline.layers, 1)
        ),
        window=repair.window,
        pastes=texts,
        pasted=pasted.repair,
        source=subject.source,
        quick=quick,
    )


def _to_paste(
    subject: ModelOnText, lines: dict[Repair, Mended], best: Mended, to: int
) -> tuple[Mended, tuple[Paste, ...]]:
    """What libraries take for the best change, or for the best of those that any of them has."""
    config = getattr(subject.live, "config", None)
    if config is None or not subject.turns() or best is lines[Repair()]:
        return best, ()
    texts = {row.repair: pastes(r, config, to) for r, row in lines.items() if r != Repair()}
    ready = [row for row in lines.values() if any(p.text for p in texts.get(row.repair, ()))]
    row = _best(ready) if ready and best not in ready else best
    return row, texts[row.repair]


def _changes(subject: ModelOnText, to: int) -> list[Repair]:
    """The candidates: settings of rotations for a model of the library that turns its queries."""
    config, trained = getattr(subject.live, "config", None), subject.outline.trained
    if config is not None and trained is not None and subject.turns():
        return settings_of(config, trained, to)
    held = [Repair(window=subject.length, sinks=FIRST_KEYS, in_cache=True)] * subject.turns()
    return [*candidates(subject.length), *held]


def _ranked(rows: list[Mended]) -> list[Mended]:
    """By loss; beside a cut text, those within the budget come first, by what they recall."""
    by_loss = sorted(rows, key=lambda row: row.seen[0])
    if not any(row.cuts for row in rows):
        return by_loss
    most = by_loss[0].seen[0] + BUDGET
    near = [row for row in by_loss if (row.seen[0] <= most or row.cuts) and row.seen[1]]
    near.sort(key=_recall, reverse=True)
    return [*near, *(row for row in by_loss if row not in near)]


def _recall(row: Mended) -> tuple[int, float]:
    """How many answers are right, and the log probability of all."""
    return sum(n.right for n in row.seen[1]), sum(n.log_probability for n in row.seen[1])


def _best(rows: list[Mended]) -> Mended:
    """The change to take: of those measured if any are; beside a cut text, another one only where
    it is shown to recall more: more needles, and a paired 95 % interval of the mean log
    probability above zero."""
    tried = [row for row in rows if row.measured is not None] or rows
    first, cut = _ranked(tried)[0], next((row for row in tried if row.cuts), None)
    if cut is None or first is cut or not first.seen[1]:
        return cut or first
    pairs = zip(first.seen[1], cut.seen[1], strict=True)
    mean, half = mean_and_half(np.array([a.log_probability - b.log_probability for a, b in pairs]))
    return first if _recall(first)[0] > _recall(cut)[0] and mean > half else cut


def _formula(repair: Repair, layer: int, trained: Encoding | None) -> str | None:
    """The bias of a layer under a change, as `encoding` reads it."""
    if trained is None and repair.graft is None:
        return None
    changed = encoding("0") if trained is None else trained
    if not repair.layers or layer in repair.layers:
        changed = repair.encoding(changed)
    each = [str(bias) for bias in changed.biases]
    return each[0] if len(each) == 1 else f"[{'; '.join(each)}]"


@dataclass(frozen=True)
class _Readings:
    """A model on a text, the length that is asked about, and the numbers that are known."""

    subject: ModelOnText
    to: int
    quick: bool
    book: Book

    @functools.cached_property
    def needles(self) -> list[NeedleRow]:
        """A row with needles for each group."""
        subject, block = self.subject, min(self.subject.length, BLOCK)
        words = subject.encode if block == BLOCK else None  # a shorter block has no room for them
        text, far = torch.from_numpy(subject.text.astype(np.int64)), distances(block, self.to)
        begins = np.linspace(0, max(0, len(text) - self.to), len(subject.groups)).astype(int)
        return [
            needle_row(words, text[begin:], self.to, far, seed, block)
            for seed, begin in enumerate(begins.tolist())
        ]

    def forecast(self, repair: Repair) -> Mended:
        """What is said of a change."""
        each = self._kept(repair, "", self._by_probe if self.quick else self._by_far_field)
        home = (
            self._kept(repair, ", trained", self._at_home).mean()
            if repair.rope or repair.group
            else None
        )
        cache = row_cache(self.subject.outline.layers, repair.keys(self.to), Serving())
        return Mended(
            repair.name,
            None if self.quick and repair.window else float(each[:, 0].mean()),
            float(each[:, 1].mean()),
            None if home is None else float(home),
            repair.keys(self.to),
            cache.least / (1 << 20),
            self._scores(each[:, 2:]),
        )

    def recall(self, repair: Repair) -> tuple[NeedleScore, ...]:
        """Needles by the gap probe."""
        return self._scores(self._kept(repair, ", needles", self._near_needles))

    def measured(self, repair: Repair, row: Mended) -> Mended:
        """A change on real rows, one a group, and its needles there."""
        each = self._kept(repair, ", real rows", self._real)
        mean, half = mean_and_half(each[:, 0])
        return replace(row, measured=(mean, half), real=self._scores(each[:, 1:]))

    def _kept(
        self, repair: Repair, what: str, ask: Callable[[Repair], list[list[float]]]
    ) -> np.ndarray:
        """Numbers (groups, any) that are asked for once."""
        flat = self.book.of(repair.name + what, lambda: np.array(ask(repair)).ravel().tolist())
        return np.reshape(flat, (len(self.subject.groups), -1))

    def _scores(self, each: np.ndarray) -> tuple[NeedleScore, ...]:
        """The needles of rows from what is kept of them, (rows, two a needle)."""
        return tuple(
            NeedleScore(needle.kind, needle.distance, float(nats), bool(right))
            for row, kept in zip(self.needles, each, strict=True)
            for needle, (nats, right) in zip(row.needles, kept.reshape(-1, 2), strict=False)
        )

    @contextmanager
    def _changed(self, repair: Repair) -> Iterator[Repaired]:
        """The network under a change."""
        with applied(self.subject.live, repair):
            yield Repaired(self.subject.network, repair)

    def _gap(self, network: Network, length: int) -> Tensor:
        """Losses by the gap probe, (groups, targets)."""
        return gap_losses(network, self.subject.groups[:, 0], length)

    @functools.cached_property
    def _own(self) -> dict[int, Tensor]:
        """Those of the unchanged model: on short rows, and at the training length."""
        lengths = {self.subject.length, self.subject.outline.trained or 0}
        return {n: self._gap(self.subject.network, n) for n in lengths if n >= self.subject.length}

    def _at_home(self, repair: Repair) -> list[list[float]]:
        """By group: the log ratio at the training length by the gap probe."""
        length, own = max(self._own), self._own[max(self._own)]
        with self._changed(repair) as network:
            return (self._gap(network, length) - own).mean(1, keepdim=True).tolist()

    def _near_needles(self, repair: Repair) -> list[list[float]]:
        """By group: needles by the gap probe."""
        with self._changed(repair) as network:
            read = functools.partial(scores_at, network)
            return [_flat(recalled(row, read, repair.cut)) for row in self.needles]

    def _by_probe(self, repair: Repair) -> list[list[float]]:
        """By group: log ratios at the length, and on short rows."""
        own = self._own[self.subject.length]
        with self._changed(repair) as network:
            near = self._gap(network, self.subject.length)
            far = near if repair.window else self._gap(network, repair.cut or self.to)
        return torch.stack([(x - own).mean(1) for x in (far, near)], 1).tolist()

    def _by_far_field(self, repair: Repair) -> list[list[float]]:
        """By group: log ratios at the length, and on short rows; then its needles."""
        subject, ends = self.subject, [self.subject.length, repair.cut or self.to]
        last, sampling, base = subject.settings.last, subject.settings.check, subject.base
        results = list[list[float]]()
        for g, rows in enumerate(subject.groups):
            drawn = replace(sampling, seed=sampling.seed + g)
            with self._changed(repair) as network:
                stages = Stages(network, rows, last, drawn, bos=subject.bos)
                near = stages.plain()[1:]
                far = stages.stage(1, ends)[1:] if ends[1] > ends[0] else near
                read = functools.partial(stages.blocks, ends=ends)
                needles = recalled(self.needles[g], read, repair.cut)
            results.append([*(float((x - base[g]).mean()) for x in (far, near)), *_flat(needles)])
        return results

    def _real(self, repair: Repair) -> list[list[float]]:
        """By row: the log ratio at the length; then its needles."""
        subject, last = self.subject, self.subject.settings.last
        long = torch.from_numpy(samples(subject.text, len(subject.groups), self.to))
        results = list[list[float]]()
        for row, needles in zip(long, self.needles, strict=True):
            short, cut = (self._led(row[-n - 1 :]) for n in (subject.length, repair.cut or self.to))
            own = losses(subject.network, short, last)
            with self._changed(repair) as network:
                ratio = float((losses(network, cut, last) - own).mean())
                read = functools.partial(scores_at, network)
                results.append([ratio, *_flat(recalled(needles, read, repair.cut, whole=True))])
        return results

    def _led(self, row: Tensor) -> Tensor:
        """A row (1, length + 1) with the token that a text begins with."""
        bos = self.subject.bos
        return (row if bos is None else torch.cat([torch.tensor([bos]), row[1:]]))[None]


def _flat(scores: Sequence[NeedleScore]) -> list[float]:
    return [x for score in scores for x in (score.log_probability, float(score.right))]
