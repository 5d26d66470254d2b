"""The theoretical receptive field: printed values, a second route, laws, bad input."""

import dataclasses
import json
import math
import types
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from farfield import encoding, theoretical_receptive_field
from farfield.numerics.field_search import TailComparison, _Tie
from farfield.numerics.float_rows import tail_sums
from farfield.numerics.questions import diverges, obstacle
from farfield.numerics.receptive_field import _by_floats
from farfield.numerics.search import Bracket, Enclosure, Exact
from farfield.numerics.summation.series import _series, series
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.functions.balls import precision
from farfield.theory.functions.nodes import Lookup, n

EPS = ("0.1", "0.01", "0.001")


def mp_sums(terms):
    """B and j -> T_j from a list of high-precision terms whose remainder is negligible."""
    tails = [mpmath.mpf(0)]
    for value in reversed(terms):
        tails.append(tails[-1] + value)
    return tails[-1], lambda j: tails[len(terms) - j]


def alibi(m):
    q = mpmath.exp(-mpmath.mpf(m.numerator) / m.denominator)
    return 1 / (1 - q), lambda j: q**j / (1 - q)


def hurwitz(r):
    return mpmath.zeta(r), lambda j: mpmath.zeta(r, j + 1)


ROUTES = {
    "-n/2": (2.54149408254, (5, 10, 14), lambda: alibi(Fraction(1, 2))),
    "-n/256": (256.500325521, (590, 1179, 1769), lambda: alibi(Fraction(1, 256))),
    "-2*log(1+n)": (math.pi**2 / 6, (6, 61, 608), lambda: hurwitz(2)),
    "-log(1+n)^2": (
        2.23818130680,
        (4, 9, 15),
        lambda: mp_sums([mpmath.exp(-(mpmath.log(1 + i) ** 2)) for i in range(4000)]),
    ),
    "-1.2*log(1+n)": (
        5.59158244118,
        (57171, 5717107514, 571710751436787),
        lambda: hurwitz(mpmath.mpf("1.2")),
    ),
    "-sqrt(n)": (
        2.67040681797,
        (13, 41, 80),
        lambda: mp_sums([mpmath.exp(-mpmath.sqrt(i)) for i in range(6000)]),
    ),
}


@pytest.mark.parametrize("text", ROUTES)
def test_check_values_by_a_second_route(text):
    total, tokens, route = ROUTES[text]
    found = theoretical_receptive_field(text, EPS)
    assert tuple(r.tokens for r in found) == tokens
    assert float(found[0].total) == pytest.approx(total, rel=1e-11)
    with mpmath.workdps(60):
        whole, tail = route()
        ball = found[0].total
        middle, radius = (mpmath.mpf(x.str(40, radius=False)) for x in (ball.mid(), ball.rad()))
        assert abs(whole - middle) <= radius < 1e-15
        for r, eps in zip(found, EPS, strict=True):
            goal = mpmath.mpf(eps) * whole
            assert tail(r.tokens) < goal <= tail(r.tokens - 1)


PUBLISHED = {  # eps = 1/2, 1e-1, 1e-2, 1e-4, 1e-8, 1e-12
    "-2*log(1+n)": (1, 6, 61, 6079, 60792710, 607927101854),
    "-1.1*log(1+n)": (
        580,
        5666536271,
        56665362706717150414,
        5666536270671715041369934488850730283819,
    ),
    "-log(1+n)^2": (2, 4, 9, 23, 87, 239),
    "-n/256": (178, 590, 1179, 2358, 4716, 7074),
    "-sqrt(n)": (2, 13, 41, 132, 452, 950),
    "-log(1+(n/256)^2)": (257, 1615, 16277, 1627724, 16277227102, 162772271011026),
    "-log(3+n/256)^2": (280, 1039, 2467, 6945, 26314, 70642),
    "-log(n+2)-2*log(log(n+2))": (2, 113, 384756620767894058489),
    "-log(n+3)-log(log(n+3))-2*log(log(log(n+3)))": (1, 2, 739514),
    "-n^0.3/2": (390, 3477, 15030, 76640, 460285, 1408611),
}


