"""What a folder says of its model, whatever lies there."""

from __future__ import annotations

import os
from pathlib import Path

from farfield.theory.answers.answer import InputError
from farfield.validation.models.biases import with_bias
from farfield.validation.models.gguf_headers import describe_gguf
from farfield.validation.models.layers import ModelOutline
from farfield.validation.models.transformers_config import described, read_json

_ACCEPTED = "a folder with config.json, as the library transformers writes it, or a finished run"


def describe(folder: str | os.PathLike[str] | ModelOutline) -> ModelOutline:
    """What a folder says of its model; no weight is read but those that are a bias.

    Raises:
        InputError: the folder is missing or holds something else, which is named; its
            configuration cannot be read, or was written by a newer transformers.
    """
    if isinstance(folder, ModelOutline):
        return folder
    path, given = Path(folder).expanduser(), f"model {str(folder)!r}"
    if (path / "run.json").is_file():
        from farfield.validation.models.finished_run import describe_run

        return describe_run(path)
    if path.suffix == ".gguf" and path.is_file():
        return describe_gguf(path)
    if not (path / "config.json").is_file():
        raise InputError(f"{given} {_instead(path)}")
    values = read_json(path, "config.json")
    kind = values.get("model_type")
    if not isinstance(kind, str) or not kind.isprintable() or not 0 < len(kind) <= 40:
        raise InputError(f"{given}: config.json names no model_type; accepted: {_ACCEPTED}")
    return with_bias(*described(path, values))


def _instead(path: Path) -> str:
    """What lies at a path that is no folder of a model, and what is accepted."""
    if not path.exists():
        return f"does not exist; accepted: {_ACCEPTED}"
    if not path.is_dir():
        return f"is a file; accepted: {_ACCEPTED} (that may be {str(path.parent)!r}), or a GGUF"
    if (path / "adapter_config.json").is_file():
        return "holds an adapter without its model; accepted: a folder with the adapter merged"
    if headers := sorted(path.glob("*.gguf")):
        return f"holds a GGUF file; accepted: its path, {str(headers[0])!r}"
    if snapshots := sorted(p for p in path.glob("snapshots/*") if p.is_dir()):
        return f"is the root of a download cache; accepted: {str(snapshots[-1])!r}"
    if (path / "params.json").is_file():
        return "has params.json, the layout of another library; accepted: the model converted"
    return f"has no config.json; accepted: {_ACCEPTED}"
