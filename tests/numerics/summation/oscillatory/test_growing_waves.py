"""Waves of growing amplitude: tails whose differences are the terms, and honest refusals."""

import mpmath
import pytest
from flint import arb
from sympy import cos

from farfield.numerics.outcomes import Unrecognised
from farfield.numerics.summation.kernel import terms
from farfield.numerics.summation.oscillatory.growing_waves import _split, growing_wave_kernel
from farfield.numerics.summation.oscillatory.waves import expanded
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import precision, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.values import enclose

GROWING = [
    "-3*log(n+2)+log(n+2)*cos(n)",
    "-2*log(n+2)-log(log(n+3))*cos(n/2+1)/2",
    "-sqrt(n)/2+log(n+2)*sin(n)/3",
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("text", GROWING)
def test_differences_of_tails_are_sums_of_terms(text):
    p = read(text)
    kernel = growing_wave_kernel(p, 0)
    with precision(64):
        term = terms(p)
        for a, b in ((0, 7), (3, 40), (900, 1100)):
            between = sum((term(i) for i in range(a, b)), arb(0))
            gap = to_arb(kernel.tail(a)) - to_arb(kernel.tail(b))
            assert gap.overlaps(between)
            assert gap.rad() < 1e-9 * (1 + abs(to_arb(kernel.tail(a))))


def test_a_tail_against_a_sum_of_another_kind():
    """Most of the sum term by term; the rest is between those of the bias with cos = 1 and -1."""
    kernel, last = growing_wave_kernel(read("-sqrt(n)/2+log(n+2)*sin(n)/3"), 0), 10_000
    with mpmath.workdps(20):
        whole = mpmath.fsum(
            mpmath.exp(-mpmath.sqrt(k) / 2 + mpmath.log(k + 2) * mpmath.sin(k) / 3)
            for k in range(last)
        )
    with precision(64):
        assert abs(float(to_arb(kernel.tail(0)).mid()) - float(whole)) < 1e-8 * float(whole)


@pytest.mark.parametrize(
    "text",
    [
        "log(n+2)*cos(n)-n",
        "-n-log(n+2)*cos(n+3)",
        "3*log(n+2)*cos(n)-4*log(n+2)*sin(n)-n**2",
        "-log(n+2)*sin(n/3)-log(n+2)*cos(n/3)-n",
    ],
)
def test_waves_of_one_frequency_are_one(text):
    wave, smooth = _split(expanded(read(text)))
    assert wave.frequency.is_Rational and wave.frequency > 0
    again = smooth + wave.amplitude * cos(wave.frequency * n + wave.phase)
    for at in (0, 1, 10, 1000):
        assert abs(enclose(again - read(text), 128, {n: at})) < 1e-30
    assert enclose(wave.amplitude, 64, {n: 10**6}) > 0


@pytest.mark.parametrize(
    "text",
    [
        "-3*log(n+2)+log(n+2)*cos(sqrt(2)*n)",
        "-n",
        "-3*log(n+2)+log(n+2)*cos(n)*cos(3*n)",
        "-3*log(n+2)+log(n+2)*cos(n**2)",
        "-log(n+2)+log(n+2)*cos(n)",
    ],
)
def test_what_is_not_proved_is_refused(text):
    """Irrational frequencies, none, several, phases that are not linear, divergent means."""
    with pytest.raises(Unrecognised):
        kernel = growing_wave_kernel(read(text), 0)
        if not kernel.converges:
            raise Unrecognised("the mean part diverges")
