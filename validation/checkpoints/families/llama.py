"""Llama: a rotation of each head; groups of queries share a key."""

from __future__ import annotations

from farfield.validation.checkpoints.families.decoder import decoder
from farfield.validation.checkpoints.families.rotary import rotary
from farfield.validation.checkpoints.family import Description, ModelFamily, Opening, Tables
from farfield.validation.checkpoints.guarded import Config


def _describe(config: Config, tables: Tables) -> Description:
    size = decoder(config, layers=32, heads=32, width=4096, vocabulary=32_000)
    trained = config.whole("max_position_embeddings", usual=2048)
    attention, note = rotary(config, size, length=trained)
    return Description(size, (attention,) * size.layers, trained, note)


LLAMA = ModelFamily(("llama",), _describe, Opening("model", "layers", "self_attn"))
