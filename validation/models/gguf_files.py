"""A GGUF file: its header by the package `gguf`, its tensors one at a time, its tokenizer.

The header gives the same audit, without weights. The mappings of transformers leave scalings of
rotations and some windows out, so they are no source for an audit. Quantised weights become float32
by the file's own formula, and nothing is written beside the file.
"""

from __future__ import annotations

import contextlib
import functools
import io
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from farfield.theory.answers.errors import InputError, refuse
from farfield.validation.models.configuration import quiet, transformers
from farfield.validation.models.outline import LayerOutline, ModelOutline, Rotary
from farfield.validation.optional import first_line, library, require

LAYERS, HEADS, NUMBER = 512, 1 << 16, 1 << 40
"""The most layers, heads and other numbers of a header; llama.cpp has as many layers at most."""

_TOKENS = "tokenizer.ggml.tokens"  # told by their number
_TABLES = ("token_embd.weight", "output.weight")  # which the library takes as they are
_ONE_BY_ONE = {f"{name}TensorProcessor" for name in ("", "Llama", "Gemma2", "Nemotron")}
"""What the library does with the tensors of an architecture, where it is done to each alone."""


@functools.cache
def facts() -> dict[str, dict[str, Any]]:
    """What llama.cpp decides by architecture."""
    table = tomllib.loads((files(__package__) / "gguf.toml").read_text())
    return {name: {} for name in table["plain"]} | table["facts"]


def describe_gguf(path: Path) -> ModelOutline:
    """What the header of a GGUF file says of its model.

    Raises:
        InputError: it is no GGUF file, or names no layers.
    """
    try:
        fields = _opened(path).fields
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
    """What the keys of a header say, as llama.cpp reads them; see `describe_gguf`.

    Raises:
        InputError: a count is out of its range.
    """
    kind = str(values.get("general.architecture", ""))
    own = {k.removeprefix(f"{kind}."): v for k, v in values.items() if k.startswith(f"{kind}.")}
    outline = ModelOutline(path, kind, values=dict(values), notes=("the header of a GGUF file",))
    if kind not in facts():
        why = f"what llama.cpp does with the architecture {kind!r:.40} is not known here"
        return replace(outline, unknown=why)
    known = facts()[kind]
    header = _Header(own, known)
    wanted = known.get("period") and not known.get("optional") and "window" not in known
    if wanted and "attention.sliding_window" not in own and "at_layers" not in known:
        return replace(outline, unknown="its header lacks attention.sliding_window")
    ignored = "attention.sliding_window" in own and "period" not in known
    notes = ["llama.cpp leaves the window of the header out, and keeps every key"] * ignored
    if bias := _alibi(header):
        notes.append(f"ALiBi with exponents up to {bias:g}")
    if grows := header.real("attention.temperature_scale"):
        notes.append(f"logits grow with the row, temperature scale {grows:g}")
    layers = tuple(_layers(header))
    scales = dict.fromkeys(layer.scale for layer in layers if layer.scale != 1)
    notes += [f"logits are {scale:.4g} times q.k / sqrt(head size)" for scale in scales]
    table = any(layer.positions == "absolute" for layer in layers)
    trained = header.whole("context_length") or None
    return replace(
        outline,
        layers=layers,
        width=header.whole("embedding_length"),
        vocabulary=header.whole("vocab_size") or values.get(_TOKENS, 0),
        trained=trained,
        trained_from="by the header",
        longest=trained if table else None,
        cached=not header.both,
        notes=(*outline.notes, *notes),
    )


