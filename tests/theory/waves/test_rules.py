"""Rules for oscillating biases: each decides what it is for, and without its hypothesis nothing.

The series that are named are decided by hand, in the comments; the rule is read off the proof.
"""

from contextlib import nullcontext

import pytest
from flint import fmpq

from farfield import check_convergence
from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.coefficients.exact import oscillates
from farfield.theory.coefficients.signs import Context
from farfield.theory.formula.grammar import read
from farfield.theory.transseries.arithmetic import iterated_log
from farfield.theory.transseries.expansion import transseries
from farfield.theory.waves.leading_wave import compare_log, leading_wave, slow_lead, very_slow_lead
from farfield.theory.waves.wave_rules import RULES, bounded, on_intervals, prepared

DECIDED = [
    # rho between 2 log n and 4 log n
    ("-(3+sin(n))*log(n+1)", True, "upper bound"),
    # rho at most log n
    ("-(1/2+sin(n)/2)*log(n+1)", False, "lower bound"),
    # rho = (2 + sin n) log n + log log n: the mean of n^{-sin n} n^{-1} adds 1/sqrt(log n)
    ("-log(n)*(2+sin(n))-log(log(n))", None, "average"),
    # n |sin n|: near multiples of pi it is bounded, by Khinchin infinitely often
    ("-n*Abs(sin(n))", False, "returns"),
    # cos(w n) near 1 with bounded gaps: rho <= (1/2 + eps) log n there
    ("-log(n+1)*(3-5*cos(n)/2)", False, None),
    # on [x, 2x] with log log x near -pi/2: rho < log n, each adds a constant
    ("-log(n)*(3/2+sin(log(log(n))))", False, "very slow phase"),
    # sin(log n) = -1 + O(1/log n) on a share (log n)^{-1/2} of each period e^{2 pi}
    ("-log(n)*(3/2+sin(log(n)))", False, "average"),
]


@pytest.mark.parametrize(("text", "converges", "rule"), DECIDED, ids=lambda x: str(x)[:40])
def test_what_is_decided_by_hand(text, converges, rule):
    found = check_convergence(text)
    if converges is not None:
        assert found.converges is converges, found.proof.text()
    if rule is not None:
        assert rule in [step.rule for step in found.proof.steps]


SHIFTED = [
    ("-(3+sin({0}))*log({0}+2)", True),
    ("-log({0}+2)*(2+sin({0}))-log(log({0}+3))", None),
    ("-log({0}+2)*(3/2+sin(log({0}+2)))", False),
]


@pytest.mark.parametrize("shift", ["n", "n+1", "n+7"])
@pytest.mark.parametrize(("text", "converges"), SHIFTED)
def test_verdicts_do_not_depend_on_where_one_begins_to_count(text, converges, shift):
    found = check_convergence(text.format(shift)).converges
    assert found is not None and found is check_convergence(text.format("n+2")).converges
    assert converges is None or found is converges


@pytest.mark.parametrize(
    "text",
    ["-(3+sin(n))*log(n+1)", "-n*(1+cos(n))", "-log(n)*(2+sin(n))", "-sqrt(n)*(2+cos(n)*sin(2*n))"],
)
def test_bounds_take_the_oscillations_away(text, context):
    rho = transseries(-read(text), context)
    assert any(oscillates(c) for _, c in prepared(rho).terms)
    assert not any(oscillates(c) for _, c in bounded(prepared(rho), 1).terms)


def test_bounded_oscillations_do_not_matter(context):
    rho = prepared(transseries(read("n+sin(n)+cos(n)**2"), context))
    assert not any(oscillates(c) for _, c in rho.terms)
    assert rho.remainder is not None
    same = prepared(transseries(read("n*(sin(n)**2+cos(n)**2)"), context))
    assert [c for _, c in same.terms] == [1]


def test_phases_by_their_speed():
    for text, very_slow in (
        ("log(log(n))", True),
        ("sqrt(log(n))", True),
        ("log(n)", False),
        ("n", False),
        ("log(n)**2", False),
    ):
        with nullcontext() if very_slow else pytest.raises(Undecided):
            very_slow_lead(read(text), Context())
    for text, slow in (
        ("log(n)", True),
        ("log(n)**2", True),
        ("sqrt(n)", True),
        ("n", False),
        ("n**2", False),
        ("log(log(n))", False),
    ):
        with nullcontext() if slow else pytest.raises(Undecided):
            slow_lead(read(text), Context())


def test_growth_against_powers(context):
    """Below every power of n, or like one."""
    log = iterated_log(1)
    slower = (iterated_log(2), log, log ** fmpq(2))
    assert [compare_log(m, context) for m in (*slower, iterated_log(0))] == [-1, -1, -1, 0]


def test_intervals_where_the_terms_stay_large(context):
    wave = leading_wave(transseries(read("log(n)*(2+sin(log(log(n))))"), context))
    for text in ("log(n)+3", "log(n)-log(log(n))"):
        assert not on_intervals(transseries(read(text), context), wave).converges
    with pytest.raises(Undecided):
        on_intervals(transseries(read("log(n)+log(log(n))"), context), wave)


def test_every_rule_refuses_what_it_is_not_for():
    """n^2 |sin n|: whether it tends to infinity is open, and no rule says so."""
    rho = prepared(transseries(read("n**2*Abs(sin(n))"), Context(order=4)))
    for name, rule in RULES.items():
        try:
            outcome = rule(rho)
        except Undecided:
            continue
        pytest.fail(f"{name} says {outcome}")
    assert check_convergence("-n**2*Abs(sin(n))").verdict == "undecided"
