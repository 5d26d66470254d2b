"""The place of an encoding among those of the catalogue, by receptive field.

`references.csv` holds the verdicts and receptive fields of the reference heads of the catalogue, so
that a study does not compute them:

    python -m farfield.validation.study.place > validation/study/references.csv
"""

from __future__ import annotations

import csv
import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from farfield.numerics.receptive_field import (
    theoretical_receptive_field,
)
from farfield.numerics.search import Enclosure, Exact, Value
from farfield.theory.algebra.door import unhurried
from farfield.theory.answers.answer import Label, Result
from farfield.theory.answers.blocks import Block, note, sentence, table
from farfield.theory.answers.notation import StyledWord, listed
from farfield.theory.convergence import Verdict
from farfield.theory.encodings import CATALOGUE, Encoding, encoding
from farfield.validation.study.prediction import Prediction
from farfield.validation.table_cells import size_text

PLACE_EPS = ("1/10", "1/1000", "1e-6", "1e-12")
LONG = 200
"""Letters of a formula from which on the name of an encoding says more."""
REFERENCES = Path(__file__).with_name("references.csv")


@dataclass(frozen=True)
class Rank:
    """One line of a `Place`: an encoding, its verdict, its TRF at each of `PLACE_EPS`.

    The TRF is None where it is infinite, since the series diverges, or unknown.
    """

    name: str
    bias: str
    verdict: Verdict
    receptive_fields: tuple[Value | None, ...]
    asked: bool = False


@dataclass(frozen=True, repr=False)
class Place(Result):
    """Encodings among reference heads of the catalogue, those that need the fewest keys first.

    The order is by TRF(eps) at the last of `PLACE_EPS`, certified; encodings whose series
    diverges come last, in the order of the catalogue.
    """

    ranks: tuple[Rank, ...]

    def said(self) -> Block:
        """The place of each encoding that was asked about, in a sentence."""
        places = [f"{r.name} is number {k}" for k, r in enumerate(self.ranks, 1) if r.asked]
        return sentence(
            "{places} of {count} from narrow to wide, by the tokens that hold all but {eps} of the "
            "weight.",
            Label.CERTIFIED,
            count=f"{len(self.ranks)} biases",
            eps=PLACE_EPS[-1],
            places=listed(places),
        )

    def blocks(self) -> Sequence[Block]:
        rows = [
            (
                StyledWord(r.name, "strong") if r.asked else r.name,
                r.bias if len(r.bias) < LONG else "",
                r.verdict,
                *(size_text(x, r.verdict is Verdict.DIVERGES) for x in r.receptive_fields),
            )
            for r in self.ranks
        ]
        fields = [f"TRF({eps})" for eps in PLACE_EPS]
        numeric = tuple(range(3, 3 + len(fields)))
        return (
            self.said(),
            table(("encoding", "bias", "series", *fields), rows, numeric=numeric),
            note(
                "One reference head of each additive encoding; series that diverge come last. At a "
                "larger eps the order is often another. {command} compares two tails for every "
                "eps. The integers are exact, certified.",
                command=StyledWord("farfield compare", "code"),
            ),
        )


@functools.cache
def references() -> tuple[tuple[str, str, Encoding], ...]:
    """The reference heads of the catalogue: title, name of the entry, encoding of the head."""
    with unhurried():
        return tuple(
            (
                example.title,
                entry.name,
                encoding(encoding(entry.name, **example.options).head(example.head)),
            )
            for entry in CATALOGUE.values()
            for example in entry.examples
        )


def place(predictions: Sequence[Prediction]) -> Place | None:
    """Where encodings stand among the references; None if none of them has receptive fields.

    >>> from farfield.validation.study.prediction import predict
    >>> [r.name for r in place([predict(encoding("-n/3"))]).ranks][:3]
    ['ALiBi, slope 1/2', 'window of 64', '-n/3']
    """
    ranks = [_rank(p.name, p.encoding, asked=True) for p in predictions if p.drawable]
    if not ranks:
        return None
    return Place(tuple(sorted([*ranks, *ranked_references()], key=_weight)))


def _rank(name: str, subject: Encoding, *, asked: bool = False) -> Rank:
    fields = theoretical_receptive_field(subject, PLACE_EPS)
    verdict = fields[0].verdict
    assert verdict is not None  # of the whole series, not of a row
    answers = tuple(field.answer for field in fields)
    return Rank(name, subject.formula_text(), verdict, answers, asked)


def computed_references() -> list[Rank]:
    """The ranks of the references, computed anew."""
    return [_rank(title, subject) for title, _, subject in references()]


@functools.cache
def ranked_references() -> tuple[Rank, ...]:
    """The ranks of the references, as `references.csv` holds them."""
    with REFERENCES.open(encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    return tuple(
        Rank(name, bias, Verdict(verdict), tuple(map(_read, cells)))
        for name, bias, verdict, *cells in rows
    )


def _read(cell: str) -> Value | None:
    """The integer, or the enclosure of its logarithm; None for an empty cell."""
    low, _, high = cell.partition(" to ")
    if high:
        return Enclosure(float(low), float(high))
    return Exact(int(cell)) if cell else None


def _written(rank: Rank) -> list[str]:
    """The line of an encoding, which `ranked_references` reads."""
    return [rank.name, rank.bias, rank.verdict, *map(_cell, rank.receptive_fields)]


def _cell(answer: Value | None) -> str:
    if isinstance(answer, Exact):
        return str(answer.tokens)
    return "" if answer is None else f"{answer.low!r} to {answer.high!r}"


def _weight(rank: Rank) -> tuple[int, float]:
    """Sorts by the last receptive field; ties and divergent series keep their order."""
    answer = rank.receptive_fields[-1]
    if isinstance(answer, Exact):
        return 0, answer.tokens
    if isinstance(answer, Enclosure):
        return 1, answer.low
    return 100, 0.0


if __name__ == "__main__":
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["encoding", "bias", "series", *PLACE_EPS])
    out.writerows(map(_written, computed_references()))
