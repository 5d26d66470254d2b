"""What is written of made-up answers in each form, and what verbs that start other programs hand to
them: every word beside what was asked."""

import json
import os
import re
import time

import pytest
from cyclopts import Token

import farfield.progress_bar as bars
from farfield.cli import main
from farfield.commands.explore import require_port
from farfield.commands.training import ModelOptions
from farfield.options import Count, CountFrom0, CountOrNone, Kept, Output
from farfield.output import lay_out, reading, write_answers, write_rows
from farfield.theory.encodings import CATALOGUE
from farfield.validation.harness import runs as engines
from farfield.validation.harness.settings import settle


class Said:
    """An answer that says how it was asked to write itself."""

    def __init__(self, name, status="exact"):
        self.name, self.status, self.asked = name, status, []

    def text(self, **how):
        self.asked.append(how)
        return self.name

    def to_dict(self):
        return {"name": self.name}

    def csv(self):
        return f"csv of {self.name}"

    def latex(self):
        return f"latex of {self.name}"


def test_answers_are_written_in_the_form_that_is_asked_for(capsys):
    one, other = Said("a − b"), Said("c", "unknown")

    def written(answers, *after, **form):
        code = write_answers(answers, Output(**form), *after)
        assert code == (other in answers if isinstance(answers, list | tuple) else 0)
        return capsys.readouterr().out

    assert written([one, other, one], "below") == "a − b\n\nc\nbelow\n", "what is alike once"
    assert written(one, "below", json=True) == '{\n  "name": "a − b"\n}\n'
    assert written([one], json=True) == written(one, json=True)
    assert json.loads(written((one,), json=True)) == [{"name": "a − b"}]
    assert json.loads(written([one, other], json=True, ascii=True))[1] == {"name": "c"}
    assert written(one, json=True, ascii=True).isascii()
    assert written([one], csv=True) == "csv of a − b\n"
    assert written([other], latex=True) == "latex of c\n"
    for form in ({}, {"proof": True}, {"ascii": True}, {"proof": True, "ascii": True}):
        written(one, **form)
        how = one.asked[-1]
        assert how["details"] is form.get("proof", False)
        assert how["unicode"] is not form.get("ascii", False)
    kept = Kept()
    write_answers([one, other], kept, "below")
    assert kept.answers == [one, other] and capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "line", ["check -log(1+n)^2", "trf -n/8", "atlas type1", "claims qin2024.eq13"]
)
def test_plain_ascii_is_plain_ascii(run, line):
    assert not run(*line.split())[1].isascii() and run(*line.split(), "--ascii")[1].isascii()


def test_a_list_is_written_in_the_form_that_is_asked_for(capsys, monkeypatch):
    rows, header = [("a", "one", "x y"), ("bcd", "t", "z")], ("k", "v", "w")
    write_rows(header, rows, Output())
    assert capsys.readouterr().out == "a    one  x y\nbcd  t    z\n"
    write_rows(header, rows, Output(json=True))
    named = [dict(zip(header, row, strict=True)) for row in rows]
    assert json.loads(capsys.readouterr().out) == named
    write_rows(header[:2], [row[:2] for row in rows], Output(json=True))
    assert json.loads(capsys.readouterr().out) == {"a": "one", "bcd": "t"}
    write_rows(header, rows, Output(csv=True))
    assert capsys.readouterr().out.split() == ["k,v,w", "a,one,x", "y", "bcd,t,z"]
    write_rows(header, rows, Output(latex=True))
    assert r"\toprule" in capsys.readouterr().out
    kept = Kept()
    write_rows(header, rows, kept)
    assert kept.answers == [named] and not kept.is_text and Output().is_text
    monkeypatch.setenv("COLUMNS", "14")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    lay_out(rows)
    assert capsys.readouterr().out == "a    one  x y\nbcd  t    z\n"
    lay_out([("ab", "c", "d-e fg hi jk")])
    assert capsys.readouterr().out == "ab  c  d-e fg\n       hi jk\n"


def test_what_a_reading_says_first(tmp_path):
    said = "reads {} on {}, times its first rows; Ctrl-C stops it, {}".format
    source = "the text of its run, or the source of Python's library"
    assert reading("a/b", None) == said("a/b", source, "nothing is kept")
    goes_on = "the same command goes on from out"
    assert reading(str(tmp_path), None) == reading("a/b/c", None) == reading("owner", None) == ""
    for name, model in (("run.json", "."), ("config.json", "."), ("m.gguf", "m.gguf")):
        place = tmp_path / name[0]
        place.mkdir()
        (place / name).write_text("{}")
        assert reading(str(place / model), "t", "out") == said(place / model, "t", goes_on)


