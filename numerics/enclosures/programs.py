"""Formulas as straight-line programs on complex balls, real balls and power series of real balls.

A program evaluates each distinct sub-expression once. On complex balls, with `analytic`, it returns
a finite ball only if the formula is analytic on the whole input ball: logarithms and powers refuse
to touch a branch cut, special functions to leave the right half plane.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import sympy
from flint import acb, acb_series, arb, arb_series, ctx, fmpq
from sympy import Expr, Symbol

from farfield.numerics.summation.normal_form import Unrecognised
from farfield.theory.evaluation.balls import Undefined, compile_ball, precision, rational, to_arb

Program = Callable[[acb, bool], acb]
_NAN = acb(arb.nan())
STIRLING_TERMS = 400


@dataclass(frozen=True)
class _Steps:
    """The distinct sub-expressions of a formula in order, and its constants at each precision."""

    size: int
    out: int
    constants: list[tuple[int, Any]]
    steps: list[tuple[int, Expr, tuple[int, ...]]]
    known: dict[int, list[Any]] = field(default_factory=dict)

    def memory(self) -> list[Any]:
        """A fresh list of values, the constants filled in."""
        found = self.known.get(ctx.prec)
        if found is None:
            found = [None] * self.size
            for i, c in self.constants:
                found[i] = arb(c) if isinstance(c, fmpq) else to_arb(c({}))
            if len(self.known) > 8:
                self.known.clear()
            self.known[ctx.prec] = found
        return found.copy()


@lru_cache(maxsize=1024)
def _steps(e: Expr, x: Symbol) -> _Steps:
    places: dict[Expr, int] = {x: 0}
    constants: list[tuple[int, Any]] = []
    steps: list[tuple[int, Expr, tuple[int, ...]]] = []
    for sub in sympy.postorder_traversal(e):
        if sub in places:
            continue
        if not sub.has(x):
            constants.append((len(places), rational(sub) if sub.is_Rational else compile_ball(sub)))
        else:
            inputs = sub.args[:1] if sub.is_Pow and _special_exponent(sub) else sub.args
            steps.append((len(places), sub, tuple(places[a] for a in inputs)))
        places[sub] = len(places)
    return _Steps(len(places), places[e], constants, steps)


def _special_exponent(e: Expr) -> bool:
    return bool((e.exp.is_Integer and abs(e.exp) < 2**20) or e.exp == sympy.S.Half)


@lru_cache(maxsize=1024)
def compile_complex(e: Expr, x: Symbol) -> Program:
    """(z, analytic) -> e at x = z, at the precision at work.

    >>> x = sympy.Symbol("x")
    >>> compile_complex(sympy.log(x), x)(acb(1), False)
    0
    """
    plan = _steps(e, x)
    steps = [(i, _operation(sub), inputs) for i, sub, inputs in plan.steps]

    def run(z: acb, analytic: bool) -> acb:
        values = plan.memory()
        values[0] = z
        for i, operation, inputs in steps:
            values[i] = operation(analytic, *[values[k] for k in inputs])
        return acb(values[plan.out])

    return run


@lru_cache(maxsize=1024)
def compile_real(e: Expr, x: Symbol) -> Callable[[Any], Any]:
    """z -> e at x = z, a real ball or a power series of real balls; not finite off its domain.

    >>> x = sympy.Symbol("x")
    >>> compile_real(x**2, x)(arb(3))
    9.00000000000000
    """
    plan = _steps(e, x)
    steps = [(i, _real_operation(sub), inputs) for i, sub, inputs in plan.steps]

    def run(z: Any) -> Any:
        values = plan.memory()
        values[0] = z
        for i, operation, inputs in steps:
            values[i] = operation(*[values[k] for k in inputs])
        return values[plan.out]

    return run


def _real_operation(e: Expr) -> Any:
    if e.is_Add:
        return lambda *args: functools.reduce(operator.add, args)
    if e.is_Mul:
        return lambda *args: functools.reduce(operator.mul, args)
    if e.is_Pow:
        if e.exp.is_Integer and abs(e.exp) < 2**20:
            k = int(e.exp)
            return lambda z: z**k
        if e.exp == sympy.S.Half:
            return lambda z: z.sqrt()
        return lambda z, q: (z.log() * q).exp()
    name = e.func.__name__
    if name in ("exp", "log", "sin", "cos", "atan"):
        return operator.methodcaller(name)
    if name not in _FUNCTIONS:
        raise Unrecognised(f"{name} is not evaluated at real arguments")
    value, jet = _FUNCTIONS[name], _JETS[name]

    def special(z: Any) -> Any:
        if isinstance(z, arb):
            return value(False, acb(z)).real
        return arb_series([value(False, acb(z[0])).real, *jet(z).coeffs()[1:]])

    return special


def _operation(e: Expr) -> Any:
    if e.is_Add:
        return _add
    if e.is_Mul:
        return _mul
    if e.is_Pow:
        if e.exp.is_Integer and abs(e.exp) < 2**20:
            k = int(e.exp)
            return lambda analytic, z: z**k
        if e.exp == sympy.S.Half:
            return lambda analytic, z: z.sqrt(analytic=analytic)
        return _pow
    operation = _FUNCTIONS.get(e.func.__name__)
    if operation is None:
        raise Unrecognised(f"{e.func.__name__} is not evaluated at complex arguments")
    return operation


def _add(analytic: bool, first: acb, *others: acb) -> acb:
    for z in others:
        first = first + z
    return first


def _mul(analytic: bool, first: acb, *others: acb) -> acb:
    for z in others:
        first = first * z
    return first


def _pow(analytic: bool, z: acb, q: acb) -> acb:
    return (z.log(analytic=analytic) * q).exp()


def _right(z: acb, least: int = 0) -> bool:
    return bool(z.real > least)


def _log1p(analytic: bool, z: acb) -> acb:
    one = 1 + z
    if one.real > 0:
        return z.log1p()
    return one.log(analytic=analytic)


def _log1p_rest(analytic: bool, z: acb) -> acb:
    if not z.abs_upper() < fmpq(1, 8):
        return _log1p(analytic, z) - z
    return _small_sum(z, lambda k: fmpq((-1) ** (k + 1), k))


def _expm1_rest(analytic: bool, z: acb) -> acb:
    if not z.abs_upper() < fmpq(1, 8):
        return z.expm1() - z
    return _small_sum(z, lambda k: fmpq(1, math.factorial(k)))


def _sin_rest(analytic: bool, z: acb) -> acb:
    if not z.abs_upper() < fmpq(1, 8):
        return z.sin() - z
    sign = (0, 1, 0, -1)
    return _small_sum(z, lambda k: fmpq(sign[k % 4] if k > 1 else 0, math.factorial(k)))


def _cos_rest(analytic: bool, z: acb) -> acb:
    half = (z / 2).sin()
    return -2 * half * half


def _small_sum(z: acb, c: Callable[[int], fmpq]) -> acb:
    """sum_{k>=2} c_k z^k for |z| < 1/8, |c_k| <= 1."""
    size = z.abs_upper()
    smallness = max(2.0, -float(size.log()) - 1) if size > 0 else math.inf
    last, total = int(ctx.prec / smallness) + 3, acb(0)
    for k in range(last, 1, -1):
        total = (total + c(k)) * z
    error = (2 * size ** (last + 1)).upper()
    return total * z + acb(arb(0, error), arb(0, error))


def _binet(analytic: bool, z: acb) -> acb:
    """Stirling's series where it reaches the precision, else loggamma itself."""
    if not _right(z):
        return _NAN
    if z.abs_lower() > ctx.prec // 3 + 8:
        return _asymptotic(z, True)
    half_log = (arb.pi() * 2).log() / 2
    return z.lgamma() - ((z - fmpq(1, 2)) * z.log() - z + half_log)


