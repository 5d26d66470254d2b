r"""
A bias that is a small network: FIRE
====================================

FIRE [Li et al., 2024] gives a network the distance in units of the row, both on a scale of
logarithms: :math:`f(\psi(i - j) / \psi(\max(L, i)))` with :math:`\psi(x) = \log(1 + |c| x)`.
Train it with ``Run(encoding="docs/gallery/fire.py:Fire")``.
"""

import torch
from torch import Tensor, nn


class Fire(nn.Module):
    """The bias of a layer, shape (heads, queries, keys)."""

    def __init__(self, heads: int, size: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, heads))
        self.c, self.least = (nn.Parameter(torch.tensor(x)) for x in (0.1, 64.0))

    def forward(self, q: Tensor, k: Tensor, i: Tensor, j: Tensor) -> Tensor:
        distance = (i[:, None] - j).clamp(min=0)
        row = torch.maximum(i.to(self.least), self.least.abs())[:, None]
        share = (self.c * distance).abs().log1p() / (self.c * row).abs().log1p()
        return self.mlp(share[..., None]).permute(2, 0, 1)
