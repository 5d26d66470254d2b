"""Run a plan: every job that is not finished, one after the other, into one store of runs.

Several processes may work on one plan: each takes the next job that is neither finished nor held.
"""

from __future__ import annotations

from typing import Any

from farfield.validation.configuration import key
from farfield.validation.plan import Job
from farfield.validation.runs import CorruptRun, Store, stored


def finished(job: Job, store: Store) -> dict[str, Any] | None:
    """The result of a job if the store holds all of it; nothing is trained or measured."""
    wanted = [
        f"measurement-{key(job.configuration.measured(v))}" for v in job.configuration.variants
    ]
    folder = store.folder(job.key)
    if not all((folder / f"{name}.json").exists() for name in ("training", *wanted)):
        return None
    try:
        return stored(folder, wanted)
    except CorruptRun:
        return None
