r"""Oscillating biases: what recurrence and equidistribution decide, each rule with its proof.

Throughout rho = -p is a transseries with coefficients that oscillate. A rule that does not apply
raises `Undecided`; nothing is inferred from its failure.

**Bounds.** Replace each oscillating coefficient by its upper (lower) bound. If the series of the
lower bound of rho converges, so does the series; if that of the upper bound diverges, so does it.

**Recurrence.** Let the oscillating coefficients be continuous at the point in question and built
from finitely many sin and cos of `w n + phi`. The rotation of a torus by the w's is an isometry,
so returns to a neighbourhood of any point of an orbit have bounded gaps (Bohr). Hence for every
integer n0 and eps > 0 all coefficients are within eps of their values at n0 on a set S with gaps
at most G. On S, rho <= R, the transseries with these values plus eps. R lies in a Hardy field, so
exp(-R) is eventually monotone: if it does not tend to 0, infinitely many terms of S are bounded
below; if it decreases, the sum over S is at least 1/G of the full sum up to a constant. So if
sum exp(-R) diverges, the series diverges.

**Phases.** A coefficient that oscillates is `c + f_1(P_1) + ... + f_d(P_d)` with functions f_j of
period 2 pi and independent phases P_j: polynomials in n (module `phases`, which proves that they
are equidistributed over N consecutive distances, wherever these begin, with an error of
N^{-delta}), or a single slow phase. The f_j are analytic but for finitely many corners and jumps,
so they have finitely many monotone pieces; module `extrema` bounds them and finds their infima.

**Infimum.** Polynomial phases. If a function of them is at most v on a box of the torus, it is so
on a set S of distances with bounded gaps, since every box is visited with bounded gaps. On S,
rho <= R, the transseries with v for the coefficient, and one concludes as for recurrence. Near a
minimum, v is any number above the infimum; on an arc where f is constant, its value.

**Slow phase.** f(g) with one phase g in a Hardy field, g/log n -> c in (0, oo], g = o(n), and
rho = O(log n). The n with f(g) <= v, where f <= v on an arc, fill in each period of g an interval
that holds a fixed share of it (g' varies slowly over a period when g/log n -> oo; when
g ~ c log n the period is [x, e^{2 pi/c} x (1 + o(1))]). As rho = O(log n) in a Hardy field,
rho' = O(1/n) and R changes by O(1) over a period, so the blocks carry a fixed share of the sum of
exp(-R): if that diverges, the series diverges.

**Very slow phase.** f(g) with one phase g in a Hardy field, g -> oo, g = o(log n). Where g grows by
a given amount from x to y, y/x -> oo as x grows; so the n with f(g) <= v, where f <= v on an arc,
contain intervals [x, 2x] with x as large as one likes. If R = log n + O(1) or less there, each adds
at least a positive constant to the sum: the series diverges. With m the growing factor of f and e
the order of a minimum, inf f may stand for v if m = n^{o(1)} and m^{1/e} g = O(log n): as a
function of log n, g' = O(g/log n), so on [x, 2x] or [x/2, x] with f minimal at g(x) the phase moves
by O(m^{-1/e}) and m (f - inf f) = O(1).

**Average.** rho = h + m f with m -> oo, f as under Phases with infimum lo, h and m in a Hardy field
and m, h = n^{o(1)} (their logarithms are o(log n)). Let e_j be the largest order of a minimum of
f_j, so that int exp(-m (f_j - inf f_j)) is between multiples of m^{-1/e_j}, and let
kappa = sum 1/e_j. Then sum exp(-rho) converges iff sum exp(-(h + lo m + kappa log m)) does.
*Polynomial phases.* Over blocks [x, x + x^{1/2}] h and m change by o(1), since
h', m' = x^{-1+o(1)}. The function exp(-m (f - lo)) is a product of functions of one angle with
values in [0, 1] and boundedly many monotone pieces, so of bounded variation in the sense of Hardy
and Krause; by Koksma's inequality its mean over the block differs from its integral by at most a
constant times x^{-delta/2} = o(m^{-kappa}).
*One phase g in a Hardy field with log n = O(g), g <= n^{b + o(1)}, b < 1, and either
g = n^{a + o(1)}, a > 0, or rho = O(log n).* A period around x has length O(1/g'(x)). In the first
case this is n^{1 - a + o(1)} and h', m' = n^{-1 + o(1)}; in the second it is O(x) and
h', m' = O(1/x): over a period h and m change by O(1). The points g(n) have spacing
g' = n^{b - 1 + o(1)} = o(m^{-kappa}), so the mean, a Riemann sum of a function of bounded
variation, is the same integral up to constant factors.
Where further coefficients oscillate they are first replaced by bounds.

**Returns.** rho = h + m f(w n) with inf f = 0 and f = O(|x - x*|^e) near some x*, the phase
linear and w/(2 pi) irrational, m = O(n^e), h bounded above. By Khinchin (1926) there are infinitely
many n with ||(w n - x*)/(2 pi)|| < 1/n; there m f = O(1), rho stays bounded above, and the terms
do not tend to 0.

**Distance.** rho = h + m f(w n), one linear phase, inf f = 0, attained at rational multiples of pi
alone, to the order e at most: f(x) >= c |x - x*|^e near them, so for large n, with x* = pi s/t,

    f(w n) >= c' min_k |w n - pi k/t|^e >= n^{-e kappa}

for every kappa > mu - 1, where mu is the irrationality measure of w/pi: 2 for w/pi algebraic and
irrational (Roth 1955); for rational w that of pi, which is below 7.1033 (Zeilberger and Zudilin
2020). So if sum exp(-(h + m n^{-e kappa})) converges, m n^{-e kappa} growing like a power of n, so
does the series. With smaller m nothing more is known: whether n^2 |sin n| tends to infinity is
open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import sympy
from flint import fmpq
from sympy import Expr

from farfield.theory.algebra import door
from farfield.theory.algebra.outcomes import NeedMore, Undecided
from farfield.theory.coefficients.arithmetic import (
    Coefficient,
    coefficient,
    expand,
    is_zero_literally,
    oscillates,
    plus,
    to_sympy,
)
from farfield.theory.coefficients.context import context
from farfield.theory.coefficients.oscillation import amplitude, bounds, decompose, harmonics
from farfield.theory.coefficients.signs import sign
from farfield.theory.decision.extrema import enclosure, infimum
from farfield.theory.decision.phases import ANGLE, coordinates, dependent, parts, slow_part, turning
from farfield.theory.functions.balls import Undefined, precision, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.functions.record import record_of
from farfield.theory.proofs import Decision, Fall, Step
from farfield.theory.transseries.arithmetic import (
    Transseries,
    add,
    log_of_monomial,
    monomial,
    normalised,
    scale,
)
from farfield.theory.transseries.expansion import direction, transseries
from farfield.theory.transseries.monomials import (
    UNIT,
    Monomial,
    compare,
    iterated_log,
    larger,
    size,
)
from farfield.theory.transseries.scale import climb, monomial_expression, shown
from farfield.theory.values import compile_ball, tabulate

SAMPLES = 4096
MARGINS = (fmpq(1, 1000), fmpq(1, 10**8))
GAPS = (fmpq(1, 50), fmpq(1, 5000))
OF_PI = fmpq(61033, 10**4)
SOME = fmpq(1, 10**6)
OF_ALGEBRAIC = fmpq(1000001, 10**6)


def prepared(rho: Transseries) -> Transseries:
    """The transseries in harmonics, without bounded oscillations: they do not matter."""
    terms, dropped = [], False
    for m, c in rho.terms:
        if oscillates(c):
            plain = coefficient(harmonics(to_sympy(c)))
            c = c if oscillates(plain) else plain
        if oscillates(c) and size(m) <= 0 and _is_bounded(c):
            dropped = True
        elif not is_zero_literally(c):
            terms.append((m, c))
    if dropped:
        return normalised(terms, larger(rho.remainder, UNIT))
    return Transseries(terms, rho.remainder)


def decide(rho: Transseries) -> Decision:
    """Decide sum exp(-rho), oscillating coefficients allowed."""
    rho = prepared(rho)
    if not any(oscillates(c) for _, c in rho.terms):
        return climb(rho)
    tried: dict[str, str] = {}
    more = False
    for name, rule in RULES.items():
        try:
            return rule(rho)
        except Undecided as why:
            tried[name] = str(why)
        except NeedMore:
            more = True
    if more:
        raise NeedMore
    undecided = Undecided("oscillation: " + "; ".join(dict.fromkeys(tried.values())))
    steps = [Step("tried", {"what": name, "why": why}) for name, why in tried.items()]
    undecided.steps = (*_expansion(rho), *steps)
    raise undecided


def _expansion(rho: Transseries) -> tuple[Step, ...]:
    """The expansion as a step, where each of its oscillations has a formula."""
    terms: list[tuple[Monomial, Coefficient]] = []
    for m, c in rho.terms:
        meaning = _meaning(c)
        if meaning is None or not all(
            s.is_Symbol and type(s) is sympy.Symbol for s in meaning.free_symbols
        ):
            return ()
        terms.append((m, coefficient(meaning)))
    return (Step("expansion", shown("rho", Transseries(terms, rho.remainder))),)


def _is_bounded(c: Coefficient) -> bool:
    """Whether the engine knows finite bounds of a coefficient."""
    try:
        return all(end.is_finite for end in bounds(c))
    except Undecided:
        return False


def _waving(rho: Transseries) -> list[Coefficient]:
    return [c for _, c in rho.terms if oscillates(c)]


def _with(rho: Transseries, values: list[Coefficient]) -> Transseries:
    """The transseries with its oscillating coefficients replaced, in their order."""
    new = iter(values)
    terms = [(m, next(new) if oscillates(c) else c) for m, c in rho.terms]
    return normalised(terms, rho.remainder)


def with_bounds(rho: Transseries) -> Transseries:
    """An upper bound of the transseries without oscillating coefficients."""
    rho = prepared(rho)
    return _with(rho, [_bound(c, 1) for c in _waving(rho)])


def _bound(c: Coefficient, side: int) -> Coefficient:
    """The lower (0) or upper (1) bound of a coefficient; Undecided where there is none."""
    end = bounds(c)[side]
    if end.is_infinite:
        raise Undecided("an oscillating coefficient is unbounded")
    return coefficient(end)


def _bounds(rho: Transseries) -> Decision:
    """Each wave at its upper bound converges, or at its lower bound diverges: either decides."""
    undecided = Undecided("the bounds of the oscillation decide neither way")
    for side, wanted, rule in ((0, True, "upper bound"), (1, False, "lower bound")):
        try:
            bound = _with(rho, [_bound(c, side) for c in _waving(rho)])
            outcome = climb(bound)
        except Undecided as why:
            undecided = why
            continue
        if outcome.converges is wanted:
            return outcome.of_bound(Step(rule, shown("bound", scale(bound, fmpq(-1)))))
    raise undecided


def _near(rho: Transseries, values: dict[int, Coefficient], rule: str, **more: Any) -> Decision:
    """Diverges if it does with these values of the coefficients on the set, others bounded."""
    upper = _with(
        rho,
        [
            values[j] if j in values else _bound(c, 1)
            for j, (_, c) in enumerate(rho.terms)
            if oscillates(c)
        ],
    )
    outcome = climb(upper)
    if outcome.converges:
        raise Undecided("near its extreme the oscillation does not make it diverge")
    return outcome.of_bound(Step(rule, shown("bound", scale(upper, fmpq(-1))) | more))


def first(attempts: Iterable[Callable[[], Decision]]) -> Decision:
    """The first of some attempts that decides."""
    reason = Undecided("nothing applies")
    for attempt in attempts:
        try:
            return attempt()
        except Undecided as why:
            reason = why
    raise reason


def _recurrence(rho: Transseries) -> Decision:
    """An almost periodic oscillation comes back near its lowest sampled value for ever."""
    meanings = {
        j: meaning
        for j, (_, c) in enumerate(rho.terms)
        if oscillates(c)
        and (meaning := _almost_periodic(c)) is not None
        and meaning.free_symbols == {n}
    }
    if not meanings:
        raise Undecided("no coefficient is almost periodic")
    import numpy as np

    sampled = tabulate(meanings[min(meanings)], np.arange(SAMPLES))
    if not np.isfinite(sampled).any():
        raise Undecided("no sample of the oscillation is finite")
    at = int(np.nanargmin(np.where(np.isfinite(sampled), sampled, np.inf)))
    values = {j: _value_above(e, at) for j, e in meanings.items()}
    return first(
        partial(_near, rho, {j: plus(v, gap) for j, v in values.items()}, "recurrence", at=at)
        for gap in MARGINS
    )


def _bounded_returns(rho: Transseries) -> Decision:
    """Terms m c, m bounded, c unbounded but almost periodic: c is near its value at n = 1 on a
    set with bounded gaps, hence bounded there, whatever its parameters are."""
    lower = [(m, c) for m, c in rho.terms if oscillates(c) and size(m) <= 0]
    rest = Transseries([t for t in rho.terms if t not in lower], larger(rho.remainder, UNIT))
    if not lower or any(oscillates(c) for _, c in rest.terms):
        raise Undecided("more than bounded multiples of oscillations")
    for _, c in lower:
        meaning = _almost_periodic(c)
        if meaning is None:
            raise Undecided("no coefficient is almost periodic")
        symbols = dict.fromkeys(meaning.free_symbols - {n}, sympy.pi / 3)
        _value_above(meaning.xreplace(symbols), 1)
        if symbols and not _logs_of_waves(meaning):
            raise Undecided("an oscillation with parameters")
    outcome = climb(rest)
    if outcome.converges:
        raise Undecided("near its extreme the oscillation does not make it diverge")
    return outcome.of_bound(Step("recurrence", shown("bound", scale(rest, fmpq(-1))) | {"at": 1}))


def _logs_of_waves(e: Expr) -> bool:
    """Whether the parameters of e stand only as factors of terms without them."""
    for term in sympy.Add.make_args(expand(e)):
        _, rest = term.as_independent(n, as_Add=False)
        if rest.free_symbols - {n}:
            return False
    return True


def _meaning(c: Coefficient) -> Expr | None:
    """The coefficient without bounded atoms, in n and parameters."""
    e = to_sympy(c)
    current = context()
    for _ in range(20):
        atoms = [s for s in e.free_symbols if s in current.ranges]
        if not atoms:
            break
        if any(s not in current.meaning for s in atoms):
            return None
        e = e.xreplace({s: current.meaning[s] for s in atoms})
    return e


def _almost_periodic(c: Coefficient) -> Expr | None:
    """The coefficient in n alone, if it is built continuously from sin, cos of w n + phi."""
    e = _meaning(c)
    if e is None:
        return None
    opaque = e
    for wave in e.atoms(sympy.sin, sympy.cos):
        if wave.has(n):
            argument = expand(wave.args[0])
            frequency = argument.coeff(n)
            if expand(argument - frequency * n).has(n) or wave.free_symbols != {n}:
                return None
            opaque = opaque.xreplace({wave: sympy.Dummy(real=True)})
    if opaque.has(n) or not all(map(_is_continuous, sympy.preorder_traversal(opaque))):
        return None
    return e


def _is_continuous(node: Expr) -> bool:
    """Whether the operation of a node is continuous wherever its value is finite."""
    record = record_of(node.func)
    if record is not None:
        return record.continuous
    return node.is_Atom or isinstance(node, (sympy.Add, sympy.Mul, sympy.Pow))


def _value_above(e: Expr, at: int) -> Coefficient:
    """A rational just above the value of e at the integer `at`."""
    with precision(128):
        try:
            ball = to_arb(compile_ball(e)({n: fmpq(at)}))
        except Undefined as why:
            raise Undecided(f"a sample of the oscillation: {why}") from None
        top = (ball * 10**12).upper().ceil().unique_fmpz()
    if top is None:
        raise Undecided("a sample of the oscillation has no good enclosure")
    return fmpq(int(top), 10**12)


@dataclass(frozen=True)
class Swing:
    """The first oscillating coefficient: `centre` plus functions of phases, independent polynomials
    or a single slow one; the functions are sinusoids of these amplitudes, or as given."""

    index: int
    scale: Monomial
    phases: tuple[Expr, ...]
    polynomial: bool
    centre: Expr
    amplitudes: tuple[Expr, ...] = ()
    functions: tuple[Expr, ...] = ()

    def near(self, gap: fmpq) -> Coefficient:
        """What the coefficient does not exceed on a box of the torus, near its infimum."""
        if not self.functions:
            return plus(self._lowest(), gap)
        return self._rational(1, gap)

    def below(self, gap: fmpq) -> Coefficient:
        """A lower bound, near the infimum."""
        return self._rational(0, gap) if self.functions else self._lowest()

    def _lowest(self) -> Coefficient:
        return coefficient(self.centre - sympy.Add(*self.amplitudes))

    def _rational(self, side: int, gap: fmpq) -> Coefficient:
        """Bounds of the wave as a rational, its functions enclosed to within the gap."""
        total = fmpq(0)
        for f in self.functions:
            low, high, _ = enclosure(f, float(gap))
            total += fmpq((high * 10**6).ceil() if side else (low * 10**6).floor()) / 10**6
        return plus(coefficient(self.centre), total)

    def infimum(self) -> tuple[Coefficient, fmpq, int]:
        """The infimum, the exponent kappa of the average, and the order near which it returns."""
        if not self.functions:
            if any(sign(coefficient(a)) <= 0 for a in self.amplitudes):
                raise Undecided("an amplitude is 0")
            return self._lowest(), fmpq(len(self.amplitudes), 2), 2
        found = [infimum(f) for f in self.functions]
        low = coefficient(self.centre + sympy.Add(*(x for x, _, _ in found)))
        return low, fmpq(0) + sum(fmpq(1, e) for _, e, _ in found), found[0][2]

    def stated(self) -> dict[str, Any]:
        """The phases as a value of a step."""
        return {"phase": self.phases[0] if len(self.phases) == 1 else sympy.Tuple(*self.phases)}


def swing_of(rho: Transseries) -> Swing:
    """The first oscillating coefficient; Undecided where it is no function of phases."""
    index, (m, c) = next((j, t) for j, t in enumerate(rho.terms) if oscillates(t[1]))
    centre, waves, others = decompose(to_sympy(c))
    if not others and (len(waves) == 1 or _independent(waves)):
        sizes = tuple(amplitude(x, y) for x, y in waves.values())
        phases = tuple(waves)
        return Swing(index, m, phases, all(map(_turns, phases)), centre, sizes)
    meaning = _meaning(c)
    if meaning is None:
        raise Undecided("an oscillation is known by its bounds only")
    if all(_vector(angle) for _, angle in turning(meaning)):
        centre, found = parts(meaning)
        phases = tuple(part.phase for part in found)
        return Swing(index, m, phases, True, centre, (), tuple(p.function for p in found))
    part = slow_part(meaning)
    return Swing(index, m, (part.phase,), False, sympy.S.Zero, (), (part.function,))


def _vector(g: Expr) -> Any:
    """The phase's coordinates on the torus, None where it is no such polynomial."""
    read = coordinates(g)
    return None if read is None else read[0]


