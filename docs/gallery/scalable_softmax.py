r"""
A factor of the logits: scalable softmax
========================================

Scalable softmax [Nakanishi, 2025] multiplies the logits of a query with :math:`n` keys by
:math:`s \log n`, with :math:`s` learned a head, so that attention does not fade in long rows. A
module that has ``factor`` changes logits where one that is called adds to them. Train it with
``Run(encoding="docs/gallery/scalable_softmax.py:ScalableSoftmax")``.
"""

import torch
from torch import Tensor, nn


class ScalableSoftmax(nn.Module):
    """The factor of a layer's logits, shape (heads, queries)."""

    def __init__(self, heads: int, size: int) -> None:
        super().__init__()
        self.s = nn.Parameter(torch.full((heads, 1), 0.43))

    def factor(self, i: Tensor) -> Tensor:
        return self.s * (i + 1).log()
