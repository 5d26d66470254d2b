"""Tail enclosures: they hold at every point of their half-line, and say where nothing is proved."""

import itertools
import math
import random

import pytest
import sympy
from flint import acb, arb, fmpq

from farfield.numerics.enclosures.compiled import compile_complex
from farfield.numerics.enclosures.tails import (
    UNIT,
    HalfLine,
    TailEnclosure,
    Unproved,
    _strip,
    constant,
    exp,
    growth,
    in_right_half_plane,
    level,
    log,
    monomial,
    power,
    raised,
    tail_enclosure,
    times,
)
from farfield.numerics.search import Unrecognised
from farfield.numerics.summation.analytic_bias import half_line, read_bias
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import precision
from farfield.theory.functions.elementary import expm1, log1p
from farfield.theory.functions.nodes import n
from farfield.theory.values import enclose

S = sympy.Symbol("s", positive=True)
ENDS = (40, 400, 10_000)  # log X, further and further out


def variable(log_x):
    return TailEnclosure(half_line(arb(log_x)), {level(1): fmpq(1)})


def at(found, log_x):
    """The sum of the terms at a point of the half-line."""
    there, total = half_line(arb(log_x)), acb(0)
    for m, c in found.terms.items():
        total += (c if isinstance(c, acb) else acb(arb(c))) * there.log_value(m).exp()
    return total


def formula(rng, depth):
    """A formula in s = log x of moderate growth that is real far out."""
    if depth == 0:
        return rng.choice([S, 1 / S, sympy.log(S), S**2, sympy.Rational(1, 3), sympy.exp(-S)])
    a, b = formula(rng, depth - 1), formula(rng, depth - 1)
    return rng.choice(
        [a + b, a - 2 * b, a * b, a / (S + b**2), sympy.log(2 + a**2), sympy.sqrt(1 + b**2)]
    )


def test_a_formula_lies_in_its_enclosure_everywhere_beyond():
    """What is not proved on one half-line may be on a smaller one: most is on the last."""
    rng, proved, size = random.Random(5), dict.fromkeys(ENDS, 0), 0.0
    for _ in range(40):
        e = formula(rng, 3)
        with precision(128):
            for log_x in ENDS:
                try:
                    found = tail_enclosure(e, S, variable(log_x))
                except Unproved:
                    continue
                for point in (log_x, log_x + 1, 7 * log_x, 200 * log_x):
                    exact = enclose(e, 128, {S: fmpq(point)})
                    assert at(found, point).real.overlaps(exact), (e, log_x, point)
                proved[log_x] += 1
                wide = at(found, 7 * log_x).real.rad() + arb(2) ** -400
                size += float(wide.log().mid()) / math.log(2)
    assert [*proved.values()] == [23, 26, 34]
    assert size == pytest.approx(-7350.95, abs=0.1)  # a bound that is looser is seen here alone


@pytest.mark.parametrize(
    "chain, exponents",
    [
        ((-1,), ()),
        ((0, -1), ()),
        ((0, 0, -2), ()),
        ((0, -1, 3), ()),
        ((-1, 39), ()),  # exp(104) at the end
        ((5,), (((0, 2), -1),)),
        ((0, 9), (((1,), fmpq(-1, 2)),)),
    ],
)
def test_the_supremum_of_a_decreasing_monomial_is_at_the_end(chain, exponents):
    m = monomial(
        tuple(map(fmpq, chain)), tuple((tuple(map(fmpq, c)), fmpq(a)) for c, a in exponents)
    )
    assert growth(m) == -1
    where = half_line(arb(40))
    with precision(128):
        bound = where.bound(m)
        assert where.log_value(m).exp().lower() <= bound
        for log_x in (41, 60, 400):
            assert half_line(arb(log_x)).log_value(m).exp().upper() < bound


@pytest.mark.parametrize(
    ("chain", "exponents", "late"),
    [
        ((-1, 3), (), 3),  # x^-1 L^3
        ((0, -1, 3), (), math.exp(3)),
        ((-1, 1, 1), (), 2.239978),
        ((-1, 0, 2, 1), (), 3.88553),
        ((5,), (((0, 2), -1),), 2.5),  # x^5 exp(-L^2)
        ((), (((0, 3), -1), ((0, 2), 2)), 4 / 3),
        ((0, 2), (((0, 2), -1),), 1),
        ((0, 1), (((0, 2), -1),), math.sqrt(0.5)),
        ((0, 0, 4), (((0, 1), -2),), 2.345751),
        ((0, 2), (((0, 0, 2), -1),), math.e),
    ],
)
def test_from_where_on_a_monomial_is_proved_to_decrease(chain, exponents, late):
    """Where its logarithmic derivative vanishes, by hand or by bisection."""
    m = monomial(
        tuple(map(fmpq, chain)), tuple((tuple(map(fmpq, c)), fmpq(a)) for c, a in exponents)
    )
    assert half_line(arb(late * 1.002)).bound(m) > 0
    with pytest.raises(Unproved):
        half_line(arb(late * 0.998)).bound(m)


