"""A condition that singles out a point of a parameter: there the other branch is not asked."""

import random
from fractions import Fraction

import pytest

from farfield import check_convergence

POINTS = (Fraction(0), Fraction(1, 2), Fraction(1), Fraction(-1), Fraction(2, 3))
BRANCHES = (
    "((1+n)^(a-{c})-1)/(a-{c})",
    "((1+n)^(2*a-2*{c})-1)/(a-{c})",
    "log(1+n)*(a-{c}+1/(a-{c})^2)",
    "(a-{c})*n+(sin(a-{c})/(a-{c}))*log(1+n)",
    "log(2+n)^(1/(a-{c})^2)",
)
LIMITS = ("3*log(1+n)", "log(1+n)/2", "log(1+n)", "n/7", "0*n")
SPELLINGS = (
    "where(a=={c},{limit},{rest})",
    "where(a!={c},{rest},{limit})",
    "where((a=={c})&(a>{c}-1),{limit},{rest})",
    "where(not(a!={c}),{limit},{rest})",
    "Piecewise(({limit},Eq(a,{c})),({rest},True))",
)


def a_family(draw):
    """A formula with one or two points whose values are written out, the formula at each of some
    parameters by itself, and those parameters."""
    points = draw.sample(POINTS, draw.choice((1, 2)))
    own = {c: draw.choice(LIMITS) for c in points}
    branch = draw.choice(BRANCHES)
    whole = "+".join(f"({branch.format(c=f'({c})')})" for c in points)
    rest = whole
    for c in points:
        rest = draw.choice(SPELLINGS).format(c=f"({c})", limit=own[c], rest=rest)
    values = [*points, *(c + d for c in points for d in (Fraction(-1, 3), Fraction(2, 7)))]
    plain = {
        x: own.get(x, whole.replace("(a-", f"({x}-").replace("2*a", f"2*({x})")) for x in values
    }
    return f"-({rest})", {x: f"-({e})+0*n" for x, e in plain.items()}


@pytest.mark.sampled(17)
@pytest.mark.parametrize("seed", range(100))
def test_the_condition_is_that_of_each_value(seed):
    family, plain = a_family(random.Random(seed))
    decided = check_convergence(family, assumptions={"a": "real"})
    assert decided.verdict != "undecided", family
    for x, formula in plain.items():
        assert decided.at(a=x) is check_convergence(formula).converges, (family, x)


@pytest.mark.parametrize(
    "text, condition",
    [
        ("-where(a==0,3*log(1+n),((1+n)^a-1)/a)", "a >= 0"),
        ("-where(a==0,log(1+n)/2,((1+n)^a-1)/a)", "a > 0"),
        ("-where(a!=1/2,((1+n)^(a-1/2)-1)/(a-1/2),3*log(1+n))", "a >= 1/2"),
        (
            "-where(a==0,3*log(1+n),where(a==1,n,((1+n)^a-1)/(a*(1-a))))",
            "(a >= 0) & (a <= 1)",
        ),
        ("-where((a>0)&(a==1/2),2*log(1+n),((1+n)^(a-1/2)-1)/(a-1/2))", "a >= 1/2"),
        ("-where(a==1/2,2*log(1+n),a*log(1+n))", "Eq(a, 1/2) | (a > 1)"),
    ],
)
def test_the_condition_as_it_is_written(text, condition):
    decided = check_convergence(text, assumptions={"a": "real"})
    assert str(decided.condition) == condition and decided.reason is None


def test_a_point_at_which_the_chosen_branch_has_no_value_is_left_out():
    decided = check_convergence("-where(b>1,n/a,2*log(1+n))", assumptions={"a": "nonnegative"})
    assert str(decided.condition) == "(b <= 1) | (a > 0)" and decided.reason.code == "conditional"
    assert check_convergence("-atanh(a)*n").reason.code == "conditional"
