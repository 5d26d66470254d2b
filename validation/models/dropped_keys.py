r"""What a window drops in single rows of a model: the change that is measured, and its bounds.

Of one head and row, the dropped keys weigh `U` over the kept ones. The output moves by at most
`2 V U / (1 + U)`, with `V` the largest value. A certificate at run time bounds `U` without the
logits of all dropped keys. The worst case is `N` times the largest weight that the norms allow. The
sample has its own variance (`numerics.windows.sampled_rows`). A bias by distance enters with its
largest value among the dropped keys. Biases that depend on content have no such bound here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from farfield.numerics.windows.sampled_rows import dropped_weight
from farfield.theory.answers.answer import Label
from farfield.theory.answers.blocks import Block, note, sentence
from farfield.validation.models.network import Network, of_heads, whole

ERROR = 0.1
"""The change of an output that is asked about, over the largest value."""
SAMPLES, SHARE, DELTA = 256, 4, 0.01
"""Dropped keys that are drawn a row, a quarter of them at most; and the probability that its bound
does not hold."""
ROWS = 16
"""Of a head, evenly spaced in the second half of a text."""
_TIGHT = 0.5  # of the rows within the error, how many a tight certificate shows
_ROUNDING = 1e-6  # of float64 and of the model's own float32


@dataclass(frozen=True)
class DroppedKeys:
    """Rows of heads that drop keys under a window.

    Fields:
        rows: how many, over heads and layers.
        measured: the share of them whose output moves by at most `ERROR`.
        sampled, worst: the share that each bound shows to be so.
        broken: rows whose change is above the sampled bound.
    """

    rows: int
    measured: float
    sampled: float
    worst: float
    broken: int

    @property
    def holds(self) -> bool:
        """Whether no more bounds are broken than may be."""
        return self.broken <= DELTA * self.rows

    @property
    def tight(self) -> bool:
        """Whether the sample shows at least half of the rows within the error."""
        return self.holds and self.sampled >= _TIGHT * self.measured > 0

    def blocks(self) -> Iterator[Block]:
        """Two sentences: the share of rows within the error, and how many a certificate shows."""
        shares = {name: f"{getattr(self, name):.0%}" for name in ("measured", "sampled", "worst")}
        shown = ": drawn keys show it for {sampled} at run time, the worst case for {worst}"
        yield sentence(
            "In {measured} of {rows} rows of heads the window moves the output by at most {error} "
            "of the largest value" + shown * self.tight + ".",
            Label.APPROXIMATE if self.tight else Label.MEASURED,
            rows=self.rows,
            error=f"{ERROR:g}",
            **shares,
        )
        if not self.holds:
            yield note(
                "The sampled bound is broken in {broken} of {rows} rows: it shows nothing here.",
                broken=self.broken,
                rows=self.rows,
            )
        elif not self.tight:
            yield note(
                "No certificate at run time is tight on this model: drawn keys show it for "
                "{sampled} of the rows, the worst case for {worst}.",
                **shares,
            )


@torch.no_grad()
def dropped_keys(
    network: Network, tokens: Tensor, width: int, sinks: int = 0
) -> DroppedKeys | None:
    """The keys that a window drops in a text, and certificates at run time.

    Args:
        network: the model.
        tokens: shape (length,), longer than the window and the first keys.
        width: keys that are kept, the query's own included.
        sinks: first keys that are kept as well.

    Returns:
        None where no head drops keys, or all biases depend on content.
    """
    length, draws = len(tokens), np.random.default_rng(0)
    at = torch.arange(length)
    begin = min(max(length // 2, width + sinks), length)
    rows = torch.linspace(begin, length - 1, ROWS).long().unique() if begin < length else at[:0]
    found = list[tuple[float, float, float]]()

    def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if len(rows) and network.content(layer) is None:
            here, some = at.to(q.device), rows.to(q.device)
            asked = network.query(layer, q, here)[0, :, rows].double().cpu()
            turned = of_heads(network.key(layer, k, here, length - 1), q)[0].double().cpu()
            values = of_heads(v, q)[0].double().cpu()
            bias = network.bias(layer, some, here).double().cpu()
            bias, sink = bias.expand(len(asked), -1, -1), network.sink(layer)
            for h, r in itertools.product(range(len(asked)), range(len(rows))):
                kept = (rows[r] - at < width) | (at < sinks)
                constant = -math.inf if sink is None else float(sink[h])
                row = asked[h, r], turned[h], values[h], bias[h, r]
                found.extend(_row(*row, kept, constant, draws))
        return whole(network, layer, q, k, v, at)

    network.scores(tokens[None], at, 1, attend)
    if not found:
        return None
    change, sampled, worst = np.transpose(found)
    return DroppedKeys(
        rows=len(found),
        measured=float((change <= ERROR).mean()),
        sampled=float((sampled <= ERROR).mean()),
        worst=float((worst <= ERROR).mean()),
        broken=int((change > sampled + _ROUNDING).sum()),
    )


def _row(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor,
    kept: Tensor,
    constant: float,
    draws: np.random.Generator,
) -> Iterator[tuple[float, float, float]]:
    """The change of the output of a row, and both bounds, over the largest value; nothing of a row
    that drops no key."""
    dropped = ~kept & (bias > -math.inf)
    if not dropped.any():
        return
    logits = k @ q + bias
    total = torch.logaddexp(logits[kept].logsumexp(0), torch.tensor(constant, dtype=q.dtype))
    weights, near = (logits[dropped] - total).exp(), (logits[kept] - total).exp()
    outside = float(weights.sum())
    far = (weights @ v[dropped] + near @ v[kept]) / (1 + outside)
    largest_value = float(v.norm(dim=1).max())
    norms = q.norm() * k[dropped].norm(dim=1).max()
    largest = float((norms + bias[dropped].max() - total).clamp(max=700).exp())
    count = min(SAMPLES, max(2, len(weights) // SHARE), len(weights))
    some = draws.choice(weights.numpy(), count, replace=False)
    bounds = (
        dropped_weight(some, len(weights), largest, DELTA),
        len(weights) * largest,
    )
    sampled, worst = (2 * x / (1 + x) for x in bounds)
    yield float((far - near @ v[kept]).norm()) / largest_value, min(sampled, worst), worst
