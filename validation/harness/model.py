"""A decoder-only transformer whose layers may each treat positions in a way of their own.

Pre-norm, GELU, tied embedding unless the settings say otherwise:

    x = embedding(tokens) [+ absolute vectors]
    x = x + attn(ln(x)); x = x + mlp(ln(x))                 in each layer
    logits = ln(x) @ embedding.T

A layer has a bias of its logits, a rotation of queries and keys (`rope`), a window, learned sinks,
a factor of its logits that grows with the row; or none of these. To add a mechanism: a bias is a
module of `bias.py` or of your own, a change of queries and keys goes into `Layer.qkv`, a change of
the softmax into `Layer.attend`.

`model(tokens)` runs anywhere. On a GPU, `prepare` makes the tables, score functions and block masks
of a length outside of what is compiled, and the model takes them as data:

    prepared = model.prepare(length, flex=True)
    logits = torch.compile(model, fullgraph=True)(tokens, prepared=prepared)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention.flex_attention import BlockMask

from farfield.numerics.masks import CAUSAL, Mask
from farfield.validation.harness.attention import (
    Bias,
    ScoreMod,
    attention,
    block_mask,
    compiled,
    compiles,
    flex,
)
from farfield.validation.harness.settings import (
    LayerSettings,
    ModelSettings,
    RopeSettings,
    ScaleSettings,
)


class Prepared(NamedTuple):
    """The bias of a layer's logits in rows of one length, the keys that its queries see, and the
    factor of its logits, a function of the queries' positions."""

    bias: Bias
    mask: Mask | BlockMask
    factor: Callable[[Tensor], Tensor] | None = None


Attend = Callable[["Layer", Tensor, Tensor, Tensor, Prepared], Tensor]
"""What may replace `Layer.attend`: called with the layer, its queries, keys and values (batch,
heads, length, size) in place, and what is prepared; its result has the shape of the queries."""


class DistanceBias(nn.Module):
    """A bias that depends on the distance alone."""

    def table(self, length: int) -> Tensor:
        """`p(n)` for n = 0 .. length - 1, shape (heads or 1, length); -inf masks, but not at 0."""
        raise NotImplementedError

    def score_mod(self, device: torch.device) -> ScoreMod | None:
        """The same as a score function on a GPU; None where it has only a table."""
        return None

    def project(self) -> None:
        """Move the learned parameters back into their domains."""


def adds(module: nn.Module | None) -> bool:
    """Whether it is called for its bias; a module of the user's own may have a factor alone."""
    if module is None or isinstance(module, DistanceBias):
        return False
    return type(module).forward is not nn.Module.forward


def rotated(x: Tensor, positions: Tensor, rope: RopeSettings, sign: int = 1) -> Tensor:
    """Vectors, shape (..., length, size), turned by angles that grow with their positions.

    Pair `i` of `r/2` turns by `base^(-2i/r) / scaling` a token, `r` the dimensions that turn. With
    decay (xPos), queries are multiplied by `zeta_i^(m/512)` and keys by its inverse,
    `zeta_i = (2i/r + 0.4) / 1.4` [S, Algorithm 1]; the sign is 1 for queries, -1 for keys. Scores
    depend on differences of positions alone, whole numbers or not.

    >>> x = rotated(torch.ones(1, 2), torch.tensor([math.pi]), RopeSettings())
    >>> x.round(decimals=5)
    tensor([[-1., -1.]])
    """
    turned = 2 * round(rope.share * x.shape[-1] / 2)
    pair = torch.arange(turned // 2, dtype=torch.float64, device=x.device)
    at = positions.double()[:, None]
    angle = at * (rope.base ** (-2 * pair / turned) / rope.scaling)
    cos, sin = angle.cos(), angle.sin()
    if rope.decay:
        zeta = (2 * pair / turned + 0.4) / 1.4
        scale = (sign * at / 512 * zeta.log()).exp()
        cos, sin = cos * scale, sin * scale
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    a, b = x[..., :turned].chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin, x[..., turned:]], -1)


