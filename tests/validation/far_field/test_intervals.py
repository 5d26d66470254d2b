"""Laws of intervals for text not read: they cover what is exchangeable, and grow as they should."""

import math

import numpy as np
import pytest

from farfield.validation.far_field.intervals import (
    Residual,
    around,
    elsewhere,
    radius,
    residuals,
)


@pytest.mark.parametrize("share", (0.5, 0.8, 0.9))
def test_intervals_cover_what_is_exchangeable(share):
    """Exactly: the new score is within the radius with probability ceil(share (n+1)) / (n+1)."""
    random, n, trials = np.random.default_rng(0), 19, 4000
    scores = random.standard_cauchy((trials, n + 1))
    inside = [abs(row[-1]) <= radius(row[:-1], share) for row in scores]
    exact = math.ceil(share * (n + 1)) / (n + 1)
    assert np.mean(inside) == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / trials))


def test_too_few_scores_bound_nothing():
    assert radius([0.1] * 8, 0.9) == math.inf and radius([0.1] * 9, 0.9) == 0.1
    assert around(1.0, [], 0.9) == (-math.inf, math.inf)


def test_an_interval_is_the_inverse_of_a_score():
    """A model is inside its interval just if its score is within the radius."""
    scores = [0.1, -0.25, 0.3]
    for measured in np.linspace(-1, 3, 41):
        low, high = around(0.8, scores, 0.75)
        inside = abs(Residual("x", 16, 0.8, measured).score) <= radius(scores, 0.75) + 1e-12
        assert inside == (low - 1e-12 <= measured <= high + 1e-12)
    assert Residual("x", 16, 0.0, 0.1).score == Residual("x", 16, -0.4, 0.1).score == 1


@pytest.mark.parametrize(
    ("times", "nearest"), [(2, 16), (16, 16), (31, 16), (33, 64), (64, 64), (900, 64)]
)
def test_intervals_are_those_of_the_nearest_length_by_ratios(times, nearest):
    scores = [x.score for x in residuals() if x.times == nearest]
    for said in (0.3, 1.0):
        assert elsewhere(said, times) == around(said, scores, 0.9)
        assert elsewhere(said, times, 0.5) == around(said, scores, 0.5)


def test_intervals_hold_on_families_that_are_left_out():
    """What the page promises, of the table that is used."""
    inside = []
    for x in residuals():
        others = [y.score for y in residuals() if y.family != x.family and y.times == x.times]
        low, high = around(x.said, others)
        inside.append(low <= x.measured <= high)
    assert len(inside) >= 36 and 0.85 <= np.mean(inside) <= 1
