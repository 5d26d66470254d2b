"""The model: each mechanism is what its formula says, and the hooks see what the layers compute."""

import math

import pytest
import torch
from torch import nn

from farfield.numerics.masks import CAUSAL, Mask
from farfield.theory.encodings import CATALOGUE, encoding
from farfield.validation.harness.attention import attention, materialised
from farfield.validation.harness.bias import FixedBias
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
    logits = made(TOKENS)
    logits.square().mean().backward()
    assert all(p.grad is not None for p in made.parameters())


def test_the_last_tokens_alone_are_the_last_of_all():
    for name in ("alibi", "rope", HYBRID):
        made = model(name, layers=4)
        x = made.embed(TOKENS)
        torch.testing.assert_close(made.hidden(x, last=3), made.hidden(x)[:, -3:])


def test_no_bias_is_no_bias():
    made = model("nope")
    assert [p.bias for p in made.prepare(5)] == [None, None] and not made.biases


def test_layers_that_are_alike_share_a_learned_bias_and_a_hybrid_does_not():
    assert len(model("kerple_log").biases) == 1
    both = {"label": "two", "layers": ["kerple_log", "kerple_log"]}
    assert len(model(both).biases) == 2


def test_scores_of_a_rotation_depend_on_the_distance_alone():
    torch.manual_seed(0)
    q, k = torch.randn(2, 1, 8, dtype=torch.float64).expand(-1, 3, -1)
    at = torch.tensor([0.0, 3.5, 1000.0], dtype=torch.float64)
    for rope in (RopeSettings(), RopeSettings(share=0.5, base=50.0, scaling=2.0, decay=True)):
        scores = [
            (rotated(q, at + 7, rope)[i] * rotated(k, at, rope, -1)[i]).sum().item()
            for i in range(3)
        ]
        assert scores == pytest.approx([scores[0]] * 3)
        turned = rotated(k, at, rope)
        shifted = rotated(turned, torch.full((3,), 4.0), rope)
        torch.testing.assert_close(shifted, rotated(k, at + 4, rope))


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


def test_learned_absolute_positions_end():
    with pytest.raises(ValueError, match="know 12, accepted are at most as many"):
        model("learned")(TOKENS)


def test_a_score_function_is_the_table():
    i, j = torch.meshgrid(torch.arange(50), torch.arange(50), indexing="ij")
    for name in ("alibi", "-2*log(1+n)", "-n^(1/2)/3", "[-n/4; -n/8; -n/3; -n/5]"):
        bias = FixedBias(read(name, 4))
        add, table = bias.score_mod(torch.device("cpu")), bias.table(50)
        assert add is not None
        for head in range(len(table)):
            scores = add(torch.zeros(50, 50), torch.tensor(0), torch.tensor(head), i, j)
            wanted = table[head, (i - j).clamp(min=0)].float()
            torch.testing.assert_close(scores, wanted, rtol=1e-6, atol=1e-6)
    for name in ("t5", "-floor(n/3)", "[-n/4; -log(1+n); 0; 0]"):
        source = read(name, 4)
        assert source.free or FixedBias(source).score_mod(torch.device("cpu")) is None


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_what_a_gpu_compiles_computes_the_model():
    for name in ("alibi", "kerple_log", "rope", HYBRID):
        made = model(name, layers=4).float()
        prepared = made.prepare(40, flex=True)
        with torch.no_grad():
            torch.testing.assert_close(
                made(TOKENS, prepared=prepared), made(TOKENS), rtol=1e-4, atol=1e-5
            )


def test_models_of_one_seed_differ_in_their_bias_alone():
    every = [
        model_of(Run(encoding=name, layers=2, width=32)) for name in ("nope", "kerple_log", "t5")
    ]
    for name, weight in every[0].named_parameters():
        assert all(torch.equal(weight, other.get_parameter(name)) for other in every[1:]), name
