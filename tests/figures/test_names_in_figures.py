"""Figures by geometry: names are clear of lines and of each other; marks say verdicts; what is
drawn is what the table beside the figure holds, and it fills its frame."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from matplotlib.figure import Figure

import farfield
from farfield.figures.charts import RULE, Named, Panel, charted
from farfield.figures.exhibit import NoResults
from farfield.figures.gallery import recompute
from farfield.figures.index import INDEX
from farfield.figures.matrices import cells, heat_map
from farfield.figures.papers.measured_figures import verdict_of
from farfield.figures.parameter_map import parameter_map
from farfield.figures.style import COLUMN_STYLE, STYLE, round_numbers, spoken
from farfield.theory.answers.writers.svg import COLOURS, NO, YES

PIXELS = 328
"""Width of a figure on the narrowest phone."""


def faults(figure):
    """Names that a line goes through or that meet another one, each once."""
    if (layout := figure.get_layout_engine()) is not None:
        layout.execute(figure)
    found = []
    for axes in figure.axes:
        names = [(t.get_text(), t.get_window_extent()) for t in axes.texts if t.get_text()]
        frame = axes.get_window_extent()
        for line in axes.lines:
            path = line.get_transform().transform_path(line.get_path())
            ink = path.interpolated(8).vertices if len(path.vertices) < 2000 else path.vertices
            if line.get_clip_on():
                ink = ink[((ink > frame.min - 1) & (ink < frame.max + 1)).all(axis=1)]
            x, y = ink.T
            for name, box in names:
                (x0, y0), (x1, y1) = box.padded(-2).get_points()  # letters rarely fill a box
                if ((x > x0) & (x < x1) & (y > y0) & (y < y1)).any():
                    found.append(f"{name} is crossed")
        for k, (name, box) in enumerate(names):
            found += [
                f"{name} on {other}" for other, b in names[:k] if box.padded(-1.5).overlaps(b)
            ]
    return sorted(set(found))


@pytest.fixture(scope="module")
def drawn():
    """Every figure with lines that can be drawn from the committed results, with its data."""
    found = {}
    for e in INDEX.values():
        if "table" not in e.id and e.kind != "schematic":
            try:
                found[e.id] = recompute(e)
            except NoResults:
                continue
    return found


def test_no_line_goes_through_a_name(drawn):
    assert len(drawn) > 15
    assert not {name: f for name, drawing in drawn.items() if (f := faults(drawing.figure))}


def test_no_text_of_a_figure_is_below_nine_pixels_on_a_phone(drawn):
    for name, figure in ((name, drawing.figure) for name, drawing in drawn.items()):
        scale = PIXELS / (figure.get_size_inches()[0] * 72)
        for text in figure.findobj(match=lambda artist: hasattr(artist, "get_fontsize")):
            assert not text.get_text() or text.get_fontsize() * scale >= 9, (name, text.get_text())


def test_marks_say_verdicts(drawn):
    """A line that has the name of an encoding has filled points exactly where its series
    converges, and no two lines of a panel look alike."""
    assert not {YES, NO} & set(COLOURS)
    assert verdict_of("rope + BCA") == "converges" and verdict_of("nope") == "diverges"
    labels = ("alibi", "type1", "type2", "sandwich", "example1", "rope", "kerple_log")
    marks = {"converges": ("o", "full"), "diverges": ("o", "none")}
    meant = {spoken(label): marks.get(verdict_of(label), ("x", "full")) for label in labels}
    seen = set()
    for figure in (drawing.figure for drawing in drawn.values()):
        assert not any(axes.get_legend() for axes in figure.axes) and not figure.legends
        for axes in figure.axes:
            every = (x for x in axes.lines if len(x.get_xdata()) > 1)
            named = [x for x in every if (x.get_label() or "_")[0] != "_"]
            looks = {(x.get_color(), x.get_linestyle()) for x in named}
            assert len(looks) == len(named), "two lines look alike"
            for line in named:
                name = str(line.get_label()).removesuffix(", 8 heads")
                if name in meant:
                    seen.add(name)
                    assert (line.get_marker(), line.get_fillstyle()) == meant[name], name
    assert len(seen) == len(meant), meant.keys() - seen


def named(axes):
    """The lines of a frame that carry a name, with their points that are numbers."""
    for line in axes.lines:
        points = np.column_stack([line.get_xdata(), line.get_ydata()]).astype(float)
        if not line.get_label().startswith("_"):
            yield line, points[np.isfinite(points).all(axis=1)]


MEASURED = {"perplexity", "gradient share", "cumulative gradient", "attention ERF", "tokens"}
NUMBER = int | float | Fraction | np.number


def in_table(data):
    """The numbers of each row, rows that differ in seed or head alone as their mean; what was
    measured beside them over the row length."""
    groups = {}
    for row in data.rows:
        cells = dict(zip(data.columns, row, strict=True)) | {"seed": 0, "head": 0}
        cells.pop("TRF of the rows", None)
        key = tuple((k, v) for k, v in cells.items() if k not in MEASURED)
        groups.setdefault(key, []).append([float(v) for k, v in cells.items() if k in MEASURED])
    for key, rows in groups.items():
        known = {k: float(v) for k, v in key if isinstance(v, NUMBER)}
        means = np.mean(rows, axis=0).tolist()
        yield [*known.values(), *means, *(y / known.get("row", 1) for y in means)]


def test_every_point_of_a_line_is_in_the_table_beside_it(drawn):
    for name, drawing in drawn.items():
        table = {
            (float(f"{x:.6g}"), float(f"{y:.6g}"))
            for numbers in in_table(drawing.data)
            for x, y in product(numbers, repeat=2)
        }
        for axes in drawing.figure.axes:
            after = axes.get_xlabel().startswith("n + 1")
            for line, points in named(axes):
                shown = {(float(f"{x - after:.6g}"), float(f"{y:.6g}")) for x, y in points}
                assert shown <= table, (name, line.get_label(), shown - table)


FAR = ("qin2024.fig6", "KERPLE-log, r1 = 6/5")
"""A line that leaves its frame: it ends far above the others."""
ZOOMS = {"chi2023.fig6", "chi2023.fig7"}
"""Below is the beginning of what is above."""
CLOUDS = {"farfield.levels", "farfield.hold-and-use"}
"""Points with a name each, which take more room."""


def test_lines_fill_their_frames_and_lie_within_them(drawn):
    for name, drawing in drawn.items():
        above, *below = drawing.figure.axes
        for axes in (above, *below * (name not in ZOOMS)):
            transform = axes.transData + axes.transAxes.inverted()
            lines = [
                (xy.clip(0, 1) if (name, line.get_label()) == FAR else xy)
                for line, points in named(axes)
                for xy in [transform.transform(points)]
            ]
            if lines:
                low, high = np.min(np.concatenate(lines), 0), np.max(np.concatenate(lines), 0)
                assert (low > -0.001).all() and (high < 1.001).all(), name
                assert (high - low > (0.75, 0.55 if name in CLOUDS else 0.65)).all(), name


def test_a_panel_takes_at_most_three_inches_of_a_column(drawn):
    for name, drawing in drawn.items():
        width, height = drawing.figure.get_size_inches()
        frames = [axes for axes in drawing.figure.axes if axes.get_label() != "<colorbar>"]
        rows = {round(axes.get_position().y0, 2) for axes in frames}
        assert width == 3.4 and 1.5 < height / len(rows) <= (4.2 if name in CLOUDS else 3), name


def test_cells_leave_little_of_their_figure_empty():
    """Squares are as large as the width of a column allows."""
    for e in (e for e in INDEX.values() if e.kind == "schematic"):
        figure = recompute(e).figure
        figure.get_layout_engine().execute(figure)
        assert (figure.get_tightbbox().size > 0.87 * figure.get_size_inches()).all(), e.id


def test_cells_say_what_is_seen():
    """Seen keys grey, those pointed at blue, others empty; as much room left as right of them."""
    axes, seen = Figure().subplots(), np.tri(3, 4, dtype=bool)
    cells(axes, seen, lambda i, j: f"{i},{j}", accent=np.eye(3, 4, dtype=bool))
    (mesh,) = axes.collections
    red, green, blue, alpha = mesh.to_rgba(mesh.get_array()).T
    assert alpha.T.tolist() == [[0.65, 0, 0, 0], [0.4, 0.65, 0, 0], [0.4, 0.4, 0.65, 0]]
    grey = seen & ~np.eye(3, 4, dtype=bool)
    assert (red.T == green.T)[grey].all() and (blue.T > red.T)[np.eye(3, 4, dtype=bool)].all()
    texts = {text.get_text(): text.get_position() for text in axes.texts}
    assert texts == {f"{i},{j}": (j, i) for i, j in np.argwhere(seen)}
    for (low, high), size in ((axes.get_xlim(), 4), (axes.get_ylim()[::-1], 3)):
        assert 0 < -0.5 - low < 0.2 and low + high == pytest.approx(size - 1)


@pytest.mark.parametrize(
    ("ends", "wanted"),
    [
        ((0.7, 30), [1, 2, 5, 10, 20]),
        ((15, 75), [20, 30, 40, 50, 60]),
        ((0.03, 0.06), [0.03, 0.04, 0.05, 0.06]),
        ((410, 490), [420, 440, 460, 480]),
        ((1.01, 1.029), [1.01, 1.015, 1.02, 1.025]),
        ((1e-6, 3e-6), [1e-6, 2e-6, 3e-6]),
    ],
)
def test_ticks_are_round(ends, wanted):
    assert round_numbers(*ends) == pytest.approx(wanted)


def test_a_heat_map_is_the_bias_by_distance_and_empty_after_the_query():
    image = heat_map(Figure().subplots(), np.array([0.5, -1, -2])).get_array()
    assert image.filled(9).tolist() == [[0.5, 9, 9], [-1, 0.5, 9], [-2, -1, 0.5]]


def test_what_helps_to_read_is_fainter_than_what_is_read():
    """Grid, frame, comparisons, leaders and data, in this order of weight."""
    for style in (STYLE, COLUMN_STYLE):
        grid, frame = style["grid.linewidth"], style.get("axes.linewidth", 0.8)
        assert grid < frame <= RULE["linewidth"] < style["lines.linewidth"] < 1.7
        assert style["grid.alpha"] < 0.2 and style["hatch.linewidth"] < frame
        assert style["lines.markersize"] <= 4 * style["lines.linewidth"]
        assert style["legend.fontsize"] < style["font.size"] == style["axes.titlesize"] <= 10


@pytest.mark.sampled(2)
@pytest.mark.parametrize("what", ["bias", "weights", "trf", "leak", "price", "window"])
def test_names_of_a_plot_are_clear(what):
    formulas = ("alibi", "-2*log(1+n)", "-log(1+n)^(3/2)", "-n/8")
    assert not faults(farfield.plot(*formulas, what=what).figure)


def test_a_map_is_clear():
    assert not faults(parameter_map("-a*log(1+n)", {"a": "1/2:3"}, points=4).figure)
    plane = {"a": "1/10:3", "b": "1/10:1"}
    assert not faults(parameter_map("-a*n^b", plane, points=4).figure)


def test_lines_that_end_together_are_named_in_the_order_in_which_they_come_there():
    x = np.linspace(0, 1, 50)
    lines = [Named(f"power {k}", x, x**k) for k in (1, 3, 9)]
    figure = charted(2.5, Panel(lines, {"xlim": (0, 1), "ylim": (0, 1.1)}))
    (axes,) = figure.axes
    assert not faults(figure)
    heights = {text.get_text(): text.get_position()[1] for text in axes.texts}
    assert heights["power 1"] > heights["power 3"] > heights["power 9"]
    assert all(text.get_position()[0] > 1 for text in axes.texts), "right of the frame"


def test_faults_are_found():
    figure = Figure()
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1])
    axes.text(0.45, 0.5, "through")
    axes.text(0.2, 0.8, "one name")
    axes.text(0.22, 0.8, "another")
    assert faults(figure) == ["another on one name", "through is crossed"]
