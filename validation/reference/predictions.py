"""What the theory says of the runs of the first registration, before any of them."""

from __future__ import annotations

import math
from typing import Any

import sympy
from sympy import S

from farfield.numerics.depth import layered_mass, layered_receptive_field
from farfield.numerics.leak import leak
from farfield.numerics.receptive_field import ReceptiveField, theoretical_receptive_field
from farfield.theory.convergence import Verdict, check_convergence
from farfield.theory.encodings import Encoding, encoding
from farfield.theory.functions.nodes import n as distance
from farfield.validation.harness.plan import ROTATED
from farfield.validation.reference.registration import FIRST

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
