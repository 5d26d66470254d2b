"""The printed tables measured again at a small scale, beside the print, with their agreement.

A missing measurement is `-`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from farfield.figures.exhibit import Data, Drawing, NoResults
from farfield.figures.papers.printed_rows import (
    Agreement,
    Layout,
    Pair,
    Row,
    agreements,
    bases,
    direction,
    layout,
    pairs,
    rank_agreement,
    samples_of,
    worth,
)
from farfield.figures.papers.printed_tables import MARKS, yes_or_no
from farfield.figures.samples import (
    BCA,
    MODE,
    PRESET,
    Run,
    Sample,
    command,
    conditions,
    subject,
)
from farfield.figures.style import spoken
from farfield.numerics.resolution import attention_resolution
from farfield.validation.harness.configuration import variants
from farfield.validation.harness.presets import preset
from farfield.validation.published import table

ABSENT = "-"
PLUS_MINUS = "\u00a0±\u00a0"


def measured_table(runs: Sequence[Run], figure: str, **options: Any) -> Drawing:
    """A printed table measured again, as `layout` reads its options.

    Raises:
        NoResults: none of its encodings was trained and measured so.
    """
    again = layout(figure, **options)
    found = worth(pairs(again, runs))
    if not found:
        raise NoResults(
            f"fewer than two of its rows among the runs; to make them: "
            f"{_commands(again, again.rows)}; `farfield figures {again.id} --runs runs`"
        )
    agreed = agreements(found)
    lengths = dict.fromkeys(e.trained for e in found if e.values)
    used = [s for n in lengths for s in samples_of(again, runs, n).values()]
    name = again.reference.printed
    made = (
        f"{conditions(used)} Protocol: {again.protocol}. Mean ± standard deviation over seeds; "
        f"†: {name} is significantly better, *: worse (paired t-test over shared seeds, two-sided, "
        "0.05). Below 1 % counts as equal. Last rows: Spearman's rank correlation of a column's "
        f"means with the print (rows).{f' {again.remark}' * bool(again.remark)}"
    )
    lacking = [
        row for row in again.rows if row.label and not any(e.values for e in found if e.row == row)
    ]
    if lacking:
        made += (
            f" Not measured: {', '.join(r.printed for r in lacking)}; to make them: "
            f"{_commands(again, lacking)}."
        )
    outside = [row.printed for row in again.rows if not row.label]
    if outside:
        made += f" Not in the catalogue: {', '.join(outside)}."
    caption = (
        f"{_said(agreed)} Columns: multiples of the training length. Direction: ✓ for each number "
        "that rises or falls from the training length as ours does, ✗ for each that does not. "
        f"Side: ✓ where it is better or worse than {name}, as ours is."
    )
    return Drawing(_long(found, agreed), caption, shown=_wide(again, found, agreed), made=made)


def _said(agreed: Sequence[Agreement]) -> str:
    """The agreement over all printed data sets, in a sentence for each training length."""
    parts = []
    for base in dict.fromkeys(a.base for a in agreed):
        group = [a for a in agreed if a.base == base]
        length, side = (
            [sum(x) for x in zip(*(getattr(a, k) for a in group), strict=True)]
            for k in ("length", "side")
        )
        side_said = f", the side in {side[0]} of {side[1]}" * bool(side[1])
        parts.append(
            f"Trained on {base} tokens, the way from the training length agrees in {length[0]} "
            f"of {length[1]} cells{side_said}."
        )
    return " ".join(parts)


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
    usual = preset(PRESET)
    trained = usual.length * layout.factors[printed]
    base, _, mode = row.ours(trained).partition(MODE)
    options = ""
    if mode and MODE + mode != BCA:  # a window
        tested = sorted({(c.eval_length or 0) * trained // printed for c in cells})
        options = f"--{mode} --tested {','.join(map(str, tested))}"
    elif mode and not variants(subject(base).encoding(usual.heads), trained):
        options = f"--bca {trained // 2}"  # rotations are measured with it in any case
    length = None if trained == usual.length else trained
    return f"`{command(base, length=length, options=options)}`"


def _multiple(m: Fraction) -> str:
    return f"{m.numerator}×" if m.denominator == 1 else f"{m.numerator}/{m.denominator}×"


def _ticks(directions: Iterable[tuple[int, int] | None]) -> str:
    """A mark for each direction that print and measurement both have."""
    return "".join("✓" if d[0] == d[1] else "✗" for d in directions if d is not None)


def _number(value: float) -> str:
    """Three significant digits at least, two after the point where the print has them."""
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _ours(e: Pair) -> str:
    if e.mean is None:
        return ABSENT
    spread = "" if e.std is None else f"{PLUS_MINUS}{e.std:.2g}"
    return _number(e.mean) + spread + MARKS.get(e.mark, "")


def _theirs(e: Pair) -> str:
    spread = "" if e.cell.std is None else f"{PLUS_MINUS}{e.cell.std:g}"
    return e.cell.printed + spread + MARKS.get(e.cell.marker, "")


def _wide(layout: Layout, found: Sequence[Pair], agreed: Sequence[Agreement]) -> Data:
    """For reading: a row of ours that was measured, then the printed rows it answers to; below
    them the ranks."""
    multiples = sorted({e.multiple for e in found})
    rows: list[tuple[Any, ...]] = []
    for base in dict.fromkeys(e.base for e in found):
        for row in layout.rows:
            own = [e for e in found if e.base == base and e.row == row]
            if any(e.values for e in own):
                rows += _lines(row, own, multiples)
        rows += _ranks([a for a in agreed if a.base == base], multiples)
    columns = ("encoding", "of", "trained", *map(_multiple, multiples), "direction", "side")
    return Data(columns, tuple(rows))


def _lines(
    row: Row, own: Sequence[Pair], multiples: Sequence[Fraction]
) -> Iterator[tuple[Any, ...]]:
    """Our line of a row, then a line of each printed data set."""
    by_set: dict[str, dict[Fraction, Pair]] = {}
    for e in own:
        by_set.setdefault(e.dataset, {})[e.multiple] = e
    ours = {m: e for by in by_set.values() for m, e in by.items()}
    seeds = max(len(e.values) for e in ours.values())
    trained = own[0].trained
    who = spoken(row.ours(trained)) if row.label else ABSENT
    n = f"measured,\u00a0n\u00a0=\u00a0{seeds}"
    yield who, n, trained, *(_ours(ours[m]) if m in ours else "" for m in multiples), "", ""
    for dataset, by in by_set.items():
        yield (
            f"{row.printed}, printed",
            dataset or "printed",
            next(iter(by.values())).cell.train_length,
            *(_theirs(by[m]) if m in by else "" for m in multiples),
            _ticks(e.length for _, e in sorted(by.items())),
            _ticks(e.side for _, e in sorted(by.items())),
        )


def _ranks(agreed: Sequence[Agreement], multiples: Sequence[Fraction]) -> Iterator[tuple[Any, ...]]:
    """A line of rank correlations for each data set."""
    for a in agreed:
        ranks = [a.ranks.get(m, (None, 0)) for m in multiples]
        shown = ["" if r is None else f"{r:+.2f}\u00a0({n})".replace("-", "−") for r, n in ranks]
        yield (
            "rank correlation",
            a.dataset or "printed",
            a.base,
            *shown,
            _of(a.length),
            _of(a.side),
        )


def _of(pair: tuple[int, int]) -> str:
    return f"{pair[0]} of {pair[1]}" if pair[1] else ""


def _long(found: Sequence[Pair], agreed: Sequence[Agreement]) -> Data:
    """For programs: a line a cell."""
    ranks = {(a.dataset, a.base): a.ranks for a in agreed}
    rows = []
    for e in found:
        rho, n = ranks[e.dataset, e.base].get(e.multiple, (None, 0))
        c = e.cell
        rows.append(
            (
                e.dataset,
                e.row.encoding,
                e.row.variant,
                e.row.ours(e.trained) or None,
                e.multiple,
                c.train_length,
                c.eval_length,
                c.printed,
                c.std,
                c.marker,
                e.trained,
                int(e.multiple * e.trained),
                e.mean,
                e.std,
                " ".join(map(str, sorted(e.values))),
                e.p,
                e.mark,
                *(e.length or (None, None)),
                *(e.side or (None, None)),
                rho,
                n,
            )
        )
    return Data(
        (
            "dataset",
            "encoding",
            "variant",
            "ours",
            "multiple",
            "trained, printed",
            "tested, printed",
            "printed",
            "std, printed",
            "mark, printed",
            "trained",
            "tested",
            "measured",
            "std",
            "seeds",
            "p",
            "mark",
            "direction, printed",
            "direction, measured",
            "side, printed",
            "side, measured",
            "rank correlation of the column",
            "rows of the column",
        ),
        tuple(rows),
    )


# -- attention resolution -------------------------------------------------------------------------


def resolution_table(runs: Sequence[Run], figure: str, **options: Any) -> Drawing:
    """Measured attention resolution at the training length and at twice that [S, Table 3].

    Raises:
        NoResults: no run measured the expected scores.
    """
    again = layout(figure, **options)
    printed = {(c.encoding, c.variant, c.eval_length): c for c in table(again.name)}
    lengths = sorted({n for *_, n in printed if n is not None})
    rows: list[tuple[Any, ...]] = []
    used: list[Sample] = []
    by_length: dict[int, list[tuple[Any, Any, int]]] = {}
    for trained in bases(again, runs):
        samples = samples_of(again, runs, trained)
        for row in again.rows:
            sample = samples.get(row.ours(trained))
            if sample is None or "scores" not in sample.measurements[0]:
                continue
            used.append(sample)
            ours = [_resolutions(sample, multiple * trained) for multiple in (1, 2)]
            theirs = [printed[row.encoding, row.variant, n] for n in lengths]
            means = [float(np.mean(o)) for o in ours]
            ways = direction(*(c.value or 0.0 for c in theirs)), direction(*means)
            spreads = [float(np.std(o, ddof=1)) if len(o) > 1 else None for o in ours]
            by_length.setdefault(trained, []).append((theirs, means, ways[0] == ways[1]))
            rows.append(
                (
                    row.printed,
                    row.ours(trained),
                    trained,
                    *(c.printed for c in theirs),
                    *(_spread(m, s) for m, s in zip(means, spreads, strict=True)),
                    len(sample.runs),
                    yes_or_no(ways[0] == ways[1]),
                )
            )
    if not rows:
        raise NoResults(
            "no runs of its encodings with measured scores; to make them: "
            f"{_commands(again, again.rows)}; `farfield figures {again.id} --runs runs`"
        )
    said = " ".join(_resolution_agreement(trained, group) for trained, group in by_length.items())
    scores = used[0].measurements[0]["scores"]
    return Drawing(
        Data(
            (
                "model",
                "ours",
                "trained",
                *(f"{n}, printed" for n in lengths),
                "training length",
                "twice that",
                "seeds",
                "same direction",
            ),
            tuple(rows),
        ),
        said,
        made=" ".join(conditions([s for s in used if s.length == n]) for n in by_length)
        + " Attention resolution R [Eq. 4] of the mean expected score s[n] over segments, heads "
        f"and layers (the paper averages R over layers), measured in {scores['segments']} segments "
        f"of {scores['length']} tokens, logits times {scores['scale']}, cut at the training length "
        "and at twice that; with BCA only pairs that are seen count. Cells: mean ± standard "
        "deviation over seeds.",
    )


def _spread(mean: float, std: float | None) -> str:
    return f"{mean:.3g}" + ("" if std is None else f" ± {std:.2g}")


def _resolution_agreement(trained: int, group: Sequence[tuple[Any, Any, int]]) -> str:
    rhos = [rank_agreement([(t[k].value, m[k]) for t, m, _ in group]) for k in (0, 1)]
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
