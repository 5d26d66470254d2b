"""The weights of a folder, as safetensors files say: names, shapes, and a tensor where it is asked
for. Nothing is unpickled, and torch is not needed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from farfield.theory.answers.answer import InputError
from farfield.validation.optional import library

_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


def headers(path: Path) -> dict[str, tuple[Path, tuple[int, ...]]]:
    """Each tensor of the folder's safetensors with its file and shape.

    Raises:
        InputError: there are none, or only pickled ones; a file is missing or cannot be read.
    """
    files = sorted(path.glob("*.safetensors"))
    _require_all(path, {f.name for f in files})
    if not files:
        pickled = [p.name for pattern in _PICKLED for p in path.glob(pattern)]
        wrong = (
            f"has pickled weights ({pickled[0]}), which may run code when they are read"
            if pickled
            else "has no weights"
        )
        raise InputError(f"model {path.name!r} {wrong}; accepted: *.safetensors")
    safetensors = library("safetensors", "the weights of a model", "hf")
    found: dict[str, tuple[Path, tuple[int, ...]]] = {}
    for place in files:
        try:
            with safetensors.safe_open(place, framework="np") as file:
                for name in file.keys():  # noqa: SIM118
                    found[name] = (place, tuple(file.get_slice(name).get_shape()))
        except (OSError, safetensors.SafetensorError):
            raise InputError(
                f"model {path.name!r}: {place.name} is no whole safetensors file"
            ) from None
    return found


def _require_all(path: Path, present: set[str]) -> None:
    """Raise InputError unless every file is there that the index names, if there is an index."""
    index = path / "model.safetensors.index.json"
    if not index.is_file():
        return
    try:
        named = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"model {path.name!r}: {index.name} cannot be read") from None
    if missing := sorted(named - present):
        raise InputError(
            f"model {path.name!r} lacks the file {missing[0]!r} that {index.name} names; accepted: "
            "all of them"
        )


def tensor(path: Path, name: str) -> np.ndarray:
    """A tensor of a folder in float64.

    Raises:
        InputError: it is not there; as `headers`.
    """
    stored = headers(path)
    if name not in stored:
        raise InputError(f"model {path.name!r} lacks the tensor {name!r}; accepted: all of them")
    place, shape = stored[name]
    safetensors = library("safetensors", "the weights of a model", "hf")
    with safetensors.safe_open(place, framework="np") as file:
        if file.get_slice(name).get_dtype() != "BF16":
            return np.asarray(file.get_tensor(name), dtype=np.float64)
    return _bfloat16(place, name).reshape(shape)


def _bfloat16(place: Path, name: str) -> np.ndarray:
    """A tensor in a type that NumPy lacks: the upper half of a float32."""
    with open(place, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        first, last = json.loads(file.read(size))[name]["data_offsets"]
        file.seek(8 + size + first)
        halves = np.frombuffer(file.read(last - first), dtype="<u2")
    return (halves.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
