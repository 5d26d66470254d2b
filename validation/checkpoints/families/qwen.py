"""Qwen 2 and 3: a rotation, the last layers in a sliding window if asked; Qwen 3 normalises
queries and keys."""

from __future__ import annotations

import dataclasses

from farfield.validation.checkpoints.families.decoder import decoder, sliding_window, windows
from farfield.validation.checkpoints.families.rotary import rotary
from farfield.validation.checkpoints.family import Description, Gains, ModelFamily, Opening, Tables
from farfield.validation.checkpoints.guarded import Config

HEAD_SIZE = {"qwen2": None, "qwen3": 128}
GAINS = "model.layers.{layer}.self_attn.{which}_norm.weight"


def _describe(config: Config, tables: Tables) -> Description:
    kind = config.value("model_type")
    size = decoder(
        config,
        layers=32,
        heads=32,
        width=4096,
        vocabulary=151_936,
        key_heads=32,
        head_size=HEAD_SIZE[kind],
    )
    trained = config.whole("max_position_embeddings", usual=32_768)
    attention, note = rotary(config, size, length=trained)
    width = sliding_window(config, 4096)
    if not config.flag("use_sliding_window", usual=False):
        width = None
    full = config.whole("max_window_layers", usual=28, least=0)
    seen = windows(config, size.layers, width, lambda k: width is not None and k >= full)
    layers = tuple(
        dataclasses.replace(
            attention,
            window=w,
            gains=None if kind == "qwen2" else Gains.of(GAINS, k, size.head_size**-0.5),
        )
        for k, w in enumerate(seen)
    )
    return Description(size, layers, trained, note)


QWEN = ModelFamily(tuple(HEAD_SIZE), _describe, Opening("model", "layers", "self_attn"))
