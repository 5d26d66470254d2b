"""The layered receptive field as a prediction of the gradient ERF, without training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from farfield.numerics.depth import layered_quantile, layered_receptive_field
from farfield.numerics.finite_length import head_weights
from farfield.theory.encodings import encoding
from farfield.validation.evidence.sentences import Evidence
from farfield.validation.evidence.told import told
from farfield.validation.reference.observations import (
    PLAIN,
    assumed_bias,
    subject_of,
)
from farfield.validation.reference.predictions import MIXING
from farfield.validation.reference.table import Model
from farfield.validation.repeated import rank_correlation

SPLITS = 400  # into halves: more change no printed digit
MIXINGS = tuple(k / 20 for k in range(1, 20))
NOISES = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
DRAWS = 64  # of the normal noise, whose mean kernel is taken
REGISTERED, REACH = "registered mixing 0.4", "R (TRF - 1) + 1, as wR for windows"
MIXED, NOISY = "fitted mixing", "fitted mixing and content noise"


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
    bias = assumed_bias(label, length).bias(np.arange(row))
    if noise == 0:
        return np.asarray(head_weights(bias).mean(axis=0))
    random = np.random.default_rng(0)
    drawn = (bias + noise * random.standard_normal(bias.shape) for _ in range(DRAWS))
    return np.asarray(sum(head_weights(noisy).mean(axis=0) for noisy in drawn) / DRAWS)


def depth(found: Sequence[Model]) -> Iterator[Evidence]:
    """The convolution model of depth: as registered, with a fitted mixing, and with noise."""
    biased = [o for o in found if o.biased]
    row = max(n for o in found for n in o.last)
    layers, length = found[0].layers, found[0].trained
    measured = np.array([o.gradient for o in biased])
    trf = np.array([o.registered("row_trf") for o in biased])
    fixed = {
        REGISTERED: np.array([float(o.prediction["layered"]["tokens"]) for o in biased]),
        PLAIN: trf,
        REACH: np.minimum(row, layers * (trf - 1) + 1),
    }
    grid = {
        (a, s): np.array(
            [_layered(o.label, length, row, layers, a, s) for o in biased], dtype=float
        )
        for a in MIXINGS
        for s in NOISES
    }
    fitted = {MIXED: {k: v for k, v in grid.items() if k[1] == 0}, NOISY: grid}

    def error(predicted: np.ndarray, of: Any = slice(None)) -> float:
        return float(np.abs(np.log2(predicted[of] / measured[of])).mean())

    def best(name: str, of: Any = slice(None)) -> tuple[float, float]:
        return min(fitted[name], key=lambda k: error(fitted[name][k], of))

    random = np.random.default_rng(0)
    scores: dict[str, list[float]] = {name: [] for name in (REGISTERED, MIXED, NOISY, PLAIN, REACH)}
    chosen: dict[str, list[tuple[float, float]]] = {name: [] for name in fitted}
    for _ in range(SPLITS):
        fit, judge = np.split(random.permutation(len(biased)), [len(biased) // 2])
        for name in fitted:
            chosen[name].append(best(name, fit))
            scores[name].append(error(fitted[name][chosen[name][-1]], judge))
        for name, predicted in fixed.items():
            scores[name].append(error(predicted, judge))
    final = fixed | {name: fitted[name][best(name)] for name in fitted}
    numbers: dict[str, Any] = {
        name: {
            "factor": 2 ** float(np.mean(values)),
            "interval": tuple(2 ** float(q) for q in np.quantile(values, (0.025, 0.975))),
            "rho": rank_correlation(final[name].tolist(), measured.tolist()).rho,
        }
        for name, values in scores.items()
    }
    header = ("prediction of the gradient ERF", "factor off, mean over splits")
    rows = (
        (name, f"{v['factor']:.2f}", "{:.2f} to {:.2f}".format(*v["interval"]), f"{v['rho']:.2f}")
        for name, v in numbers.items()
    )
    medians = {k: tuple(float(x) for x in np.median(v, axis=0)) for k, v in chosen.items()}
    yield told(
        "depth",
        len(biased),
        numbers | {"fitted": medians},
        ((*header, "95 % of the splits", "Spearman's rho, all"), *rows),
        tuple(o.runs for o in biased),
        registered=numbers[REGISTERED],
        plain=numbers[PLAIN],
        splits=SPLITS,
    )
    said = {
        o.label: tuple(map(float, values))
        for o, *values in zip(biased, final[REGISTERED], final[NOISY], measured, strict=True)
    }
    worst = sorted(biased, key=lambda o: -abs(math.log(said[o.label][0] / said[o.label][2])))
    yield told(
        "depth fails",
        len(biased),
        said,
        (
            ("encoding", "registered", "with learned values", "with content noise", "measured"),
            *((o.label, *_tokens(o, row, *said[o.label])) for o in worst),
        ),
        tuple(o.runs for o in biased),
        worst=[(o.label, said[o.label][0], said[o.label][2]) for o in worst[:3]],
    )


def _tokens(o: Model, row: int, registered: float, noisy: float, found: float) -> Iterator[str]:
    """Tokens as predicted, with the learned values where there are any, with noise, as measured."""
    for value in (registered, _trained(o, row), noisy, found):
        yield "-" if value is None else f"{value:.0f}"
