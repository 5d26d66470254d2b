"""What a trained model rests on: by what changes at test time cost, and by its gradients.

    mixtures.json     why a few local heads hold a model, one model a line
    circuits.json     which heads find a far token, one model a line
    gradients.json    shares of the gradient norm in steps of `STEP` tokens, nearest first

`interventions` measures them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
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


def mixtures() -> Evidence | None:
    """Why a mixture holds, by the changes that were measured; None before they were."""
    by_label: dict[str, list[Row]] = {}
    for row in rows("mixtures"):
        prices = {name: price["nats"] for name, price in row["prices"].items()}
        by_label.setdefault(row["label"], []).append({**row, "prices": prices})
    if "1 head 1/4" not in by_label:
        return None

    def mean(label: str, what: str, name: str) -> float | None:
        found = [row[what][name] for row in by_label[label] if name in row[what]]
        return float(np.mean(found)) if found else None

    def shown(spec: str, label: str, what: str, *names: str) -> str:
        means = (mean(label, what, name) for name in names)
        return ", ".join("none" if value is None else format(value, spec) for value in means)

    columns = {
        "local heads silent": "silence local, long",
        "free heads silent": "silence free, long",
        "one free head silent": "silence one free, long",
        "another text beyond": "foreign",
        "far context": "far",
        "sharper logits": "tempered",
    }
    seeds = len(by_label["1 head 1/4"])
    own = {
        **{
            name: mean("1 head 1/4", "prices", name) or 0.0
            for name in columns.values()
            if name != "silence one free, long"
        },
        "read": mean("1 head 1/4", "readout", "beyond") or 0.0,
        "field": mean("1 head 1/4", "fields", "free") or 0.0,
        "seeds": seeds,
    }
    return told(
        "mixtures",
        sum(map(len, by_label.values())),
        own,
        (
            (
                "model",
                "seeds",
                *(f"{name} [nats]" for name in columns),
                "local, free field [keys]",
                "position inside, beyond",
            ),
            *(
                (
                    label,
                    str(len(found)),
                    *(shown("+.3f", label, "prices", name) for name in columns.values()),
                    shown(".0f", label, "fields", "local", "free"),
                    shown(".2f", label, "readout", "inside", "beyond"),
                )
                for label, found in by_label.items()
            ),
        ),
        tuple(f"{row['label']}, seed {row['seed']}" for each in by_label.values() for row in each),
        multiple=MULTIPLE,
        models=plural(seeds, "seed"),
    )


def circuits() -> Evidence | None:
    """Which heads find a far token, by the changes that were measured; None before they were."""
    known = {result["name"] for result in HOLD.results()}
    found = [row for row in rows("circuits") if row["name"] in known]
    if not found:
        return None
    one = [row for row in found if row["name"].startswith("1 head ")]  # one local head a layer
    home = [row["rows"][0] for row in one]
    fed = [int(np.argmax(row["previous"])) for row in one]  # the head that looks one token back
    base = {row["name"]: row["label"].partition(", log")[0] for row in found}
    scaled = {base[row["name"]] for row in found if row["label"] != base[row["name"]]}
    grown: dict[bool, list[float]] = {True: [], False: []}
    for row in found:
        if base[row["name"]] in scaled and len(row["rows"]) == len(MULTIPLES):
            first, *_, last = (at["advantage"] for at in row["rows"])
            grown[row["label"] != base[row["name"]]].append(last - first)
    silent = [(np.array(at["silent"]), h) for at, h in zip(home, fed, strict=True)]
    return told(
        "circuits",
        len(found),
        {
            "one": len(one),
            "local": sum(h == 0 for h in fed),
            "plain": float(np.mean([at["accuracy"] for at in home])),
            "without": float(np.mean([shares[h] for shares, h in silent])),
            "without another": float(
                np.mean([np.delete(shares, h).mean() for shares, h in silent])
            ),
            "last": sum(row["layer"] > 1 for row in found),
            "scaled": float(np.mean(grown[True])),
            "unscaled": float(np.mean(grown[False])),
            "price": float(np.log(MULTIPLE)),
        },
        (
            (
                "model",
                "head",
                "first layer: on the previous token",
                "accuracy at 1, 4, 16 lengths",
                "attention",
                "advantage [nats]",
                "accuracy without each head of the first layer",
            ),
            *(
                (
                    row["name"],
                    f"{row['layer']}.{row['head']}",
                    *(
                        ", ".join(f"{value:.2f}" for value in values)
                        for values in (
                            row["previous"],
                            *(
                                [at[name] for at in row["rows"]]
                                for name in ("accuracy", "attention", "advantage")
                            ),
                            row["rows"][0]["silent"],
                        )
                    ),
                )
                for row in found
            ),
        ),
        tuple(row["name"] for row in found),
        multiple=MULTIPLE,
        models=plural(len(one), "model"),
    )
