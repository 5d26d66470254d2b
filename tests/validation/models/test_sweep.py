"""Every type of the library, by its default configuration: what is said of it, beside what it does.

The whole list takes minutes; a sample of it always runs.
"""

import json
import math
import sys
from pathlib import Path

import pytest
import torch
import transformers
from transformers import CONFIG_MAPPING

from farfield.theory.answers.answer import InputError
from farfield.validation.models.opened import Opened
from farfield.validation.models.transformers_config import described

sys.path.insert(0, str(Path(__file__).parent))
from observed import LENGTH, MORE, OWN, SMALL, TYPES, WINDOWED, built, observed, tiny

SAMPLE = [
    "afmoe",
    "arcee",
    "aya_vision",
    "axk1",
    "bailing_hybrid",
    "bloom",
    "codegen",
    "cohere2",
    "cwm",
    "deepseek_v32",
    "dots3_note",
    "exaone4",
    "falcon",
    "falcon_h1",
    "flint",
    "gemma2",
    "gemma3",
    "gemma4_text",
    "glm4_moe_lite",
    "gpt2",
    "gpt_bigcode",
    "gpt_neo",
    "gpt_oss",
    "granite_swa",
    "jamba",
    "kimi_linear",
    "lfm3",
    "llama",
    "llama4_text",
    "mamba2",
    "mimo_v2_flash",
    "mistral",
    "minicpm3",
    "modernbert-decoder",
    "nemotron_h",
    "opt",
    "phi3",
    "qwen2_moe",
    "qwen3_next",
    "smollm3",
]

WHOLE = ("aya_vision", "gpt_neo", "lfm3", "llama4_text", "nemotron_h", "bloom")
"""Types of the sample whose number of layers is not one key, or enters others."""

UNLIKE = {
    "gpt_neo": "its caches keep every key, though its local layers hide them",
    "minimax": "its caches end with the last layer that has keys",
    "hrm_text": "its layers run several times, under the numbers of the first ones",
}
"""Types of which the library's caches or numbers of layers say less than its masks."""


def said(kind, tmp_path, more):
    """What is said of the default configuration of a type; the reason where there is no number."""
    try:
        values = CONFIG_MAPPING[kind](**MORE.get(kind, {}) | more).to_dict()
    except Exception as error:
        raise RuntimeError(f"{kind} has no such configuration") from error
    model, _ = described(tmp_path / kind, json.loads(json.dumps(values, default=str)))
    return model.unknown or model


def wrong(kind, model, seen):
    """Disagreements between what is said and what is seen, each in words."""
    layers = [(x.cached + x.indexed, x.width, x.state) for x in model.layers]
    layers = layers[: len(seen["layers"])] if kind == "minimax" else layers
    if len(layers) != len(seen["layers"]):
        yield f"{len(layers)} layers, the library has {len(seen['layers'])}"
        return
    for k, (own, other) in enumerate(zip(layers, seen["layers"], strict=True)):
        if own[:2] != tuple(other[:2]) and kind not in UNLIKE:
            yield f"layer {k} keeps {own[:2]}, in the library {other[:2]}"
        if own[2] is not None and own[2] != other[2]:
            yield f"layer {k} has a state of {own[2]}, in the library {other[2]}"
    turned = [k for k, x in enumerate(model.layers) if x.rotation is not None]
    if turned != seen["turned"] and kind not in UNLIKE:
        yield f"layers {turned} turn, in the library {seen['turned']}"
    turns = {x.rotation for x in model.layers if x.rotation is not None}
    for angles, scale in seen["rotations"].values():
        found = 2 * sum(a != 0 for a in angles)
        alike = [r for r in turns if r.size == found]
        if turns and not alike:
            yield f"{found} dimensions turn in the library, {sorted(r.size for r in turns)} said"
        if turns and not any(abs(r.scale / scale**2 - 1) < 1e-6 for r in alike):
            yield f"logits are scaled by {scale**2} in the library"
        plain = [r for r in alike if r.kind in ("default", "proportional")]
        base = angles[1] ** -(len(angles)) if len(angles) > 1 else 0
        asked = plain and len(plain) == len(alike) and "ernie" not in kind
        if asked and not any(abs(r.base / base - 1) < 1e-4 for r in plain):
            yield f"base {base:g} in the library"


