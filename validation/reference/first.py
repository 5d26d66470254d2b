"""The first registration: what the theory said of its runs before any of them, and what came out.

Its predictions are verdicts, receptive fields and leaks of every encoding. They rank the encodings
by `beyond`, the share of the layered mass outside the training length in the longest test row.
Most encodings had been piloted before; `UNSEEN` names the others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from farfield.theory.encodings import Encoding, encoding
from farfield.validation.harness.plan import PlannedEncoding
from farfield.validation.reference.committed import Row
from farfield.validation.reference.registration import FIRST
from farfield.validation.reference.table import Model, grouped, results

MIXING = "2/5"  # of the layered receptive field
HEADS = 8  # of the models of the reference plan
PLAIN = "finite-row TRF(1/100)"
"""The name of the simplest predictor, with which others are compared."""
UNSEEN = (
    "kerple_power",
    "window 32",
    "alibi equal 2",
    "alibi equal 4",
    "alibi equal 6",
    "sinusoidal + BCA",
)
"""Encodings of which no model had been trained when the predictions were made, at `PILOTED`."""
PILOTED = 64  # tokens: pilots had no other training length


def blind(model: Model) -> bool:
    """Whether no model of the kind had been trained when its prediction was made."""
    return model.trained != PILOTED or model.name in UNSEEN


def longest(found: Sequence[Model]) -> int:
    """The longest length at which the last tokens of some models were measured."""
    return max(n for o in found for n in o.last)


_FAMILIES = {
    "alibi equal": "slopes",
    "alibi": "alibi",
    "window": "windows",
    "type": "kernels",
    "example": "kernels",
    "sandwich": "sandwich",
    "kerple": "kerple",
    "rope": "rotations",
    "xpos": "rotations",
}


def family(label: str) -> str:
    """What an encoding of the reference plan is counted with: these stand or fall together."""
    return next((f for k, f in _FAMILIES.items() if label.startswith(k)), label)


def observations(runs: Sequence[Row] | None = None, length: int = 64) -> tuple[Model, ...]:
    """The encodings with results at a training length, in the order of the predictions.

    Args:
        runs: results in JSON form; None takes the committed ones.
        length: the training length in tokens.
    """
    found = {(m.name, m.trained): m for m in grouped(results() if runs is None else runs)}
    return tuple(
        dataclasses.replace(model, prediction=entry)
        for entry in FIRST.predictions["encodings"]
        if entry["length"] == length
        and (model := found.get((entry["label"] + " + BCA" * entry["bca"], length)))
    )


def assumed_bias(label: str, length: int) -> Encoding:
    """The bias whose numbers stand for a label in the registered predictions, causal mask.

    Learned parameters are at the middle of their initial range. There is no bias where a table
    begins at 0, and where the encoding is no additive bias.
    """
    found = subject_of(label, length).encoding(HEADS)
    if not found.biases or any(p.init[0] == p.init[1] for p in found.free):
        return encoding("0")
    middle: dict[str, Any] = {p.name: (p.init[0] + p.init[1]) / 2 for p in found.free}
    return encoding(found.name, **middle) if middle else found


def subject_of(label: str, length: int) -> PlannedEncoding:
    """The encoding that the reference plan calls so."""
    return next(
        subject
        for sweep in FIRST.plan.sweeps
        if length in sweep.lengths
        for subject in sweep.encodings
        if subject.label == label
    )
