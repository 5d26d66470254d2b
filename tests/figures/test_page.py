"""Pages: well-formed, self-contained, the same bytes each time; figures that do not collide."""

import re
from functools import cache
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
import sympy

from farfield.figures.page import document, study_page, write_page
from farfield.figures.style import INK, house, look, new_figure, svg
from farfield.numerics.horizon import dtype_horizon
from farfield.numerics.leak import leak
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.resolution import attention_resolution
from farfield.theory.answers.answer import InputError
from farfield.theory.answers.mathml import math
from farfield.theory.convergence import check_convergence
from farfield.theory.encodings import encoding, encodings
from farfield.theory.functions.nodes import n
from farfield.validation.study import demo_encodings, study, survey

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


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    chosen = [p for p in demo_encodings() if p[0] in ("type1", "nope", "alibi", "rope")]
    store = tmp_path_factory.mktemp("runs")
    chosen.append(("kerple_log", encoding("kerple_log")))
    return survey(chosen, train=[n for n, _ in chosen[:4]], preset_name="tiny", store=store)


def test_the_page_is_sound(trained):
    page = study_page(trained)
    parser = Balanced()
    parser.feed(page)
    assert not parser.open and not parser.outside
    assert len(parser.ids) == len(set(parser.ids)), "identifiers collide"
    assert "<script" not in page and page.count("<svg") == 3
    for reference in re.findall(r"url\(#([^)]+)\)", page) + re.findall(r'href="#([^"]+)"', page):
        assert reference in parser.ids, reference
    for e in trained.entries:
        assert e.prediction.name in page
    assert page == study_page(trained)


def test_the_page_is_written_beside_its_data(trained, tmp_path):
    place = write_page(trained, tmp_path / "new" / "folder")
    assert place.read_text().startswith("<!doctype html>")
    assert (place.parent / "study.json").stat().st_size > 10_000
    assert not list(place.parent.glob(".partial*"))


def test_an_unwritable_folder_is_one_line(trained, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="output folder"):
        write_page(trained, tmp_path / "file" / "out")


def test_a_study_without_runs_shows_no_measurement():
    page = study_page(survey([("type1", encoding("type1"))]))
    assert "<svg" not in page and "Measurements" not in page and ">61<" in page


def test_the_page_of_an_idea_holds_all_that_is_known():
    s = study(["-log(1+n)-3/2*log(log(n+3))", "alibi", "kerple_log"])
    page = study_page(s)
    parser = Balanced()
    parser.feed(page)
    assert not parser.open and not parser.outside and len(parser.ids) == len(set(parser.ids))
    assert page.count("<svg") == 2 and len(page) < 2_000_000
    for said in ("Place among the catalogue", "attention resolution", "dtype horizon", "leak",
                 "Rung 2", "As eps → 0", "KERPLE-power", "fp16"):  # fmt: skip
        assert said in page, said
    assert page == study_page(s)


@cache
def decided(formula):
    return study(formula)


def test_results_show_themselves_in_a_notebook():
    shown = check_convergence("-2*log(1+n)")._repr_html_()
    assert "<math" in shown and "<li>" in shown and "converges" in shown
    Balanced().feed(shown)
    for result in (
        theoretical_receptive_field("alibi", "1/10"),
        leak("-n/4", 64),
        dtype_horizon("-n/4", "fp16"),
        encoding("window"),
        attention_resolution("-n/4", 64),
        check_convergence("rope"),
        decided("-n"),
    ):
        parser = Balanced()
        parser.feed(result._repr_html_())
        assert not parser.open, type(result)


def test_columns_of_text_become_tables_in_a_notebook():
    place = decided("-n").place
    shown = place._repr_html_()
    first = [r.name for r in place.ranks]
    assert "<tr><td>" in shown and shown.count("<table>") == 2
    for name in first:
        assert f"<td>{'&gt; ' * (name == '-n')}{name}</td>" in shown, name


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
    root = ElementTree.fromstring(math(e))
    assert root.tag == "math" and len(root)
    assert "Piecewise" not in "".join(root.itertext())


def test_text_of_users_is_escaped():
    page = document("<b>", "", [("a & b", "<p>x</p>")])
    assert "<title>&lt;b&gt;</title>" in page and "a &amp; b" in page


def test_figures_are_deterministic_and_prefixed():
    def draw():
        with house():
            figure, axes = new_figure()
            axes.plot([1, 2, 3], label="a")
            axes.legend()
        return svg(figure, "one")

    assert draw() == draw()
    assert INK not in draw() and "currentColor" in draw()
    assert all(i.startswith("one-") for i in re.findall(r'id="([^"]+)"', draw()))


def test_the_encodings_of_the_demo_differ_in_colour():
    assert len({look(name)["color"] for name, _ in demo_encodings()}) == 8
