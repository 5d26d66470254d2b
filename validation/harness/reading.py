"""The text that a user names: a file, a folder, a data set, or the standard library."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sysconfig
import textwrap
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from farfield.theory.answers.answer import InputError
from farfield.validation.harness.corpus import Corpus
from farfield.validation.harness.tokens import opened
from farfield.validation.optional import first_line, library

DOCUMENTATION = "builtin:documentation"
_CHUNK = 1 << 24
_TRIPLE = re.compile(rb'"""(.+?)"""|\'\'\'(.+?)\'\'\'', re.DOTALL)
_WORDS = 8
_LEFT_OUT = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"}


def corpus(text: str | os.PathLike[str] | None = None) -> Corpus:
    """The text to train and to measure on.

    Args:
        text: a file, which is mapped into memory, not read; a folder whose files (hidden and
            binary ones left out) are all read; a folder of token files that `tokens.tokenized`
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
        library = Path(sysconfig.get_path("stdlib"))
        files = [
            name
            for name in _names(library)
            if name.endswith(".py") and not name.startswith("_sysconfigdata")
        ]
        code, what = _contents(library, files), "source code"
        if text == DOCUMENTATION:
            code, what = {name: _documentation(c) for name, c in code.items()}, "documentation"
        source = f"{what} of the standard library of Python {platform.python_version()}"
        return _split(source, code)
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
        raise InputError(f"{source} is empty; accepted: text of any encoding")
    text = np.memmap(path, dtype=np.uint8, mode="r")
    if any((text[k : k + _CHUNK] == 0).any() for k in range(0, size, _CHUNK)):
        raise InputError(f"{source} is binary (it has a zero byte); accepted: text of any encoding")
    return _cut(source, text, 1)


def _cut(source: str, text: np.ndarray, files: int) -> Corpus:
    cut = len(text) - max(1, len(text) // 10)
    return Corpus(source, text[:cut], text[cut:], files, "the last tenth of all bytes held out")


def _contents(folder: Path, names: list[str]) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in names}


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
