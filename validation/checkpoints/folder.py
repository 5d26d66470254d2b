"""What a folder says of its model, before its weights are loaded.

Folders of the Hugging Face layout and runs of a store are described alike, from their configuration
alone: no torch, no library that wrote them, no code of the folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import sympy

from farfield.theory.answers.answer import InputError
from farfield.theory.answers.number import plural
from farfield.theory.encodings import Encoding, alibi_slope, encoding, t5_bucket_starts
from farfield.validation.checkpoints.configured import (
    NAMES,
    POSITIONAL,
    RUN,
    Attention,
    Folder,
    ModelSize,
    Tables,
    families,
    layers_of,
    rotary,
    size_of,
    with_logits,
)
from farfield.validation.checkpoints.guarded import Config, document, refuse_adapter, tensor

UNCHECKED = "read from config.json, not checked against the library"
"""What is said of a model whose family is not known here."""

_SYNONYMS = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"),
    "width": ("hidden_size", "n_embd", "d_model"),
    "trained": ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"),
}
_ROTATES = ("rope_parameters", "rope_scaling", "rope_theta", "rotary_emb_base", "rotary_pct")
_ACCEPTED = (
    "a folder with config.json and *.safetensors, as the library transformers writes it, or a "
    "finished run of a store"
)


def describe(folder: str | os.PathLike[str] | Folder) -> Folder:
    """What a folder says of its model; no weight is read but those that are the encoding.

    What was described before is handed on as it is.

    Raises:
        InputError: the folder is missing or is no model; its configuration is contradictory;
            learned biases cannot be read.
    """
    if isinstance(folder, Folder):
        return folder
    path = Path(folder).expanduser()
    given = f"model {str(folder)!r}"
    if not path.is_dir():
        wrong = "is no folder" if path.exists() else "does not exist"
        raise InputError(f"{given} {wrong}; accepted: {_ACCEPTED}")
    if (path / "training.json").is_file():  # a run brings what it was trained with
        from farfield.validation.checkpoints.run import describe_run

        found, record = describe_run(path)
        return replace(found, path=path, kind=RUN, values=record)
    if not os.path.lexists(path / "config.json"):
        refuse_adapter(path)
        raise InputError(f"{given} has no config.json; accepted: {_ACCEPTED}")
    config = document(path, "config.json")
    kind = config.value("model_type")
    if not isinstance(kind, str) or not kind.isprintable() or not 0 < len(kind) <= 40:
        raise InputError(f"{given}: config.json names no model_type; accepted: {_ACCEPTED}")
    found = described(kind, config, partial(tensor, path))
    if "auto_map" in config.values:
        own = f"read as {kind} of the library: code of the folder (auto_map) is not run"
        found = replace(found, note="; ".join(filter(None, (found.note, own))))
    return replace(found, path=path, kind=kind, values=config.values)


def described(kind: str, config: Config, tables: Tables) -> Folder:
    """What a configuration says of a model of some type.

    Args:
        kind: the `model_type`.
        config: the content of `config.json`.
        tables: reads a tensor of the folder by its name.

    Raises:
        InputError: a key is missing, contradictory, or of the wrong type or range.
    """
    known = families().get(kind)
    family = _generic(config) if known is None else known
    part = family.get("part")
    config = config if part is None else config.part(part)
    for key in family.get("refuses", ()):
        if config.flag(key, usual=False):
            raise config.wrong(f"{key} true", "false: a causal language model")
    size, trained = size_of(config, family)
    found = Folder(size, (), trained, family=family, checked=known is not None)
    if (both := family.get("causal")) is not None and not (
        both != "never" and config.flag(both, usual=False)
    ):
        why = "every token sees those after it too, so there is no distance to the past alone"
        return replace(found, no_claim=why)
    position = family.get("position", "rotation")
    if isinstance(position, dict):
        said = config.value(position["key"], usual="")
        position = position.get(said, position["usual"]) if isinstance(said, str) else ""
    if position == "unknown":
        return replace(found, no_claim="config.json names no positions that are known here")
    if position in POSITIONS:
        attention, note = POSITIONS[position](config, size, tables)
        longest = None
    else:
        attention, note = layers_of(config, family, size, position, trained)
        longest = trained if position == "absolute" or "ends" in family else None
    shared = family.get("shared")
    last = 0 if shared is None else config.whole(shared["key"], usual=shared["usual"], least=0)
    attention = [
        replace(
            with_logits(config, family, size, k, a),
            held=a.encoding is not None and k < max(1, size.layers - last),
        )
        for k, a in enumerate(attention)
    ]
    notes = (note, _said(attention, longest, last), _ignored(config, family))
    note = "; ".join(filter(None, (UNCHECKED if known is None else "", *notes)))
    return replace(found, attention=tuple(attention), note=note, longest=longest)


def _said(attention: list[Attention], longest: int | None, shared: int) -> str:
    """The parts of the layers that are no rotations."""
    turned = any(a.turned for a in attention)
    still = sum(a.flat for a in attention)
    found = []
    if any(a.sink for a in attention):
        found.append(
            "the denominator of each head has a learned constant too, a sink without value"
        )
    if still and turned:
        found.append(f"{plural(still, 'layer')} without positions")
    if longest is not None:
        what = f"the library's rows end with its table of {longest} angles"
        found.append(
            what if turned else f"a table of {longest} positions, with which every row ends"
        )
    if shared:
        found.append(f"the last {shared} layers reuse the keys of layers before them")
    return "; ".join(found)


def _ignored(config: Config, family: Mapping[str, Any]) -> str:
    """Keys on positions that the library does not read in this family."""
    read = {"sliding_window"} if "window" in family else set()
    read |= {"layer_types"} if "layers" in family and family.get("types") != [] else set()
    full = ["full_attention"] * config.whole(*NAMES["layers"], usual=0)
    plain: tuple[Any, ...] = (None, False, [], "rope", "absolute", full)
    given = (k for k in POSITIONAL if config.values.get(k) not in plain)
    unread = [k for k in given if k not in read and f"'{k}'" not in repr(family)]
    if "ignored" in (cap := family.get("cap", {})) and config.value(cap["ignored"]) is not None:
        unread.append(cap["ignored"])
    return "; ".join(f"{k} is left out of account, as the library does" for k in unread)


def _generic(config: Config) -> dict[str, Any]:
    """A table for a family that is not known here: the library's usual keys, without defaults."""
    family: dict[str, Any] = {"size": {}, "keys": _SYNONYMS}
    if config.value(*_SYNONYMS["layers"]) is None and config.part("text_config").values:
        family["part"] = "text_config"
        config = config.part("text_config")
    if config.value("layer_types") is not None:
        family |= {"window": {}, "layers": {"rule": "full_attention"}}
    if all(config.value(key) is None for key in _ROTATES):
        family["position"] = "unknown"
    return family


# -- families whose biases need more than names ---------------------------------------------------

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
    found = replace(encoding("alibi", m=slopes), source=source)
    clip = own.number("clip_qkv", usual=1.0) if own.value("clip_qkv") else None
    return [Attention(found, clip=clip)] * size.layers, note


def _falcon(config: Config, size: ModelSize, tables: Tables) -> tuple[list[Attention], str]:
    if not config.flag("alibi", usual=False):
        length = config.whole("max_position_embeddings", usual=2048)
        attention, note = rotary(config, size, {}, length=length)
        return [attention] * size.layers, note
    slopes = [alibi_slope(h, size.heads) for h in range(1, size.heads + 1)]
    divided = [slope / sympy.sqrt(size.head_size) for slope in slopes]
    found = replace(
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
        return Attention(replace(made, name="t5 table", source=source))

    found = [table(k) for k in range(size.layers if each else 1)]
    note = "self-attention of the decoder; its logits are not divided by sqrt(head size)"
    return found if each else found * size.layers, note


POSITIONS = {"bloom": _bloom, "mpt": _mpt, "falcon": _falcon, "t5": _t5}
"""What a configuration says of the attention of each layer, and what is to be said of it."""
