"""A forecast is what was measured on the nearest trained models, and how near they are."""

import time

import numpy as np
import pytest
from polars import col

from farfield import encoding, forecast
from farfield.theory.algebra.door import until
from farfield.theory.answers.answer import Code, Label, Status
from farfield.validation.forecast import CASE, FAR, NEAR, NEAREST, measured
from farfield.validation.prior import prior
from farfield.validation.results import LAST, results

HOME = {"trained": 64, "tested": 1024}


def test_a_trained_case_is_its_own_nearest_and_has_its_measured_ratio():
    found = forecast("-n/16", **HOME)
    rows = results().filter(label="alibi equal 4", protocol=LAST, length=1024, experiment="first")
    (own,) = (c for c in found.nearest if c.name == "alibi equal 4")
    assert own.distance == found.distance == 0 and own.settings["seeds"] == len(rows)
    assert own.ratio == pytest.approx(np.exp(rows["ratio"].log().mean()))
    assert own.interval == (rows["low"].min(), rows["high"].max())
    assert found.status is Status.ENCLOSED and found.label is Label.FORECAST


def test_distances_and_their_mean_by_hand():
    """Shares of the numbers of the prior, doublings of the shape; 1 / (distance + 1/50) weighs."""
    asked = {"trained": 32, "tested": 1024, "layers": 2, "heads": 4, "steps": 500}
    found = forecast("-n/11", **asked)
    own = prior(encoding("-n/11").bias(np.arange(1024)), 32, 2)
    shares = {"order": 1, "beyond": 1, "drowned": 0.5, "local": 0.5}
    shape = {"steps": (500, 0.25), "layers": (2, 0.1), "heads": (4, 0.1), "trained": (32, 0.1)}
    best = {}
    for row in measured().filter(mechanism="bias").iter_rows(named=True):
        away = sum(abs(row[k] - getattr(own, k)) * share for k, share in shares.items())
        away += sum(abs(np.log2(row[k] / value)) * share for k, (value, share) in shape.items())
        away += abs(np.log2(row["length"] / row["trained"] / 32)) * 0.1
        case = tuple(row[name] for name in CASE)
        best[case] = min(best.get(case, (9, 0)), (away, row["ratio"]))
    nearest = sorted(best.values())[:3]
    assert [c.distance for c in found.nearest] == pytest.approx([away for away, _ in nearest])
    ratio = np.exp(
        np.average(np.log([r for _, r in nearest]), weights=[1 / (d + 0.02) for d, _ in nearest])
    )
    assert found.ratio == pytest.approx(ratio) and found.cases == len(best)
    assert found.distance == found.nearest[0].distance and len(found.nearest) == NEAREST
    assert found.holds == np.mean([r < 1.05 for _, r in nearest])
    low, high = found.interval
    assert all(low <= c.interval[0] <= c.interval[1] <= high for c in found.nearest)
    changes = sorted(round(c.ratio - 1, 3) for c in found.nearest)
    assert f"by {changes[0]:+.1%} to {changes[-1]:+.1%} at 32 times" in " ".join(str(found).split())


@pytest.mark.parametrize(
    ("heads", "loss"),
    [
        (["-3*n/2", *7 * ["0"]], 0.043),
        ([*2 * ["-3*log(1+n)"], *6 * ["0"]], 0.046),
        (["-(n-1)^2/2", *7 * ["0"]], 0.030),
        (["-50*n", *7 * ["0"]], 0.477),
    ],
)
def test_cases_that_were_kept_aside_are_on_the_right_side(heads, loss):
    """Of `experiments/registered.md`; their models entered no table."""
    assert (forecast(heads, **HOME).ratio < 1.05) == (np.exp(loss) < 1.05)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["where(n<1,0,-oo)", *7 * ["0"]], ["-1000*n", *7 * ["0"]]),
        (encoding("window", w=32), "where(n<32,0,-1000)"),
        ("-n/4", 8 * ["-n/4"]),
        (8 * ["-n/4"], encoding("alibi", dialect="equal", slope_exponent=2)),
    ],
)
def test_a_forecast_is_one_of_the_kernel_and_not_of_its_spelling(one, other):
    told = [
        [(c.name, pytest.approx(c.distance, abs=1e-9)) for c in forecast(f, **HOME).nearest]
        for f in (one, other)
    ]
    assert told[0] == told[1]


