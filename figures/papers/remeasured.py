"""The printed tables measured again at a small scale, beside the print, with their agreement.

A missing measurement is `-`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from polars import DataFrame

from farfield.figures.exhibit import Data, Drawing, NoResults
from farfield.figures.papers.printed_rows import (
    COLUMNS,
    Cell,
    Layout,
    Row,
    agreeing,
    bases,
    compared,
    direction,
    layout,
    rank_agreement,
    samples_of,
)
from farfield.figures.papers.printed_tables import MARKS, yes_or_no
from farfield.figures.samples import (
    BCA,
    MODE,
    PRESET,
    command,
    conditions,
    first,
    subject,
)
from farfield.figures.style import spoken
from farfield.theory.answers.number import listed
from farfield.validation.harness.mechanism import ROTATIONS
from farfield.validation.harness.settings import settle
from farfield.validation.papers.tables import table

ABSENT = "-"


def measured_table(runs: DataFrame, figure: str, **options: Any) -> Drawing:
    """A printed table measured again, as `layout` reads its options.

    Raises:
        NoResults: none of its encodings was trained and measured so.
    """
    again = layout(figure, **options)
    found = compared(again, runs)
    if not found:
        raise _no_results(again, "fewer than two of its rows among the runs")
    lengths = dict.fromkeys(c["trained"] for c in found if c["values"])
    used = [s for n in lengths for s in samples_of(again, runs, n).items()]
    name = again.reference.printed
    made = (
        f"{conditions(used)} Protocol: {again.protocol}. Mean ± standard deviation over seeds; "
        f"†: {name} is significantly better, *: worse (paired t-test over shared seeds, two-sided, "
        "0.05). Below 1 % counts as equal. Last rows: Spearman's rank correlation of a column's "
        f"means with the print (rows).{f' {again.remark}' * bool(again.remark)}"
    )
    measured = {c["row"] for c in found if c["values"]}
    lacking = [row for row in again.rows if row.label and row not in measured]
    if lacking:
        made += (
            f" Not measured: {', '.join(r.printed for r in lacking)}; to make them: "
            f"{_commands(again, lacking)}."
        )
    outside = [row.printed for row in again.rows if not row.label]
    if outside:
        made += f" Not in the catalogue: {', '.join(outside)}."
    caption = (
        f"{_said(found, name)} Columns are multiples of the training length. A dot is a printed "
        "number: full where ours goes the same way, hollow where it does not."
    )
    long = Data(COLUMNS, tuple(tuple(c[k] for k in COLUMNS) for c in found))
    return Drawing(long, caption, shown=_wide(again, found), made=made)


def _no_results(layout: Layout, why: str) -> NoResults:
    return NoResults(
        f"{why}; to make them: {_commands(layout, layout.rows)}; `farfield figures {layout.id} "
        "--runs runs`"
    )


def _said(found: Sequence[Cell], reference: str) -> str:
    """The agreement over all printed data sets, with the number for each training length."""
    bases = list(dict.fromkeys(c["base"] for c in found))
    own = {base: [c for c in found if c["base"] == base] for base in bases}
    trained = f"trained on {listed(list(map(str, bases)))} tokens"
    ways = listed([_of(own[base], "direction") or "0 of 0" for base in bases])
    sides = listed([side for base in bases if (side := _of(own[base], "side"))])
    said = f"Beyond the training length ours moves as the print in {ways} cells ({trained})."
    return said + f" It is better or worse than {reference} as printed in {sides}." * bool(sides)


def _of(cells: Iterable[Cell], kind: str) -> str:
    """In how many cells print and measurement agree; nothing where none has both."""
    known = agreeing(cells, kind)
    return f"{sum(known)} of {len(known)}" if known else ""


def _commands(layout: Layout, rows: Sequence[Row]) -> str:
    """What makes the runs of these rows at our first training length."""
    found = list(dict.fromkeys(_command(layout, row) for row in rows if row.label))
    return "; ".join([*found[:3], "and so for the others"] if len(found) > 4 else found)


def _command(layout: Layout, row: Row) -> str:
    """What makes the runs of a row, in the way that it is run at inference."""
    cells = [
        c for c in table(layout.name) if (c.encoding, c.variant) == (row.encoding, row.variant)
    ]
    printed = cells[0].train_length or 1
    usual = settle(PRESET, {"encoding": "nope"})
    trained = usual.length * layout.factors[printed]
    base, _, mode = row.ours(trained).partition(MODE)
    options = ""
    if mode and MODE + mode != BCA:  # a window
        tested = sorted({(c.eval_length or 0) * trained // printed for c in cells})
        options = f"--{mode} --tested {','.join(map(str, tested))}"
    elif mode and subject(base, usual.heads).mechanism not in ROTATIONS:
        options = f"--bca {trained // 2}"  # rotations are measured with it in any case
    length = None if trained == usual.length else trained
    return f"`{command(base, length=length, options=options)}`"


def _multiple(m: Fraction) -> str:
    return f"{m.numerator}×" if m.denominator == 1 else f"{m.numerator}/{m.denominator}×"


def _ticks(cells: Iterable[Cell], kind: str) -> str:
    """A dot for each direction that print and measurement both have, full where they agree."""
    return "".join("○●"[agrees] for agrees in agreeing(cells, kind))


def _number(value: float) -> str:
    """Three significant digits at least, two after the point where the print has them."""
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _ours(c: Cell) -> str:
    if c["measured"] is None:
        return ABSENT
    return _cell(_number(c["measured"]), c["std"] and f"{c['std']:.2g}", c["mark"])


def _theirs(c: Cell) -> str:
    std = c["std, printed"]
    return _cell(c["printed"], None if std is None else f"{std:g}", c["mark, printed"])


def _cell(value: str, spread: str | None, mark: str) -> str:
    return value + ("" if spread is None else f"\u00a0±\u00a0{spread}") + MARKS.get(mark, "")


def _wide(layout: Layout, found: Sequence[Cell]) -> Data:
    """For reading: a row of ours that was measured, then the printed rows it answers to; below
    them the ranks."""
    multiples = sorted({c["multiple"] for c in found})
    rows: list[tuple[Any, ...]] = []
    for base in dict.fromkeys(c["base"] for c in found):
        here = [c for c in found if c["base"] == base]
        for row in layout.rows:
            own = [c for c in here if c["row"] == row]
            if any(c["values"] for c in own):
                rows += _lines(row, own, multiples)
        rows += _ranks(base, _by_set(here), multiples)
    columns = ("encoding", "of", "trained", *map(_multiple, multiples), "direction", "side")
    return Data(columns, tuple(rows))


def _by_set(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Cells by their printed data set."""
    sets = dict.fromkeys(c["dataset"] for c in cells)
    return {name: [c for c in cells if c["dataset"] == name] for name in sets}


