r"""Oscillating exponents: p = h + M exp(G w), G -> oo, w bounded and oscillating, M of one sign.

For M < 0 write v = w, for M > 0 write v = -w: p falls as v rises, and F(n, x) is p with v = x.

**Ends.** lo <= v <= hi: p <= F(n, lo) and p >= F(n, hi) for all large n. If the first converges, so
does the series; if the second diverges, so does it.

**Near the infimum.** Where v <= x on a set of distances as under *Infimum*, *Slow phase* and *Very
slow phase* in `recurrence`, p >= F(n, x) there. F(n, x) lies in a Hardy field, and the arguments
given there for R = F(n, x) need nothing else.

**Least exponent.** M < 0, lo = inf v, f = v - lo, M' = M exp(G lo). As e^x >= 1 + x,

    p <= h + M' (1 + G f),

and if this bound converges, so does the series. Suppose instead that it is proved to diverge by
*Average* or by *Returns*, and that 1/M' = O(1). Both proofs speak of distances with
|M'| G f <= C alone: on them the mean of exp(-|M'| G f) has the order of its mean over all, and on
them it is bounded below. There, with x = G f = O(1),

    0 <= |M'| (e^x - 1 - x) <= |M'| x (e^x - 1) = O(1),

so p is within a constant of that bound, and the series diverges. If M' -> 0, the same holds with
-1 in place of M', p >= h - e^x.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import sympy
from flint import fmpq
from sympy import Expr, S

from farfield.theory.algebra import door
from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.coefficients.exact import (
    Coefficient,
    oscillates,
    plus,
    to_sympy,
)
from farfield.theory.coefficients.oscillation import bounds
from farfield.theory.functions.nodes import n
from farfield.theory.proofs import Decision, Step
from farfield.theory.transseries.arithmetic import UNIT, Transseries, size, with_proved_lead
from farfield.theory.transseries.expansion import direction, eventual_sign_of, transseries
from farfield.theory.waves.swing import Swing, is_very_slow, swing_of
from farfield.theory.waves.wave_rules import (
    MARGINS,
    average,
    bounded,
    decide,
    first,
    gaps,
    near_infimum,
    on_intervals,
    prepared,
    returns,
)

WAVES = (sympy.sin, sympy.cos, sympy.frac, sympy.floor, sympy.ceiling, sympy.Mod)


@dataclass(frozen=True)
class Exponential:
    """p = rest + factor exp(growth w): v = side w, so that p falls as v rises; `wave` is its
    coefficient, and `sharp` tells whether v is that itself, not up to what tends to 0."""

    rest: Expr
    factor: Expr
    growth: Expr
    side: int
    v: Expr
    wave: Coefficient
    sharp: bool

    def at(self, v: Expr | Coefficient) -> Expr:
        """F(n, v)."""
        x = v if isinstance(v, Expr) else to_sympy(v)
        return self.rest + self.factor * self.power(x)

    def power(self, x: Expr) -> Expr:
        """exp(side growth x), a power where it is one."""
        growth = self.side * x * self.growth
        scale, log = growth.as_independent(sympy.log, as_Add=False)
        return log.args[0] ** scale if isinstance(log, sympy.log) else sympy.exp(growth)


def has_oscillating_exponent(p: Expr) -> bool:
    """Whether some power has a wave in its exponent."""
    return any(e.exp.has(*WAVES) for e in p.atoms(sympy.Pow, sympy.exp) if e.exp.has(n))


def decide_exponent(p: Expr) -> Decision:
    """Decide sum exp(p) for a p of this form.

    Raises:
        Undecided: p is not of the form, or no rule applies.
    """
    e = _read(p)
    swing = swing_of(Transseries([(UNIT, e.wave)]))
    return first(_attempts(e, swing))


def _attempts(e: Exponential, swing: Swing) -> Iterator[Callable[[], Decision]]:
    """From coarse bounds of the wave to fine: the exponent's ends, near its infimum, at it."""
    margins = (fmpq(0),) if e.sharp else MARGINS
    for margin in margins:
        yield partial(_end, e, plus(_side(e.wave, 0), -margin), True)
        yield partial(_end, e, plus(_side(e.wave, 1), margin), False)
    for gap in gaps(swing):
        slack = fmpq(0) if e.sharp else gap
        yield partial(_end, e, plus(swing.below(gap), -slack), True)
        yield partial(_near_infimum, e, swing, plus(swing.near(gap), slack))
    if e.sharp:
        yield partial(_least_exponent, e, swing)


def _side(c: Coefficient, side: int) -> Coefficient:
    """The lower (0) or upper (1) bound of an exponent; Undecided where it is unbounded."""
    end = bounds(c)[side]
    if end.is_infinite:
        raise Undecided("an oscillating exponent is unbounded")
    return end


