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
from matplotlib.figure import Figure
from sympy import Rational

from farfield.figures.document import (
    Columns,
    Fold,
    Heading,
    Item,
    KeyNumbers,
    Number,
    Picture,
    Terms,
    page,
    piece,
)
from farfield.figures.pages.commands import command
from farfield.figures.pages.pictures import against_critical, bounded_share, name_of
from farfield.figures.pages.study import key_numbers, verdict_text
from farfield.figures.pages.terms import THEORY
from farfield.figures.parameter_map import shaded
from farfield.figures.style import INK, house, new_figure, svg
from farfield.numerics.leak import leak
from farfield.numerics.price import reach
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.windows.window import certified_window
from farfield.theory.algebra.budget import check_time, unless, until
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.answers.answer import InputError, Status
from farfield.theory.answers.blocks import Formula, Ladder, Sentence, Steps, Table, note, table
from farfield.theory.answers.notation import StyledWord, as_text, terminal, words
from farfield.theory.answers.number import listed
from farfield.theory.convergence import Convergence, Verdict, check_convergence
from farfield.theory.decision.regions import Range
from farfield.theory.encodings import Encoding, encoding
from farfield.theory.formula.parameters import interval
from farfield.validation.forecast import forecast
from farfield.validation.study.prediction import ADVANTAGE
from farfield.validation.table_cells import field_text

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

    def holds(self, values: Mapping[str, Fraction]) -> bool | None:
        """Whether the series converges there, by the condition that was proved."""
        own = {s.name: values.get(s.name, s.value) for s in self.sliders}
        found = self.decided.at(**own) if own else self.decided.converges
        return found if isinstance(found, bool) else None


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
        """All that is shown, as far as a time allows."""
        every = list(self.decided(budget_s))
        questions = [q for q in every if not q.refused]
        why = (q.refused for q in every if q.refused)
        found: list[Item] = [note(f"{told[0].upper()}{told[1:]}.") for told in why]
        found += head(questions, values, budget_s)
        for q in questions if len(questions) > 1 else ():
            found.append(Heading(words("{name}", name=_name(q))))
            beside = [numbers(q, values, budget_s), *chart(q, values)]
            found.append(Columns(first(q, values), beside))
        return found


# -- what is shown --------------------------------------------------------------------------------


def head(
    questions: Sequence[Question], values: Mapping[str, Fraction], budget_s: float = WHOLE
) -> list[Item]:
    """The text first seen, next to the picture: all of one formula, of several their comparison."""
    drawn = picture(questions, values)
    if len(questions) != 1:
        return [Columns([*comparison(questions, values)], [drawn])] if questions else [drawn]
    (q,) = questions
    told = [*first(q, values), numbers(q, values, budget_s)]
    return [Columns(told, [drawn, *chart(q, values)])]


def first(question: Question, values: Mapping[str, Fraction]) -> list[Item]:
    """The answer in words: verdict, formula, verdict at these values, proof."""
    name = "The bias" if question.subject.biases else terminal(name_of(question.subject))
    found = replace(question.decided, subject=name)
    said, *others = found.blocks()
    shown: list[Item] = [said, *(b for b in others if isinstance(b, Formula))]
    here: list[Item] = []
    holds = question.holds(values)
    if question.sliders:
        where = ", ".join(f"{s.name} = {values.get(s.name, s.value)}" for s in question.sliders)
        what = {True: "converges", False: "diverges", None: "undecided"}[holds]
        here.append(
            Sentence(
                words("At {where}: {verdict}.", where=where, verdict=StyledWord(what, "verdict")),
                found.label if holds is not None else None,
            )
        )
    why = [b for b in others if isinstance(b, (Steps, Ladder, Table))]
    return [*here, *shown, *([Fold(words("Why"), why)] if why else [])]


def chart(question: Question, values: Mapping[str, Fraction]) -> list[Item]:
    """The map of the first two parameters on which the verdict depends, the others as they
    stand."""
    c = question.decided
    if c.verdict is not Verdict.CONDITIONAL:
        return []
    condition = sympy.sympify(c.condition)
    own = {s.name: s for s in condition.free_symbols}
    moved = [s for s in question.sliders if s.name in own]
    here = {s.name: values.get(s.name, s.value) for s in moved}
    condition = condition.xreplace({own[s.name]: Rational(here[s.name]) for s in moved[2:]})
    names = [s.name for s in moved[:2]]
    ends = [(Rational(s.steps[0]), Rational(s.steps[-1])) for s in moved[:2]]
    figure, dot = _ground(condition, tuple(names), tuple(ends))
    dot.set_data([float(here[names[0]])], [float(here[names[1]]) if len(names) > 1 else 0.5])
    said = words(
        "Green: the series converges, exactly if {condition}. The dot: here.", condition=c.condition
    )
    alt = f"Where {' and '.join(names)} make the series converge"
    return [Picture(svg(figure, f"map of {question.text}"), said, alt, c.label)]


