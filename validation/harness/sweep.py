"""Run a plan: every job that is not finished, into one store of runs.

A job is one run, named by the hash of its configuration, so finished jobs are never repeated.
Several processes, on machines that share the folder, may work on one plan together: each takes the
next job that is neither finished nor held. A worker that dies loses its job alone, which is taken
up again from its last checkpoint; the system frees its lock. A driver that dies loses nothing that
is in the store, and its workers end at their next word to it.

The driver asks an engine to `start` jobs and hears their `outcomes`. Engines of this module:

    Here         one job at a time, in this process
    Processes    several at a time, each job in a process of its own

`farfield.validation.harness.cluster` has one for Ray.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

from farfield.theory.answers.answer import InputError, Label, Result
from farfield.theory.answers.blocks import Block, sentence, table
from farfield.validation.files import CorruptFile
from farfield.validation.harness.configuration import key
from farfield.validation.harness.inventory import LAST, inventory, longest
from farfield.validation.harness.plan import Job
from farfield.validation.harness.store import InUse, Store, stored
from farfield.validation.optional import first_line

Tell = Callable[[str, str, int, int, str], None]
"""Called as `tell(key, stage, done, total, note)` with the progress of the job with this key."""

Watch = Callable[[Job, str, int, int, str], None]
"""Called as `watch(job, stage, done, total, note)`; stages are those of `train_and_measure`, and
`started`, `finished`, `failed`, `held` (by another process), `lost` (its worker died)."""

RETRIES = 2
_PAUSE = 0.5  # seconds between two looks at what other processes hold
_WORDS = 0.1  # seconds between two words of a worker about one stage


@dataclass(frozen=True)
class JobOutcome:
    """How an attempt at a job ended.

    Args:
        key: of the job.
        state: `finished`, `failed`, `held` or `lost`.
        note: why.
        result: of a finished job, as `train_and_measure` returns it.
    """

    key: str
    state: str
    note: str = ""
    result: dict[str, Any] | None = None


class Engine(Protocol):
    """Where jobs run: so many at a time."""

    slots: int

    def start(self, job: Job, store: Store) -> None:
        """Begin an attempt at a job."""

    def outcomes(self, tell: Tell) -> Iterable[JobOutcome]:
        """The attempts that have ended, after a short wait for one; passes on their progress."""

    def close(self) -> None:
        """End what still runs."""


@dataclass(frozen=True)
class JobState:
    """The state of one job of a plan.

    Fields:
        label, preset, length, seed: what was trained; `length` in tokens.
        key: of its run.
        state: `finished` or `failed`.
        loss: the last mean training loss, in nats a token.
        ratios: measured perplexity ratios to the training length: inference, length, ratio, of the
            last-token protocol.
        note: why it failed.
    """

    label: str
    preset: str
    length: int
    seed: int
    key: str
    state: str
    loss: float | None = None
    ratios: tuple[tuple[str, int, float], ...] = ()
    note: str = ""

    def row(self) -> tuple[Any, ...]:
        """The cells of a listing."""
        loss = None if self.loss is None else f"{self.loss:.3f}"
        return (
            self.label,
            self.preset,
            self.length,
            self.seed,
            self.state,
            loss,
            longest(self.ratios),
            self.note,
        )


@dataclass(frozen=True, repr=False)
class Swept(Result):
    """The jobs of a plan after a sweep, in the plan's order."""

    jobs: tuple[JobState, ...]

    @property
    def failed(self) -> int:
        """How many jobs have no result."""
        return sum(job.state == "failed" for job in self.jobs)

    def blocks(self) -> Sequence[Block]:
        header = ("encoding", "preset", "length", "seed", "state", "loss", "perplexity", "note")
        return (
            sentence(
                "{done} of {all} jobs finished, {failed} failed.",
                Label.MEASURED,
                done=len(self.jobs) - self.failed,
                all=len(self.jobs),
                failed=self.failed,
            ),
            table(header, [job.row() for job in self.jobs], numeric=(2, 3, 5)),
        )


