"""Bounds of the logits and values of a model: proved from its weights, or measured on a text.

A normalised input is `y = g z + s` with `||z|| <= sqrt(D)` (and `z` orthogonal to 1 under
LayerNorm), so with `q = A z + a`, `k = B z' + b`, `v = V z' + c`, up to terms that are the same for
all keys of a row and so change no weight,

    |q.k| <= D ||A^T B||_2 + sqrt(D) ||B^T a||,     ||v|| <= sqrt(D) ||V||_2.

On a text they are half the widest range of the logits in a row, and the radius of the values about
their mean, maxima over what was read: another text may exceed them.

That terms common to a row's keys cancel is exact: weights do not change when a number is added to
all logits of a row, and since weights sum to 1, a vector added to all values leaves the difference
of two outputs as it was.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from farfield.theory.answers.answer import InputError
from farfield.validation.checkpoints.biases import Projections, normalised, split
from farfield.validation.checkpoints.head_window import HeadBounds
from farfield.validation.checkpoints.loading import OutsideModel
from farfield.validation.harness.attention import observed
from farfield.validation.harness.measures.receptive_fields import LanguageModel
from farfield.validation.harness.model import Transformer
from farfield.validation.harness.visibility import CAUSAL
from farfield.validation.progress import Progress, silent

_MARGIN = 1e-6  # of a product of Frobenius norms: more than rounding in float64 amounts to
_SCORES = 1 << 22  # numbers of scores held at a time


def weight_bounds(model: Transformer | OutsideModel) -> Iterator[tuple[HeadBounds, ...]]:
    """Bounds that hold for every text, one tuple of heads a layer, from the norms of the weights.

    Spectral norms are computed in float64 by QR and singular values, and enlarged by a millionth
    of the product of the Frobenius norms.
    """
    for p in projections(model):
        root = math.sqrt(len(p.gain))

        def linear(weight: Tensor, p: Projections = p) -> Tensor:
            acting = weight * p.gain
            return acting - acting.mean(-1, keepdim=True) if p.centred else acting

        (query, query_bias), (key, _), (value, _) = p.query, p.key, p.value
        a, b, v = linear(query), linear(key), linear(value)
        constant = query @ p.shift + query_bias
        if p.clip is None:
            logit = root**2 * _norm_of_product(a, b) + root * _enlarged(
                (b.transpose(-2, -1) @ constant[..., None]).squeeze(-1).norm(dim=-1),
                _frobenius(b) * constant.norm(dim=-1),
            )
            size = root * _spectral(v)
        else:  # clamping makes every entry smaller, but what is common to the keys no more so
            most = p.clip * math.sqrt(a.shape[-2])
            sides = [
                (root * _spectral(linear(w)) + (w @ p.shift + c).norm(dim=-1)).clamp(max=most)
                for w, c in (p.query, p.key, p.value)
            ]
            logit, size = sides[0] * sides[1], sides[2]
        pairs = zip((p.scale * logit).tolist(), size.tolist(), strict=True)
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


def projections(model: Transformer | OutsideModel) -> Iterator[Projections]:
    """The projections of each layer in float64.

    Raises:
        InputError: the family is not one with an additive bias.
    """
    if isinstance(model, Transformer):
        for layer in model.layers:
            parts = split(layer.mixed, lambda w: w.unflatten(0, (3, layer.heads, -1)))  # noqa: B023
            size = len(layer.mixed.weight) // (3 * layer.heads)
            yield normalised(layer.attention_norm, parts, 1 / math.sqrt(size))
        return
    of_layer = None if model.own is None else model.own.projections
    if of_layer is None:
        raise InputError(f"{model.folder.kind} models have no additive bias to certify")
    for block in model.blocks:
        yield of_layer(block, model.folder.shape)


@torch.no_grad()
def text_bounds(
    model: LanguageModel, rows: np.ndarray, report: Progress = silent
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
        for _, content, seen in chunks(query, key, table):
            high = content.masked_fill(~seen, -math.inf).amax(-1)
            low = content.masked_fill(~seen, math.inf).amin(-1)
            widest = torch.maximum(widest, (high - low).amax(-1) / 2)
        logits[layer] = torch.maximum(logits.get(layer, widest), widest)
        radii[layer] = torch.maximum(radii.get(layer, radius), radius)

    through_layers(model, rows, measure, "bounds", report)
    return [
        tuple(HeadBounds(*pair) for pair in zip(logits[k].tolist(), radii[k].tolist(), strict=True))
        for k in sorted(logits)
    ]


def through_layers(
    model: LanguageModel,
    rows: np.ndarray,
    measure: Callable[[int, Tensor, Tensor, Tensor], None],
    stage: str,
    report: Progress,
) -> None:
    """Full attention, one segment at a time, with a look at each layer's queries, keys, values."""
    for done, row in enumerate(torch.from_numpy(rows[:, :-1]), 1):
        layers = itertools.count()

        def look(query: Tensor, key: Tensor, value: Tensor, *_: object) -> None:
            measure(next(layers), query.cpu(), key.cpu(), value.cpu())  # noqa: B023

        model.hidden(model.embed(row[None].to(model.device)), CAUSAL, observed(look))
        report(stage, done, len(rows))


def chunks(
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
