"""The engine that runs a plan on Ray: on this machine, or on every machine and GPU of a cluster.

Each attempt at a job is one Ray task with the cores and GPUs that a job takes. The store's folder
is one that all machines see, at the same path: it holds the results, and its locks keep two tasks
from one run. A task whose worker or machine dies is reported as lost, and the sweep begins the job
again. Ray is needed here alone: `pip install '.[cluster]'`.
"""

from __future__ import annotations

import logging
import os
import socket
from concurrent.futures import Future
from typing import Any

from farfield.theory.answers.answer import InputError
from farfield.validation.harness.plan import Job
from farfield.validation.harness.store import Store
from farfield.validation.harness.sweep import JobOutcome, attempt, require_workers
from farfield.validation.optional import library
from farfield.validation.progress import Progress

_PATIENCE = 5.0  # seconds in which a cluster must answer


class Cluster:
    """As many jobs at a time as a Ray has room for.

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
            if not whole or (name == "cpus" and value == 0):
                raise InputError(
                    f"{name} a job {value:g}: accepted is a whole number, or a share of one"
                )
        self.workers, self.address, self.cpus, self.gpus = workers, address, cpus, gpus
        self.slots, self.ours = 1, False
        self.started: list[Any] = []
        self.task: Any = None

    def start(self, job: Job, store: Store, progress: Progress) -> Future[JobOutcome]:
        if self.task is None:
            self._connect()
        there, device = Store(store.root.resolve()), "cuda" if self.gpus else "cpu"
        self.started.append(self.task.remote(job, there, device))
        future: Future[JobOutcome] = self.started[-1].future()
        return future

    def close(self) -> None:
        import ray

        for reference in self.started:
            ray.cancel(reference, force=True)
        if self.ours:
            ray.shutdown()

    def _connect(self) -> None:
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
        rooms = (min(int(node.get(k, 0) / v) for k, v in wanted.items() if v) for node in nodes)
        room = sum(rooms)
        if not room:
            most = {kind: max((node.get(kind, 0) for node in nodes), default=0) for kind in wanted}
            raise InputError(
                f"a job of {self.cpus:g} cores and {self.gpus:g} GPUs fits no machine of this Ray; "
                f"accepted: at most {most['CPU']:g} cores and {most['GPU']:g} GPUs"
            )
        self.slots = self.workers or room
        self.task = ray.remote(num_cpus=self.cpus, num_gpus=self.gpus, max_retries=0)(_attempt)


def _attempt(job: Job, store: Store, device: str) -> JobOutcome:
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
    if not host or not port.isdigit():
        raise InputError(f"address {place!r}: accepted: auto, HOST:PORT, ray://HOST:PORT")
    try:
        socket.create_connection((host, int(port)), _PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise InputError(
            f"no Ray answers at {address!r}: {getattr(error, 'strerror', None) or error}; "
            "accepted: the address of a running cluster (`ray start --head` starts one), or none "
            "for a Ray on this machine"
        ) from None
