"""Devices and types: nothing of a path on a device stays on the CPU; a type changes little."""

from dataclasses import replace

import pytest
import torch
from transformers import LlamaConfig

from farfield.validation.far_field.long_rows import Sampling, Stages
from farfield.validation.far_field.model_on_text import _in_bfloat16
from farfield.validation.far_field.rotary import applied, settings_of
from farfield.validation.models.folder import describe
from farfield.validation.models.library_network import LibraryNetwork
from farfield.validation.models.network import scores_at
from farfield.validation.models.opened import network_of, open_model
from farfield.validation.models.repairs import Repair, Repaired

TRAINED, TO = 32, 128


SETTINGS = [Repair(), *settings_of(LlamaConfig(head_dim=8), TRAINED, TO)]
STILL = [s for s in SETTINGS if s.rope.get("rope_type") != "dynamic"]
"""Without the one whose module reads the last position, which no device of the tests has."""


@pytest.fixture(scope="module")
def moved(small_llama):
    """A network on a device that has no numbers and refuses those of another one."""
    opened = open_model(describe(small_llama(max_position_embeddings=TRAINED)))
    network = network_of(opened)
    opened.network.to("meta")
    network.device = torch.device("meta")
    return network


@pytest.mark.parametrize("setting", STILL, ids=lambda s: s.name)
def test_nothing_of_a_whole_row_stays_on_the_cpu(moved, setting):
    tokens, at = torch.zeros(1, 300, dtype=torch.long), torch.arange(300)
    with applied(moved.network, setting):
        scores = scores_at(Repaired(moved, setting), tokens, at, torch.tensor([7, 299]))
    assert scores.device.type == "meta" and scores.shape == (1, 2, 97)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("setting", STILL, ids=lambda s: s.name)
def test_nothing_of_the_far_field_stays_on_the_cpu(moved, setting, monkeypatch):
    monkeypatch.setattr(
        "farfield.validation.far_field.long_rows.nats", lambda scores, tokens: scores
    )
    tokens = torch.zeros(3, 33, dtype=torch.long)
    with applied(moved.network, setting):
        group = Stages(Repaired(moved, setting), tokens, 4, Sampling(16))
        assert group.plain().device.type == "meta"
        for s in (1, 2):
            assert group.stage(s, [32, 64, 128]).device.type == "meta"
        at = torch.cat([torch.arange(8), torch.arange(120, 128)])
        found = group.blocks(tokens[:1, :16], at, 2, [32, 64, 128])
    assert found.device.type == "meta"


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_a_live_model_of_another_type_says_nearly_the_same(kind, small_llama):
    at, tokens = torch.arange(40), torch.randint(97, (1, 40), generator=torch.manual_seed(1))
    network, other = (
        network_of(open_model(describe(m))) for m in (small_llama(), small_llama().to(kind))
    )
    for setting in (Repair(), Repair(group=(3, 9)), Repair(window=16, sinks=4, in_cache=True)):
        one, two = (
            scores_at(Repaired(n, setting), tokens, at, 40).float() for n in (network, other)
        )
        assert float((one - two).abs().mean() / one.std()) < 0.02


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_an_attention_that_is_not_the_model_s_is_refused_in_every_type(
    refusal, dtype, small_llama, monkeypatch
):
    first, second = (open_model(describe(small_llama()), dtype=dtype) for _ in range(2))
    network_of(first)
    plain = LibraryNetwork.key
    monkeypatch.setattr(LibraryNetwork, "key", lambda *args: -plain(*args))
    refusal("an attention that is not known here", network_of, second)


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ({"dtype": "bfloat16"}, True),
        ({"dtype": "float32"}, False),
        ({"torch_dtype": "bfloat16"}, True),
    ]
    + [({"general.file_type": kind}, kind > 1) for kind in (0, 1, 3, 7)],
)
def test_weights_in_few_bits_are_computed_in_bfloat16(values, kept, small_llama, monkeypatch):
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    outline = replace(describe(small_llama()), values=values)
    assert _in_bfloat16(outline, None) == kept and _in_bfloat16(outline, "cuda") == kept
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    assert not _in_bfloat16(outline, "cpu")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_type_is_that_which_is_asked_for_and_frequencies_are_not_rounded_to_it(
    dtype, small_llama, tmp_path
):
    small_llama().to(torch.bfloat16).save_pretrained(tmp_path)
    for model in (small_llama(), tmp_path):
        opened = open_model(describe(model), device="cpu", dtype=dtype)
        (turning,) = (m for m in opened.network.modules() if hasattr(m, "rope_type"))
        assert torch.equal(turning.inv_freq, small_llama().model.rotary_emb.inv_freq)
        assert next(opened.network.parameters()).dtype == getattr(torch, dtype)
