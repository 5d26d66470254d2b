"""What a window drops in single rows: against sums by hand, and what is said of a broken bound."""

import math

import pytest
import torch

from farfield.theory.answers.answer import Label
from farfield.validation.harness.bias import model_of
from farfield.validation.harness.settings import Run
from farfield.validation.models import dropped_keys as module
from farfield.validation.models.dropped_keys import ERROR, ROWS, dropped_keys
from farfield.validation.models.network import TrainedNetwork

LENGTH, WIDTH = 48, 12


def a_model(encoding, sharpness=12):
    run = Run(encoding=encoding, layers=1, width=16, heads=2, length=LENGTH)
    model = model_of(run).eval()
    with torch.no_grad():  # far from a model that has learned nothing: sharp attention
        model.layers[0].qkv_proj.weight.mul_(sharpness)
    return model


@pytest.fixture
def tokens():
    return torch.randint(0, 200, (LENGTH,), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    "encoding, sinks, sharpness", [("-n/4", 0, 12), ("-n/2", 3, 6), ("0", 2, 12)]
)
def test_rows_are_those_of_a_sum_by_hand(encoding, sinks, sharpness, tokens):
    model = a_model(encoding, sharpness)
    layer, x = model.layers[0], model.embedding(tokens[None])
    qkv = layer.qkv_proj(layer.ln_attn(x))[0].detach().double().split(16, -1)
    q, k, v = (y.unflatten(-1, (2, 8)).transpose(0, 1) for y in qkv)
    slope = {"-n/4": 1 / 4, "-n/2": 1 / 2, "0": 0}[encoding]
    rows = sorted({int(i) for i in torch.linspace(LENGTH // 2, LENGTH - 1, ROWS)})
    within, total, worst = 0, 0, 0
    for h in range(2):
        for i in rows:
            weights = [
                math.exp(float(q[h, i] @ k[h, j]) / math.sqrt(8) - slope * (i - j))
                for j in range(i + 1)
            ]
            kept = [j for j in range(i + 1) if i - j < WIDTH or j < sinks]
            far = [j for j in range(i + 1) if j not in kept]
            full = sum(w * v[h, j] for j, w in enumerate(weights)) / sum(weights)
            z = sum(weights[j] for j in kept)
            part = sum(weights[j] * v[h, j] for j in kept) / z
            largest = max(float(v[h, j].norm()) for j in range(LENGTH))
            change = float((full - part).norm()) / largest
            norm = max(float(k[h, j].norm()) for j in far) * float(q[h, i].norm()) / math.sqrt(8)
            outside = len(far) * math.exp(norm - slope * (i - max(far))) / z
            within, total = within + (change <= ERROR), total + 1
            worst += 2 * outside / (1 + outside) <= ERROR
            assert change <= 2 * outside / (1 + outside)
    found = dropped_keys(TrainedNetwork(model), tokens, WIDTH, sinks)
    assert found.rows == total and found.broken == 0
    assert found.measured == pytest.approx(within / total)
    assert found.worst == pytest.approx(worst / total)
    assert (0 < worst < total) == (sharpness == 6)
    assert found.worst <= found.sampled <= found.measured


def test_a_window_of_the_row_drops_nothing(tokens):
    assert dropped_keys(TrainedNetwork(a_model("0")), tokens, LENGTH) is None


def said(found):
    blocks = list(found.blocks())
    return blocks[0].label, " ".join(str(block) for block in blocks)


def test_a_steep_bias_has_a_tight_certificate_and_no_bias_has_none(tokens):
    steep = dropped_keys(TrainedNetwork(a_model("-30*n")), tokens, WIDTH)
    assert steep.measured == steep.sampled == steep.worst == 1 and steep.tight
    assert said(steep)[0] is Label.APPROXIMATE
    flat = dropped_keys(TrainedNetwork(a_model("0")), tokens, 4)
    assert flat.sampled == flat.worst == 0 and not flat.tight
    label, text = said(flat)
    assert label is Label.MEASURED and "No certificate at run time is tight" in text


def test_a_broken_bound_withdraws_its_label(tokens, monkeypatch):
    monkeypatch.setattr(module, "dropped_weight", lambda *_: 0.0)
    found = dropped_keys(TrainedNetwork(a_model("0")), tokens, WIDTH)
    assert found.sampled == 1 and found.broken > 0 and not found.holds and not found.tight
    label, text = said(found)
    assert label is Label.MEASURED and "is broken in" in text and str(found.broken) in text


def test_learned_sinks_are_kept_weight(tokens):
    """A learned logit in the denominator makes the kept weight larger, and the change smaller."""
    run = Run.of(
        {
            "encoding": {"label": "sinks", "layers": [{"mechanism": "0", "sinks": True}]},
            "layers": 1,
            "width": 16,
            "heads": 2,
            "length": LENGTH,
        }
    )
    model = model_of(run).eval()
    network = TrainedNetwork(model)
    before = dropped_keys(network, tokens, WIDTH)
    with torch.no_grad():
        model.layers[0].sinks.fill_(9.0)
    after = dropped_keys(network, tokens, WIDTH)
    assert after.measured == after.worst == 1 and before.worst < 1 and after.broken == 0
