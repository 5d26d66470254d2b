"""Curves and ladders as SVG: axes by hand, all else as recorded, since a look follows from no law.

`python tests/theory/answers/test_drawings_of_blocks.py` records it in `tests/data/curves.json`.
"""

import json
import math
import re
from pathlib import Path

import pytest

from farfield.theory.answers.blocks import Curve, Ladder, Line, Rung, Weight
from farfield.theory.answers.writers.svg import (
    GLYPH,
    NARROW,
    WIDE,
    Axis,
    climbed,
    drawn,
    named,
    power_of_ten,
    tick,
)

FILE = Path(__file__).parents[2] / "data" / "curves.json"
X, INF = (0.0, 1.0, 2.0, 4.0), math.inf
CONTEXT, STRONG = Weight.CONTEXT, Weight.STRONG
CURVES = {
    "many names": Curve(
        "A <title>.",
        "n & m",
        "y",
        tuple(Line(f"line {k}", (0.0, 4.0), (1.0, 1 + k / 90)) for k in range(24)),
        marks=(("a level", 1.05), ("another", 1.06)),
        posts=(("post", 1.0), ("a post beside it", 1.1), ("at the end", 4.0), ("gone", INF)),
    ),
    "weights and verdicts": Curve(
        "Weights.",
        "x",
        "y",
        (
            Line("context", X, (1.0, 2.0, 3.0, 4.0), weight=CONTEXT),
            Line("a context with a long name", X, (4.0, 3.0, 2.0, 1.0), weight=CONTEXT),
            Line("strong", X, (2.0, 2.5, INF, 3.0), weight=STRONG, colour="converges", dash=1),
            Line("open", X, (3.0, 2.5, 2.0, 0.5), 7, 2, verdict="diverges"),
            Line("crossed", X, (3.5, 3.0, 2.5, 2.0), "x", 5, verdict="undecided"),
            Line("filled", X, (0.6, 0.7, 0.8, 0.9), 1, verdict="converges"),
            Line("untold", X, (1.5, 1.4, 1.3, 1.2), told=False),
            Line("", X, (1.6, 1.5, 1.4, 1.3), colour="diverges"),
            Line("bars", X, (2.2, 2.2, 2.4, 2.6), bars=((2.0, 2.3), (2.1, 2.5))),
            Line("two points", (1.0, 3.0), (1.0, 1.5), weight=CONTEXT),
            Line("level", (1.0, 2.0, 3.0, 3.9), (1.7,) * 4),
        ),
        at=(0.0, 1.0, 2.0, 4.0),
    ),
    "a frame that is left": Curve(
        "Out of the frame.",
        "steps",
        "loss",
        (
            Line("leaves above", (1.0, 10.0, 100.0, 1000.0), (1.0, 3.0, 30.0, 300.0)),
            Line("leaves below", (1.0, 10.0, 100.0, 1000.0), (5.0, 1.0, 0.1, 0.001)),
            Line("comes back", (1.0, 10.0, 100.0, 1000.0), (1.0, 20.0, 20.0, 2.0)),
            Line("just meets it", (1.0, 10.0, 100.0, 1000.0), (2.0, 3.0, 8.0, 10.0)),
            Line("ends on it", (1.0, 10.0, 100.0, 1000.0), (2.0, 20.0, 20.0, 10.0)),
            Line("stays above", (1.0, 10.0), (20.0, 30.0), weight=CONTEXT, colour=2),
            Line("begins above", (0.0, 1.0, 10.0, 100.0), (1.0, 20.0, 3.0, 2.0)),
            Line("within", tuple(float(2**k) for k in range(20)), (2.0, 3.0) * 10),
        ),
        log_x=True,
        log_y=True,
        frame=(0.5, 10.0),
        marks=(("half", 0.5), ("ten", 10.0), ("beyond", 11.0)),
        posts=(("never", 0.0), ("start", 1.0)),
        falls=True,
        at=(1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0),
    ),
    "no name": Curve(
        "", "", "", (*(Line("", X, X, k) for k in range(5)), Line("", X, X[::-1]), Line("", (), ()))
    ),
}
LEGENDS = [
    *CURVES.values(),
    Curve("", "", "", tuple(Line(f"head {k}", (), (), 1) for k in (1, 2))),
    Curve("", "", "", tuple(Line(str(k), (), (), k if k < 5 else None) for k in range(7))),
    Curve("", "", "", tuple(Line(str(k), (), (), 1 if k == 3 else None) for k in range(7))),
]
LADDERS = [
    Ladder("A title", (Rung(("a < b",), 1.0), Rung(("rung",), 2.5)), "converges"),
    Ladder("T", (Rung(("one",), -INF),), "diverges"),
    Ladder("T", (Rung(("one",), 1.0),), "unknown"),
]


