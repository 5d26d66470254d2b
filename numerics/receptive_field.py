r"""The theoretical receptive field: how many of the nearest keys hold all but eps of B.

    TRF(eps) = min { j >= 0 : T_j < eps B }                                     [Q, Eq. 22]
    finite-row TRF(eps, N) = min { j : B_N - B_j < eps B_N }                    (ours)

`T_j` falls as j grows, so an integer j is the answer as soon as balls prove `T_j < eps B` and
`T_{j-1} >= eps B`. The search between is free to guess: Newton's method on `log T` against j and
against `log j`, in turns, with bisection. It begins at a low precision, which tells magnitudes
apart. An answer beyond 10^18 is a magnitude, not a count: its logarithm is enclosed by the same
comparisons, unless all digits are asked for. An exact tie `T_j = eps B` cannot be seen by balls. It
is settled exactly for rational terms and for geometric series, otherwise the answer is a bracket.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from itertools import islice
from typing import Any, overload

import numpy as np
import sympy
from flint import arb, ctx, fmpq
from sympy import Expr

from farfield.numerics.heads import (
    Fields,
    Unsummed,
    decisive,
    per_head,
    reason_of,
    resolve,
    row_of,
    summed,
    unknown,
)
from farfield.numerics.outcomes import Unrecognised
from farfield.numerics.search import at_precision, crossing, decide, doubled, narrowed
from farfield.numerics.shown import FINITE_ROW, Cases, HeadAnswer
from farfield.numerics.summation.families import Geometric
from farfield.numerics.summation.normal_form import sign
from farfield.numerics.summation.series import Series
from farfield.theory.algebra.budget import until
from farfield.theory.algebra.exceptions import OutOfTime, Undecided, Unreachable
from farfield.theory.answers.answer import (
    Code,
    InputError,
    Label,
    Reason,
    Result,
    Status,
)
from farfield.theory.answers.blocks import Block, Formula, facts, sentence, table
from farfield.theory.answers.notation import shortened, words
from farfield.theory.answers.number import (
    inside,
    integer,
    listed,
    plural,
    seconds,
    share,
)
from farfield.theory.answers.number import tokens as tokens_text
from farfield.theory.convergence import Verdict, check_convergence
from farfield.theory.functions.balls import Ball, Undefined, precision, rational, to_arb
from farfield.theory.values import tabulate

EXTRA_BITS = 256  # beyond those that j asks for, before a comparison counts as a tie
COUNTED = 10**18  # the largest answer that is counted exactly without being asked to
FINE = 10**9  # one part in this many is how finely a larger answer is enclosed
MAX_EPS_BITS = 4_096  # of the denominator of eps
MAX_LOG_BITS = 128  # of log TRF, beyond which a lower bound is all that is told
MAX_STEPS = 80  # doublings, and halvings, of a bracket
MAX_FLOAT_LENGTH = 2 * 10**7  # keys of a row that is summed in floats


@dataclass(frozen=True)
class Exact:
    """The integer itself, certified by two ball comparisons."""

    tokens: int

    def text(self) -> str:
        """As a reader sees it."""
        return tokens_text(self.tokens)

    def logs(self) -> tuple[float, float]:
        """Lower and upper bound of log(1 + tokens), to order the heads."""
        return (math.log(1 + self.tokens),) * 2


@dataclass(frozen=True)
class Enclosure:
    """The logarithm of an integer beyond counting lies in [low, high]."""

    low: float
    high: float

    def text(self) -> str:
        """As a reader sees it."""
        return f"between exp({self.low!r}) and exp({self.high!r}) tokens"

    def logs(self) -> tuple[float, float]:
        """Lower and upper bound of log(1 + tokens)."""
        return self.low, self.high

    def span(self) -> tuple[float, float]:
        """Floats around it."""
        return min(_exp(self.low), sys.float_info.max), _exp(self.high)


@dataclass(frozen=True)
class Bracket:
    """The integer lies in [low, high]; `high` is None where no upper bound was reached."""

    low: int
    high: int | None

    def text(self) -> str:
        """As a reader sees it."""
        if self.high is None:
            return f"at least {tokens_text(self.low)}"
        return f"between {integer(self.low)} and {tokens_text(self.high)}"

    def span(self) -> tuple[float, float]:
        """Its ends."""
        return self.low, math.inf if self.high is None else self.high

    def logs(self) -> tuple[float, float]:
        """Lower and upper bound of log(1 + tokens)."""
        return math.log(1 + self.low), math.inf if self.high is None else math.log(1 + self.high)


Value = Exact | Enclosure | Bracket


@dataclass(frozen=True, repr=False)
class ReceptiveField(HeadAnswer):
    """A theoretical receptive field.

    Fields:
        formula: the bias, None where several heads are aggregated.
        eps: the share of the mass that is left out, exact.
        length: keys in the row for the finite-row TRF, None for the whole series.
        tokens: the integer, the worst head's; infinite where the series diverges; None where only
            an enclosure is known, or nothing.
        answer: `Exact`, `Enclosure` or `Bracket`; None where there is none.
        total: B (of the row, if `length` is given) as a ball.
        verdict: facts on the exp-series; of a finite row, None.
        heads: one answer a head where there are several; the worst speaks for all.
        asymptotics: TRF(eps) as eps -> 0, in LaTeX, where it is known.
        label: `certified`; `theorem` for a series that diverges; `approximate` where only float64
            sums were in reach.
    """

    VALUE = "tokens"

    eps: sympy.Rational
    length: int | None = None
    tokens: float | None = None
    answer: Value | None = None
    total: Any = field(default=None, compare=False)
    verdict: Verdict | None = None
    asymptotics: str | None = None

    def span(self) -> tuple[Any, Any] | None:
        if self.tokens is not None or self.answer is None or isinstance(self.answer, Exact):
            return super().span()
        return self.answer.span()

    def head_text(self) -> str:
        return self.value_text().removesuffix(" tokens")

    def value_text(self) -> str:
        """The tokens, or bounds of them."""
        return tokens_text(self.tokens) if self.answer is None else self.answer.text()

    def _cases(self) -> Cases:
        return (
            (
                self.status is Status.ENCLOSED,
                "the number of nearest tokens that hold all but {eps} of the mass{of} lies "
                "{count}{worst}.",
            ),
            (
                self.status is Status.INFINITE,
                "no number of nearest tokens holds all but {eps} of the mass{worst}, since the "
                "series diverges.",
            ),
            (
                self.status is Status.UNKNOWN,
                "how many of the nearest tokens hold all but {eps} of the mass{of} is not "
                "known{worst}.",
            ),
            (
                self.tokens == 1,
                "the nearest token alone holds all but {eps} of the mass{of}{worst}.",
            ),
            (True, "the nearest {tokens} hold all but {eps} of the mass{of}{worst}."),
        )

    def _values(self) -> dict[str, Any]:
        worst = "the widest head"
        if self.status in (Status.INFINITE, Status.UNKNOWN):
            alike = sum(h.status is self.status for h in self.heads)
            worst = f"{alike} of {plural(len(self.heads), 'head')}"
        return {
            "eps": share(self.eps),
            "of": "" if self.length is None else f" of a row of {plural(self.length, 'key')}",
            "worst": self.among(worst),
            "tokens": self.value_text(),
            "count": self.head_text(),
        }

    def _facts(self) -> dict[str, Any]:
        return {
            "tokens": f"TRF({shortened(str(self.eps), 40)}) = {self.value_text()}",
            "sum": self.sum_text(),
        } | super()._facts()

    def sum_text(self) -> str | None:
        """B, as a reader sees it; None where it is not known."""
        if self.total is None or isinstance(self.total, fmpq):
            return None if self.total is None else f"B = {self.total}"
        return "B = " + self.total.str(20).strip("[]").replace("+/-", "±")


@dataclass(frozen=True, repr=False)
class ReceptiveFields(Result):
    """The receptive fields of one bias, by the share of the mass that is left out.

    Fields:
        each: an answer a share; not out of scope.
    """

    each: tuple[ReceptiveField, ...]

    @property
    def status(self) -> Status:
        """Unknown where one of them is."""
        statuses = [f.status for f in self.each]
        return Status.UNKNOWN if Status.UNKNOWN in statuses else statuses[0]

    def _blocks(self) -> Iterator[Block]:
        first, last, alike = self.each[0], self.each[-1], self.status is Status.INFINITE
        shares = [share(f.eps) for f in self.each]
        yield first.first(eps=listed(shares) if alike else shares[0])
        finite = [f.finite for f in self.each if f.finite is not None]
        if finite:
            template = "In a row of {n}, {tokens} tokens hold all but {shares} of the mass."
            yield sentence(
                template,
                finite[0].label,
                n=plural(FINITE_ROW, "key"),
                tokens=listed([f.head_text() for f in finite]),
                shares=listed([share(f.eps) for f in finite]),
            )
        if first.formula is not None:
            yield Formula(words("`p(n)`"), first.formula)
        if not alike:
            names = ("mass left out", "tokens", "by head")[: 3 if first.heads else 2]
            cells = [(f.head_text(), f.by_head()) for f in self.each]
            rows = [(left, *c)[: len(names)] for left, c in zip(shares, cells, strict=True)]
            yield table(names, rows, numeric=(1,))
        why = "; ".join(dict.fromkeys(str(f.reason) for f in self.each if f.reason))
        yield facts(sum=last.sum_text(), why=why or None)


def _exp(power: float) -> float:
    """exp in floats, infinite where it overflows."""
    return math.exp(power) if power < 700 else math.inf


Eps = str | int | float | Fraction


@overload
def theoretical_receptive_field(
    f: Any,
    eps: Eps,
    *,
    length: Any = None,
    exact: bool = False,
    budget_s: float = 60.0,
    **values: Any,
) -> ReceptiveField: ...


@overload
def theoretical_receptive_field(
    f: Any,
    eps: Sequence[Eps],
    *,
    length: Any = None,
    exact: bool = False,
    budget_s: float = 60.0,
    **values: Any,
) -> tuple[ReceptiveField, ...]: ...


def theoretical_receptive_field(
    f: Any,
    eps: Eps | Sequence[Eps],
    *,
    length: Any = None,
    exact: bool = False,
    budget_s: float = 60.0,
    **values: Any,
) -> ReceptiveField | tuple[ReceptiveField, ...]:
    """The theoretical receptive field of a bias (equation 22 of [Q]): an exact integer up to 10^18.

    Args:
        f: a formula in `n`, a SymPy expression, a name of the catalogue or an `Encoding`.
        eps: the share of the mass left out, 0 < eps < 1, read exactly; or a sequence of them.
        length: a number of keys, for the finite-row TRF, which exists for divergent series too.
        exact: all digits of an answer beyond 10^18, whose logarithm is enclosed otherwise.
        budget_s: seconds after which the best bracket is returned.
        **values: parameters and options, as `farfield.theory.encodings.encoding` takes them.

    Returns:
        A `ReceptiveField`; a tuple of them where `eps` is a sequence.

    Raises:
        InputError: eps outside (0, 1); free parameters; terms that are undefined or infinite.

    >>> theoretical_receptive_field("-2*log(1+n)", "0.01").tokens
    61
    >>> theoretical_receptive_field("alibi", "1/10").tokens
    590
    >>> theoretical_receptive_field("-log(1+n)", "1/10").tokens
    inf
    >>> theoretical_receptive_field("-log(1+n)", "1/10", length=1000).tokens
    473
    >>> theoretical_receptive_field("-1.1*log(1+n)", "1/100").answer.text()
    'between exp(45.483694810...) and exp(45.483694811...) tokens'
    >>> theoretical_receptive_field("-1.1*log(1+n)", "1/100", exact=True).tokens
    56665362706717150414
    """
    subject = resolve(f, values)
    row = row_of(length, subject)
    if not isinstance(exact, bool):
        raise InputError(f"exact {str(exact)[:40]} is neither True nor False")
    single = isinstance(eps, str) or not isinstance(eps, Iterable) or getattr(eps, "ndim", 1) == 0
    each: Iterable[Any] = (eps,) if single else eps  # type: ignore[assignment]
    grid = tuple(map(_eps, each))
    asked = _Request(row, exact, time.monotonic() + seconds(budget_s))

    @cache
    def compared(bias: Expr) -> _Comparison | Unsummed:
        try:
            return _Comparison(summed(bias, row))
        except Unsummed as why:
            return why

    @cache
    def in_row(size: int) -> tuple[ReceptiveField, ...]:
        return theoretical_receptive_field(subject, list(grid), length=size)

    def of(eps: sympy.Rational) -> ReceptiveField:
        def ask(bias: Expr) -> Fields:
            comparison = compared(bias)
            if isinstance(comparison, _Comparison):
                return _solved(comparison, bias, eps, asked)
            if comparison.reason.code is Code.NO_ENCLOSURE:
                return unknown(comparison.reason) | {"verdict": Verdict.CONVERGES}
            raise comparison

        blank = ReceptiveField(None, eps, row, verdict=Verdict.UNDECIDED if row is None else None)
        whole = per_head(
            subject,
            blank,
            ask,
            decisive(log_size),
            divergent=divergent,
            in_row=(lambda size: in_row(size)[grid.index(eps)]) if row is None else None,
        )
        if whole.status is Status.OUT_OF_SCOPE:
            return replace(whole, verdict=check_convergence(subject).verdict)
        return _raised(whole)

    divergent = {
        "tokens": math.inf,
        "verdict": Verdict.DIVERGES,
        "status": Status.INFINITE,
        "label": Label.THEOREM,
    }
    with until(asked.deadline):
        results = tuple(map(of, grid))
    return results[0] if single else results


@dataclass(frozen=True)
class _Request:
    """The options beside the shares: keys of the row, all digits or not, and until when."""

    length: int | None
    exact: bool
    deadline: float


def _eps(value: object) -> sympy.Rational:
    """An exact eps in (0, 1), its denominator bounded."""
    eps = inside(value, "eps", "(0, 1)")
    if int(eps.q).bit_length() > MAX_EPS_BITS:
        raise InputError(f"eps has a denominator of more than {MAX_EPS_BITS} bits")
    return eps


def _raised(whole: ReceptiveField) -> ReceptiveField:
    """A bracket rises to what another head is known to have; floats of one head mark them all."""
    counts = [h.answer.tokens for h in whole.heads if isinstance(h.answer, Exact)]
    if isinstance(whole.answer, Bracket):
        low = max([whole.answer.low, *counts])
        whole = replace(whole, answer=Bracket(low, whole.answer.high))
    if whole.label is not None and any(h.label is Label.APPROXIMATE for h in whole.heads):
        whole = replace(whole, label=Label.APPROXIMATE)
    return whole


def log_size(head: ReceptiveField) -> float:
    """An upper bound of log(1 + tokens), by which heads are ordered."""
    return math.inf if head.answer is None else head.answer.logs()[1]


def _solved(compare: _Comparison, bias: Expr, eps: sympy.Rational, asked: _Request) -> Fields:
    """The search by balls; a row that cannot be summed by balls is summed in floats."""
    verdict: Fields = {"verdict": Verdict.CONVERGES if asked.length is None else None}
    try:
        at_precision(lambda: compare.total(ctx.prec), compare.series.first_bits)
        answer, reason = _search(compare, eps, asked)
    except Unreachable as why:
        if asked.length is None or isinstance(why, OutOfTime):
            return verdict | unknown(reason_of(why))
        return _by_floats(bias, eps, asked.length, str(why))
    counted = isinstance(answer, Exact)
    return verdict | {
        "tokens": answer.tokens if isinstance(answer, Exact) else None,
        "answer": answer,
        "total": compare.totals[max(compare.totals)],
        "asymptotics": None if asked.length else _asymptotics(compare.series),
        "status": Status.EXACT if counted else Status.ENCLOSED,
        "reason": reason,
    }


def _asymptotics(s: Series) -> str | None:
    """The family's leading behaviour as eps -> 0, where the last stretch decides it."""
    kernel = s.kernel
    if kernel is None or s.support is not None:
        return None
    if isinstance(kernel, Geometric) and len(s.stretches) > 1:
        return None
    try:
        return kernel.asymptotics()
    except (Undecided, Unreachable):  # no closed form, or the answer took the time that there was
        return None


