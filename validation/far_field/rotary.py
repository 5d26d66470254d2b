"""Settings of a rotary model for rows beyond its training length, as people set them.

A setting changes `rope_parameters` of `config.json`, or keeps a window with first keys, or cuts the
text. Frequencies are the library's: a setting is applied to a live model by the model's own rotary
module, built from the changed configuration. What is pasted into transformers, vLLM and llama.cpp
comes from the same entries.

vLLM takes a longer row only where `max_position_embeddings` or the factor allows it. Its dynamic
scaling has the frequencies of the longest row at every length, so it is another setting there.
llama.cpp reads the factors of Llama 3 and LongRoPE from its file, and shifts half of its cache at a
time, so it has no flag for these and for a window.
"""

from __future__ import annotations

import copy
import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import nn

from farfield.theory.answers.errors import refuse

FIRST_KEYS = 4
"""First keys that a window keeps, as StreamingLLM does."""
_FULL = "full_attention"  # the library's name for layers without a window


@dataclass(frozen=True)
class Setting:
    """How a rotary model is run on long rows.

    Args:
        name: in words.
        rope: entries that replace those of `rope_parameters`; empty for the model's own.
        longest: `max_position_embeddings` that belongs to it; None leaves the model's own.
        window: nearest keys that a query sees, its own included.
        sinks: first keys that it sees in addition.
        in_cache: whether first keys stand next to the window, where positions count in the cache.
        cut: the text is cut to this many last tokens.
    """

    name: str
    rope: Mapping[str, Any] = field(default_factory=dict)
    longest: int | None = None
    window: int | None = None
    sinks: int = 0
    in_cache: bool = False
    cut: int | None = None

    def keys(self, length: int) -> int:
        """Keys in the cache after this many tokens.

        >>> Setting("window", window=4096, sinks=4).keys(16384)
        4100
        """
        kept = length if self.window is None else self.window + self.sinks
        return min(length, kept, self.cut or length)

    def entries(self, config: Any) -> dict[str, Any]:
        """What changes in `config.json`, for a configuration of the library transformers."""
        if not self.rope:
            return {}
        whole = config.rope_parameters
        rope = dict(self.rope)
        changed = {**whole, _FULL: rope} if _FULL in whole else rope
        longest = {} if self.longest is None else {"max_position_embeddings": self.longest}
        return {"rope_parameters": changed, **longest}


UNCHANGED = Setting("as it is")


def rope_of(config: Any) -> dict[str, Any]:
    """The `rope_parameters` of the layers that see the whole text.

    Raises:
        InputError: the configuration has none.
    """
    whole = getattr(config, "rope_parameters", None) or {}
    rope = whole.get(_FULL) or whole
    refuse(
        "rope_theta" not in rope,
        f"a model of type {config.model_type!r} has no rope_parameters to set; accepted: models "
        "whose positions are rotations",
    )
    return dict(rope)


def turned(config: Any) -> int:
    """How many numbers of a query are turned by its position."""
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return int(size * rope_of(config).get("partial_rotary_factor", 1.0))


def candidates(config: Any, trained: int, to: int) -> list[Setting]:
    """Settings to choose from, for rows of `to` tokens of a model trained on `trained`.

    A model that is scaled already keeps its kind of scaling, with a larger factor. A base is raised
    by `factor^(d/(d-2))`, which turns the slowest of `d/2` pairs `factor` times slower.

    Raises:
        InputError: `rope_of`; `to` within the training length.
    """
    refuse(
        to <= trained,
        f"the model is trained on {trained} tokens, so nothing is to be mended at {to}; accepted: "
        "a longer row",
    )
    own, factor, d = rope_of(config), to / trained, turned(config)
    base, half = own["rope_theta"], trained // 2

    def scaled(name: str, by: float, kind: str, **more: float) -> Setting:
        kept = {k: v for k, v in own.items() if k not in ("rope_type", "factor")}
        longest = None if kind == "dynamic" else to  # it measures rows by the model's own length
        return Setting(f"{name} {by:g}", {"rope_type": kind, **kept, "factor": by, **more}, longest)

    def raised(by: float) -> Setting:
        return Setting(f"base {by:g}", {**own, "rope_theta": base * by ** (d / (d - 2))}, to)

    where: dict[str, float] = {"original_max_position_embeddings": trained}
    if own.get("rope_type", "default") == "default":
        llama = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, **where}
        frequencies = [
            scaled("YaRN", factor, "yarn", **where),
            scaled("YaRN", 2 * factor, "yarn", **where),
            scaled("linear", factor, "linear"),
            scaled("dynamic", factor, "dynamic"),
            scaled("Llama 3", factor, "llama3", **llama),
        ]
    else:
        kind, before = own["rope_type"], own.get("factor", 1.0)
        frequencies = [scaled(kind, before * by, kind) for by in (factor, 2 * factor)]
    return [
        UNCHANGED,
        Setting(f"text cut to {trained}", cut=trained),
        *frequencies,
        raised(factor),
        raised(2 * factor),
        Setting(f"window {half}", window=half),
        *(
            Setting(f"window {half}, first keys {place}", window=half, sinks=FIRST_KEYS, in_cache=c)
            for place, c in (("in the cache", True), ("in the text", False))
        ),
    ]


