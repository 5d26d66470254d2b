"""A window with kept first keys on a real text: which rows it is certified for, layer by layer.

No hypothesis on the encoding: a row is certified from its own kept weight and a bound of the logits
it drops (`numerics.windows.row_bound`; theorem row-certificate), so rotations and absolute
positions are covered, which no fixed window serves for every input. Beside the certificate stands
what the window did, with the first keys and without; and whether the dropped mass is what the prior
alone would drop (theorem average-leak), logits as they are and permuted within each row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import sympy
import torch
from torch import Tensor

from farfield.theory.answers.answer import Answer, InputError, Label
from farfield.theory.answers.blocks import Block, note, sentence, table
from farfield.theory.answers.number import count, inside, natural, plural
from farfield.validation.checkpoints.folder import describe
from farfield.validation.checkpoints.loading import load
from farfield.validation.checkpoints.measured.composed import Composed, composed
from farfield.validation.checkpoints.text_bounds import through_layers
from farfield.validation.checkpoints.texts import tokens_of
from farfield.validation.harness.attention import LogitTransform
from farfield.validation.harness.corpus import samples_of
from farfield.validation.harness.measures.receptive_fields import LanguageModel
from farfield.validation.harness.visibility import Visibility, WithSinks
from farfield.validation.progress import Progress, silent
from farfield.validation.table_cells import sampled

ROWS = 128
"""Rows of a segment, evenly spaced."""


@dataclass(frozen=True)
class LayerCertificate:
    """One layer, over all its heads and the rows that were read.

    Fields:
        layer: from 1.
        rows: that drop keys at all; the others are of no account below.
        certified, certified_without: shares of them, with the first keys kept and without.
        bound: median bound of the change of the output, with the first keys kept.
        error, error_without: the largest change of an output, measured.
        exceeded: rows that changed by more than their bound; the theorem says none.
        spread: the widest range of the content logits of a row.
        value_bound: the radius of the values, about their mean unless there is a learned constant.
        outside: mean share of the mass beyond the window, measured.
        permuted: the same with the content logits of each row permuted.
        leak: what the prior alone leaves beyond the window, mean over the same rows.
        deviation: the standard error of the mean of permuted less leak.
    """

    layer: int
    rows: int
    certified: float | None
    certified_without: float | None
    bound: float | None
    error: float
    error_without: float
    exceeded: int
    spread: float
    value_bound: float
    outside: float | None
    permuted: float | None
    leak: float | None
    deviation: float | None


@dataclass(frozen=True, repr=False)
class ModelCertificate(Answer):
    """Which rows of a text a window serves; see `model_certificate`.

    Fields:
        model: its name.
        keep, sinks: nearest keys that are kept, and first ones.
        error: the budget of a head's output.
        share: of the rows that drop keys, over all layers: how many are certified; None where
            none drops any.
        layers: one entry a layer.
        composed: what the window does to the whole model, with the first keys and without.
        length, segments, text_source: what was read.
        label: `measured`: the certificates are inequalities for the rows that were read.
    """

    VALUE: ClassVar[str] = "share"

    model: str
    keep: int
    sinks: int
    error: sympy.Rational
    share: float | None = None
    layers: tuple[LayerCertificate, ...] = ()
    composed: tuple[Composed, ...] = ()
    length: int = 0
    segments: int = 0
    text_source: str = field(default="")

    def _blocks(self) -> Iterator[Block]:
        said = "{model}: no row of {length} tokens drops a key."
        if self.share is not None:
            said = (
                "{model}: keeping {keep}{sinks} is certified for {share} of the rows that drop "
                "keys, at an error of {error} of a head's output."
            )
        yield sentence(
            said,
            self.label,
            model=self.model,
            keep=plural(self.keep, "nearest key"),
            sinks=f" and {plural(self.sinks, 'first key')}" if self.sinks else "",
            error=self.error,
            length=self.length,
            share="" if self.share is None else f"{self.share:.1%}",
        )
        header = (
            "layer",
            "certified",
            "no first keys",
            "median bound",
            "largest change",
            "no first keys",
            "logits range over",
            "values within",
        )
        rows = [
            (
                k.layer,
                *(
                    (f"{x:.1%}" if x is not None else "drops none")
                    for x in (k.certified, k.certified_without)
                ),
                "" if k.bound is None else f"{k.bound:.3g}",
                f"{k.error:.3g}",
                f"{k.error_without:.3g}",
                f"{k.spread:.4g}",
                f"{k.value_bound:.4g}",
            )
            for k in self.layers
        ]
        yield table(
            header,
            rows,
            f"Rows of all heads: {sampled(self.segments, self.length)}",
            numeric=(0, 1, 2, 3, 4, 5, 6, 7),
        )
        if failed := sum(k.exceeded for k in self.layers):
            yield note("{count} changed by more than their bound.", count=plural(failed, "row"))
        masses = [
            (k.layer, *(f"{x:.4g}" for x in (k.outside, k.permuted, k.leak)), f"{k.deviation:.1g}")
            for k in self.layers
            if k.outside is not None
        ]
        if masses:
            yield table(
                ("layer", "measured", "logits permuted", "leak", "standard error"),
                masses,
                "Mean mass beyond the window; by theorem average-leak at least the leak where "
                "logits are exchangeable and the bias does not rise",
                numeric=(0, 1, 2, 3, 4),
            )
        if self.composed:
            yield table(
                ("whole model", "perplexity ratio", "log-probability of a token", "last residual"),
                [c.row() for c in self.composed],
                "The whole model with the window in every layer, measured",
            )
        yield note(
            "Text: {text}. One head, one layer, before the output projection; float64.",
            text=self.text_source,
        )


def model_certificate(
    model: Any,
    keep: Any,
    error: Any,
    *,
    sinks: Any = 4,
    text: Any = None,
    length: int | None = None,
    segments: int = 4,
    progress: Progress = silent,
) -> ModelCertificate:
    """Which rows of a text a window with kept first keys is certified for, layer by layer.

    Args:
        model: a folder that `folder.describe` knows, or what it says of one.
        keep: nearest keys that are kept, the query's own included.
        error: the budget eta > 0 of the norm of a head's output, before the output projection.
        sinks: first keys that are also kept, at most as many as `keep`.
        text: a file, a folder or a `Corpus`; None takes the source code of the standard library.
            Its held-out part is read.
        length: tokens a segment; None takes the training length, at most 1024.
        segments: how many.
        progress: told how far it is.

    Raises:
        InputError: as `folder.describe` and `loading.load`; a bad argument; a text too short.
    """
    near, first = natural(keep, "keep"), natural(sinks, "sinks", 0)
    if first > near:
        raise InputError(f"sinks {first} are more than the window of {near} keys")
    eta = inside(error, "error", "(0, oo)")
    length = None if length is None else natural(length, "length")
    segments = natural(segments, "segments")
    folder = describe(model)
    size = length or min(folder.trained or 1024, 1024)
    network = load(folder, tokens=size)
    read = tokens_of(folder, text)
    rows = samples_of(read.held_out, segments, size)
    attending = [k for k, a in enumerate(folder.attention, 1) if a.encoding is not None]
    found = _measured(network, rows, attending, near, first, float(eta), progress)
    counted = [k for k in found if k.rows]
    total = sum(k.rows for k in counted)
    share = sum((k.certified or 0.0) * k.rows for k in counted) / total if total else None
    views: dict[str, Visibility] = {f"{count(near)} keys": Visibility(window=near)}
    if first:
        views[f"{count(near)} keys and {first} first"] = WithSinks(window=near, sinks=first)
    return ModelCertificate(
        folder.name,
        near,
        first,
        eta,
        share,
        found,
        composed(network, rows, views, progress) if total else (),
        size,
        len(rows),
        read.source,
        label=Label.MEASURED,
        subject=folder.name,
    )


def _measured(
    model: LanguageModel,
    rows: np.ndarray,
    attending: Sequence[int],
    keep: int,
    sinks: int,
    eta: float,
    progress: Progress,
) -> tuple[LayerCertificate, ...]:
    """Every layer on the segments, one after the other."""
    table = model.bias_table(rows.shape[1] - 1)
    found: dict[int, list[dict[str, Tensor]]] = {}

    def measure(
        layer: int, query: Tensor, key: Tensor, value: Tensor, seen: Visibility, by: LogitTransform
    ) -> None:
        read = _rows(query, key, value, seen, by, table, keep, sinks)
        found.setdefault(layer, []).append(read)

    through_layers(model, rows, measure, "rows of the layers", progress)
    return tuple(_of_layer(k, found[at], eta) for at, k in enumerate(attending))


def _rows(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    visible: Visibility,
    weighting: LogitTransform,
    table: Tensor | None,
    keep: int,
    sinks: int,
) -> dict[str, Tensor]:
    """The rows of one layer of one segment that drop keys, all heads in one vector each; the widest
    range of the content logits of a row, and the radius of the values."""
    length, size = query.shape[-2:]
    at = torch.linspace(0, length - 1, min(ROWS, length)).long().unique()
    keys_at = torch.arange(length)
    seen = visible.sees(at[:, None], keys_at)
    dropping = (seen & (at[:, None] - keys_at >= keep) & (keys_at >= sinks)).any(-1)
    at, seen = at[dropping], seen[dropping]
    q, k, v = (x[0].double().cpu() for x in (query, key, value))
    content, prior, sink = logits_of(query, key, weighting, table, at)
    near = seen & (at[:, None] - keys_at < keep)
    both = near | (seen & (keys_at < sinks))
    centre = 0 if sink is not None else v.mean(1, keepdim=True)
    radius = (v - centre).norm(dim=-1).amax(-1)
    norms = q[:, at].norm(dim=-1) / math.sqrt(size)
    scores = (content + prior).masked_fill(~seen, -math.inf)
    full = _weights(scores, sink)

    def of_kept(kept: Tensor) -> tuple[Tensor, Tensor]:
        """The bound of each row, and what the output moved by."""
        out = seen & ~kept
        most = norms * k.norm(dim=-1)[:, None].expand(-1, len(at), -1).masked_fill(~out, 0).amax(-1)
        most = weighting.content(most) + prior.masked_fill(~out, -math.inf).amax(-1)
        inside = scores.masked_fill(~kept, -math.inf)
        if sink is not None:
            constant = sink[:, None, None].expand(-1, len(at), 1)
            log_z = torch.cat([inside, constant], -1).logsumexp(-1)
        else:
            log_z = inside.logsumexp(-1)
        gap = log_z - most - out.sum(-1).double().log()
        bound = 2 * radius[:, None] / (1 + gap.clamp(max=700).exp())
        return bound, ((full - _weights(inside, sink)) @ v).norm(dim=-1)

    bound, moved = of_kept(both)
    bound_without, moved_without = of_kept(near)
    mass = scores.softmax(-1)
    draws = torch.rand(scores.shape, generator=torch.Generator().manual_seed(0))
    order = draws.masked_fill(~seen, 2.0).argsort(-1)  # the keys that are seen come first
    places = (~seen).to(torch.int8).sort(dim=-1, stable=True).indices
    shuffled = torch.zeros_like(content).scatter(
        -1, places.expand_as(order), content.gather(-1, order)
    )
    mixed = (shuffled + prior).masked_fill(~seen, -math.inf).softmax(-1)
    alone = prior.masked_fill(~seen, -math.inf).softmax(-1).expand_as(mass)
    high, low = (content.masked_fill(~seen, -sign * math.inf) for sign in (1, -1))
    high, low = high.amax(-1), low.amin(-1)
    far = seen & ~near
    widest = (high - low).flatten().amax(-1, keepdim=True) if len(at) else torch.zeros(1)
    found = {
        "bound": bound.flatten(),
        "bound_without": bound_without.flatten(),
        "moved": moved.flatten(),
        "moved_without": moved_without.flatten(),
        "spread": widest,
        "values": radius.amax(-1, keepdim=True),
    }
    masses = zip(("outside", "permuted", "leak"), (mass, mixed, alone), strict=True)
    return found | {name: (x * far).sum(-1).flatten() for name, x in masses}


def logits_of(
    query: Tensor, key: Tensor, weighting: LogitTransform, table: Tensor | None, at: Tensor
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Content logits and biases of some rows in float64, shapes (heads, rows, keys), heads 1 for a
    bias that all share; and the learned constants of the heads."""
    q, k = (x[0].double().cpu() for x in (query, key))
    content = weighting.content(q[:, at] @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]))
    prior = torch.zeros(1, len(at), k.shape[-2], dtype=torch.float64)
    if table is not None:
        prior = table[:, (at[:, None] - torch.arange(k.shape[-2])).clamp(min=0)]
    return content, prior, None if weighting.sink is None else weighting.sink.double().cpu()


