"""What measurements say: sentences of `sentences.toml`, filled in with numbers of the evidence."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2

from farfield.theory.answers.answer import Label, Result
from farfield.theory.answers.blocks import Block, Sentence, note, table
from farfield.theory.answers.number import plural


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
def template(text: str) -> jinja2.Template:
    """A template, which knows a number `as` a format says, numbers `each` so, a `plural`, and
    names `listed`.

    >>> template("{{ x|as('.1%') }}, {{ none|as('.1f', 'none') }}").render(x=0.026)
    '2.6%, none'
    >>> template("{{ x|each('.2f') }} of {{ y|listed }}").render(x=[0.5, None], y=[])
    '0.50, none of none'
    """
    return _environment().from_string(text)


@cache
def _environment() -> jinja2.Environment:
    def formatted(value: Any, form: str, missing: str = "none") -> str:
        return missing if value is None else format(value, form)

    made = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    made.filters["as"] = formatted
    made.filters["each"] = lambda values, form: ", ".join(formatted(v, form) for v in values)
    made.filters["plural"] = lambda count, noun: plural(int(count), noun)
    made.filters["listed"] = lambda names: ", ".join(names) or "none"
    return made


def told(
    key: str,
    behind: Sequence[Any],
    numbers: Mapping[str, Any],
    rows: Iterable[Any] = (),
    **more: Any,
) -> Evidence:
    """Evidence whose question, sentence and cells are templates.

    Args:
        key: of the templates in the file.
        behind: the models, or the names of the runs, that the evidence stands on.
        numbers: by name; the templates know them.
        rows: of the table, known to the templates; that of a cell knows its `row`.
        more: what the templates know beside them; `n` where it does not count what is behind.
    """
    texts, runs = sentences()["told"][key], dict.fromkeys(getattr(b, "runs", b) for b in behind)
    rows = list(rows)
    known = {"n": len(behind), "numbers": numbers, "rows": rows, **more}
    cells = {head: template(text) for head, text in texts.get("table", {}).items()}
    lines = (tuple(cell.render(known, row=row) for cell in cells.values()) for row in rows)
    return Evidence(
        template(texts["question"]).render(known),
        template(texts["sentence"]).render(known),
        known["n"],
        numbers,
        (tuple(cells), *lines) if cells else (),
        tuple(runs),
    )
