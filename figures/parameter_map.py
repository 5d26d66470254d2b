"""Formulas over their parameters: where the series converges, how far they see, what they leak."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter
from sympy import Expr, Rational, Symbol

from farfield.figures.exhibit import Data
from farfield.figures.plotting import saved
from farfield.figures.style import COLOURS, INK, house, new_figure, svg
from farfield.numerics.leak import leak
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.theory.answers.answer import InputError, Result
from farfield.theory.answers.blocks import Block, Sentence, note
from farfield.theory.answers.notation import expression_line, shortened, words
from farfield.theory.answers.number import exact, natural, share
from farfield.theory.convergence import Convergence, Verdict, check_convergence
from farfield.theory.decision.regions import DECADES, between, boundary, holds, stretches
from farfield.theory.encodings import encoding
from farfield.theory.formula.parameters import interval

MAX_POINTS = 200
RASTER = 240
BUDGET_S = 2.0
"""Seconds for the receptive field at one point."""
LEAST_LEAK = 1e-8
TALLEST = 7.0
"""Contours are drawn up to ten to this power."""


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
        points: in each direction.
        values: of the other parameters.
        dialect: variant of an encoding of the catalogue.
        assumptions: domains of parameters.
        notice: called as `notice(stage, done, total)`.

    Raises:
        InputError: no range or more than two, a parameter without a range or a value, a range
            outside the domain.

    >>> drawn = parameter_map("-a*log(1+n)", {"a": "1/2:3"}, points=6)
    >>> drawn.boundary, [p.tokens for p in drawn.data]
    ((((1.0, 0.0),),), [inf, inf, 5861, 61, 14, 6])
    """
    goal, counted = exact(eps, "eps"), natural(points, "points", 2)
    if not 0 < goal < 1:
        raise InputError(f"eps {eps}: accepted is a number in (0, 1)")
    if counted > MAX_POINTS:
        raise InputError(f"points {counted}: accepted is at most {MAX_POINTS}")
    span = natural(trained, "trained")
    if not 1 <= len(ranges) <= 2:
        raise InputError(f"a map has one range or two, as --a 0.01:1; {len(ranges)} are given")
    options = dict(values or {}) | ({} if dialect is None else {"dialect": dialect})
    found = encoding(formula, assumptions=dict(assumptions or {}) or None, **options)
    bias, axes = _read(found, ranges)
    verdict = check_convergence(bias, assumptions={a.name: d for a, d in axes.items()})
    grid = [between(*_range(a.name, ranges[a.name], d), counted) for a, d in axes.items()]
    places = list(_places(bias, tuple(axes), grid, goal, span, verdict, notice))
    ends = [(xs[0], xs[-1]) for xs in grid]
    names = tuple(a.name for a in axes)
    curves = tuple(boundary(verdict.condition, names, ends))
    if len(grid) == 1:
        never = _never(verdict, names[0], ends[0], {})
        figure = _draw_line(names, grid, places, curves, never, goal, span)
    else:
        fine = [between(*end, RASTER) for end in ends]
        masked = (fine[0], fine[1], _divergent(verdict, names, *fine))
        figure = _draw_plane(names, grid, places, curves, masked, goal, span)
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
    if len(ends) != 2:
        raise InputError(
            f"range of {name} {str(given)[:40]!r}: accepted are two numbers, as 0.01:1"
        )
    low, high = (exact(end, name) for end in ends)
    if not low < high:
        raise InputError(f"range of {name} {low}:{high}: accepted is a smaller number first")
    own = interval(domain)
    if low not in own or high not in own:
        raise InputError(
            f"range of {name} {low}:{high}: {name} is {domain}; --assume {name}=real changes that"
        )
    return low, high


def _converges(verdict: Convergence, at: Mapping[str, Rational]) -> str:
    """The verdict at a point, from the exact condition."""
    if verdict.verdict is not Verdict.CONDITIONAL:
        return str(verdict.verdict)
    held = holds(verdict.condition, at)
    return "undecided" if held is None else "converges" if held else "diverges"


