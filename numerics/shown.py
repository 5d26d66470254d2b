"""How the answers of this room show themselves: their subject, their first sentence, the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self, TypeVar

from sympy import Expr

from farfield.theory.answers.answer import Answer, Code, Status
from farfield.theory.answers.blocks import Block, Formula, Sentence, facts
from farfield.theory.answers.notation import expression_line, listed, shortened, words
from farfield.theory.answers.number import decimal, plural

Cases = tuple[tuple[object, str], ...]
"""Templates of a sentence, each with whether it holds; the first that does is said."""


def chosen(cases: Cases) -> str:
    """The template that is said."""
    return next(template for holds, template in cases if holds)


def subject_of(answer: Answer) -> str:
    """What was asked about: its name, or the formula of its bias."""
    return shortened(answer.subject or expression_line(getattr(answer, "formula", None) or 0), 80)


def of_row(length: int | None) -> str:
    """In which row; nothing of the whole series."""
    return "" if length is None else f" in a row of {plural(length, 'key')}"


@dataclass(frozen=True, repr=False)
class BiasAnswer(Answer):
    """An answer about a bias. A subclass says what it found by `_cases`, `_values` and `_facts`.

    Fields:
        formula: the bias, None where several heads are aggregated.
    """

    OUTSIDE: ClassVar[str] = "there is no mass by distance to speak of: {why}."
    """What is said out of scope."""

    formula: Expr | None

    def because(self, code: Code) -> bool:
        """Whether this is the reason."""
        return self.reason is not None and self.reason.code is code

    def _cases(self) -> Cases:
        """What the first sentence may say of its subject."""
        raise NotImplementedError

    def _values(self) -> dict[str, object]:
        """What is named in it, beside the subject and the reason."""
        return {}

    def _facts(self) -> dict[str, object]:
        """The named values below it."""
        return {}

    def first(self, **given: object) -> Sentence:
        """The answer in one sentence, for each status, with values given in place of its own."""
        cases = ((self.status is Status.OUT_OF_SCOPE, self.OUTSIDE), *self._cases())
        template = chosen(cases)
        common = {"subject": subject_of(self), "why": str(self.reason)} | self._values() | given
        return Sentence(words("{subject}: " + template, **common), self.label)

    def blocks(self) -> Sequence[Block]:
        if self.status is Status.OUT_OF_SCOPE:
            return [self.first()]
        bias = [] if self.formula is None else [Formula(words("`p(n)`"), self.formula)]
        why = None if self.reason is None else str(self.reason)
        return [self.first(), *bias, facts(**self._facts(), why=why)]


@dataclass(frozen=True, repr=False)
class HeadAnswer(BiasAnswer):
    """An answer about the heads of an encoding, one of which speaks for all.

    Fields:
        formula: the bias, None where several heads are aggregated.
        heads: one answer a head where there are several.
        finite: the answer in a row of `FINITE_ROW` keys where the whole series has none; of a
            tabulated bias, in the longest row that was seen.
    """

    heads: tuple[Self, ...] = field(default=(), kw_only=True)
    finite: Self | None = field(default=None, kw_only=True)

    def blocks(self) -> Sequence[Block]:
        first, *others = super().blocks()
        return [first, *([] if self.finite is None else [self.finite.first()]), *others]

    def head_text(self) -> str:
        """The value as it is said among those of other heads."""
        return decimal(getattr(self, self.VALUE))

    def by_head(self) -> str | None:
        """The value of each head where there are several."""
        return listed([head.head_text() for head in self.heads]) or None

    def among(self, which: str) -> str:
        """In which head, where there are several."""
        return f", in {which}" if self.heads else ""

    def _facts(self) -> dict[str, object]:
        return {"by_head": self.by_head()}

    def span(self) -> tuple[float, float] | None:
        ends = super().span()
        return getattr(self, "enclosure", None) if ends is None else ends


FINITE_ROW = 4096
"""Keys of the row that is answered for where the whole series has no answer."""
H = TypeVar("H", bound=HeadAnswer)
