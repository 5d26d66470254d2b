"""Headers of GGUF files: every layer that llama.cpp makes of one, written down by hand."""

import math
from dataclasses import replace

import gguf
import pytest

from farfield.theory.answers.answer import InputError
from farfield.validation.models.audit import audit
from farfield.validation.models.gguf_files import (
    HEADS,
    LAYERS,
    NUMBER,
    describe_gguf,
    described_gguf,
    facts,
)
from farfield.validation.models.outline import LayerOutline, Rotary

FAR = LayerOutline(
    heads=8,
    key_heads=2,
    head_size=16,
    cached=2 * (16 + 24),
    positions="rotation",
    rotation=Rotary(16, 1e4),
    observed=False,
)
STILL, BIAS = (replace(FAR, positions=name, rotation=None) for name in ("none", "bias"))
TABLE, BOTH = replace(STILL, positions="absolute"), replace(FAR, both_sides=True, cached=0)
NOTHING = LayerOutline(attends=False)


def near(width, layer=FAR, **more):
    return replace(layer, width=width, **more)


def states(numbers, layer=NOTHING):
    return replace(layer, state=numbers)


SSM = {"ssm__conv_kernel": 4, "ssm__inner_size": 64, "ssm__state_size": 8, "ssm__group_count": 2}
SIZE = 3 * (64 + 2 * 2 * 8) + 64 * 8
WINDOW, SOME = {"attention__sliding_window": 100}, {"attention__head_count_kv": [2, 0, 0, 2]}
LINEAR = {"rope__scaling__factor": 8.0, "rope__scaling__type": "linear", "rope__freq_base": 1e6}
LATENT = {"attention__key_length": 576, "attention__value_length": 512}
LATENT |= {"attention__head_count_kv": 1}
STRETCHED = replace(FAR, rotation=Rotary(16, 1e6, "linear", note="factor 8"))
SMALL = {"attention__key_length_swa": 8, "attention__value_length_swa": 4}
WIDE = {"attention__key_length": 32, "rope__dimension_count": 16}
APART = replace(FAR, head_size=32, cached=2 * (32 + 24))
GREW = {"attention__temperature_scale": 0.1}
PERIODS = "attention__sliding_window_pattern"
MADE = [
    ("llama", {}, [FAR] * 4),
    (
        "llama",
        {"attention__key_length": None, "attention__value_length": None},
        [replace(FAR, cached=2 * (16 + 16))] * 4,
    ),
    ("llama", WINDOW, [FAR] * 4),
    ("llama", SOME, [FAR, NOTHING, NOTHING, FAR]),
    ("llama", {"attention__head_count": None, "attention__head_count_kv": None}, [NOTHING] * 4),
    (
        "llama",
        {"attention__head_count": [8, 6, 8, 8], "attention__head_count_kv": None},
        [replace(FAR, heads=h, key_heads=h, cached=h * 40) for h in (8, 6, 8, 8)],
    ),
    ("llama", {"rope__dimension_count": 8}, [replace(FAR, rotation=Rotary(8, 1e4))] * 4),
    ("llama", {"rope__dimension_count": 99}, [FAR] * 4),
    ("llama", LINEAR, [STRETCHED] * 4),
    ("llama", {"attention__scale": 0.5}, [replace(FAR, scale=0.5 * 4)] * 4),
    ("llama", {"attn_logit_softcapping": 7.0}, [replace(FAR, cap=7.0)] * 4),
    ("llama", {"attention__key_length_mla": 5} | SMALL, [FAR] * 4),
    ("cohere2", WINDOW, [near(100)] * 3 + [STILL]),
    ("cohere2", WINDOW | {PERIODS: 2}, [near(100), STILL] * 2),
    ("cohere2", WINDOW | {PERIODS: 1}, [FAR] * 4),
    ("cohere2", WINDOW | {PERIODS: [1, 0, 0, 1]}, [near(100), STILL, STILL, near(100)]),
    ("exaone4", {"block_count": 64}, ([near(4096)] * 3 + [STILL]) * 16),
    ("exaone4", WINDOW, [FAR] * 4),
    ("gemma2", {}, [near(4096, cap=50.0), replace(FAR, cap=50.0)] * 2),
    ("gemma2", WINDOW | {"attn_logit_softcapping": 0.0}, [near(100), FAR] * 2),
    (
        "gemma2",
        WIDE | {"block_count": 46},
        [
            near(4096, APART, cap=50.0, scale=math.sqrt(32 / 16)),
            replace(APART, cap=50.0, scale=math.sqrt(32 / 16)),
        ]
        * 23,
    ),
    ("gemma3", WINDOW | LINEAR | {"block_count": 7}, [near(100)] * 5 + [STRETCHED, near(100)]),
    (
        "gemma3",
        WINDOW | LINEAR | {"rope__freq_base_swa": 5e3, PERIODS: 2},
        [near(100, rotation=Rotary(16, 5e3)), STRETCHED] * 2,
    ),
    (
        "gemma3",
        WINDOW | SMALL | {PERIODS: 2},
        [near(100, head_size=8, cached=2 * (8 + 4), rotation=Rotary(8, 1e4)), FAR] * 2,
    ),
    (
        "gemma3n",
        WINDOW | {"block_count": 22},
        (lambda o: [*[near(100, o)] * 4, o] * 4 + [near(100, o, cached=0, shares=True)] * 2)(
            replace(FAR, scale=4.0)
        ),
    ),
    (
        "gemma3n",
        WINDOW | {"attention__shared_kv_layers": 1},
        [near(100, scale=4.0)] * 3 + [near(100, scale=4.0, cached=0, shares=True)],
    ),
    ("gpt-oss", WINDOW, [near(100, sink=True), replace(FAR, sink=True)] * 2),
    (
        "gpt-oss",
        WINDOW | LINEAR,
        [near(100, STRETCHED, sink=True), replace(STRETCHED, sink=True)] * 2,
    ),
    ("olmo2", {}, [FAR] * 4),
    ("olmo2", WINDOW, [near(100)] * 3 + [FAR]),
    ("llama4", {}, [near(8192, chunked=True)] * 3 + [STILL]),
    ("llama4", WINDOW, [near(8192, chunked=True)] * 3 + [STILL]),
    ("smallthinker", {}, [FAR] * 4),
    ("smallthinker", WINDOW, [STILL] + [near(4096)] * 3),
    ("smollm3", {"block_count": 5}, [FAR] * 3 + [STILL, FAR]),
    ("phi3", WINDOW, [FAR] * 4),
    ("grok", {}, [replace(FAR, cap=30.0)] * 4),
    ("glm4moe", {"nextn_predict_layers": 1}, [FAR] * 3),
    (
        "deepseek2",
        LATENT | {"attention__key_length_mla": 192},
        [replace(FAR, key_heads=1, head_size=192, cached=576, rotation=Rotary(576, 1e4))] * 4,
    ),
    (
        "deepseek2",
        LATENT,
        [replace(FAR, key_heads=1, head_size=576, cached=576 + 512, rotation=Rotary(576, 1e4))] * 4,
    ),
    ("bloom", {}, [BIAS] * 4),
    ("baichuan", {}, [FAR] * 4),
    ("baichuan", {"block_count": 40}, [BIAS] * 40),
    ("mpt", {"attention__max_alibi_bias": 6.0}, [BIAS] * 4),
    ("gpt2", {}, [TABLE] * 4),
    ("granite", {"rope__scaling__finetuned": False}, [STILL] * 4),
    ("granite", {"rope__scaling__finetuned": True}, [FAR] * 4),
    ("llama", {"rope__scaling__finetuned": False}, [FAR] * 4),
    ("granitehybrid", SOME | SSM, [FAR, states(SIZE), states(SIZE), FAR]),
    ("lfm2", SOME | {"shortconv__l_cache": 3}, [FAR, states(256), states(256), FAR]),
    (
        "nemotron_h",
        SSM | {"attention__head_count_kv": [0, 0, 2, 0]} | {"feed_forward_length": [0, 5, 0, 0]},
        [states(SIZE), NOTHING, STILL, states(SIZE)],
    ),
    ("falcon-h1", SSM, [states(SIZE, FAR)] * 4),
    ("falcon-h1", SSM | {"ssm__conv_kernel": 0}, [states(64 * 8, FAR)] * 4),
    ("qwen3next", SSM | {"block_count": 5}, [states(SIZE)] * 3 + [FAR, states(SIZE)]),
    ("mamba", SSM, [states(SIZE)] * 4),
    ("deci", SOME, [FAR, NOTHING, NOTHING, FAR]),
    ("bert", {}, [replace(BOTH, positions="absolute", rotation=None)] * 4),
    ("gemma-embedding", WINDOW | {"block_count": 6}, [near(101, BOTH)] * 5 + [BOTH]),
    ("jina-bert-v2", {}, [replace(BOTH, positions="bias", rotation=None)] * 4),
]
USUAL = {"block_count": 4, "context_length": 32768, "embedding_length": 128, "vocab_size": 99}
USUAL |= {"attention__head_count": 8, "attention__head_count_kv": 2}
USUAL |= {"attention__key_length": 16, "attention__value_length": 24}


