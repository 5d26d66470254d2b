"""The gap probe: where nothing is skipped it is the model; positions alone are what it moves."""

import pytest
import torch
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM, Gemma3TextConfig, LlamaConfig, MistralConfig

from farfield.validation.far_field.change_scores import COST
from farfield.validation.far_field.gap_probe import gap_losses, probe
from farfield.validation.models.folder import describe
from farfield.validation.models.network import nats, scores_at
from farfield.validation.models.opened import network_of, open_model

ROW = 32
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 64}
SIZES |= {"intermediate_size": 32, "num_key_value_heads": 1, "initializer_range": 0.3}


BOTH = {"head_dim": 16, "layer_types": ["sliding_attention", "full_attention"]}
CONFIGS = {
    "no window": LlamaConfig(**SIZES),
    "one window": MistralConfig(**SIZES, sliding_window=8),
    "windows by layer": Gemma3TextConfig(**SIZES, **BOTH, sliding_window=8),
}


def made(name="no window"):
    torch.manual_seed(0)
    return network_of(open_model(describe(AutoModelForCausalLM.from_config(CONFIGS[name]))))


@pytest.fixture(scope="module")
def rows():
    return torch.randint(0, 64, (3, ROW + 1), generator=torch.Generator().manual_seed(5))


def losses_at(network, rows, positions, last):
    return nats(scores_at(network, rows[:, :-1], positions, last), rows)


@pytest.mark.parametrize("name", CONFIGS)
def test_without_a_gap_it_is_the_loss_of_the_model(name, rows):
    network = made(name)
    with torch.no_grad():
        scores = network.network(rows[:, :-1]).logits.double()
    expected = cross_entropy(scores.mT, rows[:, 1:], reduction="none")
    assert torch.allclose(gap_losses(network, rows, ROW), expected[:, -ROW // 4 :], atol=1e-5)
    odd = gap_losses(network, rows[:, :-1], ROW - 1)
    assert torch.allclose(odd, expected[:, :-1][:, -((ROW - 1) // 4) :], atol=1e-5)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_window_is_one_of_positions_in_a_row_that_is_one_text(name, rows):
    """Beyond its window a query does not see over the gap; elsewhere it does, though the library
    takes a skipped position for the begin of another text unless it is told."""
    changed = rows.clone()
    changed[:, : ROW // 2] = 7
    network = made(name)
    before, after = (gap_losses(network, r, 4 * ROW) for r in (rows, changed))
    assert torch.allclose(before, after) == (name == "one window")


def test_it_says_where_positions_begin_to_cost(rows, speaks, monkeypatch):
    """A model whose loss rises by .03 nats a token beyond 1,000."""

    network, limit = made(), 1000

    def losses(network, rows, length):
        alone = losses_at(network, rows[:, ROW // 2 :], torch.arange(ROW // 2), ROW // 4)
        return alone + max(0.0, 0.03 * (length - limit))

    monkeypatch.setattr("farfield.validation.far_field.gap_probe.gap_losses", losses)
    told = []
    found = probe(network, rows, [256, 512, 2048, 4096], lambda *said: told.append(said))
    assert [said[:2] for said in told] == [(k, max(4, k)) for k in range(1, len(told) + 1)]
    assert told[2][2] == "+31.440 nats at 2,048" and len(told) == len(found.gaps) > 4
    lengths = [int(said[2].split()[-1].replace(",", "")) for said in told]
    assert [gap.length for gap in found.gaps] == sorted(lengths)
    assert found.holds <= 1000 + COST / 0.03 < found.breaks <= 1.2 * found.holds
    told = speaks(found)
    assert "cost nothing up to" in told and "+31.44 nats at 2,048" in told
    assert probe(network, rows, [64, 512]).breaks is None
    near = probe(network, rows, [960, 1024])  # no multiple of 64 lies between
    assert (near.holds, near.breaks) == (960, 1024)
    limit = 80_000
    far = probe(network, rows, [65_536, 131_072])
    assert (far.holds, far.breaks) == (77_952, 84_992)  # within a tenth
    first = probe(network, rows[:2], [ROW, 131_072])
    assert (first.row, first.rows) == (ROW, 2)
    assert first.loss == pytest.approx(float(losses(network, rows[:2], 0).mean()))


def test_a_cost_at_the_border_is_none(rows, monkeypatch):
    def losses(network, rows, length):
        return torch.full((2, 8), COST if length <= 1000 else 1.0, dtype=torch.float64)

    place = "farfield.validation.far_field.gap_probe"
    monkeypatch.setattr(f"{place}.nats", lambda *_: torch.zeros(2, 8, dtype=torch.float64))
    monkeypatch.setattr(f"{place}.gap_losses", losses)
    found = probe(made(), rows[:2], [256, 2048])
    assert (found.holds, found.breaks) == (960, 1024)


def test_its_interval_is_over_rows(rows):
    found = probe(made(), rows, [256])
    gap = next(g for g in found.gaps if g.length == 256)
    alone = losses_at(made(), rows[:, ROW // 2 :], torch.arange(ROW // 2), ROW // 4)
    costs = (gap_losses(made(), rows, 256) - alone).mean(1)
    assert gap.cost == pytest.approx(float(costs.mean())) and gap.low < gap.cost
    assert gap.high - gap.cost == pytest.approx(4.3027 * float(costs.std()) / 3**0.5, rel=1e-4)


def test_what_cannot_be_probed_is_refused_in_a_line(refusal, rows):
    refusal("at least those of the rows, 32", probe, made(), rows, [16, 64])
    refusal("two rows or more, not one", probe, made(), rows[:1], [64])
