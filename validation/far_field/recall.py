"""Needles: what a model recalls over a distance, from a few blocks of a long row.

Sentences stand at some distances before the end of a row, and the end asks for each. The first
block of the row, a part around each needle and the last block are read, at their true positions.
What lies between is far keys, or nothing. Of a real row every token is read.

A model with a tokenizer is asked questions in words. Another one is asked to say a *sequence* of
random tokens of the text again, from its first half.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from farfield.theory.answers.errors import refuse

BLOCK = 512
"""Most tokens of the first and of the last block."""
_SHARES = (1 / 16, 3 / 16, 3 / 8, 9 / 16, 3 / 4, 15 / 16)  # of the row, where needles stand
_SEQUENCE = 4  # tokens of a sequence that are asked with, and that are asked for

Encode = Callable[[str], Sequence[int]]
"""A text in tokens, without a first token."""
Read = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Scores (rows, kept, vocabulary) of rows (rows, places), at positions, of the places kept."""

_NAMES = (
    "Alice",
    "Robert",
    "Maria",
    "Thomas",
    "Helen",
    "Victor",
    "Susan",
    "Oscar",
    "Laura",
    "Peter",
    "Nancy",
    "Henry",
)
_CITIES = (
    "Paris",
    "London",
    "Rome",
    "Berlin",
    "Madrid",
    "Vienna",
    "Dublin",
    "Lisbon",
    "Athens",
    "Oslo",
    "Moscow",
    "Cairo",
)
_ANIMALS = (
    "dog",
    "cat",
    "horse",
    "rabbit",
    "parrot",
    "snake",
    "goat",
    "pig",
    "turtle",
    "monkey",
    "sheep",
    "duck",
)


class NeedleKind(NamedTuple):
    """A kind of needle: its sentence, its question, and what may be asked for."""

    sentence: str
    question: str
    answers: Sequence[str]


KINDS = {
    "code": NeedleKind(
        "Remember this: the secret code of {name} is {answer}.",
        "What is the secret code of {name}? The secret code of {name} is",
        [str(number) for number in range(1111, 10000)],
    ),
    "city": NeedleKind(
        "{name} moved to {answer}.", "Where did {name} move? {name} moved to", _CITIES
    ),
    "pet": NeedleKind(
        "The pet of {name} is a {answer}.",
        "What is the pet of {name}? The pet of {name} is a",
        _ANIMALS,
    ),
}


class Needle(NamedTuple):
    """A sentence in a row, and what is asked for at its end.

    Fields:
        kind: one of `KINDS`, or `sequence`.
        distance: tokens from its first one to the end of the row.
        answer: places of the targets that are asked for.
    """

    kind: str
    distance: int
    answer: range


class NeedleRow(NamedTuple):
    """A row with needles.

    Fields:
        tokens: shape (length + 1,).
        needles: in the order of their questions.
        block: tokens of its first and its last block.
    """

    tokens: Tensor
    needles: tuple[Needle, ...]
    block: int

    def places(self, begin: int = 0) -> Tensor:
        """The first block of the row that begins at a place, a part around each needle in it, and
        the last block."""
        length, part = len(self.tokens) - 1, part_of(self.block)
        kept = {*range(begin, begin + self.block), *range(length - self.block, length)}
        for needle in self.needles:
            at = length - needle.distance - part // 2
            kept |= {*range(max(begin, at), at + part)}
        return torch.tensor(sorted(kept))


class NeedleScore(NamedTuple):
    """How a needle is recalled.

    Fields:
        kind, distance: of the needle.
        log_probability: of its answer, in nats.
        right: whether each token of the answer is the likeliest one.
    """

    kind: str
    distance: int
    log_probability: float
    right: bool


