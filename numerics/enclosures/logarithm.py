r"""The change of variable x = e^s in a formula, done symbolically so that what cancels cancels.

`in_logarithm` writes p(e^s) with every logarithm of a product, power or exponential expanded and
every logarithm of a sum led by its largest term: log(A + B) = log A + log(1 + B/A). For
p = -log(n + n log(n)^2) it gives -3 s - ... without an e^s that would have to cancel numerically.
Used twice it gives the variable log log n. Which term leads is found numerically and needs no
proof: the identity holds for each choice.

Special functions are split into elementary terms and a remainder function of their own (ours):

    loggamma(z) = (z - 1/2) log z - z + log(2 pi)/2 + binet(z),
    digamma(z)  = log z + psi_rest(z),
    LambertW(z) = s - log s + omega_rest(s),   s = log z,
    li(z)       = z ei_rest(s)/s,              s = log z,
    I_0(z)      = exp(z - log(2 pi z)/2 + bessel_rest(z)) or, near 0, 1 + bessel_small(z),

I_0 the modified Bessel function of the first kind.
"""

from __future__ import annotations

from typing import Any

import sympy
from flint import acb
from sympy import Expr, Function, S, Symbol

from farfield.numerics.enclosures.programs import compile_complex
from farfield.numerics.summation.normal_form import Unrecognised
from farfield.theory.evaluation.balls import Undefined, precision

MAX_TERMS = 60
_PROBES = (64, 6, 3)


class log1p(Function):
    """log(1 + z)."""

    def fdiff(self, argindex: int = 1) -> Expr:
        return 1 / (1 + self.args[0])


class expm1(Function):
    """exp(z) - 1."""

    def fdiff(self, argindex: int = 1) -> Expr:
        return sympy.exp(self.args[0])


class log1p_rest(Function):
    """log(1 + z) - z."""

    def fdiff(self, argindex: int = 1) -> Expr:
        return -self.args[0] / (1 + self.args[0])


class expm1_rest(Function):
    """exp(z) - 1 - z."""

    def fdiff(self, argindex: int = 1) -> Expr:
        return expm1(self.args[0])


class sin_rest(Function):
    """sin(z) - z."""

    def fdiff(self, argindex: int = 1) -> Expr:
        return cos_rest(self.args[0])


class cos_rest(Function):
    """cos(z) - 1."""

    def fdiff(self, argindex: int = 1) -> Expr:
        return -sympy.sin(self.args[0])


class binet(Function):
    """What loggamma(z) has beyond Stirling's elementary terms."""

    def fdiff(self, argindex: int = 1) -> Expr:
        z = self.args[0]
        return psi_rest(z) + 1 / (2 * z)


class psi_rest(Function):
    """digamma(z) - log z."""

    def fdiff(self, argindex: int = 1) -> Expr:
        return psi_slope(self.args[0])


class psi_slope(Function):
    """trigamma(z) - 1/z."""


class omega_rest(Function):
    """LambertW(e^s) - s + log s."""

    def fdiff(self, argindex: int = 1) -> Expr:
        s = self.args[0]
        return 1 / s - 1 / (1 + s - sympy.log(s) + self)


class ei_rest(Function):
    """s e^{-s} Ei(s)."""

    def fdiff(self, argindex: int = 1) -> Expr:
        return self * (1 / self.args[0] - 1) + 1


class bessel_rest(Function):
    """log I_0(z) - z + log(2 pi z)/2."""

    def fdiff(self, argindex: int = 1) -> Expr:
        return bessel_slope(self.args[0])


class bessel_slope(Function):
    """The derivative of bessel_rest."""


class bessel_small(Function):
    """I_0(z) - 1."""


