"""Receptive fields and resolutions of trained models beside those that the theory predicts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from farfield.numerics.depth import layered_quantile, layered_receptive_field
from farfield.numerics.finite_length import head_weights
from farfield.numerics.resolution import attention_resolution
from farfield.theory.encodings import encoding
from farfield.validation.evidence.told import Evidence, told
from farfield.validation.reference.first import (
    MIXING,
    PLAIN,
    assumed_bias,
    blind,
    family,
    longest,
    subject_of,
)
from farfield.validation.reference.table import Model, results
from farfield.validation.repeated import interval, rank_correlation

LAYERED = "layered, as registered"
PLAIN_ROW = "TRF(1/100) on that row, mean of heads"
SATURATED = 0.9  # of the row: a field beyond is cut by it
SPLITS = 400  # into halves: more change no printed digit
MIXINGS = tuple(k / 20 for k in range(1, 20))
NOISES = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
DRAWS = 64  # of the normal noise, whose mean kernel is taken
REGISTERED, REACH = "registered mixing 0.4", "R (TRF - 1) + 1, as wR for windows"
MIXED, NOISY = "fitted mixing", "fitted mixing and content noise"
ALL = "all with an additive bias"


def receptive_fields(
    found: Sequence[Model], groups: Mapping[str, Sequence[str]]
) -> Iterator[Evidence]:
    """TRF against the attention ERF and the gradient ERF, across encodings and head by head.

    Args:
        found: the models.
        groups: labels of encodings that a paper shows together, by name.
    """
    biased = [o for o in found if o.biased]
    every = {ALL: biased} | {k: [o for o in biased if o.label in v] for k, v in groups.items()}
    ranked = {
        (group, trf, erf): rank_correlation(values, target)
        for group, members in every.items()
        if len(members) >= 4
        for eps in (0.1, 0.05, 0.01)
        for trf, kind in (
            (f"finite-row TRF({eps:g}), registered", "row_trf"),
            (f"TRF({eps:g}) of the series", "trf"),
        )
        if len(set(values := [o.registered(kind, f"1/{round(1 / eps)}") for o in members])) > 1
        for erf, target in (
            (f"attention ERF({eps:g})", [o.erf[eps] for o in members]),
            ("gradient ERF(0.99)", [o.gradient for o in members]),
        )
    }
    yield told(
        "receptive fields",
        biased,
        {"; ".join(name): r.spearman for name, r in ranked.items()},
        [(*name, r) for name, r in ranked.items()],
        first=f"{ALL}; finite-row TRF(0.01), registered; ",
        layers=found[0].layers,
    )
    yield _heads(biased)


def _heads(biased: Sequence[Model]) -> Evidence:
    eps = 0.05
    grids = {}
    for o in biased:
        erf = np.atleast_2d(o.heads["heads"][eps])
        grids[o.label] = np.array([np.broadcast_to(o.heads["trf_heads"][eps], erf.shape), erf])
    pairs = {label: grid.reshape(2, -1).tolist() for label, grid in grids.items()}
    within = {k: rank_correlation(*pair) for k, pair in pairs.items() if len(set(pair[0])) > 2}
    trf, erf = np.concatenate([np.array(pair) for pair in pairs.values()], axis=1).tolist()
    r = rank_correlation(trf, erf, resamples=500)
    numbers = {"all": r.spearman, **{label: v.rho for label, v in within.items()}}
    return told("heads", biased, numbers, within.items(), n=r.n, eps=eps, rank=r)


def resolutions(found: Sequence[Model]) -> Iterator[Evidence]:
    """Measured R(s) of trained models beside the theory's, with and without BCA."""
    length = 256  # of the measured scores
    measured = {o.name: o.resolution for o in found if o.resolution is not None}
    theory = {
        o.name: value
        for o in found
        if o.biased and o.name in measured
        for value in [attention_resolution(assumed_bias(o.label, o.trained), length).value]
        if value is not None
    }
    if len(theory) < 4:
        return
    r = rank_correlation([*theory.values()], [measured[k] for k in theory])
    known = {"n": r.n, "rank": r, "length": length, "theory": theory, "reach": longest(found)}
    rows = [o for o in found if o.name in measured]
    yield told("resolution", found, {"rho": r.spearman, "measured": measured}, rows, **known)


