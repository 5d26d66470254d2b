"""Numbers in captions and curves, computed another way."""

import math

import numpy as np
import pytest

from farfield.figures.papers import measured_figures
from farfield.figures.priors import against_critical, kept_share, name_of, weights
from farfield.theory.answers.blocks import Weight
from farfield.theory.answers.notation import terminal
from farfield.theory.encodings import encoding


def test_perplexities_are_compared_from_the_training_length():
    values = {
        "alibi": {32: {0: 9.0}, 64: {0: 1.0, 1: 3.0}, 1024: {0: 1.0, 1: 3.05}},
        "rope": {32: {0: 0.5}, 64: {0: 2.0}, 1024: {0: 6.0}},
    }
    told = measured_figures.kept(values, 64)
    assert told == "From 64 to 1024 tokens perplexities hold for ALiBi; they rise for RoPE 3-fold."


def test_the_share_that_the_nearest_keep_is_that_of_the_sums():
    shown = [("half", encoding("-n/64"), 0), ("log", encoding("-log(1+n)"), 1)]
    curve = kept_share(shown)
    lines = {str(line.name): dict(zip(line.x, line.y, strict=True)) for line in curve.lines}
    n = np.arange(10**6)
    for name, p in (("half", -n / 64), ("log", -np.log1p(n)), ("no bias", 0.0 * n)):
        mass = np.exp(p).cumsum()
        for length in (x for x in lines[name] if x <= len(n)):
            wanted = mass[63] / mass[int(length) - 1]
            assert lines[name][length] == pytest.approx(wanted, rel=1e-6), (name, length)
    assert "ALiBi 1/64" not in lines, "it is shown under its own name"
    assert min(lines["log"]) == 64 and max(lines["log"]) == round(64 * 10**7.2)
    within = [x for x in lines["half"] if x < 20_000]
    assert within == [round(64 * 10 ** (k / 10)) for k in range(25)]
    heads = kept_share([("alibi", encoding("alibi", heads=2), 0)])
    assert {str(line.name) for line in heads.lines} >= {"head 1", "head 2"}
    assert [str(x.name) for x in heads.lines if x.weight is Weight.STRONG] == ["head 2"]


def test_weights_against_the_critical_one_are_those_of_the_formula():
    curve = against_critical([("own", encoding("-2*log(1+n)"))])
    own, *_ = (line for line in curve.lines if str(line.name) == "own")
    assert own.x[0] == 2 and own.y == pytest.approx([max(x**-2.0, 1e-11) for x in own.x])
    others = {str(line.name): line for line in curve.lines if line.weight is Weight.CONTEXT}
    known = {"ALiBi, slope 1/2", "ALiBi, slope 1/256", "NoPE"}
    assert {*others} == known and all(x.told for x in others.values())
    assert others["NoPE"].y == (1,) * len(others["NoPE"].x)
    edge = curve.lines[-1]
    assert (edge.name, edge.colour, edge.dash) == ("critical 1/n", "ink", 1)
    assert curve.frame == (1e-8, 2)
    assert edge.y == (1 / edge.x[0], 1 / edge.x[1]) == (1 / 2, 1 / 4097)
    asked = against_critical([("own", encoding("-log(1+n)"))])
    assert asked.lines[-1].name == "exactly critical" and (asked.log_x, asked.log_y) == (True, True)
    long = "x" * 60
    for curve in (
        against_critical([(long, encoding("n"))]),
        kept_share([(long, encoding("-n/8"), 0)]),
    ):
        (own,) = (line for line in curve.lines if line.weight is Weight.STRONG)
        assert len(str(own.name)) == 40
    (rising,) = weights(encoding("n"), "up")
    assert max(rising.y) == pytest.approx(math.exp(80))
    near = "-n/8; where(n<1,0,-20); where(n<4096,0,-20); 64-n/32"  # the slowest of some places
    (slowest,) = weights(encoding(f"[{near}; 3-2*log(1+n)]"), "five")
    assert slowest.y == pytest.approx([x**-2.0 for x in slowest.x])


@pytest.mark.parametrize(("slope", "end"), [(30, 2), (1 / 8, 186)])
def test_a_line_of_weights_ends_where_they_fall_below_the_frame(slope, end):
    """exp(-n/8) is 10^-10 at n = 184.2; a bias that falls by 30 is below it from n = 1 on."""
    (line,) = weights(encoding(f"-{slope}*n"), "own")
    above = [math.exp(slope * (1 - x)) for x in line.x[:-1]]
    assert line.x[0] == 2 and line.x[-1] >= end > max([*line.x[:-1], 1])
    assert line.y == pytest.approx([*above, 1e-10])


@pytest.mark.parametrize(("zeros", "called"), [(155, "−n/1{}1"), (156, "-n/1{}1")])
def test_a_formula_is_its_name_where_it_is_short(zeros, called):
    """Of 160 signs at most; a longer one is told by its note."""
    typed = f"-n/1{'0' * zeros}1"
    assert terminal(name_of(encoding(typed))) == called.format("0" * zeros)
    assert terminal(name_of(encoding("alibi"))) == "ALiBi"
