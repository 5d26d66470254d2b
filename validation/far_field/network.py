"""A trained model as the far field needs it: its queries and keys at positions of one's own choice.

The far field asks for what a forward pass hides: the queries, keys and values of each layer before
positions enter, and what positions do to them. A layer attends by:

    logits = query(q, i) . key(k, j) + bias(i, j)

`whole` attends to the rows themselves, which gives the model back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from farfield.theory.answers.errors import refuse
from farfield.validation.harness.model import (
    DistanceBias,
    Transformer,
    logit_factor,
    rotated,
    sinusoid,
)

QUERIES = 256  # of a row at a time, where all its keys are seen

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""What a layer does with its queries, keys and values, shape (rows, heads, length, size), before
positions enter; the result has the shape of the queries."""


class Network(Protocol):
    """What the far field asks of a model."""

    trained: int
    """Training length in tokens."""
    longest: int | None
    """Positions that there are; None for no end."""
    depth: int
    """Layers."""

    def scores(self, tokens: Tensor, first: int, last: int, attend: Attend) -> Tensor:
        """Scores of the token after each of the `last` tokens, (rows, last, vocabulary), of rows
        whose first token stands at position `first`."""

    def query(self, layer: int, q: Tensor, i: Tensor) -> Tensor:
        """Queries at positions `i`, multiplied by all that multiplies their logits."""

    def key(self, layer: int, k: Tensor, j: Tensor, end: int) -> Tensor:
        """Keys at positions `j`, for queries whose last stands at `end`."""

    def bias(self, layer: int, i: Tensor, j: Tensor) -> Tensor:
        """The term added to the logits, -inf where a key is not seen; (heads or 1, i, j)."""

    def sink(self, layer: int) -> Tensor | None:
        """A learned logit of each head in the denominator, (heads,); None for none."""


class TrainedNetwork:
    """A model of the harness.

    Raises:
        InputError: a bias that depends on more than the distance.
    """

    def __init__(self, model: Transformer) -> None:
        self.model, self.tables = model, dict[int, Tensor]()
        self.trained, self.depth = model.settings.length, len(model.layers)
        self.longest = self.trained if model.settings.absolute == "learned" else None
        refuse(
            any(not isinstance(bias, DistanceBias) for bias in model.biases),
            "the bias of this model depends on more than the distance; accepted are biases p(n), "
            "rotations, windows and no positions",
        )

    def scores(self, tokens: Tensor, first: int, last: int, attend: Attend) -> Tensor:
        """As `Network.scores`."""
        model = self.model
        x = model.embedding(tokens)
        if model.settings.absolute == "sinusoidal":
            positions = torch.arange(first, first + tokens.shape[-1])
            x = x + sinusoid(positions, x.shape[-1], model.settings.spread).to(x)
        elif model.absolute is not None:
            x = x + model.absolute.weight[first : first + tokens.shape[-1]]
        for at, layer in enumerate(model.layers):
            split = layer.qkv_proj(layer.ln_attn(x)).split(x.shape[-1], -1)
            q, k, v = (y.unflatten(-1, (layer.heads, -1)).transpose(1, 2) for y in split)
            x = x + layer.attn_out(attend(at, q, k, v).transpose(1, 2).flatten(2))
            x = x + layer.mlp(layer.ln_mlp(x))
        return model.logits(model.ln(x[:, -last:]))

    def query(self, layer: int, q: Tensor, i: Tensor) -> Tensor:
        """As `Network.query`; rotations are counted from the last query."""
        settings = self.model.layers[layer].settings
        if settings.rope is not None:
            q = rotated(q, i - i[-1], settings.rope)
        scale, heads = settings.scale, q.shape[1]
        if scale is not None:
            factor = logit_factor(scale, i + 1, self.trained, False)[:, None]
            chosen = [not scale.heads or h + 1 in scale.heads for h in range(heads)]
            q = q * torch.where(torch.tensor(chosen)[:, None, None], factor, 1.0)
        return q / math.sqrt(q.shape[-1])

    def key(self, layer: int, k: Tensor, j: Tensor, end: int) -> Tensor:
        """As `Network.key`."""
        rope = self.model.layers[layer].settings.rope
        return k if rope is None else rotated(k, j - end, rope, -1)

    def bias(self, layer: int, i: Tensor, j: Tensor) -> Tensor:
        """As `Network.bias`."""
        n, width = i[:, None] - j, self.model.layers[layer].settings.window
        at, added = self.model.bias_of[layer], torch.zeros(1, 1, 1)
        if at is not None:
            added = self._table(at, int(i[-1]) + 1)[:, n.clamp(min=0)]
        return added.masked_fill((n < 0) | (n >= (width or math.inf)), -math.inf)

    def sink(self, layer: int) -> Tensor | None:
        """As `Network.sink`."""
        return self.model.layers[layer].sinks

    def _table(self, at: int, length: int) -> Tensor:
        """The bias of index `at` at distances below `length` or more, float32."""
        if at not in self.tables or self.tables[at].shape[1] < length:
            bias = self.model.biases[at]
            assert isinstance(bias, DistanceBias)
            self.tables[at] = bias.table(1 << (length - 1).bit_length()).detach().float()
        return self.tables[at]


def whole(network: Network, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of rows that begin at position 0 to their own keys, some queries at a time."""
    j = torch.arange(k.shape[2])
    k = network.key(layer, k, j, len(j) - 1)
    parts = []
    for i in j.split(QUERIES):
        end = int(i[-1]) + 1
        queries = network.query(layer, q, j)[:, :, i]
        bias = network.bias(layer, i, j[:end])[None]
        sink = network.sink(layer)
        parts.append(attention(queries, k[:, :, :end], v[:, :, :end], bias, sink))
    return torch.cat(parts, 2)


def attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, sink: Tensor | None) -> Tensor:
    """Softmax attention of queries that are scaled already; the bias broadcasts."""
    bias = bias.to(q.dtype)
    if sink is not None:  # a key of value 0
        k, v = (torch.nn.functional.pad(x, (0, 0, 0, 1)) for x in (k, v))
        more = sink[:, None, None].expand(-1, q.shape[2], -1)
        own = bias.expand(bias.shape[0], len(sink), q.shape[2], -1)
        bias = torch.cat([own, more.expand(len(own), -1, -1, -1)], -1)
    return scaled_dot_product_attention(q, k, v, bias, scale=1.0)


@torch.no_grad()
def losses(network: Network, tokens: Tensor, last: int) -> Tensor:
    """Loss of the last targets of real rows (rows, length + 1), in nats, (rows, last)."""

    def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return whole(network, layer, q, k, v)

    return nats(network.scores(tokens[:, :-1], 0, last, attend), tokens)


def nats(scores: Tensor, tokens: Tensor) -> Tensor:
    """Loss of the last targets of rows (rows, length + 1) from their scores, float64."""
    targets = tokens[:, -scores.shape[1] :, None]
    return -scores.double().log_softmax(-1).gather(-1, targets)[..., 0]
