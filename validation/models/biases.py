"""Additive biases of families that have them, exactly: ALiBi as each writes it, and T5's tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import sympy

from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.encodings import Encoding, alibi_slope, encoding, t5_bucket_starts
from farfield.validation.models.outline import BIASED, LayerOutline, ModelOutline
from farfield.validation.models.weights import reader, require_finite

LIBRARY_EXPONENT = 8
"""The largest exponent of MPT's slopes with which the library computes, whatever is configured."""

_PREFIXES = ("decoder.", "language_model.", "model.language_model.")
"""Of names in files: of a decoder alone, and of the language model within a larger one."""

_TABLE = "decoder.block.{layer}.layer.0.SelfAttention.relative_attention_bias.weight"


def with_bias(model: ModelOutline, text: Any) -> ModelOutline:
    """A model whose layers have their bias, and what the library computes differently.

    Args:
        model: described, without biases; of a type that is in `BIASED`.
        text: the library's configuration.

    Raises:
        InputError: a form of the family that is no bias by distance; a table cannot be read.
    """
    which = BIASED[text.model_type]
    heads = model.layers[0].heads
    biases: list[Encoding] = []
    note, positions = "", "bias"
    if which == "bloom":
        biases = [encoding("alibi", heads=heads)]
        note = (
            "run in 16 bits, the library rounds slope times position to that type; the formula is "
            "without rounding"
        )
    elif which == "mpt":
        biases, note = _mpt(model, text.attn_config, heads)
    elif which == "t5":
        biases = _t5(model, text)
        note = "the logits are not divided by sqrt(head size)"
    elif text.alibi:
        biases, note = _falcon(model.layers[0])
    else:
        return model
    made = {id(layer): replace(layer, rotation=None, positions=positions) for layer in model.layers}
    each = [made[id(layer)] for layer in model.layers]
    layers = tuple(replace(o, encoding=biases[min(k, len(biases) - 1)]) for k, o in enumerate(each))
    return replace(model, layers=layers, notes=(*model.notes, *([note] if note else ())))


def _mpt(model: ModelOutline, attention: Any, heads: int) -> tuple[list[Encoding], str]:
    """The slopes 2^-(most k/P), P the next power of two, of even k before odd k."""
    for name, usual in (("alibi", True), ("qk_ln", False), ("prefix_lm", False)):
        refuse(
            bool(getattr(attention, name)) != usual,
            f"model {model.name!r}: config.json has {name} {not usual}; accepted: {usual}",
        )
    most = attention.alibi_bias_max
    refuse(
        isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= 64,
        f"model {model.name!r}: config.json has alibi_bias_max {most!r:.40}; accepted: a whole "
        "number from 1 to 64",
    )
    whole = 1 << (heads - 1).bit_length()
    order = [*range(1, whole + 1)]
    if whole != heads:
        order = [*range(2, whole + 1, 2), *range(1, whole, 2)]
    slopes = [sympy.Integer(2) ** sympy.Rational(-most * k, whole) for k in order][:heads]
    note = (
        ""
        if most == LIBRARY_EXPONENT
        else (
            f"the formula has alibi_bias_max {most}, as configured; the library transformers "
            f"computes with {LIBRARY_EXPONENT} whatever is configured"
        )
    )
    return [replace(encoding("alibi", m=slopes), source=f"MPT: ALiBi, exponents to {most}")], note


def _falcon(layer: LayerOutline) -> tuple[list[Encoding], str]:
    root = sympy.sqrt(layer.head_size)
    slopes = [alibi_slope(h, layer.heads) / root for h in range(1, layer.heads + 1)]
    source = "Falcon: ALiBi divided by sqrt(head size), as the logits are"
    note = (
        "the library rounds this bias to bfloat16 at every position, so that beyond 256 tokens it "
        "is no function of the distance, and its eager attention adds the bias twice; the formula "
        "is without rounding, once"
    )
    return [replace(encoding("alibi", m=slopes), source=source)], note


def _t5(model: ModelOutline, text: Any) -> list[Encoding]:
    """A table of learned values, for all layers of the decoder or, in umT5, one a layer."""
    buckets, farthest = text.relative_attention_num_buckets, text.relative_attention_max_distance
    refuse(
        not 1 <= buckets <= 2000 or not buckets // 2 < farthest <= 1 << 14,
        f"model {model.name!r}: config.json has {buckets} buckets to distance {farthest}; "
        "accepted: a distance above half the buckets, as the library computes with",
    )
    starts, read = t5_bucket_starts(buckets, farthest), reader(model, *_PREFIXES)
    heads = model.layers[0].heads

    def table(layer: int) -> Encoding:
        weight = read(_TABLE.format(layer=layer))
        if weight is None:
            raise InputError(
                f"model {model.name!r} lacks {_TABLE.format(layer=layer)!r}, the table of its "
                "decoder; accepted: a model with encoder and decoder, not one of them alone"
            )
        refuse(
            weight.shape != (len(starts), heads),
            f"model {model.name!r} has a table of shape {tuple(weight.shape)}; accepted: "
            f"{(len(starts), heads)}",
        )
        require_finite(model, _TABLE.format(layer=layer), weight)
        bucket = np.searchsorted(starts, np.arange(starts[-1] + 1), side="right") - 1
        source = f"table of {len(starts)} learned values a head, read from the weights"
        made: Encoding = encoding(values=weight.double().numpy()[bucket].T, tail="constant")
        return replace(made, name="t5 table", source=source)

    return [table(k) for k in range(len(model.layers) if model.kind == "umt5" else 1)]
