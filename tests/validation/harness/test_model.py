import dataclasses
import sys
from pathlib import Path

import pytest
import torch

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding
from farfield.validation.harness.attention import materialised, toeplitz
from farfield.validation.harness.mechanism import Visibility
from farfield.validation.harness.model import layer_bias
from farfield.validation.harness.positional import initialised
from farfield.validation.harness.presets import preset

NAMES = ("nope", "alibi", "window", "kerple_log", "t5", "rope", "xpos", "sinusoidal", "learned")


def build(name, small, **changes):
    given = {"window": {"w": 4}, "alibi": {"heads": 4}}.get(name, {})
    return initialised(encoding(name, **given), dataclasses.replace(small, **changes), seed=1)


def tokens(length, batch=2):
    return torch.randint(0, 256, (batch, length), generator=torch.Generator().manual_seed(length))


@pytest.mark.parametrize("name", NAMES)
def test_a_later_token_changes_no_earlier_score(name, small):
    model, x = build(name, small).double(), tokens(12)
    for path in (toeplitz, materialised):
        before = model(x, path=path)
        after = model(torch.cat([x[:, :7], x[:, 7:] + 1 & 255], 1), path=path)
        torch.testing.assert_close(before[:, :7], after[:, :7], rtol=1e-12, atol=1e-12)
        assert not torch.allclose(before[:, 7:], after[:, 7:])


@pytest.mark.parametrize("name", NAMES)
def test_paths_agree_in_scores_and_in_the_gradient_of_every_weight(name, small):
    model, x = build(name, small).double(), tokens(12)
    found = []
    for path in (toeplitz, materialised):
        model.zero_grad()
        scores = model(x, path=path)
        scores.square().sum().backward()
        found.append([scores, *(p.grad for p in model.parameters())])
    for fast, exact in zip(*found, strict=True):
        torch.testing.assert_close(fast, exact, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("view", [Visibility(), Visibility(bca=5), Visibility(window=3)], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_the_last_tokens_alone_are_the_last_of_all(name, view, small):
    """The residual and its gradient at the embedding, in float64 but for the order of sums."""
    model, x = build(name, small).double(), tokens(12)
    for last in (1, 5, 12):
        found = []
        for chosen in (last, 0):
            embedded = model.embed(x).detach().requires_grad_()
            residual = model.hidden(embedded, view, last=chosen)[:, -last:]
            found.append([residual, *torch.autograd.grad(residual.sin().sum(), embedded)])
        assert found[0][0].shape == (2, last, small.width)
        for alone, whole in zip(*found, strict=True):
            torch.testing.assert_close(alone, whole, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "learned"])
def test_relative_models_do_not_see_where_a_window_stands(name, small):
    """With a window of w in R layers, R(w-1)+1 tokens decide, wherever they stand."""
    model, x = build(name, small).double(), tokens(30)
    view = Visibility(window=4)
    reach = small.layers * 3 + 1
    whole, part = model(x, mask=view)[:, -1], model(x[:, -reach:], mask=view)[:, -1]
    assert torch.allclose(whole, part, atol=1e-12) == (name != "sinusoidal")
    shorter = model(x[:, -reach + 1 :], mask=view)[:, -1]
    assert not torch.allclose(whole, shorter, atol=1e-12)


def test_blockwise_attention_within_two_blocks_is_causal_attention(small):
    model, x = build("rope", small).double(), tokens(12)
    torch.testing.assert_close(model(x, mask=Visibility(bca=6)), model(x))
    assert not torch.allclose(model(x, mask=Visibility(bca=4)), model(x))


def test_absolute_encodings_beyond_the_training_length(small):
    assert build("sinusoidal", small)(tokens(50)).isfinite().all()
    with pytest.raises(InputError, match="knows 12 positions; 13 tokens"):
        build("learned", small)(tokens(13))


def test_initial_weights_depend_on_the_seed_alone(small):
    first = build("kerple_log", small)
    torch.rand(5)
    state = torch.get_rng_state()
    second = build("kerple_log", small)
    assert torch.equal(state, torch.get_rng_state())
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)
    other = initialised(encoding("kerple_log"), small, seed=2)
    assert not torch.equal(other.embedding.weight, first.embedding.weight)


def test_size_of_the_demonstration():
    demo = preset("demo")
    model = initialised(encoding("alibi"), demo, 0)
    assert sum(p.numel() for p in model.parameters()) >= 800_000
    assert demo.steps * demo.batch * demo.length >= 800_000


def test_learned_values_are_reported_by_head(small):
    model = build("kerple_log", small)
    assert {k: len(v) for k, v in model.learned_values().items()} == {"r1": 4, "r2": 4}
    assert build("alibi", small).learned_values() == build("rope", small).learned_values() == {}


def test_each_layer_may_have_heads_of_its_own(small):
    """A formula for each head of each layer: layers alike are one bias, unlike ones are not."""
    first, second = ["-n/4", "-n", "0", "0"], ["0", "0", "-n/2", "0"]

    def scores(formulas):
        with torch.no_grad():
            return initialised(encoding(formulas), small, 0)(tokens(20))

    assert torch.equal(scores(first * 2), scores(first))
    mixed = scores(first + second)
    assert not any(torch.allclose(mixed, scores(b)) for b in (first, second, second + first))
    model = initialised(encoding(first + second), small, 0)
    rows = [layer_bias(model.bias_table(9), k, small.heads) for k in range(2)]
    for row, formulas in zip(rows, (first, second), strict=True):
        assert torch.equal(row, torch.from_numpy(encoding(formulas).bias(range(9))))


ALONE = """
from types import SimpleNamespace
import torch
from harness.attention import blocks, materialised
from harness.mechanism import LayerMechanism as Mechanism, Scale, Turn
from harness.model import Transformer

class Slope(torch.nn.Module):
    def forward(self, length):
        return -torch.arange(length).double()[None] / 4

shape = SimpleNamespace(layers=3, width=16, heads=2, length=20, dropout=0.0, spread=0.02,
                        embedding_spread=None)
each = [Mechanism(biased=True), Mechanism(turn=Turn(share=0.5), window=5, sinks=True),
        Mechanism(scale=Scale(length=20))]
model, tokens = Transformer(shape, each, 50, Slope), torch.arange(40).view(2, 20)
scores = model(tokens)
torch.testing.assert_close(scores, model(tokens, path=materialised))
scores.square().sum().backward()
assert all(p.grad is not None for p in model.parameters())
assert [m.shape[-1] for m in model.given(20, flex=True)[1]] == [20] * 3
"""


def test_the_model_needs_torch_alone(monkeypatch):
    """Without farfield, as on a machine that has torch and no network; SymPy is torch's own."""
    room = Path(__file__).parents[3] / "validation"
    for name in ("attention", "mechanism", "model"):
        assert "sympy" not in (room / "harness" / f"{name}.py").read_text(encoding="utf-8")
    for name in list(sys.modules):
        if name.partition(".")[0] in ("farfield", "flint", "pydantic"):
            monkeypatch.setitem(sys.modules, name, None)  # cannot be imported
    monkeypatch.syspath_prepend(str(room))
    exec(ALONE, {"__name__": "alone"})
    found = [name for name in sys.modules if name.partition(".")[0] == "harness"]
    assert "harness.model" in found
    for name in found:
        del sys.modules[name]
