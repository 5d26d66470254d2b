"""Pages: well-formed, self-contained, the same bytes each time; figures that do not collide."""

import dataclasses
import importlib
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

from farfield.figures.answer_pages import entry_sheet, study_sheet, write_entry, write_study
from farfield.figures.document import Columns, Section, Sheet, folded, laid_out, page, piece
from farfield.figures.priors import against_critical
from farfield.figures.style import INK, house, new_figure, picture_file, svg
from farfield.numerics.horizon import dtype_horizon
from farfield.numerics.leak import leak
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.resolution import attention_resolution
from farfield.theory.answers.blocks import Curve, Ladder, note, sentence, table
from farfield.theory.answers.notation import StyledWord, expression_mathml, html, terminal, words
from farfield.theory.convergence import check_convergence
from farfield.theory.encodings import CATALOGUE, encoding, encodings
from farfield.theory.functions.nodes import n
from farfield.validation.atlas import entry
from farfield.validation.papers.ledger import plain_sentences
from farfield.validation.study.study import Study, study

VALUES = [-math.sqrt(n) for n in range(100)]
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


def test_a_page_is_written_beside_its_data(trained, tmp_path):
    for write, answer, name in (
        (write_study, trained, "study"),
        (write_entry, entry(encoding("alibi")), "entry"),
    ):
        place = write(answer, tmp_path / "new" / name)
        assert place.read_text().startswith("<!doctype html>")
        assert (place.parent / f"{name}.json").read_text() == answer.to_json(1)
        assert not list(place.parent.glob(".partial*"))


def test_a_table_of_values_is_drawn_as_far_as_it_was_seen():
    drawn = against_critical([("mine", encoding(VALUES))])
    (line,) = (line for line in drawn.lines if line.name == "mine")
    assert line.x[-1] == 100 and line.y[-1] == pytest.approx(math.exp(-math.sqrt(99)))
    assert "so its curve decides nothing" in drawn.title
    assert "decides nothing" not in against_critical([("other", encoding("-n/8"))]).title


ANSWERS = {
    "a mixture": lambda: study("[-n/4; 0 x7]"),
    "an idea beside another": lambda: study(["-log(1+n)-3/2*log(log(n+3))", "alibi"]),
    "what has no field": lambda: study(["type1", "rope", "learned"]),
    "values": lambda: study(encoding(VALUES)),
    "an entry": lambda: entry(encoding("alibi")),
    "an entry without a bias": lambda: entry(encoding("rope")),
}


def test_the_words_of_an_entry_stand_beside_its_drawings():
    (section,) = entry_sheet(ANSWERS["an entry"]()).sections
    columns, *below = section.items
    kinds = [{type(item) for item in items} for items in (columns.left, columns.right, below)]
    assert kinds[1] == {Curve, Ladder} and kinds[0] and not kinds[1] & (kinds[0] | kinds[2])


@pytest.mark.parametrize("name", ANSWERS)
def test_a_page_says_what_its_answer_says(name):
    """No word of its own but headings and captions: each block stands on it, in order."""
    answer, at = ANSWERS[name](), 0
    ideas = answer.about(asked=True) if isinstance(answer, Study) else []
    shown = page_of(answer) if ideas else page(entry_sheet(answer))
    sound(shown)
    blocks = [b for e in ideas for b in e.prediction.blocks()] or answer.blocks()
    for part in (piece([b]).strip() for b in blocks if not isinstance(b, Curve | Ladder)):
        assert shown.find(part, at) >= at, part[:80]
        at = shown.index(part, at)
    assert ('class="ladder' in shown) is any(isinstance(b, Ladder) for b in blocks)
    assert len(shown) < 1_000_000 and "What trained models lost" not in shown, "nothing was trained"


def test_the_curves_of_a_page_are_those_of_its_heads():
    shown = page_of(study("[-n/4; 0 x7]"))
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
