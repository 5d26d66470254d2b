"""The sums against other routes, and the laws that hold them together."""

import mpmath
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from farfield import encoding
from farfield.numerics.search import Unrecognised
from farfield.numerics.summation.complete_monotonicity import has_monotone_slope
from farfield.numerics.summation.kernel import normal_form
from farfield.numerics.summation.series import series
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import precision, to_arb

CONVERGENT = [
    "-n/2",
    "-n/256",
    "-log(2)*n",
    "-2*log(1+n)",
    "-6/5*log(1+n/3)",
    "-log(1+n)^2",
    "-log(3+n/256)^2",
    "-log(1+(n/256)^2)",
    "-3/2*log(n^2+n+7)",
    "-sqrt(n)",
    "-n^(3/10)/2",
    "-n^2/10^6",
    "-n^(11/10)/10^4",
    "-3*n^(99/100)",
    "-exp(1/2)*(n+1/100)^(3/2)",
    "-(n-20)^2/50",
    "-n/100-log(1+n)",
    "-n/100+3*log(1+n)",
    "-log(1+n)^2/2+log(1+n)",
    "-|n-7/2|",
    "-Max(n,5)",
    "Piecewise((0,n<4),(-oo,True))-n/2",
    "Piecewise((-n,n<10),(-2*log(n),True))",
    "-log(n+2)-2*log(log(n+2))",
    "-log(n+3)-2*log(log(n+3))",
    "-2*log(1+n)+Heaviside(n-3)",
    "-sqrt(n)+1/2*log(1+n)-1/2*log(1+n)",
]


def ball(value, bits=128):
    with precision(bits):
        return to_arb(value())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", CONVERGENT)
def test_partial_sum_and_tail_make_the_total(text):
    s = series(read(text))
    for j in (0, 1, 3, 10, 200, 2000):
        assert ball(lambda j=j: s.partial(j) + s.tail(j) - s.total()).contains(0)
        assert ball(lambda j=j: s.tail(j) - s.tail(j + 1) - s.term(j)).contains(0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", CONVERGENT)
def test_two_precisions_agree_and_the_higher_is_sharper(text):
    s = series(read(text))
    for j in (0, 7, 5000):
        low, high = ball(lambda j=j: s.tail(j), 96), ball(lambda j=j: s.tail(j), 400)
        assert low.overlaps(high)
        assert high.is_exact() or high.rel_accuracy_bits() > 300
        assert low.is_exact() or low.rel_accuracy_bits() > 64


def test_totals_against_special_functions_of_another_library():
    with mpmath.workdps(50):
        kerple = mpmath.zeta(mpmath.mpf("1.2"))
        qin = 256 * mpmath.im(mpmath.digamma(256j))
        square = mpmath.nsum(lambda i: (1 + i * i) ** mpmath.mpf("-1.5"), [0, mpmath.inf])
        for text, value in (
            ("-1.2*log(1+n)", kerple),
            ("-log(1+(n/256)^2)", qin),
            ("-1.5*log(1+n^2)", square),
        ):
            total = ball(series(read(text)).total)
            assert abs(value - mpmath.mpf(total.mid().str(45, radius=False))) < 1e-30


@pytest.mark.parametrize(
    ("f", "options", "support"),
    [
        ("window", {"w": "15/2"}, 8),
        ("window", {"w": 7, "dialect": "inclusive"}, 8),
        ([0, -1, -2], {"tail": "cut"}, 3),
        ("Piecewise((0,n<4),(-oo,True))-n/2", {}, 4),
        ("-n", {}, None),
    ],
)
def test_support_is_read_off_the_structure(f, options, support):
    assert series(encoding(f, **options).head(1)).support == support


@pytest.mark.parametrize(
    "text, why",
    [
        ("-log(n)", "n = 0"),
        ("-1/n", "n = 0"),
        ("Piecewise((-oo,n<3),(-n,True))", "b_0"),
        ("-2*log(|n-5|)", "n = 5"),
        ("-r*n", "free parameters"),
    ],
)
def test_terms_must_be_finite_from_zero(refusal, text, why):
    refusal(why, series, read(text))


@pytest.mark.parametrize(
    "texts",
    [
        ("-n/2", "log(exp(-n/2))", "-log(exp(n/2))", "-log(cosh(n/2)+sinh(n/2))", "-n/4-n/4"),
        (
            "-2*log(1+n)",
            "log(1/(1+n)**2)",
            "log((1+n)**-2)",
            "-log(n^2+2*n+1)",
            "log(1/(1+n))+log(1/(1+n))",
            "-2*log(1+n)^2/log(1+n)",
            "-log(4)/log(2)*log(1+n)",
        ),
        ("-n-2", "-sqrt(n^2+4*n+4)"),
        ("-n+log(1+n)", "log(exp(-n)*(1+n))", "log(exp(-2*n)*(1+n)^2)/2"),
        ("-log(1+n)", "log(1-n/(1+n))", "-log(1+n^2+2*n)/2"),
        ("log(3+2*n)-log(1+n)-log(2+n)", "log(1/(1+n)+1/(2+n))"),
        ("-log(1+n)-log(2+n)/2", "-log((1+n)*sqrt(2+n))", "-log(sqrt(n^2+3*n+2))-log(1+n)/2"),
        ("-log(2+3*n)-log(5+n)", "-log(10+17*n+3*n^2)", "log(1/(n+5))-log(3*n+2)"),
    ],
)
def test_identities_do_not_change_the_normal_form(texts):
    first, *others = (normal_form(read(text)) for text in texts)
    constant = ("n", 0)
    for other in others:
        assert other.keys() | {constant} == first.keys() | {constant}
        for k in other.keys() | first.keys():
            difference = sympy.N(other.get(k, 0) - first.get(k, 0), 30)
            assert difference == pytest.approx(0, abs=1e-25)


def test_monotone_slopes_are_proved_not_assumed():
    for text in ("-2*log(1+n)+1/(1+n)", "-n-log(2+log(1+n))", "-sqrt(1+n)-n/9"):
        assert has_monotone_slope(-read(text), 0)
    for text in ("-n-1/(1+n)", "-n-cos(n)", "-n^2", "-2*log(1+n)^2", "-n+log(1+n)"):
        assert not has_monotone_slope(-read(text), 0)


@pytest.mark.parametrize(
    "text",
    [
        "cos(n)",
        "-n*log(1+n)",
        "-log(n)",
        "-log(5-n)",
        "-floor(n/2)",
        "-sqrt(1+n)",
        "-log(1+n)^2",
        "-log(1+n^2)",
    ],
)
def test_other_formulas_are_not_recognised(text):
    with pytest.raises(Unrecognised):
        normal_form(read(text))


@given(
    a=st.fractions(min_value="1/40", max_value=5, max_denominator=40),
    b=st.fractions(min_value="1/40", max_value=5, max_denominator=40),
    family=st.sampled_from(
        [
            "-({a})*n",
            "-(1+{a})*log(1+({b})*n)",
            "-({a})*n^({b}+1/4)",
            "-({a})*log(1+({b})*n)^2",
            "-(1/2+{a})*log(1+({b})*n^2)",
            "-({a})*(n-{b})^2",
        ]
    ),
)
@settings(max_examples=20)
def test_sums_of_random_kernels(a, b, family):
    s = series(read(family.format(a=a, b=b)))
    low, high = ball(s.total, 80), ball(s.total, 250)
    assert low.overlaps(high) and high.rel_accuracy_bits() > 160
    assert ball(lambda: s.partial(9) + s.tail(9) - s.total()).contains(0)