class _Header:
    """The numbers of a header, each within its range.

    Args:
        values: its keys, without the name of the architecture.
        known: what llama.cpp decides by the architecture.

    Fields:
        heads, keys: of each layer, and its heads of keys.
        sizes: numbers of a key and of a value of one head, in a layer that sees all and in one with
            a window.
        cap: the bound of logits; None for none.
        cached: layers with a cache of their own, the first ones.
    """

    def __init__(self, values: Mapping[str, Any], known: Mapping[str, Any]) -> None:
        self.values, self.known = values, known
        self.both = bool(known.get("both_sides"))
        self.count = self.whole("block_count", LAYERS)
        refuse(
            not self.count,
            f"the header has block_count {values.get('block_count')!r:.40}; accepted: a whole "
            f"number from 1 to {LAYERS}",
        )
        self.heads = self.each("attention.head_count")
        self.keys = self.each("attention.head_count_kv", self.heads)
        usual = self.whole("embedding_length") // max(1, *self.heads)
        key = self.whole("attention.key_length", usual=usual)
        value = self.whole("attention.value_length", usual=usual)
        near = self.whole("attention.key_length_swa", usual=key)
        self.sizes = (key, value), (near, self.whole("attention.value_length_swa", usual=value))
        self.cap = self.real("attn_logit_softcapping", known.get("cap", 0.0)) or None
        self.cached = known.get("with_cache", self.count)
        if "attention.shared_kv_layers" in values:
            self.cached = self.count - self.whole("attention.shared_kv_layers", self.count)

    def whole(self, name: str, most: int = NUMBER, usual: int = 0) -> int:
        """A whole number that is not negative."""
        value = self.values.get(name, usual)
        refuse(
            isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most,
            f"the header has {name} {value!r:.40}; accepted: a whole number up to {most}",
        )
        return int(value)

    def real(self, name: str, usual: float = 0.0) -> float:
        """A finite number that is not negative."""
        value = self.values.get(name, usual)
        refuse(
            not isinstance(value, int | float) or not 0 <= value < math.inf,
            f"the header has {name} {value!r:.40}; accepted: a finite number",
        )
        return float(value)

    def each(self, name: str, usual: Sequence[int] = ()) -> list[int]:
        """A number of each layer, from one number or a list."""
        value = self.values.get(name, list(usual) or 0)
        numbers = value if isinstance(value, list) else [value] * self.count
        wrong = not all(isinstance(n, int) and 0 <= n <= HEADS for n in numbers)
        refuse(
            wrong or len(numbers) != self.count,
            f"the header has {name} {value!r:.60}; accepted: one number up to {HEADS}, or "
            f"{self.count}",
        )
        return [int(n) for n in numbers]


def _layers(header: _Header) -> Iterator[LayerOutline]:
    """Each layer that is computed."""
    known, (window, slides) = header.known, _sliding(header)
    stateful, numbers = _states(header)
    for at in range(header.count - header.whole(str(known.get("extra")), header.count)):
        state = numbers * stateful[at]
        if header.keys[at] == 0 or (stateful[at] and known["state"] in ("period", "only")):
            yield LayerOutline(attends=False, state=state)
        else:
            width = window if slides[at] else None
            yield _attending(header, at, width, any(slides), state)


def _attending(
    header: _Header, at: int, width: int | None, mixed: bool, state: int
) -> LayerOutline:
    """A layer with attention.

    Args:
        header: of the file.
        at: the place of the layer.
        width: of its window; None where it sees all keys.
        mixed: whether some layer of the model has a window.
        state: numbers of a state that it keeps too.
    """
    known, local, heads, keys = header.known, width is not None, header.heads[at], header.keys[at]
    key, value = header.sizes[local]
    size, cached = key, keys * (key + value)
    if known.get("latent") and "attention.key_length_mla" in header.values:
        size, cached = header.whole("attention.key_length_mla"), key
    both, shares = header.both, at >= header.cached
    positions = _positions(header, at, local, mixed)
    return LayerOutline(
        width=None if width is None else width + both,
        both_sides=both,
        chunked=bool(known.get("chunked")) and local,
        heads=heads,
        key_heads=keys,
        head_size=size,
        cached=0 if shares or both else cached,
        state=state,
        shares=shares,
        positions=positions,
        rotation=_rotation(header, local, key) if positions == "rotation" else None,
        sink=bool(known.get("sink")),
        cap=header.cap,
        scale=_scale(header, heads, key),
        observed=False,
    )


