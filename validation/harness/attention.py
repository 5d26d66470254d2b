"""Causal softmax attention with a bias that depends on the distance alone.

Every path has one interface, `path(query, key, value, bias, visible)`, and computes

    o_i = sum_j softmax_j(q_i . k_j / sqrt(d) + p(i - j)) v_j     over the keys j that i sees.

Queries, keys and values have the shape (batch, heads, length, head size), and so has the result, in
the type of the values. The bias is `p(n)` for n = 0 .. length - 1, shape (heads or 1, length); it
may hold -inf but not at n = 0; None is no bias. `visible` says which keys a query sees.

`materialised` is the specification: float64, the whole matrix, written to be read. `toeplitz` is
the path of a CPU. Row `i` of the bias is `p` shifted by `i`, so a strided view of one vector is the
mask of a whole chunk of queries. Memory stays linear in the length. Heads whose bias falls
below what float32 can hold are computed in a band. `flexible` is the path of a GPU, one kernel with
the bias as its score function and block masks made by arithmetic. `fused` picks the
fastest path for the device. A `LogitTransform` describes soft-capping and attention sinks, and
`transformed_attention` computes them on every device. This file needs torch alone.
"""

from __future__ import annotations

import functools
import itertools
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import AuxRequest, BlockMask, flex_attention
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from .mechanism import CAUSAL, Visibility

_CHUNK, _SHORT_CHUNK = 512, 256  # queries at a time, in texts beyond 1024 tokens and to there
_BACKWARD_CHUNK = 32  # of a learned bias, whose weights are made anew and should stay in the cache
_NOTHING = {torch.float64: -745.2}  # log of the largest weight that rounds to 0; else float32's
_NOTHING_FLOAT32 = -104.0

Path = Callable[..., Tensor]
"""Called as `path(query, key, value, bias, visible)`; with `weighting=` besides, where that is not
plain."""


@dataclass(frozen=True, eq=False)
class LogitTransform:
    """The changes to a layer's logits before softmax, or in its denominator.

    Args:
        cap: of a soft cap, `cap tanh(q.k/sqrt(d)/cap)` before the bias; None without.
        sink: logits of a learned constant in the denominator, a key of value 0, shape (heads,);
            None without.
    """

    cap: float | None = None
    sink: Tensor | None = None

    @property
    def plain(self) -> bool:
        """Whether there is nothing but softmax."""
        return self.cap is None and self.sink is None

    def content(self, logits: Tensor) -> Tensor:
        """Content logits as they enter the softmax."""
        return logits if self.cap is None else self.cap * (logits / self.cap).tanh()

    def softmax(self, scores: Tensor) -> Tensor:
        """Weights along the last axis, shape (batch, heads, rows, keys)."""
        if self.sink is None:
            return scores.softmax(-1)
        constant = self.sink.to(scores)[:, None, None].expand(*scores.shape[:-1], 1)
        return torch.cat([scores, constant], -1).softmax(-1)[..., :-1]


PLAIN = LogitTransform()


def materialised(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None = None,
    visible: Visibility = CAUSAL,
    weighting: LogitTransform = PLAIN,
) -> Tensor:
    """Attention in float64 with every matrix in memory: the specification of the other paths.

    >>> x = torch.ones(1, 1, 3, 2)
    >>> materialised(x, x, x.cumsum(2))[0, 0, :, 0]
    tensor([1.0000, 1.5000, 2.0000])
    """
    at = torch.arange(query.shape[-2], device=query.device)
    wide = (query.double(), key.double(), value.double())
    return _matrix(*wide, bias, visible, weighting, at, at).to(value.dtype)


