"""Studies: predictions without torch, what was measured beside them, runs never repeated."""

import dataclasses
import json
import subprocess
import sys

import pytest
from sympy import Rational

from farfield.numerics.receptive_field import ReceptiveField, theoretical_receptive_field
from farfield.numerics.search import Bracket, Enclosure, Exact
from farfield.theory.answers.answer import Label, Status
from farfield.theory.answers.blocks import Sentence, Steps, Table
from farfield.theory.answers.notation import terminal
from farfield.theory.convergence import Verdict
from farfield.theory.encodings import encoding, encodings
from farfield.validation.atlas import entry
from farfield.validation.harness.settings import settle
from farfield.validation.json_files import writable_folder
from farfield.validation.study.place import (
    _cell,
    _read,
    computed_references,
    ranked_references,
    references,
)
from farfield.validation.study.prediction import predict
from farfield.validation.study.study import (
    BASELINES,
    study,
    survey,
)
from farfield.validation.table_cells import field_text


def test_a_divergent_series_has_row_fields_only():
    prediction = predict(encoding("nope"), tested=(100,))
    assert not prediction.receptive_fields
    assert [f.tokens for f in prediction.row_fields] == [91, 100, 100]  # more than 90, 99, 99.9 %


def test_the_catalogue_is_whole():
    assert set(BASELINES) == {"alibi", "nope"}
    additive = {name for name in encodings() if encoding(name).formula is not None}
    learned = {"t5", "bam"}  # their tables and shapes are whatever is learned
    surrogates = {name for name in additive if "surrogate" in name}
    assert {name for _, name, _ in references()} == additive - learned - surrogates - {"alibi_log"}


def test_bad_studies_are_refused(refusal, tmp_path):
    pair = [("nope", encoding("nope"))]
    refusal("preset 'huge'", survey, pair, preset_name="huge")
    refusal("train 'alibi' is not known; ", survey, pair, train=["alibi"])
    blocked = tmp_path / "file"
    blocked.write_text("x")
    refusal("output folder", writable_folder, blocked / "inside")


@pytest.mark.slow
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
    assert "diverges" in done.stdout and "pip install torch (farfield[train])" in done.stderr
    assert not (tmp_path / "runs").exists()


def table_of(prediction):
    """The rows of numbers of a prediction, in words."""
    (found,) = (b for b in prediction.blocks() if isinstance(b, Table) and len(b.header) == 5)
    return [tuple(terminal(cell) for cell in row) for row in found.rows]


def test_an_idea_is_studied_without_torch_or_its_own_name(speaks):
    one = study("-2*log(1+n)")
    (entry,) = one.entries
    p = entry.prediction
    assert one.asked == ("-2*log(1+n)",) and not one.entries[0].lines
    assert p.horizons[0].tokens == 5792 and p.resolution.limit == pytest.approx(
        0.29287188, abs=1e-8
    )
    speaks(one)
    rows = {row[:3]: row[4] for row in table_of(p)}
    assert rows["TRF(1/100)", "whole series", "61"] == Label.CERTIFIED
    assert [b for b in one.blocks() if isinstance(b, Steps)]
    assert json.loads(one.to_json())["place"]["ranks"] and one.status is Status.EXACT


def test_the_references_are_what_is_computed_today():
    """`python -m farfield.validation.study.place` writes the file anew."""
    assert list(ranked_references()) == computed_references()
    fields = [field for rank in ranked_references() for field in rank.receptive_fields]
    assert [_read(_cell(field)) for field in fields] == fields and None in fields


def test_what_cannot_be_placed_is_studied_all_the_same(speaks):
    s = study(["kerple_log", "rope", "t5"])
    verdicts = [e.prediction.convergence.verdict for e in s.entries]
    assert verdicts == [Verdict.CONDITIONAL, Verdict.OUT_OF_SCOPE, Verdict.DIVERGES]
    assert s.place is None and speaks(s)
    for found in (e.prediction for e in s.entries[:2]):
        assert found.missing and not found.receptive_fields and not found.leaks


def test_large_numbers_are_short():
    fields = theoretical_receptive_field("-1.2*log(1+n)", ["1/10", "1e-6"])
    assert [field_text(f) for f in fields] == ["57171", "5.71e+29"]
    assert field_text(theoretical_receptive_field("nope", "1/10")) == "infinite"
    far = ReceptiveField(
        None, Rational(1, 9), answer=Enclosure(4447.1, 4447.2), status=Status.ENCLOSED
    )
    assert field_text(far) == "exp(4447)"
    assert field_text(dataclasses.replace(far, answer=Exact(3**9000))) == "> 2^14264"
    assert field_text(dataclasses.replace(far, answer=Bracket(7, None))) == "at least 7"