@pytest.mark.parametrize("text", PUBLISHED)
def test_a_grid_of_eps(text):
    tokens = PUBLISHED[text]
    grid = ("1/2", "1e-1", "1e-2", "1e-4", "1e-8", "1e-12")[: len(tokens)]
    found = theoretical_receptive_field(text, grid, exact=True)
    assert tuple(r.tokens for r in found) == tokens
    for r, exact in zip(theoretical_receptive_field(text, grid), found, strict=True):
        assert r.label == "certified"
        if exact.tokens <= 10**18:
            assert r.tokens == exact.tokens
        else:
            log = math.log(exact.tokens)
            assert r.status == "enclosed" and r.tokens is None
            assert r.answer.low <= log <= r.answer.high < r.answer.low + 1e-8
            assert "--exact" in r.reason.sentence


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "text, eps",
    [
        ("-log(1+n)-2*log(1+log(1+n))", "1/1000"),
        ("-11/10*log(n+2)+1/(n+1)", "1/10000"),
        ("-log(n+20)^(11/10)", "1e-20"),
    ],
)
def test_a_magnitude_encloses_the_count_of_a_sum_without_closed_form(text, eps):
    """The ball test at both ends of the enclosure, at a higher precision."""
    answer = theoretical_receptive_field(text, eps).answer
    assert isinstance(answer, Enclosure) and 0 < answer.high - answer.low < 1e-6
    s, share = series(encoding(text).formula), Fraction(eps)
    low, high = (mpmath.mpf(x) for x in (answer.low, answer.high))
    with mpmath.workdps(400), precision(192):
        goal = s.total() * share.numerator / share.denominator
        assert s.tail(int(mpmath.exp(low))) >= goal
        assert s.tail(int(mpmath.exp(high)) + 1) < goal


@pytest.mark.slow
def test_a_thousand_digits():
    r = theoretical_receptive_field("-1.001*log(1+n)", "1/10", exact=True)
    assert isinstance(r.answer, Exact) and len(str(r.tokens)) == 1000
    with mpmath.workdps(1100):
        # zeta(r, x) = x^(1-r)/(r-1) + x^-r/2 + O(x^(-r-1)), so far out
        x, s = mpmath.mpf(r.tokens + 1), mpmath.mpf("1.001")
        far = [y ** (1 - s) / (s - 1) + y**-s / 2 + s * y ** (-s - 1) / 12 for y in (x, x - 1)]
        assert far[0] < mpmath.zeta(s) / 10 <= far[1]


def test_answers_are_counted_up_to_a_trillion_million():
    """TRF(1/10) of exp(-n/a) is floor(a log 10) + 1."""
    for a in (4 * 10**17, 5 * 10**17):
        tokens = 1 + a * 2302585092994045684017991454684 // 10**30
        found = theoretical_receptive_field(f"-n/{a}", "1/10")
        assert (found.tokens == tokens) is (tokens <= 10**18)
        assert found.answer.logs()[0] <= math.log(1 + tokens) <= found.answer.logs()[1]


def test_astronomical_answers_are_enclosed():
    r = theoretical_receptive_field("-1.0001*log(1+n)", "1e-5")
    assert r.tokens is None and isinstance(r.answer, Enclosure)
    with mpmath.workdps(40):
        mass = mpmath.zeta(mpmath.mpf("1.0001"))
        exact = -(10**4) * mpmath.log(mpmath.mpf("1e-4") * mass / 10**5)
    assert r.answer.low <= exact <= r.answer.high
    assert r.answer.high - r.answer.low < 1e-9
    for scale in (1e30, 1.4e38, 1.5e38):  # 2^128 is 1.478e38 log 10
        answer = theoretical_receptive_field(f"-(1+1/{scale:.0f})*log(n+20)", "1/10").answer
        enclosed = isinstance(answer, Enclosure) and answer.high == pytest.approx(answer.low)
        assert enclosed is (scale < 1.47e38)
        assert not enclosed or answer.low == pytest.approx(math.log(10) * scale, rel=1e-12)


def test_answers_beyond_any_exponential_have_their_logarithm_or_a_lower_bound():
    answer = theoretical_receptive_field("-log(n+2)-2*log(log(n+2))", "1e-8").answer
    assert math.log(answer.low) == pytest.approx(17.674114699043, abs=1e-9)
    assert answer.high - answer.low < 1e-6
    found = theoretical_receptive_field("-log(n+3)-log(log(n+3))-2*log(log(log(n+3)))", "1e-8")
    assert found.answer.high is None and found.answer.low > 2**1000
    assert found.reason.code == "too_large"


