"""A decoder-only transformer over bytes or tokens, with any positional mechanism in each layer.

Pre-norm, GELU, tied embedding unless the shape says otherwise:

    x = embedding(tokens) [+ absolute vector]
    x = x + attention(norm(x)); x = x + mlp(norm(x))        in each layer
    logits = norm(x) @ embedding.T

A position enters in one of five ways. Attention has a bias of its scores, a rotation of queries and
keys, a window, or a factor of its logits that grows with the row. Or the embedding gets a vector.

`model(tokens, bias, mask)` takes the bias and the mask of each layer as data. `model.given` makes
them, and the tables of rotations, outside of what is compiled:

    bias, mask = model.given(length)                           # once a length and visibility
    scores = torch.compile(model, fullgraph=True)(tokens, bias, mask)

On a CPU a bias is a table and a mask is a `Visibility`. On a GPU a bias is a table or a score
function, and a mask the block mask of FlexAttention. This file needs torch alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from .attention import PLAIN, LogitTransform, Path, blocks, fused, last_queries_attention
from .mechanism import CAUSAL, LayerMechanism, Scale, Turn, Visibility, refused


class Rotation(nn.Module):
    """Rotation of queries and keys by angles that grow with the position; with decay, xPos.

    Pair `i` of `r/2` turns by `theta_i = base^(-2i/r)` a token, `r` the dimensions that turn. With
    decay, queries are scaled by `zeta_i^(m/512)` and keys by its inverse,
    `zeta_i = (2i/r + 0.4) / 1.4` [S, Algorithm 1]. Positions are centred, which keeps the scales in
    range and changes no score.
    """

    def __init__(self, size: int, turn: Turn) -> None:
        super().__init__()
        self.turned = 2 * round(turn.share * size / 2)
        pair = torch.arange(self.turned // 2, dtype=torch.float64)
        self.theta = turn.base ** (-2 * pair / self.turned) / turn.scaling
        self.log_zeta = ((2 * pair / self.turned + 0.4) / 1.4).log() if turn.decay else None
        self.turns: Tensor
        self.register_buffer("turns", torch.empty(2, 0, 0), persistent=False)

    def reach(self, length: int, device: torch.device) -> None:
        """Make the tables, in float64, of positions enough for rows of this length."""
        half = self.turns.shape[1] // 2
        if 2 * half >= length and self.turns.device == device:
            return
        half = max(half, 512, 1 << (length // 2).bit_length())
        position = torch.arange(-half, half, dtype=torch.float64)[:, None]
        angle = position * self.theta
        turns = (angle.cos(), angle.sin())
        if self.log_zeta is not None:
            scale = (position / 512 * self.log_zeta).exp()
            turns = tuple(t * s for s in (scale, 1 / scale) for t in turns)
        self.turns = torch.stack(turns).to(device)

    def forward(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys, shape (batch, heads, length, size), at their positions.

        Fewer queries than keys are the last ones, as with a cache of keys.
        """
        length, new = key.shape[-2], query.shape[-2]
        first = self.turns.shape[1] // 2 - length // 2
        turns = self.turns[:, first : first + length].to(key.dtype)
        return self._at(query, *turns[:2, length - new :]), self._at(key, *turns[-2:])

    def _at(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        a, b = x[..., : self.turned].chunk(2, -1)
        turned = [a * cos - b * sin, b * cos + a * sin]
        return torch.cat([*turned, x[..., self.turned :]], -1)


def sinusoid(length: int, width: int, rms: float, first: int = 0) -> Tensor:
    """Absolute sinusoidal vectors of a given root mean square, float64, shape (length, width).

    They are those of the positions from `first`.

    >>> sinusoid(3, 4, 0.5)[0]
    tensor([0.0000, 0.0000, 0.7071, 0.7071], dtype=torch.float64)
    """
    pair = torch.arange(width // 2, dtype=torch.float64)
    position = torch.arange(first, first + length, dtype=torch.float64)[:, None]
    angle = position * 10000.0 ** (-2 * pair / width)
    return torch.cat([angle.sin(), angle.cos()], -1) * rms * math.sqrt(2)


class Layer(nn.Module):
    """Multi-head attention, then an MLP four times as wide, each on a normalised residual."""

    def __init__(
        self,
        width: int,
        heads: int,
        mechanism: LayerMechanism,
        dropout: float = 0.0,
        length: int = 0,
    ) -> None:
        super().__init__()
        self.heads, self.mechanism, self.dropout = heads, mechanism, dropout
        self.length = length
        self.attention_norm, self.mlp_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mixed = nn.Linear(width, 3 * width, bias=False)
        self.attention_out = nn.Linear(width, width, bias=False)
        self.wide = nn.Linear(width, 4 * width, bias=False)
        self.mlp_out = nn.Linear(4 * width, width, bias=False)
        turn, size = mechanism.turn, width // heads
        self.rotation = None if turn is None else Rotation(size, turn)
        self.sink = nn.Parameter(torch.zeros(heads)) if mechanism.sinks else None

    def forward(self, x: Tensor, bias: Any, mask: Any, path: Path = fused, last: int = 0) -> Tensor:
        """The next residual, shape (batch, length, width); of the `last` tokens alone if any."""
        mixed = self.mixed(self.attention_norm(x)).split(x.shape[-1], -1)
        query, key, value = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in mixed)
        if last:
            x, query = x[:, -last:], query[:, :, -last:]
        if self.rotation is not None:
            query, key = self.rotation(query, key)
        if self.mechanism.scale is not None:
            query = self._scaled(query, key.shape[-2], self.mechanism.scale)
        weighting = PLAIN if self.sink is None else LogitTransform(sink=self.sink)
        more = {} if weighting.plain else {"weighting": weighting}
        attend = last_queries_attention if query.shape[-2] < key.shape[-2] else path
        attended = attend(query, key, value, bias, mask, **more).transpose(1, 2).flatten(2)
        x = x + self._thinned(self.attention_out(attended))
        return x + self._thinned(self.mlp_out(functional.gelu(self.wide(self.mlp_norm(x)))))

    def _scaled(self, query: Tensor, length: int, scale: Scale) -> Tensor:
        keys = torch.arange(length - query.shape[-2], length, device=query.device) + 1
        by_row = scale.at(
            keys,
            self.length,
            self.training,
            log=lambda n: n.float().log(),
            least=lambda bound, found: found.clamp(min=bound),
        )
        if isinstance(by_row, float):
            return query
        factors = by_row[:, None].expand(self.heads, -1, 1)
        if scale.heads:
            chosen = torch.tensor([h + 1 in scale.heads for h in range(self.heads)])
            factors = torch.where(chosen.to(query.device)[:, None, None], factors, 1.0)
        return query * factors.to(query.dtype)

    def _thinned(self, branch: Tensor) -> Tensor:
        return functional.dropout(branch, self.dropout, self.training) if self.dropout else branch


class Transformer(nn.Module):
    """A language model with a positional mechanism in each layer.

    Args:
        shape: layers, width, heads, dropout, `spread` of the initial weights; its `length` is all
            that a learned absolute encoding knows. With an `embedding_spread`, the initial
            embedding has that deviation, and the output has a matrix of its own.
        mechanisms: one a layer.
        vocabulary: number of different tokens.
        bias: makes the module whose `bias(length)` is the table of the bias, shape (1, heads or
            layers * heads; length). It may have `function(layer)`, a score function that
            FlexAttention takes in place of the table, or None.
        absolute: `sinusoidal` or `learned_absolute` vectors; None for none.

    >>> from farfield.validation.harness.presets import preset
    >>> model = Transformer(preset("tiny"), [LayerMechanism(window=4), LayerMechanism(turn=Turn())])
    >>> model(torch.zeros(1, 5, dtype=torch.long)).shape
    torch.Size([1, 5, 256])
    """

    def __init__(
        self,
        shape: Any,
        mechanisms: Sequence[LayerMechanism],
        vocabulary: int = 256,
        bias: Callable[[], nn.Module] | None = None,
        absolute: str | None = None,
    ) -> None:
        super().__init__()
        self.length, self.dropout, self.spread = shape.length, shape.dropout, shape.spread
        self.sinusoidal = absolute == "sinusoidal"
        self.embedding = nn.Embedding(vocabulary, shape.width)
        self.layers = nn.ModuleList(
            Layer(shape.width, shape.heads, mechanism, shape.dropout, shape.length)
            for mechanism in mechanisms
        )
        self.norm = nn.LayerNorm(shape.width)
        self.bias = None if bias is None else bias()
        own = shape.embedding_spread is not None
        self.output = nn.Linear(shape.width, vocabulary, bias=False) if own else None
        learned = absolute == "learned_absolute"
        self.absolute = nn.Embedding(shape.length, shape.width) if learned else None
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=self.spread)
        if own:
            nn.init.normal_(self.embedding.weight, std=shape.embedding_spread)
        for layer in self.layers:
            for last in (layer.attention_out, layer.mlp_out):
                nn.init.normal_(last.weight, std=self.spread / math.sqrt(2 * shape.layers))

    def given(
        self, length: int, visible: Visibility = CAUSAL, *, flex: bool = False
    ) -> tuple[list[Any], list[Any]]:
        """The bias and the mask of each layer for rows of one length.

        With `flex`, as FlexAttention takes them: a table or a score function, and a block mask.
        What it gives holds until a learned bias without score functions changes.
        """
        function = getattr(self.bias, "function", None) if flex else None
        functions = [None if function is None else function(at) for at in range(len(self.layers))]
        table, widths = None, list[int]()
        if self.bias is not None and None in functions:
            table = self.bias(length)
            if flex and not table.requires_grad:  # a table of the processor: no device is asked
                seen = torch.arange(1, length + 1) * (table > -math.inf)
                widths = seen.amax(-1).tolist()
            exact = self.embedding.weight.dtype == torch.float64
            table = table.to(self.device, torch.float64 if exact else torch.float32)
        biases, masks = [], []
        for at, layer in enumerate(self.layers):
            if layer.rotation is not None:
                layer.rotation.reach(length, self.device)
            biased, own = layer.mechanism.biased, functions[at]
            if table is not None and own is None:
                own = layer_bias(table, at, layer.heads)
            biases.append(own if biased else None)
            mask = visible.within(layer.mechanism.window)
            near = layer_bias(widths, at, layer.heads) if biased else []
            near = near if min(near, default=length) < length else []
            known = blocks(mask, length, reach=tuple(near), device=self.device) if flex else mask
            masks.append(known)
        return biases, masks

    def embed(self, tokens: Tensor, first: int = 0) -> Tensor:
        """The input embedding of tokens, int64, shape (batch, length), in (batch, length, width).

        They are at the positions from `first`, which only absolute encodings ask for.

        Raises:
            InputError: a position beyond those that a learned absolute encoding knows.
        """
        x = self.embedding(tokens)
        length = tokens.shape[1]
        if self.sinusoidal:
            return x + sinusoid(length, x.shape[-1], self.spread, first).to(x)
        if self.absolute is not None:
            if first + length > self.length:
                raise refused(
                    f"a learned absolute encoding knows {self.length} positions; {first + length} "
                    f"tokens were given, accepted are at most {self.length}"
                )
            return x + self.absolute.weight[first : first + length]
        return x

    def hidden(
        self, embedded: Tensor, visible: Visibility = CAUSAL, path: Path = fused, last: int = 0
    ) -> Tensor:
        """The normalised last residual, shape (batch, length, width), from input embeddings.

        With `last`, of so many last tokens alone: the last layer then computes no other, and does
        not ask the path.
        """
        bias, mask = self.given(embedded.shape[1], visible)
        return self._through(embedded, bias, mask, path, last)

    def _through(
        self, x: Tensor, bias: Sequence[Any], mask: Sequence[Any], path: Path, last: int = 0
    ) -> Tensor:
        if self.dropout:
            x = functional.dropout(x, self.dropout, self.training)
        top = len(self.layers) - 1
        for k, layer in enumerate(self.layers):
            x = layer(x, bias[k], mask[k], path, last if k == top else 0)
        return self.norm(x)

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores of the next token, shape (..., vocabulary), from the last residual."""
        output = self.embedding if self.output is None else self.output
        return functional.linear(hidden, output.weight)

    def forward(
        self,
        tokens: Tensor,
        bias: Any = None,
        mask: Any = CAUSAL,
        path: Path = fused,
        asked: Tensor | None = None,
    ) -> Tensor:
        """Scores of the token after each token.

        Args:
            tokens: int64, shape (batch, length).
            bias: from `given`, or None.
            mask: from `given` too; without a bias, the keys that every layer sees.
            path: the attention path.
            asked: where scores are wanted, bool, shape (batch, length); None for everywhere.

        Returns:
            Shape (batch, length, vocabulary); (asked places, vocabulary) where they are chosen.
        """
        if bias is None:
            bias, mask = self.given(tokens.shape[1], mask)
        hidden = self._through(self.embed(tokens), bias, mask, path)
        return self.logits(hidden if asked is None else hidden[asked])

    def project(self) -> None:
        """Move the learned parameters of the bias back into their domains."""
        getattr(self.bias, "project", lambda: None)()

    @property
    def vocabulary(self) -> int:
        """How many different tokens it scores."""
        return len(self.embedding.weight)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.embedding.weight.device

    def bias_table(self, length: int) -> Tensor | None:
        """The bias at distances 0 .. length - 1 in float64, a row a head; see `layer_bias`."""
        return None if self.bias is None else self.bias(length).detach().double().cpu()

    def learned_values(self) -> dict[str, list[float]]:
        """The learned parameters of the bias, one value a head; empty where there are none."""
        values = getattr(self.bias, "values", {})
        return {name: values[name].tolist() for name in values}


def layer_bias(table: Any, layer: int, heads: int) -> Any:
    """The rows of a table of biases that a layer has: all, or its own where each has its own.

    Layers count from 0. The table has 1, `heads` or `layers * heads` rows, a column a distance.

    >>> layer_bias(torch.arange(4.0)[:, None], 1, 2).tolist()
    [[2.0], [3.0]]
    """
    return table if len(table) <= heads else table[layer * heads : (layer + 1) * heads]
