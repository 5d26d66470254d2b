"""Functions that are known by name alone: no published encoding has one.

Each is refused with that reason, so that its name is neither a parameter nor a slip of the pen.
"""

from __future__ import annotations

from collections.abc import Callable

from sympy import Expr

from farfield.theory.functions.record import Refused, Spelling


def _refusal(name: str, kind: str) -> Callable[..., Expr]:
    def build(*args: Expr) -> Expr:
        raise Refused(f"{name} is {kind}, which is left out: no published encoding has one")

    return build


KINDS = {
    "a Bessel function": ("besseli", "besselj", "besselk", "bessely", "iv", "jv", "kv"),
    "the imaginary error function": ("erfi",),
    "an exponential integral": ("Ei", "E1", "exp1", "expint"),
    "the logarithmic integral": ("li",),
    "a sine or cosine integral": ("Si", "Ci"),
    "the zeta function": ("zeta",),
}

FUNCTIONS = tuple(
    Spelling(name, _refusal(name, kind), 0, 3) for kind, names in KINDS.items() for name in names
)
