"""The sums against other routes, and the laws that hold them together."""

import mpmath
import numpy as np
import pytest
import sympy
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from farfield import encoding
from farfield.numerics.search import Unrecognised
from farfield.numerics.summation import kernel as kernel_
from farfield.numerics.summation import series as series_
from farfield.numerics.summation.complete_monotonicity import has_monotone_slope
from farfield.numerics.summation.kernel import MAX_EXACT, normal_form, terms
from farfield.numerics.summation.methods import find
from farfield.numerics.summation.series import _SetUp, _stretches, exp_series, series
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import precision, to_arb
from farfield.theory.functions.nodes import n

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
        ("Piecewise((-n,n<4),(-2*n,n<9),(-oo,True))", {}, 9),
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
        ("-r*n", "^the bias has free parameters: give values for r, or"),
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


SLOPES = {  # from where on the slope is proved to be completely monotone
    0: (
        *("5", "n", "2*log(1+n)-1/(1+n)", "n+log(2+log(1+n))", "sqrt(1+n)+n/9", "3*log(n+1)"),
        *("-(n+1)^-2", "-2/sqrt(n+3)", "log(log(n+2))", "(log(n+2)+n)^(1/3)", "-1/log(n+2)"),
    ),
    1: ("log(n)", "sqrt(n)", "-1/n", "log(log(n+1))", "log(2*n)", "-n^(-1/2)"),
    None: (
        *("-n", "n+1/(1+n)", "n+cos(n)", "n^2", "2*log(1+n)^2", "n-log(1+n)", "n*log(n+1)"),
        *(
            "-3*log(n+1)",
            "(n+1)^(3/2)",
            "1/(n+1)",
            "2/(n+1)",
            "log(n^2+1)",
            "sqrt(n^2+1)",
            "-1/(n^2+1)",
        ),
        *("2^n", "2^-n", "-2^-n", "(n+1)^n", "-(n+1)^-n", "-sqrt(n+1)", "-1/(9-n)", "sqrt(9-n)"),
    ),
}


def test_monotone_slopes_are_proved_not_assumed():
    for since, texts in SLOPES.items():
        for text in texts:
            held = [has_monotone_slope(read(text), start) for start in (0, 1)]
            assert held == [since == 0, since is not None], text


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


