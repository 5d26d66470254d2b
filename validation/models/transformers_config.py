"""What the configuration of a model says of positions and of its cache, layer by layer.

The classes of the library transformers read `config.json`: they know the kind of each layer, its
window, its heads, its rotation and who shares a cache. This module asks them, without torch and
without code of the folder. What these classes do not say is a table, `quirks.toml`. Where neither
speaks, there is no number, and the answer says so.

A test builds every type of the library with its default configuration, and holds what is said here
against the layers, caches and rotations of the models themselves.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import importlib.util
import json
import math
import os
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

from farfield.theory.answers.errors import InputError, refuse
from farfield.validation.models.layers import LayerOutline, ModelOutline, Rotary
from farfield.validation.optional import library

DOCUMENT = 2 << 20
"""The most bytes of a configuration."""

OLDEST = (5, 23)
"""The first version of transformers whose classes say what is asked here."""

WINDOWED = ("sliding_attention", "hybrid_sliding")
STATES = ("linear_attention", "conv", "hybrid", "hybrid_sliding")
STATELESS = ("moe", "mlp")
ATTENDING = ("full_attention", "indexed_attention", "hybrid", "chunked_attention", *WINDOWED)
"""The library's names of kinds of layers, as far as a number follows from them."""


def read_json(path: Path, name: str, most: int = DOCUMENT) -> dict[str, Any]:
    """A table of a JSON file of a folder.

    Raises:
        InputError: it is no regular file, is too large, or is no table in JSON.
    """
    place = path / name
    why = ""
    if not place.is_file():
        why = "is no regular file"
    elif (size := place.stat().st_size) > most:
        why = f"has {size} bytes, more than {most}"
    else:
        try:
            values = json.loads(place.read_bytes().decode(), object_hook=_plain_number)
            if isinstance(values, dict):
                return values
            why = "is no table of keys"
        except (ValueError, RecursionError) as error:
            why = f"is not valid JSON ({' '.join(str(error).split())[:100]})"
        except OSError as error:
            why = f"cannot be read ({error.strerror})"
    raise InputError(f"model {path.name!r}: {name} {why}; accepted: a table in JSON")


def _plain_number(table: dict[str, Any]) -> Any:
    """Infinity and NaN, which the library writes as a table of one key."""
    return float(table["__float__"]) if [*table] == ["__float__"] else table


# -- the library ---------------------------------------------------------------------------------


_WITHOUT_TORCH: dict[str, ModuleType] = {}  # the library's modules, as imported without torch


