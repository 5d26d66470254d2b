"""The families whose biases or attention need more than names: BLOOM, MPT, Falcon, T5, GPT-J.

`POSITIONS` reads what their configurations say of positions. `FORWARDS` runs the library's layers
with a path of ours where the library has no hook for it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from farfield.theory.encodings import Encoding, alibi_slope, encoding, t5_bucket_starts
from farfield.validation.checkpoints.configured import Attention, ModelSize, Tables
from farfield.validation.checkpoints.guarded import Config
from farfield.validation.checkpoints.rotary import rotary

if TYPE_CHECKING:
    from torch import Tensor

Attend = Callable[["Tensor", "Tensor", "Tensor", float], "Tensor"]
"""Called as `attend(query, key, value, scale)`, shapes (batch, heads, length, size)."""

_MOST = 8  # of MPT's exponents; the library computes with it whatever the configuration says
_TABLE = "decoder.block.{layer}.layer.0.SelfAttention.relative_attention_bias.weight"


def _bloom(config: Config, size: ModelSize, tables: Tables) -> tuple[list[Attention], str]:
    note = (
        "run in 16 bits, the library rounds slope times position to that type; the formula is "
        "without rounding"
    )
    return [Attention(encoding("alibi", heads=size.heads))] * size.layers, note


def _mpt(config: Config, size: ModelSize, tables: Tables) -> tuple[list[Attention], str]:
    """The slopes 2^-(most k/P), P the next power of two, of even k before odd k."""
    own = config.part("attn_config")
    for name, usual in (("alibi", True), ("qk_ln", False), ("prefix_lm", False)):
        if own.flag(name, usual=usual) != usual:
            raise config.wrong(f"{name} {not usual}", f"{name} {usual}")
    most = own.whole("alibi_bias_max", usual=_MOST)
    note = ""
    if most != _MOST:
        note = (
            f"alibi_bias_max is {most}, and so is the formula; the library transformers computes "
            f"with {_MOST} whatever it is"
        )
    whole = 1 << (size.heads - 1).bit_length()
    order = [*range(1, whole + 1)]
    if whole != size.heads:
        order = [*range(2, whole + 1, 2), *range(1, whole, 2)]
    slopes = [sympy.Integer(2) ** sympy.Rational(-most * k, whole) for k in order][: size.heads]
    source = f"MPT: ALiBi with exponents up to {most}"
    found = dataclasses.replace(encoding("alibi", m=slopes), source=source)
    clip = own.number("clip_qkv", usual=1.0) if own.value("clip_qkv") else None
    return [Attention(found, clip=clip)] * size.layers, note


def _falcon(config: Config, size: ModelSize, tables: Tables) -> tuple[list[Attention], str]:
    if not config.flag("alibi", usual=False):
        length = config.whole("max_position_embeddings", usual=2048)
        attention, note = rotary(config, size, {}, length=length)
        return [attention] * size.layers, note
    slopes = [alibi_slope(h, size.heads) for h in range(1, size.heads + 1)]
    divided = [slope / sympy.sqrt(size.head_size) for slope in slopes]
    found = dataclasses.replace(
        encoding("alibi", m=divided),
        source="Falcon: ALiBi divided by sqrt(head size), as the logits are",
    )
    note = (
        "the library rounds this bias to bfloat16 at every position, so that beyond 256 tokens it "
        "is no function of the distance, and its eager attention adds the bias twice; the formula "
        "is without rounding, once"
    )
    return [Attention(found)] * size.layers, note


def _t5(config: Config, size: ModelSize, tables: Tables) -> tuple[list[Attention], str]:
    """A table of learned values, for all layers of the decoder or, in umT5, one a layer."""
    each = config.value("model_type") == "umt5"
    buckets = config.whole("relative_attention_num_buckets", usual=32)
    starts = t5_bucket_starts(buckets, config.whole("relative_attention_max_distance", usual=128))

    def table(layer: int) -> Attention:
        name = _TABLE.format(layer=layer)
        weight = tables(name)
        if weight.shape != (len(starts), size.heads) or not np.isfinite(weight).all():
            raise config.wrong(
                f"a table {name!r} of shape {weight.shape}, or one that is not finite",
                f"{len(starts)} finite values a head",
            )
        bucket = np.searchsorted(starts, np.arange(starts[-1] + 1), side="right") - 1
        source = f"table of {len(starts)} learned values a head, read from the weights"
        made: Encoding = encoding(values=weight[bucket].T)
        return Attention(dataclasses.replace(made, name="t5 table", source=source))

    found = [table(k) for k in range(size.layers if each else 1)]
    note = "self-attention of the decoder; its logits are not divided by sqrt(head size)"
    return found if each else found * size.layers, note


POSITIONS = {"bloom": _bloom, "mpt": _mpt, "falcon": _falcon, "t5": _t5}
"""What a configuration says of the attention of each layer, and what is to be said of it."""


# -- the library's layers with a path of ours ----------------------------------------------------


@dataclass(frozen=True)
class Forward:
    """How the attention of a layer is run where the library has no hook of its own.

    Args:
        attention: its name in a layer, joined by dots.
        forward: called as `forward(module, attend, hidden, ...)`.
        arguments: further arguments of the body, from the embedded tokens.
    """

    attention: str
    forward: Callable[..., Any]
    arguments: Callable[[Tensor], dict[str, Any]] = lambda embedded: {}


def _bloom_forward(
    module: Any, attend: Attend, hidden: Tensor, residual: Tensor, **_: Any
) -> tuple[Tensor, None]:
    query, key, value = module._reshape(module.query_key_value(hidden))
    attended = attend(query, key, value, module.inv_norm_factor)
    return module.dense(attended.transpose(1, 2).flatten(2)) + residual, None


def _mpt_forward(module: Any, attend: Attend, hidden: Tensor, **_: Any) -> tuple[Tensor, None]:
    mixed = module.Wqkv(hidden)
    if module.clip_qkv:
        mixed = mixed.clamp(-module.clip_qkv, module.clip_qkv)
    query, key, value = (
        x.unflatten(-1, (module.n_heads, -1)).transpose(1, 2) for x in mixed.chunk(3, -1)
    )
    attended = attend(query, key, value, module.softmax_scale)
    return module.out_proj(attended.transpose(1, 2).flatten(2)), None


def _mask(embedded: Tensor) -> dict[str, Any]:
    """MPT insists on a mask; one of four dimensions is taken as it is."""
    return {"attention_mask": embedded.new_zeros(1, 1, 1, 1)}


def _falcon_forward(
    module: Any,
    attend: Attend,
    hidden: Tensor,
    alibi: Any = None,
    position_embeddings: Any = None,
    **_: Any,
) -> tuple[Tensor, None]:
    from transformers.models.falcon.modeling_falcon import apply_rotary_pos_emb

    parts = module._split_heads(module.query_key_value(hidden))
    query, key, value = (x.transpose(1, 2) for x in parts)
    if alibi is None:
        query, key = apply_rotary_pos_emb(query, key, *position_embeddings)
    attended = attend(query, key, value, module.inv_norm_factor)
    return module.dense(attended.transpose(1, 2).flatten(2)), None


def _weighed_forward(module: Any, attend: Attend, *given: Any, **named: Any) -> Any:
    """GPT-J, CodeGen and GPT-Neo weigh in a method of their own; GPT-Neo does not scale."""

    def weighed(query: Tensor, key: Tensor, value: Tensor, mask: Any = None) -> Any:
        return attend(query, key, value, 1 / float(getattr(module, "scale_attn", 1.0))), None

    module._attn = weighed
    return type(module).forward(module, *given, **named)


FORWARDS = {
    "bloom": Forward("self_attention", _bloom_forward),
    "mpt": Forward("attn", _mpt_forward, _mask),
    "falcon": Forward("self_attention", _falcon_forward),
    "gptj": Forward("attn", _weighed_forward),
    "gpt_neo": Forward("attn.attention", _weighed_forward),
}
"""How the attention of a layer is run, by the name in the table of its family."""
