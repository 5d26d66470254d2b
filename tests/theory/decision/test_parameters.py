"""Cells of parameters: they cover the space, hold what they say, and fold into a true condition."""

import itertools

import pytest
import sympy
from flint import fmpq

from farfield import check_convergence
from farfield.theory.coefficients.exact import coefficient
from farfield.theory.coefficients.signs import sign
from farfield.theory.decision.cells import (
    Leaf,
    Split,
    _constant_fits,
    _constraint,
    _contained,
    _feasible,
    _on_zero,
    _solution,
    _with_value,
    condition,
    domain_constraints,
    explore,
    known_signs,
    leaves,
    possible,
    relation,
    with_values,
)
from farfield.theory.formula.grammar import read
from farfield.theory.formula.parameters import interval, parameter
from farfield.theory.functions.nodes import n
from farfield.theory.relations import BY_SYMBOL

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
    for values in itertools.product(GRID, repeat=len(given)):
        at = dict(zip(sorted(e.free_symbols, key=str), values, strict=True))
        node = tree
        while isinstance(node, Split):
            side = sympy.sign(node.on.xreplace(at))
            node = {1: node.positive, 0: node.zero, -1: node.negative}[int(side)]
        assert isinstance(node, Leaf) and node.outcome == sympy.sign(e.xreplace(at)), at
        assert bool(found.xreplace(at)) is bool(e.xreplace(at) > 0), (found, at)


@pytest.mark.parametrize(
    ("symbol", "domain", "outcomes"), [(A, "real", {-1, 0, 1}), (C, "positive", {1})]
)
def test_domains_cut_the_tree(symbol, domain, outcomes):
    tree = explore(symbol, {symbol.name: interval(domain)}, by_sign)
    assert {leaf.outcome for _, leaf in leaves(tree)} == outcomes


R2, LOG, EXP = sympy.sqrt(2), sympy.log, sympy.exp
ONE = LOG(6) / (LOG(2) + LOG(3))  # 1, and SymPy does not see it
UNSEEN = sympy.sin(1) ** 2 + sympy.cos(1) ** 2 - 1
ZERO = sympy.S.Zero
PIECES = sympy.Piecewise((n / A, n > 1), (n, True))
EVER = sympy.Piecewise((n, n >= 0), (1, True), evaluate=False)
N = sympy.S.NaN
TOP, END = [({A: fmpq(1)}, True)], ({A: fmpq(-1)}, False)


def over(op, g):
    return relation(g, BY_SYMBOL[op])