def test_any_lengths_and_heads_are_answered_by_saying_how_far_the_evidence_is():
    for options in ({"trained": 2048, "tested": 8192}, {**HOME, "heads": 12}):
        found = forecast("alibi", **options)
        assert found.label is Label.FORECAST and NEAR < found.distance < FAR
        assert "not near" in repr(found) and len(found.nearest) == NEAREST


def test_beyond_the_evidence_the_rows_are_there_all_the_same():
    found = forecast("-n/4", **HOME, steps=10**6)
    assert found.reason.code is Code.BEYOND_EVIDENCE and found.distance > FAR
    assert found.ratio is found.holds is found.interval is found.label is None
    assert len(found.nearest) == NEAREST and "1.5 away" not in repr(found)


@pytest.mark.parametrize(
    "f", ["n", "n^2", "exp(n)", "exp(exp(n))", "where(n<63,0,1000)", "where(n<64,-oo,0)", "1/n"]
)
def test_a_bias_that_rises_or_is_infinite_is_not_forecast(f):
    for heads in (f, ["-n/4", f, *6 * ["0"]]):
        found = forecast(heads, **HOME)
        assert found.reason.code is Code.BEYOND_EVIDENCE and found.ratio is None


def test_a_mechanism_without_a_bias_has_its_own_models():
    found = forecast("rope", **HOME)
    assert {c.name for c in found.nearest} == {"rope"} and found.ratio > 4 and found.holds == 0
    assert forecast(encoding("rope", bca=32), **HOME).status is Status.OUT_OF_SCOPE


def test_a_stand_in_for_scores_is_not_forecast():
    found = forecast("rope_surrogate", **HOME)
    assert found.ratio is None and found.reason.code is Code.BEYOND_EVIDENCE


def test_a_forecast_that_has_no_time_left_says_so():
    asked = encoding("-71*log(3+n/977)^(17/13)/39")  # of no other test: values are remembered
    with until(time.monotonic()):
        found = forecast(asked, **HOME)
    assert found.reason.code is Code.BUDGET and found.ratio is None


def test_runs_of_ones_own_are_the_evidence(tmp_path):
    mine = results().filter(col("label").is_in(["nope", "alibi equal 2"]))
    file = tmp_path / "mine.csv"
    mine.write_csv(file)
    found = forecast("-n/5", **HOME, runs=str(file))
    assert {c.name for c in found.nearest} == {"nope", "alibi equal 2"} and found.cases == 2
    nothing = tmp_path / "none.csv"
    mine.clear().write_csv(nothing)
    empty = forecast("-n/5", **HOME, runs=str(nothing))
    assert empty.reason.code is Code.BEYOND_EVIDENCE and empty.nearest == ()


@pytest.mark.parametrize(
    ("f", "options", "message"),
    [
        ("-n", {"trained": 64, "tested": 64}, "tested = 64 must be above trained = 64"),
        ("-n", {"trained": 0, "tested": 64}, "trained"),
        ("-n", {"trained": 64, "tested": 1 << 21}, "at most 1048576"),
        ("-a*n", {"trained": 64, "tested": 128}, "free parameters: give values for a"),
        ("-n", {"trained": 64, "tested": 128, "layers": 0}, "layers"),
        *(("-n", {"trained": 64, "tested": 128, "layers": 10**k}, "1 to 10000") for k in (9, 30)),
        ("-n", {"trained": 64, "tested": 128, "runs": "nowhere"}, "'nowhere' does not exist"),
    ],
)
def test_bad_input(refusal, f, options, message):
    refusal(message, forecast, f, **options)
