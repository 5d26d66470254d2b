"""Which biases are seen to be bounded above."""

import pytest
from sympy import Integer

from farfield.theory.decision.engine import bounded_above
from farfield.theory.formula.grammar import read


@pytest.mark.parametrize(
    ("text", "bounded"),
    [
        ("-sqrt(n)", True),
        ("0", True),
        ("cos(n) + sin(3*n) - log(1+n)", True),
        ("log(1+n)", False),
        ("-log(n+2)*log(log(n+2))", True),
        ("-(2+sin(n))*log(n+1)", True),
        ("-(1+2*sin(n))*log(n+1)", False),
        ("-log(n+1)+Max(3,-n)", True),
        ("where(n<3,n,-oo)", True),
        ("-1/2*log(n)+log(log(n))", True),
        ("-Abs(sin(n))*n", True),
        ("1-Abs(sin(n))*n", False),  # which is not seen
        ("n^(1/4)-log(n)", False),
        ("-Piecewise((log(n+1),Eq(Mod(n,3),1)),(n,True))", True),
        ("Piecewise((log(n+1),Eq(Mod(n,3),1)),(-n,True))", False),
        ("n*cos(n)", False),
        ("n^sin(n)", False),
        ("-n*Max(3,Abs(sin(n)))", True),
        ("cos(n)*(2/7)^(n/512)", True),
        ("cos(n)*(7/2)^(n/512)", False),
        ("-n*cos(n)", False),
        ("-log(n+3)*log(log(n+3))", True),
    ],
)
def test_bounded_above(text, bounded):
    assert bounded_above(read(text) if "n" in text else Integer(0)) is bounded
