"""What an entry of the ledger is: a sentence of a paper, the data of its check, the check.

A check is a pure function of its data (formulas, printed tables, results of runs). It returns a
finding, whose verdict is typed in nowhere.

* `confirmed`: the statement holds on the data;
* `corrected`: it fails, and the corrected statement was checked on the same data and holds;
* `refuted`: it fails, with a counterexample;
* `not_robust`: it depends on the tolerance, within the range in which one can be meant;
* `not_testable`: the data that would decide it are not there, with the reason.

There is one tolerance, from Definition 0.1 (`TOLERANCE`). A check that uses it is decided at
every value of `RANGE`, from 2 % to 10 %; it has a verdict only if all of them agree.
"""

from __future__ import annotations

import enum
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from farfield.theory.answers.answer import Result, plain
from farfield.theory.answers.blocks import Block, Facts, note, sentence
from farfield.theory.answers.notation import as_text
from farfield.theory.formal.checked_statements import carrying
from farfield.validation.extrapolation import TOLERANCE

Data = Mapping[str, Any]
Quantities = dict[str, Any]
"""By name; what begins with `_` is judged and not shown."""
Finding = Mapping[str, Any]
"""What a check returns, as fields of a `Claim`: its `verdict` and `evidence`, and where they apply
`reason`, `n` and `scale`."""
RANGE = tuple(k / 1000 for k in range(20, 101, 5))
EXACT = "none: the statement is about formulas"


class Missing(Exception):
    """The data of a check are not there; the message says why and how to make them."""


class Verdict(enum.StrEnum):
    """What a check found."""

    CONFIRMED = "confirmed"
    CORRECTED = "corrected"
    REFUTED = "refuted"
    NOT_ROBUST = "not_robust"
    NOT_TESTABLE = "not_testable"


@dataclass(frozen=True)
class Claim(Result):
    """One entry of the ledger.

    Fields:
        id: `paper.name`.
        paper, section, place: of the sentence.
        quote: the sentence, or its judged part.
        statement: the judged statement, in our own words.
        against: what would have refuted it.
        kind: `proof`, `symbolic identity`, `certified number`, `printed tables`, `property test`
            or `experiment`.
        verdict: what the check returned.
        label: weight of the evidence: `theorem`, `certified`, `approximate` or `measured`; None
            where it is not testable.
        data: the inputs of the check.
        tolerance: the tolerance and the range in which the verdict is the same; empty where it
            depends on none.
        scale: of the models.
        n: cases that were compared; None where all are decided at once.
        evidence: numbers, counterexamples, derivations, by name.
        corrected: what holds instead and was checked, empty unless the verdict is `corrected`.
        reason: why it is not testable, or not robust.
        command: the command that repeats the check.
        seconds: the time of the check.
    """

    id: str
    paper: str
    section: str
    place: str
    quote: str
    statement: str
    against: str
    kind: str
    verdict: Verdict
    label: str | None
    data: str
    tolerance: str = ""
    scale: str = ""
    n: int | None = None
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

    def blocks(self) -> Sequence[Block]:
        where = ", ".join(filter(None, (self.paper, self.section, self.place)))
        rows = {"where": f"{where} ({self.kind})"} | self.particulars()
        evidence = {name: shown(value) for name, value in self.evidence.items()}
        return (
            sentence("{id}: {verdict}.", self.label, id=self.id, verdict=self.verdict),
            note("“{quote}”", quote=self.quote),
            *(
                Facts(tuple((as_text(k), as_text(v)) for k, v in part.items() if v))
                for part in (rows, evidence)
                if part
            ),
            note("again: {command} ({time} s)", command=self.command, time=f"{self.seconds:.2f}"),
        )

    def particulars(self) -> dict[str, str]:
        """What a reader who disagrees needs, by name; empty where it does not apply."""
        return {
            "statement": self.statement,
            "refuted if": self.against,
            "holds instead": self.corrected,
            "reason": self.reason,
            "data": self.data,
            "tolerance": self.tolerance,
            "scale": self.scale,
            "n": "" if self.n is None else str(self.n),
            "checked by a prover": ", ".join(self.checked),
        }


def shown(value: Any) -> str:
    """A value of the evidence as text."""
    value = plain(value)
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, dict):
        return ", ".join(f"{k}: {shown(v)}" for k, v in value.items())
    if isinstance(value, list):
        return "[" + ", ".join(map(shown, value)) + "]"
    return str(value)


def brief(evidence: Mapping[str, Any], most: int = 3) -> str:
    """The evidence on one line: of many cases the first, the largest numbers before smaller ones.

    >>> brief({"rise": {"a": 0.1, "b": 3.0, "c": 2.0, "d": 0.2}, "kept": 10})
    'rise: b: 3, c: 2, d: 0.2 and 1 more; kept: 10'
    """
    said = []
    for name, value in plain(evidence).items():
        if isinstance(value, dict):
            sizes = [abs(v) if isinstance(v, (int, float)) else 0 for v in value.values()]
            order = sorted(zip(sizes, value.items(), strict=True), key=lambda x: -x[0])
            value = [f"{k}: {v:.3g}" if size else f"{k}: {shown(v)}" for size, (k, v) in order]
        if isinstance(value, list):
            more = f" and {len(value) - most} more" * (len(value) > most)
            value = ", ".join(map(shown, value[:most])) + more
        said.append(f"{name}: {shown(value)}")
    return "; ".join(said)


@dataclass(frozen=True)
class Check:
    """How one claim is decided.

    Fields:
        id: of the claim.
        entry: what its paper's file says of it.
        data: what it reads.
        decide: the finding on some data.
    """

    id: str
    entry: Mapping[str, Any]
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
            given = dict(self.data() if data is None else data)
            values = RANGE if self.entry.get("tolerant") else (TOLERANCE,)
            found: dict[float, Finding] = {
                value: self.decide({**given, "tolerance": value}) for value in values
            }
        except Missing as why:
            found = {TOLERANCE: {"verdict": Verdict.NOT_TESTABLE, "reason": str(why)}}
        finding = {**found[TOLERANCE]}
        if len({f["verdict"] for f in found.values()}) > 1:
            finding |= {"verdict": Verdict.NOT_ROBUST, "reason": "it depends on the tolerance"}
        own = ("section", "place", "quote", "statement", "against", "kind")
        return Claim(
            **{"id": self.id, "paper": self.paper} | {k: self.entry.get(k, "") for k in own},
            label=None if finding["verdict"] is Verdict.NOT_TESTABLE else self.entry["label"],
            data=self.entry["source"],
            tolerance="" if len(found) == 1 else _over(found),
            corrected=self.entry["corrected"] if finding["verdict"] is Verdict.CORRECTED else "",
            command=f"farfield claims {self.id}",
            seconds=time.perf_counter() - begin,
            **finding | {"scale": finding.get("scale") or self.entry["scale"]},
        )


def _over(found: Mapping[float, Finding]) -> str:
    """The tolerance and the verdicts over its range."""
    parts = []
    for verdict, group in itertools.groupby(found, lambda t: found[t]["verdict"]):
        values = list(group)
        ends = f"{values[0]:.1%} to {values[-1]:.1%}" if len(values) > 1 else f"{values[0]:.1%}"
        parts.append(f"{verdict} at {ends}".replace(".0%", "%"))
    return f"{TOLERANCE:.0%}; {', '.join(parts)}"
