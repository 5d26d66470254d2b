r"""The certified window of a whole model: a width for every layer and head, and what it does.

`numerics.window` needs a bound of the content logits and one of the values. Here they come from

* weights, a proof for every text: a normalised input is `y = g z + s` with `||z|| <= sqrt(D)` (and
  `z` orthogonal to 1 under LayerNorm), so with `q = A z + a`, `k = B z' + b`, `v = V z' + c`, up to
  terms that are the same for all keys of a row and so change no weight,

      |q.k| <= D ||A^T B||_2 + sqrt(D) ||B^T a||,     ||v|| <= sqrt(D) ||V||_2;

* or a text: half the widest range of the logits in a row, and the radius of the values about
  their mean, maxima over what was read. This is empirical: another text may exceed them.

That terms common to a row's keys cancel is exact: weights do not change when a number is added to
all logits of a row, and since weights sum to 1, a vector added to all values leaves the difference
of two outputs as it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from farfield.numerics.windows.toeplitz import MAX_LOGIT, SCOPE, certified_window
from farfield.theory.encodings import Encoding
from farfield.theory.results import InputError, Result, exact
from farfield.validation.attention import fused
from farfield.validation.configuration import CAUSAL, Visibility
from farfield.validation.corpus import Corpus, corpus
from farfield.validation.empirical import sampled
from farfield.validation.model import Transformer
from farfield.validation.outside import Folder, OutsideModel, describe, load, tokens_of
from farfield.validation.receptive_field import LanguageModel, resampled, samples_of

SOURCES = ("text", "weights")
Progress = Callable[[str, int, int], None]
_MARGIN = 1e-6  # of a product of Frobenius norms: more than rounding in float64 amounts to
_SCORES = 1 << 22  # numbers of scores held at a time


@dataclass(frozen=True)
class HeadBounds:
    """Bounds of one head: `|logit| <= logit` up to a term common to the row, `||value|| <= value`
    up to a vector common to all."""

    logit: float
    value: float


@dataclass(frozen=True)
class HeadWindow:
    """The window of one head, and its error on real activations.

    Fields:
        layer, head: from 1.
        bias: the formula.
        logit_bound, value_bound: what it is certified for.
        width: keys to keep; None if there is no window.
        reason: why there is none.
        error: the largest change of the head's output on the rows read, measured; None without.
        rows, exceeded: rows measured, and how many changed by more than the budget.
    """

    layer: int
    head: int
    bias: str
    logit_bound: float
    value_bound: float
    width: int | None
    reason: str = ""
    error: float | None = None
    rows: int = 0
    exceeded: int = 0


@dataclass(frozen=True)
class Composed:
    """The whole model with its windows against the whole model without, measured.

    Fields:
        windows: which.
        nats, nats_full: mean loss in nats a token.
        ratio, ratio_low, ratio_high: of the perplexities, with a 95 % bootstrap interval over the
            segments, None for a single one.
        largest: the largest change of the log-probability of an observed token.
        relative: the largest change of a last residual, relative to its norm.
        tokens: scored.
    """

    windows: str
    nats: float
    nats_full: float
    ratio: float
    ratio_low: float | None
    ratio_high: float | None
    largest: float
    relative: float
    tokens: int


@dataclass(frozen=True)
class ModelWindow(Result):
    """Certified windows of a model; see `model_window`.

    Fields:
        model, source: its name, and where the bounds are from: `weights` or `text`.
        error: the budget of a head's output.
        heads: one a layer and head.
        sliding_window: the widest; None where a head has none.
        composed: the measured effect, of the windows of each head and of the widest for all.
        length, segments, text_source: what was read to check.
        reason: why there is no sliding window.
        note: what the library does besides the formula.
        label: `certified` for bounds from weights, `empirical` for those from text; `theorem`
            where the encoding is out of scope.
    """

    model: str
    source: str
    error: sympy.Rational
    heads: tuple[HeadWindow, ...]
    sliding_window: int | None
    composed: tuple[Composed, ...] = ()
    length: int = 0
    segments: int = 0
    text_source: str = ""
    reason: str = ""
    note: str = ""
    label: str = "empirical"

    @property
    def decided(self) -> bool:
        """Whether there is a window, or it is known that there is none."""
        known = not self.heads or "diverges" in self.reason
        return self.sliding_window is not None or known

    def text(self) -> str:
        if not self.heads:
            return f"sliding window of {self.model} = none\n  {self.reason}"
        width = keys_text(self.sliding_window) + (" tokens" if self.sliding_window else "")
        kind = {
            "weights": f"certified by weight norms: {SCOPE}",
            "text": f"empirical: bounds are maxima over a text; {SCOPE}",
        }[self.source]
        lines = [f"sliding window of {self.model} = {width}  [{kind}]"]
        if self.reason:
            lines.append(f"  {self.reason}")
        layers = sorted({h.layer for h in self.heads})
        for layer in layers:
            own = [h for h in self.heads if h.layer == layer]
            widths = ", ".join(keys_text(h.width) for h in own)
            lines.append(
                f"  layer {layer}: {widths}  (logits within "
                f"{max(h.logit_bound for h in own):.4g}, values within "
                f"{max(h.value_bound for h in own):.4g})"
            )
        checked = [h for h in self.heads if h.error is not None]
        if checked:
            worst = max(checked, key=lambda h: h.error or 0.0)
            lines.append(
                f"  error of a layer: at most {float(self.error):g} by the bound; at most "
                f"{worst.error:.3g} on {sum(h.rows for h in checked):,} rows, "
                f"{sum(h.exceeded for h in checked)} above the bound  [measured]"
            )
        for c in self.composed:
            between = "" if c.ratio_low is None else f" ({c.ratio_low:.6f} to {c.ratio_high:.6f})"
            lines.append(
                f"  whole model, {c.windows}: perplexity x{c.ratio:.6f}{between}, a token's "
                f"log-probability changes by at most {c.largest:.3g}, the last residual by "
                f"{c.relative:.2g} of its norm  [measured: {sampled(self.segments, self.length)}]"
            )
        if self.composed:
            lines += [f"  text: {self.text_source}"]
        if self.sliding_window is not None and self.sliding_window >= self.length > 0:
            lines.append(f"  segments of {self.length} tokens never leave the widest window")
        lines += [f"  note: {self.note}"] if self.note else []
        return "\n".join(lines)


def model_window(
    model: Any,
    error: Any,
    *,
    bounds: str = "text",
    text: Any = None,
    length: int | None = None,
    segments: int = 4,
    progress: Progress | None = None,
) -> ModelWindow:
    """Windows that keep the output of every head within `error`, for a model on this machine.

    Args:
        model: a folder that `outside.describe` knows, or what it says of one.
        error: the budget eta > 0 of the norm of a head's output, before the output projection.
        bounds: `text` takes maxima over the training part of the text, empirical; `weights` takes
            norms of the weights, which holds for every text.
        text: a file, a folder or a `Corpus`; None takes the source code of the standard library.
            Errors and perplexity are measured on its held-out part.
        length: tokens a segment; None takes the training length, at most 1024.
        segments: how many, of either part.
        progress: called as `progress(stage, done, total)`.

    Returns:
        One window a layer and head, each with its measured error, and the measured effect on the
        whole model. An encoding without additive bias has none, and the result says so.

    Raises:
        InputError: as `outside.describe` and `outside.load`; a bad argument; a text too short.
    """
    eta = exact(error, "error")
    if eta <= 0:
        raise InputError(f"error {eta} must be positive")
    if bounds not in SOURCES:
        raise InputError(f"bounds {bounds!r} are not known; accepted: {', '.join(SOURCES)}")
    for name, value in (("length", length), ("segments", segments)):
        if value is not None and (not isinstance(value, int) or value < 1):
            raise InputError(f"{name} {value!r}: accepted is a whole number from 1")
    folder = model if isinstance(model, Folder) else describe(model)
    given = folder.encodings[0]
    if not given.biases:
        reason = f"no window is certified: {given.out_of_scope}"
        return ModelWindow(folder.name, bounds, eta, (), None, reason=reason, label="theorem")
    label = "certified" if bounds == "weights" else "empirical"
    size = length or min(folder.trained or 1024, 1024)
    report = progress or _silent
    network = load(folder, tokens=size)
    read = tokens_of(folder, text if isinstance(text, Corpus) else corpus(text))
    rows = samples_of(read.held_out, segments, size)
    if bounds == "weights":
        found = list(weight_bounds(folder, network))
    else:
        found = text_bounds(network, samples_of(read.train, segments, size), report)
    heads = [
        [_window(given, layer, h, each, eta) for h, each in enumerate(of_layer)]
        for layer, of_layer in enumerate(found)
    ]
    checked = _checked(network, rows, heads, float(eta), report)
    widths = [h.width for h in checked if h.width is not None]
    whole = len(widths) == len(checked)
    widest = max(widths) if whole else None
    views = [("each head its own", [[h.width for h in layer] for layer in heads])] if widths else []
    if widest is not None:
        views.append(
            (f"{keys_text(widest)} tokens for all", [[widest for _ in layer] for layer in heads])
        )
    missing = next((h for h in checked if h.width is None), None)
    reason = (
        ""
        if missing is None
        else f"layer {missing.layer}, head {missing.head} has no window: {missing.reason}"
    )
    composed = _composed(network, rows, views, report)
    return ModelWindow(
        folder.name, bounds, eta, checked, widest, composed, size, len(rows), read.source, reason,
        folder.note, label,
    )  # fmt: skip


def keys_text(count: int | None) -> str:
    """A number of keys in a few characters.

    >>> keys_text(None), keys_text(2890), keys_text(20019671872824926)
    ('none', '2890', '2.00e+16')
    """
    if count is None or count < 10**7:
        return "none" if count is None else str(count)
    exponent = len(str(count)) - 1
    return f"{count // 10 ** (exponent - 2) / 100:.2f}e+{exponent}"


def _silent(stage: str, done: int, total: int) -> None:
    pass


def _window(
    given: Encoding, layer: int, h: int, bound: HeadBounds, eta: sympy.Rational
) -> HeadWindow:
    bias = given.head(h + 1 if given.num_heads > 1 else 1)
    described = str(bias) if len(str(bias)) <= 60 else given.name
    width, reason = window_of(bias, bound, eta)
    return HeadWindow(layer + 1, h + 1, described, bound.logit, bound.value, width, reason)


def window_of(bias: sympy.Expr, bound: HeadBounds, eta: sympy.Rational) -> tuple[int | None, str]:
    """The certified window of a head, or None with the reason."""
    if not (math.isfinite(bound.logit) and math.isfinite(bound.value)):
        return None, "its bounds are not finite"
    if bound.logit > MAX_LOGIT:
        return None, f"the logit bound {bound.logit:.4g} exceeds {MAX_LOGIT}"
    logit, value = upwards(bound.logit), upwards(max(bound.value, 2.0**-20))
    found = certified_window(bias, eta, logit, value)
    return found.width, found.reason


def upwards(x: float) -> sympy.Rational:
    """The least multiple of 2^-20 that is not below.

    >>> upwards(0.1) >= sympy.Rational(1, 10), float(upwards(0.1)) < 0.100001
    (True, True)
    """
    return sympy.Rational(math.ceil(sympy.Rational(*x.as_integer_ratio()) * 2**20), 2**20)


# -- bounds from weights --------------------------------------------------------------------------


@dataclass(frozen=True)
class Projections:
    """How queries, keys and values of a layer come from its normalised input.

    Args:
        gain, shift: of the norm, shape (width,).
        centred: whether the norm takes the mean away first (LayerNorm).
        query, key, value: shape (heads, head size, width).
        query_bias, key_bias, value_bias: shape (heads, head size).
        scale: what logits are multiplied with.
        clip: bound that every query, key and value entry is clamped to, or None.
        norm: the module that makes the normalised input.
    """

    gain: Tensor
    shift: Tensor
    centred: bool
    query: Tensor
    key: Tensor
    value: Tensor
    query_bias: Tensor
    key_bias: Tensor
    value_bias: Tensor
    scale: float
    clip: float | None
    norm: nn.Module


def weight_bounds(
    folder: Folder, model: Transformer | OutsideModel
) -> Iterator[tuple[HeadBounds, ...]]:
    """Bounds that hold for every text, one tuple of heads a layer, from the norms of the weights.

    Spectral norms are computed in float64 by QR and singular values, and enlarged by a millionth
    of the product of the Frobenius norms.
    """
    for p in projections(folder, model):
        root = math.sqrt(len(p.gain))

        def linear(weight: Tensor, p: Projections = p) -> Tensor:
            acting = weight * p.gain
            return acting - acting.mean(-1, keepdim=True) if p.centred else acting

        a, b, v = linear(p.query), linear(p.key), linear(p.value)
        constant = p.query @ p.shift + p.query_bias
        if p.clip is None:
            logit = root**2 * _norm_of_product(a, b) + root * _enlarged(
                (b.transpose(-2, -1) @ constant[..., None]).squeeze(-1).norm(dim=-1),
                _frobenius(b) * constant.norm(dim=-1),
            )
            value = root * _spectral(v)
        else:  # clamping makes every entry smaller, but what is common to the keys no more so
            most = p.clip * math.sqrt(a.shape[-2])
            sides = [
                (root * _spectral(linear(w)) + (w @ p.shift + c).norm(dim=-1)).clamp(max=most)
                for w, c in (
                    (p.query, p.query_bias), (p.key, p.key_bias), (p.value, p.value_bias)
                )
            ]  # fmt: skip
            logit, value = sides[0] * sides[1], sides[2]
        pairs = zip((p.scale * logit).tolist(), value.tolist(), strict=True)
        yield tuple(HeadBounds(*pair) for pair in pairs)


def _norm_of_product(a: Tensor, b: Tensor) -> Tensor:
    """Upper bounds of `||A^T B||_2`, one a head: with A^T = Q R, it is `||R_A R_B^T||_2`."""
    triangles = [torch.linalg.qr(x.transpose(-2, -1), mode="r").R for x in (a, b)]
    norm = torch.linalg.matrix_norm(triangles[0] @ triangles[1].transpose(-2, -1), 2)
    return _enlarged(norm, _frobenius(a) * _frobenius(b))


def _spectral(a: Tensor) -> Tensor:
    return _enlarged(torch.linalg.matrix_norm(a, 2), _frobenius(a))


def _frobenius(a: Tensor) -> Tensor:
    return torch.linalg.matrix_norm(a)


def _enlarged(norm: Tensor, size: Tensor) -> Tensor:
    return norm + _MARGIN * size


def projections(folder: Folder, model: Transformer | OutsideModel) -> Iterator[Projections]:
    """The projections of each layer in float64.

    Raises:
        InputError: the family is not one with an additive bias.
    """
    heads, size = folder.heads, folder.head_size
    layers = model.layers if isinstance(model, Transformer) else model.blocks
    for layer in layers:
        clip, scale = None, 1 / math.sqrt(size)
        match folder.family:
            case "farfield":
                norm, fused_weights = layer.attention_norm, layer.mixed
                parts = _split(fused_weights, lambda w: w.unflatten(0, (3, heads, size)))
            case "bloom":
                norm, fused_weights = layer.input_layernorm, layer.self_attention.query_key_value
                parts = _split(
                    fused_weights, lambda w: w.unflatten(0, (heads, 3, size)).transpose(0, 1)
                )
            case "mpt":
                norm, fused_weights = layer.norm_1, layer.attn.Wqkv
                parts = _split(fused_weights, lambda w: w.unflatten(0, (3, heads, size)))
                clip, scale = layer.attn.clip_qkv or None, layer.attn.softmax_scale
            case "falcon":
                norm = getattr(layer, "ln_attn", None) or layer.input_layernorm
                attention = layer.self_attention
                groups = attention.num_kv_heads
                parts = _split(
                    attention.query_key_value,
                    lambda w: _grouped(w.unflatten(0, (groups, -1, size)), heads),  # noqa: B023
                )
            case _:
                raise InputError(f"{folder.family} models have no additive bias to certify")
        gain = norm.weight.detach().double()
        shift = torch.zeros_like(gain) if norm.bias is None else norm.bias.detach().double()
        (query, query_bias), (key, key_bias), (value, value_bias) = parts
        yield Projections(
            gain, shift, True, query, key, value, query_bias, key_bias, value_bias, scale, clip,
            norm,
        )  # fmt: skip


def _split(fused_weights: Any, shaped: Callable[[Tensor], Any]) -> list[tuple[Tensor, Tensor]]:
    """Weights and biases of queries, keys and values from one matrix for all three."""
    weight = fused_weights.weight.detach().double()
    bias = fused_weights.bias
    bias = weight.new_zeros(len(weight)) if bias is None else bias.detach().double()
    return list(zip(shaped(weight), shaped(bias), strict=True))


def _grouped(groups: Tensor, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Each group holds its queries, then the one key and the one value they share."""
    each = heads // len(groups)
    key, value = (groups[:, at].repeat_interleave(each, 0) for at in (-2, -1))
    return groups[:, :-2].flatten(0, 1), key, value


