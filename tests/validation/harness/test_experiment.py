import dataclasses
import json
import math
import os
import subprocess
import sys

import pytest
import torch

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding
from farfield.validation.harness import experiment
from farfield.validation.harness.configuration import Configuration, key
from farfield.validation.harness.corpus import corpus
from farfield.validation.harness.experiment import train_and_measure, trained_model
from farfield.validation.harness.mechanism import Visibility
from farfield.validation.harness.presets import PRESETS, Measurement
from farfield.validation.harness.store import Store
from farfield.validation.harness.training import TrainingDiverged

BOTH = (Visibility(), Visibility(bca=6))


@pytest.fixture(scope="module")
def configuration(text, small):
    return Configuration(encoding("rope"), text, small, inference=BOTH)


@pytest.fixture(scope="module")
def done(configuration, tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("runs"))
    return store, train_and_measure(configuration, store)


def without_times(value):
    if isinstance(value, dict):
        return {
            k: without_times(v)
            for k, v in value.items()
            if k not in ("seconds", "cpu_seconds", "notes", "began")
        }
    return [without_times(v) for v in value] if isinstance(value, list) else value


def test_a_result_tells_all(done, configuration, small, text):
    result = json.loads(json.dumps(done[1], allow_nan=False))
    assert result["key"] == key(configuration.training())
    assert result["schema"] == 1 and result["seed"] == 0 and result["notes"] == []
    assert result["encoding"]["mechanism"] == "rotation"
    assert result["text"]["sha256"] == text.sha256
    assert result["training"]["steps"] == small.steps
    environment = result["training"]["environment"]
    assert environment["torch"] == torch.__version__ and environment["cores"] == os.cpu_count()
    assert os.uname().nodename not in environment.values()
    causal, blockwise = result["measurements"]
    assert (causal["inference"]["label"], blockwise["inference"]["label"]) == ("causal", "bca 6")
    for measurement in (causal, blockwise):
        named = [(p["protocol"], p["length"]) for p in measurement["perplexity"]]
        protocols = ("non-overlapping", "last token")
        assert named == [(p, n) for p in protocols for n in (12, 40)]
        assert [a["eps"] for a in measurement["attention"]] == [0.1, 0.05, 0.01]
        assert measurement["bounds"]["violations"] == 0 < measurement["bounds"]["checks"]
        assert measurement["gradient"]["segments"] == 3
    at_training_length = [m["perplexity"][2] for m in (causal, blockwise)]
    assert at_training_length[0]["nats"] == pytest.approx(at_training_length[1]["nats"], rel=1e-6)


def test_a_finished_run_is_not_repeated(done, configuration, monkeypatch):
    def never(*_, **__):
        raise AssertionError("repeated")

    monkeypatch.setattr(experiment, "train", never)
    assert train_and_measure(configuration, done[0]) == done[1]
    alone = dataclasses.replace(configuration, inference=BOTH[:1])
    monkeypatch.setattr(experiment, "_measured", never)
    assert train_and_measure(alone, done[0])["measurements"] == done[1]["measurements"][:1]
    renamed = dataclasses.replace(configuration.encoding, name="something else")
    again = train_and_measure(dataclasses.replace(configuration, encoding=renamed), done[0])
    assert again["measurements"] == done[1]["measurements"]


def test_what_decides_the_weights_is_in_the_key(configuration, text, small):
    changes = [
        {"seed": 1},
        {"encoding": encoding("xpos")},
        {"encoding": encoding("type1")},
        {"encoding": encoding("-3*log(1+n)")},
        {"preset": dataclasses.replace(small, steps=13)},
        {"corpus": dataclasses.replace(text, train=text.train[1:])},
    ]
    keys = [key(dataclasses.replace(configuration, **c).training()) for c in changes]
    assert len({key(configuration.training()), *keys}) == 7
    same = [{"inference": ()}, {"measurement": Measurement(lengths=(12,), row_length=9)}]
    for change in [*same, {"encoding": encoding("rope", bca=6)}]:
        changed = dataclasses.replace(configuration, **change)
        assert changed.training() == configuration.training()


def test_a_run_is_deterministic(done, configuration, tmp_path):
    again = train_and_measure(configuration, Store(tmp_path))
    assert without_times(again) == without_times(done[1])


