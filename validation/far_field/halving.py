"""Changes are halved: how each is read, and how many rows there is time for.

The gap probe drops settings of a rotary model that lose too much. Those that are left read a row,
and the best of them two more.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from farfield.theory.answers.errors import refuse
from farfield.validation.far_field import cost
from farfield.validation.far_field.change_scores import BUDGET, Mended, rank
from farfield.validation.far_field.intervals import mean_and_half
from farfield.validation.far_field.model_on_text import ModelOnText
from farfield.validation.far_field.readings import ENDS, RowReading, RowReadings, Way
from farfield.validation.models.cache import Serving, row_cache
from farfield.validation.models.opened import available
from farfield.validation.models.repairs import Repair, recipe
from farfield.validation.models.speed import Work, lasting
from farfield.validation.progress import Progress

ROUNDS = 3
"""The first one reads all settings that are left, each later one the best of them."""
FEW, WIDE = 3, 5
"""Settings beside the cut text that the first round reads, at least and at most."""
_MORE = 1.1  # time of a row under a setting, in plain ones: keys are turned twice


@dataclass(frozen=True)
class ReadingPlan:
    """How rows are read.

    Fields:
        way: what reads them.
        rows: how many, over all rounds.
        first: settings beside the cut text that the first round reads.
        seconds: of a real row, of a forecast of one.
        text: all of it in words.
    """

    way: Way
    rows: int
    first: int
    seconds: tuple[float, float]
    text: str


def reading_plan(
    subject: ModelOnText,
    to: int,
    work: Work,
    measure: bool | None,
    quick: bool,
    minutes: float | None,
    probes: int,
) -> ReadingPlan:
    """Real rows where they cost less than their forecast, or where the time is given.

    Args:
        subject: the model and its text.
        to: tokens of a row.
        work: the model's speed.
        measure: whether rows are real ones; None for what is cheaper.
        quick: whether the gap probe alone is asked.
        minutes: that reading may take; None for the time of eight real rows.
        probes: short rows that are read before the first round.

    Raises:
        InputError: real rows that the text or the memory has no room for.
    """
    row, how, real = subject.length, subject.settings, cost.real(work, Repair(), to)
    foreseen = cost.foreseen(work, row, how.rows, how.check.samples)
    if quick:
        foreseen = cost.probed(work, row)
    if measure is None and (quick or (foreseen < real and minutes is None)):
        measure = False
    rows, first, seconds = len(subject.groups), FEW, cost.SearchSeconds(_MORE * foreseen, foreseen)
    if measured := _reads_whole(subject, to, work, measure):
        cut, end = Repair(cut=subject.outline.trained), cost.further(work, row, to)
        before = probes * work.of(row, row**2 / 2)
        seconds = cost.SearchSeconds(
            _MORE * real, cost.real(work, cut, to), (ENDS - 1) * end, before
        )
    time = cost.ROWS * real if minutes is None else 60 * minutes
    if measured and subject.turns():
        plans = itertools.product((12, 9, 6, 3), range(WIDE, FEW - 1, -1))
        fitting = ((n, few) for n, few in plans if seconds.of(n, few, ROUNDS) <= time)
        rows, first = next(fitting, (ROUNDS, FEW))
    way = Way.REAL if measured else Way.PROBE if quick else Way.FAR
    costs = f"a real row takes about {lasting(real)} and its forecast {lasting(foreseen)}"
    lasts = lasting(seconds.of(rows, first, ROUNDS))
    told = f"about {lasts}: {rows} rows, as {way.value}, since {costs}"
    return ReadingPlan(way, rows, first, (real, foreseen), told)


def _reads_whole(subject: ModelOnText, to: int, work: Work, measure: bool | None) -> bool:
    """Whether real rows are read: as asked, or where text and memory have room for them.

    Raises:
        InputError: they are asked for, and there is no room.
    """
    free, text = available(), len(subject.text) > to
    fits = free is None or work.memory(to) < free
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
    return bool(text and fits) if measure is None else measure


@dataclass
class Halving:
    """The readings of changes, and the changes that are left.

    Args:
        readings: of rows of a text.
        plan: how many are read.
        progress: told of each.
        base: the change that others have to beat: the cut text, or none.
        read: the reading of each row, by change.
        probed: log ratios by the gap probe.
        left: what the last round read beside the base, the best first.
    """

    readings: RowReadings
    plan: ReadingPlan
    progress: Progress
    base: Repair = field(default_factory=Repair)
    read: dict[Repair, dict[int, RowReading]] = field(default_factory=dict)
    probed: dict[Repair, float] = field(default_factory=dict)
    left: list[Repair] = field(default_factory=list)

    def halve(self, asked: Sequence[Repair]) -> None:
        """Read rows of fewer and fewer changes."""
        self.base = next((repair for repair in asked if repair.cut), Repair())
        others, cut = [repair for repair in asked if repair != self.base], bool(self.base.cut)
        leave: tuple[int, ...] = (len(others), max(2, len(others) // 2), 2)
        if cut:
            others, leave = self._screened(others), (self.plan.first, 1, 1)
        parts, done = np.array_split(np.arange(self.plan.rows), ROUNDS), 0
        leave = (*(min(n, len(others)) for n in leave),)
        total = sum((1 + n) * len(part) for n, part in zip(leave, parts, strict=True))
        for count, part in zip(leave, parts, strict=True):
            others = self._best(others, count)
            for row, repair in itertools.product(part.tolist(), (self.base, *others)):
                reading = self.readings.of(repair, row)
                self.read.setdefault(repair, {})[row] = reading
                done += 1
                right = sum(n.right for n in reading.needles)
                said = f"{right} of {len(reading.needles)} needles, loss {reading.loss:+.3f}"
                line = f"{repair.name}, row {row + 1}: {said}"
                self.progress(f"{line} ({done} of {total} read)", 0, 0)
                self.progress("rows", done, total, line)
        self.left = self._best(others, len(others))

    def _best(self, others: Sequence[Repair], count: int) -> list[Repair]:
        """The best of some changes, the recipe among them where it is what they have to beat."""
        cut, default = bool(self.base.cut), recipe(self.readings.subject.length)
        best = sorted(others, key=lambda r: rank(self.line(r), cut))[:count]
        if not cut and default in others and default not in best:
            best[-1] = default
        return best

    def _screened(self, asked: Sequence[Repair]) -> list[Repair]:
        """Changes without a window, the best first by the gap probe; dropped are those whose loss
        is `BUDGET` above the best, and shown to be above it."""
        seen = [repair for repair in (self.base, *asked) if repair.window is None]
        losses = dict[Repair, np.ndarray]()
        for done, repair in enumerate(seen, 1):
            losses[repair] = self.readings.gaps(repair).ravel()
            self.probed[repair] = float(losses[repair].mean())
            said = f"{repair.name}, gap probe: log ratio {self.probed[repair]:+.3f}"
            self.progress(f"{said} ({done} of {len(seen)} settings)", 0, 0)
            self.progress("settings", done, len(seen), said)
        best = losses[min(self.probed, key=self.probed.__getitem__)]
        above = {repair: mean_and_half(each - best) for repair, each in losses.items()}
        kept = [r for r in seen if r != self.base and above[r][0] <= max(BUDGET, above[r][1])]
        return sorted(kept, key=self.probed.__getitem__)

    def line(self, repair: Repair) -> Mended:
        """The state of a change."""
        each, readings = self.read.get(repair, {}), self.readings
        losses = np.array([reading.loss for reading in each.values()])
        needles = tuple(n for reading in each.values() for n in reading.needles)
        real = self.plan.way is Way.REAL
        moves = repair in self.left[:1] and readings.subject.turns() and not repair.cut
        cache = row_cache(readings.subject.outline.layers, repair.keys(readings.to), Serving())
        mean = float(losses.mean()) if len(losses) else None
        return Mended(
            repair=repair.name,
            log_ratio=self.probed.get(repair) if real or mean is None else mean,
            short=readings.within(repair, readings.subject.length) if moves else None,
            trained=readings.within(repair, readings.trained) if moves else None,
            keys=repair.keys(readings.to),
            mib=cache.least / (1 << 20),
            recall=() if real else needles,
            measured=interval(losses) if real and mean is not None else None,
            real=needles if real else (),
            difference=self.apart(repair, self.base) if each and repair != self.base else None,
            rows=len(losses),
        )

    def apart(self, one: Repair, other: Repair) -> tuple[float, float | None]:
        """The difference of losses of two changes on the same rows, with half its interval."""
        first, second = (self.read.get(repair, {}) for repair in (one, other))
        both = [first[k].loss - second[k].loss for k in first if k in second]
        return interval(np.array(both)) if both else (0.0, None)

    def rival(self) -> tuple[str, tuple[float, float | None]] | None:
        """The best change but the recipe, and how it differs from it; None where a text is cut."""
        default = recipe(self.readings.subject.length)
        others = [repair for repair in self.left if repair != default]
        if self.base.cut or default not in self.left or not others:
            return None
        return others[0].name, self.apart(others[0], default)


def interval(values: np.ndarray) -> tuple[float, float | None]:
    """The mean and half its 95 % interval over rows, which one row has not."""
    return mean_and_half(values) if len(values) > 1 else (float(values[0]), None)
