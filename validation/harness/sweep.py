"""Run a plan: every job that is not finished, into one store of runs.

A job is one run, named by the hash of its configuration, so finished jobs are never repeated.
Several processes, on machines that share the folder, may work on one plan together: each takes the
next job that is neither finished nor held. A worker that dies loses its job alone, which is taken
up again from its last checkpoint; the system frees its lock. If the driver dies, stored runs are
safe; its workers exit when they next try to report.

The driver asks an engine to `start` jobs and hears their `outcomes`. Engines of this module:

    Here         one job at a time, in this process
    Processes    several at a time, each job in a process of its own

`farfield.validation.harness.cluster` has one for Ray.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

from farfield.theory.answers.answer import InputError, Label, Result
from farfield.theory.answers.blocks import Block, sentence
from farfield.validation.harness.configuration import key
from farfield.validation.harness.inventory import Run, listing, run_of
from farfield.validation.harness.plan import Job
from farfield.validation.harness.store import InUse, Store, stored
from farfield.validation.json_files import CorruptFile
from farfield.validation.optional import first_line

Tell = Callable[[str, str, int, int, str], None]
"""Called as `tell(key, stage, done, total, note)` with the progress of the job with this key."""

Watch = Callable[[Job, str, int, int, str], None]
"""Called as `watch(job, stage, done, total, note)`; stages are those of `train_and_measure`, and
`started`, `finished`, `failed`, `held` (by another process), `lost` (its worker died)."""

RETRIES = 2
_PAUSE = 0.5  # seconds between two looks at what other processes hold
_WORDS = 0.2  # seconds between two words of a worker about one stage


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


@dataclass(frozen=True, repr=False)
class Swept(Result):
    """The jobs of a plan after a sweep, in the plan's order, each finished or failed."""

    jobs: tuple[Run, ...]

    @property
    def failed(self) -> int:
        """How many jobs have no result."""
        return sum(job.state == "failed" for job in self.jobs)

    def blocks(self) -> Sequence[Block]:
        said = sentence(
            "{done} of {all} jobs finished, {failed} failed.",
            Label.MEASURED,
            done=len(self.jobs) - self.failed,
            all=len(self.jobs),
            failed=self.failed,
        )
        return said, listing(self.jobs)


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
    known, failures, lost = {job.key: job for job in jobs}, dict[str, str](), Counter[str]()
    running, held, waiting = set[str](), list[str](), deque[str]()
    for job in jobs:
        if finished(job, store) is None:
            waiting.append(job.key)
        else:
            watch(job, "finished", 1, 1, "before")
    if waiting:
        store.require_writable()

    def ended(key: str, state: str, note: str = "") -> None:
        running.discard(key)
        if state == "held":
            held.append(key)
        elif state == "lost":
            lost[key] += 1
            if lost[key] <= retries:
                waiting.append(key)
            else:
                state, note = "failed", f"its worker died {lost[key]} times: {note}"
        if state == "failed":
            failures[key] = note
        watch(known[key], state, 1, 1, note)

    def tell(key: str, stage: str, done: int, total: int, note: str) -> None:
        watch(known[key], stage, done, total, note)

    with closing(SameProcess() if engine is None else engine) as engine:
        while waiting or running or held:
            while waiting and len(running) < engine.slots:
                key = waiting.popleft()
                if store.held(key):
                    ended(key, "held")
                elif finished(known[key], store) is not None:
                    ended(key, "finished", "by another process")
                else:
                    engine.start(known[key], store)
                    running.add(key)
                    watch(known[key], "started", 0, 1, "")
            if running:
                for outcome in engine.outcomes(tell):
                    ended(outcome.key, outcome.state, outcome.note)
            elif held:
                time.sleep(_PAUSE)
            taken = [store.held(key) for key in held]
            waiting.extend(key for key, still in zip(held, taken, strict=True) if not still)
            held = [key for key, still in zip(held, taken, strict=True) if still]
    return Swept(tuple(_run(job, store, failures.get(job.key)) for job in jobs))


def _run(job: Job, store: Store, failure: str | None) -> Run:
    preset = job.configuration.preset
    run = Run(job.key, "failed", note=failure or "")
    return replace(
        run if failure is not None else run_of(store.folder(job.key)),
        encoding=job.label,
        preset=preset.name,
        length=preset.length,
        seed=job.configuration.seed,
    )


def attempt(job: Job, store: Store, tell: Tell, device: str = "auto") -> JobOutcome:
    """Run a job now, in this process, unless another holds it; never raises for the job's sake.

    Args:
        job: what to run.
        store: where the run is kept.
        tell: told of the progress, of one stage a few times a second.
        device: `auto`, `cpu` or `cuda`.
    """
    from farfield.validation.harness.experiment import train_and_measure
    from farfield.validation.harness.training import TrainingDiverged

    last = (0.0, "")

    def progress(stage: str, done: int, total: int, note: str = "", /) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last[0] >= _WORDS or stage != last[1]:
            tell(job.key, stage, done, total, note)
            last = now, stage

    run = (job.configuration, store, progress)
    try:
        result = train_and_measure(*run, device=device, wait=False, predictions=job.predictions)
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


class SameProcess:
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
        self.running: dict[Any, tuple[str, Any]] = {}

    def start(self, job: Job, store: Store) -> None:
        ours, theirs = self.context.Pipe(duplex=False)
        given = (theirs, job, store, self.device, self.slots)
        process = self.context.Process(target=_work, args=given, daemon=True)
        process.start()
        theirs.close()
        self.running[ours] = job.key, process

    def outcomes(self, tell: Tell) -> Iterable[JobOutcome]:
        for ready in wait(list(self.running), _PAUSE):
            ours: Any = ready
            key, process = self.running[ours]
            try:
                said = ours.recv()
            except (EOFError, OSError):  # it ended without a last word
                process.join()
                said = JobOutcome(key, "lost", f"worker {_ending(process.exitcode)}")
            if isinstance(said, JobOutcome):
                process.join()
                del self.running[ours]
                ours.close()
                yield said
            else:
                tell(*said)

    def close(self) -> None:
        for ours, (_, process) in self.running.items():
            process.terminate()
            process.join()
            ours.close()
        self.running.clear()


def _work(theirs: Connection, job: Job, store: Store, device: str, workers: int) -> None:
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver ends its workers
    torch.set_num_threads(max(1, torch.get_num_threads() // workers))
    with suppress(BrokenPipeError):
        theirs.send(attempt(job, store, lambda *word: theirs.send(word), device))


def _ending(code: int | None) -> str:
    return f"killed by signal {-code}" if code and code < 0 else f"ended with code {code}"


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
