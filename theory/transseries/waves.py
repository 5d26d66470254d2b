r"""Oscillating biases: what bounds and equidistribution decide, each rule with its proof.

Throughout rho = -p is a transseries with coefficients that oscillate. A rule that does not apply
raises `Undecided`; nothing is inferred from its failure. The last two rules are on a coefficient
`c + a sin(w n + phi)` with a > 0: one sinusoid of a linear phase. The number w is algebraic and not
0, or pi times an irrational algebraic number.

**Bounds.** Replace each oscillating coefficient by its upper (lower) bound. If the series of the
lower bound of rho converges, so does the series; if the upper bound's series diverges, so does this
one.

**Equidistribution.** For integers q > 0 and p, `|q w - 2 pi p| > C q^{-K}`: by Baker's theorem
(1975, Theorem 3.1) on a linear form in log(-1), or by Liouville's where w/pi is algebraic. So for
an integer 0 < h <= N^delta the mean of `exp(i h w n)`, a geometric series, is at most N^{-delta}
over any N consecutive n. By the inequality of Erdos and Turan the points w n mod 2 pi of any N
consecutive distances have discrepancy at most C N^{-delta'}.

**Average.** rho = h + m (lo + a (1 + sin)) with m -> oo and lo = c - a, the least value. h and m
are in a Hardy field and m, h = n^{o(1)}: their logarithms are o(log n). The integral of
`exp(-m a (1 + sin x))` over a period is between multiples of `m^{-1/2}`. Then sum exp(-rho)
converges iff sum exp(-(h + lo m + log(m)/2)) does. For over blocks [x, x + x^{1/2}] h and m change
by o(1), since h', m' = x^{-1+o(1)}. The function `exp(-m a (1 + sin x))` has values in [0, 1] and
two monotone pieces. By Koksma's inequality its mean over the block differs from its integral by at
most a constant times x^{-delta'/2} = o(m^{-1/2}). Where further coefficients oscillate they are
first replaced by bounds.

**Returns.** rho = h + m a (1 + sin(w n + phi)) with m = O(n^2) and h bounded above. By Khinchin
(1926) there are infinitely many n with w n within C/n of a zero modulo 2 pi. There the coefficient
is O(1/n^2), so rho stays bounded above, and the terms do not tend to 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import sympy
from flint import fmpq
from sympy import Expr

from farfield.theory.algebra.call_tree import traced
from farfield.theory.algebra.exceptions import OrderTooLow, Undecided
from farfield.theory.coefficients.exact import (
    Atom,
    Coefficient,
    coefficient,
    expand,
    oscillates,
    to_sympy,
)
from farfield.theory.coefficients.oscillation import amplitude, bounds, decompose
from farfield.theory.coefficients.signs import Context
from farfield.theory.functions.nodes import n
from farfield.theory.proofs import Decay, Decision, Step
from farfield.theory.transseries.arithmetic import (
    UNIT,
    Monomial,
    Transseries,
    compare,
    iterated_log,
    larger,
    log_of_monomial,
    normalised,
    size,
)
from farfield.theory.transseries.scale import StepValues, bertrand_test, term_expression

_rule = traced(1, lambda decision: decision.condition)


@_rule
def decide(rho: Transseries) -> Decision:
    """Decide sum exp(-rho) for a rho with oscillating coefficients: by the first rule that does."""
    rho = prepared(rho)
    if not any(oscillates(c) for _, c in rho.terms):
        return bertrand_test(rho)
    tried: dict[str, str] = {}
    more = False
    for name, rule in RULES.items():
        try:
            return rule(rho)
        except Undecided as why:
            tried[name] = str(why)
        except OrderTooLow:
            more = True
    if more:
        raise OrderTooLow
    undecided = Undecided("oscillation: " + "; ".join(dict.fromkeys(tried.values())))
    steps = [Step("tried", {"what": name, "why": why}) for name, why in tried.items()]
    undecided.steps = (*_expansion(rho), *steps)
    raise undecided


def prepared(rho: Transseries) -> Transseries:
    """The transseries without bounded oscillations: they do not matter."""
    terms, dropped = [], False
    for m, c in rho.terms:
        if oscillates(c) and size(m, rho.context) <= 0 and _is_bounded(c, rho.context):
            dropped = True
        else:
            terms.append((m, c))
    if dropped:
        return normalised(terms, larger(rho.remainder, UNIT, rho.context), rho.context)
    return rho.of(terms, rho.remainder)


def _is_bounded(c: Coefficient, context: Context) -> bool:
    """Whether the engine knows finite bounds of a coefficient."""
    try:
        return all(end.is_finite for end in bounds(c, context))
    except Undecided:
        return False


def _expansion(rho: Transseries) -> tuple[Step, ...]:
    """The expansion as a step, where each of its oscillations has a formula."""
    terms: list[tuple[Monomial, Coefficient]] = []
    for m, c in rho.terms:
        e = _written_out(c)
        if e is None or not all(type(s) is sympy.Symbol for s in e.free_symbols):
            return ()
        terms.append((m, coefficient(e)))
    return (Step("expansion", StepValues("rho", rho.of(terms, rho.remainder))),)


def _written_out(c: Coefficient) -> Expr | None:
    """The coefficient without bounded atoms, in n and parameters."""
    e = to_sympy(c)
    for _ in range(20):
        atoms = [s for s in e.free_symbols if isinstance(s, Atom)]
        if not atoms:
            break
        if any(s.meaning is None for s in atoms):
            return None
        e = e.xreplace({s: s.meaning for s in atoms})
    return e


# -- bounds ---------------------------------------------------------------------------------------


@_rule
def _bounds(rho: Transseries) -> Decision:
    """Each wave at its upper bound converges, or at its lower bound diverges: either decides."""
    reason = Undecided("the bounds of the oscillation leave the answer open")
    for side, rule, wanted in ((0, "upper bound", True), (1, "lower bound", False)):
        try:
            bound = bounded(rho, side)
            decision = bertrand_test(bound)
        except Undecided as why:
            reason = why
            continue
        if decision.converges is wanted:
            return decision.of_bound(Step(rule, StepValues("bound", -bound)))
    raise reason


def bounded(
    rho: Transseries, side: int, replaced: Mapping[int, Coefficient] | None = None
) -> Transseries:
    """The transseries with each oscillating coefficient replaced by its lower (0) or upper (1)
    bound, or by its own value in place j."""
    replaced = replaced or {}
    terms = [
        (m, replaced[j] if j in replaced else _bound(c, side, rho.context) if oscillates(c) else c)
        for j, (m, c) in enumerate(rho.terms)
    ]
    return normalised(terms, rho.remainder, rho.context)


def _bound(c: Coefficient, side: int, context: Context) -> Coefficient:
    """The lower (0) or upper (1) bound of a coefficient; Undecided where there is none."""
    end = bounds(c, context)[side]
    if end.is_infinite:
        raise Undecided("an oscillating coefficient is unbounded")
    return coefficient(end)


# -- one sinusoid of a linear phase ---------------------------------------------------------------


class LeadingWave(NamedTuple):
    """The first oscillating coefficient: one sinusoid of a linear phase.

    Fields:
        place: which term of the transseries it is the coefficient of.
        scale: the monomial of that term.
        phase: w n.
        least: the least value of the coefficient.
    """

    place: int
    scale: Monomial
    phase: Expr
    least: Coefficient

    def stated(self) -> dict[str, Any]:
        """What a step says of it."""
        return {"scale": term_expression(self.scale), "phase": self.phase}


def leading_wave(rho: Transseries) -> LeadingWave:
    """The first oscillating coefficient; Undecided where it is no sinusoid of a linear phase."""
    place, (m, c) = next((j, t) for j, t in enumerate(rho.terms) if oscillates(t[1]))
    centre, waves, others = decompose(to_sympy(c))
    if others or len(waves) != 1:
        raise Undecided("the oscillation is not one sinusoid")
    [(phase, parts)] = waves.items()
    w = expand(phase).coeff(n)
    if expand(phase - w * n) != 0 or not _fills_the_circle(w):
        raise Undecided("the phase of the oscillation is not linear, or may be periodic")
    height = amplitude(*parts)
    if rho.context.sign(coefficient(height)) <= 0:
        raise Undecided("an amplitude is 0")
    return LeadingWave(place, m, phase, coefficient(centre - height))


def _fills_the_circle(w: Expr) -> bool:
    """Whether w n modulo 2 pi is equidistributed by the rule's theorem."""
    turns = w / sympy.pi
    irrational = turns.is_algebraic and turns.is_rational is False
    return bool((w.is_algebraic and w.is_nonzero) or irrational)


