"""The ordered list of methods: each sums what it says, and the choice is told where it is asked."""

import pytest
from flint import arb

from farfield.numerics.outcomes import Unrecognised
from farfield.numerics.summation.kernel import terms
from farfield.numerics.summation.methods import METHODS, find
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import precision, to_arb

TAKEN = {
    "family": "-2*log(n+1)",
    "steps": "-2*log(3)*floor(log(n+1)/log(3))",
    "analytic": "-2*log(n+2)-1/(n+1)",
    "envelope": "-4*log(n+2)-log(n+2)*sin(n**2)",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TAKEN)
def test_the_trace_names_the_method_and_those_passed_over(name, monkeypatch, capsys):
    p = read(TAKEN[name])
    monkeypatch.setenv("FARFIELD_TRACE", "1")
    found = find(p)
    out, told = capsys.readouterr()
    *_, last = told.splitlines()
    assert out == "" and all(line.startswith("farfield: sum of") for line in told.splitlines())
    assert f": {name} ({type(found).__name__})" in last
    before = [m.name for m in METHODS][: [m.name for m in METHODS].index(name)]
    places = [last.index(f"; not {other}: ") for other in before]
    assert places == sorted(places)
    with precision(64):
        first = sum(map(terms(p), range(5)), arb(0)) + to_arb(found.tail(5))
        assert first.overlaps(to_arb(found.tail(0)))


def test_the_trace_says_why_no_method_sums(monkeypatch, capsys):
    monkeypatch.setenv("FARFIELD_TRACE", "1")
    with pytest.raises(Unrecognised):
        find(read("n*sin(n)"))
    last = capsys.readouterr().err.splitlines()[-1]
    assert ": no method; not family: " in last and "; not envelope: " in last


def test_no_trace_unless_asked(monkeypatch, capsys):
    monkeypatch.delenv("FARFIELD_TRACE", raising=False)
    find(read("-n/9+cos(n)"))
    assert capsys.readouterr() == ("", "")


def test_finite_stretches_are_left_to_the_methods_for_rows():
    with pytest.raises(Unrecognised):
        find(read("-n/9+cos(n)"), row=True)
    with precision(64):
        whole = to_arb(find(read("-n/9"), row=True).between(0, 9))
        assert whole.overlaps(sum(map(terms(read("-n/9")), range(9)), arb(0)))