def logit_factor(
    scale: ScaleSettings, keys: Tensor, heads: int, trained: int, training: bool
) -> Tensor:
    """The factor of the logits of queries that see so many `keys`, float32, (heads, len(keys)).

    >>> logit_factor(ScaleSettings(), torch.tensor([64, 4096]), heads=1, trained=64, training=False)
    tensor([[1., 2.]])
    """
    length, on = scale.length or trained, ("both", "training" if training else "inference")
    factor = keys.float().log() / math.log(length)
    if scale.form == "1 + a log":
        factor = 1 + scale.a * (1 + keys // length).float().log()
    factor = factor.clamp(min=1) if scale.when == "inference" else factor
    each = range(1, heads + 1)
    scaled = scale.heads or each if scale.when in on else ()
    return torch.stack([factor if h in scaled else torch.ones_like(factor) for h in each])


def sinusoid(positions: Tensor, width: int, rms: float) -> Tensor:
    """Absolute sinusoidal vectors of a given root mean square, float64, shape (length, width).

    >>> sinusoid(torch.arange(3), 4, 0.5)[0]
    tensor([0.0000, 0.0000, 0.7071, 0.7071], dtype=torch.float64)
    """
    pair = torch.arange(width // 2, dtype=torch.float64, device=positions.device)
    angle = positions.double()[:, None] * 10000.0 ** (-2 * pair / width)
    return torch.cat([angle.sin(), angle.cos()], 1) * rms * math.sqrt(2)


class Layer(nn.Module):
    """Multi-head attention, then an MLP four times as wide, each on a normalised residual."""

    def __init__(self, model: ModelSettings, settings: LayerSettings) -> None:
        super().__init__()
        width, self.heads, self.drop = model.width, model.heads, nn.Dropout(model.dropout)
        self.settings, self.trained = settings, model.length
        self.ln_attn, self.ln_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv_proj = nn.Linear(width, 3 * width, bias=False)
        self.attn_out = nn.Linear(width, width, bias=False)
        self.mlp_in = nn.Linear(width, 4 * width, bias=False)
        self.mlp_out = nn.Linear(4 * width, width, bias=False)
        self.sinks = nn.Parameter(torch.zeros(self.heads)) if settings.sinks else None

    def qkv(self, x: Tensor, last: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values (batch, heads, length, size) of a residual, rotated and scaled.

        With `last`, the queries of this many last tokens alone.
        """
        split = self.qkv_proj(self.ln_attn(x)).split(x.shape[-1], -1)
        q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in split)
        q, length = q[:, :, -last:], x.shape[1]
        if self.settings.rope is not None:
            at = torch.arange(length, device=x.device) - length // 2  # keeps scales of xPos small
            q = rotated(q, at[-last:], self.settings.rope)
            k = rotated(k, at, self.settings.rope, -1)
        if self.settings.scale is not None:
            keys = torch.arange(1, length + 1, device=x.device)[-last:]
            shape = keys, self.heads, self.trained, self.training
            q = q * logit_factor(self.settings.scale, *shape)[..., None].to(q.dtype)
        return q, k, v

    def attend(self, q: Tensor, k: Tensor, v: Tensor, prepared: Prepared) -> Tensor:
        """Attention to the keys of the row, and to learned sinks."""
        bias, mask = prepared.bias, prepared.mask
        if not isinstance(mask, BlockMask):
            assert isinstance(bias, Tensor | nn.Module | None)
            return attention(q, k, v, bias, mask, self.sinks)
        assert not isinstance(bias, nn.Module)
        return compiled(flex, q)(q, k, v, bias, mask, self.sinks)

    def mlp(self, x: Tensor) -> Tensor:
        """The MLP of normalised vectors."""
        return self.mlp_out(functional.gelu(self.mlp_in(x)))

    def forward(
        self, x: Tensor, prepared: Prepared, attend: Attend | None = None, last: int = 0
    ) -> Tensor:
        """The next residual, shape (batch, length, width); of the `last` tokens alone if any."""
        whole = isinstance(prepared.mask, BlockMask)  # its kernel takes all queries of a row
        q, k, v = self.qkv(x, 0 if whole else last)
        if prepared.factor is not None:
            i = torch.arange(k.shape[2], device=x.device)[-q.shape[2] :]
            q = q * prepared.factor(i)[..., None].to(q.dtype)
        mixed = (attend or Layer.attend)(self, q, k, v, prepared)[:, :, -last:]
        x = x[:, -last:] + self.drop(self.attn_out(mixed.transpose(1, 2).flatten(2)))
        return x + self.drop(self.mlp(self.ln_mlp(x)))


class Transformer(nn.Module):
    """A language model.

    Args:
        settings: sizes, initial weights, absolute positions, and how each layer treats positions.
        biases: the bias of each layer, None for none; a module that is listed more than once is
            shared. A `DistanceBias`, or any module called as `bias(q, k, i, j)` with queries at
            positions `i` and keys at `j`, whose result broadcasts to (batch, heads, len(i),
            len(j)). A method `factor(i)`, shape (heads or 1, len(i)), multiplies the logits.

    >>> model = Transformer(ModelSettings(width=32, layers=[LayerSettings(window=4)] * 2))
    >>> model(torch.zeros(1, 5, dtype=torch.long)).shape
    torch.Size([1, 5, 256])
    """

    def __init__(
        self, settings: ModelSettings, biases: Sequence[nn.Module | None] | None = None
    ) -> None:
        super().__init__()
        self.settings, self.drop = settings, nn.Dropout(settings.dropout)
        self.length, self.vocabulary = settings.length, settings.vocabulary
        width, spread = settings.width, settings.spread
        self.embedding = nn.Embedding(settings.vocabulary, width)
        self.layers = nn.ModuleList(Layer(settings, layer) for layer in settings.layers)
        self.ln = nn.LayerNorm(width)
        untied, learned = settings.embedding_spread is not None, settings.absolute == "learned"
        self.output = nn.Linear(width, settings.vocabulary, bias=False) if untied else None
        self.absolute = nn.Embedding(settings.length, width) if learned else None
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=spread)
        if settings.embedding_spread is not None:
            nn.init.normal_(self.embedding.weight, std=settings.embedding_spread)
        for layer in self.layers:
            for last in (layer.attn_out, layer.mlp_out):
                nn.init.normal_(last.weight, std=spread / math.sqrt(2 * len(self.layers)))
        self.add_biases(biases or [None] * len(self.layers))

    def add_biases(self, biases: Sequence[nn.Module | None]) -> None:
        """The bias of each layer in place of those before, as the class says."""
        self.biases = nn.ModuleList(dict.fromkeys(b for b in biases if b is not None))
        self.bias_of = list(biases)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.embedding.weight.device

    @property
    def fused(self) -> bool:
        """Whether its attention is compiled, on the device where it is."""
        return compiles(self.device, self.settings.width // self.settings.heads)

    def prepare(self, length: int, mask: Mask = CAUSAL, *, flex: bool = False) -> list[Prepared]:
        """What the layers take for rows of one length, valid until a learned bias changes.

        With `flex`, as FlexAttention takes it: a score function or a table, and a block mask. A
        layer that adds nothing to causal attention keeps torch's fused one.
        """
        exact = torch.promote_types(self.embedding.weight.dtype, torch.float32)
        by_distance = [bias for bias in self.biases if isinstance(bias, DistanceBias)]
        tables = {bias: bias.table(length).to(self.device, exact) for bias in by_distance}
        prepared = []
        for layer, module in zip(self.layers, self.bias_of, strict=True):
            table = tables[module] if isinstance(module, DistanceBias) else None
            bias: Bias = table
            if adds(module):
                bias = module
            seen = mask.within(layer.settings.window)
            blocks: Mask | BlockMask = seen
            plain = module is None and seen == CAUSAL and not layer.settings.sinks
            if flex and not plain and not isinstance(bias, nn.Module):
                reach = () if table is None or table.requires_grad else reach_of(table)
                blocks = block_mask(seen, length, reach, self.device)
                if isinstance(module, DistanceBias):
                    bias = module.score_mod(self.device) or table
            prepared.append(Prepared(bias, blocks, getattr(module, "factor", None)))
        return prepared

    def embed(self, tokens: Tensor) -> Tensor:
        """Input embeddings (batch, length, width) of tokens, int64, shape (batch, length).

        Raises:
            ValueError: more positions than learned absolute vectors.
        """
        x, length = self.embedding(tokens), tokens.shape[1]
        if self.settings.absolute == "sinusoidal":
            at = torch.arange(length, device=x.device)
            return x + sinusoid(at, x.shape[-1], self.settings.spread).to(x)
        if self.absolute is None:
            return x
        if length > self.settings.length:
            raise ValueError(
                f"{length} tokens were given; learned absolute positions know "
                f"{self.settings.length}, accepted are at most as many"
            )
        return x + self.absolute.weight[:length]

    def hidden(
        self,
        x: Tensor,
        mask: Mask = CAUSAL,
        *,
        prepared: Sequence[Prepared] | None = None,
        attend: Attend | None = None,
        last: int = 0,
    ) -> Tensor:
        """The normalised last residual, shape (batch, length, width), from input embeddings.

        With `last`, of this many last tokens alone: the last layer then computes no others.
        """
        kernels = self.fused and attend is None and not torch.is_grad_enabled()
        prepared = prepared or self.prepare(x.shape[1], mask, flex=kernels)
        x = self.drop(x)
        for layer, one in zip(self.layers[:-1], prepared[:-1], strict=True):
            x = layer(x, one, attend)
        return self.ln(self.layers[-1](x, prepared[-1], attend, last))

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores of the next token, shape (..., vocabulary), from the last residual."""
        output = self.embedding if self.output is None else self.output
        return functional.linear(hidden, output.weight)

    def forward(
        self,
        tokens: Tensor,
        mask: Mask = CAUSAL,
        *,
        prepared: Sequence[Prepared] | None = None,
        attend: Attend | None = None,
    ) -> Tensor:
        """Scores of the token after each token (batch, length, vocabulary).

        Args:
            tokens: int64, shape (batch, length).
            mask: which keys a query sees.
            prepared: from `prepare`, in place of the mask.
            attend: in place of `Layer.attend`, to look at a layer or to change it.
        """
        hidden = self.hidden(self.embed(tokens), mask, prepared=prepared, attend=attend)
        return self.logits(hidden)

    @torch.no_grad()
    def project(self) -> None:
        """Move the learned parameters of biases back into their domains; after each step."""
        for bias in self.biases:
            if isinstance(bias, DistanceBias):
                bias.project()


def reach_of(table: Tensor) -> tuple[int, ...]:
    """How many keys each row of a table leaves; none where that is all.

    >>> reach_of(torch.tensor([[0, -math.inf, 5], [3, -9, -math.inf]])), reach_of(torch.ones(2, 3))
    ((3, 2), ())
    """
    counted = torch.arange(1, table.shape[1] + 1) * (table.cpu() > -math.inf)
    reach = tuple(counted.amax(-1).tolist())
    return () if min(reach) == table.shape[1] else reach
