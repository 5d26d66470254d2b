"""The runs that have no committed result yet, made one after the other.

Start it as often as there are cores for it: each process takes the next run that none of the others
holds. A run that was killed goes on from its last checkpoint.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

from farfield.validation.files import recorded, write_json
from farfield.validation.harness.plan import Job
from farfield.validation.harness.reading import corpus
from farfield.validation.harness.store import Store, commit
from farfield.validation.harness.sweep import attempt, finished
from farfield.validation.reference.collection import MORE, STARTED, planned
from farfield.validation.reference.committed import place


def missing(folder: str | Path) -> Iterator[str]:
    """Make the runs that are missing, in `order`; a line for each that this process ended.

    Beside a run are kept, when it starts, the hash of the predictions and the commit, and when it
    has ended, its last-token perplexity on more targets (`targets`).
    """
    store = Store(folder)
    lacking = [
        (job, hashed)
        for jobs, home, hashed in planned(corpus())
        for job in jobs
        if not place(job, home).exists()
    ]
    for job, hashed in sorted(lacking, key=lambda pair: order(pair[0])):
        home = store.folder(job.key)
        if store.held(job.key) or (finished(job, store) and (home / MORE).exists()):
            continue
        if not (home / STARTED).exists():
            home.mkdir(parents=True, exist_ok=True)
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            write_json(home / STARTED, {"registered": hashed, "commit": commit(), "time": now})
        outcome = attempt(job, store, lambda *word: None)
        if outcome.state == "finished":
            with store.locked(job.key):
                _measure_more(job, store)
        if outcome.state != "held":
            yield f"{job.name}: {outcome.state} {outcome.note}".rstrip()


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

    configuration = job.configuration
    if (store.folder(job.key) / MORE).exists():
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
    write_json(store.folder(job.key) / MORE, found)
