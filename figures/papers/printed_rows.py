"""A printed table of perplexities beside our runs, cell by cell, and how far the two agree.

A printed row and ours are compared at the same multiple of the training length. Two directions are
read off each cell: against the same row at the training length (or the shortest length printed),
and against the row that the table is about, in the same column. A change below 1 % counts as none.
They agree where print and measurement have the same sign. Columns are compared by Spearman's rank
correlation over the rows that both have.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from polars import DataFrame, col

from farfield.figures.samples import perplexities, settings
from farfield.validation.papers.tables import table

SAME = 0.01
"""A relative change below this counts as none."""
LEVEL = 0.05
"""Of the paired test."""
Cell = dict[str, Any]
"""A printed number and ours: `row`, `base` (our base training length), `values` (by seed), and
`COLUMNS`."""
COLUMNS = (
    *("dataset", "encoding", "variant", "ours", "multiple", "trained, printed", "tested, printed"),
    *("printed", "std, printed", "mark, printed", "trained", "tested", "measured", "std", "seeds"),
    *("p", "mark", "direction, printed", "direction, measured", "side, printed", "side, measured"),
    *("rank correlation of the column", "rows of the column"),
)
"""`p` is of the paired t-test against the reference; its `mark` is a dagger where the reference is
better, a star where it is worse. Directions are those of print and measurement against the row at
the training length, sides those against the reference; None where one of them is missing."""


class Row(NamedTuple):
    """A printed row and what answers to it here.

    Fields:
        encoding, variant: as printed.
        label: of our runs; `{n}` and `{4n}` represent our training length and four times that.
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
        factors: of our base training length, by the printed training length.
        protocol: of the perplexities.
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


def direction(first: float, second: float) -> int:
    """1 if the second is larger, -1 if it is smaller, 0 if they differ by less than `SAME`.

    >>> direction(5.0, 5.2), direction(5.0, 4.99)
    (1, 0)
    """
    change = second / first - 1
    return 0 if abs(change) < SAME else int(math.copysign(1, change))


def compared(layout: Layout, runs: DataFrame) -> list[Cell]:
    """Every printed cell beside ours, for each base training length at which two rows or more were
    measured."""
    found: list[Cell] = []
    for base in bases(layout, runs):
        own = [
            cell
            for printed, factor in layout.factors.items()
            for cell in _cells(layout, printed, base, samples_of(layout, runs, base * factor))
        ]
        found += own if len({c["row"] for c in own if c["values"]}) > 1 else []
    columns: dict[Any, list[Cell]] = {}
    for c in found:
        columns.setdefault((c["dataset"], c["base"], c["multiple"]), []).append(c)
    for column in columns.values():
        both = [(float(c["printed"]), c["measured"]) for c in column if c["values"]]
        for c in column:
            c["rank correlation of the column"] = rank_agreement(both)
            c["rows of the column"] = len(both)
    return found


