"""The tactics that prove one case of a verdict: rungs of the scale climbed, terms that are 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flint import fmpq

from farfield.theory.algebra.exceptions import OrderTooLow, SignNeeded
from farfield.theory.answers.notation import beginning
from farfield.theory.certificates.constants import facts_of
from farfield.theory.certificates.expansion_proofs import Expander
from farfield.theory.certificates.prover_forms import Form, NoCertificate
from farfield.theory.coefficients.signs import Context
from farfield.theory.decision.cells import Constraint, known_signs, possible
from farfield.theory.proofs import Decision
from farfield.theory.transseries.arithmetic import add, iterated_log
from farfield.theory.transseries.scale import bertrand_test_and_rest

ORDERS = (1, 2, 4, 8, 16, 32)

Facts = list[Constraint]


PROVED = {"eventual", "zero", "expansion", "rung", "tie", "converges", "diverges", "masked"}
PROVED |= {"classes", "class", "upper bound", "lower bound"}
"""The rules that are proved here: residue classes where one proof is for all, bounds of waves where
their terms are small beside another."""


@dataclass(frozen=True)
class GuardedBias:
    """A bias for the prover: a formula, and where it holds; -oo elsewhere, None for everywhere."""

    value: Form
    where: Form | None

    def show(self) -> str:
        """The definition's type and its term."""
        shown = self.value.show()
        if self.where is None:
            return f"R := {shown}"
        finite = Form("finite", (self.value,)).show()
        return f"Rbar := if {self.where.show()} then {finite} else m_infty"


def proof(p: GuardedBias, facts: Facts, decision: Decision) -> list[str]:
    """The proof of a decision on one cell of the parameters, with as many terms as it takes, after
    the bounds of its constants.

    Raises:
        NoCertificate: there is none for this form, or by this rule.
    """
    if strange := [step.rule for step in decision.steps if step.rule not in PROVED]:
        raise NoCertificate(f"a verdict by the rule {strange[0]!r}")
    signs = known_signs(facts)
    for terms in ORDERS:
        x = Expander(Context(signs=signs, order=terms))
        try:
            converges = _climb(p, x)
        except OrderTooLow:
            continue
        except SignNeeded as needed:
            (g,) = needed.args
            ways = [(g, s) for s in (1, 0, -1) if possible([*facts, (g, s)])]
            if len(ways) == 1:  # it follows from those that were asked
                return proof(p, [*facts, *ways], decision)
            raise NoCertificate(f"the sign of {beginning(g)}") from None
        if converges is not decision.converges:
            raise NoCertificate("the expansion of the printed form decides otherwise")
        asked = {c: s.value for c, s in x.context.evidence.items()}
        return [*facts_of(asked, facts), *x.steps]
    raise NoCertificate(f"no expansion of up to {ORDERS[-1]} terms decides it")


def _climb(b: GuardedBias, x: Expander) -> bool:
    """The rungs that the engine climbs."""
    bias, p = "p", b.value
    if b.where is not None:
        finite = x.decide(b.where)
        value = Form("finite", (p,)).show() if finite else "m_infty"
        x.steps.append(
            f"assert (P : eventually (fun n : nat => p n = {value}))\n  by (unfold p; pieces)."
        )
        if not finite:
            x.steps.append(f"apply (extended_masked {bias} P).")
            return True
        x.steps.append(f"rewrite (extended_finite {bias} {x.function(p)} P).")
        bias = x.function(p)
    g = add(*x.parts(p))
    decision, rest = bertrand_test_and_rest(-g)
    level = sum(step.rule == "tie" for step in decision.steps)
    critical = [(iterated_log(k), fmpq(-1)) for k in range(1, level + 1)]
    left = g.of([*critical, *(-rest).terms], g.remainder)
    x.expands(bias, left, "unfold p; expand")
    x.steps.append(f"rung {level}%nat.")
    return decision.converges


def braced(proof: Sequence[str]) -> list[str]:
    """A proof in braces, indented."""
    lines = [line for sentence in proof for line in sentence.split("\n")]
    return [f"{'  ' if k else '{ '}{line}" for k, line in enumerate(lines[:-1])] + [
        f"{'  ' if lines[1:] else '{ '}{lines[-1]} }}"
    ]
