"""Which encodings a model can be trained with, and what that takes."""

from __future__ import annotations

from farfield.theory.encodings import Encoding
from farfield.theory.results import InputError
from farfield.validation.settings.visibility import Visibility

TRAINABLE = ("bias", "rotation", "rotation_decay", "sinusoidal", "learned_absolute")


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
