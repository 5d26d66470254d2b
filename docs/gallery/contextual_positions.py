r"""
Positions that count what matters: CoPE
=======================================

In CoPE [Golovneva et al., 2024] a query decides which keys count as a step. The position of key
:math:`j` is :math:`p_{ij} = \sum_{l = j}^{i} \sigma(q_i \cdot k_l / \sqrt{d})`, and the bias is
:math:`q_i \cdot e[p_{ij}]`, with learned vectors between which it interpolates. Train it with
``Run(encoding="docs/gallery/contextual_positions.py:Cope")``. By its ``gates`` and ``counted``
``farfield foresee`` knows what a far key gets.
"""

import math

import torch
from torch import Tensor, nn

POSITIONS = 32


class Cope(nn.Module):
    """The bias of a layer, shape (batch, heads, queries, keys)."""

    def __init__(self, heads: int, size: int) -> None:
        super().__init__()
        self.vectors = nn.Parameter(torch.zeros(heads, size, POSITIONS))

    def gates(self, q: Tensor, k: Tensor) -> Tensor:
        """What each key adds to the count of a query, shape (batch, heads, queries, keys)."""
        return (q @ k.mT / math.sqrt(q.shape[-1])).sigmoid()

    def forward(self, q: Tensor, k: Tensor, i: Tensor, j: Tensor) -> Tensor:
        gates = self.gates(q, k) * (j <= i[:, None])
        return self.counted(q, gates.flip(-1).cumsum(-1).flip(-1))

    def counted(self, q: Tensor, c: Tensor) -> Tensor:
        """The bias of each query at its counts, shape (batch, heads, queries, keys)."""
        at = c.clamp(max=POSITIONS - 1)
        below, above = at.floor().long(), at.ceil().long()
        logits = q @ self.vectors
        low, high = logits.gather(-1, below), logits.gather(-1, above)
        return low + (high - low) * (at - below)
