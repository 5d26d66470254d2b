"""A decoder-only transformer over bytes or tokens, with any positional encoding.

Pre-norm, GELU, tied embedding:

    x = embedding(tokens) [+ absolute vector]
    x = x + attention(norm(x)); x = x + mlp(norm(x))        in each layer
    logits = norm(x) @ embedding.T

The position enters in one of three places: as a bias of the attention scores (`bias`), as a
rotation of queries and keys (`rotation`, `rotation_decay`), or as a vector added to the embedding
(`sinusoidal`, `learned_absolute`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import Encoding
from farfield.validation.harness.attention import Path, fused, recent
from farfield.validation.harness.corpus import BYTES
from farfield.validation.harness.positional import (
    LearnedBias,
    Rotation,
    additive_bias,
    rows_of,
    sinusoid,
)
from farfield.validation.harness.presets import Preset
from farfield.validation.harness.visibility import CAUSAL, Visibility

_SPREAD = 0.02  # standard deviation of the initial weights

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


class Layer(nn.Module):
    """Multi-head attention, then an MLP four times as wide, each on a normalised residual."""

    def __init__(self, width: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.attention_norm, self.mlp_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mixed = nn.Linear(width, 3 * width, bias=False)
        self.attention_out = nn.Linear(width, width, bias=False)
        self.wide = nn.Linear(width, 4 * width, bias=False)
        self.mlp_out = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor, attend: Attend, last: int = 0) -> Tensor:
        """The next residual, shape (batch, length, width); of the `last` tokens alone if any."""
        mixed = self.mixed(self.attention_norm(x)).split(x.shape[-1], -1)
        query, key, value = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in mixed)
        if last:
            x, query = x[:, -last:], query[:, :, -last:]
        attended = self.attention_out(attend(query, key, value).transpose(1, 2).flatten(2))
        x = x + self._thinned(attended)
        return x + self._thinned(self.mlp_out(functional.gelu(self.wide(self.mlp_norm(x)))))

    def _thinned(self, branch: Tensor) -> Tensor:
        return functional.dropout(branch, self.dropout, self.training) if self.dropout else branch


class Transformer(nn.Module):
    """A language model with one positional encoding.

    Args:
        encoding: one of `configuration.TRAINABLE` mechanisms.
        preset: architecture; its `length` is all that a learned absolute encoding knows.
        vocabulary: number of different tokens.

    >>> from farfield.theory.encodings import encoding
    >>> from farfield.validation.harness.presets import preset
    >>> model = Transformer(encoding("type1"), preset("tiny"))
    >>> model(torch.zeros(1, 5, dtype=torch.long)).shape
    torch.Size([1, 5, 256])
    """

    def __init__(self, encoding: Encoding, preset: Preset, vocabulary: int = BYTES) -> None:
        super().__init__()
        self.mechanism, self.length = encoding.mechanism, preset.length
        self.dropout = preset.dropout
        self.embedding = nn.Embedding(vocabulary, preset.width)
        self.layers = nn.ModuleList(
            Layer(preset.width, preset.heads, preset.dropout) for _ in range(preset.layers)
        )
        self.norm = nn.LayerNorm(preset.width)
        self.bias = self.rotation = self.absolute = None
        match encoding.mechanism:
            case "bias":
                self.bias = additive_bias(encoding, preset.heads)
            case "rotation" | "rotation_decay" as kind:
                self.rotation = Rotation(
                    preset.width // preset.heads, decay=kind == "rotation_decay"
                )
            case "learned_absolute":
                self.absolute = nn.Embedding(preset.length, preset.width)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=_SPREAD)
        for layer in self.layers:
            for last in (layer.attention_out, layer.mlp_out):
                nn.init.normal_(last.weight, std=_SPREAD / math.sqrt(2 * preset.layers))

    def embed(self, tokens: Tensor, first: int = 0) -> Tensor:
        """The input embedding of tokens at the positions from `first`.

        Args:
            tokens: int64, shape (batch, length).
            first: position of the first token; only absolute encodings ask for it.

        Returns:
            Shape (batch, length, width).

        Raises:
            InputError: a position beyond those that a learned absolute encoding knows.
        """
        x = self.embedding(tokens)
        length = tokens.shape[1]
        if self.mechanism == "sinusoidal":
            return x + sinusoid(length, x.shape[-1], _SPREAD, first).to(x)
        if self.absolute is not None:
            if first + length > self.length:
                raise InputError(
                    f"a learned absolute encoding knows {self.length} positions; {first + length} "
                    f"tokens were given, accepted are at most {self.length}"
                )
            return x + self.absolute.weight[first : first + length]
        return x

    def hidden(
        self,
        embedded: Tensor,
        visible: Visibility = CAUSAL,
        path: Path = fused,
        last: int = 0,
    ) -> Tensor:
        """The normalised last residual, shape (batch, length, width), from input embeddings.

        With `last`, of so many last tokens alone: the last layer then computes no other, and does
        not ask the path.
        """
        x = embedded
        if self.dropout:
            x = functional.dropout(x, self.dropout, self.training)
        bias = None if self.bias is None else self.bias(x.shape[1]).to(x.device, _exact(x.dtype))

        def attend(query: Tensor, key: Tensor, value: Tensor, layer: int) -> Tensor:
            if self.rotation is not None:
                query, key = self.rotation(query, key)
            own = None if bias is None else rows_of(bias, layer, query.shape[1])
            if query.shape[-2] < key.shape[-2]:
                return recent(query, key, value, own, visible)
            return path(query, key, value, own, visible)

        top = len(self.layers) - 1
        for k, layer in enumerate(self.layers):
            x = layer(x, functools.partial(attend, layer=k), last if k == top else 0)
        return self.norm(x)

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores of the next token, shape (..., vocabulary), from the last residual."""
        return functional.linear(hidden, self.embedding.weight)

    def forward(self, tokens: Tensor, visible: Visibility = CAUSAL, path: Path = fused) -> Tensor:
        """Scores of the token after each token.

        Args:
            tokens: int64, shape (batch, length).
            visible: which keys a query sees; anything but `CAUSAL` is meant for inference.
            path: the attention path.

        Returns:
            Shape (batch, length, vocabulary).

        Raises:
            InputError: more tokens than a learned absolute encoding knows.
        """
        return self.logits(self.hidden(self.embed(tokens), visible, path))

    def project(self) -> None:
        """Move the learned parameters of the bias back into their domains."""
        if isinstance(self.bias, LearnedBias):
            self.bias.project()

    @property
    def vocabulary(self) -> int:
        """How many different tokens it scores."""
        return len(self.embedding.weight)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.embedding.weight.device

    def bias_table(self, length: int) -> Tensor | None:
        """The bias at distances 0 .. length - 1 in float64, a row a head; see `rows_of`."""
        return None if self.bias is None else self.bias(length).detach().double().cpu()

    def learned_values(self) -> dict[str, list[float]]:
        """The learned parameters of the bias, one value a head; empty where there are none."""
        values = getattr(self.bias, "values", {})
        return {name: values[name].tolist() for name in values}


def _exact(dtype: torch.dtype) -> torch.dtype:
    """The type of the bias: never less than float32, where distances above 256 would be rounded."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def initialised(
    encoding: Encoding, preset: Preset, seed: int, vocabulary: int = BYTES
) -> Transformer:
    """A model with initial weights drawn from a seed, whatever torch's own random state is.

    The token embedding, the matrices and learned absolute vectors are normal with deviation 0.02,
    the last matrix of each residual branch smaller by sqrt(2 layers).
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Transformer(encoding, preset, vocabulary)