def sweep(
    jobs: Sequence[Job],
    store: Store,
    engine: Engine | None = None,
    watch: Watch = lambda *_: None,
    retries: int = RETRIES,
) -> Swept:
    """Run jobs until each is finished, here or by another process, or has failed.

    Args:
        jobs: of a plan.
        store: where the runs are kept.
        engine: where the jobs run; None takes this process.
        watch: told what happens.
        retries: how often a job is begun again after its worker died.

    Returns:
        Every job with its state: a job fails when its training diverges, when it is refused, or
        when its workers die; the others go on.

    Raises:
        InputError: the store cannot be written to, and a job is not finished.
    """
    failures: dict[str, str] = {}
    known = {job.key: job for job in jobs}
    results = {job.key: result for job in jobs if (result := finished(job, store)) is not None}
    waiting = deque(job for job in jobs if job.key not in results)
    if waiting:
        store.require_writable()
    for job_key in results:
        watch(known[job_key], "finished", 1, 1, "before")
    running: set[str] = set()
    elsewhere: list[Job] = []
    said: set[str] = set()  # held, and told so
    lost: Counter[str] = Counter()

    def ended(job: Job, state: str, note: str = "") -> None:
        if state == "lost":
            lost[job.key] += 1
            if lost[job.key] > retries:
                state, note = "failed", f"its worker died {lost[job.key]} times: {note}"
            else:
                waiting.append(job)
        if state == "failed":
            failures[job.key] = note
        elif state == "held":
            elsewhere.append(job)
            if job.key in said:
                return
            said.add(job.key)
        watch(job, state, 1, 1, note)

    def tell(job_key: str, stage: str, done: int, total: int, note: str) -> None:
        watch(known[job_key], stage, done, total, note)

    with closing(Here() if engine is None else engine) as engine:
        while waiting or running or elsewhere:
            while waiting and len(running) < engine.slots:
                job = waiting.popleft()
                if store.held(job.key):
                    ended(job, "held")
                elif (result := finished(job, store)) is not None:
                    results[job.key] = result
                    ended(job, "finished", "by another process")
                else:
                    engine.start(job, store)
                    running.add(job.key)
                    watch(job, "started", 0, 1, "")
            if running:
                for outcome in engine.outcomes(tell):
                    running.discard(outcome.key)
                    if outcome.result is not None:
                        results[outcome.key] = outcome.result
                    ended(known[outcome.key], outcome.state, outcome.note)
            elif elsewhere:
                time.sleep(_PAUSE)
            if not waiting:
                waiting.extend(elsewhere)
                elsewhere.clear()
            if not (waiting or running):
                inventory(store)  # the next listing opens none of these runs
    return Swept(tuple(_state_of(job, results.get(job.key), failures.get(job.key)) for job in jobs))


def attempt(
    job: Job, store: Store, tell: Tell, device: str = "auto", words: float = _WORDS
) -> JobOutcome:
    """Run a job now, in this process, unless another holds it; never raises for the job's sake.

    Args:
        job: what to run.
        store: where the run is kept.
        tell: told of the progress, at most every `words` seconds about one stage.
        device: `auto`, `cpu` or `cuda`.
        words: seconds.
    """
    from farfield.validation.harness.experiment import train_and_measure
    from farfield.validation.harness.training import TrainingDiverged

    last = (0.0, "")

    def progress(stage: str, done: int, total: int, note: str = "", /) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last[0] >= words or stage != last[1]:
            tell(job.key, stage, done, total, note)
            last = now, stage

    try:
        result = train_and_measure(
            job.configuration,
            store,
            progress,
            device=device,
            wait=False,
            predictions=job.predictions,
        )
    except InUse:
        return JobOutcome(job.key, "held")
    except (InputError, TrainingDiverged, CorruptFile) as error:
        return JobOutcome(job.key, "failed", str(error))
    except (BrokenPipeError, EOFError):
        raise  # nobody listens any more
    except Exception as error:  # the other jobs go on; this one is reported
        return failed(job.key, error)
    return JobOutcome(job.key, "finished", result=result)


def failed(key: str, error: BaseException) -> JobOutcome:
    """The outcome of an attempt that ended in an error of ours."""
    return JobOutcome(key, "failed", f"{type(error).__name__}: {first_line(error, 300)}")


