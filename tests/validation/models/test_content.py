"""Biases of content: far keys that represent one position each give the model back."""

import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from farfield.theory.answers.errors import InputError
from farfield.validation.far_field.stages import Sampling, Stages, far_losses
from farfield.validation.harness.bias import model_of
from farfield.validation.harness.settings import CAUSAL, Mask, Run
from farfield.validation.models.content_bias import content_of
from farfield.validation.models.network import TrainedNetwork, losses
from farfield.validation.models.repairs import Repair, Repaired

ROW, LAST = 16, 4
GATES = (
    "docs/gallery/forget_gate.py:ForgetGate",
    "docs/gallery/contextual_positions.py:Cope",
    "experiments/far_field_2/cable.py:Cable",
)


PLACED = ("docs/gallery/fire.py:Fire", "docs/gallery/scalable_softmax.py:ScalableSoftmax")


def of_model(model, rows, mask=CAUSAL):
    scores = model(rows[:, :-1], mask).double().mT
    return cross_entropy(scores, rows[:, 1:], reduction="none")[:, -LAST:].detach()


def a_model(encoding):
    run = Run(encoding=encoding, layers=2, width=32, heads=4, length=ROW, spread=0.3)
    model = model_of(run).eval()
    random = torch.Generator().manual_seed(5)
    for bias in model.biases:
        for weight in bias.parameters():
            weight.data = torch.randn(weight.shape, generator=random) / 2
    return model


@pytest.fixture(scope="module")
def text():
    return torch.randint(0, 256, (6 * ROW + 1,), generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("encoding", (*GATES, *PLACED))
def test_rows_by_themselves_and_twice_as_long_are_those_of_the_model(encoding, text):
    model, rows = a_model(encoding), text.unfold(0, ROW + 1, ROW)
    network = TrainedNetwork(model)
    assert torch.allclose(losses(network, text[None], LAST), of_model(model, text[None]), atol=1e-4)
    far = far_losses(network, rows, [2 * ROW], Sampling(8), LAST)[2 * ROW]
    assert torch.allclose(far[0], of_model(model, text[None, : 2 * ROW + 1])[0], atol=1e-4)


@pytest.mark.parametrize("encoding", (*GATES, *PLACED))
def test_blocks_that_leave_nothing_out_are_the_row(encoding, text):
    model, rows = a_model(encoding), text.unfold(0, ROW + 1, ROW)
    stages = Stages(TrainedNetwork(model), rows, LAST, Sampling(8))
    stages.plain()
    stages.stage(1, [ROW, 4 * ROW])
    tokens = text[None, : 4 * ROW + 1]
    scores = stages.blocks(tokens[:, :-1], torch.arange(4 * ROW), LAST, [ROW, 4 * ROW])
    found = -scores.double().log_softmax(-1).gather(-1, tokens[:, -LAST:, None])[..., 0]
    assert torch.allclose(found, of_model(model, tokens), atol=1e-4)


@pytest.mark.parametrize("encoding", GATES)
def test_windows_hide_what_a_mask_hides(encoding, text):
    model = a_model(encoding)
    found = losses(Repaired(TrainedNetwork(model), Repair(window=5)), text[None], LAST)
    assert torch.allclose(found, of_model(model, text[None], Mask(5)), atol=1e-4)


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
        (Own(lambda k: k.sum((-1, -2))), "cannot be taken apart"),
        (Other(lambda k: k.sum(-1)), "do not add up to it"),
    ),
    ids=("no form", "future", "past", "shape", "another sum"),
)
def test_what_far_keys_cannot_have_is_one_line(module, why):
    with pytest.raises(InputError, match=why) as error:
        content_of(module, 4, 8)
    assert "\n" not in str(error.value) and "accepted" in str(error.value)
