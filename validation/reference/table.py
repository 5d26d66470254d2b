"""The table of results: one reader, one mean over seeds, one notion of "perplexity holds".

`results` reads the committed files of a folder. `rows` is the table: a row for each run, way of
inference, protocol and length, with the run's configuration. `grouped` puts together the runs that
differ in their seed alone: a `Model`, whose numbers are means over seeds.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from farfield.theory.convergence import Verdict
from farfield.validation.extrapolation import TOLERANCE, holds
from farfield.validation.reference.committed import HERE, OUTCOMES, Row

LAST, WHOLE = "last token", "non-overlapping"
Measured = tuple[Row, Row]
"""A run and one of its measurements."""


@lru_cache(maxsize=16)
def results(folder: str = "") -> tuple[Row, ...]:
    """The committed results of a folder, in the order of their names, each with its `file`.

    Args:
        folder: "" for the runs of the first registration, `floors`, `further/windows` and others.
    """
    paths = sorted((HERE / folder).glob("*.json"))
    return tuple(
        {**json.loads(p.read_text(encoding="utf-8")), "file": str(p.relative_to(HERE.parent))}
        for p in paths
        if p.name not in ("predictions.json", OUTCOMES) and not p.name.startswith("added_")
    )


def rows(runs: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """The table of some runs.

    >>> row = next(r for r in rows(results()) if r["length"] == 1024)
    >>> row["label"], row["seed"], row["layers"], row["trained"], row["protocol"]
    ('alibi', 0, 4, 128, 'non-overlapping')
    """
    for run in runs:
        for m in run["measurements"]:
            named = {"label": _named(run), "mask": _mask(m["inference"])[3:], "seed": run["seed"]}
            for p in m["perplexity"]:
                yield {**run["preset"], "trained": run["preset"]["length"], **named, **p}


@dataclass(frozen=True)
class Model:
    """The runs of one encoding in one setting, one a seed; numbers are means over them.

    Fields:
        name: label of the encoding, with ` + BCA` or ` + window W` where inference used it.
        verdict: on the exp-series of its heads, where it was asked for.
        trained: tokens of the training length.
        scale: of the models, in words.
        source: where the runs come from.
        seeds: of the runs.
        perplexity: by protocol, length and seed.
        ratio: the same over that at the training length.
        gradient, mass: gradient ERF, and the share of the gradient in the training length.
        curve: share of the gradient on the most recent tokens, by their number.
        erf, trf: attention ERF and finite-row TRF by eps; trf empty where there is no bias.
        heads: both by eps, of each layer and head: `tokens` and `trf_heads`.
        resolution: measured R of the mean scores; None where it is not known.
        scores: mean expected scores by distance and seed, as far as both are seen.
        losses: of training by step and seed.
        learned: values of learned parameters, one entry a seed; empty where there are none.
        seconds: processor time of training by seed.
        encoding: formulas of the heads and their mechanism.
        named: label, architecture and window, which tell it from others.
        further: the largest log ratio on further targets, its standard error, and how many models
            have it.
        prediction: its entry of a registration, where it was asked for.
    """

    name: str
    verdict: str = ""
    trained: int = 64
    scale: str = ""
    source: str = ""
    seeds: tuple[int, ...] = (0,)
    perplexity: Mapping[str, Mapping[int, Mapping[int, float]]] = field(default_factory=dict)
    ratio: Mapping[str, Mapping[int, Mapping[int, float]]] = field(default_factory=dict)
    gradient: float = math.nan
    mass: float = math.nan
    curve: Mapping[int, float] = field(default_factory=dict)
    erf: Mapping[float, float] = field(default_factory=dict)
    trf: Mapping[float, float] = field(default_factory=dict)
    heads: Mapping[str, Mapping[float, Any]] = field(default_factory=dict)
    resolution: float | None = None
    scores: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    losses: Mapping[int, Mapping[int, float]] = field(default_factory=dict)
    learned: tuple[Row, ...] = ()
    seconds: Mapping[int, float] = field(default_factory=dict)
    encoding: Row = field(default_factory=dict)
    named: Row = field(default_factory=dict)
    further: tuple[float, float, int] = (math.nan, math.nan, 0)
    prediction: Row = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Of the encoding."""
        return self.name.partition(" + ")[0]

    @property
    def mask(self) -> str:
        """What inference used beside the encoding, empty for none."""
        return self.name.partition(" + ")[2]

    @property
    def layers(self) -> int:
        """Depth."""
        return int(self.named["layers"])

    @property
    def runs(self) -> str:
        """The runs it is the mean of."""
        seeds = ", ".join(map(str, self.seeds))
        return f"{self.name}, length {self.trained}, seeds {seeds}"

    def mean(self, protocol: str = LAST, most: int | None = None) -> dict[int, float]:
        """Perplexity by length, geometric means over seeds."""
        means = _log_means(self.perplexity, protocol)
        return {n: math.exp(v) for n, v in means if most is None or n <= most}

    def ratios(self, protocol: str = LAST) -> dict[int, float]:
        """Ratio to the perplexity at the training length, by length beyond it."""
        return {n: math.exp(v) for n, v in _log_means(self.ratio, protocol) if n > self.trained}

    @property
    def last(self) -> dict[int, float]:
        """Ratios of the last token's perplexity."""
        return self.ratios(LAST)

    @property
    def loss(self) -> float:
        """The largest logarithm of those of the last token, in nats."""
        return max(v for n, v in _log_means(self.ratio, LAST) if n > self.trained)

    def holds(self, tolerance: float = TOLERANCE) -> bool:
        """Whether the last token's perplexity rises by less than the tolerance at every length."""
        return holds((r - 1 for r in self.last.values()), tolerance)

    # -- beside its registered prediction

    @property
    def forecasts(self) -> Row:
        """What rules said of it."""
        found: Row = self.prediction["forecasts"]
        return found

    @property
    def biased(self) -> bool:
        """Whether the prediction is that of an additive bias, causal mask."""
        return not self.mask and self.prediction["verdict"] != Verdict.OUT_OF_SCOPE

    def leak(self, length: int, worst: bool = True) -> float:
        """The registered leak to a test length: of the worst head, or the mean of the heads."""
        values = self.prediction["leak"][str(length)]
        return float(max(values) if worst else np.mean(values))

    def registered(self, kind: str, eps: str = "1/100") -> float:
        """A registered receptive field, the mean of the heads; infinite for a divergent series."""
        fields = self.prediction[kind]
        return math.inf if fields is None else float(np.mean([float(v) for v in fields[eps]]))


