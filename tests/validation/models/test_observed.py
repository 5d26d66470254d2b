"""Every type of the library: what is observed without weights, beside what random weights do.

Values are drawn at random, so that a key that is read wrongly shows. The whole list takes an hour;
a sample of it always runs.
"""

import functools
import math
import sys
from pathlib import Path

import pytest
import torch
import transformers
from transformers import CONFIG_MAPPING

from farfield.theory.answers.answer import InputError
from farfield.validation.models.configuration import described

sys.path.insert(0, str(Path(__file__).parent))
from weighed import LENGTH, OWN, SMALL, TYPES, as_file, drawn, weighed

SAMPLE = (
    "afmoe",
    "apertus",
    "bert",
    "bloom",
    "cohere2",
    "deepseek_v32",
    "doge",
    "exaone4",
    "falcon",
    "falcon_h1",
    "gemma2",
    "gemma3_text",
    "gemma3n_text",
    "glm4_moe",
    "gpt2",
    "gpt_neo",
    "gpt_oss",
    "granite",
    "jamba",
    "lfm2",
    "llama",
    "llama4_text",
    "mamba2",
    "mimo_v2_flash",
    "mistral",
    "modernbert",
    "nemotron_h",
    "olmo2",
    "qwen2_moe",
    "qwen3_moe",
    "qwen3_next",
    "smollm3",
)
"""Types of every kind of attention, mask, rotation and cache."""

RAN = {"not run", "not built"}


def window(layer, row):
    """The keys that a query of a row of 40 tokens sees, as is said of its layer."""
    width = layer.width or 2 * LENGTH
    if layer.chunked:
        return list(range(row - row % width, row + 1))
    if layer.both_sides:
        half = width // 2
        return list(range(max(0, row - half), min(LENGTH, row + half + 1)))
    return list(range(max(0, row - width + 1), row + 1))


def wrong(model, found):
    """Disagreements between what is said and what weights do, each in words."""
    layers = model.layers
    for at, rows in found["seen"].items():
        layer = layers[at]
        for row, keys in zip((LENGTH - 1, LENGTH // 2), rows, strict=True):
            said = window(layer, row)
            if layer.picks is not None and layer.picks < len(said):
                if len(keys) > len(said):
                    yield f"layer {at} sees {len(keys)} keys, {layer.picks} are said"
            elif layer.observed and keys != said:
                yield f"layer {at} sees {keys} in row {row}, {said} are said"
        if layer.temper or any(below.state or not below.attends for below in layers[:at]):
            continue  # states make the same token another one further on, factors all entries
        surely, perhaps = found["turned"].get(at, (0, 0))
        size = layer.rotation.size if layer.rotation else 0
        known = layer.positions == "none" or layer.rotation is not None
        if known and not surely <= size <= perhaps + (size == 0) * LENGTH:
            yield f"layer {at} turns {surely} to {perhaps} entries, {size} are said"
    if (found["kept"] is None) == model.cached:
        yield f"cache {model.cached} is said"
    for at, ((before, state), (after, _)) in enumerate(found["kept"] or ()):
        layer, token = layers[at], layers[at].cached + layers[at].indexed
        most = (layer.width or 99) if layer.keeps is None else layer.keeps
        if token and (before, after) != tuple(
            layer.indexed * n + layer.cached * min(n, most - 1 if most < n else n)
            for n in (LENGTH, LENGTH + 1)
        ):
            yield f"layer {at} keeps {before}, then {after} numbers; {token} a token are said"
        if state != layer.state:
            yield f"layer {at} keeps {state} numbers of states, {layer.state} are said"


def compared(kind, draw, place):
    """`agrees`, why there is no number, `not run`, or the disagreements, of the values drawn."""
    try:
        config = CONFIG_MAPPING[kind](**draw(kind))
    except Exception:  # the library refuses some of its own defaults
        return "not built"
    found = weighed(config)
    if found is None:
        return "not run"
    try:
        model, _ = described(place / kind, as_file(config))
    except InputError as error:
        return f"refused: {error}"
    return f"no number: {model.unknown}" if model.unknown else list(wrong(model, found)) or "agrees"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", SAMPLE)
def test_a_sample_of_the_types_is_as_weights_have_it(kind, tmp_path):
    assert str(compared(kind, functools.partial(drawn, seed=1), tmp_path)) in ("agrees", *RAN)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
def test_no_drawn_configuration_is_wrong(kind, tmp_path):
    found = [compared(kind, functools.partial(drawn, seed=k), tmp_path) for k in range(1, 21)]
    assert not [each for each in found if isinstance(each, list)], found


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
    "mistral": {
        "rope_parameters": {"original_max_position_embeddings": 8, "llama_4_scaling_beta": 0.3}
    },
}


@pytest.mark.parametrize("kind", CAPPED)
def test_caps_and_factors_of_logits_are_those_that_the_attention_is_given(kind, tmp_path):
    """In a row of one token, queries differ in their rotation and their factor alone."""
    config = CONFIG_MAPPING[kind](**SMALL | OWN.get(kind, {}))
    for key, value in CAPPED[kind].items():
        table = isinstance(value, dict)
        setattr(config, key, {**getattr(config, key), **value} if table else value)
    model, _ = described(tmp_path / kind, as_file(config))
    seen = {}

    def watch(module, query, key, value, attention_mask, **more):
        seen[module.layer_idx] = query[0].norm(dim=-1), more.get("softcap")
        groups = query.shape[1] // key.shape[1]
        return value.repeat_interleave(groups, 1).transpose(1, 2), None

    transformers.AttentionInterface.register("watch", watch)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        network = transformers.AutoModel.from_config(config, attn_implementation="watch")
        network.float().eval()(torch.full((1, LENGTH), 5), use_cache=False)
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
    assert changed == (kind not in ("gemma3_text", "mistral"))
