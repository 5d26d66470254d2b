"""The layered receptive field as a prediction of the gradient ERF, without training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from farfield.numerics.depth import layered_quantile, layered_receptive_field
from farfield.theory.encodings import encoding
from farfield.theory.values import tabulate
from farfield.validation.evidence.told import told
from farfield.validation.harness.measures.evidence import Evidence
from farfield.validation.harness.measures.statistics import rank_correlation
from farfield.validation.reference.observations import (
    PLAIN,
    assumed_bias,
    subject_of,
)
from farfield.validation.reference.predictions import MIXING
from farfield.validation.reference.table import Model

SPLITS = 400  # into halves: more change no printed digit
MIXINGS = tuple(k / 20 for k in range(1, 20))
NOISES = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
DRAWS = 64  # of the normal noise, whose mean kernel is taken
REGISTERED = "registered mixing 0.4"


@lru_cache(maxsize=64)
def _weights(label: str, length: int, row: int) -> np.ndarray:
    """The bias of the plan's encoding by head and distance; shape (heads, row)."""
    return np.array([tabulate(b, np.arange(row)) for b in assumed_bias(label, length).biases])


def _trained(o: Model, row: int) -> float | None:
    """The layered prediction with the values that each seed learned, where it did; the mean."""
    if not o.learned:
        return None
    subject = subject_of(o.label, o.trained)
    found = (encoding(**subject.options, **values) for values in o.learned)
    fields = [layered_receptive_field(e, o.layers, mixing=MIXING, length=row) for e in found]
    return float(np.mean([f.tokens for f in fields]))


@lru_cache(maxsize=4096)
def _layered(label: str, length: int, row: int, layers: int, mixing: float, noise: float) -> int:
    """Quantile 0.99 of the convolution model; with noise, of softmax(bias + noise z), z normal."""
    return layered_quantile(_kernel(label, length, row, noise), layers, mixing, 0.99)


@lru_cache(maxsize=512)
def _kernel(label: str, length: int, row: int, noise: float) -> np.ndarray:
    bias = _weights(label, length, row)
    if noise == 0:
        weights = np.exp(bias - bias.max(1, keepdims=True))
        return np.asarray((weights / weights.sum(1, keepdims=True)).mean(0))
    random = np.random.default_rng(0)
    total = np.zeros(row)
    for _ in range(DRAWS):
        noisy = bias + noise * random.standard_normal(bias.shape)
        weights = np.exp(noisy - noisy.max(1, keepdims=True))
        total += (weights / weights.sum(1, keepdims=True)).mean(0)
    return np.asarray(total / DRAWS)


def depth(found: Sequence[Model]) -> Iterator[Evidence]:
    """The convolution model of depth: as registered, with a fitted mixing, and with noise."""
    biased = [o for o in found if o.biased]
    row = max(n for o in found for n in o.last)
    layers, length = found[0].layers, found[0].trained
    measured = np.array([o.gradient for o in biased])

    def model(mixing: float, noise: float) -> np.ndarray:
        return np.array(
            [_layered(o.label, length, row, layers, mixing, noise) for o in biased], dtype=float
        )

    registered = np.array([float(o.prediction["layered"]["tokens"]) for o in biased])
    trf = np.array([o.registered("row_trf") for o in biased])
    reach = np.minimum(row, layers * (trf - 1) + 1)
    grid = {(a, s): model(a, s) for a in MIXINGS for s in NOISES}
    plain = {k: v for k, v in grid.items() if k[1] == 0}

    def error(predicted: np.ndarray, of: np.ndarray) -> float:
        return float(np.abs(np.log2(predicted[of] / measured[of])).mean())

    random = np.random.default_rng(0)
    scores: dict[str, list[float]] = {
        name: []
        for name in (
            REGISTERED,
            "fitted mixing",
            "fitted mixing and content noise",
            PLAIN,
            "R (TRF - 1) + 1, as wR for windows",
        )
    }
    chosen: dict[str, list[tuple[float, float]]] = {
        "fitted mixing": [],
        "fitted mixing and content noise": [],
    }
    for _ in range(SPLITS):
        order = random.permutation(len(biased))
        fit, judge = order[: len(order) // 2], order[len(order) // 2 :]
        for name, models in (("fitted mixing", plain), ("fitted mixing and content noise", grid)):
            best = min(models, key=lambda k: error(models[k], fit))
            chosen[name].append(best)
            scores[name].append(error(models[best], judge))
        scores[REGISTERED].append(error(registered, judge))
        scores[PLAIN].append(error(trf, judge))
        scores["R (TRF - 1) + 1, as wR for windows"].append(error(reach, judge))
    numbers: dict[str, Any] = {}
    rows: list[tuple[str, ...]] = [
        (
            "prediction of the gradient ERF",
            "factor off, mean over splits",
            "95 % of the splits",
            "Spearman's rho, all",
        )
    ]
    whole = np.arange(len(biased))
    final = {
        REGISTERED: registered,
        "fitted mixing": plain[min(plain, key=lambda k: error(plain[k], whole))],
        "fitted mixing and content noise": grid[min(grid, key=lambda k: error(grid[k], whole))],
        PLAIN: trf,
        "R (TRF - 1) + 1, as wR for windows": reach,
    }
    for name, values in scores.items():
        middle = 2 ** float(np.mean(values))
        low, high = (2 ** float(q) for q in np.quantile(values, (0.025, 0.975)))
        rho = rank_correlation(final[name].tolist(), measured.tolist()).rho
        numbers[name] = {"factor": middle, "interval": (low, high), "rho": rho}
        rows.append((name, f"{middle:.2f}", f"{low:.2f} to {high:.2f}", f"{rho:.2f}"))
    medians = {k: tuple(float(x) for x in np.median(v, axis=0)) for k, v in chosen.items()}
    yield told(
        "depth",
        len(biased),
        numbers | {"fitted": medians},
        tuple(rows),
        tuple(o.runs for o in biased),
        registered=numbers[REGISTERED],
        plain=numbers[PLAIN],
        splits=SPLITS,
    )
    noisy = final["fitted mixing and content noise"]
    worst = sorted(range(len(biased)), key=lambda k: -abs(math.log(registered[k] / measured[k])))
    after = [_trained(o, row) for o in biased]
    table = (
        ("encoding", "registered", "with learned values", "with content noise", "measured"),
        *(
            (
                biased[k].label,
                f"{registered[k]:.0f}",
                "-" if after[k] is None else f"{after[k]:.0f}",
                f"{noisy[k]:.0f}",
                f"{measured[k]:.0f}",
            )
            for k in worst
        ),
    )
    yield told(
        "depth fails",
        len(biased),
        {
            o.label: (float(registered[k]), float(noisy[k]), float(measured[k]))
            for k, o in enumerate(biased)
        },
        table,
        tuple(o.runs for o in biased),
        worst=[(biased[k].label, registered[k], measured[k]) for k in worst[:3]],
    )
