"""The certified window of a whole model: a width for every layer and head, and what it does.

`numerics.window` needs a bound of the content logits and one of the values. `bounds` takes them
from the weights, a proof for every text, or from a text, which another text may exceed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import sympy
import torch
from torch import Tensor

from farfield.numerics.windows.question import SCOPE
from farfield.theory.answers.answer import Answer, Code, Label, Reason, Status, deciding_head
from farfield.theory.answers.blocks import Block, facts, note, sentence, table
from farfield.theory.answers.names import one_of
from farfield.theory.answers.number import count, inside, listed, plural
from farfield.validation.checkpoints.folder import describe
from farfield.validation.checkpoints.head_audit import Head, windows_of
from farfield.validation.checkpoints.layer_audit import layers_of, widest
from farfield.validation.checkpoints.measured.segments import (
    Composed,
    LayerRows,
    Segments,
    View,
    composed,
    segments_of,
    text_bounds,
    through_layers,
)
from farfield.validation.checkpoints.norms import weight_bounds
from farfield.validation.defaults import TRAINED
from farfield.validation.harness.attention import Path, fused
from farfield.validation.harness.corpus import samples_of
from farfield.validation.harness.mechanism import Visibility
from farfield.validation.progress import Progress, silent
from farfield.validation.table_cells import sampled

_ROUNDING = 1e-5  # of an error, by queries, keys and values in float32

SOURCES = {
    "text": "bounds measured on a text, maxima that another text may exceed",
    "weights": "bounds from the norms of the weights, which hold for every text",
}


@dataclass(frozen=True, repr=False)
class ModelWindow(Answer):
    """Certified windows of a model; see `model_window`.

    Fields:
        model, source: its name, and where the bounds are from: `weights` or `text`.
        error: the budget of a head's output.
        heads: one a layer and head.
        sliding_window: the widest; infinite where a head has none, None where it is not known.
        composed: the measured effect, of the windows of each head and of the widest for all, each
            only where it drops a key of a segment.
        length, segments, text_source: the parts that were read to check.
        note: the library's steps beyond the formula.
        label: `certified` for bounds from weights, `measured` for those from text. Where a bound
            from weights is exceeded on the text, nothing is certified: the status is `unknown`, the
            code of the reason `broken_bound`.
    """

    VALUE: ClassVar[str] = "sliding_window"

    model: str
    source: str
    error: sympy.Rational
    heads: tuple[Head, ...] = ()
    sliding_window: float | None = None
    composed: tuple[Composed, ...] = ()
    length: int = 0
    segments: int = 0
    text_source: str = ""
    note: str = ""

    def _blocks(self) -> Iterator[Block]:
        said = {
            Status.INFINITE: "no window serves every head: {why}.",
            Status.UNKNOWN: "whether a window serves every head is not known: {why}.",
            Status.OUT_OF_SCOPE: "no positional claim is made: {why}.",
        }.get(
            self.status,
            "{setting} = {width} keeps the output of every head within {error}, {hypothesis}.",
        )
        width = count(int(self)) if self.status is Status.EXACT else ""
        yield sentence(
            "{model}: " + said,
            self.label,
            model=self.model,
            setting="sliding_window",
            width=width,
            error=self.error,
            hypothesis=self._hypothesis(),
            why=self.reason,
        )
        if not self.heads:
            if self.status is Status.INFINITE:
                yield note(
                    "What a window costs on a text: {command}.",
                    command="farfield perplexity --model FOLDER --length 4096 --window 1024",
                )
            return
        if self.reason is None or self.reason.code is not Code.BROKEN_BOUND:
            scope = SCOPE[0].upper() + SCOPE[1:]
            yield note("{scope}; {source}.", scope=scope, source=SOURCES[self.source])
        layers: dict[int, list[Head]] = {}
        for h in self.heads:
            layers.setdefault(h.layers[0], []).append(h)
        rows = [
            (
                layer,
                listed([count(h.window) for h in own]),
                f"{max(h.logit_bound for h in own):.4g}",
                f"{max(h.value_bound for h in own):.4g}",
            )
            for layer, own in layers.items()
        ]
        yield table(
            ("layer", "windows by head", "logits within", "values within"), rows, numeric=(0, 2, 3)
        )
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
        idle = sum(self.length <= (h.window or 0) < math.inf for h in self.heads)
        if idle:
            yield note(
                "The windows of {idle} of {heads} drop no key of a segment of {length} tokens: "
                "nothing was measured of them. Longer segments do, with {option}.",
                idle=idle,
                heads=plural(len(self.heads), "head"),
                length=self.length,
                option="--length",
            )
        if self.note:
            yield note("{note}.", note=self.note[0].upper() + self.note[1:])

    def _hypothesis(self) -> str:
        if not self.heads:
            return "whatever the input: no layer sees more"
        if self.source == "weights":
            return "for every text, by the norms of the weights"
        logit = max(h.logit_bound for h in self.heads)
        value = max(h.value_bound for h in self.heads)
        return (
            f"while logits stay within {logit:.4g} and values within {value:.4g}, the most on "
            "this text"
        )


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
        whole model. Without an additive bias it is what `audit` says: the widest sliding layer, or
        that no window is ever enough.

    Raises:
        InputError: as `folder.describe` and `loading.load`; a bad argument; a text too short.
    """
    eta = inside(error, "error", "(0, oo)")
    one_of(bounds, "bounds", SOURCES)
    folder = describe(model)
    if not any(a.biased for a in folder.attention):
        found = widest(folder, layers_of(folder, folder.trained or TRAINED))
        return ModelWindow(folder.name, bounds, eta, **found)
    given = segments_of(folder, text, length, segments)
    if bounds == "weights":
        limits = weight_bounds(folder)
    else:
        read = samples_of(given.read.train, len(given.rows), given.length)
        limits = [*text_bounds(given.network, read, progress)]
    pairs = windows_of(folder, limits, eta)
    heads = [
        [replace(head, layers=(layer,)) for head, _ in pairs if layer in head.layers]
        for layer in range(1, folder.shape.layers + 1)
    ]
    checked = _checked(given, heads, float(eta), progress)
    worst = deciding_head([window for _, window in pairs], lambda w: w.width)
    views: dict[str, View] = {}
    widths = [[h.window for h in layer] for layer in heads]
    if any(_within(w, given.length) < given.length for layer in widths for w in layer):
        views["each head its own"] = _head_windows(widths)
    if worst.status is Status.EXACT and _within(worst.width, given.length) < given.length:
        every = [[worst.width for _ in layer] for layer in heads]
        views[f"{count(worst.width)} tokens for all"] = _head_windows(every)
    label = Label.CERTIFIED if bounds == "weights" else Label.MEASURED
    if worst.status is Status.INFINITE:
        label = Label.THEOREM
    status, width, reason = worst.status, worst.width, None
    if worst.status is not Status.EXACT and worst.reason is not None:
        at = next(h for h in checked if h.reason == worst.reason)
        said = f"layer {at.layers[0]}, head {at.head} has no window: {worst.reason}"
        reason = Reason(worst.reason.code, said)
    if bounds == "weights" and (broken := _broken(checked, eta)) is not None:
        status, width, reason = Status.UNKNOWN, None, broken
    return ModelWindow(
        folder.name,
        bounds,
        eta,
        checked,
        width,
        composed(given.network, given.rows, views, progress),
        given.length,
        len(given.rows),
        given.read.source,
        folder.note,
        status=status,
        label=None if status is Status.UNKNOWN else label,
        reason=reason,
    )