class Here:
    """One job at a time, in this process.

    Args:
        device: `auto`, `cpu` or `cuda`.
    """

    slots = 1

    def __init__(self, device: str = "auto") -> None:
        self.device = device

    def start(self, job: Job, store: Store) -> None:
        self.next = job, store

    def outcomes(self, tell: Tell) -> Iterable[JobOutcome]:
        return [attempt(*self.next, tell, self.device)]

    def close(self) -> None:
        pass


class Processes:
    """Several jobs at a time, each in a process of its own, which shares the cores.

    Args:
        workers: jobs at a time, from 1.
        device: `auto`, `cpu` or `cuda`; a GPU is shared by all workers.

    Raises:
        InputError: no worker.
    """

    def __init__(self, workers: int, device: str = "auto") -> None:
        if workers < 1:
            raise InputError(f"workers {workers}: accepted is a whole number from 1")
        self.slots, self.device = workers, device
        # A server that has loaded torch forks each worker, so that a job does not load it again.
        fork = "forkserver" in multiprocessing.get_all_start_methods()
        self.context: Any = multiprocessing.get_context("forkserver" if fork else "spawn")
        if fork:
            self.context.set_forkserver_preload(["farfield.validation.harness.experiment"])
        self.running: dict[Connection, tuple[str, Any]] = {}

    def start(self, job: Job, store: Store) -> None:
        ours, theirs = self.context.Pipe(duplex=False)
        threads = max(1, len(_cores()) // self.slots)
        process = self.context.Process(
            target=_work, args=(theirs, job, store, self.device, threads), daemon=True
        )
        process.start()
        theirs.close()
        self.running[ours] = job.key, process

    def outcomes(self, tell: Tell) -> Iterable[JobOutcome]:
        ended = []
        for ours in wait(list(self.running), _PAUSE):
            assert isinstance(ours, Connection)
            job_key, process = self.running[ours]
            outcome = None
            try:
                said = ours.recv()
                if isinstance(said, JobOutcome):
                    outcome = said
                else:
                    tell(job_key, *said)
            except (EOFError, OSError):  # it ended without a last word
                process.join()
                outcome = JobOutcome(job_key, "lost", f"worker {_ending(process.exitcode)}")
            if outcome is not None:
                process.join()
                del self.running[ours]
                ours.close()
                ended.append(outcome)
        return ended

    def close(self) -> None:
        for ours, (_, process) in self.running.items():
            process.terminate()
            process.join()
            ours.close()
        self.running.clear()


def _work(theirs: Connection, job: Job, store: Store, device: str, threads: int) -> None:
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver ends its workers
    torch.set_num_threads(threads)

    def tell(_: str, stage: str, done: int, total: int, note: str) -> None:
        theirs.send((stage, done, total, note))

    with suppress(BrokenPipeError):
        theirs.send(attempt(job, store, tell, device))


def _cores() -> Sequence[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return range(os.cpu_count() or 1)


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"killed by signal {-code}"
    return f"ended with code {code}"


def finished(job: Job, store: Store) -> dict[str, Any] | None:
    """The result of a job if the store holds every part; nothing is trained or measured."""
    wanted = [
        f"measurement-{key(job.configuration.measured(v))}" for v in job.configuration.variants
    ]
    folder = store.folder(job.key)
    if not all((folder / f"{name}.json").exists() for name in ("training", *wanted)):
        return None
    try:
        return stored(folder, wanted)
    except CorruptFile:
        return None


def _state_of(job: Job, result: dict[str, Any] | None, why: str | None) -> JobState:
    preset = job.configuration.preset
    named = (job.label, preset.name, preset.length, job.configuration.seed, job.key)
    if result is None:
        return JobState(*named, "failed", note=why or "")
    return JobState(
        *named,
        "finished",
        result["training"]["losses"][-1][1],
        tuple(
            (m["inference"]["label"], p["length"], float(p["ratio"]))  # "nan" in JSON
            for m in result["measurements"]
            for p in m.get("perplexity", ())
            if p["protocol"] == LAST
        ),
    )
