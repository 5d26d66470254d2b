import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from farfield.theory.answers.answer import InputError
from farfield.validation.repeated import rank_correlation

FINITE = st.floats(-100, 100).map(lambda x: round(x, 3))


@pytest.mark.parametrize("n", [3, 5, 6])
def test_the_p_value_counts_permutations(n):
    random = np.random.default_rng(n)
    a, b = random.normal(size=(2, n))
    found = rank_correlation(a, b, resamples=200)
    rho = stats.spearmanr(a, b).statistic
    every = [
        stats.spearmanr(a, [b[k] for k in p]).statistic for p in itertools.permutations(range(n))
    ]
    assert found.rho == pytest.approx(rho)
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
        (lambda: rank_correlation([1, 2], [1, 2, 3]), "same length"),
        (lambda: rank_correlation([1, 2], [1, 2]), "at least 3"),
        (lambda: rank_correlation([1, 1, 1], [1, 2, 3]), "constant list"),
        (lambda: rank_correlation([1, math.nan, 3], [1, 2, 3]), "no number"),
    ],
)
def test_samples_without_an_answer(call, message):
    with pytest.raises(InputError, match=message):
        call()
