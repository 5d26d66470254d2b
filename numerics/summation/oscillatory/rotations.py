r"""Sums of exp(q(n)) g(omega n mod 1), g of bounded variation: |sin n|, frac(n sqrt 2).

With F = exp(q) falling, the mean m and the variation V of g on the circle, and the convergents
p_k/q_k of omega = [a_0; a_1, a_2, ...], the inequality of Denjoy and Koksma bounds the sum of g - m
over q_k successive n by e_k = V. Let N < q_{k+1} be written by the q_i (Ostrowski): the sum over N
of them is bounded by `a_1 e_0 + ... + a_{k+1} e_k`. Where g is continuous, let L = sup |g'| and V'
the variation of g'. Then:

    e_k = min(V, L q_k/(2 q_{k+1}) + V'/(8 q_k)).

For i omega is within i/(q_k q_{k+1}) of i p_k/q_k, and by the error of the trapezoidal rule.
Summation by parts gives for every K

    |T_j - m sum_{n>=j} F(n)| <= sum_{k<K} a_{k+1} e_k F(j + q_k - 1) + V sum_{n>=j+q_K-1} F(n).

That is some F(j): enough to find j but for a few hundred tokens. Where g is continuous and F
convex, a ramp r(n) = min(1, (n - j)/L) settles those:

    T_j = m sum_{n>=j} F(n) + sum_{j<=n<j+L} (1 - r(n)) F(n) (g - m) + E,   |g_k| <= V'/(2 pi k)^2
    |E| <= sum_k |g_k| |sum_{n>=j} r(n) F(n) e^{2 pi i k omega n}|
        <= V'/(2 pi^2) sum_{k>=1} min(sum_{n>=j} F(n), 4 F(j)/(L |2 sin(pi k omega)|^2))/k^2:

the sum of the absolute second differences of r F is 2 (F(j) + F(j+1) - F(j+L))/L. The terms up to
some q_t are summed. Any q_s successive multiples of omega are 1/(2 q_s) apart on the circle: on
either side of 0 the i-th nearest, i = 0, 1, ..., is i/(2 q_s) away, and none before the q_{s+1}-th
is within 1/(2 q_{s+1}), so that the terms with q_s <= k < q_{s+1} add up to at most

    pi^2/6 (2 min(sum F, F(j) q_{s+1}^2/L)/q_s^2 + pi^2 F(j)/(3 L)).

Hence E is some F(j)/L, and a long ramp decides an integer, as far as B, enclosed the same way, is
known. Where g jumps, answers in reach of the direct sum are exact, those beyond it narrow brackets.
(ours)
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import sympy
from flint import acb, arb, ctx
from sympy import Expr, S, Symbol

from farfield.numerics.enclosures.compiled import compile_complex, compile_real
from farfield.numerics.enclosures.logarithm import elementary
from farfield.numerics.enclosures.quadrature import line_integral
from farfield.numerics.outcomes import Unrecognised, recognising
from farfield.numerics.summation.analytic_bias import sign_from
from farfield.numerics.summation.kept_sums import memory, remembered, remembered_by_precision
from farfield.numerics.summation.kernel import Kernel, MeanPlusOscillation, terms
from farfield.numerics.summation.normal_form import sign
from farfield.numerics.summation.oscillatory.waves import expanded, linear_phase
from farfield.theory.algebra import door
from farfield.theory.algebra.budget import check_time
from farfield.theory.formula.bounded_nodes import branches_taken
from farfield.theory.functions.balls import precision, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.values import compile_ball

DIRECT = 1 << 17  # terms summed one by one before the rotation is averaged
MAX_RAMP = 1 << 20  # terms of a ramp
EARLY = 1 << 16  # harmonics whose denominators are summed one by one
PLAIN_BITS = 128  # precision below which no ramp is needed
NEAR = 1 << 16  # distance within which one ramp serves the next tail
MAX_PIECES = 64  # smooth pieces of a function on the circle
PARTS = 64  # boxes of a piece on which its variation is bounded
QUOTIENT_BITS = 4_096  # of a frequency whose continued fraction is taken
U = Symbol("u", real=True)
_CORNERS = (sympy.Abs, sympy.sign, sympy.frac)


@dataclass(frozen=True)
class RotationKernel(MeanPlusOscillation):
    """See the module's description: `base` sums F, `pieces` are those of g by their left ends."""

    omega: Expr
    pieces: tuple[tuple[Expr, Expr], ...]
    continuous: bool

    first_bits: ClassVar[int] = 64  # a ramp only where it is needed

    @remembered_by_precision
    def mean(self) -> arb:
        """The integral of g over the circle."""
        total = acb(0)
        for (low, g), high in zip(self.pieces, self._ends(), strict=True):
            total += line_integral(compile_complex(g, U), _value(low), _value(high))
        return total.real

    def _ends(self) -> list[Expr]:
        """The right ends of the pieces on the circle."""
        return [*(low for low, _ in self.pieces[1:]), self.pieces[0][0] + 1]

    def _variation(self, order: int) -> tuple[arb, arb]:
        """Upper bounds of the variation of a derivative of g on the circle, and of its slope: by
        balls, and the jumps."""
        total, most, ends = arb(0), arb(0), []
        for (low, g), high in zip(self.pieces, self._ends(), strict=True):
            g = door.diff(g, U, order)
            value, slope = compile_real(g, U), compile_real(door.diff(g, U), U)
            a, b = _value(low).real, _value(high).real
            width = (b - a) / PARTS
            for i in range(PARTS):
                size = abs(to_arb(slope((a + width * i).union(a + width * (i + 1)))))
                total, most = total + size * width, most.max(size)
            ends.append((to_arb(value(a)), to_arb(value(b))))
        jumps = (abs(b - a) for (_, b), (a, _) in itertools.pairwise([*ends, ends[0]]))
        return sum(jumps, total).upper(), most.upper()

    @remembered
    def _blocks(self) -> tuple[arb, tuple[tuple[arb, int], ...]]:
        """V, and the (a_{k+1} e_k, q_k), as far as a ball of omega tells."""
        with precision(64):
            whole, slope = self._variation(0)
            if not whole.is_finite():
                raise Unrecognised("an oscillation whose variation is not bounded")
            bend = self._variation(1)[0] if self.continuous else arb.pos_inf()
            found, known = [], expansion(self.omega)
            for (quotient, size), (_, after) in itertools.pairwise(known):
                smooth = slope * size / (2 * after) + bend / (8 * size)
                block = smooth.upper() if smooth < whole else whole
                found.append((quotient * block, size))
            return whole, tuple(found)

    def noise(self, j: int) -> arb:
        """A bound of |T_j - m sum F|."""
        with precision(64):
            weight, (whole, blocks) = terms(self.smooth), self._blocks()
            last = bisect.bisect(blocks, j * j << 20, hi=len(blocks) - 1, key=lambda b: b[1])
            rest = to_arb(self.base.tail(j + blocks[last][1] - 1))
            if not rest < weight(j):
                last = len(blocks) - 1
                rest = to_arb(self.base.tail(j + blocks[last][1] - 1))
            total = sum((a * weight(j + size - 1) for a, size in blocks[:last]), whole * rest)
            return total.upper().min((whole * to_arb(self.base.tail(j))).upper())

    @remembered
    def _ramps(self) -> bool:
        """Whether a ramp sharpens the sums: g is continuous and F proved convex."""
        slope = door.diff(self.smooth, n)
        try:
            return self.continuous and sign_from(slope**2 + door.diff(slope, n), self.first) > 0
        except Unrecognised:
            return False

    @remembered
    def _early(self, count: int) -> arb:
        """The sum of (2 k sin(pi k omega))^-2 over k < count."""
        with precision(64):
            omega, total = _value(self.omega).real, arb(0)
            for k in range(1, count):
                total += 1 / (2 * k * (k * omega).sin_pi()) ** 2
            return total

    def _harmonics(self, area: arb, length: int) -> arb:
        """A bound of the terms of E over V'/(2 pi^2) F(j), `area` the sum of F from j over F(j)."""
        known = expansion(self.omega)
        t = max(0, bisect.bisect(known, EARLY, key=lambda b: b[1]) - 1)
        first = EARLY // known[t][1] + 1
        total, square = 4 * self._early(first * known[t][1]) / length, arb.pi() ** 2
        for (_, size), (_, after) in itertools.pairwise(known[t:]):
            last = area * length < size * size
            near = area if last else area.min(arb(after) ** 2 / length)
            blocks = (arb(first) ** -2 + arb(1) / first) / size**2
            total += blocks * 2 * near + blocks * size**2 * square / (3 * length)
            if last:
                return total
            first = 1
        return arb.pos_inf()

    def _ramped(self, j: int, goal: int) -> arb:
        """T_j by a ramp so long that E is below 2^-goal F(j), or of MAX_RAMP terms."""
        with precision(64):
            wave, weight = terms(self.source - self.smooth), terms(self.smooth)
            m, tail, size = self.mean(), to_arb(self.base.tail(j)), weight(j)
            bend = self._variation(1)[0] / (2 * arb.pi() ** 2)
            length, error = 1 << 10, arb.pos_inf()
            while length < MAX_RAMP and not error < arb(2) ** -goal:
                length *= 2
                error = bend * self._harmonics(tail / size, length)
            if not error.is_finite():
                return m * tail + arb(0, self.noise(j))
            total = arb(0)
            for i in range(length):
                if i % 1024 == 0:
                    check_time()
                total += (length - i) * weight(j + i) * (wave(j + i) - m)
            return m * tail + total / length + arb(0, (error * size).upper())

    def _beyond(self, j: int) -> arb:
        """Mean times tail with its discrepancy; at more bits by ramps, known ends reused nearby."""
        if ctx.prec < PLAIN_BITS or not self._ramps():
            return self.mean() * to_arb(self.base.tail(j)) + arb(0, self.noise(j))
        # T_j itself is compared with eps B: the sum that B stands on may be the rougher one
        goal = 4 if ctx.prec < (3 if j > self.first else 6) * 64 else 8
        known = memory(self).setdefault(("ramps", goal), {})
        if j not in known:
            at = min(known, key=lambda i: abs(i - j), default=j + 2 * NEAR)
            if abs(at - j) > NEAR:
                known[j] = self._ramped(j, goal)
            else:
                between = sum(map(terms(self.source), range(min(at, j), max(at, j))), arb(0))
                known[j] = known[at] + between if j < at else known[at] - between
        return known[j]


