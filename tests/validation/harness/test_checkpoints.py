import os

import pytest
import torch

from farfield.theory.encodings import encoding
from farfield.validation.harness.configuration import Configuration
from farfield.validation.harness.corpus import corpus
from farfield.validation.harness.experiment import train_and_measure, trained_model
from farfield.validation.harness.positional import initialised
from farfield.validation.harness.presets import PRESETS
from farfield.validation.harness.store import Store
from farfield.validation.harness.training import TrainingDiverged, read_checkpoint, train
from farfield.validation.json_files import CorruptFile


class Killed(Exception):
    pass


def killed_at(step):
    def progress(stage, done, total, note):
        if done == step:
            raise Killed

    return progress


def weights(model):
    return [p.detach().clone() for p in model.parameters()]


def fresh(small):
    return initialised(encoding("kerple_log"), small, 1)


@pytest.fixture(scope="module")
def whole(text, small):
    model = fresh(small)
    return train(model, text.train, small, 1), weights(model)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("step", range(1, 12))
def test_a_training_killed_at_any_step_ends_in_the_same_weights(step, whole, text, small, tmp_path):
    with pytest.raises(Killed):
        train(fresh(small), text.train, small, 1, killed_at(step), tmp_path, 0)
    kept = step - 1  # the step after the kill would have written the next checkpoint
    assert {p.name for p in tmp_path.iterdir()} == (
        {"checkpoint.json", f"checkpoint-{kept}.safetensors"} if kept else set()
    )
    torch.rand(step)  # another process has another random state
    model = fresh(small)
    training = train(model, text.train, small, 1, folder=tmp_path, every=0)
    assert training.losses == whole[0].losses and training.tokens == whole[0].tokens
    assert training.resumed == ((kept,) if kept else ())
    assert all(torch.equal(a, b) for a, b in zip(weights(model), whole[1], strict=True))


def test_a_training_killed_again_and_again(whole, text, small, tmp_path):
    for step in (3, 7, 8, 12):
        with pytest.raises(Killed):
            train(fresh(small), text.train, small, 1, killed_at(step), tmp_path, 0)
    model = fresh(small)
    assert train(model, text.train, small, 1, folder=tmp_path).resumed == (2, 6, 7, 11)
    assert all(torch.equal(a, b) for a, b in zip(weights(model), whole[1], strict=True))


def test_no_checkpoint_before_its_time(text, small, tmp_path):
    train(fresh(small), text.train, small, 1, folder=tmp_path, every=1000)
    assert list(tmp_path.iterdir()) == []


def test_training_leaves_the_random_state_alone(text, small):
    state = torch.get_rng_state()
    train(fresh(small), text.train, small, 1)
    assert torch.equal(state, torch.get_rng_state())


@pytest.fixture
def interrupted(text, small, tmp_path):
    """A configuration, a store where its training was killed at step 8, and the run's folder."""
    configuration, store = Configuration(encoding("type1"), text, small), Store(tmp_path)
    with pytest.raises(Killed):
        train_and_measure(configuration, store, killed_at(8), 0)
    (path,) = tmp_path.rglob("checkpoint.json")
    return configuration, store, path.parent


def test_a_finished_run_keeps_no_checkpoint(interrupted, tmp_path):
    configuration, store, folder = interrupted
    result = train_and_measure(configuration, store)
    assert result["training"]["resumed"] == [7] and result["notes"] == []
    assert not list(folder.glob("checkpoint*"))
    again = train_and_measure(configuration, Store(tmp_path / "other"))
    assert again["training"]["weights_sha256"] == result["training"]["weights_sha256"]


DAMAGES = {
    "json": lambda folder: (folder / "checkpoint.json").write_text("{"),
    "gone": lambda folder: next(folder.glob("*.safetensors")).unlink(),
    "cut": lambda folder: os.truncate(next(folder.glob("*.safetensors")), 500),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_corrupted_checkpoint_is_set_aside(interrupted, damage):
    configuration, store, folder = interrupted
    DAMAGES[damage](folder)
    result = train_and_measure(configuration, store)
    assert result["training"]["resumed"] == []
    (note,) = result["notes"]
    aside = folder.with_name(f"{folder.name}.corrupt-1")
    assert f"a corrupted run was set aside as {aside.name}" in note and "\n" not in note
    assert (aside / "checkpoint.json").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: {k: v for k, v in t.items() if "wide" not in k}, "lacks tensor 'layers.0.wide"),
        (lambda t: t | {"model.more": torch.zeros(1)}, "has unknown tensor 'more'$"),
        (lambda t: t | {"model.norm.weight": torch.zeros(3)}, "has misshapen tensor 'norm.weight'"),
        (
            lambda t: {k: v for k, v in t.items() if "optimiser.0" not in k},
            "lacks tensor 'optimiser.0.step'",
        ),
    ],
)
def test_missing_and_extra_tensors(interrupted, text, small, change, message, monkeypatch):
    folder = interrupted[2]
    checkpoint = read_checkpoint(folder)
    tensors = change(checkpoint.tensors)
    checkpoint.tensors.clear()
    checkpoint.tensors.update(tensors)
    monkeypatch.setattr(
        "farfield.validation.harness.training.read_checkpoint", lambda _: checkpoint
    )
    with pytest.raises(CorruptFile, match=message) as error:
        train(initialised(encoding("type1"), small, 0), text.train, small, 0, folder=folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_numbers_that_are_none_leave_the_last_good_state(where, text, small, tmp_path):
    model = fresh(small)

    def progress(stage, done, total, note):
        if done == 6:
            if where == "loss":
                model.norm.weight.data[0] = float("nan")
            else:
                model.norm.weight.register_hook(lambda g: g * float("inf"))

    last = 5 if where == "loss" else 6
    named = f"{tmp_path.name}/checkpoint-{last}.safetensors"
    with pytest.raises(TrainingDiverged, match=f"at step 7 of 12.* is kept as {named}"):
        train(model, text.train, small, 1, progress, tmp_path, 0)
    kept = read_checkpoint(tmp_path)
    assert kept.step == last and all(v.isfinite().all() for v in kept.tensors.values())
    model = fresh(small)
    train(model, text.train, small, 1, folder=tmp_path)  # and it can be continued


def test_kill_9_loses_the_steps_since_the_last_checkpoint_only(forked, tmp_path):
    source = tmp_path / "words.txt"
    source.write_text("what is lost is a step or two, " * 2000)
    configuration = Configuration(encoding("kerple_log"), corpus(source), PRESETS["tiny"])

    def run(tell):
        def progress(stage, done, *_):
            tell((stage, done))

        train_and_measure(configuration, Store(tmp_path / "runs"), progress, 0)

    for step in (9, 20):
        forked(run).kill_at(("train", step))
    result = train_and_measure(configuration, Store(tmp_path / "runs"))
    first, second = result["training"]["resumed"]
    assert 8 <= first < second and 19 <= second < 30
    assert result["notes"] == []
    threads = torch.get_num_threads()
    assert threads == 1
    model = initialised(encoding("kerple_log"), PRESETS["tiny"], 0)
    train(model, configuration.corpus.train, PRESETS["tiny"])
    found = trained_model(configuration, Store(tmp_path / "runs"))
    assert all(torch.equal(a, b) for a, b in zip(weights(model), weights(found), strict=True))