def _independent(phases: Iterable[Expr]) -> bool:
    """Whether the phases are independent over the rationals: they fill their torus (Kronecker)."""
    vectors = [_vector(g) for g in phases]
    return all(vectors) and not dependent(vectors)


def _turns(g: Expr) -> bool:
    """Whether a phase is a polynomial as the rules want it, or w n with w algebraic, not 0."""
    if _vector(g):
        return True
    w = expand(g).coeff(n)
    return bool(expand(g - w * n) == 0 and w.is_algebraic and w.is_nonzero)


def _range(rho: Transseries) -> Decision:
    """Converges if it does with a lower bound of the coefficient that balls find."""
    swing = swing_of(rho)

    def attempt(gap: fmpq) -> Decision:
        lower = _with(
            rho,
            [
                swing.below(gap) if j == swing.index else _bound(c, 0)
                for j, (_, c) in enumerate(rho.terms)
                if oscillates(c)
            ],
        )
        outcome = climb(lower)
        if not outcome.converges:
            raise Undecided("the range of the oscillation does not make it converge")
        return outcome.of_bound(Step("upper bound", shown("bound", scale(lower, fmpq(-1)))))

    return first(partial(attempt, gap) for gap in GAPS)


def _infimum(rho: Transseries) -> Decision:
    """A polynomial phase comes near the infimum for a positive share of all n (Weyl)."""
    swing = swing_of(rho)
    if not swing.polynomial:
        raise Undecided("the phase is no polynomial")
    return _close_to_infimum(rho, swing, "infimum")