def fields(found: Sequence[Model]) -> Evidence:
    """Predictions of the gradient field, all on the row that it was measured on."""
    biased, row = [o for o in found if o.biased], longest(found)
    kernels = [head_weights(assumed_bias(o.label, o.trained).bias(np.arange(row))) for o in biased]
    measured = np.array([o.gradient for o in biased])
    every, unsaturated = np.ones(len(biased), bool), measured < SATURATED * row
    unseen = np.array([blind(o) for o in biased])

    def field(kernel: np.ndarray) -> float:
        return float(1 + np.searchsorted(kernel.cumsum(), 0.99))

    def factor(predicted: np.ndarray, of: np.ndarray = every) -> float:
        return float(np.exp(np.abs(np.log(predicted[of] / measured[of])).mean()))

    heads = np.array([np.mean([field(k) for k in each]) for each in kernels])
    ours = np.array([float(o.prediction["layered"]["tokens"]) for o in biased])
    predictors: Mapping[str, np.ndarray] = {
        LAYERED: ours,
        PLAIN_ROW: heads,
        "the same of the mean kernel": np.array([field(k.mean(axis=0)) for k in kernels]),
        "R (TRF - 1) + 1": np.minimum(row, found[0].layers * (heads - 1) + 1),
        "the best constant": np.full(len(biased), float(np.median(measured))),
    }
    numbers: dict[str, Any] = {k: factor(v) for k, v in predictors.items()}
    numbers |= {"unsaturated": factor(ours, unsaturated), "unsaturated n": int(unsaturated.sum())}
    if unseen.any() and not unseen.all():
        numbers |= {"seen": factor(ours, ~unseen), "unseen": factor(ours, unseen)}
    numbers["families"] = _rank_interval(biased, row)
    return told(
        "referee fields",
        biased,
        numbers,
        [(name, numbers[name]) for name in predictors],
        longest=row,
        layered=numbers[LAYERED],
        plain=numbers[PLAIN_ROW],
        saturated=len(biased) - numbers["unsaturated n"],
        share=SATURATED,
        blind=int(unseen.sum()),
    )


def _rank_interval(biased: Sequence[Model], row: int) -> tuple[float, float]:
    """The 95 % interval of Spearman's rho of the layered mass beyond the training length with the
    loss, when whole families are drawn, with replacement."""
    from scipy import stats

    names = [family(o.label) for o in biased]
    groups = [[k for k, name in enumerate(names) if name == f] for f in dict.fromkeys(names)]
    pair = np.array([(o.prediction["layered"]["beyond"], math.log(o.last[row])) for o in biased]).T

    def rho(drawn: np.ndarray) -> float:  # not a number where one family alone is drawn
        ranks = stats.rankdata(pair[:, [k for g in drawn for k in groups[g]]], axis=1)
        return float(np.corrcoef(ranks)[0, 1])

    return interval(rho, np.arange(len(groups)))


def paired(found: Sequence[Model]) -> Iterator[Evidence]:
    """The measured resolutions of RoPE and xPos, seed by seed."""
    known = {
        (run["encoding"]["label"], m["inference"]["bca"] is not None, run["seed"]): value
        for run in results()
        if run["preset"]["length"] == found[0].trained
        for m in run["measurements"]
        if (value := m.get("scores", {}).get("resolution")) is not None
    }
    rows: list[dict[str, Any]] = []
    lower = {}
    for masked, mask in ((False, "causal"), (True, "with BCA")):
        seeds = (s for label, bca, s in sorted(known) if (label, bca) == ("rope", masked))
        shared = [s for s in seeds if ("xpos", masked, s) in known]
        pairs = [(s, known["rope", masked, s], known["xpos", masked, s]) for s in shared]
        lower[mask] = (sum(xpos < rope for _, rope, xpos in pairs), len(pairs))
        rows += [{"mask": mask, "seed": s, "rope": rope, "xpos": xpos} for s, rope, xpos in pairs]
    if rows:
        yield told("referee paired", (), lower, rows, n=len(rows))


