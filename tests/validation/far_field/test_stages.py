"""Laws of the far field: where it leaves nothing out, it is the model."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from farfield.theory.answers.errors import InputError
from farfield.validation.far_field.network import TrainedNetwork
from farfield.validation.far_field.repairs import Repair, candidates
from farfield.validation.far_field.stages import Cell, Sampling, Stages, far_losses
from farfield.validation.harness.bias import model_of
from farfield.validation.harness.settings import CAUSAL, Run

ENCODINGS = ("0", "rope", "alibi", "kerple_log", "xpos", "sinusoidal")
ROW, LAST = 16, 4


def a_model(encoding):
    run = Run(encoding=encoding, layers=2, width=32, heads=4, length=ROW, spread=0.3)
    return model_of(run).eval()


def losses(model, rows, mask=CAUSAL):
    scores = model(rows[:, :-1], mask).double().mT
    return cross_entropy(scores, rows[:, 1:], reduction="none")[:, -LAST:].detach()


@pytest.fixture(scope="module")
def text():
    return torch.randint(0, 256, (6 * ROW + 1,), generator=torch.Generator().manual_seed(3))


@pytest.fixture(scope="module")
def rows(text):
    return text.unfold(0, ROW + 1, ROW)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_row_by_itself_is_the_row_of_the_model(encoding, rows):
    model = a_model(encoding)
    stages = Stages(TrainedNetwork(model), rows, LAST, Sampling())
    assert torch.allclose(stages.plain(), losses(model, rows), atol=1e-4)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_second_row_of_a_text_at_twice_the_length_is_exact(encoding, rows, text):
    model = a_model(encoding)
    far = far_losses(TrainedNetwork(model), rows, [2 * ROW], Sampling(8), LAST)
    assert torch.allclose(far[2 * ROW][0], losses(model, text[None, : 2 * ROW + 1])[0], atol=1e-4)


@pytest.mark.parametrize("repair", candidates(ROW), ids=lambda repair: repair.name)
@pytest.mark.parametrize("encoding", ("0", "rope", "alibi"))
def test_a_repaired_model_is_the_same_on_real_rows_and_in_the_far_field(encoding, repair, text):
    model, mask = repair.of(a_model(encoding))
    long = text[None, : 3 * ROW + 1]
    stages = Stages(TrainedNetwork(model, mask), long, LAST, Sampling())
    assert torch.allclose(stages.plain(), losses(model, long, mask), atol=1e-4)


def test_a_repair_changes_nothing_before_it_begins(rows):
    model = a_model("-n/8")
    grafted, mask = Repair(graft=(2.0, ROW)).of(model)
    assert torch.equal(losses(grafted, rows, mask), losses(model, rows))
    assert grafted.tables(64)[0][0, ROW:].ne(model.tables(64)[0][0, ROW:]).any()


def test_the_keys_of_a_cell_stand_for_its_positions(rows):
    stages = Stages(TrainedNetwork(a_model("0")), rows, LAST, Sampling(8))
    stages.plain()
    stages.stage(1, [ROW, 8 * ROW])
    keys = stages._far(Cell(1, torch.arange(ROW, ROW + 8), 100), 0)
    assert torch.allclose(keys.more.exp().sum(-1), torch.full_like(keys.more[..., 0], 100.0))
    own = stages.pools[1][0][2] // ROW == torch.arange(len(rows))[:, None]
    assert torch.equal(keys.more[:, 0, 0].isinf(), own)


def test_what_has_no_far_field_is_refused():
    with pytest.raises(InputError, match="learned absolute positions end at 16"):
        TrainedNetwork(a_model("learned"))