def described(tmp_path, kind, values):
    """Values of None are not in the header, and dots of names are double underscores here."""
    named = {k.replace("__", "."): v for k, v in (USUAL | values).items() if v is not None}
    own = {f"{kind}.{key}": value for key, value in named.items()}
    return described_gguf(tmp_path / "x.gguf", {"general.architecture": kind} | own)


@pytest.mark.parametrize(("kind", "values", "layers"), MADE)
def test_the_layers_of_a_header(kind, values, layers, tmp_path):
    found = described(tmp_path, kind, values)
    assert found.layers == tuple(layers) and found.cached == (not layers[0].both_sides)
    assert found.longest == (32768 if layers[0].positions == "absolute" else None)
    assert (found.width, found.vocabulary, found.trained) == (128, 99, 32768)
    assert (found.kind, found.trained_from, found.unknown) == (kind, "by the header", "")


NOTES = [
    ("llama", {}, []),
    ("llama", WINDOW, ["llama.cpp leaves the window of the header out, and keeps every key"]),
    ("cohere2", WINDOW, []),
    ("bloom", {}, ["ALiBi with exponents up to 8"]),
    ("mpt", {"attention__max_alibi_bias": 6.0}, ["ALiBi with exponents up to 6"]),
    ("llama", GREW, ["logits grow with the row, temperature scale 0.1"]),
    ("gemma3n", WINDOW, ["logits are 4 times q.k / sqrt(head size)"]),
]