def spread(found: Sequence[Model]) -> Iterator[Evidence]:
    """The gradient fields that differ by more than a factor of two between seeds."""
    seeds = {
        o.label: sorted(
            run["measurements"][0]["gradient"]["tokens"]
            for run in results()
            if (run["encoding"]["label"], run["preset"]["length"]) == (o.label, o.trained)
        )
        for o in found
        if not o.mask
    }
    if wide := {k: v for k, v in seeds.items() if len(v) > 1 and v[-1] > 2 * v[0]}:
        yield told("referee spread", (), wide, n=len(wide))


# -- depth ----------------------------------------------------------------------------------------


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
    biased, row, layers = [o for o in found if o.biased], longest(found), found[0].layers
    measured = np.array([o.gradient for o in biased])
    trf = np.array([o.registered("row_trf") for o in biased])
    fixed = {
        REGISTERED: np.array([float(o.prediction["layered"]["tokens"]) for o in biased]),
        PLAIN: trf,
        REACH: np.minimum(row, layers * (trf - 1) + 1),
    }
    grid = {
        (a, s): np.array([float(_layered(o.label, o.trained, row, layers, a, s)) for o in biased])
        for a in MIXINGS
        for s in NOISES
    }
    fitted = {MIXED: {k: v for k, v in grid.items() if k[1] == 0}, NOISY: grid}

    def error(predicted: np.ndarray, of: Any = slice(None)) -> float:
        return float(np.abs(np.log2(predicted[of] / measured[of])).mean())

    def best(name: str, of: Any = slice(None)) -> tuple[float, float]:
        return min(fitted[name], key=lambda k: error(fitted[name][k], of))

    random = np.random.default_rng(0)
    halves = [np.split(random.permutation(len(biased)), [len(biased) // 2]) for _ in range(SPLITS)]
    chosen = {name: [best(name, fit) for fit, _ in halves] for name in fitted}
    scores = {
        name: [error(fixed[name], judge) for _, judge in halves]
        if name in fixed
        else [error(fitted[name][k], h[1]) for k, h in zip(chosen[name], halves, strict=True)]
        for name in (REGISTERED, MIXED, NOISY, PLAIN, REACH)
    }
    final = fixed | {name: fitted[name][best(name)] for name in fitted}
    numbers: dict[str, Any] = {
        name: {
            "factor": 2 ** float(np.mean(values)),
            "interval": tuple(2 ** float(q) for q in np.quantile(values, (0.025, 0.975))),
            "rho": rank_correlation(final[name].tolist(), measured.tolist()).rho,
        }
        for name, values in scores.items()
    }
    medians = {k: tuple(float(x) for x in np.median(v, axis=0)) for k, v in chosen.items()}
    known = {"registered": numbers[REGISTERED], "plain": numbers[PLAIN], "splits": SPLITS}
    yield told("depth", biased, numbers | {"fitted": medians}, numbers.items(), **known)
    columns = zip(biased, final[REGISTERED], final[NOISY], measured, strict=True)
    said = {o.label: tuple(map(float, values)) for o, *values in columns}
    worst = sorted(biased, key=lambda o: -abs(math.log(said[o.label][0] / said[o.label][2])))
    rows = [(o.label, said[o.label][0], _learned(o, row), *said[o.label][1:]) for o in worst]
    yield told("depth fails", biased, said, rows)


def _learned(o: Model, row: int) -> float | None:
    """The layered field with the values that each seed learned, the mean; None without such."""
    options = subject_of(o.label, o.trained).options if o.learned else {}
    made = (encoding(**options, **values) for values in o.learned)
    fields = [layered_receptive_field(e, o.layers, mixing=MIXING, length=row) for e in made]
    return float(np.mean([f.tokens for f in fields])) if fields else None
