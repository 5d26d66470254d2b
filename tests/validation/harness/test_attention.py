import math
import tracemalloc

import pytest
import torch

from farfield.theory.encodings import encoding, encodings
from farfield.validation.harness import attention
from farfield.validation.harness.attention import (
    bands,
    blocks,
    flexible,
    fused,
    materialised,
    toeplitz,
)
from farfield.validation.harness.configuration import TRAINABLE
from farfield.validation.harness.mechanism import CAUSAL, Visibility
from farfield.validation.harness.positional import additive_bias

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


# -- every trainable encoding, against an error budget --------------------------------------------


def trainable(name, length):
    """The bias table of an encoding with two heads; learned parameters at drawn values."""
    given = {"window": {"w": 90}, "alibi_log": {"m": 2}}.get(name, {})
    e = encoding(name, **given)
    if not e.biases:
        return None
    e = encoding(name, **given, **({} if e.num_heads == 1 else {"heads": HEADS}))
    torch.manual_seed(1)
    return additive_bias(e, HEADS)(length).detach()


TRAINABLE_NAMES = [
    name
    for name in encodings()
    if encoding(name).mechanism in TRAINABLE and "surrogate" not in name
]
LONG = 300
VISIBLE = [CAUSAL, Visibility(bca=64), Visibility(window=100)]


def budgeted(path, inputs, bias, view, unit):
    """Outputs and gradients of a path, those of the specification, and how far they may part.

    The budget comes from the data: in a weight, a rounding of the scores counts as much as the
    scores are large (`|q| |k| / sqrt(d) + |p|`, where the weight counts at all); each result is
    then a sum of products, bounded by the same sum of absolute values.
    """
    query, key, value = (x.double() for x in inputs)
    weight = sample(LONG, query.dtype)[0].flip(-1)
    results = []
    for attend, cast in ((path, lambda x: x), (materialised, lambda x: x.double())):
        leaves = [cast(x).detach().requires_grad_() for x in (*inputs, bias) if x is not None]
        p = leaves[3] if len(leaves) == 4 else None
        output = attend(*leaves[:3], p, view)
        gradients = torch.autograd.grad((output * cast(weight.to(inputs[0]))).sum(), leaves)
        results.append([output, *gradients])
    position = torch.arange(LONG)
    distance = (position[:, None] - position).clamp(min=0)
    scale = 1 / math.sqrt(SIZE)
    bare = query @ key.mT * scale
    size = query.abs() @ key.abs().mT * scale
    p = torch.zeros(1, LONG).double() if bias is None else bias.double()
    scores = (bare + p[:, distance]).masked_fill(~view.sees(position[:, None], position), -math.inf)
    prob = scores.softmax(-1)
    size = (size + p[:, distance].abs()).masked_fill(prob < unit**2, 0).amax(-1, keepdim=True)
    rounding = unit * (8 + math.sqrt(SIZE + LONG)) * (1 + size)
    inner = prob @ value.abs()
    by_scores = prob * (weight.abs() @ value.abs().mT + (weight.abs() * inner).sum(-1, True))
    by_scores = by_scores * rounding
    budgets = [
        rounding * inner,
        by_scores @ key.abs() * scale,
        by_scores.mT @ query.abs() * scale,
        (prob * rounding).mT @ weight.abs(),
    ]
    if bias is not None:
        along = torch.zeros(2, HEADS, LONG).double()
        along.scatter_add_(2, distance.expand(2, HEADS, -1, -1).flatten(2), by_scores.flatten(2))
        summed = along.sum(0)
        budgets.append(summed.sum(0, True) if len(bias) == 1 else summed)
    return *results, budgets


def within(found, exact, budgets):
    for got, wanted, budget in zip(found, exact, budgets, strict=True):
        assert got.dtype == wanted.dtype or got.dtype == torch.float32
        excess = (got.double() - wanted.double()).abs() - budget
        assert (excess <= 1e-30).all(), f"beyond its budget by {excess.max()}"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("view", VISIBLE, ids=str)
@pytest.mark.parametrize("name", TRAINABLE_NAMES)
def test_outputs_and_gradients_of_every_encoding_within_the_budget(name, view):
    bias = trainable(name, LONG)
    bias = None if bias is None else bias.float()
    inputs = sample(LONG, torch.float32)
    within(*budgeted(fused, inputs, bias, view, 2.0**-24))
    if bias is not None:
        p, leaves = bias.detach(), [x.requires_grad_() for x in inputs]  # a bias without gradient
        outputs = [path(*leaves, p, view) for path in (fused, materialised)]
        weight = sample(LONG)[0].flip(-1).float()
        grads = [torch.autograd.grad((o * weight).sum(), leaves) for o in outputs]
        budgets = budgeted(fused, [x.detach() for x in inputs], p, view, 2.0**-24)[2]
        within(grads[0], grads[1], [2 * b for b in budgets[1:4]])


