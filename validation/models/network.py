"""What the far field asks of a network: queries and keys at any positions; the harness's answers.

The far field asks for what a forward pass hides: the queries, keys and values of each layer before
positions enter, and what positions do to them. A layer attends by:

    logits = query(q, i) . key(k, j) + bias(i, j)

`whole` attends to the rows themselves, which gives the model back.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias

import torch
from torch import Tensor, nn

from farfield.theory.encodings import Encoding
from farfield.validation.harness.bias import FixedBias, LearnedBias
from farfield.validation.harness.measure import nats_of
from farfield.validation.harness.model import (
    DistanceBias,
    Transformer,
    adds,
    logit_factor,
    rotated,
    sinusoid,
)
from farfield.validation.models.content_bias import Content, content_of, of_positions
from farfield.validation.models.joined_attention import Part, joined

QUERIES = 256  # of a row at a time, where all its keys are seen
TABLE = 1 << 16  # distances whose bias is kept

Keep: TypeAlias = "int | Tensor"
"""How many of the last tokens of a row are kept, or their places."""
Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""What a layer does with its queries, keys and values, shape (rows, heads, length, size), before
positions enter; the result has the shape of the queries. Grouped heads have fewer keys and values,
each for as many neighbouring queries."""


Grouped: TypeAlias = "tuple[Network, tuple[int, int]]"


class Network(Protocol):
    """What the far field asks of a model."""

    trained: int
    """Training length in tokens."""
    longest: int | None
    """Positions that there are; None for no end."""
    depth: int
    """Layers."""
    grouped: Grouped | None
    """The network without groups, tokens that share a position and the distance from which they do;
    None where there are no groups."""

    def scores(self, tokens: Tensor, positions: Tensor, keep: Keep, attend: Attend) -> Tensor:
        """Scores of the token after those that are kept, (rows, kept, vocabulary), of rows whose
        tokens stand at `positions`, ascending."""

    def query(self, layer: int, q: Tensor, i: Tensor) -> Tensor:
        """Queries at positions `i`, multiplied by all that multiplies their logits."""

    def key(self, layer: int, k: Tensor, j: Tensor, end: int) -> Tensor:
        """Keys at positions `j`, for queries whose last stands at `end`."""

    def bias(self, layer: int, i: Tensor, j: Tensor) -> Tensor:
        """The term added to the logits, -inf where a key is not seen; (heads or 1, i, j)."""

    def content(self, layer: int) -> Content | None:
        """What adds to the logits by what is read, made of vectors before positions enter; None
        for a layer that has no such bias."""

    def sink(self, layer: int) -> Tensor | None:
        """A learned logit of each head in the denominator, (heads,); None for none."""

    def cap(self, layer: int) -> float | None:
        """The bound `c` of a layer whose logits are `c tanh(x / c)` before its bias; None for
        none."""


