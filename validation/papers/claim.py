"""What a claim is: a reading of a sentence of a paper, and a function that decides it.

The decorator `claim` has the sentence as printed, our reading, what would refute that reading, and
the correction where it fails. The function returns a `Finding`. Its verdict:

* `holds_as_printed`;
* `needs_a_correction`: it fails, and the corrected statement was checked on the same data;
* `wrong`: it fails, with a counterexample;
* `depends_on_the_tolerance`: it is not the same over the range in which one can be meant;
* `not_seen_at_this_scale`: our own models, of bytes and rows of 64 tokens, do not show it, and the
  sentence is about models of 512 tokens and more;
* `cannot_be_tested`: the function raised `Missing`: what would decide it is not there.

A sentence may have several readings. Its verdict is the strictest one. Our own models count only if
nothing else judges the sentence (`of_sentence`).

There is one tolerance, from Definition 0.1 (`TOLERANCE`). A function with the argument `tolerance`
is asked at every value of `RANGE`, and has a verdict only if all of them agree.
"""

from __future__ import annotations

import enum
import inspect
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

from farfield.theory.answers.answer import Result, plain
from farfield.theory.answers.blocks import Block, Facts, note, sentence
from farfield.theory.answers.notation import as_text
from farfield.theory.formal.checked_statements import carrying
from farfield.validation.papers.trained_models import Missing, Model
from farfield.validation.papers.words import increases
from farfield.validation.results import TOLERANCE

RANGE = tuple(k / 1000 for k in range(20, 101, 5))
PROOF, IDENTITY, NUMBER = "proof", "symbolic identity", "certified number"
PRINTED, PROPERTY, EXPERIMENT = "printed tables", "property test", "experiment"
KINDS = (PROOF, IDENTITY, NUMBER, PRINTED, PROPERTY, EXPERIMENT)
"""How a claim is decided."""


class Verdict(enum.StrEnum):
    """What follows for a reading of a sentence, the strictest first."""

    WRONG = "wrong"
    CORRECTION = "needs_a_correction"
    DEPENDS = "depends_on_the_tolerance"
    HOLDS = "holds_as_printed"
    UNSEEN = "not_seen_at_this_scale"
    UNTESTED = "cannot_be_tested"

    @property
    def words(self) -> str:
        """As a reader sees it."""
        return self.value.replace("_", " ")


@dataclass(frozen=True)
class Finding:
    """What a claim's function returns.

    Fields:
        holds: whether the statement holds.
        evidence: the numbers it rests on, by name.
        instead: whether the corrected statement holds.
        n: cases that were compared; None where all are decided at once.
        models: that were read.
        because: the counterexample in a sentence, where the statement is wrong.
    """

    holds: bool
    evidence: Mapping[str, Any]
    instead: bool = False
    n: int | None = None
    models: Sequence[Model] = ()
    because: str = ""

    @property
    def verdict(self) -> Verdict:
        """What follows, whatever the models are."""
        fails = Verdict.CORRECTION if self.instead else Verdict.WRONG
        return Verdict.HOLDS if self.holds else fails


@dataclass(frozen=True, kw_only=True)
class ClaimReading:
    """A sentence of a paper, and how it is read here.

    Fields:
        id: `paper.name`.
        section, place: of the sentence.
        quote: the sentence, or its judged part.
        statement: our reading, which is judged.
        against: what would refute that.
        kind: one of `KINDS`.
        label: weight of the evidence: `theorem`, `certified`, `approximate` or `measured`; None
            where it is not testable.
        data: what the function reads.
        corrected: what holds instead, which was checked; of our own models what they show instead.
        scale: of the models.
        about: the encodings of the catalogue that it speaks of.
    """

    id: str
    section: str
    place: str
    quote: str
    statement: str
    against: str
    kind: str
    label: str | None
    data: str
    corrected: str = ""
    scale: str = ""
    about: tuple[str, ...] = ()

    @property
    def paper(self) -> str:
        """The paper's key."""
        return self.id.partition(".")[0]


