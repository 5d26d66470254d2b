"""Forms that compete: each says by how much perplexity grows, with all its constants fixed.

They were written down after the law of the order loss had been seen to fail at 4,000 steps and on
biases that are written in two ways; `reference/README.md` says what was seen. A form speaks of a
`Case` and never of its results. Perplexity holds where the form says less than the tolerance.

Below, of a case with training length `L`, and `L0 = 64`:

* `R`, `leak`, `rho`, `Q`, `rho_R` and the order loss as in `farfield.numerics.finite_length`;
* `R'` the resolution of the keys that are not the query's own (`order_resolutions`), `R''` the same
  with the query's own; `M` the layered mass beyond `L`, the mean of the heads;
* `rho' = mean R' (1 - leak) L^2`; `Q''` the mean of `leak`, weighted by `R''`;
  `rho'' = L^2 sum R''^2 / sum R''`; `S` the steps of training over 1,000.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from farfield.numerics.finite_length import (
    DROWNED,
    HALF,
    has_order,
    head_layered_masses,
    head_leaks,
    head_resolutions,
    kept_resolution,
    kept_share,
    kernel_order,
    order_loss,
    order_resolutions,
    resolution_weighted_leak,
)
from farfield.validation.extrapolation import LIMIT
from farfield.validation.rules import Case, Known, Quantity, Rule

LENGTH, DEPTH, STEPS = 64, 4, 1000  # of the models on which the constants were found
LAW, MENDED = 0.53, 2 / 3  # nats a unit of the order loss, and of the mended form


def _form(name: str, words: str, size: Quantity) -> Rule:
    """A rule whose quantity is the logarithm of the perplexity ratio, in nats."""
    return Rule(name, words, size, LIMIT, slope=1.0)


def _law(c: Case) -> float:
    return LAW * order_loss(c.bias, c.trained, c.layers)


def _changed(c: Case, *, length: int, half: float) -> float:
    """The law with another unit of length and another half; flat windows as the law has them."""
    if not any(map(has_order, c.bias[:, : c.trained])):
        return _law(c)
    scale = (length / c.trained) ** 2
    sharp = head_resolutions(c.bias, c.trained).clip(min=0)
    relied_on = float(sharp @ sharp) / max(float(sharp.sum()), 1e-300) * length**2
    kept = kept_resolution(c.bias, c.trained) * scale
    drowned = resolution_weighted_leak(c.bias, c.trained) * math.log1p(relied_on)
    return LAW * (half / (kept + half) + DROWNED * drowned**2)


def _mended(c: Case, length: int) -> float:
    return MENDED * kernel_order(c.bias, c.trained, c.layers, length).loss


def _relied_on(c: Case, values: np.ndarray) -> float:
    """The mean of a value of each head, weighted by `R'' L^2 + 1/64`."""
    weights = order_resolutions(c.bias, c.trained, own=True) * c.trained**2 + 1 / 64
    return float(np.average(values, weights=weights))


def _steps_by_leak(c: Case) -> float:
    more = c.steps / STEPS
    leak = _relied_on(c, head_leaks(c.bias, c.trained))
    grown = leak * more**2 / (1 + leak * (more**2 - 1))
    return _mended(c, c.trained) + 3 / 2 * (1 - 1 / more) * grown


def _steps_by_reach(c: Case) -> float:
    beyond = _relied_on(c, head_layered_masses(c.bias, c.trained, c.layers))
    return _mended(c, c.trained) + 5 / 4 * (1 - STEPS / c.steps) * beyond


def _constant(known: Known) -> Quantity:
    mean = float(np.mean([loss for _, loss in known]))
    return lambda c: mean


def _parts(c: Case) -> np.ndarray:
    kept = kept_resolution(c.bias, c.trained)
    value = order_loss(c.bias, c.trained, c.layers)
    return np.array([resolution_weighted_leak(c.bias, c.trained), kept_share(kept), value])


def _nearest(known: Known) -> Quantity:
    seen = np.array([_parts(c) for c, _ in known])
    unit = np.stack([np.ones_like(seen[:, 0])] * 2 + [np.maximum(1, seen[:, 2])], axis=1)
    losses = [loss for _, loss in known]
    return lambda c: losses[int((np.abs(seen - _parts(c)) / unit).max(axis=1).argmin())]


_MENDED = "2/3 ((1/4) / (rho' + 1/4) M + (Q'' log(1 + rho''))^2 / 5)"

FORMS: Mapping[str, Rule] = {
    form.name: form
    for form in (
        _form("law", "0.53 times the order loss", _law),
        _form("mended", _MENDED, lambda c: _mended(c, c.trained)),
        _form(
            "absolute",
            "0.53 times the order loss, with 64^2 in place of L^2 in rho and rho_R",
            lambda c: _changed(c, length=LENGTH, half=HALF),
        ),
        _form(
            "mended, absolute",
            f"{_MENDED}, with 64^2 in place of L^2 in rho' and rho''",
            lambda c: _mended(c, LENGTH),
        ),
        _form(
            "depth",
            "0.53 times the order loss, with (1/4) (layers/4)^(4/5) in place of 1/4",
            lambda c: _changed(c, length=c.trained, half=HALF * (c.layers / DEPTH) ** (4 / 5)),
        ),
        _form(
            "mended, times steps",
            f"S {_MENDED}",
            lambda c: c.steps / STEPS * _mended(c, c.trained),
        ),
        _form(
            "mended, steps by leak",
            f"{_MENDED} + 3/2 (1 - 1/S) x S^2 / (1 + x (S^2 - 1)), "
            "x the mean leak weighted by R'' L^2 + 1/64",
            _steps_by_leak,
        ),
        _form(
            "mended, steps by reach",
            f"{_MENDED} + 5/4 (1 - 1/S) y, "
            "y the mean layered mass beyond L weighted by R'' L^2 + 1/64",
            _steps_by_reach,
        ),
        Rule(
            "constant", "the mean of what was seen", threshold=LIMIT, slope=1.0, learned=_constant
        ),
        Rule(
            "nearest",
            "what came out of the nearest case seen: the largest difference of Q, rho / (rho + 1/4)"
            " and the order loss, the last relative above 1",
            threshold=LIMIT,
            slope=1.0,
            learned=_nearest,
        ),
    )
}