class TrainedNetwork:
    """A model of the harness.

    Raises:
        InputError: a bias that depends on more than the distance, in a form that far keys cannot
            have.
    """

    def __init__(self, model: Transformer) -> None:
        self.model, self.tables = model, dict[nn.Module, DistanceTable]()
        self.grouped: Grouped | None = None
        self.trained, self.depth = model.settings.length, len(model.layers)
        self.longest = self.trained if model.settings.absolute == "learned" else None
        self.contents, self.placed = dict[nn.Module, Content](), list[nn.Module]()
        heads = model.settings.heads
        self.shape = heads, model.settings.width // heads
        for bias in model.biases:
            if not isinstance(bias, DistanceBias):
                if adds(bias) and of_positions(bias, *self.shape):
                    self.placed.append(bias)
                elif adds(bias):
                    self.contents[bias] = content_of(bias, *self.shape)
                continue
            self.tables[bias] = DistanceTable(bias.table, encoding_of(bias))

    def scores(self, tokens: Tensor, positions: Tensor, keep: Keep, attend: Attend) -> Tensor:
        """As `Network.scores`."""
        model = self.model
        x = model.embedding(tokens.to(model.device))
        positions = positions.to(x.device)
        if model.settings.absolute == "sinusoidal":
            x = x + sinusoid(positions, x.shape[-1], model.settings.spread).to(x)
        elif model.absolute is not None:
            x = x + model.absolute.weight[positions]
        for at, layer in enumerate(model.layers):
            split = layer.qkv_proj(layer.ln_attn(x)).split(x.shape[-1], -1)
            q, k, v = (y.unflatten(-1, (layer.heads, -1)).transpose(1, 2) for y in split)
            x = x + layer.attn_out(attend(at, q, k, v).transpose(1, 2).flatten(2))
            x = x + layer.mlp(layer.ln_mlp(x))
        return model.logits(model.ln(kept(x, keep)))

    def query(self, layer: int, q: Tensor, i: Tensor) -> Tensor:
        """As `Network.query`; rotations are counted from the last query."""
        settings = self.model.layers[layer].settings
        if settings.rope is not None:
            q = rotated(q, i - i[-1], settings.rope)
        if settings.scale is not None:
            factor = logit_factor(settings.scale, i + 1, q.shape[1], self.trained, False)
            q = q * factor[..., None]
        own = getattr(self.model.bias_of[layer], "factor", None)
        if own is not None:
            q = q * own(i)[..., None]
        return q / math.sqrt(q.shape[-1])

    def key(self, layer: int, k: Tensor, j: Tensor, end: int) -> Tensor:
        """As `Network.key`."""
        rope = self.model.layers[layer].settings.rope
        return k if rope is None else rotated(k, j - end, rope, -1)

    def bias(self, layer: int, i: Tensor, j: Tensor) -> Tensor:
        """As `Network.bias`."""
        n, width = i[:, None] - j, self.model.layers[layer].settings.window
        bias, added = self.model.bias_of[layer], torch.zeros(1, 1, 1, device=n.device)
        if bias in self.tables:
            added = self.tables[bias].at(n.clamp(min=0))
        elif bias is not None and bias in self.placed:
            heads, size = self.shape
            q, k = (torch.zeros(1, heads, len(at), size, device=at.device) for at in (i, j))
            placed = bias(q, k, i, j)
            added = placed.expand(*placed.shape[:-2], len(i), len(j)).reshape(-1, len(i), len(j))
        return added.masked_fill((n < 0) | (n >= (width or math.inf)), -math.inf)

    def content(self, layer: int) -> Content | None:
        """As `Network.content`."""
        return self.contents.get(self.model.bias_of[layer])

    def sink(self, layer: int) -> Tensor | None:
        """As `Network.sink`."""
        return self.model.layers[layer].sinks

    def cap(self, layer: int) -> None:
        """As `Network.cap`; the harness has none."""


def encoding_of(bias: object) -> Encoding | None:
    """The encoding of a bias of the harness, with what it has learned; None of a user's module."""
    if isinstance(bias, LearnedBias):
        return bias.fixed
    return bias.encoding if isinstance(bias, FixedBias) else None


class DistanceTable:
    """A bias by distance: a table of the near ones, which are few, and the formula of the others,
    so that memory does not grow with the row.

    Args:
        table: the bias at distances below a length.
        formula: its encoding; None where there is only the table.
    """

    def __init__(self, table: Callable[[int], Tensor], formula: Encoding | None) -> None:
        self.table, self.formula, self.near = table, formula, torch.empty(1, 0)

    def at(self, n: Tensor) -> Tensor:
        """At distances `n` of any shape, (heads or 1, *shape), float32."""
        most = int(n.max()) + 1
        if most > TABLE and self.formula is not None:
            parts = [self.formula.bias(part.numpy()) for part in n.cpu().flatten().split(TABLE)]
            far = torch.cat([torch.from_numpy(part).float() for part in parts], 1)
            return far.unflatten(1, n.shape).to(n.device)
        if self.near.shape[1] < most:
            self.near = self.table(1 << (most - 1).bit_length()).detach().float()
        self.near = self.near.to(n.device)
        return self.near[:, n]


def kept(x: Tensor, keep: Keep) -> Tensor:
    """The tokens of rows (rows, length, size) that are kept."""
    return x[:, -keep:] if isinstance(keep, int) else x[:, keep]