@dataclass(frozen=True, kw_only=True)
class Claim(ClaimReading, Result):
    """One decided claim.

    Fields:
        verdict: what follows from the finding.
        tolerance: the tolerance and the range in which the verdict is the same; empty where it
            depends on none.
        n: cases that were compared; None where all are decided at once.
        evidence: numbers, counterexamples, derivations, by name.
        reason: why it cannot be tested, is not seen, or depends on the tolerance.
        because: the counterexample in a sentence.
        command: the command that repeats the check.
        seconds: the time of the check.
    """

    verdict: Verdict
    tolerance: str = ""
    n: int | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    because: str = ""
    command: str = ""
    seconds: float = 0.0

    @property
    def checked(self) -> tuple[str, ...]:
        """The statements, checked by a prover, that the verdict rests on."""
        return tuple(s.place for s in carrying(self.id))

    def fields(self) -> dict[str, Any]:
        return super().fields() | {"paper": self.paper, "checked": list(self.checked)}

    def blocks(self) -> Sequence[Block]:
        where = ", ".join(filter(None, (self.paper, self.section, self.place)))
        rows = {"where": f"{where} ({self.kind})"} | self.particulars()
        evidence = {name: shown(value) for name, value in self.evidence.items() if _told(value)}
        return (
            sentence("{id}: {verdict}.", self.label, id=self.id, verdict=self.verdict),
            note("“{quote}”", quote=self.quote),
            *(
                Facts(tuple((as_text(k), as_text(v)) for k, v in part.items() if v))
                for part in (rows, evidence)
                if part
            ),
            note("again: {command}", command=self.command),
        )

    def particulars(self) -> dict[str, str]:
        """What a reader who disagrees needs, by name; empty where it does not apply."""
        return {
            "read here as": self.statement,
            "verdict": self.verdict.words,
            "because": self.because,
            ("here" if self.verdict is Verdict.UNSEEN else "holds instead"): self.corrected,
            "reason": self.reason,
            "would fail by": self.against,
            "data": self.data,
            "tolerance": self.tolerance,
            "scale": self.scale,
            "n": "" if self.n is None else str(self.n),
            "checked by a prover": ", ".join(self.checked),
        }


def _told(value: Any) -> bool:
    """Whether a value of the evidence says anything: an empty list does not."""
    return not (isinstance(value, (list, tuple, dict)) and not value)


def shown(value: Any) -> str:
    """A value of the evidence as text."""
    value = plain(value)
    if isinstance(value, float):
        return f"{value:.6g}"
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
    parts = []
    for name, value in plain(evidence).items():
        if not _told(value):
            continue
        if isinstance(value, dict):
            sizes = [abs(v) if isinstance(v, (int, float)) else 0 for v in value.values()]
            order = sorted(zip(sizes, value.items(), strict=True), key=lambda x: -x[0])
            value = [f"{k}: {v:.3g}" if size else f"{k}: {shown(v)}" for size, (k, v) in order]
        if isinstance(value, list):
            more = f" and {len(value) - most} more" * (len(value) > most)
            value = ", ".join(map(shown, value[:most])) + more
        parts.append(f"{name}: {shown(value)}")
    return "; ".join(parts)


@dataclass(frozen=True, kw_only=True)
class Check(ClaimReading):
    """A claim that can be decided.

    Fields:
        exhibits: figures and tables of the paper that it speaks of.
        decide: the function that decides it.
    """

    exhibits: tuple[str, ...]
    decide: Callable[..., Finding]

    def verdict(self, finding: Finding) -> Verdict:
        """What follows from a finding: our own models do not refute a sentence about larger ones.

        A sentence that fails at every scale of ours is not seen here, and no more.
        """
        fails = finding.verdict in (Verdict.CORRECTION, Verdict.WRONG)
        return Verdict.UNSEEN if self.kind == EXPERIMENT and fails else finding.verdict

    def run(self) -> Claim:
        """Decide the claim."""
        begin = time.perf_counter()
        finding, verdict, reason, tolerance = self._decided()
        scale, evidence = self.scale, dict(finding.evidence)
        if finding.models:
            scale = "; ".join(sorted({m.scale for m in finding.models}))
            evidence["seeds"] = {m.name: m.lines["seed"].n_unique() for m in finding.models}
            read = {f"experiment {m.run['experiment']}" for m in finding.models}
            evidence["results"] = sorted(read)
        if verdict is Verdict.UNSEEN:
            reason = f"our models are small ({scale} of text), those of the paper are not"
        instead = finding.instead and verdict in (Verdict.CORRECTION, Verdict.UNSEEN)
        decided: dict[str, Any] = {
            "verdict": verdict,
            "label": None if verdict is Verdict.UNTESTED else self.label,
            "tolerance": tolerance,
            "scale": scale,
            "n": finding.n or len(finding.models) or None,
            "evidence": evidence,
            "corrected": self.corrected if instead else "",
            "reason": reason,
            "because": finding.because if verdict is Verdict.WRONG else "",
            "command": f"farfield claims {self.id}",
            "seconds": time.perf_counter() - begin,
        }
        return Claim(**{f.name: getattr(self, f.name) for f in fields(ClaimReading)} | decided)

    def _decided(self) -> tuple[Finding, Verdict, str, str]:
        """The finding at the tolerance, the verdict, why it is none of those that a finding has,
        and the tolerances of each verdict."""
        try:
            if "tolerance" not in inspect.signature(self.decide).parameters:
                finding = self.decide()
                return finding, self.verdict(finding), "", ""
            findings = {t: self.decide(tolerance=t) for t in RANGE}
        except Missing as why:
            return Finding(False, why.evidence), Verdict.UNTESTED, str(why), ""
        finding, over = findings[TOLERANCE], _over(findings)
        if len({f.verdict for f in findings.values()}) > 1:
            return finding, Verdict.DEPENDS, "it depends on the tolerance", over
        return finding, self.verdict(finding), "", over


