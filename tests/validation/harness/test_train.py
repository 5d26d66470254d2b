"""Training: what is resumed is the same, what diverges is refused, what is told is true."""

import contextlib
import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock, call

import numpy as np
import pytest
import torch
from torch import nn

from farfield.numerics.masks import CAUSAL, Mask
from farfield.validation.harness import train as training
from farfield.validation.harness.attention import materialised
from farfield.validation.harness.data import InductionRows, Text
from farfield.validation.harness.runs import model_of
from farfield.validation.harness.settings import Induction, Run
from farfield.validation.harness.train import (
    Process,
    backward,
    batch,
    learning_rate,
    optimizer,
    read_tensors,
    train,
    write_tensors,
)

GALLERY = Path(__file__).parents[3] / "docs" / "gallery"
TEXT = Text("words", *(np.frombuffer(b"the cat sat on the mat. " * n, np.uint8) for n in (90, 30)))
SMALL = {"layers": 2, "width": 32, "heads": 4, "length": 12, "batch": 4, "steps": 45, "warmup": 2}


def run(encoding="kerple_log", **settings):
    return Run(encoding=encoding, **{**SMALL, **settings})


def trained(asked, data=TEXT, spare=False, **how):
    """A model and its history; with a parameter that has no gradient where one is asked for."""
    model = model_of(asked, data.vocabulary)
    if spare:
        model.spare = nn.Parameter(torch.zeros(2))
    return model, train(model, data, asked, **how)


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


@pytest.fixture(scope="module")
def whole():
    """A training that nothing stops."""
    return trained(run(dropout=0.1), spare=True)


@pytest.mark.parametrize("at", [20, 33, pytest.param(1, marks=pytest.mark.slow)])
def test_a_killed_training_goes_on_to_the_same_weights_bit_for_bit(
    at, whole, interrupted, tmp_path
):
    asked, kept = run(dropout=0.1), tmp_path / "checkpoint"
    model, story = whole
    interrupted(at, trained, asked, spare=True, checkpoint=kept, every=0)
    steps = []
    told = lambda stage, done, total, note="": steps.append(done)  # noqa: E731
    resumed, again = trained(asked, spare=True, checkpoint=kept, every=0, progress=told)
    assert same(model, resumed) and steps == [*range(at + 1, 46)]
    assert [r[:4] for r in again] == [r[:4] for r in story]
    assert not same(model.layers, model_of(asked).layers)


def test_it_learns():
    _, story = trained(run(steps=60, lr=1e-2))
    last = story[-1]
    assert last.loss < story[0].loss - 1 and last.held_out == pytest.approx(last.loss, abs=0.7)


def test_the_task_is_learned_from_its_answers_alone():
    data = InductionRows(Induction(vocabulary=64))
    asked = run("nope", steps=1, batch=8)
    model, story = trained(asked, data)
    fresh = model_of(asked, 64)
    x, y = (torch.from_numpy(part) for part in data.batch(0, 0, 8, 12))
    logits = fresh(x)[y != -100].log_softmax(-1)
    wanted = -logits.gather(-1, y[y != -100][:, None]).mean()
    assert story[0].loss == pytest.approx(wanted.item(), rel=1e-5) and not model.training


def test_each_schedule_is_its_formula():
    rates = {
        name: [
            learning_rate(s, run(schedule=name, steps=100, warmup=10, lr=1.0)) for s in range(100)
        ]
        for name in ("cosine", "linear", "inverse sqrt")
    }
    for rate in rates.values():
        assert rate[:10] == pytest.approx([(s + 1) / 10 for s in range(10)])
        assert sorted(rate[9:], reverse=True) == rate[9:] and len(set(rate[9:])) == 91
    assert rates["cosine"][-1] == pytest.approx(0.05) and rates["linear"][-1] == pytest.approx(0)
    assert rates["inverse sqrt"][-1] == pytest.approx(10**-0.5)
    assert learning_rate(3, run(steps=10, warmup=50, lr=1.0)) < 1  # at most a fifth warms up


def test_a_training_that_diverges_stops_at_its_step_and_keeps_the_state_before(refusal, tmp_path):
    asked, kept = run(steps=30), tmp_path / "checkpoint"
    model = model_of(asked)
    steps = []

    def poison(stage, done, total, note=""):
        steps.append(done)
        if done == 7:
            nn.init.constant_(model.ln.weight, float("nan"))

    refusal(
        r"loss is nan at step 8 of 30 \(lr .*\); accepted: a sma",
        train,
        model,
        TEXT,
        asked,
        checkpoint=kept,
        every=0,
        progress=poison,
    )
    tensors, record = read_tensors(kept)
    assert json.loads(record)["done"] == 7 and all(t.isfinite().all() for t in tensors.values())


