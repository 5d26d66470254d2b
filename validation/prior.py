"""What the bias of a model makes of a long row before anything is learned, in four numbers.

The prior is the softmax of a head's bias alone, `P_i` at distance `i`. For a model trained on `L`
tokens and asked on `N`, with `leak` the share of a head's prior beyond `L`:

* `order`: `rho / (rho + 1/4)`, where `rho` is the mean over heads of `R (1 - leak) L^2`, and `R` is
  `sum_{i >= 1} min(P_i, P_{i+1}) |P_i - P_{i+1}|` on a row of `L`: how well the heads tell
  neighbours apart and still do on the long row. A slope `m` has `rho` about `(m L)^2 / 2`;
* `beyond`: the share beyond `L` of a head's prior convolved with itself, once a layer; the mean;
* `drowned`: `leak log(1 + R' L^2)`, both means weighted by `R'`, which is `R` from `i = 0`: what
  the far keys of a bias that levels off bury;
* `local`: the share of heads that leave at most 1/20 of their prior beyond `L / 2`.

None depends on how a bias is written. The numbers were chosen on the trained models of
`farfield.validation.results`; they are not derived.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from farfield.numerics.depth import convolved
from farfield.theory.answers.errors import InputError

LOCAL = 1 / 20


class Prior(NamedTuple):
    """The four numbers, as the module says."""

    order: float
    beyond: float
    drowned: float
    local: float


def weights(bias: np.ndarray) -> np.ndarray:
    """The softmax of each head's bias over a row, shape (heads, N).

    Raises:
        InputError: a bias that is no number or `+inf`, or that masks all of the row.

    >>> weights(np.array([[0.0, 0.0, -np.inf]]))
    array([[0.5, 0.5, 0. ]])
    """
    top = bias.max(axis=1, keepdims=True)
    if not np.isfinite(top).all():
        raise InputError("a head's bias is undefined, infinite, or masks the whole row")
    shares = np.exp(bias - top)
    return shares / shares.sum(axis=1, keepdims=True)


def prior(bias: np.ndarray, trained: int, layers: int) -> Prior:
    """The four numbers of a model, to six decimals.

    Args:
        bias: shape (heads, N), a row of the tested length, `-inf` where it masks.
        trained: the training length `L` in tokens, below `N`.
        layers: depth.

    Raises:
        InputError: as `weights`.

    >>> n = np.arange(1024.0)
    >>> shapes = {"slope": -n / 4, "none": 0 * n, "itself": -50 * n, "floor": -np.minimum(n / 4, 4)}
    >>> for name, bias in shapes.items():
    ...     print(name, *(round(value, 2) for value in prior(bias[None], 64, 4)))
    slope 1.0 0.0 0.0 1.0
    none 0.0 1.0 0.0 0.0
    itself 0.0 0.0 0.0 1.0
    floor 0.97 1.0 3.2 0.0
    """
    whole, row = weights(bias), weights(bias[:, :trained])
    steps = np.minimum(row[:, :-1], row[:, 1:]) * np.abs(np.diff(row)) * trained**2
    leak, sharp = whole[:, trained:].sum(axis=1), steps.sum(axis=1)
    rho, total = float((steps[:, 1:].sum(axis=1) * (1 - leak)).mean()), max(sharp.sum(), 1e-300)
    kept = [convolved(kernel, layers, 1.0)[trained - 1] for kernel in whole]
    found = (
        rho / (rho + 1 / 4),
        float(np.mean([1 - k for k in kept]).clip(0, 1)),
        float(sharp @ leak) / total * math.log1p(float(sharp @ sharp) / total),
        float((whole[:, trained // 2 :].sum(axis=1) <= LOCAL).mean()),
    )
    return Prior(*(round(value, 6) for value in found))