@pytest.mark.parametrize(
    "text, eps, tokens",
    [
        ("-log(2)*n", "1/1024", 11),
        ("-log(2)*n", "1/1023", 10),
        ("-2*log(2)/3*n", "1/4", 4),
        ("log(exp(-n)*(3/(3*E^(n/2))))", "1/10", 2),
        ("-n*log(10)/7", "1/100", 15),
        ("-log(2)*floor(n/3)", "1/4", 7),
        ("-log(2)*floor(n/3)+log(3)*frac(n/2)*2", "1/4", 7),
        ("where(n < 4, 0, -oo)", "1/2", 3),
        ("where(n < 4, 0, -oo)", "51/100", 2),
        ("where(n < 4, 0, -oo)", "1/10000", 4),
    ],
)
def test_ties_of_geometric_series_and_windows_are_strict(text, eps, tokens):
    assert theoretical_receptive_field(text, eps).tokens == tokens


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "text, share",
    [
        ("-log(1+n)-log(2+n)", lambda j: Fraction(1, j + 1)),
        ("-log(n+1)-log(n+2)-log(n+3)", lambda j: Fraction(2, (j + 1) * (j + 2))),
        ("log(2*n+3)-2*log(n+1)-2*log(n+2)", lambda j: Fraction(1, (j + 1) ** 2)),
        ("loggamma(n+1/2)-loggamma(n+2)", lambda j: Fraction(math.comb(2 * j, j), 4**j)),
        ("log(n+1)-n*log(2)", lambda j: Fraction(j + 2, 2 ** (j + 1))),
    ],
)
def test_an_exact_tie_is_a_bracket_of_two(text, share):
    """eps = T_k/B is met at j = k, so the field is k + 1; no digits tell it from k."""
    for k in (1, 4, 9):
        eps = share(k)
        tied = theoretical_receptive_field(text, str(eps))
        assert tied.answer == Bracket(k, k + 1) and tied.reason.code == "tie"
        assert theoretical_receptive_field(text, str(eps * Fraction(100001, 10**5))).tokens == k


def test_a_near_tie_out_of_reach_is_a_bracket():
    """1/((n+1)(n+2)) but for 10^-4343 of b_0: T_4/B misses 1/5 by less than any digits tried."""
    r = theoretical_receptive_field("-log(1+n)-log(2+n)+log(1+exp(-10^4-n))", "1/5")
    assert r.tokens is None and r.answer == Bracket(4, 5) and r.reason.code == "tie"
    # T_1/B is 1/2, though the last terms are those of a geometric series with a ratio below it
    assert theoretical_receptive_field("where(n<1,-log(exp(1)-1),-n)", "1/2").answer == Bracket(
        1, 2
    )
    vast = theoretical_receptive_field("-n*log(2)/10^20", "1/2", exact=True)
    assert vast.answer == Exact(10**20 + 1)


@pytest.mark.parametrize(
    "name, options",
    [
        ("window", {"w": 100}),
        ("alibi", {}),
        ("kerple_log", {"r1": "1.3", "r2": "1/2"}),
        ("kerple_power", {"r1": "1/10", "r2": "1/2"}),
        ("kerple_power", {"r1": "1/100", "r2": 2}),
        ("sandwich_smoothed", {"c": 1}),
        ("type1", {}),
        ("type2", {}),
        ("type1", {"dialect": "code"}),
        ("type2", {"dialect": "code"}),
        ("bam", {"s": 0, "mu": 3, "eps": "1/100000", "beta": "1/2"}),
        ("bam", {"s": -2, "mu": "-1/3", "eps": "1/100", "beta": 3}),
        ("alibi_log", {"m": "3/2"}),
    ],
)
def test_every_convergent_entry_has_an_integer_and_forgets_its_name(name, options):
    entry = encoding(name, **options)
    r = theoretical_receptive_field(entry, "1/100")
    assert r.tokens is not None and r.label == "certified" and r.verdict == "converges"
    renamed = dataclasses.replace(entry, name="other", source="", formula=None)
    assert theoretical_receptive_field(renamed, "1/100").tokens == r.tokens
    rewritten = [sympy.log(sympy.exp(b / 3) ** 3) for b in entry.biases if not b.has(sympy.oo)]
    for bias, head in zip(rewritten, r.heads or (r,), strict=False):
        assert theoretical_receptive_field(bias, "1/100").tokens == head.tokens
    assert len(r.heads) == (entry.num_heads if entry.num_heads > 1 else 0)


