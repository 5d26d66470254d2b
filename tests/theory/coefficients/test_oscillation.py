"""Oscillating coefficients against their values: bounds hold, those of one wave are attained."""

import numpy as np
import pytest
import sympy
from flint import fmpq

from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.coefficients.exact import coefficient, oscillates
from farfield.theory.coefficients.oscillation import (
    amplitude,
    below,
    bounded_atom,
    bounds,
    decompose,
    eventual_sign,
    harmonics,
    inverse_of,
    log_of,
    low_sign,
    monotone,
    power_of,
    stays_negative,
    unbounded,
    vanishes,
)
from farfield.theory.formula.grammar import read
from farfield.theory.functions.nodes import n
from farfield.theory.values import tabulate

AT = np.arange(20_000)
WAVES = [
    "sin(n)",
    "3*cos(2*n+1)-1",
    "sin(n)**2",
    "sin(n)*cos(n)",
    "sin(n)**3*cos(n)**2+1/2",
    "sin(n)+cos(n)",
    "(sin(n)+1/4)**2",
    "sin(n)*sin(sqrt(2)*n)-2",
    "cos(n)**4-sin(n)**4",
    "2*sin(n+1)+3*cos(n+2)",
    "sin(n)-sin(3*n)",
]


@pytest.mark.parametrize("text", WAVES)
def test_harmonics_are_an_identity_without_products(text):
    e = read(text)
    found = harmonics(e)
    assert np.allclose(tabulate(found, AT[:500]), tabulate(e, AT[:500]), atol=1e-12)
    waves = found.atoms(sympy.sin, sympy.cos)
    assert all(sum(term.has(w) for w in waves) <= 1 for term in sympy.Add.make_args(found))
    assert not any(p.base in waves for p in found.atoms(sympy.Pow))


@pytest.mark.parametrize("text", WAVES)
def test_bounds_hold(text, context):
    low, high = bounds(coefficient(read(text)), context)
    values = tabulate(read(text), AT)
    assert float(low) <= values.min() + 1e-12 and values.max() - 1e-12 <= float(high)


@pytest.mark.parametrize(
    "text",
    [
        "sin(n)",
        "3*cos(2*n+1)-1",
        "sin(n)+cos(n)",
        "sin(n)*cos(n)",
        "2*sin(n+1)+3*cos(n+2)",
        "sin(n)**2",
        "(sin(n)+1/4)**2",
        "(sin(n)+2)**2",
        "(sin(n)-2)**3",
    ],
)
def test_bounds_of_one_wave_are_attained(text, context):
    low, high = map(float, bounds(coefficient(read(text)), context))
    values = tabulate(read(text), AT)
    assert values.min() == pytest.approx(low, abs=1e-3)
    assert values.max() == pytest.approx(high, abs=1e-3)


def test_decompose_puts_the_parts_together_again():
    e = read("1/3+2*sin(n+1)-cos(n)+3*cos(2*n)*sin(n)")
    constant, waves, others = decompose(e)
    again = constant + sympy.Add(*(f * r for f, r in others))
    again += sympy.Add(*(x * sympy.sin(g) + y * sympy.cos(g) for g, (x, y) in waves.items()))
    assert np.allclose(tabulate(again, AT[:300]), tabulate(e, AT[:300]), atol=1e-12)
    assert len(waves) == 2 and not others
    assert amplitude(sympy.Integer(3), sympy.Integer(4)) == 5


def test_identities_vanish_and_nothing_else():
    for text, zero in (
        ("sin(n)**2+cos(n)**2-1", True),
        ("sin(2*n)-2*sin(n)*cos(n)", True),
        ("sin(2*n)-sin(n)*cos(n)", False),
        ("cos(n)", False),
    ):
        assert vanishes(read(text)) is zero


@pytest.mark.parametrize(
    ("text", "low", "eventual"),
    [("2+sin(n)", 1, 1), ("1+sin(n)", 0, None), ("sin(n)", -1, None), ("-3+2*cos(n)", -1, -1)],
)
def test_signs_are_those_of_the_values(text, low, eventual, context):
    c = coefficient(read(text))
    assert low_sign(c, context) == low
    if eventual is None:
        with pytest.raises(Undecided, match="meets 0"):
            eventual_sign(c, context)
    else:
        assert eventual_sign(c, context) == eventual
    assert stays_negative(c, context) is (eventual == -1)


def test_a_function_of_an_oscillation_is_an_atom_between_its_ends(context):
    c = coefficient(read("2+sin(n)"))
    for found, least, most in (
        (log_of(c, context), 0, sympy.log(3)),
        (inverse_of(c, context), sympy.S(1) / 3, 1),
        (power_of(c, fmpq(-2), context), sympy.S(1) / 9, 1),
        (monotone(sympy.exp, c, context), sympy.E, sympy.exp(3)),
    ):
        assert oscillates(found) and (found.low, found.high) == (least, most)
        meant = tabulate(found.meaning, AT[:2000])
        assert float(least) - 1e-12 <= meant.min() and meant.max() <= float(most) + 1e-12
    with pytest.raises(Undecided):
        inverse_of(coefficient(read("sin(n)")), context)
    with pytest.raises(Undecided):
        power_of(coefficient(read("-2+sin(n)")), fmpq(1, 2), context)


def test_infinite_ends(context):
    shifted = bounded_atom(sympy.S.NegativeInfinity, sympy.S.Zero)
    assert unbounded(shifted) and not unbounded(coefficient(sympy.sin(n)))
    assert below(sympy.S.NegativeInfinity, sympy.S.Zero, context)
    assert not below(sympy.S.Zero, sympy.S.Zero, context)
    assert bounds(shifted, context) == (sympy.S.NegativeInfinity, sympy.S.Zero)
