"""The first registration, scored as a referee would: unseen cases, each model once, null answers.

Its predictions were hashed before the first run, but not blind: models of the same configuration
had been piloted with most of its encodings. `UNSEEN` names the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from farfield.numerics.finite_length import head_weights
from farfield.validation.evidence.sentences import Evidence
from farfield.validation.evidence.told import told
from farfield.validation.reference.committed import Row
from farfield.validation.reference.observations import assumed_bias, family
from farfield.validation.reference.table import Model
from farfield.validation.reference.table import results as committed_results
from farfield.validation.repeated import interval

UNSEEN = (
    "kerple_power",
    "window 32",
    "alibi equal 2",
    "alibi equal 4",
    "alibi equal 6",
    "sinusoidal + BCA",
)
"""Encodings of which no model had been trained when the predictions were made, at `PILOTED`."""
PILOTED = 64  # tokens: pilots had no other training length
LAYERED = "layered, as registered"
PLAIN_ROW = "TRF(1/100) on that row, mean of heads"
SATURATED = 0.9  # of the row: a field beyond is cut by it


def referee(found: Sequence[Model]) -> Iterator[Evidence]:
    """Yield the answers that qualify the others, at the training length of these observations."""
    results = committed_results()
    yield verdicts(found)
    yield fields(found)
    yield from _paired(found, results)
    yield from _spread(found, results)


def blind(o: Model) -> bool:
    """Whether no model of the kind had been trained when its prediction was made."""
    return o.trained != PILOTED or o.name in UNSEEN


def right(o: Model) -> bool:
    """Whether the verdict said what happened, one-sided, last token."""
    return bool(o.holds() == o.prediction["extrapolates"])


def verdicts(found: Sequence[Model]) -> Evidence:
    """The verdict beside a constant answer; which rows were blind, which are one model."""
    results = committed_results()
    kept = [o.holds() for o in found]
    null = max(sum(kept), len(kept) - sum(kept))
    additive = [o for o in found if o.biased]
    among = [k for o, k in zip(found, kept, strict=True) if o.biased]
    unseen = [o for o in found if blind(o)]
    models = {
        frozenset(
            run["training"]["weights_sha256"]
            for run in results
            if run["encoding"]["label"] == o.label and run["preset"]["length"] == o.trained
        )
        for o in found
    }
    said = {
        (
            o.prediction["extrapolates"],
            round(o.prediction["layered"]["beyond"], 6),
            o.prediction["layered"]["tokens"],
        )
        for o in found
    }
    numbers = {
        "right": sum(map(right, found)),
        "null": null,
        "additive": sum(map(right, additive)),
        "additive null": max(sum(among), len(among) - sum(among)),
        "unseen": sum(map(right, unseen)),
        "models": len(models),
        "values": len(said),
    }
    return told(
        "referee verdicts",
        len(found),
        numbers,
        (),
        tuple(o.runs for o in found),
        additive=len(additive),
        unseen=len(unseen),
    )


def fields(found: Sequence[Model]) -> Evidence:
    """Predictions of the gradient field, all on the row that it was measured on."""
    biased = [o for o in found if o.biased]
    row = max(n for o in found for n in o.last)
    layers = found[0].layers
    kernels = [head_weights(assumed_bias(o.label, o.trained).bias(np.arange(row))) for o in biased]
    measured = np.array([o.gradient for o in biased])
    unsaturated = measured < SATURATED * row

    def field(kernel: np.ndarray) -> float:
        return float(1 + np.searchsorted(kernel.cumsum(), 0.99))

    heads = np.array([np.mean([field(k) for k in each]) for each in kernels])
    predictors: Mapping[str, np.ndarray] = {
        LAYERED: np.array([float(o.prediction["layered"]["tokens"]) for o in biased]),
        PLAIN_ROW: heads,
        "the same of the mean kernel": np.array([field(k.mean(axis=0)) for k in kernels]),
        "R (TRF - 1) + 1": np.minimum(row, layers * (heads - 1) + 1),
        "the best constant": np.full(len(biased), float(np.median(measured))),
    }

    def factor(predicted: np.ndarray, of: np.ndarray) -> float:
        return float(np.exp(np.abs(np.log(predicted[of] / measured[of])).mean()))

    every = np.ones(len(biased), bool)
    unseen = np.array([blind(o) for o in biased])
    numbers: dict[str, Any] = {k: factor(v, every) for k, v in predictors.items()}
    ours = predictors[LAYERED]
    numbers |= {"unsaturated": factor(ours, unsaturated), "unsaturated n": int(unsaturated.sum())}
    if unseen.any() and not unseen.all():
        numbers |= {"seen": factor(ours, ~unseen), "unseen": factor(ours, unseen)}
    loss = [math.log(o.last[row]) for o in biased]
    beyond = [o.prediction["layered"]["beyond"] for o in biased]
    low, high = _rank_interval(beyond, loss, [family(o.label) for o in biased])
    numbers["families"] = (low, high)
    return told(
        "referee fields",
        len(biased),
        numbers,
        (
            ("prediction of the gradient ERF", "factor off"),
            *((k, f"{factor(v, every):.2f}") for k, v in predictors.items()),
        ),
        tuple(o.runs for o in biased),
        row=row,
        layered=numbers[LAYERED],
        plain=numbers[PLAIN_ROW],
        saturated=len(biased) - numbers["unsaturated n"],
        share=SATURATED,
        blind=int(unseen.sum()),
    )


def _rank_interval(
    first: Sequence[float], second: Sequence[float], names: Sequence[str]
) -> tuple[float, float]:
    """The 95 % interval of Spearman's rho when whole families are drawn, with replacement."""
    from scipy import stats

    groups = [[k for k, name in enumerate(names) if name == f] for f in dict.fromkeys(names)]
    pair = np.array([first, second])

    def rho(drawn: np.ndarray) -> float:  # not a number where one family alone is drawn
        ranks = stats.rankdata(pair[:, [k for g in drawn for k in groups[g]]], axis=1)
        return float(np.corrcoef(ranks)[0, 1])

    return interval(rho, np.arange(len(groups)))


def _paired(found: Sequence[Model], results: Sequence[Row]) -> Iterator[Evidence]:
    known: dict[tuple[str, bool], dict[int, float]] = {}
    for run in results:
        if run["preset"]["length"] == found[0].trained:
            for m in run["measurements"]:
                if (value := m.get("scores", {}).get("resolution")) is not None:
                    name = run["encoding"]["label"], m["inference"]["bca"] is not None
                    known.setdefault(name, {})[run["seed"]] = value
    rows, lower = [], {}
    for masked, mask in ((False, "causal"), (True, "with BCA")):
        rope, xpos = (known.get((label, masked), {}) for label in ("rope", "xpos"))
        shared = sorted(rope.keys() & xpos.keys())
        rows += [(mask, str(s), f"{rope[s]:.3g}", f"{xpos[s]:.3g}") for s in shared]
        lower[mask] = (sum(xpos[s] < rope[s] for s in shared), len(shared))
    if rows:
        yield told("referee paired", len(rows), lower, (("mask", "seed", "RoPE", "xPos"), *rows))


def _spread(found: Sequence[Model], results: Sequence[Row]) -> Iterator[Evidence]:
    seeds = {
        o.label: sorted(
            run["measurements"][0]["gradient"]["tokens"]
            for run in results
            if run["encoding"]["label"] == o.label and run["preset"]["length"] == o.trained
        )
        for o in found
        if not o.mask
    }
    if wide := {k: v for k, v in seeds.items() if len(v) > 1 and v[-1] > 2 * v[0]}:
        yield told("referee spread", len(wide), wide)
