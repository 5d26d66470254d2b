"""Settings of rotary models for longer rows; what transformers, vLLM and llama.cpp take for them.

A setting changes `rope_parameters` of `config.json`, or keeps a window with first keys, scales
logits, or cuts the text. Frequencies are the library's: a setting is applied to a live model by its
own rotary module, built from the changed configuration. The lines to paste into transformers, vLLM
and llama.cpp come from the same entries.

vLLM takes a longer row only where `max_position_embeddings` or the factor allows it. Its dynamic
scaling has the frequencies of the longest row at every length, so it is another setting there.
llama.cpp reads the factors of Llama 3 and LongRoPE from its file, and shifts half of its cache at a
time. So it has no flag for these or for a window. It has Self-Extend (`--grp-attn-n`), outside its
server, where the width is a multiple of the group.
"""

from __future__ import annotations

import copy
import json
import math
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from farfield.theory.answers.errors import refuse
from farfield.validation.models.library_network import rotations
from farfield.validation.models.repairs import FIRST_KEYS, Repair

_FULL = "full_attention"  # the library's name for layers without a window


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


def settings_of(config: Any, trained: int, to: int) -> list[Repair]:
    """Settings to choose from, for rows of `to` tokens of a model trained on `trained`; the cut
    text is the first.

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
    bases = (factor, 2 * factor) if d > 2 else ()  # one plane turns by 1, whatever the base is

    def scaled(name: str, by: float, kind: str, **more: float) -> Repair:
        kept = {k: v for k, v in own.items() if k not in ("rope_type", "factor")}
        longest = None if kind == "dynamic" else to  # it measures rows by the model's own length
        rope = {"rope_type": kind, **kept, "factor": by, **more}
        return Repair(setting=f"{name} {by:g}", rope=rope, longest=longest)

    def raised(by: float) -> Repair:
        rope = {**own, "rope_theta": base * by ** (d / (d - 2))}
        return Repair(setting=f"NTK-aware {by:g}", rope=rope, longest=to)

    where: dict[str, float] = {"original_max_position_embeddings": trained}
    if own.get("rope_type", "default") == "default":
        llama = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, **where}
        frequencies = [
            scaled("YaRN", factor, "yarn", **where),
            scaled("YaRN", 2 * factor, "yarn", **where),
            scaled("linear", factor, "linear"),
            *(scaled("dynamic NTK", by, "dynamic") for by in bases[:1]),
            scaled("Llama 3", factor, "llama3", **llama),
        ]
    else:
        kind, before = own["rope_type"], own.get("factor", 1.0)
        frequencies = [scaled(kind, before * by, kind) for by in (factor, 2 * factor)]
    return [
        Repair(cut=trained),
        *frequencies,
        *map(raised, bases),
        Repair(window=half),
        *(Repair(window=half, sinks=FIRST_KEYS, in_cache=held) for held in (True, False)),
        Repair(group=grouped(trained, to)),
        Repair(scale=True),
    ]


def grouped(trained: int, to: int) -> tuple[int, int]:
    """The least groups of Self-Extend that reach `to`, and a width near a quarter of the training
    length that is a multiple of them, as llama.cpp wants it.

    >>> grouped(8192, 16384), grouped(2048, 16384)
    ((3, 2046), (11, 506))
    """
    near = trained // 4
    group = math.ceil((to - near) / (trained - near))
    while (to - (width := near - near % group)) / group + width > trained:
        group += 1
    return group, width


def entries(repair: Repair, config: Any) -> dict[str, Any]:
    """What a change of rotations is in `config.json`, for a configuration of transformers."""
    if not repair.rope:
        return {}
    whole, rope = config.rope_parameters, dict(repair.rope)
    changed = {**whole, _FULL: rope} if _FULL in whole else rope
    longest = {} if repair.longest is None else {"max_position_embeddings": repair.longest}
    return {"rope_parameters": changed, **longest}


# -- on a live model ------------------------------------------------------------------------------


@contextmanager
def applied(network: Any, repair: Repair) -> Iterator[None]:
    """The rotations of a change in a live model; its own come back at the end.

    Args:
        network: a model of the library transformers; any other where no rotation changes.
        repair: its window and its cut are not applied here.

    Raises:
        InputError: the model has no rotary module.
    """
    before = list(rotations(network)) if repair.rope else []
    refuse(
        bool(repair.rope) and not before,
        "this model turns its queries in a way that rope_parameters do not set; accepted: models "
        "with a rotary module of the library transformers",
    )
    try:
        for parent, name, module in before:
            config: Any = copy.deepcopy(module.config)
            for key, value in entries(repair, config).items():
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
        versions: those that take it; the others ignore it or refuse it.
        text: the text to paste; None where the library cannot be set so.
        where: the file or the command that takes it, or why there is nothing.
    """

    library: str
    versions: str
    text: str | None
    where: str