def _lines(
    row: Row, own: Sequence[Cell], multiples: Sequence[Fraction]
) -> Iterator[tuple[Any, ...]]:
    """Our line of a row, then a line of each printed data set."""
    ours = {c["multiple"]: c for c in own}
    seeds = max(len(c["values"]) for c in ours.values())
    who = spoken(row.ours(own[0]["trained"])) if row.label else ABSENT
    n = f"measured,\u00a0n\u00a0=\u00a0{seeds}"
    cells = (_ours(ours[m]) if m in ours else "" for m in multiples)
    yield who, n, own[0]["trained"], *cells, "", ""
    for dataset, here in _by_set(own).items():
        by = {c["multiple"]: c for c in here}
        yield (
            f"{row.printed}, printed",
            dataset or "printed",
            here[0]["trained, printed"],
            *(_theirs(by[m]) if m in by else "" for m in multiples),
            _ticks(here, "direction"),
            _ticks(here, "side"),
        )


def _ranks(
    base: int, by_set: Mapping[str, Sequence[Cell]], multiples: Sequence[Fraction]
) -> Iterator[tuple[Any, ...]]:
    """A line of rank correlations for each data set."""
    for dataset, own in by_set.items():
        shown = dict.fromkeys(multiples, "")
        for c in own:
            if (rho := c["rank correlation of the column"]) is not None:
                said = f"{rho:+.2f}\u00a0({c['rows of the column']})"
                shown[c["multiple"]] = said.replace("-", "−")
        agreed = _of(own, "direction"), _of(own, "side")
        yield "rank correlation", dataset or "printed", base, *shown.values(), *agreed


