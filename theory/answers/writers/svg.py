"""Curves and ladders as plain SVG: no library, no script, the colours of the page around them.

Each is drawn in a shape: `WIDE` for a column of a page, with lines named where they end, `NARROW`
for a phone. A line carries its name, the drawing its axes, from which a page with scripts tells
the values under a pointer.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise, product

from farfield.theory.answers.blocks import Curve, Ladder, Line, Weight
from farfield.theory.answers.notation import terminal

COLOURS = ("#0072b2", "#7a6ff0", "#cc79a7", "#56b4e9", "#8c6d31")
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


@dataclass(frozen=True)
class Rectangle:
    """Where a text stands."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Rectangle) -> bool:
        """Whether the two share a point."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def drawn(curve: Curve, shape: Shape = WIDE) -> str:
    """The SVG element of a curve; its lines are named in the wide shape, beside a legend else.

    >>> drawn(Curve("t", "x", "y", (Line("a", (0.0, 1.0), (0.0, 2.0)),)))[:4]
    '<svg'
    """
    return _Drawing(curve, shape).element()


def named(curve: Curve) -> list[tuple[str, str]]:
    """The names of the lines that stand out, each with its colour: a legend for narrow pages."""
    return [
        (line.name, colour)
        for line, colour in zip(curve.lines, _colours(curve.lines), strict=True)
        if line.name and line.weight is not Weight.CONTEXT
    ]


def _colours(lines: Sequence[Line]) -> list[str]:
    """What each line is drawn in; those that ask for nothing take the free places in turn."""
    taken = {line.colour for line in lines if isinstance(line.colour, int)}
    free = iter([k for k in range(len(COLOURS)) if k not in taken] * (1 + len(lines)) or [0])
    found = []
    for line in lines:
        if isinstance(line.colour, str):
            found.append(VERDICTS.get(line.colour, "currentColor"))
        elif line.weight is Weight.CONTEXT and line.colour is None:
            found.append("currentColor")
        else:
            place = next(free) if line.colour is None else line.colour % len(COLOURS)
            found.append(f"var(--c{place}, {COLOURS[place]})")
    return found


class _Drawing:
    """One curve in one shape."""

    def __init__(self, curve: Curve, shape: Shape) -> None:
        self.curve, self.shape = curve, shape
        self.names = shape is WIDE
        self.top, self.bottom = shape.type * 1.9, shape.height - 3.4 * shape.type
        self.right = shape.width - self._margin()
        xs = [v for line in curve.lines for v in line.x] + [v for _, v in curve.posts]
        ys = [v for line in curve.lines for v in line.y] + [v for _, v in curve.marks]
        if curve.frame is not None:
            low, high = curve.frame
            ys = [low, high, *(v for _, v in curve.marks if low <= v <= high)]
        ends = (self.right, shape.left) if curve.falls else (shape.left, self.right)
        self.x = Axis(xs, curve.log_x, *ends)
        self.y = Axis(ys, curve.log_y, self.bottom, self.top)
        self.placed: list[Rectangle] = []
        upright = [self.x.at(v) for _, v in curve.posts if self.x.shows(v)]
        level = [self.y.at(v) for _, v in curve.marks if self.y.shows(v)]
        paths = [
            *map(self._points, curve.lines),
            *([(at, self.top), (at, self.bottom)] for at in upright),
            *([(shape.left, at), (self.right, at)] for at in level),
        ]
        self.ink = sorted(
            (a[0] + (b[0] - a[0]) * k / steps, a[1] + (b[1] - a[1]) * k / steps)
            for path in paths
            for a, b in pairwise(path)
            for steps in [1 + int(math.dist(a, b) / 3)]
            for k in range(steps + 1)
        )

    def _outside(self) -> bool:
        """Whether names stand to the right of the frame."""
        return self.shape is WIDE and any(line.name for line in self.curve.lines)

    def _margin(self) -> float:
        """The labels to the right of the frame: names, or what the last post says."""
        posts = [name for name, _ in self.curve.posts]
        named = [line.name for line in self.curve.lines] if self._outside() else []
        longest = max(map(len, (*named, *posts[-1:])), default=0)
        return (
            min(0.28 * self.shape.width, longest * self.shape.type * GLYPH + 18) if longest else 18
        )

    def element(self) -> str:
        """The whole."""
        shape, curve = self.shape, self.curve
        hidden = ' style="display:none"' if shape is NARROW else ""
        lines = list(self._lines())
        return "".join(
            [
                f'<svg viewBox="0 0 {shape.width} {shape.height}" role="img" '
                f'aria-label="{escape(_told(curve))}" class="curve {shape.name}"{hidden} '
                f'font-size="{shape.type}" fill="currentColor" data-x="{self.x.told()}" '
                f'data-y="{self.y.told()}" '
                f'data-names="{escape(curve.x_name)}|{escape(curve.y_name)}">',
                *self._axes(),
                *self._marks(),
                *lines,
                "</svg>",
            ]
        )

    def _axes(self) -> Iterator[str]:
        """Grid lines, as many as their labels leave room for, and the names of both axes."""
        shape, size = self.shape, self.shape.type
        most = max(2, int((self.right - shape.left) / (size * 4.5)))
        for value, name in self.x.ticks(most):
            at = self.x.at(value)
            yield (
                f'<path d="M{at:.1f} {self.top:.0f}V{self.bottom:.0f}" class="grid"/>'
                f'<text x="{at:.1f}" y="{self.bottom + 1.3 * size:.0f}" text-anchor="middle">'
                f"{name}</text>"
            )
        for value, name in self.y.ticks(max(2, int((self.bottom - self.top) / (size * 2.6)))):
            at = self.y.at(value)
            yield (
                f'<path d="M{shape.left} {at:.1f}H{self.right}" class="grid"/>'
                f'<text x="{shape.left - 6}" y="{at + 0.35 * size:.1f}" text-anchor="end">'
                f"{name}</text>"
            )
        middle = (shape.left + self.right) / 2
        yield (
            f'<text x="{middle:.0f}" y="{shape.height - 0.6 * size:.0f}" text-anchor="middle">'
            f"{escape(self.curve.x_name)}</text>"
            f'<text x="4" y="{1.15 * size:.1f}">{escape(self.curve.y_name)}</text>'
        )

    def _marks(self) -> Iterator[str]:
        """Posts and level lines, each name at the first place where it covers nothing."""
        size = self.shape.type
        posts = [(name, self.x.at(v)) for name, v in self.curve.posts if self.x.shows(v)]
        for name, at in posts:
            width = len(name) * size * GLYPH
            yield f'<path d="M{at:.1f} {self.top:.0f}V{self.bottom:.0f}" class="mark"/>'
            rows = range(1, int((self.bottom - self.top) / (STEP * size)) + 1)
            for row, left in product(rows, (at + 5, at - 5 - width)):
                base = self.top + row * STEP * size
                box = Rectangle(left, base - size, left + width, base + 3)
                if self._take(box, self.shape.width):
                    yield f'<text x="{left:.1f}" y="{base:.1f}" class="halo">{escape(name)}</text>'
                    break
        for name, value in self.curve.marks:
            if not self.y.shows(value):
                continue
            at = self.y.at(value)
            width = len(name) * size * GLYPH
            yield f'<path d="M{self.shape.left} {at:.1f}H{self.right}" class="mark"/>'
            room = self.right - self.shape.left - width - 12
            sides = [self.shape.left + 6 + room * part for part in (0, 1, 0.75, 0.5, 0.25)]
            for left, base in product(sides, (at - 5, at + size + 2)):
                if self._take(Rectangle(left, base - size, left + width, base + 3)):
                    yield f'<text x="{left:.1f}" y="{base:.1f}" class="halo">{escape(name)}</text>'
                    break

    def _take(self, box: Rectangle, right: float | None = None) -> bool:
        """Keep a place, if it is within the frame and no text and no line is in it."""
        edge = self.right if right is None else right
        fits = box.left >= self.shape.left and box.right <= edge and box.top >= self.top - 4
        if not fits or box.bottom > self.bottom or any(map(box.meets, self.placed)):
            return False
        above = self.ink[bisect(self.ink, (box.left, math.inf)) : bisect(self.ink, (box.right,))]
        if any(box.top < y < box.bottom for _, y in above):
            return False
        self.placed.append(box)
        return True

    def _points(self, line: Line) -> list[tuple[float, float]]:
        """The visible part of a line, cut where it leaves the frame."""
        pairs = [
            (self.x.at(a), self.y.at(b))
            for a, b in zip(line.x, line.y, strict=True)
            if self.x.shows(a) and self.y.shows(b)
        ]
        if line.weight is Weight.POINTS:
            return pairs
        found: list[tuple[float, float]] = []
        for k, (a, b) in enumerate(pairs):
            if self.top - 1 <= b <= self.bottom + 1:
                found.append((a, b))
            elif k and self.top <= pairs[k - 1][1] <= self.bottom:
                (x0, y0), edge = pairs[k - 1], self.bottom if b > self.bottom else self.top
                found.append((x0 + (a - x0) * (edge - y0) / (b - y0), edge))
        return found

    def _lines(self) -> Iterator[str]:
        """Draw the context first, the subject above it, thin lines on top so that none is hidden.

        The names lie beside their lines.
        """
        lines = list(zip(self.curve.lines, _colours(self.curve.lines), strict=True))
        order = [Weight.CONTEXT, Weight.STRONG, Weight.PLAIN, Weight.POINTS]
        lines.sort(key=lambda pair: order.index(pair[0].weight))
        shown = [(line, ink, p) for line, ink in lines if (p := self._points(line))]
        names = self._names([(line, p) for line, _, p in shown]) if self.names else {}
        for k, (line, ink, points) in enumerate(shown):
            dash = DASHES[line.dash % len(DASHES)]
            marks = f' stroke-dasharray="{dash}"' if dash else ""
            if line.weight is Weight.POINTS:
                body = "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="4.5"/>' for a, b in points)
            else:
                path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
                body = f'<path d="{path}" fill="none" stroke="currentColor"{marks}/>'
                if 2 < len(points) < 20 and line.weight is not Weight.CONTEXT:
                    body += "".join(
                        f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.5"/>' for a, b in points
                    )
            title = f"<title>{escape(line.name)}</title>" if line.name else ""
            yield (
                f'<g class="line {line.weight}" style="color:{ink}" '
                f'data-name="{escape(line.name)}">{title}{body}{names.get(k, "")}</g>'
            )

    def _names(self, lines: list[tuple[Line, list[tuple[float, float]]]]) -> dict[int, str]:
        """The texts of the names: at the right where a line ends there, else along it."""
        size = self.shape.type
        found: dict[int, str] = {}
        beside = []
        for k, (line, points) in enumerate(lines):
            if line.name and self._outside() and points[-1][0] > self.right - 24:
                beside.append((k, line, points[-1]))
        for (k, line, (x, y)), base in zip(
            sorted(beside, key=lambda b: b[2][1]),
            _apart(sorted(b[2][1] for b in beside), STEP * size, self.top, self.bottom),
            strict=True,
        ):
            tie = abs(base - y) > 0.6 * size
            leader = f'<path d="M{x + 2:.1f} {y:.1f}L{self.right + 12} {base:.1f}" class="leader"/>'
            room = int((self.shape.width - self.right - 16) / (size * GLYPH))
            found[k] = (leader if tie else "") + (
                f'<text x="{self.right + 14}" y="{base + 0.35 * size:.1f}" class="name">'
                f"{escape(_short(line.name, room))}</text>"
            )
        for k, (line, points) in sorted(
            enumerate(lines), key=lambda item: item[1][0].weight is Weight.CONTEXT
        ):
            if k in found or not line.name:
                continue
            width = len(line.name) * size * GLYPH
            for x, y in _along(points):
                above = -6 if line.weight is Weight.POINTS else 0.35 * size
                heights = (above, above - size, above + size, above - 2 * size, above + 2 * size)
                for rise, left in product(heights, (x + 7, x - width - 7)):
                    base = y + rise
                    if k not in found and self._take(
                        Rectangle(left, base - size, left + width, base + 0.3 * size)
                    ):
                        found[k] = (
                            f'<text x="{left:.1f}" y="{base:.1f}" class="name halo">'
                            f"{escape(line.name)}</text>"
                        )
        return found


def _short(name: str, most: int) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def _along(points: list[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Places along a line, from its last quarter on, then towards its beginning."""
    if len(points) == 1:
        yield points[0]
    cuts = [
        (a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t)
        for a, b in pairwise(points)
        for t in (0.0, 0.25, 0.5, 0.75)
    ]
    for k in (*range(17, 1, -1), 18, 19):
        if cuts:
            yield cuts[min(len(cuts) - 1, k * len(cuts) // 20)]


def _apart(places: list[float], gap: float, low: float, high: float) -> list[float]:
    """Ordered places moved so little that neighbours have a gap, within bounds where they fit."""
    found: list[float] = []
    for place in places:
        found.append(max(place, low if not found else found[-1] + gap))
    for k in range(len(found) - 1, -1, -1):
        limit = high if k == len(found) - 1 else found[k + 1] - gap
        found[k] = min(found[k], limit)
    return found


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

    def at(self, value: float) -> float:
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
        """Round values with their names, at most so many."""
        if self.log:
            low, high = (
                math.ceil(math.log10(self.low) - 1e-9),
                math.floor(math.log10(self.high) + 1e-9),
            )
            step = max(1, math.ceil((high - low + 1) / most))
            found = [10.0**k for k in range(low, high + 1, step)]
            if len(found) > 1:
                powers = low < -3 or high > 4
                return [(v, power(v) if powers and v != 1 else tick(v)) for v in found]
            ends = range(math.floor(math.log10(self.low)), high + 1)
            near = [m * 10.0**k for k in ends for m in (1, 2, 3, 5, 7)]
            near = [v for v in near if self.low <= v <= self.high]
            if len(near) > 1:
                return [(v, tick(v)) for v in near[:: math.ceil(len(near) / most)]]
        step_ = 10.0 ** math.floor(math.log10((self.high - self.low) / most))
        step_ *= next((m for m in (1, 2, 5) if (self.high - self.low) / (step_ * m) <= most), 10)
        first, last = math.ceil(self.low / step_ - 1e-9), math.floor(self.high / step_ + 1e-9)
        return [(k * step_, tick(k * step_)) for k in range(first, last + 1)]


_POWER = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def tick(value: float) -> str:
    """A round value as an axis names it.

    >>> [tick(v) for v in (1e-08, 0.25, 20.0, 1e6, -3.0)]
    ['10⁻⁸', '0.25', '20', '10⁶', '−3']
    """
    exponent = round(math.log10(value)) if value > 0 else 0
    if not -3 <= exponent <= 4 and math.isclose(value, 10.0**exponent):
        return power(value)
    return f"{value:.10g}".replace("-", "−")


def power(value: float) -> str:
    """A power of ten by its exponent.

    >>> power(100.0)
    '10²'
    """
    return "10" + str(round(math.log10(value))).translate(_POWER)


# -- ladders --------------------------------------------------------------------------------------


def climbed(ladder: Ladder, shape: Shape = WIDE) -> str:
    """The SVG element of a ladder: a scale a rung, with 1 in the middle and infinity at the right.

    >>> from farfield.theory.answers.blocks import Rung
    >>> climbed(Ladder("t", (Rung(("p",), 2.0, ("2",)),), "converges"))[:4]
    '<svg'
    """
    size, left, right = shape.type, shape.left if shape is WIDE else 14, shape.width - 14
    tall = 5.9 * size
    top = 3.2 * size
    height = top + tall * len(ladder.rungs) + 2.6 * size
    middle = (left + right) / 2

    def at(limit: float) -> float:
        inner = (right - left) / 2 - 14
        return middle + inner * (2 / math.pi) * math.atan(1.4 * (limit - 1))

    end = height - 2.6 * size
    told = "; ".join(f"{terminal(r.ratio)} tends to {terminal(r.said)}" for r in ladder.rungs)
    hidden = "" if shape is WIDE else ' style="display:none"'
    parts = [
        f'<svg viewBox="0 0 {shape.width} {height:.0f}" role="img" aria-label="'
        f'{escape(ladder.title)} {escape(told)}: it {ladder.verdict}." class="ladder {shape.name}"'
        f'{hidden} font-size="{size}" fill="currentColor">',
        f'<rect x="{left}" y="{2 * size:.0f}" width="{middle - left:.0f}" height="'
        f'{end - 2 * size:.0f}" fill="{VERDICTS["diverges"]}" opacity="0.1"/>'
        f'<rect x="{middle}" y="{2 * size:.0f}" width="{right - middle:.0f}" height="'
        f'{end - 2 * size:.0f}" fill="{VERDICTS["converges"]}" opacity="0.1"/>'
        f'<path d="M{middle} {2 * size:.0f}V{end:.0f}" stroke="currentColor" '
        'stroke-dasharray="5 4"/>',
        f'<text x="{(left + middle) / 2:.0f}" y="{1.4 * size:.0f}" text-anchor="middle" '
        f'fill="{VERDICTS["diverges"]}">diverges</text>'
        f'<text x="{(right + middle) / 2:.0f}" y="{1.4 * size:.0f}" text-anchor="middle" '
        f'fill="{VERDICTS["converges"]}">converges</text>',
        *(
            f'<text x="{at(v):.0f}" y="{end + 1.4 * size:.0f}" text-anchor="middle">{name}</text>'
            for v, name in ((-math.inf, "−∞"), (0, "0"), (1, "1"), (2, "2"), (math.inf, "∞"))
        ),
    ]
    before: tuple[float, float] | None = None
    for k, rung in enumerate(ladder.rungs):
        y = top + tall * (k + 0.55)
        x = at(rung.limit)
        last = k == len(ladder.rungs) - 1
        ink = VERDICTS.get(ladder.verdict, "currentColor") if last else "currentColor"
        name = terminal(rung.ratio).replace("ρ₀", "−p(n)")
        said = f"→ {terminal(rung.said)}" + ("" if last else ": a tie, go on")
        wide = len(said) * size * GLYPH + 18
        low = x < middle - 1
        leftwards = x - wide > left and (low or x + wide > right)
        anchor, shift = ("end", -8) if leftwards else ("start", 8)
        met = before is not None and abs(before[0] - x) > 1 and low is not leftwards
        base = y + 1.7 * size if met else y - 0.9 * size  # off the line from the rung before
        side = f'x="{right - 4}" text-anchor="end"' if low else f'x="{left + 4}"'
        if before is not None:
            parts.append(
                f'<path d="M{before[0]:.1f} {before[1] + 7:.1f}L{x:.1f} {y - 8:.1f}" '
                'stroke="currentColor" fill="none"/>'
            )
        parts.append(
            f'<path d="M{left} {y:.1f}H{right}" stroke="currentColor" opacity="0.35"/>'
            f'<text {side} y="{y - 2.3 * size:.0f}" font-size="{size - 1}">'
            f"{escape(name)}</text>"
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{8 if last else 6}" style="color:{ink}" '
            'fill="currentColor"/>'
            f'<text x="{x + shift:.1f}" y="{base:.1f}" text-anchor="{anchor}" '
            f'class="halo" style="color:{ink}" font-weight="600">{escape(said)}</text>'
        )
        before = (x, y)
    return "".join([*parts, "</svg>"])
