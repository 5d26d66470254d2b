"""Laws of the far field: where it leaves nothing out, it is the model."""

import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from farfield.numerics.masks import CAUSAL, Mask
from farfield.validation.far_field.long_rows import Sampling, Stages, begin, far_losses
from farfield.validation.harness.runs import model_of
from farfield.validation.harness.settings import Run, ScaleSettings
from farfield.validation.models.content_bias import content_of
from farfield.validation.models.network import TrainedNetwork, losses, nats, scores_at
from farfield.validation.models.repairs import Repair, Repaired

GATES = (
    "docs/gallery/forget_gate.py:ForgetGate",
    "docs/gallery/contextual_positions.py:Cope",
    "experiments/far_field_2/cable.py:Cable",
)
PLACED = ("docs/gallery/fire.py:Fire", "docs/gallery/scalable_softmax.py:ScalableSoftmax")
ENCODINGS = ("0", "rope", "alibi", "kerple_log", "xpos", "sinusoidal", *GATES, *PLACED)
ROW, LAST = 16, 4
SAMPLING = Sampling(8)


def a_model(encoding):
    """Small; modules from outside have weights drawn at random."""
    run = Run(encoding=encoding, layers=2, width=32, heads=4, length=ROW, spread=0.3)
    model, random = model_of(run).eval(), torch.Generator().manual_seed(5)
    for weight in model.biases.parameters() if ".py:" in encoding else ():
        weight.data = torch.randn(weight.shape, generator=random) / 2
    return model


def of_model(model, rows, mask=CAUSAL):
    scores = model(rows[:, :-1], mask).double().mT
    return cross_entropy(scores, rows[:, 1:], reduction="none")[:, -LAST:].detach()


@pytest.fixture(scope="module")
def text():
    return torch.randint(0, 256, (6 * ROW + 1,), generator=torch.Generator().manual_seed(3))


@pytest.fixture(scope="module")
def rows(text):
    return text.unfold(0, ROW + 1, ROW)


def test_scores_of_a_model_that_learns_keep_no_graph(text):
    """A graph of a long row holds every layer of it."""
    network, at = TrainedNetwork(a_model("rope")), torch.arange(2 * ROW)
    assert all(weight.requires_grad for weight in network.model.parameters())
    assert not scores_at(network, text[None, : 2 * ROW], at, LAST).requires_grad


@pytest.mark.parametrize("growth", (2, math.inf))
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_second_row_of_a_text_at_twice_the_length_is_exact(encoding, growth, rows, text):
    model = a_model(encoding)
    far = far_losses(TrainedNetwork(model), rows, [2 * ROW], Sampling(8, growth), LAST)
    long = text[None, : 2 * ROW + 1]
    assert torch.allclose(far[ROW], of_model(model, rows)[1:], atol=1e-4)
    assert torch.allclose(far[2 * ROW][0], of_model(model, long)[0], atol=1e-4)


def staged(network, rows, end, sampling=SAMPLING):
    """A group of rows whose first stage goes up to a length."""
    stages = Stages(network, rows, LAST, sampling)
    stages.plain()
    stages.stage(1, [ROW, end])
    return stages


CHANGED = {
    Repair(window=5): ("-n/8", "-n/8", Mask(5), None),
    Repair(window=8, sinks=3): ("rope", "rope", Mask(8, sinks=3), None),
    Repair(scale=True): ("-n/8", "-n/8", CAUSAL, ScaleSettings(when="inference")),
    Repair(graft=(2, 6)): ("0", "Piecewise((0, n < 6), (-2*log(n/6), True))", CAUSAL, None),
    Repair(graft=(3, 6)): (
        "Piecewise((0, n < 9), (-oo, True))",
        "Piecewise((0, n < 6), (-3*log(n/6), n < 9), (-oo, True))",
        CAUSAL,
        None,
    ),
    Repair(graft=(1, 4), window=20): (
        "-n/8",
        "Piecewise((-n/8, n < 4), (-1/2 - log(n/4), True))",
        Mask(20),
        None,
    ),
}


GATED = [(Repair(window=5), (gate, gate, Mask(5), None)) for gate in GATES]


@pytest.mark.parametrize(("repair", "how"), [*CHANGED.items(), *GATED], ids=str)
def test_a_repaired_network_is_the_model_that_has_the_change(repair, how, text):
    trained, changed, mask, scale = how
    model = a_model(changed)
    for layer in model.layers:
        layer.settings = layer.settings.but(scale=scale)
    found = losses(Repaired(TrainedNetwork(a_model(trained)), repair), text[None], LAST)
    assert torch.allclose(found, of_model(model, text[None], mask), atol=1e-4)
    assert not torch.allclose(found, of_model(a_model(trained), text[None]), atol=1e-3)


def test_layers_that_are_not_named_keep_what_they_have(text):
    network = TrainedNetwork(a_model("-n/8"))
    one, both = (Repair(window=5, layers=x) for x in ((1,), (1, 2)))
    i, j = torch.arange(8, 12), torch.arange(12)
    assert Repaired(network, one).bias(1, i, j).equal(network.bias(1, i, j))
    assert Repaired(network, both).bias(1, i, j).equal(Repaired(network, one).bias(0, i, j))


