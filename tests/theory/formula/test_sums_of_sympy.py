"""Sums of SymPy expressions mean what SymPy means, also where their bounds are reversed; in text,
such a sum is empty."""

import pytest
import sympy
from sympy import Rational, Sum, log, oo, symbols

from farfield import check_convergence, encoding
from farfield.theory.formula.sympy_expressions import as_expression
from farfield.theory.functions.nodes import n as distance

n, k, j, a = symbols("n k j a")

MEANT = [
    -log(n + 1) * (2 + Sum(k, (k, 5, 2))),
    -n - Sum(log(n + k), (k, 3, 2)),
    -2 * Sum(log(n + k), (k, 4, 2)),
    -n * Sum(k, (k, 1, 3)),
    -Sum(1 / k, (k, 1, n)),
    -Sum(1 / (k + 1), (k, 0, n)),
    -Sum(1 / k, (k, n + 2, n + 4)) - n,
    -Sum(1 / k, (k, n + 1, n)) - n,
    -log(n + 1) * (2 + Sum(1 + Sum(k * j, (k, 5, 2)), (j, 4, 1))),
    sympy.Max(-n, -Sum(k, (k, 7, 2)) * log(n + 2)),
    sympy.Piecewise((Sum(k * n, (k, 6, 3)), n < 4), (-n, True)),
    -Sum(k, (k, -2, 2)) - n,
    -Sum(k, (k, 2, -2)) - n,
]


@pytest.mark.parametrize("e", MEANT, ids=str)
def test_a_sum_has_the_value_that_sympy_gives_it(e):
    bias = encoding(e).bias(range(6))[0]
    for place, value in enumerate(bias):
        wanted = sympy.N(e.subs(n, place).doit())
        assert float(wanted) == pytest.approx(value, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("low", range(-3, 4))
@pytest.mark.parametrize("high", range(-5, 4))
def test_bounds_in_any_order(low, high):
    e = -n - Sum(k**2 + 1, (k, low, high))
    assert as_expression(e).subs(distance, 0).doit() == e.subs(n, 0).doit()


def test_the_verdict_is_that_of_the_sum_that_is_meant():
    e = -log(n + 1) * (2 + Sum(k, (k, 5, 2)))
    assert e.doit() == 5 * log(n + 1)
    assert check_convergence(e).verdict == "diverges"
    assert check_convergence("-log(n+1)*(2+Sum(k,(k,5,2)))").verdict == "converges"


@pytest.mark.parametrize(
    "e, said",
    [
        (-Sum(1 / k, (k, 1, n - 1)), "where they are reversed"),
        (-Sum(1 / k, (k, n, 5)), "where they are reversed"),
        (-n * Sum(k, (k, 1, Rational(5, 2))), "integers for every n"),
        (-Sum(log(n + k), (k, 1, a)), "integers for every n"),
        (-n * Sum(k**-2, (k, 1, oo)), "integers for every n"),
        (-Sum(log(n + k * j), (k, 1, 2), (j, 1, 3)), "one index a sum"),
        (-n * Sum(k, (k, 10**9, 1)), "more than"),
        (-n * Sum(k, (k, 1, 10**9)), "more than"),
    ],
    ids=str,
)
def test_a_sum_that_may_mean_two_things_is_refused(refusal, e, said):
    refusal(said, encoding, e)
