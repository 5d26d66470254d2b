"""Rules for oscillating biases: each decides what it is for, and without its hypothesis nothing.

The series that are named are decided by hand, in the comments; the rule is read off the proof.
"""

import pytest
import sympy
from flint import fmpq

from farfield import check_convergence
from farfield.theory.algebra.exceptions import OrderTooLow, Undecided
from farfield.theory.coefficients.exact import oscillates, to_sympy
from farfield.theory.coefficients.oscillation import bounded_atom
from farfield.theory.formula.grammar import read
from farfield.theory.transseries.arithmetic import UNIT, Transseries, iterated_log
from farfield.theory.transseries.expansion import transseries
from farfield.theory.transseries.waves import RULES, decide, leading_wave, prepared

DECIDED = [
    # rho between 2 log n and 4 log n
    ("-(3+sin(n))*log(n+1)", True, "upper bound"),
    # rho at most log n
    ("-(1/2+sin(n)/2)*log(n+1)", False, "lower bound"),
    # rho = (2 + sin n) log n + c log log n: the mean of n^{-sin n} n^{-1} adds 1/sqrt(log n)
    ("-log(n)*(2+sin(n))-3*log(log(n))/5", True, "average"),
    ("-log(n)*(2+sin(n))-2*log(log(n))/5", False, "average"),
    # the two together are a divergent 1/(n log n)
    ("-log(n)*(2+cos(sqrt(2)*n))-log(log(n))/2", False, "average"),
    # n (1 + cos n): near odd multiples of pi it is bounded, by Khinchin infinitely often
    ("-n*(1+cos(n))", False, "returns"),
    # cos(w n) near 1 with bounded gaps: rho <= (1/2 + eps) log n there
    ("-log(n+1)*(3-5*cos(n)/2)", False, "average"),
]


@pytest.mark.parametrize(("text", "converges", "rule"), DECIDED, ids=lambda x: str(x)[:40])
def test_what_is_decided_by_hand(text, converges, rule):
    found = check_convergence(text)
    assert found.converges is converges, found.proof.text()
    assert rule in [step.rule for step in found.proof.steps]


RETURNS, AVERAGE, BOUNDS = "returns to 0", "the average over the phase", "bounds of the oscillation"
LEFT_OPEN, HIDDEN = "leave the (answer|average) open", "^$"
ALL, N, L1 = {**RULES, "any": decide}, iterated_log(0), iterated_log(1)


@pytest.mark.parametrize(
    ("rule", "text", "outcome"),  # of rho = -p: the verdict, or why there is none
    [
        (RETURNS, "n*(1+cos(n))", False),
        (RETURNS, "n*(1+cos(n))-log(n)", False),
        (RETURNS, "log(n)*(1+sin(n))+1/n", False),
        (RETURNS, "n**2*(1+cos(n))", False),
        (RETURNS, "n**2*log(n)*(1+cos(n))", "does not return to 0 often enough"),
        (RETURNS, "n*(1+cos(n))+log(n)", "is not bounded below"),
        (RETURNS, "n*(1+cos(n))-log(n)*(2+sin(n))", "is not bounded below"),
        (RETURNS, "n*(2+cos(n))", "the infimum of the oscillation is not 0"),
        (RETURNS, "n*(1/2+cos(n))", "the infimum of the oscillation is not 0"),
        (AVERAGE, "n*(1+sin(n))", "p grows like a power of n"),
        (AVERAGE, "log(n)**2*(2+sin(n))", True),
        (AVERAGE, "exp(sqrt(log(n)))*(1+sin(n))", False),
        (AVERAGE, "log(n)*(2+sin(n))+log(log(n))/2", False),
        (AVERAGE, "log(n)*(2+sin(n))+2*log(log(n))/3", True),
        (AVERAGE, "log(n)*(2+sin(n))+2*log(log(n))*(3+cos(sqrt(2)*n))", True),
        (AVERAGE, "log(n)*(2+sin(n))-2*log(log(n))*(3+cos(sqrt(2)*n))", False),
        (AVERAGE, "log(n)*(2+sin(n))+log(log(n))*cos(sqrt(2)*n)", LEFT_OPEN),
        (BOUNDS, "log(n)*(3+sin(n))", True),
        (BOUNDS, "log(n)*sin(n)/2", False),
        (BOUNDS, "log(n)*(2+sin(n))", LEFT_OPEN),
        (BOUNDS, "log(n)*(1+sin(n)/2)", LEFT_OPEN),
        (BOUNDS, "n*sin(n)", LEFT_OPEN),
        (BOUNDS, "n+log(Abs(sin(n)))", "an oscillating coefficient is unbounded"),
        (BOUNDS, "n**2*Abs(sin(n))", LEFT_OPEN),  # whether it tends to infinity is open
        (AVERAGE, "n**2*Abs(sin(n))", "is not one sinusoid"),
        (RETURNS, "n**2*Abs(sin(n))", "is not one sinusoid"),
        (RETURNS, "log(n)*(1+sin(n)) + O(1)", False),
        (AVERAGE, "log(n)*(1+sin(n)) + O(1)", False),
        ("any", "log(n)*(1+sin(n)) + O(1)", False),
        (RETURNS, "log(n)*(1+sin(n)) + O(n)", HIDDEN),
        (AVERAGE, "log(n)*(1+sin(n)) + O(n)", HIDDEN),
        (RETURNS, "log(n)*(1+sin(n)) + O(sqrt(log(n)))", HIDDEN),
        (AVERAGE, "log(n)*(1+sin(n)) + O(sqrt(log(n)))", HIDDEN),
        ("any", "log(n)*(1+sin(n)) + O(sqrt(log(n)))", HIDDEN),
    ],
)
def test_each_rule_decides_what_it_is_for_alone(rule, text, outcome, context):
    formula, _, hidden = text.partition(" + O")
    rho = prepared(transseries(read(formula), context))
    if hidden:
        rho = rho.of(rho.terms, {"(n)": N, "(sqrt(log(n)))": L1 ** fmpq(1, 2), "(1)": UNIT}[hidden])
    if isinstance(outcome, bool):
        assert ALL[rule](rho).converges is outcome
    else:
        with pytest.raises((Undecided, OrderTooLow), match=outcome):
            ALL[rule](rho)


