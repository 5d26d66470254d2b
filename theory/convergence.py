r"""Does the exp-series of a bias converge?

For a bias p(n) the exp-series is `sum_n exp(p(n))`. If it converges, full attention is
approximated by window attention, uniformly in the inputs, as the window grows [Q, Theorem 0.4];
and only then (ours: the worst-case error of a window of j tokens is exactly
`2 value_bound T_j/(T_j + e^{-2 logit_bound} B_j)`, which tends to 0 iff the series converges).

How it is decided is told in `decision.series`.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from typing import Any

import sympy
from sympy import Expr, S

from farfield.theory.algebra.budget import until
from farfield.theory.algebra.outcomes import NotReal
from farfield.theory.answers.answer import Code, InputError, Label, Reason, Status, decisive
from farfield.theory.answers.notation import shortened
from farfield.theory.answers.number import seconds
from farfield.theory.decision.series import decide_series
from farfield.theory.encodings import Encoding, encoding
from farfield.theory.formula.building import primitive
from farfield.theory.formula.parameters import parameter
from farfield.theory.functions.nodes import n
from farfield.theory.proofs import Decision, Proof, Step
from farfield.theory.verdicts import Convergence, Verdict

DEFAULT_BUDGET = 10.0
FAMILY = 3
"""Heads from which on one decision for all of them is worth while."""


def check_convergence(
    f: Any,
    *,
    assumptions: Mapping[str, str] | None = None,
    budget_s: float = DEFAULT_BUDGET,
    **options: Any,
) -> Convergence:
    """Decide whether the exp-series of a bias converges, with a proof.

    Args:
        f: a formula in `n` and named parameters, a SymPy expression, the name of an encoding, or
            an `Encoding`.
        assumptions: domain of each parameter: positive (the default), nonnegative, negative,
            nonpositive, real, or an interval such as `[0, 2)`.
        budget_s: seconds after which the verdict is `undecided`.
        **options: values of parameters, or what `encoding` takes (`heads`, `dialect`, ...).

    Returns:
        A `Convergence`. Finitely many terms at the beginning that are undefined or infinite are
        left out of the series (`skipped_terms`).

    Raises:
        InputError: for what is no formula, is not real for large n, or contradicts itself.

    >>> check_convergence("-log(1+n)").verdict.value
    'diverges'
    >>> check_convergence("-r1*log(1+r2*n)").condition
    r1 > 1
    >>> str(check_convergence("alibi").verdict)
    'converges'
    """
    budget = seconds(budget_s)
    subject = encoding(f, **_merged(assumptions, options))
    domains = {p.name: p.domain for p in subject.parameters}
    if subject.bca is not None:
        said = f"bounded support: each row sees at most {2 * subject.bca} keys"
        step = Step("bounded support", {"reason": said})
        proof = Proof("every window of that width is exact", (step,))
        reason = Reason(Code.BOUNDED_SUPPORT, said)
        return Convergence(
            subject.formula,
            Verdict.CONVERGES,
            S.true,
            proof,
            support=2 * subject.bca,
            label=Label.THEOREM,
            reason=reason,
            subject=subject.name,
        )
    if subject.out_of_scope is not None:
        step = Step("scope", {"reason": str(subject.out_of_scope)})
        proof = Proof("nothing follows from the theorem", (step,))
        return Convergence(
            None,
            Verdict.OUT_OF_SCOPE,
            None,
            proof,
            mechanism=subject.mechanism,
            status=Status.OUT_OF_SCOPE,
            label=None,
            reason=subject.out_of_scope,
            subject=subject.name,
        )
    with until(time.monotonic() + budget):
        decided = _in_one_family(subject.biases)
        for bias in subject.biases:
            if bias not in decided:
                present = {s.name for s in bias.free_symbols}
                own = {name: d for name, d in domains.items() if name in present}
                decided[bias] = _decide_bias(bias, own)
    results = tuple(decided[b] for b in subject.biases)
    whole = results[0] if len(results) == 1 else _together(subject, results)
    return dataclasses.replace(whole, subject=subject.name, budget_s=budget)


def _merged(assumptions: Mapping[str, str] | None, options: dict[str, Any]) -> dict[str, Any]:
    """Assumptions may stand beside values, but not for the same parameter."""
    both = sorted(set(assumptions or {}) & set(options))
    if both:
        raise InputError(f"{both[0]!r} is given a value and an assumption; give one of them")
    return options | {"assumptions": assumptions} if assumptions else options


def _together(subject: Encoding, results: tuple[Convergence, ...]) -> Convergence:
    """Several heads: `diverges` as soon as one does, `converges` only if all do."""
    worst = decisive(
        results, lambda r: r.verdict is Verdict.CONDITIONAL, lambda r: r.verdict is Verdict.DIVERGES
    )
    v = worst.verdict
    count = sum(r.verdict is v for r in results)
    claim = f"{count} of {len(results)} heads: {v}"
    condition = S.false if v is Verdict.DIVERGES else None
    if v in (Verdict.CONDITIONAL, Verdict.CONVERGES):
        condition = sympy.And(*(r.condition for r in results))
    assumed = dict(a for r in results for a in r.assumptions)
    return Convergence(
        subject.formula,
        v,
        condition,
        Proof(claim, worst.proof.steps),
        tuple(assumed.items()),
        results,
        status=worst.status,
        label=worst.label,
        reason=worst.reason,
    )


def _in_one_family(biases: tuple[Expr, ...]) -> dict[Expr, Convergence]:
    """Heads that are positive multiples s q of one bias, decided once with s as a parameter, where
    the verdict is the same for all s > 0 by the same steps; each has those steps with its own s."""
    distinct = tuple(dict.fromkeys(biases))
    shares = [primitive(b) for b in distinct]
    one = {q for _, q in shares}
    if len(distinct) < FAMILY or len(one) > 1 or any(b.free_symbols != {n} for b in distinct):
        return {}
    factor = parameter("s", "positive")
    try:
        decision = decide_series(factor * one.pop(), {"s": "positive"})
    except NotReal:
        return {}
    if decision.condition not in (S.true, S.false) or any(s.rule == "cell" for s in decision.steps):
        return {}
    return {
        b: _convergence(b, decision.at({factor: s}), ())
        for b, (s, _) in zip(distinct, shares, strict=True)
    }


def _decide_bias(p: Expr, domains: Mapping[str, str]) -> Convergence:
    """The decision as an answer; a bias that is nowhere real is bad input."""
    try:
        decision = decide_series(p, domains)
    except NotReal as why:
        raise InputError(f"formula {shortened(str(p))!r} is not real for large n ({why})") from None
    return _convergence(p, decision, tuple(domains.items()))


def _convergence(p: Expr, decision: Decision, assumptions: tuple[Any, ...]) -> Convergence:
    """A decision as an answer: its condition is the verdict, its steps the proof."""
    truth = decision.condition
    if truth is None:
        return Convergence(
            p,
            Verdict.UNDECIDED,
            None,
            Proof("", decision.steps),
            assumptions,
            status=Status.UNKNOWN,
            label=None,
            reason=Reason(Code.UNDECIDED, decision.reason),
        )
    verdict = {S.true: Verdict.CONVERGES, S.false: Verdict.DIVERGES}.get(truth, Verdict.CONDITIONAL)
    claim = f"the exp-series {verdict.value}"
    if verdict is Verdict.CONDITIONAL:
        claim = f"the exp-series converges exactly if {truth}"
    reason = Reason(Code.CONDITIONAL, "where the formula is not real there is no series")
    return Convergence(
        p,
        verdict,
        truth,
        Proof(claim, decision.steps, decision.fall),
        assumptions,
        label=Label.THEOREM,
        reason=None if decision.real else reason,
    )