def recorded():
    shapes = (WIDE, NARROW)
    found = {name: [drawn(curve, s) for s in shapes] for name, curve in CURVES.items()}
    found["legends"] = [list(map(list, named(curve))) for curve in LEGENDS]
    found["ladders"] = [climbed(ladder, s) for ladder in LADDERS for s in shapes]
    return found


def test_below_many_rows_of_posts_two_labels_are_left():
    posts = tuple((f"{'a long name':120}", float(k)) for k in range(14))
    curve = Curve("", "", "", (Line("", (0.0, 14.0), (0.0, 6.0)),), posts=posts)
    assert re.findall(r'text-anchor="end">(\d+)', drawn(curve)) == ["0", "5"]
    assert re.findall(r'<text x="([\d.]+)" y="[^"]*">a long', drawn(curve)) == ["4.0"] * 14


def test_a_label_of_a_post_is_in_the_first_row_with_room():
    posts = tuple(("p" * (3 + 5 * (k % 4)), float(k)) for k in range(30))
    curve = Curve("", "", "", (Line("", (0.0, 29.0), (0.0, 6.0)),), posts=posts)
    label = r'<path d="M([\d.]+) [^"]*" class="mark"/><text x="([\d.]+)" y="([\d.]+)">(p+)</text>'
    placed = [(*map(float, place), len(name)) for *place, name in re.findall(label, drawn(curve))]
    heights = sorted({y for _, _, y, _ in placed}, reverse=True)
    ends = dict.fromkeys(heights, 0.0)
    for pixel, x, y, letters in placed:
        width = letters * WIDE.type * GLYPH
        assert x == pytest.approx(min(pixel - 4, WIDE.width - 4 - width), abs=0.11)
        assert y == next(row for row in heights if ends[row] <= x)
        ends[y] = x + width + WIDE.type
    assert len(placed) == 30 and len(heights) > 2


def test_a_drawing_is_as_recorded():
    assert recorded() == json.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("values", "log", "most", "told"),
    [
        ([0, 10], False, 5, "0 2 4 6 8 10"),
        ([0, 10], False, 6, "0 2 4 6 8 10"),
        ([0, 10], False, 4, "0 5 10"),
        ([0, 10], False, 10, "0 1 2 3 4 5 6 7 8 9 10"),
        ([0, 10], False, 1, "0 10"),
        ([0.05, 0.95], False, 4, "0.5"),
        ([-3, 3], False, 3, "−2 0 2"),
        ([7], False, 2, "6 7 8"),
        ([], False, 2, "0 0.5 1"),
        ([1, 1000], True, 4, "1 10 100 1000"),
        ([1, 1000], True, 3, "1 100"),
        ([1, 1e4], True, 6, "1 10 100 1000 10000"),
        ([1, 1e5], True, 6, "1 10¹ 10² 10³ 10⁴ 10⁵"),
        ([1e-3, 1], True, 6, "0.001 0.01 0.1 1"),
        ([1e-4, 1], True, 6, "10⁻⁴ 10⁻³ 10⁻² 10⁻¹ 1"),
        ([0, 1, INF, 1000], True, 4, "1 10 100 1000"),
        ([2, 9], True, 4, "2 3 5 7"),
        ([2, 9], True, 3, "2 5"),
        ([20, 90], True, 4, "20 30 50 70"),
        ([5], True, 9, "3 5 7 10"),
        ([1.1, 1.9], True, 4, "1.2 1.4 1.6 1.8"),
    ],
)
def test_ticks_are_round(values, log, most, told):
    assert " ".join(name for _, name in Axis(values, log, 0, 100).ticks(most)) == told


LINEAR, LOG = Axis([2, 4, INF], False, 100, 0), Axis([1, 100, 0, -1], True, 10, 30)


@pytest.mark.parametrize(
    ("ask", "values", "wanted"),
    [
        (LINEAR.pixel, (2, 3, 4, 6), [100, 50, 0, -100]),
        (LOG.pixel, (1, 10, 1000), pytest.approx([10, 20, 40])),
        (LINEAR.shows, (-1, 0, INF), [True, True, False]),
        (LOG.shows, (-1, 0, 1e-9, INF), [False, False, True, False]),
        (Axis.told, (LINEAR, LOG), ["linear 2 4 100.0 0.0", "log 1 100 10.0 30.0"]),
        (
            lambda log: Axis([4], log, 0, 1).told(),
            (1, 0),
            ["log 2 8 0.0 1.0", "linear 3 5 0.0 1.0"],
        ),
        (tick, (1e-4, 1e-3, 0.02, 1e4, 1e5), ["10⁻⁴", "0.001", "0.02", "10000", "10⁵"]),
        (tick, (2e5, -1e5, 0.0), ["200000", "−100000", "0"]),
        (power_of_ten, (1e-12, 10.0), ["10⁻¹²", "10¹"]),
    ],
)
def test_an_axis_by_hand(ask, values, wanted):
    assert [ask(value) for value in values] == wanted


if __name__ == "__main__":
    FILE.write_text(json.dumps(recorded(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
