"""Formulas as straight-line programs on complex balls, with analyticity checked on request.

A program evaluates each distinct sub-expression once. With `analytic` it returns a finite ball only
if the formula is analytic on the whole input ball: logarithms and powers refuse to touch a branch
cut, special functions to leave the right half plane.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import sympy
from flint import acb, acb_series, arb, ctx, fmpq
from sympy import Expr, Symbol

from farfield.numerics.normal_form import Unrecognised
from farfield.theory.balls import compile_ball, rational, to_arb

Program = Callable[[acb, bool], acb]
_NAN = acb(arb.nan())
STIRLING_TERMS = 400


@lru_cache(maxsize=1024)
def compile_complex(e: Expr, x: Symbol) -> Program:
    """(z, analytic) -> e at x = z, at the precision at work.

    >>> x = sympy.Symbol("x")
    >>> compile_complex(sympy.log(x), x)(acb(1), False)
    0
    """
    places: dict[Expr, int] = {x: 0}
    constants: list[tuple[int, Any]] = []
    steps: list[tuple[int, Any, tuple[int, ...]]] = []
    for sub in sympy.postorder_traversal(e):
        if sub in places:
            continue
        if not sub.has(x):
            constants.append((len(places), rational(sub) if sub.is_Rational else compile_ball(sub)))
            places[sub] = len(places)
            continue
        operation, inputs = _operation(sub)
        steps.append((len(places), operation, tuple(places[a] for a in inputs)))
        places[sub] = len(places)
    size, out = len(places), places[e]
    known: dict[int, list[Any]] = {}

    def run(z: acb, analytic: bool) -> acb:
        if ctx.prec not in known:
            fresh: list[Any] = [None] * size
            for i, c in constants:
                fresh[i] = acb(arb(c) if isinstance(c, fmpq) else to_arb(c({})))
            if len(known) > 8:
                known.clear()
            known[ctx.prec] = fresh
        values = known[ctx.prec].copy()
        values[0] = z
        for i, operation, inputs in steps:
            values[i] = operation(analytic, *(values[k] for k in inputs))
        return values[out]

    return run


def _operation(e: Expr) -> tuple[Any, tuple[Expr, ...]]:
    if e.is_Add:
        return _add, e.args
    if e.is_Mul:
        return _mul, e.args
    if e.is_Pow:
        if e.exp.is_Integer and abs(e.exp) < 2**20:
            k = int(e.exp)
            return (lambda analytic, z: z**k), (e.base,)
        if e.exp == sympy.S.Half:
            return (lambda analytic, z: z.sqrt(analytic=analytic)), (e.base,)
        return _pow, e.args
    operation = _FUNCTIONS.get(e.func.__name__)
    if operation is None:
        raise Unrecognised(f"{e.func.__name__} is not evaluated at complex arguments")
    return operation, e.args


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


def _binet(analytic: bool, z: acb) -> acb:
    """Stirling's series where it reaches the precision, else loggamma itself."""
    if not _right(z):
        return _NAN
    if z.abs_lower() > ctx.prec // 3 + 8:
        return _asymptotic(z, _binet_term, 2)
    half_log = (arb.pi() * 2).log() / 2
    return z.lgamma() - ((z - fmpq(1, 2)) * z.log() - z + half_log)


def _binet_term(k: int) -> tuple[arb, int]:
    return _bernoulli_ratio(k, ctx.prec, True), 2 * k - 1


def _psi_term(k: int) -> tuple[arb, int]:
    return _bernoulli_ratio(k, ctx.prec, False), 2 * k


def _psi_rest(analytic: bool, z: acb) -> acb:
    if not _right(z):
        return _NAN
    if z.abs_lower() > ctx.prec // 3 + 8:
        return -1 / (2 * z) - _asymptotic(z, _psi_term, 2)
    return z.digamma() - z.log()


def _asymptotic(z: acb, term: Any, factor: Any) -> acb:
    """A series whose error is below sec(arg/2)^{2k+2} times its first omitted term (DLMF 5.11)."""
    bits, w = ctx.prec, 1 / z
    goal, size = arb(2) ** -bits, abs(w).upper()
    secant = (2 * abs(z) / (abs(z) + z.real)).upper()  # 1/cos(arg/2)^2
    total, best, square, power = acb(0), arb.pos_inf(), w * w, None
    scale = arb(factor) * secant
    for k in range(1, STIRLING_TERMS):
        c, exponent = term(k)
        power = w**exponent if power is None else power * square
        scale *= secant
        error = (abs(c) * size**exponent * scale).upper()
        if not error < best:
            break
        best, before = error, total
        if error < goal or error < total.rad() / 4:
            break
        total += c * power
    else:
        before = total
    return before + acb(arb(0, best), arb(0, best))


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
    if not _right(s, 1) or not abs(s.imag) < 3:
        return _NAN
    if s.abs_lower() < 2**24:
        ei = s.ei()
        return acb(ei) * (-s).exp() * s
    error = (6 / s.abs_lower()).upper()
    return acb(1) + acb(arb(0, error), arb(0, error))


def _atan(analytic: bool, z: acb) -> acb:
    return z.atan() if not analytic or _right(z) or abs(z).upper() < 1 else _NAN


_FUNCTIONS: dict[str, Any] = {
    "exp": lambda analytic, z: z.exp(),
    "log": lambda analytic, z: z.log(analytic=analytic),
    "sin": lambda analytic, z: z.sin(),
    "cos": lambda analytic, z: z.cos(),
    "atan": _atan,
    "log1p": _log1p,
    "expm1": lambda analytic, z: z.expm1(),
    "binet": _binet,
    "psi_rest": _psi_rest,
    "omega_rest": _omega_rest,
    "ei_rest": _ei_rest,
}


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
