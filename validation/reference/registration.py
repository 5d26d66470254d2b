"""Registrations: plans whose cases were forecast by every rule before the first run.

    <folder>/plan.toml           the runs
    <folder>/predictions.json    rules with their numbers, and what each says of every case
    <folder>/<run>.json          one finished run, with the hash of predictions.json

A case is what all seeds share: an encoding, an architecture, and how the model is run at inference.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from farfield.theory.results import InputError
from farfield.validation.configuration import CAUSAL
from farfield.validation.plan import Job, Plan, read_plan
from farfield.validation.rules import RULES, TOLERANCE, Calibrated, Case, calibrated, case
from farfield.validation.runs import write

DIGITS = 6

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Registration:
    """One folder with a plan, predictions and results."""

    folder: Path

    @cached_property
    def plan(self) -> Plan:
        """The runs."""
        return read_plan(self.folder / "plan.toml")

    @cached_property
    def predictions(self) -> Row:
        """What was said beforehand."""
        found: Row = json.loads(self._predictions.read_text(encoding="utf-8"))
        return found

    @property
    def digest(self) -> str:
        """The SHA-256 of the predictions, which every result carries."""
        return sha256(self._predictions)

    @property
    def _predictions(self) -> Path:
        return self.folder / "predictions.json"

    def results(self) -> tuple[Row, ...]:
        """The committed results, in the order of their names."""
        paths = sorted(p for p in self.folder.glob("*.json") if p != self._predictions)
        return tuple(json.loads(path.read_text(encoding="utf-8")) for path in paths)

    def place(self, job: Job) -> Path:
        """The file of a job's committed result, whether it is there or not."""
        return self.folder / (re.sub(r"[^a-z0-9]+", "-", job.name.lower()).strip("-") + ".json")


def sha256(path: Path) -> str:
    """Of the content of a file, in hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def cases(plan: Plan) -> Iterator[tuple[Row, Case]]:
    """Every case of a plan, with what identifies it in results."""
    for sweep in plan.sweeps:
        for chosen in sweep.architectures():
            tested = max(sweep.measured(chosen.length)["lengths"])
            for subject, found in sweep.subjects(chosen):
                for visible in sweep.inference(found, chosen.length) or (CAUSAL,):
                    named = {
                        "label": subject.label, "family": subject.family,
                        "length": chosen.length, "layers": chosen.layers, "width": chosen.width,
                        "steps": chosen.steps, "tested": tested, "window": visible.window,
                    }  # fmt: skip
                    yield named, case(found, chosen.length, tested, chosen.layers, visible.window)


def forecasts(plan: Plan, seen: Sequence[tuple[Row, Case, float]]) -> dict[str, Any]:
    """What every rule says of every case of a plan, its numbers taken from what was seen.

    Args:
        plan: of the runs to come.
        seen: cases with what names them and the measured logarithm of their perplexity ratio.
    """
    rules = [calibrated(rule, [(c, loss) for _, c, loss in seen]) for rule in RULES.values()]
    return {
        "tolerance": TOLERANCE,
        "rules": {
            r.name: {"says": r.rule.words.format(c=f"{r.threshold:.4g}"),
                     "threshold": r.threshold, "slope": r.slope}
            for r in rules
        },
        "seen": [{**named, "log_ratio": loss} for named, _, loss in seen],
        "cases": [{**named, "forecasts": _said(rules, c)} for named, c in cases(plan)],
    }  # fmt: skip


def _said(rules: Sequence[Calibrated], c: Case) -> dict[str, dict[str, Any]]:
    said = {}
    for r in rules:
        quantity = r.rule.quantity(c)
        said[r.name] = {
            "quantity": quantity, "holds": r.holds(quantity), "log_ratio": r.log_ratio(quantity),
        }  # fmt: skip
    return said


def first_seen() -> list[tuple[Row, Case, float]]:
    """The encodings of the first registration whose formula is fixed, as they came out."""
    from farfield.validation.answers import observations, stand_in

    found: list[tuple[Row, Case, float]] = []
    for o in observations(length=64):
        if o.prediction["basis"] == "the formula":
            longest = max(o.last)
            named = {"label": o.label, "length": o.length, "layers": o.layers, "tested": longest}
            c = case(stand_in(o.label, o.length), o.length, longest, o.layers)
            found.append((named, c, math.log(o.last[longest])))
    return found


def register(registration: Registration) -> None:
    """Write the predictions of a registration.

    Raises:
        InputError: there are results that carry the hash of those that stand there.
    """
    if count := len(registration.results()):
        raise InputError(f"the predictions are registered: {count} results carry their hash")
    found = {
        "plan_sha256": sha256(registration.folder / "plan.toml"),
        **forecasts(registration.plan, first_seen()),
    }
    text = json.dumps(rounded(found), separators=(",", ":"), allow_nan=False)
    lines = text.replace('{"label"', '\n{"label"')  # one case a line
    write(registration.folder / "predictions.json", (lines + "\n").encode())


def rounded(value: Any) -> Any:
    """The value with floats to six digits."""
    if isinstance(value, float):
        return value if value == 0 or not math.isfinite(value) else float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(v) for v in value]
    return value
