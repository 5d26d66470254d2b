"""Hybrids: a mechanism of its own in each layer."""

import dataclasses
import math

import pytest
import torch

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding
from farfield.validation.harness.attention import materialised
from farfield.validation.harness.configuration import Configuration, hybrid, key, read_layers
from farfield.validation.harness.experiment import train_and_measure, trained_model
from farfield.validation.harness.mechanism import LayerMechanism, Scale, Turn
from farfield.validation.harness.model import Layer, Rotation
from farfield.validation.harness.plan import parse_plan
from farfield.validation.harness.positional import initialised
from farfield.validation.harness.store import Store
from farfield.validation.models.folder import describe

HYBRIDS = {
    "swan": [{"mechanism": "rope", "window": 5}, {"mechanism": "0", "scale": "log"}],
    "local and free": [["-n/2", "-n", "-n", "-2*n"], "nope"],
    "partial": [{"mechanism": "rope", "share": 0.5, "base": 100.0}, {"mechanism": "xpos"}],
    "sinks": [
        {"mechanism": "alibi", "sinks": True, "window": 7},
        {"mechanism": "0", "sinks": True},
    ],
    "learned": [
        {"mechanism": "rope", "bias": "kerple_log", "scaling": 4.0},
        {"mechanism": "t5", "scale": {"form": "1 + a log", "length": 4, "heads": [1, 3]}},
    ],
    "inference": ["-n", {"mechanism": "0", "scale": {"when": "inference", "length": 8}}],
}


def build(name, small, seed=1):
    layers = read_layers(HYBRIDS[name], small.heads)
    return initialised(hybrid(name), small, seed, layers=layers)


def tokens(length, batch=2):
    return torch.randint(0, 256, (batch, length), generator=torch.Generator().manual_seed(length))