def _broken(heads: Sequence[Head], error: sympy.Rational) -> Reason | None:
    """Why nothing is certified, where a text exceeds a bound that is to hold for every text."""
    failed = [h for h in heads if h.exceeded]
    if not failed:
        return None
    worst = max(failed, key=lambda h: h.error or 0.0)
    rows = sum(h.exceeded for h in failed), sum(h.rows for h in heads)
    return Reason(
        Code.BROKEN_BOUND,
        f"the bounds by the weights do not hold of the model that was measured: {rows[0]:,} of "
        f"{rows[1]:,} rows exceed the error {error}, the worst, {worst.error:.3g}, in layer "
        f"{worst.layers[0]}, head {worst.head}",
    )


def _checked(
    given: Segments, heads: Sequence[Sequence[Head]], eta: float, progress: Progress
) -> tuple[Head, ...]:
    """The windows with the largest error of each head on every row of the segments."""
    length = given.length

    def measure(layer: LayerRows) -> Tensor:
        """The largest error of each head, and how many rows exceed the budget."""
        widths = torch.tensor([_within(w.window, length) for w in heads[layer.layer]])
        worst, exceeded = torch.zeros(2, len(widths), dtype=torch.float64)
        for at, content, prior, seen in layer.blocks():
            distance = at[:, None] - torch.arange(content.shape[-1])
            scores = (content + prior).masked_fill(~seen, -math.inf)
            near = scores.masked_fill(distance >= widths[:, None, None], -math.inf)
            change = scores.softmax(-1) - near.softmax(-1)
            norms = (change @ layer.value[:, : content.shape[-1]]).norm(dim=-1)
            worst = torch.maximum(worst, norms.amax(-1))
            exceeded = exceeded + (norms > eta * (1 + _ROUNDING)).sum(-1)
        return torch.stack([worst, exceeded], -1)

    parts = through_layers(given.network, given.rows, measure, "errors of the heads", progress)
    found = []
    for at, layer in enumerate(heads):
        each = torch.stack(parts[at])
        pairs = zip(each[..., 0].amax(0).tolist(), each[..., 1].sum(0).tolist(), strict=True)
        for head, (error, exceeded) in zip(layer, pairs, strict=True):
            dropped = len(given.rows) * (length - _within(head.window, length))
            more = {"error": error, "rows": dropped, "exceeded": int(exceeded)} if dropped else {}
            found.append(replace(head, **more))
    return tuple(found)


def _within(width: float | None, length: int) -> int:
    """The keys that a head keeps of a row; all of them without a window."""
    return length if width is None else int(min(width, length))


def _head_windows(widths: list[list[float | None]]) -> Callable[[], Path]:
    """Makes a path with a window for each layer and head."""

    def make() -> Path:
        layer = 0

        def path(
            query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, visible: Visibility
        ) -> Tensor:
            nonlocal layer
            if bias is not None:
                length = query.shape[2]
                own = torch.tensor([_within(w, length) for w in widths[layer]], device=bias.device)
                beyond = torch.arange(length, device=bias.device) >= own[:, None]
                bias = bias.expand(len(own), -1).masked_fill(beyond, -math.inf)
            layer += 1
            return fused(query, key, value, bias, visible)

        return path

    return make
