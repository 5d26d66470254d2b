"""Signs of constants: hidden zeros are proved, near misses are told apart, nothing is guessed."""

import random

import mpmath
import pytest
import sympy

from farfield.theory.algebra.exceptions import SignNeeded, Undecided
from farfield.theory.coefficients.exact import coefficient
from farfield.theory.coefficients.signs import (
    proved_rational,
    sign,
    sign_factors,
    sign_key,
    with_proved_rationals,
)
from farfield.theory.coefficients.zeros import proved_zero
from farfield.theory.formula.grammar import read
from farfield.theory.formula.parameters import parameter


def constant(text):
    """The constant c of the formula `n*(c)`, as the reader builds it."""
    e = read(f"n*({text})+n**2")
    n = next(s for s in e.free_symbols if s.name == "n")
    return sympy.expand(e).coeff(n, 1) if not e.has(sympy.Add) else ((e - n**2) / n)


ZEROS = """
    sqrt(2)*sqrt(3)-sqrt(6)
    sqrt(5+2*sqrt(6))-sqrt(2)-sqrt(3)
    (2+sqrt(5))**(1/3)-(sqrt(5)-2)**(1/3)-1
    (7+5*sqrt(2))**(1/3)-(1+sqrt(2))
    sqrt(16-2*sqrt(29)+2*sqrt(55-10*sqrt(29)))-sqrt(22+2*sqrt(5))+sqrt(11+2*sqrt(29))-sqrt(5)
    GoldenRatio**2-GoldenRatio-1
    sin(1)**2+cos(1)**2-1
    sin(2)-2*sin(1)*cos(1)
    cosh(1)**2-sinh(1)**2-1
    tanh(1)-(exp(2)-1)/(exp(2)+1)
    log(6)-log(2)-log(3)
    asinh(1)-log(1+sqrt(2))
    acosh(2)-log(2+sqrt(3))
    atanh(1/3)-log(2)/2
    asin(1/3)+acos(1/3)-pi/2
    cos(pi/7)-cos(2*pi/7)+cos(3*pi/7)-1/2
    sin(pi/5)*sin(2*pi/5)-sqrt(5)/4
    tan(pi/8)-sqrt(2)+1
    digamma(1)+EulerGamma
    digamma(1/2)+EulerGamma+2*log(2)
    polygamma(1,1)-pi**2/6
    gamma(1/2)**2-pi
    harmonic(4)-25/12
    erf(1)+erfc(1)-1
    LambertW(1)+log(LambertW(1))
    exp(log(2)+log(3))-6
    log(8)/log(2)-3
    sqrt(2)**sqrt(2)*sqrt(2)**(-sqrt(2))-1
""".strip().splitlines()


OPEN = """
    log(1+sqrt(2))+log(sqrt(2)-1)
    4*atan(1/5)-atan(1/239)-pi/4
    12*atan(1/18)+8*atan(1/57)-5*atan(1/239)-pi/4
    atan(1)+atan(2)+atan(3)-pi
    asin(3/5)+asin(4/5)-pi/2
    gamma(1/3)*gamma(2/3)-2*pi/sqrt(3)
    sqrt(5+2*sqrt(6))*log(6)/((sqrt(2)+sqrt(3))*(log(2)+log(3)))-1
    (2-sin(1)**2-cos(1)**2)*sqrt(5+2*sqrt(6))/(sqrt(2)+sqrt(3))-1
    LambertW(2)*exp(LambertW(2))-2
""".strip().splitlines()


@pytest.mark.parametrize("text", [z.strip() for z in OPEN])
def test_what_has_no_proof_is_open_and_not_told_apart_from_0(text):
    """Machin's identities, logarithms of units, reflections of gamma."""
    with pytest.raises(Undecided, match="is 0"):
        sign(coefficient(constant(text)))