def _close_to_infimum(rho: Transseries, swing: Swing, rule: str) -> Decision:
    """The series over the n whose oscillation is within a gap of its infimum."""

    def attempt(gap: fmpq) -> Decision:
        return _near(rho, {swing.index: swing.near(gap)}, rule, **swing.stated())

    return first(partial(attempt, gap) for gap in (GAPS if swing.functions else MARGINS))


def slow_lead(g: Expr) -> Monomial:
    """The leading monomial of a slow phase: log n <= g = o(n), monotone to infinity."""
    expansion = transseries(g)
    if any(oscillates(c) for _, c in expansion.terms) or direction(expansion) not in (1, -1):
        raise Undecided("the phase oscillates itself")
    if expansion.remainder is not None and size(expansion.remainder) >= 0:
        raise NeedMore
    lead = expansion.leading()
    if lead is None:
        raise Undecided("the phase is 0")
    if compare(lead[0], iterated_log(0)) >= 0 or compare(lead[0], iterated_log(1)) < 0:
        raise Undecided("the phase is not slow")
    return lead[0]


def _slow_phase(rho: Transseries) -> Decision:
    """A slow phase stays near the infimum on whole intervals: p = O(log n) is needed."""
    swing = swing_of(rho)
    if swing.polynomial:
        raise Undecided("the phase is not slow")
    if compare(rho.top(), iterated_log(1)) > 0:
        raise Undecided("p is not O(log n)")
    slow_lead(swing.phases[0])
    return _close_to_infimum(rho, swing, "slow phase")


