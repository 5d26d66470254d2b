import json
import math

import numpy as np
import pytest
import torch

from farfield.theory.answers.answer import InputError, plain
from farfield.theory.encodings import encoding
from farfield.validation.extrapolation import holds
from farfield.validation.harness.attention import fused
from farfield.validation.harness.corpus import samples_of
from farfield.validation.harness.measures import perplexity
from farfield.validation.harness.measures.perplexity import (
    binned,
    losses_at,
    perplexities,
)
from farfield.validation.harness.mechanism import Visibility
from farfield.validation.harness.positional import initialised

LENGTHS = (5, 12, 23, 40)  # neither 12 nor 23 divides 40


@pytest.fixture(scope="module")
def model(small):
    """Far from uniform: its last norm is blown up."""
    model = initialised(encoding("example1"), small, 0).eval()
    model.norm.weight.data *= 20
    return model


def nats(model, context, target, view):
    scores = model(torch.tensor([context.tolist()]), mask=view)[0, -1].double()
    return -(scores.log_softmax(-1)[target]).item()


@pytest.mark.parametrize("view", [Visibility(), Visibility(bca=6), Visibility(window=4)], ids=str)
def test_protocols_are_their_definitions(model, text, view):
    with torch.no_grad():
        held = text.held_out
        found = perplexities(model, held, LENGTHS, 4, 1, visible=view)
        targets = np.linspace(40, len(held) - 1, 4).astype(int)
        for result, length in zip(found, LENGTHS, strict=True):
            losses = [nats(model, held[t - length : t], held[t], view) for t in targets]
            assert result.nats == pytest.approx(np.mean(losses), rel=1e-5)
        found = perplexities(model, held, LENGTHS, 2, visible=view)
        starts = [0, len(held) - 41]
        for result, length in zip(found, LENGTHS, strict=True):
            losses = []
            for start in starts:
                for t in range(40):
                    begin = start + t // length * length
                    losses.append(
                        nats(model, held[begin : start + t + 1], held[start + t + 1], view)
                    )
            assert result.nats == pytest.approx(np.mean(losses), rel=1e-5)
            assert result.targets == len(losses) == 80


def test_figures_beside_a_perplexity(model, text):
    results = perplexities(model, text.held_out, LENGTHS, 9, 1)
    rows = samples_of(text.held_out, 9, 40)
    with torch.no_grad():
        each = np.array(
            [[nats(model, r[-n - 1 : -1], r[-1], Visibility()) for r in rows] for n in LENGTHS]
        )
    for result, losses in zip(results, each, strict=True):
        assert result.protocol == "last token" and result.samples == result.targets == 9
        assert result.perplexity == pytest.approx(math.exp(result.nats))
        assert result.standard_error == pytest.approx(losses.std(ddof=1) / 3, rel=1e-4)
        assert result.base == 12  # the training length
        difference = losses - each[1]
        assert result.ratio == pytest.approx(math.exp(difference.mean()), rel=1e-4)
        error = difference.std(ddof=1) / 3
        assert result.ratio_high / result.ratio == pytest.approx(math.exp(1.96 * error), rel=1e-3)
        assert result.ratio_low <= result.ratio <= result.ratio_high
    assert json.loads(json.dumps(plain(results), allow_nan=False))[0]["length"] == 5


def test_a_model_of_bounded_reach_has_the_same_last_token_perplexity_beyond_it(small, text):
    model = initialised(encoding("window", w=4), small, 0).eval()
    at_7, at_40 = perplexities(model, text.held_out, (7, 40), 20, 1)
    assert at_7.nats == pytest.approx(at_40.nats, rel=1e-6)
    assert at_40.ratio == pytest.approx(1, abs=1e-6)


def test_a_length_beyond_the_text(model):
    with pytest.raises(InputError, match="the text has 40 tokens, a segment takes 41"):
        perplexities(model, np.zeros(40, np.uint8), (40,), last=1)


