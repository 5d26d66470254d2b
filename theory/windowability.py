"""Is a window ever enough? The verdict on windows, beside that on the exp-series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import sympy
from sympy import Basic, S

from farfield.theory.answers.answer import Answer, Code, Label, Reason, Seen, Status
from farfield.theory.answers.blocks import Block, facts, sentence
from farfield.theory.answers.notation import shortened
from farfield.theory.mechanisms import MECHANISMS, Mechanism


@dataclass(frozen=True, repr=False)
class Windowable(Answer):
    """Whether the worst error of a window tends to 0 as the window grows.

    Fields:
        value: True or False where that is proved; None under a condition, or where a bound is
            missing.
        condition: exactly where it is windowable, if that depends on parameters.
        theorem: the name of the theorem that decides (`farfield papers NAME`).
        hypotheses: under which it does.
    """

    value: bool | None
    condition: Basic | None = None
    theorem: str = ""
    hypotheses: tuple[str, ...] = ()

    def blocks(self) -> Sequence[Block]:
        template = {
            True: "a long enough window matches full attention to any accuracy you ask for.",
            False: "no fixed window is ever enough: outside it the mass tends to 1 as rows grow.",
            None: "whether a window is ever enough is not known: {why}.",
        }[self.value]
        if self.condition is not None:
            template = "a long enough window is enough exactly if {condition}."
        return (
            sentence(
                "{subject}: " + template,
                self.label,
                subject=shortened(self.subject, 80),
                condition=self.condition,
                why=str(self.reason),
            ),
            facts(theorem=self.theorem, where="; ".join(self.hypotheses)),
        )


def of_series(converges: object, subject: str, reason: Reason | None = None) -> Windowable:
    """For an additive bias: windowable exactly where the exp-series converges.

    Args:
        converges: True, False, the condition, or None where it is not known.
        subject: what it is about.
        reason: why it is not known.
    """
    truth = sympy.sympify(converges)
    value = {S.true: True, S.false: False}.get(truth)
    condition = truth if value is None else None
    why = (
        (reason or Reason(Code.UNDECIDED, "the exp-series is undecided")) if truth is None else None
    )
    rule = replace(MECHANISMS["bias"], windowable=value, condition=condition, reason=why)
    return _of_rule(rule, subject)


def of_support(keys: int, subject: str) -> Windowable:
    """For bounded support, as blockwise causal attention or a sliding window has it: a window of
    `keys` loses none."""
    hypotheses = (f"every row sees at most {keys} keys",)
    return Windowable(
        True,
        theorem="bca-support",
        hypotheses=hypotheses,
        label=Label.THEOREM,
        subject=subject,
    )


def of_mechanism(name: str, subject: str, seen: Seen | None = None) -> Windowable:
    """For a mechanism that is no additive bias; where it was only seen, up to there, nothing is
    proved."""
    rule = MECHANISMS[name]
    if seen is not None:
        rule = replace(rule, windowable=None, condition=None, reason=beyond(name, seen))
    return _of_rule(rule, subject)


def beyond(name: str, seen: Seen) -> Reason:
    """Why a mechanism decides nothing where it was only seen."""
    return Reason(
        Code.BEYOND_SEEN,
        f"seen up to distance {seen.distance}; if it is so everywhere, {MECHANISMS[name].words}",
    )


def _of_rule(rule: Mechanism, subject: str) -> Windowable:
    """What the rule of a mechanism decides."""
    unknown = rule.windowable is None and rule.condition is None
    return Windowable(
        rule.windowable,
        rule.condition,
        rule.theorem,
        rule.hypotheses,
        status=Status.UNKNOWN if unknown else Status.EXACT,
        label=None if unknown else Label.THEOREM,
        reason=rule.reason,
        subject=subject,
    )
