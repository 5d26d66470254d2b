"""Tasks: what their rows ask, and what is measured of the answers."""

import dataclasses

import numpy as np
import pytest
import torch

from farfield.numerics.retrieval import retrieval_curve
from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding
from farfield.validation.harness.configuration import Configuration, hybrid, key, read_layers
from farfield.validation.harness.experiment import train_and_measure
from farfield.validation.harness.measures.recall import distances_of, recall, retrieval_logits
from farfield.validation.harness.plan import parse_plan
from farfield.validation.harness.positional import initialised
from farfield.validation.harness.presets import Probes
from farfield.validation.harness.store import Store
from farfield.validation.harness.tasks import Task
from farfield.validation.harness.training import UNASKED, batch


def task_of(kind, text, **more):
    return Task(kind, text=text if kind == "needle" else None, **more)


KINDS = ("induction", "copy", "needle")


@pytest.mark.parametrize("kind", KINDS)
def test_a_probe_is_answered_by_its_key(kind, text):
    """The token after the query is that at the key, and so on for each answer asked."""
    task, random = task_of(kind, text, distractors=2), np.random.default_rng(0)
    length = 80
    for distance in {task.nearest(), 23, task.farthest(length)}:
        rows = task.probe(random, 5, length, distance)
        assert rows.tokens.shape == (5, length + 1) and (rows.query - rows.key == distance).all()
        for row in range(5):
            asked = np.flatnonzero(rows.asked[row])
            assert asked[0] == rows.query[row] and asked[-1] == length - 1
            answers = rows.tokens[row, asked + 1]
            assert (answers == rows.tokens[row, asked - distance]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_to_train_on_have_one_answer_each(kind, text):
    """Whatever is asked can be told from the row: what follows the query's token stood before."""
    task = task_of(kind, text)
    rows = task.rows(np.random.default_rng(1), 20, 64)
    assert rows.asked.any(1).mean() > 0.9
    for tokens, asked in zip(rows.tokens, rows.asked, strict=True):
        for at in np.flatnonzero(asked):
            before = [j for j in range(1, at + 1) if tokens[j - 1] == tokens[at] and j <= at]
            followers = {int(tokens[j]) for j in before}
            if kind == "induction":
                assert followers == {int(tokens[at + 1])} and len(before) == 1
            elif kind == "copy":
                assert int(tokens[at + 1]) in followers
    again = task.rows(np.random.default_rng(1), 20, 64)
    assert (again.tokens == rows.tokens).all() and (again.asked == rows.asked).all()
    if kind != "needle":
        assert rows.tokens.max() < task.vocabulary


def test_distances_of_training_rows_are_spread():
    rows = Task("induction").rows(np.random.default_rng(0), 4000, 64)
    far = (rows.query - rows.key)[rows.query >= 0]
    assert far.min() == 1 and far.max() > 55


def test_needles_among_distractors_have_other_keys(text):
    rows = task_of("needle", text, distractors=4).probe(np.random.default_rng(3), 8, 200, 100)
    for row in rows.tokens:
        said = bytes(row.astype(np.uint8))
        assert said.count(said[-9:-4]) == 2 and said.count(b":") >= 6


def test_a_batch_counts_the_answers_alone(small):
    task = Task("induction", vocabulary=64)
    inputs, targets = batch(task, small, 0, 3)
    found = task.rows(np.random.default_rng([0, 3]), small.batch, small.length)
    assert torch.equal(targets == UNASKED, torch.from_numpy(~found.asked))
    assert torch.equal(inputs, torch.from_numpy(found.tokens[:, :-1]))


def test_a_model_that_copies_the_key_recalls(small):
    """A head that is made to look exactly `n` back has its attention there, and there alone."""
    task, shape = Task("induction", vocabulary=64), dataclasses.replace(small, layers=1)
    layers = read_layers(["-50*(n-7)**2"], small.heads)
    model = initialised(hybrid("a"), shape, 0, task.vocabulary, layers).eval()
    asked = Probes(lengths=(12, 30), distances=(5, 7, 9), rows=6)
    found, logits = recall(model, task, asked, 12)
    for point in found.points:
        assert point.attention == pytest.approx(float(point.distance == 7), abs=1e-6)
        assert point.rows == 6 and np.shape(point.heads) == (1, 4)
    assert {(p.length, p.distance) for p in found.points} == {
        (n, far) for n in (12, 30) for far in (5, 7, 9)
    }
    assert {k: v.shape for k, v in logits.items()} == {
        "target": (18,),
        "others": (18, 8),
        "near": (18, 3),
    }


def test_what_is_kept_forecasts_the_attention_at_the_training_length(text, tmp_path):
    """Resampled, the content logits give the attention that was measured where they were taken."""
    plan = parse_plan(
        {
            "sweep": [
                {
                    "encodings": [{"label": "a", "layers": ["-n", "-n/8"]}],
                    "presets": ["tiny"],
                    "heads": [4],
                    "lengths": [40],
                    "steps": [3],
                    "tested": [40, 60],
                    "task": {"kind": "induction", "vocabulary": 64},
                    "probe": {"rows": 40, "distances": [6, 20]},
                }
            ]
        }
    )
    (job,) = plan.jobs(text)
    result = train_and_measure(job.configuration, Store(tmp_path))
    (measured,) = result["measurements"]
    logits = retrieval_logits(tmp_path / result["key"] / measured["logits"])
    home = [p for p in measured["recall"]["points"] if p["length"] == 40]
    bias = "-n" if measured["recall"]["layer"] == 1 else "-n/8"
    said = retrieval_curve(
        logits["target"],
        logits["others"],
        bias,
        near=logits["near"],
        length=40,
        distances=[p["distance"] for p in home],
    )
    for point, forecast in zip(home, said.attention, strict=True):
        assert forecast == pytest.approx(point["attention"], rel=0.1, abs=0.002)
    assert train_and_measure(job.configuration, Store(tmp_path)) == result


@pytest.mark.parametrize("kind", KINDS)
def test_a_task_is_learned_and_named_by_its_key(kind, text, small, tmp_path):
    shape = dataclasses.replace(small, length=48, steps=2)
    configurations = [
        Configuration(
            encoding("-n"),
            text,
            shape,
            task=task_of(kind, text, **more),
            probes=Probes(lengths=(60,), rows=2, distances=(20,)),
        )
        for more in ({}, {"distractors": 1}, {"span": 3}, {"vocabulary": 70})
    ]
    keys = {key(c.training()) for c in configurations}
    assert len(keys) == {"induction": 2, "copy": 3, "needle": 2}[kind]
    result = train_and_measure(configurations[0], Store(tmp_path))
    points = result["measurements"][0]["recall"]["points"]
    assert [p["length"] for p in points] == [48, 60]
    assert result["text"]["source"] == f"task {kind}"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Task("reverse"),
            "task: kind 'reverse'; accepted is 'induction'",
        ),
        (lambda: Task("needle"), "accepted is a text of bytes"),
        (
            lambda: Task("induction", vocabulary=3),
            "task: vocabulary 3; accepted is greater",
        ),
        (lambda: Task("copy", span=20).require(30), "rows of 30 tokens have no room.*from 41"),
        (lambda: Task("induction").require(2000), "2000 different tokens out of 1152"),
        (lambda: Task("induction").require(64, 63), "distance 63 in rows of 64.*from 1 to 62"),
        (lambda: Probes(rows=0), "probes: rows 0"),
    ],
)
def test_tasks_without_room_are_refused_in_one_line(make, message):
    with pytest.raises(InputError, match=message) as error:
        make()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"task": {"kind": "induction", "vocab": 9}}, "task: 'vocab' is not known"),
        (
            {"task": {"kind": "copy", "span": "8"}},
            "task: span '8'; accepted is",
        ),
        ({"task": {}}, "task: kind is missing"),
        ({"task": {"kind": "copy"}, "probe": {"rows": 1.5}}, "probes: rows 1.5; accepted is"),
        ({"task": {"kind": "induction"}, "tested": [4000]}, "4000 different tokens"),
        ({"task": {"kind": "induction"}, "probe": {"distances": [4000]}}, "distance 4000"),
    ],
)
def test_plans_of_tasks_are_refused_in_one_line(more, message, text):
    with pytest.raises(InputError, match=message):
        parse_plan({"sweep": [{"encodings": ["-n"], "presets": ["recall"], **more}]}).jobs(text)


def test_distances_are_in_reach_of_the_row(text):
    for kind in KINDS:
        task = task_of(kind, text)
        for length in (64, 300):
            each = distances_of(task, Probes(), length)
            assert each == sorted(set(each)) and len(each) <= 8
            assert task.nearest(3) == each[0] and task.farthest(length) == each[-1]
