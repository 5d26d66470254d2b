"""Which change at inference helps a trained model on long rows, and what does it cost?

Changes are halved. The gap probe drops settings of a rotary model that lose too much. What is left
reads a row, the better half another one, the last of them the rest, each with needles at all
distances. A reading is a real row where that is cheaper than its forecast (`cost`), else the far
field in one stage. Every number is written down as it is made, so that a stopped search goes on.

The text that is cut to the training length is the one that settings of a rotary model have to beat,
by right answers (`advice`). Where no text is cut, as in models without rotations, loss decides: a
graft with a window of the training length is taken where a paired interval over rows says that it
helps, and another change where the same test says that it helps more.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
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
from farfield.validation.far_field.advice import (
    NeedleScore,
    Pairs,
    advised,
    bands,
    lost,
    order,
    pairs,
    share,
)
from farfield.validation.far_field.cost import ROWS, Work, lasting, timed
from farfield.validation.far_field.probe import COST, gap_losses, mean_and_half
from farfield.validation.far_field.recall import (
    BLOCK,
    MOST,
    NeedleRow,
    Told,
    distances,
    needle_row,
    needles_of,
    recalled,
)
from farfield.validation.far_field.rotary import Paste, applied, pastes, settings_of
from farfield.validation.far_field.stages import Stages
from farfield.validation.far_field.subject import (
    QUICK,
    ModelOnText,
    Settings,
    reach_of,
    subject_of,
)
from farfield.validation.json_files import Book, writable_folder
from farfield.validation.models.cache import Serving, row_cache
from farfield.validation.models.folder import describe
from farfield.validation.models.network import losses, scores_at
from farfield.validation.models.opened import available
from farfield.validation.models.repairs import (
    FIRST_KEYS,
    Repair,
    Repaired,
    candidates,
    recipe,
)
from farfield.validation.models.text import encoder_of
from farfield.validation.models.weights import stamped
from farfield.validation.progress import Progress, silent
from farfield.validation.uniform_guess import warned

LEAVES = (3, 2, 1)
"""Settings beside the cut text that each round reads its rows with."""
BUDGET = 0.1
"""Nats above the best loss at which the probe drops a setting."""
TARGETS = 256  # of a real row
_GOLDEN = (math.sqrt(5) - 1) / 2


class Way(StrEnum):
    """How a row is read."""

    REAL = "real rows"
    FAR = "far field"
    PROBE = "gap probe"


class Advice(StrEnum):
    """What the answer says."""

    NOTHING = "nothing is to be mended"
    TAKE = "a change is advised"
    TRADE = "a change trades near needles for far ones"
    NO_DIFFERENCE = "no difference is shown"


@dataclass(frozen=True)
class Mended:
    """A change and what was read of it.

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