NEW, OLD = "5 or newer", "4"
"""Of transformers. Each form does nothing in the other version."""
_VLLM_NEW, _VLLM_OLD = "0.12 or newer", "before 0.12"
_LACKS = {
    "transformers": "its windows keep no first keys; `farfield.apply` runs the live model so",
    "vLLM": "it keeps no first keys beside a window, scales no logits and groups no positions",
    "llama.cpp": "its context shift drops half of the cache, and it scales no logits",
}


def pastes(repair: Repair, config: Any, to: int) -> tuple[Paste, ...]:
    """What transformers, vLLM and llama.cpp take for a change on rows of `to` tokens."""
    if repair.window is not None or repair.scale or repair.group is not None:
        each = [Paste(library, "all", None, why) for library, why in _LACKS.items()]
        if repair.group is not None:
            each[-1] = _grouped_in_llama_cpp(*repair.group, to)
        return tuple(each)
    return (*_transformers(repair, config), *_vllm(repair, config, to), _llama_cpp(repair, to))


def legacy(changed: Mapping[str, Any]) -> dict[str, Any]:
    """Entries of `config.json` as transformers 4 reads them: the base stands beside the scaling."""
    rope = dict(changed["rope_parameters"].get(_FULL, changed["rope_parameters"]))
    others = {k: v for k, v in changed.items() if k != "rope_parameters"}
    base = rope.pop("rope_theta")
    scaling = None if rope["rope_type"] == "default" else rope
    return {"rope_scaling": scaling, "rope_theta": base, **others}


def _transformers(repair: Repair, config: Any) -> Iterator[Paste]:
    name = "transformers"
    if repair.cut is not None:
        cut = {"model_max_length": repair.cut, "truncation_side": "left"}
        where = "tokenizer_config.json, with truncation=True"
        yield Paste(name, "all", json.dumps(cut), where)
        return
    changed = entries(repair, config)
    for versions, text in ((NEW, changed), (OLD, legacy(changed))):
        yield Paste(name, versions, json.dumps(text), "config.json")


def _vllm(repair: Repair, config: Any, to: int) -> Iterator[Paste]:
    if repair.cut is not None:
        flags = f"--max-model-len {repair.cut}"
        yield Paste("vLLM", "all", flags, "vllm serve; requests set truncate_prompt_tokens")
    elif repair.rope.get("rope_type") == "dynamic":
        why = "its dynamic scaling has one base for rows of every length"
        yield Paste("vLLM", "all", None, why)
    else:
        changed = entries(repair, config)
        for versions, text in ((_VLLM_NEW, changed), (_VLLM_OLD, legacy(changed))):
            overrides = shlex.quote(json.dumps(text))
            flags = f"--hf-overrides {overrides} --max-model-len {to}"
            yield Paste("vLLM", versions, flags, "vllm serve")


def _grouped_in_llama_cpp(group: int, width: int, to: int) -> Paste:
    flags = f"--grp-attn-n {group} --grp-attn-w {width} --ctx-size {to}"
    where = (
        "llama-completion; its server has no such flags. It shifts the cache in blocks: near this"
    )
    return Paste("llama.cpp", "January 2024 or newer", flags, where)


def _llama_cpp(repair: Repair, to: int) -> Paste:
    rope, size = repair.rope, f"--ctx-size {repair.cut or to}"
    kind = rope.get("rope_type", "default")
    if kind not in ("default", "linear", "yarn"):
        return Paste("llama.cpp", "all", None, f"it has no flag for {kind} scaling")
    flags = {
        "default": f"--rope-freq-base {rope['rope_theta']!r}" if rope else "",
        "linear": f"--rope-scaling linear --rope-scale {rope.get('factor', 1):g}",
        "yarn": f"--rope-scaling yarn --rope-scale {rope.get('factor', 1):g} "
        f"--yarn-orig-ctx {rope.get('original_max_position_embeddings')}",
    }
    where = "llama-server or llama-cli"
    if repair.cut is not None:
        where += "; the server answers a longer prompt with HTTP 400, so the client has to cut it"
    return Paste("llama.cpp", "all", f"{flags[kind]} {size}".strip(), where)
