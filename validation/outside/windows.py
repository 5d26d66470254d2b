"""The certified window of a whole model: a width for every layer and head, and what it does.

`numerics.window` needs a bound of the content logits and one of the values; `bounds` takes them
from the weights, a proof for every text, or from a text, which another text may exceed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import sympy
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from farfield.numerics.windows.question import SCOPE, Window
from farfield.theory.answers.answer import Answer, InputError, Label, Reason, Status, decisive
from farfield.theory.answers.blocks import Block, facts, note, sentence, table
from farfield.theory.answers.number import exact
from farfield.theory.answers.wording import count, listed, plural
from farfield.validation.measures.receptive_fields import LanguageModel, resampled, samples_of
from farfield.validation.models.attention import fused
from farfield.validation.outside.bounds import chunks, text_bounds, through_layers, weight_bounds
from farfield.validation.outside.folder import Folder, describe
from farfield.validation.outside.head_window import head_window
from farfield.validation.outside.loading import load
from farfield.validation.outside.texts import tokens_of
from farfield.validation.progress import Progress, silent
from farfield.validation.settings.visibility import CAUSAL, Visibility
from farfield.validation.short import sampled
from farfield.validation.text.corpus import Corpus
from farfield.validation.text.reading import corpus

SOURCES = {
    "text": "bounds measured on a text, maxima that another text may exceed",
    "weights": "bounds from the norms of the weights, which hold for every text",
}


@dataclass(frozen=True)
class HeadWindow:
    """The window of one head, and its error on real activations.

    Fields:
        layer, head: from 1.
        bias: the formula.
        logit_bound, value_bound: what it is certified for.
        width: keys to keep; infinite where no window is enough, None where that is not known.
        reason: why it is no number.
        error: the largest change of the head's output on the rows read, measured; None without.
        rows, exceeded: rows measured, and how many changed by more than the budget.
    """

    layer: int
    head: int
    bias: str
    logit_bound: float
    value_bound: float
    width: float | None
    reason: Reason | None = None
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

    def row(self) -> tuple[str, ...]:
        """The cells of a table."""
        between = (
            "" if self.ratio_low is None else f" ({self.ratio_low:.6f} to {self.ratio_high:.6f})"
        )
        return (self.windows, f"{self.ratio:.6f}{between}", f"within {self.largest:.3g}",
                f"within {self.relative:.2g} of its norm")  # fmt: skip


@dataclass(frozen=True, repr=False)
class ModelWindow(Answer):
    """Certified windows of a model; see `model_window`.

    Fields:
        model, source: its name, and where the bounds are from: `weights` or `text`.
        error: the budget of a head's output.
        heads: one a layer and head.
        sliding_window: the widest; infinite where a head has none, None where it is not known.
        composed: the measured effect, of the windows of each head and of the widest for all.
        length, segments, text_source: what was read to check.
        note: what the library does besides the formula.
        label: `certified` for bounds from weights, `measured` for those from text.
    """

    VALUE: ClassVar[str] = "sliding_window"

    model: str
    source: str
    error: sympy.Rational
    heads: tuple[HeadWindow, ...] = ()
    sliding_window: float | None = None
    composed: tuple[Composed, ...] = ()
    length: int = 0
    segments: int = 0
    text_source: str = ""
    note: str = ""

    def blocks(self) -> Sequence[Block]:
        return tuple(self._blocks())

    def _blocks(self) -> Iterator[Block]:
        said = {
            Status.INFINITE: "no window serves every head: {why}.",
            Status.UNKNOWN: "whether a window serves every head is not known: {why}.",
            Status.OUT_OF_SCOPE: "no window is certified: {why}.",
        }.get(
            self.status,
            "a sliding window of {width} keeps the output of every head within {error}.",
        )
        width = plural(int(self), "token") if self.status is Status.EXACT else ""
        yield sentence("{model}: " + said, self.label, model=self.model, width=width,
                       error=self.error, why=self.reason)  # fmt: skip
        if not self.heads:
            return
        yield note("{scope}; {source}.", scope=SCOPE[0].upper() + SCOPE[1:],
                   source=SOURCES[self.source])  # fmt: skip
        layers: dict[int, list[HeadWindow]] = {}
        for h in self.heads:
            layers.setdefault(h.layer, []).append(h)
        rows = [
            (layer, listed([count(h.width) for h in own]),
             f"{max(h.logit_bound for h in own):.4g}", f"{max(h.value_bound for h in own):.4g}")
            for layer, own in layers.items()
        ]  # fmt: skip
        yield table(("layer", "windows by head", "logits within", "values within"), rows,
                    numeric=(0, 2, 3))  # fmt: skip
        if checked := [h for h in self.heads if h.error is not None]:
            worst = max(h.error or 0.0 for h in checked)
            yield facts(
                error_by_the_bound=f"at most {float(self.error):g}",
                error_measured=f"at most {worst:.3g} on {sum(h.rows for h in checked):,} rows, "
                f"{sum(h.exceeded for h in checked)} above the bound",
            )
        if self.composed:
            yield table(
                ("whole model", "perplexity ratio", "log-probability of a token", "last residual"),
                [c.row() for c in self.composed],
                f"The whole model with its windows, measured: "
                f"{sampled(self.segments, self.length)}",
            )
            yield note("Text: {text}.", text=self.text_source)
        if self.status is Status.EXACT and int(self) >= self.length > 0:
            yield note("Segments of {length} tokens never leave the widest window.",
                       length=self.length)  # fmt: skip
        if self.note:
            yield note("{note}.", note=self.note[0].upper() + self.note[1:])


def model_window(
    model: Any,
    error: Any,
    *,
    bounds: str = "text",
    text: Any = None,
    length: int | None = None,
    segments: int = 4,
    progress: Progress = silent,
) -> ModelWindow:
    """Windows that keep the output of every head within `error`, for a model on this machine.

    Args:
        model: a folder that `folder.describe` knows, or what it says of one.
        error: the budget eta > 0 of the norm of a head's output, before the output projection.
        bounds: `text` takes maxima over the training part of the text, measured; `weights` takes
            norms of the weights, which holds for every text.
        text: a file, a folder or a `Corpus`; None takes the source code of the standard library.
            Errors and perplexity are measured on its held-out part.
        length: tokens a segment; None takes the training length, at most 1024.
        segments: how many, of either part.
        progress: told how far it is.

    Returns:
        One window a layer and head, each with its measured error, and the measured effect on the
        whole model. An encoding without additive bias has none, and the answer says so.

    Raises:
        InputError: as `folder.describe` and `loading.load`; a bad argument; a text too short.
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
        return ModelWindow(
            folder.name, bounds, eta, status=Status.OUT_OF_SCOPE, label=None,
            reason=given.out_of_scope,
        )  # fmt: skip
    size = length or min(folder.trained or 1024, 1024)
    network = load(folder, tokens=size)
    read = tokens_of(folder, text if isinstance(text, Corpus) else corpus(text))
    rows = samples_of(read.held_out, segments, size)
    if bounds == "weights":
        limits = list(weight_bounds(network))
    else:
        limits = text_bounds(network, samples_of(read.train, segments, size), progress)
    found = [
        [head_window(given.head(h if given.num_heads > 1 else 1), limit, eta)
         for h, limit in enumerate(of_layer, 1)]
        for of_layer in limits
    ]  # fmt: skip
    heads = [
        [HeadWindow(layer, h, _bias_text(w, given.name), limit.logit, limit.value, w.width,
                    w.reason) for h, (w, limit) in enumerate(zip(each, own, strict=True), 1)]
        for layer, (each, own) in enumerate(zip(found, limits, strict=True), 1)
    ]  # fmt: skip
    checked = _checked(network, rows, heads, float(eta), progress)
    worst = decisive([w for each in found for w in each], lambda w: w.width)
    views: list[tuple[str, list[list[float | None]]]] = []
    if any(w.status is Status.EXACT for each in found for w in each):
        views.append(("each head its own", [[h.width for h in layer] for layer in heads]))
    if worst.status is Status.EXACT:
        name = f"{count(worst.width)} tokens for all"
        views.append((name, [[worst.width for _ in layer] for layer in heads]))
    label = Label.CERTIFIED if bounds == "weights" else Label.MEASURED
    if worst.status is Status.INFINITE:
        label = Label.THEOREM
    return ModelWindow(
        folder.name, bounds, eta, checked, worst.width, _composed(network, rows, views, progress),
        size, len(rows), read.source, folder.note, status=worst.status,
        label=None if worst.status is Status.UNKNOWN else label, reason=_why(worst, checked),
    )  # fmt: skip


