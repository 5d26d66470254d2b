"""The branches of a program that is traced: on which distances each comparison has which answer.

A path is a set of distances, an interval with residue classes. Where a comparison is true on a part
of them only, the path keeps the part with the smallest distance. The others wait for a run of their
own. The set is the condition of the path, and a path without a distance never starts.

Beside each expression goes the program's own value: every operation is written on a tape, which is
played at single distances in the program's own arithmetic. The expression says where an answer can
change; the tape says whether it does, so that a rounded edge is where the program has it.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy
from sympy import Basic, Expr, S

from farfield.theory.answers.notation import listed
from farfield.theory.functions.nodes import n
from farfield.theory.relations import BY_SYMBOL, OrderRelation

PATHS, OPERATIONS, PERIOD, SHORT = 64, 10_000, 1 << 14, 512
PROBED = 2**20
"""The distance up to which a program's own value is looked at."""
FAR = 2**62
SYMBOLS = {"key": "the positions", "batch": "the batch", "head": "the head", "score": "the score"}
ROUNDING = (sympy.floor, sympy.ceiling)


MARK = "__traced__"
"""A name in the globals of a program that is followed: its path."""


class NotTraced(BaseException):
    """A program has no formula here. It passes every `except Exception` of the program, and the
    path keeps it where the program catches everything."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        if (frame := program_frame()) is not None:
            frame.f_globals[MARK].refusal = self


def program_frame() -> types.FrameType | None:
    """The frame of the program that is running."""
    frame: types.FrameType | None = sys._getframe()
    while frame is not None and MARK not in frame.f_globals:
        frame = frame.f_back
    return frame


@dataclass(frozen=True)
class Domain:
    """The distances low <= n <= high (all from low where high is None) in some residue classes."""

    low: int = 0
    high: int | None = None
    period: int = 1
    residues: frozenset[int] = frozenset({0})

    def has(self, k: int) -> bool:
        inside = self.low <= k and (self.high is None or k <= self.high)
        return inside and k % self.period in self.residues

    def first(self) -> int | None:
        """Its smallest distance, None where it has none."""
        near = range(self.low, self.low + self.period)
        return next((k for k in near if self.has(k)), None)

    def lifted(self, period: int) -> list[int]:
        """Its residues modulo a multiple of its period."""
        return [r for r in range(period) if r % self.period in self.residues]

    def condition(self) -> Basic:
        """The same as a condition on n."""
        ends = ([n >= self.low] if self.low else []) + (
            [] if self.high is None else [n < self.high + 1]
        )
        if self.period == 1:
            return sympy.And(*ends)
        inside, outside = self.residues, frozenset(range(self.period)) - self.residues
        few = min(_runs(inside), _runs(outside), key=len)
        classes = sympy.Or(*(self._between(*run) for run in few))
        return sympy.And(*ends, classes if few == _runs(inside) else sympy.Not(classes))

    def _between(self, low: int, high: int) -> Basic:
        """Residues from low to high."""
        rest = sympy.Mod(n, self.period)
        if low == high:
            return sympy.Eq(rest, low)
        below = rest < high + 1 if high + 1 < self.period else S.true
        return sympy.And(rest >= low if low else S.true, below)


@dataclass(frozen=True)
class Slot:
    """A value of the program: where it stands on the tape."""

    at: int


class Raised:
    """What the program raises there instead of a value."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class Path:
    """One run: the distances that it is about, those it leaves to other runs, and its tape.

    Args:
        domain: the distances.
        splits: how often each line of the program has split a path, in all runs.
        line: the program's current line.
        binary: whether a constant is its binary value, not what its digits read.
    """

    def __init__(
        self, domain: Domain, splits: Counter[int], line: Callable[[], int], binary: bool
    ) -> None:
        self.domain, self.splits, self.line, self.binary = domain, splits, line, binary
        self.waiting: list[Domain] = []
        self.refusal: NotTraced | None = None
        self.asks = ""  # what it asked of an argument and a number does not have
        self.tape: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self.played: dict[int, list[Any]] = {}

    # -- the tape ---------------------------------------------------------------------------------

    def written(self, call: Callable[..., Any], *args: Any) -> Slot:
        """Put an operation on the tape; arguments are values or slots."""
        if len(self.tape) >= OPERATIONS:
            raise NotTraced(f"more than {OPERATIONS:,} operations")
        self.tape.append((call, args))
        return Slot(len(self.tape) - 1)

    def value(self, slot: Slot, k: int) -> Any:
        """The program's own value at a distance."""
        column = self.played.setdefault(k, [])
        with np.errstate(all="ignore"):
            while len(column) <= slot.at:
                call, args = self.tape[len(column)]
                given = [column[a.at] if isinstance(a, Slot) else a for a in args]
                bad = next((a for a in given if isinstance(a, Raised)), None)
                try:
                    column.append(bad or (k if call is _distance else call(*given)))
                except (ArithmeticError, ValueError, LookupError) as error:
                    column.append(Raised(error))
        return column[slot.at]

    def distance(self) -> Slot:
        return self.written(_distance)

    # -- what a comparison is on this path --------------------------------------------------------

    def keep(self, mine: Domain, other: Domain) -> None:
        self.domain = mine
        if other.first() is not None:
            self.waiting.append(other)
            self.splits[self.line()] += 1

    def decide(self, relation: OrderRelation, difference: Expr, left: Slot, right: Slot) -> bool:
        """Whether a relation holds, on the part of the distances that is kept.

        Args:
            relation: of two values of the program.
            difference: left less right, whose sign says where the answer may change.
            left: the value whose comparison with the other is the program's own answer.
            right: the other.

        Raises:
            NotTraced: the places where the answer changes are not known.
        """
        others = difference.free_symbols - {n}
        if others:
            return self._of_others(relation, difference, others)
        test = self.written(relation.holds, left, right)
        first = self.start()
        answer = self.answer(test, first)
        difference = sympy.expand(difference)
        if not difference.has(n):
            inside = [k for k in powers(PROBED) if self.domain.has(k)]
            if any(self.answer(test, k) != answer for k in inside):
                raise NotTraced("rounding decides a comparison of equal numbers")
            return answer
        if (period := _period(difference)) is not None:
            return self._by_residues(test, answer, period)
        if relation.symbol in ("==", "!=") and not difference.is_polynomial(n):
            apart = any(self.decide(BY_SYMBOL[s], difference, left, right) for s in "<>")
            return apart == (relation.symbol == "!=")
        edge = self._edge(difference, test, answer, first)
        if edge is not None:
            self.keep(
                dataclasses.replace(self.domain, high=edge - 1),
                dataclasses.replace(self.domain, low=edge),
            )
        return answer

    def _of_others(self, relation: OrderRelation, e: Expr, others: set[sympy.Symbol]) -> bool:
        """A comparison that depends on more than the distance: by its assumptions."""
        unlike = {
            -1: e.is_extended_nonnegative,
            0: e.is_zero is False,
            1: e.is_extended_nonpositive,
        }
        held = {sign in relation.signs for sign, excluded in unlike.items() if not excluded}
        if len(held) > 1:
            names = listed([SYMBOLS.get(s.name, s.name) for s in others])
            raise NotTraced(f"a branch on {names}")
        return held.pop()

    def start(self) -> int:
        first = self.domain.first()
        assert first is not None
        return first

    def answer(self, test: Slot, k: int) -> bool:
        """The program's own answer at a distance."""
        value = self.value(test, k)
        if isinstance(value, Raised):
            raise NotTraced(f"it raises {_said(value.error)} at distance {k}")
        return bool(value)

    def _by_residues(self, test: Slot, answer: bool, period: int) -> bool:
        """A comparison of remainders alone: the classes on which it has the same answer."""
        whole = math.lcm(period, self.domain.period)
        if whole > PERIOD:
            raise NotTraced(f"remainders of a period of {whole}")
        lifted = self.domain.lifted(whole)
        same = set()
        for r in lifted:
            places = [k for k in _multiples(r, whole) if self.domain.has(k)]
            answers = {self.answer(test, k) for k in places}
            if len(answers) > 1:
                raise NotTraced("rounding changes a remainder")
            if answers in ({answer}, set()):
                same.add(r)
        if len(same) < len(lifted):
            of = dataclasses.replace(self.domain, period=whole)
            self.keep(
                dataclasses.replace(of, residues=frozenset(same)),
                dataclasses.replace(of, residues=frozenset(lifted) - same),
            )
        return answer

    def _edge(self, difference: Expr, test: Slot, answer: bool, first: int) -> int | None:
        """The first distance at which the program's answer changes, None where it never does."""
        high = self.domain.high
        roots = _roots(difference)
        way = None if roots is not None else direction(difference)
        if roots is None and way is None:
            if high is None or high - first > SHORT:
                raise NotTraced(f"a branch whose edges are not known, on {difference}")
            places = {*range(first, high), high}
        else:
            end = PROBED if high is None else min(high, PROBED)
            near = [r + s for r in roots or () for s in range(-2, 3)]
            last = [FAR] if high is None else [high - 1, high]
            places = {*powers(end), first, first + 1, *near, *last}
        inside = sorted(k for k in places if k >= first and self.domain.has(k))
        for before, after in itertools.pairwise([first, *inside]):
            if self.answer(test, after) != answer:
                return self._bisected(test, answer, before, after)
        if way is not None and high is None and not _settled(difference, way):
            raise NotTraced(f"a branch whose edges are not known, on {difference}")
        return None

    def _bisected(self, test: Slot, answer: bool, low: int, high: int) -> int:
        """Between two distances with unlike answers, the first with the other one."""
        while high - low > 1:
            middle = (low + high) // 2
            if self.answer(test, middle) == answer:
                low = middle
            else:
                high = middle
        return high


