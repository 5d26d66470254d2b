"""Registered forecasts: what every rule and form says of every case of a plan, before its runs."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from farfield.theory.answers.answer import InputError
from farfield.validation.files import write
from farfield.validation.forms import FORMS, Size
from farfield.validation.harness.measures.extrapolation import TOLERANCE
from farfield.validation.harness.plan import Plan
from farfield.validation.reference.committed import Row, rounded, sha256
from farfield.validation.reference.observations import assumed_bias, observations
from farfield.validation.reference.predictions import predict
from farfield.validation.reference.registration import (
    FIRST,
    REGISTRATIONS,
    Registration,
    cases,
    identity,
)
from farfield.validation.reference.table import Model
from farfield.validation.rules import RULES, Calibrated, Case, calibrated, case

LIMIT = math.log1p(TOLERANCE)

Seen = Sequence[tuple[Row, Case, float]]
"""Cases with what names them and the measured logarithm of their perplexity ratio."""


def forecasts(plan: Plan, seen: Seen, names: Collection[str]) -> dict[str, Any]:
    """What rules and forms say of every case of a plan, their numbers taken from what was seen.

    Args:
        plan: of the runs to come.
        seen: the cases that calibrate the rules.
        names: of the rules and forms.
    """
    known = [(c, loss) for _, c, loss in seen]
    rules = [calibrated(rule, known) for name, rule in RULES.items() if name in names]
    forms = {name: form.given(known) for name, form in FORMS.items() if name in names}
    return {
        "tolerance": TOLERANCE,
        "rules": {
            r.name: {
                "says": r.rule.words.format(c=f"{r.threshold:.4g}"),
                "threshold": r.threshold,
                "slope": r.slope,
            }
            for r in rules
        }
        | {name: {"says": FORMS[name].words, "threshold": LIMIT, "slope": 1.0} for name in forms},
        "seen": [{**named, "log_ratio": loss} for named, _, loss in seen],
        "cases": [{**named, "forecasts": _said(rules, forms, c)} for named, c in cases(plan)],
    }


def _said(
    rules: Sequence[Calibrated], forms: Mapping[str, Size], c: Case
) -> dict[str, dict[str, Any]]:
    said = {}
    for name, size in forms.items():
        loss = size(c)
        said[name] = {"quantity": loss, "holds": loss <= LIMIT, "log_ratio": loss}
    for r in rules:
        quantity = r.rule.quantity(c)
        said[r.name] = {
            "quantity": quantity,
            "holds": r.holds(quantity),
            "log_ratio": r.log_ratio(quantity),
        }
    return said


def first_seen() -> Seen:
    """The encodings of the first registration whose formula is fixed, as they came out."""
    return [
        (
            {
                "label": o.label,
                "length": o.trained,
                "layers": o.layers,
                "tested": c.tested,
            },
            c,
            math.log(o.last[c.tested]),
        )
        for o, c in first_cases(64)
    ]


def first_cases(length: int) -> Iterator[tuple[Model, Case]]:
    """The encodings of the first registration whose formula is fixed, at a training length."""
    for o in observations(length=length):
        if o.prediction["basis"] == "the formula" and not o.mask:
            bias = assumed_bias(o.label, o.trained)
            yield o, case(bias, o.trained, max(o.last), o.layers)


def seen_of(registration: Registration) -> Seen:
    """The cases of a registration that have results, as they came out."""
    came_out = registration.outcomes()
    return [
        (named, c, came_out[identity(named)].loss)
        for named, c in cases(registration.plan)
        if identity(named) in came_out
    ]


def everything_seen() -> Seen:
    """The first cases, and those of every further registration that have results."""
    return [*first_seen(), *(case for r in REGISTRATIONS for case in seen_of(r))]


def recorded(part: Row) -> Seen:
    """What calibrated a registered part, by its own record: results that came later change it."""
    known = {_short(named): c for named, c, _ in first_seen()}
    known |= {identity(named): c for r in REGISTRATIONS for named, c in cases(r.plan)}
    return [
        (named, known[identity(named) if "steps" in named else _short(named)], s["log_ratio"])
        for s in part["seen"]
        if (named := {k: v for k, v in s.items() if k != "log_ratio"})
    ]


def _short(named: Row) -> tuple[Any, ...]:
    return named["label"], named["length"]


def register(registration: Registration) -> None:
    """Write the predictions of a registration.

    Raises:
        InputError: there are results that carry the hash of those that stand there.
    """
    if count := len(registration.results()):
        raise InputError(f"the predictions are registered: {count} results carry their hash")
    if registration is FIRST:
        found = predict()
    else:
        said = forecasts(registration.plan, everything_seen(), (*RULES, *FORMS))
        found = {"plan_sha256": sha256(registration.folder / "plan.toml"), **said}
    _write(registration.folder / "predictions.json", found)


def add(registration: Registration) -> None:
    """Write what rules that came later say of the cases that have no result yet.

    Raises:
        InputError: every rule has said what it has to say, or every case has a result; the first
            registration has no rules.
    """
    if registration is FIRST:
        raise InputError("the first registration has no rules: nothing to add")
    seen = everything_seen()
    said = (registration.predictions, *registration.added)
    later = (RULES.keys() | FORMS.keys()) - {name for part in said for name in part["rules"]}
    found = forecasts(registration.plan, seen, later)
    known = registration.outcomes()
    found["cases"] = [c for c in found["cases"] if identity(c) not in known]
    if not found["cases"] or not later:
        raise InputError("every case has a result, or there is no further rule: nothing to add")
    _write(registration.folder / f"added_{len(registration.added) + 1}.json", found)


def _write(path: Path, found: Row) -> None:
    text = json.dumps(rounded(found), separators=(",", ":"), allow_nan=False)
    lines = text.replace('{"label"', '\n{"label"')  # one case a line
    write(path, (lines + "\n").encode())
