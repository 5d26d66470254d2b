"""Families with closed sums, against the functions of the library."""

import pytest
import sympy
from flint import arb, ctx

from farfield.numerics.summation.kernel import Power, hurwitz
from farfield.theory.functions.balls import precision


@pytest.mark.parametrize("bits", [64, 128])
@pytest.mark.parametrize("x", ["1", "1.25", "7", "200.5"])
def test_hurwitz_of_a_great_exponent_is_its_first_term(bits, x):
    with precision(bits):
        at = arb(x)
        great = 4 * ctx.prec * (at + 1) * arb("1.01")
        near = hurwitz(great, at)
        assert near.rel_accuracy_bits() > bits // 2
        with precision(600):
            assert near.overlaps(great.zeta(at))


def test_the_density_and_the_integral_of_a_power():
    """Of 5 (u + 2)^-3 at 10, and from there on: 5 / 12^3 and 5 / (2 * 12^2)."""
    power = Power(0, sympy.log(5), sympy.Integer(2), sympy.Integer(3))
    assert power.density(arb(10)).overlaps(arb(5) / 1728)
    assert power.integral(arb(10)).overlaps(arb(5) / 288)
