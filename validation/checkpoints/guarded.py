"""The files of a folder that somebody else wrote, read without trust: settings and weights.

Every file of a model folder is opened here. Only regular files inside the folder are read, up to a
size; a document is JSON in UTF-8 without repeated keys, not deep, its numbers not long. A value is
taken by its key, with its type and its range. Whatever is wrong becomes one line that names the
file and the key. Nothing of a folder is executed.

Weights are safetensors: a header says names, shapes and where each tensor lies. A tensor is read
where it is asked for. Nothing is unpickled, and no library is needed.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from farfield.theory.answers.answer import InputError

DOCUMENT, INDEX = 2 << 20, 32 << 20
"""The most bytes of a file of settings, and of a list of tensors."""

DEPTH = 32
"""The deepest nesting of a JSON file."""

DIGITS = 20
"""The longest whole number."""

LARGEST = 1 << 40
"""The largest whole number that a key accepts, unless its own limit is smaller."""

MOST = {
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "layers"), 2000),
    **dict.fromkeys(("num_decoder_layers", "relative_attention_num_buckets"), 2000),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "heads"), 1024),
    **dict.fromkeys(("head_dim", "d_kv", "relative_attention_max_distance"), 1 << 14),
    **dict.fromkeys(("hidden_size", "n_embd", "n_embed", "d_model", "width"), 1 << 20),
    "alibi_bias_max": 64,
}
"""The limit of a key that is smaller, by its name: beyond every model, and quickly read."""

FILES = 10_000
"""The most entries of a folder."""


_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
_INDEX, _SHARDS = "model.safetensors.index.json", 2000
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_TABLE = 1 << 30  # bytes of a tensor that is read here: a gain, or a table of positions


def opened(folder: Path, name: str, *, most: int | None = None) -> IO[bytes]:
    """A regular file of a folder, open for reading.

    Links inside the folder are followed, and those of a download cache, whose `snapshots` point to
    the `blobs` beside them.

    Args:
        folder: of a model.
        name: of the file.
        most: bytes that it may have.

    Raises:
        InputError: there is no such file, it is no regular one, it lies elsewhere or is too large.
    """

    def wrong(why: str) -> InputError:
        return InputError(f"model {folder.name!r}: {name} {why}; accepted: a regular file")

    try:
        place, home = (os.path.realpath(p, strict=True) for p in (folder / name, folder))
        cache = Path(home).parent
        inside = [Path(home), *([cache.parent / "blobs"] if cache.name == "snapshots" else [])]
        if not any(Path(place).is_relative_to(p) for p in inside):
            raise wrong("is a link that leaves the folder")
        handle = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise wrong(f"cannot be read ({error.strerror})") from None
    about = os.fstat(handle)
    why = ""
    if not stat.S_ISREG(about.st_mode):
        why = "is no file but a folder, pipe or device"
    elif most is not None and about.st_size > most:
        why = f"has {about.st_size} bytes, more than {most}"
    if why:
        os.close(handle)
        raise wrong(why)
    return os.fdopen(handle, "rb")


def document(folder: Path, name: str, most: int = DOCUMENT) -> Config:
    """A JSON file of a folder, which must hold a table.

    Args:
        folder: of a model.
        name: of the file.
        most: bytes that it may have.

    Raises:
        InputError: as `opened`; it is no such file, is nested too deeply or repeats a key.
    """
    with opened(folder, name, most=most) as file:
        return parsed(folder.name, name, file.read(most))


def parsed(model: str, name: str, content: bytes) -> Config:
    """A table from JSON text.

    >>> parsed("m", "config.json", b'{"n_layer": 3}').whole("n_layer", usual=1)
    3
    """

    def once(pairs: list[tuple[str, Any]]) -> Any:
        table = dict(pairs)
        if pairs and pairs[0][0] == "__float__" and pairs[0][1] in ("Infinity", "-Infinity", "NaN"):
            return float(pairs[0][1])  # as the library writes them
        if len(table) < len(pairs):
            twice = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
            raise InputError(f"model {model!r}: {name} has the key {twice[:40]!r} twice")
        return table

    try:
        text = content.decode()
        values = json.loads(text, object_pairs_hook=once, parse_int=_whole)
    except InputError:
        raise
    except UnicodeDecodeError as error:
        why = f"is not UTF-8 at byte {error.start}"
    except RecursionError:
        why = f"is nested more than {DEPTH} deep"
    except ValueError as error:
        why = f"is not valid JSON: {' '.join(str(error).split())[:120]}"
    else:
        why = "" if isinstance(values, dict) else "is no table of keys"
        if not why and not _shallow(values):
            why = f"is nested more than {DEPTH} deep"
        if not why:
            return Config(model, values, name)
    raise InputError(f"model {model!r}: {name} {why}; accepted: a JSON table")


@dataclass(frozen=True)
class Overlong:
    """A longer whole number, of a type that no key accepts."""

    digits: str

    def __repr__(self) -> str:
        return f"{self.digits[:8]}... of {len(self.digits)} digits"


def _whole(digits: str) -> int | Overlong:
    return int(digits) if len(digits) <= DIGITS else Overlong(digits)


def _shallow(values: Any) -> bool:
    level = [values]
    for _ in range(DEPTH):
        tables = [v for v in level if isinstance(v, dict | list)]
        if not tables:
            return True
        level = [v for t in tables for v in (t.values() if isinstance(t, dict) else t)]
    return False


def require_plain(folder: Path) -> None:
    """Look at every file of a folder that a library is about to read.

    Raises:
        InputError: one is no regular file inside the folder, or is too large to be a setting;
            there is an adapter.
    """
    refuse_adapter(folder)
    with os.scandir(folder) as entries:
        names = [entry.name for entry, _ in zip(entries, range(FILES + 1), strict=False)]
    if len(names) > FILES:
        raise InputError(f"model {folder.name!r} has more than {FILES} files; accepted: a model's")
    for name in sorted(names):
        if name.endswith((".json", ".safetensors")):
            settings = name in ("config.json", "generation_config.json")
            opened(folder, name, most=DOCUMENT if settings else None).close()


@dataclass(frozen=True)
class Config:
    """A table of a JSON file, read by the names that a family gives its keys.

    Args:
        model: the folder's name, for messages.
        values: the table.
        file: the file's name, for messages.
    """

    model: str
    values: Mapping[str, Any]
    file: str = "config.json"

    def value(self, *names: str, usual: Any = None) -> Any:
        """The value under one of several names, or the default where none is there.

        Raises:
            InputError: two names with unlike values.
        """
        given = {name: v for name in names if (v := self.values.get(name)) is not None}
        if len({repr(v) for v in given.values()}) > 1:
            said = ", ".join(f"{name} {short(v)}" for name, v in given.items())
            raise self.wrong(f"{said}, which contradict each other", "one of them")
        return next(iter(given.values()), usual)

    def whole(self, *names: str, usual: Any, least: int = 1, null: bool = False) -> Any:
        """A whole number within limits, or the default; None where null is `null` and allowed."""
        found, most = self.value(*names), min(MOST.get(name, LARGEST) for name in names)
        if found is None:
            return None if null and names[0] in self.values else usual
        if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= most:
            raise self.wrong(
                f"{self.named(names)} {short(found)}", f"a whole number from {least} to {most}"
            )
        return found

    def number(self, *names: str, usual: float, null: bool = False) -> Any:
        """A finite number above 0; None where null is allowed."""
        found = self.value(*names, usual=usual)
        if null and self.values.get(names[0], usual) is None:
            return None
        real = isinstance(found, int | float) and not isinstance(found, bool)
        if not real or not 0 < found <= LARGEST:
            raise self.wrong(
                f"{self.named(names)} {short(found)}",
                f"a positive number of at most {LARGEST:.0e}",
            )
        return float(found)

    def flag(self, *names: str, usual: bool) -> bool:
        """True or false."""
        found = self.value(*names, usual=usual)
        if not isinstance(found, bool):
            raise self.wrong(f"{self.named(names)} {short(found)}", "true or false")
        return found

    def part(self, *names: str) -> Config:
        """A table within the file; empty where it is not there."""
        found = self.value(*names, usual={})
        if not isinstance(found, dict):
            raise self.wrong(f"{self.named(names)} {short(found)}", "a table")
        return self.with_values(found)

    def with_values(self, values: Mapping[str, Any]) -> Config:
        """Another table of the same file."""
        return Config(self.model, values, self.file)

    def named(self, names: Sequence[str]) -> str:
        """The name that the file uses."""
        return next((n for n in names if self.values.get(n) is not None), names[0])

    def wrong(self, what: str, accepted: str) -> InputError:
        """The error that names the file's defect."""
        return InputError(f"model {self.model!r}: {self.file} has {what}; accepted: {accepted}")


