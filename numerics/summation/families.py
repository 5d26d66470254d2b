"""Families of exp-series with certified sums, by the form of p on a stretch `n >= start`.

* `Constant`, `Geometric`, `Power` have closed forms (the last by the Hurwitz zeta function).
* `Stretched`, `LogNormal`, `Rational`, `Bertrand` use the Euler-Maclaurin formula: the integral of
  exp(p) has a closed form, and the sup of |exp(p)| on circles is bounded for each by hand (ours).
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy
from flint import arb, ctx, fmpq
from sympy import Expr, S

from farfield.numerics.outcomes import Unrecognised
from farfield.numerics.summation.euler_maclaurin import Point, Smooth
from farfield.numerics.summation.kept_sums import remembered
from farfield.numerics.summation.kernel import Kernel, number
from farfield.numerics.summation.normal_form import NormalForm, normal_form, sign
from farfield.theory.algebra import door
from farfield.theory.algebra.call_tree import traced
from farfield.theory.answers.notation import expression_latex
from farfield.theory.functions.balls import Ball, precision, rational
from farfield.theory.values import compile_ball

MAX_EXACT = 1_024  # distance up to which a rational geometric tail stays rational


def above(e: Expr) -> int:
    """An integer not below a constant, close to it."""
    with precision(256):
        return int(number(e).upper().ceil().unique_fmpz())


@dataclass(frozen=True)
class Constant(Kernel):
    """p = gamma."""

    @property
    def converges(self) -> bool:
        return False

    @property
    def direction(self) -> int:
        return 0

    def between(self, a: int, b: int) -> Ball:
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

    @remembered
    def _exact(self) -> tuple[fmpq, fmpq] | None:
        """e^gamma and e^alpha, where they are rational."""
        first, ratio = sympy.exp(self.gamma), sympy.exp(self.alpha)
        if first.is_Rational and ratio.is_Rational:
            return rational(first), rational(ratio)
        return None

    def tail(self, j: int) -> Ball:
        exact = self._exact() if j <= MAX_EXACT else None
        if exact is not None:
            first, ratio = exact
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
        return number(self.gamma).exp() * hurwitz(number(self.r), j + number(self.h))

    def between(self, a: int, b: int) -> arb:
        h, scale = number(self.h), number(self.gamma).exp()
        if sign(self.r - 1) == 0:
            return scale * ((b + h).digamma() - (a + h).digamma())
        r = number(self.r)
        return scale * (hurwitz(r, a + h) - hurwitz(r, b + h))

    def integral(self, x: arb) -> arb:
        r = number(self.r)
        u = x + number(self.h)
        return (number(self.gamma) + (1 - r) * u.log()).exp() / (r - 1)

    def density(self, x: arb) -> arb:
        return (number(self.gamma) - number(self.r) * (x + number(self.h)).log()).exp()

    def asymptotics(self) -> str:
        return _power_law(self.r, sympy.exp(self.gamma))


def hurwitz(r: arb, x: arb) -> arb:
    """Hurwitz's zeta, the sum of (x + k)^-r; of a great r by its first term.

    The other terms are at most (x + 1)^-r (1 + (x + 1)/(r - 1)), by the integral of u^-r.

    >>> hurwitz(arb(10) ** 30, arb(2)).overlaps(arb(2) ** -(arb(10) ** 30))
    True
    """
    if x > 0 and r > 4 * ctx.prec * (x + 1):
        others = (-r * (1 + 1 / x).log()).exp() * (1 + (x + 1) / (r - 1))
        return (-r * x.log()).exp() * (1 + others.union(0))
    return r.zeta(x)


def _power_law(r: Expr, amplitude: Expr) -> str:
    """(A / ((r-1) B eps))^{1/(r-1)}, for b_n ~ A n^{-r} (ours)."""
    above, below = door.fraction(door.simplify(amplitude / (r - 1)))
    factor = "" if below == 1 else expression_latex(below) + r"\, "
    base = rf"\frac{{{expression_latex(above)}}}{{{factor}B\, \varepsilon}}"
    return _power(base, 1 / (r - 1))


_LOG = r"\log(1/\varepsilon)"


def _over(text: str, divisor: Expr) -> str:
    """LaTeX of a quotient, a rational divisor turned over where it is."""
    above, below = door.fraction(1 / divisor)
    text = text if above == 1 else rf"{expression_latex(above)}\, {text}"
    return text if below == 1 else rf"\frac{{{text}}}{{{expression_latex(below)}}}"


def _power(base: str, exponent: Expr) -> str:
    """LaTeX of a power, without an exponent of 1."""
    return base if exponent == 1 else rf"\left({base}\right)^{{{expression_latex(exponent)}}}"


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
    def monotone_from(self) -> int:
        if sign(self.d) >= 0:
            return self.start
        turn = (-self.d / (self.q * self.r)) ** (1 / self.q) - self.h
        return max(self.start, above(turn))

    @property
    def _plain(self) -> bool:
        return self.d == 0

    def exponent(self, u: Point) -> Point:
        if isinstance(u, arb) and u == 0:
            return number(self.gamma)
        log = u.log()
        p = number(self.gamma) - number(self.r) * (number(self.q) * log).exp()
        return p if self._plain else p - number(self.d) * log

    def _area(self, u: arb, r: arb) -> arb:
        """An incomplete gamma function, by y = r x^q."""
        q = number(self.q)
        s = (1 - number(self.d)) / q
        power = (q * u.log()).exp()
        return number(self.gamma).exp() * (r * power).gamma_upper(s) / q * (-s * r.log()).exp()

    def area(self, u: arb) -> arb:
        """The incomplete gamma function of FLINT may lose half its digits: ask for more then."""
        bits = ctx.prec
        for factor in (1, 2, 4):
            with precision(factor * bits):
                value = self._area(u, number(self.r))
            if value.rel_accuracy_bits() >= bits - 24:
                break
        return value

    def cauchy(self, u: arb, m: int) -> arb:
        q, r, d = number(self.q), number(self.r), abs(number(self.d))
        steepness = q * r * (q * u.log()).exp() + d
        theta = (2 * m / (2 * m + steepness)).min(arb(fmpq(1, 2))).min(1 / q).mid()
        kappa = (q * (1 - theta).log()).exp() * (q * theta.asin()).cos()
        if not kappa > 0:
            return arb.pos_inf()
        return self._area(u, r * kappa) * (-d * (1 - theta).log()).exp() / (theta * u) ** (2 * m)

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
    def monotone_from(self) -> int:
        return max(self.start, above(sympy.exp(self.l) - self.h))

    def exponent(self, u: Point) -> Point:
        v = u.log() - number(self.l)
        return number(self.gamma) - number(self.c) * v * v

    def _area(self, u: arb, a: int, s: arb) -> arb:
        """A complementary error function, by completing the square in log x."""
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
    def monotone_from(self) -> int:
        return max(self.start, above(-self.h))

    def exponent(self, u: Point) -> Point:
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

    def _logs(self, u: Point) -> list[Point]:
        """The iterated logarithms of u, up to the depth."""
        logs = [u.log()]
        while len(logs) < self.depth:
            logs.append(logs[-1].log())
        return logs

    def exponent(self, u: Point) -> Point:
        *inner, last = self._logs(u)
        p = number(self.gamma) - number(self.r) * last
        for log in inner:
            p = p - log
        return p

    def area(self, u: arb) -> arb:
        r = number(self.r)
        return (number(self.gamma) + (1 - r) * self._logs(u)[-1]).exp() / (r - 1)


@traced(2)
def family(p: Expr, start: int) -> Kernel:
    """The family of a bias by its normal form on n >= start; Unrecognised where it has none."""
    kernel = _from_form(normal_form(p, start), start)
    _ = kernel.converges, kernel.direction  # signs, Unrecognised where they are not decided
    return kernel


def _from_form(form: NormalForm, start: int) -> Kernel:
    """The family by which kinds of terms the form has; other combinations have none."""
    gamma, alpha = (form.get(("n", k), S.Zero) for k in (0, 1))
    atoms = [(*key, r) for key, r in form.items() if key[0] != "n"]
    terms = {kind: shape for kind, *shape in atoms}
    if "iterated" in terms:
        return _bertrand(form, start)
    if len(terms) < len(atoms):
        raise Unrecognised("a sum of several terms of one kind")
    if not terms:
        return Geometric(start, gamma, alpha) if alpha != 0 else Constant(start, gamma)
    shift, d = terms.pop("log", (None, S.Zero))
    if not terms and alpha == 0:
        return Power(start, gamma, shift, -d)
    if not terms and sign(alpha) < 0:
        return Stretched(start, gamma - alpha * shift, shift, -alpha, S.One, -d)
    for kind, (h, *shape, r) in terms.items():
        if len(terms) > 1 or alpha != 0 or shift not in (None, h):
            break
        if kind == "quadratic" and shift is None:
            return Rational(start, gamma, h, shape[0], -r)
        if kind == "power" and sign(shape[0]) > 0 and sign(r) < 0:
            if sign(start + h) < 0:
                reason = Unrecognised("the bias increases first")
                reason.later = above(-h)
                raise reason
            return Stretched(start, gamma, h, -r, shape[0], -d)
        if kind == "square" and sign(r) < 0:
            centre = -d / (2 * r)
            return LogNormal(start, gamma - r * centre**2, h, -r, centre)
    raise Unrecognised("this combination of terms has no certified sum yet")


def _bertrand(form: NormalForm, start: int) -> Bertrand:
    """All exponents but the last must be 1, all shifts equal."""
    logs = {(key[1], *(key[2:] or (1,))): r for key, r in form.items() if key[0] != "n"}
    depth, shifts = max(k for _, k in logs), {h for h, _ in logs}
    others = {key[0] for key in form} - {"n", "log", "iterated"}
    if others or form.get(("n", 1), 0) != 0 or len(shifts) != 1:
        raise Unrecognised("an iterated logarithm with other terms")
    h = shifts.pop()
    chain = [logs.get((h, k), S.Zero) for k in range(1, depth + 1)]
    if any(sign(c + 1) != 0 for c in chain[:-1]) or sign(chain[-1]) >= 0:
        raise Unrecognised("an iterated logarithm that is not of Bertrand's form")
    return Bertrand(start, form.get(("n", 0), S.Zero), h, depth, -chain[-1])
