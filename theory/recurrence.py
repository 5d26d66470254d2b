r"""Oscillating biases: what recurrence and equidistribution decide, each rule with its proof.

Throughout rho = -p is a germ some of whose coefficients oscillate. A rule that does not apply
raises `Undecided`; nothing is inferred from its failure.

**Bounds.** Replace each oscillating coefficient by its upper (lower) bound. If the series of the
lower bound of rho converges, so does the series; if that of the upper bound diverges, so does it.

**Recurrence.** Let the oscillating coefficients be continuous at the point in question and built
from finitely many sin and cos of `w n + phi`. The rotation of a torus by the w's is an isometry,
so returns to a neighbourhood of any point of an orbit have bounded gaps (Bohr). Hence for every
integer n0 and eps > 0 all coefficients are within eps of their values at n0 on a set S with gaps
at most G. On S, rho <= R, the germ with these values plus eps. R lies in a Hardy field, so exp(-R)
is eventually monotone: if it does not tend to 0, infinitely many terms of S are bounded below;
if it decreases, the sum over S is at least 1/G of the full sum up to a constant. So if
sum exp(-R) diverges, the series diverges.

**Infimum.** For one sinusoid of `w n + phi`, w algebraic and not 0: w/(2 pi) is irrational (pi is
transcendental), the rotation is minimal, and the exact infimum may be used instead of a value.

**Slow phase.** Coefficient `centre + A sin(g + phi)` with g in a Hardy field, g/log n -> c in
(0, oo], g = o(n), and rho = O(log n). The n with coefficient within eps of its infimum fill, in
each period of g, an interval that holds a fixed share of it (g' varies slowly over a period when
g/log n -> oo; when g ~ c log n the period is [x, e^{2 pi/c} x (1 + o(1))]). As rho = O(log n) in
a Hardy field, rho' = O(1/n) and R changes by O(1) over a period, so the blocks carry a fixed share
of the sum of exp(-R): if that diverges, the series diverges.

**Average.** rho = h + m (lo + A (1 + cos(g + phi))) with m -> oo, A > 0, h and m in a Hardy field
and m, h = n^{o(1)} (their logarithms are o(log n)). Then sum exp(-rho) converges iff
sum exp(-(h + lo m + (log m)/2)) does.
*g = w n, w algebraic, not 0.* By Baker's theorem |w q - 2 pi p| > C q^{-kappa}, so w/(2 pi) has
finite type and the discrepancy of N consecutive points is at most N^{-delta} (Erdos-Turan). Over
blocks [x, x + x^{1/2}] h and m A change by o(1), since h', m' = x^{-1+o(1)}. By Koksma's
inequality the block mean of exp(-m A (1 + cos)) differs from its integral, which is
~ (2 pi A m)^{-1/2} (Laplace), by at most a constant times x^{-delta/2} = o(m^{-1/2}).
*g a Hardy function with log n = O(g), g <= n^{b + o(1)}, b < 1, and either g = n^{a + o(1)}, a > 0,
or rho = O(log n).* A period around x has length O(1/g'(x)). In the first case this is
n^{1 - a + o(1)} and h', m' = n^{-1 + o(1)}; in the second it is O(x) and h', m' = O(1/x): over a
period h and m A
change by O(1). The points g(n) have spacing g' = n^{b - 1 + o(1)} = o(m^{-1/2}), so the mean is the
Riemann sum of the same integral, up to constant factors.

**Returns.** rho = h + m A (1 + cos(w n + phi)), w algebraic, not 0, m = O(n^2), h bounded above. By
Khinchin (1926) there are infinitely many n with ||w n/(2 pi) + phi/(2 pi) - 1/2|| < 1/n; there
1 + cos <= 2 pi^2/n^2, rho stays bounded above, and the terms do not tend to 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy
from flint import fmpq
from sympy import Expr

from farfield.theory.balls import Undefined, compile_ball, precision, to_arb
from farfield.theory.constants import (
    Coefficient,
    NeedMore,
    Undecided,
    case,
    coefficient,
    expand,
    is_zero_literally,
    oscillates,
    plus,
    sign,
    to_sympy,
)
from farfield.theory.expression import n
from farfield.theory.functions import direction, germ
from farfield.theory.germs import (
    UNIT,
    Germ,
    Monomial,
    Term,
    add,
    compare,
    germ_of,
    iterated_log,
    larger,
    log_of_monomial,
    scale,
    size,
)
from farfield.theory.ladder import Outcome, climb, monomial_expression, shown
from farfield.theory.oscillation import amplitude, bounds, harmonics, sinusoid
from farfield.theory.proofs import Step
from farfield.theory.tables import tabulate

SAMPLES = 4096
MARGINS = (fmpq(1, 1000), fmpq(1, 10**8))


def decide(rho: Germ) -> Outcome:
    """Decide sum exp(-rho), oscillating coefficients allowed."""
    terms, dropped = [], False
    for m, c in rho.terms:
        if oscillates(c):
            plain = coefficient(harmonics(to_sympy(c)))
            c = c if oscillates(plain) else plain
        if oscillates(c) and size(m) <= 0 and _is_bounded(c):
            dropped = True
        elif not is_zero_literally(c):
            terms.append((m, c))
    rho = germ_of(terms, larger(rho.remainder, UNIT)) if dropped else Germ(terms, rho.remainder)
    if not any(oscillates(c) for _, c in rho.terms):
        return climb(rho)
    tried, more = [], False
    for rule in RULES:
        try:
            return rule(rho)
        except Undecided as why:
            tried.append(str(why))
        except NeedMore:
            more = True
    if more:
        raise NeedMore
    raise Undecided("oscillation: " + "; ".join(dict.fromkeys(tried)))


def _is_bounded(c: Coefficient) -> bool:
    try:
        return all(end.is_finite for end in bounds(c))
    except Undecided:
        return False


def _waving(rho: Germ) -> list[Coefficient]:
    return [c for _, c in rho.terms if oscillates(c)]


def _with(rho: Germ, values: list[Coefficient]) -> Germ:
    """The germ with its oscillating coefficients replaced, in their order."""
    new = iter(values)
    terms = [(m, next(new) if oscillates(c) else c) for m, c in rho.terms]
    return germ_of(terms, rho.remainder)


def _bound(c: Coefficient, side: int) -> Coefficient:
    end = bounds(c)[side]
    if end.is_infinite:
        raise Undecided("an oscillating coefficient is unbounded")
    return coefficient(end)


def _derived(step: Step, outcome: Outcome) -> Outcome:
    return Outcome(outcome.converges, (step, *outcome.steps))


def _bounds(rho: Germ) -> Outcome:
    undecided = Undecided("the bounds of the oscillation decide neither way")
    for side, wanted, rule in ((0, True, "upper bound"), (1, False, "lower bound")):
        try:
            bound = _with(rho, [_bound(c, side) for c in _waving(rho)])
            outcome = climb(bound)
        except Undecided as why:
            undecided = why
            continue
        if outcome.converges is wanted:
            return _derived(Step(rule, shown("bound", scale(bound, fmpq(-1)))), outcome)
    raise undecided


def _near(rho: Germ, values: dict[int, Coefficient], rule: str, **more: Any) -> Outcome:
    """Diverges if it does with these values of the coefficients (plus a margin) on the set."""
    for margin in MARGINS:
        upper = _with(
            rho,
            [
                plus(values[j], margin) if j in values else _bound(c, 1)
                for j, (_, c) in enumerate(rho.terms)
                if oscillates(c)
            ],
        )
        outcome = climb(upper)
        if not outcome.converges:
            bound = shown("bound", scale(upper, fmpq(-1)))
            return _derived(Step(rule, bound | more), outcome)
    raise Undecided("near its extreme the oscillation does not make it diverge")


def _recurrence(rho: Germ) -> Outcome:
    meanings = {
        j: meaning
        for j, (_, c) in enumerate(rho.terms)
        if oscillates(c)
        and (meaning := _almost_periodic(c)) is not None
        and meaning.free_symbols == {n}
    }
    if not meanings:
        raise Undecided("no coefficient is almost periodic")
    sampled = tabulate(meanings[min(meanings)], np.arange(SAMPLES))
    if not np.isfinite(sampled).any():
        raise Undecided("no sample of the oscillation is finite")
    at = int(np.nanargmin(np.where(np.isfinite(sampled), sampled, np.inf)))
    values = {j: _value_above(e, at) for j, e in meanings.items()}
    return _near(rho, values, "recurrence", at=at)


def _bounded_returns(rho: Germ) -> Outcome:
    """Terms m c, m bounded, c unbounded but almost periodic: c is near its value at n = 1 on a
    set with bounded gaps, hence bounded there, whatever its parameters are."""
    lower = [(m, c) for m, c in rho.terms if oscillates(c) and size(m) <= 0]
    rest = Germ([t for t in rho.terms if t not in lower], larger(rho.remainder, UNIT))
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
    return _derived(Step("recurrence", shown("bound", scale(rest, fmpq(-1))) | {"at": 1}), outcome)


def _logs_of_waves(e: Expr) -> bool:
    """Whether the parameters of e stand only as factors of terms without them."""
    for term in sympy.Add.make_args(expand(e)):
        _, rest = term.as_independent(n, as_Add=False)
        if rest.free_symbols - {n}:
            return False
    return True


def _almost_periodic(c: Coefficient) -> Expr | None:
    """The coefficient in n alone, if it is built continuously from sin, cos of w n + phi."""
    e = to_sympy(c)
    current = case()
    for _ in range(20):
        atoms = [s for s in e.free_symbols if s in current.ranges]
        if not atoms:
            break
        if any(s not in current.meaning for s in atoms):
            return None
        e = e.xreplace({s: current.meaning[s] for s in atoms})
    opaque = e
    for wave in e.atoms(sympy.sin, sympy.cos):
        if wave.has(n):
            argument = expand(wave.args[0])
            frequency = argument.coeff(n)
            if expand(argument - frequency * n).has(n) or wave.free_symbols != {n}:
                return None
            opaque = opaque.xreplace({wave: sympy.Dummy(real=True)})
    continuous = (sympy.Add, sympy.Mul, sympy.Pow, sympy.exp, sympy.log, sympy.Abs, sympy.atan,
                  sympy.Symbol, sympy.Number, sympy.NumberSymbol, sympy.erf, sympy.sin,
                  sympy.cos)  # fmt: skip
    if opaque.has(n) or not all(
        isinstance(x, continuous) for x in sympy.preorder_traversal(opaque)
    ):
        return None
    return e


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


def _wave(rho: Germ) -> tuple[int, Monomial, Expr, Expr, Expr]:
    """(index, m, centre - A, A, g) when exactly one coefficient oscillates, as
    centre + A sin(g + phi)."""
    indices = [j for j, (_, c) in enumerate(rho.terms) if oscillates(c)]
    if len(indices) != 1:
        raise Undecided("several coefficients oscillate")
    m, c = rho.terms[indices[0]]
    parts = sinusoid(c)
    if parts is None:
        raise Undecided("the oscillating coefficient is no single sinusoid")
    centre, x, y, g = parts
    a = amplitude(x, y)
    return indices[0], m, centre - a, a, g


def _incommensurable(g: Expr) -> bool:
    """g = w n with w algebraic and not 0."""
    w = expand(g).coeff(n)
    return bool(expand(g - w * n) == 0 and w.is_algebraic and w.is_nonzero)


def _infimum(rho: Germ) -> Outcome:
    index, _, low, _, g = _wave(rho)
    if not _incommensurable(g):
        raise Undecided("a frequency is not known to be incommensurable with 2 pi")
    return _near(rho, {index: coefficient(low)}, "infimum", wave=g)


def _phase(g: Expr) -> Monomial:
    """The leading monomial of a slow phase: log n <= g = o(n), monotone to infinity."""
    expansion = germ(g)
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


def _slow_phase(rho: Germ) -> Outcome:
    index, _, low, _, g = _wave(rho)
    if compare(rho.top(), iterated_log(1)) > 0:
        raise Undecided("p is not O(log n)")
    _phase(g)
    return _near(rho, {index: coefficient(low)}, "slow phase", phase=g)


def _subpolynomial(m: Monomial) -> bool:
    """log m = o(log n)."""
    return compare_log(m) < 0


def compare_log(m: Monomial) -> int:
    """How log m compares with log n, for m -> oo."""
    lead = log_of_monomial(m).leading()
    return -1 if lead is None else compare(lead[0], iterated_log(1))


def _average(rho: Germ) -> Outcome:
    index, m, low, a, g = _wave(rho)
    if size(m) <= 0 or sign(coefficient(a)) <= 0:
        raise Undecided("the oscillation has no growing factor")
    if not all(_subpolynomial(x) for x, _ in rho.terms if size(x) > 0):
        raise Undecided("p grows like a power of n")
    if rho.remainder is not None and size(rho.remainder) > 0:
        raise NeedMore
    if not _incommensurable(g) and not _suits_average(g, rho):
        raise Undecided("the phase is not known to be equidistributed")
    terms: list[Term] = list(rho.terms)
    terms[index] = (m, coefficient(low))
    mean = add(germ_of(terms, rho.remainder), scale(log_of_monomial(m), fmpq(1, 2)))
    values = {"phase": g, "scale": monomial_expression(m)}
    return _derived(Step("average", shown("bound", mean) | values), climb(mean))


def _suits_average(g: Expr, rho: Germ) -> bool:
    """The conditions of the rule on a slow phase."""
    try:
        lead = _phase(g)
    except (Undecided, NeedMore):
        return False
    power = lead.chain[0] if lead.chain else fmpq(0)
    rest = lead * Monomial((power,)) ** fmpq(-1)
    flat = rest == UNIT or compare_log(rest if size(rest) > 0 else rest ** fmpq(-1)) < 0
    logarithmic = compare(rho.top(), iterated_log(1)) <= 0
    return bool(flat and sign(plus(power, fmpq(-1))) < 0 and (sign(power) > 0 or logarithmic))


def _bounded_above(h: Germ) -> bool:
    if h.remainder is not None and size(h.remainder) > 0:
        raise NeedMore
    lead = Germ([t for t in h.terms if size(t[0]) > 0]).leading()
    return lead is None or sign(lead[1]) < 0


def _returns(rho: Germ) -> Outcome:
    index, m, low, _, g = _wave(rho)
    if sign(coefficient(low)) or compare(m, Monomial((fmpq(2),))) > 0 or not _incommensurable(g):
        raise Undecided("the oscillation does not return to 0 often enough")
    h = Germ([t for j, t in enumerate(rho.terms) if j != index], rho.remainder)
    if not _bounded_above(h):
        raise Undecided("what does not oscillate is not bounded above")
    values = {"phase": g, "scale": monomial_expression(m)}
    return Outcome(False, (Step("returns", values), Step("term test", {})))


RULES = (_bounds, _recurrence, _infimum, _slow_phase, _average, _returns, _bounded_returns)
