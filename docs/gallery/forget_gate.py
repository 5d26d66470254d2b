r"""
A bias that depends on what is read: a forget gate
==================================================

In the Forgetting Transformer [Lin et al., 2025] each token lets go of a part of what came before:
the bias is :math:`\sum_{l = j + 1}^{i} \log f_l` with a gate :math:`f_l` between 0 and 1. Here the
gate reads the token's key. Train it with
``Run(encoding="docs/gallery/forget_gate.py:ForgetGate")``. By its ``steps`` ``farfield foresee``
knows what a far key gets.
"""

import torch
from torch import Tensor, nn


class ForgetGate(nn.Module):
    """The bias of a layer, shape (batch, heads, queries, keys)."""

    def __init__(self, heads: int, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(heads, 1, size))
        self.open = nn.Parameter(torch.linspace(2, 7, heads)[:, None])

    def steps(self, k: Tensor) -> Tensor:
        """What each token adds to the bias of the keys before it, shape (batch, heads, keys)."""
        share = self.open[..., None] / k.shape[-1]  # in the sum: torch 2.11 does not compile a
        return nn.functional.logsigmoid((k * self.weight + share).sum(-1))  # cumsum that adds it

    def forward(self, q: Tensor, k: Tensor, i: Tensor, j: Tensor) -> Tensor:
        kept = self.steps(k).cumsum(-1)  # log of what is left of the first token, at each key
        return kept[..., i - j[0], None] - kept[..., None, :]