@dataclass(frozen=True, repr=False, kw_only=True)
class Mending(Answer):
    """Changes of a model at inference, the best first.

    Fields:
        to, length: tokens of the row that is asked about, and of the rows that were read.
        trained: the training length.
        rows: each change, no change among them.
        best: the one to take: `none` where nothing is to be mended.
        advice: why: `Advice` as text.
        encoding: of each layer under it, as text; None for a layer without a bias.
        window: keys that it leaves, None for all.
        alternative: the change that trades near needles for far ones, where that is the advice.
        rival: where no text is cut, the best change but the recipe, and its loss less the recipe's
            on the same rows, with half its 95 % interval. A search pays where that is below 0.
        pastes: what transformers, vLLM and llama.cpp take for it, or for the alternative; none
            where nothing turns.
        way: how rows were read: `Way` as text.
        seconds: of a real row, of a forecast of one, by one short row that was timed.
        source: the text.
        guess: what is said of a model that has not learned.
    """

    VALUE: ClassVar[str] = "log_ratio"

    to: int
    length: int
    trained: int
    log_ratio: float
    rows: tuple[Mended, ...]
    best: str
    advice: str
    encoding: tuple[str | None, ...]
    window: int | None
    alternative: str = ""
    rival: tuple[str, tuple[float, float | None]] | None = None
    pastes: tuple[Paste, ...] = ()
    way: str = ""
    seconds: tuple[float, float] = (0.0, 0.0)
    source: str = ""
    guess: str = ""

    def _blocks(self) -> Iterator[Block]:
        best = next(row for row in self.rows if row.repair == self.best)
        cut = next((row for row in self.rows if row.cuts), None)
        yield sentence(
            "{model} at {to} tokens: {text}.",
            self.label,
            model=self.subject,
            to=self.to,
            text=_answer(self, best, cut),
        )
        yield from warned(self.guess)
        if self.rival is not None and self.advice != Advice.NOTHING:
            name, less = self.rival
            pays = f"A search pays: {name} changes it by"
            none = f"No search pays: the best other change, {name}, is not shown to help more:"
            yield sentence(
                "{pays} {less} nats beside {recipe}.",
                self.label,
                pays=pays if _shown_below(less) else none,
                less=_signed(less),
                recipe=recipe(self.length).name,
            )
        beyond = share([n for n in best.needles if n.distance > self.trained])
        if beyond is not None and 2 * beyond.right < beyond.asked:
            yield sentence(
                "Nothing helps enough: {lost} of {asked} short facts beyond {trained} tokens are "
                "lost. Take a model trained longer, or retrieve.",
                self.label,
                lost=beyond.asked - beyond.right,
                asked=beyond.asked,
                trained=self.trained,
            )
        columns = _columns(self, cut)
        yield table(tuple(columns), [*zip(*columns.values(), strict=True)], numeric=range(1, 4))
        for paste in self.pastes:
            each = {**paste._asdict(), "text": paste.text or "nothing to paste"}
            yield note("{library} ({versions}), {where}: {text}", **each)
        yield facts(text=self.source)
        yield note(
            "Read: {way}. A real row takes about {real} here, its forecast {said}.",
            way=self.way,
            real=lasting(self.seconds[0]),
            said=lasting(self.seconds[1]),
        )
        yield note(
            "Recall: right answers among needles up to that many tokens back, with 95 % intervals "
            "over rows and needles. Differences of loss are to {base} on the same rows. A window "
            "gives up what is far, which the loss does not show.",
            base="the cut text" if cut else "no change",
        )
        if self.way == Way.PROBE:
            yield note(
                "The gap probe sees positions alone, without the dilution of a long row and "
                "without what its text is worth: take its differences, not its levels."
            )


def _answer(found: Mending, best: Mended, cut: Mended | None) -> str:
    """The answer in words."""
    if found.advice == Advice.NOTHING:
        return "it does not break, so nothing is to be mended"
    if cut is None:
        if found.advice == Advice.NO_DIFFERENCE:
            return "no change is shown to help"
        return f"take {best.repair}: it changes the loss by {_signed(best.difference)} nats"
    if found.advice == Advice.TRADE:
        far = next(row for row in found.rows if row.repair == found.alternative)
        two, band = _paired(far, cut), lost(*_same(far, cut), found.trained, found.to)
        assert band is not None
        near = pairs(*(band.of(needles) for needles in _same(far, cut)))
        return (
            f"{far.repair} trades near needles for far ones: it alone recalls {two.first}, the "
            f"{cut.repair} alone {two.second}, but from {band.low} to {band.high} tokens back "
            f"{near.first} and {near.second}; take it only for what is far"
        )
    if found.advice == Advice.NO_DIFFERENCE:
        right = share(cut.needles)
        asked = f", which recalls {right.right} of {right.asked} needles" if right else ""
        return f"no difference is shown: no setting recalls more than the {cut.repair}{asked}"
    two, own, other = pairs(best.needles, cut.needles), share(best.needles), share(cut.needles)
    assert own is not None and other is not None
    return (
        f"take {best.repair}: it recalls {own.right} of {own.asked} needles, the {cut.repair} "
        f"{other.right} ({two.first} are recalled by it alone, {two.second} by the cut text alone, "
        f"p = {two.p:.2g})"
    )


