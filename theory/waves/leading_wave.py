"""The oscillating coefficient that a rule looks at: functions of phases, how fast they move."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import sympy
from flint import fmpq
from sympy import Basic, Expr, S

from farfield.theory.algebra.exceptions import OrderTooLow, Undecided
from farfield.theory.coefficients.exact import (
    Atom,
    Coefficient,
    coefficient,
    expand,
    oscillates,
    plus,
    times,
    to_sympy,
)
from farfield.theory.coefficients.oscillation import amplitude, decompose
from farfield.theory.coefficients.signs import Context
from farfield.theory.functions.nodes import n
from farfield.theory.transseries.arithmetic import (
    UNIT,
    Monomial,
    Transseries,
    compare,
    iterated_log,
    log_of_monomial,
    size,
)
from farfield.theory.transseries.expansion import direction, transseries
from farfield.theory.waves.extrema import enclosure, infimum
from farfield.theory.waves.phases import (
    Vector,
    coordinates,
    dependent,
    oscillating_parts,
    parts,
    slow_part,
)


def written_out(c: Coefficient) -> Expr | None:
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


@dataclass(frozen=True)
class LeadingWave:
    """The first oscillating coefficient: `centre` plus functions of phases, independent polynomials
    or a single slow one; the functions are sinusoids of these amplitudes, or as given, all times a
    positive `factor`, which alone has parameters then."""

    index: int
    scale: Monomial
    phases: tuple[Expr, ...]
    polynomial: bool
    centre: Expr
    amplitudes: tuple[Expr, ...] = ()
    functions: tuple[Expr, ...] = ()
    factor: Expr = S.One

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
            end = high if side else low
            if end is None:
                raise Undecided("the bounds of an oscillation")
            total += fmpq((end * 10**6).ceil() if side else (end * 10**6).floor()) / 10**6
        return times(coefficient(self.factor), plus(coefficient(self.centre), total))

    def infimum(self, context: Context) -> tuple[Coefficient, fmpq, int]:
        """The infimum, the exponent kappa of the average, and the order near which it returns."""
        if not self.functions:
            if any(context.sign(coefficient(a)) <= 0 for a in self.amplitudes):
                raise Undecided("an amplitude is 0")
            return self._lowest(), fmpq(len(self.amplitudes), 2), 2
        infima = [infimum(f, context) for f in self.functions]
        low = coefficient(self.factor * (self.centre + sympy.Add(*(x for x, _, _ in infima))))
        return low, fmpq(0) + sum(fmpq(1, e) for _, e, _ in infima), infima[0][2]

    def stated(self) -> dict[str, Basic]:
        """The phases as a value of a step."""
        return {"phase": self.phases[0] if len(self.phases) == 1 else sympy.Tuple(*self.phases)}


def leading_wave(rho: Transseries) -> LeadingWave:
    """The first oscillating coefficient; Undecided where it is no function of phases."""
    index, (m, c) = next((j, t) for j, t in enumerate(rho.terms) if oscillates(t[1]))
    centre, waves, others = decompose(to_sympy(c))
    if not others and (len(waves) == 1 or _independent(waves)):
        sizes = tuple(amplitude(x, y) for x, y in waves.values())
        phases = tuple(waves)
        return LeadingWave(index, m, phases, all(map(_turns, phases)), centre, sizes)
    meaning = written_out(c)
    if meaning is None:
        raise Undecided("an oscillation is known by its bounds only")
    factor = S.One
    if meaning.is_Mul and meaning.free_symbols != {n}:
        factor, meaning = meaning.as_independent(n, as_Add=False)
        if rho.context.sign(coefficient(factor)) < 0:
            factor, meaning = -factor, -meaning
    polynomial = all(_vector(angle) for _, angle in oscillating_parts(meaning))
    centre, each = parts(meaning) if polynomial else (S.Zero, (slow_part(meaning),))
    phases, functions = tuple(p.phase for p in each), tuple(p.function for p in each)
    return LeadingWave(index, m, phases, polynomial, centre, (), functions, factor)


def _vector(g: Expr) -> Vector | None:
    """The phase's coordinates on the torus, None where it is no such polynomial."""
    read = coordinates(g)
    return None if read is None else read[0]


def _independent(phases: Collection[Expr]) -> bool:
    """Whether the phases are independent over the rationals: they fill their torus (Kronecker)."""
    vectors = [vector for g in phases if (vector := _vector(g))]
    return len(vectors) == len(phases) and not dependent(vectors)


def _turns(g: Expr) -> bool:
    """Whether a phase is a polynomial as the rules want it, or w n with w algebraic, not 0."""
    if _vector(g):
        return True
    w = expand(g).coeff(n)
    return bool(expand(g - w * n) == 0 and w.is_algebraic and w.is_nonzero)


def _steady_lead(g: Expr, context: Context) -> tuple[Monomial | None, Transseries]:
    """The leading monomial of a phase that tends to infinity and does not oscillate itself."""
    expansion = transseries(g, context)
    if any(oscillates(c) for _, c in expansion.terms) or direction(expansion) not in (1, -1):
        raise Undecided("the phase oscillates itself")
    lead = expansion.leading()
    return (None if lead is None else lead[0]), expansion


def slow_lead(g: Expr, context: Context) -> Monomial:
    """The leading monomial of a slow phase: log n <= g = o(n), monotone to infinity."""
    lead, expansion = _steady_lead(g, context)
    if expansion.remainder is not None and size(expansion.remainder, context) >= 0:
        raise OrderTooLow
    if (
        lead is None
        or compare(lead, iterated_log(0), context) >= 0
        or compare(lead, iterated_log(1), context) < 0
    ):
        raise Undecided("the phase is not slow")
    return lead


def very_slow_lead(g: Expr, context: Context) -> Monomial:
    """The leading monomial of a very slow phase: o(log n), monotone to infinity."""
    lead, _ = _steady_lead(g, context)
    if lead is None or compare(lead, iterated_log(1), context) >= 0:
        raise Undecided("the phase is not very slow")
    return lead


def subpolynomial(m: Monomial, context: Context) -> bool:
    """log m = o(log n)."""
    return compare_log(m, context) < 0


def compare_log(m: Monomial, context: Context) -> int:
    """How log m compares with log n, for m -> oo."""
    lead = log_of_monomial(m, context).leading()
    return -1 if lead is None else compare(lead[0], iterated_log(1), context)


def suits_average(g: Expr, rho: Transseries) -> bool:
    """The conditions of the rule on a slow phase."""
    context = rho.context
    try:
        lead = slow_lead(g, context)
    except (Undecided, OrderTooLow):
        return False
    power = lead.chain[0] if lead.chain else fmpq(0)
    rest = lead.times(Monomial((power,)) ** fmpq(-1), context)
    large = rest if size(rest, context) > 0 else rest ** fmpq(-1)
    flat = rest == UNIT or compare_log(large, context) < 0
    logarithmic = compare(rho.top(), iterated_log(1), context) <= 0
    below_linear = context.sign(plus(power, fmpq(-1))) < 0
    return bool(flat and below_linear and (context.sign(power) > 0 or logarithmic))
