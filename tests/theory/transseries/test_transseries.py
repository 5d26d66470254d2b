"""Transseries against numbers: what an expansion leaves out is as small as it says, far out."""

import itertools
import math
import random

import mpmath
import pytest
import sympy
from flint import fmpq

from farfield.theory.algebra.exceptions import NotReal, OrderTooLow, Undecided
from farfield.theory.coefficients.signs import Context
from farfield.theory.convergence import check_convergence
from farfield.theory.formula.grammar import read
from farfield.theory.formula.parameters import parameter
from farfield.theory.functions.nodes import n
from farfield.theory.transseries.arithmetic import (
    UNIT,
    Monomial,
    Transseries,
    collected,
    compare,
    drop_lead,
    iterated_log,
    larger,
    log1p_coefficient,
    log_index,
    normalised,
    size,
    split,
    taylor,
    with_proved_lead,
)
from farfield.theory.transseries.expansion import direction, eventual, transseries
from farfield.theory.transseries.scale import term_expression

FAR = (10**12, 10**25, 10**40)


def random_expression(rng, depth):
    """An exp-log expression in n that stays real and of moderate growth."""
    if depth == 0:
        return rng.choice(["n", "log(n)", "log(log(n))", "1/n", "2", "1/3", "pi", "sqrt(n)"])
    a, b = (random_expression(rng, depth - 1) for _ in range(2))
    return rng.choice(
        [
            f"({a}+{b})",
            f"({a}-{b})",
            f"({a})*({b})",
            f"({a})/({b}+n)",
            f"log(1+({a})**2)",
            f"exp(-({a})**2/(1+({a})**2))",
            f"sqrt(1+({a})**2)",
            f"1/(1+({b})**2)",
            f"atan({a})",
            f"exp(-n/(2+log(n)))+{a}",
            f"erf({a})",
            f"tanh({b})",
            f"sin(1/(1+({a})**2))",
            f"loggamma(2+({a})**2)/(1+({a})**2)",
            f"asinh({a})",
            f"digamma(2+({b})**2)",
            f"LambertW(1+({a})**2)",
            f"(1+({a})**2)**(1/3)",
        ]
    )


def value(e, at):
    f = sympy.lambdify(n, e, "mpmath")
    return mpmath.mpf(f(mpmath.mpf(at)))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("count", [6, pytest.param(24, marks=pytest.mark.slow)])
def test_what_is_left_out_is_as_small_as_it_says(count):
    """|e - sum of the terms|/remainder does not grow from 10^12 to 10^40."""
    rng = random.Random(7)
    drawn = (read(random_expression(rng, rng.choice((1, 2, 2, 3)))) for _ in itertools.count())
    formulas = list(itertools.islice((e for e in drawn if e.has(n)), count))
    open_ones = []
    for e in formulas:
        try:
            g = transseries(e, Context(order=4))
        except OrderTooLow:
            open_ones.append(e)
            continue
        total = sympy.Add(*(term_expression(m, c) for m, c in g.terms))
        error = None if g.remainder is None else term_expression(g.remainder)
        with mpmath.workdps(700):
            ratios = []
            for at in FAR:
                gap = abs(value(e, at) - value(total, at))
                scale = (
                    value(error, at)
                    if error is not None
                    else abs(value(e, at)) * mpmath.mpf(10) ** -600
                )
                lost = scale < abs(value(e, at)) * mpmath.mpf(10) ** -650
                ratios.append(mpmath.mpf(0) if lost else gap / scale)
            assert max(ratios) < 1e20 and ratios[2] <= 10 * max(ratios[:2]) + 1e-6, (e, ratios)
    assert len(open_ones) <= 4, open_ones


def test_terms_descend_and_lie_above_the_remainder():
    rng, seen = random.Random(3), 0
    for _ in range(60):
        try:
            g = transseries(read(random_expression(rng, 2)), Context())
        except (Undecided, OrderTooLow, NotReal):
            continue
        seen += 1
        monomials = [m for m, _ in g.terms]
        assert all(compare(a, b, g.context) > 0 for a, b in itertools.pairwise(monomials))
        if g.remainder is not None and monomials:
            assert compare(monomials[-1], g.remainder, g.context) > 0
    assert seen >= 50


