"""Biases with a formula of its own in each residue class, masked ones among them: known values, and
comparisons beside long-double tails of both series."""

from fractions import Fraction

import numpy as np
import pytest

from farfield import compare_tails, encoding, theoretical_receptive_field
from farfield.numerics.levels import merged
from farfield.theory.algebra.exceptions import Unreachable

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


PLAIN = 4000  # distances summed in long doubles; the last seven eighths serve only as the rest


def tails(text):
    """T_j/B, of a series that falls so fast that what lies beyond `PLAIN` is below rounding."""
    bias = encoding(text).bias(np.arange(PLAIN))[0].astype(np.longdouble)
    sums = np.cumsum(np.exp(bias)[::-1])[::-1]
    return sums[: PLAIN // 8] / sums[0]


PAIRS = [
    ("-2*n", "-n/9+where(Mod(n,2)==0,1,0)", "a"),
    ("Piecewise((-n,Eq(Mod(n,2),0)),(-2*n-1,True))", "-3*n", "b"),
    (EVEN, "-n/8", "a"),
    ("-n/8", EVEN, "b"),
    (EVEN, "-n/9", "a"),
    (EVEN, "-n/5", "b"),
    (EVEN, "where(cos(pi*n)>0,-n/8+1,-inf)", "neither"),
    (EVEN, "where((n%2==1)|(n==0),-n/8,-inf)", None),
    ("where(n%2==0,-n/2,-n)", "where(n%2==0,-n,-n/2)", None),
    ("where(n%2==0,-n/2,-n)", "where(n%2==0,-n,-n/3)", "a"),
    ("-n**2+where(n%2==0,1,0)", "-n**2", None),
    ("where(n%3==1,-inf,-n/9)", "where(n%2==0,-n/9,-n/6-1)", "b"),
    ("where(n%4==0,-n/20,-inf)", "max(-n/2,-n/20-2)+where(n%3==0,1,0)", "b"),
    ("where(n<9,0,where(n%2==0,-n/8,-inf))", "-n/8", "a"),
]


@pytest.mark.parametrize(("a", "b", "lighter"), PAIRS)
def test_the_lighter_tail_is_the_smaller_one_in_the_end(a, b, lighter):
    found = compare_tails(a, b)
    assert (found.lighter, found.status) == (lighter, "exact")
    u, v = tails(a), tails(b)
    apart = np.abs(u - v) > 1e-15 * np.maximum(u, v)
    far = np.flatnonzero(apart)[-8:]
    sides = {"a" if u[j] < v[j] else "b" for j in far}
    assert sides == ({"a", "b"} if lighter is None else {lighter} - {"neither"})
    if lighter in ("a", "b") and found.reason is None:
        light, heavy = (u, v) if lighter == "a" else (v, u)
        above = np.flatnonzero(apart & (light > heavy))
        assert (above[-1] if len(above) else None) == found.index
        assert found.crossover == pytest.approx(float(heavy[above].min()) if len(above) else 1.0)


def test_classes_that_disagree_are_named():
    said = str(compare_tails("where(n%2==0,-n/2,-n)", "where(n%2==0,-n,-n/2)").reason)
    assert "smaller for a at j = 1, smaller for b at j = 0" in said


@pytest.mark.parametrize(
    ("a", "b", "lighter"),
    [
        ("-2*n", "-3*log(1+n)+where(Mod(n,2)==0,1,0)", "a"),
        ("where(n%2==0,-2*log(1+n),-inf)", "-2*log(1+n)", "a"),
        ("-3*log(1+n)", "-2*log(1+n)+where(Mod(n,3)==0,1,-2)", "a"),
    ],
)
def test_power_laws_with_classes(a, b, lighter):
    assert (compare_tails(a, b).lighter, compare_tails(b, a).lighter) == (lighter, "b")


def test_windows_of_one_length_have_equal_fields_for_small_shares_alone():
    found = compare_tails("where(n<10,-n/8,-inf)", "where(n<10,0,-inf)")
    assert found.lighter == "neither" and found.reason.code == "bounded_support"


def unsummed(*series):
    raise Unreachable("seeded")


def test_a_tail_that_vanishes_beside_another_needs_no_sum_of_either(monkeypatch):
    monkeypatch.setattr("farfield.numerics.comparison._ratio", unsummed)
    assert compare_tails("-n", "-2*log(1+n)").lighter == "a"


def test_tails_of_one_order_whose_sums_are_not_known_are_not_compared(monkeypatch):
    monkeypatch.setattr("farfield.numerics.comparison._ratio", unsummed)
    answer = compare_tails("-2*log(1+n)", "-2*log(2+n)")
    assert (answer.status, answer.reason.code) == ("unknown", "no_enclosure")
