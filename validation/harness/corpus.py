"""Texts as bytes or tokens: a training part, a held-out part, and the SHA-256 that names them.

A user names a file, a folder, a data set, or the standard library of the running Python. The
built-in text is that library's source code without its test directories, about 12 MB. Files come
in the order of their names. A file is held out when the hash of its name says so (one in ten), so
that no file is cut and nothing depends on the machine. Perplexities on texts with different
SHA-256 are not comparable. A byte-pair encoding, trained on the training part, is kept in files
that are mapped into memory:

    <folder>/tokenizer.json       the encoding, in the format of the library `tokenizers`
    <folder>/train.bin            tokens as uint16, or uint32 for more than 65,536 entries
    <folder>/held_out.bin
    <folder>/tokens.json          written last, sealed: source, vocabulary, sizes

Bytes that are no UTF-8 are replaced by U+FFFD before encoding.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sysconfig
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from farfield.theory.answers.answer import InputError
from farfield.validation.json_files import CorruptFile, read_json, write, write_json
from farfield.validation.optional import first_line, library

BYTES = 256
DOCUMENTATION = "builtin:documentation"
ACCEPTED = "accepted: text in an encoding without zero bytes, as UTF-8"
_CHUNK = 1 << 24
_MOST = 2 << 30  # bytes of a folder's text, which is held in memory
_PIECE = 1 << 16  # bytes encoded at a time; cut after a line end where there is one
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
    if len(text) <= length:
        raise InputError(
            f"the text has {len(text)} tokens, a segment takes {length + 1}; accepted: a longer "
            "text, or shorter lengths"
        )
    starts = np.unique(np.linspace(0, len(text) - length - 1, count).astype(np.int64))
    return text[starts[:, None] + np.arange(length + 1)].astype(np.int64)


def corpus(text: str | os.PathLike[str] | None = None) -> Corpus:
    """The text to train and to measure on.

    Args:
        text: a file, which is mapped into memory, not read; a folder whose files (hidden and
            binary ones left out) are all read; a folder of token files that `tokenized`
            wrote; `dataset:NAME` or `dataset:NAME/CONFIGURATION`, read by the library `datasets`
            from its local cache; `builtin:documentation`, English, what the source code of the
            running Python's standard library has between triple quotes; None takes that source
            code.

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
    if str(text).startswith("builtin:"):
        raise InputError(f"text {str(text)!r} is not built in; accepted: {DOCUMENTATION}")
    if str(text).startswith("dataset:"):
        return _from_dataset(str(text).removeprefix("dataset:"))
    path = Path(text).expanduser()
    if (path / "tokens.json").is_file():
        return opened(path)
    try:
        if path.is_dir():
            return _split(f"folder {path.resolve().name}", _contents(path, _names(path)))
        if not path.is_file():
            wrong = "is no regular file" if path.exists() else "does not exist"
            raise InputError(f"text {str(text)!r} {wrong}; accepted: a file or a folder")
        return _mapped(path)
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


def _from_dataset(name: str) -> Corpus:
    """The splits of a data set that is in the library's local cache; nothing is downloaded."""
    os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    datasets = library("datasets", f"dataset {name!r}")
    path, _, configuration = name.partition(":")
    if not configuration and name.count("/") in (1, 2):
        path, _, configuration = name.rpartition("/")
    try:
        splits = datasets.load_dataset(path, configuration or None)
    except Exception as error:
        raise InputError(
            f"dataset {name!r} is not in the local cache of the library datasets "
            f"({first_line(error, 120)}); accepted: one that was loaded on this machine before, as "
            "NAME or NAME/CONFIGURATION"
        ) from None
    parts: dict[str, np.ndarray] = {}
    for split in ("train", "test", "validation"):
        if split in splits:
            if "text" not in splits[split].column_names:
                raise InputError(f"dataset {name!r} has no column 'text'; accepted: one that has")
            parts[split] = _bytes(["\n".join(splits[split]["text"]).encode()])
    source = f"dataset {name}"
    if not len(parts.get("train", ())):
        raise InputError(f"{source} has no training part; accepted: one that has a split 'train'")
    held = next((parts[k] for k in ("test", "validation") if len(parts.get(k, ()))), None)
    if held is None:
        return _cut(source, parts["train"], len(splits))
    return Corpus(source, parts["train"], held, len(splits), "the data set's own splits")


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
    if size == 0:
        raise InputError(f"{source} is empty; {ACCEPTED}")
    text = np.memmap(path, dtype=np.uint8, mode="r")
    if any((text[k : k + _CHUNK] == 0).any() for k in range(0, size, _CHUNK)):
        raise InputError(f"{source} is binary (it has a zero byte); {ACCEPTED}")
    return _cut(source, text, 1)


