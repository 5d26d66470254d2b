"""A configuration: its training length, its remarks and its refusals, each written down by hand."""

import inspect
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import Gemma3Config, LlamaConfig

from farfield.numerics.masks import CAUSAL, Mask
from farfield.theory.answers.number import SHARES
from farfield.validation.harness.data import Text
from farfield.validation.models import configuration, observed, opened
from farfield.validation.models import text as text_module
from farfield.validation.models.audit import audit
from farfield.validation.models.configuration import (
    _accepted,
    _cast,
    _notes,
    _require_bounds,
    _require_one_rotation,
    _require_rescaling,
    _trained,
    _values,
    class_of,
    read_json,
)
from farfield.validation.models.empirical import empirical_receptive_field
from farfield.validation.models.outline import LayerOutline, ModelOutline, Rotary, keys_text
from farfield.validation.models.perplexities import (
    hidden,
    model_perplexity,
)
from farfield.validation.models.smallest_window import smallest_window
from farfield.validation.models.text import text_of

Some = SimpleNamespace
HERE = Path("/nowhere/small")


def test_a_table_of_a_folder_is_read_whole_or_not_at_all(refusal, tmp_path):
    (tmp_path / "c.json").write_text('{"a": {"__float__": "Infinity"}, "b": {"c": 1}}')
    assert read_json(tmp_path, "c.json", 47) == {"a": math.inf, "b": {"c": 1}}
    refusal("has 47 bytes, more than 46; accepted: a table", read_json, tmp_path, "c.json", 46)
    refusal("d.json is no regular file", read_json, tmp_path, "d.json")
    (tmp_path / "d.json").write_text("[]")
    refusal("d.json is no table of keys", read_json, tmp_path, "d.json")
    for size, told in ((2 << 20, "is no table"), ((2 << 20) + 1, "more than 2097152")):
        (tmp_path / "d.json").write_text("[]".ljust(size))
        refusal(told, read_json, tmp_path, "d.json")


CLASSES = [
    ({"model_type": "llama"}, "llama", ""),
    (
        {"model_type": "llama", "auto_map": {}},
        "llama",
        "read as llama of the library: code of the folder (auto_map) is not run",
    ),
    (
        {"model_type": "my", "architectures": ["None", "DeepseekV3ForCausalLM"]},
        "deepseek_v3",
        "the type my is read as deepseek_v3, the library's class DeepseekV3ForCausalLM",
    ),
    (
        {"model_type": "my", "architectures": ["LlavaForConditionalGeneration"]},
        "llava",
        "the type my is read as llava, the library's class LlavaForConditionalGeneration",
    ),
    ({"model_type": "my", "architectures": ["None"]}, "", ""),
    ({"model_type": "my"}, "", ""),
]


@pytest.mark.parametrize(("values", "kind", "note"), CLASSES)
def test_the_type_by_which_a_configuration_is_read(values, kind, note):
    assert class_of(values, {"llama": 1}) == (kind, note)


ROTATIONS = [
    ({"rope_theta": 2.0}, ""),
    ({"rope_theta": 2.0, "rope_parameters": {"rope_theta": 2.0}}, ""),
    ({"rope_theta": 2.0, "rope_parameters": {"rope_theta": 3.0}}, "rope_theta 3.0 in"),
    ({"rope_theta": 2.0, "rope_parameters": {"near": {}, "rope_theta": 3.0}}, ""),
    ({"rope_theta": 2.0, "rope_parameters": {"rope_type": "yarn"}}, ""),
    ({"rope_scaling": {"type": "a"}, "rope_parameters": {"rope_type": "b"}}, "rope_type 'b' in"),
    ({"rope_scaling": {"type": "a"}, "rope_parameters": {"rope_type": "a"}}, ""),
    (
        {"rope_scaling": {"type": "a", "rope_type": "b"}, "rope_parameters": {"rope_type": "b"}},
        "",
    ),
    ({"rope_scaling": {"factor": 2}, "rope_parameters": {"factor": 4}}, "factor 4 in rope_para"),
    ({"rope_scaling": [1]}, "rope_scaling \\[1\\]; accepted: a table"),
    ({"text_config": {"rope_theta": 2, "rope_parameters": {"rope_theta": 3}}}, "rope_theta 3 in"),
]


