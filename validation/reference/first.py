"""The first registration: what the theory said of its runs before any of them, and what came out.

Most encodings had been piloted before; `UNSEEN` names the others.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import sympy
from sympy import S

from farfield.numerics.depth import layered_mass, layered_receptive_field
from farfield.numerics.leak import leak
from farfield.numerics.receptive_field import ReceptiveField, theoretical_receptive_field
from farfield.theory.convergence import Verdict, check_convergence
from farfield.theory.encodings import Encoding, encoding
from farfield.theory.functions.nodes import n as distance
from farfield.validation.harness.plan import ROTATED, PlannedEncoding
from farfield.validation.reference.committed import Row
from farfield.validation.reference.registration import FIRST
from farfield.validation.reference.table import Model, grouped, results

EPS = ("1/10", "1/20", "1/100", "1/1000")
MIXING = "2/5"  # of the layered receptive field


def predict() -> dict[str, Any]:
    """What the theory says of every encoding of the plan, before any training.

    The extrapolation forecast ranks the encodings by `beyond`, the share of the layered mass that
    lies outside the training length in the longest test row: more is worse. Learned biases are
    predicted at the middle of their initial range; encodings without an additive bias are
    predicted as if they had none. With blockwise causal attention they count as a window of the
    training length, the widest that it lets a query see.
    """
    entries: dict[tuple[str, int, bool], dict[str, Any]] = {}
    for sweep in FIRST.plan.sweeps:
        for chosen in sweep.architectures():
            length = chosen.length
            tested = [length * m for m in sweep.multiples]
            far = [length * sweep.far] if sweep.far else []
            for subject, found in sweep.subjects(chosen):
                for bca in (False, True) if found.mechanism in ROTATED else (False,):
                    name = subject.label, length, bca
                    if name not in entries:
                        said = _prediction(found, length, tested, far, chosen.layers, bca)
                        entries[name] = {"label": subject.label, **said}
    for e in entries.values():
        group = (f for f in entries.values() if f["length"] == e["length"])
        e["rank"] = 1 + sum(f["layered"]["beyond"] < e["layered"]["beyond"] for f in group)
    return {"mixing": MIXING, "encodings": [*entries.values()]}


def _prediction(
    found: Encoding,
    length: int,
    tested: list[int],
    far: list[int],
    layers: int,
    bca: bool,
) -> dict[str, Any]:
    assumed, basis = stand_in(found, length, bca)
    verdict = check_convergence(found)
    heads = [h.verdict for h in verdict.heads] or [verdict.verdict]
    row, longest = 512, max(tested)

    def fields(row: int | None) -> dict[str, Any]:
        several = theoretical_receptive_field(assumed, EPS, length=row)
        return {
            eps: [_tokens(h) for h in f.heads or (f,)] for eps, f in zip(EPS, several, strict=True)
        }

    convergent = check_convergence(assumed).verdict is Verdict.CONVERGES
    leaks = {}
    for longer in [*(t for t in tested if t > length), *far]:
        value = leak(assumed, length, longer)
        leaks[str(longer)] = [h.value for h in value.heads or (value,)]
    mass = layered_mass(assumed, layers, length, mixing=MIXING, length=longest)
    layered = layered_receptive_field(assumed, layers, mixing=MIXING, length=longest)
    return {
        "length": length,
        "bca": bca,
        "verdict": verdict.verdict.value,
        "heads": [h.value for h in heads],
        "condition": str(verdict.condition) if heads == [Verdict.CONDITIONAL] else None,
        "basis": basis,
        "trf": fields(None) if convergent else None,
        "row": row,
        "row_trf": fields(row),
        "leak": leaks,
        "layered": {"q": "99/100", "row": longest, "tokens": layered.tokens, "beyond": 1 - mass},
        "extrapolates": bca or verdict.verdict is Verdict.CONVERGES,
    }


def stand_in(found: Encoding, length: int, bca: bool) -> tuple[Encoding, str]:
    """The bias whose numbers stand for an encoding, and why."""
    if bca:
        window = sympy.Piecewise((0, distance < length), (-sympy.oo, True))
        return encoding(window), "blockwise causal attention: a window of its width"
    if not found.biases:
        return encoding(S.Zero), "no additive bias: as if there were none"
    if not found.free:
        return found, "the formula"
    if any(p.init[0] == p.init[1] for p in found.free):
        return encoding(S.Zero), "a table that begins at 0"
    middle: dict[str, Any] = {p.name: (p.init[0] + p.init[1]) / 2 for p in found.free}
    return encoding(found.name, **middle), "learned: the middle of the initial range"


def _tokens(field: ReceptiveField) -> int | str:
    """The integer, its first digits, or what is known of it."""
    if field.tokens is not None and field.tokens != math.inf:
        tokens = int(field.tokens)
        return tokens if tokens < 10**15 else f"{str(tokens)[:12]}..."
    return field.value_text()


# -- what came out --------------------------------------------------------------------------------

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
