"""Prices and reaches: brute force on rows and series, ties, rows of a billion keys, bad input."""

import math
import random

import mpmath
import numpy as np
import pytest
import sympy

from farfield import encoding, price_of_distance, reach
from farfield.numerics.float_rows import head_prices
from farfield.numerics.levels import BeyondCounting
from farfield.numerics.search import Bracket, Exact
from farfield.numerics.summation.series import _series
from farfield.theory.functions.nodes import n

mpmath.mp.dps = 40
MASKED = "Piecewise((-oo, n < {0}), (-n/{1}, True))"
SHAPES = (
    "-n*{0}/16",
    "-{0}/16*log(1+n)",
    "-((n-{0})^2)/{1}",
    "{0}/16*cos(n/{1})-n/{2}",
    "-abs(n-{0})/{1}",
    MASKED,
    "-{0}/16*log(1+n)-n/{1}+{2}*exp(-n/9)",
    "-max(n-{0},0)/{1}",
    "-{0}/16*sqrt(n)",
    "n/{0}",
    "0",
    "{0}/16*log(1+n)-{1}/16*log(1+n)^2",
)


def random_row(rng):
    """A bias and its values on a row, as text and as numbers of 40 digits."""
    text = rng.choice(SHAPES).format(*(rng.randint(1, 40) for _ in range(3)))
    evaluate = sympy.lambdify(n, encoding(text).biases[0], "mpmath")
    return text, [mpmath.mpf(evaluate(mpmath.mpf(k))) for k in range(rng.randint(1, 160))]


def prices_by_sums(p):
    """Every price of a row, the others summed anew at each distance."""
    weights = [mpmath.exp(v) for v in p]
    near = [mpmath.mpf(0)]
    for w in weights:
        near.append(near[-1] + w)
    far = [mpmath.mpf(0)]
    for w in reversed(weights):
        far.append(far[-1] + w)
    found = []
    for k, w in enumerate(weights):
        others = near[k] + far[len(p) - 1 - k]
        found.append(
            mpmath.inf if w == 0 else -mpmath.inf if others == 0 else mpmath.log(others / w)
        )
    return found


def assert_price(found, expected):
    if mpmath.isinf(expected):
        assert found.value == expected and found.status == "infinite"
    else:
        assert abs(found.value - expected) <= 1e-14 * max(1, abs(expected))
        assert found.enclosure[0] <= expected <= found.enclosure[1]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(5))
def test_rows_against_brute_force(seed):
    rng = random.Random(seed)
    for _ in range(50):
        text, p = random_row(rng)
        prices, length, gain = prices_by_sums(p), len(p), rng.randint(-24, 96) / 8
        share = sympy.Rational(rng.choice(("1/2", "1/3", "9/10", "1/100")))
        bar = gain - mpmath.log(mpmath.mpf(share.p) / (share.q - share.p))
        inside = [k for k, v in enumerate(prices) if v <= bar + mpmath.mpf(10) ** -30]
        found = reach(text, gain, share=share, length=length)
        assert (found.tokens, found.farthest) == (len(inside), max(inside, default=None)), text
        counted = sum(b - a + 1 for a, b in found.intervals)
        assert counted == found.tokens or len(found.intervals) == 64
        at = rng.randrange(length)
        assert_price(price_of_distance(text, at, length=length), prices[at])
        table = np.array([[float(v) for v in p]])
        floats = head_prices(table)[0]
        with np.errstate(invalid="ignore"):
            expected = np.array([float(v) for v in prices])
            close = np.abs(floats - expected) <= 1e-11 * np.maximum(1, np.abs(expected))
        assert (close | (floats == expected)).all()


