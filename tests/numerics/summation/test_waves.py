"""Waves of constant amplitude: differences of tails are the terms between."""

import pytest
from flint import arb

from farfield.numerics.outcomes import Unrecognised
from farfield.numerics.summation.kernel import terms
from farfield.numerics.summation.methods import _part
from farfield.numerics.summation.waves import Waves, waves_kernel
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import precision, to_arb

WAVES = ["-2*log(n+1)+cos(n)", "-n/50+sin(n)/2", "-3*log(n+2)+cos(n)/3-sin(2*n)/5"]


def gap(kernel, p, a, b):
    """T_a - T_b, and the sum of the terms between."""
    between = sum(map(terms(p), range(a, b)), arb(0))
    return to_arb(kernel.tail(a)) - to_arb(kernel.tail(b)), between


@pytest.mark.parametrize("text", WAVES)
def test_waves(text):
    p = read(text)
    kernel = waves_kernel(p, 0, _part)
    assert isinstance(kernel, Waves)
    with precision(96):
        for a, b in ((0, 7), (30, 90), (700, 900)):
            found, between = gap(kernel, p, a, b)
            assert found.overlaps(between), (a, b)
            assert found.rad() < 1e-15 * to_arb(kernel.tail(a)), (a, b)


@pytest.mark.parametrize("text", ["-n", "-2*log(n+1)+cos(n**2)", "-n+n*cos(n)"])
def test_no_waves(text):
    """No oscillation, a phase that is not linear, an amplitude that grows."""
    with pytest.raises((Unrecognised, Unreachable)):
        waves_kernel(read(text), 0, _part)
