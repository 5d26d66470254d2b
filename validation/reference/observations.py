"""What was observed of each encoding: its prediction beside the means over its runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farfield.theory.encodings import Encoding
from farfield.theory.verdicts import Verdict
from farfield.validation.harness.plan import PlannedEncoding
from farfield.validation.reference.committed import Row
from farfield.validation.reference.predictions import plan, predictions, stand_in
from farfield.validation.reference.results import results as committed_results

HEADS = 8  # of the models of the reference plan
PLAIN = "finite-row TRF(1/100)"
"""The name of the simplest predictor, with which others are compared."""


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
        return not self.bca and self.prediction["verdict"] != Verdict.OUT_OF_SCOPE

    def leak(self, length: int, worst: bool = True) -> float:
        """The registered leak to a test length: of the worst head, or the mean of the heads."""
        values = self.prediction["leak"][str(length)]
        return float(max(values) if worst else np.mean(values))

    def registered(self, kind: str, eps: str = "1/100") -> float:
        """A registered receptive field, the mean of the heads; infinite for a divergent series."""
        fields = self.prediction[kind]
        return math.inf if fields is None else float(np.mean([float(v) for v in fields[eps]]))


_FAMILIES = {
    "alibi equal": "slopes",
    "alibi": "alibi",
    "window": "windows",
    "type": "kernels",
    "example": "kernels",
    "sandwich": "sandwich",
    "kerple": "kerple",
    "rope": "rotations",
    "xpos": "rotations",
}


def family(label: str) -> str:
    """What an encoding of the reference plan is counted with: these stand or fall together."""
    return next((f for k, f in _FAMILIES.items() if label.startswith(k)), label)


def observations(results: Sequence[Row] | None = None, length: int = 64) -> tuple[Observation, ...]:
    """The encodings with results at a training length, in the order of the predictions.

    Args:
        results: committed results in JSON form; None takes those of this package.
        length: the training length in tokens.
    """
    found = committed_results() if results is None else results
    groups: dict[tuple[str, bool], list[tuple[Row, Row]]] = {}
    for run in found:
        if run["preset"]["length"] == length:
            for m in run["measurements"]:
                key = (run["encoding"]["label"], m["inference"]["bca"] is not None)
                groups.setdefault(key, []).append((run, m))
    return tuple(
        _observation(entry, groups[entry["label"], entry["bca"]])
        for entry in predictions()["encodings"]
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


def assumed_bias(label: str, length: int) -> Encoding:
    """The bias whose numbers stood for a label in the registered predictions, causal mask."""
    found = subject_of(label, length).encoding(HEADS)
    return stand_in(found, length, bca=False)[0]


def subject_of(label: str, length: int) -> PlannedEncoding:
    """The encoding that the reference plan calls so."""
    return next(
        subject
        for sweep in plan().sweeps
        if length in sweep.lengths
        for subject in sweep.encodings
        if subject.label == label
    )