def test_rows_by_themselves_serve_every_draw(rows):
    """Given, they are not computed again, and nothing else changes."""
    network, sampling = TrainedNetwork(a_model("rope")), Sampling(8)
    begun = begin(network, rows, LAST)
    alone, shared = (
        far_losses(network, rows, [4 * ROW], sampling, LAST, begun=x) for x in (None, begun)
    )
    assert torch.equal(alone[4 * ROW], shared[4 * ROW]) and torch.equal(alone[ROW], shared[ROW])
    with_bos = rows.clone()
    with_bos[:, 0] = 7
    led, own = begin(network, rows, LAST, 7), begin(network, with_bos, LAST)
    assert torch.equal(led.losses, own.losses) and torch.equal(led.first[1][0], own.first[1][0])
    asked = []
    scores, network.scores = network.scores, lambda *x: asked.append(x) or scores(*x)
    far_losses(network, rows, [4 * ROW], Sampling(8, math.inf), LAST, begun=begun)
    assert len(asked) == 1


def test_keys_in_order_keep_the_order_of_the_text(rows):
    network, chosen = TrainedNetwork(a_model("0")), []
    for ordered in (False, True):
        stages = staged(network, rows, 8 * ROW, Sampling(40, ordered=ordered))
        chosen.append(stages.pools[1][0][2])
    assert not torch.equal(*chosen) and torch.equal(chosen[0].sort().values, chosen[1])


def test_lengths_share_the_stages_that_end_there(rows):
    network, sampling = TrainedNetwork(a_model("0")), Sampling(8)
    alone, both = (far_losses(network, rows, x, sampling) for x in ([64], [32, 64]))
    assert torch.equal(alone[64], both[64]) and alone[64].shape == (5, 8)
    assert far_losses(network, rows, [32, 48], sampling).keys() == {16, 32, 48}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_blocks_that_leave_nothing_out_are_the_row(encoding, rows, text):
    """Where every place is read, or all but the first row, which the group has."""
    model = a_model(encoding)
    stages = staged(TrainedNetwork(model), rows, 4 * ROW)
    for first in (0, ROW):
        at, tokens = torch.arange(first, 4 * ROW), text[None, first : 4 * ROW + 1]
        scores = stages.blocks(tokens[:, :-1], at, LAST, [ROW, 4 * ROW])
        assert torch.allclose(
            nats(scores, tokens), of_model(model, text[None, : 4 * ROW + 1]), atol=1e-4
        )


@pytest.mark.parametrize("group", [(2, 6), (3, 15)])
def test_blocks_under_groups_are_the_row_under_groups(group, rows, text):
    """The far field meets keys in groups as a whole row does."""
    network = Repaired(TrainedNetwork(a_model("rope")), Repair(group=group))
    stages = staged(network, rows, 4 * ROW)
    at, tokens = torch.arange(4 * ROW), text[None, : 4 * ROW]
    scores = stages.blocks(tokens, at, LAST, [ROW, 4 * ROW])
    assert torch.allclose(scores, scores_at(network, tokens, at, LAST), atol=1e-4)
    plain = scores_at(network.network, tokens, at, LAST)
    assert not torch.allclose(scores, plain, atol=1e-2)


def test_keys_between_blocks_stand_for_their_places(rows, text):
    """Places beyond the blocks are counted once each, and the rows that are named are not asked."""
    stages = staged(TrainedNetwork(a_model("0")), rows, 8 * ROW)
    seen = []
    stages._mix = lambda layer, q, i, parts: seen.append(parts) or q
    at = torch.cat([torch.arange(ROW), torch.arange(7 * ROW, 8 * ROW)])
    stages.blocks(text[None, : 2 * ROW], at, LAST, [ROW, 8 * ROW], torch.tensor([[2, 3]]))
    _, far = seen[0]
    assert float(far.more.exp().sum()) == pytest.approx(6 * ROW, rel=1e-5)
    assert not {*far.positions.tolist()} & {*at.tolist()}
    hidden = far.more[0, 0, 0].isinf()
    source = stages.pools[1][0][2][: len(hidden)] // ROW
    assert torch.equal(hidden, (source == 2) | (source == 3))


@pytest.mark.parametrize("growth", (2, 3, math.inf))
def test_every_position_before_a_query_is_met_once_and_drawn_ones_lie_in_equal_parts(
    growth, rows, monkeypatch
):
    stages = Stages(TrainedNetwork(a_model("0")), rows, LAST, Sampling(8, growth))
    ends, seen, mix = stages.sampling.ends(ROW, 9 * ROW), [], stages._mix
    stages._mix = lambda layer, q, i, parts: seen.append((i, parts)) or mix(layer, q, i, parts)
    stages.plain()
    for s in range(1, len(ends)):
        stages.stage(s, ends)
        i, parts = seen[-1]
        assert i.tolist() == [*range(ends[s] - ROW, ends[s])]
        weight = sum(p.more.exp().expand(len(rows), 1, 1, len(p.positions)).sum(-1) for p in parts)
        assert torch.allclose(weight, torch.full_like(weight, ends[s]))
        met = torch.cat([p.positions for p in parts])
        assert len(met.unique()) == len(met) and met.min() >= 0 and met.max() == ends[s] - 1
    at = torch.arange(20, 61)
    drawn = torch.stack([stages._cell(1, at).positions for _ in range(400)]).double()
    expected = 20 + (torch.arange(8) + 0.5) * 41 / 8 - 0.5
    assert torch.allclose(drawn.mean(0), expected.double(), atol=0.5)
    monkeypatch.setattr(torch, "rand", lambda m, generator: torch.ones(m))  # as it may round
    assert stages._cell(1, at).positions.tolist()[-1] == 60


