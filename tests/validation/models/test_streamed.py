"""A model read one layer at a time: the numbers of the model in memory, and the memory as said."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from farfield.validation.far_field.apply import apply
from farfield.validation.far_field.gap_probe import gap_probe
from farfield.validation.models import streamed as streaming
from farfield.validation.models.folder import describe
from farfield.validation.models.network import scores_at
from farfield.validation.models.opened import Opened, network_of, open_model
from farfield.validation.models.repairs import Repair, Repaired
from farfield.validation.models.streamed import held, skeleton, streamed


@pytest.fixture
def llama(small_llama):
    """Makes a Llama of three layers, its embeddings tied or not."""
    sizes = {"num_hidden_layers": 3, "intermediate_size": 48, "initializer_range": 0.2}
    return lambda tied: small_llama(**sizes, max_position_embeddings=64, tie_word_embeddings=tied)


@pytest.fixture(params=["folder", "shards", "tied", "bfloat16", "gguf"])
def place(request, llama, packed, tmp_path):
    model = llama(request.param == "tied")
    if request.param == "gguf":
        return packed(tmp_path / "small.gguf", model)
    if request.param == "bfloat16":
        model = model.to(torch.bfloat16)
    model.save_pretrained(tmp_path, max_shard_size="20KB" if request.param == "shards" else "5GB")
    return tmp_path


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_numbers_are_those_of_the_model_in_memory(place, dtype):
    whole = open_model(describe(place), dtype=dtype)
    layers = open_model(describe(place), dtype=dtype, by_layer=True)
    assert whole.held is None and layers.held > 0
    tokens, at = torch.arange(120)[None] % 97, torch.arange(120)
    for setting in (Repair(), Repair(group=(3, 15)), Repair(window=16, sinks=2, in_cache=True)):
        one, other = (
            scores_at(Repaired(network_of(opened), setting), tokens, at, 9)
            for opened in (whole, layers)
        )
        assert torch.equal(one, other)
    inside = [x for block in layers.network.model.layers for x in block.parameters()]
    assert inside and all(x.is_meta for x in inside)
    assert not any(x.is_meta for x in layers.network.model.embed_tokens.parameters())


def test_gradients_and_generated_tokens_are_those_of_the_model_in_memory(llama, tmp_path):
    llama(False).save_pretrained(tmp_path)
    pair = [open_model(describe(tmp_path), by_layer=by_layer) for by_layer in (False, True)]
    tokens, gradients = torch.arange(20)[None], []
    for opened in pair:
        embedded = opened.embed(tokens).detach().requires_grad_()
        opened.hidden(embedded, last=1).sum().backward()
        gradients.append(embedded.grad)
    assert torch.equal(*gradients) and gradients[0].abs().max() > 0
    said = []
    for opened in pair:
        with apply(opened.network, "Self-Extend, groups of 4 from 16", to=128) as model:
            said.append(model.generate(tokens, max_new_tokens=5, eos_token_id=None))
    assert torch.equal(*said)


def test_a_model_that_does_not_fit_is_read_by_layers_and_a_larger_one_is_refused(
    refusal, llama, tmp_path, monkeypatch
):
    llama(False).save_pretrained(tmp_path)
    outline, need = (
        describe(tmp_path),
        open_model(describe(tmp_path), tokens=16, by_layer=True).held,
    )
    for free, by_layer in ((1 << 40, False), (need, True)):
        monkeypatch.setattr(
            "farfield.validation.models.opened.available", lambda place, free=free: free
        )
        assert (open_model(outline, tokens=16).held is not None) == by_layer
    monkeypatch.setattr("farfield.validation.models.opened.available", lambda place: need - 1)
    refusal(
        r"takes about \d+ MiB .* one layer at a time, .* are free", open_model, outline, tokens=16
    )


def test_the_far_field_says_that_it_reads_by_layers(llama, tmp_path, monkeypatch):
    llama(False).save_pretrained(tmp_path)
    need = open_model(describe(tmp_path), tokens=16, by_layer=True).held
    words, gaps, said = np.random.default_rng(0).integers(0, 97, 3000), [], []
    for free in (1 << 40, need):
        monkeypatch.setattr(
            "farfield.validation.models.opened.available", lambda place, free=free: free
        )
        how = {"to": 64, "length": 16, "progress": lambda *told: said.append(told[0])}
        gaps.append(gap_probe(tmp_path, words, **how).gaps)
    assert gaps[0] == gaps[1]
    assert [bool(re.search(r"one at a time, \d+ MiB at most", x)) for x in said].count(True) == 1


def test_layers_are_put_on_the_device(llama, tmp_path, monkeypatch):
    """The device has no numbers, and refuses those of another one."""
    llama(True).save_pretrained(tmp_path)
    outline, meta = describe(tmp_path), torch.device("meta")
    network = streamed(outline, skeleton(outline), torch.float32, meta)
    assert all(table.device == meta for table in network.buffers())
    monkeypatch.setattr(
        "farfield.validation.models.library_network.LibraryNetwork._try", lambda self: None
    )
    tokens, at = torch.arange(120)[None] % 97, torch.arange(120)
    for setting in (Repair(), Repair(group=(3, 15))):
        scores = scores_at(Repaired(network_of(Opened(outline, network)), setting), tokens, at, 9)
        assert scores.device == meta and scores.shape == (1, 9, 97)


def test_a_weight_that_is_not_finite_is_named(refusal, llama, tmp_path):
    model = llama(False)
    model.model.layers[1].mlp.up_proj.weight.data[3, 4] = np.nan
    model.save_pretrained(tmp_path)
    opened = open_model(describe(tmp_path), by_layer=True)
    refusal(r"infinity in 'model\.layers\.1\.mlp\.up_proj\.weight'", network_of, opened)


def test_a_bloom_is_read_by_layers_too(tmp_path, saved_bloom):
    saved_bloom(tmp_path, n_layer=2, n_head=4)
    tokens, at, scores = torch.arange(30)[None], torch.arange(30), []
    for by_layer in (False, True):
        network = network_of(open_model(describe(tmp_path), by_layer=by_layer))
        scores.append(scores_at(network, tokens, at, 30))
    assert torch.equal(*scores)


CHILD = """
import re, sys, torch
from pathlib import Path
from farfield.validation.models.folder import describe
from farfield.validation.models.network import scores_at
from farfield.validation.models.opened import network_of, open_model