def _signed(difference: tuple[float, float | None] | None) -> str:
    """A difference with its interval, as text."""
    if difference is None:
        return ""
    mean, half = difference
    return f"{mean:+.3f}" if half is None else f"{mean:+.3f} ± {half:.3f}"


def _columns(found: Mending, cut: Mended | None) -> dict[str, list[str]]:
    """The columns of the table that are not empty."""
    rows, near = found.rows, bands(found.trained, found.to)

    def against(row: Mended) -> str:
        if cut is None or row is cut or len(row.needles) == 0:
            return ""
        two = _paired(row, cut)
        band = lost(*_same(row, cut), found.trained, found.to)
        return f"{two.first}, {two.second} (p {two.p:.2g}{', loses near' if band else ''})"

    def recalled_in(row: Mended, band: Any) -> str:
        right = share(band.of(row.needles))
        return f"{right.right}/{right.asked} ({right.low:.2f} to {right.high:.2f})" if right else ""

    columns = {
        "change": [row.repair for row in rows],
        "forecast": ["" if row.log_ratio is None else f"{row.log_ratio:.3f}" for row in rows],
        "measured": ["" if row.measured is None else f"{row.measured[0]:.3f}" for row in rows],
        "loss": [_signed(row.difference) for row in rows],
        f"at {found.length}": ["" if row.short is None else f"{row.short:.3f}" for row in rows],
        f"at {found.trained}": [
            "" if row.trained is None else f"{row.trained:+.3f}" for row in rows
        ],
        "keys": [str(row.keys) for row in rows],
        "MiB": [f"{row.mib:.3g}" for row in rows],
        "rows": [str(row.rows or "") for row in rows],
    }
    for band in near:
        columns[f"recall to {band.high}"] = [recalled_in(row, band) for row in rows]
    columns["it alone, cut alone"] = [against(row) for row in rows]
    return {head: cells for head, cells in columns.items() if any(cells)}


def _same(one: Mended, other: Mended) -> tuple[list[NeedleScore], list[NeedleScore]]:
    """The needles of rows that both were read with."""
    rows = {n.row for n in one.needles} & {n.row for n in other.needles}
    first, second = ([n for n in x.needles if n.row in rows] for x in (one, other))
    return first, second


def _paired(one: Mended, other: Mended) -> Pairs:
    return pairs(*_same(one, other))