def _distance() -> None:
    """Stands on the tape for the distance itself."""


def _said(error: Exception) -> str:
    return f"{type(error).__name__}{f' ({error})' if str(error) else ''}"


def _runs(residues: frozenset[int]) -> list[tuple[int, int]]:
    """Residues that follow one another, each run by its ends."""
    ordered = sorted(residues)
    ends = [k for k in ordered if k + 1 not in residues]
    return list(zip((k for k in ordered if k - 1 not in residues), ends, strict=True))


def powers(last: int) -> Iterator[int]:
    """1, 2, 4, ... with their neighbours."""
    for j in range(last.bit_length() + 1):
        yield from (k for k in (2**j - 1, 2**j, 2**j + 1) if k <= last)


def _multiples(residue: int, period: int) -> Iterator[int]:
    """Distances of a class, near and far."""
    far = PROBED // period
    for m in (*range(4), *powers(far)) if period <= SHORT else (0, 1, far):
        yield residue + period * m


def _roots(e: Expr) -> list[int] | None:
    """The integers beside the real roots of a polynomial; None where it is none."""
    if not e.is_polynomial(n):
        return None
    polynomial = sympy.Poly(e, n)
    if not all(c.is_Rational for c in polynomial.coeffs()):
        return None
    ends = [end for root, _ in polynomial.intervals(eps=sympy.Rational(1, 4)) for end in root]
    return sorted({int(f(end)) for end in ends for f in ROUNDING})


