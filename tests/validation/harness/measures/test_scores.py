import math

import numpy as np
import pytest
import torch

from farfield.numerics.resolution import attention_resolution
from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding
from farfield.validation.harness.attention import materialised
from farfield.validation.harness.corpus import samples_of
from farfield.validation.harness.measures import receptive_fields as room
from farfield.validation.harness.measures.receptive_fields import expected_scores
from farfield.validation.harness.mechanism import Visibility
from farfield.validation.harness.positional import initialised


def build(name, small):
    given = {"window": {"w": 4}, "alibi": {"heads": 4}}.get(name, {})
    return initialised(encoding(name, **given), small, 0).eval()


@pytest.mark.parametrize("view", [Visibility(), Visibility(bca=5)], ids=str)
@pytest.mark.parametrize("name", ["alibi", "xpos", "type1", "nope"])
def test_scores_are_their_definition(name, view, small, text, monkeypatch):
    """[S, Eq. 13]: the mean over all pairs at a distance, taken one by one."""
    monkeypatch.setattr(room, "_CHUNK", 7)
    model, length = build(name, small), 20
    found = expected_scores(model, text.held_out, length=length, segments=3, visible=view)
    recorded = []

    def path(query, key, value, bias, visible):
        recorded.append((query.double(), key.double()))
        return materialised(query, key, value, bias, visible)

    x = torch.from_numpy(samples_of(text.held_out, 3, length)[:, :-1])
    with torch.no_grad():
        model.hidden(model.embed(x), view, path)
    table = model.bias_table(length)
    for layer, (query, key) in enumerate(recorded):
        for n in range(length):
            p = 0 if table is None else table[:, n].mean().item()
            pairs = [
                (query[:, :, i] * key[:, :, i - n]).sum(-1).mean().item() / math.sqrt(8)
                for i in range(n, length)
                if view.sees(i, i - n)
            ]
            expected = np.mean(pairs) + p if pairs else None
            assert found.layers[layer][n] == (
                None if expected is None else pytest.approx(expected, abs=1e-6)
            )
    known = [s for s in found.scores if s is not None]
    mask = None if len(known) == length else f"window {len(known)}"
    padded = np.array(known if mask is None else [*known, 0.0])
    assert found.resolution == attention_resolution(padded, mask=mask).value
    assert len(found.layer_resolutions) == small.layers


def test_without_content_the_resolution_is_that_of_the_bias(small, text):
    model = build("type1", small)
    for layer in model.layers:
        layer.mixed.weight.data.zero_()
    found = expected_scores(model, text.held_out, length=30, segments=2)
    expected = attention_resolution("-2*log(1+n)", 30).value
    assert found.resolution == pytest.approx(expected)
    assert found.layer_resolutions == pytest.approx([expected] * 2)
    window = build("window", small)
    for layer in window.layers:
        layer.mixed.weight.data.zero_()
    found = expected_scores(window, text.held_out, length=30, segments=2)
    assert found.scores[:4] == (0,) * 4 and set(found.scores[4:]) == {None}
    assert found.resolution == pytest.approx(1 / 16)  # 1/w^2


def test_errors(small, text):
    for length in (1, 10**6):
        with pytest.raises(InputError, match="accepted"):
            expected_scores(build("nope", small), text.held_out, length=length)
    with pytest.raises(InputError, match="knows 12 positions"):
        expected_scores(build("learned", small), text.held_out, length=13)
