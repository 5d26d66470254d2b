r"""Sums of any exp-series whose bias is analytic near the half-line, or falls fast: no families.

`Light`: the terms are summed one by one up to a Y with a proved bound of the rest: where
p(x) <= -A log x on [Y, oo) (a `Majorant` proves it), sum_{n>Y} e^{p(n)} <= Y^{1-A}/(A-1).

`Analytic`: Euler-Maclaurin, f = exp(p) on a neighbourhood of the half-line,

    sum_{n>=N} f(n) = int_N^oo f + f(N)/2 - sum_{k<=m} B_{2k}/(2k)! f^{(2k-1)}(N) + R_m,
    |R_m| <= |B_{2m}|/(2m)! int_N^oo |f^{(2m)}|,

* the integral in the variable t = log ... log x (d-fold, d the least with e^{h(t)} dt falling
  exponentially), panel by panel by rigorous quadrature of the symbolically simplified h, with the
  rest beyond the last panel bounded by e^{-cS}/c, h(t) <= -c t on [S, oo) by a majorant;
* the derivatives at N by the trapezoidal rule on a circle, whose aliasing error is bounded by the
  maximum of |f| on a larger circle;
* the remainder by Cauchy's estimate |f^{(2m)}(u)| <= (2m)! (theta u)^{-2m} sup |f| on the disc of
  radius theta u: block by block from balls, beyond the last block from a majorant on the sector.

All bounds are (ours).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import sympy
from flint import acb, arb, ctx, fmpq
from sympy import Expr, S, Symbol

from farfield.numerics.budget import Unreachable, check_time
from farfield.numerics.kernels import Kernel
from farfield.numerics.majorants import (
    Beyond,
    Majorant,
    Unproved,
    growth,
    level,
    majorant,
    raised,
    times,
)
from farfield.numerics.normal_form import Unrecognised
from farfield.numerics.programs import compile_complex
from farfield.numerics.substitution import elementary, in_logarithm
from farfield.theory.balls import Undefined, compile_ball, precision, to_arb
from farfield.theory.expression import n

MAX_DEPTH = 4
MAX_OPERATIONS = 120
MAX_TERMS = 1 << 17
MAX_COLUMNS = 6_000
MAX_PANELS = 400
COLUMN = 0.125
DROP = 40
FIRST_EDGES = (3.0, 1.25, 0.25, 0.0)
LEVELS = (192, 320, 576, 832, 1_216)
ANGLES = (0.5, 0.125, 0.03125)
ENVELOPE = fmpq(1, 2)


def beyond(log_x: arb) -> Beyond:
    """The half-line from x on, with the iterated logarithms that exist."""
    logs = [log_x]
    while len(logs) < 8 and logs[-1] > 0:
        logs.append(logs[-1].log())
    return Beyond(tuple(logs))


@dataclass(frozen=True)
class Bias:
    """A bias in the variable s = log n, with the balls and bounds that all sums need."""

    p: Expr
    s: Symbol
    in_s: Expr
    direct: Any = field(compare=False, repr=False)

    def term(self, j: int) -> Any:
        """exp(p(j))."""
        value = self.direct({n: fmpq(j)})
        return to_arb(value).exp()

    def real(self, log_x: arb) -> Majorant:
        """p on [x, oo)."""
        where = beyond(log_x)
        return majorant(self.in_s, self.s, Majorant(where, {level(1): fmpq(1)}))

    def on_sector(self, log_x: arb, theta: float) -> Majorant:
        """p on the points kappa x', x' >= x, |kappa| = 1, |arg kappa| <= asin theta."""
        angle = arb(math.nextafter(math.asin(theta), 4))
        kappa = acb(arb(0), arb(0, angle))
        where = beyond(log_x)
        start = Majorant(where, {level(1): fmpq(1), ((), ()): kappa})
        return majorant(self.in_s, self.s, start)


def falls(g: Majorant, c: Any, k: int) -> bool:
    """Whether g + c L_k is proved negative on the half-line."""
    rate = Majorant(g.where, {level(k): c if isinstance(c, fmpq) else acb(c)})
    return (g + rate).negative()


def rises(g: Majorant) -> bool:
    """Whether -g is proved negative and g does not tend to 0: no tail is bounded then."""
    minus = g.shifted(((), ()), fmpq(-1))
    return growth(next(iter(g.terms))) >= 0 and minus.negative()


@lru_cache(maxsize=256)
def _nodes(points: int, bits: int) -> list[tuple[arb, arb]]:
    """Nodes and weights of the Gauss-Legendre rule."""
    half = [arb.legendre_p_root(points, k, weight=True) for k in range((points + 1) // 2)]
    mirror = [(-x, w) for x, w in half[: points // 2]]
    return half + mirror


def read_bias(p: Expr) -> Bias:
    """The bias in s = log n; Unrecognised for what is not analytic."""
    s = Symbol("s", real=True)
    x = Symbol("x", positive=True)
    in_s = in_logarithm(elementary(p).xreplace({n: x}), x, s)
    return Bias(p, s, in_s, compile_ball(p))


# -- light tails ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Light(Kernel):
    """Terms that fall faster than every power within the reach of a direct sum."""

    source: Bias
    first: int
    sums: dict[int, list[Any]] = field(default_factory=dict, compare=False, repr=False)
    rests: dict[int, arb] = field(default_factory=dict, compare=False, repr=False)

    @property
    def settled(self) -> int:
        raise Unreachable("the bias is not proved to be monotone")

    @property
    def checked(self) -> bool:
        return False

    def rest(self, y: int) -> arb:
        """A bound of sum_{i>=y} exp(p(i)), y >= 2."""
        if y not in self.rests:
            with precision(128):
                self.rests[y] = self._rest(y)
        return self.rests[y]

    def _rest(self, y: int) -> arb:
        log_x = arb(y - 1).log()
        try:
            g = self.source.real(log_x)
            size = to_arb(self.source.direct({n: fmpq(y)}))
            for share in (0.95, 0.75, 0.5, 0.25):
                a = (-size / log_x * arb(share)).mid()
                if a > 2 and falls(g, a, 1):
                    return ((1 - a) * log_x).exp() / (a - 1)
        except (Unproved, Undefined):
            pass
        return arb.pos_inf()

    def tail(self, j: int) -> arb:
        bits = ctx.prec
        known = self.sums.setdefault(bits, [])
        if not known or j - self.start >= len(known) // 2:
            self._extend(j, bits)
        known = self.sums[bits]
        return known[j - self.start]

    def _extend(self, j: int, bits: int) -> None:
        """Suffix sums up to where the rest is below the precision, relative to T_j."""
        upto = max(self.first, j + 64)
        goal = to_arb(self.source.term(j)) * arb(2) ** -(bits + 8)
        while not self.rest(upto) < goal:
            upto = j + 2 * (upto - j)
            if upto - self.start > MAX_TERMS:
                raise Unreachable("too many terms would have to be summed one by one")
        with precision(bits + 32):
            total = arb(0).union(self.rest(upto).upper())
            sums = [total]
            for i in range(upto - 1, self.start - 1, -1):
                if i % 1024 == 0:
                    check_time()
                total = total + self.source.term(i)
                sums.append(total)
        if len(self.sums) > 4:
            self.sums.clear()
        self.sums[bits] = sums[::-1]


def _light(source: Bias, start: int, most: int) -> Light | None:
    """The kernel that sums one by one, where at most `most` terms give 128 bits."""
    y = 32
    while y <= most:
        with precision(128):
            size = to_arb(source.direct({n: fmpq(start + y)}))
            if not size < -120:
                y *= 2
                continue
            trial = Light(start, S.Zero, source, start + y)
            bound = trial.rest(start + y)
            if bound.is_finite() and bound < arb(2) ** -150 * source.term(start):
                return trial
        y *= 2
    return None


# -- analytic tails -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Analytic(Kernel):
    """Euler-Maclaurin for a bias that is analytic on a sector; see the module's description."""

    source: Bias
    depth: int
    t: Symbol
    h: Expr
    theta: float
    sector: int
    caches: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    max_bits = 1_100

    @property
    def settled(self) -> int:
        if "settled" in self.caches:
            return int(self.caches["settled"])
        raise Unreachable("the bias is not proved to be monotone")

    @property
    def checked(self) -> bool:
        return False

    # the integral, in t

    def _to_t(self, x: arb) -> arb:
        for _ in range(self.depth):
            x = x.log()
        return x

    def _exponent(self, t: arb) -> arb:
        value = compile_complex(self._form(t), self.t)(acb(t), True)
        if not value.is_finite():
            raise Unreachable("the integrand is not analytic on the whole half-line")
        return value.real

    def rest(self, t: arb, goal: arb) -> arb:
        """A bound of int_t^oo e^h, below `goal` where that is proved."""
        proofs: list[tuple[arb, arb]] = self.caches.setdefault("rests", [])
        with precision(128):
            t = t.mid()
            best = arb.pos_inf()
            for since, c in proofs:
                if since <= t:
                    best = best.min((-c * t).exp() / c)
            if best < goal:
                return best
            logs, size = t, self._exponent(t)
            for _ in range(self.depth - 1):
                logs = logs.exp()
            try:
                g = self._on_half_line(logs)
                for share in (0.95, 0.8, 0.5):
                    c = (-size / t * arb(share)).mid()
                    if c > 0 and t > 0 and falls(g, c, self.depth):
                        proofs.append((t, c))
                        return best.min((-c * t).exp() / c)
            except Unproved:
                pass
            return best

    def _on_half_line(self, log_x: arb) -> Majorant:
        where = beyond(log_x)
        return majorant(self.h, self.t, Majorant(where, {level(self.depth): fmpq(1)}))

    def _panel(self, a: arb, b: arb) -> arb:
        """int_a^b e^h by the Gauss-Legendre rule of K points: with |e^h| <= M on the ellipse of
        foci a, b and semi-axes summing to rho (b-a)/2, its error is at most
        (b-a)/2 (64/15) M rho^{2-2K} / (1 - rho^{-2}).
        """
        check_time()
        parts, total = [(a, b)], arb(0)
        while parts:
            low, high = parts.pop()
            found = self._gauss(low, high)
            if found is None:
                middle = ((low + high) / 2).mid()
                if high - low < fmpq(1, 512):
                    raise Unreachable("the integrand is not analytic near the half-line")
                parts += [(low, middle), (middle, high)]
            else:
                total += found
        return total

    def _gauss(self, a: arb, b: arb) -> arb | None:
        bits, program = ctx.prec, compile_complex(self._form(a), self.t)
        half, centre = (b - a) / 2, (a + b) / 2
        height = program(acb(centre), True).real
        for rho in (4, 2):
            sup = self._sup_on_ellipse(program, centre, half, rho)
            if sup - height < 60:
                break
        else:
            return None
        loss = max(0.0, float(sup - height)) / math.log(2)
        points = 16 + 16 * int((bits + 8 + loss) / (32 * math.log2(rho)))
        total = arb(0)
        for node, weight in _nodes(points, bits):
            value = program(acb(centre + half * node), True).real
            if not value.is_finite():
                return None
            total += weight * value.exp()
        error = sup.exp() * arb(rho) ** (2 - 2 * points) * 64 / 15 / (1 - arb(rho) ** -2)
        return half * total * self._slack(a) + arb(0, (half * error).upper())

    def _sup_on_ellipse(self, program: Any, centre: arb, half: arb, rho: int) -> arb:
        """sup h on a rectangle around the ellipse; h is conjugate at conjugate points."""
        across, up = 6, 2
        with precision(64):
            wide = (half * (rho + fmpq(1, rho)) / 2).upper() / across
            tall = (half * (rho - fmpq(1, rho)) / 2).upper() / up / 2
            best = arb.neg_inf()
            for i in range(across):
                for k in range(up):
                    middle = centre + wide * (2 * i + 1 - across)
                    box = acb(
                        middle + arb(0, wide.upper()), tall * (2 * k + 1) + arb(0, tall.upper())
                    )
                    value = program(box, True).real
                    if not value.is_finite():
                        return arb.pos_inf()
                    best = best.max(value.upper())
            return best.upper()

    def _form(self, t: arb) -> Expr:
        """h, without the terms that are below 2^-bits from t on."""
        return self._far_form()[1] if self._far_form()[0] < t else self.h

    def _slack(self, t: arb) -> arb:
        """What the terms left out by `_form` may change, as a factor."""
        return 1 + arb(0, self._far_form()[2]) if self._far_form()[0] < t else arb(1)

    def _far_form(self) -> tuple[arb, Expr, arb]:
        key = ("far", ctx.prec)
        if key not in self.caches:
            bits = ctx.prec
            with precision(128):
                since = (bits + 24) * arb(2).log()
                for _ in range(self.depth - 1):
                    since = since.log()
                since = since.mid()
                log_x = since
                for _ in range(self.depth - 1):
                    log_x = log_x.exp()
                variable = Majorant(beyond(log_x), {level(self.depth): fmpq(1)})
                self.caches[key] = since, *self._without_tiny(variable, arb(2) ** -(bits + 8))
        return self.caches[key]

    def _without_tiny(self, variable: Majorant, goal: arb) -> tuple[Expr, arb]:
        """h with its tiny sub-expressions set to 0, and a bound of what that changes:
        sum |dh/dtau_i| |tau_i|, the derivatives anywhere between 0 and tau."""
        if self.h.count_ops() > MAX_OPERATIONS:
            return self.h, arb(0)
        names: dict[Expr, Symbol] = {}
        sizes: dict[Expr, Majorant] = {}

        def mark(e: Expr) -> Expr:
            if not e.has(self.t) or e == self.t:
                return e
            if e.is_Function:
                try:
                    value = majorant(e, self.t, variable)
                    if abs(value.small()).upper() < goal:
                        name = names.setdefault(e, sympy.Dummy())
                        sizes[name] = value.with_zero()
                        return name
                except Unproved:
                    pass
            return e.func(*(mark(a) for a in e.args))

        marked, loss = mark(self.h), arb(0)
        try:
            for name, value in sizes.items():
                slope = majorant(sympy.diff(marked, name), self.t, variable, sizes)
                loss += abs((slope * value).small()).upper()
        except Unproved:
            return self.h, arb(0)
        if not loss < goal:
            return self.h, arb(0)
        return marked.subs(dict.fromkeys(sizes, 0)), (2 * loss).upper()

    def _edge(self, k: int) -> arb:
        """Panel edges: unit steps first, then up to a quarter more each, shorter where h falls by
        more than `DROP` on a panel."""
        edges: list[tuple[arb, arb]] = self.caches.setdefault("edges", [])
        with precision(64):
            if not edges:
                first = arb(FIRST_EDGES[self.depth - 1])
                edges.append((first, self._exponent(first)))
            while len(edges) <= k:
                at, height = edges[-1]
                width = arb(1).max(at / 4)
                while True:
                    trial = (at + width).mid()
                    value = self._exponent(trial)
                    if value - height > -DROP or width < fmpq(1, 1024):
                        break
                    width /= 2
                edges.append((trial, value))
        return edges[k][0]

    def area_t(self, t: arb) -> arb:
        """int_t^oo e^h; panels are shared between nearby precisions."""
        bits = next((b for b in LEVELS if b >= ctx.prec), ctx.prec)
        with precision(bits):
            return self._area(t)

    def _area(self, t: arb) -> arb:
        bits, k = ctx.prec, 0
        while not self._edge(k) > t:
            k += 1
        panels = self.caches.setdefault(("panels", bits), {})
        total = self._panel(t, self._edge(k))
        for i in range(k, k + MAX_PANELS):
            edge, height = self._edge(i), self._exponent(self._edge(i))
            if height.exp() * (abs(edge) + 1) < total * arb(2) ** -(bits + 4):
                rest = self.rest(edge, total * arb(2) ** -bits)
                if rest < total * arb(2) ** -(bits - 4):
                    return total + arb(0).union(rest.upper())
            if i not in panels:
                panels[i] = self._panel(edge, self._edge(i + 1))
            total += panels[i]
        raise Unreachable("the integral of exp(p) is not bounded within its panels")

    def integral(self, x: arb) -> arb:
        return self.area_t(self._to_t(x))

    def density(self, x: arb) -> arb:
        return self._log_density(x.log()).exp()

    def _log_density(self, s: arb) -> arb:
        return compile_complex(self.source.in_s, self.source.s)(acb(s), False).real

    # derivatives and remainder at N

    def _column(self, i: int) -> arb:
        """sup Re p on i COLUMN <= Re s <= (i+1) COLUMN, |Im s| <= asin theta."""
        columns = self.caches.setdefault("columns", {})
        if i not in columns:
            if len(columns) > MAX_COLUMNS:
                raise Unreachable("the sector starts too far out")
            if i % 64 == 0:
                check_time()
            with precision(64):
                program = compile_complex(self.source.in_s, self.source.s)
                angle = math.nextafter(math.asin(self.theta), 4)
                centre, parts, best = (i + 0.5) * COLUMN, 3, arb.neg_inf()
                for k in range(parts):
                    middle = angle * (k + 0.5) / parts
                    box = acb(arb(centre, COLUMN / 2), arb(middle, angle / parts / 2 * 1.001))
                    value = program(box, True)
                    best = best.max(value.real.upper()) if value.is_finite() else arb.pos_inf()
                    if not value.is_finite():
                        break
                columns[i] = best.upper()
        return columns[i]

    def _sup(self, low: arb, high: arb) -> arb:
        """sup Re p where low <= Re s <= high, by columns."""
        first = int((low / COLUMN).floor().unique_fmpz() or float(low) // COLUMN - 1)
        last = int((high / COLUMN).floor().unique_fmpz() or float(high) // COLUMN + 1)
        return max((self._column(i) for i in range(first, last + 1)), key=float)

    def remainder(self, at: int, m: int) -> arb:
        """A bound of int_at^oo |f^(2m)| / (2m)!."""
        with precision(64 + at.bit_length()):
            theta, u = arb(self.theta), arb(at).log()
            down, up = (1 - theta).log(), (1 + theta).log()
            total, ratio = arb(0), arb(COLUMN)
            edge = arb(self.sector).log()
            a = u
            while True:
                b = a + ratio
                sup = self._sup(a + down, b + up)
                block = (sup + b - 2 * m * (theta.log() + a)).exp() * ratio
                total += block
                a = b
                if not total.is_finite():
                    return arb.pos_inf()
                if a + down > edge:
                    q = 2 * m + arb(ENVELOPE) - 1
                    far = (-q * a - 2 * m * theta.log() - arb(ENVELOPE) * down).exp() / q
                    if far < total * fmpq(1, 1000) or a - u > 30:
                        return total + far

    def _coefficients(self, at: int, m: int, bits: int) -> list[arb]:
        """Taylor coefficients c_0 .. c_{2m-1} of f at `at`, from the circle of radius r < R."""
        few = 8 * m + 8
        if few < bits // 2:
            points = few
            ratio = -(-(bits + 8) // (points - 2 * m))
        else:
            points, ratio = (bits + 16) // 2, 2
            points = max(points, 2 * m + (bits + 8) // 2)
        with precision(bits + ratio * 2 * m + at.bit_length() + 64):
            big = arb(self.theta) * at
            r = big / arb(2) ** ratio
            program = compile_complex(self.source.in_s, self.source.s)
            values = []
            half = points // 2
            points = 2 * half
            for k in range(half + 1):
                angle = acb(fmpq(k, half)).exp_pi_i()
                w = at + r * angle
                values.append(program(w.log(), False).exp())
            values += [v.conjugate() for v in values[half - 1 : 0 : -1]]
            roots = [acb(fmpq(2 * k, points)).exp_pi_i() for k in range(points)]
            theta = arb(self.theta)
            centre = arb(at).log()
            sup = self._sup(centre + (1 - theta).log(), centre + (1 + theta).log()).exp()
            out = []
            for k in range(2 * m):
                total = arb(0)
                for i, v in enumerate(values):
                    total += (v * roots[-(i * k) % points]).real
                # aliasing: c_{k + l points} r^{l points}, l >= 1
                drop = arb(2) ** (-ratio * points)
                error = (sup * drop / (1 - drop) / big**k).upper()
                out.append(total / points / r**k + arb(0, error))
            return out

    def euler_maclaurin(self, at: int, m: int) -> arb:
        """sum_{i>=at} f(i)."""
        bits = ctx.prec
        c = self._coefficients(at, m, bits)
        total = self.integral(arb(at)) + c[0] / 2
        for k in range(1, m + 1):
            total -= arb(fmpq.bernoulli(2 * k)) / (2 * k) * c[2 * k - 1]
        bound = abs(arb(fmpq.bernoulli(2 * m))) * self.remainder(at, m)
        return total + arb(0, bound.upper())

    def _order(self, at: int, bits: int) -> int:
        """The least m for which 2 (2m)! (2 pi theta N)^{-2m} is below the precision."""
        size = math.log(2 * math.pi * self.theta) + float(arb(at).log())
        goal = -(bits + 4) * math.log(2) - 2
        for m in range(2, bits // 4 + 4):
            if math.lgamma(2 * m + 1) - 2 * m * size + 2 < goal:
                return m
        return 0

    def _base(self, bits: int) -> tuple[int, list[arb]]:
        """N and the sums from each i <= N, at which the precision is reached."""
        key = ("base", bits)
        if key not in self.caches:
            at = max(self.start + 2, bits // 2 + 16)
            while not self._order(at, bits):
                at += at // 2
            while True:
                check_time()
                with precision(bits + 32):
                    try:
                        value = self.euler_maclaurin(at, self._order(at, bits) or bits // 8)
                    except Unreachable:
                        if at > 4096:
                            raise
                        value = arb(0, arb.pos_inf())
                if value.is_finite() and value.rel_accuracy_bits() >= bits - 4:
                    break
                at *= 2
                if at > MAX_TERMS // 2:
                    raise Unreachable("Euler-Maclaurin does not reach the precision")
            sums = [value]
            with precision(bits + 32):
                for i in range(at - 1, self.start - 1, -1):
                    value = value + self.source.term(i)
                    sums.append(value)
            self.caches[key] = at, sums[::-1]
        return self.caches[key]

    def tail(self, j: int) -> arb:
        bits = ctx.prec
        at, sums = self._base(bits)
        if j <= at:
            return sums[j - self.start]
        last, value = self.caches.get(("last", bits), (0, None))
        with precision(bits + 32):
            if j == last - 1:
                value += self.source.term(j)
            elif j == last + 1:
                value -= self.source.term(last)
            elif j != last:
                value = self.euler_maclaurin(j, self._order(j, bits))
        self.caches["last", bits] = j, value
        return value

    def foresee(self, goal: Callable[[int], arb]) -> int | None:
        """A guess of the least j with T_j < goal(bits), by Newton's method on log of the integral
        against t, at rising precision; None beyond the bounds on digits."""
        with precision(128):
            t, target = arb(1), goal(128).log()
            for _ in range(60):
                area = self.area_t(t)
                step = (area.log() - target) * (area.log() - self._exponent(t)).exp()
                t = (t + step.min(t / 2 + 4).max(-t / 2)).mid()
                if abs(step) < arb(2) ** -60 * (1 + abs(t)):
                    break
            size = t
            for _ in range(self.depth - 1):
                size = size.min(arb(64)).exp()
            if size > self.max_bits:
                return None
        need = 64 + int(float(size) / math.log(2))
        bits = 128
        with precision(need + 64):
            target = goal(max(128, need)).log()
        while True:
            with precision(min(bits, need) + 64):
                area = self.area_t(t)
                t = (t + (area.log() - target) * (area.log() - self._exponent(t)).exp()).mid()
            if bits >= need:
                break
            bits *= 2
        with precision(need + 64):
            for _ in range(self.depth):
                t = t.exp()
            return max(1, int((t + fmpq(1, 2)).mid().ceil().unique_fmpz()))

    def far(self, goal: arb) -> tuple[int, arb] | None:
        """The d-fold logarithm, from int_j^oo <= T_j <= int_j^oo + f(j)."""
        with precision(192):
            low, high = self._to_t(arb(2) ** 1000).mid(), None
            step = arb(1)
            if not self.area_t(low) >= goal:
                return None
            while high is None:
                trial = (low + step).mid()
                value = self.area_t(trial)
                if value < goal:
                    high = trial
                else:
                    low, step = trial, step * 2
                    if step > 2**40:
                        return None
            for _ in range(60):
                middle = ((low + high) / 2).mid()
                value = self.area_t(middle)
                if value >= goal:
                    low = middle
                elif value < goal:
                    high = middle
                else:
                    break
            slack = arb(2) ** -40 * (1 + abs(high))
            if not self.area_t((high + slack).mid()) + self._tiny(high) < goal:
                return None
            return self.depth, low.union(high + slack)

    def _tiny(self, t: arb) -> arb:
        """f at the x of t, for x beyond 2^1000: at most e^h / x."""
        return (self._exponent(t) - 690).exp()


def analytic_kernel(p: Expr, start: int) -> Kernel:
    """A kernel for a bias that is analytic on a sector, or falls fast.

    Raises:
        Unrecognised: with the first thing that is not proved.
    """
    try:
        source = read_bias(p)
        found = _light(source, start, 1 << 12) or _heavy(source, start)
    except (Undefined, ZeroDivisionError, ArithmeticError, RecursionError) as reason:
        raise Unrecognised(str(reason) or "a formula that balls do not enclose") from None
    if found is None:
        found = _light(source, start, MAX_TERMS // 2)
    if found is None:
        raise Unrecognised("no bound of the tail is proved")
    return found


def _heavy(source: Bias, start: int) -> Analytic | None:
    with precision(128):
        inner = _inner(source)
        if inner is None:
            return None
        depth, t, h = inner
        for theta in ANGLES:
            at = _sector(source, theta, start)
            if at is not None:
                return Analytic(start, S.Zero, source, depth, t, h, theta, at)
    return None


def _inner(source: Bias) -> tuple[int, Symbol, Expr] | None:
    """(d, t, h) with e^{h(t)} dt falling exponentially in t = L_d."""
    variable, h = source.s, source.in_s
    for depth in range(1, MAX_DEPTH + 1):
        if depth > 1:
            t = Symbol("t" * depth, real=True)
            x = sympy.Dummy(positive=True)
            h, variable = in_logarithm(h.xreplace({variable: x}), x, t), t
        h = sympy.expand_mul(h + variable)
        for start in (4, 8, 16, 40, 100, 400):
            log_x = arb(start)
            for _ in range(depth - 1):
                log_x = log_x.exp()
            try:
                where = beyond(log_x)
                g = majorant(h, variable, Majorant(where, {level(depth): fmpq(1)}))
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
