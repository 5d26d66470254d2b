"""Will perplexity hold beyond the training length? Forecast from the formula, before training.

The quantity is the *kernel order loss* of `farfield.numerics.finite_length`, and the law is:

    log ratio = c * kernel order loss,    c fitted through the origin on the committed trials

(`farfield.validation.reference.known_cases`: small models of bytes, judged by their last-token
perplexity).
The law was found on these trials and is not derived. How sure a forecast is comes from the same
trials. Each is forecast with its family left out of the fit. The errors of those forecasts, in
units that grow with the loss, are the errors to expect of a new one.

farfield refuses to forecast beyond the trials: other lengths, depths, numbers of heads and steps of
training, and a bias that rises. It also refuses a case that is far from every trial, and a case
whose nearest trial contradicts the law. At 4,000 steps the law fails: models that learn longer lose
more beyond their training length.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from farfield.numerics.depth import MAX_LAYERS
from farfield.numerics.finite_length import (
    KernelOrder,
    head_leaks,
    head_weights,
    kernel_order,
    order_resolutions,
)
from farfield.numerics.heads import out_of_reach, reason_of, resolve
from farfield.theory.algebra.exceptions import OutOfTime
from farfield.theory.answers.answer import Answer, Code, InputError, Label, Reason, Status
from farfield.theory.answers.blocks import Block, facts, note, sentence, table
from farfield.theory.answers.notation import expression_line, shortened
from farfield.theory.answers.number import decimal, listed, natural, plural
from farfield.theory.encodings import Encoding
from farfield.theory.encodings.head_lists import as_list
from farfield.validation.extrapolation import LIMIT
from farfield.validation.harness.configuration import read_layers, trainable
from farfield.validation.reference.committed import Row
from farfield.validation.reference.first import HEADS
from farfield.validation.reference.known_cases import left_out, slope, trials
from farfield.validation.reference.lending import Hybrid, ratios_on_text, use_of
from farfield.validation.reference.registration import USUAL

QUANTITY = "kernel order loss"
MAX_TESTED = 1 << 20
FAR = 0.25  # from the nearest trial in any part of the quantity: nothing is forecast beyond
FEWEST = 3  # trials of a depth or a length from which it is forecast
SUPPORT = 5  # trials that are named
RISE = 0.25  # the share of a row that rises above a nearer key: the trials have up to .24
SAME = 1e-4  # relative: trials are written with six digits
SURE = 0.99  # no probability is told beyond


@dataclass(frozen=True)
class HeadForecast:
    """What a head contributes.

    Fields:
        formula: of its bias.
        leak: its share beyond the training length.
        value: the order that it keeps, `R' (1 - leak) L^2`; about `(m L)^2 / 2` for a slope `m`.
    """

    formula: str
    leak: float
    value: float


@dataclass(frozen=True)
class MeasuredRatio:
    """What came out of models with the same biases, at the same lengths and depth.

    Fields:
        name: of the encoding or the run, with the settings that differ from the usual ones.
        steps: of training.
        seeds: how many models.
        ratio: of the perplexity at the longest length to that at the training length.
    """

    name: str
    steps: int
    seeds: int
    ratio: float

    def __str__(self) -> str:
        return f"{self.ratio:.3f} ({self.name}; {plural(self.seeds, 'model')})"


@dataclass(frozen=True, repr=False)
class Forecast(Answer):
    """Whether perplexity will hold, and by which ratio it will grow.

    Fields:
        trained, tested: the training length and the longest length at inference, in bytes.
        layers: depth.
        steps: of training, 32 rows of 64 bytes each or as many bytes.
        holds: the probability that the last-token perplexity rises by less than 5 % at every
            length up to `tested`; None where it is not known.
        ratio: the expected ratio to the perplexity at the training length.
        interval: 95 % of such forecasts fall into it.
        quantity: the name of the quantity behind the forecast.
        value: of that quantity, 0 or more.
        heads: its parts, by head.
        support: the trials nearest to it.
        distance: to the nearest trial, by the quantity and its parts.
        measured: models with these very biases, at these lengths and this depth, whatever their
            text and steps.
        attention: pairs of a distance and the mean attention on a key there, in a row of `tested`
            tokens; empty where no measured model allows a forecast.
        reach: the farthest of these distances with half of the attention.
        use: the measured model that lends its logits, or why none does.
    """

    VALUE: ClassVar[str] = "ratio"

    trained: int
    tested: int
    layers: int
    steps: int
    holds: float | None = None
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    quantity: str = QUANTITY
    value: float | None = None
    heads: tuple[HeadForecast, ...] = ()
    support: tuple[str, ...] = ()
    distance: float | None = None
    measured: tuple[MeasuredRatio, ...] = ()
    attention: tuple[tuple[int, float], ...] = ()
    reach: int | None = None
    use: str | None = None

    def span(self) -> tuple[Any, Any] | None:
        return self.interval

    def blocks(self) -> Sequence[Block]:
        subject = shortened(self.subject, 80)
        if self.status is Status.OUT_OF_SCOPE:
            first = sentence(
                "{subject} is out of the forecast's scope, additive biases by distance: {why}.",
                subject=subject,
                why=str(self.reason),
            )
        elif self.ratio is None or self.interval is None or self.holds is None:
            first = sentence(
                "{subject}: whether perplexity will hold at {tested} after training on rows of "
                "{trained} is not forecast: {why}.",
                self.label,
                subject=subject,
                why=str(self.reason),
                trained=plural(self.trained, "byte"),
                tested=plural(self.tested, "byte"),
            )
        else:
            low, high = self.interval
            first = sentence(
                "{subject}, trained on rows of {trained}: perplexity is forecast to {what} up "
                "to {tested}, with probability {sure}. Its expected ratio is {ratio}, 95 % within "
                "{low} to {high}.",
                self.label,
                subject=subject,
                trained=plural(self.trained, "byte"),
                what="hold" if self.holds >= 0.5 else "rise by 5 % or more",
                sure=chance(max(self.holds, 1 - self.holds)),
                tested=plural(self.tested, "byte"),
                ratio=f"{self.ratio:.3f}",
                low=f"{low:.3f}",
                high=f"{high:.3f}",
            )
        found: list[Block] = [first, note(_evidence())]
        if self.holds is not None and self.holds >= 0.5:
            found.append(
                note(
                    "The ratio compares with the same model at its training length. "
                    "A model that sees few keys holds too, at a high perplexity."
                )
            )
        if self.measured:
            found.append(
                sentence(
                    "Models with these very biases multiplied their perplexity by {ratios}.",
                    Label.MEASURED,
                    ratios=listed(self.measured),
                )
            )
        if self.status is Status.UNKNOWN:
            found.append(
                note(
                    "Known without trained models: its verdict, receptive field and leak "
                    "(`farfield check`, `trf`, `leak`). A run would tell: `farfield sweep "
                    "PLAN.toml` trains and measures models of the encodings, lengths, layers, "
                    "heads and steps that its plan names."
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
        if self.use is not None:
            found.append(self._of_use())
        return tuple(found)

    def _of_use(self) -> Block:
        if not self.attention:
            return note(f"What it can still use is not forecast: {self.use}.")
        asked = [round(self.tested * share) for share in (0.1, 0.25, 0.5, 0.95)]
        near = [min(self.attention, key=lambda p: abs(p[0] - far)) for far in asked]
        told = ", ".join(f"{share:.2f} at distance {far}" for far, share in near)
        half = "no key has half of the attention"
        if self.reach is not None:
            half = f"a key has half of the attention up to distance {self.reach}"
        return sentence(
            "In rows of {tested} tokens {half}: {told}. The content logits are those of {lender}.",
            Label.FORECAST,
            tested=self.tested,
            half=half,
            told=told,
            lender=self.use,
        )


def _by_head(heads: Sequence[HeadForecast]) -> Block:
    rows: dict[HeadForecast, int] = {}
    for head in heads:
        rows[head] = rows.get(head, 0) + 1
    return table(
        ("bias", "heads", "leak", "order kept"),
        [(h.formula, k, f"{h.leak:.3g}", f"{h.value:.3g}") for h, k in rows.items()],
        numeric=(1, 2, 3),
    )


def chance(probability: float) -> str:
    """A probability as it is printed: no forecast is certain.

    >>> chance(0.9957), chance(0.5), chance(0.001)
    ('> 0.99', '0.50', '< 0.01')
    """
    if probability > SURE:
        return f"> {SURE}"
    return f"< {1 - SURE:.2f}" if probability < 1 - SURE else f"{probability:.2f}"


def forecast(
    f: Any,
    *,
    trained: Any,
    tested: Any,
    layers: Any = 4,
    heads: Any = None,
    steps: Any = None,
    use: Any = None,
    **values: Any,
) -> Forecast:
    """Whether a model with this encoding will keep its perplexity beyond its training length, and
    which far keys it can use.

    Args:
        f: a formula in `n` for all heads, a list of formulas, one a head, a name of the catalogue
            or an `Encoding`; None for a hybrid.
        trained: the training length in bytes.
        tested: the longest length at inference in bytes, above `trained`.
        layers: depth; for a hybrid a list with one entry a layer, from the first: a bias, a list
            of biases, one a head, or a table `{"mechanism", "window", "scale"}` as in a plan.
        heads: number of heads; 8 where nothing says otherwise.
        steps: of training; 1,000 where none are given.
        use: the name of a measured run of *Hold and use*, or a mapping with the arrays `target`,
            `others` and `near` of `retrieval_curve`. Without it the nearest measured model lends
            its logits.
        **values: parameters and options, as `farfield.theory.encodings.encoding` takes them.

    Returns:
        The forecast. Its status is `unknown` with the code `beyond_evidence` where no trained model
        allows one.

    Raises:
        InputError: lengths out of order, free parameters, layers that contradict each other.

    >>> local = forecast("-n/4", trained=64, tested=1024)
    >>> local.holds > 0.9, local.ratio < 1.02
    (True, True)
    >>> forecast("-n/4", trained=4096, tested=65536).reason.code
    <Code.BEYOND_EVIDENCE: 'beyond_evidence'>
    >>> str(forecast("-n/4", trained=64, tested=1024, heads=64).reason)
    'the evidence covers models with 8 heads, not 64'
    >>> hybrid = forecast(None, layers=[["-n/2", "-n", "-n", "-2*n"], "0"], trained=64, tested=512)
    >>> hybrid.reach, hybrid.use
    (511, 'local, then free, 64, 0')
    """
    m, n = natural(trained, "trained"), natural(tested, "tested")
    hybrid = isinstance(layers, (list, tuple))
    depth = len(layers) if hybrid else _depth(layers)
    if hybrid == (f is not None):
        raise InputError("a forecast needs a bias and a number of layers, or a list of layers")
    if depth < 1:
        raise InputError("layers is an empty list; accepted: one entry for each layer")
    if not m < n <= MAX_TESTED:
        raise InputError(f"tested = {n} must be above trained = {m} and at most {MAX_TESTED}")
    length = natural(USUAL["steps"] if steps is None else steps, "steps")
    count = None if heads is None else natural(heads, "heads")
    if hybrid:
        asked = Forecast(m, n, depth, length, status=Status.UNKNOWN, label=None)
        return _of_layers(layers, asked, count, use)
    if count is not None and not isinstance(f, Encoding):
        values = {**values, "heads": count}
    subject = resolve(f, values)
    asked = Forecast(m, n, depth, length, status=Status.UNKNOWN, label=None, subject=subject.name)
    if reason := out_of_reach(subject):
        return dataclasses.replace(asked, status=Status.OUT_OF_SCOPE, reason=reason)
    try:
        known = _of_bias(subject, asked, count)
        alike = Hybrid((subject.biases,) * depth, (None,) * depth)
        return dataclasses.replace(known, **use_of(alike, m, n, use))
    except OutOfTime as why:
        return dataclasses.replace(asked, reason=reason_of(why))


def _depth(layers: Any) -> int:
    try:
        return natural(layers, "layers", most=MAX_LAYERS)
    except InputError as error:
        raise InputError(
            f"{error}, or a list with one entry a layer, such as ['-n/8', '0']"
        ) from None


def _of_layers(layers: Sequence[Any], asked: Forecast, heads: int | None, use: Any) -> Forecast:
    """The forecast of a hybrid: no hybrid was trained on text often enough to know its loss."""
    main = [own.get("mechanism") if isinstance(own, dict) else own for own in layers]
    lists = [as_list(own) if isinstance(own, str) else own for own in main]
    given = [len(own) for own in lists if isinstance(own, (list, tuple))]
    count = heads or max(given, default=4)
    plans = read_layers(layers, count)
    for at, layer in enumerate(plans, 1):
        layer.require(f"layer {at}", count, 64, asked.trained)
    hybrid = Hybrid.of(plans, count)
    measured = tuple(
        MeasuredRatio(name, USUAL["steps"], 1, ratio)
        for name, ratio in ratios_on_text(hybrid, asked.trained, asked.tested).items()
    )
    why = "the law covers models whose layers are alike"
    if not measured:
        why = (
            "no hybrid like it was measured on text; a plan with these layers would tell, by "
            "farfield sweep PLAN.toml"
        )
    subject = ", then ".join(map(_layer_text, layers))
    unknown = _refused(dataclasses.replace(asked, subject=subject, measured=measured), why)
    return dataclasses.replace(unknown, **use_of(hybrid, asked.trained, asked.tested, use))


def _layer_text(layer: Any) -> str:
    """A layer as it is printed.

    >>> _layer_text(["-n", "0"]), _layer_text({"mechanism": "rope", "window": 16})
    ('[-n; 0]', 'rope with window 16')
    """
    if isinstance(layer, dict):
        rest = " and ".join(f"{k} {v}" for k, v in layer.items() if k != "mechanism")
        return f"{_layer_text(layer.get('mechanism'))}{' with ' + rest if rest else ''}"
    return f"[{'; '.join(map(str, layer))}]" if isinstance(layer, (list, tuple)) else str(layer)


def _of_bias(subject: Encoding, asked: Forecast, heads: int | None) -> Forecast:
    """The forecast that is asked for; `asked` with a reason where there is none."""
    with np.errstate(over="ignore"):
        bias = subject.bias(np.arange(asked.tested))
    if _rises(bias, asked.trained):
        return _refused(asked, "the bias rises with distance, and no trained model has such a bias")
    order = kernel_order(bias, asked.trained, asked.layers)
    near = sorted(_known(), key=lambda t: (_distance(order, t["order"]), t["name"]))[:SUPPORT]
    leaks = head_leaks(bias, asked.trained)
    kept = order_resolutions(bias, asked.trained) * (1 - leaks) * asked.trained**2
    asked = dataclasses.replace(
        asked,
        value=order.loss,
        heads=tuple(
            HeadForecast(shortened(expression_line(b), 60), float(leak), float(value))
            for b, leak, value in zip(subject.biases, leaks, kept, strict=True)
        ),
        support=tuple(t["name"] for t in near),
        distance=_distance(order, near[0]["order"]),
        measured=_measured(asked, order),
    )
    if why := _beyond(subject, asked, heads) or _misled(near[0]):
        return _refused(asked, why)
    center, scale = expected(order.loss)
    errors = _law()[-1]
    held = int((center + scale * errors < LIMIT).sum())
    low, high = within(order.loss)
    return dataclasses.replace(
        asked,
        holds=(held + 0.5) / (len(errors) + 1),
        ratio=math.exp(center),
        interval=(math.exp(low), math.exp(high)),
        status=Status.ENCLOSED,
        label=Label.FORECAST,
    )


def _measured(asked: Forecast, order: KernelOrder) -> tuple[MeasuredRatio, ...]:
    """The trials that have this kernel, at these lengths and this depth."""
    lengths = (asked.trained, asked.tested, asked.layers)
    return tuple(
        MeasuredRatio(t["name"], t["steps"], t["seeds"], math.exp(t["loss"]))
        for t in trials()
        if (t["length"], t["tested"], t["layers"]) == lengths
        and np.allclose(dataclasses.astuple(t["order"]), dataclasses.astuple(order), SAME, 0)
    )


def _refused(asked: Forecast, why: str) -> Forecast:
    return dataclasses.replace(asked, reason=Reason(Code.BEYOND_EVIDENCE, why))


def _rises(bias: np.ndarray, trained: int) -> bool:
    """Whether a far key weighs more than all near ones, or much of a row more than a nearer key."""
    beyond = np.isposinf(bias)
    if (beyond.any(axis=1) & ~beyond[:, 0]).any():  # it grows beyond the floats
        return True
    weights = head_weights(bias)
    near, far = weights[:, :trained].max(axis=1), weights[:, trained:].max(axis=1)
    risen = (weights - np.minimum.accumulate(weights, axis=1)).sum(axis=1)
    return bool((far > near * (1 + 1e-6)).any() or risen.max() > RISE)


def _distance(one: KernelOrder, other: KernelOrder) -> float:
    """The largest difference of the parts of two cases; the loss counts relative above 1."""
    parts = (abs(getattr(one, p) - getattr(other, p)) for p in ("kept", "beyond", "leak"))
    return max(*parts, abs(one.loss - other.loss) / max(1.0, other.loss))


def _beyond(subject: Encoding, asked: Forecast, heads: int | None) -> str | None:
    """How a case lies outside what the trials have; None inside."""
    if not trainable(subject):
        return "no model is trained with it: it imitates the scores of another encoding"
    written = subject.num_heads  # 1: the same formula in all heads
    if heads not in (None, HEADS) or written not in (1, HEADS, HEADS * asked.layers):
        return f"the evidence covers models with {HEADS} heads, not {heads or written}"
    if why := outside(asked.trained, asked.tested, asked.layers, asked.steps):
        return why
    assert asked.distance is not None
    return "no trained model is near it" if asked.distance > FAR else None


def outside(trained: int, tested: int, layers: int, steps: int) -> str | None:
    """How lengths, depth or steps lie outside what the trials have; None inside."""
    known = _known()
    for what, value, seen in (
        ("trained on {} bytes", trained, "length"),
        ("with {} layers", layers, "layers"),
        ("trained for {} steps", steps, "steps"),
    ):
        low, high = min(t[seen] for t in known), max(t[seen] for t in known)
        if not low <= value <= high:
            return f"the evidence covers models {what.format(_span(low, high))}, not {value}"
    reach = max(t["tested"] // t["length"] for t in known)
    if tested > reach * trained:
        return f"the evidence ends at {reach} times the training length"
    return None


def _misled(trial: Row) -> str | None:
    """How the law is wrong about a trial; None where it came out within its 95 %."""
    low, high = within(trial["order"].loss)
    if low <= trial["loss"] <= high:
        return None
    said, measured = (math.exp(x) for x in (expected(trial["order"].loss)[0], trial["loss"]))
    return (
        f"the nearest trained model, {trial['name']}, has the ratio {measured:.2f}, "
        f"where the law says {said:.2f}"
    )


def _span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _evidence() -> str:
    """On which models a forecast rests."""
    known = _known()
    of = {w: _span(min(t[w] for t in known), max(t[w] for t in known)) for w in USUAL}
    return (
        f"The evidence: {len(known)} cases of models of {of['layers']} layers, {HEADS} heads and "
        f"width {of['width']}, trained for {of['steps']} steps on rows of {of['length']} bytes, "
        "source code or English. Nothing is known of other models."
    )


@functools.cache
def _known() -> tuple[Row, ...]:
    """The trials of the usual width and steps: at more steps the law fails.

    A depth or a length that has fewer than `FEWEST` trials is left out: one model says nothing of
    the next.
    """
    usual = [t for t in trials() if all(t[part] == USUAL[part] for part in ("width", "steps"))]
    depths, lengths = Counter(t["layers"] for t in usual), Counter(t["length"] for t in usual)
    return tuple(t for t in usual if min(depths[t["layers"]], lengths[t["length"]]) >= FEWEST)


def expected(value: float) -> tuple[float, float]:
    """The logarithm of the ratio that a kernel order loss lets expect, and its error's scale."""
    constant, floor, growth, _ = _law()
    return constant * value, floor + growth * constant * value