# -- bounds and errors on a text ------------------------------------------------------------------


@torch.no_grad()
def text_bounds(
    model: LanguageModel, rows: np.ndarray, report: Progress = _silent
) -> list[tuple[HeadBounds, ...]]:
    """Maxima over segments, one tuple of heads a layer: half the range of the logits that a row
    sees, over all its rows, and the radius of the values about their mean in the first segment.

    Args:
        model: the model.
        rows: int64, shape (segments, length + 1), as `receptive_field.samples_of` gives them.
        report: called as `report(stage, done, total)`.
    """
    logits: dict[int, Tensor] = {}
    centres: dict[int, Tensor] = {}
    radii: dict[int, Tensor] = {}
    table = model.bias_table(rows.shape[1] - 1)

    def measure(layer: int, query: Tensor, key: Tensor, value: Tensor) -> None:
        v = value[0].double()
        centre = centres.setdefault(layer, v.mean(1, keepdim=True))
        radius = (v - centre).norm(dim=-1).amax(-1)
        widest = torch.zeros(len(v), dtype=torch.float64)
        for _, content, seen in _chunks(query, key, table):
            high = content.masked_fill(~seen, -math.inf).amax(-1)
            low = content.masked_fill(~seen, math.inf).amin(-1)
            widest = torch.maximum(widest, (high - low).amax(-1) / 2)
        logits[layer] = torch.maximum(logits.get(layer, widest), widest)
        radii[layer] = torch.maximum(radii.get(layer, radius), radius)

    _through_layers(model, rows, measure, "bounds", report)
    return [
        tuple(HeadBounds(*pair) for pair in zip(logits[k].tolist(), radii[k].tolist(), strict=True))
        for k in sorted(logits)
    ]


