"""Oscillating coefficients against their values: bounds hold, those of one wave are attained."""

import itertools

import numpy as np
import pytest
import sympy
from flint import fmpq

from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.coefficients.exact import coefficient, oscillates
from farfield.theory.coefficients.oscillation import (
    _product_to_sum,
    amplitude,
    below,
    bounded_atom,
    bounds,
    decompose,
    eventual_sign,
    harmonics,
    in_harmonics,
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
from farfield.theory.formula.parameters import parameter
from farfield.theory.functions.nodes import n
from farfield.theory.values import tabulate

AT = np.arange(20_000)
INF = sympy.oo
SIDES = [(sympy.S(3), sympy.S(4)), (2 + sympy.pi, sympy.S.Zero), (sympy.S.Zero, -1 - sympy.pi)]
A, ABOVE = parameter("a", "real"), read("2+sin(n)")
U, NEGATIVE, LOW = bounded_atom(-1, 3), bounded_atom(-3, -1), bounded_atom(-INF, 0)
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


def test_products_of_waves_are_sums():
    for f, g in itertools.product((sympy.sin, sympy.cos), repeat=2):
        whole, parts = f(2 * n) * g(5 * n + 1), _product_to_sum([f(2 * n), g(5 * n + 1)])
        assert np.allclose(tabulate(sympy.Add(*parts), AT[:50]), tabulate(whole, AT[:50]))
    assert harmonics(sympy.sin(n) ** 50) == sympy.sin(n) ** 50  # left to its range


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


def test_identities_vanish_and_nothing_else():
    for text, zero in (
        ("sin(n)**2+cos(n)**2-1", True),
        ("sin(2*n)-2*sin(n)*cos(n)", True),
        ("sin(2*n)-sin(n)*cos(n)", False),
        ("cos(n)", False),
    ):
        assert vanishes(read(text)) is zero


@pytest.mark.parametrize(
    ("text", "signs"),
    [
        ("2+sin(n)", (1, False)),
        ("1+sin(n)", (0, False)),
        ("sin(n)", (-1, False)),
        ("-3+2*cos(n)", (-1, True)),
    ],
)
def test_signs_are_those_of_the_values(text, signs, context):
    assert (low_sign(read(text), context), stays_negative(read(text), context)) == signs
    assert signs != (1, False) or eventual_sign(read(text), context) == 1
    assert not signs[1] or eventual_sign(read(text), context) == -1


@pytest.mark.parametrize(
    ("made", "low", "high"),
    [
        (lambda context: log_of(ABOVE, context), 0, sympy.log(3)),
        (lambda context: log_of(ABOVE - 1, context), -INF, sympy.log(2)),
        (lambda context: inverse_of(ABOVE, context), sympy.S(1) / 3, 1),
        (lambda context: power_of(ABOVE, fmpq(-2), context), sympy.S(1) / 9, 1),
        (lambda context: power_of(ABOVE, fmpq(10_000), context), 1, sympy.S(3) ** 10_000),
        (lambda context: power_of(-ABOVE, fmpq(-1), context), -1, sympy.S(-1) / 3),
        (lambda context: monotone(sympy.exp, ABOVE, context), sympy.E, sympy.exp(3)),
        (lambda context: monotone(sympy.exp, LOW, context), 0, 1),
    ],
)
def test_a_function_of_an_oscillation_is_an_atom_between_its_ends(made, low, high, context):
    found = made(context)
    assert oscillates(found) and (found.low, found.high) == (low, high) and found.is_real
    if not found.meaning.has(LOW, sympy.Integer(10_000)):
        meant = tabulate(found.meaning, AT[:2000])
        assert float(low) - 1e-12 <= meant.min() and meant.max() <= float(high) + 1e-12


@pytest.mark.parametrize(
    ("c", "low", "high"),
    [
        (U, -1, 3),
        (2 - 3 * U, -7, 5),
        (U**3, -1, 27),
        (U**2, 0, 9),
        (NEGATIVE**2, 1, 9),
        (bounded_atom(2, 3) ** 2, 4, 9),
        (bounded_atom(0, 2) ** 2, 0, 4),
        (bounded_atom(-2, 0) ** 2, 0, 4),
        (bounded_atom(-3, 2) ** 4, 0, 81),
        (U * NEGATIVE, -9, 3),
        (U * NEGATIVE * (NEGATIVE - 1), -12, 36),
        (U + NEGATIVE / 2 + 1, sympy.Rational(-3, 2), sympy.Rational(7, 2)),
        (LOW, -INF, 0),
        (bounded_atom(0, INF), 0, INF),
        (1 - LOW, 1, INF),
        (A * sympy.sin(n), -abs(A), abs(A)),
        ((-1) ** n * sympy.cos(n) + 5, 4, 6),
        (read("(sin(n)+1/4)*(cos(2*n)-2)"), sympy.Rational(-15, 4), sympy.Rational(9, 4)),
        (read("(sin(n)+1/4)**2-1"), -1, sympy.Rational(9, 16)),
        (read("3*(sin(n)+1/4)**2"), 0, sympy.Rational(75, 16)),
        (read("2*sin(n)*cos(n)"), -1, 1),
        (read("sin(n)+cos(n)+sin(2*n)"), -1 - sympy.sqrt(2), 1 + sympy.sqrt(2)),
    ],
    ids=str,
)
def test_bounds_by_hand(c, low, high, context):
    assert bounds(c, context) == (low, high)
    assert unbounded(c) is (-INF in (low, -high)) and not unbounded(fmpq(1))


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda context: bounds(U * LOW, context), "the product of unbounded oscillations"),
        (lambda context: bounds(sympy.sqrt(U), context), "a power of an oscillation"),
        (lambda context: bounds(1 / U, context), "a power of an oscillation"),
        (lambda context: bounds(sympy.log(U), context), "the range of log"),
        (lambda context: harmonics(sympy.sin(n) ** 13), "is too large"),
        (lambda context: monotone(sympy.exp, sympy.pi * 31831, context), "a constant is too large"),
        (lambda context: monotone(sympy.exp, U * 10**5, context), "a constant is too large"),
        (lambda context: power_of(U + 2, fmpq(10_001), context), "a constant is too large"),
        (lambda context: power_of(U - 4, fmpq(2), context), "a real power of a negative"),
        (lambda context: inverse_of(ABOVE - 2, context), "that meets 0"),
        (lambda context: eventual_sign(ABOVE - 1, context), "that meets 0"),
    ],
)
def test_what_has_no_bounds_is_undecided(ask, why, context):
    with pytest.raises(Undecided, match=why):
        ask(context)


