"""What was seen at some positions has no theorem and no certificate beyond them: every question."""

import random
from itertools import chain

import numpy as np
import pytest

import farfield
from farfield import attention_ceiling, check_convergence, compare_tails, encoding
from farfield.theory.answers.answer import Answer

QUESTIONS = {
    "verdict": lambda f, row: check_convergence(f),
    "field": lambda f, row: farfield.theoretical_receptive_field(f, "1/10", length=row),
    "leak": lambda f, row: farfield.leak(f, 3, row),
    "window": lambda f, row: farfield.certified_window(f, "1/2", 1, 1, row=row),
    "error": lambda f, row: farfield.window_error(f, 3, 1, 1),
    "horizon": lambda f, row: farfield.dtype_horizon(f, "bf16"),
    "price": lambda f, row: farfield.price_of_distance(f, 2, length=row),
    "reach": lambda f, row: farfield.reach(f, 3, length=row),
    "resolution": lambda f, row: farfield.attention_resolution(encoding(f), row),
    "depth": lambda f, row: farfield.layered_receptive_field(f, 3, length=row),
    "ceiling": lambda f, row: attention_ceiling(f, 3, length=row or 10**6),
    "forecast": lambda f, row: farfield.forecast(f, trained=4, tested=row or 10**6),
}
OF_ROWS = ("field", "leak", "window", "price", "reach", "resolution", "depth", "ceiling")


def looped(n):
    """A function that nothing follows: it runs once for each distance."""
    total = 0.0
    for _ in range(int(n)):
        total -= 0.25
    return total


DRAW = random.Random(0)
LOOPED = encoding(looped)
ORIGINS = {
    "array": lambda: -np.arange(float(DRAW.randrange(6, 60))) / 4,
    "list": lambda: [0, *sorted((DRAW.uniform(-9, 0) for _ in range(9)), reverse=True)],
    "heads": lambda: np.outer([-1, -0.5], np.arange(DRAW.randrange(8, 30))),
    "masked": lambda: [0.0, -1.0, -2.0, -2.5, -3.0, -np.inf],
    "text": lambda: "[0, -1, -2, -4, -5, -7]",
    "matrix": lambda: -np.tril(np.subtract.outer(np.arange(9.0), np.arange(9.0))),
    "function": lambda: LOOPED,
    "encoding": lambda: encoding([0, -1, -2, -3, -4, -6]),
}


def parts(answer: Answer) -> list[Answer]:
    return [answer, *chain(*(parts(h) for h in getattr(answer, "heads", ())))]


@pytest.mark.sampled(11)
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("origin", ORIGINS)
def test_nothing_is_said_of_the_whole_series_and_rows_that_were_seen_are_answered(question, origin):
    given = ORIGINS[origin]()
    ask, seen = QUESTIONS[question], encoding(given).seen.distance
    for row in (None, seen + 2):
        for answer in parts(ask(given, row)):
            assert (answer.status, answer.label) == ("unknown", None), answer
            assert answer.reason.code == "beyond_seen" and str(seen) in str(answer.reason)
    whole = ask(given, None)
    assert whole.origin in ("tabulated", "") and "beyond_seen" in whole.to_json()
    finite = getattr(whole, "finite", None)
    assert finite is None or "theorem" not in {x.label for x in parts(finite)}
    if question in OF_ROWS:
        answer = ask(given, seen + 1)
        assert answer.status in ("exact", "enclosed") and answer.label != "theorem"
        told = ask(encoding([*encoding(given).known]), seen + 1)  # the very values
        assert getattr(answer, answer.VALUE) == getattr(told, told.VALUE)


def test_tails_that_nobody_has_seen_are_not_compared(refusal):
    for given in (ORIGINS[origin]() for origin in ORIGINS):
        refusal("no tail to compare: known up to", compare_tails, given, "-n")
        refusal("no family of biases: known up to", farfield.design, encoding(given), trf=10)


def test_the_answer_names_how_it_goes_on_and_what_it_resembles():
    reason = str(check_convergence(-np.arange(1000) / 8).reason)
    assert reason == (
        'known up to distance 999; tail="constant" diverges, tail="linear" '
        'converges; resembles -n/8: farfield check "-n/8"'
    )
    for tail, verdict in (("constant", "diverges"), ("linear", "converges"), ("cut", "converges")):
        answer = check_convergence(-np.arange(1000) / 8, tail=tail)
        assert (answer.verdict, answer.label, answer.origin) == (verdict, "theorem", "formula")
    assert check_convergence("-n/8").origin == "formula" and check_convergence("-n/8").seen is None