# -- attention resolution -------------------------------------------------------------------------


def resolution_table(runs: DataFrame, figure: str, **options: Any) -> Drawing:
    """Measured attention resolution at the training length and at twice that [S, Table 3].

    Raises:
        NoResults: no run measured the expected scores.
    """
    again = layout(figure, **options)
    printed = {(c.encoding, c.variant, c.eval_length): c for c in table(again.name)}
    lengths = sorted({n for *_, n in printed if n is not None})
    rows: list[tuple[Any, ...]] = []
    used: list[tuple[str, DataFrame]] = []
    by_length: dict[int, list[tuple[Any, Any, bool]]] = {}
    for trained in bases(again, runs):
        samples = samples_of(again, runs, trained)
        for row in again.rows:
            label = row.ours(trained)
            known = samples.get(label, runs.clear()).filter(protocol="scores")
            if known.is_empty():
                continue
            used.append((label, known))
            ours = [[*known.filter(length=m * trained)["resolution"]] for m in (1, 2)]
            theirs = [printed[row.encoding, row.variant, n] for n in lengths]
            means = [float(np.mean(o)) for o in ours]
            same = direction(*(c.value or 0.0 for c in theirs)) == direction(*means)
            by_length.setdefault(trained, []).append((theirs, means, same))
            rows.append(
                (
                    row.printed,
                    label,
                    trained,
                    *(c.printed for c in theirs),
                    *map(_spread, ours),
                    known["seed"].n_unique(),
                    yes_or_no(same),
                )
            )
    if not rows:
        raise _no_results(again, "no runs of its encodings with measured scores")
    said = " ".join(_resolution_agreement(trained, group) for trained, group in by_length.items())
    segments = first(dict(used))["targets"]
    printed_at = (f"{n}, printed" for n in lengths)
    columns = ("model", "ours", "trained", *printed_at, "training length", "twice that")
    told = (conditions([(k, s) for k, s in used if s["trained"][0] == n]) for n in by_length)
    return Drawing(
        Data((*columns, "seeds", "same direction"), tuple(rows)),
        said,
        made=" ".join(told)
        + " Attention resolution R [Eq. 4] of the mean expected score s[n] over segments, heads "
        f"and layers (the paper averages R over layers), measured in {segments} segments, logits "
        "times 1/sqrt(head size), cut at the training length and at twice that; with BCA only "
        "pairs that are seen count. Cells: mean ± standard "
        "deviation over seeds.",
    )


def _spread(values: Sequence[float]) -> str:
    std = f" ± {np.std(values, ddof=1):.2g}" if len(values) > 1 else ""
    return f"{np.mean(values):.3g}{std}"


def _resolution_agreement(trained: int, group: Sequence[tuple[Any, Any, bool]]) -> str:
    rhos = [rank_agreement([(t[k].value, m[k]) for t, m, _ in group]) for k in (0, 1)]
    shown = [f"{r:+.2f}".replace("-", "−") for r in rhos if r is not None]
    ranks = f"; rank correlation with the print {' and '.join(shown)}" if shown else ""
    return (
        f"Trained on {trained} tokens, the direction agrees in {sum(s for *_, s in group)} of "
        f"{len(group)} models{ranks} (n = {len(group)})."
    )
