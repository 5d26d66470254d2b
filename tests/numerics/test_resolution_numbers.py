"""Attention resolution: definition, identity, bounds, limits, masks, surrogates."""

from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
import sympy
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from farfield import attention_resolution, check_convergence, encoding
from farfield.numerics.float_rows import resolution_curve
from farfield.numerics.resolution import _neighbours
from farfield.numerics.summation.series import _series, series
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import precision

SCORES = st.lists(st.floats(-6, 6), min_size=2, max_size=12)


def defined(scores, masked_after=False):
    """[S, Eq. 4] term by term; the last score is s_{N+1}."""
    x = np.exp(np.array(scores, dtype=np.float64))
    if masked_after:
        x = np.append(x, 0.0)
    return float((x[:-1] * (x[:-1] - x[1:])).sum() / x[:-1].sum() ** 2)


@given(SCORES)
def test_the_curve_is_the_definition_at_every_length(scores):
    curve = resolution_curve(scores)
    each = [defined(scores[: k + 2]) for k in range(len(scores) - 1)]
    assert np.allclose(curve, each, rtol=1e-9, atol=1e-9 * max(1, *np.abs(each)))


def exactly(scores, after=None):
    """[S, Eq. 4] in 400 bits."""
    with mpmath.workprec(400):
        x = [mpmath.exp(mpmath.mpf(v)) for v in scores]
        x += [mpmath.mpf(0)] if after is None else [mpmath.exp(mpmath.mpf(after))]
        return sum(a * (a - b) for a, b in pairwise(x)) / sum(x[:-1]) ** 2


@pytest.mark.parametrize("size", [1e-8, 1.0, 30.0, 500.0, 1e6])
def test_the_resolution_of_scores_is_enclosed_under_every_rounding(size):
    rng = np.random.default_rng(int(size) + 1)
    for _ in range(100):
        scores = rng.normal(size=rng.integers(3, 9)) * size
        scores = np.rint(scores) if rng.random() < 0.3 else scores
        r = attention_resolution(scores)
        if r.value is None:  # beyond a float64
            assert scores[-1] - scores[:-1].max() > 300 and r.reason.code == "too_large"
            continue
        truth, (low, high) = exactly(scores[:-1], scores[-1]), r.enclosure
        assert low <= truth <= high and high - low <= 1e-9 * max(1, abs(truth)), scores
        assert r.bounds[1] >= truth and (r.bounds[0] is None or r.bounds[0] <= truth)
        falling = np.sort(scores)[::-1]
        weights = np.exp(falling - falling[0])
        top, last = weights[[0, -1]] / weights[:-1].sum()
        lemma = (top**2 - last**2) / 2, top * (top - last)
        assert attention_resolution(falling).bounds == pytest.approx(lemma, abs=1e-12)
        width = int(rng.integers(1, len(scores)))
        r = attention_resolution(scores, mask=f"window {width}")
        assert r.enclosure[0] <= exactly(scores[:width]) <= r.enclosure[1]
        half = len(scores) // 2
        r = attention_resolution(scores[: 2 * half], mask=f"bca {half}")
        with mpmath.workprec(400):
            truth = sum(exactly(scores[:k]) for k in range(half + 1, 2 * half + 1)) / half
        assert r.enclosure[0] <= truth <= r.enclosure[1]


def test_scores_whose_definition_cancels_in_floats():
    for scores, value in (
        ([0, 40], -2.35385266837019e17),
        ([0, 30], -1.06864745815234e13),
        ([0, 0, 36], -1.07780788677879e15),
        ([29.43, -66.28, -54.61, -97.54, -60.1, 84.02], 1.0),
        ([0, 100, 64], 1.0),
        ([-2000, 0, -950, 900], 1.0),
    ):
        r = attention_resolution(scores)
        assert r.value == pytest.approx(value, rel=1e-12) and r.bounds[1] <= 1
    vast = attention_resolution([5, 5, 1e10])
    assert vast.status == "unknown" and vast.value is None and vast.reason.code == "too_large"


