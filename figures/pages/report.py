"""The page of a report: the study of the catalogue, and the ledger of the papers' claims."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from farfield.figures.document import Fold, Heading, Item, Section, write_page
from farfield.figures.pages.study import study_page
from farfield.theory.answers.blocks import note, table
from farfield.theory.answers.notation import Term, words
from farfield.theory.answers.wording import listed, plural
from farfield.validation.claims import Claim, Verdict
from farfield.validation.claims.claim import shown
from farfield.validation.report import Report

ORDER = (
    Verdict.REFUTED,
    Verdict.NOT_ROBUST,
    Verdict.CORRECTED,
    Verdict.CONFIRMED,
    Verdict.NOT_TESTABLE,
)
"""The verdicts, what a reader looks for first."""


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
    """What was refuted, paper by paper; the other verdicts folded, a table each."""
    header = ("claim", "where", "evidence", "statement", "what holds, or why not")
    for paper in dict.fromkeys(c.paper for c in claims):
        own = [c for c in claims if c.paper == paper]
        verdicts = [v for v in ORDER if any(c.verdict is v for c in own)]
        counts = [f"{sum(c.verdict is v for c in own)} {_word(v)}" for v in verdicts]
        yield Heading(words("{paper}: {counts}", paper=paper, counts=listed(counts)))
        for verdict in verdicts:
            rows = [
                (
                    Term(c.id.removeprefix(f"{paper}."), "code"),
                    ", ".join(filter(None, (c.section, c.place))),
                    None if c.label is None else Term(c.label, "label"),
                    c.statement,
                    c.corrected or c.reason or shown(c.evidence),
                )
                for c in own
                if c.verdict is verdict
            ]
            named = (Term(_word(verdict), "verdict"), f": {plural(len(rows), 'claim')}")
            found = table(header, rows, _word(verdict))
            yield found if verdict is Verdict.REFUTED else Fold(named, [found])
        yield note(
            "Each verdict is computed by its check; again: {command}",
            command=Term(f"farfield claims --paper {paper}", "code"),
        )


def _word(verdict: Verdict) -> str:
    return verdict.replace("_", " ")
