"""Finished runs are taken from a store into the committed results, and missing ones are made.

Start `missing` as often as there are cores for it: each process takes the next run that none of the
others holds. A run that was killed goes on from its last checkpoint.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from farfield.theory.answers.answer import InputError
from farfield.validation.harness.corpus import Corpus, corpus
from farfield.validation.harness.plan import Job, read_plan
from farfield.validation.harness.store import Store, commit
from farfield.validation.harness.sweep import attempt, finished
from farfield.validation.json_files import read_json, recorded, write, write_json
from farfield.validation.reference.committed import HERE, Row, place, rounded
from farfield.validation.reference.known_cases import write_outcomes
from farfield.validation.reference.registration import FIRST, REGISTRATIONS

LONG = 100
TOLERANCE = 0.02
COMMAND = "make reference"
MORE = "more-targets.json"  # beside a run in its store; see `missing`
STARTED = "started.json"  # beside runs of the code before training itself said when it began


def condensed(
    result: Row, label: str, hashed: str | None, beside: Path | None = None
) -> dict[str, Any]:
    """A result as it is committed: rounded, without long formulas and the score curve a layer.

    Args:
        result: of a run.
        label: of its encoding in the plan.
        hashed: the hash of the predictions.
        beside: the run's folder in its store, for what is kept beside it.
    """
    more = {}
    if beside is not None and (beside / MORE).exists():
        more = {"started": _began(result, beside), "more_targets": read_json(beside / MORE)}
    encoding = result["encoding"]
    heads = [h if len(h) < LONG else h[:LONG] + "..." for h in encoding["heads"]]
    measurements = []
    for m in result["measurements"]:
        if "scores" in m:
            m = {**m, "scores": {k: v for k, v in m["scores"].items() if k != "layers"}}
        measurements.append(m)
    return rounded(
        {
            **result,
            "encoding": {**encoding, "heads": heads, "label": label},
            "measurements": measurements,
            "registered": hashed,
            "command": COMMAND,
            **more,
            **({"commit": made} if (made := commit()) else {}),
        }
    )


def _began(result: Row, beside: Path) -> Row:
    """When training began, at which commit, and the hash of what was said before it."""
    began: Row = result["training"].get("began", {})
    return read_json(beside / STARTED) if not began and (beside / STARTED).exists() else began


def write_result(path: Path, result: Row) -> None:
    """Write a result as it is committed."""
    text = json.dumps(result, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    write(path, (text + "\n").encode())


def differences(old: Row, new: Row, tolerance: float = TOLERANCE) -> Iterator[str]:
    """Lines for the perplexities of a new result that are not those of the old one."""
    if old["text"]["sha256"] != new["text"]["sha256"]:
        yield "another text"
    for before, after in zip(old["measurements"], new["measurements"], strict=False):
        for p, q in zip(before["perplexity"], after["perplexity"], strict=False):
            change = q["perplexity"] / p["perplexity"] - 1
            if abs(change) > tolerance:
                yield (
                    f"{before['inference']['label']}, {p['protocol']} at {p['length']}: "
                    f"{p['perplexity']:.4g} is now {q['perplexity']:.4g} ({change:+.1%})"
                )


def collect(folder: str | Path, *, replace: bool = False) -> list[str]:
    """Take the finished runs of a store into the committed results; returns what to report.

    A run that began with registered predictions is taken once `missing` has measured more targets.

    Raises:
        InputError: there is no such folder.
    """

    if not Path(folder).is_dir():
        raise InputError(f"runs folder {str(folder)!r} does not exist; `make reference` makes it")
    lines, count = [], 0
    for jobs, home, hashed in planned(corpus()):
        home.mkdir(exist_ok=True)
        for job in jobs:
            result = finished(job, Store(folder))
            beside = Store(folder).folder(job.key)
            if result is None:
                continue
            if _began(result, beside) and not (beside / MORE).exists():
                lines.append(f"{job.name}: left out, `missing` has yet to measure more targets")
                continue
            count += 1
            path = place(job, home)
            new = condensed(result, job.label, hashed, beside)
            if path.exists() and not replace:
                old = json.loads(path.read_text(encoding="utf-8"))
                lines += [f"{job.name}: {line}" for line in differences(old, new)]
                continue
            write_result(path, new)
            lines.append(f"{job.name}: new")
    write_outcomes()
    return [*lines, f"{count} finished runs of the plans"]


def planned(text: Corpus) -> Iterator[tuple[Sequence[Job], Path, str | None]]:
    """For each plan its jobs, the folder of their results, and the hash that they carry."""
    for registration in (FIRST, *REGISTRATIONS):
        yield registration.plan.jobs(text), registration.folder, registration.digest
    for path in sorted((HERE / "further").glob("*.toml")):
        yield read_plan(path).jobs(text), path.with_suffix(""), None


# -- runs that are missing ------------------------------------------------------------------------


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
