"""Which encodings a model can be trained with, and what that takes."""

from __future__ import annotations

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import CATALOGUE, Encoding
from farfield.validation.harness.visibility import Visibility

TRAINABLE = ("bias", "rotation", "rotation_decay", "sinusoidal", "learned_absolute")
"""The mechanisms that the model has."""


def trainable(encoding: Encoding) -> bool:
    """Whether a model is trained with it where all are; a surrogate replaces another encoding, and
    is not."""
    entry = CATALOGUE.get(encoding.name)
    surrogate = entry is not None and bool(entry.stands_for)
    values = all(p.learned or p.init[0] == p.init[1] for p in encoding.free)
    return encoding.mechanism in TRAINABLE and values and not surrogate


def require_mechanism(encoding: Encoding) -> None:
    """Raise InputError if the model has no such mechanism."""
    if encoding.mechanism in TRAINABLE:
        return
    others = (e.name for e in CATALOGUE.values() if e.mechanism in TRAINABLE[1:])
    raise InputError(
        f"{encoding.name} cannot be trained here (mechanism {encoding.mechanism}); accepted: "
        f"additive biases, {', '.join(others)}"
    )


def require_values(encoding: Encoding) -> None:
    """Raise InputError if a parameter has neither a value nor a way to be learned.

    A parameter that is not learned may be left to its reference value, if that is one point.
    """
    for parameter in encoding.free:
        if not parameter.learned and parameter.init[0] != parameter.init[1]:
            raise InputError(
                f"{encoding.name}: {parameter.name} is not learned and has no value; accepted: "
                f"{parameter.name}=..., in the domain {parameter.domain}"
            )


def variants(encoding: Encoding, length: int) -> tuple[Visibility, ...]:
    """How a model trained on this length is measured: rotations with BCA as well [S, 3.3]."""
    if encoding.mechanism in ("rotation", "rotation_decay"):
        return (Visibility(), Visibility(bca=encoding.bca or length // 2))
    return ()
