"""The printed tables measured again at a small scale: how perplexity grows, printed and here.

A printed row and ours are compared at the same multiples of the training length. Each number is a
perplexity over that of the same row at the training length, or at the first multiple of it that is
printed. The models are small, so the growth compares and the level does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from polars import DataFrame, col

from farfield.figures.exhibit import Data, Drawing, NoResults
from farfield.figures.papers.printed_tables import by_row
from farfield.figures.samples import BCA, MODE, PRESET, command, conditions, settings, subject
from farfield.figures.style import spoken
from farfield.theory.answers.notation import listed
from farfield.validation.harness.mechanism import ROTATIONS
from farfield.validation.harness.settings import settle
from farfield.validation.papers.tables import table
from farfield.validation.results import perplexities

ABSENT = "-"
COLUMNS = (
    *("dataset", "encoding", "variant", "here", "trained, printed", "trained", "multiple"),
    *("printed", "measured", "least", "greatest", "seeds"),
)


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
        rows: printed encodings with labels of our runs, as `Row`.
        factors: of our base training length, by the printed training length.
        protocol: of the perplexities.
        remark: what else must be said.

    Raises:
        NoResults: fewer than two of its rows were trained and measured so.
    """
    wanted = [Row(*row) for row in rows]
    by_length = {int(length): factor for length, factor in factors.items()}
    name = figure.removesuffix("-measured").replace(".", "_")
    used: dict[int, dict[str, DataFrame]] = {}
    lines: list[tuple[Any, ...]] = []
    for base in _bases(runs, by_length.values()):
        found: list[tuple[Any, ...]] = []
        for printed_length, factor in by_length.items():
            samples = _samples(runs, wanted, base * factor)
            used[base * factor] = samples
            found += _lines(name, wanted, printed_length, base * factor, samples, protocol)
        lines += found if len({line[1:3] for line in found}) > 1 else []
    commands = {row.printed: _command(name, row, by_length) for row in wanted if row.label}
    if not lines:
        every = list(dict.fromkeys(commands.values()))
        each = "; ".join([*every[:3], "and so for the others"] if len(every) > 4 else every)
        raise NoResults(
            f"fewer than two of its rows among the runs; to make them: {each}; `farfield figures "
            f"{figure} --runs runs`"
        )
    shown = {f"{line[1]} {line[2]}".strip() for line in lines}
    lacking = [row for row in commands if row not in shown]
    outside = [row.printed for row in wanted if not row.label]
    trained = " or ".join(str(n) for n in dict.fromkeys(line[5] for line in lines))
    made = (
        f"{conditions([s for n in used for s in used[n].items() if n in {r[5] for r in lines}])} "
        f"Protocol: {protocol}. Means over seeds."
        + f" {remark}"
        * bool(remark)
        + f" Not measured: {listed(lacking)}; to make them: "
        f"{'; '.join(dict.fromkeys(commands[row] for row in lacking))}."
        * bool(lacking)
        + f" Not in the catalogue: {', '.join(outside)}." * bool(outside)
    )
    caption = (
        "Perplexity over that at the training length, printed and here, at multiples of that "
        f"length. Ours are small models of bytes, trained on rows of {trained}, so the growth "
        "compares and the level does not."
    )
    return Drawing(Data(COLUMNS, tuple(lines)), caption, shown=_wide(lines), made=made)


def _bases(runs: DataFrame, factors: Any) -> list[int]:
    """Our base training lengths: those that have a multiple for every printed one."""
    return sorted({n // f for n in {*runs["trained"]} for f in factors if n % f == 0})


def _samples(runs: DataFrame, rows: Sequence[Row], trained: int) -> dict[str, DataFrame]:
    """Our samples of one training length, by their labels."""
    wanted = list(dict.fromkeys(row.ours(trained) for row in rows if row.label))
    return next(iter(settings(runs.filter(col("trained") == trained), wanted)), {})


def _lines(
    name: str,
    rows: Sequence[Row],
    printed_length: int,
    trained: int,
    samples: Mapping[str, DataFrame],
    protocol: str,
) -> Iterator[tuple[Any, ...]]:
    """What is printed of one training length beside our runs of one, a line a multiple."""
    known = {(row.encoding, row.variant): row for row in rows if row.ours(trained) in samples}
    for (dataset, encoding, variant, length), cells in by_row(table(name)).items():
        row = known.get((encoding, variant))
        if row is None or length != printed_length:
            continue
        theirs = {Fraction(n, length): c.value for n, c in cells.items() if c.value is not None}
        by_length = perplexities(samples[row.ours(trained)], protocol)
        mean = {Fraction(n, trained): float(np.mean([*v.values()])) for n, v in by_length.items()}
        ours = growths({m: v for m, v in mean.items() if m in theirs})
        seeds = _by_seed(by_length, trained, theirs)
        for m, printed in growths(theirs).items():
            each = [g[m] for g in seeds if m in g]
            spread = (min(each), max(each)) if each else (None, None)
            yield (
                *(dataset, encoding, variant, row.ours(trained), length, trained, m),
                *(printed, ours.get(m), *spread, len(each)),
            )


def _by_seed(
    by_length: Mapping[int, Mapping[int, float]], trained: int, printed: Mapping[Fraction, float]
) -> list[dict[Any, float]]:
    """The growths of each seed at the multiples that are printed."""
    curves: dict[int, dict[Fraction, float]] = {}
    for n, values in by_length.items():
        for seed, value in values.items():
            if Fraction(n, trained) in printed:
                curves.setdefault(seed, {})[Fraction(n, trained)] = value
    return [growths(curve) for curve in curves.values()]


def _command(name: str, row: Row, factors: Mapping[int, int]) -> str:
    """What makes the runs of a row, in the way that it is run at inference."""
    cells = [c for c in table(name) if (c.encoding, c.variant) == (row.encoding, row.variant)]
    printed = cells[0].train_length or 1
    usual = settle(PRESET, {"encoding": "nope"})
    trained = usual.length * factors[printed]
    base, _, mode = row.ours(trained).partition(MODE)
    options = ""
    if mode and MODE + mode != BCA:  # a window
        tested = sorted({(c.eval_length or 0) * trained // printed for c in cells})
        options = f"--{mode} --tested {','.join(map(str, tested))}"
    elif mode and subject(base, usual.heads).mechanism not in ROTATIONS:
        options = f"--bca {trained // 2}"  # rotations are measured with it in any case
    length = None if trained == usual.length else trained
    return f"`{command(base, length=length, options=options)}`"


def _wide(lines: Sequence[tuple[Any, ...]]) -> Data:
    """For reading: a row for each printed one, with a pair of columns for each multiple."""
    multiples = sorted({line[6] for line in lines})
    rows: dict[tuple[Any, ...], dict[Any, tuple[str, str]]] = {}
    for dataset, encoding, variant, here, _, trained, m, printed, ours, *_, seeds in lines:
        own = rows.setdefault(
            (f"{encoding} {variant}".strip(), dataset or ABSENT, spoken(here), trained), {}
        )
        own[m] = (f"{printed:.3g}", ABSENT if ours is None else f"{ours:.3g} ({seeds})")
    heads = (
        f"{_multiple(m)}, {whose}" for m in multiples for whose in ("printed", "here (models)")
    )
    return Data(
        ("encoding", "data set", "here", "trained", *heads),
        tuple(
            (*row, *(cell for m in multiples for cell in own.get(m, ("", ""))))
            for row, own in rows.items()
        ),
    )


def _multiple(m: Fraction) -> str:
    return f"{m.numerator}×" if m.denominator == 1 else f"{m.numerator}/{m.denominator}×"