def _matrix(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    visible: Visibility,
    weighting: LogitTransform,
    at: Tensor,
    keys: Tensor,
) -> Tensor:
    """Attention of queries at some positions to keys at some positions, in the type of both."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    scores = weighting.content(scores)
    if bias is not None:
        scores = scores + bias[:, (at[:, None] - keys).clamp(min=0)].to(scores.dtype)
    seen = visible.sees(at[:, None], keys)
    return weighting.softmax(scores.masked_fill(~seen, -math.inf)) @ value


def toeplitz(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None = None,
    visible: Visibility = CAUSAL,
    chunk: int | None = None,
) -> Tensor:
    """Attention in chunks of queries whose masks are views of one vector; no matrix is stored.

    With `v = [p(L-1), ..., p(0), -inf, ..., -inf]` and the queries of a chunk `[start, stop)` in
    reverse order, entry (row a, key j) of the mask is `v[L - stop + a + j]`: both strides are 1.

    A head sees only its `bands`: keys beyond have weights that round to 0 in the type of the
    computation. With blockwise causal attention a chunk is a block. The bias is float32 at least.
    The result is differentiable once in all tensors.

    >>> x = torch.randn(1, 2, 9, 4, dtype=torch.float64)
    >>> p = -torch.arange(9.0, dtype=torch.float64).expand(2, 9)
    >>> torch.allclose(toeplitz(x, x, x, p, chunk=4), materialised(x, x, x, p))
    True
    """
    if bias is None and visible == CAUSAL:
        return scaled_dot_product_attention(query, key, value, is_causal=True)
    length = query.shape[-2]
    table = query.new_zeros(1, length, dtype=_exact(query)) if bias is None else bias
    if visible.window is not None:
        beyond = torch.arange(length, device=table.device) >= visible.window
        table = table.masked_fill(beyond, -math.inf)
    with torch.autocast(query.device.type, enabled=False):
        if table.requires_grad and torch.is_grad_enabled():
            result: Tensor = _LearnedToeplitz.apply(query, key, value, table, visible, chunk)
            return result
        return _by_bands(query, key, value, table, visible, chunk)


def bands(query: Tensor, key: Tensor, table: Tensor) -> list[int]:
    """How many of the nearest keys can have a weight that is not 0, for each row of a bias.

    A row's logits differ by at most `lam = 2 max |q| max |k| / sqrt(d)`, for the queries and keys
    at hand. Where `p(n) - p(0) + lam` is below the logarithm of what rounds to 0, every weight at
    distance `n`, relative to the weight at distance 0, rounds to 0 too.

    >>> x = torch.ones(1, 1, 1000, 4)
    >>> bands(x, x, -torch.arange(1000.0)[None])
    [109]
    """
    norms = [x.detach().to(table.dtype).norm(dim=-1).amax((0, 2)) for x in (query, key)]
    spread = 2 * norms[0] * norms[1] / math.sqrt(query.shape[-1])
    spread = spread if len(table) > 1 else spread.amax(0, keepdim=True)
    least = table[:, :1] + _NOTHING.get(query.dtype, _NOTHING_FLOAT32) - spread[:, None]
    counted = ~(table < least)  # a norm that is no number bounds nothing
    last = torch.arange(1, table.shape[1] + 1, device=table.device) * counted
    return [max(1, int(width)) for width in last.amax(-1)]


def _by_bands(
    query: Tensor, key: Tensor, value: Tensor, table: Tensor, visible: Visibility, chunk: int | None
) -> Tensor:
    """Neighbouring heads of similar bands together, each group in chunks."""
    length = query.shape[-2]
    widths = bands(query, key, table) if length > (chunk or _SHORT_CHUNK) else [length]
    rounded = [min(length, 1 << (width - 1).bit_length()) for width in widths]
    if len(set(rounded)) == 1:
        return _by_chunks(query, key, value, table, visible, max(widths), chunk)
    parts, start = [], 0
    for _, group in itertools.groupby(rounded):  # neighbours, so that a group is a view
        heads = slice(start, start := start + len(list(group)))
        q, k, v, rows = query[:, heads], key[:, heads], value[:, heads], table[heads]
        parts.append(_by_chunks(q, k, v, rows, visible, max(widths[heads]), chunk))
    return torch.cat(parts, 1)


def _by_chunks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    table: Tensor,
    visible: Visibility,
    width: int,
    chunk: int | None,
) -> Tensor:
    length, vector = query.shape[-2], _vector(table)
    parts = []
    if chunk is None:  # a chunk of c queries takes c + width keys a query
        chunk = _SHORT_CHUNK if length <= 1024 else _CHUNK
        chunk = min(chunk, max(128, width // 2))
    step = visible.bca or chunk
    for start in range(0, length, step):
        stop = min(start + step, length)
        first = max(visible.first(start), start - width + 1)
        mask = _mask(vector, length, first, start, stop)[None]
        q, k, v = query[:, :, start:stop].flip(-2), key[:, :, first:stop], value[:, :, first:stop]
        if query.device.type == "cuda":  # its kernels take masks in one type and in whole rows
            q, k, v, mask = q.to(mask.dtype), k.to(mask.dtype), v.to(mask.dtype), mask.contiguous()
        output = scaled_dot_product_attention(q, k, v, attn_mask=mask)
        parts.append(output.flip(-2).to(value.dtype))
    return torch.cat(parts, -2)


def _vector(table: Tensor) -> Tensor:
    return torch.cat([table.flip(-1), torch.full_like(table, -math.inf)], -1)


def _mask(vector: Tensor, length: int, first: int, start: int, stop: int) -> Tensor:
    """The view, shape (rows of the table, stop - start, stop - first), for queries in reverse."""
    return vector.as_strided(
        (len(vector), stop - start, stop - first), (2 * length, 1, 1), length - stop + first
    )


def _exact(tensor: Tensor) -> torch.dtype:
    return torch.float64 if tensor.dtype == torch.float64 else torch.float32


class _LearnedToeplitz(torch.autograd.Function):
    """The same with a gradient of the bias: sums of the scores' gradient along diagonals.

    The backward pass computes the weights of a chunk of queries again, so memory stays linear.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        table: Tensor,
        visible: Visibility,
        chunk: int | None,
    ) -> Tensor:
        output = _by_bands(query, key, value, table, visible, chunk)
        ctx.save_for_backward(query, key, value, table, output)
        ctx.visible, ctx.chunk = visible, chunk or _BACKWARD_CHUNK
        return output

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        like = ctx.saved_tensors[0]
        query, key, value, table, output, gradient = (
            x.to(_exact(like)).contiguous() for x in (*ctx.saved_tensors, gradient)
        )
        length, scale = query.shape[-2], 1 / math.sqrt(query.shape[-1])
        by_query, by_key, by_value = (torch.zeros_like(x) for x in (query, key, value))
        vector = _vector(table)
        by_vector = torch.zeros_like(vector)
        inner = (gradient * output).sum(-1, keepdim=True)
        step = ctx.visible.bca or ctx.chunk
        for start in range(0, length, step):
            stop = min(start + step, length)
            first = ctx.visible.first(start)
            q, g, d = (x[:, :, start:stop].flip(-2) for x in (query, gradient, inner))
            k, v = key[:, :, first:stop], value[:, :, first:stop]
            scores = (q * scale) @ k.transpose(-2, -1)
            scores += _mask(vector, length, first, start, stop)
            weights = scores.softmax(-1)
            by_scores = (g @ v.transpose(-2, -1)).sub_(d).mul_(weights)
            by_query[:, :, start:stop] = (by_scores @ k).flip(-2) * scale
            by_key[:, :, first:stop] += by_scores.transpose(-2, -1) @ (q * scale)
            by_value[:, :, first:stop] += weights.transpose(-2, -1) @ g
            summed, begin = by_scores.sum(0), length - stop + first
            along = diagonals(summed.sum(0, keepdim=True) if len(table) == 1 else summed)
            by_vector[:, begin : begin + along.shape[1]] += along
        grads = (x.to(like.dtype) for x in (by_query, by_key, by_value))
        return (*grads, by_vector[:, :length].flip(-1), None, None)


