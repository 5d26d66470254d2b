"""What a target may speak of: certified quantities, a record each.

A record says which public function answers, how a reader sees the quantity, and how it moves as
tails get heavier. Its `gauge` is negative exactly where the quantity is within a limit: a ball. Of
sums alone its sign is a proof; elsewhere the public answer proves, and the gauge guesses where that
changes. A new quantity is one more record in `TARGETS`. One that rests on what this room may not
import is handed to `design`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import sympy
from flint import arb, ctx, fmpq
from sympy import Expr, Rational, S, Symbol

from farfield.numerics.depth import (
    MAX_LAGS,
    convolved,
    layered_receptive_field,
    step_weights,
    total_of,
)
from farfield.numerics.horizon import dtype_horizon, threshold
from farfield.numerics.leak import leak
from farfield.numerics.price import price_of_distance, reach
from farfield.numerics.questions import Diverging, of_row, summed
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.resolution import attention_resolution
from farfield.numerics.search import Unrecognised, at_precision, decide
from farfield.numerics.summation.complete_monotonicity import has_monotone_slope
from farfield.numerics.summation.series import Series
from farfield.numerics.windows.question import WindowQuestion
from farfield.numerics.windows.window import certified_window
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.answers.answer import Answer, Code, InputError, Label, Status
from farfield.theory.answers.names import one_of
from farfield.theory.answers.number import exact, natural, plural, share
from farfield.theory.functions.balls import Ball, rational, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.values import compile_ball

BITS = (64, 128, 512, 2_048)
COUNTS = ("length", "trained", "tested", "row", "sinks", "layers")
"""Options that count tokens or layers."""
SHORT = 10**30
"""A limit with a smaller denominator is written as it is."""
MUST = ...
"""The default of an option that has none."""


@dataclass(frozen=True, eq=False)
class Quantity:
    """A certified quantity with its options.

    Args:
        name: its keyword.
        ask: the public function, called with a bias and the options.
        options: what it is asked with; in the table of quantities the defaults.
        phrase: the quantity without its row, as a reader sees it, of its options.
        brief: the same as the header of a column; None for the phrase with its row.
        ratio: of the sums of a series, above 1 exactly beyond the limit; None where it rests on
            more than sums.
        gauge: negative where it is within the limit; None for the logarithm of value / limit.
        ordered: whether it follows the order of the tails of a formula in a parameter.
        most: what no bias exceeds, None where there is no such bound.
        relation: what a plain number means.
        integer: whether it counts tokens.
        grows: 1 where it grows as tails get heavier, -1 where it falls.
        better: 1 where a larger value is wanted, -1 where a smaller one is.
        closed: whether the parameters with Q <= limit contain their own end, of its options.
        approximate: whether it is a model in float64.
        keys: the option with the keys of a row.
    """

    name: str
    ask: Callable[..., Answer]
    options: Mapping[str, Any]
    phrase: Callable[[Mapping[str, Any]], str]
    brief: Callable[[Mapping[str, Any]], str] | None = None
    ratio: Callable[[Quantity, Series, Rational], Any] | None = None
    gauge: Callable[[Quantity, Expr, Rational], Any] | None = None
    ordered: Callable[[Quantity, Expr, Symbol], bool] = lambda *_: True
    most: Callable[[Quantity], Rational | None] = lambda _: None
    relation: str = "="
    integer: bool = True
    grows: int = 1
    better: int = 1
    closed: Callable[[Mapping[str, Any]], bool] = lambda _: True
    approximate: bool = False
    keys: str = "length"

    @property
    def size(self) -> int | None:
        """The keys of the row it is asked for; None for the whole series."""
        given = self.options.get(self.keys)
        return None if given is None else int(given)

    @property
    def whole(self) -> bool:
        """Whether it speaks of the whole series, so that a divergent one has none."""
        return bool(self.keys) and self.size is None

    def words(self) -> str:
        """The quantity as a reader sees it."""
        return self.phrase(self.options) + of_row(self.size)

    def header(self) -> str:
        """The same as the header of a column."""
        return self.words() if self.brief is None else self.brief(self.options)

    def answer(self, bias: object) -> Answer:
        """The quantity of a bias, afresh; of an `Encoding` where it is not of one head."""
        return self.ask(self.row(bias), **self.options)

    def row(self, bias: Any) -> Any:
        """A bias that masks what lies beyond the row: the tail of a wave is slow to sum."""
        if self.size is None or not bias.has(sympy.sin, sympy.cos):
            return bias
        return sympy.Piecewise((bias, n < self.size), (S.NegativeInfinity, True))

    def summed(self, bias: Expr) -> Series:
        """The series of a bias, or its row; raises Unreachable, as `heads.summed` does."""
        return summed(self.row(bias), self.size)

    def number(self, bias: object) -> Any:
        """Its value; None where that is not known."""
        answer = self.answer(bias)
        return getattr(answer, answer.VALUE)

    def span(self, answer: Answer) -> tuple[Any, Any]:
        """Bounds of it that an answer gives.

        Raises:
            Unreachable: it gives none.
        """
        ends = getattr(answer, "enclosure", None) or answer.span()
        if ends is None or (answer.label is Label.APPROXIMATE and not self.approximate):
            raise Unreachable(str(answer.reason or f"the {self.name} is not known there"))
        return ends

    def measured(self, bias: Expr, limit: Rational) -> arb:
        """Negative exactly where it is within the limit, at the precision at work.

        Raises:
            Diverging: the sums have no end.
            Unreachable: it is not known.
        """
        if self.gauge is not None:
            return arb(self.gauge(self, bias, limit))
        if self.ratio is None:
            value = arb(float(self.span(_certain_answer(self, bias))[0])) / rational(limit)
        else:
            s, ratio = self.summed(bias), self.ratio
            value = to_arb(at_precision(lambda: ratio(self, s, limit), ctx.prec))
        if value > 0:
            return value.log()
        return arb.neg_inf() if value.is_zero() else arb.nan()

    def within(self, bias: Expr, limit: Rational, strict: bool = False) -> bool:
        """Whether it is at most the limit, or below it; Unreachable where neither is proved."""

        def inside() -> bool | None:
            ball = self.measured(bias, limit)
            return bool(ball < 0) if ball < 0 or ball > 0 else None

        if self.ratio is not None:
            try:
                proved = decide(inside, BITS)
            except Diverging:
                return False
            if proved is not None:
                return proved
        answer, goal = _certain_answer(self, bias), Fraction(int(limit.p), int(limit.q))
        low, high = self.span(answer)
        if high < goal or (high == goal and not strict):
            return True
        if low > goal or (low == goal and strict):
            return False
        raise Unreachable(str(answer.reason or f"the {self.name} is {limit} as far as known"))


@lru_cache(maxsize=256)
def _certain_answer(asked: Quantity, bias: Expr) -> Answer:
    """The answer, once for the two limits of an equality; what more time may settle is not kept."""
    answer = asked.answer(bias)
    if answer.status is Status.UNKNOWN or (answer.reason and answer.reason.code is Code.BUDGET):
        raise Unreachable(str(answer.reason))
    return answer


def _windowed(asked: Quantity, s: Series, limit: Rational) -> Ball:
    question = WindowQuestion.read(**asked.options)
    if question.error >= 2 * question.value_bound:
        return fmpq(0)
    return question.excess(s.tail(int(limit)), s.total())


def _layered(asked: Quantity, bias: Expr, limit: Rational) -> float:
    if limit > MAX_LAGS:
        raise Unreachable(f"beyond the {MAX_LAGS} distances of the model in float64")
    options = asked.options
    kernel = step_weights(bias, int(limit), total_of(asked.summed(bias)))
    inside = convolved(kernel, int(options["layers"]), float(exact(options["mixing"])))[-1]
    return float(exact(options["q"])) - float(inside)


def _dearest(asked: Quantity) -> float:
    """The price of the dearest key within reach."""
    part = exact(asked.options["share"])
    return float(exact(asked.options["advantage"])) - math.log(part / (1 - part))


def _farthest(asked: Quantity) -> Rational | None:
    price = _dearest(asked)
    return Rational(1 + math.floor(math.exp(price) + 1e-6)) if price < 30 else None


def _reached(asked: Quantity, bias: Expr, limit: Rational) -> float:
    price = price_of_distance(asked.row(bias), int(limit), length=asked.size)
    if price.value is None:
        raise Unreachable(str(price.reason))
    return _dearest(asked) - price.value


def _rounded(asked: Quantity, bias: Expr, limit: Rational) -> Ball:
    if bias.subs(n, int(limit)) is S.NegativeInfinity:
        return arb.neg_inf()
    p, options = compile_ball(bias), asked.options
    goal, _ = threshold(_dtype(options), bool(options["flush_to_zero"]))
    return to_arb(p({n: fmpq(int(limit))})) - to_arb(p({n: fmpq(0)})) - arb(goal).log()


def _dtype(options: Mapping[str, object]) -> str:
    return dtype_horizon(-n, options["dtype"]).dtype


def _resolved_in_order(asked: Quantity, p: Expr, a: Symbol) -> bool:
    r"""If exp(p) is convex in n, R falls as tails grow (ours): as `R = P^T A P`, A half the second
    difference, dR = 2 Cov_P(dp, A P), where A P is positive at 0 and at most 0 beyond. That is so
    for p = -u f + h, f of n alone with a completely monotone derivative; a window of w tokens has
    1/w^2."""
    if asked.size is not None:
        return False
    if isinstance(p, sympy.Piecewise):
        return bool(p.args[0][0] == 0)
    moving = sympy.Add(*(term for term in sympy.Add.make_args(p) if term.has(n)))
    _, f = moving.as_independent(n)
    try:
        return not f.has(a) and has_monotone_slope(f, 0)
    except Unrecognised:
        return False


TARGETS: dict[str, Quantity] = {
    one.name: one
    for one in (
        Quantity(
            "trf",
            theoretical_receptive_field,
            {"eps": "1/100", "length": None},
            lambda options: f"TRF({share(exact(options['eps']))})",
            ratio=lambda asked, s, limit: (
                s.tail(int(limit)) / to_arb(s.total() * rational(exact(asked.options["eps"])))
            ),
            closed=lambda _: False,
        ),
        Quantity(
            "leak",
            leak,
            {"trained": 2048, "tested": None},
            lambda options: f"leak beyond {plural(int(options['trained']), 'token')}",
            lambda options: f"leak({', '.join(str(k) for k in options.values() if k is not None)})",
            ratio=lambda asked, s, limit: (
                s.tail(int(asked.options["trained"])) / to_arb(s.total() * rational(limit))
            ),
            relation="<=",
            integer=False,
            better=-1,
            keys="tested",
        ),
        Quantity(
            "window",
            certified_window,
            {
                "error": "1/100",
                "logit_bound": 1,
                "value_bound": 1,
                "sinks": 0,
                "row": None,
                "temper": None,
            },
            lambda options: f"certified window for an error of {exact(options['error'])}",
            lambda options: f"window({exact(options['error'])})",
            ratio=_windowed,
            better=-1,
            keys="row",
        ),
        Quantity(
            "layered",
            layered_receptive_field,
            {"layers": MUST, "mixing": "2/5", "q": "99/100", "length": None},
            lambda options: f"receptive field of {plural(int(options['layers']), 'layer')}",
            lambda options: f"layered({options['layers']})",
            gauge=_layered,
            approximate=True,
        ),
        Quantity(
            "reach",
            reach,
            {"advantage": MUST, "share": "1/2", "length": None},
            lambda options: f"reach of {exact(options['advantage'])} nats",
            lambda options: f"reach({exact(options['advantage'])})",
            gauge=_reached,
            ordered=lambda *_: False,  # light tails make far keys dear, heavy ones all keys
            most=_farthest,
            relation=">=",
        ),
        Quantity(
            "horizon",
            dtype_horizon,
            {"dtype": "bf16", "flush_to_zero": False},
            lambda options: f"horizon in {_dtype(options)}",
            lambda options: f"horizon({_dtype(options)})",
            gauge=_rounded,
            closed=lambda options: not options["flush_to_zero"],
            keys="",
        ),
        Quantity(
            "resolution",
            attention_resolution,
            {"scale": None, "length": None},
            lambda _: "attention resolution",
            ordered=_resolved_in_order,
            relation=">=",
            integer=False,
            grows=-1,
        ),
    )
}
"""Every quantity by its name."""


def quantity(name: str, given: Mapping[str, object]) -> Quantity:
    """A quantity with those of the given options that are its own.

    Raises:
        InputError: a name that is not known, an option that is missing or out of range.

    >>> quantity("horizon", {"dtype": "fp16", "eps": "1/10"}).words()
    'horizon in fp16'
    """
    one_of(name, "quantity", TARGETS)
    usual = TARGETS[name].options
    options = {
        k: natural(given[k], k, 0 if k == "sinks" else 1) if k in COUNTS else given[k]
        for k in usual
        if given.get(k) is not None
    }
    missing = [k for k, default in usual.items() if default is MUST and k not in options]
    if missing:
        raise InputError(f"a target on {name} needs {missing[0]}, as {missing[0]}=4")
    chosen = replace(TARGETS[name], options={**usual, **options})
    chosen.answer(-n)  # an option out of range is refused now, with its own message
    return chosen


@dataclass(frozen=True)
class Target:
    """A quantity, a relation and a limit, such as TRF(1 %) = 512.

    Args:
        quantity, relation, limit: as they are called.
        text: the target of which this is one bound; its own words if empty.
    """

    quantity: Quantity
    relation: str
    limit: Rational
    text: str = ""

    def __str__(self) -> str:
        return self.text or f"{self.quantity.words()} {self.relation} {self.number}"

    @property
    def number(self) -> str:
        """The limit, as it is read at a glance."""
        return str(self.limit) if self.limit.q < SHORT else share(self.limit)

    @property
    def wanted(self) -> bool:
        """Of a bound, whether the quantity must be within the limit, or must not."""
        return self.relation[0] == "<"

    @property
    def strict(self) -> bool:
        """Whether the limit itself is beyond it."""
        return self.relation in ("<", ">=")

    @property
    def trivial(self) -> bool:
        """Whether it bounds a count of tokens by 0."""
        return self.quantity.integer and self.limit < 1

    def skipped(self, p: Expr) -> bool:
        """Whether the formula shows that an integer is reached at no parameter: its last key has
        no weight, or the horizon's next one the same."""
        rounded = self.quantity.name == "horizon"
        if self.relation != "=" or (self.quantity.ratio is None and not rounded):
            return False
        last, beyond = (p.subs(n, self.limit - k) for k in (1, 0))
        return last is S.NegativeInfinity or bool(rounded and (last - beyond).expand() == 0)

    def bounds(self) -> Iterator[Target]:
        """What must hold: Q <= limit or Q > limit of counts, any inequality of shares."""
        step = int(self.relation in "<>")
        if not self.quantity.integer:
            yield self
        elif self.relation[0] in "<=":
            yield replace(self, relation="<=", limit=self.limit - step, text=str(self))
        if self.quantity.integer and self.relation[0] in ">=":
            yield replace(self, relation=">", limit=self.limit - 1 + step, text=str(self))