def test_a_file_that_is_not_what_was_written_is_refused_and_stays(refusal, tmp_path):
    path = tmp_path / "weights"
    write_tensors(
        path, {"a": torch.arange(5.0), "b": torch.ones(2, dtype=torch.bfloat16)}, {"n": 1}
    )
    tensors, record = read_tensors(path)
    assert tensors["a"].tolist() == [0, 1, 2, 3, 4] and json.loads(record) == {"n": 1}
    whole = path.read_bytes()
    for damaged in (whole[:-1], b"", whole[40:]):
        path.write_bytes(damaged)
        refusal("weights' is not what was written; accepted", read_tensors, path)
        assert path.read_bytes() == damaged
    other = tmp_path / "other"
    trained(run(), checkpoint=other, every=0)
    refusal("is of another model", trained, run(width=64), checkpoint=other)


def test_a_long_training_says_how_long_by_its_first_steps(monkeypatch):
    heard = Mock()
    trained(run(steps=5), progress=heard)
    assert all(told.args[2] for told in heard.mock_calls)  # five steps are not worth a line
    heard.reset_mock()
    now = iter(range(0, 10_000, 4))
    monkeypatch.setattr("time.perf_counter", lambda: float(next(now)))
    trained(run(steps=45), progress=heard)
    notes = [(at, told.args[3]) for at, told in enumerate(heard.mock_calls) if not told.args[2]]
    # The clock is read three times from step 1 to step 3: 12 s for two of them.
    assert notes == [(3, "about 4 min 12 s for 45 steps, by the first 3")]


def test_low_precision_trains_and_a_batch_that_does_not_divide_is_refused():
    _, story = trained(run("alibi", precision="bfloat16", steps=20))
    _, exact = trained(run("alibi", steps=20))
    assert story[-1].loss == pytest.approx(exact[-1].loss, rel=0.02)


OWN = ["fire.py:Fire", "forget_gate.py:ForgetGate", "scalable_softmax.py:ScalableSoftmax"]


@pytest.mark.parametrize("name", [*OWN, "contextual_positions.py:Cope"])
def test_a_module_of_ones_own_trains_and_is_the_specification(name):
    asked = run(f"{GALLERY / name}", steps=6, length=100, lr=1e-2)
    model, _ = trained(asked)
    fresh = model_of(asked)
    for at, bias in enumerate(model.biases):
        moved = [
            not torch.equal(a, b)
            for a, b in zip(bias.parameters(), fresh.biases[at].parameters(), strict=True)
        ]
        assert any(moved), name
    model = model.double().eval()

    def slow(layer, q, k, v, given):
        return materialised(q, k, v, given.bias, given.mask)

    tokens = torch.from_numpy(TEXT.batch(0, 0, 2, 100)[0])
    for mask in (CAUSAL, Mask(window=20, sinks=2)):
        torch.testing.assert_close(model(tokens, mask), model(tokens, mask, attend=slow))
    later = tokens.clone()
    later[:, 60:] = 65
    torch.testing.assert_close(model(tokens)[:, :60], model(later)[:, :60])


OF_TWO = {
    "forward(self, q_len, k_len)": "(torch.arange(k_len) - torch.arange(q_len)[:, None])[None] / 4",
    "forward(self, i, j)": "(torch.arange(j) - torch.arange(i)[:, None])[None] / 4",
    "forward(self, query, key)": "(key - query) / 4",
    "forward(self, i, j, scale=1 / 4)": "-(i[:, None] - j) * scale",
    "forward(self, a, b)": (  # a tensor of no fitting shape where positions are given
        "-(torch.arange(a)[:, None] - torch.arange(b)) / 4 if type(a) is int else torch.zeros(7)"
    ),
}


@pytest.mark.parametrize("signature", OF_TWO)
def test_a_module_of_lengths_or_of_positions_is_called_as_its_signature_says(signature, tmp_path):
    path = tmp_path / "mine.py"
    body = f"    def {signature}:\n        return {OF_TWO[signature]}\n"
    body += "    def factor(self, i):\n        return torch.ones(1, len(i))\n"
    path.write_text(f"import torch\n\nclass Mine(torch.nn.Module):\n{body}")
    ours, plain = (model_of(run(x, length=300)).eval() for x in (f"{path}:Mine", "-n/4"))
    assert ours.prepare(3)[0].factor(torch.arange(3)).tolist() == [[1, 1, 1]]
    tokens = torch.from_numpy(TEXT.batch(0, 0, 2, 300)[0])
    for last in (0, 1):
        hidden = [m.hidden(m.embed(tokens), last=last) for m in (ours, plain)]
        torch.testing.assert_close(*hidden)


def test_a_module_that_cannot_be_made_is_refused(refusal, tmp_path):
    path = tmp_path / "mine.py"
    of_two = "import torch\nclass Own(torch.nn.Module):\n    def forward(self, a, b): return a[9]"
    for source in ("1/0", "class Own: pass", "def Own(heads, size): return 3", of_two):
        path.write_text(source)
        said = r"mine.py(, line 1: Zero|:Own: TypeError|:Own is no torch|:Own, line 3: IndexError)"
        refusal(said, model_of, run(f"{path}:Own"))


