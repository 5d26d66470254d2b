"""The files of a folder that somebody else wrote, read without trust.

Every file of a model folder is opened here. Only regular files inside the folder are read, up to a
size; a document is JSON in UTF-8 without repeated keys, not deep, its numbers not long. A value is
taken by its key, with its type and its range. Whatever is wrong becomes one line that names the
file and the key. Nothing of a folder is executed.
"""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

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
        InputError: one is no regular file inside the folder, or is too large to be a setting.
    """
    with os.scandir(folder) as entries:
        names = [entry.name for entry, _ in zip(entries, range(FILES + 1), strict=False)]
    if len(names) > FILES:
        raise InputError(f"model {folder.name!r} has more than {FILES} files; accepted: a model's")
    for name in sorted(names):
        if name == "adapter_config.json":
            raise InputError(
                f"model {folder.name!r}: {name} names another model to load; accepted: a model "
                "with its adapters merged"
            )
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

    def whole(self, *names: str, usual: Any, least: int = 1) -> Any:
        """A whole number within limits, or the default."""
        found, most = self.value(*names), min(MOST.get(name, LARGEST) for name in names)
        if found is None:
            return usual
        if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= most:
            raise self.wrong(
                f"{self.named(names)} {short(found)}", f"a whole number from {least} to {most}"
            )
        return found

    def number(self, *names: str, usual: float) -> float:
        """A finite number above 0."""
        found = self.value(*names, usual=usual)
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