def _psi_rest(analytic: bool, z: acb) -> acb:
    if not _right(z):
        return _NAN
    if z.abs_lower() > ctx.prec // 3 + 8:
        return -1 / (2 * z) - _asymptotic(z, False)
    return z.digamma() - z.log()


def _asymptotic(z: acb, gamma: bool) -> acb:
    """sum c_k w^{2k-1} (`gamma`) or c_k w^{2k}, w = 1/z, up to where the error is least: below
    2 sec(arg/2)^{2k+2} times the first omitted term (DLMF 5.11). The place is found by floats."""
    bits, w = ctx.prec, 1 / z
    size = abs(w).upper()
    secant = (2 * abs(z) / (abs(z) + z.real)).upper()  # 1/cos(arg/2)^2
    step, turn, first = float(size.log()), float(secant.log()), 1 if gamma else 2
    goal, best, last = -(bits + 4) * math.log(2), math.inf, 1
    for k in range(1, STIRLING_TERMS):
        error = _log_ratio(k, gamma) + (2 * k - 2 + first) * step + (k + 1) * turn
        if error < best:
            best, last = error, k
        if error < goal or error > best + 1:
            break
    total, square = acb(0), w * w
    for k in range(last - 1, 0, -1):
        total = total * square + _bernoulli_ratio(k, bits, gamma)
    bound = abs(_bernoulli_ratio(last, bits, gamma)) * size ** (2 * last - 2 + first)
    radius = (2 * bound * secant ** (last + 1)).upper()
    return total * w**first + acb(arb(0, radius), arb(0, radius))


