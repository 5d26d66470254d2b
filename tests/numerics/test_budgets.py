"""Every question of numbers ends soon after its budget, also where it waits for another thread."""

import threading
import time

import pytest
import sympy

from farfield import (
    attention_resolution,
    certified_window,
    compare_tails,
    design,
    dtype_horizon,
    encoding,
    layered_receptive_field,
    leak,
    price_of_distance,
    reach,
    theoretical_receptive_field,
    window_error,
)
from farfield.numerics.enclosures.change_of_variable import elementary
from farfield.numerics.summation.complete_monotonicity import has_monotone_slope
from farfield.numerics.summation.kernel import normal_form
from farfield.numerics.summation.methods import find
from farfield.numerics.summation.series import Stretch, _settle, _switches
from farfield.theory.algebra.door import unless, until
from farfield.theory.algebra.exceptions import OutOfTime
from farfield.theory.decision.engine import common_period
from farfield.theory.functions.balls import precision
from farfield.theory.functions.nodes import n

BUDGET = 0.1
QUESTIONS = {
    "trf": lambda f, **more: theoretical_receptive_field(f, "1/100", **more),
    "leak": lambda f, **more: leak(f, 100, **more),
    "row": lambda f, **more: leak(f, 100, 10_000, **more),
    "window": lambda f, **more: certified_window(f, "1/100", 1, 1, **more),
    "window error": lambda f, **more: window_error(f, 10, 1, 1, **more),
    "horizon": lambda f, **more: dtype_horizon(f, "fp16", **more),
    "resolution": lambda f, **more: attention_resolution(f, **more),
    "resolution of a row": lambda f, **more: attention_resolution(f, 10_000, **more),
    "compare": lambda f, **more: compare_tails(f, "-n/2", **more),
    "price": lambda f, **more: price_of_distance(f, 9, **more),
    "reach": lambda f, **more: reach(f, **more),
    "layers": lambda f, **more: layered_receptive_field(f, 6, **more),
}


@pytest.fixture(scope="module")
def slow():
    """A sum whose numbers take many seconds; it is built before the clock starts."""
    return encoding(-sympy.Add(*(sympy.log(n + k) for k in range(1, 400))))


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_spent_budget_is_an_answer(name, slow):
    begun = time.monotonic()
    found = QUESTIONS[name](slow, budget_s=BUDGET)
    assert found.status == "unknown" and found.reason.code == "budget"
    assert time.monotonic() - begun < 15


def row(p):
    found = Stretch(0, 100, p, None)
    with precision(64):
        return found.tail(0)


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("text", ["where((n%2==0)&(n>8),-inf,-3/2*log(5+n))", "-log(7+n)"])
def test_no_budget_is_too_short_for_an_answer(name, text):
    """Whatever was not decided when the clock ended is unknown, also in what is asked besides."""
    more = {"length": 64} if name == "layers" else {}
    for budget in (0, 0.003, 0.03):
        assert QUESTIONS[name](text, budget_s=budget, **more).status
        assert compare_tails(text, "-n/7", "-log(9+n)", budget_s=budget).status


WALKS = {
    "normal form": lambda p: normal_form(p, 0),
    "monotone": lambda p: has_monotone_slope(-p, 0),
    "elementary": elementary,
    "period": common_period,
    "methods": find,
    "stretches": lambda p: _settle(p, 0),
    "switches": _switches,
    "terms": row,
}


@pytest.mark.parametrize("name", WALKS)
def test_what_walks_a_long_formula_looks_at_the_clock(name):
    p = -sympy.Add(*(sympy.log(n + k) for k in range(1, 20)))
    with until(0), pytest.raises(OutOfTime):
        WALKS[name](p)


@pytest.mark.parametrize("name", QUESTIONS)
def test_no_budget_is_refused(refusal, name):
    for bad in (-1, "soon", True, float("nan")):
        refusal("a number of seconds, at least 0", QUESTIONS[name], "-n", budget_s=bad)


def test_a_thread_that_waits_for_another_is_answered_in_time(slow):
    done = threading.Event()

    def hold_the_balls():
        with unless(done.is_set):
            leak(slow, 100, 10_000)

    other = threading.Thread(target=hold_the_balls)
    other.start()
    time.sleep(0.2)
    begun = time.monotonic()
    found = [leak("-n/7", 64, budget_s=BUDGET) for _ in range(3)]
    assert time.monotonic() - begun < 10 and other.is_alive()
    assert all(one.status == "exact" or one.reason.code == "budget" for one in found)
    done.set()
    other.join()


def test_a_design_keeps_its_budget():
    begun = time.monotonic()
    family = "where(n<10,0,-a*log(n-8))"
    bounds = {"error": "1/100", "logit_bound": 1, "value_bound": 1}
    found = design(family, window=64, budget_s=1, **bounds)
    assert time.monotonic() - begun < 15 and found.status in ("exact", "unknown")
    assert design("-(1+a)*log(1+n)", horizon=64, dtype="fp16").achieved == 64


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", sorted({*QUESTIONS} - {"layers"}))
def test_a_parameter_just_above_the_border_is_no_error(name):
    for tiny in ("(1+exp(-exp(exp(4))))", "(2-exp(-exp(exp(4))))"):
        found = QUESTIONS[name](f"-log(n+1)*{tiny}", budget_s=BUDGET)
        assert found.status in ("exact", "enclosed", "unknown")


def test_what_a_sum_encloses_badly_is_no_number(short_envelopes):
    found = leak("-n^(1/9)*(2+sin(n^(1/2)))", 100)
    assert found.status == "enclosed" and found.value is None
    low, high = found.enclosure
    assert 0 <= low < high <= 1 and "between" in found.text()