STRETCHES = {  # from k to k with the first letter of a kernel; from where on each class falls
    "where(n<4,0,-oo)": ("0:4 C 0; 4: -oo", [None]),
    "where(n<4,-n,-2*log(n))": ("0:4 G -n; 4: P -2*log(n)", [4]),
    "-|n-7/2|": ("0:4 G n - 7/2; 4: G 7/2 - n", [4]),
    "-abs(n-3)": ("0:3 G n - 3; 3:4 C 0; 4: G 3 - n", [4]),
    "-max(n,5)": ("0:6 C -5; 6: G -n", [6]),
    "-min(n/150,sqrt(n))": ("0:1 -sqrt(n); 1:22500 G -n/150; 22500: A -sqrt(n)", [22500]),
    "max(-n/2,-n/20-2)": ("0:5 G -n/2; 5: G -n/20 - 2", [5]),
    "where(n%2==0,-n/8,-2*log(1+n))": (
        "0: G -n/4 (0 mod 2); 0: P -2*log(2*n + 2) (1 mod 2)",
        [0, 0],
    ),
    "where(n%3==1,-inf,-n/9)": (
        "0: G -n/3 (0 mod 3); 0: -oo (1 mod 3); 0: G -n/3 - 2/9 (2 mod 3)",
        [0, None, 0],
    ),
    "where((n%2==0)&(n>8),-inf,-3/2*log(5+n))": (
        "0:5 P -3*log(2*n + 5)/2 (0 mod 2); 5: -oo (0 mod 2); 0: P -3*log(2*n + 6)/2 (1 mod 2)",
        [None, 0],
    ),
    "-n/9-Mod(n,3)": (
        "0: G -n/3 (0 mod 3); 0: G -n/3 - 10/9 (1 mod 3); 0: G -n/3 - 20/9 (2 mod 3)",
        [0, 0, 0],
    ),
    "-2*log(n+1)*(1+sin(pi*n/2)**2)": (
        "0: P -2*log(4*n + 1) (0 mod 4); 0: P -4*log(4*n + 2) (1 mod 4); "
        "0: P -2*log(4*n + 3) (2 mod 4); 0: P -4*log(4*n + 4) (3 mod 4)",
        [0, 0, 0, 0],
    ),
    "-floor(2*n/5)/2": (
        "0: G -n (0 mod 5); 0: G -n (1 mod 5); 0: G -n (2 mod 5); "
        "0: G -n - 1/2 (3 mod 5); 0: G -n - 1/2 (4 mod 5)",
        [0, 0, 0, 0, 0],
    ),
    "-2*log(1+n)+Heaviside(n-3)": (
        "0:3 P -2*log(n + 1); 3:4 P 1/2 - 2*log(n + 1); 4: P 1 - 2*log(n + 1)",
        [4],
    ),
    "-n*sign(n-4)": ("0:4 G n; 4:5 C 0; 5: G -n", [5]),
    "where(floor(n/3)<5,-n,-2*n)": ("0:15 G -n; 15: G -2*n", [15]),
    "where(n**2-10*n+5<0,-n,-n/2)": ("0:1 G -n/2; 1:10 G -n; 10: G -n/2", [10]),
    "where(log(n+1)>2,-n/3,0)": ("0:7 C 0; 7: G -n/3", [7]),
    "where(n<10**6,-n/7,-n/6)": ("0:1000000 G -n/7; 1000000: G -n/6", [10**6]),
    "where(n<10,0,where(n<3011,-n/9-Mod(n,3),-n))": (
        "0:10 C 0; 4:1004 G -n/3 (0 mod 3); 3:1004 G -n/3 - 10/9 (1 mod 3); "
        "3:1003 G -n/3 - 20/9 (2 mod 3); 3011: G -n",
        [3011],
    ),
    "where(Eq(n//3,5),-1,-n)": ("0:15 G -n; 15:18 C -1; 18: G -n", [18]),
    "where(floor(n/3)<=5,-n,-2*n)": ("0:18 G -n; 18: G -2*n", [18]),
    "where(7-2*floor(n/3)>0,-n,-2*n)": ("0:12 G -n; 12: G -2*n", [12]),
    "-abs(abs(n-9)-4)": (
        "0:5 G n - 5; 5:6 C 0; 6:9 G 5 - n; 9:10 C -4; 10:13 G n - 13; 13:14 C 0; 14: G 13 - n",
        [14],
    ),
    "-n/9-Heaviside(n-5)": ("0:5 G -n/9; 5:6 G -n/9 - 1/2; 6: G -n/9 - 1", [6]),
    "where(3*n-20<0,-1,-n)": ("0:7 C -1; 7: G -n", [7]),
    "where(Eq(3*n,20),-1,-n)": ("0: G -n", [0]),
    "where(n<4,-n,where(n<8,-inf,-2*n))": ("0:4 G -n; 4:8 -oo; 8: G -2*n", [8]),
    "where(n<3,-n-1/(5-n),-n)": ("0:3 -n - 1/(5 - n); 3: G -n", [3]),
    "-n/20+sign(cos(3*n))": ("0: E -n/20 + sign(cos(3*n))", [None]),
    "where(n<30000,-n/1000-sqrt(n+1)/50,-inf)": (
        "0:30000 -n/1000 - sqrt(n + 1)/50; 30000: -oo",
        [None],
    ),
    "where(abs(n-10)<4,-1,-n/5)": (
        "0:7 G -n/5; 7:10 C -1; 10:11 C -1; 11:14 C -1; 14: G -n/5",
        [14],
    ),
    "where(5*sqrt(2*n)>n/10,-n/7,-n/6)": (
        "0:1 G -n/6; 1:5000 G -n/7; "
        "5000:5001 Piecewise((-n/7, 5*sqrt(2)*sqrt(n) > n/10), (-n/6, True)); "
        "5001: G -n/6",
        [5001],
    ),
    "-n/8+where((n>=10)&(n<20),3,0)": ("0:10 G -n/8; 10:20 G 3 - n/8; 20: G -n/8", [20]),
    "-sin(n)**2-n": ("0: S -n - sin(n)**2", [None]),
    "where(sin(n)>0,0,3)-n/8": (  # it rises from 3 to 4
        "0: -n/8 + Piecewise((0, sin(n) > 0), (3, True))",
        [None],
    ),
    "-n-log(1+n)/3": ("0: S -n - log(n + 1)/3", [16]),
    "where(n<3/2,0,-n)": ("0:2 C 0; 2: G -n", [2]),
    "where(n<=2,0,-n/3)": ("0:3 C 0; 3: G -n/3", [3]),
    "where(Eq(n,3),-1,-n)": ("0:3 G -n; 3:4 C -1; 4: G -n", [4]),
    "where(n>sqrt(50),-n,0)": ("0:8 C 0; 8: G -n", [8]),
    "where(abs(n-10)>3*n-16,-1,-n/5)": (
        "0:7 C -1; 7:10 G -n/5; 10:11 G -n/5; 11: G -n/5",  # n - 10 > 3 n - 16 for n < 3 alone
        [11],
    ),
    "where(abs(n-10)>25-2*n,-n/4,-1)": (
        "0:10 C -1; 10:11 C -1; 11:12 C -1; 12: G -n/4",  # 10 - n > 25 - 2 n for n > 15 alone
        [12],
    ),
    "min(-n,-2*log(1+n))+max(-3,-n)": ("0:1 G -2*n; 1:3 -n - 2*log(n + 1); 3: G -n - 3", [3]),
}


