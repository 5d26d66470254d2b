"""What a model reads: a text of bytes or tokens, or rows of a task; each with a held-out part.

A text is a file, a folder, or the standard library of the running Python, about 12 MB. Files come
in the order of their names. A file is held out where the hash of its name says so, one in ten, so
that no file is cut and nothing depends on the machine; of a single file, the last tenth is.
Perplexities on texts with different SHA-256 are not comparable.

The *induction* task has rows of distinct random tokens. One that stood before comes again, and its
successor is asked for, at a distance that is drawn.
"""

from __future__ import annotations

import hashlib
import operator
import os
import platform
import re
import sysconfig
import textwrap
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.encodings.python_files import handed
from farfield.validation.harness.own import Own, own, whose
from farfield.validation.harness.settings import Induction, Run
from farfield.validation.optional import first_line

BYTES = 256
DOCUMENTATION = "builtin:documentation"
NOT_ASKED = -100
"""In place of a target that is no answer."""

_ACCEPTED = "accepted: text in an encoding without zero bytes, as UTF-8"
_CHUNK = 1 << 24
_MOST = 2 << 30  # bytes of a folder's text, which is held in memory
_TRIPLE = re.compile(rb'"""(.+?)"""|\'\'\'(.+?)\'\'\'', re.DOTALL)
_WORDS = 8
_LEFT_OUT = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"}


