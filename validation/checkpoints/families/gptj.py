"""GPT-J: a rotation of the first dimensions of each head."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from farfield.validation.checkpoints.families.rotary import turning
from farfield.validation.checkpoints.family import (
    THETA,
    Attend,
    Description,
    ModelFamily,
    Opening,
    Tables,
    shape,
)
from farfield.validation.checkpoints.guarded import Config

if TYPE_CHECKING:
    from torch import Tensor


def _describe(config: Config, tables: Tables) -> Description:
    size = shape(
        config,
        layers=config.whole("n_layer", "num_hidden_layers", usual=28),
        heads=config.whole("n_head", "num_attention_heads", usual=16),
        width=config.whole("n_embd", "hidden_size", usual=4096),
        vocabulary=config.whole("vocab_size", usual=50_400),
    )
    turned = config.whole("rotary_dim", usual=64)
    if turned % 2 or turned > size.head_size:
        raise config.wrong(
            f"rotary_dim {turned} of {size.head_size} dimensions",
            "an even number of dimensions, at most those of a head",
        )
    trained = config.whole("n_positions", "max_position_embeddings", usual=2048)
    none = Config(config.model, {})
    attention, note = turning(config, none, turned, size.head_size, THETA, trained)
    note += f"; the library's rows end with its table of {trained} angles"
    return Description(size, (attention,) * size.layers, trained, note, longest=trained)


def _forward(module: Any, attend: Attend, *given: Any, **named: Any) -> Any:
    def weighed(query: Tensor, key: Tensor, value: Tensor, mask: Any = None) -> Any:
        return attend(query, key, value, 1 / float(module.scale_attn)), None

    module._attn = weighed
    return type(module).forward(module, *given, **named)


GPT_J = ModelFamily(("gptj",), _describe, Opening("transformer", "h", "attn", _forward))
