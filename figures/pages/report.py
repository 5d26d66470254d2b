"""The page of a report: the study of the catalogue, and the ledger of the papers' claims."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from farfield.figures.document import Item, Section, write_page
from farfield.figures.pages.study import study_page
from farfield.theory.answers.blocks import note, table
from farfield.theory.answers.notation import Term, words
from farfield.theory.answers.wording import listed
from farfield.validation.claims import Claim
from farfield.validation.report import Report


def write_report(r: Report, folder: str | os.PathLike[str]) -> Path:
    """Write `index.html` and `study.json` of a report into a folder; returns the page's path.

    Raises:
        InputError: the folder cannot be written to.
    """
    place = write_page(report_page(r), folder)
    r.save(folder)
    return place


def report_page(r: Report) -> str:
    """The page of a report as HTML text."""
    ledger = Section(words("Claims of the three papers"), list(_ledger(r.claims)))
    return study_page(r.study, [ledger] if r.claims else [])


def _ledger(claims: Sequence[Claim]) -> Iterator[Item]:
    """A table a paper."""
    header = ("claim", "where", "verdict", "evidence", "statement", "what holds, or why not")
    for paper in dict.fromkeys(c.paper for c in claims):
        found = [c for c in claims if c.paper == paper]
        rows = [
            (
                Term(c.id.removeprefix(f"{paper}."), "code"),
                ", ".join(filter(None, (c.section, c.place))), c.verdict,
                None if c.label is None else Term(c.label, "label"),
                c.statement, c.corrected or c.reason,
            )
            for c in found
        ]  # fmt: skip
        verdicts = [str(c.verdict) for c in found]
        counts = [f"{verdicts.count(v)} {v.replace('_', ' ')}" for v in dict.fromkeys(verdicts)]
        yield table(header, rows, f"{paper}: {listed(counts)}")
        yield note(
            "Each verdict is computed by its check; again: {command}",
            command=Term(f"farfield claims --paper {paper}", "code"),
        )
