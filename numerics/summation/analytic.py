r"""Sums of any exp-series whose bias is analytic near the half-line, or falls fast: no families.

`Analytic` is Euler-Maclaurin for f = exp(p) on a neighbourhood of the half-line: the integral by
quadrature (`integral`), the derivatives at N by arithmetic of power series of balls, the remainder
by Cauchy's estimate |f^{(2m)}(u)| <= (2m)! (theta u)^{-2m} sup |f| on the disc of radius theta u:
block by block from balls, beyond the last block from a tail enclosure on the sector
(`analytic_bias`). `SmoothRow` is the same for a stretch. What falls too fast is in
`superpolynomial`.

All bounds are (ours).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import sympy
from flint import arb, ctx, fmpq
from sympy import Expr, S, Symbol

from farfield.numerics.enclosures.compiled import compile_real
from farfield.numerics.enclosures.logarithm import in_logarithm
from farfield.numerics.enclosures.quadrature import integral
from farfield.numerics.enclosures.tails import (
    TailEnclosure,
    Unproved,
    growth,
    level,
    raised,
    tail_enclosure,
    times,
)
from farfield.numerics.outcomes import Unrecognised, recognising
from farfield.numerics.summation.analytic_bias import (
    ENVELOPE,
    Bias,
    Sector,
    falls,
    half_line,
    read_bias,
    rises,
)
from farfield.numerics.summation.euler_maclaurin import at_end, remainder
from farfield.numerics.summation.integral import TailIntegral
from farfield.numerics.summation.kept_sums import memory
from farfield.numerics.summation.kernel import Direct, Kernel, reached, suffix_sums
from farfield.numerics.summation.monotone import has_monotone_slope
from farfield.numerics.summation.superpolynomial import MAX_TERMS, superpolynomial_kernel
from farfield.theory.algebra import door
from farfield.theory.algebra.call_tree import traced
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.functions.balls import precision
from farfield.theory.functions.nodes import n

MAX_DEPTH = 4  # logarithms of x in which an integrand falls exponentially
# Sines of the sectors tried, widest first: remainders are smallest there.
ANGLES = (0.5, 0.125, 0.03125)


@dataclass(frozen=True)
class Analytic(Direct):
    """Euler-Maclaurin for a bias that is analytic on a sector; see the module's description."""

    source: Bias
    area: TailIntegral
    sector: Sector

    first_bits: ClassVar[int] = 64  # sums by quadrature are the cheaper the less is asked
    max_bits: ClassVar[int] = 1_100
    farthest: ClassVar[int] = MAX_TERMS // 2

    @property
    def monotone_from(self) -> int:
        if not has_monotone_slope(-self.source.p, self.start):
            raise Unreachable("the bias is not proved to be monotone")
        return self.start

    def integral(self, x: arb) -> arb:
        return self.area.beyond(self.area.to_t(x))

    def density(self, x: arb) -> arb:
        return compile_real(self.source.in_s, self.source.s)(x.log()).exp()

    def _beyond(self, j: int) -> arb:
        """Euler-Maclaurin, of an order whose remainder is below the precision, less what its bounds
        were seen to lose."""
        bits = ctx.prec - 32
        m = self.sector.order(j, bits + 4 + memory(self).get("loss", 0))
        if not m:
            return arb.nan()
        ends = at_end(self.sector.coefficients(j, m))
        return self.integral(arb(j)) + ends + remainder(m, self.sector.remainder(j, m))

    def _begin(self, bits: int) -> int:
        return max(self.first, bits // 2 + 16)

    def _end(self, bits: int) -> tuple[int, arb]:
        """The first trial that is too wide tells what the bounds lose."""

        def trial(at: int) -> arb:
            try:
                value = self._beyond(at)
            except Unreachable:
                if at > 4096:
                    raise
                return arb.nan()
            got = value.rel_accuracy_bits() if value.is_finite() else 0
            if 0 < got < bits - 4 and "loss" not in memory(self):
                memory(self)["loss"] = bits - got + 8
                return trial(at)
            return value

        return reached(trial, self._begin(bits), bits - 4, self.start + self.farthest)

    def tail(self, j: int) -> arb:
        bits = ctx.prec
        at, sums = self._base(bits)
        if j <= at:
            return sums[j - self.start]
        last, value = memory(self).get(("last", bits), (0, None))
        with precision(bits + 32):
            if j == last - 1:
                value += self.source.term(j)
            elif j == last + 1:
                value -= self.source.term(last)
            elif j != last:
                value = self._beyond(j)
        memory(self)["last", bits] = j, value
        return value

    def guess_index(self, goal: Callable[[int], arb], most: int) -> int | None:
        """A guess of the least j with T_j < goal(bits): from the sums up to N, beyond by Newton's
        method on log of the integral against t, at rising precision. It is None beyond
        `max_bits`."""
        if (index := self._guess_in_sums(goal)) is not None:
            return index
        with precision(64):
            t, target = self.area.to_t(arb(self._base(64)[0])).mid(), goal(64).log()
            for _ in range(60):
                whole = self.area.beyond(t)
                step = (whole.log() - target) * (whole.log() - self.area.exponent(t)).exp()
                t = (t + step.min(t / 2 + 4).max(-t / 2)).mid()
                if abs(step) < arb(2) ** -40 * (1 + abs(t)):
                    break
            size = t
            for _ in range(self.area.depth - 1):
                size = size.min(arb(64)).exp()
            if size > self.max_bits:
                return None
        digits = int(float(size) / math.log(2)) + 1
        last, bits = 64 * (1 + (min(digits, most) + 32) // 64), 64
        with precision(last):
            target = goal(last).log()
        while True:
            with precision(min(bits, last)):
                whole = self.area.beyond(t)
                t = (t + (whole.log() - target) * (whole.log() - self.area.exponent(t)).exp()).mid()
            if bits >= last:
                break
            bits *= 2
        with precision(max(last, 64 + 2 * digits)):
            for _ in range(self.area.depth):
                t = t.exp()
            return max(1, int((t + fmpq(1, 2)).mid().ceil().unique_fmpz()))


@dataclass(frozen=True)
class SmoothRow(Kernel):
    """Sums of a stretch by Euler-Maclaurin at both ends; nothing is asked of the tail."""

    source: Bias
    near: Expr
    sector: Sector

    @property
    def converges(self) -> bool:
        return False

    def between(self, a: int, b: int) -> arb:
        bits = ctx.prec

        def beyond(at: int) -> arb:
            m = self.sector.order(at, bits + 4)
            return self._row_sum(at, b, m) if m and at < b else arb.nan()

        with precision(bits + 32):
            try:
                most = min(b, a + MAX_TERMS) - 1
                at, value = reached(beyond, max(a, bits // 2 + 16), bits - 4, most)
            except Unreachable:
                if b - a > MAX_TERMS:
                    raise
                at, value = b, arb(0)
            return suffix_sums(value, self.source.term, at, a)[0]

    def _row_sum(self, at: int, b: int, m: int) -> arb:
        """Euler-Maclaurin between two ends, corrected at both by coefficients on the sector."""
        low, high = (at_end(self.sector.coefficients(x, m)) for x in (at, b))
        area = integral(self.near, self.source.s, arb(at).log(), arb(b).log())
        return area + low - high + remainder(m, self.sector.remainder(at, m, b))


@lru_cache(maxsize=64)
def smooth_row(p: Expr, start: int) -> SmoothRow | None:
    """The kernel of long rows of an analytic bias whose series diverges; None if it is not one.

    >>> row = smooth_row(-sympy.log(sympy.log(n + 3)), 0)
    >>> with precision(64):
    ...     round(float(row.between(0, 10**9)))
    50849233
    """
    try:
        source = read_bias(p)
    except Unrecognised:
        return None
    if any(_turns(wave.args[0]) for wave in p.atoms(sympy.sin, sympy.cos)):
        return None  # panels would have to follow each wave
    near = door.expand_mul(source.in_s + source.s)
    return SmoothRow(start, S.Zero, source, near, Sector(source, ANGLES[0], start))


def _turns(phase: Expr) -> bool:
    """Whether a phase goes through whole turns between n = 10^3 and 10^5, judged by its values."""
    ends = [phase.subs(n, 10**k).evalf(15) for k in (3, 5)]
    return not (all(e.is_number for e in ends) and abs(ends[1] - ends[0]) < 2 * sympy.pi)


@traced(2)
def analytic_kernel(p: Expr, start: int) -> Kernel:
    """A kernel for a bias that is analytic on a sector, or falls fast.

    Raises:
        Unrecognised: with the first thing that is not proved.
    """
    source = read_bias(p)
    with recognising():
        kernel = superpolynomial_kernel(source, start, 1 << 12) or _heavy(source, start)
    if kernel is None:
        kernel = superpolynomial_kernel(source, start, MAX_TERMS // 2)
    if kernel is None:
        raise Unrecognised("no bound of the tail is proved")
    return kernel


def _heavy(source: Bias, start: int) -> Analytic | None:
    """The widest sector on which the bias is proved analytic gives the kernel; None without one."""
    with precision(128):
        inner = _inner(source)
        if inner is None:
            return None
        depth, t, h = inner
        for theta in ANGLES:
            at = _sector(source, theta, start)
            if at is not None:
                near = door.expand_mul(source.in_s + source.s)
                area = TailIntegral(source.s, near, depth, t, h)
                return Analytic(
                    start, S.Zero, source.p, start + 2, source, area, Sector(source, theta, at)
                )
    return None


def _inner(source: Bias) -> tuple[int, Symbol, Expr] | None:
    """(d, t, h) with e^{h(t)} dt falling exponentially in t = L_d."""
    variable, h = source.s, source.in_s
    for depth in range(1, MAX_DEPTH + 1):
        if depth > 1:
            t = Symbol("t" * depth, real=True)
            x = sympy.Dummy(positive=True)
            h, variable = in_logarithm(h.xreplace({variable: x}), x, t), t
        h = door.expand_mul(h + variable)
        for start in (4, 8, 16, 40, 100, 400):
            log_x = arb(start)
            for _ in range(depth - 1):
                log_x = log_x.exp()
            try:
                where = half_line(log_x)
                g = tail_enclosure(h, variable, TailEnclosure(where, {level(depth): fmpq(1)}))
                if not g.terms or not g.negative():
                    if g.terms and rises(g):
                        return None
                    continue
                lead = next(iter(g.terms))
                if growth(times(lead, raised(level(depth), fmpq(-1)))) >= 0:
                    return depth, variable, h
                break
            except Unproved:
                continue
    return None


def _sector(source: Bias, theta: float, start: int) -> int | None:
    """An X with |f(w)| <= |w|^{-1/2} for all w of the sector beyond X."""
    k = 5
    while k <= 200:
        try:
            if falls(source.on_sector(arb(2).log() * k, theta), ENVELOPE, 1):
                return max(1 << k, start + 1)
        except Unproved:
            pass
        k += 3 if k < 16 else k // 4
    return None