@pytest.mark.parametrize(("kind", "values", "notes"), NOTES)
def test_the_notes_of_a_header(kind, values, notes, tmp_path):
    assert described(tmp_path, kind, values).notes == ("the header of a GGUF file", *notes)


def test_what_a_header_lacks(tmp_path):
    for kind in ("gemma3", "gpt-oss", "cohere2", "gemma3n", "gemma-embedding"):
        found = described(tmp_path, kind, {})
        assert (found.unknown, found.layers) == ("its header lacks attention.sliding_window", ())
    assert "architecture 'qwen9' is not known" in described(tmp_path, "qwen9", {}).unknown
    assert len(facts()) > 80 and facts()["llama"] == {}
    bare = described(tmp_path, "llama", {"context_length": None, "vocab_size": None})
    assert (bare.trained, bare.vocabulary, bare.longest) == (None, 0, None)


def test_the_tokens_of_a_header_are_told_by_their_number_and_other_lists_are_not(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "llama")
    writer.add_block_count(2)
    writer.add_token_list(["a", "b", "c"])
    writer.add_token_scores([0.5, 0.25, 0.25])
    writer.add_bos_token_id(7)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    found = describe_gguf(tmp_path / "x.gguf")
    own = {k.rpartition(".")[2]: v for k, v in found.values.items() if k.startswith("tokenizer.")}
    assert own == {"tokens": 3, "bos_token_id": 7} and found.vocabulary == 3


MOST = [
    ("block_count", LAYERS, 1),
    ("attention__head_count", HEADS, 0),
    ("attention__key_length", NUMBER, 0),
    ("embedding_length", NUMBER, 0),
    ("attention__sliding_window_pattern", LAYERS, 1),
    ("attn_logit_softcapping", 1e300, 0.0),
]


@pytest.mark.parametrize(("key", "most", "least"), MOST)
def test_numbers_of_a_header_are_bounded(key, most, least, refusal, tmp_path):
    for value in (most, least):
        assert described(tmp_path, "cohere2", WINDOW | {key: value}).layers
    for value in (most + 1 if most < 1e300 else math.inf, least - 1, "x"):
        told = rf"the header has {key.replace('__', '.')} .*; accepted"
        refusal(told, described, tmp_path, "cohere2", WINDOW | {key: value})


def test_lists_of_a_header_have_an_entry_a_layer(refusal, tmp_path):
    for key, value in (
        ("attention__head_count", [8] * 3),
        ("attention__head_count_kv", [2, 2, -1, 2]),
        ("attention__head_count_kv", [2, 2, 2, HEADS + 1]),
        ("attention__sliding_window_pattern", [1, 0]),
    ):
        refusal(
            "the header has .*; accepted", described, tmp_path, "cohere2", WINDOW | {key: value}
        )


KEYS = (
    "attention__head_count_kv",
    "attention__sliding_window",
    "attention__sliding_window_pattern",
    "attention__temperature_scale",
    "attn_logit_softcapping",
    "context_length",
    "rope__dimension_count",
    "rope__freq_base",
    "rope__scaling__factor",
    "rope__scaling__type",
    "shortconv__l_cache",
)


@pytest.mark.parametrize("kind", ["llama", "gemma3", "lfm2"])
@pytest.mark.parametrize("key", KEYS)
def test_a_value_of_another_kind_is_read_or_refused_in_a_line(kind, key, tmp_path):
    for value in ("x", [1], [1.5] * 4, -1, 1.5, math.inf, {}):
        try:
            assert audit(described(tmp_path, kind, WINDOW | {key: value})).kinds
        except InputError as error:
            assert "accepted" in str(error) and "\n" not in str(error)
