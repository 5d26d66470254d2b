"""Scales of logits: the schedules of the theory, noise against simulation, bad input."""

import math

import flint
import numpy as np
import pytest

from farfield.numerics.price import price_of_distance, reach
from farfield.numerics.scaling import logit_scale
from farfield.theory.answers.errors import InputError
from farfield.theory.functions.balls import precision


def test_without_a_bias_the_schedule_is_log_of_the_others():
    gain = math.log(63)
    for length in (64, 65, 1024, 2**24):
        found = logit_scale("0", gain, length=length)
        assert found.value == pytest.approx(math.log(length - 1) / gain, rel=1e-14)
        assert found.enclosure[0] <= found.value <= found.enclosure[1]
        low, high = found.value * gain * (1 - 1e-9), found.value * gain * (1 + 1e-9)
        assert reach("0", low, length=length).tokens == 0
        assert reach("0", high, length=length).tokens == length


def test_log_n_over_log_l_is_not_quite_enough():
    """The advantage log(L - 1) reaches all of L and fails at every longer row."""
    for length in (65, 100, 10**4, 10**12):
        needed = logit_scale("0", math.log(63), length=length).value
        assert (
            math.log(length) / math.log(64) < needed <= math.log(length - 1) / math.log(63) + 1e-9
        )


@pytest.mark.parametrize("bias, grows", [("-log(1+n)/2", 1), ("-2*log(1+n)", 2), ("-n/64", None)])
def test_what_a_whole_row_costs(bias, grows):
    small, large = (logit_scale(bias, 5, length=n).value for n in (10**4, 10**8))
    if grows is None:
        assert large / small > 1000  # a slope: no logarithm of the row pays it
    else:
        assert (large - small) * 5 / math.log(10**4) == pytest.approx(grows, abs=0.02)


def test_with_noise_the_mean_advantage_pays_the_price():
    found = logit_scale("-n/8", 9, length=256, distance=40, noise=1.5)
    price = price_of_distance("-n/8", 40, length=256).value
    assert found.label == "approximate"
    assert found.value * 9 - (found.value * 1.5) ** 2 / 2 == pytest.approx(price)
    rng, s = np.random.default_rng(0), found.value
    weights = np.exp(-np.delete(np.arange(256), 40) / 8)
    others = rng.normal(0, 1.5, (4000, 255))
    level = np.log((weights * np.exp(s * others)).sum(axis=1) / weights.sum())
    assert (s * 9 - level).mean() > price  # at least: Jensen
    assert (s * 9 - level).mean() < s * 9


def test_beyond_the_noise_no_scale_is_sure():
    sure = logit_scale("0", 6, length=10**6, noise=1)
    assert math.isfinite(sure.value) and 2 * math.log(10**6) < 36
    never = logit_scale("0", 5, length=10**6, noise=1)
    assert never.value == math.inf and never.reason.code == "never" and "12.5" in str(never.reason)


def test_heads_and_keys_without_a_price():
    found = logit_scale("alibi", 7, length=512)
    assert found.value == min(h.value for h in found.heads) and len(found.heads) == 8
    assert logit_scale("-n", 7, length=64, distance=0).value == 0
    assert logit_scale("window", 7, length=64, w=8).value == math.inf
    assert logit_scale("rope", 7, length=64).status == "out_of_scope"


@pytest.mark.parametrize("keys, part", [(64, 64), (1000, 1000), (64, 63), (65, 63), (10**6, 3)])
@pytest.mark.parametrize("gain", ["1e-20", "1e-400", "1", "1e300", "1e400"])
def test_a_certified_scale_holds_where_price_and_level_cancel(keys, part, gain):
    found = logit_scale("0", gain, length=keys, share=f"1/{part}")
    with precision(200):
        true = max(flint.arb(0), (flint.arb(keys - 1) / (part - 1)).log()) / flint.arb(gain)
    assert found.label == "certified" and found.enclosure[0] <= true <= found.enclosure[1]
    assert found.value is None or found.enclosure[0] <= found.value <= found.enclosure[1]
    assert (found.status == "enclosed") == (found.value is None)
    assert str(found)


@pytest.mark.parametrize("small", ["1e-200", "1e-400"])
def test_a_lead_as_small_as_the_noise_pays_half_a_nat(small):
    assert logit_scale("0", small, length=64, noise=small).value == math.inf
    assert logit_scale("0", small, length=2, noise=small, share="3/5").status != "infinite"


@pytest.mark.parametrize(
    "change, said",
    [
        ({"advantage": 0}, "positive"),
        ({"advantage": math.nan}, "advantage"),
        ({"noise": -1}, "noise -1 is out of range"),
        ({"share": 1}, "out of range"),
        ({"length": 0}, "length"),
        ({"distance": 64}, "outside a row"),
    ],
)
def test_bad_input_is_one_line(change, said):
    with pytest.raises(InputError, match=said) as error:
        logit_scale("-n", **({"advantage": 7, "length": 64} | change))
    assert "\n" not in str(error.value)
