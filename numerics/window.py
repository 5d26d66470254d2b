r"""The certified window: how many keys are provably enough for an error budget.

For logits bounded by `logit_bound` and values by `value_bound`, the supremum over all inputs and
row lengths of the change in the head's output, when only the w nearest keys are kept, equals

    error(w) = 2 value_bound T_w / (T_w + e^{-2 logit_bound} B_w),

which does not increase with w (ours; upper half by [Q, Eq. 11-13]). `certified_window` finds the
least w with error(w) <= eta; no smaller window can be guaranteed. It speaks of one layer in exact
arithmetic, of the norm of the head's output before the output projection.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sympy
from flint import arb
from sympy import Expr

from farfield.numerics.outcomes import Unreachable
from farfield.numerics.receptive_field import (
    BLOCKWISE,
    Exact,
    at_precision,
    natural,
    resolve,
    theoretical_receptive_field,
    verdict_of,
)
from farfield.numerics.summation.series import Series, series
from farfield.theory.functions.balls import precision, rational, to_arb
from farfield.theory.proofs import Proof, Step
from farfield.theory.results import InputError, Result, exact

MAX_BITS = 2_048
MAX_LOGIT = 1_000
SCOPE = "one head, one layer, exact arithmetic, before the output projection"


@dataclass(frozen=True)
class Window(Result):
    """A window that is provably enough.

    Fields:
        formula: the bias, None where several heads are aggregated.
        error: the budget eta, exact.
        logit_bound, value_bound: the bounds on content logits and value norms, exact.
        width: keys to keep, the query's own included; the widest head's; None if there is none.
        proof: the two ball comparisons.
        heads, aggregation: one result a head where there are several, and `widest head`.
        reason: why `width` is None.
        label: `certified`.
    """

    formula: Expr | None
    error: sympy.Rational
    logit_bound: sympy.Rational
    value_bound: sympy.Rational
    width: int | None
    proof: Proof = field(default_factory=lambda: Proof(""))
    heads: tuple[Window, ...] = ()
    aggregation: str | None = None
    reason: str = ""
    label: str = "certified"

    @property
    def sliding_window(self) -> int:
        """The width as the plain integer that `sliding_window` settings take."""
        if self.width is None:
            raise InputError(f"there is no certified window: {self.reason}")
        return self.width

    def block_mask(self, length: int, block: int = 128) -> np.ndarray:
        """Which blocks of keys each block of queries needs, (blocks, blocks), True where any
        pair 0 <= query - key < width lies in it; for kernels that skip blocks.

        >>> certified_window("-n/2", "1/100", 1, 1).block_mask(512, 128).sum(axis=1).tolist()
        [1, 2, 2, 2]
        """
        size, side = natural(length, "length"), natural(block, "block")
        starts = np.arange(0, size, side)
        last = np.minimum(starts + side, size) - 1
        nearest = starts[:, None] - last[None, :]
        return (last[:, None] >= starts[None, :]) & (nearest < self.sliding_window)

    def text(self) -> str:
        head = f" ({self.aggregation} of {len(self.heads)})" if self.heads else ""
        shown = "none" if self.width is None else f"{self.width} tokens"
        label = "" if self.width is None else f"  [{self.label}: {SCOPE}]"
        lines = [f"certified window = {shown}{head}{label}"]
        lines.append(
            f"  error <= {self.error} where |logits| <= {self.logit_bound}, "
            f"||values|| <= {self.value_bound}"
        )
        if self.reason:
            lines.append(f"  {self.reason}")
        if self.heads:
            lines.append(f"  by head: {', '.join(str(h.width) for h in self.heads)}")
        elif self.width is not None:
            lines += ["proof:", self.proof.text()]
        return "\n".join(lines)


@dataclass(frozen=True)
class WindowError(Result):
    """The worst-case error of a window, as a float with floats around it, one result a head."""

    formula: Expr | None
    width: int
    value: float
    enclosure: tuple[float, float]
    heads: tuple[WindowError, ...] = ()
    aggregation: str | None = None
    reason: str = ""
    label: str = "certified"

    def text(self) -> str:
        head = f" ({self.aggregation} of {len(self.heads)})" if self.heads else ""
        lines = [f"error of a window of {self.width} = {self.value:.10g}{head}  [{self.label}]"]
        return "\n".join([*lines, *([f"  {self.reason}"] if self.reason else [])])


def certified_window(
    f: Any, error: Any, logit_bound: Any, value_bound: Any, **values: Any
) -> Window:
    """The least window whose output error is at most `error` for every input (ours).

    Args:
        f: a formula in `n`, a SymPy expression, a name of the catalogue or an `Encoding`.
        error: the budget eta > 0.
        logit_bound: a bound of |q.k|/sqrt(d), at least 0.
        value_bound: a bound of ||v||, positive.
        **values: parameters and options, as `farfield.theory.encodings.encoding` takes them.

    Raises:
        InputError: an error that is not positive; bounds out of range; free parameters.

    >>> certified_window("-n/2", "1/100", 1, 1).width
    15
    >>> certified_window("-log(1+n)", "1/100", 1, 1).width is None
    True
    """
    eta = exact(error, "error")
    if eta <= 0:
        raise InputError(
            f"error {eta} must be positive: only all keys of a finite support have error 0"
        )
    logit, value = _bounds(logit_bound, value_bound)
    subject = resolve(f, values)
    if subject.bca is not None or not subject.biases:
        raise InputError(subject.out_of_scope or BLOCKWISE)
    known = {b: _of_bias(b, eta, logit, value) for b in dict.fromkeys(subject.biases)}
    heads = tuple(known[b] for b in subject.biases)
    if len(heads) == 1:
        return heads[0]
    worst = max(heads, key=lambda h: (h.label == "theorem", h.label == "none", h.width or 0))
    return Window(
        None, eta, logit, value, worst.width, worst.proof, heads, "widest head", worst.reason,
        worst.label,
    )  # fmt: skip


def window_error(
    f: Any, width: Any, logit_bound: Any, value_bound: Any, **values: Any
) -> WindowError:
    """The worst-case error of keeping the `width` nearest keys (ours).

    Args:
        f: a formula in `n`, a SymPy expression, a name of the catalogue or an `Encoding`.
        width: keys that are kept, the query's own included, at least 1.
        logit_bound: a bound of |q.k|/sqrt(d), at least 0.
        value_bound: a bound of ||v||, positive.
        **values: parameters and options, as `farfield.theory.encodings.encoding` takes them.

    Raises:
        InputError: a width that is no natural number; bounds out of range; free parameters; an
            encoding that is no function of the distance alone.

    >>> round(window_error("-2*log(1+n)", 61, 0, 1).value, 6)
    0.01977
    """
    w = natural(width, "width")
    logit, value = _bounds(logit_bound, value_bound)
    subject = resolve(f, values)
    if not subject.biases:
        raise InputError(subject.out_of_scope or "there is no additive bias")
    heads = tuple(_error_of(b, w, logit, value) for b in subject.biases)
    if len(heads) == 1:
        return heads[0]
    worst = max(heads, key=lambda h: h.value)
    return WindowError(None, w, worst.value, worst.enclosure, heads, "worst head", worst.reason)


def _bounds(logit_bound: Any, value_bound: Any) -> tuple[sympy.Rational, sympy.Rational]:
    logit, value = exact(logit_bound, "logit_bound"), exact(value_bound, "value_bound")
    if not 0 <= logit <= MAX_LOGIT:
        raise InputError(f"logit_bound {logit} must be from 0 to {MAX_LOGIT}")
    if value <= 0:
        raise InputError(f"value_bound {value} must be positive")
    return logit, value


def _formula(s: Series, w: int, logit: sympy.Rational, value: sympy.Rational) -> arb:
    tail, total = to_arb(s.tail(w)), to_arb(s.total())
    inside = (-2 * arb(rational(logit))).exp() * (total - tail)
    return 2 * arb(rational(value)) * tail / (tail + inside)


def _error_of(bias: Expr, w: int, logit: sympy.Rational, value: sympy.Rational) -> WindowError:
    s = series(bias)
    verdict, reason = verdict_of(s)
    if verdict == "diverges":
        worst = float(2 * value)
        return WindowError(bias, w, worst, (worst, worst), reason=reason, label="theorem")
    if reason:
        raise InputError(f"there is no error to bound: {reason}")
    ball = to_arb(at_precision(lambda: _formula(s, w, logit, value), 128))
    return WindowError(bias, w, float(ball.mid()), (float(ball.lower()), float(ball.upper())))


def _of_bias(
    bias: Expr, eta: sympy.Rational, logit: sympy.Rational, value: sympy.Rational
) -> Window:
    def answer(width: int | None, reason: str, *steps: Step, label: str = "certified") -> Window:
        claims = {"theorem": "there is none", "none": "it is not known whether there is one"}
        claim = claims.get(label, f"{width} keys are enough, and necessary")
        proof = Proof(claim, steps)
        return Window(bias, eta, logit, value, width, proof, reason=reason, label=label)

    rule = Step("window", {})
    if eta >= 2 * value:
        return answer(1, "every window has an error of at most 2 value_bound", rule)
    s = series(bias)
    verdict, reason = verdict_of(s)
    if reason:
        label = "theorem" if verdict == "diverges" else "none"
        return answer(None, f"no window is certified ({verdict}): {reason}", label=label)
    try:
        width = _least(s, bias, eta, logit, value)
    except Unreachable as why:
        return answer(None, str(why), label="none")
    steps = [rule, Step("enough", {"width": width, "budget": eta})]
    if width > 1:
        steps.append(Step("least", {"width": width - 1, "budget": eta}))
    return answer(width, "", *steps)


def _least(
    s: Series, bias: Expr, eta: sympy.Rational, logit: sympy.Rational, value: sympy.Rational
) -> int:
    """error(w) <= eta iff T_w <= eps B with eps = eta/(eta + e^{2 logit_bound}(2 value - eta)): the
    receptive field at a rational near that eps is a guess, settled by ball comparisons."""
    with precision(256):
        share = arb(rational(eta)) / (
            rational(eta) + (2 * arb(rational(logit))).exp() * rational(2 * value - eta)
        )
        scale = 200 + max(0, -int(share.log().mid().floor().unique_fmpz()) * 2)
        grid = (share * arb(2) ** scale).mid().floor().unique_fmpz()
    eps = sympy.Rational(int(grid), 2**scale)
    found = theoretical_receptive_field(bias, eps)
    if not isinstance(found.answer, Exact):
        raise Unreachable(found.reason or "the width is not an exact integer in reach")
    w = max(1, found.answer.tokens)
    while not _within(s, w, eta, logit, value):
        w += 1
    while w > 1 and _within(s, w - 1, eta, logit, value):
        w -= 1
    return w


def _within(
    s: Series, w: int, eta: sympy.Rational, logit: sympy.Rational, value: sympy.Rational
) -> bool:
    bits = 128 + 2 * w.bit_length()
    while bits <= MAX_BITS:
        with precision(bits):
            worst = _formula(s, w, logit, value)
            if worst <= rational(eta):
                return True
            if worst > rational(eta):
                return False
        bits *= 2
    raise Unreachable(f"the error of a window of {w} agrees with {eta} to all digits tried")
