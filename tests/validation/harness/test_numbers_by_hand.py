"""Numbers of a training and of a run that users copy, each computed another way; every setting
changes what it says, and nothing else."""

import inspect
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from farfield.numerics.masks import CAUSAL, Mask
from farfield.theory.encodings import CATALOGUE, encoding
from farfield.validation.harness import train as training
from farfield.validation.harness.data import NOT_ASKED, InductionRows, Text
from farfield.validation.harness.measure import (
    answers,
    attention_field,
    gradient_field,
    perplexities,
    recall,
    resampled,
    suffix,
)
from farfield.validation.harness.mechanism import (
    _described,
    read,
    trainable,
    with_encoding,
    written,
)
from farfield.validation.harness.runs import _rows, job_of, measured, model_of
from farfield.validation.harness.settings import Induction, Measure, Run, digest
from farfield.validation.harness.train import (
    Process,
    Report,
    _due,
    adamw,
    batch,
    held_out,
    learning_rate,
    note,
    train,
)

WORDS = np.frombuffer(b"the cat sat on the mat, and the dog lay by the door. " * 60, np.uint8)
TEXT = Text("words", WORDS, WORDS[7:1500])
SIZES = {"layers": 1, "width": 8, "heads": 2, "length": 12, "batch": 4, "steps": 50, "warmup": 2}
TINY = {"encoding": "-n/4", **SIZES, "steps": 6}


def run(name="-n/4", **settings):
    return Run(encoding=name, **{**SIZES, **settings})


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


def test_rows_of_a_run_say_its_settings_and_its_reports(text):
    asked = run(text=text, lr=3e-3, seed=5, label="mine", family="ours", preset="tiny")
    job = job_of(asked)
    history = [Report(20, 2.5, 2.25, 1e-3, 100.0, 7.0), Report(40, 2.3, None, 1e-3, 99.0, 9.5)]
    rows = _rows(job.columns, history, [])
    same = {name: getattr(asked, name) for name in ("preset", *SIZES, "seed")}
    same |= {"trained": same.pop("length"), "learning_rate": 3e-3, "label": "mine"}
    same |= {"family": "ours", "formula": "[-n/4]", "mechanism": "bias", "run": job.key}
    same |= {"experiment": "runs", "seconds": 9.5, "length": 12, "mask": ""}
    same |= {"text": job.data.source, "text_sha256": job.data.sha256[:12]}
    del same["warmup"]
    each = [("training", 20, 2.5), ("held out", 20, 2.25), ("training", 40, 2.3)]
    assert rows == [{**same, "protocol": p, "step": s, "nats": nats} for p, s, nats in each]
    assert job_of(run(text=text)).columns["family"] == "-n/4"


def test_what_is_measured_where_nothing_is_asked(text):
    plain = run(text=text, measure=Measure(row_length=30))
    found = job_of(plain).measure
    assert (found.lengths, found.row_length, found.gradient_length) == ((12, 48, 192), 30, 192)
    fixed = job_of(plain.but(encoding="learned")).measure
    assert (fixed.lengths, fixed.row_length, fixed.gradient_length) == ((12,), 12, 12)
    given = job_of(plain.but(measure=Measure(lengths=(40, 20), gradient_length=33))).measure
    assert (given.lengths, given.gradient_length) == ((12, 20, 40), 33)
    for measure, count in ((perplexities, given.blocks), (recall, given.probes)):
        assert inspect.signature(measure).parameters["count"].default == count


def test_answers_to_a_task_are_counted_one_by_one():
    data = InductionRows(Induction(vocabulary=16))
    model = model_of(run("0"), 16)
    x, y = (torch.from_numpy(part) for part in data.held(60, 12))
    with torch.no_grad():
        scores = model(x).double().log_softmax(-1)
    asked = [(r, t) for r, t in itertools.product(range(60), range(12)) if y[r, t] != NOT_ASKED]
    nats = -np.mean([float(scores[r, t, y[r, t]]) for r, t in asked])
    right = np.mean([int(scores[r, t].argmax()) == int(y[r, t]) for r, t in asked])
    found = answers(model, data, 12, count=60)
    assert 0 < right < 1 and found["accuracy"] == pytest.approx(right)
    assert found["targets"] == len(asked)
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


# -- settings -------------------------------------------------------------------------------------

MEASURE = {
    "lengths": (12, 24),
    "blocks": 4,
    "last_tokens": 4,
    "row_length": 24,
    "row_segments": 2,
    "rows": 4,
    "gradient_segments": 2,
}


def weights(asked):
    """All weights after a training, in one row."""
    data = TEXT if asked.task is None else InductionRows(asked.task)
    model = model_of(asked, data.vocabulary)
    train(model, data, asked)
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@pytest.fixture(scope="module")
def plain():
    return weights(Run(**TINY))


