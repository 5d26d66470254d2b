"""All claims of the three papers, decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from farfield.theory.answers.answer import Result
from farfield.theory.answers.blocks import Block, Note, sentence, table
from farfield.theory.answers.errors import InputError
from farfield.theory.answers.names import closest, nearest, one_of
from farfield.theory.answers.notation import code
from farfield.theory.answers.number import listed, plural
from farfield.validation.papers import chi2023, qin2024, sun2023
from farfield.validation.papers.claim import CHECKS, KINDS, Check, Claim, Passage, Verdict

MODULES = {"qin2024": qin2024, "sun2023": sun2023, "chi2023": chi2023}
PAPERS = tuple(MODULES)
SUMMARY = (Verdict.CONFIRMED, Verdict.CORRECTED, Verdict.REFUTED)
MOST = 40
"""Claims of several papers that are listed one by one; of more, the counts by section."""


def checks(paper: str | None = None, kind: str | None = None) -> tuple[Check, ...]:
    """The claims, of one paper or kind if given, by paper and section.

    Raises:
        InputError: unknown paper or kind.
    """
    if paper is not None:
        one_of(paper, "paper", PAPERS)
    if kind is not None:
        one_of(kind, "kind", KINDS)
    return tuple(
        c
        for name in PAPERS
        if paper in (None, name)
        for found, _ in sections(name).values()
        for c in found
        if kind in (None, c.kind)
    )


def sections(paper: str) -> dict[str, tuple[tuple[Check, ...], tuple[Passage, ...]]]:
    """Each section of a paper, in order: its claims, and the passages that have none.

    Raises:
        InputError: unknown paper.

    >>> list(sections("sun2023"))[:2]
    ['Abstract', '1 Introduction']
    """
    module = MODULES[one_of(paper, "paper", PAPERS)]
    return {
        name: (
            tuple(c for c in CHECKS.values() if (c.paper, c.section) == (paper, name)),
            tuple(p for p in module.PASSAGES if p.section == name),
        )
        for name in module.SECTIONS
    }


@dataclass(frozen=True, repr=False)
class Decided(Result):
    """Claims with their verdicts, as `claims` decides them."""

    claims: tuple[Claim, ...]

    def blocks(self) -> Sequence[Block]:
        verdicts = [c.verdict for c in self.claims]
        counts = [f"{verdicts.count(v)} {v.replace('_', ' ')}" for v in Verdict if v in verdicts]
        papers = {c.paper for c in self.claims}
        rows = [(c.verdict, c.id, c.statement) for c in self.claims]
        header: tuple[str, ...] = ("verdict", "claim", "statement")
        told = "`farfield claims ID` shows one with its evidence."
        numeric: tuple[int, ...] = ()
        if len(papers) > 1 and len(rows) > MOST:
            rows, header = self._by_section(), ("section", *SUMMARY, "others")
            numeric = tuple(range(1, len(header)))
            told = (
                "`farfield claims qin2024` lists those of one paper, `--verdict refuted` those of "
                "one verdict; " + told
            )
        return (
            sentence(
                "{claims} of the papers: {counts}.",
                claims=plural(len(self.claims), "claim"),
                counts=listed(counts) or "none like that",
            ),
            *([table(header, rows, numeric=numeric)] if rows else []),
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


def verdict_of(name: str) -> Verdict:
    """The verdict called so, in any case and with any separators.

    Raises:
        InputError: there is none; the message names the nearest.

    >>> verdict_of("Not testable").value
    'not_testable'
    """
    return Verdict(one_of(nearest(name, list(Verdict), 1.0) or name, "verdict", list(Verdict)))


def claims(
    paper: str | None = None,
    kind: str | None = None,
    notice: Callable[[Claim], None] | None = None,
) -> list[Claim]:
    """Decide the claims, by paper and section.

    Args:
        paper: `qin2024`, `sun2023` or `chi2023`; all where nothing is said.
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
    'corrected'
    """
    if identifier in CHECKS:
        return CHECKS[identifier].run()
    raise InputError(
        f"no claim {str(identifier)[:60]!r}; {closest(str(identifier), [*PAPERS, *CHECKS])}"
    )