FAMILIES = [
    "-({a})*n",
    "-(1+{a})*log(1+({b})*n)",
    "-({a})*n^(1/5+{b})",  # flatter powers have no sum
    "-({a})*log(1+({b})*n)^2",
    "-(1/2+{a})*log(1+({b})*n^2)",
    "-({a})*|n-{b}|",
    "-(1+{a})*log(n+2)+1/(n+{b})",
    "-log(n+20)^(1+{a})",
    "-({a})*2^n",
    "-({a})*n+sin(n)",
    "-(1+{a})*log(n+1)-({b})*frac(n/3)",
    "-Max(({a})*n,(1+{b})*log(n+1))",
    "-(1+{a})*digamma(n+1)",
    "-({a})*n/log(n+20)",
]
SOME = st.fractions(min_value="1/4", max_value=4, max_denominator=20)
SHARE = st.fractions(min_value="1/10000000", max_value="99/100", max_denominator=10**8).filter(
    lambda e: 0 < e < 1
)


@given(a=SOME, b=SOME, eps=st.tuples(SHARE, SHARE), family=st.sampled_from(FAMILIES))
@settings(max_examples=10)
def test_certified_at_j_and_below_j_and_monotone_in_eps(a, b, eps, family):
    results = theoretical_receptive_field(family.format(a=a, b=b), sorted(eps))
    assert all(isinstance(r.answer, (Exact, Enclosure)) for r in results)
    if all(r.tokens is not None for r in results):
        assert results[0].tokens >= results[1].tokens
    for r in results:
        if r.tokens is not None and r.tokens < 10**60:
            s = series(r.formula)
            with precision(320):  # for 10^60 tokens; beyond, a square of logarithms has no sum
                goal = s.total() * int(r.eps.p) / int(r.eps.q)
                assert s.tail(r.tokens) < goal <= s.tail(r.tokens - 1)


@given(
    values=st.lists(st.integers(-12, 4), min_size=1, max_size=30),
    eps=SHARE,
    length=st.integers(1, 60),
)
@settings(max_examples=50)
def test_finite_rows_against_fractions(values, eps, length):
    """b_n = 2^v_n, exact in rationals; the tail constant."""
    table = sympy.Tuple(*(v * sympy.log(2) for v in values))
    weights = [Fraction(2) ** values[min(t, len(values) - 1)] for t in range(length)]
    expected = next(j for j in range(length + 1) if sum(weights[j:]) < eps * sum(weights))
    found = theoretical_receptive_field(Lookup(n, table, table[-1]), eps, length=length)
    assert found.tokens == expected


@pytest.mark.parametrize(
    "name, options",
    [
        ("nope", {}),
        ("example1", {"dialect": "code"}),
        ("example2", {}),
        ("sandwich", {"heads": 2}),
        ("alibi", {}),
        ("kerple_log", {"r1": "1/2", "r2": 1}),
        ("type2", {}),
        ("t5", {f"b{k}": sympy.Rational(-k, 7) for k in range(32)}),
        ("xpos_surrogate", {"d": 8}),
    ],
)
def test_finite_rows_against_float64(name, options):
    entry = encoding(name, **options)
    r = theoretical_receptive_field(entry, "1/20", length=700)
    assert r.label == "certified"
    for head, bias in zip(r.heads or (r,), entry.bias(np.arange(700)), strict=True):
        tails = np.append(np.cumsum(np.exp(bias)[::-1])[::-1], 0) / np.exp(bias).sum() * 20
        assert tails[head.tokens] < 1 + 1e-9 and tails[head.tokens - 1] >= 1 - 1e-9