def test_a_monomial_grows_as_its_logarithm_far_out():
    far = half_line(arb(2000))
    faster = [(), *([(chain, c)] for chain in ((1,), (0, 2), (0, 0, 2)) for c in (-1, 1))]
    for chain in itertools.product((-1, 0, 2), repeat=3):
        for exponents in faster:
            made = tuple((tuple(map(fmpq, e)), fmpq(c)) for e, c in exponents)
            m = times(monomial(_strip(map(fmpq, chain))), monomial((), made))
            size = far.log_value(m)
            assert growth(m) == (size > 0) - (size < 0), (chain, exponents)


@pytest.mark.parametrize(
    ("terms", "held"),
    [  # coefficients of s^2, s, log s, 1, from s = 40 on
        ((0, -1, 0, 39), True),
        ((0, -1, 0, 41), False),
        ((0, -1, 0, -100), True),
        ((0, acb(-1, 5), 0, 39), True),
        ((0, 1, 0, -100), False),
        ((0, -1, 10, 0), True),  # 10 log(40) = 36.9
        ((0, -1, 11, 0), False),
        ((-1, 39, 0, 0), True),
        ((-1, 41, 0, 0), False),
        ((-1, 20, 0, 790), True),
        ((-1, 20, 0, 810), False),
        ((0, 0, 0, 0), False),
        ((0, 0, 0, -1), True),
    ],
)
def test_a_sum_is_negative_where_its_largest_term_outweighs_the_others(terms, held):
    names = (raised(level(1), fmpq(2)), level(1), level(2), UNIT)
    g = TailEnclosure(half_line(arb(40)), dict(zip(names, map(acb, terms), strict=True)))
    with precision(64):
        assert g.negative() is held
        assert g.real() is (acb(terms[1]).imag == 0) and g.with_zero().negative() is False


def test_what_grows_or_is_too_near_is_unproved():
    where = half_line(arb(40))
    with pytest.raises(Unproved, match="not proved to decrease"):
        where.bound(level(1))
    with pytest.raises(Unproved, match="not yet positive"):
        HalfLine((arb(10),)).log_value(level(3))
    late = monomial((), (((fmpq(0), fmpq(1), fmpq(5)), fmpq(1)), ((fmpq(0), fmpq(2)), fmpq(-1))))
    with pytest.raises(Unproved, match="not proved to decrease"):  # exp(L log(L)^5 - L^2) falls at
        half_line(arb(2)).bound(late)  # L = 2, but not at 100
    with pytest.raises(Unproved, match="not yet positive"):  # log(0.5) < 0
        half_line(arb("0.5")).bound(monomial((fmpq(-1), fmpq(0), fmpq(3))))
    assert half_line(arb("0.5")).bound(monomial((fmpq(-1), fmpq(-5)))) > 0


def test_equal_monomials_are_one_object():
    a, b = monomial((fmpq(1), fmpq(-2))), monomial((fmpq(-1), fmpq(2)))
    assert times(a, b) is UNIT and raised(raised(a, fmpq(3)), fmpq(1, 3)) is a
    assert times(a, monomial((fmpq(2),))) is monomial((fmpq(3), fmpq(-2)))


def test_the_leading_term_and_what_has_none():
    g = tail_enclosure(3 * S**2 - S, S, variable(12))
    m, c, delta = g.factored()
    assert (m, c) == (raised(level(1), fmpq(2)), fmpq(3)) and not delta.grows
    assert not g.negative() and g.scaled(fmpq(-1)).negative()
    nothing = tail_enclosure(S - S * (S + 1) / S + 1, S, variable(12))
    with pytest.raises(Unproved, match="no leading term"):
        nothing.factored()


