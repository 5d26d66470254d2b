"""Some five hundred series with verdicts derived by hand, beyond the families of the battery.

`tests/data/series.jsonl`: nested logarithms, gamma ratios, special functions, constants with exact
cancellations, finite sums and products, steps and residues, oscillations, parameters. Rows that are
`open` are left undecided, and those that are `left_out` refused: more than the engine is for.
"""

import itertools

import pytest
import sympy
from battery import SERIES

from farfield import InputError, check_convergence

GRID = ("1/7", "1/2", "1", "7/5", "2", "5/2", "3", "4", "12", "-1/3", "-1", "-7/5", "-3", "0")


def holds(condition, values):
    """A condition as written in the data, at rational values."""
    relations = {"Eq": lambda a, b: a == b, "Ne": lambda a, b: a != b, "__builtins__": {}}
    return bool(eval(condition, relations, {k: sympy.Rational(v) for k, v in values.items()}))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("part", range(8))
def test_verdicts_derived_by_hand(refusal, part):
    for row in SERIES[part::8]:
        if row.get("left_out"):
            refusal(
                r"left out|argument",
                check_convergence,
                row["expr"],
                assumptions=row["params"] or None,
            )
            continue
        result = check_convergence(row["expr"], assumptions=row["params"] or None)
        if row.get("open"):
            assert result.verdict.value in ("undecided", row["verdict"]), row["expr"]
            continue
        assert result.verdict.value == row["verdict"], row["expr"]
        if row["verdict"] == "conditional":
            for point in itertools.product(GRID, repeat=len(row["params"])):
                values = dict(zip(sorted(row["params"]), point, strict=True))
                try:
                    found = result.at(**values)
                except InputError:  # outside the domain
                    continue
                assert found is holds(row["condition"], values), (row["expr"], values)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("-mod(abs(n-3), 5)-2*log(1+n)", "converges"),
        ("-mod(abs(n-3), 5)-log(1+n)", "diverges"),
        ("-n-mod(max(n, 4), 3)", "converges"),
        ("-frac(min(n, 7)/3)", "diverges"),
    ],
)
def test_a_remainder_of_a_choice_is_bounded(text, verdict):
    """The choice is made for large n, the remainder is not: no sign decides it."""
    assert check_convergence(text).verdict.value == verdict


@pytest.mark.parametrize(
    ("text", "zeros"),
    [
        ("-(pi-1)*log(n+1)", []),
        ("-n*(log(6)-log(2)-log(3))-2*log(n+1)", ["expansion"]),
        ("-n*(sqrt(6)-sqrt(2)*sqrt(3)*log(6)/(log(2)+log(3)))-2*log(n+1)", ["expansion"]),
    ],
)
def test_a_proof_names_the_zeros_that_it_rests_on(text, zeros):
    steps = check_convergence(text).proof.steps
    assert [step.values["how"] for step in steps if step.rule == "zero"] == zeros
