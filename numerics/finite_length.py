r"""How far the heads of a model look on rows of finite length (ours, approximate).

Convergence has no scale. On a row of `N` keys, for a model trained on `L`, each head has

* its leak, the share of its prior mass beyond the training length, `1 - B_L / B_N`;
* its resolution `R(s)` [S, Eq. 4] on a row of `L` keys: how well it tells neighbours apart;
* its layered mass, the share beyond `L` of its kernel convolved with itself, once a layer.

The *resolution-weighted leak* `sum_h R_h leak_h / sum_h R_h` is what the heads that resolve lose
beyond the training length: a head that cannot tell neighbours apart does not count. Where no head
resolves, all count alike.

Two of them make one number of the model. The mean over heads of `R_h (1 - leak_h) L^2` is the
*kept resolution* `rho`: the square brings it to a scale on which a slope `m` has `(m L)^2 / 2`, the
same for a bias stretched with the length. What of the order is lost is

    1 - (1 - Q) rho / (rho + 1/4),        Q the resolution-weighted leak:

0 where every head resolves neighbours and looks no further than the training length, 1 where no
head resolves or all that do look beyond.

A bias that decays to a plateau is worse than no bias. The model relies on its heads for order, and
on long rows the plateau's mass swamps the nearby keys. So the *order loss* has two parts: the order
that a row lacks, and the order that the far keys swamp:

    1 - rho / (rho + 1/4) + (Q log(1 + rho_R))^2 / 5.

`rho_R` is the mean of `R_h L^2`, each head weighted by its resolution. The forms and the 1/4 and
1/5 were found on trained models, not derived.

The order loss is no function of the attention: a window that is flat inside has a case of its own,
and a head that sees only itself counts as one with perfect order. The *kernel order loss* has
neither fault. It counts a step between two neighbours by what the lesser of them gets:

    R' = sum_{i >= 1} min(P_i, P_{i+1}) |P_i - P_{i+1}|,    R'' the same from i = 0.

`P_i` is the share of the key at distance `i`. The kernel order loss is

    (1/4) / (rho' + 1/4) * M + (Q'' log(1 + rho''))^2 / 5.

`rho'` is the mean of `R' (1 - leak) L^2`, `M` the mean layered mass beyond `L`. `Q''` and `rho''`
are the means of the leak and of `R'' L^2`, weighted by `R''`. Its form was found on the same
models.

All numbers are float64 sums over a table of biases, shape (heads, N), `-inf` where it masks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from farfield.numerics.depth import convolved
from farfield.theory.answers.errors import InputError


def head_weights(bias: np.ndarray) -> np.ndarray:
    """The softmax of each head's bias over a row, shape (heads, N).

    Raises:
        InputError: a bias that is no number or `+inf`, or that masks all of the row.

    >>> head_weights(np.array([[0.0, 0.0, -np.inf]]))
    array([[0.5, 0.5, 0. ]])
    """
    top = bias.max(axis=1, keepdims=True)
    if not np.isfinite(top).all():
        raise InputError("a head's bias is undefined, infinite, or masks the whole row")
    weights = np.exp(bias - top)
    return weights / weights.sum(axis=1, keepdims=True)


def head_fields(bias: np.ndarray, eps: float) -> np.ndarray:
    """The least number of nearest keys that hold all but `eps` of each head's row, shape (heads,).

    >>> head_fields(np.zeros((1, 8)), 0.3)
    array([6])
    """
    tails = head_weights(bias)[:, ::-1].cumsum(axis=1)
    return ((tails >= eps * tails[:, -1:]) & (tails > 0)).sum(axis=1)


def head_leaks(bias: np.ndarray, trained: int) -> np.ndarray:
    """The share of each head's prior mass beyond the training length, shape (heads,).

    >>> head_leaks(np.zeros((1, 8)), 2)
    array([0.75])
    """
    return head_weights(bias)[:, trained:].sum(axis=1)


def head_resolutions(bias: np.ndarray, trained: int) -> np.ndarray:
    """The attention resolution of each head on a row of `trained` keys, shape (heads,).

    `R = sum_i P_i (P_i - P_{i+1})`, the `P_i` normalised over all but the last key [S, Eq. 4].

    >>> head_resolutions(np.array([[0.0, -np.inf, -np.inf]]), 3)
    array([1.])
    """
    row = bias[:, :trained]
    weights = np.exp(row - row.max(axis=1, keepdims=True))
    shares = weights / weights[:, :-1].sum(axis=1, keepdims=True)
    return (shares[:, :-1] * (shares[:, :-1] - shares[:, 1:])).sum(axis=1)


def order_resolutions(bias: np.ndarray, trained: int, *, own: bool = False) -> np.ndarray:
    """How well each head tells neighbouring keys apart that it both sees, shape (heads,).

    `sum_i min(P_i, P_{i+1}) |P_i - P_{i+1}|` over a row of `trained` keys: continuous in the
    weights, and the step at the edge of a mask counts nothing, however the mask is written.

    Args:
        bias: shape (heads, N).
        trained: the training length in tokens.
        own: count the step from the query's own key too; a head that sees only itself has no order.

    >>> n = np.arange(64.0)
    >>> window, itself, local = np.where(n < 8, 0, -np.inf), -50 * n, -n / 4
    >>> order_resolutions(np.stack([window, itself, local]), 64).round(4)
    array([0.   , 0.   , 0.013])
    """
    weights = head_weights(bias[:, :trained])[:, 0 if own else 1 :]
    near, far = weights[:, :-1], weights[:, 1:]
    return (np.minimum(near, far) * np.abs(near - far)).sum(axis=1)


def head_layered_masses(bias: np.ndarray, trained: int, layers: int) -> np.ndarray:
    """The share beyond the training length of each head's kernel convolved over the layers.

    Sums beyond the row count as beyond. Shape (heads,).

    >>> head_layered_masses(np.array([[0.0, 0.0, -np.inf, -np.inf]]), 2, 2)
    array([0.25])
    """
    kernels = head_weights(bias)
    return np.array([1 - convolved(k, layers, 1.0)[trained - 1] for k in kernels]).clip(0, 1)


def kept_resolution(bias: np.ndarray, trained: int) -> float:
    """The mean over heads of the resolution kept beyond the training length, `rho` above.

    >>> round(kept_resolution(-np.arange(1024.0)[None] / 16, 64), 2)
    7.91
    """
    kept = head_resolutions(bias, trained).clip(min=0) * (1 - head_leaks(bias, trained))
    return float(kept.mean()) * trained**2


def kept_share(kept: float) -> float:
    """The share of the order that is there, of a kept resolution, in [0, 1).

    >>> kept_share(0.75)
    0.75
    """
    return kept / (kept + HALF)


def order_loss(bias: np.ndarray, trained: int, layers: int) -> float:
    """The order that a long row lacks and that is drowned in it; 0 or more, 1 without any order.

    In windows no head has an order inside its support, and only depth finds one there. Then the
    loss is what depth carries beyond the training length, the mean layered mass.

    Args:
        bias: shape (heads, N), a row of the longest length at inference.
        trained: the training length in tokens.
        layers: depth.

    >>> n = np.arange(1024.0)
    >>> shapes = {"slope": -n / 4, "none": 0 * n, "floor": -np.minimum(n / 4, 4)}
    >>> {name: round(order_loss(b[None], 64, 4), 3) for name, b in shapes.items()}
    {'slope': 0.002, 'none': 1.0, 'floor': 2.315}
    """
    if not any(map(has_order, bias[:, :trained])):
        return float(head_layered_masses(bias, trained, layers).mean())
    kept = kept_resolution(bias, trained)
    sharp = head_resolutions(bias, trained).clip(min=0)
    relied_on = float(sharp @ sharp) / max(float(sharp.sum()), 1e-300) * trained**2
    drowned = resolution_weighted_leak(bias, trained) * math.log1p(relied_on)
    return 1 - kept_share(kept) + DROWNED * drowned**2


@dataclass(frozen=True)
class KernelOrder:
    """What becomes of the order of a row beyond the training length.

    Fields:
        kept: the share of the order that the heads keep, `rho' / (rho' + 1/4)`, in [0, 1).
        beyond: the layered mass beyond the training length, the mean of the heads.
        leak: the mean leak of the heads: near 0 only where all of them are local.
        drowned: the order that the far keys of a long row drown, 0 or more.
    """

    kept: float
    beyond: float
    leak: float
    drowned: float

    @property
    def loss(self) -> float:
        """The kernel order loss, 0 or more."""
        return (1 - self.kept) * self.beyond + self.drowned


def kernel_order(bias: np.ndarray, trained: int, layers: int) -> KernelOrder:
    """The kernel order loss by its parts.

    Args:
        bias: shape (heads, N), a row of the longest length at inference.
        trained: the training length `L` in tokens.
        layers: depth.

    >>> n = np.arange(1024.0)
    >>> shapes = {"slope": -n / 4, "none": 0 * n, "itself": -50 * n, "floor": -np.minimum(n / 4, 4)}
    >>> {name: round(kernel_order(b[None], 64, 4).loss, 3) for name, b in shapes.items()}
    {'slope': 0.0, 'none': 1.0, 'itself': 0.0, 'floor': 2.073}
    """
    unit = trained**2
    leaks = head_leaks(bias, trained)
    kept = float((order_resolutions(bias, trained) * (1 - leaks)).mean()) * unit
    sharp = order_resolutions(bias, trained, own=True)
    total = max(float(sharp.sum()), 1e-300)
    drowned = float(sharp @ leaks) / total * math.log1p(float(sharp @ sharp) / total * unit)
    return KernelOrder(
        kept_share(kept),
        float(head_layered_masses(bias, trained, layers).mean()),
        float(leaks.mean()),
        DROWNED * drowned**2,
    )


def lost_order(bias: np.ndarray, trained: int, layers: int | None = None) -> float:
    """The share of the order that a model loses beyond its training length, in [0, 1].

    Args:
        bias: shape (heads, N), a row of the longest length at inference.
        trained: the training length in tokens.
        layers: depth; given, windows that are flat inside lose what it carries beyond the training
            length, the mean layered mass, since only depth finds an order in them.

    >>> local, none = -np.arange(1024.0) / 4, np.zeros(1024)
    >>> [round(lost_order(np.stack([b, none]), 64), 3) for b in (local, none)]
    [0.004, 1.0]
    """
    if layers is not None and not any(map(has_order, bias[:, :trained])):
        return float(head_layered_masses(bias, trained, layers).mean())
    kept = kept_resolution(bias, trained)
    return 1 - (1 - resolution_weighted_leak(bias, trained)) * kept_share(kept)


def has_order(row: np.ndarray) -> bool:
    """Whether a row of biases tells the keys that it sees apart."""
    seen = row[np.isfinite(row)]
    return len(seen) > 1 and float(np.ptp(seen)) > 1e-3


HALF = 1 / 4
"""The kept resolution at which half of the order is lost; found on trained models."""

DROWNED = 1 / 5
"""What a drowned nat of resolution costs, squared, beside the order; found on trained models."""


def resolution_weighted_leak(bias: np.ndarray, trained: int, exponent: float = 1.0) -> float:
    """What the heads that resolve lose beyond the training length, in [0, 1].

    Args:
        bias: shape (heads, N), a row of the longest length at inference.
        trained: the training length in tokens.
        exponent: the power of the resolution that weighs a head.

    >>> local, none = -np.arange(64.0) / 4, np.zeros(64)
    >>> round(resolution_weighted_leak(np.stack([local, none, none]), 16), 4)
    0.0183
    """
    weights = head_resolutions(bias, trained).clip(min=0) ** exponent
    leaks = head_leaks(bias, trained)
    if not weights.sum() > 0:
        return float(leaks.mean())
    return float(np.average(leaks, weights=weights))
