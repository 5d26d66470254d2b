"""Tasks beside text: rows on which a model must look back, at a distance that is chosen.

    induction   distinct random tokens; one that stood before comes again: name its successor
    copy        a marker and a span of tokens; the marker comes again: write the span once more
    needle      English text with `(key:1234)`; the row ends with `(key:`: write the four digits

A *distance* leads from the query whose next token is asked for to the key that holds the answer.
Where several tokens are asked, it is the distance of the first. Training rows draw their distances;
probes are told them. Loss and accuracy count the answers alone.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, InstanceOf

from farfield.theory.answers.errors import refuse
from farfield.validation.harness.corpus import BYTES, Corpus
from farfield.validation.harness.presets import Count, Natural, Share, settings

_NEEDLE = 10  # bytes of (key:1234), with a key of three letters


@dataclass(frozen=True)
class Rows:
    """Rows of a task.

    Args:
        tokens: int64, shape (rows, length + 1).
        asked: whether the token after each is an answer, shape (rows, length).
        query, key: positions of the first query of an answer and of the key that holds it, one a
            row; of a probe, else of the last question.
    """

    tokens: np.ndarray
    asked: np.ndarray
    query: np.ndarray
    key: np.ndarray


@settings
class Task:
    """What a model is trained on in place of a text.

    Args:
        kind: `induction`, `copy` or `needle`.
        vocabulary: different tokens of `induction` and `copy`; a row is no longer.
        chance: that a place of an induction row repeats a token, between 0 and 1.
        span: tokens of a `copy`.
        distractors: further needles in a row of `needle`, with other keys.
        text: that needles are put into; its bytes.

    Raises:
        InputError: an unknown kind, or a number out of range.
    """

    kind: Literal["induction", "copy", "needle"]
    vocabulary: Annotated[int, Field(ge=8, strict=True)] = 1152
    chance: Share = 0.35
    span: Count = 8
    distractors: Natural = 0
    text: InstanceOf[Corpus] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.kind == "needle":
            refuse(
                self.text is None or self.text.vocabulary != BYTES,
                "task needle: accepted is a text of bytes for the rows",
            )
            object.__setattr__(self, "vocabulary", BYTES)

    def describe(self) -> dict[str, Any]:
        """What decides its rows, in JSON form."""
        kinds: dict[str, dict[str, Any]] = {
            "induction": {"vocabulary": self.vocabulary, "chance": self.chance},
            "copy": {"vocabulary": self.vocabulary, "span": self.span},
            "needle": {"distractors": self.distractors},
        }
        text = {} if self.text is None else {"text_sha256": self.text.sha256}
        return {"kind": self.kind, **kinds[self.kind], **text}

    @property
    def sha256(self) -> str:
        """Of its description in canonical JSON."""
        text = json.dumps(self.describe(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def nearest(self, near: int = 0) -> int:
        """The least distance that a probe can have, its key not among the `near` nearest."""
        least = {"induction": 1, "copy": self.span, "needle": _NEEDLE}[self.kind]
        return max(least, near)

    def farthest(self, length: int) -> int:
        """The largest distance in rows of a length; less than the nearest where none has room."""
        spare = {"induction": 2, "copy": self.span + 1, "needle": 9}[self.kind]
        return length - spare

    def require(self, length: int, distance: int | None = None) -> None:
        """Raise InputError unless rows of a length have room for a question, at this distance."""
        nearest, farthest = self.nearest(), self.farthest(length)
        needed = self.distractors * _NEEDLE if self.kind == "needle" else 0
        refuse(
            farthest < nearest + needed,
            f"task {self.kind}: rows of {length} tokens have no room for a question; accepted "
            f"are rows from {length + nearest + needed - farthest}",
        )
        refuse(
            self.kind != "needle" and length >= self.vocabulary,
            f"task {self.kind}: rows of {length} different tokens out of {self.vocabulary}; "
            "accepted is a vocabulary larger than the longest row",
        )
        refuse(
            distance is not None and not nearest <= distance <= farthest,
            f"task {self.kind}: distance {distance} in rows of {length} tokens; accepted are "
            f"distances from {nearest} to {farthest}",
        )

    def rows(self, random: np.random.Generator, count: int, length: int) -> Rows:
        """Rows to train on.

        >>> rows = Task("induction", vocabulary=64).rows(np.random.default_rng(0), 2, 32)
        >>> rows.tokens.shape, rows.asked.shape
        ((2, 33), (2, 32))
        """
        if self.kind == "induction":
            return self._induction(random, count, length)
        far = random.integers(self.nearest(), self.farthest(length) + 1, count)
        return self._asking(random, length, far, "train")

    def probe(self, random: np.random.Generator, count: int, length: int, distance: int) -> Rows:
        """Rows that ask one question, at their end, at a distance; of the held-out text."""
        return self._asking(random, length, np.full(count, distance), "held_out")

    def _asking(self, random: np.random.Generator, length: int, far: np.ndarray, part: str) -> Rows:
        if self.kind == "needle":
            return self._hidden(random, length, far, getattr(self.text, part))
        span = self.span if self.kind == "copy" else 1
        tokens, every = self._distinct(random, len(far), length + 1), np.arange(len(far))
        query = np.full(len(far), length - span)
        key = query - far
        if self.kind == "copy":  # a marker stands before the span and where it is asked for
            marker = tokens[:, 0].copy()
            tokens[:, 0] = tokens[every, key - 1]
            tokens[every, key - 1] = marker
        tokens[every, query] = tokens[every, key - 1]
        for offset in range(span):
            tokens[:, length - span + 1 + offset] = tokens[every, key + offset]
        return self._rows(tokens, query, key, span)

    def _distinct(self, random: np.random.Generator, count: int, length: int) -> np.ndarray:
        """Rows of distinct tokens."""
        drawn = random.random((count, self.vocabulary), dtype=np.float32)
        least = np.argpartition(drawn, length - 1, axis=1)[:, :length]
        order = np.take_along_axis(drawn, least, 1).argsort(1)
        return np.take_along_axis(least, order, 1)

    def _induction(self, random: np.random.Generator, count: int, length: int) -> Rows:
        fresh = self._distinct(random, count, length + 1)
        tokens = np.empty((count, length + 2), dtype=np.int64)
        asked = np.zeros((count, length + 1), dtype=bool)
        used = np.zeros((count, self.vocabulary), dtype=bool)
        query, key = np.full(count, -1), np.full(count, -1)
        every, taken, busy = np.arange(count), np.zeros(count, int), np.zeros(count, bool)
        wanted = random.random((count, length + 1)) < self.chance
        draws = random.random((count, length + 1))
        for t in range(length + 1):
            if 3 <= t < length:
                back = 2 + (draws[:, t] * (t - 1)).astype(int)  # 2 .. t
                at = t - back
                first, second = tokens[every, at], tokens[every, at + 1]
                again = wanted[:, t] & ~busy & ~used[every, first]
            else:
                again = np.zeros(count, bool)
            new = ~again & ~busy
            tokens[new, t] = fresh[new, taken[new]]
            taken += new
            if again.any():
                tokens[again, t], tokens[again, t + 1] = first[again], second[again]
                used[every[again], first[again]] = used[every[again], second[again]] = True
                asked[again, t] = True
                query[again], key[again] = t, at[again] + 1
            busy = again
        return Rows(tokens[:, : length + 1], asked[:, :length], query, key)

    def _hidden(
        self, random: np.random.Generator, length: int, far: np.ndarray, text: np.ndarray
    ) -> Rows:
        starts = random.integers(len(text) - length, size=len(far))
        tokens = text[starts[:, None] + np.arange(length + 1)].astype(np.int64)
        query = np.full(len(far), length - 4)
        key = query - far
        for row, at in zip(tokens, (key - 5).tolist(), strict=True):
            places = self._places(random, at, length - 8 - _NEEDLE)
            names = random.choice(26**3, len(places), replace=False).tolist()
            for name, place in zip(names, places, strict=True):
                letters = "".join(chr(97 + name // 26**k % 26) for k in range(3))
                needle = f"({letters}:{random.integers(10_000):04d})".encode()
                row[place : place + _NEEDLE] = np.frombuffer(needle, np.uint8)
            row[length - 8 :] = row[at : at + _NEEDLE - 1]
        return self._rows(tokens, query, key, 4)

    def _places(self, random: np.random.Generator, own: int, last: int) -> list[int]:
        """Where needles begin: the one that is asked for, then others, apart from each other."""
        taken, free = [own], np.arange(last + 1)
        for _ in range(self.distractors):
            free = free[abs(free - taken[-1]) >= _NEEDLE]
            refuse(
                not len(free),
                f"task needle: {self.distractors} distractors have no room in rows of "
                f"{last + 8 + _NEEDLE} bytes; accepted are fewer, or longer rows",
            )
            taken.append(int(random.choice(free)))
        return taken

    def _rows(self, tokens: np.ndarray, query: np.ndarray, key: np.ndarray, answers: int) -> Rows:
        at = np.arange(tokens.shape[1] - 1)
        asked = (at >= query[:, None]) & (at < query[:, None] + answers)
        return Rows(tokens.astype(np.int64), asked, query, key)
