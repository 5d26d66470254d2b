"""Every exhibit, plot and map: names are clear of lines and of each other, marks say verdicts, what
is drawn and what a caption says is in the table beside the figure, and all of it is as recorded.

`python tests/figures/test_drawings.py` records it anew in `tests/data/drawings.json`: how a figure
looks follows from no law, so a change of it shows there. The words of captions are free.
"""

import json
import re
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from polars import col, concat, lit

import farfield
from farfield.figures.answer_charts import curve_of
from farfield.figures.charts import Named, Panel, charted
from farfield.figures.exhibit import NoResults
from farfield.figures.gallery import recompute
from farfield.figures.index import INDEX
from farfield.figures.matrices import heat_map
from farfield.figures.papers import farfield as own_models
from farfield.figures.papers.measured_figures import verdict_of
from farfield.figures.parameter_map import parameter_map
from farfield.figures.priors import against_critical, kept_share
from farfield.figures.style import round_numbers, spoken, told_apart
from farfield.theory.answers.notation import terminal
from farfield.theory.answers.writers.svg import COLOURS, NO, YES
from farfield.theory.encodings import encoding
from farfield.validation.results import results
from farfield.validation.study.place import place
from farfield.validation.study.prediction import predict


@cache
def exhibit(name):
    """An exhibit as it is drawn from the committed results, or why it is missing."""
    try:
        return recompute(INDEX[name])
    except NoResults as why:
        return str(why)


PLOTTED = ("alibi", "-2*log(1+n)", "-log(1+n)^(3/2)", "-n/8")
DOMAINS = {"a": "real", "b": "real"}
MORE = {
    **{
        f"plot of {what}": lambda what=what: farfield.plot(*PLOTTED, what=what, length=64)
        for what in ("bias", "weights", "trf", "leak", "price", "window")
    },
    "plot of nothing": lambda: farfield.plot("0", length=64),
    "plot of near distances": lambda: farfield.plot("-log(n-5)", length=8),
    "plot of small weights": lambda: farfield.plot("-n/8", what="weights", length=1024),
    "plot of a long row": lambda: farfield.plot("-n/8", "0", length=10**5),
    "plot of tables": lambda: farfield.plot([0, -1, -3, -4], "alibi", "alibi", eps="1/7"),
    "map of a line": lambda: parameter_map("-a*log(1+n)", {"a": "1/2:3"}, points=4),
    "map of a wide line": lambda: parameter_map("-a*n", {"a": "1/100:1"}, points=4, eps="1/5"),
    "map of a plane": lambda: parameter_map("-a*n^b", {"a": "0.1:3", "b": "0.1:1"}, points=4),
    "map with an edge": lambda: parameter_map(
        "-(a+b^2-1)*log(1+n)", {"b": "-2:2", "a": "-1:3"}, points=3, assumptions=DOMAINS
    ),
}


class Shown:
    """A curve of made-up answers, as `plot` draws it."""

    def __init__(self, curve):
        self.curve = curve
        self.figure = curve_of(self)

    def blocks(self):
        return [self.curve]

    def __str__(self):
        return f"{self.curve.title} {[line.weight.name for line in self.curve.lines]}"


IDEAS = {"one": "-2*log(1+n)", "heads": "[-n/4; -n/64; 0]", "exact": "-log(1+n)"}
MORE |= {
    "weights of ideas": lambda: Shown(
        against_critical([(k, encoding(f)) for k, f in IDEAS.items()])
    ),
    "weights of a table": lambda: Shown(
        against_critical([("values", encoding([-k / 2 for k in range(60)]))])
    ),
    "weights among the catalogue": lambda: Shown(
        against_critical(
            [("mine", encoding("-n/3"))], place([predict(encoding("-n/3"), "mine")]).ranks
        )
    ),
    "shares of ideas": lambda: Shown(
        kept_share([(k, encoding(f), at) for at, (k, f) in enumerate(IDEAS.items())])
    ),
    "shares of heads": lambda: Shown(
        kept_share([("heads", encoding(IDEAS["heads"]), "converges")])
    ),
}
"""Plots, maps and curves."""
MORE = {name: cache(draw) for name, draw in MORE.items()}


# -- what was recorded -----------------------------------------------------------------------------

FILE = Path(__file__).parents[1] / "data" / "drawings.json"
LOOK = ("linestyle", "linewidth", "marker", "markersize", "fillstyle", "alpha", "drawstyle")
LOOK += ("zorder", "clip_on", "markerfacecolor")


def numbers(text):
    return [float(x.replace(",", "")) for x in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]


def short(value):
    """A number with five digits; what is none as it is."""
    if isinstance(value, float | np.number) and not isinstance(value, np.bool_):
        return float(f"{value:.5g}") if np.isfinite(value) else str(value)
    return value if isinstance(value, int | str | None) else str(value)


def course(values):
    """How many numbers there are, the first, the last and the mean of those that are finite."""
    values = np.ma.masked_invalid(np.ma.asarray(values, float)).compressed()
    return [len(values), *map(short, (values[0], values[-1], values.mean()))] if len(values) else []


