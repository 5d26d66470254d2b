"""The empirical receptive field of an opened model on a text: by input gradient, by attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import sympy
import torch
from torch import Tensor

from farfield.numerics.masks import CAUSAL, Mask
from farfield.theory.answers.answer import Answer, Label
from farfield.theory.answers.blocks import Block, facts, note, sentence, table
from farfield.theory.answers.errors import refuse
from farfield.theory.answers.names import one_of
from farfield.theory.answers.notation import listed
from farfield.theory.answers.number import inside, natural, share
from farfield.validation.harness.data import samples
from farfield.validation.harness.measure import (
    field,
    gradient_shares,
    led,
    resampled,
    second_half,
    suffix,
    tail_sums,
)
from farfield.validation.models.folder import describe
from farfield.validation.models.opened import Opened, OpenedRun, open_model
from farfield.validation.models.outline import LayerOutline, ModelOutline
from farfield.validation.models.perplexities import hidden
from farfield.validation.models.speed import foretell
from farfield.validation.models.text import TokenText, text_of
from farfield.validation.progress import Progress, silent
from farfield.validation.table_cells import sampled

KINDS = ("gradient", "attention")
_SEGMENTS = {"gradient": 32, "attention": 8}
_LENGTH = {"gradient": 1024, "attention": 512}
_PASSES = {"gradient": 4, "attention": 2}  # that take as long as a segment
_REACHES = 0.9  # of what a segment could show at most: beyond, the segment is what ends the field
_DEFINITION = {
    "gradient": (
        "shortest suffix with more than q of the summed norms of the gradient at the input "
        "embeddings of the log-probability of the observed next token at the last position"
    ),
    "attention": (
        "least number of nearest keys that hold more than 1 - eps of a row's attention; mean over "
        "rows evenly spaced in the second half of a segment, heads, layers, segments"
    ),
}


@dataclass(frozen=True, repr=False)
class EmpiricalReceptiveField(Answer):
    """How far a model looks back, measured.

    Fields:
        model: its name.
        method: `gradient` or `attention`.
        threshold: q of the gradient, eps of the attention.
        tokens: the receptive field.
        at_least: whether it fills its segment, and a longer one may show more.
        interval: its 95 % bootstrap interval over the segments; None for a single one.
        curve: pairs (tokens, share of the gradient or attention on the nearest this many tokens) at
            powers of two, means over the segments.
        length, segments: tokens of a segment, and segments.
        text_source, first: the text, and what segments begin with.
        visible: which keys a query saw, in words; empty for all that its layer shows.
        heads: for attention, the mean of each head, one tuple a layer that attends.
        trf: for attention, the finite-row TRF of the bias alone on the same rows; None for a model
            without one.
        definition: in words.
        label: `measured`.
    """

    VALUE: ClassVar[str] = "tokens"

    model: str
    method: str
    threshold: float
    tokens: float
    at_least: bool
    interval: tuple[float, float] | None
    curve: tuple[tuple[int, float], ...]
    length: int
    segments: int
    text_source: str
    first: str = ""
    visible: str = ""
    heads: tuple[tuple[float, ...], ...] = ()
    trf: float | None = None
    definition: str = ""
    notes: tuple[str, ...] = ()

    def _blocks(self) -> Iterator[Block]:
        digits = 0 if self.method == "gradient" else 1
        eps = 1 - self.threshold if self.method == "gradient" else self.threshold
        yield sentence(
            "{model}{seen}: by its {method}, {least}the nearest {tokens} tokens{between} hold all "
            "but {eps}{theory}, measured on {sampled}.",
            self.label,
            model=self.model,
            seen=f" under {self.visible}" if self.visible else "",
            method=self.method,
            least="at least " * self.at_least,
            theory="" if self.trf is None else f" (by its bias alone {self.trf:.1f})",
            tokens=f"{self.tokens:.{digits}f}",
            between=_between(self.interval, f".{digits}f"),
            eps=share(sympy.Rational(eps).limit_denominator(10**9)),
            sampled=sampled(self.segments, self.length),
        )
        if self.at_least:
            yield note(
                "The field fills segments of {n} tokens: longer ones may show more.", n=self.length
            )
        points = [point for point in self.curve if point[1] < 0.99995] or list(self.curve[:1])
        yield table(
            ("nearest tokens", "share"), [(n, f"{s:.4g}") for n, s in points], numeric=(0, 1)
        )
        yield facts(
            **{
                "TRF of the bias alone on the same rows": None
                if self.trf is None
                else f"{self.trf:.1f} tokens",
                "by head": None
                if not self.heads
                else "; ".join(listed([f"{h:.1f}" for h in layer]) for layer in self.heads),
                "text": f"{self.text_source}; {self.first}",
            }
        )
        for line in (*self.notes, self.definition):
            yield note("{said}.", said=line[0].upper() + line[1:])


def empirical_receptive_field(
    model: Any,
    text: Any = None,
    *,
    kind: str = "gradient",
    q: Any = "99/100",
    eps: Any = "1/100",
    length: int | None = None,
    segments: int | None = None,
    rows: int = 32,
    bos: str = "auto",
    view: Mask = CAUSAL,
    device: Any = None,
    dtype: Any = None,
    progress: Progress = silent,
) -> EmpiricalReceptiveField:
    """How far a model looks back on a text: by its input gradient, or by its attention.

    Args:
        model: a folder of the library transformers (safetensors; never remote code) or of a
            finished run, what `describe` says of one, or an opened model.
        text: a file or folder, a `Text`, an array of tokens; None takes the source code of the
            standard library. The held-out part is read.
        kind: `gradient` [C, 5.1; the scalar is our choice] or `attention` [Q, after Eq. 21].
        q: share of the gradient, between 0 and 1.
        eps: share of the attention that may stay outside, between 0 and 1.
        length: tokens a segment; 1024 for the gradient and 512 for the attention if not given.
        segments: how many, evenly spaced; 32 and 8 if not given.
        rows: for attention, query rows a head and segment.
        bos: one of `text.FIRST`: whether segments begin with the tokenizer's first token.
        view: which keys a query sees; for the gradient.
        device: of torch; None for the CPU, or where an opened model is.
        dtype: float32, bfloat16 or float16; None for float32, or an opened model's own.
        progress: told how many segments are read.

    Memory holds the activations of one layer, or the weights of one segment.

    Raises:
        InputError: the folder is no model, its weights are pickled, incomplete or not finite, it
            is too large for the memory; the text is too short; a bad argument.
    """
    one_of(kind, "kind", KINDS)
    share = float(inside(*((q, "q") if kind == "gradient" else (eps, "eps")), "(0, 1)"))
    size = natural(_LENGTH[kind] if length is None else length, "length")
    count = natural(_SEGMENTS[kind] if segments is None else segments, "segments")
    opened = model
    if not isinstance(model, Opened | OpenedRun):
        opened = open_model(describe(model), tokens=size, device=device, dtype=dtype)
    read = text_of(opened.model, text, bos)
    segments_read = led(samples(read.held_out, count, size), read.bos)

    passes = _PASSES[kind] * count
    said = f"{kind} of {count} segments of {size} tokens"
    foretell(opened, read.held_out, [(passes, size)], said, progress)

    def done(segments: int) -> None:
        progress("segments", segments, len(segments_read))

    if kind == "gradient":
        field = _by_gradient(opened, segments_read, share, view, done)
    else:
        refuse(view != CAUSAL, "windows with kind 'attention': accepted with kind 'gradient'")
        field = _by_attention(opened, segments_read, share, natural(rows, "rows"), done)
    return _answer(opened.model, kind, share, field, read, view)


class _Measured(NamedTuple):
    """A measured field: see `EmpiricalReceptiveField`; the curve of each segment, shape (segments,
    length), and the most that a segment could show."""

    tokens: float
    interval: tuple[float, float] | None
    curves: np.ndarray
    most: float
    heads: tuple[tuple[float, ...], ...] = ()
    trf: float | None = None


def _by_gradient(
    opened: Opened | OpenedRun,
    rows: np.ndarray,
    share: float,
    view: Mask,
    done: Callable[[int], None],
) -> _Measured:
    parts = []
    for k, row in enumerate(rows, 1):
        parts.append(gradient_shares(opened, row[None], view))
        done(k)
    curves = np.concatenate(parts)
    tokens, low, high = suffix(curves, 1 - share)
    interval = (low, high) if len(curves) > 1 else None
    return _Measured(tokens, interval, curves, share * curves.shape[1])


def _by_attention(
    opened: Opened | OpenedRun,
    segments: np.ndarray,
    eps: float,
    rows: int,
    done: Callable[[int], None],
) -> _Measured:
    """The mean over heads and layers, of each head, and of the bias alone on the same rows."""
    by_layer, curves = attention_fields(opened, segments, eps, rows, done)
    fields, size = torch.stack([*by_layer.values()]), curves.shape[1]
    biased = [layer for layer in opened.model.layers if layer.encoding is not None]
    alone = [bias_field(layer, second_half(size, rows), eps).mean() for layer in biased]
    return _Measured(
        tokens=float(fields.mean()),
        interval=_interval(fields.mean((0, 2, 3)).numpy()),
        curves=curves,
        most=(1 - eps) * 0.75 * size,
        heads=tuple(map(tuple, fields.mean((1, 3)).tolist())),
        trf=float(torch.stack(alone).mean()) if alone else None,
    )


def _answer(
    outline: ModelOutline,
    kind: str,
    share: float,
    field: _Measured,
    read: TokenText,
    view: Mask,
) -> EmpiricalReceptiveField:
    count, size = field.curves.shape
    refuse(
        not np.isfinite(field.curves).all(),
        f"{outline.name}: its {kind} on this text is not finite, or 0 everywhere; accepted: a "
        "model whose weights and activations are finite",
    )
    within = field.curves.cumsum(1).mean(0)
    return EmpiricalReceptiveField(
        model=outline.name,
        method=kind,
        threshold=share,
        tokens=field.tokens,
        at_least=field.tokens >= _REACHES * field.most,
        interval=field.interval,
        curve=tuple((1 << k, float(within[(1 << k) - 1])) for k in range(size.bit_length())),
        length=size,
        segments=count,
        text_source=read.source,
        first=read.first,
        visible=str(view),
        heads=field.heads,
        trf=field.trf,
        definition=_DEFINITION[kind],
        notes=tuple(hidden(outline, view)),
        label=Label.MEASURED,
        subject=outline.name,
    )


def nearest_first(
    opened: Opened | OpenedRun, row: np.ndarray, at: Tensor
) -> Iterator[tuple[int, Tensor]]:
    """The attention of each layer, from 0, in rows `at` of a segment whose last token is a target:
    float64, shape (heads, rows, keys), the nearest key first."""
    tokens = torch.from_numpy(row[:-1]).to(opened.device)
    back = at[:, None] - torch.arange(len(tokens))
    for layer, weights in opened.weights(tokens):
        near = (
            weights[:, at].double().cpu().gather(-1, back.clamp(min=0).expand(len(weights), -1, -1))
        )
        yield layer, near * (back >= 0)


def holding(weights: Tensor, eps: float) -> Tensor:
    """How many nearest keys hold all but `eps` of the attention, float64, shape (heads, rows)."""
    return field(tail_sums(weights), math.log(eps)).double()


def bias_field(layer: LayerOutline, at: Tensor, eps: float) -> Tensor:
    """The same of the bias of a layer alone."""
    assert layer.encoding is not None
    near = torch.arange(int(at.max()) + 1)
    table = torch.from_numpy(np.asarray(layer.encoding.bias(near.numpy())))
    prior = table[:, None].masked_fill(near > at[:, None], -torch.inf)
    return holding(prior.softmax(-1), eps)


def attention_fields(
    opened: Opened | OpenedRun,
    samples: np.ndarray,
    eps: float,
    rows: int,
    done: Callable[[int], None] = lambda segments: None,
) -> tuple[dict[int, Tensor], np.ndarray]:
    """How many nearest keys hold all but `eps` of a row's attention, by layer from 0, shape
    (segments, heads, rows); and the mean attention by distance of each segment."""
    at = second_half(samples.shape[1] - 1, rows)
    fields, curves = dict[int, list[Tensor]](), []
    for k, row in enumerate(samples, 1):
        means = []
        for layer, each in nearest_first(opened, row, at):
            fields.setdefault(layer, []).append(holding(each, eps))
            means.append(each.mean((0, 1)))
        curves.append(torch.stack(means).mean(0))
        done(k)
    return {k: torch.stack(each) for k, each in fields.items()}, torch.stack(curves).numpy()


def _between(interval: tuple[float, float] | None, kind: str) -> str:
    return "" if interval is None else f" ({interval[0]:{kind}} to {interval[1]:{kind}})"


def _interval(values: np.ndarray) -> tuple[float, float] | None:
    """The ends of a 95 % bootstrap interval of the mean over segments; None for a single one."""
    if len(values) < 2:
        return None
    low, high = np.quantile(resampled(values), (0.025, 0.975))
    return float(low), float(high)