SHIFTED = [
    ("-(3+sin({0}))*log({0}+2)", True),
    ("-log({0}+2)*(2+sin({0}))-log(log({0}+3))", None),
    ("-({0}+2)*(1+cos({0}))", False),
]


@pytest.mark.parametrize("shift", ["n", "n+1", "n+7"])
@pytest.mark.parametrize(("text", "converges"), SHIFTED)
def test_verdicts_do_not_depend_on_where_one_begins_to_count(text, converges, shift):
    found = check_convergence(text.format(shift)).converges
    assert found is not None and found is check_convergence(text.format("n+2")).converges
    assert converges is None or found is converges


@pytest.mark.parametrize(
    ("text", "places", "exact"),  # of the terms that oscillate
    [
        ("n+sin(n)+cos(n)**2", [], False),
        ("n*(sin(n)**2+cos(n)**2)", [], True),
        ("n*sin(n)", [0], True),
        ("n*sin(n)+3+1/n", [0], True),
        ("n+log(Abs(sin(n)))", [1], True),
        ("n+log(Abs(sin(n)))*log(Abs(cos(n)))", [1], True),
    ],
)
def test_bounded_oscillations_do_not_matter(text, places, exact, context):
    rho = prepared(transseries(read(text), context))
    assert [k for k, (_, c) in enumerate(rho.terms) if oscillates(c)] == places
    assert rho.exact is exact


@pytest.mark.parametrize(
    "text", ["n*sin(n)", "n**2*Abs(sin(n))+log(n)", "log(n)*Abs(sin(n)+Abs(cos(n)))", ""]
)
def test_what_no_rule_decides_is_shown_as_it_was_expanded(text, context):
    unnamed = Transseries(context, [(N, bounded_atom(-1, 1))])
    with pytest.raises(Undecided, match=r"^oscillation: the bounds .* open; ") as undecided:
        decide(transseries(read(text), context) if text else unnamed)
    steps = undecided.value.steps
    assert [step.rule for step in steps] == ["expansion"] * bool(text) + ["tried"] * len(RULES)
    assert [step.values["what"] for step in steps[-3:]] == [*RULES]
    assert not text or steps[0].values["rho"] == read(text)


@pytest.mark.parametrize(
    ("text", "open_"),
    [
        ("sin(n)", False),
        ("cos(sqrt(2)*n/7+1)", False),
        ("cos(pi*sqrt(2)*n)", False),
        ("sin(pi*n/3)", True),  # periodic
        ("sin(n)+sin(sqrt(2)*n)", True),
        ("sin(n**2)", True),
        ("sin(sqrt(n))", True),
        ("Abs(sin(n))", True),
        ("sin(n)+Abs(cos(n))", True),
        ("sin(exp(1)*n)", True),  # whether e/pi is rational is an open problem
    ],
)
def test_one_sinusoid_of_a_linear_phase(text, open_, context):
    rho = prepared(transseries(read(f"log(n)*({text}+5)"), context))
    if open_:
        with pytest.raises(Undecided):
            leading_wave(rho)
    else:
        assert sympy.simplify(to_sympy(leading_wave(rho).least)) == 4
