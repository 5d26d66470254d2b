"""All claims of the three papers, decided: counted by verdict, listed by section."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from farfield.theory.answers.answer import Result
from farfield.theory.answers.blocks import Block, Note, note, sentence, table
from farfield.theory.answers.errors import InputError
from farfield.theory.answers.names import closest, nearest, one_of
from farfield.theory.answers.notation import code, listed
from farfield.theory.answers.number import plural
from farfield.validation.papers import chi2023, qin2024, sun2023
from farfield.validation.papers.claim import (
    CHECKS,
    EXPERIMENT,
    KINDS,
    Check,
    Claim,
    Verdict,
    of_sentence,
)

MODULES = {"qin2024": qin2024, "sun2023": sun2023, "chi2023": chi2023}
PAPERS = tuple(MODULES)
SUMMARY = (Verdict.HOLDS, Verdict.CORRECTION, Verdict.WRONG)
PLAIN = Path(__file__).with_name("plain.csv")
MOST = 40
"""Claims of several papers that are listed one by one; of more, the counts by section."""


def checks(paper: str | None = None, kind: str | None = None) -> tuple[Check, ...]:
    """The claims, of one paper or kind if given, by paper and section; or one, by its id.

    Raises:
        InputError: unknown paper or kind.
    """
    if paper is not None and paper not in [*CHECKS]:
        one_of(paper, "paper", PAPERS)
    if kind is not None:
        one_of(kind, "kind", KINDS)
    return tuple(
        c
        for name in PAPERS
        for found in sections(name).values()
        for c in found
        if paper in (None, name, c.id) and kind in (None, c.kind)
    )


def sections(paper: str) -> dict[str, tuple[Check, ...]]:
    """The claims of each section of a paper, in order.

    Raises:
        InputError: unknown paper.

    >>> list(sections("sun2023"))[:2]
    ['Abstract', '1 Introduction']
    """
    module = MODULES[one_of(paper, "paper", PAPERS)]
    return {
        name: tuple(c for c in CHECKS.values() if (c.paper, c.section) == (paper, name))
        for name in module.SECTIONS
    }


@cache
def plain_sentences() -> tuple[tuple[str, str], ...]:
    """Paper and quote of the sentences that plainly hold: they were checked once, and the check of
    what no reader doubts is gone."""
    with PLAIN.open(encoding="utf-8", newline="") as file:
        return tuple((row["paper"], row["quote"]) for row in csv.DictReader(file))


def by_sentence(claims: Sequence[Claim]) -> dict[tuple[str, str], list[Claim]]:
    """Claims by paper and quote: one sentence may have several readings."""
    found: dict[tuple[str, str], list[Claim]] = {}
    for c in claims:
        found.setdefault((c.paper, c.quote), []).append(c)
    return found


def counted(claims: Sequence[Claim], plain: int = 0) -> dict[Verdict, int]:
    """How many sentences have each verdict, each counted once.

    Args:
        claims: decided.
        plain: sentences that hold and have no check.
    """
    verdicts = Counter(of_sentence(readings).verdict for readings in by_sentence(claims).values())
    verdicts[Verdict.HOLDS] += plain
    return {v: verdicts[v] for v in Verdict if verdicts[v]}


@dataclass(frozen=True, repr=False)
class Decided(Result):
    """Claims with their verdicts, as `claims` decides them."""

    claims: tuple[Claim, ...]

    def blocks(self) -> Sequence[Block]:
        sentences = by_sentence(self.claims)
        papers = {c.paper for c in self.claims}
        rows = [(c.id, c.statement, c.verdict) for c in self.claims]
        header: tuple[str, ...] = ("claim", "read here as", "verdict")
        told = "`farfield claims ID` shows one with the words of the paper and the evidence."
        numeric: tuple[int, ...] = ()
        if len(papers) > 1 and len(rows) > MOST:
            rows, header = self._by_section(), ("section", *(v.words for v in SUMMARY), "others")
            numeric = tuple(range(1, len(header)))
            told = (
                "`farfield claims qin2024` lists those of one paper, `--verdict wrong` those of "
                "one verdict; " + told
            )
        plain = len(plain_sentences()) if len(self.claims) == len(CHECKS) else 0
        return (
            sentence(
                "{claims} of {sentences} of the papers{more}; by sentence: {counts}.",
                claims=plural(len(self.claims), "claim"),
                sentences=plural(len(sentences), "sentence"),
                more=f", and {plain} more that plainly hold and have no check" * bool(plain),
                counts=said(counted(self.claims, plain)) or "none like that",
            ),
            *([table(header, rows, numeric=numeric)] if rows else []),
            *([note("{own}", own=own)] if (own := own_models(self.claims)) else []),
            Note(code(told)),
        )

    def _by_section(self) -> list[tuple[Any, ...]]:
        """How many claims of each section have each verdict."""
        counts = {(c.paper, c.section): Counter[str]() for c in self.claims}
        for c in self.claims:
            counts[c.paper, c.section][c.verdict] += 1
        return [
            (
                f"{paper}, {section}",
                *(found[v] or "" for v in SUMMARY),
                found.total() - sum(found[v] for v in SUMMARY) or "",
            )
            for (paper, section), found in counts.items()
        ]


def said(counts: Mapping[Verdict, int]) -> str:
    """Counts in words.

    >>> said({Verdict.WRONG: 2, Verdict.HOLDS: 1})
    'wrong 2, holds as printed 1'
    """
    return listed([f"{verdict.words} {count}" for verdict, count in counts.items()])


def own_models(claims: Sequence[Claim]) -> str:
    """How many sentences our own models alone judge; nothing where there is none."""
    alone = [each for each in by_sentence(claims).values() if of_sentence(each).kind == EXPERIMENT]
    hold = sum(of_sentence(each).verdict is Verdict.HOLDS for each in alone)
    if not alone:
        return ""
    return (
        f"{plural(len(alone), 'sentence')} rest on our own models alone, of bytes and rows of 64 "
        f"to 256 tokens; {hold} of them hold there."
    )


def verdict_of(name: str) -> Verdict:
    """The verdict called so, in any case and with any separators.

    Raises:
        InputError: there is none; the message names the nearest.

    >>> verdict_of("Needs a correction").value
    'needs_a_correction'
    """
    return Verdict(one_of(nearest(name, list(Verdict), 1.0) or name, "verdict", list(Verdict)))


def claims(
    paper: str | None = None,
    kind: str | None = None,
    notice: Callable[[Claim], None] | None = None,
) -> list[Claim]:
    """Decide the claims, by paper and section.

    Args:
        paper: `qin2024`, `sun2023` or `chi2023`, or the id of one claim; all where nothing is said.
        kind: one of `KINDS`; all where nothing is said.
        notice: called with each claim as it is decided.

    Raises:
        InputError: unknown paper or kind.

    >>> [c.id for c in claims("qin2024", "symbolic identity")][:2]
    ['qin2024.eq7.preceding', 'qin2024.eq7-eq8']
    """
    decided = []
    for check in checks(paper, kind):
        decided.append(check.run())
        if notice is not None:
            notice(decided[-1])
    return decided


def claim(identifier: str) -> Claim:
    """Decide one claim.

    Raises:
        InputError: unknown ids, with the nearest known one.

    >>> claim("qin2024.eq7-eq8").verdict.value
    'needs_a_correction'
    """
    if identifier in CHECKS:
        return CHECKS[identifier].run()
    raise InputError(
        f"no claim {str(identifier)[:60]!r}; {closest(str(identifier), [*PAPERS, *CHECKS])}"
    )
