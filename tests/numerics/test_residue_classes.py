"""Biases with a formula of its own in each residue class, masked ones among them: known values, and
comparisons beside long-double tails of both series."""

from fractions import Fraction

import numpy as np
import pytest
from sympy import S

from farfield import compare_tails, encoding, theoretical_receptive_field
from farfield.numerics.comparison import PeriodBlock, _disagreement
from farfield.numerics.levels import merged
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.formula.grammar import read

EVEN = "where(n%2==0,-n/8,-inf)"  # ratio q = e^(-1/4) on the even distances


@pytest.mark.parametrize("far", [10, 10**30])
def test_intervals_of_classes_are_those_of_their_distances(far):
    runs = [
        range(0, 4 * far, 2),
        range(1, 2 * far, 4),
        range(3, 2 * far, 4),
        range(4 * far, 5 * far),
    ]
    end = 2 * far
    want = [(0, end), *((end + 2 * k, end + 2 * k) for k in (1, 2, 3))]
    assert merged(runs, 4) == want


@pytest.mark.parametrize("slope", [1, 8, 64])
@pytest.mark.parametrize("exact, last", [(16, 128), (8, 64), (32, 512)])
def test_buckets_beside_a_slope_settle_on_the_last_one(exact, last, slope):
    """T5's buckets with ALiBi, as people write them: each distance by hand, in integers."""
    text = (
        f"-where(n<{exact},n,min({exact}+floor(log(max(n,1)/{exact})/log({last}/{exact})*{exact}),"
        f"{2 * exact - 1}))/{slope}-n/512"
    )

    def bucket(k):  # floor(log(k/e)/log(l/e) e) is the most s with (l/e)^s <= (k/e)^e
        if k < exact:
            return k
        steps = range(exact)
        return exact + max(s for s in steps if (last // exact) ** s * exact**exact <= k**exact)

    weights = np.exp([-bucket(k) / slope - k / 512 for k in range(3 * last)])
    weights = np.append(
        weights, np.exp(-(2 * exact - 1) / slope - np.arange(3 * last, 25000) / 512)
    )
    tails = weights[::-1].cumsum()[::-1]
    for eps in ("1/10", "1/100"):
        found = theoretical_receptive_field(text, eps)
        assert found.tokens == np.flatnonzero(tails < float(Fraction(eps)) * tails[0])[0]
        assert found.label == "certified"


@pytest.mark.parametrize(("gap", "held"), [("0", True), ("-3", True), ("1/(n+1)", False)])
def test_sums_are_proportional_where_all_formulas_differ_by_constants(gap, held):
    p = read("-n")
    terms = ((p, S.Zero),), ((p, S.Zero), (p + read(gap), S.Zero))
    assert PeriodBlock(2, 0, p, terms).proportional is held


def test_of_one_block_the_ratio_is_what_is_not_decided():
    said = "the terms agree in the limit, to all digits tried: ratio 1"
    assert _disagreement([None]) == said


PLAIN = 4000  # distances summed in long doubles; the last seven eighths serve only as the rest


def tails(text):
    """T_j/B, of a series that falls so fast that what lies beyond `PLAIN` is below rounding."""
    bias = encoding(text).bias(np.arange(PLAIN))[0].astype(np.longdouble)
    sums = np.cumsum(np.exp(bias)[::-1])[::-1]
    return sums[: PLAIN // 8] / sums[0]


PAIRS = [
    ("-2*n", "-n/9+where(Mod(n,2)==0,1,0)", "a"),
    ("Piecewise((-n,Eq(Mod(n,2),0)),(-2*n-1,True))", "-3*n", "b"),
    (EVEN, "-n/8", "a"),
    ("-n/8", EVEN, "b"),
    (EVEN, "-n/9", "a"),
    (EVEN, "-n/5", "b"),
    (EVEN, "where(cos(pi*n)>0,-n/8+1,-inf)", "neither"),
    (EVEN, "where((n%2==1)|(n==0),-n/8,-inf)", None),
    ("where(n%2==0,-n/2,-n)", "where(n%2==0,-n,-n/2)", None),
    ("where(n%2==0,-n/2,-n)", "where(n%2==0,-n,-n/3)", "a"),
    ("-n**2+where(n%2==0,1,0)", "-n**2", None),
    ("where(n%3==1,-inf,-n/9)", "where(n%2==0,-n/9,-n/6-1)", "b"),
    ("where(n%4==0,-n/20,-inf)", "max(-n/2,-n/20-2)+where(n%3==0,1,0)", "b"),
    ("where(n<9,0,where(n%2==0,-n/8,-inf))", "-n/8", "a"),
]


@pytest.mark.parametrize(("a", "b", "lighter"), PAIRS)
def test_the_lighter_tail_is_the_smaller_one_in_the_end(a, b, lighter):
    found = compare_tails(a, b)
    assert (found.lighter, found.status) == (lighter, "exact")
    u, v = tails(a), tails(b)
    apart = np.abs(u - v) > 1e-15 * np.maximum(u, v)
    far = np.flatnonzero(apart)[-8:]
    sides = {"a" if u[j] < v[j] else "b" for j in far}
    assert sides == ({"a", "b"} if lighter is None else {lighter} - {"neither"})
    if lighter in ("a", "b"):
        assert found.reason is None
        light, heavy = (u, v) if lighter == "a" else (v, u)
        above = np.flatnonzero(apart & (light > heavy))
        assert (above[-1] if len(above) else None) == found.index
        assert found.crossover == pytest.approx(float(heavy[above].min()) if len(above) else 1.0)


def unsummed(*series):
    raise Unreachable("seeded")


def test_a_tail_that_vanishes_beside_another_needs_no_sum_of_either(monkeypatch):
    monkeypatch.setattr("farfield.numerics.comparison._ratio", unsummed)
    assert compare_tails("-n", "-2*log(1+n)").lighter == "a"


def test_tails_of_one_order_whose_sums_are_not_known_are_not_compared(monkeypatch):
    monkeypatch.setattr("farfield.numerics.comparison._ratio", unsummed)
    answer = compare_tails("-2*log(1+n)", "-2*log(2+n)")
    assert (answer.status, answer.reason.code) == ("unknown", "no_enclosure")


LIGHTER = "{} has the lighter tail; its receptive field is the smaller one up to eps*"
NOT_LOCATED = (
    "the crossover was not located: no point is proved beyond which the terms keep their order"
)
ONE_EACH = (
    "modulo 2, the normalised tail from j on is in the end "
    "smaller for a at j = 1, smaller for b at j = 0"
)
STEPS = [  # two biases; the lighter, the claim, the steps after the first, eps*, the reason
    (
        "-log(1+n)^2",
        "-2*log(1+n)",
        "a",
        LIGHTER.format("a"),
        "difference limit=-oo; dominated index=16; crossover index=2",
        0.2400911226824667,
        "None",
    ),
    (
        "-n/256",
        "-2*log(1+n)",
        "a",
        LIGHTER.format("a"),
        "difference limit=-oo; dominated index=8192; crossover index=2083",
        0.00029178166075531295,
        "None",
    ),
    (
        "-3*log(1+n)",
        "-2*log(5+n)",
        "a",
        LIGHTER.format("a"),
        "difference limit=-oo; dominated index=8; crossover index=none",
        1.0,
        "None",
    ),
    (
        "-2*log(1+n)",
        "-2*log(1+n)+1/(1+n)",
        "b",
        LIGHTER.format("b"),
        "difference limit=0; ratio limit=0 relation=>; dominated index=2; crossover index=none",
        1.0,
        "None",
    ),
    (
        "-2*log(1+n)",
        "-2*log(2+n)",
        "a",
        LIGHTER.format("a"),
        "difference limit=0; ratio limit=0 relation=<; dominated index=4; crossover index=none",
        1.0,
        "None",
    ),
    (
        "-log(1+n)^2",
        "-n^(1/3)",
        "b",
        "b has the lighter tail",
        "difference limit=oo",
        None,
        NOT_LOCATED,
    ),
    (
        "-n",
        "-n+3",
        "neither",
        "the terms are proportional: equal receptive fields",
        "difference limit=-3",
        None,
        "None",
    ),
    (
        "-n",
        "-n",
        "neither",
        "the terms are proportional: equal receptive fields",
        "difference limit=0",
        None,
        "None",
    ),
    (
        "-log(1+n)",
        "-n",
        "b",
        "the exp-series of -log(1+n) diverges",
        "",
        1.0,
        "the exp-series of -log(1+n) diverges",
    ),
    (
        "-log(1+n)",
        "-log(2+n)",
        "None",
        "the exp-series of -log(1+n) and of -log(2+n) diverges",
        "",
        None,
        "the exp-series of -log(1+n) and of -log(2+n) diverges",
    ),
    (
        "where(n<10,-n/8,-inf)",
        "where(n<12,0,-inf)",
        "a",
        LIGHTER.format("a"),
        "supports a=10 b=12; dominated index=10; crossover index=none",
        1.0,
        "None",
    ),
    (
        "where(n<10,-n/8,-inf)",
        "where(n<10,0,-inf)",
        "neither",
        "equal supports",
        "supports a=10 b=10",
        None,
        "both end before n = 10",
    ),
    (
        "where(n<10,-n/8,-inf)",
        "-n",
        "a",
        LIGHTER.format("a"),
        "supports a=10 b=None; dominated index=10; crossover index=9",
        0.00012340980408667956,
        "None",
    ),
    (
        "-abs(n-5)",
        "-abs(n-5)+3",
        "neither",
        "the terms are proportional: equal receptive fields",
        "difference limit=-3",
        None,
        "None",
    ),
    (
        "where(n<2,-n,-inf)",
        "where(n<1,0,where(n<3,-1-log(2),-inf))",
        "a",
        "a has the lighter tail",
        "supports a=2 b=3",
        None,
        "the crossover was not located: the tails agree at 1 to all digits tried",
    ),
    (
        EVEN,
        "-n/9",
        "a",
        LIGHTER.format("a"),
        (
            "blocks period=2; block residue=0 quotient=0 relation=<; "
            "block residue=1 quotient=0 relation=<; dominated index=8; crossover index=none"
        ),
        1.0,
        "None",
    ),
    (
        EVEN,
        "-n/5",
        "b",
        LIGHTER.format("b"),
        (
            "blocks period=2; block residue=0 quotient=infinite relation=>; "
            "block residue=1 quotient=infinite relation=>; dominated index=8; "
            "crossover index=1"
        ),
        0.7788007830714049,
        "None",
    ),
    (
        "where(n%2==0,-n/2,-n)",
        "where(n%2==0,-n,-n/2)",
        "None",
        "nothing follows from this test",
        (
            "blocks period=2; block residue=0 quotient=1.73791 relation=>; "
            "block residue=1 quotient=0.639343 relation=<"
        ),
        None,
        ONE_EACH,
    ),
    (
        EVEN,
        "where(cos(pi*n)>0,-n/8+1,-inf)",
        "neither",
        "the terms are proportional: equal receptive fields",
        "difference limit=-1",
        None,
        "None",
    ),
    (
        "-n**2+where(n%2==0,1,0)",
        "-n**2",
        "None",
        "nothing follows from this test",
        (
            "blocks period=2; block residue=0 quotient=1.20163 relation=>; "
            "block residue=1 quotient=0.442056 relation=<"
        ),
        None,
        ONE_EACH,
    ),
    (
        "-n**2/2-200",
        "-n**2/2+n-100",
        "a",
        LIGHTER.format("a"),
        "difference limit=-oo; dominated index=2; crossover index=none",
        1.0,
        "None",
    ),
    (
        "-n^3",
        "-n/10",
        "a",
        LIGHTER.format("a"),
        "difference limit=-oo; dominated index=2; crossover index=none",
        1.0,
        "None",
    ),
    (
        "-n+sin(n)",
        "-n",
        "None",
        "nothing follows from this test",
        "",
        None,
        "p_a - p_b has no limit, or none that is decided",
    ),
    (
        "-n/2",
        "-n/2+log(1+n)",
        "a",
        LIGHTER.format("a"),
        "difference limit=-oo; dominated index=4; crossover index=none",
        1.0,
        "None",
    ),
    (
        "-2*log(1+n)-3/(n+1)",
        "-2*log(1+n)-3/(n+2)",
        "b",
        LIGHTER.format("b"),
        "difference limit=0; ratio limit=0 relation=>; dominated index=4; crossover index=none",
        1.0,
        "None",
    ),
    (
        "-n/100",
        "-n/100-30/(n+1)",
        "a",
        LIGHTER.format("a"),
        "difference limit=0; ratio limit=0 relation=<; dominated index=64; crossover index=none",
        1.0,
        "None",
    ),
    (
        "-n/3-4000*exp(-n)",
        "-n/2",
        "b",
        LIGHTER.format("b"),
        "difference limit=oo; dominated index=16; crossover index=none",
        1.0,
        "None",
    ),
    (
        "where(n%2==0,-2*log(1+n),-inf)",
        "-2*log(3+n)",
        "a",
        LIGHTER.format("a"),
        (
            "blocks period=2; block residue=0 quotient=0.160061 relation=<; "
            "block residue=1 quotient=0.160061 relation=<; dominated index=8; "
            "crossover index=none"
        ),
        1.0,
        "None",
    ),
    (
        "-n/4-300*log(1+n)",
        "-n/4",
        "a",
        LIGHTER.format("a"),
        "difference limit=-oo; dominated index=2; crossover index=none",
        1.0,
        "None",
    ),
    (
        "-log(1+n)^2/1000-log(1+n)",
        "-1.001*log(1+n)",
        "a",
        "a has the lighter tail",
        "difference limit=-oo",
        None,
        NOT_LOCATED,
    ),
]
SIDES = {"a": "b", "b": "a"}


@pytest.mark.parametrize(("a", "b", "lighter", "claim", "steps", "crossover", "reason"), STEPS)
def test_a_comparison_tells_how_it_was_decided(a, b, lighter, claim, steps, crossover, reason):
    found, turned = compare_tails(a, b), compare_tails(b, a)
    assert (str(found.lighter), found.proof.claim, str(found.reason)) == (lighter, claim, reason)
    said = [
        (step.rule, *(f"{k}={v}" for k, v in step.values.items())) for step in found.proof.steps
    ]
    assert "; ".join(map(" ".join, said[1:])) == steps and said[0][0] == "compared"
    assert found.crossover == (crossover and pytest.approx(crossover, rel=1e-12))
    assert turned.lighter == SIDES.get(found.lighter, found.lighter)
    assert (turned.index, turned.enclosure) == (found.index, found.enclosure)
