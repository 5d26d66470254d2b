"""What did trained models like this one lose beyond their training length?

A forecast is a look-up: the nearest trained models, their measurements, and how near they
are. `DISTANCE` adds up how far two models are apart, in what their biases make of a long row
(`farfield.validation.prior`) and in shape. Which difference counts how much was chosen on the table
itself, among some 250 choices. With the family of each case left out, the mean of the nearest three
is on the right side of 5 % for 144 of 151 cases. It is so for all 38 that have a neighbour within
`NEAR`. With the formula alone left out these are 137 of 151, and 51 of 53.

Small models of bytes cannot say what large ones do: the distance tells how far the evidence is.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from polars import DataFrame, col, sum_horizontal

from farfield.numerics.depth import MAX_LAYERS
from farfield.numerics.questions import out_of_reach, reason_of, refused, resolve
from farfield.theory.algebra.door import check_time
from farfield.theory.algebra.exceptions import OutOfTime
from farfield.theory.answers.answer import Answer, Code, InputError, Label, Reason, Status
from farfield.theory.answers.blocks import Block, note, sentence, table
from farfield.theory.answers.notation import shortened
from farfield.theory.answers.number import natural, plural
from farfield.theory.encodings import Encoding
from farfield.validation.harness.mechanism import trainable
from farfield.validation.prior import Prior, prior, weights
from farfield.validation.results import LAST, TOLERANCE, results

MAX_TESTED = 1 << 20
STEPS = 1000
"""Of training, where nothing is said."""

SHARES = Prior(order=1, beyond=1, drowned=1 / 2, local=1 / 2)
DOUBLINGS = {"steps": 1 / 4, "layers": 1 / 10, "heads": 1 / 10, "trained": 1 / 10, "times": 1 / 10}
"""The distance of two models: differences of the four numbers of the prior by these shares, and
for each doubling of steps, depth, heads, training length and multiple of it so much."""
NEAR, FAR = 1 / 20, 1
"""So near a case says the side of 5 %; beyond `FAR` no model resembles the one that is asked."""
NEAREST = 3
SOFT = 1 / 50
"""A case counts by 1 / (distance + this) in the mean."""
CASE = ("label", "formula", "text", "trained", "layers", "heads", "width", "steps", "mask")
"""The columns that tell one case from another; its runs differ in their seed."""
SETTINGS = ("trained", "length", "layers", "heads", "width", "steps", "seeds", "text")


@dataclass(frozen=True)
class TrainedCase:
    """Trained models that differ in their seed, and their measurements.

    Fields:
        name: the label of the encoding, with the mask of inference.
        formula: of the heads, as `encoding` reads it; None where there is no bias.
        settings: `trained`, `length` (of the rows that were measured), `layers`, `heads`, `width`,
            `steps`, `seeds` (how many models) and `text`.
        ratio: of the last token's perplexity to that at the training length, the geometric mean.
        interval: from the least to the greatest end of the 95 % intervals of the models.
        distance: to the model that is asked about.
    """

    name: str
    formula: str | None
    settings: Mapping[str, Any]
    ratio: float
    interval: tuple[float, float]
    distance: float


@dataclass(frozen=True, repr=False)
class Forecast(Answer):
    """What the nearest trained models lost beyond their training length.

    Fields:
        trained, tested: the training length and the longest length at inference, in tokens.
        layers, num_heads, steps: of the model.
        nearest: the trained cases nearest to it, the nearest first.
        distance: to the first of them; None where there is none.
        ratio: the mean of their ratios, near ones counting more; None beyond the evidence.
        interval: it holds the intervals of all of them.
        holds: the share of them whose perplexity rises by less than 5 %.
        cases: of how many these are the nearest.
    """

    VALUE: ClassVar[str] = "ratio"

    trained: int
    tested: int
    layers: int
    num_heads: int
    steps: int
    nearest: tuple[TrainedCase, ...] = ()
    distance: float | None = None
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    holds: float | None = None
    cases: int = 0

    @property
    def near(self) -> bool:
        """Whether the nearest case is so near that it says the side of 5 %."""
        return self.distance is not None and self.distance <= NEAR

    def span(self) -> tuple[Any, Any] | None:
        return self.interval

    def _blocks(self) -> Iterator[Block]:
        rows = plural(self.trained, "token")
        case = f"{shortened(self.subject, 80)}, trained on rows of {rows}"
        if self.ratio is None:
            yield sentence("{asked}: no forecast, since {why}.", asked=case, why=str(self.reason))
        else:
            times = self.tested / self.trained
            changes = [round(c.ratio - 1, 3) + 0.0 for c in self.nearest]
            yield sentence(
                "{asked}: the {count} of {cases} change their perplexity by {low} to {high} at "
                "{times} times the training length ({near}, distance {distance}).",
                self.label,
                asked=case,
                count=f"{len(changes)} nearest",
                cases=plural(self.cases, "trained case"),
                low=f"{min(changes):+.1%}",
                high=f"{max(changes):+.1%}",
                times=f"{round(times)}" if times >= 100 else f"{times:.3g}",
                near="near" if self.near else "not near",
                distance=f"{self.distance:.2f}",
            )
        if self.nearest:
            yield table(
                ("trained case", *SETTINGS[:-1], "ratio", "95 %", "distance"),
                [
                    (
                        c.name,
                        *(c.settings[name] for name in SETTINGS[:-1]),
                        f"{c.ratio:.3f}",
                        "{:.3f} to {:.3f}".format(*c.interval),
                        f"{c.distance:.2f}",
                    )
                    for c in self.nearest
                ],
                numeric=(*range(1, 9), 10),
            )
            texts = "; ".join(sorted({c.settings["text"] for c in self.nearest}))
            yield note("Small models of {texts}. Large ones may differ.", texts=texts)


def forecast(
    f: Any,
    *,
    trained: Any = 64,
    tested: Any = 1024,
    layers: Any = 4,
    heads: Any = None,
    steps: Any = None,
    runs: str | None = None,
    **values: Any,
) -> Forecast:
    """What trained models like this one lost beyond their training length.

    Args:
        f: a formula in `n` for all heads, a list of formulas, one a head, a name of the catalogue
            or an `Encoding`.
        trained: the training length in tokens.
        tested: the longest length at inference in tokens, above `trained`.
        layers: depth.
        heads: number of heads; 8 where nothing says otherwise.
        steps: of training; 1,000 where none are given.
        runs: a folder of runs, or a CSV file of results, in place of the committed table.
        **values: parameters and options, as `farfield.theory.encodings.encoding` takes them.

    Returns:
        The nearest trained models. The status is `unknown` with the code `beyond_evidence` where
        none resembles it.

    Raises:
        InputError: lengths out of order, free parameters, results that cannot be read.

    >>> found = forecast("[-n/4; 0 x7]", trained=64, tested=1024)
    >>> found.nearest[0].name, found.distance, found.holds
    ('1 head 1/4', 0.0, 1.0)
    >>> round(found.ratio, 2), len(found.nearest)
    (1.01, 3)
    >>> forecast("-n/4", trained=4096, tested=65536, heads=12).distance
    0.66...
    >>> forecast("n", trained=64, tested=1024).reason.code
    <Code.BEYOND_EVIDENCE: 'beyond_evidence'>
    """
    m, n = natural(trained, "trained"), natural(tested, "tested")
    depth = natural(layers, "layers", most=MAX_LAYERS)
    if not m < n <= MAX_TESTED:
        raise InputError(f"tested = {n} must be above trained = {m} and at most {MAX_TESTED}")
    count = None if heads is None else natural(heads, "heads")
    if count is not None and not isinstance(f, Encoding):
        values = {**values, "heads": count}
    subject = resolve(f, values, n)
    question = Forecast(
        m,
        n,
        depth,
        num_heads=count or (subject.num_heads if subject.num_heads > 1 else 8),
        steps=natural(STEPS if steps is None else steps, "steps"),
        status=Status.UNKNOWN,
        label=None,
        subject=subject.name,
    )
    known = measured(runs).filter(mechanism=subject.mechanism)
    reason, known_of = out_of_reach(subject), not known.is_empty() and subject.bca is None
    if reason and (reason.code is Code.BEYOND_SEEN or not known_of):
        return dataclasses.replace(question, **refused(reason))
    try:
        found = _prior(subject, question)
    except OutOfTime as why:
        return dataclasses.replace(question, reason=reason_of(why))
    if isinstance(found, str):
        return dataclasses.replace(question, reason=Reason(Code.BEYOND_EVIDENCE, found))
    return _looked_up(question, known, found)


def _prior(subject: Encoding, question: Forecast) -> Prior | str | None:
    """What the bias makes of the row; None where there is no bias; why no model has such a one."""
    check_time()
    if not trainable(subject):
        return "no model is trained with it: it imitates the scores of another encoding"
    if not subject.biases:
        return None
    with np.errstate(over="ignore"):
        bias = subject.bias(np.arange(question.tested))
    if not np.isfinite(bias.max(axis=1)).all():
        return "its bias is infinite or undefined in float64 on such a row"
    shares = weights(bias)
    risen = (shares - np.minimum.accumulate(shares, axis=1)).sum(axis=1)
    if risen.max() > 1 / 4:  # the trained models have up to 0.24
        return "its bias rises with distance, and no trained model has such a bias"
    return prior(bias, question.trained, question.layers)


def measured(runs: str | None = None) -> DataFrame:
    """The cases with a length beyond the training length, and `times`, its multiple of that.

    Args:
        runs: a folder of runs, or a CSV file of results; None for the committed table.
    """
    lines = results(runs).filter(col("length") > col("trained"), protocol=LAST)
    return (
        lines.filter(
            col("order").is_not_null() | ((col("mechanism") != "bias") & (col("mask") == ""))
        )
        .group_by(*CASE, "mechanism", "family", "length", maintain_order=True)
        .agg(
            col("run").n_unique().alias("seeds"),
            col("ratio").log().mean().exp(),
            col("low").min(),
            col("high").max(),
            *(col(name).first() for name in Prior._fields),
        )
        .with_columns((col("length") / col("trained")).alias("times"))
    )


def with_distance(known: DataFrame, found: Prior | None, **shape: float) -> DataFrame:
    """Cases in the order of their distance, each at the length that is nearest.

    Args:
        known: as `measured` returns them.
        found: what the bias that is asked about makes of its row; None where it has none.
        **shape: the values of `DOUBLINGS` of the model that is asked about.
    """
    away = [(col(name) / shape[name]).log(2).abs() * share for name, share in DOUBLINGS.items()]
    if found is not None:
        away += [
            (col(name) - value).abs() * share
            for name, value, share in zip(Prior._fields, found, SHARES, strict=True)
        ]
    ordered = known.with_columns(sum_horizontal(away).alias("distance")).sort("distance", "label")
    return ordered.unique(CASE, keep="first", maintain_order=True)


def _looked_up(question: Forecast, known: DataFrame, found: Prior | None) -> Forecast:
    ordered = with_distance(
        known,
        found,
        steps=question.steps,
        layers=question.layers,
        heads=question.num_heads,
        trained=question.trained,
        times=question.tested / question.trained,
    )
    rows = ordered.head(NEAREST)
    nearest = tuple(
        TrainedCase(
            f"{row['label']} + {row['mask']}" if row["mask"] else row["label"],
            row["formula"],
            {name: row[name] for name in SETTINGS},
            row["ratio"],
            (row["low"], row["high"]),
            row["distance"],
        )
        for row in rows.iter_rows(named=True)
    )
    first = nearest[0].distance if nearest else None
    question = dataclasses.replace(question, nearest=nearest, distance=first, cases=len(ordered))
    if first is None or first > FAR:
        why = "the table has no model" if first is None else f"the nearest is {first:.2f} away"
        reason = Reason(Code.BEYOND_EVIDENCE, f"no trained model resembles it ({why})")
        return dataclasses.replace(question, reason=reason)
    near = 1 / (rows["distance"].to_numpy() + SOFT)
    return dataclasses.replace(
        question,
        ratio=math.exp(np.average(np.log(rows["ratio"].to_numpy()), weights=near)),
        interval=(min(rows["low"]), max(rows["high"])),
        holds=float(np.mean([case.ratio - 1 < TOLERANCE for case in nearest])),
        status=Status.ENCLOSED,
        label=Label.FORECAST,
    )
