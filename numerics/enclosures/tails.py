r"""Tail enclosures: expansions at infinity with ball coefficients, that hold on all of [X, oo).

A `TailEnclosure` is a sum of terms `c m`. The monomial m is `x^{a0} L1^{a1} ... exp(sum c_j m_j)`,
with L_k the k-fold logarithm of x. The coefficient c is an exact rational, or a complex ball that
contains the coefficient at *every* x >= X. What an asymptotic expansion would leave as O(m) is a
ball times m:

* a decaying monomial is at most its value at X, once its logarithmic derivative is proved
  negative on `[X, oo)`; so small terms are absorbed into the ball of a larger one;
* a function of c m (1 + delta) is expanded in delta by Taylor's formula, the last coefficient
  taken over the whole ball of delta.

Coefficients may be complex: with s = L1 + log kappa, kappa a ball around 1, a statement holds on
the whole sector of points kappa x. Nothing is asymptotic; `Unproved` asks for a larger X. (ours)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cmp_to_key, lru_cache, partial
from threading import Lock
from types import SimpleNamespace
from typing import ClassVar, TypeAlias
from weakref import WeakValueDictionary

from flint import acb, acb_series, arb, ctx, fmpq
from sympy import Basic, Expr, Symbol

from farfield.numerics.search import Unrecognised
from farfield.theory.algebra.door import check_time
from farfield.theory.functions.balls import rational, to_arb
from farfield.theory.functions.record import Arithmetic, Operation, value
from farfield.theory.values import compile_ball

Chain = tuple[fmpq, ...]
Exponents = tuple[tuple[Chain, fmpq], ...]
Coefficient: TypeAlias = fmpq | acb  # exact, or a ball

ORDER = 5  # Taylor coefficients kept exactly; the next is a ball
KEPT = 10  # terms of an enclosure, the smallest joined to one
STEEP = 8  # an exponential below x^-8 is kept as a ball of that size


class TailMonomial:
    """x^{a0} L1^{a1} ... exp(sum c_j m_j): its exponents `chain`, and `exponents` the (m_j, c_j).

    Equal monomials are one object (`monomial`), so that they are compared and hashed at once.
    """

    __slots__ = ("__weakref__", "chain", "exponents")

    def __init__(self, chain: Chain, exponents: Exponents) -> None:
        self.chain, self.exponents = chain, exponents


_KNOWN: WeakValueDictionary[object, TailMonomial] = WeakValueDictionary()
_LOCK = Lock()


def monomial(chain: Chain, exponents: Exponents = ()) -> TailMonomial:
    """The monomial with these exponents."""
    key = (_plain(chain), tuple((_plain(m), int(c.p), int(c.q)) for m, c in exponents))
    with _LOCK:
        interned = _KNOWN.get(key)
        if interned is None:
            interned = _KNOWN[key] = TailMonomial(chain, exponents)
        return interned


def _plain(chain: Chain) -> tuple[int, ...]:
    """The exponents as integers, which hash faster than rationals."""
    return tuple(int(part) for a in chain for part in (a.p, a.q))


UNIT = monomial(())
Terms = dict[TailMonomial, Coefficient]


class Unproved(Exception):
    """Not proved on [X, oo); a larger X may do."""


@dataclass(frozen=True)
class HalfLine:
    """The half-line x >= X, by the values of log X, log log X, ... as far as they exist."""

    logs: tuple[arb, ...]

    def log_value(self, m: TailMonomial) -> arb:
        """log m(X)."""
        total = self._log_chain(m.chain)
        for chain, c in m.exponents:
            total += arb(c) * self._log_chain(chain).exp()
        return total

    def _log_chain(self, chain: Chain) -> arb:
        """The logarithm of a product of powers of iterated logarithms, at the half-line's end."""
        total = arb(0)
        for i, a in enumerate(chain):
            if a:
                total += arb(a) * self._level(i)
        return total

    def _level(self, i: int) -> arb:
        """L_(i+1) at the half-line's end; Unproved while it is not positive."""
        if i >= len(self.logs):
            raise Unproved("an iterated logarithm is not yet positive")
        return self.logs[i]

    def bound(self, m: TailMonomial) -> arb:
        """The supremum on [X, oo) of a monomial that does not grow; 1 for the unit."""
        if m is UNIT:
            return arb(1)
        if not self._decreases(m):
            raise Unproved("a monomial is not proved to decrease")
        return self.log_value(m).upper().exp().upper()

    def _decreases(self, m: TailMonomial) -> bool:
        """D log m < 0 on [X, oo), D = x d/dx."""
        if not m.exponents:
            return self._chain_decreases(m.chain)
        slopes: dict[Chain, fmpq] = {}
        for chain, c in m.exponents:
            for power, a in _slope(chain):
                key = _product(chain, power)
                slopes[key] = slopes.get(key, fmpq(0)) + c * a
        for power, a in _slope(m.chain):
            slopes[power] = slopes.get(power, fmpq(0)) + a
        slopes = {k: v for k, v in slopes.items() if v}
        lead = max(slopes, key=_padded)
        rest = arb(0)
        for chain, c in slopes.items():
            if chain != lead and c > 0:
                ratio = _product(chain, tuple(-a for a in lead))
                if not self._chain_decreases(ratio):
                    return False
                rest += arb(c) * self._log_chain(ratio).exp()
        return bool(arb(slopes[lead]) + rest < 0)

    def _chain_decreases(self, chain: Chain) -> bool:
        """a_k + a_{k+1}/L_{k+1} + a_{k+2}/(L_{k+1} L_{k+2}) + ... < 0, a_k the first exponent."""
        k = next(i for i, a in enumerate(chain) if a)
        total, scale = arb(chain[k]), arb(1)
        for i in range(k + 1, len(chain)):
            if not self._level(i - 1) > 0:
                raise Unproved("an iterated logarithm is not yet positive")
            scale = scale / self._level(i - 1)
            total += scale * arb(max(chain[i], fmpq(0)))
        return bool(total < 0)