SERIES = (
    ("-n/4", lambda k: 1 / (1 - mpmath.exp(-0.25)), lambda k: mpmath.exp(-mpmath.mpf(k) / 4)),
    ("-40*n", lambda k: 1 / (1 - mpmath.exp(-40)), lambda k: mpmath.exp(-mpmath.mpf(40) * k)),
    ("-2*log(1+n)", lambda k: mpmath.zeta(2), lambda k: mpmath.mpf(1 + k) ** -2),
    ("-5/4*log(3+n)", lambda k: mpmath.zeta(1.25, 3), lambda k: mpmath.mpf(3 + k) ** -1.25),
    ("-log(n+1)-log(n+2)", lambda k: mpmath.mpf(1), lambda k: mpmath.mpf(1) / (k + 1) / (k + 2)),
    (
        "Piecewise((0, n < 64), (-oo, True))",
        lambda k: mpmath.mpf(64),
        lambda k: mpmath.mpf(k < 64),
    ),
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("text, total, weight", SERIES, ids=[s[0] for s in SERIES])
def test_series_against_closed_forms(text, total, weight):
    whole = total(0)
    for gain in (-3, 0, 1.5, 4.2, 7, 9.25):
        bound = int(mpmath.exp(gain)) + 2
        inside = [k for k in range(bound) if weight(k) * (1 + mpmath.exp(gain)) >= whole]
        found = reach(text, gain)
        if gain == 0 and text == "-log(n+1)-log(n+2)":  # the nearest key is worth all others
            assert found.answer == Bracket(0, 1)
            continue
        assert (found.tokens, found.farthest) == (len(inside), max(inside, default=None))
        assert found.status == "exact" and found.label == "certified"
    for at in (0, 1, 7, 63, 1000):
        with mpmath.workdps(60):
            w = weight(at)
            expected = mpmath.log((total(0) - w) / w) if w else mpmath.inf
        if text != "-log(n+1)-log(n+2)" or at:
            assert_price(price_of_distance(text, at), expected)


def test_a_price_does_not_cancel():
    assert price_of_distance("-40*n", 0).value == -40
    assert price_of_distance("-1000000*n", 0, length=9).value == -1e6
    assert head_prices(-40.0 * np.arange(9)[None])[0, 0] == -40
    assert price_of_distance("-exp(n)", 1000).status == "enclosed"


TELESCOPE = "-log(n+1)-log(n+2)"


@pytest.mark.parametrize(
    ("text", "advantage", "options", "answer", "intervals"),
    [
        ("-n/2", "1/2", {"length": 2}, Exact(2), ((0, 1),)),  # a tie is within reach
        ("-(1/2+1/10^30)*n", "1/2", {"length": 2}, Exact(1), ((0, 0),)),
        ("-(1/2-1/10^30)*n", "1/2", {"length": 2}, Exact(2), ((0, 1),)),
        ("-n", -(10**5), {"length": 1}, Exact(1), ((0, 0),)),
        ("-n*log(2)", 0, {}, Exact(1), ((0, 0),)),
        (TELESCOPE, 0, {"share": "1/6"}, Bracket(1, 2), None),
        (TELESCOPE, 0, {"share": "0.1666666667"}, Exact(1), ((0, 0),)),
        (TELESCOPE, 0, {"share": "3/5", "length": 5}, Exact(1), ((0, 0),)),
        ("0", 0, {"length": 10**9, "share": "1e-9"}, Exact(10**9), ((0, 10**9 - 1),)),
        ("-1000000*n", -1000000, {}, Bracket(0, 1), None),
        ("log(2)-n", -100, {"length": 1}, Exact(1), ((0, 0),)),  # the only key
        ("0", 100, {}, Exact(0), ()),
        (MASKED.format(3, 1), 50, {"length": 3}, Exact(0), ()),
        ("-((n-50)^2)/100", 4, {}, Exact(21), ((40, 60),)),
        ("n/4", 7, {"length": 10**9}, Exact(22), ((10**9 - 22, 10**9 - 1),)),
        ("-log(1+n)", 4, {"length": 50}, Exact(12), ((0, 11),)),
        ("log(4)", 0, {"length": 3, "share": "1/3"}, Exact(3), ((0, 2),)),  # a tie of irrational p
    ],
)
def test_reaches_by_hand(text, advantage, options, answer, intervals):
    found = reach(text, advantage, **options)
    assert found.answer == answer and intervals in (None, found.intervals)
    assert (found.tokens is None) is isinstance(answer, Bracket)
    assert found.tokens is not None or (found.status, found.reason.code) == ("enclosed", "tie")
    assert not intervals or found.farthest == intervals[-1][-1]


def test_rows_of_a_billion_keys():
    assert price_of_distance("0", 10**8, length=10**9).value == pytest.approx(math.log(10**9 - 1))
    with mpmath.workdps(30):
        harmonic = mpmath.harmonic(10**9)
        value = mpmath.log(harmonic * 501 - 1)
    assert_price(price_of_distance("-log(1+n)", 500, length=10**9), value)
    assert reach("-log(1+n)", 7, length=10**9).tokens == int((1 + mpmath.exp(7)) / harmonic)
    smooth = price_of_distance("-log(log(n+3))", 10**6, length=10**9)
    assert smooth.label == "certified" and smooth.enclosure[1] - smooth.enclosure[0] < 1e-13


def test_an_answer_lists_64_runs():
    found = reach("where(n%2==0,0,-oo)", 7, length=200)
    assert found.tokens == 100 and found.intervals == tuple((k, k) for k in range(0, 128, 2))


def test_an_answer_beyond_all_bits_has_a_lower_bound():
    """An advantage of g reaches about e^(g/2) distances: 2^1442 of them."""
    found = reach("-2*log(1+n)", 2000)
    assert 2**1000 < found.answer.low <= 2**1024 and found.answer.high is None
    assert str(found.reason) == "the answer has more than 1024 bits" and found.tokens is None


@pytest.mark.parametrize(("f", "share"), [("-n*sin(n)^2", "1/2"), ("-n*sin(3*n/2)^2", "1/5")])
def test_rows_that_balls_do_not_sum_are_priced_in_floats(monkeypatch, f, share):
    """Also where no key is reached, where the last is, and where single keys are, or are left."""
    monkeypatch.setattr("farfield.numerics.summation.series.MAX_WORK", 64)
    _series.cache_clear()
    length = 800
    prices = head_prices(encoding(f).bias(np.arange(length)))[0]
    odds = math.log(sympy.Rational(share) / (1 - sympy.Rational(share)))
    for gain in (-9, 0.25, 1.5, 4, 2000, prices[7]):
        found, inside = reach(f, gain, share=share, length=length), prices <= gain - odds
        ends = np.flatnonzero(np.diff(np.concatenate([[0], inside, [0]])))
        assert found.tokens == inside.sum() and found.label == "approximate"
        assert found.intervals == tuple((a, b - 1) for a, b in ends.reshape(-1, 2).tolist())[:64]
    found = price_of_distance(f, 7, length=length)
    assert found.value == prices[7] and str(found.reason).endswith("; float64 sums")


def test_the_others_weigh_all_but_the_key_where_no_row_is_summed_up_to_it(monkeypatch):
    monkeypatch.setattr("farfield.numerics.summation.series.MAX_WORK", 64)
    _series.cache_clear()
    weights = [mpmath.exp(-mpmath.mpf(k) / 4 + mpmath.sin(k)) for k in range(600)]
    expected = mpmath.log((mpmath.fsum(weights) - weights[20]) / weights[20])
    assert_price(price_of_distance("-n/4+sin(n)", 20), expected)


def test_a_count_of_which_nothing_is_proved_is_unknown(monkeypatch):
    def runs(self):
        raise BeyondCounting(None)

    monkeypatch.setattr("farfield.numerics.levels.SuperlevelSet.runs", runs)
    found = reach("-n", 7)
    assert (found.status, found.answer) == ("unknown", None)
    assert str(found.reason) == "the answer has more than 1024 bits"