def test_monomials_are_ordered_by_growth(context):
    n_, l1, l2 = (iterated_log(k) for k in range(3))
    products = Monomial((), [(l1.times(l1, context), fmpq(-1))]), l1.times(l2, context)
    for less, more in (
        (Monomial((fmpq(-2),)), Monomial((fmpq(-1), fmpq(5)))),
        (products[0], Monomial((fmpq(-2),))),
        (l1 ** fmpq(99), n_),
        (l2 ** fmpq(99), l1),
        (n_ ** fmpq(99), Monomial((), [(n_, fmpq(1, 100))])),
        (n_ ** fmpq(99), Monomial((), [(products[1], fmpq(1))])),
    ):
        assert compare(less, more, context) < 0 < compare(more, less, context)
    assert size(n_.times(n_ ** fmpq(-1), context), context) == 0
    assert size(Monomial((sympy.sqrt(2) - 1,)), context) > 0


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("log(1+n)", "1*L1 + 1*n^-1 + -1/2*n^-2 + 1/3*n^-3 + O(n^-4)"),
        ("n**2-n*log(n)", "1*n^2 + -1*n*L1"),
        ("exp(log(n)*2)", "1*n^2"),
        ("log(n**3)", "3*L1"),
        ("1/(1+1/log(n))", "1*1 + -1*L1^-1 + 1*L1^-2 + -1*L1^-3 + O(L1^-4)"),
        (
            "exp(n+1/n)",
            "1*exp(1*n) + 1*n^-1*exp(1*n) + 1/2*n^-2*exp(1*n) + 1/6*n^-3*exp(1*n) "
            "+ O(n^-4*exp(1*n))",
        ),
        ("sin(1/n)", "1*n^-1 + -1/6*n^-3 + O(n^-5)"),
        ("cosh(n)-sinh(n)", "1*exp(-1*n)"),
        ("cos(1/n)", "1*1 + -1/2*n^-2 + 1/24*n^-4 + O(n^-5)"),
        ("exp(1/n)", "1*1 + 1*n^-1 + 1/2*n^-2 + 1/6*n^-3 + O(n^-4)"),
        ("sqrt(n+1)", "1*n^1/2 + 1/2*n^-1/2 + -1/8*n^-3/2 + 1/16*n^-5/2 + O(n^-7/2)"),
        ("n**(1/3)*(1+1/n)**2", "1*n^1/3 + 2*n^-2/3 + 1*n^-5/3"),
        ("(2*n-1)**(-2)", "1/4*n^-2 + 1/4*n^-3 + 3/16*n^-4 + 1/8*n^-5 + O(n^-6)"),
        ("1/(n+log(n))", "1*n^-1 + -1*n^-2*L1 + 1*n^-3*L1^2 + -1*n^-4*L1^3 + O(n^-5*L1^4)"),
        ("exp(3*log(log(n))+log(n)/2)", "1*n^1/2*L1^3"),
        ("exp(sqrt(log(n)))", "1*exp(1*L1^1/2)"),
        ("log(n**2*exp(-3*n)*log(n))", "-3*n + 2*L1 + 1*L2"),
        ("log(2*n)", "1*L1 + log(2)*1"),
        ("(a+1)*n+sqrt(2)*n", "(a + 1 + sqrt(2))*n"),
        ("pi*n-sqrt(2)*log(n)+log(6)-log(2)-log(3)", "pi*n + -sqrt(2)*L1"),
        ("n**log(6)-n**(log(2)+log(3))", "0"),
        ("n**log(6)+2*n**(log(2)+log(3))", "3*n^log(6)"),
        (
            "(1-1/n)**n",
            "exp(-1)*1 + -exp(-1)/2*n^-1 + -5*exp(-1)/24*n^-2 + -5*exp(-1)/48*n^-3 + O(n^-4)",
        ),
        (
            "log(n+exp(n))",
            "1*n + 1*n*exp(-1*n) + -1/2*n^2*exp(-2*n) + 1/3*n^3*exp(-3*n) + O(n^4*exp(-4*n))",
        ),
    ],
)
def test_expansions(text, shown, context):
    assert repr(transseries(read(text), context)) == shown


def test_like_terms_are_collected_however_they_are_written(context):
    a, b, c = (Monomial((e,)) for e in (sympy.log(6), sympy.log(2) + sympy.log(3), fmpq(1)))
    found = collected([(c, fmpq(7)), (a, fmpq(2)), (UNIT, fmpq(1)), (b, fmpq(3))], context)
    assert found == [(a, 5), (c, 7), (UNIT, 1)] and a != b and compare(a, b, context) == 0
    assert collected([(a, fmpq(2)), (b, fmpq(-2)), (UNIT, fmpq(1))], context) == [(UNIT, 1)]
    assert collected([(c, fmpq(2)), (UNIT, fmpq(0)), (c, fmpq(-2))], context) == []
    assert [larger(x, y, context) for x, y in ((a, c), (c, a), (None, c), (c, None))] == [
        a,
        a,
        c,
        c,
    ]
    assert larger(None, None, context) is None


