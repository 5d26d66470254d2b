"""Falcon: ALiBi over the root of the head size, or a rotation; groups of queries share a key."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import sympy

from farfield.theory.encodings import alibi_slope, encoding
from farfield.validation.checkpoints.families.rotary import rotary
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
        layers=config.whole("num_hidden_layers", usual=32),
        heads=config.whole("num_attention_heads", usual=71),
        width=config.whole("hidden_size", "n_embed", usual=4544),
        vocabulary=config.whole("vocab_size", usual=65_024),
        key_heads=_key_heads(config),
    )
    trained = config.whole("max_position_embeddings", usual=2048)
    if not config.flag("alibi", usual=False):
        attention, note = rotary(config, size, length=trained)
        return Description(size, (attention,) * size.layers, trained, note)
    slopes = [alibi_slope(h, size.heads) for h in range(1, size.heads + 1)]
    divided = [slope / sympy.sqrt(size.head_size) for slope in slopes]
    found = dataclasses.replace(
        encoding("alibi", m=divided),
        source="Falcon: ALiBi divided by sqrt(head size), as the logits are",
    )
    return Description(
        size,
        (Attention(found),) * size.layers,
        trained,
        "the library rounds this bias to bfloat16 at every position, so that beyond 256 tokens it "
        "is no function of the distance, and its eager attention adds the bias twice; the formula "
        "is without rounding, once",
    )


def _key_heads(config: Config) -> int:
    """One for all queries, unless the later architecture or the configuration says otherwise."""
    several = config.flag("new_decoder_architecture", usual=False)
    if not several and config.flag("multi_query", usual=True):
        return 1
    heads = config.whole("num_attention_heads", usual=71)
    return config.whole("num_kv_heads", usual=heads)


def _forward(
    module: Any,
    attend: Attend,
    hidden: Tensor,
    alibi: Any = None,
    position_embeddings: Any = None,
    **_: Any,
) -> tuple[Tensor, None]:
    from transformers.models.falcon.modeling_falcon import apply_rotary_pos_emb

    parts = module._split_heads(module.query_key_value(hidden))
    query, key, value = (x.transpose(1, 2) for x in parts)
    if alibi is None:
        query, key = apply_rotary_pos_emb(query, key, *position_embeddings)
    attended = attend(query, key, value, module.inv_norm_factor)
    return module.dense(attended.transpose(1, 2).flatten(2)), None


def _projections(layer: Any, size: ModelSize) -> Projections:
    norm = getattr(layer, "ln_attn", None) or layer.input_layernorm
    attention = layer.self_attention
    groups = attention.num_kv_heads
    parts = split(
        attention.query_key_value,
        lambda w: _grouped(w.unflatten(0, (groups, -1, size.head_size)), size.heads),
    )
    return normalised(norm, parts, 1 / math.sqrt(size.head_size))


def _grouped(groups: Tensor, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Each group holds its queries, then the one key and the one value they share."""
    each = heads // len(groups)
    key, value = (groups[:, at].repeat_interleave(each, 0) for at in (-2, -1))
    return groups[:, :-2].flatten(0, 1), key, value


FALCON = ModelFamily(
    ("falcon",),
    _describe,
    Opening("transformer", "h", "self_attention", _forward, _projections),
)