@pytest.mark.parametrize(("values", "refused"), ROTATIONS)
def test_one_rotation_is_said_under_both_names(values, refused, refusal):
    if refused:
        refusal(refused, _require_one_rotation, HERE, values)
    else:
        _require_one_rotation(HERE, values)


BOUNDS = [
    ("num_hidden_layers", 2000),
    ("n_layers", None),
    ("num_decoder_layers", 2000),
    ("n_routed_experts", 4096),
    ("num_attention_heads", 1 << 16),
    ("n_head", 1 << 16),
    ("head_dim", 1 << 20),
    ("hidden_size", 1 << 24),
    ("d_model", 1 << 24),
    ("n_embd", 1 << 24),
    ("anything", 1 << 63),
]


@pytest.mark.parametrize(("key", "most"), BOUNDS)
def test_counts_are_bounded(key, most, refusal):
    most = most or 2000
    _require_bounds(HERE, {key: most, "x": True, "y": "9" * 99, "sliding_window": 1})
    for values in ({key: most + 1}, {"text_config": {key: most + 1}}):
        refusal(f"{key} {most + 1}.*; accepted: at most {most}$", _require_bounds, HERE, values)
    for window in ("sliding_window", "attention_chunk_size"):
        refusal(f"{window} 0; accepted: a whole", _require_bounds, HERE, {window: 0})
        _require_bounds(HERE, {window: 0.5, "other": 0})


def test_rescalings_are_those_of_the_library(refusal):
    for rope in (None, {}, {"rope_type": "yarn"}, {"near": {"rope_type": "default"}, "far": {}}):
        _require_rescaling(HERE, Some(rope_parameters=rope))
    for rope in ({"rope_type": "ntk"}, {"near": {}, "far": {"rope_type": "ntk"}}):
        told = "rope_type 'ntk'; accepted: default, linear, dynamic"
        refusal(told, _require_rescaling, HERE, Some(rope_parameters=rope))


REFUSED = [
    ({"hidden_act": 5}, r"hidden_act 5, .* .Field 'hidden_act' expected str, got int .value: 5."),
    (
        {"vocab_size": 9, "hidden_size": 30},
        "hidden_size 30, .* .The hidden size .30. is not a multiple of the number of attention "
        "heads .32..",
    ),
]


def test_numbers_are_taken_for_what_the_library_wants(refusal):
    given = {"initializer_range": 1, "text_config": {"rms_norm_eps": 2, "use_cache": 0}}
    made = _accepted(HERE, "gemma3", Gemma3Config, given | {"dtype": "x"})
    found = made.initializer_range, made.text_config.rms_norm_eps, made.text_config.use_cache
    assert found == (1, 2, False) and [*map(type, found)] == [float, float, bool]
    assert given["text_config"] == {"rms_norm_eps": 2, "use_cache": 0}
    assert _cast("x", "x", int) == "x"
    for values, told in REFUSED:
        told = f"json has {told}.; accepted: what it takes for llama$"
        refusal(told, _accepted, HERE, "llama", LlamaConfig, values)
    assert [*_values({"a": {"b": 2, "c": {"b": 3}}, "b": 1}, "b")] == [2, 3, 1]


