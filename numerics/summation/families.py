"""Families of exp-series with certified sums: `exp(p(n))` on a stretch `n >= start`.

Each kernel gives `tail(j) = sum_{n>=j} exp(p(n))` and `between(a, b) = sum_{a<=n<b} exp(p(n))`
as balls at the precision at work (see `farfield.theory.evaluation.balls.precision`).

* `Constant`, `Geometric`, `Power` have closed forms (the last by the Hurwitz zeta function).
* `Stretched`, `LogNormal`, `Rational` use the Euler-Maclaurin formula: with f(x) = exp(p(x)),

      sum_{n>=N} f(n) = int_N^oo f + f(N)/2 - sum_{k<=m} B_{2k}/(2k)! f^{(2k-1)}(N) + R_m,
      |R_m| <= |B_{2m}|/(2m)! int_N^oo |f^{(2m)}|,

  where the integral of f has a closed form and that of |f^{(2m)}| is bounded in one of two ways:
  if f is completely monotone it is |f^{(2m-1)}(N)|; otherwise by Cauchy's estimate on the circles
  of radius theta u around u = x + h, |f^{(2m)}| <= (2m)! (theta u)^{-2m} sup |f|, and the sup is
  bounded for each family by hand. Where f decreases, also sum_{n>=N} f(n) - int_N^oo f lies in
  [0, f(N)]. All bounds are (ours).
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import sympy
from flint import acb, arb, arb_series, ctx, fmpq
from sympy import Expr, S

from farfield.numerics.outcomes import Unrecognised
from farfield.numerics.summation.normal_form import NormalForm, normal_form, sign
from farfield.theory.algebra import door
from farfield.theory.algebra.budget import check_time
from farfield.theory.algebra.outcomes import Undecided, Unreachable
from farfield.theory.functions.balls import precision, rational, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.values import compile_ball

MAX_SHIFT = 1 << 16
MAX_EXACT = 1_024
MAX_BASES = 8
MAX_EVALUATIONS = 40_000


def number(e: Expr) -> arb:
    """A constant as a ball at the precision at work."""
    return to_arb(compile_ball(e)({}))


def _above(e: Expr) -> int:
    """An integer not below a constant, close to it."""
    with precision(256):
        return int(number(e).upper().ceil().unique_fmpz())


@dataclass(frozen=True)
class Kernel:
    """exp(p) on `n >= start`; `gamma` is the constant of p.

    `converges` tells whether the series does; p is monotone from the integer `settled` on, and
    `direction` is the sign of its slope there. Sums begin at the precision `first_bits`; receptive
    fields are sought as integers of up to `max_bits`.
    """

    start: int
    gamma: Expr

    first_bits: ClassVar[int] = 128
    max_bits: ClassVar[int] = 3_400

    @property
    def converges(self) -> bool:
        return True

    @property
    def settled(self) -> int:
        return self.start

    @property
    def direction(self) -> int:
        return -1

    @property
    def checked(self) -> bool:
        """Whether the kernel's structure proves that every term is defined and finite."""
        return True

    def foresee(self, goal: Callable[[int], arb], most: int) -> int | None:
        """A guess of the least j with T_j < goal(bits), a ball at that precision; None for none.

        It is rough where j has more than `most` bits.
        """
        return None

    def tail(self, j: int) -> arb:
        """sum_{n>=j} exp(p(n)), j >= start; the series must converge."""
        raise NotImplementedError

    def between(self, a: int, b: int) -> arb:
        """sum_{a<=n<b} exp(p(n)), a >= start."""
        if not self.converges:
            raise Unreachable("no closed form for the partial sums of this divergent series")
        return self.tail(a) - self.tail(b)

    def integral(self, x: arb) -> arb:
        """int_x^oo exp(p), for real x where p is decreasing."""
        raise Unreachable("no closed form for the integral")

    def density(self, x: arb) -> arb:
        """exp(p(x)) for real x."""
        raise Unreachable("no extension to real distances")

    def far(self, goal: arb) -> tuple[int, arb] | None:
        """(d, y) with y a ball of the d-fold logarithm of the least j with T_j < goal, for j beyond
        2^1000; None where the kernel knows no such formula."""
        return None

    def asymptotics(self) -> str | None:
        """TRF(eps) as eps -> 0, in LaTeX; None where no formula is known."""
        return None


