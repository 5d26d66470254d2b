"""Hold and use: the registered runs on tasks, and the score of what was predicted.

    python -m farfield.validation.reference score           the predictions beside what came out

`README.md` has the rule in words. Two things were predicted before any run, from the formula alone:
the price of each distance, and whether the farthest key is used. When a run has learned its task,
the content logits of its retrieving head at the training length predict the attention on every
longer row; no row longer than those of training enters a prediction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farfield.validation.reference.committed import Row, rounded
from farfield.validation.reference.lending import LEARNED, at_home, cell_of
from farfield.validation.reference.registration import HOLD
from farfield.validation.reference.table import grouped, results

SHARE = 0.25  # predicted attention from which the farthest key is predicted to be used
RIGHT, NEAR = 0.85, 0.1  # what the registration must reach


# -- the score ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TaskRun:
    """One run on a task, predicted and measured.

    Fields:
        name, family: of the run.
        home: mean accuracy at the training length.
        trained: mean attention of the retrieving head there.
        measured, predicted: attention at each point on longer rows.
        accuracy: there.
        far: accuracy at the farthest distance of the longest row.
        decided: whether that lies two standard errors or more from one half.
        far_attention: the predicted attention there.
        used: whether the formula alone says that the farthest key is used; None: it says nothing.
    """

    name: str
    family: str
    home: float
    trained: float
    measured: tuple[float, ...]
    predicted: tuple[float, ...]
    accuracy: tuple[float, ...]
    far: float
    decided: bool
    far_attention: float
    used: bool | None = None

    @property
    def learned(self) -> bool:
        """Whether the model has learned its task at the training length."""
        return self.home >= LEARNED

    def error(self, said: float | None = None) -> float:
        """Mean absolute error of the predicted attention, or of a constant."""
        assumed = self.predicted if said is None else (said,) * len(self.measured)
        return float(np.abs(np.subtract(assumed, self.measured)).mean())


def cells(results: Sequence[Row], said: Mapping[str, bool | None]) -> list[TaskRun]:
    """The runs on tasks among results in JSON form.

    Args:
        results: committed.
        said: what the formula alone says, by the name of the cell.
    """
    found = []
    for result in results:
        if "predicted" not in result:
            continue
        points = result["measurements"][0]["recall"]["points"]
        pairs = list(zip(points, result["predicted"], strict=True))
        length = result["preset"]["length"]
        longer = [(p, q) for p, q in pairs if p["length"] > length]
        last, last_said = max(pairs, key=lambda pair: (pair[0]["length"], pair[0]["distance"]))
        found.append(
            TaskRun(
                result["name"],
                result["family"],
                at_home(result, "accuracy"),
                at_home(result, "attention"),
                tuple(p["attention"] for p, _ in longer),
                tuple(q["attention"] for _, q in longer),
                tuple(p["accuracy"] for p, _ in longer),
                last["accuracy"],
                abs(last["accuracy"] - 0.5) >= 1 / math.sqrt(last["rows"]),
                last_said["attention"],
                said.get(cell_of(result["name"], result["seed"])),
            )
        )
    return found


def score(found: Sequence[TaskRun]) -> dict[str, Any]:
    """The predictions beside what came out, over the cells that have learned their task.

    Attention: mean over cells of each cell's mean absolute error, and the error of the worst cell
    and of the worst family. Two nulls have theirs: one constant (the mean of all measurements) and
    each model's own attention at the training length. Accuracy at the farthest distance, above
    or below one half: the share that each rule has right. Not registered are the same at every
    point, and over the runs whose accuracy is `decided`.
    `holds` names what the registration must reach.
    """
    known = [c for c in found if c.learned]
    counted = {"cells": len(found), "learned": len(known)}
    unlearned = sorted(c.name for c in found if not c.learned)
    if not known:
        return {**counted, "not_learned": unlearned}
    mean = float(np.mean([np.mean(c.measured) for c in known]))
    errors = {c.name: c.error() for c in known}
    families = {
        f: float(np.mean([c.error() for c in known if c.family == f]))
        for f in sorted({c.family for c in known})
    }
    rules = {
        "attention from 1/4": [(c.far_attention >= SHARE, c) for c in known],
        "attention from 1/2": [(c.far_attention >= 0.5, c) for c in known],
        "formula alone": [(c.used, c) for c in known if c.used is not None],
        "always used": [(True, c) for c in known],
        "as at the training length": [(c.trained >= SHARE, c) for c in known],
    }
    points = [
        (attention >= SHARE, accuracy >= 0.5)
        for c in known
        for attention, accuracy in zip(c.predicted, c.accuracy, strict=True)
    ]
    decided = [(yes, c.far >= 0.5) for yes, c in rules["attention from 1/4"] if c.decided]
    right = {
        name: _right([(yes, c.far >= 0.5) for yes, c in pairs]) for name, pairs in rules.items()
    }
    first = right["attention from 1/4"]
    error = float(np.mean([*errors.values()]))
    return {
        **counted,
        "not_learned": unlearned,
        "attention": {
            "error": error,
            "worst_cell": max(errors.items(), key=lambda item: item[1]),
            "families": families,
            "constant": float(np.mean([c.error(mean) for c in known])),
            "as at the training length": float(np.mean([c.error(c.trained) for c in known])),
        },
        "used": right,
        "points": _right(points) | {"always": sum(found for _, found in points)},
        "decided": _right(decided) | {"always": sum(found for _, found in decided)},
        "wrong": sorted(c.name for yes, c in rules["attention from 1/4"] if yes != (c.far >= 0.5)),
        "holds": {
            "attention": error <= NEAR,
            "used": first["right"] >= RIGHT * first["of"],
        },
    }


def _right(pairs: Sequence[tuple[bool | None, bool]]) -> dict[str, int]:
    """How often the prediction is the result."""
    return {"right": sum(said == found for said, found in pairs), "of": len(pairs)}


def scored() -> dict[str, Any]:
    """The score of the committed results, with the loss of the language models beside it."""
    said = {cell["cell"]: cell for cell in HOLD.predictions["cells"]}
    found = score(cells(HOLD.results(), {name: cell.get("used") for name, cell in said.items()}))
    losses = {}
    for result in HOLD.results():
        name = cell_of(result["name"], result["seed"])
        if "log_ratio" in said.get(name, {}):
            last = [p for m in result["measurements"] for p in m["perplexity"]]
            ratios = [float(p["ratio"]) for p in last if p["protocol"] == "last token"]
            losses[result["name"]] = {
                "log_ratio": math.log(max(ratios)),
                "said": said[name]["log_ratio"],
            }
    return rounded({**found, "loss": losses})


# -- both at once ---------------------------------------------------------------------------------

SAME_BIAS = {
    "no bias": "nope",
    "ALiBi": "alibi",
    "KERPLE": "kerple_log",
    "T5": "t5",
    "all local 1/2": "8 heads 1/2",
    "all local 1/4": "alibi equal 2",
}
"""What the language models call a cell's biases, where the two registrations differ."""