def test_divergent_heads_are_named():
    r = theoretical_receptive_field("-log(1+n)", "1/10")
    assert (r.tokens, r.answer, r.verdict) == (math.inf, None, "diverges")
    assert r.status == "infinite" and r.label == "theorem" and r.reason.code == "diverges"
    with pytest.raises(OverflowError):
        int(r)
    several = theoretical_receptive_field("sandwich_smoothed", "1/10")
    assert several.tokens == math.inf
    assert sum(h.status == "infinite" for h in several.heads) == 2
    assert several.heads[0].tokens == 1 and several.to_dict()["tokens"] is None
    assert theoretical_receptive_field("rope", "1/10").verdict == "out_of_scope"


def test_json():
    data = json.loads(theoretical_receptive_field("alibi", "1/100").to_json())
    assert data["tokens"] == 1179 and data["heads"][0]["tokens"] == 10
    assert data["answer"] == {"tokens": 1179} and data["eps"] == "1/100"
    assert data["status"] == "exact" and data["label"] == "certified"


@pytest.mark.parametrize(
    ("bias", "latex", "value"),
    [
        (
            "-3*n/7",
            r"\left\lfloor \frac{7\, \log(1/\varepsilon)}{3} \right\rfloor + 1",
            lambda eps, b: math.floor(7 * math.log(1 / eps) / 3) + 1,
        ),
        (
            "-n",
            r"\left\lfloor \log(1/\varepsilon) \right\rfloor + 1",
            lambda eps, b: math.floor(math.log(1 / eps)) + 1,
        ),
        ("-2*log(1+n)", r"\frac{1}{B\, \varepsilon}", lambda eps, b: 1 / (b * eps)),
        ("1/(1+n)-2*log(1+n)", r"\frac{1}{B\, \varepsilon}", lambda eps, b: 1 / (b * eps)),
        (
            "-3/2*log(n+4)",
            r"\left(\frac{2}{B\, \varepsilon}\right)^{2}",
            lambda eps, b: (2 / (b * eps)) ** 2,
        ),
        (
            "log(3)-4*log(1+n)",
            r"\left(\frac{1}{B\, \varepsilon}\right)^{\frac{1}{3}}",
            lambda eps, b: (1 / (b * eps)) ** (1 / 3),
        ),
        ("-2*sqrt(n)", r"\sim \left(\frac{\log(1/\varepsilon)}{2}\right)^{2}", None),
        (
            "-pi*log(1+n)",
            r"\left(\frac{1}{\left(-1 + \pi\right)\, B\, \varepsilon}\right)^{\frac{1}{-1 + \pi}}",
            lambda eps, total: (1 / ((math.pi - 1) * total * eps)) ** (1 / (math.pi - 1)),
        ),
        (
            "-n/(pi-1)",
            r"\left\lfloor \left(-1 + \pi\right)\, \log(1/\varepsilon) \right\rfloor + 1",
            lambda eps, total: math.floor((math.pi - 1) * math.log(1 / eps)) + 1,
        ),
        (
            "-2*log(1+n)^2",
            r"\exp\left(\sqrt{\frac{\log(1/\varepsilon)}{2}}\,(1 + o(1))\right)",
            None,
        ),
    ],
)
def test_asymptotics_are_what_the_field_tends_to(bias, latex, value):
    eps = Fraction(1, 10**9)
    field = theoretical_receptive_field(bias, eps, exact=True)
    assert field.asymptotics == latex
    if value is not None:
        total = float(series(encoding(bias).formula).tail(0))
        assert value(float(eps), total) == pytest.approx(field.tokens, rel=1e-2)


def test_an_answer_that_took_all_the_time_is_an_answer(monkeypatch):
    def late(*args):
        raise Unreachable("the time budget was spent")

    monkeypatch.setattr("farfield.numerics.receptive_field._power_law", late)
    found = theoretical_receptive_field("-3*log(n+7)", "1/100")
    assert found.tokens is not None and found.asymptotics is None


def test_a_term_beyond_balls_is_not_called_undefined():
    found = theoretical_receptive_field("-exp(exp(exp(exp(n))))", "1/10")
    assert found.verdict == "converges" and found.tokens is None
    assert found.reason.code == "no_enclosure"