def direction(e: Expr) -> int | None:
    """1 where no term falls with the distance, -1 where none rises, None where that is not seen."""
    x, ways = sympy.Symbol("x", positive=True), set()
    for term in (t for t in sympy.Add.make_args(e) if t.has(n)):
        factor, rest = term.as_independent(n, as_Add=False)
        inner = (rest.args[0] if isinstance(rest, ROUNDING) else rest).xreplace({n: x})
        poles = (p for p in inner.atoms(sympy.Pow) if p.exp.is_negative is not False)
        if inner.has(*ROUNDING, sympy.Mod, sympy.Abs, sympy.Piecewise) or any(
            not p.base.is_positive for p in poles
        ):
            return None
        slope = factor * sympy.diff(inner, x)
        ways.add(1 if slope.is_nonnegative else -1 if slope.is_nonpositive else None)
    return ways.pop() if len(ways) == 1 else None


def _settled(e: Expr, way: int) -> bool:
    """Whether what never turns round has, far out, the sign that it keeps."""
    far = e.xreplace({n: sympy.Float(FAR, 400)}).evalf(30)  # SymPy would write out 2^FAR
    sign = 1 if far.is_positive else -1 if far.is_negative else 0
    if sign == way:
        return True
    return not e.has(*ROUNDING) and sympy.sign(sympy.limit(e, n, S.Infinity)) in (sign, 0)


def _period(e: Expr) -> int | None:
    """The period of an expression that depends on the distance through remainders only."""
    rests = e.atoms(sympy.Mod)
    inside = [(m.args[0], m.args[1]) for m in rests]
    inside += [(f.args[0], S.One) for m in rests for f in m.atoms(*ROUNDING)]
    steps = [sympy.diff(_smooth(a), n) / b for a, b in inside]
    outside = e.xreplace({m: sympy.Dummy() for m in rests})
    if not rests or outside.has(n) or not all(s.is_Rational for s in steps):
        return None
    return math.lcm(*(int(s.q) for s in steps))


def _smooth(e: Expr) -> Expr:
    """An expression without its roundings."""
    return e.replace(lambda part: isinstance(part, ROUNDING), lambda part: part.args[0])