@lru_cache(maxsize=1024)
def _log_ratio(k: int, gamma: bool) -> float:
    with precision(64):
        return float(abs(_bernoulli_ratio(k, 64, gamma)).log())


@lru_cache(maxsize=4096)
def _bernoulli_ratio(k: int, bits: int, gamma: bool) -> arb:
    """B_{2k}/(2k (2k-1)) or B_{2k}/(2k)."""
    return arb(fmpq.bernoulli(2 * k) / (2 * k * (2 * k - 1 if gamma else 1)))


def _omega_rest(analytic: bool, s: acb) -> acb:
    """v with v = -log1p((v - log s)/s), a contraction for |omega| >= 2; LambertW for small s."""
    if not _right(s):
        return _NAN
    if not s.abs_lower() > 64:
        w = s.exp().lambertw()
        return w - s + s.log(analytic=analytic)
    log, centre = s.log(), s.mid()
    guess, centre_log = acb(0), centre.log()
    for _ in range(ctx.prec.bit_length() + 2):
        inner = guess - centre_log
        omega = centre + inner
        step = guess + (inner / centre).log1p()
        guess = (guess - step / (1 + 1 / omega)).mid()
    radius = arb(2) ** -ctx.prec + 4 * (s.rad() * (1 + abs(log).upper()) / s.abs_lower()).upper()
    for _ in range(8):
        trial = guess + acb(arb(0, radius.upper()), arb(0, radius.upper()))
        image = -((trial - log) / s).log1p()
        if trial.contains(image) and (s - log + trial).abs_lower() > 2:
            return image
        radius = 2 * radius + arb(2) ** -ctx.prec * (1 + abs(guess).upper())
    return _NAN


def _ei_rest(analytic: bool, s: acb) -> acb:
    """sum k!/s^k on wide balls and for large s: K integrations by parts of e^{-s} Ei(s) =
    int e^{-(s-u)}/u du, from Re u = Re s / 2 on, leave K! (2 sqrt 2)^{K+1} |s|^{-K} and what is
    below e^{-|s|/4}, s >= 100."""
    if not _right(s, 1):
        return _NAN
    size = s.abs_lower()
    if not (size > 2**24 or (size > 100 and s.rad() > fmpq(1, 1024))):
        return acb(s.ei()) * (-s).exp() * s
    if not s.real > abs(s.imag):
        return _NAN
    total, term, goal, rest = acb(0), acb(1), arb(2) ** -ctx.prec, (-size / 4).exp()
    error, factor = arb.pos_inf(), 3 / size
    for k in range(1, STIRLING_TERMS):
        total += term
        term = term * k / s
        error = (error * factor * k if k > 1 else 3 * factor).upper()
        if error < goal or not factor * k < fmpq(1, 2):
            break
    error = (error + rest).upper()
    return total + acb(arb(0, error), arb(0, error))


def _bessel_rest(analytic: bool, z: acb) -> acb:
    """By |d/dz| <= 1/|z| on wide balls, 4/|z| for Re z < 1 where |I_1/I_0| < 4/3; where I_0 is far
    from its zeros (see `majorants`)."""
    far = _right(z, 7) and z.abs_upper() < z.real * fmpq(3, 2)
    if not (far or (_right(z) and abs(z.imag) < fmpq(3, 4))):
        return _NAN
    centre, spread = z.mid(), z.rad()
    if spread == 0:
        if z.real > 8 * ctx.prec and far:
            return _bessel_asymptotic(z)
        scaled = centre.bessel_i(acb(0), scaled=True)
        return scaled.log() + (2 * acb.pi() * centre).log() / 2
    middle = _bessel_rest(analytic, centre)
    size = (spread / z.abs_lower()).upper() * (1 if _right(z, 1) else 4)
    return middle + acb(arb(0, size), arb(0) if z.imag == 0 else arb(0, size))


def _bessel_asymptotic(z: acb) -> acb:
    """log of sum_{k<K} ((1/2)_k)^2/(k! (2 z)^k), the share of sqrt(pi/z) in
    int_0^2 e^{-zv} v^{-1/2} (1 - v/2)^{-1/2} dv: the binomial series leaves at most 2 c_K (v/2)^K
    on [0, 1]; what is beyond 1 is below 4 |z| e^{-R}, R = Re z > 2 K, |z| <= 3/2 R."""
    goal, total, term = arb(2) ** -ctx.prec, acb(0), acb(1)
    for k in range(1, min(STIRLING_TERMS, 2 * ctx.prec)):
        total += term
        term = term * fmpq((2 * k - 1) ** 2, 8 * k) / z
        error = 2 * abs(term).upper() * arb(fmpq(3, 2)) ** (k + 1)
        if error < goal:
            break
    error = (error + 4 * abs(z).upper() * (-z.real.lower()).exp()).upper()
    return (total + acb(arb(0, error), arb(0, error))).log()


