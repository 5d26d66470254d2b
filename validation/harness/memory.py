"""How much memory a configuration takes, estimated before anything is started.

The estimate counts what grows: weights with gradient and two moments, the activations that the
backward pass needs, and the scores of the vocabulary. It is meant to be right within a factor of
two; a run is refused only where the estimate exceeds all the memory that is free.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from farfield.theory.answers.answer import InputError
from farfield.validation.harness.configuration import Configuration

if TYPE_CHECKING:
    import torch

_FLOATS = 22  # a token and layer keeps this many times the width for the backward pass
_LIBRARIES = 400 << 20  # torch and its thread buffers
_TOKENS_A_PASS = 8192  # of a measurement, unless one segment has more


def needed(configuration: Configuration) -> int:
    """Bytes that training and measuring take at their peak, estimated.

    >>> from farfield.theory.encodings import encoding
    >>> from farfield.validation.harness.presets import preset
    >>> from farfield.validation.harness.reading import corpus
    >>> needed(Configuration(encoding("alibi"), corpus(), preset("demo"))) >> 20
    797
    """
    preset, measure = configuration.preset, configuration.settings
    size, vocabulary = preset.layers * preset.width, configuration.vocabulary
    weights = 12 * size * preset.width + 2 * vocabulary * preset.width
    asked = (measure.gradient_length or measure.lengths[-1], measure.row_length)
    tokens = max(preset.batch // preset.parts * preset.length, _TOKENS_A_PASS, *asked)
    return _LIBRARIES + 16 * weights + 4 * tokens * (_FLOATS * size + 4 * vocabulary)


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
        raise InputError(
            f"preset {configuration.preset.name} takes about {wanted >> 20:,} MiB of memory, "
            f"{max(0, free) >> 20:,} MiB are free on {device.type}; accepted: a smaller preset, a "
            "smaller vocabulary, or shorter lengths"
        )
