import pytest

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding
from farfield.validation.reference.committed import sha256
from farfield.validation.reference.registration import (
    FIRST,
    REGISTRATIONS,
    Registration,
    identity,
    predicted,
)
from farfield.validation.rules import RULES, case, forecasts


def made(f, **options):
    return case(encoding(f, **options), 64, 1024, 4)


def test_what_each_rule_sees():
    mixture = made(["-n/4"] + 7 * ["0"])
    said = {name: quantity(mixture) for name, quantity in RULES.items()}
    assert said["verdict"] == 1 and said["mean leak"] > 0.8
    assert said["resolution-weighted leak"] < 1e-6
    assert said["one local head"] <= 0 < said["half the heads local"]
    flat = made("window", w=48)
    assert RULES["resolution-weighted leak"](flat) == 0
    assert RULES["resolution-weighted leak, flat"](flat) > 0.5
    windowed = case(encoding("-log(1+n)"), 64, 1024, 4, window=64)
    assert windowed.converges and RULES["mean leak"](windowed) == 0


def test_a_rule_says_what_its_numbers_let_it_say():
    numbers = {"mean leak": {"threshold": 0.5, "slope": 2.0}}
    for f, holds in (("-n", True), ("0", False)):
        said = forecasts(numbers, made(f))["mean leak"]
        assert said["holds"] is holds and said["log_ratio"] == 2 * said["quantity"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("registration", REGISTRATIONS, ids=lambda r: r.folder.name)
def test_registered_forecasts_follow_from_the_plan_and_from_their_numbers(registration):
    assert registration.predictions["plan_sha256"] == sha256(registration.folder / "plan.toml")
    cases = {identity(named): (named, c) for named, c in registration.cases}
    for part in registration.parts:
        rules = {name: its for name, its in part["rules"].items() if name in RULES}
        for registered in part["cases"]:
            named, c = cases[identity(registered)]
            assert {**registered, "forecasts": None} == {**named, "forecasts": None}
            for name, now in forecasts(rules, c).items():
                before = registered["forecasts"][name]
                assert before["holds"] == now["holds"], (named["label"], name)
                assert before["quantity"] == pytest.approx(now["quantity"], rel=1e-3, abs=1e-9)
                assert before["log_ratio"] == pytest.approx(now["log_ratio"], rel=1e-3, abs=1e-9)
    for result in registration.results():
        assert result["registered"] == registration.digest


def test_a_new_registration_has_every_rule_on_every_case(tmp_path):
    (tmp_path / "plan.toml").write_text(
        '[[sweep]]\npresets = ["tiny"]\nmultiples = [1, 4]\nencodings = ["alibi", "t5"]\n'
    )
    new = Registration(tmp_path)
    new.register(predicted(new))
    said = new.predictions
    assert said["plan_sha256"] == sha256(tmp_path / "plan.toml")
    (case_,) = said["cases"]
    assert case_["label"] == "alibi" and {*case_["forecasts"]} == {*RULES} == {*said["rules"]}


def test_what_has_results_is_not_registered_again(monkeypatch):
    monkeypatch.setattr(type(FIRST), "results", lambda self: ({},))
    with pytest.raises(InputError, match="registered: 1 results carry their hash"):
        FIRST.register({})
