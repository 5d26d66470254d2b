import json

import pytest

from farfield.cli import main


def run(capsys, *args):
    with pytest.raises(SystemExit) as stop:
        main(list(args))
    captured = capsys.readouterr()
    return stop.value.code, captured.out, captured.err


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "words.txt"
    path.write_text("one word after another, " * 4000)
    return str(path)


def test_train_and_list(capsys, source, tmp_path, monkeypatch):
    monkeypatch.setattr("farfield.progress_bar.QUIET_S", 0)
    folder = str(tmp_path / "runs")
    shared = ("--preset", "tiny", "--runs", folder, "--text", source)
    code, out, _ = run(capsys, "train", "-2*log(1+n)", *shared, "--json")
    first = json.loads(out)["run"]["key"]
    assert code == 0
    code, out, err = run(
        capsys, "train", "rope", *shared, "--seed", "1", "--device", "cpu", "--progress"
    )
    assert code == 0 and "rope: train (loss" in err
    assert "inference: bca 8" in out and "[measured" in out
    code, out, _ = run(capsys, "train", "rope", *shared, "--seed", "1")
    assert code == 0 and "0 violated" in out
    code, out, _ = run(capsys, "runs", "--runs", folder, "--json")
    keys = [r["key"] for r in json.loads(out)["runs"]]
    assert code == 0 and first in keys and len(keys) == 2
    assert run(capsys, "runs", "--runs", folder)[1].startswith("2 runs: 2 finished.")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("train", "alibi", "--preset", "none"), "preset 'none' is not known"),
        (("train", "alibi", "--device", "tpu", "--preset", "tiny"), "device 'tpu' is not known"),
        (("train", "fox", "--preset", "tiny"), "fox cannot be trained here"),
        (("train", "alibi", "--text", "/nowhere"), "'/nowhere' does not exist"),
        (("runs", "--runs", "nowhere"), "cannot be read"),
    ],
)
def test_one_clear_line(capsys, args, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = run(capsys, *args)
    assert code == 2 and message in err and len(err.splitlines()) == 1
    assert not list(tmp_path.rglob("*.json"))
