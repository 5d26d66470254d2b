"""Arrays of floats: a formula at many distances in one vectorised pass.

`Arrays` evaluates on any namespace of the array API standard, so that NumPy and torch share the
rules of the functions. `Floats` is NumPy's float64, where more is known: constants are balls
rounded once. A jump is decided exactly, in integers where its argument is a rational polynomial of
integers, else by balls where a float is too near to it. A function without a rule is tabulated by
balls, distance by distance.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import sympy
from flint import arb, fmpq
from sympy import Expr, S
from sympy.core.relational import Relational

from farfield.theory.algebra.budget import check_time
from farfield.theory.answers.errors import InputError, MissingValues
from farfield.theory.evaluation.fold import Arithmetic, Operation, value
from farfield.theory.evaluation.real_balls import RealBalls
from farfield.theory.functions.balls import Undefined, precision, to_arb
from farfield.theory.functions.nodes import Lookup, n
from farfield.theory.functions.record import Function
from farfield.theory.relations import SIX

BLOCK = 1 << 14  # distances at a time: the values of all parts of a formula stay in the cache
TURN = 1 << 10  # distances that share a factor of a wave
NEAR = 1e-12  # how near to a jump, relatively, a float is not trusted: a thousand roundings
MOST_TERMS = 10_000
PLACES = sympy.Dummy("places")


class Lacking(Exception):
    """The namespace has no such function."""


class Arrays(Arithmetic):
    """Floats in the arrays of a namespace."""

    rule: ClassVar[str] = "array"

    def __init__(self, namespace: Any) -> None:
        self.xp = namespace

    def operation(self, e: Any) -> Operation:
        if isinstance(e, Expr) and e.is_number:
            return lambda: self.constant(e), ()
        return super().operation(e)

    def power(self, e: Expr) -> Operation:
        return self.xp.pow, e.args

    def function(self, record: Function, e: Expr) -> Operation:
        if record.array is None:
            raise self.lacking(record.name, record.lacks[self.rule])
        rule = record.array

        def apply(*values: Any) -> Any:
            try:
                return rule(self.xp, *values)
            except Lacking:
                raise self.lacking(record.name, "the namespace has no such function") from None

        return apply, e.args

    def structure(self, e: Any) -> Operation:
        if e in (S.true, S.false):
            return lambda: bool(e), ()
        if isinstance(e, sympy.Piecewise):
            return self._first, [part for piece in e.args for part in piece]
        if isinstance(e, Lookup):
            at, table, tail = e.args
            return self.look_up, (at, *table.args, tail)
        relation = _RELATIONS.get(type(e))
        if relation is None:
            raise self.lacking(type(e).__name__, "no rule")
        return relation, e.args

    def _first(self, *pieces: Any) -> Any:
        """The value of the first piece whose condition holds."""
        result: Any = np.nan
        for piece, chosen in zip(pieces[-2::-2], pieces[-1::-2], strict=True):
            if isinstance(chosen, bool):
                result = piece if chosen else result
            else:
                result = self.xp.where(chosen, piece, result)
        return result

    def look_up(self, at: Any, *entries: Any) -> Any:
        """The entry of a table at each distance; the last is what follows it."""
        raise NotImplementedError


_RELATIONS: dict[Any, Callable[..., Any]] = {
    **{relation.kind: relation.holds for relation in SIX},
    sympy.And: lambda *parts: functools.reduce(operator.and_, parts),
    sympy.Or: lambda *parts: functools.reduce(operator.or_, parts),
    sympy.Not: lambda part: part ^ True,
}


class _NumPy:
    """NumPy, and SciPy's special functions, which it lacks."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def special(self, name: str) -> Callable[..., Any]:
        """A special function by the name that SciPy gives it."""
        import scipy.special  # heavy, and of use to few formulas

        if name == "zeta":  # with a second argument SciPy knows no zeta below 1
            return lambda x, a: scipy.special.zeta(x, None if np.ndim(a) == 0 and a == 1 else a)
        return getattr(scipy.special, name)


