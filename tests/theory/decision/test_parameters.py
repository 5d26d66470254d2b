"""Cells of parameters: they cover the space, hold what they say, and fold into a true condition."""

import itertools

import pytest
import sympy

from farfield import check_convergence
from farfield.theory.coefficients.exact import coefficient
from farfield.theory.coefficients.signs import sign
from farfield.theory.decision.cells import (
    Leaf,
    Split,
    condition,
    domain_constraints,
    explore,
    known_signs,
    leaves,
    possible,
)
from farfield.theory.formula.grammar import read
from farfield.theory.formula.parameters import interval, parameter

GRID = [sympy.Rational(k, 2) for k in range(-6, 7)]
A, B, C = (parameter(*given) for given in (("a", "real"), ("b", "real"), ("c", "positive")))


def by_sign(e, facts):
    """A decision that asks for the sign of its expression."""
    return sign(coefficient(sympy.expand(e)), known_signs(facts)).value


@pytest.mark.parametrize("text", ["a", "a-1", "a*b", "a+b-1", "a**2-b", "(a-1)*(b+2)"])
def test_each_point_lies_in_the_leaf_of_its_sign_and_the_condition_holds_where_it_is_1(text):
    given = {name: "real" for name in "ab" if name in text}
    e = read(text, given)
    tree = explore(e, {name: interval(said) for name, said in given.items()}, by_sign)
    found = condition(tree, lambda outcome: outcome > 0)
    found = found[0] if isinstance(found, tuple) else found
    for values in itertools.product(GRID, repeat=len(given)):
        at = dict(zip(sorted(e.free_symbols, key=str), values, strict=True))
        node = tree
        while isinstance(node, Split):
            side = sympy.sign(node.on.xreplace(at))
            node = {1: node.positive, 0: node.zero, -1: node.negative}[int(side)]
        assert isinstance(node, Leaf) and node.outcome == sympy.sign(e.xreplace(at)), at
        assert bool(found.xreplace(at)) is bool(e.xreplace(at) > 0), (found, at)


def test_domains_cut_the_tree():
    for symbol, domain, outcomes in ((A, "real", {-1, 0, 1}), (C, "positive", {1})):
        tree = explore(symbol, {symbol.name: interval(domain)}, by_sign)
        assert {leaf.outcome for _, leaf in leaves(tree)} == outcomes
    assert len(domain_constraints(A, interval("[0, 1)"))) == 2


def test_contradictions_are_seen_and_nothing_else_is():
    for facts, holds in (
        ([(A - 1, 1), (-A, 1)], False),
        ([(A - B, 1), (B - 2, 1), (1 - A, 1)], False),
        ([(A * B - 3, 1), (1 - A * B, 1)], False),
        ([(A, 0), (A, 1)], False),
        ([(A - 1, 1), (2 - A, 1)], True),
        ([(A - B, 1), (B - 2, 1), (5 - A, 1)], True),
        ([(A, 2), (-A, 2)], True),  # a = 0
    ):
        assert possible(facts) is holds, facts


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("-a*log(n+1)-b*log(log(n+3))", {"a": "real", "b": "real"}),
        ("-(a**2+b)*log(n+1)", {"a": "real", "b": "real"}),
        ("-a*n**b", {"a": "positive", "b": "real"}),
        ("-a*n+b*log(n+1)", {"a": "real", "b": "real"}),
        ("-Min(a*log(n+1),b*log(n+1))", {"a": "real", "b": "real"}),
        ("-(2+a*sin(n))*log(n+1)", {"a": "real"}),
    ],
)
def test_the_condition_agrees_with_each_number(text, given):
    """The formula with numbers in place of its parameters is decided alone."""
    whole = check_convergence(text, assumptions=given)
    assert whole.verdict == "conditional"
    names, decided = sorted(given), 0
    for values in itertools.product(GRID[1::3], repeat=len(given)):
        if given[names[0]] == "positive" and values[0] <= 0:
            continue
        plain = text
        for name, value in zip(names, values, strict=True):
            plain = plain.replace(f"{name}*", f"({value})*").replace(f"**{name}", f"**({value})")
        for name, value in zip(names, values, strict=True):
            plain = plain.replace(f"+{name})", f"+({value}))")
            plain = plain.replace(f"({name}**2", f"(({value})**2")
        alone = check_convergence(plain)
        there = whole.at(**dict(zip(names, values, strict=True)))
        if alone.converges is not None and there is not None:
            verdict = getattr(there, "converges", there)
            assert verdict is None or verdict == alone.converges, (plain, values)
            decided += verdict is not None
    assert decided >= 4