def compared(kind, tmp_path, **more):
    """`agrees`, `no number` or `not run`, or the disagreements; where the default configuration
    does not run on `meta`, a tiny one runs instead."""
    plain = {key: value for key, value in SMALL.items() if key != "sliding_window"}
    for values, device in ((more, "meta"), (plain | OWN.get(kind, {}), "cpu")):
        try:
            model = said(kind, tmp_path, values)
        except InputError:
            return "no number"
        except Exception:  # of the library, for a tiny configuration
            return "not run"
        if isinstance(model, str):
            return "no number"
        if device == "cpu" and model.width > 64:
            return "not run"
        try:
            seen = observed(kind, values, device)
        except Exception:
            continue
        return list(wrong(kind, model, seen)) or "agrees"
    return "not run"


@pytest.mark.parametrize("kind", SAMPLE)
def test_a_sample_of_the_types_is_as_the_library_has_it(kind, tmp_path):
    short = {} if kind in WHOLE else {"num_hidden_layers": 8}
    assert compared(kind, tmp_path, **short) == "agrees"


@pytest.mark.slow
def test_every_type_of_the_library_agrees_or_has_no_number(tmp_path):
    found = {}
    for kind in TYPES:
        if kind == "gemma4_assistant":  # the library refuses its own default
            continue
        found[kind] = compared(kind, tmp_path)
    assert {k: v for k, v in found.items() if isinstance(v, list)} == {}
    counts = [list(found.values()).count(v) for v in ("agrees", "no number", "not run")]
    assert counts[0] >= 210 and sum(counts) == len(found) == len(TYPES) - 1, counts


CAPPED = {
    "gemma2": {"attn_logit_softcapping": 3.0},
    "vaultgemma": {"attn_logit_softcapping": 3.0},
    "gemma3_text": {},
    "llama4_text": {"attn_scale": 0.2, "floor_scale": 8},
    "ministral3": {"rope_parameters": {"original_max_position_embeddings": 8}},
    "mistral4": {
        "rope_parameters": {"original_max_position_embeddings": 8, "partial_rotary_factor": 1.0},
        "qk_rope_head_dim": 8,
    },
    "inkling_text": {"log_scaling_n_floor": 8},
}


@pytest.mark.parametrize("kind", CAPPED)
def test_caps_and_factors_of_logits_are_those_that_the_attention_is_given(kind, tmp_path):
    """In a row of one token, queries differ in their rotation and their factor alone."""
    config = CONFIG_MAPPING[kind](**SMALL | OWN.get(kind, {}))
    for key, value in CAPPED[kind].items():
        table = isinstance(value, dict)
        setattr(config, key, {**getattr(config, key), **value} if table else value)
    model, _ = described(tmp_path / kind, json.loads(json.dumps(config.to_dict(), default=str)))
    seen = {}

    def watch(module, query, key, value, mask, **more):
        seen[module.layer_idx] = query[0].norm(dim=-1), more.get("softcap")
        groups = query.shape[1] // key.shape[1]
        return value.repeat_interleave(groups, 1).transpose(1, 2), None

    transformers.AttentionInterface.register("watch", watch)
    network = built(config, "cpu")
    network.set_attn_implementation("watch")
    with torch.no_grad():
        network(torch.full((1, LENGTH), 5), use_cache=False)
    names = {"floor": math.floor, "log": math.log, "max": max}
    assert len(seen) == len(model.layers)
    for k, layer in enumerate(model.layers):
        norms, cap = seen[k]
        formula = (layer.temper or "1").replace(" log", "*log")
        factors = [eval(formula, names | {"i": i}) for i in range(1, LENGTH + 1)]
        asked = torch.tensor(factors, dtype=norms.dtype)
        torch.testing.assert_close(norms / norms[:, :1], asked.expand_as(norms))
        assert cap == layer.cap
    changed = any(layer.temper or layer.cap for layer in model.layers)
    assert changed == (kind != "gemma3_text")


@pytest.mark.parametrize("kind", WINDOWED)
def test_the_windows_are_those_that_weights_show(kind, tmp_path):
    """Keys with attention above 0 in two rows of a tiny model, layer by layer."""
    network, config = tiny(kind)
    model, _ = described(tmp_path / kind, json.loads(json.dumps(config.to_dict(), default=str)))
    tokens = torch.randint(3, 64, (LENGTH,), generator=torch.Generator().manual_seed(1))
    for layer, weights in Opened(model, network).weights(tokens):
        own = model.layers[layer]
        for row in (LENGTH - 1, LENGTH // 2):
            seen = row % own.width + 1 if own.chunked else min(own.width or LENGTH, row + 1)
            assert (weights[:, row] > 0).sum(-1).tolist() == [seen] * own.heads
            assert (weights[:, row, row - seen + 1 : row + 1] > 0).all()
