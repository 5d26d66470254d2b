"""Bounds of the logits and values of a model, measured on a text.

They are half the widest range of the logits in a row, and the radius of the values about their
mean, maxima over the text: another text may exceed them. `norms` has bounds for every text.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from farfield.validation.checkpoints.configured import HeadBounds
from farfield.validation.harness.attention import LogitTransform, with_hook
from farfield.validation.harness.measures.receptive_fields import LanguageModel
from farfield.validation.harness.visibility import CAUSAL, Visibility
from farfield.validation.progress import Progress, silent

_SCORES = 1 << 22  # numbers of scores held at a time


def text_bounds(
    model: LanguageModel, rows: np.ndarray, report: Progress = silent
) -> list[tuple[HeadBounds, ...]]:
    """Maxima over segments, one tuple of heads a layer: half the range of the logits that a row
    sees, over all its rows, and the radius of the values about their mean in the first segment.

    Args:
        model: the model.
        rows: int64, shape (segments, length + 1), as `corpus.samples_of` gives them.
        report: called as `report(stage, done, total)`.
    """
    logits: dict[int, Tensor] = {}
    centres: dict[int, Tensor] = {}
    radii: dict[int, Tensor] = {}
    table = model.bias_table(rows.shape[1] - 1)

    def measure(layer: int, query: Tensor, key: Tensor, value: Tensor, *_: object) -> None:
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


@torch.no_grad()
def through_layers(
    model: LanguageModel,
    rows: np.ndarray,
    measure: Callable[[int, Tensor, Tensor, Tensor, Visibility, LogitTransform], None],
    stage: str,
    report: Progress,
) -> None:
    """Full attention, one segment at a time, with a look at each layer that attends, from 0: its
    queries, keys, values, what is visible, and the weighting."""
    for done, row in enumerate(torch.from_numpy(rows[:, :-1]), 1):
        layers = itertools.count()

        def look(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> None:
            measure(next(layers), query.cpu(), key.cpu(), value.cpu(), *rest)  # noqa: B023

        model.hidden(model.embed(row[None].to(model.device)), CAUSAL, with_hook(look))
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
