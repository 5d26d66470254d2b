"""Causal softmax attention with a bias: float64 specification, chunks on a CPU, FlexAttention.

All three compute, for queries at positions `i` and keys at positions `j`,

    o_i = sum_j softmax_j(q_i . k_j / sqrt(d) + p_ij) v_j        over the keys j that i sees.

Queries, keys and values have the shape (batch, heads, length, size). Fewer queries than keys are
the last ones. The bias `p` is one of four things:

    None            no bias
    Tensor          a table `p(i - j)`, shape (heads or 1, length); -inf masks, but not at 0
    module          `bias(q, k, i, j)`, a bias that may depend on the content
    ScoreMod        a score function of FlexAttention, on a GPU alone

A `sink`, shape (heads,), is the logit of a further key of value 0: a term of the denominator.

`materialised` is the specification, in float64 with every matrix in memory. `attention` works on
any device in chunks of queries, with torch's fused kernel. The mask of a chunk is a view of the
table, or it is made again in the backward pass, so memory is linear in the length. `flex` is one
compiled kernel on a GPU.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx
from torch.nn.attention.flex_attention import AuxRequest, BlockMask, flex_attention
from torch.nn.functional import pad, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from farfield.numerics.masks import CAUSAL, Mask

CHUNK = 256  # queries at a time
CONTENT_CHUNK = 128  # of a bias that depends on the content, whose weights are in memory
LOGITS = 1 << 25  # of such a chunk on a GPU
COMPILED_ON = {"cuda"}
BACKEND: str | Callable[..., Any] = "inductor"
COPIES = 32  # of a learned table, whose gradients are added up by a GPU
GRAPHS = 64  # of one function: lengths, masks, with and without gradients
_COMPILED_NOT = set[type]()  # modules of the user's own that torch does not compile
BACKWARD_CHUNK = 32  # whose weights are made again, and should stay in the cache
ROUNDS_TO_ZERO = {torch.float64: -745.2, torch.float32: -104.0}  # log of the largest such weight

ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
Bias = Tensor | nn.Module | ScoreMod | None


@contextlib.contextmanager
def flushed() -> Iterator[None]:
    """Numbers below the least normal one are 0 meanwhile: some processors take long over them.

    >>> with flushed():
    ...     torch.tensor([1e-30]) * 1e-10
    tensor([0.])
    """
    least = sys.float_info.min
    before = least / 2 == 0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def materialised(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | nn.Module | None = None,
    mask: Mask = CAUSAL,
    sink: Tensor | None = None,
) -> Tensor:
    """Attention in float64 with the whole matrix in memory: the specification.

    >>> x = torch.ones(1, 1, 3, 2)
    >>> materialised(x, x, x.cumsum(2))[0, 0, :, 0]
    tensor([1.0000, 1.5000, 2.0000])
    """
    j = torch.arange(k.shape[2], device=k.device)
    i, q, k = j[len(j) - q.shape[2] :], q.double(), k.double()
    logits = q @ k.mT / math.sqrt(q.shape[-1])
    if bias is not None:
        logits = logits + bias_of_pairs(bias, q, k, i, j)
    logits = logits.masked_fill(~mask.sees(i[:, None], j), -math.inf)
    if sink is not None:
        column = sink.double()[:, None, None].expand(*logits.shape[:3], 1)
        logits = torch.cat([column, logits], -1)
    return (logits.softmax(-1)[..., -len(j) :] @ v.double()).to(v.dtype)


def bias_of_pairs(bias: Tensor | nn.Module, q: Tensor, k: Tensor, i: Tensor, j: Tensor) -> Tensor:
    """The bias of queries at `i` and keys at `j`, (batch or 1, heads or 1, len(i), len(j))."""
    table = isinstance(bias, Tensor)
    logits: Tensor = bias[:, (i[:, None] - j).clamp(min=0)] if table else bias(q, k, i, j)
    return logits.to(q)[(None,) * (4 - logits.ndim)].expand(-1, -1, len(i), len(j))


# -- chunks of queries ----------------------------------------------------------------------------


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | nn.Module | None = None,
    mask: Mask = CAUSAL,
    sink: Tensor | None = None,
) -> Tensor:
    """Attention in chunks of queries; differentiable, memory linear in the length.

    >>> q = torch.randn(1, 2, 9, 4, dtype=torch.float64)
    >>> p = -torch.arange(9.0, dtype=torch.float64).expand(2, 9)
    >>> torch.allclose(attention(q, q, q, p), materialised(q, q, q, p))
    True
    """
    if bias is None and mask == CAUSAL and sink is None and q.shape == k.shape:
        return scaled_dot_product_attention(q, k, v, is_causal=True)
    exact = torch.promote_types(q.dtype, torch.float32)
    with torch.autocast(q.device.type, enabled=False):
        q, k, wide = q.to(exact), k.to(exact), v.to(exact)
        sink = None if sink is None else sink.to(exact)
        if isinstance(bias, nn.Module):
            return _by_pairs(q, k, wide, bias, mask, sink).to(v.dtype)
        table = q.new_zeros(1, k.shape[2]) if bias is None else bias.to(exact)
        learned = torch.is_grad_enabled() and (sink is not None or table.requires_grad)
        remade = _by_pairs if mask.sinks else _Learned.apply
        result: Tensor = (remade if learned else _by_table)(q, k, wide, table, mask, sink)
        return result.to(v.dtype)


def _bands(q: Tensor, k: Tensor, table: Tensor) -> list[tuple[slice, int]]:
    """Neighbouring heads, and how many of the nearest keys can have a weight that is not 0.

    All heads and all keys where there are gradients: each part of a key would have one as large as
    all keys, and they would be added up.

    Content logits of a head differ by at most `lam = 2 max |q| max |k| / sqrt(d)`. Where
    `p(n) - p(0) + lam` is below the logarithm of what rounds to 0, so does the weight at distance
    `n` relative to that at distance 0.
    """
    length, every = k.shape[2], slice(0, q.shape[1])
    if length <= CHUNK or q.device.type != "cpu" or torch.is_grad_enabled():
        return [(every, length)]
    norms = [x.detach().norm(dim=-1).amax((0, 2)) for x in (q, k)]
    lam = 2 * norms[0] * norms[1] / math.sqrt(q.shape[-1])
    lam = lam if len(table) > 1 else lam.amax(0, keepdim=True)
    least = table[:, :1] + ROUNDS_TO_ZERO[q.dtype] - lam[:, None]
    counted = ~(table.detach() < least)  # a norm that is no number bounds nothing
    widths = (torch.arange(1, length + 1) * counted).amax(-1).clamp(min=1).tolist()
    if len(widths) == 1:
        return [(every, widths[0])]
    groups, start = [], 0
    for _, alike in itertools.groupby(widths, lambda width: min(length, width).bit_length()):
        heads = slice(start, start := start + len(each := list(alike)))
        groups.append((heads, max(each)))
    return groups


class _Chunk(NamedTuple):
    """Neighbouring queries of a row, which are taken in reverse order, and the keys that they see.

    Fields:
        queries: their places among the queries.
        keys: the places of the keys in the row.
        begin: where their bias begins in what `_vector` gives.
    """

    queries: slice
    keys: slice
    begin: int

    @property
    def entries(self) -> slice:
        """What the bias is made of: row `r` and column `c` have entry `begin + r + c`."""
        rows, columns = (x.stop - x.start for x in (self.queries, self.keys))
        return slice(self.begin, self.begin + rows + columns - 1)

    def bias(self, vector: Tensor) -> Tensor:
        """The bias, shape (heads or 1, queries, keys), as a view."""
        view = vector[:, self.entries].unfold(-1, self.keys.stop - self.keys.start, 1)
        return view.contiguous() if vector.is_cuda else view  # its kernels take whole rows


def _chunks(mask: Mask, offset: int, length: int, chunk: int, width: int) -> Iterator[_Chunk]:
    """The queries from `offset` on, so many at a time, with the keys within this width."""
    chunk = mask.bca or min(chunk, max(128, width // 2))  # c queries take c + width keys each
    for start in range(offset // chunk * chunk, length, chunk):
        begin, stop = max(start, offset), min(start + chunk, length)
        if begin < stop:
            first = max(mask.first(begin), begin - width + 1, 0)
            queries = slice(begin - offset, stop - offset)
            yield _Chunk(queries, slice(first, stop), length - stop + first)


def _vector(table: Tensor, mask: Mask) -> Tensor:
    """`[p(L-1), ..., p(0), -inf, ..., -inf]`, `p` within the window."""
    if mask.window is not None and mask.window < table.shape[-1]:
        beyond = torch.arange(table.shape[-1], device=table.device) >= mask.window
        table = table.masked_fill(beyond, -math.inf)
    return torch.cat([table.flip(-1), torch.full_like(table, -math.inf)], -1)


def _first_keys(table: Tensor, mask: Mask, offset: int, length: int) -> Tensor:
    """Logits of the first keys, for the queries whose window has left them behind."""
    j = torch.arange(mask.sinks, device=table.device)
    i = torch.arange(offset, length, device=table.device)[:, None]
    seen = mask.sees(i, j) & ~Mask(mask.window, mask.bca).sees(i, j)
    return table[:, (i - j).clamp(min=0)].masked_fill(~seen, -math.inf)


def _met(
    k: Tensor, v: Tensor, vector: Tensor, chunk: _Chunk, early: Tensor, sink: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Keys, values and bias that a chunk meets: a sink, then first keys, then the keys nearby."""
    keys, values, bias = k[:, :, chunk.keys], v[:, :, chunk.keys], chunk.bias(vector)
    if first := early.shape[-1]:
        keys, values = (
            torch.cat([k[:, :, :first], keys], -2),
            torch.cat([v[:, :, :first], values], -2),
        )
        bias = torch.cat([early[:, chunk.queries].flip(-2), bias], -1)
    return (keys, values, bias) if sink is None else _with_sink(sink, keys, values, bias)


