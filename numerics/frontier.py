r"""What several biases, or mixtures of heads, pay in exposure for what they reach (ours).

The *exposure* of a head is the most attention that any input puts beyond the training length when
the advantage of the far keys is at most g: with its leak l it is `l G / (1 + l (G - 1))`, G = e^g.
It is concave in the leak, so a fixed mean leak has the least mean exposure where some heads are
local and others free. A candidate is on the frontier if no other reaches as far with less
exposure, or farther with as little.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import sympy

from farfield.numerics.leak import leak
from farfield.numerics.price import reach
from farfield.numerics.questions import BUDGET_S, resolve
from farfield.theory.answers.answer import Answer, Code, InputError, Label, Reason, Status
from farfield.theory.answers.blocks import Block, Sentence, note, table
from farfield.theory.answers.notation import enumeration, shortened, words
from farfield.theory.answers.number import decimal, inside, natural, plural


@dataclass(frozen=True)
class Candidate:
    """One candidate of a frontier.

    Fields:
        name: as it was given.
        leak: the mean leak of its heads, None where one is not known.
        exposure: the mean over its heads, in [0, 1].
        farthest: of any head; None if no distance is within reach, or it is not known.
        best: whether it is on the frontier.
    """

    name: str
    leak: float | None
    exposure: float | None
    farthest: int | None
    best: bool = False


@dataclass(frozen=True, repr=False)
class Frontier(Answer):
    """How far each candidate reaches, and the most attention that it puts on untrained distances.

    Fields:
        advantage: in nats, exact.
        trained, length: the training length, and the keys of the row.
        rows: one a candidate, the least exposed first.
        label: `approximate`: float64, from certified leaks and reaches.
    """

    VALUE: ClassVar[str] = "rows"

    advantage: sympy.Rational
    trained: int
    length: int
    rows: tuple[Candidate, ...] = ()

    def blocks(self) -> Sequence[Block]:
        best = [shortened(row.name, 40) for row in self.rows if row.best]
        template = (
            "of {count}, {best} {reach} farthest for the exposure, with an advantage of {g} nats "
        )
        template += "in a row of {n} after training on {m}."
        if not best:
            template = (
                "with an advantage of {g} nats no candidate reaches beyond {m} in a row of {n}."
            )
        first = words(
            template,
            count=plural(len(self.rows), "candidate"),
            reach="reaches" if len(best) == 1 else "reach",
            g=decimal(float(self.advantage)),
            m=plural(self.trained, "token"),
            n=plural(self.length, "key"),
            best=enumeration(best) if best else "",
        )
        cells = [
            (
                shortened(row.name, 60),
                decimal(row.leak, 4),
                decimal(row.exposure, 4),
                "none" if row.farthest is None else f"{row.farthest} back",
                "yes" if row.best else "",
            )
            for row in self.rows
        ]
        header = ("heads", "mean leak", "mean exposure", "reach", "frontier")
        return [
            Sentence(first, self.label),
            table(header, cells, numeric=(1, 2)),
            note("Exposure: the most attention that any input puts beyond the training length."),
        ]


def reach_frontier(
    formulas: Sequence[object],
    advantage: object,
    *,
    trained: object,
    length: object,
    share: object = "1/2",
    budget_s: float = BUDGET_S,
) -> Frontier:
    """Which of several biases or mixtures reach far for the least exposure (ours).

    Args:
        formulas: at least two formulas, names, encodings, or heads as `"[-n/4; 0 x7]"`.
        advantage: of far keys at most, positive, in nats: for reach and for exposure.
        trained: the training length in tokens; below `length`.
        length: keys of the row.
        share: of the attention that a key is to have.
        budget_s: seconds that each number may take.

    Returns:
        A `Frontier`.

    Raises:
        InputError: one formula, lengths out of order, numbers out of range, free parameters.

    >>> answer = reach_frontier(["[0 x8]", "[-n x7; 0]", "-n/64"], 7, trained=64, length=1024)
    >>> [(row.name, round(row.exposure, 2), row.farthest, row.best) for row in answer.rows]
    [('[-n x7; 0]', 0.12, 1023, True), ('-n/64', 1.0, 181, False), ('[0 x8]', 1.0, 1023, False)]
    """
    if len(formulas) < 2:
        raise InputError("a frontier needs two formulas or more")
    gain, m, row = (
        inside(advantage, "advantage", "(0, 700]"),
        natural(trained, "trained"),
        natural(length, "length"),
    )
    if m >= row:
        raise InputError(f"trained = {m} must be below length = {row}")
    points, reason = [], None
    for given in formulas:
        subject = resolve(given, {})
        name = given if isinstance(given, str) else subject.name
        leaks = leak(subject, m, row, budget_s=budget_s)
        far = reach(subject, gain, share=share, length=row, budget_s=budget_s)
        shares = [h.value for h in leaks.heads or (leaks,) if h.value is not None]
        if len(shares) < max(1, len(leaks.heads)) or far.tokens is None:
            reason = leaks.reason or far.reason or Reason(Code.UNDECIDED, "a number is not known")
            points.append(Candidate(name, None, None, None))
            continue
        exposed = sum(1 / (1 + (1 / v - 1) * math.exp(-gain)) for v in shares if v) / len(shares)
        beyond = far.farthest is not None and far.farthest >= m
        points.append(Candidate(name, sum(shares) / len(shares), exposed, far.farthest, beyond))
    rows = tuple(
        Candidate(c.name, c.leak, c.exposure, c.farthest, c.best and not _beaten(c, points))
        for c in sorted(points, key=lambda c: math.inf if c.exposure is None else c.exposure)
    )
    status = Status.EXACT if reason is None else Status.UNKNOWN
    label = Label.APPROXIMATE if reason is None else None
    return Frontier(gain, m, row, rows, status=status, label=label, reason=reason)


def _beaten(one: Candidate, others: Sequence[Candidate]) -> bool:
    """Whether another reaches as far with less exposure, or farther with as little."""
    assert one.exposure is not None and one.farthest is not None
    return any(
        c.exposure is not None
        and c.farthest is not None
        and (c.exposure, -c.farthest) != (one.exposure, -one.farthest)
        and c.exposure <= one.exposure
        and c.farthest >= one.farthest
        for c in others
    )
