"""Trained models as the claims read them: the lines of one encoding in the table of results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from farfield.validation.papers.words import increase
from farfield.validation.results import LAST, SETTING, by_seed, perplexities, results

if TYPE_CHECKING:
    from polars import DataFrame


class Missing(Exception):
    """The data of a claim are not there; the message says why.

    Fields:
        evidence: what there is instead, by name.
    """

    def __init__(self, why: str, evidence: Mapping[str, Any] | None = None) -> None:
        super().__init__(why)
        self.evidence = evidence or {}


@dataclass(frozen=True)
class Model:
    """The models of one encoding in one setting, one a seed; numbers are means over them.

    Fields:
        label: of the encoding; mask: what attention saw, as the table of results has them.
        lines: of the table.
    """

    label: str
    mask: str
    lines: DataFrame

    @cached_property
    def run(self) -> Mapping[str, Any]:
        """What the table says of each of them."""
        return self.lines.row(0, named=True)

    @property
    def name(self) -> str:
        """The label with the mask."""
        return f"{self.label} + {self.mask}" if self.mask else self.label

    @property
    def trained(self) -> int:
        """The training length in tokens."""
        return int(self.run["trained"])

    @property
    def verdict(self) -> str:
        """On the series, as it was registered; empty where it was not."""
        return self.run["verdict"] or ""

    @property
    def scale(self) -> str:
        """Of the models, in words."""
        size = "{preset}: {layers} layers, {width} wide, {heads} heads, trained on {trained} tokens"
        return size.format(**self.run)

    def by(self, protocol: str, x: str, y: str) -> dict[Any, dict[int, float]]:
        """A column by another one and by seed, as `results.by_seed` reads them.

        Raises:
            Missing: the results hold no such line.
        """
        columns = by_seed(self.lines, protocol, x, y)
        if not columns:
            raise Missing(f"the results of {self.name} hold no {y} of protocol {protocol!r}")
        return columns

    def means(self, protocol: str, x: str, y: str) -> dict[Any, float]:
        """The mean of a column over seeds by another one."""
        return {at: float(np.mean([*v.values()])) for at, v in self.by(protocol, x, y).items()}

    def perplexity(self, protocol: str = LAST) -> dict[int, float]:
        """Perplexity by length, geometric means over seeds."""
        by_length = perplexities(self.lines, protocol)
        if not by_length:
            raise Missing(f"the results of {self.name} hold no perplexity of protocol {protocol!r}")
        return {n: math.exp(np.mean(np.log([*v.values()]))) for n, v in by_length.items()}

    @cached_property
    def increase(self) -> float:
        """The largest relative increase of the perplexity beyond the training length."""
        curve = self.perplexity()
        if self.trained not in curve or max(curve) <= self.trained:
            raise Missing(f"the results of {self.name} hold no length beyond the training length")
        return increase(curve, self.trained)

    @cached_property
    def gradient(self) -> dict[int, float]:
        """The share of the gradient on the most recent tokens, by their number."""
        return self.means("gradient", "distance", "gradient")

    @cached_property
    def gradient_field(self) -> float:
        """The gradient receptive field in tokens."""
        return next(iter(self.means("gradient", "eps", "erf").values()))

    @property
    def seconds(self) -> dict[int, float]:
        """Processor time of training by seed."""
        return dict(self.lines.select("seed", "seconds").drop_nulls().iter_rows())

    def field(self, kind: str) -> dict[float, float]:
        """The attention receptive field `erf`, or the `trf` of the same rows, by eps."""
        return self.means("attention", "eps", kind)


@lru_cache(maxsize=32)
def models(trained: int | None = None, folder: str = "first") -> tuple[Model, ...]:
    """The models of one setting, with every mask of inference that was measured.

    Runs that differ in their seed alone make one model. Of several settings (preset, training
    length) the one with the most encodings is read, since perplexities of two do not compare.

    Args:
        trained: only models of this training length; None takes the setting with most encodings.
        folder: the experiment: `first`, the registered runs, `further/windows` and others.

    Raises:
        Missing: there are none.
    """
    lines = results().filter(experiment=folder)
    masked = lines.filter(lines["protocol"] != "training")
    alike: dict[str, list[Model]] = {}
    for part in masked.partition_by("label", "mask", "preset", *SETTING, maintain_order=True):
        shared = {name: part[name][0] for name in ("label", "preset", *SETTING)}
        training = lines.filter(protocol="training", **shared)
        model = Model(shared["label"], part["mask"][0], part.vstack(training))
        if trained in (None, model.trained):
            alike.setdefault(model.scale, []).append(model)
    if not alike:
        raise Missing(f"the results hold no such models of experiment {folder!r}")
    most: list[Model] = max(alike.values(), key=len)
    return tuple(most)


def named(*names: str, trained: int | None = None, folder: str = "first") -> list[Model]:
    """The models of some names, in that order.

    Raises:
        Missing: the results lack one of them.
    """
    by_name = {m.name: m for m in models(trained, folder)}
    if lacking := [n for n in names if n not in by_name]:
        raise Missing(f"the results hold no model {lacking[0]!r}")
    return [by_name[n] for n in names]


def at_both_lengths(*names: str) -> list[Model]:
    """The models of some names trained on 64 tokens, then those trained on 128."""
    return named(*names, trained=64) + named(*names, trained=128)


def unmasked(wanted: Callable[[Model], bool] = lambda m: True) -> list[Model]:
    """The models that attend to the whole row and meet a condition.

    Raises:
        Missing: there are none.
    """
    chosen = [m for m in models() if not m.mask and wanted(m)]
    if not chosen:
        raise Missing("the results hold no such model")
    return chosen


def gradients(*names: str, trained: tuple[int, ...]) -> dict[str, tuple[int, np.ndarray]]:
    """By model, training length and seed: the length, and the gradient's share by 4 tokens, nearest
    first.

    Raises:
        Missing: there are none.
    """
    lines = results().filter(protocol="gradient by token").sort("distance", maintain_order=True)
    shares = {}
    for part in lines.partition_by("label", "trained", "seed", maintain_order=True):
        label, length, seed = part.select("label", "trained", "seed").row(0)
        if label in names and length in trained:
            shares[f"{label}, {length}, seed {seed}"] = (length, part["gradient"].to_numpy())
    if not shares:
        raise Missing("the results hold no gradients by token of these models")
    return shares