class Composed(Kernel):
    """A kernel that proves neither monotony nor that its terms are defined."""

    @property
    def settled(self) -> int:
        raise Unreachable("the bias is not proved to be monotone")

    @property
    def checked(self) -> bool:
        return False


def terms(p: Expr) -> Callable[[int], arb]:
    """i -> exp(p(i)), a ball at the precision at work."""
    run = compile_ball(p)
    return lambda i: to_arb(run({n: fmpq(i)})).exp()


def suffix_sums(value: Any, term: Callable[[int], Any], at: int, start: int) -> list[Any]:
    """T_start, ..., T_at from T_at = value and the terms before it."""
    sums = [value]
    for i in range(at - 1, start - 1, -1):
        if i % 1024 == 0:
            check_time()
        value = value + term(i)
        sums.append(value)
    return sums[::-1]


def first_below(sums: list[Any], goal: arb) -> int:
    """The place of the first of falling balls that is below the goal, as far as balls tell."""
    return bisect.bisect_left(sums, True, key=lambda value: bool(value < goal))


@dataclass(frozen=True)
class Direct(Composed):
    """The terms of `source` one by one up to an N, not before `first`; T_j from N on is enclosed by
    `_beyond`."""

    source: Expr
    first: int
    caches: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False, kw_only=True)

    def _beyond(self, j: int) -> arb:
        """T_j, j >= N."""
        raise NotImplementedError

    def _end(self, bits: int) -> tuple[int, arb]:
        """N and T_N, for sums of `bits` bits."""
        with precision(bits + 32):
            return self.first, self._beyond(self.first)

    def _base(self, bits: int) -> tuple[int, list[arb]]:
        """N and the sums from each i <= N."""
        known = self.caches.setdefault("base", {})
        if bits not in known:
            at, value = self._end(bits)
            with precision(bits + 32):
                sums = suffix_sums(value, terms(self.source), at, self.start)
            if len(known) > MAX_BASES:
                known.clear()
            known[bits] = at, sums
        return known[bits]

    def tail(self, j: int) -> arb:
        at, sums = self._base(ctx.prec)
        if j <= at:
            return sums[j - self.start]
        with precision(ctx.prec + 16):
            return self._beyond(j)


@dataclass(frozen=True)
class Averaged(Direct):
    """A bias q with oscillations, whose T_j is near `mean` times the sum of `base` far out.

    `smooth` is q.
    """

    smooth: Expr
    base: Kernel

    @property
    def converges(self) -> bool:
        return self.base.converges

    def mean(self) -> arb:
        """The weight of the sum of `base` in T_j."""
        return arb(1)

    def foresee(self, goal: Callable[[int], arb], most: int) -> int | None:
        with precision(64):
            small, (_, sums) = goal(64), self._base(64)
            if to_arb(sums[-1]) < small:
                return self.start + first_below(sums, small)

        def share(bits: int) -> arb:
            with precision(bits):
                return goal(bits) / self.mean()

        return self.base.foresee(share, most)


@dataclass(frozen=True)
class Constant(Kernel):
    """p = gamma."""

    @property
    def converges(self) -> bool:
        return False

    @property
    def direction(self) -> int:
        return 0

    def between(self, a: int, b: int) -> Any:
        return (b - a) * compile_ball(sympy.exp(self.gamma))({})


@dataclass(frozen=True)
class Geometric(Kernel):
    """p = gamma + alpha n: tail e^gamma e^{alpha j} / (1 - e^alpha)."""

    alpha: Expr

    @property
    def converges(self) -> bool:
        return sign(self.alpha) < 0

    @property
    def direction(self) -> int:
        return sign(self.alpha)

    @cached_property
    def _exact(self) -> tuple[fmpq, fmpq] | None:
        """e^gamma and e^alpha, where they are rational."""
        first, ratio = sympy.exp(self.gamma), sympy.exp(self.alpha)
        if first.is_Rational and ratio.is_Rational:
            return rational(first), rational(ratio)
        return None

    def tail(self, j: int) -> Any:
        if j <= MAX_EXACT and self._exact is not None:
            first, ratio = self._exact
            return first * ratio**j / (1 - ratio)
        a = number(self.alpha)
        return (number(self.gamma) + a * j).exp() / -a.expm1()

    def between(self, a: int, b: int) -> arb:
        slope = number(self.alpha)
        first = (number(self.gamma) + slope * a).exp()
        return first * (slope * (b - a)).expm1() / slope.expm1()

    def asymptotics(self) -> str:
        return rf"\left\lfloor {_over(_LOG, -self.alpha)} \right\rfloor + 1"


