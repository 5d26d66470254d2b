"""Descriptions from config.json alone, held against the library's own configuration classes."""

import json
import random
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import save_file

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding
from farfield.validation.checkpoints.configured import families
from farfield.validation.checkpoints.folder import describe
from farfield.validation.checkpoints.guarded import Config, tensor

TABLE = "decoder.block.{}.layer.0.SelfAttention.relative_attention_bias.weight"
OLD = {  # files as older versions of the library wrote them
    "bloom": {"n_embed": 128, "num_attention_heads": 4, "num_hidden_layers": 3, "seq_length": 512},
    "mpt": {"hidden_size": 64, "num_attention_heads": 2},
    "falcon": {"n_embed": 64, "num_attention_heads": 4, "alibi": True},
    "gpt_neox": {"rotary_pct": 0.5, "rotary_emb_base": 25_000, "hidden_size": 1024},
    "llama": {"rope_scaling": {"type": "linear", "factor": 2.0}, "rope_theta": 500_000.0},
}
CASES = [
    *((kind, {}) for kind in ("bloom", "mpt", "falcon", "gpt_neox", "llama")),
    *OLD.items(),
    ("bloom", {"hidden_size": 96, "n_layer": 3, "n_head": 12, "vocab_size": 100}),
    ("mpt", {"d_model": 48, "n_layers": 2, "n_heads": 6, "attn_config": {"alibi_bias_max": 16}}),
    ("falcon", {"hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2}),
    ("gpt_neox", {"rope_parameters": {"rope_theta": 9.0, "partial_rotary_factor": 0.5}}),
    ("llama", {"head_dim": 16, "num_attention_heads": 8, "num_key_value_heads": 2}),
    ("llama", {"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e6}}),
]


def written(folder, kind, values):
    (folder / "config.json").write_text(json.dumps({"model_type": kind, **values}))
    return folder


@pytest.mark.parametrize(("kind", "values"), CASES, ids=str)
def test_a_description_is_that_of_the_library(kind, values, tmp_path):
    import transformers

    theirs = transformers.CONFIG_MAPPING[kind].from_dict({"model_type": kind, **values})
    found = describe(written(tmp_path, kind, values))
    size = getattr(theirs, "head_dim", None) or theirs.hidden_size // theirs.num_attention_heads
    assert (
        found.shape.layers,
        found.shape.heads,
        found.shape.head_size,
        found.shape.width,
        found.shape.vocabulary,
    ) == (
        theirs.num_hidden_layers,
        theirs.num_attention_heads,
        size,
        theirs.hidden_size,
        theirs.vocab_size,
    )
    assert len(found.attention) == found.shape.layers
    trained = {"bloom": values.get("seq_length"), "mpt": getattr(theirs, "max_seq_len", None)}
    assert found.trained == trained.get(kind, getattr(theirs, "max_position_embeddings", None))
    rotation = found.attention[0].turned
    if kind in ("gpt_neox", "llama") or (kind == "falcon" and not theirs.alibi):
        rope = theirs.rope_parameters
        turned = int(size * rope.get("partial_rotary_factor", 1.0))
        n = np.arange(50)
        angles = n[:, None] * rope["rope_theta"] ** (-2 * np.arange(turned // 2) / turned)
        surrogate = encoding("rope_surrogate", d=rotation[0], theta=rotation[1])
        np.testing.assert_allclose(surrogate.bias(n)[0], np.cos(angles).sum(1), atol=1e-9)
        rescaled = rope.get("rope_type", "default") != "default"
        assert found.note.startswith(f"{turned} of {size}")
        assert (", rescaled (" in found.note) == rescaled
    else:
        assert rotation is None and len(found.encodings) == 1


LLAMA_3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768}
PEOPLE_RUN = [
    *(
        (kind, {})
        for kind in (
            "gpt2",
            "opt",
            "gptj",
            "phi",
            "mistral",
            "qwen2",
            "qwen3",
            "gemma2",
            "gemma3_text",
            "gpt_oss",
        )
    ),
    ("mistral", {"sliding_window": None, "head_dim": 96}),
    ("qwen2", {"use_sliding_window": True, "max_window_layers": 30, "sliding_window": 512}),
    ("qwen3", {"num_hidden_layers": 3, "use_sliding_window": True, "max_window_layers": 0}),
    ("gemma2", {"num_hidden_layers": 5, "attn_logit_softcapping": None}),
    ("gemma2", {"num_hidden_layers": 3, "layer_types": ["full_attention"] * 3}),
    ("gemma3_text", {"sliding_window_pattern": 4, "sliding_window": 1024}),
    ("gemma3_text", {"rope_scaling": {"rope_type": "linear", "factor": 8.0}, "rope_theta": 1e6}),
    ("gpt2", {"n_positions": 77, "n_embd": 48, "n_head": 4}),
    ("gptj", {"rotary_dim": 32}),
    ("phi", {"partial_rotary_factor": 0.25, "qk_layernorm": True}),
    ("llama", {"rope_scaling": {"rope_type": "dynamic", "factor": 4.0}}),
    ("llama", {"rope_scaling": LLAMA_3, "rope_theta": 5e5, "max_position_embeddings": 131_072}),
    ("qwen2", {"rope_scaling": YARN, "max_position_embeddings": 131_072}),
    ("qwen2", {"rope_scaling": YARN | {"attention_factor": 1.5}}),
    ("qwen2", {"rope_scaling": YARN | {"mscale": 2.0, "mscale_all_dim": 0.5}}),
    (
        "llama",
        {
            "rope_scaling": {
                "type": "su",
                "short_factor": [1.0] * 64,
                "long_factor": [2.0] * 64,
                "original_max_position_embeddings": 2048,
            },
            "max_position_embeddings": 8192,
        },
    ),
    ("llama", {"rope_scaling": {"rope_type": "proportional", "partial_rotary_factor": 0.5}}),
]


@pytest.mark.parametrize(("kind", "values"), PEOPLE_RUN, ids=str)
def test_layers_are_those_of_the_library(kind, values, tmp_path):
    """Sizes, keys that each layer sees, caps, and what a rescaled rotation does to the logits."""
    import transformers
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    found = describe(written(tmp_path, kind, values))
    given = json.loads(json.dumps(values).replace('"su"', '"longrope"'))
    theirs = transformers.CONFIG_MAPPING[kind].from_dict({"model_type": kind, **given})
    size = getattr(theirs, "head_dim", None) or theirs.hidden_size // theirs.num_attention_heads
    assert (
        found.shape.layers,
        found.shape.heads,
        found.shape.head_size,
        found.shape.width,
        found.shape.vocabulary,
    ) == (
        theirs.num_hidden_layers,
        theirs.num_attention_heads,
        size,
        theirs.hidden_size,
        theirs.vocab_size,
    )
    assert found.trained == theirs.max_position_embeddings
    keys = getattr(theirs, "num_key_value_heads", None) or found.shape.heads
    assert found.shape.key_heads == keys
    wide = getattr(theirs, "sliding_window", None)
    usual = "sliding_attention" if kind == "mistral" and wide else "full_attention"
    kinds = getattr(theirs, "layer_types", None) or [usual] * found.shape.layers
    assert [a.window for a in found.attention] == [
        wide if name == "sliding_attention" else None for name in kinds
    ]
    cap = getattr(theirs, "attn_logit_softcapping", None)
    assert {a.cap for a in found.attention} == {cap}
    rope = getattr(theirs, "rope_parameters", None) or {}
    for name, a in zip(kinds, found.attention, strict=True):
        own = rope.get(name, rope)
        scaled = own.get("rope_type", "default")
        assert (scaled == "default") == ("rescaled" not in a.encoding.mechanism)
        if scaled != "default":
            layer = name if name in rope else None
            _, factor = ROPE_INIT_FUNCTIONS[scaled](theirs, "cpu", layer_type=layer)
            assert a.factor == pytest.approx(factor**2)
            assert f"rescaled ({scaled}:" in found.note


@pytest.mark.parametrize("kind", ["qwen2", "qwen2_moe", "qwen3", "qwen3_moe"])
def test_which_layers_slide_is_what_the_library_says(kind, tmp_path):
    """Random settings of the flag, the width and the first or last layer that slides."""
    import transformers

    draw = random.Random(kind)
    for _ in range(25):
        values = {
            "num_hidden_layers": draw.randrange(1, 12),
            "use_sliding_window": draw.random() < 0.8,
            "sliding_window": draw.randrange(1, 5000),
            "max_window_layers": draw.choice([0, 1, *range(14), 28]),
        }
        values = {k: v for k, v in values.items() if draw.random() < 0.9}
        found = describe(written(tmp_path, kind, values))
        theirs = transformers.CONFIG_MAPPING[kind].from_dict({"model_type": kind, **values})
        kinds = getattr(theirs, "layer_types", None)
        slides = [theirs.sliding_window] * found.shape.layers
        if kinds is not None:
            slides = [theirs.sliding_window if k == "sliding_attention" else None for k in kinds]
        assert [a.window for a in found.attention] == slides, values


@pytest.mark.parametrize("kind", ["t5", "mt5", "umt5"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, "bfloat16"], ids=str)
def test_a_table_is_read_without_torch_in_each_type(kind, dtype, tmp_path):
    import transformers

    values = {
        "num_decoder_layers": 2,
        "num_heads": 3,
        "relative_attention_num_buckets": 8,
        "relative_attention_max_distance": 20,
    }
    theirs = transformers.CONFIG_MAPPING[kind].from_dict({"model_type": kind, **values})
    weights = np.arange(24, dtype=np.float32).reshape(8, 3) / 8  # exact in every type
    stored = {TABLE.format(layer): weights + layer for layer in range(2)}
    if dtype == "bfloat16":
        import torch
        from safetensors.torch import save_file as save_tensors

        save_tensors(
            {k: torch.from_numpy(v).bfloat16() for k, v in stored.items()},
            tmp_path / "model.safetensors",
        )
    else:
        save_file({k: v.astype(dtype) for k, v in stored.items()}, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(tensor(tmp_path, TABLE.format(1)), stored[TABLE.format(1)])
    found = describe(written(tmp_path, kind, values))
    assert (
        found.shape.layers,
        found.shape.heads,
        found.shape.head_size,
        found.shape.vocabulary,
    ) == (
        2,
        3,
        theirs.d_kv,
        theirs.vocab_size,
    )
    assert len(found.encodings) == (2 if kind == "umt5" else 1)
    np.testing.assert_array_equal(found.attention[0].encoding.bias([0])[:, 0], weights[0])
    with pytest.raises(InputError, match="lacks the tensor 'no'"):
        tensor(tmp_path, "no")


WRONG = {
    "heads": ("bloom", {"n_head": 7}, "n_head 7, which does not divide hidden_size 64"),
    "contradiction": ("bloom", {"n_head": 4, "num_attention_heads": 8}, "contradict each other"),
    "no number": ("llama", {"num_hidden_layers": "many"}, "num_hidden_layers 'many'; accepted"),
    "no flag": ("falcon", {"alibi": 1}, "alibi 1; accepted: true or false"),
    "no table": ("mpt", {"attn_config": [1]}, "accepted: a table"),
    "share": ("gpt_neox", {"rotary_pct": 1.5}, "partial_rotary_factor 1.5 of 96 dimensions"),
    "base": ("llama", {"rope_theta": -1.0}, "rope_theta -1.0; accepted: a positive number"),
    "mpt": ("mpt", {"attn_config": {"alibi": False}}, "alibi False; accepted: alibi True"),
    "buckets": ("t5", {}, "has no weights"),
    "scaling": ("llama", {"rope_scaling": {"type": "magic"}}, "rope_type 'magic'; accepted: def"),
    "no factor": ("llama", {"rope_scaling": {"type": "linear"}}, "'linear' without factor"),
    "factors": (
        "llama",
        {"rope_scaling": {"type": "longrope", "short_factor": [1], "long_factor": [1]}},
        "short_factor .1.; accepted: 64 numbers",
    ),
    "two bases": (
        "llama",
        {"rope_theta": 5.0, "rope_parameters": {"rope_theta": 6.0}},
        "rope_theta 5 and 6",
    ),
    "keys": (
        "mistral",
        {"num_key_value_heads": 5},
        "num_attention_heads 32 and num_key_value_heads 5",
    ),
    "kinds": ("gemma2", {"layer_types": ["chunked"] * 26}, "layer_types with 'chunked'"),
    "too few": ("gpt_oss", {"layer_types": ["full_attention"]}, "accepted: 36 of"),
    "no width": ("gemma2", {"sliding_window": None}, "'sliding_attention' and no sliding_window"),
    "width": ("mistral", {"sliding_window": 0}, "sliding_window 0; accepted"),
    "both ways": ("gemma2", {"use_bidirectional_attention": True}, "a causal language model"),
    "angles": ("gptj", {"rotary_dim": 33}, "rotary_dim 33 of 256"),
    "crossed": ("gpt2", {"add_cross_attention": True}, "a causal language model"),
}


@pytest.mark.parametrize("how", WRONG)
def test_one_line_for_a_bad_configuration(how, tmp_path):
    kind, values, message = WRONG[how]
    with pytest.raises(InputError, match=message) as caught:
        describe(written(tmp_path, kind, values))
    assert "\n" not in str(caught.value)


def test_reading_a_configuration_needs_neither_torch_nor_the_library(tmp_path):
    """And an audit of it neither, nor anything else that is slow to load."""
    written(tmp_path, "bloom", {"n_layer": 4})
    script = (
        "import sys\n"
        "heavy = ('torch', 'transformers', 'safetensors', 'matplotlib', 'scipy')\n"
        "from farfield.validation.checkpoints.audit import audit\n"
        f"print(audit({str(tmp_path)!r}).sliding_window, {{*heavy}} & {{*sys.modules}})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["2458", "set()"], done.stderr


def test_what_is_not_said_is_as_usual():
    empty = Config("x", {})
    assert empty.value("a", usual=3) == 3 and empty.part("a").values == {}
    assert families()["llama4"]["turned"] == families()["llama4_text"]["turned"]