def _checked(
    model: LanguageModel,
    rows: np.ndarray,
    heads: list[list[HeadWindow]],
    eta: float,
    report: Progress,
) -> tuple[HeadWindow, ...]:
    """The windows with the largest error of each head on every row of the segments."""
    worst = [torch.zeros(len(layer), dtype=torch.float64) for layer in heads]
    exceeded = [torch.zeros(len(layer), dtype=torch.long) for layer in heads]
    table = model.bias_table(rows.shape[1] - 1)
    assert table is not None

    def measure(layer: int, query: Tensor, key: Tensor, value: Tensor) -> None:
        length, v = query.shape[2], value[0].double()
        widths = torch.tensor([min(w.width or length, length) for w in heads[layer]])
        for at, content, seen in _chunks(query, key, table):
            distance = (at[:, None] - torch.arange(content.shape[-1])).clamp(min=0)
            scores = (content + table[:, distance]).masked_fill(~seen, -math.inf)
            near = scores.masked_fill(distance >= widths[:, None, None], -math.inf)
            change = (scores.softmax(-1) - near.softmax(-1)) @ v[:, : content.shape[-1]]
            norms = change.norm(dim=-1)
            worst[layer] = torch.maximum(worst[layer], norms.amax(-1))
            exceeded[layer] += (norms > eta).sum(-1)

    with torch.no_grad():
        _through_layers(model, rows, measure, "errors of the heads", report)
    count = len(rows) * (rows.shape[1] - 1)
    return tuple(
        w
        if w.width is None
        else HeadWindow(
            w.layer, w.head, w.bias, w.logit_bound, w.value_bound, w.width, w.reason,
            float(worst[k][h]), count, int(exceeded[k][h]),
        )
        for k, layer in enumerate(heads)
        for h, w in enumerate(layer)
    )  # fmt: skip


