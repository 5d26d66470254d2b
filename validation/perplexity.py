"""Perplexity by two protocols, each on the same target bytes at every context length.

*Non-overlapping*: a text is cut into segments of the length and every byte of a segment is
predicted from those before it in the segment [S]. *Last token*: every target is predicted from
exactly as many bytes before it as the length says [C, 3.4]; the sharper protocol, since in the
other one a longer segment also spares early bytes their short contexts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from farfield.theory.results import InputError
from farfield.validation.attention import Path, fused
from farfield.validation.configuration import CAUSAL, Visibility
from farfield.validation.corpus import segments
from farfield.validation.model import Transformer

_TOKENS = 8_192  # a forward pass, which bounds the memory
_NORMAL = 1.959964  # two-sided 95 %


@dataclass(frozen=True)
class Perplexity:
    """A measured perplexity, and its ratio to that at the training length on the same targets.

    Args:
        protocol: `non-overlapping` or `last token`.
        length: tokens of context.
        perplexity: exp of `nats`, the mean loss in nats a byte.
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
    model: Transformer,
    text: np.ndarray,
    lengths: Sequence[int],
    *,
    blocks: int = 64,
    visible: Visibility = CAUSAL,
    path: Path = fused,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Perplexity, ...]:
    """Perplexity over segments of each length, all their bytes scored [S].

    Args:
        model: the model.
        text: `uint8`, shape (bytes,).
        lengths: segment lengths in tokens; a block whose length is no multiple ends with a
            shorter segment, so that the targets stay the same.
        blocks: number of blocks of the longest length, evenly spaced in the text.
        visible: which keys a query sees.
        path: the attention path.
        progress: called with the number of lengths done, and of all.

    Raises:
        InputError: the text is shorter than the longest length, or the encoding knows less.
    """
    rows = segments(_long_enough(text, max(lengths)), blocks, max(lengths))
    losses = []
    for done, length in enumerate(lengths):
        scored = np.empty((len(rows), max(lengths)))
        for start in range(0, max(lengths), length):
            stop = min(start + length, max(lengths))
            scored[:, start:stop] = _losses(model, rows[:, start : stop + 1], visible, path)
        losses.append(scored)
        if progress is not None:
            progress(done + 1, len(lengths))
    return _summary("non-overlapping", model.length, lengths, losses)


def last_token(
    model: Transformer,
    text: np.ndarray,
    lengths: Sequence[int],
    *,
    targets: int = 512,
    visible: Visibility = CAUSAL,
    path: Path = fused,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Perplexity, ...]:
    """Perplexity of single bytes, each predicted from exactly `length` bytes before it [C, 3.4].

    Args:
        model: the model.
        text: `uint8`, shape (bytes,).
        lengths: context lengths in tokens.
        targets: number of target bytes, evenly spaced in the text.
        visible: which keys a query sees.
        path: the attention path.
        progress: called with the number of lengths done, and of all.

    Raises:
        InputError: the text is shorter than the longest length, or the encoding knows less.
    """
    rows = segments(_long_enough(text, max(lengths)), targets, max(lengths))
    losses = []
    for done, length in enumerate(lengths):
        losses.append(_losses(model, rows[:, -length - 1 :], visible, path, last=True))
        if progress is not None:
            progress(done + 1, len(lengths))
    return _summary("last token", model.length, lengths, losses)


def _long_enough(text: np.ndarray, length: int) -> np.ndarray:
    if len(text) <= length:
        raise InputError(
            f"the text has {len(text)} bytes, length {length} takes {length + 1}; accepted: a "
            "longer text, or shorter lengths"
        )
    return text


@torch.no_grad()
def _losses(
    model: Transformer, rows: np.ndarray, visible: Visibility, path: Path, *, last: bool = False
) -> np.ndarray:
    """Nats of each target, shape (rows, length or 1), in float64."""
    results = []
    step = max(1, _TOKENS // rows.shape[1])
    for start in range(0, len(rows), step):
        part = torch.from_numpy(rows[start : start + step]).to(model.device)
        first = -1 if last else 0
        hidden = model.hidden(model.embed(part[:, :-1]), visible, path)[:, first:]
        logits, targets = model.logits(hidden).double(), part[:, 1:][:, first:]
        results.append(cross_entropy(logits.transpose(1, 2), targets, reduction="none").cpu())
    return torch.cat(results).numpy()


def _summary(
    protocol: str, trained: int, lengths: Sequence[int], losses: Sequence[np.ndarray]
) -> tuple[Perplexity, ...]:
    base = trained if trained in lengths else min(lengths)
    means = [scored.mean(1) for scored in losses]  # one number a sample
    results = []
    for length, scored, mean in zip(lengths, losses, means, strict=True):
        nats, error = _mean(mean)
        log_ratio, ratio_error = _mean(mean - means[lengths.index(base)])
        low, high = (math.exp(log_ratio + s * _NORMAL * ratio_error) for s in (-1, 1))
        ratio = math.exp(log_ratio)
        results.append(
            Perplexity(
                protocol, length, math.exp(nats), nats, error, scored.size, len(mean), base, ratio,
                low, high,
            )
        )  # fmt: skip
    return tuple(results)


def _mean(samples: np.ndarray) -> tuple[float, float]:
    """Mean and its standard error, 0 for a single sample."""
    spread = samples.std(ddof=1) if len(samples) > 1 else 0.0
    return float(samples.mean()), float(spread / math.sqrt(len(samples)))
