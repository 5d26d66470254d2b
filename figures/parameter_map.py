"""Formulas over their parameters: where the series converges, how far they see, what they leak."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.collections import PolyCollection
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter
from scipy.interpolate import CloughTocher2DInterpolator, RegularGridInterpolator
from sympy import Expr, Rational, Symbol

from farfield.figures.exhibit import Data
from farfield.figures.plotting import saved
from farfield.figures.style import COLOURS, INK, NO, YES, house, new_figure, svg
from farfield.numerics.leak import leak
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.theory.answers.answer import InputError, Result
from farfield.theory.answers.blocks import Block, Sentence, note
from farfield.theory.answers.notation import expression_line, shortened, words
from farfield.theory.answers.number import exact, inside, natural, share
from farfield.theory.answers.writers.svg import power
from farfield.theory.convergence import Convergence, Verdict, check_convergence
from farfield.theory.decision.regions import (
    DECADES,
    Curve,
    Range,
    between,
    boundary,
    holds,
    stretches,
)
from farfield.theory.encodings import encoding
from farfield.theory.formula.parameters import interval

MAX_POINTS = 200
COLUMNS = 120
"""Stripes in which the areas of two parameters are filled."""
BUDGET_S = 2.0
"""Seconds for the receptive field at one point."""
LEAST_LEAK = 1e-8
TINY = 1e-300
"""Stands for 0 where it is drawn below the frame."""
PALE = ListedColormap(1 - 0.7 * (1 - colormaps["Blues"](np.linspace(0, 1, 256))))
FINE = 161
"""Points in each direction between which the contours of a plane are drawn."""
PAPER = {"facecolor": "white", "alpha": 1, "zorder": -1}
FAR = Rational(10) ** 100
"""The largest end of a range; beyond it the axes of a figure leave the floats."""
ROUNDS = 4
"""Times that the points of a line are refined."""
HIGHEST = 18.0
"""The axis of receptive fields ends at ten to this power."""
TALLEST = 7.0
"""Contours are drawn up to ten to this power."""
Area = tuple[float, float, float, float, bool | None]
"""Left, right, bottom and top of a rectangle, and whether the series converges there."""


class MapPoint(NamedTuple):
    """One point of a map, as a row of the CSV has it: `tokens` is the receptive field where it is
    one number, `low` and `high` enclose it; None is unknown, `inf` a series that diverges."""

    x: Rational
    y: Rational | None
    verdict: str
    tokens: float | None
    low: float | None
    high: float | None
    leak: float | None

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
        eps, trained: of the receptive field and of the leak.
        data: every point.
        boundary: curves between convergence and divergence, from the condition, each a list of
            (x, y); of one parameter single points.
        figure: of matplotlib.
    """

    formula: str
    names: tuple[str, ...]
    condition: str
    eps: Rational
    trained: int
    data: tuple[MapPoint, ...]
    boundary: tuple[tuple[tuple[float, float], ...], ...]
    figure: Figure

    def save(self, path: str | os.PathLike[str]) -> tuple[Path, Path]:
        """Write the figure (svg, png or pdf, by its ending) and its data as CSV beside it.

        Raises:
            InputError: another ending, or a file that cannot be written.
        """
        return saved(self.figure, path, self._table().csv(), "parameter-map", self._said())

    def _table(self) -> Data:
        second = self.names[1] if len(self.names) > 1 else "y"
        columns = (self.names[0], second, *MapPoint._fields[2:])
        return Data(columns, self.data)

    def _said(self) -> str:
        return (
            f"{shortened(self.formula, 60)} over {' and '.join(self.names)}: it converges "
            f"{self.condition}; TRF({share(self.eps)}) and the leak beyond {self.trained} tokens "
            f"at {len(self.data)} points."
        )

    def blocks(self) -> Sequence[Block]:
        found: list[Block] = [Sentence(words("{said}", said=self._said()), "certified")]
        vague = sum(p.tokens is None and p.low is not None for p in self.data)
        open_ = sum(p.tokens is None and p.low is None for p in self.data)
        if vague:
            found.append(note("{k} points have an enclosure alone.", k=vague))
        if open_:
            found.append(note("{k} points are not known.", k=open_))
        return found

    def fields(self) -> dict[str, Any]:
        return {
            "formula": self.formula,
            "names": self.names,
            "condition": self.condition,
            "eps": str(self.eps),
            "trained": self.trained,
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
    trained: Any = 2048,
    points: Any = 16,
    values: Mapping[str, Any] | None = None,
    dialect: str | None = None,
    assumptions: Mapping[str, str] | None = None,
    notice: Callable[..., None] | None = None,
) -> ParameterMap:
    """A formula over a range of one or two parameters.

    The boundary of convergence comes from the exact condition, never from the points. Receptive
    fields and leaks are certified at the points alone, contours between them are drawn by eye.

    Args:
        formula: a formula in `n` or a name of the catalogue.
        ranges: of each parameter, as `"0.01:1"`, both ends exact and inside its domain.
        eps: of the receptive field.
        trained: training length of the leak, in tokens.
        points: in each direction; more of one parameter where the receptive field changes tenfold
            between two.
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
    span = natural(trained, "trained")
    if not 1 <= len(ranges) <= 2:
        raise InputError(f"a map has one range or two, as --a 0.01:1; {len(ranges)} are given")
    options = dict(values or {}) | ({} if dialect is None else {"dialect": dialect})
    found = encoding(formula, assumptions=dict(assumptions or {}) or None, **options)
    bias, axes = _read(found, ranges)
    verdict = check_convergence(bias, assumptions={a.name: d for a, d in axes.items()})
    grid = [between(*_range(a.name, ranges[a.name], d), counted) for a, d in axes.items()]
    ask = partial(_point, bias, tuple(axes), goal, span, verdict)
    wanted = [(x, y) for y in (grid[1] if len(grid) > 1 else [None]) for x in grid[0]]
    places = []
    for done, (x, y) in enumerate(wanted):
        if notice is not None:
            notice("points", done, len(wanted))
        places.append(ask(x, y))
    if len(grid) == 1:
        places = _refined(places, ask)
    ends = tuple((xs[0], xs[-1]) for xs in grid)
    names = tuple(a.name for a in axes)
    draw = _draw_line if len(grid) == 1 else _draw_plane
    figure = draw(names, ends, verdict.condition, places, goal, span)
    _, curves = sides(verdict.condition, names, ends)
    return ParameterMap(
        found.name, names, _condition(verdict), goal, span, tuple(places), curves, figure
    )


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
    said = f"range of {name} {str(given)[:40]!r}"
    if len(ends) != 2:
        raise InputError(f"{said}: accepted are two numbers, as 0.01:1")
    low, high = (exact(end, name) for end in ends)
    if not low < high:
        raise InputError(f"{said}: accepted is a smaller number first")
    if any(end and not 1 / FAR <= abs(end) <= FAR for end in (low, high)):
        raise InputError(f"{said}: accepted are 0 and sizes from 1e-100 to 1e100")
    own = interval(domain)
    if low not in own or high not in own:
        raise InputError(f"{said}: {name} is {domain}; --assume {name}=real changes that")
    return low, high


def _converges(verdict: Convergence, at: Mapping[str, Rational]) -> str:
    """The verdict at a point, from the exact condition."""
    if verdict.verdict is not Verdict.CONDITIONAL:
        return str(verdict.verdict)
    held = holds(verdict.condition, at)
    return "undecided" if held is None else "converges" if held else "diverges"


def _point(
    bias: Expr,
    names: Sequence[Symbol],
    eps: Rational,
    trained: int,
    verdict: Convergence,
    x: Rational,
    y: Rational | None = None,
) -> MapPoint:
    at = dict(zip(names, (x, y) if y is not None else (x,), strict=True))
    held = _converges(verdict, {a.name: value for a, value in at.items()})
    if held == "diverges":
        return MapPoint(x, y, held, math.inf, None, None, 1.0)
    p = bias.xreplace(at)
    found = theoretical_receptive_field(p, eps, budget_s=BUDGET_S)
    low, high = found.span() or (None, None)
    if found.reason is not None and found.reason.code == "diverges":
        held = "diverges"
    elif found.tokens is not None and math.isfinite(found.tokens):
        held = "converges"
    share_beyond = leak(p, trained, budget_s=BUDGET_S).value
    return MapPoint(x, y, held, found.tokens, low, high, share_beyond)


def _refined(places: list[MapPoint], ask: Callable[[Rational], MapPoint]) -> list[MapPoint]:
    """The points of a line with more of them where the receptive field changes tenfold between
    two, so that a line through them is the function for the eye."""
    for _ in range(ROUNDS):
        steep = [
            (a.x + b.x) / 2
            for a, b in pairwise(places)
            if abs(a.level - b.level) > 1
            and (min(a.level, b.level) < HIGHEST or max(a.level, b.level) == math.inf)
        ]
        places = sorted([*places, *map(ask, steep)], key=lambda p: p.x)
    return places


def _condition(verdict: Convergence) -> str:
    if verdict.verdict is Verdict.CONDITIONAL:
        return f"exactly if {expression_line(verdict.condition)}"
    return {Verdict.CONVERGES: "everywhere", Verdict.DIVERGES: "nowhere"}.get(
        verdict.verdict, "where that is not decided"
    )


# -- drawing --------------------------------------------------------------------------------------


def shaded(axes: Any, condition: Any, names: Sequence[str], ends: Sequence[Range]) -> None:
    """Fill where a series converges and where it diverges, with the boundary between them.

    Args:
        axes: where.
        condition: under which it converges; None where that is not known.
        names: of one parameter or two.
        ends: the least value and the greatest of each.
    """
    for axis, end in zip((axes.xaxis, axes.yaxis), ends, strict=False):
        if end[0] > 0 and end[1] / end[0] > DECADES:
            (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log")
        axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.grid(False)
    found, curves = sides(condition, tuple(names), tuple(ends))
    for held, ink in ((True, YES), (False, NO)):
        own = [((a, c), (b, c), (b, d), (a, d)) for a, b, c, d, verdict in found if verdict is held]
        at = axes.transData if len(names) > 1 else axes.get_xaxis_transform()
        look = {"facecolor": ink, "alpha": 0.14, "linewidth": 0, "zorder": 0, "transform": at}
        axes.add_collection(PolyCollection(own, **look))
        if len(names) > 1 and not held:  # no shade of the leak below
            axes.add_collection(PolyCollection(own, **look | PAPER))
    for left, right, _, _, side in found if len(names) == 1 else ():
        said = "converges" if side else "diverges"
        axes.text(
            _middle(left, right, axes),
            1.02,
            said,
            transform=axes.get_xaxis_transform(),
            ha="center",
        )
    for curve in curves:
        if len(names) > 1:
            axes.plot(*zip(*curve, strict=True), color=INK, linewidth=2)
            continue
        at = axes.axvline(curve[0][0], color=INK).get_xdata()[0]
        look = {"ha": "center", "weight": "bold", "transform": axes.get_xaxis_transform()}
        axes.text(at, 1.02, f"{at:.3g}", **look)
    axes.set(xlabel=names[0], xlim=[float(v) for v in ends[0]])
    if len(names) > 1:
        axes.set(ylabel=names[1], ylim=[float(v) for v in ends[1]])


def _middle(left: float, right: float, axes: Any) -> float:
    """The middle of a stretch as it is drawn."""
    return math.sqrt(left * right) if axes.get_xscale() == "log" else (left + right) / 2


@lru_cache(64)
def sides(
    condition: Any, names: tuple[str, ...], ends: tuple[Range, ...]
) -> tuple[tuple[Area, ...], tuple[Curve, ...]]:
    """Rectangles by verdict, and the boundary between them: of one parameter its stretches, of two
    those of thin stripes."""
    found: list[tuple[Any, ...]]
    if len(names) == 1:
        pieces = stretches(condition, names[0], ends[0], {})
        found = [(low, high, 0, 1, held) for low, high, held in pieces]
    else:
        found = [
            (a, b, low, high, held)
            for a, b in pairwise(between(*ends[0], COLUMNS + 1))
            for low, high, held in stretches(condition, names[1], ends[1], {names[0]: (a + b) / 2})
        ]
    areas = ((float(a), float(b), float(c), float(d), held) for a, b, c, d, held in found)
    return tuple(area for area in areas if area[-1] is not None), tuple(
        boundary(condition, names, ends)
    )


def _draw_line(
    names: Sequence[str],
    ends: Sequence[Range],
    condition: Any,
    places: Sequence[MapPoint],
    eps: Rational,
    trained: int,
) -> Figure:
    """Receptive field and leak over one parameter, one above the other."""
    with house():
        figure, (above, below) = new_figure(4.8, 5.6, rows=2)
        for axes in (above, below):
            shaded(axes, condition, names, ends)
            axes.set_ylim(0.7, 1)  # where no point is known; else it grows with them
            axes.set_autoscaley_on(True)
            axes.set_yscale("log")
            for held in ("converges", "diverges"):
                own = [p for p in places if p.verdict == held]
                known = [(float(p.x), _height(p) if axes is above else p.leak) for p in own]
                drawn = [(x, y or TINY) for x, y in known if y is not None and y < math.inf]
                axes.plot(*np.array(drawn).reshape(-1, 2).T, "o-", color=COLOURS[0], markersize=3)
        vague = [p for p in places if math.isnan(p.level) and p.high and p.high < 1e300]
        for p in vague:
            above.vlines(
                float(p.x), max(0.7, p.low or 0), p.high, color=COLOURS[0], linewidth=3, alpha=0.4
            )
        above.set_ylim(0.7, min(above.get_ylim()[1], 10**HIGHEST))
        below.set_ylim(max(below.get_ylim()[0], LEAST_LEAK), 2)
        for left, right, _, _, side in sides(condition, tuple(names), tuple(ends))[0]:
            if not side:
                at = (_middle(left, right, above), 0.5)
                look = {"transform": above.get_xaxis_transform(), "ha": "center", "va": "center"}
                above.text(*at, "no receptive field", rotation=90, **look)
        above.set(xlabel="", xticklabels=[], ylabel=f"TRF({share(eps)}) in tokens")
        below.set(ylabel=f"leak beyond {trained}")
        return figure


def _draw_plane(
    names: Sequence[str],
    ends: Sequence[Range],
    condition: Any,
    places: Sequence[MapPoint],
    eps: Rational,
    trained: int,
) -> Figure:
    """Contours of the receptive field over the leak as shade, with the boundary of convergence."""
    xs, ys = (sorted({float(p[k] or 0) for p in places}) for k in (0, 1))
    shape = (len(ys), len(xs))
    fields = np.array([_bent(p.level) for p in places]).reshape(shape)
    leaks = np.array([_finite(p.leak) for p in places]).reshape(shape)
    with house():
        figure, axes = new_figure(4.6, 6.2)
        shade = axes.pcolormesh(
            xs,
            ys,
            leaks.clip(LEAST_LEAK, 1),
            cmap=PALE,
            norm=LogNorm(LEAST_LEAK, 1),
            shading="gouraud",
            rasterized=True,
            zorder=-2,
        )
        figure.colorbar(shade, ax=axes, pad=0.02, label=f"leak beyond {trained} tokens")
        levels = _levels([p.level for p in places if math.isfinite(p.level)])
        if levels:
            at = [_bent(level) for level in levels]
            lines = axes.contour(*_smooth(xs, ys, fields), levels=at, colors=INK, linewidths=1.1)
        vague = [(float(p.x), float(p.y or 0)) for p in places if math.isnan(p.level)]
        circles = {"markerfacecolor": "white", "color": INK, "markersize": 4, "clip_on": False}
        axes.plot(*np.array(vague).reshape(-1, 2).T, "o", **circles)
        shaded(axes, condition, names, ends)
        if levels:
            texts = [f"{10**v:.0f}" if v % 1 or v < 3 else power(10**v) for v in levels]
            said_at = dict(zip(at, texts, strict=True))
            axes.clabel(lines, fmt=said_at, fontsize=8, manual=_free_places(axes, lines))
        said = [f"contours: TRF({share(eps)}) in tokens"] * bool(levels)
        said += ["circles: TRF within wide bounds only, or unknown"] * bool(vague)
        legend = "green: converges, orange: diverges\n" + ", ".join(said)
        axes.set_title(legend, loc="left", fontsize=9)
        return figure


def _free_places(axes: Any, lines: Any) -> list[tuple[float, float]]:
    """A place on each contour for its label, far from other lines and the frame, where there is
    one."""
    inside = axes.transData + axes.transAxes.inverted()
    paths = [inside.transform(path.vertices) for path in lines.get_paths()]
    drawn = [inside.transform(line.get_xydata()) for line in axes.get_lines()]
    found = []
    for own in (path for path in paths if len(path)):
        others = [other for other in [*paths, *drawn] if other is not own and len(other)]
        room = np.minimum(own, 1 - own).min(axis=1) / 3  # a label is longer than it is high
        for other in others:
            room = np.minimum(room, np.linalg.norm(own[:, None] - other[None], axis=2).min(axis=1))
        if room.max() > 0.018:
            found.append(tuple(inside.inverted().transform(own[room.argmax()])))
    return found


def _smooth(
    xs: Sequence[float], ys: Sequence[float], values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A grid with known and unknown values on a finer one, smooth where the cells are known."""
    grid = np.arange(len(xs)), np.arange(len(ys))
    fine = np.linspace(0, len(xs) - 1, FINE), np.linspace(0, len(ys) - 1, FINE)
    places = np.stack(np.meshgrid(*fine, indexing="ij"), axis=-1)
    nodes = np.stack(np.meshgrid(*grid, indexing="ij"), axis=-1)
    cells = RegularGridInterpolator(grid, values.T)(places)
    known = np.isfinite(values.T)
    if known.sum() > 3 and np.isfinite(cells).any():
        curved = CloughTocher2DInterpolator(nodes[known], values.T[known])(places)
        cells = np.where(np.isfinite(cells), curved, np.nan)
    x, y = (np.interp(f, g, v) for f, g, v in zip(fine, grid, (xs, ys), strict=True))
    return x, y, cells.T


def _height(p: MapPoint) -> float | None:
    """The receptive field where it is drawn as a point."""
    return None if math.isnan(p.level) or p.level > 300 else 10**p.level


def _finite(value: float | None) -> float:
    return math.nan if value is None or not math.isfinite(value) else float(value)


def _bent(level: float) -> float:
    """A level on a scale where those beyond the tallest contour bend the others little; NaN where
    there is no receptive field."""
    return 1 - TALLEST / (TALLEST + level) if math.isfinite(level) else math.nan


def _levels(known: Sequence[float]) -> list[float]:
    """Round levels within common logarithms: decades, finer steps where there are few."""
    if not known:
        return []
    low, high = max(min(known), 0.0), min(max(known), TALLEST)
    decades = [float(k) for k in range(1, int(TALLEST) + 1) if low < k < high]
    if len(decades) > 2:
        return decades
    finer = (k + math.log10(m) for k in range(int(TALLEST)) for m in (1, 2, 5))
    return [v for v in finer if low < v < high]
