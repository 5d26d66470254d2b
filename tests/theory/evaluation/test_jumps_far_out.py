"""Tables of formulas that jump and turn, far out, beside Python's integers and mpmath."""

import math
import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from farfield import Verdict, attention_resolution, check_convergence, encoding
from farfield.theory.formula.grammar import read
from farfield.theory.values import tabulate


def whole(draw, growth=True):
    """An integer: its text, and a function of the distance and a modulus (None: the integer)."""
    a, b, p = draw.randint(1, 10 ** draw.randint(1, 16)), draw.randint(0, 99), draw.randint(2, 5)
    leaves = [
        (f"({a}*n+{b})", lambda n, m: a * n + b),
        (f"n^{p}", lambda n, m: pow(n, p, m)),
        ("(n*(n+1)/2)", lambda n, m: n * (n + 1) // 2),
        (f"floor(n*{a}/{b + 1})", lambda n, m: n * a // (b + 1)),
    ]
    if growth:
        leaves.append((f"{2 * p - 1}^n", lambda n, m: pow(2 * p - 1, n, m)))
    text, value = draw.choice(leaves)
    if draw.random() < 0.4:
        more, other = whole(draw, growth)
        if draw.random() < 0.5:
            return f"({text}+{more})", lambda n, m: value(n, m) + other(n, m)
        return f"({text})*({more})", lambda n, m: value(n, m) * other(n, m)
    return text, value


def parity(draw):
    """A sign that a whole number gives."""
    text, value = whole(draw)
    return draw.choice([f"(-1)^({text})", f"cos(pi*({text}))"]), lambda n: (-1) ** (value(n, 2) % 2)


def remainder(draw):
    """A remainder, or the fractional part of a rational multiple."""
    text, value = whole(draw)
    m, p = draw.randint(2, 50), draw.randint(1, 9)
    if draw.random() < 0.5:
        return f"Mod({text},{m})", lambda n: value(n, m) % m
    return f"frac(({text})*{p}/{m})", lambda n: Fraction(value(n, m) * p % m, m)


def wave(draw):
    """A sine of an integer over 7, its sign, or a branch by its sign."""
    text, value = whole(draw, growth=False)
    name, scale = draw.choice(["sin", "cos"]), draw.choice([1, 7])

    def turn(n):
        with mpmath.workprec(900):
            return getattr(mpmath, name)(mpmath.mpf(value(n, None)) / scale)

    inside = f"{name}(({text})/{scale})"
    return draw.choice(
        [
            (inside, turn),
            (f"sign({inside})", lambda n: 1 if turn(n) > 0 else -1 if turn(n) < 0 else 0),
            (f"where({inside}>1/3,-n/8,-n/9)", lambda n: Fraction(-n, 8 if turn(n) > 1 / 3 else 9)),
        ]
    )


KINDS = (parity, remainder, wave)


def failures(count, seed):
    """Entries that differ from the value: (formula, distance, entry, value)."""
    draw = random.Random(seed)
    for k in range(count):
        text, value = KINDS[k % 3](draw)
        at = {0, 1, *(int(10 ** draw.uniform(0, 9)) for _ in range(8))}
        at = sorted(at | {2 ** draw.randrange(10, 30) + j for j in (-1, 0, 1)})
        for n, entry in zip(at, tabulate(read(text), np.array(at)), strict=True):
            right = float(mpmath.mpmathify(value(n)))
            if not abs(entry - right) <= 1e-12 * max(1, abs(right)):
                yield text, n, entry, right


@pytest.mark.parametrize(
    ("count", "seed"), [(90, 1), pytest.param(3000, 2, marks=pytest.mark.slow)]
)
def test_every_entry_is_its_value(count, seed):
    assert not list(failures(count, seed))


@pytest.mark.parametrize(
    ("formula", "right"),
    [
        ("floor(1-tanh(3*n))", 0),
        ("ceil(1-erf(n))", 1),
        ("frac(erf(n+1))", 1),
        ("frac(tanh(n)/2)", 0.5),
        ("sinh(n)-cosh(n)", 0),
        ("floor(-coth(n))", -2),
        ("sign(coth(n)-1)", 1),
        ("floor(n/8-exp(-n))-n/8", -1),
        ("ceil((exp(-n)-n)/8)+n/8", 1),
        ("Mod(n/8-exp(-n),5)", 5),
        ("Mod(n/8+exp(-n),7)+Mod(-n/8-exp(-n),7)", 7),
        ("ceil(cos(exp(-n)))", 1),
        ("floor(max(cos(exp(-n)),0))", 0),
        ("floor(3*sigmoid(n))", 2),
        ("floor(log(cos(exp(-n))))", -1),
        ("ceil(sqrt(tanh(n)))", 1),
        ("(exp(erf(exp(-n)))-1)^(1/3)", 0),
        ("floor(where(n%3>0,tanh(-n),n))", -1),
        ("floor(exp(exp(-n)))", 1),
        ("sqrt(1+sinh(n)^2)-cosh(n)", 0),
        ("n-log(1+exp(n))", 0),
        ("where(tanh(n)<tanh(n+1),-1,-2)", -1),
    ],
)
def test_what_lacks_little_of_a_whole_number_is_on_its_side(formula, right):
    """Its distance from the whole number has more zeros than 20,480 bits."""
    assert tabulate(read(formula), [20_000, 10**9]).tolist() == [right, right]


@pytest.mark.parametrize(
    ("formula", "right"),
    [
        ("-sqrt(harmonic(n))", [0, -1]),
        ("-sqrt(abs(harmonic(n)-1))", [-1, 0]),
        ("sign(harmonic(n+1)-3/2)", [-1, 0]),
    ],
)
def test_sums_of_few_terms_are_exact(formula, right):
    assert tabulate(read(formula), [0, 1]).tolist() == right


@pytest.mark.parametrize(
    ("formula", "right"),
    [
        ("Mod(2^n,3)", lambda n: pow(2, n, 3)),
        ("Mod(factorial(n),5)", lambda n: 0),
        ("(-1)^floor(2^n+1)", lambda n: -1),
        ("log(log(1+exp(-n)))", lambda n: -n),
        ("log(exp(exp(-n))-1)", lambda n: -n),
        ("log(1-cos(exp(-n)))", lambda n: -2 * n - mpmath.log(2)),
        ("log(coth(n)-1)", lambda n: mpmath.log(2) - 2 * n),
        ("cos(2*pi*(2^n)/7)", lambda n: mpmath.cos(2 * mpmath.pi * pow(2, n, 7) / 7)),
        ("exp(n)*(n+1)^(-3)", lambda n: mpmath.exp(n) / (n + 1) ** 3 if n < 711 else mpmath.inf),
        ("log(acos(tanh(n)))", lambda n: mpmath.log(2) - n),
        ("log(acosh(1+exp(-n)))", lambda n: mpmath.log(2) / 2 - mpmath.mpf(n) / 2),
        ("log(acos(1-exp(-n)))", lambda n: mpmath.log(2) / 2 - mpmath.mpf(n) / 2),
        ("log(1-n/(n+exp(-n)))", lambda n: -n - mpmath.log(n)),
        ("log(1-tanh(n)^2)", lambda n: mpmath.log(4) - 2 * n),
        ("-atanh(tanh(n))", lambda n: -n),
        ("asin(-tanh(n))", lambda n: -mpmath.pi / 2),
        ("acos(-erf(n))", lambda n: mpmath.pi),
        ("1/sqrt(cosh(n)^2-sinh(n)^2)", lambda n: 1),
        ("ceil(softplus(n))", lambda n: n + 1),
        ("asinh(n-exp(n+9))", lambda n: -n - 9 - mpmath.log(2)),
        ("floor(log(exp(n)+n))", lambda n: n),
        ("floor(logaddexp(n,3))", lambda n: n),
        ("log(sqrt(1+exp(2*n))-exp(n))", lambda n: -n - mpmath.log(2)),
        ("ceil(softplus(3*n-5))", lambda n: 3 * n - 4),
    ],
)
def test_no_precision_is_enough_but_another_form_is(formula, right):
    """Near 1 the terms cancel, and integers are too large for balls."""
    at = [100, 710, 2639, 5001, 16385, 65537, 10**6, 10**9]
    assert tabulate(read(formula), at) == pytest.approx([float(right(n)) for n in at], rel=1e-12)


def test_a_logarithm_jumps_at_powers_far_out():
    at = [2**k - j for k in (17, 40, 52) for j in (2, 1)]
    assert tabulate(read("floor(log(n+1)/log(4))"), at).tolist() == [
        ((k + 1).bit_length() - 1) // 2 for k in at
    ]


@pytest.mark.parametrize(
    ("formula", "right"),
    [
        ("log(1-exp(-n))", lambda n: mpmath.log1p(-mpmath.exp(-n))),
        ("log(1+exp(-n)-exp(-2*n))", lambda n: mpmath.log1p(mpmath.exp(-n) - mpmath.exp(-2 * n))),
        ("3*cos(exp(-n))-3", lambda n: -6 * mpmath.sin(mpmath.exp(-n) / 2) ** 2),
        ("exp(exp(-n))-1", lambda n: mpmath.expm1(mpmath.exp(-n))),
    ],
)
def test_small_values_have_all_their_digits(formula, right):
    """1.7e-4 of them were lost at n = 30, where 1e-14 is left of terms near 1."""
    at = [3, 10, 30, 36, 50, 200]
    assert tabulate(read(formula), at) == pytest.approx(
        [float(right(n)) for n in at], rel=1e-12, abs=0
    )


def test_remainders_of_binomials_with_thousands_of_digits():
    at = [5, 30, 5001, 9999]
    assert tabulate(read("Mod(binomial(2*n,n),3)"), at).tolist() == [
        math.comb(2 * n, n) % 3 for n in at
    ]


@pytest.mark.parametrize(
    ("text", "values"),  # at 0, 1 and 2, with period 12 * 43: the series of its 0s diverges
    [
        ("where(frac(n*(2*n+4)/86)>0,0,1)", [1, 0, 0]),  # which SymPy takes for an integer
        ("1-sign(atan(Mod(n,12)))", [1, 0, 0]),  # for irrational, and so positive
        ("1-sign(asin(Mod(n,2)))", [1, 0, 1]),
        ("1-sign(acos(1-Mod(n,2)))", [1, 0, 1]),
        ("0^((2*Mod(n,3)-2)^2/3)", [0, 1, 0]),  # for no integer, and so not 0
    ],
)
def test_facts_that_sympy_has_wrong(text, values):
    assert tabulate(read(text), [0, 1, 2]).tolist() == values
    assert check_convergence(f"-(2-3/2*({text}))*log(n)").verdict is Verdict.DIVERGES


def test_powers_of_minus_one_whose_exponents_are_balls():
    at = range(40)
    binomials = [math.comb(n, 3) for n in at]
    signs = [1 - 2 * (k % 2) for k in binomials]
    halves = [math.nan if k % 2 else 1 - k % 4 for k in binomials]
    assert tabulate(read("(-1)^binomial(n,3)"), at).tolist() == signs
    assert tabulate(read("cos(pi*binomial(n,3))"), at).tolist() == signs
    np.testing.assert_array_equal(tabulate(read("(-1)^(binomial(n,3)/2)"), at), halves)


@pytest.mark.parametrize(
    "text", ["(-1)^binomial(2*n,n)", "Mod(gamma(n+1),3)", "Mod(binomial(n^300,9999),7)"]
)
def test_a_product_of_too_many_factors_is_not_written_out(text):
    assert np.isnan(tabulate(read(text), [10**9 + 1])).all()


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(k, marks=pytest.mark.slow) for k in range(3, 20))]
)
def test_a_value_lies_within_the_bounds_beside_it(seed):
    draw = random.Random(seed)
    bias, _ = KINDS[seed % 3](draw)
    resolution = attention_resolution(f"{bias}-n/{draw.randint(9, 999)}", draw.randint(50, 300))
    low, high = resolution.bounds
    assert (low or 0) <= resolution.value <= high


@pytest.mark.parametrize(
    "formula",
    [
        "sqrt(1-coth(n+1))*sqrt(1-coth(n+2))",
        "-max(n,atanh(2*n+1))",
        "-relu(asin(n+1))",
        "acos(1+exp(-n))^2",
        "acosh(1-exp(-n))^2",
        "atanh(coth(n+1))",
        "-abs(asin(-coth(n+1)))",
    ],
)
def test_no_form_has_a_value_where_the_formula_has_none(formula):
    """Just outside a domain; the square of what is no real number is one."""
    assert np.isnan(tabulate(read(formula), [10, 20_000, 10**9])).all()


@pytest.mark.parametrize("far", [152, 600])
def test_a_value_near_an_end_of_a_domain_is_no_skipped_term(far):
    text = f"-sqrt(cosh(n+{far})^2-sinh(n+{far})^2)"
    assert encoding(text).bias([0, 1, 5])[0].tolist() == [-1, -1, -1]
    assert np.isnan(encoding(f"-acosh(tanh(n+{far}))").bias([0, 1, 5])).all()