IN_LOGARITHM = {  # a bias, and the same in s = log n
    "-2*log(n+1)": "-2*s - 2*log1p(exp(-s))",
    "-log(3*n+5)/2": "-s/2 - log1p(5*exp(-s)/3)/2 - log(3)/2",
    "-log(n^2+n+7)": "-2*s - log1p(exp(-s) + 7*exp(-2*s))",
    "-sqrt(n+1)": "-expm1(log1p(exp(-s))/2)*exp(s/2) - exp(s/2)",
    "-(n+2)^(1/3)": "-expm1(log1p(2*exp(-s))/3)*exp(s/3) - exp(s/3)",
    "-log(n+2)*log(log(n+3))": (
        "-s*log1p(log1p(3*exp(-s))/s) - s*log(s) - "
        "log1p(log1p(3*exp(-s))/s)*log1p(2*exp(-s)) - log1p(2*exp(-s))*log(s)"
    ),
    "-n*log(n+2)": "-s*exp(s) - log1p(2*exp(-s))*exp(s)",
    "-exp(-n)-n": "-exp(s) - exp(-exp(s))",
    "-atan(n)-2*log(n+1)": "-2*s - 2*log1p(exp(-s)) + atan(exp(-s)) - pi/2",
    "-atan(1/n)-n": "-exp(s) - atan(exp(-s))",
    "-atan(log(log(n)))-n": "-exp(s) + atan(1/log(s)) - pi/2",
    "atan(3+log(n)-n)-n": "-exp(s) + atan(exp(-s - log1p(-s*exp(-s) - 3*exp(-s)))) - pi/2",
    "-loggamma(n+1)": (
        "-s*exp(s) - s/2 - binet(exp(s) + 1) - log1p(exp(-s))*exp(s) - "
        "log1p(exp(-s))/2 + exp(s) - log(pi)/2 - log(2)/2 + 1"
    ),
    "-digamma(n+1)*2": "-2*s - 2*log1p(exp(-s)) - 2*psi_rest(exp(s) + 1)",
    "-log((n+2)^n)": "-s*exp(s) - log1p(2*exp(-s))*exp(s)",
    "-log(5*n/6)": "-s - log(5) + log(2) + log(3)",
    "-log(n+20)^(11/10)": "-s**(11/10)*expm1(11*log1p(log1p(20*exp(-s))/s)/10) - s**(11/10)",
    "-log(6*n+6)": "-s - log1p(exp(-s)) - log(3) - log(2)",
    "-log(1/(n+2)+1/(n+3))": (
        "s - log1p(expm1(-log1p(2*exp(-s)))/2 + expm1(-log1p(3*exp(-s)))/2) - log(2)"
    ),
    "-log(exp(n)+n)": "-log1p(exp(s - exp(s))) - exp(s)",
    "-n^2*exp(-n/2)-n": "-exp(2*s)*exp(-exp(s)/2) - exp(s)",
    "-tanh(n)-n": (
        "-expm1(-log1p(exp(-2*exp(s)))) + "
        "expm1(-log1p(exp(-2*exp(s))))*exp(-2*exp(s)) - exp(s) - 1 + exp(-2*exp(s))"
    ),
    "-erfc(n)-2*log(n+1)": "-2*s - 2*log1p(exp(-s)) - erfc(exp(s))",
    "-sin(1/(n+1))-n": (
        "-expm1(-log1p(exp(-s)))*exp(-s) - sin_rest(expm1(-log1p(exp(-s)))*exp(-s) + "
        "exp(-s)) - exp(s) - exp(-s)"
    ),
    "-log(log(n+3)^2+n)": (
        "-s - log1p(s**2*exp(-s) + 2*s*log1p(3*exp(-s))*exp(-s) + log1p(3*exp(-s))**2*exp(-s))"
    ),
    "-2^n": "-exp(exp(s)*log(2))",
    "-log(n+1)^2/(1+log(n+2))": (
        "-s*expm1(-log1p(log1p(2*exp(-s))/s + 1/s)) - s - "
        "2*expm1(-log1p(log1p(2*exp(-s))/s + 1/s))*log1p(exp(-s)) - 2*log1p(exp(-s)) "
        "- expm1(-log1p(log1p(2*exp(-s))/s + 1/s))*log1p(exp(-s))**2/s - "
        "log1p(exp(-s))**2/s"
    ),
    "-(n+1)^(3/2)": "-expm1(3*log1p(exp(-s))/2)*exp(3*s/2) - exp(3*s/2)",
    "-1/(n+1)-n/3": "-expm1(-log1p(exp(-s)))*exp(-s) - exp(s)/3 - exp(-s)",
    "-log(sqrt(n+1)+1)*3": "-3*s/2 - 3*log1p(expm1(log1p(exp(-s))/2) + exp(-s/2))",
    "-cosh(n)/exp(n)-n": "-exp(s) - 1/2 - exp(-2*exp(s))/2",
    "-n^n": "-exp(s*exp(s))",
}