@pytest.mark.parametrize(
    ("ask", "given", "wanted"),
    [
        (_solution, (2 * LOG(C) - 3, C), (EXP(sympy.Rational(3, 2)), 1)),
        (_solution, (1 - LOG(C), C), (sympy.E, -1)),
        (_solution, (LOG(C) - B, C), (EXP(B), 1)),
        (_solution, (B * LOG(C) - 1, C), None),
        (_solution, (LOG(C) + C, C), None),
        (_solution, (EXP(A) - 2, A), (LOG(2), 1)),
        (_solution, (3 - EXP(A), A), (LOG(3), -1)),
        (_solution, (EXP(A) + 2, A), None),
        (_solution, (EXP(A), A), None),
        (_solution, (sympy.sqrt(A) - 2, A), (4, 1)),
        (_solution, (sympy.cbrt(C) - 2, C), (8, 1)),
        (_solution, (sympy.cbrt(A) - 2, A), None),
        (_solution, (A**2 - 2, A), None),
        (_solution, (sympy.sqrt(C + 1) - 2, C), None),
        (_solution, (3 - C**2, C), (sympy.sqrt(3), -1)),
        (_solution, (1 / C - 2, C), None),
        (_solution, (sympy.sqrt(C) - B, C), None),
        (_on_zero, (A * B, [(A, 1)], A - 2), (2 * B, [(2, 1)])),
        (_on_zero, (A * B, [(A, 1)], 2 * A - B), (B**2 / 2, [(B / 2, 1)])),
        (_on_zero, (A * B, [(A, 1)], A * B - 1), (A * B, [(A, 1), (A * B - 1, 0)])),
        (_on_zero, (A * C, [(C, 1)], LOG(C) - 1), (A * sympy.E, [(sympy.E, 1)])),
        (_on_zero, (B * C, [], LOG(C) - B**2), (B * C, [(LOG(C) - B**2, 0)])),
        (_with_value, (n / A, {A: ZERO}), N),
        (_with_value, (n * LOG(A), {A: ZERO}), N),
        (_with_value, (n * A + 1, {A: ZERO}), 1),
        (_with_value, (n / (A - 1), {A: ZERO}), -n),
        (_with_value, (PIECES, {A: ZERO}), sympy.Piecewise((N, n > 1), (n, True), evaluate=False)),
        (_with_value, (1 + PIECES / A, {A: ZERO}), N),
        (lambda *g: _with_value(*g).args, (EVER, {A: ZERO}), EVER.args),
        (over, (">", 2 - 2 * A), A < 1),
        (over, (">", A * B - 1), A * B - 1 > 0),
        (over, (">=", LOG(C) - 1), C >= sympy.E),
        (over, ("<=", 1 - EXP(A)), A >= 0),
        (over, ("==", A - ONE), sympy.Eq(A, 1)),
        (_constraint, (A > 1,), (A - 1, 1)),
        (_constraint, (A >= 1,), (A - 1, 2)),
        (_constraint, (A < 1,), (1 - A, 1)),
        (_constraint, (A <= 1,), (1 - A, 2)),
        (_constraint, (sympy.Eq(A, 1),), (A - 1, 0)),
        (_constraint, (sympy.Ne(A, 1),), None),
        (with_values, ((A > 1) & (B > 2), {"a": sympy.S(2)}), B > 2),
        (with_values, ((A > 1) & (B > 2), {"a": sympy.S(1)}), sympy.false),
        (with_values, ((A > 1) | (B > 2), {"a": sympy.S(2)}), sympy.true),
        (with_values, (A > ONE, {"a": sympy.S(1)}), sympy.false),
        (with_values, (A >= ONE, {"a": sympy.S(1)}), sympy.true),
        (with_values, (sympy.true, {"a": sympy.S(1)}), sympy.true),
        (known_signs, ([(2 - 2 * A, 1), (B, 2), (sympy.S(3), 1)],), {A - 1: -1}),
        (known_signs, ([(R2 * (1 - A), 1)],), {R2 * (1 - A): 1, A - 1: -1}),
        (known_signs, ([(A * B - 1, -1)],), {A * B - 1: -1}),
        (domain_constraints, (A, interval("[0, 1)")), ((A, 2), (1 - A, 1))),
        (domain_constraints, (A, interval("(-2, 3]")), ((A + 2, 1), (3 - A, 2))),
        (domain_constraints, (A, interval("real")), ()),
        (possible, ([(A - 1, 1), (-A, 1)],), False),
        (possible, ([(A - B, 1), (B - 2, 1), (1 - A, 1)],), False),
        (possible, ([(A * B - 3, 1), (1 - A * B, 1)],), False),
        (possible, ([(A, 0), (A, 1)],), False),
        (possible, ([(A - 1, 1), (2 - A, 1)],), True),
        (possible, ([(A - B, 1), (B - 2, 1), (5 - A, 1)],), True),
        (possible, ([(A, 2), (-A, 2)],), True),
        (possible, ([(A - R2, 1), (sympy.Rational(7, 5) - A, 1)],), False),
        (possible, ([(A - R2, 1), (sympy.Rational(3, 2) - A, 1)],), True),
        (possible, ([(A - 1, 1), (1 - A, 1)],), False),
        (possible, ([(A - 1, 2), (1 - A, 1)],), False),
        (possible, ([(A, -1), (A, 2)],), False),
        (possible, ([(R2 * A, 1), (-R2 * A, 1)],), False),
        (_feasible, (TOP + [END] * 400,), False),
        (_feasible, (TOP + [END] * 401,), True),  # too many to be combined
        (_contained, ([A > 0, A < 3], [[A > -1, A < 2], [A > 1, A < 4]], []), True),
        (_contained, ([A > 0, A < 3], [[A > -1, A < 2], [A > 2, A < 4]], []), False),
        (lambda g: [_constant_fits(g, s) for s in (-1, 0, 1, 2)], (sympy.S.One,), [0, 0, 1, 1]),
        (lambda g: [_constant_fits(g, s) for s in (-1, 0, 1, 2)], (sympy.S.Zero,), [0, 1, 0, 1]),
        (lambda g: [_constant_fits(g, s) for s in (-1, 0, 1, 2)], (-R2,), [1, 0, 0, 0]),
        (lambda g: [_constant_fits(g, s) for s in (-1, 0, 1, 2)], (UNSEEN,), [1, 1, 1, 1]),
    ],
)
def test_a_step_of_the_cells_by_hand(ask, given, wanted):
    assert ask(*given) == wanted


@pytest.mark.parametrize(
    ("outcomes", "wanted"),  # where the parameter is positive, 0, negative: None does not matter
    [
        ((1, 0, 0), A > 0),
        ((1, 1, 0), A >= 0),
        ((0, 1, 0), sympy.Eq(A, 0)),
        ((1, 0, 1), sympy.Ne(A, 0)),
        ((0, 1, 1), A <= 0),
        ((1, None, 0), A >= 0),
        ((0, None, 1), A <= 0),
        ((0, 1, None), A <= 0),
        ((None, 1, 0), A >= 0),
        ((None, 0, 1), A < 0),
        ((1, 0, None), A > 0),
        ((None, None, 1), sympy.true),
        ((0, None, None), sympy.false),
        ((None, None, None), None),
    ],
)
def test_what_does_not_matter_goes_with_its_neighbour(outcomes, wanted):
    assert condition(Split(A, *map(Leaf, outcomes)), lambda outcome: outcome) == wanted


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
    whole, formula, decided = check_convergence(text, assumptions=given), read(text, given), 0
    assert whole.verdict == "conditional"
    for values in itertools.product(GRID[1::3], repeat=len(given)):
        point = dict(zip(sorted(given), values, strict=True))
        if given["a"] == "positive" and point["a"] <= 0:
            continue
        at = {parameter(name, given[name]): value for name, value in point.items()}
        alone = check_convergence(f"{formula.xreplace(at)}+0*n").converges
        there = whole.at(**point)
        assert None in (alone, there) or there is alone, point
        decided += None not in (alone, there)
    assert decided >= 4


@pytest.mark.parametrize(("size", "proved"), [(3, True), (12, True), (13, False)])
def test_an_implication_is_sought_among_so_many_relations(size, proved):
    """Where not all signs around a circle are alike, somewhere one is positive and the next is not:
    a proof takes a relation more for each further place."""
    x = sympy.symbols(f"x:{size}", real=True)
    falls = [[x[i] > 0, x[(i + 1) % size] <= 0] for i in range(size)]
    assert _contained([x[0] > 0, x[-1] <= 0], falls[:-1], []) is proved
