r"""Sums of exp(q(n) + b(n) cos(theta n + phi)), b growing.

Let F_k = exp(q) I_k(b), analytic on a sector around the half-line, and z = e^{i theta}. Then:

    T_j = sum_{n>=j} F_0(n) + 2 Re sum_{k>=1} e^{ik phi} sum_{n>=j} F_k(n) z^{kn}.

The first sum is that of the bias q + log I_0(b), by Euler-Maclaurin. The others are summed by parts
as in `waves`, with another remainder: for every tau >= 0, since
I_k(b) = (1/2 pi) int e^{b cos(u + i tau)} e^{ik(u + i tau)} du,

    |F_k| <= e^{-k tau} exp(Re q + Re b cosh tau + |Im b| sinh tau) <= e^{-k tau} |w|^{-A}

on the part of the sector |arg w| <= asin s beyond X, by tail enclosures; so by Cauchy's estimate

    sum_{n>=j} |D^M F_k(n)| <= M! s^{-M} c^{-A} e^{-k tau} (j - 1)^{1-M-A} / (M + A - 1),

c = 1 - s, or 1 + s where A < 0. All k from some K on are left out together, M = 1. How small
|1 - z^k| becomes for those k is bounded by Mahler's theorem, |pi - p/q| > q^{-42} for all p, q >= 2
(1953), theta being rational. (ours)
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import sympy
from flint import acb, arb, ctx, fmpq
from sympy import Expr, S

from farfield.numerics.enclosures.tails import UNIT, Unproved
from farfield.numerics.outcomes import Unrecognised
from farfield.numerics.summation.analytic import ANGLES, analytic_kernel
from farfield.numerics.summation.analytic_bias import Bias, falls, read_bias
from farfield.numerics.summation.kept_sums import remembered
from farfield.numerics.summation.normal_form import sign
from farfield.numerics.summation.oscillatory.waves import (
    FIRST_DIRECT,
    MAX_ORDER,
    AbelSummation,
    Wave,
    as_cosine,
    expanded,
)
from farfield.theory.algebra import door
from farfield.theory.algebra.budget import check_time
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.functions.balls import Undefined, precision, rational, to_arb
from farfield.theory.functions.bessel import bessel_row
from farfield.theory.functions.nodes import n
from farfield.theory.values import compile_ball

MAHLER = 42  # |pi - p/q| > q^-42 for all q >= 2 (Mahler 1953)
MAX_HARMONICS = 1 << 14  # harmonics of a wave that are summed by parts
FAR_BITS = 300  # bits by which the waves must be below the mean where it alone is asked
SECTORS = (5, 8, 11, 14)  # log2 of an X beyond which a decay is tried to be proved
RATES = tuple(fmpq(a, 4) for a in (16, 12, 10, 8, 7, 6, 5, 4, 3, 2, 1, -1, -4, -16, -64, -256))
HEIGHTS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)  # values tau of a decay, from the slowest


@dataclass(frozen=True)
class Decay:
    """|F_k(w)| <= e^{-k tau} |w|^{-rate} on the sector beyond X, for all k."""

    tau: arb
    rate: fmpq


@dataclass(frozen=True)
class GrowingWave(AbelSummation):
    """See the module's description; the one wave has the amplitude b, positive far out."""

    sector: int
    sine: float
    decays: tuple[Decay, ...]

    max_direct: ClassVar[int] = 1 << 18

    def _gap(self, k: int) -> arb:
        """A lower bound of |1 - z^k|."""
        return (1 - acb(arb(0), to_arb(self._frequency() * k)).exp()).abs_lower()

    def _frequency(self) -> fmpq:
        return rational(self.waves[0].frequency)

    def _bound(self, j: int, order: int, decay: Decay) -> arb:
        """For every k a bound of `e^{k tau} |1 - z^k|^M |R|`, M = order, at least 1. R is the rest
        of the sum by parts after `order` terms, all of it for 0."""
        s, a = arb(self.sine), arb(decay.rate)
        m, log = max(order, 1), arb(j - 1).log()
        if not m + decay.rate > 1:
            return arb.pos_inf()
        edge = 1 - s if decay.rate > 0 else 1 + s
        size = arb(math.factorial(m)) * s**-m * (edge.log() * -a).exp()
        total = size * (log * (1 - m - a)).exp() / (m + a - 1)
        return (total if order else total + (log * -a).exp()).upper()

    def _rest(self, first: int, decay: Decay) -> arb:
        """A bound of sum_{k>=first} e^{-k tau} / |1 - z^k|: where k theta is nearest to 2 pi m,
        |k theta - 2 pi m| > (2 m)^{1-42} b^{-42} for theta = a/b, 2 m <= k theta/pi + 1."""
        theta = self._frequency()
        turns = arb(theta) * first / arb.pi()
        if not turns > 1:
            return arb.pos_inf()
        power = MAHLER - 1
        size = arb.pi() / 2 * (turns + 1) ** power * arb(int(theta.q)) ** MAHLER
        ratio = (1 + 1 / arb(first)) ** power * (-decay.tau).exp()
        if not ratio < 1:
            return arb.pos_inf()
        return (size * (-decay.tau * first).exp() / (1 - ratio)).upper()

    def _harmonics(self, j: int, goal: arb) -> tuple[list[tuple[int, int]], arb]:
        """The (k, order) that are summed, and a bound of all that is left out, near `goal`."""
        slow = min((d for d in self.decays if d.rate > 0), key=lambda d: _log(self._rest(2048, d)))
        count, rest = 64, 2 * self._bound(j, 0, slow)
        while not rest * self._rest(count, slow) < goal:
            count += max(8, count // 8)
            if count > MAX_HARMONICS:
                raise Unreachable("the waves need too many harmonics")
        error, kept = rest * self._rest(count, slow), []
        orders = range(min(MAX_ORDER, 8 + int(2 * abs(_log(goal)))))
        sizes = np.array([[_log(self._bound(j, m, d)) for m in orders] for d in self.decays])
        heights = np.array([[float(d.tau)] for d in self.decays])
        powers = np.maximum(np.array(orders), 1)
        for k in range(1, count):
            if k % 256 == 0:
                check_time()
            gap = self._gap(k)
            if not gap > 0:
                raise Unreachable("waves that are too nearly in phase")
            logs = sizes - heights * k - powers * _log(gap)
            best = logs.min(axis=0)
            small = np.flatnonzero(best < _log(goal) - 2 * math.log(2 * k))
            order = int(small[0] if len(small) else best.argmin())
            decay = self.decays[int(logs[:, order].argmin())]
            bound = self._bound(j, order, decay) * (-decay.tau * k).exp()
            error += 2 * bound / gap ** max(order, 1)
            if order:
                kept.append((k, order))
        return kept, error.upper()

    def _beyond(self, j: int) -> arb:
        """The base's tail and its harmonics, each by summation by parts; the rest is the error."""
        if not (1 - arb(self.sine)) * j > self.sector:
            return arb.nan()
        bits = ctx.prec
        with precision(64):
            main = to_arb(self.base.tail(j))
            kept, error = self._harmonics(j, main * arb(2) ** -(bits + 8))
            if not error < main * arb(2) ** -bits:
                return main + arb(0, error)
        total = to_arb(self.base.tail(j)) + arb(0, error)
        if not kept:
            return total
        orders, most = max(m for _, m in kept), max(k for k, _ in kept)
        with precision(bits + 64 + orders * (j.bit_length() + 1)):
            columns = self._columns(j, orders, most)
            wave = self.waves[0]
            theta, phase = arb(self._frequency()), to_arb(compile_ball(wave.phase)({}))
            step, turn = acb(arb(0), theta).exp(), acb(arb(0), theta * j + phase).exp()
            for k, order in kept:
                z, part = step**k, acb(0)
                factor = 1 / (1 - z)
                row = [column[k] for column in columns[:order]]
                while row:
                    part += row[0] * factor
                    row = [b - a for a, b in itertools.pairwise(row)]
                    factor *= z / (1 - z)
                total += 2 * (turn**k * part).real
        return total

    def _columns(self, j: int, order: int, most: int) -> list[list[arb]]:
        """F_0 .. F_most at j, j + 1, ..., j + order - 1."""
        q, b = compile_ball(self.smooth), compile_ball(self.waves[0].amplitude)
        found = []
        for i in range(j, j + order):
            check_time()
            height, size = to_arb(q({n: fmpq(i)})), to_arb(b({n: fmpq(i)}))
            found.append([height.exp() * v for v in bessel_row(size, most)])
        return found

    @remembered
    def _noise(self) -> tuple[int, arb, fmpq]:
        """(X, W, A) with |T_x - sum F_0| <= W x^{-A} for x >= X."""
        with precision(64):
            decay = max(self.decays, key=lambda d: d.rate)
            since = max(3, math.ceil(self.sector / (1 - self.sine)) + 2)
            count = 64
            while not self._rest(count, decay) < 1:
                count *= 2
            shares = ((-decay.tau * k).exp() / self._gap(k) for k in range(1, count))
            weight = 2 * (sum(shares, arb(0)) + self._rest(count, decay))
            least = self._bound(since, 0, decay) * (arb(since).log() * arb(decay.rate)).exp()
            return since, (weight * least).upper(), decay.rate

    def _noise_at(self, x: arb) -> arb:
        """The bound of what the waves leave behind x."""
        since, weight, rate = self._noise()
        if not x > since:
            raise Unreachable("the sector of the bias starts further out")
        return weight * (x.log() * -arb(rate)).exp()

    def integral(self, x: arb) -> arb:
        """A lower bound of T_x, near it far out."""
        return self.base.integral(x) - self._noise_at(x)

    def density(self, x: arb) -> arb:
        """With `integral` an upper bound of T_x."""
        return self.base.density(x) + 2 * self._noise_at(x)

    def far(self, goal: arb) -> tuple[int, arb] | None:
        small = goal * arb(2) ** -FAR_BITS
        if not self._noise_at(arb(2) ** 1000) < small:
            return None
        return self.base.far(goal + arb(0, small.upper()))


def _log(x: arb) -> float:
    """log of an upper bound, rounded."""
    return float(x.upper().log()) if x.is_finite() else math.inf


def growing_wave_kernel(p: Expr, start: int) -> GrowingWave:
    """The kernel of an analytic bias with one wave of growing amplitude and rational frequency."""
    wave, smooth = _split(expanded(p))
    mean = analytic_kernel(smooth + sympy.log(sympy.besseli(0, wave.amplitude)), start)
    q, b = read_bias(smooth), read_bias(wave.amplitude)
    for k in SECTORS:
        for sine in ANGLES:
            decays = tuple(_decays(q, b, arb(2).log() * k, sine))
            if any(d.rate > 0 for d in decays):
                first = max(start, FIRST_DIRECT)
                return GrowingWave(
                    start, S.Zero, p, first, smooth, mean, (wave,), 1 << k, sine, decays
                ).tried()
    raise Unrecognised("no bound of the waves is proved on a sector")


def _split(p: Expr) -> tuple[Wave, Expr]:
    """The waves of one frequency as one, its amplitude positive far out, and the rest."""
    smooth = S.Zero
    amplitudes: dict[tuple[Expr, Expr], Expr] = {}
    for t in sympy.Add.make_args(p):
        waves = [f for f in sympy.Mul.make_args(t) if isinstance(f, (sympy.sin, sympy.cos))]
        if not (waves and waves[0].has(n)):
            smooth += t
            continue
        frequency, phase = as_cosine(waves[0])
        if not frequency.is_Rational:
            raise Unrecognised("a wave whose frequency is not rational")
        key = abs(frequency), phase * sympy.sign(frequency)
        amplitudes[key] = amplitudes.get(key, S.Zero) + t / waves[0]
    found = [Wave(amplitude, *key) for key, amplitude in amplitudes.items()]
    if not found or len({w.frequency for w in found}) > 1:
        raise Unrecognised("no waves of one frequency")
    amplitude, phase = found[0].amplitude, found[0].phase
    if len(found) > 1:
        shares = [door.cancel(w.amplitude / amplitude) for w in found]
        across, up = (
            sympy.Add(*(c * f(w.phase) for c, w in zip(shares, found, strict=True)))
            for f in (sympy.cos, sympy.sin)
        )
        side = sign(across)
        amplitude = amplitude * sympy.sqrt(across**2 + up**2)
        phase = sympy.atan(up / across) if side else sign(up) * sympy.pi / 2
        phase += sympy.pi if side < 0 else 0
    with precision(64):
        try:
            positive = to_arb(compile_ball(amplitude)({n: fmpq(10) ** 9})) > 0
        except Undefined:
            raise Unrecognised("no wave with an amplitude") from None
    if not positive:
        amplitude, phase = -amplitude, phase + sympy.pi
    others = (smooth + amplitude).atoms(sympy.sin, sympy.cos)
    if phase.has(n) or any(w.has(n) for w in others):
        raise Unrecognised("no waves of one frequency")
    return Wave(amplitude, found[0].frequency, phase), smooth


def _decays(q: Bias, b: Bias, log_x: arb, sine: float) -> list[Decay]:
    """Heights of the contour at which exp(q) decays on it, with the rates that are proved."""
    found = []
    with precision(128):
        try:
            height, size = q.on_sector(log_x, sine), b.on_sector(log_x, sine)
            if not size.shifted(UNIT, fmpq(-1)).negative():
                return []
        except Unproved:
            return []
        for tau in map(arb, HEIGHTS):
            turned: Any = size.shifted(UNIT, acb(tau.cosh(), tau.sinh()))
            for rate in RATES:
                try:
                    if falls(height + turned, rate, 1):
                        found.append(Decay(tau, rate))
                        break
                except Unproved:
                    continue
    return found
