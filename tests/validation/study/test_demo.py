"""The demonstration: theory at once, then one trained model after the other, none twice."""

import json
import re

import pytest

from farfield.validation import optional
from farfield.validation.study import demo
from farfield.validation.study.demo import COLUMNS, demonstration, predicted, row


@pytest.fixture(scope="module", params=[1, pytest.param(2, marks=pytest.mark.slow)])
def steps(request, tmp_path_factory):
    """The studies, their runs, and what is told."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "WORKERS", request.param)
        told = []
        how = {"preset": "tiny", "notice": lambda *said: told.append((*said, "")[:4])}
        store = tmp_path_factory.mktemp("demonstration")
        yield list(demonstration("-2*log(1+n)", store, **how)), store, told


def test_the_theory_comes_first_and_then_a_model_at_a_time(steps):
    studies, *_ = steps
    assert [len(study.trained) for study in studies] == [0, 1, 2, 3]
    assert [e.prediction.name for e in studies[0].entries] == ["-2*log(1+n)", "nope", "alibi"]
    assert studies[0].settings["steps"] == 30
    assert predicted(studies[0].entries[0]).startswith("-2*log(1+n): the series converges")


def test_each_model_says_its_loss_and_its_time_and_steps_are_reported(steps):
    studies, _, told = steps
    notes = [note for _, _, total, note in told if total == 0 and "of 3 models" in note]
    assert not any(done for _, done, total, _ in told if total == 0)
    assert len(notes) == len(studies[-1].trained)
    for k, note in enumerate(notes, 1):
        form = rf", loss \d\.\d{{3}} nats after 30 steps in \d+ s; {k} of 3 models$"
        assert re.search(form, note)
    theory = [each[:3] for each in told if each[0].endswith((": theory", ": done"))]
    names = ("-2*log(1+n)", "nope", "alibi")
    assert theory == [(f"{n}: {x}", k, 1) for n in names for k, x in enumerate(("theory", "done"))]
    assert any(stage.endswith("train") and total for stage, _, total, _ in told)
    if demo.WORKERS > 1:
        assert {total for stage, _, total, _ in told if stage.endswith("train")} == {90}


def test_the_verb_shows_each_model_once_as_it_is_trained(steps, run, tmp_path, monkeypatch):
    """In columns: the name, 8 to 28 wide, then 9, 7, 7 and 8."""
    studies, *_ = steps
    opened = []
    monkeypatch.setattr(demo, "demonstration", lambda *_, **__: iter(studies))
    monkeypatch.setattr("farfield.figures.answer_pages.write_study", lambda _, at: at / "a.html")
    monkeypatch.setattr("webbrowser.open", opened.append)
    code, out, _ = run("demo", "-2*log(1+n)", "--out", tmp_path)
    last = studies[-1]
    lines = [predicted(e) for e in last.entries]
    lines.append(f"page, written again after each model: {tmp_path}/a.html")
    ready = {e.prediction.name: e for study in studies for e in study.trained}  # in this order
    for name, *cells, measured in (COLUMNS, *map(row, ready.values())):
        padded = zip(cells, (9, 7, 7, 8), strict=True)
        columns = "".join(f"{cell:<{width}}  " for cell, width in padded)
        lines.append(f"{name:<11}  {columns}{measured}".rstrip())
    for formula, wide in (("nope", 8), ("-log(1+n)-log(1+log(1+n))/1000", 28)):
        shown = run("demo", formula, "--out", tmp_path)[1]
        assert (
            f"\n{'nope':<{wide}}  diverges " in shown
            and f"\n{'encoding':<{wide}}  series " in shown
        )
    lines += demo.LEGEND.splitlines()
    (own,) = last.about(asked=True)
    said = "\n".join([*lines, own.prediction.beside.text()])
    assert out.rstrip().splitlines() == said.rstrip().splitlines()
    assert (code, opened) == (0, [])
    with monkeypatch.context() as without:
        without.setattr(type(own.prediction.beside), "text", lambda self: "")
        assert run("demo", "-2*log(1+n)", "--out", tmp_path)[1].splitlines() == lines
    found = json.loads(run("demo", "-2*log(1+n)", "--out", tmp_path, "--json")[1])
    assert found == json.loads(last.to_json())
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    run("demo", "-2*log(1+n)", "--out", tmp_path, "--no-open")
    run("demo", "--bias", "-2*log(1+n)", "--out", tmp_path)
    assert opened == [(tmp_path / "a.html").as_uri()]


def test_a_class_is_trained_under_the_name_of_its_values(tmp_path, monkeypatch):
    asked, told = [], []

    def local(runs, folder, **how):
        asked.append(([(run.label, run.encoding) for run in runs], folder, how["workers"]))
        return iter(())

    monkeypatch.setattr(demo, "WORKERS", 5)
    monkeypatch.setattr("farfield.validation.harness.runs.local", local)
    monkeypatch.setattr("farfield.validation.harness.runs.job_of", lambda run: None)
    monkeypatch.setattr(demo, "spec_of", lambda module, folder: f"{folder}/{module.__name__}")
    for module, spec in ((type("Own", (), {}), f"{tmp_path}/own/Own"), ("o.py:Own", "o.py:Own")):
        [_] = demonstration("-n", tmp_path, module=module, notice=lambda *said: told.append(said))
        (own, nope, alibi), folder, workers = asked.pop()
        assert own == ("-n", spec) and (nope[0], alibi[0]) == ("nope", "alibi")
        assert (folder, workers) == (str(tmp_path), 5)
        assert told[-1] == ("", 0, 0, "3 models of 2 layers, 5 at a time")


def test_a_run_tells_its_last_loss():
    line = {"protocol": "training", "nats": 3.0, "steps": 5, "seconds": 1.0}
    last = line | {"nats": 1.23456, "steps": 1, "seconds": 9.6}
    other = {"protocol": "gradient", "nats": 0.0}
    told = demo.trained_in([line, line | {"nats": 2.0}, last, other])
    assert told == "loss 1.235 nats after 1 step in 10 s"


def test_what_is_trained_is_not_trained_again(steps):
    studies, store, _ = steps
    before = {path: path.stat().st_mtime_ns for path in store.rglob("*.safetensors")}
    again = list(demonstration("-2*log(1+n)", store, preset="tiny"))[-1]
    assert {path: path.stat().st_mtime_ns for path in store.rglob("*.safetensors")} == before
    assert [e.lines for e in again.entries] == [e.lines for e in studies[-1].entries]


def test_without_torch_the_theory_is_shown_and_how_to_get_the_rest(tmp_path, monkeypatch, run):
    present = optional.find_spec
    monkeypatch.setattr(
        optional, "find_spec", lambda name: None if name == "torch" else present(name)
    )
    code, out, err = run("demo", "-n/4", "--out", tmp_path)
    assert code == 2 and (tmp_path / "index.html").exists()
    assert "n/4: the series converges" in out and "nope: the series div" in out
    assert "pip install torch (farfield[train])" in err and len(err.splitlines()) == 1


def test_an_idea_that_is_a_baseline_is_shown_once(tmp_path):
    whole = next(demonstration("alibi", tmp_path))
    assert [entry.prediction.name for entry in whole.entries] == ["alibi", "nope"]
