"""Tensors of a folder, read one at a time: those that the library itself would read.

Where there is an index, the files that it names are read and no others. Nothing is unpickled.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farfield.theory.answers.answer import InputError
from farfield.validation.models.configuration import read_json
from farfield.validation.models.outline import RUN, ModelOutline
from farfield.validation.optional import first_line, library

if TYPE_CHECKING:
    from torch import Tensor

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
_INDEX_BYTES = 32 << 20
_MARKS = {
    "base_layer.": "an adapter that is not merged",
    "lora_A.": "an adapter that is not merged",
    "_orig_mod.": "a compiled model, whose names begin with _orig_mod",
    ".qweight": "quantised weights",
    ".weight_scale": "quantised weights",
    ".absmax": "quantised weights",
}


def require_weights(model: ModelOutline) -> dict[str, Path]:
    """The file of each tensor of a folder.

    Raises:
        InputError: there are none, a file is missing or damaged, or the weights are not those of
            the model in floating point: an adapter, quantised, compiled. The reason is named.
    """
    if (model.path / "adapter_config.json").is_file():
        raise _wrong(model, "has an adapter beside the model", "a model with its adapter merged")
    if table := model.values.get("quantization_config"):
        how = str(table.get("quant_method", "quantised") if isinstance(table, dict) else table)
        raise _wrong(model, f"has weights quantised by {how!r:.40}", "weights in floating point")
    named = _places(model)
    for file in sorted({*named.values()}):
        present = _names(model, file)
        if lost := next((k for k, f in named.items() if f == file and k not in present), None):
            raise _wrong(
                model, f"lacks {lost!r} in {file.name}", "the tensors that the index names"
            )
    for name in named:
        if mark := next((what for part, what in _MARKS.items() if part in name), None):
            raise _wrong(model, f"holds {mark} ({name!r:.60})", "the plain weights of the model")
    return named


def _places(model: ModelOutline) -> dict[str, Path]:
    """The file that each tensor is said to be in: by an index, or by the one file that there is."""
    path = model.path
    if not (path / INDEX).is_file():
        single = path / ("weights.safetensors" if model.kind == RUN else SINGLE)
        return dict.fromkeys(_names(model, single), single)
    files = read_json(path, INDEX, _INDEX_BYTES).get("weight_map")
    if not isinstance(files, dict) or not all(isinstance(v, str) for v in files.values()):
        raise _wrong(model, f"has no table weight_map in {INDEX}", "names of files")
    return {key: path / Path(value).name for key, value in files.items()}


def stamped(model: ModelOutline, *parts: bytes) -> str:
    """The name of a file that changes with the weights of a model, and with all else that decides
    its numbers: with its files and their times, or sums of a live model."""
    files = [model.path] if model.path.is_file() else sorted(model.path.glob("*.safetensors"))
    weights = str([(f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in files])
    if model.network is not None:
        weights = str([float(x.detach().double().sum()) for x in model.network.parameters()])
    stamp = hashlib.sha256(weights.encode())
    for part in parts:
        stamp.update(part)
    safe = "".join(c if c.isalnum() else "-" for c in model.name).strip("-")
    return f"{safe}-{stamp.hexdigest()[:16]}.json"


def require_finite(model: ModelOutline, name: str, weight: Any) -> None:
    """Raise InputError for a tensor of torch with NaN or infinity; it is looked at in parts."""
    if not all(part.isfinite().all() for part in weight.detach().flatten().split(1 << 22)):
        raise _wrong(model, f"has NaN or infinity in {name!r}", "finite weights")


def _wrong(model: ModelOutline, what: str, accepted: str) -> InputError:
    return InputError(f"model {model.name!r} {what}; accepted: {accepted}")


def _names(model: ModelOutline, file: Path) -> set[str]:
    """The tensors of a file, whose sizes the library checks."""
    if not file.is_file():
        others = [p.name for p in model.path.glob("*.safetensors")]
        pickled = [p.name for s in ("bin", "pt", "pth") for p in model.path.glob(f"*.{s}")]
        what = f"has no {file.name}"
        if others:
            what += f", but {others[0]!r}, which no index names"
        elif pickled:
            what += f", but pickled weights ({pickled[0]}), which may run code when they are read"
        raise _wrong(model, what, f"{SINGLE}, or the files that {INDEX} names")
    safetensors = library("safetensors", "weights", "hf")
    try:
        with safetensors.safe_open(file, "numpy") as opened:
            return {*opened.keys()}
    except (OSError, safetensors.SafetensorError) as error:
        why = first_line(error, 100)
        raise _wrong(
            model, f"has a damaged {file.name} ({why})", "a whole safetensors file"
        ) from None


def reader(model: ModelOutline, *prefixes: str) -> Callable[[str], Tensor | None]:
    """Reads tensors by the names of the library, as their files have them; None where there is no
    such tensor. A file is closed again after each, so that its pages are given up.

    Args:
        model: of a folder.
        *prefixes: of names, which files have or leave out.

    Raises:
        InputError: as `require_weights`; a tensor is not in floating point.
    """
    stored = require_weights(model)

    def read(name: str) -> Tensor | None:
        tried = (n for prefix in prefixes for n in (name.removeprefix(prefix), prefix + name))
        match = next((n for n in (name, *tried) if n in stored), None)
        if match is None:
            return None
        with library("safetensors", "weights", "hf").safe_open(stored[match], "pt") as file:
            tensor: Tensor = file.get_tensor(match)
        if not tensor.is_floating_point() or tensor.dtype.itemsize < 2:
            what = f"has {match!r:.60} in {tensor.dtype}, quantised"
            raise _wrong(model, what, "weights in floating point")
        return tensor

    return read
