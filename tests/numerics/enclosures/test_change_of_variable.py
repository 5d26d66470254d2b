"""Formulas in x = e^s, written so that nothing large has to cancel."""

import pytest
import sympy

from farfield.numerics.enclosures.change_of_variable import _spread, elementary, in_logarithm
from farfield.theory.formula.grammar import read
from farfield.theory.functions.nodes import n

FORMS = {
    "(n+1)*(n+2)": "exp(2*s) + 3*exp(s) + 2",
    "(n+2)^2": "exp(2*s) + 4*exp(s) + 4",
    "(n-1)^8-n^8+8*n^7-28*n^6+56*n^5-70*n^4+56*n^3-28*n^2+8*n": "1",  # powers up to 8
    "(n+2)^9": "expm1(9*log1p(2*exp(-s)))*exp(9*s) + exp(9*s)",
    "sqrt(n+2)": "expm1(log1p(2*exp(-s))/2)*exp(s/2) + exp(s/2)",
    "1/(n+1)": "expm1(-log1p(exp(-s)))*exp(-s) + exp(-s)",
    "sqrt(n)/n": "exp(-s/2)",
    "2^n": "exp(exp(s)*log(2))",
    "n^n": "exp(s*exp(s))",
    "exp(n+1/n)": "expm1(exp(-s))*exp(exp(s)) + exp(exp(s))",
    "exp(-log(n)/n)": "expm1(-s*exp(-s)) + 1",
    "exp(14/log(n))": "expm1(14/s) + 1",  # 14/64 is below e^-1.5, 15/64 is not
    "exp(15/log(n))": "exp(15/s)",
    "log(n+n*log(n)^2)": "s + log1p(s**(-2)) + 2*log(s)",
    "log(3*n/4)": "s - 2*log(2) + log(3)",
    "log(7*sqrt(2)*n)": "s + log(2)/2 + log(7)",
    "log(143*n)": "s + log(11) + log(13)",
    "log(1000000016000000063*n)": "s + log(1000000016000000063)",  # its factors are dear
    "log(3*exp(1/n))": "log(3) + exp(-s)",
    "log(exp(1/n)*(n+1))": "s + log1p(exp(-s)) + exp(-s)",
    "log(exp(1/n)*(log(n)-2))": "log1p(-2/s) + log(s) + exp(-s)",
    "exp(n+1/5)": "exp(exp(s) + 1/5)",
    "cos(1/n)": "cos_rest(exp(-s)) + 1",
    "n*sin(1/n)": "sin_rest(exp(-s))*exp(s) + 1",
    "cos(n)": "cos(exp(s))",
    "log(sin(1)*n)": "s + log(sin(1))",
    "log(n^2-n)": "2*s + log1p(-exp(-s))",
    "log(-n*(1-n))": "2*s + log1p(-exp(-s))",
    "log(sqrt(n+1))": "s/2 + log1p(exp(-s))/2",
    "log(n^n)": "s*exp(s)",
    "log(exp(n)*(n+1))": "s + log1p(exp(-s)) + exp(s)",
    "log(exp(n)+n)": "log1p(exp(s - exp(s))) + exp(s)",
    "log(exp(-n)+1)": "log1p(exp(-exp(s)))",
    "log(2-1/n)": "log1p(-exp(-s)/2) + log(2)",
    "log(log(n)*log(n+1))": "log1p(log1p(exp(-s))/s) + 2*log(s)",
}


@pytest.mark.parametrize("text", FORMS)
def test_a_formula_in_the_logarithm_has_its_largest_terms_apart(text):
    x, s = sympy.symbols("x s", positive=True)
    assert str(in_logarithm(elementary(read(text)).xreplace({n: x}), x, s)) == FORMS[text]


@pytest.mark.parametrize(("terms", "wide"), [(60, True), (61, False)])
def test_a_product_of_too_many_terms_stays_one(terms, wide):
    product = sympy.Mul(sympy.Symbol("x"), sympy.Add(*sympy.symbols(f"y:{terms}")))
    assert _spread(product).is_Add is wide
