"""Curves and ladders as plain SVG: no library, no script, the colours of the page around them.

Each is drawn in a shape: `WIDE` for a column of a page, with lines named where they end, `NARROW`
for a phone. A line carries its name, the drawing its axes, from which a page with scripts tells
the values under a pointer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import cycle, pairwise

from farfield.theory.answers.blocks import Curve, Ladder, Line, Weight
from farfield.theory.answers.notation import SUPERSCRIPT, shortened, terminal

COLOURS = ("#0072b2", "#7a6ff0", "#cc79a7", "#8c6d31", "#56b4e9")
"""Of what was asked about, blue first; a page may set others as `--c0` to `--c4`. Green and orange
say a verdict, here and everywhere."""
YES, NO, SOFT = "#00684a", "#a33d00", "#565a60"
"""Of what converges, of what diverges, and of all else that is drawn behind."""
DASHES = ("", "8 4", "2 3", "9 3 2 3")
GLYPH, STEP = 0.62, 1.3
"""Width of a letter and distance of two lines of text, in sizes of the type."""
VERDICTS = {"converges": f"var(--yes, {YES})", "diverges": f"var(--no, {NO})"}


@dataclass(frozen=True)
class Shape:
    """The size of a drawing, and of its type, in pixels."""

    name: str
    width: int
    height: int
    type: int
    left: int


WIDE = Shape("wide", 720, 420, 14, 64)
NARROW = Shape("narrow", 340, 300, 12, 56)
SHORT = 12
"""The longest name, in characters, that a phone has room for beside its line."""
Named = tuple[str, tuple[float, float]]
"""A name, and the place that it is the name of."""


def drawn(curve: Curve, shape: Shape = WIDE) -> str:
    """The SVG element of a curve; its lines are named in the wide shape, in the narrow one those of
    the context, beside a legend of the others.

    >>> drawn(Curve("t", "x", "y", (Line("a", (0.0, 1.0), (0.0, 2.0)),)))[:4]
    '<svg'
    """
    return _Drawing(curve, shape).element()


def named(curve: Curve) -> list[tuple[str, str]]:
    """The names of the lines that stand out, each with its colour: a legend for narrow pages. Lines
    that look alike, as the heads of one encoding, share an entry.

    >>> named(Curve("", "", "", tuple(Line(f"head {k}", (), (), 0) for k in (1, 2, 3))))
    [('head 1 … head 3', 'var(--c0, #0072b2)')]
    """
    names: dict[tuple[str, int], list[str]] = {}
    for line, colour in zip(curve.lines, _colours(curve.lines), strict=True):
        if line.name and line.weight is not Weight.CONTEXT:
            names.setdefault((colour, line.dash), []).append(line.name)
    return [(" … ".join([*o[:1], *o[1:][-1:]]), colour) for (colour, _), o in names.items()]


def _colours(lines: Sequence[Line]) -> list[str]:
    """What each line is drawn in; those that ask for nothing take the free places in turn."""
    taken = {line.colour for line in lines if isinstance(line.colour, int)}
    free = cycle([k for k in range(len(COLOURS)) if k not in taken] or [0])
    colours = []
    for line in lines:
        if isinstance(line.colour, str):
            colours.append(VERDICTS.get(line.colour, "currentColor"))
        elif line.weight is Weight.CONTEXT and line.colour is None:
            colours.append("currentColor")
        else:
            place = next(free) if line.colour is None else line.colour % len(COLOURS)
            colours.append(f"var(--c{place}, {COLOURS[place]})")
    return colours


class _Drawing:
    """One curve in one shape: names stand to the right of the frame, what posts say above it."""

    def __init__(self, curve: Curve, shape: Shape) -> None:
        self.curve, self.shape = curve, shape
        named = [line.name for line in curve.lines if self._beside(line)]
        longest = max(map(len, (*named, *(name for name, _ in curve.marks))), default=0)
        self.room = min(0.3 * shape.width, longest * shape.type * GLYPH + 18)
        self.right = shape.width - self.room
        xs = [v for line in curve.lines for v in line.x] + [v for _, v in curve.posts]
        ys = [v for line in curve.lines for v in line.y] + [v for _, v in curve.marks]
        ys += [v for line in curve.lines for bar in line.bars for v in bar]
        if curve.frame is not None:
            low, high = curve.frame
            ys = [low, high, *(v for _, v in curve.marks if low <= v <= high)]
        ends = (self.right, shape.left) if curve.falls else (shape.left, self.right)
        self.x = Axis(xs, curve.log_x, *ends)
        self.above = dict(self._above()) if named else {}
        self.posts = list(self._posts())
        rows = 1 + max((row for _, _, _, row in self.posts), default=-1)
        self.top, self.bottom = (1.9 + STEP * rows) * shape.type, shape.height - 3.4 * shape.type
        self.y = Axis(ys, curve.log_y, self.bottom, self.top)

    def _beside(self, line: Line) -> bool:
        """Whether the name is beside the line; on a phone the name in a legend is not."""
        wide, context = self.shape.name == WIDE.name, line.weight is Weight.CONTEXT
        return line.told and bool(line.name) and (wide or (context and len(line.name) <= SHORT))

    def _above(self) -> Iterator[tuple[str, float]]:
        """The lines that leave the frame at its top, each with the place where it does: their names
        stand there."""
        high = math.inf if self.curve.frame is None else self.curve.frame[1]
        for line in self.curve.lines:
            points = list(zip(line.x, line.y, strict=True))
            left = next((b for a, b in pairwise(points) if a[1] <= high < b[1]), None)
            if self._beside(line) and left is not None and points[-1][1] > high:
                yield line.name, left[0]

    def _posts(self) -> Iterator[tuple[str, float, float, int]]:
        """The posts from the left: name, place, where the name begins, in which row it has room."""
        ends: list[float] = []
        told = [*self.curve.posts, *((f"↑ {name}", v) for name, v in self.above.items())]
        places = [(self.x.pixel(v), name) for name, v in told if self.x.shows(v)]
        for pixel, name in sorted(places):
            width = len(name) * self.shape.type * GLYPH
            left = max(4.0, min(pixel - 4, self.shape.width - width - 4))
            row = next((k for k, end in enumerate(ends) if end <= left), len(ends))
            ends[row : row + 1] = [left + width + self.shape.type]
            yield name, pixel, left, row

    def element(self) -> str:
        """The whole."""
        shape, curve = self.shape, self.curve
        hidden = ' style="display:none"' if shape.name == NARROW.name else ""
        return "".join(
            [
                f'<svg viewBox="0 0 {shape.width} {shape.height}" role="img" '
                f'aria-label="{escape(_told(curve))}" class="curve {shape.name}"{hidden} '
                f'font-size="{shape.type}" fill="currentColor" data-x="{self.x.told()}" '
                f'data-y="{self.y.told()}" '
                f'data-names="{escape(curve.x_name)}|{escape(curve.y_name)}">',
                *self._axes(),
                *self._lines(),
                "</svg>",
            ]
        )

    def _axes(self) -> Iterator[str]:
        """Grid lines, as many as their labels leave room for, the names of both axes, posts."""
        shape, size = self.shape, self.shape.type
        most = max(2, int((self.right - shape.left) / (size * 4.5)))
        at, apart = self.curve.at, max(1, math.ceil(len(self.curve.at) / most))
        named = [(v, tick(v)) for v in at[(len(at) - 1) % apart :: apart]]
        for value, name in named or self.x.ticks(most):
            pixel = self.x.pixel(value)
            yield (
                f'<path d="M{pixel:.1f} {self.top:.0f}V{self.bottom:.0f}" class="grid"/>'
                f'<text x="{pixel:.1f}" y="{self.bottom + 1.3 * size:.0f}" text-anchor="middle">'
                f"{name}</text>"
            )
        for value, name in self.y.ticks(max(2, int((self.bottom - self.top) / (size * 2.6)))):
            pixel = self.y.pixel(value)
            yield (
                f'<path d="M{shape.left} {pixel:.1f}H{self.right}" class="grid"/>'
                f'<text x="{shape.left - 6}" y="{pixel + 0.35 * size:.1f}" text-anchor="end">'
                f"{name}</text>"
            )
        middle = (shape.left + self.right) / 2
        yield (
            f'<text x="{middle:.0f}" y="{shape.height - 0.6 * size:.0f}" text-anchor="middle">'
            f"{escape(self.curve.x_name)}</text>"
            f'<text x="4" y="{1.15 * size:.1f}">{escape(self.curve.y_name)}</text>'
        )
        for name, pixel, left, row in self.posts:
            base = self.top - (0.5 + STEP * row) * size
            text = f'<text x="{left:.1f}" y="{base:.1f}">{escape(name)}</text>'
            mark = f'<path d="M{pixel:.1f} {self.top:.0f}V{self.bottom:.0f}" class="mark"/>'
            yield text if name.startswith("↑") else mark + text

    def _points(self, line: Line) -> list[tuple[float, float]]:
        """The visible part of a line, cut where it leaves the frame."""
        pairs = [
            (self.x.pixel(a), self.y.pixel(b))
            for a, b in zip(line.x, line.y, strict=True)
            if self.x.shows(a) and self.y.shows(b)
        ]
        points: list[tuple[float, float]] = []
        for k, (a, b) in enumerate(pairs):
            if self.top - 1 <= b <= self.bottom + 1:
                points.append((a, b))
            elif k and self.top <= pairs[k - 1][1] <= self.bottom:
                (x0, y0), edge = pairs[k - 1], self.bottom if b > self.bottom else self.top
                points.append((x0 + (a - x0) * (edge - y0) / (b - y0), edge))
        return points

    def _lines(self) -> Iterator[str]:
        """Draw the context first, the subject above it, thin lines on top so that none is hidden;
        each with its name, and level lines likewise."""
        lines = list(zip(self.curve.lines, _colours(self.curve.lines), strict=True))
        order = [Weight.CONTEXT, Weight.STRONG, Weight.PLAIN]
        lines.sort(key=lambda pair: order.index(pair[0].weight))
        shown = [(line, ink, p) for line, ink in lines if (p := self._points(line))]
        levels = [(name, self.y.pixel(v)) for name, v in self.curve.marks if self.y.shows(v)]
        ends = [(name, (self.right, pixel)) for name, pixel in levels]
        ends += [  # what is only context goes without a name where there are too many
            (line.name, p[-1])
            for line, _, p in reversed(shown)
            if self._beside(line) and line.name not in self.above
        ]
        names = self._names(ends)
        for name, pixel in levels:
            path = f"M{self.shape.left} {pixel:.1f}H{self.right}"
            yield f'<path d="{path}" class="mark"/>{names.get((name, (self.right, pixel)), "")}'
        for line, ink, points in shown:
            title = f"<title>{escape(line.name)}</title>" if line.name else ""
            yield (
                f'<g class="line {line.weight}" style="color:{ink}" '
                f'data-name="{escape(line.name)}">{title}{self._path(line, points)}'
                f"{names.get((line.name, points[-1]), '')}</g>"
            )

    def _path(self, line: Line, points: Sequence[tuple[float, float]]) -> str:
        """A line through its visible points: these are marked where they are few; with its bars."""
        dash = DASHES[line.dash % len(DASHES)]
        marks = f' stroke-dasharray="{dash}"' if dash else ""
        path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
        drawn = f'<path d="{path}" fill="none" stroke="currentColor"{marks}/>'
        if 2 < len(points) < 20 and line.weight is not Weight.CONTEXT:
            drawn += "".join(_marked(a, b, line.verdict) for a, b in points)
        for a, bar in zip(line.x, line.bars, strict=False):
            low, high = map(self.y.pixel, bar)
            drawn += f'<path d="M{self.x.pixel(a):.1f} {low:.1f}V{high:.1f}" class="bar"/>'
        return drawn

    def _names(self, ends: list[Named]) -> dict[Named, str]:
        """The names to the right of the frame, each as near to the end of its line as its
        neighbours leave room. A leader joins a name with a line that does not end beside it."""
        size, gap = self.shape.type, STEP * self.shape.type
        kept = sorted(
            dict.fromkeys(ends[: 1 + int((self.bottom - self.top) / gap)]), key=lambda e: e[1][1]
        )
        names: dict[Named, str] = {}
        places = _apart([y for _, (_, y) in kept], gap, self.top, self.bottom)
        for (name, (x, y)), base in zip(kept, places, strict=True):
            beside = abs(base - y) <= 0.6 * size and x > self.right - 24
            leader = f'<path d="M{x + 2:.1f} {y:.1f}L{self.right + 12} {base:.1f}" class="leader"/>'
            names[name, (x, y)] = ("" if beside else leader) + (
                f'<text x="{self.right + 14}" y="{base + 0.35 * size:.1f}" class="name">'
                f"{escape(shortened(name, int((self.room - 16) / (size * GLYPH))))}</text>"
            )
        return names


def _marked(x: float, y: float, verdict: str) -> str:
    """A point: filled, open or a cross, by the verdict of its line."""
    if verdict not in ("", *VERDICTS):
        return f'<path d="M{x - 3:.1f} {y - 3:.1f}l6 6m0 -6l-6 6"/>'
    open_ = verdict == "diverges"
    look = 'r="3.5" class="open"' if open_ else 'r="3"'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" {look}/>'


def _apart(places: list[float], gap: float, low: float, high: float) -> list[float]:
    """Ordered places moved so little that neighbours have a gap, within bounds where they fit."""
    apart: list[float] = []
    for place in places:
        apart.append(max(place, low if not apart else apart[-1] + gap))
    for k in range(len(apart) - 1, -1, -1):
        limit = high if k == len(apart) - 1 else apart[k + 1] - gap
        apart[k] = min(apart[k], limit)
    return apart


def _told(curve: Curve) -> str:
    """What a plot shows, for those who cannot see it: its lines with their ends."""
    shown = [
        f"{line.name}: from {line.y[0]:.3g} at {line.x[0]:.3g} to {line.y[-1]:.3g} at "
        f"{line.x[-1]:.3g}"
        for line in curve.lines
        if line.name and line.weight is not Weight.CONTEXT and len(line.x) > 1
    ]
    others = [line.name for line in curve.lines if line.name and line.weight is Weight.CONTEXT]
    behind = f" Behind them: {', '.join(others)}." if others else ""
    return f"{curve.title} {'; '.join(shown)}{'.' * bool(shown)}{behind}".strip()


class Axis:
    """Values on a stretch of pixels."""

    def __init__(self, values: Sequence[float], log: bool, first: float, last: float) -> None:
        shown = [v for v in values if math.isfinite(v) and (v > 0 or not log)]
        self.log, self.first, self.last = log, first, last
        low, high = (min(shown), max(shown)) if shown else (0.0, 1.0)
        if low == high:
            low, high = (low / 2, high * 2) if log else (low - 1, high + 1)
        self.low, self.high = low, high

    def shows(self, value: float) -> bool:
        """Whether the axis has a place for a value."""
        return math.isfinite(value) and (value > 0 or not self.log)

    def pixel(self, value: float) -> float:
        """The pixel of a value."""
        if self.log:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.first + part * (self.last - self.first)

    def told(self) -> str:
        """The axis for a script: kind, ends in values, ends in pixels."""
        kind = "log" if self.log else "linear"
        return f"{kind} {self.low:.9g} {self.high:.9g} {self.first:.1f} {self.last:.1f}"

    def ticks(self, most: int = 6) -> list[tuple[float, str]]:
        """Round values with their names, at most this many."""
        if self.log:
            low, high = (
                math.ceil(math.log10(self.low) - 1e-9),
                math.floor(math.log10(self.high) + 1e-9),
            )
            step = max(1, math.ceil((high - low + 1) / most))
            tens = [10.0**k for k in range(low, high + 1, step)]
            if len(tens) > 1:
                powers = low < -3 or high > 4
                return [(v, power_of_ten(v) if powers and v != 1 else tick(v)) for v in tens]
            ends = range(math.floor(math.log10(self.low)), high + 1)
            near = [m * 10.0**k for k in ends for m in (1, 2, 3, 5, 7)]
            near = [v for v in near if self.low <= v <= self.high]
            if len(near) > 1:
                return [(v, tick(v)) for v in near[:: math.ceil(len(near) / most)]]
        step_ = 10.0 ** math.floor(math.log10((self.high - self.low) / most))
        step_ *= next((m for m in (1, 2, 5) if (self.high - self.low) / (step_ * m) <= most), 10)
        first, last = math.ceil(self.low / step_ - 1e-9), math.floor(self.high / step_ + 1e-9)
        return [(k * step_, tick(k * step_)) for k in range(first, last + 1)]


def tick(value: float) -> str:
    """A round value as an axis names it.

    >>> [tick(v) for v in (1e-08, 0.25, 20.0, 1e6, -3.0)]
    ['10⁻⁸', '0.25', '20', '10⁶', '−3']
    """
    exponent = round(math.log10(value)) if value > 0 else 0
    if not -3 <= exponent <= 4 and math.isclose(value, 10.0**exponent):
        return power_of_ten(value)
    return f"{value:.10g}".replace("-", "−")


def power_of_ten(value: float) -> str:
    """A power of ten by its exponent.

    >>> power_of_ten(100.0)
    '10²'
    """
    return "10" + str(round(math.log10(value))).translate(SUPERSCRIPT)


# -- ladders --------------------------------------------------------------------------------------


def climbed(ladder: Ladder, shape: Shape = WIDE) -> str:
    """The SVG element of a ladder: a scale a rung, with 1 in the middle and infinity at the right.

    >>> from farfield.theory.answers.blocks import Rung
    >>> climbed(Ladder("t", (Rung(("p",), 2.0),), "converges"))[:4]
    '<svg'
    """
    size, left, right = shape.type, 14, shape.width - 14
    rows = [(2.6 + 3.2 * k) * size for k in range(len(ladder.rungs))]
    middle, end = (left + right) / 2, (1.4 + 3.2 * len(rows)) * size

    def pixel(limit: float) -> float:
        return middle + ((right - left) / 2 - 14) * (2 / math.pi) * math.atan(1.4 * (limit - 1))

    told = "; ".join(terminal(rung.said) for rung in ladder.rungs)
    hidden = "" if shape.name == WIDE.name else ' style="display:none"'
    parts = [
        f'<svg viewBox="0 0 {shape.width} {end + 3.4 * size:.0f}" role="img" aria-label="'
        f'{escape(ladder.title)} {escape(told)}: it {ladder.verdict}." class="ladder {shape.name}"'
        f'{hidden} font-size="{size}" fill="currentColor">'
    ]
    for side, verdict in ((left, "diverges"), (middle, "converges")):
        parts.append(
            f'<rect x="{side}" y="0" width="{middle - left:.0f}" height="{end:.0f}" '
            f'fill="{VERDICTS[verdict]}" opacity="0.1"/><text x="{side + (middle - left) / 2:.0f}" '
            f'y="{end + 2.8 * size:.0f}" text-anchor="middle" fill="{VERDICTS[verdict]}">'
            f"{verdict}</text>"
        )
    for value, name in ((-math.inf, "−∞"), (0, "0"), (1, "1"), (2, "2"), (math.inf, "∞")):
        parts.append(
            f'<text x="{pixel(value):.0f}" y="{end + 1.4 * size:.0f}" text-anchor="middle">{name}'
            "</text>"
        )
    for y, rung in zip(rows, ladder.rungs, strict=True):
        last = rung is ladder.rungs[-1]
        ink = VERDICTS.get(ladder.verdict, "currentColor") if last else "currentColor"
        text = terminal(rung.said) + ("" if last else ": a tie")
        parts.append(
            f'<path d="M{left} {y:.1f}H{right}M{middle} {y - 6:.1f}v12" stroke="currentColor" '
            f'opacity="0.35"/><text x="{left + 4}" y="{y - size:.1f}" style="color:{ink}" '
            f'fill="currentColor">{escape(text)}</text><circle cx="{pixel(rung.limit):.1f}" '
            f'cy="{y:.1f}" r="{8 if last else 6}" style="color:{ink}" fill="currentColor"/>'
        )
    return "".join([*parts, "</svg>"])
