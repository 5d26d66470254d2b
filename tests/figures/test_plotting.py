"""Formulas in one figure, and formulas over their parameters: data, boundary, files."""

import csv
import json
import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from sympy import Rational, symbols

import farfield
from farfield.figures.parameter_map import (
    MapPoint,
    ParameterMap,
    _levels,
    _over_one,
    _over_two,
    _point,
    between,
    boundary,
    holds,
    parameter_map,
)
from farfield.theory.answers.writers.svg import NO, YES


def words(figure):
    return {text.get_text() for axes in figure.axes for text in axes.texts}


# -- several formulas -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("bias", lambda e, n: -(n - 1) * e),
        ("weights", lambda e, n: math.exp(-(n - 1) * e)),
        ("leak", lambda e, n: math.exp(-n * e)),
        ("price", lambda e, n: farfield.price_of_distance(f"-n*{e}", n - 1, length=64).value),
        ("trf", lambda e, eps: farfield.theoretical_receptive_field(f"-n*{e}", eps).tokens),
        ("window", lambda e, eps: farfield.certified_window(f"-n*{e}", eps, 1, 1).width),
    ],
)
def test_each_kind_draws_what_it_says(what, value):
    drawn = farfield.plot("[-n/2; -n/8]", what=what, length=64, eps="1/100")
    for p in drawn.data:
        x = Fraction(str(p.x)) if what in ("trf", "window") else int(p.x)
        assert p.y == pytest.approx(value(Fraction(1, 2 * 4 ** (p.head - 1)), x))
    assert {p.head for p in drawn.data} == {1, 2} and drawn.data[-1].x in (64, 1e-5)
    if what == "leak":
        assert {p.x for p in drawn.data} == {round(64 ** (k / 39)) for k in range(40)}


@pytest.mark.parametrize("what", ["bias", "weights"])
def test_nothing_is_drawn_where_a_formula_has_no_value(what):
    points = {p.x: p.y for p in farfield.plot("-n/log(n)", what=what, length=64).data}
    assert min(points) == 3 and not any(map(math.isnan, points.values()))
    at_two, at_three = (-n / math.log(n) for n in (2, 3))
    said = math.exp(at_two - at_three) if what == "weights" else at_two
    assert points[3] == pytest.approx(said)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("what", ["bias", "weights"])
@pytest.mark.parametrize("formula", ["-log(n)", "-n/log(n)", "where(n<5,-n,-oo)"])
def test_a_plot_is_json_whatever_its_bias(run, tmp_path, formula, what):
    path = str(tmp_path / "plot.svg")
    code, out, _ = run("plot", formula, "--what", what, "--json", "--out", path)
    assert code == 0 and json.loads(out)["kind"] == "Plot"


def test_what_has_nothing_to_draw_is_named(monkeypatch):
    drawn = farfield.plot("-n", "-log(1+n)", what="trf")
    assert dict(drawn.missing).keys() == {"-log(1+n)"} and "infinite" in str(drawn)
    assert {p.formula for p in drawn.data} == {"-n"}
    known = "farfield.figures.formula_plots.leak"
    monkeypatch.setattr(known, lambda p, m: SimpleNamespace(value=None if m < 5 else 0.5))
    assert min(p.x for p in farfield.plot("-n", what="leak").data) == 5


def test_a_table_is_drawn_beside_a_formula_as_far_as_it_is_known():
    table = farfield.encoding([0, -1, -3, -4])
    drawn = farfield.plot(table, "-n/8", length=16)
    known = {p.x: p.y for p in drawn.data if p.formula == table.name}
    assert known == {1: 0, 2: -1, 3: -3, 4: -4} and max(p.x for p in drawn.data) == 16
    assert any("seen to 3" in name for name in words(drawn.figure))
    for what in ("trf", "leak", "window", "price"):
        drawn = farfield.plot(table, "-n/8", what=what, length=16)
        assert {p.formula for p in drawn.data} == {"-n/8"}, "of what nobody saw nothing is drawn"
        ((name, why),) = drawn.missing
        assert name == table.name and "known up to distance 3" in why
    assert len(farfield.plot(table, "-n/8", what="price", length=4).missing) == 0


def test_what_is_no_bias_does_not_keep_others_from_being_drawn():
    drawn = farfield.plot("rope", "-n/8")
    assert {p.formula for p in drawn.data} == {"-n/8"} and "rotates" in dict(drawn.missing)["rope"]


