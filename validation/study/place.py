"""The place of an encoding among those of the catalogue: by receptive field, and by tail."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sympy import Expr

from farfield.numerics.comparison import Comparison, compare_tails
from farfield.numerics.counts import Enclosure, Exact
from farfield.numerics.receptive_field import (
    ReceptiveField,
    log_size,
    theoretical_receptive_field,
)
from farfield.theory.algebra.budget import unhurried
from farfield.theory.answers.answer import InputError, Label, Result
from farfield.theory.answers.blocks import Block, note, sentence, table
from farfield.theory.answers.notation import StyledWord, shortened
from farfield.theory.answers.number import at_most, listed
from farfield.theory.convergence import Verdict
from farfield.theory.encodings import CATALOGUE, Encoding, encoding
from farfield.theory.encodings.entry import Example
from farfield.validation.study.prediction import Prediction
from farfield.validation.table_cells import field_text

PLACE_EPS = ("1/10", "1/1000", "1e-6", "1e-12")


@dataclass(frozen=True)
class Rank:
    """One line of a `Place`: an encoding, its verdict, its TRF at each of `PLACE_EPS`."""

    name: str
    bias: str
    verdict: Verdict
    receptive_fields: tuple[ReceptiveField, ...]
    asked: bool = False


@dataclass(frozen=True)
class Relation:
    """The tail of an encoding that was asked about, against a reference head.

    Fields:
        asked, reference: their names.
        lighter: the name of the one with the lighter tail, None where there is none.
        equal: whether that is since the tails are equal; it is not known otherwise.
        crossover: its receptive field is the smaller one for every eps up to this one.
        reason: why something is not known.
    """

    asked: str
    reference: str
    lighter: str | None
    crossover: float | None
    reason: str = ""
    equal: bool = False

    def words(self) -> str:
        """The relation seen from the encoding that was asked about."""
        if self.lighter is None:
            return "equal" if self.equal else "not known"
        kind = "lighter" if self.lighter == self.asked else "heavier"
        if self.crossover is None:
            return f"{kind} for every small eps"
        if self.crossover == 1:
            return f"{kind} at every eps"
        return f"{kind} for eps up to {at_most(self.crossover)}"


@dataclass(frozen=True, repr=False)
class Place(Result):
    """Encodings among reference heads of the catalogue, those that need the fewest keys first.

    The order is by TRF(eps) at the last of `PLACE_EPS`, certified; encodings whose series
    diverges stand at the end, in the order of the catalogue. `relations` compares the tails of
    those asked about with each reference that converges, for all eps at once.
    """

    ranks: tuple[Rank, ...]
    relations: tuple[Relation, ...] = ()

    def blocks(self) -> Sequence[Block]:
        asked = [k for k, r in enumerate(self.ranks, 1) if r.asked]
        places = [f"{self.ranks[k - 1].name} is number {k}" for k in asked]
        first = sentence(
            "{places} of {count}, ranked by how few tokens hold all but {eps} of the weight.",
            Label.CERTIFIED,
            count=f"{len(self.ranks)} biases",
            eps=PLACE_EPS[-1],
            places=listed(places),
        )
        own = list(dict.fromkeys(r.asked for r in self.relations))
        said = {(r.asked, r.reference): r.words() for r in self.relations}
        rows = [
            (
                StyledWord(r.name, "strong") if r.asked else r.name,
                r.bias if len(r.bias) < 60 else "…",
                r.verdict,
                *map(field_text, r.receptive_fields),
                *(said.get((a, r.name), "") for a in own),
            )
            for r in self.ranks
        ]
        fields = [f"TRF({eps})" for eps in PLACE_EPS]
        tails = [f"tail of {shortened(name, 30)}" for name in own]
        return (
            first,
            table(
                ("encoding", "bias", "series", *fields, *tails),
                rows,
                numeric=tuple(range(3, 3 + len(fields))),
            ),
            note(
                "One reference head of each additive encoding; at a larger eps the order is often "
                "another. Series that diverge come last. The last columns compare the tail of the "
                "widest head with the line's: lighter or heavier, and up to which eps the "
                "receptive fields have the same order. The integers are exact, certified."
            ),
        )


@functools.cache
def references() -> tuple[tuple[str, str, Encoding], ...]:
    """The reference heads of the catalogue: title, name of the entry, encoding of the head."""
    with unhurried():
        return tuple(
            (example.title, entry.name, encoding(_head(entry.name, example)))
            for entry in CATALOGUE.values()
            for example in entry.examples
        )


def _head(name: str, example: Example) -> Expr:
    return encoding(name, **example.options).head(example.head)


def place(predictions: Sequence[Prediction]) -> Place | None:
    """Where encodings stand among the references; None if none of them has receptive fields.

    >>> from farfield.validation.study.prediction import predict
    >>> [r.name for r in place([predict(encoding("-n/3"))]).ranks][:3]
    ['ALiBi, slope 1/2', 'window of 64', '-n/3']
    """
    subjects = {p.name: p.encoding for p in predictions if p.row_fields}
    if not subjects:
        return None
    ranks = [_rank(name, subject, asked=True) for name, subject in subjects.items()]
    ranks += [_rank(title, subject) for title, _, subject in references()]
    ranks.sort(key=_weight)
    return Place(tuple(ranks), tuple(_relations(subjects, ranks)))


def _rank(name: str, subject: Encoding, *, asked: bool = False) -> Rank:
    fields = theoretical_receptive_field(subject, PLACE_EPS)
    verdict = fields[0].verdict
    assert verdict is not None  # of the whole series, not of a row
    return Rank(name, subject.formula_text(), verdict, fields, asked)


def _relations(subjects: Mapping[str, Encoding], ranks: Sequence[Rank]) -> Iterator[Relation]:
    """The tail of the widest head of each encoding that was asked about, against the references."""
    convergent = [r for r in ranks if r.verdict is Verdict.CONVERGES]
    heads = {label: subject.head(1) for label, _, subject in references()}
    for own in (r for r in convergent if r.asked):
        last = own.receptive_fields[-1]
        reach = [log_size(f) for f in last.heads]
        bias = subjects[own.name].head(reach.index(max(reach)) + 1 if reach else 1)
        for other in (r for r in convergent if not r.asked):
            try:
                found = compare_tails(bias, heads[other.name])
            except InputError as error:
                yield Relation(own.name, other.name, None, None, str(error))
                continue
            assert isinstance(found, Comparison)  # of two single heads
            lighter = {"a": own.name, "b": other.name}.get(found.lighter or "")
            why = "" if found.reason is None else found.reason.sentence
            equal = found.lighter == "neither"
            yield Relation(own.name, other.name, lighter, found.crossover, why, equal)


def _weight(rank: Rank) -> tuple[int, float]:
    """Sorts by the last receptive field; ties and divergent series keep their order."""
    answer = rank.receptive_fields[-1].answer
    if isinstance(answer, Exact):
        return 0, answer.tokens
    if isinstance(answer, Enclosure):
        return 1, answer.low
    return 100, 0.0
