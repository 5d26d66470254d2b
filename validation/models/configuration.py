"""A folder's `config.json`, as the library transformers reads it: type, refusals, length, notes.

The library's classes read `config.json`; code of a folder is never run. This module takes
the training length and the remarks from a configuration. `observed` sees what the model does.
"""

from __future__ import annotations

import contextlib
import copy
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from farfield.theory.answers.errors import InputError, refuse
from farfield.validation.models.outline import LayerOutline, ModelOutline
from farfield.validation.optional import first_line, library

DOCUMENT = 2 << 20
"""The most bytes of a configuration."""

OLDEST = (5, 23)
"""The first version of transformers whose caches and masks are known here."""

MOST = {
    r"(n|num)(_\w+)?_layers": 2000,
    r"(n|num)(_\w+)?_experts": 4096,
    r"(n|num)(_\w+)?_heads?": 1 << 16,
    r"(\w+_)?dim": 1 << 20,
    r"(\w+_)?size|d_model|n_embd": 1 << 24,
}
"""The most that a configuration may count: layers become modules, sizes tables in memory."""


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


def transformers() -> ModuleType:
    """The library, which downloads nothing.

    Raises:
        InputError: it is not installed, or too old.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "critical")
    found = library("transformers", "a model from outside", "hf")
    version = tuple(int(part) for part in found.__version__.split(".")[:2])
    refuse(
        version < OLDEST,
        f"transformers {found.__version__} is installed; accepted: from "
        f"{'.'.join(map(str, OLDEST))}",
    )
    return found


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


def architectures() -> dict[str, dict[str, str]]:
    """The class of each `model_type`, by task: `causal`, or `seen` (with images)."""
    auto = transformers().models.auto.modeling_auto
    return {
        "causal": dict(auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES),
        "seen": dict(auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES),
    }


def class_of(values: Mapping[str, Any], mapping: Mapping[str, Any]) -> tuple[str, str]:
    """The type by which the library reads a configuration, and a note on it; empty where none.

    Another type is read by the class of the library that its architecture names. Where several
    types have that class, it is the one that the class is named after.
    """
    kind = str(values.get("model_type"))
    if kind in mapping:
        note = f"read as {kind} of the library: code of the folder (auto_map) is not run"
        return kind, note if "auto_map" in values else ""
    for name in values.get("architectures") or ():
        for task in architectures().values():
            types = [k for k, v in task.items() if v == name]
            own = (k for k in types if str(name).lower().startswith(re.sub("[^a-z0-9]", "", k)))
            if (found := next(own, types[0] if types else "")) != "":
                note = f"the type {kind} is read as {found}, the library's class {name}"
                return found, note
    return "", ""


_RUNNING = ("dtype", "torch_dtype", "quantization_config", "auto_map", "transformers_version")


def library_config(path: Path, values: Mapping[str, Any]) -> tuple[Any, str, str]:
    """The library's configuration of a folder, its type, and a note; None for an unknown type.

    Raises:
        InputError: the folder was written by a newer major version; the library refuses a key.
    """
    found = transformers()
    written = str(values.get("transformers_version"))
    major = re.match(r"\d+", written)
    refuse(
        major and int(major[0]) > int(found.__version__.partition(".")[0]),
        f"model {path.name!r} was written by transformers {written}, and "
        f"{found.__version__} is installed; accepted: folders of that version",
    )
    for name, form in (("text_config", dict), ("architectures", list)):
        refuse(
            values.get(name) is not None and not isinstance(values[name], form),
            f"model {path.name!r}: config.json has {name} {values.get(name)!r:.40}; accepted: a "
            f"{'table' if form is dict else 'list'}",
        )
    mapping = found.CONFIG_MAPPING
    kind, note = class_of(values, mapping)
    if not kind and isinstance(text := values.get("text_config"), dict):
        values = text
        kind, _ = class_of(values, mapping)
        note = f"its text configuration alone is known, as {kind}"
    if not kind:
        return None, "", ""
    _require_one_rotation(path, values)
    _require_bounds(path, values)
    with quiet(found):
        config = _accepted(path, kind, mapping[kind], values)
    _require_rescaling(path, config.get_text_config(decoder=True))
    return config, kind, note


def _require_one_rotation(path: Path, values: Mapping[str, Any]) -> None:
    """Raise InputError where the names of version 4 and of version 5 say different rotations."""
    for part in (values, values.get("text_config") or {}):
        new, old = part.get("rope_parameters"), part.get("rope_scaling") or {}
        refuse(
            not isinstance(old, dict),
            f"model {path.name!r}: config.json has rope_scaling {old!r:.40}; accepted: a table",
        )
        old = dict(old)
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


def _require_rescaling(path: Path, text: Any) -> None:
    """Raise InputError for a rescaling of rotations that the library does not have."""
    rope = getattr(text, "rope_parameters", None) or {}
    parts = [part for part in rope.values() if isinstance(part, dict)] or [rope]
    known = ("default", *transformers().modeling_rope_utils.ROPE_INIT_FUNCTIONS)
    for part in parts:
        kind = part.get("rope_type", "default")
        refuse(
            kind not in known,
            f"model {path.name!r}: config.json has rope_type {kind!r:.40}; accepted: "
            f"{', '.join(known)}",
        )


def _require_bounds(path: Path, values: Mapping[str, Any]) -> None:
    """Raise InputError where a configuration counts more than a network is made of in a moment,
    or a window of no keys."""
    for key, value in values.items():
        if isinstance(value, dict):
            _require_bounds(path, value)
        whole = isinstance(value, int) and not isinstance(value, bool)
        most = next((n for name, n in MOST.items() if re.fullmatch(name, str(key))), 1 << 63)
        refuse(
            whole and value > most,
            f"model {path.name!r}: config.json has {key} {value!r:.40}; accepted: at most {most}",
        )
        refuse(
            key in ("sliding_window", "attention_chunk_size") and whole and value < 1,
            f"model {path.name!r}: config.json has {key} {value!r:.40}; accepted: a whole number "
            "from 1",
        )


def _accepted(path: Path, kind: str, made: Any, values: Mapping[str, Any]) -> Any:
    """The library's object; a flag that is a number, and a number that is whole, are taken for
    what the library wants, as its models do."""
    settings = {key: value for key, value in values.items() if key not in _RUNNING}
    for _ in range(8):
        try:
            return made.from_dict(copy.deepcopy(settings))
        except Exception as error:  # whatever the library raises
            failed = error
        wanted = re.search(r"field '(\w+)'.*?[Ee]xpected (\w+)", str(failed), re.S)
        cast = {"bool": bool, "float": float}.get(wanted[2]) if wanted else None
        if wanted is None or cast is None:
            break
        settings = _cast(settings, wanted[1], cast)
    key = wanted[1] if wanted and wanted[1] in str(settings) else _refused(made, settings)
    value = next(_values(settings, key), None)
    why = " ".join(str(failed).partition("Error: ")[2].split()) or first_line(failed)
    raise InputError(
        f"model {path.name!r}: config.json has {key} {value!r:.60}, which the library "
        f"transformers refuses ({why[:120]}); accepted: what it takes for {kind}"
    )


def _values(table: Mapping[str, Any], key: str) -> Iterator[Any]:
    """What a key has in a table and in the tables within it."""
    for name, value in table.items():
        if name == key:
            yield value
        elif isinstance(value, dict):
            yield from _values(value, key)


def _cast(table: Any, key: str, cast: Callable[[Any], Any]) -> Any:
    """A table whose number of a name, also in the tables within it, has another type."""
    if not isinstance(table, dict):
        return table
    return {
        k: cast(v) if k == key and isinstance(v, int | float) else _cast(v, key, cast)
        for k, v in table.items()
    }


def _refused(made: Any, settings: Mapping[str, Any]) -> str:
    """The key without which the library takes a configuration; `keys` where there is not one."""
    for key in settings:
        with contextlib.suppress(Exception):
            made.from_dict(copy.deepcopy({k: v for k, v in settings.items() if k != key}))
            return key
    return "keys"


# -- a folder ------------------------------------------------------------------------------------


def described(path: Path, values: Mapping[str, Any]) -> tuple[ModelOutline, Any]:
    """What the library makes of a configuration, and the library's object of its text part; None
    where no number follows.

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
    from farfield.validation.models.observed import NotObserved, observe

    found, text = transformers(), config.get_text_config(decoder=True)
    try:
        with quiet(found):
            seen = observe(config)
    except NotObserved as error:
        return replace(outline, unknown=str(error)), None
    trained, origin = _trained(values, text)
    ends = trained if seen.table and trained and trained <= seen.table <= trained + 8 else None
    outline = replace(
        outline,
        layers=seen.layers,
        width=getattr(text, "hidden_size", None) or 0,
        vocabulary=getattr(text, "vocab_size", None) or 0,
        trained=trained,
        trained_from=origin,
        longest=ends,
        cached=seen.cached,
        causal=kind in architectures()["causal"] and not any(o.both_sides for o in seen.layers),
    )
    crossed = "the self-attention of the decoder; keys of the encoder's output are kept besides"
    notes = (*outline.notes, *_notes(outline, values), *[crossed] * seen.encoded)
    return replace(outline, notes=notes), text


_LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx")


def _trained(values: Mapping[str, Any], text: Any) -> tuple[int | None, str]:
    """The training length, and whether the folder or the library names it."""
    parts = [values, *(v for v in values.values() if isinstance(v, dict))]
    named = next(
        (n for name in (*_LENGTHS, "model_max_length") if (n := getattr(text, name, 0))), 0
    )
    raw = next((n for p in parts[::-1] for name in _LENGTHS if (n := p.get(name))), None)
    length = named if isinstance(named, int) and named > 0 else raw
    if not isinstance(length, int) or length < 1:
        return None, ""
    read = any(length == p.get(name) for p in parts for name in (*_LENGTHS, "model_max_length"))
    return length, "by the configuration" if read else "the library's default"


def _notes(outline: ModelOutline, values: Mapping[str, Any]) -> Iterator[str]:
    """Remarks that the table of layers has no place for."""
    yield from _of_scores(outline.layers)
    yield from _of_keys(outline.layers)
    yield from _of_logits(outline.layers)
    if outline.longest:
        yield f"rows end with the table of {outline.longest} positions"
    if not all(layer.observed for layer in outline.layers if layer.attends):
        yield "masks or rotations of some layers were not seen: as the configuration says"
    parts = (values, values.get("text_config") or {})
    if not any("layer" in str(key) for part in parts for key in part):
        count = len(outline.layers)
        yield f"the {count} layers are the library's default, as config.json names none"
    scaling = values.get("rope_scaling")
    if isinstance(scaling, dict) and not scaling.get("rope_type") and not scaling.get("type"):
        yield "rope_scaling names no type, so the library leaves it out of account"