def _value(e: Expr) -> acb:
    return acb(to_arb(compile_ball(e)({})))


@lru_cache(maxsize=64)
def expansion(omega: Expr) -> tuple[tuple[int, int], ...]:
    """(a_{k+1}, q_k), k = 0, 1, ..., as far as a ball of omega tells.

    >>> [a for a, _ in expansion(sympy.sqrt(2))[:4]]
    [2, 2, 2, 2]
    """
    found: list[tuple[int, int]] = []
    before, size = 0, 1
    with precision(QUOTIENT_BITS):
        x = to_arb(compile_ball(omega)({}))
        x -= x.floor().unique_fmpz() or 0
        while x > 0:
            x = 1 / x
            whole = x.floor().unique_fmpz()
            if whole is None:
                break
            found.append((int(whole), size))
            before, size = size, int(whole) * size + before
            x -= whole
    if len(found) < 3:
        raise Unrecognised("an oscillation whose frequency is not enclosed, or is rational")
    return tuple(found)


def rotation_kernel(p: Expr, start: int, find: Callable[[Expr, int], Kernel]) -> RotationKernel:
    """The kernel of a bias with an additive function of one rotation; `find` sums the rest."""
    smooth, circle, omega = _split(p)
    first = start + DIRECT
    if sign_from(door.diff(smooth, n), first) > 0:
        raise Unrecognised("an oscillation on a term that rises")
    base = find(smooth, first)
    if not base.converges:
        raise Unrecognised("the bias without its oscillation diverges")
    continuous = not circle.has(sympy.frac, sympy.sign)
    built = RotationKernel(
        start, S.Zero, p, first, smooth, base, omega, _pieces(circle), continuous
    )
    with recognising(), precision(64):
        if not (built.mean() > 0 and built.noise(first).is_finite()):
            raise Unrecognised("an oscillation whose mean is not enclosed")
    return built