@pytest.mark.parametrize("name", HYBRIDS)
def test_paths_agree_in_scores_and_in_the_gradient_of_every_weight(name, small):
    model, x, found = build(name, small).double(), tokens(20), []
    for layer in model.layers:
        if layer.sink is not None:
            layer.sink.data.uniform_(-2, 2)
    for more in ({}, {"path": materialised}):
        model.zero_grad()
        scores = model(x, **more)
        scores.square().sum().backward()
        found.append([scores, *(p.grad for p in model.parameters())])
    for fast, exact in zip(*found, strict=True):
        torch.testing.assert_close(fast, exact, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", HYBRIDS)
def test_the_last_tokens_alone_are_the_last_of_all(name, small):
    model, x = build(name, small).double().eval(), tokens(20)
    with torch.no_grad():
        whole = model.hidden(model.embed(x))
        torch.testing.assert_close(model.hidden(model.embed(x), last=3), whole[:, -3:])


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", HYBRIDS)
def test_what_is_compiled_is_one_graph_at_every_length(name, small):
    """FlexAttention without code generation: no break, and after two lengths nothing new. (Its
    backward pass needs a GPU.)"""
    torch._dynamo.reset()
    model = build(name, small).eval()
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    counted, graphs = torch._dynamo.utils.counters["stats"], 0
    with torch.no_grad():
        for number, length in enumerate((300, 200, 140, 170, 190, 220)):
            x = tokens(length, 1)
            found = compiled(x, *model.given(length, flex=True))
            torch.testing.assert_close(found, model(x, path=materialised), rtol=1e-4, atol=2e-5)
            graphs = counted["unique_graphs"] if number < 2 else graphs
            assert counted["unique_graphs"] == graphs


def test_layers_alike_are_the_model_with_one_encoding(small):
    """The same weights and scores, bit for bit."""
    for name in ("rope", "kerple_log", "-n/4"):
        one = initialised(encoding(name), small, 3)
        each = initialised(hybrid(name), small, 3, layers=read_layers([name, name], small.heads))
        assert torch.equal(one.embedding.weight, each.embedding.weight) or one.bias is not None
        for theirs, ours in zip(each.layers, one.layers, strict=True):
            theirs.load_state_dict(ours.state_dict())
        each.embedding, each.norm = one.embedding, one.norm
        if one.learned_values():
            for layer in each.bias.layers:
                layer.load_state_dict(one.bias.state_dict())
        assert torch.equal(one(tokens(30)), each(tokens(30)))


def test_a_share_of_a_head_turns_and_the_rest_does_not():
    turn = Turn(share=0.5, base=100.0, scaling=4.0)
    rotation, x = Rotation(8, turn), torch.randn(1, 1, 40, 8, dtype=torch.float64)
    rotation.reach(40, x.device)
    turned, _ = rotation(x, x)
    assert torch.equal(turned[..., 4:], x[..., 4:]) and not torch.equal(turned[..., :4], x[..., :4])
    same = x[:, :, :1].expand(-1, -1, 40, -1)
    scores = (lambda q, k: q[0, 0] @ k[0, 0].T)(*rotation(same, same))
    for far in (0, 4, 8):
        a, b = same[0, 0, 0, :2], same[0, 0, 0, 2:4]
        angle = far / 4 * torch.tensor([1.0, 0.1], dtype=torch.float64)
        own = ((a * a + b * b) * angle.cos()).sum() + (same[0, 0, 0, 4:] ** 2).sum()
        torch.testing.assert_close(scores.diagonal(-far), own.expand(40 - far))


def test_the_scale_of_logits_with_the_row():
    def factor(scale, training):
        layer = Layer(2, 1, LayerMechanism(scale=scale)).train(training)
        return layer._scaled(torch.ones(1, 1, 64, 1), 64, scale).flatten()[[0, 7, 63]].tolist()

    assert factor(Scale(length=8), True) == pytest.approx([0, 1, 2])
    late = Scale(length=8, when="inference")
    assert factor(late, True) == [1, 1, 1]
    assert factor(late, False) == pytest.approx([1, 1, 2])
    steps = Scale("1 + a log", a=0.5, length=8)
    assert factor(steps, True) == pytest.approx([1, 1 + math.log(2) / 2, 1 + math.log(9) / 2])


@pytest.mark.parametrize("name", ["sinks", "learned", "swan"])
def test_a_hybrid_is_trained_measured_and_found_again(name, text, small, tmp_path):
    content = {"encodings": [{"label": name, "layers": HYBRIDS[name]}], "presets": ["tiny"]}
    plan = parse_plan({"sweep": [{**content, "heads": [4], "steps": [4]}]})
    (job,) = plan.jobs(text)
    assert job.configuration.training()["layers"][0]["window"] in (5, 7, None)
    store = Store(tmp_path)
    result = train_and_measure(job.configuration, store, predictions="ab")
    assert result["encoding"]["name"] == name and result["training"]["began"]["predictions"] == "ab"
    assert result["measurements"][0]["bounds"]["violations"] == 0
    again = train_and_measure(job.configuration, store, predictions="cd")
    assert again == result
    found = trained_model(job.configuration, store)
    fresh = initialised(hybrid(name), job.configuration.preset, 0, layers=job.configuration.layers)
    assert not torch.equal(found.embedding.weight, fresh.embedding.weight)


def test_layers_make_the_key(text, small):
    def configured(*entries):
        return Configuration(hybrid("a"), text, small, layers=read_layers(entries, small.heads))

    one = configured("0", {"mechanism": "rope", "window": 4})
    others = [
        configured("0", "rope"),
        configured({"mechanism": "rope", "window": 4}, "0"),
        configured("0", {"mechanism": "rope", "window": 4, "sinks": True}),
        configured("-n", {"mechanism": "rope", "window": 4}),
    ]
    assert len({key(c.training()) for c in (one, *others)}) == 5
    renamed = dataclasses.replace(one, encoding=hybrid("b"))
    assert renamed.training() == one.training()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"mechanism": "rope", "windw": 3}, "layer 2: entry: .windw. is not known; did you mean"),
        (
            {"mechanism": "rope", "window": "3"},
            "layer 2: entry: window '3'; accepted is",
        ),
        ({"mechanism": "-n", "base": 10.0}, "layer 2: base belongs to a rotation"),
        ({"mechanism": "rope", "bias": "rope"}, "layer 2: bias rope: accepted are additive biases"),
        ("sinusoidal", "layer 2: sinusoidal acts on no single layer"),
        ("log(", "layer 2: "),
        ({"window": 3}, "layer 2: entry: mechanism is missing"),
        (3, "layer 2: entry"),
        ({"mechanism": "rope", "share": 2.0}, "layer 2: share 2"),
        ({"mechanism": "0", "scale": "sqrt"}, "layer 2: form 'sqrt': accepted: log"),
        (
            {"mechanism": "0", "scale": {"from": "log"}},
            "layer 2: scale {'from': 'log'}: accepted",
        ),
        ({"mechanism": "0", "window": 13}, "layer 2: window 13 in rows of 12 tokens"),
        ({"mechanism": "0", "window": 0}, "layer 2: window 0"),
        (["-n", "-n/2", "0"], "layer 2: 3 biases; accepted are 1 or 4"),
        ({"mechanism": "0", "scale": {"heads": [5]}}, r"layer 2: scale of heads \[5\]"),
        ({"mechanism": "rope", "share": 0.01}, "layer 2: share 0.01 of a head of 8"),
    ],
)
def test_what_no_layer_can_be_is_refused_with_its_place(entry, message, text, small):
    with pytest.raises(InputError, match=message) as error:
        layers = read_layers(["0", entry], small.heads)
        Configuration(hybrid("a"), text, small, layers=layers)
    assert "\n" not in str(error.value)


def test_as_many_entries_as_layers(text, small):
    with pytest.raises(InputError, match="a: 3 layers are listed, the model of preset small has 2"):
        Configuration(hybrid("a"), text, small, layers=read_layers(["0"] * 3, small.heads))


def test_a_hybrid_is_read_back_layer_by_layer(text, small, tmp_path):
    shape = dataclasses.replace(small, steps=1)
    local = {"mechanism": "rope", "window": 5, "base": 500.0}
    layers = read_layers([local, "-n"], small.heads)
    run = train_and_measure(Configuration(hybrid("a"), text, shape, layers=layers), Store(tmp_path))
    near, far = describe(tmp_path / run["key"]).layers
    assert (near.width, near.rotation.base, near.encoding) == (5, 500.0, None)
    assert (far.width, far.rotation, str(far.encoding.head(1))) == (None, None, "-n")
