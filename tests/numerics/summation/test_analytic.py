"""The general path: against closed forms, against itself at other precisions, over the battery."""

import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy
from battery import BATTERY
from flint import acb, arb, fmpq

from farfield.numerics.enclosures.tails import UNIT, HalfLine, TailEnclosure, level, tail_enclosure
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.search import Exact, Unrecognised
from farfield.numerics.summation.analytic import (
    NEAR,
    Analytic,
    _sector,
    _turns,
    analytic_kernel,
    smooth_row,
)
from farfield.numerics.summation.analytic_bias import read_bias
from farfield.numerics.summation.integral import TailIntegral
from farfield.numerics.summation.methods import find
from farfield.numerics.summation.series import series
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import precision
from farfield.theory.functions.nodes import n


@pytest.mark.parametrize(
    "text",
    [
        "-2*log(1+n)",
        "-6/5*log(1+n/3)",
        "-log(1+(n/16)^2)",
        "-log(3+n)^2",
        "-sqrt(n+1)",
        "-log(n+20)-2*log(log(n+20))",
        "-n/2",
        "-n^2/50",
    ],
)
def test_the_general_path_agrees_with_closed_forms(text):
    closed, general = find(read(text)), analytic_kernel(read(text), 0)
    for j in (0, 3, 70, 1000):
        with precision(128):
            a, b = closed.tail(j), general.tail(j)
            assert a.overlaps(b)
            assert b.rel_accuracy_bits() > 90


def test_waves_against_float64_sums():
    terms = np.arange(10**6)
    weights = (1.0 + terms) ** -2 * np.exp(np.sin(terms))
    tail = float(mpmath.besseli(0, 1)) / (10**6 + 0.5)
    found, sums = theoretical_receptive_field("-2*log(1+n)+sin(n)", "1/100"), weights[::-1].cumsum()
    assert found.total.rad() < 1e-4 and found.total.overlaps(arb(sums[-1] + tail, 1e-10))
    tails = sums[::-1] + tail
    assert tails[found.tokens] < tails[0] / 100 <= tails[found.tokens - 1]


@pytest.mark.parametrize(
    "text, bias",
    [
        ("-2^n", lambda i: -(2.0**i)),
        ("-3/2*exp(2*n)", lambda i: -1.5 * math.exp(2 * i)),
        ("-exp(exp(n))", lambda i: -math.exp(math.exp(min(i, 6)))),
        ("-Min(3/2*n,2*log(n+1))", lambda i: -min(1.5 * i, 2 * math.log(i + 1))),
        ("-Max(n/2,2*log(n+1))", lambda i: -max(i / 2, 2 * math.log(i + 1))),
    ],
)
def test_steep_falls_and_curved_branches(text, bias):
    terms = [math.exp(bias(i)) for i in range(20_000 if "log" in text else 9)]
    for eps in (Fraction(1, 2), Fraction(1, 10), Fraction(1, 100)):
        j = theoretical_receptive_field(text, str(eps)).tokens
        assert sum(terms[j:]) < eps * sum(terms) <= sum(terms[j - 1 :])


