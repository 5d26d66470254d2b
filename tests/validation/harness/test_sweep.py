import _thread
import dataclasses
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path

import pytest

from farfield.cli import main
from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding
from farfield.validation.harness.configuration import Configuration
from farfield.validation.harness.experiment import train_and_measure
from farfield.validation.harness.plan import Job
from farfield.validation.harness.store import InUse, Store
from farfield.validation.harness.sweep import Processes, finished, sweep

PLAN = """
title = "Two and two"
[[sweep]]
presets = ["tiny"]
encodings = ["type1", "rope"]
seeds = [0, 1]
multiples = [1, 4]
"""


@pytest.fixture(scope="module")
def jobs(text, small):
    """Three jobs of less than a second."""
    return tuple(
        Job(name, Configuration(encoding(name), text, small)) for name in ("type1", "rope", "nope")
    )


@pytest.fixture(scope="module")
def long(text, small):
    """A job that takes seconds."""
    shape = dataclasses.replace(small, steps=2000)
    return Job("long", Configuration(encoding("type2"), text, shape))


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("one word after another, " * 1000)
    return str(path)


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return str(path)


class Heard(list):
    """What a sweep says, as (label, stage), and what is done when it says it."""

    def __init__(self, **reactions):
        super().__init__()
        self.reactions = reactions

    def __call__(self, job, stage, done, total, note):
        self.append((job.label, stage))
        if reaction := self.reactions.get(stage):
            reaction(job)

    def count_of(self, label):
        return sum(place == (label, "started") for place in self)


def states(swept):
    return {run["state"] for run in swept.runs}


def weights(store, job):
    return finished(job, store)["training"]["weights_sha256"]


def test_a_sweep_is_its_runs_each_made_once(jobs, tmp_path, speaks):
    store, alone, heard = Store(tmp_path / "runs"), Store(tmp_path / "alone"), Heard()
    swept = sweep(jobs, store, watch=heard)
    assert [entry["state"] for entry in swept.runs] == ["finished"] * 3 and states(swept) == {
        "finished"
    }
    for job, entry in zip(jobs, swept.runs, strict=True):
        result = train_and_measure(job.configuration, alone)
        assert weights(store, job) == weights(alone, job)
        assert entry["loss"] == result["training"]["losses"][-1][1]
        assert entry["ratios"] == [
            (m["inference"]["label"], m["perplexity"][-1]["length"], m["perplexity"][-1]["ratio"])
            for m in result["measurements"]
        ]
        assert heard.count_of(job.label) == 1
    again = Heard()
    assert sweep(jobs, store, watch=again) == swept
    assert again == [(job.label, "finished") for job in jobs]
    assert speaks(swept) == "3 runs: 3 finished."


def test_what_is_damaged_is_made_again(jobs, tmp_path):
    store = Store(tmp_path)
    sweep(jobs[:2], store)
    before = weights(store, jobs[0])
    (store.folder(jobs[0].key) / "training.json").write_text("{")
    heard = Heard()
    sweep(jobs[:2], store, watch=heard)
    assert (heard.count_of("type1"), heard.count_of("rope")) == (1, 0)
    assert weights(store, jobs[0]) == before


def test_a_job_that_fails_is_reported_and_the_others_go_on(jobs, text, small, tmp_path):
    wild = dataclasses.replace(small, learning_rate=1e30, warmup=0)
    broken = Job("wild", Configuration(encoding("kerple_log"), text, wild))
    refused = Job("refused", Configuration(encoding("exp(exp(n))"), text, small))
    swept = sweep((broken, refused, jobs[0]), Store(tmp_path))
    assert [entry["state"] for entry in swept.runs] == ["failed", "failed", "finished"]
    assert "at step" in swept.runs[0]["note"] and "\n" not in swept.runs[0]["note"]


def test_an_error_of_ours_is_one_line_too(jobs, tmp_path, monkeypatch):
    def fails(*_, **__):
        raise ZeroDivisionError("by zero\nin the middle")

    monkeypatch.setattr("farfield.validation.harness.experiment.train_and_measure", fails)
    (entry,) = sweep(jobs[:1], Store(tmp_path)).runs
    assert (entry["state"], entry["note"]) == ("failed", "ZeroDivisionError: by zero")


