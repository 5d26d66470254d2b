"""Causal softmax attention with a bias of the logits: a specification, a CPU path, a GPU path.

All three compute, for queries at positions `i` and keys at positions `j`,

    o_i = sum_j softmax_j(q_i . k_j / sqrt(d) + p_ij) v_j        over the keys j that i sees.

Queries, keys and values have the shape (batch, heads, length, size). Fewer queries than keys are
the last ones. The bias `p` is one of four things:

    None            no bias
    Tensor          a table `p(i - j)`, shape (heads or 1, length); -inf masks, but not at 0
    module          `bias(q, k, i, j)`, a bias that may depend on the content
    ScoreMod        a score function of FlexAttention, on a GPU alone

`materialised` is the specification, in float64 with every matrix in memory. `attention` works on
any device in chunks of queries, with torch's fused kernel. The mask of a chunk is a view of the
table, or it is made again in the backward pass, so memory is linear in the length. `flex` is one
compiled kernel on a GPU. `Extra` keys take part in the softmax of every query; a learned sink is
one of them.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx
from torch.nn.attention.flex_attention import AuxRequest, BlockMask, flex_attention
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from farfield.validation.harness.settings import CAUSAL, Mask

CHUNK = 256  # queries at a time
CONTENT_CHUNK = 64  # of a bias that depends on the content, whose weights are in memory
BACKWARD_CHUNK = 32  # whose weights are made again, and should stay in the cache
ROUNDS_TO_ZERO = {torch.float64: -745.2}  # log of the largest weight that does; else float32's
ROUNDS_TO_ZERO_FLOAT32 = -104.0

ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


class Extra(NamedTuple):
    """Keys beside those of the row.

    Args:
        k, v: shape (batch or 1, heads or 1, m, size), in the frame of the row's keys.
        logits: added to `q . k / sqrt(d)`: a bias at the key's distance, the logarithm of how many
            keys one represents, or a learned sink; shape (heads or 1, queries or 1, m).
    """

    k: Tensor
    v: Tensor
    logits: Tensor

    def of(self, q: Tensor, k: Tensor) -> Extra:
        """With the shapes of queries and keys in full."""
        more, values = (x.to(k.dtype).expand(*k.shape[:2], *x.shape[-2:]) for x in (self.k, self.v))
        return Extra(more, values, self.logits.to(k.dtype).expand(k.shape[1], q.shape[-2], -1))

    def beside(self, other: Extra) -> Extra:
        """Both, their shapes in full."""
        k, v = (torch.cat(pair, -2) for pair in zip(self[:2], other[:2], strict=True))
        return Extra(k, v, torch.cat([self.logits, other.logits], -1))


def sink(logits: Tensor, k: Tensor, v: Tensor) -> Extra:
    """The extra key of a learned sink, shape (heads,): a term of the denominator, of value 0."""
    key, value = (x.new_zeros(1, 1, 1, x.shape[-1]) for x in (k, v))
    return Extra(key, value, logits[:, None, None])


Bias = Tensor | nn.Module | ScoreMod | None


def materialised(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | nn.Module | None = None,
    mask: Mask = CAUSAL,
    extra: Extra | None = None,
) -> Tensor:
    """Attention in float64 with the whole matrix in memory: the specification.

    >>> x = torch.ones(1, 1, 3, 2)
    >>> materialised(x, x, x.cumsum(2))[0, 0, :, 0]
    tensor([1.0000, 1.5000, 2.0000])
    """
    j = torch.arange(k.shape[-2], device=k.device)
    i = j[len(j) - q.shape[-2] :]
    q, k, wide = q.double(), k.double(), v.double()
    logits = q @ k.mT / math.sqrt(q.shape[-1])
    if isinstance(bias, Tensor):
        logits = logits + bias.double()[:, (i[:, None] - j).clamp(min=0)]
    elif bias is not None:
        logits = logits + content_bias(bias, q, k, i, j)
    logits = logits.masked_fill(~mask.sees(i[:, None], j), -math.inf)
    if extra is not None:
        more = q @ extra.k.double().mT / math.sqrt(q.shape[-1]) + extra.logits.double()
        logits = torch.cat([more, logits], -1)
        values = extra.v.double().expand(*wide.shape[:2], -1, -1)
        wide = torch.cat([values, wide], -2)
    return (logits.softmax(-1) @ wide).to(v.dtype)


def content_bias(bias: nn.Module, q: Tensor, k: Tensor, i: Tensor, j: Tensor) -> Tensor:
    """The bias of a module, for queries at `i` and keys at `j`: (batch, heads, len(i), len(j))."""
    logits: Tensor = bias(q, k, i, j)
    return logits.to(q).expand(*q.shape[:2], len(i), len(j))


# -- chunks of queries ----------------------------------------------------------------------------


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | nn.Module | None = None,
    mask: Mask = CAUSAL,
    extra: Extra | None = None,
) -> Tensor:
    """Attention in chunks of queries; differentiable, memory linear in the length.

    >>> q = torch.randn(1, 2, 9, 4, dtype=torch.float64)
    >>> p = -torch.arange(9.0, dtype=torch.float64).expand(2, 9)
    >>> torch.allclose(attention(q, q, q, p), materialised(q, q, q, p))
    True
    """
    if bias is None and mask == CAUSAL and extra is None and q.shape == k.shape:
        return scaled_dot_product_attention(q, k, v, is_causal=True)
    exact = _exact(q)
    with torch.autocast(q.device.type, enabled=False):
        q, k, wide = q.to(exact), k.to(exact), v.to(exact)
        extra = None if extra is None else extra.of(q, k)
        if isinstance(bias, nn.Module):
            return _by_content(q, k, wide, bias, mask, extra).to(v.dtype)
        table = q.new_zeros(1, k.shape[-2]) if bias is None else bias.to(exact)
        if mask.sinks:
            first = _first_keys(q, k, wide, table, mask)
            extra = first if extra is None else first.beside(extra)
        if extra is None and not (table.requires_grad and torch.is_grad_enabled()):
            return _by_table(q, k, wide, table, mask).to(v.dtype)
        more = (None, None, None) if extra is None else extra
        result: Tensor = _Remade.apply(q, k, wide, table, mask, *more)
        return result.to(v.dtype)


def _exact(like: Tensor) -> torch.dtype:
    return torch.float64 if like.dtype == torch.float64 else torch.float32


def _first_keys(q: Tensor, k: Tensor, v: Tensor, table: Tensor, mask: Mask) -> Extra:
    """The first keys, for the queries whose window has left them behind."""
    j = torch.arange(k.shape[-2], device=k.device)
    i, first = j[len(j) - q.shape[-2] :, None], j[: mask.sinks]
    seen = mask.sees(i, first) & ~Mask(mask.window, mask.bca).sees(i, first)
    logits = table[:, (i - first).clamp(min=0)].masked_fill(~seen, -math.inf)
    return Extra(k[:, :, : mask.sinks], v[:, :, : mask.sinks], logits).of(q, k)


def _bands(q: Tensor, k: Tensor, table: Tensor) -> list[tuple[slice, int]]:
    """Neighbouring heads, and how many of the nearest keys can have a weight that is not 0.

    Content logits of a head differ by at most `lam = 2 max |q| max |k| / sqrt(d)`. Where
    `p(n) - p(0) + lam` is below the logarithm of what rounds to 0, so does the weight at distance
    `n` relative to that at distance 0.
    """
    length, every = k.shape[-2], slice(0, q.shape[1])
    if length <= CHUNK or q.device.type != "cpu":
        return [(every, length)]
    norms = [x.detach().norm(dim=-1).amax((0, 2)) for x in (q, k)]
    lam = 2 * norms[0] * norms[1] / math.sqrt(q.shape[-1])
    lam = lam if len(table) > 1 else lam.amax(0, keepdim=True)
    least = table[:, :1] + ROUNDS_TO_ZERO.get(q.dtype, ROUNDS_TO_ZERO_FLOAT32) - lam[:, None]
    counted = ~(table.detach() < least)  # a norm that is no number bounds nothing
    widths = (torch.arange(1, length + 1) * counted).amax(-1).clamp(min=1).tolist()
    if len(widths) == 1:
        return [(every, widths[0])]
    groups, start = [], 0
    for _, alike in itertools.groupby(widths, lambda width: min(length, width).bit_length()):
        heads = slice(start, start := start + len(each := list(alike)))
        groups.append((heads, max(each)))
    return groups


def _by_table(
    q: Tensor, k: Tensor, v: Tensor, table: Tensor, mask: Mask, extra: Extra | None = None
) -> Tensor:
    """Heads of like bands together, a chunk of queries at a time, each in reverse order."""
    length, offset, parts = k.shape[-2], k.shape[-2] - q.shape[-2], []
    for heads, width in _bands(q, k, table):
        vector = _vector(table[heads] if len(table) > 1 else table, mask)
        chunks = []
        for start, stop, first in _chunks(mask, offset, length, CHUNK, width):
            at = slice(start - offset, stop - offset)
            queries, keys, values = (
                q[:, heads, at],
                k[:, heads, first:stop],
                v[:, heads, first:stop],
            )
            bias = _view(vector, length - stop + first, stop - start, stop - first)
            if extra is not None:
                logits = extra.logits[heads, at].flip(-2)
                some = Extra(extra.k[:, heads], extra.v[:, heads], logits)
                keys, values, bias = _joined(some, keys, values, bias)
            part = scaled_dot_product_attention(queries.flip(-2), keys, values, bias[None])
            chunks.append(part.flip(-2))
        parts.append(torch.cat(chunks, -2))
    return parts[0] if len(parts) == 1 else torch.cat(parts, 1)


def _chunks(
    mask: Mask, offset: int, length: int, chunk: int, width: int
) -> Iterator[tuple[int, int, int]]:
    """Queries from and to, and the first key that they see within this many keys."""
    chunk = mask.bca or min(chunk, max(128, width // 2))  # c queries take c + width keys each
    for start in range(offset // chunk * chunk, length, chunk):
        begin, stop = max(start, offset), min(start + chunk, length)
        if begin < stop:
            yield begin, stop, max(mask.first(begin), begin - width + 1, 0)


def _vector(table: Tensor, mask: Mask) -> Tensor:
    """`[p(L-1), ..., p(0), -inf, ..., -inf]`, `p` within the window."""
    if mask.window is not None and mask.window < table.shape[-1]:
        beyond = torch.arange(table.shape[-1], device=table.device) >= mask.window
        table = table.masked_fill(beyond, -math.inf)
    return torch.cat([table.flip(-1), torch.full_like(table, -math.inf)], -1)


def _view(vector: Tensor, begin: int, rows: int, columns: int) -> Tensor:
    """The mask of queries in reverse order, entry `vector[begin + row + column]`, as a view.

    With queries `[start, stop)` and keys from `first`, `begin` is `L - stop + first`.
    """
    rows_of = vector[:, begin : begin + rows + columns - 1].unfold(-1, columns, 1)
    return rows_of.contiguous() if vector.is_cuda else rows_of  # its kernels take whole rows


def _joined(extra: Extra, k: Tensor, v: Tensor, bias: Tensor) -> Extra:
    """Extra keys, and the row's after them."""
    return extra.beside(Extra(k, v, bias.expand(len(extra.logits), -1, -1)))


