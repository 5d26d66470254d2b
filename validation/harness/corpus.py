"""Texts as bytes: a training part, a held-out part, and the SHA-256 that names them.

The built-in text is the source code of the running Python's standard library without its test
directories, about 12 MB. Files come in the order of their names; a file is held out when the hash
of its name says so (one in ten), so that no file is cut and nothing depends on the machine.
Perplexities on texts with different SHA-256 are not comparable.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np

from farfield.theory.answers.answer import InputError

BYTES = 256


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

    Args:
        text: of bytes or tokens, one-dimensional.
        count: segments wanted; fewer are returned when the text has no more different ones.
        length: tokens in each.

    Returns:
        `int64`, shape (segments, length + 1); they overlap only if the text is too short for all.

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
