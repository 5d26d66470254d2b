"""Gemma 2 and 3: a rotation; layers in a sliding window take turns with layers that see all.

Gemma 2 keeps its logits within a soft cap. Gemma 3 normalises queries and keys instead, and its
sliding layers rotate with a base of their own.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from farfield.validation.checkpoints.families.decoder import decoder, sliding_window, windows
from farfield.validation.checkpoints.families.rotary import rotary
from farfield.validation.checkpoints.family import Description, Gains, ModelFamily, Opening, Tables
from farfield.validation.checkpoints.guarded import Config

if TYPE_CHECKING:
    from torch import Tensor

CAP = 50.0  # of the logits of Gemma 2, where nothing is said
PERIOD = 6  # every sixth layer of Gemma 3 sees all
THETAS = {"full_attention": 1_000_000, "sliding_attention": 10_000}
GAINS = "model.layers.{layer}.self_attn.{which}_norm.weight"


def _second(config: Config, tables: Tables) -> Description:
    size = decoder(
        config, layers=26, heads=8, width=2304, vocabulary=256_000, key_heads=4, head_size=256
    )
    trained = config.whole("max_position_embeddings", usual=8192)
    attention, note = rotary(config, size, length=trained)
    capped = config.values.get("attn_logit_softcapping", CAP) is not None
    cap = config.number("attn_logit_softcapping", usual=CAP) if capped else None
    seen = windows(config, size.layers, sliding_window(config, 4096), lambda k: k % 2 == 0)
    layers = tuple(dataclasses.replace(attention, window=w, cap=cap) for w in seen)
    return Description(size, layers, trained, _one_sided(config, note))


def _third(config: Config, tables: Tables) -> Description:
    size = decoder(
        config, layers=26, heads=8, width=2304, vocabulary=262_208, key_heads=4, head_size=256
    )
    trained = config.whole("max_position_embeddings", usual=131_072)
    scale = config.number("query_pre_attn_scalar", usual=256) ** -0.5
    period = config.whole("sliding_window_pattern", usual=PERIOD)
    seen = windows(
        config, size.layers, sliding_window(config, 4096), lambda k: (k + 1) % period != 0
    )
    given = config.part("rope_parameters")
    wide = given.part("full_attention") if given.values else config.part("rope_scaling")
    near = given.part("sliding_attention")
    bases = {
        "full_attention": config.number("rope_theta", usual=THETAS["full_attention"]),
        "sliding_attention": config.number(
            "rope_local_base_freq", usual=THETAS["sliding_attention"]
        ),
    }
    plain = Config(config.model, {})
    far, note = rotary(plain, size, wide, usual_theta=bases["full_attention"], length=trained)
    close, other = rotary(plain, size, near, usual_theta=bases["sliding_attention"])
    layers = tuple(
        dataclasses.replace(
            far if w is None else close, window=w, gains=Gains.of(GAINS, k, scale, offset=1.0)
        )
        for k, w in enumerate(seen)
    )
    if any(w is not None for w in seen):
        note = f"in layers that see all, {note}; in the others, {other}"
    if config.value("attn_logit_softcapping") is not None:
        note += "; attn_logit_softcapping is left out of account, as the library does"
    return Description(size, layers, trained, _one_sided(config, note))


def _one_sided(config: Config, note: str) -> str:
    """The note, unless the model is no causal one."""
    if config.flag("use_bidirectional_attention", usual=False):
        raise config.wrong("use_bidirectional_attention true", "false: a causal language model")
    return note


def _of_text(config: Config, tables: Tables) -> Description:
    """Of a model that sees pictures too: its text part."""
    own = config.part("text_config")
    return _third(Config(config.model, own.values), tables)


def _capped(network: Any, scores: Tensor) -> Tensor:
    cap = network.config.final_logit_softcapping
    return scores if cap is None else cap * (scores / cap).tanh()


_OPENING = Opening("model", "layers", "self_attn", finished=_capped)
GEMMA_2 = ModelFamily(("gemma2",), _second, _OPENING)
GEMMA_3 = ModelFamily(("gemma3_text",), _third, _OPENING)
GEMMA_3_PICTURES = ModelFamily(("gemma3",), _of_text)
