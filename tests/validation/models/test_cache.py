import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding, encodings
from farfield.validation.models.attention import materialised
from farfield.validation.models.cache import extend, generate
from farfield.validation.models.model import initialised
from farfield.validation.settings.presets import Preset
from farfield.validation.settings.trainable import TRAINABLE
from farfield.validation.settings.visibility import Visibility

PRESET = Preset("", layers=2, width=32, heads=4, length=40, batch=2, steps=1)
NAMES = [n for n in encodings() if encoding(n).mechanism in TRAINABLE and "surrogate" not in n]
TEXT = torch.randint(0, 256, (2, 30), generator=torch.Generator().manual_seed(0))


def build(name, **changes):
    given = {"window": {"w": 9}, "alibi_log": {"m": 2}}.get(name, {})
    e = encoding(name, **given)
    if e.num_heads > 1:
        e = encoding(name, heads=4, **given)
    return initialised(e, dataclasses.replace(PRESET, **changes), 1).double().eval()


@pytest.mark.parametrize("width", [None, 1, 5, 30])
@pytest.mark.parametrize("name", NAMES)
def test_a_cache_gives_the_scores_of_a_sliding_window(name, width):
    """Token by token and in blocks, by the path that is the specification."""
    model = build(name)
    with torch.no_grad():
        whole = model(TEXT, Visibility(window=width), materialised)
    for cuts in ([1] * 30, [7, 1, 1, 13, 8]):
        cache, found = None, []
        for part in TEXT.split(cuts, 1):
            scores, cache = extend(model, part, cache, width)
            found.append(scores)
            kept = cache.tokens if width is None else min(cache.tokens, width - 1)
            assert {k.shape[2] for k in (*cache.keys, *cache.values)} == {kept}
        torch.testing.assert_close(torch.cat(found, 1), whole, rtol=1e-6, atol=1e-9)


@settings(max_examples=15)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(1, 12))
def test_blocks_of_any_size(cuts, width):
    model = build("xpos")
    text = TEXT.repeat(1, 3)[:, : sum(cuts)]
    with torch.no_grad():
        whole = model(text, Visibility(window=width))
    cache, found = None, []
    for part in text.split(cuts, 1):
        scores, cache = extend(model, part, cache, width)
        found.append(scores)
    torch.testing.assert_close(torch.cat(found, 1), whole, rtol=1e-6, atol=1e-9)


def test_generated_tokens_are_the_likeliest_of_the_whole_text():
    model = build("alibi")
    model.norm.weight.data *= 30
    prompt = np.arange(5)
    found = generate(model, prompt, 12, width=6)
    text = torch.from_numpy(np.concatenate([prompt, found]))[None]
    with torch.no_grad():
        expected = model(text, Visibility(window=6))[0].argmax(-1)
    assert found.tolist() == expected[4:-1].tolist()
    drawn = [generate(model, prompt, 9, temperature=5.0, seed=s).tolist() for s in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_far_beyond_the_training_length():
    """xPos scales and rotary angles stay those of the distance: nothing overflows in float32."""
    model = build("xpos").float()
    assert len(generate(model, np.zeros(3), 2000, width=16)) == 2000
    scores, cache = None, None
    for part in torch.zeros(1, 600, dtype=torch.long).split(100, 1):
        scores, cache = extend(model, part, cache, 16)
    short, _ = extend(model, torch.zeros(1, 100, dtype=torch.long), None, 16)
    torch.testing.assert_close(scores[:, -1], short[:, -1], rtol=1e-3, atol=1e-4)


def test_what_cannot_be_generated():
    with pytest.raises(InputError, match="knows 40 positions; 41 tokens"):
        generate(build("learned"), np.zeros(30), 12)
    for prompt, options in (([], {}), ([1], {"width": 0}), ([1], {"temperature": -1.0})):
        with pytest.raises(InputError, match="accepted: a prompt"):
            generate(build("nope"), np.array(prompt), 1, **options)