def _slope(chain: Chain) -> list[tuple[Chain, fmpq]]:
    """D log of a chain: sum a_i/(L_1 ... L_i)."""
    return [((fmpq(0),) + (fmpq(-1),) * i if i else (), a) for i, a in enumerate(chain) if a]


def _padded(chain: Chain) -> tuple[fmpq, ...]:
    return chain + (fmpq(0),) * (8 - len(chain))


def _strip(chain: Iterable[fmpq]) -> Chain:
    """Without trailing zeros, so that equal products are equal tuples."""
    out = list(chain)
    while out and not out[-1]:
        out.pop()
    return tuple(out)


def _product(a: Chain, b: Chain) -> Chain:
    size = max(len(a), len(b))
    wide = [(c + (fmpq(0),) * (size - len(c))) for c in (a, b)]
    return _strip(x + y for x, y in zip(*wide, strict=True))


@lru_cache(maxsize=1 << 14)
def times(a: TailMonomial, b: TailMonomial) -> TailMonomial:
    """The product of two monomials."""
    return monomial(_product(a.chain, b.chain), _exponents([*a.exponents, *b.exponents]))


@lru_cache(maxsize=1 << 12)
def raised(m: TailMonomial, q: fmpq) -> TailMonomial:
    """A monomial to a rational power."""
    exponents = _exponents((chain, c * q) for chain, c in m.exponents)
    return monomial(_strip(x * q for x in m.chain), exponents)


def _exponents(parts: Iterable[tuple[Chain, fmpq]]) -> Exponents:
    """Like chains added, zeros dropped, the fastest first: equal exponentials are equal tuples."""
    powers: dict[Chain, fmpq] = {}
    for chain, c in parts:
        powers[chain] = powers.get(chain, fmpq(0)) + c
    kept = [(chain, c) for chain, c in powers.items() if c]
    return tuple(sorted(kept, key=lambda t: _padded(t[0]), reverse=True))


@lru_cache(maxsize=1 << 14)
def growth(m: TailMonomial) -> int:
    """1 if m -> oo, -1 if m -> 0, 0 for the unit."""
    k = next((i for i, a in enumerate(m.chain) if a), None)
    lead = fmpq(0) if k is None else m.chain[k]
    if m.exponents and (k is None or _padded(m.exponents[0][0]) > _padded(level(k + 1).chain)):
        lead = m.exponents[0][1]
    return (lead > 0) - (lead < 0)


@lru_cache(maxsize=1 << 14)
def _descending(a: TailMonomial, b: TailMonomial) -> int:
    return -growth(times(a, raised(b, fmpq(-1))))


