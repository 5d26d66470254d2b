"""What a trained model rests on, by what its loss does when a part is changed at test time.

A change is made in the attention path or in the text, never in the weights, and its price is the
difference of losses on the same targets. Heads are counted from 0, the same in every layer.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

from farfield.validation.harness.attention import Path, fused
from farfield.validation.harness.corpus import samples_of
from farfield.validation.harness.measures.perplexity import mean_of, token_losses
from farfield.validation.harness.model import Transformer
from farfield.validation.harness.plan import Job
from farfield.validation.harness.visibility import CAUSAL, Visibility
from farfield.validation.json_files import write
from farfield.validation.reference.committed import Row, rounded

RIDGE = 1e-3
"""Penalty of the probe, in units of the mean square of its inputs."""


@dataclass(frozen=True)
class MeasuredFile:
    """A committed file with what was measured of each model, one a line.

    Args:
        name: of the file, in this folder.
    """

    name: str

    @property
    def file(self) -> File:
        """Its path."""
        return File(__file__).resolve().parent / self.name

    def rows(self) -> tuple[Row, ...]:
        """What is committed, a model each."""
        text = self.file.read_text(encoding="utf-8") if self.file.exists() else "[]"
        return tuple(json.loads(text))

    def extend(self, jobs: Iterable[Job], measured: Callable[[Job], Row | None]) -> Iterator[str]:
        """Measure the models that are not in the file, and write each behind the others at once.

        Args:
            jobs: the runs of the models.
            measured: what to write of one; None where there is no model.

        Returns:
            A line for each that was measured.
        """
        for job in jobs:
            known = self.rows()
            if any(row["key"] == job.key for row in known) or (row := measured(job)) is None:
                continue
            lines = ",\n".join(
                json.dumps(one) for one in (*known, rounded({"key": job.key, **row}))
            )
            write(self.file, f"[{lines}]\n".encode())
            yield f"{job.name}: measured"


def silenced(heads: Sequence[int], every: int = 1) -> Path:
    """The path on which some heads put nothing out.

    Args:
        heads: counted from 0.
        every: in one layer of so many, from the first; the depth of a model for the first alone.

    >>> x = torch.ones(1, 2, 3, 4)
    >>> path = silenced([0], every=2)
    >>> [path(x, x, x, None, CAUSAL)[0, :, -1, 0].tolist() for _ in range(2)]
    [[0.0, 1.0], [1.0, 1.0]]
    """
    calls = itertools.count()

    def path(*given: Any) -> Tensor:
        found = fused(*given).clone()
        if next(calls) % every == 0:
            found[:, list(heads)] = 0
        return found

    return path


def tempered(heads: Sequence[int], length: int) -> Path:
    """The path on which the logits of some heads are sharper on long rows.

    Those of a row with `i > length` keys are multiplied by `log i / log length`.
    """

    def path(
        query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, visible: Visibility
    ) -> Tensor:
        keys = torch.arange(1, query.shape[2] + 1, device=query.device)
        factor = (keys.clamp(min=length).log() / math.log(length)).to(query.dtype)
        query = query.clone()
        query[:, list(heads)] *= factor[:, None]
        return fused(query, key, value, bias, visible)

    return path


@dataclass(frozen=True)
class LossChange:
    """The change of a loss.

    Fields:
        nats: mean loss with the change less that without, on the same targets.
        standard_error: the standard error of `nats` over the targets.
        targets: how many.
    """

    nats: float
    standard_error: float
    targets: int


def loss_change(changed: np.ndarray, plain: np.ndarray) -> LossChange:
    """Of losses with and without a change, one a target.

    >>> loss_change(np.array([1.0, 3.0]), np.array([1.0, 1.0]))
    LossChange(nats=1.0, standard_error=1.0, targets=2)
    """
    difference = np.ravel(changed) - np.ravel(plain)
    return LossChange(*mean_of(difference), len(difference))


def last_losses(model: Transformer, rows: np.ndarray, path: Path = fused) -> np.ndarray:
    """The loss of the last token of each row in nats, shape (rows,)."""
    return token_losses(model, rows, CAUSAL, path, last=1)[:, 0]


def foreign(rows: np.ndarray, near: int) -> np.ndarray:
    """The rows with all but the `near` last tokens before the target those of another row.

    >>> foreign(np.arange(8).reshape(2, 4), 1)
    array([[4, 5, 2, 3],
           [0, 1, 6, 7]])
    """
    far = rows.shape[1] - near - 1
    return np.concatenate([np.roll(rows, 1, axis=0)[:, :far], rows[:, far:]], axis=1)


@dataclass(frozen=True)
class Readout:
    """How well the position of a token can be read from what the model knows there.

    Fields:
        inside, beyond: Spearman's rank correlation of position and a linear probe of the last
            residual, on held-out segments, at positions up to the training length and after it; 0
            where the probe says one thing.
        tokens: that it was judged on.
    """

    inside: float
    beyond: float
    tokens: int


@torch.no_grad()
def position_readout(
    model: Transformer, text: np.ndarray, length: int, tested: int, *, count: int = 32
) -> Readout:
    """A linear probe of the position, by ridge regression of its logarithm on the last residual.

    The probe is fitted on every other one of `count` segments, at all positions up to `tested`,
    and judged on the rest.

    Raises:
        InputError: the text is too short.
    """
    rows = samples_of(text, count, tested)[:, :-1]
    residuals = []
    for row in rows:  # one at a time bounds the memory
        tokens = torch.from_numpy(row)[None].to(model.device)
        residuals.append(model.hidden(model.embed(tokens))[0].double().cpu().numpy())
    place = np.arange(1, tested + 1)
    inputs = np.concatenate([np.stack(residuals), np.ones((len(rows), tested, 1))], axis=2)
    fit = inputs[::2].reshape(-1, inputs.shape[2])
    gram = fit.T @ fit
    gram += RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
    weights = np.linalg.solve(gram, fit.T @ np.tile(np.log(place), len(inputs[::2])))
    read = inputs[1::2] @ weights

    def rank(part: slice) -> float:
        told = read[:, part].ravel()
        at = np.tile(place[part], len(read))
        return float(spearmanr(at, told).statistic) if np.ptp(told) else 0.0

    return Readout(rank(slice(0, length)), rank(slice(length, None)), read.size)
