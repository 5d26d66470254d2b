"""The gap probe: where nothing is skipped it is the model; positions alone are what it moves."""

import pytest
import torch
from torch.nn.functional import cross_entropy
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

from farfield.theory.answers.errors import InputError
from farfield.validation.far_field.probe import COST, gap_losses, losses_at, probe

ROW = 32
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 64}
SIZES |= {"intermediate_size": 32, "num_key_value_heads": 1, "initializer_range": 0.3}


def llama(**more):
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**SIZES, **more)).eval()


def mistral(window):
    torch.manual_seed(0)
    return MistralForCausalLM(MistralConfig(**SIZES, sliding_window=window)).eval()


def gemma(window):
    torch.manual_seed(0)
    kinds = ["sliding_attention", "full_attention"]
    sizes = {"head_dim": 16, "layer_types": kinds, "sliding_window": window}
    return Gemma3ForCausalLM(Gemma3TextConfig(**SIZES, **sizes)).eval()


@pytest.fixture(scope="module")
def rows():
    return torch.randint(0, 64, (3, ROW + 1), generator=torch.Generator().manual_seed(5))


@pytest.mark.parametrize("network", (llama(), mistral(8), gemma(8)), ids=lambda m: type(m).__name__)
def test_without_a_gap_it_is_the_loss_of_the_model(network, rows):
    with torch.no_grad():
        scores = network(rows[:, :-1]).logits.double()
    expected = cross_entropy(scores.mT, rows[:, 1:], reduction="none")[:, -ROW // 4 :]
    assert torch.allclose(gap_losses(network, rows, ROW), expected, atol=1e-5)


def test_rotations_know_differences_alone(rows):
    at = torch.arange(ROW)
    one, other = (losses_at(llama(), rows, at + shift, 8) for shift in (0, 1000))
    assert torch.allclose(one, other, atol=1e-3)
    assert not torch.allclose(one, gap_losses(llama(), rows, 1000)[:, -8:], atol=1e-3)


@pytest.mark.parametrize("make", (mistral, gemma), ids=("one window", "windows by layer"))
def test_a_window_is_one_of_positions(make, rows):
    """Beyond its window a query does not see over the gap: the first half is out of its sight."""
    changed = rows.clone()
    changed[:, : ROW // 2] = 7
    network = make(8)
    before, after = (gap_losses(network, r, 4 * ROW) for r in (rows, changed))
    assert torch.allclose(before, after) == (make is mistral)


def test_the_row_is_one_text_over_the_gap(rows):
    """The library takes a skipped position for the begin of another text, unless it is told."""
    changed = rows.clone()
    changed[:, : ROW // 2] = 7
    before, after = (gap_losses(llama(), r, 4 * ROW) for r in (rows, changed))
    assert not torch.allclose(before, after)


def test_it_says_where_positions_begin_to_cost(rows, speaks, monkeypatch):
    """A model whose loss rises by .03 nats a token beyond 1,000."""

    def losses(network, rows, positions, last):
        return torch.full((len(rows), last), max(0.0, 0.03 * (int(positions[-1]) - 999)))

    monkeypatch.setattr("farfield.validation.far_field.probe.losses_at", losses)
    found = probe(llama(), rows, [256, 512, 2048, 4096])
    assert found.holds <= 1000 + COST / 0.03 < found.breaks <= 1.2 * found.holds
    told = speaks(found)
    assert "cost nothing up to" in told and "+31.44 nats at 2,048" in told
    assert probe(llama(), rows, [64, 512]).breaks is None


def test_its_interval_is_over_rows(rows):
    found = probe(llama(), rows, [256])
    gap = next(g for g in found.gaps if g.length == 256)
    alone = losses_at(llama(), rows[:, ROW // 2 :], torch.arange(ROW // 2), ROW // 4)
    costs = (gap_losses(llama(), rows, 256) - alone).mean(1)
    assert gap.cost == pytest.approx(float(costs.mean())) and gap.low < gap.cost
    assert gap.high - gap.cost == pytest.approx(4.3027 * float(costs.std()) / 3**0.5, rel=1e-4)


def test_models_that_take_no_positions_are_refused_in_a_line(rows):
    sizes = {"hidden_size": 32, "n_layer": 1, "n_head": 2, "vocab_size": 64}
    with pytest.raises(InputError, match="'bloom' counts its distances itself"):
        probe(BloomForCausalLM(BloomConfig(**sizes)), rows, [64])
    with pytest.raises(InputError, match="a table of 48 positions, 64 are asked for"):
        small = GPT2Config(n_embd=32, n_layer=1, n_head=2, vocab_size=64, n_positions=48)
        probe(GPT2LMHeadModel(small), rows, [64])
    with pytest.raises(InputError, match="at least those of the rows, 32"):
        probe(llama(), rows, [16])
