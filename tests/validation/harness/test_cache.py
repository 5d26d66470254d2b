"""A model one token after the other, with a cache of keys, is the model on the whole text.

A cache of `w` tokens is a sliding window: every layer of every token sees the `w` most recent keys.
Keys are cached before their rotation and rotated at their distance from the query.
"""

import dataclasses
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from farfield.theory.encodings import encoding, encodings
from farfield.validation.harness.attention import materialised
from farfield.validation.harness.configuration import TRAINABLE
from farfield.validation.harness.mechanism import CAUSAL, Visibility
from farfield.validation.harness.model import Transformer, layer_bias
from farfield.validation.harness.positional import initialised
from farfield.validation.harness.presets import Preset

PRESET = Preset("", layers=2, width=32, heads=4, length=40, batch=2, steps=1)
NAMES = [n for n in encodings() if encoding(n).mechanism in TRAINABLE and "surrogate" not in n]
TEXT = torch.randint(0, 256, (2, 30), generator=torch.Generator().manual_seed(0))


def build(name, **changes):
    given = {"window": {"w": 9}, "alibi_log": {"m": 2}}.get(name, {})
    e = encoding(name, **given)
    if e.num_heads > 1:
        e = encoding(name, heads=4, **given)
    return initialised(e, dataclasses.replace(PRESET, **changes), 1).double().eval()


@dataclasses.dataclass(frozen=True)
class Cache:
    """What a model remembers of a text.

    Args:
        tokens: how many the text has.
        keys, values: of each layer, shape (batch, heads, kept, head size); keys not rotated.
    """

    tokens: int = 0
    keys: tuple[torch.Tensor, ...] = ()
    values: tuple[torch.Tensor, ...] = ()


@torch.no_grad()
def extend(
    model: Transformer, tokens: torch.Tensor, cache: Cache | None = None, width: int | None = None
) -> tuple[torch.Tensor, Cache]:
    """Scores after each of some new tokens, given what is cached of those before.

    Args:
        model: the model.
        tokens: int64, shape (batch, new), at least one.
        cache: of the tokens before; None at the beginning.
        width: keys that a query sees, its own included; None for all.

    Returns:
        Scores, shape (batch, new, vocabulary), and the cache with the new tokens.
    """
    cache = cache or Cache()
    x, new = model.embed(tokens, cache.tokens), tokens.shape[1]
    keys: list[torch.Tensor] = []
    values: list[torch.Tensor] = []
    mask: torch.Tensor | None = None

    def attend(query, key, value, bias, visible):
        nonlocal mask
        layer = len(keys)
        if cache.tokens:
            key = torch.cat([cache.keys[layer], key], -2)
            value = torch.cat([cache.values[layer], value], -2)
        kept = key.shape[-2]
        keys.append(key if width is None else key[:, :, kept - min(kept, width - 1) :])
        values.append(value if width is None else value[:, :, kept - min(kept, width - 1) :])
        if mask is None:
            mask = _mask(model, new, kept, width).to(query)
        own = layer_bias(mask, layer, query.shape[1])[None]
        if rotations[layer] is not None:
            rotations[layer].reach(kept, key.device)
            query, key = rotations[layer](query, key)
        return torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=own)

    rotations = [layer.rotation for layer in model.layers]
    for layer in model.layers:
        layer.rotation = None  # the cache turns keys when they are asked for
        x = layer(x, None, CAUSAL, attend)
    for layer, rotation in zip(model.layers, rotations, strict=True):
        layer.rotation = rotation
    return model.logits(model.norm(x)), Cache(cache.tokens + new, tuple(keys), tuple(values))


def _mask(model: Transformer, new: int, kept: int, width: int | None) -> torch.Tensor:
    """The bias between the last `new` of `kept` tokens and all of them, -inf where unseen."""
    position = torch.arange(kept)
    distance = position[kept - new :, None] - position
    seen = distance >= 0 if width is None else (distance >= 0) & (distance < width)
    table = model.bias_table(kept)
    table = torch.zeros(1, kept, dtype=torch.float64) if table is None else table
    return table[:, distance.clamp(min=0)].masked_fill(~seen, -math.inf)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("width", [None, 1, 5, 30])
@pytest.mark.parametrize("name", NAMES)
def test_a_cache_gives_the_scores_of_a_sliding_window(name, width):
    """Token by token and in blocks, by the path that is the specification."""
    model = build(name)
    with torch.no_grad():
        whole = model(TEXT, mask=Visibility(window=width), path=materialised)
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
        whole = model(text, mask=Visibility(window=width))
    cache, found = None, []
    for part in text.split(cuts, 1):
        scores, cache = extend(model, part, cache, width)
        found.append(scores)
    torch.testing.assert_close(torch.cat(found, 1), whole, rtol=1e-6, atol=1e-9)


def test_far_beyond_the_training_length():
    """xPos scales and rotary angles stay those of the distance: nothing overflows in float32."""
    model = build("xpos").float()
    scores, cache = None, None
    for part in torch.zeros(1, 600, dtype=torch.long).split(100, 1):
        scores, cache = extend(model, part, cache, 16)
    short, _ = extend(model, torch.zeros(1, 100, dtype=torch.long), None, 16)
    torch.testing.assert_close(scores[:, -1], short[:, -1], rtol=1e-3, atol=1e-4)
