"""A trained model layer by layer, its queries and keys at positions of one's own choice.

The far field needs of a model what a forward pass hides: the queries, keys and values of a layer
before positions enter, and the logits of any queries against any keys at any positions.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

from farfield.theory.answers.errors import refuse
from farfield.validation.harness.model import (
    DistanceBias,
    Transformer,
    logit_factor,
    rotated,
    sinusoid,
)
from farfield.validation.harness.settings import CAUSAL, Mask


class Network(Protocol):
    """What the far field asks of a model. Rows have shape (..., length) and vectors of a head
    (..., heads, length, size)."""

    trained: int
    """Training length in tokens."""
    depth: int
    """Layers with attention."""

    def embed(self, tokens: Tensor, first: int) -> Tensor:
        """Input vectors of rows of tokens whose first one stands at position `first`."""

    def qkv(self, layer: int, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of a layer, before positions enter."""

    def logits(self, layer: int, q: Tensor, k: Tensor, i: Tensor, j: Tensor) -> Tensor:
        """Logits (..., heads, len(i), len(j)) of queries at `i` and keys at `j`; -inf masks."""

    def after(self, layer: int, x: Tensor, mixed: Tensor) -> Tensor:
        """The residual after a layer whose heads gave `mixed` (..., heads, length, size)."""

    def nats(self, x: Tensor, targets: Tensor) -> Tensor:
        """Loss of each target, shape (..., targets), from the last residual at its query."""


class TrainedNetwork:
    """A model of the harness, with the keys that a mask leaves at inference.

    Raises:
        InputError: a bias that depends on more than the distance, learned sinks, or absolute
            vectors with a table.
    """

    def __init__(self, model: Transformer, mask: Mask = CAUSAL) -> None:
        self.model, self.mask = model, mask
        self.longest: dict[int, Tensor] = {}
        refuse(
            any(not isinstance(bias, DistanceBias) for bias in model.biases),
            "the bias of this model depends on more than the distance; accepted are biases p(n), "
            "rotations, windows and no positions",
        )
        refuse(
            any(layer.settings.sinks for layer in model.layers),
            "the layers of this model have learned sinks; accepted are layers without",
        )
        refuse(
            model.settings.absolute == "learned",
            f"learned absolute positions end at {self.trained} tokens; accepted are models whose "
            "positions go on",
        )

    @property
    def trained(self) -> int:
        """Training length in tokens."""
        return self.model.settings.length

    @property
    def depth(self) -> int:
        """Layers."""
        return len(self.model.layers)

    def embed(self, tokens: Tensor, first: int) -> Tensor:
        """Embeddings, absolute vectors at the positions included."""
        x = self.model.embedding(tokens)
        if self.model.settings.absolute == "sinusoidal":
            positions = torch.arange(first, first + tokens.shape[-1])
            x = x + sinusoid(positions, x.shape[-1], self.model.settings.spread).to(x)
        return x

    def qkv(self, layer: int, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of the normalised residual."""
        block = self.model.layers[layer]
        split = block.qkv_proj(block.ln_attn(x)).split(x.shape[-1], -1)
        q, k, v = (y.unflatten(-1, (block.heads, -1)).transpose(-2, -3) for y in split)
        return q, k, v

    def logits(self, layer: int, q: Tensor, k: Tensor, i: Tensor, j: Tensor) -> Tensor:
        """Rotation, factor, bias and mask of the layer."""
        block = self.model.layers[layer]
        settings, n = block.settings, i[:, None] - j
        if settings.rope is not None:
            middle = int(i[-1])  # differences alone count, and small numbers keep xPos in range
            q = rotated(q, i - middle, settings.rope)
            k = rotated(k, j - middle, settings.rope, -1)
        logits = q @ k.mT / math.sqrt(q.shape[-1])
        scale = settings.scale
        if scale is not None:
            factor = logit_factor(scale, i + 1, self.trained, False)[:, None]
            chosen = [not scale.heads or h + 1 in scale.heads for h in range(block.heads)]
            logits = logits * torch.where(torch.tensor(chosen)[:, None, None], factor, 1.0)
        at = self.model.bias_of[layer]
        if at is not None:
            table = self.tables(at, int(i[-1]) + 1)
            logits = logits + table[:, n.clamp(min=0)]
        seen = self.mask.within(settings.window).sees(i[:, None], j)
        return logits.masked_fill(~seen, -math.inf)

    def tables(self, at: int, length: int) -> Tensor:
        """The bias of index `at` at distances below `length`, float32, (heads or 1, length)."""
        if at not in self.longest or self.longest[at].shape[1] < length:
            bias = self.model.biases[at]
            assert isinstance(bias, DistanceBias)
            self.longest[at] = bias.table(1 << (length - 1).bit_length()).detach().float()
        return self.longest[at][:, :length]

    def after(self, layer: int, x: Tensor, mixed: Tensor) -> Tensor:
        """Output projection, MLP, both added."""
        block = self.model.layers[layer]
        x = x + block.attn_out(mixed.transpose(-2, -3).flatten(-2))
        return x + block.mlp(block.ln_mlp(x))

    def nats(self, x: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy in float64."""
        scores = self.model.logits(self.model.ln(x)).double().log_softmax(-1)
        return -scores.gather(-1, targets[..., None])[..., 0]
