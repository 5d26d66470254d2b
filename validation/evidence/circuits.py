"""How a model finds a far token: which head looks, and which heads tell it where.

    circuits.json    what `measured` says of each model, one a line

The models are the registered runs on induction (`hold_and_use`) that have learned their task. A
head that retrieves must know which token stood before each key. Heads of the first layer supply it:
they look at the previous token. Each head of that layer is silenced in turn, at test time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from farfield.theory.answers.number import plural
from farfield.validation.evidence.interventions import MeasuredFile, silenced
from farfield.validation.evidence.sentences import Evidence
from farfield.validation.evidence.told import told
from farfield.validation.harness.configuration import Configuration
from farfield.validation.harness.corpus import corpus
from farfield.validation.harness.experiment import trained_model
from farfield.validation.harness.measures.recall import asked_at
from farfield.validation.harness.model import Transformer, layer_bias
from farfield.validation.harness.plan import Job
from farfield.validation.harness.store import Store
from farfield.validation.reference.committed import Row, place
from farfield.validation.reference.hold import HOLD, cells

MEASURED = MeasuredFile("circuits.json")
ROWS = 128
MULTIPLES = (1, 4, 16)  # rows in training lengths


def measured(
    model: Transformer, configuration: Configuration, layer: int, head: int
) -> dict[str, Any]:
    """What the retrieving head has, and what it needs.

    Args:
        model: trained on the task of the configuration.
        configuration: of its run.
        layer: of the head that retrieves, counted from 1.
        head: that retrieves, counted from 1.

    Returns:
        `previous`: the mean attention of each head of the first layer on the previous token, at
        the end of rows of the training length. `rows`: for each length that the run asks about,
        the accuracy at the farthest distance; the attention of the retrieving head on the key; its
        `advantage`, the key's content logit less the log-mean-exp of all others, in nats; and
        `silent`, the accuracy without each head of the first layer.
    """
    task, trained = configuration.task, configuration.preset.length
    assert task is not None
    found: dict[str, Any] = {"rows": []}
    longest = max(configuration.asked.lengths)
    for length in (trained * m for m in MULTIPLES if trained * m <= longest):
        far = task.farthest(length)

        def ask(length: int = length, far: int = far, **inner: Any) -> Any:
            random = np.random.default_rng([configuration.asked.seed, length, far])
            return asked_at(model, task, random, ROWS, length, far, **inner)

        right, attention, content, query, key = ask()
        own = content[:, layer - 1, head - 1, : query + 1]
        others = own[:, torch.arange(query + 1) != key]
        first = (silenced([h], len(model.layers)) for h in range(model.layers[0].heads))
        silent = [ask(inner=path)[0] for path in first]
        found["rows"].append(
            {
                "length": length,
                "accuracy": _mean(right),
                "attention": _mean(attention[:, layer - 1, head - 1]),
                "advantage": _mean(own[:, key] - others.logsumexp(-1) + np.log(query)),
                "silent": [_mean(s) for s in silent],
            }
        )
        if length == trained:
            found["previous"] = previous(model, content[:, 0, :, : query + 1])
    return found


def previous(model: Transformer, content: Tensor) -> list[float]:
    """Attention on the previous token by each head of the first layer.

    Args:
        model: it.
        content: logits of the last query, shape (rows, heads, keys).
    """
    keys, mechanism = content.shape[-1], model.layers[0].mechanism
    table = model.bias_table(keys)
    logits = content.clone()
    if table is not None and mechanism.biased:
        logits += layer_bias(table, 0, content.shape[1]).flip(-1)
    if mechanism.window is not None:
        logits[..., : keys - mechanism.window] = -torch.inf
    return logits.softmax(-1)[..., -2].mean(0).tolist()


def _mean(values: Tensor) -> float:
    return values.double().mean().item()


def measure(folder: str) -> Iterator[str]:
    """Measure the runs that have learned their task and are not in the file, from a folder."""
    store = Store(folder)
    learned = {cell.name for cell in cells(HOLD.results(), {}) if cell.learned}

    def found(job: Job) -> Row | None:
        model = trained_model(job.configuration, store)
        if model is None:
            return None
        result = json.loads(place(job, HOLD.folder).read_text(encoding="utf-8"))
        recall = result["measurements"][0]["recall"]
        at = {"layer": recall["layer"], "head": recall["head"]}
        named = {"name": job.name, "label": job.label, **at}
        return {**named, **measured(model, job.configuration, **at)}

    jobs = (job for job in HOLD.plan.jobs(corpus()) if job.name in learned)
    yield from MEASURED.extend(jobs, found)


def feeding(row: Mapping[str, Any]) -> int:
    """The head of the first layer that looks at the previous token most, counted from 0."""
    return int(np.argmax(row["previous"]))


def answer() -> Evidence | None:
    """Which heads find a far token, by the changes that were measured; None before they were."""
    known = {result["name"] for result in HOLD.results()}
    rows = [row for row in MEASURED.rows() if row["name"] in known]
    if not rows:
        return None
    one = [row for row in rows if row["name"].startswith("1 head ")]  # one local head a layer
    home = [row["rows"][0] for row in one]
    fed = [feeding(row) for row in one]
    base = [row["label"].partition(", log")[0] for row in rows]
    scaled = {name for name, row in zip(base, rows, strict=True) if row["label"] != name}
    grown: dict[bool, list[float]] = {True: [], False: []}
    for name, row in zip(base, rows, strict=True):
        if name in scaled and len(row["rows"]) == len(MULTIPLES):
            first, *_, last = (at["advantage"] for at in row["rows"])
            grown[row["label"] != name].append(last - first)
    return told(
        "circuits",
        len(rows),
        {
            "one": len(one),
            "local": sum(h == 0 for h in fed),
            "plain": float(np.mean([at["accuracy"] for at in home])),
            "without": float(np.mean([at["silent"][h] for at, h in zip(home, fed, strict=True)])),
            "without another": float(
                np.mean(
                    [np.delete(at["silent"], h).mean() for at, h in zip(home, fed, strict=True)]
                )
            ),
            "last": sum(row["layer"] > 1 for row in rows),
            "scaled": float(np.mean(grown[True])),
            "unscaled": float(np.mean(grown[False])),
            "price": float(np.log(MULTIPLES[-1])),
        },
        (
            ("model", "head", *_COLUMNS),
            *(
                (
                    row["name"],
                    f"{row['layer']}.{row['head']}",
                    ", ".join(f"{share:.2f}" for share in row["previous"]),
                    *(
                        ", ".join(f"{at[name]:.2f}" for at in row["rows"])
                        for name in ("accuracy", "attention", "advantage")
                    ),
                    ", ".join(f"{share:.2f}" for share in row["rows"][0]["silent"]),
                )
                for row in rows
            ),
        ),
        tuple(row["name"] for row in rows),
        multiple=MULTIPLES[-1],
        models=plural(len(one), "model"),
    )


_COLUMNS = (
    "first layer: on the previous token",
    "accuracy at 1, 4, 16 lengths",
    "attention",
    "advantage [nats]",
    "accuracy without each head of the first layer",
)