def test_a_job_that_is_held_waits_and_the_others_go_on(jobs, tmp_path):
    store, holder = Store(tmp_path), ExitStack()
    holder.enter_context(store.locked(jobs[0].key))
    assert store.held(jobs[0].key) and not store.held(jobs[1].key)
    with pytest.raises(InUse):
        train_and_measure(jobs[0].configuration, store, wait=False)
    heard = Heard(finished=lambda job: holder.close())
    assert states(sweep(jobs[:2], store, watch=heard)) == {"finished"}
    stages = [place for place in heard if place[1] in ("held", "started", "finished")]
    assert stages[:3] == [("type1", "held"), ("rope", "started"), ("rope", "finished")]
    assert stages[-2:] == [("type1", "started"), ("type1", "finished")]


def test_a_job_that_another_process_finishes_is_not_repeated(jobs, tmp_path):
    store = Store(tmp_path)
    heard = Heard(started=lambda job: job is jobs[0] and sweep(jobs[1:2], store))
    assert states(sweep(jobs[:2], store, watch=heard)) == {"finished"}
    assert heard.count_of("rope") == 0 and heard[-1] == ("rope", "finished")


def when_held(store, job, act):
    """Do something as soon as a process works on a job."""

    def watching():
        while not store.held(job.key):
            time.sleep(0.05)
        act()

    threading.Thread(target=watching, daemon=True).start()