OTHER = {
    "encoding": "-n/2",
    "task": Induction(vocabulary=16),
    "seed": 1,
    "layers": 2,
    "width": 16,
    "heads": 4,
    "length": 16,
    "batch": 2,
    "steps": 7,
    "lr": 1e-3,
    "warmup": 0,
    "schedule": "linear",
    "weight_decay": 0.5,
    "clip": 0.01,
    "betas": (0.5, 0.95),
    "epsilon": 1e-3,
    "precision": "bfloat16",
    "dropout": 0.5,
    "spread": 0.1,
    "embedding_spread": 0.3,
    "label": "another",
    "family": "others",
    "preset": "tiny",
    "accumulate": 2,
    "measure": Measure(**MEASURE),
    "text": "builtin:documentation",
}
DESCENT = """
import torch

def descent(model, run):
    return torch.optim.SGD(model.parameters(), lr=run.lr)
"""
NAMES = {"label", "family", "preset", "measure"}


@pytest.mark.parametrize("name", sorted(Run.model_fields))
def test_a_setting_of_a_run_changes_its_weights_and_its_key_or_neither(name, plain, tmp_path):
    (tmp_path / "mine.py").write_text(DESCENT)
    other = OTHER | {"optimizer": f"{tmp_path / 'mine.py'}:descent"}
    base, changed = Run(**TINY), Run(**TINY).but(**{name: other[name]})
    if name == "text":  # what is read decides the key, not its path
        other = job_of(changed.but(measure=Measure(**MEASURE)))
        assert other.data.sha256 != TEXT.sha256 and other.data.source != TEXT.source
        assert base.key(data="x") != base.key() == changed.key()
        return
    assert (base.key() == changed.key()) == (name in NAMES)
    said = changed.model_dump(mode="json")
    apart = NAMES | {"text"} | ({"optimizer"} - {name})  # keys from before there was one
    assert changed.key() == digest({k: v for k, v in said.items() if k not in apart})
    after = weights(changed)
    if name in NAMES:
        assert torch.equal(after, plain)
    elif name == "accumulate":  # only the order of a sum
        torch.testing.assert_close(after, plain, rtol=1e-3, atol=1e-5)
    else:
        assert after.shape != plain.shape or (after - plain).abs().max() > 1e-5


@pytest.mark.parametrize("betas", [(0.9, 0.95), (0.5, 0.5), (0.0, 0.9)])
@pytest.mark.parametrize(
    "clip, epsilon, decay", [(1e9, 1e-8, 0.0), (0.01, 1e-8, 0.1), (1.0, 0.1, 0.3)]
)
def test_steps_are_those_of_adamw_by_hand(betas, clip, epsilon, decay):
    """[Loshchilov & Hutter 2019, Algorithm 2], gradients clipped by their common norm."""
    how = {"betas": betas, "clip": clip, "epsilon": epsilon, "weight_decay": decay}
    asked = Run(**TINY, **how).but(steps=3)
    by_hand, model = (model_of(asked, TEXT.vocabulary) for _ in range(2))
    given = [p for p in by_hand.parameters() if p.requires_grad]
    means, squares = ([torch.zeros_like(p) for p in given] for _ in range(2))
    for step in range(asked.steps):
        ((x, y),), _ = batch(TEXT, asked, step, Process(by_hand), torch.device("cpu"))
        loss = cross_entropy(by_hand(x).flatten(0, 1), y.flatten())
        gradients = torch.autograd.grad(loss, given)
        norm = math.sqrt(sum(float(g.square().sum()) for g in gradients))
        rate, (b, c) = learning_rate(step, asked), betas
        with torch.no_grad():
            for p, g, m, v in zip(given, gradients, means, squares, strict=True):
                g = g * min(1.0, clip / norm)
                m.mul_(b).add_(g, alpha=1 - b)
                v.mul_(c).add_(g.square(), alpha=1 - c)
                p.mul_(1 - rate * decay * (p.ndim >= 2))
                m_, v_ = m / (1 - b ** (step + 1)), v / (1 - c ** (step + 1))
                p.sub_(rate * m_ / (v_.sqrt() + epsilon))
    train(model, TEXT, asked)
    for one, other in zip(model.parameters(), given, strict=True):
        torch.testing.assert_close(one, other, rtol=2e-3, atol=2e-5)
    assert {p.ndim for p in adamw(model, asked).param_groups[1]["params"]} <= {0, 1}


