"""From an expansion of the bias to the proof of its verdict: the rungs, the residue classes, -oo."""

from __future__ import annotations

from dataclasses import dataclass

from sympy import S

from farfield.theory.certificates.bounds import bound, has_waves
from farfield.theory.certificates.expansions import (
    Expander,
    Germ,
    NeedMore,
    adding_up,
    conjunction,
    listed,
    order,
    unit,
)
from farfield.theory.certificates.forms import Form, NoCertificate
from farfield.theory.certificates.periods import period
from farfield.theory.certificates.signs import Signs

ORDERS = (0, 1, 2, 3, 4, 6, 8)
MAX_PERIOD = 48


@dataclass(frozen=True)
class Decision:
    """Whether the series converges, and the sentences that prove it."""

    converges: bool
    proof: tuple[str, ...]


def decide(p: Form, signs: Signs) -> Decision:
    """Decide the exp-series of a bias, on one cell of the parameters.

    Raises:
        Fork: the answer depends on the parameters.
        NoCertificate: none is known for this form.
    """
    try:
        return _on_class(p, signs, None)
    except NoCertificate as why:
        if has_waves(p) and (decision := _by_bound(p, signs)) is not None:
            return decision
        size = period(p)
        if size == 1:
            raise
        if size > MAX_PERIOD:
            raise NoCertificate(f"a period of {size}") from why
    return _in_classes(p, signs, size)


def _by_bound(p: Form, signs: Signs) -> Decision | None:
    """A bound above that converges, or one below that diverges."""
    for above in (True, False):
        for terms in ORDERS:
            x = Expander(signs, terms)
            try:
                q, step = bound(p, above, x)
                decision = _climb(q, x, f"(fun n : nat => {q.show()})")
            except NeedMore:
                continue
            except NoCertificate:
                break
            if decision.converges == above:
                rule = "upper_bound" if above else "lower_bound"
                *steps, last = decision.proof
                ends = "lra" if above else "lra"
                return Decision(above, (
                    *steps, f"apply ({rule} p (fun n : nat => {q.show()}) 0).",
                    f"{{ apply filter_imp with (2 := {step}). intros n ?. unfold p. {ends}. }}", last,
                ))  # fmt: skip
            break
    return None


def _on_class(p: Form, signs: Signs, place: tuple[int, int] | None) -> Decision:
    """The whole series, or one residue class of it: more terms until they decide."""
    for terms in ORDERS:
        index = "n" if place is None else f"{place[0]} * n + {place[1]}"
        try:
            return _climb(p, Expander(signs, terms, index, place))
        except NeedMore:
            continue
    raise NoCertificate(f"no expansion of up to {ORDERS[-1]} terms decides it")


