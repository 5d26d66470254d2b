"""Rows of `N` tokens from rows of `T`: the far field of a network.

A group is `R` rows of `T` tokens that follow each other in a text; the first represents the start
of the text. Stage `s` represents the positions `E[s-1] .. E[s] - 1`, with `E[0] = T`: its rows are
all rows of the group, each placed at the end of the stage. A query sees

* its own row and the row before it, at the positions before its own;
* the first row, at positions `0 .. T-1`, with the states of a row of `T`;
* for each stage up to its own, `samples` keys drawn from the group's rows at that stage, spread
  over the positions of the stage. Of a cell of `c` positions and `M` keys each has `log(c / M)`
  added to its logit; its bias and rotation are those of its position.

All rows of a group share these keys, since they have one history; the tokens of a row are never
among its own far keys. If the keys of a cell are exchangeable given the query, the sums of the cell
are unbiased, and the output is consistent as the samples grow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from farfield.validation.far_field.network import Attend, Network, attention, nats, whole

NOTHING = torch.zeros(1, 1, 1, 1)


@dataclass(frozen=True)
class Sampling:
    """How far keys are drawn.

    Args:
        samples: keys a stage.
        growth: stages end at `T`, `T growth`, `T growth^2` and so on, the last at `N`; infinite for
            one stage, whose cost is the same whatever `N`.
        seed: of the draws.
    """

    samples: int = 256
    growth: float = 2
    seed: int = 0

    def ends(self, row: int, to: int) -> list[int]:
        """Where stages end.

        >>> Sampling().ends(64, 256), Sampling(growth=math.inf).ends(64, 4096)
        ([64, 128, 256], [64, 4096])
        """
        ends = [row]
        while ends[-1] < to:
            ends.append(int(min(self.growth * ends[-1], to)))
        return ends


@dataclass(frozen=True)
class Cell:
    """Far positions of one stage, and the keys that represent them."""

    stage: int
    positions: Tensor
    count: int


class Keys(NamedTuple):
    """Keys and values, shape (rows or 1, heads, m, size), before positions enter, at positions
    (m,), and the term that is added to their logits, (rows or 1, 1, 1, m)."""

    k: Tensor
    v: Tensor
    positions: Tensor
    more: Tensor


Sees = Callable[[int, str], bool]
"""Whether queries of a layer see a part of the far field: `first`, `before` or `far`."""


def everything(layer: int, part: str) -> bool:
    """A layer sees every part."""
    return True


class Stages:
    """The states of one group of rows, stage by stage.

    Args:
        network: the network.
        tokens: (rows, T + 1), the rows of a group in the order of the text, each with its last
            target.
        last: targets scored at the end of each row.
        sampling: how far keys are drawn.
        strangers: far keys come from these rows instead, (rows, T + 1), as those of another text.
        sees: which layer sees which part of the far field.
        bos: the token that a text begins with, in place of its own first; None for none.
        paired: row `r` sees the row this many before it, as it ends stage 1, key by key; 0: none.
    """

    def __init__(
        self,
        network: Network,
        tokens: Tensor,
        last: int,
        sampling: Sampling,
        strangers: Tensor | None = None,
        sees: Sees = everything,
        bos: int | None = None,
        paired: int = 0,
    ) -> None:
        self.network, self.tokens, self.last, self.sampling = network, tokens, last, sampling
        self.others = None
        if strangers is not None:
            self.others = Stages(network, strangers, last, sampling, bos=bos)
        self.sees, self.row, self.bos = sees, tokens.shape[1] - 1, bos
        self.places = (len(tokens) - 1) * self.row
        self.draws = torch.Generator().manual_seed(sampling.seed)
        self.pools: dict[int, list[tuple[Tensor, Tensor, Tensor]]] = {}
        self.first, self.pairs = list[tuple[Tensor, Tensor]](), list[tuple[Tensor, Tensor]]()
        self.paired = paired

    @torch.no_grad()
    def plain(self) -> Tensor:
        """Loss of the last targets of each row by itself, (rows, last)."""

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            self.first.append((k[:1], v[:1]))
            return whole(self.network, layer, q, k, v)

        if self.others is not None:
            self.others.plain()
        tokens = self.tokens
        if self.bos is not None:
            tokens = torch.cat([torch.full_like(tokens[:, :1], self.bos), tokens[:, 1:]], 1)
        return self._nats(tokens, 0, attend)

    @torch.no_grad()
    def stage(self, s: int, ends: Sequence[int]) -> Tensor:
        """Loss of the last targets of each row, placed at the end of stage `s`, (rows, last)."""
        if self.others is not None:
            self.others.stage(s, ends)
        begin, end, row = ends[s - 1], ends[s], self.row
        before = end - 2 * row >= begin
        spans = [(r, ends[r - 1], ends[r]) for r in range(1, s)]
        spans.append((s, begin, end - row * (1 + before)))
        if self.paired and s > 1:
            spans[0] = (1, ends[0], ends[1] - row)
        cells = [self._cell(*span) for span in spans if span[1] < span[2]]
        chosen, i = self._choice(), torch.arange(end - row, end)
        self.pools[s] = []

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            self.pools[s].append((self._pick(k, chosen), self._pick(v, chosen), chosen))
            parts = [Keys(k, v, i, NOTHING)]
            if self.sees(layer, "first"):
                parts.append(Keys(*self.first[layer], torch.arange(row), NOTHING))
            if before and self.sees(layer, "before"):
                parts.append(Keys(k.roll(1, 0), v.roll(1, 0), i - row, NOTHING))
            if self.paired and s == 1:
                self.pairs.append((k.roll(self.paired, 0), v.roll(self.paired, 0)))
            elif self.paired:
                at = torch.arange(ends[1] - row, ends[1])
                parts.append(Keys(*self.pairs[layer], at, NOTHING))
            if self.sees(layer, "far"):
                parts += [self._far(cell, layer) for cell in cells]
            return self._mix(layer, q, i, parts)

        return self._nats(self.tokens, end - row, attend)

    def _mix(self, layer: int, q: Tensor, i: Tensor, parts: Sequence[Keys]) -> Tensor:
        """One softmax over all parts, and its mean of the values."""
        rows, heads, network = len(q), q.shape[1], self.network
        q = network.query(layer, q, i)
        k = torch.cat(
            [
                network.key(layer, p.k, p.positions, int(i[-1])).expand(rows, heads, -1, -1)
                for p in parts
            ],
            2,
        )
        v = torch.cat([p.v.expand(rows, heads, -1, -1) for p in parts], 2)
        positions = torch.cat([p.positions for p in parts])
        more = torch.cat([p.more.expand(rows, 1, 1, len(p.positions)) for p in parts], -1)
        return attention(q, k, v, network.bias(layer, i, positions) + more, network.sink(layer))

    def _cell(self, stage: int, begin: int, end: int) -> Cell:
        """Positions in `begin .. end - 1`, one in each of as many equal parts."""
        m = min(self.sampling.samples, end - begin, self.places)
        at = (torch.arange(m) + torch.rand(m, generator=self.draws)) * (end - begin) / m
        return Cell(stage, (begin + at).floor().long().clamp(max=end - 1), end - begin)

    def _choice(self) -> Tensor:
        """Which tokens of a stage become far keys, never those of the first row."""
        drawn = torch.randperm(self.places, generator=self.draws)[: self.sampling.samples]
        return drawn + self.row

    def _pick(self, y: Tensor, chosen: Tensor) -> Tensor:
        """Vectors of the chosen tokens, shape (1, heads, samples, size)."""
        return y.transpose(1, 2).flatten(0, 1)[chosen].transpose(0, 1)[None]

    def _far(self, cell: Cell, layer: int) -> Keys:
        """Keys of a cell with the logarithm of the positions that each represents, by row."""
        k, v, chosen = (self.others or self).pools[cell.stage][layer]
        m = len(cell.positions)
        k, v, chosen = k[:, :, :m], v[:, :, :m], chosen[:m]
        each, source = torch.arange(len(self.tokens))[:, None], chosen // self.row
        own = source == each
        if self.paired:
            own = own | (source == (each - self.paired) % len(self.tokens))
        alien = ~own if self.others is None else torch.ones_like(own)
        share = (cell.count / alien.sum(-1, keepdim=True)).log().float()
        return Keys(k, v, cell.positions, share.where(alien, -math.inf)[:, None, None])

    def _nats(self, tokens: Tensor, first: int, attend: Attend) -> Tensor:
        return nats(self.network.scores(tokens[:, :-1], first, self.last, attend), tokens)


def far_losses(
    network: Network,
    tokens: Tensor,
    lengths: Sequence[int],
    sampling: Sampling = Sampling(),
    last: int = 8,
    strangers: Tensor | None = None,
    sees: Sees = everything,
    bos: int | None = None,
) -> dict[int, Tensor]:
    """Loss of the last targets of each row of a group but the first, at each length.

    Args:
        network: the network.
        tokens: (rows, T + 1).
        lengths: tokens before a target, each `T` or more.
        sampling: how far keys are drawn.
        last: targets scored at the end of each row.
        strangers: far keys come from these rows instead, those of another text.
        sees: which layer sees which part of the far field.
        bos: the token that a text begins with, in place of its own first; None for none.

    Returns:
        By length, and at `T` itself, shape (rows - 1, last), in nats.
    """
    row = tokens.shape[1] - 1
    stages = Stages(network, tokens, last, sampling, strangers, sees, bos)
    losses = {row: stages.plain()[1:]}
    while waiting := set(lengths) - set(losses):  # lengths at which stages end share them
        ends = sampling.ends(row, max(waiting))
        for s in range(1, len(ends)):
            result = stages.stage(s, ends)
            if ends[s] in waiting:
                losses[ends[s]] = result[1:]
    return losses
