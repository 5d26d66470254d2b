"""Signs of constants and of expressions in parameters, on one cell of the parameter space.

The parameter space is split wherever a decision depends on a sign; each part is a cell, known by
the relations that led to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy
from sympy import Expr

from farfield.theory.algebra.outcomes import Fork, Undecided
from farfield.theory.certificates.forms import CHOICES, NoCertificate, without_roots
from farfield.theory.coefficients.arithmetic import coefficient, expand
from farfield.theory.coefficients.context import Context, deciding
from farfield.theory.coefficients.signs import sign
from farfield.theory.decision import parameters as cells

Fact = tuple[Expr, int]  # the sign of an expression: -1, 0, 1, or 2 for >= 0
MAX_CELLS = 40


@dataclass
class Signs:
    """What is known on a cell; `asked` collects the constants whose sign was needed."""

    facts: tuple[Fact, ...] = ()
    asked: dict[Expr, int] = field(default_factory=dict)

    def sign(self, e: Expr) -> int:
        """-1, 0 or 1.

        Raises:
            Fork: it depends on the parameters.
            NoCertificate: a constant that cannot be told from 0.
        """
        if e.is_Rational:
            return int(sympy.sign(e))
        if e.has(*CHOICES):  # the prover's arithmetic of constants distinguishes no cases
            raise NoCertificate(f"the sign of {str(e)[:60]}")
        e = expand(e)
        if e.is_Rational:
            return int(sympy.sign(e))
        plain = expand(without_roots(e))
        if e.free_symbols and (known := self._implied(plain)) is not None:
            answer = known
        else:
            try:
                with deciding(Context(signs=cells.known_signs(list(self.facts)))):
                    answer = sign(coefficient(plain))
            except Undecided as why:
                raise NoCertificate(str(why)) from None
            if not _is_simple(plain):
                raise NoCertificate(f"the sign of {str(plain)[:60]}, a product of many parameters")
        if answer == 0 and not _is_arithmetic(plain):
            raise NoCertificate(f"{str(plain)[:60]} is 0 by more than arithmetic")
        self.asked[e] = answer
        return answer

    def _implied(self, e: Expr) -> int | None:
        """The sign that the facts leave, by linear elimination."""
        left = [s for s in (1, 0, -1) if cells.possible([*self.facts, (e, s)])]
        return left[0] if len(left) == 1 else None


def _is_simple(e: Expr) -> bool:
    """Whether the prover's tactics find the sign of a constant that follows from no linear facts:
    a product of what is positive, or a sum of terms of degree 2 at most, one denominator in all."""
    terms = [
        [(b, k) for b, k in t.as_powers_dict().items() if b.free_symbols]
        for t in sympy.Add.make_args(e)
    ]
    below = {b for t in terms for b, k in t if k.could_extract_minus_sign()}
    if len(terms) == 1 and all(b.is_positive for b, _ in terms[0]):
        return True
    degrees = [sum(abs(k) if k.is_Integer else 1 for _, k in t) for t in terms]
    return max(degrees) <= 2 and len(below) <= 1 and all(b.is_positive for b in below)


def _is_arithmetic(e: Expr) -> bool:
    """Whether only rational numbers and parameters are added, multiplied and divided."""
    powers = e.atoms(sympy.Pow)
    return all(a.exp.is_Integer for a in powers) and not e.has(sympy.Function, sympy.NumberSymbol)


@dataclass(frozen=True)
class Cell:
    """A leaf: the relations that lead to it, and what was found there."""

    facts: tuple[Fact, ...]
    found: Any


@dataclass(frozen=True)
class Branch:
    """A split on the sign of an expression; parts that cannot occur are None."""

    on: Expr
    above: Branch | Cell | None
    zero: Branch | Cell | None
    below: Branch | Cell | None


def explore(domains: Mapping[str, str], symbols: Any, run: Callable[[Signs], Any]) -> Branch | Cell:
    """The tree of cells on which `run` finds an answer."""
    known: tuple[Fact, ...] = tuple(
        fact
        for s in sorted(symbols, key=lambda s: str(s.name))
        for fact in cells.domain_constraints(s, domains.get(s.name))
    )
    count = 0

    def grow(path: tuple[Fact, ...]) -> Branch | Cell | None:
        nonlocal count
        if not cells.possible([*known, *path]):
            return None
        count += 1
        if count > MAX_CELLS:
            raise NoCertificate(f"more than {MAX_CELLS} cases of the parameters")
        try:
            return Cell(path, run(Signs((*known, *path))))
        except Fork as fork:
            on = fork.expression
        return Branch(on, *(grow((*path, (on, s))) for s in (1, 0, -1)))

    tree = grow(())
    if tree is None:
        raise NoCertificate("the assumptions contradict each other")
    return tree
