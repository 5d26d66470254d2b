"""The one evaluator from an expression to rigorous balls.

`compile_ball(expr)` gives a function of the values of its symbols. Rational values stay exact
(`fmpq`), so that `floor`, `Mod` and comparisons are decided wherever the arithmetic is rational;
everything else is a ball (`arb`) that contains the true value. What is undefined, not real, or
cannot be decided at the working precision raises `Undefined` instead of returning a wide ball.

python-flint's precision is global to the process: evaluate only inside `precision(bits)`, which
holds a lock, so that calls from several threads do not disturb each other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import sympy
from flint import acb, arb, ctx, fmpq
from sympy import Expr, S, Symbol

from farfield.theory.formula.grammar import Held, Lookup

Ball = Any  # fmpq (exact) or arb
Environment = Mapping[Symbol, Ball]
MAX_LOOP = 100_000


class Undefined(ArithmeticError):
    """The value is undefined, not real, or not decided at the working precision."""


class Undetermined(Undefined):
    """The value exists, or may exist, but a comparison is not decided at the precision."""


_LOCK = threading.RLock()


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work with balls of `bits` bits, alone in the process, and restore the precision after."""
    with _LOCK:
        before = ctx.prec
        ctx.prec = max(2, int(bits))
        try:
            yield
        finally:
            ctx.prec = before


def rational(value: sympy.Rational | int) -> fmpq:
    """The flint rational of a SymPy rational."""
    return fmpq(int(value.p), int(value.q)) if isinstance(value, sympy.Rational) else fmpq(value)


def to_arb(value: Ball) -> arb:
    """A ball, also of an exact value."""
    return value if isinstance(value, arb) else arb(value)


class BeyondBalls(Undefined):
    """The value is a real number beyond what balls hold."""


def _checked(value: arb) -> arb:
    if not value.is_finite():
        raise Undefined("not a finite real number")
    return value


def _method(name: str) -> Callable[[Ball], Ball]:
    return lambda x: _checked(getattr(to_arb(x), name)())


def _bessel(name: str) -> Callable[[Ball, Ball], Ball]:
    return lambda order, x: _checked(getattr(to_arb(x), name)(to_arb(order)))


def _log(x: Ball) -> Ball:
    return fmpq(0) if isinstance(x, fmpq) and x == 1 else _checked(to_arb(x).log())


def _exp(x: Ball) -> Ball:
    if isinstance(x, arb) and not x.is_finite() and x < 0:
        return fmpq(0)
    if isinstance(x, fmpq) and x == 0:
        return fmpq(1)
    value = to_arb(x).exp()
    if to_arb(x).is_finite() and not value.is_finite():
        raise BeyondBalls("a number too large to be enclosed")
    return _checked(value)


def _sign_of(x: Ball) -> int:
    if x > 0:
        return 1
    if x < 0:
        return -1
    if x == 0:
        return 0
    raise Undetermined("a sign is not decided at this precision")


def _abs(x: Ball) -> Ball:
    return abs(x)


def _floor(x: Ball) -> Ball:
    if isinstance(x, fmpq):
        return fmpq(x.floor())
    whole = _checked(x).floor().unique_fmpz()
    if whole is None:
        raise Undetermined("a floor is not decided at this precision")
    return fmpq(whole)


def _pow(base: Ball, exponent: Ball) -> Ball:
    if isinstance(exponent, fmpq) and exponent.q == 1 and abs(exponent.p) < 2**31:
        k = int(exponent.p)
        if k < 0 and not base != 0:
            raise Undefined("a division by zero")
        if isinstance(base, fmpq):
            return base**k if abs(k) < 4096 else _checked(arb(base) ** k)
        return _checked(base**k)
    if base == 0:
        if exponent > 0:
            return fmpq(0)
        raise Undefined("zero to a power that is not positive")
    base = to_arb(base)
    if base < 0 and isinstance(exponent, fmpq) and exponent.q == 1:
        size = _pow(-base, exponent)
        return -size if int(exponent.p) % 2 else size
    if not base > 0:
        if isinstance(exponent, fmpq) and exponent > 0 and base >= 0:
            return _checked(base ** arb(exponent))
        raise Undefined("a real power of a number that is not positive")
    if isinstance(exponent, fmpq) and exponent.q == 2:
        root = base.sqrt()
        return _checked(root ** int(exponent.p))
    return _checked((to_arb(exponent) * base.log()).exp())


def _digamma(x: Ball) -> Ball:
    return _checked(to_arb(x).digamma())


def _polygamma(order: Ball, x: Ball) -> Ball:
    if order == 0:
        return _digamma(x)
    return _checked(acb.polygamma(acb(to_arb(x)), acb(to_arb(order))).real)


def _gamma(x: Ball) -> Ball:
    return _checked(to_arb(x).gamma())


def _loggamma(x: Ball) -> Ball:
    x = to_arb(x)
    if not x > 0:
        raise Undefined("loggamma of a number that is not positive")
    return _checked(x.lgamma())