def test_files_with_their_data(tmp_path):
    drawn = farfield.plot("-n/8", "-n/8", what="weights", length=32)
    for kind, start in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
        figure, table = drawn.save(tmp_path / f"x.{kind}")
        assert figure.read_bytes().startswith(start)
        rows = list(csv.DictReader(table.open(encoding="utf-8")))
        assert list(rows[0]) == ["formula", "head", "x", "y"] and len(rows) == len(drawn.data)
    assert {p.formula for p in drawn.data} == {"-n/8", "-n/8 #2"} == words(drawn.figure)


@pytest.mark.parametrize(
    ("formulas", "options", "said"),
    [
        ((), {}, "give a formula"),
        (("-n",), {"what": "colour"}, "accepted: bias, weights"),
        (("-n",), {"length": 1}, "length"),
        (("-n",), {"length": 10**6 + 1}, "length"),
        (("[-n x201]",), {}, "more than 200 heads"),
        (("-n",), {"eps": 2}, "eps"),
        (("-a*n",), {}, "free parameter"),
        (("rope",), {}, "."),
        (("-log(1+n)",), {"what": "trf"}, "infinite"),
    ],
)
def test_bad_plots_are_one_line(refusal, formulas, options, said):
    refusal(said, farfield.plot, *formulas, **options)


# -- over parameters ------------------------------------------------------------------------------


A, B = symbols("a b", real=True)


@pytest.mark.parametrize(
    ("condition", "roots", "pieces"),
    [
        (A * B > 1, lambda b: [(1 / b, b)], 2),  # from side to side, apart where b is small
        (B > A**2, lambda a: [(a, a * a)], 1),  # solved for b, which has one value
        (A**2 > 1, lambda b: [(-1, b), (1, b)], 2),  # the other curve is no side of either
    ],
)
def test_a_boundary_is_drawn_as_far_as_it_lies_in_the_ranges(condition, roots, pieces):
    ends = np.linspace(-2, 2, 400)
    curves = list(boundary(condition, ["a", "b"], [(Rational(-2), Rational(2))] * 2))
    within = {(x, y) for t in ends for x, y in roots(t) if max(abs(x), abs(y)) <= 2}
    found = sorted(point for curve in curves for point in curve)
    assert len(curves) == pieces and np.allclose(found, sorted(within), rtol=0, atol=1e-9)
    assert holds(None, {}) is None and holds(A > 1, {}) is None


def test_each_side_of_the_boundary_has_the_colour_of_its_verdict():
    """A point on the boundary says nothing of the other side of it."""
    drawn = parameter_map("-a*log(1+n)", {"a": "1/2:3"}, points=6)
    assert drawn.data[1].x == 1 and drawn.data[1].verdict == "diverges"
    for axes in drawn.figure.axes:
        filled = {to_hex(p.get_facecolor()): p.get_extents() for p in axes.patches}
        ends = {k: axes.transData.inverted().transform(box)[:, 0] for k, box in filled.items()}
        assert {k: tuple(map(float, x.round(9))) for k, x in ends.items()} == {
            NO: (0.5, 1),
            YES: (1, 3),
        }
    never = parameter_map("-a*log(1+n)", {"a": "2:3"}, points=4).figure
    assert all(len(axes.patches) == 1 for axes in never.axes)


def test_an_inequality_that_decides_nothing_is_no_boundary():
    drawn = parameter_map("-a*log(1+n)-b*log(1+log(1+n))", {"a": "1/2:2", "b": "1/2:3"}, points=2)
    assert [{x for x, _ in curve} for curve in drawn.boundary] == [{1.0}]  # b = 1 parts a = 1 alone


def test_contours_are_those_of_the_grid():
    """Between neighbours of the grid the level is linear, and nothing is drawn beside a pole."""
    drawn = parameter_map("-a*log(1+b*n)", {"a": "1/2:3", "b": "1/10:1"}, points=8)
    (above,) = drawn.figure.axes
    level = {(float(p.x), float(p.y)): min(p.level, 18) for p in drawn.data}
    lines = {line.get_label(): line.get_xydata() for line in above.lines}
    for name, wanted in (("10", 1), ("1000", 3), ("10⁵", 5)):
        for x, y in lines[name]:  # on a line of the grid: between two of its values
            row = [wanted, *(v for (_, b), v in level.items() if math.isclose(b, y))]
            assert x > 1 and (len(row) == 1 or min(row[1:]) <= wanted <= max(row[1:]))


