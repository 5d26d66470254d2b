"""The script of a proof: what the engine's operations give, as assertions in the prover's notation.

An expansion is the engine's own `Transseries`; the prover's arithmetic of such sums is
`theory/formal/Expansions.v`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from farfield.theory.algebra.budget import check_time
from farfield.theory.certificates.prover_forms import Form, form
from farfield.theory.coefficients.exact import Coefficient, to_sympy
from farfield.theory.transseries.arithmetic import Monomial, Transseries, compare

Period = tuple[int, int] | None  # the residue class q n + r as (q, r); None for all n
Step = tuple[str, Transseries]  # the name of an assertion, and what it asserts


# -- the prover's notation ------------------------------------------------------------------------


def shown(c: Coefficient) -> str:
    """A constant."""
    return form(to_sympy(c)).show()


def exponents(m: Monomial) -> str:
    """A monomial `n^a0 (log n)^a1 ...` by its exponents.

    >>> import sympy
    >>> exponents(Monomial([sympy.S.Zero, sympy.Rational(1, 2)]))
    '[0; 1 / 2]'
    """
    return f"[{'; '.join(map(shown, m.chain))}]"


def order(m: Monomial | None) -> str:
    """A remainder."""
    return "exactly" if m is None else f"(Some {exponents(m)})"


def expanded(function: str, g: Transseries) -> str:
    """The claim that a function has this expansion."""
    terms = "; ".join(f"({shown(c)}, {exponents(m)})" for m, c in g.terms)
    return f"expands {function} [{terms}] {order(g.remainder)}"


def gathering(g: Transseries, raw: Iterable[Monomial]) -> str:
    """The tactic that puts the terms with these monomials together to an expansion; where the
    expansion has none of a monomial, its terms cancel."""
    cancelled: list[Monomial] = []
    for m in raw:
        within = g.remainder is not None and compare(m, g.remainder) <= 0
        if not within and all(compare(m, k) for k in (*(k for k, _ in g.terms), *cancelled)):
            cancelled.append(m)
    cancels = "".join(f"cancel ({exponents(m)} : expo); " for m in cancelled)
    return f"(raw; {cancels}gather_terms)" if cancels else "gather"


def adding_up(g: Transseries, raw: Iterable[Monomial]) -> str:
    """The tactic that adds up the parts of a sum."""
    by = gathering(g, raw)
    return "sum" if by == "gather" else f"sum_by {by}"


def together(facts: Sequence[str]) -> str:
    """A fact from some point on, in one term."""
    joint = "eventually_true"
    for fact in reversed(facts):
        joint = fact if joint == "eventually_true" else f"(filter_and _ _ {fact} {joint})"
    return joint


# -- assertions -----------------------------------------------------------------------------------


@dataclass
class Script:
    """The assertion on one cell of the parameters.

    Fields:
        period: in a residue class `q n + r`, (q, r).
        steps: the assertions so far.
    """

    period: Period = None
    steps: list[str] = field(default_factory=list)

    @property
    def index(self) -> str:
        """The distance in the prover's notation."""
        return "n" if self.period is None else f"{self.period[0]} * n + {self.period[1]}"

    def function(self, f: Form) -> str:
        """A part as a function of the distance."""
        return f"(fun n : nat => {f.show(self.index)})"

    def asserted(self, letter: str, claim: str, by: str) -> str:
        """Assert a claim, to be proved by a tactic; its name."""
        check_time()
        name = f"{letter}{len(self.steps) + 1}"
        self.steps.append(f"assert ({name} : {claim})\n  by {by if by.isalpha() else f'({by})'}.")
        return name

    def step(self, f: Form, g: Transseries, by: str) -> Step:
        """Assert an expansion."""
        return self.asserted("E", expanded(self.function(f), g), by), g

    def ruled(self, f: Form, g: Transseries, by: str, raw: Iterable[Monomial]) -> Step:
        """Assert what a rule gives, its terms put together."""
        return self.step(f, g, f"gathering ({by}) {gathering(g, raw)}")

    def fact(self, claim: str, by: str) -> str:
        """Assert a fact from some point on; its name."""
        return self.asserted("H", f"eventually (fun n : nat => {claim})", by)
