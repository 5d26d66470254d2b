"""Where a condition on parameters holds: the exact boundary, and what lies on each side of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import sympy
from sympy import Basic, Expr, Rational, S, Symbol
from sympy.core.relational import Relational

from farfield.theory.algebra.door import expand, solve
from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.decision.cells import with_values

CURVE = 400
"""Points of a curve of the boundary."""
DECADES = 20
"""A range whose ends differ by more than this factor is divided geometrically."""
BESIDE = Rational(1, 10**6)
"""What parts the two sides of a boundary, in widths of the range."""

Range = tuple[Rational, Rational]
Curve = tuple[tuple[float, float], ...]


def between(low: Rational, high: Rational, count: int) -> list[Rational]:
    """Rationals from one to the other, geometrically where the range is wide.

    >>> from sympy import Rational
    >>> between(Rational(1), Rational(2), 3), between(Rational(1), Rational(100), 3)
    ([1, 3/2, 2], [1, 10, 100])
    """
    if low > 0 and high / low > DECADES:
        ratio = float(high / low) ** (1 / (count - 1))
        inner = [Rational(f"{float(low) * ratio**k:.4g}") for k in range(1, count - 1)]
        return [low, *inner, high]
    return [low + (high - low) * Rational(k, count - 1) for k in range(count)]


def holds(condition: object, values: Mapping[str, Expr]) -> bool | None:
    """Whether a condition holds where all its parameters have values; None where that is not
    decided.

    >>> from sympy import Rational, symbols
    >>> holds(symbols("a", positive=True) > 1, {"a": Rational(3, 2)})
    True
    """
    if condition is None:
        return None
    try:
        truth = with_values(sympy.sympify(condition), values)
    except Undecided:
        return None
    return bool(truth) if truth in (S.true, S.false) else None


def _gaps(condition: Basic) -> Iterator[Expr]:
    """What the inequalities of a condition compare with 0, each once."""
    seen = set[Expr]()
    for atom in sorted(condition.atoms(Relational), key=str):
        gap = expand(atom.lhs - atom.rhs)
        if not {gap, -gap} & seen and gap.free_symbols:
            seen |= {gap}
            yield gap


def _zeros(gap: Expr, a: Symbol) -> list[Expr]:
    try:
        return list(solve(gap, a))
    except Undecided:
        return []


def stretches(
    condition: object, name: str, ends: Range, curves: Sequence[Curve]
) -> Iterator[tuple[float, float, bool | None]]:
    """Where a condition on one parameter holds: pieces of its range, and whether it does there.

    >>> from sympy import Rational, symbols
    >>> a = symbols("a", positive=True)
    >>> ends = Rational(0), Rational(3)
    >>> list(stretches(a > 2, "a", ends, list(boundary(a > 2, ["a"], [ends]))))
    [(0.0, 2.0, False), (2.0, 3.0, True)]
    """
    cuts = [float(ends[0]), *sorted(x for ((x, _),) in curves), float(ends[1])]
    for low, high in pairwise(cuts):
        yield low, high, holds(condition, {name: Rational((low + high) / 2)})


def _substituted(e: Expr, values: Mapping[str, Expr]) -> Expr:
    return e.xreplace({s: values[s.name] for s in e.free_symbols if s.name in values})


def boundary(condition: object, names: Sequence[str], ends: Sequence[Range]) -> Iterator[Curve]:
    """Curves on which an inequality of a condition turns, where the condition does.

    Args:
        condition: in parameters.
        names: of the one or two that are varied, all that the condition has.
        ends: the range of each.

    >>> from sympy import Rational, symbols
    >>> a = symbols("a", positive=True)
    >>> list(boundary(a > 1, ["a"], [(Rational(0), Rational(3))]))
    [((1.0, 0.0),)]
    """
    if condition in (None, S.true, S.false):
        return
    for gap in _gaps(condition):
        free = {s.name: s for s in gap.free_symbols}
        solved = {k: _zeros(gap, free[a]) for k, a in enumerate(names) if a in free}
        if solved:
            k = min(solved, key=lambda k: len(solved[k]) or math.inf)  # one root: no turning point
            for root in solved[k]:
                yield from _curves(condition, names, ends, root, k)


def _curves(
    condition: object, names: Sequence[str], ends: Sequence[Range], root: Expr, k: int
) -> Iterator[Curve]:
    """The pieces of a curve, solved for the parameter with index k, that part the two sides."""
    (low, high), step = ends[k], (ends[k][1] - ends[k][0]) * BESIDE
    if len(names) == 1:
        if root.is_real and low <= root <= high:
            yield ((float(root), 0.0),)
        return
    other = 1 - k
    curve: list[tuple[float, float]] = []
    for x in between(*ends[other], CURVE):
        value = _substituted(root, {names[other]: x})
        if value.is_real and low <= value <= high:
            near = Rational(str(sympy.N(value, 30)))
            sides = (
                holds(condition, {names[k]: near + way * step, names[other]: x}) for way in (-1, 1)
            )
            if len({*sides}) == 2:
                curve.append((float(x), float(value)) if other == 0 else (float(value), float(x)))
                continue
        if len(curve) > 1:
            yield tuple(curve)
        curve = []
    if len(curve) > 1:
        yield tuple(curve)