@pytest.mark.parametrize(
    ("formula", "ranges", "said"),
    [
        ("-a*n", {}, "one range or two"),
        ("-a*n", {"b": "0:1"}, "no free parameter 'b'"),
        ("-a*n^b", {"a": "0.1:1"}, "--set b=1"),
        ("-a*n", {"a": "1"}, "two numbers"),
        ("-a*n", {"a": "2:1"}, "smaller number first"),
        ("-a*n", {"a": "-1:1"}, "positive"),
        ("-a*n", {"a": "1:1"}, "smaller number first"),
        ("-a*n", {"a": "1:1e101"}, "1e100"),
        ("-a*n", {"a": "1e-101:1"}, "1e-100"),
        ("-a*n^b", {"a": "1:2", "b": "1:2", "c": "1:2"}, "one range or two, .*; 3 are given"),
        ("-n", {"a": "1:2"}, "-n has no free parameter 'a'; free parameters: none"),
        ("alibi", {"m": "1:2"}, "."),
        ("rope", {"a": "0.1:1"}, "."),
    ],
)
def test_bad_maps_are_one_line(refusal, formula, ranges, said):
    refusal(said, parameter_map, formula, ranges, points=2)


@pytest.mark.parametrize(
    ("tokens", "low", "high", "level"),
    [
        (1000, 1000, 1000, 3),
        (0, 0, 0, 0),
        (math.inf, None, None, math.inf),
        (None, 100, 105, math.log10(100 * 105) / 2),
        (None, 100, 111, math.nan),
        (None, 10, 11, math.nan),
        (None, 100, None, math.nan),
        (None, None, 100, math.nan),
        (None, None, None, math.nan),
    ],
)
def test_the_level_of_a_point_is_that_of_its_field_where_it_is_one_number(tokens, low, high, level):
    found = MapPoint(Rational(1), None, "", tokens, low, high).level
    assert found == pytest.approx(level, nan_ok=True)


@pytest.mark.parametrize(
    ("decided", "formula", "held"),
    [
        (True, "-a*n", "converges"),
        (False, "-a*n", "diverges"),
        (None, "-a*n", "converges"),
        (None, "-a*log(1+n)", "diverges"),
    ],
)
def test_a_point_that_the_condition_leaves_open_is_told_by_its_field(
    decided, formula, held, monkeypatch
):
    given, (a,) = {}, farfield.encoding(formula).free
    verdict = SimpleNamespace(at=lambda **values: given.update(values) or decided)
    bias, eps = farfield.encoding(formula).head(1), Rational(1, 10)
    found = _point(bias, [a.symbol], eps, verdict, Rational(1, 2), None)
    assert (found.verdict, given) == (held, {"a": Rational(1, 2)})
    assert (found.tokens == math.inf) is (held == "diverges")
    for tokens in (None, math.inf):
        open_ = SimpleNamespace(span=lambda: None, reason=None, tokens=tokens)
        place = "farfield.figures.parameter_map.theoretical_receptive_field"
        monkeypatch.setattr(place, lambda *_, open_=open_, **__: open_)
        shown = _point(bias, [a.symbol], eps, verdict, Rational(1, 2), None).verdict
        assert shown == {True: "converges", False: "diverges", None: "undecided"}[decided]


NEAR = MapPoint(Rational(1), None, "converges", 10, 10, 10)
WIDE = MapPoint(Rational(2), None, "converges", None, 100, 1000)
NEVER = MapPoint(Rational(3), None, "diverges", math.inf, None, None)
UNKNOWN = MapPoint(Rational(4), None, "undecided", None, None, None)


