"""Arrays of floats: a formula at many distances in one vectorised pass.

`Arrays` evaluates on any namespace of the array API standard, so that NumPy and torch share the
rules of the functions. `Floats` is NumPy's float64 with a bound of what rounding does: cheap bounds
for a block of distances first, and where these are too wide or a part leaves the range of floats,
bounds for each entry and logarithms in place of what is too large. Entries that are still open are
balls, as constants are. A jump is decided exactly, in integers where its argument is a rational
polynomial of integers.
"""

from __future__ import annotations

import functools
import math
import operator
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

import numpy as np
import sympy
from flint import arb, fmpq
from sympy import Basic, Expr, S, Symbol
from sympy.core.relational import Relational

from farfield.theory.algebra.budget import check_time
from farfield.theory.answers.errors import InputError, MissingValues
from farfield.theory.evaluation.fold import LOOK, Arithmetic, Operation, Program
from farfield.theory.evaluation.logarithms import LogSum, within_range
from farfield.theory.evaluation.real_balls import PLAIN, RealBalls
from farfield.theory.functions.balls import Undefined, precision, to_arb
from farfield.theory.functions.nodes import Lookup, n
from farfield.theory.functions.record import Function
from farfield.theory.relations import SIX

Bound: TypeAlias = float | np.ndarray
"""For a whole block, or for each entry."""

BLOCK = 1 << 14  # distances at a time: the values of all parts of a formula stay in the cache
EPS = 2.0**-52
TINY = 1e-300  # what underflow may take away
SMALL = 1e-3  # below it an error is followed to first order
LOG_RANGE = 745.0  # no float that is not 0 has a larger logarithm
INTEGERS = 2.0**53  # those below it are floats
LARGEST = INTEGERS / 1024  # multiples of 1/1024 below it are floats
TOLERANCE = 9.9e-13  # of an entry, relative above 1 and absolute below
MANY = 16  # terms of a sum whose products do not stay in the cache
MOST_TERMS = 10_000
MOST_SUMMED = 10**7
MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")  # bytes
TWO_PI = 8 * np.arctan(np.longdouble(1))


class Lacking(Exception):
    """The namespace has no such function."""


class Arrays(Arithmetic):
    """Floats in the arrays of a namespace."""

    rule: ClassVar[str] = "array"

    def __init__(self, namespace: Any) -> None:
        self.xp = namespace

    def operation(self, e: Basic) -> Operation:
        if isinstance(e, Expr) and e.is_number:
            return lambda: self.constant(e), ()
        form = self.reformed(e)
        return super().operation(e) if form is None else (lambda x: x, (form,))

    def reformed(self, e: Basic) -> Expr | None:
        """Another form of a node that does not leave the range of floats, where it may."""
        return within_range(e)

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

    def structure(self, e: Basic) -> Operation:
        if e in (S.true, S.false):
            return lambda: bool(e), ()
        if isinstance(e, LogSum):
            return self.log_sum, e.args
        if isinstance(e, sympy.Piecewise):
            return self._chosen_piece, [part for piece in e.args for part in piece]
        if isinstance(e, Lookup):
            index, table, tail = e.args
            return self.look_up, (index, *table.args, tail)
        relation = _RELATIONS.get(type(e))
        if relation is None:
            raise self.lacking(type(e).__name__, "no rule")
        return relation, e.args

    def log_sum(self, *parts: Any) -> Any:
        """The logarithm of a sum, whose terms are shifted by the largest exponent."""
        shift = functools.reduce(self.xp.maximum, parts[1::2])
        shift = self.xp.where(shift == -math.inf, 0.0, shift)  # a sum of nothing
        pairs = zip(parts[::2], parts[1::2], strict=True)
        return shift + self.xp.log(sum(c * self.xp.exp(x - shift) for c, x in pairs))

    def _chosen_piece(self, *pieces: Any) -> Any:
        """The value of the first piece whose condition holds."""
        result: Any = np.nan
        for piece, chosen in zip(pieces[-2::-2], pieces[-1::-2], strict=True):
            if isinstance(chosen, bool):
                result = piece if chosen else result
            else:
                result = self.xp.where(chosen, piece, result)
        return result

    def look_up(self, index: Any, *entries: Any) -> Any:
        """The entry of a table at each distance; the last is what follows it."""
        raise NotImplementedError