LENGTHS = [
    ({}, {}, (None, "")),
    (
        {"max_position_embeddings": 64},
        {"max_position_embeddings": 64},
        (64, "by the configuration"),
    ),
    ({}, {"max_position_embeddings": 64}, (64, "the library's default")),
    ({"n_ctx": 32}, {}, (32, "by the configuration")),
    ({"n_ctx": 32}, {"n_positions": 64}, (64, "the library's default")),
    ({"n_ctx": 32, "text_config": {"n_ctx": 16}}, {}, (16, "by the configuration")),
    ({"n_ctx": 32, "other": {}}, {}, (32, "by the configuration")),
    ({}, {"n_ctx": 1}, (1, "the library's default")),
    ({"seq_length": 8}, {"max_seq_len": 8}, (8, "by the configuration")),
    ({"model_max_length": 8}, {"model_max_length": 8}, (8, "by the configuration")),
    ({"model_max_length": 8}, {}, (None, "")),
    ({}, {"n_positions": 0, "n_ctx": 5}, (5, "the library's default")),
    ({"n_ctx": 7}, {"n_positions": -1}, (7, "by the configuration")),
    ({"n_ctx": 7}, {"n_positions": "x"}, (7, "by the configuration")),
    ({"n_ctx": 1}, {}, (1, "by the configuration")),
    ({"n_ctx": -1}, {}, (None, "")),
    ({"n_ctx": 1.5}, {}, (None, "")),
]


@pytest.mark.parametrize(("values", "text", "said"), LENGTHS)
def test_the_training_length_and_who_names_it(values, text, said):
    assert _trained(values, Some(**text)) == said


@pytest.mark.parametrize(
    ("table", "ends"), [(None, None), (63, None), (64, 64), (66, 64), (72, 64), (73, None)]
)
def test_rows_end_with_a_table_of_about_the_training_length(table, ends, monkeypatch):
    """Some tables have a few rows more than there are positions."""
    text = Some(hidden_size=32, vocab_size=9, max_position_embeddings=64)
    config = Some(get_text_config=lambda decoder: text if decoder else None)
    seen = observed.Observed((FAR,), True, table, ends is None)
    monkeypatch.setattr(configuration, "library_config", lambda *_: (config, "llama", "a note"))
    monkeypatch.setattr(observed, "observe", lambda given: seen if given is config else None)
    values = {"model_type": "my", "n_ctx": 64, "n_layer": 1}
    found, own = configuration.described(HERE, values)
    crossed = "the self-attention of the decoder; keys of the encoder's output are kept besides"
    rows = f"rows end with the table of {ends} positions"
    assert found == ModelOutline(
        HERE,
        "llama",
        (FAR,),
        width=32,
        vocabulary=9,
        trained=64,
        trained_from="by the configuration",
        longest=ends,
        causal=True,
        notes=("a note", crossed if ends is None else rows),
        values=values,
    )
    assert own is text


VERSIONS = {"5.22.9": False, "4.99.0": False, "5.23.0": True, "5.23.0.dev0": True, "6.0": True}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_oldest_version_of_the_library(version, monkeypatch, refusal):
    found = Some(__version__=version)
    monkeypatch.setattr(configuration, "library", lambda *_: found)
    if VERSIONS[version]:
        assert configuration.transformers() is found
    else:
        refusal(f"transformers {version} is .*: from 5.23", configuration.transformers)