def mend(
    model: Any,
    text: Any = None,
    *,
    to: Any,
    keys: Any = None,
    length: Any = None,
    settings: Settings | None = None,
    measure: bool | None = None,
    quick: bool = False,
    minutes: float | None = None,
    needles: str | os.PathLike[str] | None = None,
    device: Any = None,
    dtype: Any = None,
    folder: str | os.PathLike[str] = "out/mend",
    progress: Progress = silent,
) -> Mending:
    """Changes at inference for rows of `to` tokens, and the one to take.

    Args:
        model: a folder of a finished run, or a model of the library transformers.
        text: a file or a folder; None takes the text of the run, or the standard library's code.
        to: tokens of the row.
        keys: that a query may see at most; None for no limit.
        length: of the short rows that are read, as of `foresee`.
        settings: how much is read, and how.
        measure: whether rows are real ones; None where they cost less than their forecast, or fit
            into `minutes`.
        quick: whether to ask the gap probe alone.
        minutes: that reading may take; None for those of eight long rows.
        needles: a file of one's own needles, a JSON object a line with `context`, `question` and
            `answer`.
        device: of torch, as cuda; None for the CPU, or where a live model is.
        dtype: float32, bfloat16 or float16; None for that of the weights where the device
            multiplies it.
        folder: where numbers are written down; a search that was stopped goes on from there.
        progress: called as `progress(stage, done, total, note)`; the note is the newest number.

    Raises:
        InputError: as `foresee`; no candidate keeps so few keys; a model that turns its queries,
            and `to` within its training length; needles of another form, or without a tokenizer;
            a folder that cannot be written to.
    """
    refuse(
        minutes is not None and not 0 < minutes < 1e6,
        f"minutes {minutes}; accepted: a number above 0",
    )
    writable_folder(folder)
    outline = describe(model)
    told = () if needles is None else needles_of(needles, encoder_of(outline))
    few = settings or (QUICK if quick else None)
    subject = subject_of(outline, text, length, few, device, dtype)
    far = reach_of(subject, to)
    most = far if keys is None else natural(keys, "keys")
    found = _changes(subject, far)
    asked = [Repair(), *(repair for repair in found if repair.keys(far) <= most)]
    refuse(
        len(asked) == 1,
        f"no change keeps at most {most} keys; the least keeps {min(r.keys(far) for r in found)}",
    )
    plan = _plan(subject, far, timed(subject), measure, quick, minutes)
    progress(subject.first(plan.text), 0, 0)
    kind = next(subject.live.parameters()).dtype
    asks = str((far, subject.settings, subject.bos, told, kind)).encode()
    place = Path(folder) / stamped(subject.outline, asks, subject.groups.numpy().tobytes())
    search = _Halving(subject, far, plan, Book(place), tuple(told), progress)
    search.halve(asked)
    rows = {repair: search.line(repair) for repair in asked}
    best, advice = _advised(rows, search, most)
    ranked = [row for r, row in rows.items() if r != best]
    ranked.sort(key=lambda row: _rank(row, search.base is not None and bool(search.base.cut)))
    other = search.left[0] if advice is Advice.TRADE else None
    pasted = () if best == Repair() else _pasted(subject, other or best, far)
    return Mending(
        status=Status.ENCLOSED,
        label=Label.MEASURED if plan.way is Way.REAL else Label.FORECAST,
        subject=subject.outline.name,
        to=far,
        length=subject.length,
        trained=search.trained,
        log_ratio=rows[best].loss or 0.0,
        rows=(rows[best], *ranked),
        best=best.name,
        advice=advice.value,
        encoding=tuple(
            _formula(best, at, layer.encoding) for at, layer in enumerate(subject.outline.layers, 1)
        ),
        window=best.window,
        alternative=other.name if other else "",
        rival=search.rival(),
        pastes=pasted,
        way=plan.way.value,
        seconds=plan.seconds,
        source=subject.source,
        guess=subject.guess,
    )


def _pasted(subject: ModelOnText, best: Repair, to: int) -> tuple[Paste, ...]:
    """What libraries take for the best change."""
    config = getattr(subject.live, "config", None)
    return () if config is None or not subject.turns() else pastes(best, config, to)


def _changes(subject: ModelOnText, to: int) -> list[Repair]:
    """The candidates: settings of rotations for a model of the library that turns its queries."""
    config, trained = getattr(subject.live, "config", None), subject.outline.trained
    if config is not None and trained is not None and subject.turns():
        return settings_of(config, trained, to)
    held = [Repair(window=subject.length, sinks=FIRST_KEYS, in_cache=True)] * subject.turns()
    return [*candidates(subject.length), *held]


# -- the plan -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ReadingPlan:
    """How rows are read, how many, and what a real row and a forecast of one cost in seconds."""

    way: Way
    rows: int
    seconds: tuple[float, float]
    text: str