def test_the_trained_model_comes_back(done, configuration, text, tmp_path):
    model = trained_model(configuration, done[0])
    assert not model.training
    assert trained_model(configuration, Store(tmp_path)) is None
    causal = experiment.perplexities(model, text.held_out, (12, 40), 6, 1)
    assert causal[1].nats == done[1]["measurements"][0]["perplexity"][3]["nats"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("damaged", ["weights.safetensors", "training.json", "measurement"])
@pytest.mark.parametrize("damage", ["flip", "truncate", "remove"])
def test_a_corrupted_run_is_set_aside_and_made_again(configuration, tmp_path, damaged, damage):
    store = Store(tmp_path)
    first = train_and_measure(configuration, store)
    (path, *_) = sorted(store.folder(first["key"]).glob(damaged + "*"))
    content = bytearray(path.read_bytes())
    if damage == "remove":
        path.unlink()
    else:
        content[len(content) // 2] ^= 1
        path.write_bytes(content if damage == "flip" else content[:-9])
    heard = []
    again = train_and_measure(configuration, store, lambda *event: heard.append(event))
    assert without_times(again) == without_times(first)
    aside = [p for p in tmp_path.rglob("*") if ".corrupt" in p.name]
    if damage == "remove" and damaged != "weights.safetensors":  # as if it had not been finished
        assert aside == [] and again["notes"] == []
    else:
        assert len(aside) == 1 and len(again["notes"]) == 1
        assert damaged in again["notes"][0] and "\n" not in again["notes"][0]
        assert ("notice", 0, 0, again["notes"][0]) in heard


def test_a_killed_run_is_lost_alone(forked, tmp_path):
    source = tmp_path / "words.txt"
    source.write_text("what is lost is one run alone, " * 2000)
    configuration = Configuration(encoding("type1"), corpus(source), PRESETS["tiny"])
    store = Store(tmp_path / "runs")

    def run(tell):
        train_and_measure(configuration, store, lambda stage, done, *_: tell((stage, done)))

    for event in (("train", 9), ("perplexity, last token", 1)):
        forked(run).kill_at(event)
    stages = []
    other = forked(run)
    mine = train_and_measure(configuration, store, lambda stage, *_: stages.append(stage))
    theirs = [stage for stage, _ in other.told()]
    assert "train" not in stages and "train" not in theirs  # the second kill came after training
    measured = [("perplexity, last token" in each) for each in (stages, theirs)]
    assert sorted(measured) == [False, True]  # one measured, one waited
    assert mine["notes"] == []


def test_a_failed_training_leaves_nothing(text, small, tmp_path):
    wild = dataclasses.replace(small, learning_rate=1e30, clip=1e30, steps=50)
    configuration = Configuration(encoding("nope"), text, wild)
    with pytest.raises(TrainingDiverged, match="the loss is"):
        train_and_measure(configuration, Store(tmp_path))
    assert [p for p in tmp_path.rglob("*") if p.is_file() and p.suffix != ".lock"] == []


def test_a_bias_that_fails_far_away_is_refused_before_training(text, small, tmp_path):
    configuration = Configuration(encoding("-log(1+n)+1/(n-35)"), text, small)
    stages = []
    with pytest.raises(InputError, match="at distance 35"):
        train_and_measure(configuration, Store(tmp_path), lambda *event: stages.append(event))
    assert stages == []


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = sys.modules["filelock"] = sys.modules["safetensors"] = None
import farfield.validation
from farfield.theory.encodings import encoding
from farfield.validation.harness import configuration, presets
from farfield.validation.harness.corpus import corpus
from farfield.validation.harness import store as runs
print(presets.preset("demo").steps, runs.Store("a").root)
"""


def test_configurations_and_stores_need_no_torch():
    command = [sys.executable, "-c", WITHOUT_TORCH]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "400 a\n"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoding": encoding("fox")}, "fox cannot be trained here"),
        ({"encoding": encoding("window")}, "w is not learned and has no value"),
        ({"encoding": encoding("alibi")}, "has 8 heads, the model of preset small has 4"),
        (
            {"encoding": encoding("learned"), "measurement": Measurement(lengths=(12, 13))},
            "positions 0 to 11.*length 13 was asked",
        ),
        ({"seed": -1}, "seed -1"),
        ({"measurement": Measurement(lengths=(10**6,))}, "too short: its held-out part has"),
    ],
)
def test_what_cannot_be_run(configuration, changes, message):
    with pytest.raises(InputError, match=message) as error:
        dataclasses.replace(configuration, **changes)
    assert "accepted" in str(error.value) and "\n" not in str(error.value)


def test_a_learned_absolute_encoding_is_measured_where_it_knows(text, small, tmp_path):
    plain = dataclasses.replace(small, measurement=Measurement(blocks=2, last_tokens=4, rows=3))
    result = train_and_measure(Configuration(encoding("learned"), text, plain), Store(tmp_path))
    (measurement,) = result["measurements"]
    assert {p["length"] for p in measurement["perplexity"]} == {12}
    assert measurement["attention"][0]["length"] == measurement["gradient"]["length"] == 12


def test_values_outside_their_range():
    for make in (
        lambda: Measurement(lengths=(0,)),
        lambda: Measurement(rows=0),
        lambda: Measurement(share=1.0),
        lambda: Visibility(bca=0),
        lambda: dataclasses.replace(PRESETS["demo"], heads=7),
        lambda: dataclasses.replace(PRESETS["demo"], layers=0),
    ):
        with pytest.raises(InputError, match="accepted"):
            make()


def test_what_is_asked_for_besides_is_measured(text, small, tmp_path):
    measurement = dataclasses.replace(small.measurement, strides=(1, 12), positions=5, scores=20)
    more = dataclasses.replace(measurement, gradient_length=30)
    result = train_and_measure(
        Configuration(encoding("rope"), text, small, measurement=more), Store(tmp_path)
    )
    (measured,) = result["measurements"]
    protocols = {p["protocol"] for p in measured["perplexity"]}
    assert {"sliding window, stride 1", "sliding window, stride 12"} < protocols
    assert [b["last"] for b in measured["positions"]][-1] == 40
    assert len(measured["scores"]["scores"]) == 20
    assert math.isfinite(measured["scores"]["resolution"])
    assert measured["gradient"]["length"] == 30
    assert min(measured["bounds"][k] for k in ("logit_bound", "value_bound")) > 0
