"""Every export against the float64 specification, gradients where parameters are learned."""

import json
import math

import numpy as np
import pytest
import torch
from torch.nn.attention.flex_attention import flex_attention

from farfield.numerics.windows.window import certified_window
from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding
from farfield.validation.harness.attention import fused, materialised
from farfield.validation.harness.configuration import read_layers
from farfield.validation.harness.mechanism import Visibility
from farfield.validation.harness.positional import transformers_configuration
from farfield.validation.harness.presets import preset
from farfield.validation.models.folder import describe

LENGTH = 150
FIXED = {
    "alibi": encoding("alibi", heads=4),
    "type1": encoding("type1"),
    "window": encoding("window", w=20),
    "sandwich": encoding("sandwich", heads=4),
    "table": encoding(values=np.linspace(0, -3, 40), tail="cut"),
    "user": encoding("-log(1+n)^(3/2)"),
    "bca": encoding("alibi", heads=4, bca=32),
}
LEARNED = {
    "kerple_log": {"r1": [0.5, 1.0, 2.0, 1.5], "r2": [0.1, 1.0, 0.5, 2.0]},
    "kerple_power": {"r1": [0.5, 1.0, 0.2, 0.1], "r2": [0.4, 1.0, 0.5, 1.5]},
    "t5": {f"b{k}": [0.1 * k, -0.1 * k, 0.0, 0.3 - 0.05 * k] for k in range(8)},
}


def made(name):
    return encoding("t5", buckets=8, max_distance=20) if name == "t5" else encoding(name)


@pytest.fixture
def qkv():
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(2, 4, LENGTH, 8, generator=generator, dtype=torch.float64).requires_grad_()
        for _ in range(3)
    ]


def by_hand(query, key, value, add):
    """What FlexAttention computes with a score function; on a CPU it has no backward pass."""
    batch, head = torch.arange(len(query))[:, None, None, None], torch.arange(4)[:, None, None]
    i, j = torch.arange(LENGTH)[:, None], torch.arange(LENGTH)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    scores = add(scores, batch, head, i, j).masked_fill(j > i, -math.inf)
    return scores.softmax(-1) @ value


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore:flex_attention called without")
@pytest.mark.parametrize("name", FIXED)
def test_fixed_biases_through_flex_attention(name, qkv):
    e = FIXED[name]
    add, mask = e.score_mod(LENGTH, dtype=torch.float64), e.block_mask(LENGTH, heads=4)
    qkv = [x.detach() for x in qkv]
    found = flex_attention(*qkv, score_mod=add, block_mask=mask)
    table = torch.from_numpy(e.bias(np.arange(LENGTH)))
    expected = materialised(*qkv, table, Visibility(bca=e.bca))
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore:flex_attention called without")
@pytest.mark.parametrize("name", LEARNED)
def test_learned_biases_and_their_gradients(name, qkv):
    e = made(name)
    values = {
        k: torch.tensor(v, dtype=torch.float64, requires_grad=True)
        for k, v in LEARNED[name].items()
    }
    add = e.score_mod(LENGTH, dtype=torch.float64, values=values)
    weights = torch.randn(2, 4, LENGTH, 8, dtype=torch.float64)
    leaves = [*qkv, *values.values()]
    out = by_hand(*qkv, add)
    fixed, mask = [x.detach() for x in qkv], e.block_mask(LENGTH, heads=4)
    with torch.no_grad():
        again = e.score_mod(LENGTH, dtype=torch.float64, values=values)
        torch.testing.assert_close(flex_attention(*fixed, score_mod=again, block_mask=mask), out)
    found = torch.autograd.grad((out * weights).sum(), leaves)
    table = e.tensor(LENGTH, dtype=torch.float64, values=values)
    rows = np.stack([_row(e, values, h) for h in range(4)])
    np.testing.assert_allclose(table.detach(), rows, rtol=1e-12, atol=1e-12)
    spec = materialised(*qkv, table)
    torch.testing.assert_close(out, spec, rtol=1e-9, atol=1e-12)
    expected = torch.autograd.grad((spec * weights).sum(), leaves)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-10)
    # and one of them by differences of the specification
    name, value = next(iter(values.items()))
    step = 1e-5
    sides = []
    for sign in (1, -1):
        moved = {**values, name: value.detach() + sign * step * torch.eye(4)[1].double()}
        spec = materialised(*qkv, e.tensor(LENGTH, dtype=torch.float64, values=moved))
        sides.append((spec * weights).sum().item())
    assert found[3][1].item() == pytest.approx((sides[0] - sides[1]) / (2 * step), rel=1e-4)


