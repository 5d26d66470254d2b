"""From the expansion of a bias to the proof of its verdict: rungs, residue classes, -oo.

Where waves are not negligible, each is replaced by -1 or 1. A bound above that converges decides,
and so does a bound below that diverges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from flint import fmpq
from sympy import S

from farfield.theory.algebra.exceptions import OrderTooLow, Undecided
from farfield.theory.certificates.constants import facts_of
from farfield.theory.certificates.expansions import Expander
from farfield.theory.certificates.prover_forms import Form, NoCertificate, is_extended
from farfield.theory.certificates.script import Period, adding_up, expanded, together
from farfield.theory.coefficients.exact import Context, coefficient, deciding
from farfield.theory.coefficients.signs import sign
from farfield.theory.decision.cells import Constraint, known_signs
from farfield.theory.decision.engine import common_period
from farfield.theory.transseries.arithmetic import Transseries, add, iterated_log
from farfield.theory.transseries.scale import bertrand_test_and_rest

ORDERS = (1, 2, 4, 8, 16, 32)
MAX_PERIOD = 48
INFINITE = "left; split; [constant | less]"

Facts = list[Constraint]


@dataclass(frozen=True)
class ProvedVerdict:
    """Whether the series converges, and the sentences that prove it."""

    converges: bool
    proof: tuple[str, ...]


def decide(p: Form, facts: Facts) -> ProvedVerdict:
    """Decide the exp-series of a bias, on one cell of the parameters.

    Raises:
        SignNeeded: the answer depends on the parameters.
        NoCertificate: none is known for this form.
    """
    try:
        return _on_class(p, facts, None)
    except (NoCertificate, Undecided) as why:
        if _has_waves(p) and (decision := _by_bound(p, facts)) is not None:
            return decision
        size = common_period(p.expr)
        if size == 1:
            raise
        if size > MAX_PERIOD:
            raise NoCertificate(f"a period of {size}") from why
    return _in_classes(p, facts, size)


def _by_bound(p: Form, facts: Facts) -> ProvedVerdict | None:
    """A bound above that converges, or one below that diverges."""
    for above in (True, False):
        try:
            decision = _expanded(partial(_compared, p, above), facts)
        except (NoCertificate, Undecided):
            continue
        if decision.converges == above:
            return decision
    return None


def _compared(p: Form, above: bool, x: Expander) -> ProvedVerdict:
    """The verdict on a bound of the bias, and what follows where it lies on the right side."""
    finite, bias = _stripped(p, x, "p")
    if finite is None:
        raise NoCertificate("no waves where the bias is -oo from some point on")
    q, step = _bound(finite, above, x)
    decision = _climb(q, x, x.function(q))
    *steps, last = decision.proof
    rule = "upper_bound" if above else "lower_bound"
    return ProvedVerdict(
        decision.converges,
        (
            *steps,
            f"apply ({rule} {bias} {x.function(q)} 0).",
            f"{{ apply filter_imp with (2 := {step}). intros n ?. unfold p. lra. }}",
            last,
        ),
    )


def _bound(f: Form, above: bool, x: Expander) -> tuple[Form, str]:
    """A form without waves that lies above (or below) from some point on, and the name of the step
    that says so."""
    if not _has_waves(f):
        return f, f"(at_most_refl {x.function(f)})"
    if f.op in ("cos", "sin"):
        end = Form("number", (), S.One if above else S.NegativeOne)
        place = {("cos", True): 0, ("sin", True): 1, ("cos", False): 2, ("sin", False): 3}
        path = "proj1 " * (place[f.op, above] < 3)
        inner = f"(wave_at_most {x.function(f.args[0])})"
        for _ in range(place[f.op, above]):
            inner = f"(proj2 {inner})"
        return end, f"({path}{inner})"
    if f.op in ("plus", "minus"):
        a, first = _bound(f.args[0], above, x)
        b, second = _bound(f.args[1], above if f.op == "plus" else not above, x)
        by = f"apply at_most_{f.op}; [exact {first} | exact {second}]"
        combined = a.expr + b.expr if f.op == "plus" else a.expr - b.expr
        return _stated(f, Form(f.op, (a, b), combined), above, by, x)
    if f.op == "opp":
        a, inner = _bound(f.args[0], not above, x)
        return _stated(f, Form("opp", (a,), -a.expr), above, f"apply at_most_opp; exact {inner}", x)
    if f.op == "mult":
        a, b = f.args
        if _has_waves(a) and _has_waves(b):
            raise NoCertificate("a product of waves that is not negligible")
        factor, wave = (b, a) if _has_waves(a) else (a, b)
        fact, s = _sign(factor, x)
        other, inner = _bound(wave, above == (s > 0), x)
        rule = "at_most_mult" if s > 0 else "at_most_mult_opp"
        by = f"apply ({rule} {x.function(factor)}); [exact {fact} | exact {inner}]"
        pair = (other, factor) if factor is b else (factor, other)
        if factor is b:
            by = f"apply at_most_swap; {by}"
        return _stated(f, Form("mult", pair, factor.expr * other.expr), above, by, x)
    raise NoCertificate(f"{str(f.expr)[:60]} has waves that are not negligible")


def _has_waves(f: Form) -> bool:
    """Whether a wave that changes with the distance occurs."""
    return (f.op in ("cos", "sin") and not f.constant) or any(map(_has_waves, f.args))


def _stated(f: Form, g: Form, above: bool, by: str, x: Expander) -> tuple[Form, str]:
    """The bound g with the step that proves f below it, or above."""
    low, high = (f, g) if above else (g, f)
    return g, x.asserted("B", f"at_most {x.function(low)} {x.function(high)}", by)


def _sign(f: Form, x: Expander) -> tuple[str, int]:
    """The sign of a factor from some point on, and the step that says so."""
    if f.constant:
        s = sign(coefficient(f.expr))
        claim = f"0 < {f.show()}" if s > 0 else f"{f.show()} < 0"
        by = "exists 0%nat; intros; constant"
    else:
        name, _, s = x.lead(f)
        shown = f.show(x.index)
        claim = f"0 < {shown}" if s > 0 else f"{shown} < 0"
        rule = "eventually_positive" if s > 0 else "eventually_negative"
        by = f"apply ({rule} _ _ _ _ _ {name}); [led | constant]"
    return x.asserted("S", f"eventually (fun n : nat => {claim})", by), s


def _on_class(p: Form, facts: Facts, place: Period) -> ProvedVerdict:
    """The whole series, or one residue class."""
    return _expanded(
        lambda x: _climb(p, x, "p" if place is None else f"(fun n : nat => p ({x.index})%nat)"),
        facts,
        place,
    )


def _expanded(
    attempt: Callable[[Expander], ProvedVerdict], facts: Facts, place: Period = None
) -> ProvedVerdict:
    """Prove the verdict with as many terms as it takes, after the bounds of its constants."""
    for terms in ORDERS:
        current = Context(signs=known_signs(facts), order=terms)
        with deciding(current):
            try:
                found = attempt(Expander(place))
            except OrderTooLow:
                continue
        signs = {c: s for c, (s, _) in current.trace.items()}
        return ProvedVerdict(found.converges, (*facts_of(signs, facts), *found.proof))
    raise NoCertificate(f"no expansion of up to {ORDERS[-1]} terms decides it")


def _climb(p: Form, x: Expander, bias: str) -> ProvedVerdict:
    """The rungs that the engine climbs; `bias` is what the form is called."""
    finite, bias = _stripped(p, x, bias)
    if finite is None:
        return ProvedVerdict(True, tuple(x.steps))
    parts = list(x.parts(finite))
    g = add(*parts)
    decision, rest = bertrand_test_and_rest(-g)
    assert decision.fall is not None
    *ties, limit = decision.fall.limits
    level = len(ties)
    critical = [(iterated_log(k), fmpq(-1)) for k in range(1, level + 1)]
    left = Transseries([*critical, *(-rest).terms], g.remainder)
    if limit == 0:
        rule, ends = f"rest_diverges {bias} {level} _ _", "led"
    else:
        side = "right; split; [constant | same]" if limit.is_finite else INFINITE
        verb = "converges" if decision.converges else "diverges"
        rule, ends = f"lead_{verb} {bias} {level} _ _ _ _", f"led | {side}"
    raw = [m for part in parts for m, _ in part.terms]
    name = x.asserted("E", expanded(bias, left), f"unfold p; {adding_up(left, raw)}")
    return ProvedVerdict(decision.converges, (*x.steps, f"apply ({rule} {name}); [{ends}]."))


def _stripped(p: Form, x: Expander, bias: str) -> tuple[Form | None, str]:
    """What an extended bias is from some point on, and what that is called; None for -oo, whose
    verdict is proved by the steps."""
    if not is_extended(p.expr):
        return p, bias
    facts: list[str] = []
    finite = _finite_part(p, x, facts)
    value = "m_infty" if finite is None else f"Finite ({finite.show(x.index)})"
    place = "n" if x.period is None else f"({x.index})%nat"
    by = f"unfold p; pieces {together(facts)}"
    ends = x.asserted("P", f"eventually (fun n : nat => p {place} = {value})", by)
    if finite is None:
        x.steps.append(f"apply (extended_masked {bias} {ends}).")
        return None, bias
    x.steps.append(f"rewrite (extended_finite {bias} {x.function(finite)} {ends}).")
    return finite, x.function(finite)


def _finite_part(p: Form, x: Expander, facts: list[str]) -> Form | None:
    """What an extended bias is from some point on: None for -oo."""
    if p.op == "if":
        return _finite_part(x.branch(p, facts), x, facts)
    if p.op == "table":
        facts.append(x.last_entry(p))
        return _finite_part(p.args[-1], x, facts)
    if p.op == "total":
        parts = [_finite_part(a, x, facts) for a in p.args]
        if None in parts:
            return None
        a, b = (part for part in parts if part is not None)
        return Form("plus", (a, b), a.expr + b.expr)
    return p.args[0] if p.op == "finite" else None


def _in_classes(p: Form, facts: Facts, size: int) -> ProvedVerdict:
    """Split into residue classes: all must converge, or one diverge."""
    failure: Exception | None = None
    rule = "extended_classes" if is_extended(p.expr) else "converges_classes"
    lines: list[str] = []
    for r in range(size):
        try:
            decision = _on_class(p, facts, (size, r))
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