@dataclass(frozen=True)
class Text:
    """A text in two parts, of bytes or of tokens.

    Args:
        source: what the text is, in words, without the machine's paths.
        train, held_out: `uint8`, shape (bytes,); of tokens `uint8`, `uint16` or `uint32`.
        vocabulary: number of different tokens.
        sha256: of both parts; computed.
    """

    source: str
    train: np.ndarray = field(repr=False)
    held_out: np.ndarray = field(repr=False)
    vocabulary: int = BYTES
    sha256: str = field(init=False)

    def __post_init__(self) -> None:
        whole = hashlib.sha256()
        for part in (self.train, self.held_out):
            whole.update(len(part).to_bytes(8, "big"))
            whole.update(np.ascontiguousarray(part).data)  # no copy: it may be a mapped file
        object.__setattr__(self, "sha256", whole.hexdigest())

    def batch(self, seed: int, step: int, rows: int, length: int) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and the tokens that follow them, int64, both of shape (rows, length); seed and
        step alone decide them."""
        starts = np.random.default_rng([seed, step]).integers(len(self.train) - length, size=rows)
        tokens = self.train[starts[:, None] + np.arange(length + 1)].astype(np.int64)
        return tokens[:, :-1], tokens[:, 1:]

    def held(self, rows: int, length: int) -> tuple[np.ndarray, np.ndarray]:
        """The same of the held-out part, evenly spaced."""
        tokens = samples(self.held_out, rows, length)
        return tokens[:, :-1], tokens[:, 1:]

    def require(self, trained: int, measured: int) -> None:
        """Raise InputError unless each part holds a row of this many tokens, and a target."""
        for name, part, length in (
            ("training", self.train, trained),
            ("held-out", self.held_out, measured),
        ):
            refuse(
                len(part) <= length,
                f"{self.source} is too short: its {name} part has {len(part)} tokens, a row takes "
                f"{length + 1}; accepted: a longer text, or shorter lengths",
            )


def samples(text: np.ndarray, count: int, length: int) -> np.ndarray:
    """Evenly spaced rows of a text, int64, shape (rows, length + 1), the last token a target.

    There are fewer than `count` where the text has no more different ones.

    Raises:
        InputError: the text is not longer than a row.

    >>> samples(np.arange(10, dtype=np.uint8), 2, 3)
    array([[0, 1, 2, 3],
           [6, 7, 8, 9]])
    """
    refuse(
        len(text) <= length,
        f"the text has {len(text)} tokens, a row takes {length + 1}; accepted: a longer text, or "
        "shorter lengths",
    )
    starts = places(len(text), count, length)
    return text[starts[:, None] + np.arange(length + 1)].astype(np.int64)


def places(size: int, count: int, length: int) -> np.ndarray:
    """Where the rows of `samples` begin in a text of this size."""
    last = size - length - 1
    return np.unique(np.linspace(0, last, min(count, last + 1)).astype(np.int64))


def read_text(text: str | os.PathLike[str] | None = None) -> Text:
    """The text to train and to measure on.

    Args:
        text: a file, which is mapped into memory; a folder, whose files are all read but hidden
            and binary ones; a file `NAME.npy` of tokens, mapped as well; `builtin:documentation`,
            what the standard library has between triple quotes; None for that library's code.

    Raises:
        InputError: the text is missing, not readable, empty or binary.

    >>> read_text().source
    'source code of the standard library of Python 3...'
    """
    if text in (None, DOCUMENTATION):
        return _builtin(text == DOCUMENTATION)
    path = Path(os.path.expanduser(str(text)))
    refuse(
        str(text).startswith("builtin:"),
        f"text {str(text)!r:.300} is not built in; accepted: {DOCUMENTATION}",
    )
    try:
        if path.is_dir():
            return _split(f"folder {path.resolve().name}", _contents(path, _names(path)))
        if not path.is_file():
            wrong = "is no regular file" if path.exists() else "does not exist"
            raise InputError(f"text {str(text)!r:.300} {wrong}; accepted: a file or a folder")
        return _tokens(path) if path.suffix == ".npy" else _mapped(path)
    except OSError as error:
        raise InputError(f"text {str(text)!r:.300} cannot be read: {error.strerror}") from None


@cache
def _builtin(documentation: bool) -> Text:
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


def _mapped(path: Path) -> Text:
    """A file, which stays on the disk: only the pages in use are in memory."""
    source, size = f"file {path.name}", path.stat().st_size
    refuse(size == 0, f"{source} is empty; {_ACCEPTED}")
    text = np.memmap(path, dtype=np.uint8, mode="r")
    refuse(
        any((text[k : k + _CHUNK] == 0).any() for k in range(0, size, _CHUNK)),
        f"{source} is binary (it has a zero byte); {_ACCEPTED}",
    )
    return _cut(source, text)


def _tokens(path: Path) -> Text:
    try:
        tokens = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError):
        tokens = np.empty(0)
    refuse(
        tokens.ndim != 1 or tokens.dtype not in (np.uint8, np.uint16, np.uint32) or not len(tokens),
        f"file {path.name} holds no tokens; accepted: what numpy.save writes of an array of "
        "uint8, uint16 or uint32 with one dimension",
    )
    return _cut(f"file {path.name}", tokens, max(BYTES, int(tokens.max()) + 1))


def _cut(source: str, text: np.ndarray, vocabulary: int = BYTES) -> Text:
    cut = len(text) - max(1, len(text) // 10)
    return Text(source, text[:cut], text[cut:], vocabulary)


def _contents(folder: Path, names: list[str]) -> dict[str, bytes]:
    """What the files of a folder hold, binary ones left out."""
    contents, size = {}, 0
    for name in names:
        with open(folder / name, "rb") as file:
            content = file.read(_CHUNK)
            if b"\0" not in content:
                content += file.read(_MOST + 1 - size)
                size += len(content)
                contents[name] = content
        refuse(
            size > _MOST,
            f"folder {folder.resolve().name} has more than {_MOST >> 30} GiB of text; "
            "accepted: less, or one file, which stays on the disk",
        )
    return {name: content for name, content in contents.items() if b"\0" not in content}


def _documentation(code: bytes) -> bytes:
    """What Python code says in English: its strings of several words between triple quotes."""
    strings = (quoted or single for quoted, single in _TRIPLE.findall(code))
    return b"".join(
        textwrap.dedent(s.decode("utf-8", "replace")).strip().encode() + b"\n\n"
        for s in strings
        if len(s.split()) >= _WORDS
    )


def _split(source: str, texts: dict[str, bytes]) -> Text:
    size = sum(map(len, texts.values()))
    refuse(size == 0, f"{source} holds no text; {_ACCEPTED}")
    held = {n for n in texts if hashlib.sha256(n.encode()).digest()[0] * 10 < 256}
    if not 0.05 * size <= sum(len(texts[n]) for n in held) <= 0.2 * size:
        return _cut(source, np.frombuffer(b"".join(texts.values()), np.uint8))
    parts = [b"".join(texts[n] for n in texts if (n in held) is kept) for kept in (False, True)]
    train, held_out = (np.frombuffer(part, np.uint8) for part in parts)
    return Text(source, train, held_out)


# -- rows of a task -------------------------------------------------------------------------------


class InductionRows:
    """The rows of the induction task.

    Fields:
        task: its settings.
        source, vocabulary, sha256: as of a `Text`; the SHA-256 is that of the settings.

    >>> rows = InductionRows(Induction(vocabulary=64))
    >>> tokens, targets = rows.batch(seed=0, step=0, rows=2, length=32)
    >>> tokens.shape, int((targets != NOT_ASKED).any())
    ((2, 32), 1)
    """

    def __init__(self, task: Induction) -> None:
        self.task, self.source, self.vocabulary = task, "task induction", task.vocabulary
        self.sha256 = hashlib.sha256(task.model_dump_json().encode()).hexdigest()

    def batch(self, seed: int, step: int, rows: int, length: int) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and targets, int64, both of shape (rows, length); targets that are no answers are
        `NOT_ASKED`. Seed and step alone decide them."""
        random = np.random.default_rng([seed, step])
        fresh = self._distinct(random, rows, length + 1)
        tokens = np.empty((rows, length + 2), dtype=np.int64)
        asked = np.zeros((rows, length + 1), dtype=bool)
        repeated = np.zeros((rows, self.vocabulary), dtype=bool)
        every, taken = np.arange(rows), np.zeros(rows, int)
        answering = np.zeros(rows, bool)  # rows whose last token repeated another one
        wanted = random.random((rows, length + 1)) < self.task.chance
        draws = random.random((rows, length + 1))
        for t in range(length + 1):
            again = np.zeros(rows, bool)
            if 3 <= t < length:
                at = t - 2 - (draws[:, t] * (t - 1)).astype(int)  # 2 to t back
                token, answer = tokens[every, at], tokens[every, at + 1]
                again = wanted[:, t] & ~answering & ~repeated[every, token]
            new = ~again & ~answering
            tokens[new, t] = fresh[new, taken[new]]
            taken += new
            if again.any():  # the next token is the one that followed the same token before
                tokens[again, t], tokens[again, t + 1] = token[again], answer[again]
                repeated[every[again], token[again]] = True
                repeated[every[again], answer[again]] = True
                asked[again, t] = True
            answering = again
        return tokens[:, :length], np.where(asked, tokens[:, 1:], NOT_ASKED)[:, :length]

    def held(self, rows: int, length: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows of a seed that no training has."""
        return self.batch(2**63, 0, rows, length)

    def probe(self, seed: int, rows: int, length: int, distance: int) -> np.ndarray:
        """Rows that ask one question, at their end: int64, shape (rows, length + 1), the last token
        the answer, whose key is `distance` before the query, from 1 to `length - 2`."""
        random = np.random.default_rng([seed, length, distance])
        tokens = self._distinct(random, rows, length + 1)
        tokens[:, length - 1] = tokens[:, length - 2 - distance]
        tokens[:, length] = tokens[:, length - 1 - distance]
        return tokens

    def require(self, trained: int, measured: int) -> None:
        """Raise InputError unless rows of these lengths have room for a question."""
        refuse(
            min(trained, measured) < 4 or max(trained, measured) >= self.vocabulary,
            f"task induction: rows of {trained} and {measured} tokens out of {self.vocabulary}; "
            "accepted are rows from 4 tokens, shorter than the vocabulary",
        )

    def _distinct(self, random: np.random.Generator, count: int, length: int) -> np.ndarray:
        drawn = random.random((count, self.vocabulary), dtype=np.float32)
        least = np.argpartition(drawn, length - 1, axis=1)[:, :length]
        order = np.take_along_axis(drawn, least, 1).argsort(1)
        return np.take_along_axis(least, order, 1)


class OwnRows:
    """The rows of a task of the user's own, a class `FILE.py:Class` that is made as `Class()`:

        class Copy:
            vocabulary = 64

            def rows(self, random, count, length):
                tokens = random.integers(self.vocabulary, size=(count, length))
                targets = np.full((count, length), -100)
                targets[:, -1] = tokens[:, 0]
                return tokens, targets

    `random` is a generator of NumPy. Tokens and targets have the shape (count, length); a target of
    -100 is not asked. Fields are those of `InductionRows`.
    """

    def __init__(self, code: Own) -> None:
        self.code, self.source, self.sha256 = code, f"task {code.name}", code.sha256
        self.task = handed(f"{code.path}:{code.name}")
        accepted = "accepted: Class() with a vocabulary from 1 and rows"
        try:
            self.vocabulary = operator.index(self.task.vocabulary)
        except (Exception, SystemExit) as error:  # whatever the code of a user raises
            said = whose(error, [code]) or f"the vocabulary of {code.name}: {first_line(error)}"
            raise InputError(f"{said}; {accepted}") from None
        refuse(self.vocabulary < 1, f"{code.name} has the vocabulary {self.vocabulary}; {accepted}")

    def batch(self, seed: int, step: int, rows: int, length: int) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and targets; seed and step alone decide them.

        Raises:
            InputError: they are not of the shape and the vocabulary.
        """
        made = self.task.rows(np.random.default_rng([seed, step]), rows, length)
        tokens, targets = (np.asarray(x, np.int64) for x in made)
        for what, part in (("tokens", tokens), ("targets", targets[targets != NOT_ASKED])):
            refuse(
                (what == "tokens" and not part.shape == targets.shape == (rows, length))
                or bool(((part < 0) | (part >= self.vocabulary)).any()),
                f"{self.source}: {what} of shape {part.shape}; accepted are {(rows, length)} of "
                f"numbers from 0 to {self.vocabulary - 1}, a target -100 where nothing is asked",
            )
        return tokens, targets

    def held(self, rows: int, length: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows of a seed that no training has."""
        return self.batch(2**63, 0, rows, length)

    def require(self, trained: int, measured: int) -> None:
        """Raise InputError unless it gives rows of these lengths."""
        for length in (trained, measured):
            self.held(1, length)


Data = Text | InductionRows | OwnRows


def read_data(run: Run) -> Data:
    """What a run reads: its text, or the rows of its task.

    Raises:
        InputError: the text or the task cannot be read.
    """
    if run.task is None:
        return read_text(run.text)
    return OwnRows(own(run.task)) if isinstance(run.task, str) else InductionRows(run.task)
