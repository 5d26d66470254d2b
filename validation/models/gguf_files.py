"""A GGUF file: its header by the package `gguf`, its weights and tokenizer by transformers.

The header gives the same audit, without weights. The mappings of transformers leave scalings of
rotations and some windows out, so they are no source for an audit. Quantised weights become float32
by the file's own formula, and nothing is written beside the file.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from farfield.theory.answers.errors import InputError, refuse
from farfield.validation.models.layers import LayerOutline, ModelOutline, Rotary
from farfield.validation.models.transformers_config import quiet
from farfield.validation.optional import first_line, library, require

_UNKNOWN = ("bert", "t5", "mamba", "rwkv", "jamba", "deepseek2", "falcon-h1", "granitehybrid")
"""Architectures whose layers the header does not give by these keys."""

_TOKENS = "tokenizer.ggml.tokens"  # told by their number


def describe_gguf(path: Path) -> ModelOutline:
    """What the header of a GGUF file says of its model.

    Raises:
        InputError: it is no GGUF file, or names no layers.
    """
    gguf = library("gguf", "a GGUF file", "gguf")
    try:
        fields = gguf.GGUFReader(path).fields
        values = {
            name: len(field.data) if name == _TOKENS else field.contents()
            for name, field in fields.items()
            if name == _TOKENS or not name.startswith("tokenizer.") or len(field.data) == 1
        }
    except Exception as error:  # whatever the library raises
        raise InputError(
            f"model {path.name!r} is no whole GGUF file ({first_line(error, 100)}); accepted: one "
            "that llama.cpp reads"
        ) from None
    return described_gguf(path, values)


def described_gguf(path: Path, values: Mapping[str, Any]) -> ModelOutline:
    """What the keys of a header say; see `describe_gguf`."""
    kind = str(values.get("general.architecture", ""))
    header = {k.removeprefix(f"{kind}."): v for k, v in values.items() if k.startswith(f"{kind}.")}
    outline = ModelOutline(path, kind, values=dict(values), notes=("the header of a GGUF file",))
    latent = header.get("attention.kv_lora_rank") or header.get("attention.chunk_size")
    if not isinstance(header.get("block_count"), int) or latent or kind.startswith(_UNKNOWN):
        why = f"the header of a {kind or 'file without architecture'} does not say what layers keep"
        return replace(outline, unknown=why)
    if header.get("attention.sliding_window") and "attention.sliding_window_pattern" not in header:
        return replace(outline, unknown="the header names a window and not the layers that have it")
    notes = {
        "attention.max_alibi_bias": "ALiBi with exponents up to {:g}",
        "attention.temperature_scale": "logits grow with the row, temperature scale {:g}",
    }
    told = (text.format(header[key]) for key, text in notes.items() if header.get(key))
    return replace(
        outline,
        layers=tuple(_layers(header)),
        width=header.get("embedding_length", 0),
        vocabulary=header.get("vocab_size", values.get(_TOKENS, 0)),
        trained=header.get("context_length"),
        trained_from="by the header",
        notes=(*outline.notes, *told),
    )


def _layers(header: Mapping[str, Any]) -> Iterator[LayerOutline]:
    """Each layer; where some slide, the program knows how they turn, and not the header."""
    count, heads = header["block_count"], header.get("attention.head_count")
    each, keys = (_each(n, count) for n in (heads, header.get("attention.head_count_kv", heads)))
    size = header.get("attention.key_length") or header.get("embedding_length", 0) // max(
        1, each[0]
    )
    whole = (size, header.get("attention.value_length") or size)
    near = tuple(
        header.get(f"attention.{name}_length_swa", usual)
        for name, usual in zip(("key", "value"), whole, strict=True)
    )
    window, bias = header.get("attention.sliding_window"), header.get("attention.max_alibi_bias")
    local = [False] * count
    if window:
        local = _local(header["attention.sliding_window_pattern"], count)
    factor = header.get("rope.scaling.factor")
    rotation = Rotary(
        int(header.get("rope.dimension_count", size)),
        float(header.get("rope.freq_base", 10_000.0)),
        str(header.get("rope.scaling.type") or "default"),
        note=f"factor {factor:g}" if factor else "",
    )
    mixed = len({*local}) > 1
    for queries, key, slides in zip(each, keys, local, strict=True):
        k, v = near if slides else whole
        yield LayerOutline(
            attends=key > 0,
            width=window if slides else None,
            heads=queries,
            key_heads=key,
            head_size=k,
            cached=key * (k + v),
            positions="bias" if bias else "" if mixed else "rotation",
            rotation=None if bias or mixed else rotation,
            state=0 if key > 0 else None,
            cap=header.get("attn_logit_softcapping"),
        )


def _each(value: Any, count: int) -> list[int]:
    """A number of each layer, from one number or a list."""
    numbers = list(value) if isinstance(value, list) else [value] * count
    refuse(
        len(numbers) != count or not all(isinstance(n, int) and n >= 0 for n in numbers),
        f"the header has heads {value!r:.60}; accepted: one number, or {count}",
    )
    return numbers


def _local(pattern: Any, count: int) -> list[bool]:
    """Which layers slide: a list of flags, or a period whose last layer sees all."""
    if isinstance(pattern, list):
        return [bool(one) for one in pattern]
    return [bool((k + 1) % pattern) for k in range(count)]


def gguf_numbers(model: ModelOutline) -> int:
    """How many numbers the tensors of a file have."""
    reader = library("gguf", "a GGUF file", "gguf").GGUFReader(model.path)
    return sum(int(tensor.n_elements) for tensor in reader.tensors)


def gguf_network(model: ModelOutline) -> Any:
    """The model of a file in float32.

    Raises:
        InputError: the library knows no such file.
    """
    require("accelerate", "a GGUF file", "gguf")
    return _read(model, "AutoModelForCausalLM", dtype="float32")


def gguf_tokenizer(model: ModelOutline) -> Any:
    """The tokenizer of a file, of the library tokenizers.

    Raises:
        InputError: the library knows no such tokenizer.
    """
    return _read(model, "AutoTokenizer").backend_tokenizer


def _read(model: ModelOutline, name: str, **how: Any) -> Any:
    transformers = library("transformers", "a model from outside", "hf")
    with quiet(transformers), contextlib.redirect_stderr(io.StringIO()):  # a bar of tqdm's own
        try:
            return getattr(transformers, name).from_pretrained(
                model.path.parent,
                gguf_file=model.path.name,
                local_files_only=True,
                trust_remote_code=False,
                **how,
            )
        except Exception as error:  # whatever the library raises
            raise InputError(
                f"model {model.name!r}: the library transformers cannot read this GGUF file "
                f"({first_line(error, 120)}); accepted: an architecture and a quantisation that it "
                "knows"
            ) from None