def _very_slow_lead(g: Expr) -> Monomial:
    """The leading monomial of a very slow phase: o(log n), monotone to infinity."""
    expansion = transseries(g)
    if any(oscillates(c) for _, c in expansion.terms) or direction(expansion) not in (1, -1):
        raise Undecided("the phase oscillates itself")
    lead = expansion.leading()
    if lead is None or compare(lead[0], iterated_log(1)) >= 0:
        raise Undecided("the phase is not very slow")
    return lead[0]


def diverges_on_intervals(rho: Transseries) -> bool:
    """Whether rho <= log n + O(1): intervals [x, 2x] then add a positive constant each."""
    return _bounded_above(add(rho, scale(monomial(iterated_log(1)), fmpq(-1))))


def is_very_slow(g: Expr) -> bool:
    """Whether a phase is very slow."""
    try:
        _very_slow_lead(g)
    except (Undecided, NeedMore):
        return False
    return True


def _very_slow_phase(rho: Transseries) -> Decision:
    """So slow that the intervals near the infimum have a series of their own that diverges."""
    swing = swing_of(rho)
    if swing.polynomial:
        raise Undecided("the phase is not very slow")
    top = _very_slow_lead(swing.phases[0])

    def attempt(gap: fmpq | None) -> Decision:
        if gap is None:
            low, kappa, _ = swing.infimum()
            moved = swing.scale**kappa * top * iterated_log(1) ** fmpq(-1)
            if size(moved) > 0 or not _subpolynomial(swing.scale):
                raise Undecided("the phase moves too far on an interval")
        value = low if gap is None else swing.near(gap)
        values = [
            value if j == swing.index else _bound(c, 1)
            for j, (_, c) in enumerate(rho.terms)
            if oscillates(c)
        ]
        upper = _with(rho, values)
        if not diverges_on_intervals(upper):
            raise Undecided("near its extreme the oscillation does not make it diverge")
        bound = shown("bound", scale(upper, fmpq(-1)))
        return Decision(False, (Step("very slow phase", bound | swing.stated()),))

    gaps = GAPS if swing.functions else MARGINS
    return first(partial(attempt, gap) for gap in (*gaps, None))


