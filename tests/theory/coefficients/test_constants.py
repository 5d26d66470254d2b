"""Signs of constants: hidden zeros are proved, near misses are told apart, nothing is guessed."""

import random
from contextlib import nullcontext
from types import SimpleNamespace

import mpmath
import pytest
import sympy
from flint import fmpq

from farfield.theory.algebra.exceptions import SignNeeded, Undecided
from farfield.theory.coefficients import exact, signs, zeros
from farfield.theory.coefficients.exact import coefficient
from farfield.theory.coefficients.signs import (
    Context,
    proved_rational,
    sign,
    sign_factors,
    sign_key,
    with_proved_rationals,
)
from farfield.theory.coefficients.zeros import proved_zero
from farfield.theory.formula.grammar import read
from farfield.theory.formula.parameters import parameter
from farfield.theory.functions.nodes import n


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
    assert not signs.is_zero(constant(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((zero.strip(), 0) for zero in ZEROS),  # which are proved
        ("exp(pi*sqrt(163))-262537412640768744", -1),
        ("exp(pi*sqrt(163))-262537412640768743", 1),
        ("103993/33102-pi", -1),
        ("355/113-pi", 1),
        ("pi-22/7", -1),
        ("sqrt(2)-1-1/(sqrt(2)+1)+1/10**300", 1),
        (
            "sqrt(1000001)+sqrt(1000025)+sqrt(1000031)-sqrt(1000000)-sqrt(1000028)-sqrt(1000029)",
            1,
        ),  # 4.7e-9
        ("4*atan(1/5)-atan(1/239)-pi/4-1/10**500", -1),
        ("log(2)/log(3)-63/100", 1),
        ("atan(1)+atan(2)+atan(3)", 1),  # a sum of arctangents may be off by pi
        ("(1+sqrt(2))^(11+sin(1)^2+cos(1)^2)-(1+sqrt(2))^12", 0),
        ("Catalan-1", -1),
        ("EulerGamma-1/2", 1),
    ],
)
def test_hidden_zeros_and_near_misses_are_told_apart(text, expected):
    assert sign(coefficient(constant(text))).value == expected


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("pi-3", 64),
        ("exp(pi*sqrt(163))-262537412640768744", 256),
        ("sqrt(2)-1-1/(sqrt(2)+1)+1/10**300", 1024),
        ("4*atan(1/5)-atan(1/239)-pi/4-1/10**500", 4096),
        ("acos(tanh(95))", 1024),  # shorter ones reach over 1
        ("1-floor(3*(1-erfc(18)))", 1024),
    ],
)
def test_a_sign_is_told_by_the_shortest_of_four_balls(text, bits):
    assert sign(coefficient(constant(text))).why == f"ball of {bits} bits"


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


def test_a_rational_in_disguise_becomes_one(context):
    hidden = constant("sin(1)**2+cos(1)**2+1/2")
    assert proved_rational(hidden, context) == sympy.Rational(3, 2)
    assert [s.value for s in context.evidence.values()] == [0]
    a = parameter("a")
    one = sympy.log(6) / (sympy.log(2) + sympy.log(3))
    assert with_proved_rationals(a * one, context) == a
    assert with_proved_rationals(one + sympy.pi, context) == 1 + sympy.pi
    assert proved_rational(sympy.pi, context) is sympy.pi
    assert type(proved_rational(sympy.Rational(1, 7919), context)) is fmpq
    large = 10**6 * (sympy.sqrt(3 + 2 * ROOT2) - ROOT2)
    assert proved_rational(large, context) == 10**6


REAL = parameter("a", "real")
POSITIVE, FREE, B = parameter("a"), parameter("b", "real"), parameter("b", "positive")


@pytest.mark.parametrize(
    ("c", "assumed", "value"),
    [
        (POSITIVE + 1, None, 1),
        (-POSITIVE, None, -1),
        (FREE**2 + 1, None, 1),
        (2 - 2 * POSITIVE, 1, -1),
        ((1 - POSITIVE) ** 2, 1, 1),
        (1 / (POSITIVE - 1), 1, 1),
        (5 * POSITIVE - 5, 0, 0),
    ],
)
def test_signs_with_parameters(c, assumed, value):
    assert sign(c, {} if assumed is None else {POSITIVE - 1: assumed}).value == value
    with pytest.raises(SignNeeded) if assumed is not None else nullcontext() as fork:
        sign(c)
    assert fork is None or fork.value.args == (POSITIVE - 1,)


