"""The printed tables measured again at a small scale, beside the print, with their agreement.

A printed row and ours are compared at the same multiple of the training length. Two directions are
read off each cell: against the same row at the training length (or the shortest length printed),
and against the row that the table is about, in the same column. A change below 1 % counts as none.
They agree where print and measurement have the same sign. Columns are compared by Spearman's rank
correlation over the rows that both have. What was not measured is `-`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import rankdata

from farfield.figures.exhibit import Data, Drawing, Exhibit, Missing
from farfield.figures.printed_tables import EXHIBITS as PRINTED
from farfield.figures.samples import BCA, MODE, Run, Sample, command, conditions, settings
from farfield.figures.style import spoken
from farfield.numerics.resolution import attention_resolution
from farfield.validation.measures.statistics import paired_test
from farfield.validation.published import Cell, table

SAME = 0.01
"""A relative change below this counts as none."""
ABSENT = "-"
TRAINED = 64
"""Training length of the reference preset."""
MARKS = {"dagger": "†", "star": "*"}
PLUS_MINUS = "\u00a0±\u00a0"


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
        name: of the printed table.
        rows: which encodings.
        reference: the row that the others are compared with.
        protocol: of the perplexities.
        factors: of our base training length, by the printed training length.
        remark: what else must be said.
    """

    name: str
    rows: tuple[Row, ...]
    reference: Row
    protocol: str
    factors: Mapping[int, int]
    remark: str = ""

    @property
    def id(self) -> str:
        """Of the exhibit."""
        return self.name.replace("_", ".") + "-measured"


