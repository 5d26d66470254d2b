"""Residue classes of what is periodic: the period, and the formula on one class."""

import pytest
import sympy

from farfield import check_convergence
from farfield.theory.decision.engine import (
    _undefined,
    common_period,
    decide_series,
    residue_class,
)
from farfield.theory.formula.grammar import read
from farfield.theory.functions.nodes import n


@pytest.mark.parametrize(
    ("text", "period", "with_rounding"),
    [
        ("(-1)^n", 2, 2),
        ("cos(pi*n/3)", 6, 6),
        ("cos(2*pi*n/3)", 3, 3),
        ("cos(pi*(n^2/3+n/2))", 12, 12),
        ("mod(n,3)+(-1)^n", 6, 6),
        ("mod(n/3+pi,2)", 6, 6),  # the constant does not matter
        ("mod(n+pi,2)", 2, 2),
        ("frac(n/5)", 1, 5),
        ("frac(4*n/3)", 1, 3),
        ("frac((n^12)/3)", 1, 3),
        ("frac((n^13)/3)", 1, 1),
        ("floor(n/6)-ceiling(n/7)", 1, 42),
        ("frac(pi*n)+cos(pi*sqrt(n))+sin(n)+mod(n,pi)", 1, 1),
    ],
)
def test_the_period_of_a_formula(text, period, with_rounding):
    assert (common_period(read(text)), common_period(read(text), rounding=True)) == (
        period,
        with_rounding,
    )


@pytest.mark.parametrize(
    ("text", "period", "residue", "wanted"),
    [
        ("floor(n/2)", 2, 1, "n"),
        ("ceiling(n/2)", 2, 1, "n+1"),
        ("ceiling(n/3)", 3, 1, "n+1"),
        ("n*frac(n/3)", 3, 2, "2*n+4/3"),
        ("n*(-1)^n", 2, 1, "-2*n-1"),
        ("mod(n,3)+sin(n)", 3, 1, "1+sin(3*n+1)"),  # a wave has no class
        ("mod(n,2)+floor(n/3)", 4, 3, "1+floor(4*n/3+1)"),
    ],
)
def test_a_formula_on_one_class(text, period, residue, wanted):
    assert residue_class(read(text), period, residue) == read(wanted)


def test_the_first_class_that_is_open_is_shown():
    steps = check_convergence("-(-1)^n-n^2*Abs(sin(n))").proof.steps
    assert [step.values.get("residue") for step in steps[:2]] == [None, 0]


@pytest.mark.parametrize(("period", "rule"), [(48, "classes"), (49, "expansion")])
def test_classes_are_decided_one_by_one_where_they_are_few(period, rule):
    assert check_convergence(f"-2*log(n+1)-mod(n,{period})").proof.steps[0].rule == rule


def test_a_period_that_is_too_long_is_told():
    p = read("-log(n+1)*(1+mod(n,521)*sin(n)/521)-cos(2*pi*n/521)")
    assert decide_series(p, {}).reason == "its period of 521 is longer than 512"


NAN = sympy.S.NaN
PIECES = sympy.Piecewise((NAN, n > 1), (n, True), evaluate=False)


@pytest.mark.parametrize(
    ("e", "undefined"),
    [
        (NAN, True),
        (sympy.Add(n, NAN, evaluate=False), True),
        (n, False),
        (PIECES, False),
        (1 + PIECES, False),
    ],
)
def test_what_no_condition_leaves_out_is_undefined(e, undefined):
    assert _undefined(e) is undefined


@pytest.mark.parametrize(("far", "rule"), [(sympy.oo, "infinite"), (-sympy.oo, "masked")])
def test_what_is_infinite_from_some_point_on_is_decided(far, rule):
    decision = decide_series(sympy.Piecewise((-n, n < 9), (far, True)), {})
    assert bool(decision.condition) is (rule == "masked")
    assert [step.rule for step in decision.steps] == [rule]
