"""Intervals: of a mean over rows; split conformal ones for text that nobody has read.

A score is `(measured - said) / (UNIT + |said|)`: the log ratio is forecast on some rows of a text,
and measured on others. Of `n` scores, the interval of a new model is

    said + (UNIT + |said|) [-c, c],    c the ceil(share (n + 1))-th smallest absolute score.

If the new model is exchangeable with those of the scores, the interval holds with probability
`share` at least. Models of one family are alike, so coverage is judged on families that are left
out (`experiments/far_field_2`).
"""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

UNIT = 0.1  # a log ratio below which errors do not grow with the forecast
SHARE = 0.9
RESIDUALS = Path(__file__).with_name("residuals.csv")


class Residual(NamedTuple):
    """A model whose long rows were foreseen on some rows, and measured on others.

    Fields:
        family: of its encoding.
        times: the length of the long rows, in training lengths.
        said, measured: log ratios.
    """

    family: str
    times: int
    said: float
    measured: float

    @property
    def score(self) -> float:
        """The error in units of the forecast's size."""
        return (self.measured - self.said) / (UNIT + abs(self.said))


@functools.cache
def residuals() -> tuple[Residual, ...]:
    """The models of `residuals.csv`, which the last registration wrote."""
    return tuple(
        Residual(x["family"], int(x["times"]), float(x["said"]), float(x["measured"]))
        for x in csv.DictReader(RESIDUALS.read_text(encoding="utf-8").splitlines())
    )


def radius(scores: Sequence[float], share: float = SHARE) -> float:
    """The conformal quantile of absolute scores; infinite where there are too few.

    >>> radius([0.1, -0.3, 0.2, 0.4], 0.8), radius([0.1], 0.9)
    (0.4, inf)
    """
    place = math.ceil(share * (len(scores) + 1) - 1e-9)
    return sorted(map(abs, scores))[place - 1] if place <= len(scores) else math.inf


def around(said: float, scores: Sequence[float], share: float = SHARE) -> tuple[float, float]:
    """The interval of a forecast, from the scores of other models."""
    half = (UNIT + abs(said)) * radius(scores, share)
    return said - half, said + half


def elsewhere(said: float, times: float, share: float = SHARE) -> tuple[float, float]:
    """Where the log ratio is on text like the one that was read.

    Args:
        said: the forecast.
        times: the length of the long rows, in training lengths. Scores are those of the nearest
            length that was measured, by ratios.
        share: of such intervals that hold.

    >>> low, high = elsewhere(0.5, 16)
    >>> low < 0.5 < high
    True
    """
    known = {x.times for x in residuals()}
    nearest = min(known, key=lambda n: abs(math.log(n / times)))
    return around(said, [x.score for x in residuals() if x.times == nearest], share)


def mean_and_half(values: np.ndarray) -> tuple[float, float]:
    """The mean of values, and half of its 95 % interval by Student's distribution.

    >>> mean_and_half(np.array([1.0, 1.0, 1.0]))
    (1.0, 0.0)
    """
    error = values.std(ddof=1) / math.sqrt(len(values))
    return float(values.mean()), float(error * student.ppf(0.975, len(values) - 1))
