import dataclasses

import numpy as np
import pytest
import torch

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding
from farfield.validation.harness.configuration import Configuration, key
from farfield.validation.harness.corpus import Corpus
from farfield.validation.harness.mechanism import Visibility
from farfield.validation.harness.positional import initialised
from farfield.validation.harness.presets import PRESETS, Preset, preset
from farfield.validation.harness.tasks import Task
from farfield.validation.harness.training import learning_rate, train

BYTES = np.arange(250, dtype=np.uint8).repeat(20)
TEXT = Corpus("made up", BYTES, BYTES, 1, "")


@pytest.mark.parametrize(
    ("name", "run"), [("type1", "de066eb0baf3e624"), ("rope", "66ab5672518094b3")]
)
def test_runs_made_before_a_setting_existed_are_found_again(name, run):
    configuration = Configuration(encoding(name), TEXT, PRESETS["demo"])
    assert key(configuration.training()) == run
    assert key(configuration.measured(Visibility(bca=32))) == "d2194b6d1480d133"


def test_runs_of_a_task_with_tied_embedding_are_found_again():
    tied = dataclasses.replace(PRESETS["recall"], spread=0.125, embedding_spread=None)
    mixture, task = encoding(["-n", "0", "0", "0"]), Task("induction")
    configuration = Configuration(mixture, TEXT, tied, task=task)
    assert key(configuration.training()) == "acc9bcd35ac4eda5"
    own = dataclasses.replace(configuration, preset=PRESETS["recall"])
    assert own.training()["preset"]["embedding_spread"] == 0.5


def test_later_settings_are_in_the_keys_where_they_matter(text, small):
    changes = [
        {"betas": (0.9, 0.98)},
        {"epsilon": 1e-6},
        {"schedule": "linear"},
        {"dropout": 0.1},
        {"precision": "bfloat16"},
        {"parts": 2},
        {"embedding_spread": 0.5},
    ]
    presets = [small, *(dataclasses.replace(small, **c) for c in changes)]
    keys = [key(Configuration(encoding("rope"), text, p).training()) for p in presets]
    assert len(set(keys)) == len(presets)
    longer = [{"gradient_length": 20}, {"strides": (3,)}, {"positions": 4}, {"scores": 20}]
    measures = [small.measurement, *(dataclasses.replace(small.measurement, **c) for c in longer)]
    configurations = [Configuration(encoding("rope"), text, small, measurement=m) for m in measures]
    assert len({key(c.measured(Visibility())) for c in configurations}) == len(measures)


def test_settings_of_the_papers():
    """CATALOGUE of the papers' settings: what is printed, and the sibling script of [Q]."""
    q, c, s = (preset(f"paper:{name}") for name in ("qin2024", "chi2023", "sun2023"))
    assert (q.layers, q.width, q.length, q.batch, q.dropout) == (6, 512, 512, 128, 0.1)
    assert (c.layers, c.width, c.heads, c.length, c.batch) == (12, 768, 12, 512, 32)
    assert c.measurement.last_tokens == 1000 and c.measurement.gradient_length == 2048
    assert (s.layers, s.width, s.heads, s.length) == (24, 1024, 16, 1024)
    assert s.batch * s.length == 2**19 and s.betas == (0.9, 0.98) and s.clip == 2.0
    assert {q.steps, c.steps, s.steps} == {50_000}
    assert preset("small").steps == 1000 and preset("small").length == 64


def test_schedules():
    def rates(schedule, **changes):
        p = Preset("", 1, 16, 2, 8, 2, 100, 1.0, 10, schedule=schedule, **changes)
        return np.array([learning_rate(k, p) for k in range(100)])

    for schedule in ("cosine", "linear", "inverse sqrt"):
        assert rates(schedule)[9] == 1 and (np.diff(rates(schedule)[9:]) < 0).all()
    assert rates("linear")[-1] == 0 and rates("linear")[54] == pytest.approx(0.5)
    assert rates("inverse sqrt")[39] == pytest.approx(0.5)


def trained(text, p, name="kerple_log"):
    model = initialised(encoding(name), p, 0)
    losses = train(model, text.train, dataclasses.replace(p, steps=30)).losses
    return model, losses[-1][1]


def test_variants_of_training(text, small):
    """A batch in parts is the batch; bfloat16 and dropout train too, and change the weights."""
    model, loss = trained(text, small)
    for changes, near in (
        ({"parts": 4}, 1e-3),
        ({"precision": "bfloat16"}, 0.2),
        ({"dropout": 0.2}, 0.5),
    ):
        other, other_loss = trained(text, dataclasses.replace(small, **changes))
        assert other_loss == pytest.approx(loss, abs=near)
        assert all(p.dtype == torch.float32 for p in other.parameters())
        assert not torch.equal(other.embedding.weight, model.embedding.weight)
    with torch.no_grad():  # dropout is off in evaluation
        x = torch.zeros(1, 9, dtype=torch.long)
        assert torch.equal(other(x), other(x))


def test_a_killed_training_with_dropout_ends_in_the_same_weights(text, small, tmp_path):
    thinned = dataclasses.replace(small, dropout=0.3, parts=2)

    class Killed(Exception):
        pass

    def stop(stage, done, total, note):
        if done == 7:
            raise Killed

    def fresh():
        return initialised(encoding("rope"), thinned, 0)

    whole, parts = fresh(), fresh()
    train(whole, text.train, thinned)
    with pytest.raises(Killed):
        train(fresh(), text.train, thinned, 0, stop, tmp_path, 0)
    train(parts, text.train, thinned, 0, folder=tmp_path)
    for a, b in zip(whole.parameters(), parts.parameters(), strict=True):
        assert torch.equal(a, b)


def test_the_bias_is_never_rounded_to_half_precision(text, small):
    seen = []

    def path(query, key, value, bias, visible):
        seen.append((query.dtype, bias.dtype))
        return value

    model = initialised(encoding("alibi", heads=4), small, 0)
    with torch.autocast("cpu", torch.bfloat16):
        model(torch.zeros(1, 600, dtype=torch.long), path=path)
    assert set(seen) == {(torch.bfloat16, torch.float32)}
    assert len(model.bias(600)[0].unique()) == 600


def test_an_output_of_its_own(text, small):
    """The tied model has the weights that it always had; the other spreads embedding and output."""
    wide = dataclasses.replace(small, embedding_spread=0.5)
    tied, own = (initialised(encoding("rope"), p, 0) for p in (small, wide))
    assert tied.output is None and own.embedding.weight.std().item() == pytest.approx(0.5, rel=0.05)
    assert own.output.weight.std().item() == pytest.approx(small.spread, rel=0.05)
    hidden = torch.randn(3, small.width)
    torch.testing.assert_close(tied.logits(hidden), hidden @ tied.embedding.weight.T)
    torch.testing.assert_close(own.logits(hidden), hidden @ own.output.weight.T)


@pytest.mark.parametrize(
    "changes",
    [
        {"schedule": "none"},
        {"precision": "float16"},
        {"dropout": 1.0},
        {"parts": 3},
        {"parts": 0},
        {"layers": 0},
    ],
)
def test_values_that_no_preset_has(changes, small):
    with pytest.raises(InputError, match=r"preset: .*accepted"):
        dataclasses.replace(small, **changes)
