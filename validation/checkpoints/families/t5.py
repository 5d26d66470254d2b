"""T5, mT5 and umT5: a table of learned values, for all layers of the decoder or one a layer."""

from __future__ import annotations

import dataclasses

import numpy as np

from farfield.theory.encodings import Encoding, encoding, t5_bucket_starts
from farfield.validation.checkpoints.family import (
    Attention,
    Description,
    ModelFamily,
    ModelSize,
    Tables,
)
from farfield.validation.checkpoints.guarded import Config

TENSOR = "decoder.block.{layer}.layer.0.SelfAttention.relative_attention_bias.weight"
USUAL = {  # layers, heads, vocabulary
    "t5": (6, 8, 32_128),
    "mt5": (8, 6, 250_112),
    "umt5": (8, 6, 250_112),
}


def _describe(config: Config, tables: Tables) -> Description:
    kind = config.value("model_type")
    layers, heads, vocabulary = USUAL[kind]
    deep = config.whole("num_layers", "num_hidden_layers", usual=layers)
    size = ModelSize(
        config.whole("num_decoder_layers", usual=deep),
        config.whole("num_heads", "num_attention_heads", usual=heads),
        config.whole("d_kv", "head_dim", usual=64),
        config.whole("d_model", "hidden_size", usual=512),
        config.whole("vocab_size", usual=vocabulary),
    )
    buckets = config.whole("relative_attention_num_buckets", usual=32)
    most = config.whole("relative_attention_max_distance", usual=128)
    starts = t5_bucket_starts(buckets, most)
    own = [
        Attention(_table(config, tables, layer, starts, size))
        for layer in range(size.layers if kind == "umt5" else 1)
    ]
    return Description(
        size,
        tuple(own) if kind == "umt5" else (own[0],) * size.layers,
        None,
        "self-attention of the decoder; its logits are not divided by sqrt(head size)",
    )


def _table(
    config: Config, tables: Tables, layer: int, starts: list[int], size: ModelSize
) -> Encoding:
    name = TENSOR.format(layer=layer)
    weight = tables(name)
    if weight.shape != (len(starts), size.heads) or not np.isfinite(weight).all():
        raise config.wrong(
            f"a table {name!r} of shape {weight.shape}, or one that is not finite",
            f"{len(starts)} finite values a head",
        )
    bucket = np.searchsorted(starts, np.arange(starts[-1] + 1), side="right") - 1
    return dataclasses.replace(
        encoding(values=weight[bucket].T),
        name="t5 table",
        source=f"table of {len(starts)} learned values a head, read from the weights",
    )


T5 = ModelFamily(tuple(USUAL), _describe)
