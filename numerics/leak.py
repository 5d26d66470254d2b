"""How much prior mass lies beyond the training length.

    leak(m, n) = 1 - B_m / B_n,  m <= n        (ours)

of the last query of `n` tokens, for a model trained on `m`; as n grows it tends to `T_m / B`, or
to 1 if the series diverges.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sympy import Expr

from farfield.numerics.heads import BUDGET_S, per_head, resolve, sharp, within
from farfield.numerics.receptive_field import at_precision, diverges, obstacle
from farfield.numerics.shown import shown, subject_of
from farfield.numerics.summation.series import series
from farfield.theory.answers.answer import Answer, Code, InputError, Label, Reason, Status
from farfield.theory.answers.blocks import Block, Sentence
from farfield.theory.answers.notation import Text, words
from farfield.theory.answers.number import decimal, listed, natural, plural
from farfield.theory.functions.balls import outward, to_arb

LEAST = 1e-300
"""Shares below it are told as that."""


@dataclass(frozen=True, repr=False)
class Leak(Answer):
    """The prior mass beyond the training length.

    Fields:
        formula: the bias, None where several heads are aggregated.
        trained, tested: the lengths m and n; `tested` is None for the limit.
        value: the leak, in [0, 1]; the worst head's; None where it is not known.
        enclosure: floats around it.
        heads: one answer a head where there are several; the worst speaks for all.
        label: `certified`; `theorem` for the limit 1 of a divergent series.
    """

    formula: Expr | None
    trained: int
    tested: int | None
    value: float | None = None
    enclosure: tuple[float, float] | None = None
    heads: tuple[Leak, ...] = ()

    @property
    def evaluated(self) -> int | None:
        """The former name of `tested`."""
        warnings.warn("Leak.evaluated is Leak.tested", DeprecationWarning, stacklevel=2)
        return self.tested

    def to_dict(self) -> dict[str, Any]:
        """The fields; `evaluated` is the former name of `tested`."""
        return super().to_dict() | {"evaluated": self.tested}

    def span(self) -> tuple[Any, Any] | None:
        return self.enclosure if self.value is None else super().span()

    def blocks(self) -> Sequence[Block]:
        if self.status is Status.OUT_OF_SCOPE:
            return [Sentence(self._first(), self.label)]
        where = "ever longer rows" if self.tested is None else plural(self.tested, "key")
        value = None if self.value is None else decimal(self.value, 10)
        if self.value is not None and 0 < self.value < LEAST:
            value = f"below {LEAST:g}"
        if self.status is Status.ENCLOSED:
            value = self._between()
        by_head = listed([decimal(h.value) for h in self.heads]) or None
        known = {f"leak({self.trained}, {where})": value}
        return shown(self, self._first(), **known, by_head=by_head)

    def _first(self) -> Text:
        """The answer in one sentence, for each status."""
        subject = subject_of(self)
        rows = "as rows grow" if self.tested is None else f"in a row of {self.tested} keys"
        if self.status is Status.OUT_OF_SCOPE:
            said = "there is no prior mass by distance to speak of: {why}."
        elif self.status is Status.ENCLOSED:
            said = (
                "{rows}, the share of a query's prior mass that lies beyond {m} is {share}{worst}."
            )
        elif self.value is None:
            said = "how much of a query's prior mass lies beyond {m} is not known."
        elif self.tested is None and self.label is Label.THEOREM:
            said = "as rows grow, all of a query's prior mass comes to lie beyond any {m}{worst}."
        else:
            said = "{rows}, {share} of a query's prior mass lies beyond {m}{worst}."
        percent = self._between() if self.value is None else _percent(self.value)
        worst = ", in the worst head" if self.heads else ""
        return words(
            "{subject}: " + said,
            subject=subject,
            rows=rows,
            share=percent,
            worst=worst,
            m=plural(self.trained, "token"),
            why=str(self.reason),
        )

    def _between(self) -> str:
        """The enclosure in words."""
        low, high = self.enclosure or (0.0, 1.0)
        return f"between {decimal(low)} and {decimal(high)}"


def _percent(value: float) -> str:
    if 0 < value < LEAST:
        return f"a share below {LEAST:g}"
    return f"{100 * value:.3g} %" if value > 1e-6 else f"a share of {value:.2g}"


def leak(
    f: Any, trained: Any, tested: Any = None, *, budget_s: float = BUDGET_S, **values: Any
) -> Leak:
    """The share of the prior mass of the last query that lies beyond the training length.

    Args:
        f: a formula in `n`, a SymPy expression, a name of the catalogue or an `Encoding`.
        trained: the training length m in tokens, at least 1.
        tested: the length n >= m at inference; None for the limit of ever longer texts. Its former
            name, `evaluated`, works in this version.
        budget_s: seconds; whatever is open after them stays unknown.
        **values: parameters and options, as `farfield.theory.encodings.encoding` takes them.

    Raises:
        InputError: lengths that are no natural numbers or out of order; free parameters.

    >>> round(leak("-2*log(1+n)", 512).value, 9)
    0.001186199
    >>> leak("-log(1+n)", 512).value
    1.0
    """
    m = natural(trained, "trained")
    if "evaluated" in values:
        warnings.warn("leak(evaluated=...) is leak(tested=...)", DeprecationWarning, stacklevel=2)
        tested = values.pop("evaluated")
    n = None if tested is None else natural(tested, "tested")
    if n is not None and n < m:
        raise InputError(f"tested = {n} must be at least trained = {m}")
    subject = resolve(f, values)
    with within(budget_s):
        return per_head(
            subject,
            lambda bias: _of_bias(bias, m, n),
            lambda bias, **more: Leak(bias, m, n, **more),
            lambda head: (head.span() or (0, 0))[1],
            lambda head: head.value == 1,
        )


def _of_bias(bias: Expr, m: int, n: int | None) -> Leak:
    """T_m/B, in a row of n keys the same of the truncated series; 1 where the series diverges."""
    s = series(bias, diverges)
    reason = obstacle(s) if n is None else None
    if reason is not None and reason.code is Code.DIVERGES:
        return Leak(bias, m, n, 1.0, (1.0, 1.0), label=Label.THEOREM, reason=reason)
    if reason is not None:
        return Leak(bias, m, n, status=Status.UNKNOWN, label=None, reason=reason)
    row = s if n is None else s.truncated(n)
    ball = to_arb(at_precision(lambda: row.tail(m) / row.total(), 128))
    low, high = outward(ball)
    enclosure = max(0.0, low), min(1.0, high)
    if sharp(ball):
        least = math.ulp(0.0) if ball > 0 else 0.0  # what is not 0 is not told as 0
        return Leak(bias, m, n, max(least, float(ball.mid())), enclosure)
    reason = Reason(Code.NO_ENCLOSURE, "the sums are enclosed no further")
    if enclosure == (0.0, 1.0):
        return Leak(bias, m, n, status=Status.UNKNOWN, label=None, reason=reason)
    return Leak(bias, m, n, None, enclosure, status=Status.ENCLOSED, reason=reason)
