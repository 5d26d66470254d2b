"""Answers on results that are made up, so that the right answer is known."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from farfield.numerics.leak import leak
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.theory.answers.errors import InputError
from farfield.theory.convergence import check_convergence
from farfield.validation import reference
from farfield.validation.evidence.first_registration import answers
from farfield.validation.evidence.summary import filled, where
from farfield.validation.extrapolation import TOLERANCE
from farfield.validation.reference.first import observations

EPS = {0.1: "1/10", 0.05: "1/20", 0.01: "1/100"}


def made_up(loss, length=64, gradient=lambda e: e["layered"]["tokens"]):
    """One result an encoding, whose ratio at 16 times the length is exp(loss(prediction))."""
    runs = {}
    for e in reference.FIRST.predictions["encodings"]:
        if e["length"] != length:
            continue
        run = runs.setdefault(
            e["label"],
            {
                "encoding": {"label": e["label"], "mechanism": "bias"},
                "seed": 0,
                "preset": {"length": length, "layers": 4},
                "training": {},
                "measurements": [],
            },
        )
        tested = [length, *map(int, e["leak"])]
        ratios = {n: 1.0 if n == length else math.exp(loss(e)) for n in tested}
        run["measurements"].append(
            {
                "inference": {"bca": length // 2 if e["bca"] else None, "label": "made up"},
                "perplexity": [
                    {"protocol": protocol, "length": n, "perplexity": 4 * r, "ratio": r}
                    for protocol in ("last token", "non-overlapping")
                    for n, r in ratios.items()
                    if protocol != "last token" or n < 9216
                ],
                "attention": [
                    {
                        "eps": eps,
                        "tokens": float(np.mean(e["row_trf"][name])),
                        "trf": float(np.mean(e["row_trf"][name])),
                        "heads": [e["row_trf"][name]] * 4,
                        "trf_heads": e["row_trf"][name],
                    }
                    for eps, name in EPS.items()
                ],
                "gradient": {"tokens": gradient(e), "mass": 1 - e["layered"]["beyond"]},
                "scores": {"resolution": 1 / np.mean(e["row_trf"]["1/100"])},
            }
        )
    return list(runs.values())


def find(results, name, k=0):
    return answers(results, only=[name])[k]


def test_a_loss_that_is_the_leak_is_ranked_by_the_leak():
    results = made_up(lambda e: float(np.mean(e["leak"]["1024"])))
    found = find(results, "forecast").numbers
    assert found["leak, mean of heads"][0] == pytest.approx(1)
    gain, low, high = found["gain"]
    assert 0 < low <= gain <= high
    reverse = find(made_up(lambda e: -float(np.mean(e["leak"]["1024"]))), "forecast")
    assert reverse.numbers["leak, mean of heads"][0] == pytest.approx(-1)


def test_a_verdict_that_is_always_right_and_one_that_is_always_wrong():
    right = find(made_up(lambda e: 0.0 if e["extrapolates"] else 1.0), "verdict").numbers
    count = len({(o.label, o.mask) for o in observations(made_up(lambda e: 0.0))})
    assert right["one-sided"] == right["printed"] == count
    wrong = find(made_up(lambda e: 1.0 if e["extrapolates"] else 0.0), "verdict").numbers
    assert wrong["one-sided"] == wrong["printed"] == 0


def test_a_gain_counts_as_extrapolation_one_sided_only():
    gain = find(made_up(lambda e: -2 * TOLERANCE), "verdict").numbers
    assert gain["printed"] < gain["one-sided"]


def test_a_gradient_field_as_predicted_leaves_no_error():
    numbers = find(made_up(lambda e: e["layered"]["beyond"])[::2], "depth").numbers
    assert numbers["registered mixing 0.4"]["factor"] == pytest.approx(1)
    assert numbers["fitted mixing"]["factor"] == pytest.approx(1, abs=0.02)
    assert numbers["finite-row TRF(1/100)"]["factor"] > 1.2
    twice = made_up(lambda e: e["layered"]["beyond"], gradient=lambda e: 2 * e["layered"]["tokens"])
    off = find(twice[::2], "depth").numbers["registered mixing 0.4"]
    assert off["factor"] == pytest.approx(2)


def test_the_coverage_rule_is_counted():
    results = made_up(lambda e: 1.0 if e["layered"]["tokens"] > 64 else 0.0)
    assert find(results, "coverage").numbers["right"] == len(observations(results))


def test_fields_that_equal_the_prediction_are_ranked_perfectly():
    results = made_up(lambda e: 0.5)
    numbers = find(results, "receptive fields").numbers
    key = "all with an additive bias; finite-row TRF(0.01), registered; attention ERF(0.01)"
    assert numbers[key][0] == pytest.approx(1)
    assert find(results, "receptive fields", 1).numbers["all"][0] == pytest.approx(1)


def test_seeds_are_averaged_and_lengths_are_not_mixed():
    results = made_up(lambda e: 0.2) + [{**r, "seed": 1} for r in made_up(lambda e: 0.4)]
    other = observations(results + made_up(lambda e: 3.0, length=128))
    assert {o.trained for o in other} == {64}
    assert all(o.seeds == (0, 1) for o in other)
    assert other[0].last[1024] == pytest.approx(math.exp(0.3))


def test_too_few_results_give_no_answer():
    assert answers([]) == ()


def test_the_plan_is_the_one_that_was_registered():
    assert reference.FIRST.predictions["plan_sha256"] == reference.sha256(
        reference.HERE / "plan.toml"
    )
    for result in reference.results():
        assert result["registered"] == reference.FIRST.digest, result["key"]
        assert all(m["bounds"]["violations"] == 0 for m in result["measurements"]), result["key"]


@pytest.mark.parametrize("label", ["type1", "type2", "window 16", "alibi equal 4"])
def test_the_registered_numbers_are_those_of_the_theory(label):
    entry = next(e for e in reference.FIRST.predictions["encodings"] if e["label"] == label)
    subject = next(s for s in reference.FIRST.plan.sweeps[0].encodings if s.label == label)
    found = subject.encoding(8)
    assert str(check_convergence(found).verdict) == entry["verdict"]
    for eps, heads in entry["trf"].items():
        field = theoretical_receptive_field(found, eps)
        assert [h.tokens for h in field.heads or (field,)] == heads
    worst = max(entry["leak"]["1024"])
    assert leak(found, 64, 1024).value == pytest.approx(worst, rel=1e-5)


ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("README.md", "loses 2.6%"),
        ("docs/findings.md", "loses 2.6%"),
        ("docs/train.md", "finds 87%"),
    ],
)
def test_the_numbers_of_a_page_are_those_of_the_results(name, number):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert filled(text) == text, f"python -m farfield.validation.evidence fill {name}"
    assert number in text and filled(text.replace(number, number[:-2] + "0%")) == text


def test_the_readme_is_short_and_begins_with_the_picture():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120 and lines[4] == "<picture>"
    assert 'alt="The share of the attention' in lines[6]


def test_a_number_of_the_readme_leads_to_its_query_and_runs():
    (shown,) = where("2.6%")  # in both pages, and told once
    assert (shown.query, shown.name) == ("local", "loss")
    runs = [json.loads((ROOT / "validation" / f).read_text(encoding="utf-8")) for f in shown.files]
    models = [run for run in runs if run["encoding"]["label"] == "1 head 1/4"]
    logs = [
        math.log(p["ratio"])
        for run in models
        for p in run["measurements"][0]["perplexity"]
        if (p["protocol"], p["length"]) == ("last token", 1024)
    ]
    assert len(logs) == 3 and f"{math.expm1(sum(logs) / 3):.1%}" == "2.6%"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: where("2.61%"), "no number '2.61%'"),
        (lambda: filled("# farfield\n"), "no line <!-- sentences"),
        (lambda: filled("<!-- sentences: x -->\n<!-- end -->"), "list 'x' is not known"),
    ],
)
def test_a_number_or_a_place_that_is_not_there(call, message):
    with pytest.raises(InputError) as error:
        call()
    assert message in str(error.value) and "\n" not in str(error.value)
