"""One question about each head of an encoding, in time; the heads' answers folded into one.

A question asks one bias at a time and gets the fields of an answer: its value, and status, label
and reason where it is no plain number. `per_head` does the rest, in the same way for every
question: it refuses an encoding that is out of scope, out of reach or without a sum, and chooses
the head that speaks for all. The answers show themselves alike: their subject, their first
sentence, the rest.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeVar

from flint import arb
from sympy import Expr

from farfield.numerics.search import Unrecognised
from farfield.numerics.summation.series import Series, exp_series, series
from farfield.theory.algebra.door import check_time, within
from farfield.theory.algebra.exceptions import OutOfTime, Undecided, Unreachable
from farfield.theory.answers.answer import (
    Answer,
    Code,
    InputError,
    Reason,
    Status,
    folded,
    of_each_head,
)
from farfield.theory.answers.blocks import Block, Formula, Sentence, facts
from farfield.theory.answers.errors import MissingValues
from farfield.theory.answers.notation import expression_line, listed, shortened, words
from farfield.theory.answers.number import decimal, natural, plural
from farfield.theory.convergence import Verdict, check_convergence
from farfield.theory.encodings import Encoding, encoding
from farfield.theory.encodings.catalogue import usual_values
from farfield.theory.functions.balls import outward

# -- answers ---------------------------------------------------------------------------------------


Cases = tuple[tuple[object, str], ...]
"""Templates of a sentence, each with whether it holds; the first that does is said."""


def chosen(cases: Cases) -> str:
    """The template that is said."""
    return next(template for holds, template in cases if holds)


def subject_of(answer: Answer) -> str:
    """What was asked about: its name, or the formula of its bias; nothing of given scores."""
    formula = getattr(answer, "formula", None)
    return shortened(answer.subject or ("" if formula is None else expression_line(formula)), 80)


def of_row(length: int | None) -> str:
    """In which row; nothing of the whole series."""
    return "" if length is None else f" in a row of {plural(length, 'key')}"


@dataclass(frozen=True, repr=False)
class BiasAnswer(Answer):
    """An answer about a bias. A subclass says what it found by `_cases`, `_values` and `_facts`.

    Fields:
        formula: the bias, None where several heads are aggregated.
    """

    OUTSIDE: ClassVar[str] = "there is no mass by distance to speak of: {why}."
    """What is said out of scope."""

    formula: Expr | None

    def because(self, code: Code) -> bool:
        """Whether this is the reason."""
        return self.reason is not None and self.reason.code is code

    def _cases(self) -> Cases:
        """What the first sentence may say of its subject."""
        raise NotImplementedError

    def _values(self) -> dict[str, object]:
        """The names in it, beside the subject and the reason."""
        return {}

    def _facts(self) -> dict[str, object]:
        """The named values below it."""
        return {}

    def first(self, **given: object) -> Sentence:
        """The answer in one sentence, for each status, with values given in place of its own."""
        cases = ((self.status is Status.OUT_OF_SCOPE, self.OUTSIDE), *self._cases())
        template = chosen(cases)
        common = {"subject": subject_of(self), "why": str(self.reason)} | self._values() | given
        return Sentence(words("{subject}: " + template, **common), self.label)

    def blocks(self) -> Sequence[Block]:
        if self.status is Status.OUT_OF_SCOPE:
            return [self.first()]
        bias = [] if self.formula is None else [Formula(words("`p(n)`"), self.formula)]
        why = None if self.reason is None else str(self.reason)
        return [self.first(), *bias, facts(**self._facts(), why=why)]


@dataclass(frozen=True, repr=False)
class HeadAnswer(BiasAnswer):
    """An answer about the heads of an encoding; one head speaks for all.

    Fields:
        formula: the bias, None where several heads are aggregated.
        heads: one answer a head where there are several.
        finite: the answer in a row of `FINITE_ROW` keys where the whole series has none; of a
            tabulated bias, in the longest row that was seen.
    """

    heads: tuple[Self, ...] = field(default=(), kw_only=True)
    finite: Self | None = field(default=None, kw_only=True)

    def blocks(self) -> Sequence[Block]:
        first, *others = super().blocks()
        return [first, *([] if self.finite is None else [self.finite.first()]), *others]

    def head_text(self) -> str:
        """The value as it is said among those of other heads."""
        return decimal(getattr(self, self.VALUE))

    def by_head(self) -> str | None:
        """The value of each head where there are several."""
        return listed([head.head_text() for head in self.heads]) or None

    def among(self, which: str) -> str:
        """In which head, where there are several."""
        return f", in {which}" if self.heads else ""

    def _facts(self) -> dict[str, object]:
        return {"by_head": self.by_head()}

    def span(self) -> tuple[float, float] | None:
        ends = super().span()
        return getattr(self, "enclosure", None) if ends is None else ends


FINITE_ROW = 4096
"""Keys of the row that is answered for where the whole series has no answer."""
H = TypeVar("H", bound=HeadAnswer)


# -- questions -------------------------------------------------------------------------------------


BLOCKWISE = Reason(
    Code.BOUNDED_SUPPORT, "blockwise causal attention is not a function of the distance alone"
)
BUDGET_S = 60.0
"""Seconds that a question may take where nothing is said."""

Fields = dict[str, Any]
"""What was found about one bias: fields of an answer, by name."""


class NoCertifiedSum(Unreachable):
    """A series without certified sums; `reason` says why."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason


class Diverging(NoCertifiedSum):
    """The series diverges."""


def resolve(f: object, values: dict[str, Any], row: int | None = None) -> Encoding:
    """The encoding that is meant, with a value for every parameter, for rows of so many keys."""
    subject = encoding(f, **values)
    if subject.free:
        names = [p.name for p in subject.free]
        raise MissingValues(subject.name[:60], names, usual_values(subject.name, names))
    return subject.row(row)


def row_of(length: object, what: str = "length") -> int | None:
    """Keys of the row that is asked about; None: the whole series."""
    return None if length is None else natural(length, what)


def out_of_reach(subject: Encoding) -> Reason | None:
    """Why no mass by distance belongs to an encoding; None where one does."""
    if subject.bca is not None:
        seen = f"every row sees at most {plural(2 * subject.bca, 'key')}"
        return Reason(BLOCKWISE.code, f"{BLOCKWISE}; {seen}")
    return None if subject.biases else subject.out_of_scope


# -- the sums of one head -------------------------------------------------------------------------


def obstacle(s: Series) -> Reason | None:
    """Why a series has no certified sums, None where it has: it diverges (`DIVERGES`), converges
    with no enclosure (`NO_ENCLOSURE`), or is not decided (`UNDECIDED`).

    Raises:
        OutOfTime: it is not decided, and the time is spent.
    """
    if s.converges:
        return None
    verdict = check_convergence(s.bias).verdict if s.converges is None else Verdict.DIVERGES
    if verdict is Verdict.DIVERGES:
        return Reason(
            Code.DIVERGES,
            "the exp-series diverges: no finite number of keys holds a share of its mass",
        )
    if verdict is Verdict.CONVERGES:
        reason = f"the exp-series converges, but has no certified sum yet: {s.gap}"
        return Reason(Code.NO_ENCLOSURE, reason)
    check_time()  # a verdict that had no time says nothing
    return Reason(Code.UNDECIDED, f"the exp-series is {verdict.replace('_', ' ')}")


def diverges(bias: Expr) -> bool:
    """Whether the series of a bias is proved to diverge, for the sums that are reported."""
    with contextlib.suppress(InputError):  # not real for large n: its terms will say where
        return check_convergence(bias).verdict is Verdict.DIVERGES
    return False


def summed(bias: Expr, length: int | None = None, *, masked: bool = False) -> Series:
    """The sums of a bias, of a row of `length` keys if that is given.

    Args:
        bias: without free parameters.
        length: keys of the row; None for the whole series.
        masked: whether the query's own key may have no weight.

    Raises:
        Diverging: the whole series diverges.
        NoCertifiedSum: it has no certified sums.
    """
    s = exp_series(bias, diverges) if masked else series(bias, diverges)
    if length is not None:
        return s.truncated(length)
    if reason := obstacle(s):
        raise (Diverging if reason.code is Code.DIVERGES else NoCertifiedSum)(reason)
    return s