def _subpolynomial(m: Monomial) -> bool:
    """log m = o(log n)."""
    return compare_log(m) < 0


def compare_log(m: Monomial) -> int:
    """How log m compares with log n, for m -> oo."""
    lead = log_of_monomial(m).leading()
    return -1 if lead is None else compare(lead[0], iterated_log(1))


def average(rho: Transseries) -> Decision:
    """By the rule *Average*."""
    swing = swing_of(rho)
    m = swing.scale
    if size(m) <= 0:
        raise Undecided("the oscillation has no growing factor")
    if not all(_subpolynomial(x) for x, _ in rho.terms if size(x) > 0):
        raise Undecided("p grows like a power of n")
    if rho.remainder is not None and size(rho.remainder) > 0:
        raise NeedMore
    if not swing.polynomial and not _suits_average(swing.phases[0], rho):
        raise Undecided("the phase is not known to be equidistributed")
    low, kappa, _ = swing.infimum()
    values = {"scale": monomial_expression(m), "order": to_sympy(kappa), "infimum": to_sympy(low)}
    values |= swing.stated()
    several = len(_waving(rho)) > 1
    for side, wanted in ((0, True), (1, False)):
        others = [
            low if j == swing.index else _bound(c, side)
            for j, (_, c) in enumerate(rho.terms)
            if oscillates(c)
        ]
        mean = add(_with(rho, others), scale(log_of_monomial(m), kappa))
        outcome = climb(mean)
        if outcome.converges is wanted or not several:
            return outcome.of_bound(Step("average", shown("bound", mean) | values))
    raise Undecided("further oscillations leave the average open")


