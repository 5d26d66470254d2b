"""`Kernel`, what each way to sum answers; the normal form of a bias; geometric and power families.

A kernel gives `tail(j) = sum_{n>=j} exp(p(n))` and `between(a, b) = sum_{a<=n<b} exp(p(n))` as
balls at the precision at work, and facts on p. It is a value; what its sums remember
is in `memory`. Those with a closed form are `Constant`, `Geometric` and `Power`, the last by the
Hurwitz zeta function (`family`). They read the normal form of p, which is the same whatever
identities p came through:

    p(n) = gamma + alpha n + sum -r log(n + h)

with constants gamma, alpha, r, h. Logs of products, powers and exponentials of positive things are
expanded, linear arguments scaled to `n + h`, quadratics factored; so `-2 log(1+n)`,
`log(1/(2+2n)^2)` and `-log(n^2+2n+1)` have the same form up to gamma. Every step is an identity on
the stretch: positivity is proved, not assumed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import sympy
from flint import arb, ctx, fmpq
from sympy import Expr, S

from farfield.numerics.search import Unrecognised, recognising
from farfield.numerics.summation.kept_sums import memory, remembered
from farfield.theory.algebra import door
from farfield.theory.algebra.call_tree import traced
from farfield.theory.algebra.door import check_time
from farfield.theory.algebra.exceptions import (
    NotReal,
    OrderTooLow,
    SignNeeded,
    Undecided,
    Unreachable,
)
from farfield.theory.coefficients.signs import sign as proved_sign
from farfield.theory.functions.balls import Ball, precision, rational, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.values import compile_ball

CLOCKED = 64  # terms of a sum between two looks at the clock: each may take a millisecond
MAX_BASES = 8  # precisions whose sums are remembered
STEP = 64  # bits between two of them


def number(e: Expr) -> arb:
    """A constant as a ball at the precision at work."""
    return to_arb(compile_ball(e)({}))


@dataclass(frozen=True)
class Kernel:
    """exp(p) on `n >= start`; `gamma` is the constant of p.

    `converges` tells whether the series does; p is monotone from the integer `monotone_from` on,
    and `direction` is the sign of its slope there. Sums begin at the precision `first_bits`;
    receptive fields are sought as integers of up to `max_bits`.
    """

    start: int
    gamma: Expr

    first_bits: ClassVar[int] = 128
    max_bits: ClassVar[int] = 3_400
    checked: ClassVar[bool] = True
    """Whether the kernel's structure proves that every term is defined and finite."""

    @property
    def converges(self) -> bool:
        return True

    @property
    def monotone_from(self) -> int:
        if not self.checked:
            raise Unreachable("the bias is not proved to be monotone")
        return self.start

    @property
    def direction(self) -> int:
        return -1

    def guess(self, goal: arb) -> int | None:
        """A guess of the least j with T_j below the goal, where the kernel has one of its own."""
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


def terms(p: Expr) -> Callable[[int], arb]:
    """i -> exp(p(i)), a ball at the precision at work."""
    run = compile_ball(p)
    return lambda i: to_arb(run({n: fmpq(i)})).exp()


def suffix_sums(value: Ball, term: Callable[[int], Ball], at: int, start: int) -> list[Ball]:
    """T_start, ..., T_at from T_at = value and the terms before it."""
    sums = [value]
    for i in range(at - 1, start - 1, -1):
        if i % CLOCKED == 0:
            check_time()
        value = value + term(i)
        sums.append(value)
    return sums[::-1]