@contextlib.contextmanager
def configurations() -> Iterator[ModuleType]:
    """The library transformers for its classes of configurations alone.

    Where neither it nor torch is imported yet, it is imported without torch, which takes less than
    half of the time, and hidden afterwards: a program that runs a model imports it anew.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    alone = not {"torch", "transformers"} & {*sys.modules}
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "critical")
    if alone:
        sys.modules.update(_WITHOUT_TORCH)
        sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        transformers = library("transformers", "a model from outside", "hf")
        version = tuple(int(part) for part in transformers.__version__.split(".")[:2])
        refuse(
            version < OLDEST,
            f"transformers {transformers.__version__} is installed; accepted: from "
            f"{'.'.join(map(str, OLDEST))}",
        )
        with quiet(transformers):
            yield transformers
    finally:
        if alone:
            for name in [m for m in sys.modules if m.partition(".")[0] == "transformers"]:
                _WITHOUT_TORCH[name] = sys.modules.pop(name)
            del sys.modules["torch"]


@contextlib.contextmanager
def quiet(transformers: Any) -> Iterator[None]:
    """No progress bars, reports and warnings of the library: what matters is raised."""
    logging = transformers.utils.logging
    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()


@functools.cache
def architectures() -> dict[str, dict[str, str]]:
    """The class of each `model_type`, by task: `causal` or `seen` (with images).

    Read from the library's own list as text, since it cannot be imported without torch.
    """
    home = importlib.util.find_spec("transformers")
    assert home is not None and home.origin is not None
    source = Path(home.origin).parent / "models/auto/modeling_auto.py"
    wanted = {
        "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES": "causal",
        "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES": "seen",
    }
    classes = {}
    for node in ast.parse(source.read_text()).body:
        name = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else ""
        if name in wanted and isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            classes[wanted[name]] = dict(ast.literal_eval(node.value.args[0]))
    return classes


def class_of(values: Mapping[str, Any], mapping: Mapping[str, Any]) -> tuple[str, str]:
    """The type by which the library reads a configuration, and a note on it; empty where none.

    Another type is read by the class of the library that its architecture names, or by that of
    its text configuration.
    """
    kind = str(values.get("model_type"))
    if kind in mapping:
        note = f"read as {kind} of the library: code of the folder (auto_map) is not run"
        return kind, note if "auto_map" in values else ""
    for name in values.get("architectures") or ():
        for task in architectures().values():
            if (type_name := next((k for k, v in task.items() if v == name), None)) is not None:
                return (
                    type_name,
                    f"the type {kind} is read as {type_name}, the library's class {name}",
                )
    return "", ""


_RUNNING = ("dtype", "torch_dtype", "quantization_config", "auto_map", "transformers_version")


def library_config(path: Path, values: Mapping[str, Any]) -> tuple[Any, str, str]:
    """The library's configuration of a folder, its type, and a note; None for an unknown type.

    Raises:
        InputError: the folder was written by a newer major version; the library refuses a key.
    """
    with configurations() as transformers:
        written = str(values.get("transformers_version") or "")
        major = re.match(r"\d+", written)
        refuse(
            major and int(major[0]) > int(transformers.__version__.partition(".")[0]),
            f"model {path.name!r} was written by transformers {written}, and "
            f"{transformers.__version__} is installed; accepted: folders of that version",
        )
        mapping = transformers.CONFIG_MAPPING
        kind, note = class_of(values, mapping)
        if not kind and isinstance(text := values.get("text_config"), dict):
            values = text
            kind, _ = class_of(values, mapping)
            note = f"its text configuration alone is known, as {kind}"
        if not kind:
            return None, "", ""
        _require_one_rotation(path, values)
        return _accepted(path, kind, mapping[kind], values), kind, note


def _require_one_rotation(path: Path, values: Mapping[str, Any]) -> None:
    """Raise InputError where the names of version 4 and of version 5 say different rotations."""
    for part in (values, values.get("text_config") or {}):
        new, old = part.get("rope_parameters"), dict(part.get("rope_scaling") or {})
        if not isinstance(new, dict) or any(isinstance(v, dict) for v in new.values()):
            continue
        if part.get("rope_theta") is not None:
            old["rope_theta"] = part["rope_theta"]
        if "type" in old:
            old["rope_type"] = old.get("rope_type", old.pop("type"))
        for key, value in old.items():
            if key in new and new[key] != value:
                raise InputError(
                    f"model {path.name!r}: config.json has {key} {new[key]!r:.40} in "
                    f"rope_parameters and {value!r:.40} beside it; accepted: one of them"
                )


def _accepted(path: Path, kind: str, made: Any, values: Mapping[str, Any]) -> Any:
    """The library's object; a flag that is a number, and a number that is whole, are taken for
    what the library wants, as its models do."""
    settings = {key: value for key, value in values.items() if key not in _RUNNING}
    try:
        return made.from_dict(copy.deepcopy(settings))
    except Exception as error:  # whatever the library raises
        wanted, text = re.search(r"field '(\w+)'.*?[Ee]xpected (\w+)", str(error), re.S), str(error)
    key = wanted[1] if wanted else next((k for k in settings if f"{k}" in text), "")
    if wanted and key in settings:
        for cast in (bool, float):
            with contextlib.suppress(Exception):
                return made.from_dict(copy.deepcopy({**settings, key: cast(settings[key])}))
    what = (
        f"{key} {settings[key]!r:.60}"
        if key in settings
        else f"keys ({' '.join(text.split())[:100]})"
    )
    raise InputError(
        f"model {path.name!r}: config.json has {what}, which the library transformers refuses; "
        f"accepted: what it takes for {kind}"
    )


# -- layers --------------------------------------------------------------------------------------


@functools.cache
def quirks() -> dict[str, Any]:
    """What the library's classes do not say, by `model_type`."""
    return tomllib.loads((files(__package__) / "quirks.toml").read_text())


