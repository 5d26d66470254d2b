r"""Sums of exp(q(n) + sum_i a_i cos(theta_i n + phi_i)), a_i constant, exp(q) completely monotone.

Each wave is expanded, `e^{a cos x} = sum_k I_k(a) e^{ikx}`. With F = exp(q):

    T_j = sum_k c_k sum_{n>=j} F(n) z_k^n,    |z_k| = 1,    sum_k |c_k| = e^{sum |a_i|}.

Here k runs over tuples of integers. The tuples with z_k = 1 add up to a multiple of the tail of F.
For the others summation by parts gives, with z = z_k and M = 1, 2, ...:

    sum_{n>=j} F(n) z^n = z^j sum_{m<M} D^m F(j) z^m / (1-z)^{m+1} + R,   D the forward difference;
    |R| <= |1-z|^{-M} sum_{n>=j} |D^M F(n)| = |1-z|^{-M} |D^{M-1} F(j)|.

For D^M F has constant sign. What the tuples left out add is at most their share of e^{sum |a_i|}
times the tail of F. (ours)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import sympy
from flint import acb, arb, ctx
from sympy import Expr, S

from farfield.numerics.outcomes import Unrecognised
from farfield.numerics.summation.kept_sums import remembered_by_precision
from farfield.numerics.summation.kernel import Direct, Kernel, number, terms
from farfield.numerics.summation.monotone import has_monotone_slope
from farfield.numerics.summation.normal_form import sign
from farfield.theory.algebra import door
from farfield.theory.algebra.budget import check_time
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.functions.balls import precision, to_arb
from farfield.theory.functions.nodes import n

MAX_WAVES = 3  # waves expanded together: their tuples multiply
MAX_TUPLES = 4_000  # products of waves that are kept
MAX_ORDER = 256  # summations by parts, each a difference of higher order
FIRST_DIRECT = 1 << 9  # terms summed before the first summation by parts


@dataclass(frozen=True)
class Wave:
    """amplitude cos(frequency n + phase)."""

    amplitude: Expr
    frequency: Expr
    phase: Expr


def expanded(p: Expr) -> Expr:
    """p multiplied out, what is inside its waves left alone: sin(a + pi n) stays one wave."""
    waves = {w: sympy.Dummy(real=True) for w in p.atoms(sympy.sin, sympy.cos)}
    return door.expand(p.xreplace(waves)).xreplace({name: w for w, name in waves.items()})


def _as_cosine(wave: Expr) -> tuple[Expr, Expr]:
    """(frequency, phase) of a sine or cosine as cos(frequency n + phase)."""
    inside = door.expand(wave.args[0])
    frequency, phase = inside.coeff(n, 1), inside.coeff(n, 0)
    if frequency.has(n) or door.expand(inside - frequency * n - phase) != 0:
        raise Unrecognised("an oscillation whose phase is not linear in n")
    return frequency, phase - sympy.pi / 2 if isinstance(wave, sympy.sin) else phase


@dataclass(frozen=True)
class Waves(Direct):
    """See the module's description: `smooth` is q, `base` the sum of F."""

    smooth: Expr
    base: Kernel
    waves: tuple[Wave, ...]

    max_bits: ClassVar[int] = 1_100

    @property
    def converges(self) -> bool:
        return self.base.converges

    def guess_index(self, goal: Callable[[int], arb], most: int) -> int | None:
        def share(bits: int) -> arb:
            with precision(bits):
                return goal(bits) / self._tuples()[0]

        return self._guess_in_sums(goal) or self.base.guess_index(share, most)

    def _begin(self, bits: int) -> int:
        return max(self.first, 8 * bits)

    @remembered_by_precision
    def _tuples(self) -> tuple[arb, list[tuple[acb, acb]], arb]:
        """(the weight of F itself, (c_k, z_k) for the other tuples kept, the weight left out); one
        of k and -k."""
        bits = ctx.prec
        with precision(bits + 64):
            sizes = [abs(number(w.amplitude)) for w in self.waves]
            whole = sum(sizes, arb(0)).exp()
            floor = arb(2) ** -(bits + 8) * whole
            bessel: list[list[arb]] = []
            for a in sizes:
                values = [a.bessel_i(arb(0))]
                while not values[-1] * whole < floor * a.exp():  # the other waves give e^size
                    check_time()
                    values.append(a.bessel_i(arb(len(values))))
                bessel.append(values)
            ranges = [range(1 - len(v), len(v)) for v in bessel]
            main, others, kept, count = arb(0), [], arb(0), 0
            for k in itertools.product(*ranges):
                check_time()
                weight = arb(1)
                for i, m in enumerate(k):
                    weight *= bessel[i][abs(m)]
                if not weight > floor:
                    continue
                kept += weight
                count += 1
                if count > MAX_TUPLES:
                    raise Unrecognised("too many products of waves")
                frequency = sympy.Add(
                    *(m * w.frequency for m, w in zip(k, self.waves, strict=True))
                )
                turn = sympy.Add(*(m * w.phase for m, w in zip(k, self.waves, strict=True)))
                sides = [
                    1 if m % 2 == 0 or sign(w.amplitude) > 0 else -1
                    for m, w in zip(k, self.waves, strict=True)
                ]
                c = weight * math.prod(sides) * acb(arb(0), number(turn)).exp()
                if frequency == 0:
                    main += c.real
                elif next(m for m in k if m) > 0:
                    others.append((2 * c, acb(arb(0), number(frequency)).exp()))
            return main, others, (whole - kept).upper().max(arb(0))

    def _beyond(self, j: int) -> arb:
        """The mean's tail, and each tuple of waves by summation by parts at its best order."""
        main, others, left_out = self._tuples()
        bits, tail = ctx.prec, to_arb(self.base.tail(j))
        goal = tail * main * arb(2) ** -(bits + 8) / (1 + len(others))
        differences = self._differences(j, bits)
        total, error = tail * main, left_out * tail
        for c, z in others:
            gap = 1 - z
            size = gap.abs_lower()
            if not size > 0:
                raise Unreachable("waves that are too nearly in phase")
            order, best, bound = 1, 1, arb.pos_inf()
            for order in range(1, len(differences)):
                trial = (abs(c) * abs(differences[order - 1]) / size**order).upper()
                if trial < bound:
                    best, bound = order, trial
                if bound < goal or trial > 4 * bound:
                    break
            part, factor = acb(0), 1 / gap
            for m in range(best):
                part += differences[m] * factor
                factor *= z / gap
            total += (c * (z**j) * part).real
            error += bound
        return total + arb(0, error.upper())

    def _differences(self, j: int, bits: int) -> list[arb]:
        """F(j), D F(j), D^2 F(j), ..."""
        order = min(MAX_ORDER, 8 + bits // 2, 8 + bits // max(2, j.bit_length() - 10))
        with precision(bits + 64 + order * (j.bit_length() + 1)):
            row = list(map(terms(self.smooth), range(j, j + order)))
            found = []
            while row:
                found.append(row[0])
                row = [b - a for a, b in itertools.pairwise(row)]
            return found

    def _slack(self) -> arb:
        """A C with |T_x - main int_x^oo F| <= C F(x) + (the weight left out) int_x^oo F."""
        with precision(64):
            main, others, left_out = self._tuples()
            steps = (2 * abs(c) / (1 - z).abs_lower() for c, z in others)
            return (main + left_out + sum(steps, arb(0))).upper()

    def integral(self, x: arb) -> arb:
        """A lower bound of T_x, near it far out."""
        main, _, left_out = self._tuples()
        return (main - left_out) * self.base.integral(x) - self._slack() * self.base.density(x)

    def density(self, x: arb) -> arb:
        """With `integral` an upper bound of T_x."""
        left_out = self._tuples()[2]
        return 2 * self._slack() * self.base.density(x) + 2 * left_out * self.base.integral(x)

    def far(self, goal: arb) -> tuple[int, arb] | None:
        main, _, left_out = self._tuples()
        return self.base.far(goal / (main + arb(0, left_out)))


def waves_kernel(p: Expr, start: int, find: Callable[[Expr, int], Kernel]) -> Waves:
    """The kernel of a smooth bias with waves of constant amplitude; `find` sums the smooth one."""
    p = expanded(p)
    found: list[Wave] = []
    smooth = S.Zero
    for t in sympy.Add.make_args(p):
        amplitude, wave = t.as_independent(n, as_Add=False)
        if not isinstance(wave, (sympy.sin, sympy.cos)):
            smooth += t
            continue
        found.append(Wave(amplitude, *_as_cosine(wave)))
    if not 0 < len(found) <= MAX_WAVES or smooth.has(sympy.sin, sympy.cos):
        raise Unrecognised("no waves of constant amplitude")
    if len(found) > 1 and not all(w.frequency.is_Rational for w in found):
        raise Unrecognised("several waves of irrational frequencies")
    if len(found) == 1 and sign(sympy.sin(found[0].frequency / 2)) == 0:
        raise Unrecognised("a wave that is constant on the integers")
    if not has_monotone_slope(-smooth, start):
        raise Unrecognised("waves on a term that is not proved completely monotone")
    base = find(smooth, start)
    if not base.converges:
        raise Unrecognised("the bias without its waves diverges")
    built = Waves(start, S.Zero, p, max(start, FIRST_DIRECT), smooth, base, tuple(found))
    with precision(built.first_bits):
        built.tail(start)  # waves may be too dense to be summed
    return built
