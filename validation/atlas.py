"""The atlas: all that farfield knows of an encoding, in one answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from farfield.theory.answers.answer import Result, Status, plain
from farfield.theory.answers.blocks import Block, sentence, table
from farfield.theory.answers.notation import StyledWord
from farfield.theory.convergence import Convergence
from farfield.theory.encodings import Encoding
from farfield.theory.encodings.listing import Listed, of_entry
from farfield.theory.formal.checked_statements import Statement, proving, statements
from farfield.validation.papers.claim import Claim, brief
from farfield.validation.papers.ledger import checks
from farfield.validation.study.prediction import Prediction, predict


@dataclass(frozen=True, repr=False)
class AtlasEntry(Result):
    """An encoding with everything that is known about it.

    Fields:
        listed: with the dialects and options of its entry in the catalogue.
        prediction: what the theory says of it.
        checked: the statements, checked by a prover, on which the verdict rests.
        claims: of the papers that speak of it, decided.
    """

    listed: Listed
    prediction: Prediction
    checked: tuple[Statement, ...]
    claims: tuple[Claim, ...]

    @property
    def status(self) -> Status:
        """Of the verdict, where an encoding without a series is as good as any other."""
        unknown = self.prediction.convergence.status is Status.UNKNOWN
        return Status.UNKNOWN if unknown else Status.EXACT

    def blocks(self) -> Sequence[Block]:
        proved = [
            sentence("{says} ({place})", "theorem", says=s.says, place=StyledWord(s.place, "code"))
            for s in self.checked
        ]
        rows = [
            (
                StyledWord(c.id, "code"),
                c.statement,
                c.verdict,
                c.because or c.corrected or c.reason or brief(c.evidence),
            )
            for c in self.claims
        ]
        header = ("claim", "read here as", "verdict", "what holds, or why not")
        claimed = [table(header, rows, "What papers say of it")] * bool(rows)
        every = (*self.listed.blocks(), *self.prediction.blocks(), *proved, *claimed)
        return tuple(x for k, x in enumerate(every) if x not in every[:k])  # the formula once

    def fields(self) -> dict[str, Any]:
        own: dict[str, Any] = {"prediction": plain(self.prediction), "claims": plain(self.claims)}
        own |= {"kind": "AtlasEntry", "checked": [s.place for s in self.checked]}
        return self.listed.to_dict() | own


def checked(name: str, convergence: Convergence) -> tuple[Statement, ...]:
    """The statements, checked by a prover, on which the verdict about an encoding rests.

    >>> from farfield.theory.convergence import check_convergence
    >>> [s.place for s in checked("alibi", check_convergence("alibi"))]
    ['catalogue.alibi']
    """
    certified = tuple(s for s in statements() if s.file == "catalogue" and s.name == name)
    theorem = convergence.windowable.theorem
    return certified or (proving(theorem) if theorem else ())


def entry(subject: Encoding) -> AtlasEntry:
    """Everything known of an encoding, of the catalogue or not.

    >>> from farfield.theory.encodings import encoding
    >>> [c.id for c in entry(encoding("type1")).claims][:2]
    ['qin2024.satisfies.type1', 'qin2024.type1.total']
    """
    found = predict(subject)
    claims = tuple(c.run() for c in checks() if subject.name in c.about)
    return AtlasEntry(of_entry(subject), found, checked(subject.name, found.convergence), claims)
