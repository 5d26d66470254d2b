import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding
from farfield.validation.harness.attention import materialised
from farfield.validation.harness.corpus import samples_of
from farfield.validation.harness.measures import receptive_fields as receptive_field
from farfield.validation.harness.measures.receptive_fields import (
    attention_receptive_field,
    gradient_receptive_field,
    gradient_shares,
    tail_sums,
    tokens,
)
from farfield.validation.harness.mechanism import Visibility
from farfield.validation.harness.positional import initialised
from farfield.validation.harness.training import train

CASES = {
    "alibi": Visibility(),
    "type2": Visibility(),
    "kerple_log": Visibility(window=9),
    "rope": Visibility(bca=6),
    "xpos": Visibility(),
    "sinusoidal": Visibility(),
    "window": Visibility(),
}


@pytest.fixture(scope="module")
def trained(small, text):
    def make(name):
        given = {"window": {"w": 4}, "alibi": {"heads": 4}}.get(name, {})
        model = initialised(encoding(name, **given), small, 0)
        train(model, text.train, small)
        with torch.no_grad():
            for layer in model.layers:  # content logits that matter
                layer.mixed.weight *= 6
        return model

    return {name: make(name) for name in CASES}


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30), st.floats(0.001, 1.5))
def test_tokens_is_its_definition(weights, eps):
    weights[0] += 1
    w = torch.tensor(weights, dtype=torch.float64)
    total = sum(weights)
    threshold = math.exp(math.log(eps)) * total
    expected = next(j for j in range(len(weights) + 1) if sum(weights[j:]) < threshold)
    assert int(tokens(tail_sums(w), math.log(eps))) == expected


def test_tokens_at_thresholds_that_round_to_nothing():
    b = torch.exp(-torch.arange(400, dtype=torch.float64))
    found = [int(tokens(tail_sums(b), -k + 1e-6)) for k in (20, 40, 300)]
    assert found == [20, 40, 300]  # T_j / B = e^-j, against eps = e^(-k + 1e-6)
    support = torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64)
    assert int(tokens(tail_sums(support), -1000.0)) == 2


@pytest.mark.parametrize("name", CASES)
def test_attention_field_by_its_definition(name, trained, text, small):
    """Rows rebuilt one by one from the layers' own inputs, with plain sums from the nearest key."""
    model, view, length = trained[name], CASES[name], 30
    fields, bounds = attention_receptive_field(
        model,
        text.held_out,
        thresholds=(0.3, 0.02),
        length=length,
        segments=2,
        rows=5,
        visible=view,
    )
    recorded = []

    def path(query, key, value, bias, visible):
        recorded.append((query.double(), key.double()))
        return materialised(query, key, value, bias, visible)

    x = torch.from_numpy(samples_of(text.held_out, 2, length)[:, :-1])
    with torch.no_grad():
        model.hidden(model.embed(x), view, path)
    table = model.bias_table(length)
    at = torch.linspace(15, 29, 5).long().tolist()
    for field in fields:
        means = np.zeros((2, 4))
        trf = np.zeros(4)
        for layer, (query, key) in enumerate(recorded):
            for h in range(4):
                p = torch.zeros(length) if table is None else table[h % len(table)]
                for s in range(2):
                    for i in at:
                        keys = [j for j in range(i, -1, -1) if view.sees(i, j)]
                        logit = query[s, h, i] @ key[s, h, keys].T / math.sqrt(8)
                        b = p[[i - j for j in keys]].double().exp()
                        weight = (logit + p[[i - j for j in keys]]).exp()
                        means[layer, h] += shortest(weight.numpy(), field.eps) / 10
                        trf[h] += shortest(b.numpy(), field.eps) / 20
        np.testing.assert_allclose(field.heads, means)
        np.testing.assert_allclose(field.trf_heads, trf)
        assert field.tokens == pytest.approx(means.mean())
        assert field.trf == pytest.approx(trf.mean())
        assert (field.length, field.segments, field.rows) == (length, 2, 5)
    assert bounds.checks == 3 * 2 * 2 * 4 * 2 * 5
    assert bounds.violations == 0
    assert 0.5 < bounds.range_median <= bounds.range_max