def kill_workers():
    for worker in multiprocessing.active_children():
        os.kill(worker.pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_its_job_only(jobs, long, tmp_path):
    """The long job's worker is killed once while it trains; the others run once."""
    store, killed = Store(tmp_path), []

    def kill(job):
        if job.label == "long" and not killed:
            killed.append(job)
            when_held(store, job, kill_workers)

    heard = Heard(started=kill)
    swept = sweep((long, *jobs), store, Processes(1), heard)
    assert states(swept) == {"finished"} and killed and ("long", "lost") in heard
    assert [heard.count_of(job.label) for job in (long, *jobs)] == [2, 1, 1, 1]
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("retries", [0, 2])
def test_a_job_is_begun_again_so_often_and_no_more(retries, jobs, tmp_path):
    class Dying:
        slots = 1

        def start(self, job, store, progress):
            dead = Future()
            dead.set_exception(OSError("killed"))
            return dead

        def close(self):
            heard.append("closed")

    heard = Heard()
    (entry,) = sweep(jobs[:1], Store(tmp_path), Dying(), heard, retries).runs
    assert entry["state"] == "failed"
    assert entry["note"] == f"its worker died {retries + 1} times: killed"
    assert heard.count_of("type1") == retries + 1 and heard[-1] == "closed"


@pytest.mark.slow  # its sibling above pretends
def test_a_job_whose_workers_die_is_given_up(long, jobs, tmp_path):
    store = Store(tmp_path)
    heard = Heard(started=lambda job: job is long and when_held(store, long, kill_workers))
    first, second = sweep((long, jobs[0]), store, Processes(1), heard, retries=1).runs
    assert first["note"].startswith("its worker died 2 times: A process in the process pool")
    assert (first["state"], second["state"]) == ("failed", "finished")


def test_a_sweep_that_is_interrupted_ends_its_workers(long, tmp_path):
    store = Store(tmp_path)
    heard = Heard(started=lambda job: when_held(store, job, _thread.interrupt_main))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            sweep((long,), store, Processes(1), heard)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not multiprocessing.active_children() and not store.held(long.key)


def run(capsys, *args):
    with pytest.raises(SystemExit) as stop:
        main(list(args))
    captured = capsys.readouterr()
    return stop.value.code, captured.out, captured.err


def command(plan, runs, source):
    return [
        sys.executable,
        "-m",
        "farfield.cli",
        "sweep",
        plan,
        "--runs",
        runs,
        "--text",
        source,
        "--workers",
        "2",
    ]


def test_a_driver_that_is_killed_resumes(capsys, plan, source, tmp_path):
    """Killed when the first job is finished; what was finished is not touched again."""
    runs = str(tmp_path / "runs")
    with subprocess.Popen(command(plan, runs, source), stderr=subprocess.PIPE, text=True) as driver:
        while "finished" not in driver.stderr.readline():
            assert driver.poll() is None
        driver.kill()
    kept = {p: p.stat().st_ino for p in (tmp_path / "runs").rglob("training.json")}
    assert kept
    code, out, err = run(capsys, "sweep", plan, "--runs", runs, "--text", source)
    assert code == 0
    assert 0 < err.count("started") < 4
    assert kept == {p: p.stat().st_ino for p in kept}
    code, out, _ = run(capsys, "sweep", plan, "--runs", runs, "--text", source, "--json")
    found = json.loads(out)
    assert found["kind"] == "Inventory" and {r["state"] for r in found["runs"]} == {"finished"}


IDLE = """
import os, signal
from concurrent.futures import ProcessPoolExecutor
from farfield.validation.harness import sweep
pool = ProcessPoolExecutor(1, sweep.Processes(1).context, sweep._watch)
pool.submit(abs, -1).result()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_worker_without_a_job_ends_with_its_driver():
    """One that had none waited for ever. Its end closes what its driver printed to."""
    driver = subprocess.run([sys.executable, "-c", IDLE], stderr=subprocess.PIPE, timeout=120)
    assert driver.returncode == -signal.SIGKILL


@pytest.mark.slow  # the two siblings above share a plan within one process
def test_two_sweeps_share_one_plan(plan, source, tmp_path):
    runs = str(tmp_path / "runs")
    both = [
        subprocess.Popen(command(plan, runs, source), stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate()[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    trained = "".join(said).count("started") - "".join(said).count("held, \n")
    assert len(list((tmp_path / "runs").rglob("training.json"))) == 4 and trained >= 4
    assert not list((tmp_path / "runs").rglob("checkpoint*"))


def test_the_hybrids_of_the_documentation_are_trained(capsys, source, tmp_path):
    """A windowed rotary layer under a free one, and the others of the plan, by the verb: two steps
    of each."""
    said = (Path(__file__).parents[3] / "docs" / "scaling.md").read_text(encoding="utf-8")
    (block,) = (b for b in re.findall(r"```toml\n(.*?)```", said, re.DOTALL) if "window" in b)
    short = block.replace("tested = [64, 256, 1024]", "steps = [2]\ntested = [64]")
    (tmp_path / "hybrid.toml").write_text(short.replace("rows = 96", "rows = 2"))
    args = (str(tmp_path / "hybrid.toml"), "--runs", str(tmp_path / "runs"), "--text", source)
    code, out, _ = run(capsys, "sweep", *args)
    assert code == 0 and out.startswith("3 runs: 3 finished.")
    assert "windowed rotation" in out


def test_exit_code_of_a_job_that_fails(capsys, plan, source, tmp_path):
    with open(plan, "a") as file:
        file.write('[[sweep]]\npresets = ["tiny"]\nencodings = ["exp(exp(n))"]\n')
    code, _, err = run(capsys, "sweep", plan, "--runs", str(tmp_path), "--text", source)
    assert code == 1 and "exp(exp(n))" in err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nowhere.toml",), "plan 'nowhere.toml' cannot be read: No such file"),
        (("PLAN", "--runs", "PLAN"), "cannot be written to"),
        (("PLAN", "--engine", "slurm"), "--engine 'slurm' is not known; accepted: local, ray"),
        (("PLAN", "--workers", "0"), "workers 0: accepted is a whole number from 1"),
        (("PLAN", "--gpus-per-job", "1"), "belong to --engine ray"),
        (("PLAN", "--device", "tpu"), "device 'tpu' is not known"),
        (("PLAN", "--text", "nowhere.txt"), "'nowhere.txt' does not exist"),
    ],
)
def test_one_clear_line(capsys, plan, source, args, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = [plan if a == "PLAN" else a for a in args]
    text = () if "--text" in given else ("--text", source)
    code, _, err = run(capsys, "sweep", *text, *given)
    assert code == 2 and message in err and len(err.splitlines()) == 1


def test_a_store_on_a_disk_that_is_read_only(jobs, tmp_path, monkeypatch):
    """Even root cannot write there, so the system's answer is given in its place."""

    def refuses(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", refuses)
    with pytest.raises(InputError, match=r"cannot be written to: Read-only file system; accepted"):
        sweep(jobs, Store(tmp_path))
