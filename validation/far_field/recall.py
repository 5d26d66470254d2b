"""Needles: how each is written, asked and recalled, by bands of distance, from blocks of a row.

Sentences stand at some distances before the end of a row, and the end asks for each. The first
block of the row, a part around each needle and the last block are read, at their true positions.
What lies between is far keys, or nothing. Of a real row every token is read. It may have several
ends at the same positions, none of which sees another: a further end asks for as many needles again
at a tenth of the cost of a row.

A model with a tokenizer is asked questions in words. Another one is asked to say a *sequence* of
random tokens of the text again, from its first half.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

from farfield.theory.answers.errors import InputError, refuse

BLOCK = 512
"""Most tokens of the first and of the last block."""
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
    "Clara",
    "Simon",
    "Emma",
    "George",
    "Julia",
    "Martin",
    "Sophie",
    "Daniel",
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
    """A form of needle: its sentence, and what may be asked for. The question is the sentence up to
    its answer."""

    sentence: str
    answers: Sequence[str]


KINDS = {
    "code": NeedleKind("The code of {name} is {answer}.", [str(n) for n in range(1111, 10000)]),
    "city": NeedleKind("{name} moved to {answer}.", _CITIES),
    "pet": NeedleKind("The pet of {name} is a {answer}.", _ANIMALS),
    "setting": NeedleKind("{name}_limit = {answer}", [str(n) for n in range(100, 1000)]),
    "function": NeedleKind(
        "def {name}(x): return x + {answer}", [str(n) for n in range(100, 1000)]
    ),
}
MOST = 24
"""Needles in a row of which some blocks are read; a row that is read whole holds twice as many."""


T = TypeVar("T", str, Sequence[int])


class Told(NamedTuple, Generic[T]):
    """A needle as text, or in tokens.

    Fields:
        kind: its form.
        context: the sentence in the row.
        question: what the end asks.
        answer: how the question goes on.
        chance: log probability of the answer for who knows the answers that there are.
    """

    kind: str
    context: T
    question: T
    answer: T
    chance: float


class Needle(NamedTuple):
    """A sentence in a row, and the answer asked for at its end.

    Fields:
        kind: one of `KINDS`, `file`, or `sequence`.
        distance: tokens from its first one to the end of the row.
        answer: places of the targets that are asked for, among the tokens of its row.
        chance: log probability of the answer for who knows the answers that there are.
    """

    kind: str
    distance: int
    answer: range
    chance: float


class NeedleRow(NamedTuple):
    """A row with needles.

    Fields:
        tokens: shape (length + 1,), or with further ends before the last one (length + (ends - 1)
            size + 1,).
        needles: by distance.
        block: tokens of its first and its last block.
        length: tokens of the row with one of its ends.
        size: tokens of an end.
        row: its number.
    """

    tokens: Tensor
    needles: tuple[Needle, ...]
    block: int
    length: int
    size: int
    row: int

    @property
    def positions(self) -> Tensor:
        """Of its tokens but the last."""
        end = torch.arange(self.length - self.size, self.length)
        ends = (len(self.tokens) - self.length) // self.size
        return torch.cat([torch.arange(self.length), end.repeat(ends)])

    @property
    def asks(self) -> int:
        """The place at which its questions begin."""
        return min(needle.answer.start for needle in self.needles) - self.block // 8

    def places(self, begin: int = 0) -> Tensor:
        """The first block of the row that begins at a place, a part around each needle in it, and
        the last block."""
        length, part = self.length, part_of(self.block)
        kept = {*range(begin, begin + self.block), *range(length - self.block, length)}
        for needle in self.needles:
            at = length - needle.distance - part // 4
            kept |= {*range(max(begin, at), at + part)}
        return torch.tensor(sorted(kept))


class NeedleScore(NamedTuple):
    """How a needle is recalled.

    Fields:
        kind, distance: of the needle.
        log_probability: of its answer, in nats.
        right: whether each token of the answer is the likeliest one.
        chance: log probability of the answer for who knows the answers that there are.
        row: in which it stands.
    """

    kind: str
    distance: int
    log_probability: float
    right: bool
    chance: float = -math.inf
    row: int = 0

    @property
    def gain(self) -> float:
        """Log probability over chance, 0 below it."""
        return max(0.0, self.log_probability - self.chance)


@dataclass(frozen=True)
class Band:
    """Distances that are told apart: near, to the training length, beyond it.

    Fields:
        low, high: distances beyond `low` and up to `high`.
        trained: whether it lies within the training length.
    """

    low: int
    high: int
    trained: bool

    def of(self, scores: Sequence[NeedleScore]) -> list[NeedleScore]:
        """The needles in it."""
        return [score for score in scores if self.low < score.distance <= self.high]


def bands(trained: int, to: int) -> tuple[Band, ...]:
    """A quarter of the training length, the other three quarters, and everything beyond.

    >>> [(band.low, band.high) for band in bands(8192, 16384)]
    [(0, 2048), (2048, 8192), (8192, 16384)]
    """
    ends = [0, min(trained // 4, to), min(trained, to), to]
    return tuple(Band(a, b, b <= trained) for a, b in itertools.pairwise(ends) if a < b)


def roomy(length: int, to: int) -> bool:
    """Whether a real row of `to` tokens has room for larger ends, and for several of them, in a
    search whose short rows have this length."""
    return length >= BLOCK and to >= 8 * BLOCK


def part_of(block: int) -> int:
    """Tokens that are read around a needle."""
    return max(min(block, BLOCK) // 4, 4 * _SEQUENCE)


def distances(
    block: int, length: int, trained: int, most: int = MOST, part: int | None = None
) -> list[int]:
    """Where needles stand: a quarter of them near, the others to the training length and beyond in
    equal numbers, no nearer than the last block, and `part` tokens apart or more.

    >>> distances(512, 16384, 8192, 6), distances(64, 1024, 256, 8)
    ([896, 1664, 3584, 6656, 10240, 14208], [96, 160, 224, 384, 624, 880])
    """
    part, found = part or part_of(block), list[int]()
    for band, share in zip(reversed(bands(trained, length)), (3, 3, 2), strict=False):
        low, high = max(band.low, block), min(band.high, length - part)
        count = min(round(most * share / 8), (high - low) // part)
        steps = (((2 * k + 1) * (high - low), 2 * count * part) for k in range(count))
        found += [low - (size // 2 - step) // size * part for step, size in steps]  # halves: down
    return sorted(found)[-min(most, block // (2 * _SEQUENCE)) :]


def needle_row(
    encode: Encode | None,
    text: Tensor,
    length: int,
    distances: Sequence[int],
    seed: int = 0,
    block: int = BLOCK,
    told: Sequence[Told[str]] = (),
    ends: int = 1,
    part: int | None = None,
) -> NeedleRow:
    """A row of a text with needles at some distances before its end.

    Args:
        encode: the model's tokenizer; None for sequences.
        text: tokens; a text shorter than the row begins again.
        length: tokens of the row.
        distances: each within the row and outside its last block.
        seed: of names, answers and kinds, which go round; the number of the row.
        block: tokens of the first and of the last block.
        told: the needles, some of which are drawn; none given takes those of `KINDS`.
        ends: of the row, each of which asks for its share of the needles.
        part: tokens from one needle to the next at least; those that are read around it if not
            given.

    Raises:
        InputError: more needles than the end can ask for; distances that overlap.
    """
    draw, part = random.Random(seed), part or part_of(block)
    _require_apart(distances, length, block, part)
    asked = _questions(encode, text, distances, seed, told, draw)
    start, stop = (encode("\n\nQuestions and answers.\n"), encode("\n")) if encode else ((), ())
    order = draw.sample(range(len(asked)), len(asked))  # questions come in an order of their own
    groups = [order[k::ends] for k in range(ends)]
    questions = [len(needle.question) + len(needle.answer) + len(stop) for needle in asked]
    sizes = [len(start) + sum(questions[k] for k in some) for some in groups]
    size, longest = max(sizes), max(len(needle.context) for needle in asked)
    refuse(
        size > block or longest > 3 * part // 4,
        f"{len(groups[0])} questions take {size} tokens and a needle {longest}; accepted: "
        f"questions of up to {block} and needles of up to {3 * part // 4}",
    )
    known = text.repeat(-(-length // len(text)))[:length].tolist()
    tokens, needles = known[: length - size], list[Needle]()
    for some, used in zip(groups, sizes, strict=True):
        tokens += [*known[length - size : length - used], *start]
        for needle, distance in ((asked[k], distances[k]) for k in some):
            begin = len(tokens) + len(needle.question)
            answer = range(begin, begin + len(needle.answer))
            tokens += [*needle.question, *needle.answer, *stop]
            needles.append(Needle(needle.kind, distance, answer, needle.chance))
    for distance, needle in zip(distances, asked, strict=True):
        begin = length - distance
        tokens[begin : begin + len(needle.context)] = needle.context
    needles.sort(key=lambda needle: needle.distance)
    return NeedleRow(torch.tensor([*tokens, 0]), tuple(needles), block, length, size, seed)


def _require_apart(distances: Sequence[int], length: int, block: int, part: int) -> None:
    """Raise InputError unless needles keep off the end, the begin and each other."""
    steps = sorted([*distances, length])
    apart = min((b - a for a, b in itertools.pairwise(steps)), default=0)
    refuse(
        not distances or steps[0] < block or apart < part,
        f"needles stand at least {block} tokens before the end, and {part} tokens apart",
    )


def drawn(count: int, seed: int) -> list[Told[str]]:
    """Needles of `KINDS` in turns, no name twice in a kind.

    >>> drawn(2, 0)[0].context.startswith(drawn(2, 0)[0].question)
    True
    """
    draw, kinds, each = random.Random(seed), [*KINDS], list[Told[str]]()
    names = {kind: draw.sample(_NAMES, len(_NAMES)) for kind in kinds}
    for k in range(count):
        kind = kinds[(k + seed) % len(kinds)]
        sentence, answers = KINDS[kind]
        told = sentence.replace("{name}", names[kind][k // len(kinds) % len(_NAMES)])
        answer = str(draw.choice(answers))
        question = told.partition("{answer}")[0].rstrip()
        context = told.replace("{answer}", answer)
        each.append(Told(kind, context, question, answer, -math.log(len(answers))))
    return draw.sample(each, count)


def needles_of(file: str | os.PathLike[str], encode: Encode | None) -> list[Told[str]]:
    """Needles of a file: a JSON object a line, with the texts `context`, `question`, `answer`.

    Args:
        file: its path.
        encode: the model's tokenizer.

    Raises:
        InputError: the file cannot be read; a line has another form, which is named, or takes too
            many tokens; the model has no tokenizer.
    """
    form = '{"context": "The key is 17.", "question": "The key is", "answer": "17"}'
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise InputError(f"needles {str(file)!r}: {error}; accepted: a text file") from None
    each = list[tuple[str, str, str]]()
    for number, line in enumerate(lines, 1):
        try:
            texts = json.loads(line)
            each.append((texts["context"], texts["question"], texts["answer"]))
        except (ValueError, KeyError, TypeError):
            texts = None
        refuse(
            texts is None or not all(isinstance(text, str) and text.strip() for text in each[-1]),
            f"needles {str(file)!r}, line {number}: {line:.60}; accepted: a line such as {form}",
        )
    refuse(len(each) < 2, f"needles {str(file)!r}: {len(each)} lines; accepted: 2 or more")
    if encode is None:
        raise InputError(
            f"needles {str(file)!r}: the model has no tokenizer; accepted: a folder with one"
        )
    most = 3 * part_of(BLOCK) // 4 - 2
    for number, texts in enumerate(each, 1):
        context, question, answer = (len(encode(text)) for text in texts)
        refuse(
            max(context, question + answer) > most,
            f"needles {str(file)!r}, line {number}: {max(context, question + answer)} tokens; "
            f"accepted: a context, and a question with its answer, of up to {most}",
        )
    chance = -math.log(max(2, len({answer for *_, answer in each})))
    stripped = ([text.strip() for text in texts] for texts in each)
    return [
        Told("file", context, question, answer, chance) for context, question, answer in stripped
    ]


def _encoded(encode: Encode, told: Told[str]) -> Told[Sequence[int]]:
    context = encode("\n" + told.context + "\n")
    return Told(told.kind, context, encode(told.question), encode(f" {told.answer}"), told.chance)


def _questions(
    encode: Encode | None,
    text: Tensor,
    distances: Sequence[int],
    seed: int,
    told: Sequence[Told[str]],
    draw: random.Random,
) -> list[Told[Sequence[int]]]:
    """The needles of a row, as `needle_row` is asked for them: in words, or sequences of tokens of
    the text."""
    if encode is not None:
        chosen = draw.sample(told, len(distances)) if told else drawn(len(distances), seed)
        return [_encoded(encode, needle) for needle in chosen]
    draws = torch.Generator().manual_seed(seed)
    shape = (len(distances), 2 * _SEQUENCE)
    each = text[torch.randint(len(text), shape, generator=draws)].tolist()
    chance = -_SEQUENCE * math.log(len(text.unique()))
    return [
        Told("sequence", tokens, tokens[:_SEQUENCE], tokens[_SEQUENCE:], chance) for tokens in each
    ]


def recalled(
    row: NeedleRow, read: Read, cut: int | None = None, whole: bool = False, last: int = 0
) -> tuple[Tensor, list[NeedleScore]]:
    """How each needle of a row is recalled.

    Args:
        row: with needles.
        read: the model.
        cut: the row is cut to so many last tokens, and positions begin there.
        whole: whether every token is read, as of a real row.
        last: targets before the questions whose loss is wanted; every token must be read.

    Returns:
        The loss of these targets in nats, and one entry a needle. A needle that is cut off is asked
        for all the same.
    """
    begin = row.length - min(cut or row.length, row.length)
    places = torch.arange(begin, len(row.tokens) - 1) if whole else row.places(begin)
    answers = [place for needle in row.needles for place in needle.answer]
    targets = torch.tensor([*range(row.asks - last, row.asks), *answers])
    asked = torch.searchsorted(places, targets - 1)
    positions = row.positions[places] - begin
    scores = read(row.tokens[places][None], positions, asked)[0].double().log_softmax(-1).cpu()
    logs, right = scores.gather(-1, row.tokens[targets, None])[:, 0], scores.argmax(-1)
    hits, sizes = right == row.tokens[targets], [len(n.answer) for n in row.needles]
    each = zip(row.needles, logs[last:].split(sizes), hits[last:].split(sizes), strict=True)
    return -logs[:last], [
        NeedleScore(n.kind, n.distance, float(own.sum()), bool(all_.all()), n.chance, row.row)
        for n, own, all_ in each
    ]
