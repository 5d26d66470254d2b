"""Needles: what a model recalls over a distance, from a few blocks of a long row.

Sentences stand at some distances before the end of a row, and the end asks for each. The probe
keeps the first block of the row, a block around each needle and the last block, all at their true
positions. Needles share one row, so each has the others beside it. Of a real row every block is
kept. The probe lacks dilution: the other far keys are not there.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from farfield.theory.answers.errors import refuse
from farfield.validation.far_field.probe import Encode, scores_at

BLOCK, AROUND = 512, 128
"""Tokens of the first and of the last block, and of a block around a needle."""

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


@dataclass(frozen=True)
class Needle:
    """A sentence in a row, and what is asked for at its end.

    Fields:
        kind: one of `KINDS`.
        distance: tokens from its first one to the end of the row.
        place: of its first token.
        answer: places of the targets that are asked for.
    """

    kind: str
    distance: int
    place: int
    answer: range


@dataclass(frozen=True)
class NeedleRow:
    """A row with needles: its tokens, shape (length + 1,), and the needles in order."""

    tokens: Tensor
    needles: tuple[Needle, ...]


@dataclass(frozen=True)
class NeedleScore:
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


def needle_row(
    encode: Encode, text: Tensor, length: int, distances: Sequence[int], seed: int = 0
) -> NeedleRow:
    """A row of a text with needles at some distances before its end.

    Args:
        encode: the model's tokenizer.
        text: (length,) tokens or more.
        length: tokens of the row.
        distances: each within the row and outside its last block.
        seed: of names, answers and kinds, which go round.

    Raises:
        InputError: a text that is too short; more needles than the end can ask for; distances that
            overlap.
    """
    draw = random.Random(seed)
    refuse(len(text) < length, f"the text has {len(text)} tokens; a row needs {length}")
    refuse(len(distances) > len(_NAMES), f"at most {len(_NAMES)} needles stand in one row")
    steps = sorted([*distances, length])
    apart = min((b - a for a, b in itertools.pairwise(steps)), default=0)
    refuse(
        not distances or steps[0] < BLOCK or apart < AROUND,
        f"needles stand at least {BLOCK} tokens before the end, and {AROUND} tokens apart",
    )
    kinds, names = list(KINDS), draw.sample(_NAMES, len(distances))
    tail, facts = [*encode("\n\nQuestions and answers.\n")], []
    for k, (name, distance) in enumerate(zip(names, distances, strict=True)):
        kind = kinds[(k + seed) % len(kinds)]
        answer = str(draw.choice(KINDS[kind].answers))
        tail += encode(KINDS[kind].question.format(name=name))
        at, asked = len(tail), encode(f" {answer}")
        tail += [*asked, *encode(".\n")]
        sentence = encode("\n" + KINDS[kind].sentence.format(name=name, answer=answer) + "\n")
        facts.append((kind, distance, sentence, range(at, at + len(asked))))
    refuse(
        len(tail) > BLOCK,
        f"{len(facts)} questions take {len(tail)} tokens; accepted: fewer needles, up to {BLOCK}",
    )
    row = text[: length - len(tail)].tolist() + tail
    begin, needles = length - len(tail), []
    for kind, distance, sentence, asked in facts:
        place = length - distance
        row[place : place + len(sentence)] = sentence
        answered = range(begin + asked.start, begin + asked.stop)
        needles.append(Needle(kind, distance, place, answered))
    return NeedleRow(torch.tensor([*row, 0]), tuple(needles))


def blocks_of(row: NeedleRow) -> Tensor:
    """The places of a row that the probe keeps: its first block, one a needle, its last block."""
    length = len(row.tokens) - 1
    kept = {*range(BLOCK), *range(length - BLOCK, length)}
    for needle in row.needles:
        begin = max(0, needle.place - AROUND // 2)
        kept |= {*range(begin, begin + AROUND)}
    return torch.tensor(sorted(kept))


@torch.no_grad()
def recalled(
    network: Any, row: NeedleRow, kept: Tensor, cut: int | None = None
) -> list[NeedleScore]:
    """How each needle of a row is recalled, from the places of the row that are kept.

    Args:
        network: a causal language model of the library transformers, in evaluation mode.
        row: with needles.
        kept: places, ascending; all of them are the real row.
        cut: the row is cut to this many last tokens, and positions begin there.

    Returns:
        One entry a needle. A needle that is cut off is asked for all the same.
    """
    begin = 0 if cut is None else max(0, len(row.tokens) - 1 - cut)
    kept = kept[kept >= begin]
    index = {place: k for k, place in enumerate(kept.tolist())}
    asked = [index[place - 1] for needle in row.needles for place in needle.answer]
    scores = scores_at(network, row.tokens[kept], kept - begin, torch.tensor(asked))
    each, at = scores.log_softmax(-1), 0
    results = []
    for needle in row.needles:
        size = len(needle.answer)
        targets = row.tokens[needle.answer.start : needle.answer.stop]
        part = each[at : at + size]
        nats = part.gather(-1, targets[:, None]).sum()
        right = bool((part.argmax(-1) == targets).all())
        results.append(NeedleScore(needle.kind, needle.distance, float(nats), right))
        at += size
    return results
