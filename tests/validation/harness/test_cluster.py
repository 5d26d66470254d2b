"""A plan on a local Ray of two workers."""

import dataclasses
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import ray

from farfield.cli import main
from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding
from farfield.validation.harness.configuration import Configuration
from farfield.validation.harness.plan import Job
from farfield.validation.harness.store import Store
from farfield.validation.harness.sweep import Cluster, finished, sweep


@pytest.fixture(scope="module")
def local():
    """One Ray for the tests of this file; a sweep leaves a Ray alone that it has not started."""
    ray.init(
        "local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=10**8
    )
    yield
    ray.shutdown()


@pytest.fixture
def jobs(text, small):
    longer = dataclasses.replace(small, steps=1000)
    return (
        Job("long", Configuration(encoding("nope"), text, longer)),
        Job("short", Configuration(encoding("type1"), text, small)),
        Job("refused", Configuration(encoding("exp(exp(n))"), text, small)),
    )


class Heard(list):
    def __init__(self, reaction=lambda job, stage: None):
        super().__init__()
        self.reaction = reaction

    def __call__(self, job, stage, done, total, note):
        self.append((job.label, stage))
        self.reaction(job, stage)


def workers():
    """The processes below this one that run a job; Ray titles them by their function."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if b"ray::_attempt" in (place / "cmdline").read_bytes():
                raylet = (place / "stat").read_text().rpartition(")")[2].split()[1]
                parent = Path(f"/proc/{raylet}/stat").read_text().rpartition(")")[2].split()[1]
                if int(parent) == os.getpid():
                    found.append(int(place.name))
        except OSError:
            continue
    return found


@pytest.mark.slow  # the start of Ray takes longer than the jobs
def test_a_plan_on_ray(local, jobs, tmp_path):
    """The runs are those of this process; a failure is told; what fits nowhere is refused."""
    store, alone, heard = Store(tmp_path / "ray"), Store(tmp_path / "alone"), Heard()
    swept = sweep(jobs[1:], store, Cluster(2), heard)
    assert [entry["state"] for entry in swept.runs] == ["finished", "failed"]
    assert "the bias exp(exp(n)) is inf" in swept.runs[1]["note"]
    assert ("short", "finished") in heard and ("refused", "failed") in heard
    sweep(jobs[1:2], alone)
    theirs, ours = (finished(jobs[1], s)["training"] for s in (store, alone))
    assert theirs["weights_sha256"] == ours["weights_sha256"] and theirs["losses"]
    with pytest.raises(InputError, match="fits no machine of this Ray; accepted: at most 2 cores"):
        sweep(jobs, store, Cluster(cpus=64))


@pytest.mark.slow  # the workers of test_sweep are killed too
@pytest.mark.parametrize("times", [1, 2])
def test_a_worker_that_is_killed_loses_its_job_only(times, local, jobs, tmp_path):
    """The job is begun again, and given up at the second death where one retry is allowed."""
    killed = []

    def kill():
        while not (found := workers()):
            time.sleep(0.1)
        time.sleep(1)  # it has begun the job
        killed.append(found)
        for worker in found:
            os.kill(worker, signal.SIGKILL)

    def begun(job, stage):
        if (job.label, stage) == ("long", "started") and len(killed) < times:
            threading.Thread(target=kill, daemon=True).start()

    heard = Heard(begun)
    first, second = sweep(jobs[:2], Store(tmp_path), Cluster(1), heard, retries=1).runs
    assert all(killed) and ("long", "lost") in heard and heard.count(("long", "started")) == 2
    assert heard.count(("short", "started")) == 1 and second["state"] == "finished"
    assert first["state"] == ("finished" if times == 1 else "failed")
    assert times == 1 or first["note"].startswith("its worker died 2 times")


def test_what_a_job_may_take():
    for wrong in ({"cpus": 0}, {"cpus": 1.5}, {"gpus": -1}, {"gpus": float("nan")}):
        with pytest.raises(InputError, match="accepted is a whole number, or a share of one"):
            Cluster(**wrong)
    with pytest.raises(InputError, match="workers 0"):
        Cluster(0)


def test_nothing_is_connected_where_nothing_is_to_do(jobs, tmp_path):
    store = Store(tmp_path)
    sweep(jobs[1:2], store)
    engine = Cluster(address="127.0.0.1:1")
    (entry,) = sweep(jobs[1:2], store, engine).runs
    assert entry["state"] == "finished" and engine.task is None


@pytest.fixture
def files(tmp_path):
    (tmp_path / "words.txt").write_text("one word after another, " * 1000)
    (tmp_path / "plan.toml").write_text(
        '[[sweep]]\npresets = ["tiny"]\nencodings = ["type1", "rope"]\nseeds = [0, 1]\n'
        "multiples = [1]\n"
    )
    return [
        str(tmp_path / "plan.toml"),
        "--text",
        str(tmp_path / "words.txt"),
        "--engine",
        "ray",
        "--runs",
        str(tmp_path / "runs"),
    ]


def free_port():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        return closed.getsockname()[1]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:PORT", "no Ray answers at .*: Connection refused; accepted"),
        ("ray://127.0.0.1:PORT", "no Ray answers at .*: Connection refused; accepted"),
        ("nowhere", "no Ray answers at 'nowhere': .*; accepted: auto, or HOST:PORT"),
    ],
)
def test_a_cluster_that_does_not_answer(address, message, jobs, tmp_path, monkeypatch):
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    address = address.replace("PORT", str(free_port()))
    with pytest.raises(InputError, match=message) as error:
        sweep(jobs, Store(tmp_path), Cluster(address=address))
    assert "\n" not in str(error.value)


def test_ray_is_missing(files, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SystemExit) as stop:
        main(["sweep", *files])
    assert stop.value.code == 2
    assert "pip install '.[cluster]'" in capsys.readouterr().err


@pytest.mark.slow  # the driver of test_sweep is killed too
def test_a_driver_that_is_killed_resumes(files, tmp_path):
    command = [sys.executable, "-m", "farfield.cli", "sweep", *files, "--workers", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as driver:
        while "finished" not in driver.stderr.readline():
            assert driver.poll() is None
        driver.kill()
    kept = {p: p.stat().st_ino for p in (tmp_path / "runs").rglob("training.json")}
    assert kept
    time.sleep(1)
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("4 runs: 4 finished.")
    assert kept == {p: p.stat().st_ino for p in kept}
