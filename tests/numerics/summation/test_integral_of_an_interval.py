"""The integral of exp(h): known integrals, poles near the interval, and failures that come out."""

import time

import pytest
import sympy
from flint import arb

from farfield.numerics.summation.integral import integral
from farfield.theory.algebra.door import until
from farfield.theory.algebra.exceptions import OutOfTime, Unreachable
from farfield.theory.functions.balls import precision

X = sympy.Symbol("x")


@pytest.mark.parametrize("bits", [64, 192])
@pytest.mark.parametrize(
    "exponent, primitive",
    [
        (-X, lambda x: -(-x).exp()),
        (-1000 * X, lambda x: -(-1000 * x).exp() / 1000),
        (-2 * sympy.log(1 + X), lambda x: -1 / (1 + x)),
        (-sympy.log(1 + X**2), lambda x: x.atan()),
    ],
)
def test_integrals_of_known_primitives(exponent, primitive, bits):
    with precision(bits):
        for a, b in ((0, 1), (1, 40), (50, 51)):
            area, wanted = (
                integral(exponent, X, arb(a), arb(b)),
                primitive(arb(b)) - primitive(arb(a)),
            )
            assert area.overlaps(wanted) and area.rel_accuracy_bits() > bits - 24


def test_what_is_not_analytic_has_no_integral():
    with pytest.raises(Unreachable):
        integral(-sympy.log(X), X, arb(-1), arb(1))


def test_a_failure_of_the_integrand_comes_out_as_it_is(monkeypatch):
    with until(time.monotonic() - 1), pytest.raises(OutOfTime):
        integral(-X, X, arb(0), arb(1))

    def broken(*args):
        return lambda z, analytic: {}["key"]

    monkeypatch.setattr("farfield.numerics.summation.integral.compile_complex", broken)
    with pytest.raises(KeyError, match="key"):
        integral(-X, X, arb(0), arb(1))
