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

from farfield.theory.answers.answer import InputError
from farfield.theory.answers.number import plural
from farfield.theory.encodings import encoding, of_mechanism
from farfield.validation.checkpoints.biases import POSITIONS
from farfield.validation.checkpoints.configured import (
    NAMES,
    POSITIONAL,
    RUN,
    SLIDING,
    STATE,
    Attention,
    Folder,
    ModelSize,
    Tables,
    families,
    layers_of,
    size_of,
    with_logits,
)
from farfield.validation.checkpoints.guarded import Config, document
from farfield.validation.checkpoints.rotary import rotary
from farfield.validation.checkpoints.weights import tensor

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
        layers = layers_of(config, family, size.layers)
        attention, note = _by_layers(config, family, size, layers, position, trained)
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


def _by_layers(
    config: Config,
    family: Mapping[str, Any],
    size: ModelSize,
    layers: list[tuple[str, bool, int | None, int | None]],
    position: str,
    trained: int | None,
) -> tuple[list[Attention], str]:
    """The attention of each layer by its kind, and notes on the rotations."""
    still, note = Attention(encoding("nope")), ""
    far = near = still
    if position == "absolute":
        far = near = Attention(encoding(of_mechanism("learned_absolute").name))
    elif position == "rotation" and "local" in family:
        far, near, note, other = _two_rotations(config, family, size, trained)
        if any(kind == SLIDING for kind, *_ in layers):
            note = f"in layers that see all, {note}; in the others, {other}"
    elif position == "rotation":
        far, note = rotary(config, size, family, length=trained)
        near = far

    def of(kind: str, turned: bool, window: int | None, chunk: int | None) -> Attention:
        if kind == STATE:
            return Attention(None)
        found = (near if kind == SLIDING else far) if turned else still
        return replace(found, window=window, chunk=chunk)

    return [of(*layer) for layer in layers], note


def _two_rotations(
    config: Config, family: Mapping[str, Any], size: ModelSize, trained: int | None
) -> tuple[Attention, Attention, str, str]:
    """Layers that see all rotate with one base, those that slide with another; notes on both."""
    given = config.part("rope_parameters")
    wide = given.part("full_attention") if given.values else config.part("rope_scaling")
    theta = config.number("rope_theta", usual=family["theta"])
    key = family["local"].get("key")
    other = family["local"]["usual"]
    other = other if key is None else config.number(key, usual=other)
    plain = config.with_values({})
    far, note = rotary(plain, size, family, wide, theta=theta, length=trained)
    near, close = rotary(plain, size, family, given.part("sliding_attention"), theta=other)
    return far, near, note, close


def _said(attention: list[Attention], longest: int | None, shared: int) -> str:
    """The parts of the layers that are no rotations."""
    turned = any(a.turned for a in attention)
    still = sum(a.flat for a in attention)
    found = []
    if any(a.sink for a in attention):
        found.append(
            "the denominator of each head has a learned constant besides, a sink without value"
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
    read |= {"layer_types"} if "layers" in family and family.get("types") is not False else set()
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