_RELATIONS: dict[type[Basic], Callable[..., Any]] = {
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


@dataclass(slots=True, eq=False)
class Near:
    """Floats near true values: each is off by at most `relative * |value| + absolute`.

    The bounds are numbers, for a whole block, or arrays, for each entry.
    """

    value: Any
    relative: Bound = 0.0
    absolute: Bound = 0.0
    ends: tuple[float, float] | None = None

    @property
    def exact(self) -> bool:
        """Whether no entry is off."""
        return _zero(self.relative) and _zero(self.absolute)

    @property
    def span(self) -> tuple[float, float]:
        """The least and the greatest value."""
        if self.ends is None:
            x = self.value
            self.ends = (float(x.min()), float(x.max())) if np.ndim(x) else (x, x)
        return self.ends


def _zero(bound: Bound) -> bool:
    return isinstance(bound, float) and bound == 0


class Floats(Arrays):
    """float64 at distances, which are integers, with a running bound of what rounding does.

    Args:
        balls: they give constants, and decide jumps.
        entrywise: bounds for each entry, and logarithms that stay in range. Else for a whole
            block, which costs little; NumPy then raises FloatingPointError where a part leaves
            the range.
    """

    def __init__(self, balls: RealBalls, entrywise: bool = False) -> None:
        super().__init__(_NumPy())
        self.balls, self.entrywise = balls, entrywise
        self.constants = functools.lru_cache(maxsize=4096)(self._constant)
        self.compiled = functools.lru_cache(maxsize=64)(
            lambda formulas: Program(sympy.Tuple(*formulas), self, (n,))
        )

    @functools.cached_property
    def finer(self) -> Floats:
        """The same with bounds for each entry."""
        return Floats(self.balls, entrywise=True)

    def constant(self, e: Basic) -> Any:
        return tuple(map(self.constant, e)) if isinstance(e, sympy.Tuple) else self.constants(e)

    def _constant(self, e: Basic) -> Near:
        if e in (S.true, S.false):
            return Near(bool(e))
        if e in (S.Infinity, S.NegativeInfinity):
            return Near(math.inf if e is S.Infinity else -math.inf)
        if e.is_Rational and max(abs(e.p), e.q) < 1 << 1000:
            number = int(e.p) / int(e.q)
            off = 0.0 if Fraction(number) == Fraction(int(e.p), int(e.q)) else EPS
            return Near(number, off, 0.0, (number, number))
        number = float(self.by_balls(e, np.zeros(1), relative=True)[0])
        return Near(number, EPS, TINY if math.isfinite(number) else math.inf)

    # -- bounds -----------------------------------------------------------------------------------

    def size(self, x: Near) -> Any:
        """|x|, or its maximum."""
        return abs(x.value) if self.entrywise else max(-x.span[0], x.span[1])

    def least(self, x: Near) -> Any:
        """|x|, or its minimum."""
        return abs(x.value) if self.entrywise else max(x.span[0], -x.span[1], 0.0)

    def worst(self, bound: Bound) -> Bound:
        """A bound for each entry, or its maximum."""
        return bound if self.entrywise or np.ndim(bound) == 0 else float(np.max(bound))

    def error(self, x: Near, more: float = 0.0) -> Bound:
        """How far it may be off, by `more` relatively; not at all where it is infinite."""
        relative = x.relative + more
        if _zero(relative):
            return x.absolute
        size = np.nan_to_num(self.size(x), posinf=0.0) if self.entrywise else self.size(x)
        return x.absolute + relative * size

    def ratio(self, x: Near) -> Bound:
        """The same relative to its value."""
        if _zero(x.absolute):
            return x.relative
        share = np.divide(x.absolute, self.least(x))
        return x.relative + np.where(np.equal(x.absolute, 0), 0, share)

    def near(
        self, value: Any, relative: Bound, absolute: Bound, unsound: bool | np.ndarray = False
    ) -> Near:
        """A value with its bounds, without one where it is nan or `unsound`. An infinity is sound
        where the true value is beyond all floats."""
        if self.entrywise:
            absolute = np.where(np.isnan(value) | unsound, np.inf, absolute)
        return Near(value, relative, absolute)

    # -- operations -------------------------------------------------------------------------------

    def operation(self, e: Basic) -> Operation:
        if isinstance(e, sympy.Tuple):
            return lambda *values: values, e.args
        if self.reformed(e) is not None:
            return super().operation(e)
        if e.is_Add and len(e.args) > MANY:
            return self._combination, [x for a in e.args for x in a.as_independent(n, as_Add=False)]
        if e.is_Add or e.is_Mul:
            combined = self.add if e.is_Add else self.multiply
            most = _most(e)
            return functools.partial(self._whole, combined, most) if most else combined, e.args
        return super().operation(e)

    def reformed(self, e: Basic) -> Expr | None:
        form = within_range(e)
        return None if form is None or (form.has(LogSum) and not self.entrywise) else form

    def _whole(self, combined: Callable[..., Near], most: float, *parts: Near) -> Near:
        """What has no rounding while its parts have none, and it is not too large."""
        total = combined(*parts)
        if all(x.exact for x in parts):
            sizes = [np.max(self.size(x)) for x in parts]
            if max(math.prod(max(x, 1.0) for x in sizes), sum(sizes)) < most:
                return Near(total.value, ends=total.ends)
        return total

    def add(self, *parts: Near) -> Near:
        """A sum."""
        if len(parts) == 2 and parts[0].exact and parts[1].exact:
            return Near(parts[0].value + parts[1].value, EPS)
        return self._sum(parts)

    def _combination(self, *pairs: Near) -> Near:
        """A sum of many products of two, which are never all there at once."""
        return self._sum(map(self._times, pairs[::2], pairs[1::2]))

    def _sum(self, parts: Iterable[Near]) -> Near:
        """A sum in pairs of pairs, so that few roundings reach each part: of one sign with a
        relative error, else with an absolute one."""
        sums: list[Any] = []
        bounds: list[Near] = []
        for count, x in enumerate(parts, 1):
            bounds.append(x if self.entrywise else Near(None, x.relative, x.absolute, x.span))
            sums.append(x.value)
            while not count % 2:
                last = sums.pop()
                sums.append(sums.pop() + last)
                count //= 2
        total = functools.reduce(lambda a, b: b + a, reversed(sums))
        rounding = EPS / 2 * len(bounds).bit_length()
        if not self.entrywise and (
            min(x.span[0] for x in bounds) >= 0 or max(x.span[1] for x in bounds) <= 0
        ):
            relative = max(x.relative for x in bounds) + rounding
            ends = sum(x.span[0] for x in bounds), sum(x.span[1] for x in bounds)
            return Near(total, relative, sum(x.absolute for x in bounds), ends)
        partial = rounding * (len(bounds) > 2)
        return Near(total, EPS, sum(self.error(x, partial) for x in bounds))

    def multiply(self, *parts: Near) -> Near:
        """A product."""
        return functools.reduce(self._times, parts)

    def _times(self, x: Near, y: Near) -> Near:
        absolute: Bound = 0.0
        if not _zero(x.absolute):
            absolute = absolute + x.absolute * (self.size(y) + self.error(y))
        if not _zero(y.absolute):
            absolute = absolute + y.absolute * self.size(x)
        total = x.value * y.value
        shrunk = self.entrywise and np.isinf(total) & ((abs(x.value) < 1) | (abs(y.value) < 1))
        product = self.near(total, x.relative + y.relative + EPS, absolute, shrunk)
        if x.ends and y.ends and not self.entrywise:
            corners = [a * b for a in x.ends for b in y.ends]
            product.ends = min(corners), max(corners)
        return product

    def power(self, e: Expr) -> Operation:
        if e.exp.is_Integer and 0 < e.exp <= 8 and e.is_integer:
            return functools.partial(self._whole, self.multiply, INTEGERS), (e.base,) * int(e.exp)
        return self.raised, e.args

    def raised(self, base: Near, exponent: Near) -> Near:
        """A power, whose relative error is that of its logarithm."""
        bound = 0.0 if base.exact else self.size(exponent) * self.ratio(base)
        if not exponent.exact:
            size = self._log_size(base)
            bound = bound + self.error(exponent) * size
            if self.entrywise:
                bound = np.where(size * np.abs(exponent.value) - bound > LOG_RANGE, 0, bound)
        least = TINY * bool(np.ndim(exponent.value) or exponent.value < 0)
        gone = self.entrywise and (
            (np.equal(base.value, 0) & np.less(exponent.value, 0))
            | (np.isinf(base.value) & (np.abs(exponent.value) < 1))
        )
        return self._grown(base.value**exponent.value, bound, least, gone)

    def _log_size(self, x: Near) -> Bound:
        """|log x|, or a bound of it; 0 where x is 0, whose powers are exact."""
        if self.entrywise:
            return np.where(np.equal(x.value, 0), 0, np.abs(np.log(np.abs(x.value))))
        least = self.least(x)
        return max(abs(math.log(least)), abs(math.log(self.size(x)))) if least else LOG_RANGE

    def exp(self, x: Near) -> Near:
        """The exponential, whose relative error is the absolute one of its argument."""
        bound = self.error(x)
        if self.entrywise:  # far outside of the range no error matters
            bound = np.where(np.abs(x.value) - bound > LOG_RANGE, 0.0, bound)
        power = self._grown(np.exp(x.value), bound, TINY)
        if not self.entrywise and x.span[1] < LOG_RANGE - 40:
            power.ends = math.exp(x.span[0]), math.exp(x.span[1])
        return power

    def _grown(
        self, value: Any, bound: Bound, least: float, unsound: bool | np.ndarray = False
    ) -> Near:
        """A value whose logarithm is off by a bound; what is off by much has none."""
        if _zero(bound):
            return self.near(value, 2 * EPS, least, unsound)
        absolute = least + np.where(np.less(bound, SMALL), 0, np.inf)
        relative = (1 + SMALL) * np.minimum(bound, SMALL) + 2 * EPS
        return self.near(value, relative, absolute, unsound)

    def log(self, x: Near) -> Near:
        """The logarithm, whose absolute error is the relative one of its argument."""
        bound = self.ratio(x)
        if not _zero(bound):
            bound = np.where(np.less(bound, SMALL), (1 + SMALL) * bound, np.inf)
        unsound = self.entrywise and np.isposinf(x.value)
        return self.near(np.log(x.value), 2 * EPS, bound, unsound)

    def log_sum(self, *parts: Near) -> Near:
        """The logarithm of a sum, whose terms are shifted by the largest exponent."""
        largest = functools.reduce(np.maximum, [x.value for x in parts[1::2]])
        shift = np.where(np.isneginf(largest), 0.0, largest)
        pairs = zip(parts[::2], parts[1::2], strict=True)
        terms = [self.multiply(c, self.exp(self.add(x, Near(-shift)))) for c, x in pairs]
        total = self.add(Near(shift), self.log(self.add(*terms)))
        total.value = np.where(np.isinf(largest), largest, total.value)
        off = sum(x.absolute for x in parts[1::2])  # an infinity that is not sound is off by one
        total.absolute = np.where(np.isinf(largest), off, total.absolute)
        return total

    def function(self, record: Function, e: Expr) -> Operation:
        if record.node is sympy.exp:
            return self.exp, e.args
        if record.node is sympy.log:
            return self.log, e.args
        if record.array is None:
            return functools.partial(self._by_balls, e), (n,)
        if record.node in (sympy.Min, sympy.Max):
            rule = functools.partial(record.array, self.xp)
            return functools.partial(self._kept, rule), e.args
        if record.node is sympy.sign:
            return self._sign_of(e.args[0])
        if record.node is sympy.Heaviside:
            return lambda step: step, (e.rewrite(sympy.Piecewise),)
        if record.jumps:
            return self._in_integers(record, e) or (self._rounded(record, e), e.args)
        return self._wave(e) or (functools.partial(self._apply, record), e.args)

    def _apply(self, record: Function, *parts: Near) -> Near:
        """A function; what the errors of its arguments change is read off values beside them."""
        assert record.array is not None
        values = [x.value for x in parts]
        total = record.array(self.xp, *values)
        if not self.entrywise and not math.isfinite(np.sum(total)):
            raise FloatingPointError
        bound: Bound = 2 * EPS
        for place, x in enumerate(parts):
            if record.gentle:
                bound = bound + 2 * (x.relative + x.absolute)
            elif not x.exact:
                step = self.finer.error(x) + np.spacing(np.abs(x.value))
                for side in (x.value - step, x.value + step):
                    moved = record.array(self.xp, *values[:place], side, *values[place + 1 :])
                    change = 2 * np.abs(moved - total)
                    bound = bound + self.worst(np.where(np.isnan(change), np.inf, change))
        return self.near(total, 16 * EPS, bound, self.entrywise and np.isinf(total))

    def _kept(self, rule: Callable[..., object], *parts: Near) -> Near:
        """The least or greatest, or a truth value: off, or open, by no more than its parts."""
        relative = functools.reduce(np.maximum, [x.relative for x in parts])
        value = rule(*(x.value for x in parts))
        return Near(value, relative, sum(x.absolute for x in parts))

    def structure(self, e: Basic) -> Operation:
        if isinstance(e, sympy.Sum):
            return self._finite_sum(e)
        relation = _RELATIONS.get(type(e))
        if relation is None:
            return super().structure(e)
        if not isinstance(e, Relational):
            return functools.partial(self._kept, relation), e.args
        sign, parts = self._sign_of(e.lhs - e.rhs)
        return lambda *values: self._kept(lambda side: relation(side, 0), sign(*values)), parts

    def _chosen_piece(self, *pieces: Near) -> Near:
        result = Near(np.nan, 0.0, math.inf)
        for piece, chosen in zip(pieces[-2::-2], pieces[-1::-2], strict=True):
            if chosen.value is True:
                result = piece
                continue
            pick: Callable[..., Any] = np.maximum
            if self.entrywise:
                pick = functools.partial(np.where, chosen.value)
            result = Near(
                np.where(chosen.value, piece.value, result.value),
                pick(piece.relative, result.relative),
                pick(piece.absolute, result.absolute) + chosen.absolute,
            )
        return result

    def look_up(self, index: Near, *entries: Near) -> Near:
        whole = (index.value == np.floor(index.value)) & (index.value >= 0)
        place = np.where(whole, np.minimum(index.value, len(entries) - 1), 0).astype(np.int64)
        values = np.array([x.value for x in entries])[place]
        return Near(values, EPS, self.worst(np.where(whole & index.exact, 0.0, np.inf)))

    def by_balls(self, e: Expr, distances: np.ndarray, *, relative: bool = False) -> np.ndarray:
        """Each value from a ball, at a precision that fixes 50 of its bits: `relative` of them
        also below 1. It is nan where there is none. A proof that an argument is at a jump costs
        more than all these bits, so that it comes last."""
        narrow = arb(2) ** (-1080 if relative else -60)
        values, left = np.full(distances.shape, np.nan), list(range(distances.size))
        plain, proving = PLAIN.compiled(e), self.balls.compiled(e)
        for function, bits in (*((plain, 80 << k) for k in (0, 2, 4, 6, 8)), (proving, 80 << 6)):
            open_ = []
            for start in range(0, len(left), LOOK):
                with precision(bits):  # looks at the clock
                    for k in left[start : start + LOOK]:
                        try:
                            ball = to_arb(function({n: fmpq(int(distances[k]))}))
                        except Undefined:
                            open_.append(k)
                            continue
                        if ball.rel_accuracy_bits() >= 60 or ball.rad() < narrow:
                            values[k] = float(ball.mid())
                        else:
                            open_.append(k)
            left = open_
        return values

    def _by_balls(self, e: Expr, distances: Near) -> Near:
        values = self.by_balls(e, distances.value, relative=True)
        return Near(values, EPS, self.worst(np.where(np.isnan(values), np.inf, TINY)))

    def _in_integers(self, record: Function, e: Expr) -> Operation | None:
        """A rounding of a rational multiple of integers, by the quotient of whole floats."""
        assert record.period is not None
        inside, modulus = record.period(*e.args)
        if not (modulus.is_Rational and modulus > 0):
            return None
        whole, factor = _quotient(inside / modulus)
        p, q = factor.as_integer_ratio()
        if not whole.is_integer or q > INTEGERS:
            return None
        unit = Fraction(int(modulus.p), q * int(modulus.q))
        dyadic = unit.denominator & (unit.denominator - 1) == 0
        rest_off = 0.0 if dyadic and q * unit.numerator < LARGEST else EPS

        def steps(distances: Near, x: Near) -> Near:
            if not (x.exact and p * np.max(self.size(x)) < INTEGERS):
                return self._by_balls(e, distances)
            if record.range is not None:
                rest = np.mod(p * x.value, q)
                return Near(rest * unit.numerator / unit.denominator, rest_off)
            sign = 1 if e.func is sympy.floor else -1
            return Near(sign * np.floor_divide(sign * p * x.value, q))

        return steps, (n, whole)

    def _sign_of(self, e: Expr) -> Operation:
        """The sign of a part, exactly where it is a rational multiple of integers."""
        return self._float_sign, (_quotient(e)[0],)

    def _float_sign(self, x: Near) -> Near:
        """The sign, open where 0 is within the error."""
        if _zero(x.absolute):
            return Near(np.sign(x.value))
        far = np.abs(x.value) > self.finer.error(x)
        return Near(np.sign(x.value), 0.0, self.worst(np.where(far, 0.0, np.inf)))

    def _rounded(self, record: Function, e: Expr) -> Callable[..., Near]:
        """The rule on floats, open where a jump is within the error of its argument."""
        assert record.array is not None and record.period is not None
        rule, unit = record.array, record.period(*e.args)[1] == 1

        def rounded(x: Near, *modulus: Near) -> Near:
            turns, scale = x, 1.0
            if not unit:
                scale = np.abs(modulus[0].value)
                turns = self.finer.multiply(x, self.finer.raised(modulus[0], Near(-1.0)))
            error = self.finer.error(turns)
            value = rule(self.xp, x.value, *(m.value for m in modulus))
            far = turns.exact | (np.abs(turns.value - np.rint(turns.value)) > error)
            far |= np.isinf(value) & np.isfinite(error)
            near, off = (error + 1, 0.0) if record.range is None else (scale, 2 * scale * error)
            return self.near(value, EPS, self.worst(np.where(far, off, near)))

        return rounded

    def _wave(self, e: Expr) -> Operation | None:
        """A sine or cosine of a linear function of n."""
        if not isinstance(e, (sympy.sin, sympy.cos)):
            return None
        inside = sympy.expand(e.args[0])
        rate, shift = inside.coeff(n, 1), inside.coeff(n, 0)
        if rate == 0 or rate.has(n) or inside != rate * n + shift:
            return None
        turns = [x for x in map(self._turns, (rate, shift)) if x is not None]
        if len(turns) < 2:
            return None
        wave = np.sin if isinstance(e, sympy.sin) else np.cos
        return functools.partial(self._turning, wave, turns[0], turns[1]), (n,)

    def _turning(self, wave: Callable[..., Any], rate: int, shift: int, k: Near) -> Near:
        """A wave at rate k + shift, 0 <= k < 2^40, from turns in units of 2^-88."""
        high, low = (np.uint64(x) for x in divmod(rate, 1 << 24))
        whole = np.asarray(k.value).astype(np.uint64)
        turns = whole * high + (whole * low >> np.uint64(24)) + np.uint64(shift >> 24)
        angles = (turns.astype(np.int64) * (TWO_PI / 2.0**64)).astype(np.float64)
        off = 4 * EPS if k.span[1] < 2**40 else math.inf
        return Near(wave(angles), 0.0, off, (-1.0, 1.0))

    def _turns(self, angle: Expr) -> int | None:
        """The fractional part of an angle in turns, in units of 2^-88."""
        with precision(400):
            ball = self.balls.enclose(angle / (2 * sympy.pi), 400)
            if ball is None or not ball.rad() < arb(2) ** -120:
                return None
            return int((ball.mid() * 2**88).floor().unique_fmpz()) % 2**88

    def _finite_sum(self, e: sympy.Sum) -> Operation:
        """A sum with few terms term by term, one over terms without n as partial sums."""
        (k, low, high), body = e.limits[0], e.function
        if len(e.limits) == 1 and low.is_Integer and high.is_Integer and high - low < MOST_TERMS:
            terms = [body.xreplace({k: S(i)}) for i in range(int(low), int(high) + 1)]
            return lambda *values: self.add(Near(0.0), *values), terms
        if len(e.limits) == 1 and low.is_Integer and not body.has(n):
            return functools.partial(self._partial_sums, e, k, int(low), body), (
                n,
                sympy.floor(high),
            )
        return functools.partial(self._by_balls, e), (n,)

    def _partial_sums(self, e: Expr, k: Symbol, low: int, body: Expr, n_: Near, high: Near) -> Near:
        """A sum at all its upper ends at once, as differences of one running sum."""
        last = np.asarray(high.value).astype(np.int64)
        count = max(0, int(last.max()) + 1 - low)
        if count > MOST_SUMMED:
            return self._by_balls(e, n_)
        indices = np.arange(low, low + count, dtype=np.float64)
        (terms,) = self.finer.compiled((body.xreplace({k: n}),))(Near(indices))
        values = np.broadcast_to(terms.value, indices.shape).astype(np.longdouble)
        rounding = count * float(np.finfo(np.longdouble).eps)
        off = np.broadcast_to(self.finer.error(terms), indices.shape) + rounding * abs(values)
        place, some = np.clip(last - low, 0, None), (last >= low) & (count > 0)
        total, bound = (
            np.where(some, np.append(np.cumsum(x), 0)[place], 0).astype(np.float64)
            for x in (values, off)
        )
        return Near(total, EPS, self.worst(bound))


@functools.lru_cache(maxsize=1024)
def _quotient(e: Expr) -> tuple[Expr, Fraction]:
    """(x, r) with e = r x, r a positive rational; x is an integer wherever that can be."""
    factor, whole = sympy.expand(e).primitive()
    return whole, Fraction(int(factor.p), int(factor.q))


@functools.lru_cache(maxsize=4096)
def _most(e: Expr) -> float:
    """The size up to which a sum of multiples of 1/1024, or a product of integers, is a float."""
    if all(a.is_integer for a in e.args):
        return INTEGERS
    return LARGEST if e.is_Add and (1024 * e).is_integer else 0.0


def tabulate(formulas: Sequence[Expr], distances: Any, floats: Floats) -> np.ndarray:
    """The biases at each distance as float64, shape `(len(formulas), len(distances))`.

    Each entry is within 1e-12 of the formula, relatively above 1: floats whose bound of rounding is
    larger are replaced by balls. It is -inf where the formula is or is below all floats, and nan or
    inf where it has no value.

    Args:
        formulas: biases in `n` without other symbols.
        distances: integers >= 0, one-dimensional.
        floats: the arithmetic.

    Raises:
        InputError: when a formula has free parameters, a distance is no natural number, or the
            table does not fit into the memory.
    """
    size = len(formulas) * len(distances)
    if size * 8 > MEMORY:
        raise InputError(f"a table of {size:,} numbers: accepted is what fits into the memory")
    whole = np.asarray(distances)
    if whole.ndim != 1 or (whole.size and (whole.dtype.kind not in "iu" or whole.min() < 0)):
        raise InputError("distances must be a one-dimensional list of integers >= 0")
    free = sorted({s.name for formula in formulas for s in formula.free_symbols - {n}})
    if free:
        raise MissingValues("the bias", free)
    table = np.empty((len(formulas), whole.size))
    off = EPS if whole.size and whole.max() >= 1 << 53 else 0.0
    with np.errstate(over="raise", divide="raise", invalid="raise", under="ignore"):
        for start in range(0, whole.size, BLOCK):
            block = slice(start, start + BLOCK)
            check_time()
            where = Near(whole[block].astype(np.float64), off)
            _fill(table[:, block], tuple(formulas), whole[block], where, floats)
    return table


def _fill(
    table: np.ndarray,
    formulas: tuple[Expr, ...],
    distances: np.ndarray,
    where: Near,
    floats: Floats,
) -> None:
    """A block of a table: by bounds for the whole of it, for each entry, and by balls."""
    try:
        rows = floats.compiled(formulas)(where)
    except FloatingPointError:
        rows = (None,) * len(formulas)
    for row, formula, whole in zip(table, formulas, rows, strict=True):
        if whole is not None:
            np.add(whole.value, 0.0, out=row)  # without negative zeros
            bound = whole.relative + whole.absolute
            if bound < TOLERANCE or bound < TOLERANCE * floats.least(whole):
                continue
        with np.errstate(all="ignore"):
            (each,) = floats.finer.compiled((formula,))(where)
            np.add(each.value, 0.0, out=row)
            sound = floats.finer.error(each) < TOLERANCE * np.fmax(1, np.abs(row))
        bad = np.flatnonzero(~(sound & ~np.isnan(row)))
        if bad.size:
            row[bad] = floats.by_balls(formula, distances[bad])
