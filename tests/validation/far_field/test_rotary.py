"""Settings of rotary models: what is applied is what the library reads back from what is pasted."""

import json
import math
import shlex
from types import SimpleNamespace

import pytest
import torch
from transformers import AutoConfig, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from farfield.validation.far_field.rotary import (
    OLD,
    applied,
    grouped,
    pastes,
    rotations,
    settings_of,
    turned,
)
from farfield.validation.models.repairs import Repair

TRAINED, TO, BASE = 64, 128, 10000.0
SIZES = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
SIZES |= {"intermediate_size": 32, "num_key_value_heads": 1, "vocab_size": 128}


@pytest.fixture(scope="module")
def model(small_llama):
    rope = {"rope_type": "default", "rope_theta": BASE}
    return small_llama(**SIZES, max_position_embeddings=TRAINED, rope_parameters=rope)


SETTINGS = settings_of(
    LlamaConfig(**SIZES, rope_parameters={"rope_type": "default", "rope_theta": BASE}), TRAINED, TO
)
TURNING = [s for s in SETTINGS if s.rope]


def frequencies(network, length=TO):
    """Inverse frequencies on a row of so many tokens, and the factor of cosines and sines."""
    ((_, _, module),) = rotations(network)
    module(torch.zeros(1), torch.arange(length)[None])
    return module.inv_freq.double(), module.attention_scaling


def model_read(folder, config, changed):
    """The model that the library builds from a folder with the changed entries."""
    whole = config.to_dict() | changed
    if "rope_scaling" in changed:  # as versions before 5 write it
        del whole["rope_parameters"]
    (folder / "config.json").write_text(json.dumps(whole))
    return LlamaForCausalLM(AutoConfig.from_pretrained(folder))


def published(setting, factor, d=32):
    """The inverse frequencies as the papers print them, in float64."""
    theta = BASE ** (-torch.arange(0, d, 2).double() / d)
    kind, turns = setting.rope["rope_type"], TRAINED * theta / (2 * math.pi)
    if kind == "linear":
        return theta / factor
    if kind in ("default", "dynamic"):  # the base that turns the slowest pair factor times slower
        more = factor if kind == "default" else factor * TO / TRAINED - (factor - 1)
        return (BASE * more ** (d / (d - 2))) ** (-torch.arange(0, d, 2).double() / d)
    if kind == "llama3":  # between 1 and 4 turns on the trained rows
        mix = ((turns - 1) / 3).clamp(0, 1)
        return theta * mix + theta / factor * (1 - mix)
    return yarn(theta, factor, d, 32, 1)