def part_of(block: int) -> int:
    """Tokens that are read around a needle."""
    return max(block // 4, 4 * _SEQUENCE)


def distances(block: int, length: int) -> list[int]:
    """Where needles stand: at most six distances, no nearer than the last block.

    >>> distances(512, 16384), distances(64, 1024)
    ([1024, 3072, 6144, 9216, 12288, 15360], [64, 192, 384, 576, 768, 960])
    """
    part = part_of(block)
    each = {max(block, round(share * length / part) * part) for share in _SHARES}
    asked = sorted(d for d in each if d <= length - part)
    return asked[-(block // (2 * _SEQUENCE)) :]


def needle_row(
    encode: Encode | None,
    text: Tensor,
    length: int,
    distances: Sequence[int],
    seed: int = 0,
    block: int = BLOCK,
) -> NeedleRow:
    """A row of a text with needles at some distances before its end.

    Args:
        encode: the model's tokenizer; None for sequences.
        text: tokens; a text shorter than the row begins again.
        length: tokens of the row.
        distances: each within the row and outside its last block.
        seed: of names, answers and kinds, which go round.
        block: tokens of the first and of the last block.

    Raises:
        InputError: more needles than the end can ask for; distances that overlap.
    """
    steps, part = sorted([*distances, length]), part_of(block)
    apart = min((b - a for a, b in itertools.pairwise(steps)), default=0)
    refuse(
        not distances or steps[0] < block or apart < part,
        f"needles stand at least {block} tokens before the end, and {part} tokens apart",
    )
    refuse(len(distances) > len(_NAMES), f"at most {len(_NAMES)} needles stand in one row")
    asked = _worded(encode, len(distances), seed) if encode else _random(text, distances, seed)
    start, stop = (encode("\n\nQuestions and answers.\n"), encode(".\n")) if encode else ((), ())
    size = len(start) + sum(
        len(question) + len(answer) + len(stop) for *_, question, answer in asked
    )
    refuse(
        size > block,
        f"{len(asked)} questions take {size} tokens; accepted: fewer needles, up to {block}",
    )
    tokens = text.repeat(-(-length // len(text)))[: length - size].tolist()
    tokens, needles = [*tokens, *start], []
    for distance, (kind, sentence, question, answer) in zip(distances, asked, strict=True):
        tokens[length - distance : length - distance + len(sentence)] = sentence
        at = len(tokens) + len(question)
        tokens += [*question, *answer, *stop]
        needles.append(Needle(kind, distance, range(at, at + len(answer))))
    return NeedleRow(torch.tensor([*tokens, 0]), tuple(needles), block)


Asked = tuple[str, Sequence[int], Sequence[int], Sequence[int]]
"""Of a needle: its kind, its sentence, its question and its answer, in tokens."""


def _worded(encode: Encode, count: int, seed: int) -> list[Asked]:
    """Needles in words."""
    draw, kinds = random.Random(seed), list(KINDS)
    asked: list[Asked] = []
    for k, name in enumerate(draw.sample(_NAMES, count)):
        kind = kinds[(k + seed) % len(kinds)]
        answer = str(draw.choice(KINDS[kind].answers))
        sentence = "\n" + KINDS[kind].sentence.format(name=name, answer=answer) + "\n"
        question = KINDS[kind].question.format(name=name)
        asked.append((kind, encode(sentence), encode(question), encode(f" {answer}")))
    return asked


def _random(text: Tensor, distances: Sequence[int], seed: int) -> list[Asked]:
    """Sequences of tokens of the text."""
    draws = torch.Generator().manual_seed(seed)
    shape = (len(distances), 2 * _SEQUENCE)
    each = text[torch.randint(len(text), shape, generator=draws)].tolist()
    return [("sequence", tokens, tokens[:_SEQUENCE], tokens[_SEQUENCE:]) for tokens in each]


def recalled(
    row: NeedleRow, read: Read, cut: int | None = None, whole: bool = False
) -> list[NeedleScore]:
    """How each needle of a row is recalled.

    Args:
        row: with needles.
        read: the model.
        cut: the row is cut to so many last tokens, and positions begin there.
        whole: whether every token is read, as of a real row.

    Returns:
        One entry a needle. A needle that is cut off is asked for all the same.
    """
    length = len(row.tokens) - 1
    begin = length - min(cut or length, length)
    places = torch.arange(begin, length) if whole else row.places(begin)
    targets = torch.tensor([place for needle in row.needles for place in needle.answer])
    asked = torch.searchsorted(places, targets - 1)
    scores = read(row.tokens[places][None], places - begin, asked)[0].double().log_softmax(-1)
    nats = scores.gather(-1, row.tokens[targets, None])[:, 0]
    right, sizes = scores.argmax(-1) == row.tokens[targets], [len(n.answer) for n in row.needles]
    return [
        NeedleScore(needle.kind, needle.distance, float(own.sum()), bool(hits.all()))
        for needle, own, hits in zip(
            row.needles, nats.split(sizes), right.split(sizes), strict=True
        )
    ]