def _climb(p: Form, x: Expander, bias: str = "p") -> Decision:
    """Climb the rungs of the ladder; `bias` is what the form is called."""
    opening: list[str] = []
    if x.period is not None:
        bias = f"(fun n : nat => p ({x.index})%nat)"
    if p.op in ("finite", "masked", "if", "total", "table") and _extended(p):
        facts: list[str] = []
        finite = _finite_part(p, x, facts)
        value = "m_infty" if finite is None else f"Finite ({finite.show(x.index)})"
        place = "n" if x.period is None else f"({x.index})%nat"
        by = f"pieces {conjunction(facts)}" if facts else "exists 0%nat; intros; reflexivity"
        opening = [*x.steps, (
            f"assert (P : eventually (fun n : nat => p {place} = {value}))\n  by (unfold p; {by})."
        )]  # fmt: skip
        x.steps = []
        if finite is None:
            return Decision(True, (*opening, f"apply (extended_masked {bias} P)."))
        shown = f"(fun n : nat => {finite.show(x.index)})"
        opening.append(f"rewrite (extended_finite {bias} {shown} P).")
        bias, p = shown, finite
    germ, cancelled = x.linear(p)
    passed, terms = 0, list(germ.terms)
    while True:
        growth = x.compare(terms[passed][1], unit(passed)) if passed < len(terms) else -1
        if growth < 0:
            if germ.rest is not None and x.compare(germ.rest, unit(passed)) >= 0:
                raise NeedMore
            converges, rule, side = False, f"rest_diverges {bias} {passed} _ _", "led"
            break
        c, e = terms[passed]
        if x.signs.sign(c) == 0:
            cancelled.append(e)
            del terms[passed]
            continue
        if s := x.signs.sign(c) if growth > 0 else x.signs.sign(c + 1):
            converges = s < 0
            rule = f"lead_{'converges' if converges else 'diverges'} {bias} {passed} _ _ _ _"
            way = "left; split; [constant | less]" if growth > 0 else "right; split; [constant | same]"
            side = f"led | {way}"
            break
        terms[passed] = (S.NegativeOne, unit(passed))
        passed += 1
    final = Germ(tuple(terms), germ.rest)
    steps = (
        *opening, *x.steps,
        f"assert (E : expands {bias} {listed(final.terms)} {order(final.rest)})\n"
        f"  by (unfold p; {adding_up(cancelled)}).",
        f"apply ({rule} E); [{side}].",
    )  # fmt: skip
    return Decision(converges, steps)


def _extended(p: Form) -> bool:
    return p.op in ("finite", "masked", "total") or any(map(_extended, p.args))


def _finite_part(p: Form, x: Expander, facts: list[str]) -> Form | None:
    """What an extended bias is from some point on: None for -oo."""
    if p.op == "if":
        return _finite_part(x.branch(p, facts), x, facts)
    if p.op == "table":
        facts.append(x.table_fact(p))
        return _finite_part(p.args[-1], x, facts)
    if p.op == "total":
        parts = [_finite_part(a, x, facts) for a in p.args]
        if None in parts:
            return None
        a, b = (part for part in parts if part is not None)
        return Form("plus", (a, b), a.expr + b.expr)
    return p.args[0] if p.op == "finite" else None


def _in_classes(p: Form, signs: Signs, size: int) -> Decision:
    """Split into residue classes: all must converge, or one diverge."""
    found: list[tuple[int, Decision]] = []
    failure: NoCertificate | None = None
    rule = "extended_classes" if _extended(p) else "converges_classes"
    for r in range(size):
        try:
            decision = _on_class(p, signs, (size, r))
        except NoCertificate as why:
            failure = failure or why
            continue
        claim = f"ex_series (fun n : nat => exp (p ({size} * n + {r})%nat))"
        if not decision.converges:
            return Decision(False, (
                f"assert (C : ~ {claim}).", *_nested(decision.proof),
                f"intros X. apply C. apply ({rule} p {size}); [lia | exact X | lia].",
            ))  # fmt: skip
        found.append((r, decision))
    if failure is not None:
        raise failure
    lines: list[str] = []
    for r, decision in found:
        claim = f"ex_series (fun n : nat => exp (p ({size} * n + {r})%nat))"
        lines += [f"assert (C{r} : {claim}).", *_nested(decision.proof)]
    pattern = "r"
    for _ in range(size):
        pattern = f"[|{pattern}]"
    ends = " | ".join(f"exact C{r}" for r in range(size))
    lines += [
        f"apply ({rule} p {size}); [lia | intros r Hr].",
        f"destruct r as {pattern}; [{ends} | lia].",
    ]
    return Decision(True, tuple(lines))


def _nested(proof: tuple[str, ...]) -> tuple[str, ...]:
    """A proof in braces, indented."""
    body = [line.replace("\n", "\n  ") for line in proof]
    return (f"{{ {body[0]}", *(f"  {line}" for line in body[1:-1]), f"  {body[-1]} }}") if len(
        body
    ) > 1 else (f"{{ {body[0]} }}",)
