import math

import pytest

from farfield.validation.evidence.rule_scores import (
    DECIDED,
    FORMS,
    compared,
    open_cases,
    tally,
)
from farfield.validation.extrapolation import LIMIT
from farfield.validation.reference.registration import titled
from farfield.validation.reference.table import LAST, Model, grouped

NAMED = {"label": "x", "length": 64, "layers": 4, "width": 128, "steps": 4000, "window": None}


def made(loss, error=0.005, label="x", **said):
    every = {f: {"log_ratio": v} for f, v in (dict.fromkeys(FORMS, 0.0) | said).items()}
    named = {**NAMED, "label": label}
    return Model(
        titled(named),
        ratio={LAST: {256: {0: math.exp(loss)}}},
        further=(loss, error, 1),
        prediction={**named, "forecasts": every},
    )


def test_a_case_is_decided_beyond_two_standard_errors():
    assert tally([made(LIMIT + 0.02)])["decided"]
    assert not tally([made(LIMIT + 0.02, error=0.011)])["decided"]
    assert [tally([made(0.5, law=said)])["right"]["law"] for said in (0.3, 0.01)] == [1, 0]
    assert DECIDED == 2


def test_only_cases_that_are_decided_and_were_not_seen_count():
    found = [
        made(0.5, label="a", mended=0.4),
        made(0.0, label="b"),
        made(LIMIT, label="c"),
        made(0.85, label="slope 1/32", mended=0.9),
    ]
    answer = compared("x", found)
    assert answer.numbers["decided"] == 2 and answer.numbers["hold"] == 1
    assert answer.numbers["right"]["mended"] == 2 and answer.numbers["right"]["law"] == 1
    assert "1 more are not decided" in answer.sentence
    assert "slope 1/32, steps 4000 +0.850" in answer.sentence


def test_models_are_averaged_and_the_errors_of_shared_targets_are_not():
    def run(seed, ratio, error):
        width = math.exp(1.959964 * error)
        row = {"length": 128, "base": 64, "ratio": ratio}
        row |= {"ratio_low": ratio / width, "ratio_high": ratio * width}
        measured = {
            "inference": {"bca": None, "label": "causal"},
            "perplexity": [],
            "attention": [],
            "gradient": {"tokens": 1, "mass": 1},
        }
        return {
            "seed": seed,
            "encoding": {"label": "x", "mechanism": "bias"},
            "preset": {"length": 64, "layers": 4},
            "measurements": [measured],
            "more_targets": {"causal": [{**row, "length": 64, "ratio": 9.0}, row]},
        }

    (model,) = grouped([run(0, math.exp(0.1), 0.03), run(1, math.exp(0.3), 0.04)])
    assert model.further == (pytest.approx(0.2), pytest.approx(0.035), 2)


def test_what_was_registered_is_read_from_the_results():
    assert open_cases()
    for case in open_cases():
        loss, error, models = case.further
        assert case.forecasts.keys() >= {*FORMS} and models
        assert abs(loss - case.loss) < 0.1 + 0.2 * abs(loss)
        assert 0 <= error < 0.1
