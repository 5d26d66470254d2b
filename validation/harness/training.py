"""Training of a small language model: AdamW, warm-up and cosine, clipping, one loop.

The text of step `t` depends on the seed and on `t` alone, so a run can be continued from any step.
A checkpoint holds a state whose loss was seen to be finite: it is written between the loss of a
step and its update, so a training that ends in numbers that are none leaves a good state behind.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from farfield.validation.harness import parallel
from farfield.validation.harness.checkpoints import (
    random_state,
    read_checkpoint,
    restore,
    write_checkpoint,
)
from farfield.validation.harness.model import Transformer
from farfield.validation.harness.presets import Preset

Progress = Callable[[str, int, int, str], None]
"""Called as `progress(stage, done, total, note)`; the note is a few words for a reader."""

_FLOOR = 0.05  # the cosine ends at this share of the peak
_SMOOTHED = 20  # steps that the reported losses average over
_SHARE = 20  # a checkpoint is not written again before so many times what writing it took


class TrainingDiverged(ArithmeticError):
    """The loss or its gradient is no finite number; one line says where, and what is kept."""


@dataclass(frozen=True)
class Training:
    """How a training went.

    Args:
        steps, tokens: of the whole run.
        losses: pairs (step, mean loss in nats a byte of the steps since the pair before).
        seconds, cpu_seconds: wall time, and processor time summed over threads; both over all
            parts of a training that was resumed.
        resumed: the steps after which it was resumed from a checkpoint.
    """

    steps: int
    tokens: int
    losses: tuple[tuple[int, float], ...]
    seconds: float
    cpu_seconds: float
    resumed: tuple[int, ...] = ()


def learning_rate(step: int, preset: Preset) -> float:
    """The rate at a step counted from 0: linear warm-up to the peak, then the preset's schedule.

    The cosine ends at 5 % of the peak; the warm-up takes at most a fifth of the steps, except that
    of `linear`, which takes what the preset says.

    >>> from farfield.validation.harness.presets import preset
    >>> [round(learning_rate(s, preset("demo")), 6) for s in (0, 49, 399)]
    [4e-05, 0.002, 0.0001]
    """
    warmup = preset.warmup
    if preset.schedule != "linear":
        warmup = min(warmup, preset.steps // 5)
    if step < warmup:
        return preset.learning_rate * (step + 1) / warmup
    if preset.schedule == "inverse sqrt":
        return preset.learning_rate * math.sqrt(max(1, warmup) / (step + 1))
    done = (step + 1 - warmup) / max(1, preset.steps - warmup)
    if preset.schedule == "linear":
        return preset.learning_rate * (1 - done)
    return preset.learning_rate * (_FLOOR + (1 - _FLOOR) * (1 + math.cos(math.pi * done)) / 2)


def batch(text: np.ndarray, preset: Preset, seed: int, step: int) -> tuple[Tensor, Tensor]:
    """Inputs and the tokens that follow them, int64, both of shape (batch, length)."""
    random = np.random.default_rng([seed, step])
    starts = random.integers(len(text) - preset.length, size=preset.batch)
    rows = torch.from_numpy(text[starts[:, None] + np.arange(preset.length + 1)].astype(np.int64))
    return rows[:, :-1], rows[:, 1:]


def optimiser(model: Transformer, preset: Preset) -> torch.optim.AdamW:
    """AdamW; only matrices decay, not norms nor learned biases."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": preset.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        groups, lr=preset.learning_rate, betas=preset.betas, eps=preset.epsilon, fused=True
    )