def kib(name):  # of this process alone: the other count keeps that of the process before it
    return int(re.search(rf"{name}:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])


torch.set_num_threads(1)
for folder in sys.argv[1:]:  # a small model first, with which all code is loaded
    outline, before, at = describe(folder), kib("VmRSS"), torch.arange(64)
    opened = open_model(outline, tokens=64, dtype="bfloat16", by_layer=True)
    scores_at(network_of(opened), at[None] % outline.vocabulary, at, 1)
print((kib("VmHWM") - before) * 1024, opened.held)
"""


@pytest.mark.parametrize(("kind", "size"), [(torch.float32, 4), (torch.bfloat16, 2)])
def test_what_is_held_of_a_gguf_file_is_counted_by_hand(llama, packed, tmp_path, kind, size):
    """Tables and a norm, one layer, and its largest tensor once in bytes and three times in float32
    (taken apart, joined, as the library has it)."""
    outline = describe(packed(tmp_path / "small.gguf", llama(False)))
    outside = 2 * 97 * 32 + 32
    layer = 2 * 32 * 32 + 2 * 16 * 32 + 3 * 32 * 48 + 2 * 32
    by_hand = size * (outside + layer) + (1 + 3 * 4) * 32 * 48
    assert held(outline, skeleton(outline), kind) == by_hand


@pytest.mark.slow
def test_the_memory_is_as_said(llama, tmp_path):
    if not Path("/proc/self/status").exists():
        return  # this system says nothing of it
    llama(False).save_pretrained(tmp_path / "small")
    sizes = {"hidden_size": 512, "intermediate_size": 4096, "num_hidden_layers": 12}
    config = LlamaConfig(**sizes, num_attention_heads=8, vocab_size=16000)
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(tmp_path / "large")
    folders = [str(tmp_path / name) for name in ("small", "large")]
    run = [sys.executable, "-c", CHILD, *folders]
    told = subprocess.run(run, capture_output=True, text=True, check=True).stdout.split()
    taken, said = map(int, told)
    whole = sum(file.stat().st_size for file in (tmp_path / "large").glob("*.safetensors"))
    assert said < whole and said / 1.2 < taken < said * 1.2, (taken, said)


def test_a_tensor_is_checked_when_it_is_read_first(monkeypatch):
    checked = []
    monkeypatch.setattr(streaming, "require_finite", lambda *given: checked.append(given[1:]))
    read = streaming._finite(None, {"a": 1, "b": 2}.get)
    assert [*map(read, "abcab")] == [1, 2, None, 1, 2] and checked == [("a", 1), ("b", 2)]