def _sliding(header: _Header) -> tuple[int, list[bool]]:
    """The window of layers that slide, and which do: the period of the header or of llama.cpp."""
    known = header.known
    window = header.whole("attention.sliding_window", usual=known.get("window", 0))
    pattern = header.values.get("attention.sliding_window_pattern", known.get("period"))
    count = known.get("at_layers", header.count)
    if "period" not in known or not window or count != header.count:
        return 0, [False] * header.count
    window = known["window"] if known.get("chunked") else known.get("literal", window)
    if isinstance(pattern, list):
        refuse(
            len(pattern) != header.count,
            f"the header has a window pattern of {len(pattern)}; accepted: {header.count}",
        )
        return window, [bool(one) for one in pattern]
    refuse(
        not isinstance(pattern, int) or not 0 < pattern <= LAYERS,
        f"the header has attention.sliding_window_pattern {pattern!r:.40}; accepted: a period",
    )
    last = 0 if known.get("first") else pattern - 1
    return window, [k % pattern != last for k in range(header.count)]


def _states(header: _Header) -> tuple[list[bool], int]:
    """Which layers keep a state, and its numbers."""
    kind, count = header.known.get("state"), header.count
    if kind not in ("no_keys", "no_forward", "all", "only", "period"):
        return [False] * count, 0
    inner, depth = header.whole("ssm.inner_size"), header.whole("ssm.state_size")
    mixed = inner + 2 * header.whole("ssm.group_count") * depth
    numbers = max(0, header.whole("ssm.conv_kernel") - 1) * mixed + inner * depth
    if taps := header.whole("shortconv.l_cache"):
        numbers = (taps - 1) * header.whole("embedding_length")
    if kind == "period":
        period = header.known["period_of_states"]
        return [(k + 1) % period != 0 for k in range(count)], numbers
    if kind in ("all", "only"):
        return [True] * count, numbers
    forward = header.each("feed_forward_length") if kind == "no_forward" else [0] * count
    return [not k and not f for k, f in zip(header.keys, forward, strict=True)], numbers


def _alibi(header: _Header) -> float:
    """The largest exponent of the slopes of a bias; 0 without one."""
    if header.known.get("at_layers", header.count) != header.count:
        return 0.0
    most = header.known.get("alibi", 0.0)
    return header.real(most) if isinstance(most, str) else float(most)


def _positions(header: _Header, at: int, local: bool, mixed: bool) -> str:
    """How a layer knows positions, as `LayerOutline.positions` says it."""
    known = header.known
    if known.get("switch") and header.values.get("rope.scaling.finetuned") is False:
        return "none"
    if _alibi(header):
        return "bias"
    turns, still = known.get("turns", "rotation"), known.get("still")
    if turns == "local":
        return "rotation" if local or not mixed else "none"
    return "none" if still and (at + 1) % still == 0 else str(turns)


def _rotation(header: _Header, local: bool, size: int) -> Rotary:
    known, base = header.known, header.real("rope.freq_base", 10_000.0)
    if local:
        base = header.real("rope.freq_base_swa", known.get("local_base", base))
    plain = local and "local_base" in known
    factor = 0.0 if plain else header.real("rope.scaling.factor")
    kind = "default" if plain else str(header.values.get("rope.scaling.type") or "default")
    turned = header.whole("rope.dimension_count", usual=size)
    return Rotary(min(turned, size), base, kind, note=f"factor {factor:g}" if factor else "")


