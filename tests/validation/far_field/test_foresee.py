"""What is foreseen of a model, and what mends it: laws, and what is refused."""

import json
import math

import numpy as np
import pytest
import torch

import farfield
from farfield.theory.answers.errors import InputError
from farfield.validation.far_field import recall
from farfield.validation.far_field.foresee import Settings, ratio_of, reach_of, subject_of
from farfield.validation.far_field.mend import Book
from farfield.validation.far_field.network import losses
from farfield.validation.far_field.repairs import Repair, Repaired
from farfield.validation.far_field.stages import Sampling, Stages
from farfield.validation.harness.runs import job_of, run
from farfield.validation.harness.settings import settle

FEW = Settings(groups=2, rows=6, last=4)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a run, by its encoding."""
    store = tmp_path_factory.mktemp("runs")

    def folder(encoding):
        asked = settle("tiny", {"encoding": encoding, "steps": 1})
        run(asked, store, device="cpu")
        return store / job_of(asked).key

    return folder


def test_doublings_are_foreseen_and_the_last_is_the_answer(trained):
    found = farfield.foresee(trained("-n/8"), to=100, settings=FEW, causes=True)
    assert [r.length for r in found.ratios] == [32, 64, 100]
    last = found.ratios[-1]
    assert found.label == "forecast" and found.log_ratio == last.log_ratio == last.main
    assert last.interval[0] <= last.log_ratio <= last.interval[1] and last.agree
    assert found.pairs[1] < found.pairs[0] and found.pairs[2] == 5050
    assert len(found.blame.layers) == 2 and found.blame.positions == pytest.approx(0, abs=1e-6)
    assert json.loads(found.to_json())["ratios"][2]["length"] == 100


def test_the_cost_of_one_stage_does_not_depend_on_the_length(trained):
    folder = trained("-n/8")
    far = [farfield.foresee(folder, to=to, settings=FEW).pairs for to in (64, 4096)]
    assert far[0][1] == far[1][1] and far[0][2] < far[1][2]


def test_settings_that_disagree_leave_the_answer_unknown(trained, monkeypatch):
    near, far = (np.array(x) for x in ([0.1, 0.11, 0.12], [0.3, 0.31, 0.32]))
    assert ratio_of(64, near, far).log_ratio is None
    assert ratio_of(64, near, near).log_ratio == pytest.approx(0.11)
    apart = ratio_of(64, near, far)
    monkeypatch.setattr("farfield.validation.far_field.foresee.ratio_of", lambda *_: apart)
    found = farfield.foresee(trained("-n/8"), to=64, settings=FEW)
    assert found.status == "unknown" and found.reason.code == "settings_disagree"
    assert found.label is None and found.log_ratio is None and "no forecast" in str(found)


def test_a_local_model_loses_nothing_by_its_far_keys(trained):
    """A window hides them, so that both settings and every layer say the same."""
    hidden = Repaired(subject_of(trained("-n/8"), None, None, FEW).network, Repair(window=4))
    subject = subject_of(trained("-n/8"), None, None, FEW)
    near, far = subject.ratios([64], Sampling(1024), hidden)[64], subject.ratios([64], Sampling(8))
    assert np.allclose(near, subject.ratios([64], Sampling(8, math.inf), hidden)[64], atol=1e-6)
    assert not np.allclose(near, far[64], atol=1e-6)


def test_no_change_is_one_of_the_changes_and_a_stopped_search_goes_on(trained, tmp_path):
    folder, how = trained("-n/8"), {"to": 128, "settings": FEW, "measure": True}

    def stop(stage, done, total):
        if stage == "real rows":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        farfield.mend(folder, folder=tmp_path / "stopped", progress=stop, **how)
    (kept,) = (tmp_path / "stopped").iterdir()
    before = kept.read_text()
    found = farfield.mend(folder, folder=tmp_path / "stopped", **how)
    assert found == farfield.mend(folder, folder=tmp_path / "whole", **how)
    assert set(json.loads(before)) < set(json.loads(kept.read_text()))
    plain = next(row for row in found.rows if row.repair == "none")
    assert plain.measured is not None and plain.short == 0 and plain.keys == 128
    assert sum(row.measured is not None for row in found.rows) in (3, 4)
    assert found.best in {row.repair for row in found.rows}


def test_few_keys_leave_few_changes(trained, tmp_path):
    found = farfield.mend(trained("-n/8"), to=64, keys=16, settings=FEW, folder=tmp_path)
    assert all(row.keys <= 16 for row in found.rows if row.repair != "none")
    assert found.best != "none" and found.window <= 16
    kept = farfield.check_convergence(found.encoding[0])
    assert kept.verdict == "converges"


def test_what_is_written_is_not_asked_again(tmp_path):
    book = Book(tmp_path / "book.json")
    assert book.of("a", lambda: [1.0]).tolist() == [1.0]
    assert Book(tmp_path / "book.json").of("a", lambda: [2.0]).tolist() == [1.0]


def test_a_needle_is_exact_in_one_layer_where_nothing_else_is_far(trained):
    """Of the third row of four, all keys are its own, of the rows before, and of the first."""
    subject = subject_of(trained("0"), None, None, Settings(groups=2, rows=4, last=4))
    network, tokens, row = subject.network, subject.groups[0], subject.length
    network.depth, network.model.layers = 1, network.model.layers[:1]
    stages = Stages(network, tokens, 4, Sampling(8), paired=2)
    stages.plain()
    stages.stage(1, [row, 2 * row])
    far = stages.stage(2, [row, 2 * row, 4 * row])
    long = torch.cat([tokens[:, :-1].flatten(), tokens[-1, -1:]])[None]
    assert torch.allclose(far[3], losses(network, long, 4)[0], atol=1e-5)


def test_recall_is_a_probability_and_its_distance_is_checked(trained):
    subject = subject_of(trained("0"), None, None, FEW)
    for far in recall.distances(subject.length, 256):
        said = recall.foreseen(subject.network, subject.groups, 256, far, Sampling(32))
        assert said.distance == far and 0 < said.probability < 1
    with pytest.raises(InputError, match="accepted are 41 to 233"):
        recall.foreseen(subject.network, subject.groups, 256, 16, Sampling(32))


@pytest.mark.parametrize(
    "given, why",
    {
        ("-n/8", 8, None): "to = 8 with rows of 16 tokens; accepted is twice as much or more",
        ("-n/8", 64, 8): "rows of 8 tokens; accepted are rows of 16 or more",
        ("learned", 64, None): "has vectors for 16 positions, 64 are asked for",
    }.items(),
    ids=lambda x: str(x)[:20],
)
def test_bad_input_is_one_line(trained, given, why):
    encoding, to, length = given
    with pytest.raises(InputError, match=why) as error:
        farfield.foresee(trained(encoding), to=to, length=length, settings=FEW)
    assert "\n" not in str(error.value)


def test_a_text_that_is_too_short_is_refused(trained, tmp_path):
    short = tmp_path / "short.txt"
    short.write_text("a few words\n" * 20)
    with pytest.raises(InputError, match="6 rows of 16 take 97; accepted: a longer text"):
        farfield.foresee(trained("-n/8"), short, to=64, settings=FEW)


def test_a_limit_of_positions_is_asked_before_anything_runs(trained):
    subject = subject_of(trained("learned"), None, None, FEW)
    with pytest.raises(InputError, match="accepted: to that length"):
        reach_of(subject, 32)
