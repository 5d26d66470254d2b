"""Run a plan: every job that is not finished, into one store of runs.

A job is one run, named by the hash of its configuration, so finished jobs are never repeated.
Several processes, on machines that share the folder, may work on one plan together: each takes the
next job that is neither finished nor held. A worker that dies loses its job alone, which is taken
up again from its last checkpoint; the system frees its lock. If the driver dies, stored runs are
safe; its workers end with the jobs that they have begun.

An engine starts jobs, each in a future of its own, `slots` at a time:

    SameProcess  one job, in this process
    Processes    several, each in a process of its own
    Cluster      several on Ray, on this machine or on every machine and GPU of a cluster

On a cluster all machines see the store's folder at the same path. Ray is needed there alone:
`pip install '.[cluster]'`.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import closing
from functools import partial
from multiprocessing.process import BaseProcess
from typing import Any

from farfield.theory.answers.errors import InputError, refuse
from farfield.validation.harness.plan import Job
from farfield.validation.harness.store import InUse, Inventory, Run, Store, run_of, stored
from farfield.validation.json_files import CorruptFile
from farfield.validation.optional import first_line, library
from farfield.validation.progress import Progress, silent

Watch = Callable[[Job, str, int, int, str], None]
"""Called as `watch(job, stage, done, total, note)`; stages are those of `train_and_measure`, and
`started`, `finished`, `failed`, `held` (by another process), `lost` (its worker died)."""

RETRIES = 2
_PAUSE = 0.5  # seconds between two looks at what other processes hold
_PATIENCE = 5.0  # seconds in which a cluster must answer


Outcome = tuple[str, str, dict[str, Any] | None]
"""How an attempt at a job ended: `finished`, `failed` or `held`; why; and what `train_and_measure`
returned, if it finished."""


def sweep(
    jobs: Sequence[Job],
    store: Store,
    engine: SameProcess | None = None,
    watch: Watch = lambda *_: None,
    retries: int = RETRIES,
) -> Inventory:
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
    running, waiting = dict[Future[Outcome], Job](), list[Job]()
    for job in jobs:
        if finished(job, store) is None:
            waiting.append(job)
        else:
            watch(job, "finished", 1, 1, "before")
    if waiting:
        with store.writing():
            pass
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
                    state, note, _ = future.result()
                except Exception as error:  # of the engine: attempts catch their own
                    state, note = "lost", first_line(error)
                    lost[job.key] += 1
                    if lost[job.key] > retries:
                        state = "failed"
                        note = f"its worker died {lost[job.key]} times: {note}"
                if state in ("held", "lost"):
                    waiting.append(job)
                if state == "failed":
                    failures[job.key] = note
                watch(job, state, 1, 1, note)
    return Inventory(tuple(_run(job, store, failures.get(job.key)) for job in jobs))


def _run(job: Job, store: Store, failure: str | None) -> Run:
    preset, seed = job.configuration.preset, job.configuration.seed
    own = {"encoding": job.label, "preset": preset.name, "length": preset.length, "seed": seed}
    if failure is None:
        return run_of(store.folder(job.key)) | own
    return {"key": job.key, "state": "failed", **own, "note": failure}


def attempt(job: Job, store: Store, progress: Progress = silent, device: str = "auto") -> Outcome:
    """Run a job now, in this process, unless another holds it; never raises for the job's sake.

    Args:
        job: what to run.
        store: where the run is kept.
        progress: told how far it is.
        device: `auto`, `cpu` or `cuda`.
    """
    from farfield.validation.harness.experiment import train_and_measure

    run = (job.configuration, store, progress)
    try:
        result = train_and_measure(*run, device=device, wait=False, predictions=job.predictions)
    except InUse:
        return "held", "", None
    except (InputError, CorruptFile) as error:
        return "failed", str(error), None
    except Exception as error:  # the other jobs go on; this one is reported
        return "failed", f"{type(error).__name__}: {first_line(error, 300)}", None
    return "finished", "", result


def finished(job: Job, store: Store) -> dict[str, Any] | None:
    """The result of a job if the store holds every part; nothing is trained or measured."""
    folder, wanted = store.folder(job.key), [f"measurement-{key}" for key in job.measured]
    if not all((folder / f"{name}.json").exists() for name in ("training", *wanted)):
        return None
    try:
        return stored(folder, wanted)
    except CorruptFile:
        return None


class SameProcess:
    """One job at a time, in this process.

    Args:
        device: `auto`, `cpu` or `cuda`.
    """

    slots = 1

    def __init__(self, device: str = "auto") -> None:
        self.device = device

    def start(self, job: Job, store: Store, progress: Progress) -> Future[Outcome]:
        """Begin an attempt at a job; reports its progress where it runs in this process. The future
        raises an Exception where the worker is lost."""
        done = Future[Outcome]()
        done.set_result(attempt(job, store, progress, self.device))
        return done

    def close(self) -> None:
        """End what still runs."""


class Processes(SameProcess):
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

    def start(self, job: Job, store: Store, progress: Progress) -> Future[Outcome]:
        others = set(multiprocessing.active_children())
        pool = ProcessPoolExecutor(1, self.context, _watch, max_tasks_per_child=1)
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
    refuse(workers < 1, f"workers {workers}: accepted is a whole number from 1")


_BEGUN = threading.Event()  # a worker has its job


def _watch() -> None:
    """Let a worker end whose driver was killed before it sent the job."""

    def end() -> None:
        driver = multiprocessing.parent_process()
        assert driver is not None
        driver.join()
        if not _BEGUN.is_set():
            os._exit(1)

    threading.Thread(target=end, daemon=True).start()


def _work(job: Job, store: Store, device: str, workers: int) -> Outcome:
    import torch

    _BEGUN.set()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver ends its workers
    torch.set_num_threads(max(1, torch.get_num_threads() // workers))
    return attempt(job, store, device=device)


class Cluster(SameProcess):
    """As many jobs at a time as a Ray has room for, each a task of its own.

    Args:
        workers: jobs at a time; None takes all that Ray has room for, and on this machine one for
            each core.
        address: of a running cluster: `auto` (the one on this machine, or `RAY_ADDRESS`),
            `HOST:PORT` or `ray://HOST:PORT`; None starts a Ray on this machine.
        cpus, gpus: what a job takes; fractions share a core or a GPU. Without GPUs it runs on a
            CPU.

    Raises:
        InputError: Ray is not installed, or a number is out of range. `start` raises it where the
            cluster does not answer, or has no room for a single job.
    """

    def __init__(
        self,
        workers: int | None = None,
        address: str | None = None,
        *,
        cpus: float = 1,
        gpus: float = 0,
    ) -> None:
        library("ray", "a sweep on a cluster", "cluster")
        require_workers(1 if workers is None else workers)
        for name, value in (("cpus", cpus), ("gpus", gpus)):
            whole = 0 <= value <= 1 or (1 < value < 1e6 and value == int(value))
            refuse(
                not whole or (name == "cpus" and value == 0),
                f"{name} a job {value:g}: accepted is a whole number, or a share of one",
            )
        self.workers, self.address, self.cpus, self.gpus = workers, address, cpus, gpus
        self.ours, self.started = False, list[Any]()
        self.task: Any = None

    def start(self, job: Job, store: Store, progress: Progress) -> Future[Outcome]:
        self.task = self.task or self._connected()
        there, device = Store(store.root.resolve()), "cuda" if self.gpus else "cpu"
        self.started.append(self.task.remote(job, there, device))
        future: Future[Outcome] = self.started[-1].future()
        return future

    def close(self) -> None:
        import ray

        for reference in self.started:
            ray.cancel(reference, force=True)
        if self.ours:
            ray.shutdown()

    def _connected(self) -> Any:
        """The task that runs a job, and in `slots` how many there is room for."""
        import ray

        if not ray.is_initialized():
            given: dict[str, Any] = {"address": self.address}
            if self.address is None:
                os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
                room = None if self.workers is None else max(1, round(self.workers * self.cpus))
                given = {"address": "local", "num_cpus": room, "include_dashboard": False}
            _knock(self.address)
            ray.init(**given, logging_level=logging.ERROR, log_to_driver=False)
            self.ours = True
        wanted = {"CPU": self.cpus, "GPU": self.gpus}
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        room = sum(min(int(node.get(k, 0) / v) for k, v in wanted.items() if v) for node in nodes)
        if not room:
            most = {kind: max((node.get(kind, 0) for node in nodes), default=0) for kind in wanted}
            raise InputError(
                f"a job of {self.cpus:g} cores and {self.gpus:g} GPUs fits no machine of this Ray; "
                f"accepted: at most {most['CPU']:g} cores and {most['GPU']:g} GPUs"
            )
        self.slots = self.workers or room
        return ray.remote(num_cpus=self.cpus, num_gpus=self.gpus, max_retries=0)(_attempt)


def _attempt(job: Job, store: Store, device: str) -> Outcome:
    """The task: it has the key of the job, whatever machine it runs on."""
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))  # Ray sets a job's cores
    return attempt(job, store, device=device)


def _knock(address: str | None) -> None:
    """Raise InputError unless something listens at an address; Ray itself waits for a minute."""
    place = os.environ.get("RAY_ADDRESS", "auto") if address == "auto" else address
    if place in (None, "auto", "local"):
        return
    host, _, port = place.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), _PATIENCE).close()
    except (OSError, OverflowError, ValueError) as error:
        raise InputError(
            f"no Ray answers at {address!r}: {getattr(error, 'strerror', None) or error}; "
            "accepted: auto, or HOST:PORT or ray://HOST:PORT of a running cluster (`ray start "
            "--head` starts one), or none for a Ray on this machine"
        ) from None