def _with_sink(sink: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A key of value 0 whose logit is the sink, and the row's keys after it."""
    bias = bias.expand(*bias.shape[:-3], len(sink), -1, -1)
    bias = torch.cat([sink[:, None, None].expand(*bias.shape[:-1], 1), bias], -1)
    return pad(k, (0, 0, 1, 0)), pad(v, (0, 0, 1, 0)), bias


def _by_table(
    q: Tensor, k: Tensor, v: Tensor, table: Tensor, mask: Mask, sink: Tensor | None = None
) -> Tensor:
    """Heads of like bands together, a chunk of queries at a time, each in reverse order."""
    length, offset, parts = k.shape[2], k.shape[2] - q.shape[2], []
    for heads, width in _bands(q, k, table):
        rows = table[heads] if len(table) > 1 else table
        vector, early = _vector(rows, mask), _first_keys(rows, mask, offset, length)
        own, chunks = None if sink is None else sink[heads], []
        for chunk in _chunks(mask, offset, length, CHUNK, width):
            keys, values, bias = _met(k[:, heads], v[:, heads], vector, chunk, early, own)
            queries = q[:, heads, chunk.queries].flip(-2)
            mixed = scaled_dot_product_attention(queries, keys, values, bias[None])
            chunks.append(mixed.flip(-2))
        parts.append(torch.cat(chunks, -2))
    return parts[0] if len(parts) == 1 else torch.cat(parts, 1)


class _Learned(torch.autograd.Function):
    """The same with a gradient of the bias and of the sink.

    The backward pass makes the weights of a chunk again, so memory is linear in the length. The
    gradient of the table is the logits' gradient summed along diagonals.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        table: Tensor,
        mask: Mask,
        sink: Tensor | None,
    ) -> Tensor:
        output = _by_table(q, k, v, table, mask, sink)
        ctx.save_for_backward(q, k, v, table, output, sink)
        ctx.mask = mask
        return output

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """With weights `w`, output `o` and its gradient `g`: `v_j` has `sum_i w_ij g_i`, the logit
        of `i` and `j` has `w_ij (g_i . v_j - g_i . o_i)`, and all else follows from that."""
        q, k, v, table, output, sink = ctx.saved_tensors
        q, k, v, output, gradient = (x.contiguous() for x in (q, k, v, output, gradient))
        length, offset, scale = k.shape[2], k.shape[2] - q.shape[2], q.shape[-1] ** -0.5
        vector, early = _vector(table, ctx.mask), q.new_empty(0)  # a mask with first keys is none
        by_q, by_k, by_v, by_vector = (torch.zeros_like(x) for x in (q, k, v, vector))
        by_sink = None if sink is None else q.new_zeros(len(sink), q.shape[2])
        scaled, constant = q * scale, (gradient * output).sum(-1, keepdim=True)
        for chunk in _chunks(ctx.mask, offset, length, BACKWARD_CHUNK, length):
            at = chunk.queries
            queries, given, less = (x[:, :, at].flip(-2) for x in (scaled, gradient, constant))
            keys, values, bias = _met(k, v, vector, chunk, early, sink)
            weights = (queries @ keys.mT).add_(bias).softmax(-1)
            by_logits = (given @ values.mT).sub_(less).mul_(weights)
            by_q[:, :, at] = (by_logits @ keys).flip(-2) * scale
            by_keys, by_values = by_logits.mT @ queries, weights.mT @ given
            by_bias = by_logits.sum(0)
            if by_sink is not None:  # the key before all others
                by_sink[:, at] = by_bias[..., 0].flip(-1)
                by_keys, by_values, by_bias = (
                    by_keys[:, :, 1:],
                    by_values[:, :, 1:],
                    by_bias[..., 1:],
                )
            by_k[:, :, chunk.keys] += by_keys
            by_v[:, :, chunk.keys] += by_values
            if len(table) == 1:
                by_bias = by_bias.sum(0, keepdim=True)
            by_vector[:, chunk.entries] += diagonals(by_bias)
        by_table = by_vector[:, :length].flip(1)
        return by_q, by_k, by_v, by_table, None, None if by_sink is None else by_sink.sum(1)


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


def _by_pairs(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | nn.Module,
    mask: Mask,
    sink: Tensor | None,
) -> Tensor:
    """A chunk of queries at a time, each with all keys before it: a bias may read them all."""
    offset, j = k.shape[2] - q.shape[2], torch.arange(k.shape[2], device=k.device)
    stretches, parts, done = _stretches(q, k), list[Tensor](), offset
    whole = len(stretches) == 1 and not compiles(k.device, q.shape[-1])
    for start, stop, keys in stretches:
        rows = q[:, :, start - offset : stop - offset]
        given = rows, k[:, :, :keys], v[:, :, :keys], bias, mask, sink, j[start:stop]
        part = _of_pairs(*given) if whole else _pairs_again(*given)  # a short row has room
        parts.append(part[:, :, done - start :])  # chunks of one shape may overlap
        done = stop
    return torch.cat(parts, -2)


def _stretches(q: Tensor, k: Tensor) -> list[tuple[int, int, int]]:
    """Where chunks of queries begin and end in the row, and how many of its first keys they read.

    On a GPU all chunks have one shape, with all keys of the row, so that one graph serves them.
    """
    batch, heads, queries, size = q.shape
    length, offset = k.shape[2], k.shape[2] - queries
    if not compiles(k.device, size):
        ends = (chunk.keys.stop for chunk in _chunks(CAUSAL, offset, length, CONTENT_CHUNK, length))
        return [(start, stop, stop) for start, stop in itertools.pairwise([offset, *ends])]
    most = max(CONTENT_CHUNK, LOGITS // (batch * heads * length))
    step = min(queries, 1 << (most.bit_length() - 1))
    stops = [*range(offset + step, length, step), length]
    return [(stop - step, stop, length) for stop in stops]


def _pairs_again(*given: Any) -> Tensor:
    """`_of_pairs`, compiled where torch can, whose matrices are made again for gradients."""
    q, _, _, bias, *_ = given
    own = type(getattr(bias, "own", bias))
    if own not in _COMPILED_NOT:
        try:
            return _remade(compiled(_of_pairs, q), *given)
        except torch._dynamo.exc.TorchDynamoException as error:
            _COMPILED_NOT.add(own)
            said = f"{own.__name__} runs as it is, since torch does not compile it: {error}"
            warnings.warn(said, stacklevel=2)
    return _remade(_of_pairs, *given)


def _remade(function: Callable[..., Tensor], *given: Any) -> Tensor:
    """What a function gives; where gradients are asked, its matrices are made again for them."""
    if not torch.is_grad_enabled():
        return function(*given)
    made: Tensor = checkpoint(function, *given, use_reentrant=False, preserve_rng_state=False)
    return made


def _of_pairs(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | nn.Module,
    mask: Mask,
    sink: Tensor | None,
    i: Tensor,
) -> Tensor:
    """The queries at `i` with all the keys given; the weights are in memory."""
    j = torch.arange(k.shape[2], device=k.device)
    logits = bias_of_pairs(bias, q, k, i, j)
    logits = logits.masked_fill(~mask.sees(i[:, None], j), -math.inf)
    if sink is not None:
        k, v, logits = _with_sink(sink, k, v, logits)
    if q.device.type == "cpu" and not torch.is_grad_enabled():
        return scaled_dot_product_attention(q, k, v, logits)
    return (q / math.sqrt(q.shape[-1]) @ k.mT + logits).softmax(-1) @ v


# -- one kernel on a GPU --------------------------------------------------------------------------


def compiles(device: torch.device, size: int) -> bool:
    """Whether attention is compiled there: on a GPU, for heads of 16 dimensions or more."""
    return device.type in COMPILED_ON and size >= 16


@functools.cache
def _as_one_graph(function: Callable[..., Tensor], backend: object) -> Callable[..., Tensor]:
    fast = torch.compile(function, fullgraph=True, dynamic=False, backend=backend)
    limits = torch._dynamo.config.patch(recompile_limit=GRAPHS)
    at_once = torch._functorch.config.patch(force_non_lazy_backward_lowering=True)

    @functools.wraps(function)
    def call(*given: Any) -> Tensor:
        with limits, at_once:  # what cannot be compiled backward says so in the forward pass
            return fast(*given)

    return call


def compiled(function: Callable[..., Tensor], q: Tensor) -> Callable[..., Tensor]:
    """A function of such queries, one graph a shape on a GPU; it may be a part of a larger one."""
    if torch.compiler.is_compiling() or not compiles(q.device, q.shape[-1]):
        return function
    return _as_one_graph(function, BACKEND)


def table_score(table: Tensor) -> ScoreMod:
    """The score function that adds `p(i - j)` from a table, shape (heads or 1, length).

    A key after the query has the score of distance 0: the block mask carries causality. Of a table
    that learns, each query takes one of several copies: a kernel adds up gradients entry by entry,
    and additions to one entry wait for each other.
    """
    copies = COPIES if table.requires_grad else 1
    every = table.repeat(copies, 1, 1)

    def add(score: Tensor, batch: Tensor, head: Tensor, i: Tensor, j: Tensor) -> Tensor:
        row = head if len(table) > 1 else head * 0
        return score + every[i % copies, row, (i - j).clamp(min=0)]

    return add


@functools.lru_cache(64)
def block_mask(
    mask: Mask,
    length: int,
    reach: tuple[int, ...] = (),
    device: torch.device | str = "cpu",
    block: int = 128,
    widths: tuple[int, ...] = (),
) -> BlockMask:
    """FlexAttention's block mask, from the ends of the blocks alone.

    Args:
        mask: which keys a query sees.
        length: of the row, in tokens.
        reach: keys that a head sees at most, one number or one a head; none for all.
        device: of the mask.
        block: side of a block.
        widths: the same but for the first keys that the mask keeps.

    >>> block_mask(Mask(window=100), 300).to_dense()[0, 0].tolist()
    [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    """
    heads, half = max(len(reach), len(widths), 1), mask.bca or length
    far, near = (
        torch.tensor(each or [length]).clamp(max=most or length).expand(heads)[:, None, None]
        for each, most in ((reach, mask.reach), (widths, mask.window))
    )
    first = torch.arange(0, length, block)  # token of each block
    last = (first + block).clamp(max=length) - 1
    least, most = first[:, None] - last, last[:, None] - first  # distances of pairs of blocks
    some_near = (least < near) | (first < mask.sinks)
    some_in_halves = last // half >= first[:, None] // half - 1
    all_in_halves = first // half >= last[:, None] // half - 1
    needed = (most >= 0) & (least < far) & some_near & some_in_halves
    whole = (least >= 0) & (most < far) & (most < near) & all_in_halves
    far, near = far.flatten().to(device), near.flatten().to(device)

    def sees(batch: Tensor, head: Tensor, i: Tensor, j: Tensor) -> Tensor:
        seen: Tensor = mask.sees(i, j)
        if not reach and not widths:
            return seen
        row = head if heads > 1 else head * 0
        return seen & (i - j < far[row]) & ((i - j < near[row]) | (j < mask.sinks))

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
    sink: Tensor | None = None,
) -> Tensor:
    """Attention by torch's FlexAttention, to be compiled; a sink joins by the log-sum-exp.

    A table is looked up in its own type. With it the kernel keeps two stages: three take 245,760
    bytes of shared memory at head size 64 in bfloat16, more than an H100 has, and torch would then
    spill in silence.

    Rows of fewer than 128 tokens take the same kernel. The other one, for few queries, reads the
    strides of the queries before they are settled (torch 2.13): those of a rotation are wrong.
    """
    score = table_score(bias) if isinstance(bias, Tensor) else bias
    stages = {"num_stages": 2} if isinstance(bias, Tensor) else {}
    output = flex_attention(
        q,
        k,
        v,
        score_mod=score,
        block_mask=mask,
        return_aux=None if sink is None else AuxRequest(lse=True),
        kernel_options={"FORCE_USE_FLEX_ATTENTION": True, **stages},
    )
    if sink is None:
        return output
    output, beside = output
    return (output * (beside.lse - sink[:, None]).sigmoid()[..., None]).to(v.dtype)
