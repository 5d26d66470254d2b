r"""A receptive field of several layers: an approximation, validated by experiment only (ours).

One layer with a residual stream spreads influence by the kernel

    K = (1 - a) delta_0 + a mean_h(b^(h) / B^(h)),

R layers by its R-fold convolution. Its q-quantile in tokens, 1 + the least distance whose
cumulative mass reaches q, predicts the gradient ERF without training. Causality makes truncation
to N lags exact for every distance below N. The convolution is one FFT of the exponentially tilted
kernel on a circle of 2N lags, tilted so far (1e-9 over the circle) that wrap-around is negligible.

Beyond MAX_LAGS lags, let M be the largest of the R independent steps and T_1 its quantile. Then
`P(M > x) <= P(sum > x) <= P(M > x/R)`, so the quantile of the sum lies between T_1 and R T_1. Here
`P(M > x) = 1 - (1 - a mean_h T_{x+1}/B)^R`. That bracket is certified for the model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy
from flint import arb
from scipy import fft
from sympy import Expr

from farfield.numerics.heads import (
    BUDGET_S,
    Found,
    obstacle,
    out_of_reach,
    reason_of,
    resolve,
    unknown,
)
from farfield.numerics.heads import within as within_time
from farfield.numerics.receptive_field import Bracket, Exact, theoretical_receptive_field
from farfield.numerics.search import at_precision
from farfield.numerics.shown import BiasAnswer, Cases
from farfield.numerics.summation.series import Series, series
from farfield.theory.algebra.exceptions import OutOfTime, Unreachable
from farfield.theory.answers.answer import Code, InputError, Label, Reason, Status
from farfield.theory.answers.number import inside, natural, plural, share
from farfield.theory.answers.number import tokens as tokens_text
from farfield.theory.coefficients.exact import to_sympy
from farfield.theory.functions.balls import precision, to_arb
from farfield.theory.values import tabulate

MAX_LAGS = 1 << 20  # lags of a distribution, which bounds the memory
MAX_LAYERS = 10_000  # of a model
FIRST_LAGS = 1 << 12  # lags tried first; doubled as needed
TILT = 1e-9  # by which what is aliased in a transform is damped
RESOLUTION = 1e-8  # of a quantile in float64


@dataclass(frozen=True, repr=False)
class LayeredReceptiveField(BiasAnswer):
    """A model of the gradient receptive field: the q-quantile of a kernel convolved R times.

    Fields:
        formula: the bias, None for several heads (their kernels are averaged).
        layers, mixing, q: R, a and q.
        length: keys of the row; needed where a head diverges.
        tokens: the quantile; None where only `bracket` is known: beyond MAX_LAGS lags, or for a q
            that float64 convolutions do not tell from 1.
        bracket: the certified bracket of the model beyond the grid.
        label: `approximate`, a model with no bound.
    """

    VALUE = "tokens"

    layers: int
    mixing: sympy.Rational
    q: sympy.Rational
    length: int | None = None
    tokens: int | None = None
    bracket: Bracket | None = None

    def span(self) -> tuple[Any, Any] | None:
        if self.tokens is None and self.bracket is not None:
            return self.bracket.span()
        return super().span()

    def _cases(self) -> Cases:
        said = "through {layers}, {share} of the influence on a token comes from the nearest "
        near = "{tokens}." if self.tokens is not None else "{bracket}."
        unknown = "an unknown number of tokens."
        return ((True, said + (unknown if self.span() is None else near)),)

    def _values(self) -> dict[str, Any]:
        return {
            "share": share(self.q),
            "layers": plural(self.layers, "layer"),
            "tokens": tokens_text(self.tokens),
            "bracket": None if self.bracket is None else self.bracket.text(),
        }

    def _facts(self) -> dict[str, Any]:
        row = None if self.length is None else plural(self.length, "key")
        return {"share_of_a_layer_through_attention": self.mixing, "row": row}


def layered_receptive_field(
    f: Any,
    layers: Any,
    *,
    mixing: Any = "2/5",
    q: Any = "99/100",
    length: Any = None,
    budget_s: float = BUDGET_S,
    **values: Any,
) -> LayeredReceptiveField:
    """Predict the gradient receptive field of a model of several layers (ours, approximate).

    Args:
        f: a formula in `n`, a SymPy expression, a name of the catalogue or an `Encoding`.
        layers: the number R of layers.
        mixing: the share a of a layer that passes through attention, 0 < a <= 1.
        q: the quantile, 0 < q < 1.
        length: keys of the row, where the series diverges or the row is to be cut.
        budget_s: seconds; whatever is open after them stays unknown.
        **values: parameters and options, as `farfield.theory.encodings.encoding` takes them.

    Raises:
        InputError: numbers out of range; a series that diverges, without `length`.

    >>> layered_receptive_field("window", 12, w=40).tokens
    201
    """
    count = natural(layers, "layers", most=MAX_LAYERS)
    a, quantile = inside(mixing, "mixing", "(0, 1]"), inside(q, "q", "(0, 1)")
    row = None if length is None else natural(length, "length")
    subject = resolve(f, values)
    asked = LayeredReceptiveField(None, count, a, quantile, row, subject=subject.name)
    if reason := out_of_reach(subject):
        return replace(asked, status=Status.OUT_OF_SCOPE, label=None, reason=reason)
    with within_time(budget_s):
        try:
            return replace(asked, **_layered(subject.biases, asked))
        except OutOfTime as why:
            return replace(asked, **unknown(reason_of(why)))


def _layered(biases: tuple[Expr, ...], asked: LayeredReceptiveField) -> Found:
    """The quantile on a grid of lags that grows until it holds it; else a bracket."""
    row, q, a, count = asked.length, asked.q, asked.mixing, asked.layers
    totals = {b: _total(b, row) for b in dict.fromkeys(biases)}
    found: Found = {"formula": biases[0] if len(totals) == 1 else None, "label": Label.APPROXIMATE}
    lags, inside = FIRST_LAGS if row is None else min(row, MAX_LAGS), 0
    while 1 - q > RESOLUTION:
        size = min(lags, row or lags)
        kernel = np.mean([step_weights(b, size, totals[b]) for b in biases], axis=0)
        tokens, inside = _quantile(kernel, count, float(a), float(q), row == size)
        if tokens is not None:
            return found | {"tokens": tokens}
        if lags >= MAX_LAGS:
            break
        lags *= 4
    bracket, why = (
        Bracket(1 + inside, row),
        "beyond the grid of lags: bracketed by the largest step",
    )
    if row is not None:
        why = f"a row beyond the grid of {MAX_LAGS} lags, or a q too near to 1 for it"
    else:
        try:
            bracket = _bracket(biases, count, a, q)
        except Unreachable as stuck:
            why = str(stuck)
    reason = Reason(Code.TOO_LARGE, why)
    return found | {"bracket": bracket, "status": Status.ENCLOSED, "reason": reason}


def _total(bias: Expr, row: int | None) -> float | None:
    """B, or that of a row beyond the grid; None where the row sums its own terms."""
    if row is not None:
        return None if row <= MAX_LAGS else total_of(series(bias).truncated(row))
    s = series(bias)
    if reason := obstacle(s):
        raise InputError(f"give length, the keys of the row: {reason}")
    return total_of(s)


def total_of(s: Series) -> float:
    """The sum of a series, to float64."""
    try:
        return float(to_arb(at_precision(s.total, 128)).mid())
    except OutOfTime:
        raise
    except Unreachable as why:
        raise InputError(f"the weights of a row have no sum in reach: {why}") from None


def step_weights(bias: Expr, size: int, total: float | None) -> np.ndarray:
    """The weights of one step; those of a whole row where there is no total."""
    weights = np.exp(tabulate(bias, np.arange(size)))
    if not np.isfinite(weights).all():
        at = int(np.argmin(np.isfinite(weights)))
        raise InputError(f"the bias is undefined or infinite at n = {at}")
    return weights / (weights.sum() if total is None else total)


def _quantile(
    kernel: np.ndarray, layers: int, a: float, q: float, whole: bool
) -> tuple[int | None, int]:
    """1 + the least distance whose cumulative mass in the R-fold convolution reaches q, of a whole
    row a share q of the mass that stays in the row. It is None if it is beyond the kernel. And the
    distance where a share q of the mass within the kernel is reached, which is no larger."""
    cumulative = convolved(kernel, layers, a)
    inside = int(np.argmax(cumulative >= q * cumulative[-1]))
    if whole:
        return 1 + inside, inside
    if cumulative[-1] < q:
        return None, inside
    return 1 + int(np.argmax(cumulative >= q)), inside


def convolved(kernel: np.ndarray, layers: int, a: float) -> np.ndarray:
    """The cumulative mass of the R-fold convolution at each distance below the kernel's size."""
    size = len(kernel)
    step = a * kernel
    step[0] += 1 - a
    circle = fft.next_fast_len(2 * size, real=True)
    theta = -np.log(TILT) / circle
    tilt = np.exp(-theta * np.arange(size))
    spectrum = fft.rfft(step * tilt, circle) ** layers
    return np.cumsum(fft.irfft(spectrum, circle)[:size] / tilt)


def _bracket(
    biases: tuple[Expr, ...], layers: int, a: sympy.Rational, q: sympy.Rational
) -> Bracket:
    """1 + [x, R x], x the least with a mean_h T_{x+1}/B <= 1 - q^{1/R}."""
    with precision(256):
        root = (arb(int(q.p)) / int(q.q)).log() / layers
        share = -root.expm1() * int(a.q) / int(a.p)
        if not share < 1:
            return Bracket(1, 1)
        least, most = (to_sympy(end.fmpq()) for end in (share.lower(), share.upper()))
    heads = tuple(dict.fromkeys(biases))
    # the mean over heads falls below the share between the first and the last head's quantile
    low = min(_step_within(bias, most) for bias in heads)
    high = max(_step_within(bias, least) for bias in heads)
    return Bracket(max(0, low - 2) + 1, layers * high + 1)


def _step_within(bias: Expr, eps: sympy.Rational) -> int:
    """The exact number of keys that hold all but eps of one step."""
    found = theoretical_receptive_field(bias, eps, exact=True)
    if not isinstance(found.answer, Exact):
        why = found.reason or "the largest step is beyond the bounds on digits"
        raise Unreachable(str(why))
    return found.answer.tokens