def test_a_layer_is_measured_with_its_own_bias(small, text):
    near, none = ["-2*n"] * small.heads, ["0"] * small.heads

    def fields(*formulas):
        model = initialised(encoding([f for layer in formulas for f in layer]), small, 0)
        given = {"thresholds": (0.1,), "length": 30, "segments": 2, "rows": 5}
        return attention_receptive_field(model, text.held_out, **given)

    (mixed,), bounds = fields(near, none)
    (local,), _ = fields(near)
    (flat,), _ = fields(none)
    assert bounds.violations == 0
    assert mixed.trf == pytest.approx((local.trf + flat.trf) / 2)
    assert mixed.heads[0] == pytest.approx(local.heads[0])
    assert min(mixed.heads[1]) > 5 * max(local.heads[1])


def shortest(weights, eps):
    """The definition: min { j : C_ij > (1 - eps) C_ii }."""
    partial = np.concatenate([[0], np.cumsum(weights)])
    return int(np.argmax(partial > (1 - eps) * partial[-1]))


@pytest.mark.parametrize(("power", "kinds"), [(0.05, {"lower"}), (20, {"upper", "jensen"})])
def test_the_bounds_notice_a_wrong_bias(power, kinds, trained, text, monkeypatch):
    """With another bias on the theory's side only, the checks fail, on the side they should."""
    calls = []

    def wrong(weights):
        calls.append(weights)
        return tail_sums(weights**power if len(calls) == 1 else weights)  # the first is of b alone

    monkeypatch.setattr(receptive_field, "tail_sums", wrong)
    bounds = attention_receptive_field(trained["type2"], text.held_out, length=30, rows=5)[1]
    assert {k for k in ("lower", "upper", "jensen") if getattr(bounds, k)} == kinds
    assert bounds.violations == bounds.lower + bounds.upper + bounds.jensen


def test_gradient_shares_by_one_segment_at_a_time(trained, text):
    model = trained["alibi"]
    rows = samples_of(text.held_out, 3, 20)
    found = gradient_shares(model, rows, tokens_a_pass=45)
    for row, curve in zip(rows, found, strict=True):
        embedded = model.embed(torch.from_numpy(row[None, :-1])).detach().requires_grad_()
        scores = model.logits(model.hidden(embedded, path=materialised))[0, -1]
        scores.log_softmax(-1)[row[-1]].backward()
        norms = embedded.grad[0].norm(dim=-1).numpy()[::-1]
        np.testing.assert_allclose(curve, norms / norms.sum(), rtol=1e-3, atol=1e-7)
    assert all(p.requires_grad for p in model.parameters())


def test_gradient_field_is_its_definition(trained, text):
    model = trained["xpos"]
    field = gradient_receptive_field(model, text.held_out, share=0.9, length=40, segments=7)
    curves = gradient_shares(model, samples_of(text.held_out, 7, 40))
    partial = curves.mean(0).cumsum()
    assert field.tokens == int(np.argmax(partial > 0.9)) + 1
    assert field.mass == pytest.approx(curves[:, :12].sum(1).mean())
    assert dict(field.curve)[16] == pytest.approx(partial[15])
    assert field.tokens_low <= field.tokens <= field.tokens_high
    assert field.mass_low < field.mass < field.mass_high
    assert field.segments == 7 and field.training_length == 12


def test_no_gradient_beyond_the_exact_reach(trained, text):
    """[C, 5] prints w R; R layers of a window of w reach R(w-1)+1 tokens."""
    curves = gradient_shares(trained["window"], samples_of(text.held_out, 5, 40))
    assert (curves[:, :7] > 0).all() and (curves[:, 7:] == 0).all()


def test_errors(trained, small):
    with pytest.raises(InputError, match="a segment takes 31"):
        attention_receptive_field(trained["rope"], np.zeros(30, np.uint8), length=30)
    learned = initialised(encoding("learned"), small, 0)
    with pytest.raises(InputError, match="knows 12 positions"):
        gradient_receptive_field(learned, np.zeros(300, np.uint8), length=13)
