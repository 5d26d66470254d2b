import pytest

from farfield.validation.evidence.competing import DECIDED, _answer, decided, everything, right
from farfield.validation.evidence.rule_scores import Outcome, mean
from farfield.validation.extrapolation import LIMIT
from farfield.validation.forms import FORMS
from farfield.validation.reference.registration import titled

NAMED = {"label": "x", "length": 64, "layers": 4, "width": 128, "steps": 4000, "window": None}


def made(loss, error=0.005, label="x", **said):
    every = {f: {"log_ratio": v} for f, v in (dict.fromkeys(FORMS, 0.0) | said).items()}
    named = {**NAMED, "label": label}
    return Outcome(titled(named), "kind", every, loss, named, (loss, error, 1))


def test_a_case_is_decided_beyond_two_standard_errors():
    assert decided(made(LIMIT + 0.02)) and not decided(made(LIMIT + 0.02, error=0.011))
    assert right(made(0.5, law=0.3), "law") and not right(made(0.5, law=0.01), "law")
    assert DECIDED == 2


def test_only_cases_that_are_decided_and_were_not_seen_count():
    found = [
        made(0.5, label="a", mended=0.4),
        made(0.0, label="b"),
        made(LIMIT, label="c"),
        made(0.85, label="slope 1/32", mended=0.9),
    ]
    answer = _answer("x", found)
    assert answer.numbers["decided"] == 2 and answer.numbers["hold"] == 1
    assert answer.numbers["right"]["mended"] == 2 and answer.numbers["right"]["law"] == 1
    assert "1 more are not decided" in answer.sentence
    assert "slope 1/32, steps 4000 +0.850" in answer.sentence


def test_models_are_averaged_and_the_errors_of_shared_targets_are_not():
    loss, error = mean([(0.1, 0.03), (0.3, 0.04)])
    assert loss == pytest.approx(0.2) and error == pytest.approx(0.035)


def test_what_was_registered_is_read_from_the_results():
    assert everything()
    for case in everything():
        loss, error, models = case.further
        assert case.said.keys() >= FORMS.keys() and models
        assert abs(loss - case.loss) < 0.1 + 0.2 * abs(loss)
        assert 0 <= error < 0.1