@dataclass(frozen=True)
class Both:
    """What a mechanism does far beyond the training length of 64: how far its models hold their
    loss, and how well they use keys beyond that length.

    Fields:
        label: of the cell.
        seeds: how many models of the task.
        learned: whether they have learned their task at the training length.
        used: their mean accuracy on the longest row, at the distances beyond the training length.
        ratio: of perplexity on the longest row, of language models with the same biases; None
            where none was measured.
    """

    label: str
    seeds: int
    learned: bool
    used: float
    ratio: float | None


def both() -> tuple[Both, ...]:
    """Every mechanism whose models were trained on the induction task in rows of 64: those of 2
    layers, and deeper ones where language models have the same biases."""
    own = [
        {**result, "name": result["encoding"]["label"].removeprefix("English: ")}
        for result in HOLD.results()
        if "predicted" not in result
    ]
    texts = grouped([*results(), *results("heads_and_shapes"), *own])
    models = {(m.name, m.layers): m for m in texts if m.trained == 64}
    tasks: dict[str, list[Row]] = {}
    for result in HOLD.results():
        if result["text"].get("kind") == "induction" and result["preset"]["length"] == 64:
            tasks.setdefault(cell_of(result["name"], result["seed"]), []).append(result)
    found = []
    for cell, group in tasks.items():
        label = group[0]["encoding"]["label"]
        text = models.get((SAME_BIAS.get(label, label), 4))
        points = [p for run in group for p in run["measurements"][0]["recall"]["points"]]
        longest = max(p["length"] for p in points)
        far = [p["accuracy"] for p in points if p["length"] == longest and p["distance"] > 64]
        learned = float(np.mean([at_home(run, "accuracy") for run in group])) >= LEARNED
        ratio = text.last.get(longest) if text else None
        if group[0]["preset"]["layers"] == 2 or ratio is not None:
            name, used = cell.replace(", 64", "", 1), float(np.mean(far))
            found.append(Both(name, len(group), learned, used, ratio))
    return tuple(found)