_RELATION = re.compile(r"\s*(<=|>=|==|<|>|=)?\s*([^<>=]+)")


def read_targets(asked: Quantity, given: object) -> tuple[Target, ...]:
    """The targets that a number or a text such as `">=1024"` or `">=64, <=128"` states.

    Raises:
        InputError: no relation or no number, a limit out of range, equality with a share.

    >>> [str(t) for t in read_targets(quantity("trf", {}), ">=64, <=128")]
    ['TRF(1 %) >= 64', 'TRF(1 %) <= 128']
    """
    name, targets = asked.name, []
    for part in given.split(",") if isinstance(given, str) else [given]:
        read = _RELATION.fullmatch(part) if isinstance(part, str) else None
        if isinstance(part, str) and read is None:
            raise InputError(
                f"{name} {part[:40]!r}: accepted: a number, or one after <=, >=, <, >, ="
            )
        relation, number = read.groups() if read else (None, part)
        relation = str({"==": "=", None: asked.relation}.get(relation, relation))
        if asked.integer:
            limit, most = Rational(natural(number, name)), asked.most(asked)
            if relation[0] in ">=" and most is not None and limit > most:
                raise InputError(f"{asked.words()} is at most {most}, whatever the bias")
        else:
            limit = exact(number, name)
            if not 0 < limit < 1:
                raise InputError(f"{name} {number}: accepted is a number in (0, 1)")
            if relation == "=":
                raise InputError(
                    f"{name} = {number}: a share is met exactly by no rational parameter as a "
                    "rule; accepted: <=, <, >=, >"
                )
        targets.append(Target(asked, relation, limit))
    return tuple(targets)
