import math

import pytest

from farfield.validation.evidence import rule_scores
from farfield.validation.evidence.fields import fields
from farfield.validation.evidence.first_registration import verdicts
from farfield.validation.evidence.rule_scores import FORMS, is_near, is_right, printed
from farfield.validation.extrapolation import LIMIT
from farfield.validation.published import bias_of, table
from farfield.validation.reference.first import UNSEEN, blind, observations
from farfield.validation.reference.registration import REGISTRATIONS, identity
from farfield.validation.reference.table import LAST, Model
from farfield.validation.rules import RULES, case


def test_a_rule_is_right_and_near():
    said = {"near": {"quantity": 0.1, "threshold": 0.15, "holds": True}}
    said["far"] = said["near"] | {"threshold": 0.25}
    held, lost = (
        Model("", ratio={LAST: {256: {0: math.exp(loss)}}}, prediction={"forecasts": said})
        for loss in (0.01, LIMIT + 1e-9)
    )
    assert is_right(held, "near") and not is_right(lost, "far")
    assert is_near(held, "near") and not is_near(held, "far")


def test_every_registered_rule_is_scored_and_none_dropped():
    found = rule_scores.judge(REGISTRATIONS[0])
    rules = {name for name, *_ in found.table[1:]}
    assert {*rule_scores.registered_rules()} <= rules <= {*RULES, *FORMS}
    assert all(0 <= found.numbers[rule] <= found.n for rule in rules)
    assert 2 * found.numbers["null"] >= found.n
    assert found.n == len(REGISTRATIONS[0].outcomes())


def test_what_was_added_spoke_of_cases_without_a_result_alone():
    for registration in REGISTRATIONS:
        for part in registration.parts[1:]:
            seen = {identity(s) for s in part["seen"] if "steps" in s}
            assert not seen & {identity(c) for c in part["cases"]}


def test_the_printed_models_are_read_as_their_papers_say():
    models = {m.name: m for m in printed()}
    assert len(models) == 47
    assert models["Windowed w=40, ArXiv"].loss < LIMIT < models["Windowed w=320, ArXiv"].loss
    shifted = models["ALiBi delta=-3, OpenWebText2"]
    assert shifted.loss == pytest.approx(math.log(21.6 / 18.6))
    bias = bias_of(next(c for c in table("chi2023_table4") if c.variant == "h=8"))
    equal = case(bias, 512, 8192, 12)
    assert equal.bias[:, 256].tolist() == [-1.0]
    said = models["ALiBi h=8, ArXiv"].forecasts
    assert said["lost order"]["quantity"] == RULES["lost order"](equal)


def test_the_first_registration_as_a_referee_reads_it():
    found = observations(length=64)
    assert sum(map(blind, found)) == len(UNSEEN)
    numbers = verdicts(found).numbers
    assert (numbers["right"], numbers["null"], numbers["unseen"]) == (17, 13, 3)
    assert (numbers["additive"], numbers["additive null"]) == (12, 11)
    assert (numbers["models"], numbers["values"]) == (21, 18)
    numbers = fields(found).numbers
    assert numbers["the best constant"] == pytest.approx(2.73, abs=0.01)
    assert numbers["unseen"] == pytest.approx(2.30, abs=0.01)
    assert all(map(blind, observations(length=128)))
