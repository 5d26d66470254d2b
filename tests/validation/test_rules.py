import json
import math

import pytest

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding
from farfield.validation.reference.committed import rounded, sha256
from farfield.validation.reference.registration import (
    FIRST,
    REGISTRATIONS,
    forecasts,
    identity,
    recorded,
)
from farfield.validation.rules import RULES, Rule, calibrated, case


def made(f, **options):
    return case(encoding(f, **options), 64, 1024, 4)


def test_what_each_rule_sees():
    mixture = made(["-n/4"] + 7 * ["0"])
    said = {name: rule.quantity(mixture) for name, rule in RULES.items()}
    assert said["verdict"] == 1 and said["mean leak"] > 0.8
    assert said["resolution-weighted leak"] < 1e-6
    assert said["one local head"] <= 0 < said["half the heads local"]
    flat = made("window", w=48)
    assert RULES["resolution-weighted leak"].quantity(flat) == 0
    assert RULES["resolution-weighted leak, flat"].quantity(flat) > 0.5
    windowed = case(encoding("-log(1+n)"), 64, 1024, 4, window=64)
    assert windowed.converges and RULES["mean leak"].quantity(windowed) == 0


def test_a_threshold_lies_where_fewest_seen_are_wrong():
    rule = Rule("toy", "at most {c}", lambda c: c.trained / 10)
    encodings = [case(encoding("-n"), trained, 64, 1) for trained in (1, 2, 3, 4)]
    seen = list(zip(encodings, (0.0, 0.2, 0.01, 0.3), strict=True))
    found = calibrated(rule, seen)
    assert found.threshold in (pytest.approx(0.15), pytest.approx(0.35))
    assert found.slope == pytest.approx((0.04 + 0.003 + 0.12) / 0.3)
    sized = calibrated(Rule("toy", "", rule.quantity, "sized"), seen)
    assert sized.threshold * sized.slope == pytest.approx(math.log(1.05))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("registration", REGISTRATIONS, ids=lambda r: r.folder.name)
def test_registered_forecasts_follow_from_the_plan_and_from_what_was_seen(registration):
    said = registration.predictions
    assert said["plan_sha256"] == sha256(registration.folder / "plan.toml")
    for part in (said, *registration.added):
        again = forecasts(registration, recorded(part), part["rules"].keys())
        again = json.loads(json.dumps(rounded(again)))
        assert part["seen"] == again["seen"]
        for rule, numbers in again["rules"].items():
            assert part["rules"][rule]["says"] == numbers["says"]
            assert part["rules"][rule]["slope"] == pytest.approx(numbers["slope"], rel=1e-4)
        spoken = {identity(c): c for c in part["cases"]}
        same_forecasts(spoken, {identity(c): c for c in again["cases"]})
    assert spoken.keys() <= {identity(c) for c in said["cases"]}
    for result in registration.results():
        assert result["registered"] == registration.digest


def same_forecasts(registered, computed):
    for key, before in registered.items():
        now = computed[key]
        for name, value in now["forecasts"].items():
            assert before["forecasts"][name]["holds"] == value["holds"], (before["label"], name)
            near = pytest.approx(value["quantity"], rel=1e-3, abs=1e-9)
            assert before["forecasts"][name]["quantity"] == near
        assert {**now, "forecasts": None} == {**before, "forecasts": None}


def test_what_has_results_is_not_registered_again(monkeypatch):
    monkeypatch.setattr(type(FIRST), "results", lambda self: ({},))
    with pytest.raises(InputError, match="registered: 1 results carry their hash"):
        FIRST.register({})
