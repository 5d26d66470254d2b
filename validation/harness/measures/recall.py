"""What a model that was trained on a task finds again: accuracy and attention by distance and row.

The *retrieving head* is the one with the most attention on the key of the answer, in rows of the
training length. Its content logits there, without the bias, are what
`farfield.numerics.retrieval.retrieval_curve` forecasts longer rows from.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from farfield.validation.harness.attention import PLAIN, LogitTransform, fused
from farfield.validation.harness.mechanism import CAUSAL, Visibility
from farfield.validation.harness.model import Transformer
from farfield.validation.harness.presets import Probes
from farfield.validation.harness.tasks import Task

_TOKENS = 16_384  # a forward pass
_DISTANCES = 8


@dataclass(frozen=True)
class Recalled:
    """Answers at one distance in rows of one length.

    Args:
        length: tokens of a row.
        distance: from the query to the key of the answer, in tokens.
        rows: asked.
        accuracy: share of the rows whose answers are all right.
        attention: mean of the retrieving head on the key.
        error: standard error of that, over the rows.
        heads: mean attention on the key of every head, one list a layer.
    """

    length: int
    distance: int
    rows: int
    accuracy: float
    attention: float
    error: float
    heads: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Recall:
    """What a model finds again.

    Args:
        layer, head: of the retrieving head, counted from 1.
        points: by length and distance.
    """

    layer: int
    head: int
    points: tuple[Recalled, ...]


def distances_of(task: Task, asked: Probes, length: int) -> list[int]:
    """The distances that rows of a length are asked at.

    >>> distances_of(Task("induction"), Probes(), 64)
    [3, 5, 7, 11, 17, 26, 40, 62]
    """
    nearest, farthest = task.nearest(asked.near), task.farthest(length)
    if asked.distances:
        return [n for n in asked.distances if task.nearest() <= n <= farthest]
    spaced = np.geomspace(nearest, farthest, _DISTANCES) if farthest > nearest else [nearest]
    return sorted({round(n) for n in spaced})


@torch.no_grad()
def recall(
    model: Transformer,
    task: Task,
    asked: Probes,
    trained: int,
    visible: Visibility = CAUSAL,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Recall, dict[str, np.ndarray]]:
    """Ask a model at every length and distance.

    The training length, `trained`, is one of the lengths. `progress` is called with the number of
    points done, and of all.

    Returns:
        What it finds; and the content logits of the retrieving head on rows of the training length:
        `target` of shape (rows,), `others` (rows, m), `near` of the nearest keys (rows, near) in
        order of position, the query's own last.

    Raises:
        InputError: the rows have no room.
    """
    places = [(n, far) for n in asked.lengths for far in distances_of(task, asked, n)]
    found = []
    for done, (length, distance) in enumerate(places, 1):
        random = np.random.default_rng([asked.seed, length, distance])
        found.append(asked_at(model, task, random, asked.rows, length, distance, visible))
        if progress is not None:
            progress(done, len(places))
    at_home = [one for (length, _), one in zip(places, found, strict=True) if length == trained]
    by_head = torch.stack([one[1].mean(0) for one in at_home]).mean(0)
    layer, head = divmod(int(by_head.argmax()), by_head.shape[1])
    points = tuple(
        Recalled(
            *place,
            rows=len(right),
            accuracy=right.double().mean().item(),
            attention=attention[:, layer, head].mean().item(),
            error=attention[:, layer, head].std().item() / math.sqrt(len(right)),
            heads=tuple(map(tuple, attention.mean(0).tolist())),
        )
        for place, (right, attention, _, _, _) in zip(places, found, strict=True)
    )
    logits: dict[str, list[Tensor]] = {"target": [], "others": [], "near": []}
    for _, _, content, query, key in at_home:
        if query - key >= asked.near:
            own = content[:, layer, head, : query + 1]
            rest = torch.arange(query + 1 - asked.near) != key
            logits["target"].append(own[:, key])
            logits["others"].append(own[:, : query + 1 - asked.near][:, rest])
            logits["near"].append(own[:, query + 1 - asked.near :])
    kept = {name: torch.cat(parts).float().numpy() for name, parts in logits.items() if parts}
    return Recall(layer + 1, head + 1, points), kept


def asked_at(
    model: Transformer,
    task: Task,
    random: np.random.Generator,
    count: int,
    length: int,
    distance: int,
    visible: Visibility = CAUSAL,
    inner: Callable[..., Tensor] = fused,
) -> tuple[Tensor, Tensor, Tensor, int, int]:
    """Ask a model at one distance in rows of one length.

    Args:
        model: trained on the task.
        task: which asks.
        random: draws the rows.
        count: how many rows.
        length: of a row, in tokens.
        distance: from the query to the key of the answer, in tokens.
        visible: which keys a query sees.
        inner: the attention path, where a part of the model is changed at test time.

    Returns:
        Which rows are right, shape (rows,); attention on the key, (rows, layers, heads); content
        logits of the query, (rows, layers, heads, length); the positions of query and key.
    """
    rows = task.probe(random, count, length, distance)
    query_at, key_at = int(rows.query[0]), int(rows.key[0])
    position, layers = torch.arange(length), list[tuple[Tensor, Tensor]]()

    def path(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor | None,
        visible: Visibility,
        weighting: LogitTransform = PLAIN,
    ) -> Tensor:
        one = query[:, :, query_at : query_at + 1].double()
        content = (one @ key.double().transpose(-2, -1)).cpu() / math.sqrt(query.shape[-1])
        logits = weighting.content(content)
        if bias is not None:
            logits = logits + bias.cpu()[:, None, (query_at - position).clamp(min=0)]
        logits = logits.masked_fill(~visible.sees(query_at, position), -math.inf)
        layers.append((weighting.softmax(logits)[:, :, 0, key_at], content[:, :, 0]))
        return inner(query, key, value, bias, visible, weighting)

    right, attention, contents = [], [], []
    for tokens in torch.from_numpy(rows.tokens).split(max(1, _TOKENS // length)):
        tokens = tokens.to(model.device)
        hidden = model.hidden(model.embed(tokens[:, :-1]), visible, path)
        asked = torch.from_numpy(rows.asked[0]).to(model.device)
        answers = model.logits(hidden[:, asked]).argmax(-1)
        right.append((answers == tokens[:, 1:][:, asked]).all(-1).cpu())
        attention.append(torch.stack([a for a, _ in layers], 1))
        contents.append(torch.stack([c for _, c in layers], 1))
        layers.clear()
    return torch.cat(right), torch.cat(attention), torch.cat(contents), query_at, key_at


def retrieval_logits(path: str | Path) -> dict[str, Any]:
    """The content logits that a measured run keeps in `logits-<key>.npz`, as arguments of
    `retrieval_curve`."""
    with np.load(path, allow_pickle=False) as kept:
        return {name: kept[name] for name in kept.files}