def test_the_place_of_an_iterated_logarithm(context):
    l1, growing = iterated_log(1), Monomial((), [(iterated_log(0), fmpq(1))])
    others = (UNIT, iterated_log(0), l1 ** fmpq(2), l1.times(growing, context), growing)
    assert [log_index(m, context) for m in (l1, iterated_log(2), iterated_log(5))] == [1, 2, 5]
    assert not any(log_index(m, context) for m in others)
    assert log_index(Monomial((fmpq(0), sympy.sin(1) ** 2 + sympy.cos(1) ** 2)), context) == 1


def test_powers_are_products_up_to_the_twelfth():
    g = transseries(n + 1, Context(order=20))
    for k in range(13):
        binomial = [(Monomial((fmpq(k - j),)), fmpq(math.comb(k, j))) for j in range(k + 1)]
        assert ((g ** fmpq(k)).terms, (g ** fmpq(k)).exact) == (tuple(binomial), True)
    assert not (g ** fmpq(13)).exact and repr((g - g) ** fmpq(0)) == "1*1"


def test_operations_keep_the_largest_remainder(context):
    n_, l1 = iterated_log(0), iterated_log(1)
    f, g = (Transseries(context, [(m, fmpq(2))], r) for m, r in ((n_, l1), (l1, UNIT)))
    zero = Transseries(context)
    shown = [f + g, f - g, 3 - g, f * g, g * f, g * n_, f * fmpq(3), f * zero, f * 0, zero * f]
    assert [*map(repr, shown)] == [
        "2*n + O(L1)",
        "2*n + O(L1)",
        "-2*L1 + O(1)",
        "4*n*L1 + O(n)",
        "4*n*L1 + O(n)",
        "2*n*L1 + O(n)",
        "6*n + O(L1)",
        "0",
        "0",
        "0",
    ]
    quotients = [g / transseries(n + 1, context), 2 / transseries(log_n := read("log(n)"), context)]
    assert repr(quotients[0]) == "2*n^-1*L1 + O(n^-1)" and repr(quotients[1]) == "2*L1^-1"
    growth = transseries(n + 2 * log_n + 3 * read("log(log(log(n)))") + 1 / n, context)
    assert repr(growth.exp()).startswith("1*n^2*L2^3*exp(1*n) + 1*n*L2^3*exp(1*n) + 1/2*L2^3*exp")
    assert repr(transseries(-3 * read("log(log(n))"), context).exp()) == "1*L1^-3"
    assert Monomial((fmpq(2),), [(n_, fmpq(1))]) ** fmpq(0) == UNIT
    long = transseries(sum(n**k for k in range(6)), context)
    assert repr(long) == "1*n^5 + 1*n^4 + 1*n^3 + 1*n^2 + O(n)"
    assert repr(drop_lead(long)) == "1*n^4 + 1*n^3 + 1*n^2 + O(n)"
    infinite, constant, small = split(transseries(3 + n + 1 / n, context))
    assert (infinite, constant, repr(small)) == ([(n_, 1)], 3, "1*n^-1")
    for parts in ((), ((l1, fmpq(1)),)):
        with pytest.raises(OrderTooLow):
            split(Transseries(context, parts, UNIT))
        with pytest.raises(OrderTooLow):
            taylor(log1p_coefficient, Transseries(context, (), UNIT))
    below = [(n_, fmpq(1)), (UNIT, fmpq(1))]
    assert repr(normalised(below, l1, context)) == "1*n + O(L1)"
    assert repr(normalised(below, n_ ** fmpq(2), context)) == "0 + O(n^2)"
    hidden = sympy.sin(1) ** 2 + sympy.cos(1) ** 2 - 1
    assert repr(with_proved_lead(long.of([(n_, hidden), *below[1:]], l1))) == "1*1 + O(L1)"
    least = Monomial((fmpq(-4),))
    assert repr(taylor(log1p_coefficient, long.of([(n_ ** fmpq(-1), fmpq(1))], least))) == (
        "1*n^-1 + -1/2*n^-2 + 1/3*n^-3 + O(n^-4)"
    )
    with pytest.raises(Undecided, match="does not tend to 0"):
        taylor(log1p_coefficient, Transseries(context, [(UNIT, fmpq(1))]))
    with pytest.raises(OrderTooLow):
        Transseries(context, (), n_).leading()


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("n-log(n)", 1),
        ("log(n)-n", -1),
        ("atan(n)", 0),
        ("n*(2+sin(n))", 1),
        ("n*sin(n)", None),
        ("n*(log(6)-log(2)-log(3))+1", 0),
        ("log(n)**2+10*log(n)*log(Abs(sin(n)))", None),
    ],
)
def test_directions(text, way, context):
    assert direction(transseries(read(text), context)) == way


