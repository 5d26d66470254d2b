"""Which change at inference helps a trained model on long rows, is it advised, what does it cost?

The gap probe drops settings of a rotary model that lose too much. Those that are left read a row,
and the best of them two more (`halving`), each with needles at all distances. A reading is a real
row where that is cheaper than its forecast (`cost`), else the far field in one stage. Every number
is written down as it is made (`readings`), so that a stopped search goes on.

The text that is cut to the training length is the one that settings of a rotary model have to beat,
by right answers (`change_scores`). Where no text is cut, as in models without rotations, loss
decides: a graft with a window of the training length is taken where a paired interval over rows
says that it helps, and another change where the same test says that it helps more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

from farfield.theory.answers.answer import Answer, Label, Status
from farfield.theory.answers.blocks import Block, facts, note, sentence, table
from farfield.theory.answers.errors import refuse
from farfield.theory.answers.number import natural
from farfield.theory.encodings import Encoding, encoding
from farfield.validation.far_field.change_scores import (
    COST,
    Mended,
    advised,
    holds,
    lost,
    paired,
    pairs,
    rank,
    same,
    share,
    shown_below,
)
from farfield.validation.far_field.cost import timed
from farfield.validation.far_field.halving import Halving, reading_plan
from farfield.validation.far_field.model_on_text import (
    QUICK,
    ModelOnText,
    Settings,
    reach_of,
    subject_of,
)
from farfield.validation.far_field.readings import ENDS, RowReadings, Way
from farfield.validation.far_field.recall import bands, needles_of
from farfield.validation.far_field.rotary import Paste, pastes, settings_of
from farfield.validation.json_files import Book, writable_folder
from farfield.validation.models.folder import describe
from farfield.validation.models.repairs import FIRST_KEYS, Repair, candidates, recipe
from farfield.validation.models.speed import lasting
from farfield.validation.models.text import encoder_of
from farfield.validation.models.weights import stamped
from farfield.validation.progress import Progress, silent
from farfield.validation.uniform_guess import warned


class Advice(StrEnum):
    """What the answer says."""

    NOTHING = "nothing is to be mended"
    TAKE = "a change is advised"
    TRADE = "a change trades near needles for far ones"
    NO_DIFFERENCE = "no difference is shown"


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
                pays=pays if shown_below(less) else none,
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
        two, band = paired(far, cut), lost(*same(far, cut), found.trained, found.to)
        assert band is not None
        near = pairs(*(band.of(needles) for needles in same(far, cut)))
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
    each = [_cells(row, cut, found) for row in found.rows]
    columns = {head: [cells[head] for cells in each] for head in each[0]}
    return {head: column for head, column in columns.items() if any(column)}


def _cells(row: Mended, cut: Mended | None, found: Mending) -> dict[str, str]:
    """The cells of a change by their column, beside the cut text."""
    cells = {
        "change": row.repair,
        "forecast": _number(row.log_ratio),
        "measured": _number(row.measured and row.measured[0]),
        "loss": _signed(row.difference),
        f"at {found.length}": _number(row.short),
        f"at {found.trained}": _number(row.trained, "+.3f"),
        "keys": str(row.keys),
        "MiB": f"{row.mib:.3g}",
        "rows": str(row.rows or ""),
    }
    for band in bands(found.trained, found.to):
        right = share(band.of(row.needles))
        cells[f"recall to {band.high}"] = (
            f"{right.right}/{right.asked} ({right.low:.2f} to {right.high:.2f})" if right else ""
        )
    against = ""
    if cut is not None and row is not cut and row.needles:
        two, near = paired(row, cut), lost(*same(row, cut), found.trained, found.to)
        against = f"{two.first}, {two.second} (p {two.p:.2g}{', loses near' if near else ''})"
    return cells | {"it alone, cut alone": against}


def _number(x: float | None, form: str = ".3f") -> str:
    return "" if x is None else f"{x:{form}}"


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
        dtype: float32, bfloat16 or float16; None for the weights' own, where the device multiplies
            it.
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
    probes = sum(repair.window is None for repair in asked)
    plan = reading_plan(subject, far, timed(subject), measure, quick, minutes, probes)
    progress(subject.first(plan.text), 0, 0)
    kind = next(subject.live.parameters()).dtype
    asks = str((far, subject.settings, subject.bos, told, kind, ENDS)).encode()
    kept = Path(folder) / stamped(subject.outline, asks, subject.groups.numpy().tobytes())
    readings = RowReadings(subject, far, plan.way, Book(kept), tuple(told))
    search = Halving(readings, plan, progress)
    search.halve(asked)
    return _mending(search, asked, most)


def _mending(search: Halving, asked: Sequence[Repair], most: int) -> Mending:
    """The answer of a search that is done, whose best change keeps at most so many keys."""
    readings, plan, subject = search.readings, search.plan, search.readings.subject
    rows = {repair: search.line(repair) for repair in asked}
    best, advice = _advised(rows, search, most)
    ranked = [row for r, row in rows.items() if r != best]
    ranked.sort(key=lambda row: rank(row, bool(search.base.cut)))
    other = search.left[0] if advice is Advice.TRADE else None
    config = getattr(subject.live, "config", None)
    pasted = config is not None and subject.turns() and best != Repair()
    return Mending(
        status=Status.ENCLOSED,
        label=Label.MEASURED if plan.way is Way.REAL else Label.FORECAST,
        subject=subject.outline.name,
        to=readings.to,
        length=subject.length,
        trained=readings.trained,
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
        pastes=pastes(other or best, config, readings.to) if pasted else (),
        way=plan.way.value,
        seconds=plan.seconds,
        source=subject.source,
        guess=subject.guess,
    )


def _changes(subject: ModelOnText, to: int) -> list[Repair]:
    """The candidates: settings of rotations for a model of the library that turns its queries."""
    config, trained = getattr(subject.live, "config", None), subject.outline.trained
    if config is not None and trained is not None and subject.turns():
        refuse(
            subject.length > trained,
            f"length {subject.length} is beyond the training length, {trained} tokens, to which a "
            "setting cuts the text; accepted: at most that",
        )
        return settings_of(config, trained, to)
    held = [Repair(window=subject.length, sinks=FIRST_KEYS, in_cache=True)] * subject.turns()
    return [*candidates(subject.length), *held]


def _advised(rows: Mapping[Repair, Mended], search: Halving, most: int) -> tuple[Repair, Advice]:
    """The change to take, and why; see the top of this module."""
    base, none = search.base, Repair()
    trained, to = search.readings.trained, search.readings.to
    allowed = (repair for repair in search.left if repair.keys(to) <= most)
    first = next(allowed, base)  # the probe may drop all others
    if base.cut:
        own, cut, row = rows[none], rows[base], rows[first]
        if none.keys(to) <= most and holds(own, cut, trained, to):
            return none, Advice.NOTHING
        if row.dear or not paired(row, cut).better:
            return base, Advice.NO_DIFFERENCE
        takes = advised(*same(row, cut), trained, to)
        return (first, Advice.TAKE) if takes else (base, Advice.TRADE)
    default = recipe(search.readings.subject.length)
    if default in rows and first != default:
        first = first if shown_below(search.apart(first, default)) else default
    if none.keys(to) > most or shown_below(rows[first].difference):
        return first, Advice.TAKE
    loss = rows[none].loss
    return none, Advice.NOTHING if loss is not None and loss <= COST else Advice.NO_DIFFERENCE


def _formula(repair: Repair, layer: int, trained: Encoding | None) -> str | None:
    """The bias of a layer under a change, as `encoding` reads it."""
    if trained is None and repair.graft is None:
        return None
    changed = encoding("0") if trained is None else trained
    if not repair.layers or layer in repair.layers:
        changed = repair.encoding(changed)
    each = [str(bias) for bias in changed.biases]
    return each[0] if len(each) == 1 else f"[{'; '.join(each)}]"
