"""From an expression to its germ: one rule per function, the asymptotic expansions as data.

`germ(e)` expands a SymPy expression at n -> oo. A function of an argument with a finite limit is
expanded by its Taylor series there; at infinity and at singular points by the expansions below,
each with an error of at most a constant times the first omitted term (real arguments):

* loggamma, digamma, polygamma, erfc: Stirling-type series, DLMF 5.11(ii), 5.15(i), 7.12(i);
* li, Ei, erfi: repeated integration by parts; Si, Ci, Bessel functions: DLMF 6.12, 10.17, 10.40;
* zeta at oo: its Dirichlet series; at 1: pole and constant;
* LambertW: the iteration w -> log x - log w, each round gains a factor 1/log x;
* power sums: Euler-Maclaurin with constant zeta(-r).

`eventual(e)` first replaces what depends on comparisons (Piecewise, Min, Max, Abs, sign, tables)
by what it is for all large n.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import sympy
from flint import fmpq
from sympy import Expr, S, Symbol

from farfield.theory.coefficients.oscillation import (
    below,
    bounded_atom,
    bounds,
    eventual_sign,
    low_sign,
    monotone,
    unbounded,
)
from farfield.theory.coefficients.signs import (
    ZERO,
    Coefficient,
    NeedMore,
    NotReal,
    Undecided,
    case,
    coefficient,
    deciding,
    expand,
    inverse,
    minus,
    named_tail,
    oscillates,
    plus,
    sign,
    tidied,
    to_sympy,
)
from farfield.theory.formula.grammar import Lookup, TooLarge, n, rebuilt, steep
from farfield.theory.transseries.arithmetic import (
    ONE_GERM,
    UNIT,
    Germ,
    Monomial,
    Term,
    add,
    exponential,
    iterated_log,
    log_of_monomial,
    logarithm,
    monomial,
    multiply,
    negate,
    number,
    power,
    reciprocal,
    scale,
    shift,
    size,
    split,
    subtract,
    taylor,
)

HALF = fmpq(1, 2)


def germ(e: Expr) -> Germ:
    """The germ of an expression in n at infinity, to the order of the case.

    >>> germ(sympy.log(1 + n))
    1*L1 + 1*n^-1 + -1/2*n^-2 + 1/3*n^-3 + O(n^-4)
    """
    memo = case().memo
    found = memo.get(e)
    if found is None:
        found = memo[e] = _expand(e)
    return found


def _expand(e: Expr) -> Germ:
    if not e.has(n):
        return number(constant(e))
    if e == n:
        return monomial(iterated_log(0))
    if e.is_Add:
        fixed, moving = sympy.sift(e.args, lambda a: not a.has(n), binary=True)
        own = [number(constant(sympy.Add(*fixed)))] if fixed else []
        return add(*map(germ, moving), *own)
    if e.is_Mul:
        fixed, moving = sympy.sift(e.args, lambda a: not a.has(n), binary=True)
        own = [number(constant(sympy.Mul(*fixed)))] if fixed else []
        factors = sorted([*map(germ, moving), *own], key=lambda g: len(g.terms))
        product = factors[0]
        for f in factors[1:]:
            product = multiply(product, f)
        return product
    if e.is_Pow:
        if not e.exp.has(n):
            return power(germ(e.base), constant(e.exp))
        if e.base.is_negative and e.exp.is_integer:
            wave = number(bounded_atom(S.NegativeOne, S.One))
            return multiply(wave, germ((-e.base) ** e.exp))
        return exponential(multiply(germ(e.exp), logarithm(germ(e.base))))
    rule = _RULES.get(e.func)
    if rule is None:
        raise Undecided(f"{e.func.__name__} has no rule")
    return rule(e, *e.args)


# -- constants ------------------------------------------------------------------------------------


def constant(e: Expr) -> Coefficient:
    """An expression without n as a coefficient, after asking whether each part of it is real;
    what is proved to be a rational number becomes that number."""
    if e.is_Rational or e.is_Symbol:
        return coefficient(e)
    values = case().constants
    if e not in values:
        for part in sympy.postorder_traversal(e):
            if part.args and part not in values:
                _ask_real(part)
                values[part] = coefficient(part)
        values[e] = coefficient(tidied(e))
    return values[e]


def _ask_real(e: Expr) -> None:
    """Raise NotReal where one function of constants and parameters is not a real number."""
    x = e.args[0]
    if e.is_Pow:
        if e.exp.is_Integer and (e.exp > 0 or x.is_nonzero):
            return
        s = sign(coefficient(x))
        if s == 0 and sign(coefficient(e.exp)) <= 0:
            raise NotReal("a division by 0")
        if s < 0 and not e.exp.is_integer:
            raise NotReal("a real power of a negative quantity")
    elif e.func in _REAL_WHERE:
        quantity, least = _REAL_WHERE[e.func](x)
        if sign(coefficient(quantity)) < least:
            raise NotReal(f"{e.func.__name__} outside its domain")
    elif e.func in _SINGULAR_BELOW_ZERO and sign(coefficient(e.args[-1])) <= 0:
        raise Undecided(f"{e.func.__name__} of a constant that is not positive")


_REAL_WHERE: dict[Any, Callable[[Expr], tuple[Expr, int]]] = {
    sympy.log: lambda x: (x, 1),
    sympy.loggamma: lambda x: (x, 1),
    sympy.asin: lambda x: (1 - x**2, 0),
    sympy.acos: lambda x: (1 - x**2, 0),
    sympy.acosh: lambda x: (x - 1, 0),
    sympy.atanh: lambda x: (1 - x**2, 1),
    sympy.LambertW: lambda x: (x + sympy.exp(-1), 0),
    sympy.li: lambda x: (x, 0),
}
_SINGULAR_BELOW_ZERO = (
    sympy.gamma, sympy.factorial, sympy.polygamma, sympy.harmonic, sympy.binomial,
)  # fmt: skip


# -- limits ---------------------------------------------------------------------------------------


def direction(g: Germ) -> int | None:
    """1 or -1 if g -> +oo or -oo, 0 if it is bounded, None if it oscillates without bound."""
    try:
        infinite, _, _ = split(g)
    except NeedMore:
        if not (g.terms and size(g.terms[0][0]) > 0):
            raise
        infinite = g.terms
    if not infinite:
        return 0
    lead = g.leading()
    if lead is None:
        return 0
    m, c = lead
    if size(m) <= 0:
        return direction(g)
    if any(unbounded(d) for _, d in g.terms[1:]):
        return None
    if not oscillates(c):
        return sign(c)
    try:
        return eventual_sign(c)
    except Undecided:
        return None


def eventual_sign_of(g: Germ) -> int:
    """The sign of g for all large n."""
    lead = g.leading()
    if lead is None:
        return 0
    if any(unbounded(c) for _, c in g.terms[1:]):
        raise Undecided("the sign of a sum with an unbounded oscillation")
    return eventual_sign(lead[1])


def finite(g: Germ) -> tuple[Coefficient, Germ]:
    """The limit and the germ of the rest, for a bounded g."""
    infinite, limit, small = split(g)
    if infinite and direction(g) != 0:
        raise Undecided("a function of an argument without a finite limit")
    return limit, small


# -- analytic functions ---------------------------------------------------------------------------


def _at_finite(f: Callable[[Expr], Expr], g: Germ, name: Any) -> Germ:
    """f at a finite limit by its Taylor series; its derivatives by symbolic differentiation."""
    limit, delta = finite(g)
    if oscillates(limit):
        raise Undecided(f"{name} of an oscillation")
    point = to_sympy(limit)
    x = sympy.Dummy("x", real=True)
    derivatives = [f(x)]

    def coef(k: int) -> Coefficient:
        while len(derivatives) <= k:
            derivatives.append(sympy.diff(derivatives[-1], x))
        value = derivatives[k].xreplace({x: point}) / math.factorial(k)
        if value.has(S.ComplexInfinity, S.NaN):
            raise Undecided(f"{name} at a singular point")
        if value.is_real is False:
            raise NotReal(f"{name} outside its domain")
        if value.has(sympy.Derivative, sympy.Subs):
            raise Undecided(f"derivatives of {name}")
        return coefficient(value)

    if not delta.literally_zero:
        coef(1)
    return taylor(coef, delta)


def _monotone_of_oscillation(f: Any, g: Germ) -> Germ | None:
    limit, delta = finite(g)
    if not oscillates(limit):
        return None
    if delta.literally_zero:
        return number(monotone(f, limit))
    raise Undecided(f"{f.__name__} of an oscillation")


def _exp(e: Expr, a: Expr) -> Germ:
    return exponential(germ(a))


def _log(e: Expr, a: Expr) -> Germ:
    if isinstance(a, sympy.exp):
        return germ(a.args[0])
    if a.is_Mul and a.has(sympy.exp):  # an exponential may have no germ; its logarithm has
        inside, rest = sympy.sift(a.args, lambda f: isinstance(f, sympy.exp), binary=True)
        return add(logarithm(germ(sympy.Mul(*rest))), *(germ(f.args[0]) for f in inside))
    if a.is_Pow and a.base.is_positive:
        return multiply(germ(a.exp), germ(sympy.log(a.base)))
    try:
        return logarithm(germ(a))
    except Undecided:
        if not a.is_Mul or not all(_stays_positive(f) for f in a.args):
            raise
    return add(*(germ(sympy.log(f)) for f in a.args))


def _stays_positive(e: Expr) -> bool:
    """Whether e > 0 for all large n, but for zeros of one exact oscillating term."""
    lead = germ(e).leading()
    return lead is not None and _weak_sign(lead, germ(e)) > 0


_TRIG: dict[Any, Callable[[Germ, Germ], Germ]] = {
    sympy.sin: lambda s, c: s,
    sympy.cos: lambda s, c: c,
    sympy.tan: lambda s, c: multiply(s, reciprocal(c)),
    sympy.cot: lambda s, c: multiply(c, reciprocal(s)),
    sympy.sec: lambda s, c: reciprocal(c),
    sympy.csc: lambda s, c: reciprocal(s),
}


def _sin_series(k: int) -> Coefficient:
    return fmpq((-1) ** (k // 2), math.factorial(k)) if k % 2 else ZERO


def _cos_series(k: int) -> Coefficient:
    return ZERO if k % 2 else fmpq((-1) ** (k // 2), math.factorial(k))


def _trig(e: Expr, a: Expr) -> Germ:
    g = germ(a)
    try:
        bounded = direction(g) == 0 and not oscillates(split(g)[1])
    except NeedMore:
        bounded = False
        if g.remainder is not None and size(g.remainder) <= 0:
            raise
    if not bounded:
        if e.func not in (sympy.sin, sympy.cos):
            raise Undecided(f"{e.func.__name__} of an unbounded argument")
        if any(s in case().ranges for s in a.free_symbols):
            return number(bounded_atom(S.NegativeOne, S.One))
        return number(e)
    limit, delta = finite(g)
    point = to_sympy(limit)
    s0, c0 = coefficient(sympy.sin(point)), coefficient(sympy.cos(point))
    sine, cosine = taylor(_sin_series, delta, "sin"), taylor(_cos_series, delta, "cos")
    s = add(scale(cosine, s0), scale(sine, c0))
    c = add(scale(cosine, c0), scale(sine, minus(s0)))
    return _TRIG[e.func](s, c)


def _hyperbolic(e: Expr, a: Expr) -> Germ:
    g = germ(a)
    up, down = exponential(g), exponential(negate(g))
    s, c = scale(subtract(up, down), HALF), scale(add(up, down), HALF)
    return s if e.func is sympy.sinh else c


def _tanh(e: Expr, a: Expr) -> Germ:
    g = germ(a)
    way = direction(g)
    if way in (1, -1):  # tanh = 1 - 2 E/(1 + E), E = exp(-2|x|)
        small = exponential(scale(g, fmpq(-2 * way)))
        ratio = multiply(small, reciprocal(add(ONE_GERM, small)))
        value = subtract(ONE_GERM, scale(ratio, fmpq(2)))
        value = value if way == 1 else negate(value)
    else:
        up, down = exponential(g), exponential(negate(g))
        value = multiply(subtract(up, down), reciprocal(add(up, down)))
    return reciprocal(value) if e.func is sympy.coth else value


def _atan_of(g: Germ) -> Germ:
    way = direction(g)
    if way == 0:
        value = _monotone_of_oscillation(sympy.atan, g)
        return value if value is not None else _at_finite(sympy.atan, g, "atan")
    if way is None:
        return number(bounded_atom(-sympy.pi / 2, sympy.pi / 2))
    small = taylor(lambda k: fmpq((-1) ** (k // 2), k) if k % 2 else ZERO, reciprocal(g))
    return subtract(number(way * sympy.pi / 2), small)


def _atan(e: Expr, a: Expr) -> Germ:
    return _atan_of(germ(a))


def _acot(e: Expr, a: Expr) -> Germ:
    return _atan_of(reciprocal(germ(a)))


def _asin_near_zero(g: Germ) -> Germ:
    return taylor(lambda k: fmpq(math.comb(k - 1, k // 2), 2 ** (k - 1) * k) if k % 2 else ZERO, g)


def _acos_of(g: Germ) -> Germ:
    """acos x = 2 asin sqrt((1 - x)/2), with the square root tending to 0 at x = 1."""
    limit, _ = finite(g)
    if oscillates(limit):
        raise Undecided("acos of an oscillation")
    if sign(coefficient(to_sympy(limit) - 1)) == 0:
        half = scale(subtract(ONE_GERM, g), HALF)
        return scale(_asin_near_zero(power(half, HALF)), fmpq(2)) if half.leading() else Germ()
    if sign(coefficient(to_sympy(limit) + 1)) == 0:
        return subtract(number(sympy.pi), _acos_of(negate(g)))
    return _at_finite(sympy.acos, g, "acos")


def _acos(e: Expr, a: Expr) -> Germ:
    way = direction(germ(a))
    if way in (1, -1):
        raise NotReal(f"{e.func.__name__} outside its domain")
    if way is None:
        raise Undecided(f"{e.func.__name__} of an unbounded argument")
    arc = _acos_of(germ(a))
    return arc if e.func is sympy.acos else subtract(number(sympy.pi / 2), arc)


def _asinh(e: Expr, a: Expr) -> Germ:
    g = germ(a)
    way = direction(g)
    if way == 0:
        return _at_finite(sympy.asinh, g, "asinh")
    if way is None:
        raise Undecided("asinh of an unbounded oscillation")
    g = g if way == 1 else negate(g)
    value = logarithm(add(g, power(add(multiply(g, g), ONE_GERM), HALF)))
    return value if way == 1 else negate(value)


def _acosh(e: Expr, a: Expr) -> Germ:
    g = germ(a)
    return logarithm(add(g, power(subtract(multiply(g, g), ONE_GERM), HALF)))


def _atanh(e: Expr, a: Expr) -> Germ:
    g = germ(a)
    difference = subtract(logarithm(add(ONE_GERM, g)), logarithm(subtract(ONE_GERM, g)))
    return scale(difference, HALF)


# -- special functions ----------------------------------------------------------------------------


def _erfc_at_infinity(g: Germ) -> Germ:
    """exp(-x^2)/(x sqrt(pi)) sum (-1)^k (2k-1)!!/(2 x^2)^k."""
    square = multiply(g, g)
    series = taylor(
        lambda k: fmpq((-1) ** k * math.prod(range(1, 2 * k, 2))),
        reciprocal(scale(square, fmpq(2))),
    )
    front = multiply(exponential(negate(square)), reciprocal(g))
    return scale(multiply(front, series), coefficient(1 / sympy.sqrt(sympy.pi)))


def _erf_of(g: Germ) -> Germ:
    way = direction(g)
    if way == 0:
        value = _monotone_of_oscillation(sympy.erf, g)
        return value if value is not None else _at_finite(sympy.erf, g, "erf")
    if way is None:
        return number(bounded_atom(S.NegativeOne, S.One))
    if way == 1:
        return subtract(ONE_GERM, _erfc_at_infinity(g))
    return subtract(_erfc_at_infinity(negate(g)), ONE_GERM)


def _erf(e: Expr, a: Expr) -> Germ:
    return _erf_of(germ(a))


def _erfc(e: Expr, a: Expr) -> Germ:
    g = germ(a)
    return _erfc_at_infinity(g) if direction(g) == 1 else subtract(ONE_GERM, _erf_of(g))


def _bernoulli(k: int) -> fmpq:
    return fmpq.bernoulli(k)


def _value(function: Any, *args: Expr) -> Expr:
    """A function of numbers: evaluated at small rationals, elsewhere as the reader builds it."""
    small = all(a.is_Rational and max(abs(a.p), a.q) <= 1000 for a in args)
    return function(*args) if small else rebuilt(function, args)


def loggamma_of(g: Germ) -> Germ:
    """loggamma of a germ that stays positive."""
    way = direction(g)
    if way == 1:
        stirling = taylor(
            lambda k: _bernoulli(k + 1) / ((k + 1) * k) if k % 2 else ZERO,
            reciprocal(g),
            "loggamma",
        )
        main = multiply(subtract(g, number(HALF)), logarithm(g))
        half_log = number(coefficient(sympy.log(2 * sympy.pi) / 2))
        return add(main, negate(g), half_log, stirling)
    if way != 0:
        raise Undecided("loggamma of what does not stay positive")
    limit, delta = finite(g)
    if oscillates(limit):
        raise Undecided("loggamma of an oscillation")
    if sign(limit) == 0:
        return subtract(loggamma_of(add(g, ONE_GERM)), logarithm(g))
    if sign(limit) < 0:
        raise Undecided("loggamma of what does not stay positive")
    point = to_sympy(limit)

    def coef(k: int) -> Coefficient:
        order = sympy.Integer(k - 1)
        value = _value(sympy.loggamma, point) if k == 0 else _value(sympy.polygamma, order, point)
        return coefficient(value / math.factorial(k))

    return taylor(coef, delta)


def polygamma_of(order: int, g: Germ) -> Germ:
    """polygamma(order, .) of a germ that stays positive; order 0 is digamma."""
    way = direction(g)
    if way == 1:
        small = reciprocal(g)
        if order == 0:
            series = taylor(
                lambda k: ZERO if k == 0 else -HALF if k == 1 else ZERO if k % 2
                else -_bernoulli(k) / k,
                small, "digamma",
            )  # fmt: skip
            return add(logarithm(g), series)

        def coef(k: int) -> Coefficient:  # of x^-(order + k), then times (-1)^(order+1)
            if k == 0:
                return fmpq(math.factorial(order - 1))
            if k == 1:
                return fmpq(math.factorial(order), 2)
            if k % 2:
                return ZERO
            return _bernoulli(k) * math.factorial(k + order - 1) / math.factorial(k)

        series = multiply(power(small, fmpq(order)), taylor(coef, small, ("polygamma", order)))
        return series if order % 2 else negate(series)
    if way != 0:
        raise Undecided("polygamma of what does not stay positive")
    limit, delta = finite(g)
    if oscillates(limit) or sign(limit) < 0:
        raise Undecided("polygamma of what does not stay positive")
    if sign(limit) == 0:  # psi_m(x) = psi_m(x + 1) + (-1)^(m+1) m!/x^(m+1)
        pole = scale(power(g, fmpq(-order - 1)), fmpq((-1) ** (order + 1) * math.factorial(order)))
        return add(polygamma_of(order, add(g, ONE_GERM)), pole)
    point = to_sympy(limit)
    return taylor(
        lambda k: coefficient(
            _value(sympy.polygamma, sympy.Integer(order + k), point) / math.factorial(k)
        ),
        delta,
    )


def _loggamma(e: Expr, a: Expr) -> Germ:
    return loggamma_of(germ(a))


def gamma_of(g: Germ) -> Germ:
    """gamma of a germ that stays positive, or tends to a number > -20 (then by recurrence)."""
    if direction(g) != 0:
        return exponential(loggamma_of(g))
    limit = finite(g)[0]
    if oscillates(limit) or sign(limit) > 0:
        return exponential(loggamma_of(g))
    if sign(plus(limit, fmpq(20))) <= 0:
        raise Undecided("gamma far below 0")
    return multiply(gamma_of(add(g, ONE_GERM)), reciprocal(g))


def _gamma(e: Expr, a: Expr) -> Germ:
    return gamma_of(germ(a))


def _factorial(e: Expr, a: Expr) -> Germ:
    return gamma_of(add(germ(a), ONE_GERM))


def _polygamma(e: Expr, order: Expr, a: Expr) -> Germ:
    if not (order.is_Integer and 0 <= order <= 20):
        raise Undecided("polygamma of a variable order")
    return polygamma_of(int(order), germ(a))


def _harmonic(e: Expr, a: Expr, *rest: Expr) -> Germ:
    if rest:
        raise Undecided("generalised harmonic numbers")
    return add(polygamma_of(0, add(germ(a), ONE_GERM)), number(S.EulerGamma))


def _binomial(e: Expr, top: Expr, bottom: Expr) -> Germ:
    parts = [germ(x) for x in (top + 1, bottom + 1, top - bottom + 1)]
    a, b, c = (loggamma_of(g) for g in parts)
    return exponential(subtract(a, add(b, c)))


def _zeta(e: Expr, a: Expr, *rest: Expr) -> Germ:
    g = germ(a)
    if rest:
        raise Undecided("the Hurwitz zeta function")
    if direction(g) == 1:
        last = case().order + 2
        powers = [exponential(scale(g, coefficient(-sympy.log(k)))) for k in range(2, last + 1)]
        return add(ONE_GERM, *powers[:-1], Germ([], powers[-1].top()))
    limit, delta = finite(g)
    if oscillates(limit):
        raise Undecided("zeta of an oscillation")
    if delta.literally_zero:
        return number(coefficient(sympy.zeta(to_sympy(limit))))
    if sign(coefficient(to_sympy(limit) - 1)) == 0:
        return add(reciprocal(delta), number(S.EulerGamma), Germ([], delta.top()))
    return add(number(coefficient(sympy.zeta(to_sympy(limit)))), Germ([], delta.top()))


def _lambert(e: Expr, a: Expr) -> Germ:
    g = germ(a)
    way = direction(g)
    if way == 0:
        limit, delta = finite(g)
        if not oscillates(limit) and sign(limit) == 0:
            return taylor(
                lambda k: fmpq((-k) ** (k - 1), math.factorial(k)) if k else ZERO, delta, "W"
            )
        return _at_finite(sympy.LambertW, g, "LambertW")
    if way != 1:
        raise Undecided("LambertW of what is not positive")
    m, c = _lead_of(g)
    rest = Germ(g.terms[1:], g.remainder)
    w = _lambert_of_monomial(m, c)
    if rest.literally_zero:
        return w
    small = scale(shift(rest, m ** fmpq(-1)), inverse(c))  # g = c m (1 + small)
    case().spend(1 + len(w.terms) ** 2)
    after = reciprocal(add(w, ONE_GERM))
    total, numerator, power_of_small = w, [0, 1], ONE_GERM
    for j in range(1, case().order + 1):  # x^j W^(j) = numerator(w)/(1 + w)^(2 j - 1) at x = c m
        power_of_small = scale(multiply(power_of_small, small), fmpq(1, j))
        polynomial = Germ()
        for k in reversed(numerator):
            polynomial = add(multiply(polynomial, w), number(fmpq(k)))
        derivative = multiply(polynomial, power(after, fmpq(2 * j - 1)))
        total = add(total, multiply(derivative, power_of_small))
        if not power_of_small.terms:
            return total
        numerator = _next_numerator(numerator, j)
    return add(total, Germ([], power_of_small.top() * small.top()))


def _lead_of(g: Germ) -> Term:
    lead = g.leading()
    if lead is None or oscillates(lead[1]):
        raise Undecided("LambertW of an oscillation")
    return lead


def _next_numerator(p: list[int], j: int) -> list[int]:
    """w (p' (1 + w) - (2 j - 1) p) - j p (1 + w)^2, from x d/dx = w/(1 + w) d/dw."""
    out = [0] * (len(p) + 2)
    for i, c in enumerate(p):
        for shift_by, factor in (
            (0, i - j), (1, i - (2 * j - 1) - 2 * j), (2, -j)
        ):  # fmt: skip
            out[i + shift_by] += c * factor
    return out


def _lambert_of_monomial(m: Monomial, c: Coefficient) -> Germ:
    """W(c m) by w <- log x - log w; each round gains a factor 1/log x."""
    current = case()
    plain = replace(current, named=False, memo={})
    with deciding(plain):
        log_x = add(log_of_monomial(m), number(coefficient(sympy.log(to_sympy(c)))))
        log_x.leading()  # the gain of each round is that of a proved leading term
        gain = log_x.top() ** fmpq(-1)
        error = logarithm(log_x).top()
        w = log_x
        for _ in range(case().order + 1):
            error = error * gain
            w = add(subtract(log_x, logarithm(w)), Germ([], error))
    current.work = plain.work
    if current.named and w.remainder is not None:
        return Germ([*w.terms, (w.remainder, named_tail(("W", m, c)))])
    return w


def _li(e: Expr, a: Expr) -> Germ:
    return li_of(germ(a))


def li_of(g: Germ) -> Germ:
    """The logarithmic integral of a germ."""
    if direction(g) != 1:
        limit = finite(g)[0]
        if oscillates(limit) or sign(limit) <= 0 or sign(plus(limit, fmpq(-1))) == 0:
            raise Undecided("li at a singular point")
        return _at_finite(sympy.li, g, "li")
    small = reciprocal(logarithm(g))
    series = taylor(lambda k: fmpq(math.factorial(k)), small, "li")
    return multiply(multiply(g, small), series)


def _ei(e: Expr, a: Expr) -> Germ:
    """exp(x)/x sum k!/x^k at +oo and at -oo."""
    g = germ(a)
    if direction(g) in (1, -1):
        small = reciprocal(g)
        series = taylor(lambda k: fmpq(math.factorial(k)), small, "Ei")
        return multiply(multiply(exponential(g), small), series)
    limit = finite(g)[0]
    if oscillates(limit) or sign(limit) == 0:
        raise Undecided("Ei at a singular point")
    return _at_finite(sympy.Ei, g, "Ei")


def _erfi(e: Expr, a: Expr) -> Germ:
    """exp(x^2)/(x sqrt(pi)) sum (2k-1)!!/(2 x^2)^k."""
    g = germ(a)
    way = direction(g)
    if way == 0:
        return _at_finite(sympy.erfi, g, "erfi")
    if way is None:
        raise Undecided("erfi of an unbounded oscillation")
    square = multiply(g, g)
    series = taylor(
        lambda k: fmpq(math.prod(range(1, 2 * k, 2))), reciprocal(scale(square, fmpq(2)))
    )
    front = multiply(exponential(square), reciprocal(g))
    return scale(multiply(front, series), coefficient(1 / sympy.sqrt(sympy.pi)))


def _sine_integral(e: Expr, a: Expr) -> Germ:
    """Si x = pi/2 - cos x/x + O(1/x^2), Ci x = sin x/x + O(1/x^2)."""
    g = germ(a)
    way = direction(g)
    if way == 0:
        limit = finite(g)[0]
        if e.func is sympy.Ci and (oscillates(limit) or sign(limit) <= 0):
            raise Undecided("Ci at a singular point")
        if e.func is sympy.Si and not oscillates(limit) and sign(limit) == 0:
            return taylor(
                lambda k: fmpq((-1) ** (k // 2), k * math.factorial(k)) if k % 2 else ZERO, g
            )
        return _at_finite(e.func, g, e.func.__name__)
    if way is None or (way < 0 and e.func is sympy.Ci):
        raise Undecided(f"{e.func.__name__} of what is not positive")
    small = reciprocal(g)
    error = Germ([], multiply(small, small).top())
    if e.func is sympy.Ci:
        return add(multiply(germ(sympy.sin(a)), small), error)
    return add(number(way * sympy.pi / 2), negate(multiply(germ(sympy.cos(a)), small)), error)


def _bessel(e: Expr, order: Expr, a: Expr) -> Germ:
    """I, K: exp(+-x)/sqrt(2 pi x) sum of the terms of DLMF 10.40; J: a damped wave."""
    if order.has(n) or order.free_symbols:
        raise Undecided(f"{e.func.__name__} of a variable order")
    g = germ(a)
    way = direction(g)
    if way == 0:
        limit = finite(g)[0]
        integral = order.is_Integer and e.func is not sympy.besselk
        if oscillates(limit) or (sign(limit) <= 0 and not integral):
            raise Undecided(f"{e.func.__name__} at a singular point")
        return _at_finite(lambda x: e.func(order, x), g, e.func.__name__)
    if way != 1:
        raise Undecided(f"{e.func.__name__} of what is not positive")
    small = reciprocal(g)
    root = power(small, HALF)
    if e.func is sympy.besselj:
        wave = germ(sympy.cos(expand(a - order * sympy.pi / 2 - sympy.pi / 4)))
        damped = multiply(scale(wave, coefficient(sympy.sqrt(2 / sympy.pi))), root)
        return add(damped, Germ([], multiply(root, small).top()))
    s = 1 if e.func is sympy.besselk else -1
    square = 4 * fmpq(int(order.p), int(order.q)) ** 2

    def coef(k: int) -> Coefficient:
        product = fmpq(1)
        for j in range(1, k + 1):
            product *= s * (square - (2 * j - 1) ** 2) / (8 * j)
        return product

    series = taylor(coef, small, (e.func.__name__, order))
    front = 1 / sympy.sqrt(2 * sympy.pi) if s < 0 else sympy.sqrt(sympy.pi / 2)
    grown = exponential(g if s < 0 else negate(g))
    return scale(multiply(multiply(grown, root), series), coefficient(front))


# -- finite sums ----------------------------------------------------------------------------------


def _sum(e: Expr, body: Expr, *limits: Any) -> Germ:
    """A sum whose upper bound grows, of the terms that `_indefinite` knows."""
    if len(limits) != 1:
        raise Undecided("a multiple sum")
    k, low, high = limits[0]
    if low.has(n):  # both ends move: the difference of two sums
        if direction(germ(low)) != 1:
            raise Undecided("a sum with these bounds")
        first = sympy.Integer(2)
        both = (_sum(e, body, (k, first, high)), _sum(e, body, (k, first, low - 1)))
        return subtract(*both)
    top = germ(high)
    if direction(top) != 1 or not (low.is_Integer and abs(low) <= 1000):
        raise Undecided("a sum with these bounds")
    total = []
    for term in sympy.Add.make_args(_separated(body, k)):
        factor, rest = term.as_independent(k, as_Add=False)
        total.append(multiply(germ(factor), _indefinite(rest, k, int(low), top)))
    return add(*total)


def _separated(body: Expr, k: Symbol) -> Expr:
    """The summand with logarithms of products split and quotients in partial fractions."""
    if steep(body):
        raise Undecided("a sum of high degree")
    body = body.replace(
        sympy.log, lambda a: sympy.expand_log(sympy.log(sympy.factor(a)), force=True)
    )
    if body.is_polynomial(k):
        return expand(body)
    if body.is_rational_function(k) and body.free_symbols == {k}:
        return sympy.apart(body, k)
    return sympy.expand_mul(body)


def _linear(e: Expr, k: Symbol) -> tuple[Expr, Expr] | None:
    """(c, a) with e = c (k + a), c > 0 and a rational numbers."""
    slope = expand(e).coeff(k)
    if not (slope.is_Rational and slope > 0):
        return None
    offset = expand(e / slope - k)
    return (slope, offset) if offset.is_Rational else None


def _indefinite(rest: Expr, k: Symbol, low: int, top: Germ) -> Germ:
    """The sum of `rest` for k from `low` to the top."""
    if not rest.has(k):
        return scale(add(top, number(fmpq(1 - low))), constant(rest))
    base, exponent = rest.as_base_exp()
    inside = _linear(rest.args[0] if isinstance(rest, sympy.log) else base, k)
    if inside is not None and not exponent.has(k):
        slope, offset = inside
        head = S.Zero
        while low + offset <= 0:
            head, low = head + rest.xreplace({k: sympy.Integer(low)}), low + 1
        if head != 0:
            return add(number(constant(head)), _indefinite(rest, k, low, top))
        last = add(top, number(coefficient(offset)))
        if isinstance(rest, sympy.log):
            logs = scale(add(top, number(fmpq(1 - low))), coefficient(sympy.log(slope)))
            begin = number(coefficient(_loggamma_value(low + offset)))
            return add(logs, loggamma_of(add(last, ONE_GERM)), negate(begin))
        return scale(_power_sum(exponent, low + offset, last), coefficient(slope**exponent))
    for method in (_geometric, _alternating, _by_integral):
        found = method(rest, k, low, top)
        if found is not None:
            return found
    raise Undecided(f"the sum of {rest}")


def _loggamma_value(x: Expr) -> Expr:
    return sympy.log(sympy.factorial(x - 1)) if x.is_Integer else sympy.log(sympy.gamma(x))


def _power_sum(r: Expr, first: Expr, last: Germ) -> Germ:
    """sum of x^r for x = first, first + 1, ..., last: Euler-Maclaurin, with Hurwitz' zeta."""
    if r == -1:
        start = number(coefficient(sympy.polygamma(0, first)))
        return subtract(polygamma_of(0, add(last, ONE_GERM)), start)
    if r.is_Integer and r >= 0 and first.is_Integer:
        x = sympy.Dummy("x")
        primitive = sympy.bernoulli(r + 1, x) / (r + 1)
        faulhaber = sympy.Poly(expand(primitive.subs(x, x + 1) - primitive.subs(x, first)), x)
        return add(*(scale(power(last, fmpq(k[0])), coefficient(c)) for k, c in faulhaber.terms()))
    if r.free_symbols:
        way = sign(coefficient(expand(r + 1)))
        main = scale(power(last, coefficient(expand(r + 1))), coefficient(1 / (r + 1)))
        error = Germ([], power(last, coefficient(r)).top())
        if way < 0:
            return add(number(coefficient(sympy.zeta(-r, first))), main, error)
        return add(main, error, Germ([], UNIT))
    out = [
        number(coefficient(sympy.zeta(-r, first))),
        scale(power(last, coefficient(r + 1)), coefficient(1 / (r + 1))),
        scale(power(last, coefficient(r)), HALF),
    ]
    order = case().order
    for j in range(1, order + 1):
        factor = sympy.bernoulli(2 * j) / sympy.factorial(2 * j) * sympy.ff(r, 2 * j - 1)
        out.append(scale(power(last, coefficient(r - 2 * j + 1)), coefficient(expand(factor))))
    rest = power(last, coefficient(r - 2 * order - 1)).top()
    return add(*out, Germ([], rest))


def _exponential_factor(rest: Expr, k: Symbol) -> tuple[Expr, Expr, Expr] | None:
    """(q, c, f) with rest = c q^k f, q a constant."""
    factor, q, others = S.One, S.One, S.One
    for f in sympy.Mul.make_args(rest):
        base, exponent = f.as_base_exp()
        slope = expand(exponent).coeff(k)
        offset = expand(exponent - slope * k)
        if base.has(k) or not exponent.has(k):
            others *= f
        elif offset.has(k) or not slope.is_number:
            return None
        else:
            q, factor = q * base**slope, factor * base**offset
    return (q, factor, others) if q != 1 else None


def _geometric(rest: Expr, k: Symbol, low: int, top: Germ) -> Germ | None:
    """sum P(k) q^k = Q(N + 1) q^(N+1) - Q(low) q^low with q Q(k + 1) - Q(k) = P(k)."""
    split_off = _exponential_factor(rest, k)
    if split_off is None:
        return None
    q, factor, others = split_off
    if not others.is_polynomial(k) or sign(coefficient(q)) <= 0 or sign(coefficient(q - 1)) == 0:
        return None
    degree = int(sympy.degree(others, k)) if others.has(k) else 0
    if degree > 8:
        raise Undecided("a sum of high degree")
    unknown = sympy.symbols(f"c:{degree + 1}", cls=sympy.Dummy)
    primitive = sum(c * k**i for i, c in enumerate(unknown))
    equation = sympy.Poly(expand(q * primitive.subs(k, k + 1) - primitive - others), k)
    solved = sympy.solve(equation.all_coeffs(), unknown, dict=True)[0]
    primitive = primitive.xreplace(solved)
    after = add(top, ONE_GERM)
    polynomial = [
        scale(power(after, fmpq(i)), coefficient(expand(solved[c]))) for i, c in enumerate(unknown)
    ]
    grown = exponential(scale(after, coefficient(sympy.log(q))))
    begin = primitive.subs(k, low) * q**low
    whole = subtract(multiply(add(*polynomial), grown), number(coefficient(expand(begin))))
    return scale(whole, coefficient(factor))


def _alternating(rest: Expr, k: Symbol, low: int, top: Germ) -> Germ | None:
    """sum (-1)^k (k + a)^-m, m > 0: a constant and O(N^-m)."""
    split_off = _exponential_factor(rest, k)
    if split_off is None or split_off[0] != -1:
        return None
    _, factor, others = split_off
    base, exponent = others.as_base_exp()
    inside = _linear(base, k)
    if inside is None or not exponent.is_Rational or exponent >= 0:
        return None
    slope, offset = inside
    start, m = low + offset, -exponent
    if start <= 0:
        return None
    if m == 1:
        total = (sympy.digamma((start + 1) / 2) - sympy.digamma(start / 2)) / 2
    else:
        total = (sympy.zeta(m, start / 2) - sympy.zeta(m, (start + 1) / 2)) / 2**m
    value = number(coefficient((-1) ** low * factor * slope**exponent * total))
    return add(value, Germ([], power(top, coefficient(exponent)).top()))


def _by_integral(rest: Expr, k: Symbol, low: int, top: Germ) -> Germ | None:
    """sum k^r (log k)^j (log log k)^i = F(N) + O(1 + f(N)), F a primitive of f: the summand is
    monotone from some k on."""
    powers: dict[Expr, Expr] = {}
    for f in sympy.Mul.make_args(rest):
        base, exponent = f.as_base_exp()
        if exponent.has(k) or not exponent.is_Rational:
            return None
        powers[base] = exponent
    chain = [k, sympy.log(k), sympy.log(sympy.log(k))]
    if not set(powers) <= set(chain):
        return None
    r, j, i = (powers.get(x, S.Zero) for x in chain)
    if low < 2 or (i and low < 3):
        return None
    levels = [top]
    for _ in range(3):
        levels.append(logarithm(levels[-1]))
    error = Germ([], UNIT)
    for a, level in zip((r, j, i), levels, strict=False):
        error = multiply(error, power(level, coefficient(a)))

    def primitive(level: Germ, exponent: Expr) -> Germ:
        return scale(power(level, coefficient(exponent + 1)), coefficient(1 / (exponent + 1)))

    if r == -1 and j == -1:
        main = levels[3] if i == -1 else primitive(levels[2], i)
    elif r == -1 and not i:
        main = primitive(levels[1], j)
    elif j == -1 and not i and r > -1:
        main = li_of(power(top, coefficient(r + 1)))
    elif j.is_Integer and j > 0 and not i:
        terms = [
            scale(
                power(levels[1], coefficient(j - t)),
                coefficient((-1) ** t * sympy.ff(j, t) / (r + 1) ** (t + 1)),
            )
            for t in range(int(j) + 1)
        ]
        main = multiply(power(top, coefficient(r + 1)), add(*terms))
    else:
        return None
    return add(main, error, Germ([], UNIT))


# -- bounded shifts -------------------------------------------------------------------------------


def _floor(e: Expr, a: Expr) -> Germ:
    whole = _eventual_integer(e)
    if whole is not None:
        return number(whole)
    down = e.func is sympy.floor
    atom = bounded_atom(S.Zero, S.One, sympy.frac(a if down else -a))
    return add(germ(a), number(coefficient(-atom if down else atom)))


def _frac(e: Expr, a: Expr) -> Germ:
    whole = _eventual_integer(sympy.floor(a, evaluate=False))
    if whole is not None:
        return subtract(germ(a), number(whole))
    return number(bounded_atom(S.Zero, S.One, e))


def _eventual_integer(e: Expr) -> Coefficient | None:
    """floor or ceiling of an argument with a finite limit, where it is constant for large n."""
    g = germ(e.args[0])
    if direction(g) != 0:
        return None
    limit, delta = finite(g)
    if oscillates(limit):
        return None
    limit = to_sympy(limit)
    if limit.free_symbols:
        return None
    whole = sympy.Integer(
        math.floor(sympy.N(limit, 30)) if limit.is_Rational is not True else (sympy.floor(limit))
    )
    candidates = [whole - 1, whole, whole + 1]
    for k in candidates:
        above, below_next = sign(coefficient(limit - k)), sign(coefficient(k + 1 - limit))
        if above >= 0 and below_next > 0:
            rest = 1 if above else eventual_sign_of(delta) if not delta.literally_zero else 0
            floor = k if rest >= 0 else k - 1
            if e.func is sympy.floor:
                return coefficient(floor)
            return coefficient(floor if above == 0 and rest == 0 else floor + 1)
    return None


def _mod(e: Expr, a: Expr, b: Expr) -> Germ:
    if b.has(n) or sign(coefficient(b)) <= 0:
        raise Undecided("Mod with this modulus")
    return number(bounded_atom(S.Zero, b, b * sympy.frac(a / b)))


def _min_max(e: Expr, *args: Expr) -> Germ:
    """The least or greatest of oscillating constants (of growing quantities: by `eventual`)."""
    values = []
    for limit, delta in (finite(germ(a)) for a in args):
        if not delta.literally_zero:
            raise Undecided(f"{e.func.__name__} of quantities that change places for ever")
        values.append(bounds(limit))
    better = below if isinstance(e, sympy.Min) else lambda a, b: below(b, a)
    low, high = values[0]
    for a, b in values[1:]:
        low, high = (a if better(a, low) else low), (b if better(b, high) else high)
    return number(bounded_atom(low, high, e))


def _sign(e: Expr, a: Expr) -> Germ:
    return number(bounded_atom(S.NegativeOne, S.One, e))


def _heaviside(e: Expr, a: Expr, at_zero: Expr = S.Half) -> Germ:
    if not (at_zero.is_Rational and 0 <= at_zero <= 1):
        raise Undecided("a step that changes for ever")
    return number(bounded_atom(S.Zero, S.One, e))


def _abs(e: Expr, a: Expr) -> Germ:
    g = germ(a)
    try:
        return g if eventual_sign_of(g) >= 0 else negate(g)
    except Undecided:
        if len(g.terms) != 1 or not g.exact:
            raise
    m, c = g.terms[0]
    s = low_sign(c)
    if s >= 0:
        return g
    low, high = bounds(c)
    if below(high, S.Zero):
        return negate(g)
    top = -low if below(high, -low) else high
    return Germ([(m, bounded_atom(S.Zero, top, sympy.Abs(to_sympy(c))))])


_RULES: dict[Any, Callable[..., Germ]] = {
    sympy.exp: _exp, sympy.log: _log,
    **dict.fromkeys(_TRIG, _trig),
    sympy.sinh: _hyperbolic, sympy.cosh: _hyperbolic, sympy.tanh: _tanh, sympy.coth: _tanh,
    sympy.atan: _atan, sympy.acot: _acot, sympy.asin: _acos, sympy.acos: _acos,
    sympy.asinh: _asinh, sympy.acosh: _acosh, sympy.atanh: _atanh,
    sympy.erf: _erf, sympy.erfc: _erfc,
    sympy.gamma: _gamma, sympy.loggamma: _loggamma, sympy.factorial: _factorial,
    sympy.polygamma: _polygamma, sympy.harmonic: _harmonic, sympy.binomial: _binomial,
    sympy.zeta: _zeta, sympy.LambertW: _lambert, sympy.li: _li, sympy.Ei: _ei, sympy.erfi: _erfi,
    sympy.Si: _sine_integral, sympy.Ci: _sine_integral, sympy.Sum: _sum,
    **dict.fromkeys((sympy.besselj, sympy.besseli, sympy.besselk), _bessel),
    sympy.floor: _floor, sympy.ceiling: _floor, sympy.frac: _frac, sympy.Mod: _mod,
    sympy.Abs: _abs, sympy.Min: _min_max, sympy.Max: _min_max,
    sympy.sign: _sign, sympy.Heaviside: _heaviside,
}  # fmt: skip


# -- what an expression is for all large n --------------------------------------------------------


def eventual(e: Expr) -> Expr:
    """The expression with comparisons decided for all large n; may be -oo or oo.

    >>> eventual(sympy.Piecewise((n, n < 100), (-n, True)))
    -n
    """
    if not e.args or not e.has(*_DECIDED):
        return e
    if isinstance(e, sympy.Piecewise):
        for value, condition in e.args:
            if holds(condition):
                return eventual(value)
        raise Undecided("no piece applies for large n")
    if isinstance(e, Lookup):
        return e.args[2]
    args = [eventual(a) for a in e.args]
    if isinstance(e, (sympy.Min, sympy.Max)):
        try:
            return _extreme(args, -1 if isinstance(e, sympy.Min) else 1)
        except Undecided:
            return e.func(*args, evaluate=False)
    if isinstance(e, (sympy.sign, sympy.Heaviside, sympy.Abs)):
        try:
            s = _sign_at_large(args[0])
        except Undecided:
            return e.func(*args)
        if isinstance(e, sympy.Abs):
            return args[0] if s >= 0 else -args[0]
        if isinstance(e, sympy.sign):
            return sympy.Integer(s)
        return args[1] if s == 0 and len(args) > 1 else sympy.Rational(1 + s, 2)
    if isinstance(e, sympy.log) and args[0] == 0:
        return S.NegativeInfinity
    if (e.is_Add or e.is_Mul) and any(a in _INFINITE for a in args):
        return _with_infinity(e.func, args)
    try:
        return e if tuple(args) == e.args else rebuilt(e.func, tuple(args))
    except TooLarge:
        raise Undecided("a constant is too large") from None


def _with_infinity(operation: Any, args: list[Expr]) -> Expr:
    """A sum or product in which some arguments are -oo or oo, the others finite."""
    infinite, others = sympy.sift(args, lambda a: a in _INFINITE, binary=True)
    total = operation(*infinite)
    if operation is sympy.Mul and others:
        total = total * _sign_at_large(sympy.Mul(*others))
    if total not in _INFINITE:
        raise NotReal("oo - oo or 0 oo")
    return total


_INFINITE = (S.Infinity, S.NegativeInfinity)
_DECIDED = (
    sympy.Piecewise, Lookup, sympy.Min, sympy.Max, sympy.sign, sympy.Heaviside, sympy.Abs
)  # fmt: skip


def _sign_at_large(e: Expr) -> int:
    if e in _INFINITE:
        return 1 if e is S.Infinity else -1
    return eventual_sign_of(germ(e))


def _extreme(args: list[Expr], want: int) -> Expr:
    best = args[0]
    for x in args[1:]:
        difference = germ(x - best) if x.is_finite is not False else None
        lead = difference.leading() if difference is not None else None
        if difference is None:
            s = 1 if x is S.Infinity else -1
        elif lead is None:
            s = 0
        else:
            s = _weak_sign(lead, difference)
        best = x if s == want else best
    return best


def _weak_sign(lead: Term, g: Germ) -> int:
    """The sign of g for large n, also where one exact oscillating term only touches 0."""
    _, c = lead
    if oscillates(c) and len(g.terms) == 1 and g.exact:
        if low_sign(c) >= 0:
            return 1
        if low_sign(minus(c)) >= 0:
            return -1
    return eventual_sign(c)


def holds(condition: Any) -> bool:
    """Whether a condition is true for all large n (it must be true or false for all of them)."""
    if condition in (True, S.true):
        return True
    if condition in (False, S.false):
        return False
    if isinstance(condition, sympy.And):
        return all(holds(c) for c in condition.args)
    if isinstance(condition, sympy.Or):
        return any(holds(c) for c in condition.args)
    if isinstance(condition, sympy.Not):
        return not holds(condition.args[0])
    if isinstance(condition, sympy.ITE):
        test, yes, no = condition.args
        return holds(yes if holds(test) else no)
    if not isinstance(condition, sympy.core.relational.Relational):
        raise Undecided(f"a condition of the kind {type(condition).__name__}")
    s = _sign_at_large(eventual(condition.lhs - condition.rhs))
    return {
        sympy.StrictLessThan: s < 0, sympy.LessThan: s <= 0, sympy.StrictGreaterThan: s > 0,
        sympy.GreaterThan: s >= 0, sympy.Equality: s == 0, sympy.Unequality: s != 0,
    }[condition.func]  # fmt: skip
