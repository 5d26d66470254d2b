"""The sums `B`, `B_j`, `T_j` of an exp-series as balls: its stretches, between changes of branches.

The distances are cut into stretches on which every comparison, absolute value and table of the
formula is settled by its structure; the last stretch is infinite. A formula with periodic parts is
cut into its residue classes first, each with stretches and formulas of its own. A stretch is summed
term by term, or, where it is long or infinite, by the kernel of its formula (module `kernel`).
The terms and sums stay exact rationals where the formula allows it.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import sympy
from flint import arb, ctx, fmpq
from sympy import Expr, S, Symbol
from sympy.core.relational import Relational

from farfield.numerics.search import Divergent, Unrecognised
from farfield.numerics.summation.analytic import smooth_row
from farfield.numerics.summation.analytic_bias import sign_from
from farfield.numerics.summation.kept_sums import memory
from farfield.numerics.summation.kernel import Kernel, decided_sign, suffix_sums
from farfield.numerics.summation.methods import find
from farfield.theory.algebra import door
from farfield.theory.algebra.door import after, check_time, unless
from farfield.theory.algebra.exceptions import OutOfTime, Unreachable
from farfield.theory.answers.errors import InputError, MissingValues
from farfield.theory.answers.notation import expression_line, shortened
from farfield.theory.decision.engine import common_period, residue_class
from farfield.theory.first_terms import is_masked
from farfield.theory.formula.bounded_nodes import rebuilt, substituted
from farfield.theory.functions.balls import (
    Ball,
    BeyondBalls,
    Undefined,
    Undetermined,
    precision,
    rational,
    to_arb,
)
from farfield.theory.functions.nodes import Lookup, n
from farfield.theory.functions.record import record_of
from farfield.theory.values import compile_ball

LONG = 1_000  # terms from which a closed form is cheaper than their sum
LONG_ROW = 20_000  # terms from which Euler-Maclaurin at both ends is cheaper than their sum
# Distances from which a sign is tried to be proved: each change before is looked at.
SETTLED = (16, 64, 256, 1_024, 4_096, 16_384, 65_536)
MAX_WORK = 12_000_000  # terms times nodes of the formula that are summed one by one
MAX_STRETCHES = 1_000  # pieces of one formula, each with a kernel
MAX_PERIOD = 512  # residue classes of a formula
MAX_CLASSES = 48  # of them with weights, each with a kernel; 48 holds 2, 3, 4, 6, 8, 12, 16
FEW = 6  # residue classes that may be summed by any method: the work multiplies
MAX_ROWS = 8  # rows of one series that are remembered
SET_UP_S = 10.0  # seconds of processor time in which a kernel is sought
EXACT_TERMS = 512  # terms up to which a sum of rationals stays one: its size grows with each
SHARED_TERMS = 20_000  # values that heads of one formula share in memory


@dataclass(frozen=True)
class Stretch:
    """exp(bias) at the distances period k + residue, `start <= k < end` (None: infinite). The bias
    is a formula in k, called n; a kernel sums it, if there is one; `late` says that the clock ended
    the search for it."""

    start: int
    end: int | None
    bias: Expr
    kernel: Kernel | None
    gap: str = ""
    divergent: bool = False
    late: bool = False
    period: int = 1
    residue: int = 0

    @property
    def converges(self) -> bool | None:
        """Whether the structure alone proves convergence; None where it does not tell."""
        if self.end is not None or self.bias is S.NegativeInfinity:
            return True
        if self.kernel is None:
            return False if self.divergent else None
        return self.kernel.converges

    @property
    def first(self) -> int:
        """The nearest distance."""
        return self.period * self.start + self.residue

    def index(self, j: int) -> int:
        """The least k at a distance of at least j."""
        return max(self.start, -((self.residue - j) // self.period))

    def distances(self, a: int, b: int) -> range:
        """The distances with a <= k < b."""
        return range(self.period * a + self.residue, self.period * b + self.residue, self.period)

    def tail(self, j: int) -> Ball:
        """The sum over the distances from j on, a ball or an exact rational."""
        k = self.index(j)
        if self.bias is S.NegativeInfinity or (self.end is not None and k >= self.end):
            return fmpq(0)
        if self.end is None:
            if self.kernel is None:
                raise Unreachable(self.gap)
            return self.kernel.tail(k)
        size, constant = self.end - self.start, not self.bias.has(n)
        if self.kernel is not None and (constant or size > LONG):
            with contextlib.suppress(
                Unreachable
            ):  # no closed form: the general row, then one by one
                return self.kernel.between(k, self.end)
        if size > LONG_ROW and not self.bias.has(Lookup):
            with contextlib.suppress(Unreachable, Unrecognised):
                row = smooth_row(self.bias, self.start)
                if row is not None:
                    return row.between(k, self.end)
        return self._suffix_sums()[k - self.start]

    def falls_from(self) -> int | None:
        """A distance from which on a bias that tends to -oo is proved to fall, if one is known."""
        if self.kernel is not None:
            with contextlib.suppress(Unreachable):
                return self.kernel.monotone_from
        if self.bias.has(*_JUMPS):
            return None
        at, way = _settled(door.diff(self.bias, n), self.start)
        return at if way < 0 else None

    def _suffix_sums(self) -> list[Ball]:
        """All suffix sums at once, exact while there are few terms."""
        kept = memory(self)
        if ctx.prec not in kept:
            assert self.end is not None
            size = sum(1 for _ in sympy.preorder_traversal(self.bias))
            if (self.end - self.start) * (1 if self.bias.has(Lookup) else size) > MAX_WORK:
                raise Unreachable(
                    f"{self.end - self.start} terms would have to be summed one by one"
                )
            exact = self.end - self.start <= EXACT_TERMS
            plain = self.bias.has(sympy.log, Lookup) or self.end - self.start > SHARED_TERMS
            weight = term(self.bias) if plain else _shared_term(self.bias)

            def value(i: int) -> Ball:
                try:
                    return weight(i) if exact else to_arb(weight(i))
                except Undefined:
                    _defined(self, i)
                    raise

            sums = suffix_sums(fmpq(0), value, self.end, self.start)
            if len(kept) > 2:
                kept.clear()
            kept[ctx.prec] = sums
        return kept[ctx.prec]


@dataclass(frozen=True)
class Series:
    """The exp-series of one bias, its stretches in order; evaluate inside `precision(bits)`.

    >>> with precision(64):
    ...     s = series(-2 * sympy.log(1 + n))
    ...     round(float(s.total()), 9), s.partial(2)
    (1.644934067, 5/4)
    """

    bias: Expr
    stretches: tuple[Stretch, ...]

    @property
    def last(self) -> tuple[Stretch, ...]:
        """The stretches that hold all large distances, one a residue class; none of a row."""
        return tuple(s for s in self.stretches if s.end is None)

    @property
    def kernel(self) -> Kernel | None:
        """The kernel of all large distances; None where there is none, or one a residue class."""
        return self.last[0].kernel if len(self.last) == 1 else None

    @property
    def converges(self) -> bool | None:
        """Whether the structure alone proves convergence; None where it does not tell."""
        each = {s.converges for s in self.last}
        return False if False in each else None if None in each else True

    @property
    def support(self) -> int | None:
        """The least integer from which every term is 0; None if the structure shows none."""
        kept = [s for s in self.stretches if s.bias is not S.NegativeInfinity]
        ends = [s.distances(s.start, s.end)[-1] + 1 for s in kept if s.end is not None]
        return max(ends, default=0) if len(ends) == len(kept) else None

    @property
    def first_bits(self) -> int:
        """The precision to begin with."""
        kernels = (s.kernel for s in self.stretches if s.kernel is not None)
        return min((k.first_bits for k in kernels), default=Kernel.first_bits)

    @property
    def max_bits(self) -> int:
        """The size of a receptive field up to which it is sought as an integer."""
        kernels = (s.kernel for s in self.stretches if s.kernel is not None)
        return min((k.max_bits for k in kernels), default=Kernel.max_bits)

    @property
    def gap(self) -> str:
        """Why there is no certified sum; empty if there is one."""
        return next((s.gap for s in self.last if s.gap), "")

    @property
    def period(self) -> int:
        """The modulus of the residue classes at large distances."""
        return math.lcm(*(s.period for s in self.last))

    def eventual(self, period: int, residue: int) -> Expr:
        """The formula in k at the large distances period k + residue, for a multiple of `period`;
        the residue may exceed it."""
        for s in self.last:
            if residue % s.period == s.residue:
                step, first = period // s.period, residue // s.period
                return substituted(s.bias, {n: step * n + first})
        return S.NegativeInfinity

    def tail(self, j: int) -> Ball:
        """T_j, a ball or an exact rational."""
        return sum((s.tail(j) for s in reversed(self.stretches)), fmpq(0))

    def total(self) -> Ball:
        """B."""
        return self.tail(0)

    def partial(self, j: int) -> Ball:
        """B_j, summed without the tail."""
        return self.truncated(j).total()

    def truncated(self, length: int) -> Series:
        """The series of a row of `length` keys: every later term is 0."""
        rows: dict[int, Series] = memory(self).setdefault("rows", {})
        if length not in rows:
            if len(rows) >= MAX_ROWS:
                rows.clear()
            ends = ((s, s.index(length)) for s in self.stretches)
            kept = (replace(s, end=k if s.end is None else min(k, s.end)) for s, k in ends)
            rows[length] = Series(self.bias, tuple(s for s in kept if s.start < (s.end or 0)))
        return rows[length]

    def at(self, j: int) -> tuple[Expr, int]:
        """The formula at distance j and its k; minus infinity beyond the last stretch."""
        for s in self.stretches:
            k, beside = divmod(j - s.residue, s.period)
            if not beside and s.start <= k and (s.end is None or k < s.end):
                return s.bias, k
        return S.NegativeInfinity, j

    def term(self, j: int) -> Ball:
        """b_j."""
        bias, k = self.at(j)
        return term(bias)(k)


def series(bias: Expr, diverges: Callable[[Expr], bool] | None = None) -> Series:
    """The exp-series of a bias without free parameters.

    Args:
        bias: the formula in n.
        diverges: whether a series is proved to diverge; asked where no family sums it, so that no
            other method is tried in vain.

    Raises:
        InputError: free parameters, or a term b_n that is undefined or infinite, or b_0 = 0.
    """
    whole = exp_series(bias, diverges)
    if whole.at(0)[0] is S.NegativeInfinity:
        raise InputError(
            "b_0 = exp(p(0)) must be positive, and the bias is minus infinite at n = 0"
        )
    return whole


def exp_series(bias: Expr, diverges: Callable[[Expr], bool] | None = None) -> Series:
    """The same, where b_0 may be 0."""
    try:
        return _series(bias, diverges)
    except _Unfinished as why:
        return why.series
    except OutOfTime:
        raise
    except Unreachable as why:
        return Series(bias, (Stretch(0, None, bias, None, str(why)),))


class _Unfinished(Exception):
    """A series with a stretch whose kernel the clock left open: another question looks again."""

    def __init__(self, series: Series) -> None:
        self.series = series


@lru_cache(maxsize=256)
def _series(bias: Expr, diverges: Callable[[Expr], bool] | None = None) -> Series:
    """The stretches of a bias, each checked; `_Unfinished`, which no cache keeps, where one is
    late."""
    free = sorted(s.name for s in bias.free_symbols - {n})
    if free:
        raise MissingValues("the bias", free)
    with precision(128):
        built = Series(bias, tuple(_stretches(bias, _SetUp(diverges))))
    for s in built.stretches:
        _check(s)
    if any(s.late for s in built.stretches):
        raise _Unfinished(built)
    return built


def term(bias: Expr) -> Ball:
    """n -> exp(bias(n)), exact where it is rational: exp(c log x) is read as x^c."""
    weight = compile_ball(_weight(bias))
    return lambda i: weight({n: fmpq(i)})


@lru_cache(maxsize=1024)
def _weight(bias: Expr) -> Expr:
    """exp(p) with each c log(...) as a power, so that rational weights stay rational."""
    if isinstance(bias, Lookup):
        at, table, tail = bias.args
        return Lookup(at, sympy.Tuple(*map(_weight, table.args)), _weight(tail))
    terms = sympy.Add.make_args(bias)
    powers = [
        t for t in terms if isinstance(t.as_independent(sympy.log, as_Add=False)[1], sympy.log)
    ]
    rest = sympy.Add(*(t for t in terms if t not in powers))
    return sympy.Mul(*map(sympy.exp, powers), sympy.exp(rest))


def _shared_term(bias: Expr) -> Ball:
    """`term` for a formula without logarithms: heads that differ by a constant factor evaluate what
    they share once."""
    factor, shared = bias.as_content_primitive()
    values, value, c = _values(shared, ctx.prec), compile_ball(shared), rational(factor)

    def weight(i: int) -> arb:
        if i not in values:
            values[i] = to_arb(value({n: fmpq(i)}))
        return (values[i] * c).exp()

    return weight


@lru_cache(maxsize=8)
def _values(shared: Expr, bits: int) -> dict[int, arb]:
    """Values at `bits` bits, filled as they are asked for."""
    return {}


def _check(s: Stretch) -> None:
    """Every term must be defined and finite: by the normal form, else at the first distances."""
    if not s.bias.has(n):
        if s.bias is S.Infinity or s.bias.has(S.NaN, S.ComplexInfinity):
            raise InputError(
                f"the bias has no finite value at n = {s.first}; accepted: -oo masks a key"
            )
        return
    if (s.kernel is not None and s.kernel.checked) or s.bias.has(Lookup):
        return
    for i in range(s.start, min(s.start + 8, s.end or s.start + 8)):
        _defined(s, i)


def _defined(s: Stretch, i: int) -> None:
    """Bad input where the term has no value at any precision. Three terms are no error: one that is
    too large, one with a floor that no precision decides, and one with all parts masked."""
    why: Undefined | None = None
    for bits in (64, 256, 1024):
        with precision(bits):
            try:
                compile_ball(s.bias)({n: fmpq(i)})
                return
            except BeyondBalls:
                return
            except Undefined as reason:
                why = reason
    if isinstance(why, Undetermined) or is_masked(s.bias, fmpq(i)):
        return
    at = s.period * i + s.residue
    raise InputError(
        f"the bias {_shown(s.bias)} is undefined or infinite at n = {at} ({why}); receptive fields "
        "need a formula that is finite from n = 0 on: shift it, for example n -> n + 1"
    )


def _shown(e: Expr) -> str:
    return shortened(expression_line(e, unicode=False), 60)


# -- stretches ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _SetUp:
    """How kernels are sought: whether a formula is cut into residue classes, by smooth methods
    alone or by all, and what tells that a series diverges."""

    diverges: Callable[[Expr], bool] | None = None
    classes: bool = True
    smooth: bool = False


def _stretches(bias: Expr, way: _SetUp, start: int = 0, end: int | None = None) -> list[Stretch]:
    """Between the places where a comparison or a table changes the formula; a comparison of what
    has comparisons itself is settled on each of their stretches in turn."""
    switches = _switches(bias)
    plain = {g for g in switches if not _switches(g)}
    try:
        edges = {e for g in plain for e in _edges(g)} | {*_table_ends(bias)}
    except Unrecognised as reason:
        if bias.has(Lookup):
            return [Stretch(start, end, bias, None, str(reason))]
        return _with_kernel(start, end, bias, way)
    if len(edges) > MAX_STRETCHES:
        raise Unreachable(f"the formula has {len(edges)} stretches")
    pieces: list[tuple[int, Expr]] = []
    for at in sorted({start, *(e for e in edges if start < e and (end is None or e < end))}):
        piece = _settle(bias, at)
        if not pieces or pieces[-1][1] != piece:
            pieces.append((at, piece))
    ends = [at for at, _ in pieces[1:]] + [end]
    stretches: list[Stretch] = []
    for (a, piece), b in zip(pieces, ends, strict=True):
        left = piece != bias
        stretches += _stretches(piece, way, a, b) if left else _with_kernel(a, b, piece, way)
    return stretches


def _with_kernel(start: int, end: int | None, bias: Expr, way: _SetUp) -> list[Stretch]:
    """A stretch with its kernel, if there is one; of a formula with periodic parts its residue
    classes."""
    if bias in (S.NegativeInfinity, S.Infinity):
        return [Stretch(start, end, bias, None)]
    late = after(SET_UP_S)
    try:
        with unless(late):
            long = way.classes and (end is None or end - start > LONG)
            if parts := _classes(start, end, bias, way) if long else []:
                return parts
            kernel = find(
                bias, start, smooth=way.smooth, row=end is not None, diverges=way.diverges
            )
            return [Stretch(start, end, bias, kernel)]
    except (Unrecognised, Unreachable) as why:
        check_time()  # a question without time left says nothing of the next one
        return [Stretch(start, end, bias, None, str(why), isinstance(why, Divergent), late())]


def _classes(start: int, end: int | None, bias: Expr, way: _SetUp) -> list[Stretch]:
    """The stretches of the residue classes; none where there is no period, or a class without a
    kernel."""
    periods = (common_period(bias, rounding) for rounding in (True, False))
    period = next((m for m in periods if 1 < m <= MAX_PERIOD), 1)
    if period == 1:
        return []
    if way.diverges is not None and way.diverges(bias):
        raise Divergent("the series diverges")
    inside, stretches = _SetUp(classes=False, smooth=period > FEW), list[Stretch]()
    weights = 0
    for r in range(period):
        first, last = (None if j is None else -((r - j) // period) for j in (start, end))
        part = residue_class(bias, period, r)
        settled = {c: c.func(*c.args) for c in part.atoms(Relational) if not c.free_symbols}
        for s in _stretches(part.xreplace(settled), inside):
            low = max(s.start, first or 0)
            high = last if s.end is None else s.end if last is None else min(s.end, last)
            if high is None or low < high:
                stretches.append(replace(s, start=low, end=high, period=period, residue=r))
        weights += stretches[-1].end is None and stretches[-1].bias is not S.NegativeInfinity
        if weights > MAX_CLASSES or stretches[-1].converges is None:
            return []
    return stretches


_SWITCHES = (sympy.Abs, sympy.sign, sympy.Heaviside)
_CHOICES = (*_SWITCHES, sympy.Min, sympy.Max)
_JUMPS = (
    *(sympy.Piecewise, sympy.sign, sympy.Heaviside),
    *(sympy.floor, sympy.ceiling, sympy.frac, sympy.Mod, Lookup),
)


def _switches(bias: Expr) -> set[Expr]:
    """The expressions whose sign selects a branch of the formula."""
    places = set()
    for e in sympy.preorder_traversal(bias):
        check_time()
        if isinstance(e, _SWITCHES):
            places.add(e.args[0])
        elif isinstance(e, (sympy.Min, sympy.Max)):
            places |= {a - b for i, a in enumerate(e.args) for b in e.args[:i]}
        elif isinstance(e, Relational):
            places.add(e.lhs - e.rhs)
    return {g for g in places if g.has(n)}


def _edges(g: Expr) -> list[int]:
    """The integers at which the sign of a function of n may change."""
    g = door.expand(g)
    slope, constant = g.coeff(n, 1), g.coeff(n, 0)
    if slope.has(n) or constant.has(n) or door.expand(g - slope * n - constant) != 0:
        return _changes(g)
    if decided_sign(slope) == 0:
        return []
    zero = -constant / slope
    try:
        low = compile_ball(sympy.floor(zero, evaluate=False))({})
    except Undefined:
        raise Unrecognised(f"the zero of {_shown(g)} is not located") from None
    return [e for e in (int(low.p), int(low.p) + 1) if e > 0]


def _changes(g: Expr) -> list[int]:
    """The integers at which the sign of a curved function changes, all before a proved X."""
    if g.has(Lookup) or _switches(g):
        raise Unrecognised(f"the sign of {_shown(g)} is not followed")
    for step in g.atoms(sympy.floor):  # a floor(f) + b: floor(f) < k where f < k
        scale, constant = g.coeff(step, 1), g.coeff(step, 0)
        if scale.is_Rational and constant.is_Rational and g == scale * step + constant:
            height = -constant / scale
            ends = {sympy.ceiling(height), sympy.floor(height) + 1}
            return sorted({e for k in ends for e in _edges(step.args[0] - k)})
    settled, way = _settled(g)
    if not way:
        raise Unrecognised(f"the sign of {_shown(g)} is not proved at all large n")
    side = compile_ball(sympy.sign(g, evaluate=False))

    def sign_at(i: int) -> int:
        try:
            return int(side({n: fmpq(i)}).p)
        except Undefined:  # as where 5 sqrt(2 n) is n/10
            value = g.xreplace({n: sympy.Integer(i)})
            infinite = value in (S.ComplexInfinity, S.NaN)  # as log(n) at 0
            return 0 if infinite else decided_sign(value)

    signs = list(map(sign_at, range(settled + 1)))
    return [i for i in range(1, settled + 1) if signs[i] != signs[i - 1]]


def _settled(g: Expr, start: int = 0) -> tuple[int, int]:
    """A distance of at least `start` from which on a function keeps its sign, and the sign; 0 where
    none is proved."""
    for at in SETTLED:
        with contextlib.suppress(Unrecognised, Undefined, ArithmeticError):
            if way := sign_from(g, max(at, start)):
                return max(at, start), way
    return start, 0


def _table_ends(bias: Expr) -> list[int]:
    """Where the tables end; beyond it their tail holds."""
    tables = bias.atoms(Lookup)
    if any(t.args[0] != n for t in tables):
        raise Unrecognised("a table at another place than n")
    return [len(t.args[1].args) for t in tables]


class _At:
    """How choices are taken at one distance, and on the stretch that begins there."""

    def __init__(self, env: dict[Symbol, fmpq]) -> None:
        self.env = env

    def sign(self, e: Expr) -> int:
        """The sign of e."""
        return int(compile_ball(sympy.sign(e, evaluate=False))(self.env).p)

    def difference(self, x: Expr, y: Expr) -> int:
        """The sign of x - y."""
        return self.sign(x - y)


def _settle(e: Expr, at: int) -> Expr:
    """The formula on the stretch that begins at `at`, its branches chosen there; a branch that
    hangs on other branches is left, with those chosen."""
    check_time()
    if not e.has(n):
        return e
    env = {n: fmpq(at)}
    pieces = e.args if isinstance(e, sympy.Piecewise) else ()
    asks = [c.lhs - c.rhs for _, held in pieces for c in held.atoms(Relational)] or e.args
    plain = not any(map(_switches, asks))
    try:
        if isinstance(e, sympy.Piecewise) and plain:
            for value, condition in e.args:
                if compile_ball(condition)(env):
                    return _settle(value, at)
            raise InputError(f"no piece of the formula applies at n = {at}")
        if isinstance(e, Lookup):
            return e if at < len(e.args[1].args) else e.args[2]
        if isinstance(e, _CHOICES) and plain:
            record = record_of(e.func)
            assert record is not None and record.branch is not None
            return record.branch(_At(env), *(_settle(a, at) for a in e.args))
    except Undefined:
        return e
    args = [_settle(a, at) for a in e.args]
    if isinstance(e, (sympy.Min, sympy.Max)) and not any(a.is_infinite for a in args):
        return rebuilt(e.func, tuple(args))  # SymPy compares them one by one
    return e if args == list(e.args) else e.func(*args)
