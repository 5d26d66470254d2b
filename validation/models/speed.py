"""How long a model takes for some rows, by one short row that is timed.

The seconds of all other rows follow from their work: two operations a parameter and token, four a
number of a query and key that meet.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from farfield.numerics.masks import CAUSAL
from farfield.validation.harness.measure import token_losses
from farfield.validation.models.network import QUERIES
from farfield.validation.models.outline import ModelOutline
from farfield.validation.progress import Progress, silent

SHORT = 256
"""Tokens at most of the row that is timed."""
_HALF = 16  # numbers a token and number of the residual while a layer is computed


@dataclass(frozen=True)
class Work:
    """A model's work and speed.

    Args:
        parameters: that multiply each token.
        width: numbers of all queries of a token, over all layers.
        heads: of a layer.
        residual: numbers of a token between layers.
        seconds: an operation, by one short row.
    """

    parameters: int
    width: int
    heads: int
    residual: int
    seconds: float = 0.0

    def of(self, tokens: float, pairs: float) -> float:
        """Seconds of some tokens, and pairs of queries and keys."""
        return self.seconds * self.operations(tokens, pairs)

    def operations(self, tokens: float, pairs: float) -> float:
        """Operations of a forward pass."""
        return 2 * self.parameters * tokens + 4 * self.width * pairs

    def memory(self, to: int) -> int:
        """Bytes beside the weights that a row of so many tokens takes."""
        return 4 * to * (_HALF * self.residual + 3 * QUERIES * self.heads)


def timed(outline: ModelOutline, live: Any, read: Callable[[int], object], tokens: int) -> Work:
    """A model's work, and its speed by one short row on its device.

    Args:
        outline: what its folder says.
        live: the model itself.
        read: reads a row of so many tokens, and waits for what it gives.
        tokens: of the row.
    """
    embedded = {id(m.weight) for m in live.modules() if isinstance(m, torch.nn.Embedding)}
    weights = [x for x in live.parameters() if id(x) not in embedded]
    attending = [layer for layer in outline.layers if layer.attends]
    heads = max((layer.heads for layer in attending), default=1)
    size = max((layer.rotation.size for layer in attending if layer.rotation), default=0)
    width = len(attending) * heads * (size or outline.width // heads)
    work = Work(sum(x.numel() for x in weights), width, heads, outline.width)
    gpu = any(x.is_cuda for x in weights)  # where kernels of each length are prepared
    read(tokens if gpu else min(16, tokens))  # the first pass also prepares
    begun = time.perf_counter()
    read(tokens)
    spent = time.perf_counter() - begun
    return replace(work, seconds=spent / work.operations(tokens, tokens**2 / 2))


def foretell(
    opened: Any,
    tokens: np.ndarray,
    rows: Iterable[tuple[float, int]],
    what: str,
    progress: Progress,
) -> None:
    """Say how long some rows take, before the first of them is read.

    Args:
        opened: the model.
        tokens: of a text, the first of which are timed.
        rows: how many rows, and the tokens of each.
        what: is read, in words.
        progress: told; where it is silent, or the text too short, nothing is timed.
    """
    each = [*rows]
    most = min(SHORT, *(length for _, length in each))
    if progress is silent or len(tokens) <= most:
        return

    def read(length: int) -> None:
        token_losses(opened, tokens[None, : length + 1].astype(np.int64), CAUSAL, 1)

    work = timed(opened.model, opened.network, read, most)
    seconds = sum(count * work.of(length, length**2 / 2) for count, length in each)
    progress(f"about {lasting(seconds)}: {what}", 0, 0)


def lasting(seconds: float) -> str:
    """A time in words.

    >>> lasting(7.3), lasting(600), lasting(9000)
    ('7 s', '10 min', '2.5 h')
    """
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