def _log_means(
    values: Mapping[str, Mapping[int, Mapping[int, float]]], protocol: str
) -> Iterator[tuple[int, float]]:
    """Mean logarithms over seeds, by length in ascending order."""
    for n, by_seed in sorted(values.get(protocol, {}).items()):
        yield n, float(np.mean([math.log(p) for p in by_seed.values()]))


def grouped(runs: Iterable[Row], source: str = "") -> tuple[Model, ...]:
    """The models of some runs, for each way of inference that was measured."""
    groups: dict[tuple[Any, ...], list[Measured]] = {}
    for run in runs:
        for m in run["measurements"]:
            name = _named(run) + _mask(m["inference"])
            groups.setdefault((name, *sorted(run["preset"].items())), []).append((run, m))
    return tuple(_model(key[0], source, group) for key, group in groups.items())


def _named(run: Row) -> str:
    """The label of a run; where it has none, the name of its encoding with the dialect."""
    own = run["encoding"]
    dialect = f" ({own['dialect']})" if own.get("dialect") else ""
    return str(run.get("name") or own.get("label") or own["name"] + dialect)


def _mask(inference: Row) -> str:
    window = inference.get("window")
    return " + BCA" * (inference["bca"] is not None) + (f" + window {window}" if window else "")


def scale_of(preset: Row) -> str:
    """The scale of the models of a preset, in words."""
    name = preset.get("name") or "a preset of its own"
    wide = f", {preset['width']} wide, {preset['heads']} heads" if "width" in preset else ""
    return f"{name}: {preset['layers']} layers{wide}, trained on {preset['length']} tokens"


def _by_length(group: Sequence[Measured], what: str) -> dict[str, dict[int, dict[int, float]]]:
    found: dict[str, dict[int, dict[int, float]]] = {}
    for run, m in group:
        for p in m["perplexity"]:
            if what in p:
                by_length = found.setdefault(p["protocol"], {}).setdefault(p["length"], {})
                by_length[run["seed"]] = p[what]
    return found


def _means(pairs: Iterable[tuple[float, Any]]) -> dict[Any, Any]:
    """The mean over seeds of what stands at each key: of a number, or of a list one by one."""
    found: dict[float, list[Any]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return {key: np.mean(values, axis=0).tolist() for key, values in found.items()}


def _further(group: Sequence[Measured]) -> tuple[float, float, int]:
    """The largest log ratio on further targets, with its error and the count of models.

    The models share their targets: over them the errors do not average out.
    """
    each = [run.get("more_targets", {}).get(m["inference"].get("label"), ()) for run, m in group]
    longer = (p for rows in each for p in rows if p["length"] > p["base"])
    means = _means(
        (p["length"], (math.log(p["ratio"]), math.log(p["ratio_high"] / p["ratio_low"])))
        for p in longer
    )
    loss, width = max(means.values(), default=(math.nan, math.nan))
    return loss, width / (2 * 1.959964), sum(map(bool, each))


def _model(name: str, source: str, group: Sequence[Measured]) -> Model:
    (first, measured), preset = group[0], group[0][0]["preset"]
    training = {run["seed"]: run.get("training", {}) for run, _ in group}
    losses: dict[int, dict[int, float]] = {}
    for seed, trained in training.items():
        for step, loss in trained.get("losses", ()):
            losses.setdefault(step, {})[seed] = loss
    scored = {run["seed"]: m.get("scores", {}) for run, m in group}
    resolutions = [s.get("resolution") for s in scored.values()]
    fields = [f for _, m in group for f in m["attention"]]

    def by_eps(what: str) -> dict[float, Any]:
        return _means((f["eps"], f[what]) for f in fields if what in f)

    return Model(
        name=name,
        trained=preset["length"],
        scale=scale_of(preset),
        source=source,
        seeds=tuple(training),
        perplexity=_by_length(group, "perplexity"),
        ratio=_by_length(group, "ratio"),
        gradient=float(np.mean([m["gradient"]["tokens"] for _, m in group])),
        mass=float(np.mean([m["gradient"]["mass"] for _, m in group])),
        curve=_means(pair for _, m in group for pair in m["gradient"].get("curve", ())),
        erf=by_eps("tokens"),
        trf=by_eps("trf") if first["encoding"]["mechanism"] == "bias" else {},
        heads={what: by_eps(what) for what in ("heads", "trf_heads")},
        resolution=None if None in resolutions else float(np.mean(resolutions)),
        scores={
            seed: tuple(itertools.takewhile(lambda x: x is not None, s.get("scores", ())))
            for seed, s in scored.items()
        },
        losses=losses,
        learned=tuple(t["learned"] for t in training.values() if t.get("learned")),
        seconds={seed: t["cpu_seconds"] for seed, t in training.items() if "cpu_seconds" in t},
        encoding=first["encoding"],
        named={**preset, "label": _named(first), "window": measured["inference"].get("window")},
        further=_further(group),
    )
