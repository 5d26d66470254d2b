"""Biases with a formula of its own in each residue class, masked ones among them: known values."""

from fractions import Fraction

import numpy as np
import pytest

from farfield.numerics.levels import merged
from farfield.numerics.receptive_field import theoretical_receptive_field

EVEN = "where(n%2==0,-n/8,-inf)"  # ratio q = e^(-1/4) on the even distances


@pytest.mark.parametrize("far", [10, 10**30])
def test_intervals_of_classes_are_those_of_their_distances(far):
    runs = [
        range(0, 4 * far, 2),
        range(1, 2 * far, 4),
        range(3, 2 * far, 4),
        range(4 * far, 5 * far),
    ]
    end = 2 * far
    want = [(0, end), *((end + 2 * k, end + 2 * k) for k in (1, 2, 3))]
    assert merged(runs, 4) == want


@pytest.mark.parametrize("slope", [1, 8, 64])
@pytest.mark.parametrize("exact, last", [(16, 128), (8, 64), (32, 512)])
def test_buckets_beside_a_slope_settle_on_the_last_one(exact, last, slope):
    """T5's buckets with ALiBi, as people write them: each distance by hand, in integers."""
    text = (
        f"-where(n<{exact},n,min({exact}+floor(log(max(n,1)/{exact})/log({last}/{exact})*{exact}),"
        f"{2 * exact - 1}))/{slope}-n/512"
    )

    def bucket(k):  # floor(log(k/e)/log(l/e) e) is the most s with (l/e)^s <= (k/e)^e
        if k < exact:
            return k
        steps = range(exact)
        return exact + max(s for s in steps if (last // exact) ** s * exact**exact <= k**exact)

    weights = np.exp([-bucket(k) / slope - k / 512 for k in range(3 * last)])
    weights = np.append(
        weights, np.exp(-(2 * exact - 1) / slope - np.arange(3 * last, 25000) / 512)
    )
    tails = weights[::-1].cumsum()[::-1]
    for eps in ("1/10", "1/100"):
        found = theoretical_receptive_field(text, eps)
        assert found.tokens == np.flatnonzero(tails < float(Fraction(eps)) * tails[0])[0]
        assert found.label == "certified"
