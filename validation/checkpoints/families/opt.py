"""OPT: a table of learned positions, added to the embeddings."""

from __future__ import annotations

from farfield.validation.checkpoints.families.absolute import learned
from farfield.validation.checkpoints.families.decoder import decoder
from farfield.validation.checkpoints.family import Description, ModelFamily, Opening, Tables
from farfield.validation.checkpoints.guarded import Config


def _describe(config: Config, tables: Tables) -> Description:
    size = decoder(config, layers=12, heads=12, width=768, vocabulary=50_272)
    return learned(size, config.whole("max_position_embeddings", usual=2048))


OPT = ModelFamily(("opt",), _describe, Opening("model.decoder", "layers", "self_attn"))
