"""What measurements say: sentences of `sentences.toml`, filled in with numbers of the evidence."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2

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
        return [*found, table(self.table[0], self.table[1:])] if self.table else found


@cache
def sentences() -> Mapping[str, Any]:
    """The file, read."""
    text = files("farfield.validation.evidence").joinpath("sentences.toml").read_text("utf-8")
    return tomllib.loads(text)


@cache
def environment() -> jinja2.Environment:
    """The templates know a number `as` a format says, and names `listed`."""
    made = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    made.filters["as"] = format
    made.filters["listed"] = lambda names: ", ".join(names) or "none"
    return made


def told(
    key: str,
    n: int,
    numbers: Mapping[str, Any],
    table: tuple[tuple[str, ...], ...] = (),
    runs: tuple[str, ...] = (),
    **more: Any,
) -> Evidence:
    """Evidence whose question and sentence are templates.

    Args:
        key: of the templates in the file.
        n: what the evidence stands on.
        numbers: by name; the templates know both.
        table: its header and rows.
        runs: their names.
        more: what the templates know beside them.
    """
    question, sentence = (
        environment()
        .from_string(sentences()["told"][key][part])
        .render(n=n, numbers=numbers, **more)
        for part in ("question", "sentence")
    )
    return Evidence(question, sentence, n, numbers, table, runs)
