import json
import math
from dataclasses import replace

import pytest

from farfield.numerics.price import price_of_distance
from farfield.validation.harness.corpus import corpus
from farfield.validation.harness.store import Store
from farfield.validation.reference import collection, hold
from farfield.validation.reference.committed import place, sha256
from farfield.validation.reference.lending import rise
from farfield.validation.reference.registration import HOLD, Registration

PLAN = """
[[sweep]]
presets = ["tiny"]
tested = [16, 32]
task = { kind = "induction", vocabulary = 64 }
probe = { distances = [4, 6, 12, 24], rows = 8 }
encodings = [
    { label = "window, then free", layers = [
        { mechanism = "rope", window = 4 }, { mechanism = "0", scale = "log" },
    ] },
    "t5",
]
"""


@pytest.fixture
def registered(tmp_path, monkeypatch):
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "plan.toml").write_text(PLAN)
    for name, value in (
        ("HOLD", Registration(folder)),
        ("DRAWS", 50),
        ("planned", lambda text: []),
        ("write_outcomes", lambda: None),
    ):
        monkeypatch.setattr(collection, name, value)
    window = [["Piecewise((0, n < 4), (-oo, True))"] * 4, ["0"] * 4]
    cells = [("window, then free, 16", window), ("t5, 16", None)]  # what is learned is not known
    collection.HOLD.register({"cells": [{"cell": c, "biases": biases} for c, biases in cells]})
    return folder


def test_a_registration_is_run_predicted_and_scored(registered, tmp_path):
    store = tmp_path / "store"
    lines = list(collection.make(store))
    assert lines == ["window, then free, 16, 0: finished", "t5, 16, 0: finished"]
    assert not list(collection.make(store)), "what is finished is not made again"
    for job in collection.HOLD.plan.jobs(corpus()):
        found = json.loads(place(job, registered).read_text())
        assert (
            found["registered"]
            == collection.HOLD.digest
            == found["training"]["began"]["predictions"]
        )
        points = found["measurements"][0]["recall"]["points"]
        pairs = [(p["length"], p["distance"]) for p in points]
        assert pairs == [(p["length"], p["distance"]) for p in found["predicted"]]
        assert (32, 24) in pairs and (16, 24) not in pairs
        assert list(Store(store).folder(job.key).glob("logits-*.npz")), "logits stay with the run"
    found = hold.cells([json.loads(p.read_text()) for p in registered.glob("*-0.json")], {})
    assert len(found) == 2 and hold.score(found)["learned"] == 0, "30 steps teach nothing"


def test_logits_that_grow_with_the_row_predict_more(registered, tmp_path):
    list(collection.make(tmp_path / "store"))
    first, _ = collection.HOLD.plan.jobs(corpus())
    scale = first.configuration.layers[1].mechanism.scale
    assert rise(scale, 1, 16, 256, 16) == pytest.approx(2)
    assert rise(scale, 1, 4, 256, 16) == pytest.approx(4)
    assert rise(replace(scale, when="inference"), 1, 16, 4, 16) == 1
    assert rise(replace(scale, heads=(2,)), 1, 16, 256, 16) == 1
    assert rise(None, 1, 16, 256, 16) == 1


def cell(name="a", home=1.0, measured=(0.4, 0.2), predicted=(0.5, 0.2), far=0.8, said=0.3, **more):
    row = {"name": name, "family": "kind", "home": home, "trained": 0.9, "used": None}
    row |= {"measured": measured, "predicted": predicted, "accuracy": [1.0] * len(measured)}
    return row | {"far": far, "decided": abs(far - 0.5) >= 0.1, "far_attention": said} | more


def test_the_score_of_made_up_results():
    found = [
        cell("right", used=True),
        cell("wrong", far=0.1, said=0.25, measured=(0.0, 0.0), predicted=(0.5, 0.3), used=False),
        cell("not learned", home=0.89, far=0.0, predicted=(1.0, 1.0)),
    ]
    score = hold.score(found)
    assert (score["cells"], score["learned"], score["not_learned"]) == (3, 2, ["not learned"])
    assert score["attention"]["error"] == pytest.approx((0.05 + 0.4) / 2)
    assert score["attention"]["worst_cell"] == ("wrong", pytest.approx(0.4))
    assert score["attention"]["constant"] == pytest.approx(0.15)
    assert score["attention"]["as at the training length"] == pytest.approx((0.6 + 0.9) / 2)
    rights = {name: (r["right"], r["of"]) for name, r in score["used"].items()}
    assert rights["attention from 1/4"] == (1, 2) == rights["always used"]
    assert rights["attention from 1/2"] == (1, 2)
    assert rights["formula alone"] == (2, 2)
    assert score["points"] == {"right": 3, "of": 4, "always": 4}
    assert score["wrong"] == ["wrong"]
    near = cell("near", far=0.45, said=0.3)
    assert hold.score([*found, near])["used"]["attention from 1/4"] == {"right": 1, "of": 3}
    assert hold.score([*found, near])["decided"] == {"right": 1, "of": 2, "always": 1}
    assert score["holds"] == {"attention": False, "used": False}
    good = hold.score([found[0], found[0] | {"name": "same", "used": None}])
    assert good["holds"] == {"attention": True, "used": True}
    assert good["used"]["formula alone"]["of"] == 1


def test_the_registered_predictions_are_of_the_plan():
    said = HOLD.predictions
    assert said["plan_sha256"] == sha256(HOLD.folder / "plan.toml")
    for bias, distance in (("-n/32", 250), ("0", 1000), ("-2*n", 60)):
        price = price_of_distance(bias, distance, length=1024).value
        assert said["prices"][bias]["1024"][str(distance)] == pytest.approx(price, rel=1e-5)
    slope = said["prices"]["-n/32"]["1024"]
    others = 1 / (1 - math.exp(-1 / 32))
    for far in (60, 250, 1000):
        assert slope[str(far)] == pytest.approx(far / 32 + math.log(others), rel=0.05)
    assert said["prices"]["0"]["1024"]["1000"] == pytest.approx(math.log(1023), abs=1e-5)


def test_language_models_are_scored_by_their_largest_ratio(monkeypatch):
    last = [("last token", 64, 1.0), ("last token", 1024, 1.2), ("non-overlapping", 1024, 3.0)]
    perplexity = [{"protocol": p, "length": n, "ratio": r} for p, n, r in last]
    result = {
        "name": "English: 1 head 1, 64, 0",
        "seed": 0,
        "measurements": [{"perplexity": perplexity}],
    }
    monkeypatch.setattr(Registration, "results", lambda registration: (result,))
    (found,) = hold.scored()["loss"].values()
    assert found["log_ratio"] == pytest.approx(math.log(1.2), abs=1e-5)
    assert set(found["said"]) == {"law", "mended"}
