"""Families with closed sums, against the functions of the library."""

import pytest
from flint import arb, ctx

from farfield.numerics.summation.kernel import hurwitz
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