class Floats(Arrays):
    """float64 at distances, which are integers."""

    def __init__(self, balls: RealBalls) -> None:
        super().__init__(_NumPy())
        self.balls = balls
        self.constants = functools.lru_cache(maxsize=4096)(self._constant)

    def constant(self, e: Expr) -> float:
        return self.constants(e)

    def _constant(self, e: Expr) -> float:
        if e in (S.Infinity, S.NegativeInfinity):
            return float("inf") if e is S.Infinity else float("-inf")
        return float(self.by_balls(e, np.zeros(1))[0])

    def function(self, record: Function, e: Expr) -> Operation:
        if record.array is None:
            return functools.partial(self.by_balls, e), (n,)
        if record.node in (sympy.sign, sympy.Heaviside):
            sign, parts = self._sign(e.args[0])
            if record.node is sympy.sign:
                return sign, parts
            at_zero = self.constant(e.args[1])
            return lambda *at: np.interp(sign(*at), (-1, 0, 1), (0, at_zero, 1)), parts
        if not record.jumps:
            return self._wave(e) or super().function(record, e)
        return self._in_integers(record, e) or (self._repaired(record, e), (n, *e.args))

    def structure(self, e: Any) -> Operation:
        if e is PLACES:
            return _Places, (n,)
        if isinstance(e, sympy.Sum):
            return self._finite_sum(e)
        relation = _RELATIONS.get(type(e))
        if relation is not None and isinstance(e, Relational) and _integer_form(e.lhs - e.rhs):
            sign, parts = self._sign(e.lhs - e.rhs)
            return lambda *values: relation(sign(*values), 0), parts
        return super().structure(e)

    def look_up(self, at: Any, *entries: Any) -> Any:
        whole = (at == np.floor(at)) & (at >= 0)
        place = np.where(whole, np.minimum(at, len(entries) - 1), 0).astype(np.int64)
        return np.where(whole, np.array(entries)[place], np.nan)

    def by_balls(self, e: Expr, at: np.ndarray) -> np.ndarray:
        """Each value from a ball, at a precision that fixes 50 of its bits."""
        function = self.balls.compiled(e)
        values = np.full(at.shape, np.nan)
        for index, distance in enumerate(at):
            for bits in (80, 200, 800, 3200):
                check_time()
                with precision(bits):
                    try:
                        ball = to_arb(function({n: fmpq(int(distance))}))
                    except Undefined:
                        continue
                if ball.rel_accuracy_bits() >= 60 or abs(ball) < arb(2) ** -1080:
                    values[index] = float(ball.mid())
                    break
        return values

    def _in_integers(self, record: Function, e: Expr) -> Operation | None:
        """A rounding of a rational polynomial in n and other roundings, in 64-bit integers."""
        assert record.period is not None
        inside, modulus = record.period(*e.args)
        if not (modulus.is_Rational and modulus > 0):
            return None
        form = _integer_form(inside / modulus)
        if form is None:
            return None

        def steps(*values: Any) -> Any:
            total = form.numerator(values, int(modulus.p))
            if total is None:
                return self.by_balls(e, values[0])
            q = form.denominator
            if record.range is not None:
                return (total % q * int(modulus.p)) / (q * int(modulus.q))
            return (total // q if e.func is sympy.floor else -(-total // q)).astype(np.float64)

        return steps, form.parts

    def _sign(self, e: Expr) -> Operation:
        """The sign of a part, exactly where it is a rational polynomial of integers."""
        form = _integer_form(e)
        if form is None:
            return np.sign, (e,)

        def sign(*values: Any) -> Any:
            total = form.numerator(values, 1)
            return self.by_balls(sympy.sign(e), values[0]) if total is None else np.sign(total)

        return sign, form.parts

    def _repaired(self, record: Function, e: Expr) -> Callable[..., Any]:
        """The rule on floats, by balls where the argument is too near to a jump."""
        assert record.array is not None and record.period is not None
        rule, modulus = record.array, record.period(*e.args)[1]

        def rounded(at: np.ndarray, *values: Any) -> Any:
            found = np.array(np.broadcast_to(rule(self.xp, *values), at.shape))
            turns = np.broadcast_to(values[0] / (1 if modulus == 1 else values[1]), at.shape)
            near = ~(abs(turns - np.rint(turns)) > NEAR * (1 + abs(turns)))
            found[near] = self.by_balls(e, at[near])
            return found

        return rounded

    def _wave(self, e: Expr) -> Operation | None:
        """A sine or cosine of a linear function of n."""
        if not isinstance(e, (sympy.sin, sympy.cos)):
            return None
        inside = sympy.expand(e.args[0])
        rate, shift = inside.coeff(n, 1), inside.coeff(n, 0)
        if rate == 0 or rate.has(n) or inside != rate * n + shift:
            return None
        values = self.constant(rate), self.constant(shift)
        return functools.partial(_turning, isinstance(e, sympy.sin), *values), (PLACES,)

    def _finite_sum(self, e: sympy.Sum) -> Operation:
        """A sum with few terms term by term, one over terms without n as partial sums."""
        (k, low, high), body = e.limits[0], e.function
        if len(e.limits) == 1 and low.is_Integer and high.is_Integer and high - low < MOST_TERMS:
            terms = [body.xreplace({k: S(i)}) for i in range(int(low), int(high) + 1)]
            return lambda *values: functools.reduce(operator.add, values, 0.0), terms
        if len(e.limits) == 1 and low.is_Integer and not body.has(n):
            return functools.partial(self._partial_sums, k, int(low), body), (high,)
        return functools.partial(self.by_balls, e), (n,)

    def _partial_sums(self, k: Any, low: int, body: Expr, high: Any) -> Any:
        """A sum at all its upper ends at once, as differences of one running sum."""
        last = np.floor(high).astype(np.int64)
        at = np.arange(low, max(low, int(last.max()) + 1), dtype=np.float64)
        sums = np.cumsum(np.broadcast_to(value(body.xreplace({k: n}), self, {n: at}), at.shape))
        return np.where(last < low, 0.0, sums[np.maximum(last - low, 0)] if sums.size else 0.0)


@dataclass(frozen=True)
class _IntegerForm:
    """A polynomial of `parts`, which are integers: its terms over one denominator."""

    parts: tuple[Expr, ...]
    terms: tuple[tuple[tuple[int, ...], int], ...]
    denominator: int

    def numerator(self, values: Sequence[Any], factor: int) -> Any:
        """The polynomial times its denominator in 64 bits, also after multiplication by a factor;
        None where it does not fit."""
        sizes = [float(np.max(np.abs(x))) for x in values]
        largest = sum(
            abs(c) * math.prod(max(1.0, x) ** k for x, k in zip(sizes, powers, strict=True))
            for powers, c in self.terms
        )
        if not (largest * factor < 2.0**62 and max(sizes) < 2.0**53):
            return None
        whole = [np.asarray(x).astype(np.int64) for x in values]
        return sum(
            c * math.prod(x**k for x, k in zip(whole, powers, strict=True))
            for powers, c in self.terms
        )


@functools.lru_cache(maxsize=1024)
def _integer_form(e: Expr) -> _IntegerForm | None:
    """A polynomial in n and floors with rational coefficients, as integers over q; else None."""
    e = sympy.expand(e)
    whole = [x for x in _outermost(e, (sympy.floor, sympy.ceiling)) if x.has(n)]
    names = [sympy.Dummy(integer=True) for _ in whole]
    polynomial = e.xreplace(dict(zip(whole, names, strict=True)))
    if not polynomial.is_polynomial(n, *names) or polynomial.free_symbols - {n, *names}:
        return None
    terms = sympy.Poly(polynomial, n, *names).terms()
    if not all(c.is_Rational for _, c in terms):
        return None
    q = math.lcm(*(int(c.q) for _, c in terms))
    return _IntegerForm((n, *whole), tuple((powers, int(c * q)) for powers, c in terms), q)


def _outermost(e: Expr, kinds: tuple[Any, ...]) -> list[Expr]:
    """The parts of these kinds that lie within no other of them."""
    if isinstance(e, kinds):
        return [e]
    return list(dict.fromkeys(x for a in e.args for x in _outermost(a, kinds)))


@functools.lru_cache(maxsize=1024)
def _turn(rate: float) -> tuple[np.ndarray, np.ndarray]:
    """The cosines and sines of rate b, b < TURN."""
    inside = rate * np.arange(TURN)
    return np.cos(inside), np.sin(inside)


class _Places:
    """Distances as TURN a + b; in rows where they are all the b of consecutive a."""

    def __init__(self, at: np.ndarray) -> None:
        whole, part = np.divmod(at.astype(np.int64), TURN)
        self.outside, self.a = np.unique(whole, return_inverse=True)
        self.b = part
        size = self.outside.size * TURN
        self.in_rows = at.size == size and part[0] == 0 and bool((np.diff(at) == 1).all())


def _turning(sine: bool, rate: float, shift: float, places: _Places) -> np.ndarray:
    """cos or sin of rate n + shift by the addition theorem, from its values at the a and the b: the
    same for the same n, whatever else is asked for."""
    angle = rate * (TURN * places.outside) + shift
    c, s = np.cos(angle), np.sin(angle)
    c, s = (s, -c) if sine else (c, s)  # sin(x + y) = sin x cos y + cos x sin y
    cosine, sinus = _turn(rate)
    if places.in_rows:
        return (c[:, None] * cosine - s[:, None] * sinus).ravel()
    a, b = places.a, places.b
    return c[a] * cosine[b] - s[a] * sinus[b]


def tabulate(formulas: Sequence[Expr], distances: Any, floats: Floats) -> np.ndarray:
    """The biases at each distance as float64, shape `(len(formulas), len(distances))`.

    Args:
        formulas: biases in `n` without other symbols.
        distances: integers >= 0, one-dimensional.
        floats: the arithmetic.

    Raises:
        InputError: when a formula has free parameters or a distance is no natural number.
    """
    at = np.asarray(distances)
    if at.ndim != 1 or (at.size and (at.dtype.kind not in "iu" or at.min() < 0)):
        raise InputError("distances must be a one-dimensional list of integers >= 0")
    free = sorted({s.name for formula in formulas for s in formula.free_symbols - {n}})
    if free:
        raise MissingValues("the bias", free)
    table = np.empty((len(formulas), at.size))
    with np.errstate(all="ignore"):
        for start in range(0, at.size, BLOCK):
            block = slice(start, start + BLOCK)
            known: dict[Any, Any] = {n: at[block].astype(np.float64)}
            for row, formula in zip(table, formulas, strict=True):
                check_time()
                row[block] = value(formula, floats, known)
    table += 0.0  # without negative zeros
    return table
