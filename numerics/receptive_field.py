r"""The theoretical receptive field: how many of the nearest keys hold all but eps of B.

    TRF(eps) = min { j >= 0 : T_j < eps B }                                     [Q, Eq. 22]
    finite-row TRF(eps, N) = min { j : B_N - B_j < eps B_N }                    (ours)

The comparisons are those of `field_search`; rows without ball sums are summed in float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from typing import Any, overload

import numpy as np
import sympy
from flint import arb, ctx, fmpq
from sympy import Expr

from farfield.numerics.field_search import TailComparison, searched
from farfield.numerics.float_rows import in_floats, row_instead, tail_sums
from farfield.numerics.questions import (
    FINITE_ROW,
    Cases,
    Fields,
    HeadAnswer,
    NoCertifiedSum,
    decisive,
    per_head,
    reason_of,
    resolve,
    row_of,
    summed,
    unknown,
)
from farfield.numerics.search import Bracket, Exact, Value, at_precision
from farfield.numerics.summation.kernel import Geometric, Power
from farfield.numerics.summation.series import Series
from farfield.theory.algebra import door
from farfield.theory.algebra.door import within
from farfield.theory.algebra.exceptions import OrderTooLow, Undecided, Unreachable
from farfield.theory.answers.answer import (
    Code,
    InputError,
    Label,
    Reason,
    Result,
    Status,
)
from farfield.theory.answers.blocks import Block, Formula, facts, sentence, table
from farfield.theory.answers.notation import expression_latex, listed, shortened, words
from farfield.theory.answers.number import SHARES, inside, plural, share, without_noun
from farfield.theory.answers.number import tokens as tokens_text
from farfield.theory.coefficients.exact import oscillates, to_sympy
from farfield.theory.coefficients.signs import Context
from farfield.theory.convergence import Verdict, check_convergence
from farfield.theory.functions.balls import Ball
from farfield.theory.transseries.arithmetic import iterated_log, split
from farfield.theory.transseries.expansion import transseries

MAX_EPS_BITS = 4_096  # of the denominator of eps


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
    total: Ball | None = field(default=None, compare=False)
    verdict: Verdict | None = None
    asymptotics: str | None = None

    def span(self) -> tuple[float, float] | None:
        if self.tokens is not None or self.answer is None or isinstance(self.answer, Exact):
            return super().span()
        return self.answer.span()

    def head_text(self) -> str:
        return without_noun(self.value_text())

    def value_text(self) -> str:
        """The tokens, or bounds of them."""
        return tokens_text(self.tokens) if self.answer is None else self.answer.text()

    def _cases(self) -> Cases:
        return (
            (
                self.status is Status.ENCLOSED,
                "the number of nearest tokens that hold all but {eps} of the mass{of} is "
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

    def _values(self) -> dict[str, object]:
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

    def _facts(self) -> dict[str, object]:
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
    def subject(self) -> str:
        """The name of the bias."""
        return self.each[0].subject

    @property
    def status(self) -> Status:
        """Unknown where one of them is."""
        statuses = [f.status for f in self.each]
        return Status.UNKNOWN if Status.UNKNOWN in statuses else statuses[0]

    def __iter__(self) -> Iterator[ReceptiveField]:
        return iter(self.each)

    def __len__(self) -> int:
        return len(self.each)

    def __getitem__(self, place: int) -> ReceptiveField:
        return self.each[place]

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
                n=plural(finite[0].length or FINITE_ROW, "key"),
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


Eps = str | int | float | Fraction


def receptive_fields(
    f: object, eps: Eps | Sequence[Eps] = SHARES, **options: Any
) -> ReceptiveField | ReceptiveFields | tuple[ReceptiveField, ...]:
    """The receptive field of a bias, for one share of the mass left out or for several.

    Args:
        f: as of `theoretical_receptive_field`.
        eps: the share of the mass left out, 0 < eps < 1, read exactly; or a sequence of them.
        **options: as of `theoretical_receptive_field`.

    Returns:
        One answer; of several shares one for all of them, whose items are those of each share, or
        a tuple where the bias has no receptive field.

    Raises:
        InputError: as `theoretical_receptive_field`.

    >>> receptive_fields("-2*log(1+n)", "0.01").tokens
    61
    >>> [field.tokens for field in receptive_fields("-n/8")]
    [19, 37, 56]
    """
    found = theoretical_receptive_field(f, eps, **options)
    if not isinstance(found, tuple):
        return found
    scope = found[0].status is not Status.OUT_OF_SCOPE
    return ReceptiveFields(found) if len(found) > 1 and scope else found


@overload
def theoretical_receptive_field(  # type: ignore[overload-overlap]
    f: object,
    eps: Eps,
    *,
    length: object = None,
    exact: bool = False,
    budget_s: float = 60.0,
    **values: object,
) -> ReceptiveField: ...


@overload
def theoretical_receptive_field(
    f: object,
    eps: Sequence[Eps],
    *,
    length: object = None,
    exact: bool = False,
    budget_s: float = 60.0,
    **values: object,
) -> tuple[ReceptiveField, ...]: ...


def theoretical_receptive_field(
    f: object,
    eps: Eps | Sequence[Eps],
    *,
    length: object = None,
    exact: bool = False,
    budget_s: float = 60.0,
    **values: object,
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
    row = row_of(length)
    subject = resolve(f, values, row)
    if not isinstance(exact, bool):
        raise InputError(f"exact {str(exact)[:40]} is neither True nor False")
    single = isinstance(eps, str) or not isinstance(eps, Iterable) or getattr(eps, "ndim", 1) == 0
    each: Iterable[object] = (eps,) if single else eps  # type: ignore[assignment]
    grid = tuple(map(_eps, each))
    if not grid:
        raise InputError(f"eps {eps!r} has no number; accepted: a number in (0, 1), or several")

    @cache
    def compared(bias: Expr) -> TailComparison | NoCertifiedSum:
        try:
            return TailComparison(summed(bias, row))
        except NoCertifiedSum as why:
            return why

    @cache
    def in_row(size: int) -> tuple[ReceptiveField, ...]:
        return theoretical_receptive_field(subject, list(grid), length=size)

    def of(eps: sympy.Rational) -> ReceptiveField:
        def ask(bias: Expr) -> Fields:
            comparison = compared(bias)
            if isinstance(comparison, TailComparison):
                return _solved(comparison, bias, eps, row, every_digit=exact)
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
    with within(budget_s):
        results = tuple(map(of, grid))
    return results[0] if single else results


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


def _solved(
    compare: TailComparison,
    bias: Expr,
    eps: sympy.Rational,
    length: int | None,
    *,
    every_digit: bool,
) -> Fields:
    """The search by balls; a row that cannot be summed by balls is summed in floats."""
    verdict: Fields = {"verdict": Verdict.CONVERGES if length is None else None}
    try:
        at_precision(lambda: compare.total(ctx.prec), compare.series.first_bits)
        answer, reason = searched(compare, eps, every_digit=every_digit)
    except Unreachable as why:
        if length is None:
            return verdict | unknown(reason_of(why))
        return _by_floats(bias, eps, length, why)
    counted = isinstance(answer, Exact)
    return verdict | {
        "tokens": answer.tokens if isinstance(answer, Exact) else None,
        "answer": answer,
        "total": compare.totals[max(compare.totals)],
        "asymptotics": None if length else _asymptotics(compare.series),
        "status": Status.EXACT if counted else Status.ENCLOSED,
        "reason": reason,
    }


def _asymptotics(s: Series) -> str | None:
    """How the field grows as eps -> 0, where the last stretch decides it: by the leading term of
    `rho = -p`. The tail falls like `exp(-c n^q)`, `exp(-c log(n)^2)` or `A n^{1-r}/(r-1)`."""
    if s.kernel is None or s.support is not None:
        return None
    if isinstance(s.kernel, Geometric):
        exact = rf"\left\lfloor {_over(_LOG, -s.kernel.alpha)} \right\rfloor + 1"
        return exact if len(s.stretches) == 1 else None
    with suppress(Undecided, OrderTooLow, Unreachable):  # or it took the time that there was
        if isinstance(s.kernel, Power):
            return _power_law(s.kernel.r, sympy.exp(s.kernel.gamma))
        infinite, constant, _ = split(-transseries(s.last[0].bias, Context()))
        (m, c), *others = infinite
        if oscillates(c) or m.exponent:
            return None
        rate = to_sympy(c)
        if m == iterated_log(1) and not others and not oscillates(constant):
            return _power_law(rate, sympy.exp(-to_sympy(constant)))
        if m == iterated_log(1) ** fmpq(2):
            return rf"\exp\left(\sqrt{{{_over(_LOG, rate)}}}\,(1 + o(1))\right)"
        if len(m.chain) == 1:
            return rf"\sim {_power(_over(_LOG, rate), 1 / to_sympy(m.chain[0]))}"
    return None


def _power_law(r: Expr, amplitude: Expr) -> str:
    """(A / ((r-1) B eps))^{1/(r-1)}, for b_n ~ A n^{-r} (ours)."""
    above, below = door.fraction(door.simplify(amplitude / (r - 1)))
    factor = "" if below == 1 else _factor(below) + r"\, "
    base = rf"\frac{{{expression_latex(above)}}}{{{factor}B\, \varepsilon}}"
    return _power(base, 1 / (r - 1))


_LOG = r"\log(1/\varepsilon)"


def _over(text: str, divisor: Expr) -> str:
    """LaTeX of a quotient, a rational divisor turned over where it is."""
    above, below = door.fraction(1 / divisor)
    text = text if above == 1 else rf"{_factor(above)}\, {text}"
    return text if below == 1 else rf"\frac{{{text}}}{{{expression_latex(below)}}}"


def _factor(e: Expr) -> str:
    """LaTeX of a factor: a sum has brackets."""
    return rf"\left({expression_latex(e)}\right)" if e.is_Add else expression_latex(e)


def _power(base: str, exponent: Expr) -> str:
    """LaTeX of a power, without an exponent of 1."""
    return base if exponent == 1 else rf"\left({base}\right)^{{{expression_latex(exponent)}}}"


def _by_floats(bias: Expr, eps: sympy.Rational, length: int, why: Unreachable) -> Fields:
    """The finite-row TRF from float64 sums: labelled approximate, None too near to a threshold."""
    row = row_instead(bias, length, why)
    tails = tail_sums(row)
    goal = tails[0] * np.longdouble(eps.p) / np.longdouble(eps.q)
    j = int(np.argmax(tails < goal))
    margin = min(goal - tails[j], tails[j - 1] - goal) / tails[0]
    if not margin > 1e-11:
        reason = Reason(Code.TIE, "too near to a threshold for float64 sums")
        near = Bracket(max(1, j - 1), j + 1)
        return in_floats(why) | {"answer": near, "status": Status.ENCLOSED, "reason": reason}
    total = arb(float(tails[0]), float(tails[0]) * 1e-9) * arb(float(row.max())).exp()
    return in_floats(why) | {"tokens": j, "answer": Exact(j), "total": total}