@pytest.mark.parametrize("formula", ["-n/2", "-2*log(1+n)", "-log(1+n)^2", "-sqrt(n)", "cos(n)"])
@pytest.mark.parametrize("tokens", [2, 3, 50])
def test_a_finite_row_is_enclosed(formula, tokens):
    r = attention_resolution(formula, tokens)
    low, high = r.enclosure
    value = defined(encoding(formula).bias(np.arange(tokens))[0])
    assert low - 1e-12 <= value <= high + 1e-12 and high - low < 1e-12
    assert r.label == "certified" and f"p({tokens - 1})" in r.last


@given(st.fractions(min_value="1/10", max_value=6, max_denominator=10), st.integers(2, 40))
def test_a_line_in_closed_form(slope, tokens):
    """Geometric sums: (1 - q)^2 / (1 + q), times (1 + q^N) / (1 - q^N) in a row of N terms."""
    limit, row = (attention_resolution(f"-({slope})*n", t) for t in (None, tokens))
    q = mpmath.exp(-mpmath.mpf(slope.numerator) / slope.denominator)
    r = (1 - q) ** 2 / (1 + q)
    power = q ** (tokens - 1)
    for found, exact in ((limit, r), (row, r * (1 + power) / (1 - power))):
        assert found.value == pytest.approx(float(exact), rel=1e-12)
    assert row.limit == limit.value


PI = mpmath.pi
CLOSED = [  # f, options, the resolution
    ("-2*log(1+n)", {}, (PI**4 / 90 - PI**2 / 3 + 3) / (PI**4 / 36)),
    ("where(n < 8, 0, -oo)", {}, 1 / 64),
    ("-65536*log(1+n)", {}, 1),  # its zeta value is a fraction of millions of digits
    ("nope", {"length": 100, "mask": "window 10"}, 1 / 100),
    ("nope", {"length": 10, "mask": "window 10"}, 0),  # s_9 is still seen
    ("window", {"length": 100, "w": 10}, 1 / 100),
    ("-n/2", {"mask": "window 3"}, defined([0, -0.5, -1.0], True)),
    ([1.0, 0.2, 0.9, -3.0], {"mask": "window 2"}, defined([1.0, 0.2], True)),
    (encoding(values=[0.0, -1.0, -0.5], tail="constant"), {}, 0),
    (encoding(values=[0.0, -1.0, -0.5], tail="cut"), {}, defined([0, -1, -0.5], True)),
]


@pytest.mark.parametrize(("f", "options", "value"), CLOSED)
def test_resolutions_in_closed_form(f, options, value, monkeypatch):
    for balls in (1_024, 1):  # terms that are summed one by one
        monkeypatch.setattr("farfield.numerics.resolution.MAX_BALLS", balls)
        found = attention_resolution(f, **options)
        assert found.value == pytest.approx(float(value), rel=1e-12, abs=1e-15) and found.label


@pytest.mark.parametrize("f", ["-n/8", [0.0, -0.5, -1.0, -1.5, -2.0]], ids=["bias", "scores"])
@pytest.mark.parametrize("mask", [None, "window 2", "bca 2"])
def test_the_mask_is_told_in_the_words_that_are_read(f, mask):
    found = attention_resolution(f, mask=mask)
    assert found.mask == (mask or "none")
    assert ("masked" in found.last) is (mask is not None)


@pytest.mark.parametrize(
    "mask", [None, "window 16", "window 63", "window 64", "window 90", "bca 8"]
)
def test_the_limit_is_that_of_longer_rows_under_the_same_mask(mask):
    limit, longer = (
        attention_resolution("-n/8", 64, mask=mask).limit,
        attention_resolution("-n/8", mask=mask),
    )
    assert limit == longer.value or (limit is None and mask in ("window 64", "window 90"))


def test_a_row_of_a_billion_tokens_is_certified():
    r = attention_resolution("-2*log(1+n)", 10**9)
    assert r.label == "certified" and r.enclosure[1] - r.enclosure[0] < 1e-15
    assert r.value != r.limit and abs(r.value - r.limit) < 1e-8