def _ball(c: Coefficient) -> acb:
    return c if isinstance(c, acb) else acb(arb(c))


def _zero_to(size: arb) -> arb:
    """A ball that contains [0, size]."""
    return arb(0).union(size.upper())


class TailEnclosure:
    """A sum of terms on one half-line; see the module's description."""

    def __init__(self, where: HalfLine, terms: Terms) -> None:
        check_time()
        self.where = where
        order = sorted(
            (m for m, c in terms.items() if not _is_zero(c)), key=cmp_to_key(_descending)
        )
        self.terms = {m: terms[m] for m in order[:KEPT]}
        for m in order[KEPT:]:
            last = order[KEPT - 1]
            ratio = where.bound(times(m, raised(last, fmpq(-1))))
            self.terms[last] = _ball(self.terms[last]) + _ball(terms[m]) * _zero_to(ratio)

    def __add__(self, other: TailEnclosure) -> TailEnclosure:
        terms = dict(self.terms)
        for m, c in other.terms.items():
            terms[m] = terms[m] + c if m in terms else c
        return TailEnclosure(self.where, terms)

    def __mul__(self, other: TailEnclosure) -> TailEnclosure:
        terms: Terms = {}
        for a, c in self.terms.items():
            for b, d in other.terms.items():
                m = times(a, b)
                terms[m] = terms[m] + c * d if m in terms else c * d
        return TailEnclosure(self.where, terms)

    def shifted(self, m: TailMonomial, c: Coefficient) -> TailEnclosure:
        """The enclosure times c m."""
        return self * TailEnclosure(self.where, {m: c})

    def small(self) -> acb:
        """A ball with all values and 0; Unproved where a term grows."""
        total = acb(0)
        for m, c in self.terms.items():
            total += _ball(c) * _zero_to(self.where.bound(m))
        return total

    def factored(self) -> tuple[TailMonomial, Coefficient, TailEnclosure]:
        """(m, c, delta) with value c m (1 + delta), delta -> 0."""
        if not self.terms:
            raise Unproved("zero has no leading term")
        m, c = next(iter(self.terms.items()))
        if isinstance(c, acb) and c.contains(0):
            raise Unproved("a leading coefficient may vanish")
        rest = TailEnclosure(self.where, {k: v for k, v in self.terms.items() if k is not m})
        inverse = 1 / c if isinstance(c, acb) else fmpq(1) / c
        return m, c, rest.shifted(raised(m, fmpq(-1)), inverse)

    def scaled(self, c: Coefficient) -> TailEnclosure:
        """The enclosure times c."""
        return self.shifted(UNIT, c)

    @property
    def grows(self) -> bool:
        """Whether a term tends to infinity."""
        return any(growth(m) > 0 for m in self.terms)

    @property
    def has_constant(self) -> bool:
        """Whether a constant is one of the terms."""
        return UNIT in self.terms

    def with_zero(self) -> TailEnclosure:
        """The same terms, each ball widened to contain 0."""
        zero = acb(0)
        return TailEnclosure(self.where, {m: _ball(c).union(zero) for m, c in self.terms.items()})

    def real(self) -> bool:
        """Whether every coefficient is real."""
        return all(isinstance(c, fmpq) or c.imag.is_zero() for c in self.terms.values())

    def negative(self) -> bool:
        """Whether the real part is proved negative on [X, oo)."""
        if not self.terms:
            return False
        m = next(iter(self.terms))
        total = arb(0)
        for k, c in self.terms.items():
            real = _ball(c).real
            if k is m:
                total += real
            elif not real < 0:
                ratio = self.where.bound(times(k, raised(m, fmpq(-1))))
                total += arb(0).max(real.upper()) * ratio
        return bool(total < 0)


def _is_zero(c: Coefficient) -> bool:
    return bool(c == 0) if isinstance(c, fmpq) else bool(c.is_zero())


def constant(where: HalfLine, c: Coefficient) -> TailEnclosure:
    """A constant."""
    return TailEnclosure(where, {UNIT: c})


@lru_cache(maxsize=16)
def level(k: int) -> TailMonomial:
    """L_k; L_0 is x."""
    return monomial((fmpq(0),) * k + (fmpq(1),))