T = TypeVar("T")


def _different(values: Iterable[T | None]) -> list[T]:
    """Each value once, and none that is empty."""
    return [value for value in dict.fromkeys(values) if value]


def _of_scores(layers: Sequence[LayerOutline]) -> Iterator[str]:
    """Rescaled rotations, other factors of q.k, and learned sinks."""
    for rotation in _different(layer.rotation for layer in layers):
        if rotation.note:
            times = f", logits times {rotation.scale:.4g}" if rotation.scale != 1 else ""
            how = f"{rotation.kind}: {rotation.note}"
            yield f"rotations with base {rotation.base:g} are rescaled ({how}){times}"
    beside = (o.scale / (o.rotation.scale if o.rotation else 1) for o in layers)
    for factor in _different(beside):
        if abs(factor - 1) > 1e-6:
            yield f"logits are {factor:.4g} times q.k / sqrt(head size)"
    if any(layer.sink for layer in layers):
        yield "the denominator of each head has a learned constant too, a sink without value"


def _of_keys(layers: Sequence[LayerOutline]) -> Iterator[str]:
    """Keys that are picked, and caches that keep others than those that are seen."""
    for picks in _different(layer.picks for layer in layers):
        indexed = any(layer.indexed for layer in layers if layer.picks == picks)
        kept = ", by keys of its own, which the cache holds too" if indexed else ""
        yield f"an indexer picks {picks} keys for each query{kept}"
    for keeps in _different(layer.keeps for layer in layers):
        if keeps == math.inf:
            yield "the library's cache keeps every key, also those that a layer no longer sees"
        else:
            yield (
                f"the library's cache drops all but the nearest {keeps:g} keys, which one pass "
                "over a row does not: what is generated depends on how the row is read"
            )


def _of_logits(layers: Sequence[LayerOutline]) -> Iterator[str]:
    """Bounds of logits, and factors that grow with the row."""
    for cap in _different(layer.cap for layer in layers):
        yield f"a content logit x enters the softmax as {cap:g} tanh(x/{cap:g})"
    for factor in _different(layer.temper for layer in layers):
        yield f"logits grow as {factor}, i the place of the query in its row, from 1"
