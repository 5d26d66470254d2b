"""The encodings of the first registration: each with its prediction and what came out."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from farfield.theory.encodings import Encoding
from farfield.validation.harness.plan import PlannedEncoding
from farfield.validation.reference.committed import Row
from farfield.validation.reference.predictions import stand_in
from farfield.validation.reference.registration import FIRST
from farfield.validation.reference.table import Model, grouped, results

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
    """The bias whose numbers stood for a label in the registered predictions, causal mask."""
    found = subject_of(label, length).encoding(HEADS)
    return stand_in(found, length, bca=False)[0]


def subject_of(label: str, length: int) -> PlannedEncoding:
    """The encoding that the reference plan calls so."""
    return next(
        subject
        for sweep in FIRST.plan.sweeps
        if length in sweep.lengths
        for subject in sweep.encodings
        if subject.label == label
    )