def _series(coefficients: list[Coefficient], delta: TailEnclosure) -> TailEnclosure:
    """sum c_k delta^k."""
    total, power = constant(delta.where, coefficients[0]), constant(delta.where, fmpq(1))
    for c in coefficients[1:]:
        power = power * delta
        total = total + power.shifted(UNIT, c)
    return total


def taylor(exact: Sequence[fmpq | int], name: str, delta: TailEnclosure) -> TailEnclosure:
    """A function with these first Taylor coefficients at 0, at delta -> 0."""
    last = _coefficient_on(name, delta.small(), ORDER)
    if not last.is_finite():
        raise Unproved(f"{name} is not enclosed")
    return _series([*map(fmpq, exact[:ORDER]), last], delta)


def _coefficient_on(name: str, z: acb, k: int) -> acb:
    """The k-th Taylor coefficient of exp, sin, cos, atan or log1p on a ball."""
    before = ctx.cap
    ctx.cap = k + 1
    try:
        series = acb_series([1 + z if name == "log1p" else z, 1])
        value = getattr(series, "log" if name == "log1p" else name)()[k]
    finally:
        ctx.cap = before
    return acb(value)


def _inverse_factorials(pattern: tuple[int, ...]) -> list[fmpq]:
    """The coefficients pattern(k)/k! of exp, sin and cos."""
    return [fmpq(pattern[k % len(pattern)], math.factorial(k)) for k in range(ORDER)]