def elementary(e: Expr) -> Expr:
    """A formula in exp, log, powers, sin, cos, atan and the remainder functions of this module."""
    if not e.args:
        return e
    args = [elementary(a) for a in e.args]
    if isinstance(e, sympy.log) and args[0].is_Rational and args[0] > 0:
        return constant_log(args[0])
    rule = _RULES.get(e.func)
    if rule is not None:
        return rule(*args)
    if e.is_Add or e.is_Mul or e.is_Pow or e.func in _KEPT:
        return e.func(*args)
    raise Unrecognised(f"{e.func.__name__} has no analytic form here")


def _loggamma(z: Expr) -> Expr:
    return (z - S.Half) * sympy.log(z) - z + sympy.log(2 * sympy.pi) / 2 + binet(z)


def _digamma(z: Expr) -> Expr:
    return sympy.log(z) + psi_rest(z)


def _polygamma(k: Expr, z: Expr) -> Expr:
    if k != 0:
        raise Unrecognised("polygamma of positive order")
    return _digamma(z)


def _lambert(z: Expr) -> Expr:
    s = sympy.log(z)
    return s - sympy.log(s) + omega_rest(s)


def _binomial(a: Expr, b: Expr) -> Expr:
    return sympy.exp(_loggamma(a + 1) - _loggamma(b + 1) - _loggamma(a - b + 1))


_KEPT = (sympy.exp, sympy.log, sympy.sin, sympy.cos, sympy.atan, sympy.besseli)
_RULES: dict[Any, Any] = {
    sympy.asinh: lambda z: sympy.log(z + sympy.sqrt(z**2 + 1)),
    sympy.acosh: lambda z: sympy.log(z + sympy.sqrt(z**2 - 1)),
    sympy.atanh: lambda z: (sympy.log(1 + z) - sympy.log(1 - z)) / 2,
    sympy.sinh: lambda z: (sympy.exp(z) - sympy.exp(-z)) / 2,
    sympy.cosh: lambda z: (sympy.exp(z) + sympy.exp(-z)) / 2,
    sympy.tanh: lambda z: (1 - sympy.exp(-2 * z)) / (1 + sympy.exp(-2 * z)),
    sympy.coth: lambda z: (1 + sympy.exp(-2 * z)) / (1 - sympy.exp(-2 * z)),
    sympy.loggamma: _loggamma,
    sympy.gamma: lambda z: sympy.exp(_loggamma(z)),
    sympy.factorial: lambda z: sympy.exp(_loggamma(z + 1)),
    sympy.binomial: _binomial,
    sympy.polygamma: _polygamma,
    sympy.harmonic: lambda z: _digamma(z + 1) + S.EulerGamma,
    sympy.LambertW: _lambert,
    sympy.li: lambda z: z * ei_rest(sympy.log(z)) / sympy.log(z),
}


def in_logarithm(e: Expr, x: Symbol, s: Symbol) -> Expr:
    """`e`, elementary in x, as an expression in s = log x.

    >>> x, s = sympy.symbols("x s", positive=True)
    >>> in_logarithm(sympy.log(x + 1) - sympy.log(x), x, s)
    log1p(exp(-s))
    """
    if e == x:
        return sympy.exp(s)
    if not e.has(x):
        return e
    if e.is_Add:
        return _spread(sympy.Add(*(in_logarithm(a, x, s) for a in e.args)))
    if e.is_Mul:
        return _spread(sympy.Mul(*(in_logarithm(a, x, s) for a in e.args)))
    if e.is_Pow:
        base, q = in_logarithm(e.base, x, s), in_logarithm(e.exp, x, s)
        if q.is_Integer and 0 < q <= 8:
            return _spread(base**q)
        return _exp(_spread(q * _log(base, s)), s)
    if isinstance(e, sympy.log):
        return _log_of(e.args[0], x, s)
    inner = [in_logarithm(a, x, s) for a in e.args]
    if isinstance(e, sympy.atan) and _size(inner[0], s) > 1:
        return sympy.pi / 2 - sympy.atan(_spread(sympy.exp(-_log(inner[0], s))))
    if isinstance(e, (sympy.sin, sympy.cos)) and _size(inner[0], s) < -1.5:
        sine = isinstance(e, sympy.sin)
        return inner[0] + sin_rest(inner[0]) if sine else 1 + cos_rest(inner[0])
    if isinstance(e, sympy.besseli):
        return _bessel(inner[0], inner[1], s)
    return _exp(inner[0], s) if isinstance(e, sympy.exp) else e.func(*inner)


