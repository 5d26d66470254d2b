"""Sums are values: no question changes them, and what is remembered goes with them."""

import dataclasses
import gc

import pytest
from flint import fmpq

from farfield.numerics.summation import kept_sums
from farfield.numerics.summation.methods import find
from farfield.numerics.summation.series import series
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import precision, to_arb

BIASES = {
    "closed form": "-n/7",
    "Euler-Maclaurin": "-sqrt(n+1)",
    "analytic": "-2*log(n+2)-1/(n+1)",
    "light": "-n**2/9-n",
    "envelope": "-n/50+frac(n*sqrt(2))",
    "classes": "-n/9-Mod(n,3)",
}


def state(value, seen=()):
    """All that an object holds, its attributes beside its fields included."""
    if dataclasses.is_dataclass(value):
        return {name: state(inner) for name, inner in vars(value).items()}
    if isinstance(value, tuple):
        return tuple(map(state, value))
    return (id(value), len(value)) if isinstance(value, (dict, list, set)) else id(value)


@pytest.mark.parametrize("text", BIASES.values(), ids=BIASES)
def test_no_question_changes_a_sum(text, short_envelopes):
    """Nothing is written into it, and questions in another order have answers that agree."""
    bias = read(text)
    asked, fresh = find(bias), find(bias)
    before = state(asked)
    questions = [(200, 64), (3, 64), (40, 128), (3, 128), (0, 64)]
    found = {}
    for j, bits in questions:
        with precision(bits):
            found[j, bits] = to_arb(asked.tail(j))
    assert state(asked) == before
    for j, bits in reversed(questions):
        with precision(bits):
            assert to_arb(fresh.tail(j)).overlaps(found[j, bits])


@pytest.mark.parametrize(
    ("text", "at"), [("-sqrt(n+1)", 300), ("-2*log(n+2)-1/(n+1)", 300), ("-n**2/9-n", 70_000)]
)
def test_neighbours_of_a_sum_that_is_kept_are_its_neighbours(text, at):
    kept = find(read(text))
    for bits in (64, 190):
        with precision(bits):
            for j in (at, at - 1, at - 1, at, at + 1, at - 9, at + 4):
                found, fresh = kept.tail(j), find(read(text)).tail(j)
                assert found.overlaps(fresh) and found.rel_accuracy_bits() > bits - 14


@pytest.mark.parametrize("text", [*BIASES.values(), "where(n<3000,-sqrt(n+2),-n/7)"])
def test_a_search_that_the_clock_ended_is_begun_again(monkeypatch, text, short_envelopes):
    bias = read(f"{text}-log(n+97)")  # of no other test
    with monkeypatch.context() as hurried, precision(64):
        hurried.setattr("farfield.numerics.summation.series.SET_UP_S", -1.0)
        assert "time budget" in series(bias).gap
    assert series(bias).converges and not series(bias).gap
    assert series(bias) is series(bias)


def test_rows_are_beside_the_series():
    s = series(read("-log(n+3)-n/50"))
    before = state(s)
    with precision(64):
        assert to_arb(s.truncated(9).total()).overlaps(to_arb(s.total() - s.tail(9)))
    assert state(s) == before
    assert s.truncated(9) is s.truncated(9)


def test_what_is_remembered_is_forgotten_with_its_object():
    @dataclasses.dataclass(frozen=True)
    class Asked:
        value: fmpq

        @kept_sums.remembered
        def square(self):
            counted.append(self.value)
            return self.value**2

    counted = []
    one, equal = Asked(fmpq(3)), Asked(fmpq(3))
    assert [one.square(), one.square(), equal.square()] == [9, 9, 9]
    assert counted == [3, 3]
    place = id(one)
    assert place in kept_sums._KEPT
    del one
    gc.collect()
    assert place not in kept_sums._KEPT