def rise_of(tested: Sequence[Model], holds: Callable[[float], bool]) -> Finding:
    """Whether the largest increase of the perplexity of every model meets a condition."""
    rise = {f"{m.name}, trained on {m.trained}": m.increase for m in tested}
    against = [name for name, r in rise.items() if not holds(r)]
    return Finding(not against, {"largest increase": rise, "against": against}, models=tested)


def rise_in_print(
    columns: Mapping[str, Mapping[int, float]], trained: int, holds: Callable[[float], bool]
) -> Finding:
    """Whether the largest increase of every printed column meets a condition."""
    rise = increases(columns, trained)
    against = [name for name, r in rise.items() if not holds(r)]
    return Finding(not against, {"largest increase": rise, "against": against}, n=len(rise))


CHECKS: dict[str, Check] = {}
"""The claims of the papers whose modules were imported, by id."""


def _over(findings: Mapping[float, Finding]) -> str:
    """The tolerance, and the verdicts over its range."""
    parts = []
    for verdict, group in itertools.groupby(findings, lambda t: findings[t].verdict):
        values = list(group)
        ends = f"{values[0]:.1%} to {values[-1]:.1%}" if len(values) > 1 else f"{values[0]:.1%}"
        parts.append(f"{verdict.words} at {ends}".replace(".0%", "%"))
    return f"{TOLERANCE:.0%}; {', '.join(parts)}"


def claim(
    name: str,
    section: str,
    /,
    *,
    quote: str,
    says: str,
    refuted_by: str,
    kind: str,
    label: str,
    data: str,
    place: str = "",
    corrected: str = "",
    scale: str = "",
    about: str = "",
    exhibits: str = "",
    **values: Any,
) -> Callable[[Callable[..., Finding]], Callable[..., Finding]]:
    """Make a function the check of a claim; its paper is the module that defines it.

    Args:
        name: of the claim within its paper.
        section: where the sentence stands.
        place: where in the section.
        quote: the sentence, or its judged part.
        says: the judged statement in our words.
        refuted_by: what would refute it.
        kind: one of `KINDS`.
        label: weight of the evidence.
        data: what the function reads.
        corrected: the correction where the statement fails.
        scale: of the models, where the function does not name any.
        about: encodings of the catalogue that the claim speaks of, by name.
        exhibits: figures and tables of the paper that it speaks of, `fig2`, `table3`.
        values: arguments of the function, where several claims share it.
    """

    def register(decide: Callable[..., Finding]) -> Callable[..., Finding]:
        identifier = f"{decide.__module__.rpartition('.')[2]}.{name}"
        bound = partial(decide, **values) if values else decide
        CHECKS[identifier] = Check(
            id=identifier,
            section=section,
            place=place,
            quote=quote,
            statement=says,
            against=refuted_by,
            kind=kind,
            label=label,
            data=data,
            corrected=corrected,
            scale=scale,
            about=tuple(about.split()),
            exhibits=tuple(exhibits.split()),
            decide=bound,
        )
        return decide

    return register


def of_sentence(readings: Sequence[Claim]) -> Claim:
    """The reading of a sentence that judges it: the strictest that is decided, where our own models
    count only if nothing else judges it.

    Args:
        readings: of one sentence, decided.
    """
    decided = [c for c in readings if c.verdict is not Verdict.UNTESTED]
    by_the_paper = [c for c in decided if c.kind != EXPERIMENT]
    return min(by_the_paper or decided or readings, key=lambda c: list(Verdict).index(c.verdict))
