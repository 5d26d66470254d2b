"""Pages: well-formed, self-contained, the same bytes each time; figures that do not collide."""

import dataclasses
import importlib
import itertools
import math
import re
from functools import cache
from html import escape, unescape
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree

import pytest
import sympy
from fontTools.ttLib import TTFont

from farfield.figures.answer_pages import entry_sheet, study_sheet, write_study
from farfield.figures.document import Columns, Section, Sheet, folded, laid_out, page, piece
from farfield.figures.priors import against_critical
from farfield.figures.style import INK, house, new_figure, picture_file, svg
from farfield.numerics.horizon import dtype_horizon
from farfield.numerics.leak import leak
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.resolution import attention_resolution
from farfield.theory.answers.blocks import Curve, Ladder, Line, Rung, Weight, note, sentence, table
from farfield.theory.answers.notation import StyledWord, expression_mathml, html, terminal, words
from farfield.theory.answers.writers.svg import NARROW, Axis, climbed, drawn
from farfield.theory.convergence import check_convergence
from farfield.theory.encodings import CATALOGUE, encoding, encodings
from farfield.theory.functions.nodes import n
from farfield.validation.atlas import entry
from farfield.validation.papers.ledger import plain_sentences
from farfield.validation.study.study import study

VOID = {"meta", "link", "br", "hr", "img"}