@pytest.mark.parametrize("half", [1, 2, 5])
def test_blockwise_causal_attention_row_by_row(half):
    bias = -np.sqrt(np.arange(2 * half))
    rows = [position - half * (position // half - 1) + 1 for position in range(half, 3 * half)]
    each = [defined(bias[:seen], True) for seen in rows]
    for r in (
        attention_resolution("-sqrt(n)", mask=f"bca {half}"),
        attention_resolution(encoding("-sqrt(n)", bca=half)),
        attention_resolution(bias, mask=("bca", half)),
    ):
        assert r.value == pytest.approx(np.mean(each))
        assert r.rows == pytest.approx((min(each), max(each)))


@pytest.mark.parametrize(
    "formula",
    [
        "max(where((n%6==2)&(n<=130),0.5,-inf),where(n%3==0,-floor(n/2)/2,-inf))",
        "max(where(n%6==2,-n,-inf),where(n%3==0,-n/2,-inf))",
        "max(where((n%2==0)&(n<=9),0.5,-inf),where(n%2==1,-n,-inf))",
    ],
)
def test_neighbours_in_two_classes_of_distances_are_multiplied(formula):
    """SymPy drops the second piece of the maximum where the distance is moved by one."""
    weight = np.exp(encoding(formula).bias(np.arange(400))[0])
    plain = (weight[:-1] * (weight[:-1] - weight[1:])).sum() / weight.sum() ** 2
    assert attention_resolution(formula).value == pytest.approx(plain, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "falls"),
    [
        ("-log(2)*n", True),
        ("where(n<4,0,-log(2)*n)", True),
        ("where(n<5,0,-log(2)*n)", False),  # not from the fourth key on
        ("where(n%2==0,-log(2)*n,-2*log(2)*n)", False),  # each class alone
        ("-4*log(2)*floor(log(n+1)/log(2))", False),
    ],
)
def test_products_of_neighbours_lie_between_bounds_of_the_rest(monkeypatch, text, falls):
    """Four products are summed one by one; the rest is at most sqrt(Q_4 Q_5), and at least Q_5
    where the weights fall."""
    monkeypatch.setattr("farfield.numerics.resolution.FIRST_TERMS", 4)
    s, squares = series(read(text)), series(2 * read(text))
    with precision(64):
        found = _neighbours(s, squares)
    x = np.exp(encoding(text).bias(np.arange(4_000))[0])
    products, after = x[:-1] * x[1:], (x[5:] ** 2).sum()
    ends = falls * after, np.sqrt((after + x[4] ** 2) * after)
    wanted = [products[:4].sum() + end for end in ends]
    assert [float(found.lower()), float(found.upper())] == pytest.approx(wanted, rel=1e-9)
    assert found.overlaps(arb(products.sum(), 1e-12))


@pytest.mark.timeout(60)  # point by point it would take hours
def test_a_million_points_in_one_pass():
    curve = resolution_curve(-np.log1p(np.arange(10**6 + 1.0)))
    assert curve.shape == (10**6,) and (np.diff(curve[10:]) < 0).all()


def test_the_scale_can_reverse_an_order():
    (x, r), (x2, r2) = (
        [attention_resolution(f"{name}_surrogate", 256, scale=scale) for name in ("xpos", "rope")]
        for scale in ("1", "1/32")
    )
    assert x.enclosure[0] > r.enclosure[1] and x2.enclosure[1] < r2.enclosure[0]
    assert x2.scale == Fraction(1, 32) and x2.limit == 0.0


LAWS = {
    "nope": {},
    "window": {"w": 7},
    "alibi": {"heads": 2},
    "sandwich": {"heads": 2, "d_bar": 16},
    "kerple_log": {"r1": ["4/5", "6/5"], "r2": ["1/2", "1/2"]},
    "kerple_power": {"r1": 1, "r2": "1/2"},
    "sandwich_smoothed": {"heads": 2},
    "type1": {},
    "type2": {},
    "example1": {},
    "example2": {},
    "alibi_log": {"m": "3/2"},
    "rope_surrogate": {"d": 8},
    "xpos_surrogate": {"d": 8},
}


@pytest.mark.parametrize("name", LAWS)
def test_the_limit_is_positive_exactly_if_the_series_converges(name):
    subject = encoding(name, **LAWS[name])
    whole, verdict = attention_resolution(subject), check_convergence(subject)
    for r, v in zip(whole.heads or (whole,), verdict.heads or (verdict,), strict=True):
        assert r.value is not None and (r.value > 0) is v.converges
        assert r.enclosure[0] <= r.value <= r.enclosure[1]


@pytest.mark.parametrize("name", LAWS)
def test_a_constant_in_the_bias_and_its_name_do_not_matter(name):
    bias = encoding(name, **LAWS[name]).head(1)
    one, other = (attention_resolution(b, 40) for b in (bias, sympy.expand(bias + 3)))
    assert one.value == pytest.approx(other.value, rel=1e-12, abs=1e-15)
    assert one.bounds == pytest.approx(other.bounds)


@pytest.mark.parametrize("tens", [10, 20, 30, 40, 60])
def test_every_digit_of_a_small_resolution_holds(tens):
    """To first order in 10^-tens the weights are 1 - 14/5 n 10^-tens."""
    found = attention_resolution(f"-(14/5)*log(1+n/10^{tens})", 17)
    low, high = found.enclosure
    assert low <= found.value <= high < low * (1 + 1e-12)
    assert found.value == pytest.approx(1.75 * 10.0 ** (-tens - 1) * 1, rel=1e-8)


@pytest.mark.parametrize("mask", [None, "window 9000", "bca 400"])
def test_rows_that_balls_do_not_sum_are_summed_in_floats(mask, monkeypatch):
    def ask():
        _series.cache_clear()
        return attention_resolution("-n*sin(n)^2", 12_000, mask=mask)

    exact = ask()
    monkeypatch.setattr("farfield.numerics.resolution.MAX_BALLS", 64)
    monkeypatch.setattr("farfield.numerics.summation.series.MAX_WORK", 64)
    floats = ask()
    assert (exact.label, floats.label, floats.last) == ("certified", "approximate", exact.last)
    assert floats.value == pytest.approx(exact.value, rel=1e-9) and floats.rows == exact.rows
    if mask is None:
        monkeypatch.setattr("farfield.numerics.resolution.MAX_FLOATS", 64)
        assert str(ask().reason) == "11999 terms would have to be summed one by one"


@pytest.mark.parametrize("width", [64, 65])
def test_up_to_a_number_of_terms_scores_are_summed_in_balls(monkeypatch, width):
    monkeypatch.setattr("farfield.numerics.resolution.MAX_BALLS", 64)
    scores, half = np.sqrt(np.arange(80) * 7 % 13), width // 2 + (width == 65)
    rows = [defined(scores[:k], True) for k in range(half + 1, 2 * half + 1)]
    for seen, mask, value in (
        (scores[: width + 1], None, defined(scores[: width + 1])),
        (scores, f"window {width}", defined(scores[:width], True)),
        (scores, f"bca {half}", np.mean(rows)),
    ):
        found = attention_resolution(seen, mask=mask)
        assert found.value == pytest.approx(value) and found.label == "measured"
        assert (found.enclosure is None) is (width == 65)


def test_bounds_are_those_of_the_row_that_is_seen():
    falling = -np.sqrt(np.arange(9))
    share = np.exp(falling) / np.exp(falling[:5]).sum()
    found = attention_resolution(falling, mask="window 5")
    assert found.bounds == pytest.approx((share[0] ** 2 / 2, share[0] ** 2))
    found = attention_resolution(falling[::-1], mask="window 5")
    back = np.exp(falling[::-1][:5])
    assert found.bounds == (None, pytest.approx(((back / back.sum()) ** 2).sum()))
    found = attention_resolution([0.0, 0.0, 0.0])
    assert found.bounds[0] == 0 <= found.bounds[1] < 1e-13
    assert attention_resolution([0.0, -900.0]).bounds[1] == 1
    assert attention_resolution([1e300, 0.0]).value == 1


def test_the_mean_of_heads_is_enclosed_by_those_of_their_ends():
    found = attention_resolution("alibi", 64)
    pairs = zip(*(h.enclosure for h in found.heads), strict=True)
    ends = [sum(map(Fraction, each)) / 8 for each in pairs]
    low, high = found.enclosure
    assert low < ends[0] < ends[1] < high < low + 1e-15


def test_a_scale_may_be_an_expression():
    for scale in (1 / sympy.sqrt(64), sympy.Float(0.125)):
        one, other = (attention_resolution("-n", 9, scale=s) for s in (scale, "1/8"))
        assert (one.value, one.scale) == (other.value, other.scale)