def test_rows_of_two_processes_are_those_of_one(refusal):
    asked, model = run(accumulate=2), model_of(run())
    (whole, asked_of_one), *halves = (
        batch(TEXT, asked, 3, Process(model, rank, size), model.device)
        for rank, size in ((0, 1), (0, 2), (1, 2))
    )
    rows = [row for parts, _ in halves for x, _ in parts for row in x.tolist()]
    assert sorted(rows) == sorted(row for x, _ in whole for row in x.tolist())
    assert {targets for _, targets in halves} == {asked_of_one}
    refusal(
        "batch 4 in 1 parts of 3 processes; accepted is a mult",
        batch,
        TEXT,
        run(),
        0,
        Process(model, 0, 3),
        model.device,
    )


def test_gradients_of_parts_meet_once():
    asked, model = run(accumulate=4), model_of(run())
    parts, targets = batch(TEXT, asked, 3, Process(model), model.device)
    entered = []

    @contextlib.contextmanager
    def apart():
        entered.append(1)
        yield

    backward(model, parts, targets, 1, apart)
    assert len(entered) == 3


@pytest.mark.slow
def test_two_processes_train_as_one(tmp_path):
    script = tmp_path / "both.py"
    script.write_text(
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import torch\n"
        "from test_train import TEXT, run, trained\n"
        "model, story = trained(run(steps=8, accumulate=2))\n"
        "import os\n"
        "if os.environ['RANK'] == '0':\n"
        "    torch.save([*model.state_dict().values(), story[-1].loss], sys.argv[2])\n"
    )
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    place = [str(script), str(Path(__file__).parent), str(tmp_path / "out.pt")]
    subprocess.run([sys.executable, *command, *place], check=True, env={**os.environ}, timeout=300)
    *weights, loss = torch.load(tmp_path / "out.pt", weights_only=True)
    alone, story = trained(run(steps=8))
    assert loss == pytest.approx(story[-1].loss, rel=1e-5)
    for one, other in zip(weights, alone.state_dict().values(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl"])
def test_a_log_has_each_step_once_after_a_kill(tmp_path, name):
    asked, kept, log = run(steps=60), tmp_path / "checkpoint", tmp_path / name

    def kill(stage, done, total, note=""):
        if kept.exists() and done == 50:
            raise KeyboardInterrupt
        if done == 31:
            (kept.parent / "copy").write_bytes(kept.read_bytes())

    with pytest.raises(KeyboardInterrupt):
        train(model_of(asked), TEXT, asked, checkpoint=kept, every=0, log=str(log), progress=kill)
    kept.write_bytes((tmp_path / "copy").read_bytes())  # of step 31
    history = train(model_of(asked), TEXT, asked, checkpoint=kept, log=str(log))
    with open(log, newline="") as file:
        read = csv.DictReader(file) if name == "log.csv" else map(json.loads, file)
        told = [{k: float(v) for k, v in row.items()} for row in read]
    assert told == [r._asdict() for r in history] and [r.step for r in history] == [20, 40, 60]


def test_tensorboard_is_told_each_value_at_its_step_and_forgets_those_after(monkeypatch):
    first = training.Report(20, 2.5, None, 1e-3, 99.0, 7.0)
    board, reports = Mock(), [first, first._replace(step=40, held_out=2.25)]
    libraries = {"tensorboard": None, "torch.utils.tensorboard": board}
    monkeypatch.setattr(training, "library", lambda name, what: libraries[name])
    for history, purged in ((reports, 41), ([], 1)):
        show = training.reporter("board", history)
        board.SummaryWriter.assert_called_with("board", purge_step=purged)
    for report in reports:
        board.reset_mock()
        show(report)
        values = {k: v for k, v in report._asdict().items() if k != "step" and v is not None}
        each = [call.add_scalar(name, v, report.step) for name, v in values.items()]
        assert board.SummaryWriter.return_value.mock_calls == [*each, call.flush()]


def test_numbers_below_the_least_normal_one_are_0_in_training_alone():
    tiny, seen = torch.tensor(1e-30), []

    def watch(*_):
        seen.append(float(tiny * 1e-10))

    train(model_of(run(steps=2)), TEXT, run(steps=2), progress=watch)
    assert seen == [0.0, 0.0] and float(tiny * 1e-10) > 0


OPTIMIZERS = """
def raises(model, run):
    raise ValueError("no rate")

def number(model, run):
    return 3

def other(model):
    return model
"""


@pytest.mark.parametrize(
    "name, said",
    [
        (
            "raises",
            r"^mine.py:raises, line 3: ValueError: no rate; accepted: a function of a model",
        ),
        ("number", "^number returns 3; accepted is an optimiser of torch$"),
        (
            "other",
            r"^other: other\(\) takes 1 positional argument but 2 were given; accepted: a func",
        ),
        ("absent", "^absent: module .* has no attribute 'absent'; accepted: a function of a model"),
    ],
)
def test_what_is_no_optimizer_is_refused_in_a_line(refusal, name, said, tmp_path):
    (tmp_path / "mine.py").write_text(OPTIMIZERS)
    asked = run(optimizer=f"{tmp_path}/mine.py:{name}")
    refusal(said, optimizer, model_of(asked), asked)
