"""What is foreseen of a model, and what mends it: laws, and what is refused."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import farfield
from farfield.validation.far_field.blame import excesses
from farfield.validation.far_field.foresee import ORDER, ratio_of
from farfield.validation.far_field.long_rows import Sampling
from farfield.validation.far_field.model_on_text import Settings, subject_of
from farfield.validation.models.repairs import Repair, Repaired

FEW = Settings(groups=2, rows=6, last=4)


def test_doublings_are_foreseen_and_the_last_is_the_answer(trained):
    found = farfield.foresee(trained("-n/8"), to=100, settings=FEW, causes=True)
    assert [r.length for r in found.ratios] == [32, 64, 100]
    last = found.ratios[-1]
    assert found.label == "forecast" and found.log_ratio == last.log_ratio == last.main
    assert last.interval[0] <= last.log_ratio <= last.interval[1] and last.agree
    assert last.elsewhere[0] < last.log_ratio < last.elsewhere[1]
    assert found.span() == last.elsewhere
    assert found.pairs[1] < found.pairs[0] and found.pairs[2] == 5050
    assert len(found.blame.layers) == 2 and found.blame.positions == pytest.approx(0, abs=1e-6)
    for each in found.blame.layers:
        assert each.interval[0] <= each.mean <= each.interval[1]
    assert json.loads(found.to_json())["ratios"][2]["length"] == 100


@pytest.mark.parametrize("gate", ("forget_gate.py:ForgetGate", "contextual_positions.py:Cope"))
def test_gates_of_the_gallery_are_foreseen(trained, gate):
    found = farfield.foresee(trained(f"docs/gallery/{gate}"), to=64, settings=FEW, causes=True)
    assert found.log_ratio is not None and abs(found.log_ratio) < 1
    assert found.ratios[-1].check == pytest.approx(found.blame.everything)


def test_the_cost_of_one_stage_does_not_depend_on_the_length(trained):
    folder = trained("-n/8")
    far = [farfield.foresee(folder, to=to, settings=FEW).pairs for to in (64, 4096)]
    assert far[0][1] == far[1][1] and far[0][2] < far[1][2]


def test_looks_that_disagree_leave_the_answer_unknown(trained, monkeypatch):
    near, far = (np.array(x) for x in ([0.1, 0.11, 0.12], [0.3, 0.31, 0.32]))
    ordered = far + ORDER
    assert ratio_of(64, 4, near, far, far).log_ratio is None
    assert ratio_of(64, 4, near, near, near).log_ratio == pytest.approx(0.11)
    assert ratio_of(64, 4, near, near, ordered).log_ratio is None
    assert ratio_of(64, 4, near, near, near - ORDER + 0.01).agree
    for apart, why in (
        (ratio_of(64, 4, near, far, far), "further apart"),
        (ratio_of(64, 4, near, near, ordered), "order matters"),
    ):
        monkeypatch.setattr(
            "farfield.validation.far_field.foresee.ratio_of", lambda *_, apart=apart: apart
        )
        found = farfield.foresee(trained("-n/8"), to=64, settings=FEW)
        assert found.status == "unknown" and found.reason.code == "settings_disagree"
        assert found.label is None and found.log_ratio is None and found.span() is None
        assert "no forecast" in str(found) and why in str(found.reason)


def test_blame_has_a_zero_line(trained):
    """Where windows hide what each layer sees, far keys cost nothing, and no layer is named."""
    subject = subject_of(trained("0"), None, None, FEW)
    found = farfield.blame(subject, to=64)
    hidden = Repaired(subject.network, Repair(window=subject.length))
    zero = subject.ratios([64], subject.settings.check, hidden)[64]
    assert found.nowhere == pytest.approx(float(zero.mean()), abs=1e-6)
    local = farfield.blame(replace(subject, network=hidden), to=64)
    assert local.everything == pytest.approx(local.nowhere, abs=1e-6) and local.worst is None
    assert "No layer" in "".join(map(str, local.table()))


def test_the_layer_that_is_named_costs_more_than_none():
    zero, spread = np.array([0.2, 0.4, 0.3]), np.array([0.01, 0, -0.01])
    each, worst = excesses([zero + spread, zero + 0.25 + spread], zero)
    assert worst == 2 and each[1].mean == pytest.approx(0.25) and each[1].interval[0] > 0
    assert excesses([zero + 50 * spread, zero], zero)[1] is None


def test_a_local_model_loses_nothing_by_its_far_keys(trained):
    """A window hides them, so that both settings and every layer say the same."""
    hidden = Repaired(subject_of(trained("-n/8"), None, None, FEW).network, Repair(window=4))
    subject = subject_of(trained("-n/8"), None, None, FEW)
    near, far = subject.ratios([64], Sampling(1024), hidden)[64], subject.ratios([64], Sampling(8))
    assert np.allclose(near, subject.ratios([64], Sampling(8, math.inf), hidden)[64], atol=1e-6)
    assert not np.allclose(near, far[64], atol=1e-6)


@pytest.mark.parametrize(
    "given, why",
    {
        ("-n/8", 8, None, None): "to = 8 with rows of 16 tokens; accepted is twice as much or more",
        ("-n/8", 64, 8, None): "rows of 8 tokens; accepted are rows of 16 or more",
        ("-n/8", 64, None, 90): "6 rows of 16 take 97; accepted: a longer text",
        ("learned", 64, None, None): "has vectors for 16 positions, 64 are asked for",
    }.items(),
    ids=lambda x: str(x)[:20],
)
def test_bad_input_is_one_line(refusal, trained, given, why):
    encoding, to, length, tokens = given
    text = None if tokens is None else np.zeros(tokens, int)
    refusal(why, farfield.foresee, trained(encoding), text, to=to, length=length, settings=FEW)


def test_the_far_field_has_the_probe_beside_it():
    """Both stand in one table: what positions cost, and the rest."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 300}
    sizes |= {"intermediate_size": 32, "initializer_range": 0.3, "max_position_embeddings": 32}
    torch.manual_seed(0)
    small = LlamaForCausalLM(LlamaConfig(**sizes)).eval()
    words = np.random.default_rng(0).integers(0, 300, 2000)
    found = farfield.foresee(small, words, to=128, settings=FEW)
    costs = {g.length: g.cost for g in found.positions.gaps}
    assert {r.length for r in found.ratios} <= {*costs}
    told = found.text()
    assert "positions alone" in told and "the rest" in told and "Positions alone cost" in told
    for r in found.ratios:
        assert f"{r.main - costs[r.length]:+.3f}" in told
    alone = farfield.gap_probe(small, words, to=128)
    assert alone.row == 32 and {64, 128} <= {g.length for g in alone.gaps}