def diagonals(matrix: Tensor) -> Tensor:
    """Sums over entries with the same `row + column`, shape (..., rows + columns - 1).

    >>> diagonals(torch.tensor([[[1.0, 2, 3], [10, 20, 30]]]))
    tensor([[ 1., 12., 23., 30.]])
    """
    heads, rows, columns = matrix.shape
    padded = matrix.new_zeros(heads, rows, columns + rows)
    padded[:, :, :columns] = matrix
    width = columns + rows - 1  # a row of this width begins one entry earlier than the one above
    return padded.flatten(1)[:, : rows * width].view(heads, rows, width).sum(1)


# -- the last queries alone -----------------------------------------------------------------------


def last_queries_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None = None,
    visible: Visibility = CAUSAL,
    weighting: LogitTransform = PLAIN,
) -> Tensor:
    """Attention of the last queries of a text to all of its keys, their scores in one matrix.

    >>> x = torch.randn(1, 2, 9, 4, dtype=torch.float64)
    >>> torch.allclose(last_queries_attention(x[:, :, 7:], x, x), materialised(x, x, x)[:, :, 7:])
    True
    """
    keys = torch.arange(key.shape[-2], device=key.device)
    at, exact = keys[-query.shape[-2] :], _exact(key)
    with torch.autocast(query.device.type, enabled=False):
        q, k, v = (x.to(exact) for x in (query, key, value))
        if not weighting.plain:
            return _matrix(q, k, v, bias, visible, weighting, at, keys).to(value.dtype)
        table = key.new_zeros(1, len(keys), dtype=exact) if bias is None else bias
        mask = table[:, (at[:, None] - keys).clamp(min=0)].to(exact)
        mask = mask.masked_fill(~visible.sees(at[:, None], keys), -math.inf)
        return scaled_dot_product_attention(q, k, v, attn_mask=mask[None]).to(value.dtype)


