"""Registrations: plans whose cases were forecast by every rule before the first run.

    <folder>/plan.toml           the runs
    <folder>/predictions.json    rules with their numbers, and what each says of every case
    <folder>/added_1.json, ...   the same of rules that came later, for the cases without a result
    <folder>/<run>.json          one finished run, with the hash of predictions.json

A case is what all seeds share: an encoding, an architecture, and how the model is run at inference.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from farfield.theory.answers.answer import InputError
from farfield.validation.extrapolation import TOLERANCE
from farfield.validation.forms import FORMS
from farfield.validation.harness.plan import Plan, read_plan
from farfield.validation.harness.visibility import CAUSAL
from farfield.validation.json_files import write
from farfield.validation.reference.committed import HERE, Row, rounded, sha256
from farfield.validation.reference.table import Model, grouped, results
from farfield.validation.rules import RULES, Case, calibrated, case

Identity = tuple[Any, ...]
"""What tells one case from the others: label, architecture and window at inference."""

USUAL = {"length": 64, "layers": 4, "width": 128, "steps": 1000}
"""Of the models of the plans."""

_NAMED = ("label", "length", "layers", "width", "steps", "window")


def identity(named: Row) -> Identity:
    """Of a case, by what names it."""
    return tuple(named[part] for part in _NAMED)


def titled(named: Row) -> str:
    """The label of a case, with its window and what else is not usual.

    >>> usual = {**USUAL, "window": None}
    >>> titled({**usual, "label": "slope 1/8"}), titled({**usual, "label": "t5", "layers": 1})
    ('slope 1/8', 't5, layers 1')
    """
    window = (f"window {named['window']}",) if named["window"] else ()
    others = (f"{what} {named[what]}" for what, usual in USUAL.items() if named[what] != usual)
    return ", ".join((named["label"], *window, *others))


@dataclass(frozen=True)
class Registration:
    """One folder with a plan, predictions and results."""

    folder: Path

    @cached_property
    def plan(self) -> Plan:
        """The runs."""
        return read_plan(self.folder / "plan.toml")

    @cached_property
    def cases(self) -> tuple[tuple[Row, Case], ...]:
        """Every case whose biases are fixed, with what identifies it in results."""
        return tuple(cases(self.plan))

    @cached_property
    def predictions(self) -> Row:
        """What was predicted before the first run."""
        found: Row = json.loads(self._predictions.read_text(encoding="utf-8"))
        return found

    @cached_property
    def added(self) -> tuple[Row, ...]:
        """What rules said that came later."""
        paths = sorted(self.folder.glob("added_*.json"))
        return tuple(json.loads(p.read_text(encoding="utf-8")) for p in paths)

    @property
    def digest(self) -> str:
        """The SHA-256 of the predictions, which every result carries."""
        return sha256(self._predictions)

    @property
    def _predictions(self) -> Path:
        return self.folder / "predictions.json"

    @property
    def name(self) -> str:
        """Of the folder; empty for the first."""
        return "" if self.folder == HERE else self.folder.name

    def results(self) -> tuple[Row, ...]:
        """The committed results, in the order of their names."""
        return results(self.name)

    def outcomes(self) -> dict[Identity, Model]:
        """The results of each case that has a finished seed."""
        return {identity(model.named): model for model in grouped(self.results())}

    def seen(self) -> Iterator[tuple[Row, Case, Model]]:
        """The cases that have results, as they came out."""
        outcomes = self.outcomes()
        for name, found in {identity(named): (named, c) for named, c in self.cases}.items():
            if name in outcomes:
                yield *found, outcomes[name]

    def register(self, said: Row) -> None:
        """Write predictions, with the hash of the plan.

        Raises:
            InputError: there are results that carry the hash of predictions already written.
        """
        if count := len(self.results()):
            raise InputError(f"the predictions are registered: {count} results carry their hash")
        written(self._predictions, {"plan_sha256": sha256(self.folder / "plan.toml"), **said})

    def add(self, said: Row) -> None:
        """Write what rules say that came after the predictions."""
        written(self.folder / f"added_{len(self.added) + 1}.json", said)


def written(path: Path, said: Row) -> None:
    """Write predictions, a case a line."""
    text = json.dumps(rounded(said), separators=(",", ":"), allow_nan=False)
    lines = text.replace('{"label"', '\n{"label"').replace('}},"', '}},\n"')
    write(path, (lines + "\n").encode())


def cases(plan: Plan) -> Iterator[tuple[Row, Case]]:
    """Every case of a plan whose biases are fixed, with what identifies it in results."""
    for sweep in plan.sweeps:
        for chosen in sweep.architectures():
            tested = max(sweep.measured(chosen.length)["lengths"])
            for subject, found in sweep.subjects(chosen):
                if found.free or not found.biases:
                    continue
                for visible in sweep.inference(found, chosen.length) or (CAUSAL,):
                    named = {
                        "label": subject.label,
                        "family": subject.family,
                        "length": chosen.length,
                        "layers": chosen.layers,
                        "width": chosen.width,
                        "steps": chosen.steps,
                        "tested": tested,
                        "window": visible.window,
                    }
                    its_case = case(
                        found,
                        chosen.length,
                        tested,
                        chosen.layers,
                        visible.window,
                        chosen.steps,
                    )
                    yield named, its_case


FIRST = Registration(HERE)
"""The one whose predictions are those of `predictions.predict`; the others have every rule's."""

REGISTRATIONS = (
    Registration(HERE / "heads_and_shapes"),
    Registration(HERE / "lengths_and_depths"),
    Registration(HERE / "floors"),
    Registration(HERE / "prose_and_layers"),
    Registration(HERE / "longer_training"),
)


# -- what rules and forms say ---------------------------------------------------------------------

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
    first = {(named["label"], named["length"]): c for named, c in FIRST.cases}
    return [
        (
            {k: v for k, v in row.items() if k != "log_ratio"},
            known[identity(row)] if "steps" in row else first[row["label"], row["length"]],
            row["log_ratio"],
        )
        for row in part["seen"]
    ]


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
