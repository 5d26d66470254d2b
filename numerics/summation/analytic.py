r"""Sums of biases that are analytic near the half-line: Euler-Maclaurin on a sector, no families.

`Analytic` is the formula of Euler and Maclaurin for f = exp(p) near the half-line:

    sum_{n>=N} f(n) = int_N^oo f + f(N)/2 - sum_{k<=m} B_{2k}/(2k)! f^{(2k-1)}(N) + R_m,
    |R_m| <= |B_{2m}|/(2m)! int_N^oo |f^{(2m)}|.

The integral is `integral`'s, the derivatives at N come by arithmetic of power series of balls. R_m
is bounded by Cauchy's estimate |f^{(2m)}(u)| <= (2m)! (theta u)^{-2m} sup |f| on the disc of radius
theta u: block by block from balls, beyond the last block from a tail enclosure on the sector
(`analytic_bias`). A finite stretch needs no tail. What falls too fast is in `superpolynomial`.

All bounds are (ours).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import sympy
from flint import arb, ctx, fmpq
from sympy import Expr, S, Symbol

from farfield.numerics.enclosures.change_of_variable import in_logarithm
from farfield.numerics.enclosures.compiled import compile_real
from farfield.numerics.enclosures.tails import (
    TailEnclosure,
    Unproved,
    growth,
    level,
    raised,
    tail_enclosure,
    times,
)
from farfield.numerics.search import Unrecognised, recognising
from farfield.numerics.summation.analytic_bias import (
    ENVELOPE,
    Bias,
    Sector,
    falls,
    half_line,
    positive,
    read_bias,
)
from farfield.numerics.summation.complete_monotonicity import has_monotone_slope
from farfield.numerics.summation.integral import TailIntegral, integral
from farfield.numerics.summation.kept_sums import memory
from farfield.numerics.summation.kernel import Direct, Kernel
from farfield.numerics.summation.superpolynomial import MAX_TERMS, superpolynomial_kernel
from farfield.theory.algebra import door
from farfield.theory.algebra.call_tree import traced
from farfield.theory.algebra.door import check_time
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.functions.balls import precision
from farfield.theory.functions.nodes import n

MAX_DEPTH = 4  # logarithms of x in which an integrand falls exponentially
# Sines of the sectors tried, widest first: remainders are smallest there.
ANGLES = (0.5, 0.125, 0.03125)
FARTHEST = 1 << 16  # terms before the formula is given up
NEAR = 4_096  # place up to which a formula without bounds is tried again farther out


@dataclass(frozen=True)
class Analytic(Direct):
    """Euler-Maclaurin for a bias that is analytic on a sector; see the module's description.

    Without an `area` nothing is asked of the tail, and finite stretches alone are summed.
    """

    source: Bias
    area: TailIntegral | None
    sector: Sector

    first_bits: ClassVar[int] = 64  # sums by quadrature are the cheaper the less is asked
    max_bits: ClassVar[int] = 1_100
    checked: ClassVar[bool] = False

    @property
    def converges(self) -> bool:
        return self.area is not None

    @property
    def monotone_from(self) -> int:
        if not has_monotone_slope(-self.source.p, self.start):
            raise Unreachable("the bias is not proved to be monotone")
        return self.start

    def term(self, j: int) -> arb:
        return self.source.term(j)

    def between(self, a: int, b: int) -> arb:
        return self._beyond(a, b) if self.area is None else super().between(a, b)

    def integral(self, x: arb) -> arb:
        assert self.area is not None
        return self.area.beyond(self.area.to_t(x))

    def density(self, x: arb) -> arb:
        return compile_real(self.source.in_s, self.source.s)(x.log()).exp()

    def _begin(self, bits: int) -> int:
        return max(self.start + 2, bits // 2 + 16)

    def _formula(self, at: int, bits: int, end: int | None) -> arb:
        """The sum between two places. The first trial that is too wide tells what the bounds lose:
        a higher order mends it."""
        m = self.sector.order(at, bits + 4 + memory(self).get("loss", 0))
        if not m:
            return arb.nan()
        try:
            area = self._area(at, end)
            value = area + _remainder(m, self.sector.remainder(at, m, end))
            value += _at_end(self.sector.coefficients(at, m))
            if end is not None:
                value -= _at_end(self.sector.coefficients(end, m))
        except Unreachable:
            if at > NEAR:
                raise
            return arb.nan()
        accuracy = value.rel_accuracy_bits() if value.is_finite() else 0
        if 0 < accuracy < bits - 4 and "loss" not in memory(self):
            memory(self)["loss"] = bits - accuracy + 8
            return self._formula(at, bits, end)
        return value

    def _area(self, at: int, end: int | None) -> arb:
        """int_at^end f, to infinity without an end."""
        if end is None:
            return self.integral(arb(at))
        return integral(self.source.integrand(), self.source.s, arb(at).log(), arb(end).log())

    def _beyond(self, j: int, end: int | None = None) -> arb:
        """sum_{j<=n<end} f(n), to infinity without an end: terms, then the formula."""
        bits = ctx.prec
        with precision(bits + 32):
            head, at, best = arb(0), j, arb.nan()
            upto = max(j, self._begin(bits))
            while True:
                check_time()
                upto = upto if end is None else min(upto, end)
                head, at = sum(map(self.term, range(at, upto)), head), upto
                if at == end:
                    return head
                value = head + self._formula(at, bits, end)
                best = value if value.is_finite() and value.rad() < best.rad() else best
                if best.rel_accuracy_bits() >= bits - 8:
                    return best
                if end is None and j > self._begin(bits) and best.is_finite():
                    return best  # more terms help no more
                if at - j > FARTHEST:
                    if best.is_finite():
                        return best
                    raise Unreachable("no bound of a sum is found")
                upto = at + max(64, at)


def _at_end(c: list[arb]) -> arb:
    """f(N)/2 - sum_{k<=m} B_{2k}/(2k)! f^{(2k-1)}(N), from the 2m Taylor coefficients at N."""
    total = c[0] / 2
    for k in range(1, len(c) // 2 + 1):
        total -= arb(fmpq.bernoulli(2 * k)) / (2 * k) * c[2 * k - 1]
    return total


def _remainder(m: int, size: arb) -> arb:
    """The ball of R_m, for a bound of int |f^{(2m)}| / (2m)!; not finite where that is not."""
    return arb(0, (abs(arb(fmpq.bernoulli(2 * m))) * size).abs_upper())


@lru_cache(maxsize=64)
def smooth_row(p: Expr, start: int) -> Analytic | None:
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
    return Analytic(start, S.Zero, source, None, Sector(source, ANGLES[0], start))


def _turns(phase: Expr) -> bool:
    """Whether a phase goes through whole turns between n = 10^3 and 10^5, judged by its values."""
    ends = [phase.subs(n, 10**k).evalf() for k in (3, 5)]
    return bool(abs(ends[1] - ends[0]) >= 2 * sympy.pi)


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
                area = TailIntegral(source.s, source.integrand(), depth, t, h)
                return Analytic(start, S.Zero, source, area, Sector(source, theta, at))
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
            with suppress(Unproved):
                where = half_line(log_x)
                g = tail_enclosure(h, variable, TailEnclosure(where, {level(depth): fmpq(1)}))
                if not g.negative():
                    if positive(g):
                        return None
                    continue
                lead = next(iter(g.terms))
                if growth(times(lead, raised(level(depth), fmpq(-1)))) >= 0:
                    return depth, variable, h
                break
    return None


def _sector(source: Bias, theta: float, start: int) -> int | None:
    """An X with |f(w)| <= |w|^{-1/2} for all w of the sector beyond X."""
    k = 5
    while k <= 200:
        with suppress(Unproved):
            if falls(source.on_sector(arb(2).log() * k, theta), ENVELOPE, 1):
                return max(1 << k, start + 1)
        k += 3 if k < 16 else k // 4
    return None
