"""The forms that compete, judged on the cases that were open when they were written down.

A case is *decided* where its log ratio, on the further targets of its result, lies at least two
standard errors from the logarithm of the tolerance. `reference/README.md` says beforehand how the
forms are judged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from farfield.theory.answers.wording import plural
from farfield.validation.evidence.judged import LIMIT
from farfield.validation.evidence.told import told
from farfield.validation.forms import FORMS
from farfield.validation.harness.measures.evidence import Evidence
from farfield.validation.reference.committed import Row
from farfield.validation.reference.registration import (
    REGISTRATIONS,
    Registration,
    identity,
    titled,
)

SEEN = ("slope 1/32, steps 4000", "1 head 1/4, steps 4000")
"""Cases that had been measured before the forms were written down."""

DECIDED = 2.0  # standard errors from the tolerance
PARTS = (
    ("four times the steps", "steps", 4000),
    ("8 layers", "layers", 8),
    ("training length 256", "length", 256),
    ("training length 128", "length", 128),
    ("twice the width", "width", 256),
)


@dataclass(frozen=True)
class OpenCase:
    """A case that was open, what each form said of it, and what came out.

    Fields:
        named: what identifies it.
        said: by form, the log ratio.
        registered: the measured log ratio on the registered 512 targets, the largest of any length.
        loss, error: the same on the further targets, and its standard error.
        seeds: how many models.
    """

    named: Row
    said: Mapping[str, float]
    registered: float
    loss: float
    error: float
    seeds: int

    @property
    def decided(self) -> bool:
        """Whether it is beyond measurement error that it holds, or that it does not."""
        return abs(self.loss - LIMIT) >= DECIDED * self.error

    def right(self, form: str) -> bool:
        """Whether the form was on the right side."""
        return (self.said[form] <= LIMIT) == (self.loss < LIMIT)


def came_out(registration: Registration) -> Iterator[OpenCase]:
    """The cases of a registration of which the forms spoke, as far as they have results."""
    outcomes = registration.outcomes()
    further: dict[tuple[object, ...], list[Mapping[int, tuple[float, float]]]] = {}
    for run in registration.results():
        for m in run["measurements"]:
            named = {**m["inference"], **run["preset"], "label": run["encoding"]["label"]}
            if rows := run.get("more_targets", {}).get(m["inference"]["label"]):
                further.setdefault(identity(named), []).append(
                    {p["length"]: _log(p) for p in rows if p["length"] > p["base"]}
                )
    for part in (registration.predictions, *registration.added):
        for c in part["cases"] if FORMS.keys() <= part["rules"].keys() else ():
            if runs := further.get(identity(c)):
                loss, error = max(_mean([run[n] for run in runs]) for n in runs[0])
                said = {form: c["forecasts"][form]["log_ratio"] for form in FORMS}
                yield OpenCase(c, said, outcomes[identity(c)].loss, loss, error, len(runs))


def _log(p: Row) -> tuple[float, float]:
    """The logarithm of a ratio, and its standard error."""
    width = math.log(p["ratio_high"]) - math.log(p["ratio_low"])
    return math.log(p["ratio"]), width / (2 * 1.959964)


def _mean(runs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The mean over models, which share their targets: their errors do not average out."""
    losses, errors = np.array(runs).T
    return float(losses.mean()), float(errors.mean())


def everything() -> tuple[OpenCase, ...]:
    """Every case of which the forms spoke, as far as it has a result."""
    return tuple(case for r in REGISTRATIONS for case in came_out(r))


def errors(found: Sequence[OpenCase]) -> dict[str, float]:
    """By form, the mean absolute error of the log ratio on cases that no one had seen."""
    tests = [c for c in found if titled(c.named) not in SEEN]
    return {form: _off(tests, form) for form in FORMS} if tests else {}


def answers() -> Iterator[Evidence]:
    """For each part that has results, which form was right."""
    every = everything()
    for words, what, value in PARTS:
        found = [c for c in every if c.named[what] == value]
        if found:
            yield _answer(words, found)


def _answer(words: str, found: Sequence[OpenCase]) -> Evidence:
    tests = [c for c in found if titled(c.named) not in SEEN]
    decided = [c for c in tests if c.decided]
    right = {form: sum(c.right(form) for c in decided) for form in FORMS}
    off = {form: _off(tests, form) for form in FORMS}
    holds = sum(c.loss < LIMIT for c in decided)
    best = max(FORMS, key=lambda form: (right[form], -off[form]))
    return told(
        "competing",
        len(found),
        {"right": right, "off": off, "decided": len(decided), "hold": holds},
        (
            ("form", "right", "mean error", *(titled(c.named) for c in found)),
            *(
                (
                    form,
                    f"{right[form]} of {len(decided)}",
                    f"{off[form]:.3f}",
                    *(f"{c.said[form]:+.3f}" for c in found),
                )
                for form in sorted(FORMS, key=lambda form: off[form])
            ),
            ("measured", "", "", *(f"{c.loss:+.3f} ± {c.error:.3f}" for c in found)),
            ("on the registered 512", "", "", *(f"{c.registered:+.3f}" for c in found)),
        ),
        tuple(f"{titled(c.named)}, {plural(c.seeds, 'seed')}" for c in found),
        words=words,
        cases=plural(len(decided), "decided case"),
        best=best,
        null=max(holds, len(decided) - holds),
        undecided=len(tests) - len(decided),
        seen=[(titled(c.named), c.loss, c.error) for c in found if c not in tests],
    )


def _off(found: Sequence[OpenCase], form: str) -> float:
    """The mean absolute error of the log ratio."""
    return float(np.mean([abs(c.said[form] - c.loss) for c in found])) if found else math.nan
