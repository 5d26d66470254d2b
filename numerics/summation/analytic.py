r"""Sums of any exp-series whose bias is analytic near the half-line, or falls fast: no families.

`Light`: the terms are summed one by one up to a Y with a proved bound of the rest: where
p(x) <= -A log x on [Y, oo) (a `TailEnclosure` proves it), sum_{n>Y} e^{p(n)} <= Y^{1-A}/(A-1).

`Analytic`: Euler-Maclaurin, f = exp(p) on a neighbourhood of the half-line,

    sum_{n>=N} f(n) = int_N^oo f + f(N)/2 - sum_{k<=m} B_{2k}/(2k)! f^{(2k-1)}(N) + R_m,
    |R_m| <= |B_{2m}|/(2m)! int_N^oo |f^{(2m)}|,

* the integral in the variable t = log ... log x (d-fold, d the least with e^{h(t)} dt falling
  exponentially), panel by panel by rigorous quadrature of the symbolically simplified h, with the
  rest beyond the last panel bounded by e^{-cS}/c, h(t) <= -c t on [S, oo) by a majorant;
* the derivatives at N by arithmetic of power series of balls;
* the remainder by Cauchy's estimate |f^{(2m)}(u)| <= (2m)! (theta u)^{-2m} sup |f| on the disc of
  radius theta u: block by block from balls, beyond the last block from a majorant on the sector.

All bounds are (ours).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import sympy
from flint import acb, arb, arb_series, ctx, fmpq
from sympy import Expr, S, Symbol

from farfield.numerics.enclosures.logarithm import elementary, in_logarithm
from farfield.numerics.enclosures.programs import compile_complex, compile_real
from farfield.numerics.enclosures.tails import (
    UNIT,
    Beyond,
    TailEnclosure,
    Unproved,
    growth,
    level,
    raised,
    tail_enclosure,
    times,
)
from farfield.numerics.enclosures.tails import (
    log as log_of,
)
from farfield.numerics.outcomes import Unrecognised, recognising
from farfield.numerics.summation.families import Composed, Kernel, first_below, suffix_sums
from farfield.numerics.summation.normal_form import sign
from farfield.theory.algebra import door
from farfield.theory.algebra.budget import check_time
from farfield.theory.algebra.outcomes import Undecided, Unreachable
from farfield.theory.functions.balls import Undefined, precision, to_arb
from farfield.theory.functions.elementary import expm1, expm1_rest, log1p, log1p_rest
from farfield.theory.functions.nodes import n
from farfield.theory.values import compile_ball

_RESTS = {log1p: log1p_rest, expm1: expm1_rest}
MAX_DEPTH = 4
MAX_OPERATIONS = 120
MAX_TERMS = 1 << 17
MAX_COLUMNS = 6_000
MAX_PANELS = 2_000
COLUMN = 0.125
DROP = 40
FIRST_EDGE = 3.75
STEP = 1.5
LEVELS = (96, 128, 192, 320, 576, 832, 1_216)
POINTS = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384)
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

    def real(self, log_x: arb) -> TailEnclosure:
        """p on [x, oo)."""
        where = beyond(log_x)
        return tail_enclosure(self.in_s, self.s, TailEnclosure(where, {level(1): fmpq(1)}))

    def is_steep(self, a: arb, log_x: arb) -> bool:
        """Whether p < -a log n is proved on [x, oo), by itself or between the logarithms of -p and
        a log n, taken up to three times; p(x) < -a log x is given."""
        try:
            if falls(self.real(log_x), a, 1):
                return True
        except Unproved:
            pass
        where = beyond(log_x)
        known = TailEnclosure(where, {level(2): fmpq(1), UNIT: acb(a.log())})
        for log in self.logs:
            try:
                minus = tail_enclosure(-log, self.s, TailEnclosure(where, {level(1): fmpq(1)}))
                if not minus.real():
                    return False
                if (known + minus).negative():
                    return True
                known = log_of(known)
            except (Unproved, Unrecognised):
                return False
        return False

    @cached_property
    def logs(self) -> list[Expr]:
        """log(-p), log log(-p), ... in s, as far as they are of use for what outgrows powers."""
        x, found, minus = Symbol("x", positive=True), [], -self.p.xreplace({n: Symbol("x")})
        minus = elementary(minus.xreplace({Symbol("x"): x}))
        for _ in range(3):
            minus = door.expand_log(sympy.log(minus), force=True)
            try:
                found.append(in_logarithm(minus, x, self.s))
            except (Unrecognised, Undecided, Undefined):
                break
        return found

    def on_sector(self, log_x: arb, theta: float) -> TailEnclosure:
        """p on the points kappa x', x' >= x, |kappa| = 1, |arg kappa| <= asin theta."""
        angle = arb(math.nextafter(math.asin(theta), 4))
        kappa = acb(arb(0), arb(0, angle))
        where = beyond(log_x)
        start = TailEnclosure(where, {level(1): fmpq(1), UNIT: kappa})
        return tail_enclosure(self.in_s, self.s, start)


def falls(g: TailEnclosure, c: Any, k: int) -> bool:
    """Whether g + c L_k is proved negative on the half-line."""
    rate = TailEnclosure(g.where, {level(k): c if isinstance(c, fmpq) else acb(c)})
    return (g + rate).negative()


def rises(g: TailEnclosure) -> bool:
    """Whether -g is proved negative and g does not tend to 0: no tail is bounded then."""
    minus = g.shifted(UNIT, fmpq(-1))
    return growth(next(iter(g.terms))) >= 0 and minus.negative()


@lru_cache(maxsize=256)
def _nodes(points: int, bits: int) -> list[tuple[arb, arb]]:
    """Nodes and weights of the Gauss-Legendre rule."""
    half = [arb.legendre_p_root(points, k, weight=True) for k in range((points + 1) // 2)]
    mirror = [(-x, w) for x, w in half[: points // 2]]
    return half + mirror


@recognising()
def read_bias(p: Expr) -> Bias:
    """The bias in s = log n; Unrecognised for what is not analytic."""
    s = Symbol("s", real=True)
    x = Symbol("x", positive=True)
    in_s = in_logarithm(elementary(p).xreplace({n: x}), x, s)
    return Bias(p, s, in_s, compile_ball(p))


def sign_from(slope: Expr, first: int) -> int:
    """The sign of a function of n on [first, oo), proved."""
    if not slope.has(n):
        return sign(slope)
    for side in (1, -1):
        bias: Bias = read_bias(-side * slope)
        with precision(128):
            try:
                if falls(bias.real(arb(first).log()), fmpq(0), 1):
                    return side
            except Unproved:
                continue
    raise Unrecognised("the sign of an amplitude is not proved")


# -- light tails ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Light(Composed):
    """Terms that fall faster than every power within the reach of a direct sum."""

    source: Bias
    first: int
    sums: dict[int, list[Any]] = field(default_factory=dict, compare=False, repr=False)
    rests: dict[int, arb] = field(default_factory=dict, compare=False, repr=False)

    def rest(self, y: int) -> arb:
        """A bound of sum_{i>=y} exp(p(i)), y >= 2."""
        if y not in self.rests:
            with precision(128):
                self.rests[y] = self._rest(y)
        return self.rests[y]

    def _rest(self, y: int) -> arb:
        log_x = arb(y - 1).log()
        try:
            size = to_arb(self.source.direct({n: fmpq(y - 1)}))
        except Undefined:
            return arb.pos_inf()
        for share in (0.95, 0.75, 0.5, 0.25):
            a = (-size / log_x * arb(share)).mid()
            if a > 2 and self.source.is_steep(a, log_x):
                return ((1 - a) * log_x).exp() / (a - 1)
        return arb.pos_inf()

    def tail(self, j: int) -> arb:
        bits = ctx.prec
        known = self.sums.setdefault(bits, [])
        if not known or j - self.start >= len(known) // 2:
            self._extend(j, bits)
        known = self.sums[bits]
        return known[j - self.start]

    def foresee(self, goal: Callable[[int], arb], most: int) -> int | None:
        """From the sums."""
        with precision(64):
            small, reach = goal(64), 1
            self.tail(self.start)
            while not self.sums[64][reach - 1] < small:
                reach *= 2
                self.tail(self.start + reach - 1)
            return self.start + first_below(self.sums[64][:reach], small)

    def _extend(self, j: int, bits: int) -> None:
        """Suffix sums up to where the rest is below the precision, relative to T_j."""
        upto = max(self.first, j + 64)
        goal = to_arb(self.source.term(j)) * arb(2) ** -(bits + 8)
        while not self.rest(upto) < goal:
            upto = j + 2 * (upto - j)
            if upto - self.start > MAX_TERMS:
                raise Unreachable("too many terms would have to be summed one by one")
        with precision(bits + 32):
            rest = arb(0).union(self.rest(upto).upper())
            sums = suffix_sums(rest, self.source.term, upto, self.start)
        if len(self.sums) > 4:
            self.sums.clear()
        self.sums[bits] = sums


def _light(source: Bias, start: int, most: int) -> Light | None:
    """The kernel that sums one by one, where at most `most` terms give 128 bits."""
    y = 4
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
class Edge:
    """An end of panels: its s where the panel before it is one in s, the exponent there.

    `t` is exact where the panel before is one in t, else rounded.
    """

    t: arb
    near: arb | None
    height: arb


@dataclass(frozen=True)
class Analytic(Kernel):
    """Euler-Maclaurin for a bias that is analytic on a sector; see the module's description."""

    source: Bias
    near: Expr
    depth: int
    t: Symbol
    h: Expr
    theta: float
    sector: int
    caches: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    first_bits: ClassVar[int] = 64  # sums by quadrature are the cheaper the less is asked
    max_bits: ClassVar[int] = 1_100

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
        """h(t), its tiny terms aside."""
        value = compile_real(self.h, self.t)(t)
        if not value.is_finite():
            value = self._height(t, False)
        return value

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

    def _on_half_line(self, log_x: arb) -> TailEnclosure:
        where = beyond(log_x)
        return tail_enclosure(self.h, self.t, TailEnclosure(where, {level(self.depth): fmpq(1)}))

    def _panel(self, a: arb, b: arb, near: bool) -> arb:
        """int_a^b of e^h dt or, `near`, of e^{p + s} ds, by the Gauss-Legendre rule of K points:
        with |e^h| <= M on the ellipse of foci a, b and semi-axes summing to rho (b-a)/2, its error
        is at most (b-a)/2 (64/15) M rho^{2-2K} / (1 - rho^{-2}).
        """
        check_time()
        parts, total = [(a, b)], arb(0)
        while parts:
            low, high = parts.pop()
            found = self._gauss(low, high, near)
            if found is None:
                middle = ((low + high) / 2).mid()
                if high - low < fmpq(1, 512):
                    raise Unreachable("the integrand is not analytic near the half-line")
                parts += [(low, middle), (middle, high)]
            else:
                total += found
        return total if near else total * (1 + arb(0, self._far_form()[1]))

    def _programs(self, near: bool) -> tuple[Any, Any]:
        form, x = (self.near, self.source.s) if near else (self._far_form()[0], self.t)
        return compile_complex(form, x), compile_real(form, x)

    def _gauss(self, a: arb, b: arb, near: bool) -> arb | None:
        bits, (program, real) = ctx.prec, self._programs(near)
        half, centre = (b - a) / 2, (a + b) / 2
        height = real(centre)
        for rho in (4, 2):
            sup = self._sup_on_ellipse(program, centre, half, rho)
            if sup - height < 60:
                break
        else:
            return None
        loss = max(0.0, float(sup - height)) / math.log(2)
        need = (bits + 8 + loss) / (2 * math.log2(rho)) + 1
        points = next((p for p in POINTS if p >= need), 64 * math.ceil(need / 64))
        total = arb(0)
        for node, weight in _nodes(points, bits):
            value = real(centre + half * node)
            if not value.is_finite():
                return None
            total += weight * value.exp()
        error = sup.exp() * arb(rho) ** (2 - 2 * points) * 64 / 15 / (1 - arb(rho) ** -2)
        return half * total + arb(0, (half * error).upper())

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

    def _far_since(self) -> arb:
        """The t from which on terms below 2^-bits are left out: x = 2^(bits + 24)."""
        key = ("since", ctx.prec)
        if key not in self.caches:
            bits = ctx.prec
            with precision(128):
                since = (bits + 24) * arb(2).log()
                for _ in range(self.depth - 1):
                    since = since.log()
                self.caches[key] = since.mid()
        return self.caches[key]

    def _far_form(self) -> tuple[Expr, arb]:
        key = ("far", ctx.prec)
        if key not in self.caches:
            bits, log_x = ctx.prec, self._far_since()
            with precision(128):
                for _ in range(self.depth - 1):
                    log_x = log_x.exp()
                variable = TailEnclosure(beyond(log_x), {level(self.depth): fmpq(1)})
                self.caches[key] = self._without_tiny(variable, arb(2) ** -(bits + 8))
        return self.caches[key]

    def _without_tiny(self, variable: TailEnclosure, goal: arb) -> tuple[Expr, arb]:
        """h with its tiny sub-expressions set to 0, and a bound of what that changes:
        sum |dh/dtau_i| |tau_i|, the derivatives anywhere between 0 and tau."""
        if self.h.count_ops() > MAX_OPERATIONS:
            return self.h, arb(0)
        names: dict[Expr, Symbol] = {}
        sizes: dict[Expr, TailEnclosure] = {}

        def mark(e: Expr) -> Expr:
            if not e.has(self.t) or e == self.t:
                return e
            if e.is_Function:
                try:
                    value = tail_enclosure(e, self.t, variable)
                    if abs(value.small()).upper() < goal:
                        name = names.setdefault(e, sympy.Dummy())
                        sizes[name] = value.with_zero()
                        return name
                except Unproved:
                    pass
            return e.func(*(mark(a) for a in e.args))

        def linear(e: Expr) -> Expr:
            """log1p and expm1 of what is small as it and a rest, so that products cancel."""
            if not e.has(self.t) or e == self.t:
                return e
            e = e.func(*(linear(a) for a in e.args))
            rest = _RESTS.get(e.func)
            if rest is None:
                return e
            try:
                value = tail_enclosure(e.args[0], self.t, variable).small()
            except Unproved:
                return e
            return e.args[0] + rest(e.args[0]) if abs(value).upper() < fmpq(1, 8) else e

        marked, loss = mark(door.expand_mul(linear(self.h))), arb(0)
        try:
            for name, value in sizes.items():
                slope = tail_enclosure(door.diff(marked, name), self.t, variable, sizes)
                loss += abs((slope * value).small()).upper()
        except Unproved:
            return self.h, arb(0)
        if not loss < goal:
            return self.h, arb(0)
        return marked.subs(dict.fromkeys(sizes, 0)), (2 * loss).upper()

    def _edge(self, k: int) -> Edge:
        """Panel edges: steps in s up to x = 2^(bits + 24), steps in t beyond, longer and longer;
        shorter where the exponent falls by more than `DROP` on a panel."""
        edges: list[Edge] = self.caches.setdefault(("edges", ctx.prec), [])
        while len(edges) <= k:
            since = self._far_since()
            with precision(64):
                if not edges:
                    at = arb(FIRST_EDGE)
                    edges.append(Edge(self._down(at), at, self._height(at, True)))
                    continue
                last = edges[-1]
                near = last.near is not None and last.t < since
                at, height = last.t, last.height
                if near and last.near is not None:
                    at = last.near
                elif last.near is not None:
                    height = self._height(at, False)
                width = arb(STEP) if near else arb(1).max(at / 4)
                while True:
                    trial = (at + width).mid()
                    value = self._height(trial, near)
                    if value - height > -DROP or width < fmpq(1, 1024):
                        break
                    width /= 2
                t = self._down(trial).mid() if near else trial
                edges.append(Edge(t, trial if near else None, value))
        return edges[k]

    def _in_t(self, edge: Edge) -> arb:
        return edge.t if edge.near is None else self._down(edge.near)

    def _down(self, s: arb) -> arb:
        for _ in range(self.depth - 1):
            s = s.log()
        return s

    def _up(self, t: arb) -> arb:
        for _ in range(self.depth - 1):
            t = t.exp()
        return t

    def _height(self, at: arb, near: bool) -> arb:
        value = self._programs(near)[1](at)
        if not value.is_finite():
            raise Unreachable("the integrand is not analytic on the whole half-line")
        return value

    def area_t(self, t: arb) -> arb:
        """int_t^oo e^h; panels are shared between nearby precisions."""
        bits = next((b for b in LEVELS if b >= ctx.prec), ctx.prec)
        with precision(bits):
            return self._area(t)

    def _area(self, t: arb) -> arb:
        bits, k, since = ctx.prec, 0, self._far_since()
        while not self._edge(k).t > t:
            k += 1
        panels = self.caches.setdefault(("panels", bits), {})
        if t < since:
            end = self._edge(k)
            total = self._panel(
                self._up(t), self._up(end.t) if end.near is None else end.near, True
            )
        else:
            total = self._panel(t, self._edge(k).t, False)
        for i in range(k, k + MAX_PANELS):
            edge = self._edge(i)
            at = edge.t if edge.near is None else edge.near
            if edge.height.exp() * (abs(at) + 1) < total * arb(2) ** -(bits + 4):
                t = edge.t - (1 + abs(edge.t)) * fmpq(1, 2**40)
                rest = self.rest(t, total * arb(2) ** -bits)
                if rest < total * arb(2) ** -(bits - 4):
                    return total + arb(0).union(rest.upper())
            if i not in panels:
                after = self._edge(i + 1)
                if after.near is not None and edge.near is not None:
                    panels[i] = self._panel(edge.near, after.near, True)
                else:
                    panels[i] = self._panel(self._in_t(edge), after.t, False)
            total += panels[i]
        raise Unreachable("the integral of exp(p) is not bounded within its panels")

    def integral(self, x: arb) -> arb:
        return self.area_t(self._to_t(x))

    def density(self, x: arb) -> arb:
        return self._log_density(x.log()).exp()

    def _log_density(self, s: arb) -> arb:
        return compile_real(self.source.in_s, self.source.s)(s)

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

    def remainder(self, at: int, m: int, end: int | None = None) -> arb:
        """A bound of int_at^end |f^(2m)| / (2m)!, to infinity without `end`."""
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
                if end is not None:
                    if a > arb(end).log():
                        return total
                    continue
                if a + down > edge:
                    q = 2 * m + arb(ENVELOPE) - 1
                    far = (-q * a - 2 * m * theta.log() - arb(ENVELOPE) * down).exp() / q
                    if far < total * fmpq(1, 1000) or a - u > 30:
                        return total + far

    def _coefficients(self, at: int, m: int, bits: int) -> list[arb]:
        """Taylor coefficients c_0 .. c_{2m-1} of f at `at`."""
        before = ctx.cap
        with precision(bits + 2 * at.bit_length() + 2 * m):
            try:
                ctx.cap = 2 * m + 1
                s = arb_series([at, 1]).log()
                series = compile_real(self.source.in_s, self.source.s)(s).exp()
                return [series[k] for k in range(2 * m)]
            finally:
                ctx.cap = before

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
        """The least m for which 2 (2m)! (2 pi theta N)^{-2m} is below the precision, less what the
        bounds of the remainder were seen to lose."""
        size = math.log(2 * math.pi * self.theta) + float(arb(at).log())
        goal = -(bits + 4 + self.caches.get("loss", 0)) * math.log(2) - 2
        for m in range(2, bits // 4 + 4):
            if math.lgamma(2 * m + 1) - 2 * m * size + 2 < goal:
                return m
        return 0

    def _base(self, bits: int) -> tuple[int, list[arb]]:
        """N and the sums from each i <= N, at which the precision is reached."""
        key = ("base", bits)
        if key not in self.caches:
            at = max(self.start + 2, bits // 2 + 16)
            while True:
                check_time()
                order, got = self._order(at, bits), 0
                if order:
                    with precision(bits + 32):
                        try:
                            value = self.euler_maclaurin(at, order)
                            got = value.rel_accuracy_bits() if value.is_finite() else 0
                        except Unreachable:
                            if at > 4096:
                                raise
                if got >= bits - 4:
                    break
                if got > 0 and "loss" not in self.caches:
                    self.caches["loss"] = bits - got + 8
                    continue
                at *= 2
                if at > MAX_TERMS // 2:
                    raise Unreachable("Euler-Maclaurin does not reach the precision")
            with precision(bits + 32):
                sums = suffix_sums(value, self.source.term, at, self.start)
            self.caches[key] = at, sums
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

    def foresee(self, goal: Callable[[int], arb], most: int) -> int | None:
        """A guess of the least j with T_j < goal(bits): from the sums up to N, beyond by Newton's
        method on log of the integral against t, at rising precision; None beyond `max_bits`."""
        with precision(64):
            small, (at, sums) = goal(64), self._base(64)
            if to_arb(sums[-1]) < small:
                return self.start + first_below(sums, small)
            t, target = self._to_t(arb(at)).mid(), small.log()
            for _ in range(60):
                area = self.area_t(t)
                step = (area.log() - target) * (area.log() - self._exponent(t)).exp()
                t = (t + step.min(t / 2 + 4).max(-t / 2)).mid()
                if abs(step) < arb(2) ** -40 * (1 + abs(t)):
                    break
            size = t
            for _ in range(self.depth - 1):
                size = size.min(arb(64)).exp()
            if size > self.max_bits:
                return None
        digits = int(float(size) / math.log(2)) + 1
        last, bits = 64 * (1 + (min(digits, most) + 32) // 64), 64
        with precision(last):
            target = goal(last).log()
        while True:
            with precision(min(bits, last)):
                area = self.area_t(t)
                t = (t + (area.log() - target) * (area.log() - self._exponent(t)).exp()).mid()
            if bits >= last:
                break
            bits *= 2
        with precision(max(last, 64 + 2 * digits)):
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


@dataclass(frozen=True)
class SmoothRow(Analytic):
    """Sums of a stretch by Euler-Maclaurin at both ends; nothing is asked of the tail."""

    @property
    def converges(self) -> bool:
        return False

    def _row_area(self, a: arb, b: arb) -> arb:
        """int_a^b e^{p + s} ds, by panels that are shared."""
        bits = next((k for k in LEVELS if k >= ctx.prec), ctx.prec)
        with precision(bits):
            panels = self.caches.setdefault(("row", bits), {})
            first = int((a / STEP).floor().unique_fmpz() or float(a) // STEP) + 1
            last = int((b / STEP).floor().unique_fmpz() or float(b) // STEP)
            if first > last:
                return self._panel(a, b, True)
            total = self._panel(a, arb(first) * STEP, True)
            for i in range(first, last):
                if i not in panels:
                    panels[i] = self._panel(arb(i) * STEP, arb(i + 1) * STEP, True)
                total += panels[i]
            return total + self._panel(arb(last) * STEP, b, True)

    def between(self, a: int, b: int) -> arb:
        bits = ctx.prec
        with precision(bits + 32):
            at = max(a, bits // 2 + 16)
            while not self._order(at, bits):
                at *= 2
            best = arb(0, arb.pos_inf())
            while at < b and at - a < MAX_TERMS:
                check_time()
                value = self._row_sum(at, b, self._order(at, bits))
                if value.is_finite() and value.rel_accuracy_bits() >= bits - 4:
                    best = value
                    break
                at *= 2
            if not best.is_finite():
                if b - a > MAX_TERMS:
                    raise Unreachable("Euler-Maclaurin does not reach the precision")
                at, best = b, arb(0)
            for i in range(at - 1, a - 1, -1):
                best = best + self.source.term(i)
            return best

    def _row_sum(self, at: int, b: int, m: int) -> arb:
        low, high = (self._coefficients(x, m, ctx.prec) for x in (at, b))
        total = self._row_area(arb(at).log(), arb(b).log()) + (low[0] - high[0]) / 2
        for k in range(1, m + 1):
            difference = high[2 * k - 1] - low[2 * k - 1]
            total += arb(fmpq.bernoulli(2 * k)) / (2 * k) * difference
        bound = abs(arb(fmpq.bernoulli(2 * m))) * self.remainder(at, m, b)
        return total + arb(0, bound.upper())


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
    return SmoothRow(start, S.Zero, source, near, 1, source.s, near, ANGLES[0], start)


def _turns(phase: Expr) -> bool:
    """Whether a phase goes through whole turns between n = 10^3 and 10^5, judged by its values."""
    ends = [phase.subs(n, 10**k).evalf(15) for k in (3, 5)]
    return not (all(e.is_number for e in ends) and abs(ends[1] - ends[0]) < 2 * sympy.pi)


def analytic_kernel(p: Expr, start: int) -> Kernel:
    """A kernel for a bias that is analytic on a sector, or falls fast.

    Raises:
        Unrecognised: with the first thing that is not proved.
    """
    source = read_bias(p)
    with recognising():
        found = _light(source, start, 1 << 12) or _heavy(source, start)
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
                near = door.expand_mul(source.in_s + source.s)
                return Analytic(start, S.Zero, source, near, depth, t, h, theta, at)
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
                where = beyond(log_x)
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