def test_what_is_known_within_wide_bounds_is_a_bar_and_what_is_not_known_is_told():
    places = (NEAR, WIDE, NEVER, UNKNOWN, UNKNOWN)
    *bars, line = _over_one(places, [((2.5, 0.0),)], "field").lines
    assert [([*bar.x], [*bar.y]) for bar in bars] == [([2, 2], [100, 1000])]
    assert [*line.x] == [1, 2, 3, 4, 4] and line.y[0] == 10 and all(map(math.isnan, line.y[1:]))
    panel = _over_one(places, [((2.5, 0.0),)], "field")
    assert panel.upright == [2.5] and panel.axes["ylim"] == (5, 20)
    vast = [NEAR._replace(tokens=10**e) for e in (299, 300)] + [WIDE._replace(high=1e300)]
    (line,) = _over_one(vast, [], "field").lines
    assert line.y[0] == pytest.approx(1e299) and all(map(math.isnan, line.y[1:]))
    assert _over_one((WIDE, UNKNOWN), [], "field").axes["ylim"] == (0.7, 1e18)
    found = ParameterMap("f", ("a",), "everywhere", Rational(1, 10), places, (), Figure())
    said = str(found)
    assert "f over a: it converges everywhere; TRF(10 %) at 5 points." in said
    assert "1 point has an enclosure alone." in said and "2 points are not known." in said
    assert "enclosure" not in str(replace(found, data=(NEAR,))) + str(replace(found, data=(NEVER,)))
    assert "not known" not in str(replace(found, data=(NEAR, WIDE)))
    told = found.fields()
    assert told["columns"] == ("a", "y", "verdict", "tokens", "low", "high")
    assert told["rows"][1:3] == [
        [2.0, None, "converges", None, 100, 1000],
        [3.0, None, "diverges", None, None, None],
    ]


def test_points_of_a_plane_that_are_not_known_are_circles():
    grid = [
        MapPoint(Rational(x), Rational(y), "converges", tokens, tokens, tokens)
        for y, row in ((5, (10, 1000)), (6, (None, 10**5)))
        for x, tokens in zip((1, 2), row, strict=True)
    ]
    edge, *contours, circles = _over_two(grid, [((1.0, 5.0), (2.0, 6.0))], "field").lines
    assert ([*edge.x], [*edge.y]) == ([1, 2], [5, 6]) and ([*circles.x], [*circles.y]) == ([1], [6])
    assert [line.name for line in contours] == ["100", "1000", "10000"]
    said = _over_two(grid, [((1.0, 5.0), (2.0, 6.0))], "field").axes["title"]
    edged, circled = "; thick: the boundary of convergence", "; circles: not known, or within wide"
    assert said.startswith(f"field{edged}{circled} bounds")
    assert _over_two([p._replace(tokens=7) for p in grid], [], "field").axes["title"] == "field"


def test_the_name_of_a_contour_stands_at_its_right_end():
    for fields in np.random.default_rng(0).integers(1, 10**5, (20, 16)):
        grid = [
            MapPoint(Rational(k % 4), Rational(9 + k // 4), "converges", int(tokens), 1, 1)
            for k, tokens in enumerate(fields)
        ]
        *contours, _ = _over_two(grid, [], "field").lines
        assert contours and all(line.x[0] <= line.x[-1] for line in contours)


@pytest.mark.parametrize(
    ("ends", "levels"),
    [
        ((0, 7), [1, 3, 5]),
        ((0, 6), [1, 3, 5]),
        ((0, 4), [1, 2, 3]),
        ((0.5, 2.5), [math.log10(5), 1, math.log10(20), math.log10(50)]),
        ((0.2, 0.9), [math.log10(2), math.log10(5)]),
        ((3, 3), []),
    ],
)
def test_contours_are_at_most_four_round_levels(ends, levels):
    assert _levels(*ends) == pytest.approx(levels)


def test_a_range_is_divided_geometrically_from_twentyfold_on():
    for low, middle, high in ((1, "21/2", 20), (1, "4.583", 21), (0, 15, 30)):
        assert between(Rational(low), Rational(high), 3) == [low, Rational(middle), high]
    told = []
    drawn = parameter_map(
        "-a*n^b", {"a": (1, 2)}, points=2, values={"b": 1}, notice=lambda *step: told.append(step)
    )
    assert told == [("points", 0, 2), ("points", 1, 2)]
    assert [p.tokens for p in drawn.data] == [
        farfield.theoretical_receptive_field(f, "1/100").tokens for f in ("-n", "-2*n")
    ]
    for formula, assumed, level in (
        ("-n-a", "everywhere", ("converges", 5, 5, 5)),
        ("a*n", "nowhere", ("diverges", math.inf, None, None)),
        ("-a*abs(sin(n))*n", "where that is not decided", ("undecided", None, None, None)),
    ):
        found = parameter_map(formula, {"a": "1:2"}, points=2)
        assert found.condition == assumed and {p[2:] for p in found.data} == {level}
