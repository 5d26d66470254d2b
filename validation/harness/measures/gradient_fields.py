"""The gradient receptive field: how much of the text the last prediction depends on [C, 5.1]."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from farfield.validation.harness.corpus import samples_of
from farfield.validation.harness.measures.receptive_fields import (
    LanguageModel,
    powers,
    resampled,
    share_within,
    tail_sums,
    tokens,
)
from farfield.validation.harness.model import Transformer
from farfield.validation.harness.visibility import CAUSAL, Visibility


@dataclass(frozen=True)
class GradientField:
    """Gradient ERF of a model, measured, and the gradient mass within the training length.

    Args:
        share: the `q` of the definition.
        tokens, tokens_low, tokens_high: of the mean curve, with a 95 % bootstrap interval.
        training_length: tokens the model was trained on.
        mass, mass_low, mass_high: share of the sum on the last `training_length` tokens, with a
            95 % bootstrap interval over the segments.
        curve: pairs (tokens, share on the last so many tokens) at powers of two.
        length, segments: tokens of a segment, and segments.
        scalar: whose gradient it is.
    """

    share: float
    tokens: int
    tokens_low: float
    tokens_high: float
    training_length: int
    mass: float
    mass_low: float
    mass_high: float
    curve: tuple[tuple[int, float], ...]
    length: int
    segments: int
    scalar: str = "log-probability of the observed next byte at the last position"


def gradient_receptive_field(
    model: Transformer,
    text: np.ndarray,
    *,
    share: float = 0.99,
    length: int = 1024,
    segments: int = 32,
    visible: Visibility = CAUSAL,
) -> GradientField:
    """Gradient ERF: the shortest suffix with more than `share` of the input gradient [C, 5.1].

    `s_m = ||g_m|| / sum ||g||`, `g_m` the gradient at input embedding `m` of the log-probability of
    the observed next byte at the last position. [C] does not name the scalar; this is our choice.

    Args:
        model: the model.
        text: `uint8`, shape (bytes,).
        share: between 0 and 1.
        length: tokens a segment.
        segments: how many, evenly spaced in the text; their curves are averaged.
        visible: which keys a query sees.

    Raises:
        InputError: the text is too short, or the encoding knows less than `length`.
    """
    curves = gradient_shares(model, samples_of(text, segments, length), visible)
    mass = share_within(curves, model.length)
    suffix, low, high = shortest_suffix(curves, share)
    mass_low, mass_high = np.quantile(resampled(mass), (0.025, 0.975))
    return GradientField(
        share=share,
        tokens=suffix,
        tokens_low=low,
        tokens_high=high,
        training_length=model.length,
        mass=float(mass.mean()),
        mass_low=float(mass_low),
        mass_high=float(mass_high),
        curve=tuple((p, float(share_within(curves, p).mean())) for p in powers(length)),
        length=length,
        segments=len(curves),
    )


def gradient_shares(
    model: LanguageModel, rows: np.ndarray, visible: Visibility = CAUSAL, tokens_a_pass: int = 8192
) -> np.ndarray:
    """`s_m` of each segment, nearest token first; float64, shape (segments, length).

    Args:
        model: its weights get no gradient.
        rows: int64, shape (segments, length + 1); the last column holds the observed next bytes.
        visible: which keys a query sees.
        tokens_a_pass: bounds the memory.
    """
    trained = [p for p in model.parameters() if p.requires_grad]
    for parameter in trained:
        parameter.requires_grad_(False)
    try:
        results = []
        step = max(1, tokens_a_pass // (rows.shape[1] - 1))
        for start in range(0, len(rows), step):
            part = torch.from_numpy(rows[start : start + step]).to(model.device)
            embedded = model.embed(part[:, :-1]).requires_grad_()
            logits = model.logits(model.hidden(embedded, visible, last=1)[:, -1])
            chosen = logits.log_softmax(-1).gather(-1, part[:, -1:])
            (gradient,) = torch.autograd.grad(chosen.sum(), embedded)
            norms = gradient.double().norm(dim=-1).flip(-1).cpu()
            results.append(norms / norms.sum(-1, keepdim=True))
    finally:
        for parameter in trained:
            parameter.requires_grad_(True)
    return torch.cat(results).numpy()


def shortest_suffix(curves: np.ndarray, share: float) -> tuple[int, float, float]:
    """Tokens of the shortest suffix with more than `share` of the mean curve, with an interval.

    Args:
        curves: nearest token first, each with sum 1; float64, shape (segments, length).
        share: between 0 and 1.

    Returns:
        The tokens, and the ends of their 95 % bootstrap interval over the segments.

    >>> shortest_suffix(np.array([[0.5, 0.25, 0.25]]), 0.7)
    (2, 2.0, 2.0)
    """
    log_eps = math.log1p(-share)
    lengths = tokens(tail_sums(torch.from_numpy(resampled(curves))), log_eps).numpy()
    low, high = np.quantile(lengths, (0.025, 0.975))
    mean = torch.from_numpy(curves.mean(0))
    return int(tokens(tail_sums(mean), log_eps)), float(low), float(high)
