"""What a folder says: published configurations, beside arithmetic; and what is refused, and how."""

import functools
import importlib
import json
import multiprocessing
import sys

import numpy as np
import pytest
import torch
from transformers import T5Config, T5ForConditionalGeneration

from farfield.theory.answers.answer import Label, Status
from farfield.validation.models.audit import audit
from farfield.validation.models.folder import describe, place_of

YARN = {
    "type": "yarn",
    "beta_fast": 32,
    "beta_slow": 1,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "original_max_position_embeddings": 4096,
}
LATENT = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
LATENT |= {"hidden_size": 7168, "num_hidden_layers": 61, "q_lora_rank": 1536}
FOLDERS = {
    "kimi_k2": LATENT
    | {
        "model_type": "kimi_k2",
        "architectures": ["DeepseekV3ForCausalLM"],
        "auto_map": {"AutoConfig": "configuration_deepseek.DeepseekV3Config"},
        "num_attention_heads": 64,
        "max_position_embeddings": 131072,
        "rope_theta": 50000.0,
        "rope_scaling": YARN | {"factor": 32.0},
    },
    "ds_v32": LATENT
    | {
        "model_type": "deepseek_v32",
        "num_attention_heads": 128,
        "index_topk": 2048,
        "index_head_dim": 128,
        "index_n_heads": 64,
        "max_position_embeddings": 163840,
        "rope_scaling": YARN | {"factor": 40},
    },
    "bamba9b": {
        "model_type": "bamba",
        "attn_layer_indices": [9, 18, 27],
        "mamba_d_state": 128,
        "max_position_embeddings": 262144,
    },
    "lfm2": {
        "model_type": "lfm2",
        "hidden_size": 2048,
        "num_hidden_layers": 16,
        "full_attn_idxs": [2, 5, 8, 10, 12, 14],
        "max_position_embeddings": 128000,
    },
    "gemma4": {
        "model_type": "gemma4_text",
        "hidden_size": 3840,
        "num_hidden_layers": 48,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 256,
        "global_head_dim": 512,
        "num_global_key_value_heads": 1,
        "attention_k_eq_v": True,
        "sliding_window": 1024,
        "max_position_embeddings": 65536,
    },
    "aya8b": {
        "model_type": "aya_vision",
        "text_config": {
            "model_type": "cohere2",
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "sliding_window": 4096,
            "sliding_window_pattern": 4,
            "max_position_embeddings": 131072,
        },
    },
    "gemma3": {
        "model_type": "gemma3",
        "text_config": {
            "model_type": "gemma3_text",
            "hidden_size": 2560,
            "num_hidden_layers": 34,
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "sliding_window": 1024,
        },
    },
    "llama4": {"model_type": "llama4_text", "attn_temperature_tuning": 4, "no_rope_layers": []},
    "olmo": {"model_type": "olmo", "clip_qkv": 8},
    "mistral": {"model_type": "mistral", "sliding_window": 4096, "num_key_value_heads": 8},
}
GIB = {  # at the training length, in 16 bits
    "kimi_k2": 576 * 2 * 61 * 131072,
    "ds_v32": 576 * 2 * 61 * 163840,
    "bamba9b": 3 * 2 * 8 * 128 * 2 * 262144,
    "lfm2": 6 * 2 * 8 * 64 * 2 * 128000,
    "gemma4": 40 * 2 * 8 * 256 * 2 * 1024 + 8 * 2 * 512 * 2 * 65536,
    "aya8b": 24 * 2 * 8 * 128 * 2 * 4096 + 8 * 2 * 8 * 128 * 2 * 131072,
    "gemma3": (29 * 1024 + 5 * 131072) * 2 * 4 * 256 * 2,
    "glm_lite": 576 * 2 * 47 * 202752,
    "llama4": (36 * 8192 + 12 * 131072) * 2 * 8 * 128 * 2,
}
PRINTED = {"kimi_k2": "8.58 GiB", "ds_v32": "10.7 GiB", "bamba9b": "3.00 GiB", "gemma4": "1.31 GiB"}
PRINTED |= {"aya8b": "4.38 GiB", "lfm2": "1.46 GiB"}


