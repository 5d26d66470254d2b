"""Rules that forecast extrapolation from the formula alone, each with its threshold.

A rule has a quantity, computed for a `Case`: the biases of all heads on a row, the training length
and the depth. It says that perplexity holds where the quantity is small enough. Thresholds and
sizes are calibrated on results that were seen (`calibrated`), written down before further runs, and
judged on those: nothing here looks at what it is judged on.

Perplexity *holds* if its ratio to that at the training length (last token, geometric mean over
seeds) rises by less than a tolerance at every tested length.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farfield.numerics.depth import layered_quantile
from farfield.numerics.finite_length import (
    has_order,
    head_fields,
    head_layered_masses,
    head_leaks,
    head_resolutions,
    head_weights,
    lost_order,
    order_loss,
    resolution_weighted_leak,
)
from farfield.theory.convergence import check_convergence
from farfield.theory.encodings import Encoding
from farfield.validation.extrapolation import LIMIT

MIXING, SHARE = 0.4, 0.99  # of the layered receptive field, as first registered
EPS = 0.01  # of the receptive field of one layer


@dataclass(frozen=True)
class Case:
    """One model to be, as far as a rule looks at it.

    Args:
        bias: of each head at distances 0 .. tested - 1, float64, shape (heads, tested).
        trained, tested: the training length and the longest length at inference, in tokens.
        layers: depth.
        converges: whether the exp-series of every head converges.
        steps: of training.
    """

    bias: np.ndarray
    trained: int
    tested: int
    layers: int
    converges: bool
    steps: int = 1000


def case(
    found: Encoding,
    trained: int,
    tested: int,
    layers: int,
    window: int | None = None,
    steps: int = 1000,
) -> Case:
    """The case of an encoding whose parameters have values.

    Args:
        found: the encoding, with an additive bias.
        trained: the training length in tokens.
        tested: the longest length at inference.
        layers: depth.
        window: width of a sliding window at inference, None without.
        steps: of training.
    """
    bias = found.bias(np.arange(tested))
    converges = window is not None or str(check_convergence(found).verdict) == "converges"
    if window is not None:
        bias = np.where(np.arange(tested) < window, bias, -np.inf)
    return Case(bias, trained, tested, layers, converges, steps)


Quantity = Callable[[Case], float]

Known = Sequence[tuple[Case, float]]
"""Cases that were seen, each with the measured logarithm of its perplexity ratio."""


@dataclass(frozen=True)
class Rule:
    """A rule of forecast.

    Args:
        name: as predictions write it.
        words: what it says, with `{c}` for its threshold.
        quantity: of a case; perplexity is said to hold where it is at most the threshold.
        threshold: fixed before the runs, or None: halfway between two seen quantities, where
            fewest of the seen are wrong; `sized`: where the size predicted reaches the tolerance.
        blind_to_windows: the quantity cannot rank windows with a constant bias; its calibration
            leaves them out.
        slope: nats a unit of the quantity, fixed before the runs; None: fitted to what was seen.
        learned: the quantity that the seen cases give, where it depends on them.
    """

    name: str
    words: str
    quantity: Quantity | None = None
    threshold: float | str | None = None
    blind_to_windows: bool = False
    slope: float | None = None
    learned: Callable[[Known], Quantity] | None = None

    def given(self, seen: Known) -> Quantity:
        """Its quantity, given what was seen; most rules do not look at that."""
        quantity = self.learned(seen) if self.learned else self.quantity
        assert quantity is not None
        return quantity


def _layered_field(c: Case) -> float:
    kernel = head_weights(c.bias).mean(axis=0)
    return layered_quantile(kernel, c.layers, MIXING, SHARE) / c.trained


def _weighted_or_flat(c: Case) -> float:
    """The resolution-weighted leak; where no head resolves inside its support, depth decides."""
    if any(map(has_order, c.bias[:, : c.trained])):
        return resolution_weighted_leak(c.bias, c.trained)
    return float(head_layered_masses(c.bias, c.trained, c.layers).mean())


def _blunt(aggregate: Callable[..., Any]) -> Callable[[Case], float]:
    """One over the resolution that is kept beyond the training length, in training lengths."""

    def quantity(c: Case) -> float:
        kept = head_resolutions(c.bias, c.trained) * (1 - head_leaks(c.bias, c.trained))
        best = float(aggregate(kept)) * c.trained**2
        return 1 / best if best > 1e-9 else 1e9

    return quantity


def _two_parts(aggregate: Callable[..., Any], sharp: float) -> Callable[[Case], float]:
    blunt = _blunt(aggregate)
    return lambda c: max(resolution_weighted_leak(c.bias, c.trained), float(blunt(c) > sharp))


def _lacking(share: float) -> Callable[[Case], float]:
    """Which share of the heads is not local, less what may be: at most 0 where enough are."""

    def quantity(c: Case) -> float:
        heads = len(c.bias)
        local = int((head_leaks(c.bias, c.trained // 2) <= LOCAL).sum())
        return (max(1, round(share * heads)) - local) / heads

    return quantity


LOCAL = 0.23  # a head is local if it keeps all but this within half the training length
SHARP = 1 / 5.6  # between window 32 (1/4.0, failed) and slopes 1/16 (1/7.9, held), both seen

ORDER_LOSS = "order lacking or drowned"
"""The rule on which a forecast rests."""

RULES: Mapping[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule("majority", "perplexity always holds", lambda c: 0.0, 0.5),
        Rule(
            "verdict",
            "the exp-series of every head converges [Q]",
            lambda c: float(not c.converges),
            0.5,
        ),
        Rule(
            "coverage",
            "the layered receptive field is at most the training length [C]",
            _layered_field,
            1.0,
        ),
        Rule(
            "receptive field",
            "the mean TRF(1/100) of a row is at most {c} training lengths",
            lambda c: float(head_fields(c.bias, EPS).mean()) / c.trained,
        ),
        Rule(
            "layered field",
            "the layered receptive field is at most {c} training lengths",
            _layered_field,
        ),
        Rule(
            "mean leak",
            "the mean leak is at most {c}",
            lambda c: float(head_leaks(c.bias, c.trained).mean()),
        ),
        Rule(
            "most local head, layered",
            "the least layered mass of a head beyond the training length is at most {c}",
            lambda c: float(head_layered_masses(c.bias, c.trained, c.layers).min()),
            0.44,
        ),
        Rule(
            "most local head, half",
            "one head leaks at most {c} beyond half the training length",
            lambda c: float(head_leaks(c.bias, c.trained // 2).min()),
            LOCAL,
        ),
        Rule(
            "resolution-weighted leak",
            "it is at most {c}",
            lambda c: resolution_weighted_leak(c.bias, c.trained),
            "sized",
            True,
        ),
        Rule(
            "resolution-weighted leak, root",
            "weighted by the root of the resolution, it is at most {c}",
            lambda c: resolution_weighted_leak(c.bias, c.trained, 0.5),
            "sized",
            True,
        ),
        Rule(
            "resolution-weighted leak, flat",
            "it is at most {c}, or where no head has an order inside, the layered mass beyond is",
            _weighted_or_flat,
            "sized",
        ),
        Rule(
            "two parts, best head",
            "the resolution-weighted leak is at most {c} and one head keeps a resolution of at "
            "least 5.6 over the square of the training length",
            _two_parts(np.max, SHARP),
            "sized",
        ),
        Rule(
            "two parts, mean head",
            "the same with the mean of the heads",
            _two_parts(np.mean, SHARP),
            "sized",
        ),
        Rule("one local head", "at least one head is local", _lacking(0.0), 0.0),
        Rule("half the heads local", "at least half of the heads are", _lacking(0.5), 0.0),
        Rule("all heads local", "all heads are", _lacking(1.0), 0.0),
        Rule(
            "lost order",
            "the share of order that is lost is at most {c}",
            lambda c: lost_order(c.bias, c.trained),
            "sized",
        ),
        Rule(
            "lost order, flat",
            "it is at most {c}, or where no head has an order inside, the layered mass beyond is",
            lambda c: lost_order(c.bias, c.trained, c.layers),
            "sized",
        ),
        Rule(
            ORDER_LOSS,
            "the order that is lacking or drowned on the long row is at most {c}",
            lambda c: order_loss(c.bias, c.trained, c.layers),
            "sized",
        ),
    )
}


@dataclass(frozen=True)
class Calibrated:
    """A rule with its numbers.

    Args:
        rule: what is calibrated.
        threshold: perplexity is said to hold where the quantity is at most this.
        slope: the logarithm of the perplexity ratio is forecast as slope times quantity.
        quantity: of a case.
    """

    rule: Rule
    threshold: float
    slope: float
    quantity: Quantity

    def says(self, c: Case) -> dict[str, Any]:
        """What the rule says of a case: quantity, whether perplexity holds, size."""
        quantity = self.quantity(c)
        return {
            "quantity": quantity,
            "holds": quantity <= self.threshold,
            "log_ratio": self.slope * quantity,
        }


def calibrated(rule: Rule, seen: Known) -> Calibrated:
    """A rule with the numbers that seen results give it.

    Args:
        rule: the rule.
        seen: cases, each with the measured logarithm of its perplexity ratio.
    """
    quantity = rule.given(seen)
    if rule.slope is not None and isinstance(rule.threshold, float):
        return Calibrated(rule, rule.threshold, rule.slope, quantity)
    pairs = [(quantity(c), loss, c) for c, loss in seen]
    fitted = [(q, y) for q, y, c in pairs if not (rule.blind_to_windows and _flat(c))]
    weight = sum(q * q for q, _ in fitted)
    slope = sum(q * y for q, y in fitted) / weight if weight else 0.0
    if isinstance(rule.threshold, float):
        return Calibrated(rule, rule.threshold, slope, quantity)
    if rule.threshold == "sized":
        return Calibrated(rule, LIMIT / slope, slope, quantity)
    values = sorted({q for q, *_ in pairs})
    ends = [a + (b - a) / 2 for a, b in itertools.pairwise(values)]
    wrong = {end: sum((q <= end) != (y < LIMIT) for q, y, _ in pairs) for end in ends}
    return Calibrated(rule, min(ends, key=lambda end: (wrong[end], end)), slope, quantity)


def _flat(c: Case) -> bool:
    return bool(np.isinf(c.bias).any()) and not any(map(has_order, c.bias[:, : c.trained]))
