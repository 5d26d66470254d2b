"""How the answers of this room show themselves: their subject, their first blocks."""

from __future__ import annotations

from typing import Any

from farfield.theory.answers.answer import Answer
from farfield.theory.answers.blocks import Block, Formula, Sentence, facts
from farfield.theory.answers.notation import Text, expression_line, shortened, words


def subject_of(answer: Answer) -> str:
    """What was asked about: its name, or the formula of its bias."""
    return shortened(answer.subject or expression_line(getattr(answer, "formula", None) or 0), 80)


def shown(answer: Answer, first: Text, **known: Any) -> list[Block]:
    """The answer in one sentence, the formula of its bias if it has one, and what is known.

    Args:
        answer: whose label, formula and reason are shown.
        first: the sentence.
        **known: named values, as `facts` takes them; the reason follows them.
    """
    formula = getattr(answer, "formula", None)
    bias = [] if formula is None else [Formula(words("`p(n)`"), formula)]
    why = None if answer.reason is None else str(answer.reason)
    return [Sentence(first, answer.label), *bias, facts(**known, why=why)]
