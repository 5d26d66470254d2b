"""Pages: well-formed, self-contained, the same bytes each time; figures that do not collide."""

import re
from functools import cache
from html import escape
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
import sympy

from farfield.figures.document import Section, page
from farfield.figures.pages.report import report_page
from farfield.figures.pages.study import study_page, write_study
from farfield.figures.style import INK, house, look, new_figure, svg
from farfield.numerics.horizon import dtype_horizon
from farfield.numerics.leak import leak
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.resolution import attention_resolution
from farfield.theory.answers.answer import InputError
from farfield.theory.answers.blocks import note, sentence
from farfield.theory.answers.notation import expression_mathml
from farfield.theory.convergence import check_convergence
from farfield.theory.encodings import encoding, encodings
from farfield.theory.functions.nodes import n
from farfield.validation.claims import claim
from farfield.validation.report import Report
from farfield.validation.study.study import demo_encodings, study, survey

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
    shown = study_page(trained)
    parser = Balanced()
    parser.feed(shown)
    assert not parser.open and not parser.outside
    assert len(parser.ids) == len(set(parser.ids)), "identifiers collide"
    assert "<script" not in shown and shown.count("<svg") == 3
    for reference in re.findall(r"url\(#([^)]+)\)", shown) + re.findall(r'href="#([^"]+)"', shown):
        assert reference in parser.ids, reference
    for e in trained.entries:
        assert e.prediction.name in shown
    assert shown == study_page(trained)


def test_the_page_is_written_beside_its_data(trained, tmp_path):
    place = write_study(trained, tmp_path / "new" / "folder")
    assert place.read_text().startswith("<!doctype html>")
    assert (place.parent / "study.json").stat().st_size > 10_000
    assert not list(place.parent.glob(".partial*"))


def test_an_unwritable_folder_is_one_line(trained, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="output folder"):
        write_study(trained, tmp_path / "file" / "out")


def test_a_study_without_runs_shows_no_measurement():
    shown = study_page(survey([("type1", encoding("type1"))]))
    assert "<svg" not in shown and "Measurements" not in shown and ">61<" in shown


def test_the_page_of_an_idea_holds_all_that_is_known():
    s = study(["-log(1+n)-3/2*log(log(n+3))", "alibi", "kerple_log"])
    shown = study_page(s)
    parser = Balanced()
    parser.feed(shown)
    assert not parser.open and not parser.outside and len(parser.ids) == len(set(parser.ids))
    assert shown.count("<svg") == 2 and len(shown) < 2_000_000
    for said in ("Place among the catalogue", "attention resolution", "dtype horizon", "leak",
                 "Rung 2", "ε → 0", "KERPLE-power", "fp16"):  # fmt: skip
        assert said in shown, said
    assert shown == study_page(s)


def test_the_page_of_a_report_has_the_ledger():
    claims = (claim("qin2024.eq7-eq8"), claim("qin2024.thm0.3"))
    shown = report_page(Report(survey([("type1", encoding("type1"))]), claims))
    parser = Balanced()
    parser.feed(shown)
    assert not parser.open and not parser.outside
    for c in claims:
        assert f"<code>{c.id.removeprefix('qin2024.')}</code>" in shown
    assert shown.count(f'class="verdict {claims[0].verdict}"') == len(claims)


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


def test_a_place_is_a_table_in_a_notebook():
    place = decided("-n").place
    shown = place._repr_html_()
    assert shown.count("<table>") == 1 and shown.count("<tr>") == len(place.ranks) + 1
    for r in place.ranks:
        assert f"<td>{'<strong>-n</strong>' if r.asked else escape(r.name)}</td>" in shown, r.name


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
    shown = page("<b>", [note("x < y")], [Section("a & b", [sentence("{x}", x="<i>")])])
    assert "<title>&lt;b&gt;</title>" in shown and "a &amp; b" in shown
    assert "x &lt; y" in shown and "&lt;i&gt;" in shown and "<i>" not in shown


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


def test_no_two_encodings_look_the_same():
    assert len({tuple(look(name).items()) for name in encodings()}) == len(encodings())


def test_the_encodings_of_the_demo_differ_in_colour():
    assert len({look(name)["color"] for name, _ in demo_encodings()}) == 8
