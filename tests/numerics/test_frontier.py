"""Reach against exposure: the mixtures of the theory, random mixtures, bad input."""

import numpy as np
import pytest

from farfield.numerics.frontier import reach_frontier
from farfield.numerics.leak import leak

ASK = {"trained": 64, "length": 1024}


def test_one_free_head_beside_local_ones_reaches_as_far_for_less():
    found = reach_frontier(["[-n x9; 0]", "[0 x10]", "-n/64"], 7, **ASK)
    names = [row.name for row in found.rows]
    assert names[0] == "[-n x9; 0]" and [row.best for row in found.rows].count(True) >= 1
    mixed, free = found.rows[0], found.rows[names.index("[0 x10]")]
    assert mixed.best and mixed.exposure == pytest.approx(0.1, abs=1e-3)
    assert not free.best or free.farthest > (mixed.farthest or 0)


def test_exposure_is_the_worst_input():
    gain, bias = 5.0, -2 * np.log1p(np.arange(1024))
    worst = np.exp(bias + np.where(np.arange(1024) < 64, -gain / 2, gain / 2))
    (row, _) = reach_frontier(["-2*log(1+n)", "0"], gain, **ASK).rows
    assert row.exposure == pytest.approx(worst[64:].sum() / worst.sum(), rel=1e-12)
    assert row.leak == leak("-2*log(1+n)", 64, 1024).value


def test_what_is_beaten_is_not_on_the_frontier():
    given = ["-n/8", "-n/64", "-n/256", "0", "-2*log(1+n)", "-log(1+n)", "[-n; 0]", "[-n x3; 0]"]
    rows = reach_frontier(given, 7, **ASK).rows
    exposures = [row.exposure for row in rows]
    assert exposures == sorted(exposures) and any(row.best for row in rows)
    for row in rows:
        beaten = any(
            other.exposure <= row.exposure
            and other.farthest >= row.farthest
            and (other.exposure, other.farthest) != (row.exposure, row.farthest)
            for other in rows
        )
        assert row.best == (not beaten and row.farthest >= 64)


def test_none_reaches():
    found = reach_frontier(["-n", "-2*n"], 7, **ASK)
    assert not any(row.best for row in found.rows) and "no candidate" in str(found)