def _suits_average(g: Expr, rho: Transseries) -> bool:
    """The conditions of the rule on a slow phase."""
    try:
        lead = slow_lead(g)
    except (Undecided, NeedMore):
        return False
    power = lead.chain[0] if lead.chain else fmpq(0)
    rest = lead * Monomial((power,)) ** fmpq(-1)
    flat = rest == UNIT or compare_log(rest if size(rest) > 0 else rest ** fmpq(-1)) < 0
    logarithmic = compare(rho.top(), iterated_log(1)) <= 0
    return bool(flat and sign(plus(power, fmpq(-1))) < 0 and (sign(power) > 0 or logarithmic))


def _bounded_above(h: Transseries) -> bool:
    """Whether a transseries has a finite upper limit, by its growing terms."""
    if h.remainder is not None and size(h.remainder) > 0:
        raise NeedMore
    lead = Transseries([t for t in h.terms if size(t[0]) > 0]).leading()
    return lead is None or sign(lead[1]) < 0


def returns(rho: Transseries) -> Decision:
    """By the rule *Returns*."""
    swing = swing_of(rho)
    if len(swing.phases) > 1 or not swing.polynomial or door.degree(swing.phases[0], n) != 1:
        raise Undecided("Khinchin's theorem speaks of one linear phase")
    low, _, order = swing.infimum()
    if sign(low) or compare(swing.scale, Monomial((fmpq(order),))) > 0:
        raise Undecided("the oscillation does not return to 0 often enough")
    h = Transseries([t for j, t in enumerate(rho.terms) if j != swing.index], rho.remainder)
    if any(oscillates(c) for _, c in h.terms) or not _bounded_above(h):
        raise Undecided("what else p consists of is not bounded below")
    values = {"scale": monomial_expression(swing.scale), "order": order} | swing.stated()
    return Decision(False, (Step("returns", values), Step("term test", {})), fall=Fall())