@lru_cache(8)
def _ground(condition: Any, names: tuple[str, ...], ends: tuple[Range, ...]) -> tuple[Figure, Any]:
    """The map, laid out once, and the dot on it that a slider moves."""
    with house():
        figure, axes = new_figure(3.2 if len(names) > 1 else 1.2, 4.4)
        shaded(axes, condition, names, ends)
        if len(names) == 1:
            axes.set(yticks=[], ylim=(0, 1))
        (dot,) = axes.plot([], [], "o", color=INK, markersize=9, clip_on=False)
        figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure, dot


def numbers(question: Question, values: Mapping[str, Fraction], budget_s: float = WHOLE) -> Item:
    """TRF, leak, window and reach at these values, each an enclosure where the time is over."""
    subject = question.at(values)
    if why := _no_numbers(subject):
        return note("No numbers: {why}.", why=why)
    with until(time.monotonic() + budget_s):
        whole = theoretical_receptive_field(subject, EPS, budget_s=budget_s)
        row = theoretical_receptive_field(subject, EPS, length=TESTED)
        beyond = leak(subject, TRAINED, TESTED)
        window = certified_window(subject, ERROR, 1, 1)
        far = reach(subject, ADVANTAGE, length=TESTED)
    nearest = forecast(subject, trained=TRAINED, tested=TESTED)
    said = words("perplexity of the nearest trained models at {n} bytes", n=TESTED)
    last = Number(
        words("forecast"),
        as_text("not known" if nearest.ratio is None else f"× {nearest.ratio:.2f}"),
        said if nearest.reason is None else as_text(str(nearest.reason)),
        nearest.label,
        command("forecast", subject, f"--trained {TRAINED} --tested {TESTED}"),
    )
    return KeyNumbers([*key_numbers(subject, whole, row, beyond, window, far), last])


def _no_numbers(e: Encoding) -> str:
    """Why an encoding has no numbers; nothing where it has."""
    if not e.biases:
        return "no additive bias"
    return "parameters without a value" if e.free else ""


def picture(questions: Sequence[Question], values: Mapping[str, Fraction]) -> Item:
    """The biases at these values over each other, against the critical one."""
    drawn = [(_name(q), e) for q in questions if not _no_numbers(e := q.at(values))]
    if drawn:
        return against_critical(drawn)
    if any(q.decided.windowable.theorem == "bounded-logits" for q in questions):
        return bounded_share()
    return note("Nothing to draw: no bias has all its values.")


def comparison(questions: Sequence[Question], values: Mapping[str, Fraction]) -> Iterator[Item]:
    """The verdicts and receptive fields of several formulas beside each other, and which of them
    have no number and no line."""
    rows, absent = [], []
    for q in questions:
        e, holds = q.at(values), q.holds(values)
        if why := _no_numbers(e):
            absent.append(f"{_name(q)} ({why})")
        tokens = "" if why else field_text(theoretical_receptive_field(e, EPS, budget_s=FIRST))
        verdict = (
            verdict_text(q.decided)
            if not q.sliders or holds is None
            else StyledWord("converges" if holds else "diverges", "verdict")
        )
        rows.append((_name(q), verdict, tokens))
    yield table(("formula", "verdict", f"TRF({EPS})"), rows, numeric=(2,))
    if absent:
        yield note("Neither number nor line: {absent}.", absent=listed(absent))


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


def html(items: Sequence[Item], terms: Terms | None = None) -> str:
    """Items as a part of the explorer, with the terms that they explain."""
    return f'<div class="farfield explored">{piece(items, terms)}</div>'


def export(explorer: Explorer, values: Mapping[str, Fraction]) -> str:
    """The state of the explorer as a page that stands alone."""
    return page(words("Explored"), explorer.answer(values, WHOLE), [], THEORY)


def values_of(moved: Mapping[str, Any]) -> dict[str, Fraction]:
    """The values of sliders: eighths of octaves are exact in binary, others are rounded to one in
    2,048."""
    return {
        name: Fraction(value).limit_denominator(2 ** (OCTAVES + 3)) for name, value in moved.items()
    }
