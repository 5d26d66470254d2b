"""What the explorer asks and shows: formulas with parameters, answered as the sliders move.

A formula is decided once, for all values of its parameters; a slider then reads the condition and
asks for the numbers of its values alone. An answer is first what a moment allows, then the whole of
it; a new question withdraws the one before. What cannot be read keeps the last answer.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import sympy
from sympy import Rational

from farfield.figures.document import Heading, Item, Section, Sheet, laid_out, page, piece
from farfield.figures.priors import against_critical, name_of
from farfield.figures.regions import boundary
from farfield.numerics.leak import leak
from farfield.numerics.price import reach
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.windows.window import certified_window
from farfield.theory.algebra.door import check_time, unless, until
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.answers.answer import Answer, InputError, Status
from farfield.theory.answers.blocks import Block, Curve, Line, Sentence, Weight, note
from farfield.theory.answers.notation import StyledWord, terminal, words
from farfield.theory.convergence import Convergence, Verdict, check_convergence
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
_BETWEEN = re.compile(r"\n|;(?![^\[\n]*\])")  # a line, or ; outside of a list of heads


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
    own = interval(domain)
    if own.inf == 0 and own.sup == sympy.oo:
        octaves = (Fraction(2) ** k * m / 8 for k in range(-OCTAVES, OCTAVES) for m in range(8, 16))
        steps = [Fraction(0), *octaves, Fraction(2) ** OCTAVES]
    else:
        low, high = (None if end.is_infinite else Fraction(str(end)) for end in (own.inf, own.sup))
        bottom = min(-WIDE, (high or WIDE) - 1) if low is None else low
        top = max(WIDE, bottom + 1) if high is None else high
        step = min(STEP, (top - bottom) / Fraction(16))
        steps = [bottom + k * step for k in range(int((top - bottom) / step) + 1)]
    steps = [s for s in steps if Rational(s) in own]
    return Slider(name, domain, tuple(steps), min(steps, key=lambda s: (abs(s - 1), s)))


@dataclass(frozen=True)
class Question:
    """One formula as it was read: the encoding, its sliders, and the verdict for all parameters,
    once it is decided, or why it is refused."""

    text: str
    subject: Encoding
    sliders: tuple[Slider, ...]
    convergence: Convergence | None = None
    refused: str = ""

    @property
    def decided(self) -> Convergence:
        """The verdict, of a question that has one."""
        assert self.convergence is not None, "not decided yet"
        return self.convergence

    def at(self, values: Mapping[str, Fraction]) -> Encoding:
        """The encoding at values of its parameters."""
        own: dict[str, Any] = {s.name: str(values.get(s.name, s.value)) for s in self.sliders}
        return encoding(self.text, **own) if own else self.subject

    def verdict(self, values: Mapping[str, Fraction]) -> str:
        """The verdict at values of the parameters, by the condition that was proved."""
        held = self.decided.at(**{s.name: values.get(s.name, s.value) for s in self.sliders})
        return {"True": "converges", "False": "diverges"}.get(str(held), "undecided")


@lru_cache(256)
def read(text: str) -> Question:
    """Read a formula, or a name of the catalogue.

    Raises:
        InputError: what cannot be read; the message points at the column.
    """
    subject = encoding(text)
    free = subject.free if len(subject.free) <= 6 else ()
    return Question(text, subject, tuple(slider(p.name, p.domain) for p in free))


def decide(question: Question, budget_s: float = WHOLE) -> Question:
    """The question with the verdict for all its parameters, or refused: a formula is not real.

    Raises:
        Unreachable: the question was withdrawn.
    """
    try:
        found = check_convergence(question.subject, budget_s=budget_s)
    except InputError as error:
        return replace(question, refused=str(error))
    check_time()  # a question that was withdrawn is not undecided
    return replace(question, convergence=found)


@dataclass
class Explorer:
    """The questions of a session: the formulas shown, and the errors in the text typed.

    Fields:
        questions: in the order of the lines that were typed, the last that could be read.
        trouble: what cannot be read now, one line each.
    """

    questions: tuple[Question, ...] = ()
    trouble: tuple[str, ...] = ()
    _decided: dict[str, Question] = field(default_factory=dict)

    def read(self, typed: str) -> Explorer:
        """Ask about the text typed, a formula a line; what cannot be read keeps the last answer."""
        found, trouble = [], []
        for text in filter(None, (line.strip() for line in _BETWEEN.split(typed))):
            try:
                found.append(read(text))
            except InputError as error:
                trouble.append(str(error))
        self.trouble = tuple(trouble)
        if found or not trouble:
            self.questions = tuple(found)
        return self

    def decided(self, budget_s: float = WHOLE) -> Iterator[Question]:
        """The questions with their verdicts, or refused; those that were decided are kept."""
        for q in self.questions:
            if q.text not in self._decided:
                q = decide(q, budget_s)
                if q.refused or q.decided.status is not Status.UNKNOWN or budget_s >= WHOLE:
                    self._decided[q.text] = q
            yield self._decided.get(q.text, q)

    def answers(
        self, values: Mapping[str, Fraction], withdrawn: Callable[[], bool] = lambda: False
    ) -> Iterator[list[Item]]:
        """What a moment tells, then the whole answer where that took longer.

        Args:
            values: where the sliders stand.
            withdrawn: whether every caller has gone; no answer comes from then on.
        """
        for budget_s in (FIRST, WHOLE):
            began = time.monotonic()
            try:
                with unless(withdrawn):
                    shown = self.answer(values, budget_s)
            except Unreachable:
                if not withdrawn():
                    raise
            if withdrawn():
                return
            if budget_s == WHOLE or time.monotonic() - began < FIRST:
                yield shown
                return
            yield [note("A first answer; more time is being spent on it."), *shown]

    def answer(self, values: Mapping[str, Fraction], budget_s: float) -> list[Item]:
        """All that is shown, as far as a time allows: the picture of all formulas, and of each the
        blocks of its answers."""
        every = list(self.decided(budget_s))
        found: list[Item] = [
            note(f"{q.refused[0].upper()}{q.refused[1:]}.") for q in every if q.refused
        ]
        questions = [q for q in every if not q.refused]
        drawn = [(_name(q), e) for q in questions if (e := q.at(values)).biases and not e.free]
        picture = [against_critical(drawn)] if drawn else []
        for q in questions:
            if len(questions) > 1:
                found.append(Heading(words("{name}", name=_name(q))))
            found += laid_out(answers_to(q, values, budget_s), [*picture, *plane(q, values)])
            picture = []
        return found


# -- what is shown --------------------------------------------------------------------------------


def answers_to(
    question: Question, values: Mapping[str, Fraction], budget_s: float = WHOLE
) -> list[Block]:
    """The blocks of every answer at these values: verdict, receptive field, leak, window, reach,
    forecast; each an enclosure where the time is over."""
    here = Sentence(
        words(
            "At {where}: {verdict}.",
            where=", ".join(f"{s.name} = {values.get(s.name, s.value)}" for s in question.sliders),
            verdict=StyledWord(question.verdict(values), "verdict"),
        )
    )
    subject, name = question.at(values), _name(question)
    answers: list[Answer] = [question.decided]
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
    told = [b for a in answers for b in replace(a, subject=name).blocks()]
    return [*[here] * bool(question.sliders), *dict.fromkeys(told)]  # a formula once


def plane(question: Question, values: Mapping[str, Fraction]) -> list[Block]:
    """The boundary of convergence over the first two parameters on which the verdict depends, the
    others as they stand, and where the sliders stand."""
    c = question.decided
    condition = sympy.sympify(c.condition) if c.verdict is Verdict.CONDITIONAL else sympy.true
    own = {s.name: s for s in condition.free_symbols}
    moved = [s for s in question.sliders if s.name in own]
    if len(moved) < 2:
        return []
    here = {s.name: values.get(s.name, s.value) for s in moved}
    condition = condition.xreplace({own[s.name]: Rational(here[s.name]) for s in moved[2:]})
    (x, y), ends = moved[:2], [(Rational(s.steps[0]), Rational(s.steps[-1])) for s in moved[:2]]
    curves = [map(tuple, zip(*c, strict=True)) for c in boundary(condition, [x.name, y.name], ends)]
    return [
        Curve(
            "The boundary of convergence, exact. The dashed lines meet where the sliders stand.",
            x.name,
            y.name,
            tuple(Line("boundary", xs, ys, 0, weight=Weight.STRONG) for xs, ys in curves),
            posts=((f"{x.name} = {here[x.name]}", float(here[x.name])),),
            marks=((f"{y.name} = {here[y.name]}", float(here[y.name])),),
            log_x=ends[0][0] > 0,
            log_y=ends[1][0] > 0,
            frame=(float(ends[1][0]), float(ends[1][1])),
        )
    ]


def commands(question: Question, values: Mapping[str, Fraction]) -> dict[str, str]:
    """What computes the same in a terminal, and in Python."""
    own = {s.name: values.get(s.name, s.value) for s in question.sliders}
    sets = "".join(f" --set {name}={value}" for name, value in own.items())
    python = "".join(f', {name}="{value}"' for name, value in own.items())
    return {
        "trf": f"farfield trf {shlex.quote(question.text)}{sets} --eps {EPS}",
        "python": "import farfield\n"
        f"bias = farfield.encoding({question.text!r}{python})\n"
        f"farfield.check_convergence({question.text!r}).verdict\n"
        f'farfield.theoretical_receptive_field(bias, "{EPS}").tokens',
    }


def _name(question: Question) -> str:
    return terminal(name_of(question.subject))


def html(items: Sequence[Item]) -> str:
    """Items as a part of the explorer."""
    return f'<div class="farfield explored">{piece(items)}</div>'


def export(explorer: Explorer, values: Mapping[str, Fraction]) -> str:
    """The state of the explorer as a page that stands alone."""
    return page(Sheet(words("Explored"), [Section((), explorer.answer(values, WHOLE))]))


def values_of(moved: Mapping[str, Any]) -> dict[str, Fraction]:
    """The values of sliders: eighths of octaves are exact in binary, others are rounded to one in
    2,048."""
    return {
        name: Fraction(value).limit_denominator(2 ** (OCTAVES + 3)) for name, value in moved.items()
    }
