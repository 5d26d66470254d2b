"""Registered forecasts: what every rule and form says of every case of a plan, before its runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from farfield.theory.answers.answer import InputError
from farfield.validation.extrapolation import TOLERANCE
from farfield.validation.forms import FORMS
from farfield.validation.reference.committed import Row
from farfield.validation.reference.registration import (
    FIRST,
    REGISTRATIONS,
    Registration,
    identity,
)
from farfield.validation.rules import RULES, Case, calibrated

PREDICTORS = {**RULES, **FORMS}

Seen = Sequence[tuple[Row, Case, float]]
"""Cases with what names them and the measured logarithm of their perplexity ratio."""


def forecasts(registration: Registration, seen: Seen, names: Collection[str]) -> dict[str, Any]:
    """Forecast every case of a plan by the rules and forms, their numbers fitted to the seen cases.

    Args:
        registration: of the runs to come.
        seen: the cases that calibrate the rules.
        names: of the rules and forms.
    """
    known = [(c, loss) for _, c, loss in seen]
    chosen = {n: calibrated(rule, known) for n, rule in PREDICTORS.items() if n in names}
    return {
        "tolerance": TOLERANCE,
        "rules": {
            name: {
                "says": c.rule.words.format(c=f"{c.threshold:.4g}"),
                "threshold": c.threshold,
                "slope": c.slope,
            }
            for name, c in chosen.items()
        },
        "seen": [{**named, "log_ratio": loss} for named, _, loss in seen],
        "cases": [
            {**named, "forecasts": {name: rule.says(c) for name, rule in chosen.items()}}
            for named, c in registration.cases
        ],
    }


def everything_seen() -> Seen:
    """The cases of every registration that have results."""
    return [
        (named, c, outcome.loss)
        for registration in (FIRST, *REGISTRATIONS)
        for named, c, outcome in registration.seen()
    ]


def recorded(part: Row) -> Seen:
    """What calibrated a registered part, by its own record: results that came later change it."""
    known = {identity(named): c for r in REGISTRATIONS for named, c in r.cases}
    known |= {(named["label"], named["length"]): c for named, c in FIRST.cases}
    found = []
    for row in part["seen"]:
        named = {k: v for k, v in row.items() if k != "log_ratio"}
        name = identity(named) if "steps" in named else (named["label"], named["length"])
        found.append((named, known[name], row["log_ratio"]))
    return found


def registered(registration: Registration) -> dict[str, Any]:
    """What every rule and form says of every case of a registration."""
    return forecasts(registration, everything_seen(), PREDICTORS)


def added(registration: Registration) -> dict[str, Any]:
    """What rules that came later say of the cases that have no result yet.

    Raises:
        InputError: every rule has said what it has to say, or every case has a result; predictions
            that are no rules'.
    """
    said = (registration.predictions, *registration.added)
    if any("rules" not in part for part in said):
        raise InputError("the predictions of this registration are no rules': nothing to add")
    later = PREDICTORS.keys() - {name for part in said for name in part["rules"]}
    found = forecasts(registration, everything_seen(), later)
    known = registration.outcomes()
    found["cases"] = [c for c in found["cases"] if identity(c) not in known]
    if not found["cases"] or not later:
        raise InputError("every case has a result, or there is no further rule: nothing to add")
    return found
