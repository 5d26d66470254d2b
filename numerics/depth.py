r"""A receptive field of several layers: kernels convolved; approximate, by experiment only (ours).

One layer with a residual stream spreads influence by the kernel

    K = (1 - a) delta_0 + a mean_h(b^(h) / B^(h)),

R alike layers by its R-fold convolution, unlike layers by the product of theirs. Its q-quantile in
tokens, 1 + the least distance whose cumulative mass reaches q, predicts the gradient ERF without
training. Causality makes truncation to N lags exact for every distance below N. The convolution is
one FFT of the exponentially tilted kernel on a circle of 2N lags, tilted so far (1e-9 over the
circle) that wrap-around is negligible.

A layer with attention sinks sends their share of the influence to the first tokens of the row,
where it stays. A popular rule of thumb for windows of W keys, `W log(1 - q) / log(a)`, counts one
path of full steps. It overlooks how many paths there are, and is far from the convolution.

Beyond MAX_LAGS lags, let M be the largest of the R independent steps and T_1 its quantile. Then
`P(M > x) <= P(sum > x) <= P(M > x/R)`, so the quantile of the sum lies between T_1 and R T_1. Here
`P(M > x) = 1 - (1 - a mean_h T_{x+1}/B)^R`. That bracket is certified for the model.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import sympy
from flint import arb
from sympy import Expr

from farfield.numerics.float_rows import bias_row
from farfield.numerics.questions import (
    BUDGET_S,
    BiasAnswer,
    Cases,
    Fields,
    obstacle,
    out_of_reach,
    reason_of,
    refused,
    resolve,
    unknown,
)
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.search import Bracket, Exact, at_precision
from farfield.numerics.summation.series import Series, series
from farfield.theory.algebra.door import within as within_time
from farfield.theory.algebra.exceptions import OutOfTime, Unreachable
from farfield.theory.answers.answer import Code, InputError, Label, Reason, Status
from farfield.theory.answers.number import inside, natural, plural, share
from farfield.theory.answers.number import tokens as tokens_text
from farfield.theory.coefficients.exact import to_sympy
from farfield.theory.encodings.head_lists import notation
from farfield.theory.functions.balls import precision, to_arb
from farfield.theory.functions.nodes import n
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
        layers, mixing, q: R, a (None where layers differ in it) and q.
        length: keys of the row; needed where a head diverges.
        tokens: the quantile; None where only `bracket` is known: beyond MAX_LAGS lags, or for a q
            that float64 convolutions do not tell from 1.
        bracket: the certified bracket of the model beyond the grid.
        sunk: the share of the influence that ends in attention sinks.
        rule: the rule of thumb for windows of one width, in tokens; None for all else.
        label: `approximate`, a model with no bound.
    """

    VALUE = "tokens"

    layers: int
    mixing: sympy.Rational | None
    q: sympy.Rational
    length: int | None = None
    tokens: int | None = None
    bracket: Bracket | None = None
    sunk: float = 0.0
    rule: float | None = None

    def span(self) -> tuple[float, float] | None:
        return super().span() if self.bracket is None else self.bracket.span()

    def _cases(self) -> Cases:
        template = "through {layers}, {share} of the influence on a token comes from "
        return (
            (self.tokens is not None, template + "the nearest {tokens}."),
            (self.bracket is not None, template + "{bracket} nearest to it."),
            (True, template + "a number of nearest tokens that is not known."),
        )

    def _values(self) -> dict[str, object]:
        return {
            "share": share(self.q),
            "layers": plural(self.layers, "layer"),
            "tokens": "token" if self.tokens == 1 else tokens_text(self.tokens),
            "bracket": None if self.bracket is None else self.bracket.text(),
        }

    def _facts(self) -> dict[str, object]:
        row = None if self.length is None else plural(self.length, "key")
        return {
            "share_of_a_layer_through_attention": self.mixing,
            "row": row,
            "influence_in_attention_sinks": f"{self.sunk:.3g}" if self.sunk else None,
            "rule_of_thumb": None if self.rule is None else f"{self.rule:.0f} tokens, by one path",
        }


@dataclass(frozen=True)
class _Layer:
    """One layer: the biases of its heads, the share through attention, the sinks of its row."""

    biases: tuple[Expr, ...]
    mixing: sympy.Rational
    sinks: int = 0

    @property
    def width(self) -> int | None:
        """The keys of a window that all heads have, None without one."""
        widths = {_window_of(bias) for bias in self.biases}
        return widths.pop() if len(widths) == 1 else None


def _window_of(bias: Expr) -> int | None:
    """The keys that a bias `where(n < w, ..., -oo)` sees."""
    if not isinstance(bias, sympy.Piecewise) or bias.args[-1][0] != sympy.S.NegativeInfinity:
        return None
    condition = bias.args[0][1]
    plain = len(bias.args) == 2 and isinstance(condition, sympy.StrictLessThan | sympy.LessThan)
    if not plain or condition.lhs != n or not condition.rhs.is_Integer:
        return None
    return int(condition.rhs) + isinstance(condition, sympy.LessThan)


