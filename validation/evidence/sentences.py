"""What measurements say: a sentence that was computed from them, with its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from farfield.theory.answers.answer import Label, Result
from farfield.theory.answers.blocks import Block, Sentence, note, table


@dataclass(frozen=True, repr=False)
class Evidence(Result):
    """A sentence computed from measurements.

    Fields:
        question: that it answers, in words.
        sentence: the answer, with its numbers.
        n: encodings, heads or rows it rests on.
        numbers: by name; intervals are pairs.
        table: its header and rows, where a table says it better; empty otherwise.
        runs: names of the runs, label with `+ BCA` where it applies, training length and seeds.
        label: `measured`.
    """

    question: str
    sentence: str
    n: int
    numbers: Mapping[str, Any] = field(default_factory=dict)
    table: tuple[tuple[str, ...], ...] = ()
    runs: tuple[str, ...] = ()
    label: Label = Label.MEASURED

    def blocks(self) -> Sequence[Block]:
        found: list[Block] = [Sentence((self.sentence,), self.label)]
        found.append(note("{question} n = {n}.", question=self.question, n=self.n))
        if self.table:
            found.append(table(self.table[0], self.table[1:]))
        return found
