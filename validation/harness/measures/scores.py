"""The expected attention score s[n] of a trained model, and its resolution [S, Eq. 13 and 4].

`s[n]` is the mean of the scores between tokens at distance `n`: content logits divided by the root
of the head size, plus the bias. Sums along diagonals are taken a chunk of queries at a time, so
memory is linear in the length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from farfield.numerics.resolution import attention_resolution
from farfield.theory.answers.answer import InputError
from farfield.validation.harness.attention import LogitTransform, diagonals, with_hook
from farfield.validation.harness.corpus import samples_of
from farfield.validation.harness.model import Transformer, layer_bias
from farfield.validation.harness.visibility import CAUSAL, Visibility

_CHUNK = 256


@dataclass(frozen=True)
class ExpectedScores:
    """Measured scores by distance, and the attention resolution they give.

    Args:
        scores: `s[n]` for n = 0 .. length - 1, mean over segments, heads and layers; None at
            distances where the bias is -oo or no key is visible.
        layers: the same of each layer.
        resolution: `R(s)` of the mean; None where a score is missing between others.
        layer_resolutions: of each layer; [S] averages over layers.
        length, segments: tokens of a segment, and segments.
        scale: what the logits were multiplied by.
    """

    scores: tuple[float | None, ...]
    layers: tuple[tuple[float | None, ...], ...]
    resolution: float | None
    layer_resolutions: tuple[float | None, ...]
    length: int
    segments: int
    scale: str = "1/sqrt(head size)"


@torch.no_grad()
def expected_scores(
    model: Transformer,
    text: np.ndarray,
    *,
    length: int = 1024,
    segments: int = 4,
    visible: Visibility = CAUSAL,
) -> ExpectedScores:
    """Mean score at each distance over all pairs of tokens [S, Eq. 13].

    A segment has `length` tokens, at least 2. The segments are evenly spaced in the text. Only
    pairs count whose key is visible.

    Raises:
        InputError: the text is too short, or the encoding knows less than `length`.
    """
    if length < 2:
        raise InputError(f"a segment of {length} tokens; accepted are at least 2")
    samples = torch.from_numpy(samples_of(text, segments, length)[:, :-1])
    table = model.bias_table(length)
    sums: list[Tensor] = []
    counts = torch.zeros(length, dtype=torch.float64)

    def look(
        query: Tensor, key: Tensor, value: Tensor, visible: Visibility, weighting: LogitTransform
    ) -> None:
        total, counted = torch.zeros(length, dtype=torch.float64), torch.zeros_like(counts)
        scale = 1 / math.sqrt(query.shape[-1])
        for start in range(0, length, _CHUNK):
            stop = min(start + _CHUNK, length)
            at = torch.arange(stop - 1, start - 1, -1)  # in reverse, so that a diagonal is a sum
            seen = visible.sees(at[:, None], torch.arange(stop)).to(query.device)
            logits = query[:, :, at].double() @ key[:, :, :stop].double().mT * scale
            logits = logits.mean((0, 1)) * seen
            for into, matrix in ((total, logits), (counted, seen.double())):
                into[:stop] += diagonals(matrix[None])[0, :stop].flip(-1).cpu()
        sums.append(total)
        counts.copy_(counted)

    path = with_hook(look)
    for sample in samples.split(1):
        model.hidden(model.embed(sample.to(model.device)), visible, path)
    content = torch.stack(sums).unflatten(0, (len(samples), -1)).mean(0) / counts
    scores = content
    if table is not None:
        heads = [layer.heads for layer in model.layers]
        scores = content + torch.stack([layer_bias(table, *at).mean(0) for at in enumerate(heads)])
    found = [[v if math.isfinite(v) else None for v in row] for row in scores.tolist()]
    mean = [v if math.isfinite(v) else None for v in scores.mean(0).tolist()]
    return ExpectedScores(
        tuple(mean),
        tuple(map(tuple, found)),
        _resolution(mean),
        tuple(map(_resolution, found)),
        length,
        len(samples),
    )


def _resolution(scores: list[float | None]) -> float | None:
    """R of scores that may end before the row does, as those of a window."""
    known = [score for score in scores if score is not None]
    if known != scores[: len(known)] or len(known) < 2:
        return None
    window = None if len(known) == len(scores) else f"window {len(known)}"
    padded = known if window is None else [*known, 0.0]
    return attention_resolution(np.array(padded), mask=window).value
