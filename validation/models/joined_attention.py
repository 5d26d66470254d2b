"""One softmax over several sets of keys, joined by their log-sum-exps; sinks, caps, shared heads.

A query may meet some keys at one kind of positions and others at another, or a few keys that
represent many. Each set is a *part* with scaled queries, keys, values and a bias of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

_LEAST = -1e30  # a logit of a key that is not seen, which has a gradient

Part: TypeAlias = "tuple[Tensor, Tensor, Tensor, Tensor]"
"""Queries that are scaled already, the keys and values that they meet, and a bias."""


def joined(parts: Sequence[Part], sink: Tensor | None = None, cap: float | None = None) -> Tensor:
    """One softmax over the keys of several attentions, joined by the logarithms of their sums."""
    parts = [part for part in parts if part[1].shape[2] > 0]  # the kernel of torch ends the process
    if len(parts) == 1 and cap is None:
        return attention(*parts[0], sink)
    each = [(q, of_heads(k, q), of_heads(v, q), bias) for q, k, v, bias in parts]
    alone = _fused if cap is None and all(map(_fuses, each)) else partial(_apart, cap=cap)
    mixed, sums = zip(*(alone(*part) for part in each), strict=True)
    logs = torch.stack(sums)
    total = logs.logsumexp(0)
    if sink is not None:
        total = torch.logaddexp(total, sink.float()[:, None])
    shares = (logs - total).exp()[..., None]
    return (torch.stack(mixed).float() * shares).sum(0).to(mixed[0])


def _apart(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor, cap: float | None = None
) -> tuple[Tensor, Tensor]:
    """An attention, and the logarithms of the sums of its softmax, (rows, heads, queries), which
    are as low as can be for a query without a key."""
    logits = (q @ k.transpose(-2, -1)).float()
    if cap is not None:
        logits = cap * (logits / cap).tanh()
    logits = (logits + bias).clamp(min=_LEAST)
    return logits.softmax(-1).to(v) @ v, logits.logsumexp(-1)


def _fuses(part: Part) -> bool:
    """Whether torch has one kernel for both, which gives no gradient of the sums."""
    q, k, v, _ = part
    graded = torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v))
    return q.device.type == "cpu" and v.shape[-1] == q.shape[-1] and not graded


def _fused(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """The same by the kernel of torch, which keeps no logits: a third of the time."""
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    mask = bias.to(q).expand(*bias.shape[:-2], q.shape[2], k.shape[2])
    mixed, total = kernel(q, k, v, 0.0, False, attn_mask=mask, scale=1.0)
    return mixed, total.where((mask > -math.inf).any(-1), _LEAST)


def of_heads(x: Tensor, q: Tensor) -> Tensor:
    """Keys or values of shared heads, once for each head of the queries."""
    groups = q.shape[1] // x.shape[1]
    return x if groups == 1 else x.repeat_interleave(groups, 1)


def attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, sink: Tensor | None) -> Tensor:
    """Softmax attention of queries that are scaled already; the bias broadcasts."""
    bias, k, v = bias.to(q.dtype), of_heads(k, q), of_heads(v, q)
    if sink is not None:  # a key of value 0
        k, v = (torch.nn.functional.pad(x, (0, 0, 0, 1)) for x in (k, v))
        more = sink.to(bias)[:, None, None].expand(-1, q.shape[2], -1)
        own = bias.expand(bias.shape[0], len(sink), q.shape[2], -1)
        bias = torch.cat([own, more.expand(len(own), -1, -1, -1)], -1)
    return scaled_dot_product_attention(q, k, v, bias, scale=1.0)
