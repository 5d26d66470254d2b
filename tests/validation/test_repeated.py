import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from farfield.theory.answers.answer import InputError
from farfield.validation.repeated import paired_test, rank_correlation

FINITE = st.floats(-100, 100).map(lambda x: round(x, 3))


@settings(max_examples=30)
@given(st.lists(st.tuples(FINITE, FINITE), min_size=3, max_size=12))
def test_a_paired_test_is_a_test_of_the_differences(pairs):
    a, b = map(np.array, zip(*pairs, strict=True))
    found, turned = paired_test(a, b), paired_test(b, a)
    assert found.p == pytest.approx(turned.p) and found.difference == -turned.difference
    d = a - b
    if d.std() > 1e-6:
        t = d.mean() / (d.std(ddof=1) / math.sqrt(len(d)))
        assert found.t == pytest.approx(t)
        assert found.p == pytest.approx(2 * stats.t.sf(abs(t), len(d) - 1))
        assert found.low <= found.difference <= found.high
        assert (found.low > 0 or found.high < 0) == (found.p < 0.05) or found.p == pytest.approx(
            0.05
        )
        assert found.effect == pytest.approx(
            d.mean() / d.std(ddof=1) * (1 - 3 / (4 * (len(d) - 1) - 1))
        )


def test_differences_that_do_not_vary():
    same, shifted = paired_test([1, 2, 3], [1, 2, 3]), paired_test([2, 3, 4], [1, 2, 3])
    assert (same.p, same.t, same.effect) == (1.0, 0.0, None) and not same.significant
    assert (shifted.p, shifted.difference) == (0.0, 1.0) and shifted.t == math.inf


def test_five_seeds():
    """Values with a known answer: t = sqrt(5) * mean / deviation over four degrees."""
    found = paired_test([1.0, 2.0, 3.0, 4.0, 5.0], [0.0] * 5)
    assert found.t == pytest.approx(3 / math.sqrt(2.5 / 5))
    assert found.significant and found.n == 5


@pytest.mark.parametrize("n", [3, 5, 6])
def test_the_p_value_counts_permutations(n):
    random = np.random.default_rng(n)
    a, b = random.normal(size=(2, n))
    found = rank_correlation(a, b, resamples=200)
    rho = stats.spearmanr(a, b).statistic
    every = [
        stats.spearmanr(a, [b[k] for k in p]).statistic for p in itertools.permutations(range(n))
    ]
    assert found.rho == pytest.approx(rho) and found.exact
    two_sided = 2 * min(
        np.mean(np.array(every) >= rho - 1e-9), np.mean(np.array(every) <= rho + 1e-9)
    )
    assert found.p == pytest.approx(min(1, two_sided), abs=1e-6)


def test_the_smallest_p_of_five_encodings():
    """All in order, n = 5: two of 120 permutations are as extreme."""
    assert rank_correlation(range(5), range(5)).p == pytest.approx(2 / 120)


@settings(max_examples=15)
@given(st.lists(st.tuples(FINITE, FINITE), min_size=9, max_size=15))
def test_rank_correlations_ask_for_the_order_only(pairs):
    a, b = map(np.array, zip(*pairs, strict=True))
    if len(set(a)) < 3 or len(set(b)) < 3:
        return
    found = rank_correlation(a, b, resamples=100)
    again = rank_correlation(np.exp(a / 50), b, resamples=100)
    assert found == again
    assert found.tau == pytest.approx(stats.kendalltau(a, b).statistic)
    assert -1 <= found.rho_low <= found.rho_high <= 1
    turned = rank_correlation(-a, b, resamples=100)
    assert turned.rho == pytest.approx(-found.rho)


def test_infinite_values_have_ranks():
    assert rank_correlation([1, 2, math.inf], [1, 2, 3]).rho == pytest.approx(1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: paired_test([1], [1]), "at least 2"),
        (lambda: paired_test([1, 2], [1, 2, 3]), "same length"),
        (lambda: paired_test([1, math.inf], [1, 2]), "sample value inf"),
        (lambda: rank_correlation([1, 2], [1, 2]), "at least 3"),
        (lambda: rank_correlation([1, 1, 1], [1, 2, 3]), "constant list"),
        (lambda: paired_test([1, math.nan], [1, 2]), "sample value nan"),
    ],
)
def test_samples_without_an_answer(call, message):
    with pytest.raises(InputError, match=message):
        call()
