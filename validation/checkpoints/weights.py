"""The weights of a folder, as safetensors files say: names, shapes, and a tensor where it is asked
for. Nothing is unpickled, and no library is needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from farfield.theory.answers.answer import InputError
from farfield.validation.checkpoints.guarded import INDEX, Config, document, opened, parsed

_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
_SHARDS = 2000
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_TABLE = 1 << 30  # bytes of a tensor that is read here: a gain, or a table of positions


@dataclass(frozen=True)
class Stored:
    """Where a tensor is: its file, type, shape, and the bytes that hold it."""

    file: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


def headers(path: Path) -> dict[str, Stored]:
    """Each tensor of the folder's safetensors.

    Raises:
        InputError: there are none, or only pickled ones; a file is missing or damaged.
    """
    files = sorted(f.name for f in path.glob("*.safetensors"))
    if len(files) > _SHARDS:
        raise InputError(f"model {path.name!r} has {len(files)} files; accepted: {_SHARDS}")
    _require_all(path, {*files})
    if not files:
        pickled = [p.name for pattern in _PICKLED for p in path.glob(pattern)]
        wrong = (
            f"has pickled weights ({pickled[0]}), which may run code when they are read"
            if pickled
            else "has no weights"
        )
        raise InputError(f"model {path.name!r} {wrong}; accepted: *.safetensors")
    return {name: stored for file in files for name, stored in _header(path, file).items()}


def _header(path: Path, name: str) -> dict[str, Stored]:
    """The tensors of one file, whose header says where each begins and ends."""
    with opened(path, name) as file:
        whole = file.seek(0, 2)
        file.seek(0)
        size = int.from_bytes(file.read(8), "little")
        if not 2 <= size <= min(INDEX, whole - 8):
            raise InputError(
                f"model {path.name!r}: {name} is no whole safetensors file: its header would take "
                f"{size} bytes; accepted: at most {INDEX}, within the file"
            )
        said = parsed(path.name, name, file.read(size))
    return {k: _stored(said, k, 8 + size, whole) for k in said.values if k != "__metadata__"}


def _stored(said: Config, name: str, start: int, whole: int) -> Stored:
    entry = said.part(name)
    dtype = entry.value("dtype")
    shape, ends = (_counts(entry.value(k)) for k in ("shape", "data_offsets"))
    if (
        not isinstance(dtype, str)
        or shape is None
        or ends is None
        or len(ends) != 2
        or not ends[0] <= ends[1] <= whole - start
        or (dtype in _TYPES and math.prod(shape) * int(_TYPES[dtype][2]) != ends[1] - ends[0])
    ):
        raise said.wrong(f"a tensor {name[:60]!r} that is not whole", "a whole safetensors file")
    return Stored(said.file, dtype, shape, start + ends[0], start + ends[1])


def _counts(given: Any) -> tuple[int, ...] | None:
    """A few whole numbers from 0, or None."""
    if not isinstance(given, list) or len(given) > 16:
        return None
    return tuple(given) if all(type(x) is int and x >= 0 for x in given) else None


def _require_all(path: Path, present: set[str]) -> None:
    """Raise InputError unless every file is there that the index names, if there is an index."""
    index = "model.safetensors.index.json"
    if not (path / index).is_symlink() and not (path / index).exists():
        return
    named = document(path, index, INDEX).part("weight_map").values.values()
    if wrong := next((v for v in named if not isinstance(v, str)), None):
        raise InputError(
            f"model {path.name!r}: {index} has {str(wrong)[:40]!r} in weight_map; accepted: names "
            "of files"
        )
    if missing := sorted({*named} - present):
        raise InputError(
            f"model {path.name!r} lacks the file {missing[0][:60]!r} that {index} names; accepted: "
            "all of them"
        )


def tensor(path: Path, name: str, known: Mapping[str, Stored] | None = None) -> np.ndarray:
    """A tensor of a folder in float64.

    Args:
        path: the folder.
        name: of the tensor.
        known: the headers, if they have been read.

    Raises:
        InputError: it is not there, or of a type that is not read here; as `headers`.
    """
    stored = (headers(path) if known is None else known).get(name)
    if stored is None:
        raise InputError(f"model {path.name!r} lacks the tensor {name!r}; accepted: all of them")
    size = stored.stop - stored.start
    if stored.dtype not in _TYPES or size > _TABLE:
        raise InputError(
            f"model {path.name!r}: {stored.file} holds {name!r} as {size} bytes of "
            f"{stored.dtype[:20]!r}; accepted: at most {_TABLE} of {', '.join(_TYPES)}"
        )
    with opened(path, stored.file) as file:
        file.seek(stored.start)
        found = np.frombuffer(file.read(size), dtype=_TYPES[stored.dtype])
    if stored.dtype == "BF16":  # the upper half of a float32
        found = (found.astype(np.uint32) << 16).view(np.float32)
    return found.astype(np.float64).reshape(stored.shape)


def reader(path: Path) -> Callable[[str], np.ndarray | None]:
    """Reads tensors of a folder in float64 by the names of the library; headers are read once.

    Files name the language model within a larger one, or leave the first part of a name out; the
    reader tries those names too. It returns None where there is no such tensor.

    Raises:
        InputError: as `headers`, and as `tensor` where a tensor is read.
    """
    stored = headers(path)

    def read(name: str) -> np.ndarray | None:
        names = (
            name,
            name.partition(".")[2],
            f"language_model.{name}",
            f"model.language_model.{name.partition('.')[2]}",
        )
        known = next((n for n in names if n in stored), None)
        return None if known is None else tensor(path, known, stored)

    return read
