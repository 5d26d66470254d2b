"""Will perplexity hold beyond the training length? Forecast from the formula, before training.

The quantity is the *order loss* of `farfield.numerics.finite_length`, and the law is

    log ratio = c * order loss,    c fitted through the origin on every committed trial

(`farfield.validation.reference.trials`: small models, judged by last-token perplexity). How sure
that is comes from the same trials: each is forecast with its family left out of the fit, and the
errors of those forecasts, in units that grow with the loss, are the errors that are to be expected
of a new one. Beyond the trials nothing is forecast.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from farfield.numerics.finite_length import (
    head_leaks,
    head_resolutions,
    kept_resolution,
    kept_share,
    order_loss,
    resolution_weighted_leak,
)
from farfield.numerics.receptive_field import out_of_reach, resolve
from farfield.theory.answers.answer import Answer, Code, InputError, Label, Reason, Status
from farfield.theory.answers.blocks import Block, facts, note, sentence, table
from farfield.theory.answers.notation import expression_line, shortened
from farfield.theory.answers.number import natural
from farfield.theory.answers.wording import decimal, plural
from farfield.theory.encodings import Encoding
from farfield.validation.harness.measures.extrapolation import TOLERANCE
from farfield.validation.harness.trainable import trainable
from farfield.validation.reference.trials import Trial, left_out, slope, trials

QUANTITY = "order loss"
MAX_TESTED = 1 << 20
FAR = 0.25  # from the nearest trial, in either part of the quantity: beyond, nothing is forecast
SUPPORT = 5  # trials that are named


@dataclass(frozen=True)
class HeadForecast:
    """What a head contributes: its leak, and its resolution on a row of the training length."""

    formula: str
    leak: float
    resolution: float


@dataclass(frozen=True, repr=False)
class Forecast(Answer):
    """Whether perplexity will hold, and by which ratio it will grow.

    Fields:
        trained, tested: the training length and the longest length at inference, in tokens.
        layers: depth.
        holds: the probability that the last-token perplexity rises by less than 5 % at every
            length up to `tested`; None where it is not known.
        ratio: the expected ratio to the perplexity at the training length.
        interval: 95 % of such forecasts fall into it.
        quantity: what the forecast rests on.
        value: of that quantity, 0 or more.
        heads: its parts, by head.
        support: the trials nearest to it.
        distance: to the nearest, by the quantity and its parts.
    """

    VALUE: ClassVar[str] = "ratio"

    trained: int
    tested: int
    layers: int
    holds: float | None = None
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    quantity: str = QUANTITY
    value: float | None = None
    heads: tuple[HeadForecast, ...] = ()
    support: tuple[str, ...] = ()
    distance: float | None = None

    def span(self) -> tuple[Any, Any] | None:
        return self.interval

    def blocks(self) -> Sequence[Block]:
        subject = shortened(self.subject, 80)
        if self.ratio is None or self.interval is None or self.holds is None:
            first = sentence(
                "{subject}: whether perplexity will hold at {tested} after training on {trained} "
                "is not forecast: {why}.",
                self.label,
                subject=subject,
                why=str(self.reason),
                trained=plural(self.trained, "token"),
                tested=plural(self.tested, "token"),
            )
        else:
            low, high = self.interval
            first = sentence(
                "{subject}, trained on {trained}: perplexity is forecast to {what} up to {tested}, "
                "with probability {sure}; expected ratio {ratio}, 95 % within {low} to {high}.",
                self.label,
                subject=subject,
                trained=plural(self.trained, "token"),
                what="hold" if self.holds >= 0.5 else "rise by 5 % or more",
                sure=f"{max(self.holds, 1 - self.holds):.2f}",
                tested=plural(self.tested, "token"),
                ratio=f"{self.ratio:.3f}",
                low=f"{low:.3f}",
                high=f"{high:.3f}",
            )
        found: list[Block] = [first]
        if self.status is Status.UNKNOWN:
            found.append(
                note(
                    "Known without trained models: its verdict, receptive field and leak "
                    "(`farfield check`, `trf`, `leak`)."
                )
            )
        if self.value is not None:
            found.append(
                facts(
                    **{self.quantity: decimal(self.value, 4)},
                    layers=self.layers,
                    nearest_trials="; ".join(self.support) or None,
                    distance_to_the_nearest=None
                    if self.distance is None
                    else f"{self.distance:.2f}",
                )
            )
            found.append(_by_head(self.heads))
        return tuple(found)


def _by_head(heads: Sequence[HeadForecast]) -> Block:
    rows: dict[HeadForecast, int] = {}
    for head in heads:
        rows[head] = rows.get(head, 0) + 1
    return table(
        ("bias", "heads", "leak", "resolution"),
        [(h.formula, k, f"{h.leak:.3g}", f"{h.resolution:.3g}") for h, k in rows.items()],
        numeric=(1, 2, 3),
    )


def forecast(
    f: Any, *, trained: Any, tested: Any, layers: Any = 4, heads: Any = None, **values: Any
) -> Forecast:
    """Whether a model with this encoding will keep its perplexity beyond its training length.

    Args:
        f: a formula in `n`, a list of them, one a head, a name of the catalogue or an `Encoding`.
        trained: the training length in tokens.
        tested: the longest length at inference, above `trained`.
        layers: depth.
        heads: number of heads, for an encoding with values for each.
        **values: parameters and options, as `farfield.theory.encodings.encoding` takes them.

    Raises:
        InputError: lengths out of order, free parameters.

    >>> local = forecast("-n/4", trained=64, tested=1024)
    >>> local.holds > 0.9, local.ratio < 1.02
    (True, True)
    >>> forecast("-n/4", trained=4096, tested=65536).reason.code
    <Code.BEYOND_EVIDENCE: 'beyond_evidence'>
    """
    m, n = natural(trained, "trained"), natural(tested, "tested")
    depth = natural(layers, "layers")
    if not m < n <= MAX_TESTED:
        raise InputError(f"tested = {n} must be above trained = {m} and at most {MAX_TESTED}")
    if heads is not None:
        values = {**values, "heads": heads}
    subject = resolve(f, values)
    if reason := out_of_reach(subject):
        return Forecast(
            m, n, depth, status=Status.OUT_OF_SCOPE, label=None, reason=reason, subject=subject.name
        )
    return _of_bias(subject, m, n, depth)


def _of_bias(subject: Encoding, trained: int, tested: int, layers: int) -> Forecast:
    bias = subject.bias(np.arange(tested))
    value = order_loss(bias, trained, layers)
    parts = (resolution_weighted_leak(bias, trained), kept_resolution(bias, trained), value)
    near = sorted(trials(), key=lambda t: (_distance(parts, t), t.name))[:SUPPORT]
    distance = _distance(parts, near[0])
    heads = tuple(
        HeadForecast(shortened(expression_line(b), 60), float(leak), float(sharp))
        for b, leak, sharp in zip(
            subject.biases, head_leaks(bias, trained), head_resolutions(bias, trained), strict=True
        )
    )
    beyond = _beyond(trained, tested, layers)
    if not trainable(subject):
        beyond = "no model is trained with it: it stands for the scores of another encoding"
    elif beyond is None and distance > FAR:
        beyond = "no trained model is near it"
    if beyond is not None:
        return Forecast(
            trained,
            tested,
            layers,
            value=value,
            heads=heads,
            distance=distance,
            status=Status.UNKNOWN,
            label=None,
            reason=Reason(Code.BEYOND_EVIDENCE, beyond),
            subject=subject.name,
        )
    center, scale = expected(value)
    errors = _law().errors
    low, high = np.quantile(errors, (0.025, 0.975), method="closest_observation")
    limit = math.log1p(TOLERANCE)
    held = int((center + scale * errors < limit).sum())
    return Forecast(
        trained,
        tested,
        layers,
        (held + 0.5) / (len(errors) + 1),
        math.exp(center),
        (math.exp(center + scale * low), math.exp(center + scale * high)),
        value=value,
        heads=heads,
        support=tuple(t.name for t in near),
        distance=distance,
        status=Status.ENCLOSED,
        label=Label.FORECAST,
        subject=subject.name,
    )


def _distance(parts: tuple[float, float, float], trial: Trial) -> float:
    """The largest of three differences: of the leak, of the order that is kept, and of the
    quantity, which counts relative where it is above 1."""
    leak, kept, value = parts
    sharp = kept_share(kept) - kept_share(trial.kept)
    apart = abs(value - trial.value) / max(1.0, trial.value)
    return max(abs(leak - trial.leak), abs(sharp), apart)


def _beyond(trained: int, tested: int, layers: int) -> str | None:
    """How a case lies outside what the trials have of lengths and depth; None inside."""
    known = trials()
    for what, value, seen in (
        ("trained on {} tokens", trained, [t.length for t in known]),
        ("with {} layers", layers, [t.layers for t in known]),
    ):
        low, high = min(seen), max(seen)
        if not low <= value <= high:
            span = str(low) if low == high else f"{low} to {high}"
            return f"the evidence is of models {what.format(span)}"
    reach = max(t.tested // t.length for t in known)
    if tested > reach * trained:
        return f"the evidence ends at {reach} times the training length"
    return None


@dataclass(frozen=True)
class _Law:
    """The law with its numbers; `errors` in units of the scale, which is `floor + growth * log`."""

    slope: float
    floor: float
    growth: float
    errors: np.ndarray


def expected(value: float) -> tuple[float, float]:
    """The logarithm of the ratio that an order loss lets expect, and the scale of its error."""
    law = _law()
    center = law.slope * value
    return center, law.floor + law.growth * center


@functools.cache
def _law() -> _Law:
    known = trials()
    quantity = np.array([t.value for t in known])
    loss = np.array([t.loss for t in known])
    said = left_out(quantity, loss, [t.family for t in known])
    away = np.abs(loss - said)
    small = said < math.log1p(TOLERANCE)
    floor = float(np.sqrt(np.mean(away[small] ** 2)))
    growth = float(np.sqrt(np.mean((away[~small] / said[~small]) ** 2)))
    scale = floor + growth * said
    return _Law(slope(quantity, loss), floor, growth, (loss - said) / scale)
