"""Texts as bytes or tokens: a training part, a held-out part, and the SHA-256 that names them.

A user names a file, a folder, or the standard library of the running Python. The built-in text is
that library's source code without its test directories, about 12 MB. Files come in the order of
their names. A file is held out when the hash of its name says so (one in ten), so that no file is
cut and nothing depends on the machine. Perplexities on texts with different SHA-256 are not
comparable. Tokens of any tokeniser are a file `NAME.npy`: one row of whole numbers from 0.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sysconfig
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from farfield.theory.answers.errors import InputError, refuse

BYTES = 256
DOCUMENTATION = "builtin:documentation"
ACCEPTED = "accepted: text in an encoding without zero bytes, as UTF-8"
_CHUNK = 1 << 24
_MOST = 2 << 30  # bytes of a folder's text, which is held in memory
_TRIPLE = re.compile(rb'"""(.+?)"""|\'\'\'(.+?)\'\'\'', re.DOTALL)
_WORDS = 8
_LEFT_OUT = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"}


@dataclass(frozen=True)
class Corpus:
    """A text in two parts, of bytes or of tokens.

    Args:
        source: what the text is, in words, without the machine's paths.
        train, held_out: arrays of `uint8`, shape (bytes,); of tokens, `uint16` or `uint32`.
        files: number of files read.
        split: how the parts were made.
        vocabulary: number of different tokens.
        bytes_a_token: of the held-out part on average, where that is known; perplexities a token
            with different vocabularies are not comparable, nats a byte are.
        sha256: of both parts; computed.
    """

    source: str
    train: np.ndarray = field(repr=False)
    held_out: np.ndarray = field(repr=False)
    files: int
    split: str
    vocabulary: int = BYTES
    bytes_a_token: float = 1.0
    sha256: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256()
        for part in (self.train, self.held_out):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(np.ascontiguousarray(part).data)  # no copy: it may be a mapped file
        object.__setattr__(self, "sha256", digest.hexdigest())

    @property
    def unit(self) -> str:
        """What the text is counted in: `byte` or `token`."""
        return "byte" if self.vocabulary == BYTES else "token"

    def describe(self) -> dict[str, str | int | float]:
        """The text in JSON form: source, sizes in bytes or tokens, SHA-256."""
        described: dict[str, str | int | float] = {
            "source": self.source,
            "files": self.files,
            "split": self.split,
            f"train_{self.unit}s": len(self.train),
            f"held_out_{self.unit}s": len(self.held_out),
            "sha256": self.sha256,
        }
        if self.unit == "token":
            described |= {"vocabulary": self.vocabulary}
        return described

    def require(self, train: int, held_out: int) -> None:
        """Raise InputError unless each part holds one segment of this many tokens and a target."""
        for name, part, wanted in (
            ("training", self.train, train),
            ("held-out", self.held_out, held_out),
        ):
            refuse(
                len(part) <= wanted,
                f"{self.source} is too short: its {name} part has {len(part)} {self.unit}s, a "
                f"segment takes {wanted + 1}; accepted: a longer text, or shorter lengths",
            )


def samples_of(text: np.ndarray, count: int, length: int) -> np.ndarray:
    """Evenly spaced segments of a text, each with the byte or token that follows it.

    Returns `int64`, shape (segments, length + 1): at most `count` segments, fewer where the text
    has no more different ones. They overlap only if the text is too short for all.

    Raises:
        InputError: the text is not longer than a segment.

    >>> samples_of(np.arange(10, dtype=np.uint8), 2, 3)
    array([[0, 1, 2, 3],
           [6, 7, 8, 9]])
    """
    refuse(
        len(text) <= length,
        f"the text has {len(text)} tokens, a segment takes {length + 1}; accepted: a longer "
        "text, or shorter lengths",
    )
    starts = np.unique(np.linspace(0, len(text) - length - 1, count).astype(np.int64))
    return text[starts[:, None] + np.arange(length + 1)].astype(np.int64)


def corpus(text: str | os.PathLike[str] | None = None) -> Corpus:
    """The text to train and to measure on.

    Args:
        text: a file, which is mapped into memory, not read; a folder whose files (hidden and
            binary ones left out) are all read; a file `NAME.npy` of tokens (`uint8`, `uint16` or
            `uint32`, one-dimensional), mapped as well; `builtin:documentation`, English, what the
            source code of the running Python's standard library has between triple quotes; None
            takes that source code.

    Returns:
        Whole files are split by the hash of their names, one in ten held out. If that leaves
        less than a twentieth or more than a fifth, as with a single file, the last tenth of all
        bytes is held out.

    Raises:
        InputError: the text is missing, not readable, empty or binary.

    >>> corpus().source
    'source code of the standard library of Python 3...'
    """
    if text in (None, DOCUMENTATION):
        return _builtin(text == DOCUMENTATION)
    refuse(
        str(text).startswith("builtin:"),
        f"text {str(text)!r} is not built in; accepted: {DOCUMENTATION}",
    )
    path = Path(text).expanduser()
    try:
        if path.is_dir():
            return _split(f"folder {path.resolve().name}", _contents(path, _names(path)))
        if not path.is_file():
            wrong = "is no regular file" if path.exists() else "does not exist"
            raise InputError(f"text {str(text)!r} {wrong}; accepted: a file or a folder")
        return _tokens(path) if path.suffix == ".npy" else _mapped(path)
    except OSError as error:
        raise InputError(f"text {str(text)!r} cannot be read: {error.strerror}") from None


@cache
def _builtin(documentation: bool) -> Corpus:
    """The source code of the standard library, or what it says in English."""
    library = Path(sysconfig.get_path("stdlib"))
    files = [
        name
        for name in _names(library)
        if name.endswith(".py") and not name.startswith("_sysconfigdata")
    ]
    code, what = _contents(library, files), "source code"
    if documentation:
        code, what = {name: _documentation(c) for name, c in code.items()}, "documentation"
    return _split(f"{what} of the standard library of Python {platform.python_version()}", code)


def _names(folder: Path) -> list[str]:
    """The files below a folder in the order of their names, without hidden and test folders."""
    names = []
    for place, folders, files in os.walk(folder):
        folders[:] = [f for f in folders if f not in _LEFT_OUT and not f.startswith(".")]
        relative = Path(place).relative_to(folder)
        regular = (f for f in files if not f.startswith(".") and (Path(place) / f).is_file())
        names += [(relative / f).as_posix() for f in regular]
    return sorted(names)


def _mapped(path: Path) -> Corpus:
    """A single file, which stays on the disk: only the pages in use are in memory."""
    source, size = f"file {path.name}", path.stat().st_size
    refuse(size == 0, f"{source} is empty; {ACCEPTED}")
    text = np.memmap(path, dtype=np.uint8, mode="r")
    refuse(
        any((text[k : k + _CHUNK] == 0).any() for k in range(0, size, _CHUNK)),
        f"{source} is binary (it has a zero byte); {ACCEPTED}",
    )
    return _cut(source, text, 1)


def _tokens(path: Path) -> Corpus:
    """Tokens that someone else has made, which stay on the disk."""
    try:
        tokens = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError):
        tokens = np.empty(0)
    refuse(
        tokens.ndim != 1 or tokens.dtype not in (np.uint8, np.uint16, np.uint32) or not len(tokens),
        f"file {path.name} holds no tokens; accepted: what numpy.save writes of an array of "
        "uint8, uint16 or uint32 with one dimension",
    )
    return _cut(f"file {path.name}", tokens, 1, max(BYTES, int(tokens.max()) + 1))


def _cut(source: str, text: np.ndarray, files: int, vocabulary: int = BYTES) -> Corpus:
    cut, unit = len(text) - max(1, len(text) // 10), "byte" if vocabulary == BYTES else "token"
    split = f"the last tenth of all {unit}s held out"
    return Corpus(source, text[:cut], text[cut:], files, split, vocabulary)


def _contents(folder: Path, names: list[str]) -> dict[str, bytes]:
    """What the files of a folder hold; of one that begins as a binary file the beginning alone."""
    contents, size = {}, 0
    for name in names:
        with open(folder / name, "rb") as file:
            content = file.read(_CHUNK)
            if b"\0" not in content:
                content += file.read(_MOST + 1 - size)
                size += len(content)
        refuse(
            size > _MOST,
            f"folder {folder.resolve().name} has more than {_MOST >> 30} GiB of text; "
            "accepted: less, or one file, which stays on the disk",
        )
        contents[name] = content
    return contents


def _documentation(code: bytes) -> bytes:
    """What Python code says in English: its strings of several words between triple quotes."""
    strings = (quoted or single for quoted, single in _TRIPLE.findall(code))
    return b"".join(
        textwrap.dedent(s.decode("utf-8", "replace")).strip().encode() + b"\n\n"
        for s in strings
        if len(s.split()) >= _WORDS
    )


def _split(source: str, contents: dict[str, bytes]) -> Corpus:
    texts = {name: content for name, content in contents.items() if b"\0" not in content}
    size = sum(map(len, texts.values()))
    if size == 0:
        wrong = "holds only binary files" if any(contents.values()) else "is empty"
        raise InputError(f"{source} {wrong}; {ACCEPTED}")
    held = {n for n in texts if hashlib.sha256(n.encode()).digest()[0] * 10 < 256}
    if not 0.05 * size <= sum(len(texts[n]) for n in held) <= 0.2 * size:
        return _cut(source, _bytes(texts.values()), len(texts))
    parts = [_bytes(texts[n] for n in texts if (n in held) is kept) for kept in (False, True)]
    split = "files by the hash of their names, one in ten held out"
    return Corpus(source, parts[0], parts[1], len(texts), split)


def _bytes(parts: Iterable[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(parts), dtype=np.uint8)
