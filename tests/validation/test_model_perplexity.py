import json
import math

import numpy as np
import pytest
import torch

from farfield.theory.encodings import encoding
from farfield.theory.results import InputError, plain
from farfield.validation.configuration import Visibility
from farfield.validation.corpus import segments
from farfield.validation.model import initialised
from farfield.validation.perplexity import last_token, non_overlapping

LENGTHS = (5, 12, 23, 40)  # neither 12 nor 23 divides 40


@pytest.fixture(scope="module")
def model(small):
    """Far from uniform: its last norm is blown up."""
    model = initialised(encoding("example1"), small, 0).eval()
    model.norm.weight.data *= 20
    return model


def nats(model, context, target, view):
    scores = model(torch.tensor([context.tolist()]), view)[0, -1].double()
    return -(scores.log_softmax(-1)[target]).item()


@pytest.mark.parametrize("view", [Visibility(), Visibility(bca=6), Visibility(window=4)], ids=str)
def test_protocols_are_their_definitions(model, text, view):
    with torch.no_grad():
        held = text.held_out
        found = last_token(model, held, LENGTHS, targets=4, visible=view)
        targets = np.linspace(40, len(held) - 1, 4).astype(int)
        for result, length in zip(found, LENGTHS, strict=True):
            losses = [nats(model, held[t - length : t], held[t], view) for t in targets]
            assert result.nats == pytest.approx(np.mean(losses), rel=1e-5)
        found = non_overlapping(model, held, LENGTHS, blocks=2, visible=view)
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
    results = last_token(model, text.held_out, LENGTHS, targets=9)
    rows = segments(text.held_out, 9, 40)
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
    at_7, at_40 = last_token(model, text.held_out, (7, 40), targets=20)
    assert at_7.nats == pytest.approx(at_40.nats, rel=1e-6)
    assert at_40.ratio == pytest.approx(1, abs=1e-6)


def test_a_length_beyond_the_text(model):
    with pytest.raises(InputError, match="the text has 40 bytes, length 40 takes 41"):
        last_token(model, np.zeros(40, np.uint8), (40,))
