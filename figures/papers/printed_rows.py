"""A printed table of perplexities beside our runs, cell by cell, and how far the two agree.

A printed row and ours are compared at the same multiple of the training length. Two directions are
read off each cell: against the same row at the training length (or the shortest length printed),
and against the row that the table is about, in the same column. A change below 1 % counts as none.
They agree where print and measurement have the same sign. Columns are compared by Spearman's rank
correlation over the rows that both have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from farfield.figures.samples import Run, Sample, settings
from farfield.validation.published import PrintedNumber, table

SAME = 0.01
"""A relative change below this counts as none."""
LEVEL = 0.05
"""Of the paired test."""


@dataclass(frozen=True)
class Row:
    """A printed row and what answers to it here.

    Fields:
        encoding, variant: as printed.
        label: of our runs; `{n}` and `{4n}` stand for our training length and four times that.
            Empty if the catalogue has no such encoding.
    """

    encoding: str
    variant: str
    label: str

    def ours(self, trained: int) -> str:
        """The label for models of this training length."""
        return self.label.replace("{n}", str(trained)).replace("{4n}", str(4 * trained))

    @property
    def printed(self) -> str:
        """What the print calls it."""
        return f"{self.encoding} {self.variant}".strip()


@dataclass(frozen=True)
class Layout:
    """How a printed table is measured again.

    Fields:
        id: of the exhibit.
        rows: which encodings.
        reference: the row that the others are compared with.
        protocol: of the perplexities.
        factors: of our base training length, by the printed training length.
        remark: what else must be said.
    """

    id: str
    rows: tuple[Row, ...]
    reference: Row
    factors: Mapping[int, int]
    protocol: str = ""
    remark: str = ""

    @property
    def name(self) -> str:
        """Of the printed table."""
        return self.id.removesuffix("-measured").replace(".", "_")


def layout(
    figure: str, rows: Any, reference: Any, factors: Mapping[Any, int], **told: str
) -> Layout:
    """The layout of an exhibit as the index has it."""
    lengths = {int(length): factor for length, factor in factors.items()}
    return Layout(figure, tuple(Row(*row) for row in rows), Row(*reference), lengths, **told)


@dataclass(frozen=True)
class Pair:
    """One printed number and the measured one at the same multiple of the training length.

    Fields:
        row, dataset: which row of the print.
        base, trained: our base training length, and this row's.
        multiple: of the training length.
        cell: the printed number.
        values: ours, by seed; empty where not measured.
        p: of the paired t-test against the reference over the seeds of both.
        mark: of the same test at 0.05: dagger where the reference is better, star where worse.
        length, side: printed and measured direction against the row at the training length, and
            against the reference in the column; None where one of them is missing.
    """

    row: Row
    dataset: str
    base: int
    trained: int
    multiple: Fraction
    cell: PrintedNumber
    values: Mapping[int, float]
    p: float | None
    mark: str
    length: tuple[int, int] | None
    side: tuple[int, int] | None

    @property
    def mean(self) -> float | None:
        """Over seeds."""
        return float(np.mean(list(self.values.values()))) if self.values else None

    @property
    def std(self) -> float | None:
        """Standard deviation over seeds, of two or more."""
        return float(np.std(list(self.values.values()), ddof=1)) if len(self.values) > 1 else None


def direction(first: float, second: float) -> int:
    """1 if the second is larger, -1 if it is smaller, 0 if they differ by less than `SAME`.

    >>> direction(5.0, 5.2), direction(5.0, 4.99)
    (1, 0)
    """
    change = second / first - 1
    return 0 if abs(change) < SAME else int(math.copysign(1, change))


def pairs(layout: Layout, runs: Sequence[Run]) -> list[Pair]:
    """Every printed cell beside ours, one for each base training length among the runs."""
    cells = table(layout.name)
    found: list[Pair] = []
    for base in bases(layout, runs):
        for printed_length, factor in layout.factors.items():
            here = [c for c in cells if c.train_length == printed_length]
            samples = samples_of(layout, runs, base * factor)
            found += _compared(layout, here, samples, base, base * factor)
    return found


def bases(layout: Layout, runs: Sequence[Run]) -> list[int]:
    """Our base training lengths: those that have a multiple for every printed one."""
    lengths = {r["preset"]["length"] for r in runs}
    return sorted({n // f for n in lengths for f in layout.factors.values() if n % f == 0})


def worth(found: Sequence[Pair]) -> list[Pair]:
    """Without the base training lengths at which fewer than two rows were measured."""
    rows: dict[int, set[Row]] = {}
    for e in found:
        if e.values:
            rows.setdefault(e.base, set()).add(e.row)
    return [e for e in found if len(rows.get(e.base, ())) > 1]


def samples_of(layout: Layout, runs: Sequence[Run], trained: int) -> dict[str, Sample]:
    """Our samples of one training length, by their labels."""
    of_length = [r for r in runs if r["preset"]["length"] == trained]
    wanted = list(dict.fromkeys(r.ours(trained) for r in layout.rows if r.label))
    groups = settings(of_length, wanted)
    return {s.label: s for s in groups[0]} if groups else {}


def _compared(
    layout: Layout,
    cells: Sequence[PrintedNumber],
    samples: Mapping[str, Sample],
    base: int,
    trained: int,
) -> list[Pair]:
    """The printed cells of one training length beside our runs of one."""
    measured = {k: s.perplexity(layout.protocol) for k, s in samples.items()}
    by: dict[tuple[str, str, str], dict[Fraction, PrintedNumber]] = {}
    for c in cells:
        multiple = Fraction(c.eval_length or 0, c.train_length or 1)
        by.setdefault((c.dataset, c.encoding, c.variant), {})[multiple] = c
    found = []
    for dataset in dict.fromkeys(c.dataset for c in cells):
        reference = by.get((dataset, layout.reference.encoding, layout.reference.variant), {})
        theirs = measured.get(layout.reference.ours(trained), {})
        for row in layout.rows:
            printed = by.get((dataset, row.encoding, row.variant))
            if printed is None:
                continue
            own = measured.get(row.ours(trained), {})
            first = min((m for m in printed if m >= 1), default=None)
            for multiple, cell in sorted(printed.items()):
                values, ref = (x.get(int(multiple * trained), {}) for x in (own, theirs))
                length = side = None
                if first is not None and multiple > first:
                    length = _directions(
                        printed[first], cell, own.get(int(first * trained), {}), values
                    )
                if row != layout.reference:
                    side = _directions(reference.get(multiple), cell, ref, values)
                p, mark = _test(values, ref) if row != layout.reference else (None, "")
                found.append(
                    Pair(row, dataset, base, trained, multiple, cell, values, p, mark, length, side)
                )
    return found


def _directions(
    first: PrintedNumber | None,
    second: PrintedNumber,
    ours_first: Mapping[int, float],
    ours_second: Mapping[int, float],
) -> tuple[int, int] | None:
    """Printed and measured; ours over the seeds that both have."""
    seeds = [s for s in ours_first if s in ours_second]
    if first is None or first.value is None or second.value is None or not seeds:
        return None
    means = (float(np.mean([x[s] for s in seeds])) for x in (ours_first, ours_second))
    return direction(first.value, second.value), direction(*means)


def _test(values: Mapping[int, float], ref: Mapping[int, float]) -> tuple[float | None, str]:
    """The p-value of the paired t-test over the seeds of both, and its mark."""
    from scipy.stats import ttest_1samp

    seeds = sorted(set(values) & set(ref))
    if len(seeds) < 2:
        return None, ""
    apart = np.array([values[s] - ref[s] for s in seeds])
    p = float(ttest_1samp(apart, 0).pvalue) if np.ptp(apart) else float(not apart.any())
    return p, "" if p >= LEVEL else "dagger" if apart.mean() > 0 else "star"


@dataclass(frozen=True)
class Agreement:
    """How a printed data set and our runs of one base training length agree.

    Fields:
        dataset, base: which.
        length, side: pairs (cells that agree, cells compared).
        ranks: Spearman's rank correlation and its number of rows by multiple; None where fewer
            than three rows are in both, or all of them are equal.
    """

    dataset: str
    base: int
    length: tuple[int, int]
    side: tuple[int, int]
    ranks: Mapping[Fraction, tuple[float | None, int]]


def agreements(found: Sequence[Pair]) -> list[Agreement]:
    """The agreement of each data set, for each base training length."""
    groups: dict[tuple[str, int], list[Pair]] = {}
    for e in found:
        groups.setdefault((e.dataset, e.base), []).append(e)
    results = []
    for (dataset, base), group in groups.items():
        ranks = {}
        for multiple in sorted({e.multiple for e in group}):
            both = [
                (e.cell.value, e.mean)
                for e in group
                if e.multiple == multiple and e.mean is not None
            ]
            if both:
                ranks[multiple] = (rank_agreement(both), len(both))
        length, side = (
            agreeing([d for e in group if (d := get(e)) is not None])
            for get in (lambda e: e.length, lambda e: e.side)
        )
        results.append(Agreement(dataset, base, length, side, ranks))
    return results


def agreeing(pairs: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """How many directions are the same in print and measurement, and how many there are."""
    return sum(a == b for a, b in pairs), len(pairs)


def rank_agreement(pairs: Sequence[tuple[Any, Any]]) -> float | None:
    """Spearman's rank correlation of print and measurement; None of fewer than three rows, or of
    equal ones."""
    from scipy.stats import rankdata  # slow to import, and of use to this alone

    a, b = (rankdata(column) for column in zip(*pairs, strict=True))
    if len(pairs) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return float(np.corrcoef(a, b)[0, 1])
