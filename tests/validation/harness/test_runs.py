"""Runs: finished parts are skipped, a kill loses nothing, a damaged file is named and stays."""

import contextlib
import errno
import fcntl
import multiprocessing
import os
import queue
import resource
import signal
import threading
import time
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch

from farfield.theory.answers.errors import InputError
from farfield.validation.harness import runs as module
from farfield.validation.harness.runs import job_of, listed, load, local, rows_of, run, sweep
from farfield.validation.harness.settings import settle
from farfield.validation.harness.train import read_tensors, write_tensors
from farfield.validation.inventory import summary
from farfield.validation.results import results

MEASURE = {"lengths": [16, 40], "row_length": 40, "blocks": 3, "last_tokens": 6}


@pytest.fixture
def asked(text):
    return settle("tiny", {"encoding": "alibi", "text": text, "measure": MEASURE})


def swept(runs, folder="", workers=1, progress=lambda *told: None, **how):
    """What finished and what failed of some runs on the CPU."""
    done = local(runs, str(folder), device="cpu", workers=workers, progress=progress)
    return sweep(done, len(runs), **how)


def untimed(rows):
    """Rows of a run without the seconds that it took."""
    return [{**row, "seconds": 0} for row in rows]


def test_a_run_is_flat_rows_and_is_made_once(asked, tmp_path, monkeypatch):
    rows = run(asked, tmp_path)
    told = {(r["protocol"], r["mask"]) for r in rows}
    protocols = ["training", "held out", "non-overlapping", "last token", "attention", "gradient"]
    assert told == {(name, "") for name in protocols}
    assert all(r["label"] == "alibi" and r["preset"] == "tiny" and r["trained"] == 16 for r in rows)
    assert len({r["run"] for r in rows}) == 1 and rows[0]["formula"].startswith("[-n/2; ")
    last = [r for r in rows if r["protocol"] == "last token"]
    assert [r["length"] for r in last] == [16, 40] and last[0]["ratio"] == 1
    model, history = load(next(tmp_path.glob("[0-9a-f]*")))
    assert not model.training and history[-1].step == 30
    monkeypatch.setattr(module, "train", None)
    monkeypatch.setattr(module, "measured", None)
    assert run(asked, tmp_path) == rows
    named = run(asked.but(label="mine"), tmp_path)
    assert {r["label"] for r in named} == {"mine"} and named[0]["run"] == rows[0]["run"]