def within(value: float) -> tuple[float, float]:
    """Where 95 % of the logarithms of such ratios fall."""
    center, scale = expected(value)
    low, high = np.quantile(_law()[-1], (0.025, 0.975), method="closest_observation")
    return center + scale * float(low), center + scale * float(high)


def calibration() -> dict[str, float]:
    """How the law fits its trials, each forecast without its family: `n`, `right`, `R2`."""
    _, loss, said = _fitted()
    return {
        "n": len(loss),
        "right": int(((said < LIMIT) == (loss < LIMIT)).sum()),
        "R2": 1 - float(((loss - said) ** 2).sum() / ((loss - loss.mean()) ** 2).sum()),
    }


def _fitted() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each known case the order loss, the loss, and the loss forecast without its family."""
    known = _known()
    quantity = np.array([t["order"].loss for t in known])
    loss = np.array([t["loss"] for t in known])
    return quantity, loss, left_out(quantity, loss, [t["family"] for t in known])


@functools.cache
def _law() -> tuple[float, float, float, np.ndarray]:
    """The slope of the law, its `floor` and `growth`, and its errors in units of their scale, which
    is `floor + growth * log`."""
    quantity, loss, said = _fitted()
    away, small = np.abs(loss - said), said < LIMIT
    floor = float(np.sqrt(np.mean(away[small] ** 2)))
    growth = float(np.sqrt(np.mean((away[~small] / said[~small]) ** 2)))
    return slope(quantity, loss), floor, growth, (loss - said) / (floor + growth * said)