def described(path: Path, values: Mapping[str, Any]) -> tuple[ModelOutline, Any]:
    """What a configuration says, and the library's object; None where no number follows.

    Additive biases are not among it, since some are weights: see `biases.with_bias`.

    Args:
        path: the folder.
        values: the content of `config.json`.

    Raises:
        InputError: the library refuses it, or a number is out of its range.
    """
    config, kind, note = library_config(path, values)
    type_name = str(values.get("model_type"))
    outline = ModelOutline(path, kind or type_name, notes=(note,) if note else (), values=values)
    if config is None:
        why = f"{type_name} is no type of the library, and no architecture of it is named"
        return replace(outline, unknown=why), None
    text = config.get_text_config(decoder=True)
    of = str(text.model_type) if text.model_type else kind
    foreign = sorted(_without_foreign(text, values) & {*quirks()["positional"]})
    if why := _unknown(text, of):
        return replace(outline, unknown=why), None
    layers = _layers(outline, text, of)
    trained, origin = _trained(values, text)
    ends = trained if of in quirks()["ends"] and layers else None
    outline = replace(
        outline,
        layers=layers,
        width=_number(text, "hidden_size") or 0,
        vocabulary=_number(text, "vocab_size") or 0,
        trained=trained,
        trained_from=origin,
        longest=ends,
    )
    unread = tuple(f"{key} is left out of account, as the library does" for key in foreign)
    return replace(outline, notes=(*outline.notes, *_notes(outline, text, values), *unread)), text


def _without_foreign(text: Any, values: Mapping[str, Any]) -> set[str]:
    """Take the attributes off that the file has and the library's class does not; their names."""
    parts = (values, *(v for v in values.values() if isinstance(v, dict)))
    names = {key for part in parts for key in part} & {*vars(text)}
    foreign = {key for key in names if not hasattr(type(text), key)}
    foreign -= {*text.attribute_map.values()}
    if foreign:
        with contextlib.suppress(Exception):  # some classes have no defaults
            foreign -= {*vars(type(text)())}  # what a class sets itself
    for key in foreign:
        delattr(text, key)
    return foreign


def _unknown(text: Any, kind: str) -> str:
    """Why no number follows from a configuration; empty where one does."""
    if kind in quirks()["unknown"]:
        return f"the configuration of a {kind} does not say what its layers keep"
    both = kind in quirks()["encoders"] and not getattr(text, "is_decoder", False)
    if both or getattr(text, "is_causal", True) is False:
        return (
            "every token sees those after it too, so there is no cache, and no window of the past"
        )
    kinds = getattr(text, "layer_types", None) or ()
    if other := next((k for k in kinds if k not in (*ATTENDING, *STATES, *STATELESS)), None):
        return f"what a layer of the kind {other!r} keeps is not known here"
    return "" if _number(text, "num_hidden_layers") else "the configuration names no layers"


def _number(config: Any, *names: str) -> Any:
    """The first of several numbers that a configuration has."""
    return next((v for name in names if (v := getattr(config, name, None)) is not None), None)


def _whole(outline: ModelOutline, name: str, value: Any, least: int = 1) -> int:
    """A whole number of a configuration within its range."""
    refuse(
        isinstance(value, bool) or not isinstance(value, int) or not least <= value < 1 << 40,
        f"model {outline.name!r}: config.json has {name} {value!r:.40}; accepted: a whole number "
        f"from {least}",
    )
    return value


