"""What a GPU compiles, on a CPU: Dynamo's graphs, run as they are in place of kernels."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch._dynamo.testing import CompileCounter

from farfield.validation.harness import attention
from farfield.validation.harness.measure import token_losses
from farfield.validation.harness.runs import model_of
from farfield.validation.harness.settings import Run
from farfield.validation.harness.train import scorer

GALLERY = Path(__file__).parents[3] / "docs" / "gallery"
EVERY = {
    "label": "every mechanism",
    "layers": [
        {"mechanism": "rope", "window": 20, "share": 0.5, "base": 500.0, "bias": "-n/4"},
        {"mechanism": "0", "scale": "log", "sinks": True},
        {"mechanism": "kerple_log", "scale": {"form": "1 + a log", "heads": [2]}},
        {"mechanism": "xpos", "scale": {"form": "log", "when": "inference"}},
    ],
}
ALSO = [  # parts of `EVERY` one by one, and tables that learn
    pytest.param(name, 16, marks=pytest.mark.slow)
    for name in ("alibi", "rope", "sinusoidal", "[-n/4; 0]", "t5", "learned")
]
OWN = ("fire.py:Fire", "forget_gate.py:ForgetGate", "contextual_positions.py:Cope")
FACTOR = "scalable_softmax.py:ScalableSoftmax"


TOKENS = torch.randint(250, (2, 140), generator=torch.Generator().manual_seed(0))


def name(given):
    return given["label"] if isinstance(given, dict) else str(given)


@pytest.fixture
def graphs(monkeypatch):
    """Counts graphs and what is in them; a model on the CPU is compiled as one on a GPU."""
    counter, compiled = CompileCounter(), torch.compile
    monkeypatch.setattr(attention, "COMPILED_ON", {"cpu"})
    monkeypatch.setattr(attention, "BACKEND", counter)
    # It refuses gradients on a CPU, where torch has no kernel for them. The graph alone has them.
    monkeypatch.setattr("torch.nn.attention.flex_attention._validate_device", lambda *_: None)

    def compile_whole(model, **options):
        assert options == {"fullgraph": True, "dynamic": False}, "one graph for a length, or none"
        model._compiled_call_impl = compiled(model._call_impl, backend=counter, **options)

    monkeypatch.setattr(nn.Module, "compile", compile_whole)
    yield counter
    torch._dynamo.reset()


def trained(model, scores, tokens, steps=1):
    model.train()
    for _ in range(steps):
        logits = scores(tokens)
        model.zero_grad()
        logits.square().mean().backward()
    return logits.detach(), [p.grad for p in model.parameters()]


def both(encoding, length, size=16):
    layers = 4 if encoding is EVERY else 2
    shape = {"layers": layers, "heads": 2, "width": 2 * size, "length": length}
    if isinstance(encoding, str) and ".py:" in encoding:
        encoding = f"{GALLERY}/{encoding}"
    asked = Run(encoding=encoding, **shape)
    return asked, model_of(asked), model_of(asked)


def agree(ours, theirs):
    (fast, by_fast), (slow, by_slow) = ours, theirs
    torch.testing.assert_close(fast, slow, rtol=1e-4, atol=1e-5)
    for one, other in zip(by_fast, by_slow, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert (one - other).norm() <= 1e-4 * other.norm() + 1e-9


def test_a_model_is_drawn_without_a_look_at_gpus(monkeypatch):
    """torch would ask the state of each, and warn where there are several."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    model_of(Run(encoding=f"{GALLERY}/{OWN[0]}", layers=1, heads=2, width=24, length=17))


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize(
    ("encoding", "size"), [(EVERY, 16), (FACTOR, 16), ("alibi", 128), *ALSO], ids=name
)
def test_a_model_is_one_graph_however_many_steps_it_takes(graphs, monkeypatch, encoding, size):
    asked, model, plain = both(encoding, 48, size)
    tokens = TOKENS[:, :48]
    scores = scorer(model, model, asked)
    ours = trained(model, scores, tokens, steps=2)
    assert graphs.frame_count == 1
    with torch.no_grad():  # as the held-out loss
        model.eval(), plain.eval()
        held_out = scores(tokens)
        assert graphs.frame_count == 2
        monkeypatch.setattr(attention, "COMPILED_ON", set())
        torch.testing.assert_close(held_out, plain(tokens), rtol=1e-4, atol=1e-5)
    agree(ours, trained(plain, plain, tokens))


