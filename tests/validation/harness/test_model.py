"""The model: each mechanism is what its formula says, and the hooks see what the layers compute."""

import itertools
import math

import pytest
import torch
from torch import nn
from torch.nn.attention.flex_attention import BlockMask

from farfield.numerics.masks import CAUSAL, Mask
from farfield.theory.encodings import CATALOGUE, encoding
from farfield.validation.harness import bias as bias_module
from farfield.validation.harness.attention import attention, materialised
from farfield.validation.harness.bias import FixedBias, LearnedBias
from farfield.validation.harness.mechanism import ABSOLUTE, read
from farfield.validation.harness.model import Layer, Transformer, rotated
from farfield.validation.harness.runs import model_of
from farfield.validation.harness.settings import LayerSettings, ModelSettings, RopeSettings, Run

SMALL = {"layers": 2, "width": 32, "heads": 4, "length": 12}
HYBRID = {
    "label": "all at once",
    "layers": [
        {"mechanism": "rope", "window": 6, "sinks": True, "base": 500.0, "share": 0.5},
        {"mechanism": "kerple_log", "scale": {"form": "1 + a log", "heads": [2]}, "sinks": True},
        {"mechanism": "xpos", "bias": "-n/4", "scale": "log"},
        "0",
    ],
}
TOKENS = torch.randint(256, (2, 40), generator=torch.Generator().manual_seed(0))


def trainable():
    for name in CATALOGUE:
        found = encoding(name)
        learned = all(p.learned or p.init[0] == p.init[1] for p in found.free)
        if found.mechanism in ("bias", "rotation", "rotation_decay", *ABSOLUTE) and learned:
            yield name


def model(name, **settings):
    return model_of(Run(encoding=name, **{**SMALL, **settings})).double().eval()


def exact(layer, q, k, v, given):
    """Attention by the specification, sinks as their formula says: a term of the denominator."""
    bias = given.bias
    out = materialised(q, k, v, bias, given.mask)
    if layer.sinks is None:
        return out
    j = torch.arange(k.shape[-2])
    logits = q @ k.mT / math.sqrt(q.shape[-1])
    if bias is not None:
        logits = logits + bias[:, (j[-q.shape[2] :, None] - j).clamp(min=0)]
    logits = logits.masked_fill(~given.mask.sees(j[-q.shape[2] :, None], j), -math.inf)
    weight = logits.logsumexp(-1) - layer.sinks[:, None]
    return out * weight.sigmoid()[..., None]


@pytest.mark.parametrize("name", [*trainable(), "[-n/4; 0 x3]"])
def test_every_encoding_of_the_catalogue_trains_as_the_specification_says(name):
    made = model(name)
    length = 12 if made.absolute is not None else 40
    for mask in (CAUSAL, Mask(window=5), Mask(bca=6)):
        fast = made(TOKENS[:, :length], mask)
        slow = made(TOKENS[:, :length], mask, attend=exact)
        torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-9)
        learned = [p for p in made.parameters() if p.requires_grad]
        ours, theirs = (
            torch.autograd.grad(x.square().mean(), learned, allow_unused=True) for x in (fast, slow)
        )
        for one, other in zip(ours, theirs, strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-9)


def test_a_hybrid_has_every_mechanism_in_one_model():
    made = model(HYBRID, layers=4)
    with torch.no_grad():
        for layer in made.layers[:2]:
            layer.sinks.normal_()
    torch.testing.assert_close(made(TOKENS), made(TOKENS, attend=exact), rtol=1e-9, atol=1e-9)
    made.train()
    made(TOKENS).square().mean().backward()
    assert all(p.grad is not None for p in made.parameters())


def test_no_bias_is_no_bias():
    made = model("nope")
    assert [p.bias for p in made.prepare(5)] == [None, None] and not made.biases
    assert [p.mask for p in made.prepare(5, Mask(2))] == [Mask(2)] * 2
    affine = {name for name, _ in model("alibi").named_parameters() if name.endswith("bias")}
    assert affine == {name for name in affine if ".ln_" in name or name == "ln.bias"}


def test_layers_that_are_plain_causal_attention_need_no_block_mask():
    layers = ["0", {"mechanism": "0", "sinks": True}, {"mechanism": "0", "window": 3}, "-n/4"]
    made = model({"label": "x", "layers": layers}, layers=4)
    found = [isinstance(p.mask, BlockMask) for p in made.prepare(5, flex=True)]
    assert found == [False, True, True, True] and made.prepare(5, flex=True)[0].mask == CAUSAL


