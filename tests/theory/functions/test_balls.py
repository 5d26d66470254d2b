"""Balls hold what exact arithmetic says, and where there is no value they say of which kind."""

import math
import random
from fractions import Fraction

import pytest
from flint import acb, arb, ctx, fmpq

from farfield.theory.functions.balls import (
    NoValue,
    Undefined,
    Undetermined,
    ball_sign,
    finite_at,
    floor_of,
    outward,
    power_of,
    precision,
    real_part,
)


def exact(x):
    """The dyadic number in the middle of a ball."""
    mantissa, exponent = map(int, x.mid().man_exp())
    return mantissa * Fraction(2) ** exponent


def ball(value, radius=0):
    return arb(fmpq(value.numerator, value.denominator), float(radius))


@pytest.mark.parametrize("bits", [8, 53, 64, 200])
def test_floats_lie_outside_of_a_ball_and_next_to_it(bits):
    draw = random.Random(bits)
    for _ in range(100):
        value = Fraction(draw.randrange(-(10**6), 10**6), draw.randrange(1, 10**6))
        radius = draw.choice([0, 2.0**-70, 1e-20, 0.3])
        with precision(bits):
            x = ball(value, radius)
            low, high = outward(x)
        least, greatest = exact(x) - exact(x.rad()), exact(x) + exact(x.rad())
        assert low <= least <= value <= greatest <= high
        if bits > 53:
            assert Fraction(low) + 2 * Fraction(math.ulp(low)) > least
            assert Fraction(high) - 2 * Fraction(math.ulp(high)) < greatest


def test_the_precision_is_at_least_two_bits_and_is_restored():
    before = ctx.prec
    with precision(0):
        assert ctx.prec == 2
        with precision(99.5):
            assert ctx.prec == 99
        assert ctx.prec == 2
    assert ctx.prec == before


def test_powers_are_those_of_fractions():
    draw = random.Random(1)
    with precision(64):
        for _ in range(200):
            base = Fraction(draw.randrange(-9, 10), draw.randrange(1, 10))
            exponent = draw.choice([0, 1, 2, 3, 5, -1, -2, -3, 4095, 4096, 5000])
            if base == 0:
                continue
            value = power_of(fmpq(base.numerator, base.denominator), fmpq(exponent))
            assert isinstance(value, fmpq) == (exponent < 4096)
            wanted = base**exponent
            of_ball = power_of(ball(base, 1e-30), fmpq(exponent))
            for found in (value, of_ball):
                assert arb(fmpq(wanted.numerator, wanted.denominator)).overlaps(arb(found))
            assert of_ball.rel_accuracy_bits() > 30
        assert [power_of(fmpq(0), fmpq(k)) for k in range(3)] == [1, 0, 0]
        assert power_of(arb(0, 1), fmpq(0)) == 1


def test_roots_and_powers_of_irrational_exponents_are_undone():
    draw = random.Random(2)
    with precision(64):
        for _ in range(60):
            base = fmpq(draw.randrange(1, 50), draw.randrange(1, 50))
            p, q = draw.randrange(-7, 8), draw.choice([2, 3, 5])
            root = arb(power_of(base, fmpq(p, q)))
            assert (root**q).overlaps(arb(base) ** p) and root.rel_accuracy_bits() > 50
            assert power_of(base, arb(2).sqrt()).log().overlaps(arb(base).log() * arb(2).sqrt())
        assert power_of(fmpq(0), fmpq(1, 3)) == 0
        assert power_of(fmpq(9, 4), fmpq(3, 2)) == fmpq(
            27, 8
        )  # a square root is exact where it can be
        assert power_of(1 - fmpq(1, 2**31), fmpq(2**31)).overlaps((-1 - arb(2) ** -32).exp())
        for k in (2**31 + 1, 2**31):
            far = power_of(arb(-1) - arb(2) ** -31, fmpq(k))
            assert (far * (-1) ** (k + 1)).overlaps(-(arb(k) * (1 + arb(2) ** -31).log()).exp())


@pytest.mark.parametrize(
    ("base", "exponent", "kind"),
    [
        (fmpq(0), fmpq(-1), NoValue),
        (arb(0, 1), fmpq(-2), Undefined),
        (fmpq(0), fmpq(-1, 2), NoValue),
        (arb(0), fmpq(-1, 2), NoValue),
        (fmpq(0), arb(0, 1), Undefined),
        (fmpq(0), arb(-2, 1), NoValue),
        (fmpq(-1), fmpq(1, 2), NoValue),
        (arb(-1), fmpq(1, 3), NoValue),
        (fmpq(-1), arb(0, 1), Undefined),
        (arb(0, 1), fmpq(1, 2), Undefined),
        (arb(0.5, 0.5), fmpq(-1, 2), Undefined),
        (arb(0.5, 0.5), arb(2).sqrt(), Undefined),
    ],
)
def test_what_has_no_power_says_whether_another_precision_may_give_one(base, exponent, kind):
    with precision(64), pytest.raises(Undefined) as error:
        power_of(base, exponent)
    assert type(error.value) is kind
    with precision(64):
        assert finite_at(arb(2), fmpq(1)) == 2 and real_part(acb(2, 0)) == 2
        assert not real_part(acb(2, 1)).is_finite() and not real_part(acb(2, -1)).is_finite()


def test_signs_and_floors_are_decided_where_the_ball_decides():
    with precision(64):
        values = [fmpq(7, 2), fmpq(-7, 2), fmpq(0), fmpq(3), arb(3.5), arb(-3.5, 0.25), arb(0)]
        assert [ball_sign(x) for x in values] == [1, -1, 0, 1, 1, -1, 0]
        assert [floor_of(x) for x in values] == [3, -4, 0, 3, 3, -4, 0]
        for decide, x in ((ball_sign, arb(0, 1)), (floor_of, arb(3, 0.1))):
            with pytest.raises(Undetermined):
                decide(x)
        for arguments, kind in (((fmpq(1),), NoValue), ((fmpq(1), arb(1)), Undefined)):
            with pytest.raises(Undefined) as error:
                finite_at(arb.nan(), *arguments)
            assert type(error.value) is kind
