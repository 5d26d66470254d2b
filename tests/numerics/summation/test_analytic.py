"""The general path: against closed forms, against itself at other precisions, over the battery."""

import json
import math
import threading
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
import sympy
from flint import acb, arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from farfield.numerics.enclosures.tails import UNIT, HalfLine, TailEnclosure, level, tail_enclosure
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.search import Exact, Unrecognised
from farfield.numerics.summation.analytic import analytic_kernel, smooth_row
from farfield.numerics.summation.methods import find
from farfield.numerics.summation.series import _series, series
from farfield.theory.answers.errors import InputError
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import precision
from farfield.theory.functions.nodes import n

BATTERY = Path(__file__).resolve().parents[2] / "data" / "battery.jsonl"


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


@settings(max_examples=4)
@given(
    r=st.fractions("11/10", 4, max_denominator=10), h=st.integers(1, 40), j=st.integers(0, 10**9)
)
def test_two_precisions_agree(r, h, j):
    general = analytic_kernel(-r.numerator * sympy.log(n + h) / r.denominator, 0)
    with precision(96):
        low = general.tail(j)
    with precision(200):
        high = general.tail(j)
        assert low.overlaps(high)
        assert high.rel_accuracy_bits() > 150


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "text, tokens",
    [
        ("-log(n+20)^(11/10)", [146, 11806, 2418614, 27871218865, 350062496386856712]),
        ("-2*asinh(n)", None),
        ("-n/log(n+20)", None),
        ("-2*digamma(n+1)", None),
        ("-2*LambertW(n)", None),
        ("loggamma(4*n+1)-4*loggamma(n+1)-n*log(256)", None),
        ("-n+sin(n)", None),
    ],
)
def test_answers_pass_the_ball_test_and_fall_with_eps(text, tokens):
    grid = ["1/2", "1/10", "1/100", "1/10000", "1e-8"]
    fields = theoretical_receptive_field(text, grid)
    found = [f.tokens for f in fields]
    assert found == sorted(found)
    assert all(isinstance(f.answer, Exact) for f in fields)
    assert tokens is None or found == tokens
    s = series(read(text))
    for f in fields:
        bits = 128 + 2 * f.tokens.bit_length()
        with precision(bits):
            goal = s.total() * int(f.eps.p) / int(f.eps.q)
            assert s.tail(f.tokens) < goal
            assert s.tail(f.tokens - 1) >= goal


def test_waves_against_float64_sums():
    terms = np.arange(10**6)
    weights = (1.0 + terms) ** -2 * np.exp(np.sin(terms))
    tail = float(mpmath.besseli(0, 1)) / (10**6 + 0.5)
    total, wanted = series(read("-2*log(1+n)+sin(n)")).total(), weights[::-1].sum() + tail
    assert total.rad() < 1e-4 and total.overlaps(arb(wanted, 1e-10))


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


def test_long_rows_agree_with_closed_forms():
    for text in ("-log(n+3)/2", "-log(n+7)"):
        closed, general = find(read(text)), smooth_row(read(text), 0)
        with precision(96):
            assert closed.between(5, 10**15).overlaps(general.between(5, 10**15))


GENERAL = [
    "-(1+{a})*log(n+2)+1/(n+{b})",
    "-log(n+20)^(1+{a})",
    "-{b}*2^n+n^2",
    "-(1+{a})*log(n+2)-log(log(n+{b}+3))",
    "-{a}*sqrt(n)-{b}*log(n+1)",
    "-(1+{a})*asinh(n)",
    "-(1+{a})*log(n+1)+sin({b}*n)/2",
    "-{a}*n+sin(n)",
    "-(1+{a})*log(n+1)-{b}*frac(n/3)",
    "-Max({a}*n,(1+{b})*log(n+1))",
    "-{a}*2^n",
    "-(1+{a})*digamma(n+1)",
    "-{a}*n/log(n+20)",
]
SOME = st.fractions(min_value="1/4", max_value=3, max_denominator=8)


@settings(max_examples=3)
@given(
    a=SOME,
    b=SOME,
    family=st.sampled_from(GENERAL),
    eps=st.lists(
        st.fractions("1/100000", "9/10", max_denominator=10**6), min_size=2, max_size=3, unique=True
    ),
)
def test_laws_of_random_series(a, b, family, eps):
    """The ball test at j and j - 1 and at twice the precision, and the order of the answers."""
    text = family.format(a=f"({a})", b=f"({b})")
    fields = theoretical_receptive_field(text, sorted(eps, reverse=True), exact=True)
    found = [f.tokens for f in fields]
    assert None not in found, (text, fields[-1].reason)
    assert found == sorted(found)
    s = series(read(text))
    for f in fields:
        with precision(192 + 2 * f.tokens.bit_length()):
            goal = s.total() * int(f.eps.p) / int(f.eps.q)
            assert s.tail(f.tokens) < goal
            assert s.tail(f.tokens - 1) >= goal


