import json
from types import SimpleNamespace

from farfield.validation.harness.corpus import corpus
from farfield.validation.harness.plan import parse_plan
from farfield.validation.reference import collection
from farfield.validation.reference.committed import place

TINY = {"encodings": ["alibi"], "presets": ["tiny"], "multiples": [1, 2]}


def jobs(**options):
    return parse_plan({"sweep": [{**TINY, **options}]}).jobs(corpus())


def test_more_steps_come_first_then_depth_then_longer_rows_and_other_seeds_last():
    plan = [
        *jobs(seeds=[1]),
        *jobs(widths=[64]),
        *jobs(),
        *jobs(lengths=[32]),
        *jobs(layers=[4]),
        *jobs(steps=[60]),
    ]
    assert sorted(plan, key=collection.order) == plan[:1:-1] + plan[1::-1]


def test_a_run_keeps_when_it_began_and_what_more_targets_say(tmp_path, monkeypatch):
    (job,) = jobs()
    monkeypatch.setattr(collection, "planned", lambda text: [([job], tmp_path / "results", "hash")])
    monkeypatch.setattr(collection, "targets", lambda length: 16)
    monkeypatch.setattr(collection, "write_outcomes", lambda: None)
    none = SimpleNamespace(folder=None, plan=SimpleNamespace(jobs=lambda text: []))
    monkeypatch.setattr(collection, "HOLD", none)
    store = tmp_path / "store"
    assert list(collection.make(store, train=False)) == [], "nothing is finished"
    assert list(collection.make(store)) == [f"{job.name}: finished"]
    assert list(collection.make(store)) == [], "what is committed is not made again"
    path = place(job, tmp_path / "results")
    found = json.loads(path.read_text())
    path.unlink()
    assert list(collection.make(store, train=False)) == [f"{job.name}: finished"]
    assert json.loads(path.read_text()) == found
    assert found["registered"] == "hash" == found["started"]["predictions"]
    assert found["started"]["time"].endswith("+00:00")
    rows = found["more_targets"]["causal"]
    assert [(p["length"], p["targets"]) for p in rows] == [(16, 16), (32, 16)]
    registered = [p for p in found["measurements"][0]["perplexity"] if p["length"] == 32]
    assert all(p["targets"] != 16 for p in registered), "the registered targets stay"


def test_a_longer_row_has_fewer_targets():
    assert collection.targets(64) == collection.targets(128) == 4096 == 2 * collection.targets(256)
