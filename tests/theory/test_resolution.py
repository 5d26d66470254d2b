"""Closed forms of the attention resolution."""

import mpmath
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from sympy import Integer, Rational, exp, log, oo, pi

from farfield.theory.closed_forms import (
    ROWS,
    Linear,
    PowerLaw,
    finite_closed_form,
    limit_closed_form,
    neighbour_sum,
    shape,
)
from farfield.theory.decision.engine import bounded_above
from farfield.theory.formula.grammar import read
from farfield.theory.functions.nodes import n

RATIONALS = st.fractions(min_value="1/10", max_value=6, max_denominator=10)


def test_the_limit_of_the_inverse_square_bias():
    printed = (pi**4 / 90 - pi**2 / 3 + 3) / (pi**4 / 36)
    found = limit_closed_form(-2 * log(n + 1))
    assert sympy.simplify(found - printed) == 0
    assert abs(float(found) - 0.29287188) < 5e-9


@given(RATIONALS)
def test_a_line_by_its_sums(slope):
    m = Rational(slope.numerator, slope.denominator)
    q = exp(-m)
    total, squares = 1 / (1 - q), 1 / (1 - q**2)
    defined = (squares - q * squares) / total**2
    assert abs(sympy.N(limit_closed_form(-m * n + 7) - defined, 30)) < 1e-25


@pytest.mark.parametrize("last", [0, 1, 2, 7])
def test_a_finite_line_by_its_definition(last):
    x = [exp(-Rational(i, 3)) for i in range(last + 2)]
    gained = sum(x[i] * (x[i] - x[i + 1]) for i in range(last + 1))
    form = finite_closed_form(-n / 3).subs(ROWS, last)
    assert abs(sympy.N(form - gained / sum(x[:-1]) ** 2, 30)) < 1e-25


def test_a_window():
    box = sympy.Piecewise((Integer(0), n < 8), (-oo, True))
    assert limit_closed_form(box) == Rational(1, 64)
    assert finite_closed_form(box).subs(ROWS, 7) == Rational(1, 64)
    assert finite_closed_form(box).subs(ROWS, 6) == 0
    inclusive = sympy.Piecewise((Integer(0), n <= 8), (-oo, True))
    assert limit_closed_form(inclusive) == Rational(1, 81)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("r", ["1", "2", "3", "7", "6/5", "5/2"])
@pytest.mark.parametrize("h", ["1", "1/3", "10"])
def test_neighbour_sums_through_zeta_values(r, h):
    r, h = Rational(r), Rational(h)
    with mpmath.workdps(30):
        exponent, shift = mpmath.mpf(r.p) / r.q, mpmath.mpf(h.p) / h.q
        direct = mpmath.nsum(
            lambda i: ((i + shift) * (i + 1 + shift)) ** -exponent,
            [0, mpmath.inf],
            method="euler-maclaurin",
        )
        found = neighbour_sum(r, h)
        if found.has(sympy.Sum):
            body, (j, *_) = found.args
            value = sum(body.subs(j, k).evalf(30) for k in range(60))
        else:
            value = found.evalf(30)
        assert abs(float(value) / float(direct) - 1) < 1e-12


def test_the_shape_decides():
    r1, r2 = sympy.symbols("r1 r2", positive=True)
    assert shape(-r1 * log(1 + r2 * n) - 4) == PowerLaw(r1, 1 / r2)
    assert shape(3 - n / 2) == Linear(Rational(1, 2))
    assert shape(-(log(1 + n) ** 2)) is None and shape(-log(1 + n**2)) is None
    assert limit_closed_form(-log(1 + n)) == 0
    assert limit_closed_form(log(1 + n)) is None and limit_closed_form(n) is None


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
        ("cos(n)*(2/7)^(n/512)", True),
        ("cos(n)*(7/2)^(n/512)", False),
        ("-n*cos(n)", False),
        ("-log(n+3)*log(log(n+3))", True),
    ],
)
def test_bounded_above(text, bounded):
    bias = read(text) if "n" in text else Integer(0)
    assert bounded_above(bias) is bounded