FAR = LayerOutline(heads=4, key_heads=2, head_size=8, cached=32, rotation=Rotary(8, 1e4))
YARN = replace(FAR, scale=2.25, rotation=Rotary(8, 1e4, "yarn", 1.5, "slow angles divided by 4"))
DEFAULT = "the 1 layers are the library's default, as config.json names none"
NOTES = [
    ({}, [FAR], {}, [DEFAULT]),
    ({"text_config": {"num_hidden_layers": 1}}, [FAR], {}, []),
    ({"n_layer": 1}, [FAR], {"longest": 64}, ["rows end with the table of 64 positions"]),
    (
        {"n_layer": 2},
        [YARN, YARN],
        {},
        [
            "rotations with base 10000 are rescaled (yarn: slow angles divided by 4), logits "
            "times 1.5",
            "logits are 1.5 times q.k / sqrt(head size)",
        ],
    ),
    (
        {"n_layer": 2},
        [
            replace(FAR, rotation=Rotary(8, 1e4, "linear", note="all angles divided by 2")),
            replace(FAR, rotation=None, scale=0.5, sink=True),
        ],
        {},
        [
            "rotations with base 10000 are rescaled (linear: all angles divided by 2)",
            "logits are 0.5 times q.k / sqrt(head size)",
            "the denominator of each head has a learned constant too, a sink without value",
        ],
    ),
    (
        {"n_layer": 3},
        [
            replace(FAR, picks=7, indexed=3, keeps=math.inf),
            replace(FAR, picks=9, keeps=60),
            replace(FAR, indexed=5, scale=1 + 5e-7),
        ],
        {},
        [
            "an indexer picks 7 keys for each query, by keys of its own, which the cache holds too",
            "an indexer picks 9 keys for each query",
            "the library's cache keeps every key, also those that a layer no longer sees",
            "the library's cache drops all but the nearest 60 keys, which one pass over a row does "
            "not: what is generated depends on how the row is read",
        ],
    ),
    (
        {"n_layer": 2},
        [replace(FAR, cap=30.0), replace(FAR, cap=30.0, temper="log(i)")],
        {},
        [
            "a content logit x enters the softmax as 30 tanh(x/30)",
            "logits grow as log(i), i the place of the query in its row, from 1",
        ],
    ),
    (
        {"n_layer": 2},
        [replace(FAR, observed=False), LayerOutline(attends=False, observed=False)],
        {},
        ["masks or rotations of some layers were not seen: as the configuration says"],
    ),
    ({"n_layer": 1}, [LayerOutline(attends=False, observed=False)], {}, []),
    (
        {"n_layer": 1, "rope_scaling": {"factor": 2}},
        [FAR],
        {},
        ["rope_scaling names no type, so the library leaves it out of account"],
    ),
    ({"n_layer": 1, "rope_scaling": {"type": "a"}}, [FAR], {}, []),
    ({"n_layer": 1, "rope_scaling": {"rope_type": "a"}}, [FAR], {}, []),
]


@pytest.mark.parametrize(("values", "layers", "more", "notes"), NOTES)
def test_the_remarks_on_a_configuration(values, layers, more, notes):
    assert [*_notes(ModelOutline(HERE, "toy", tuple(layers), **more), values)] == notes


# -- memory, devices -----------------------------------------------------------------------------


def test_bytes_of_a_row_are_counted_by_hand():
    model = ModelOutline(HERE, "toy", (FAR, replace(FAR, heads=6)), width=128, vocabulary=50)
    assert opened._activations(model, 10) == 4 * 10 * 128 * (60 + 2) + 8 * 10 * 50
    wide = replace(model, layers=(replace(FAR, heads=64), FAR))
    assert opened._activations(wide, 10) == 80 * 10 * 64 * 32 + 8 * 10 * 50
    assert opened._activations(replace(model, layers=(), width=0), 10) == 80 * 10 * 32 + 8 * 10 * 50


MEMORY = {"proc/meminfo": "MemTotal: 9 kB\nMemAvailable: 7 kB\n"}
MOST, NONE = ({"sys/fs/cgroup/memory.max": f"{most}\n"} for most in (9000, "max"))
USED = {"sys/fs/cgroup/memory.current": "2000\n"}
FREE = [
    ({}, None),
    (MEMORY | MOST | USED, 7000),
    (MEMORY | NONE | USED, 7 << 10),
    (NONE | USED, None),
    (MOST | USED, 7000),
    (MOST, None),
]


@pytest.mark.parametrize(("files", "free"), FREE)
def test_free_memory_is_the_least_that_the_system_says(files, free, tmp_path, monkeypatch):
    monkeypatch.setattr(opened, "Path", lambda name: tmp_path / name[1:])
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert opened.available() == opened.available(torch.device("cpu")) == free


