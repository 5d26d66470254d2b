"""Expansions of special functions against their values: the error that is claimed
bounds the error that is made, with a factor that does not grow."""

import pytest
import sympy
from flint import fmpq

from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.coefficients.exact import to_sympy
from farfield.theory.coefficients.signs import Context
from farfield.theory.convergence import check_convergence
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import precision, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.transseries.expansion import transseries
from farfield.theory.transseries.scale import monomial_expression
from farfield.theory.values import compile_ball


def excess(text, distances):
    """|e - terms|/remainder at some distances; the absolute difference where none is claimed."""
    e = read(text)
    g = transseries(e, Context(order=4))
    terms = sympy.Add(*(to_sympy(c) * monomial_expression(m) for m, c in g.terms))
    error = sympy.S.One if g.exact else monomial_expression(g.remainder)
    out = []
    for at in distances:
        with precision(600):
            x, y, scale = (to_arb(compile_ball(v)({n: fmpq(at)})) for v in (e, terms, error))
            out.append(float(abs(x - y) / scale))
    return out, g.exact


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "text",
    [
        "harmonic(n)",
        "loggamma(n+1/3)-n*log(n)",
        "erfcx(sqrt(n))",
        "LambertW(n*log(n)+n)",
        "LambertW(2*n+n/log(n))",
        "LambertW(n+sqrt(n))",
    ],
)
def test_the_remainder_bounds_the_error(text):
    found, exact = excess(text, (60, 600, 6000))
    if exact:
        assert max(found) < 1e-90
    else:
        assert max(found) < 20 and found[2] < 2 * max(found[:2]) + 1e-3


@pytest.mark.parametrize("text", ["Sum(1/k,(k,1,n))", "Sum(k,(k,1,n))", "Sum(sqrt(k),(k,1,n))"])
def test_sums_up_to_n_are_not_expanded(text):
    with pytest.raises(Undecided, match="a sum"):
        transseries(read(text), Context())
    assert check_convergence(f"-{text}").verdict == "undecided"


def test_a_parameter_in_the_terms():
    result = check_convergence("-Sum(k**a,(k,1,n))", assumptions={"a": "real"})
    assert result.verdict == "undecided"