@dataclass(frozen=True)
class Entry:
    """One printed number and the measured one at the same multiple of the training length.

    Fields:
        row, dataset: which row of the print.
        base, trained: our base training length, and that of this row.
        multiple: of the training length.
        cell: the printed number, None where only ours is there.
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
    cell: Cell | None
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


def entries(layout: Layout, runs: Sequence[Run]) -> list[Entry]:
    """Every printed cell beside ours, one for each base training length among the runs."""
    cells = table(layout.name)
    found: list[Entry] = []
    for base in _bases(layout, runs):
        for printed_length, factor in layout.factors.items():
            here = [c for c in cells if c.train_length == printed_length]
            samples = _samples(layout, runs, base * factor)
            found += _compared(layout, here, samples, base, base * factor)
    return found


def _bases(layout: Layout, runs: Sequence[Run]) -> list[int]:
    lengths = {r["preset"]["length"] for r in runs}
    return sorted({n // f for n in lengths for f in layout.factors.values() if n % f == 0})


def _worth(found: Sequence[Entry]) -> list[Entry]:
    """Without the base training lengths at which fewer than two rows were measured."""
    rows: dict[int, set[Row]] = {}
    for e in found:
        if e.values:
            rows.setdefault(e.base, set()).add(e.row)
    return [e for e in found if len(rows.get(e.base, ())) > 1]


def _samples(layout: Layout, runs: Sequence[Run], trained: int) -> dict[str, Sample]:
    of_length = [r for r in runs if r["preset"]["length"] == trained]
    wanted = list(dict.fromkeys(r.ours(trained) for r in layout.rows if r.label))
    groups = settings(of_length, wanted)
    return {s.label: s for s in groups[0]} if groups else {}


def _compared(
    layout: Layout, cells: Sequence[Cell], samples: Mapping[str, Sample], base: int, trained: int
) -> list[Entry]:
    measured = {k: s.perplexity(layout.protocol) for k, s in samples.items()}
    by: dict[tuple[str, str, str], dict[Fraction, Cell]] = {}
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
                    length = _directions(printed[first], cell, own.get(int(first * trained), {}),
                                         values)  # fmt: skip
                if row != layout.reference:
                    side = _directions(reference.get(multiple), cell, ref, values)
                p, mark = _test(values, ref) if row != layout.reference else (None, "")
                found.append(
                    Entry(
                        row, dataset, base, trained, multiple, cell, values, p, mark, length, side
                    )
                )
    return found


def _directions(
    first: Cell | None, second: Cell, ours_first: Mapping[int, float],
    ours_second: Mapping[int, float],
) -> tuple[int, int] | None:  # fmt: skip
    """Printed and measured; ours over the seeds that both have."""
    seeds = [s for s in ours_first if s in ours_second]
    if first is None or first.value is None or second.value is None or not seeds:
        return None
    means = (float(np.mean([x[s] for s in seeds])) for x in (ours_first, ours_second))
    return direction(first.value, second.value), direction(*means)


def _test(values: Mapping[int, float], ref: Mapping[int, float]) -> tuple[float | None, str]:
    seeds = sorted(set(values) & set(ref))
    if len(seeds) < 2:
        return None, ""
    found = paired_test([values[s] for s in seeds], [ref[s] for s in seeds])
    if not found.significant:
        return found.p, ""
    return found.p, "dagger" if found.difference > 0 else "star"


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


def agreements(found: Sequence[Entry]) -> list[Agreement]:
    """The agreement of each data set, for each base training length."""
    groups: dict[tuple[str, int], list[Entry]] = {}
    for e in found:
        groups.setdefault((e.dataset, e.base), []).append(e)
    results = []
    for (dataset, base), group in groups.items():
        ranks = {}
        for multiple in sorted({e.multiple for e in group}):
            pairs = [(e.cell.value, e.mean) for e in group
                     if e.multiple == multiple and e.cell and e.mean is not None]  # fmt: skip
            if pairs:
                ranks[multiple] = (_rho(pairs), len(pairs))
        length, side = (_same([d for e in group if (d := get(e)) is not None])
                        for get in (lambda e: e.length, lambda e: e.side))  # fmt: skip
        results.append(Agreement(dataset, base, length, side, ranks))
    return results


def _same(pairs: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return sum(a == b for a, b in pairs), len(pairs)


def _rho(pairs: Sequence[tuple[Any, Any]]) -> float | None:
    a, b = (rankdata(column) for column in zip(*pairs, strict=True))
    if len(pairs) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return float(np.corrcoef(a, b)[0, 1])


# -- as a table -----------------------------------------------------------------------------------


def measured_table(runs: Sequence[Run], *, layout: Layout) -> Drawing:
    """A printed table measured again.

    Raises:
        Missing: none of its encodings was trained and measured so.
    """
    found = _worth(entries(layout, runs))
    if not found:
        raise Missing(
            f"fewer than two of its rows among the runs; to make them: "
            f"{_commands(layout, layout.rows)}; `farfield figures {layout.id} --runs runs`"
        )
    agreed = agreements(found)
    lengths = dict.fromkeys(e.trained for e in found if e.values)
    used = [s for n in lengths for s in _samples(layout, runs, n).values()]
    name = layout.reference.printed
    caption = (
        f"{conditions(used)} Protocol: {layout.protocol}. Mean ± standard deviation over seeds; "
        f"†: {name} is significantly better, *: worse (paired t-test over shared seeds, two-sided, "
        "0.05). Columns: multiples of the training length. Behind a printed number: does the "
        "measurement go the same way from the training length (first mark), and lie on the same "
        f"side of {name} (second)? ✓ yes, ✗ no, · not applicable; below 1 % counts as equal. "
        f"{_said(agreed)} Last rows: Spearman's rank correlation of a column's means with the "
        "print (rows)."
        f"{layout.remark}"
    )
    lacking = [
        row for row in layout.rows
        if row.label and not any(e.values for e in found if e.row == row)
    ]  # fmt: skip
    if lacking:
        caption += (
            f" Not measured ({ABSENT}): {', '.join(r.printed for r in lacking)}; to make them: "
            f"{_commands(layout, lacking)}."
        )
    outside = [row.printed for row in layout.rows if not row.label]
    if outside:
        caption += f" Not in the catalogue ({ABSENT}): {', '.join(outside)}."
    return Drawing(_long(found, agreed), caption, shown=_wide(layout, found, agreed))


def _said(agreed: Sequence[Agreement]) -> str:
    """The agreement over all printed data sets, in a sentence for each training length."""
    parts = []
    for base in dict.fromkeys(a.base for a in agreed):
        group = [a for a in agreed if a.base == base]
        length, side = ([sum(x) for x in zip(*(getattr(a, k) for a in group), strict=True)]
                        for k in ("length", "side"))  # fmt: skip
        side_said = f", the side in {side[0]} of {side[1]}" * bool(side[1])
        parts.append(
            f"Trained on {base} tokens, the way from the training length agrees in {length[0]} "
            f"of {length[1]} cells{side_said}."
        )
    return " ".join(parts)


def _commands(layout: Layout, rows: Sequence[Row]) -> str:
    """What makes the runs of these rows at our first training length."""
    found: dict[str, None] = {}
    for row in (r for r in rows if r.label):
        cells = [c for c in table(layout.name)
                 if (c.encoding, c.variant) == (row.encoding, row.variant)]  # fmt: skip
        printed = cells[0].train_length or 1
        trained = TRAINED * layout.factors[printed]
        base, _, mode = row.ours(trained).partition(MODE)
        blocks = mode == "BCA" and base not in ("rope", "xpos")  # measured with BCA in any case
        options = f"--bca {trained // 2}" if blocks else ""
        if mode.startswith("window"):
            tested = sorted({(c.eval_length or 0) * trained // printed for c in cells})
            options = f"--{mode} --tested {','.join(map(str, tested))}"
        length = None if trained == TRAINED else trained
        found[f"`{command(base, length=length, options=options)}`"] = None
    return "; ".join([*list(found)[:3], "and so for the others"] if len(found) > 4 else found)


def _multiple(m: Fraction) -> str:
    return f"{m.numerator}×" if m.denominator == 1 else f"{m.numerator}/{m.denominator}×"


def _tick(pair: tuple[int, int] | None) -> str:
    return "·" if pair is None else "✓" if pair[0] == pair[1] else "✗"


def _number(value: float) -> str:
    """Three significant digits at least, two after the point where the print has them."""
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _ours(e: Entry) -> str:
    if e.mean is None:
        return ABSENT
    spread = "" if e.std is None else f"{PLUS_MINUS}{e.std:.2g}"
    return _number(e.mean) + spread + MARKS.get(e.mark, "")


def _theirs(e: Entry) -> str:
    if e.cell is None:
        return ABSENT
    spread = "" if e.cell.std is None else f"{PLUS_MINUS}{e.cell.std:g}"
    ticks = f"\u00a0{_tick(e.length)}{_tick(e.side)}" if e.length or e.side else ""
    return e.cell.printed + spread + MARKS.get(e.cell.marker, "") + ticks


def _wide(layout: Layout, found: Sequence[Entry], agreed: Sequence[Agreement]) -> Data:
    """For reading: a row of ours, then the printed rows it answers to."""
    multiples = sorted({e.multiple for e in found})
    first_of = {a.base: a for a in reversed(agreed)}
    rows: list[tuple[Any, ...]] = []
    for base in dict.fromkeys(e.base for e in found):
        here = [e for e in found if e.base == base]
        for row in layout.rows:
            own = [e for e in here if e.row == row]
            by_set: dict[str, dict[Fraction, Entry]] = {}
            for e in own:
                by_set.setdefault(e.dataset, {})[e.multiple] = e
            if not own:
                continue
            trained = own[0].trained
            ours = {m: e for by in by_set.values() for m, e in by.items()}
            seeds = max((len(e.values) for e in ours.values()), default=0)
            who = spoken(row.ours(trained)) if row.label else ABSENT
            n = f"measured,\u00a0n\u00a0=\u00a0{seeds}" if seeds else "not\u00a0measured"
            rows.append((who, n, trained, *(_ours(ours[m]) if m in ours else "" for m in multiples),
                         "", ""))  # fmt: skip
            for k, (dataset, by) in enumerate(by_set.items()):
                first = next(iter(by.values()))
                length, side = (_same([d for e in by.values() if (d := get(e)) is not None])
                                for get in (lambda e: e.length, lambda e: e.side))  # fmt: skip
                rows.append((
                    "" if k else f"{row.printed}, printed", dataset or "printed",
                    first.cell and first.cell.train_length,
                    *(_theirs(by[m]) if m in by else "" for m in multiples),
                    _of(length), _of(side),
                ))  # fmt: skip
        for a in (a for a in agreed if a.base == base):
            ranks = [a.ranks.get(m, (None, 0)) for m in multiples]
            shown = [
                "" if r is None else f"{r:+.2f}\u00a0({n})".replace("-", "−") for r, n in ranks
            ]
            rows.append(
                (
                    "rank correlation" if a is first_of[base] else "",
                    a.dataset or "printed",
                    base,
                    *shown,
                    _of(a.length),
                    _of(a.side),
                )
            )
    return Data(
        ("encoding", "of", "trained", *map(_multiple, multiples), "direction", "side"), tuple(rows)
    )


def _of(pair: tuple[int, int]) -> str:
    return f"{pair[0]} of {pair[1]}" if pair[1] else ""


def _long(found: Sequence[Entry], agreed: Sequence[Agreement]) -> Data:
    """For programs: a line a cell."""
    ranks = {(a.dataset, a.base): a.ranks for a in agreed}
    rows = []
    for e in found:
        rho, n = ranks[e.dataset, e.base].get(e.multiple, (None, 0))
        c = e.cell
        rows.append((
            e.dataset, e.row.encoding, e.row.variant, e.row.ours(e.trained) or None, e.multiple,
            c and c.train_length, c and c.eval_length, c and c.printed, c and c.std,
            c and c.marker, e.trained, int(e.multiple * e.trained), e.mean, e.std,
            " ".join(map(str, sorted(e.values))), e.p, e.mark,
            *(e.length or (None, None)), *(e.side or (None, None)), rho, n,
        ))  # fmt: skip
    return Data(
        ("dataset", "encoding", "variant", "ours", "multiple", "trained, printed",
         "tested, printed", "printed", "std, printed", "mark, printed", "trained", "tested",
         "measured", "std", "seeds", "p", "mark", "direction, printed", "direction, measured",
         "side, printed", "side, measured", "rank correlation of the column",
         "rows of the column"),
        tuple(rows),
    )  # fmt: skip


# -- the tables -----------------------------------------------------------------------------------

_SHIFTS = (-3, 0, 2, 4, 6, 8)
_WINDOWS = {40: 16, 80: 32, 100: 38, 120: 45, 160: 64, 320: 120}
"""Ours by the printed one, the same share w R / L of the training length L in R layers, as nearly
as the reference runs have it: R = 12, L = 512 in the print, R = 4, L = 64 here."""

_CHI = {512: 1}
_SUN = {1024: 1}
_VARIANTS = (
    *(Row("ALiBi", f"delta={d}", f"alibi shift {d}" if d else "alibi") for d in _SHIFTS),
    *(Row("ALiBi", f"h={h}", f"alibi equal {h}") for h in (0, 2, 4, 6, 8)),
    *(Row("Windowed", f"w={w}", f"window {ours}") for w, ours in _WINDOWS.items()),
)
_SEVEN = tuple(
    Row(printed, "", label)
    for printed, label in (
        ("Sandwich", "sandwich"), ("Sandwich_Smoothed", "sandwich_smoothed"), ("ALiBi", "alibi"),
        ("Sinusoidal", "sinusoidal"), ("Rotary", "rope"), ("KERPLE", "kerple_log"), ("T5", "t5"),
    )
)  # fmt: skip
_FOUR = (
    Row("Transformer", "", "sinusoidal"), Row("Alibi", "", "alibi"), Row("Roformer", "", "rope"),
    Row("LeX", "", f"xpos{BCA}"),
)  # fmt: skip
_BLOCKS = (
    *(Row(name, f"attention={mode}", label + (BCA if mode == "BCA" else ""))
      for name, label in (("Absolute", "sinusoidal"), ("RoPE", "rope"), ("Alibi", "alibi"),
                          ("XPos", "xpos"))
      for mode in ("full", "BCA")),
    Row("XPos", "attention=sliding_window", f"xpos{MODE}window {{n}}"),
)  # fmt: skip
_WIDTHS = (
    " Windows answer to the printed ones with the nearest w R / L, the window over all layers in "
    "training lengths: 16, 32, 64 here to 40, 80, 160."
)
_HEADS = " 8 heads here, 12 in the print; slopes 2^-h."

LAYOUTS = (
    Layout("sun2023_table2", _FOUR, _FOUR[3], "non-overlapping", _SUN),
    Layout("sun2023_table4", (
        Row("LeX", "", f"xpos{BCA}"), Row("LeX", "rotation=0", ""),
        Row("LeX", "zeta=0", f"rope{BCA}"), Row("LeX", "zeta=scalar", ""),
    ), Row("LeX", "", f"xpos{BCA}"), "non-overlapping", _SUN),
    Layout("sun2023_table5", _BLOCKS, _BLOCKS[7], "non-overlapping", _SUN),
    Layout("sun2023_table6", _FOUR, _FOUR[3], "non-overlapping", _SUN),
    Layout("chi2023_table1", _VARIANTS, _VARIANTS[1], "last token", _CHI, _WIDTHS + _HEADS),
    Layout("chi2023_table2", (
        Row("ALiBi", "delta=6", "alibi shift 6"), Row("Windowed", "w=160", "window 64"),
    ), Row("Windowed", "w=160", "window 64"), "last token", {1024: 2, 2048: 4}, _WIDTHS),
    Layout("chi2023_table3", _SEVEN, _SEVEN[0], "last token", _CHI),
    Layout("chi2023_table4", _VARIANTS, _VARIANTS[1], "last token", _CHI, _WIDTHS + _HEADS),
    Layout("chi2023_table5", tuple(
        Row(name, "cache_window=2048", f"{name.lower()}{MODE}window {{4n}}")
        for name in ("Sandwich", "ALiBi")
    ), Row("Sandwich", "cache_window=2048", f"sandwich{MODE}window {{4n}}"), "last token", _CHI,
        " The cache holds four training lengths, here as in the print."),
)  # fmt: skip


# -- attention resolution -------------------------------------------------------------------------

_RESOLUTIONS = (
    Row("Transformer", "", "sinusoidal"), Row("Alibi", "", "alibi"), Row("Roformer", "", "rope"),
    Row("LeX", "bca=1", f"xpos{BCA}"), Row("LeX", "bca=0", "xpos"),
)  # fmt: skip


def resolution_table(runs: Sequence[Run]) -> Drawing:
    """Measured attention resolution at the training length and at twice that [S, Table 3].

    Raises:
        Missing: no run measured the expected scores.
    """
    layout = Layout("sun2023_table3", _RESOLUTIONS, _RESOLUTIONS[3], "", _SUN)
    printed = {(c.encoding, c.variant, c.eval_length): c for c in table(layout.name)}
    rows: list[tuple[Any, ...]] = []
    used: list[Sample] = []
    pairs: dict[int, list[tuple[Any, Any, int]]] = {}
    for trained in _bases(layout, runs):
        samples = _samples(layout, runs, trained)
        for row in _RESOLUTIONS:
            sample = samples.get(row.ours(trained))
            if sample is None or "scores" not in sample.measurements[0]:
                continue
            used.append(sample)
            ours = [_resolutions(sample, multiple * trained) for multiple in (1, 2)]
            theirs = [printed[row.encoding, row.variant, n] for n in (1024, 2048)]
            means = [float(np.mean(o)) for o in ours]
            ways = direction(*(c.value or 0.0 for c in theirs)), direction(*means)
            spreads = [float(np.std(o, ddof=1)) if len(o) > 1 else None for o in ours]
            pairs.setdefault(trained, []).append((theirs, means, ways[0] == ways[1]))
            rows.append((
                row.printed, row.ours(trained), trained, *(c.printed for c in theirs),
                *(_spread(m, s) for m, s in zip(means, spreads, strict=True)), len(sample.runs),
                "yes" if ways[0] == ways[1] else "no",
            ))  # fmt: skip
    if not rows:
        raise Missing(
            "no runs of its encodings with measured scores; to make them: "
            f"{_commands(layout, layout.rows)}; `farfield figures {layout.id} --runs runs`"
        )
    said = " ".join(_resolution_agreement(trained, group) for trained, group in pairs.items())
    scores = used[0].measurements[0]["scores"]
    return Drawing(
        Data(("model", "ours", "trained", "1024, printed", "2048, printed", "training length",
              "twice that", "seeds", "same direction"), tuple(rows)),
        " ".join(conditions([s for s in used if s.length == n]) for n in pairs)
        + " Attention resolution R [Eq. 4] of the mean expected score s[n] over segments, heads "
        f"and layers (the paper averages R over layers), measured in {scores['segments']} segments "
        f"of {scores['length']} tokens, logits times {scores['scale']}, cut at the training length "
        "and at twice that; with BCA only pairs that are seen count. Cells: mean ± standard "
        f"deviation over seeds. {said}",
    )  # fmt: skip


def _spread(mean: float, std: float | None) -> str:
    return f"{mean:.3g}" + ("" if std is None else f" ± {std:.2g}")


def _resolution_agreement(trained: int, group: Sequence[tuple[Any, Any, int]]) -> str:
    rhos = [_rho([(t[k].value, m[k]) for t, m, _ in group]) for k in (0, 1)]
    shown = [f"{r:+.2f}".replace("-", "−") for r in rhos if r is not None]
    ranks = f"; rank correlation with the print {' and '.join(shown)}" if shown else ""
    return (
        f"Trained on {trained} tokens, the direction agrees in {sum(s for *_, s in group)} of "
        f"{len(group)} models{ranks} (n = {len(group)})."
    )


def _resolutions(sample: Sample, length: int) -> list[float]:
    """R of a row of this length from the measured scores, one a run."""
    found = []
    for m in sample.measurements:
        scores = m["scores"]["scores"][:length]
        known = [s for s in scores if s is not None]
        half = m["inference"]["bca"]
        mask = f"bca {half}" if half is not None and length > 2 * half else None
        padded = [*known, *([0.0] * (len(scores) - len(known)))]
        value = attention_resolution(np.array(padded), mask=mask).value
        if value is not None:
            found.append(value)
    return found


# -- inference time -------------------------------------------------------------------------------


def inference_time(runs: Sequence[Run]) -> Drawing:
    """Relative inference time of sliding windows; a time is of a machine, so none is committed."""
    raise Missing(
        "a time is of a machine, so none is committed; to measure it on this one: "
        "`python -m farfield.validation.measures.inference_time`"
    )


_TITLES = {e.id: e.title for e in PRINTED}
EXHIBITS = (
    Exhibit("qin2024.table1-measured", "Relative inference time, measured", "measured",
            inference_time),
    Exhibit("sun2023.table3-measured", "Attention resolution, measured", "measured",
            resolution_table),
    *(
        Exhibit(layout.id, f"{_TITLES[layout.id.removesuffix('-measured')]}, measured",
                "measured", partial(measured_table, layout=layout))
        for layout in LAYOUTS
    ),
)  # fmt: skip
