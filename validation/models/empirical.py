"""The empirical receptive field of a model: by its input gradient, or by its attention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import sympy
import torch
from torch import Tensor

from farfield.theory.answers.answer import Answer, InputError, Label
from farfield.theory.answers.blocks import Block, facts, note, sentence, table
from farfield.theory.answers.names import one_of
from farfield.theory.answers.number import inside, listed, natural, share
from farfield.validation.compact.data import samples as samples_of
from farfield.validation.models.folder import describe
from farfield.validation.models.layers import ModelOutline
from farfield.validation.models.norms import HeadBounds
from farfield.validation.models.opened import ALL, Opened, OpenedRun, View, open_model
from farfield.validation.models.perplexities import hidden
from farfield.validation.models.text import led, text_of
from farfield.validation.progress import Progress, silent
from farfield.validation.table_cells import sampled

KINDS = ("gradient", "attention")
_SEGMENTS = {"gradient": 32, "attention": 8}
_LENGTH = {"gradient": 1024, "attention": 512}
_RESAMPLES = 1000
_LEAST, _SLACK = 1e-30, 1e-3  # weights that float32 holds exactly enough, and their rounding
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
        curve: pairs (tokens, share of the gradient or attention on the nearest so many tokens) at
            powers of two, means over the segments.
        training_length: tokens that the model was trained on, None if it is not known.
        mass_in_training_length, mass_interval: the share on the nearest so many tokens; None
            where the training length is not known or not shorter than the segments.
        length, segments: tokens of a segment, and segments.
        text_source, first: what was read, and what segments begin with.
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
    training_length: int | None
    mass_in_training_length: float | None
    mass_interval: tuple[float, float] | None
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
            "but {eps}, measured on {sampled}.",
            self.label,
            model=self.model,
            seen=f" under {self.visible}" if self.visible else "",
            method=self.method,
            least="at least " * self.at_least,
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
        mass = self.mass_in_training_length
        yield facts(
            **{
                f"share within the training length of {self.training_length}": None
                if mass is None
                else f"{mass:.4g}{_between(self.mass_interval, '.4g')}",
                "TRF of the bias alone on the same rows": None
                if self.trf is None
                else f"{self.trf:.1f} tokens",
                "by head": None
                if not self.heads
                else "; ".join(listed([f"{h:.1f}" for h in layer]) for layer in self.heads),
                "text": f"{self.text_source}; {self.first}",
            }
        )
        for said in (*self.notes, self.definition):
            yield note("{said}.", said=said[0].upper() + said[1:])


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
    view: View = ALL,
    progress: Progress = silent,
) -> EmpiricalReceptiveField:
    """How far a model looks back on a text: by its input gradient, or by its attention.

    Args:
        model: a folder of the library transformers (safetensors; never remote code) or of a
            finished run, what `describe` says of one, or an opened model.
        text: a file or folder, a `Text`, an array of tokens; None takes the source code of the
            standard library. Of a corpus the held-out part is read.
        kind: `gradient` [C, 5.1; the scalar is our choice] or `attention` [Q, after Eq. 21].
        q: share of the gradient, between 0 and 1.
        eps: share of the attention that may stay outside, between 0 and 1.
        length: tokens a segment; 1024 for the gradient and 512 for the attention if not given.
        segments: how many, evenly spaced; 32 and 8 if not given.
        rows: for attention, query rows a head and segment.
        bos: one of `text.FIRST`: whether segments begin with the tokenizer's first token.
        view: which keys a query sees; for the gradient.
        progress: told how many segments are read.

    For the gradient, memory holds the activations of one layer at a time. For the attention it
    holds the weights of one segment.

    Raises:
        InputError: the folder is no model, its weights are pickled, incomplete or not finite, it
            is too large for the memory; the text is too short; a bad argument.
    """
    one_of(kind, "kind", KINDS)
    threshold = inside(*((q, "q") if kind == "gradient" else (eps, "eps")), "(0, 1)")
    size = natural(_LENGTH[kind] if length is None else length, "length")
    count = natural(_SEGMENTS[kind] if segments is None else segments, "segments")
    rows = natural(rows, "rows")
    opened = _opened(model, size)
    given = opened.model
    tokens, source, first, put = _tokens(given, text, bos)
    samples = led(samples_of(tokens, count, size), put)
    part, trained = float(threshold), given.trained

    def done(segments: int) -> None:
        progress("segments", segments, len(samples))

    heads: tuple[tuple[float, ...], ...] = ()
    trf = None
    interval: tuple[float, float] | None
    if kind == "gradient":
        curves = np.stack([_gradient(opened, row, view, done, k) for k, row in enumerate(samples)])
        found, interval = _suffix(curves, 1 - part)
        most = part * size
    else:
        if not view.plain:
            raise InputError("windows with kind 'attention': accepted with kind 'gradient'")
        fields, curves, trf = _attention(opened, samples, part, rows, done)
        found, heads = float(fields.mean()), tuple(map(tuple, fields.mean((0, 3)).tolist()))
        interval = _interval(fields.mean((1, 2, 3)))
        most = (1 - part) * 0.75 * size
    if not np.isfinite(curves).all():
        raise InputError(
            f"{given.name}: its {kind} on this text is not finite, or 0 everywhere; accepted: a "
            "model whose weights and activations are finite"
        )
    points = tuple(1 << k for k in range(size.bit_length()))
    within = curves.cumsum(1)
    asked = trained is not None and trained < size
    mass = within[:, trained - 1] if asked and trained is not None else None
    return EmpiricalReceptiveField(
        given.name,
        kind,
        part,
        found,
        found >= _REACHES * most,
        interval if len(samples) > 1 else None,
        tuple((p, float(within[:, min(p, size) - 1].mean())) for p in points),
        trained,
        None if mass is None else float(mass.mean()),
        None if mass is None else _interval(mass),
        size,
        len(samples),
        source,
        first,
        "" if view.plain else str(view),
        heads,
        trf,
        _DEFINITION[kind],
        tuple(hidden(given, view)),
        label=Label.MEASURED,
        subject=given.name,
    )


def _opened(model: Any, size: int) -> Opened | OpenedRun:
    if isinstance(model, Opened | OpenedRun):
        return model
    return open_model(describe(model), tokens=size)


def _tokens(given: ModelOutline, text: Any, bos: str) -> tuple[np.ndarray, str, str, int | None]:
    """The tokens to read, what they are, what segments begin with, in words and as a token."""
    if not isinstance(text, np.ndarray):
        read = text_of(given, text, bos)
        return read.held_out, read.source, read.first, read.bos
    if text.ndim != 1 or text.dtype.kind not in "iu":
        raise InputError("the text has to be a one-dimensional array of tokens")
    if text.size and not 0 <= int(text.min()) <= int(text.max()) < given.vocabulary:
        raise InputError(f"the text has tokens outside 0 to {given.vocabulary - 1}")
    return text, f"{len(text)} tokens", "no first token", None


def _gradient(
    opened: Opened | OpenedRun, row: np.ndarray, view: View, done: Any, at: int
) -> np.ndarray:
    """Shares of the gradient of one segment, nearest token first."""
    tokens = torch.from_numpy(row[None]).to(opened.device)
    embedded = opened.embed(tokens[:, :-1]).detach().requires_grad_()
    chosen = opened.scores(embedded, view, last=1)[:, -1].log_softmax(-1)[0, tokens[0, -1]]
    (gradient,) = torch.autograd.grad(chosen, embedded)
    norms = gradient[0].double().norm(dim=-1).flip(-1).cpu().numpy()
    done(at + 1)
    return np.asarray(norms / norms.sum())


def _attention(
    opened: Opened | OpenedRun, samples: np.ndarray, eps: float, rows: int, done: Any
) -> tuple[np.ndarray, np.ndarray, float | None]:
    """Fields by segment, layer, head and row; mean attention by distance of each segment; and the
    mean field of the biases alone on these rows."""
    length = samples.shape[1] - 1
    at = torch.linspace(length // 2, length - 1, min(rows, length - length // 2)).long().unique()
    back = (at[:, None] - torch.arange(length)).clamp(min=0)
    seen = at[:, None] >= torch.arange(length)
    fields, curves = [], []
    for k, row in enumerate(samples, 1):
        tokens = torch.from_numpy(row[:-1]).to(opened.device)
        near = [
            (own[:, at].double().cpu().gather(-1, back.expand(len(own), -1, -1)) * seen)
            for _, own in opened.weights(tokens)
        ]
        fields.append(torch.stack([_nearest(own, eps) for own in near]))
        curves.append(torch.stack([own.mean((0, 1)) for own in near]).mean(0))
        done(k)
    biases = [layer for layer in opened.model.layers if layer.encoding is not None]
    alone = []
    for layer in biases:
        assert layer.encoding is not None
        table = torch.from_numpy(np.asarray(layer.encoding.bias(np.arange(length))))
        prior = table[:, None].expand(-1, len(at), -1).masked_fill(~seen, -torch.inf).softmax(-1)
        alone.append(_nearest(prior, eps).double().mean())
    trf = float(torch.stack(alone).mean()) if alone else None
    return torch.stack(fields).numpy(), torch.stack(curves).numpy(), trf


def attention_fields(
    opened: Opened | OpenedRun, samples: np.ndarray, eps: float
) -> dict[int, float]:
    """How many nearest keys hold all but `eps` of a row's attention, by layer from 0: means over
    the heads and the second half of each row."""
    found: dict[int, list[float]] = {}
    for row in samples:
        tokens = torch.from_numpy(row[:-1]).to(opened.device)
        at = torch.arange(len(tokens) // 2, len(tokens))
        back = (at[:, None] - torch.arange(len(tokens))).clamp(min=0)
        seen = at[:, None] >= torch.arange(len(tokens))
        for layer, own in opened.weights(tokens):
            near = own[:, at].double().cpu().gather(-1, back.expand(len(own), -1, -1)) * seen
            found.setdefault(layer, []).append(float(_nearest(near, eps).double().mean()))
    return {layer: sum(own) / len(own) for layer, own in found.items()}


def broken(given: ModelOutline, limits: Sequence[tuple[HeadBounds, ...]], text: Any) -> str | None:
    """Whether a text breaks bounds of the logits: why, or None.

    The logarithm of a weight is a content logit plus the bias, up to a number of the row. So the
    range of their difference over a row is at most twice the bound.

    Args:
        given: what the folder says of its model.
        limits: the bounds of the heads of each layer.
        text: as `text_of` takes it.
    """
    length = min(given.trained or 256, 256)
    opened, read = open_model(given, tokens=length), text_of(given, text)
    worst = (1.0, "")
    at = torch.arange(length)
    back, seen = (at[:, None] - at).clamp(min=0), at[:, None] >= at
    for row in led(samples_of(read.held_out, 4, length), read.bos):
        for layer, own in opened.weights(torch.from_numpy(row[:-1]).to(opened.device)):
            encoding = given.layers[layer].encoding
            if encoding is None:
                continue
            table = torch.from_numpy(np.asarray(encoding.bias(at.numpy())))
            content = own.double().cpu().log() - table[:, back]
            counted = seen & (own.cpu() > _LEAST)
            high = content.masked_fill(~counted, -torch.inf).amax(-1)
            low = content.masked_fill(~counted, torch.inf).amin(-1)
            for head, found in enumerate(((high - low).amax(-1) / 2).tolist()):
                bound = limits[layer][head].logit
                if found / (bound * (1 + _SLACK) + _SLACK) > worst[0]:
                    said = f"logits of layer {layer + 1}, head {head + 1} lie within {found:.4g}"
                    worst = (found / bound, f"{said} on the text, beyond the bound {bound:.4g}")
    return worst[1] or None


def _nearest(weights: Tensor, eps: float) -> Tensor:
    """`min { j : sum_{t >= j} w_t < eps sum w }`: how many nearest keys hold all but `eps`.

    >>> _nearest(torch.tensor([0.5, 0.25, 0.25, 0.0], dtype=torch.float64), 0.3)
    tensor(2)
    """
    tails = weights.flip(-1).cumsum(-1).flip(-1)
    return ((tails >= eps * tails[..., :1]) & (tails > 0)).sum(-1)


def _resampled(values: np.ndarray) -> np.ndarray:
    """Means over segments drawn with replacement, from one seed."""
    generator = np.random.default_rng(0)
    picks = generator.integers(len(values), size=(_RESAMPLES, len(values)))
    counts = np.stack([np.bincount(pick, minlength=len(values)) for pick in picks])
    return np.asarray(counts @ values / len(values))


def _suffix(curves: np.ndarray, eps: float) -> tuple[float, tuple[float, float]]:
    """Tokens of the shortest suffix with more than `1 - eps` of the mean curve, and the ends of
    their 95 % bootstrap interval over the segments."""
    mean = _nearest(torch.from_numpy(curves.mean(0)), eps)
    drawn = _nearest(torch.from_numpy(_resampled(curves)), eps).numpy()
    low, high = np.quantile(drawn, (0.025, 0.975))
    return int(mean), (float(low), float(high))


def _between(interval: tuple[float, float] | None, kind: str) -> str:
    return "" if interval is None else f" ({interval[0]:{kind}} to {interval[1]:{kind}})"


def _interval(values: np.ndarray) -> tuple[float, float] | None:
    if len(values) < 2:
        return None
    low, high = np.quantile(_resampled(values), (0.025, 0.975))
    return float(low), float(high)
