r"""How far content logits must be scaled for a key of a long row to stay within reach (ours).

Content logits times s, the bias left as it is. With level others an advantage g becomes `s g`, so
half of the attention reaches distance n of a row of N keys from `s = pi_N(n) / g` on. Without a
bias that is the schedule `s_N = log(N - 1) / g`. With others that are normal of deviation sigma,
and a lead x over their mean, the mean advantage is at least `s x - (s sigma)^2 / 2` (Jensen), at
most `x^2 / (2 sigma^2)`: a dearer distance is not sure to be paid at any scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import sympy
from flint import arb

from farfield.numerics.heads import Fields, decisive, sharp
from farfield.numerics.price import DistancePrice, for_prices, infinite, price_of_distance
from farfield.numerics.shown import Cases, HeadAnswer
from farfield.theory.answers.answer import Code, Label, Status
from farfield.theory.answers.number import decimal, inside, natural, plural
from farfield.theory.functions.balls import outward, precision, rational


@dataclass(frozen=True, repr=False)
class LogitScale(HeadAnswer):
    """The least factor of the content logits that pays a price.

    Fields:
        formula: the bias, None where several heads are aggregated.
        advantage: at scale 1, in nats, exact; with noise the lead over the mean of the others.
        length, distance: keys of the row, and the distance that is to be reached.
        noise: the deviation of the other logits, exact; 0 where they are level.
        value: the factor, the least of any head; infinite where none is sure to be enough; None
            where it is not known.
        enclosure: floats around it.
        heads: one answer a head where there are several.
        label: `certified` without noise; `approximate` with it.
    """

    advantage: sympy.Rational
    length: int
    distance: int
    noise: sympy.Rational
    value: float | None = None
    enclosure: tuple[float, float] | None = None

    def _cases(self) -> Cases:
        return (
            (
                self.value == math.inf,
                "no scale of the logits is sure to reach distance {n} of {row}: {why}.",
            ),
            (
                self.value is not None,
                "an advantage of {g} nats reaches distance {n} of {row} once the content logits "
                "are multiplied by {value}.",
            ),
            (
                self.status is Status.ENCLOSED,
                "the least scale of the logits that reaches distance {n} of {row} lies between "
                "{low} and {high}.",
            ),
            (True, "which scale of the logits reaches distance {n} of {row} is not known."),
        )

    def _values(self) -> dict[str, Any]:
        low, high = self.enclosure or (0.0, math.inf)
        return {
            "n": self.distance,
            "row": f"a row of {plural(self.length, 'key')}",
            "g": decimal(float(self.advantage)),
            "value": decimal(self.value),
            "low": decimal(low),
            "high": decimal(high),
        }


def logit_scale(
    f: Any,
    advantage: Any,
    *,
    length: Any,
    distance: Any = None,
    share: Any = "1/2",
    noise: Any = 0,
    **values: Any,
) -> LogitScale:
    """The least factor of the content logits that brings a key of a row within reach (ours).

    Args:
        f: a formula in `n`, a SymPy expression, a name of the catalogue or an `Encoding`.
        advantage: of the key at scale 1, positive, in nats; with noise, its lead over the mean of
            the other logits.
        length: keys of the row.
        distance: from the query to the key; the farthest of the row if not given, which costs most
            where the bias does not rise.
        share: of the attention that the key is to have, 0 < share < 1.
        noise: the standard deviation of the other logits at scale 1; 0: they are level.
        **values: parameters and options, as `farfield.theory.encodings.encoding` takes them.

    Returns:
        A `LogitScale`: `(pi + logit(share)) / g`, at least 0; with noise the least s with
        `s x - (s sigma)^2 / 2` at least that price, label `approximate`.

    Raises:
        InputError: numbers out of range; free parameters; terms that are undefined or infinite.

    >>> [round(logit_scale("0", 5, length=n).value, 3) for n in (64, 1024, 10**6)]
    [0.829, 1.386, 2.763]
    >>> logit_scale("0", 5, length=10**6, noise=1).value
    inf
    """
    gain, spread = inside(advantage, "advantage", "(0, oo)"), inside(noise, "noise", "[0, oo)")
    part = inside(share, "share", "(0, 1)")
    row = natural(length, "length")
    price = price_of_distance(f, row - 1 if distance is None else distance, length=row, **values)
    asked = LogitScale(None, gain, row, price.distance, spread)
    return for_prices(
        (price,),
        asked,
        lambda head: _of_price(asked, head, part),
        decisive(lambda h: -math.inf if h.value is None else -h.value, lambda h: False),
    )


def _of_price(asked: LogitScale, price: DistancePrice, share: sympy.Rational) -> Fields:
    """The scale that pays the price in one head, in balls: price and level may cancel."""
    if price.value is None and price.enclosure is None:
        return {"status": price.status, "label": price.label, "reason": price.reason}
    if price.value == math.inf:
        return _never(asked, str(price.reason))
    with precision(128):
        lead, spread = (arb(rational(x)) for x in (asked.advantage, asked.noise))
        level = arb(rational(share / (1 - share))).log()
        ends = [arb(end) + level for end in price.enclosure or (price.value, price.value)]
        scales = [_scale(end, lead, spread) for end in ends]
        if None in scales:
            most = float(lead**2 / (2 * spread**2))
            reason = (
                f"the distance costs {float(ends[1]):.4g} nats, and such a lead pays {most:.4g}"
            )
            return _never(asked, reason + " on average at most")
        low, high = scales
        scale, enclosure = low.union(high), (outward(low)[0], outward(high)[1])
    certain = sharp(scale) and enclosure[1] < math.inf
    return {
        "value": float(scale.mid()) if certain else None,
        "enclosure": (max(0.0, enclosure[0]), enclosure[1]),
        "status": Status.EXACT if certain else Status.ENCLOSED,
        "label": Label.APPROXIMATE if spread > 0 else price.label,
        "reason": None if certain else price.reason,
    }


def _never(asked: LogitScale, why: str) -> Fields:
    label = Label.APPROXIMATE if asked.noise else Label.THEOREM
    return infinite(math.inf, Code.NEVER, why) | {"label": label}


def _scale(price: arb, lead: arb, spread: arb) -> Any:
    """The least s >= 0 with s lead - (s spread)^2 / 2 >= price; None where there is none.

    >>> [_scale(arb(p), arb(4), arb(s)) for p, s in ((2, 0), (6, 1), (9, 1))]
    [0.500000000000000, 2.00000000000000, None]
    """
    if price <= 0:
        return arb(0)
    root = lead**2 - 2 * spread**2 * price
    return None if root < 0 else 2 * price / (lead + root.max(arb(0)).sqrt())