def _split(p: Expr) -> tuple[Expr, Expr, Expr]:
    """(q, h, omega): p = q(n) + h(omega n mod 1), h in `U`."""
    p = p.replace(sympy.Mod, lambda a, b: b * sympy.frac(a / b))
    p = expanded(p.replace(sympy.floor, lambda u: u - sympy.frac(u)))
    turning = [t for t in sympy.Add.make_args(p) if t.has(sympy.sin, sympy.cos, sympy.frac)]
    circle, smooth = sympy.Add(*turning), p - sympy.Add(*turning)
    rates = {}
    for e in circle.atoms(sympy.sin, sympy.cos, sympy.frac):
        if not e.has(n):
            continue
        rate, shift = linear_phase(e.args[0])
        rates[e] = rate if isinstance(e, sympy.frac) else rate / (2 * sympy.pi), shift
    if not rates:
        raise Unrecognised("no oscillation")
    one = next(iter(rates.values()))[0]
    shares = [door.simplify(r / one) for r, _ in rates.values()]
    if not all(s.is_Rational for s in shares):
        raise Unrecognised("oscillations of several frequencies")
    unit = sympy.Rational(
        sympy.igcd(0, *(s.p for s in shares)), sympy.ilcm(1, *(s.q for s in shares))
    )
    named = {}
    for (e, (_, shift)), share in zip(rates.items(), shares, strict=True):
        turns = share / unit * U
        named[e] = e.func(
            turns + shift if isinstance(e, sympy.frac) else 2 * sympy.pi * turns + shift
        )
    circle = circle.xreplace(named)
    if circle.has(n):
        raise Unrecognised("an oscillation with an amplitude")
    return smooth, circle, one * unit


