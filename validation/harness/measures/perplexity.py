"""Perplexity by three protocols, each on the same targets at every context length.

*Non-overlapping*: a text is cut into segments of the length, and every token of a segment is
predicted from those before it in the segment [S]. *Last token*: every target is predicted from
exactly as many tokens before it as the length says [C, 3.4]. It is sharper: in the other protocol a
longer segment also spares early tokens their short contexts. *Sliding window*: a window of the
length moves by a stride, and the tokens that are new in it are scored. Stride 1 is the last token
of every window, a stride of the length is non-overlapping.

Every measure takes a model, a text of bytes or tokens, one-dimensional, and context lengths in
tokens. It raises InputError where the text is shorter than the longest length, or the encoding
knows less. It also takes the keys that a query sees (`visible`), the attention path (`path`), and
what hears the number of lengths done and of all (`progress`). Memory is bounded: one window at a
time if need be, and scores of the vocabulary for a part of its positions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from farfield.theory.answers.errors import refuse
from farfield.validation.harness.attention import Path, fused
from farfield.validation.harness.corpus import samples_of
from farfield.validation.harness.mechanism import CAUSAL, Visibility

LanguageModel = Any
"""What is measured: a `Transformer`, or whatever has its `embed`, `hidden`, `logits`, `bias_table`,
`length`, `vocabulary`, `parameters` and `device`, as `OutsideModel` does."""

_TOKENS = 8_192  # a forward pass, unless one segment has more
_SCORES = 1 << 22  # numbers of scores of the vocabulary held at a time
_NATS = 300  # beyond every model that has learned anything
_NORMAL = 1.959964  # two-sided 95 %


@dataclass(frozen=True)
class MeanLoss:
    """A measured perplexity.

    Args:
        perplexity: exp of `nats`, the mean loss in nats a token.
        standard_error: of `nats`, over the independent samples.
        targets, samples: tokens predicted, and independent samples among them: segments, blocks or
            targets.
    """

    perplexity: float
    nats: float
    standard_error: float
    targets: int
    samples: int


@dataclass(frozen=True)
class Perplexity(MeanLoss):
    """A measured perplexity, and its ratio to that at the training length on the same targets.

    Args:
        protocol: `non-overlapping`, `last token`, or `sliding window, stride ...`.
        length: tokens of context.
        ratio, ratio_low, ratio_high: to the perplexity at `base` tokens, with its 95 % interval,
            paired over the samples; `base` is the training length, or the shortest length.
    """

    protocol: str
    length: int
    base: int
    ratio: float
    ratio_low: float
    ratio_high: float


@dataclass(frozen=True)
class PositionPerplexity(MeanLoss):
    """A measured perplexity of the targets at some positions of a segment.

    Args:
        first, last: positions, the number of tokens before the target, both included.
    """

    first: int
    last: int


def perplexities(
    model: LanguageModel,
    text: np.ndarray,
    lengths: Sequence[int],
    count: int = 64,
    last: int = 0,
    protocol: str | None = None,
    **how: Any,
) -> tuple[Perplexity, ...]:
    """Perplexity of the same targets at each length, those of `count` rows of the longest one.

    The rows are evenly spaced in the text. A row whose length is no multiple of a shorter one ends
    with a shorter segment.

    Args:
        model: what is measured.
        text: of bytes or tokens.
        lengths: of the context, in tokens.
        count: of rows.
        last: 0 scores all targets of a row without overlap [S]; 1 the last one [C, 3.4]; a stride
            those that are new in a window, each with `length - stride + 1` to `length` before it.
        protocol: its name, where it is neither of the first two.
        **how: `visible`, `path` and `progress`.

    Raises:
        InputError: the stride is longer than the shortest length, besides what all raise.
    """
    refuse(
        not 0 <= last <= min(lengths),
        f"stride {last} with windows of {min(lengths)} tokens; accepted is a stride from 1 "
        "to the shortest length",
    )
    losses = losses_at(model, text, lengths, count, last, **how)
    name = protocol or ("last token" if last else "non-overlapping")
    return summary(name, model.length, lengths, losses)


def losses_at(
    model: LanguageModel,
    text: np.ndarray,
    lengths: Sequence[int],
    count: int,
    last: int = 0,
    visible: Visibility = CAUSAL,
    path: Path = fused,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[np.ndarray]:
    """Nats of the same targets at each length, an array of shape (rows, targets) each.

    The targets are those of `count` evenly spaced rows of the longest length: all, in segments of
    each length, or the `last` ones, at the end of a segment of each length.
    """
    longest, losses = max(lengths), list[np.ndarray]()
    rows = samples_of(text, count, longest)
    for done, length in enumerate(lengths, 1):
        starts = [longest - length] if last else range(0, longest, length)
        segments = [rows[:, start : start + length + 1] for start in starts]
        parts = [token_losses(model, part, visible, path, last=last) for part in segments]
        losses.append(np.concatenate(parts, 1))
        require_finite(losses[-1])
        progress(done, len(lengths))
    return losses


def require_finite(losses: np.ndarray) -> None:
    """Raise InputError where a loss is no number that a perplexity can be made of."""
    refuse(
        not losses.max(initial=0.0) < _NATS,
        f"the loss of the model on this text is not finite, or beyond {_NATS} nats a token; "
        "accepted: a model whose weights and activations are finite",
    )


def binned(losses: np.ndarray, bins: int) -> tuple[PositionPerplexity, ...]:
    """Perplexity by the number of tokens before the target, from the nats of whole segments.

    The nats have shape (segments, length); positions are put together in `bins` of nearly equal
    size.
    """
    length = losses.shape[1]
    edges = np.linspace(0, length, min(bins, length) + 1).round().astype(int).tolist()
    return tuple(
        PositionPerplexity(**_mean_loss(losses[:, start:stop]), first=start + 1, last=stop)
        for start, stop in itertools.pairwise(edges)
    )


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
    at_base, results = losses[lengths.index(base)].mean(1), []  # one number a sample
    for length, scored in zip(lengths, losses, strict=True):
        log_ratio, error = mean_of(scored.mean(1) - at_base)
        ratio, low, high = (math.exp(log_ratio + s * _NORMAL * error) for s in (0, -1, 1))
        of = {"protocol": protocol, "length": length, "base": base, **_mean_loss(scored)}
        results.append(Perplexity(**of, ratio=ratio, ratio_low=low, ratio_high=high))
    return tuple(results)


def _mean_loss(scored: np.ndarray) -> dict[str, Any]:
    """The fields of a `MeanLoss`, from nats of shape (samples, targets)."""
    nats, error = mean_of(scored.mean(1))
    size = {"targets": scored.size, "samples": len(scored)}
    return {"perplexity": math.exp(nats), "nats": nats, "standard_error": error, **size}


def mean_of(samples: np.ndarray) -> tuple[float, float]:
    """Mean and its standard error, 0 for a single sample."""
    spread = samples.std(ddof=1) if len(samples) > 1 else 0.0
    return float(samples.mean()), float(spread / math.sqrt(len(samples)))