def test_pieces_by_residue_class():
    text = "Piecewise((-n/50,Eq(Mod(n,3),1)),(-3*log(n+1),Eq(Mod(n,3),0)),(-2*log(n+2),True))"
    x, last = np.arange(3.0 * 10**6), 3 * 10**6
    terms = np.where(
        x % 3 == 1, np.exp(-x / 50), np.where(x % 3 == 0, (x + 1) ** -3, (x + 2) ** -2)
    )
    sums = np.cumsum(terms[::-1])[::-1] + 1 / (3 * last)
    for eps in (0.5, 1e-2, 1e-4):
        j = theoretical_receptive_field(text, str(eps)).tokens
        assert sums[j] < eps * sums[0] <= sums[j - 1]
    found = theoretical_receptive_field(
        "Piecewise((-3*log(n+1),sin(n)>0),(-2*log(n+1),True))", "1/2"
    )
    assert found.answer is None and found.reason.code == "undecided"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("text", "eps", "tokens"),
    [
        ("-floor(log(n+1)/log(2))", "1/100", 33062),
        ("-2*log(n+1)-frac(n/3)", "1e-8", 50929517),
        ("-2*log(1+n)+sin(n)", "1/100", 59),
        ("-floor(2*n/5)/2", "1e-8", 93),
        ("-2*(sin(n)^2+cos(n)^2)*log(n+1)", "1/100", 61),
        ("-log(n+20)*(3+cos(pi*n))", "1e-8", 1999727646),
        ("-4*log(n+2)-log(n+2)/2*sin(2*n)^2", "1e-8", 534),
        ("-n/20+sign(cos(3*n))", "1/100", 92),
        ("-n/20+(-1)^n/2+sign(cos(3*n))", "1/100", 91),
    ],
)
def test_put_together(text, eps, tokens):
    assert theoretical_receptive_field(text, eps).tokens == tokens


@pytest.mark.parametrize(
    "text", ["-log(n+2)", "log(n+1)-n^0", "-log(n+20)-log(log(n+20))", "sqrt(n)"]
)
def test_divergent_series_have_no_kernel(text):
    with pytest.raises(Unrecognised):
        analytic_kernel(read(text), 0)


def test_threads_do_not_disturb_each_other(short_envelopes):
    formulas = ("-2*log(1+n)", "-n+sin(n)", "-2*log(1+n)+sin(n)", "-log(n+20)^(11/10)", "-2^n")
    wanted = {f: theoretical_receptive_field(f, "1/1000").tokens for f in formulas}
    wrong = []
    _series.cache_clear()

    def ask(f):
        for _ in range(2):
            if theoretical_receptive_field(f, "1/1000").tokens != wanted[f]:
                wrong.append(f)

    threads = [threading.Thread(target=ask, args=(f,)) for f in wanted for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.parametrize("budget", ["soon", None, math.nan, -1, True])
def test_bad_budgets(budget):
    with pytest.raises(InputError, match="a number of seconds, at least 0"):
        theoretical_receptive_field("-n", "1/10", budget_s=budget)


@pytest.mark.timeout(60)
def test_a_hopeless_query_ends():
    hopeless = "-log(n+20)-log(n+20)/log(log(n+20))^2"
    found = theoretical_receptive_field(hopeless, "1e-30", budget_s=0.5)
    assert found.tokens is None
    assert found.reason


def test_the_battery_is_answered():
    """A sample of the convergent series, shifted to be finite from n = 0; none may be unknown."""
    cases = [json.loads(line) for line in BATTERY.read_text(encoding="utf-8").splitlines()]
    sample = ("mix_log_054", "cancellation_171", "explog_155", "gamma_special_224", "explog_165")
    for case in (c for c in cases if c["id"] in sample):
        shifted = read(case["expr"]).subs(n, n + 20)
        found = theoretical_receptive_field(shifted, "1/100")
        assert isinstance(found.answer, Exact), case["expr"]


@pytest.mark.parametrize(
    "text, bias",
    [
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


def test_a_sum_of_exponentials_is_sought_as_far_as_it_goes():
    """Its bounds are wide far out, where more terms would not help: wide balls decide."""
    text = "log(exp(-n/20)+exp(-n/90)/20)"
    n_ = np.arange(20_000.0)
    weights = np.exp(-n_ / 20) + np.exp(-n_ / 90) / 20
    tails = np.cumsum(weights[::-1])[::-1]
    for length in (None, 10**6):
        tokens = theoretical_receptive_field(text, "1e-9", length=length).tokens
        assert tokens == int(np.argmax(tails < 1e-9 * tails[0])) == 1712
