"""How much prior mass lies beyond the training length.

    leak(m, n) = 1 - B_m / B_n,  m <= n        (ours)

of the last query of `n` tokens, for a model trained on `m`; as n grows it tends to `T_m / B`, or
to 1 if the series diverges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from flint import arb
from sympy import Expr

from farfield.numerics.outcomes import Unreachable
from farfield.numerics.receptive_field import BLOCKWISE, at_precision, natural, resolve, verdict_of
from farfield.numerics.summation.series import series
from farfield.theory.functions.balls import to_arb
from farfield.theory.results import InputError, Result


@dataclass(frozen=True)
class Leak(Result):
    """The prior mass beyond the training length.

    Fields:
        formula: the bias, None where several heads are aggregated.
        trained, evaluated: the lengths m and n; `evaluated` None for the limit.
        value: the leak; the worst head's; None where it is not known.
        enclosure: bounds that contain it.
        heads, aggregation: one result a head where there are several, and `worst head`.
        reason: why `value` is None.
        label: `certified`; `theorem` for the limit 1 of a divergent series; `none` where `value`
            is not known.
    """

    formula: Expr | None
    trained: int
    evaluated: int | None
    value: float | None
    enclosure: tuple[float, float] | None
    heads: tuple[Leak, ...] = ()
    aggregation: str | None = None
    reason: str = ""
    label: str = "certified"

    def text(self) -> str:
        where = "as n -> oo" if self.evaluated is None else f"n = {self.evaluated}"
        value = "unknown" if self.value is None else f"{self.value:.10g}"
        if value == "1" and self.enclosure is not None and self.enclosure[0] < 1:
            value = f"between 1 - {1 - self.enclosure[0]:.2g} and 1"
        head = f" ({self.aggregation} of {len(self.heads)})" if self.heads else ""
        label = f"  [{self.label}]" if self.value is not None else ""
        lines = [f"leak(m = {self.trained}, {where}) = {value}{head}{label}"]
        if self.reason:
            lines.append(f"  {self.reason}")
        if self.heads:
            each = ("unknown" if h.value is None else f"{h.value:.6g}" for h in self.heads)
            lines.append(f"  by head: {', '.join(each)}")
        return "\n".join(lines)


def leak(f: Any, trained: Any, evaluated: Any = None, **values: Any) -> Leak:
    """The share of the prior mass of the last query that lies beyond the training length.

    Args:
        f: a formula in `n`, a SymPy expression, a name of the catalogue or an `Encoding`.
        trained: the training length m in tokens, at least 1.
        evaluated: the length n >= m at inference; None for the limit of ever longer texts.
        **values: parameters and options, as `farfield.theory.encodings.encoding` takes them.

    Raises:
        InputError: lengths that are no natural numbers or out of order; free parameters.

    >>> round(leak("-2*log(1+n)", 512).value, 9)
    0.001186199
    >>> leak("-log(1+n)", 512).value
    1.0
    """
    m = natural(trained, "trained")
    n = None if evaluated is None else natural(evaluated, "evaluated")
    if n is not None and n < m:
        raise InputError(f"evaluated = {n} must be at least trained = {m}")
    subject = resolve(f, values)
    if subject.bca is not None or not subject.biases:
        reason = BLOCKWISE if subject.bca is not None else subject.out_of_scope or ""
        return Leak(None, m, n, None, None, reason=reason, label="none")
    heads = tuple(_of_bias(b, m, n) for b in subject.biases)
    if len(heads) == 1:
        return heads[0]
    unknown = next((h for h in heads if h.value is None), None)
    worst = unknown or max(heads, key=lambda h: h.value or 0.0)
    return Leak(
        None, m, n, worst.value, worst.enclosure, heads, "worst head", worst.reason, worst.label
    )


def _of_bias(bias: Expr, m: int, n: int | None) -> Leak:
    s = series(bias)
    if n is None:
        verdict, reason = verdict_of(s)
        if verdict == "diverges":
            return Leak(bias, m, n, 1.0, (1.0, 1.0), label="theorem")
        if reason:
            return Leak(bias, m, n, None, None, reason=reason, label="none")
    else:
        s = s.truncated(n)
    try:
        ball = to_arb(at_precision(lambda: s.tail(m) / s.total(), 128))
    except Unreachable as why:
        return Leak(bias, m, n, None, None, reason=str(why), label="none")
    return Leak(bias, m, n, float(ball.mid()), outward(ball))


def outward(ball: arb) -> tuple[float, float]:
    """Floats below and above every point of a ball in [0, 1]."""
    low, high = float(ball.lower()), float(ball.upper())
    exact = ball.is_exact() and arb(low) == ball
    if exact:
        return low, low
    return max(0.0, math.nextafter(low, -math.inf)), min(1.0, math.nextafter(high, math.inf))
