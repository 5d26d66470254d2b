"""What a design is: the parameters that meet a goal, one of them, and the encoding it makes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from sympy import Rational

from farfield.theory.answers.answer import Answer, InputError
from farfield.theory.answers.blocks import Block, Sentence, facts, note, table
from farfield.theory.answers.notation import Text, listed, shortened, words
from farfield.theory.answers.number import decimal, integer, plural
from farfield.theory.encodings import Encoding

Pair = tuple[Rational, Rational]
SHORT = 1_000
"""A rational with a smaller denominator is shown as it is."""


@dataclass(frozen=True, repr=False)
class Design(Answer):
    """The parameters of a family that meet a goal.

    Fields:
        family, parameter: the family as it was given, and the name of its free parameter.
        targets: the targets in words; `quantities`: the quantity of each, in short.
        low, high: two rationals in ascending order around each end of the interval of parameters
            that meet the targets; None where the interval reaches the end of the domain. The
            parameters `low[1]` and `high[0]` meet them.
        closed: whether each end belongs to it.
        value: the simplest rational inside; of several heads, None.
        values: one value a head.
        encoding: the family at these values.
        achieved: what the value reaches, computed afresh: a number, or one for each quantity where
            there are several; of several heads a tuple.
        monotone: whether it is proved that the targets are met between the ends and nowhere else;
            otherwise only the printed parameters are certified.
        nearest: for a number of tokens that no parameter reaches, the nearest below and above.
        condition: where the series converges, if not everywhere.
        call: the Python that makes the encoding.
        costs: the costs of each of several heads, by quantity.
        heads: one design a head where there are several.
        label: `certified`; `approximate` where a target is a model in float64.
    """

    family: str
    parameter: str
    targets: tuple[str, ...]
    quantities: tuple[str, ...] = ()
    low: Pair | None = None
    high: Pair | None = None
    closed: tuple[bool, bool] = (False, False)
    value: Rational | None = None
    values: tuple[Rational, ...] = ()
    encoding: Encoding | None = field(default=None, compare=False)
    achieved: Any = None
    monotone: bool | None = None
    nearest: tuple[int | None, int | None] | None = None
    condition: str | None = None
    call: str = ""
    costs: tuple[Mapping[str, Any], ...] = ()
    heads: tuple[Design, ...] = ()

    def plan(self, preset: str = "demo") -> str:
        """A plan for `farfield sweep` that trains a model with this encoding, as TOML; of several
        heads the model has as many, of 16 entries each.

        Raises:
            InputError: there is no value to train with.
        """
        if self.encoding is None:
            raise InputError(f"{self.family} has no value to train with: {self.reason}")
        count = self.encoding.num_heads
        formulas = [str(bias) for bias in self.encoding.biases]
        subject = {
            "name": formulas if count > 1 else formulas[0],
            "label": f"{self.family}, designed",
        }
        lines = [
            f"title = {json.dumps('; '.join(self.targets))}",
            "",
            "[[runs]]",
            f"preset = {json.dumps(preset)}",
        ]
        if count > 1:
            lines += [f"heads = {count}", f"width = {16 * count}"]
        fields = ", ".join(f"{key} = {json.dumps(value)}" for key, value in subject.items())
        return "\n".join([*lines, f"encoding = {{ {fields} }}", ""])

    def interval_text(self) -> str:
        """The interval, each end with the digits that are certain, as `(0.33…, 1/2]`."""
        low, high = ("…" if pair is None else _end(pair) for pair in (self.low, self.high))
        return f"{'(['[self.closed[0]]}{low}, {high}{')]'[self.closed[1]]}"

    def _blocks(self) -> Iterator[Block]:
        yield Sentence(self._first(), self.label)
        if self.heads:
            yield self._by_head()
        yield facts(
            **{f"{self.parameter} in": self.interval_text() if self.value is not None else None},
            reaches=self._reached() if self.value is not None else None,
            converges_for=self.condition,
            encoding=self.call or None,
            slopes=_slopes(self.encoding),
        )
        if self.monotone is False:
            yield note(
                "It is not proved that {a} orders the tails: only the parameters shown are known "
                "to meet the targets, others may meet them too.",
                a=self.parameter,
            )
        if self.reason is not None and self.value is not None:
            yield note("{reason}.", reason=str(self.reason))

    def _first(self) -> Text:
        if self.heads and self.values:
            template = "{heads} with {targets}: {a} = {values}."
        elif self.value is not None and self.monotone:
            template = "{targets} for {where}; the simplest is {a} = {value}."
        elif self.value is not None:
            template = "{targets} at {a} = {value}, among others."
        elif self.nearest is not None:
            template = "no {a} has {targets}; the nearest that are reached are {near}."
        else:
            template = "which {a} has {targets} is not known: {reason}."
        return words(
            "{family}: " + template,
            family=shortened(self.subject or self.family, 80),
            targets=listed(self.targets, 6),
            heads=plural(len(self.heads), "head"),
            a=self.parameter,
            values=listed(self.values, 6),
            value=str(self.value),
            where=self._where(),
            near=" and ".join(integer(k) for k in self.nearest or () if k is not None),
            reason=str(self.reason),
        )

    def _where(self) -> str:
        low = _short(self.low[1]) if self.low else None
        high = _short(self.high[0]) if self.high else None
        only = f"exactly the {self.parameter}"
        if low is None and high is None:
            return f"every {self.parameter} of the domain"
        if low is None:
            return f"{only} up to {high}"
        return f"{only} from {low} " + ("on" if high is None else f"to {high}")

    def _reached(self) -> str:
        parts = (
            f"{q} = {_number(x)}" for q, x in zip(self.quantities, _numbers(self), strict=True)
        )
        return ", ".join(parts)

    def _by_head(self) -> Block:
        costs = self.costs or ({},) * len(self.heads)
        rows = [
            [k, head.value, *map(_number, (*_numbers(head), *cost.values()))]
            for k, (head, cost) in enumerate(zip(self.heads, costs, strict=True), 1)
        ]
        header = ["head", self.parameter, *self.quantities, *costs[0]]
        return table(header, rows, numeric=(0, *range(2, len(header))))


def _numbers(design: Design) -> Sequence[Any]:
    achieved = design.achieved
    return tuple(achieved.values()) if isinstance(achieved, dict) else (achieved,)


def _number(value: Any) -> str:
    return integer(value) if isinstance(value, int) else decimal(value, 3)


def _short(x: Rational) -> str:
    """A rational, to six digits unless it is short."""
    return str(x) if x.q < SHORT else f"{float(x):.6g}"


def _end(pair: Pair) -> str:
    """A threshold between two rationals: itself where one of them is short, else its digits."""
    for x in pair:
        if x.q < SHORT:
            return str(x)
    digits = zip(*(str(x.evalf(40)) for x in pair), strict=False)
    shared = "".join(a for a, _ in takewhile(lambda both: both[0] == both[1], digits))
    return f"{shared}…" if len(shared) > 8 else f"{float(pair[1]):.9g}"


def _slopes(designed: Encoding | None) -> str | None:
    """The slopes for kernels that take them, of an ALiBi-like encoding."""
    try:
        return None if designed is None else listed([f"{m:.6g}" for m in designed.slopes()])
    except InputError:
        return None
