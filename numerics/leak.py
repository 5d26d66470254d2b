"""The leak: how much prior mass lies beyond the training length.

    leak(m, n) = 1 - B_m / B_n,  m <= n        (ours)

of the last query of `n` tokens, for a model trained on `m`; as n grows it tends to `T_m / B`, or
to 1 if the series diverges.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

from sympy import Expr

from farfield.numerics.questions import (
    BUDGET_S,
    Cases,
    Fields,
    HeadAnswer,
    decisive,
    numeric,
    per_head,
    resolve,
    row_of,
    summed,
    upper_end,
)
from farfield.numerics.search import at_precision
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.answers.answer import InputError, Label, Status
from farfield.theory.answers.number import LEAST, decimal, natural, plural
from farfield.theory.functions.balls import to_arb


@dataclass(frozen=True, repr=False)
class Leak(HeadAnswer):
    """The prior mass beyond the training length.

    Fields:
        formula: the bias, None where several heads are aggregated.
        trained, tested: the lengths m and n; `tested` is None for the limit.
        value: the leak, in [0, 1]; the worst head's; None where it is not known.
        enclosure: floats around it.
        heads: one answer a head where there are several; the worst speaks for all.
        label: `certified`; `theorem` for the limit 1 of a divergent series.
    """

    OUTSIDE = "there is no prior mass by distance to speak of: {why}."

    trained: int
    tested: int | None
    value: float | None = None
    enclosure: tuple[float, float] | None = None

    @property
    def evaluated(self) -> int | None:
        """The former name of `tested`."""
        warnings.warn("Leak.evaluated is Leak.tested", DeprecationWarning, stacklevel=2)
        return self.tested

    def to_dict(self) -> dict[str, Any]:
        """The fields; `evaluated` is the former name of `tested`."""
        return super().to_dict() | {"evaluated": self.tested}

    def _cases(self) -> Cases:
        all_of_it = self.tested is None and self.label is Label.THEOREM
        return (
            (
                self.status is Status.ENCLOSED,
                "{rows}, the share of a query's prior mass that lies beyond {m} is {share}{worst}.",
            ),
            (
                self.value is None,
                "how much of a query's prior mass lies beyond {m} is not known.",
            ),
            (
                all_of_it,
                "as rows grow, all of a query's prior mass comes to lie beyond any {m}{worst}.",
            ),
            (True, "{rows}, {share} of a query's prior mass lies beyond {m}{worst}."),
        )

    def _values(self) -> dict[str, object]:
        return {
            "rows": "as rows grow"
            if self.tested is None
            else f"in a row of {plural(self.tested, 'key')}",
            "share": self._between() if self.value is None else _percent(self.value),
            "worst": self.among("the worst head"),
            "m": plural(self.trained, "token"),
        }

    def _facts(self) -> dict[str, object]:
        where = "ever longer rows" if self.tested is None else plural(self.tested, "key")
        value = None if self.value is None else decimal(self.value, 10)
        if self.status is Status.ENCLOSED:
            value = self._between()
        return {f"leak({self.trained}, {where})": value} | super()._facts()

    def _between(self) -> str:
        """The enclosure in words."""
        low, high = self.enclosure or (0.0, 1.0)
        return f"between {decimal(low)} and {decimal(high)}"


def _percent(value: float) -> str:
    if 0 < value < LEAST:
        return f"a share {decimal(value)}"
    return f"{100 * value:.3g} %" if value > 1e-6 or not value else f"a share of {value:.2g}"


def leak(
    f: object,
    trained: object,
    tested: object = None,
    *,
    budget_s: float = BUDGET_S,
    **values: object,
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
    m = natural(trained, "training length")
    if "evaluated" in values:
        warnings.warn("leak(evaluated=...) is leak(tested=...)", DeprecationWarning, stacklevel=3)
        tested = values.pop("evaluated")
    n = row_of(tested, "tested")
    subject = resolve(f, values, n)
    if n is not None and n < m:
        raise InputError(f"tested = {n} must be at least trained = {m}")
    return per_head(
        subject,
        Leak(None, m, n),
        lambda bias: _beyond(bias, m, n),
        decisive(upper_end, lambda head: head.value == 1),
        divergent={"value": 1.0, "enclosure": (1.0, 1.0), "label": Label.THEOREM},
        in_row=(lambda size: leak(subject, m, max(size, 2 * m))) if n is None else None,
        budget_s=budget_s,
    )


def _beyond(bias: Expr, m: int, n: int | None) -> Fields:
    """T_m/B, in a row of n keys the same of the truncated series."""
    row = summed(bias, n)
    ball = to_arb(at_precision(lambda: row.tail(m) / row.total(), 128))
    fields = numeric(ball, 0.0, 1.0)
    if fields["enclosure"] == (0.0, 1.0):
        raise Unreachable("the sums are enclosed no further")
    if "value" in fields and ball > 0:  # what is not 0 is not told as 0
        fields["value"] = max(math.ulp(0.0), fields["value"])
    return fields