def test_a_value_at_a_jump_rests_on_the_proof_that_it_is_there():
    one = LN6 / (sympy.log(2) + sympy.log(3))
    proof = ((one - 1, signs.Sign(0, "expansion")),)
    jump = sympy.floor(one, evaluate=False) + sympy.pi
    assert sign(jump).evidence == proof and not sign(jump.xreplace({one: one / 2})).evidence
    found = map(signs._nearby_rational, (one, one / 2, one / 10080, ROOT2))
    assert [*found] == [fmpq(1), fmpq(1, 2), None, None]
    assert signs._nearby_rational(X) is None


def test_a_sign_that_turns_has_none():
    with pytest.raises(Undecided, match="of an oscillating coefficient"):
        sign(sympy.sin(n))
    assert signs._assumed_sign(-(POSITIVE**501)) == -1 and sign(POSITIVE**501 + 1).value == 1


def test_a_quadratic_is_split_at_its_roots():
    a = parameter("a", "real")
    roots = {sign_key(f)[0] for f in sign_factors(a**2 - a - 1) if f.free_symbols}
    golden = (1 + sympy.sqrt(5)) / 2
    assert {sympy.simplify(a - r) for r in roots} == {golden, sympy.expand(1 - golden)}
    assert sign_factors(POSITIVE * (a - 2)) == (a - 2,)
    assert signs._linear_factors(a**2 - sympy.pi) == [a**2 - sympy.pi]


# -- limits and bounds by hand ---------------------------------------------------------------------

X, Y = sympy.symbols("x y")
ROOT2, THIRD = sympy.sqrt(2), sympy.Rational(1, 3)


@pytest.mark.parametrize(
    ("e", "u", "low", "radicals"),  # log2 of u is from above: 2 has two bits, 3 and 5 two and three
    [
        (sympy.Rational(-5, 3), 3, 2, []),
        (sympy.Rational(1, 2), 0, 2, []),
        (ROOT2, 1, 0, [2]),
        (sympy.Pow(2, -sympy.S.Half, evaluate=False), 0, 1, [2]),
        (1 / ROOT2, 1, 2, [2]),
        (sympy.Pow(4 * THIRD, THIRD, evaluate=False), sympy.Rational(7, 3), 2, [3]),
        (sympy.Pow(THIRD, THIRD, evaluate=False), 0, sympy.Rational(2, 3), [3]),
        (sympy.Pow(4 * THIRD / 5, THIRD, evaluate=False), 3, sympy.Rational(10, 3), [3]),
        (ROOT2 + THIRD, 4, 2, [2]),
        (THIRD * ROOT2, 1, 2, [2]),
        ((ROOT2 + 1) ** 3, 6, 0, [2]),
        ((ROOT2 + 1) ** -2, 0, 4, [2]),
        (sympy.sqrt(ROOT2 + 1), 1, 0, [2, 2]),
        (sympy.cos(sympy.pi / 7), 1, 1, [28]),
        (sympy.tan(sympy.pi / 7), 2, 2, [28]),
        (sympy.GoldenRatio, 4.5, 4, [2]),
        (sympy.GoldenRatio - sympy.sqrt(5), 6.5, 4, [2]),
        (sympy.sin(sympy.pi / 1000), 1, 1, [4000]),
        (sympy.Integer(2) ** sympy.Rational(1, 64), sympy.Rational(1, 32), 0, [64]),
        (sympy.Integer(2) ** sympy.Rational(1, 65), None, None, []),
        ((ROOT2 + 1) ** 64, 128, 0, [2]),
        ((ROOT2 + 1) ** 65, None, None, []),
        (sympy.Integer(2) ** ROOT2, None, None, []),
        (sympy.sin(sympy.pi / 1001), None, None, []),
        (sympy.pi, None, None, []),
        (sympy.cos(1), None, None, []),
    ],
    ids=str,
)
def test_the_separation_bound_by_hand(e, u, low, radicals):
    noted = {}
    if u is None:
        with pytest.raises(Undecided):
            zeros._bfmss(e, noted)
    else:
        found = zeros._bfmss(e, noted)
        assert found == (pytest.approx(float(u)), pytest.approx(float(low)))
        assert sorted(noted.values()) == radicals


IN_EXP = "expansion in exponentials"


