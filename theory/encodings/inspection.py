"""The answer of `inspect_bias`: does a bias depend on distance alone, does it fall, does it mask?

The object is followed, or run on a grid of positions (`sampling`). Each head is compared along
diagonals. Of what could not be followed, the values are known where they were asked, and what
family they resemble there (`families`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sympy import Expr

from farfield.theory.answers.answer import Answer, Label, Seen
from farfield.theory.answers.blocks import Block, Curve, Line, facts, note, sentence
from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.answers.notation import expression_line, listed, shortened
from farfield.theory.encodings.families import (
    EPSILON,
    MASKED,
    Fit,
    fitted,
    visible,
)
from farfield.theory.encodings.head_lists import notation
from farfield.theory.encodings.python_files import built, handed
from farfield.theory.encodings.row_modules import GATES
from farfield.theory.encodings.samples import CAPPED, FACTOR, GROWING, Sample
from farfield.theory.encodings.sampling import of_array, sampled
from farfield.theory.mechanisms import MECHANISMS

DRAWN = 512
FEW = 4
"""Values from which on a table resembles anything."""
SHOWN = 200
"""Letters of a suggestion."""
SKIPPED = 8
"""Distances at which a formula that was traced may be undefined, as `1/n` is at 0."""


@dataclass(frozen=True, repr=False, kw_only=True)
class BiasInspection(Answer):
    """What an object that gives a bias is.

    Fields:
        heads: how many biases it gives.
        how: the call by which it was run.
        depends: `distance`, `row` (its length or the query's position too), or `content`.
        mechanism: by which its windows are decided (`farfield.theory.mechanisms`).
        origin: `traced`: every path was followed, and the formulas hold at all distances;
            `formula`: slopes, which say a formula; `tabulated`: known where it was asked.
        formulas: one a head; none of a tabulated bias.
        family: of a tabulated bias, the family that it agrees with where it was seen.
        resembles: the formula of that family, as farfield reads it.
        difference: the largest difference between values and formula.
        seen: of a tabulated bias, the last distance and the last query that were asked.
        direction: with distance, `falls`, `rises`, `constant` or `varies`.
        causal: whether keys after the query are masked; None where none was asked.
        masked_from: the first distance whose value represents minus infinity, None without one.
        merged: by type, the first distance whose next one is rounded to the same value.
        findings: sentences, that which matters most first.
        table: the biases at distances 0, 1, ..., shape (heads, distances).
        beyond: the distances beyond those that were seen too, in words.
        why: why no formula was followed, and where the known values end.
    """

    VALUE = "origin"

    heads: int
    how: str
    depends: str
    mechanism: str
    origin: str
    formulas: tuple[Expr, ...]
    family: str
    resembles: str
    difference: float | None
    seen: Seen | None
    direction: str
    causal: bool | None
    masked_from: int | None
    merged: tuple[tuple[str, int], ...]
    findings: tuple[str, ...]
    table: np.ndarray = field(compare=False)
    beyond: str = ""
    why: str = ""
    label: Label | None = Label.MEASURED

    def _blocks(self) -> Iterator[Block]:
        first, *others = self.findings
        yield sentence("{subject}: {said}.", self.label, subject=self.subject, said=first)
        for finding in others:
            yield note("{said}.", said=finding[0].upper() + finding[1:])
        shown = notation([str(f) for f in self.formulas]) if self.formulas else ""
        yield facts(
            called_with=self.how,
            heads=self.heads,
            formula=shortened(shown, 300) or None,
            origin=self.origin or None,
            largest_difference=None if self.difference is None else f"{self.difference:.2g}",
            distances_seen=f"0 to {self.table.shape[1] - 1}{self.beyond}",
            resembles=f'{self.resembles}: farfield check "{self.resembles}"'
            if self.resembles
            else None,
        )
        lines = [
            Line(f"head {h}", tuple(map(float, range(len(row)))), tuple(map(float, row)))
            for h, row in enumerate(
                np.where(visible(self.table[:, :DRAWN]), self.table[:, :DRAWN], np.nan), 1
            )
        ]
        yield Curve("The bias at each distance.", "distance", "bias", tuple(lines[:8]))

    def fields(self) -> dict[str, Any]:
        return {
            **{k: v for k, v in super().fields().items() if k != "table"},
            "formulas": [str(f) for f in self.formulas],
            "merged": dict(self.merged),
        }


def inspect_bias(f: object, *, heads: int | None = None) -> BiasInspection:
    """What a function, a module or an array of biases is (measured by running it).

    Args:
        f: a function of a distance, of `(q, k)`, of `(h, q, k)`; a FlexAttention `score_mod` or
            `mask_mod`; a torch module whose forward takes positions, lengths or scores; an array
            (heads, queries, keys), (queries, keys) or slopes (heads,); the text `FILE.py:NAME`.
        heads: how many heads to ask for, where the object does not say.

    Raises:
        InputError: no call gives a bias, it gives NaN, or it differs from call to call.

    >>> inspect_bias(lambda q, k: -(q - k) / 8).findings[0]
    'falls with distance: linear, as ALiBi'
    >>> inspect_bias(lambda score, b, h, q, k: score + (q - k)).findings[0]
    'rises with distance: the far past outweighs the near one'
    """
    name, sample = _sampled(f, heads)
    view = _diagonals(sample)
    table = view.values[:, : view.count]
    seen = visible(table)
    future = [row.values[:, row.distances < 0] <= MASKED for row in sample.rows]
    mechanism = _mechanism(sample, view)
    known = _formulas(sample, view) if mechanism == "bias" else _Known()
    last = max((row.query for row in sample.rows), default=None)
    hidden = ~seen.all(axis=0)
    inspection = BiasInspection(
        heads=len(sample.values),
        how=sample.how,
        depends="distance" if mechanism == "bias" else "content" if sample.content else "row",
        mechanism=mechanism,
        **vars(known),
        seen=None if sample.formulas else Seen(view.count - 1, last),
        direction=_direction(np.where(seen, table, np.nan)),
        causal=all(x.all() for x in future) if any(x.size for x in future) else None,
        masked_from=int(np.argmax(hidden)) if hidden.any() else None,
        merged=tuple(_merged(table, seen)),
        findings=(),
        table=table,
        beyond=_beyond(view.distances[view.count :]),
        why="" if sample.content else "; ".join(filter(None, (sample.why, sample.ends))),
        subject=name,
    )
    return replace(inspection, findings=tuple(_findings(inspection, sample, view)))


def _sampled(f: object, heads: int | None) -> tuple[str, Sample]:
    """The name of an object, or of the one that a text names, and what it gives."""
    if isinstance(f, str) and re.fullmatch(r"\S+\.py(:[\w.]+)?", f):
        f = handed(f, heads)
    refuse(
        isinstance(f, str),
        f"{str(f)[:40]!r} is text; accepted: FILE.py:NAME, a function, a module or an array; a "
        "formula is decided by check",
    )
    f = built(f, heads) if isinstance(f, type) else f
    if not callable(f) or hasattr(f, "__array__"):
        return "the array", of_array(f)
    return getattr(f, "__name__", type(f).__name__), sampled(f, heads)


@dataclass(frozen=True)
class _Diagonals:
    """A sample along its diagonals.

    Fields:
        distances: those of the longest row, ascending from 0.
        values: the biases there, shape (heads, distances).
        count: how many of the distances follow one another.
        alike: whether every row has these values, a constant a row aside.
        scale: of numbers that cancelled where rows differ by constants, which a softmax does not
            see; shape (heads,), else 0.
    """

    distances: np.ndarray
    values: np.ndarray
    count: int
    alike: bool
    scale: np.ndarray


def _diagonals(sample: Sample) -> _Diagonals:
    """The longest row, and what the others differ by."""
    distances, values = sample.distances, sample.values
    near = [row.values for row in sample.rows if row.is_dense] or [values]
    scale = np.abs(np.where((x := np.concatenate(near, axis=1)) > MASKED, x, 0)).max(axis=1)
    tolerance = float(8 * EPSILON.get(sample.kind, 2.0**-52) * scale.max())
    first = np.take_along_axis(values, np.argmax(visible(values), axis=1)[:, None], axis=1)
    keyed = not sample.rows and sample.how == "an array"  # slope times key
    shifted = keyed and bool((first[:, 0] == scale).all() and (values[:, -1] == 0).all())
    alike = True
    for row in sample.rows:
        asked = np.isin(row.distances, distances)
        past = row.values[:, asked]
        same = values[:, np.searchsorted(distances, row.distances[asked])]
        alike &= bool((visible(same) == visible(past)).all())
        seen = visible(same) & visible(past)
        gap = np.subtract(past, same, out=np.zeros_like(past), where=seen)
        base = np.take_along_axis(gap, np.argmax(seen, axis=1)[:, None], axis=1)
        alike &= bool((np.abs(np.where(seen, gap - base, 0)) <= tolerance).all())
        shifted |= bool(np.abs(base).max() > tolerance)
    steps = np.flatnonzero(np.diff(distances) != 1)
    count = int(steps[0]) + 1 if steps.size else len(distances)
    less = values - first if shifted else values
    return _Diagonals(distances, less, count, alike, scale if shifted else np.zeros_like(scale))


def _beyond(distances: np.ndarray) -> str:
    """Single distances beyond the table, in words."""
    size = len(distances)
    return f", and {size} more up to {int(distances[-1])}" if size else ""


def _shrinks(sample: Sample) -> bool:
    """Whether the step from the query's own key to one at a near distance, and to one farther away,
    weighs less in each longer row."""
    dense = [row for row in sample.rows if row.is_dense]
    size = max(row.query for row in dense) + 1
    near, far = max(1, size // 64), max(2, size // 8)
    wanted = (size // 8, size // 3, size // 2, size - 1)
    nearest = {id(r): r for q in wanted for r in [min(dense, key=lambda row: abs(row.query - q))]}
    steps = np.array(
        [
            [np.abs(row.at(d) - row.at(0)).max() for d in (near, far)]
            for row in nearest.values()
            if row.query >= far
        ]
    )
    falls = (steps[1:] < 0.99 * steps[:-1]).all() and (steps[-1:] < 0.8 * steps[:1]).all()
    return bool(len(steps) > 2 and (steps > 0).all() and falls)


_ALONE = {FACTOR: "scaled_content", GROWING: "row_scaled", CAPPED: "capped"}
"""Mechanisms of functions of the score, where no bias stands beside it."""


def _mechanism(sample: Sample, view: _Diagonals) -> str:
    """How the position enters, by what the values depend on."""
    if sample.content == GATES:
        return "gated_decay"
    if sample.content:
        flat = bool((view.values == view.values[:, :1]).all()) and view.alike
        beside = "bias" if view.alike and sample.content == FACTOR else "content"
        return _ALONE.get(sample.content, "content") if flat else beside
    if view.alike:
        return "bias"
    return "row_dependent" if _shrinks(sample) else "positions"


@dataclass(frozen=True)
class _Known:
    """What is known of a bias: fields of an inspection."""

    origin: str = ""
    formulas: tuple[Expr, ...] = ()
    family: str = ""
    resembles: str = ""
    difference: float | None = None


def _formulas(sample: Sample, view: _Diagonals) -> _Known:
    """The formulas of all heads, where they were followed or given as slopes; else what the values
    resemble."""
    undefined = np.isnan(view.values) | (view.values == np.inf)
    if undefined[:, SKIPPED:].any() or (undefined.any() and not sample.formulas):
        raise InputError(f"it gives NaN or inf, called with {sample.how}")
    if not sample.formulas:
        return _resembling(view.distances, view.values, sample.kind, view.scale)
    origin = "formula" if sample.how.endswith("slopes") else "traced"
    fit = fitted(view.distances, view.values[0], "float64") if not undefined.any() else None
    return _Known(origin, sample.formulas, fit.family if fit else "")


def _resembling(distances: np.ndarray, values: np.ndarray, kind: str, scales: np.ndarray) -> _Known:
    """The families that values agree with; they say nothing beyond the last distance."""
    fits: dict[bytes, Fit | None] = {}
    for row, scale in zip(values, scales, strict=True):
        if row.tobytes() not in fits:
            fits[row.tobytes()] = fitted(distances, row, kind, float(scale))
    each = [fit for row in values if (fit := fits[row.tobytes()]) is not None]
    if len(each) < len(values):
        return _Known("tabulated")
    lines = [expression_line(fit.formula, unicode=False) for fit in each]
    text = lines[0] if len(lines) == 1 else notation(lines)
    families = listed(list(dict.fromkeys(fit.family for fit in each)), 3)
    resembles = text if len(text) <= SHOWN and "table" not in text else ""
    return _Known("tabulated", (), families, resembles, max(fit.difference for fit in each))


def resemblance(table: Sequence[Sequence[float]]) -> str:
    """The formula of a family that a table agrees with, as farfield reads it; empty without one.

    >>> resemblance([[-n / 8 for n in range(100)]])
    '-n/8'
    """
    values = np.array(table)
    known = _resembling(np.arange(values.shape[1]), values, "float64", np.zeros(len(values)))
    return known.resembles if values.shape[1] > FEW else ""


def _direction(table: np.ndarray) -> str:
    """What the biases do with distance, NaN where they mask."""
    steps = np.diff(table, axis=1)
    slack = 1e-9 * float(np.nan_to_num(np.abs(table)).max())
    ways = bool((steps > slack).any()), bool((steps < -slack).any())
    direction = {(True, False): "rises", (False, True): "falls", (False, False): "constant"}
    return direction.get(ways, "varies")


def _merged(table: np.ndarray, seen: np.ndarray) -> Iterator[tuple[str, int]]:
    """The first distance whose next one has the same value in a narrow type, though not before."""
    with np.errstate(invalid="ignore", over="ignore"):
        distinct = (np.diff(table, axis=1) != 0) & seen[:, 1:] & seen[:, :-1]
        bits = table.astype(np.float32).view(np.uint32)
    bfloat = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    with np.errstate(over="ignore"):
        narrow = (("bf16", bfloat), ("fp16", table.astype(np.float16)))
    for name, rounded in narrow:
        equal = distinct & (rounded[:, 1:] == rounded[:, :-1])
        if equal.any():
            yield name, int(np.argmax(equal.any(axis=0)))


def _findings(inspection: BiasInspection, sample: Sample, view: _Diagonals) -> Iterator[str]:
    """The findings as sentences, the most important first."""
    is_bias, family = inspection.mechanism == "bias", inspection.family
    rises = is_bias and inspection.direction == "rises"
    numbers = inspection.table[~visible(inspection.table) & np.isfinite(inspection.table)]
    if not is_bias:
        rule = MECHANISMS.get(inspection.mechanism)
        theorem = "no theorem covers it" if rule is None else rule.words
        yield _NO_BIAS[inspection.mechanism].format(content=sample.content, theorem=theorem)
    if rises:
        yield "rises with distance: the far past outweighs the near one"
    if numbers.size:
        yield (
            f"holds {numbers.min():g}, a number that stands for minus infinity, from distance "
            f"{inspection.masked_from} on"
        )
    if is_bias and not rises:
        masks = inspection.direction == "constant" and inspection.masked_from is not None
        how = "masks keys by distance" if masks else _DIRECTIONS[inspection.direction]
        traced = inspection.origin == "traced"
        other = "a formula that was traced" if traced else "no known family"
        yield f"{how}: {family or other}"
    if rises and family:
        yield f"its family is {family.partition(',')[0]}"
    if is_bias and sample.content:
        yield f"beside the bias it gives {sample.content}"
    if view.scale.any():
        yield "rows differ by a constant each, which a softmax does not see"
    if inspection.causal is False:
        yield "keys after the query are not masked here; the half of the past is read"
    if inspection.seen is not None:
        known = f"known up to distance {view.count - 1}"
        yield f"no formula was followed: it is {known}, and nothing is said beyond"
    if inspection.why:
        yield inspection.why
    for name, distance in inspection.merged:
        yield f"in {name} distances {distance} and {distance + 1} have the same value"


_NO_BIAS = {
    "gated_decay": "adds up gates of the content: {theorem}",
    **dict.fromkeys(_ALONE.values(), "gives {content} and no bias: {theorem}"),
    "content": "depends on {content}: {theorem}",
    "row_dependent": "row-normalised: no fixed window is ever enough, since one and the same "
    "distance weighs less and less in longer rows",
    "positions": "depends on the positions themselves, not on q - k alone",
}
"""What is found first where no bias by distance decides, by mechanism."""
_DIRECTIONS = {
    "falls": "falls with distance",
    "rises": "rises with distance",
    "constant": "is the same at every distance",
    "varies": "rises and falls with distance",
}
