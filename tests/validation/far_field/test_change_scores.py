"""The rule of advice: right answers decide, by sign tests, and no near band may be lost."""

import itertools
import math

import pytest
from scipy.stats import binom

from farfield.validation.far_field.change_scores import (
    advised,
    lost,
    order,
    pairs,
    share,
)
from farfield.validation.far_field.recall import NeedleScore, bands

TRAINED, TO = 8192, 16384


def needles(*counts):
    """Right answers of three bands: (right, asked) at 1,000, 5,000 and 12,000 tokens."""
    return [
        NeedleScore("code", distance, -0.1 if k < right else -9.0, k < right, -5.0, k % 4)
        for distance, (right, asked) in zip((1000, 5000, 12000), counts, strict=True)
        for k in range(asked)
    ]


def test_bands_hold_each_distance_once():
    for trained, to in ((8192, 16384), (64, 256), (512, 512), (100, 50)):
        near = bands(trained, to)
        assert (near[0].low, near[-1].high) == (0, to)
        assert all(a.high == b.low for a, b in itertools.pairwise(near))
        assert [band.trained for band in near] == [band.high <= trained for band in near]


def test_log_probabilities_of_wrong_answers_decide_nothing():
    """A setting that lifts 33 wrong answers and loses near ones does not beat the cut text."""
    cut = needles((13, 18), (10, 22), (0, 32))
    lifted = needles((6, 18), (10, 22), (11, 32))
    lifted = [n if n.right else n._replace(log_probability=-4.9) for n in lifted]
    assert order(lifted) > order(cut) and not advised(lifted, cut, TRAINED, TO)
    below = [n._replace(log_probability=n.log_probability - 9) for n in cut if not n.right]
    assert order(below) == (0, 0.0)


def test_a_near_band_that_is_lost_forbids_what_is_gained_beyond():
    cut, far = needles((12, 12), (6, 12), (0, 40)), needles((4, 12), (6, 12), (38, 40))
    assert pairs(far, cut).better and lost(far, cut, TRAINED, TO).high == 2048
    assert not advised(far, cut, TRAINED, TO)
    kept = needles((12, 12), (6, 12), (38, 40))
    assert advised(kept, cut, TRAINED, TO) and not advised(cut, kept, TRAINED, TO)


def test_losses_of_both_near_bands_are_added():
    """Four needles in each are no proof, eight in both are."""
    cut, other = needles((4, 4), (4, 4), (0, 40)), needles((0, 4), (0, 4), (40, 40))
    near = bands(TRAINED, TO)[:2]
    assert not any(pairs(b.of(cut), b.of(other)).better for b in near)
    assert lost(other, cut, TRAINED, TO).high == TRAINED


@pytest.mark.parametrize(("first", "second"), [(0, 0), (5, 0), (6, 0), (17, 5), (12, 16), (30, 14)])
def test_the_sign_test_is_twice_the_tail_of_fair_coins(first, second):
    one = needles((first, first + second), (0, 0), (0, 0))
    other = [n._replace(right=not n.right) for n in one]
    found, each = pairs(one, other), first + second
    tail = min(1.0, 2 * binom.cdf(min(first, second), each, 0.5)) if each else 1.0
    assert (found.first, found.second) == (first, second)
    assert found.p == pytest.approx(tail) and found.better == (first > second and tail < 0.05)


def test_intervals_of_shares_are_wilson_and_grow_where_rows_differ():
    """Wilson's ends solve (p - x)^2 = z^2 x (1 - x) / n."""
    same = [NeedleScore("pet", 9, -1.0, k % 4 == 0, row=k // 4) for k in range(24)]
    found, p = share(same), 6 / 24
    for end in (found.low, found.high):
        assert (p - end) ** 2 == pytest.approx(1.959964**2 * end * (1 - end) / 24, rel=1e-5)
    apart = [n._replace(right=n.row == 0) for n in same]
    apart = [n._replace(right=n.right or (n.row == 1 and k % 2 == 0)) for k, n in enumerate(apart)]
    wide = share(apart)
    assert wide.right == 6 and wide.high - wide.low > 1.5 * (found.high - found.low)
    assert share([]) is None and share(same[:1]).high == pytest.approx(1, abs=0.3)
    assert not math.isnan(share([n._replace(right=False) for n in same]).high)
