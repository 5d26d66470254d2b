"""Maps over ranges of parameters: where the series converges, and how far the formula sees."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sympy
from contourpy import contour_generator
from matplotlib.figure import Figure
from sympy import Basic, Expr, Rational, S, Symbol
from sympy.core.relational import Relational

from farfield.figures.charts import Panel, charted, through
from farfield.figures.exhibit import Data, saved
from farfield.figures.style import COLOURS, NO, YES, svg
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.theory.algebra.door import expand, solve
from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.answers.answer import InputError, Result
from farfield.theory.answers.blocks import Block, Sentence, note
from farfield.theory.answers.notation import expression_line, shortened, words
from farfield.theory.answers.number import exact, inside, natural, plural, share
from farfield.theory.answers.writers.svg import tick
from farfield.theory.convergence import Convergence, Verdict, check_convergence
from farfield.theory.decision.cells import with_values
from farfield.theory.encodings import encoding
from farfield.theory.formula.parameters import interval

MAX_POINTS = 200
BUDGET_S = 2.0
"""Seconds for the receptive field at one point."""
FAR = Rational(10) ** 100
"""The largest end of a range; beyond it the axes of a figure leave the floats."""
HIGHEST = 18.0
"""The axis of receptive fields ends at ten to this power."""
TALLEST = 7.0
"""Contours are drawn up to ten to this power."""
WIDTH = 5.6
"""Of a figure, in inches."""
CURVE = 400
"""Points of a curve of the boundary."""
DECADES = 20
"""A range whose ends differ by more than this factor is divided geometrically."""
BESIDE = Rational(1, 10**6)
"""What parts the two sides of a boundary, in widths of the range."""

Range = tuple[Rational, Rational]
Curve = tuple[tuple[float, float], ...]


class MapPoint(NamedTuple):
    """One point of a map, as a row of the CSV has it: `tokens` is the receptive field where it is
    one number, `low` and `high` enclose it; None is unknown, `inf` a series that diverges."""

    x: Rational
    y: Rational | None
    verdict: str
    tokens: float | None
    low: float | None
    high: float | None

    @property
    def level(self) -> float:
        """log10 of the receptive field, or of the middle of a narrow enclosure; else NaN."""
        if self.tokens is not None:
            return math.log10(max(self.tokens, 1))
        if not (self.low and self.high and self.high < 1.1 * self.low):
            return math.nan
        return (math.log10(self.low) + math.log10(self.high)) / 2


@dataclass(frozen=True, repr=False)
class ParameterMap(Result):
    """A map of a formula over one parameter or two.

    Fields:
        formula: that is mapped; `names`: of its parameters.
        condition: for which values its series converges.
        eps: of the receptive field.
        data: every point.
        boundary: curves between convergence and divergence, from the condition, each a list of
            (x, y); of one parameter single points.
        figure: of matplotlib.
    """

    formula: str
    names: tuple[str, ...]
    condition: str
    eps: Rational
    data: tuple[MapPoint, ...]
    boundary: tuple[tuple[tuple[float, float], ...], ...]
    figure: Figure

    def save(self, path: str | os.PathLike[str]) -> tuple[Path, Path]:
        """Write the figure (svg, png or pdf, by its ending) and its data as CSV beside it.

        Raises:
            InputError: another ending, or a file that cannot be written.
        """
        return saved(self.figure, path, self._table(), "parameter-map", self._said())

    def _table(self) -> Data:
        second = self.names[1] if len(self.names) > 1 else "y"
        columns = (self.names[0], second, *MapPoint._fields[2:])
        return Data(columns, self.data)

    def _said(self) -> str:
        return (
            f"{shortened(self.formula, 60)} over {' and '.join(self.names)}: it converges "
            f"{self.condition}; TRF({share(self.eps)}) at {len(self.data)} points."
        )

    def blocks(self) -> Sequence[Block]:
        found: list[Block] = [Sentence(words("{said}", said=self._said()), "certified")]
        vague = sum(p.tokens is None and p.low is not None for p in self.data)
        open_ = sum(p.tokens is None and p.low is None for p in self.data)
        if vague:
            has = "has" if vague == 1 else "have"
            found.append(note("{k} {has} an enclosure alone.", k=plural(vague, "point"), has=has))
        if open_:
            are = "is" if open_ == 1 else "are"
            found.append(note("{k} {are} not known.", k=plural(open_, "point"), are=are))
        return found

    def fields(self) -> dict[str, Any]:
        return {
            "formula": self.formula,
            "names": self.names,
            "condition": self.condition,
            "eps": str(self.eps),
            "boundary": self.boundary,
            "columns": self._table().columns,
            "rows": [
                [
                    None if v in (math.inf, None) else float(v) if isinstance(v, Rational) else v
                    for v in place
                ]
                for place in self.data
            ],
        }

    def _repr_html_(self) -> str:
        return svg(self.figure, "parameter-map")


def parameter_map(
    formula: Any,
    ranges: Mapping[str, Any],
    *,
    eps: Any = "1/100",
    points: Any = 16,
    values: Mapping[str, Any] | None = None,
    dialect: str | None = None,
    assumptions: Mapping[str, str] | None = None,
    notice: Callable[..., None] | None = None,
) -> ParameterMap:
    """A formula over a range of one or two parameters.

    The boundary of convergence comes from the exact condition, never from the points. Receptive
    fields are certified at the points alone. Contours are those of the grid of points.

    Args:
        formula: a formula in `n` or a name of the catalogue.
        ranges: of each parameter, as `"0.01:1"`, both ends exact and inside its domain.
        eps: of the receptive field.
        points: in each direction.
        values: of the other parameters.
        dialect: variant of an encoding of the catalogue.
        assumptions: domains of parameters.
        notice: called as `notice(stage, done, total)`.

    Raises:
        InputError: no range or more than two, a parameter without a range or a value, a range
            outside the domain.

    >>> drawn = parameter_map("-a*log(1+n)", {"a": "1/2:3"}, points=6)
    >>> drawn.boundary, {str(p.x): p.tokens for p in drawn.data if p.x in (1, 2, 3)}
    ((((1.0, 0.0),),), {'1': inf, '2': 61, '3': 6})
    """
    goal, counted = inside(eps, "eps", "(0, 1)"), natural(points, "points", 2, MAX_POINTS)
    if not 1 <= len(ranges) <= 2:
        raise InputError(f"a map has one range or two, as --a 0.01:1; {len(ranges)} are given")
    options = dict(values or {}) | ({} if dialect is None else {"dialect": dialect})
    found = encoding(formula, assumptions=dict(assumptions or {}) or None, **options)
    bias, axes = _read(found, ranges)
    verdict = check_convergence(bias, assumptions={a.name: d for a, d in axes.items()})
    grid = [between(*_range(a.name, ranges[a.name], d), counted) for a, d in axes.items()]
    wanted = [(x, y) for y in (grid[1] if len(grid) > 1 else [None]) for x in grid[0]]
    places = []
    for done, (x, y) in enumerate(wanted):
        if notice is not None:
            notice("points", done, len(wanted))
        places.append(_point(bias, tuple(axes), goal, verdict, x, y))
    ends = tuple((xs[0], xs[-1]) for xs in grid)
    names = tuple(a.name for a in axes)
    panel, curves = _drawn(places, verdict.condition, names, ends, f"TRF({share(goal)}) in tokens")
    figure = charted(1.6 + 2 * len(grid), panel, width=WIDTH)
    return ParameterMap(found.name, names, _condition(verdict), goal, tuple(places), curves, figure)


def _read(found: Any, ranges: Mapping[str, Any]) -> tuple[Expr, dict[Symbol, str]]:
    """The bias with its parameters and their domains, in the order of the ranges."""
    label = shortened(found.name, 60)
    if found.formula is None:
        why = found.out_of_scope or "its heads have a formula each; accepted: one formula"
        raise InputError(f"{label} is no bias: {why}")
    free = {p.name: p for p in found.free}
    if strange := [name for name in ranges if name not in free]:
        has = ", ".join(free) or "none"
        raise InputError(f"{label} has no free parameter {strange[0]!r}; free parameters: {has}")
    if missing := [name for name in free if name not in ranges]:
        raise InputError(
            f"{label}: {missing[0]} has no range and no value; accepted: --{missing[0]} 0.1:1, or "
            f"--set {missing[0]}=1"
        )
    return found.biases[0], {free[name].symbol: free[name].domain for name in ranges}


def _range(name: str, given: Any, domain: str) -> tuple[Rational, Rational]:
    ends = given.split(":") if isinstance(given, str) else list(given)
    question = f"range of {name} {str(given)[:40]!r}"
    if len(ends) != 2:
        raise InputError(f"{question}: accepted are two numbers, as 0.01:1")
    low, high = (exact(end, name) for end in ends)
    if not low < high:
        raise InputError(f"{question}: accepted is a smaller number first")
    if any(end and not 1 / FAR <= abs(end) <= FAR for end in (low, high)):
        raise InputError(f"{question}: accepted are 0 and sizes from 1e-100 to 1e100")
    allowed = interval(domain)
    if low not in allowed or high not in allowed:
        raise InputError(f"{question}: {name} is {domain}; --assume {name}=real changes that")
    return low, high


def _point(
    bias: Expr,
    names: Sequence[Symbol],
    eps: Rational,
    verdict: Convergence,
    x: Rational,
    y: Rational | None,
) -> MapPoint:
    at = dict(zip(names, (x, y) if y is not None else (x,), strict=True))
    decided = verdict.at(**{a.name: value for a, value in at.items()})
    held = {"True": "converges", "False": "diverges"}.get(str(decided), "undecided")
    if held == "diverges":
        return MapPoint(x, y, held, math.inf, None, None)
    p = bias.xreplace(at)
    found = theoretical_receptive_field(p, eps, budget_s=BUDGET_S)
    low, high = found.span() or (None, None)
    if found.reason is not None and found.reason.code == "diverges":
        held = "diverges"
    elif found.tokens is not None and math.isfinite(found.tokens):
        held = "converges"
    return MapPoint(x, y, held, found.tokens, low, high)


def _condition(verdict: Convergence) -> str:
    if verdict.verdict is Verdict.CONDITIONAL:
        return f"exactly if {expression_line(verdict.condition)}"
    return {Verdict.CONVERGES: "everywhere", Verdict.DIVERGES: "nowhere"}.get(
        verdict.verdict, "where that is not decided"
    )


# -- the boundary, from the condition --------------------------------------------------------------


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


# -- drawing --------------------------------------------------------------------------------------


def _drawn(
    places: Sequence[MapPoint],
    condition: Any,
    names: Sequence[str],
    ends: Sequence[Range],
    field: str,
) -> tuple[Panel, tuple[Curve, ...]]:
    """The panel of a map, and the boundary between convergence and divergence on it."""
    curves = tuple(boundary(condition, names, ends))
    axes, ticks = dict[str, Any](), dict[str, Any]()
    for k, name, (low, high) in zip("xy", names, ends, strict=False):
        logarithmic = low > 0 and high / low > DECADES
        axes |= {f"{k}scale": "log" if logarithmic else "linear", f"{k}label": name}
        axes[f"{k}lim"] = float(low), float(high)
        ticks |= {k: ()} if logarithmic else {}
    if len(names) > 1:
        panel = _over_two(places, curves, field)
    else:
        pieces = stretches(condition, names[0], ends[0], curves)
        areas = [(a, b, YES if held else NO) for a, b, held in pieces if held is not None]
        panel = replace(_over_one(places, curves, field), areas=areas)
    return replace(panel, axes={**panel.axes, **axes}, **ticks), curves


def _over_one(places: Sequence[MapPoint], curves: Sequence[Curve], field: str) -> Panel:
    """The receptive field over one parameter; bars where it is within wide bounds alone."""
    bars = [
        through("", [(p.x, p.low), (p.x, p.high)], COLOURS[0], linewidth=3, alpha=0.4)
        for p in places
        if math.isnan(p.level) and p.high and p.high < 1e300
    ]
    points = [(p.x, 10**p.level if p.level < 300 else math.nan) for p in places]
    known = [y for _, y in points if y <= 10**HIGHEST] or [1, 10**HIGHEST]
    limits = max(0.7, min(known) / 2), min(10**HIGHEST, 2 * max(known))
    title = "green: converges, orange: diverges"
    axes = {"yscale": "log", "ylabel": field, "ylim": limits, "title": title}
    line = through("", points, COLOURS[0], marker="o", markersize=3)
    return Panel([*bars, line], axes, upright=[x for ((x, _),) in curves])


def _over_two(places: Sequence[MapPoint], curves: Sequence[Curve], field: str) -> Panel:
    """Contours of the receptive field over two parameters, and the boundary of convergence."""
    xs, ys = (sorted({float(p[k] or 0) for p in places}) for k in (0, 1))
    edges = [through("", curve, linewidth=2.4) for curve in curves]
    unknown = [(p.x, p.y) for p in places if math.isnan(p.level)]
    title = f"{field}; thick: the boundary of convergence" if edges else field
    title += "; circles: not known, or within wide bounds" * bool(unknown)
    circle: dict[str, Any] = {"marker": "o", "markerfacecolor": "white", "markersize": 4}
    open_ = [through("", unknown, linestyle="none", **circle)]
    values = [min(p.level, HIGHEST) for p in places]
    finite = [v for v in values if math.isfinite(v)]
    ends = max(min(finite, default=0), 0.0), min(max(finite, default=0), TALLEST)
    contours = contour_generator(xs, ys, np.ma.masked_invalid(np.reshape(values, (len(ys), -1))))
    lines = []
    for level in _levels(*ends):
        path = max(map(np.array, contours.lines(level)), key=len)
        rightwards = path if path[-1, 0] >= path[0, 0] else path[::-1]  # the name stands there
        lines.append(through(tick(10**level), rightwards, COLOURS[0], linewidth=1.1))
    return Panel([*edges, *lines, *open_], {"title": title})


def _levels(low: float, high: float) -> list[float]:
    """At most four round levels within common logarithms: decades, finer where there are few."""
    decades = [float(k) for k in range(math.floor(low), math.ceil(high) + 1) if low < k < high]
    if len(decades) > 2:
        return decades[:: math.ceil(len(decades) / 4)]
    finer = (k + math.log10(m) for k in range(math.floor(low), math.ceil(high)) for m in (1, 2, 5))
    return [v for v in finer if low < v < high][:4]