def _bias_text(window: Window, name: str) -> str:
    described = str(window.formula)
    return described if len(described) <= 60 else name


def _why(worst: Window, heads: Sequence[HeadWindow]) -> Reason | None:
    """The reason of the head that decides, with its place."""
    if worst.status is Status.EXACT or worst.reason is None:
        return None
    at = next(h for h in heads if h.reason == worst.reason)
    said = f"layer {at.layer}, head {at.head} has no window: {worst.reason}"
    return Reason(worst.reason.code, said)


def _checked(
    model: LanguageModel,
    rows: np.ndarray,
    heads: Sequence[Sequence[HeadWindow]],
    eta: float,
    progress: Progress,
) -> tuple[HeadWindow, ...]:
    """The windows with the largest error of each head on every row of the segments."""
    worst = [torch.zeros(len(layer), dtype=torch.float64) for layer in heads]
    exceeded = [torch.zeros(len(layer), dtype=torch.long) for layer in heads]
    table = model.bias_table(rows.shape[1] - 1)
    assert table is not None

    def measure(layer: int, query: Tensor, key: Tensor, value: Tensor) -> None:
        length, v = query.shape[2], value[0].double()
        widths = torch.tensor([_within(w.width, length) for w in heads[layer]])
        for at, content, seen in chunks(query, key, table):
            distance = (at[:, None] - torch.arange(content.shape[-1])).clamp(min=0)
            scores = (content + table[:, distance]).masked_fill(~seen, -math.inf)
            near = scores.masked_fill(distance >= widths[:, None, None], -math.inf)
            change = (scores.softmax(-1) - near.softmax(-1)) @ v[:, : content.shape[-1]]
            norms = change.norm(dim=-1)
            worst[layer] = torch.maximum(worst[layer], norms.amax(-1))
            exceeded[layer] += (norms > eta).sum(-1)

    with torch.no_grad():
        through_layers(model, rows, measure, "errors of the heads", progress)
    read = len(rows) * (rows.shape[1] - 1)
    return tuple(
        replace(w, error=float(worst[k][h]), rows=read, exceeded=int(exceeded[k][h]))
        if w.width is not None and math.isfinite(w.width)
        else w
        for k, layer in enumerate(heads)
        for h, w in enumerate(layer)
    )


def _within(width: float | None, length: int) -> int:
    """The keys that a head keeps of a row; all of them without a window."""
    return length if width is None else int(min(width, length))


@torch.no_grad()
def _composed(
    model: LanguageModel,
    rows: np.ndarray,
    views: Sequence[tuple[str, list[list[float | None]]]],
    progress: Progress,
) -> tuple[Composed, ...]:
    full = [_scored(model, row, None) for row in rows]
    found = []
    for done, (name, widths) in enumerate(views, 1):
        kept = [_scored(model, row, widths) for row in rows]
        progress("the whole model", done, len(views))
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
    model: LanguageModel, row: np.ndarray, widths: list[list[float | None]] | None
) -> tuple[np.ndarray, Tensor]:
    """Losses of a segment in nats, and its last residuals, with a window for each head."""
    layer = 0

    def path(
        query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, visible: Visibility
    ) -> Tensor:
        nonlocal layer
        if widths is not None and bias is not None:
            length = query.shape[2]
            kept = [_within(w, length) for w in widths[layer]]
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
