"""Comparisons of biases with residue classes, each beside long-double tails of both series."""

import numpy as np
import pytest

from farfield import (
    compare_tails,
    encoding,
)
from farfield.theory.algebra.exceptions import Unreachable

PLAIN = 4000  # distances summed in long doubles; the last seven eighths serve only as the rest


def tails(text):
    """T_j/B, of a series that falls so fast that what lies beyond `PLAIN` is below rounding."""
    bias = encoding(text).bias(np.arange(PLAIN))[0].astype(np.longdouble)
    sums = np.cumsum(np.exp(bias)[::-1])[::-1]
    return sums[: PLAIN // 8] / sums[0]


EVEN = "where(n%2==0,-n/8,-inf)"
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