# -- biases of content ----------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", GATES)
def test_a_key_of_weight_w_is_w_equal_keys(encoding):
    """A query sees a near key, and beyond it one far key or as many like it."""
    content = TrainedNetwork(a_model(encoding)).content(0)
    random, w = torch.Generator().manual_seed(1), 5
    q, near, far, first = (torch.randn(1, 4, 1, 8, generator=random) for _ in range(4))
    i = torch.tensor([20])
    few = torch.cat([near, far, first], 2)
    some = content.between(q, few, i, torch.tensor([20, 14, 3]), torch.tensor([1.0, w, 1.0]))
    many = torch.cat([near, far.expand(-1, -1, w, -1), first], 2)
    places = torch.tensor([20, *range(16, 16 - w, -1), 3])
    each = content.between(q, many, i, places, torch.ones(w + 2))
    assert torch.allclose(some[..., 0], each[..., 0], atol=1e-5)
    assert torch.allclose(some[..., -1], each[..., -1], atol=1e-5)
    assert not torch.allclose(some[..., 0], some[..., -1], atol=1e-3)


def test_what_depends_on_positions_alone_is_no_content():
    """FIRE is asked at far positions; a factor of the logits multiplies queries there."""
    assert all(TrainedNetwork(a_model(encoding)).contents == {} for encoding in PLACED)
    assert not any(TrainedNetwork(a_model(encoding)).placed for encoding in GATES)
    fire, soft = (a_model(encoding) for encoding in PLACED)
    i, j = torch.tensor([4000]), torch.tensor([7, 3000])
    q = torch.zeros(1, 4, 1, 8)
    own = fire.bias_of[0](q, q.expand(-1, -1, 2, -1), i, j)
    assert torch.allclose(TrainedNetwork(fire).bias(0, i, j), own)
    one = torch.ones(1, 4, 1, 8)
    turned = TrainedNetwork(soft).query(0, one, i) * math.sqrt(8)
    assert torch.allclose(turned[0, :, :, 0], soft.bias_of[0].factor(i))


class Own(nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def forward(self, q, k, i, j):
        passed = self.steps(k).cumsum(-1)
        return passed[..., i - j[0], None] - passed[..., None, :]


class Plain(nn.Module):
    def forward(self, q, k, i, j):
        return -(k.norm(dim=-1)[..., None, :] + i[:, None] - j)


class Other(Own):
    def forward(self, q, k, i, j):
        return 2 * super().forward(q, k, i, j)


@pytest.mark.parametrize(
    "module, why",
    (
        (Plain(), "the bias Plain depends on more than the distance"),
        (Own(lambda k: k.sum(-1).flip(-1).cumsum(-1).flip(-1)), "reads other tokens"),
        (Own(lambda k: k.sum(-1).cumsum(-1)), "reads other tokens"),
        (Own(lambda k: 1e5 + 0.25 * (k[:, :, :1, 0] > 0) + 0 * k[..., 0]), "reads other tokens"),
        (Own(lambda k: 1e5 + 0.25 * (k[:, :, 5:, 0] > 0) + 0 * k[..., 0]), "reads other tokens"),
        (Own(lambda k: 3.4e-6 * (k[:, :, :1, 0] > 0) + 0 * k[..., 0]), "reads other tokens"),
        (Own(lambda k: 3.4e-6 * (k[:, :, 5:, 0] > 0) + 0 * k[..., 0]), "reads other tokens"),
        (Own(lambda k: k.sum((-1, -2))), "cannot be taken apart"),
        (Other(lambda k: k.sum(-1)), "do not add up to it"),
    ),
    ids=(
        "no form",
        "future",
        "past",
        "first",
        "last",
        "first by 1.4e-5",
        "last by 1.4e-5",
        "shape",
        "another sum",
    ),
)
def test_what_far_keys_cannot_have_is_one_line(refusal, module, why):
    assert "accepted" in refusal(why, content_of, module, 4, 8)


@pytest.mark.parametrize("at", [0, 5])
def test_a_gate_that_moves_by_less_than_1e_5_is_one_of_its_own_token(at):
    """By 9.6e-6, over four tokens; tensors round by less."""
    read = Own(lambda k: 2.4e-6 * (k[:, :, at, None, 0] > 0) + 0 * k[..., 0])
    assert content_of(read, 4, 8).module is read
