import dataclasses

import pytest
import torch

from farfield.theory.encodings import encoding, encodings
from farfield.theory.results import InputError
from farfield.validation.measures.properties import padded, properties
from farfield.validation.models.model import initialised
from farfield.validation.settings.presets import Preset
from farfield.validation.settings.trainable import TRAINABLE
from farfield.validation.settings.visibility import Visibility

PRESET = Preset("", layers=2, width=32, heads=4, length=40, batch=2, steps=1)
NAMES = [n for n in encodings() if encoding(n).mechanism in TRAINABLE and "surrogate" not in n]
ABSOLUTE = {"sinusoidal", "learned"}
TEXT = torch.randint(0, 256, (3, 14), generator=torch.Generator().manual_seed(0))


def build(name, **changes):
    given = {"window": {"w": 5}, "alibi_log": {"m": 2}}.get(name, {})
    e = encoding(name, **given)
    if e.num_heads > 1:
        e = encoding(name, heads=4, **given)
    return initialised(e, dataclasses.replace(PRESET, **changes), 1).double().eval()


@pytest.mark.parametrize("name", NAMES)
def test_properties_of_every_encoding(name):
    """[S, Table 1]: absolute encodings are not invariant under translation, the others are."""
    found = properties(build(name), TEXT, offsets=(1, 7, 20))
    assert found.translation_invariant == (name not in ABSOLUTE)
    assert found.causality < 1e-12 and found.batch < 1e-12
    assert found.order_variant  # two causal layers know an order, even without a bias


def test_one_causal_layer_without_positions_knows_no_order():
    assert not properties(build("nope", layers=1), TEXT).order_variant
    assert properties(build("nope", layers=2), TEXT).order_variant
    assert properties(build("alibi", layers=1), TEXT).order_variant


@pytest.mark.parametrize("view", [Visibility(window=4), Visibility(bca=3)], ids=str)
def test_windows_and_blocks_move_with_the_text(view):
    assert properties(build("xpos"), TEXT, visible=view).translation_invariant


def test_padding_that_is_not_masked_would_be_seen():
    model = build("alibi")
    with torch.no_grad():
        row = torch.nn.functional.pad(TEXT, (5, 0))
        seen = model(row)[:, 5:]
        torch.testing.assert_close(padded(model, TEXT, 5, 2), model(TEXT))
    assert not torch.allclose(seen, model(TEXT))


def test_what_is_refused():
    with pytest.raises(InputError, match="at least 2 texts"):
        properties(build("nope"), TEXT[:1])
    with pytest.raises(InputError, match="knows 40 positions"):
        properties(build("learned"), TEXT, offsets=(30,))
    assert "order variance: yes" in str(properties(build("rope"), TEXT))
