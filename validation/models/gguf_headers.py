"""The header of a GGUF file, read by the package `gguf`: the same audit, without weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from farfield.theory.answers.errors import InputError, refuse
from farfield.validation.models.layers import LayerOutline, ModelOutline, Rotary
from farfield.validation.optional import first_line, library

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

    def of(name: str, usual: Any = None) -> Any:
        return values.get(f"{kind}.{name}", usual)

    count, heads = of("block_count"), of("attention.head_count")
    found = ModelOutline(path, kind, values=dict(values), notes=("the header of a GGUF file",))
    latent = of("attention.kv_lora_rank") or of("attention.chunk_size")
    if not isinstance(count, int) or latent or kind.startswith(_UNKNOWN):
        why = f"the header of a {kind or 'file without architecture'} does not say what layers keep"
        return replace(found, unknown=why)
    each = _each(heads, count)
    keys = _each(of("attention.head_count_kv", heads), count)
    width = of("embedding_length", 0)
    size = of("attention.key_length") or width // max(1, each[0])
    value = of("attention.value_length") or size
    window, pattern = of("attention.sliding_window"), of("attention.sliding_window_pattern")
    if window and pattern is None:
        return replace(found, unknown="the header names a window and not the layers that have it")
    local = _local(pattern, count) if window else [False] * count
    base = float(of("rope.freq_base", 10_000.0))
    kinds, factor = of("rope.scaling.type") or "default", of("rope.scaling.factor")
    note = f"factor {factor:g}" if factor else ""
    turned = Rotary(int(of("rope.dimension_count", size)), base, str(kinds), note=note)
    bias = of("attention.max_alibi_bias")
    mixed = len({*local}) > 1  # then the program knows which layers turn, and how, not the header
    rotation = None if bias or mixed else turned
    positions = "bias" if bias else "" if mixed else "rotation"
    near = (of("attention.key_length_swa", size), of("attention.value_length_swa", value))
    layers = []
    for own, key, slides in zip(each, keys, local, strict=True):
        k, v = near if slides else (size, value)
        layers.append(
            LayerOutline(
                attends=key > 0,
                width=window if slides else None,
                heads=own,
                key_heads=key,
                head_size=k,
                cached=key * (k + v),
                positions=positions,
                rotation=rotation,
                state=0 if key > 0 else None,
                cap=of("attn_logit_softcapping"),
            )
        )
    grown = of("attention.temperature_scale")
    notes = found.notes
    notes += (f"ALiBi with exponents up to {bias:g}",) if bias else ()
    notes += (f"logits grow with the row, temperature scale {grown:g}",) if grown else ()
    trained, vocabulary = of("context_length"), of("vocab_size", values.get(_TOKENS, 0))
    return replace(
        found,
        layers=tuple(layers),
        width=width,
        vocabulary=vocabulary,
        trained=trained,
        trained_from="by the header",
        notes=notes,
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
