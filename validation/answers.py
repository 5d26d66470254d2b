"""Does the theory predict? Answers computed from the committed reference results.

Every answer has a number, an interval, the number of encodings it stands on, and their runs. The
predictions were registered before the first run (`farfield.validation.reference`), so nothing here
is tuned after the fact, except where an answer says that a number was fitted: then it was fitted
on one half of the encodings and judged on the other, over many splits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from farfield.theory.encodings import Encoding, encoding
from farfield.theory.results import InputError, Result
from farfield.validation import reference
from farfield.validation.plan import Subject
from farfield.validation.statistics import RankCorrelation, rank_correlation

Row = Mapping[str, Any]
TOLERANCE = 0.05
FIVE = ("alibi", "kerple_log", "sandwich", "type1", "type2")  # of [Q, Fig. 5 and 6]
SPLITS, RESAMPLES = 400, 4000
MIXINGS = tuple(k / 20 for k in range(1, 20))
NOISES = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
DRAWS = 64
HEADS = 8
RANK = "registered rank (layered mass beyond the training length)"
LEAK = "leak, mean of heads"
REGISTERED = "registered mixing 0.4"
PLAIN = "finite-row TRF(1/100)"
LEAST = 5


@dataclass(frozen=True)
class Answer(Result):
    """What the reference results say to one question.

    Fields:
        question: in words.
        sentence: the answer, with its numbers.
        n: encodings (or heads) it stands on.
        numbers: by name; intervals are pairs.
        table: its header and rows, where a table says it better; empty otherwise.
        runs: names of the runs, label with `+ bca` where it applies, training length and seeds.
        label: `measured`.
    """

    question: str
    sentence: str
    n: int
    numbers: Mapping[str, Any]
    table: tuple[tuple[str, ...], ...] = ()
    runs: tuple[str, ...] = ()
    label: str = "measured"

    def text(self) -> str:
        widths = [max(map(len, column)) for column in zip(*self.table, strict=True)]
        rows = [
            "    " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
            for row in self.table
        ]
        return "\n".join([self.question, f"  {self.sentence}  [{self.label}, n = {self.n}]", *rows])


@dataclass(frozen=True)
class Observation:
    """One encoding at one training length: its prediction, and the means over its seeds.

    Fields:
        label, length, bca, seeds: which runs.
        prediction: its entry of the registered predictions.
        last, whole: ratio of the perplexity to that at the training length by test length, last
            token and non-overlapping; geometric means.
        erf, erf_heads: attention ERF by eps, the mean, and of each layer and head.
        trf, trf_heads: finite-row TRF of the trained bias on the same rows.
        gradient, mass: gradient ERF, and the gradient mass within the training length.
        resolution: measured R of the mean scores.
        learned: values of learned parameters, one entry a seed; empty where there are none.
    """

    label: str
    length: int
    bca: bool
    seeds: tuple[int, ...]
    prediction: Row
    last: Mapping[int, float]
    whole: Mapping[int, float]
    erf: Mapping[float, float]
    erf_heads: Mapping[float, np.ndarray]
    trf: Mapping[float, float]
    trf_heads: Mapping[float, np.ndarray]
    gradient: float
    mass: float
    resolution: float | None
    learned: tuple[Mapping[str, Any], ...]
    layers: int

    @property
    def name(self) -> str:
        """Label, with the mask."""
        return self.label + (" + BCA" if self.bca else "")

    @property
    def runs(self) -> str:
        """The runs it is the mean of."""
        seeds = ", ".join(map(str, self.seeds))
        return f"{self.name}, length {self.length}, seeds {seeds}"

    @property
    def biased(self) -> bool:
        """Whether the prediction is that of an additive bias, causal mask."""
        return not self.bca and not self.prediction["basis"].startswith("no additive")

    def leak(self, length: int, worst: bool = True) -> float:
        """The registered leak to a test length: of the worst head, or the mean of the heads."""
        values = self.prediction["leak"][str(length)]
        return float(max(values) if worst else np.mean(values))

    def registered(self, kind: str, eps: str = "1/100") -> float:
        """A registered receptive field, the mean of the heads; infinite for a divergent series."""
        fields = self.prediction[kind]
        return math.inf if fields is None else float(np.mean([float(v) for v in fields[eps]]))


def observations(results: Sequence[Row] | None = None, length: int = 64) -> tuple[Observation, ...]:
    """The encodings with results at a training length, in the order of the predictions.

    Args:
        results: committed results in JSON form; None takes those of this package.
        length: the training length in tokens.
    """
    found = reference.results() if results is None else results
    groups: dict[tuple[str, bool], list[tuple[Row, Row]]] = {}
    for run in found:
        if run["preset"]["length"] == length:
            for m in run["measurements"]:
                key = (run["encoding"]["label"], m["inference"]["bca"] is not None)
                groups.setdefault(key, []).append((run, m))
    return tuple(
        _observation(entry, groups[entry["label"], entry["bca"]])
        for entry in reference.predictions()["encodings"]
        if entry["length"] == length and (entry["label"], entry["bca"]) in groups
    )


def _observation(entry: Row, group: Sequence[tuple[Row, Row]]) -> Observation:
    measured = [m for _, m in group]

    def ratios(protocol: str) -> dict[int, float]:
        logs: dict[int, list[float]] = {}
        for m in measured:
            for p in m["perplexity"]:
                if p["protocol"] == protocol and p["length"] > entry["length"]:
                    logs.setdefault(p["length"], []).append(math.log(p["ratio"]))
        return {n: math.exp(float(np.mean(v))) for n, v in sorted(logs.items())}

    def fields(name: str) -> dict[float, np.ndarray]:
        every: dict[float, list[Any]] = {}
        for m in measured:
            for f in m["attention"]:
                every.setdefault(f["eps"], []).append(f[name])
        return {eps: np.mean(v, axis=0) for eps, v in every.items()}

    resolutions = [m["scores"]["resolution"] for m in measured]
    return Observation(
        label=entry["label"],
        length=entry["length"],
        bca=entry["bca"],
        seeds=tuple(sorted(run["seed"] for run, _ in group)),
        prediction=entry,
        last=ratios("last token"),
        whole=ratios("non-overlapping"),
        erf={k: float(v) for k, v in fields("tokens").items()},
        erf_heads=fields("heads"),
        trf={k: float(v) for k, v in fields("trf").items()},
        trf_heads=fields("trf_heads"),
        gradient=float(np.mean([m["gradient"]["tokens"] for m in measured])),
        mass=float(np.mean([m["gradient"]["mass"] for m in measured])),
        resolution=None if None in resolutions else float(np.mean(resolutions)),
        learned=tuple(v for run, _ in group if (v := run["training"].get("learned"))),
        layers=group[0][0]["preset"]["layers"],
    )


def answers(
    results: Sequence[Row] | None = None, length: int = 64, *, only: Sequence[str] = ()
) -> tuple[Answer, ...]:
    """The answers that the results at a training length allow; none where there are too few.

    Args:
        results: committed results in JSON form; None takes those of this package.
        length: the training length in tokens.
        only: names among `QUESTIONS`; none given takes all.

    Raises:
        InputError: a name that is not among them.
    """
    unknown = [name for name in only if name not in QUESTIONS]
    if unknown:
        raise InputError(f"question {unknown[0]!r}; accepted: {', '.join(QUESTIONS)}")
    found = observations(results, length)
    if len(found) < LEAST:
        return ()
    return tuple(a for name in only or QUESTIONS for a in QUESTIONS[name](found))


def summary(results: Sequence[Row] | None = None, length: int = 64) -> tuple[str, ...]:
    """Three sentences for a reader in a hurry; none where there are too few results."""
    found = observations(results, length)
    if len(found) < LEAST:
        return ()
    verdict, forecast, depth, coverage = (
        next(iter(QUESTIONS[name](found))) for name in ("verdict", "forecast", "depth", "coverage")
    )
    right, rule, n = verdict.numbers, coverage.numbers, len(found)
    reach = max(n for o in found for n in o.last)
    layered, plain = depth.numbers[REGISTERED], depth.numbers[PLAIN]
    return (
        f"Read as a forecast of extrapolation to {reach // length} times the training length, the "
        f"verdict is right for {right['one-sided']} of {n} encodings "
        f"({_percent(right['interval'])}); the rank "
        "registered beforehand, by the layered mass beyond the training length, orders the losses "
        f"with rho = {_with(forecast.numbers[RANK])}, the leak with "
        f"{_with(forecast.numbers[LEAK])}.",
        "The layered receptive field, from the formula alone, is the gradient receptive field of "
        f"the trained models within a factor of {layered['factor']:.2f} on average (rho = "
        f"{layered['rho']:.2f}, {depth.n} encodings), the receptive field of one layer within "
        f"{plain['factor']:.2f}.",
        "Chi et al.'s rule, that the training length must cover the gradient receptive field, is "
        f"right for {rule['right']} of {n} ({_percent(rule['interval'])}), too strict for "
        f"{rule['strict']} and too lenient for {rule['lenient']}; the gradient mass within the "
        f"training length orders the losses with rho = {_with(rule['mass'])}, the gradient "
        f"receptive field with {_with(rule['gradient ERF'])}.",
    )


def _percent(interval: tuple[float, float]) -> str:
    return f"{interval[0]:.0%} to {interval[1]:.0%}"


def _with(value: tuple[float, float, float]) -> str:
    return f"{value[0]:.2f} ({value[1]:.2f} to {value[2]:.2f})"


# -- the verdict, the leak and the registered rank ------------------------------------------------


def _verdicts(found: tuple[Observation, ...]) -> Iterable[Answer]:
    """Verdict against Definition 0.1, as a confusion table, for each protocol and reach."""
    trained = found[0].length
    far = max(n for o in found for n in o.whole)
    reach = max(n for o in found for n in o.last)
    for protocol, longest in (("last token", reach), ("non-overlapping", reach),
                              ("non-overlapping", far)):  # fmt: skip
        rows: dict[tuple[str, str], list[str]] = {}
        right = {"printed": 0, "one-sided": 0}
        counted = []
        for o in found:
            ratios = o.last if protocol == "last token" else o.whole
            tested = {n: r for n, r in ratios.items() if n <= longest}
            if longest not in tested:
                continue
            printed = all(abs(r - 1) < TOLERANCE for r in tested.values())
            one_sided = all(r - 1 < TOLERANCE for r in tested.values())
            said = o.prediction["extrapolates"]
            right["printed"] += printed == said
            right["one-sided"] += one_sided == said
            outcome = "extrapolates" if one_sided else "fails"
            rows.setdefault((_kind(o), outcome), []).append(f"{o.name} {tested[longest]:.2f}")
            counted.append(o)
        if protocol == "non-overlapping" and longest == far == reach:
            continue
        n = len(counted)
        low, high = _wilson(right["one-sided"], n)
        kinds = dict.fromkeys(kind for kind, _ in rows)
        outcomes = ("extrapolates", "fails")
        cells = [[kind, *("; ".join(rows.get((kind, o), ["none"])) for o in outcomes)]
                 for kind in kinds]  # fmt: skip
        table = (("verdict", *outcomes), *map(tuple, cells))
        yield Answer(
            f"Does the verdict say who extrapolates to {longest // trained} times the training "
            f"length ({protocol} perplexity, {longest} tokens)?",
            f"One-sided (no increase of {TOLERANCE:.0%} or more at any tested length) the verdict "
            f"is right for {right['one-sided']} of {n} ({low:.0%} to {high:.0%}), as printed (no "
            f"change either way) for {right['printed']} of {n}.",
            n,
            {**right, "interval": (low, high), "tolerance": TOLERANCE},
            table,
            tuple(o.runs for o in counted),
        )


def _kind(o: Observation) -> str:
    if o.bca:
        return "bounded support (BCA)"
    return str(o.prediction["verdict"]).replace("_", " ")


def _wilson(right: int, n: int) -> tuple[float, float]:
    from scipy.stats import binomtest

    found = binomtest(right, n).proportion_ci(method="wilson")
    return float(found.low), float(found.high)


def _forecasts(found: tuple[Observation, ...]) -> Iterable[Answer]:
    """Rank correlations of what was registered with the loss in extrapolation."""
    reach = max(n for o in found for n in o.last)
    loss = [math.log(o.last[reach]) for o in found]
    predictors: dict[str, list[float]] = {
        RANK: [o.prediction["layered"]["beyond"] for o in found],
        "leak, worst head": [o.leak(reach) for o in found],
        LEAK: [o.leak(reach, worst=False) for o in found],
        "verdict (0 or 1)": [float(not o.prediction["extrapolates"]) for o in found],
        PLAIN: [o.registered("row_trf") for o in found],
    }
    ranked = {name: rank_correlation(values, loss) for name, values in predictors.items()}
    verdict = predictors["verdict (0 or 1)"]
    leak = predictors[LEAK]
    gain, low, high = _difference(leak, verdict, loss)
    table = (("predictor", "Spearman's rho", "95 %", "Kendall's tau", "AUC of failing"), *(
        (name, f"{r.rho:.2f}", f"{r.rho_low:.2f} to {r.rho_high:.2f}", f"{r.tau:.2f}",
         f"{_auc(predictors[name], [x >= math.log(1 + TOLERANCE) for x in loss]):.2f}")
        for name, r in ranked.items()
    ))  # fmt: skip
    best = max(ranked, key=lambda name: ranked[name].rho)
    better = "better" if low > 0 else "worse" if high < 0 else "not distinguishably better or worse"
    yield Answer(
        f"Which prediction ranks the loss at {reach} tokens (last token) best, and is the leak, "
        "which has a size, better than the verdict, which has none?",
        f"Best is the {best}, rho = {_rho(ranked[best])}. The leak (mean of heads) has rho = "
        f"{_rho(ranked[LEAK])}, the verdict {_rho(ranked['verdict (0 or 1)'])}: "
        f"the leak is {better}, by {gain:+.2f} ({low:+.2f} to {high:+.2f}).",
        len(found),
        {name: (r.rho, r.rho_low, r.rho_high) for name, r in ranked.items()}
        | {"gain": (gain, low, high)},
        table,
        tuple(o.runs for o in found),
    )


def _rho(r: RankCorrelation) -> str:
    return _with((r.rho, r.rho_low, r.rho_high))


def _difference(
    first: Sequence[float], second: Sequence[float], target: Sequence[float]
) -> tuple[float, float, float]:
    """Spearman's rho of the first less that of the second, with a bootstrap interval over pairs."""
    from scipy.stats import spearmanr

    a, b, c = (np.asarray(x, dtype=float) for x in (first, second, target))
    random = np.random.default_rng(0)

    def gap(pick: np.ndarray) -> float:
        x, y, z = a[pick], b[pick], c[pick]
        if min(len(set(x)), len(set(y)), len(set(z))) < 2:
            return math.nan
        return float(spearmanr(x, z).statistic - spearmanr(y, z).statistic)

    drawn = [gap(random.integers(len(a), size=len(a))) for _ in range(RESAMPLES // 4)]
    low, high = np.nanquantile(drawn, (0.025, 0.975))
    return gap(np.arange(len(a))), float(low), float(high)


def _auc(score: Sequence[float], failing: Sequence[bool]) -> float:
    """The chance that a failing encoding has the higher score than one that does not fail."""
    bad = np.array([s for s, f in zip(score, failing, strict=True) if f])
    good = np.array([s for s, f in zip(score, failing, strict=True) if not f])
    if not len(bad) or not len(good):
        return math.nan
    gaps = np.subtract.outer(bad, good)
    return float((gaps > 0).mean() + (gaps == 0).mean() / 2)


# -- receptive fields -----------------------------------------------------------------------------


def _fields(found: tuple[Observation, ...]) -> Iterable[Answer]:
    """TRF against the attention ERF and the gradient ERF."""
    biased = [o for o in found if o.biased]
    groups = {"all with an additive bias": biased,
              "the five of Qin et al.": [o for o in biased if o.label in FIVE]}  # fmt: skip
    rows: list[tuple[str, ...]] = [("encodings", "TRF", "ERF", "Spearman's rho", "95 %", "n")]
    numbers: dict[str, Any] = {}
    for group, members in groups.items():
        if len(members) < 4:
            continue
        for eps in (0.1, 0.05, 0.01):
            fraction = f"1/{round(1 / eps)}"
            for trf, values in (
                (f"finite-row TRF({eps:g}), registered",
                 [o.registered("row_trf", fraction) for o in members]),
                (f"TRF({eps:g}) of the series", [o.registered("trf", fraction) for o in members]),
            ):  # fmt: skip
                for erf, target in (
                    (f"attention ERF({eps:g})", [o.erf[eps] for o in members]),
                    ("gradient ERF(0.99)", [o.gradient for o in members]),
                ):
                    if len(set(values)) < 2:
                        continue
                    r = rank_correlation(values, target)
                    numbers[f"{group}; {trf}; {erf}"] = (r.rho, r.rho_low, r.rho_high)
                    rows.append((group, trf, erf, f"{r.rho:.2f}",
                                 f"{r.rho_low:.2f} to {r.rho_high:.2f}", str(r.n)))  # fmt: skip
    first = "all with an additive bias; finite-row TRF(0.01), registered; "
    a, g = (numbers[first + kind] for kind in ("attention ERF(0.01)", "gradient ERF(0.99)"))
    yield Answer(
        "Does the theoretical receptive field predict the measured ones across encodings?",
        f"Finite-row TRF(0.01) ranks the attention ERF(0.01) with rho = {a[0]:.2f} ({a[1]:.2f} to "
        f"{a[2]:.2f}) and the gradient ERF through {found[0].layers} layers with rho = {g[0]:.2f} "
        f"({g[1]:.2f} to {g[2]:.2f}). An infinite TRF is the highest rank.",
        len(biased), numbers, tuple(rows), tuple(o.runs for o in biased),
    )  # fmt: skip
    yield from _heads(biased)


def _heads(biased: Sequence[Observation]) -> Iterable[Answer]:
    eps = 0.05
    pairs: list[tuple[float, float]] = []
    rows: list[tuple[str, ...]] = [("encoding", "Spearman's rho over layers and heads", "n")]
    within = {}
    for o in biased:
        erf = np.atleast_2d(o.erf_heads[eps])
        trf = np.broadcast_to(o.trf_heads[eps], erf.shape)
        pairs += zip(trf.ravel(), erf.ravel(), strict=True)
        if len(set(trf.ravel())) > 2:
            r = rank_correlation(trf.ravel().tolist(), erf.ravel().tolist())
            within[o.label] = r.rho
            rows.append((o.label, f"{r.rho:.2f} ({r.rho_low:.2f} to {r.rho_high:.2f})", str(r.n)))
    r = rank_correlation([a for a, _ in pairs], [b for _, b in pairs], resamples=500)
    yield Answer(
        "Does it predict them head by head?",
        f"Over every layer and head of every encoding, finite-row TRF({eps:g}) of the trained bias "
        f"against attention ERF({eps:g}): rho = {_rho(r)}. Heads are not independent, so the "
        "interval is too narrow; the table has the encodings one by one.",
        r.n, {"all": (r.rho, r.rho_low, r.rho_high), **within}, tuple(rows),
        tuple(o.runs for o in biased),
    )  # fmt: skip


# -- depth ----------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _weights(label: str, length: int, row: int) -> np.ndarray:
    """The bias of the plan's encoding by head and distance; shape (heads, row)."""
    from farfield.theory.values import tabulate

    return np.array([tabulate(b, np.arange(row)) for b in stand_in(label, length).biases])


def stand_in(label: str, length: int) -> Encoding:
    """The bias whose numbers stood for a label in the registered predictions, causal mask."""
    found = _subject(label, length).encoding(HEADS)
    return reference.stand_in(found, length, bca=False)[0]


def _subject(label: str, length: int) -> Subject:
    return next(
        subject
        for sweep in reference.plan().sweeps
        if length in sweep.lengths
        for subject in sweep.encodings
        if subject.label == label
    )


def _trained(o: Observation, row: int) -> float | None:
    """The layered prediction with the values that each seed learned, where it did; the mean."""
    if not o.learned:
        return None
    from farfield.numerics.depth import layered_receptive_field

    subject = _subject(o.label, o.length)
    found = (encoding(**subject.options, **values) for values in o.learned)
    fields = [layered_receptive_field(e, o.layers, mixing=reference.MIXING, length=row)
              for e in found]  # fmt: skip
    return float(np.mean([f.tokens for f in fields]))


@lru_cache(maxsize=4096)
def _layered(label: str, length: int, row: int, layers: int, mixing: float, noise: float) -> int:
    """Quantile 0.99 of the convolution model; with noise, of softmax(bias + noise z), z normal."""
    from farfield.numerics.depth import layered_quantile

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


def _depth(found: tuple[Observation, ...]) -> Iterable[Answer]:
    """The convolution model of depth: as registered, with a fitted mixing, and with noise."""
    biased = [o for o in found if o.biased]
    row = max(n for o in found for n in o.last)
    layers, length = found[0].layers, found[0].length
    measured = np.array([o.gradient for o in biased])

    def model(mixing: float, noise: float) -> np.ndarray:
        return np.array([
            _layered(o.label, length, row, layers, mixing, noise) for o in biased
        ], dtype=float)  # fmt: skip

    registered = np.array([float(o.prediction["layered"]["tokens"]) for o in biased])
    trf = np.array([o.registered("row_trf") for o in biased])
    reach = np.minimum(row, layers * (trf - 1) + 1)
    grid = {(a, s): model(a, s) for a in MIXINGS for s in NOISES}
    plain = {k: v for k, v in grid.items() if k[1] == 0}

    def error(predicted: np.ndarray, of: np.ndarray) -> float:
        return float(np.abs(np.log2(predicted[of] / measured[of])).mean())

    random = np.random.default_rng(0)
    scores: dict[str, list[float]] = {name: [] for name in (
        REGISTERED, "fitted mixing", "fitted mixing and content noise",
        PLAIN, "R (TRF - 1) + 1, as wR for windows",
    )}  # fmt: skip
    chosen: dict[str, list[tuple[float, float]]] = {
        "fitted mixing": [], "fitted mixing and content noise": []
    }  # fmt: skip
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
        ("prediction of the gradient ERF", "factor off, mean over splits", "95 % of the splits",
         "Spearman's rho, all")
    ]  # fmt: skip
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
    ours, better = numbers[REGISTERED], numbers["fitted mixing and content noise"]
    plainly = numbers[PLAIN]
    yield Answer(
        "Does the layered receptive field predict the gradient ERF of a model without training?",
        f"With the registered mixing it is off by a factor of {ours['factor']:.2f} on average "
        f"({ours['interval'][0]:.2f} to {ours['interval'][1]:.2f} over {SPLITS} random halves), "
        f"plain finite-row TRF by {plainly['factor']:.2f}. A mixing fitted on the other half "
        f"(median {medians['fitted mixing'][0]:.2f}) gives "
        f"{numbers['fitted mixing']['factor']:.2f}; with normal noise of the content logits "
        f"(median standard deviation {medians['fitted mixing and content noise'][1]:.1f}, mixing "
        f"{medians['fitted mixing and content noise'][0]:.2f}) {better['factor']:.2f}.",
        len(biased), numbers | {"fitted": medians}, tuple(rows), tuple(o.runs for o in biased),
    )  # fmt: skip
    noisy = final["fitted mixing and content noise"]
    worst = sorted(range(len(biased)), key=lambda k: -abs(math.log(registered[k] / measured[k])))
    after = [_trained(o, row) for o in biased]
    table = (("encoding", "registered", "with learned values", "with content noise", "measured"), *(
        (biased[k].label, f"{registered[k]:.0f}", "-" if after[k] is None else f"{after[k]:.0f}",
         f"{noisy[k]:.0f}", f"{measured[k]:.0f}")
        for k in worst
    ))  # fmt: skip
    off = [f"{biased[k].label} ({registered[k]:.0f} for {measured[k]:.0f})" for k in worst[:3]]
    yield Answer(
        "Where does the layered prediction fail?",
        f"Most at {', '.join(off)} tokens. The column with learned values takes those of each "
        "seed after training, which no prediction can know, and their mean; the one with content "
        "noise is fitted on all encodings, and the split above judges it.",
        len(biased),
        {o.label: (float(registered[k]), float(noisy[k]), float(measured[k]))
         for k, o in enumerate(biased)},
        table, tuple(o.runs for o in biased),
    )  # fmt: skip


# -- the coverage rule ----------------------------------------------------------------------------


def _coverage(found: tuple[Observation, ...]) -> Iterable[Answer]:
    """Chi et al.'s rule against the gradient mass, as predictors of the loss."""
    reach = max(n for o in found for n in o.last)
    loss = [math.log(o.last[reach]) for o in found]
    fails = [x >= math.log(1 + TOLERANCE) for x in loss]
    covered = [o.gradient <= o.length for o in found]
    right = sum(c != f for c, f in zip(covered, fails, strict=True))
    low, high = _wilson(right, len(found))
    field = rank_correlation([o.gradient for o in found], loss)
    mass = rank_correlation([-o.mass for o in found], loss)
    gain, gain_low, gain_high = _difference(
        [-o.mass for o in found], [o.gradient for o in found], loss
    )
    strict = [o.name for o, c, f in zip(found, covered, fails, strict=True) if not c and not f]
    loose = [o.name for o, c, f in zip(found, covered, fails, strict=True) if c and f]
    yield Answer(
        "Chi et al.: an encoding extrapolates if its gradient ERF(0.99) is covered by the training "
        "length. Is the rule right, and is the gradient mass within the training length better?",
        f"The rule is right for {right} of {len(found)} ({low:.0%} to {high:.0%}); too strict for "
        f"{', '.join(strict) or 'none'}, too lenient for {', '.join(loose) or 'none'}. Ranks of "
        f"the loss at {reach} tokens: gradient ERF rho = {_rho(field)}, lack of mass within the "
        f"training length rho = {_rho(mass)}, {gain:+.2f} ({gain_low:+.2f} to {gain_high:+.2f}).",
        len(found),
        {"right": right, "strict": len(strict), "lenient": len(loose), "interval": (low, high),
         "gradient ERF": (field.rho, field.rho_low,
         field.rho_high), "mass": (mass.rho, mass.rho_low, mass.rho_high),
         "gain": (gain, gain_low, gain_high)},
        (("encoding", "gradient ERF", "mass within", "ratio"), *(
            (o.name, f"{o.gradient:.0f}", f"{o.mass:.3f}", f"{o.last[reach]:.3f}")
            for o in sorted(found, key=lambda o: -o.mass))),
        tuple(o.runs for o in found),
    )  # fmt: skip


# -- resolution -----------------------------------------------------------------------------------


def _resolutions(found: tuple[Observation, ...]) -> Iterable[Answer]:
    """Measured R(s) of trained models beside the theory's, with and without BCA."""
    from farfield.numerics.resolution import attention_resolution

    length = 256  # of the measured scores
    pairs, rows = [], [("encoding", "measured R", "R of the bias", "ratio of perplexity")]
    reach = max(n for o in found for n in o.last)
    for o in found:
        if o.resolution is None:
            continue
        value = None
        if o.biased:
            value = attention_resolution(stand_in(o.label, o.length), length).value
            if value is not None:
                pairs.append((value, o.resolution))
        rows.append((o.name, f"{o.resolution:.3g}", "-" if value is None else f"{value:.3g}",
                     f"{o.last[reach]:.3f}"))  # fmt: skip
    if len(pairs) < 4:
        return
    r = rank_correlation([a for a, _ in pairs], [b for _, b in pairs])
    by = {o.name: o.resolution for o in found if o.resolution is not None}
    masked = [
        f"{label} {by[label]:.3g} without, {by[label + ' + BCA']:.3g} with"
        for label in ("rope", "xpos", "sinusoidal")
        if label in by and label + " + BCA" in by
    ]
    yield Answer(
        "Does the measured attention resolution follow the theory, with and without BCA?",
        f"Across additive biases, rho = {_rho(r)} between R of the bias and R of the measured "
        f"scores over {length} tokens. Blockwise causal attention: {'; '.join(masked)}.",
        r.n, {"rho": (r.rho, r.rho_low, r.rho_high), "measured": by}, tuple(rows),
        tuple(o.runs for o in found),
    )  # fmt: skip


# -- what does not reproduce ----------------------------------------------------------------------


def _unreproduced(found: tuple[Observation, ...]) -> Iterable[Answer]:
    """Statements of the papers beside the numbers here, those that fail first."""
    reach = max(n for o in found for n in o.last)
    by = {o.name: o for o in found}
    checks: list[tuple[str, str, bool]] = []

    def check(name: str, statement: str, holds: Callable[[float], bool]) -> None:
        if name in by:
            ratio = by[name].last[reach]
            checks.append((statement, f"{name}: ratio {ratio:.3f}", holds(ratio)))

    for name in ("kerple_log", "t5", "sandwich"):
        check(name, f"[C, Table 3] {name} gains from a longer context", lambda r: r < 1)
    for name in ("sinusoidal", "rope"):
        statement = f"[C, Table 3] {name} fails at {reach // found[0].length} times the length"
        check(name, statement, lambda r: r > 1 + TOLERANCE)
    check("sinusoidal", "[C, Table 3] sinusoidal rises by a factor of hundreds", lambda r: r > 100)
    for name in ("type1", "type2", "alibi"):
        check(name, f"[Q, Fig. 3] {name} extrapolates", lambda r: r < 1 + TOLERANCE)
    for name in ("example1", "example2"):
        check(name, f"[Q, Fig. 4] {name} fails", lambda r: r > 1 + TOLERANCE)
        check(name, f"[Q, Fig. 4] {name} rises rapidly, at least twofold", lambda r: r > 2)
    for name in ("rope + BCA", "xpos + BCA"):
        check(name, f"[S, Table 2] {name} stays flat", lambda r: r < 1 + TOLERANCE)
    check("xpos", "[S, Table 2] xpos alone beats rope alone at length",
          lambda r: "rope" in by and r < by["rope"].last[reach])  # fmt: skip
    check("alibi shift 8", "[C, Table 1] ALiBi shifted by 8 fails", lambda r: r > 1 + TOLERANCE)
    check("alibi shift -3", "[C, Table 1] ALiBi shifted by -3 stays flat",
          lambda r: r < 1 + TOLERANCE)  # fmt: skip
    check("window 64", "[C, Table 1] a window with w R beyond the training length fails",
          lambda r: r > 1 + TOLERANCE)  # fmt: skip
    checks.sort(key=lambda c: c[2])
    failed = sum(not ok for *_, ok in checks)
    yield Answer(
        "What of the papers does not reproduce at this scale?",
        f"{failed} of {len(checks)} statements do not hold for these models of "
        f"{found[0].layers} layers, bytes and a training length of {found[0].length}; that says "
        "nothing of larger ones.",
        len(checks), {statement: ok for statement, _, ok in checks},
        (("statement", "measured", "holds here"), *(
            (s, m, "yes" if ok else "no") for s, m, ok in checks)),
        tuple(o.runs for o in found),
    )  # fmt: skip


QUESTIONS: Mapping[str, Callable[[tuple[Observation, ...]], Iterable[Answer]]] = {
    "verdict": _verdicts,
    "forecast": _forecasts,
    "receptive fields": _fields,
    "depth": _depth,
    "coverage": _coverage,
    "resolution": _resolutions,
    "not reproduced": _unreproduced,
}
