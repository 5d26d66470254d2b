"""Every setting changes what it says, and nothing else; a step of training is the step by hand."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from farfield.validation.harness import train as training
from farfield.validation.harness.data import InductionRows, Text
from farfield.validation.harness.measure import attention_field, gradient_field, perplexities
from farfield.validation.harness.mechanism import with_encoding
from farfield.validation.harness.runs import job_of, measured, model_of
from farfield.validation.harness.settings import Induction, Measure, Run
from farfield.validation.harness.train import Process, adamw, batch, learning_rate, train

WORDS = b"the cat sat on the mat, and the dog lay by the door. " * 60
TEXT = Text("words", np.frombuffer(WORDS, np.uint8), np.frombuffer(WORDS[7:1500], np.uint8))
TINY = {
    "encoding": "-n/4",
    "layers": 1,
    "width": 8,
    "heads": 2,
    "length": 12,
    "batch": 4,
    "steps": 6,
    "warmup": 2,
}
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
def job(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "words"
    path.write_bytes(WORDS * 2)
    asked = Run(**TINY, text=str(path), measure=Measure(**MEASURE)).but(steps=60)
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


def test_rows_are_what_the_measures_give(job):
    """Each column beside a direct call."""
    asked, model = job
    data, m = job_of(asked).data, asked.measure
    rows = list(measured(job_of(asked), model))
    for last, count in ((0, m.blocks), (1, m.last_tokens)):
        for score in perplexities(model, data.held_out, (12, 24), count=count, last=last):
            (row,) = [
                r for r in rows if (r["protocol"], r["length"]) == (score.protocol, score.length)
            ]
            for name in ("targets", "nats", "ratio", "low", "high"):
                assert row[name] == pytest.approx(getattr(score, name), rel=1e-6)
            assert score.perplexity == pytest.approx(math.exp(row["nats"]), rel=1e-6)
            assert row["targets"] == count * (24 if last == 0 else 1)
    fields = attention_field(
        model, data.held_out, thresholds=m.thresholds, length=24, segments=2, rows=4
    )
    told = [r for r in rows if r["protocol"] == "attention"]
    assert [(r["eps"], r["erf"], r["trf"]) for r in told] == [(f.eps, f.erf, f.trf) for f in fields]
    gradient = gradient_field(model, data.held_out, share=0.99, length=24, segments=2)
    first, *curve = [r for r in rows if r["protocol"] == "gradient"]
    assert (first["erf"], first["eps"], first["length"]) == (gradient.tokens, 0.01, 24)
    assert [(r["distance"], r["gradient"]) for r in curve] == gradient.curve
    assert [at for at, _ in gradient.curve] == [1, 2, 4, 8, 12, 16]
    assert all(a <= b for (_, a), (_, b) in itertools.pairwise(gradient.curve))


@pytest.mark.parametrize("length", [12, 31])
def test_a_rotation_is_measured_with_blocks_of_half_a_row(length):
    """[S, 3.3]: blockwise causal attention with half the training length."""
    from farfield.theory.encodings import encoding

    asked = with_encoding(Run(**TINY).but(length=length), "RoPE", encoding("rope"))
    assert asked.measure.bca == (length // 2,)
    assert with_encoding(Run(**TINY), "ALiBi", encoding("alibi", heads=2)).measure.bca == ()
