import importlib
import math
import time

import numpy as np
import pytest

from farfield import encoding, forecast
from farfield.theory.algebra.budget import until
from farfield.theory.answers.answer import Code, InputError, Label, Status
from farfield.validation.extrapolation import TOLERANCE
from farfield.validation.reference.known_cases import gathered, left_out, trials

MIXTURE = ["-n/4", *7 * ["0"]]


def test_one_local_head_is_enough_and_none_is_not():
    mixture = forecast(MIXTURE, trained=64, tested=1024)
    without = forecast("0", trained=64, tested=1024)
    assert mixture.holds > 0.5 > without.holds and 1 < mixture.ratio < 1.05 < without.ratio
    assert mixture.label is Label.FORECAST and mixture.status is Status.ENCLOSED
    assert len(mixture.heads) == 8 and mixture.heads[0].leak < 1e-6 < 0.9 < mixture.heads[1].leak
    assert "1 head 1/4" in mixture.support and mixture.distance < 0.01


def test_a_trial_is_forecast_as_it_came_out():
    seen = {t["name"]: t["loss"] for t in trials()}
    for label, f, holds in (
        ("alibi equal 4", "-n/16", True),
        ("type1", "-2*log(1+n)", True),
        ("nope", "0", False),
        ("window 32", encoding("window", w=32), False),
        ("alibi equal 6", "-n/64", False),
    ):
        found = forecast(f, trained=64, tested=1024)
        assert (found.holds > 0.5) is holds is (seen[label] < math.log1p(TOLERANCE))
        assert found.interval[0] < math.exp(seen[label]) < found.interval[1]


def test_a_forecast_is_one_of_the_kernel_and_not_of_its_spelling():
    def value(f):
        return forecast(f, trained=64, tested=1024).value

    free = 7 * ["0"]
    for one, other in (
        (["where(n<1,0,-oo)", *free], ["-1000*n", *free]),
        (encoding("window", w=32), "where(n<32,0,-1000)"),
    ):
        assert value(one) == pytest.approx(value(other))


@pytest.mark.parametrize("f", ["-1000*n", "-20*n", "where(n<1,0,-oo)"])
def test_a_head_that_sees_itself_alone_does_not_hold_a_model(f):
    found = forecast([f, *7 * ["0"]], trained=64, tested=1024)
    assert found.holds is None or found.holds < 0.5
    assert found.value > 0.8


@pytest.mark.parametrize(
    "f",
    [
        "n",
        "n/10000",
        "n^2",
        "exp(n)",
        "exp(exp(n))",
        "where(n<63,0,1000)",
        "where(n<64,-oo,0)",
        "-(n-40)^2/4",
    ],
)
def test_a_bias_that_rises_is_not_forecast(f):
    for heads in (f, ["-n/4", f, *6 * ["0"]]):
        found = forecast(heads, trained=64, tested=1024)
        assert found.reason.code is Code.BEYOND_EVIDENCE and "rises" in found.reason.sentence
        assert found.ratio is found.holds is found.interval is None


def test_what_the_law_says_otherwise_of_the_nearest_model_is_not_forecast():
    found = forecast("-Min(3*log(1+n), 7)", trained=64, tested=1024)
    assert found.support[0] == "power 3 to a floor of 7" and found.distance < 1e-3
    assert "power 3 to a floor of 7, has the ratio 9.69" in found.reason.sentence


def test_a_forecast_that_has_no_time_left_says_so():
    asked = encoding("-71*log(3+n/977)^(17/13)/39")  # of no other test: values are remembered
    with until(time.monotonic()):
        found = forecast(asked, trained=64, tested=1024)
    assert found.reason.code is Code.BUDGET and found.ratio is None


def test_no_probability_is_certain():
    for f in ("-n/4", "0", "-n", "-Min(n/3, 9/2)"):
        found = forecast(f, trained=64, tested=1024)
        assert 0 < found.holds < 1
        assert ("probability > 0.99" in repr(found)) is (max(found.holds, 1 - found.holds) > 0.99)
        assert "64 bytes" in repr(found) and "token" not in repr(found)


def test_a_stretched_bias_on_a_stretched_row_is_the_same_case():
    here, there = (forecast(f"-n/{k}", trained=k, tested=16 * k) for k in (64, 128))
    assert there.value == pytest.approx(here.value, abs=0.01)


def test_heads_count_by_their_share():
    losses = [
        forecast(k * ["-n/16"] + (8 - k) * ["0"], trained=64, tested=1024).value
        for k in (1, 2, 4, 8)
    ]
    assert losses == sorted(losses, reverse=True)
    many = forecast(16 * ["-n/16"] + 48 * ["0"], trained=64, tested=1024).value
    assert many == pytest.approx(losses[1])


@pytest.mark.parametrize(
    ("f", "options", "why"),
    [
        ("-n/4", {"trained": 2048, "tested": 4096}, "trained on"),
        ("-n/4", {"trained": 64, "tested": 2048}, "16 times the training length"),
        ("-n/4", {"trained": 64, "tested": 128, "layers": 24}, "layers"),
        ("-n/4", {"trained": 64, "tested": 128, "heads": 64}, "8 heads, not 64"),
        ("-n/4", {"trained": 64, "tested": 128, "heads": 1}, "8 heads, not 1"),
        (encoding("-n/4"), {"trained": 64, "tested": 128, "heads": 12}, "8 heads, not 12"),
        (["-n/4", "0"], {"trained": 64, "tested": 128}, "8 heads, not 2"),
        ("-n/4", {"trained": 64, "tested": 128, "steps": 4000}, "1000 steps, not 4000"),
    ],
)
def test_beyond_the_evidence_nothing_is_forecast(f, options, why):
    found = forecast(f, **options)
    assert found.status is Status.UNKNOWN and found.label is found.holds is None
    assert found.reason.code is Code.BEYOND_EVIDENCE and why in found.reason.sentence
    assert found.value is not None


