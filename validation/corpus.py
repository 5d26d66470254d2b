"""Texts as bytes: a training part, a held-out part, and the SHA-256 that names them.

The built-in text is the source code of the running Python's standard library without its test
directories, about 12 MB. Files come in the order of their names; a file is held out when the hash
of its name says so (one in ten), so that no file is cut and nothing depends on the machine.
Perplexities on texts with different SHA-256 are not comparable.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from farfield.theory.results import InputError

VOCABULARY = 256
_LEFT_OUT = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"}


@dataclass(frozen=True)
class Corpus:
    """A text of bytes in two parts.

    Args:
        source: what the text is, in words, without the machine's paths.
        train, held_out: arrays of `uint8`, shape (bytes,).
        files: number of files read.
        split: how the parts were made.
        sha256: of both parts; computed.
    """

    source: str
    train: np.ndarray = field(repr=False)
    held_out: np.ndarray = field(repr=False)
    files: int
    split: str
    sha256: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256()
        for part in (self.train, self.held_out):
            digest.update(len(part).to_bytes(8, "big") + part.tobytes())
        object.__setattr__(self, "sha256", digest.hexdigest())

    def describe(self) -> dict[str, str | int]:
        """The text in JSON form: source, sizes in bytes, SHA-256."""
        return {
            "source": self.source,
            "files": self.files,
            "split": self.split,
            "train_bytes": len(self.train),
            "held_out_bytes": len(self.held_out),
            "sha256": self.sha256,
        }

    def require(self, train: int, held_out: int) -> None:
        """Raise InputError unless each part holds one segment of this many tokens and a target."""
        for name, part, wanted in (
            ("training", self.train, train),
            ("held-out", self.held_out, held_out),
        ):
            if len(part) <= wanted:
                raise InputError(
                    f"{self.source} is too short: its {name} part has {len(part)} bytes, a segment "
                    f"takes {wanted + 1}; accepted: a longer text, or shorter lengths"
                )


def corpus(text: str | os.PathLike[str] | None = None) -> Corpus:
    """The text to train and to measure on.

    Args:
        text: a file, or a folder whose files (hidden and binary ones left out) are all read; None
            takes the source code of the running Python's standard library.

    Returns:
        Whole files are split by the hash of their names, one in ten held out. If that leaves
        less than a twentieth or more than a fifth, as with a single file, the last tenth of all
        bytes is held out.

    Raises:
        InputError: the text is missing, not readable, empty or binary.

    >>> corpus().source
    'source code of the standard library of Python 3...'
    """
    if text is None:
        library = Path(sysconfig.get_path("stdlib"))
        files = [
            name
            for name in _names(library)
            if name.endswith(".py") and not name.startswith("_sysconfigdata")
        ]
        source = f"source code of the standard library of Python {platform.python_version()}"
        return _split(source, library, files)
    path = Path(text).expanduser()
    try:
        if path.is_dir():
            return _split(f"folder {path.resolve().name}", path, _names(path))
        if not path.is_file():
            wrong = "is no regular file" if path.exists() else "does not exist"
            raise InputError(f"text {str(text)!r} {wrong}; accepted: a file or a folder")
        return _split(f"file {path.name}", path.parent, [path.name], single=True)
    except OSError as error:
        raise InputError(f"text {str(text)!r} cannot be read: {error.strerror}") from None


def _names(folder: Path) -> list[str]:
    """The files below a folder in the order of their names, without hidden and test folders."""
    names = []
    for place, folders, files in os.walk(folder):
        folders[:] = [f for f in folders if f not in _LEFT_OUT and not f.startswith(".")]
        relative = Path(place).relative_to(folder)
        regular = (f for f in files if not f.startswith(".") and (Path(place) / f).is_file())
        names += [(relative / f).as_posix() for f in regular]
    return sorted(names)


def _split(source: str, folder: Path, names: list[str], *, single: bool = False) -> Corpus:
    contents = {name: (folder / name).read_bytes() for name in names}
    texts = {name: content for name, content in contents.items() if b"\0" not in content}
    size = sum(map(len, texts.values()))
    if size == 0:
        wrong = "holds only binary files" if any(contents.values()) else "is empty"
        if single and wrong != "is empty":
            wrong = "is binary (it has a zero byte)"
        raise InputError(f"{source} {wrong}; accepted: text of any encoding")
    held = {n for n in texts if hashlib.sha256(n.encode()).digest()[0] * 10 < 256}
    held_size = sum(len(texts[n]) for n in held)
    if 0.05 * size <= held_size <= 0.2 * size:
        split = "files by the hash of their names, one in ten held out"
        train = b"".join(texts[n] for n in texts if n not in held)
        held_out = b"".join(texts[n] for n in texts if n in held)
    else:
        split = "the last tenth of all bytes held out"
        joined = b"".join(texts.values())
        cut = len(joined) - max(1, len(joined) // 10)
        train, held_out = joined[:cut], joined[cut:]
    first, second = (np.frombuffer(part, dtype=np.uint8) for part in (train, held_out))
    return Corpus(source, first, second, len(texts), split)


def segments(text: np.ndarray, count: int, length: int) -> np.ndarray:
    """Evenly spaced segments of a text, each with the byte that follows it.

    Args:
        text: `uint8`, shape (bytes,), longer than `length`.
        count: segments wanted; fewer are returned when the text has no more different ones.
        length: tokens in each.

    Returns:
        `int64`, shape (segments, length + 1); they overlap only if the text is too short for all.

    >>> segments(np.arange(10, dtype=np.uint8), 2, 3)
    array([[0, 1, 2, 3],
           [6, 7, 8, 9]])
    """
    starts = np.unique(np.linspace(0, len(text) - length - 1, count).astype(np.int64))
    return text[starts[:, None] + np.arange(length + 1)].astype(np.int64)
