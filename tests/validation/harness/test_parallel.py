"""One training divided among processes is the training that one process does, to rounding."""

import contextlib
import dataclasses
import io
import json
import os
import signal
import socket
import subprocess
import sys

import pytest
import torch
from torch.nn.functional import cross_entropy

from farfield.cli import main
from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding
from farfield.validation.harness import parallel
from farfield.validation.harness.configuration import Configuration, key
from farfield.validation.harness.corpus import corpus
from farfield.validation.harness.experiment import train_and_measure, trained_model
from farfield.validation.harness.positional import initialised
from farfield.validation.harness.presets import preset
from farfield.validation.harness.store import Store
from farfield.validation.harness.training import _parts, batch, train

CLOSE = {"rtol": 0, "atol": 1e-5}  # of weights near 0.1, after 30 steps


class Killed(Exception):
    pass


def killed_at(step):
    def progress(stage, done, total, note):
        if done == step:
            raise Killed

    return progress


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("what is divided is one batch, " * 1000)
    return path


def verb(folder, source, *more):
    """The command that trains the run."""
    given = ("--preset", "tiny", "--text", str(source), "--runs", str(folder), "--device", "cpu")
    return ["train", "kerple_log", *given, *more]


def torchrun(processes, folder, source, *more):
    """The run that so many processes make, and what they say."""
    alone = ["--standalone", "--nproc-per-node", str(processes)]
    command = [sys.executable, "-m", "torch.distributed.run", *alone, "-m", "farfield.cli"]
    command += verb(folder, source, *more)
    return subprocess.run(command, capture_output=True, text=True, timeout=200)