class Balanced(HTMLParser):
    """Fails on a tag that is not closed in order; collects ids and outside addresses."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.outside = [], [], []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if "id" in values:
            self.ids.append(values["id"])
        for key in ("href", "src", "xlink:href"):
            if re.match(r"https?:|//", values.get(key) or ""):
                self.outside.append(values[key])
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag


def sound(shown):
    """A text of HTML whose tags are closed, whose ids are unlike, and that asks for nothing."""
    parser = Balanced()
    parser.feed(shown)
    assert not parser.open and not parser.outside and len(parser.ids) == len(set(parser.ids))
    return parser


def page_of(s):
    """The page of a study."""
    return page(study_sheet(s))


@pytest.fixture(scope="module")
def trained(tiny_study):
    found, chosen = tiny_study
    return dataclasses.replace(found, asked=tuple(name for name, _ in chosen))


def test_the_page_is_sound(trained):
    shown = page_of(trained)
    parser = sound(shown)
    assert shown.count("<script") == 1 and shown.count('class="curve wide"') == 2
    for reference in re.findall(r"url\(#([^)]+)\)", shown) + re.findall(r'href="#([^"]+)"', shown):
        assert reference in parser.ids, reference
    for name in ("Type 1", "NoPE", "ALiBi", "RoPE", "KERPLE-log", "gradient ERF"):
        assert name in shown
    assert shown == page_of(trained)


def test_the_page_is_written_beside_its_data(trained, tmp_path):
    place = write_study(trained, tmp_path / "new" / "folder")
    assert place.read_text().startswith("<!doctype html>")
    assert (place.parent / "study.json").read_text() == trained.to_json(1)
    assert not list(place.parent.glob(".partial*"))


def test_a_study_without_runs_shows_no_measurement():
    shown = page_of(study("type1"))
    assert "What trained models lost" not in shown and ">61<" in shown


def test_what_has_no_number_is_said_where_it_is_told():
    shown = page_of(study(["type1", "rope", "learned"]))
    assert "<title>Study of Type 1, RoPE, Learned</title>" in shown
    told = "Receptive field and leak are defined for additive biases only."
    assert shown.count(told) == 2
    assert shown.index("RoPE</h2>") < shown.index(told) < shown.index("Learned</h2>")
    assert shown.index("Learned</h2>") < shown.rindex(told)
    assert "<td>–</td>" not in shown


def test_a_table_of_values_is_drawn_as_far_as_it_was_seen():
    values = [-math.sqrt(n) for n in range(100)]
    shown = page_of(study(encoding(values)))
    assert "so its curve decides nothing" in shown and shown.count('class="curve wide"') == 1
    drawn = against_critical([("mine", encoding(values))])
    (line,) = (line for line in drawn.lines if line.name == "mine")
    assert line.x[-1] == 100 and line.y[-1] == pytest.approx(math.exp(-math.sqrt(99)))
    assert "decides nothing" not in against_critical([("other", encoding("-n/8"))]).title


def test_the_page_of_an_idea_holds_all_that_is_known():
    s = study(["-log(1+n)-3/2*log(log(n+3))", "alibi"])
    shown = page_of(s)
    sound(shown)
    assert len(shown) < 1_000_000 and 'class="ladder wide"' in shown
    for said in (
        "Place among the known encodings",
        "attention resolution",
        "dtype horizon",
        "leak",
        "Rung 2",
        "ε → 0",
        "KERPLE-power",
        "fp16",
        "share of the nearest 64",
        "certified window",
    ):
        assert said in shown, said
    assert shown == page_of(s)


def test_an_entry_of_the_atlas_has_all_that_is_known_of_it():
    e = entry(encoding("alibi"))
    shown = page(entry_sheet(e))
    sound(shown)
    for said in (
        "catalogue.alibi",  # the theorem that the prover has checked
        "satisfies.alibi",  # a claim of a paper
        "1179",  # receptive field
        "1868",  # certified window
        "geometric",  # a dialect
        "trained cases",  # the evidence of the forecast
    ):
        assert said in shown and said in str(e), said
    rope = page(entry_sheet(entry(encoding("rope"))))
    assert "BoundedLogits.bounded_mass_escapes" in rope and "no fixed window" in rope
    assert "satisfies.alibi" not in rope


def test_a_page_says_what_its_answer_says():
    """No word of its own but headings and captions: each block stands on it, in order."""
    (e,) = study("[-n/4; 0 x7]").about(asked=True)
    blocks = [b for b in e.prediction.blocks() if not isinstance(b, Curve | Ladder)]
    shown, at = page_of(study("[-n/4; 0 x7]")), 0
    for part in (piece([b]).strip() for b in blocks):
        assert shown.find(part, at) >= at, part[:80]
        at = shown.index(part, at)
    assert 'data-name="head 1"' in shown and 'data-name="heads 2 to 8"' in shown


@cache
def decided(formula):
    return study(formula)


def test_results_show_themselves_in_a_notebook():
    shown = check_convergence("-2*log(1+n)")._repr_html_()
    assert "<math" in shown and "<li>" in shown and "converges" in shown
    sound(shown)
    for result in (
        theoretical_receptive_field("alibi", "1/10"),
        leak("-n/4", 64),
        dtype_horizon("-n/4", "fp16"),
        encoding("window"),
        attention_resolution("-n/4", 64),
        check_convergence("rope"),
        decided("-n"),
    ):
        sound(result._repr_html_())


def test_a_place_is_a_table_in_a_notebook():
    place = decided("-n").place
    shown = place._repr_html_()
    assert shown.count("<table") == 1 and shown.count("<tr") == len(place.ranks) + 1
    for r in place.ranks:
        assert f">{'<strong>-n</strong>' if r.asked else escape(r.name)}</th>" in shown, r.name


@pytest.mark.parametrize(
    "e",
    [
        sympy.Piecewise((0, n < 4), (sympy.S.NegativeInfinity, True)),
        sympy.Function("O")(1 / n),
        encoding("t5").formula,
        *(encoding(k).formula for k in encodings() if encoding(k).formula is not None),
    ],
)
def test_formulas_are_well_formed_mathml(e):
    root = ElementTree.fromstring(expression_mathml(e))
    assert root.tag == "math" and len(root)
    assert "Piecewise" not in "".join(root.itertext())


def test_text_of_users_is_escaped():
    section = Section(words("a & b"), [sentence("{x}", x="<i>"), note("x < y")])
    shown = page(Sheet(words("<b>"), [section, section]))
    assert "<title>&lt;b&gt;</title>" in shown and "a &amp; b" in shown
    assert "x &lt; y" in shown and "&lt;i&gt;" in shown and "<i>" not in shown


def test_figures_are_deterministic_and_prefixed():
    def draw(name="one"):
        with house():
            figure, axes = new_figure(3.6)
            axes.plot([1, 2, 3], label="a", marker="o")
            axes.legend()
        root = ElementTree.fromstring(picture_file(figure, name))
        assert [part.tag.rpartition("}")[2] for part in root][:2] == ["style", "rect"]
        return svg(figure, name)

    def own(drawn):
        return {*re.findall(r'(?:id|class)="([^"]+)"', drawn)}

    shown = draw()
    assert shown == draw()
    assert INK not in shown and "currentColor" in shown
    assert own(shown) and not own(shown) & own(draw("two"))
    assert {*re.findall(r'(?:ref="#|url\(#)([^")]+)', shown)} <= own(shown)


# -- drawings without a library -------------------------------------------------------------------


def curve(**options):
    lines = tuple(
        Line(f"line {k}", (1.0, 10.0, 100.0), (1.0, 0.1 / (k + 1), 0.01 / (k + 1)), **options)
        for k in range(9)
    )
    return Curve("Nine lines.", "x", "y", lines, True, True, marks=(("one", 0.5),))


@pytest.mark.parametrize("weight", Weight)
def test_a_curve_is_sound_and_names_its_lines_apart(weight):
    root = ElementTree.fromstring(drawn(curve(weight=weight)))
    named = [e for line in root.iter("g") for e in line.iter("text")]
    assert len(named) == 9
    places = sorted((float(e.get("x")), float(e.get("y"))) for e in named)
    for (x0, y0), (x1, y1) in itertools.pairwise(places):
        assert x0 != x1 or y1 - y0 > 14, "names that stand beside each other have a line each"
    narrow = ElementTree.fromstring(drawn(curve(), NARROW))
    assert not [e for line in narrow.iter("g") for e in line.iter("text")], "a legend has them"


def test_measured_points_have_bars_ticks_and_the_mark_of_their_verdict():
    x = (64.0, 256.0, 1024.0)
    verdicts = ("converges", "diverges", "out of scope")
    lines = tuple(
        Line(
            v, x, (1.0, 1.1, 1.2), verdict=v, bars=tuple((y - 0.1, y + 0.3) for y in (1, 1.1, 1.2))
        )
        for v in verdicts
    )
    root = ElementTree.fromstring(drawn(Curve("Ratios.", "x", "y", lines, True, True, at=x)))
    texts = [e.text for e in root.iter("text")]
    assert [t for t in texts if t in ("64", "100", "256", "1000", "1024")] == ["64", "256", "1024"]
    for group, (dots, open_) in zip(root.iter("g"), ((3, 0), (3, 3), (0, 0)), strict=True):
        circles = list(group.iter("circle"))
        assert (len(circles), sum(c.get("class") == "open" for c in circles)) == (dots, open_)
        bars = [e.get("d") for e in group.iter("path") if e.get("class") == "bar"]
        ends = [tuple(map(float, re.findall(r"[\d.]+", d))) for d in bars]
        assert len(ends) == 3 and all(low > high for _, low, high in ends), "the frame holds them"
        assert ends[0][1] - ends[0][2] > ends[2][1] - ends[2][2], "on a logarithmic axis"


def test_an_axis_tells_a_script_what_its_pixels_mean():
    axis = Axis([1, 1e6], True, 60, 600)
    kind, low, high, first, last = axis.told().split()
    back = float(low) * (float(high) / float(low)) ** (
        (axis.pixel(1234.5) - float(first)) / (float(last) - float(first))
    )
    assert kind == "log" and back == pytest.approx(1234.5)


def test_a_ladder_stands_on_the_side_of_its_limit():
    def dot(limit):
        rung = Rung(words("`p/q -> limit`"), limit)
        root = ElementTree.fromstring(climbed(Ladder("t", (rung,), "converges")))
        return float(next(e for e in root.iter() if e.tag == "circle").get("cx"))

    order = [dot(x) for x in (-math.inf, 0.0, 1.0, 2.0, math.inf)]
    assert order == sorted(order) and len(set(order)) == 5


@pytest.mark.parametrize(
    ("formula", "rungs"),
    [("-log(1+n)", 2), ("-2*log(1+n)", 1), ("-log(1+n)-2*log(log(n+3))", 2), ("-n", 1), ("0", 1)],
)
def test_the_ladder_of_a_proof_has_its_rungs(formula, rungs):
    found = check_convergence(formula)
    (ladder,) = [b for b in found.blocks() if isinstance(b, Ladder)]
    assert len(ladder.rungs) == rungs and ladder.verdict == found.verdict
    assert all(r.limit == 1 for r in ladder.rungs[:-1])
    assert (ladder.rungs[-1].limit > 1) is found.converges


def test_mathematics_is_typeset():
    shown = html(words("`rho_0 = -p = {e}`", e=-2 * sympy.log(n + 1) ** sympy.Rational(3, 2)))
    assert "<mo>-</mo>" not in shown and '<mo form="prefix">&#x02212;</mo><mi>p</mi>' in shown
    assert "<mn>3</mn><mo>&#x0002F;</mo><mn>2</mn>" in shown, (
        "a fraction in an exponent on one line"
    )
    assert '<mn>2</mn><mspace width="0.167em" />' in shown, (
        "a space between a factor and a function"
    )
    assert 'stretchy="true"' not in shown and '<mo stretchy="false">&#x00028;</mo>' in shown


def test_the_picture_of_the_readme_says_what_is_computed(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "docs"))
    module = importlib.import_module("picture")
    for name, text in module.pictures().items():
        shown = (module.STATIC / name).read_text(encoding="utf-8")
        assert text == shown, f"{name}: python docs/picture.py"


def test_the_readme_and_the_essay_count_the_same_sentences():
    """`make docs` holds the essay against the ledger."""
    root = Path(__file__).parents[2]
    readme = " ".join((root / "README.md").read_text(encoding="utf-8").split())
    essay = (root / "docs/how-far-does-it-see.html").read_text(encoding="utf-8")
    counts = re.search(
        r"(\d+) sentences of three papers (\d+) hold as printed, (\d+) need a "
        r"correction, (\d+) are wrong",
        readme,
    )
    assert counts is not None
    total, *parts = counts.groups()
    assert f"<h2>{total} sentences of three papers</h2>" in essay
    plain = len(plain_sentences())
    assert f"{plain} more plainly hold as printed" in essay
    parts[0] = str(int(parts[0]) - plain)
    for part, verdict in zip(
        parts, ("holds as printed", "needs a correction", "wrong"), strict=True
    ):
        assert f"</span>{verdict}: {part}</span>" in essay


def test_the_font_has_every_character_of_a_formula():
    """Formulas of the catalogue, of functions and of the essay; a missing one would be drawn in
    another font."""
    with (files("farfield.figures") / "templates" / "math.woff").open("rb") as file:
        font = TTFont(file)
        known = set(map(chr, font.getBestCmap()))
    assert "MATH" in font, "roots and sums would not grow"
    formulas = [*map(str, CATALOGUE), "-sqrt(n)*erf(n)/Gamma(n)", "-floor(log(n+1))*abs(cos(pi*n))"]
    shown = piece([e for name in formulas for e in check_convergence(name).blocks()])
    texts = re.findall("<m[ion][^>]*>([^<]*)<", shown)
    assert len(texts) > 100
    assert not {c for text in texts for c in unescape(text)} - known


def test_drawings_stand_beside_what_is_before_the_first_wide_table():
    wide, narrow = (table([f"c{k}" for k in range(n)], [range(n)]) for n in (5, 4))
    words, drawing, more = note("a"), Curve("t", "x", "y", ()), Curve("more", "x", "y", ())
    beside, *below = laid_out([words, drawing, narrow, wide, words], [more])
    assert beside == Columns([words, narrow], [drawing, more]) and below == [wide, words]
    assert laid_out([words, wide]) == [words, wide]
    assert laid_out([drawing, words]) == [Columns([words], [drawing])]


def test_a_long_table_shows_its_first_rows_and_folds_the_rest_away():
    rows = [(k, k * k) for k in range(7)]
    short, whole = folded([table(("n", "square"), rows)])
    assert (len(short.rows), whole.text, len(whole.items[0].rows)) == (4, ("all 7 rows",), 7)
    assert folded([table(("n", "square"), rows[:6])])[0].rows == whole.items[0].rows[:6]


@pytest.mark.parametrize(("at", "near"), [(0, "idea123"), (4, "23idea5"), (6, "345idea")])
def test_an_excerpt_is_around_the_row_that_is_asked_about_without_its_empty_columns(at, near):
    rows = [(k, "", 2 * k) for k in range(7)]
    rows[at] = (StyledWord("idea", "strong"), "", 2 * at)
    short, _ = folded([table(("n", "why not", "double"), rows, numeric=(2,))])
    assert "".join(terminal(name) for name, _ in short.rows) == near
    assert (short.header, short.numeric) == ((("n",), ("double",)), (1,))
