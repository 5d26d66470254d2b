"""Where a bias crosses a level beyond all distances that are counted."""

import pytest
from flint import arb

from farfield.numerics.levels import BeyondCounting, SuperlevelSet
from farfield.numerics.summation.series import series
from farfield.theory.formula.grammar import read


@pytest.mark.parametrize(
    ("text", "level", "low"),
    [
        ("-n/2", "-1000", 256),
        ("where(n<4,-n,-2*log(n))", "-1000", 252),  # falls from 4 on
        ("-n/2", "-128.000000000000001", 256),
        ("-n/2", "-128.4", 256),  # the last distance above
        ("-n/2", "-128", None),  # meets it
        ("-2*log(2)*floor(log(n+1)/log(2))", "-1000", None),  # not proved to fall
    ],
)
def test_up_to_the_farthest_distance_that_is_counted_all_are_above(text, level, low):
    row = SuperlevelSet(series(read(text)), lambda: arb(level), lambda run: True, 8, 1_000)
    with pytest.raises(BeyondCounting) as raised:
        row.end()
    assert raised.value.low == low
