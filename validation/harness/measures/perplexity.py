"""Perplexity by three protocols, each on the same targets at every context length.

*Non-overlapping*: a text is cut into segments of the length, and every token of a segment is
predicted from those before it in the segment [S]. *Last token*: every target is predicted from
exactly as many tokens before it as the length says [C, 3.4]. It is sharper: in the other protocol a
longer segment also spares early tokens their short contexts. *Sliding window*: a window of the
length moves by a stride, and the tokens that are new in it are scored. Stride 1 is the last token
of every window, a stride of the length is non-overlapping.

Every measure takes a model, a text of bytes or tokens, one-dimensional, and context lengths in
tokens. It raises InputError where the text is shorter than the longest length, or the encoding
knows less. `How` says what else it takes. Memory is bounded: one window at a time if need be, and
scores of the vocabulary for a part of its positions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from farfield.theory.answers.answer import InputError
from farfield.validation.harness.attention import Path, fused
from farfield.validation.harness.corpus import samples_of
from farfield.validation.harness.measures.receptive_fields import LanguageModel
from farfield.validation.harness.visibility import CAUSAL, Visibility

_TOKENS = 8_192  # a forward pass, unless one segment has more
_SCORES = 1 << 22  # numbers of scores of the vocabulary held at a time
_NORMAL = 1.959964  # two-sided 95 %


class How(TypedDict, total=False):
    """How a model is run: the keys that a query sees, the attention path, and what hears the number
    of lengths done, and of all."""

    visible: Visibility
    path: Path
    progress: Callable[[int, int], None]


@dataclass(frozen=True)
class Perplexity:
    """A measured perplexity, and its ratio to that at the training length on the same targets.

    Args:
        protocol: `non-overlapping`, `last token`, or `sliding window, stride ...`.
        length: tokens of context.
        perplexity: exp of `nats`, the mean loss in nats a token.
        standard_error: of `nats`, over the independent samples: blocks or targets.
        targets, samples: bytes predicted, and independent samples among them.
        ratio, ratio_low, ratio_high: to the perplexity at `base` tokens, with its 95 % interval,
            paired over the samples; `base` is the training length, or the shortest length.
    """

    protocol: str
    length: int
    perplexity: float
    nats: float
    standard_error: float
    targets: int
    samples: int
    base: int
    ratio: float
    ratio_low: float
    ratio_high: float


def non_overlapping(
    model: LanguageModel,
    text: np.ndarray,
    lengths: Sequence[int],
    *,
    blocks: int = 64,
    **how: Unpack[How],
) -> tuple[Perplexity, ...]:
    """Perplexity over segments of each length, all their tokens scored [S].

    The `blocks` of the longest length are evenly spaced in the text. One whose length is no
    multiple ends with a shorter segment, so that the targets stay the same.
    """
    losses = block_losses(model, text, lengths, blocks=blocks, **how)
    return summary("non-overlapping", model.length, lengths, losses)


def block_losses(
    model: LanguageModel,
    text: np.ndarray,
    lengths: Sequence[int],
    *,
    blocks: int = 64,
    visible: Visibility = CAUSAL,
    path: Path = fused,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[np.ndarray]:
    """Nats of every token of the blocks of `non_overlapping`, at each length an array of shape
    (blocks, longest length)."""
    rows = samples_of(text, blocks, max(lengths))
    losses = []
    for done, length in enumerate(lengths, 1):
        parts = [
            token_losses(model, rows[:, start : start + length + 1], visible, path)
            for start in range(0, max(lengths), length)
        ]
        losses.append(np.concatenate(parts, 1))
        progress(done, len(lengths))
    return losses


def last_token(
    model: LanguageModel,
    text: np.ndarray,
    lengths: Sequence[int],
    *,
    targets: int = 512,
    **how: Unpack[How],
) -> tuple[Perplexity, ...]:
    """Perplexity of `targets` evenly spaced tokens, each predicted from exactly `length` tokens
    before it [C, 3.4]."""
    return _of_ends("last token", model, text, lengths, targets, 1, **how)


def sliding_window(
    model: LanguageModel,
    text: np.ndarray,
    lengths: Sequence[int],
    *,
    stride: int = 1,
    windows: int = 64,
    **how: Unpack[How],
) -> tuple[Perplexity, ...]:
    """Perplexity of the tokens that are new in a window which moves by a stride.

    A target has `length - stride + 1` to `length` tokens before it. The `windows` are evenly spaced
    in the text, and the targets are the same at every length.

    Raises:
        InputError: the stride is longer than the shortest length, besides what all raise.
    """
    if not 1 <= stride <= min(lengths):
        raise InputError(
            f"stride {stride} with windows of {min(lengths)} tokens; accepted is a stride from 1 "
            "to the shortest length"
        )
    name = f"sliding window, stride {stride}"
    return _of_ends(name, model, text, lengths, windows, stride, **how)


def _of_ends(
    protocol: str,
    model: LanguageModel,
    text: np.ndarray,
    lengths: Sequence[int],
    count: int,
    last: int,
    visible: Visibility = CAUSAL,
    path: Path = fused,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[Perplexity, ...]:
    """Of the `last` targets of rows of each length that end together."""
    rows, losses = samples_of(text, count, max(lengths)), []
    for done, length in enumerate(lengths, 1):
        losses.append(token_losses(model, rows[:, -length - 1 :], visible, path, last=last))
        progress(done, len(lengths))
    return summary(protocol, model.length, lengths, losses)


@dataclass(frozen=True)
class PositionPerplexity:
    """A measured perplexity of the targets at some positions of a segment.

    Args:
        first, last: positions, the number of tokens before the target, both included.
        perplexity: exp of `nats`, the mean loss in nats a token.
        standard_error: of `nats`, over the segments.
        targets, samples: tokens predicted, and segments.
    """

    first: int
    last: int
    perplexity: float
    nats: float
    standard_error: float
    targets: int
    samples: int


def by_position(
    model: LanguageModel,
    text: np.ndarray,
    length: int,
    *,
    bins: int = 16,
    blocks: int = 64,
    **how: Unpack[How],
) -> tuple[PositionPerplexity, ...]:
    """Perplexity by the number of tokens before the target, in segments of one length.

    Positions are put together in `bins` of nearly equal size; the segments are evenly spaced.
    """
    (losses,) = block_losses(model, text, (length,), blocks=blocks, **how)
    return binned(losses, bins)


def binned(losses: np.ndarray, bins: int) -> tuple[PositionPerplexity, ...]:
    """Perplexity by position from the nats of whole segments, shape (segments, length)."""
    length = losses.shape[1]
    results, edges = [], np.linspace(0, length, min(bins, length) + 1).round().astype(int)
    for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        scored = losses[:, start:stop]
        nats, error = mean_of(scored.mean(1))
        results.append(
            PositionPerplexity(
                start + 1, stop, math.exp(nats), nats, error, scored.size, len(scored)
            )
        )
    return tuple(results)


@torch.no_grad()
def token_losses(
    model: LanguageModel, rows: np.ndarray, visible: Visibility, path: Path, *, last: int = 0
) -> np.ndarray:
    """Nats of each target, shape (rows, length), or of the `last` targets; in float64."""
    results = []
    alone = last if path is fused else 0  # a path that is asked for computes every row itself
    step = max(1, _TOKENS // rows.shape[1])
    for start in range(0, len(rows), step):
        part = torch.from_numpy(rows[start : start + step].astype(np.int64)).to(model.device)
        hidden = model.hidden(model.embed(part[:, :-1]), visible, path, alone)[:, -last:]
        targets = part[:, 1:][:, -last:]
        losses = []
        positions = max(1, _SCORES // (len(part) * model.vocabulary))
        for h, t in zip(hidden.split(positions, 1), targets.split(positions, 1), strict=True):
            logits = model.logits(h).double().transpose(1, 2)
            losses.append(cross_entropy(logits, t, reduction="none").cpu())
        results.append(torch.cat(losses, 1))
    return torch.cat(results).numpy()


def summary(
    protocol: str, trained: int | None, lengths: Sequence[int], losses: Sequence[np.ndarray]
) -> tuple[Perplexity, ...]:
    """The perplexities of some losses, an array of shape (samples, targets) at each length."""
    base = trained if trained is not None and trained in lengths else min(lengths)
    means = [scored.mean(1) for scored in losses]  # one number a sample
    results = []
    for length, scored, mean in zip(lengths, losses, means, strict=True):
        nats, error = mean_of(mean)
        log_ratio, ratio_error = mean_of(mean - means[lengths.index(base)])
        low, high = (math.exp(log_ratio + s * _NORMAL * ratio_error) for s in (-1, 1))
        ratio = math.exp(log_ratio)
        results.append(
            Perplexity(
                protocol,
                length,
                math.exp(nats),
                nats,
                error,
                scored.size,
                len(mean),
                base,
                ratio,
                low,
                high,
            )
        )
    return tuple(results)


def mean_of(samples: np.ndarray) -> tuple[float, float]:
    """Mean and its standard error, 0 for a single sample."""
    spread = samples.std(ddof=1) if len(samples) > 1 else 0.0
    return float(samples.mean()), float(spread / math.sqrt(len(samples)))