def _distance(rho: Transseries) -> Decision:
    """n stays n^-kappa away from the zeros (irrationality measure), so p falls there too."""
    swing = swing_of(rho)
    if len(swing.phases) > 1 or not swing.polynomial or door.degree(swing.phases[0], n) != 1:
        raise Undecided("the distance from multiples of pi is known for one linear phase")
    low, _, order = swing.infimum()
    _, c = rho.terms[swing.index]
    if sign(low) or not _vanishes_at_multiples_of_pi(swing, c):
        raise Undecided("the zeros of the oscillation are no multiples of pi")
    w = swing.phases[0].coeff(n)
    kappa = OF_PI if w.is_Rational else OF_ALGEBRAIC if (w / sympy.pi).is_algebraic else None
    if kappa is None:
        raise Undecided("no irrationality measure is known")
    away = swing.scale * Monomial((-order * kappa,))
    if size(away * Monomial((-SOME,))) <= 0:
        raise Undecided(
            f"{swing.phases[0]} is known to stay away from multiples of pi by "
            f"n^(-{float(kappa):g}) and no more"
        )
    values = [
        fmpq(0) if j == swing.index else _bound(c, 0)
        for j, (_, c) in enumerate(rho.terms)
        if oscillates(c)
    ]
    lower = add(_with(rho, values), monomial(away))
    outcome = climb(lower)
    if not outcome.converges:
        raise Undecided("the distance from multiples of pi does not make it converge")
    stated = {"kappa": to_sympy(kappa)} | swing.stated()
    bound = shown("bound", scale(lower, fmpq(-1)))
    return outcome.of_bound(Step("distance", bound | stated))


