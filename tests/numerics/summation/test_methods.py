"""The ordered list of methods: each sums what it says, families as the functions of the library
do, and the choice is told where it is asked."""

import os
import subprocess
import sys

import pytest
import sympy
from flint import arb, ctx

from farfield.numerics.search import Unrecognised
from farfield.numerics.summation.kernel import Power, hurwitz, terms
from farfield.numerics.summation.methods import METHODS, find
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import Undefined, precision, to_arb

TAKEN = {
    "family": "-2*log(n+1)",
    "steps": "-2*log(3)*floor(log(n+1)/log(3))",
    "analytic": "-2*log(n+2)-1/(n+1)",
    "envelope": "-4*log(n+2)-log(n+2)*sin(n**2)",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TAKEN)
def test_each_method_sums_what_it_says(name):
    p = read(TAKEN[name])
    for method in METHODS:
        if method.name == name:
            break
        with pytest.raises((Unrecognised, Undefined)):
            method.build(p, 0)
    found = find(p)
    with precision(64):
        first = sum(map(terms(p), range(5)), arb(0)) + to_arb(found.tail(5))
        assert first.overlaps(to_arb(found.tail(0)))


def test_the_trace_tells_the_choice_and_why_others_were_passed_over():
    ask = """
from farfield.numerics import leak
from farfield.numerics.summation import bounded

bounded.DIRECT = bounded.MOST_DIRECT = 256
leak.leak("-4*log(n+2)-log(n+2)*sin(n**2)", 64)
"""
    traced = subprocess.run(
        [sys.executable, "-c", ask],
        env=os.environ | {"FARFIELD_TRACE": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stderr.splitlines()
    at = next(k for k, line in enumerate(traced) if line.startswith("find(") and "Envelope" in line)
    below = [line.split("(")[0].strip() for line in traced[at + 1 :] if line.startswith("  ")]
    for name in ("family", "by_steps", "analytic_kernel"):
        line = next(line for line in traced[at:] if line.startswith(f"  {name}("))
        assert " raises " in line and below.index(name) < below.index("by_envelope")


def test_finite_stretches_are_left_to_the_methods_for_rows():
    with pytest.raises(Unrecognised):
        find(read("-n/9+cos(n)"), row=True)
    with precision(64):
        whole = to_arb(find(read("-n/9"), row=True).between(0, 9))
        assert whole.overlaps(sum(map(terms(read("-n/9")), range(9)), arb(0)))


@pytest.mark.parametrize("name", TAKEN)
def test_smooth_methods_sum_no_oscillations(name):
    p = read(TAKEN[name])
    if name in ("family", "analytic"):
        assert find(p, smooth=True) == find(p)
    else:
        with pytest.raises(Unrecognised):
            find(p, smooth=True)


@pytest.mark.parametrize("bits", [64, 128])
@pytest.mark.parametrize("x", ["1", "1.25", "7", "200.5"])
def test_hurwitz_of_a_great_exponent_is_its_first_term(bits, x):
    with precision(bits):
        at = arb(x)
        great = ctx.prec * (at + 1) * arb("1.01")
        for r in (great, 4 * great, ctx.prec + 3 * at):
            near = hurwitz(r, at)
            assert near.rel_accuracy_bits() > bits // 2
            with precision(600):
                assert near.overlaps(r.zeta(at))


def test_the_density_and_the_integral_of_a_power():
    """Of 5 (u + 2)^-3 at 10, and from there on: 5 / 12^3 and 5 / (2 * 12^2)."""
    power = Power(0, sympy.log(5), sympy.Integer(2), sympy.Integer(3))
    assert power.density(arb(10)).overlaps(arb(5) / 1728)
    assert power.integral(arb(10)).overlaps(arb(5) / 288)
