"""gpt-oss: a rotation, a learned constant in every denominator, every other layer sliding."""

from __future__ import annotations

import dataclasses

from farfield.validation.checkpoints.families.decoder import decoder, sliding_window, windows
from farfield.validation.checkpoints.families.rotary import rotary
from farfield.validation.checkpoints.family import Description, ModelFamily, Opening, Tables
from farfield.validation.checkpoints.guarded import Config

THETA = 150_000
SINKS = "model.layers.{layer}.self_attn.sinks"
_YARN = {
    "rope_type": "yarn",
    "factor": 32.0,
    "original_max_position_embeddings": 4096,
}


def _describe(config: Config, tables: Tables) -> Description:
    size = decoder(
        config, layers=36, heads=64, width=2880, vocabulary=201_088, key_heads=8, head_size=64
    )
    trained = config.whole("max_position_embeddings", usual=131_072)
    given = config.part("rope_scaling", "rope_parameters")
    given = given if given.values else Config(config.model, _YARN)
    attention, note = rotary(config, size, given, usual_theta=THETA, length=trained)
    seen = windows(config, size.layers, sliding_window(config, 128), lambda k: k % 2 == 0)
    layers = tuple(
        dataclasses.replace(attention, window=w, sink=SINKS.format(layer=k))
        for k, w in enumerate(seen)
    )
    note += "; the denominator of each head has a learned constant besides, a sink without value"
    return Description(size, layers, trained, note)


GPT_OSS = ModelFamily(("gpt_oss",), _describe, Opening("model", "layers", "self_attn"))