def folder(place, values):
    place.mkdir(parents=True, exist_ok=True)
    (place / "config.json").write_text(json.dumps(values))
    return place


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What a published folder says, observed once for all tests."""
    root = tmp_path_factory.mktemp("published")
    return functools.cache(lambda name: describe(folder(root / name, FOLDERS[name])))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", GIB)
def test_the_cache_of_published_models_is_that_of_arithmetic(name, seen):
    found = audit(seen(name))
    assert found.caches[0].least == GIB[name] and found.label is Label.THEOREM
    assert PRINTED.get(name, "GiB") in str(found)


def test_what_is_not_known_has_no_number_and_a_reason(tmp_path):
    for values, why in (
        ({"model_type": "my_own", "hidden_size": 64}, "is no type of the library"),
        ({"model_type": "fnet"}, "call no attention of the library"),
        ({"model_type": "deepseek_v4", "num_hidden_layers": 4}, "is not known here"),
        ({"model_type": "llama", "num_key_value_heads": 4, "num_attention_heads": 2}, "4 heads of"),
    ):
        found = audit(folder(tmp_path / values["model_type"], values))
        assert found.status is Status.UNKNOWN and why in str(found).replace("\n", " ")
        assert found.sliding_window is None and found.caches == () and found.label is None
        assert (found.encoding, found.head_count) == ("no attention", 0)


def test_factors_of_logits_and_sparse_picks_are_said(tmp_path, seen):
    scale = audit(seen("kimi_k2")).kinds[0].layer.scale
    assert scale == pytest.approx((0.1 * np.log(32) + 1) ** 2)
    assert "logits times 1.813" in str(audit(seen("kimi_k2"))).replace("\n", " ")
    values = {"model_type": "doge", "keep_window_size": 512}
    found = audit(folder(tmp_path / "doge", values))
    assert found.kinds[0].layer.picks == 512 and "picks 512 keys" in str(found)
    kinds = ["full_attention", "minimax_m3_sparse", "minimax_m3_sparse"]
    values = {"model_type": "minimax_m3_vl_text", "num_hidden_layers": 3, "layer_types": kinds}
    values |= {"mlp_layer_types": ["dense"] * 3, "index_topk_blocks": 16, "index_block_size": 64}
    whole, sparse = audit(folder(tmp_path / "m3", values)).kinds
    assert (whole.layer.picks, whole.layer.indexed) == (None, 0)
    assert (sparse.layer.picks, sparse.layer.indexed) == (16 * 64, 128)


BAD = {
    "newer": (
        {"model_type": "llama", "transformers_version": "6.0.1"},
        "written by .* 6.0.1, and 5",
    ),
    "zero": ({"model_type": "mistral", "sliding_window": 0}, "sliding_window 0; accepted"),
    "kinds": (
        {"model_type": "gemma3_text", "layer_types": ["full_attention"]},
        "layer_types .* refuses .*; accepted",
    ),
    "ntk": ({"model_type": "llama", "rope_scaling": {"rope_type": "ntk"}}, "rope_type 'ntk'"),
    "unlike": (
        {"model_type": "llama", "rope_theta": 1e4, "rope_parameters": {"rope_theta": 5e5}},
        "rope_theta 500000.0 in rope_parameters and 10000.0 beside it",
    ),
    "word": ({"model_type": "llama", "num_attention_heads": "x"}, "num_attention_heads 'x', which"),
    "texts": ({"model_type": "llama", "text_config": "x"}, "text_config 'x'; accepted: a table"),
    "classes": ({"model_type": "xyz", "architectures": 5}, "architectures 5; accepted: a list"),
    "typeless": ({"hidden_size": 4}, "names no model_type"),
    "split": ({"model_type": "mistral"}, "tensor-parallel 5 with 32 heads"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_configuration_is_refused_in_one_line(refusal, name, tmp_path):
    values, message = BAD[name]
    assert "accepted" in refusal(
        message, audit, folder(tmp_path / name, values), tensor_parallel=5 if name == "split" else 1
    )


def test_what_is_no_folder_of_a_model_is_named(refusal, tmp_path):
    for name, text in (("adapter_config.json", "{}"), ("params.json", "{}"), ("m.gguf", "x")):
        (tmp_path / name[:3]).mkdir()
        (tmp_path / name[:3] / name).write_text(text)
    snapshot = tmp_path / "hub" / "snapshots" / "abc"
    folder(snapshot, FOLDERS["mistral"])
    file = folder(tmp_path / "plain", FOLDERS["mistral"]) / "config.json"
    (tmp_path / "empty").mkdir()
    for place, message in (
        (tmp_path / "ada", "adapter without its model"),
        (tmp_path / "par", "layout of another library"),
        (tmp_path / "m.g", "holds a GGUF file; accepted: its path"),
        (tmp_path / "hub", f"accepted: '{snapshot}'"),
        (tmp_path / "empty", "has no config.json"),
        (tmp_path / "gone", "does not exist; accepted"),
        (tmp_path / "plian", f"does not exist; did you mean '{tmp_path / 'plain'}'.*accepted"),
        (file.with_name("config.jsn"), f"does not exist; did you mean '{file}'.*accepted"),
        ("~no such user/x", "does not exist; accepted"),
        ("-n/8", "does not exist; accepted"),
    ):
        refusal(message.replace("\\", "."), describe, place)
    assert describe(file).layers
    for text in ("{", "[1]", "\xff" * 9, '{"a":' * 2000):
        (tmp_path / "empty" / "config.json").write_bytes(text.encode("latin-1"))
        refusal("accepted: a table in JSON", describe, tmp_path / "empty")


def test_an_audit_imports_what_it_uses(tmp_path):
    """In a process that knows the library, and nothing of ours."""

    def alone(place, told):
        for name in [name for name in sys.modules if name.startswith("farfield")]:
            del sys.modules[name]
        found = importlib.import_module("farfield.validation.models.audit").audit(place)
        told.send((str(found), [name for name in sys.modules if name.startswith("farfield")]))

    told, tell = multiprocessing.Pipe(duplex=False)
    place = folder(tmp_path, FOLDERS["olmo"] | {"num_hidden_layers": 2})
    multiprocessing.get_context("fork").Process(target=alone, args=(place, tell)).start()
    assert told.poll(60)
    text, names = told.recv()
    assert "every layer keeps every key" in text.replace("\n", " ")
    assert not [n for n in names if "waves" in n or "numerics" in n or "transseries" in n]
    assert len(names) <= 60


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_table_of_t5_is_the_one_that_the_library_adds(refusal, dtype, tmp_path):
    sizes = {"d_model": 16, "d_kv": 4, "d_ff": 16, "num_heads": 2, "num_layers": 2}
    buckets = {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 20}
    model = T5ForConditionalGeneration(T5Config(vocab_size=32, **sizes, **buckets)).to(dtype)
    model.save_pretrained(tmp_path)
    attention = model.decoder.block[0].layer[0].SelfAttention
    with torch.no_grad():
        added = attention.compute_bias(30, 30)[0, :, -1].flip(-1).double()
    for layer in describe(tmp_path).layers:
        assert np.array_equal(layer.encoding.bias(np.arange(30)), added)
    attention.relative_attention_bias.weight.data[1, 1] = np.nan
    model.save_pretrained(tmp_path)
    refusal("has NaN or infinity in 'decoder", describe, tmp_path)


@pytest.mark.parametrize("name", ["a" * 5000, "models/" + "é" * 200])
def test_a_name_that_no_file_can_have_is_refused(refusal, name):
    told = "is too long for a name of a file"
    assert len(refusal(told, lambda: describe(place_of(name, "runs")))) < 400
