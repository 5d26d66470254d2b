"""The ledger of claims: every checkable statement of the three papers, decided by a check.

One file a paper; `claim` says what an entry is. A check is a pure function of its data, so it can
be run on altered data and then returns the opposite verdict; the tests do that for every entry.
Experiments are read from committed results (`results`) or say how they are made.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable

from farfield.theory.results import InputError
from farfield.validation.claims.chi2023 import LEDGER as CHI
from farfield.validation.claims.claim import Check, Claim, Finding, Missing, Verdict
from farfield.validation.claims.qin2024 import LEDGER as QIN
from farfield.validation.claims.sun2023 import LEDGER as SUN

__all__ = ["Check", "Claim", "Finding", "Missing", "Verdict", "checks", "claim", "claims"]

_LEDGERS = {ledger.paper: ledger for ledger in (QIN, SUN, CHI)}
KINDS = (
    "proof", "symbolic identity", "certified number", "printed tables", "property test",
    "experiment",
)  # fmt: skip


def checks(paper: str | None = None, kind: str | None = None) -> tuple[Check, ...]:
    """The checks of the ledger, of one paper or kind if given.

    Raises:
        InputError: unknown paper or kind.
    """
    if paper is not None and paper not in _LEDGERS:
        raise InputError(f"no paper {paper!r}; accepted: {', '.join(_LEDGERS)}")
    if kind is not None and kind not in KINDS:
        raise InputError(f"no kind {kind!r}; accepted: {', '.join(KINDS)}")
    return tuple(
        c for name, ledger in _LEDGERS.items() for c in ledger
        if paper in (None, name) and kind in (None, c.kind)
    )  # fmt: skip


def claims(
    paper: str | None = None, kind: str | None = None,
    notice: Callable[[Claim], None] | None = None,
) -> list[Claim]:  # fmt: skip
    """Decide the claims of the ledger, in the order of the papers.

    Args:
        paper: `qin2024`, `sun2023` or `chi2023`; all where nothing is said.
        kind: one of `KINDS`; all where nothing is said.
        notice: called with each claim as it is decided.

    Raises:
        InputError: unknown paper or kind.

    >>> [c.verdict.value for c in claims("qin2024", "symbolic identity")][:1]
    ['corrected']
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
    close = difflib.get_close_matches(text, known, 1, 0.5)
    hint = f"did you mean {close[0]!r}?" if close else f"papers: {', '.join(_LEDGERS)}"
    raise InputError(f"no claim {text[:60]!r}; {hint}")