def test_sliding_windows_lie_between_the_other_protocols(model, text):
    """Stride 1 is the last token of each window, a whole window as stride is non-overlapping."""
    held = text.held_out
    one = perplexities(model, held, LENGTHS, 7, 1)
    for found, expected in zip(one, perplexities(model, held, LENGTHS, 7, 1), strict=True):
        assert found.nats == pytest.approx(expected.nats) and found.targets == 7
    (whole,) = perplexities(model, held, (40,), 3, 40)
    (expected,) = perplexities(model, held, (40,), 3)
    assert whole.nats == pytest.approx(expected.nats) and whole.targets == 120


def test_sliding_windows_by_definition(model, text):
    """Windows at places of their own; only what is new in one is scored."""
    held, stride = text.held_out[:70], 3
    found = perplexities(model, held, (12, 23), 9, stride)
    with torch.no_grad():
        for result, length in zip(found, (12, 23), strict=True):
            losses = []
            for end in 23 + np.linspace(0, len(held) - 24, 9).astype(int):
                scores = model(torch.from_numpy(held[end - length : end].astype(np.int64))[None])
                targets = held[end - stride + 1 : end + 1].astype(int)
                logs = scores[0, -stride:].double().log_softmax(-1)
                losses += [-logs[k, t].item() for k, t in enumerate(targets)]
            assert result.nats == pytest.approx(np.mean(losses), rel=1e-5)
            assert result.targets == len(losses)
    with pytest.raises(InputError, match="stride 13 with windows of 12 tokens"):
        perplexities(model, held, (12, 23), 64, 13)


def test_the_last_layer_for_the_last_token_changes_no_number(model, text):
    """A path that is asked for computes every row; the difference is that of float32 sums."""

    def whole(*tensors):
        return fused(*tensors)

    def measured(path):
        last = perplexities(model, text.held_out, LENGTHS, 6, 1, path=path)
        return last + perplexities(model, text.held_out, (12, 23), 64, 5, path=path)

    for alone, every in zip(measured(fused), measured(whole), strict=True):
        assert alone.nats == pytest.approx(every.nats, rel=2e-6)
        assert alone.ratio == pytest.approx(every.ratio, rel=2e-6)


def test_the_blocks_of_the_longest_length_serve_the_positions(model, text):
    """To the last bit: the same rows in the same passes."""
    losses = losses_at(model, text.held_out, LENGTHS, 5)
    assert (losses[-1] == losses_at(model, text.held_out, (40,), 5)[0]).all()


def test_perplexity_by_position(model, text):
    held = text.held_out
    bins = binned(losses_at(model, held, (40,), 5)[0], 7)
    assert [b.first for b in bins] == [1, *(b.last + 1 for b in bins[:-1])]
    assert bins[-1].last == 40 and sum(b.targets for b in bins) == 200
    (whole,) = perplexities(model, held, (40,), 5)
    total = sum(b.nats * b.targets for b in bins) / 200
    assert total == pytest.approx(whole.nats)
    single = binned(losses_at(model, held, (40,), 5)[0], 99)
    assert [b.first for b in single] == list(range(1, 41))
    (last,) = perplexities(model, held, (40,), 5, 1)
    assert single[-1].nats == pytest.approx(last.nats)
    assert single[-1].standard_error == pytest.approx(last.standard_error)


def test_scores_of_a_large_vocabulary_a_few_positions_at_a_time(model, text, monkeypatch):
    before = perplexities(model, text.held_out, (40,), 3)
    monkeypatch.setattr(perplexity, "_SCORES", 256 * 5)
    assert perplexities(model, text.held_out, (40,), 3)[0].nats == pytest.approx(before[0].nats)


def test_definition_as_printed_and_one_sided():
    cases = {
        (0.025, -0.025): (True, True),
        (-0.125, -0.025): (False, True),
        (-0.025, 0.05): (False, False),
        (0.05, -0.025): (False, False),
    }
    for changes, (printed, one_sided) in cases.items():
        assert holds(changes, both_ways=True) is printed
        assert holds(changes) is one_sided