@pytest.mark.parametrize("text", STRETCHES)
def test_a_formula_is_cut_where_its_branches_change(text):
    found, (said, falls) = exp_series(read(text)), STRETCHES[text]
    parts = []
    for s in found.stretches:
        kind = "" if s.kernel is None else type(s.kernel).__name__[0] + " "
        of = f" ({s.residue} mod {s.period})" if s.period > 1 else ""
        parts.append(f"{s.start}:{'' if s.end is None else s.end} {kind}{s.bias}{of}")
    assert "; ".join(parts) == said and [s.falls_from() for s in found.last] == falls
    kernels = [s.kernel for s in found.stretches if s.kernel is not None]
    assert found.first_bits == min((k.first_bits for k in kernels), default=128)
    assert found.max_bits == min((k.max_bits for k in kernels), default=3_400)
    bias = encoding(text).bias(np.arange(64))[0] if "5*sqrt" not in text else ()
    for j, value in enumerate(bias):
        held = [s for s in found.stretches if j in s.distances(s.start, s.end or 1 + j)]
        p, k = found.at(j)
        assert [s.bias for s in held] == [p] and k == held[0].index(j)
        assert float(p.subs(n, k)) == pytest.approx(value, abs=1e-12)
    step = 2 * found.period
    for r in range(2 * step):  # far out, the residue up to twice the period that is asked for
        p, k = found.at(step * 10**6 + r)
        far, there = found.eventual(step, r), p.subs(n, k)
        assert far is there or float(far.subs(n, 10**6) - there) == pytest.approx(0, abs=1e-6)


