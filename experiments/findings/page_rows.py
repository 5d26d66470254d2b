"""A finding: one row of a page, with all that a hard reader asks, counted again.

`records.toml` has a record a row: the question, the answer, how many cases or models, the interval
and of what it is, the null by name, the file, and what was decided after measuring. `measures`
counts the numbers again from the committed files.

A record without a count, an interval and a null is refused: such a sentence is not printed.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import measures

from farfield.theory.answers.answer import Label, Result
from farfield.theory.answers.blocks import Block, sentence, table
from farfield.theory.answers.errors import InputError
from farfield.theory.answers.number import plural

RECORDS = Path(__file__).with_name("records.toml")
NEEDED = ("question", "answer", "n", "interval", "null", "file", "decided", "measure", "pages")
_PLACE = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True)
class PageRow:
    """A row, with its numbers.

    Fields:
        name: of the record.
        question, answer: what is asked, and what was found.
        n: how many cases, models or rows.
        interval: what its 95 % interval is, and of what.
        null: what a rule that knows nothing reaches, by name.
        file: that the numbers are counted from.
        decided: what was decided after measuring.
        pages: that print the row.
    """

    name: str
    question: str
    answer: str
    n: str
    interval: str
    null: str
    file: str
    decided: str
    pages: tuple[str, ...]

    @property
    def row(self) -> str:
        """The row of a page, but for its end."""
        return f"| {self.question} | {self.answer} | {self.n}; {self.interval} | {self.null} |"


@dataclass(frozen=True, repr=False)
class Checked(Result):
    """Findings held against the pages that print them.

    Fields:
        findings: in the order of the records.
        missing: pairs of a page and the name of a finding whose row the page does not have.
    """

    findings: tuple[PageRow, ...]
    missing: tuple[tuple[str, str], ...]

    def blocks(self) -> Sequence[Block]:
        absent = {name for _, name in self.missing}
        rows = [
            (f.name, f.answer, f"{f.n}; {f.interval}", f.null, "no" if f.name in absent else "ok")
            for f in self.findings
        ]
        wrong = [f"{name} is not on {page} as counted" for page, name in self.missing]
        return (
            sentence(
                "{count}: {ok} as counted from the committed files{wrong}.",
                Label.MEASURED,
                count=plural(len(rows), "finding"),
                ok=len(rows) - len(absent),
                wrong="; ".join(["", *wrong]),
            ),
            table(("finding", "answer", "n, 95 %", "null", ""), rows),
        )


def records(file: Path = RECORDS) -> dict[str, dict[str, Any]]:
    """The records by name.

    Raises:
        InputError: one of them lacks what a row needs; the message names both.
    """
    every = tomllib.loads(file.read_text(encoding="utf-8"))
    for name, record in every.items():
        if lacking := [field for field in NEEDED if not record.get(field)]:
            raise InputError(
                f"finding {name!r} has no {lacking[0]}; accepted: a row with {', '.join(NEEDED)}"
            )
    return every


def findings(root: Path, every: Mapping[str, Mapping[str, Any]] | None = None) -> Iterator[PageRow]:
    """The findings with their numbers.

    Args:
        root: of the repository.
        every: records; those of this folder if None.

    Raises:
        InputError: a record that is not whole, or that asks for a number that is not counted.
    """
    counted = functools.cache(lambda measure: getattr(measures, measure)(root))
    for name, record in (records() if every is None else every).items():
        numbers = counted(record["measure"])

        def number(place: re.Match[str], name: str = name, numbers: Any = numbers) -> str:
            if place[1] not in numbers:
                raise InputError(f"finding {name!r} asks for {place[1]!r}, which is not counted")
            return str(numbers[place[1]])

        texts = {k: " ".join(_PLACE.sub(number, record[k]).split()) for k in NEEDED[:7]}
        yield PageRow(name, **texts, pages=tuple(record["pages"]))


def checked(root: Path, every: Mapping[str, Mapping[str, Any]] | None = None) -> Checked:
    """Findings held against the pages: each row must be there as it is counted.

    Args:
        root: of the repository.
        every: records; those of this folder if None.

    Raises:
        InputError: as `findings`; a page that cannot be read.
    """
    found = tuple(findings(root, every))
    texts = {page: _read(root / page) for f in found for page in f.pages}
    missing = [
        (page, f.name)
        for f in found
        for page in f.pages
        if f.row not in texts[page] or (page != "README.md" and f.decided not in texts[page])
    ]
    return Checked(found, tuple(missing))


def _read(page: Path) -> str:
    try:
        return " ".join(page.read_text(encoding="utf-8").split())
    except OSError as error:
        raise InputError(f"page {str(page)!r} cannot be read: {error.strerror}") from None