def _binomial(a: Ball, b: Ball) -> Ball:
    if isinstance(b, fmpq) and b.q == 1 and b < 0:
        return fmpq(0)
    reciprocal = to_arb(b + 1).rgamma() * to_arb(a - b + 1).rgamma()
    return _checked(to_arb(a + 1).gamma() * reciprocal)


def _zeta(x: Ball, a: Ball = 1) -> Ball:
    return _checked(acb(to_arb(x)).zeta(acb(to_arb(a))).real if a != 1 else to_arb(x).zeta())


def _lambertw(x: Ball) -> Ball:
    return _checked(to_arb(x).lambertw())


def _min(*args: Ball) -> Ball:
    best = args[0]
    for x in args[1:]:
        exact = isinstance(best, fmpq) and isinstance(x, fmpq)
        best = min(best, x) if exact else to_arb(best).min(to_arb(x))
    return best


def _max(*args: Ball) -> Ball:
    return -_min(*(-x for x in args))


def _heaviside(x: Ball, at_zero: Ball) -> Ball:
    sign = _sign_of(x)
    return at_zero if sign == 0 else fmpq((1 + sign) // 2)


_FUNCTIONS: dict[Any, Callable[..., Ball]] = {
    sympy.exp: _exp, sympy.log: _log, sympy.Abs: _abs,
    **{getattr(sympy, name): _method(name) for name in (
        "sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos", "atan",
        "sinh", "cosh", "tanh", "coth", "asinh", "acosh", "atanh", "erf", "erfc", "erfi", "li")},
    sympy.Ei: _method("ei"), sympy.Si: _method("si"), sympy.Ci: _method("ci"),
    sympy.besselj: _bessel("bessel_j"), sympy.besseli: _bessel("bessel_i"),
    sympy.besselk: _bessel("bessel_k"),
    sympy.acot: lambda x: _method("atan")(_pow(x, fmpq(-1))),
    sympy.sign: lambda x: fmpq(_sign_of(x)),
    sympy.frac: lambda x: x - _floor(x),
    sympy.Min: _min, sympy.Max: _max,
    sympy.Heaviside: _heaviside,
    sympy.gamma: _gamma, sympy.loggamma: _loggamma, sympy.polygamma: _polygamma,
    sympy.factorial: lambda x: _gamma(x + 1),
    sympy.binomial: _binomial,
    sympy.harmonic: lambda x: _digamma(x + 1) + arb.const_euler(),
    sympy.zeta: _zeta, sympy.LambertW: _lambertw,
}  # fmt: skip
_CONSTANTS: dict[Expr, Callable[[], Ball]] = {
    S.Pi: arb.pi, S.Exp1: arb.const_e, S.EulerGamma: arb.const_euler,
    S.Catalan: arb.const_catalan, S.GoldenRatio: lambda: (1 + arb(5).sqrt()) / 2,
    S.Infinity: arb.pos_inf, S.NegativeInfinity: arb.neg_inf,
}  # fmt: skip


def _exact_integer(e: Expr, env: Environment, near: arb) -> fmpq | None:
    """The integer that `e` equals, if an exact zero test proves it (a floor at a jump)."""
    from farfield.theory.coefficients.signs import Undecided, sign

    k = (near + fmpq(1, 2)).floor().unique_fmpz()
    if k is None or not all(isinstance(v, fmpq) for v in env.values()):
        return None
    values = {s: sympy.Rational(int(v.p), int(v.q)) for s, v in env.items()}
    try:
        return fmpq(k) if sign(e.xreplace(values) - sympy.Integer(int(k))) == 0 else None
    except Undecided:
        return None


def _compile_floor(e: Expr, scale: int) -> Callable[[Environment], Ball]:
    inner = compile_ball(e)

    def floor(env: Environment) -> Ball:
        x = inner(env) * scale
        try:
            return _floor(x)
        except Undefined:
            k = _exact_integer(scale * e, env, x)
            if k is None:
                raise
            return k

    return floor


@lru_cache(maxsize=4096)
def compile_ball(e: Expr) -> Callable[[Environment], Ball]:
    """A function of the values of the symbols of `e`: fmpq (exact) or arb, in; the same out.

    >>> from farfield.theory.formula.grammar import n
    >>> with precision(53):
    ...     print(compile_ball(-sympy.log(1 + n))({n: fmpq(1)}))
    [-0.69314718055994... +/- ...]
    """
    if e.is_Rational or isinstance(e, Held):
        value = rational(e.value if isinstance(e, Held) else e)
        return lambda env: value
    if e.is_Symbol:
        return lambda env: env[e]
    if e in _CONSTANTS:
        constant = _CONSTANTS[e]
        return lambda env: constant()
    if e.is_Add:
        terms = [compile_ball(a) for a in e.args]

        def add(env: Environment) -> Ball:
            total = terms[0](env)
            for t in terms[1:]:
                total = total + t(env)
            return total

        return add
    if e.is_Mul:
        factors = [compile_ball(a) for a in e.args]

        def mul(env: Environment) -> Ball:
            total = factors[0](env)
            for f in factors[1:]:
                total = total * f(env)
            return total

        return mul
    if e.is_Pow:
        base, exponent = compile_ball(e.base), compile_ball(e.exp)
        return lambda env: _pow(base(env), exponent(env))
    if isinstance(e, sympy.floor):
        return _compile_floor(e.args[0], 1)
    if isinstance(e, sympy.ceiling):
        down = _compile_floor(e.args[0], -1)
        return lambda env: -down(env)
    if isinstance(e, sympy.frac):
        return compile_ball(e.args[0] - sympy.floor(e.args[0], evaluate=False))
    if isinstance(e, sympy.Mod):
        a, b = e.args
        return compile_ball(a - b * sympy.floor(a / b, evaluate=False))
    if isinstance(e, sympy.Piecewise):
        pieces = [(compile_ball(v), compile_condition(c)) for v, c in e.args]
        return lambda env: _first(pieces, env)
    if isinstance(e, Lookup):
        at, tail = compile_ball(e.args[0]), compile_ball(e.args[2])
        table = [compile_ball(v) for v in e.args[1].args]
        return lambda env: _look_up(at(env), table, tail)(env)
    if isinstance(e, sympy.Sum):
        return _compile_sum(e)
    function = _FUNCTIONS.get(e.func)
    if function is None:
        raise Undefined(f"{e.func.__name__} has no enclosure")
    args = [compile_ball(a) for a in e.args]
    if len(args) == 1:
        only = args[0]
        return lambda env: function(only(env))
    return lambda env: function(*(a(env) for a in args))


def _first(pieces: list[Any], env: Environment) -> Ball:
    for value, condition in pieces:
        if condition(env):
            return value(env)
    raise Undefined("no piece applies")


def _look_up(at: Ball, table: list[Any], tail: Any) -> Callable[[Environment], Ball]:
    if not (isinstance(at, fmpq) and at.q == 1 and at >= 0):
        raise Undefined("a table needs a distance that is a natural number")
    return table[int(at.p)] if at < len(table) else tail


def _compile_sum(e: Expr) -> Callable[[Environment], Ball]:
    body, (k, low, high) = compile_ball(e.function), e.limits[0]
    first, last = compile_ball(low), compile_ball(high)

    def total(env: Environment) -> Ball:
        a, b = _floor(first(env)), _floor(last(env))
        if b - a > MAX_LOOP:
            raise Undefined(f"a sum of more than {MAX_LOOP} terms")
        inner = dict(env)
        result: Ball = fmpq(0)
        for i in range(int(a.p), int(b.p) + 1):
            inner[k] = fmpq(i)
            result = result + body(inner)
        return result

    return total


@lru_cache(maxsize=1024)
def compile_condition(c: Any) -> Callable[[Environment], bool]:
    """The truth of a condition at given values; Undefined where the balls do not decide it."""
    if c in (True, S.true):
        return lambda env: True
    if c in (False, S.false):
        return lambda env: False
    if isinstance(c, sympy.And):
        parts = [compile_condition(a) for a in c.args]
        return lambda env: all(p(env) for p in parts)
    if isinstance(c, sympy.Or):
        parts = [compile_condition(a) for a in c.args]
        return lambda env: any(p(env) for p in parts)
    if isinstance(c, sympy.Not):
        inner = compile_condition(c.args[0])
        return lambda env: not inner(env)
    if isinstance(c, sympy.ITE):
        test, yes, no = (compile_condition(a) for a in c.args)
        return lambda env: yes(env) if test(env) else no(env)
    if type(c) not in _RELATION_TESTS:
        raise Undefined(f"a condition of the kind {type(c).__name__}")
    difference = compile_ball(c.lhs - c.rhs)
    relation = _RELATION_TESTS[type(c)]
    return lambda env: relation(_sign_of(difference(env)))


_RELATION_TESTS: dict[Any, Callable[[int], bool]] = {
    sympy.StrictLessThan: lambda s: s < 0, sympy.LessThan: lambda s: s <= 0,
    sympy.StrictGreaterThan: lambda s: s > 0, sympy.GreaterThan: lambda s: s >= 0,
    sympy.Equality: lambda s: s == 0, sympy.Unequality: lambda s: s != 0,
}  # fmt: skip


def enclose(e: Expr, bits: int = 64, values: Mapping[Symbol, Any] | None = None) -> arb | None:
    """A ball that contains `e` at the given rational values, or None where it is undefined.

    >>> from farfield.theory.formula.grammar import n, read
    >>> print(enclose(read("-2*log(1+n)"), 64, {n: 1}))
    [-1.38629436111989 +/- ...]
    """
    env = {s: v if isinstance(v, (fmpq, arb)) else rational(v) for s, v in (values or {}).items()}
    with precision(bits):
        try:
            return to_arb(compile_ball(e)(env))
        except (Undefined, ZeroDivisionError, OverflowError):
            return None
