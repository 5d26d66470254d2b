"""A bias of slopes that are read from the text (CABLE, arXiv 2503.08067, in its simplest form).

Each token has a slope of its own, read from its key; a key at `j` has the sum of the slopes of the
tokens after it, up to the query, taken off its logit.
"""

import torch
from torch import Tensor, nn


class Cable(nn.Module):
    """The bias of a layer, shape (batch, heads, queries, keys)."""

    def __init__(self, heads: int, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(heads, 1, size))
        self.open = nn.Parameter(torch.linspace(0, -5, heads)[:, None])

    def steps(self, k: Tensor) -> Tensor:
        """What each token adds to the bias of all keys before it, shape (batch, heads, keys)."""
        return -nn.functional.softplus((k * self.weight).sum(-1) + self.open)

    def forward(self, q: Tensor, k: Tensor, i: Tensor, j: Tensor) -> Tensor:
        passed = self.steps(k).cumsum(-1)
        return passed[..., i - j[0], None] - passed[..., None, :]