def _plan(
    subject: ModelOnText,
    to: int,
    work: Work,
    measure: bool | None,
    quick: bool,
    minutes: float | None,
) -> _ReadingPlan:
    """Real rows where they cost less than their forecast, or where the time is given."""
    real, how = work.real(Repair(), to), subject.settings
    foreseen = work.foreseen(subject.length, how.rows, how.check.samples)
    if quick:
        foreseen = work.probed(subject.length)
    free, text = available(), len(subject.text) > to
    fits = free is None or work.memory(to) < free
    time = ROWS * real if minutes is None else 60 * minutes
    if measure is None:
        measure = not quick and text and fits and (real <= foreseen or minutes is not None)
    refuse(
        measure and not text,
        f"{subject.source} has {len(subject.text)} tokens, a real row takes {to + 1}; accepted: a "
        "longer text, or no --measure",
    )
    refuse(
        measure and not fits,
        f"a real row of {to} tokens takes about {work.memory(to) >> 20:,} MiB beside the weights, "
        f"{(free or 0) >> 20:,} MiB are free; accepted: a shorter row, or no --measure",
    )
    way = Way.REAL if measure else Way.PROBE if quick else Way.FAR
    one, rows = real if measure else foreseen, len(subject.groups)
    base = work.real(Repair(cut=subject.outline.trained), to) if measure else one
    each = one * sum(LEAVES) + base * len(LEAVES)  # of the halving, with one row a round
    if measure and subject.turns():
        rows = max(len(LEAVES), min(12, int(len(LEAVES) * time / max(each, 1e-9))))
    costs = f"a real row takes about {lasting(real)} and its forecast {lasting(foreseen)}"
    lasts = lasting(each * rows / len(LEAVES))
    why = f"about {lasts}: {rows} rows, as {way.value}, since {costs}"
    return _ReadingPlan(way, rows, (real, foreseen), why)


# -- readings -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Reading:
    """What one row says of a change: log ratio to the unchanged model on the short row of the same
    targets, and its needles."""

    loss: float
    needles: tuple[NeedleScore, ...]


