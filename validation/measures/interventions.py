"""What a trained model does beyond its training length: interventions at inference, and a probe.

* *Silenced heads*: the output of some heads is set to 0 in every layer. What the loss does tells
  which heads carry the prediction, inside the training length and beyond it.
* *Other context*: everything beyond the nearest `L` tokens is replaced by another document. A model
  whose loss does not change does not look there; flat perplexity alone cannot tell that from a
  model that looks and copes.
* *Tempered heads*: the queries of some heads are scaled by `log i / log L` from row `L` on, which
  keeps the entropy of a head without bias from growing with the row.
* *Position probe*: a linear map from the residual stream to the logarithm of the position, fitted
  within the training length, is read within and beyond it.

All losses are of the last token, on the same targets, paired.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from farfield.validation.measures.perplexity import token_losses
from farfield.validation.models.attention import Path, fused
from farfield.validation.models.model import Transformer
from farfield.validation.settings.visibility import CAUSAL, Visibility
from farfield.validation.text.corpus import segments

RIDGE = 1e-2  # of the probe, on standardised features


@dataclass(frozen=True)
class Change:
    """How an intervention changes the loss of the last token.

    Args:
        length: tokens of context.
        nats: mean loss with the intervention.
        change: less the loss without it, in nats, with its standard error over the targets.
        standard_error: of `change`.
        targets: how many.
    """

    length: int
    nats: float
    change: float
    standard_error: float
    targets: int


@dataclass(frozen=True)
class Probe:
    """How well a linear map reads the logarithm of the position from the residual stream.

    Args:
        layer: after which layer, from 1; 0 is the embedding.
        inside: share of the variance explained at held-out positions below the training length.
        late: rank correlation with the position in the second half of the training length.
        beyond: rank correlation with the position beyond the training length.
    """

    layer: int
    inside: float
    late: float
    beyond: float


def silenced(heads: Sequence[int], path: Path = fused) -> Path:
    """The path with the output of some heads, counted from 1, set to 0."""
    index = [h - 1 for h in heads]

    def attend(
        query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, visible: Visibility
    ) -> Tensor:
        found = path(query, key, value, bias, visible).clone()
        found[:, index] = 0
        return found

    return attend


def tempered(heads: Sequence[int], length: int, path: Path = fused) -> Path:
    """The path with the queries of some heads scaled by `max(1, log i / log length)`, `i` the keys
    of the row."""
    index = [h - 1 for h in heads]

    def attend(
        query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, visible: Visibility
    ) -> Tensor:
        keys = torch.arange(1, key.shape[-2] + 1, device=query.device, dtype=query.dtype)
        scale = (keys.log() / math.log(length)).clamp(min=1)[-query.shape[-2] :, None]
        query = query.clone()
        query[:, index] *= scale
        return path(query, key, value, bias, visible)

    return attend


def losses(
    model: Transformer, rows: np.ndarray, path: Path = fused, visible: Visibility = CAUSAL
) -> np.ndarray:
    """Nats of the last token of each row, float64, shape (rows,)."""
    return token_losses(model, rows, visible, path, last=1)[:, 0]


def intervened(
    model: Transformer, text: np.ndarray, lengths: Sequence[int], path: Path, targets: int = 256
) -> tuple[Change, ...]:
    """The change of the loss by another attention path, at each length of context.

    Args:
        model: the model.
        text: `uint8`, shape (bytes,).
        lengths: tokens of context.
        path: of the intervention.
        targets: evenly spaced in the text, the same at every length.
    """
    rows = segments(text, targets, max(lengths))
    found = []
    for length in lengths:
        part = rows[:, -length - 1 :]
        found.append(_change(length, losses(model, part, path), losses(model, part)))
    return tuple(found)


def other_context(
    model: Transformer, text: np.ndarray, length: int, kept: int, targets: int = 256
) -> Change:
    """The change of the loss when all but the nearest tokens are those of another document.

    Args:
        model: the model.
        text: `uint8`, shape (bytes,).
        length: tokens of context.
        kept: nearest tokens that stay, as a rule the training length.
        targets: evenly spaced in the text.
    """
    rows = segments(text, targets, length)
    changed = rows.copy()
    changed[:, : length - kept] = np.roll(rows, len(rows) // 2, axis=0)[:, : length - kept]
    return _change(length, losses(model, changed), losses(model, rows))


def _change(length: int, after: np.ndarray, before: np.ndarray) -> Change:
    gap = after - before
    error = float(gap.std(ddof=1) / math.sqrt(len(gap)))
    return Change(length, float(after.mean()), float(gap.mean()), error, len(gap))


def position_probe(
    model: Transformer, train: np.ndarray, held_out: np.ndarray, length: int, samples: int = 96
) -> tuple[Probe, ...]:
    """Read the position from the residual stream, after each layer.

    Args:
        model: the model; the probe is fitted on rows of its training length.
        train: text to fit on.
        held_out: text to read.
        length: tokens of the rows that are read.
        samples: rows of each.
    """
    from scipy.stats import spearmanr

    known = model.length
    fit = residuals(model, segments(train, 4 * samples, known)[:, :-1])
    read = residuals(model, segments(held_out, samples, length)[:, :-1])
    found = []
    for layer, (seen, new) in enumerate(zip(fit, read, strict=True)):
        weights = _fitted(seen, np.log(1 + np.arange(known)))
        said = _features(new, weights[0], weights[1]) @ weights[2] + weights[3]
        true = np.broadcast_to(np.log(1 + np.arange(length)), said.shape)
        within = true[:, :known]
        spread = ((within - within.mean()) ** 2).sum()
        inside = 1 - ((said[:, :known] - within) ** 2).sum() / spread
        late, beyond = (
            float(spearmanr(said[:, part].ravel(), true[:, part].ravel()).statistic)
            for part in (slice(known // 2, known), slice(known, length))
        )
        found.append(Probe(layer, float(inside), late, beyond))
    return tuple(found)


@torch.no_grad()
def residuals(model: Transformer, rows: np.ndarray, tokens_a_pass: int = 8192) -> list[np.ndarray]:
    """The residual stream at the embedding and after each layer, each (rows, length, width)."""
    kept: list[list[np.ndarray]] = [[] for _ in range(len(model.layers) + 1)]
    hooks = [
        layer.register_forward_hook(
            lambda _, __, output, k=k: kept[k].append(output.float().cpu().numpy())
        )
        for k, layer in enumerate(model.layers, 1)
    ]
    try:
        step = max(1, tokens_a_pass // rows.shape[1])
        for start in range(0, len(rows), step):
            part = torch.from_numpy(rows[start : start + step]).to(model.device)
            embedded = model.embed(part)
            kept[0].append(embedded.float().cpu().numpy())
            model.hidden(embedded)
    finally:
        for hook in hooks:
            hook.remove()
    return [np.concatenate(parts) for parts in kept]


def _features(x: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return (x - mean) / scale


def _fitted(x: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Mean and scale of the features, weights and offset of a ridge regression."""
    flat = x.reshape(-1, x.shape[-1]).astype(np.float64)
    wanted = np.tile(target, len(x))
    mean, scale = flat.mean(0), flat.std(0) + 1e-9
    z = _features(flat, mean, scale)
    gram = z.T @ z / len(z) + RIDGE * np.eye(z.shape[1])
    offset = float(wanted.mean())
    return mean, scale, np.linalg.solve(gram, z.T @ (wanted - offset) / len(z)), offset
