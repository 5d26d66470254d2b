"""GPT-NeoX: a rotation of a part of each head."""

from __future__ import annotations

from farfield.validation.checkpoints.families.rotary import rotary
from farfield.validation.checkpoints.family import Description, ModelFamily, Opening, Tables, shape
from farfield.validation.checkpoints.guarded import Config

USUAL_SHARE = 0.25  # of a head's dimensions


def _describe(config: Config, tables: Tables) -> Description:
    size = shape(
        config,
        layers=config.whole("num_hidden_layers", usual=44),
        heads=config.whole("num_attention_heads", usual=64),
        width=config.whole("hidden_size", usual=6144),
        vocabulary=config.whole("vocab_size", usual=50_432),
    )
    trained = config.whole("max_position_embeddings", usual=2048)
    attention, note = rotary(config, size, usual_share=USUAL_SHARE, length=trained)
    return Description(size, (attention,) * size.layers, trained, note)


GPT_NEOX = ModelFamily(("gpt_neox",), _describe, Opening("gpt_neox", "layers", "attention"))
