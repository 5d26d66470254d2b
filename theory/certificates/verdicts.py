"""From the expansion of a bias to the proof of its verdict: rungs, residue classes, -oo.

Where waves are not negligible, each is replaced by -1 or 1. A bound above that converges decides,
and so does a bound below that diverges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import add as plus
from operator import mul, neg, sub

from flint import fmpq
from sympy import S

from farfield.theory.algebra.exceptions import OrderTooLow, Undecided
from farfield.theory.certificates.constants import facts_of
from farfield.theory.certificates.expansions import Expander, Period
from farfield.theory.certificates.prover_forms import Form, NoCertificate
from farfield.theory.coefficients.exact import Context, coefficient, deciding
from farfield.theory.coefficients.signs import sign
from farfield.theory.decision.cells import Constraint, known_signs
from farfield.theory.decision.engine import MAX_PERIOD, common_period
from farfield.theory.transseries.arithmetic import Transseries, add, iterated_log
from farfield.theory.transseries.scale import bertrand_test_and_rest

ORDERS = (1, 2, 4, 8, 16, 32)
OPERATIONS: dict[str, Callable[..., Form]] = {"plus": plus, "minus": sub, "opp": neg, "mult": mul}

Facts = list[Constraint]


@dataclass(frozen=True)
class ProvedVerdict:
    """Whether the series converges, and the sentences that prove it."""

    converges: bool
    proof: tuple[str, ...]


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


def decide(p: GuardedBias, facts: Facts) -> ProvedVerdict:
    """Decide the exp-series of a bias, on one cell of the parameters.

    Raises:
        SignNeeded: the answer depends on the parameters.
        NoCertificate: none is known for this form.
    """
    try:
        return _expanded(partial(_climb, p), facts)
    except (NoCertificate, Undecided) as why:
        for above in (True, False) if _has_waves(p.value) else ():
            try:
                found = _expanded(partial(_climb, p, above=above), facts)
            except (NoCertificate, Undecided):
                continue
            if found.converges == above:
                return found
        size = math.lcm(*(common_period(f.expr) for f in (p.value, p.where) if f is not None))
        if size == 1:
            raise
        if size > MAX_PERIOD:
            raise NoCertificate(f"a period of {size}") from why
    return _in_classes(p, facts, size)


def _expanded(
    attempt: Callable[[Expander], bool], facts: Facts, place: Period = None
) -> ProvedVerdict:
    """Prove the verdict with as many terms as it takes, after the bounds of its constants."""
    for terms in ORDERS:
        current, x = Context(signs=known_signs(facts), order=terms), Expander(place)
        with deciding(current):
            try:
                converges = attempt(x)
            except OrderTooLow:
                continue
        signs = {c: s for c, (s, _) in current.trace.items()}
        return ProvedVerdict(converges, (*facts_of(signs, facts), *x.steps))
    raise NoCertificate(f"no expansion of up to {ORDERS[-1]} terms decides it")


def _climb(b: GuardedBias, x: Expander, above: bool | None = None) -> bool:
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
    assert decision.fall is not None and decision.converges is not None
    level = len(decision.fall.limits) - 1
    critical = [(iterated_log(k), fmpq(-1)) for k in range(1, level + 1)]
    left = Transseries([*critical, *(-rest).terms], g.remainder)
    x.expands(bias, left, "unfold p; expand")
    x.steps.append(f"rung {level}%nat.")
    return decision.converges


def _has_waves(f: Form) -> bool:
    """Whether a wave that changes with the distance occurs."""
    return (f.op in ("cos", "sin") and not f.constant) or any(map(_has_waves, f.args))


def _bound(f: Form, above: bool, x: Expander) -> Form:
    """A form without waves that lies above (or below) from some point on."""
    if not _has_waves(f):
        return f
    if f.op in ("cos", "sin"):
        return Form("number", (), S.One if above else S.NegativeOne)
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


def _in_classes(p: GuardedBias, facts: Facts, size: int) -> ProvedVerdict:
    """Split into residue classes: all must converge, or one diverge."""
    failure: Exception | None = None
    rule = "converges_classes" if p.where is None else "extended_classes"
    lines: list[str] = []
    for r in range(size):
        try:
            decision = _expanded(partial(_climb, p), facts, (size, r))
        except (NoCertificate, Undecided) as why:
            failure = failure or why
            continue
        claim = f"ex_series (fun n : nat => exp (p ({size} * n + {r})%nat))"
        if not decision.converges:
            return ProvedVerdict(
                False,
                (
                    f"assert (C : ~ {claim}).",
                    *braced(decision.proof),
                    f"intros X. apply C. apply ({rule} p {size}); [lia | exact X | lia].",
                ),
            )
        lines += [f"assert (C{r} : {claim}).", *braced(decision.proof)]
    if failure is not None:
        raise failure
    classes = " | ".join(f"exact C{r}" for r in range(size))
    return ProvedVerdict(
        True,
        (
            *lines,
            f"apply ({rule} p {size}); [lia | intros Q Q0].",
            f"destruct Q as {'[|' * size}Q{']' * size}; [{classes} | lia].",
        ),
    )


def braced(proof: Sequence[str]) -> list[str]:
    """A proof in braces, indented."""
    lines = [line for sentence in proof for line in sentence.split("\n")]
    return [f"{'  ' if k else '{ '}{line}" for k, line in enumerate(lines[:-1])] + [
        f"{'  ' if lines[1:] else '{ '}{lines[-1]} }}"
    ]
