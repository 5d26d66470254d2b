import math

import pytest
import torch

from farfield.theory.encodings import encoding
from farfield.validation.attention import materialised, toeplitz
from farfield.validation.configuration import CAUSAL, Visibility

HEADS, SIZE = 2, 4
VIEWS = [
    CAUSAL,
    Visibility(bca=1),
    Visibility(bca=3),
    Visibility(window=1),
    Visibility(window=5),
    Visibility(bca=4, window=6),
    Visibility(bca=100),
]


def sample(length, dtype=torch.float64, batch=2):
    generator = torch.Generator().manual_seed(length)
    shape = (batch, HEADS, length, SIZE)
    return [torch.randn(shape, generator=generator, dtype=dtype) * 2 for _ in range(3)]


def table(name, length, **given):
    return torch.from_numpy(encoding(name, **given).bias(range(length)))


BIASES = {
    "none": None,
    "alibi": lambda n: table("alibi", n, heads=2),
    "type1": lambda n: table("type1", n),
    "window": lambda n: table("window", n, w=3),
    "kerple": lambda n: table("kerple_log", n, heads=2, r1=[1, "1/2"], r2=[2, 3]),
}


def visible_by_definition(view, i, j):
    """[S, 3.3] and the definition of a window, read aloud."""
    if j > i:
        return False
    if view.bca is not None and math.floor(j / view.bca) < math.floor(i / view.bca) - 1:
        return False
    return view.window is None or j in range(i - view.window + 1, i + 1)


@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_specification_is_the_written_sum(view):
    query, key, value = sample(9)
    bias = BIASES["alibi"](9)
    found = materialised(query, key, value, bias, view)
    for b in range(2):
        for h in range(HEADS):
            for i in range(9):
                seen = [j for j in range(9) if visible_by_definition(view, i, j)]
                logits = [query[b, h, i] @ key[b, h, j] / SIZE**0.5 + bias[h, i - j] for j in seen]
                weights = torch.stack(logits).exp()
                expected = (weights[:, None] * value[b, h, seen]).sum(0) / weights.sum()
                torch.testing.assert_close(found[b, h, i], expected)


@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_visibility_is_its_definition(view):
    for i in range(25):
        seen = [j for j in range(25) if visible_by_definition(view, i, j)]
        assert [j for j in range(25) if view.sees(i, j)] == seen
        assert view.first(i) == seen[0]


@pytest.mark.parametrize("length", [1, 2, 13, 32])
@pytest.mark.parametrize("view", VIEWS, ids=str)
@pytest.mark.parametrize("bias", BIASES)
def test_fast_path_is_the_specification(bias, view, length):
    inputs = [x.requires_grad_() for x in sample(length)]
    p = BIASES[bias] and BIASES[bias](length).requires_grad_()
    leaves = inputs if p is None else [*inputs, p]
    weight = sample(length)[0].flip(-1)
    results = []
    for path in (materialised, lambda *a: toeplitz(*a, chunk=5)):
        output = path(*inputs, p, view)
        results.append([output, *torch.autograd.grad((output * weight).sum(), leaves)])
    for fast, exact in zip(*results, strict=True):
        torch.testing.assert_close(fast, exact, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("bias", BIASES)
def test_fast_path_in_single_precision(bias):
    """Rounding of inputs to 24 bits costs a few units in the last place of the largest value."""
    length = 300
    exact = sample(length)
    p = BIASES[bias] and BIASES[bias](length)
    found = toeplitz(*(x.float() for x in exact), None if p is None else p.float())
    expected = materialised(*exact, p)
    largest = max(x.abs().max() for x in exact)
    assert (found - expected).abs().max() < 64 * 2**-24 * largest**2 * SIZE**0.5


@pytest.mark.parametrize("path", [materialised, toeplitz])
@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_invisible_keys_have_no_influence(path, view):
    query, key, value = sample(20)
    bias = BIASES["type1"](20)
    before = path(query, key, value, bias, view)
    for j in (0, 7, 19):
        key_after, value_after = key.clone(), value.clone()
        key_after[:, :, j] += 1
        value_after[:, :, j] -= 3
        changed = (path(query, key_after, value_after, bias, view) != before).any(-1).any(1).any(0)
        assert changed.nonzero().flatten().tolist() == [
            i for i in range(20) if visible_by_definition(view, i, j)
        ]


def test_a_bias_shifted_by_a_constant_changes_nothing():
    inputs = sample(17)
    bias = BIASES["alibi"](17)
    torch.testing.assert_close(toeplitz(*inputs, bias + 5), toeplitz(*inputs, bias))


def test_one_head_is_shared_by_all():
    inputs = sample(17)
    bias = BIASES["type1"](17)
    assert len(bias) == 1
    torch.testing.assert_close(toeplitz(*inputs, bias), toeplitz(*inputs, bias.expand(HEADS, -1)))