def test_each_option_of_a_study_reaches_the_models_under_its_name(monkeypatch):
    given, told = {}, []

    def recorded(subjects, **options):
        given.update(options, subjects=[name for name, _ in subjects])
        return survey(subjects)

    def notice(*at):
        told.append(at)

    monkeypatch.setattr("farfield.validation.study.study.survey", recorded)
    same = {"tested": (16, 32), "text": "a text", "store": "a store", "seed": 3, "notice": notice}
    whole = study(["-n", "-n/2"], train=True, preset="tiny", trained=8, baselines="nope", **same)
    names = ["-n", "-n/2", "nope"]
    said = {"subjects": names, "train": names}
    assert given == {**said, "preset_name": "tiny", "length": 8, **same}
    assert whole.asked == ("-n", "-n/2") and told == [("place among the catalogue", 0, 1)]


def test_a_training_reports_where_its_study_does(monkeypatch, tmp_path):
    told = []

    def run(asked, store, *, progress):
        progress("trains", 1, 2)
        return []

    monkeypatch.setattr("farfield.validation.harness.runs.run", run)
    subjects, notice = [("-n", encoding("-n"))], lambda *at: told.append(at)
    survey(subjects, train=["-n"], preset_name="tiny", store=tmp_path, notice=notice)
    stages = [("-n: theory", 0, 1, ""), ("-n: trains", 1, 2, ""), ("-n: done", 1, 1, "")]
    assert [at for at in told if at[0].startswith("-n")] == stages


def test_each_setting_of_a_survey_is_one_of_its_models():
    said = {"length": 24, "text": "a text", "seed": 3}
    found = survey([("-n", encoding("-n"))], preset_name="tiny", tested=(48, 96), **said)
    assert {name: found.settings[name] for name in said} == said
    assert (found.lengths, found.entries[0].prediction.row_length) == ((24, 48, 96), 96)
    usual = survey([("-n", encoding("-n"))], preset_name="tiny")
    assert (usual.settings["seed"], usual.settings["text"]) == (0, None)
    near = survey([("-n", encoding("-n"))], length=64, tested=(32, 256)).settings
    assert [*near["measure"]["lengths"]] == [32, 256]
    own = survey([("-n", encoding("-n"))], preset_name="first").settings["measure"]["lengths"]
    assert [*own] == [*settle("first", {"encoding": "nope"}).measure.lengths] != []
    assert usual.lengths[0] == usual.settings["length"] and len(usual.lengths) > 1
    bare = dataclasses.replace(usual, settings={"length": 64, "measure": {"lengths": ()}})
    assert bare.lengths == (64, 256, 1024), "4 and 16 times the training length"


@pytest.mark.parametrize("f", [[], "alibbi", "n +", ["-n", "-log("]])
def test_bad_ideas_are_refused(refusal, f):
    refusal(".", study, f)


def test_an_entry_of_the_atlas_has_the_answers_and_the_claims(speaks):
    found = entry(encoding("type1"))
    assert speaks(found) and {c.id for c in found.claims} >= {"qin2024.satisfies.type1"}
    assert json.loads(found.to_json())["prediction"]["receptive_fields"][1]["tokens"] == 61
    formula = encoding("-2*log(1+n)")
    blocks = entry(formula).blocks()
    assert entry(formula).claims == () and all(b in blocks for b in predict(formula).blocks())


def test_a_model_that_has_not_learned_is_named_as_such(tiny_study):
    """Thirty steps leave the loss above the entropy of the letters; the numbers come first."""
    said = tiny_study[0].brief()
    assert isinstance(said[0], Table) and "uniform guess" in terminal(said[1].text)


def test_a_study_in_short_fits_a_screen():
    lines = study("-log(1+n)^(3/2)").text(width=80).splitlines()
    assert len(lines) <= 22 and "[theorem]" in " ".join(lines[:4])
    two = study(["-n", "-n/2"])  # of which a screen has one sentence
    assert [b for b in two.brief() if isinstance(b, Sentence)] == [two.lead(), two.place.said()]