LOG1P = [fmpq(0)] + [fmpq((-1) ** (k + 1), k) for k in range(1, ORDER)]
_ATAN = [fmpq(0 if k % 2 == 0 else (-1) ** (k // 2), max(k, 1)) for k in range(ORDER)]
AT_ZERO = {
    "sin": _inverse_factorials((0, 1, 0, -1)),
    "cos": _inverse_factorials((1, 0, -1, 0)),
    "atan": _ATAN,
}


EXP = _inverse_factorials((1,))


def log1p(g: TailEnclosure) -> TailEnclosure:
    """log(1 + g) for g -> 0, the logarithm of 1 + g otherwise."""
    if any(growth(m) >= 0 for m in g.terms):
        return log(constant(g.where, fmpq(1)) + g)
    return taylor(LOG1P, "log1p", g)


def expm1(g: TailEnclosure) -> TailEnclosure:
    """exp(g) - 1."""
    if any(growth(m) >= 0 for m in g.terms):
        return exp(g) + constant(g.where, fmpq(-1))
    return taylor([0, *EXP[1:]], "exp", g)


def log(g: TailEnclosure) -> TailEnclosure:
    """log g, where its leading coefficient is off the branch cut."""
    m, c, delta = g.factored()
    terms: Terms = {monomial(chain): e for chain, e in m.exponents}
    for i, a in enumerate(m.chain):
        if a:
            terms[level(i + 1)] = terms.get(level(i + 1), fmpq(0)) + a
    if not (isinstance(c, fmpq) and c == 1):
        value = _ball(c).log(analytic=True)
        if not value.is_finite():
            raise Unproved("a logarithm near its branch cut")
        terms[UNIT] = value
    return TailEnclosure(g.where, terms) + log1p(delta)


def power(g: TailEnclosure, q: fmpq) -> TailEnclosure:
    """g^q."""
    if q.q == 1 and 0 <= q <= 12:
        out = constant(g.where, fmpq(1))
        for _ in range(int(q.p)):
            out = out * g
        return out
    m, c, delta = g.factored()
    if isinstance(c, fmpq) and (q.q == 1 or c == 1):
        scale: Coefficient = c ** int(q.p) if q.q == 1 else c
    else:
        scale = (_ball(c).log(analytic=True) * arb(q)).exp()
        if not scale.is_finite():
            raise Unproved("a power near its branch cut")
    binomial = [fmpq(1)]
    for k in range(ORDER):
        binomial.append(binomial[-1] * (q - k) / (k + 1))
    base = 1 + delta.small()
    if not base.real > 0:
        raise Unproved("a power near its branch cut")
    last = _ball(binomial[-1]) * (base.log() * (arb(q) - ORDER)).exp()
    return _series([*binomial[:-1], last], delta).shifted(raised(m, q), scale)


def exp(g: TailEnclosure) -> TailEnclosure:
    """exp g."""
    where = g.where
    growing = [(m, c) for m, c in g.terms.items() if growth(m) > 0]
    small = TailEnclosure(where, {m: c for m, c in g.terms.items() if growth(m) < 0})
    chain: Chain = ()
    exponents = []
    for m, c in growing:
        if isinstance(c, acb) or m.exponents:
            return _vanishing(g)
        if len(m.chain) > 1 and m is level(len(m.chain) - 1):
            chain = _product(chain, raised(level(len(m.chain) - 2), c).chain)
        else:
            exponents.append((m.chain, c))
    unit = g.terms.get(UNIT, fmpq(0))
    scale = fmpq(1) if isinstance(unit, fmpq) and unit == 0 else _ball(unit).exp()
    series = taylor(EXP, "exp", small)
    return series.shifted(monomial(chain, _exponents(exponents)), scale)


def _vanishing(g: TailEnclosure) -> TailEnclosure:
    """exp g as a ball times x^-STEEP, where g + STEEP log x is proved negative."""
    steep = TailEnclosure(g.where, {level(1): fmpq(STEEP)})
    if not (g + steep).negative():
        raise Unproved("an exponential that is not proved to vanish")
    return TailEnclosure(g.where, {monomial((fmpq(-STEEP),)): ball_of(1, g)})


def ball_of(radius: float, g: TailEnclosure) -> acb:
    """All z with |z| <= radius; the real ones if g is real."""
    return acb(arb(0, radius)) if g.real() else acb(arb(0, radius), arb(0, radius))


def in_right_half_plane(g: TailEnclosure, least: int = 1) -> None:
    """Prove |g| > least and |arg g| < pi/4."""
    m, c, delta = g.factored()
    if growth(m) <= 0:
        raise Unproved("an argument does not grow")
    lead = _ball(c) * (1 + delta.small())
    size = lead.real.lower() / g.where.bound(raised(m, fmpq(-1)))
    if not (size > least and lead.real > abs(lead.imag)):
        raise Unproved("an argument is not proved large")


def imaginary(g: TailEnclosure) -> TailEnclosure:
    """Im g."""
    parts = {m: acb(c.imag) for m, c in g.terms.items() if isinstance(c, acb)}
    return TailEnclosure(g.where, {m: c for m, c in parts.items() if not c.is_zero()})


class Tails(Arithmetic):
    """Tail enclosures on one half-line; `symbols` are those that have one."""

    rule: ClassVar[str] = "tail"

    def __init__(self, where: HalfLine, symbols: Iterable[object]) -> None:
        self.where, self.symbols = where, tuple(symbols)

    def operation(self, e: Basic) -> Operation:
        if not e.has(*self.symbols):
            return lambda: constant(self.where, _exact_or_ball(e)), ()
        return super().operation(e)

    def power(self, e: Expr) -> Operation:
        if e.exp.is_Rational:
            return lambda base: power(base, rational(e.exp)), (e.base,)
        return lambda exponent, base: exp(exponent * log(base)), (e.exp, e.base)

    def applied(self, rule: Callable[..., object]) -> Callable[..., object]:
        return partial(rule, OPERATIONS)

    def lacking(self, name: str, why: str) -> Exception:
        return Unrecognised(f"{name} has no bounds at infinity: {why}")


def _exact_or_ball(e: Expr) -> Coefficient:
    """A constant as a rational where it is one: exact terms cancel exactly."""
    return rational(e) if e.is_Rational else acb(to_arb(compile_ball(e)({})))


OPERATIONS = SimpleNamespace(
    Unproved=Unproved,
    LOG1P=LOG1P,
    EXP=EXP,
    AT_ZERO=AT_ZERO,
    ball_of=ball_of,
    constant=lambda g, c: constant(g.where, c),
    exp=exp,
    expm1=expm1,
    imaginary=imaginary,
    in_right_half_plane=in_right_half_plane,
    log=log,
    log1p=log1p,
    power=power,
    taylor=taylor,
)
"""What the rules of records speak in: `t.exp(g)`, `t.ball_of(1, g)`, ..."""


def tail_enclosure(
    e: Expr, s: Symbol, variable: TailEnclosure, others: dict[Expr, TailEnclosure] | None = None
) -> TailEnclosure:
    """`e` on the half-line, with its variable s, and other symbols, given."""
    values: dict[object, object] = {s: variable, **(others or {})}
    return value(e, Tails(variable.where, values), values)