def _row(e, values, h):
    numbers = {k: repr(v[h].item()) for k, v in values.items()}
    options = {"buckets": 8, "max_distance": 20} if e.name == "t5" else {}
    return encoding(e.name, **options, **numbers).bias(np.arange(LENGTH))[0]


@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_the_block_mask_of_certified_windows(qkv):
    """Each head in its own certified window: within the budget of full attention, for the bounds
    of these very inputs; and blocks beyond the windows are left out."""
    e = encoding("-n*m", m=["1/2", "1/4", "1", "3/4"])
    q, k, v = (x.detach() for x in qkv)
    logits = (q @ k.transpose(-2, -1)).abs().max().item() / math.sqrt(8)
    bound = v.norm(dim=-1).max().item()
    window = certified_window(e, "1/1000", repr(logits), repr(bound))
    widths = [h.width for h in window.heads]
    assert max(widths) < LENGTH
    mask = e.block_mask(LENGTH, widths=widths, block=16)
    add = e.score_mod(LENGTH, dtype=torch.float64)
    found = flex_attention(q, k, v, score_mod=add, block_mask=mask)
    full = materialised(q, k, v, torch.from_numpy(e.bias(np.arange(LENGTH))))
    assert 0 < (found - full).norm(dim=-1).max() <= 1e-3
    dense = mask.to_dense()[0]
    for h, each in enumerate(window.heads):
        expected = each.block_mask(LENGTH, 16)
        np.testing.assert_array_equal(dense[h].bool().numpy(), expected)
    assert 0 < dense.sum() < 4 * 55  # of 55 blocks on or below the diagonal
    one = e.block_mask(LENGTH, widths=window.sliding_window, block=16).to_dense()
    assert one.shape[1] == 1 and one.sum() >= dense.sum(dim=(1, 2)).max()


@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_first_keys_in_the_block_mask(qkv):
    """Against the specification, in and out of the support of the bias."""
    e = encoding("-n*m", m=["1/2", "1/4", "1", "3/4"])
    q, k, v = (x.detach() for x in qkv)
    free = encoding("[-n/4; 0 x7]")
    widths = [h.width for h in certified_window(free, "1/100", 1, 1).heads]
    assert widths[1:] == [math.inf] * 7
    dense = free.block_mask(LENGTH, widths=widths, block=16).to_dense()[0]
    alone = free.block_mask(LENGTH, widths=[widths[0], *[LENGTH] * 7], block=16).to_dense()[0]
    assert torch.equal(dense, alone)
    whole = encoding("alibi").block_mask(LENGTH, widths=math.inf, block=16).to_dense()
    assert torch.equal(whole, encoding("alibi").block_mask(LENGTH, block=16).to_dense())
    mask = e.block_mask(LENGTH, widths=20, sinks=3, block=16)
    add = e.score_mod(LENGTH, dtype=torch.float64)
    found = flex_attention(q, k, v, score_mod=add, block_mask=mask)
    view = Visibility(window=20, sinks=3)
    table = torch.from_numpy(e.bias(np.arange(LENGTH)))
    torch.testing.assert_close(found, materialised(q, k, v, table, view))
    torch.testing.assert_close(fused(q, k, v, table, view), materialised(q, k, v, table, view))
    short = encoding("window", w=30).block_mask(LENGTH, widths=20, sinks=3, block=1).to_dense()
    i, j = torch.arange(LENGTH)[:, None], torch.arange(LENGTH)
    seen = (j <= i) & (i - j < 30) & ((i - j < 20) | (j < 3))
    assert (short[0, 0].bool() == seen).all()