NORMAL_FORMS = {  # a formula, or why it has none
    "-2*log(1+n)": {("log", 1): "-2"},
    "log(exp(-n)*(3/(3*E^(n/2))))": {("n", 1): "-3/2"},
    "-3/2*log(n^2+5*n+6)": {("log", 2): "-3/2", ("log", 3): "-3/2"},
    "-log((2*n+3)*sqrt(n+1))": {("log", "3/2"): "-1", ("log", 1): "-1/2", ("n", 0): "-log(2)"},
    "log((n+1)^3/(n+2))": {("log", 1): "3", ("log", 2): "-1"},
    "-log(2)*n+log(5)": {("n", 1): "-log(2)", ("n", 0): "log(5)"},
    "-log((n+1)^-2*exp(-3*n))": {("n", 1): "3", ("log", 1): "2"},
    "sqrt(2)*log(pi*n+1)": {("log", "1/pi"): "sqrt(2)", ("n", 0): "sqrt(2)*log(pi)"},
    "-(log(1+n)+n)*2": {("n", 1): "-2", ("log", 1): "-2"},
    "log(1/(n+1)+1/(n+3))": {
        **{("log", 1): "-1", ("log", 3): "-1", ("log", 2): "1", ("n", 0): "log(2)"},
    },
    "-exp(log(n+1))/3": {("n", 1): "-1/3", ("n", 0): "-1/3"},
    "-n+((sqrt(2)+1)*(sqrt(2)-1)-1)*log(n+1)": {("n", 1): "-1"},
    "-log(4*n^2-1)": "2*n - 1 is not proved positive",
    "-log(n-3)": "n - 3 is not proved positive",
    "-log(n)": "n is not proved positive",
    "-log(n^9+1)": "a polynomial of degree 9",
    "-log(n^2+1)": "n**2 + 1 has factors that are not linear",
    "-log(n^3+n^2+n+1)": "n**3 + n**2 + n + 1 has factors that are not linear",
    "-log((n+1)^n)": "(n + 1)**n has no factors in closed form",
    "-log(exp(n)+1)": "exp(n) + 1 has no factors in closed form",
    "-n^2": "a product or a power of functions of n",
    "-cosh(n)": "exp(n) is no logarithm of n + h",
    "-log(sqrt(2)*n^2+1)": "a polynomial of degree 2",
    "-floor(n/2)": "floor has no closed form here",
    "cos(n)": "cos has no closed form here",
    "-n*log(1+n)": "a product or a power of functions of n",
    "-log(5-n)": "5 - n is not proved positive",
    "-sqrt(1+n)": "sqrt(n + 1) is no logarithm of n + h",
    "-log(1+n)^2": "a product or a power of functions of n",
}


@pytest.mark.parametrize("text", NORMAL_FORMS)
def test_the_normal_form_or_why_there_is_none(text):
    wanted = NORMAL_FORMS[text]
    if isinstance(wanted, str):
        with pytest.raises(Unrecognised) as why:
            normal_form(read(text))
        assert str(why.value) == wanted
    else:
        form = normal_form(read(text))
        assert {(kind, str(at)): str(c) for (kind, at), c in form.items()} == {
            (kind, str(at)): c for (kind, at), c in wanted.items()
        }


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("-log(n)", 1),
        ("-log(n-3)", 4),
        ("-log(2*n-7)", 4),
        ("((n-3)^3)^(1/3)", 3),  # it may vanish where it is raised to a positive power
        ("((n-3)^-3)^(-1/3)", 4),
    ],
)
def test_factors_are_positive_from_a_start_on(text, start):
    assert normal_form(read(text), start)
    with pytest.raises(Unrecognised, match="is not proved positive"):
        normal_form(read(text), start - 1)


KERNELS = {  # the family; whether it converges, its direction
    "-2*log(1+n)": ("Power(start=0, gamma=0, h=1, r=2)", True, -1),
    "-log(1+n)": ("Power(start=0, gamma=0, h=1, r=1)", False, -1),
    "log(n+2)": ("Power(start=0, gamma=0, h=2, r=-1)", False, 1),
    "-n/2+3": ("Geometric(start=0, gamma=3, alpha=-1/2)", True, -1),
    "n/3": ("Geometric(start=0, gamma=0, alpha=1/3)", False, 1),
    "5": ("Constant(start=0, gamma=5)", False, 0),
    "-3*floor(log(n+2)/log(3))-1": ("StepsKernel(start=0, gamma=-1, a=3, h=2, b=3)", True, -1),
}


