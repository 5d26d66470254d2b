"""Causal softmax attention with a bias that depends on the distance alone.

Every path has one interface, `path(query, key, value, bias, visible)`, and computes

    o_i = sum_j softmax_j(q_i . k_j / sqrt(d) + p(i - j)) v_j     over the keys j that i sees.

`materialised` is the specification: float64, the whole matrix, written to be read. `toeplitz` is
what training and evaluation use: since row `i` of the bias is `p` shifted by `i`, a strided view
of one vector is the mask of a whole chunk of queries, and memory stays linear in the length.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from farfield.validation.configuration import CAUSAL, Visibility

Path = Callable[[Tensor, Tensor, Tensor, Tensor | None, Visibility], Tensor]


def materialised(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None = None,
    visible: Visibility = CAUSAL,
) -> Tensor:
    """Attention in float64 with every matrix in memory: the specification of the other paths.

    Args:
        query: shape (batch, heads, length, head size).
        key: the same shape.
        value: the same shape.
        bias: `p(n)` for n = 0 .. length - 1, shape (heads or 1, length), may hold -inf but not at
            n = 0; None for no bias.
        visible: which keys a query sees.

    Returns:
        The outputs, shape of `value`, rounded to its type.

    >>> x = torch.ones(1, 1, 3, 2)
    >>> materialised(x, x, x.cumsum(2))[0, 0, :, 0]
    tensor([1.0000, 1.5000, 2.0000])
    """
    length, size = query.shape[-2:]
    position = torch.arange(length, device=query.device)
    distance = position[:, None] - position
    scores = query.double() @ key.double().transpose(-2, -1) / math.sqrt(size)
    if bias is not None:
        scores = scores + bias.double()[:, distance.clamp(min=0)]
    seen = visible.sees(position[:, None], position)
    weights = scores.masked_fill(~seen, -math.inf).softmax(-1)
    return (weights @ value.double()).to(value.dtype)


def toeplitz(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None = None,
    visible: Visibility = CAUSAL,
    chunk: int = 256,
) -> Tensor:
    """Attention in chunks of queries whose masks are views of one vector; no matrix is stored.

    With `v = [p(L-1), ..., p(0), -inf, ..., -inf]` and the queries of a chunk `[start, stop)` in
    reverse order, entry (row a, key j) of the mask is `v[L - stop + a + j]`: both strides are 1.

    Args:
        query: shape (batch, heads, length, head size), as in `materialised`.
        key: the same shape.
        value: the same shape.
        bias: shape (heads or 1, length), or None.
        visible: which keys a query sees.
        chunk: queries a chunk; with blockwise causal attention a chunk is a block.

    Returns:
        The outputs, shape and type of `value`; differentiable in all tensors.

    >>> x = torch.randn(1, 2, 9, 4, dtype=torch.float64)
    >>> p = -torch.arange(9.0, dtype=torch.float64).expand(2, 9)
    >>> torch.allclose(toeplitz(x, x, x, p, chunk=4), materialised(x, x, x, p))
    True
    """
    if bias is None and visible == CAUSAL:
        return scaled_dot_product_attention(query, key, value, is_causal=True)
    length = query.shape[-2]
    table = query.new_zeros(1, length) if bias is None else bias
    if visible.window is not None:
        beyond = torch.arange(length, device=table.device) >= visible.window
        table = table.masked_fill(beyond, -math.inf)
    vector = torch.cat([table.flip(-1), torch.full_like(table, -math.inf)], -1)
    outputs = []
    step = visible.bca or chunk
    for start in range(0, length, step):
        stop = min(start + step, length)
        first = visible.first(start)
        mask = vector.as_strided(
            (1, len(table), stop - start, stop - first),
            (0, 2 * length, 1, 1),
            length - stop + first,
        )
        output = scaled_dot_product_attention(
            query[:, :, start:stop].flip(-2),
            key[:, :, first:stop],
            value[:, :, first:stop],
            attn_mask=mask,
        )
        outputs.append(output.flip(-2))
    return torch.cat(outputs, -2)