def _layer(given: object, mixing: sympy.Rational) -> _Layer:
    """A layer of a list: a bias, a list of heads, or a table of what it has.

    Raises:
        InputError: a key that says nothing here, values out of range, an encoding without a kernel.
    """
    table = given if isinstance(given, dict) else {"mechanism": given}
    if strange := sorted(table.keys() - {"mechanism", "window", "sinks", "mixing"}):
        raise InputError(
            f"layer {table} has {strange[0]!r}; accepted: mechanism, window, sinks, mixing"
        )
    subject = resolve(table.get("mechanism", "nope"), {})
    rotates = subject.mechanism.startswith("rotation")  # the prior of a rotation is flat
    if not subject.biases and not rotates:
        raise InputError(f"layer {subject.name} has no kernel by distance: {subject.out_of_scope}")
    biases = subject.biases or (sympy.S.Zero,)
    if "window" in table:
        near = n < natural(table["window"], "window")
        rest = (sympy.S.NegativeInfinity, True)
        biases = tuple(sympy.Piecewise((b, near), rest) for b in biases)
    mixed = inside(table.get("mixing", mixing), "mixing", "(0, 1]")
    return _Layer(biases, mixed, natural(table.get("sinks", 0), "sinks", 0))


def layered_receptive_field(
    f: object = None,
    layers: object = None,
    *,
    mixing: object = "2/5",
    q: object = "99/100",
    length: object = None,
    budget_s: float = BUDGET_S,
    **values: object,
) -> LayeredReceptiveField:
    """Predict the gradient receptive field of a model of several layers (ours, approximate).

    Args:
        f: a formula in `n`, a SymPy expression, a name of the catalogue or an `Encoding`; None
            where `layers` is a list.
        layers: the number R of alike layers, or a list of unlike ones: each a bias, a list of
            heads, or a table with some of `mechanism` (a bias; position-free if not given, as a
            rotation is read too), `window`, `sinks` in tokens, and its own `mixing`.
        mixing: the share a of a layer that passes through attention, 0 < a <= 1.
        q: the quantile, 0 < q < 1.
        length: keys of the row, where the series diverges or the row is to be cut.
        budget_s: seconds; whatever is open after them stays unknown.
        **values: parameters and options, as `farfield.theory.encodings.encoding` takes them.

    Raises:
        InputError: numbers out of range; a series that diverges, without `length`.

    >>> layered_receptive_field("window", 12, w=40).tokens
    201
    >>> local = {"window": 100, "mixing": "1/20"}
    >>> answer = layered_receptive_field(layers=[local] * 100)
    >>> answer.tokens, round(answer.rule)
    (588, 154)
    """
    a, quantile = inside(mixing, "mixing", "(0, 1]"), inside(q, "q", "(0, 1)")
    row = None if length is None else natural(length, "length")
    if isinstance(layers, (list, tuple)):
        if f is not None or values or not 0 < len(layers) <= MAX_LAYERS:
            raise InputError("layers=[...] has every layer, and takes no formula beside it")
        each = Counter(_layer(given, a) for given in layers)
        name = notation([str(given) for given in layers])
        asked = LayeredReceptiveField(None, each.total(), a, quantile, row, subject=name)
    else:
        count = natural(layers, "layers", most=MAX_LAYERS)
        subject = resolve(f, values, row)
        each = Counter({_Layer(subject.biases, a): count})
        asked = LayeredReceptiveField(None, count, a, quantile, row, subject=subject.name)
        if reason := out_of_reach(subject):
            return replace(asked, **refused(reason))
    if row is None and any(layer.sinks for layer in each):
        raise InputError("give length, the keys of the row: attention sinks are its first keys")
    widths, mixings = {layer.width for layer in each}, {layer.mixing for layer in each}
    asked = replace(asked, mixing=mixings.pop() if len(mixings) == 1 else None)
    width = widths.pop() if len(widths) == 1 else None
    if width is not None and asked.mixing is not None and asked.mixing < 1:
        rule = width * math.log(1 - quantile) / math.log(asked.mixing)
        asked = replace(asked, rule=float(rule))
    with within_time(budget_s):
        try:
            return replace(asked, **_layered(each, asked))
        except OutOfTime as why:
            return replace(asked, **unknown(reason_of(why)))