@pytest.mark.parametrize("text", KERNELS)
def test_a_family_has_its_numbers(text):
    kernel = find(read(text))
    assert (str(kernel), kernel.converges, kernel.direction) == KERNELS[text]
    with precision(64):
        term = terms(read(text))
        row = sum(map(term, range(3, 20)), arb(0))
        if kernel.checked:
            found = to_arb(kernel.between(3, 20))
            assert found.overlaps(row) and found.rel_accuracy_bits() > 50
            assert kernel.monotone_from == 0
        if kernel.converges:
            assert (to_arb(kernel.tail(3)) - to_arb(kernel.tail(20))).overlaps(row)


HARD = "-log(n+2)*(2+sin(n**2))-log(log(n+2))"


@pytest.mark.parametrize(
    ("text", "converges"),
    [
        *(("-n", True), ("-log(1+n)", False), ("where(n%2==0,-n,-log(1+n))", False), (HARD, None)),
        ("cos(n)+where(n%6==0,1,0)-2*log(1+n)", True),  # its waves by any method
        ("cos(n)+where(n%7==0,1,0)-2*log(1+n)", None),  # by those without waves alone
    ],
)
def test_a_series_converges_where_each_of_its_classes_does(text, converges):
    assert exp_series(read(text)).converges is converges


@pytest.mark.parametrize(
    ("text", "most", "stretches"),
    [
        ("cos(n)+where(n%6==0,1,0)-2*log(1+n)", 6, 6),
        ("cos(n)+where(n%6==0,1,0)-2*log(1+n)", 5, 1),  # too many classes
        ("cos(n)+where(n%7==0,1,0)-2*log(1+n)", 48, 1),  # a class without a sum
        ("where(n%7==0,-inf,-2*log(1+n))", 6, 7),  # a class that is masked does not count
    ],
)
def test_a_formula_is_cut_into_so_many_classes(monkeypatch, text, most, stretches):
    monkeypatch.setattr(series_, "MAX_CLASSES", most)
    bias = read(text)
    assert len(_stretches(bias, _SetUp())) == stretches


def test_a_term_whose_parts_are_all_masked_is_no_error():
    """As at n = 1, where cos(3 n) < 0."""
    both = "log(exp(where(cos(3*n)>0,-n,-inf))+exp(where(cos(3*n)>0,-2*n,-inf)))"
    assert exp_series(read(both)).gap == "a bias that jumps with its oscillations"


def test_a_formula_of_too_many_nodes_has_no_normal_form(monkeypatch):
    p = read("-2*log(1+n)")
    nodes = len([*sympy.preorder_traversal(p)])
    monkeypatch.setattr(kernel_, "MAX_NODES", nodes)
    assert normal_form(p)
    monkeypatch.setattr(kernel_, "MAX_NODES", nodes - 1)
    with pytest.raises(Unrecognised, match="too large"):
        normal_form(p)


def test_a_rational_tail_stays_rational_up_to_some_distance():
    with precision(64):
        tails = [find(read("-log(2)*n")).tail(j) for j in (MAX_EXACT, MAX_EXACT + 1)]
    assert tails[0] == fmpq(2) / 2**MAX_EXACT and isinstance(tails[1], arb)
    assert (tails[1] * 2).overlaps(arb(tails[0]))


def test_short_rows_of_rational_weights_are_rational():
    with precision(64):
        assert exp_series(read("where(n<3,-log(1+n),-oo)")).total() == fmpq(11, 6)


def test_heads_that_differ_by_a_factor_evaluate_what_they_share_once(monkeypatch):
    asked, compiled = [], series_.compile_ball

    def counted(e):
        run = compiled(e)
        return lambda at: asked.append(at.get(n)) or run(at)

    monkeypatch.setattr(series_, "compile_ball", counted)
    with precision(64):
        for c in (2, 3):
            p = -c * n * sympy.atan(n + 5)
            row = series(sympy.Piecewise((p, n < 40), (-sympy.oo, True)))
            assert to_arb(row.total()).overlaps(sum(map(terms(p), range(40)), arb(0)))
    assert asked.count(fmpq(20)) == 1