# -- soft caps, learned sinks, first keys ---------------------------------------------------------


def transformed_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None = None,
    visible: Visibility = CAUSAL,
    weighting: LogitTransform = PLAIN,
    chunk: int = 128,
) -> Tensor:
    """Attention with a weighting or with first keys that are kept, a chunk of queries at a time.

    Memory is linear in the length: the weights of a chunk are made again in the backward pass.

    >>> x = torch.randn(1, 2, 9, 4, dtype=torch.float64)
    >>> bent = LogitTransform(cap=0.5, sink=torch.ones(2))
    >>> torch.allclose(transformed_attention(x, x, x, weighting=bent, chunk=4),
    ...                materialised(x, x, x, weighting=bent))
    True
    """
    outputs = []
    for start in range(0, query.shape[-2], chunk):
        at = torch.arange(start, min(start + chunk, query.shape[-2]), device=query.device)
        first, stop = visible.first(start), start + len(at)
        early = range(min(visible.sinks, first))
        keys = torch.tensor([*early, *range(first, stop)], device=query.device)
        q, k, v = query[:, :, start:stop], key[:, :, keys], value[:, :, keys]
        part = (q, k, v, bias, visible, weighting, at, keys)
        again = torch.is_grad_enabled() and any(x.requires_grad for x in (query, key, value))
        outputs.append(checkpoint(_matrix, *part, use_reentrant=False) if again else _matrix(*part))
    return torch.cat(outputs, -2)


# -- one kernel on a GPU --------------------------------------------------------------------------

ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


