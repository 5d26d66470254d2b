"""Phi: a rotation of half of each head; queries and keys normalised if asked."""

from __future__ import annotations

import dataclasses

from farfield.validation.checkpoints.families.decoder import decoder
from farfield.validation.checkpoints.families.rotary import rotary
from farfield.validation.checkpoints.family import Description, Gains, ModelFamily, Opening, Tables
from farfield.validation.checkpoints.guarded import Config

USUAL_SHARE = 0.5  # of a head's dimensions
GAINS = "model.layers.{layer}.self_attn.{which}_layernorm.weight"


def _describe(config: Config, tables: Tables) -> Description:
    size = decoder(config, layers=24, heads=32, width=2048, vocabulary=51_200)
    trained = config.whole("max_position_embeddings", usual=2048)
    attention, note = rotary(config, size, usual_share=USUAL_SHARE, length=trained)
    normed = config.flag("qk_layernorm", usual=False)
    scale = size.head_size**-0.5
    layers = tuple(
        dataclasses.replace(attention, gains=Gains.of(GAINS, k, scale) if normed else None)
        for k in range(size.layers)
    )
    return Description(size, layers, trained, note)


PHI = ModelFamily(("phi",), _describe, Opening("model", "layers", "self_attn"))
