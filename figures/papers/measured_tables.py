"""The printed tables measured again at a small scale: how perplexity grows, printed and here.

A printed row and ours are compared at the same multiples of the training length. Each number is a
ratio of two perplexities of one row. The divisor is the one at the training length, or at the first
multiple that is printed. The models are small, so the growth compares and the level does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from polars import DataFrame, col

from farfield.figures.exhibit import Data, Drawing, NoResults, told
from farfield.figures.papers.measured_samples import (
    BCA,
    MODE,
    command,
    conditions,
    settings,
    subject,
)
from farfield.figures.papers.printed_tables import by_row
from farfield.figures.style import spoken
from farfield.theory.answers.notation import listed
from farfield.validation.harness.settings import ROTATIONS
from farfield.validation.papers.tables import PrintedNumber, table
from farfield.validation.results import perplexities

ABSENT = "-"
COLUMNS = (
    *("dataset", "encoding", "variant", "here", "trained, printed", "trained", "multiple"),
    *("printed", "measured", "least", "greatest", "seeds"),
)


def growths(values: Mapping[Any, float]) -> dict[Any, float]:
    """Values by multiple of the training length, over the one at the first multiple from 1 on.

    >>> growths({1: 5.0, 2: 6.0})
    {2: 1.2}
    """
    beyond = sorted(m for m in values if m >= 1)
    return {m: values[m] / values[beyond[0]] for m in beyond[1:]}


def measured_table(
    runs: DataFrame,
    figure: str,
    *,
    rows: Sequence[Sequence[str]],
    factors: Mapping[str, int],
    protocol: str,
    remark: str = "",
) -> Drawing:
    """A printed table measured again.

    Args:
        runs: results.
        figure: the id of the exhibit.
        rows: of each printed row encoding, variant and the label of our runs, in which `{n}` and
            `{4n}` represent our training length and four times that; the label is empty where the
            catalogue has no such encoding.
        factors: of our base training length, by the printed training length.
        protocol: of the perplexities.
        remark: what else must be said.

    Raises:
        NoResults: fewer than two of its rows were trained and measured so.
    """
    printed = by_row(table(figure.removesuffix("-measured").replace(".", "_")))
    labels = {(encoding, variant): label for encoding, variant, label in rows}
    lines: list[tuple[Any, ...]] = []
    samples: dict[tuple[int, str], DataFrame] = {}
    for base in sorted({n // f for n in {*runs["trained"]} for f in factors.values() if not n % f}):
        found: list[tuple[Any, ...]] = []
        for length, factor in factors.items():
            known = _samples(runs, labels.values(), base * factor)
            samples |= {(base * factor, label): sample for label, sample in known.items()}
            for row, cells in printed.items():
                label = _at(labels.get(row[1:3], ""), base * factor)
                if row[3] == int(length) and label in known:
                    ours = perplexities(known[label], protocol)
                    found += _lines((*row[:3], label, row[3], base * factor), cells, ours)
        lines += found if len({line[1:3] for line in found}) > 1 else []
    shown = {line[1:3] for line in lines}
    lacking = [row for row, label in labels.items() if label and row not in shown]
    first = next(iter(factors.values())) * 64
    commands = dict.fromkeys(_command(_at(labels[row], first), first) for row in lacking)
    if not lines:
        made = "; ".join([*commands][:3])
        raise NoResults(
            f"fewer than two of its rows among the runs; to make them: {made}, and so for the "
            f"others; `farfield figures {figure} --runs runs`"
        )
    outside = [" ".join(row).strip() for row, label in labels.items() if not label]
    lengths = {line[5] for line in lines}
    used = [(label, sample) for (n, label), sample in samples.items() if n in lengths]
    names = listed([" ".join(row).strip() for row in lacking])
    return Drawing(
        Data(COLUMNS, tuple(lines)),
        "Perplexity over that at the training length, printed and here, at multiples of that "
        "length. Ours are small models of bytes, trained on rows of "
        f"{' or '.join(map(str, sorted(lengths)))}, so the growth compares and the level does not.",
        shown=_wide(lines),
        made=told(
            f"{conditions(used)} Protocol: {protocol}. Means over seeds.",
            remark,
            f"Not measured: {names}; to make them: {'; '.join(commands)}." * bool(lacking),
            f"Not in the catalogue: {', '.join(outside)}." * bool(outside),
        ),
    )


def _at(label: str, trained: int) -> str:
    """The label for models of a training length."""
    return label.replace("{n}", str(trained)).replace("{4n}", str(4 * trained))


def _samples(runs: DataFrame, labels: Any, trained: int) -> dict[str, DataFrame]:
    """Our samples of one training length, by their labels."""
    wanted = list(dict.fromkeys(_at(label, trained) for label in labels if label))
    return next(iter(settings(runs.filter(col("trained") == trained), wanted)), {})


def _lines(
    row: tuple[Any, ...],
    cells: Mapping[int, PrintedNumber],
    ours: Mapping[int, Mapping[int, float]],
) -> Iterator[tuple[Any, ...]]:
    """A line a multiple: the printed growth, our mean, the least and greatest of our seeds."""
    *_, length, trained = row
    printed = {Fraction(n, length): c.value for n, c in cells.items() if c.value is not None}
    values = {m: v for n, v in ours.items() if (m := Fraction(n, trained)) in printed}
    mean = growths({m: float(np.mean([*v.values()])) for m, v in values.items()})
    seeds = {seed for v in values.values() for seed in v}
    each = [growths({m: v[seed] for m, v in values.items() if seed in v}) for seed in seeds]
    for m, growth in growths(printed).items():
        spread = [of_seed[m] for of_seed in each if m in of_seed]
        ends = (min(spread), max(spread)) if spread else (None, None)
        yield *row, m, growth, mean.get(m), *ends, len(spread)


def _command(label: str, trained: int) -> str:
    """What makes the runs of a label, in the way that it is run at inference."""
    base, _, mode = label.partition(MODE)
    options = f"--{mode}" if mode and MODE + mode != BCA else ""
    if MODE + mode == BCA and subject(base).mechanism not in ROTATIONS:
        options = f"--bca {trained // 2}"  # rotations are measured with it in any case
    return f"`{command(base, length=trained, options=options)}`"


def _wide(lines: Sequence[tuple[Any, ...]]) -> Data:
    """For reading: a row for each printed one, with a pair of columns for each multiple."""
    multiples = sorted({line[6] for line in lines})
    rows: dict[tuple[Any, ...], dict[Any, tuple[str, str]]] = {}
    for dataset, encoding, variant, here, _, trained, m, printed, ours, *_, seeds in lines:
        name = f"{encoding} {variant}".strip(), dataset or ABSENT, spoken(here), trained
        pair = f"{printed:.3g}", ABSENT if ours is None else f"{ours:.3g} ({seeds})"
        rows.setdefault(name, {})[m] = pair
    heads = (f"{m}×, {whose}" for m in multiples for whose in ("printed", "here (models)"))
    return Data(
        ("encoding", "data set", "here", "trained", *heads),
        tuple(
            (*name, *(cell for m in multiples for cell in pairs.get(m, ("", ""))))
            for name, pairs in rows.items()
        ),
    )