@pytest.mark.parametrize("encoding", OWN)
def test_the_graph_of_a_module_of_ones_own_does_not_grow_with_the_row(graphs, encoding):
    nodes = []
    for length in (70, 140):
        before = graphs.frame_count, graphs.op_count
        asked, model, plain = both(encoding, length)
        ours = trained(model, scorer(model, model, asked), TOKENS[:, :length], steps=2)
        assert graphs.frame_count == before[0] + 1, "one graph for all layers, chunks and steps"
        nodes.append(graphs.op_count - before[1])
        agree(ours, trained(plain, plain, TOKENS[:, :length]))
    assert nodes[0] == nodes[1]


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize(
    "encoding", ["alibi", OWN[0], pytest.param(EVERY, marks=pytest.mark.slow)], ids=name
)
def test_a_measurement_has_a_graph_of_attention_a_length(graphs, monkeypatch, encoding):
    _, model, _ = both(encoding, 48)
    rows = np.random.default_rng(0).integers(0, 250, (3, 60))
    kinds = 3 if encoding is EVERY else 1  # of masks and biases
    for length, last in ((30, 0), (59, 0), (59, 1)):
        found = token_losses(model.eval(), rows[:, : length + 1], last=last)
        with monkeypatch.context() as patch:
            patch.setattr(attention, "COMPILED_ON", set())
            plainly = token_losses(model, rows[:, : length + 1], last=last)
        np.testing.assert_allclose(found, plainly, rtol=1e-4)
    own = int(encoding == OWN[0])  # fewer queries are another shape of a chunk
    assert graphs.frame_count == (2 + own) * kinds


def test_short_rows_take_the_kernel_of_long_ones(graphs, monkeypatch):
    """Torch's kernel for few queries reads rotated queries by strides that they do not have."""
    options = []

    def backend(graph, inputs):
        flex = torch.ops.higher_order.flex_attention
        options.extend(node.args[6] for node in graph.graph.nodes if node.target is flex)
        return graph.forward

    monkeypatch.setattr(attention, "BACKEND", backend)
    layers = [{"mechanism": "rope", "window": 20}, "-floor(n/3)"]
    _, model, _ = both({"label": "short rows", "layers": layers}, 48)
    with torch.no_grad():
        model.eval()(torch.zeros(2, 48, dtype=torch.int64))
    assert len(options) == 2
    assert all(each["FORCE_USE_FLEX_ATTENTION"] for each in options)


def test_a_function_has_a_graph_for_each_of_many_lengths(graphs):
    def twice(q):
        return 2 * q

    for length in range(2, 12):
        q = torch.ones(1, 1, length, 16)
        assert attention.compiled(twice, q)(q).equal(q + q)
    assert graphs.frame_count == 10


class Branches(nn.Module):
    """A bias that asks for the value of a tensor: no single graph has it."""

    def __init__(self):
        super().__init__()
        self.slope = nn.Parameter(torch.tensor(0.5))

    def forward(self, q, k, i, j):
        slope = self.slope if float(self.slope) > 0 else -self.slope
        return -slope * (i[:, None] - j).clamp(min=0)


def test_a_module_that_cannot_be_compiled_runs_as_it_is_and_says_so(graphs):
    q = torch.randn(1, 2, 70, 16, requires_grad=True)
    with pytest.warns(UserWarning, match="Branches runs as it is"):
        fast = attention.attention(q, q, q, Branches())
    slow = attention.materialised(q, q, q, Branches())
    torch.testing.assert_close(fast, slow, rtol=1e-4, atol=1e-5)
    attention.attention(q, q, q, Branches()).sum().backward()  # said once
    assert graphs.frame_count == 0


class Raises(nn.Module):
    def forward(self, q, k, i, j):
        raise ValueError("mine is broken")


@pytest.mark.filterwarnings("ignore:Raises runs as it is")
def test_what_a_module_of_ones_own_raises_is_its_own_error(graphs):
    q = torch.randn(1, 2, 70, 16)
    with pytest.raises(ValueError, match="mine is broken"):
        attention.attention(q, q, q, Raises())