def short(value: Any) -> str:
    """A value from a file in a message: on one line, of at most 60 characters.

    >>> len(short("two" + chr(10) + "lines")), len(short(list(range(99))))
    (12, 60)
    """
    return ascii(value)[:60]


# -- weights -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stored:
    """Where a tensor is: its file, type, shape, and the bytes that hold it."""

    file: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


def headers(path: Path) -> dict[str, Stored]:
    """Each tensor of a model: those of model.safetensors, or those that the index names, as the
    library reads them; of a run, those of weights.safetensors. Other files are not of the model.

    Raises:
        InputError: there are none, or only pickled ones; both are there, or an adapter; a file is
            missing or damaged.
    """
    refuse_adapter(path)
    whole = "weights.safetensors" if (path / "training.json").is_file() else "model.safetensors"
    if (named := _indexed(path)) is None:
        if os.path.lexists(path / whole):
            return _header(path, whole)
        pickled = [p.name for pattern in _PICKLED for p in path.glob(pattern)]
        others = sorted(p.name for p in path.glob("*.safetensors"))
        wrong = "has no weights"
        if pickled:
            wrong = f"has pickled weights ({pickled[0]}), which may run code when they are read"
        elif others:
            wrong = f"has {others[0][:60]!r}, but no {whole} and no {_INDEX}"
        raise InputError(
            f"model {path.name!r} {wrong}; accepted: *.safetensors as the library saves"
        )
    if os.path.lexists(path / whole) and whole not in named.values():
        raise InputError(
            f"model {path.name!r} has {whole}, and {_INDEX}, which does not name it; accepted: "
            "one of them"
        )
    found = {file: _header(path, file) for file in sorted({*named.values()})}
    return {name: found[file][name] for name, file in named.items() if name in found[file]}