def line(found):
    """A line: its name, its colour and look, its points."""
    look = [short(getattr(found, f"get_{name}")()) for name in LOOK]
    ends = [course(x) for x in found.get_xydata().T]
    return [found.get_label(), to_hex(found.get_color()), *look, *ends]


def filled(found):
    """What is filled: its colours, its width of line, its extent or its cells."""
    shade = sorted({to_hex(c, keep_alpha=True) for c in found.get_facecolor()})
    paths = [path.vertices for path in found.get_paths()] or [[]]
    cells = found.get_array() if isinstance(found, QuadMesh) else np.concatenate(paths)
    ink = sorted({to_hex(c, keep_alpha=True) for c in found.get_edgecolor()})
    return [shade, ink, [*map(short, found.get_linewidth())], found.zorder, course(np.ravel(cells))]


def axis(found):
    """An axis: its label, scale, ends, ticks and grid, the sizes of its type."""
    ticks = [[short(float(at)) for at in found.get_majorticklocs()]]
    words = [text.get_text() for text in found.get_ticklabels()]
    ends = [short(float(end)) for end in found.get_view_interval()]
    grid = [(x.get_visible(), x.get_linewidth(), x.get_alpha()) for x in found.get_gridlines()[:1]]
    sizes = [text.get_fontsize() for text in (found.label, *found.get_ticklabels()[:1])]
    return [found.get_label_text(), found.get_scale(), ends, *ticks, words, *grid, sizes]


def frame(axes):
    """A frame with all that is in it, and its place in the figure."""
    images = [
        [course(i.get_array()), [short(float(x)) for x in (*i.get_extent(), *i.get_clim())]]
        for i in axes.images
    ]
    texts = [
        [
            *(t.get_text(), to_hex(t.get_color()), t.get_fontsize(), t.get_ha(), t.get_va()),
            *(t.get_clip_on(), *(round(float(x), 3) for x in t.get_position())),
        ]
        for t in axes.texts
    ]
    areas = [
        [to_hex(p.get_facecolor(), keep_alpha=True), p.get_zorder(), p.get_linewidth()]
        for p in axes.patches
    ]
    spines = [[s.get_visible(), s.get_linewidth()] for s in axes.spines.values()]
    places = {(to_hex(t.get_color()), round(float(t.get_position()[1]), 4)) for t in axes.texts}
    leaders = [  # which of two names has one depends on the height of their type
        [
            *(x.get_linewidth(), x.get_clip_on(), x.get_xydata()[:, 0].round(2).tolist()),
            (to_hex(x.get_color()), round(float(x.get_xydata()[1, 1]), 4)) in places,
        ]
        for x in axes.lines
        if x.get_gid() == "leader"
    ]
    return {
        "title": [axes.get_title(), axes.title.get_fontsize()],
        "place": [[round(float(x), 2) for x in axes.get_position().bounds], axes.get_aspect()],
        "spines": spines,
        "x": axis(axes.xaxis),
        "y": axis(axes.yaxis),
        "lines": [line(x) for x in axes.lines if x.get_gid() != "leader"],
        "leaders": leaders,
        "filled": [filled(x) for x in axes.collections],
        "areas": areas,
        "images": images,
        "texts": texts,
    }


def figure(found):
    if (layout := found.get_layout_engine()) is not None:
        layout.execute(found)
    return {
        "inches": [short(x) for x in found.get_size_inches()],
        "frames": [frame(axes) for axes in found.axes],
    }