def _read(p: Expr) -> Exponential:
    """p as rest + factor exp(growth w)."""
    found = []
    for term in sympy.Add.make_args(p):
        exponent, factor = S.Zero, S.One
        for f in sympy.Mul.make_args(term):
            if isinstance(f, (sympy.Pow, sympy.exp)) and f.exp.has(*WAVES):
                exponent += f.exp * (S.One if isinstance(f, sympy.exp) else sympy.log(f.base))
            else:
                factor *= f
        if exponent != 0:
            found.append((term, factor, exponent))
    if len(found) != 1:
        raise Undecided("several oscillating exponents")
    term, factor, exponent = found[0]
    growth, wave, steady = _factored(exponent)
    along = direction(transseries(growth))
    if along not in (1, -1):
        raise Undecided("an oscillating exponent that neither grows nor falls")
    growth, wave = along * growth, along * wave
    factor = factor * sympy.exp(steady)
    side = -eventual_sign_of(transseries(factor))
    if side == 0:
        raise Undecided("an oscillating exponent without amplitude")
    expansion = transseries(side * wave)
    c = next((c for m, c in expansion.terms if m == UNIT), fmpq(0))
    small = all(size(m) <= 0 for m, _ in expansion.terms) and (
        expansion.remainder is None or size(expansion.remainder) < 0
    )
    if not small or not oscillates(c):
        raise Undecided("an exponent that does not oscillate between bounds")
    sharp = len(expansion.terms) == 1 and expansion.exact
    return Exponential(p - term, factor, growth, side, side * wave, c, sharp)


def _factored(exponent: Expr) -> tuple[Expr, Expr, Expr]:
    """(G, w, rest) with exponent = G w + rest, G and rest free of waves."""
    steady, turning = exponent.as_independent(*WAVES, as_Add=True)
    if turning.is_Add:
        parts = [t.as_independent(*WAVES, as_Add=False) for t in turning.args]
        growth = parts[0][0]
        shares = [door.simplify(g / growth) for g, _ in parts]
        if any(s.has(n) for s in shares):
            raise Undecided("an exponent of several scales")
        return growth, sympy.Add(*(s * w for s, (_, w) in zip(shares, parts, strict=True))), steady
    growth, wave = turning.as_independent(*WAVES, as_Add=False)
    if wave.is_Add:  # (1 + sin n) log n as it stands: a bound of the sum is one of the wave
        constant, wave = wave.as_independent(*WAVES, as_Add=True)
        steady += growth * constant
    return growth, wave, steady


def _end(e: Exponential, v: Coefficient, upper: bool) -> Decision:
    """By the bound of p at an end of v."""
    bound = e.at(v)
    outcome = decide(-transseries(bound))
    if outcome.converges is not upper:
        raise Undecided("the ends of the exponent decide neither way")
    rule = "upper bound" if upper else "lower bound"
    return outcome.of_bound(Step(rule, {"bound": bound, "error": S.Zero}))


def _near_infimum(e: Exponential, swing: Swing, v: Coefficient) -> Decision:
    """By the bound of p on a set of distances where v is near its infimum."""
    upper = bounded(prepared(-transseries(e.at(v))), 1)
    if not swing.polynomial and is_very_slow(swing.phases[0]):
        return on_intervals(upper, swing)
    return near_infimum(upper, swing)


def _least_exponent(e: Exponential, swing: Swing) -> Decision:
    """exp is convex, so M exp(G w) lies above its tangent at the least w, where it is sharp."""
    if e.side < 0:
        raise Undecided("the exponent of a term that grows")
    low = to_sympy(swing.infimum()[0])
    scale = e.factor * e.power(low)
    over = e.growth * (e.v - low)
    bound = e.rest + scale + door.expand_mul(scale * over)
    rho = prepared(-transseries(bound))
    try:
        outcome = decide(rho)
        if outcome.converges:
            step = Step("tangent", {"bound": bound, "error": S.Zero})
            return outcome.of_bound(step)
    except Undecided:
        pass
    others = (*prepared(transseries(e.rest)).terms, *transseries(e.factor).terms)
    if any(oscillates(c) for _, c in others):
        raise Undecided("more than the exponent oscillates")
    lead = with_proved_lead(transseries(scale)).leading()
    if lead is None or size(lead[0]) < 0:
        scale = S.NegativeOne
        bound = e.rest + scale + door.expand_mul(scale * over)
        rho = prepared(-transseries(bound))
    outcome = first(partial(rule, rho) for rule in (average, returns))
    if outcome.converges:
        raise Undecided("the least exponent leaves the series open")
    values = {"bound": bound, "top": e.rest + scale, "error": S.Zero}
    return outcome.of_bound(Step("least exponent", values))