def _scale(header: _Header, heads: int, size: int) -> float:
    """What logits are multiplied by beside 1/sqrt(head size)."""
    scale = header.real("attention.scale", header.known.get("scale", 0.0))
    if header.known.get("wide_at_layers") == header.count:
        scale = (header.whole("embedding_length") // heads) ** -0.5
    return scale * math.sqrt(size) if scale else 1.0


def _opened(path: Any) -> Any:
    """The reader of a file, which parses its header; that of the file as it is now is kept."""
    file = Path(path).stat()
    return _parsed(str(path), file.st_size, file.st_mtime_ns)


@functools.lru_cache(1)
def _parsed(path: str, size: int, changed: int) -> Any:
    return library("gguf", "a GGUF file", "gguf").GGUFReader(path)


@contextlib.contextmanager
def _parsed_once() -> Iterator[None]:
    """The library parses a header several times, and makes the table of names for each module;
    both are made once here."""
    gguf: Any = library("gguf", "a GGUF file", "gguf")
    before = gguf.GGUFReader, gguf.get_tensor_name_map
    gguf.GGUFReader, gguf.get_tensor_name_map = _opened, functools.cache(before[1])
    try:
        yield
    finally:
        gguf.GGUFReader, gguf.get_tensor_name_map = before


def gguf_network(model: ModelOutline) -> Any:
    """The model of a file in float32.

    Raises:
        InputError: the library knows no such file.
    """
    require("accelerate", "a GGUF file", "gguf")
    return _read(model, "AutoModelForCausalLM", dtype="float32")


def gguf_config(model: ModelOutline) -> Any:
    """The configuration of the library that a file has.

    Raises:
        InputError: the library knows no such file.
    """
    return _read(model, "AutoConfig")


def gguf_tensors(model: ModelOutline, network: Any, kind: Any) -> Callable[[str], Any]:
    """Reads tensors of a file by the library's names, one at a time, in float32 or in their type;
    None where there is none.

    Args:
        model: what its header says.
        network: the library's model, without numbers.
        kind: the type that tables are made of, which are the largest.

    Raises:
        InputError: an architecture whose tensors are not those of the library, one by one.
    """
    hf, gguf = transformers().modeling_gguf_pytorch_utils, library("gguf", "a GGUF file", "gguf")
    make = hf.TENSOR_PROCESSORS.get(model.kind, hf.TensorProcessor)
    refuse(
        make.__name__ not in _ONE_BY_ONE,
        f"model {model.name!r} ({model.kind}) is larger than the memory, and its tensors cannot be "
        "read one by one; accepted: its folder of safetensors, or more memory",
    )
    convert = make(config=network.config.to_dict())
    with _parsed_once():
        names = hf.get_gguf_hf_weights_map(network, convert)
    stored = {names.get(tensor.name, ""): tensor for tensor in _opened(model.path).tensors}

    def read(name: str) -> Any:
        if name not in stored:
            return None
        import torch

        tensor = stored[name]
        data, offset = tensor.data, int(tensor.data_offset)
        raw = np.fromfile(model.path, data.dtype, data.size, offset=offset).reshape(data.shape)
        parts = np.array_split(raw, max(1, tensor.n_elements >> 24))
        floats = (gguf.quants.dequantize(part, tensor.tensor_type) for part in parts)
        if tensor.name in _TABLES:
            return torch.cat([torch.from_numpy(x.copy()).to(kind) for x in floats])
        weight = convert.process(weights=np.concatenate([*floats]), name=tensor.name).weights
        return torch.from_numpy(np.ascontiguousarray(weight))

    return read


def gguf_tokenizer(model: ModelOutline) -> Any:
    """The tokenizer of a file, of the library tokenizers.

    Raises:
        InputError: the library knows no such tokenizer.
    """
    return _read(model, "AutoTokenizer").backend_tokenizer


def _read(model: ModelOutline, name: str, **how: Any) -> Any:
    hf, silent = transformers(), contextlib.redirect_stderr(io.StringIO())  # a bar of tqdm's own
    with quiet(hf), silent, _parsed_once():
        try:
            return getattr(hf, name).from_pretrained(
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
