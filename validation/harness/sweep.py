"""Run a plan: every job that is not finished, into one store of runs.

A job is one run, named by the hash of its configuration, so finished jobs are never repeated.
Several processes, on machines that share the folder, may work on one plan together: each takes the
next job that is neither finished nor held. A worker that dies loses its job alone, which is taken
up again from its last checkpoint; the system frees its lock. If the driver dies, stored runs are
safe; its workers end with the jobs that they have begun.

An engine starts jobs, each in a future of its own. Engines of this module:

    SameProcess  one job at a time, in this process
    Processes    several at a time, each job in a process of its own

`farfield.validation.harness.cluster` has one for Ray.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

from farfield.theory.answers.answer import InputError, Label, Result
from farfield.theory.answers.blocks import Block, sentence
from farfield.validation.harness.configuration import key
from farfield.validation.harness.inventory import Run, listing, run_of
from farfield.validation.harness.plan import Job
from farfield.validation.harness.store import InUse, Store, stored
from farfield.validation.json_files import CorruptFile
from farfield.validation.optional import first_line
from farfield.validation.progress import Progress, silent

Watch = Callable[[Job, str, int, int, str], None]
"""Called as `watch(job, stage, done, total, note)`; stages are those of `train_and_measure`, and
`started`, `finished`, `failed`, `held` (by another process), `lost` (its worker died)."""

RETRIES = 2
_PAUSE = 0.5  # seconds between two looks at what other processes hold


@dataclass(frozen=True)
class JobOutcome:
    """How an attempt at a job ended.

    Args:
        state: `finished`, `failed`, `held` or `lost`.
        note: why.
        result: of a finished job, as `train_and_measure` returns it.
    """

    state: str
    note: str = ""
    result: dict[str, Any] | None = None


class Engine(Protocol):
    """Where jobs run: so many at a time."""

    slots: int

    def start(self, job: Job, store: Store, progress: Progress) -> Future[JobOutcome]:
        """Begin an attempt at a job; reports its progress where it runs in this process. The future
        raises an Exception where the worker is lost."""

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
    failures, lost, held = dict[str, str](), Counter[str](), set[str]()
    running, waiting = dict[Future[JobOutcome], Job](), list[Job]()
    for job in jobs:
        if finished(job, store) is None:
            waiting.append(job)
        else:
            watch(job, "finished", 1, 1, "before")
    if waiting:
        store.require_writable()
    with closing(SameProcess() if engine is None else engine) as engine:
        while waiting or running:
            for job in list(waiting):
                if len(running) >= engine.slots:
                    break
                if store.held(job.key):
                    if job.key not in held:
                        watch(job, "held", 1, 1, "")
                    held.add(job.key)
                    continue
                waiting.remove(job)
                if finished(job, store) is not None:
                    watch(job, "finished", 1, 1, "by another process")
                    continue
                watch(job, "started", 0, 1, "")
                running[engine.start(job, store, partial(watch, job))] = job
            if not running:
                time.sleep(_PAUSE * bool(waiting))
            for future in wait(running, _PAUSE, FIRST_COMPLETED).done:
                job = running.pop(future)
                try:
                    outcome = future.result()
                except Exception as error:  # of the engine: attempts catch their own
                    outcome = JobOutcome("lost", first_line(error))
                    lost[job.key] += 1
                    if lost[job.key] > retries:
                        why = f"its worker died {lost[job.key]} times: {outcome.note}"
                        outcome = JobOutcome("failed", why)
                if outcome.state in ("held", "lost"):
                    waiting.append(job)
                if outcome.state == "failed":
                    failures[job.key] = outcome.note
                watch(job, outcome.state, 1, 1, outcome.note)
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


def attempt(
    job: Job, store: Store, progress: Progress = silent, device: str = "auto"
) -> JobOutcome:
    """Run a job now, in this process, unless another holds it; never raises for the job's sake.

    Args:
        job: what to run.
        store: where the run is kept.
        progress: told how far it is.
        device: `auto`, `cpu` or `cuda`.
    """
    from farfield.validation.harness.experiment import train_and_measure
    from farfield.validation.harness.training import TrainingDiverged

    run = (job.configuration, store, progress)
    try:
        result = train_and_measure(*run, device=device, wait=False, predictions=job.predictions)
    except InUse:
        return JobOutcome("held")
    except (InputError, TrainingDiverged, CorruptFile) as error:
        return JobOutcome("failed", str(error))
    except Exception as error:  # the other jobs go on; this one is reported
        return JobOutcome("failed", f"{type(error).__name__}: {first_line(error, 300)}")
    return JobOutcome("finished", result=result)


class SameProcess:
    """One job at a time, in this process.

    Args:
        device: `auto`, `cpu` or `cuda`.
    """

    slots = 1

    def __init__(self, device: str = "auto") -> None:
        self.device = device

    def start(self, job: Job, store: Store, progress: Progress) -> Future[JobOutcome]:
        done = Future[JobOutcome]()
        done.set_result(attempt(job, store, progress, self.device))
        return done

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
        require_workers(workers)
        self.slots, self.device = workers, device
        # A server that has loaded torch forks each worker, so that a job does not load it again.
        fork = "forkserver" in multiprocessing.get_all_start_methods()
        self.context: Any = multiprocessing.get_context("forkserver" if fork else "spawn")
        if fork:
            self.context.set_forkserver_preload(["farfield.validation.harness.experiment"])
        self.workers = set[BaseProcess]()

    def start(self, job: Job, store: Store, progress: Progress) -> Future[JobOutcome]:
        others = set(multiprocessing.active_children())
        pool = ProcessPoolExecutor(1, self.context, max_tasks_per_child=1)
        future = pool.submit(_work, job, store, self.device, self.slots)
        pool.shutdown(wait=False)  # when the job is done
        self.workers |= {*multiprocessing.active_children()} - others
        return future

    def close(self) -> None:
        for worker in self.workers & {*multiprocessing.active_children()}:
            worker.terminate()
            worker.join()


def require_workers(workers: int) -> None:
    """Raise InputError unless there is one."""
    if workers < 1:
        raise InputError(f"workers {workers}: accepted is a whole number from 1")


def _work(job: Job, store: Store, device: str, workers: int) -> JobOutcome:
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver ends its workers
    torch.set_num_threads(max(1, torch.get_num_threads() // workers))
    return attempt(job, store, device=device)


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
