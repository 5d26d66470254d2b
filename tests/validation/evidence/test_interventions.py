import dataclasses

import numpy as np
import pytest
import torch

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding
from farfield.validation.evidence import changes, interventions
from farfield.validation.evidence.interventions import (
    foreign,
    last_losses,
    position_readout,
    price,
    silenced,
    tempered,
)
from farfield.validation.harness.attention import fused, materialised
from farfield.validation.harness.corpus import corpus, samples_of
from farfield.validation.harness.mechanism import CAUSAL
from farfield.validation.harness.plan import parse_plan
from farfield.validation.harness.positional import initialised


@pytest.fixture(scope="module")
def model(small):
    return initialised(encoding(["-n/4", "0", "0", "0"]), small, 0).double()


def tensors():
    random = torch.Generator().manual_seed(0)
    return [torch.randn(1, 4, 9, 8, generator=random, dtype=torch.float64) for _ in range(3)]


def test_silenced_heads_and_no_others_put_nothing_out():
    q, k, v = tensors()
    plain, changed = (path(q, k, v, None, CAUSAL) for path in (fused, silenced([1, 3])))
    assert (changed[:, [1, 3]] == 0).all() and torch.equal(changed[:, [0, 2]], plain[:, [0, 2]])


def test_tempered_logits_are_sharper_by_the_ratio_of_logarithms():
    q, k, v = tensors()
    changed = tempered([0], 3)(q, k, v, None, CAUSAL)
    plain = materialised(q, k, v, None, CAUSAL)
    torch.testing.assert_close(changed[:, 1:], plain[:, 1:])
    torch.testing.assert_close(changed[:, :, :3], plain[:, :, :3])
    row = 8  # of nine keys, log 9 = 2 log 3
    weights = (2 * q[0, 0, row] @ k[0, 0].T / 8**0.5).softmax(-1)
    torch.testing.assert_close(changed[0, 0, row], weights @ v[0, 0])


def test_what_lies_beyond_a_window_has_no_price(small, text):
    """Two layers of windows of 4 see 7 tokens: the eighth may be anybody's."""
    window = initialised(encoding("window", w=4), small, 0).double()
    rows = samples_of(text.held_out, 20, 40)
    plain = last_losses(window, rows)
    nothing, something = (price(last_losses(window, foreign(rows, k)), plain) for k in (7, 6))
    assert nothing["nats"] == pytest.approx(0, abs=1e-12) and abs(something["nats"]) > 1e-9
    assert np.array_equal(foreign(rows, 40), rows)


def test_a_model_without_heads_sees_its_last_token_alone(model, text):
    rows = samples_of(text.held_out, 20, 40)
    blind = silenced(range(4))
    near = last_losses(model, rows[:, -2:], blind)
    assert last_losses(model, rows, blind) == pytest.approx(near, rel=1e-9)


def test_a_position_is_read_where_it_is_known_and_nowhere_else(model, text):
    class Known:
        device = "cpu"

        def __init__(self, up_to):
            self.up_to = up_to

        def embed(self, tokens):
            place = torch.arange(tokens.shape[1], dtype=torch.float64)
            return place.clamp(max=self.up_to).log1p()[None, :, None]

        def hidden(self, embedded):
            return embedded

    everywhere = position_readout(Known(1000), text.held_out, 16, 64)
    assert everywhere["inside"] == pytest.approx(1) == everywhere["beyond"]
    inside = position_readout(Known(15), text.held_out, 16, 64)
    assert inside["inside"] > 0.99 and abs(inside["beyond"]) < 0.01
    with pytest.raises(InputError, match="a longer text"):
        position_readout(model, text.held_out[:10], 16, 64)


def test_every_change_is_measured_on_a_model(small, text, monkeypatch):
    monkeypatch.setattr(interventions, "TARGETS", 32)
    short = dataclasses.replace(small, length=16)
    one, none = (initialised(encoding(f), short, 0) for f in (["-n/4", "0", "0", "0"], "0*n"))
    found = interventions.mixture(one, text.held_out)
    assert found["local"] == 1 and interventions.local_heads(one) == (0,)
    assert {"foreign", "far", "tempered", "silence local, long", "silence free, short"} <= {
        *found["prices"]
    }
    assert found["positions"][-1][1] == 256 and set(found["fields"]) == {"local", "free"}
    assert found["fields"]["local"] < found["fields"]["free"]
    bare = interventions.mixture(none, text.held_out)
    assert bare["local"] == 0 and "silence local, short" not in bare["prices"]


def test_gradients_are_measured_once_and_kept(tmp_path, monkeypatch):
    plan = {"sweep": [{"encodings": ["alibi"], "presets": ["tiny"], "multiples": [1]}]}
    (job,) = parse_plan(plan).jobs(corpus())
    monkeypatch.setattr(interventions, "planned", lambda text: [([job], tmp_path, None)])
    monkeypatch.setattr(changes, "file", lambda name: tmp_path / f"{name}.json")
    for name, value in (("SEEDS", {("alibi", 16): 1}), ("SEGMENTS", 2), ("LENGTH", 32)):
        monkeypatch.setattr(interventions, name, value)
    store = str(tmp_path / "store")
    assert list(interventions.measure_gradients(store)) == [f"{job.name}: measured"]
    (row,) = changes.rows("gradients")
    assert (row["name"], row["trained"], row["same"]) == ("alibi", 16, False)
    assert len(row["shares"]) == 32 / changes.STEP and sum(row["shares"]) == pytest.approx(1)
    assert row["scale"].startswith("tiny: 2 layers") and row["shares"][0] == max(row["shares"])
    assert list(interventions.measure_gradients(store)) == []