def _weights(scores: Tensor, sink: Tensor | None) -> Tensor:
    """Weights of the keys, shape (heads, rows, keys)."""
    return LogitTransform(sink=sink).softmax(scores[None])[0]


def _of_layer(layer: int, parts: Sequence[dict[str, Tensor]], eta: float) -> LayerCertificate:
    rows = {name: torch.cat([p[name] for p in parts]) for name in parts[0]}
    values, spread = float(rows["values"].max()), float(rows["spread"].max())
    bound, moved = rows["bound"], rows["moved"]
    if not len(bound):
        nothing = (None,) * 4
        return LayerCertificate(layer, 0, None, None, None, 0.0, 0.0, 0, spread, values, *nothing)
    bound_without, moved_without = rows["bound_without"], rows["moved_without"]
    slack = 1e-9 * (1 + values)
    return LayerCertificate(
        layer,
        len(bound),
        float((bound <= eta).double().mean()),
        float((bound_without <= eta).double().mean()),
        float(bound.median()),
        float(moved.amax()),
        float(moved_without.amax()),
        int((moved > bound + slack).sum() + (moved_without > bound_without + slack).sum()),
        spread,
        values,
        float(rows["outside"].mean()),
        float(rows["permuted"].mean()),
        float(rows["leak"].mean()),
        float((rows["permuted"] - rows["leak"]).std() / math.sqrt(len(bound))),
    )
