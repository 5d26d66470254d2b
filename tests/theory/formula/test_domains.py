"""Whether a value lies in a domain is one question, wherever it is asked."""

import pytest
import sympy

from farfield import check_convergence, encoding
from farfield.theory.formula.parameters import DOMAINS, interval

VALUES = (-3, -1, "-1/2", 0, "1/2", 1, "3/2", 2, "5/2", 7)
INTERVALS = ("[0, 2)", "(0, 2]", "[1, oo)", "(-oo, 1)", "[-1, 1]", "(1/2, 3/2)", "[2, 2]")


@pytest.mark.parametrize("domain", (*DOMAINS, *INTERVALS))
def test_the_same_values_are_accepted_everywhere(refusal, domain):
    found = check_convergence("-a^2*n-n", assumptions={"a": domain})
    for value in VALUES:
        inside = sympy.Rational(value) in interval(domain)
        for ask in (
            lambda v=value: encoding("-a^2*n-n", assumptions={"a": domain}, a=v),
            lambda v=value: found.at(a=v),
        ):
            if inside:
                ask()
                continue
            refusal("outside its domain", ask)


def test_an_end_belongs_to_an_interval_as_its_bracket_says():
    ends = {d: [v for v in (0, 1, 2) if v in interval(d)] for d in INTERVALS[:2]}
    assert ends == {"[0, 2)": [0, 1], "(0, 2]": [1, 2]}
