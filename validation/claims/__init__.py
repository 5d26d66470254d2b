"""The ledger of claims: every checkable sentence of the three papers, decided by a check.

A claim is defined in `validation/published/<paper>.toml`; `ledger` reads it. Its quantities are
found in tables and runs, or computed by the paper's module; `judge` says what they meet. A
check is a pure function of its data, so it can be run on altered data and then returns another
verdict; the tests do that for every entry. `words` says how the papers' words are read. Experiments
are read from the committed results. Sentences without an entry are
named with the reason (`sections`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from farfield.theory.answers.answer import Result
from farfield.theory.answers.blocks import Block, Note, sentence, table
from farfield.theory.answers.errors import InputError
from farfield.theory.answers.names import nearest, one_of
from farfield.theory.answers.notation import code
from farfield.theory.answers.number import listed, plural
from farfield.validation.claims.claim import (
    RANGE,
    Check,
    Claim,
    Missing,
    Verdict,
)
from farfield.validation.claims.ledger import PAPERS, Sections, ledger

__all__ = [
    "KINDS",
    "RANGE",
    "Check",
    "Claim",
    "Decided",
    "Missing",
    "Verdict",
    "checks",
    "claim",
    "claims",
    "sections",
]

KINDS = (
    "proof",
    "symbolic identity",
    "certified number",
    "printed tables",
    "property test",
    "experiment",
)


def checks(paper: str | None = None, kind: str | None = None) -> tuple[Check, ...]:
    """The checks of the ledger, of one paper or kind if given, by paper and section.

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
        for own, _ in ledger(name).values()
        for c in own
        if kind in (None, c.entry["kind"])
    )


def sections(paper: str) -> Sections:
    """Each section of a paper, in order: its checks, and the sentences that
    have none, with the reason.

    Raises:
        InputError: unknown paper.

    >>> list(sections("sun2023"))[:2]
    ['Abstract', '1 Introduction']
    """
    one_of(paper, "paper", PAPERS)
    return ledger(paper)


@dataclass(frozen=True, repr=False)
class Decided(Result):
    """Claims with their verdicts, as `claims` decides them."""

    claims: tuple[Claim, ...]

    def blocks(self) -> Sequence[Block]:
        verdicts = [c.verdict for c in self.claims]
        counts = [f"{verdicts.count(v)} {v.replace('_', ' ')}" for v in Verdict if v in verdicts]
        rows = [(c.verdict, c.id, c.statement) for c in self.claims]
        return (
            sentence(
                "{claims} of the papers: {counts}.",
                claims=plural(len(rows), "claim"),
                counts=listed(counts) or "none like that",
            ),
            *([table(("verdict", "claim", "statement"), rows)] if rows else []),
            Note(code("`farfield claims ID` shows one with its evidence.")),
        )


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
    """Decide the claims of the ledger, by paper and section.

    Args:
        paper: `qin2024`, `sun2023` or `chi2023`; all where nothing is said.
        kind: one of `KINDS`; all where nothing is said.
        notice: called with each claim as it is decided.

    Raises:
        InputError: unknown paper or kind.

    >>> [c.id for c in claims("qin2024", "symbolic identity")][:2]
    ['qin2024.alibi-is-kerple', 'qin2024.eq7.preceding']
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
    known = {c.id: c for c in checks()}
    if identifier in known:
        return known[identifier].run()
    text = str(identifier)
    close = nearest(text, known, 0.5)
    hint = f"did you mean {close!r}?" if close else f"papers: {', '.join(PAPERS)}"
    raise InputError(f"no claim {text[:60]!r}; {hint}")
