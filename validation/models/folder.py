"""What a folder says of its model, whatever lies there: a run, a GGUF file, a `config.json`."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.answers.names import nearest
from farfield.validation.models.configuration import described, read_json
from farfield.validation.models.gguf_files import describe_gguf
from farfield.validation.models.outline import BIASED, ModelOutline
from farfield.validation.optional import library, require_torch

_ACCEPTED = (
    "a folder with config.json, as the library transformers writes it, that file, a GGUF file, the "
    "name of a model in the hub's cache, or a finished run"
)


def describe(folder: Any) -> ModelOutline:
    """What a folder says of its model; no weight is read but those that are a bias.

    Args:
        folder: of a model or of a run; a GGUF file; the name of a model in the cache of the hub; a
            model of the library transformers.

    Raises:
        InputError: the folder is missing or holds something else, which is named; its
            configuration cannot be read, or was written by a newer transformers.
    """
    if isinstance(folder, ModelOutline):
        return folder
    if hasattr(folder, "config") and hasattr(folder, "get_input_embeddings"):
        of = Path(folder.config.name_or_path or folder.config.model_type)
        return replace(_whole(of, folder.config.to_dict()), network=folder)
    if not isinstance(folder, str | os.PathLike):
        raise InputError(f"model {type(folder).__name__!r} is no model; accepted: {_ACCEPTED}")
    path, label = Path(os.path.expanduser(folder)), f"model {str(folder)!r}"
    refuse(
        any(len(part.encode(errors="replace")) > 255 for part in path.parts),
        f"model {str(folder)[:60]!r}… is too long for a name of a file; accepted: {_ACCEPTED}",
    )
    path = path if path.exists() else _in_cache(str(folder)) or path
    path = path.parent if path.name == "config.json" and path.is_file() else path
    if (path / "run.json").is_file():
        from farfield.validation.models.finished_run import describe_run

        return describe_run(path)
    if path.suffix == ".gguf" and path.is_file():
        return describe_gguf(path)
    if not (path / "config.json").is_file():
        raise InputError(f"{label} {_instead(path)}")
    values = read_json(path, "config.json")
    kind = values.get("model_type")
    refuse(
        not isinstance(kind, str) or not kind.isprintable() or not 0 < len(kind) <= 40,
        f"{label}: config.json names no model_type; accepted: {_ACCEPTED}",
    )
    return _whole(path, values)


def _whole(path: Path, values: dict[str, Any]) -> ModelOutline:
    """What the library makes of a configuration, with additive biases."""
    outline, text = described(path, values)
    if getattr(text, "model_type", "") not in BIASED:
        return outline
    from farfield.validation.models.biases import with_bias

    return with_bias(outline, text)


def _in_cache(name: str) -> Path | None:
    """The snapshot of a model `owner/name` in the cache of the hub; None where there is none."""
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        return None
    hub = library("huggingface_hub", "the name of a model", "hf")
    from huggingface_hub.errors import HFValidationError

    with suppress(HFValidationError):  # no name that the hub gives
        place = hub.try_to_load_from_cache(name, "config.json")
        return Path(place).parent if isinstance(place, str) else None
    return None


def place_of(model: str, runs: str) -> str | Path:
    """What `describe` takes: a model as it is named, or the folder of the run with that key.

    Raises:
        InputError: no run, or several runs, have a key that begins so; torch is missing.
    """
    if not re.fullmatch("[0-9a-f]{1,16}", model) or Path(model).exists():
        return model
    require_torch("a run named by its key")
    from farfield.validation.harness.runs import finished_run

    return finished_run(runs, model)


_INSTEAD = {
    "adapter_config.json": ("holds an adapter without its model", "a folder with it merged"),
    "*.gguf": ("holds a GGUF file", "its path, {!r}"),
    "snapshots/*": ("is the root of a download cache", "{!r}"),
    "params.json": ("has params.json, the layout of another library", "the model converted"),
}
"""What may lie in a folder that has no config.json, and what is accepted in its place."""


def _instead(path: Path) -> str:
    """What lies at a path that is no folder of a model, and the accepted forms."""
    if not path.exists():
        beside = [p.parent for p in path.parent.glob("*/config.json")]
        beside += (p for name in ("*.gguf", "config.json") for p in path.parent.glob(name))
        if close := nearest(path.name, [p.name for p in beside]):
            close = str(path.with_name(close))
            return f"does not exist; did you mean {close!r}? accepted: {_ACCEPTED}"
        if re.fullmatch(r"\w[\w-]*/[\w.-]+", str(path)) and not path.parent.is_dir():
            return f"is not in the hub's cache; download it first: hf download {path}"
        return f"does not exist; accepted: {_ACCEPTED}"
    if not path.is_dir():
        return f"is a file in {str(path.parent)!r}; accepted: {_ACCEPTED}"
    for pattern, (what, accepted) in _INSTEAD.items():
        if lies := sorted(path.glob(pattern)):
            return f"{what}; accepted: {accepted.format(str(lies[-1]))}"
    return f"has no config.json; accepted: {_ACCEPTED}"
