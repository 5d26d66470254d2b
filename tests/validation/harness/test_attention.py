"""Every path of the attention computes the specification, in value and in gradient."""

import itertools
import math

import pytest
import torch
from torch import nn

from farfield.numerics.masks import CAUSAL, Mask
from farfield.validation.harness.attention import (
    _bands,
    _stretches,
    attention,
    block_mask,
    materialised,
)

LENGTH, HEADS, SIZE = 600, 2, 4
MASKS = [
    CAUSAL,
    Mask(window=50),
    Mask(bca=100),
    Mask(window=30, bca=64),
    Mask(window=50, sinks=1),
    Mask(window=50, bca=64, sinks=2),
    Mask(window=3, sinks=5),
    Mask(window=20, sinks=2, reach=90),
]


class Gate(nn.Module):
    """A bias that depends on the content of all keys between."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(HEADS, 1, SIZE, dtype=torch.float64))

    def forward(self, q, k, i, j):
        kept = nn.functional.logsigmoid((k * self.weight).sum(-1)).cumsum(-1)
        return kept[..., i, None] - kept[..., None, :]


def biases():
    at = torch.arange(LENGTH, dtype=torch.float64)
    steep = -torch.tensor([[60.0], [0.01]], dtype=torch.float64) * at
    return {
        "none": None,
        "one row": -at.log1p()[None],
        "steep in one head": steep,
        "masked": steep.masked_fill(at > 17, -math.inf),
        "learned": (-torch.rand(HEADS, 1) * at / 5).requires_grad_(),
        "content": Gate(),
    }


def drawn(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def case(kind, sinks, queries=LENGTH):
    """Queries, keys and values; a bias; a sink; and all that has a gradient."""
    torch.manual_seed(0)
    q, k, v = (drawn(2, HEADS, n, SIZE) for n in (queries, LENGTH, LENGTH))
    bias, sink = biases()[kind], drawn(HEADS) if sinks else None
    leaves = [q, k, v, sink] if sinks else [q, k, v]
    if isinstance(bias, nn.Module):
        leaves += bias.parameters()
    elif bias is not None and bias.requires_grad:
        leaves.append(bias)
    return (q, k, v, bias), sink, leaves


def agrees(path, asked, mask, sink, leaves):
    fast, slow = path(*asked, mask, sink), materialised(*asked, mask, sink)
    torch.testing.assert_close(fast, slow, rtol=1e-10, atol=1e-10)
    grads = (torch.autograd.grad(x.square().sum(), leaves) for x in (fast, slow))
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)
    with torch.no_grad():
        torch.testing.assert_close(path(*asked, mask, sink), slow, rtol=1e-10, atol=1e-10)


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    "kind, mask, sinks, queries",
    list(itertools.product(biases(), MASKS, (False, True), (LENGTH, 5))),
)
def test_chunks_are_the_specification_in_value_and_gradient(kind, mask, sinks, queries):
    asked, sink, leaves = case(kind, sinks, queries)
    agrees(attention, asked, mask, sink, leaves)


def test_a_mask_says_which_keys_a_query_sees():
    i, j = torch.arange(40)[:, None], torch.arange(40)
    for mask in MASKS:
        seen = mask.sees(i, j)
        first = torch.tensor([mask.first(int(q)) for q in i])
        early = j < mask.sinks
        assert (seen | ~((j >= first[:, None]) & (j <= i)) == True).all() or mask.bca  # noqa: E712
        assert not (seen & (j < first[:, None]) & ~early).any()
        for query, key in itertools.product(range(0, 40, 7), range(40)):
            assert bool(seen[query, key]) == bool(mask.sees(query, key))


def test_a_layers_window_keeps_its_first_keys_within_it():
    mask = Mask(window=8, sinks=2)
    assert mask.within(4) == Mask(window=4) and mask.within(20).reach == 20
    assert not mask.within(20).sees(30, 0) and mask.within(20).sees(15, 0)
    assert Mask(bca=5).within(None) == Mask(bca=5)


@pytest.mark.parametrize("wrong", [{"window": 0}, {"bca": 0}, {"sinks": 1}, {"sinks": -1}])
def test_a_mask_that_sees_nothing_is_refused(wrong):
    with pytest.raises(ValueError, match="accepted"):
        Mask(**wrong)


def test_low_precision_keeps_the_bias_exact():
    q = torch.zeros(1, 1, 1200, 4, dtype=torch.bfloat16)
    v = torch.arange(1200.0)[:, None].expand(1, 1, -1, 4)
    p = -torch.arange(1200.0)[None] / 300  # bfloat16 rounds distances above 256
    with torch.autocast("cpu", torch.bfloat16):
        fast = attention(q, q, v, p)
    assert fast.dtype == v.dtype
    torch.testing.assert_close(fast, materialised(q, q, v, p), rtol=1e-5, atol=1e-4)


def in_blocks(keys):
    """Pairs of queries and keys by blocks of 128."""
    whole = nn.functional.pad(keys, (0, 768 - keys.shape[-1]) * 2)
    return whole.unfold(1, 128, 128).unfold(2, 128, 128).flatten(3)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(
    "reach, widths", [((), ()), ((300,), ()), ((5, 400), ()), ((), (20, 200)), ((90, 500), (45,))]
)
def test_the_block_mask_is_the_mask(mask, reach, widths):
    blocks = block_mask(mask, 700, reach, widths=widths)
    i, j = torch.arange(700)[:, None], torch.arange(700)
    far, near = (torch.tensor(each or [700])[:, None, None] for each in (reach, widths))
    seen = mask.sees(i, j) & (i - j < far) & ((i - j < near) | (j < mask.sinks))
    dense = torch.zeros(len(seen), 6 * 128, 6 * 128, dtype=torch.bool)
    every = torch.zeros_like(dense)
    for counts, order, into in (
        (blocks.kv_num_blocks, blocks.kv_indices, dense),
        (blocks.full_kv_num_blocks, blocks.full_kv_indices, every),
    ):
        for head, row in itertools.product(range(len(seen)), range(6)):
            for column in order[0, head, row, : counts[0, head, row]].tolist():
                into[head, row * 128 :, :][:128, column * 128 :][:, :128] = True
    assert not (every[:, :700, :700] & ~seen).any(), "a whole block has keys that are not seen"
    assert not (seen & ~(dense | every)[:, :700, :700]).any(), "a key that is seen has no block"
    if not reach and not widths:  # two bounds that each leave a block may leave no key together
        listed, whole, keys = map(in_blocks, (dense | every, every, seen))
        assert not (listed.any(-1) & ~keys.any(-1)).any(), "a block has no key that is seen"
        assert not (keys.all(-1) & ~whole.all(-1)).any(), "a whole block is asked key by key"
    head = torch.arange(len(seen))[:, None, None]
    assert (blocks.mask_mod(head, head, i, j) == seen).all()


def test_memory_is_linear_in_the_length_also_where_the_bias_learns():
    saved = []
    q = drawn(1, HEADS, LENGTH, SIZE)
    p = drawn(HEADS, LENGTH)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda x: saved.append(x.numel()) or x, lambda x: x
    ):
        attention(q, q, q, p)
    assert max(saved) <= HEADS * LENGTH * SIZE


def test_bands_of_keys_are_for_measuring_alone():
    q, table = torch.zeros(1, 2, LENGTH, SIZE), biases()["steep in one head"].float()
    assert _bands(q, q, table) == [(slice(0, 2), LENGTH)]
    with torch.no_grad():
        narrow, wide = _bands(q, q, table)
        one = _bands(3 + q[:, :1], 1 + q[:, :1], -torch.arange(float(LENGTH))[None])
    assert narrow == (slice(0, 1), 2) and wide == (slice(1, 2), LENGTH)
    # content logits of 6 and -6 at most (times 2, for a difference), e^-104 the least that counts
    assert one == [(slice(0, 1), 1 + math.floor(104 + 2 * 3 * 1 * math.sqrt(SIZE)))]


def test_chunks_on_a_gpu_have_one_shape_that_its_memory_holds(monkeypatch):
    monkeypatch.setattr("farfield.validation.harness.attention.COMPILED_ON", {"cpu"})
    for logits, queries, length in itertools.product((1, 10**6, 10**9), (5, 300), (300, 701)):
        monkeypatch.setattr("farfield.validation.harness.attention.LOGITS", logits)
        q, k = torch.zeros(2, 3, queries, 16), torch.zeros(2, 3, length, 16)
        found = _stretches(q, k)
        (step,) = {stop - start for start, stop, _ in found}
        rows = max(128, logits // (6 * length))
        assert step <= rows and (step == queries or rows < 2 * step)
        seen = [i for start, stop, keys in found if keys == length for i in range(start, stop)]
        assert {*seen} == {*range(length - queries, length)} and len(seen) < queries + step