@pytest.mark.parametrize("text", [z.strip() for z in ZEROS])
def test_hidden_zeros_are_proved(text):
    assert sign(coefficient(constant(text))).value == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("exp(pi*sqrt(163))-262537412640768744", -1),
        ("exp(pi*sqrt(163))-262537412640768743", 1),
        ("103993/33102-pi", -1),
        ("355/113-pi", 1),
        ("pi-22/7", -1),
        ("sqrt(2)-1-1/(sqrt(2)+1)+1/10**300", 1),
        ("sqrt(1000001)+sqrt(1000025)+sqrt(1000031)-sqrt(1000000)-sqrt(1000028)-sqrt(1000029)", 0),
        ("4*atan(1/5)-atan(1/239)-pi/4-1/10**500", -1),
        ("log(2)/log(3)-63/100", 1),
        ("atan(1)+atan(2)+atan(3)", 1),  # a sum of arctangents may be off by pi
        ("Catalan-1", -1),
        ("EulerGamma-1/2", 1),
    ],
)
def test_near_misses_are_told_apart(text, expected):
    c = constant(text)
    if expected == 0:  # not zero: six square roots that agree to 35 digits
        with mpmath.workdps(80):
            expected = int(mpmath.sign(sympy.lambdify([], c, "mpmath")()))
    assert sign(coefficient(c)).value == expected


def test_random_radicals_against_many_digits():
    """Zero only where 600 digits are zero: sums of products of square roots, some rigged."""
    rng = random.Random(5)
    for _ in range(60):
        a, b, c = (rng.randint(2, 40) for _ in range(3))
        e = sympy.sqrt(a + b + 2 * sympy.sqrt(a * b)) - sympy.sqrt(a) - sympy.sqrt(b)
        if rng.random() < 0.5:
            e = e + sympy.Rational(rng.choice((1, -1)), 10 ** rng.randint(1, 250))
        e = sympy.expand(e * (sympy.sqrt(c) + 1))
        with mpmath.workdps(700):
            exact = sympy.lambdify([], e, "mpmath")() if not e.is_Rational else mpmath.mpf(e.p)
            expected = 0 if abs(exact) < mpmath.mpf(10) ** -600 else int(mpmath.sign(exact))
        assert sign(coefficient(e)).value == expected, e


def test_no_zero_is_claimed_for_what_is_not_zero():
    for text in (
        "exp(1)-19/7",
        "sin(1)-cos(1)",
        "log(2)+log(3)-log(5)",
        "atan(1/2)+atan(1/3)-1",
        "sqrt(2)+sqrt(3)-pi",
        "gamma(1/3)-gamma(1/4)",
        "LambertW(2)-1",
        "atan(1)+atan(2)+atan(3)",
    ):
        assert proved_zero(constant(text)) is None


def test_a_rational_in_disguise_becomes_one(context):
    hidden = constant("sin(1)**2+cos(1)**2+1/2")
    assert proved_rational(hidden, context) == sympy.Rational(3, 2)
    assert [s.value for s in context.evidence.values()] == [0]
    a = parameter("a")
    one = sympy.log(6) / (sympy.log(2) + sympy.log(3))
    assert with_proved_rationals(a * one, context) == a
    assert proved_rational(sympy.pi, context) is sympy.pi


def test_signs_with_parameters():
    a, b = parameter("a"), parameter("b", "real")
    assert [sign(c).value for c in (a + 1, -a, b**2 + 1)] == [1, -1, 1]
    with pytest.raises(SignNeeded) as fork:
        sign(2 - 2 * a)
    key = fork.value.args[0]
    assert key == a - 1
    asked = (2 - 2 * a, (1 - a) ** 2, 1 / (a - 1))
    assert [sign(c, {key: 1}).value for c in asked] == [-1, 1, 1]
    assert sign(5 * a - 5, {key: 0}).value == 0


def test_a_quadratic_is_split_at_its_roots():
    a = parameter("a", "real")
    roots = {sign_key(f)[0] for f in sign_factors(a**2 - a - 1) if f.free_symbols}
    golden = (1 + sympy.sqrt(5)) / 2
    assert {sympy.simplify(a - r) for r in roots} == {golden, sympy.expand(1 - golden)}