def _bessel(order: Expr, z: Expr, s: Symbol) -> Expr:
    if order != 0:
        raise Unrecognised("a Bessel function of positive order")
    if _size(z, s) < -1.5:
        return 1 + bessel_small(z)
    return sympy.exp(z - _log(2 * sympy.pi * z, s) / 2 + bessel_rest(z))


def _log_of(e: Expr, x: Symbol, s: Symbol) -> Expr:
    """log e, exponentials and products opened before they are expanded."""
    if isinstance(e, sympy.exp):
        return in_logarithm(e.args[0], x, s)
    if e.is_Pow and not e.exp.has(x):
        return _spread(e.exp * _log_of(e.base, x, s))
    if e.is_Mul and not any(f.is_number and not f.is_positive for f in e.args):
        return sympy.Add(*(_log_of(f, x, s) for f in e.args))
    return _log(in_logarithm(e, x, s), s)


def _exp(u: Expr, s: Symbol) -> Expr:
    """exp u, with the part of u that is small at large s in expm1."""
    terms = sympy.Add.make_args(u)
    small = [t for t in terms if t.has(s) and not t.is_Symbol and _size(t, s) < -1.5]
    if not small:
        return sympy.exp(u)
    large = sympy.exp(sympy.Add(*(t for t in terms if t not in small)))
    return large + large * expm1(sympy.Add(*small))


def constant_log(c: Expr) -> Expr:
    """log c with the logarithms of rationals written by primes, so that they cancel."""
    if c.is_Rational and c > 0 and max(c.p, c.q) < 10**12:
        return sympy.Add(*(k * sympy.log(q) for q, k in sympy.factorrat(c).items()))
    return sympy.expand_log(sympy.log(c), force=True)


def _spread(e: Expr) -> Expr:
    wide = sympy.expand_mul(sympy.expand_multinomial(e))
    return e if len(sympy.Add.make_args(wide)) > MAX_TERMS else wide


def _log(u: Expr, s: Symbol) -> Expr:
    """log u for u > 0 at large s, expanded."""
    if isinstance(u, sympy.exp):
        return u.args[0]
    if u.is_number:
        return constant_log(u)
    if u.is_Mul:
        constant, rest = u.as_independent(s, as_Add=False)
        if constant != 1 and constant.is_negative:
            return sympy.log(u)
        known = S.Zero if constant == 1 else constant_log(constant)
        return known + sympy.Add(*(_log(f, s) for f in sympy.Mul.make_args(rest)))
    if u.is_Pow and not u.exp.has(s):
        return _spread(u.exp * _log(u.base, s))
    if u.is_Add:
        terms = sorted(u.args, key=lambda a: _size(a, s))
        lead = terms.pop()
        if _value(lead, s) > 0:
            rest = sympy.Add(*(sympy.powsimp(t / lead) for t in terms))
            return _log(lead, s) + log1p(_spread(rest))
    return sympy.log(u)


def _value(e: Expr, s: Symbol) -> Any:
    """A ball of e at a large s, to compare with."""
    program = compile_complex(e, s)
    for at in _PROBES:
        with precision(600):
            try:
                value = program(acb(at), False).real
            except (Undefined, ZeroDivisionError):
                continue
            if value.is_finite():
                return value
    raise Unrecognised(f"{str(e)[:60]} is not evaluated at large distances")


def _size(e: Expr, s: Symbol) -> float:
    """log |e| at a large s."""
    value = abs(_value(e, s))
    with precision(600):
        size = value.log().mid() if value > 0 else None
    return float("-inf") if size is None else float(size)