@pytest.mark.parametrize("text", IN_LOGARITHM)
def test_a_bias_is_written_in_the_logarithm_led_by_its_largest_terms(text):
    bias = read_bias(read(text))
    assert str(bias.in_s) == IN_LOGARITHM[text]
    found, plain = (
        enclose(e, 192, {bias.s: fmpq(3)}) for e in (bias.in_s, bias.p.subs(n, sympy.exp(bias.s)))
    )
    assert abs(found - plain) < 1e-30 * (1 + abs(plain))


@pytest.mark.parametrize(
    ("text", "power", "late", "early"),
    [  # -p over a log n, or over its logarithms, is above 1 from here on, is not before
        ("-exp(n)", 100, 5, None),
        ("-exp(exp(n))", 1000, 3, None),
        ("-2^n*n^2", 1000, 6, None),
        ("-n*log(n+2)", 20, 5, None),
        ("-sqrt(n)", 3, 6, 5),
        ("-n^(1/10)", 3, 60, 45),
    ],
)
def test_a_bias_is_proved_steeper_than_a_power(text, power, late, early):
    bias = read_bias(read(text))
    with precision(128):
        assert bias.is_steep(arb(power), arb(late))
        assert early is None or not bias.is_steep(arb(power), arb(early))


@pytest.mark.parametrize(
    ("terms", "proved"),
    [  # coefficients of s and of 1, from s = 40 on; the least size is 1
        ((1, -38), True),
        ((1, -39.5), False),
        ((1, 5), True),
        ((1, acb(0, 30)), True),
        ((1, acb(0, 50)), False),
        ((acb(1, 0.9), 0), True),
        ((acb(1, 1.1), 0), False),
        ((-1, 0), False),
        ((0, 60), False),  # it does not grow
    ],
)
def test_a_growing_argument_is_large_and_in_the_right_half_plane(terms, proved):
    s, one = (acb(c) for c in terms)
    g = TailEnclosure(half_line(arb(40)), {level(1): s, UNIT: one})
    if proved:
        in_right_half_plane(g)
    else:
        with pytest.raises(Unproved):
            in_right_half_plane(g)


@pytest.mark.parametrize("text", ["-2*log(n+1)", "-sqrt(n+1)", "-log(n+20)-2*log(log(n+20))"])
def test_a_bias_is_enclosed_on_the_sector_and_on_no_other(text):
    bias = read_bias(read(text))
    with precision(128):
        for theta in (0.5, 0.125):
            held = at(bias.on_sector(arb(16), theta), 17)
            for share in (-1, 0, 0.5, 1):
                point = acb(17, math.asin(theta) * share)
                assert held.overlaps(compile_complex(bias.in_s, bias.s)(point, False))
            beyond = acb(17 + 2 * theta, 0)
            assert not held.overlaps(compile_complex(bias.in_s, bias.s)(beyond, False))


def test_exact_coefficients_cancel_exactly():
    s = tail_enclosure(S, S, variable(40))
    for part, minus in (
        (power(s.scaled(fmpq(2)), fmpq(-3)), -(S**-3) / 8),
        (power(s, fmpq(1, 2)), -sympy.sqrt(S)),
        (power(s.scaled(fmpq(2)), fmpq(3)), -8 * S**3),
        (log(s), -sympy.log(S)),
        (exp(s), -sympy.exp(S)),
    ):
        assert not (part + tail_enclosure(minus, S, variable(40))).terms
    for c in (fmpq(0), fmpq(1, 2), fmpq(-2), acb(0, 1)):
        assert at(exp(constant(s.where, c)), 60).overlaps(
            acb(arb(c)).exp() if isinstance(c, fmpq) else c.exp()
        )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("-n-floor(n/3)", "floor has no analytic form here: a step is not analytic"),
        ("-n-polygamma(1,n+1)", "polygamma has no analytic form here: not for these arguments"),
    ],
)
def test_what_is_not_analytic_is_named_with_its_reason(text, why):
    with pytest.raises(Unrecognised) as refused:
        read_bias(read(text))
    assert str(refused.value) == why


