"""BLOOM: ALiBi, queries, keys and values of a head side by side."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from farfield.theory.encodings import encoding
from farfield.validation.checkpoints.family import (
    Attend,
    Attention,
    Description,
    ModelFamily,
    ModelSize,
    Opening,
    Projections,
    Tables,
    normalised,
    shape,
    split,
)
from farfield.validation.checkpoints.guarded import Config

if TYPE_CHECKING:
    from torch import Tensor


def _describe(config: Config, tables: Tables) -> Description:
    size = shape(
        config,
        layers=config.whole("n_layer", "num_hidden_layers", usual=2),
        heads=config.whole("n_head", "num_attention_heads", usual=8),
        width=config.whole("hidden_size", "n_embed", usual=64),
        vocabulary=config.whole("vocab_size", usual=250_880),
    )
    return Description(
        size,
        (Attention(encoding("alibi", heads=size.heads)),) * size.layers,
        config.whole("seq_length", usual=None),
        "run in 16 bits, the library rounds slope times position to that type; the formula is "
        "without rounding",
    )


def _forward(
    module: Any, attend: Attend, hidden: Tensor, residual: Tensor, **_: Any
) -> tuple[Tensor, None]:
    query, key, value = module._reshape(module.query_key_value(hidden))
    attended = attend(query, key, value, module.inv_norm_factor)
    return module.dense(attended.transpose(1, 2).flatten(2)) + residual, None


def _projections(layer: Any, size: ModelSize) -> Projections:
    parts = split(
        layer.self_attention.query_key_value,
        lambda w: w.unflatten(0, (size.heads, 3, size.head_size)).transpose(0, 1),
    )
    return normalised(layer.input_layernorm, parts, 1 / math.sqrt(size.head_size))


BLOOM = ModelFamily(
    ("bloom",),
    _describe,
    Opening("transformer", "h", "self_attention", _forward, _projections),
)