def test_the_budget_notices_half_precision():
    """A bias rounded to bfloat16 breaks it: the budget is not an excuse."""
    bias, inputs = trainable("alibi", LONG).float(), sample(LONG, torch.float32)

    def rounded(q, k, v, p, view):
        return toeplitz(q, k, v, p + (p.bfloat16() - p).detach(), view)

    with pytest.raises(AssertionError, match="beyond its budget"):
        within(*budgeted(rounded, inputs, bias, CAUSAL, 2.0**-24))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", TRAINABLE_NAMES)
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_the_score_function_of_the_kernel(name):
    """FlexAttention in its unfused form: outputs only, which is what a CPU has of it."""
    bias, inputs = trainable(name, 50), sample(50, torch.float32)
    bias = None if bias is None else bias.float()
    for view in (CAUSAL, Visibility(bca=8), Visibility(window=20)):
        found, exact = (path(*inputs, bias, view) for path in (flexible, materialised))
        torch.testing.assert_close(found, exact, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("length", [40, 128, 129, 300])
@pytest.mark.parametrize(
    "view",
    [
        CAUSAL,
        Visibility(window=1),
        Visibility(window=37),
        Visibility(bca=24),
        Visibility(bca=50, window=60),
        Visibility(window=30, sinks=20),
        Visibility(window=30, sinks=20, reach=90),
    ],
    ids=str,
)
def test_blocks_by_arithmetic_are_those_of_every_pair(view, length):
    """Blocks that are left out are seen by nobody, whole ones by all; the others ask the mask."""
    side, widths = 16, (length, 45)
    for own in ((), widths):
        mask = blocks(view, length, widths=own, block=side)
        i = torch.arange(length)
        near = torch.tensor(own or (length,))[:, None, None]
        seen = view.sees(i[:, None], i) & (i[:, None] - i < near)
        count, pad = -(-length // side), -length % side
        pairs = torch.nn.functional.pad(seen, (0, pad, 0, pad)).unflatten(1, (count, side))
        pairs = pairs.unflatten(3, (count, side)).transpose(2, 3)
        inside = torch.nn.functional.pad(torch.ones(length, length), (0, pad, 0, pad))
        inside = inside.unflatten(0, (count, side)).unflatten(2, (count, side)).transpose(1, 2)
        whole = (pairs | (inside == 0)).all(-1).all(-1)
        some = pairs.any(-1).any(-1)
        for row, (some_row, whole_row) in enumerate(zip(some, whole, strict=True)):
            for q in range(count):
                part = _listed(mask.kv_num_blocks, mask.kv_indices, row, q)
                full = _listed(mask.full_kv_num_blocks, mask.full_kv_indices, row, q)
                assert not part & full
                assert set(some_row[q].nonzero().flatten().tolist()) <= part | full
                assert full <= set(whole_row[q].nonzero().flatten().tolist())
        head = torch.arange(len(near))[:, None, None]
        found = mask.mask_mod(i[0], head, i[:, None], i)
        assert torch.equal(found.expand_as(near * seen), seen.expand_as(near * seen))


def _listed(count, indices, row, query):
    return set(indices[0, row, query, : int(count[0, row, query])].tolist())


def test_blocks_of_a_long_row_take_no_matrix_of_pairs():
    tracemalloc.start()
    mask = blocks(Visibility(window=1000), 1 << 17, block=128)
    assert tracemalloc.get_traced_memory()[1] < 1 << 24
    tracemalloc.stop()
    held = (mask.kv_num_blocks + mask.full_kv_num_blocks)[0, 0]
    assert (
        int(held[-1]) == 9 and sum(x.numel() for x in (mask.kv_indices, mask.q_indices)) < 1 << 22
    )


# -- bands --------------------------------------------------------------------------------------


def by_definition(query, key, p, nothing):
    """The largest distance whose weight, relative to distance 0, need not round to 0."""
    lam = 2 * query.norm(dim=-1).max() * key.norm(dim=-1).max() / math.sqrt(query.shape[-1])
    counted = [n for n in range(len(p)) if p[n] - p[0] + lam >= nothing]
    return max(counted) + 1


def test_bands_are_their_definition():
    query, key, _ = sample(LONG)
    table = torch.stack([-9.0 * torch.arange(LONG), -9 * torch.sin(torch.arange(LONG))]).double()
    table[0, 200] = 5  # far, but not to be left out
    found = bands(query, key, table)
    for h in range(HEADS):
        q, k = query[:, h], key[:, h]
        assert found[h] == by_definition(q, k, table[h], -745.2)
    assert found == [201, LONG]
    assert bands(query.float(), key.float(), table[1:].float()) == [LONG]
    narrow = -60.0 * torch.arange(LONG)[None]
    assert bands(query * 0, key, narrow)[0] == 13 and bands((query * 0).float(), key, narrow) == [2]
    assert bands(query * math.nan, key, narrow) == [LONG]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_a_band_leaves_out_is_nothing(dtype):
    """Values of 1e30 beyond the band would show in any weight above 1e-40; they never do."""
    length = 700
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 4, length, 4, generator=generator).to(dtype) for _ in range(3))
    table = -torch.arange(length)[None] * torch.tensor([8.0, 3.0, 1.0, 0.01])[:, None]
    table = table.to(dtype)
    widths = bands(q, k, table)
    assert widths[0] < widths[1] < 700 == widths[3]
    far = v.clone()
    for h, width in enumerate(widths):
        far[:, h, : length - width] = 1e30 if dtype == torch.float32 else 1e300
    row = slice(length - 1, length)
    for h in range(3 if widths[2] < length else 2):
        plain = materialised(q[:, [h]], k[:, [h]], v[:, [h]], table[[h]])[:, :, row]
        torch.testing.assert_close(
            toeplitz(q, k, far, table)[:, [h], row], plain, rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("learned", [False, True])
def test_bands_change_no_gradient(learned, monkeypatch):
    length = 600
    inputs = [torch.randn(1, 4, length, 8).requires_grad_() for _ in range(3)]
    table = -torch.arange(length)[None] * torch.tensor([8.0, 3.0, 8.0, 0.01])[:, None]
    table = table.requires_grad_(learned)
    leaves = [*inputs, table] if learned else inputs
    found = [torch.autograd.grad(toeplitz(*inputs, table).sin().sum(), leaves)]
    monkeypatch.setattr(attention, "bands", lambda q, k, t: [q.shape[-2]] * len(t))
    found.append(torch.autograd.grad(toeplitz(*inputs, table).sin().sum(), leaves))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_half_precision_keeps_the_bias_in_single():
    """Under autocast, distances above 256 stay apart: the result is that of rounded inputs only."""
    length = 900
    q, k, v = (torch.randn(1, 2, length, 8).bfloat16() for _ in range(3))
    table = -torch.arange(length).float()[None] / 4 * torch.tensor([[0.01], [1.0]])
    exact = materialised(q.double(), k.double(), v.double(), table)
    with torch.autocast("cpu", torch.bfloat16):
        found = toeplitz(q, k, v, table)
    assert found.dtype == torch.bfloat16
    assert (found.double() - exact).abs().max() < 2**-8 * v.abs().max().double() * 2


# -- on a GPU -------------------------------------------------------------------------------------

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU is visible")


@on_gpu
@pytest.mark.parametrize("view", VISIBLE, ids=str)
@pytest.mark.parametrize("name", TRAINABLE_NAMES)
def test_the_kernel_of_a_gpu_within_the_budget(name, view):
    """Products in TF32 are off by default; sums in another order cost no more than the budget."""
    bias = trainable(name, LONG)

    def on_the_gpu(path):
        def run(q, k, v, p, view):
            p = None if p is None else p.cuda()
            return path(q.cuda(), k.cuda(), v.cuda(), p, view).cpu()

        return run

    bias, inputs = None if bias is None else bias.float(), sample(LONG, torch.float32)
    for path in (fused, toeplitz):
        found, exact, budgets = budgeted(on_the_gpu(path), inputs, bias, view, 2.0**-24)
        within(found, exact, [8 * b for b in budgets])


@on_gpu
def test_the_kernel_works_on_a_gpu():
    assert attention.flex_works(torch.device("cuda"), 16, torch.bfloat16)


def test_without_a_compiler_the_other_path_is_taken(monkeypatch):
    def fail(*_):
        raise RuntimeError("no compiler\nand a long story")

    monkeypatch.setattr(attention, "flexible", fail)
    attention.flex_works.cache_clear()
    with pytest.warns(UserWarning, match="does not work here .no compiler"):
        assert not attention.flex_works(torch.device("cpu"), 16, torch.float32)
    attention.flex_works.cache_clear()