def _vanishes_at_multiples_of_pi(swing: Swing, c: Coefficient) -> bool:
    """Whether the zeros of the oscillation are rational multiples of pi."""
    if not swing.functions:
        _, waves, _ = decompose(to_sympy(c))
        return all(x == 0 or y == 0 for x, y in waves.values())
    if swing.centre != 0:
        return False
    for f in sympy.Mul.make_args(swing.functions[0]):
        wave = f.as_base_exp()[0]
        wave = wave.args[0] if isinstance(wave, sympy.Abs) else wave
        if not f.free_symbols:
            continue
        if not isinstance(wave, (sympy.sin, sympy.cos)):
            return False
        slope, shift = wave.args[0].coeff(ANGLE), wave.args[0].subs(ANGLE, 0)
        exact = expand(wave.args[0] - slope * ANGLE - shift) == 0
        if not (exact and slope.is_Rational and (shift / sympy.pi).is_Rational):
            return False
    return True


RULES: dict[str, Callable[[Transseries], Decision]] = {
    "bounds of the oscillation": _bounds,
    "recurrence": _recurrence,
    "distances near the infimum": _infimum,
    "blocks of a slow phase": _slow_phase,
    "intervals of a very slow phase": _very_slow_phase,
    "the range of the oscillation": _range,
    "the average over the phase": average,
    "returns to 0": returns,
    "distance from the zeros": _distance,
    "returns of bounded multiples": _bounded_returns,
}
