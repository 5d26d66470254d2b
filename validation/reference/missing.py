"""The runs that have no committed result yet, made one after the other.

Start it as often as there are cores for it: each process takes the next run that none of the others
holds. A run that was killed goes on from its last checkpoint.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from farfield.validation.harness.corpus import corpus
from farfield.validation.harness.plan import Job
from farfield.validation.harness.store import Store
from farfield.validation.harness.sweep import attempt
from farfield.validation.json_files import recorded, write_json
from farfield.validation.reference.collection import MORE, planned
from farfield.validation.reference.committed import Row, place


def made(
    runs: Iterable[tuple[Job, Path, str | None]],
    store: Store,
    then: Callable[[Job, Row], None],
) -> Iterator[str]:
    """Make the runs that have no committed result and that no other process holds.

    Args:
        runs: jobs, each with the folder of its committed result and the hash of its predictions.
        store: where the runs are kept.
        then: what to do with each result, as soon as the run has finished.

    Returns:
        A line for each run that ended.
    """
    for job, home, hashed in runs:
        if place(job, home).exists() or store.held(job.key):
            continue
        registered = dataclasses.replace(job, predictions=hashed)
        outcome = attempt(registered, store)
        if outcome.result is not None:
            then(job, outcome.result)
        if outcome.state != "held":
            yield f"{job.name}: {outcome.state} {outcome.note}".rstrip()


def missing(folder: str | Path) -> Iterator[str]:
    """Make the runs that are missing, in `order`; a line for each that this process ended.

    A run that has ended is measured on more targets (`targets`) by its last-token perplexity.
    """
    store = Store(folder)
    runs = [(job, home, hashed) for jobs, home, hashed in planned(corpus()) for job in jobs]
    runs.sort(key=lambda run: order(run[0]))
    lacking = (run for run in runs if not (store.folder(run[0].key) / MORE).exists())
    yield from made(lacking, store, lambda job, _: _measure_more(job, store))


def order(job: Job) -> tuple[int, ...]:
    """What comes first: first seeds, more steps, more depth, other lengths; more width last."""
    chosen = job.configuration.preset
    return job.configuration.seed, chosen.width, -chosen.steps, -chosen.layers, -chosen.length


def targets(length: int) -> int:
    """How many targets a model of a training length is measured on beside the registered 512."""
    return 4096 if length < 256 else 2048


def _measure_more(job: Job, store: Store) -> None:
    from farfield.validation.harness.experiment import trained_model
    from farfield.validation.harness.measures.perplexity import last_token

    configuration, path = job.configuration, store.folder(job.key) / MORE
    with store.locked(job.key):
        if path.exists():
            return  # by another process
        model = trained_model(configuration, store)
        assert model is not None
        found = {
            str(visible): recorded(
                last_token(
                    model,
                    configuration.corpus.held_out,
                    configuration.settings.lengths,
                    targets=targets(configuration.preset.length),
                    visible=visible,
                )
            )
            for visible in configuration.variants
        }
        write_json(path, found)
