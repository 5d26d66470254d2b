"""A bias that is analytic around the half-line, in s = log n: its `Sector`, suprema, remainders."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import sympy
from flint import acb, arb, arb_series, ctx, fmpq
from sympy import Expr, Symbol

from farfield.numerics.enclosures.change_of_variable import elementary, in_logarithm
from farfield.numerics.enclosures.compiled import compile_complex, compile_real
from farfield.numerics.enclosures.tails import (
    UNIT,
    HalfLine,
    TailEnclosure,
    Unproved,
    level,
    tail_enclosure,
)
from farfield.numerics.enclosures.tails import (
    log as log_of,
)
from farfield.numerics.search import Unrecognised, recognising
from farfield.numerics.summation.kept_sums import memory, remembered
from farfield.numerics.summation.kernel import decided_sign
from farfield.theory.algebra import door
from farfield.theory.algebra.door import check_time
from farfield.theory.algebra.exceptions import Undecided, Unreachable
from farfield.theory.evaluation.real_balls import Environment
from farfield.theory.functions.balls import Ball, Undefined, precision, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.values import compile_ball

COLUMN = 0.125  # width in log n of the boxes on which a sup is taken
MAX_COLUMNS = 6_000  # boxes that are remembered: log n up to 750
ENVELOPE = fmpq(1, 2)  # f is proved below |w|^-1/2 on the sector


def half_line(log_x: arb) -> HalfLine:
    """The half-line from x on, with the iterated logarithms that exist."""
    logs = [log_x]
    while len(logs) < 8 and logs[-1] > 0:
        logs.append(logs[-1].log())
    return HalfLine(tuple(logs))


@dataclass(frozen=True)
class Bias:
    """A bias in the variable s = log n, with the balls and bounds that all sums need."""

    p: Expr
    s: Symbol
    in_s: Expr
    direct: Callable[[Environment], Ball] = field(compare=False, repr=False)

    def term(self, j: int) -> Ball:
        """exp(p(j))."""
        return to_arb(self.direct({n: fmpq(j)})).exp()

    @remembered
    def integrand(self) -> Expr:
        """The logarithm of exp(p) dn/ds, in s."""
        return door.expand_mul(self.in_s + self.s)

    def real(self, log_x: arb) -> TailEnclosure:
        """p on [x, oo)."""
        where = half_line(log_x)
        return tail_enclosure(self.in_s, self.s, TailEnclosure(where, {level(1): fmpq(1)}))

    def is_steep(self, a: arb, log_x: arb) -> bool:
        """Whether p < -a log n is proved on [x, oo), by itself or between the logarithms of -p and
        a log n, taken up to three times. p(x) < -a log x is given."""
        with suppress(Unproved):
            if falls(self.real(log_x), a, 1):
                return True
        where = half_line(log_x)
        variable = TailEnclosure(where, {level(2): fmpq(1), UNIT: acb(a.log())})
        for log in self.logs():
            try:
                minus = tail_enclosure(-log, self.s, TailEnclosure(where, {level(1): fmpq(1)}))
                if not minus.real():
                    return False
                if (variable + minus).negative():
                    return True
                variable = log_of(variable)
            except (Unproved, Unrecognised):
                return False
        return False

    @remembered
    def logs(self) -> list[Expr]:
        """log(-p), log log(-p), ... in s, as far as they are of use for what outgrows powers."""
        x, logs, minus = Symbol("x", positive=True), [], -self.p.xreplace({n: Symbol("x")})
        minus = elementary(minus.xreplace({Symbol("x"): x}))
        for _ in range(3):
            minus = door.expand_log(sympy.log(minus), force=True)
            try:
                logs.append(in_logarithm(minus, x, self.s))
            except (Unrecognised, Undecided, Undefined):
                break
        return logs

    def on_sector(self, log_x: arb, theta: float) -> TailEnclosure:
        """p on the points kappa x', x' >= x, |kappa| = 1, |arg kappa| <= asin theta."""
        angle = arb(math.nextafter(math.asin(theta), 4))
        kappa = acb(arb(0), arb(0, angle))
        where = half_line(log_x)
        start = TailEnclosure(where, {level(1): fmpq(1), UNIT: kappa})
        return tail_enclosure(self.in_s, self.s, start)


def falls(g: TailEnclosure, c: object, k: int) -> bool:
    """Whether g + c L_k is proved negative on the half-line."""
    rate = TailEnclosure(g.where, {level(k): c if isinstance(c, fmpq) else acb(c)})
    return (g + rate).negative()


def positive(g: TailEnclosure) -> bool:
    """Whether g is proved positive on the half-line: the integral of e^g diverges then."""
    return g.shifted(UNIT, fmpq(-1)).negative()


@recognising()
def read_bias(p: Expr) -> Bias:
    """The bias in s = log n; Unrecognised where it is not analytic."""
    s = Symbol("s", real=True)
    x = Symbol("x", positive=True)
    in_s = in_logarithm(door.replaced(elementary(p), {n: x}), x, s)
    return Bias(p, s, in_s, compile_ball(p))


def sign_from(slope: Expr, first: int) -> int:
    """The sign of a function of n on [first, oo), proved."""
    if not slope.has(n):
        return decided_sign(slope)
    for side in (1, -1):
        bias: Bias = read_bias(-side * slope)
        with precision(128), suppress(Unproved):
            if falls(bias.real(arb(first).log()), fmpq(0), 1):
                return side
    raise Unrecognised("the sign of an amplitude is not proved")


@dataclass(frozen=True)
class Sector:
    """The points with |arg w| <= asin theta; |f(w)| <= |w|^{-1/2} is proved from `first` on."""

    source: Bias
    theta: float
    first: int

    def _column(self, i: int) -> arb:
        """sup Re p on i COLUMN <= Re s <= (i+1) COLUMN, |Im s| <= asin theta."""
        columns = memory(self).setdefault("columns", {})
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
            edge = arb(self.first).log()
            a = u
            while True:
                b = a + ratio
                sup = self._sup(a + down, b + up)
                total += (sup + b - 2 * m * (theta.log() + a)).exp() * ratio
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

    def coefficients(self, at: int, m: int) -> list[arb]:
        """The 2m Taylor coefficients of f at `at`."""
        before = ctx.cap
        with precision(ctx.prec + 2 * at.bit_length() + 2 * m):
            p = compile_real(self.source.in_s, self.source.s)
            try:
                ctx.cap = 2 * m + 1
                series = p(arb_series([arb(at), 1]).log()).exp()
                return [series[k] for k in range(2 * m)]
            finally:
                ctx.cap = before

    def order(self, at: int, goal: int) -> int:
        """The least m for which 2 (2m)! (2 pi theta N)^{-2m} is below 2^-goal, or 0."""
        size = math.log(2 * math.pi * self.theta) + float(arb(at).log())
        losses = ((m, math.lgamma(2 * m + 1) - 2 * m * size) for m in range(2, goal // 4 + 4))
        return next((m for m, loss in losses if loss + 2 < -goal * math.log(2) - 2), 0)