def _pieces(circle: Expr) -> tuple[tuple[Expr, Expr], ...]:
    """The smooth pieces of exp(h) on the circle, by their left ends."""
    ends = {S.Zero}
    for e in circle.atoms(sympy.frac):
        ends |= _crossings(e.args[0], S.Zero, S.One)
    for e in circle.atoms(sympy.Abs, sympy.sign):
        wave = e.args[0]
        if not isinstance(wave, (sympy.sin, sympy.cos)):
            raise Unrecognised("a corner of an oscillation that is not at a zero of a wave")
        zero = S.Zero if isinstance(wave, sympy.sin) else sympy.pi / 2
        ends |= _crossings(wave.args[0], zero, sympy.pi)
    with precision(256):
        order = sorted(ends, key=lambda e: float(_value(e).real))
        values = [_value(e).real for e in order] + [arb(1)]
        if len(order) > MAX_PIECES or any(not a < b for a, b in itertools.pairwise(values)):
            raise Unrecognised("the corners of an oscillation are not told apart")
        found = []
        for end, (a, b) in zip(order, itertools.pairwise(values), strict=True):
            found.append(
                (end, elementary(sympy.exp(branches_taken(circle, _Around((a + b) / 2), _CORNERS))))
            )
    return tuple(found)


def _crossings(inside: Expr, first: Expr, step: Expr) -> set[Expr]:
    """Where a linear function of u takes a value first + step k, in [0, 1)."""
    slope, at = inside.coeff(U, 1), inside.subs(U, 0)
    low, high = sorted(((at - first) / step, (at + slope - first) / step), key=lambda e: float(e))
    whole = range(int(sympy.floor(low)), int(sympy.ceiling(high)) + 1)
    found = {door.expand((first + step * k - at) / slope) for k in whole}
    return {e for e in found if sign(e) >= 0 and sign(e - 1) < 0}


class _Around:
    """How the corners of a function of u are taken on the piece around a point."""

    def __init__(self, at: arb) -> None:
        self.at = at

    def _value(self, e: Expr) -> arb:
        return to_arb(compile_ball(e)({U: self.at}))

    def sign(self, e: Expr) -> int:
        """The sign of e, which has no zero on the piece."""
        return 1 if self._value(e) > 0 else -1

    def floor(self, e: Expr) -> int:
        """The floor of e, which is constant on the piece."""
        return int(self._value(e).floor().unique_fmpz())
