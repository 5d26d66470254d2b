"""Why a few local heads hold a model: changes at test time, on trained models of the plans.

    mixtures.json    what `measured` says of each model, one a line

The models are those of the plans, by their names; one whose weights a store has not is trained
again there, to the same weights. Their last tokens are predicted at the training length and at 16
times it, with and without each change.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from farfield.theory.answers.number import plural
from farfield.validation.evidence.interventions import (
    MeasuredFile,
    foreign,
    last_losses,
    loss_change,
    position_readout,
    silenced,
    tempered,
)
from farfield.validation.evidence.sentences import Evidence
from farfield.validation.evidence.told import told
from farfield.validation.harness.attention import fused
from farfield.validation.harness.corpus import samples_of
from farfield.validation.harness.experiment import train_and_measure, trained_model
from farfield.validation.harness.measures.perplexity import by_position
from farfield.validation.harness.measures.receptive_fields import attention_receptive_field
from farfield.validation.harness.model import Transformer
from farfield.validation.harness.plan import Job
from farfield.validation.harness.presets import Measurement
from farfield.validation.harness.store import Store
from farfield.validation.reference.committed import Row

MEASURED = MeasuredFile("mixtures.json")
MODELS = {
    "1 head 1/4": (0, 1, 2),
    "nope": (0, 1),
    "4 heads 1/4": (0,),
    "1 head 1/16": (0,),
    "alibi equal 2": (0,),
}
MULTIPLE = 16
TARGETS = 512
POSITIONS = 16
EPS = 0.1  # of the attention fields
LEAST = Measurement(
    lengths=(64,),
    blocks=1,
    last_tokens=1,
    row_length=64,
    row_segments=1,
    rows=1,
    gradient_segments=1,
    gradient_length=64,
)


def local_heads(model: Transformer) -> tuple[int, ...]:
    """The heads whose bias falls, counted from 0; all heads share a formula that is given once."""
    table = model.bias_table(2)
    heads = model.layers[0].heads
    assert table is not None
    falls = (table[:, 1] < table[:, 0]).expand(heads)
    return tuple(np.flatnonzero(falls.numpy()).tolist())


def measured(model: Transformer, text: np.ndarray) -> dict[str, Any]:
    """The prices of changes, and what each kind of head sees.

    Returns:
        `local`: heads with a falling bias. `nats`: last-token loss at the training length and at
        `MULTIPLE` times it. Changes of the loss (`LossChange`): `silence local`, `silence free`,
        `silence one free` at the training length; at the long one the same with `, long`
        behind, `foreign`: everything beyond the training length is another text's, `far`: of all
        the far context, foreign or not, against none, `tempered`: free heads with logits times
        `log i / log L`. `fields`: mean attention field of local and of free heads there.
        `positions`: loss by position there. `readout`: how position can be read.
    """
    short = model.length
    long = short * MULTIPLE
    local = local_heads(model)
    free = tuple(h for h in range(model.layers[0].heads) if h not in local)
    rows = samples_of(text, TARGETS, long)
    near = rows[:, -short - 1 :]
    loss = {"short": last_losses(model, near, fused), "long": last_losses(model, rows, fused)}
    prices = {
        "foreign": loss_change(last_losses(model, foreign(rows, short)), loss["long"]),
        "far": loss_change(loss["long"], loss["short"]),
    }
    changes = {"silence local": local, "silence free": free, "silence one free": free[:1]}
    for name, heads in changes.items():
        if heads:
            for where, given in (("short", near), ("long", rows)):
                changed = last_losses(model, given, silenced(heads))
                prices[f"{name}, {where}"] = loss_change(changed, loss[where])
    if free:
        prices["tempered"] = loss_change(
            last_losses(model, rows, tempered(free, short)), loss["long"]
        )
    fields, _ = attention_receptive_field(model, text, thresholds=(EPS,), length=long)
    by_head = np.asarray(fields[0].heads)
    places = by_position(model, text, long, bins=POSITIONS, blocks=TARGETS // POSITIONS)
    return {
        "local": len(local),
        "nats": {where: float(values.mean()) for where, values in loss.items()},
        "prices": {name: dataclasses.asdict(p) for name, p in prices.items()},
        "fields": {
            kind: float(by_head[:, list(heads)].mean())
            for kind, heads in (("local", local), ("free", free))
            if heads
        },
        "positions": [[p.first, p.last, p.nats] for p in places],
        "readout": dataclasses.asdict(position_readout(model, text, short, long)),
    }


def measure(jobs: Sequence[Job], folder: str) -> Iterator[str]:
    """Measure the models among the jobs that are not in the file, training them where need be."""
    store = Store(folder)

    def found(job: Job) -> Row:
        least = dataclasses.replace(job.configuration, measurement=LEAST, inference=())
        if trained_model(least, store) is None:
            train_and_measure(least, store)
        model = trained_model(least, store)
        assert model is not None
        named = {"label": job.label, "seed": job.configuration.seed}
        return {**named, **measured(model, job.configuration.corpus.held_out)}

    chosen = (job for job in jobs if job.configuration.seed in MODELS.get(job.label, ()))
    yield from MEASURED.extend(chosen, found)


def answer() -> Evidence | None:
    """Why a mixture holds, by the changes that were measured; None before they were."""
    by_label: dict[str, list[Row]] = {}
    for row in MEASURED.rows():
        by_label.setdefault(row["label"], []).append(row)
    if "1 head 1/4" not in by_label:
        return None

    def nats(label: str, name: str) -> float | None:
        found = [r["prices"][name]["nats"] for r in by_label[label] if name in r["prices"]]
        return float(np.mean(found)) if found else None

    def mean(label: str, *path: str) -> float | None:
        found = [r[path[0]][path[1]] for r in by_label[label] if path[1] in r[path[0]]]
        return float(np.mean(found)) if found else None

    one = {
        name: nats("1 head 1/4", name) or 0.0
        for name in ("silence local, long", "silence free, long", "foreign", "far", "tempered")
    }
    read = mean("1 head 1/4", "readout", "beyond") or 0.0
    field = mean("1 head 1/4", "fields", "free") or 0.0
    seeds = len(by_label["1 head 1/4"])
    return told(
        "mixtures",
        sum(map(len, by_label.values())),
        {**one, "read": read, "field": field, "seeds": seeds},
        (
            (
                "model",
                "seeds",
                *(f"{name} [nats]" for name in _COLUMNS),
                "local, free field [keys]",
                "position inside, beyond",
            ),
            *(
                (
                    label,
                    str(len(rows)),
                    *(_signed(nats(label, name)) for name in _COLUMNS.values()),
                    _pair(mean(label, "fields", "local"), mean(label, "fields", "free"), ".0f"),
                    _pair(
                        mean(label, "readout", "inside"), mean(label, "readout", "beyond"), ".2f"
                    ),
                )
                for label, rows in by_label.items()
            ),
        ),
        tuple(f"{row['label']}, seed {row['seed']}" for rows in by_label.values() for row in rows),
        multiple=MULTIPLE,
        models=plural(seeds, "seed"),
    )


_COLUMNS = {
    "local heads silent": "silence local, long",
    "free heads silent": "silence free, long",
    "one free head silent": "silence one free, long",
    "another text beyond": "foreign",
    "far context": "far",
    "sharper logits": "tempered",
}


def _signed(value: float | None) -> str:
    return "none" if value is None else f"{value:+.3f}"


def _pair(one: float | None, other: float | None, spec: str) -> str:
    return ", ".join("none" if value is None else format(value, spec) for value in (one, other))