def _layered(layers: Counter[_Layer], asked: LayeredReceptiveField) -> Fields:
    """The quantile on a grid of lags that grows until it holds it; else a bracket."""
    row, q = asked.length, asked.q
    first, *others = layers
    totals = {b: _total(b, row) for layer in layers for b in layer.biases}
    one = first.biases[0] if len(totals) == 1 else None
    fields: Fields = {"formula": one, "label": Label.APPROXIMATE}
    lags, inside = FIRST_LAGS if row is None else min(row, MAX_LAGS), 0
    while 1 - q > RESOLUTION:
        size = min(lags, row or lags)
        steps = [(*_step_of(layer, size, totals), count) for layer, count in layers.items()]
        kept = math.prod((1 - sunk) ** count for _, sunk, count in steps)
        cumulative = _product([(step, count) for step, _, count in steps])
        tokens, inside = _quantile(cumulative, float(q), row == size, 1 - kept)
        if tokens is not None:
            return fields | {"tokens": tokens, "sunk": 1 - kept}
        if lags >= MAX_LAGS:
            break
        lags *= 4
    biases, count, a = first.biases, asked.layers, first.mixing
    bracket, why = (
        Bracket(1 + inside, row),
        "beyond the grid of lags: bracketed by the largest step",
    )
    if others:
        why = "unlike layers beyond the grid of lags"
    elif row is not None:
        why = f"a row beyond the grid of {MAX_LAGS} lags, or a q too near to 1 for it"
    else:
        try:
            bracket = _bracket(biases, count, a, q)
        except Unreachable as stuck:
            why = str(stuck)
    reason = Reason(Code.TOO_LARGE, why)
    return fields | {"bracket": bracket, "status": Status.ENCLOSED, "reason": reason}


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
    weights = np.exp(bias_row(bias, size))
    return weights / (weights.sum() if total is None else total)


def _step_of(
    layer: _Layer, size: int, totals: Mapping[Expr, float | None]
) -> tuple[np.ndarray, float]:
    """The kernel of a layer with its residual stream, and the share that goes to its sinks."""
    kernel, sunk = np.zeros(size), 0.0
    for bias in layer.biases:
        weights = step_weights(bias, size, totals[bias])
        if layer.sinks:
            seen = bias if _window_of(bias) is None else bias.args[0][0]
            first = max(0, size - layer.sinks)  # the least distance of a sink
            there = np.exp(tabulate(seen, np.arange(size)))[first:].sum()
            weights = np.where(np.arange(size) < first, np.exp(tabulate(bias, np.arange(size))), 0)
            whole = weights.sum() + there
            sunk += there / whole
            weights /= whole
        kernel += weights
    a, heads = float(layer.mixing), len(layer.biases)
    return _residual(kernel / heads, a), a * sunk / heads


def _quantile(
    cumulative: np.ndarray, q: float, whole: bool, sunk: float = 0.0
) -> tuple[int | None, int]:
    """1 + the least distance whose cumulative mass reaches q, of a whole row a share q of the mass
    that stays in the row. It is None if it is beyond the lags. And the distance where a share q of
    the mass within them is reached, which is no larger."""
    inside = int(np.argmax(cumulative >= q * (cumulative[-1] + sunk)))
    if whole:
        reached = cumulative[-1] >= q * (cumulative[-1] + sunk)
        return (1 + inside if reached else len(cumulative)), inside
    if cumulative[-1] < q:
        return None, inside
    return 1 + int(np.argmax(cumulative >= q)), inside


def convolved(kernel: np.ndarray, layers: int, a: float) -> np.ndarray:
    """The cumulative mass of the R-fold convolution at each distance below the kernel's size."""
    return _product([(_residual(kernel, a), layers)])


def _residual(kernel: np.ndarray, a: float) -> np.ndarray:
    """One step with the residual stream beside attention."""
    step = a * kernel
    step[0] += 1 - a
    return step


def _product(steps: Sequence[tuple[np.ndarray, int]]) -> np.ndarray:
    """The cumulative mass of steps one after the other, each this many times."""
    size = len(steps[0][0])
    circle = 2 << (size - 1).bit_length()
    theta = -np.log(TILT) / circle
    tilt = np.exp(-theta * np.arange(size))
    spectrum = np.prod([np.fft.rfft(step * tilt, circle) ** count for step, count in steps], axis=0)
    return np.cumsum(np.fft.irfft(spectrum, circle)[:size] / tilt)


def _bracket(
    biases: tuple[Expr, ...], layers: int, a: sympy.Rational, q: sympy.Rational
) -> Bracket:
    """1 + [x, R x], x the least with a mean_h T_{x+1}/B <= 1 - q^{1/R}."""
    with precision(256):
        root = (arb(int(q.p)) / int(q.q)).log() / layers
        share = -root.expm1() * int(a.q) / int(a.p)
        if not share < 1:
            return Bracket(1, 1)
        if not share > 0:
            raise Unreachable("q is too near to 1: a step leaves out less than 2^-250")
        least, most = (to_sympy(end.fmpq()) for end in (share.lower(), share.upper()))
    heads = tuple(dict.fromkeys(biases))
    # the mean over heads falls below the share between the first and the last head's quantile
    low = min(_step_within(bias, most) for bias in heads)
    high = max(_step_within(bias, least) for bias in heads)
    return Bracket(max(0, low - 2) + 1, layers * high + 1)


def _step_within(bias: Expr, eps: sympy.Rational) -> int:
    """The exact number of keys that hold all but eps of one step."""
    field = theoretical_receptive_field(bias, eps, exact=True)
    if not isinstance(field.answer, Exact):
        raise Unreachable(str(field.reason))
    return field.answer.tokens
