"""How much memory a configuration takes, estimated before anything is started.

The estimate counts what grows: weights with gradient and two moments, the activations that the
backward pass needs, and the scores of the vocabulary. It is meant to be right within a factor of
two; a run is refused only where the estimate exceeds all the memory that is free.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from farfield.theory.answers.answer import InputError
from farfield.validation.harness.configuration import Configuration

if TYPE_CHECKING:
    import torch

_FLOATS = 22  # a token and layer keeps this many times the width for the backward pass
_LIBRARIES = 400 << 20  # torch and its thread buffers
TOKENS_A_PASS = 8192
"""Tokens that a measurement sends through the model at once, unless one segment has more."""


def parameters(configuration: Configuration) -> int:
    """Weights of the model, those of a learned bias left out.

    >>> from farfield.theory.encodings import encoding
    >>> from farfield.validation.harness.presets import preset
    >>> from farfield.validation.harness.reading import corpus
    >>> parameters(Configuration(encoding("alibi"), corpus(), preset("demo")))
    821504
    """
    preset, vocabulary = configuration.preset, configuration.vocabulary
    width = preset.width
    layer = 12 * width**2 + 4 * width
    known = preset.length if configuration.encoding.mechanism == "learned_absolute" else 0
    tables = vocabulary * (1 if preset.embedding_spread is None else 2) + known
    return preset.layers * layer + tables * width + 2 * width


def needed(configuration: Configuration) -> int:
    """Bytes that training and measuring take at their peak, estimated."""
    preset, measure = configuration.preset, configuration.settings
    vocabulary, weights = configuration.vocabulary, parameters(configuration)
    in_training = preset.batch // preset.parts * preset.length
    in_measuring = max(
        TOKENS_A_PASS, measure.gradient_length or measure.lengths[-1], measure.row_length
    )
    a_token = 4 * _FLOATS * preset.layers * preset.width
    train = 16 * weights + in_training * (a_token + 4 * 4 * vocabulary)
    rows = 10 * 8 * preset.heads * measure.rows * measure.row_length
    return _LIBRARIES + max(train, 4 * weights + in_measuring * a_token + rows)


def available(device: torch.device) -> int | None:
    """Bytes that are free on a device; None where the system does not say."""
    if device.type == "cuda":
        import torch

        return int(torch.cuda.mem_get_info(device)[0])
    found = []
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        lines = dict(line.split(":") for line in meminfo.read_text().splitlines())
        found.append(int(lines["MemAvailable"].split()[0]) << 10)
    limit, used = (Path("/sys/fs/cgroup") / f"memory.{k}" for k in ("max", "current"))
    if limit.exists() and used.exists() and (text := limit.read_text().strip()) != "max":
        found.append(int(text) - int(used.read_text()))
    return min(found, default=None)


def require_memory(configuration: Configuration, device: torch.device) -> None:
    """Raise InputError, in one line, where the estimate exceeds the free memory."""
    free, wanted = available(device), needed(configuration)
    if free is not None and wanted > free:
        preset = configuration.preset
        raise InputError(
            f"preset {preset.name} takes about {_size(wanted)} of memory, {_size(max(0, free))} "
            f"are free on {device.type}; accepted: a smaller preset, a smaller vocabulary, or "
            "shorter lengths"
        )


def _size(count: int) -> str:
    return f"{math.ceil(count / (1 << 20)):,} MiB"