def test_what_a_killed_process_left_half_written_is_taken_away(asked, tmp_path, monkeypatch):
    home = tmp_path / job_of(asked).key
    home.mkdir()
    (home / ".partial-1").write_bytes(b"half of a checkpoint")
    monkeypatch.setattr(module, "_made", lambda *_: [])
    monkeypatch.setenv("RANK", "0")
    with open(home / ".partial-1", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # as another process that writes it
        run(asked, tmp_path)
        assert (home / ".partial-1").exists()
    monkeypatch.delenv("RANK")
    run(asked, tmp_path)
    assert {x.name for x in home.iterdir()} - {".lock"} == {"run.json"}


def test_another_measurement_trains_nothing_anew(asked, tmp_path, monkeypatch):
    run(asked, tmp_path)
    monkeypatch.setattr(module, "train", None)
    more = asked.but(measure={**MEASURE, "windows": [8], "bca": [8], "strides": [4]})
    rows = run(more, tmp_path)
    assert {r["mask"] for r in rows} == {"", "window 8", "BCA"}
    assert "sliding window, stride 4" in {r["protocol"] for r in rows}
    assert len(list(tmp_path.glob("*/weights*"))) == 1


def test_a_task_is_asked_at_each_distance(tmp_path):
    asked = {"encoding": "nope", "task": {"vocabulary": 64}, "measure": {"distances": [3, 20]}}
    rows = run(
        settle("tiny", {**asked, "measure": {"lengths": [8, 32], "distances": [3, 20]}}), tmp_path
    )
    recall = [(r["length"], r["distance"]) for r in rows if r["protocol"] == "recall"]
    assert recall == [(16, 3), (8, 3), (32, 3), (32, 20)]  # the trained length tells the head


@pytest.mark.parametrize(
    ("visible", "auto"), [(False, torch.device("cpu")), (True, torch.device("cuda", 3))]
)
def test_the_gpu_of_a_process_is_taken_where_torch_sees_one(visible, auto, refusal, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: visible)
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert module.chosen_device() == auto and module.chosen_device("cpu") == torch.device("cpu")
    if visible:
        assert module.chosen_device("cuda") == auto
        monkeypatch.delenv("LOCAL_RANK")
        assert module.chosen_device("cuda") == torch.device("cuda", 0)
    else:
        refusal("sees no GPU here; accepted", module.chosen_device, "cuda")


def test_what_cannot_run_is_refused_before_anything_is_made(refusal, asked, tmp_path):
    wrong = {
        "at distance 0; a model takes finite": {"encoding": "1/n"},
        "too short": {"measure": {"lengths": [20_000]}},
        "a row takes 20001": {"measure": {**MEASURE, "row_length": 20_000}},
        "a row takes 30001": {"measure": {**MEASURE, "gradient_length": 30_000}},
        "knows the 16 positions": {"encoding": "learned", "measure": {"lengths": [32]}},
        "does not exist": {"text": "none.txt"},
        "shorter than the vocabulary": {"task": {"vocabulary": 16}},
        "window 40 hides nothing": {"measure": {**MEASURE, "windows": [40]}},
    }
    for said, changes in wrong.items():
        refusal(said, lambda changes=changes: run(asked.but(**changes), tmp_path / "runs"))
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("name", ["weights.safetensors", "measured-*.json", "run.json"])
def test_a_damaged_file_is_refused_by_name_and_stays(refusal, name, asked, tmp_path):
    rows = run(asked, tmp_path)
    (path,) = tmp_path.glob(f"*/{name}")
    whole = path.read_bytes()
    for damaged in (whole[:-7], b""):
        path.write_bytes(damaged)
        refusal(path.name, *((load, path.parent) if name == "run.json" else (run, asked, tmp_path)))
        assert path.read_bytes() == damaged
    path.write_bytes(whole)
    assert run(asked, tmp_path) == rows
    path.unlink()
    assert untimed(run(asked, tmp_path)) == untimed(rows)


def test_weights_that_no_run_wrote_are_refused_in_a_line(refusal, asked, tmp_path):
    run(asked, tmp_path)
    (path,) = tmp_path.glob("*/weights.safetensors")
    write_tensors(path, read_tensors(path)[0], {"text": "another record"})
    refusal("was written by no run; accepted: the weights of a fin", load, path.parent)


@pytest.fixture
def small_disk():
    """No file gets longer than 64 KiB meanwhile; it is refused as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_fills_midway_ends_one_run_in_a_line(asked, tmp_path, small_disk):
    small, large = asked.but(width=16, steps=3), asked.but(steps=3)
    found = swept([small, large, small.but(seed=1)], tmp_path)
    ((_, why),) = found.failed
    assert len(found.finished) == 2 and "\n" not in why
    assert "weights.safetensors' cannot be written: File too large; accepted: a folder" in why
    assert not [*tmp_path.rglob(".partial*")]
    (failed,) = tmp_path.glob("*/failure.txt")
    assert failed.read_text().startswith(why)
    assert not [path for path in failed.parent.iterdir() if "safetensors" in path.name]


SPACE = "runs: No space left on device; accepted: a disk that has space (all of it: "
MEMORY = "memory ran out ({}); accepted: a smaller batch, or more parts (all of it: "
LEFT = "you tried to allocate memory of 9 GB"
LONG = f"a line of {'many ' * 50}words"
WHY = {
    OSError(errno.ENOSPC, "No space left on device", "runs"): SPACE,
    OSError("the network file system went away"): "the network file system went away (all of it: ",
    PermissionError(13, "not yours"): "[Errno 13] not yours (all of it: ",
    RuntimeError(LEFT): MEMORY.format(LEFT),
    MemoryError("no more"): MEMORY.format("no more"),
    torch.OutOfMemoryError("no more"): MEMORY.format("no more"),
    RuntimeError("shapes differ"): "farfield's own code raised RuntimeError: shapes differ",
    InputError(LONG): LONG,
    ValueError(LEFT): f"farfield's own code raised ValueError: {LEFT}",
}


@pytest.mark.parametrize("error", WHY, ids=str)
def test_why_a_run_ended_is_said_in_its_line(error, asked, tmp_path, monkeypatch):
    monkeypatch.setattr(module.FileLock, "acquire", Mock(side_effect=error))
    why = module.attempt(asked, str(tmp_path), "cpu")
    (kept,) = tmp_path.glob("*/failure.txt")
    first = kept.read_text().partition("\n")[0]
    assert why.startswith(WHY[error])
    assert f" {why}".partition(" (all of it: ")[0].endswith(f" {first}")


def test_a_measurement_whose_losses_no_model_has_is_not_kept(refusal, asked, tmp_path, monkeypatch):
    monkeypatch.setattr("farfield.validation.harness.measure.NATS", 0.5)
    refusal(r"is NaN, infinite, or beyond 0\.5 nats a token", run, asked, tmp_path)
    assert not list(tmp_path.glob("*/measured*")) and list(tmp_path.glob("*/weights*"))
    assert module.attempt(asked, str(tmp_path), "tpu").startswith("device 'tpu' is not known")


SWEEP = """
import os
from farfield.validation.harness.runs import local, on_ray, sweep
from farfield.validation.harness.settings import read_plan
os.setsid()
runs = read_plan(plan).expand()
if engine == "ray":
    done = on_ray(runs, folder, address=None, cpus=1, gpus=0)
else:
    how = {"device": "cpu", "workers": int(engine), "progress": lambda *told: None}
    done = local(runs, folder, **how)
sweep(done, len(runs))
"""
ENGINES = ["1", *(pytest.param(name, marks=pytest.mark.slow) for name in ("2", "ray"))]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sweep_that_is_killed_goes_on_to_the_same_rows(engine, text, tmp_path):
    plan, folder = tmp_path / "plan.toml", tmp_path / "runs"
    small = (
        "lengths = [16, 40], row_length = 40, blocks = 2, last_tokens = 2, gradient_segments = 2"
    )
    plan.write_text(
        f"[[runs]]\nencoding = ['alibi', 'kerple_log']\npreset = 'tiny'\n"
        f"text = '{text}'\nmeasure = {{ {small} }}\n"
    )
    asked = {"plan": str(plan), "folder": str(folder), "engine": engine}
    start = multiprocessing.get_context("forkserver")  # it imports once for all of them
    start.set_forkserver_preload([module.__name__])
    for marker in ("*/run.json", "*/weights.safetensors", "*/measured-*", None):
        process = start.Process(target=exec, args=(SWEEP, asked))
        process.start()
        until = time.monotonic() + 120
        while process.is_alive() and not (marker and list(folder.glob(marker))):
            assert time.monotonic() < until
            time.sleep(0.02)
        if marker:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # and all that it has started
        process.join()
    assert process.exitcode == 0
    runs = [*module.listed(folder)]
    assert [x.state for x in runs] == ["finished"] * 2
    for at, one in enumerate(runs):
        alone = run(one.run, tmp_path / "alone", device="cpu")
        assert untimed(run(one.run, folder, device="cpu")) == untimed(alone), at


def test_listing_tells_how_far_an_unfinished_run_is(refusal, interrupted, asked, tmp_path):
    interrupted(11, run, asked, tmp_path, every=0)
    assert [(x.state, x.step) for x in listed(tmp_path)] == [("unfinished", 11)]
    refusal("does not exist", next, listed(tmp_path / "none"))
    (tmp_path / "file").touch()
    refusal("is no folder", next, listed(tmp_path / "file"))


def test_what_is_no_run_is_not_listed_or_refused_in_a_line(refusal, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "a" / "failure.txt").write_text("none of ours\n")
    (tmp_path / "b" / "run.json").write_text("[1]")
    (one,) = listed(tmp_path)
    refusal(r"b/run.json' is no run: it holds no table; accepted", getattr, one, "run")
    refusal("b/run.json' is no run: it holds no table", results, str(tmp_path))


def test_listing_reads_no_settings_of_finished_runs(asked, tmp_path, monkeypatch):
    """And of their rows those alone that it shows."""
    rows = run(asked, tmp_path)
    monkeypatch.setattr(module, "asked_of", None)
    (one,) = listed(tmp_path)
    assert (one.key, one.state, one.note) == (rows[0]["run"], "finished", "")
    assert rows_of(one.home) == rows
    some = rows_of(one.home, "training", "last token")
    assert some == [r for r in rows if r["protocol"] in ("training", "last token")]
    assert summary(some) == summary(rows) and len(some) < len(rows)


BROKEN = """
from torch import nn
from helper import RATE

class Raises(nn.Module):
    def __init__(self, heads, size):
        super().__init__()

    def forward(self, q, k, i, j):
        if len(j) > 4:
            raise ValueError("mine is broken")
        return -RATE * (i[:, None] - j)

class Slope(Raises):
    def forward(self, q, k, i, j):
        return -RATE * (i[:, None] - j)  # a comment
"""


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "helper.py").write_text("RATE = 0.25\n")
    (tmp_path / "mine.py").write_text(BROKEN)
    return tmp_path / "mine.py"


def test_a_module_that_raises_is_one_row_that_names_its_line(asked, mine, tmp_path):
    runs = [asked.but(encoding=f"{mine}:Raises"), asked.but(encoding="-n/4")]
    found, folder = swept(runs, tmp_path / "runs"), str(tmp_path / "runs")
    ((name, why),) = found.failed
    assert name == f"{mine}:Raises, seed 0" and len(found.finished) == 1
    assert why.startswith("mine.py:Raises, line 11: ValueError: mine is broken")
    (told,) = tmp_path.glob("runs/*/failure.txt")
    assert "Traceback" in told.read_text() and str(told) in why
    states = {one.run.name: (one.state, one.step, one.note) for one in listed(folder)}
    assert states["-n/4"] == ("finished", 30, "")
    assert states[f"{mine}:Raises"] == ("failed", 0, why.partition(" (all")[0])
    mine.write_text(BROKEN.replace("> 4", "> 4000"))
    assert run(runs[0], folder)[0]["label"] == f"{mine}:Raises"


@pytest.mark.parametrize(
    "body, said",
    [
        ("raise ValueError('mine')", r"mine.py:Own, line 6: ValueError: mine"),
        ("raise SystemExit(5)", r"mine.py:Own, line 6: SystemExit: 5"),
        ("return None", r"mine.py:Own gives NoneType; accepted: a tensor"),
        ("return q[:, :3, :, 0, None]", r"gives shape \(1, 3, 4, 1\) for 8 heads"),
        ("return (i[:, None] - j) / 0 * 0", "gives NaN for 8 heads"),
    ],
)
def test_a_module_is_called_before_the_first_step(refusal, body, said, asked, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from torch import nn\nclass Own(nn.Module):\n    def __init__(self, heads, size):\n"
        f"        super().__init__()\n    def forward(self, q, k, i, j):\n        {body}\n"
    )
    refusal(said, run, asked.but(encoding=f"{path}:Own"), tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_run_has_the_code_it_was_made_with(refusal, asked, mine, tmp_path, monkeypatch):
    own = asked.but(encoding=f"{mine}:Slope")
    rows = run(own, tmp_path / "runs")
    assert rows[0]["mechanism"] == "module" and rows[0]["formula"] is None
    key = rows[0]["run"]
    mine.write_text(BROKEN.replace("  # a comment", "") + "\nclass Other: pass\n")
    assert job_of(own).key == key, "neither comments nor other classes are in the key"
    (tmp_path / "helper.py").write_text("RATE = 0.5\n")
    assert job_of(own).key != key, "what is imported is"
    mine.unlink()
    monkeypatch.chdir("/")
    model, _ = load(tmp_path / "runs" / key)
    assert [type(b).__name__ for b in model.biases] == ["Slope"] * 2
    each = rows, run(asked.but(encoding="-n/4"), tmp_path / "runs")
    own, slope = ([r["trf"] for r in x if r["protocol"] == "attention"] for x in each)
    assert own == slope
    (copy,) = (tmp_path / "runs").glob("*/source/mine.py")
    copy.write_text(BROKEN.replace("-RATE", "-2 * RATE"))
    refusal("made with another file or formula", load, tmp_path / "runs" / key)


class Pool(Executor):
    """A pool of processes that a run of seed 1 breaks for all that is at work."""

    breaks = ()  # how, each time that this run comes: before or after it is taken

    def __init__(self, workers, *_, initializer, initargs):
        self.futures, self.workers = [], workers
        module._REPORTS[:] = initargs

    def submit(self, attempt, at, asked, folder, device):
        self.futures.append(future := Future())
        assert sum(not f.done() for f in self.futures) <= self.workers
        broken = Pool.breaks.pop() if asked.seed == 1 and Pool.breaks else ""
        for one in self.futures if broken else ():
            if not one.done():
                one.set_exception(BrokenProcessPool())
        if broken == "before":
            raise BrokenProcessPool
        if not broken and (asked.seed != 0 or self.workers == 1):  # that of seed 0 takes long
            future.set_result([{"seed": asked.seed}])
        return future


class Here(Pool):
    """A pool that works in this process."""

    def submit(self, attempt, *given):
        future = Future()
        future.set_result(attempt(*given))
        return future


def test_what_ended_is_told_with_its_place(asked):
    told = []
    done = iter([(asked, [{"seed": 7}]), (asked.but(seed=1), "no memory")])
    found = sweep(done, 2, lambda *line: told.append(line), of=lambda rows: rows[0]["seed"])
    assert found.finished == [7] and found.failed == [("alibi, seed 1", "no memory")]
    assert told == [
        ("sweep", 1, 2, "alibi, seed 0"),
        ("sweep", 0, 0, "1 of 2, alibi, seed 0: finished"),
        ("sweep", 2, 2, "alibi, seed 1"),
        ("sweep", 0, 0, "2 of 2, alibi, seed 1: failed, no memory"),
    ]


@pytest.mark.parametrize(("breaks", "lost"), [(["before"], set()), (["after", "after"], {1})])
def test_a_process_that_dies_loses_the_run_alone_that_it_has_taken(
    breaks, lost, asked, monkeypatch
):
    monkeypatch.setattr(module, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(Pool, "breaks", breaks)
    runs = [asked.but(seed=seed) for seed in range(5)]
    found = swept(runs, workers=2, of=lambda rows: rows[0]["seed"])
    assert {*found.finished} == {*range(5)} - lost and not breaks
    assert [why for _, why in found.failed] == [module.KILLED] * len(lost)


def test_processes_report_their_newest_loss(asked, tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(module, "ProcessPoolExecutor", Here)
    monkeypatch.setattr(module, "REPORT_S", 0.0)
    runs = [asked.but(steps=40), asked.but(seed=1)]
    found = swept(runs, tmp_path, workers=2, progress=lambda *x: told.append(x))
    assert len(found.finished) == 2
    trained = [(done, total) for stage, done, total, _ in told if stage == "alibi: train"]
    assert trained == [(done, 70) for done in range(1, 71)]
    losses = [note.partition(",")[0] for stage, _, _, note in told if stage == "alibi: train"]
    assert losses[:19] == [""] * 19 and losses[-1].startswith("loss ")
    assert {*losses} == {"", *losses[19:60:20], losses[59], losses[-1]}


def test_a_process_of_a_sweep_has_one_thread_and_ends_with_it(monkeypatch):
    ended, threads, joined = queue.Queue(), [], threading.Event()
    monkeypatch.setattr(module, "_REPORTS", [])
    monkeypatch.setattr(module.os, "_exit", ended.put)
    monkeypatch.setattr(module.torch, "set_num_threads", threads.append)
    parent = SimpleNamespace(join=joined.wait)
    monkeypatch.setattr(module.multiprocessing, "parent_process", lambda: parent)
    module._begin("reports")
    assert module._REPORTS == ["reports"] and threads == [1] and ended.empty()
    joined.set()
    assert ended.get(timeout=30) == 1


def test_a_process_reports_steps_a_second_apart(monkeypatch):
    now, told = [100.0], []
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module, "_REPORTS", [None, SimpleNamespace(put=told.append)])

    def attempt(asked, folder, device, report):
        for done, at in enumerate((100.0, 100.5, 101.0, 101.25, 102.5), 1):
            now[0] = at
            report("train", done, 0, "about an hour")  # no step
            report("train", done, 5, f"loss {done}")
        return [asked, folder, device]

    monkeypatch.setattr(module, "attempt", attempt)
    assert module._reported(7, "asked", "folder", "cpu") == ["asked", "folder", "cpu"]
    assert told == [(7, "train", done, f"loss {done}") for done in (1, 3, 5)]


def test_steps_that_were_made_before_are_counted(interrupted, asked, tmp_path, monkeypatch):
    runs, told = [asked.but(seed=seed) for seed in range(3)], []
    run(runs[0], tmp_path)
    interrupted(11, run, runs[1], tmp_path, every=0)
    monkeypatch.setattr(module, "ProcessPoolExecutor", Here)
    done = local(runs, str(tmp_path), device="cpu", workers=2, progress=lambda *x: told.append(x))
    assert len([*done]) == 3
    assert told[-1][1:3] == (3 * asked.steps, 3 * asked.steps)


def test_runs_at_work_end_although_nobody_hears_their_reports(asked, monkeypatch):
    class Talks(Pool):
        def submit(self, attempt, k, asked, *given):
            future = Future()

            def work():
                for step in range(5000 * asked.seed):
                    module._REPORTS[-1].put((k, "train", step, ""))
                future.set_result([])

            self.futures.append(threading.Thread(target=work, daemon=True))
            self.futures[-1].start()
            return future

        def __exit__(self, *_):
            for thread in self.futures:
                thread.join(20)
                assert not thread.is_alive()

    monkeypatch.setattr(module, "ProcessPoolExecutor", Talks)
    monkeypatch.setattr(module, "REPORT_S", 0.01)
    runs = [asked, asked.but(seed=1)]
    done = local(runs, "", device="cpu", workers=2, progress=lambda *told: None)
    assert next(done)[0] == asked
    done.close()


KILLS = """
import os, signal
from torch import nn
class Kills(nn.Module):
    def __init__(self, heads, size):
        super().__init__()
    def forward(self, q, k, i, j):
        if len(j) > 4:
            os.kill(os.getpid(), signal.SIGKILL)
        return -(i[:, None] - j) / 4
"""


@pytest.mark.slow
def test_every_other_run_of_a_plan_is_finished_where_one_kills_its_process(asked, tmp_path):
    (tmp_path / "mine.py").write_text(KILLS)
    encodings = ["alibi", f"{tmp_path}/mine.py:Kills", "nope", "-n/4"]
    runs = [asked.but(encoding=encoding) for encoding in encodings]
    found = swept(runs, tmp_path / "runs", workers=2, of=lambda rows: rows[0]["label"])
    assert sorted(found.finished) == ["-n/4", "alibi", "nope"]
    assert [why for _, why in found.failed] == [module.KILLED]


OUTSIDE = """
import numpy as np
import torch

class Copy:
    vocabulary = 32

    def rows(self, random, count, length):
        tokens = random.integers(self.vocabulary, size=(count, length))
        targets = np.full((count, length), -100)
        targets[:, -1] = tokens[:, -1]
        return tokens, targets

class Empty(Copy):
    vocabulary = 0

class One(Copy):
    vocabulary = np.int64(1)

class Raises(Copy):
    @property
    def vocabulary(self):
        raise ValueError("bad vocab")

class Half(Copy):
    vocabulary = 0.5

class Wide(Copy):
    vocabulary = 3

    def rows(self, random, count, length):
        return super().rows(random, count, length)[0] + 1, np.full((count, length), -100)

def first_token(model, data, length):
    tokens, targets = (torch.from_numpy(x) for x in data.held(8, length))
    return {"targets": 8, "accuracy": float(model(tokens).shape[1] == length)}

def momentum(model, run):
    return torch.optim.SGD(model.parameters(), lr=run.lr, momentum=0.9)
"""


def test_a_task_a_protocol_and_an_optimizer_come_from_outside(refusal, interrupted, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(OUTSIDE)
    own = settle(
        "tiny",
        {
            "encoding": "nope",
            "steps": 200,
            "lr": 0.1,
            "task": f"{path}:Copy",
            "optimizer": f"{path}:momentum",
            "measure": {"lengths": [16, 24], "windows": [3], "protocols": [f"{path}:first_token"]},
        },
    )
    interrupted(11, run, own, tmp_path / "runs", every=0)
    rows = run(own, tmp_path / "runs")
    assert untimed(rows) == untimed(run(own, tmp_path / "alone"))
    answers = {(r["length"], r["mask"]): r for r in rows if r["protocol"] == "task"}
    assert 1 >= answers[16, ""]["accuracy"] > 0.9 and answers[16, ""]["targets"] == 96
    assert answers[16, ""]["nats"] != answers[16, "window 3"]["nats"]
    assert {r["accuracy"] for r in rows if r["protocol"] == "first_token"} == {1.0}
    assert run(own, tmp_path / "runs") == rows
    load(tmp_path / "runs" / rows[0]["run"])
    key = job_of(own).key
    assert job_of(own.but(optimizer="adamw")).key != key
    path.write_text(OUTSIDE.replace("momentum=0.9", "momentum=0.8"))
    assert job_of(own).key != key
    assert job_of(own.but(task=f"{path}:One")).data.vocabulary == 1
    data, asked = job_of(own).data, []
    data.batch = lambda *given: asked.append(given)
    data.require(4, 9)
    assert asked == [(2**63, 0, 1, 4), (2**63, 0, 1, 9)], "a row each, of none that is trained on"
    for wrong, said in (
        ({"task": f"{path}:Wide"}, "numbers from 0 to 2"),
        ({"task": f"{path}:Empty"}, "Empty has the vocabulary 0; accepted: Class"),
        ({"task": f"{path}:Raises"}, "mine.py:Raises, line [0-9]+: ValueError: bad vocab"),
        ({"task": f"{path}:Half"}, "the vocabulary of Half: 'float' object .*; accepted: Class"),
        ({"task": f"{path}:first_token"}, "accepted: Class"),
        ({"optimizer": "sgd"}, "optimizer"),
        (
            {"measure": {"protocols": [f"{path}:none"]}},
            "has no 'none'; it holds Copy, Empty, One, Rai",
        ),
    ):
        refusal(said, lambda wrong=wrong: job_of(settle("tiny", {**own.model_dump(), **wrong})))
