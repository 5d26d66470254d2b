"""Rules that forecast extrapolation from the formula alone.

A rule has a quantity, computed for a `Case`: the biases of all heads on a row, the training length
and the depth. It says that perplexity holds where the quantity is at most its threshold, and the
logarithm of the perplexity ratio is its slope times the quantity. Thresholds and slopes were
calibrated on what had been seen and are read from the registrations
(`farfield.validation.reference.registration`): nothing here looks at a result.

Perplexity *holds* if its ratio to that at the training length (last token, geometric mean over
seeds) rises by less than a tolerance at every tested length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

MIXING, SHARE = 0.4, 0.99  # of the layered receptive field, as first registered
EPS = 0.01  # of the receptive field of one layer
LOCAL = 0.23  # a head is local if it keeps all but this within half the training length
SHARP = 5.6  # between window 32 (4.0, failed) and slopes 1/16 (7.9, held), both seen


@dataclass(frozen=True)
class Case:
    """One model to be, as far as a rule looks at it.

    Args:
        bias: of each head at the distances of the longest tested row, float64, shape (heads,
            length).
        trained: the training length in tokens.
        layers: depth.
        converges: whether the exp-series of every head converges.
    """

    bias: np.ndarray
    trained: int
    layers: int
    converges: bool


def case(
    found: Encoding, trained: int, tested: int, layers: int, window: int | None = None
) -> Case:
    """The case of an encoding whose parameters have values.

    Args:
        found: the encoding, with an additive bias.
        trained: the training length in tokens.
        tested: the longest length at inference.
        layers: depth.
        window: width of a sliding window at inference, None without.
    """
    bias = found.bias(np.arange(tested))
    converges = window is not None or str(check_convergence(found).verdict) == "converges"
    if window is not None:
        bias = np.where(np.arange(tested) < window, bias, -np.inf)
    return Case(bias, trained, layers, converges)


def _layered_field(c: Case) -> float:
    kernel = head_weights(c.bias).mean(axis=0)
    return layered_quantile(kernel, c.layers, MIXING, SHARE) / c.trained


def _weighted_or_flat(c: Case) -> float:
    """The resolution-weighted leak; where no head resolves inside its support, depth decides."""
    if any(map(has_order, c.bias[:, : c.trained])):
        return resolution_weighted_leak(c.bias, c.trained)
    return float(head_layered_masses(c.bias, c.trained, c.layers).mean())


def _two_parts(c: Case, aggregate: Callable[..., Any]) -> float:
    """The resolution-weighted leak, or 1 where too little resolution is kept beyond the training
    length."""
    kept = head_resolutions(c.bias, c.trained) * (1 - head_leaks(c.bias, c.trained))
    blunt = float(aggregate(kept)) * c.trained**2 < SHARP
    return max(resolution_weighted_leak(c.bias, c.trained), float(blunt))


def _lacking(c: Case, share: float) -> float:
    """Which share of the heads is not local, less what may be: at most 0 where enough are."""
    heads = len(c.bias)
    local = int((head_leaks(c.bias, c.trained // 2) <= LOCAL).sum())
    return (max(1, round(share * heads)) - local) / heads


ORDER_LOSS = "order lacking or drowned"
"""The rule on which a forecast rests."""

RULES: Mapping[str, Callable[[Case], float]] = {
    "majority": lambda c: 0.0,
    "verdict": lambda c: float(not c.converges),
    "coverage": _layered_field,
    "receptive field": lambda c: float(head_fields(c.bias, EPS).mean()) / c.trained,
    "layered field": _layered_field,
    "mean leak": lambda c: float(head_leaks(c.bias, c.trained).mean()),
    "most local head, layered": lambda c: float(
        head_layered_masses(c.bias, c.trained, c.layers).min()
    ),
    "most local head, half": lambda c: float(head_leaks(c.bias, c.trained // 2).min()),
    "resolution-weighted leak": lambda c: resolution_weighted_leak(c.bias, c.trained),
    "resolution-weighted leak, root": lambda c: resolution_weighted_leak(c.bias, c.trained, 0.5),
    "resolution-weighted leak, flat": _weighted_or_flat,
    "two parts, best head": lambda c: _two_parts(c, np.max),
    "two parts, mean head": lambda c: _two_parts(c, np.mean),
    "one local head": lambda c: _lacking(c, 0.0),
    "half the heads local": lambda c: _lacking(c, 0.5),
    "all heads local": lambda c: _lacking(c, 1.0),
    "lost order": lambda c: lost_order(c.bias, c.trained),
    "lost order, flat": lambda c: lost_order(c.bias, c.trained, c.layers),
    ORDER_LOSS: lambda c: order_loss(c.bias, c.trained, c.layers),
}
"""The quantity of each rule; `says` in the registrations has its words."""


def forecasts(numbers: Mapping[str, Any], c: Case) -> dict[str, dict[str, Any]]:
    """What rules with their numbers say of a case: quantity, whether perplexity holds, size.

    Args:
        numbers: of each rule, its registered `threshold` and `slope`.
        c: the case.
    """
    found = {name: RULES[name](c) for name in numbers}
    return {
        name: {
            "quantity": value,
            "holds": value <= numbers[name]["threshold"],
            "log_ratio": numbers[name]["slope"] * value,
        }
        for name, value in found.items()
    }
