"""Printed tables of perplexities beside verdicts and leaks; whether a printed row extrapolates.

Of a printed row of perplexities it is computed whether it extrapolates in the sense of
Definition 0.1 of [Q], one-sided, at a tolerance of 5 %; of its encoding the verdict on the
exp-series and the leak from the training length to the longest tested one. Nothing here was
measured by farfield: a measured analogue is beside these numbers only where there are results.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from farfield.figures.exhibit import Data, Drawing, told
from farfield.theory.convergence import Verdict, check_convergence
from farfield.theory.encodings import Encoding
from farfield.validation.papers.tables import PrintedNumber, printed_encoding, table
from farfield.validation.prior import weights
from farfield.validation.results import TOLERANCE

MARKS = {"dagger": "†", "star": "*", "yes": "✓", "no": "✗", "double_yes": "✓✓", "double_no": "✗✗"}


@cache
def verdict(subject: Encoding) -> Verdict:
    """The verdict on the exp-series of an encoding."""
    return check_convergence(subject).verdict


def spelled(verdict: Verdict) -> str:
    """A verdict as a cell of a table has it."""
    return verdict.value.replace("_", " ")


@cache
def _leak(subject: Encoding, trained: int, longest: int) -> float | None:
    """The leak in float64, the mean over heads; None where there is none."""
    if not subject.biases or subject.bca is not None or subject.free:
        return None
    return float(weights(subject.bias(np.arange(longest)))[:, trained:].sum(axis=1).mean())


def _shown(cell: PrintedNumber | None) -> str:
    if cell is None:
        return ""
    spread = "" if cell.std is None else f" ± {cell.std:g}"
    return cell.printed + spread + MARKS.get(cell.marker, "")


def by_row(cells: tuple[PrintedNumber, ...]) -> dict[tuple[Any, ...], dict[int, PrintedNumber]]:
    """The cells of each printed row by tested length; a row is known by its data set, encoding,
    variant and training length."""
    found: dict[tuple[Any, ...], dict[int, PrintedNumber]] = {}
    for c in cells:
        key = (c.dataset, c.encoding, c.variant, c.train_length)
        found.setdefault(key, {})[c.eval_length or 0] = c
    return found


def _extrapolates(
    row: Mapping[int, PrintedNumber], trained: int
) -> tuple[float | None, bool | None]:
    """The greatest printed ratio beyond the first length scored at or beyond the training length,
    and whether it stays within the tolerance."""
    values = {n: c.value for n, c in row.items() if c.value is not None and n >= trained}
    if len(values) < 2:
        return None, None
    first = values.pop(min(values))
    ratio = max(values.values()) / first
    return ratio, ratio - 1 < TOLERANCE


def perplexities(figure: str, remark: str = "", marks: str = "") -> Drawing:
    """A printed table of perplexities beside verdicts and leaks.

    Args:
        figure: the id.
        remark: what else must be said.
        marks: what the printed marks mean.
    """
    cells = table(figure.replace(".", "_"))
    lengths = sorted({c.eval_length for c in cells if c.eval_length})
    rows = []
    agree = total = 0
    for (dataset, printed, variant, trained), row in by_row(cells).items():
        subject = printed_encoding(next(iter(row.values())))
        ratio, kept = _extrapolates(row, trained)
        decided = verdict(subject)
        if kept is not None and decided in (Verdict.CONVERGES, Verdict.DIVERGES):
            total += 1
            agree += (decided is Verdict.CONVERGES) is kept
        rows.append(
            (
                dataset,
                printed,
                variant,
                trained,
                *(_shown(row.get(n)) for n in lengths),
                None if ratio is None else f"{ratio:.{3 if ratio < 10 else 0}f}",
                "" if kept is None else yes_or_no(kept),
                spelled(decided),
                _rounded(_leak(subject, trained, max(lengths))),
            )
        )
    columns = (
        "dataset",
        "encoding",
        "variant",
        "trained",
        *map(str, lengths),
        "worst ratio",
        f"within {TOLERANCE:.0%}",
        "verdict",
        f"leak to {max(lengths)}",
    )
    made = told(
        f"Perplexities as printed (± standard deviation{marks}). "
        "Computed from them: the worst, the greatest, ratio to the first tested length that is not "
        "shorter than the training length, and whether it stays within "
        f"{TOLERANCE:.0%} (Definition 0.1 of Qin et al., one-sided). Computed from the formulas: "
        "the verdict (theorem) and the leak from the training length (float64, mean over heads).",
        remark,
    )
    caption = (
        f"Read as a forecast, verdict and print agree in {agree} of {total} rows with a verdict; "
        "the theorem itself does not speak of perplexity."
        if total
        else "No printed row of an encoding with a verdict reaches beyond its training length."
    )
    alone = {row[3] for row in rows}
    if len(alone) > 1:
        return Drawing(Data(columns, tuple(rows)), caption, made=made)
    shown = Data((*columns[:3], *columns[4:]), tuple((*row[:3], *row[4:]) for row in rows))
    sentence = f"{caption} All models were trained on {alone.pop()} tokens."
    return Drawing(Data(columns, tuple(rows)), sentence, shown=shown, made=made)


def yes_or_no(found: bool) -> str:
    """A cell that says whether."""
    return "yes" if found else "no"


def _rounded(x: float | None) -> str | None:
    """Three digits; below 10⁻¹² only that bound."""
    return None if x is None else "< 1e-12" if 0 < x < 1e-12 else f"{x:.3g}"
