"""The engine that runs a plan on Ray: on this machine, or on every machine and GPU of a cluster.

Each attempt at a job is one Ray task with the cores and GPUs that a job takes. The store's folder
is one that all machines see, at the same path: it holds the results, and its locks keep two tasks
from one run. A task whose worker or machine dies is reported as lost, and the sweep begins the job
again. Ray is needed here alone: `pip install '.[cluster]'`.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import socket
from collections.abc import Iterable, Mapping
from typing import Any

from farfield.theory.answers.answer import InputError
from farfield.validation.harness.configuration import Configuration
from farfield.validation.harness.corpus import Corpus
from farfield.validation.harness.plan import Job
from farfield.validation.harness.store import Store
from farfield.validation.harness.sweep import JobOutcome, Tell, attempt, failed
from farfield.validation.optional import first_line, library

_PATIENCE = 5.0  # seconds in which a cluster must answer
_PAUSE = 0.5
_WORDS = 1.0  # seconds between two words of a worker


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
        if workers is not None and workers < 1:
            raise InputError(f"workers {workers}: accepted is a whole number from 1")
        for name, value in (("cpus", cpus), ("gpus", gpus)):
            whole = 0 <= value <= 1 or (1 < value < 1e6 and value == int(value))
            if not whole or (name == "cpus" and value == 0):
                raise InputError(
                    f"{name} a job {value:g}: accepted is a whole number, or a share of one"
                )
        self.workers, self.address, self.cpus, self.gpus = workers, address, cpus, gpus
        self.slots = workers or 10**9
        self.running: dict[Any, str] = {}
        self.texts: dict[str, Any] = {}
        self.task: Any = None
        self.ours = False

    def start(self, job: Job, store: Store) -> None:
        import ray

        if self.task is None:
            self._connect()
        configuration = job.configuration
        text = configuration.corpus
        if text.sha256 not in self.texts:
            self.texts[text.sha256] = ray.put(text)
        rest = {
            field.name: getattr(configuration, field.name)
            for field in dataclasses.fields(configuration)
            if field.name != "corpus"
        }
        device = "cuda" if self.gpus else "cpu"
        there = Store(store.root.resolve())
        named = {"label": job.label, "family": job.family, "predictions": job.predictions}
        reference = self.task.remote(
            named, rest, self.texts[text.sha256], there, device, self.queue
        )
        self.running[reference] = job.key

    def outcomes(self, tell: Tell) -> Iterable[JobOutcome]:
        import ray

        done, _ = ray.wait(list(self.running), timeout=_PAUSE)
        for word in self.queue.get_nowait_batch(self.queue.qsize()):
            tell(*word)
        ended = []
        for reference in done:
            key = self.running.pop(reference)
            try:
                ended.append(ray.get(reference))
            except ray.exceptions.RayTaskError as error:
                ended.append(failed(key, error.cause))
            except ray.exceptions.RayError as error:
                ended.append(JobOutcome(key, "lost", first_line(error)))
        return ended

    def close(self) -> None:
        import ray

        for reference in self.running:
            ray.cancel(reference, force=True)
        self.running.clear()
        self.texts.clear()
        if self.ours:
            ray.shutdown()
        self.task = None

    def _connect(self) -> None:
        import ray
        from ray.util.queue import Queue

        if not ray.is_initialized():
            quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
            if self.address is None:
                os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
                room = None if self.workers is None else max(1, round(self.workers * self.cpus))
                ray.init("local", num_cpus=room, include_dashboard=False, **quiet)
            else:
                _require_answer(self.address)
                try:
                    ray.init(address=self.address, **quiet)
                except Exception as error:  # ConnectionError, RuntimeError, ValueError, ...
                    why = first_line(error).partition(". ")[0]
                    raise _unreachable(self.address, why) from None
            self.ours = True
        rooms = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        wanted = {"CPU": self.cpus, "GPU": self.gpus}
        if not any(all(r.get(k, 0) >= v for k, v in wanted.items()) for r in rooms):
            most = {k: max((r.get(k, 0) for r in rooms), default=0) for k in wanted}
            raise InputError(
                f"a job of {self.cpus:g} cores and {self.gpus:g} GPUs fits no machine of this Ray; "
                f"accepted: at most {most['CPU']:g} cores and {most['GPU']:g} GPUs"
            )
        self.queue = Queue(actor_options={"num_cpus": 0})
        self.task = ray.remote(num_cpus=self.cpus, num_gpus=self.gpus, max_retries=0)(_attempt)


def _attempt(
    named: Mapping[str, Any],
    rest: Mapping[str, Any],
    text: Corpus,
    store: Store,
    device: str,
    queue: Any,
) -> JobOutcome:
    """The task: it has the key of the job, whatever machine it runs on."""
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))  # Ray sets a job's cores

    def tell(*word: Any) -> None:
        queue.put_nowait(word)

    job = Job(configuration=Configuration(corpus=text, **rest), **named)
    return attempt(job, store, tell, device, words=_WORDS)


def _require_answer(address: str) -> None:
    """Raise InputError unless something listens there; Ray itself waits for a minute."""
    place = os.environ.get("RAY_ADDRESS", "") if address == "auto" else address
    host, _, port = place.removeprefix("ray://").rpartition(":")
    if not place or place in ("auto", "local"):
        return
    if not host or not port.isdigit():
        raise InputError(f"address {place!r}: accepted: auto, HOST:PORT, ray://HOST:PORT")
    try:
        socket.create_connection((host, int(port)), _PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise _unreachable(place, getattr(error, "strerror", None) or str(error)) from None


def _unreachable(address: str, why: str) -> InputError:
    return InputError(
        f"no Ray answers at {address!r}: {why}; accepted: the address of a running cluster "
        "(`ray start --head` starts one), or none for a Ray on this machine"
    )
