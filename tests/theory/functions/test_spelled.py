"""Functions that are read as others: beta, E_1, incomplete gamma functions; W at a known point."""

import numpy as np
import pytest
import scipy.special
import sympy

from farfield import check_convergence, encoding
from farfield.theory.functions.nodes import n
from farfield.theory.values import enclose

AT = np.arange(1, 9)
SPELLED = {
    "beta(n,{a})": lambda x, a: scipy.special.beta(x, a),
    "beta({a},n+1/3)": lambda x, a: scipy.special.beta(a, x + 1 / 3),
    "gammainc({a},n)": lambda x, a: scipy.special.gammainc(a, x),
    "gammaincc({a},n/2)": lambda x, a: scipy.special.gammaincc(a, x / 2),
    "gammainc(1/2,n*{a})": lambda x, a: scipy.special.gammainc(0.5, x * a),
    "gammaincc(1/2,n)": lambda x, a: scipy.special.gammaincc(0.5, x),
}


@pytest.mark.parametrize("a", [1, 2, 3, 7])
@pytest.mark.parametrize("text", SPELLED)
def test_the_values_are_those_of_scipy(text, a):
    """By balls: the table is compared with them elsewhere."""
    formula = encoding(f"-{text.format(a=a)}").head(1)
    found = [-float(enclose(formula, 128, {n: int(x)}).mid()) for x in AT]
    assert np.allclose(found, SPELLED[text](AT, a), rtol=1e-11, atol=0)


@pytest.mark.parametrize(
    "text, verdict",
    [
        ("log(beta(n+1,2))", "converges"),
        ("log(beta(n+1,1/2))", "diverges"),
        ("2*log(beta(n+1,1/2))-log(log(n+2))^2", "converges"),
        ("log(gammaincc(3,n))", "converges"),
        ("-n*gammainc(1/2,n)", "converges"),
        ("-beta(n+1,2)", "diverges"),
    ],
)
def test_their_series_are_decided(text, verdict):
    assert check_convergence(text).verdict == verdict


@pytest.mark.parametrize("x", ["-1", "-1/2", "-3/7", "2", "1/3", "5/2"])
def test_lambert_w_of_x_exp_x_is_x(x):
    """At -1/e, where W ends, no ball decides that."""
    assert encoding(f"n*LambertW(({x})*e^({x}))").head(1) == n * sympy.Rational(x)
    assert encoding(f"n-LambertW({x}*exp({x}))").head(1) == n - sympy.Rational(x)


@pytest.mark.parametrize("k", [9_999, 10_001, 10**9, 7 * 10**30])
def test_a_root_of_any_order_is_read(k):
    assert check_convergence(f"-log(n+1)*2^(1/{k})").verdict == "converges"
    assert check_convergence(f"-log(n+1)*(2^(1/{k})*3^(1/{k})-6^(1/{k})+1)").verdict == "diverges"
    assert encoding(f"-n*2^(1/{k})").bias([3])[0, 0] == pytest.approx(-3 * 2 ** (1 / k), rel=1e-15)


@pytest.mark.parametrize(
    "text, said",
    [
        ("expint(2,n+1)", "left out: no published encoding has one"),
        ("gammainc(n,2)", "needs an order that is 1/2 or an integer from 1 to 20"),
        ("gammaincc(1/3,n)", "needs an order that is 1/2"),
        ("gammainc(21,n)", "from 1 to 20"),
        ("beta(n,1,2)", r"beta takes 2 argument\(s\), 3 given"),
        ("n*LambertW(-2/5)", "is not a finite real number"),
        ("n*2^10^9", "more than 12000 bits"),
    ],
)
def test_what_has_no_identity_is_refused(refusal, text, said):
    refusal(said, encoding, text)


@pytest.mark.parametrize("text", ["-beta*(1+n)", "-beta(1+n)", "-β(1+n)", r"-\beta(1+n)"])
def test_a_letter_beta_before_a_bracket_stays_a_parameter(text):
    assert encoding(text).formula == encoding("-beta*(n+1)").formula
