r"""The classes `Transseries` and `Monomial`: sorted terms, their sums, products, log, exp, powers.

The comparator of growth behind every verdict. No limit is ever computed. A function is written as
a finite sum of comparable *monomials* with exact coefficients and a rigorous
remainder, and all questions are answered by the leading term.

Transseries
-----------
A transseries is `sum c_k m_k + O(remainder)`, monomials strictly descending, all above the
remainder; no remainder means that the finite sum is the function itself. Sums and products are
immediate. For f analytic at 0, `f(delta) = sum coef_k delta^k`, delta -> 0 (`taylor`); log, exp and
powers are reduced to it:

    g = c m (1 + delta):   log g = log m + log c + log(1 + delta),   g^r = c^r m^r (1 + delta)^r
    g = infinite + constant + delta:   exp g = exp(infinite) e^constant exp(delta)

A zero coefficient must be recognised before a term leads. `with_proved_lead` asks `sign` and drops
coefficients that are proved zero. When only a remainder is left it raises `OrderTooLow`, and the
driver starts again with more terms. Nothing is ever inferred from a missing term.

Monomials
---------
A monomial is `n^a0 L1^a1 L2^a2 ... exp(c1 M1 + c2 M2 + ...)`. `L1 = log n`, `L2 = log log n`, ...
and the M_i -> oo are monomials themselves, in descending order, none of them an `L_j` (an
`exp(c L_j)` belongs to the chain). Exponents and coefficients are exact (room `coefficients`), so
`n^sqrt(2)`, `n^q` with a parameter q, and nested exponentials need nothing special. No basis has to
be maintained, unlike in Gruntz's algorithm.

The logarithm of a monomial is `a0 L1 + a1 L2 + ... + sum c_i M_i`. Its largest term decides
whether the monomial tends to oo, to 0, or is 1 (`size`), and so how two monomials compare
(`compare`: the size of their quotient). The recursion ends since each M_i nests less deeply.

Where rigour lives: `sign`, `compare`, the remainder lines of the product and of `taylor`. The rest
is bookkeeping.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cmp_to_key, lru_cache
from itertools import zip_longest

import sympy
from flint import fmpq

from farfield.theory.algebra.call_tree import traced
from farfield.theory.algebra.exceptions import NotReal, OrderTooLow, Undecided
from farfield.theory.coefficients.exact import (
    ONE,
    ZERO,
    Coefficient,
    coefficient,
    inverse,
    logarithm,
    minus,
    oscillates,
    plus,
    power,
    times,
    total,
)
from farfield.theory.coefficients.oscillation import (
    in_harmonics,
    inverse_of,
    log_of,
    low_sign,
    monotone,
    power_of,
    stays_negative,
    unbounded,
    vanishes,
)
from farfield.theory.coefficients.signs import Context

Term = tuple["Monomial", Coefficient]


class Monomial:
    """`n^chain[0] L1^chain[1] ... * exp(sum c M for (M, c) in exponent)`."""

    __slots__ = ("_hash", "chain", "exponent", "literal")

    def __init__(self, chain: Iterable[Coefficient] = (), exponent: Iterable[Term] = ()) -> None:
        powers = list(chain)
        while powers and not powers[-1]:
            powers.pop()
        self.chain: tuple[Coefficient, ...] = tuple(powers)
        self.exponent: tuple[Term, ...] = tuple(exponent)
        exact = [type(a) is fmpq for a in powers]
        self.literal = not self.exponent and all(exact)
        """Monomials with rational powers of the chain are equal only if they look equal."""
        # A fmpq hashes by way of a Fraction, which takes longer than all else here.
        numerators = [a.p if is_exact else a for a, is_exact in zip(powers, exact, strict=True)]
        self._hash = hash((*numerators, *(m for m, _ in self.exponent)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Monomial)
            and self._hash == other._hash
            and self.chain == other.chain
            and self.exponent == other.exponent
        )

    def times(self, other: Monomial, context: Context) -> Monomial:
        """The product."""
        a, b = self.chain, other.chain
        if len(a) < len(b):
            a, b = b, a
        chain = [*map(plus, a, b), *a[len(b) :]]
        if self.exponent and other.exponent:
            return Monomial(chain, collected([*self.exponent, *other.exponent], context))
        return Monomial(chain, self.exponent or other.exponent)

    def __pow__(self, r: Coefficient) -> Monomial:
        if not r:
            return UNIT
        return Monomial(
            [times(a, r) for a in self.chain], [(m, times(c, r)) for m, c in self.exponent]
        )

    def __repr__(self) -> str:
        names = ["n" if i == 0 else f"L{i}" for i in range(len(self.chain))]
        parts = [
            f"{name}^{a}" if a != 1 else name
            for name, a in zip(names, self.chain, strict=True)
            if a
        ]
        if self.exponent:
            parts.append("exp(" + " + ".join(f"{c}*{m}" for m, c in self.exponent) + ")")
        return "*".join(parts) or "1"


UNIT = Monomial()


@lru_cache(maxsize=64)
def iterated_log(k: int) -> Monomial:
    """L_k: n for k = 0, log n for k = 1, log log n for k = 2, ..."""
    return Monomial((ZERO,) * k + (ONE,))


def size(m: Monomial, context: Context) -> int:
    """1 if m -> oo, -1 if m -> 0, 0 if m is 1: the sign of the leading term of log m."""
    power, index = 0, 0
    for index, a in enumerate(m.chain):  # noqa: B007
        power = context.sign(a)
        if power:
            break
    for inner, c in m.exponent:
        if s := context.sign(c):
            wins = power == 0 or compare(inner, iterated_log(index + 1), context) > 0
            return s if wins else power
    return power


def compare(a: Monomial, b: Monomial, context: Context) -> int:
    """1 if a/b -> oo, -1 if a/b -> 0, 0 if they are equal."""
    if a is b:
        return 0
    if a.literal and b.literal:
        for x, y in zip_longest(a.chain, b.chain, fillvalue=ZERO):
            if x != y:
                return 1 if x > y else -1
        return 0
    if a.exponent or b.exponent:
        return size(a.times(b ** fmpq(-1), context), context)
    for x, y in zip_longest(a.chain, b.chain, fillvalue=ZERO):
        if s := context.sign(plus(x, minus(y))):
            return s
    return 0


def collected(terms: Iterable[Term], context: Context) -> list[Term]:
    """Like terms added up, in descending order."""
    like: dict[Monomial, list[Coefficient]] = {}
    for m, c in terms:
        like.setdefault(m, []).append(c)
    sums = ((m, total(cs) if len(cs) > 1 else cs[0]) for m, cs in like.items())
    items = [t for t in sums if t[1]]
    if all(m.literal for m, _ in items):
        width = max((len(m.chain) for m, _ in items), default=0)
        items.sort(key=lambda t: t[0].chain + (ZERO,) * (width - len(t[0].chain)), reverse=True)
        return items

    def descending(x: Term, y: Term) -> int:
        return compare(y[0], x[0], context)

    items.sort(key=cmp_to_key(descending))
    out = items[:1]
    for m, c in items[1:]:
        if out and not (m.literal and out[-1][0].literal) and compare(out[-1][0], m, context) == 0:
            m, d = out.pop()  # equal, though written differently
            c = plus(d, c)
            if not c:
                continue
        out.append((m, c))
    return out


def larger(a: Monomial | None, b: Monomial | None, context: Context) -> Monomial | None:
    """The larger of two monomials; None is 0."""
    if a is None or b is None:
        return b if a is None else a
    return a if compare(a, b, context) >= 0 else b


def log_index(m: Monomial, context: Context) -> int:
    """j if m is L_j, j >= 1, else 0."""
    j = len(m.chain) - 1
    return j if not m.exponent and j >= 1 and compare(m, iterated_log(j), context) == 0 else 0


# -- transseries ----------------------------------------------------------------------------------


class Transseries:
    """`sum c m for (m, c) in terms`, plus O(remainder) unless the remainder is None; within the
    decision `context`, by which its operations ask for signs."""

    __slots__ = ("context", "remainder", "terms")

    def __init__(
        self, context: Context, terms: Iterable[Term] = (), remainder: Monomial | None = None
    ) -> None:
        self.context = context
        self.terms: tuple[Term, ...] = tuple(terms)
        self.remainder = remainder

    def __repr__(self) -> str:
        shown = " + ".join(f"({c})*{m}" if _is_sum(c) else f"{c}*{m}" for m, c in self.terms)
        return (shown or "0") + (f" + O({self.remainder})" if self.remainder else "")

    def of(self, terms: Iterable[Term] = (), remainder: Monomial | None = None) -> Transseries:
        """Another transseries within the same decision."""
        return Transseries(self.context, terms, remainder)

    @property
    def exact(self) -> bool:
        return self.remainder is None

    def leading(self) -> Term | None:
        """The leading term, its coefficient proved non-zero; None for an exact 0."""
        g = with_proved_lead(self)
        return g.terms[0] if g.terms else None

    def top(self) -> Monomial:
        """A monomial that bounds the size; the transseries is not literally 0."""
        if self.terms:
            return self.terms[0][0]
        assert self.remainder is not None
        return self.remainder

    @property
    def literally_zero(self) -> bool:
        return not self.terms and self.exact

    def _series(self, x: object) -> Transseries:
        """A transseries, or a constant as one."""
        return x if isinstance(x, Transseries) else of_constant(_constant(x), self.context)

    def __add__(self, other: object) -> Transseries:
        return add(self, self._series(other))

    def __sub__(self, other: object) -> Transseries:
        return add(self, -self._series(other))

    def __rsub__(self, other: object) -> Transseries:
        return -self + other

    def __neg__(self) -> Transseries:
        return self.of([(m, minus(c)) for m, c in self.terms], self.remainder)

    def __mul__(self, other: object) -> Transseries:
        """The product with a transseries, a monomial or a constant; each remainder is multiplied by
        the size of the other factor."""
        context = self.context
        if isinstance(other, Monomial):
            rest = self.remainder.times(other, context) if self.remainder else None
            return self.of([(m.times(other, context), c) for m, c in self.terms], rest)
        if not isinstance(other, Transseries):
            factor = _constant(other)
            if not factor:
                return self.of()
            return self.of([(m, times(c, factor)) for m, c in self.terms], self.remainder)
        context.spend(1 + len(self.terms) * len(other.terms))
        if len(self.terms) == len(other.terms) == 1 and self.remainder is other.remainder is None:
            (m, c), (k, d) = *self.terms, *other.terms
            if type(c) is type(d) is fmpq:
                return self.of([(m.times(k, context), c * d)])
        remainder = None
        for x, y in ((self, other), (other, self)):
            if y.remainder is not None and not x.literally_zero:
                _require_bounded(x.terms)
                remainder = larger(remainder, x.top().times(y.remainder, context), context)
        products = [
            (m.times(k, context), times(c, d)) for m, c in self.terms for k, d in other.terms
        ]
        return normalised(products, remainder, context)

    def __truediv__(self, other: Transseries) -> Transseries:
        return self * other ** fmpq(-1)

    def __rtruediv__(self, other: object) -> Transseries:
        return self ** fmpq(-1) * other

    @traced(2)
    def __pow__(self, r: Coefficient) -> Transseries:
        """A constant power; the transseries must be positive unless r is an integer."""
        context = self.context
        if type(r) is fmpq and r.q == 1 and 0 <= r <= 12:
            out = of_constant(ONE, context)
            for _ in range(int(r.p)):
                out = out * self
            return out
        parts = factored(self)
        if parts is None:
            if context.sign(r) > 0:
                return self.of()
            raise NotReal("a division by 0")
        c, m, delta = parts
        if not (type(r) is fmpq and r.q == 1):
            _low_sign(c, context, "a real power of a negative quantity")
        constant = power_of(c, r, context) if oscillates(c) else power(c, r)
        return taylor(binomials(r), delta) * constant * m**r

    @traced(1)
    def log(self) -> Transseries:
        """The logarithm of a transseries that is positive in the end."""
        context = self.context
        parts = factored(self)
        if parts is None:
            raise NotReal("the logarithm of 0")
        c, m, delta = parts
        s = _low_sign(c, context, "the logarithm of a negative quantity")
        if s < 0 or (s == 0 and not delta.literally_zero):
            raise Undecided("the logarithm of what is not positive for all large n")
        constant = log_of(c, context) if oscillates(c) else logarithm(c)
        return add(
            log_of_monomial(m, context),
            of_constant(constant, context),
            taylor(log1p_coefficient, delta),
        )

    @traced(1)
    def exp(self) -> Transseries:
        """The exponential."""
        context = self.context
        infinite, constant, small = split(self)
        chain: dict[int, Coefficient] = {}
        exponent: list[Term] = []
        for m, c in infinite:
            if oscillates(c):
                if vanishes(c):
                    continue
                raise Undecided("the exponential of an unbounded oscillation")
            if context.sign(c) == 0:
                continue
            j = log_index(m, context)
            if j:
                chain[j - 1] = c
            else:
                exponent.append((m, c))
        powers = [chain.get(i, ZERO) for i in range(max(chain, default=-1) + 1)]
        series = taylor(_exp_series, small)
        return series * monotone(sympy.exp, constant, context) * Monomial(powers, exponent)


def _is_sum(c: Coefficient) -> bool:
    return type(c) is not fmpq and c.is_Add


def _low_sign(c: Coefficient, context: Context, negative: str) -> int:
    """1 if c stays above a positive constant, 0 if it stays >= 0, else -1.

    Raises:
        NotReal: with the text `negative`, where c is proved to stay negative.
    """
    s = low_sign(c, context) if oscillates(c) else context.sign(c)
    if s < 0 and (not oscillates(c) or stays_negative(c, context)):
        raise NotReal(negative)
    return s


def _constant(x: object) -> Coefficient:
    """A number or an expression without n as a coefficient."""
    return x if isinstance(x, fmpq) else fmpq(x) if isinstance(x, int) else coefficient(x)


def with_proved_lead(g: Transseries) -> Transseries:
    """The same, led by a term whose coefficient is proved not to be 0; without terms for 0.

    Raises:
        OrderTooLow: when only a remainder is left.
    """
    for k, (_, c) in enumerate(g.terms):
        if not vanishes(c) if oscillates(c) else g.context.sign(c):
            return g if k == 0 else g.of(g.terms[k:], g.remainder)
    if g.exact:
        return g.of()
    raise OrderTooLow


def normalised(terms: Iterable[Term], remainder: Monomial | None, context: Context) -> Transseries:
    """A transseries in normal form: like terms collected, what lies below the remainder or beyond
    the order of the decision given up to it."""
    like = collected(terms, context)
    items = [(m, in_harmonics(c) if type(c) is not fmpq and oscillates(c) else c) for m, c in like]
    keep = len(items)
    if remainder is not None:
        while keep and compare(items[keep - 1][0], remainder, context) <= 0:
            keep -= 1
    keep = min(keep, context.order)
    if keep < len(items):
        _require_bounded(items[keep:])
        if remainder is None or compare(items[keep][0], remainder, context) > 0:
            remainder = items[keep][0]
    return Transseries(context, items[:keep], remainder)


def _require_bounded(terms: Iterable[Term]) -> None:
    """Undecided where a term that goes into a remainder oscillates without bound."""
    if any(oscillates(c) and unbounded(c) for _, c in terms):
        raise Undecided("an unbounded oscillation in a remainder")


def of_constant(c: Coefficient, context: Context) -> Transseries:
    """A constant."""
    return Transseries(context, [] if not c else [(UNIT, c)])


def monomial(m: Monomial, context: Context) -> Transseries:
    """One monomial with coefficient 1."""
    return Transseries(context, [(m, ONE)])


def add(first: Transseries, *others: Transseries) -> Transseries:
    """The sum."""
    remainder = first.remainder
    for g in others:
        remainder = larger(remainder, g.remainder, first.context)
    terms = (t for g in (first, *others) for t in g.terms)
    return normalised(terms, remainder, first.context)


# -- expansions -----------------------------------------------------------------------------------

Coefficients = Callable[[int], Coefficient]


def taylor(coef: Coefficients, delta: Transseries) -> Transseries:
    """`sum coef(k) delta^k` for delta -> 0, coef(k) the Taylor coefficients of one analytic
    function, up to the order of the decision or to the remainder of a power of delta."""
    context = delta.context
    if delta.terms and size(delta.terms[0][0], context) >= 0:
        delta = with_proved_lead(delta)
        if delta.terms and size(delta.terms[0][0], context) >= 0:
            raise Undecided("the variable of an expansion does not tend to 0")
    if delta.remainder is not None and size(delta.remainder, context) >= 0:
        raise OrderTooLow
    _require_bounded(delta.terms)
    if delta.literally_zero:
        return of_constant(coef(0), context)
    terms: list[Term] = []
    remainder, power_of_delta = None, of_constant(ONE, context)
    for k in range(context.order + 1):
        if k:
            power_of_delta = power_of_delta * delta
            remainder = larger(remainder, power_of_delta.remainder, context)
            if not power_of_delta.terms:
                break
        a = coef(k)
        if not a:
            continue
        terms += [(m, times(a, c)) for m, c in power_of_delta.terms]
        if remainder is not None and compare(power_of_delta.terms[0][0], remainder, context) <= 0:
            break
    else:
        remainder = larger(remainder, power_of_delta.top().times(delta.top(), context), context)
    return normalised(terms, remainder, context)


# -- functions ------------------------------------------------------------------------------------


def split(g: Transseries) -> tuple[list[Term], Coefficient, Transseries]:
    """The terms that tend to infinity, the constant, and what tends to 0."""
    if g.remainder is not None and size(g.remainder, g.context) >= 0:
        raise OrderTooLow
    infinite, constant, small = [], ZERO, []
    for m, c in g.terms:
        s = size(m, g.context)
        if s > 0:
            infinite.append((m, c))
        elif s == 0:
            constant = plus(constant, c)
        else:
            small.append((m, c))
    return infinite, constant, g.of(small, g.remainder)


def drop_lead(g: Transseries) -> Transseries:
    """The rest, when the first term is taken away."""
    return g.of(g.terms[1:], g.remainder)


def factored(g: Transseries) -> tuple[Coefficient, Monomial, Transseries] | None:
    """(c, m, delta) with g = c m (1 + delta), delta -> 0; None for 0."""
    g = with_proved_lead(g)
    if not g.terms:
        return None
    m, c = g.terms[0]
    rest = drop_lead(g)
    if rest.literally_zero:
        return c, m, rest
    reciprocal = inverse_of(c, g.context) if oscillates(c) else inverse(c)
    return c, m, rest * m ** fmpq(-1) * reciprocal


def log_of_monomial(m: Monomial, context: Context) -> Transseries:
    """The logarithm of a monomial, exactly."""
    chain = [(iterated_log(i + 1), a) for i, a in enumerate(m.chain) if a]
    return normalised([*m.exponent, *chain], None, context)


def log1p_coefficient(k: int) -> Coefficient:
    """The coefficient of x^k in log(1 + x)."""
    return fmpq((-1) ** (k + 1), k) if k else ZERO


def _exp_series(k: int) -> Coefficient:
    return fmpq(1, math.factorial(k))


def binomials(r: Coefficient) -> Coefficients:
    """The coefficients of (1 + x)^r.

    >>> [binomials(fmpq(1, 2))(k) for k in range(3)]
    [1, 1/2, -1/8]
    """

    def binomial(k: int) -> Coefficient:
        b: Coefficient = ONE
        for j in range(k):
            b = times(times(b, plus(r, fmpq(-j))), fmpq(1, j + 1))
        return b

    return binomial