@dataclass
class _Halving:
    """A model on a text, the length that is asked about, and what was read."""

    subject: ModelOnText
    to: int
    plan: _ReadingPlan
    book: Book
    told: tuple[Told, ...]
    progress: Progress
    base: Repair | None = None
    read: dict[Repair, dict[int, _Reading]] = field(default_factory=dict)
    probed: dict[Repair, float] = field(default_factory=dict)
    left: list[Repair] = field(default_factory=list)
    rows: dict[int, NeedleRow] = field(default_factory=dict)
    plain: dict[tuple[int, int], Tensor] = field(default_factory=dict)

    @property
    def trained(self) -> int:
        """The training length."""
        return self.subject.outline.trained or self.subject.length

    def halve(self, asked: Sequence[Repair]) -> None:
        """Read rows of fewer and fewer changes."""
        self.base = next((repair for repair in asked if repair.cut), None)
        others = [repair for repair in asked if repair != self.base]
        if self.base is not None:
            others = self._screened(others)
        else:
            self.base = Repair()
            others = [repair for repair in others if repair != self.base]
        parts = np.array_split(np.arange(self.plan.rows), len(LEAVES))
        cut, done = bool(self.base.cut), 0
        leaves: tuple[int, ...] = LEAVES if cut else (len(others), len(others) // 2, 2)
        leaves = tuple(min(n, len(others)) for n in leaves)
        total = sum((1 + n) * len(part) for n, part in zip(leaves, parts, strict=True))
        for leave, part in zip(leaves, parts, strict=True):
            default = recipe(self.subject.length)
            others.sort(key=lambda r: _rank(self.line(r), cut))
            kept = others[:leave]
            if not cut and default in others and default not in kept:
                kept[-1] = default  # it is what another change has to beat
            others = kept
            for row, repair in itertools.product(part.tolist(), (self.base, *others)):
                reading = self._reading(repair, row)
                self.read.setdefault(repair, {})[row] = reading
                done += 1
                right = sum(n.right for n in reading.needles)
                said = f"{right} of {len(reading.needles)} needles, loss {reading.loss:+.3f}"
                line = f"{repair.name}, row {row + 1}: {said}"
                self.progress(f"{line} ({done} of {max(done, total)} read)", 0, 0)
                self.progress("rows", done, max(done, total), line)
        others.sort(key=lambda r: _rank(self.line(r), cut))
        self.left = others

    def _screened(self, asked: Sequence[Repair]) -> list[Repair]:
        """Changes without a window, the best first by the gap probe; dropped are those whose loss
        is `BUDGET` above the best, and shown to be above it."""
        seen = [repair for repair in (self.base, *asked) if repair and repair.window is None]
        losses = dict[Repair, np.ndarray]()
        for done, repair in enumerate(seen, 1):
            losses[repair] = self._gaps(repair).ravel()
            self.probed[repair] = float(losses[repair].mean())
            said = f"{repair.name}, gap probe: log ratio {self.probed[repair]:+.3f}"
            self.progress(f"{said} ({done} of {len(seen)} settings)", 0, 0)
            self.progress("settings", done, len(seen), said)
        best = losses[min(self.probed, key=self.probed.__getitem__)]
        above = {repair: mean_and_half(each - best) for repair, each in losses.items()}
        kept = [r for r in seen if r != self.base and above[r][0] <= max(BUDGET, above[r][1])]
        return sorted(kept, key=self.probed.__getitem__)

    def line(self, repair: Repair) -> Mended:
        """What is known of a change."""
        each, real = self.read.get(repair, {}), self.plan.way is Way.REAL
        losses = np.array([reading.loss for reading in each.values()])
        needles = tuple(n for reading in each.values() for n in reading.needles)
        base = self.read.get(self.base or Repair(), {})
        both = np.array([each[k].loss - base[k].loss for k in each if k in base])
        moves = repair in self.left[:1] and self.subject.turns() and not repair.cut
        cache = row_cache(self.subject.outline.layers, repair.keys(self.to), Serving())
        mean = float(losses.mean()) if len(losses) else None
        return Mended(
            repair=repair.name,
            log_ratio=self.probed.get(repair) if real or mean is None else mean,
            short=self._at(repair, self.subject.length) if moves else None,
            trained=self._at(repair, self.trained) if moves else None,
            keys=repair.keys(self.to),
            mib=cache.least / (1 << 20),
            recall=() if real else needles,
            measured=interval(losses) if real and mean is not None else None,
            real=needles if real else (),
            difference=interval(both) if len(both) and repair != self.base else None,
            rows=len(losses),
        )

    def apart(self, one: Repair, other: Repair) -> tuple[float, float | None]:
        """The difference of losses of two changes on the same rows, with half its interval."""
        first, second = (self.read.get(repair, {}) for repair in (one, other))
        both = [first[k].loss - second[k].loss for k in first if k in second]
        return interval(np.array(both)) if both else (0.0, None)

    def rival(self) -> tuple[str, tuple[float, float | None]] | None:
        """The best change but the recipe, and how it differs from it; None where a text is cut."""
        default = recipe(self.subject.length)
        others = [repair for repair in self.left if repair != default]
        if (self.base and self.base.cut) or default not in self.left or not others:
            return None
        return others[0].name, self.apart(others[0], default)

    def _reading(self, repair: Repair, row: int) -> _Reading:
        """What a row says, from the book where it stands there."""
        ask = {Way.REAL: self._real, Way.FAR: self._foreseen, Way.PROBE: self._near}[self.plan.way]

        def made() -> list[float]:
            with self._changed(repair) as network:
                loss, scores = ask(repair, network, row)
            return [
                loss,
                *(n.log_probability for n in scores),
                *(float(n.right) for n in scores),
            ]

        flat = self.book.of(f"{self.plan.way}, row {row}: {repair.name}", made)
        loss, (logs, right) = flat[0], np.reshape(flat[1:], (2, -1)).tolist()
        each = zip(self._needles(row).needles, logs, right, strict=True)
        scores = (NeedleScore(n.kind, n.distance, p, bool(r), n.chance, row) for n, p, r in each)
        return _Reading(loss, tuple(scores))

    @functools.cached_property
    def _asked(self) -> Callable[[str], Sequence[int]] | None:
        """The tokenizer; None where a block has no room for words."""
        return self.subject.encode if min(self.subject.length, BLOCK) == BLOCK else None

    def _needles(self, row: int) -> NeedleRow:
        """A row of the text with needles."""
        if row not in self.rows:
            self.rows[row] = self._needle_row(row)
        return self.rows[row]

    def _needle_row(self, row: int) -> NeedleRow:
        block, most, encode = min(self.subject.length, BLOCK), MOST, self._asked
        if self.plan.way is Way.REAL and block == BLOCK and self.to >= 8 * BLOCK:
            block, most = 2 * block, 2 * most  # needles of a row that is read whole cost nothing
        if encode is not None:
            text = [f"{n.question} {n.answer}" for n in self.told] or ["The code of Alice is 1234."]
            most = min(most, 3 * block // (4 * max(len(encode(x)) + 1 for x in text)))
            most = min(most, len(self.told) or most)
        text = torch.from_numpy(self.subject.text.astype(np.int64))
        places = distances(block, self.to, self.trained, most)
        begin = begins(len(text) - self.to, row)
        return needle_row(encode, text[begin:], self.to, places, row, block, self.told)

    @contextmanager
    def _changed(self, repair: Repair) -> Iterator[Repaired]:
        """The network under a change."""
        with applied(self.subject.live, repair):
            yield Repaired(self.subject.network, repair)

    def _real(self, repair: Repair, network: Repaired, row: int) -> tuple[float, list[NeedleScore]]:
        """A real row, in one pass."""
        needles = self._needles(row)
        last = min(TARGETS, self.subject.length // 2)

        def read(tokens: Tensor, positions: Tensor, keep: Tensor) -> Tensor:
            return scores_at(network, self._led(tokens), positions, keep)

        nats, scores = recalled(needles, read, repair.cut, whole=True, last=last)
        short = needles.tokens[needles.asks - self.subject.length - 1 : needles.asks][None]
        own = self.book.of(
            f"short row {row}",
            lambda: [float(self._plain(short, last))],
        )
        return float(nats.mean()) - own[0], scores

    def _plain(self, rows: Tensor, last: int) -> Tensor:
        """Loss of the unchanged model on short rows."""
        return losses(self.subject.network, self._led(rows), last).mean()

    def _led(self, tokens: Tensor) -> Tensor:
        """Rows with the token that a text begins with."""
        bos = self.subject.bos
        if bos is None:
            return tokens
        return torch.cat([torch.full_like(tokens[:, :1], bos), tokens[:, 1:]], 1)

    def _near(self, repair: Repair, network: Repaired, row: int) -> tuple[float, list[NeedleScore]]:
        """A row by the gap probe."""
        _, scores = recalled(self._needles(row), functools.partial(scores_at, network), repair.cut)
        return float(self._gaps(repair)[row].mean()), scores

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
        return float((loss - subject.base[row]).mean()), scores

    def _gaps(self, repair: Repair) -> np.ndarray:
        """Log ratios by the gap probe at the length, (groups, targets); one group for real rows."""
        groups = len(self.subject.groups) if self.plan.way is Way.PROBE else 1
        length = self.subject.length if repair.window else repair.cut or self.to

        def made() -> list[float]:
            return self._over_plain(repair, groups, length, self.subject.length).ravel().tolist()

        flat = self.book.of(f"gap probe, {groups} rows: {repair.name}", made)
        return np.reshape(flat, (groups, -1))

    def _at(self, repair: Repair, length: int) -> float:
        """The log ratio to the unchanged model at a length within the training length."""

        def made() -> list[float]:
            return [float(self._over_plain(repair, 1, length, length).mean())]

        return self.book.of(f"at {length}: {repair.name}", made)[0]

    def _over_plain(self, repair: Repair, groups: int, length: int, own: int) -> Tensor:
        """Losses by the gap probe at a length, over those of the unchanged model at another one,
        which are computed once; (groups, targets)."""
        rows = self.subject.groups[:groups, 0]
        if (groups, own) not in self.plain:
            self.plain[groups, own] = gap_losses(self.subject.network, rows, own)
        with self._changed(repair) as network:
            return gap_losses(network, rows, length) - self.plain[groups, own]


def interval(values: np.ndarray) -> tuple[float, float | None]:
    """The mean and half its 95 % interval over rows, which one row has not."""
    return mean_and_half(values) if len(values) > 1 else (float(values[0]), None)


def begins(free: int, row: int) -> int:
    """Where a row begins in a text with so many tokens more than a row: spread over it however many
    rows there are, so that a search with more time goes on with the same ones.

    >>> [begins(1000, row) for row in range(4)]
    [0, 618, 236, 854]
    """
    return int(row * _GOLDEN % 1 * max(0, free))


# -- advice ---------------------------------------------------------------------------------------


def _rank(row: Mended, by_recall: bool) -> tuple[float, ...]:
    """What changes are put in order by: those that were read first, by the share of right answers
    where a text can be cut and the loss is within the budget, else by loss."""
    loss = row.difference[0] if row.difference else 0.0 if row.rows else row.loss
    least = math.inf if loss is None else loss
    if not by_recall or not row.needles:
        return 2.0 * (not row.rows), least, 0.0
    right, gain = order(row.needles)
    return float(row.dear), -right / len(row.needles), -gain


def _shown_below(difference: tuple[float, float | None] | None) -> bool:
    """Whether a paired interval lies below 0."""
    mean, half = difference or (0.0, None)
    return half is not None and mean + half < 0


def _advised(rows: Mapping[Repair, Mended], search: _Halving, most: int) -> tuple[Repair, Advice]:
    """The change to take, and why; see the top of this module."""
    base, none, to = search.base or Repair(), Repair(), search.to
    if base.cut:
        own, cut = rows[none], rows[base]
        if own.rows and _holds(own, cut, search.trained, to):
            return none, Advice.NOTHING
        for repair in search.left[:1]:
            row = rows[repair]
            if row.dear or not _paired(row, cut).better:
                continue
            if advised(*_same(row, cut), search.trained, to):
                return repair, Advice.TAKE
            return base, Advice.TRADE
        return base, Advice.NO_DIFFERENCE
    default, first = recipe(search.subject.length), search.left[0]
    if default in rows and first != default:
        first = first if _shown_below(search.apart(first, default)) else default
    if none.keys(to) > most or _shown_below(rows[first].difference):
        return first, Advice.TAKE
    loss = rows[none].loss
    return none, Advice.NOTHING if loss is not None and loss <= COST else Advice.NO_DIFFERENCE


def _holds(own: Mended, cut: Mended, trained: int, to: int) -> bool:
    """Whether the unchanged model does not break: by loss, and by needles of every band."""
    mine, theirs = _same(own, cut)
    loss = own.difference[0] if own.difference else math.inf
    return loss <= COST and not pairs(theirs, mine).better and not lost(mine, theirs, trained, to)


def _formula(repair: Repair, layer: int, trained: Encoding | None) -> str | None:
    """The bias of a layer under a change, as `encoding` reads it."""
    if trained is None and repair.graft is None:
        return None
    changed = encoding("0") if trained is None else trained
    if not repair.layers or layer in repair.layers:
        changed = repair.encoding(changed)
    each = [str(bias) for bias in changed.biases]
    return each[0] if len(each) == 1 else f"[{'; '.join(each)}]"
