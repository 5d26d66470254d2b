"""The rule of advice: right answers decide, by sign tests, and no near band may be lost."""

import itertools
import math

import pytest
from scipy.stats import binom

from farfield.validation.far_field.change_scores import (
    Mended,
    advised,
    holds,
    lost,
    order,
    paired,
    pairs,
    rank,
    same,
    share,
    shown_below,
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


def on_wilson(found, p, worth):
    """Whether the ends solve (p - x)^2 = z^2 x (1 - x) / n."""
    for end in (found.low, found.high):
        assert (p - end) ** 2 == pytest.approx(1.959964**2 * end * (1 - end) / worth, rel=1e-5)
    assert found.low < p < found.high


def test_intervals_of_shares_are_wilson_and_grow_where_rows_differ():
    """Of six rows of four needles, one is right in each, or 4, 2 and none; or all are of one row.
    The variance over rows is 1.2 (3^2 + 1 + 4) / 24^2, that of chance p (1 - p) / 24."""
    equal = [NeedleScore("pet", 9, -1.0, k % 4 == 0, row=k // 4) for k in range(24)]
    on_wilson(share(equal), 6 / 24, 24)
    on_wilson(share([n._replace(row=0) for n in equal]), 6 / 24, 24)
    apart = [n._replace(right=k < 4 or k in (4, 5)) for k, n in enumerate(equal)]
    assert share(apart).right == 6
    on_wilson(share(apart), 6 / 24, 24 * (0.1875 / 24) / (1.2 * 14 / 24**2))
    assert share([]) is None
    for count in range(1, 60):
        for right in (True, False):
            found = share([n._replace(right=right) for n in equal * 3][:count])
            assert (found.right, found.asked) == (count * right, count)
            assert 0 <= found.low < found.high <= 1
            assert (found.high == pytest.approx(1)) == right == (found.low > 1e-9)


def mended(difference=None, rows=2, log_ratio=0.3, name="x", **more):
    return Mended(name, log_ratio, None, None, 9, 1.0, difference=difference, rows=rows, **more)


def test_what_was_read_comes_first_then_right_answers_or_the_loss():
    scores = tuple(needles((1, 2), (1, 1), (1, 1)))
    gain = sum(score.gain for score in scores)
    assert gain == pytest.approx(3 * 4.9)
    for row, by_recall, expected in (
        (mended(rows=0), False, (2, 0.3, 0)),
        (mended(rows=0, log_ratio=None), False, (2, math.inf, 0)),
        (mended(), False, (0, 0, 0)),
        (mended(rows=1), True, (0, 0, 0)),
        (mended((-0.2, None)), False, (0, -0.2, 0)),
        (mended((0.2, 0.1), recall=scores), False, (0, 0.2, 0)),
        (mended((0.1, 0.1), recall=scores), True, (0, -0.75, -gain)),
        (mended((0.101, 0.1), real=scores), True, (1, -0.75, -gain)),
        (mended(rows=0, recall=scores), True, (0, -0.75, -gain)),
    ):
        assert rank(row, by_recall) == expected


def test_what_is_measured_stands_before_what_is_foreseen():
    near, far = needles((1, 1), (0, 0), (0, 0)), needles((0, 0), (0, 0), (1, 1))
    both = mended(recall=tuple(near), real=tuple(far), measured=(0.7, None), name="text cut to 9")
    assert (both.needles, both.loss, both.cuts) == (tuple(far), 0.7, True)
    said = mended(recall=tuple(near))
    assert (said.needles, said.loss, said.cuts, said.dear) == (tuple(near), 0.3, False, False)


def test_needles_of_rows_that_both_were_read_with_are_compared():
    one = mended(recall=tuple(needles((4, 4), (4, 4), (4, 4))))
    other = mended(recall=tuple(n for n in needles((2, 4), (2, 4), (2, 4)) if n.row))
    assert [{n.row for n in each} for each in same(one, other)] == [{1, 2, 3}] * 2
    assert (paired(one, other).first, paired(other, one).first) == (6, 0)


@pytest.mark.parametrize(
    ("difference", "below"),
    [(None, False), ((-9.0, None), False), ((-0.1, 0.1), False), ((-0.1, 0.09), True)],
)
def test_an_interval_below_zero_shows_that_a_change_helps(difference, below):
    assert shown_below(difference) is below


def test_a_model_holds_by_its_loss_and_by_the_needles_of_every_band():
    whole, cut = needles((12, 12), (12, 12), (0, 40)), needles((12, 12), (12, 12), (0, 40))
    for difference, held in ((0.05, True), (0.051, False), (None, False)):
        own = mended(difference and (difference, 0.1), recall=tuple(whole))
        assert holds(own, mended(recall=tuple(cut)), TRAINED, TO) is held
    for own, other in (
        (needles((12, 12), (12, 12), (0, 40)), needles((12, 12), (12, 12), (30, 40))),
        (needles((2, 12), (12, 12), (30, 40)), needles((12, 12), (12, 12), (0, 40))),
    ):
        one, two = (mended((0.0, 0.1), recall=tuple(each)) for each in (own, other))
        assert not holds(one, two, TRAINED, TO)
        assert holds(two, two, TRAINED, TO)
