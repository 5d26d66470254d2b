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

import sympy
import torch
from torch import Tensor

from farfield.theory.answers.answer import Answer, InputError, Label
from farfield.theory.answers.blocks import Block, note, sentence, table
from farfield.theory.answers.number import count, inside, natural, plural
from farfield.validation.checkpoints.measured.segments import (
    ROWS,
    Composed,
    LayerRows,
    composed,
    segments_of,
    through_layers,
)
from farfield.validation.harness.attention import LogitTransform
from farfield.validation.harness.mechanism import Visibility
from farfield.validation.progress import Progress, silent
from farfield.validation.table_cells import sampled


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
    given = segments_of(model, text, length, segments)

    def measure(layer: LayerRows) -> tuple[Tensor, Tensor]:
        return _rows(layer, near, first)

    parts = through_layers(given.network, given.rows, measure, "rows of the layers", progress)
    attending = [k for k, a in enumerate(given.folder.attention, 1) if a.encoding is not None]
    found = tuple(_of_layer(k, parts[at], float(eta)) for at, k in enumerate(attending))
    total = sum(k.rows for k in found)
    share = sum((k.certified or 0.0) * k.rows for k in found) / total if total else None
    views: dict[str, Visibility] = {f"{count(near)} keys": Visibility(window=near)}
    if first:
        views[f"{count(near)} keys and {first} first"] = Visibility(window=near, sinks=first)
    return ModelCertificate(
        given.folder.name,
        near,
        first,
        eta,
        share,
        found,
        composed(given.network, given.rows, views, progress) if total else (),
        given.length,
        len(given.rows),
        given.read.source,
        label=Label.MEASURED,
        subject=given.folder.name,
    )


def _rows(given: LayerRows, keep: int, sinks: int) -> tuple[Tensor, Tensor]:
    """The rows of one layer of one segment that drop keys, those of all heads behind each other:
    bounds and changes with the first keys and without, and the masses beyond the window; then the
    widest range of the content logits of a row, and the radius of the values."""
    length, size = given.query.shape[-2:]
    at = torch.linspace(0, length - 1, min(ROWS, length)).long().unique()
    keys = torch.arange(length)
    dropped = given.visible.sees(at[:, None], keys) & (at[:, None] - keys >= keep)
    at = at[(dropped & (keys >= sinks)).any(-1)]
    content, prior, seen = given.logits(at)
    v, sink = given.value, given.sink
    near = seen & (at[:, None] - keys < keep)
    far, both = seen & ~near, near | (seen & (keys < sinks))
    centre = 0 if sink is not None else v.mean(1, keepdim=True)
    radius = (v - centre).norm(dim=-1).amax(-1)
    norms = given.query[:, at].norm(dim=-1) / math.sqrt(size)
    lengths = given.key.norm(dim=-1)[:, None].expand(-1, len(at), -1)
    scores = (content + prior).masked_fill(~seen, -math.inf)
    weigh = LogitTransform(sink=sink).softmax
    full = weigh(scores[None])[0]

    def of_kept(kept: Tensor) -> tuple[Tensor, Tensor]:
        """The bound of each row, and what the output moved by."""
        out, inside = seen & ~kept, scores.masked_fill(~kept, -math.inf)
        most = given.weighting.content(norms * lengths.masked_fill(~out, 0).amax(-1))
        most = most + prior.masked_fill(~out, -math.inf).amax(-1)
        log_z = inside.logsumexp(-1)
        if sink is not None:
            log_z = torch.logaddexp(log_z, sink[:, None].expand(log_z.shape))
        gap = log_z - most - out.sum(-1).double().log()
        bound = 2 * radius[:, None] / (1 + gap.clamp(max=700).exp())
        return bound, ((full - weigh(inside[None])[0]) @ v).norm(dim=-1)

    draws = torch.rand(scores.shape, generator=torch.Generator().manual_seed(0))
    order = draws.masked_fill(~seen, 2.0).argsort(-1)  # the keys that are seen come first
    places = (~seen).to(torch.int8).sort(dim=-1, stable=True).indices
    shuffled = torch.zeros_like(content).scatter(
        -1, places.expand_as(order), content.gather(-1, order)
    )
    logits = (scores, shuffled + prior, prior.expand_as(scores))
    masses = [(x.masked_fill(~seen, -math.inf).softmax(-1) * far).sum(-1) for x in logits]
    rows = torch.stack([*of_kept(both), *of_kept(near), *masses]).flatten(1)
    high, low = (content.masked_fill(~seen, -sign * math.inf) for sign in (1, -1))
    ranges = (high.amax(-1) - low.amin(-1)).flatten()
    return rows, torch.stack([torch.cat([torch.zeros(1), ranges]).amax(), radius.amax()])


def _of_layer(layer: int, parts: Sequence[tuple[Tensor, Tensor]], eta: float) -> LayerCertificate:
    spread, values = torch.stack([most for _, most in parts]).amax(0).tolist()
    rows = torch.cat([each for each, _ in parts], -1)
    bound, moved, bound_without, moved_without, outside, permuted, leak = rows
    if not len(bound):
        nothing = (None,) * 4
        return LayerCertificate(layer, 0, None, None, None, 0.0, 0.0, 0, spread, values, *nothing)
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
        float(outside.mean()),
        float(permuted.mean()),
        float(leak.mean()),
        float((permuted - leak).std() / math.sqrt(len(bound))),
    )