def test_devices_and_types_have_names(refusal):
    assert opened.placed(None, None) == (None, None)
    for name, kind in opened.TYPES.items():
        said = torch.device("cpu"), kind
        assert opened.placed("cpu", name) == opened.placed("cpu", kind) == said
    assert opened.placed("cpu", None)[1] is None and opened.placed(None, "float16")[0] is None
    refusal("device 'meta': it holds no numbers; accepted: cpu, or", opened.placed, "meta", None)
    refusal("device 'nowhere': .*; accepted: cpu, or", opened.placed, "nowhere", None)
    refusal("dtype 'int8'", opened.placed, None, "int8")


def test_what_can_be_opened_is_known_before_a_weight_is_read(refusal):
    live = ModelOutline(HERE, "toy", (FAR,), causal=True, network=object())
    packed = ModelOutline(Path("/nowhere/x.gguf"), "toy", (FAR,))
    run = ModelOutline(HERE, "farfield", (FAR,))
    for model in (live, packed, run):
        assert opened.openable(model, "cpu", "float16") == (torch.device("cpu"), torch.float16)
    for model, why in (
        (replace(live, causal=False), "it is no causal language model; accepted: causal"),
        (replace(live, unknown="of what"), "of what; accepted: causal"),
        (replace(packed, unknown="of what"), "of what; accepted: causal"),
    ):
        refusal(rf"\(toy\) can only be audited: {why}", opened.openable, model)
    refusal("has no model.safetensors", opened.openable, replace(live, network=None))


# -- texts and protocols -------------------------------------------------------------------------


def test_windows_that_hide_what_a_view_shows_are_named():
    def told(view, *widths):
        layers = [LayerOutline(width=width) for width in widths]
        return [*hidden(ModelOutline(HERE, "toy", (*layers, LayerOutline(attends=False))), view)]

    said = " of the model with windows of {} keys hide keys beyond them, first keys too"
    assert told(Mask(16), 9, None, 12, 9) == ["3 layers" + said.format("9, 12")]
    assert told(Mask(10), 9, 20) == ["2 layers" + said.format("9, 20")]
    assert told(Mask(4, sinks=2), 9) == ["1 layer" + said.format("9")]
    assert told(Mask(9), 9) == told(Mask(20), None) == told(CAUSAL, 9) == []


def test_a_text_of_bytes_or_tokens_fits_its_model(refusal, tmp_path):
    model = ModelOutline(tmp_path, "toy", (FAR,), vocabulary=300, values={"bos_token_id": 5})
    tokens = np.array([3, 299, 0], dtype=np.int64)
    read = text_of(model, tokens, "yes")
    assert (read.train.size, read.held_out.tolist(), read.bos, read.source) == (
        0,
        [3, 299, 0],
        5,
        "3 tokens",
    )
    assert read.first == "the first token 5 in each row"
    assert text_of(model, tokens).bos is None and text_of(model, tokens).first == "no first token"
    for named, bos in (({"tokenizer.ggml.bos_token_id": 299}, 299), ({"bos_token_id": 0}, 0)):
        first = replace(model, values=named)
        assert text_of(first, tokens, "yes").bos == bos and text_of(first, tokens, "no").bos is None
    for wrong in (300, -1, None, "5"):
        bare = replace(model, values={"bos_token_id": wrong})
        refusal("names no first token", text_of, bare, tokens, "yes")
    told = "model '.*' has 299 tokens, 3 tokens has 300; accepted"
    refusal(told, text_of, replace(model, vocabulary=299), tokens)
    for wrong in (tokens[None], tokens.astype(float), tokens[:0], tokens - 1):
        refusal("no one-dimensional array of tokens", text_of, model, wrong)
    text = Text("words", *np.split(np.frombuffer(b"abcdef", np.uint8), 2))
    refusal("has 300 tokens, words has 256; accepted", text_of, model, text)
    whole = text_of(replace(model, vocabulary=256), text)
    assert (whole.train.tobytes(), whole.held_out.tobytes()) == (b"abc", b"def")
    (tmp_path / "tokenizer.json").write_text("none")
    assert text_of(model, tokens).held_out is tokens  # has tokens already
    run = replace(model, kind="farfield", vocabulary=256)
    assert text_of(run, text).source == "words"
    refusal("tokenizer.json cannot be read", text_of, model, text)
    np.save(tmp_path / "tokens.npy", np.arange(256, dtype=np.uint8))
    assert text_of(model, str(tmp_path / "tokens.npy")).held_out[-1] == 255
    few = np.array([1, 2], dtype=np.uint8)  # of 257 tokens or more, so none is a text of bytes
    assert text_of(model, few).held_out.tolist() == [1, 2]


