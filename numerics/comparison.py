r"""Comparing two tails: which is lighter, and from which eps on its receptive field is smaller.

With u_j = T_j/B of `a` and v_j = T_j/B of `b`, TRF_a(eps) <= TRF_b(eps) for every eps up to

    eps* = min { v_j : u_j > v_j }    (1 if there is none),

and for no eps just above it (ours). Let a be lighter. Beyond some M every j has u_j <= v_j: from
a_t/A <= b_t/B for all t >= M. That M is certified by a majorant of p_a - p_b + log(B_b/B_a), the
j below it are compared by balls, from the far end, where the first j with u_j > v_j gives eps*.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import sympy
from flint import acb, arb, fmpq
from sympy import Expr, S

from farfield.numerics.enclosures.tails import UNIT, TailEnclosure, Unproved, level, tail_enclosure
from farfield.numerics.outcomes import Unreachable, Unrecognised
from farfield.numerics.receptive_field import at_precision, resolve, verdict_of
from farfield.numerics.summation.analytic import beyond, read_bias
from farfield.numerics.summation.series import Series, series
from farfield.theory.decision.differences import limit_of_difference
from farfield.theory.functions.balls import Undefined, precision, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.proofs import Proof, Step
from farfield.theory.results import InputError, Result

BITS = 192
MAX_INDEX = 400_000
MAX_DOUBLINGS = 22


@dataclass(frozen=True)
class Comparison(Result):
    """Two tails compared.

    Fields:
        formulas: the two biases, a and b.
        lighter: "a" or "b", "neither" where the tails are equal; None where the test says nothing.
        limit: lim (p_a - p_b).
        crossover: eps*, up to which the lighter one has the smaller TRF, as a float.
        enclosure: floats around eps*.
        index: the last j with u_j > v_j, None if there is none (then eps* = 1).
        proof: what carried the decision.
        reason: why something is None.
        label: `certified`.
    """

    formulas: tuple[Expr, Expr]
    lighter: str | None
    limit: Expr | None = None
    crossover: float | None = None
    enclosure: tuple[float, float] | None = None
    index: int | None = None
    proof: Proof = field(default_factory=lambda: Proof(""))
    reason: str = ""
    label: str = "certified"

    def text(self) -> str:
        a, b = self.formulas
        lines = [f"a: p(n) = {a}", f"b: p(n) = {b}"]
        if self.lighter is None:
            return "\n".join([*lines, f"lighter tail: unknown ({self.reason})"])
        lines.append(f"lighter tail: {self.lighter}  [{self.label}]")
        if self.crossover is not None:
            where = "at every j" if self.index is None else f"from j = {self.index + 1} on"
            lines.append(
                f"its receptive field is the smaller one for all eps <= {self.crossover:.10g}: "
                f"its T_j/B is, {where}"
            )
        if self.reason:
            lines.append(f"  {self.reason}")
        return "\n".join([*lines, "proof:", self.proof.text()])


def compare_tails(
    a: Any, b: Any, *, values_a: dict[str, Any] | None = None,
    values_b: dict[str, Any] | None = None,
) -> Comparison:  # fmt: skip
    """Decide which of two biases has the lighter tail [Q, Theorem 0.5], with the crossover (ours).

    Args:
        a: a formula in `n`, a SymPy expression, a name of the catalogue or an `Encoding`, of one
            head (of several: take `.head(h)`).
        b: the other one.
        values_a: parameters and options of `a`.
        values_b: parameters and options of `b`.

    Raises:
        InputError: several heads; a series that diverges or is undecided; free parameters.

    >>> result = compare_tails("-(log(1+n))^2", "-2*log(1+n)")
    >>> result.lighter, round(result.crossover, 10)
    ('a', 0.2400911227)
    """
    p, q = (_single(f, v or {}, name) for f, v, name in ((a, values_a, "a"), (b, values_b, "b")))
    left, right = _convergent(p, "a"), _convergent(q, "b")
    steps = [Step("compared", {"a": p, "b": q})]
    finite, gap = _by_support(left, right), sympy.expand(p - q)
    if not gap.has(n):
        steps.append(Step("difference", {"limit": gap}))
        proof = Proof("the terms are proportional: equal receptive fields", tuple(steps))
        return Comparison((p, q), "neither", gap, proof=proof)
    if finite is not None:
        limit, lighter = (-S.Infinity if finite == "a" else S.Infinity), finite
        steps.append(Step("supports", {"a": str(left.support), "b": str(right.support)}))
        if finite == "neither":
            limit = S.Zero
    else:
        limit = limit_of_difference(p, q)
        if limit is None:
            return _unknown(p, q, steps, "p_a - p_b has no limit, or none that is decided")
        steps.append(Step("difference", {"limit": limit}))
        lighter = {S.NegativeInfinity: "a", S.Infinity: "b"}.get(limit, "")
        if not lighter:
            found = _by_sums(left, right, limit)
            if found is None:
                return _unknown(
                    p, q, steps, "the terms agree in the limit, to all digits tried: ratio 1", limit
                )
            lighter = found
            steps.append(Step("ratio", {"limit": limit, "relation": "<" if found == "a" else ">"}))
    return _with_crossover(p, q, left, right, lighter, limit, steps)


def _unknown(
    p: Expr, q: Expr, steps: list[Step], reason: str, limit: Expr | None = None
) -> Comparison:
    proof = Proof("nothing follows from this test", tuple(steps))
    return Comparison((p, q), None, limit, proof=proof, reason=reason)


def _single(f: Any, values: dict[str, Any], name: str) -> Expr:
    subject = resolve(f, values)
    kinds = tuple(dict.fromkeys(subject.biases))
    if subject.bca is not None or not kinds:
        raise InputError(f"{name} has no additive bias that is a function of the distance alone")
    if len(kinds) > 1:
        raise InputError(
            f"{name} has {len(kinds)} different heads: choose one, as f.head(1), or "
            f"write its formula, as {kinds[0]}"
        )
    return kinds[0]


def _convergent(p: Expr, name: str) -> Series:
    s = series(p)
    verdict, reason = verdict_of(s)
    if reason:
        raise InputError(f"{name} has no tail to compare ({verdict}): {reason}")
    return s


def _by_support(a: Series, b: Series) -> str | None:
    if a.support is None and b.support is None:
        return None
    if a.support == b.support:
        return "neither"
    return "a" if a.support is not None and a.support < (b.support or a.support + 1) else "b"


def _by_sums(a: Series, b: Series, x: Expr) -> str | None:
    """Whether e^x B_b/B_a is below 1 ("a") or above."""
    from farfield.numerics.summation.families import number

    for bits in (128, 512):
        with precision(bits):
            ratio = number(x).exp() * to_arb(b.total()) / to_arb(a.total())
            if ratio < 1:
                return "a"
            if ratio > 1:
                return "b"
    return None


def _with_crossover(
    p: Expr, q: Expr, left: Series, right: Series, lighter: str, limit: Expr, steps: list[Step]
) -> Comparison:
    formulas = (p, q)
    claim = f"{lighter} has the lighter tail" if lighter != "neither" else "equal supports"
    if lighter == "neither":
        return Comparison(formulas, lighter, limit, proof=Proof(claim, tuple(steps)))
    light, heavy = (left, right) if lighter == "a" else (right, left)
    try:
        m = _settled(light, heavy)
        index, crossover = _last_against(light, heavy, m)
    except (Unreachable, Unrecognised, Undefined) as why:
        reason = f"the crossover was not located: {why}"
        return Comparison(formulas, lighter, limit, proof=Proof(claim, tuple(steps)), reason=reason)
    steps.append(Step("dominated", {"index": m}))
    steps.append(Step("crossover", {"index": "none" if index is None else index}))
    low, high = float(crossover.lower()), float(crossover.upper())
    return Comparison(
        formulas, lighter, limit, float(crossover.mid()), (low, high), index,
        Proof(f"{claim}; its receptive field is the smaller one for all eps up to eps*",
              tuple(steps)),
    )  # fmt: skip


def _settled(light: Series, heavy: Series) -> int:
    """An M with a_t/A <= b_t/B for all t >= M, a the light one."""
    if light.support is not None:
        return light.support
    start = max(light.last.start, heavy.last.start, 2)
    difference = read_bias(light.last.bias - heavy.last.bias)
    ratio = at_precision(lambda: to_arb(heavy.total()).log() - to_arb(light.total()).log(), BITS)
    for k in range(MAX_DOUBLINGS):
        m = start << k
        with precision(128):
            where = beyond(arb(m).log())
            try:
                variable = TailEnclosure(where, {level(1): fmpq(1)})
                shift = TailEnclosure(where, {UNIT: acb(to_arb(ratio))})
                if (tail_enclosure(difference.in_s, difference.s, variable) + shift).negative():
                    return m
            except Unproved:
                continue
    raise Unreachable("no point is proved beyond which the terms keep their order")


def _last_against(light: Series, heavy: Series, m: int) -> tuple[int | None, arb]:
    """The last j < m with u_j > v_j, and eps* = min { v_j : u_j > v_j } = v at that j.

    v falls as j grows, so the last such j has the least v_j.
    """
    if m > MAX_INDEX:
        raise Unreachable(f"{m} terms would have to be compared one by one")
    with precision(BITS):
        a, b = to_arb(light.total()), to_arb(heavy.total())
        u, v = to_arb(light.tail(m)) / a, to_arb(heavy.tail(m)) / b
        for j in range(m - 1, 0, -1):
            u += to_arb(light.term(j)) / a
            v += to_arb(heavy.term(j)) / b
            if u > v:
                return j, v
            if not u <= v:
                raise Unreachable(f"the tails agree at {j} to all digits tried")
    return None, arb(1)