@_rule
def _average(rho: Transseries) -> Decision:
    """By the rule *Average*."""
    wave = leading_wave(rho)
    m, context = wave.scale, rho.context
    if size(m, context) <= 0:
        raise Undecided("the oscillation has no growing factor")
    if not all(_subpolynomial(x, context) for x, _ in rho.terms if size(x, context) > 0):
        raise Undecided("p grows like a power of n")
    if rho.remainder is not None and size(rho.remainder, context) > 0:
        raise OrderTooLow
    for side, wanted in ((0, True), (1, False)):
        mean = bounded(rho, side, {wave.place: wave.least})
        mean = mean + log_of_monomial(m, context) * fmpq(1, 2)
        decision = bertrand_test(mean)
        if decision.converges is wanted:
            values = wave.stated() | {"infimum": to_sympy(wave.least)}
            return decision.of_bound(Step("average", {**StepValues("bound", mean), **values}))
    raise Undecided("further oscillations leave the average open")


def _subpolynomial(m: Monomial, context: Context) -> bool:
    """log m = o(log n)."""
    lead = log_of_monomial(m, context).leading()
    return lead is None or compare(lead[0], iterated_log(1), context) < 0


@_rule
def _returns(rho: Transseries) -> Decision:
    """By the rule *Returns*."""
    wave, context = leading_wave(rho), rho.context
    if context.sign(wave.least):
        raise Undecided("the infimum of the oscillation is not 0")
    if compare(wave.scale, Monomial((fmpq(2),)), context) > 0:
        raise Undecided("the oscillation does not return to 0 often enough")
    h = rho.of([t for j, t in enumerate(rho.terms) if j != wave.place], rho.remainder)
    if any(oscillates(c) for _, c in h.terms) or not _bounded_above(h):
        raise Undecided("what else p consists of is not bounded below")
    steps = Step("returns", wave.stated()), Step("term test", {})
    return Decision(False, steps, decay=Decay())


def _bounded_above(h: Transseries) -> bool:
    """Whether a transseries has a finite upper limit, by its growing terms."""
    if h.remainder is not None and size(h.remainder, h.context) > 0:
        raise OrderTooLow
    lead = h.of([t for t in h.terms if size(t[0], h.context) > 0]).leading()
    return lead is None or h.context.sign(lead[1]) < 0


RULES: dict[str, Callable[[Transseries], Decision]] = {
    "bounds of the oscillation": _bounds,
    "the average over the phase": _average,
    "returns to 0": _returns,
}
