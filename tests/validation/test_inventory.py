import json
import os
import time

import pytest

from farfield.theory.encodings import encoding
from farfield.theory.results import InputError
from farfield.validation.configuration import Configuration, key
from farfield.validation.experiment import train_and_measure
from farfield.validation.inventory import Trained, compare, inventory, prunable, prune
from farfield.validation.runs import Store, read_json, write_json


class Killed(Exception):
    pass


def stop(stage, done, total, note):
    if stage == "train" and done == 5:
        raise Killed


@pytest.fixture
def store(text, small, tmp_path):
    """Two finished runs, one killed, one set aside."""
    store = Store(tmp_path / "runs")
    for name, seed in (("rope", 0), ("rope", 1)):
        train_and_measure(Configuration(encoding(name), text, small, seed), store)
    killed = Configuration(encoding("type1"), text, small)
    with pytest.raises(Killed):
        train_and_measure(killed, store, stop, 0)
    aside = Configuration(encoding("type2"), text, small)
    with store.locked(key(aside.training())):
        store.set_aside(key(aside.training()))
    (store.folder(key(aside.training()))).rmdir()
    return store


def test_every_run_is_listed_with_its_state(store):
    runs = inventory(store).runs
    assert sorted(r.state for r in runs) == ["finished", "finished", "set aside", "unfinished"]
    finished = [r for r in runs if r.state == "finished"]
    assert {(r.encoding, r.preset, r.seed, r.steps) for r in finished} == {
        ("rope", "small", 0, 12),
        ("rope", "small", 1, 12),
    }
    for run in finished:
        (path,) = store.folder(run.key).glob("measurement-*")
        measured = read_json(path)["perplexity"]
        assert [r[3] for r in run.ratios] == [p["ratio"] for p in measured]
        assert run.size == sum(p.stat().st_size for p in store.folder(run.key).iterdir())
    (killed,) = (r for r in runs if r.state == "unfinished")
    assert killed.steps == 4 and killed.loss is None
    text = str(inventory(store))
    assert len(text.splitlines()) == 4 and "[measured]" in text
    json.dumps(inventory(store).to_dict(), allow_nan=False)


def test_runs_are_compared_where_they_differ(store):
    keys = [r.key for r in inventory(store).runs if r.state == "finished"]
    found = compare(store, [k[:8] for k in keys])
    assert [name for name, _ in found.differences] == ["seed"]
    assert {len(values) for _, values in found.ratios} == {2}
    assert ("causal", "last token", 40) in dict(found.ratios)
    assert "seed" in str(found) and "last token 40, causal [measured]" in str(found)
    for wrong, message in (("", "names several"), ("nothing", "names no finished run")):
        with pytest.raises(InputError, match=message):
            compare(store, [wrong, keys[0]])


def test_pruning_spares_what_is_finished_or_held(store):
    chosen = prunable(store)
    assert {r.state for r in chosen} == {"unfinished", "set aside"}
    (killed,) = (r for r in chosen if r.state == "unfinished")
    assert prunable(store, older_than_days=1) == ()
    old = time.time() - 2 * 86_400
    for path in store.folder(killed.key).iterdir():
        os.utime(path, (old, old))
    assert [r.key for r in prunable(store, older_than_days=1)] == [killed.key]
    with store.locked(killed.key):
        assert {r.state for r in prune(store, chosen)} == {"set aside"}
    assert prune(store, chosen[:0]) == ()
    assert [r.key for r in prune(store, [killed])] == [killed.key]
    assert [r.state for r in inventory(store).runs] == ["finished"] * 2


def test_a_run_that_was_finished_meanwhile_is_not_removed(store, text, small):
    (killed,) = (r for r in prunable(store) if r.state == "unfinished")
    train_and_measure(Configuration(encoding("type1"), text, small), store)
    assert prune(store, [killed]) == ()


def test_damaged_and_foreign_runs_are_listed(store):
    first, second, *_ = (r for r in inventory(store).runs if r.state == "finished")
    (store.folder(first.key) / "training.json").write_text("{")
    write_json(store.folder(second.key) / "training.json", {"of": "another program"})
    notes = {r.key: r.note for r in inventory(store).runs if r.state == "corrupted"}
    assert "is not readable" in notes[first.key]
    assert notes[second.key] == "written by another version"
    with pytest.raises(InputError, match="cannot be compared"):
        compare(store, [first.key, first.key])


def test_runs_without_names_say_what_they_computed(store):
    (run, *_) = (r for r in inventory(store).runs if r.state == "finished")
    record = read_json(store.folder(run.key) / "training.json")
    del record["labels"]
    write_json(store.folder(run.key) / "training.json", record)
    (found,) = (r for r in inventory(store).runs if r.key == run.key)
    assert (found.encoding, found.preset) == ("rotation", "2x32")


def test_perplexities_that_are_no_numbers_are_shown(text, small, tmp_path):
    """Finite in training, above what float32 holds at longer distances."""
    store = Store(tmp_path)
    result = train_and_measure(Configuration(encoding("exp(n)*10**30"), text, small), store)
    assert "nan" in {p["ratio"] for m in result["measurements"] for p in m["perplexity"]}
    assert "xnan" in str(Trained(result)) and "xnan at 40" in str(inventory(store))
    json.dumps(inventory(store).to_dict(), allow_nan=False)


def test_many_runs_are_listed_fast(store):
    """A thousand links to one run; a millisecond each."""
    (run, *_) = (r for r in inventory(store).runs if r.state == "finished")
    for k in range(1000):
        (store.root / f"{k:016x}").symlink_to(store.folder(run.key))
    began = time.process_time()
    assert len(inventory(store).runs) == 1004
    assert time.process_time() - began < 10


def test_a_store_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        inventory(Store(tmp_path / "none"))
