"""Numbers as they are read and written, at the borders where their form changes."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
import sympy

from farfield.theory.answers.names import closest, nearest, one_of
from farfield.theory.answers.number import (
    at_most,
    count,
    decimal,
    exact,
    inside,
    integer,
    natural,
    runs,
    share,
    tokens,
)

R = sympy.Rational


@pytest.mark.parametrize(
    ("write", "value", "text"),
    [
        (integer, 10**60 - 1, "9" * 60),
        (integer, 10**60, f"1{'0' * 15}…{'0' * 16} (61 digits)"),
        (tokens, None, "unknown"),
        (tokens, math.inf, "infinitely many tokens"),
        (tokens, 1, "1 token"),
        (tokens, 0, "0 tokens"),
        (count, 10**7 - 1, "9999999"),
        (count, 10**7, "1.00e+7"),
        (count, 12_399_999, "1.23e+7"),
        (count, 2**9_999 - 1, "9.97e+3009"),
        (count, 2**9_999, "> 2^9999"),
        (decimal, -math.inf, "minus infinity"),
        (decimal, 1.0, "1"),
        (decimal, 1.0000001, "1"),
        (decimal, 1 - 4e-6, "0.999996"),
        (decimal, 1 - 4e-7, "1 - 4e-07"),
        (share, R(1, 100), "1 %"),
        (share, R(1, 200), "0.5 %"),
        (share, R(1, 500), "0.2 %"),
        (share, R(1, 1000), "0.1 %"),
        (share, R(0), "0"),
        (share, R(1, 700), "1/700"),
        (share, R(1, 2), "50 %"),
        (share, R(3, 80), "3/80"),
        (share, R(1, 8), "12.5 %"),
        (share, R(3, 2000), "0.15 %"),
        (share, R(203, 10_000), "2.03 %"),
        (share, R(1, 10**4), "0.01 %"),
        (share, R(1, 10**5), "1e-5"),
        (share, R(1, 123_400), "1/123400"),
        (share, R(3, 10**5), "3/100000"),
        (runs, [], ""),
        (runs, [3], "3"),
        (runs, [0, 1, 3, 4, 5, 9], "0 to 1, 3 to 5, 9"),
    ],
)
def test_a_number_in_words(write, value, text):
    assert write(value) == text


def test_a_bound_is_never_rounded_up():
    draw = random.Random(0)
    for _ in range(300):
        value, digits = 10 ** draw.uniform(-30, 8), draw.randrange(1, 6)
        shown = Fraction(at_most(value, digits))
        assert shown <= Fraction(value) < shown * (1 + Fraction(10) ** (1 - digits))


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1e1000", 10**1000),
        ("1E-3", R(1, 1000)),
        (" 12.5 % ", R(1, 8)),
        ("−1/2", R(-1, 2)),
        (2**12_000 - 1, 2**12_000 - 1),
        (np.float32(0.1), R(1, 10)),
        (np.int64(7), 7),
        (sympy.Float("0.1"), R(1, 10)),
        (Fraction(2, 6), R(1, 3)),
        ("0." + "1" * 999, R(int("1" * 999), 10**999)),
    ],
)
def test_a_number_is_read_as_written(written, value):
    assert exact(written) == value


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("1e1001", "more than 1000 digits"),
        ("1e-1001", "more than 1000 digits"),
        ("1" * 1001, "more than 1000 digits"),
        (2**12_000, "more than 12000 bits"),
        (R(1, 2**12_000), "more than 12000 bits"),
        (True, "is not a number"),
        (None, "is not a number"),
        ("1/0", "is not a rational number"),
        (math.inf, "is not a rational number"),
        ("5 % %", "is not a rational number"),
    ],
)
def test_what_is_no_number_is_refused(refusal, written, why):
    refusal(why, exact, written)


def test_whole_numbers_have_bounds_and_units(refusal):
    assert [natural(x, "x", 0) for x in (0, "0", "2k", "1.5K", "1M", 10**15, "1e3")] == [
        0, 0, 2048, 1536, 1 << 20, 10**15, 1000
    ]  # fmt: skip
    assert natural(5, "x", 5, 5) == 5
    for bad in (0, "1/2", "50 %", 10**15 + 1, "1.0001k", "k", -1):
        refusal(r"accepted: a whole number from 1 to 10\^15, such as", natural, bad, "x")
    for bad in (4, 6):
        refusal("from 5 to 5", natural, bad, "x", 5, 5)


@pytest.mark.parametrize("domain", ["(0, 1)", "[0, 1)", "(0, 1]", "[0, 1]", "(0, oo)", "[0, oo)"])
def test_an_interval_has_the_ends_that_are_written(refusal, domain):
    for value in (R(-1, 9), 0, R(1, 9), 1, R(10, 9)):
        high = domain[1:-1].split(", ")[1]
        above = value > 0 or (value == 0 and domain[0] == "[")
        below = high == "oo" or value < 1 or (value == 1 and domain[-1] == "]")
        if above and below:
            assert inside(value, "x", domain) == value
        else:
            refusal("is out of range; accepted: a ", inside, value, "x", domain)


def test_names_that_are_near(refusal):
    few, many = [f"name{k}" for k in range(8)], [f"name{k}" for k in range(9)]
    assert closest("name3", few) == "accepted: " + ", ".join(few)
    assert closest("name3", many).startswith("the nearest of 9: name3, name")
    assert closest("name3", many).count(",") == 2 and nearest("xyz", few) is None
    refusal(r"x 'nam3' is not known; did you mean 'name3'\? accepted", one_of, "nam3", "x", few)
    refusal("x 3 is not known; accepted: name0", one_of, 3, "x", few)
