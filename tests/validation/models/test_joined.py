"""Attentions to parts of the keys, joined, are one softmax over all keys."""

import math

import pytest
import torch

from farfield.validation.models.joined_attention import _fuses, joined

HEADS, SHARED, QUERIES, SIZE = 6, 3, 5, 8
CUTS = ((0, 4), (4, 12))


def parts_of(dtype, gradient=False):
    """Keys in two parts; the first query sees none of one part, the last none of the other."""
    draws = torch.Generator().manual_seed(5)

    def some(heads, length):
        x = torch.randn(2, heads, length, SIZE, generator=draws)
        return x.to(dtype).requires_grad_(gradient)

    q, k, v = some(HEADS, QUERIES), some(HEADS // SHARED, 12), some(HEADS // SHARED, 12)
    bias = torch.randn(1, 1, QUERIES, 12, generator=draws)
    bias[..., 0, :4], bias[..., -1, 4:], bias[..., 2, 7] = -math.inf, -math.inf, -math.inf
    return (q, k, v, bias), [(q, k[:, :, a:b], v[:, :, a:b], bias[..., a:b]) for a, b in CUTS]


def one_softmax(q, k, v, bias, sink=None, cap=None):
    """From its formula, in float64."""
    k, v = (x.double().repeat_interleave(SHARED, 1) for x in (k, v))
    logits = q.double() @ k.mT
    logits = (logits if cap is None else cap * (logits / cap).tanh()) + bias
    more = torch.zeros(HEADS) if sink is None else sink.double().exp()
    weights = logits.exp()
    return weights @ v / (weights.sum(-1, keepdim=True) + more[:, None, None])


@pytest.mark.parametrize("how", [{}, {"sink": torch.linspace(-1, 2, HEADS)}, {"cap": 2.0}], ids=str)
@pytest.mark.parametrize("dtype, close", [(torch.float32, 1e-5), (torch.bfloat16, 3e-2)], ids=str)
def test_parts_are_joined_to_one_softmax(dtype, close, how):
    everything, parts = parts_of(dtype)
    assert torch.allclose(joined(parts, **how).double(), one_softmax(*everything, **how), 0, close)
    assert joined(parts, **how).dtype == dtype
    narrow = joined([(q, k, v[..., :3], bias) for q, k, v, bias in parts], **how)
    assert torch.allclose(narrow, joined(parts, **how)[..., :3], 0, close)


def test_a_part_without_keys_adds_nothing():
    everything, (one, other) = parts_of(torch.float32)
    q, k, v, bias = one
    none = (q, k[:, :, :0], v[:, :, :0], bias[..., :0])
    assert torch.equal(joined([one, none, other]), joined([one, other]))
    assert torch.equal(joined([none, everything]), joined([everything]))


def test_the_gradient_is_that_of_one_softmax():
    everything, parts = parts_of(torch.float32, gradient=True)
    asked = everything[:3]
    one, other = (
        torch.autograd.grad((x.double() ** 2).sum(), asked)
        for x in (joined(parts), one_softmax(*everything))
    )
    assert all(torch.allclose(a, b, 0, 1e-4) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(("size", "graded"), [(5, False), (5, True), (4, False)])
def test_one_kernel_is_for_values_as_wide_as_keys_without_gradients(size, graded):
    q = torch.zeros(1, 4, 2, 5, requires_grad=graded)
    assert _fuses((q, q, torch.zeros(1, 4, 3, size), q)) == (size == 5 and not graded)
    elsewhere = q.to("meta")
    assert not _fuses((elsewhere,) * 4), "it is a kernel of the CPU"
