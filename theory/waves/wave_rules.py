r"""Oscillating biases: what bounds and equidistribution decide, each rule with its proof.

Throughout rho = -p is a transseries with coefficients that oscillate. A rule that does not apply
raises `Undecided`; nothing is inferred from its failure.

**Bounds.** Replace each oscillating coefficient by its upper (lower) bound. If the series of the
lower bound of rho converges, so does the series; if that of the upper bound diverges, so does it.

**Phases.** A coefficient that oscillates is `c + f_1(P_1) + ... + f_d(P_d)` with functions f_j of
period 2 pi and independent phases P_j. They are polynomials in n, or a single slow phase.
Module `phases` proves that polynomials are equidistributed over N consecutive distances, wherever
these begin, with an error of N^{-delta}. The f_j are analytic but for finitely many corners and
jumps, so they have finitely many monotone pieces; module `extrema` bounds them and finds their
infima.

**Infimum.** Polynomial phases. Every box of the torus is visited with bounded gaps. If a
function of the phases is at most v on a box, it is so on a set S of distances with gaps of at most
G. On S, rho <= R, the transseries with v for the coefficient. R lies in a Hardy field, so exp(-R)
is eventually monotone: if it does not tend to 0, infinitely many terms of S are bounded below. If
it decreases, the sum over S is at least 1/G of the full sum up to a constant. So if sum exp(-R)
diverges, the series diverges. Near a minimum, v is any number above the infimum; on an arc where f
is constant, its value.

**Very slow phase.** f(g) with one phase g in a Hardy field, g -> oo, g = o(log n). Where g grows by
a given amount from x to y, y/x -> oo as x grows. So the n with f(g) <= v, where f <= v on an arc,
contain intervals [x, 2x] with x as large as one likes. If R = log n + O(1) or less there, each adds
at least a positive constant to the sum: the series diverges. Let m be the growing factor of f and e
the order of a minimum. Then inf f may take the place of v if `m = n^{o(1)}` and
`m^{1/e} g = O(log n)`. As a function of log n, `g' = O(g/log n)`. So on [x, 2x] or [x/2, x], with f
minimal at g(x), the phase moves by O(m^{-1/e}) and m (f - inf f) = O(1).

**Average.** rho = h + m f with m -> oo, f as under Phases with infimum lo. h and m are in a Hardy
field and m, h = n^{o(1)}: their logarithms are o(log n). Let e_j be the largest order of a minimum
of f_j, so that `int exp(-m (f_j - inf f_j))` is between multiples of `m^{-1/e_j}`. Let kappa = sum
1/e_j. Then sum exp(-rho) converges iff sum exp(-(h + lo m + kappa log m)) does. *Polynomial
phases.* Over blocks [x, x + x^{1/2}] h and m change by o(1), since h', m' = x^{-1+o(1)}. The
function `exp(-m (f - lo))` is a product of functions of one angle, with values in [0, 1] and
boundedly many monotone pieces. So it is of bounded variation in the sense of Hardy and Krause. By
Koksma's inequality its mean over the block differs from its integral by at most a constant times
x^{-delta/2} = o(m^{-kappa}). *One phase g in a Hardy field, `log n = O(g)`, `g <= n^{b + o(1)}`, b
< 1. Either `g = n^{a + o(1)}` with a > 0, or rho = O(log n).* A period around x has length
O(1/g'(x)). In the first case this is n^{1 - a + o(1)} and h', m' = n^{-1 + o(1)}. In the second it
is O(x) and h', m' = O(1/x): over a period h and m change by O(1). The points g(n) have spacing `g'
= n^{b - 1 + o(1)} = o(m^{-kappa})`. So the mean, a Riemann sum of a function of bounded variation,
is the same integral up to constant factors. Where further coefficients oscillate they are first
replaced by bounds.

**Returns.** rho = h + m f(w n) with inf f = 0 and f = O(|x - x*|^e) near some x*. The phase is
linear and w/(2 pi) irrational, m = O(n^e), h bounded above. By Khinchin (1926) there are infinitely
many n with ||(w n - x*)/(2 pi)|| < 1/n. There m f = O(1), rho stays bounded above, and the terms
do not tend to 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import sympy
from flint import fmpq

from farfield.theory.algebra import door
from farfield.theory.algebra.call_tree import traced
from farfield.theory.algebra.exceptions import OrderTooLow, Undecided
from farfield.theory.coefficients.exact import (
    Coefficient,
    coefficient,
    oscillates,
    to_sympy,
)
from farfield.theory.coefficients.oscillation import bounds, harmonics
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
    monomial,
    normalised,
    size,
)
from farfield.theory.transseries.scale import as_step_values, bertrand_test, monomial_expression
from farfield.theory.waves.leading_wave import (
    LeadingWave,
    leading_wave,
    subpolynomial,
    suits_average,
    very_slow_lead,
    written_out,
)

MARGINS = (fmpq(1, 1000), fmpq(1, 10**8))
GAPS = (fmpq(1, 50), fmpq(1, 5000))


def prepared(rho: Transseries) -> Transseries:
    """The transseries in harmonics, without bounded oscillations: they do not matter."""
    terms, dropped = [], False
    for m, c in rho.terms:
        if oscillates(c):
            plain = coefficient(harmonics(to_sympy(c)))
            c = c if oscillates(plain) else plain
        if oscillates(c) and size(m, rho.context) <= 0 and _is_bounded(c, rho.context):
            dropped = True
        elif c:
            terms.append((m, c))
    if dropped:
        return normalised(terms, larger(rho.remainder, UNIT, rho.context), rho.context)
    return rho.of(terms, rho.remainder)


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


def _expansion(rho: Transseries) -> tuple[Step, ...]:
    """The expansion as a step, where each of its oscillations has a formula."""
    terms: list[tuple[Monomial, Coefficient]] = []
    for m, c in rho.terms:
        e = written_out(c)
        if e is None or not all(type(s) is sympy.Symbol for s in e.free_symbols):
            return ()
        terms.append((m, coefficient(e)))
    return (Step("expansion", as_step_values("rho", rho.of(terms, rho.remainder))),)


def _is_bounded(c: Coefficient, context: Context) -> bool:
    """Whether the engine knows finite bounds of a coefficient."""
    try:
        return all(end.is_finite for end in bounds(c, context))
    except Undecided:
        return False


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


def concluded(bound: Transseries, wanted: bool, rule: str, **values: object) -> Decision:
    """By a bound of rho, if its series converges, or diverges, as wanted."""
    decision = bertrand_test(bound)
    if decision.converges is not wanted:
        raise Undecided(_OTHERWISE[wanted])
    return decision.of_bound(Step(rule, as_step_values("bound", -bound) | values))


_OTHERWISE = {
    True: "the lower bound of the oscillation does not make it converge",
    False: "near its extreme the oscillation does not make it diverge",
}


@_rule
def _bounds(rho: Transseries) -> Decision:
    """Each wave at its upper bound converges, or at its lower bound diverges: either decides."""

    def attempt(side: int, rule: str) -> Decision:
        return concluded(bounded(rho, side), side == 0, rule)

    return first_decision([partial(attempt, 0, "upper bound"), partial(attempt, 1, "lower bound")])


def first_decision(attempts: Iterable[Callable[[], Decision]]) -> Decision:
    """The first of some attempts that decides."""
    reason = Undecided("nothing applies")
    for attempt in attempts:
        try:
            return attempt()
        except Undecided as why:
            reason = why
    raise reason


def gaps(wave: LeadingWave) -> tuple[fmpq, ...]:
    """How near to the infimum the coefficient is taken."""
    return GAPS if wave.functions else MARGINS


@_rule
def _range(rho: Transseries) -> Decision:
    """Converges if it does with a lower bound of the coefficient that balls find."""
    wave = leading_wave(rho)

    def attempt(gap: fmpq) -> Decision:
        return concluded(bounded(rho, 0, {wave.index: wave.below(gap)}), True, "upper bound")

    return first_decision(partial(attempt, gap) for gap in GAPS)


@_rule
def _infimum(rho: Transseries) -> Decision:
    """Sum only the n at which the coefficient is within `gap` of its infimum; if that sum
    diverges, the series does."""
    wave = leading_wave(rho)
    if not wave.polynomial:
        raise Undecided("the phase is no polynomial")

    def attempt(gap: fmpq) -> Decision:
        upper = bounded(rho, 1, {wave.index: wave.near(gap)})
        return concluded(upper, False, "infimum", **wave.stated())

    return first_decision(partial(attempt, gap) for gap in gaps(wave))


def on_intervals(upper: Transseries, wave: LeadingWave) -> Decision:
    """Diverges if this bound near the infimum of a very slow wave is log n + O(1) at most:
    intervals [x, 2x] then add a positive constant each."""
    if not _bounded_above(upper + monomial(iterated_log(1), upper.context) * fmpq(-1)):
        raise Undecided(_OTHERWISE[False])
    values = as_step_values("bound", -upper) | wave.stated()
    return Decision(False, (Step("very slow phase", values),))


@_rule
def _very_slow_phase(rho: Transseries) -> Decision:
    """So slow that the intervals near the infimum have a series of their own that diverges."""
    wave = leading_wave(rho)
    if wave.polynomial:
        raise Undecided("the phase is not very slow")
    context = rho.context
    top = very_slow_lead(wave.phases[0], context)

    def attempt(value: Coefficient) -> Decision:
        return on_intervals(bounded(rho, 1, {wave.index: value}), wave)

    def at_infimum() -> Decision:
        low, kappa, _ = wave.infimum(context)
        moved = (wave.scale**kappa).times(top, context)
        moved = moved.times(iterated_log(1) ** fmpq(-1), context)
        if size(moved, context) > 0 or not subpolynomial(wave.scale, context):
            raise Undecided("the phase moves too far on an interval")
        return attempt(low)

    near = (lambda gap=gap: attempt(wave.near(gap)) for gap in gaps(wave))
    return first_decision([*near, at_infimum])


@_rule
def _average(rho: Transseries) -> Decision:
    """By the rule *Average*."""
    wave = leading_wave(rho)
    m, context = wave.scale, rho.context
    if size(m, context) <= 0:
        raise Undecided("the oscillation has no growing factor")
    if not all(subpolynomial(x, context) for x, _ in rho.terms if size(x, context) > 0):
        raise Undecided("p grows like a power of n")
    if rho.remainder is not None and size(rho.remainder, context) > 0:
        raise OrderTooLow
    if not wave.polynomial and not suits_average(wave.phases[0], rho):
        raise Undecided("the phase is not known to be equidistributed")
    low, kappa, _ = wave.infimum(context)
    values = {"scale": monomial_expression(m), "order": to_sympy(kappa), "infimum": to_sympy(low)}
    values |= wave.stated()
    several = sum(oscillates(c) for _, c in rho.terms) > 1
    for side, wanted in ((0, True), (1, False)):
        lower = bounded(rho, side, {wave.index: low})
        mean = lower + log_of_monomial(m, context) * kappa
        decision = bertrand_test(mean)
        if decision.converges is wanted or not several:
            return decision.of_bound(Step("average", as_step_values("bound", mean) | values))
    raise Undecided("further oscillations leave the average open")


def _bounded_above(h: Transseries) -> bool:
    """Whether a transseries has a finite upper limit, by its growing terms."""
    if h.remainder is not None and size(h.remainder, h.context) > 0:
        raise OrderTooLow
    lead = h.of([t for t in h.terms if size(t[0], h.context) > 0]).leading()
    return lead is None or h.context.sign(lead[1]) < 0


@_rule
def _returns(rho: Transseries) -> Decision:
    """By the rule *Returns*."""
    wave = leading_wave(rho)
    phase = wave.phases[0]
    if len(wave.phases) > 1 or not wave.polynomial or door.degree(phase, n) != 1:
        raise Undecided("Khinchin's theorem speaks of one linear phase")
    context = rho.context
    low, _, order = wave.infimum(context)
    if context.sign(low):
        raise Undecided("the infimum of the oscillation is not 0")
    if compare(wave.scale, Monomial((fmpq(order),)), context) > 0:
        raise Undecided("the oscillation does not return to 0 often enough")
    h = rho.of([t for j, t in enumerate(rho.terms) if j != wave.index], rho.remainder)
    if any(oscillates(c) for _, c in h.terms) or not _bounded_above(h):
        raise Undecided("what else p consists of is not bounded below")
    values = {"scale": monomial_expression(wave.scale), "order": order} | wave.stated()
    return Decision(False, (Step("returns", values), Step("term test", {})), decay=Decay())


RULES: dict[str, Callable[[Transseries], Decision]] = {
    "bounds of the oscillation": _bounds,
    "distances near the infimum": _infimum,
    "intervals of a very slow phase": _very_slow_phase,
    "the range of the oscillation": _range,
    "the average over the phase": _average,
    "returns to 0": _returns,
}
