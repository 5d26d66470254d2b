"""Mistral: a rotation of each head, every layer in one sliding window, or none in any."""

from __future__ import annotations

import dataclasses

from farfield.validation.checkpoints.families.decoder import decoder, sliding_window
from farfield.validation.checkpoints.families.rotary import rotary
from farfield.validation.checkpoints.family import Description, ModelFamily, Opening, Tables
from farfield.validation.checkpoints.guarded import Config


def _describe(config: Config, tables: Tables) -> Description:
    size = decoder(config, layers=32, heads=32, width=4096, vocabulary=32_000, key_heads=8)
    trained = config.whole("max_position_embeddings", usual=131_072)
    attention, note = rotary(config, size, length=trained)
    window = sliding_window(config, 4096)
    if config.value("layer_types") is not None:
        note += "; layer_types is left out of account, as the library does in this family"
    attention = dataclasses.replace(attention, window=window)
    return Description(size, (attention,) * size.layers, trained, note)


MISTRAL = ModelFamily(("mistral",), _describe, Opening("model", "layers", "self_attn"))