def yarn(theta, factor, d, fast, slow):
    def pair(turns):
        return d * math.log(TRAINED / (turns * 2 * math.pi)) / (2 * math.log(BASE))

    low, high = max(math.floor(pair(fast)), 0), min(math.ceil(pair(slow)), d - 1)
    ramp = ((torch.arange(d // 2).double() - low) / max(high - low, 0.001)).clamp(0, 1)
    return theta / factor * ramp + theta * (1 - ramp)


@pytest.mark.parametrize("setting", TURNING, ids=lambda s: s.name)
def test_frequencies_are_those_that_the_papers_print(model, setting):
    factor = float(setting.name.split()[-1])
    with applied(model, setting):
        got, amplitude = frequencies(model)
    assert torch.allclose(got, published(setting, factor), rtol=1e-6, atol=0)
    logs = 1 + 0.1 * math.log(factor) if "YaRN" in setting.name else 1
    assert amplitude == pytest.approx(logs, rel=1e-12)


@pytest.mark.parametrize("setting", TURNING, ids=lambda s: s.name)
def test_what_is_pasted_reads_back_as_what_was_applied(model, setting, tmp_path):
    with applied(model, setting):
        expected = frequencies(model)
    each = pastes(setting, model.config, TO)
    texts = {(p.library, p.versions): p.text for p in each if p.text and p.library != "llama.cpp"}
    for (library, versions), text in texts.items():
        if library == "vLLM":
            flag, text, flag_longest, longest = shlex.split(text)
            assert (flag, flag_longest, longest) == ("--hf-overrides", "--max-model-len", str(TO))
        changed = json.loads(text)
        old = versions == OLD or versions.startswith("before")
        assert ("rope_scaling" in changed, "rope_parameters" in changed) == (old, not old)
        got = frequencies(model_read(tmp_path, model.config, changed))
        assert torch.allclose(got[0], expected[0], rtol=1e-6, atol=0) and got[1] == expected[1]
        factor = setting.rope.get("factor", 1)  # vLLM multiplies what the entry allows by it
        allowed = changed.get("max_position_embeddings", TRAINED) * factor
        assert allowed >= TO
    assert len(texts) == (2 if setting.rope["rope_type"] == "dynamic" else 4)


def test_self_extend_is_pasted_into_the_one_library_that_has_it(model):
    """llama.cpp ends unless the width is a multiple of the group; positions stay trained ones."""
    (extend,) = (s for s in SETTINGS if s.group)
    each = {p.library: p for p in pastes(extend, model.config, TO)}
    group, width = extend.group
    flags = f"--grp-attn-n {group} --grp-attn-w {width} --ctx-size {TO}"
    assert each["llama.cpp"].text == flags and "server has no" in each["llama.cpp"].where
    assert each["transformers"].text is None is each["vLLM"].text
    for trained, to in ((8192, 16384), (8192, 32768), (4096, 131072), (64, 128), (2048, 2050)):
        group, width = grouped(trained, to)
        assert width % group == 0 and (to - 1) // group + width - width // group < trained
        fewer = trained // 4 // (group - 1) * (group - 1)
        assert group == 2 or (to - fewer) / (group - 1) + fewer > trained, "the least groups"


def test_what_cuts_a_text_says_that_the_server_of_llama_cpp_does_not(model):
    cut = pastes(Repair(cut=TRAINED), model.config, TO)
    assert [p.text for p in cut][1:] == [f"--max-model-len {TRAINED}", f"--ctx-size {TRAINED}"]
    assert "HTTP 400" in cut[-1].where
    assert [(p.library, p.versions) for p in cut] == [
        ("transformers", "all"),
        ("vLLM", "all"),
        ("llama.cpp", "all"),
    ]


@pytest.mark.parametrize("setting", TURNING, ids=lambda s: s.name)
def test_flags_of_llama_cpp_give_its_formula_the_same_frequencies(model, setting):
    text = pastes(setting, model.config, TO)[-1].text
    if setting.rope["rope_type"] in ("dynamic", "llama3"):
        assert text is None
        return
    words = shlex.split(text)
    flags = dict(zip(words[::2], words[1::2], strict=True))
    assert flags["--ctx-size"] == str(TO)
    d, scale = turned(model.config), 1 / float(flags.get("--rope-scale", 1))
    base = float(flags.get("--rope-freq-base", BASE))
    theta = base ** (-torch.arange(0, d, 2).double() / d)
    amplitude = 1.0
    if flags.get("--rope-scaling") == "yarn":
        assert flags["--yarn-orig-ctx"] == str(TRAINED)
        theta = yarn(theta, 1 / scale, d, 32.0, 1.0)
        amplitude = 1 + 0.1 * math.log(1 / scale)
    else:
        theta = theta * scale
    with applied(model, setting):
        got = frequencies(model)
    assert torch.allclose(got[0], theta, rtol=1e-6, atol=0)
    assert got[1] == pytest.approx(amplitude, rel=1e-6)


def test_a_text_is_cut_by_what_is_pasted(model, tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    (cut,) = (s for s in SETTINGS if s.cut)
    words = Tokenizer(models.WordLevel({str(n): n for n in range(200)}, unk_token="0"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=words).save_pretrained(tmp_path)
    file = tmp_path / "tokenizer_config.json"
    pasted = json.loads(pastes(cut, model.config, TO)[0].text)
    file.write_text(json.dumps(json.loads(file.read_text()) | pasted))
    text = " ".join(map(str, range(100)))
    tokens = AutoTokenizer.from_pretrained(tmp_path)(text, truncation=True)["input_ids"]
    assert tokens == list(range(100 - TRAINED, 100))


def test_layers_with_a_window_keep_their_rotations(outside_models):
    network = outside_models.network("gemma3_text")
    ((_, _, module),) = rotations(network)
    before = module.sliding_attention_inv_freq.clone(), module.full_attention_inv_freq.clone()
    (yarn_2, *_) = (
        s for s in settings_of(network.config, TRAINED, TO) if s.name.startswith("YaRN")
    )
    with applied(network, yarn_2):
        ((_, _, module),) = rotations(network)
        assert torch.equal(module.sliding_attention_inv_freq, before[0])
        assert not torch.equal(module.full_attention_inv_freq, before[1])


def test_a_model_scaled_already_is_scaled_further_in_its_own_way():
    rope = {"rope_type": "llama3", "rope_theta": BASE, "factor": 8.0, "low_freq_factor": 1.0}
    rope |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 16}
    config = LlamaConfig(**SIZES, max_position_embeddings=TRAINED, rope_parameters=rope)
    further = {s.name: s.rope for s in settings_of(config, TRAINED, 192) if s.rope}
    raised = {f"NTK-aware {by}": rope | {"rope_theta": BASE * by ** (32 / 30)} for by in (3, 6)}
    assert further == {f"llama3 {by}": rope | {"factor": by} for by in (24, 48)} | raised
    assert turned(config) == 32
    del rope["factor"]
    rope |= {"partial_rotary_factor": 0.25}
    part = SimpleNamespace(**SIZES, rope_parameters=rope, model_type="own")
    first = settings_of(part, TRAINED, TO)[1]
    assert (first.name, turned(part)) == ("llama3 2", 8)


def test_one_plane_has_no_change_of_its_base():
    names = [
        {s.setting.split(" ")[0] for s in settings_of(config, TRAINED, TO) if s.setting}
        for size in (2, 4)
        for config in [LlamaConfig(**SIZES, max_position_embeddings=TRAINED, head_dim=size)]
    ]
    assert names[1] - names[0] == {"dynamic", "NTK-aware"} and names[0] < names[1]


def test_what_cannot_be_set_is_refused_in_a_line(refusal, model):
    refusal("nothing is to be mended at 64", settings_of, model.config, TRAINED, TRAINED)
    from transformers import BloomConfig

    refusal("'bloom' has no rope_parameters", settings_of, BloomConfig(), TRAINED, TO)
    with applied(torch.nn.Linear(1, 1), SETTINGS[0]):
        pass  # no rotation changes
    refusal("with a rotary module", applied(torch.nn.Linear(1, 1), TURNING[0]).__enter__)


def test_the_settings_and_the_keys_that_each_keeps(model):
    """For rows of three training lengths."""
    to, each = 192, settings_of(model.config, TRAINED, 192)
    assert {s.name: s.keys(to) for s in each} == {
        "text cut to 64": TRAINED,
        "YaRN 3": to,
        "YaRN 6": to,
        "linear 3": to,
        "dynamic NTK 3": to,
        "Llama 3 3": to,
        "NTK-aware 3": to,
        "NTK-aware 6": to,
        "window 32": 32,
        "window 32, 4 first keys in the cache": 36,
        "window 32, 4 first keys": 36,
        "Self-Extend, groups of 4 from 16": to,
        "log scale": to,
    }
    assert [s.longest for s in each if s.rope] == [to, to, to, None, to, to, to]
    assert Repair(window=200).keys(TO) == TO and Repair().keys(9) == 9
