"""Studies: predictions without torch, findings computed from the numbers, runs never repeated."""

import dataclasses
import json
import subprocess
import sys

import pytest
from sympy import Rational

from farfield.numerics.receptive_field import (
    Bracket,
    Enclosure,
    Exact,
    ReceptiveField,
    theoretical_receptive_field,
)
from farfield.theory.encodings import encoding
from farfield.theory.results import InputError
from farfield.validation.study import study as room
from farfield.validation.study.study import (
    Entry,
    Study,
    catalogue,
    findings,
    place,
    predict,
    study,
    survey,
    tokens_text,
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A study of four encodings with tiny models, and its store."""
    store = tmp_path_factory.mktemp("runs")
    chosen = [
        ("type1", encoding("type1")),
        ("nope", encoding("nope")),
        ("alibi", encoding("alibi")),
        ("rope", encoding("rope")),
        ("kerple_log", encoding("kerple_log")),
    ]
    trained = [name for name, _ in chosen[:4]]
    return survey(chosen, train=trained, preset_name="tiny", store=store), chosen, store


def test_predictions_are_the_printed_values():
    fields = predict(encoding("type1")).receptive_fields
    assert [f.tokens for f in fields] == [6, 61, 608]


@pytest.mark.parametrize("name", ["kerple_log", "rope"])
def test_what_has_no_number_says_why(name):
    prediction = predict(encoding(name))
    assert prediction.missing and not prediction.receptive_fields and not prediction.leaks


def test_a_divergent_series_has_row_fields_only():
    prediction = predict(encoding("nope"), evaluated=(100,))
    assert not prediction.receptive_fields
    assert [f.tokens for f in prediction.row_fields] == [91, 100, 100]  # more than 90, 99, 99.9 %


def test_the_catalogue_is_whole():
    assert len(catalogue()) == len({n for n, _ in catalogue()}) >= 30


def test_measurements_stand_beside_predictions(tiny):
    s, _, _ = tiny
    entry = {e.prediction.name: e for e in s.entries}
    assert entry["kerple_log"].run is None and entry["type1"].measurement() is not None
    assert entry["rope"].measurement(bca=True)["inference"]["bca"] == 8
    assert entry["type1"].measurement(bca=True) is None
    data = json.loads(s.to_json())
    assert len(data["findings"]) >= 4 and data["schema"] == 1


def test_a_finished_run_is_not_repeated(tiny, monkeypatch):
    s, chosen, store = tiny
    import farfield.validation.runs.experiment as experiment

    def refuse(*_args, **_kwargs):
        raise AssertionError("trained again")

    monkeypatch.setattr(experiment, "train", refuse)
    again = survey(chosen, train=["type1"], preset_name="tiny", store=store)
    assert again.entries[0].run["training"] == s.entries[0].run["training"]


def altered(s: Study, ratio: float) -> Study:
    """The study with every last-token ratio at the longest length replaced."""
    entries = []
    for e in s.entries:
        run = json.loads(json.dumps(e.run)) if e.run else None
        for m in run["measurements"] if run else ():
            for p in m["perplexity"]:
                if p["protocol"] == "last token" and p["length"] == max(s.lengths):
                    p["ratio"] = ratio
        entries.append(Entry(e.prediction, run))
    return Study(tuple(entries), s.preset, s.corpus)


def test_findings_follow_the_numbers(tiny):
    s, _, _ = tiny
    flat, steep = (findings(altered(s, r))[0].numbers for r in (1.0, 9.0))
    assert flat["right"] == 2 and steep["right"] == 1  # two converge, one diverges
    bounds = findings(s)[-1]
    assert bounds.numbers["violations"] == 0 and bounds.numbers["checks"] > 1000


def test_violated_bounds_are_shouted(tiny):
    s, _, _ = tiny
    entries = []
    for e in s.entries:
        run = json.loads(json.dumps(e.run)) if e.run else None
        for m in run["measurements"] if run else ():
            m["bounds"]["violations"] = 1
        entries.append(Entry(e.prediction, run))
    assert "VIOLATED" in findings(Study(tuple(entries), s.preset))[-1].sentence


def test_bad_studies_are_refused(tmp_path):
    pair = [("nope", encoding("nope"))]
    with pytest.raises(InputError, match="not among"):
        survey(pair, train=["alibi"])
    with pytest.raises(InputError, match="preset 'huge'"):
        survey(pair, preset_name="huge")
    blocked = tmp_path / "file"
    blocked.write_text("x")
    with pytest.raises(InputError, match="output folder"):
        room.writable_folder(blocked / "inside")


def test_without_torch_theory_works_and_training_says_how_to_get_it(tmp_path):
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "from farfield.theory.encodings import encoding\n"
        "from farfield.validation.study.study import survey\n"
        "pair = [('nope', encoding('nope'))]\n"
        "print(survey(pair).entries[0].prediction.convergence.verdict)\n"
        f"survey(pair, train=['nope'], store={str(tmp_path / 'runs')!r})\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "diverges" in done.stdout and "pip install 'farfield[train]'" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_an_idea_is_studied_without_torch_or_its_own_name():
    one = study("-2*log(1+n)")
    (entry,) = one.entries
    p = entry.prediction
    assert one.asked == ("-2*log(1+n)",) and not one.entries[0].run
    assert p.horizons[0].tokens == 5792 and p.resolution.limit == pytest.approx(
        0.29287188, abs=1e-8
    )
    text = str(one)
    for said in ("proof [theorem]", "TRF(1/100) = 61", "leak(m = 64", "place among", "R(row of 64"):
        assert said in text
    assert json.loads(one.to_json())["place"]["ranks"]


def test_the_place_is_by_tail_not_by_name():
    ranks = place([predict(encoding("-log(1+n)**2")), predict(encoding("-log(n+1)"))]).ranks
    names = [r.name for r in ranks]
    assert abs(names.index("-log(1+n)**2") - names.index("Type 2")) == 1
    assert names.index("-log(n+1)") > names.index("KERPLE-log 6/5, 1")
    tokens = [r.receptive_fields[-1].tokens for r in ranks if r.receptive_fields[-1].tokens]
    assert tokens == sorted(tokens)


def test_tails_are_compared_for_all_eps_at_once():
    found = place([predict(encoding("-(log(1+n))^2")), predict(encoding("alibi"))])
    relations = {(r.asked, r.reference): r for r in found.relations}
    squared = relations["-(log(1+n))^2", "Type 1"]
    assert squared.lighter == "-(log(1+n))^2" and round(squared.crossover, 10) == 0.2400911227
    widest = relations["alibi", "Type 1"]  # of eight heads the one that reaches furthest
    assert widest.lighter == "alibi" and f"{widest.crossover:.7g}" == "0.0002917817"
    assert relations["alibi", "ALiBi, slope 1/256"].lighter is None
    assert "lighter for eps up to 0.24" in str(found)


def test_the_certified_window_says_what_it_holds_for():
    p = predict(encoding("-n/2"))
    assert [w.width for w in p.windows] == sorted(w.width for w in p.windows) and p.windows[0].width
    assert "|logits| <= 1" in str(p) and "one layer" in str(p)
    without = predict(encoding("nope"))
    assert without.windows == () and "certified window: none, the series diverges" in str(without)


def test_the_layered_field_is_that_of_the_models_that_are_trained(tiny):
    s, _, _ = tiny
    layered = s.entries[0].prediction.layered
    assert layered.layers == s.preset.layers and layered.length == max(s.lengths)
    assert predict(encoding("type1"), evaluated=(1024,)).layered.tokens == 91
    assert "layered receptive field" in str(s) and "[approximate]" in str(s)


def test_what_cannot_be_placed_is_studied_all_the_same():
    s = study(["kerple_log", "rope", "t5"])
    assert s.place is None and "r1 > 1" in str(s) and "out_of_scope" in str(s)


def test_large_numbers_are_short():
    fields = theoretical_receptive_field("-1.2*log(1+n)", ["1/10", "1e-6"])
    assert [tokens_text(f) for f in fields] == ["57171", "5.71e+29"]
    assert tokens_text(theoretical_receptive_field("nope", "1/10")) == "infinite"
    far = ReceptiveField(None, Rational(1, 9), answer=Enclosure(2, 8.4, 8.5))
    assert tokens_text(far) == "exp(exp(8.4))"
    assert tokens_text(dataclasses.replace(far, answer=Exact(3**9000))) == "> 2^14264"
    assert tokens_text(dataclasses.replace(far, answer=Bracket(7, None))) == "at least 7"


def test_a_study_trains_its_baselines_on_the_same_seed(tiny):
    _, _, store = tiny
    s = study("type1", train=True, preset="tiny", baselines=["nope"], store=store)
    assert [e.prediction.name for e in s.entries] == ["type1", "nope"] and s.asked == ("type1",)
    assert {e.run["seed"] for e in s.entries} == {0} and findings(s)


@pytest.mark.parametrize("f", [[], "alibbi", "n +", ["-n", "-log("]])
def test_bad_ideas_are_refused(f):
    with pytest.raises(InputError):
        study(f)
