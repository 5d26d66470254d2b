"""MPT: ALiBi with an exponent of its own; queries, then keys, then values; clamped if asked."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import sympy

from farfield.theory.encodings import Encoding, encoding
from farfield.validation.checkpoints.family import (
    Attend,
    Attention,
    Description,
    ModelFamily,
    ModelSize,
    Opening,
    Projections,
    Tables,
    normalised,
    shape,
    split,
)
from farfield.validation.checkpoints.guarded import Config

if TYPE_CHECKING:
    from torch import Tensor

USUAL_MOST = 8  # of the exponents; the library computes with it whatever the configuration says


def _describe(config: Config, tables: Tables) -> Description:
    size = shape(
        config,
        layers=config.whole("n_layers", "num_hidden_layers", usual=24),
        heads=config.whole("n_heads", "num_attention_heads", usual=16),
        width=config.whole("d_model", "hidden_size", usual=2048),
        vocabulary=config.whole("vocab_size", usual=50_368),
    )
    own = config.part("attn_config")
    for name, usual in (("alibi", True), ("qk_ln", False), ("prefix_lm", False)):
        if own.flag(name, usual=usual) != usual:
            raise config.wrong(f"{name} {not usual}", f"{name} {usual}")
    most = own.whole("alibi_bias_max", usual=USUAL_MOST)
    note = ""
    if most != USUAL_MOST:
        note = (
            f"alibi_bias_max is {most}, and so is the formula; the library transformers computes "
            f"with {USUAL_MOST} whatever it is"
        )
    return Description(
        size,
        (Attention(_alibi(size.heads, most)),) * size.layers,
        config.whole("max_seq_len", usual=2048),
        note,
    )


def _alibi(heads: int, most: int) -> Encoding:
    """The slopes 2^-(most k/P), P the next power of two, of even k before odd k."""
    whole = 1 << (heads - 1).bit_length()
    order = (
        range(1, heads + 1) if whole == heads else [*range(2, whole + 1, 2), *range(1, whole, 2)]
    )
    slopes = [sympy.Integer(2) ** sympy.Rational(-most * k, whole) for k in order][:heads]
    source = f"MPT: ALiBi with exponents up to {most}"
    return dataclasses.replace(encoding("alibi", m=slopes), source=source)


def _forward(module: Any, attend: Attend, hidden: Tensor, **_: Any) -> tuple[Tensor, None]:
    mixed = module.Wqkv(hidden)
    if module.clip_qkv:
        mixed = mixed.clamp(-module.clip_qkv, module.clip_qkv)
    query, key, value = (
        x.unflatten(-1, (module.n_heads, -1)).transpose(1, 2) for x in mixed.chunk(3, -1)
    )
    attended = attend(query, key, value, module.softmax_scale)
    return module.out_proj(attended.transpose(1, 2).flatten(2)), None


def _projections(layer: Any, size: ModelSize) -> Projections:
    attention = layer.attn
    parts = split(attention.Wqkv, lambda w: w.unflatten(0, (3, size.heads, size.head_size)))
    clip = attention.clip_qkv or None
    return normalised(layer.norm_1, parts, attention.softmax_scale, clip=clip)


def _mask(embedded: Tensor) -> dict[str, Tensor]:
    """MPT insists on a mask; one of four dimensions is taken as it is."""
    return {"attention_mask": embedded.new_zeros(1, 1, 1, 1)}


MPT = ModelFamily(
    ("mpt",),
    _describe,
    Opening("transformer", "blocks", "attn", _forward, _projections, _mask),
)