@pytest.mark.parametrize(
    ("c", "bits"),
    [
        (ROOT2 - 1, 1 * 2 + 0 + 2),
        (sympy.cos(sympy.pi / 7) + ROOT2 + THIRD, (2 * 12 - 1) * 6 + 3 + 2),
    ],
)
def test_a_ball_is_as_small_as_the_separation_bound(monkeypatch, c, bits):
    asked = []
    balls = SimpleNamespace(enclose=lambda c, bits: asked.append(bits))
    monkeypatch.setattr(zeros, "PLAIN", balls)
    for most in (bits - 1, bits):
        monkeypatch.setattr(zeros, "MAX_SEPARATION", most)
        assert not zeros._algebraic_zero(c)
    assert asked == [bits + 64] and zeros._of_sum((5, 1), (2, 3)) == zeros._of_sum((2, 3), (5, 1))
    assert zeros._of_sum((5, 1), (2, 3)) == (9, 4) and zeros._of_root(7, 4, 3) == (5, 4)


LN6, LOGARITHMS = sympy.log(6), [sympy.log(p) for p in sympy.primerange(2100)]


@pytest.mark.parametrize(
    ("ask", "wanted"),
    [
        (lambda: exact._length(X**5), 1),
        (lambda: exact._length((X + 1) * (Y + 2) * X), 4),
        (lambda: exact._length((X + Y + 1) ** 3 + X), 11),
        (lambda: exact._length((X + 1) ** -3), 4),
        (lambda: exact._length((X + 1) ** 4000), 3001),
        (lambda: exact._length(sympy.sin((X + 1) ** 2999)), 1),
        (lambda: exact._length(sympy.sin((X + 1) ** 3000)), 3001),
        (lambda: exact._length((X + 1) ** Y), 1),
        (lambda: exact.expand((X + Y) ** 3000), "is too long to be multiplied out"),
        (lambda: exact.power(fmpq(2, 3), fmpq(-2)), fmpq(9, 4)),
        (lambda: exact.power(fmpq(2), fmpq(1, 2)), ROOT2),
        (lambda: exact.power(fmpq(1), fmpq(10**5)), fmpq(1)),
        (lambda: exact.power(sympy.pi, fmpq(10**5)), sympy.pi**10**5),
        (lambda: exact.power(fmpq(2), fmpq(10**4)), fmpq(2**10_000)),
        (lambda: exact.power(fmpq(2), fmpq(10_001)), "a constant is too large"),
        (lambda: exact.power(fmpq(2), fmpq(-10_001)), "a constant is too large"),
        (lambda: exact.power(sympy.pi / 2, fmpq(10**5)), "a constant is too large"),
        (lambda: exact.times(fmpq(0), X), fmpq(0)),
        (lambda: exact.times(X, fmpq(0)), fmpq(0)),
        (lambda: exact.times(fmpq(1), X), X),
        (lambda: exact.times(fmpq(2), X), 2 * X),
        (lambda: exact.times(X, fmpq(2)), 2 * X),
        (lambda: exact.times(fmpq(2), fmpq(1, 3)), fmpq(2, 3)),
        (lambda: exact.times(X, fmpq(1)), X),
        (lambda: exact.times(X, fmpq(2, 3)), X * 2 / 3),
        (lambda: exact.times(fmpq(2, 3), X), X * 2 / 3),
        (lambda: exact.times(X, Y), X * Y),
        (lambda: exact.plus(X, fmpq(1, 2)), X + sympy.Rational(1, 2)),
        (lambda: exact.plus(X, -X), fmpq(0)),
        (lambda: exact.total([fmpq(1), fmpq(2), fmpq(3)]), fmpq(6)),
        (lambda: exact.total([fmpq(1), X, fmpq(3), Y]), X + Y + 4),
        (lambda: exact.total([fmpq(1), X]), X + 1),
        (lambda: exact.minus(X), -X),
        (lambda: exact.minus(fmpq(1)), fmpq(-1)),
        (lambda: exact.inverse(fmpq(2)), fmpq(1, 2)),
        (lambda: exact.inverse(X), 1 / X),
        (lambda: exact.logarithm(fmpq(1)), fmpq(0)),
        (lambda: exact.logarithm(fmpq(3)), sympy.log(3)),
        (lambda: exact.coefficient(sympy.oo), "not a finite real number"),
        (lambda: exact.coefficient(2 - sympy.oo * X), "not a finite real number"),
        (lambda: exact.coefficient(sympy.nan), "not a finite real number"),
        (lambda: exact.coefficient(1 + sympy.I), "not a finite real number"),
        (lambda: exact.coefficient(X + sympy.Float("0.5")), "not a finite real number"),
        (lambda: exact.plus(ROOT2, sympy.Add(*LOGARITHMS[:298])).args[0].is_Pow, None),
        (lambda: exact.plus(fmpq(1), sympy.Add(*LOGARITHMS[:300])), "a coefficient grew too large"),
        (lambda: exact.linear(2 * X + 1, X), (2, 1)),
        (lambda: [exact.linear(e, X) for e in (Y + 1, X**2, X * Y)], [None, None, (Y, 0)]),
        (lambda: Context(work=59_999).spend(1), None),
        (lambda: Context(work=59_999).spend(2), "the work budget was spent"),
        (lambda: sign_factors(sympy.Add(*LOGARITHMS[:152]) * X), "is too large"),
    ],
)
def test_exact_coefficients_by_hand(ask, wanted):
    if isinstance(wanted, str):
        with pytest.raises(Undecided, match=wanted):
            ask()
    else:
        found = ask()
        assert wanted is None or (found == wanted and type(found) is type(wanted))