def _cut(source: str, text: np.ndarray, files: int) -> Corpus:
    cut = len(text) - max(1, len(text) // 10)
    return Corpus(source, text[:cut], text[cut:], files, "the last tenth of all bytes held out")


def _contents(folder: Path, names: list[str]) -> dict[str, bytes]:
    """What the files of a folder hold; of one that begins as a binary file the beginning alone."""
    contents, size = {}, 0
    for name in names:
        with open(folder / name, "rb") as file:
            content = file.read(_CHUNK)
            if b"\0" not in content:
                content += file.read(_MOST + 1 - size)
                size += len(content)
        if size > _MOST:
            raise InputError(
                f"folder {folder.resolve().name} has more than {_MOST >> 30} GiB of text; "
                "accepted: less, or one file, which stays on the disk"
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


def tokenized(corpus: Corpus, vocabulary: int, folder: str | os.PathLike[str]) -> Corpus:
    """The text in tokens of a byte-pair encoding that is trained on its training part.

    Args:
        corpus: a text of bytes.
        vocabulary: entries, more than 256; fewer are made when the text has no more pairs.
        folder: where the token files are kept; those of the same text and size are not made again.

    Raises:
        InputError: the library `tokenizers` is missing, the text is tokens already, the folder
            holds another text's tokens or cannot be written to.
    """
    place = Path(folder).expanduser()
    if corpus.unit == "token" or vocabulary <= BYTES:
        raise InputError(
            f"{corpus.source} into {vocabulary} tokens: accepted is a text of bytes, and more than "
            f"{BYTES} tokens"
        )
    wanted = {"text_sha256": corpus.sha256, "asked": vocabulary}
    if (place / "tokens.json").exists():
        if {k: _record(place).get(k) for k in wanted} != wanted:
            raise InputError(
                f"folder {place.name!r} holds the tokens of another text or size; accepted: an "
                "empty folder"
            )
        return opened(place)
    tokenizers = library("tokenizers", "a byte-pair encoding", "train")
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"folder {str(place)!r} cannot be made: {error.strerror}") from None
    coder = tokenizers.Tokenizer(tokenizers.models.BPE())
    coder.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    coder.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocabulary,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    coder.train_from_iterator(_pieces(corpus.train), trainer)
    entries, sizes = coder.get_vocab_size(), {}
    for name, part in (("train", corpus.train), ("held_out", corpus.held_out)):
        encoded = [coder.encode(piece).ids for piece in _pieces(part)]
        array = np.concatenate([np.array(ids, dtype=_dtype(entries)) for ids in encoded])
        write(place / f"{name}.bin", array.tobytes())
        sizes[name] = len(array)
    write(place / "tokenizer.json", coder.to_str().encode())
    record = {
        **wanted,
        "source": corpus.source,
        "files": corpus.files,
        "split": corpus.split,
        "vocabulary": entries,
        "tokens": sizes,
        "bytes_a_token": len(corpus.held_out) / max(1, sizes["held_out"]),
    }
    write_json(place / "tokens.json", record)
    return opened(place)


def opened(folder: str | os.PathLike[str]) -> Corpus:
    """The text in token files, mapped into memory.

    Raises:
        InputError: the files were changed later.
    """
    place = Path(folder).expanduser()
    record = _record(place)
    dtype, parts = _dtype(record["vocabulary"]), dict[str, Any]()
    for name, size in record["tokens"].items():
        path = place / f"{name}.bin"
        if not path.is_file() or path.stat().st_size != size * dtype.itemsize:
            raise InputError(
                f"token file {place.name}/{name}.bin is not what was written; remove the folder, "
                "and it is made again"
            )
        parts[name] = np.memmap(path, dtype=dtype, mode="r")
    source = f"{record['source']}, {record['vocabulary']} tokens"
    more: Any = {k: record[k] for k in ("files", "split", "vocabulary", "bytes_a_token")}
    return Corpus(source, **parts, **more)


def _record(place: Path) -> dict[str, Any]:
    try:
        return read_json(place / "tokens.json")
    except CorruptFile as error:
        raise InputError(f"token files: {error}; remove the folder, and it is made again") from None


def _dtype(vocabulary: int) -> np.dtype[Any]:
    return np.dtype(np.uint16 if vocabulary <= 1 << 16 else np.uint32)


def _pieces(text: np.ndarray) -> Iterator[str]:
    start = 0
    while start < len(text):
        stop = min(start + _PIECE, len(text))
        piece = text[start:stop].tobytes()
        if stop < len(text) and (line := piece.rfind(b"\n")) >= 0:
            piece = piece[: line + 1]
        yield piece.decode(errors="replace")
        start += len(piece)