@pytest.mark.parametrize(
    "text", ["-log(log(n+3))", "-sqrt(log(n+1))", "sqrt(log(n+2))", "-log(n+2)-log(log(n+2))"]
)
def test_long_rows_of_divergent_series(text):
    """Against float64 sums of a million keys, and by additivity beyond."""
    row = smooth_row(read(text), 0)
    values = sympy.lambdify(n, sympy.exp(read(text)), "numpy")(np.arange(10**6, dtype=float))
    with precision(96):
        near, far = row.between(0, 10**6), row.between(10**6, 10**12)
        assert near.rel_accuracy_bits() > 80
        assert (near + far).overlaps(row.between(0, 10**12))
        assert float(near.mid()) == pytest.approx(values[::-1].sum(), rel=1e-12)
    tokens = [r.tokens for r in theoretical_receptive_field(text, ["1/2", "1/10"], length=10**12)]
    with precision(96):
        for j, k in zip(tokens, (2, 10), strict=True):
            whole = row.between(0, 10**12)
            assert row.between(j, 10**12) * k < whole <= row.between(j - 1, 10**12) * k


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("text", "eps", "tokens"),
    [
        ("-floor(log(n+1)/log(2))", "1/100", 33062),
        ("-2*log(n+1)-frac(n/3)", "1e-8", 50929517),
        ("-floor(2*n/5)/2", "1e-8", 93),
        ("-2*(sin(n)^2+cos(n)^2)*log(n+1)", "1/100", 61),
        ("-log(n+20)*(3+cos(pi*n))", "1e-8", 1999727646),
        ("-4*log(n+2)-log(n+2)/2*sin(2*n)^2", "1e-6", 120),
        ("-n/20+sign(cos(3*n))", "1/100", 92),
        ("-n/20+(-1)^n/2+sign(cos(3*n))", "1/100", 91),
    ],
)
def test_put_together(text, eps, tokens, short_envelopes):
    assert theoretical_receptive_field(text, eps).tokens == tokens


@pytest.mark.parametrize(
    "text", ["-log(n+2)", "log(n+1)-n^0", "-log(n+20)-log(log(n+20))", "sqrt(n)"]
)
def test_divergent_series_have_no_kernel(text):
    with pytest.raises(Unrecognised):
        analytic_kernel(read(text), 0)


@pytest.mark.timeout(60)
def test_a_hopeless_query_ends():
    hopeless = "-log(n+20)-log(n+20)/log(log(n+20))^2"
    found = theoretical_receptive_field(hopeless, "1e-30", budget_s=0.5)
    assert found.tokens is None
    assert found.reason


def test_the_battery_is_answered():
    """A sample of the convergent series, shifted to be finite from n = 0; none may be unknown."""
    sample = ("mix_log_054", "cancellation_171", "explog_155", "gamma_special_224", "explog_165")
    for case in (c for c in BATTERY if c["id"] in sample):
        shifted = read(case["expr"]).subs(n, n + 20)
        found = theoretical_receptive_field(shifted, "1/100")
        assert isinstance(found.answer, Exact), case["expr"]


@pytest.mark.parametrize(
    "text, bias",
    [
        (
            "-2*log(1+n)*(1+sin(log(1+n))/4)",
            lambda i: -2 * mpmath.log(i + 1) * (1 + mpmath.sin(mpmath.log(i + 1)) / 4),
        ),
        (
            "-2*log(n+1)+sin(log(n+1))",
            lambda i: mpmath.sin(mpmath.log(i + 1)) - 2 * mpmath.log(i + 1),
        ),
        (
            "-3/2*log(n+1)+2*cos(3*log(n+2))+sin(log(n+2))",
            lambda i: (
                2 * mpmath.cos(3 * mpmath.log(i + 2))
                + mpmath.sin(mpmath.log(i + 2))
                - 3 * mpmath.log(i + 1) / 2
            ),
        ),
    ],
)
def test_waves_in_log_n(text, bias):
    """Analytic and bounded on a sector: against mpmath's Euler-Maclaurin sum."""
    k = series(read(text)).kernel
    with mpmath.workdps(40), precision(64):
        for j in (0, 100):
            head = mpmath.fsum(mpmath.exp(bias(i)) for i in range(j, 3000))
            known = head + mpmath.sumem(lambda i: mpmath.exp(bias(i)), [3000, mpmath.inf])
            found = k.tail(j)
            assert found.rel_accuracy_bits() > 50
            assert float(found.mid()) == pytest.approx(float(known), rel=1e-14)


