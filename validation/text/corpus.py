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
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from farfield.theory.results import InputError

BYTES = 256
_CHUNK = 1 << 24
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
        bytes_a_token: of the held-out part on average; perplexities a token with different
            vocabularies are not comparable, nats a byte are.
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
            described |= {"vocabulary": self.vocabulary, "bytes_a_token": self.bytes_a_token}
        return described

    def require(self, train: int, held_out: int) -> None:
        """Raise InputError unless each part holds one segment of this many tokens and a target."""
        for name, part, wanted in (
            ("training", self.train, train),
            ("held-out", self.held_out, held_out),
        ):
            if len(part) <= wanted:
                raise InputError(
                    f"{self.source} is too short: its {name} part has {len(part)} {self.unit}s, a "
                    f"segment takes {wanted + 1}; accepted: a longer text, or shorter lengths"
                )


def corpus(text: str | os.PathLike[str] | None = None) -> Corpus:
    """The text to train and to measure on.

    Args:
        text: a file, which is mapped into memory, not read; a folder whose files (hidden and
            binary ones left out) are all read; a folder of token files that `tokens.tokenized`
            wrote; `dataset:NAME` or `dataset:NAME/CONFIGURATION`, read by the library `datasets`
            from its local cache; None takes the source code of the running Python's standard
            library.

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
    if str(text).startswith("dataset:"):
        return _from_dataset(str(text).removeprefix("dataset:"))
    path = Path(text).expanduser()
    if (path / "tokens.json").is_file():
        from farfield.validation.text.tokens import opened

        return opened(path)
    try:
        if path.is_dir():
            return _split(f"folder {path.resolve().name}", path, _names(path))
        if not path.is_file():
            wrong = "is no regular file" if path.exists() else "does not exist"
            raise InputError(f"text {str(text)!r} {wrong}; accepted: a file or a folder")
        return _mapped(path)
    except OSError as error:
        raise InputError(f"text {str(text)!r} cannot be read: {error.strerror}") from None


def _from_dataset(name: str) -> Corpus:
    """The splits of a data set that is in the library's local cache; nothing is downloaded."""
    try:
        os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        import datasets
    except ImportError:
        raise InputError(
            f"dataset {name!r} needs the library datasets, which is not installed; accepted: "
            "pip install datasets, or a file or a folder"
        ) from None
    path, _, configuration = name.partition(":")
    if not configuration and name.count("/") in (1, 2):
        path, _, configuration = name.rpartition("/")
    try:
        splits = datasets.load_dataset(path, configuration or None)
    except Exception as error:
        why = str(error).strip().splitlines()[:1] or [type(error).__name__]
        raise InputError(
            f"dataset {name!r} is not in the local cache of the library datasets ({why[0][:120]}); "
            "accepted: one that was loaded on this machine before, as NAME or NAME/CONFIGURATION"
        ) from None
    parts = {}
    for split in ("train", "test", "validation"):
        if split in splits:
            if "text" not in splits[split].column_names:
                raise InputError(f"dataset {name!r} has no column 'text'; accepted: one that has")
            parts[split] = "\n".join(splits[split]["text"]).encode()
    held = parts.get("test") or parts.get("validation")
    source, both = f"dataset {name}", [parts.get("train", b""), held or b""]
    if not both[0]:
        raise InputError(f"{source} has no training part; accepted: one that has a split 'train'")
    if held is None:
        cut = len(both[0]) - max(1, len(both[0]) // 10)
        both = [both[0][:cut], both[0][cut:]]
    split = "the data set's own splits" if held else "the last tenth of all bytes held out"
    first, second = (np.frombuffer(part, dtype=np.uint8) for part in both)
    return Corpus(source, first, second, len(splits), split)


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
    """A single file, which stays on the disk: only what is used is in memory."""
    source, size = f"file {path.name}", path.stat().st_size
    if size == 0:
        raise InputError(f"{source} is empty; accepted: text of any encoding")
    text = np.memmap(path, dtype=np.uint8, mode="r")
    if any((text[k : k + _CHUNK] == 0).any() for k in range(0, size, _CHUNK)):
        raise InputError(f"{source} is binary (it has a zero byte); accepted: text of any encoding")
    return _cut(source, text, 1)


def _cut(source: str, text: np.ndarray, files: int) -> Corpus:
    cut = len(text) - max(1, len(text) // 10)
    return Corpus(source, text[:cut], text[cut:], files, "the last tenth of all bytes held out")


def _split(source: str, folder: Path, names: list[str]) -> Corpus:
    contents = {name: (folder / name).read_bytes() for name in names}
    texts = {name: content for name, content in contents.items() if b"\0" not in content}
    size = sum(map(len, texts.values()))
    if size == 0:
        wrong = "holds only binary files" if any(contents.values()) else "is empty"
        raise InputError(f"{source} {wrong}; accepted: text of any encoding")
    held = {n for n in texts if hashlib.sha256(n.encode()).digest()[0] * 10 < 256}
    if not 0.05 * size <= sum(len(texts[n]) for n in held) <= 0.2 * size:
        return _cut(source, _bytes(texts.values()), len(texts))
    train, held_out = (
        _bytes(texts[n] for n in texts if (n in held) is kept) for kept in (False, True)
    )
    split = "files by the hash of their names, one in ten held out"
    return Corpus(source, train, held_out, len(texts), split)


def _bytes(parts: Iterable[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(parts), dtype=np.uint8)


def segments(text: np.ndarray, count: int, length: int) -> np.ndarray:
    """Evenly spaced segments of a text, each with the byte or token that follows it.

    Args:
        text: of bytes or tokens, one-dimensional, longer than `length`.
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