@dataclass(frozen=True)
class Direct(Kernel):
    """Terms one by one up to an N; T_j from N on is enclosed by `_beyond`.

    Sums by one precision are made once.
    """

    def term(self, j: int) -> arb:
        """exp(p(j)) for an integer j >= start."""
        raise NotImplementedError

    def _begin(self, bits: int) -> int:
        """N, for sums of `bits` bits."""
        raise NotImplementedError

    def _beyond(self, j: int) -> arb:
        """T_j, j >= N."""
        raise NotImplementedError

    def _base(self, bits: int) -> tuple[int, list[arb]]:
        """N and the sums from each i <= N."""
        kept, bits = memory(self).setdefault("base", {}), STEP * -(-bits // STEP)
        if bits not in kept:
            with precision(bits):
                at = max(self.start, self._begin(bits))
                value = self._beyond(at)
            with precision(bits + 32):
                sums = suffix_sums(value, self.term, at, self.start)
            if len(kept) > MAX_BASES:
                kept.clear()
            kept[bits] = at, sums
        return kept[bits]

    def tail(self, j: int) -> arb:
        """From the sums; beyond them from the next place, where it was the last one."""
        bits = ctx.prec
        at, sums = self._base(bits)
        if j <= at:
            return sums[j - self.start]
        last, value = memory(self).get(("last", bits), (0, arb(0)))
        if j == last - 1:
            with precision(bits + 32):
                value += self.term(j)
        elif j != last:
            value = self._beyond(j)
        memory(self)["last", bits] = j, value
        return value


# -- the normal form -------------------------------------------------------------------------------

MAX_DEGREE = 8  # of a polynomial under a logarithm that is factored
MAX_NODES = 2_000  # of a formula that is rewritten


def decided_sign(c: Expr) -> int:
    """The proved sign of a real constant; Unrecognised where the engine cannot tell."""
    if c.is_Rational:
        return int(sympy.sign(c))
    for form in (c, door.expand(c)):
        with contextlib.suppress(Undecided, NotReal, OrderTooLow, SignNeeded):
            return proved_sign(form).value
    raise Unrecognised(f"the sign of {c} is not decided")


NormalForm = dict[tuple[str, Any], Expr]
"""The coefficients of the form above, by what they multiply: `("n", k)` stands for n^k, k = 0 or 1,
`("log", h)` for log(n+h); its coefficient is not 0."""


@recognising()
def normal_form(p: Expr, start: int = 0) -> NormalForm:
    """The normal form of `p` on `n >= start`; Unrecognised where it has none.

    >>> normal_form(sympy.log((2 + 2 * n) ** -2))
    {('log', 1): -2, ('n', 0): -2*log(2)}
    """
    if sum(1 for _ in sympy.preorder_traversal(p)) > MAX_NODES:
        raise Unrecognised("the formula is too large for a closed form")
    if p.has(sympy.functions.elementary.hyperbolic.HyperbolicFunction):
        p = door.rewritten(p, sympy.exp)
    e = _rewrite(p, start)
    atoms: dict[Expr, sympy.Dummy] = {}
    poly_in = _replace_atoms(e, atoms)
    try:
        polynomial = door.polynomial(door.expand(poly_in), n, *atoms.values())
    except Undecided:
        raise Unrecognised(f"{p} is not a combination of logs and powers of n") from None
    names = list(atoms)
    form: NormalForm = {}
    for (degree, *powers), coefficient in polynomial.terms():
        used = [(names[i], k) for i, k in enumerate(powers) if k]
        if coefficient.has(n) or degree + sum(powers) > 1:
            raise Unrecognised("a product or a power of functions of n")
        if decided_sign(coefficient) != 0:
            form[("log", used[0][0].args[0] - n) if used else ("n", degree)] = coefficient
    return form


def _replace_atoms(e: Expr, atoms: dict[Expr, sympy.Dummy]) -> Expr:
    """Logarithms, already in normal form, become symbols."""
    check_time()
    if not e.has(n) or e == n:
        return e
    if e.is_Add or e.is_Mul:
        return e.func(*(_replace_atoms(a, atoms) for a in e.args))
    if e.is_Pow and e.exp.is_Integer and e.exp > 0:
        return _replace_atoms(e.base, atoms) ** e.exp
    if not (isinstance(e, sympy.log) and (e.args[0] - n).is_number):
        raise Unrecognised(f"{e} is no logarithm of n + h")
    return atoms.setdefault(e, sympy.Dummy(positive=True))


def _rewrite(e: Expr, start: int) -> Expr:
    """The formula with logarithms and powers taken apart into factors proved positive."""
    check_time()
    if not e.has(n) or e == n:
        return e
    if e.is_Add or e.is_Mul:
        return e.func(*(_rewrite(a, start) for a in e.args))
    if isinstance(e, sympy.log):
        inside = _factors(_rewrite(e.args[0], start), start, True)
        return sympy.Add(*(k * _log(f) for f, k in inside))
    if isinstance(e, sympy.exp):  # exp(c log x) becomes a power
        terms = sympy.Add.make_args(door.expand(_rewrite(e.args[0], start)))
        return sympy.Mul(*map(sympy.exp, terms))
    if e.is_Pow:
        base, exponent = _rewrite(e.base, start), _rewrite(e.exp, start)
        if exponent.has(n):
            return sympy.Pow(base, exponent)
        if exponent.is_Integer and exponent > 0:
            return base**exponent
        factors = _factors(base, start, decided_sign(exponent) < 0)
        return sympy.Mul(*(door.raised(f, k * exponent) for f, k in factors))
    raise Unrecognised(f"{e.func.__name__} has no closed form here")


def _log(factor: Expr) -> Expr:
    """The logarithm of a factor; an exponential loses its own."""
    return factor.args[0] if isinstance(factor, sympy.exp) else sympy.log(factor)


def _factors(u: Expr, start: int, strict: bool) -> list[tuple[Expr, Expr]]:
    """Positive factors of u with their exponents: a constant, exps, `n + h`.

    Without `strict` (u is raised to a positive power) a factor `n + h` may vanish at `start`.
    """
    if not u.has(n):
        if decided_sign(u) <= 0:
            raise Unrecognised(f"{u} is not positive")
        return [(u, S.One)]
    if u.is_Mul:
        return [f for a in u.args for f in _factors(a, start, strict)]
    if u.is_Pow and not u.exp.has(n):
        inverted = decided_sign(u.exp) < 0
        return [(f, k * u.exp) for f, k in _factors(u.base, start, strict or inverted)]
    if isinstance(u, sympy.exp):
        return [(u, S.One)]
    if not u.is_polynomial(n):
        together = door.factor_terms(door.together(u))
        if together != u and (together.is_Mul or together.is_Pow):
            return _factors(together, start, strict)
        raise Unrecognised(f"{u} has no factors in closed form")
    return _polynomial_factors(door.polynomial(u, n), start, strict)


def _polynomial_factors(u: sympy.Poly, start: int, strict: bool) -> list[tuple[Expr, Expr]]:
    """Linear factors, each proved positive from the start on."""
    if u.degree() > MAX_DEGREE:
        raise Unrecognised(f"a polynomial of degree {u.degree()}")
    lead = u.LC()
    if u.degree() == 1:
        h = door.cancel(u.nth(0) / lead)
        at_start = decided_sign(start + h)
        if decided_sign(lead) <= 0 or at_start < 0 or (at_start == 0 and strict):
            raise Unrecognised(f"{u.as_expr()} is not proved positive")
        return [(lead, S.One), (n + h, S.One)]
    if not all(c.is_Rational for c in u.all_coeffs()):
        raise Unrecognised(f"a polynomial of degree {u.degree()}")
    content, parts = u.factor_list()
    if any(part.degree() > 1 for part, _ in parts):
        raise Unrecognised(f"{u.as_expr()} has factors that are not linear")
    return [(content, S.One)] + [
        (f, m * k) for part, m in parts for f, k in _polynomial_factors(part, start, strict)
    ]


# -- families --------------------------------------------------------------------------------------


MAX_EXACT = 1_024  # distance up to which a rational geometric tail stays rational


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
        return decided_sign(self.alpha) < 0

    @property
    def direction(self) -> int:
        return decided_sign(self.alpha)

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
        return decided_sign(self.r - 1) > 0

    @property
    def direction(self) -> int:
        return -decided_sign(self.r)

    def tail(self, j: int) -> arb:
        return number(self.gamma).exp() * hurwitz(number(self.r), j + number(self.h))

    def between(self, a: int, b: int) -> arb:
        h, scale = number(self.h), number(self.gamma).exp()
        if decided_sign(self.r - 1) == 0:
            return scale * ((b + h).digamma() - (a + h).digamma())
        r = number(self.r)
        return scale * (hurwitz(r, a + h) - hurwitz(r, b + h))

    def integral(self, x: arb) -> arb:
        r = number(self.r)
        u = x + number(self.h)
        return (number(self.gamma) + (1 - r) * u.log()).exp() / (r - 1)

    def density(self, x: arb) -> arb:
        return (number(self.gamma) - number(self.r) * (x + number(self.h)).log()).exp()


def hurwitz(r: arb, x: arb) -> arb:
    """Hurwitz's zeta, the sum of (x + k)^-r, x > 0; of a great r by its first term.

    The other terms are at most 2 (x + 1)^-r, by the integral of u^-r: a share of the first below
    2 e^{-r/(x + 1)}.

    >>> hurwitz(arb(10) ** 30, arb(2)).overlaps(arb(2) ** -(arb(10) ** 30))
    True
    """
    if r > ctx.prec * (x + 1):
        return (-r * x.log()).exp() * arb(1, arb(2) ** -ctx.prec)
    return r.zeta(x)


@traced(2)
def family(p: Expr, start: int) -> Kernel:
    """The family of a bias by its normal form on n >= start; Unrecognised where it has none."""
    kernel = _from_form(normal_form(p, start), start)
    _ = kernel.converges, kernel.direction  # signs, Unrecognised where they are not decided
    return kernel


def _from_form(form: NormalForm, start: int) -> Kernel:
    """The family by which terms the form has; other combinations have none."""
    gamma, alpha = (form.get(("n", k), S.Zero) for k in (0, 1))
    logs = [(h, r) for (kind, h), r in form.items() if kind == "log"]
    if not logs:
        return Geometric(start, gamma, alpha) if alpha != 0 else Constant(start, gamma)
    if len(logs) > 1 or alpha != 0:
        raise Unrecognised("several logarithms, or one beside a linear term, have no closed sum")
    [(h, r)] = logs
    return Power(start, gamma, h, -r)
