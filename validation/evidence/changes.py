"""What a trained model rests on: by what changes at test time cost, and by its gradients.

    mixtures.json     why a few local heads hold a model, one model a line
    circuits.json     which heads find a far token, one model a line
    gradients.json    shares of the gradient norm in steps of `STEP` tokens, nearest first

`interventions` measures them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from farfield.theory.answers.number import plural
from farfield.validation.evidence.told import Evidence, told
from farfield.validation.harness.plan import Job
from farfield.validation.json_files import write
from farfield.validation.reference.committed import Row, rounded
from farfield.validation.reference.registration import HOLD

MULTIPLE = 16  # of the training length: the long rows
STEP = 4  # tokens
MULTIPLES = (1, 4, MULTIPLE)  # rows of the circuits in training lengths


def file(name: str) -> Path:
    """The committed file of what was measured: `mixtures`, `circuits` or `gradients`."""
    return Path(__file__).with_name(f"{name}.json")


def rows(name: str) -> tuple[Row, ...]:
    """What is committed there, a model each."""
    return tuple(json.loads(file(name).read_text(encoding="utf-8"))) if file(name).exists() else ()


def extend(name: str, jobs: Iterable[Job], measured: Callable[[Job], Row | None]) -> Iterator[str]:
    """Measure the models that are not in a file, and write each behind the others at once.

    Args:
        name: of the file.
        jobs: the runs of the models.
        measured: what to write of one; None where there is no model.

    Returns:
        A line for each that was measured.
    """
    for job in jobs:
        known = rows(name)
        if any(row["key"] == job.key for row in known) or (row := measured(job)) is None:
            continue
        lines = ",\n".join(json.dumps(one) for one in (*known, rounded({"key": job.key, **row})))
        write(file(name), f"[{lines}]\n".encode())
        yield f"{job.name}: measured"


LOCAL = "1 head 1/4"
"""The mixture of which the answer speaks."""
CHANGES = (
    "silence local, long",
    "silence free, long",
    "foreign",
    "far",
    "tempered",
    "silence one free, long",
)


def mixtures() -> Evidence:
    """Why a mixture holds, by the changes that were measured."""
    by_label: dict[str, list[Row]] = {}
    for row in rows("mixtures"):
        by_label.setdefault(row["label"], []).append(row)
    means = {label: _means(found) for label, found in by_label.items()}
    own = {name: value or 0.0 for name, value in means[LOCAL].items()}
    return told(
        "mixtures",
        [f"{row['label']}, seed {row['seed']}" for found in by_label.values() for row in found],
        {
            **{name: own[name] for name in CHANGES[:-1]},
            **{"read": own["beyond"], "field": own["free"], "seeds": len(by_label[LOCAL])},
        },
        [
            {**means[label], "label": label, "seeds": len(found)}
            for label, found in by_label.items()
        ],
        multiple=MULTIPLE,
        models=plural(len(by_label[LOCAL]), "seed"),
    )


def _means(found: Sequence[Row]) -> dict[str, float | None]:
    """Means over seeds of the prices of changes in nats, of the fields of `local` and `free` heads,
    and of how position is read `inside` and `beyond`; None where no seed has it."""
    flat = [
        {name: price["nats"] for name, price in row["prices"].items()}
        | row["fields"]
        | row["readout"]
        for row in found
    ]
    known = {
        name: [row[name] for row in flat if name in row]
        for name in (*CHANGES, "local", "free", "inside", "beyond")
    }
    return {name: float(np.mean(values)) if values else None for name, values in known.items()}


def circuits() -> Evidence | None:
    """Which heads find a far token, by the changes that were measured; None where none of those
    models has a result."""
    known = {result["name"] for result in HOLD.results()}
    found = [row for row in rows("circuits") if row["name"] in known]
    if not found:
        return None
    one = [row for row in found if row["name"].startswith("1 head ")]  # one local head a layer
    fed = [int(np.argmax(row["previous"])) for row in one]  # the head that looks one token back
    silent = [np.roll(row["rows"][0]["silent"], -h) for row, h in zip(one, fed, strict=True)]
    scaled = {row["label"].partition(", log")[0] for row in found if ", log" in row["label"]}
    grown: dict[bool, list[float]] = {True: [], False: []}
    for row in found:
        if row["label"].partition(", log")[0] in scaled and len(row["rows"]) == len(MULTIPLES):
            first, *_, last = (at["advantage"] for at in row["rows"])
            grown[", log" in row["label"]].append(last - first)
    return told(
        "circuits",
        [row["name"] for row in found],
        {
            "one": len(one),
            "local": fed.count(0),
            "plain": float(np.mean([row["rows"][0]["accuracy"] for row in one])),
            "without": float(np.mean([shares[0] for shares in silent])),
            "without another": float(np.mean([shares[1:].mean() for shares in silent])),
            "last": sum(row["layer"] > 1 for row in found),
            "scaled": float(np.mean(grown[True])),
            "unscaled": float(np.mean(grown[False])),
            "price": float(np.log(MULTIPLE)),
        },
        found,
        multiple=MULTIPLE,
        models=plural(len(one), "model"),
    )
