"""What an entry of the ledger is: a statement of a paper, the data of its check, the check.

A check is a pure function of its data (formulas, printed tables, results of runs) and returns a
`Finding`; the verdict follows from the finding and is typed in nowhere.

* `confirmed`: the statement holds on the data;
* `corrected`: it fails, and the corrected statement was checked on the same data and holds;
* `refuted`: it fails, with a counterexample;
* `not_testable`: the data that would decide it are not there, with the reason.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from farfield.theory.formal.index import carrying
from farfield.theory.results import Result, plain

Data = Mapping[str, Any]


class Missing(Exception):
    """The data of a check are not there; the message says why and how to make them."""


class Verdict(enum.Enum):
    """What a check found."""

    CONFIRMED = "confirmed"
    CORRECTED = "corrected"
    REFUTED = "refuted"
    NOT_TESTABLE = "not_testable"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Finding:
    """What a check returns.

    Fields:
        holds: whether the statement holds on the data; None where they cannot decide it.
        evidence: numbers, counterexamples, derivations, by name.
        corrected: what holds instead, where the statement does not.
        corrected_holds: whether that was checked too, and holds.
        reason: why the data cannot decide.
    """

    holds: bool | None
    evidence: Mapping[str, Any]
    corrected: str = ""
    corrected_holds: bool = False
    reason: str = ""

    @property
    def verdict(self) -> Verdict:
        """The verdict that follows."""
        if self.holds is None:
            return Verdict.NOT_TESTABLE
        if self.holds:
            return Verdict.CONFIRMED
        return Verdict.CORRECTED if self.corrected_holds else Verdict.REFUTED


@dataclass(frozen=True)
class Claim(Result):
    """One entry of the ledger.

    Fields:
        id: `paper.name`.
        paper, place: where the statement stands.
        statement: the statement, in our own words.
        kind: `proof`, `symbolic identity`, `certified number`, `printed tables`, `property test`
            or `experiment`.
        verdict: what the check returned.
        label: weight of the evidence: `theorem`, `certified`, `approximate` or `measured`.
        evidence: numbers, counterexamples, derivations, by name.
        corrected: what holds instead, empty where the statement holds.
        reason: why it is not testable.
        command: what runs the check again.
        seconds: what the check took.
    """

    id: str
    paper: str
    place: str
    statement: str
    kind: str
    verdict: Verdict
    label: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    corrected: str = ""
    reason: str = ""
    command: str = ""
    seconds: float = 0.0

    @property
    def checked(self) -> tuple[str, ...]:
        """The statements, checked by a prover, that the verdict rests on."""
        return tuple(s.place for s in carrying(self.id))

    def fields(self) -> dict[str, Any]:
        return super().fields() | {"checked": list(self.checked)}

    def text(self) -> str:
        lines = [
            f"{self.id}: {self.verdict}  [{self.label}]",
            f"  {self.paper}, {self.place} ({self.kind})",
            f"  statement: {self.statement}",
        ]
        if self.corrected:
            lines.append(f"  corrected: {self.corrected}")
        if self.reason:
            lines.append(f"  reason: {self.reason}")
        lines += [f"  {name}: {_shown(value)}" for name, value in self.evidence.items()]
        if self.checked:
            lines.append(f"  checked by a prover: {', '.join(self.checked)}")
        return "\n".join([*lines, f"  again: {self.command}  ({self.seconds:.2f} s)"])


def _shown(value: Any) -> str:
    value = plain(value)
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, dict):
        return ", ".join(f"{k}: {_shown(v)}" for k, v in value.items())
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return str(value)


@dataclass(frozen=True)
class Check:
    """How one claim is decided: its place and statement, its data, and the decision."""

    id: str
    place: str
    statement: str
    kind: str
    label: str
    data: Callable[[], Data]
    decide: Callable[[Data], Finding]

    @property
    def paper(self) -> str:
        """The paper's key."""
        return self.id.partition(".")[0]

    def run(self, data: Data | None = None) -> Claim:
        """Decide the claim, on other data if given."""
        begin = time.perf_counter()
        try:
            finding = self.decide(self.data() if data is None else data)
        except Missing as why:
            finding = Finding(None, {}, reason=str(why))
        return Claim(
            self.id, self.paper, self.place, self.statement, self.kind, finding.verdict,
            self.label if finding.holds is not None else "none", finding.evidence,
            finding.corrected if finding.holds is False else "",
            finding.reason if finding.holds is None else "",
            f"farfield claims {self.id}", time.perf_counter() - begin,
        )  # fmt: skip


class Ledger(list[Check]):
    """The checks of one paper, in the order in which they are declared."""

    def __init__(self, paper: str) -> None:
        super().__init__()
        self.paper = paper

    def check(
        self, name: str, place: str, statement: str, *, kind: str, label: str,
        data: Callable[[], Data] | Data,
    ) -> Callable[[Callable[[Data], Finding]], Callable[[Data], Finding]]:  # fmt: skip
        """Declare the function below as the check of a claim."""

        def declare(decide: Callable[[Data], Finding]) -> Callable[[Data], Finding]:
            make = data if callable(data) else lambda: data
            entry = Check(f"{self.paper}.{name}", place, statement, kind, label, make, decide)
            self.append(entry)
            return decide

        return declare