@pytest.mark.parametrize("q", ["1/2", "1/3", "-1/2", "sqrt(2)", None])
def test_a_root_or_a_logarithm_is_not_analytic_on_its_branch_cut(q):
    f = compile_complex(sympy.log(S) if q is None else S ** sympy.sympify(q), S)
    for real, analytic, finite in ((2, True, True), (-2, False, True), (-2, True, False)):
        assert f(acb(real, arb(0, 0.1)), analytic).is_finite() is finite


def test_a_function_without_bounds_is_named():
    with pytest.raises(Unrecognised, match="has no bounds at infinity"):
        tail_enclosure(sympy.floor(S), S, variable(12))


NAMES = {"s": S, "log1p": log1p, "expm1": expm1}
WIDTHS = {  # terms and log2 of the radius at log x = 60, on the half-line from 40 on, on a sector
    "sin(1/s)": (3, -49.1, 10, -12.8),
    "cos(s**-2)": (4, -62.4, 10, -29.5),
    "atan(s)": (1, 0.7, 1, -0.7),
    "atan(1/s)": (3, -39.0, 10, -12.8),
    "exp(1/s)": (6, -42.7, 10, -12.8),
    "exp(2*log(s)-s/2+1/s)": (6, -74.2, 10, -33.4),
    "log1p(1/s)": (5, -35.9, 10, -12.8),
    "log1p(s)": (6, -35.9, 6, -6.9),
    "expm1(1/s)": (5, -42.7, 10, -12.8),
    "expm1(-s)": (2, -64.0, 2, -87.6),
    "log(3*s**2-s+log(s))": (10, -30.7, None, None),
    "(s+1)**(3/2)": (6, -31.7, 6, 2.6),
    "(2*s+log(s))**-2": (6, -38.5, None, None),
    "sqrt(4*s**2+1)": (6, -53.0, 10, 0.0),
    "sin(s)": (1, 0.0, 1, 0.2),
    "log(s+sin(s))": (6, -5.9, 6, -5.2),
    "exp(sin(s)/s)": (6, -5.9, 10, -5.7),
    "sqrt(s+log(log(s)))": (6, -33.2, None, None),
    "log(s*exp(-s)+1/s)": (6, -58.0, 10, -6.9),
    "1/(s+exp(-s))": (6, -65.6, 10, -12.8),
    "+".join(f"s**-{k}" for k in range(1, 13)): (10, -64.2, 10, -12.8),
    "1/(s+1)+1/(s+2)+1/(s+3)": (6, -29.9, 6, -11.1),
    "s**log(2)": (None, None, None, None),
    "exp(-s*(2+sin(s)))": (None, None, None, None),
    "exp(-s**2*(2+sin(s)))": (1, -8 * 60 / math.log(2)) * 2,  # as x^-8
}


@pytest.mark.parametrize("text", WIDTHS)
def test_a_formula_lies_in_its_enclosure_which_is_no_wider_than_it_was(text):
    e, half = sympy.sympify(text, NAMES, rational=True), half_line(arb(40))
    turned = TailEnclosure(half, {level(1): fmpq(1), UNIT: acb(0, arb(0, 0.5))})
    terms, radius, terms_of_sector, radius_of_sector = WIDTHS[text]
    with precision(64):
        for point, variable_, many, wide in (
            (acb(60), variable(40), terms, radius),
            (acb(60, 0.3), turned, terms_of_sector, radius_of_sector),
        ):
            if many is None:
                with pytest.raises(Unproved):
                    tail_enclosure(e, S, variable_)
                continue
            found, exact = tail_enclosure(e, S, variable_), compile_complex(e, S)(point, False)
            held = at(found, 60)
            assert held.real.overlaps(exact.real) and held.imag.overlaps(exact.imag)
            size = held.real.rad() if point.imag == 0 else held.imag.rad()
            assert len(found.terms) == many
            assert float(size.log().mid()) / math.log(2) == pytest.approx(wide, abs=0.1)


def test_a_bound_is_one_however_large_it_is():
    """exp(-2*10^6) n^(10^6) exp(-n^2) falls from n = 707 on, and is small from 2,403 on."""
    e = sympy.exp(-2 * 10**6 + 10**6 * S - sympy.exp(2 * S)) - 2 * S
    with precision(128):
        assert [tail_enclosure(e, S, variable(s)).negative() for s in (7, 8)] == [False, True]