@dataclass(frozen=True)
class Power(Kernel):
    """p = gamma - r log(n + h): tail e^gamma zeta(r, j + h), Hurwitz.

    The difference of two Hurwitz zeta values is the partial sum for every r != 1 by analytic
    continuation; at r = 1 the digamma function takes its place.
    """

    h: Expr
    r: Expr

    @property
    def converges(self) -> bool:
        return sign(self.r - 1) > 0

    @property
    def direction(self) -> int:
        return -sign(self.r)

    def tail(self, j: int) -> arb:
        return number(self.gamma).exp() * number(self.r).zeta(j + number(self.h))

    def between(self, a: int, b: int) -> arb:
        h, scale = number(self.h), number(self.gamma).exp()
        if sign(self.r - 1) == 0:
            return scale * ((b + h).digamma() - (a + h).digamma())
        r = number(self.r)
        return scale * (r.zeta(a + h) - r.zeta(b + h))

    def integral(self, x: arb) -> arb:
        r = number(self.r)
        u = x + number(self.h)
        return (number(self.gamma) + (1 - r) * u.log()).exp() / (r - 1)

    def density(self, x: arb) -> arb:
        return (number(self.gamma) - number(self.r) * (x + number(self.h)).log()).exp()

    def far(self, goal: arb) -> tuple[int, arb]:
        return 1, _root(goal, self.gamma, self.r)

    def asymptotics(self) -> str:
        return _power_law(self.r, sympy.exp(self.gamma))


def _power_law(r: Expr, amplitude: Expr) -> str:
    """(A / ((r-1) B eps))^{1/(r-1)}, for b_n ~ A n^{-r} (ours)."""
    above, below = door.fraction(door.simplify(amplitude / (r - 1)))
    factor = "" if below == 1 else sympy.latex(below) + r"\, "
    base = rf"\frac{{{sympy.latex(above)}}}{{{factor}B\, \varepsilon}}"
    return _power(base, 1 / (r - 1))


_LOG = r"\log(1/\varepsilon)"


def _over(text: str, divisor: Expr) -> str:
    """LaTeX of a quotient, a rational divisor turned over where it is."""
    above, below = door.fraction(1 / divisor)
    text = text if above == 1 else rf"{sympy.latex(above)}\, {text}"
    return text if below == 1 else rf"\frac{{{text}}}{{{sympy.latex(below)}}}"


def _power(base: str, exponent: Expr) -> str:
    """LaTeX of a power, without an exponent of 1."""
    return base if exponent == 1 else rf"\left({base}\right)^{{{sympy.latex(exponent)}}}"


def _root(goal: arb, gamma: Expr, r: Expr) -> arb:
    """log v where e^gamma v^{1-r}/(r-1) = goal, widened by what b_j / T_j <= (r-1)/u can change."""
    scale = number(r) - 1
    y = (number(gamma) - (scale * goal).log()) / scale
    return y + arb(0, (abs(y) + 1).upper() * arb(2) ** -90)