def rows_of(table):
    """A table: its columns, the course of its numbers, and its rows, of a long one three."""
    columns = zip(*table.rows, strict=True)
    numbers = [[x for x in each if isinstance(x, int | float | np.number)] for each in columns]
    rows = table.rows if len(table.rows) <= 30 else table.rows[:: len(table.rows) // 2]
    told = [[short(x) for x in row] for row in rows]
    return [len(table.rows), list(table.columns), told, [course(each) for each in numbers]]


def recorded(name):
    """All that is drawn and the numbers that are told, or why an exhibit is missing."""
    found = exhibit(name) if name in INDEX else MORE[name]()
    if isinstance(found, str):
        return found
    said = {"numbers": numbers(str(found))}
    if name in INDEX:
        beside = [[*map(terminal, row)] for row in found.beside.rows] if found.beside else []
        said = {"numbers": numbers(found.caption + found.made), "beside": beside}
        said |= {"data": rows_of(found.data), "shown": found.shown and rows_of(found.shown)}
    return said | (figure(found.figure) if found.figure else {})


LAID_OUT = {"place": 0.015, "texts": 0.003}
"""How far a layout may move: another build of matplotlib renders its type a little wider."""


def require_same(found, wanted, room, at):
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys(), at
        for key, value in wanted.items():
            require_same(found[key], value, LAID_OUT.get(key, room), f"{at}, {key}")
    elif isinstance(wanted, list):
        assert len(found) == len(wanted), at
        for k, value in enumerate(wanted):
            require_same(found[k], value, room, f"{at}, {k}")
    else:
        moved = room > 0 and isinstance(wanted, float)
        assert found == (pytest.approx(wanted, rel=0, abs=room) if moved else wanted), at


@pytest.mark.parametrize("name", [*INDEX, *MORE])
def test_a_drawing_is_as_recorded(name):
    found = json.loads(json.dumps(recorded(name)))
    require_same(found, json.loads(FILE.read_text())[name], 0.0, name)


# -- geometry --------------------------------------------------------------------------------------


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
    """Every figure with lines, with its data."""
    names = (e.id for e in INDEX.values() if "table" not in e.id and e.kind != "schematic")
    return {name: exhibit(name) for name in names if not isinstance(exhibit(name), str)}


def test_no_line_goes_through_a_name(drawn):
    assert len(drawn) > 15
    assert not {name: f for name, drawing in drawn.items() if (f := faults(drawing.figure))}


def test_marks_say_verdicts():
    """Points are filled where a series converges, open where it diverges, else crosses;
    and no two lines look alike."""
    assert not {YES, NO} & set(COLOURS)
    filled = ("alibi", "type1", "type2", "window 32", "rope + BCA", "nope + window 64")
    for labels, mark in (
        (filled, ("o", "full")),
        (("sandwich", "nope", "-log(1+n)"), ("o", "none")),
        (("rope", "kerple_log", "a module"), ("x", "full")),
    ):
        each = [told_apart(k, verdict_of(label))[1] for k, label in enumerate(labels)]
        assert {(look["marker"], look.get("fillstyle", "full")) for look in each} == {mark}
    looks = [told_apart(k, None) for k in range(4 * len(COLOURS))]
    assert len({(colour, look["linestyle"]) for colour, look in looks}) == len(looks)


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


@pytest.mark.parametrize(
    ("ends", "wanted"),
    [
        ((0.7, 30), [1, 2, 5, 10, 20]),
        ((15, 75), [20, 30, 40, 50, 60]),
        ((0.03, 0.06), [0.03, 0.04, 0.05, 0.06]),
        ((410, 490), [420, 440, 460, 480]),
        ((1, 1.12), [1, 1.05, 1.1]),
        ((1.0001, 1.0004), []),
        ((1.01, 1.029), [1.01, 1.015, 1.02, 1.025]),
        ((1e-6, 3e-6), [1e-6, 2e-6, 3e-6]),
    ],
)
def test_ticks_are_round(ends, wanted):
    assert round_numbers(*ends) == pytest.approx(wanted)


def test_a_heat_map_is_the_bias_by_distance_and_empty_after_the_query():
    """Which a recorded drawing does not tell from its mirror image."""
    image = heat_map(Figure().subplots(), np.array([0.5, -1, -2])).get_array()
    assert image.filled(9).tolist() == [[0.5, 9, 9], [-1, 0.5, 9], [-2, -1, 0.5]]


@pytest.mark.parametrize("name", [name for name in MORE if re.match("plot|map (?!with)", name)])
def test_names_of_a_plot_are_clear(name):
    assert not faults(MORE[name]().figure)


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


# -- captions beside their data --------------------------------------------------------------------


def test_biases_with_no_better_one_are_named_in_the_caption():
    drawing = exhibit("farfield.levels")
    short = [row for row in drawing.data.rows if row[1] == 1000]
    best = [a for a in short if not any(b[3] < a[3] and b[4] < a[4] for b in short)]
    names = " or ".join(spoken(row[0]) for row in sorted(best, key=lambda row: row[3]))
    assert f"none of {len(short)} biases" in drawing.caption and f"than {names}," in drawing.caption


OTHERS = {"trained": 8, "layers": 9, "width": 8, "steps": 8, "mask": "BCA", "protocol": "scores"}
OTHERS |= {"text": "prose", "experiment": "floors", "order_loss": None}
SPARED = {"levels": ("steps", "experiment", "order_loss"), "mixtures": ("text", "experiment")}
SPARED["hold_and_use"] = (*OTHERS.keys() - {"trained", "mask"},)
"""What may differ among the models of a drawing, or is asked of some of its rows alone."""


@pytest.mark.parametrize("name", SPARED)
def test_models_of_another_setting_are_not_drawn_among_ours(name, monkeypatch):
    known, draw = results(), getattr(own_models, name)
    spoilt = known.with_columns(nats=9.0, ratio=9.0, accuracy=0.0)
    kept = {k: lit(v, known.schema[k]) for k, v in OTHERS.items() if k not in SPARED[name]}
    others = [spoilt.filter(col(k).ne_missing(v)).with_columns(v.alias(k)) for k, v in kept.items()]
    before = draw().data
    monkeypatch.setattr(own_models, "results", lambda: concat([known, *others]))
    assert len(others) > 1 and draw().data == before


if __name__ == "__main__":
    each = (f"{json.dumps(name)}: {json.dumps(recorded(name))}" for name in (*INDEX, *MORE))
    FILE.write_text("{\n" + ",\n".join(each) + "\n}\n", encoding="utf-8")