def train(
    model: Transformer,
    text: np.ndarray,
    preset: Preset,
    seed: int = 0,
    progress: Progress | None = None,
    folder: Path | None = None,
    every: float = 30.0,
) -> Training:
    """Train a model in place to predict the next token.

    In a process group each process runs its rows of every batch; process 0 alone keeps
    checkpoints, and the others begin in its state (`farfield.validation.harness.parallel`).

    Args:
        model: with fresh weights.
        text: `uint8`, shape (bytes,), longer than the training length.
        preset: the schedule.
        seed: of the order of the text.
        progress: called after each step.
        folder: where checkpoints are kept; one that is there is resumed. None keeps none.
        every: seconds between checkpoints, from 0 (each step).

    Raises:
        TrainingDiverged: the loss, or its gradient, is not finite.
        CorruptFile: the checkpoint in the folder is not what was written.
        InputError: there are more processes than sequences in a batch.
    """
    model.train()
    optimise, device = optimiser(model, preset), model.device
    mixed = preset.precision == "bfloat16"
    losses: list[tuple[int, float]] = []
    recent: list[float] = []
    resumed: list[int] = []
    first, spent, spent_cpu, kept = 0, 0.0, 0.0, None
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        if folder is not None and (checkpoint := read_checkpoint(folder)) is not None:
            restore(checkpoint, model, optimise)
            first, record = checkpoint.step, checkpoint.record
            losses, recent = [(step, loss) for step, loss in record["losses"]], record["recent"]
            spent, spent_cpu = record["seconds"], record["cpu_seconds"]
            resumed, kept = [*record["resumed"], first], _place(folder, first)
        first = parallel.begin(first, batch(text, preset, seed, 0)[0])
        if parallel.rank() > 0:
            torch.manual_seed(parallel.seed_for(seed, first))
        shared = parallel.share(model, optimise, first)
        forward = _compiled(shared) if device.type == "cuda" else shared
        began, began_cpu = time.perf_counter() - spent, time.process_time() - spent_cpu
        due = time.perf_counter() + every

        def keep(step: int, random: dict[str, Tensor]) -> str:
            assert folder is not None
            record = {
                "losses": losses,
                "recent": recent,
                "resumed": resumed,
                "seconds": time.perf_counter() - began,
                "cpu_seconds": time.process_time() - began_cpu,
            }
            write_checkpoint(folder, step, model, optimise, random, record)
            return _place(folder, step)

        for step in range(first, preset.steps):
            random = random_state(device)
            value = 0.0
            parts = _parts(batch(text, preset, seed, step), preset, device)
            for number, (inputs, targets) in enumerate(parts, 1):
                alone = parallel.size() > 1 and number < len(parts)
                with shared.no_sync() if alone else nullcontext():
                    with torch.autocast(device.type, torch.bfloat16, enabled=mixed):
                        scores = forward(inputs)
                    scores = scores.float() if mixed else scores
                    loss = cross_entropy(scores.flatten(0, 1), targets.flatten())
                    loss = loss / (preset.batch / len(inputs))
                    (loss * parallel.size()).backward()  # the gradients are averaged
                value += loss.item()
            value = parallel.total(value)
            if not math.isfinite(value):
                raise _diverged(f"the loss is {value}", step, preset, kept)
            if folder is not None and step > first and time.perf_counter() >= due:
                writing = time.perf_counter()
                kept = keep(step, random)
                due = time.perf_counter()
                due += max(every, _SHARE * (due - writing) if every else 0)
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), preset.clip).item()
            if not math.isfinite(norm):
                kept = None if folder is None else keep(step, random)
                raise _diverged(f"the gradient is {norm}", step, preset, kept)
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
    return Training(
        preset.steps,
        preset.steps * preset.batch * preset.length,
        tuple(losses),
        round(seconds, 2),
        round(cpu_seconds, 2),
        tuple(resumed),
    )


def _compiled(model: nn.Module, **options: Any) -> Callable[[Tensor], Tensor]:
    """The model compiled; as it is, with a warning, where the compiler does not work."""
    compiled: Callable[[Tensor], Tensor] | None = torch.compile(model, **options)
    tried = False

    def forward(tokens: Tensor) -> Tensor:
        nonlocal compiled, tried
        if compiled is not None:
            try:
                scores = compiled(tokens)
                tried = True
                return scores
            except torch.cuda.OutOfMemoryError:
                raise
            except Exception as error:
                if tried:
                    raise
                why = (str(error).strip().splitlines() or [type(error).__name__])[0]
                warnings.warn(
                    f"torch.compile does not work here ({why[:100]}); training without it",
                    stacklevel=2,
                )
                compiled = None
        return model(tokens)

    return forward


def _parts(
    rows: tuple[Tensor, Tensor], preset: Preset, device: torch.device
) -> list[tuple[Tensor, Tensor]]:
    """Rows of a batch that this process runs, in parts no larger than one process would make."""
    most = preset.batch // preset.parts
    inputs, targets = (parallel.own_rows(row).to(device).split(most) for row in rows)
    return list(zip(inputs, targets, strict=True))


def _place(folder: Path, step: int) -> str:
    return f"{folder.name}/checkpoint-{step}.safetensors"


def _diverged(what: str, step: int, preset: Preset, kept: str | None) -> TrainingDiverged:
    state = "no state was kept" if kept is None else f"the last good state is kept as {kept}"
    return TrainingDiverged(
        f"{what} at step {step + 1} of {preset.steps} (learning rate "
        f"{learning_rate(step, preset):.3g}); {state}; a smaller rate or a milder bias may train"
    )
