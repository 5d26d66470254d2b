"""Float64 tables: a formula at many distances in one vectorised pass, in NumPy or torch.

`Arrays` evaluates on any namespace of the array API standard, so that NumPy and torch share the
rules of the functions. `Floats` is NumPy's float64 twice: a second row, disturbed by each operation
at random, shows where rounding matters (Vignes, "A stochastic arithmetic for reliable scientific
computation", 1993). Entries whose rows differ are balls, as constants are. A jump is decided
exactly, in integers where its argument is a rational polynomial of integers.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import os
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import sympy
from flint import arb, fmpq
from sympy import Basic, Expr, S
from sympy.core.relational import Relational

from farfield.theory.algebra import door
from farfield.theory.algebra.door import check_time
from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.answers.errors import InputError, MissingValues
from farfield.theory.evaluation.logarithms import (
    STEEP,
    LogSum,
    logarithm,
    uncancelled,
    within_range,
)
from farfield.theory.evaluation.real_balls import PLAIN, RealBalls
from farfield.theory.evaluation.residues import quotient
from farfield.theory.functions.balls import NoValue, Undefined, precision, to_arb
from farfield.theory.functions.elementary import expm1, log1p
from farfield.theory.functions.nodes import Lookup, n
from farfield.theory.functions.record import LOOK, Arithmetic, Function, Operation, Program
from farfield.theory.relations import SIX

BLOCK = 1 << 13  # distances at a time: the values of all parts of a formula stay in the cache
STRIDE = 797  # between the disturbances of two operations, which share one list
DISTURBANCE = 2.0**-44  # of a result that may be rounded, at least
FAINT = 1e-290  # added to it besides: an underflow differs from 0
FAINTEST = 1e-280  # a difference that tells nothing
KNOWN = 2.0**-10  # of a value, or of its distance from a jump: what its rows differ by at most
AGREED = 2.0**-38  # of an entry, relative above 1: what its rows differ by at most
INTEGERS = 2.0**53  # those below it are floats
MOST_TERMS = 10_000
FAR = 10**9  # where the terms of a sum are compared
LONG = 60  # operations of a sum that is not multiplied out
MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")  # bytes
TWO_PI = 8 * np.arctan(np.longdouble(1))
_DRAW = np.random.default_rng(0)
_NOISE = 1 + DISTURBANCE * (1 + _DRAW.random(2 * BLOCK)) * _DRAW.choice([-1, 1], 2 * BLOCK)


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

        return getattr(scipy.special, name)


def _exact(x: np.ndarray) -> np.ndarray:
    """Where no operation has rounded."""
    return np.asarray(x[0] == x[1])


def _close(x: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Where the rows differ by a small part of a size."""
    return _exact(x) | (np.abs(x[0] - x[1]) <= KNOWN * size)


def _known(x: np.ndarray, turns: bool = False) -> np.ndarray:
    """A value, undefined where its rows differ too much. An angle is known absolutely."""
    if turns:
        known = np.abs(x[0] - x[1]) <= KNOWN
    else:
        known = _close(x, np.abs(x).min(axis=0)) | (np.abs(x).max(axis=0) < FAINTEST)
    return x if known.all() else np.where(known, x, np.nan)