@dataclass(frozen=True)
class Smooth(Kernel):
    """A kernel in u = n + h summed by Euler-Maclaurin; see the module's description."""

    h: Expr

    @property
    def completely_monotone(self) -> bool:
        return False

    def exponent(self, u: Any) -> Any:
        """p as a function of u, a ball or a power series of balls, u > 0."""
        raise NotImplementedError

    def area(self, u: arb) -> arb:
        """int_u^oo of exp(p) in the variable u."""
        raise NotImplementedError

    def cauchy(self, u: arb, m: int) -> arb:
        """An upper bound of int_u^oo |f^{(2m)}| / (2m)!."""
        raise NotImplementedError

    def decreasing(self, u: arb) -> bool:
        """Whether p is proved to decrease on [u, oo)."""
        raise NotImplementedError

    def term(self, j: int) -> arb:
        """exp(p(j)) for an integer j >= start."""
        return self.exponent(j + number(self.h)).exp()

    def integral(self, x: arb) -> arb:
        return self.area(x + number(self.h))

    def density(self, x: arb) -> arb:
        return self.exponent(x + number(self.h)).exp()

    def tail(self, j: int) -> arb:
        """Direct terms up to where the Euler-Maclaurin remainder is below the precision."""
        bits = ctx.prec
        ctx.prec = bits + 32
        try:
            u = j + number(self.h)
            head, at, best, stalls = arb(0), j, arb(0, arb.pos_inf()), 0
            upto = j if u > bits // 2 + 8 else j + bits // 2 + 8 - min(0, int(float(u)))
            while True:
                for i in range(at, upto):
                    head += self.term(i)
                at, before = upto, best.rel_accuracy_bits()
                if at + number(self.h) > 0:
                    value = head + self._euler_maclaurin(at, bits // 8 + 2)
                    best = value if value.rad() < best.rad() else best
                stalls += best.is_finite() and best.rel_accuracy_bits() <= before + 2
                if best.rel_accuracy_bits() >= bits - 8 or stalls > 4 or at - j > MAX_SHIFT:
                    return best
                upto = at + max(64, at - j)
        finally:
            ctx.prec = bits

    def _euler_maclaurin(self, at: int, m: int) -> arb:
        before = ctx.cap
        ctx.cap = 2 * m + 1
        try:
            u = at + number(self.h)
            series = self.exponent(arb_series([u, 1])).exp()
            c = [series[k] for k in range(2 * m)]
        finally:
            ctx.cap = before
        area = self.area(u)
        total = area + c[0] / 2
        for k in range(1, m + 1):
            total -= arb(fmpq.bernoulli(2 * k)) / (2 * k) * c[2 * k - 1]
        bernoulli = abs(arb(fmpq.bernoulli(2 * m)))
        if self.completely_monotone:
            bound = bernoulli / (2 * m) * abs(c[2 * m - 1])
        else:
            bound = bernoulli * self.cauchy(u, m)
        candidates = []
        if bound.is_finite() and total.is_finite():
            candidates.append(total + arb(0, bound.abs_upper()))
        if self.decreasing(u) and area.is_finite():
            candidates.append(area + c[0] / 2 + arb(0, (c[0] / 2).abs_upper()))
        if not candidates:
            return arb(0, arb.pos_inf())
        best = candidates[0]
        return candidates[-1] if candidates[-1].rad() < best.rad() else best


@dataclass(frozen=True)
class Stretched(Smooth):
    """p = gamma - r u^q - d log u, r, q > 0 (KERPLE-power, BAM; ALiBi times a power for q = 1).

    int_u^oo = e^gamma Gamma((1-d)/q, r u^q) / (q r^{(1-d)/q}). Completely monotone for q <= 1 and
    d >= 0. On |w - u| <= theta u: Re w^q >= (1-theta)^q cos(q asin theta) u^q = kappa u^q and
    |w^{-d}| <= (1-theta)^{-|d|} u^{-d}.
    """

    r: Expr
    q: Expr
    d: Expr = S.Zero

    @property
    def completely_monotone(self) -> bool:
        return sign(1 - self.q) >= 0 and sign(self.d) >= 0

    @property
    def settled(self) -> int:
        if sign(self.d) >= 0:
            return self.start
        turn = (-self.d / (self.q * self.r)) ** (1 / self.q) - self.h
        return max(self.start, _above(turn))

    @property
    def _plain(self) -> bool:
        return self.d == 0

    def exponent(self, u: Any) -> Any:
        if isinstance(u, arb) and u == 0:
            return number(self.gamma)
        log = u.log()
        p = number(self.gamma) - number(self.r) * (number(self.q) * log).exp()
        return p if self._plain else p - number(self.d) * log

    def _area(self, u: arb, r: arb) -> arb:
        q = number(self.q)
        s = (1 - number(self.d)) / q
        power = (q * u.log()).exp()
        return number(self.gamma).exp() * (r * power).gamma_upper(s) / q * (-s * r.log()).exp()

    def area(self, u: arb) -> arb:
        """The incomplete gamma function of FLINT may lose half its digits: ask for more then."""
        bits = ctx.prec
        try:
            for factor in (1, 2, 4):
                ctx.prec = factor * bits
                value = self._area(u, number(self.r))
                if value.rel_accuracy_bits() >= bits - 24:
                    break
            return value
        finally:
            ctx.prec = bits

    def cauchy(self, u: arb, m: int) -> arb:
        q, r, d = number(self.q), number(self.r), abs(number(self.d))
        steepness = q * r * (q * u.log()).exp() + d
        theta = (2 * m / (2 * m + steepness)).min(arb(fmpq(1, 2))).min(1 / q).mid()
        kappa = (q * (1 - theta).log()).exp() * (q * theta.asin()).cos()
        if not kappa > 0:
            return arb.pos_inf()
        return self._area(u, r * kappa) * (-d * (1 - theta).log()).exp() / (theta * u) ** (2 * m)

    def decreasing(self, u: arb) -> bool:
        d, q = number(self.d), number(self.q)
        return bool(d >= 0 or q * number(self.r) * (q * u.log()).exp() > -d)

    def asymptotics(self) -> str:
        return rf"\sim {_power(_over(_LOG, self.r), 1 / self.q)}"


@dataclass(frozen=True)
class LogNormal(Smooth):
    """p = gamma - c (log u - l)^2, c > 0 (Type 2 of [Q] and its relatives).

    int_u^oo u^{-a} e^{s v - c v^2} du with v = log u - l is elementary in erfc. On
    |w - u| <= theta u, with delta = -log(1-theta): Re (log w - l)^2 >= v^2 - 2 delta |v| - delta^2.
    """

    c: Expr
    l: Expr

    @property
    def settled(self) -> int:
        return max(self.start, _above(sympy.exp(self.l) - self.h))

    def exponent(self, u: Any) -> Any:
        v = u.log() - number(self.l)
        return number(self.gamma) - number(self.c) * v * v

    def _area(self, u: arb, a: int, s: arb) -> arb:
        c, l = number(self.c), number(self.l)
        t = s + 1 - a
        edge = (u.log() - l) - t / (2 * c)
        scale = number(self.gamma) + (1 - a) * l + t * t / (4 * c)
        return scale.exp() * (arb.pi() / c).sqrt() / 2 * (c.sqrt() * edge).erfc()

    def area(self, u: arb) -> arb:
        return self._area(u, 0, arb(0))

    def cauchy(self, u: arb, m: int) -> arb:
        c, l = number(self.c), number(self.l)
        theta = (2 * m / (2 * m + 2 * c * abs(u.log() - l) + 1)).min(arb(fmpq(1, 2))).mid()
        delta = -(1 - theta).log()
        slope = 2 * c * delta
        both = self._area(u, 2 * m, slope)
        if not u.log() > l:
            both += self._area(u, 2 * m, -slope)
        return both * (c * delta * delta).exp() / theta ** (2 * m)

    def decreasing(self, u: arb) -> bool:
        return bool(u.log() > number(self.l))

    def asymptotics(self) -> str:
        return rf"\exp\left(\sqrt{{{_over(_LOG, self.c)}}}\,(1 + o(1))\right)"


@dataclass(frozen=True)
class Rational(Smooth):
    """p = gamma - r log(u^2 + c), c > 0, r > 1/2 (Type 1 of [Q], dialect code: r = 1).

    int_u^oo = e^gamma u^{1-2r}/(2r-1) 2F1(r, r-1/2; r+1/2; -c/u^2). On |w - u| <= u/2 the square
    has a positive real part, so |w^2 + c| >= (|w|^2 + c)/sqrt 2 >= (1-theta)^2 (u^2 + c)/sqrt 2.
    """

    c: Expr
    r: Expr

    @property
    def converges(self) -> bool:
        return sign(2 * self.r - 1) > 0

    @property
    def direction(self) -> int:
        return -sign(self.r)

    @property
    def settled(self) -> int:
        return max(self.start, _above(-self.h))

    def exponent(self, u: Any) -> Any:
        return number(self.gamma) - number(self.r) * (u * u + number(self.c)).log()

    def area(self, u: arb) -> arb:
        r, half = number(self.r), arb(fmpq(1, 2))
        scale = (number(self.gamma) + (1 - 2 * r) * u.log()).exp() / (2 * r - 1)
        return scale * (-number(self.c) / (u * u)).hypgeom_2f1(r, r - half, r + half)

    def cauchy(self, u: arb, m: int) -> arb:
        r = number(self.r)
        theta = arb(fmpq(1, 2)).min(m / (m + r)).mid()
        loss = r * (arb(2).log() / 2 - 2 * (1 - theta).log())
        return self.area(u) * loss.exp() / (theta * u) ** (2 * m)

    def decreasing(self, u: arb) -> bool:
        return bool(u > 0)

    def asymptotics(self) -> str:
        return _power_law(2 * self.r, sympy.exp(self.gamma))


@dataclass(frozen=True)
class Bertrand(Smooth):
    """p = gamma - L_1 - ... - L_{depth-1} - r L_depth, L_k the k-fold log of u, r > 1.

    Completely monotone; int_u^oo = e^gamma v^{1-r}/(r-1) with v = L_{depth-1}(u). Far out the term
    b_j is below 2^-900 of the integral, so v is known from T_j to that accuracy.
    """

    depth: int
    r: Expr

    @property
    def converges(self) -> bool:
        return sign(self.r - 1) > 0

    @property
    def completely_monotone(self) -> bool:
        return True

    def _logs(self, u: Any) -> list[Any]:
        logs = [u.log()]
        while len(logs) < self.depth:
            logs.append(logs[-1].log())
        return logs

    def exponent(self, u: Any) -> Any:
        *inner, last = self._logs(u)
        p = number(self.gamma) - number(self.r) * last
        for log in inner:
            p = p - log
        return p

    def area(self, u: arb) -> arb:
        r = number(self.r)
        return (number(self.gamma) + (1 - r) * self._logs(u)[-1]).exp() / (r - 1)

    def decreasing(self, u: arb) -> bool:
        return True

    def far(self, goal: arb) -> tuple[int, arb]:
        return self.depth, _root(goal, self.gamma, self.r)


@dataclass(frozen=True)
class Monotone(Smooth):
    """Any completely monotone exp(p) whose tail is bounded by one of its factors.

    -p is a sum of functions with completely monotone derivative (`has_monotone_slope`), and p
    contains `rate`: alpha n with alpha < 0 (`rate` = ("linear", -alpha)), or logs with coefficients
    that add up to -r, r > 1 (("log", r)). As the other terms of p do not increase,

        int_X^oo exp(p) <= exp(p(X)) / m,   respectively   exp(p(X)) (X + h) / (r - 1),

    h the largest shift among the logs. If p is a sum of logs (`only_logs`), the latter is also at
    least that divided by prod ((X+h)/(X+h_i))^{r_i}, so X = 2^(bits+16) ends the quadrature there.
    Up to X the integral is done by rigorous quadrature, in the variable log(x + h).
    """

    bias: Expr
    rate: tuple[str, Expr]
    only_logs: tuple[tuple[Expr, Expr], ...] = ()

    @property
    def completely_monotone(self) -> bool:
        return True

    def decreasing(self, u: arb) -> bool:
        return True

    def exponent(self, u: Any) -> Any:
        return _compile(self.bias)(u - number(self.h), False)

    def _rest(self, u: arb) -> arb:
        kind, r = self.rate[0], number(self.rate[1])
        bound = self.exponent(u).exp() * (1 / r if kind == "linear" else u / (r - 1))
        if not self.only_logs:
            return bound.union(arb(0))
        log = arb(0)
        for h, q in self.only_logs:
            log += number(q) * (u / (u - number(self.h) + number(h))).log()
        return bound.union(bound * (-log).exp())

    def area(self, u: arb) -> arb:
        bits, h = ctx.prec, number(self.h)
        kind, r = self.rate[0], number(self.rate[1])
        drop = (bits + 8) * arb(2).log()
        end = (u + drop / r if kind == "linear" else u * (drop / (r - 1)).exp()).mid()
        if self.only_logs:
            end = end.min(arb(2) ** (bits + 16))
        if not end > u:
            return self._rest(u)
        scale, p = self.exponent(u) + u.log(), _compile(self.bias)

        def integrand(t: acb, analytic: bool) -> acb:
            return (p(t.exp() - h, analytic) + t - scale).exp()

        found = acb.integral(
            integrand, acb(u.log()), acb(end.log()), rel_tol=arb(2) ** -bits,
            abs_tol=arb(2) ** (-bits - 8), eval_limit=MAX_EVALUATIONS,
        ).real  # fmt: skip
        if found.rel_accuracy_bits() < bits // 4:
            raise Unreachable("the integral of exp(p) needs too many evaluations")
        return found * scale.exp() + self._rest(end)


def _compile(e: Expr) -> Any:
    """(x, analytic) -> e: a combination of logs and powers at a ball, a series, or a complex ball.

    Constants are taken at the precision at work; `analytic` asks for no value on a branch cut.
    """
    if e == n:
        return lambda x, analytic: x
    if not e.has(n):
        constant = number(e)
        return lambda x, analytic: constant
    if e.is_Add:
        first, *others = (_compile(a) for a in sorted(e.args, key=lambda a: not a.has(n)))

        def add(x: Any, analytic: bool) -> Any:
            total = first(x, analytic)
            for term in others:
                total = total + term(x, analytic)
            return total

        return add
    if e.is_Mul:
        constant_part, rest = e.as_independent(n)
        factor, inner = number(constant_part), _compile(rest)
        return lambda x, analytic: inner(x, analytic) * factor
    base, q = _compile(e.args[0]), None if isinstance(e, sympy.log) else number(e.exp)

    def power(x: Any, analytic: bool) -> Any:
        value = base(x, analytic)
        log = value.log(analytic=analytic) if isinstance(value, acb) else value.log()
        return log if q is None else (log * q).exp()

    return power


def has_monotone_slope(g: Expr, start: int) -> bool:
    """Whether g is proved to have a completely monotone derivative on [start, oo), by the rules
    n;  g + h;  c g;  log g if g(start) > 0;  g^a, 0 < a <= 1, and -g^a, a < 0, if g(start) > 0.
    """
    if not g.has(n) or g == n:
        return True
    if g.is_Add:
        return all(has_monotone_slope(a, start) for a in g.args)
    if g.is_Mul:
        constant, rest = g.as_independent(n)
        if rest.is_Mul:
            return False
        if rest.is_Pow and not rest.exp.has(n) and sign(rest.exp) < 0:
            return sign(constant) < 0 and _rises_from_positive(rest.base, start)
        return sign(constant) > 0 and has_monotone_slope(rest, start)
    if isinstance(g, sympy.log):
        return _rises_from_positive(g.args[0], start)
    if g.is_Pow and not g.exp.has(n) and sign(g.exp) > 0 and sign(1 - g.exp) >= 0:
        return _rises_from_positive(g.base, start)
    return False


def _rises_from_positive(g: Expr, start: int) -> bool:
    return sign(g.subs(n, start)) > 0 and has_monotone_slope(g, start)


def kernel(p: Expr, start: int = 0) -> Kernel:
    """The kernel of `p` on `n >= start`, found from its normal form alone.

    Raises:
        Unrecognised: when the normal form is none of the families.

    >>> kernel(-2 * sympy.log(1 + sympy.Symbol("n", integer=True, nonnegative=True)))
    Power(start=0, gamma=0, h=1, r=2)
    """
    try:
        form = normal_form(p, start)
    except Unrecognised as reason:
        found = _monotone(p, NormalForm(), start)
        if found is None:
            raise reason
        return found
    try:
        return _from_form(form, start)
    except Unrecognised as reason:
        found = _monotone(form.expression(), form, start)
        if found is None:
            raise reason
        return found


def _monotone(p: Expr, form: NormalForm, start: int) -> Monotone | None:
    """The generic kernel, where the calculus proves exp(p) completely monotone."""
    try:
        p = door.expand(p, deep=False) if p.is_Mul else p
        if not has_monotone_slope(-p, start):
            return None
        rate: tuple[str, Expr] | None = None
        h = S.One - start
        linear = p.coeff(n, 1) if p.is_Add or p.is_Mul else S.Zero
        logs = {
            t.as_independent(n)[1].args[0] - n: -t.as_independent(n)[0]
            for t in sympy.Add.make_args(p)
            if isinstance(t.as_independent(n)[1], sympy.log)
        }
        plain = {h: r for h, r in logs.items() if h.is_number}
        total = sympy.Add(*plain.values())
        if not linear.has(n) and sign(linear) < 0:
            rate = ("linear", -linear)
        elif plain and sign(total - 1) > 0:
            rate = ("log", total)
            h = max(plain, key=lambda h: number(h).mid())
        only = tuple(logs.items()) if set(_kinds(form)) == {"logs"} and form.alpha == 0 else ()
        return None if rate is None else Monotone(start, S.Zero, h, p, rate, only)
    except (Unrecognised, Undecided):
        return None


def _from_form(form: NormalForm, start: int) -> Kernel:
    if form.iterated:
        return _bertrand(form, start)
    kinds = _kinds(form)
    sizes = [len(getattr(form, k)) for k in kinds]
    if any(size > 1 for size in sizes):
        raise Unrecognised("a sum of several terms of one kind")
    alpha, gamma = form.alpha, form.gamma
    if not kinds:
        return Geometric(start, gamma, alpha) if alpha != 0 else Constant(start, gamma)
    if kinds == ["logs"] and alpha == 0:
        ((h, d),) = form.logs.items()
        return Power(start, gamma, h, -d)
    if kinds == ["logs"] and sign(alpha) < 0:
        ((h, d),) = form.logs.items()
        return Stretched(start, gamma - alpha * h, h, -alpha, S.One, -d)
    if kinds == ["quadratics"] and alpha == 0:
        (((h, c), d),) = form.quadratics.items()
        return Rational(start, gamma, h, c, -d)
    if alpha == 0 and kinds in (["powers"], ["logs", "powers"]):
        (((h, q), r),) = form.powers.items()
        d = S.Zero if "logs" not in kinds else form.logs.get(h)
        if d is not None and sign(q) > 0 and sign(r) < 0:
            if sign(start + h) < 0:
                reason = Unrecognised("the bias increases first")
                reason.later = _above(-h)
                raise reason
            return Stretched(start, gamma, h, -r, q, -d)
    if alpha == 0 and kinds in (["squares"], ["logs", "squares"]):
        ((h, c),) = form.squares.items()
        d = S.Zero if "logs" not in kinds else form.logs.get(h)
        if d is not None and sign(c) < 0:
            centre = -d / (2 * c)
            return LogNormal(start, gamma - c * centre**2, h, -c, centre)
    raise Unrecognised("this combination of terms has no certified sum yet")


def _kinds(form: NormalForm) -> list[str]:
    """The kinds of terms that a normal form has beside gamma + alpha n."""
    kinds = ("logs", "squares", "powers", "quadratics", "iterated")
    return [k for k in kinds if getattr(form, k)]


def _bertrand(form: NormalForm, start: int) -> Bertrand:
    depth = max(k for _, k in form.iterated)
    shifts = {*form.logs, *(h for h, _ in form.iterated)}
    others = form.squares or form.powers or form.quadratics or form.alpha != 0
    if others or len(shifts) != 1:
        raise Unrecognised("an iterated logarithm with other terms")
    h = shifts.pop()
    chain = [form.logs.get(h, S.Zero)] + [
        form.iterated.get((h, k), S.Zero) for k in range(2, depth + 1)
    ]
    if any(sign(c + 1) != 0 for c in chain[:-1]) or sign(chain[-1]) >= 0:
        raise Unrecognised("an iterated logarithm that is not of Bertrand's form")
    return Bertrand(start, form.gamma, h, depth, -chain[-1])
