r"""The price of distance: the logit advantage that a far key needs; how far an advantage reaches.

One query sees keys at distances `0 <= k < N` with prior weights `b_k = exp(p(k))`. The *price* of
distance n has one formula for a row of N keys and one for the whole series.

    pi_N(n) = log((B_N - b_n) / b_n),        pi(n) = log((B - b_n) / b_n).

The price is infinite where the series diverges. The *advantage* g of a key is its logit less the
prior-weighted log-mean-exp of the other logits. The attention on the key is `sigma(g - pi)`, the
logistic function of the advantage less the price. So an advantage g gives a share
alpha of the attention, or more, to the distances with

    pi(n) + log(alpha / (1 - alpha)) <= g,

which are *within reach*. They are the n with `p(n) >= log B - log(1 + e^{g'})`, where
`g' = g - log(alpha / (1 - alpha))`, found by `levels`. A single distance whose ball meets the level
is decided by its own price. The weights of the other keys are summed without the key's own: no
price is a difference of sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import sympy
from flint import arb, fmpq
from sympy import Expr, S

from farfield.numerics.float_rows import head_prices, in_floats, row_instead
from farfield.numerics.levels import BeyondCounting, SuperlevelSet, merged
from farfield.numerics.questions import (
    BUDGET_S,
    Cases,
    Fields,
    HeadAnswer,
    decisive,
    of_row,
    per_head,
    resolve,
    row_of,
    summed,
    unknown,
    upper_end,
)
from farfield.numerics.search import Bracket, Exact, at_precision, decide, doubled, settled
from farfield.numerics.summation.series import Series
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.answers.answer import Code, InputError, Label, Reason, Status
from farfield.theory.answers.notation import listed, shortened
from farfield.theory.answers.number import decimal, exact, inside, natural, plural, without_noun
from farfield.theory.answers.number import share as share_text
from farfield.theory.answers.number import tokens as tokens_text
from farfield.theory.functions.balls import Ball, Undefined, outward, rational
from farfield.theory.functions.nodes import n
from farfield.theory.values import compile_ball

PRICE_BITS = 58  # correct bits of a price, absolute or relative, whichever is the coarser
MAX_BITS = 8_192  # at which a price is settled or given up
TIE_BITS = 512  # at which a price and an advantage that still agree count as a tie
MAX_COUNT_BITS = 1_024  # of a distance that is counted
MAX_BALLS = 200_000  # balls of the bias that decide one reach
MAX_RUNS = 64  # runs of distances that an answer lists


@dataclass(frozen=True, repr=False)
class DistancePrice(HeadAnswer):
    """The price of a distance: the nats of logit that a key there needs for half of the attention.

    Fields:
        formula: the bias, None where several heads are aggregated.
        distance: from the query to the key; 0 is the query's own key.
        length: keys of the row, None for the whole series.
        value: the price, the cheapest head's. It is infinite where the series diverges or the key
            has no weight, minus infinite where no other key has any. It is None where it is not
            known.
        enclosure: floats around it.
        heads: one answer a head where there are several; the cheapest speaks for all.
        label: `certified`; `theorem` where the price is infinite; `approximate` where only float64
            sums were in reach.
    """

    OUTSIDE = "no price belongs to a distance alone: {why}."

    distance: int
    length: int | None = None
    value: float | None = None
    enclosure: tuple[float, float] | None = None

    def _cases(self) -> Cases:
        return (
            (
                self.status is Status.ENCLOSED,
                "the key at distance {n}{row} costs more than float64 holds.",
            ),
            (self.value is None, "what the key at distance {n}{row} costs is not known."),
            (
                self.value == -math.inf,
                "the key at distance {n}{row} has all of the attention at any logit{cheapest}.",
            ),
            (
                self.because(Code.DIVERGES),
                "as rows grow, no fixed advantage keeps half of the attention at distance {n}.",
            ),
            (
                self.value == math.inf,
                "no advantage reaches the key at distance {n}{row}: it has no weight.",
            ),
            (
                True,
                "half of the attention on the key at distance {n}{row} costs a logit advantage of "
                "{value} nats{cheapest}.",
            ),
        )

    def _values(self) -> dict[str, object]:
        return {
            "n": self.distance,
            "row": of_row(self.length),
            "value": decimal(self.value),
            "cheapest": self.among("the cheapest head"),
        }

    def _facts(self) -> dict[str, object]:
        return {"price": decimal(self.value, 10)} | super()._facts()


@dataclass(frozen=True, repr=False)
class Reach(HeadAnswer):
    """The distances that an advantage reaches.

    Fields:
        formula: the bias, None where several heads are aggregated.
        advantage: in nats of logit, exact.
        share: of the attention that the key is to have, exact.
        length: keys of the row, None for the whole series.
        tokens: how many distances are within reach, the most of any head; None where only a bracket
            is known, or nothing.
        farthest: the largest of them, of any head; None if there is none.
        answer: `Exact` or `Bracket`; None where nothing is known.
        intervals: the distances within reach as runs (first, last), at most 64 of them.
        heads: one answer a head where there are several.
        label: `certified`; `theorem` for a series that diverges; `approximate` where only float64
            sums were in reach.
    """

    VALUE = "tokens"
    OUTSIDE = "no reach belongs to the distance alone: {why}."

    advantage: sympy.Rational
    share: sympy.Rational
    length: int | None = None
    tokens: int | None = None
    farthest: int | None = None
    answer: Exact | Bracket | None = None
    intervals: tuple[tuple[int, int], ...] = ()

    def span(self) -> tuple[float, float] | None:
        return self.answer.span() if isinstance(self.answer, Bracket) else super().span()

    def head_text(self) -> str:
        return without_noun(tokens_text(self.tokens))

    def _cases(self) -> Cases:
        return (
            (
                self.status is Status.UNKNOWN,
                "how far an advantage of {g} nats reaches{row} is not known.",
            ),
            (
                self.tokens is None,
                "an advantage of {g} nats reaches {count}{row}, each with {share} of the "
                "attention{head}.",
            ),
            (
                self.tokens,
                "a key that leads by {g} nats has {share} of the attention up to {far} "
                "back{row}{head}{holes}.",
            ),
            (
                self.because(Code.DIVERGES),
                "as rows grow, an advantage of {g} nats comes to reach no key: the exp-series "
                "diverges{head}.",
            ),
            (
                True,
                "an advantage of {g} nats gives no key {share} of the attention{row}{head}.",
            ),
        )

    def _values(self) -> dict[str, object]:
        holes = self.among("the head that reaches farthest")
        if not holes and self.farthest is not None and self.tokens != self.farthest + 1:
            holes = f", at {tokens_text(self.tokens).replace('token', 'distance')} in all"
        return {
            "g": _number(self.advantage),
            "share": "half" if self.share == S.Half else share_text(self.share),
            "row": of_row(self.length),
            "far": tokens_text(self.farthest),
            "count": tokens_text(None) if self.answer is None else self.answer.text(),
            "head": "" if self.tokens else self.among("any head"),
            "holes": holes,
        }

    def _facts(self) -> dict[str, object]:
        parts = [str(a) if a == b else f"{a} to {b}" for a, b in self.intervals]
        among = ", the query's own among them" if parts and self.intervals[0][0] == 0 else ""
        return {
            "tokens": None if self.answer is None else self.answer.text() + among,
            "distances": listed(parts) if len(parts) > 1 else None,
        } | super()._facts()

    @property
    def gain(self) -> fmpq:
        """g."""
        return rational(self.advantage)

    @property
    def against(self) -> fmpq:
        """(1 - alpha) / alpha."""
        return rational((1 - self.share) / self.share)

    def level(self, total: object) -> arb:
        """log B - log(1 + e^{g'}): what p must be at least."""
        price = arb(self.gain) + arb(self.against).log()
        most = price.max(arb(0))
        return arb(total).log() - most - (-abs(price)).exp().log1p()


def _number(value: sympy.Rational) -> str:
    return decimal(float(value)) if abs(value) < 10**300 else shortened(str(value), 20)


def price_of_distance(
    f: object,
    distance: object,
    *,
    length: object = None,
    budget_s: float = BUDGET_S,
    **values: object,
) -> DistancePrice:
    """The logit advantage with which the key at a distance gets half of the attention (ours).

    Args:
        f: a formula in `n`, a SymPy expression, a name of the catalogue or an `Encoding`.
        distance: from the query to the key, at least 0; below `length` where that is given.
        length: keys of the row; None for the whole series, the limit of ever longer rows.
        budget_s: seconds; whatever is open after them stays unknown.
        **values: parameters and options, as `farfield.theory.encodings.encoding` takes them.

    Returns:
        A `DistancePrice`: `log((B - b_n) / b_n)`, of the row or of the whole series.

    Raises:
        InputError: a distance or length that is no integer in range; free parameters; terms that
            are undefined or infinite.

    >>> price_of_distance("-40*n", 0).value
    -40.0
    >>> round(price_of_distance("-2*log(1+n)", 500).value, 6)
    12.93091
    >>> price_of_distance("-log(1+n)", 500).value
    inf
    >>> round(price_of_distance("-log(1+n)", 500, length=10**9).value, 6)
    9.275242
    """
    at = natural(distance, "distance", 0)
    row = row_of(length)
    subject = resolve(f, values, row)
    if row is not None and at >= row:
        raise InputError(
            f"distance {at} is outside a row of {plural(row, 'key')}: accepted are 0 to {row - 1}"
        )
    reason = "the exp-series diverges: the other keys come to outweigh any one of them"
    return per_head(
        subject,
        DistancePrice(None, at, row),
        lambda bias: _price_of_bias(bias, at, row),
        decisive(
            lambda head: -math.inf if head.value is None else -head.value,
            lambda head: head.value == -math.inf,
        ),
        divergent=infinite(math.inf, Code.DIVERGES, reason),
        in_row=(lambda size: price_of_distance(subject, at, length=max(size, 2 * at)))
        if row is None
        else None,
        budget_s=budget_s,
    )


def reach(
    f: object,
    advantage: object = 7,
    *,
    share: object = "1/2",
    length: object = None,
    budget_s: float = BUDGET_S,
    **values: object,
) -> Reach:
    """How many distances an advantage reaches with a share of the attention (ours).

    Args:
        f: a formula in `n`, a SymPy expression, a name of the catalogue or an `Encoding`.
        advantage: how far the key's logit lies above the prior-weighted log-mean-exp of the other
            logits, in nats, read exactly.
        share: of the attention that the key is to have, 0 < share < 1, read exactly.
        length: keys of the row; None for the whole series, the limit of ever longer rows.
        budget_s: seconds; whatever is open after them stays unknown.
        **values: parameters and options, as `farfield.theory.encodings.encoding` takes them.

    Returns:
        A `Reach`: the distances with `price + log(share / (1 - share)) <= advantage`, counted.

    Raises:
        InputError: an advantage that is not finite; a share outside (0, 1); a length that is no
            integer; free parameters; terms that are undefined or infinite.

    >>> answer = reach("-2*log(1+n)", 7)
    >>> answer.tokens, answer.farthest
    (25, 24)
    >>> reach("-log(1+n)", 7).tokens, reach("-log(1+n)", 7, length=1024).tokens
    (0, 146)
    >>> reach("-((n-50)^2)/100", 4).intervals
    ((40, 60),)
    """
    wanted = "accepted: a finite number of nats, such as 7 or 6.5"
    try:
        gain = exact(advantage, "advantage")
    except InputError:
        raise InputError(f"advantage {str(advantage)[:40]} is no finite number; {wanted}") from None
    part = inside(share, "share", "(0, 1)")
    row = row_of(length)
    subject = resolve(f, values, row)
    asked = Reach(None, gain, part, row)
    reason = "the exp-series diverges: every price grows beyond all bounds with the row"
    answer = per_head(
        subject,
        asked,
        lambda bias: _reach_of_bias(bias, asked),
        decisive(upper_end),
        divergent={
            "tokens": 0,
            "answer": Exact(0),
            "label": Label.THEOREM,
            "reason": Reason(Code.DIVERGES, reason),
        },
        in_row=(lambda size: reach(subject, gain, share=part, length=size))
        if row is None
        else None,
        budget_s=budget_s,
    )
    if not answer.heads:
        return answer
    far = [h.farthest for h in answer.heads if h.farthest is not None and answer.answer is not None]
    return replace(answer, farthest=max(far, default=None), intervals=())


# -- the price of one distance --------------------------------------------------------------------


def infinite(value: float, code: Code, reason: str) -> Fields:
    """A price that is infinite, or minus infinite, and why."""
    return {
        "value": value,
        "enclosure": (value, value),
        "status": Status.INFINITE,
        "label": Label.THEOREM,
        "reason": Reason(code, reason),
    }


def _price_of_bias(bias: Expr, at: int, length: int | None) -> Fields:
    """The price in one head."""
    row = summed(bias, length, masked=True)
    try:
        ball = _price(row, at)
    except Unreachable as why:
        value = float(head_prices(row_instead(bias, length, why))[0, at])
        return {"value": value} | in_floats(why)
    if ball == math.inf:
        return infinite(ball, Code.NO_WEIGHT, f"the bias masks the key at distance {at}")
    if ball == -math.inf:
        return infinite(ball, Code.ONLY_KEY, "no other key has any weight")
    fields: Fields = {"value": float(ball.mid()), "enclosure": outward(ball)}
    if math.isinf(fields["value"]):
        reason = Reason(Code.TOO_LARGE, "the price is finite and beyond float64")
        return fields | {"value": None, "status": Status.ENCLOSED, "reason": reason}
    return fields


def _price(row: Series, at: int) -> Ball:
    """log(others / weight) as a ball, or an infinite float."""

    def narrow() -> Ball | None:
        odds = _log_odds(row, at)
        return odds if not isinstance(odds, arb) or _narrow(odds) else None

    why = f"the price of distance {at} is not enclosed at {MAX_BITS} bits"
    return settled(narrow, _bits_at(at), why)


def _bits_at(at: int, most: int = MAX_BITS) -> Iterator[int]:
    """The precisions at which the price of a distance is asked for."""
    return (bits + 2 * at.bit_length() for bits in doubled(64, most))


def _narrow(ball: arb) -> bool:
    narrow = ball.rad() * arb(2) ** PRICE_BITS <= abs(ball.mid()).max(arb(1))
    return bool(ball.is_finite() and narrow)


def _log_odds(row: Series, at: int) -> Ball:
    """The price at the precision at work; a ball that is not finite where that is too low."""
    others, weight = _others(row, at), _weight(row, at)
    if weight == 0:
        return math.inf
    if others == 0:
        return -math.inf
    if isinstance(others, fmpq) and isinstance(weight, fmpq):
        return arb(others / weight).log()
    return arb(others).log() - _height(row, at)


def _weight(row: Series, at: int) -> Ball:
    return _defined(lambda: row.term(at))


def _height(row: Series, at: int) -> Ball:
    """p(at)."""
    bias, k = row.at(at)
    return _defined(lambda: compile_ball(bias)({n: fmpq(k)}))


def _defined(value: Callable[[], Ball]) -> Ball:
    """A value, exactly where it has no radius; nan where this precision does not define it."""
    try:
        return _exactly(value())
    except (Undefined, ZeroDivisionError):
        return arb.nan()


def _others(row: Series, at: int) -> Ball:
    """The weight of all keys but one, a sum of positive terms."""
    try:
        return _defined(lambda: row.truncated(at).total() + row.tail(at + 1))
    except Unreachable:  # terms that fall so fast are not summed so far out
        return _defined(lambda: row.total() - row.term(at))


def _exactly(value: Ball) -> Ball:
    """A ball without a radius as a rational, where that is short."""
    exact = isinstance(value, arb) and value.is_exact() and value.is_finite()
    return value.fmpq() if exact and abs(int(value.man_exp()[1])) <= MAX_BITS else value


# -- the distances within reach -------------------------------------------------------------------


def _reach_of_bias(bias: Expr, asked: Reach) -> Fields:
    """The distances that one head reaches."""
    row, ties = summed(bias, asked.length, masked=True), list[range]()

    def meets(run: range) -> bool:
        within = _within(row, run[0], asked)
        if within is None:
            ties.append(run)
        return bool(within)

    try:
        none = at_precision(row.total, 64) == 0  # no key has any weight
        level = SuperlevelSet(
            row, lambda: asked.level(row.total()), meets, MAX_COUNT_BITS, MAX_BALLS
        )
        runs = [] if none else level.runs()
    except BeyondCounting as vast:
        reason = Reason(Code.TOO_LARGE, f"the answer has more than {MAX_COUNT_BITS} bits")
        if vast.low is None:
            return unknown(reason)
        return {"answer": Bracket(vast.low, None), "status": Status.ENCLOSED, "reason": reason}
    except Unreachable as why:
        bar = float(asked.advantage) - math.log(asked.share / (1 - asked.share))
        inside = np.flatnonzero(head_prices(row_instead(bias, asked.length, why))[0] <= bar)
        parts = np.split(inside, np.flatnonzero(np.diff(inside) > 1) + 1) if len(inside) else []
        return _reached([range(part[0], part[-1] + 1) for part in parts]) | in_floats(why)
    reached = _reached(runs)
    if ties:
        low = reached["tokens"]
        near = f"at distance {ties[0][0]} price and advantage agree to all digits tried"
        return {
            "answer": Bracket(low, low + sum(map(_count, ties))),
            "intervals": reached["intervals"],
            "status": Status.ENCLOSED,
            "reason": Reason(Code.TIE, near),
        }
    return reached


def _reached(runs: list[range]) -> Fields:
    """The distances within reach, from their runs."""
    tokens = sum(map(_count, runs))
    return {
        "tokens": tokens,
        "farthest": max((run[-1] for run in runs), default=None),
        "answer": Exact(tokens),
        "intervals": tuple(merged(runs, MAX_RUNS)),
    }


def _count(run: range) -> int:
    """The distances of a run; `len` ends at 2^63."""
    return (run[-1] - run[0]) // run.step + 1


def _within(row: Series, at: int, asked: Reach) -> bool | None:
    """Whether a price is low enough; None where no precision tells and no exact form is known."""
    against, gain = asked.against, asked.gain

    def decided() -> bool | None:
        others, weight, height = _others(row, at), _weight(row, at), _height(row, at)
        if others == 0:
            return True
        least = others / arb(against)
        exact_ = isinstance(others, fmpq) and isinstance(height, fmpq)
        if exact_ and others == against:
            return bool(height + gain >= 0)
        if least.log() < height + gain or least.log() > height + gain:
            return bool(least.log() < height + gain)
        if gain == 0 and isinstance(others, fmpq) and isinstance(weight, fmpq):
            return bool(others <= weight * against)
        return None

    return decide(decided, _bits_at(at, TIE_BITS))


# -- float64 --------------------------------------------------------------------------------------
