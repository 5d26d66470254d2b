"""The most attention within a bound of the logits: random inputs, the input that attains it."""

import numpy as np
import pytest

from farfield import attention_ceiling, encoding
from farfield.numerics.summation.series import _series

RNG = np.random.default_rng(4)


@pytest.mark.parametrize("text", ["0", "-n/16", "-2*log(1+n)", "n/50", "cos(n)"])
def test_no_input_exceeds_it_and_one_attains_it(text):
    length, beta = 48, 1.5
    bias = encoding(text).bias(np.arange(length))[0]
    for at in (0, 7, 47):
        found = attention_ceiling(text, "3/2", length=length, distance=at)
        worst = np.where(np.arange(length) == at, beta, -beta)
        weights = np.exp(worst + bias)
        assert found.value == pytest.approx(weights[at] / weights.sum(), rel=1e-12)
        inputs = np.exp(RNG.uniform(-beta, beta, (500, length)) + bias)
        assert (inputs[:, at] / inputs.sum(axis=1) <= found.enclosure[1]).all()


def test_the_whole_logit_of_a_rotation_is_bounded():
    found = attention_ceiling("rope", 4, length=2981)
    assert found.longest == 2981 and found.value > 0.5 and found.formula is None
    assert attention_ceiling("rope", 4, length=2982).value < 0.5
    assert attention_ceiling("rope", 0, length=10).longest == 2
    assert 2.688e43 < attention_ceiling("rope", 50, length=10**9).longest < 2.689e43


def test_heads_masks_and_other_mechanisms():
    found = attention_ceiling("alibi", 4, length=512)
    assert found.value == max(h.value for h in found.heads) and found.longest is None
    assert attention_ceiling("window", 4, length=64, w=8).value == 0
    assert attention_ceiling("0", 4, length=1).value == 1
    for other in ("fox", "stick_breaking"):
        found = attention_ceiling(other, 4, length=64)
        assert (found.status, found.distance) == ("out_of_scope", 63)
        assert attention_ceiling(other, 4, length=64, distance=9).distance == 9
    assert attention_ceiling("alibi", 4, length=64, bca=8).status == "out_of_scope"
    vast = attention_ceiling("-exp(n)", 4, length=2000, distance=1000)
    assert (vast.status, vast.value, vast.label) == ("unknown", None, None)
    assert str(vast.reason) == "the price is finite and beyond float64"


@pytest.mark.parametrize(("f", "bound"), [("-n/32", 4), ("-2*log(1+n)", 3), ("alibi", 3), ("0", 1)])
def test_the_farthest_key_that_can_have_half(f, bound):
    """Biases that do not rise: the ceiling passes one half behind the farthest key."""
    found = attention_ceiling(f, bound, length=512)
    for head in found.heads or (found,):
        last = -1 if head.farthest is None else head.farthest
        if last >= 0:
            assert attention_ceiling(head.formula, bound, length=512, distance=last).value >= 0.5
        assert attention_ceiling(head.formula, bound, length=512, distance=last + 1).value < 0.5
    assert found.farthest == max((h.farthest for h in found.heads), default=found.farthest)


def test_a_ceiling_of_sums_in_floats_says_so(monkeypatch):
    monkeypatch.setattr("farfield.numerics.summation.series.MAX_WORK", 64)
    _series.cache_clear()
    found = attention_ceiling("-n*sin(n)^2", 4, length=5_000, distance=5)
    weights = np.exp(encoding("-n*sin(n)^2").bias(np.arange(5_000))[0])
    share = weights[5] / (weights[5] + np.exp(-8) * (weights.sum() - weights[5]))
    assert found.label == "approximate" and found.value == pytest.approx(share, rel=1e-9)
