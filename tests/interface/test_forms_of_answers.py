"""What is written of made-up answers in each form, and what verbs that start other programs hand to
them: every word beside what was asked."""

import json
import math
import re
import threading
import types
import webbrowser
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from unittest.mock import ANY, Mock, call

import pytest
from cyclopts import Token
from matplotlib.figure import Figure

import farfield
import farfield.progress_bar as bars
from farfield.commands.explore import require_port
from farfield.commands.models import _page
from farfield.commands.pages import folder_name
from farfield.figures.exhibit import Data, Drawing
from farfield.figures.gallery import Gallery, named
from farfield.figures.index import INDEX
from farfield.options import Count, CountFrom0, CountOrNone, Kept, Output, Subject
from farfield.output import lay_out, reading, speaks_unicode, write_answers, write_rows
from farfield.theory.answers.blocks import table
from farfield.theory.encodings import CATALOGUE
from farfield.validation.harness.runs import RunState
from farfield.validation.harness.settings import settle
from farfield.validation.papers.claim import CHECKS
from farfield.validation.papers.ledger import claim


def said(name, status="exact"):
    """An answer that says how it was asked to write itself."""
    forms = {"text": name, "to_dict": {"name": name}}
    forms |= {form: f"{form} of {name}" for form in ("csv", "latex")}
    return Mock(status=status, **{f"{form}.return_value": told for form, told in forms.items()})


def test_answers_are_written_in_the_form_that_is_asked_for(capsys, monkeypatch):
    one, other = said("a − b"), said("c", "unknown")
    for name, value in (("columns", 77), ("in_colour", "red")):
        monkeypatch.setattr(f"farfield.theory.answers.blocks.{name}", lambda value=value: value)

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
        signs = {"details": form.get("proof", False), "unicode": not form.get("ascii", False)}
        one.text.assert_called_with(**signs, width=77, colour="red")
    one.to_dict.return_value = {"name": math.nan}
    with pytest.raises(ValueError, match="nan"):
        written(one, json=True)
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

    def written(count=3, **form):
        write_rows(header[:count], [row[:count] for row in rows], Output(**form))
        return capsys.readouterr().out

    named = [dict(zip(header, row, strict=True)) for row in rows]
    assert written() == "a    one  x y\nbcd  t    z\n"
    assert json.loads(written(json=True)) == named
    assert written(2, json=True) == '{\n  "a": "one",\n  "bcd": "t"\n}\n'
    assert written(csv=True).split() == ["k,v,w", "a,one,x", "y", "bcd,t,z"]
    assert r"\toprule" in written(latex=True)
    kept = Kept()
    write_rows(header, rows, kept)
    assert kept.answers == [named] and not kept.is_text and Output().is_text
    assert not any(Output(**{form: True}).is_text for form in ("json", "latex", "csv"))
    monkeypatch.setenv("COLUMNS", "14")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    lay_out(rows)
    assert capsys.readouterr().out == "a    one  x y\nbcd  t    z\n"
    lay_out([("ab", "c", "fgh de-fg hi")])
    assert capsys.readouterr().out == "ab  c  fgh\n       de-fg\n       hi\n"


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


@pytest.mark.parametrize("encoding", ["utf-8", "UTF-16", "ascii", "latin-1", None, "nonsense"])
def test_signs_of_mathematics_are_for_a_stream_that_takes_them(encoding, monkeypatch):
    monkeypatch.setattr("sys.stdout", types.SimpleNamespace(encoding=encoding))
    assert speaks_unicode(Output()) is (str(encoding)[:3].lower() == "utf")
    assert not speaks_unicode(Output(ascii=True)) and not speaks_unicode(Kept())


