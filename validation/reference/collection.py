"""Runs of the plans are made, and finished ones taken into the committed results.

Start `make` as often as there are cores for it: each process takes the next run that none of the
others holds. A run that was killed goes on from its last checkpoint. A committed result is never
replaced; `benchmarks/again.py` makes it once more, beside it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding
from farfield.validation.harness.corpus import Corpus, corpus
from farfield.validation.harness.plan import Job, read_plan
from farfield.validation.harness.store import Store, commit
from farfield.validation.harness.sweep import attempt, finished
from farfield.validation.json_files import recorded, write
from farfield.validation.reference.committed import HERE, Row, place, rounded
from farfield.validation.reference.known_cases import write_outcomes
from farfield.validation.reference.lending import (
    cell_of,
    keep_logits,
    logits_of,
    longer,
    registered_biases,
    rise,
)
from farfield.validation.reference.registration import FIRST, HOLD, REGISTRATIONS

LONG = 100
COMMAND = "python -m farfield.validation.reference make FOLDER"
DRAWS = 2000  # rows drawn for each predicted attention


def planned(text: Corpus) -> Iterator[tuple[Sequence[Job], Path, str | None]]:
    """For each plan of language models its jobs, the folder of their results, and the hash that
    they carry."""
    for registration in (FIRST, *REGISTRATIONS):
        yield registration.plan.jobs(text), registration.folder, registration.digest
    for path in sorted((HERE / "further").glob("*.toml")):
        yield read_plan(path).jobs(text), path.with_suffix(""), None


def order(job: Job) -> tuple[int, ...]:
    """What comes first: first seeds, more steps, more depth, other lengths; more width last."""
    chosen = job.configuration.preset
    return job.configuration.seed, chosen.width, -chosen.steps, -chosen.layers, -chosen.length


def make(folder: str | Path, *, train: bool = True) -> Iterator[str]:
    """Commit the runs that have no committed result yet; a line for each that ended.

    Args:
        folder: of the runs.
        train: whether to make what is missing there, in `order` and then as *Hold and use* has it;
            otherwise finished runs alone are taken.
    """
    store, text = Store(folder), corpus()
    runs = [(job, home, hashed) for jobs, home, hashed in planned(text) for job in jobs]
    runs.sort(key=lambda run: order(run[0]))
    for job, home, hashed in (
        *runs,
        *((j, HOLD.folder, HOLD.digest) for j in HOLD.plan.jobs(text)),
    ):
        path = place(job, home)
        if path.exists() or store.held(job.key) or not (train or finished(job, store)):
            continue
        state, note, result = attempt(dataclasses.replace(job, predictions=hashed), store)
        if result is not None:
            more = (of_task if home == HOLD.folder else of_text)(job, result, store)
            write_result(path, {**condensed(result, job.label, hashed), **rounded(more)})
        if state != "held":
            yield f"{job.name}: {state} {note}".rstrip()
    write_outcomes()


def condensed(result: Row, label: str, hashed: str | None) -> dict[str, Any]:
    """A result as it is committed: rounded, without long formulas and the score curve a layer.

    Args:
        result: of a run.
        label: of its encoding in the plan.
        hashed: the hash of the predictions.
    """
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
            **({"commit": made} if (made := commit()) else {}),
        }
    )


def write_result(path: Path, result: Row) -> None:
    """Write a result as it is committed."""
    text = json.dumps(result, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    path.parent.mkdir(exist_ok=True)
    write(path, (text + "\n").encode())


# -- what is measured beside the registered numbers -----------------------------------------------


def targets(length: int) -> int:
    """How many targets a model of a training length is measured on beside the registered 512."""
    return 4096 if length < 256 else 2048


def of_text(job: Job, result: Row, store: Store) -> Row:
    """The last-token perplexity of a language model on more targets."""
    from farfield.validation.harness.experiment import trained_model
    from farfield.validation.harness.measures.perplexity import perplexities

    configuration = job.configuration
    model = trained_model(configuration, store)
    assert model is not None
    found = {
        str(visible): recorded(
            perplexities(
                model,
                configuration.corpus.held_out,
                configuration.settings.lengths,
                targets(configuration.preset.length),
                last=1,
                visible=visible,
            )
        )
        for visible in configuration.variants
    }
    return {"started": result["training"].get("began", {}), "more_targets": found}


def of_task(job: Job, result: Row, store: Store) -> Row:
    """What a run of *Hold and use* was predicted to attend to; its logits are kept beside it."""
    from farfield.validation.harness.measures.recall import retrieval_logits

    found: dict[str, Any] = {"name": job.name, "family": job.family}
    if job.configuration.task is not None:
        (measured,) = result["measurements"]
        logits = retrieval_logits(store.folder(job.key) / measured["logits"])
        found["predicted"] = predicted(job, store, measured["recall"], logits)
        keep_logits(logits, logits_of(place(job, HOLD.folder)))
    return found


def predicted(job: Job, store: Store, recall: Row, logits: Mapping[str, np.ndarray]) -> list[Row]:
    """The attention of the retrieving head at every point that was asked, from its logits at the
    training length."""
    configuration, head = job.configuration, recall["head"]
    trained = configuration.preset.length
    if len(logits) < 3:
        raise InputError(f"{job.name}: no rows of the training length were asked far enough back")
    seen = logits["others"].shape[1] + 1 + logits["near"].shape[1]
    layers = configuration.layers
    scale = layers[recall["layer"] - 1].mechanism.scale if layers else None
    found: list[Row] = []
    for length in sorted({p["length"] for p in recall["points"]}):
        keys = length - (trained - seen)  # of the query that asks
        far = [p["distance"] for p in recall["points"] if p["length"] == length]
        curve = longer(
            logits,
            _bias(job, store, recall["layer"], head, keys),
            rise(scale, head, seen, keys, trained),
            length=keys,
            distances=far,
            draws=DRAWS,
        )
        assert curve.attention is not None
        found += [
            {"length": length, "distance": d, "attention": a}
            for d, a in zip(far, curve.attention, strict=True)
        ]
    return found


def _bias(job: Job, store: Store, layer: int, head: int, keys: int) -> Any:
    """The bias of a head: its registered formula, or where it is learned its table of some keys."""
    from farfield.validation.harness.experiment import trained_model
    from farfield.validation.harness.model import layer_bias

    cell = cell_of(job.name, job.configuration.seed)
    if (biases := registered_biases(HOLD)[cell]) is not None:
        return encoding(biases[layer - 1][head - 1]).biases[0]
    model = trained_model(job.configuration, store)
    assert model is not None
    table = model.bias_table(job.configuration.longest)
    own = layer_bias(table, layer - 1, job.configuration.preset.heads)
    return own[head - 1 if len(own) > 1 else 0].numpy()[:keys]
