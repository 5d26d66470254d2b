"""Parameters: their space split into cells, values put in, the condition that the cells state.

The engine runs on symbols. Where it needs the sign of an expression in parameters it raises
`SignNeeded`. The space is split there into `> 0`, `< 0` and `= 0` (solved for a parameter where
that is possible), and each part is decided anew. The outcome is a decision tree; `condition` folds
it into a Boolean, dropping parts that cannot occur and splits that do not matter.

Whether constraints can occur together is tested by Fourier-Motzkin elimination over the rationals
with every non-linear monomial taken as a variable of its own: a system without a solution there has
none at all. The converse is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import sympy
from flint import fmpq
from sympy import Basic, Expr, S, Symbol

from farfield.theory.algebra import door
from farfield.theory.algebra.exceptions import SignNeeded, Undecided
from farfield.theory.coefficients.exact import (
    ONE,
    ZERO,
    coefficient,
    expand,
    linear,
)
from farfield.theory.coefficients.signs import (
    Context,
    sign,
    sign_factors,
    sign_key,
    with_proved_rationals,
)
from farfield.theory.formula.bounded_nodes import TooLarge, substituted
from farfield.theory.formula.parameters import interval
from farfield.theory.functions.nodes import n
from farfield.theory.functions.record import kinds, symbols
from farfield.theory.relations import BY_KIND, BY_SIGNS, BY_SYMBOL, OrderRelation
from farfield.theory.values import enclose

MAX_CELLS = 200
STRICT = {sympy.Gt: sympy.Ge, sympy.Lt: sympy.Le}
INFINITE = (S.Infinity, S.NegativeInfinity, S.ComplexInfinity)
Constraint = tuple[Expr, int]  # the sign of an expression
Row = tuple[Mapping[Expr, fmpq], bool]  # sum c x >= 0, or > 0 when strict


@dataclass(frozen=True)
class Leaf:
    """A cell and its decision."""

    outcome: Any


@dataclass(frozen=True)
class Split:
    """A node of the tree; a branch that cannot occur is None."""

    on: Expr
    positive: Tree | None
    zero: Tree | None
    negative: Tree | None


Tree = Leaf | Split


def explore(
    e: Expr,
    domains: Mapping[str, sympy.Set],
    run: Callable[[Expr, list[Constraint]], object],
) -> Tree:
    """The decision tree of `run(expression, facts)` over the parameters; the expression where
    `g = 0` is the one with its parameter solved for, where it can be."""
    reals = {n.name: interval("nonnegative"), **domains}
    parameters = sorted(symbols(e), key=lambda s: s.name)
    facts = [c for s in parameters for c in domain_constraints(s, reals[s.name])]
    budget = [MAX_CELLS]

    def grow(e: Expr, facts: list[Constraint]) -> Tree | None:
        if not possible(facts):
            return None
        budget[0] -= 1
        if budget[0] < 0:
            raise Undecided(f"more than {MAX_CELLS} cells of the parameter space")
        try:
            return Leaf(run(e, facts))
        except SignNeeded as fork:
            (g,) = fork.args
        return Split(
            g,
            grow(e, [*facts, (g, 1)]),
            grow(*_on_zero(e, facts, g)),
            grow(e, [*facts, (g, -1)]),
        )

    tree = grow(e, facts)
    if tree is None:
        raise Undecided("the assumptions contradict each other")
    return tree


@lru_cache(maxsize=256)
def domain_constraints(s: Symbol, domain: sympy.Set) -> tuple[Constraint, ...]:
    """The domain of a parameter as constraints; closed ends stay open to `= 0` by a sign of 2."""
    opened = (domain.left_open, domain.right_open) if domain.is_Interval else (False, False)
    ends = zip((domain.inf, domain.sup), (s - domain.inf, domain.sup - s), opened, strict=True)
    return tuple((fact, 1 if is_open else 2) for end, fact, is_open in ends if end.is_finite)


def known_signs(facts: list[Constraint]) -> dict[Expr, int]:
    """Signs of single factors that the constraints fix, keyed as `sign` asks for them."""
    signs: dict[Expr, int] = {}
    for g, s in facts:
        if s == 2 or not symbols(g):
            continue
        key, flip = sign_key(g)
        signs[key] = flip * s
        factors = sign_factors(g)
        moving = [f for f in factors if symbols(f)]
        if len(moving) == 1:
            key, flip = sign_key(moving[0])
            for f in factors:
                flip *= 1 if symbols(f) else sign(coefficient(f)).value
            signs[key] = flip * s
    return signs


def _on_zero(e: Expr, facts: list[Constraint], g: Expr) -> tuple[Expr, list[Constraint]]:
    """The expression and constraints where g = 0, solved for a parameter if g is linear in one."""
    for s in sorted(g.free_symbols, key=lambda s: s.name):
        line = linear(expand(g), s)
        if line and not line[0].free_symbols:
            swap = {s: expand(-line[1] / line[0])}
            moved = [(expand(f.xreplace(swap)), k) for f, k in facts]
            return _with_value(e, swap), moved
    for s in sorted(g.free_symbols, key=lambda s: s.name):
        solution = _solution(expand(g), s)
        if solution is not None and not solution[0].free_symbols:
            swap = {s: solution[0]}
            return _with_value(e, swap), [(f.xreplace(swap), k) for f, k in facts]
    return e, [*facts, (g, 0)]


def _with_value(e: Expr, swap: dict[Expr, Expr]) -> Expr:
    """e where a parameter has this value; NaN where that divides by 0 or takes its logarithm, or
    where a function is infinite. A piece may be NaN alone: whether it applies is asked later."""
    if isinstance(e, sympy.Piecewise):
        pieces = [(_with_value(v, swap), _with_value(c, swap)) for v, c in e.args]
        asked = ((S.NaN, S.true) if c is S.NaN else (v, c) for v, c in pieces)
        return sympy.Piecewise(*asked, evaluate=False)
    names = {a: sympy.Dummy(real=True) for a in e.args if sympy.Piecewise in kinds(a)}
    if names:
        parts = {x: _with_value(a, swap) for a, x in names.items()}
        whole = _with_value(e.xreplace(names), swap)
        return S.NaN if S.NaN in (whole, *parts.values()) else substituted(whole, parts)
    inverted = [x.base for x in e.atoms(sympy.Pow) if x.exp.is_negative]
    inverted += [x.args[0] for x in e.atoms(sympy.log)]
    if any(expand(door.replaced(x, swap)) == 0 for x in inverted):
        return S.NaN
    try:
        value = door.supervised(substituted, e, swap)
        return S.NaN if value.has(*INFINITE) and not e.has(*INFINITE) else value
    except TooLarge:
        raise Undecided("a constant is too large") from None


def _solution(g: Expr, s: Symbol) -> tuple[Expr, int] | None:
    """The s with g = 0, and the sign of g above it, for g = slope F(s) + rest.

    F is log, exp, or a power that is defined for no negative s. It is inverted where the value it
    takes is known to be one that it can take.
    """
    for f in sorted(g.atoms(sympy.log, sympy.exp, sympy.Pow), key=sympy.default_sort_key):
        slope = g.coeff(f, 1)
        rest = expand(g - slope * f)
        if slope == 0 or not slope.is_number or rest.has(s):
            continue
        value, way = -rest / slope, sign(coefficient(slope)).value
        if f == sympy.log(s):
            return sympy.exp(value), way
        if value.free_symbols or sign(coefficient(expand(value))).value <= 0:
            continue
        if f == sympy.exp(s):
            return sympy.log(value), way
        power = f.is_Pow and f.base == s and f.exp.is_Rational and f.exp > 0
        if power and (s.is_nonnegative or f.exp.q % 2 == 0):
            return value ** (1 / f.exp), way
    return None


# -- feasibility ----------------------------------------------------------------------------------


def possible(facts: list[Constraint]) -> bool:
    """False only if the constraints contradict each other."""
    rows: list[Row] = []
    constants: dict[Expr, None] = {}
    for g, s in facts:
        if not symbols(g):
            if not _constant_fits(g, s):
                return False
            continue
        try:
            terms = _monomials(g)
        except Undecided:
            continue
        if s in (1, 2):
            rows.append((terms, s == 1))
        elif s == -1:
            rows.append(({k: -v for k, v in terms.items()}, True))
        else:
            rows += [(terms, False), ({k: -v for k, v in terms.items()}, False)]
        constants |= dict.fromkeys(k for k in terms if k is not S.One and not symbols(k))
    for k in constants:  # an irrational constant is a variable between two rationals
        ball = enclose(k, 64)
        if ball is not None:
            low, high = ball.lower().fmpq(), ball.upper().fmpq()
            rows += [({k: ONE, S.One: -low}, False), ({k: -ONE, S.One: high}, False)]
    return _feasible(rows)


def _constant_fits(g: Expr, s: int) -> bool:
    """Whether a constant may have the sign s; s = 2 represents at least 0."""
    value = 1 if g.is_positive else -1 if g.is_negative else 0 if g.is_zero else None
    return value is None or (value >= 0 if s == 2 else value == s)


@lru_cache(maxsize=4096)
def _monomials(g: Expr) -> Mapping[Expr, fmpq]:
    """A constraint as coefficients of its monomials, each monomial a variable of its own."""
    terms: dict[Expr, fmpq] = {}
    for term in sympy.Add.make_args(expand(g)):
        factor, rest = term.as_coeff_Mul()
        if not factor.is_Rational:
            raise Undecided("a constraint with irrational coefficients")
        terms[rest] = terms.get(rest, ZERO) + coefficient(factor)
    return terms


def _feasible(rows: list[Row]) -> bool:
    """Fourier-Motzkin: eliminate one variable after the other; too many rows count as feasible."""
    for x in dict.fromkeys(k for r, _ in rows for k in r if k is not S.One):
        lower = [r for r in rows if r[0].get(x, ZERO) > 0]
        upper = [r for r in rows if r[0].get(x, ZERO) < 0]
        rows = [r for r in rows if r[0].get(x, ZERO) == 0]
        if len(lower) * len(upper) > 400:
            return True
        for (a, strict_a), (b, strict_b) in product(lower, upper):
            p, q = a[x], -b[x]
            merged = {
                k: a.get(k, ZERO) * q + b.get(k, ZERO) * p
                for k in dict.fromkeys([*a, *b])
                if k is not x
            }
            rows.append(({k: v for k, v in merged.items() if v != 0}, strict_a or strict_b))
    ends = ((r.get(S.One, ZERO), strict) for r, strict in rows)
    return all(end > 0 or (end == 0 and not strict) for end, strict in ends)


# -- the condition --------------------------------------------------------------------------------


def leaves(
    tree: Tree | None, above: tuple[Constraint, ...] = ()
) -> Iterator[tuple[tuple[Constraint, ...], Leaf]]:
    """The leaves with the signs that lead to them, from positive to negative."""
    if isinstance(tree, Leaf):
        yield above, tree
    elif tree is not None:
        for part, s in ((tree.positive, 1), (tree.zero, 0), (tree.negative, -1)):
            yield from leaves(part, (*above, (tree.on, s)))


def condition(
    tree: Tree, truth: Callable[[Any], bool | None], facts: list[Constraint] | None = None
) -> Basic | None:
    """The simplest Boolean found under which `truth(outcome)` holds, given the domains `facts`;
    cells where it is None do not matter."""
    return _simplest(_condition_of_tree(tree, truth), facts or [])


def _simplest(c: Basic | None, facts: list[Constraint]) -> Basic | None:
    """A disjunction of conjunctions without parts that others (or the domains) imply."""
    if c is None or c in (S.true, S.false):
        return c
    kept: list[list[Basic]] = []
    parts = _disjuncts(c)
    if len(parts) > 24:
        return c
    for part in parts:
        part = list(dict.fromkeys(part))
        if not _possible_with(facts, part):
            continue
        for r in list(part):
            others = [x for x in part if x is not r]
            if not any(_possible_with(facts, [*others, x]) for x in _negation(r)):
                part = others
        kept.append(part)
    for i, part in enumerate(kept):
        kept[i] = _weakened(part, [*kept[:i], *kept[i + 1 :]], facts)
    for part in list(kept):
        others = [x for x in kept if x is not part]
        if others and _contained(part, others, facts):
            kept = others
    return sympy.Or(*(sympy.And(*part) for part in kept))


def _weakened(part: list[Basic], others: list[list[Basic]], facts: list[Constraint]) -> list[Basic]:
    """A part of a disjunction with as few relations as the whole allows; relations of other parts
    that it implies are taken in first: (a >= b & b > 1) | (a < b & a > 1) is (a > 1 & b > 1)."""
    implied = [
        r
        for r in dict.fromkeys(r for other in others for r in other)
        if r not in part and not any(_possible_with(facts, [*part, x]) for x in _negation(r))
    ]
    part = [*part, *implied]
    for r in sorted(part, key=lambda r: -len(r.free_symbols)):
        rest = [x for x in part if x is not r]
        if rest and all(_contained([*rest, x], others, facts) for x in _negation(r)):
            part = rest
            continue
        edge = [*rest, sympy.Eq(r.lhs, r.rhs)]
        if r.func in STRICT and _possible_with(facts, edge) and _contained(edge, others, facts):
            part = [*rest, STRICT[r.func](r.lhs, r.rhs)]
    return part


def _contained(part: list[Basic], others: list[list[Basic]], facts: list[Constraint]) -> bool:
    """Whether a conjunction is proved to imply the disjunction of the others."""
    if not _possible_with(facts, part):
        return True
    if not others or len(part) > 12:
        return False
    return all(_contained([*part, x], others[1:], facts) for r in others[0] for x in _negation(r))


def _disjuncts(c: Basic) -> list[list[Basic]]:
    """A condition as alternatives, each a list of relations."""
    if isinstance(c, sympy.Or):
        return [d for a in c.args for d in _disjuncts(a)]
    if isinstance(c, sympy.And):
        parts = [_disjuncts(a) for a in c.args]
        return [[r for d in choice for r in d] for choice in product(*parts)]
    return [[c]]


def _possible_with(facts: list[Constraint], relations: list[Basic]) -> bool:
    """Whether domains and relations can hold together (True if that is not known)."""
    return possible([*facts, *filter(None, map(_constraint, relations))])


@lru_cache(maxsize=4096)
def _constraint(r: Basic) -> Constraint | None:
    """A relation as a constraint; None for one that leaves two intervals."""
    signs = BY_KIND[r.func].signs
    if signs == (1, -1):
        return None
    way = -1 if -1 in signs else 1
    return expand(way * (r.lhs - r.rhs)), 2 if len(signs) > 1 else abs(signs[0])


def _negation(r: Basic) -> list[Basic]:
    """Relations one of which holds when r does not."""
    if isinstance(r, sympy.Eq):
        return [sympy.Gt(r.lhs, r.rhs), sympy.Lt(r.lhs, r.rhs)]
    return [r.negated]


def _condition_of_tree(tree: Tree, truth: Callable[[Any], bool | None]) -> Basic | None:
    """A condition that says where the leaves hold. Parts of a split that agree share one relation,
    and what cannot occur, or does not matter (None), goes with its neighbour."""
    if isinstance(tree, Leaf):
        value = truth(tree.outcome)
        return None if value is None else S.true if value else S.false
    p, z, m = (
        None if part is None else _condition_of_tree(part, truth)
        for part in (tree.positive, tree.zero, tree.negative)
    )
    if z is None:
        z = m if p is None or (m is not None and m != S.false) else p
    parts = {1: z if p is None else p, 0: z, -1: z if m is None else m}
    conditions = []
    for c in dict.fromkeys(parts.values()):
        signs = tuple(s for s in parts if parts[s] == c)
        if len(signs) == 3:
            return c
        conditions.append(sympy.And(relation(tree.on, BY_SIGNS[signs]), c))
    return sympy.Or(*conditions)


def relation(g: Expr, op: OrderRelation) -> Basic:
    """`g op 0` as a user would write it: solved for a parameter where that is simple."""
    left, right, way = _solved(g)
    return (op if way > 0 else BY_SYMBOL[op.mirrored]).kind(left, right)


@lru_cache(maxsize=4096)
def _solved(g: Expr) -> tuple[Expr, Expr, int]:
    """(s, value, way): g has the sign of s - value, mirrored if `way` is negative."""
    parameters = sorted(symbols(g), key=lambda s: s.name)
    expanded = expand(g)
    for s in parameters:
        line = linear(expanded, s)
        if line and line[0].is_number:
            with suppress(Undecided):
                if way := sign(coefficient(line[0])).value:
                    return s, with_proved_rationals(expand(-line[1] / line[0]), Context()), way
    for s in parameters:
        with suppress(Undecided):
            solution = _solution(expanded, s)
            if solution is not None:
                return s, with_proved_rationals(solution[0], Context()), solution[1]
    return expanded, S.Zero, 1


def with_values(c: Basic, values: Mapping[str, Expr]) -> Basic:
    """The condition where some parameters have values; comparisons of numbers are decided."""
    if isinstance(c, (sympy.And, sympy.Or)):
        return c.func(*(with_values(a, values) for a in c.args))
    if c in (S.true, S.false):
        return c
    swap = {s: values[s.name] for s in c.free_symbols if s.name in values}
    difference = (c.lhs - c.rhs).xreplace(swap)
    if difference.free_symbols:
        return c.func(c.lhs.xreplace(swap), c.rhs.xreplace(swap))
    return c.func(sign(coefficient(difference)).value, 0)
