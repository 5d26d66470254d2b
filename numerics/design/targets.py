"""What a target may speak of: certified quantities, a record each.

A quantity with its options answers two questions about a bias: what it is (`answer`, its own public
function), and whether it is at most a limit (`within`, proved either way). A `gauge`, negative
exactly where the quantity is within the limit, guesses where that changes; nothing that is shown
rests on it. A new quantity is one more record in `TARGETS`; one that rests on what this room may
not import is `registered` where it stands.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

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
from farfield.numerics.outcomes import Unrecognised
from farfield.numerics.price import price_of_distance, reach
from farfield.numerics.receptive_field import at_precision, obstacle, theoretical_receptive_field
from farfield.numerics.resolution import attention_resolution
from farfield.numerics.search import decide
from farfield.numerics.summation.monotone import has_monotone_slope
from farfield.numerics.summation.series import Series, series
from farfield.numerics.windows.question import WindowQuestion
from farfield.numerics.windows.window import certified_window
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.answers.answer import Answer, Code, InputError, Status
from farfield.theory.answers.names import one_of
from farfield.theory.answers.number import exact, natural, plural, share
from farfield.theory.functions.balls import rational, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.values import compile_ball

BITS = (64, 128, 512, 2_048)
COUNTS = ("length", "trained", "tested", "row", "sinks", "layers")
"""Options that count tokens or layers."""


class Diverges(Exception):
    """The series has no sum, so that a quantity of the whole series does not exist."""


@dataclass(frozen=True)
class Quantity:
    """A certified quantity of a bias; its fields are the options it is asked with.

    `ask` is the public function, called with a bias and the options. `relation` is what a plain
    number means; `integer` says whether it counts tokens. `grows` is 1 where it grows as tails get
    heavier and -1 where it falls. `better` is 1 where more of it is wanted and -1 where less is.
    `closed`: the parameters with Q <= limit contain their own end. `approximate`: it is a model in
    float64. `per_head`: it speaks of one head, not of all heads of a model together. `keys`
    names the option that holds the keys of a row, `of` and `noun` say it.
    """

    name: ClassVar[str]
    ask: ClassVar[Callable[..., Answer]]
    relation: ClassVar[str] = "="
    integer: ClassVar[bool] = True
    grows: ClassVar[int] = 1
    better: ClassVar[int] = 1
    closed: ClassVar[bool] = True
    approximate: ClassVar[bool] = False
    per_head: ClassVar[bool] = True
    keys: ClassVar[str] = "length"
    of: ClassVar[str] = "in"
    noun: ClassVar[str] = "key"

    def __post_init__(self) -> None:
        self.answer(-n)  # an option out of range is refused now, with its own message

    @property
    def size(self) -> int | None:
        """The keys of the row it is asked for; None for the whole series."""
        given = getattr(self, self.keys, None)
        return None if given is None else int(given)

    @property
    def whole(self) -> bool:
        """Whether it speaks of the whole series, so that a divergent one has none."""
        return bool(self.keys) and self.size is None

    @property
    def most(self) -> Rational | None:
        """What no bias exceeds; None where there is no such bound."""
        return None

    def words(self) -> str:
        """The quantity as a reader sees it."""
        row = "" if self.size is None else f" {self.of} a row of {plural(self.size, self.noun)}"
        return self.phrase() + row

    def phrase(self) -> str:
        """The same without its row."""
        raise NotImplementedError

    def brief(self) -> str:
        """The same as the header of a column."""
        return self.words()

    def answer(self, bias: Any) -> Answer:
        """The quantity of a bias, afresh; of an `Encoding` where it is not of one head."""
        return self.ask(self.within_row(bias), **vars(self))

    def within_row(self, bias: Expr) -> Expr:
        """A bias that masks what lies beyond the row: the tail of a wave is slow to sum."""
        if self.size is None or not bias.has(sympy.sin, sympy.cos):
            return bias
        return sympy.Piecewise((bias, n < self.size), (S.NegativeInfinity, True))

    def summed(self, bias: Expr) -> Series:
        """The series of a bias, or its row.

        Raises:
            Diverges: it has no sum.
        """
        s = series(self.within_row(bias))
        if self.size is not None:
            return s.truncated(self.size)
        if reason := obstacle(s):
            if reason.code is Code.DIVERGES:
                raise Diverges
            raise Unreachable(reason.sentence)
        return s

    def number(self, bias: Expr) -> float | None:
        """Its value afresh; None where that is not known."""
        found = self.answer(bias)
        value: float | None = getattr(found, found.VALUE)
        return value

    def within(self, bias: Expr, limit: Rational, strict: bool = False) -> bool:
        """Whether it is at most the limit, or below it; Unreachable where neither is proved."""
        found = _answered(self, bias)
        try:
            return bool(found < limit) if strict else bool(found <= limit)
        except ValueError:
            raise Unreachable(str(found.reason or f"{self.name} is not known there")) from None

    def gauge(self, bias: Expr, limit: Rational) -> Any:
        """Negative exactly where it is within the limit, at the precision at work, unproved."""
        raise NotImplementedError

    def skips(self, p: Expr, limit: int) -> bool:
        """Whether the formula shows that this integer is reached at no parameter."""
        return False

    def ordered(self, p: Expr, a: Symbol) -> bool:
        """Whether it follows the order of the tails."""
        return True


@lru_cache(maxsize=256)
def _answered(asked: Quantity, bias: Expr) -> Answer:
    """The answer, once for the two limits of an equality; what more time may settle is not kept."""
    found = asked.answer(bias)
    if found.status is Status.UNKNOWN or (found.reason and found.reason.code is Code.BUDGET):
        raise Unreachable(str(found.reason))
    return found


def _log_of(ratio: Callable[[], Any]) -> arb:
    """The logarithm of a ratio of sums: minus infinity where it is 0, nan where it may be."""
    value = to_arb(at_precision(ratio, ctx.prec))
    if value > 0:
        return value.log()
    return arb.neg_inf() if value.is_zero() else arb.nan()


class Mass(Quantity):
    """A quantity that rests on sums alone: it is within a limit where a ball is negative."""

    def ball(self, bias: Expr, limit: Rational) -> arb:
        """Negative exactly where the quantity is within the limit, 0 where it is at the limit.

        Raises:
            Diverges: the sums have no end.
        """
        raise NotImplementedError

    def within(self, bias: Expr, limit: Rational, strict: bool = False) -> bool:
        """By the sign of the ball; by the whole answer where no precision tells it."""

        def told() -> bool | None:
            ball = self.ball(bias, limit)
            return bool(ball < 0) if ball < 0 or ball > 0 else None

        try:
            found = decide(told, BITS)
        except Diverges:
            return False
        return super().within(bias, limit, strict) if found is None else found

    def gauge(self, bias: Expr, limit: Rational) -> Any:
        return self.ball(bias, limit)

    def skips(self, p: Expr, limit: int) -> bool:
        return self.integer and bool(p.subs(n, limit - 1) is S.NegativeInfinity)


@dataclass(frozen=True)
class Field(Mass):
    """TRF(eps) of the whole series, or of a row."""

    name = "trf"
    ask = staticmethod(theoretical_receptive_field)
    closed = False
    of = "of"

    eps: Any = "1/100"
    length: Any = None

    def phrase(self) -> str:
        return f"TRF({share(exact(self.eps))})"

    def ball(self, bias: Expr, limit: Rational) -> arb:
        s, goal = self.summed(bias), rational(exact(self.eps))
        return _log_of(lambda: s.tail(int(limit)) / to_arb(s.total() * goal))


@dataclass(frozen=True)
class LeakTarget(Mass):
    """The share of the prior mass beyond a training length."""

    name = "leak"
    ask = staticmethod(lambda bias, trained, tested: leak(bias, trained, tested))
    relation = "<="
    integer = False
    better = -1
    keys = "tested"

    trained: Any = 2048
    tested: Any = None

    def phrase(self) -> str:
        return f"leak beyond {plural(int(self.trained), 'token')}"

    def brief(self) -> str:
        row = "" if self.tested is None else f", {self.tested}"
        return f"leak({self.trained}{row})"

    def ball(self, bias: Expr, limit: Rational) -> arb:
        s, goal = self.summed(bias), rational(limit)
        return _log_of(lambda: s.tail(int(self.trained)) / to_arb(s.total() * goal))


@dataclass(frozen=True)
class WindowTarget(Mass):
    """The certified window for an error budget."""

    name = "window"
    ask = staticmethod(certified_window)
    better = -1
    keys = "row"

    error: Any = "1/100"
    logit_bound: Any = 1
    value_bound: Any = 1
    sinks: Any = 0
    row: Any = None
    temper: Any = None

    def phrase(self) -> str:
        return f"certified window for an error of {exact(self.error)}"

    def brief(self) -> str:
        return f"window({exact(self.error)})"

    def ball(self, bias: Expr, limit: Rational) -> arb:
        asked = WindowQuestion.read(**vars(self))
        if asked.error >= 2 * asked.value_bound:
            return arb(-1)
        s = self.summed(bias)

        def ratio() -> arb:
            tail = to_arb(s.tail(int(limit)))
            return tail / (asked.share() * (s.total() - tail))

        return _log_of(ratio)


@dataclass(frozen=True)
class Layered(Quantity):
    """The receptive field of several layers, a model in float64."""

    name = "layered"
    ask = staticmethod(layered_receptive_field)
    approximate = True

    layers: Any
    mixing: Any = "2/5"
    q: Any = "99/100"
    length: Any = None

    def phrase(self) -> str:
        return f"receptive field of {plural(int(self.layers), 'layer')}"

    def brief(self) -> str:
        return f"layered({self.layers})"

    def gauge(self, bias: Expr, limit: Rational) -> Any:
        if limit > MAX_LAGS:
            raise Unreachable(f"beyond the {MAX_LAGS} distances of the model in float64")
        kernel = step_weights(bias, int(limit), total_of(self.summed(bias)))
        inside = convolved(kernel, int(self.layers), float(exact(self.mixing)))[-1]
        return arb(float(exact(self.q)) - float(inside))


@dataclass(frozen=True)
class ReachTarget(Quantity):
    """How many distances an advantage reaches: it rises and falls again as tails get heavier."""

    name = "reach"
    ask = staticmethod(reach)
    relation = ">="

    advantage: Any
    share: Any = "1/2"
    length: Any = None

    @property
    def dearest(self) -> float:
        """The price of the dearest key within reach."""
        part = exact(self.share)
        return float(exact(self.advantage)) - math.log(part / (1 - part))

    @property
    def most(self) -> Rational | None:
        price = self.dearest
        return Rational(1 + math.floor(math.exp(price) + 1e-6)) if price < 30 else None

    def phrase(self) -> str:
        return f"reach of {exact(self.advantage)} nats"

    def brief(self) -> str:
        return f"reach({exact(self.advantage)})"

    def ordered(self, p: Expr, a: Symbol) -> bool:
        """Light tails make far keys dear, heavy ones all keys."""
        return False

    def gauge(self, bias: Expr, limit: Rational) -> Any:
        found = price_of_distance(self.within_row(bias), int(limit), length=self.length)
        if found.value is None:
            raise Unreachable(str(found.reason))
        return arb(self.dearest - found.value)


@dataclass(frozen=True)
class HorizonTarget(Quantity):
    """The distance from which on weights round to 0 in a floating-point type."""

    name = "horizon"
    ask = staticmethod(dtype_horizon)
    keys = ""

    dtype: Any = "bf16"
    flush_to_zero: Any = False

    @property
    def closed(self) -> bool:  # type: ignore[override]
        return not self.flush_to_zero

    def phrase(self) -> str:
        return f"horizon in {dtype_horizon(-n, self.dtype).dtype}"

    def brief(self) -> str:
        return f"horizon({dtype_horizon(-n, self.dtype).dtype})"

    def gauge(self, bias: Expr, limit: Rational) -> Any:
        if bias.subs(n, int(limit)) is S.NegativeInfinity:
            return arb.neg_inf()
        p = compile_ball(bias)
        kind = dtype_horizon(-n, self.dtype).dtype
        goal, _ = threshold(kind, bool(self.flush_to_zero))
        return to_arb(p({n: fmpq(int(limit))})) - to_arb(p({n: fmpq(0)})) - arb(goal).log()

    def skips(self, p: Expr, limit: int) -> bool:
        last, here = (p.subs(n, k) for k in (limit - 1, limit))
        return bool(last is S.NegativeInfinity or (last - here).expand() == 0)


@dataclass(frozen=True)
class ResolutionTarget(Quantity):
    """The attention resolution, of ever longer rows or of one."""

    name = "resolution"
    ask = staticmethod(attention_resolution)
    relation = ">="
    integer = False
    grows = -1
    noun = "token"

    scale: Any = None
    length: Any = None

    def phrase(self) -> str:
        return "attention resolution"

    def ordered(self, p: Expr, a: Symbol) -> bool:
        r"""If exp(p) is convex in n, R falls as tails grow (ours): as `R = P^T A P`, A half the
        second difference, dR = 2 Cov_P(dp, A P), where A P is positive at 0 and at most 0 beyond.
        That is so for p = -u f + h, f of n alone with a completely monotone derivative; a window
        of w tokens has 1/w^2."""
        if self.length is not None:
            return False
        if isinstance(p, sympy.Piecewise):
            return p.args[0][0] == 0
        moving = sympy.Add(*(term for term in sympy.Add.make_args(p) if term.has(n)))
        _, f = moving.as_independent(n, as_Add=False)
        try:
            return not f.has(a) and has_monotone_slope(f, 0)
        except Unrecognised:
            return False

    def within(self, bias: Expr, limit: Rational, strict: bool = False) -> bool:
        found = self.answer(bias)
        ends = getattr(found, "enclosure", None)
        if ends is not None:
            low, high = (Rational(*float(end).as_integer_ratio()) for end in ends)
            if high < limit or (not strict and high <= limit):
                return True
            if low > limit or (strict and low >= limit):
                return False
        raise Unreachable(str(found.reason or f"the resolution is {limit} to all digits known"))

    def gauge(self, bias: Expr, limit: Rational) -> Any:
        value = self.number(bias)
        if value is None:
            raise Unreachable("the resolution is not known there")
        return _log_of(lambda: arb(value) / rational(limit))


TARGETS: dict[str, type[Quantity]] = {
    kind.name: kind
    for kind in (
        Field,
        LeakTarget,
        WindowTarget,
        Layered,
        ReachTarget,
        HorizonTarget,
        ResolutionTarget,
    )
}
"""Every quantity by its name."""


def registered(kind: type[Quantity]) -> type[Quantity]:
    """Makes a quantity of another room one that targets may speak of."""
    TARGETS[kind.name] = kind
    return kind


def options(kind: type[Quantity]) -> dict[str, bool]:
    """The options of a quantity, and whether each must be given.

    >>> options(TARGETS["layered"])["layers"], options(TARGETS["trf"])
    (True, {'eps': False, 'length': False})
    """
    return {f.name: f.default is dataclasses.MISSING for f in dataclasses.fields(kind)}


def quantity(name: str, given: Mapping[str, Any]) -> Quantity:
    """A quantity with those of the given options that are its own.

    Raises:
        InputError: a name that is not known, an option that is missing or out of range.

    >>> quantity("horizon", {"dtype": "fp16", "eps": "1/10"}).words()
    'horizon in fp16'
    """
    one_of(name, "quantity", TARGETS)
    own = {
        k: natural(given[k], k, 0 if k == "sinks" else 1) if k in COUNTS else given[k]
        for k in options(TARGETS[name])
        if given.get(k) is not None
    }
    missing = [k for k, needed in options(TARGETS[name]).items() if needed and k not in own]
    if missing:
        raise InputError(f"a target on {name} needs {missing[0]}, as {missing[0]}=4")
    return TARGETS[name](**own)


@dataclass(frozen=True)
class Target:
    """A quantity, a relation and a limit, such as TRF(1 %) = 512."""

    quantity: Quantity
    relation: str
    limit: Rational

    def __str__(self) -> str:
        return f"{self.quantity.words()} {self.relation} {self.limit}"

    def events(self) -> Iterator[Event]:
        """What must hold, or must not."""
        if self.quantity.integer:
            step = int(self.relation in "<>")
            if self.relation[0] in "<=":
                yield Event(self, self.limit - step, False, True)
            if self.relation[0] in ">=":
                yield Event(self, self.limit - 1 + step, False, False)
        else:
            yield Event(self, self.limit, self.relation in ("<", ">="), self.relation[0] == "<")


@dataclass(frozen=True)
class Event:
    """Q <= limit, or Q < limit, that a target wants to hold or not to hold."""

    target: Target
    limit: Rational
    strict: bool
    wanted: bool

    @property
    def quantity(self) -> Quantity:
        """Q."""
        return self.target.quantity


_RELATION = re.compile(r"\s*(<=|>=|==|<|>|=)?\s*([^<>=]+)")


def read_targets(asked: Quantity, given: Any) -> tuple[Target, ...]:
    """The targets that a number or a text such as `">=1024"` or `">=64, <=128"` states.

    Raises:
        InputError: no relation or no number, a limit out of range, equality with a share.

    >>> [str(t) for t in read_targets(quantity("trf", {}), ">=64, <=128")]
    ['TRF(1 %) >= 64', 'TRF(1 %) <= 128']
    """
    parts = given.split(",") if isinstance(given, str) else [given]
    found = []
    for part in parts:
        read = _RELATION.fullmatch(part) if isinstance(part, str) else None
        if isinstance(part, str) and read is None:
            raise InputError(
                f"{asked.name} {part[:40]!r}: accepted: a number, or one after <=, >=, <, >, ="
            )
        relation, number = read.groups() if read else (None, part)
        relation = str({"==": "=", None: asked.relation}.get(relation, relation))
        if asked.integer:
            limit = Rational(natural(number, asked.name))
            if relation[0] in ">=" and asked.most is not None and limit > asked.most:
                raise InputError(f"{asked.words()} is at most {asked.most}, whatever the bias")
        else:
            limit = exact(number, asked.name)
            if not 0 < limit < 1:
                raise InputError(f"{asked.name} {number}: accepted is a number in (0, 1)")
            if relation == "=":
                raise InputError(
                    f"{asked.name} = {number}: a share is met exactly by no rational parameter as "
                    "a rule; accepted: <=, <, >=, >"
                )
        found.append(Target(asked, relation, limit))
    return tuple(found)