def _atan(analytic: bool, z: acb) -> acb:
    off_cuts = z.real > 0 or z.real < 0 or abs(z.imag) < 1
    return z.atan() if not analytic or off_cuts else _NAN


_FUNCTIONS: dict[str, Any] = {
    "exp": lambda analytic, z: z.exp(),
    "log": lambda analytic, z: z.log(analytic=analytic),
    "sin": lambda analytic, z: z.sin(),
    "cos": lambda analytic, z: z.cos(),
    "atan": _atan,
    "log1p": _log1p,
    "expm1": lambda analytic, z: z.expm1(),
    "log1p_rest": _log1p_rest,
    "expm1_rest": _expm1_rest,
    "sin_rest": _sin_rest,
    "cos_rest": _cos_rest,
    "binet": _binet,
    "psi_rest": _psi_rest,
    "omega_rest": _omega_rest,
    "ei_rest": _ei_rest,
    "bessel_rest": _bessel_rest,
    "bessel_small": lambda analytic, z: z.bessel_i(acb(0)) - 1,
}


# The remainder functions on power series; the constant term is taken from `_FUNCTIONS`.
_JETS: dict[str, Any] = {
    "log1p": lambda z: (1 + z).log(),
    "expm1": lambda z: z.exp(),
    "log1p_rest": lambda z: (1 + z).log() - z,
    "expm1_rest": lambda z: z.exp() - z,
    "sin_rest": lambda z: z.sin() - z,
    "cos_rest": lambda z: z.cos(),
    "binet": lambda z: z.lgamma() - (z - fmpq(1, 2)) * z.log() + z,
    "psi_rest": lambda z: _digamma_jet(z) - z.log(),
    "omega_rest": lambda s: s.exp().lambertw() - s + s.log(),
    "ei_rest": lambda s: s * (-s).exp() * s.ei(),
    "bessel_small": lambda z: _bessel_jet(z) - 1,
    "bessel_rest": lambda z: _bessel_jet(z).log() - z + z.log() / 2,
}


def _digamma_jet(z: arb_series) -> arb_series:
    """digamma(z), from the jet of lgamma at the constant term."""
    order = ctx.cap
    try:
        ctx.cap = order + 1
        outer = arb_series([z[0], 1]).lgamma().derivative()
    finally:
        ctx.cap = order
    return outer(arb_series([0, *z.coeffs()[1:]]))


def bessel_row(x: arb, most: int) -> list[arb]:
    """I_0(x), ..., I_most(x) for x > 0, from r_k = I_k/I_{k-1} = 1/(2k/x + r_{k+1}),
    0 < r_k < x/(2k).

    >>> with precision(53):
    ...     bessel_row(arb(1), 2)[2].overlaps(arb(1).bessel_i(arb(2)))
    True
    """
    if not x > 0:
        raise Undefined("a Bessel function of a number that is not proved positive")
    first = most + ctx.prec // 4 + 16
    ratio, ratios = arb(0).union((x / (2 * first + 2)).upper()), []
    for k in range(first, 0, -1):
        ratio = 1 / (2 * k / x + ratio)
        if k <= most:
            ratios.append(ratio)
    row = [x.bessel_i(arb(0))]
    for ratio in reversed(ratios):
        row.append(row[-1] * ratio)
    return row


def _bessel_jet(z: arb_series) -> arb_series:
    """I_0(z): the k-th derivative at the constant term from I_k' = (I_{k-1} + I_{k+1})/2."""
    row, c = bessel_row(z[0], ctx.cap), []
    for k in range(ctx.cap):
        c.append(row[0] / math.factorial(k))
        row = [row[1], *((a + b) / 2 for a, b in zip(row, row[2:], strict=False))]
    return arb_series(c)(arb_series([0, *z.coeffs()[1:]]))


def taylor_coefficient(name: str, z: acb, k: int) -> acb:
    """The k-th Taylor coefficient of exp, sin, cos, atan or log1p on a ball."""
    before = ctx.cap
    ctx.cap = k + 1
    try:
        series = acb_series([1 + z if name == "log1p" else z, 1])
        found = getattr(series, "log" if name == "log1p" else name)()[k]
    finally:
        ctx.cap = before
    return acb(found)