def test_a_bar_shows_each_report(monkeypatch, capsys):
    shown = []

    class Bars:
        console = type("", (), {"print": lambda self, line, markup: shown.append((line, markup))})()

        def start(self):
            shown.append("start")

        def stop(self):
            shown.append("stop")

        def add_task(self, what, total):
            shown.append((what, total))
            return 7

        def update(self, task, **how):
            shown.append((task, how))

    monkeypatch.setattr(bars, "_bars", Bars)
    monkeypatch.setattr(bars._Bar, "wait", 0.01)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with bars.progress("work", "at first") as step:
        step("early", 0, 0)
        step("[half]", 1, 2, "loss 2")
        while len(shown) < 4:
            time.sleep(0.01)
        step("late", 0, 0)
        step("", 1, 1)
        while shown[-1][1].get("total", 9) is not None if shown[-1][0] == 7 else True:
            time.sleep(0.01)
    assert shown[:2] == ["start", ("work", None)]
    assert shown[2] == (7, {"description": "work: [half] (loss 2)", "completed": 1, "total": 2})
    assert ("work: late", False) in shown and shown[-1] == "stop"
    assert shown[-2] == (7, {"description": "work", "completed": 1, "total": None})
    assert capsys.readouterr().err == "work: at first\nwork: early\n"


def test_each_option_of_a_training_is_a_setting_of_its_run():
    usual, given = ModelOptions().run(None), {"layers": 3, "width": 48, "batch": 5, "steps": 7}
    assert usual == settle("demo", {"encoding": "nope"})
    given |= {"lr": 0.5, "precision": "bfloat16", "length": 24, "seed": 9, "text": "t"}
    found = ModelOptions(
        preset="tiny", tested="64,1k", window=6, protocol="a.py:f,b.py:g", **given
    ).run(4)
    assert {name: getattr(found, name) for name in given} == given
    assert (found.preset, found.heads, found.encoding) == ("tiny", 4, "nope")
    measure = found.measure
    assert ([*measure.lengths], [*measure.windows]) == ([64, 1024], [6])
    assert [*measure.protocols] == ["a.py:f", "b.py:g"]


def test_each_count_begins_where_its_option_says(refusal, run):
    for kind, least in ((Count, 1), (CountOrNone, 1), (CountFrom0, 0)):
        (parameter,) = kind.__metadata__
        read = parameter.converter
        assert [read(None, [Token(value=f"{least + k}")]) for k in (0, 1)] == [least, least + 1]
        refusal("--to", read, None, [Token(keyword="--to", value=f"{least - 1}")])
    listed = json.loads(run("atlas", "--json")[1])
    assert [one["name"] for one in listed] == [*CATALOGUE]


PLAN = "[[runs]]\npreset = 'tiny'\nencoding = 'nope'\n"


def test_a_sweep_hands_its_options_to_the_engine_that_is_asked_for(
    run, complaint, tmp_path, monkeypatch
):
    asked = []

    def engine(name):
        def started(every, folder, **how):
            how.pop("progress", None)
            asked.append((name, len(every), folder, how))
            return iter(())

        return started

    for name in ("local", "on_ray"):
        monkeypatch.setattr(engines, name, engine(name))
    (tmp_path / "plan.toml").write_text(PLAN)
    monkeypatch.chdir(tmp_path)
    for words in (
        (),
        ("--workers", "3", "--device", "cpu", "--runs", "r"),
        ("--engine", "ray"),
        *[("--engine", "ray", "--address", "a", "--cpus-per-job", "2", "--gpus-per-job", "0.5")],
    ):
        _, _, err = run("sweep", "plan.toml", *words)
        assert len(asked) and "1 run of" in err, err
    assert asked == [
        ("local", 1, "runs", {"device": "auto", "workers": 1}),
        ("local", 1, "r", {"device": "cpu", "workers": 3}),
        ("on_ray", 1, "runs", {"address": None, "cpus": 1, "gpus": 0}),
        ("on_ray", 1, "runs", {"address": "a", "cpus": 2, "gpus": 0.5}),
    ]
    for words in (
        *(("--address", "a"), ("--cpus-per-job", "1"), ("--gpus-per-job", "1")),
        *(("--engine", "ray", *more) for more in (("--device", "cpu"), ("--workers", "2"))),
    ):
        said = complaint("sweep", "plan.toml", *words)
        assert re.search("belong to --engine (ray|local)", said), words
    assert len(asked) == 4


class Started(BaseException):
    """Another program takes over."""


@pytest.mark.parametrize(
    ("words", "begin", "end"),
    [
        (["--port", "27180"], ["run"], ["--port", "27180", "--no-token"]),
        (["-n", "--headless"], ["run"], ["--no-token", "--", "--formula=-n"]),
    ],
)
def test_the_explorer_starts_with_what_was_asked(words, begin, end, monkeypatch, capsys):
    pytest.importorskip("marimo")

    def execv(program, line):
        raise Started(line)

    monkeypatch.setattr(os, "execv", execv)
    monkeypatch.setattr("webbrowser.get", lambda: None)
    with pytest.raises(Started) as started:
        main(["explore", *words])
    (line,) = started.value.args
    quiet = line.index("--quiet")
    assert line[quiet + 1 : quiet + 1 + len(begin)] == begin and line[-len(end) :] == end
    assert ("--headless" in line) is ("--headless" in words)
    port = words[1] if words[0] == "--port" else "2718"
    assert f"http://127.0.0.1:{port} " in capsys.readouterr().out


def test_ports_that_a_user_may_have(refusal):
    for port in (0, 80, 1023, 65536):
        refusal(f"--port {port}: accepted are ports from 1024 to", require_port, port)
    require_port(1024)
    require_port(65535)
