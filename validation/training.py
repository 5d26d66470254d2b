"""Training of a small language model: AdamW, warm-up and cosine, clipping, one loop.

The text of step `t` depends on the seed and on `t` alone, so a run can be continued from any step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from farfield.validation.configuration import Preset
from farfield.validation.model import Transformer

Progress = Callable[[str, int, int, str], None]
"""Called as `progress(stage, done, total, note)`; the note is a few words for a reader."""

_FLOOR = 0.05  # the cosine ends at this share of the peak
_SMOOTHED = 20  # steps that the reported losses average over


class TrainingDiverged(ArithmeticError):
    """The loss is no longer a finite number; one line says at which step."""


@dataclass(frozen=True)
class Training:
    """How a training went.

    Args:
        steps, tokens: of the whole run.
        losses: pairs (step, mean loss in nats a byte of the steps since the pair before).
        seconds, cpu_seconds: wall time, and processor time summed over threads.
    """

    steps: int
    tokens: int
    losses: tuple[tuple[int, float], ...]
    seconds: float
    cpu_seconds: float


def learning_rate(step: int, preset: Preset) -> float:
    """The rate at a step counted from 0: linear warm-up to the peak, cosine to 5 % of it.

    The warm-up takes at most a fifth of the steps.

    >>> from farfield.validation.configuration import preset
    >>> [round(learning_rate(s, preset("demo")), 6) for s in (0, 49, 399)]
    [4e-05, 0.002, 0.0001]
    """
    warmup = min(preset.warmup, preset.steps // 5)
    if step < warmup:
        return preset.learning_rate * (step + 1) / warmup
    done = (step + 1 - warmup) / max(1, preset.steps - warmup)
    return preset.learning_rate * (_FLOOR + (1 - _FLOOR) * (1 + math.cos(math.pi * done)) / 2)


def batch(text: np.ndarray, preset: Preset, seed: int, step: int) -> tuple[Tensor, Tensor]:
    """Inputs and the bytes that follow them, int64, both of shape (batch, length)."""
    random = np.random.default_rng([seed, step])
    starts = random.integers(len(text) - preset.length, size=preset.batch)
    rows = torch.from_numpy(text[starts[:, None] + np.arange(preset.length + 1)].astype(np.int64))
    return rows[:, :-1], rows[:, 1:]


def optimiser(model: Transformer, preset: Preset) -> torch.optim.AdamW:
    """AdamW with betas 0.9 and 0.95; only matrices decay, not norms nor learned biases."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": preset.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=preset.learning_rate, betas=(0.9, 0.95), fused=True)


def train(
    model: Transformer,
    text: np.ndarray,
    preset: Preset,
    seed: int = 0,
    progress: Progress | None = None,
) -> Training:
    """Train a model in place to predict the next byte.

    Args:
        model: with fresh weights.
        text: `uint8`, shape (bytes,), longer than the training length.
        preset: the schedule.
        seed: of the order of the text.
        progress: called after each step.

    Raises:
        TrainingDiverged: the loss is not finite.
    """
    model.train()
    optimise = optimiser(model, preset)
    began, began_cpu = time.perf_counter(), time.process_time()
    losses: list[tuple[int, float]] = []
    recent: list[float] = []
    for step in range(preset.steps):
        inputs, targets = batch(text, preset, seed, step)
        loss = cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        value = loss.item()
        if not math.isfinite(value):
            raise TrainingDiverged(
                f"the loss is {value} at step {step + 1} of {preset.steps} (learning rate "
                f"{learning_rate(step, preset):.3g}); a smaller rate or a milder bias may train"
            )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), preset.clip)
        for group in optimise.param_groups:
            group["lr"] = learning_rate(step, preset)
        optimise.step()
        model.project()
        optimise.zero_grad()
        recent.append(value)
        if len(recent) == _SMOOTHED or step + 1 == preset.steps:
            losses.append((step + 1, round(sum(recent) / len(recent), 6)))
            recent = []
        if progress is not None:
            progress("train", step + 1, preset.steps, f"loss {value:.3f}")
    model.eval()
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - began_cpu
    tokens = preset.steps * preset.batch * preset.length
    return Training(preset.steps, tokens, tuple(losses), round(seconds, 2), round(cpu_seconds, 2))