def _layers(outline: ModelOutline, text: Any, kind: str) -> tuple[LayerOutline, ...]:
    count = _whole(outline, "num_hidden_layers", _number(text, "num_hidden_layers"))
    refuse(
        count > 2000,
        f"model {outline.name!r}: config.json has {count} layers; accepted: at most 2000",
    )
    each = text.per_layer_config if text.is_heterogeneous else [text] * count
    kinds = list(getattr(text, "layer_types", None) or [_plain(one) for one in each])
    if (reaches := getattr(text, "attention_layers", None)) is not None:  # GPT-Neo
        kinds = ["sliding_attention" if one == "local" else "full_attention" for one in reaches]
    modes = getattr(text, "kv_sharing_modes", None) or [None] * count
    indexers = getattr(text, "indexer_types", None)
    made: dict[Any, LayerOutline] = {}
    layers = []
    for k, (one, of, mode) in enumerate(zip(each, kinds, modes, strict=True)):
        how = {"shares": mode == "reuse", "turns": _turns(text, kind, k, of)}
        how["indexes"] = indexers is None or indexers[k] == "full"
        if k in (getattr(text, "cross_attention_layers", None) or ()):
            of = "moe"  # it sees what another model made, and keeps no token
        alike = (of, *how.values(), k if text.is_heterogeneous else 0)
        if alike not in made:
            made[alike] = _layer(outline, one, kind, of, **how)
        layers.append(made[alike])
    return tuple(layers)


def _plain(one: Any) -> str:
    """The kind of a layer where the configuration lists none, as the library's caches have it."""
    if getattr(one, "sliding_window", None) is not None:
        return "sliding_attention"
    chunk = getattr(one, "attention_chunk_size", None)
    return "full_attention" if chunk is None else "chunked_attention"


def _turns(text: Any, kind: str, layer: int, of: str) -> bool:
    """Whether a layer, from 0, turns its queries and keys."""
    if (bases := getattr(text, "layer_rope_theta", None)) is not None:
        return bool(bases[layer])
    chosen = getattr(text, "no_rope_layers", None)
    if chosen:
        return bool(chosen[layer])
    if kind in quirks()["sliding_turns"]:
        return of in WINDOWED or getattr(text, "sliding_window", None) is None
    if kind in quirks()["asks_rope"]:
        return bool(text.position_embedding_type == "rope")
    return kind not in quirks()["still"] and getattr(text, "use_mem_rope", True)


def _layer(
    outline: ModelOutline, one: Any, kind: str, of: str, *, shares: bool, turns: bool, indexes: bool
) -> LayerOutline:
    attends = of in ATTENDING
    state = (state_of(one, kind) if of in STATES else 0) if not shares else 0
    if not attends:
        return LayerOutline(attends=False, state=state)
    width = None
    if of in WINDOWED:
        width = _whole(outline, "sliding_window", _number(one, "sliding_window", "window_size"))
    elif of == "chunked_attention":
        width = _whole(outline, "attention_chunk_size", one.attention_chunk_size)
    prefix = "swa_" if of in WINDOWED else ""
    heads = _number(one, f"{prefix}num_attention_heads", "num_attention_heads")
    heads = _whole(outline, "num_attention_heads", heads)
    keys = _number(one, f"{prefix}num_key_value_heads", "num_key_value_heads") or heads
    keys = 2 * keys if prefix and kind in quirks()["doubled"] else keys
    if kind in quirks()["one_key"]:
        keys = (
            1 if one.multi_query and not getattr(one, "new_decoder_architecture", False) else keys
        )
    size = _number(one, f"{prefix}head_dim", *quirks()["head_sizes"])
    size = size or _whole(outline, "hidden_size", _number(one, "hidden_size")) // heads
    turned, cached = size, 2 * keys * size
    value = _number(one, f"{prefix}v_head_dim", "v_head_dim")
    rank = _number(one, "kv_lora_rank")
    if rank:
        turned = one.qk_rope_head_dim
        size, keys = (_number(one, "qk_nope_head_dim") or 0) + turned, 1
        cached = rank + turned
    elif value:
        cached = keys * (size + value)
    picks = _number(one, "index_topk") if of == "indexed_attention" else None
    indexed = _number(one, "index_head_dim") or 0 if picks is not None and indexes else 0
    rotation = _rotation(outline, one, of, turned) if turns else None
    positions = "rotation" if rotation else "none" if not turns else _stands(kind)
    return LayerOutline(
        width=width,
        chunked=of == "chunked_attention",
        picks=picks,
        heads=heads,
        key_heads=keys,
        head_size=size,
        cached=0 if shares else cached,
        indexed=0 if shares else indexed,
        state=state,
        shares=shares,
        positions=positions,
        rotation=rotation,
        sink=kind in quirks()["sinks"],
        cap=_number(one, "attn_logit_softcapping"),
        temper=_temper(one, kind, of, turns),
    )