@pytest.mark.parametrize(
    ("phase", "turns"),
    [
        ("log(n)", False),  # by log 100
        ("1.36*log(n)", False),
        ("1.37*log(n)", True),
        ("-2*log(n)", True),
        ("sqrt(n)/100", False),  # less than a turn from 10^3 to 10^5, more up to 10^6
        ("sqrt(n)/40", True),  # more, less up to 10^4
        ("n", True),
        ("1/n", False),
        ("5", False),
    ],
)
def test_a_phase_turns_or_does_not(phase, turns):
    assert _turns(read(phase)) is turns
    assert (smooth_row(read(f"-log(log(n+3))+sin({phase})"), 0) is None) is turns


@pytest.mark.parametrize(("rate", "first"), [("1/3", None), ("2/3", 32)])
def test_a_sector_begins_where_the_terms_are_below_the_root_or_nowhere(rate, first):
    assert _sector(read_bias(read(f"-{rate}*log(n+2)")), 0.5, 0) == first


def test_a_tail_far_out_is_that_of_a_power():
    kernel = analytic_kernel(read("-2*log(1+n)-1/(n+2)"), 0)
    with precision(64):
        assert abs(kernel.tail(2**80) * 2**80 - 1) < arb(2) ** -60


def test_a_formula_that_is_too_wide_is_tried_farther_out(monkeypatch):
    """On a narrow sector no order is high enough up to 448; the sum is the same."""
    wide = analytic_kernel(read("-2*log(1+n)-1/(n+2)"), 0)
    narrow = replace(wide, sector=replace(wide.sector, theta=0.03125))
    tried, formula = [], Analytic._formula
    monkeypatch.setattr(Analytic, "_formula", lambda *x: tried.append(x[1]) or formula(*x))
    with precision(64):
        near, far = narrow.tail(0), narrow.tail(100)
        assert near.overlaps(wide.tail(0)) and far.overlaps(wide.tail(100))
        assert min(near.rel_accuracy_bits(), far.rel_accuracy_bits()) > 70
    assert sorted({*tried}) == [48, 100, 112, 200, 224, 400, 448]


def test_a_formula_without_bounds_is_tried_again_farther_out_up_to_a_place(monkeypatch):
    def area(self, at, end):
        raise Unreachable("hard")

    kernel = analytic_kernel(read("-2*log(1+n)-1/(n+2)"), 0)
    monkeypatch.setattr(Analytic, "_area", area)
    assert not kernel._formula(NEAR, 64, None).is_finite()
    with pytest.raises(Unreachable, match="hard"):
        kernel._formula(NEAR + 1, 64, None)


def test_bounds_of_functions_of_a_growing_quantity():
    where = HalfLine((arb(10), arb(10).log()))
    grows = TailEnclosure(where, {level(1): fmpq(1)})
    turned = TailEnclosure(where, {level(1): fmpq(1), UNIT: acb(0, arb(0, 0.5))})
    s = sympy.Symbol("s")
    for x, at in ((grows, acb(12)), (grows, acb(1e9)), (turned, acb(12, 0.5))):
        for f in (sympy.sin, sympy.cos):
            assert tail_enclosure(f(s), s, x).small().contains(getattr(at, f.__name__)())
    for x, at in ((grows, acb(1e9)), (turned, acb(10, 0.5)), (turned, acb(1e9, -0.5))):
        assert tail_enclosure(sympy.atan(s), s, x).small().contains(at.atan())


@pytest.mark.parametrize(("text", "power"), [("2", 1), ("11/10", 0.1)])
def test_what_falls_in_the_third_logarithm_alone_is_summed(text, power, monkeypatch):
    """Between integrals, of which l^-power / power is one, l = log(log(n + 20)). A bound of the
    rest is proved near the start, and asked for again where the rest is small."""
    asked, rest = [], TailIntegral.rest
    monkeypatch.setattr(TailIntegral, "rest", lambda *args: asked.append(args) or rest(*args))
    p = read(f"-log(n+20)-log(log(n+20))-{text}*log(log(log(n+20)))")
    with precision(64):
        tail = float(analytic_kernel(p, 0).tail(1000))
    high, low = (math.log(math.log(at)) ** -power / power for at in (1019, 1020))
    assert low < tail < high and len(asked) < 10
