"""What is cheaper: to read long rows, or to foresee them from short ones?

One short row is timed. The seconds of everything else follow from its work: two operations a
parameter and token, four a number of a query and key that meet. Rows that do not fit into memory
are not read.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import torch

from farfield.validation.far_field.recall import BLOCK, MOST, part_of
from farfield.validation.far_field.subject import ModelOnText
from farfield.validation.models.network import QUERIES, scores_at
from farfield.validation.models.repairs import Repair

ROWS = 8
"""Long rows, whose time a search takes where nothing else is asked."""
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

    def real(self, repair: Repair, to: int) -> float:
        """Seconds of a real row under a change."""
        n = min(repair.cut or to, to)
        return self.of(n, n * min(n, repair.keys(to)) / (1 if repair.window else 2))

    def probed(self, row: int) -> float:
        """Seconds of needles by the probe, and of the loss of one short row."""
        places = 2 * min(row, BLOCK) + MOST * part_of(min(row, BLOCK))
        return self.of(places + row, places**2 / 2 + row**2 / 2)

    def foreseen(self, row: int, rows: int, samples: int) -> float:
        """Seconds of a group of rows in one stage, with the needles of one row."""
        places, far = 2 * min(row, BLOCK) + MOST * part_of(min(row, BLOCK)), row + samples
        plain, stage = rows * row * row / 2, rows * row * (row * 3 / 2 + far)
        return self.of(2 * rows * row + places, plain + stage + places * (places / 2 + far))

    def memory(self, to: int) -> int:
        """Bytes beside the weights that a real row takes."""
        return 4 * to * (_HALF * self.residual + 3 * QUERIES * self.heads)


def timed(subject: ModelOnText) -> Work:
    """A model's work, its speed by one short row on its device."""
    network, live, outline = subject.network, subject.live, subject.outline
    embedded = {id(m.weight) for m in live.modules() if isinstance(m, torch.nn.Embedding)}
    weights = [x for x in live.parameters() if id(x) not in embedded]
    heads = max(layer.heads for layer in outline.layers)
    size = max(layer.rotation.size if layer.rotation else 0 for layer in outline.layers) or (
        outline.width // heads
    )
    work = Work(
        sum(x.numel() for x in weights), len(outline.layers) * heads * size, heads, outline.width
    )
    row = subject.groups[0, :1, :-1]
    scores_at(network, row[:, :16], torch.arange(16), 1)  # the first pass also prepares
    begun = time.perf_counter()
    scores_at(network, row, torch.arange(row.shape[1]), 1).cpu()
    spent = time.perf_counter() - begun
    return replace(work, seconds=spent / work.operations(row.numel(), row.numel() ** 2 / 2))


def lasting(seconds: float) -> str:
    """A time in words.

    >>> lasting(7.3), lasting(600), lasting(9000)
    ('7 s', '10 min', '2.5 h')
    """
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