def test_layers_that_are_alike_share_a_learned_bias_and_a_hybrid_does_not():
    assert len(model("kerple_log").biases) == 1
    both = {"label": "two", "layers": ["kerple_log", "kerple_log"]}
    assert len(model(both).biases) == 2


@pytest.mark.parametrize(("name", "learned"), [("bam", {"s", "mu", "beta"}), ("alibi_log", set())])
def test_what_an_encoding_does_not_learn_stays_as_it_is(name, learned):
    values = LearnedBias(encoding(name), 4).values
    assert {p for p, value in values.items() if value.requires_grad} == learned < {*values}


def test_a_table_of_numbers_and_of_what_learns_has_one_row():
    entries = torch.tensor([[2.0]]), 3.0, torch.tensor([[5.0]])
    found = bias_module._TENSORS.look_up((torch.tensor([0, 1, 2, 9]),), *entries)
    assert found.tolist() == [[2.0, 3.0, 5.0, 5.0]]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("decay", [True, False])
def test_a_rotation_is_a_product_of_complex_numbers(share, decay, sign):
    rope = RopeSettings(share=share, base=50.0, scaling=2.0, decay=decay)
    x, at, r = torch.randn(3, 8, dtype=torch.float64), torch.tensor([0.0, 3.5, 900.0]), 8 * share
    i, m = torch.arange(r // 2).double(), at.double()[:, None]
    zeta = (2 * i / r + 0.4) / 1.4 if decay else torch.ones(1)
    pairs = torch.complex(*x[:, : int(r)].chunk(2, -1))
    turned = pairs * torch.exp(1j * m * 50.0 ** (-2 * i / r) / 2) * zeta ** (sign * m / 512)
    expected = torch.cat([turned.real, turned.imag, x[:, int(r) :]], -1)
    torch.testing.assert_close(rotated(x, at, rope, sign), expected)


@pytest.mark.parametrize("last", [0, 3])
@pytest.mark.parametrize(
    "settings",
    [
        {"rope": {}},
        {"rope": {"decay": True, "scaling": 2.0, "share": 0.5, "base": 50.0}},
        *({"scale": {"form": "log", "when": w}} for w in ("both", "training", "inference")),
        {"scale": {"form": "1 + a log", "a": 0.3, "heads": [2, 4], "length": 5}, "rope": {}},
    ],
)
def test_queries_are_turned_and_scaled_and_keys_are_turned(settings, last):
    """Beside a layer without positions: by angles from the middle of the row, and by its keys."""
    layer = LayerSettings.of(settings)
    written = settings if "rope" in settings else {"mechanism": "0", **settings}
    made, plain = (model({"label": "x", "layers": [each] * 2}) for each in (written, "0"))
    x, at, count = plain.embed(TOKENS), torch.arange(40) - 20, torch.arange(1, 41).double()
    q, k, v = plain.layers[0].qkv(x)
    if layer.rope is not None:
        q, k = rotated(q, at, layer.rope, 1), rotated(k, at, layer.rope, -1)
    for training in (False, True):
        factor, scale = torch.ones(4, 40).double(), layer.scale
        if scale is not None and scale.when in ("both", ("inference", "training")[training]):
            grown = count.log() / math.log(12)
            if scale.form != "log":
                grown = 1 + scale.a * (1 + count // scale.length).log()
            least = 1 if scale.when == "inference" else 0
            factor[[h - 1 for h in scale.heads or range(1, 5)]] = grown.clamp(min=least)
        found = made.layers[0].train(training).qkv(x, last)
        for one, other in zip(found, ((q * factor[..., None])[:, :, -last:], k, v), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


def test_attend_sees_and_may_change_every_layer():
    seen = []

    def look(layer, q, k, v, given):
        seen.append((q.shape, k.shape))
        return Layer.attend(layer, q, k, v, given)

    made = model("alibi")
    torch.testing.assert_close(made(TOKENS, attend=look), made(TOKENS))
    assert seen == [((2, 4, 40, 8), (2, 4, 40, 8))] * 2
    silent = made(TOKENS, attend=lambda layer, q, *_: torch.zeros_like(q))
    assert not torch.allclose(silent, made(TOKENS))


class Doubled(nn.Module):
    """Logits times the logarithm of the row."""

    def factor(self, i):
        return (i + 2).log()[None]


def test_a_module_may_give_a_factor_of_the_logits_alone():
    settings = ModelSettings(layers=[LayerSettings()], width=32, heads=4)
    made = Transformer(settings, [Doubled()]).double()

    def scaled(layer, q, k, v, given):
        assert given.bias is None
        plain = layer.qkv(made.embed(TOKENS))[0]
        torch.testing.assert_close(q, plain * torch.arange(2.0, 42.0).double().log()[:, None])
        return attention(q, k, v)

    made(TOKENS, attend=scaled)


def test_learned_absolute_positions_are_added_and_end():
    made, few = model("learned"), TOKENS[:, :9]
    assert made.embed(few).equal(made.embedding.weight[few] + made.absolute.weight[:9])
    with pytest.raises(ValueError, match="know 12, accepted are at most as many"):
        made(TOKENS)


def test_a_score_function_is_the_table():
    i, j = torch.meshgrid(torch.arange(50), torch.arange(50), indexing="ij")
    for name in ("alibi", "-7/2", "-2*log(1+n)", "-n^(1/2)/3", "[-n/4; -n/8; -n/3; -n/5]"):
        bias = FixedBias(read(name, 4))
        add, table = bias.score_mod(torch.device("cpu")), bias.table(50)
        assert add is not None
        for head in range(len(table)):
            scores = add(torch.zeros(50, 50), torch.tensor(0), torch.tensor(head), i, j)
            wanted = table[head, (i - j).clamp(min=0)].float()
            torch.testing.assert_close(scores, wanted, rtol=1e-6, atol=1e-6)
    unlike = "[-n/4-sqrt(n); -n/4-log(1+n); -n-log(1+n); -n-log(1+n)]"
    for name in ("t5", "-floor(n/3)", "[-n/4; -log(1+n); 0; 0]", unlike, "-exp(n/11000)"):
        source = read(name, 4)
        assert source.free or FixedBias(source).score_mod(torch.device("cpu")) is None
    held = FixedBias(read("-exp(n/12000)", 4))  # at 2^20 tokens, but no further, float32 holds it
    assert held.score_mod(torch.device("cpu")) is held.score_mod(torch.device("cpu")) is not None


ALIBI, RATE = encoding("alibi"), encoding("-r*n")
PAIR = encoding("[-r*n; -r*n^2]")
VIEWS = {
    "length 0: accepted is a whole number of tokens from 1": lambda: ALIBI.tensor(0),
    "length 2.0: accepted is a whole": lambda: ALIBI.tensor(2.0),
    "dtype torch.bfloat16: accepted are float32 and float64": lambda: ALIBI.tensor(
        2, dtype=torch.bfloat16
    ),
    "needs values of r; given: s": lambda: RATE.tensor(2, values={"s": torch.ones(1)}),
    "needs values of none; given: r": lambda: ALIBI.tensor(2, values={"r": torch.ones(1)}),
    "values of shapes float; accepted are tensors of one shape (heads,)": lambda: RATE.tensor(
        2, values={"r": 0.5}
    ),
    "values of shapes (1, 2); accepted": lambda: RATE.tensor(2, values={"r": torch.ones(1, 2)}),
    "values of shapes (0,); accepted": lambda: RATE.tensor(2, values={"r": torch.ones(0)}),
    "shapes (3,); accepted are tensors of one shape (heads,) of 2 heads": lambda: PAIR.tensor(
        2, values={"r": torch.ones(3)}
    ),
    "width 0: accepted is a whole number of tokens from 1": lambda: block(widths=0),
    "width 2.5: accepted": lambda: block(widths=[3, 2.5]),
    "sinks -1 with widths [9]: accepted are at most as many as the least": lambda: block(
        widths=9, sinks=-1
    ),
    "sinks 4 with widths [9, 3]: accepted": lambda: block("-n", widths=[9, 3], sinks=4),
    "sinks 1.0 with widths [9]: accepted": lambda: block(widths=9, sinks=1.0),
    "sinks 1 with widths []: accepted": lambda: block(sinks=1),
    "3 widths, 8 heads: accepted are 1 and 8": lambda: block(widths=[9, 9, 9]),
    "8 heads of the encoding, 9 heads: accepted are 1 and 9": lambda: block(heads=9),
}


def block(text="alibi", length=40, **given):
    return encoding(text).block_mask(length, block=16, **given)


@pytest.mark.parametrize("said", VIEWS)
def test_a_view_that_no_kernel_takes_is_refused(said, refusal):
    assert said in refusal(".", VIEWS[said])


def test_the_views_of_kernels_are_the_bias():
    table = torch.from_numpy(ALIBI.bias(range(5)))
    assert torch.equal(ALIBI.tensor(5, dtype=torch.float64), table)
    assert ALIBI.tensor(1).tolist() == [[0]] * 8
    rates = torch.tensor([1.0, 0.5], requires_grad=True)
    for source, power in ((RATE, 1), (PAIR, 2)):
        found = source.tensor(4, values={"r": rates})
        steps = torch.stack([torch.arange(4.0), torch.arange(4.0) ** power])
        assert torch.equal(found, -rates[:, None] * steps) and found.dtype == torch.float32
        assert torch.equal(torch.autograd.grad(found.sum(), rates)[0], -steps.sum(1))
    add, zero = RATE.score_mod(8, values={"r": rates}), torch.tensor(0)
    scores = add(torch.tensor(1.0), zero, zero + 1, torch.tensor([5, 3]), torch.tensor([3, 5]))
    assert scores.tolist() == [0, 1]


@pytest.mark.parametrize(
    "text, given, far, near",
    [
        ("alibi", {}, [40] * 8, [40]),
        ("alibi", {"widths": 9, "sinks": 2}, [40] * 8, [9]),
        ("-n", {"widths": [9, math.inf, 3], "sinks": 3, "heads": 3}, [40], [9, 40, 3]),
        ("where(n<7,-n,-inf)", {"widths": 30, "sinks": 20}, [7], [30]),
        ("[where(n<7,-n,-inf); -n]", {}, [7, 40], [40]),
    ],
)
def test_a_block_mask_is_the_windows_within_the_support(text, given, far, near):
    mask, (i, j) = block(text, **given), torch.meshgrid(*[torch.arange(40)] * 2, indexing="ij")
    far, near = (torch.tensor(each)[:, None, None] for each in (far, near))
    wanted = (j <= i) & (i - j < far) & ((i - j < near) | (j < given.get("sinks", 0)))
    head = torch.arange(len(wanted))[:, None, None]
    assert torch.equal(mask.mask_mod(head, head, i, j).expand_as(wanted), wanted)
    blocks = (
        torch.nn.functional.pad(wanted, (0, 8, 0, 8)).unflatten(2, (3, 16)).unflatten(1, (3, 16))
    )
    assert torch.equal(mask.to_dense()[0].bool().expand(len(wanted), 3, 3), blocks.any(4).any(2))


def test_models_of_one_seed_differ_in_their_bias_alone():
    every = [
        model_of(Run(encoding=name, layers=2, width=32)) for name in ("nope", "kerple_log", "t5")
    ]
    for name, weight in every[0].named_parameters():
        assert all(torch.equal(weight, other.get_parameter(name)) for other in every[1:]), name


@pytest.mark.parametrize(("fused", "looks", "grad"), [*itertools.product((False, True), repeat=3)])
def test_kernels_are_for_rows_without_gradients_that_nobody_looks_into(
    fused, looks, grad, monkeypatch
):
    def prepare(self, length, mask, *, flex):
        raise KeyError(flex)

    monkeypatch.setattr(Transformer, "fused", fused)
    monkeypatch.setattr(Transformer, "prepare", prepare)
    with torch.set_grad_enabled(grad), pytest.raises(KeyError) as asked:
        model("nope").hidden(torch.zeros(1, 3, 32).double(), attend=abs if looks else None)
    assert asked.value.args == (fused and not looks and not grad,)


@pytest.mark.parametrize("spread", [None, 5.0])
def test_scores_have_weights_of_their_own_where_embeddings_have_a_spread(spread):
    made = model("nope", embedding_spread=spread)
    assert (made.output is None) is (spread is None)
    other, usual = made.output or made.layers[0].qkv_proj, made.settings.spread
    found = [x.weight.std().item() for x in (made.embedding, other)]
    assert found == pytest.approx([spread or usual, usual], rel=0.1)
