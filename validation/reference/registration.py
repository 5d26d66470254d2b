"""Registrations: plans whose cases were forecast by every rule before the first run.

    <folder>/plan.toml           the runs
    <folder>/predictions.json    rules with their numbers, and what each says of every case
    <folder>/<run>.json          one finished run, with the hash of predictions.json

A case is what all seeds share: an encoding, an architecture, and how the model is run at inference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from farfield.validation.reference.committed import Row, sha256
from farfield.validation.rules import Case, case
from farfield.validation.settings.plan import Plan, read_plan
from farfield.validation.settings.visibility import CAUSAL


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