def _places(
    bias: Expr,
    names: Sequence[Symbol],
    grid: Sequence[Sequence[Rational]],
    eps: Rational,
    trained: int,
    verdict: Convergence,
    notice: Callable[..., None] | None,
) -> Iterator[MapPoint]:
    rows = grid[1] if len(grid) > 1 else [None]
    total = len(rows) * len(grid[0])
    for j, y in enumerate(rows):
        for i, x in enumerate(grid[0]):
            if notice is not None:
                notice("points", j * len(grid[0]) + i, total)
            at = dict(zip(names, (x, y) if y is not None else (x,), strict=True))
            held = _converges(verdict, {a.name: value for a, value in at.items()})
            p = bias.xreplace(at)
            if held == "diverges":
                yield MapPoint(x, y, held, math.inf, None, None, 1.0)
                continue
            found = theoretical_receptive_field(p, eps, budget_s=BUDGET_S)
            low, high = found.span() or (None, None)
            if found.reason is not None and found.reason.code == "diverges":
                held = "diverges"
            elif found.tokens is not None and math.isfinite(found.tokens):
                held = "converges"
            yield MapPoint(x, y, held, found.tokens, low, high, leak(p, trained).value)


def _condition(verdict: Convergence) -> str:
    if verdict.verdict is Verdict.CONDITIONAL:
        return f"exactly if {expression_line(verdict.condition)}"
    return {Verdict.CONVERGES: "everywhere", Verdict.DIVERGES: "nowhere"}.get(
        verdict.verdict, "where that is not decided"
    )


def _never(
    verdict: Convergence, name: str, ends: Sequence[Rational], at: Mapping[str, Rational]
) -> list[tuple[Rational, Rational]]:
    """The stretches of a parameter on which the series diverges, the others fixed."""
    if verdict.verdict is Verdict.DIVERGES:
        return [(ends[0], ends[-1])]
    if verdict.verdict is not Verdict.CONDITIONAL:
        return []
    found = stretches(verdict.condition, name, (ends[0], ends[-1]), at)
    return [(low, high) for low, high, held in found if held is False]


def _divergent(
    verdict: Convergence, names: Sequence[str], xs: Sequence[Rational], ys: Sequence[Rational]
) -> np.ndarray:
    """Where the series diverges, shape (ys, xs)."""
    found = np.zeros((len(ys), len(xs)), bool)
    for i, x in enumerate(xs):
        for low, high in _never(verdict, names[1], ys, {names[0]: x}):
            found[np.array([bool(low <= y <= high) for y in ys]), i] = True
    return found


# -- drawing --------------------------------------------------------------------------------------


