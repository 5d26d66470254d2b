"""Llama: a rotation of each head; groups of queries share a key."""

from __future__ import annotations

from farfield.validation.outside.families.rotary import rotary
from farfield.validation.outside.family import (
    Config,
    Description,
    Family,
    Opening,
    Tables,
    shape,
)


def _describe(config: Config, tables: Tables) -> Description:
    head_size = config.value("head_dim")
    size = shape(
        config,
        layers=config.whole("num_hidden_layers", usual=32),
        heads=config.whole("num_attention_heads", usual=32),
        width=config.whole("hidden_size", usual=4096),
        vocabulary=config.whole("vocab_size", usual=32_000),
        head_size=None if head_size is None else config.whole("head_dim", usual=1),
    )
    attention, note = rotary(config, size)
    trained = config.whole("max_position_embeddings", usual=2048)
    return Description(size, (attention,) * size.layers, trained, note)


LLAMA = Family(("llama",), _describe, Opening("model", "layers", "self_attn"))
