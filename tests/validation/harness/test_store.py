import itertools
import json
import os
import subprocess
import sys

import pytest

from farfield.theory.answers.answer import InputError
from farfield.validation.harness.store import Store
from farfield.validation.json_files import CorruptFile, read_json, write, write_json


def test_json_comes_back(tmp_path):
    value = {"b": [1, 2.5, None], "a": {"é": "x"}}
    write_json(tmp_path / "a.json", value)
    assert read_json(tmp_path / "a.json") == value


def test_files_laid_out_by_earlier_versions_are_read(tmp_path):
    value = {"b": [1, 2.5, None], "a": {"é": "x"}}
    write_json(tmp_path / "a.json", value)
    sealed = json.loads((tmp_path / "a.json").read_bytes())
    laid_out = json.dumps(
        {k: sealed[k] for k in ("b", "a", "sha256")}, indent=1, ensure_ascii=False
    )
    (tmp_path / "a.json").write_text(laid_out, encoding="utf-8")
    assert read_json(tmp_path / "a.json") == value
    (tmp_path / "a.json").write_text(laid_out.replace("2.5", "2.6"), encoding="utf-8")
    with pytest.raises(CorruptFile, match="changed"):
        read_json(tmp_path / "a.json")


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: b"",
        lambda text: text.replace(b"1.25", b"1.26"),
        lambda text: text.replace(b"1.25", b"1e999"),
        lambda text: text.replace(b"1.25", b"NaN"),
        lambda text: b"[]",
        lambda text: b"\xff\xfe",
    ],
)
def test_damage_is_noticed(tmp_path, damage):
    path = tmp_path / "a.json"
    write_json(path, {"perplexity": 1.25})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CorruptFile, match=r"a\.json"):
        read_json(path)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    write(tmp_path / "a", b"old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(InputError, match="cannot be written: No space left"):
        write(tmp_path / "a", b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_kill_leaves_whole_files_and_a_free_lock(forked, tmp_path):
    def write_on(tell):
        with Store(tmp_path).locked("run") as folder:
            for k in itertools.count():
                write_json(folder / "a.json", {"k": k, "filler": [k] * 2000})
                tell(k)

    for k in (20, 23, 31):
        forked(write_on).kill_at(k)
        with Store(tmp_path).locked("run") as folder:
            value = read_json(folder / "a.json")
            assert value["filler"] == [value["k"]] * 2000
            assert [p.name for p in folder.iterdir()] == ["a.json"]


HOLDER = """
import sys
from farfield.validation.harness.store import Store
with Store(sys.argv[1]).locked("run"):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_one_process_at_a_time(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()

        def waiting():
            heard.append(process.poll())
            process.stdin.close()

        heard = []
        with Store(tmp_path).locked("run", waiting):
            assert process.wait(10) == 0
        assert heard == [None]  # it was alive when we began to wait
        with Store(tmp_path).locked("other", lambda: heard.append("never")):
            pass
        assert heard == [None]


def test_setting_aside_deletes_nothing(tmp_path):
    store = Store(tmp_path)
    for number in (1, 2):
        with store.locked("run") as folder:
            (folder / "a").write_text(str(number))
            place = store.set_aside("run")
            assert place.name == f"run.corrupt-{number}" and list(folder.iterdir()) == []
            assert (place / "a").read_text() == str(number)


def test_a_store_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text(json.dumps({}))
    with (
        pytest.raises(InputError, match="cannot be written to"),
        Store(tmp_path / "file").locked("a"),
    ):
        pass