def _scaled(axis: Any, xs: Sequence[Rational]) -> None:
    plain = FuncFormatter(lambda x, _: f"{x:g}")
    if xs[0] > 0 and xs[-1] / xs[0] > DECADES:
        (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")
    axis.set_major_formatter(plain)
    axis.set_minor_formatter(NullFormatter())


def _draw_line(
    names: Sequence[str],
    grid: Sequence[Sequence[Rational]],
    places: Sequence[MapPoint],
    curves: Sequence[Any],
    never: Sequence[tuple[Rational, Rational]],
    eps: Rational,
    trained: int,
) -> Figure:
    """Receptive field and leak over one parameter, one above the other."""
    with house():
        figure, axes = new_figure(5.6, 4.8)
        axes.remove()
        above, below = figure.subplots(2, 1, sharex=True)
        known = [p for p in places if p.tokens is not None and p.tokens < math.inf]
        above.plot(
            [float(p.x) for p in known],
            [p.tokens for p in known],
            color=COLOURS[0],
            marker="o",
            markersize=3,
        )
        for p in places:
            if p.tokens is None and p.low is not None and p.high is not None and p.high < 1e300:
                ends = (p.low, p.high)
                above.plot([float(p.x)] * 2, ends, color=COLOURS[0], linewidth=3, alpha=0.4)
        for held in ("converges", "diverges"):
            leaking = [p for p in places if p.leak is not None and p.verdict == held]
            below.plot(
                [float(p.x) for p in leaking],
                [max(p.leak or 0, LEAST_LEAK) for p in leaking],
                color=COLOURS[0],
                marker="o",
                markersize=3,
            )
        for axis in (above, below):
            axis.set_yscale("log")
            _scaled(axis.xaxis, grid[0])
            for ((x, _),) in curves:
                axis.axvline(x, color="#444444", linewidth=1.2, linestyle="--")
            _hatched(axis, never)
        above.set_xlim(float(grid[0][0]), float(grid[0][-1]))
        above.set_ylabel(f"TRF({share(eps)}) in tokens")
        below.set_ylabel(f"leak beyond {trained}")
        below.set_xlabel(names[0])
        return figure


def _hatched(axis: Any, never: Sequence[tuple[Rational, Rational]]) -> None:
    """Hatch the stretches of one parameter on which the series diverges, and say so."""
    for low, high in ((float(low), float(high)) for low, high in never):
        look = {"facecolor": "none", "edgecolor": "#888888", "hatch": "///", "alpha": 0.6}
        axis.axvspan(low, high, linewidth=0, **look)
        middle = math.sqrt(low * high) if axis.get_xscale() == "log" else (low + high) / 2
        place = {"transform": axis.get_xaxis_transform(), "ha": "center"}
        axis.text(middle, 0.5, "diverges", backgroundcolor="white", **place)


def _draw_plane(
    names: Sequence[str],
    grid: Sequence[Sequence[Rational]],
    places: Sequence[MapPoint],
    curves: Sequence[Any],
    never: tuple[Sequence[Rational], Sequence[Rational], np.ndarray],
    eps: Rational,
    trained: int,
) -> Figure:
    """Contours of the receptive field over the leak as shade, with the boundary of convergence."""
    xs, ys = ([float(v) for v in axis] for axis in grid)
    shape = (len(ys), len(xs))
    fields = np.array([_finite(p.tokens) for p in places]).reshape(shape)
    shown = [None if p.verdict == "diverges" else p.leak for p in places]
    leaks = np.array([_finite(value) for value in shown]).reshape(shape)
    with house():
        figure, axes = new_figure(6.2, 4.6)
        _scaled(axes.xaxis, grid[0])
        _scaled(axes.yaxis, grid[1])
        shade = axes.pcolormesh(
            xs,
            ys,
            np.ma.masked_invalid(leaks.clip(LEAST_LEAK, 1)),
            cmap="Blues",
            norm=LogNorm(LEAST_LEAK, 1),
            shading="nearest",
            rasterized=True,
        )
        shade.set_alpha(0.7)
        bar = figure.colorbar(shade, ax=axes, pad=0.02)
        bar.set_label(f"leak beyond {trained} tokens")
        drawn = np.ma.masked_invalid(np.log10(fields))
        levels = _levels(drawn.compressed())
        if levels:
            lines = axes.contour(xs, ys, drawn, levels=levels, colors=INK, linewidths=1.1)
            axes.clabel(lines, fmt=lambda v: f"{10**v:,.0f}".replace(",", " "), fontsize=8)
        if never[2].any():
            at = [[float(v) for v in axis] for axis in never[:2]]
            for look in ({"colors": "white"}, {"colors": "none", "hatches": ["///"]}):
                axes.contourf(*at, never[2], levels=[0.5, 1.5], **look)
        for curve in curves:
            axes.plot(*zip(*curve, strict=True), color=INK, linewidth=2.4)
        vague = [p for p in places if p.tokens is None]
        axes.plot(
            [float(p.x) for p in vague],
            [float(p.y or 0) for p in vague],
            "o",
            markerfacecolor="white",
            color="#444444",
            markersize=4,
            linestyle="",
            clip_on=False,
        )
        axes.set(xlim=(xs[0], xs[-1]), ylim=(ys[0], ys[-1]), xlabel=names[0], ylabel=names[1])
        axes.grid(False)
        axes.set_title(
            _legend(eps, bool(levels), bool(curves), bool(vague)), loc="left", fontsize=9
        )
        return figure


def _legend(eps: Rational, lines: bool, boundary: bool, vague: bool) -> str:
    said = [f"contours: TRF({share(eps)}) in tokens"] if lines else []
    said += ["hatched: diverges"] if boundary else []
    said += ["circles: no single number"] if vague else []
    return "; ".join(said)


def _finite(value: float | None) -> float:
    return math.nan if value is None or not math.isfinite(value) else float(value)


def _levels(known: np.ndarray) -> list[float]:
    """Round levels within common logarithms: decades, finer steps where there are few."""
    if not known.size:
        return []
    low, high = max(known.min(), 0.0), min(known.max(), TALLEST)
    decades = [float(k) for k in range(1, int(TALLEST) + 1) if low < k < high]
    if len(decades) > 2:
        return decades
    finer = (k + math.log10(m) for k in range(int(TALLEST)) for m in (1, 2, 5))
    return [v for v in finer if low < v < high]