@pytest.mark.parametrize(
    ("report", "begins", "lines"),
    [
        (lambda at: (1, 60), (1,), [10, 30, 50]),
        (lambda at: (at, 60), (1,), [10, 20, 30, 40, 50]),
        (lambda at: (at // 25, 60), (1,), [10, 25, 45, 55]),
        (lambda at: (at % 25, 60), (1, 25, 50), [10, 20, 30, 40, 50]),
        (lambda at: (at, 60 + at // 25), (1, 25, 50), [10, 20, 30, 40, 50]),
    ],
)
def test_a_log_has_news_every_ten_seconds_and_a_line_every_twenty(
    report, begins, lines, monkeypatch
):
    """The time left is at the speed since the last report of the first two seconds, or since work
    of another size began."""
    clock, told = [0.0], []
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr(bars, "print_error", told.append)
    log = bars._Lines("work")
    log("a note", 0, 0)
    for second in range(60):
        clock[0] = float(second)
        log("half", *report(second), "loss 2.5")
        log.tick()
    wanted = ["work: a note"]
    for at in lines:
        done, total = report(at)
        begin = max(x for x in begins if x <= at)
        more = done - report(begin)[0]
        left = f", about {(total - done) * (at - begin) / more:.0f} s left" if more else ""
        wanted.append(f"work: half (loss 2.5), {done} of {total}; {at} s so far{left}")
    assert told == wanted


def test_progress_is_looked_at_after_a_while_and_then_often():
    for kind, first in ((bars._Bar, 2), (bars._Lines, 10)):
        shown = kind("work")
        shown.tick = Mock(side_effect=[None] * 3)
        shown.over = Mock(**{"wait.side_effect": [False, False, False, True]})
        shown.watch()
        assert shown.over.wait.mock_calls == [call(wait) for wait in (first, 0.2, 0.2, 0.2)]
        assert shown.tick.call_count == 3


def test_bars_are_on_standard_error_vanish_and_show_brackets_as_they_are():
    shown = bars._bars()
    assert shown.console.stderr and shown.live.transient
    text, _, passed = shown.columns
    assert (text.text_format, text.markup) == ("{task.description}", False)
    assert type(passed).__name__ == "TimeElapsedColumn"


def test_a_bar_shows_each_report(monkeypatch, capsys):
    shown = Mock(**{"add_task.return_value": 7})
    monkeypatch.setattr(bars, "_bars", lambda: shown)
    bar = bars._Bar("work")
    bar.close()
    bar("early", 0, 0)
    for report in (("[half]", 1, 2, "loss 2"), ("only", 0, 1), ("", 3, 9, "news"), ("", 1, 1)):
        bar(*report)
        bar.tick()
    bar("late", 0, 0, "of weight")
    bar.close()
    assert shown.mock_calls == [
        *(call.start(), call.add_task("work", total=None)),
        call.update(7, description="work: [half] (loss 2)", completed=1, total=2),
        call.update(7, description="work: only", completed=0, total=None),
        call.update(7, description="work: news", completed=3, total=9),
        call.update(7, description="work", completed=1, total=None),
        *(call.console.print("work: of weight", markup=False), call.stop()),
    ]
    assert capsys.readouterr().err == "work: early\n"


@pytest.mark.parametrize(("terminal", "kind"), [(True, bars._Bar), (False, bars._Lines)])
def test_progress_is_shown_from_its_opening_to_its_end(terminal, kind, monkeypatch, capsys):
    ticked, closed = threading.Event(), []
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(kind, "wait", 0.001)
    monkeypatch.setattr(kind, "tick", lambda self: ticked.set())
    monkeypatch.setattr(kind, "close", lambda self: closed.append(self))
    with bars.progress("work", "at first") as step:
        assert type(step) is kind and ticked.wait(60) and not closed
    assert step.over.is_set() and closed == [step]
    assert capsys.readouterr().err == "work: at first\n"


def test_each_count_begins_where_its_option_says(refusal, run):
    for kind, least in ((Count, 1), (CountOrNone, 1), (CountFrom0, 0)):
        (parameter,) = kind.__metadata__
        read = parameter.converter
        assert [read(None, [Token(value=f"{least + k}")]) for k in (0, 1)] == [least, least + 1]
        refusal("--to", read, None, [Token(keyword="--to", value=f"{least - 1}")])
        refusal("^the number 'x'", read, None, [Token(value="x")])
    listed = json.loads(run("atlas", "--json")[1])
    assert [one["name"] for one in listed] == [*CATALOGUE]


PLAN = "[[runs]]\npreset = 'tiny'\nencoding = 'nope'\n"


def test_a_sweep_hands_its_options_to_the_engine_that_is_asked_for(
    run, complaint, tmp_path, monkeypatch
):
    engines = Mock(**{f"{name}.return_value": () for name in ("local", "on_ray")})
    for name in ("local", "on_ray"):
        monkeypatch.setattr(f"farfield.validation.harness.runs.{name}", getattr(engines, name))
    (tmp_path / "plan.toml").write_text(PLAN)
    monkeypatch.chdir(tmp_path)
    for words in (
        (),
        ("--workers", "3", "--device", "cpu", "--runs", "r"),
        ("--engine", "ray"),
        *[("--engine", "ray", "--address", "a", "--cpus-per-job", "2", "--gpus-per-job", "0.5")],
    ):
        assert "1 run of" in run("sweep", "plan.toml", *words)[2]
    asked = settle("tiny", {"encoding": "nope"})
    assert engines.mock_calls == [
        call.local([asked], "runs", device="auto", workers=1, progress=ANY),
        call.local([asked], "r", device="cpu", workers=3, progress=ANY),
        call.on_ray([asked], "runs", address=None, cpus=1, gpus=0),
        call.on_ray([asked], "runs", address="a", cpus=2, gpus=0.5),
    ]
    for words in (
        *(("--address", "a"), ("--cpus-per-job", "1"), ("--gpus-per-job", "1")),
        *(("--engine", "ray", *more) for more in (("--device", "cpu"), ("--workers", "2"))),
    ):
        told = complaint("sweep", "plan.toml", *words)
        assert re.search("belong to --engine (ray|local)", told), words
    assert len(engines.mock_calls) == 4


@pytest.mark.parametrize(
    ("words", "begin", "end"),
    [
        (["--port", "27180"], ["run"], ["--port", "27180", "--no-token"]),
        (["-n", "--headless"], ["run"], ["--no-token", "--", "--formula=-n"]),
    ],
)
def test_the_explorer_starts_with_what_was_asked(words, begin, end, monkeypatch, run):
    monkeypatch.setattr("os.execv", starts := Mock(side_effect=SystemExit))
    monkeypatch.setattr("webbrowser.get", lambda: None)
    _, out, _ = run("explore", *words)
    _, line = starts.call_args.args
    quiet = line.index("--quiet")
    assert line[quiet + 1 : quiet + 1 + len(begin)] == begin and line[-len(end) :] == end
    assert ("--headless" in line) is ("--headless" in words)
    assert f"http://127.0.0.1:{words[1] if words[0] == '--port' else 2718} " in out
    monkeypatch.setattr("webbrowser.get", Mock(side_effect=webbrowser.Error))
    assert "no browser was found" in run("explore", *words)[2]
    assert "--headless" in starts.call_args.args[1]


def test_ports_that_a_user_may_have(refusal):
    for port in (0, 80, 1023, 65536):
        refusal(f"--port {port}: accepted are ports from 1024 to", require_port, port)
    require_port(1024)
    require_port(65535)


RUNS = (
    RunState(Path("1a"), "unfinished"),
    RunState(Path("2b"), "failed", "the disk is full"),
    RunState(Path("3c"), "finished"),
)


def test_runs_are_listed_by_label_with_their_state_and_why_they_failed(run, monkeypatch, tmp_path):
    asked = {"1a": ("z", 0), "2b": ("y", 4)}

    def settings(home):
        label, seed = asked[home.name]
        return settle("tiny", {"encoding": "nope", "label": label, "seed": seed, "length": 24})

    done = {"key": "3c", "state": "finished", "label": "y", "seed": 1, "loss": 2.5}
    monkeypatch.setattr("farfield.validation.harness.runs.asked_of", settings)
    monkeypatch.setattr("farfield.validation.harness.runs.listed", lambda folder: iter(RUNS))
    monkeypatch.setattr(
        "farfield.validation.harness.runs.rows_of", lambda home, *protocols: home.name
    )
    monkeypatch.setattr("farfield.validation.inventory.summary", lambda rows: done | {"key": rows})
    found = json.loads(run("runs", "--json")[1])["runs"]
    each = {"preset": "tiny", "trained": 24, "steps": 0}
    failed = {"key": "2b", "state": "failed", "label": "y", "seed": 4, "note": "the disk is full"}
    assert found == [
        done,
        each | failed,
        each | {"key": "1a", "state": "unfinished"} | {"label": "z", "seed": 0},
    ]
    monkeypatch.chdir(tmp_path)
    Path("abc").mkdir()
    assert json.loads(run("runs", "abc", "--json")[1])["runs"] == found, "a folder, and no key"


def test_a_training_that_fails_says_which_and_why(run, monkeypatch, tmp_path):
    def train(asked, *, notice, **_):
        notice("begins", 0, 0)
        raise farfield.InputError("not trained")

    monkeypatch.setattr("farfield.validation.study.one_run.train", train)
    formula = f"-n/1{'0' * 50}"
    asked = ("train", formula, "--preset", "tiny", "--length", "2", "--tested", "2")
    code, out, err = run(*asked, "--runs", tmp_path)
    _, begins, why = err.splitlines()
    assert (code, out, begins) == (2, "", f"train: {formula[:40]}: begins")
    assert why == "farfield: not trained"


@pytest.mark.parametrize(("proved", "reason"), [(True, None), (False, "no prover is here")])
def test_a_certificate_says_whether_it_is_checked(run, monkeypatch, tmp_path, proved, reason):
    found = types.SimpleNamespace(proved=proved, reason=reason)
    monkeypatch.setattr("farfield.verify_certificate", lambda name: found)
    place = tmp_path / "x.v"
    code, out, err = run("check", "-n", "--certificate", place, "--verify")
    told = f"farfield: {place}: certificate written, and {reason or 'checked by the prover'}\n"
    assert (code, err) == (not proved, told) and out.startswith("−n: the series converges")
    source = place.read_text()
    assert "Theorem" in source and run("check", "-n", "--certificate", place)[0::2] == (
        0,
        f"farfield: {place}: certificate written\n",
    )
    assert place.read_text() == source


@pytest.mark.parametrize(
    ("formulas", "options", "name"),
    [
        (("alibi",), {"budget": 3.0}, "alibi"),
        (("alibi",), {"head": 2}, r"alibi-head-2-[0-9a-f]{8}"),
        (("−∞",), {}, r"formula-[0-9a-f]{8}"),
        (("-log(1+n)/123456789" * 4,), {}, r"log-1-n-123456789-log-1-n-123456789-log-[0-9a-f]{8}"),
    ],
)
def test_a_folder_is_named_after_what_is_in_it(formulas, options, name):
    assert re.fullmatch(name, folder_name(formulas, Subject(**options)))


def test_a_model_gives_its_name_to_its_page(tmp_path):
    (tmp_path / "llama 3").mkdir()
    (tmp_path / "llama 3" / "config.json").touch()
    for model in (tmp_path / "llama 3", tmp_path / "llama 3" / "config.json"):
        assert _page(model) == "llama-3"
    assert (_page("meta/llama"), _page("..."), _page(".a.gguf")) == (
        "meta-llama",
        "model",
        "a.gguf",
    )


def test_a_page_that_is_opened_is_written(run, monkeypatch, tmp_path):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.chdir(tmp_path)
    assert run("study", "-n", "--open")[1].splitlines()[-1].startswith("page: out/study/n-")
    (page,) = tmp_path.rglob("index.html")
    assert opened == [page.as_uri()]
    assert "--page writes a page" in run("study", "-n")[1] and len([*tmp_path.rglob("*.html")]) == 1


def test_the_catalogue_fits_a_terminal(run, monkeypatch):
    piped = run("atlas", "--list")[1]
    assert run("atlas", "--list", "--ascii")[1].startswith(piped.partition(":")[0])
    wide = max(map(len, piped.splitlines()))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    for columns in (wide, wide - 1):
        monkeypatch.setenv("COLUMNS", str(columns))
        shown = run("atlas", "--list")[1]
        assert max(map(len, re.sub(r"\033\[[\d;]*m", "", shown).splitlines())) <= columns
        assert (shown == piped) is (columns == wide)


@pytest.fixture
def steps(monkeypatch):
    """What a verb that writes pages reports of its progress."""
    found = []

    @contextmanager
    def progress(what, opening=""):
        yield lambda *step: found.append(step)

    monkeypatch.setattr("farfield.commands.pages.progress", progress)
    return found


def test_files_of_figures_are_named_or_counted(run, monkeypatch, steps):
    folders = []

    def draw(names, folder, *, notice, **_):
        folders.append(folder)
        for name in names or [""]:
            notice(name)
        drawn = dict.fromkeys(("sun2023.table1", "sun2023.table2"), Drawing(Data((), ()), "it"))
        files = [f"{folder}/{name}.svg" for name in names]
        return Gallery(drawn, {}, files=(*files, f"{folder}/index.html"))

    monkeypatch.setattr("farfield.figures.gallery.draw", draw)
    for count, last in ((2, "written: o/fig6.svg, o/fig7.svg, o/index.html"), (3, "4 files in o")):
        names = ("fig6", "fig7", "fig8")[:count]
        code, out, _ = run("figures", *names, "--out", "o")
        assert code == 0 and out.splitlines()[-2:] == [last, "index: o/index.html"]
        every = sum(len(named(name)) for name in names)
        assert steps[-count:] == [(name, k, every) for k, name in enumerate(names, 1)]
    run("figures", "--out", "o")
    assert steps[5:] == [("", 1, len(INDEX))], "of all that are drawn each is told"
    assert len(json.loads(run("papers", "fig6", "--out", "o", "--json")[1])["drawn"]) == 2
    for options, folder in (({"out": "o"}, "o"), ({}, None)):
        farfield.papers("fig6", **options)
        assert folders[-1] == folder, "files are written where a folder is named"
    seen = Drawing(Data((), ()), "word " * 99, Figure(), beside=table(("ours",), [("7",)]))
    alone = Gallery({"sun2023.table1": seen}, {})
    monkeypatch.setattr("farfield.figures.gallery.draw", lambda *_, **given: alone)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    said = run("figures", "sun2023.table1", "--out", "o")[1]
    assert said.count("word") == 99 and "ours" in said and max(map(len, said.split("\n"))) <= 60
    missing = Gallery({}, {"chi2023.fig12": "no runs", "qin2024.fig3": "why"}, files=())
    monkeypatch.setattr("farfield.figures.gallery.draw", lambda *_, **given: missing)
    said = "farfield: chi2023.fig12: no runs; qin2024.fig3: why\n"
    assert run("figures", "chi2023.fig12", "qin2024.fig3", "--out", "o") == (2, "", said)


def test_claims_are_counted_as_they_are_decided(run, monkeypatch, steps):
    own = [claim("sun2023.fp16.centred"), claim("qin2024.eq13")]

    def claims(name, kind, told):
        return [told(one) or one for one in own]

    monkeypatch.setattr("farfield.validation.papers.ledger.claims", claims)
    found = json.loads(run("claims", "--verdict", "holds_as_printed", "--json")[1])
    every = len(CHECKS)
    assert steps == [("", k, every, f"{c.id}: {c.verdict.words}") for k, c in enumerate(own, 1)]
    assert [one["id"] for one in found] == [c.id for c in own if c.verdict == "holds_as_printed"]
    assert len(json.loads(run("papers", "--json")[1])) == 2


def test_the_doctor_names_all_that_may_be_here(run, monkeypatch):
    monkeypatch.setattr("shutil.which", {"chromium-browser": "/bin/browser"}.get)
    monkeypatch.setattr("os.cpu_count", lambda: 7)

    def version(package):
        if package in ("ray", "marimo"):
            raise PackageNotFoundError(package)
        return f"of {package}"

    for place in ("importlib.metadata", "farfield.validation.optional"):
        monkeypatch.setattr(f"{place}.version", version)
    found = json.loads(run("doctor", "--json")[1])
    usual = ("farfield", "sympy", "python-flint", "numpy", "torch", "transformers")
    assert {name: found[name] for name in usual} == {name: f"of {name}" for name in usual}
    assert (found["processors"], found["browser"], found["prover"]) == (
        "7",
        "/bin/browser",
        "not here: coqc",
    )
    for name in ("ray", "marimo"):
        assert re.match(f"not installed: pip install .?{name}", found[name])
    assert found["free disk"].endswith(" GiB") and found["Python"].startswith("3.")
