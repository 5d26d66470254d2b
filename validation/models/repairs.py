"""Changes of a trained model at inference, as records and as what its layers then see.

A change is a window with first keys, a grafted tail, a log scale, grouped positions, other settings
of rotations, or a text that is cut.

A graft gives a head a convergent tail. From `start` on its bias is
`p(start) - rate log(n / start)`; before it nothing changes. It is an encoding of its own, so its
verdict, receptive field and certified window are those of the grafted formula.

A first key *in the cache* stands next to the window, where positions count in the cache: a query
beyond the window sees it as from position `window + sinks - 1`.

Under *grouped positions* (Self-Extend, arXiv 2401.01325, eq. 3 and 4) a key at distance `w` or more
is seen as from `floor(i/G) + w - floor(w/G) - floor(j/G)`, where `network.whole` meets it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch import Tensor

from farfield.theory.encodings import Encoding, encoding
from farfield.theory.functions.nodes import n
from farfield.validation.models.content_bias import Content
from farfield.validation.models.network import Attend, Keep, Network

FIRST_KEYS = 4
"""First keys that a window keeps, as StreamingLLM does."""


@dataclass(frozen=True)
class Repair:
    """A change at inference.

    Args:
        graft: rate and start of a grafted tail.
        window: keys that a query sees, its own included.
        sinks: first keys that it sees beside the window.
        in_cache: whether first keys stand next to the window, not at their positions in the text.
        group: tokens `G` that share a position, and the distance `w` from which they do.
        scale: whether content logits are multiplied by `max(1, log N / log L)`.
        layers: those that are changed, from 1; none given takes all.
        rope: entries that replace those of `rope_parameters`; empty for the model's own.
        longest: `max_position_embeddings` that belongs to them; None leaves the model's own.
        cut: the text is cut to so many last tokens.
        setting: what `rope` is called.

    >>> Repair(graft=(2, 16), window=64).name
    'graft -2 log(n/16), window 64'
    """

    graft: tuple[float, int] | None = None
    window: int | None = None
    sinks: int = 0
    in_cache: bool = False
    group: tuple[int, int] | None = None
    scale: bool = False
    layers: tuple[int, ...] = ()
    rope: Mapping[str, Any] = field(default_factory=dict, hash=False)
    longest: int | None = None
    cut: int | None = None
    setting: str = ""

    @property
    def name(self) -> str:
        """What it changes, in words."""
        rate, start = self.graft or (0, 0)
        parts = (
            self.setting,
            self.graft and f"graft -{rate:g} log(n/{start})",
            self.window and f"window {self.window}",
            self.sinks and f"{self.sinks} first keys{' in the cache' * self.in_cache}",
            self.group and "Self-Extend, groups of {} from {}".format(*self.group),
            self.scale and "log scale",
            self.cut and f"text cut to {self.cut}",
            self.layers and f"layers {', '.join(map(str, self.layers))}",
        )
        return ", ".join(part for part in parts if part) or "none"

    def keys(self, length: int) -> int:
        """Keys that a query sees at the end of a row.

        >>> Repair(window=4096, sinks=4).keys(16384), Repair(cut=8192).keys(16384)
        (4100, 8192)
        """
        kept = length if self.window is None else self.window + self.sinks
        return min(length, kept, self.cut or length)

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
    """A network with a change of what its layers see; `rotary.applied` changes rotations."""

    def __init__(self, network: Network, repair: Repair) -> None:
        self.network, self.repair = network, repair
        self.trained, self.longest, self.depth = network.trained, network.longest, network.depth
        self.grouped = None if repair.group is None else (network, repair.group)

    def scores(self, tokens: Tensor, positions: Tensor, keep: Keep, attend: Attend) -> Tensor:
        """As `Network.scores`."""
        return self.network.scores(tokens, positions, keep, attend)

    def query(self, layer: int, q: Tensor, i: Tensor) -> Tensor:
        """As `Network.query`; a second part meets the first keys in the cache."""
        near, at = self.network.query(layer, q, i), self._in_cache(layer, i)
        if at is not None:
            near = torch.cat([near, self.network.query(layer, q, at)], -1)
        if not self.repair.scale or self._untouched(layer):
            return near
        factor = ((i + 1).float().log() / math.log(self.trained)).clamp(min=1)
        return near * factor[:, None].to(q.dtype)

    def key(self, layer: int, k: Tensor, j: Tensor, end: int) -> Tensor:
        """As `Network.key`."""
        near, last = self.network.key(layer, k, j, end), torch.tensor([end])
        at = self._in_cache(layer, last)
        if at is None:
            return near
        first = (j < self.repair.sinks)[:, None]
        held = self.network.key(layer, k, j, int(at))
        return torch.cat([near.where(~first, 0), held.where(first, 0)], -1)

    def bias(self, layer: int, i: Tensor, j: Tensor) -> Tensor:
        """As `Network.bias`."""
        added, repair, far = self.network.bias(layer, i, j), self.repair, i[:, None] - j
        if self._untouched(layer):
            return added
        if repair.graft is not None:
            rate, start = repair.graft
            at = self.network.bias(layer, j.new_tensor([start]), j.new_tensor([0]))
            tail = at - rate * (far.clamp(min=start) / start).log()
            added = torch.where((far < start) | (added == -math.inf), added, tail)
        held = self._in_cache(layer, i)
        if held is not None:
            moved = (j < repair.sinks) & (added != -math.inf)
            added = torch.where(moved, self.network.bias(layer, held, j), added)
        if repair.window is not None:
            added = added.masked_fill((far >= repair.window) & (j >= repair.sinks), -math.inf)
        return added

    def content(self, layer: int) -> Content | None:
        """As `Network.content`."""
        return self.network.content(layer)

    def sink(self, layer: int) -> Tensor | None:
        """As `Network.sink`."""
        return self.network.sink(layer)

    def cap(self, layer: int) -> float | None:
        """As `Network.cap`."""
        return self.network.cap(layer)

    def _untouched(self, layer: int) -> bool:
        return bool(self.repair.layers) and layer + 1 not in self.repair.layers

    def _in_cache(self, layer: int, i: Tensor) -> Tensor | None:
        """Positions of queries in the cache; None where first keys are in the text."""
        if not self.repair.in_cache or self.repair.window is None or self._untouched(layer):
            return None
        return i.clamp(max=self.repair.window + self.repair.sinks - 1)


def recipe(trained: int) -> Repair:
    """What helped most models that were measured, and what another change has to beat: a graft, and
    a window of the training length."""
    return Repair(graft=(2, trained // 4), window=trained)


def candidates(trained: int) -> list[Repair]:
    """Changes to choose from, for a model trained on rows of this many tokens."""
    half, quarter = trained // 2, trained // 4
    return [
        Repair(window=trained),
        Repair(window=half),
        Repair(window=trained, sinks=FIRST_KEYS),
        Repair(scale=True),
        Repair(graft=(2, trained)),
        Repair(graft=(2, quarter)),
        *(Repair(graft=(rate, quarter), window=trained) for rate in (2, 4)),
    ]
