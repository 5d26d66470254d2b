"""From the steps of a decision to the sentences that prove it: rungs, residue classes, -oo.

The steps say what is to be proved: of which residue classes, of the bias or of a bound, and whether
the terms are 0 in the end. In a bound each wave is replaced by -1 or 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from operator import add as plus
from operator import mul, neg, sub

from flint import fmpq
from sympy import S

from farfield.theory.algebra.exceptions import OrderTooLow, SignNeeded, Undecided
from farfield.theory.answers.notation import beginning
from farfield.theory.certificates.constants import facts_of
from farfield.theory.certificates.expansions import Expander, Period, settles
from farfield.theory.certificates.prover_forms import Form, NoCertificate, form
from farfield.theory.coefficients.exact import Context, coefficient, deciding
from farfield.theory.coefficients.signs import sign
from farfield.theory.decision.cells import Constraint, known_signs, possible
from farfield.theory.proofs import Decision, Step
from farfield.theory.transseries.arithmetic import Transseries, add, iterated_log
from farfield.theory.transseries.scale import bertrand_test_and_rest

ORDERS = (1, 2, 4, 8, 16, 32)
OPERATIONS: dict[str, Callable[..., Form]] = {"plus": plus, "minus": sub, "opp": neg, "mult": mul}

Facts = list[Constraint]


PROVED = ("eventual", "zero", "expansion", "rung", "tie", "converges", "diverges", "masked")
BOUNDS = {"upper bound": True, "lower bound": False}
"""The rules of a decision that are proved here, and those on waves, each with its side."""


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
    """The proof of a decision on one cell of the parameters: all residue classes that it names
    converge, or its last diverges.

    Raises:
        NoCertificate: there is none for this form, or by this rule.
    """
    classes = _by_class(decision.steps)
    rules = [step.rule for step in decision.steps if step.rule not in ("classes", "class")]
    try:  # one proof for all classes is shorter
        return _expanded(p, facts, None, rules, decision.converges)
    except (NoCertificate, Undecided):
        if not classes:
            raise
    (size, _), _ = classes[0]
    rule = f"{'converges' if p.where is None else 'extended'}_classes p {size}"
    lines: list[str] = []
    for place, own in classes:
        claim = f"ex_series (fun n : nat => exp (p ({size} * n + {place[1]})%nat))"
        said = f"C{place[1]} : {claim}" if decision.converges else f"C : ~ {claim}"
        lines += [f"assert ({said}).", *braced(_expanded(p, facts, place, own, decision.converges))]
    if not decision.converges:
        return [*lines, f"intros X. apply C. apply ({rule}); [lia | exact X | lia]."]
    exact = " | ".join(f"exact C{r}" for r in range(size))
    return [
        *lines,
        f"apply ({rule}); [lia | intros Q Q0].",
        f"destruct Q as {'[|' * size}Q{']' * size}; [{exact} | lia].",
    ]


def _by_class(steps: Iterable[Step]) -> list[tuple[tuple[int, int], list[str]]]:
    """The residue classes of a decision, each with the rules of its steps."""
    parts: list[tuple[tuple[int, int], list[str]]] = []
    for step in steps:
        if step.rule == "class":
            parts.append(((step.values["period"], step.values["residue"]), []))
        elif parts:
            parts[-1][1].append(step.rule)
    return parts


def _expanded(
    p: GuardedBias, facts: Facts, place: Period, rules: Sequence[str], converges: bool
) -> list[str]:
    """The proof with as many terms as it takes, after the bounds of its constants; of a bound where
    the waves are not negligible."""
    if strange := [rule for rule in rules if rule not in (*PROVED, *BOUNDS)]:
        raise NoCertificate(f"a verdict by the rule {strange[0]!r}")
    bounds = [BOUNDS[rule] for rule in rules if rule in BOUNDS]
    with deciding(Context()):
        signs = known_signs(facts)
    for above, terms in product((None, *bounds), ORDERS):
        current, x = Context(signs=signs, order=terms), Expander(place)
        with deciding(current):
            try:
                found = _climb(p, x, above)
            except OrderTooLow:
                continue
            except SignNeeded as needed:
                (g,) = needed.args
                ways = [(g, s) for s in (1, 0, -1) if possible([*facts, (g, s)])]
                if len(ways) == 1:  # it follows from those that were asked
                    return _expanded(p, [*facts, *ways], place, rules, converges)
                raise NoCertificate(f"the sign of {beginning(g)}") from None
        if found is not converges:
            raise NoCertificate("waves with bounds closer than -1 and 1")
        asked = {c: s for c, (s, _) in current.trace.items()}
        return [*facts_of(asked, facts), *x.steps]
    raise NoCertificate(f"no expansion of up to {ORDERS[-1]} terms decides it")


def _climb(b: GuardedBias, x: Expander, above: bool | None) -> bool:
    """The rungs that the engine climbs, with the bias itself or with its bound."""
    bias = "p" if x.period is None else f"(fun n : nat => p ({x.index})%nat)"
    p = b.value
    if b.where is not None:
        finite = x.decide(b.where)
        value = Form("finite", (p,)).show(x.index) if finite else "m_infty"
        claim = f"eventually (fun n : nat => {'p n' if bias == 'p' else f'p ({x.index})%nat'}"
        x.steps.append(f"assert (P : {claim} = {value}))\n  by (unfold p; pieces).")
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
    left = Transseries([*critical, *(-rest).terms], g.remainder)
    x.expands(bias, left, "unfold p; expand")
    x.steps.append(f"rung {level}%nat.")
    return decision.converges


def _has_waves(f: Form) -> bool:
    """Whether a wave that changes with the distance occurs."""
    wave = f.op in ("cos", "sin") and not (f.constant or settles(f))
    return wave or any(map(_has_waves, f.args))


def _bound(f: Form, above: bool, x: Expander) -> Form:
    """A form without waves that lies above (or below) from some point on."""
    if not _has_waves(f):
        return f
    if f.op in ("cos", "sin"):
        return form(S.One if above else S.NegativeOne)
    ways = {"plus": (True, True), "minus": (True, False), "opp": (False,)}.get(f.op)
    if f.op == "mult":
        waves = [_has_waves(a) for a in f.args]
        if all(waves):
            raise NoCertificate("a product of waves that is not negligible")
        factor = f.args[waves.index(False)]
        s = sign(coefficient(factor.expr)) if factor.constant else x.lead(factor)
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
