"""Order variance, translation invariance, causality and batches of the model [S, Eq. 1 and 2].

Each is the largest change of the scores that should not change (or should), as a share of the
largest score; [S, Eq. 2] is taken literally, with masked padding before and after the text.
"""

import dataclasses
import math

import pytest
import torch

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding, encodings
from farfield.validation.harness.configuration import TRAINABLE
from farfield.validation.harness.mechanism import CAUSAL, Visibility
from farfield.validation.harness.positional import initialised
from farfield.validation.harness.presets import Preset

PRESET = Preset("", layers=2, width=32, heads=4, length=40, batch=2, steps=1)
NAMES = [n for n in encodings() if encoding(n).mechanism in TRAINABLE and "surrogate" not in n]
ABSOLUTE = {"sinusoidal", "learned"}
TEXT = torch.randint(0, 256, (3, 14), generator=torch.Generator().manual_seed(0))
NOTHING = 1e-9  # a change below counts as none, in float64


def build(name, **changes):
    given = {"window": {"w": 5}, "alibi_log": {"m": 2}}.get(name, {})
    e = encoding(name, **given)
    if e.num_heads > 1:
        e = encoding(name, heads=4, **given)
    return initialised(e, dataclasses.replace(PRESET, **changes), 1).double().eval()


def change(other, of, scores):
    return (other - of).abs().max().item() / scores.abs().max().item()


@torch.no_grad()
def order_variance(model):
    """Change of the last score when the tokens before it are permuted."""
    scores, generator, most = model(TEXT), torch.Generator().manual_seed(0), 0.0
    for _ in range(3):
        before = torch.randperm(TEXT.shape[1] - 1, generator=generator)
        permuted = torch.cat([TEXT[:, before], TEXT[:, -1:]], 1)
        most = max(most, change(model(permuted)[:, -1], scores[:, -1], scores))
    return most


@torch.no_grad()
def translation(model, visible=CAUSAL, offsets=(1, 7, 20)):
    """Change when the text stands at other positions."""
    scores = model(TEXT, mask=visible)
    return max(change(padded(model, k, 3, visible), scores, scores) for k in offsets)


def padded(model, before, after, visible=CAUSAL):
    """`f(X_pad, M_pad)[i : i + n]` of [S, Eq. 2]; windows and blocks move with the text."""
    length = TEXT.shape[1]
    row = torch.nn.functional.pad(TEXT, (before, after))
    position = torch.arange(row.shape[1])
    within = (position >= before) & (position < before + length)
    seen = visible.sees(position[:, None] - before, position - before)
    seen = (seen & within) | torch.eye(len(position), dtype=torch.bool)

    def path(query, key, value, bias, _):
        scores = query @ key.mT / math.sqrt(query.shape[-1])
        if bias is not None:
            scores = scores + bias[:, (position[:, None] - position).clamp(min=0)]
        return scores.masked_fill(~seen, -math.inf).softmax(-1) @ value

    hidden = model.hidden(model.embed(row), visible, path)
    return model.logits(hidden)[:, before : before + length]


@pytest.mark.parametrize("name", NAMES)
def test_properties_of_every_encoding(name):
    """[S, Table 1]: absolute encodings are not invariant under translation, the others are."""
    model = build(name)
    assert (translation(model) < NOTHING) == (name not in ABSOLUTE)
    assert order_variance(model) > NOTHING  # two causal layers know an order, even without a bias
    with torch.no_grad():
        scores, middle = model(TEXT), TEXT.shape[1] // 2
        later = torch.cat([TEXT[:, :middle], (TEXT[:, middle:] + 1) % 256], 1)
        assert change(model(later)[:, :middle], scores[:, :middle], scores) < 1e-12
        alone = torch.cat([model(text[None]) for text in TEXT])
        assert change(alone, scores, scores) < 1e-12


def test_one_causal_layer_without_positions_knows_no_order():
    assert order_variance(build("nope", layers=1)) < NOTHING
    assert order_variance(build("nope", layers=2)) > NOTHING
    assert order_variance(build("alibi", layers=1)) > NOTHING


@pytest.mark.parametrize("view", [Visibility(window=4), Visibility(bca=3)], ids=str)
def test_windows_and_blocks_move_with_the_text(view):
    assert translation(build("xpos"), view) < NOTHING


def test_padding_that_is_not_masked_would_be_seen():
    model = build("alibi")
    with torch.no_grad():
        row = torch.nn.functional.pad(TEXT, (5, 0))
        seen = model(row)[:, 5:]
        torch.testing.assert_close(padded(model, 5, 2), model(TEXT))
    assert not torch.allclose(seen, model(TEXT))


def test_a_learned_encoding_knows_too_few_positions():
    with pytest.raises(InputError, match="knows 40 positions"):
        translation(build("learned"), offsets=(30,))
