"""Infima of functions of one angle, and which phases are independent: against dense samples."""

import numpy as np
import pytest
import sympy
from sympy import Abs, Max, Min, cos, frac, pi, sin, sqrt

from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.coefficients.signs import Context
from farfield.theory.functions.nodes import n
from farfield.theory.values import tabulate
from farfield.theory.waves.extrema import enclosure, infimum
from farfield.theory.waves.phases import ANGLE as X
from farfield.theory.waves.phases import coordinates, dependent, parts

SAW = frac(X / (2 * pi), evaluate=False)
SMOOTH = [
    (2 + sin(X) + cos(2 * X), 2),
    (1 + sin(X) ** 4, 4),
    (3 / (2 + sin(X)), 2),
    (1 + 4 * (sin(X) + sympy.Rational(1, 4)) ** 2, 2),
    (cos(X) ** 3 + cos(X), 2),
    (Abs(sin(X)) + 1, 1),
    (Abs(sin(X)) + Abs(cos(X)), 1),
    (Max(sin(X), cos(X)), 1),
    (Min(sin(X), cos(X)), 2),
    (Abs(sin(X)) ** 3, 3),
    (sin(X) + Abs(sin(X)) / 2, 2),
]


def values(f, points):
    """f at angles, through the float view of formulas."""
    return tabulate(f.xreplace({X: 2 * pi * n / points}), np.arange(points))


@pytest.mark.parametrize(("f", "order"), SMOOTH)
def test_the_infimum_is_that_of_dense_samples(f, order):
    low, largest, returning = infimum(f, Context())
    assert largest == returning == order
    sampled = values(f, 5040).min()
    assert -1e-12 <= sampled - float(low) < 1e-3
    below, above, _ = enclosure(f, 0.01)
    assert float(below) <= float(low) <= float(above) < float(below) + 0.011


@pytest.mark.parametrize(("f", "order"), SMOOTH)
def test_the_order_is_that_of_the_mean(f, order):
    """int exp(-m (f - inf f)) falls by 2^(1/e) when m doubles."""
    excess = values(f, 100_003) - float(infimum(f, Context())[0])
    means = [np.exp(-m * excess).mean() for m in (2e3, 4e3)]
    assert abs(np.log2(means[0] / means[1]) - 1 / order) < 0.02


def test_jumps_and_plateaus():
    assert infimum(SAW, Context()) == (0, 1, 0)
    low, high, _ = enclosure(Max(1, 2 * sin(X)), 0.01)
    assert high == 1 and 1 - 1e-6 < float(low) <= 1
    with pytest.raises(Undecided):
        infimum(Max(1, 2 * sin(X)), Context())


def test_what_has_no_lower_bound():
    low, high, _ = enclosure(sympy.log(sin(X) ** 2), 0.01)
    assert low is None and high < -4
    with pytest.raises(Undecided, match="bounds"):
        infimum(sympy.log(sin(X) ** 2), Context())


@pytest.mark.parametrize(
    ("phases", "related"),
    [
        ((n, 2 * n), True),
        ((n, sqrt(2) * n), False),
        ((sqrt(2) * n, sqrt(8) * n / 3), True),
        ((n, sqrt(2) * n, n * (1 + sqrt(2)) / 5), True),
        ((n, sqrt(2) * n, sqrt(3) * n, sqrt(6) * n), False),
        ((n, n**2), False),
        ((n**2 + n, 2 * n**2 + 2 * n), True),
        ((n, pi * sqrt(2) * n), False),
        ((n * sympy.GoldenRatio, sqrt(5) * n, n), True),
    ],
)
def test_dependent_phases(phases, related):
    assert dependent([coordinates(p)[0] for p in phases]) is related


@pytest.mark.parametrize("phase", [pi * n / 3, n**2 / 2 + pi * n, sqrt(n), n * sqrt(1 + sqrt(2))])
def test_phases_that_are_not_read(phase):
    assert coordinates(phase) is None


def test_parts_add_up():
    e = 2 + sin(n) * cos(3 * n) + Abs(sin(sqrt(2) * n + 1)) + frac(sqrt(3) * n)
    constant, found = parts(e)
    assert len(found) == 3
    back = constant + sum(p.function.xreplace({X: p.phase}) for p in found)
    at = np.arange(200)
    assert np.allclose(tabulate(back, at), tabulate(e, at))
