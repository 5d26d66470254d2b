"""Changes of a trained model at inference: windows, first keys, grafted tails, log scale.

A graft gives a head a convergent tail. From `start` on its bias is
`p(start) - rate log(n / start)`; before it nothing changes. It is an encoding of its own, so its
verdict, receptive field and certified window are those of the grafted formula.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import sympy
import torch
from torch import Tensor

from farfield.theory.encodings import Encoding, encoding
from farfield.theory.functions.nodes import n
from farfield.validation.far_field.network import Attend, Network


@dataclass(frozen=True)
class Repair:
    """A change at inference.

    Args:
        graft: rate and start of a grafted tail.
        window: keys that a query sees, its own included.
        sinks: first keys that it sees beside the window, at their positions in the text.
        scale: whether content logits are multiplied by `max(1, log N / log L)`.
        layers: those that are changed, from 1; none given takes all.

    >>> Repair(graft=(2, 16), window=64).name
    'graft -2 log(n/16), window 64'
    """

    graft: tuple[float, int] | None = None
    window: int | None = None
    sinks: int = 0
    scale: bool = False
    layers: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """What it changes, in words."""
        parts = []
        if self.graft is not None:
            parts.append(f"graft -{self.graft[0]:g} log(n/{self.graft[1]})")
        if self.window is not None:
            parts.append(f"window {self.window}")
        if self.sinks:
            parts.append(f"{self.sinks} first keys")
        if self.scale:
            parts.append("log scale")
        if self.layers:
            parts.append(f"layers {', '.join(map(str, self.layers))}")
        return ", ".join(parts) or "none"

    def encoding(self, trained: Encoding) -> Encoding:
        """The bias that layers with this one have then: an encoding like any other.

        >>> from farfield.theory.encodings import encoding
        >>> Repair(graft=(2, 16)).encoding(encoding("0")).head(1)
        Piecewise((0, n < 16), (-2*log(n/16), True))
        """
        if self.graft is None:
            return trained
        rate, start = sympy.Rational(str(self.graft[0])), self.graft[1]
        biases = []
        for head in trained.biases:
            tail = head.subs(n, start) - rate * sympy.log(n / start)
            biases.append(sympy.Piecewise((head, n < start), (tail, True)))
        return encoding(biases[0] if len(biases) == 1 else biases)


class Repaired:
    """A network with a change."""

    def __init__(self, network: Network, repair: Repair) -> None:
        self.network, self.repair = network, repair
        self.trained, self.longest, self.depth = network.trained, network.longest, network.depth

    def scores(self, tokens: Tensor, first: int, last: int, attend: Attend) -> Tensor:
        """As `Network.scores`."""
        return self.network.scores(tokens, first, last, attend)

    def query(self, layer: int, q: Tensor, i: Tensor) -> Tensor:
        """As `Network.query`."""
        q = self.network.query(layer, q, i)
        if not self.repair.scale or self._untouched(layer):
            return q
        factor = ((i + 1).float().log() / math.log(self.trained)).clamp(min=1)
        return q * factor[:, None].to(q.dtype)

    def key(self, layer: int, k: Tensor, j: Tensor, end: int) -> Tensor:
        """As `Network.key`."""
        return self.network.key(layer, k, j, end)

    def bias(self, layer: int, i: Tensor, j: Tensor) -> Tensor:
        """As `Network.bias`."""
        added, repair, far = self.network.bias(layer, i, j), self.repair, i[:, None] - j
        if self._untouched(layer):
            return added
        if repair.graft is not None:
            rate, start = repair.graft
            at = self.network.bias(layer, torch.tensor([start]), torch.tensor([0]))
            tail = at - rate * (far.clamp(min=start) / start).log()
            added = torch.where((far < start) | (added == -math.inf), added, tail)
        if repair.window is not None:
            added = added.masked_fill((far >= repair.window) & (j >= repair.sinks), -math.inf)
        return added

    def sink(self, layer: int) -> Tensor | None:
        """As `Network.sink`."""
        return self.network.sink(layer)

    def _untouched(self, layer: int) -> bool:
        return bool(self.repair.layers) and layer + 1 not in self.repair.layers


def candidates(trained: int) -> list[Repair]:
    """Changes to choose from, for a model trained on rows of this many tokens."""
    half, quarter = trained // 2, trained // 4
    return [
        Repair(window=trained),
        Repair(window=half),
        Repair(window=trained, sinks=4),
        Repair(scale=True),
        Repair(graft=(2, trained)),
        Repair(graft=(2, quarter)),
        *(Repair(graft=(rate, quarter), window=trained) for rate in (2, 4)),
    ]
