"""Where the parameters make a series converge: a map with the exact boundary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from html import escape

import sympy
from sympy import Rational

from farfield.figures.document import Picture
from farfield.theory.answers.notation import words
from farfield.theory.answers.writers.svg import VERDICTS, Axis
from farfield.theory.convergence import Convergence, Verdict
from farfield.theory.decision.regions import Range, boundary, stretches

COLUMNS = 60
FINE = 4096
"""The greatest denominator of a value in the middle of a column."""
WIDE, STRIP, SIDE = 400, 50, 260
LEFT, TOP, BELOW, TYPE = 40, 26, 44, 13


def parameter_map(
    c: Convergence, steps: Mapping[str, Sequence[Fraction]], here: Mapping[str, Fraction]
) -> Picture | None:
    """The first two parameters by verdict, the others as they stand; None without a condition.

    Args:
        c: the verdict for all values.
        steps: values of each parameter, in order.
        here: where the sliders stand.
    """
    if c.verdict is not Verdict.CONDITIONAL:
        return None
    own = {s.name for s in sympy.sympify(c.condition).free_symbols}
    names = [name for name in steps if name in own][:2]
    if not names:
        return None
    others = {k: Rational(v) for k, v in here.items() if k not in names}
    condition = sympy.sympify(c.condition)
    condition = condition.xreplace(
        {s: others[s.name] for s in condition.free_symbols if s.name in others}
    )
    ends = tuple((Rational(steps[a][0]), Rational(steps[a][-1])) for a in names)
    x, y = _axes(ends)
    at_y = y.at(float(here[names[1]])) if len(names) > 1 else (y.first + y.last) / 2
    drawn = (
        f'<svg viewBox="0 0 {WIDE} {y.first + BELOW:.0f}" font-size="{TYPE}" '
        'fill="currentColor" style="max-width:30rem">'
        f"{_ground(condition, tuple(names), ends)}"
        f'<circle cx="{x.at(float(here[names[0]])):.1f}" cy="{at_y:.1f}" r="6"/></svg>'
    )
    said = words(
        "Green: the series converges, exactly if {condition}. The dot: here.", condition=c.condition
    )
    alt = f"Where {' and '.join(names)} make the series converge"
    return Picture(drawn, said, alt, c.label)


def _axes(ends: Sequence[Range]) -> tuple[Axis, Axis]:
    """Those of the map, logarithmic like the sliders; one parameter has a strip."""
    tall = SIDE if len(ends) > 1 else STRIP
    across, upwards = ([float(v) for v in ends[k]] for k in (0, -1))
    return (
        Axis(across, across[0] > 0, LEFT, WIDE - 20),
        Axis(upwards, upwards[0] > 0, TOP + tall, TOP),
    )


@lru_cache(64)
def _ground(condition: sympy.Basic, names: tuple[str, ...], ends: tuple[Range, ...]) -> str:
    """The part that no slider moves: areas, boundary, values along the axes."""
    (x, y), plane = _axes(ends), len(names) > 1
    parts = list(_areas(condition, names, ends, x, y))
    for curve in boundary(condition, names, ends):
        if plane:
            path = "M" + "L".join(f"{x.at(a):.1f} {y.at(b):.1f}" for a, b in curve)
        else:
            path = f"M{x.at(curve[0][0]):.1f} {y.first}V{y.last}"
            parts.append(
                f'<text x="{x.at(curve[0][0]):.1f}" y="{TOP - 8}" text-anchor="middle">'
                f"{curve[0][0]:.3g}</text>"
            )
        parts.append(f'<path d="{path}" fill="none" stroke="currentColor" stroke-width="1.5"/>')
    for value, name in x.ticks(5):
        parts.append(
            f'<text x="{x.at(value):.1f}" y="{y.first + 18}" text-anchor="middle">{name}</text>'
        )
    parts.append(
        f'<text x="{(x.first + x.last) / 2:.0f}" y="{y.first + 38}" '
        f'text-anchor="middle">{escape(names[0])}</text>'
    )
    for value, name in y.ticks(6) if plane else ():
        parts.append(
            f'<text x="{LEFT - 8}" y="{y.at(value) + 5:.1f}" text-anchor="end">{name}</text>'
        )
    if plane:
        parts.append(f'<text x="8" y="{(y.first + y.last) / 2}">{escape(names[1])}</text>')
    return "".join(parts)


def _areas(
    condition: sympy.Basic, names: Sequence[str], ends: Sequence[Range], x: Axis, y: Axis
) -> Iterator[str]:
    """The areas by verdict: of one parameter its stretches, of two those of thin columns."""
    found: list[tuple[float, float, float, float, bool | None]] = []
    if len(names) == 1:
        for low, high, held in stretches(condition, names[0], ends[0], {}):
            found.append((x.at(float(low)), x.at(float(high)), y.first, y.last, held))
    else:
        wide = (x.last - x.first) / COLUMNS
        for k in range(COLUMNS):
            left = x.first + k * wide
            value = Rational(x.value(left + wide / 2)).limit_denominator(FINE)
            for a, b, held in stretches(condition, names[1], ends[1], {names[0]: value}):
                found.append((left, left + wide, y.at(float(a)), y.at(float(b)), held))
    for left, right, bottom, top, held in found:
        if held is not None:
            fill = VERDICTS["converges" if held else "diverges"]
            yield (
                f'<rect x="{left:.2f}" y="{top:.2f}" width="{right - left:.2f}" '
                f'height="{bottom - top:.2f}" fill="{fill}" opacity="0.3" '
                'shape-rendering="crispEdges"/>'
            )
