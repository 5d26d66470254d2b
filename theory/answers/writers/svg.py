"""A curve as plain SVG: no library, no script, colours of the page's own."""

from __future__ import annotations

import math
from html import escape

from farfield.theory.answers.blocks import Curve

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 120, 16, 48
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#6b6b6b")


def drawn(curve: Curve) -> str:
    """The SVG element of a curve, its lines named at their ends.

    >>> from farfield.theory.answers.blocks import Line
    >>> drawn(Curve("t", "x", "y", (Line("a", (0.0, 1.0), (0.0, 2.0)),)))[:4]
    '<svg'
    """
    x = _Axis([v for line in curve.lines for v in line.x], curve.log_x, LEFT, WIDTH - RIGHT)
    values = [v for line in curve.lines for v in line.y] + [v for _, v in curve.marks]
    y = _Axis(values, curve.log_y, HEIGHT - BOTTOM, TOP)
    middle = f"{(TOP + HEIGHT - BOTTOM) / 2:.0f}"
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(curve.title)}" '
        'class="curve" font-size="12" fill="currentColor">',
        *(_tick(x.at(v), HEIGHT - BOTTOM, name, across=False) for v, name in x.ticks()),
        *(_tick(y.at(v), LEFT, name, across=True) for v, name in y.ticks()),
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">'
        f"{escape(curve.x_name)}</text>",
        f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">'
        f"{escape(curve.y_name)}</text>",
    ]
    for name, value in curve.marks:
        at = y.at(value)
        parts.append(
            f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="currentColor" opacity="0.5" '
            f'stroke-dasharray="4 3"/><text x="{WIDTH - RIGHT + 6}" y="{at + 4:.1f}" '
            f'opacity="0.8">{escape(name)}</text>'
        )
    ends: list[float] = []
    for k, line in enumerate(curve.lines):
        colour = COLOURS[k % len(COLOURS)]
        points = [(x.at(a), y.at(b)) for a, b in zip(line.x, line.y, strict=True) if y.shows(b)]
        if not points:
            continue
        path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
        parts.append(
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2">'
            f"<title>{escape(line.name)}</title></path>"
        )
        end = points[-1][1]
        while any(abs(end - other) < 13 for other in ends):
            end += 13
        ends.append(end)
        parts.append(
            f'<text x="{points[-1][0] + 6:.1f}" y="{end + 4:.1f}" fill="{colour}">'
            f"{escape(line.name)}</text>"
        )
    return "".join([*parts, "</svg>"])


def _tick(at: float, edge: float, name: str, *, across: bool) -> str:
    if across:
        return (
            f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="currentColor" opacity="0.15"/>'
            f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{name}</text>'
        )
    return (
        f'<path d="M{at:.1f} {edge}v5" stroke="currentColor"/>'
        f'<text x="{at:.1f}" y="{edge + 18}" text-anchor="middle">{name}</text>'
    )


class _Axis:
    """Values on a stretch of pixels."""

    def __init__(self, values: list[float], log: bool, first: float, last: float) -> None:
        shown = [v for v in values if math.isfinite(v) and (v > 0 or not log)]
        self.log, self.first, self.last = log, first, last
        low, high = (min(shown), max(shown)) if shown else (0.0, 1.0)
        if low == high:
            low, high = (low / 2, high * 2) if log else (low - 1, high + 1)
        self.low, self.high = low, high

    def shows(self, value: float) -> bool:
        return math.isfinite(value) and (value > 0 or not self.log)

    def at(self, value: float) -> float:
        if self.log:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.first + part * (self.last - self.first)

    def ticks(self) -> list[tuple[float, str]]:
        if self.log:
            low, high = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            step = max(1, (high - low) // 6)
            found = [10.0**k for k in range(low, high + 1, step)]
            if len(found) > 1:
                return [(v, f"{v:g}") for v in found]
        step = 10 ** math.floor(math.log10((self.high - self.low) / 4))
        step *= next((m for m in (1, 2, 5) if (self.high - self.low) / (step * m) <= 6), 10)
        first = math.ceil(self.low / step)
        last = math.floor(self.high / step)
        return [(k * step, f"{k * step:g}") for k in range(first, last + 1)]
