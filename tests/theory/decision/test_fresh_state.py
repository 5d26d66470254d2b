"""No answer leaves a state behind: what was asked before changes no later answer."""

import contextvars
import random

import pytest
import sympy

from farfield import check_convergence, compare_tails
from farfield.theory.coefficients import exact
from farfield.theory.coefficients.signs import sign
from farfield.theory.decision.regions import holds
from farfield.theory.formula.grammar import read

WORK = 100
"""Enough for each question alone, and spent by a few of them together."""
POSITIVE = sympy.Symbol("a", positive=True)


def a_question(draw):
    """A random question whose answer needs signs of numbers, parameters or remainders."""
    k, a, b = draw.randint(2, 9), draw.choice((2, 3, 5)), draw.choice((7, 11, 13))
    shift = f"log({k}+n+1/(n+{a}))"
    return draw.choice(
        (
            lambda: compare_tails(f"-Max({shift},n/{b})", f"-{a}*log(1+n)").lighter,
            lambda: compare_tails(f"-Min({a}*{shift},n/{b})", f"-n/{k}").lighter,
            lambda: compare_tails(f"-n-floor(n/{b})", f"-{a}*log({k}+n)").lighter,
            lambda: str(check_convergence(f"-a*{shift}+log(log(n+{b}))").condition),
            lambda: check_convergence(f"-b*log({k}+n)/log({b})").at(b=a),
            lambda: check_convergence(f"-(sqrt({a})+sqrt({b}))*log(n+{k})").proof.text(),
            lambda: holds(sympy.log(POSITIVE) > k, {"a": sympy.sqrt(a)}),
        )
    )


@pytest.mark.parametrize("seed", range(3))
def test_what_was_asked_before_changes_no_answer(monkeypatch, seed):
    monkeypatch.setattr(exact, "MAX_WORK", WORK)
    draw = random.Random(seed)
    asked = [a_question(draw) for _ in range(8)]
    alone = [contextvars.Context().run(ask) for ask in asked]
    order = [k for k in range(len(asked)) for _ in range(12)]
    draw.shuffle(order)
    assert all(asked[k]() == alone[k] for k in order)
    assert None not in alone


@pytest.mark.parametrize("number", ["pi-22/7", "sin(1)^2+cos(1)^2-1", "sqrt(2)-n"])
def test_a_sign_outside_of_a_decision_is_an_error(number):
    with pytest.raises(LookupError):
        contextvars.Context().run(sign, read(number))
