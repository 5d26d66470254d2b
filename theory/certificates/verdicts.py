"""From the steps of a decision to the sentences that prove it: rungs, bounds, terms that are 0.

In a bound each wave is replaced by -1 or 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from operator import add as plus
from operator import mul, neg, sub

from flint import fmpq
from sympy import S

from farfield.theory.algebra.exceptions import OrderTooLow, SignNeeded
from farfield.theory.answers.notation import beginning
from farfield.theory.certificates.constants import facts_of
from farfield.theory.certificates.expansions import Expander, settles
from farfield.theory.certificates.prover_forms import Form, NoCertificate, form
from farfield.theory.coefficients.exact import coefficient
from farfield.theory.coefficients.signs import Context
from farfield.theory.decision.cells import Constraint, known_signs, possible
from farfield.theory.proofs import Decision
from farfield.theory.transseries.arithmetic import add, iterated_log
from farfield.theory.transseries.scale import bertrand_test_and_rest

ORDERS = (1, 2, 4, 8, 16, 32)
OPERATIONS: dict[str, Callable[..., Form]] = {"plus": plus, "minus": sub, "opp": neg, "mult": mul}

Facts = list[Constraint]


PROVED = {"eventual", "zero", "expansion", "rung", "tie", "converges", "diverges", "masked"}
PROVED |= {"classes", "class"}
BOUNDS = {"upper bound": True, "lower bound": False}
"""The rules that are proved here, residue classes only where one proof is for all; and those on
waves, each with its side."""


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
    rules = [step.rule for step in decision.steps]
    if strange := [rule for rule in rules if rule not in PROVED and rule not in BOUNDS]:
        raise NoCertificate(f"a verdict by the rule {strange[0]!r}")
    signs = known_signs(facts)
    bounds = [BOUNDS[rule] for rule in rules if rule in BOUNDS]
    for above, terms in product((None, *bounds), ORDERS):
        x = Expander(Context(signs=signs, order=terms))
        try:
            converges = _climb(p, x, above)
        except OrderTooLow:
            continue
        except SignNeeded as needed:
            (g,) = needed.args
            ways = [(g, s) for s in (1, 0, -1) if possible([*facts, (g, s)])]
            if len(ways) == 1:  # it follows from those that were asked
                return proof(p, [*facts, *ways], decision)
            raise NoCertificate(f"the sign of {beginning(g)}") from None
        if converges is not decision.converges:
            raise NoCertificate("waves with bounds closer than -1 and 1")
        asked = {c: s.value for c, s in x.context.evidence.items()}
        return [*facts_of(asked, facts), *x.steps]
    raise NoCertificate(f"no expansion of up to {ORDERS[-1]} terms decides it")


def _climb(b: GuardedBias, x: Expander, above: bool | None) -> bool:
    """The rungs that the engine climbs, with the bias itself or with its bound."""
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
    if above is not None:
        p, whole = _bound(p, above, x), bias
        bias = x.function(p)
        rule = "converges" if above else "diverges"
        x.steps.append(f"apply (at_most_{rule} {whole} {bias}); [unfold p; at_most |].")
    g = add(*x.parts(p))
    decision, rest = bertrand_test_and_rest(-g)
    level = sum(step.rule == "tie" for step in decision.steps)
    critical = [(iterated_log(k), fmpq(-1)) for k in range(1, level + 1)]
    left = g.of([*critical, *(-rest).terms], g.remainder)
    x.expands(bias, left, "unfold p; expand")
    x.steps.append(f"rung {level}%nat.")
    return decision.converges


def _has_waves(f: Form, context: Context) -> bool:
    """Whether a wave that changes with the distance occurs."""
    wave = f.op in ("cos", "sin") and not (f.constant or settles(f, context))
    return wave or any(_has_waves(a, context) for a in f.args)


def _bound(f: Form, above: bool, x: Expander) -> Form:
    """A form without waves that lies above (or below) from some point on."""
    if not _has_waves(f, x.context):
        return f
    if f.op in ("cos", "sin"):
        return form(S.One if above else S.NegativeOne)
    ways = {"plus": (True, True), "minus": (True, False), "opp": (False,)}.get(f.op)
    if f.op == "mult":
        waves = [_has_waves(a, x.context) for a in f.args]
        if all(waves):
            raise NoCertificate("a product of waves that is not negligible")
        factor = f.args[waves.index(False)]
        s = x.context.sign(coefficient(factor.expr)) if factor.constant else x.lead(factor)
        ways = (s > 0,) * 2
    if ways is None:
        raise NoCertificate(f"{str(f.expr)[:60]} has waves that are not negligible")
    parts = [_bound(a, above == way, x) for a, way in zip(f.args, ways, strict=True)]
    return Form(f.op, tuple(parts), OPERATIONS[f.op](*(a.expr for a in parts)))


def braced(proof: Sequence[str]) -> list[str]:
    """A proof in braces, indented."""
    lines = [line for sentence in proof for line in sentence.split("\n")]
    return [f"{'  ' if k else '{ '}{line}" for k, line in enumerate(lines[:-1])] + [
        f"{'  ' if lines[1:] else '{ '}{lines[-1]} }}"
    ]