def bases(layout: Layout, runs: DataFrame) -> list[int]:
    """Our base training lengths: those that have a multiple for every printed one."""
    lengths = {*runs["trained"]}
    return sorted({n // f for n in lengths for f in layout.factors.values() if n % f == 0})


def samples_of(layout: Layout, runs: DataFrame, trained: int) -> dict[str, DataFrame]:
    """Our samples of one training length, by their labels."""
    of_length = runs.filter(col("trained") == trained)
    wanted = list(dict.fromkeys(r.ours(trained) for r in layout.rows if r.label))
    return next(iter(settings(of_length, wanted)), {})


def _cells(
    layout: Layout, printed_length: int, base: int, samples: Mapping[str, DataFrame]
) -> Iterator[Cell]:
    """The printed cells of one training length beside our runs of one."""
    trained = base * layout.factors[printed_length]
    measured = {k: perplexities(s, layout.protocol) for k, s in samples.items()}
    here = [c for c in table(layout.name) if c.train_length == printed_length]
    printed = {
        (c.dataset, c.encoding, c.variant, Fraction(c.eval_length or 0, printed_length)): c
        for c in here
    }

    def both(dataset: str, row: Row, multiple: Fraction) -> tuple[Any, Mapping[int, float]]:
        own = measured.get(row.ours(trained), {}).get(int(multiple * trained), {})
        return printed.get((dataset, row.encoding, row.variant, multiple)), own

    for dataset in dict.fromkeys(c.dataset for c in here):
        for row in layout.rows:
            multiples = sorted(m for *which, m in printed if which == [dataset, *row[:2]])
            first = min((m for m in multiples if m >= 1), default=None)
            for m in multiples:
                cell, values = both(dataset, row, m)
                ways: dict[str, tuple[int | None, int | None]]
                ways = {"direction": (None, None), "side": (None, None)}
                p, mark = None, ""
                if first is not None and m > first:
                    ways["direction"] = _directions(both(dataset, row, first), (cell, values))
                if row != layout.reference:
                    other = both(dataset, layout.reference, m)
                    ways["side"] = _directions(other, (cell, values))
                    p, mark = _test(values, other[1])
                each = list(values.values())
                yield {
                    "row": row,
                    "base": base,
                    "values": values,
                    "dataset": dataset,
                    "encoding": row.encoding,
                    "variant": row.variant,
                    "ours": row.ours(trained) or None,
                    "multiple": m,
                    "trained, printed": printed_length,
                    "tested, printed": cell.eval_length,
                    "printed": cell.printed,
                    "std, printed": cell.std,
                    "mark, printed": cell.marker,
                    "trained": trained,
                    "tested": int(m * trained),
                    "measured": float(np.mean(each)) if each else None,
                    "std": float(np.std(each, ddof=1)) if len(each) > 1 else None,
                    "seeds": " ".join(map(str, sorted(values))),
                    "p": p,
                    "mark": mark,
                    **{f"{k}, printed": way[0] for k, way in ways.items()},
                    **{f"{k}, measured": way[1] for k, way in ways.items()},
                }


def _directions(
    first: tuple[Any, Mapping[int, float]], second: tuple[Any, Mapping[int, float]]
) -> tuple[int | None, int | None]:
    """Printed and measured; ours over the seeds that both have."""
    (one, ours_first), (two, ours_second) = first, second
    seeds = [s for s in ours_first if s in ours_second]
    if one is None or one.value is None or two.value is None or not seeds:
        return None, None
    means = (float(np.mean([x[s] for s in seeds])) for x in (ours_first, ours_second))
    return direction(one.value, two.value), direction(*means)


def _test(values: Mapping[int, float], ref: Mapping[int, float]) -> tuple[float | None, str]:
    """The p-value of the paired t-test over the seeds of both, and its mark."""
    from scipy.stats import ttest_1samp

    seeds = sorted(set(values) & set(ref))
    if len(seeds) < 2:
        return None, ""
    apart = np.array([values[s] - ref[s] for s in seeds])
    p = float(ttest_1samp(apart, 0).pvalue) if np.ptp(apart) else float(not apart.any())
    return p, "" if p >= LEVEL else "dagger" if apart.mean() > 0 else "star"


def agreeing(cells: Iterable[Cell], kind: str) -> list[bool]:
    """Whether print and measurement agree, of each cell that has the direction, or the side."""
    ways = ((c[f"{kind}, printed"], c[f"{kind}, measured"]) for c in cells)
    return [one == other for one, other in ways if one is not None]


def rank_agreement(pairs: Sequence[tuple[Any, Any]]) -> float | None:
    """Spearman's rank correlation of print and measurement; None of fewer than three rows, or of
    equal ones."""
    from scipy.stats import rankdata  # slow to import, and of use to this alone

    if len(pairs) < 3:
        return None
    a, b = (rankdata(column) for column in zip(*pairs, strict=True))
    return None if np.ptp(a) == 0 or np.ptp(b) == 0 else float(np.corrcoef(a, b)[0, 1])