@functools.lru_cache(64)
def blocks(
    visible: Visibility,
    length: int,
    *,
    reach: tuple[int, ...] = (),
    widths: tuple[int, ...] = (),
    sinks: int = 0,
    device: torch.device | str = "cpu",
    block: int = 128,
) -> BlockMask:
    """FlexAttention's block mask of the visible keys, from the ends of the blocks alone.

    Args:
        visible: which keys a query sees.
        length: of the row, in tokens.
        reach: keys that a head sees at most, its own included: one number, or one a head; none for
            all.
        widths: the same, but for the first keys.
        sinks: how many first keys.
        device: of the mask.
        block: side of a block.

    >>> blocks(Visibility(window=100), 512).to_dense()[0, 0]
    tensor([[1, 0, 0, 0],
            [1, 1, 0, 0],
            [0, 1, 1, 0],
            [0, 0, 1, 1]], dtype=torch.int32)
    """
    heads = max(len(reach), len(widths), 1)
    far, near = (torch.tensor(w or [length]).expand(heads) for w in (reach, widths))
    near = torch.minimum(far, near)
    at = torch.arange(-(-length // block))
    starts, ends = at * block, ((at + 1) * block).clamp(max=length) - 1

    def earliest(queries: Tensor) -> Tensor:
        seen = torch.tensor([visible.first(query) for query in queries.tolist()])
        return torch.maximum(seen, queries + 1 - near[:, None])[..., None]

    key, query = at, at[:, None]
    early = (starts < max(sinks, visible.sinks)) & (ends > query * block - far[:, None, None])
    needed = (key <= query) & (early | (ends >= earliest(starts)))
    whole = (key < query) & (starts >= earliest(ends))
    far, near = far.to(device), near.to(device)

    def sees(batch: Tensor, head: Tensor, i: Tensor, j: Tensor) -> Tensor:
        seen: Tensor = visible.sees(i, j)
        if not reach and not widths:
            return seen
        row = head if heads > 1 else head * 0
        return seen & (i - j < far[row]) & ((i - j < near[row]) | (j < sinks))

    def listed(chosen: Tensor) -> tuple[Tensor, Tensor]:
        order = chosen.int().argsort(dim=-1, descending=True, stable=True)
        return chosen.sum(-1).int()[None].to(device), order.int()[None].to(device)

    return BlockMask.from_kv_blocks(
        *listed(needed & ~whole),
        *listed(whole),
        BLOCK_SIZE=block,
        mask_mod=sees,
        seq_lengths=(length, length),
    )


def table_score(table: Tensor) -> ScoreMod:
    """The score function that adds `p(query - key)` from a table, shape (heads or 1, length).

    A query before the key keeps the score of distance 0: the block mask carries causality.
    """

    def add(score: Tensor, batch: Tensor, head: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return score + table[head if len(table) > 1 else head * 0, (i - j).clamp(min=0)]

    return add


def flexible(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | ScoreMod | None = None,
    visible: Visibility | BlockMask = CAUSAL,
    weighting: LogitTransform = PLAIN,
) -> Tensor:
    """Attention by torch's FlexAttention: the bias is its score function, visibility its mask.

    A table is looked up in its own type whatever the type of the queries, and gets a gradient. The
    bias may also be a score function, and the visible keys a block mask. Without a compiler it is
    slow.
    """

    added = table_score(bias) if isinstance(bias, Tensor) else bias

    def score(score: Tensor, *at: Tensor) -> Tensor:
        score = weighting.content(score)
        return score if added is None else added(score, *at)

    alone = not torch.compiler.is_compiling()
    if isinstance(visible, Visibility):
        visible = blocks(visible, query.shape[-2], device=query.device)
    kernel = _compiled() if alone and query.device.type == "cuda" else flex_attention
    changed = bias is not None or weighting.cap is not None
    output = kernel(
        query,
        key,
        value,
        score_mod=score if changed else None,
        block_mask=visible,
        return_aux=None if weighting.sink is None else AuxRequest(lse=True),
    )
    if weighting.sink is not None:
        output, beside = output
        output = output * (beside.lse - weighting.sink[:, None]).sigmoid()[..., None]
    return output.to(value.dtype)


@functools.cache
def _compiled() -> Callable[..., Any]:
    """The kernel, compiled for each shape; after torch's usual 8 it would run uncompiled."""
    patched: Any = torch._dynamo.config.patch(recompile_limit=256)
    return patched(torch.compile(flex_attention, dynamic=False))


@functools.cache
def flex_works(device: torch.device, size: int, dtype: torch.dtype) -> bool:
    """Whether the kernel compiles and runs, forward and backward; tried once, on a small text."""
    x = torch.ones(1, 1, 128, size, device=device, dtype=dtype, requires_grad=True)
    try:
        with torch.enable_grad():
            bias = torch.zeros(1, 128, device=device, requires_grad=True)
            flexible(x, x, x, bias).sum().backward()
    except Exception as error:  # whatever a compiler says: there is another path
        why = (str(error).strip().splitlines() or [type(error).__name__])[0]
        warnings.warn(
            f"FlexAttention does not work here ({why[:100]}); the slower path is taken",
            stacklevel=2,
        )
        return False
    return True


def fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | ScoreMod | None = None,
    visible: Visibility | BlockMask = CAUSAL,
    weighting: LogitTransform = PLAIN,
) -> Tensor:
    """Attention by the fastest path of the device.

    `flexible` takes a block mask, and every bias on a GPU where it works. `transformed_attention`
    takes transformed logits and first keys that are kept, and `toeplitz` all else. A score
    function needs a block mask.

    >>> x = torch.ones(1, 1, 3, 2)
    >>> fused(x, x, x.cumsum(2))[0, 0, :, 0]
    tensor([1.0000, 1.5000, 2.0000])
    """
    if not isinstance(visible, Visibility):
        return flexible(query, key, value, bias, visible, weighting)
    assert not callable(bias) or isinstance(bias, Tensor)
    if not weighting.plain or visible.sinks or type(visible) is not Visibility:
        return transformed_attention(query, key, value, bias, visible, weighting)
    plain = bias is None and visible == CAUSAL
    on_gpu = query.device.type == "cuda" and query.dtype != torch.float64
    if on_gpu and not plain and flex_works(query.device, query.shape[-1], query.dtype):
        return flexible(query, key, value, bias, visible)
    return toeplitz(query, key, value, bias, visible)


def with_hook(look: Callable[[Tensor, Tensor, Tensor, Visibility, LogitTransform], object]) -> Path:
    """The path `fused`; in each layer `look` is called first, with query, key, value, visibility
    and weighting."""

    def path(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor | None,
        visible: Visibility,
        weighting: LogitTransform = PLAIN,
    ) -> Tensor:
        look(query, key, value, visible, weighting)
        return fused(query, key, value, bias, visible, weighting)

    return path
