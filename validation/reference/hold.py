"""Hold and use: the registered runs on tasks, and the score of what was predicted.

    python -m farfield.validation.reference score           the predictions beside what came out

`README.md` has the rule in words. Two things were predicted before any run, from the formula alone:
the price of each distance, and whether the farthest key is used. When a run has learned its task,
the content logits of its retrieving head at the training length predict the attention on every
longer row; no row longer than those of training enters a prediction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from farfield.validation.reference.committed import Row, rounded
from farfield.validation.reference.lending import LEARNED, at_home, cell_of
from farfield.validation.reference.registration import HOLD
from farfield.validation.reference.table import grouped, results

SHARE = 0.25  # predicted attention from which the farthest key is predicted to be used
RIGHT, NEAR = 0.85, 0.1  # what the registration must reach


# -- the score ------------------------------------------------------------------------------------


def cells(results: Sequence[Row], said: Mapping[str, bool | None]) -> list[dict[str, Any]]:
    """The runs on tasks among results in JSON form, predicted and measured, a row each.

    Args:
        results: committed.
        said: what the formula alone says, by the name of the cell.

    Returns:
        Rows with `name` and `family` of the run; `home` and `trained`, the mean accuracy and the
        mean attention of the retrieving head at the training length; `measured` and `predicted`
        attention and `accuracy` at each point on longer rows; `far`, the accuracy at the farthest
        distance of the longest row, with `decided`, whether that lies two standard errors or more
        from one half, and `far_attention`, as predicted there; `used`, whether the formula alone
        says that the farthest key is used (None: it says nothing).
    """
    found = []
    for result in results:
        if "predicted" not in result:
            continue
        points = result["measurements"][0]["recall"]["points"]
        pairs = list(zip(points, result["predicted"], strict=True))
        longer = [(p, q) for p, q in pairs if p["length"] > result["preset"]["length"]]
        last, last_said = max(pairs, key=lambda pair: (pair[0]["length"], pair[0]["distance"]))
        found.append(
            {
                "name": result["name"],
                "family": result["family"],
                "home": at_home(result, "accuracy"),
                "trained": at_home(result, "attention"),
                "measured": [p["attention"] for p, _ in longer],
                "predicted": [q["attention"] for _, q in longer],
                "accuracy": [p["accuracy"] for p, _ in longer],
                "far": last["accuracy"],
                "decided": abs(last["accuracy"] - 0.5) >= 1 / math.sqrt(last["rows"]),
                "far_attention": last_said["attention"],
                "used": said.get(cell_of(result["name"], result["seed"])),
            }
        )
    return found


def score(found: Sequence[Row]) -> dict[str, Any]:
    """The predictions beside what came out, over the cells that have learned their task.

    Attention: mean over cells of each cell's mean absolute error, and the error of the worst cell
    and of the worst family. Two nulls have theirs: one constant (the mean of all measurements) and
    each model's own attention at the training length. Accuracy at the farthest distance, above
    or below one half: the share that each rule has right. Not registered are the same at every
    point, and over the runs whose accuracy is `decided`.
    `holds` names what the registration must reach.
    """
    known = [c for c in found if c["home"] >= LEARNED]
    unlearned = sorted(c["name"] for c in found if c["home"] < LEARNED)
    counted = {"cells": len(found), "learned": len(known), "not_learned": unlearned}
    if not known:
        return counted
    far = [c["far"] >= 0.5 for c in known]
    mean = float(np.mean([np.mean(c["measured"]) for c in known]))

    def error(said: Callable[[Row], Any], of: Sequence[Row] = known) -> float:
        off = (np.abs(np.subtract(said(c), c["measured"])).mean() for c in of)
        return float(np.mean([*off]))

    errors = {c["name"]: error(lambda c: c["predicted"], [c]) for c in known}
    rules: dict[str, list[bool | None]] = {
        "attention from 1/4": [c["far_attention"] >= SHARE for c in known],
        "attention from 1/2": [c["far_attention"] >= 0.5 for c in known],
        "formula alone": [c["used"] for c in known],
        "always used": [True] * len(known),
        "as at the training length": [c["trained"] >= SHARE for c in known],
    }
    first = rules["attention from 1/4"]
    right = {name: _right([*zip(said, far, strict=True)]) for name, said in rules.items()}
    of = right["attention from 1/4"]
    decided = [pair for *pair, c in zip(first, far, known, strict=True) if c["decided"]]
    points = [
        (attention >= SHARE, accuracy >= 0.5)
        for c in known
        for attention, accuracy in zip(c["predicted"], c["accuracy"], strict=True)
    ]
    return {
        **counted,
        "attention": {
            "error": float(np.mean([*errors.values()])),
            "worst_cell": max(errors.items(), key=lambda item: item[1]),
            "families": {
                f: float(np.mean([errors[c["name"]] for c in known if c["family"] == f]))
                for f in sorted({c["family"] for c in known})
            },
            "constant": error(lambda _: mean),
            "as at the training length": error(lambda c: c["trained"]),
        },
        "used": right,
        "points": _right(points) | {"always": sum(found for _, found in points)},
        "decided": _right(decided) | {"always": sum(found for _, found in decided)},
        "wrong": sorted(
            c["name"] for said, found, c in zip(first, far, known, strict=True) if said != found
        ),
        "holds": {
            "attention": float(np.mean([*errors.values()])) <= NEAR,
            "used": of["right"] >= RIGHT * of["of"],
        },
    }


def _right(pairs: Sequence[Sequence[bool | None]]) -> dict[str, int]:
    """How often what was said is what came out, where something was said."""
    spoken = [said == found for said, found in pairs if said is not None]
    return {"right": sum(spoken), "of": len(spoken)}


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


class Both(NamedTuple):
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
