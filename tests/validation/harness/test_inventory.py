import shutil
import subprocess
import sys

import pytest

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding
from farfield.validation.harness.configuration import Configuration, key
from farfield.validation.harness.experiment import train_and_measure
from farfield.validation.harness.store import Store, finished_run, inventory
from farfield.validation.json_files import read_json, write_json


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


def test_every_run_is_listed_with_its_state(store, speaks):
    runs = inventory(store).runs
    assert sorted(r["state"] for r in runs) == ["finished", "finished", "set aside", "unfinished"]
    finished = [r for r in runs if r["state"] == "finished"]
    assert {(r["encoding"], r["preset"], r["seed"], r["steps"]) for r in finished} == {
        ("rope", "small", 0, 12),
        ("rope", "small", 1, 12),
    }
    for run in finished:
        (path,) = store.folder(run["key"]).glob("measurement-*")
        (last,) = (
            p
            for p in read_json(path)["perplexity"]
            if (p["protocol"], p["length"]) == ("last token", 40)
        )
        assert run["ratios"] == [("causal", 40, last["ratio"])]
    (killed,) = (r for r in runs if r["state"] == "unfinished")
    assert killed["steps"] == 4 and killed["loss"] is None
    assert (killed["encoding"], killed["formula"]) == ("type1 (paper)", "-2*log(n + 1)")
    assert (killed["preset"], killed["seed"], killed["length"]) == (
        "small",
        0,
        finished[0]["length"],
    )
    assert speaks(inventory(store)) == "4 runs: 2 finished, 1 set aside, 1 unfinished."
    assert len(inventory(store).blocks()[1].rows) == 4


def test_a_run_is_named_by_its_first_digits(store):
    keys = [r["key"] for r in inventory(store).runs if r["state"] == "finished"]
    assert finished_run(store, keys[0][:8]).name == keys[0]
    wrongs = {
        "": "names several finished runs",
        "f" * 16: "names no finished run",
        "runs/x": "is no key",
    }
    for wrong, message in wrongs.items():
        with pytest.raises(InputError, match=message):
            finished_run(store, wrong)


def test_damaged_and_foreign_runs_are_listed(store):
    first, second, *_ = (r for r in inventory(store).runs if r["state"] == "finished")
    (store.folder(first["key"]) / "training.json").write_text("{")
    write_json(store.folder(second["key"]) / "training.json", {"of": "another program"})
    notes = {r["key"]: r["note"] for r in inventory(store).runs if r["state"] == "corrupted"}
    assert "is not readable" in notes[first["key"]]
    assert notes[second["key"]] == "written by another version"


def test_runs_without_names_say_what_they_computed(store):
    (run, *_) = (r for r in inventory(store).runs if r["state"] == "finished")
    record = read_json(store.folder(run["key"]) / "training.json")
    del record["labels"]
    write_json(store.folder(run["key"]) / "training.json", record)
    (found,) = (r for r in inventory(store).runs if r["key"] == run["key"])
    assert (found["encoding"], found["preset"]) == ("rotation", "2x32")


def test_losses_that_are_no_numbers_are_refused(text, small, tmp_path):
    """Finite in training, above what float32 holds at longer distances."""
    with pytest.raises(InputError, match="not finite"):
        train_and_measure(Configuration(encoding("exp(n)*10**30"), text, small), Store(tmp_path))


WRITER = """
import shutil, sys
from pathlib import Path
root, source = Path(sys.argv[1]), Path(sys.argv[2])
for k in range(150):
    shutil.copytree(source, root / f"{k:016x}")
    if k % 3 == 0:
        shutil.rmtree(root / f"{k:016x}")
"""


def test_listings_beside_a_writer(store, tmp_path):
    """Runs appear and vanish while they are listed; in the end the listing is what is there."""
    (one, *_) = (r["key"] for r in inventory(store).runs if r["state"] == "finished")
    source = tmp_path / "source"
    shutil.copytree(store.folder(one), source)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, store.root, source])
    seen = 0
    while writer.poll() is None:
        found = inventory(store).runs
        assert {r["state"] for r in found} <= {"finished", "unfinished", "set aside", "corrupted"}
        seen = max(seen, len(found))
    assert writer.returncode == 0 and seen >= 4
    runs = inventory(store).runs
    assert len(runs) == 4 + 100 and [r["state"] for r in runs].count("finished") == 2 + 100


def test_a_store_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        inventory(Store(tmp_path / "none"))
