import dataclasses

import numpy as np
import pytest
import torch

from farfield.theory.encodings import encoding
from farfield.validation.harness.positional import initialised
from farfield.validation.harness.presets import preset
from farfield.validation.harness.training import (
    TrainingDiverged,
    batch,
    forward,
    learning_rate,
    train,
)


def test_learning_rate_rises_and_falls():
    demo = preset("demo")
    rates = [learning_rate(step, demo) for step in range(demo.steps)]
    assert np.argmax(rates) == demo.warmup - 1
    assert max(rates) == demo.learning_rate
    assert (np.diff(rates[: demo.warmup]) > 0).all() and (np.diff(rates[demo.warmup :]) < 0).all()
    assert rates[-1] == pytest.approx(0.05 * demo.learning_rate)


def test_a_batch_depends_on_seed_and_step_alone(text, small):
    first = batch(text.train, small, 0, 5)
    for inputs, targets in (first, batch(text.train, small, 0, 5)):
        assert inputs.shape == targets.shape == (4, 12)
        assert torch.equal(inputs[:, 1:], targets[:, :-1])
        assert torch.equal(inputs, first[0])
    assert not torch.equal(batch(text.train, small, 1, 5)[0], first[0])
    assert not torch.equal(batch(text.train, small, 0, 6)[0], first[0])


@pytest.mark.parametrize("name", ["kerple_log", "rope"])
def test_training_learns_and_repeats_itself(name, text, small):
    longer = dataclasses.replace(small, steps=60)

    def run():
        model, seen = initialised(encoding(name), longer, 3), []
        training = train(model, text.train, longer, 3, lambda *event: seen.append(event))
        assert [event[:3] for event in seen] == [("train", k, 60) for k in range(1, 61)]
        assert training.losses[-1][0] == 60 and training.losses[-1][1] < 4 < training.losses[0][1]
        assert training.tokens == 60 * 4 * 12
        return training.losses, list(model.parameters())

    (losses, weights), (losses_again, weights_again) = run(), run()
    assert losses == losses_again
    assert all(torch.equal(a, b) for a, b in zip(weights, weights_again, strict=True))


def test_learned_biases_move_and_stay_in_their_domain(text, small):
    fast = dataclasses.replace(small, learning_rate=0.3)
    model = initialised(encoding("kerple_log"), fast, 0)
    before = model.learned_values()
    train(model, text.train, fast)
    after = model.learned_values()
    assert all(before[k] != after[k] for k in ("r1", "r2"))
    assert all(v >= 0.01 - 1e-8 for k in ("r1", "r2") for v in after[k])


def test_a_loss_that_is_no_number_stops_the_run(text, small):
    model = initialised(encoding("alibi", heads=4), small, 0)
    model.norm.weight.data[0] = float("nan")
    with pytest.raises(TrainingDiverged, match="the loss is nan at step 1 of 12"):
        train(model, text.train, small)


def test_a_compiled_model_is_the_model(small):
    """Traced without code generation, which would take minutes."""
    model = initialised(encoding("kerple_log"), small, 0)
    x, plain = torch.arange(24).view(2, 12), initialised(encoding("kerple_log"), small, 0)
    torch.testing.assert_close(forward(model, small, backend="eager")(x), plain(x))


@pytest.mark.parametrize("name", ["alibi", "kerple_log", "rope"])
def test_the_device_is_asked_every_twenty_steps(name, text, small, monkeypatch):
    """Nothing that a device would have to wait for happens within a step."""
    model = initialised(encoding(name, **({"heads": 4} if name == "alibi" else {})), small, 0)
    asked, step = [], [0]
    for ask in ("item", "tolist", "cpu", "numpy", "__bool__", "__float__", "__int__", "nonzero"):
        told = getattr(torch.Tensor, ask)

        def watched(tensor, *args, told=told, ask=ask, **kwargs):
            if tensor.requires_grad or tensor.grad_fn or tensor.dtype.is_floating_point:
                asked.append((ask, step[0]))
            return told(tensor, *args, **kwargs)

        monkeypatch.setattr(torch.Tensor, ask, watched)
    longer = dataclasses.replace(small, steps=45)
    train(model, text.train, longer, progress=lambda *event: step.__setitem__(0, event[1]))
    by_own = {at for ask, at in asked if ask in ("tolist", "cpu", "numpy", "item", "__float__")}
    by_own -= {0}  # before the first step a learned bias is compared with its table
    assert by_own == {19, 39, 44}, asked[:5]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU is visible")
@pytest.mark.parametrize("name", ["kerple_log", "alibi", "rope", "learned"])
def test_training_on_a_gpu(name, text, small):
    """The same text in the same order: losses as on a CPU, to the precision of the sums."""
    shape = dataclasses.replace(small, width=64, steps=40)
    given = {"heads": 4} if name == "alibi" else {}
    losses = []
    for device, precision in (("cpu", "float32"), ("cuda", "float32"), ("cuda", "bfloat16")):
        model = initialised(encoding(name, **given), shape, 0).to(device)
        as_asked = dataclasses.replace(shape, precision=precision)
        losses.append(train(model, text.train, as_asked).losses[-1][1])
        assert all(p.dtype == torch.float32 for p in model.parameters())
    assert losses[1] == pytest.approx(losses[0], abs=0.05)
    assert losses[2] == pytest.approx(losses[0], abs=0.2)