@pytest.fixture
def divided(forked):
    """What the processes of a run say that are started as torchrun starts them."""

    def start(processes, folder, source):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        given = {"WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}

        def process(rank):
            def work(tell):
                os.environ.update(given, RANK=str(rank), LOCAL_RANK=str(rank))
                with (
                    contextlib.redirect_stdout(io.StringIO()) as said,
                    pytest.raises(SystemExit) as ended,
                ):
                    main(verb(folder, source, "--json"))
                tell((ended.value.code, said.getvalue()))

            return forked(work)

        told = [one.told() for one in [process(rank) for rank in range(processes)]]
        assert [code for ((code, _),) in told] == [0] * processes
        return "".join(said for ((_, said),) in told)

    return start


@pytest.fixture
def by_torchrun():
    def start(processes, folder, source):
        done = torchrun(processes, folder, source, "--json")
        assert done.returncode == 0, done.stderr
        return done.stdout

    return start


@pytest.mark.parametrize(
    "started", ["divided", pytest.param("by_torchrun", marks=pytest.mark.slow)]
)
def test_two_processes_train_what_one_trains(started, request, source, tmp_path):
    """They continue what one process began and one process continues what they began."""
    configuration = Configuration(encoding("kerple_log"), corpus(source), preset("tiny"))
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    alone = train_and_measure(configuration, one, device="cpu")
    with pytest.raises(Killed):
        train_and_measure(configuration, two, killed_at(9), 0, "cpu")
    said = request.getfixturevalue(started)(2, two.root, source)
    assert said.count('"key"') == 1  # one of them speaks
    divided = json.loads(said)["run"]
    assert divided["key"] == alone["key"] == key(configuration.training())
    training = divided["training"]
    assert training["environment"]["processes"] == 2 and training["resumed"] == [8]
    assert "processes" not in divided["measurements"][0]["environment"]
    for ours, theirs in zip(alone["training"]["losses"], training["losses"], strict=True):
        assert ours[0] == theirs[0] and ours[1] == pytest.approx(theirs[1], abs=1e-5)
    for ours, theirs in zip(
        trained_model(configuration, one).parameters(),
        trained_model(configuration, two).parameters(),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, **CLOSE)


@pytest.mark.slow  # the test above goes from one process to two
def test_a_checkpoint_of_two_processes_is_continued_by_one(source, tmp_path, text):
    """Two processes are killed; then one goes on, and three after it."""
    configuration = Configuration(encoding("kerple_log"), corpus(source), preset("tiny"))
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    alone = train_and_measure(configuration, one, device="cpu")
    script = tmp_path / "killed.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    done = subprocess.run([*command, "2", script, two.root, source], capture_output=True)
    (path,) = two.root.rglob("checkpoint.json")
    assert done.returncode != 0 and json.loads(path.read_text())["step"] == 14
    with pytest.raises(Killed):
        train_and_measure(configuration, two, killed_at(21), 0, "cpu")
    done = torchrun(3, two.root, source, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["run"]["training"]["resumed"] == [14, 20]
    assert json.loads(done.stdout)["run"]["training"]["environment"]["processes"] == 3
    for ours, theirs in zip(
        trained_model(configuration, one).parameters(),
        trained_model(configuration, two).parameters(),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, **CLOSE)
    again = torchrun(2, two.root, source, "--json")  # finished: nothing is trained
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["run"]["training"] == json.loads(done.stdout)["run"]["training"]
    assert alone["key"] == json.loads(again.stdout)["run"]["key"]


SCRIPT = """
import os, signal, sys
import torch
from farfield.theory.encodings import encoding
from farfield.validation.harness.configuration import Configuration
from farfield.validation.harness.presets import preset
from farfield.validation.harness.corpus import corpus
from farfield.validation.harness.experiment import follow, train_and_measure
from farfield.validation.harness.parallel import together
from farfield.validation.harness.store import Store

def progress(stage, done, total, note):
    if done == 15:
        os.kill(os.getpid(), signal.SIGKILL)

configuration = Configuration(encoding("kerple_log"), corpus(sys.argv[2]), preset("tiny"))
with together(torch.device("cpu")) as leads:
    if leads:
        train_and_measure(configuration, Store(sys.argv[1]), progress, 0, "cpu")
    else:
        follow(configuration, "cpu")
"""


@pytest.mark.slow
def test_processes_that_cannot_train_end_with_one_line(source, tmp_path):
    done = torchrun(9, tmp_path / "runs", source)
    assert done.returncode != 0
    assert "a batch of 8 sequences for 9 processes; accepted: at most 8" in done.stderr


def shares(monkeypatch, processes):
    """Run what follows as each of so many processes."""
    for number in range(processes):
        monkeypatch.setattr(parallel, "rank", lambda number=number: number)
        monkeypatch.setattr(parallel, "size", lambda: processes)
        yield number


@pytest.mark.parametrize(("sequences", "parts", "processes"), [(4, 1, 2), (8, 4, 3), (5, 1, 5)])
def test_the_shares_of_a_batch_are_the_batch(sequences, parts, processes, text, small, monkeypatch):
    """Rows: each once, in parts no larger than before. Gradients: their mean is the whole's."""
    shape = dataclasses.replace(small, batch=sequences, parts=parts)
    rows = batch(text.train, shape, 0, 0)
    model = initialised(encoding("kerple_log"), shape, 0)
    cross_entropy(model(rows[0]).flatten(0, 1), rows[1].flatten()).backward()
    whole = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    seen = []
    for _ in shares(monkeypatch, processes):
        mine = _parts(rows, shape, torch.device("cpu"))
        assert mine and all(len(inputs) <= sequences // parts for inputs, _ in mine)
        seen += [inputs for inputs, _ in mine]
        for inputs, targets in mine:
            loss = cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
            (loss / (sequences / len(inputs))).backward()
    assert torch.equal(torch.cat(seen), rows[0])
    for share, p in zip(whole, model.parameters(), strict=True):
        torch.testing.assert_close(p.grad, share, rtol=1e-4, atol=1e-6)


def test_seeds_differ_between_processes_and_not_for_one(monkeypatch):
    assert parallel.seed_for(3, 100) == 3
    found = {parallel.seed_for(3, first) for first in (0, 5) for _ in shares(monkeypatch, 4)}
    assert len(found) == 7  # process 0 has the seed itself, whenever it begins


def test_too_many_processes(text, small, monkeypatch):
    for _ in shares(monkeypatch, 5):
        with pytest.raises(InputError, match="a batch of 4 sequences for 5 processes"):
            parallel.own_rows(batch(text.train, small, 0, 0)[0])


def test_one_process_is_no_group(text, small, monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with parallel.together(torch.device("cpu")) as leads:
        assert leads and (parallel.rank(), parallel.size()) == (0, 1)
        model = initialised(encoding("rope"), small, 0)
        assert parallel.begin(model, None, 5, torch.ones(2)) == 5
        assert parallel.total(torch.ones(2)).tolist() == [1, 1]
        assert train(model, text.train, small).steps == small.steps
    assert not torch.distributed.is_initialized()


@pytest.fixture
def pair(forked, tmp_path):
    """Makes this process the second of two; the first says what it is given."""
    place = f"file://{tmp_path}/store"

    def first(said):
        def leader(tell):
            torch.distributed.init_process_group("gloo", init_method=place, rank=0, world_size=2)
            torch.distributed.broadcast_object_list([said], 0)
            signal.pause()

        forked(leader)
        torch.distributed.init_process_group("gloo", init_method=place, rank=1, world_size=2)

    yield first
    torch.distributed.destroy_process_group()


def test_a_process_with_another_text_is_refused(pair, text, small):
    pair((0, 12345, {}, {}))
    with pytest.raises(InputError, match="process 1 reads another text than process 0"):
        train(initialised(encoding("rope"), small, 0), text.train, small)


@pytest.mark.slow
def test_a_process_whose_leader_has_nothing_to_train_leaves(pair, text, small):
    pair(None)
    with pytest.raises(parallel.NothingToTrain):
        train(initialised(encoding("rope"), small, 0), text.train, small)


def test_gpus_of_a_machine_are_counted(monkeypatch):
    for name, value in (("WORLD_SIZE", "3"), ("LOCAL_RANK", "2")):
        monkeypatch.setitem(os.environ, name, value)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with (
        pytest.raises(InputError, match=r"process 3 of this machine has no GPU.* at most 2"),
        parallel.together(torch.device("cuda")),
    ):
        pass


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU is visible")
def test_one_process_of_a_group_on_a_gpu(text, small, tmp_path, monkeypatch):
    """NCCL, with as many processes as there always are GPUs: one; losses as without a group."""
    shape = dataclasses.replace(small, width=64, steps=20)
    alone = initialised(encoding("kerple_log"), shape, 0).to("cuda")
    expected = train(alone, text.train, shape).losses
    torch.distributed.init_process_group(
        "cpu:gloo,cuda:nccl", init_method=f"file://{tmp_path}/store", rank=0, world_size=1
    )
    try:
        model = initialised(encoding("kerple_log"), shape, 0).to("cuda")
        alone_in_group = parallel.sum_gradients

        def summed(model):
            with monkeypatch.context() as two:
                two.setattr(parallel, "size", lambda: 2)
                alone_in_group(model)

        monkeypatch.setattr(parallel, "sum_gradients", summed)
        found = train(model, text.train, shape).losses
    finally:
        torch.distributed.destroy_process_group()
    assert found[-1][1] == pytest.approx(expected[-1][1], abs=0.05)
