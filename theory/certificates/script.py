"""The script of a proof: assertions in order, and monomials in the order of their growth."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cmp_to_key

import sympy
from sympy import Expr, S

from farfield.theory.algebra.budget import check_time
from farfield.theory.certificates.forms import Form
from farfield.theory.certificates.monomials import (
    Expo,
    FiniteExpansion,
    Rest,
    Terms,
    gathering,
    listed,
    order,
    power,
    product,
)
from farfield.theory.certificates.signs import Signs
from farfield.theory.coefficients.arithmetic import expand

Step = tuple[str, FiniteExpansion]  # the name of an assertion, and what it asserts


@dataclass
class Script:
    """What is asserted on one cell of the parameters.

    Fields:
        signs: what is known of the parameters.
        period: in a residue class `q n + r`, (q, r).
        steps: the assertions so far.
    """

    signs: Signs
    period: tuple[int, int] | None = None
    steps: list[str] = field(default_factory=list)

    @property
    def index(self) -> str:
        """The distance in the prover's notation."""
        return "n" if self.period is None else f"{self.period[0]} * n + {self.period[1]}"

    def function(self, f: Form) -> str:
        """A part as a function of the distance."""
        return f"(fun n : nat => {f.show(self.index)})"

    # -- order of growth --------------------------------------------------------------------------

    def compare(self, e: Expo, f: Expo) -> int:
        """-1, 0 or 1 as the first monomial is of smaller, the same or larger growth."""
        signs = map(self.signs.sign, product(e, power(f, S.NegativeOne)))
        return next((s for s in signs if s), 0)

    def within(self, e: Expo, rest: Rest) -> bool:
        """Whether a monomial is of the order of a remainder."""
        return rest is not None and self.compare(e, rest) <= 0

    def largest(self, *rests: Rest) -> Rest:
        """The largest of some remainders."""
        found = [r for r in rests if r is not None]
        return max(found, key=cmp_to_key(self.compare)) if found else None

    # -- steps ------------------------------------------------------------------------------------

    def asserted(self, letter: str, claim: str, by: str) -> str:
        """Assert a claim, to be proved by a tactic; its name."""
        check_time()
        name = f"{letter}{len(self.steps) + 1}"
        self.steps.append(f"assert ({name} : {claim})\n  by {by if by.isalpha() else f'({by})'}.")
        return name

    def step(self, f: Form, expansion: FiniteExpansion, by: str) -> Step:
        """Assert an expansion."""
        claim = f"expands {self.function(f)} {listed(expansion.terms)} {order(expansion.rest)}"
        return self.asserted("E", claim, by), expansion

    def ruled(self, f: Form, terms: Terms, rest: Rest, by: str) -> Step:
        """Assert what a rule gives, its terms put together."""
        expansion, cancelled = self.gathered(terms, rest)
        return self.step(f, expansion, f"gathering ({by}) {gathering(cancelled)}")

    def gathered(self, terms: Terms, rest: Rest) -> tuple[FiniteExpansion, list[Expo]]:
        """Terms put together, and the monomials that cancel; those within the remainder go."""
        by_growth: list[tuple[Expo, list[Expr]]] = []
        growth = cmp_to_key(self.compare)
        remaining = [t for t in terms if not self.within(t[1], rest)]
        for c, e in sorted(remaining, key=lambda t: growth(t[1]), reverse=True):
            if by_growth and self.compare(by_growth[-1][0], e) == 0:
                by_growth[-1][1].append(c)
            else:
                by_growth.append((e, [c]))
        totals = [(expand(sympy.Add(*cs)), e, any(cs)) for e, cs in by_growth]
        kept = tuple((c, e) for c, e, _ in totals if c != 0)
        return FiniteExpansion(kept, rest), [e for c, e, some in totals if c == 0 and some]

    def fact(self, claim: str, by: str) -> str:
        """Assert what holds from some point on; its name."""
        return self.asserted("H", f"eventually (fun n : nat => {claim})", by)
