import numpy as np
import pytest

from farfield.numerics.finite_length import (
    head_layered_masses,
    head_leaks,
    head_resolutions,
    head_weights,
    resolution_weighted_leak,
)
from farfield.numerics.leak import leak
from farfield.numerics.resolution import attention_resolution
from farfield.theory.answers.errors import InputError
from farfield.theory.encodings import encoding

L, N = 16, 128
FOUND = [encoding(f) for f in ("-2*log(1+n)", "-n/8", "-log(1+n)", "-sqrt(n)")]
BIAS = np.concatenate([e.bias(np.arange(N)) for e in FOUND])


def test_the_numbers_of_a_head_are_those_that_are_certified():
    leaks, sharp = head_leaks(BIAS, L), head_resolutions(BIAS, L)
    for e, x, r in zip(FOUND, leaks, sharp, strict=True):
        low, high = leak(e, L, N).enclosure
        assert low - 1e-12 <= x <= high + 1e-12
        assert r == pytest.approx(attention_resolution(e, L).value, rel=1e-12)


def test_layered_masses_are_convolutions():
    for kernel, beyond in zip(head_weights(BIAS), head_layered_masses(BIAS, L, 3), strict=True):
        direct = np.convolve(np.convolve(kernel, kernel), kernel)[:L].sum()
        assert beyond == pytest.approx(1 - direct, abs=1e-9)
    assert head_layered_masses(BIAS, L, 1) == pytest.approx(head_leaks(BIAS, L), abs=1e-12)


def test_a_head_that_resolves_nothing_does_not_count():
    none = np.zeros((3, N))
    one = np.concatenate([BIAS[1:2], none])
    assert resolution_weighted_leak(one, L) == pytest.approx(head_leaks(BIAS, L)[1])
    assert resolution_weighted_leak(none, L) == pytest.approx(1 - L / N)
    weights = head_resolutions(BIAS, L) ** 0.5
    mean = np.average(head_leaks(BIAS, L), weights=weights)
    assert resolution_weighted_leak(BIAS, L, 0.5) == pytest.approx(mean)


def test_masked_keys_and_bad_rows():
    window = np.where(np.arange(N) < 4, 0.0, -np.inf)[None]
    assert head_leaks(window, 4) == 0 and head_resolutions(window, L) == pytest.approx(1 / 16)
    assert head_layered_masses(window, 10, 3) == 0 and head_layered_masses(window, 9, 3) > 0
    for bad in (np.nan, np.inf):
        with pytest.raises(InputError, match="undefined, infinite"):
            head_weights(np.array([[0.0, bad]]))
    with pytest.raises(InputError, match="masks the whole row"):
        head_weights(np.full((1, 3), -np.inf))
