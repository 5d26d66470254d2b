r"""The ceiling of attention: the most that logits within a bound can give a key (ours).

An advantage is at most the range of the logits. So with content logits in [-beta, beta] no input
gives the key at distance n more than `sigma(2 beta - pi_N(n))`, and one gives exactly that. Where
the whole logit is bounded, position included (rotations, absolute positions, T5, soft caps,
normalised queries and keys), p = 0 and the price is `log(N - 1)`: no key of a row longer than
`1 + e^{2 beta}` can have half of the attention.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import sympy
from flint import arb
from sympy import Expr, S

from farfield.numerics.price import DistancePrice, price_of_distance, reach
from farfield.numerics.questions import (
    BLOCKWISE,
    Cases,
    Fields,
    HeadAnswer,
    refused,
    resolve,
    unknown,
)
from farfield.numerics.windows.question import read_bounds
from farfield.theory.answers.answer import Code, Reason, folded
from farfield.theory.answers.number import integer, natural, plural
from farfield.theory.encodings import Encoding, encoding
from farfield.theory.functions.balls import outward, precision, rational
from farfield.theory.mechanisms import MECHANISMS


@dataclass(frozen=True, repr=False)
class AttentionCeiling(HeadAnswer):
    """The most attention that any input within a bound of the logits gives a key.

    Fields:
        formula: the bias, None where several heads are aggregated or the whole logit is bounded.
        logit_bound: of the content logits, or of the whole logit, exact.
        length, distance: keys of the row, and the key's distance.
        value: the share, the largest of any head; None where it is not known.
        enclosure: floats around it.
        farthest: the largest distance at which a key can have half, of any head; None if there is
            none, or it is not known.
        longest: where the whole logit is bounded, the longest row in which a key can have half.
        heads: one answer a head where there are several.
        label: `certified`.
    """

    OUTSIDE = "no bound of the attention follows from one of the logits: {why}."

    logit_bound: sympy.Rational
    length: int
    distance: int
    value: float | None = None
    enclosure: tuple[float, float] | None = None
    farthest: int | None = None
    longest: int | None = None

    def head_text(self) -> str:
        return _percent(self.value)

    def _cases(self) -> Cases:
        return (
            (
                self.value is None,
                "how much attention the key at distance {n} of {row} can have is not known.",
            ),
            (
                True,
                "with {logits} within {bound}, no input gives the key at distance {n} of {row} "
                "more than {share} of the attention{best}.",
            ),
        )

    def _values(self) -> dict[str, object]:
        return {
            "logits": "content logits" if self.longest is None else "logits",
            "bound": self.logit_bound,
            "n": self.distance,
            "row": f"a row of {plural(self.length, 'key')}",
            "share": _percent(self.value),
            "best": self.among("any head"),
        }

    def _facts(self) -> dict[str, object]:
        far, longest = self.farthest, self.longest
        return {
            "farthest_for_half": None if far is None else f"{integer(far)} back",
            "longest_row_for_half": None if longest is None else f"{integer(longest)} keys",
        } | super()._facts()


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{100 * value:.4g} %"


def attention_ceiling(
    f: object, logit_bound: object, *, length: object, distance: object = None, **values: Any
) -> AttentionCeiling:
    """The most attention that a key of a row can have, for all inputs within a bound (ours).

    Args:
        f: a formula in `n`, a SymPy expression, a name of the catalogue or an `Encoding`; rotations
            and other mechanisms that bound the whole logit too.
        logit_bound: beta, the bound of the content logits, or of the whole logit; from 0 to 1000.
        length: keys of the row.
        distance: from the query to the key; the farthest of the row if not given.
        **values: parameters and options, as `farfield.theory.encodings.encoding` takes them.

    Returns:
        An `AttentionCeiling`: `sigma(2 beta - pi_N(n))`.

    Raises:
        InputError: numbers out of range; free parameters of a bias.

    >>> answer = attention_ceiling("rope", 4, length=4096)
    >>> round(answer.value, 4), answer.longest
    (0.4213, 2981)
    >>> attention_ceiling("-n/32", 4, length=4096).farthest
    144
    >>> round(attention_ceiling("-n/32", 4, length=4096, distance=500).value, 6)
    1.5e-05
    """
    bound, _ = read_bounds(logit_bound, 1)
    row = natural(length, "length")
    subject = encoding(f, **values).row(row)
    at = row - 1 if distance is None else natural(distance, "distance", 0)
    blank = AttentionCeiling(None, bound, row, at, subject=subject.name)
    bias: Encoding | Expr = S.Zero
    reason = None
    if subject.bca is not None:
        reason = BLOCKWISE
    elif subject.biases:
        bias = resolve(subject, {})
    elif subject.seen is not None:
        reason = subject.out_of_scope
    elif MECHANISMS[subject.mechanism].theorem != "bounded-logits":
        reason = Reason(
            Code.NOT_COVERED,
            "its position enters neither as a bias nor through logits that are bounded",
        )
    if reason is not None:
        return replace(blank, **refused(reason))
    price = price_of_distance(bias, at, length=row)
    far = reach(bias, 2 * bound, length=row)
    each = zip(price.heads or (price,), far.heads or (far,), strict=True)
    heads = tuple(
        replace(blank, formula=p.formula, farthest=r.farthest, **_of_price(p, bound))
        for p, r in each
    )
    whole = folded(heads, lambda head: head.value, lambda head: head.value == 1)
    if not subject.biases:
        whole = replace(whole, formula=None, longest=_longest(bound))
    return replace(whole, farthest=far.farthest)


def _of_price(price: DistancePrice, bound: sympy.Rational) -> Fields:
    if price.value is None:
        return unknown(price.reason)
    if math.isinf(price.value):
        share = 0.0 if price.value > 0 else 1.0
        return {"value": share, "enclosure": (share, share), "reason": price.reason}
    with precision(128):
        ends = price.enclosure or (price.value, price.value)
        ball = arb(ends[0]).union(arb(ends[1])) - 2 * arb(rational(bound))
        share = 1 / (1 + ball.exp())
    return {
        "value": float(share.mid()),
        "enclosure": outward(share),
        "label": price.label,
    }


def _longest(bound: sympy.Rational) -> int:
    """floor(1 + e^{2 beta}); e^x is irrational for rational x but 0."""
    with precision(64 + 4 * math.ceil(bound)):
        return int((1 + (2 * arb(rational(bound))).exp()).floor().unique_fmpz())