# -- what is found --------------------------------------------------------------------------------


def reason_of(why: Exception) -> Reason:
    """Why a number is not known: the time was spent, no sum encloses it, no rule decides."""
    if isinstance(why, NoCertifiedSum):
        return why.reason
    if isinstance(why, Unreachable):
        return Reason(Code.BUDGET if isinstance(why, OutOfTime) else Code.NO_ENCLOSURE, str(why))
    return Reason(Code.UNDECIDED, str(why))


def refused(reason: Reason) -> Fields:
    """No answer: the question does not concern the bias, or nobody has seen so much of it."""
    beyond = reason.code is Code.BEYOND_SEEN
    status = Status.UNKNOWN if beyond else Status.OUT_OF_SCOPE
    return {"status": status, "label": None, "reason": reason}


def unknown(reason: Reason | None) -> Fields:
    """Nothing, for a reason."""
    return {"status": Status.UNKNOWN, "label": None, "reason": reason}


def numeric(ball: arb, least: float = -math.inf, most: float = math.inf) -> Fields:
    """A number between two bounds, with floats around it; those alone where its ball is wide."""
    low, high = outward(ball)
    fields: Fields = {"enclosure": (max(least, low), min(most, high))}
    if ball.rel_accuracy_bits() > 20 or ball.rad() < 1e-12:
        return fields | {"value": float(ball.mid())}
    reason = Reason(Code.NO_ENCLOSURE, "the sums are enclosed no further")
    return fields | {"status": Status.ENCLOSED, "reason": reason}


def per_head(
    subject: Encoding,
    blank: H,
    ask: Callable[[Expr], Fields],
    fold: Callable[[tuple[H, ...]], H],
    *,
    divergent: Fields | None = None,
    outside: Callable[[Encoding], Reason | None] = out_of_reach,
    in_row: Callable[[int], H] | None = None,
    budget_s: object = BUDGET_S,
) -> H:
    """The answer about an encoding: its only head's, else one that speaks for all heads.

    Args:
        subject: with a value for every parameter.
        blank: the answer with its question and no value.
        ask: the fields found for one bias, asked once for equal heads. Where
            it raises Unreachable, Undecided or Unrecognised, the answer is unknown.
        fold: the one answer of several heads, as `decisive` gives it.
        divergent: the fields where the series of a bias diverges.
        outside: why the question does not concern the encoding.
        in_row: the answer in a row of this many keys, asked where the whole series has none.
        budget_s: seconds; whatever is open after them stays unknown.
    """

    def answered(bias: Expr) -> H:
        try:
            whole = ask(bias)
        except Diverging as why:
            whole = {"reason": why.reason} | (divergent or {})
        except (Unreachable, Undecided, Unrecognised) as why:
            whole = unknown(reason_of(why))
        return replace(blank, formula=bias, **whole)

    if reason := outside(subject):
        whole = replace(blank, **subject.provenance, **refused(reason))
        if in_row is None or whole.status is Status.OUT_OF_SCOPE:
            return whole
    with within(budget_s):
        if not reason:
            heads = of_each_head(subject.biases, answered)
            one = heads[0] if len(heads) == 1 else fold(heads)
            whole = replace(one, **subject.provenance)
        without = whole.status in (Status.INFINITE, Status.UNKNOWN) or whole.because(Code.DIVERGES)
        if in_row is None or not without:
            return whole
        with contextlib.suppress(InputError):  # a term of the row has no value: it says nothing
            finite = in_row(FINITE_ROW if subject.seen is None else subject.seen.distance + 1)
            return whole if finite.status is Status.UNKNOWN else replace(whole, finite=finite)
    return whole


def decisive(
    size: Callable[[H], object],
    settles: Callable[[H], bool] = lambda head: head.status is Status.INFINITE,
) -> Callable[[tuple[H, ...]], H]:
    """The fold by which one head speaks for all.

    Args:
        size: what the heads' answers are ordered by; the largest speaks.
        settles: whether a head decides for all, whatever the others are.
    """
    return lambda heads: folded(heads, size, settles)


def upper_end(head: HeadAnswer) -> float:
    """The largest value that a head may have of which something is known."""
    ends = head.span()
    assert ends is not None
    return ends[1]
