"""Exact shares: those of the sums, of every series that telescopes, and of no other."""

import pytest
from flint import arb, fmpq

from farfield.numerics.summation.series import series
from farfield.numerics.summation.telescoping import MAX_FACTORS, share
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import precision, to_arb

TELESCOPING = [
    "-log(n+1)-log(n+2)",
    "-log(n+1)-log(n+3)",
    "-n*log(3)",
    "-log(n+1)-log(n+2)-log(n+3)",
    "log(n+1)-n*log(2)-log(n+2)-log(n+1)+log(n+2)",
    "-log(4*(n+1)**2-1)",
    "log(n+1)-log(2)*n",
    "loggamma(n+1)-loggamma(n+7/2)",
    "log(n+1)-log(2)*n-log(1)",
    "log(2*n+3)-2*log(n+1)-2*log(n+2)",
]
OTHERS = [
    "-2*log(n+1)",
    "-n",
    "-n**2",
    "-log(n+1)-log(n+5/2)-log(n+1/3)",
    "-log(n+1)+sin(n)",
    "-loggamma(n+1)",
    "-sqrt(n)",
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", TELESCOPING)
def test_shares_are_those_of_the_sums(text):
    exact, s = share(read(text)), series(read(text))
    assert exact is not None and exact(0) == 1
    before = fmpq(1)
    with precision(192):
        for j in (1, 2, 3, 10, 57):
            found = exact(j)
            assert isinstance(found, fmpq) and 0 < found < before
            assert (to_arb(s.tail(j)) / to_arb(s.total())).overlaps(arb(found)), j
            before = found


@pytest.mark.parametrize("text", TELESCOPING)
def test_terms_are_differences_of_shares(text):
    """T_j - T_{j+1} = b_j: their quotients are those of the terms."""
    exact, bias = share(read(text)), read(text)
    s = series(bias)
    with precision(192):
        for j in (0, 1, 5):
            quotient = (exact(j + 1) - exact(j + 2)) / (exact(j) - exact(j + 1))
            assert (to_arb(s.term(j + 1)) / to_arb(s.term(j))).overlaps(arb(quotient))


@pytest.mark.parametrize("text", OTHERS)
def test_what_does_not_telescope_has_no_share(text):
    assert share(read(text)) is None


def test_products_have_an_end():
    exact = share(read("log(n+1)-log(2)*n"))
    assert exact(MAX_FACTORS + 1) is None and exact(10) is not None
