"""The advantage of the heads of a model on repeated text: logits as they are, segments read twice.

In a segment that is read twice, the key to find is the one that followed the same token before. Its
advantage is the log-odds of its attention plus the price of its distance: how many nats its logit
lies above the prior-weighted log-mean-exp of the others.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from farfield.validation.checkpoints.configured import Attention, Folder
from farfield.validation.checkpoints.loading import load
from farfield.validation.checkpoints.measured.certificates import ROWS, logits_of
from farfield.validation.checkpoints.text_bounds import through_layers
from farfield.validation.checkpoints.texts import tokens_of
from farfield.validation.harness.attention import LogitTransform
from farfield.validation.harness.corpus import samples_of
from farfield.validation.harness.visibility import Visibility
from farfield.validation.progress import Progress


def _period(a: Attention, length: int) -> int:
    """Tokens of a segment whose repetition a layer sees: within its window, or within one chunk."""
    return min(length // 2, a.window or length, (a.chunk or 2 * length) // 2)


def repeated(
    folder: Folder, text: object, length: int, segments: int, progress: Progress
) -> tuple[dict[int, list[tuple[float, float]]], int, str]:
    """The advantage of each head on the repetitions of a text.

    Args:
        folder: what a folder says of its model.
        text: a file, a folder or a `Corpus`; its held-out part is read.
        length: tokens of a segment with its repetition.
        segments: how many.
        progress: told how far it is.

    Raises:
        InputError: as `loading.load`; a text too short.
    """
    network, read = load(folder, tokens=length), tokens_of(folder, text)
    attending = [(k, a) for k, a in enumerate(folder.attention, 1) if a.encoding is not None]
    periods = [_period(a, length) for _, a in attending]
    parts: dict[int, list[Tensor]] = {}
    rows = np.empty(0)
    for period in sorted({p for p in periods if p > 3}):
        table = network.bias_table(2 * period)
        rows = samples_of(read.held_out, segments, period)

        def look(
            at: int, query: Tensor, key: Tensor, _: Tensor, seen: Visibility, by: LogitTransform
        ) -> None:
            if periods[at] == period:  # noqa: B023
                found = _odds(query, key, seen, by, table, period)  # noqa: B023
                parts.setdefault(attending[at][0], []).append(found)

        twice = np.concatenate([rows[:, :-1], rows], 1)
        through_layers(network, twice, look, "repetitions", progress)
    found = {}
    for layer, each in sorted(parts.items()):
        gains, shares = torch.cat(each, -1)
        pairs = torch.stack([gains.median(-1).values, shares.mean(-1)], -1)
        found[layer] = [(gain, share) for gain, share in pairs.tolist()]
    return found, len(rows), read.source


def _odds(
    query: Tensor,
    key: Tensor,
    visible: Visibility,
    weighting: LogitTransform,
    table: Tensor | None,
    period: int,
) -> Tensor:
    """Advantages and attention of the keys that are repeated, shape (2, heads, rows)."""
    at = period + torch.linspace(0, period - 2, min(ROWS, period - 1)).long().unique()
    keys = torch.arange(query.shape[-2])
    content, prior, sink = logits_of(query, key, weighting, table, at)
    there = keys == at[:, None] - period + 1
    others = visible.sees(at[:, None], keys) & ~there

    def against(scores: Tensor, constant: Tensor | None) -> Tensor:
        """The log-odds of the key, and of what may be in the denominator beside the keys."""
        rest = scores.masked_fill(~others, -math.inf).logsumexp(-1)
        if constant is not None:
            rest = torch.logaddexp(rest, constant[:, None].expand(rest.shape))
        return scores.masked_fill(~there, -math.inf).amax(-1) - rest

    odds = against(content + prior, sink)
    return torch.stack([odds - against(prior, None), odds.sigmoid()])