@pytest.mark.parametrize("text", ["-Abs(sin(n))", "cos(n)-cos(2*n)/3", "-log(n+3)+sin(n)"])
def test_no_method_sums_a_series_that_diverges(text):
    for found in (series(encoding(text).formula, diverges), series(encoding(text).formula)):
        assert found.kernel is None and found.gap
        assert obstacle(found).code == "diverges"
    assert theoretical_receptive_field(text, "1/10").tokens == math.inf
    row = theoretical_receptive_field(text, "1/10", length=5000)
    assert isinstance(row.tokens, int) and row.label == "certified"


@pytest.mark.parametrize("known, asked", [(1e-6, 1), (1e-12, 3)])
def test_no_sharper_tail_where_the_total_decides_nothing(known, asked):
    """A tail within the ball of eps B stays there: it is not asked for again."""
    tails = []

    class Sums:
        first_bits, stretches, bias = 64, (1, 2), None
        last, kernel = (types.SimpleNamespace(end=None),), None

        def total(self):
            return arb(2, known)

        def tail(self, j):
            tails.append(j)
            return arb(1, 1e-9)

    with pytest.raises(_Tie, match="differ by at most"):
        TailComparison(Sums()).below(10**9, sympy.Rational(1, 2))
    assert len(tails) == asked


@pytest.mark.parametrize(
    ("eps", "answer"),
    [
        ("3/8", Exact(3)),
        ("0.750000000012", Exact(1)),
        ("0.75", Bracket(1, 3)),
        ("0.500000000012", Exact(2)),
        ("0.500000000009", Bracket(1, 3)),
        ("0.499999999991", Bracket(2, 4)),
        ("0.499999999988", Exact(3)),
        ("0.2", Exact(4)),
    ],
)
def test_sums_in_floats_tell_what_is_far_from_a_threshold(eps, answer):
    """The tails of four equal keys are 4 e, 3 e, 2 e, e: a part in 10^11 of B is near."""
    found = _by_floats(sympy.S.One, sympy.Rational(eps), 4, Unreachable("hard"))
    assert found["answer"] == answer and found["label"] == "approximate"
    if isinstance(answer, Exact):
        assert found["tokens"] == answer.tokens and str(found["reason"]) == "hard; float64 sums"
        assert found["total"].contains(4 * math.e) and 4e-9 < found["total"].rad() / math.e < 5e-9
    else:
        assert (found["status"], found["reason"].code) == ("enclosed", "tie")
        assert found["reason"].sentence == "too near to a threshold for float64 sums"


def test_tails_of_a_row_in_floats_are_over_its_greatest_weight():
    assert tail_sums(np.log([1.0, 2.0, 4.0])).astype(float) == pytest.approx([7 / 4, 6 / 4, 1, 0])


def test_floats_of_one_head_mark_the_answer_of_all(monkeypatch):
    monkeypatch.setattr("farfield.numerics.summation.series.MAX_WORK", 64)
    _series.cache_clear()
    found = theoretical_receptive_field(["-n*sin(n)^2", "n/10"], "1/100", length=5_000)
    assert [h.label for h in found.heads] == ["approximate", "certified"]
    assert (found.tokens, found.label) == (found.heads[1].tokens, "approximate")
    assert [h.verdict for h in (found, *found.heads)] == [None] * 3


def test_the_total_is_that_of_the_finest_comparison():
    """T_6 / B is told from eps at 256 bits."""
    with mpmath.workdps(70):
        above = Fraction(1 + int(mpmath.zeta(2, 7) / mpmath.zeta(2) * 2**180), 2**180)
    found = theoretical_receptive_field("-2*log(1+n)", above)
    assert found.tokens == 6 and found.total.rel_accuracy_bits() > 200


@pytest.mark.parametrize(
    ("stretches", "j", "eps", "below"),
    [(1, 3, 8, False), (1, 3, 7, True), (1, 2, 7, False), (1, 4, 8, True), (2, 4, 8, None)],
)
def test_a_geometric_tail_is_compared_by_its_power(stretches, j, eps, below):
    """`T_j / B = 2^-j`."""
    kernel = series(-n * sympy.log(2)).kernel
    sums = types.SimpleNamespace(kernel=kernel, stretches=range(stretches))
    assert TailComparison(sums)._geometric_tie(j, sympy.Rational(1, eps)) is below
