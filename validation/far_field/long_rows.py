"""Rows of `N` tokens from rows of `T`, stage by stage: far keys are drawn, each stands for many.

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

`blocks` reads some blocks of a row at their true positions, as those of a question and its answer,
with far keys at all others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from farfield.validation.harness.measure import led
from farfield.validation.models.joined_attention import joined
from farfield.validation.models.network import Keep, Network, nats, sides, whole

NOTHING = torch.zeros(1, 1, 1, 1)
LOGITS = 1 << 17  # of a head, at a time
NO_ROWS = torch.zeros(1, 0, dtype=torch.long)


@dataclass(frozen=True)
class Sampling:
    """How far keys are drawn.

    Args:
        samples: keys a stage.
        growth: stages end at `T`, `T growth`, `T growth^2` and so on, the last at `N`; infinite for
            one stage, whose cost is the same whatever `N`.
        seed: of the draws.
        ordered: whether drawn keys keep the order of the text, so that neighbours stay neighbours;
            else any key may stand anywhere.
    """

    samples: int = 256
    growth: float = 2
    seed: int = 0
    ordered: bool = False

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


class Begun(NamedTuple):
    """The rows of a group by themselves: the loss of their last targets, (rows, last), and keys and
    values of the first row by layer."""

    losses: Tensor
    first: list[tuple[Tensor, Tensor]]


class Stages:
    """The states of one group of rows, stage by stage.

    Args:
        network: the network.
        tokens: (rows, T + 1), the rows of a group in the order of the text, each with its last
            target.
        last: targets scored at the end of each row.
        sampling: how far keys are drawn.
        bos: the token that a text begins with, in place of its own first; None for none.
        begun: what `begin` gives for this network and these rows; None computes it.
    """

    def __init__(
        self,
        network: Network,
        tokens: Tensor,
        last: int,
        sampling: Sampling,
        bos: int | None = None,
        begun: Begun | None = None,
    ) -> None:
        self.network, self.tokens, self.last, self.sampling = network, tokens, last, sampling
        self.row, self.bos = tokens.shape[1] - 1, bos
        self.own = torch.arange(len(tokens))[:, None]
        self.places = (len(tokens) - 1) * self.row
        self.draws = torch.Generator().manual_seed(sampling.seed)
        self.pools: dict[int, list[tuple[Tensor, Tensor, Tensor]]] = {}
        self.begun: Begun = begun or begin(network, tokens, last, bos)

    def plain(self) -> Tensor:
        """Loss of the last targets of each row by itself, (rows, last)."""
        return self.begun.losses

    @torch.no_grad()
    def stage(self, s: int, ends: Sequence[int]) -> Tensor:
        """Loss of the last targets of each row, placed at the end of stage `s`, (rows, last)."""
        begin, end, row = ends[s - 1], ends[s], self.row
        before = end - 2 * row >= begin
        spans = [(r, ends[r - 1], ends[r]) for r in range(1, s)]
        spans.append((s, begin, end - row * (1 + before)))
        cells = [self._cell(r, torch.arange(a, b)) for r, a, b in spans if a < b]
        chosen, i, first = self._choice(), torch.arange(end - row, end), self.begun.first
        self.pools[s] = []

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            self.pools[s].append((self._pick(k, chosen), self._pick(v, chosen), chosen))
            parts = [Keys(k, v, i, NOTHING)]
            parts.append(Keys(*first[layer], torch.arange(row), NOTHING))
            if before:
                parts.append(Keys(k.roll(1, 0), v.roll(1, 0), i - row, NOTHING))
            parts += [self._far(cell, layer, self.own) for cell in cells]
            return self._mix(layer, q, i, parts)

        scores = self.network.scores(self.tokens[:, :-1], i, self.last, attend)
        return nats(scores, self.tokens)

    @torch.no_grad()
    def blocks(
        self,
        tokens: Tensor,
        positions: Tensor,
        keep: Keep,
        ends: Sequence[int],
        own: Tensor = NO_ROWS,
    ) -> Tensor:
        """Scores of rows with some blocks of text and far keys at all other positions.

        Args:
            tokens: (rows, places).
            positions: of these tokens, ascending. Where they begin beyond the first row of the
                group, that row stands before them.
            keep: whose next token is scored, the last ones or places.
            ends: of the stages, all of them done; the last one is the length of the row.
            own: (rows, any), rows of the group that are no far keys of each row; none by default.

        Returns:
            Shape (rows, kept, vocabulary).
        """
        led = int(positions[0]) >= self.row
        free = torch.ones(ends[-1], dtype=torch.bool)
        free[positions] = False
        free[: self.row * led] = False
        spans = zip([0, *ends[1:-1]], ends[1:], strict=True) if len(self.pools) else ()
        places = [a + free[a:b].nonzero()[:, 0] for a, b in spans]
        cells = [self._cell(s, at) for s, at in enumerate(places, 1) if len(at)]
        first = self.begun.first if led else []

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            parts = [Keys(k, v, positions, NOTHING)]
            if led:
                parts.append(Keys(*first[layer], torch.arange(self.row), NOTHING))
            parts += [self._far(cell, layer, own) for cell in cells]
            return self._mix(layer, q, positions, parts)

        return self.network.scores(tokens, positions, keep, attend)

    def _mix(self, layer: int, q: Tensor, i: Tensor, parts: Sequence[Keys]) -> Tensor:
        """One softmax over all parts, and its mean of the values; some queries of one row at a
        time, so that memory is bounded."""
        network, last, i = self.network, int(i[-1]), i.to(q.device)
        parts = [Keys(p.k, p.v, p.positions.to(q.device), p.more.to(q.device)) for p in parts]
        j = torch.cat([p.positions for p in parts])
        content, sink, cap = network.content(layer), network.sink(layer), network.cap(layer)
        each = [
            (
                side,
                side.query(layer, q, i),
                [side.key(layer, p.k, p.positions, last) for p in parts],
            )
            for side in sides(network)
        ]
        few, mixed = max(1, LOGITS // len(j)), list[Tensor]()
        for at in (slice(a, a + few) for a in range(0, len(i), few)):
            biases, rows = [side.bias(layer, i[at], j) for side, _, _ in each], list[Tensor]()
            for r in range(len(q)):
                v, more = _of_row([p.v for p in parts], r), _added(parts, r)
                added = more
                if content is not None:  # keys count by the positions that they represent
                    near, asked = _of_row([p.k for p in parts], r), q[r : r + 1, :, at]
                    added = more + content.between(asked, near, i[at], j, more.flatten().exp())
                met = [
                    (queries[r : r + 1, :, at], _of_row(keys, r), v, bias + added)
                    for (_, queries, keys), bias in zip(each, biases, strict=True)
                ]
                rows.append(joined(met, sink, cap))
            mixed.append(torch.cat(rows))
        return torch.cat(mixed, 2)

    def _cell(self, stage: int, places: Tensor) -> Cell:
        """Some of the places, one in each of as many equal parts."""
        count, begin = len(places), int(places[0])
        m = min(self.sampling.samples, count, self.places)
        at = (torch.arange(m) + torch.rand(m, generator=self.draws)) * count / m
        parts = (begin + at).floor().long() - begin
        return Cell(stage, places[parts.clamp(max=count - 1)], count)

    def _choice(self) -> Tensor:
        """Which tokens of a stage become far keys, never those of the first row."""
        drawn = torch.randperm(self.places, generator=self.draws)[: self.sampling.samples]
        return (drawn.sort().values if self.sampling.ordered else drawn) + self.row

    def _pick(self, y: Tensor, chosen: Tensor) -> Tensor:
        """Vectors of the chosen tokens, shape (1, heads, samples, size)."""
        return y.transpose(1, 2).flatten(0, 1)[chosen].transpose(0, 1)[None]

    def _far(self, cell: Cell, layer: int, own: Tensor) -> Keys:
        """Keys of a cell with the logarithm of the positions that each represents, by row."""
        k, v, chosen = self.pools[cell.stage][layer]
        m = len(cell.positions)
        k, v, chosen = k[:, :, :m], v[:, :, :m], chosen[:m]
        alien = (chosen // self.row != own[..., None]).all(1)
        share = (cell.count / alien.sum(-1, keepdim=True)).log().float()
        return Keys(k, v, cell.positions, share.where(alien, -math.inf)[:, None, None])


def _of_row(parts: Sequence[Tensor], r: int) -> Tensor:
    """What belongs to a row, of tensors of one a row or of one for all, (1, heads, keys, size)."""
    return torch.cat([x[r : r + 1] if len(x) > 1 else x for x in parts], 2)


def _added(parts: Sequence[Keys], r: int) -> Tensor:
    """What is added to the logits of the keys of a row, (1, 1, 1, keys)."""
    each = (p.more[r : r + 1] if len(p.more) > 1 else p.more for p in parts)
    sizes = (len(p.positions) for p in parts)
    return torch.cat([x.expand(1, 1, 1, n) for x, n in zip(each, sizes, strict=True)], -1)


@torch.no_grad()
def begin(network: Network, tokens: Tensor, last: int, bos: int | None = None) -> Begun:
    """The rows of a group by themselves, whatever is drawn of them later."""
    first, positions = list[tuple[Tensor, Tensor]](), torch.arange(tokens.shape[1] - 1)

    def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        first.append((k[:1], v[:1]))
        return whole(network, layer, q, k, v, positions)

    scores = network.scores(led(tokens, bos)[:, :-1], positions, last, attend)
    return Begun(nats(scores, tokens), first)


def far_losses(
    network: Network,
    tokens: Tensor,
    lengths: Sequence[int],
    sampling: Sampling = Sampling(),
    last: int = 8,
    bos: int | None = None,
    begun: Begun | None = None,
) -> dict[int, Tensor]:
    """Loss of the last targets of each row of a group but the first, at each length.

    Args:
        network: the network.
        tokens: (rows, T + 1).
        lengths: tokens before a target, each `T` or more.
        sampling: how far keys are drawn.
        last: targets scored at the end of each row.
        bos: the token that a text begins with, in place of its own first; None for none.
        begun: what `begin` gives for this network and these rows; None computes it.

    Returns:
        By length, and at `T` itself, shape (rows - 1, last), in nats.
    """
    row = tokens.shape[1] - 1
    stages = Stages(network, tokens, last, sampling, bos, begun)
    losses = {row: stages.plain()[1:]}
    while waiting := set(lengths) - set(losses):  # lengths at which stages end share them
        ends = sampling.ends(row, max(waiting))
        for s in range(1, len(ends)):
            result = stages.stage(s, ends)
            if ends[s] in waiting:
                losses[ends[s]] = result[1:]
    return losses