def refuse_adapter(path: Path) -> None:
    """Raise InputError where a folder has an adapter: weights that change those of a model."""
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        if os.path.lexists(path / name):
            raise InputError(
                f"model {path.name!r} has {name}, an adapter, whose weights are added to another "
                "model's; accepted: a model with its adapters merged"
            )


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


def _indexed(path: Path) -> dict[str, str] | None:
    """The file of each tensor by the index of a model in several files; None without an index.

    Raises:
        InputError: no whole index, or one that names a file that is not there, or too many.
    """
    if not os.path.lexists(path / _INDEX):
        return None
    named = document(path, _INDEX, INDEX).part("weight_map").values
    if wrong := next((v for v in named.values() if not isinstance(v, str)), None):
        raise InputError(
            f"model {path.name!r}: {_INDEX} has {str(wrong)[:40]!r} in weight_map; accepted: names "
            "of files"
        )
    files = {*named.values()}
    if len(files) > _SHARDS:
        raise InputError(f"model {path.name!r} has {len(files)} files; accepted: {_SHARDS}")
    if missing := sorted(files - {f.name for f in path.glob("*.safetensors")}):
        raise InputError(
            f"model {path.name!r} lacks the file {missing[0][:60]!r} that {_INDEX} names; "
            "accepted: all of them"
        )
    return dict(named)


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
