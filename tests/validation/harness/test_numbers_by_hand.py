"""Numbers of a training and of a run that users copy, each computed another way."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from farfield.theory.encodings import CATALOGUE, encoding
from farfield.validation.harness.data import NOT_ASKED, InductionRows, Text
from farfield.validation.harness.measure import answers, recall, resampled, suffix
from farfield.validation.harness.mechanism import _described, read, trainable, written
from farfield.validation.harness.runs import _rows, job_of, model_of
from farfield.validation.harness.settings import Induction, Measure, Run
from farfield.validation.harness.train import Report, _due, held_out, learning_rate, note, train

WORDS = np.frombuffer(b"the cat sat on the mat, and the dog lay by the door. " * 60, np.uint8)
TEXT = Text("words", WORDS, WORDS[7:1500])
TINY = {"layers": 1, "width": 8, "heads": 2, "length": 12, "batch": 4, "steps": 50, "warmup": 2}


def run(name="-n/4", **settings):
    return Run(encoding=name, **{**TINY, **settings})


@pytest.mark.parametrize("data", [TEXT, InductionRows(Induction(vocabulary=16))])
def test_the_held_out_loss_is_that_of_the_targets_of_as_many_rows_as_a_step_has(data):
    asked = run(accumulate=2)
    model = model_of(asked, data.vocabulary)
    x, y = (torch.from_numpy(part) for part in data.held(4, 12))
    with torch.no_grad():
        nats = cross_entropy(model.eval()(x)[y != NOT_ASKED].double(), y[y != NOT_ASKED])
    model.train()
    assert held_out(model, model, data, asked) == pytest.approx(float(nats), rel=1e-6)
    assert model.training


def test_reports_come_every_20_steps_and_the_held_out_loss_ten_times():
    asked = run(steps=50)
    history = train(model_of(asked), TEXT, asked)
    assert [r.step for r in history] == [20, 40, 50]
    assert [r.lr for r in history] == [learning_rate(r.step - 1, asked) for r in history]
    assert all(r.held_out is not None for r in history)
    for steps, often in ((50, 20), (399, 20), (400, 40), (1010, 100), (1000, 100)):
        due = [done for done in range(1, steps + 1) if done % 20 == 0 or done == steps]
        due = [done for done in due if _due(done, run(steps=steps))]
        assert due == sorted({*range(often, steps + 1, often), steps})


def test_a_report_is_shown_with_the_time_that_is_left(monkeypatch):
    asked, model = run(steps=1000), model_of(run())
    history = [Report(20, 2.5, 2.25, 1e-3, 100.0, 9.0), Report(40, 2.3456, None, 1e-3, 1234.5, 9.0)]
    # 960 steps of 48 tokens at 1,234.5 a second
    told = "loss 2.346, held out 2.250, 1,234 tokens/s, 37 s left"
    assert note(history, asked, model) == told and note([], asked, model) == ""
    slow = [history[0]._replace(tokens_per_second=384.0)]
    assert note(slow, asked, model).endswith("384 tokens/s, 2 min 2 s left")  # 122.5 s
    assert note(slow, asked.but(steps=500), model).endswith("tokens/s, 1 min 0 s left")
    # Three times 24 d^2 of the matrices, 2 d (n + 1) of the attention, 2 d V of the scores.
    gpu = SimpleNamespace(device=torch.device("cuda"), vocabulary=256)
    done = 3 * (24 * 8**2 + 2 * 8 * 13 + 2 * 8 * 256) * 2e10
    fast = [history[0]._replace(tokens_per_second=2e10)]
    for card, peak in {"NVIDIA H100 NVL": 989e12, "H200": 989e12, "A100": 312e12, "L4": 0}.items():
        monkeypatch.setattr(torch.cuda, "get_device_name", {gpu.device: card}.get)
        share = [f"{done / peak:.1%} of its arithmetic"] if peak else []
        assert note(fast, asked, gpu).split(", ")[3:-1] == share


def test_rows_of_a_run_say_its_settings_and_its_reports(tmp_path):
    path = tmp_path / "words"
    path.write_bytes(bytes(WORDS) * 3)
    asked = run(text=str(path), lr=3e-3, seed=5, label="mine", family="ours", preset="tiny")
    job = job_of(asked)
    history = [Report(20, 2.5, 2.25, 1e-3, 100.0, 7.0), Report(40, 2.3, None, 1e-3, 99.0, 9.5)]
    rows = _rows(job.columns, history, [])
    same = {name: getattr(asked, name) for name in ("preset", *TINY, "seed")}
    same |= {"trained": same.pop("length"), "learning_rate": 3e-3, "label": "mine"}
    same |= {"family": "ours", "formula": "[-n/4]", "mechanism": "bias", "run": job.key}
    same |= {"experiment": "runs", "seconds": 9.5, "length": 12, "mask": ""}
    same |= {"text": job.data.source, "text_sha256": job.data.sha256[:12]}
    del same["warmup"]
    each = [("training", 20, 2.5), ("held out", 20, 2.25), ("training", 40, 2.3)]
    assert rows == [{**same, "protocol": p, "step": s, "nats": nats} for p, s, nats in each]
    assert job_of(run(text=str(path))).columns["family"] == "-n/4"


def test_what_is_measured_where_nothing_is_asked(tmp_path):
    path = tmp_path / "words"
    path.write_bytes(bytes(WORDS) * 3)
    plain = run(text=str(path), measure=Measure(row_length=30))
    found = job_of(plain).measure
    assert (found.lengths, found.row_length, found.gradient_length) == ((12, 48, 192), 30, 192)
    fixed = job_of(plain.but(encoding="learned")).measure
    assert (fixed.lengths, fixed.row_length, fixed.gradient_length) == ((12,), 12, 12)
    given = job_of(plain.but(measure=Measure(lengths=(40, 20), gradient_length=33))).measure
    assert (given.lengths, given.gradient_length) == ((12, 20, 40), 33)


def test_answers_to_a_task_are_counted_one_by_one():
    data = InductionRows(Induction(vocabulary=16))
    model = model_of(run("0"), 16)
    x, y = (torch.from_numpy(part) for part in data.held(6, 12))
    with torch.no_grad():
        scores = model(x).double().log_softmax(-1)
    asked = [(r, t) for r, t in itertools.product(range(6), range(12)) if y[r, t] != NOT_ASKED]
    nats = -np.mean([float(scores[r, t, y[r, t]]) for r, t in asked])
    right = np.mean([int(scores[r, t].argmax()) == int(y[r, t]) for r, t in asked])
    found = answers(model, data, 12, count=6)
    assert found["targets"] == len(asked) and found["accuracy"] == pytest.approx(right)
    assert found["nats"] == pytest.approx(nats, rel=1e-6)


def test_distances_of_recall_are_spaced_in_their_logarithm():
    data, model = InductionRows(Induction(vocabulary=64)), model_of(run("0"), 64)
    for length in (5, 6, 40):
        found = [each.distance for each in recall(model, data, (length,), count=2)]
        ends = math.log(3), math.log(max(3, length - 2))
        steps = [round(math.exp(ends[0] + (ends[1] - ends[0]) * k / 7)) for k in range(8)]
        assert found == (sorted({*steps}) if length > 5 else [1])


def test_intervals_of_curves_are_those_of_their_resampled_means():
    """Two curves, drawn 1,000 times: the field of the mean of each draw, and its quantiles."""
    curves = np.array([[0.9, 0.05, 0.03, 0.02], [0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]])
    means = resampled(curves)
    draws = np.random.default_rng(0).integers(3, size=(1000, 3))
    assert np.allclose(means, [curves[draw].mean(0) for draw in draws])

    def tokens(curve):
        return next(k for k in range(5) if curve[k:].sum() < 0.25 * curve.sum())

    found, low, high = suffix(curves, 0.25)
    ends = np.quantile([tokens(mean) for mean in means], (0.025, 0.975))
    assert found == tokens(curves.mean(0)) and (low, high) == (*ends,)


@pytest.mark.parametrize("name", [k for k in CATALOGUE if CATALOGUE[k].trained(64)])
def test_an_encoding_with_options_is_written_so_that_it_is_read_again(name):
    """Options that depend on the training length: those of another length are another encoding."""
    for length in (16, 64, 512):
        subject = encoding(name, **CATALOGUE[name].trained(length))
        if trainable(subject):
            way = written(subject, length)
            assert _described(read(way, subject.num_heads)) == _described(subject), way
