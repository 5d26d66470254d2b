"""Registrations: plans whose cases were forecast by every rule before the first run.

    <folder>/plan.toml           the runs
    <folder>/predictions.json    rules with their numbers, and what each says of every case
    <folder>/added_1.json, ...   the same of rules that came later, for the cases without a result
    <folder>/<run>.json          one finished run, with the hash of predictions.json

A case is what all seeds share: an encoding, an architecture, and how the model is run at inference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from farfield.theory.answers.answer import InputError
from farfield.validation.extrapolation import TOLERANCE
from farfield.validation.harness.mechanism import CAUSAL
from farfield.validation.harness.plan import Plan, read_plan
from farfield.validation.json_files import write
from farfield.validation.reference.committed import HERE, Row, rounded, sha256
from farfield.validation.reference.table import Model, grouped, results
from farfield.validation.rules import RULES, Case, case, forecasts

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
    def parts(self) -> tuple[Row, ...]:
        """The predictions, and what rules said that came later."""
        paths = sorted(self.folder.glob("added_*.json"))
        later = (json.loads(p.read_text(encoding="utf-8")) for p in paths)
        return (self.predictions, *later)

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

    def register(self, predicted: Row) -> None:
        """Write predictions with the hash of the plan, a case a line.

        Raises:
            InputError: there are results that carry the hash of predictions already written.
        """
        if count := len(self.results()):
            raise InputError(f"the predictions are registered: {count} results carry their hash")
        whole = {"plan_sha256": sha256(self.folder / "plan.toml"), **predicted}
        text = json.dumps(rounded(whole), separators=(",", ":"), allow_nan=False)
        lines = text.replace('{"label"', '\n{"label"').replace('}},"', '}},\n"')
        write(self._predictions, (lines + "\n").encode())


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
                    shape = (chosen.length, tested, chosen.layers)
                    yield named, case(found, *shape, visible.window)


FIRST = Registration(HERE)
"""Its predictions are receptive fields and leaks (`first`); the others have those of every rule."""

REGISTRATIONS = (
    Registration(HERE / "heads_and_shapes"),
    Registration(HERE / "lengths_and_depths"),
    Registration(HERE / "floors"),
    Registration(HERE / "prose_and_layers"),
    Registration(HERE / "longer_training"),
)


HOLD = Registration(HERE / "hold_and_use")
"""The one of runs on tasks, whose predictions are attention and accuracy (`hold`)."""


def numbers() -> dict[str, Row]:
    """What each rule was calibrated to when it was last registered, before the competing forms."""
    parts = (part["rules"] for r in REGISTRATIONS for part in r.parts)
    before = (rules for rules in parts if rules.keys() <= RULES.keys())
    return {name: its for rules in before for name, its in rules.items()}


def predicted(registration: Registration) -> dict[str, Any]:
    """What every rule says of every case of a registration."""
    rules = numbers()
    every = [{**named, "forecasts": forecasts(rules, c)} for named, c in registration.cases]
    return {"tolerance": TOLERANCE, "rules": rules, "cases": every}