@pytest.mark.parametrize(
    ("function", "values"),
    [
        (low_sign, [-1, 0, 1]),
        (eventual_sign, [-1, 0, 1]),
        (stays_negative, [True, False, False]),
        (bounds, [(-1, -1), (0, 0), (1, 1)]),
        (lambda c, _: amplitude(*SIDES[int(c.p)]), [1 + sympy.pi, 5, 2 + sympy.pi]),
        (lambda c, context: monotone(sympy.exp, c, context), [sympy.exp(k) for k in (-1, 0, 1)]),
    ],
)
def test_what_does_not_oscillate_is_as_it_is(function, values, context):
    assert [function(fmpq(k), context) for k in (-1, 0, 1)] == values


def test_harmonics_show_what_is_constant(context):
    one = sympy.sin(n) ** 2 + sympy.cos(n) ** 2 + sympy.sqrt(2)
    waves = (sympy.sin(n) ** 2 + 1, sympy.sin(n) * sympy.cos(n), U + 1)
    assert [*map(in_harmonics, (one, *waves))] == [1 + sympy.sqrt(2), *waves]
    assert [monotone(sympy.exp, c, context) for c in (A, fmpq(10**5))] == [
        sympy.exp(A),
        sympy.exp(10**5),
    ]


def test_infinite_ends(context):
    assert not unbounded(coefficient(sympy.sin(n)))
    ends = (-INF, sympy.S.Zero, sympy.S.One, INF)
    for k, a in enumerate(ends):
        assert [below(a, b, context) for b in ends] == [k < j for j in range(4)]