# -- the search -----------------------------------------------------------------------------------


class _Tie(Exception):
    """Balls do not decide T_j < eps B; the argument tells how near they are."""


def bits_for(j: int) -> int:
    """A precision that decides T_j < eps B but for an unlucky eps: terms are about T_j/j."""
    return 64 * (1 + (j.bit_length() + 32) // 64)


@dataclass
class _Comparison:
    """T_j against eps B, last at `at`, where they were `seen`; totals are kept by precision."""

    series: Series
    totals: dict[int, Any] = field(default_factory=dict)
    at: int = 0
    seen: tuple[Any, Any] = (None, None)

    def total(self, bits: int) -> Ball:
        """B at the precision `bits`, which must be at work."""
        if bits not in self.totals:
            self.totals[bits] = self.series.total()
        return self.totals[bits]

    def below(self, j: int, eps: sympy.Rational, coarse: bool = False) -> bool:
        """Whether T_j < eps B, proved; `seen` is then T_j and eps B as they decided it.

        `coarse` tries the first precision alone, or for magnitudes the first two.
        """
        bits = max(bits_for(j), 0 if self.series.last else self.series.first_bits)
        last, near, tail = bits + EXTRA_BITS, "", None
        if coarse:
            bits = min(bits, self.series.first_bits)
            last = bits if j <= COUNTED else 2 * bits

        def decided() -> bool | None:
            nonlocal near, tail
            try:
                goal = rational(eps) * self.total(ctx.prec)
                if not near or not to_arb(goal).contains(to_arb(tail)):
                    tail = self.series.tail(j)  # else a sharper one would decide no more
            except Unreachable as why:
                if not near:
                    raise
                raise _Tie(f"{near}; {why}") from None
            self.seen = tail, goal
            if tail < goal or tail >= goal:
                return bool(tail < goal)
            gap = (abs(to_arb(tail - goal)) / to_arb(goal)).upper().mid()
            near = f"eps B differ by at most {gap.str(2, radius=False)} of them"
            return self._geometric_tie(j, eps)

        self.at = j
        proved = decide(decided, doubled(bits, last))
        if proved is None:
            raise _Tie(f"{near or 'eps B are not enclosed'}, as far as known")
        return proved

    def _geometric_tie(self, j: int, eps: sympy.Rational) -> bool | None:
        """T_j/B = e^{alpha j} exactly, for a geometric series from 0."""
        kernel = self.series.kernel
        if len(self.series.stretches) > 1 or not isinstance(kernel, Geometric):
            return None
        if j.bit_length() > 64:
            return None
        try:
            return sign(kernel.alpha * j - sympy.log(eps)) < 0
        except Unrecognised:
            return None


def _search(
    compare: _Comparison, eps: sympy.Rational, asked: _Request
) -> tuple[Value, Reason | None]:
    """The least j with T_j < eps B; T_0 = B is never below, as eps < 1."""
    s, most, coarse, vast = compare.series, compare.series.max_bits, True, False
    foreseen = _foreseen(compare, eps, most if asked.exact else 60) or [1]
    guesses, low, high = [*foreseen], 0, s.support

    def proved(j: int) -> bool:
        nonlocal coarse
        try:
            below = compare.below(j, eps, coarse)
        except _Tie:
            if not coarse:
                raise
            coarse = False
            return proved(j)
        guesses[:] = _newton(compare)
        return below

    cap = None if asked.exact else COUNTED
    brackets = narrowed(proved, low, high, guesses, first=foreseen[0], cap=cap)
    try:
        for low, high in brackets:
            if time.monotonic() > asked.deadline:
                return Bracket(low + 1, high), Reason(Code.BUDGET, str(OutOfTime()))
            if high is None and low >= COUNTED and not vast:
                if _beyond(s, eps):
                    return _enclosure(s, eps, 1 << most)
                vast = True
            if foreseen[0] in (low, high) or foreseen[0] > COUNTED:
                guesses += foreseen
            if low >= COUNTED and not asked.exact:
                return _magnitude(compare, eps, low, high, guesses, asked.deadline)
            if high is None and low.bit_length() > most:
                return Bracket(low + 1, None), _beyond_reason(most)
    except _Tie as near:
        return _tied(compare, eps, low, high, str(near))
    except Unreachable as why:
        if not low:
            raise
        code = Code.BUDGET if isinstance(why, OutOfTime) else Code.NO_ENCLOSURE
        return Bracket(low + 1, high), Reason(code, str(why))
    assert high is not None
    return Exact(high), None


def _magnitude(
    compare: _Comparison,
    eps: sympy.Rational,
    low: int,
    high: int | None,
    guesses: list[int],
    deadline: float,
) -> tuple[Value, Reason | None]:
    """log TRF for an answer in (low, high], as fine as a low precision and the time allow."""
    most, near = compare.series.max_bits, list[int]()
    reason = Reason(Code.TOO_LARGE, "the answer is beyond 10^18; exact=True (--exact) counts it")

    def proved(j: int) -> bool:
        below = compare.below(j, eps, coarse=True)
        guesses[:] = _newton(compare)
        return below

    brackets = narrowed(proved, low, high, near)
    try:
        for low, high in brackets:
            if high is not None and (high - low) * FINE <= low:
                break
            if time.monotonic() > deadline:
                reason = Reason(Code.BUDGET, str(OutOfTime()))
                break
            if high is None and low.bit_length() > most:
                return Bracket(low + 1, None), _beyond_reason(most)
            near[:] = [g + (1 if g >= low else -1) * (g // (4 * FINE)) for g in guesses]
            if high is not None and guesses and 2 * guesses[-1] > low + high:
                near[:] = [g - g // (2 * FINE) for g in near]
    except (_Tie, Unreachable):
        pass  # as fine as this precision tells
    if high is None:
        return Bracket(low + 1, None), reason
    down, up = math.log(low), math.log(high)
    return Enclosure(math.nextafter(down, 0), math.nextafter(up, math.inf)), reason


def _foreseen(compare: _Comparison, eps: sympy.Rational, most: int) -> list[int]:
    """The kernel's own guess of the answer, and its neighbour; rough beyond `most` bits."""
    s = compare.series

    def goal(bits: int) -> Ball:
        with precision(bits):
            return to_arb(rational(eps) * compare.total(bits))

    if s.kernel is None:
        return []
    try:
        guess = s.kernel.guess_index(goal, most)
    except (Undefined, ZeroDivisionError, Unreachable):
        return []
    return [] if guess is None else [guess, guess - 1]


def _newton(compare: _Comparison) -> list[int]:
    """Where log T, taken as linear in j and as linear in log j, meets the goal."""
    s, j, (tail, goal) = compare.series, compare.at, compare.seen
    with precision(128 + j.bit_length()):
        try:
            density = sum((to_arb(s.term(j + i)) for i in range(s.period)), arb(0)) / s.period
        except Undefined:
            return []
        if not (density > 0 and tail > 0):
            return []
        move = (to_arb(tail) / to_arb(goal)).log() * to_arb(tail) / density
        guesses = []
        for x in (arb(j) + move, arb(j) * (move / max(j, 1)).exp()):
            if x.is_finite() and x > 0 and x < arb(2) ** (2 * s.max_bits):
                guesses.append(int(x.mid().ceil().unique_fmpz()))
        return guesses


def _tied(
    compare: _Comparison, eps: sympy.Rational, low: int, high: int | None, near: str
) -> tuple[Value, Reason | None]:
    """T_j and eps B agree to all digits: both candidates, or the nearest proved ones."""
    j = compare.at
    reason = Reason(Code.TIE, f"T_{j} and {near}: {j} if T_{j} is less, otherwise {j + 1}")
    try:
        if not compare.below(j - 1, eps) and compare.below(j + 1, eps):
            return Bracket(j, j + 1), reason
    except _Tie:
        pass
    below = _decided(compare, eps, low, j, False)
    above = _decided(compare, eps, j, high, True)
    return Bracket(1 + (below or 0), above), Reason(Code.TIE, f"at {j} T_j and {near}")


def _decided(
    compare: _Comparison, eps: sympy.Rational, low: int, high: int | None, want: bool
) -> int | None:
    """By halves, the nearest end of what balls decide: the largest j seen with T_j >= eps B
    (`want` False, from the decided `low` up), or the least with T_j < eps B."""

    def beyond(j: int) -> bool:
        try:
            return compare.below(j, eps)
        except (_Tie, Unreachable):
            return not want

    brackets = narrowed(beyond, low, high)
    for low, high in islice(brackets, MAX_STEPS):
        if high is None and low.bit_length() > compare.series.max_bits:
            return None
    return high if want else low


def _beyond_reason(bits: int) -> Reason:
    return Reason(Code.TOO_LARGE, f"the answer has more than {bits} bits")


def _beyond(s: Series, eps: sympy.Rational) -> bool:
    """Whether the answer is proved to lie beyond 2^max_bits, by int_j^oo <= T_j."""
    kernel = s.kernel
    with precision(256):
        try:
            lower = kernel.integral(arb(2) ** s.max_bits) if kernel is not None else arb(0)
            return bool(lower >= rational(eps) * s.total())
        except Unreachable:
            return False


def _enclosure(s: Series, eps: sympy.Rational, low: int) -> tuple[Value, Reason | None]:
    """log TRF for an answer beyond low = 2^max_bits, from int_j^oo <= T_j <= int_j^oo + b_j."""
    kernel, reason = s.kernel, _beyond_reason(s.max_bits)
    assert kernel is not None
    with precision(256):
        goal = rational(eps) * s.total()

        def side(at: arb) -> int:
            """-1: TRF > e^at is proved; 1: TRF <= e^at + 1; 0: neither."""
            x = at.exp()
            if kernel.integral(x) + kernel.density(x) < goal:
                return 1
            return -1 if kernel.integral(x + 1) >= goal else 0

        near = arb(low).log().mid()
        try:
            ends = crossing(side, near, near, arb(2) ** MAX_LOG_BITS)
        except Unreachable:
            ends = None
        if ends is None:
            return Bracket(low + 1, None), reason
        down, up = (math.nextafter(float(ends[0]), 0), math.nextafter(float(ends[1]), math.inf))
        return Enclosure(down, math.nextafter(up, math.inf)), reason


# -- float64 --------------------------------------------------------------------------------------


def _by_floats(bias: Expr, eps: sympy.Rational, length: int, why: str) -> Fields:
    """The finite-row TRF from float64 sums: labelled approximate, None too near to a threshold."""
    if length > MAX_FLOAT_LENGTH:
        return unknown(Reason(Code.NO_ENCLOSURE, why))
    values = tabulate(bias, np.arange(length)).astype(np.longdouble)
    with np.errstate(over="ignore"):
        weights = np.exp(values)
    if np.isnan(values).any():
        at = int(np.argmax(np.isnan(values)))
        raise InputError(f"the bias is undefined or infinite at n = {at}")
    if not np.isfinite(weights).all():
        return unknown(Reason(Code.NO_ENCLOSURE, why))
    tails = np.append(np.cumsum(weights[::-1])[::-1], 0)
    goal = tails[0] * np.longdouble(eps.p) / np.longdouble(eps.q)
    j = int(np.argmax(tails < goal))
    margin = min(goal - tails[j], tails[j - 1] - goal) / tails[0]
    fields: Fields = {"label": Label.APPROXIMATE}
    if not margin > 1e-11:
        reason = Reason(Code.TIE, "too near to a threshold for float64 sums")
        near = Bracket(max(1, j - 1), j + 1)
        return fields | {"answer": near, "status": Status.ENCLOSED, "reason": reason}
    return fields | {
        "tokens": j,
        "answer": Exact(j),
        "total": arb(float(tails[0]), float(tails[0]) * 1e-9),
        "reason": Reason(Code.NO_ENCLOSURE, f"{why}; float64 sums"),
    }
