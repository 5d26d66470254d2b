"""Changes of a trained model at inference: windows, first keys, grafted tails, log scale.

A graft gives a head a convergent tail. From `start` on its bias is
`p(start) - rate log(n / start)`; before it nothing changes. It is an encoding of its own, so its
verdict, receptive field and certified window are those of the grafted formula.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from farfield.validation.harness.model import DistanceBias, Transformer
from farfield.validation.harness.settings import CAUSAL, Mask, ScaleSettings


class Grafted(DistanceBias):
    """A bias, None for none, with a tail `p(start) - rate log(n / start)` from `start` on."""

    def __init__(self, bias: DistanceBias | None, rate: float, start: int) -> None:
        super().__init__()
        self.bias, self.rate, self.start = bias, rate, start

    def table(self, length: int) -> Tensor:
        """As the bias has it, shape (heads or 1, length)."""
        if self.bias is None:
            near = torch.zeros(1, length, dtype=torch.float64)
        else:
            near = self.bias.table(length)
        if length <= self.start:
            return near
        n = torch.arange(length, dtype=near.dtype, device=near.device)
        tail = near[:, self.start : self.start + 1] - self.rate * (n / self.start).log()
        return torch.where(n < self.start, near, tail)


@dataclass(frozen=True)
class Repair:
    """A change at inference.

    Args:
        graft: rate and start of a grafted tail.
        window: keys that a query sees, its own included.
        sinks: first keys that it sees beside the window.
        scale: whether content logits are multiplied by `max(1, log N / log L)`.
        layers: those that are changed, from 1; none given takes all. First keys are kept in all.

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

    def of(self, model: Transformer) -> tuple[Transformer, Mask]:
        """A copy of the model with the change, and the mask that belongs to it."""
        model = copy.deepcopy(model)
        biases: list[nn.Module | None] = [
            None if at is None else model.biases[at] for at in model.bias_of
        ]
        for k, layer in enumerate(model.layers):
            if self.layers and k + 1 not in self.layers:
                continue
            if self.graft is not None:
                bias = biases[k]
                assert bias is None or isinstance(bias, DistanceBias)
                biases[k] = Grafted(bias, *self.graft)
            width = layer.settings.window
            if self.window is not None and not self.sinks:
                width = min(self.window, width or self.window)
            scale = ScaleSettings(when="inference") if self.scale else layer.settings.scale
            layer.settings = layer.settings.but(window=width, scale=scale)
        model.biases = nn.ModuleList(dict.fromkeys(b for b in biases if b is not None))
        model.bias_of = [None if b is None else list(model.biases).index(b) for b in biases]
        return model, Mask(self.window, sinks=self.sinks) if self.sinks else CAUSAL


def candidates(trained: int) -> list[Repair]:
    """Changes to choose from, for a model trained on rows of so many tokens."""
    half, quarter = trained // 2, trained // 4
    return [
        Repair(),
        *(Repair(window=w) for w in (trained, half, quarter)),
        Repair(window=trained, sinks=4),
        Repair(scale=True),
        *(Repair(graft=(rate, s)) for rate in (1, 2, 4) for s in (trained, quarter)),
        *(Repair(graft=(rate, quarter), window=trained) for rate in (2, 4)),
    ]