def _temper(one: Any, kind: str, of: str, turns: bool) -> str:
    """The factor of the logits of a query in place i, from 1."""
    if _number(one, "attn_temperature_tuning") and not turns:
        return f"1 + {one.attn_scale:g} log(1 + floor(i/{one.floor_scale:g}))"
    floor = _number(one, "log_scaling_n_floor")
    if floor is not None and of not in WINDOWED:
        return f"1 + {one.log_scaling_alpha:g} log(max(1, i/{floor:g}))"
    beta = (_number(one, "rope_parameters") or {}).get("llama_4_scaling_beta")
    if beta and kind in quirks()["tempered"]:
        length = one.rope_parameters["original_max_position_embeddings"]
        return f"1 + {beta:g} log(1 + floor((i - 1)/{length:g}))"
    return ""


def _stands(kind: str) -> str:
    """The positions of a layer without a rotation."""
    if kind in quirks()["absolute"]:
        return "absolute"
    if kind in quirks()["bias"]:
        return "bias"
    return ""


def state_of(one: Any, kind: str) -> int | None:
    """Numbers that a layer with a state keeps, as the library's caches do; None if not known."""
    width, kernel = getattr(one, "hidden_size", 0), _number(one, *quirks()["kernels"])
    if (taps := _number(one, "conv_L_cache")) is not None:  # a convolution alone
        return int(width * taps)
    if (value_heads := _number(one, "linear_num_value_heads")) is not None:  # a delta rule
        key, value = one.linear_key_head_dim, one.linear_value_head_dim
        mixed = 2 * one.linear_num_key_heads * key + value_heads * value
        return int(mixed * one.linear_conv_kernel_dim + value_heads * key * value)
    if (heads := _number(one, "linear_num_heads")) is not None:
        size = one.linear_head_dim
        return int(heads * size * (3 * kernel + size))
    depth = _number(one, "mamba_d_state", "ssm_state_size", "state_size")
    if depth is None or kernel is None:
        return None
    heads = _number(one, "mamba_n_heads", "n_mamba_heads", "mamba_num_heads", "num_heads")
    groups = _number(one, "mamba_n_groups", "mamba_ngroups", "n_groups")
    inner = _number(one, "mamba_d_ssm", "mamba_intermediate_size")
    if inner is None:
        size = _number(one, "mamba_d_head", "mamba_headdim", "mamba_head_dim", "head_dim")
        inner = heads * size if heads and size and groups else None
    inner = inner or int((_number(one, "mamba_expand", "expand") or 0) * width)
    mixed = inner + 2 * groups * depth if groups is not None else inner
    return int(mixed * kernel + inner * depth)


# -- rotations -----------------------------------------------------------------------------------

SCALINGS = {
    "default": "",
    "linear": "all angles divided by {factor:g}",
    "dynamic": "the base grows with rows beyond the training length, factor {factor:g}",
    "yarn": "slow angles divided by {factor:g}",
    "longrope": "each angle divided by a number of its own, another one beyond {original} tokens",
    "llama3": "slow angles divided by {factor:g}",
    "proportional": "a part of the angles of the whole head turns",
}
"""Every kind of rescaling that the library knows, and its effect."""


