"""Limits of differences of biases: those of calculus, antisymmetric, None where there is none."""

import pytest
import sympy

from farfield.theory.decision.differences import limit_of_difference
from farfield.theory.formula.grammar import read
from farfield.theory.functions.nodes import n
from farfield.theory.values import enclose

LOG1P = "log(1+n)-log(n)-1/n+1/(2*n^2)-1/(3*n^3)+1/(4*n^4)"
PAIRS = [
    ("-2*log(1+n)", "-2*log(3+n)", "0"),
    ("-n/256", "-2*log(1+n)", "-oo"),
    ("-2*log(n+1)", "-2*log(2*n+1)", "2*log(2)"),
    ("-sqrt(n**2+n)", "-n", "-1/2"),
    ("-log(n+1)**2", "-log(n+1)*log(log(n+3))", "-oo"),
    ("-loggamma(n+1)", "-n*log(n+1)+n", "-oo"),
    ("-loggamma(n+1)-log(n+1)/2", "-(n+1)*log(n+1)+n", "1-log(2*pi)/2"),
    ("-n*(1+1/n)**n", "-e*n", "e/2"),
    ("-harmonic(n)", "-log(n+1)", "-EulerGamma"),
    ("-n-sin(n)/(n+1)", "-n", "0"),
    (f"-n^5*({LOG1P})", "0*n", "-1/5"),  # in the fifth term
]


@pytest.mark.parametrize(("p", "q", "limit"), PAIRS)
def test_limits(p, q, limit):
    found, back = limit_of_difference(read(p), read(q)), limit_of_difference(read(q), read(p))
    wanted = sympy.S.NegativeInfinity if limit == "-oo" else read(limit)
    if wanted.is_infinite:
        assert (found, back) == (wanted, -wanted)
    else:
        assert enclose(found - wanted, 128).contains(0) and enclose(back + wanted, 128).contains(0)
        assert abs(enclose(read(p) - read(q) - wanted, 400, {n: 10**9})) < 1e-6


def test_masks_are_lighter_than_anything():
    masked = read("Piecewise((-n,n<9),(-oo,True))")
    assert limit_of_difference(masked, read("-exp(n)")) is sympy.S.NegativeInfinity
    assert limit_of_difference(read("-exp(n)"), masked) is sympy.S.Infinity
    assert limit_of_difference(masked, masked) is None


@pytest.mark.parametrize(
    ("p", "given"), [("-n+sin(n)", {}), ("-n*(2+sin(n))", {}), ("-a*log(n+1)-n", {"a": "real"})]
)
def test_no_limit_is_none(p, given):
    assert limit_of_difference(read(p, given), read("-n")) is None