@pytest.mark.parametrize(
    ("c", "proof"),
    [
        ((X + 1) ** 12 - sympy.expand((X + 1) ** 12), "expansion"),
        ((X + 1) ** 13 - sympy.expand((X + 1) ** 13), None),
        (sympy.pi**13 * (LN6 - sympy.log(2) - sympy.log(3)), "expansion"),
        (sympy.log(8) - 3 * sympy.log(2, evaluate=False), "expansion"),
        (sympy.log(sympy.E * 2) - 1 - sympy.log(2), "expansion"),
        (sympy.log(sympy.pi**2 / 3) - 2 * sympy.log(sympy.pi) + sympy.log(3), "expansion"),
        (sympy.gamma(sympy.Rational(1, 2), evaluate=False) - sympy.sqrt(sympy.pi), IN_EXP),
        (sympy.sinh(1) - (sympy.E - 1 / sympy.E) / 2, "expansion"),
        (sympy.sin(1) ** 2 + sympy.cos(1) ** 2 - 1, IN_EXP),
        ((1 + ROOT2) ** 2 - 3 - 2 * ROOT2, "separation bound"),
        (sympy.harmonic(101) - sympy.harmonic(101), "separation bound"),
        (sympy.log(206) - sympy.log(2) - sympy.log(103), "expansion"),
        (sympy.log(2) - sympy.log(3), None),
        (constant("exp(1)-19/7"), None),
        (constant("sin(1)-cos(1)"), None),
        (constant("log(2)+log(3)-log(5)"), None),
        (constant("atan(1/2)+atan(1/3)-1"), None),
        (constant("sqrt(2)+sqrt(3)-pi"), None),
        (constant("gamma(1/3)-gamma(1/4)"), None),
        (constant("LambertW(2)-1"), None),
        (constant("atan(1)+atan(2)+atan(3)"), None),
        (ROOT2 - sympy.Rational(14142, 10000), None),
    ],
    ids=str,
)
def test_zeros_say_how_they_are_proved(c, proof):
    assert proved_zero(c) == proof


def test_the_logarithm_of_a_product_of_negative_factors_is_left_alone():
    for product in ((1 - ROOT2) * (1 - sympy.sqrt(3)), -2 * sympy.pi * (1 - ROOT2)):
        assert zeros._log_of_primes(product) == sympy.log(product)


@pytest.mark.parametrize(
    ("c", "key", "flip"),
    [
        (2 - 2 * X, X - 1, -1),
        (3 * X + 2, X + sympy.Rational(2, 3), 1),
        (X - Y, X - Y, 1),
        (Y - X, X - Y, -1),
        (-X, X, -1),
        (X**2 - 2, X**2 - 2, 1),
    ],
)
def test_a_sign_has_one_key(c, key, flip):
    assert sign_key(c) == (key, flip)


@pytest.mark.parametrize(
    ("c", "count"),
    [
        (REAL**2 + REAL + 1, 1),  # of its leading coefficient
        (-(REAL**2) - REAL - 1, 1),
        (REAL**2 - 3 * REAL + 2, 3),
        (-2 * (REAL - B) ** 3, 2),
        ((REAL - B) ** 2 * (REAL + 1), 3),
        (B * (REAL - 1), 1),
        ((REAL - 1) / (REAL + 2), 2),
        ((REAL - B) / (B + 1), 1),
        (sympy.sqrt(REAL + 4) * (REAL - 3), 2),
        (REAL**2 - B, 1),
        (2 * REAL**2 - 3, 3),
        (B * REAL**501, 1),  # only a sum of such a degree is too much
    ],
)
def test_factors_have_the_sign_of_the_whole(c, count):
    at = {REAL: sympy.Rational(-7, 3), B: sympy.Rational(3, 5)}
    found = sign_factors(c)
    assert sympy.sign(sympy.prod(found).xreplace(at)) == sympy.sign(c.xreplace(at))
    assert len([f for f in found if f != 1]) <= count + 1