def _rotation(outline: ModelOutline, one: Any, of: str, size: int) -> Rotary | None:
    """How a layer of a kind turns `size` dimensions or a share of them; None where it does not."""
    rope = getattr(one, "rope_parameters", None)
    if (turned := _number(one, "rotary_dim")) and not rope:
        return Rotary(turned, 10_000.0)
    if isinstance(rope, dict) and any(isinstance(v, dict) for v in rope.values()):
        rope = rope.get(of)
    if not isinstance(rope, dict) or not size:
        return None
    kind = rope.get("rope_type") or rope.get("type") or "default"
    share, base = rope.get("partial_rotary_factor") or 1.0, rope.get("rope_theta") or 0
    refuse(
        kind not in SCALINGS or not isinstance(base, int | float) or base <= 0,
        f"model {outline.name!r}: config.json has rope_type {kind!r:.40} with base "
        f"{base!r:.40}; accepted: {', '.join(SCALINGS)}, with a positive base",
    )
    latent = _number(one, "kv_lora_rank") is not None
    turned = size if latent else int(size * share)
    refuse(
        not 0 < share <= 1 or turned < 2 or turned % 2,
        f"model {outline.name!r}: config.json turns a share {share:g} of {size} dimensions; "
        "accepted: a share of at most 1 that is an even number of dimensions",
    )
    longest = _number(one, "max_position_embeddings")
    original = rope.get("original_max_position_embeddings") or longest
    factor = rope.get("factor") or (longest / original if longest and original else 1.0)
    note = SCALINGS[kind].format(factor=factor, original=original)
    return Rotary(turned, float(base), kind, _logit_scale(kind, rope, factor, original), note)


def _grown(factor: float, by: float) -> float:
    """What yarn multiplies queries or keys with."""
    return 0.1 * by * math.log(factor) + 1 if factor > 1 else 1.0


def _logit_scale(kind: str, rope: Mapping[str, Any], factor: float, original: Any) -> float:
    """What logits are multiplied by: cosines and sines of queries and of keys both are."""
    if kind not in ("yarn", "longrope"):
        return 1.0
    if rope.get("attention_factor") is not None:
        return float(rope["attention_factor"]) ** 2
    if kind == "longrope":
        grows = factor > 1 and original and original > 1
        return 1 + math.log(factor) / math.log(original) if grows else 1.0
    one, all_dim = rope.get("mscale"), rope.get("mscale_all_dim")
    scale = _grown(factor, one) / _grown(factor, all_dim) if one and all_dim else _grown(factor, 1)
    return scale**2


# -- what is said of the whole -------------------------------------------------------------------

_LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx")


def _trained(values: Mapping[str, Any], text: Any) -> tuple[int | None, str]:
    """The training length, and whether the folder or the library names it."""
    parts = [values, *(v for v in values.values() if isinstance(v, dict))]
    raw = next((n for p in parts[::-1] for name in _LENGTHS if (n := p.get(name))), None)
    named = _number(text, *_LENGTHS, "model_max_length")
    length = named if isinstance(named, int) and named > 0 else raw
    if not isinstance(length, int) or length < 1:
        return None, ""
    read = any(length == p.get(name) for p in parts for name in (*_LENGTHS, "model_max_length"))
    return length, "by the configuration" if read else "the library's default"


def _notes(outline: ModelOutline, text: Any, values: Mapping[str, Any]) -> Iterator[str]:
    """What the configuration says beyond the table of layers."""
    for r in dict.fromkeys(layer.rotation for layer in outline.layers):
        if r is not None and r.note:
            times = f", logits times {r.scale:.4g}" if r.scale != 1 else ""
            yield f"rotations with base {r.base:g} are rescaled ({r.kind}: {r.note}){times}"
    if any(layer.sink for layer in outline.layers):
        yield "the denominator of each head has a learned constant too, a sink without value"
    for cap in {layer.cap: None for layer in outline.layers if layer.cap is not None}:
        yield f"a content logit x enters the softmax as {cap:g} tanh(x/{cap:g})"
    for factor in {layer.temper: None for layer in outline.layers if layer.temper}:
        yield f"logits grow as {factor}, i the place of the query in its row, from 1"
    if outline.longest:
        yield f"rows end with the table of {outline.longest} positions"
    if getattr(text, "is_encoder_decoder", False):
        yield "the self-attention of the decoder; keys of the encoder's output are kept besides"
    parts = (values, values.get("text_config") or {})
    if not any(re.search(r"layer", key) for part in parts for key in part):
        count = len(outline.layers)
        yield f"the {count} layers are the library's default, as config.json names none"
    scaling = values.get("rope_scaling")
    if isinstance(scaling, dict) and not scaling.get("rope_type") and not scaling.get("type"):
        yield "rope_scaling names no type, so the library leaves it out of account"