def _through_layers(
    model: LanguageModel,
    rows: np.ndarray,
    measure: Callable[[int, Tensor, Tensor, Tensor], None],
    stage: str,
    report: Progress,
) -> None:
    """Full attention, one segment at a time, with a look at each layer's queries, keys, values."""
    for done, row in enumerate(torch.from_numpy(rows[:, :-1]), 1):
        layer = 0

        def path(
            query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, visible: Visibility
        ) -> Tensor:
            nonlocal layer
            measure(layer, query.cpu(), key.cpu(), value.cpu())
            layer += 1
            return fused(query, key, value, bias, visible)

        model.hidden(model.embed(row[None].to(model.device)), CAUSAL, path)
        report(stage, done, len(rows))


def _chunks(
    query: Tensor, key: Tensor, table: Tensor | None
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Content logits in float64, so many rows at a time: their positions, logits of shape (heads,
    rows, keys), and which of these keys have a weight at all."""
    _, heads, length, size = query.shape
    step = max(1, _SCORES // (heads * length))
    k = key[0].double().transpose(-2, -1) / math.sqrt(size)
    for start in range(0, length, step):
        at = torch.arange(start, min(start + step, length))
        content = query[0, :, at].double() @ k[..., : at[-1] + 1]
        distance = at[:, None] - torch.arange(int(at[-1]) + 1)
        seen = (distance >= 0)[None]
        if table is not None:
            seen = seen & (table[:, distance.clamp(min=0)] > -math.inf)
        yield at, content, seen.expand(content.shape)


@torch.no_grad()
def _composed(
    model: LanguageModel,
    rows: np.ndarray,
    views: list[tuple[str, list[list[int | None]]]],
    report: Progress,
) -> tuple[Composed, ...]:
    full = [_scored(model, row, None) for row in rows]
    found = []
    for done, (name, widths) in enumerate(views, 1):
        kept = [_scored(model, row, widths) for row in rows]
        report("the whole model", done, len(views))
        before, after = (np.stack([losses for losses, _ in each]) for each in (full, kept))
        relative = max(
            float(((a - b).norm(dim=-1) / b.norm(dim=-1)).max())
            for (_, a), (_, b) in zip(kept, full, strict=True)
        )
        ratios = np.exp(resampled((after - before).mean(1)))
        several = len(rows) > 1
        low, high = map(float, np.quantile(ratios, (0.025, 0.975))) if several else (None, None)
        found.append(
            Composed(
                name, float(after.mean()), float(before.mean()),
                float(np.exp((after - before).mean())), low, high,
                float(np.abs(after - before).max()), relative, after.size,
            )
        )  # fmt: skip
    return tuple(found)


def _scored(
    model: LanguageModel, row: np.ndarray, widths: list[list[int | None]] | None
) -> tuple[np.ndarray, Tensor]:
    """Losses of a segment in nats, and its last residuals, with a window for each head."""
    layer = 0

    def path(
        query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, visible: Visibility
    ) -> Tensor:
        nonlocal layer
        if widths is not None and bias is not None:
            length = query.shape[2]
            kept = [min(w or length, length) for w in widths[layer]]
            own = torch.tensor(kept, device=bias.device)
            beyond = torch.arange(length, device=bias.device) >= own[:, None]
            bias = bias.expand(len(own), -1).masked_fill(beyond, -math.inf)
        layer += 1
        return fused(query, key, value, bias, visible)

    tokens = torch.from_numpy(row).to(model.device)
    hidden = model.hidden(model.embed(tokens[None, :-1]), CAUSAL, path)[0]
    losses = [
        cross_entropy(model.logits(part).double(), target, reduction="none")
        for part, target in zip(hidden.split(512), tokens[1:].split(512), strict=True)
    ]
    return torch.cat(losses).cpu().numpy(), hidden.double().cpu()