def test_eight_heads_and_a_thousand_steps_are_what_is_meant():
    asked = {"trained": 64, "tested": 1024}
    usual = forecast("-n/4", **asked)
    for same in (forecast("-n/4", **asked, heads=8, steps=1000), forecast(8 * ["-n/4"], **asked)):
        assert same.ratio == pytest.approx(usual.ratio) and same.holds == usual.holds


def test_far_from_every_trial_nothing_is_forecast(monkeypatch):
    lost = tuple(t for t in trials() if t["label"] == "nope")
    monkeypatch.setattr("farfield.validation.forecast._known", lambda: lost)
    found = forecast("-n/4", trained=64, tested=1024)
    assert found.reason.code is Code.BEYOND_EVIDENCE and found.distance > 0.5


def test_a_stand_in_for_scores_is_not_forecast():
    found = forecast("rope_surrogate", trained=64, tested=1024)
    assert found.holds is None and found.reason.code is Code.BEYOND_EVIDENCE


def test_what_has_no_bias_is_out_of_scope():
    found = forecast("rope", trained=64, tested=1024)
    assert found.status is Status.OUT_OF_SCOPE and found.reason.code is Code.NOT_ADDITIVE


@pytest.mark.parametrize(
    ("f", "options", "message"),
    [
        ("-n", {"trained": 64, "tested": 64}, "tested = 64 must be above trained = 64"),
        ("-n", {"trained": 0, "tested": 64}, "trained"),
        ("-n", {"trained": 64, "tested": 1 << 21}, "at most 1048576"),
        ("-a*n", {"trained": 64, "tested": 128}, "free parameters: give values for a"),
        ("-n", {"trained": 64, "tested": 128, "layers": 0}, "layers"),
        *(("-n", {"trained": 64, "tested": 128, "layers": 10**k}, "1 to 10000") for k in (9, 30)),
        ("1/n", {"trained": 64, "tested": 128}, "infinite"),
    ],
)
def test_bad_input(f, options, message):
    with pytest.raises(InputError, match=message):
        forecast(f, **options)


def test_the_committed_trials_are_those_of_the_results():
    for kept, new in zip(trials(), gathered(), strict=True):
        for name, value in new.items():
            near = pytest.approx(value, rel=1e-4, abs=1e-9) if isinstance(value, float) else value
            assert kept[name] == near, (kept["name"], name)


def test_each_is_forecast_without_its_family():
    quantity, loss = np.array([1.0, 1.0, 2.0]), np.array([1.0, 3.0, 8.0])
    said = left_out(quantity, loss, ["a", "a", "b"])
    assert said == pytest.approx([4.0, 4.0, 4.0])


@pytest.mark.parametrize(("what", "asked"), [("layers", (64, 8)), ("length", (128, 4))])
def test_what_fewer_than_three_models_have_is_not_forecast(what, asked, monkeypatch):
    module = importlib.import_module("farfield.validation.forecast")
    trained, layers = asked
    rare = {"layers": layers, "length": trained}[what]
    others = [t for t in trials() if t[what] < rare]
    some = [t for t in trials() if (t[what], t["steps"], t["width"]) == (rare, 1000, 128)]
    for count, known in ((2, False), (3, True)):
        monkeypatch.setattr(module, "trials", lambda count=count: [*others, *some[:count]])
        module._known.cache_clear()
        why = module.outside(trained, 2 * trained, layers, 1000)
        assert (why is None) is known, why
    module._known.cache_clear()


def test_what_was_measured_of_the_very_biases_stands_beside_the_forecast():
    asked = forecast("[-n/4; 0 x7]", trained=64, tested=1024, steps=4000)
    assert asked.ratio is None and str(asked).count("[measured]") == 1
    found = {(m.name, m.steps): (m.seeds, m.ratio) for m in asked.measured}
    own = [t for t in trials() if t["label"].removesuffix(", English") == "1 head 1/4"]
    same = [t for t in own if (t["length"], t["layers"], t["window"]) == (64, 4, None)]
    assert len(same) == len(found) and {t["steps"] for t in same} == {1000, 4000}
    assert {t["width"] for t in same} == {128, 256}
    for t in same:
        assert found[t["name"], t["steps"]] == (t["seeds"], pytest.approx(np.exp(t["loss"])))
    assert not forecast("-n/33", trained=64, tested=1024).measured


def test_a_hybrid_that_was_trained_on_text_has_its_measured_ratio():
    windowed = {"mechanism": "rope", "window": 16}
    found = forecast(None, layers=[windowed, "0"] * 2, trained=64, tested=1024)
    (one,) = found.measured
    assert "rotary" in one.name and found.ratio is None and "alike" in str(found.reason)
    assert not forecast(None, layers=[windowed, "0"] * 2, trained=64, tested=512).measured
    other = forecast(
        None, layers=[{"mechanism": "rope", "window": 17}, "0"] * 2, trained=64, tested=1024
    )
    assert not other.measured and "PLAN.toml" in str(other.reason)
