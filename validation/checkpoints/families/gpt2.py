"""GPT-2: a table of learned positions, added to the embeddings."""

from __future__ import annotations

from farfield.validation.checkpoints.families.absolute import learned
from farfield.validation.checkpoints.family import Description, ModelFamily, Opening, Tables, shape
from farfield.validation.checkpoints.guarded import Config


def _describe(config: Config, tables: Tables) -> Description:
    size = shape(
        config,
        layers=config.whole("n_layer", "num_hidden_layers", usual=12),
        heads=config.whole("n_head", "num_attention_heads", usual=12),
        width=config.whole("n_embd", "hidden_size", usual=768),
        vocabulary=config.whole("vocab_size", usual=50_257),
    )
    if config.flag("add_cross_attention", usual=False):
        raise config.wrong("add_cross_attention true", "false: a causal language model")
    longest = config.whole("n_positions", "max_position_embeddings", usual=1024)
    return learned(size, longest)


GPT_2 = ModelFamily(("gpt2",), _describe, Opening("transformer", "h", "attn"))
