"""What the explorer asks and shows: a formula with parameters, answered as the sliders move.

The formula is decided once, for all values of its parameters; a slider then reads the condition and
asks for the numbers of its values alone. An answer is first what a moment allows, then the whole of
it; a new question withdraws the one before. What cannot be read keeps the last answer.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import sympy
from sympy import Rational

from farfield.figures.document import Item, Section, Sheet, laid_out, page, piece
from farfield.figures.priors import against_critical, name_of
from farfield.numerics.leak import leak
from farfield.numerics.price import reach
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.windows.window import certified_window
from farfield.theory.algebra.door import check_time, unless, until
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.answers.answer import Answer, InputError, Status
from farfield.theory.answers.blocks import Block, note, sentence
from farfield.theory.answers.notation import StyledWord, terminal, words
from farfield.theory.convergence import Convergence, check_convergence
from farfield.theory.encodings import Encoding, encoding
from farfield.theory.formula.parameters import interval
from farfield.validation.forecast import forecast
from farfield.validation.study.prediction import ADVANTAGE

EPS, TRAINED, TESTED, ERROR = "1/100", 64, 1024, "1/100"
FIRST, WHOLE = 0.3, 5.0
"""Seconds of thought for the first answer, and for the whole one."""
WIDE = 8
STEP = Fraction(1, 8)
OCTAVES = 8
"""Of a parameter without an end: it is moved from 2^-8 to 2^8, eight steps an octave."""
START = "-r*log(1+n)"
EXAMPLES = {
    START: START,
    "ALiBi": "alibi",
    "KERPLE": "kerple_log",
    "Sandwich": "sandwich",
    "RoPE": "rope",
    "one local head of eight": "[-n/4; 0 x7]",
    "two parameters": "-a*n^b",
}
"""What can be clicked, with the formula that it stands for."""


@dataclass(frozen=True)
class Slider:
    """The values that a parameter is moved through, all of them within its domain."""

    name: str
    domain: str
    steps: tuple[Fraction, ...]
    value: Fraction

    def nearest(self, given: str | None) -> Fraction:
        """The step that is nearest to a value of an address; the usual one where it has none."""
        try:
            wanted = Fraction(str(given))
        except (ValueError, ZeroDivisionError):
            return self.value
        return min(self.steps, key=lambda step: abs(step - wanted))


def slider(name: str, domain: str) -> Slider:
    """The slider of a parameter: octaves of a positive one without an end, eighths of all others.

    >>> slider("a", "[0, 2)").steps[-1], slider("b", "positive").value
    (Fraction(15, 8), Fraction(1, 1))
    >>> slider("b", "positive").steps[:2]
    (Fraction(1, 256), Fraction(9, 2048))
    """
    allowed = interval(domain)
    if allowed.inf == 0 and allowed.sup == sympy.oo:
        octaves = (Fraction(2) ** k * m / 8 for k in range(-OCTAVES, OCTAVES) for m in range(8, 16))
        steps = [Fraction(0), *octaves, Fraction(2) ** OCTAVES]
    else:
        low, high = (
            None if end.is_infinite else Fraction(str(end)) for end in (allowed.inf, allowed.sup)
        )
        bottom = min(-WIDE, (high or WIDE) - 1) if low is None else low
        top = max(WIDE, bottom + 1) if high is None else high
        step = min(STEP, (top - bottom) / Fraction(16))
        steps = [bottom + k * step for k in range(int((top - bottom) / step) + 1)]
    steps = [s for s in steps if Rational(s) in allowed]
    return Slider(name, domain, tuple(steps), min(steps, key=lambda s: (abs(s - 1), s)))


@dataclass(frozen=True)
class Question:
    """A formula as it was read: the encoding, and the sliders of its parameters."""

    text: str
    subject: Encoding
    sliders: tuple[Slider, ...]

    @property
    def name(self) -> str:
        """What it is called: its formula, where it has no other name."""
        return terminal(name_of(self.subject))

    def values(self, moved: Mapping[str, Fraction]) -> dict[str, Fraction]:
        """The value of each parameter: where its slider was moved to, or where it begins."""
        return {s.name: moved.get(s.name, s.value) for s in self.sliders}

    def at(self, moved: Mapping[str, Fraction]) -> Encoding:
        """The encoding at values of its parameters."""
        values: dict[str, Any] = {name: str(value) for name, value in self.values(moved).items()}
        return encoding(self.text, **values) if values else self.subject


@lru_cache(256)
def read(text: str) -> Question:
    """Read a formula, or a name of the catalogue.

    Raises:
        InputError: what cannot be read; the message points at the column.
    """
    subject = encoding(text)
    free = subject.free if len(subject.free) <= 6 else ()
    return Question(text, subject, tuple(slider(p.name, p.domain) for p in free))


class Explorer:
    """The question of a session, its verdict once it is known, and the error in the text typed.

    Fields:
        question: the last that could be read; None at first.
        trouble: why the text typed cannot be read; empty where it can.
        verdict: on the question, for all values of its parameters.
    """

    def __init__(self) -> None:
        self.question: Question | None = None
        self.trouble = ""
        self.verdict: Convergence | None = None

    def read(self, typed: str) -> Explorer:
        """Ask about the text typed; what cannot be read keeps the last answer."""
        try:
            question = read(typed.strip())
        except InputError as error:
            self.trouble = str(error)
            return self
        if question != self.question:
            self.question, self.verdict = question, None
        self.trouble = ""
        return self

    def decided(self, question: Question, budget_s: float = WHOLE) -> Convergence:
        """The verdict on a question, kept once it is known.

        Raises:
            InputError: the formula is not real.
            Unreachable: the question was withdrawn.
        """
        if self.verdict is not None:
            return self.verdict
        found = check_convergence(question.subject, budget_s=budget_s)
        check_time()  # a question that was withdrawn is not undecided
        if found.status is not Status.UNKNOWN or budget_s >= WHOLE:
            self.verdict = found
        return found

    def answers(
        self, moved: Mapping[str, Fraction], withdrawn: Callable[[], bool] = lambda: False
    ) -> Iterator[list[Item]]:
        """What a moment tells, then the whole answer where that took longer.

        Args:
            moved: where the sliders stand.
            withdrawn: whether every caller has gone; no answer comes from then on.
        """
        for budget_s in (FIRST, WHOLE):
            began = time.monotonic()
            try:
                with unless(withdrawn):
                    shown = self.answer(moved, budget_s)
            except Unreachable:
                if not withdrawn():
                    raise
            if withdrawn():
                return
            if budget_s == WHOLE or time.monotonic() - began < FIRST:
                yield shown
                return
            yield [note("A first answer; more time is being spent on it."), *shown]

    def answer(self, moved: Mapping[str, Fraction], budget_s: float = WHOLE) -> list[Item]:
        """All that is shown, as far as a time allows: the blocks of the answers, and the weight."""
        if (question := self.question) is None:
            return []
        try:
            verdict = self.decided(question, budget_s)
        except InputError as error:
            return [note(f"{error}.")]
        subject = question.at(moved)
        drawn = [(question.name, subject)] * bool(subject.biases and not subject.free)
        picture = [against_critical(drawn)] if drawn else []
        return laid_out(answers_to(question, verdict, moved, budget_s), picture)


# -- what is shown --------------------------------------------------------------------------------


def answers_to(
    question: Question,
    verdict: Convergence,
    moved: Mapping[str, Fraction],
    budget_s: float = WHOLE,
) -> list[Block]:
    """The blocks of every answer at these values: verdict, receptive field, leak, window, reach,
    forecast; each an enclosure where the time is over."""
    values, subject = question.values(moved), question.at(moved)
    held = {"True": "converges", "False": "diverges"}.get(str(verdict.at(**values)), "undecided")
    here = sentence(
        "At {where}: {verdict}.",
        where=", ".join(f"{name} = {value}" for name, value in values.items()),
        verdict=StyledWord(held, "verdict"),
    )
    answers: list[Answer] = [verdict]
    if subject.biases and not subject.free:
        with until(time.monotonic() + budget_s):
            answers += [
                theoretical_receptive_field(subject, EPS, budget_s=budget_s),
                theoretical_receptive_field(subject, EPS, length=TESTED),
                leak(subject, TRAINED, TESTED),
                certified_window(subject, ERROR, 1, 1),
                reach(subject, ADVANTAGE, length=TESTED),
            ]
        answers.append(forecast(subject, trained=TRAINED, tested=TESTED))
    blocks = [b for answer in answers for b in replace(answer, subject=question.name).blocks()]
    return [*[here] * bool(values), *dict.fromkeys(blocks)]  # a formula once


def commands(question: Question, moved: Mapping[str, Fraction]) -> tuple[str, str]:
    """What computes the same in Python, and in a terminal."""
    values = question.values(moved)
    python = "".join(f', {name}="{value}"' for name, value in values.items())
    sets = "".join(f" --set {name}={value}" for name, value in values.items())
    return (
        "import farfield\n"
        f"bias = farfield.encoding({question.text!r}{python})\n"
        f"farfield.check({question.text!r}).verdict\n"
        f'farfield.trf(bias, "{EPS}").tokens',
        f"farfield trf {shlex.quote(question.text)}{sets} --eps {EPS}",
    )


def html(items: Sequence[Item]) -> str:
    """Items as a part of the explorer."""
    return f'<div class="farfield explored">{piece(items)}</div>'


def export(explorer: Explorer, moved: Mapping[str, Fraction]) -> str:
    """The state of the explorer as a page that stands alone."""
    return page(Sheet(words("Explored"), [Section((), explorer.answer(moved))]))


def values_of(moved: Mapping[str, Any]) -> dict[str, Fraction]:
    """The values of sliders: eighths of octaves are exact in binary, others are rounded to one in
    2,048."""
    return {
        name: Fraction(value).limit_denominator(2 ** (OCTAVES + 3)) for name, value in moved.items()
    }