def test_the_clock_and_the_speed_of_a_resumed_run_go_on(interrupted, tmp_path, monkeypatch):
    """A clock that ticks once a look: seconds grow over all reports, speed is of the whole."""
    asked, kept = Run(**TINY).but(steps=120), tmp_path / "kept"
    ticks = itertools.count()
    monkeypatch.setattr(training.time, "perf_counter", lambda: float(next(ticks)))
    interrupted(65, train, model_of(asked, 256), TEXT, asked, checkpoint=kept, every=0)
    before = next(ticks)
    history = train(model_of(asked, 256), TEXT, asked, checkpoint=kept, every=0)
    seconds = [report.seconds for report in history]
    assert all(a < b for a, b in itertools.pairwise(seconds))
    assert before < seconds[-1] <= next(ticks)
    for report in history:
        tokens = report.step * asked.batch * asked.length
        assert report.tokens_per_second == pytest.approx(tokens / report.seconds)


MORE = {
    "lengths": (12, 20),
    "blocks": 5,
    "last_tokens": 5,
    "strides": (4,),
    "row_length": 20,
    "row_segments": 3,
    "rows": 3,
    "thresholds": (0.2,),
    "gradient_length": 20,
    "gradient_segments": 3,
    "share": 0.9,
    "scores": 24,
    "precision": "bfloat16",
}
OWN = {  # the protocol whose rows alone it changes
    "blocks": "non-overlapping",
    "last_tokens": "last token",
    "strides": "sliding window, stride 4",
    "rows": "attention",
    "thresholds": "attention",
    "gradient_segments": "gradient",
    "share": "gradient",
}
FORMER = {"scores"}  # written in earlier runs, and part of their keys
ELSEWHERE = {"windows", "bca", "distances", "probes", "protocols"}
"""Masks, what tasks have, and code of one's own: in test_runs."""


@pytest.fixture(scope="module")
def job(text):
    asked = Run(**TINY, text=text, measure=Measure(**MEASURE)).but(steps=60)
    model = model_of(asked, 256)
    train(model, job_of(asked).data, asked)
    return asked, model


@pytest.mark.parametrize("name", sorted(set(Measure.model_fields) - ELSEWHERE))
def test_a_setting_of_a_measurement_changes_its_rows(name, job):
    asked, model = job
    changed = asked.but(measure=asked.measure.but(**{name: MORE[name]}))
    each = [list(measured(job_of(one), model)) for one in (asked, changed)]
    assert (each[0] == each[1]) == (name in FORMER)
    if protocol := OWN.get(name):
        rows, others = ([r for r in one if r["protocol"] != protocol] for one in each)
        assert rows == others


@pytest.mark.parametrize("mask", [CAUSAL, Mask(window=5)])
def test_rows_are_what_the_measures_give(job, mask):
    """Each column beside a direct call."""
    asked, model = job
    data, m = job_of(asked).data, asked.measure
    rows = list(measured(job_of(asked), model, mask))
    for last, count in ((0, m.blocks), (1, m.last_tokens)):
        given = {"count": count, "last": last, "view": mask}
        for score in perplexities(model, data.held_out, (12, 24), **given):
            (row,) = [
                r for r in rows if (r["protocol"], r["length"]) == (score.protocol, score.length)
            ]
            for name in ("targets", "nats", "ratio", "low", "high"):
                assert row[name] == pytest.approx(getattr(score, name), rel=1e-6)
            assert score.perplexity == pytest.approx(math.exp(row["nats"]), rel=1e-6)
            assert row["targets"] == count * (24 if last == 0 else 1)
    fields = attention_field(
        model, data.held_out, thresholds=m.thresholds, length=24, segments=2, rows=4, mask=mask
    )
    told = [r for r in rows if r["protocol"] == "attention"]
    assert [(r["eps"], r["erf"], r["trf"]) for r in told] == [(f.eps, f.erf, f.trf) for f in fields]
    gradient = gradient_field(model, data.held_out, share=0.99, length=24, segments=2, mask=mask)
    first, *curve = [r for r in rows if r["protocol"] == "gradient"]
    assert (first["erf"], first["eps"], first["length"]) == (gradient.tokens, 0.01, 24)
    assert [(r["distance"], r["gradient"]) for r in curve] == gradient.curve
    assert [at for at, _ in gradient.curve] == [1, 2, 4, 8, 12, 16]
    assert all(a <= b for (_, a), (_, b) in itertools.pairwise(gradient.curve))


@pytest.mark.parametrize("length", [12, 31])
def test_a_rotation_is_measured_with_blocks_of_half_a_row(length):
    """[S, 3.3]: blockwise causal attention with half the training length."""
    for subject, blocks in (
        (encoding("rope"), (length // 2,)),
        (encoding("rope", bca=5), (5,)),
        (encoding("alibi", heads=2), ()),
    ):
        asked = with_encoding(Run(**TINY).but(length=length), "mine", subject)
        assert asked.measure.bca == blocks and asked.label == "mine"
