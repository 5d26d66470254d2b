r"""Phases of oscillations: polynomials in the distance as points of a torus.

A wave `sin(P(n) + phi)` turns with its phase P, a polynomial without constant term; `frac(y)`
turns with 2 pi y. Their coefficients are read as rational combinations of *units*, positive
numbers with a rational power (radicals) or pi times such numbers, apart from rational multiples of
pi: those turn periodically and belong to residue classes.

**Independence.** Call phases P_1, ..., P_d independent if their vectors of rational coordinates
over (power of n, unit) are linearly independent. Let h be integers, not all 0, at most H in size,
and Q = sum h_j P_j. Radicals are linearly independent over the rationals if no two have a rational
quotient (Besicovitch 1940, Mordell 1953). So the highest coefficient of Q is a + pi b
with a, b algebraic, not both 0, b irrational or 0. Hence it is no rational multiple of 2 pi
(if a is not 0, since pi is transcendental). Baker's theorem (1975, Theorem 3.1) applies to a linear
form in the single logarithm log(-1) with algebraic coefficients:

    |q (a + pi b) - 2 pi p| > C (H q)^{-K}   for all integers p, q > 0.

For H <= N^delta that coefficient over 2 pi has a rational approximation a/q with
N^eta < q < N^{deg Q - eta} (Dirichlet, and the bound above from below), so by Weyl's inequality
(for a linear Q: by summing a geometric series) the mean of e^{i Q} over any N consecutive n is at
most N^{-delta}, wherever the N distances begin: only the highest coefficient enters. By the
inequality of Erdos, Turan and Koksma the points (P_1(n), ..., P_d(n)) mod 2 pi of any N consecutive
distances have discrepancy at most C N^{-delta'}. Two consequences:

* every box of the torus is visited with bounded gaps;
* the mean over N consecutive distances of a function of bounded variation V (Hardy and Krause) is
  its integral up to C V N^{-delta'} (Koksma, Hlawka).

Besides, a phase meets a given point of the circle for finitely many n only (else the difference of
two such n would make a polynomial of the kind above a multiple of 2 pi).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import sympy
from sympy import Expr, Rational, S

from farfield.theory.algebra import door
from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.coefficients.exact import expand
from farfield.theory.functions.nodes import n

ANGLE = sympy.Dummy("x", real=True)
"""The angle that a function of one phase depends on."""

Unit = tuple[int, tuple[tuple[int, Rational], ...], int]  # power of n, radical by primes, pi or not
Vector = dict[Unit, Rational]


@dataclass(frozen=True)
class Part:
    """A function of one angle (`ANGLE`, period 2 pi) at a phase, an expression in n."""

    function: Expr
    phase: Expr


def coordinates(phase: Expr) -> tuple[Vector, Expr] | None:
    """The coordinates of a polynomial in n over the units, and its constant; None for others.

    >>> coordinates(n / 2 + sympy.sqrt(8) * n**2 + 1)
    ({(1, (), 0): 1/2, (2, ((2, 1/2),), 0): 2}, 1)
    """
    vector: Vector = {}
    constant: Expr = S.Zero
    terms = sympy.Add.make_args(expand(phase.xreplace({S.GoldenRatio: (1 + sympy.sqrt(5)) / 2})))
    for term in terms:
        factor, power = term.as_independent(n, as_Add=False)
        if power == 1:
            constant += factor
            continue
        base, degree = power.as_base_exp()
        unit = _unit(factor)
        if base != n or not degree.is_Integer or not 0 < degree <= 20 or unit is None:
            return None
        key = (int(degree), unit[1], unit[2])
        vector[key] = vector.get(key, S.Zero) + unit[0]
    vector = dict(sorted((k, v) for k, v in vector.items() if v))
    if constant.has(n) or any(pi and not radical for _, radical, pi in vector):
        return None
    return vector, constant


def _unit(c: Expr) -> tuple[Rational, tuple[tuple[int, Rational], ...], int] | None:
    """(r, radical, pi) with c = r * radical * pi^(0 or 1)."""
    rational: Rational = S.One
    exponents: dict[int, Rational] = {}
    turns = 0
    for f in sympy.Mul.make_args(c):
        base, exponent = f.as_base_exp()
        if f.is_Rational:
            rational *= f
        elif f is S.Pi:
            turns += 1
        elif base.is_Rational and base > 0 and exponent.is_Rational and max(base.p, base.q) < 10**9:
            for p, k in door.factorrat(base).items():
                exponents[p] = exponents.get(p, S.Zero) + k * exponent
        else:
            return None
    if turns > 1:
        return None
    radical = []
    for p, k in sorted(exponents.items()):
        whole = math.floor(k)
        rational *= Rational(p) ** whole
        if k != whole:
            radical.append((p, k - whole))
    return rational, tuple(radical), turns


def _phase(vector: Vector) -> Expr:
    """The expression whose coordinates the vector is."""
    return sympy.Add(
        *(
            r * sympy.Mul(*(sympy.Integer(p) ** k for p, k in radical)) * S.Pi**pi * n**degree
            for (degree, radical, pi), r in vector.items()
        )
    )


def oscillating_parts(e: Expr) -> list[tuple[Expr, Expr]]:
    """The outermost oscillating parts of e, each with its angle (period 2 pi)."""
    if isinstance(e, (sympy.sin, sympy.cos)) and e.has(n):
        return [(e, e.args[0])]
    if isinstance(e, sympy.frac) and e.has(n):
        return [(e, 2 * sympy.pi * e.args[0])]
    return [x for a in dict.fromkeys(e.args) for x in oscillating_parts(a)]


def parts(e: Expr) -> tuple[Expr, tuple[Part, ...]]:
    """(c, parts) with e = c + the sum of its parts, whose phases are independent.

    Raises:
        Undecided: when e is no such sum.

    >>> c, found = parts(3 + sympy.sin(n) + sympy.cos(2 * n) + sympy.sin(sympy.sqrt(2) * n))
    >>> [p.phase for p in found]
    [n, sqrt(2)*n]
    """
    constant = S.Zero
    groups: dict[tuple[tuple[Unit, Rational], ...], list[Expr]] = {}
    angles: dict[Expr, tuple[Vector, Expr]] = {}
    for term in sympy.Add.make_args(expand(e)):
        if not term.has(n):
            constant += term
            continue
        lines = set()
        for wave, angle in oscillating_parts(term):
            read = coordinates(angle)
            if read is None or not read[0]:
                raise Undecided("a phase is not known to be equidistributed")
            angles[wave] = read
            lines.add(_direction_class(read[0]))
        if len(lines) != 1:
            raise Undecided("an oscillation mixes several phases")
        groups.setdefault(lines.pop(), []).append(term)
    if dependent([dict(line) for line in groups]):
        raise Undecided("the phases depend on each other")
    each = []
    for line, terms in groups.items():
        key, scale = line[0]
        whole = sympy.Add(*terms)
        ratios = {
            wave: (angles[wave][0][key] / scale, angles[wave][1])
            for wave, _ in oscillating_parts(whole)
        }
        unit = _common_unit(ratio for ratio, _ in ratios.values())
        phase = _phase({k: v * unit for k, v in line})
        each.append(Part(_in_angle(whole, ratios, unit), phase))
    return constant, tuple(each)


def slow_part(e: Expr) -> Part:
    """A function of one phase of any kind: the waves in e turn with its rational multiples.

    >>> slow_part(2 + sympy.sin(sympy.sqrt(n)) + sympy.cos(2 * sympy.sqrt(n))).phase
    sqrt(n)
    """
    ratios: dict[Expr, tuple[Rational, Expr]] = {}
    phases = set()
    for wave, angle in oscillating_parts(e):
        constant, moving = expand(angle).as_independent(n, as_Add=True)
        factor, phase = moving.as_coeff_Mul()
        ratios[wave] = (factor, constant)
        phases.add(phase)
    if len(phases) != 1:
        raise Undecided("an oscillation mixes several phases")
    unit = _common_unit(factor for factor, _ in ratios.values())
    return Part(_in_angle(e, ratios, unit), unit * phases.pop())


def dependent(vectors: list[Vector]) -> bool:
    """Whether phases with these coordinates are linearly dependent over the rationals."""
    if len(vectors) < 2:
        return False
    keys = sorted({k for v in vectors for k in v})
    return bool(sympy.Matrix([[v.get(k, 0) for k in keys] for v in vectors]).rank() < len(vectors))


def _direction_class(vector: Vector) -> tuple[tuple[Unit, Rational], ...]:
    """The vector up to a rational factor."""
    first = next(iter(vector.values()))
    return tuple((k, v / first) for k, v in vector.items())


def _common_unit(ratios: Iterable[Rational]) -> Rational:
    """The largest number of which all ratios are integer multiples."""
    all_ratios = list(ratios)
    divisor = math.gcd(*(int(r.p) for r in all_ratios))
    return Rational(divisor, math.lcm(*(int(r.q) for r in all_ratios)))


def _in_angle(e: Expr, ratios: dict[Expr, tuple[Rational, Expr]], unit: Rational) -> Expr:
    """e with each wave as a function of the angle that turns once with the common phase."""
    swap = {}
    for wave, (ratio, constant) in ratios.items():
        angle = ratio / unit * ANGLE + constant
        turns = expand(angle / (2 * sympy.pi)) if isinstance(wave, sympy.frac) else angle
        swap[wave] = wave.func(turns, evaluate=False)
    function = e.xreplace(swap)
    if function.has(n) or function.free_symbols != {ANGLE}:
        raise Undecided("an oscillation has parameters or changes otherwise too")
    return function