class Floats(Arrays):
    """float64 at distances, in two rows: the second shows what rounding does to the first.

    Each operation that may round disturbs its result in the second row at random, by a relative
    2^-44. That is hundreds of times the rounding of a float. Parts that cancel, an argument of many
    turns, or a jump nearby spread the rows apart. A sign that the rows do not tell is undefined
    (nan), and so is what follows from it. Integers below 2^53 stay exact. A value has the shape
    `(2, distances)` or, of a constant, `(2, 1)`; a truth value is 1, 0 or nan, and has no rows.

    Args:
        balls: they give constants, and the entries that floats do not.
    """

    def __init__(self, balls: RealBalls) -> None:
        super().__init__(_NumPy())
        self.balls, self.drawn = balls, itertools.count()
        self.constants = functools.lru_cache(maxsize=4096)(self._constant)
        self.compiled = functools.lru_cache(maxsize=64)(self._compiled)

    def _compiled(self, formulas: tuple[Expr, ...]) -> Program:
        self.drawn = itertools.count()  # the same disturbances whatever was compiled before
        return Program(sympy.Tuple(*formulas), self, (n,))

    def constant(self, e: Basic) -> Any:
        return tuple(map(self.constant, e)) if isinstance(e, sympy.Tuple) else self.constants(e)

    def _constant(self, e: Basic) -> np.ndarray:
        if e in (S.true, S.false):
            return np.asarray(float(bool(e)))
        if e in (S.Infinity, S.NegativeInfinity):
            return np.full((2, 1), math.inf if e is S.Infinity else -math.inf)
        if e.is_Rational and max(abs(e.p), e.q) < 1 << 1000:
            number = int(e.p) / int(e.q)
            if Fraction(number) == Fraction(int(e.p), int(e.q)):
                return np.full((2, 1), number)
        else:
            number = float(self.by_balls(e, np.zeros(1), relative=True)[0])
        return np.array([[number], [number * _NOISE[hash(number) % BLOCK] + FAINT]])

    def _rounded(
        self, e: Expr, rule: Callable[..., np.ndarray], least: float = FAINT
    ) -> Callable[..., np.ndarray]:
        """A rule whose result, a new array, is disturbed in its second row where it rounds; by
        `least` at least."""
        start, whole = next(self.drawn) * STRIDE % BLOCK, e.is_integer

        def disturbed(*parts: np.ndarray) -> np.ndarray:
            total = rule(*parts)
            if whole and (exact := _exact(total) & (np.abs(total[0]) < INTEGERS)).all():
                return total
            _disturb(total, start, least)
            if whole:
                total[1, exact] = total[0, exact]
            return total

        return disturbed

    # -- operations -------------------------------------------------------------------------------

    def operation(self, e: Basic) -> Operation:
        if isinstance(e, sympy.Tuple):
            return lambda *values: values, e.args
        if self.reformed(e) is None and (e.is_Add or e.is_Mul):
            return self._rounded(e, _sum if e.is_Add else _product), e.args
        return super().operation(e)

    def power(self, e: Expr) -> Operation:
        base, exponent = e.args
        if exponent.is_Integer and 0 < exponent <= 8 and e.is_integer:
            return self._rounded(e, _product), (base,) * int(exponent)
        root = not (exponent.is_integer or base.is_nonnegative)
        if exponent.is_Rational and _exact(value := self.constant(exponent)):
            raised = functools.partial(_power, exponent=float(value[0, 0]), root=root)
            return self._rounded(e, raised), (base,)
        return self._rounded(e, functools.partial(_power, root=root)), e.args

    def log_sum(self, *parts: np.ndarray) -> np.ndarray:
        """The logarithm of a sum, whose terms are shifted by the largest exponent."""
        largest = functools.reduce(np.maximum, parts[1::2])
        shift = np.where(np.isneginf(largest), 0.0, largest)  # a sum of nothing
        rest, one = np.zeros_like(shift), np.zeros_like(shift)  # where a term is 1, without it
        for k, (c, x) in enumerate(zip(parts[::2], parts[1::2], strict=True)):
            term = c * np.exp(x - shift)
            _disturb(term, k * STRIDE % BLOCK)
            whole = (c == 1) & (x == shift) & (one == 0)
            rest, one = rest + np.where(whole, 0.0, term), one + whole
        near = (one == 1) & (np.abs(rest) < 0.5)
        log = np.where(near, np.log1p(rest), np.log(_known(one + rest)))
        return np.where(np.isneginf(largest), largest, shift + log)

    def function(self, record: Function, e: Expr) -> Operation:
        if record.array is None:
            return self._unknown()
        rule = functools.partial(record.array, self.xp)
        if record.node is sympy.sign:
            sign, parts = self._sign_where_known(e.args[0])
            return lambda x: np.stack([sign(x)] * 2), parts
        if record.node is sympy.Heaviside:
            return lambda step: step, (e.rewrite(sympy.Piecewise),)
        if record.node in (sympy.Min, sympy.Max, sympy.Abs):
            return lambda *parts: rule(*map(_known, parts)), e.args
        if record.jumps:
            return self._in_integers(record, e) or (functools.partial(_step, record, rule), e.args)
        if wave := self._wave(e):
            return wave

        turns, grows = record.period is not None, record.node in (sympy.exp, expm1)
        least = FAINT if record.node in (sympy.exp, sympy.log) else DISTURBANCE
        orders = [a.is_number and bool(_exact(self.constant(a))) for a in e.args]

        def applied(*parts: np.ndarray) -> np.ndarray:
            known = [
                float(x[0, 0]) if order else _known(x, turns)
                for x, order in zip(parts, orders, strict=True)
            ]
            total = rule(*known)
            if grows or not np.isinf(total).any():
                return total
            beyond = functools.reduce(operator.or_, map(np.isinf, known))
            return np.where(np.isposinf(total) | (np.isinf(total) & beyond), np.nan, total)

        return self._rounded(e, applied, least), e.args

    def structure(self, e: Basic) -> Operation:
        if isinstance(e, LogSum):
            return self._rounded(e, self.log_sum), e.args
        if isinstance(e, Relational):
            relation = _RELATIONS[type(e)]
            sign, parts = self._sign_where_known(e.lhs - e.rhs)
            return lambda x: _where_known(s := sign(x), relation(s, 0)), parts
        if type(e) in _LOGIC:
            return _LOGIC[type(e)], e.args
        if isinstance(e, sympy.Sum):
            (k, low, high), *more = e.limits
            if not more and low.is_Integer and high.is_Integer and high - low < MOST_TERMS:
                terms = [e.function.xreplace({k: S(i)}) for i in range(int(low), int(high) + 1)]
                return self._rounded(e, _sum), (S.Zero, S.Zero, *terms)
        try:
            return super().structure(e)
        except Lacking:
            return self._unknown()

    def lacking(self, name: str, why: str) -> Exception:
        return Lacking(name)

    def _unknown(self) -> Operation:
        """What floats do not give: balls do, at the distances where it matters."""
        return lambda distances: np.full_like(distances, np.nan), (n,)

    def _chosen_piece(self, *pieces: np.ndarray) -> np.ndarray:
        result: Any = np.nan
        for piece, chosen in zip(pieces[-2::-2], pieces[-1::-2], strict=True):
            result = np.where(chosen == 1, piece, _where_known(chosen, result))
        return result

    def look_up(self, index: np.ndarray, *entries: np.ndarray) -> np.ndarray:
        place = index[0]
        whole = _exact(index) & (place == np.floor(place)) & (place >= 0)
        place = np.where(whole, np.minimum(place, len(entries) - 1), 0).astype(np.int64)
        return np.where(whole, np.hstack(entries)[:, place], np.nan)

    # -- jumps ------------------------------------------------------------------------------------

    def _sign_where_known(self, e: Expr) -> Operation:
        """The sign of a part, exactly where it is a rational multiple of integers, as one row."""

        def sign(x: np.ndarray) -> np.ndarray:
            size = np.abs(x).min(axis=0)
            told = _exact(x) | (_close(x, size) & (size > FAINTEST))
            return np.where(told, np.sign(x[0]), np.nan)

        return sign, (quotient(e)[0],)

    def _in_integers(self, record: Function, e: Expr) -> Operation | None:
        """A rounding of a rational multiple of integers, by the quotient of whole floats."""
        assert record.period is not None
        inside, modulus = record.period(*e.args)
        if not (modulus.is_Rational and modulus > 0):
            return None
        whole, factor = quotient(inside / modulus)
        p, q = factor.as_integer_ratio()
        if not whole.is_integer or q > INTEGERS:
            return None
        unit = modulus / q

        def whole_part(x: np.ndarray) -> np.ndarray:
            exact = _exact(x) & (p * np.abs(x[0]) < INTEGERS)
            return np.where(exact, np.floor_divide(sign * p * x, q) * sign, np.nan)

        def rest(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
            exact = _exact(x) & (p * np.abs(x[0]) < INTEGERS)
            return np.where(exact, np.mod(p * x, q), np.nan) * scale

        sign = 1 if e.func is sympy.floor else -1
        return (whole_part, (whole,)) if record.range is None else (rest, (whole, unit))

    # -- waves ------------------------------------------------------------------------------------

    def _wave(self, e: Expr) -> Operation | None:
        """A sine or cosine of a linear function of n."""
        if not isinstance(e, (sympy.sin, sympy.cos)):
            return None
        inside = sympy.expand(e.args[0])
        rate, shift = inside.coeff(n, 1), inside.coeff(n, 0)
        if rate == 0 or rate.has(n) or inside != rate * n + shift:
            return None
        turns, ahead = map(self._turns, (rate, shift))
        if turns is None or ahead is None:
            return None
        wave = np.sin if isinstance(e, sympy.sin) else np.cos
        turning = functools.partial(self._turning, wave, turns, ahead)
        return self._rounded(e, turning, DISTURBANCE), (n,)

    def _turning(
        self, wave: Callable[..., Any], rate: int, shift: int, k: np.ndarray
    ) -> np.ndarray:
        """A wave at rate k + shift, 0 <= k < 2^40, from turns in units of 2^-88."""
        high, low = (np.uint64(x) for x in divmod(rate, 1 << 24))
        whole = k[0].astype(np.uint64)
        turns = whole * high + (whole * low >> np.uint64(24)) + np.uint64(shift >> 24)
        angles = (turns.astype(np.int64) * (TWO_PI / 2.0**64)).astype(np.float64)
        return np.stack([np.where(k[0] < 2**40, wave(angles), np.nan)] * 2)

    def _turns(self, angle: Expr) -> int | None:
        """The fractional part of an angle in turns, in units of 2^-88."""
        with precision(400):
            ball = self.balls.enclose(angle / (2 * sympy.pi), 400)
            if ball is None or not ball.rad() < arb(2) ** -120:
                return None
            return int((ball.mid() * 2**88).floor().unique_fmpz()) % 2**88

    # -- entries by balls -------------------------------------------------------------------------

    def by_balls(self, e: Expr, distances: np.ndarray, *, relative: bool = False) -> np.ndarray:
        """Each value from a ball, at a precision that fixes 50 of its bits: `relative` of them
        also below 1. It is nan where there is none, or none that 20,480 bits tell. Another form
        of the formula is asked before long balls. A proof that an argument is at a jump costs more
        than all these bits, so that it comes last."""
        narrow = arb(2) ** (-1080 if relative else -60)
        values, left = np.full(distances.shape, np.nan), list(range(distances.size))
        for function, bits in self._attempts(e):
            open_ = []
            for start in range(0, len(left), LOOK):
                with precision(bits):  # looks at the clock
                    for k in left[start : start + LOOK]:
                        try:
                            ball = to_arb(function({n: fmpq(int(distances[k]))}))
                        except NoValue:
                            continue
                        except Undefined:
                            open_.append(k)
                            continue
                        if ball.rel_accuracy_bits() >= 60 or ball.rad() < narrow:
                            values[k] = 0.0 if ball.contains(0) else float(ball.mid())
                        else:
                            open_.append(k)
            left = open_
            if not left:
                break
        return values

    def _attempts(self, e: Expr) -> Iterator[tuple[Callable[..., Any], int]]:
        """Programs of the formula and of its other form, each with its bits, the cheapest first."""
        yield from ((PLAIN.compiled(e), 80 << k) for k in (0, 2, 4))
        try:
            form = _from_limits(e)
        except (NoValue, Undecided):
            form = e
        if form != e:
            yield from ((PLAIN.compiled(form), 80 << k) for k in (0, 2, 4))
        for x in dict.fromkeys((e, form)):
            yield from ((PLAIN.compiled(x), 80 << k) for k in (6, 8))
            yield self.balls.compiled(x), 80 << 6


def _from_limits(e: Basic) -> Basic:
    """The same by what its functions lack of 1, hyperbolic sines by exponentials, and functions
    near an end of their domain by the distance from it: no ball tells `1 - tanh(n)` from 0 far out,
    and every ball tells `2/(1 + exp(2*n))`.

    Raises:
        NoValue: a part is no real number, which a whole may be again.
        Undecided: SymPy does not compare two parts.
    """
    parts = tuple(map(_from_limits, e.args))
    if e.func in _FORMS:
        form = _FORMS[e.func](*parts)
    else:
        form = e if parts == e.args else door.supervised(e.func, *parts)
    if form.has(sympy.I, sympy.zoo, sympy.nan):
        raise NoValue("no real number")
    return form


def _gathered(*terms: Expr) -> Expr:
    """A sum as one quotient, whose numerator is multiplied out, where then nothing cancels; a sum
    with a square root by a^2 - b^2 over a - b."""
    total = sympy.Add(*terms)
    powers = total.atoms(sympy.Pow)
    if not _cancels(total) or total.count_ops() > LONG or any(_is_high(p.exp) for p in powers):
        return total
    try:
        above, below = door.fraction(door.together(total))
        if root := next((x for x in sympy.Add.make_args(above) if _is_root(x)), None):
            rest = above - root
            above, below = root**2 - rest**2, below * (root - rest)
        above = door.factor_terms(door.expand_mul(door.expand_multinomial(above)))
    except Undecided:
        return total
    return total if _cancels(above) else above / below


def _is_root(term: Expr) -> bool:
    """Whether it is a multiple of a square root."""
    return term.as_coeff_Mul()[1].as_base_exp()[1] == S.Half


def _cancels(total: Expr) -> bool:
    """Whether terms of both signs are added."""
    return len({term.could_extract_minus_sign() for term in sympy.Add.make_args(total)}) > 1


def _is_high(exponent: Expr) -> bool:
    return bool(exponent.is_Integer and exponent > STEEP)


def _stepped(step: Callable[[Expr], Expr], x: Expr) -> Expr:
    """A floor or ceiling: of the parts that one of them is, beside an integer of the rest."""
    if isinstance(x, (sympy.Max, sympy.Min)):
        return x.func(*(_stepped(step, part) for part in x.args))
    if isinstance(x, sympy.Piecewise):
        return sympy.Piecewise(*((_stepped(step, piece), chosen) for piece, chosen in x.args))
    factor, _ = x.as_coeff_Mul()
    rest = uncancelled(factor - x) if factor.is_Integer else None
    return step(x) if rest is None or not _is_small(rest, 1) else factor + step(-rest)


def _exponential(x: Expr) -> Expr:
    """exp(x), as 1 and the rest of an argument that may be near 0."""
    return 1 + expm1(x) if logarithm(x) is not None or _is_small(x) else sympy.exp(x)


def _rest_of_one(x: Expr) -> Expr | None:
    """What is added to 1, if it is small far out."""
    constant, rest = x.as_coeff_Add()
    return rest if constant == 1 and _is_small(rest) else None


def _is_small(x: Expr, bound: float = DISTURBANCE) -> bool:
    """Whether it is below a bound, far out."""
    far = PLAIN.enclose(x, 64, {n: FAR})
    return far is not None and bool(abs(far) < bound)


def _raised(base: Expr, exponent: Expr) -> Expr:
    """A power, of a base near 1 as 1 and a rest."""
    rest = None if exponent.is_integer else _rest_of_one(base)
    return sympy.Pow(base, exponent) if rest is None else 1 + expm1(exponent * log1p(rest))


def _logarithm(x: Expr) -> Expr:
    """log(x), of a sum with exponentials by the term that is the largest far out."""
    form, rest = logarithm(x), _rest_of_one(x)
    if not isinstance(form, LogSum):
        return sympy.log(x) if rest is None else log1p(rest)
    terms = [*zip(form.args[::2], form.args[1::2], strict=True)]
    balls = [PLAIN.enclose(size, 64, {n: FAR}) for _, size in terms]
    sizes = [float(ball.mid()) for ball in balls if ball is not None]
    if len(sizes) < len(balls):
        return sympy.log(x)
    factor, size = terms.pop(sizes.index(max(sizes)))
    if not factor.is_positive:
        return sympy.log(x)
    others = (c / factor * sympy.exp(other - size) for c, other in terms)
    return size + sympy.log(factor) + log1p(sympy.Add(*others))


def _half_angle(x: Expr) -> Expr:
    """The tangent of half the angle whose cosine is x."""
    return sympy.sqrt(_gathered(S.One, -x) / _gathered(S.One, x))


def _beyond_one(rest: Expr) -> Expr:
    """acosh(1 + rest)."""
    return log1p(rest + sympy.sqrt(rest * (rest + 2)))


_FORMS: dict[Any, Callable[..., Expr]] = {
    sympy.floor: functools.partial(_stepped, sympy.floor),
    sympy.ceiling: functools.partial(_stepped, sympy.ceiling),
    sympy.frac: lambda x: x - _stepped(sympy.floor, x),
    sympy.tanh: lambda x: 1 - 2 / (sympy.exp(2 * x) + 1),
    sympy.coth: lambda x: 1 + 2 / (sympy.exp(2 * x) - 1),
    sympy.erf: lambda x: sympy.erf(x) if _is_small(x) else 1 - sympy.erfc(x),
    sympy.sinh: lambda x: (sympy.exp(x) - sympy.exp(-x)) / 2,
    sympy.cosh: lambda x: (sympy.exp(x) + sympy.exp(-x)) / 2,
    sympy.asin: lambda x: sympy.pi / 2 - 2 * sympy.atan(_half_angle(x)),
    sympy.acos: lambda x: 2 * sympy.atan(_half_angle(x)),
    sympy.acosh: lambda x: _beyond_one(_gathered(x, S.NegativeOne)),
    sympy.atanh: lambda x: -sympy.log(_half_angle(x)),
    sympy.exp: _exponential,
    sympy.cos: lambda x: 1 - 2 * sympy.sin(x / 2) ** 2,
    sympy.log: _logarithm,
    sympy.Pow: _raised,
    sympy.Add: _gathered,
}


def _disturb(x: np.ndarray, start: int, least: float = FAINT) -> None:
    """Change the second row by a little of itself, at random."""
    x[1] *= _NOISE[start : start + x.shape[1]]
    x[1] += least


def _sum(*parts: np.ndarray) -> np.ndarray:
    """A sum. Of three parts or more, what the partial sums round off is added at the end (Neumaier,
    "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen", 1974): both rows
    would lose the same."""
    if len(parts) == 2:
        return np.add(*parts)
    total, lost = parts[0], np.zeros((2, 1))
    for x in parts[1:]:
        before, total = total, total + x
        added = total - before
        lost = lost + ((before - (total - added)) + (x - added))
    return np.where(np.isfinite(total), total + lost, total)


def _product(*parts: np.ndarray) -> np.ndarray:
    """A product, undefined where a part is beyond all floats and another one shrinks it."""
    total = functools.reduce(operator.mul, parts)
    infinite = np.isinf(total)
    if infinite.any():
        small = functools.reduce(operator.or_, [np.abs(x) < 1 for x in parts])
        total = np.where(infinite & small, np.nan, total)
    return total


def _power(base: np.ndarray, exponent: Any, root: bool) -> np.ndarray:
    """A power. It has no value where 0 divides, where the base is beyond all floats and the power
    may not be, where the exponent's parity is not known, and where the base of a `root` is below
    all floats, of either sign."""
    base = _known(base)
    moving = isinstance(exponent, np.ndarray)
    exponent = _known(exponent) if moving else exponent
    none = ((base == 0) & (exponent < 0)) | (np.isinf(base) & (np.abs(exponent) < 1))
    if root:
        none |= ~_exact(base) & (np.abs(base) < FAINTEST)
    if moving:
        none |= (base < 0) & ~(_exact(exponent) & np.isfinite(exponent))
    total = base**exponent
    return np.where(none, np.nan, total) if none.any() else total


def _step(
    record: Function, rule: Callable[..., Any], x: np.ndarray, *modulus: np.ndarray
) -> np.ndarray:
    """A function that jumps, undefined where the rows do not tell on which side of a jump."""
    turns = x / modulus[0] if modulus else x
    told = _close(turns, np.abs(turns[0] - np.rint(turns[0]))) & (np.abs(turns[0]) < 2.0**40)
    return np.where(told, rule(x, *modulus), np.nan)


def _where_known(told: np.ndarray, value: Any) -> np.ndarray:
    return np.where(np.isnan(told), np.nan, value)


_LOGIC: dict[type[Basic], Callable[..., Any]] = {
    sympy.And: lambda *parts: functools.reduce(np.minimum, parts),
    sympy.Or: lambda *parts: functools.reduce(np.maximum, parts),
    sympy.Not: lambda part: 1 - part,
}


def require_memory(size: int) -> None:
    """Refuse a table of more float64 than the machine holds."""
    if size * 8 > MEMORY:
        many = f"{size:,}" if size < 10**18 else "more than 10^18"
        raise InputError(f"a table of {many} numbers: accepted is what fits into the memory")


def tabulate(formulas: Sequence[Expr], distances: Any, floats: Floats) -> np.ndarray:
    """The biases at each distance as float64, shape `(len(formulas), len(distances))`.

    Each entry is within 1e-12 of the formula, relatively above 1: floats whose two rows differ,
    and those beside them, are replaced by balls. It is -inf where the formula is or is below all
    floats, and nan or inf where it has no value.

    Args:
        formulas: biases in `n` without other symbols.
        distances: integers >= 0, one-dimensional.
        floats: the arithmetic.

    Raises:
        InputError: when a formula has free parameters, a distance is no natural number, or the
            table does not fit into the memory.
    """
    if not isinstance(distances, Sequence) and not hasattr(distances, "__array__"):
        raise InputError(f"distances {distances!r}: accepted is a list of integers >= 0")
    require_memory(len(formulas) * len(distances))
    whole = np.asarray(distances)
    if whole.ndim != 1 or (whole.size and (whole.dtype.kind not in "iu" or whole.min() < 0)):
        raise InputError("distances must be a one-dimensional list of integers >= 0")
    free = sorted({s.name for formula in formulas for s in formula.free_symbols - {n}})
    if free:
        raise MissingValues("the bias", free)
    table = np.empty((len(formulas), whole.size))
    with np.errstate(all="ignore"):
        for start in range(0, whole.size, BLOCK):
            block = slice(start, start + BLOCK)
            check_time()
            _fill(table[:, block], tuple(formulas), whole[block], floats)
    return table


def _fill(
    table: np.ndarray, formulas: tuple[Expr, ...], distances: np.ndarray, floats: Floats
) -> None:
    """A block of a table: by floats where their rows agree, else by balls."""
    where = np.stack([np.where(distances < INTEGERS, distances, np.nan)] * 2)
    for row, formula, rows in zip(table, formulas, floats.compiled(formulas)(where), strict=True):
        first, second = np.broadcast_to(rows, where.shape)
        np.add(first, 0.0, out=row)  # without negative zeros
        open_ = ~(np.abs(first - second) <= AGREED * np.maximum(1, np.abs(first)))
        if not np.isfinite(np.sum(row)):
            open_ = (open_ | np.isinf(first)) & (first != second)
        if not open_.any():
            continue
        open_[1:] |= open_[:-1].copy()
        open_[:-1] |= open_[1:].copy()
        bad = np.flatnonzero(open_)
        row[bad] = floats.by_balls(formula, distances[bad]) + 0.0