@dataclass(frozen=True)
class Side:
    """Keys at some distances, and the positions at which they are met: all keys at their own, or
    under groups the near ones at their own and the far ones at those of their groups.

    Args:
        network: without groups.
        low, high: of the distances, up to and without `high`.
        size: of groups whose positions count; 1 for their own.
        begin: what is added to the positions of queries.
    """

    network: Network
    low: int = 0
    high: int | None = None
    size: int = 1
    begin: int = 0

    def query(self, layer: int, q: Tensor, i: Tensor) -> Tensor:
        """As `Network.query`."""
        return self.network.query(layer, q, i // self.size + self.begin)

    def key(self, layer: int, k: Tensor, j: Tensor, end: int) -> Tensor:
        """As `Network.key`."""
        return self.network.key(layer, k, j // self.size, end // self.size + self.begin)

    def bias(self, layer: int, i: Tensor, j: Tensor) -> Tensor:
        """As `Network.bias`, -inf at other distances."""
        bias = self.network.bias(layer, i // self.size + self.begin, j // self.size)
        n = i[:, None] - j
        if self.low:
            bias = bias.masked_fill(n < self.low, -math.inf)
        return bias if self.high is None else bias.masked_fill(n >= self.high, -math.inf)

    def keys(self, positions: Tensor, begin: int, end: int) -> slice:
        """The places of keys that the queries from `begin` up to `end` of a row meet."""
        first, last = positions[begin], positions[end - 1]
        low = (
            0 if self.high is None else torch.searchsorted(positions, first - self.high, right=True)
        )
        stop = torch.searchsorted(positions, last - self.low, right=True) if self.low else end
        return slice(int(low), int(stop))


def sides(network: Network) -> list[Side]:
    """What a network meets its keys by."""
    if network.grouped is None:
        return [Side(network)]
    plain, (size, width) = network.grouped
    return [Side(plain, high=width), Side(plain, width, None, size, width - width // size)]


def whole(
    network: Network, layer: int, q: Tensor, k: Tensor, v: Tensor, positions: Tensor, first: int = 0
) -> Tensor:
    """Attention of rows to their own keys, some queries at a time, those from the place `first` on;
    each key is met once."""
    last, at = int(positions[-1]), positions.to(q.device)
    content, sink, cap = network.content(layer), network.sink(layer), network.cap(layer)
    each = [(s, s.query(layer, q, at), s.key(layer, k, at, last)) for s in sides(network)]
    mixed, one = list[Tensor](), torch.ones(len(at), device=q.device)
    for begin in range(first, len(at), QUERIES):
        end = min(begin + QUERIES, len(at))
        rows, parts = slice(begin, end), list[Part]()
        for side, asked, turned in each:
            keys = side.keys(positions, begin, end)
            bias = side.bias(layer, at[rows], at[keys])[None]
            if content is not None:
                near = k[:, :, keys]
                bias = bias + content.between(q[:, :, rows], near, at[rows], at[keys], one[keys])
            parts.append((asked[:, :, rows], turned[:, :, keys], v[:, :, keys], bias))
        mixed.append(joined(parts, sink, cap))
    return torch.cat(mixed, 2)


def with_ends(
    network: Network, layer: int, q: Tensor, k: Tensor, v: Tensor, positions: Tensor
) -> Tensor:
    """Attention of rows of several ends: where positions go back, another end of the row begins,
    which sees what stands before its first position, and itself."""
    back = ((positions.diff() <= 0).nonzero()[:, 0] + 1).tolist()
    row = (back or [len(positions)])[0]
    places = positions[:row]
    mixed = [whole(network, layer, q[:, :, :row], k[:, :, :row], v[:, :, :row], places)]
    for begin, stop in itertools.pairwise([*back, len(positions)]):
        before = int(torch.searchsorted(places, positions[begin]))
        seen = torch.cat([torch.arange(before), torch.arange(begin, stop)])
        own_q, own_k, own_v = (x.index_select(2, seen.to(x.device)) for x in (q, k, v))
        mixed.append(whole(network, layer, own_q, own_k, own_v, positions[seen], before))
    return torch.cat(mixed, 2)


@torch.no_grad()
def scores_at(network: Network, tokens: Tensor, positions: Tensor, keep: Keep) -> Tensor:
    """Scores of rows (rows, length) whose tokens stand at positions and see one another alone;
    positions may go back, as `with_ends` says."""
    return network.scores(tokens, positions, keep, partial(with_ends, network, positions=positions))


def losses(network: Network, tokens: Tensor, last: int) -> Tensor:
    """Loss of the last targets of real rows (rows, length + 1), in nats, (rows, last)."""
    positions = torch.arange(tokens.shape[1] - 1)
    return nats(scores_at(network, tokens[:, :-1], positions, last), tokens)


def nats(scores: Tensor, tokens: Tensor) -> Tensor:
    """Loss of the last targets of rows (rows, length + 1) from their scores, float64, on the CPU
    wherever the scores are."""
    return nats_of(scores, tokens[:, -scores.shape[1] :].to(scores.device)).cpu()
