"""Compared tails, certified windows, layered receptive fields: check values, laws, bad input."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from farfield import (
    certified_window,
    compare_tails,
    encoding,
    layered_receptive_field,
    window_error,
)
from farfield.numerics import comparison
from farfield.numerics.search import Bracket
from farfield.numerics.summation.series import series
from farfield.theory.algebra.door import budget
from farfield.theory.algebra.exceptions import OutOfTime
from farfield.theory.answers.answer import Code
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import precision, to_arb


@pytest.mark.parametrize(
    "a, b, slope",
    [
        ("-60*log(1+n)", "-n/4000", 4000),
        pytest.param("-3/10*n^(4/5)", "-n/64", 64, marks=pytest.mark.slow),
    ],
)
def test_a_crossover_below_all_floats_is_its_logarithm(a, b, slope):
    found = compare_tails(a, b)
    low, high = found.log_crossover
    j = found.index  # the last at which the tail exp(-j/slope) is above the other one
    assert -(j + 1) / slope < low <= high < -j / slope and high < low + 1e-6


def test_a_crossover_that_is_not_located_says_why():
    found = compare_tails("-3/10*n^(4/5)", "-n/10^6")  # at about n = 2.4e27
    assert found.lighter == "b" and found.crossover is None
    assert "not located" in str(found.reason)


def test_a_crossover_leaves_time_for_the_receptive_fields(monkeypatch):
    ends = []

    def located(*_):
        ends.append(budget().deadline)
        raise OutOfTime

    monkeypatch.setattr(comparison, "_last_against", located)
    monkeypatch.setattr(comparison, "_fields", lambda p: (ends.append(budget().deadline), "1")[1:])
    found = compare_tails("-n", "-n/2")
    assert found.reason.code is Code.BUDGET and ends[0] < ends[1] == ends[2]


@pytest.mark.parametrize("text", ["-3/10*n^(4/5)", "-n^(2/3)", "-log(1+n)^4"])
def test_tails_far_out_are_sums_of_their_terms(text):
    """Against the sum of the terms over the first in float64, in whatever order they are asked."""
    s, bias = series(read(text)), encoding(text)
    for j in (10**6, 10**6 - 300, 10**5, 4 * 10**6):
        values = bias.bias(np.arange(j, j + 2 * 10**5))[0]
        with precision(128):
            tail = to_arb(s.tail(j))
            assert (tail - to_arb(s.tail(j + 1))).overlaps(to_arb(s.term(j)))
            assert tail.rel_accuracy_bits() > 90
            log = float(tail.log())
        assert log == pytest.approx(values[0] + math.log(np.exp(values - values[0]).sum()), 1e-9)


def test_tails_that_cannot_be_compared(refusal):
    refusal("free", compare_tails, "-r*n", "-n")


def test_a_comparison_without_a_limit_names_its_blocks_where_there_are_several():
    blocks = "-n*(3+(-1)^n)"
    for a, b, where in (
        ("-n-sin(n)", "-n", "decided."),
        (f"{blocks}+sin(n)", blocks, "decided on the blocks from 0 modulo 2."),
    ):
        found = compare_tails(a, b)
        assert found.lighter is None and found.reason.code == "no_limit"
        assert " ".join(str(found).split()).endswith(where)
    ranked = compare_tails("-n", "-n-sin(n)", "-2*n").reason
    assert (ranked.code, str(ranked)) == ("no_limit", "two of them could not be compared")


@pytest.mark.parametrize(
    ("a", "b", "limit"),
    [  # of equal sums, whose limits are equal too
        ("-n", "where(n<2,n-1,-n)", 0),
        (
            "where(n%2==0,-n,-2*(n-1))",
            "where(n%2==0,-n,-3*(n-1)+log((1-exp(-6))/(1-exp(-4))))",
            None,
        ),
    ],
)
def test_tails_that_agree_to_all_digits_are_not_told_apart(a, b, limit):
    found = compare_tails(a, b)
    assert (found.status, found.label, found.lighter) == ("unknown", None, None)
    assert found.limit == limit and "to all digits tried" in str(found.reason)


def test_each_different_head_is_compared_under_its_name():
    alike = compare_tails("[-n; -n]", "-n/2")
    assert alike.names == (encoding("[-n; -n]").name, "-n/2")
    three = encoding("[-n; -n; -n/2]")
    names = [f"{three.name}, head 1", f"{three.name}, head 3", "-n/4"]
    assert [row[0] for row in compare_tails(three, "-n/4").rows] == names


def test_a_series_that_diverges_is_the_heavier_whatever_the_number_of_formulas():
    for pair, lighter in ((("-log(1+n)", "-n"), "b"), (("-n", "0"), "a")):
        found = compare_tails(*pair)
        assert (found.lighter, found.status, found.label) == (lighter, "exact", "theorem")
        assert found.crossover == 1 and found.reason.code == "diverges"
    both = compare_tails("-log(1+n)", "0")
    assert both.lighter is None and both.status == "exact"
    three = compare_tails("-log(1+n)", "-n", "0")
    assert three.status == "exact"
    assert [row[2] for row in three.rows] == ["converges", "diverges", "diverges"]
    hard = "-log(n+2)*(2+sin(n**2))-log(log(n+2))"
    assert compare_tails(hard, "-n").status == compare_tails(hard, "-n", "0").status == "unknown"


def test_a_comparison_begins_with_receptive_fields_and_ends_with_the_crossover():
    found = compare_tails("-n/64", "-sqrt(n)")
    fields = [[f"{t} tokens" for t in row] for row in ((148, 295, 443), (13, 41, 80))]
    assert [list(row) for row in found.receptive_fields] == fields
    lines = found.text().splitlines()
    assert "148, 295 and 443" in lines[0] and "e-25" not in lines[0]
    assert "e-25" in " ".join(lines[-2:])
    assert [row[3][1] for row in compare_tails("-n/8", "-n/4", "-n").rows] == [
        f"{k} tokens" for k in (5, 19, 37)
    ]


@settings(max_examples=12)
@given(
    slope=st.fractions(Fraction(1, 64), 2, max_denominator=64),
    error=st.fractions(Fraction(1, 10**6), Fraction(19, 10), max_denominator=10**6),
    logit=st.integers(0, 20),
)
def test_the_window_is_the_least_that_is_enough(slope, error, logit):
    w = certified_window(f"-{slope}*n", error, logit, 1).width
    assert window_error(f"-{slope}*n", w, logit, 1).enclosure[0] <= error
    if w > 1:
        assert window_error(f"-{slope}*n", w - 1, logit, 1).enclosure[1] >= error


def test_a_window_that_is_not_known_is_not_certified():
    hard = "-log(n+2)*(2+sin(n**2))-log(log(n+2))"
    found = certified_window(hard, "1/10", 1, 1)
    assert found.width is None and found.label is None and "not known" in found.proof.claim
    both = certified_window([hard, "-log(1+n)"], "1/10", 1, 1)
    assert both.width == math.inf and both.label == "theorem", "one head has none for certain"
    assert certified_window([hard, "-n"], "1/10", 1, 1).status == "unknown"


def test_no_window_is_no_number(refusal):
    refusal("diverges", getattr, certified_window("-log(1+n)", "1/2", 1, 1), "sliding_window")


def test_block_masks_cover_the_window_and_nothing_else():
    window = certified_window("-n/8", "1/10", 1, 1)
    mask = window.block_mask(100, 16)
    pairs = np.arange(100)[:, None] - np.arange(100)[None, :]
    needed = (pairs >= 0) & (pairs < window.sliding_window)
    for i in range(mask.shape[0]):
        for k in range(mask.shape[1]):
            assert mask[i, k] == needed[i * 16 : i * 16 + 16, k * 16 : k * 16 + 16].any()


@pytest.mark.parametrize(
    "f, length", [("-2*log(1+n)", 300), ("-n/20", 200), ("-log(1+n)", 257), ("-sqrt(n)", 64)]
)
@pytest.mark.parametrize(
    "layers, mixing, q", [(1, "1", "99/100"), (2, "1", "9/10"), (7, "2/5", "99/100")]
)
def test_layers_against_direct_convolution(f, length, layers, mixing, q):
    weights = np.exp(encoding(f).bias(np.arange(length))[0])
    step = float(Fraction(mixing)) * weights / weights.sum()
    step[0] += 1 - float(Fraction(mixing))
    mass = np.array([1.0])
    for _ in range(layers):
        mass = np.convolve(mass, step)[:length]
    cumulative = np.cumsum(mass)
    tokens = 1 + int(np.argmax(cumulative >= float(Fraction(q)) * cumulative[-1]))
    found = layered_receptive_field(f, layers, mixing=mixing, q=q, length=length)
    assert (found.tokens, found.formula) == (tokens, encoding(f).formula)


def test_a_row_beyond_the_grid_is_bracketed():
    whole = layered_receptive_field("-log(1+n)", 12, length=10**6).tokens
    found = layered_receptive_field("-log(1+n)", 12, length=5 * 10**6)
    assert found.tokens is None and whole <= found.bracket.low <= found.bracket.high == 5 * 10**6


@pytest.mark.parametrize(
    ("f", "nines", "why"),
    [
        ("-1.05*log(1+n)", 70, "the answer has more than 3400 bits"),
        ("-n", 100, "q is too near to 1: a step leaves out less than 2^-250"),
    ],
)
def test_layers_whose_largest_step_is_not_reached_have_a_lower_bound(f, nines, why):
    found = layered_receptive_field(f, 3, q="0." + "9" * nines)
    assert found.bracket == Bracket(1, None) and found.status == "enclosed"
    assert str(found.reason) == why


def test_a_step_that_hardly_ever_leaves_the_token_reaches_one():
    found = layered_receptive_field("-n", 3, mixing="1e-12", q="0.9999999999")
    assert (found.bracket, found.span()) == (Bracket(1, 1), (1, 1))


def test_a_bracket_of_hundreds_of_digits_is_rounded_outward():
    """P(largest step > x) = 1 - (1 - a T_{x+1}/B)^R <= 1 - q, at both ends by Hurwitz's zeta."""
    layers = 4
    found = layered_receptive_field("-101/100*log(1+n)", layers).bracket
    assert found.low > 2**700 and (found.high - 1) % layers == 0
    with ctx.workprec(4000):
        s, mixing, share = arb(101) / 100, arb(2) / 5, arb(99) / 100

        def within(x):  # b_t = (1 + t)^-s
            step = 1 - (1 - mixing * s.zeta(arb(x + 2)) / s.zeta(arb(1))) ** layers
            return step <= 1 - share

        assert within((found.high - 1) // layers) and not within(found.low - 2)