def test_slopes_for_kernels_that_take_them():
    for heads in (1, 6, 12, 16):
        e = encoding("alibi", heads=heads)
        np.testing.assert_allclose(-e.slopes()[:, None] * np.arange(99), e.bias(np.arange(99)))
    assert encoding("-n/3 + 2").slopes().tolist() == [1 / 3]
    for wrong in ("type1", "kerple_log", "rope", "-abs(n-3)"):
        with pytest.raises(InputError):
            encoding(wrong).slopes()
    with pytest.raises(InputError, match="no ALiBi bias"):
        encoding("window", w=3).slopes()


def test_tables_in_float32_and_on_numpy():
    e = FIXED["sandwich"]
    table = e.tensor(LENGTH)
    assert table.dtype == torch.float32
    np.testing.assert_array_equal(table.numpy(), e.bias(np.arange(LENGTH)).astype(np.float32))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: encoding("rope").score_mod(8), "has no additive bias"),
        (lambda: encoding("kerple_log").score_mod(8), "needs values of r1, r2"),
        (lambda: encoding("alibi").score_mod(8, values={"m": torch.ones(8)}), "values of none"),
        (lambda: encoding("alibi").score_mod(0), "whole number of tokens"),
        (lambda: encoding("alibi").tensor(8, dtype=torch.bfloat16), "float32 and float64"),
        (lambda: encoding("-r*n").tensor(8, values={"r": torch.ones(2, 2)}), "one shape"),
        (lambda: encoding("alibi").block_mask(8, widths=0), "whole number of tokens"),
        (lambda: encoding("alibi").block_mask(8, widths=[1, 2]), "2 widths, 8 heads"),
        (lambda: encoding("alibi").block_mask(8, widths=3, sinks=4), "as many as the least"),
        (lambda: encoding("alibi").block_mask(8, sinks=1), "as many as the least"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()


LOCAL, FREE = {"mechanism": "rope", "window": 5, "base": 500.0, "scaling": 2.0}, "0"


def test_a_hybrid_is_a_configuration_of_transformers(tmp_path):
    """The library's model has the windows and the rotations, and farfield reads them back."""
    transformers = pytest.importorskip("transformers")
    layers = read_layers([LOCAL, FREE, LOCAL], 4)
    content = transformers_configuration(layers, preset("recall"))
    (tmp_path / "config.json").write_text(json.dumps(content))
    torch.manual_seed(0)
    config = transformers.AutoConfig.from_pretrained(tmp_path)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    assert type(model).__name__ == "SmolLM3ForCausalLM"
    turned = [layer.self_attn.use_rope for layer in model.model.layers]
    windows = [layer.self_attn.sliding_window for layer in model.model.layers]
    assert (list(map(bool, turned)), windows) == ([True, False, True], [5, None, 5])
    assert config.rope_parameters["rope_theta"] == 500 and config.rope_parameters["factor"] == 2
    read = describe(tmp_path)
    assert [layer.width for layer in read.layers] == windows
    turns = [(r.size, r.base) if (r := layer.rotation) else None for layer in read.layers]
    assert turns == [(16, 500.0), None, (16, 500.0)]
    row = torch.arange(40)[None]
    far = row.clone()
    far[0, 3] = 200  # beyond two windows, within reach of the free layer
    local = transformers_configuration(read_layers([LOCAL, LOCAL], 4), preset("recall"))
    (tmp_path / "config.json").write_text(json.dumps(local))
    config = transformers.AutoConfig.from_pretrained(tmp_path)
    near = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        assert not torch.equal(model(row).logits[0, -1], model(far).logits[0, -1])
        assert torch.equal(near(row).logits[0, -1], near(far).logits[0, -1])


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([FREE, "-n"], "layer 2: accepted are rotations"),
        ([FREE, {"mechanism": "0", "sinks": True}], "layer 2: accepted"),
        ([{"mechanism": "rope", "share": 0.5}], "layer 1: accepted"),
        (["xpos"], "layer 1: accepted"),
        ([{"mechanism": "0", "scale": "log"}], "layer 1: accepted"),
        ([LOCAL, {"mechanism": "0", "window": 6}], "one window, for all"),
        (["rope", LOCAL], "one base and scaling"),
    ],
)
def test_what_the_class_cannot_have(entries, message):
    with pytest.raises(InputError, match=message):
        transformers_configuration(read_layers(entries, 4), preset("recall"))