class _Remade(torch.autograd.Function):
    """The same with a gradient of the bias and of extra keys.

    The backward pass makes the weights of a chunk again, so memory is linear in the length. The
    gradient of the table sums that of the logits along diagonals.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        table: Tensor,
        mask: Mask,
        *more: Tensor | None,
    ) -> Tensor:
        extra = None if more[0] is None else Extra(*more)
        output = _by_table(q, k, v, table, mask, extra)
        ctx.save_for_backward(q, k, v, table, output, *more)
        ctx.mask = mask
        return output

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, table, output, *more = ctx.saved_tensors
        q, k, v, output, gradient = (x.contiguous() for x in (q, k, v, output, gradient))
        with_extra, m = more[0] is not None, more[0].shape[-2] if more[0] is not None else 0
        length, offset, scale = k.shape[-2], k.shape[-2] - q.shape[-2], q.shape[-1] ** -0.5
        vector = _vector(table, ctx.mask)
        by_q, by_k, by_v, by_vector, *by_more = (
            torch.zeros_like(x) for x in (q, k, v, vector, *(more if with_extra else ()))
        )
        inner, scaled = (gradient * output).sum(-1, keepdim=True), q * scale
        for start, stop, first in _chunks(ctx.mask, offset, length, BACKWARD_CHUNK, length):
            at, begin = slice(start - offset, stop - offset), length - stop + first
            rows, g, d = (x[:, :, at].flip(-2) for x in (scaled, gradient, inner))
            keys, values = k[:, :, first:stop], v[:, :, first:stop]
            bias = _view(vector, begin, stop - start, stop - first)
            if with_extra:
                some = Extra(more[0], more[1], more[2][:, at].flip(-2))
                keys, values, bias = _joined(some, keys, values, bias)
            weights = (rows @ keys.mT).add_(bias).softmax(-1)
            by_logits = (g @ values.mT).sub_(d).mul_(weights)
            by_q[:, :, at] = (by_logits @ keys).flip(-2) * scale
            by_keys, by_values = by_logits.mT @ rows, weights.mT @ g
            by_k[:, :, first:stop] += by_keys[:, :, m:]
            by_v[:, :, first:stop] += by_values[:, :, m:]
            summed = by_logits.sum(0)
            if with_extra:
                by_more[0] += by_keys[:, :, :m]
                by_more[1] += by_values[:, :, :m]
                by_more[2][:, at] = summed[..., :m].flip(-2)
            summed = summed[..., m:].sum(0, keepdim=True) if len(table) == 1 else summed[..., m:]
            by_vector[:, begin : begin + stop - start + stop - first - 1] += diagonals(summed)
        by_table = by_vector[:, :length].flip(-1)
        return by_q, by_k, by_v, by_table, None, *(by_more or (None, None, None))


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


def _by_content(
    q: Tensor, k: Tensor, v: Tensor, bias: nn.Module, mask: Mask, extra: Extra | None
) -> Tensor:
    """A chunk of queries at a time, each with all keys before it: a bias may read them all."""
    j = torch.arange(k.shape[-2], device=k.device)
    offset, parts = len(j) - q.shape[-2], []

    def chunk(q: Tensor, k: Tensor, v: Tensor, i: Tensor, j: Tensor, *more: Tensor) -> Tensor:
        logits = content_bias(bias, q, k, i, j)
        logits = logits.masked_fill(~mask.sees(i[:, None], j), -math.inf)
        if more:
            wide = more[2].expand(*q.shape[:2], -1, -1)
            k, v, logits = Extra(more[0], more[1], wide).beside(Extra(k, v, logits))
        return scaled_dot_product_attention(q, k, v, logits)

    for start, stop, _ in _chunks(CAUSAL, offset, len(j), CONTENT_CHUNK, len(j)):
        at = slice(start - offset, stop - offset)
        more = () if extra is None else (extra.k, extra.v, extra.logits[:, at])
        part = q[:, :, at], k[:, :, :stop], v[:, :, :stop], j[start:stop], j[:stop], *more
        if torch.is_grad_enabled():  # the matrices are made again in the backward pass
            remade = checkpoint(chunk, *part, use_reentrant=False, preserve_rng_state=False)
            parts.append(remade)
        else:
            parts.append(chunk(*part))
    return torch.cat(parts, -2)


# -- one kernel on a GPU --------------------------------------------------------------------------


def table_score(table: Tensor) -> ScoreMod:
    """The score function that adds `p(i - j)` from a table, shape (heads or 1, length).

    A key after the query has the score of distance 0: the block mask carries causality.
    """

    def add(score: Tensor, batch: Tensor, head: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return score + table[head if len(table) > 1 else head * 0, (i - j).clamp(min=0)]

    return add


@functools.lru_cache(64)
def block_mask(
    mask: Mask,
    length: int,
    reach: tuple[int, ...] = (),
    device: torch.device | str = "cpu",
    block: int = 128,
    widths: tuple[int, ...] = (),
    sinks: int = 0,
) -> BlockMask:
    """FlexAttention's block mask, from the ends of the blocks alone.

    Args:
        mask: which keys a query sees.
        length: of the row, in tokens.
        reach: keys that a head sees at most, one number or one a head; none for all.
        device: of the mask.
        block: side of a block.
        widths: the same but for the first `sinks` keys.
        sinks: how many first keys are seen beyond the widths.

    >>> block_mask(Mask(window=100), 300).to_dense()[0, 0].tolist()
    [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    """
    heads = max(len(reach), len(widths), 1)
    far, near = (torch.tensor(x or [length]).expand(heads) for x in (reach, widths))
    near = torch.minimum(far, near)
    starts = torch.arange(0, length, block)
    ends = (starts + block).clamp(max=length) - 1

    def earliest(queries: Tensor) -> Tensor:
        seen = torch.tensor([mask.first(query) for query in queries.tolist()])
        return torch.maximum(seen, queries + 1 - near[:, None])[..., None]

    kept = (starts < max(sinks, mask.sinks)) & (ends > starts[:, None] - far[:, None, None])
    needed = (starts <= starts[:, None]) & (kept | (ends >= earliest(starts)))
    whole = (starts < starts[:, None]) & (starts >= earliest(ends))
    if mask.bca is not None:
        needed &= ends // mask.bca >= starts[:, None] // mask.bca - 1
    far, near = far.to(device), near.to(device)

    def sees(batch: Tensor, head: Tensor, i: Tensor, j: Tensor) -> Tensor:
        seen = mask.sees(i, j)
        assert isinstance(seen, Tensor)
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


def flex(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | ScoreMod | None,
    mask: BlockMask,
    extra: Extra | None = None,
) -> Tensor:
    """Attention by torch's FlexAttention, to be compiled; extra keys join by their log-sum-exp.

    A table is looked up in its own type. With it the kernel keeps two stages: three take 245,760
    bytes of shared memory at head size 64 in bfloat16, more than an H100 has, and torch would then
    spill in silence.
    """
    score = table_score(bias) if isinstance(bias, Tensor) else bias
    output = flex_attention(
        q,
        k,
        v,
        score_mod=score,
        block_mask=mask,
        return_aux=None if extra is None else AuxRequest(lse=True),
        kernel_options={"num_stages": 2} if isinstance(bias, Tensor) else None,
    )
    if extra is None:
        return output
    output, beside = output
    wide = q.to(_exact(q))
    more, values, added = (x.to(wide.dtype) for x in extra)
    logits = wide @ more.mT / math.sqrt(q.shape[-1]) + added
    share = (beside.lse - logits.logsumexp(-1)).sigmoid()[..., None]
    return (output * share + (logits.softmax(-1) @ values) * (1 - share)).to(v.dtype)
