"""The table of settings: what it says of each is what the probe and the needles say."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import farfield
from farfield.theory.answers.errors import InputError
from farfield.validation.far_field.extension import BUDGET, Choice, _gains, weigh
from farfield.validation.far_field.foresee import Settings
from farfield.validation.far_field.needles import NeedleScore
from farfield.validation.far_field.probe import gap_losses, losses_at
from farfield.validation.far_field.rotary import applied, candidates

TRAINED, TO = 2048, 4096
SIZES = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 512}


def encode(text):
    return [1 + ord(c) % 100 for c in text][::3]


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    rope = {"rope_type": "default", "rope_theta": 10000.0}
    more = {"intermediate_size": 32, "initializer_range": 0.3, "rope_parameters": rope}
    return LlamaForCausalLM(LlamaConfig(**SIZES, **more)).eval()


@pytest.fixture(scope="module")
def text():
    return torch.randint(0, 512, (TO + 1500,), generator=torch.Generator().manual_seed(2))


@pytest.fixture(scope="module")
def found(network, text):
    return weigh(network, encode, text, TRAINED, TO, rows=2, needle_rows=1)


def test_every_setting_has_a_line_and_the_cut_text_is_among_them(network, found, speaks):
    names = {s.name for s in candidates(network.config, TRAINED, TO)}
    assert {c.setting for c in found.choices} == names and len(found.choices) == len(names)
    assert found.cut.keys == TRAINED and found.cut.setting == "text cut to 2048"
    told = speaks(found)
    assert "needles" in told and "2,048 tokens" in told


def test_losses_are_those_of_the_gap_probe(network, text, found):
    starts = (0, len(text) - 1025)
    rows = torch.stack([text[s : s + 1025] for s in starts])
    settings = {s.name: s for s in candidates(network.config, TRAINED, TO)}
    for choice in found.choices:
        setting = settings[choice.setting]
        if setting.window is not None:
            assert choice.loss is None and not choice.recall
            continue
        with applied(network, setting):
            expected = float(gap_losses(network, rows, setting.cut or TO).mean())
        assert choice.loss == pytest.approx(expected, abs=1e-9)


def test_the_order_is_that_of_recall_within_the_budget_then_of_loss(found):
    asked = [c for c in found.choices if c.recall]
    best = min(c.loss for c in found.choices if c.loss is not None)
    assert asked == list(found.choices[: len(asked)])
    assert all(c.loss <= best + BUDGET or c is found.cut for c in asked)
    assert [c.right for c in asked] == sorted((c.right for c in asked), reverse=True)
    rest = [c.loss for c in found.choices[len(asked) :] if c.loss is not None]
    assert rest == sorted(rest) and all(loss > best + BUDGET for loss in rest)


def choice(log_probabilities, right):
    recall = [NeedleScore("pet", 600, p, k < right) for k, p in enumerate(log_probabilities)]
    return Choice("any", 1.0, 0.0, 0.0, 9, 1.0, tuple(recall), ())


def test_more_needles_and_a_sure_difference_are_a_gain():
    cut = choice((-5, -6, -7, -8), 1)
    assert _gains(choice((-4, -5.1, -6, -7), 2), cut)
    assert not _gains(choice((-4, -5.1, -6, -7), 1), cut)  # no needle more
    assert not _gains(choice((-1, -9, -4, -9), 2), cut)  # not sure


def test_what_cannot_be_extended_is_refused_in_a_line(network, text):
    with pytest.raises(InputError, match="nothing is to be mended at 2048"):
        weigh(network, encode, text, TRAINED, TRAINED)
    with pytest.raises(InputError, match="trained on 512 tokens; the probe reads rows of 1024"):
        weigh(network, encode, text, 512, TO)
    with pytest.raises(InputError, match="the text has 4096 tokens; more than 4096 are needed"):
        weigh(network, encode, text[:TO], TRAINED, TO)


def test_a_model_and_a_text_are_named_and_read(network, text):
    tokens = text.numpy()
    gaps = farfield.gap_probe(network, tokens, to=4096, rows=2).gaps
    starts = (0, len(tokens) - 1025)
    rows = torch.stack([text[s : s + 1025] for s in starts])
    alone = losses_at(network, rows[:, 512:], torch.arange(512), 256)
    by_length = {g.length: g.cost for g in gaps}
    cost = float((gap_losses(network, rows, 4096) - alone).mean())
    assert {2048, 4096} <= {*by_length} and by_length[4096] == pytest.approx(cost, abs=1e-6)
    with pytest.raises(InputError, match=r"has no tokenizer\.json"):
        farfield.extend(network, tokens, to=4096)
    with pytest.raises(InputError, match="to = 1024; accepted: 2048 or more"):
        farfield.gap_probe(network, tokens, to=1024)


def test_the_far_field_has_the_probe_beside_it():
    """Both stand in one table: what positions cost, and the rest."""
    import numpy as np

    sizes = SIZES | {"vocab_size": 300, "intermediate_size": 32, "initializer_range": 0.3}
    torch.manual_seed(0)
    small = LlamaForCausalLM(LlamaConfig(**sizes, max_position_embeddings=32)).eval()
    words = np.random.default_rng(0).integers(0, 300, 2000)
    few = Settings(groups=2, rows=6, last=4)
    found = farfield.foresee(small, words, to=128, settings=few)
    costs = {g.length: g.cost for g in found.positions.gaps}
    assert {r.length for r in found.ratios} <= {*costs}
    told = found.text()
    assert "positions alone" in told and "the rest" in told and "Positions alone cost" in told
    for r in found.ratios:
        assert f"{r.main - costs[r.length]:+.3f}" in told