# -- on a live model ------------------------------------------------------------------------------


def rotations(network: nn.Module) -> Iterator[tuple[nn.Module, str, nn.Module]]:
    """The rotary modules of a model of the library, each with its parent and its name there."""
    for parent in network.modules():
        for name, module in parent.named_children():
            if hasattr(module, "rope_type") and hasattr(module, "config"):
                yield parent, name, module


@contextmanager
def applied(network: Any, setting: Setting) -> Iterator[None]:
    """The frequencies of a setting in a live model; its own come back at the end.

    Args:
        network: a model of the library transformers.
        setting: its window and its cut are not applied here.

    Raises:
        InputError: the model has no rotary module.
    """
    before = list(rotations(network)) if setting.rope else []
    refuse(
        setting.rope and not before,
        f"a model of type {network.config.model_type!r} turns its queries in a way that "
        "rope_parameters do not set; accepted: models with a rotary module of the library",
    )
    try:
        for parent, name, module in before:
            config = copy.deepcopy(module.config)
            for key, value in setting.entries(config).items():
                setattr(config, key, copy.deepcopy(value))
            device = next(module.buffers()).device
            setattr(parent, name, type(module)(config).to(device))
        yield
    finally:
        for parent, name, module in before:
            setattr(parent, name, module)


# -- to paste -------------------------------------------------------------------------------------


class Paste(NamedTuple):
    """What a library takes for a setting.

    Fields:
        library: its name.
        text: the text to paste; None where the library cannot be set so.
        where: the file or the command that takes it, or why there is nothing.
    """

    library: str
    text: str | None
    where: str


def pastes(setting: Setting, config: Any, to: int) -> tuple[Paste, Paste, Paste]:
    """What transformers, vLLM and llama.cpp take for a setting on rows of `to` tokens."""
    return _transformers(setting, config), _vllm(setting, config, to), _llama_cpp(setting, to)


def _transformers(setting: Setting, config: Any) -> Paste:
    if setting.window is not None:
        return Paste(
            "transformers", None, "its windows keep no first keys, and few models have any"
        )
    if setting.cut is not None:
        cut = {"model_max_length": setting.cut, "truncation_side": "left"}
        return Paste("transformers", json.dumps(cut), "tokenizer_config.json, with truncation=True")
    return Paste("transformers", json.dumps(setting.entries(config)), "config.json")


def _vllm(setting: Setting, config: Any, to: int) -> Paste:
    if setting.window is not None:
        return Paste("vLLM", None, "it keeps no first keys beside a window")
    if setting.cut is not None:
        flags = f"--max-model-len {setting.cut}"
        return Paste("vLLM", flags, "vllm serve; requests set truncate_prompt_tokens")
    if setting.rope.get("rope_type") == "dynamic":
        return Paste("vLLM", None, "its dynamic scaling has one base for rows of every length")
    changed = setting.entries(config) or {"max_position_embeddings": to}
    return Paste(
        "vLLM",
        f"--hf-overrides {shlex.quote(json.dumps(changed))} --max-model-len {to}",
        "vllm serve",
    )


def _llama_cpp(setting: Setting, to: int) -> Paste:
    rope, size = setting.rope, f"--ctx-size {setting.cut or to}"
    kind = rope.get("rope_type", "default")
    if setting.window is not None:
        return Paste("llama.cpp", None, "its context shift drops half of the cache at a time")
    if kind not in ("default", "linear", "yarn"):
        return Paste("llama.cpp", None, f"it has no flag for {kind} scaling")
    flags = {
        "default": f"--rope-freq-base {rope['rope_theta']!r}" if rope else "",
        "linear": f"--rope-scaling linear --rope-scale {rope.get('factor', 1):g}",
        "yarn": f"--rope-scaling yarn --rope-scale {rope.get('factor', 1):g} "
        f"--yarn-orig-ctx {rope.get('original_max_position_embeddings')}",
    }
    return Paste("llama.cpp", f"{flags[kind]} {size}".strip(), "llama-server or llama-cli")