def test_a_text_is_encoded_in_the_tokens_of_its_model(monkeypatch, refusal, tmp_path):
    """Of each part 2 MiB at most; a coder puts a first token, or none."""
    done, lengths, first = [], [], [9]

    def encode_batch(texts, add_special_tokens):
        lengths.extend(map(len, texts))
        return [Some(ids=[3, 4]) for _ in texts]

    coder = Some(
        no_truncation=lambda: done.append("truncation"),
        no_padding=lambda: done.append("padding"),
        encode_batch=encode_batch,
        encode=lambda words, add_special_tokens=True: Some(ids=first * add_special_tokens + [3]),
    )
    monkeypatch.setattr(text_module, "tokenizer_of", lambda given: coder)
    model = ModelOutline(tmp_path / "x.gguf", "toy", (FAR,), vocabulary=10)
    parts = [np.full(size, 97, dtype=np.uint8) for size in ((2 << 20) + 1, 5)]
    read = text_of(model, Text("words", *parts))
    assert (done[:2], lengths[:2]) == (["truncation", "padding"], [2 << 20, 5])
    assert (read.train.tolist(), read.held_out.tolist(), read.bos) == ([3, 4], [3, 4], 9)
    assert text_of(model, Text("words", *parts), "no").bos is None
    assert read.source == "words, in tokens of x.gguf" and read.train.dtype == np.uint32
    assert text_module.encoder_of(model)("a") == [3]
    assert text_module.encoder_of(replace(model, path=tmp_path)) is None
    first.clear()
    assert text_of(model, Text("words", *parts)).bos is None
    short = replace(model, vocabulary=4)
    refusal("gives token 4, the model has 4; accepted", text_of, short, Text("words", *parts))


DEFAULTS = [
    (model_perplexity, {"text": None, "protocol": "last-token", "samples": 64, "bos": "auto"}),
    (
        empirical_receptive_field,
        {"kind": "gradient", "q": "99/100", "eps": "1/100", "rows": 32, "bos": "auto"},
    ),
    (smallest_window, {"loss": "1/100", "segments": 16, "bos": "auto", "folder": "out/window"}),
    (audit, {"rows": 1, "cache_dtype": "bf16", "tensor_parallel": 1, "page": 16}),
    (audit, {"eps": SHARES, "error": "1/1000", "lengths": (), "trained": None}),
    (opened.open_model, {"tokens": 1024, "device": None, "dtype": None, "by_layer": False}),
]


@pytest.mark.parametrize(("call", "said"), DEFAULTS)
def test_what_is_not_given_is_as_it_is_said(call, said):
    usual = {name: each.default for name, each in inspect.signature(call).parameters.items()}
    assert said.items() <= usual.items()


def test_every_digit_of_a_number_of_keys_is_shown_from_ten_million_to_a_million_million():
    shown = {10**7 - 1: "9999999", 10**7: "10,000,000", 10**12 - 1: "999,999,999,999"}
    shown |= {10**12: "1.00e+12", None: "unknown"}
    assert {value: keys_text(value) for value in shown} == shown