@pytest.mark.parametrize(
    ("text", "tail"),
    [
        ("Piecewise((n, n < 100), (-n, True))", "-n"),
        ("Abs(5-n)", "n-5"),
        ("Min(n, log(n)**9, 2*log(n)**9)", "log(n)**9"),
        ("Max(1/n, -1/n)", "1/n"),
        ("sign(100-n)+Heaviside(n-7, 3)", "0"),
        ("Piecewise((0, n < 9), (-oo, True))+n", "-oo"),
        ("2*Piecewise((0, n < 9), (-oo, True))*n", "-oo"),
        ("log(Heaviside(7-n))", "-oo"),
    ],
)
def test_comparisons_are_decided_for_large_n(text, tail, context):
    expected = sympy.sympify(tail) if tail in ("0", "-oo") else read(tail)
    assert eventual(read(text), context) == expected


@pytest.mark.parametrize(
    "text",
    [
        "log(-n)",
        "sqrt(1-n)",
        "acos(2+1/n)",
        "1/(n-n**1)",
        "asin(n)",
        "log(1-exp(1/n))",
        "log(-2-sin(n))",
        "atanh(2+1/n)",
        "acosh(1/2-1/n)",
        "(-1-sin(n)**2)**(1/3)",
    ],
)
def test_what_is_not_real_is_said_to_be_so(text):
    e = read(text) if "n**1" not in text else sympy.Pow(n - n, -1, evaluate=False)
    with pytest.raises(NotReal):
        transseries(e, Context())


@pytest.mark.parametrize(
    "text",
    [
        "log(sin(n))",
        "1/sin(n)",
        "sqrt(sin(n))",
        "tan(n)",
        "exp(n*sin(n))",
        "gamma(-n)",
        "acos(2*sin(n))",
        "asinh(n*sin(n))",
        "digamma(-1+1/n)",
        "loggamma(sin(n))",
        "n*log(Abs(sin(n)))+1/(log(n)+log(Abs(sin(n))))",
    ],
)
def test_what_has_no_expansion_is_not_guessed(text):
    with pytest.raises(Undecided):
        transseries(read(text), Context())


@pytest.mark.parametrize(
    "text",
    ["Sum(1/k,(k,1,n))", "Sum(k,(k,1,n))", "Sum(sqrt(k),(k,1,n))", "Sum(k**a,(k,1,n))"],
)
def test_sums_up_to_n_are_not_expanded(text, context):
    with pytest.raises(Undecided, match="a sum"):
        transseries(read(text), context)
    assert (
        check_convergence(f"-{text}", assumptions={"a": "real"} if "a" in text else {}).verdict
        == "undecided"
    )


def test_a_product_with_an_unbounded_oscillation_keeps_no_remainder(context):
    atom = transseries(read("log(Abs(sin(n)))"), context)
    with pytest.raises(Undecided, match="unbounded"):
        atom * transseries(read("log(1+n)"), context)
    with pytest.raises(Undecided):
        1 / atom


def test_a_zero_coefficient_is_never_divided_by(context):
    hidden = "(sin(1)**2+cos(1)**2-1)*n+1/log(n)"
    m, _ = (1 / transseries(read(hidden), context)).leading()
    assert repr(m) == "L1"


def test_powers_with_parameters_ask_for_their_sign():
    from farfield.theory.algebra.exceptions import SignNeeded

    a, b = parameter("a"), parameter("b")
    with pytest.raises(SignNeeded) as fork:
        transseries(n**a - n**b, Context()).leading()
    assert fork.value.args[0] in (a - b, b - a)
    known = Context(signs={fork.value.args[0]: 1})
    assert transseries(n**a - n**b, known).leading() is not None
