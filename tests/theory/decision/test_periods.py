"""Periodic parts of any length, and what is said of the rate of terms that swing."""

import pytest
from proof_checker.checker import check_proof

from farfield.theory.convergence import check_convergence

LONG = [
    ("-Mod(n,64)", "diverges"),
    ("-n+Mod(n,64)", "converges"),
    ("sin(n*pi/7)*sin(n*pi/5)", "diverges"),
    ("-n/8+sin(n*pi/7)*sin(n*pi/11)", "converges"),
    ("-log(1+n)-Mod(n,100)/100", "diverges"),
    ("-2*log(1+n)+Mod(n,64)", "converges"),
    ("(-1)^n*Mod(n,64)", "diverges"),
    ("Mod(n,10^9)", "diverges"),
    ("-n*(1+Mod(n,64))", "converges"),
    ("-n*Mod(n,64)", "diverges"),  # by its residue class 0
    ("-Mod(n,64)*log(1+n)", "diverges"),
    ("-(1+Mod(n,64))*log(1+n)", "diverges"),
    ("-(11/10+Mod(n,64))*log(1+n)", "converges"),
    ("sqrt(Mod(n,51))-n^(1/2)", "converges"),
    # the least exponent on the integers is above 1, that on the reals below
    ("-log(1+n)*(2+1001/1000*sin(pi*n/31))", "converges"),
    ("-log(1+n)*(2+11/10*sin(pi*n/101))", "diverges"),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("formula", "verdict"), LONG)
def test_a_long_period_is_decided(formula, verdict):
    found = check_convergence(formula, budget_s=60)
    assert found.verdict == verdict
    check_proof(found)  # raises where a step is false


def test_a_bounded_bias_beside_a_parameter():
    assert str(check_convergence("-a*log(1+n)-Mod(n,64)").condition) == "a > 1"


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("-log(1+n)*(1+sin(n)/2)", ""),
        ("-log(1+n)*(1+sin(n))", ""),
        ("-log(1+n)*(3/2+sin(n))", ""),
        ("-log(1+n)*(2+9/10*sin(n))", ""),
        ("cos(n)+cos(2*n)", ""),
        ("rope_surrogate", ""),
        ("(-1)^n*Mod(n,64)", ""),
        ("-2*log(1+n)+sin(n)", "about like 1/n^2"),  # up to bounded factors
        ("-n*(1+sin(n)/2)", "faster than any power"),
        ("-2*log(1+n)", "about like 1/n^2"),
        ("-sqrt(log(1+n))", "more slowly than any power"),
    ],
)
def test_a_rate_is_told_of_terms_not_of_a_bound(formula, said):
    sentence = check_convergence(formula).text(unicode=False).split("p(n)")[0]
    assert ("its terms" in sentence) == bool(said) and said in sentence
