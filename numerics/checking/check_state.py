"""What one check carries along, and how it reads what a step says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from sympy import Expr, Symbol

from farfield.numerics.checking.numbers import Numbers
from farfield.numerics.checking.stops import ProofError
from farfield.theory.answers.errors import InputError
from farfield.theory.formula.grammar import read


@dataclass
class CheckState:
    """The state of a check: the bias at this step, and the values of the parameters."""

    p: Expr
    values: dict[Symbol, Expr]
    numbers: Numbers
    rest: Expr | None = None  # what is left of rho on the ladder
    rung: int = 0
    limit: Expr | None = None
    tied: bool = True  # the next rung may follow
    unreadable: bool = False  # a named remainder stands in the expansion
    verdicts: list[bool] = field(default_factory=list)

    def at(self, e: Expr) -> Expr:
        """The expression with the sample values of the parameters."""
        return e.xreplace(self.values)


def expression(text: str, domains: Mapping[str, str]) -> Expr:
    """What a step says, read again."""
    names = {k: d for k, d in domains.items() if k in _words(text)}
    try:
        return read(text, names)
    except InputError as error:
        raise ProofError(f"a step is unreadable: {error}") from None


def _words(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z]\w*", text))
